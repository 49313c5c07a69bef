"""Queues between ranks that are threads: what arrives, what is refused, and functions."""

import pathlib
import sys
import threading
import time

import numpy as np
import pytest

import hostless

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from queue_worlds import World, both, check, pair, refused  # noqa: E402


@pytest.mark.parametrize("kind", ["auto", "threads"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_random_programs(ranks, kind):
    def body(comm):
        with hostless.Communicator(comm) as communicator, hostless.Queue(type=kind) as queue:
            for seed in range(20):
                check(World(seed, ranks), communicator, queue)

    hostless.run_threads(ranks, body)


def test_worlds_are_worth_a_look():
    worlds = [World(seed, 3) for seed in range(20)]
    assert any(of == to for world in worlds for of, to, *_ in world.messages) and any(len(world.messages) > 5 for world in worlds)
    assert {operation for world in worlds for _, operation, _, _ in world.reduces} == {"sum", "product", "minimum", "maximum"}
    assert any(world.roots for world in worlds) and any(room > items for world in worlds for *_, items, room in world.messages)


def test_one_rank_sends_to_itself():
    with hostless.Communicator(None) as ranks, hostless.Queue() as queue:
        assert (ranks.rank, ranks.ranks, ranks.gpu) == (0, 1, None)
        check(World(3, 1), ranks, queue)
        assert repr(ranks) == "<hostless.Communicator of rank 0 of 1, the host>" and repr(queue) == "<hostless.Queue of the host>"
        request = ranks.ready_send_init(np.zeros((2, 3), "f4"), 0, 5)
        assert repr(request) == "<hostless.Request: ready send of float32 [2, 3] to rank 0 with tag 5>"
        request.free()
        assert repr(request).endswith(", freed>")
    assert repr(ranks).endswith("closed>") and repr(queue) == "<hostless.Queue closed>"


def test_arrays_of_anything_with_memory():
    def body(ranks, rank, queue):
        out, into = bytearray(b"abcd" if rank else b"efgh"), bytearray(4)
        send, receive = ranks.send_init(bytes(out), 1 - rank), ranks.recv_init(into, 1 - rank)
        hostless.match([send, receive])
        queue.enqueue_start([receive, send])
        queue.enqueue_wait()
        queue.wait()
        with pytest.raises(BufferError):
            into.append(1)  # the request has it
        return bytes(into)

    assert pair(body) == [b"abcd", b"efgh"]


def test_ready_sends():
    def body(ranks, rank, queue):
        out, into = np.full(5, float(rank)), np.zeros(5)
        send, receive = ranks.ready_send_init(out, 1 - rank, 1), ranks.recv_init(into, 1 - rank, 1)
        barrier = ranks.barrier_init()
        hostless.match([send, receive, barrier])
        queue.enqueue_start(receive)
        queue.enqueue_start(barrier)
        queue.enqueue_wait(barrier)
        queue.enqueue_start(send)
        queue.enqueue_wait([send, receive])
        queue.wait()
        return into.tolist()

    assert pair(body) == [[1.0] * 5, [0.0] * 5]


@pytest.mark.parametrize("number", [np.float32, np.float64])
@pytest.mark.parametrize("whose", [0, 1, 2])
def test_a_nan_of_any_rank_is_the_minimum_and_the_maximum(whose, number):
    def reduced(comm):
        mine = np.array([comm.rank + 1, np.nan if comm.rank == whose else comm.rank, -comm.rank], number)
        into = {word: np.zeros_like(mine) for word in ("minimum", "maximum")}
        with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
            requests = [ranks.all_reduce_init(mine, array, word) for word, array in into.items()]
            hostless.match(requests)
            queue.enqueue_start_and_wait(requests)
            queue.wait()
        return into

    for into in hostless.run_threads(3, reduced):
        np.testing.assert_array_equal(into["minimum"], [1, np.nan, -2])
        np.testing.assert_array_equal(into["maximum"], [3, np.nan, 0])


def test_what_is_refused():
    def body(ranks, rank, queue):
        four = np.zeros(4)
        send, receive, _, _ = both(ranks, rank)
        fresh = ranks.send_init(four, 1 - rank, 9)
        for why, act, *parts in (
                ("wildcard", lambda: ranks.recv_init(four, -1), "any rank as a source"),
                ("wildcard", lambda: ranks.send_init(four, 0, -1), "any tag"),
                ("not_matched", lambda: queue.enqueue_start([send, fresh]), "with tag 9"),
                ("not_started", lambda: queue.enqueue_wait(send), "a send to rank"),
                ("twice", lambda: queue.enqueue_start([send, send]), "there twice"),
                ("not_matched", lambda: queue.enqueue_start_and_wait([send, fresh], send), "with tag 9"),
                ("not_started", lambda: queue.enqueue_start_and_wait(send, [send, receive]), "a receive from rank"),
                ("twice", lambda: queue.enqueue_start_and_wait(send, [send, send]), "there twice"),
                ("already_matched", lambda: hostless.match(send), "once and for good"),
                ("unsupported", lambda: hostless.Queue(type="nccl"), "nccl"),
                ("unsupported", lambda: hostless.Queue(type="peer"), "without a stream"),
                ("unsupported", lambda: hostless.Queue(0), "default stream"),
                ("unsupported", lambda: hostless.Queue(1), "default stream"),
                ("unsupported", lambda: hostless.Queue(64, type="threads"), "stream"),
                ("unsupported", lambda: hostless.Communicator(None, transport="ofi"), "threads"),
                ("unsupported", lambda: wrong_type.enqueue_start(send), "the type mpi")):
            wrong_type = hostless.Queue(type="mpi")
            refused(why, act, *parts)
        queue.enqueue_start([send, receive])
        other = hostless.Queue()
        refused("already_started", lambda: queue.enqueue_start(send))
        refused("other_queue", lambda: other.enqueue_wait(send))
        refused("already_started", lambda: queue.enqueue_start_and_wait(receive))
        refused("other_queue", lambda: other.enqueue_start_and_wait([], send))
        refused("in_use", send.free, "started and not waited for")
        queue.enqueue_wait()
        queue.wait()
        send.free()
        for act in (send.free, lambda: send.status, lambda: send.is_matched, lambda: queue.enqueue_start(send)):
            refused("no_request", act, "freed")
        for kind, act, text in (
                (hostless.UsageError, lambda: ranks.send_init(four, 2), "there are 2"),
                (hostless.UsageError, lambda: ranks.send_init(four, 0, -2), "tags count from 0"),
                (hostless.UsageError, lambda: ranks.send_init(four[::2], 0), "gaps"),
                (hostless.UsageError, lambda: ranks.recv_init(np.frombuffer(bytes(8)), 0), "read-only"),
                (hostless.UsageError, lambda: ranks.send_init(np.zeros((3, 2), order="F"), 0), "buffer is in Fortran order"),
                (hostless.UsageError, lambda: ranks.send_init(np.zeros((4, 3, 2)).transpose(1, 0, 2), 0), "buffer has its axes in another order"),
                (hostless.UsageError, lambda: ranks.send_init(np.zeros(4)[::-1], 0), "buffer runs backwards"),
                (hostless.UsageError, lambda: ranks.send_init(np.zeros((4, 6))[:, :2], 0), "buffer has gaps between its elements"),
                (hostless.UsageError, lambda: ranks.all_reduce_init(np.frombuffer(bytes(8))), "read-only"),
                (hostless.UsageError, lambda: ranks.broadcast_init(np.frombuffer(bytes(8)), 1 - rank), "read-only"),
                (hostless.UsageError, lambda: ranks.broadcast_init(four, 2), "there are 2 ranks"),
                (hostless.UsageError, lambda: ranks.all_reduce_init(four, np.zeros(5)), "as many of one type"),
                (hostless.UsageError, lambda: ranks.all_reduce_init(four, four.astype("f4")), "as many of one type"),
                (hostless.UsageError, lambda: ranks.all_reduce_init(np.zeros(2, "c16")), "complex128"),
                (hostless.UsageError, lambda: ranks.all_reduce_init(np.zeros(2, "u4"), None, "minimum"), "uint32"),
                (hostless.UsageError, lambda: ranks.all_reduce_init(four, None, "xor"), "'xor'"),
                (TypeError, lambda: ranks.send_init(7, 0), "is an int"),
                (TypeError, lambda: ranks.send_init(np.zeros(2, object), 0), "object"),
                (TypeError, lambda: ranks.send_init(four, 0.5), "whole number"),
                (TypeError, lambda: queue.enqueue_start([four]), "ndarray"),
                (TypeError, lambda: queue.enqueue_start(7), "int"),
                (TypeError, lambda: queue.enqueue_start_and_wait(receive, 7), "int"),
                (TypeError, lambda: queue.enqueue_function(7), "int"),
                (TypeError, lambda: hostless.Queue("fast"), "stream is a str"),
                (hostless.UsageError, lambda: hostless.Queue(type="fast"), "'fast'"),
                (hostless.UsageError, lambda: hostless.Queue(limit=0), "limit=0"),
                (hostless.UsageError, lambda: hostless.Communicator(None, limit=-1), "limit=-1"),
                (hostless.UsageError, lambda: hostless.Communicator(None, transport="tcp"), "'tcp'"),
                (hostless.UsageError, lambda: hostless.Communicator(None, gpu=-1), "gpu=-1")):
            with pytest.raises(kind, match=text):
                act()
        queue.enqueue_start([])
        queue.enqueue_wait([])
        queue.enqueue_start_and_wait([])
        receive.free()
        fresh.free()

    pair(body)


def test_sides_that_do_not_fit():
    def body(ranks, rank, queue):
        request = ranks.recv_init(np.zeros(1), 0) if rank else ranks.send_init(np.zeros(2), 1)
        refused("mismatch", lambda: hostless.match(request), "16")
        refused("mismatch", lambda: queue.enqueue_start(request))
        request.free()

    pair(body)


def test_a_match_that_goes_on():
    def body(ranks, rank, queue):
        request = ranks.barrier_init()
        if rank == 0:
            going = hostless.begin_match(request)
            assert not going.is_matched and not going.test() and not request.is_matched
            refused("in_use", request.free, "being matched")
            ready.set()
            going.wait()
            assert going.is_matched and going.test()
        else:
            assert ready.wait(60)
            hostless.match([request])
        queue.enqueue_start(request)
        queue.enqueue_wait(request)
        queue.wait()
        assert request.status == (-1, -1, 0, 1, False)

    ready = threading.Event()
    pair(body)


# ---- functions


def test_what_a_function_raises_comes_out_of_wait():
    class Mine(Exception):
        pass

    def raises():
        raise Mine("as it is")

    calls = []
    with hostless.Queue() as queue:
        queue.enqueue_function(raises)
        queue.enqueue_function(calls.append, 1)
        with pytest.raises(Mine, match="as it is") as told:
            queue.wait()
        assert any(entry.name == "raises" for entry in told.traceback) and calls == [1]
        queue.wait()  # once
        queue.enqueue_function(raises)
        while True:
            try:
                if queue.test():
                    pytest.fail("nothing was raised")
            except Mine:
                break
    with pytest.raises(Mine), hostless.Queue() as queue:
        queue.enqueue_function(raises)
    with pytest.raises(ZeroDivisionError), hostless.Queue() as queue:  # the first one says more
        queue.enqueue_function(raises)
        1 / 0  # noqa: B018


def test_inside_a_function_calls_are_refused():
    def body(ranks, rank, queue):
        send, receive, _, _ = both(ranks, rank)
        other, seen = hostless.Queue(), []

        def inside():
            for act in (queue.wait, queue.test, lambda: queue.enqueue_start(send), lambda: queue.enqueue_wait(send), queue.enqueue_wait,
                        lambda: queue.enqueue_start_and_wait(send), lambda: queue.enqueue_function(print), other.wait, other.close, queue.close, ranks.barrier_init, send.free,
                        ranks.close, lambda: hostless.begin_match(send), lambda: send.is_matched):
                refused("in_use", act, "inside a function")
                seen.append(act)
            assert send.status.starts == 0

        queue.enqueue_function(inside)
        queue.wait()
        assert len(seen) == 15

    pair(body)


def test_the_gil_is_free_while_it_waits():
    turns = []
    with hostless.Queue() as queue:
        queue.enqueue_function(time.sleep, 0.2)
        counts = threading.Thread(target=lambda: [(time.sleep(0.01), turns.append(1)) for _ in range(5)])
        counts.start()
        queue.wait()
        counts.join()
    assert len(turns) == 5


def test_one_thread_at_a_time():
    released, inside = threading.Event(), threading.Event()
    with hostless.Queue() as queue:
        queue.enqueue_function(lambda: (inside.set(), released.wait(300)))
        refusals = []

        def wait():
            while True:
                try:
                    return queue.wait()
                except hostless.UsageError as problem:  # the other one asks
                    refusals.append(str(problem))

        waits = threading.Thread(target=wait)
        waits.start()
        inside.wait(300)
        until = time.monotonic() + 240
        while time.monotonic() < until:  # the other thread comes to its wait
            try:
                queue.test()
                time.sleep(0.01)
            except hostless.UsageError as problem:
                refusals.append(str(problem))
                break
        else:
            pytest.fail("two threads were let in")
        released.set()
        waits.join()
        assert all("at work in another thread" in text for text in refusals)


@pytest.mark.parametrize("number", [-5, 2**64, 10**6000], ids=["below 0", "2^64", "of many digits"])
def test_numbers_that_are_no_stream(number):
    with pytest.raises(hostless.UsageError, match="a stream's number is its handle"):
        hostless.Queue(number)

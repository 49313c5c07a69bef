"""Who keeps what of a queue and its requests, and how waits end when a rank is lost."""

import gc
import pathlib
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import hostless

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from queue_worlds import both  # noqa: E402


def test_a_request_keeps_its_array_and_its_communicator():
    def body(comm):
        ranks = hostless.Communicator(comm)
        array = np.full(3, 7.0 + comm.rank)
        gone = weakref.ref(array)
        send, into = ranks.send_init(array, 1 - comm.rank), np.zeros(3)
        receive = ranks.recv_init(into, 1 - comm.rank)
        del array, ranks
        gc.collect()
        assert gone() is not None
        hostless.match([send, receive])
        with hostless.Queue() as queue:
            queue.enqueue_start([send, receive])
            queue.enqueue_wait()
            del send  # the queue has it
            queue.wait()
            assert into.tolist() == [8.0 - comm.rank] * 3
        queue.close()
        until = time.monotonic() + 240
        while gone() is not None and time.monotonic() < until:
            hostless.Queue().wait()  # a call about queues lets go of what they let go of
        assert gone() is None
        comm.barrier()

    hostless.run_threads(2, body)


def test_an_array_that_leads_back_to_its_request():
    class Mine(np.ndarray):
        pass

    with hostless.Communicator(None) as ranks:
        array = np.zeros(3).view(Mine)
        array.request = ranks.send_init(array, 0)
        gone = weakref.ref(array)
        del array
        gc.collect()
        assert settled(lambda: gone() is None)


def settled(is_so):
    until = time.monotonic() + 240
    while not is_so() and time.monotonic() < until:
        hostless.Queue().wait()
        gc.collect()
    return is_so()


def test_a_queue_whose_last_reference_is_in_its_own_function():
    held, over = [hostless.Queue()], threading.Event()
    gone = weakref.ref(held[0])
    held[0].enqueue_function(held.clear)
    assert settled(lambda: gone() is None)
    queue = hostless.Queue()
    queue.enqueue_function(lambda keeps: over.set(), queue)
    gone = weakref.ref(queue)
    del queue
    assert over.wait(60) and settled(lambda: gone() is None)


def test_functions_are_let_go_of():
    class Held:
        def __call__(self):
            pass

    held = Held()
    gone = weakref.ref(held)
    with hostless.Queue() as queue:
        queue.enqueue_function(held)
        queue.wait()
        del held
        assert settled(lambda: gone() is None)


def test_what_is_closed():
    def body(comm):
        ranks = hostless.Communicator(comm)
        with pytest.raises(hostless.UsageError, match="a second communicator"):
            hostless.Communicator(comm)
        request = ranks.barrier_init()
        ranks.close()
        ranks.close()
        with pytest.raises(hostless.UsageError, match="closed"):
            ranks.barrier_init()
        with pytest.raises(hostless.QueueError, match="closed"):
            hostless.match(request)
        request.free()
        with hostless.Communicator(comm) as again, again.barrier_init() as request, hostless.Queue() as queue:
            hostless.match(request)
            queue.enqueue_start(request)
            queue.enqueue_wait(request)
        assert not request._core.exists
        for act in (queue.wait, queue.test, lambda: queue.enqueue_start([])):
            with pytest.raises(hostless.UsageError, match="the queue is closed"):
                act()
        queue.close()

    hostless.run_threads(2, body)


# ---- losses


def test_a_rank_that_leaves():
    def body(comm):
        ranks = hostless.Communicator(comm)
        send, receive, _, into = both(ranks, comm.rank)
        if comm.rank == 0:
            return
        queue = hostless.Queue()
        into[:] = 5
        queue.enqueue_start(receive)
        queue.enqueue_wait(receive)
        calls = []
        queue.enqueue_function(calls.append, 1)
        for _ in range(2):
            with pytest.raises(hostless.PeerLostError, match="a rank has left"):
                queue.wait()
        assert receive.status.lost and calls == [1]
        fresh = ranks.recv_init(into, 0, 99)
        with pytest.raises(hostless.PeerLostError):
            hostless.match(fresh)

    hostless.run_threads(2, body)


def test_limits():
    def body(comm):
        with hostless.Communicator(comm) as ranks:
            _, receive, _, _ = both(ranks, comm.rank)
            queue = hostless.Queue(limit=0.2)
            queue.enqueue_start(receive)
            queue.enqueue_wait(receive)
            with pytest.raises(hostless.PeerLostError):
                queue.wait()
        with hostless.Communicator(comm, limit=0.2) as ranks:
            with pytest.raises(hostless.PeerLostError):
                hostless.match(ranks.recv_init(np.zeros(1), 1 - comm.rank, 8 + comm.rank))

    hostless.run_threads(2, body)


def test_a_block_that_an_exception_leaves_tells_the_others():
    def body(comm):
        begin = time.monotonic()
        with pytest.raises(ZeroDivisionError if comm.rank == 0 else hostless.PeerLostError):
            with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
                _, receive, _, _ = both(ranks, comm.rank)
                queue.enqueue_start(receive)
                queue.enqueue_wait(receive)
                if comm.rank == 0:
                    1 / 0  # noqa: B018
        assert time.monotonic() - begin < 240  # of 600 that a wait may take

    hostless.run_threads(2, body)

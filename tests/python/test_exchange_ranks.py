"""Ranks of exchanges that raise, are silent, are interrupted or collected; threads, forks and ends of the interpreter."""

import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

import hostless
from exchange_worlds import pair, ring
from test_endings import script

SOON = 240.0  #: busy machines are slow; far below the limits that are not meant


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Nobody is lost for being slow, and nothing ends by a limit that is not meant."""
    monkeypatch.setenv("HOSTLESS_DEADLINE_SCALE", "60")


def test_a_rank_that_raises():
    said = {}

    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()])
        if comm.rank == 1:
            raise ZeroDivisionError("mine")
        exchange.start()
        try:
            exchange.wait()
        except hostless.PeerLostError as problem:
            said[comm.rank] = str(problem)
            assert exchange.lost
            for use in (exchange.start, exchange.test, exchange.wait):
                with pytest.raises(hostless.PeerLostError):
                    use()
            raise

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="mine"):
        hostless.run_threads(3, body)
    assert time.monotonic() - began < SOON and set(said) == {0, 2} and "a rank was lost" in said[0]


def test_equal_words_of_other_types_on_another_rank():
    def body(comm):
        a_word = np.str_ if comm.rank == 1 else str
        plan = hostless.ExchangePlan([comm.rank], [1 - comm.rank], comm=comm, route=a_word("direct"))
        mine, ghosts = np.full(1, float(comm.rank)), np.empty(1)
        exchange = hostless.Exchange(plan, [(mine, ghosts)], gpu_transport=a_word("auto"))
        exchange.start()
        exchange.wait()
        return ghosts[0]
    assert hostless.run_threads(2, body) == [1, 0]


def test_a_rank_that_raises_before_a_plan():
    def body(comm):
        if comm.rank == 1:
            raise ZeroDivisionError("mine")
        ring(comm)

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="mine"):
        hostless.run_threads(2, body)
    assert time.monotonic() - began < SOON


@pytest.mark.parametrize("kind", ["Exchange", "ReverseExchange"])
def test_a_rank_that_is_silent(kind):
    given_up = threading.Event()

    def body(comm):
        exchange = getattr(hostless, kind)(ring(comm), [pair()], limit=0.2)
        if comm.rank == 1:
            return given_up.wait(SOON)
        exchange.start()
        began = time.monotonic()
        with pytest.raises(hostless.PeerLostError):
            exchange.wait()
        given_up.set()
        assert 0.1 < time.monotonic() - began < SOON
        with pytest.raises(hostless.PeerLostError):
            exchange.test()

    hostless.run_threads(2, body)


def test_a_loop_of_test_ends():
    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()], limit=(0.3, 0.2))
        if comm.rank == 0:
            exchange.start()
            with pytest.raises(hostless.PeerLostError):
                while not exchange.test():
                    pass

    hostless.run_threads(2, body)


def test_one_that_drops_an_exchange_on_its_way():
    """As the garbage collector does: the others are told, and its arrays are free."""
    dropped = threading.Event()

    def body(comm):
        owned, ghosts = pair()
        exchange = hostless.Exchange(ring(comm), [(owned, ghosts)])
        if comm.rank == 1:
            kept = weakref.ref(ghosts)
            del ghosts
            gc.collect()
            assert kept() is not None  # the exchange keeps it
            comm.barrier()
            exchange.start()
            del exchange
            gc.collect()
            assert kept() is None
            dropped.set()
            return
        comm.barrier()
        dropped.wait(SOON)
        exchange.start()
        try:
            exchange.wait()  # what rank 1 has sent before may have come
            exchange.start()
            exchange.wait()
        except hostless.PeerLostError:
            return
        raise AssertionError("nobody was missed")

    began = time.monotonic()
    hostless.run_threads(2, body)
    assert time.monotonic() - began < SOON


def test_arrays_that_lead_back_to_their_exchange():
    """The garbage collector finds such circles, also while an exchange is on its way."""
    class Known(np.ndarray):
        pass

    def body(comm):
        plan = ring(comm)
        owned, ghosts = (array.view(Known) for array in pair())
        exchange = hostless.Exchange(plan, [(owned, ghosts)])
        owned.exchange, kept = exchange, weakref.ref(owned)
        exchange.exchange()
        gc.collect()
        assert kept() is not None
        exchange.start()
        exchange.wait()
        comm.barrier()
        del owned, ghosts, exchange
        began = time.monotonic()
        while kept() is not None and time.monotonic() - began < SOON:
            gc.collect()  # which does nothing while another thread is at it
        assert kept() is None
        hostless.Exchange(plan, [pair()]).exchange()  # the ranks are as they were

    hostless.run_threads(2, body)


def test_a_block_that_is_left_by_an_exception_tells_the_others():
    told = threading.Event()

    def body(comm):
        try:
            with ring(comm) as plan:
                exchange = hostless.Exchange(plan, [pair()])
                exchange.exchange()
                if comm.rank == 1:
                    raise ZeroDivisionError
                for _ in range(3):
                    exchange.exchange()
        except ZeroDivisionError:
            return told.wait(SOON)  # the rank itself is still there
        except hostless.PeerLostError:
            told.set()
            return comm.rank == 0
        return False

    assert hostless.run_threads(2, body) == [True, True]


def test_the_plan_may_go_before_its_exchanges():
    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()])
        gc.collect()
        for _ in range(3):
            exchange.exchange()

    hostless.run_threads(3, body)


def test_what_is_left_when_the_function_returns():
    left = hostless.run_threads(2, lambda comm: (comm, ring(comm), hostless.Exchange(ring(comm), [pair()])))
    for comm, plan, exchange in left:
        assert "closed" in repr(exchange)
        with pytest.raises(hostless.UsageError, match="the ranks have ended"):
            exchange.start()
        with pytest.raises(hostless.UsageError, match="the ranks have ended"):
            hostless.ExchangePlan([0], [], comm=comm)
        with pytest.raises(hostless.UsageError, match="the ranks have ended"):
            plan.save("nowhere")


def test_the_gil_is_free_while_a_rank_waits():
    """Python of one rank goes on while the other waits for it."""
    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()])
        if comm.rank == 1:
            began = time.monotonic()
            while time.monotonic() - began < 0.3:
                pass
        exchange.exchange()

    began = time.monotonic()
    hostless.run_threads(2, body)
    assert time.monotonic() - began < SOON


def test_a_rank_in_two_threads():
    refused = threading.Event()

    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()])
        if comm.rank == 1:
            assert refused.wait(SOON)
            return exchange.exchange()

        def wait():
            while True:
                try:
                    return exchange.wait()
                except hostless.UsageError:  # the other thread was at work
                    pass

        exchange.start()
        waiting = threading.Thread(target=wait)
        waiting.start()
        began = time.monotonic()
        with pytest.raises(hostless.UsageError, match="at work in another thread"):
            while time.monotonic() - began < SOON:  # until it waits
                exchange.test()
                time.sleep(0.01)
        refused.set()
        waiting.join()
        exchange.wait()

    hostless.run_threads(2, body)


def test_interrupted():
    """Ctrl-C ends the ranks at their next exchange, and is raised where run_threads was called."""
    ended, at_work = [], threading.Barrier(4)

    def press():
        at_work.wait(SOON)
        os.kill(os.getpid(), signal.SIGINT)

    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()])
        exchange.exchange()
        at_work.wait(SOON)
        try:
            while True:
                exchange.exchange()
                time.sleep(0.01)
        except hostless.Error as problem:
            ended.append(type(problem).__name__)
            raise

    presses = threading.Thread(target=press)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        presses.start()
        hostless.run_threads(3, body)
    presses.join()
    assert time.monotonic() - began < SOON
    assert len(ended) == 3 and set(ended) <= {"AbortedError", "PeerLostError"} and "AbortedError" in ended
    hostless.run_threads(2, lambda comm: hostless.Exchange(ring(comm), [pair()]).exchange())


def test_a_fork():
    assert script("""
plan = hostless.ExchangePlan([0], [0])
exchange = hostless.Exchange(plan, [(np.zeros(1), np.zeros(1))])
child = os.fork()
if child == 0:
    try:
        exchange.exchange()
    except hostless.UsageError as problem:
        print(problem, flush=True)
    exchange.close()
    plan.close()
    del exchange, plan
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
exchange.exchange()
""").startswith("ranks of another process")


def test_the_interpreters_end():
    """A daemon thread's ranks, one of which waits for an hour, do not keep it."""
    script("""
def body(comm):
    plan = hostless.ExchangePlan([comm.rank], [1 - comm.rank], comm=comm)
    exchange = hostless.Exchange(plan, [(np.zeros(1), np.zeros(1))])
    inside.set()
    if comm.rank == 0:
        exchange.exchange()
    else:
        while True:
            exchange.test()
            time.sleep(0.01)
def work():
    try:
        hostless.run_threads(2, body)
    except hostless.Error:
        pass
inside = threading.Event()
threading.Thread(target=work, daemon=True).start()
inside.wait(300)
time.sleep(0.3)
began = time.monotonic()
atexit.register(lambda: print(time.monotonic() - began < 240))
""")

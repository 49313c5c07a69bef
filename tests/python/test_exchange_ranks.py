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

SOON = 20.0  #: far below the limits that are not meant


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
    def body(comm):
        exchange = getattr(hostless, kind)(ring(comm), [pair()], limit=0.2)
        if comm.rank == 1:
            return time.sleep(1)
        exchange.start()
        began = time.monotonic()
        with pytest.raises(hostless.PeerLostError):
            exchange.wait()
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
            return
        comm.barrier()
        time.sleep(0.1)
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
    def body(comm):
        began = time.monotonic()
        try:
            with ring(comm) as plan:
                exchange = hostless.Exchange(plan, [pair()])
                exchange.exchange()
                if comm.rank == 1:
                    raise ZeroDivisionError
                for _ in range(3):
                    exchange.exchange()
        except ZeroDivisionError:
            time.sleep(0.5)  # the rank itself is still there
        except hostless.PeerLostError:
            assert comm.rank == 0 and time.monotonic() - began < SOON / 4
            return True
        return comm.rank == 1

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
    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()])
        if comm.rank == 1:
            time.sleep(0.5)
            return exchange.exchange()
        exchange.start()
        waiting = threading.Thread(target=exchange.wait)
        waiting.start()
        time.sleep(0.2)
        with pytest.raises(hostless.UsageError, match="at work in another thread"):
            exchange.test()
        waiting.join()
        exchange.wait()

    hostless.run_threads(2, body)


def test_interrupted():
    """Ctrl-C ends the ranks at their next exchange, and is raised where run_threads was called."""
    ended = []

    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()])
        try:
            while True:
                exchange.exchange()
                time.sleep(0.01)
        except hostless.Error as problem:
            ended.append(type(problem).__name__)
            raise

    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        hostless.run_threads(3, body)
    timer.join()
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
    """A daemon thread's ranks, one of which waits for a minute, do not keep it."""
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
inside.wait(60)
time.sleep(0.3)
began = time.monotonic()
atexit.register(lambda: print(time.monotonic() - began < 20))
""", 60)

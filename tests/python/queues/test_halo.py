"""Halos of grids between ranks that are threads: what they hold after steps, what is refused, and who keeps what."""

import gc
import itertools
import pathlib
import sys
import threading
import weakref

import numpy as np
import pytest

import hostless

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from halo_worlds import Grid, check  # noqa: E402
from queue_worlds import refused  # noqa: E402
from test_queue_keeps import settled  # noqa: E402

SEEDS = range(16)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_grids(ranks):
    def body(comm):
        with hostless.Communicator(comm) as communicator, hostless.Queue() as queue:
            for seed in SEEDS:
                check(Grid(seed, ranks), communicator, queue)

    hostless.run_threads(ranks, body)


def test_grids_are_worth_a_look():
    grids = [Grid(seed, ranks) for seed in SEEDS for ranks in (4, 6)]
    assert {(grid.axes, grid.ready) for grid in grids} == set(itertools.product((2, 3), (False, True)))
    assert {(grid.width, grid.adds) for grid in grids} == set(itertools.product((1, 2, 3), (False, True)))
    assert {grid.reach for grid in grids} == {"box", "star"} and len({len(grid.kinds) for grid in grids}) == 3
    assert any(len(grid.steps) > 3 and grid.ready and not any(ends for *_, ends in grid.steps[:-1]) for grid in grids)
    assert {copy for grid in grids for _, copy, _ in grid.steps} == {0, 1}
    assert {kind for grid in grids for kind, _ in map(str_of, grid.kinds)} >= {"f4", "f8", "i4", "i8", "u4", "u1", "c16", "f2", "?", "record"}


def str_of(kind):
    return (kind[0] if isinstance(kind[0], str) else "record", kind[1])


def torus(cells=((0, 0, 0), (0, 5, 0), (0, 0, 0)), kind="f4", **words):
    """Of one rank, which is its own neighbour on all sides."""
    array = np.array(cells, kind)
    communicator = hostless.Communicator(None)
    return hostless.QueueHalo(communicator, **{"ranks": (1, 1), "fields": array, "periodic": True, **words}), array


def test_gathers_by_hand():
    def body(comm):
        u = np.full((4, 4), -1, "i4")
        u[1:-1, 1:-1] = [[10 * (2 * (comm.rank // 2) + i) + 2 * (comm.rank % 2) + j for j in (0, 1)] for i in (0, 1)]
        star = u.copy()
        with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
            hostless.QueueHalo(ranks, ranks=(2, 2), fields=u, periodic=True).enqueue_gather(queue)
            hostless.QueueHalo(ranks, ranks=(2, 2), fields=star, reach="star", periodic=(False, True), tag=54).enqueue_gather(queue)
            queue.wait()
        return u.tolist(), star.tolist()

    (box, star), *_ = hostless.run_threads(4, body)
    assert box == [[33, 30, 31, 32], [3, 0, 1, 2], [13, 10, 11, 12], [23, 20, 21, 22]]
    assert star == [[-1, -1, -1, -1], [3, 0, 1, 2], [13, 10, 11, 12], [-1, 20, 21, -1]]


def test_scatters_from_left_to_right_in_the_order_of_directions():
    # The cell's neighbours in every direction are itself: what lies beyond its lower right corner comes from (-1, -1).
    halo, array = torus(cells=[[3e8, 2, 0], [1, 1, -2], [-3e8, 7, 1e8]])
    queue = hostless.Queue()
    halo.enqueue_scatter(queue)
    queue.wait()
    total = np.float32(1)
    for one in (1e8, 7, -3e8, -2, 1, 0, 2, 3e8):
        total += np.float32(one)
    backwards = np.float32(1)
    for one in (3e8, 2, 0, 1, -2, -3e8, 7, 1e8):
        backwards += np.float32(one)
    assert array[1, 1] == total != backwards
    array[1, 1] = 0
    assert not array.any()


def test_integers_wrap_around():
    halo, array = torus(cells=[[0, 0, 0], [0, 1, 0], [0, 0, 2**32 - 1]], kind="u4")
    queue = hostless.Queue()
    halo.enqueue_scatter(queue)
    queue.wait()
    assert not array.any()


def test_what_it_says_of_itself():
    def body(comm):
        with hostless.Communicator(comm) as ranks:
            array = np.zeros((7, 9, 3), "u1")
            with hostless.QueueHalo(ranks, ranks=(2, 1), fields=[array], width=2, periodic=True) as halo:
                # 2 x 5 and 2 x 2 cells of 3 bytes, in lines of 16; not those to the left and to the right.
                assert (halo.messages, halo.bytes) == (6, 2 * 32 + 4 * 16)
                assert repr(halo) == "<hostless.QueueHalo of 1 field, box of width 2>"
            assert repr(halo) == "<hostless.QueueHalo of 1 field, box of width 2, closed>" and halo.messages == 6
            with hostless.QueueHalo(ranks, ranks=[np.int64(1), 2], fields=(array, array[..., 0]), reach="star") as halo:
                assert (halo.messages, repr(halo)) == (1, "<hostless.QueueHalo of 2 fields, star of width 1>")

    hostless.run_threads(2, body)


def test_anything_with_memory():
    memory = bytearray(9)
    memory[4] = 7
    with hostless.Queue() as queue, hostless.Communicator(None) as ranks:
        hostless.QueueHalo(ranks, ranks=(1, 1), fields=memoryview(memory).cast("B", (3, 3)), periodic=True).enqueue_gather(queue)
        queue.wait()
    assert bytes(memory) == bytes([7] * 9)


# ---- refusals


GOOD = {"ranks": (2, 2), "fields": np.zeros((5, 5)), "periodic": True}


def wrong_on_rank_2(change, kind, text, others=hostless.UsageError):
    """kind  of the exception there; the others are told its number. Afterwards a good one works."""
    def body(comm):
        array = np.full((5, 5), comm.rank, "f8")
        words = {**GOOD, "fields": array, **(change(array) if comm.rank == 2 else {})}
        with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
            with pytest.raises(kind if comm.rank == 2 else others) as told:
                hostless.QueueHalo(ranks, **words)
            assert text in str(told.value) and (comm.rank == 2 or "rank 2" in str(told.value)), (comm.rank, str(told.value))
            hostless.QueueHalo(ranks, **{**GOOD, "fields": array}).enqueue_gather(queue)
            queue.wait()
            assert array[0, 0] == 3 - comm.rank
        return getattr(told.value, "why", None)

    return hostless.run_threads(4, body)


@pytest.mark.parametrize("change, kind, text", [
    (lambda u: {"ranks": 4}, TypeError, "ranks=4"),
    (lambda u: {"ranks": "22"}, TypeError, "ranks='22'"),
    (lambda u: {"ranks": (4,)}, hostless.UsageError, "ranks=(4,)"),
    (lambda u: {"ranks": (1, 2, 2, 1)}, hostless.UsageError, "2 or 3 axes"),
    (lambda u: {"ranks": (2.5, 2)}, TypeError, "ranks[0]"),
    (lambda u: {"ranks": (2, 3)}, hostless.UsageError, "whose product it is"),
    (lambda u: {"ranks": (-2, -2)}, hostless.UsageError, "whose product it is"),
    (lambda u: {"ranks": (2**40, 1)}, hostless.UsageError, "ranks[0]"),
    (lambda u: {"periodic": (True,)}, hostless.UsageError, "1 that are periodic"),
    (lambda u: {"periodic": (1, 1)}, TypeError, "periodic[0]=1"),
    (lambda u: {"periodic": "yes"}, TypeError, "periodic='yes'"),
    (lambda u: {"reach": "cross"}, hostless.UsageError, "reach='cross'"),
    (lambda u: {"reach": 1}, TypeError, "reach=1"),
    (lambda u: {"ready": 1}, TypeError, "ready=1"),
    (lambda u: {"tag": -1}, hostless.UsageError, "tag -1"),
    (lambda u: {"tag": "one"}, TypeError, "tag"),
    (lambda u: {"width": 0}, hostless.UsageError, "a halo of 0 cells"),
    (lambda u: {"width": 4}, hostless.UsageError, "a halo of 4 cells"),
    (lambda u: {"width": None}, TypeError, "width"),
    (lambda u: {"width": 2}, hostless.UsageError, "a box of 1 cell "),
    (lambda u: {"fields": u[:2]}, hostless.UsageError, "a box of 0 cells"),
    (lambda u: {"fields": u[0]}, hostless.UsageError, "shape (5,)"),
    (lambda u: {"fields": []}, hostless.UsageError, "fields=[]"),
    (lambda u: {"fields": [u] * 17}, hostless.UsageError, "17 fields"),
    (lambda u: {"fields": [u, np.zeros((5, 6))]}, hostless.UsageError, "fields[1] has a box of (5, 6) cells"),
    (lambda u: {"fields": None}, TypeError, "fields[0] is a NoneType"),
    (lambda u: {"fields": [u.tolist()]}, TypeError, "fields[0] is a list"),
    (lambda u: {"fields": u.astype(object)}, TypeError, "object"),
    (lambda u: {"fields": np.ma.masked_array(u)}, hostless.UsageError, "mask"),
    (lambda u: {"fields": np.zeros((5, 5, 9))}, hostless.UsageError, "cells of 72 bytes, float64[9]"),
    (lambda u: {"fields": np.zeros((5, 5, 0))}, hostless.UsageError, "cells of 0 bytes"),
    (lambda u: {"fields": np.broadcast_to(u, (5, 5))}, hostless.UsageError, "read-only"),
    (lambda u: {"fields": np.lib.stride_tricks.as_strided(u, (5, 5), (8, 8))}, hostless.UsageError, "strides of (8, 8)"),
    (lambda u: {"fields": np.lib.stride_tricks.as_strided(u, (5, 5), (40, 0))}, hostless.UsageError, "strides of (40, 0)"),
    (lambda u: {"fields": u[::-1]}, hostless.UsageError, "strides of (-40, 8)"),
    (lambda u: {"fields": u.T}, hostless.UsageError, "in C order"),
    (lambda u: {"fields": np.zeros((5, 5, 4))[..., ::2]}, hostless.UsageError, "side by side"),
    (lambda u: {"fields": np.zeros(209, "u1")[1:201].view("f8").reshape(5, 5)}, hostless.UsageError, "multiples of them"),
])
def test_what_one_rank_says_wrong_is_told_to_all(change, kind, text):
    assert wrong_on_rank_2(change, kind, text) == [None] * 4


@pytest.mark.parametrize("change, text", [
    (lambda u: {"fields": np.zeros((5, 6))}, "size of its box along axis 1 is 3 and rank 2 4"),
    (lambda u: {"fields": np.zeros((7, 5))}, "size of its box along axis 0"),
    (lambda u: {"fields": np.zeros((7, 7)), "width": 2}, "width"),
    (lambda u: {"fields": np.zeros((5, 5, 5)), "ranks": (2, 2, 1)}, "number of axes"),
    (lambda u: {"fields": [u, u.copy()]}, "number of fields"),
    (lambda u: {"fields": u.astype("f4")}, "bytes of a cell"),
    (lambda u: {"fields": u.astype("i8")}, "elements of field 0 is f64 and rank 2 i64"),
    (lambda u: {"ranks": (4, 1)}, "ranks along axis 0"),
    (lambda u: {"periodic": (True, False)}, "periodic along axis 1 is true and rank 2 false"),
    (lambda u: {"reach": "star"}, "the reach is box and rank 2 star"),
    (lambda u: {"ready": True}, "ready (ready sends) is false and rank 2 true"),
    (lambda u: {"tag": 1}, "first tag"),
])
def test_what_ranks_say_otherwise_is_told_to_all(change, text):
    assert wrong_on_rank_2(change, hostless.QueueError, text, hostless.QueueError) == ["mismatch"] * 4


def test_boxes_of_other_sizes_that_fit():
    def body(comm):
        with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
            u = np.full((4 + comm.rank // 2, 5 + comm.rank % 2), comm.rank)
            hostless.QueueHalo(ranks, ranks=(2, 2), fields=u, periodic=True).enqueue_gather(queue)
            queue.wait()
            return u[0, 0]

    assert hostless.run_threads(4, body) == [3, 2, 1, 0]


def test_another_call_is_no_halo():
    def body(comm):
        with hostless.Communicator(comm) as ranks:
            with pytest.raises(hostless.UsageError, match="halo of a grid"):
                if comm.rank == 0:
                    hostless.QueueHalo(ranks, ranks=(2, 1), fields=np.zeros((3, 3)))
                else:
                    hostless.Communicator(comm)

    hostless.run_threads(2, body)


def test_steps_that_are_refused():
    halo, array = torus()
    bytes_halo, _ = torus(kind="c8")
    ready, sent = torus(ready=True)
    first, second = hostless.Queue(), hostless.Queue()
    closed = hostless.Queue()
    closed.close()
    for kind, act, text in (
            (TypeError, lambda: halo.enqueue_gather(None), "queue is a NoneType"),
            (TypeError, lambda: halo.enqueue_gather(first, ends_run=1), "ends_run=1"),
            (TypeError, lambda: halo.enqueue_gather(first, [5]), r"arrays\[0\] is an int"),
            (hostless.UsageError, lambda: halo.enqueue_gather(first, []), "0 arrays for a halo of 1 field"),
            (hostless.UsageError, lambda: halo.enqueue_gather(first, [array, array]), "2 arrays"),
            (hostless.UsageError, lambda: halo.enqueue_gather(first, array.astype("f8")), "float64"),
            (hostless.UsageError, lambda: halo.enqueue_gather(first, array.view("i4")), "int32"),
            (hostless.UsageError, lambda: halo.enqueue_gather(first, np.zeros((3, 4), "f4")), r"\[3, 4\]"),
            (hostless.UsageError, lambda: halo.enqueue_gather(first, np.zeros((3, 4), "f4")[:, :3]), "strides"),
            (hostless.UsageError, lambda: halo.enqueue_scatter(first, array.T), "C order"),
            (hostless.UsageError, lambda: halo.enqueue_gather(first, np.frombuffer(bytes(36), "f4").reshape(3, 3)), "read-only"),
            (hostless.UsageError, lambda: halo.enqueue_gather(first, np.zeros(40, "u1")[1:37].view("f4").reshape(3, 3)), "multiples"),
            (hostless.UsageError, lambda: bytes_halo.enqueue_scatter(first), "not added"),
            (hostless.UsageError, lambda: halo.enqueue_gather(closed), "the queue is closed"),
            (TypeError, lambda: hostless.QueueHalo(None, ranks=(1, 1), fields=array), "hostless.Communicator")):
        with pytest.raises(kind, match=text):
            act()
    first.wait()
    assert array.tolist() == [[0, 0, 0], [0, 5, 0], [0, 0, 0]] and first.is_idle
    ready.enqueue_gather(first)
    refused("other_queue", lambda: ready.enqueue_gather(second), "End that run first")
    ready.enqueue_scatter(first, ends_run=True)
    first.wait()
    assert sent.tolist() == [[0, 0, 0], [0, 45, 0], [0, 0, 0]]
    ready.enqueue_gather(second, ends_run=True)
    second.wait()
    assert sent.tolist() == [[45] * 3] * 3
    halo.close()
    halo.close()
    with pytest.raises(hostless.UsageError, match="the halo is closed"):
        halo.enqueue_gather(first)
    ready._communicator.close()
    refused("no_request", lambda: ready.enqueue_gather(first), "closed")
    with pytest.raises(hostless.UsageError, match="the communicator is closed"):
        hostless.QueueHalo(ready._communicator, ranks=(1, 1), fields=sent)


def test_inside_a_function_calls_are_refused():
    halo, array = torus()
    queue, seen = hostless.Queue(), []

    def inside():
        for act in (lambda: halo.enqueue_gather(queue), lambda: halo.enqueue_scatter(other), halo.close,
                    lambda: hostless.QueueHalo(halo._communicator, ranks=(1, 1), fields=array)):
            refused("in_use", act, "inside a function")
            seen.append(act)

    other = hostless.Queue()
    queue.enqueue_function(inside)
    queue.wait()
    assert len(seen) == 4 and repr(halo).endswith("width 1>")


# ---- who keeps what


def test_a_halo_keeps_its_fields_and_its_communicator():
    def body(comm):
        ranks = hostless.Communicator(comm)
        array = np.full((3, 3), 1.0 + comm.rank)
        gone = weakref.ref(array)
        halo = hostless.QueueHalo(ranks, ranks=(2, 1), fields=array, periodic=True)
        del array, ranks
        gc.collect()
        assert gone() is not None
        with hostless.Queue() as queue:
            halo.enqueue_gather(queue)
            queue.wait()
            assert gone()[0].tolist() == [2.0 - comm.rank] * 3
            del halo
        assert settled(lambda: gone() is None)
        comm.barrier()

    hostless.run_threads(2, body)


@pytest.mark.parametrize("how", ["dropped", "closed"])
@pytest.mark.parametrize("ready", [False, True])
def test_steps_go_on_when_the_halo_has_gone(how, ready):
    def body(comm):
        with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
            memory, goes_on = np.zeros((2, 3, 3)), threading.Event()
            array, other = memory  # which they keep, and it does not keep them
            array[1, 1], other[1, 1] = 1 + comm.rank, 3 + comm.rank
            halo = hostless.QueueHalo(ranks, ranks=(2, 1), fields=array, periodic=True, ready=ready)
            queue.enqueue_function(goes_on.wait, 60)
            halo.enqueue_gather(queue)
            halo.enqueue_gather(queue, [other])
            gone = [weakref.ref(array), weakref.ref(other)]
            if how == "closed":
                halo.close()
            del halo, array, other
            gc.collect()
            assert all(one() is not None for one in gone)
            goes_on.set()
            queue.wait()
            assert settled(lambda: all(one() is None for one in gone))
            return memory.tolist()

    for rank, seen in enumerate(hostless.run_threads(2, body)):
        assert seen == [[[first + 1 - rank] * 3, [first + rank] * 3, [first + 1 - rank] * 3] for first in (1, 3)]


def test_a_field_that_leads_back_to_its_halo():
    class Mine(np.ndarray):
        pass

    array = np.zeros((3, 3)).view(Mine)
    with hostless.Communicator(None) as ranks:
        array.halo = hostless.QueueHalo(ranks, ranks=(1, 1), fields=array)
        gone = weakref.ref(array)
        del array
        gc.collect()
        assert settled(lambda: gone() is None)


def test_a_rank_that_leaves():
    def body(comm):
        ranks = hostless.Communicator(comm)
        halo = hostless.QueueHalo(ranks, ranks=(2, 1), fields=np.zeros((3, 3)), periodic=True)
        if comm.rank == 0:
            ranks.close()
            return
        queue = hostless.Queue()
        halo.enqueue_gather(queue)
        with pytest.raises(hostless.PeerLostError):
            queue.wait()
        with pytest.raises(hostless.PeerLostError):
            hostless.QueueHalo(ranks, ranks=(2, 1), fields=np.zeros((3, 3)))

    hostless.run_threads(2, body)

"""Stencils whose ranks are the caller's: threads of run_threads, and processes of an mpi4py communicator."""

import os
import pathlib
import types

import numpy as np
import pytest

import hostless
from stencil_oracle import same_bits
from stencil_worlds import World
from test_mpi import check_all_good

HEAT = "u + k*(u[-1,0] + u[1,0] + u[0,-1] + u[0,1] - 4*u)"
SHAPE = (24, 30)


def heat(k=0.2):
    return hostless.Stencil(HEAT, k=k)


def start(box=...):
    return np.random.default_rng(1).random(SHAPE)[box].copy()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_cells_and_norms_are_those_of_one_rank(ranks):
    for seed in range(12):
        world = World(seed, ranks)
        boxes = hostless.run_threads(ranks, world.check)
        seen = np.zeros(world.shape, int)
        for box in boxes:
            seen[box] += 1
        assert (seen == 1).all()


def test_named_ones_and_a_single_rank():
    life = hostless.Stencil.named("life")
    board = (np.random.default_rng(2).random(SHAPE) < 0.4).astype(np.float32)
    expected = board.copy()
    life.run(expected, 20, boundary="periodic", ranks=1)

    def body(comm):
        box = life.box(SHAPE, comm, boundary="periodic")
        mine = board[box].copy()
        result = life.run(mine, 20, boundary="periodic", comm=comm, shape=SHAPE)
        assert result.by == "named" and result.ranks == comm.size
        return same_bits(mine, expected[box])

    for ranks in (1, 4):
        assert hostless.run_threads(ranks, body) == [True] * ranks


def test_keywords_in_another_order_on_another_rank():
    """Halos of coefficients travel by their numbers, which ranks must have alike."""
    rng = np.random.default_rng(3)
    first, second = rng.random(SHAPE), rng.random(SHAPE)

    def mixed(box, reverse):
        given = {"a": first[box].copy(), "b": second[box].copy(), "k": 0.3, "m": 0.2}
        return hostless.Stencil("k*u + a[0,1]*u[0,1] + m*b[0,-2]*u[1,0]", **dict(sorted(given.items(), reverse=reverse)))
    expected = start()
    mixed(..., False).run(expected, 7, boundary="periodic", ranks=1)

    def body(comm):
        box = mixed(..., False).box(SHAPE, comm, boundary="periodic")
        mine = start(box)
        mixed(box, comm.rank == 1).run(mine, 7, boundary="periodic", comm=comm, shape=SHAPE)
        return same_bits(mine, expected[box])
    assert hostless.run_threads(4, body) == [True] * 4


@pytest.mark.parametrize("one, other", [
    (dict(tolerance=0), dict(tolerance=-0.0)), (dict(tolerance=np.float64(0.5), every=np.int32(2)), dict(tolerance=0.5, every=2)),
    (dict(ranks_along=[2, 1]), dict(ranks_along=(np.int64(2), 1))), (dict(boundary="periodic"), dict(boundary=("periodic", "periodic"))),
    (dict(depth=np.int64(2)), dict(depth=2)), (dict(boundary=["neumann", "periodic"]), dict(boundary=("neumann", "periodic")))])
def test_equal_values_of_other_types_on_another_rank(one, other):
    def body(comm):
        how = other if comm.rank == 1 else one
        along = {key: how[key] for key in ("boundary", "ranks_along") if key in how}
        mine = start(heat().box(SHAPE, comm, **along))
        return heat().run(mine, 2, comm=comm, shape=SHAPE, **how).steps
    assert hostless.run_threads(2, body) == [2, 2]


def refused(ranks, body, text, kind=hostless.UsageError):
    """All ranks raise it, so that nobody waits for one that has gone."""
    raised = []

    def each(comm):
        try:
            body(comm)
        except kind as problem:
            raised.append(str(problem))
    hostless.run_threads(ranks, each)
    assert len(raised) == ranks and all(text in one for one in raised), raised


class TestRefused:
    def test_an_array_that_is_no_box_on_one_rank(self):
        def body(comm):
            box = heat().box(SHAPE, comm)
            heat().run(start() if comm.rank == 1 else start(box), 3, comm=comm, shape=SHAPE)
        refused(2, body, "u has the shape (24, 30), and the box of rank 1 is (24, 15), [0:24, 15:30] of (24, 30)")

    @pytest.mark.parametrize("other, text", [
        (dict(steps=4), "steps=4"), (dict(every=2), "every=2"), (dict(depth=2), "depth=2"), (dict(k=0.1), "parameters={'k': 0.1}"),
        (dict(dtype=np.float32), "float32"), (dict(boundary="neumann"), "boundary='neumann'")])
    def test_what_is_not_alike(self, other, text):
        def body(comm):
            how = {"steps": 3, **(other if comm.rank == 1 else {})}
            stencil = heat(how.pop("k", 0.2))
            mine = start(stencil.box(SHAPE, comm)).astype(how.pop("dtype", np.float64))
            stencil.run(mine, how.pop("steps"), comm=comm, shape=SHAPE, **how)
        refused(2, body, text)

    @pytest.mark.parametrize("formula, value", [("u - 0.1*v", 0.5), ("u[1] - 0.1*v[1]", np.ones(20))])
    def test_another_name_of_the_field(self, formula, value):
        def body(comm):
            stencil = hostless.Stencil(formula, **{"uv"[comm.rank]: value})
            stencil.run(np.ones(20), 1, comm=comm, shape=(40,))
        refused(2, body, "'u'")

    def test_an_argument_that_there_is_not(self):
        def body(comm):
            mine = start(heat().box(SHAPE, comm))
            try:
                heat().run(mine, 1, comm=comm, shape=SHAPE, **({"evry": 1} if comm.rank == 1 else {}))
            except TypeError as problem:
                assert comm.rank == 1, problem
                raise hostless.UsageError(str(problem)) from None
        refused(3, body, "unexpected keyword argument 'evry'")

    @pytest.mark.parametrize("comm, text", [
        (None, "comm is a NoneType"), (2, "comm is an int"), (types.SimpleNamespace(rank=0, size="2"), "comm is a SimpleNamespace"),
        (types.SimpleNamespace(rank=2, size=2), "rank 2 of 2 ranks"), (types.SimpleNamespace(rank=-1, size=2), "rank -1 of 2 ranks")])
    def test_a_box_of_no_communicator(self, comm, text):
        with pytest.raises(hostless.UsageError, match=text):
            heat().box(SHAPE, comm)

    def test_what_makes_no_sense(self):
        def run(comm, **how):
            heat().run(start(), 1, comm=comm, **how)
        for how, text in ((dict(), "comm without shape"), (dict(shape=24), "shape=24"), (dict(shape=(24, 0)), "shape=0"), (dict(shape=SHAPE, ranks=1), "ranks=1 with comm"),
                          (dict(shape=SHAPE, ranks_along=(2, 1)), "1 rank"), (dict(shape=SHAPE, transport="mpi"), "transport='mpi' without a communicator")):
            refused(1, lambda comm, how=how: run(comm, **how), text)
        for how in (dict(shape=SHAPE), dict(transport="mpi")):
            with pytest.raises(hostless.UsageError, match="without comm"):
                heat().run(start(), 1, **how)

    def test_arrays_of_a_gpu(self):
        there = types.SimpleNamespace(__cuda_array_interface__={"shape": SHAPE, "typestr": "<f8", "data": (4096, False), "version": 3})
        refused(1, lambda comm: heat().run(there, 1, comm=comm, shape=SHAPE), "steps a whole grid that lies in its memory without comm.")

    def test_without_a_compiler(self, monkeypatch):
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.delenv("CXX", raising=False)
        refused(2, lambda comm: heat().run(start(heat().box(SHAPE, comm)), 1, comm=comm, shape=SHAPE), "without a C++ compiler",
                hostless.MachineError)


class TestEnds:
    @staticmethod
    def run(comm, **how):
        mine = start(heat().box(SHAPE, comm))
        return heat().run(mine, 1000, comm=comm, shape=SHAPE, **how), mine

    def test_a_callback_of_one_rank(self):
        def body(comm):
            look = (lambda change: change.step == 20) if comm.rank == 2 else None
            result, mine = self.run(comm, every=5, callback=look)
            assert (result.status, result.steps, result.message) == ("aborted", 20, "the callback asked to stop after step 20")
            expected = start()
            heat().run(expected, 20)
            return same_bits(mine, expected[heat().box(SHAPE, comm)])
        assert hostless.run_threads(3, body) == [True] * 3

    def test_cells_of_a_look_are_in_the_box(self):
        def body(comm):
            box = heat().box(SHAPE, comm)
            mine, seen = start(box), []
            heat().run(mine, 9, comm=comm, shape=SHAPE, every=3, callback=lambda change: seen.append(mine.copy()))
            expected = start()
            for cells in seen:
                heat().run(expected, 3)
                assert same_bits(cells, expected[box])
            return len(seen)
        assert hostless.run_threads(4, body) == [3] * 4

    def test_a_rank_that_leaves_before_it_has_begun(self):
        said = []

        def body(comm):
            if comm.rank == 1:
                raise ZeroDivisionError("mine")
            try:
                self.run(comm)
            except hostless.PeerLostError as problem:
                said.append(str(problem))
                raise
        with pytest.raises(ZeroDivisionError, match="mine"):
            hostless.run_threads(3, body)
        assert len(said) == 2 and all("during set-up (nothing goes on without it)" in one for one in said), said

    def test_what_a_callback_raises(self):
        class Mine(Exception):
            pass

        def look(_):
            raise Mine("no more")

        def body(comm):
            try:
                self.run(comm, every=5, callback=look if comm.rank == 1 else None)
            except Mine:
                return "mine"
            except hostless.AbortedError as problem:
                assert "rank 1: " in str(problem) and "no more" in str(problem), problem
                return "aborted"
        assert hostless.run_threads(3, body) == ["aborted", "mine", "aborted"]

    def test_the_time_limit_of_one_rank(self):
        def body(comm):
            mine = start(heat().box(SHAPE, comm))
            result = heat().run(mine, 2**40, comm=comm, shape=SHAPE, time_limit=0.3 if comm.rank == 0 else None)
            whose = "0.3 s" if comm.rank == 0 else "another rank"
            assert result.message == f"the time limit of {whose} was reached after step {result.steps}", result.message
            return result.status, result.steps
        first, second = hostless.run_threads(2, body)
        assert first == second and first[0] == "aborted" and first[1] > 0

    def test_a_tolerance(self):
        def body(comm):
            mine = start(heat().box(SHAPE, comm))
            return heat().run(mine, 100_000, comm=comm, shape=SHAPE, every=100, tolerance=1e-3).steps
        alone = start()
        assert hostless.run_threads(3, body) == [heat().run(alone, 100_000, every=100, tolerance=1e-3).steps] * 3


#: What the processes run; two and two of them are played to be nodes.
SCRIPT = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).resolve().parent)!r})
""" + """
import os, signal, threading, time
import numpy as np
from mpi4py import MPI
import hostless
from stencil_worlds import World

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
for seed in range(6):
    for transport in (None, "composite"):
        World(seed, size).check(comm, transport=transport)

jacobi = hostless.Stencil.named("jacobi2d")
shape = (40, 40)
mine = np.zeros((40, 40))[jacobi.box(shape, comm)]
try:
    jacobi.run(mine if rank else mine[1:], 1, comm=comm, shape=shape)
    sys.exit("accepted")
except hostless.UsageError as problem:
    assert "box of rank 0" in str(problem), problem

for other, text in ((MPI.COMM_NULL, "COMM_NULL"), (comm.group, "comm is a Group")):
    for call in (lambda: jacobi.box(shape, other), lambda: jacobi.run(mine, 1, comm=other, shape=shape)):
        try:
            call()
            sys.exit("accepted")
        except hostless.UsageError as problem:
            assert text in str(problem), problem

# Ctrl-C on one: it is raised there, and the others hear of it.
if rank == size - 1:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    jacobi.run(mine, 2**40, comm=comm, shape=shape)
    sys.exit("ran on")
except KeyboardInterrupt:
    assert rank == size - 1
except hostless.AbortedError as problem:
    assert rank != size - 1 and f"rank {size - 1}" in str(problem), problem
assert jacobi.run(mine, 10, comm=comm, shape=shape)      # and all go on
comm.Barrier()
if rank == 0:
    print("all good")
"""


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_processes(vendor, tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "HOSTLESS_COMPOSITE_RANKS_PER_NODE", "2")
    check_all_good(vendor, 4, SCRIPT, tmp_path)

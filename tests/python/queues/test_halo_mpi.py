"""Halos of grids between mpi4py's processes: by MPI, inside calls and by a thread, by libfabric, and what one of them does wrong."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import hostless

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from test_mpi import check_all_good, run, runs_with  # noqa: E402

RANDOM = """
import os, sys
os.environ.update({environment!r})
sys.path.insert(0, {folder!r})
from mpi4py import MPI
import hostless, halo_worlds

comm = MPI.COMM_WORLD
with hostless.Communicator(comm, transport={transport!r}) as ranks, hostless.Queue() as queue:
    for seed in range({seeds}):
        halo_worlds.check(halo_worlds.Grid(seed, comm.size), ranks, queue)
    # Two fields of different types, widths 1 and 2, ready sends of several steps and standard ones.
    two = [("f8", ()), ("i4", (3,))]
    for number, (places, width, ready, adds) in enumerate({places!r}):
        grid = halo_worlds.Grid(100 + number, comm.size, ranks=places, width=width, ready=ready, adds=adds, kinds=two,
                                periodic=(True,) * len(places))
        grid.steps = [(adds and k % 2 == 1, k % 2, k == 4) for k in range(5)]
        halo_worlds.check(grid, ranks, queue)
comm.Barrier()
if comm.rank == 0:
    print("all good")
"""
PLACES = {1: [(1, 1)], 2: [(2, 1), (1, 1, 2)], 3: [(1, 3)], 4: [(2, 2), (2, 1, 2)]}


def words(ranks, **more):
    places = [(place, width, ready, adds) for place in PLACES[ranks] for width in (1, 2) for ready in (False, True) for adds in (False, True)]
    return RANDOM.format(**{"environment": {}, "folder": str(HERE), "transport": None, "seeds": 6, "places": places, **more})


@pytest.mark.parametrize("progress", ["calls", "thread"])
@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_grids(vendor, ranks, progress, tmp_path):
    check_all_good(vendor, ranks, words(ranks, environment={"HOSTLESS_QUEUE_PROGRESS": progress}), tmp_path)


def test_by_libfabric(tmp_path):
    said = subprocess.run([hostless.command(), "doctor"], capture_output=True, text=True, timeout=600, check=False).stdout
    if not re.search("ofi +found", said):
        pytest.skip("no queue type ofi here")
    check_all_good("openmpi", 2, words(2, transport="ofi", seeds=3), tmp_path)


def test_the_pages_cylinder(tmp_path):
    page = (HERE.parents[2] / "docs" / "howto" / "queue.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(# mpirun [^\n]*cylinder.py\n.*?)```", page, re.S)[1]
    if (missing := runs_with("openmpi", tmp_path)) is not None:
        pytest.skip(missing)
    u = np.zeros((98, 66))
    u[0] = 100
    for _ in range(200):
        u[1:-1, 0], u[1:-1, -1] = u[1:-1, -2], u[1:-1, 1]
        u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    for ranks in (1, 2, 3, 4):
        ran = run("mpirun.openmpi", ranks, program, tmp_path, "openmpi")
        assert (ran.returncode, ran.stdout) == (0, f"{u[1:-1, 1:-1].sum():.6f}\n"), ran.stdout + ran.stderr


WRONG = """
import sys
from mpi4py import MPI
import numpy as np
import hostless

comm = MPI.COMM_WORLD
wrong = comm.rank == comm.size - 1
u = np.full((4, 4), comm.rank, "f8")
good = dict(ranks=(comm.size, 1), fields=u, periodic=True)
with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
    for change, mine, others, text in (
            (dict(width=0), hostless.UsageError, hostless.UsageError, "a halo of 0 cells"),
            (dict(fields=u.T), hostless.UsageError, hostless.UsageError, "in C order"),
            (dict(fields=7), TypeError, hostless.UsageError, "fields[0] is an int"),
            (dict(ranks=(comm.size, 2)), hostless.UsageError, hostless.UsageError, "whose product it is"),
            (dict(fields=u.astype("f4")), hostless.QueueError, hostless.QueueError, "the bytes of a cell of field 0"),
            (dict(fields=np.zeros((4, 5))), hostless.QueueError, hostless.QueueError, "along axis 1"),
            (dict(reach="star"), hostless.QueueError, hostless.QueueError, "the reach")):
        try:
            hostless.QueueHalo(ranks, **{**good, **(change if wrong else {})})
        except Exception as problem:
            kind = mine if wrong else others
            assert isinstance(problem, kind) and text in str(problem), (comm.rank, text, type(problem), str(problem))
            assert wrong and kind is not hostless.QueueError or f"rank {comm.size - 1}" in str(problem), str(problem)
        else:
            sys.exit(f"rank {comm.rank} accepted {change}")
    # Nothing of that has harmed the communicator.
    with hostless.QueueHalo(ranks, **good) as halo:
        halo.enqueue_gather(queue)
        queue.wait()
    assert u[0, 0] == (comm.rank - 1) % comm.size and u[-1, 0] == (comm.rank + 1) % comm.size
comm.Barrier()
if comm.rank == 0:
    print("all good")
"""


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_what_one_process_does_wrong_is_told_to_all(vendor, tmp_path):
    check_all_good(vendor, 3, WRONG, tmp_path)


LOSS = """
import sys, time
from mpi4py import MPI
import numpy as np
import hostless

comm = MPI.COMM_WORLD
try:
    with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
        halo = hostless.QueueHalo(ranks, ranks=(2, 1), fields=np.zeros((300, 300)), ready={ready})
        halo.enqueue_gather(queue)
        queue.wait()
        comm.Barrier()
        if comm.rank == 1:
            raise KeyError("mine")
        begin = time.monotonic()
        halo.enqueue_gather(queue)
        del halo
        queue.wait()
except hostless.PeerLostError:
    assert comm.rank == 0 and time.monotonic() - begin < 240
except KeyError:
    assert comm.rank == 1
else:
    sys.exit("nothing was raised")
comm.Barrier()
if comm.rank == 0:
    print("all good")
"""


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_a_block_that_an_exception_leaves_tells_the_others(vendor, ready, tmp_path):
    check_all_good(vendor, 2, LOSS.format(ready=ready), tmp_path)

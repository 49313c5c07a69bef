"""Queues over communicators of mpi4py: by MPI, inside calls and by a thread, and by libfabric."""

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
import numpy as np
import hostless, queue_worlds

comm = MPI.COMM_WORLD
with hostless.Communicator(comm, transport={transport!r}) as ranks, hostless.Queue(type={kind!r}) as queue:
    assert (ranks.rank, ranks.ranks) == (comm.rank, comm.size)
    for seed in range({seeds}):
        queue_worlds.check(queue_worlds.World(seed, comm.size), ranks, queue)
    def refused(why, act):
        try:
            act()
        except hostless.UsageError as problem:
            assert why == getattr(problem, "why", None) or why in str(problem), problem
        else:
            sys.exit("accepted: " + why)
    four = np.zeros(4)
    refused("MPI.PROC_NULL", lambda: ranks.send_init(four, MPI.PROC_NULL))
    refused("wildcard", lambda: ranks.recv_init(four, MPI.ANY_SOURCE))
    refused("wildcard", lambda: ranks.recv_init(four, 0, MPI.ANY_TAG))
    refused("unsupported", lambda: hostless.Communicator(comm, gpu=0))
    # What one rank does wrong is told to all.
    refused("transport", lambda: hostless.Communicator(comm, transport="tcp" if comm.rank == 0 else None))
    # Beside MPI's own messages.
    assert comm.allreduce(1) == comm.size
barrier = comm.Barrier()
if comm.rank == 0:
    print("all good")
"""


def words(**more):
    return RANDOM.format(**{"environment": {}, "folder": str(HERE), "transport": None, "kind": "auto", "seeds": 20, **more})


@pytest.mark.parametrize("progress", ["calls", "thread"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_random_programs(vendor, ranks, progress, tmp_path):
    check_all_good(vendor, ranks, words(environment={"HOSTLESS_QUEUE_PROGRESS": progress}, kind="mpi"), tmp_path)


def test_by_libfabric(tmp_path):
    said = subprocess.run([hostless.command(), "doctor"], capture_output=True, text=True, timeout=600, check=False).stdout
    if not re.search("ofi +found", said):
        pytest.skip("no queue type ofi here")
    check_all_good("openmpi", 2, words(transport="ofi", kind="ofi", seeds=6), tmp_path)


def test_the_pages_iteration(tmp_path):
    page = (HERE.parents[2] / "docs" / "howto" / "queue.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(# mpirun .*?)```", page, re.S)[1]
    if (missing := runs_with("openmpi", tmp_path)) is not None:
        pytest.skip(missing)
    u = np.zeros((98, 64))
    u[0] = 100
    for _ in range(200):
        u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    for ranks in (1, 2, 3):
        ran = run("mpirun.openmpi", ranks, program, tmp_path, "openmpi")
        assert (ran.returncode, ran.stdout) == (0, f"{u[1:-1].sum():.6f}\n"), ran.stdout + ran.stderr


LOSS = """
import sys, time
from mpi4py import MPI
import numpy as np
import hostless

comm = MPI.COMM_WORLD
try:
    with hostless.Communicator(comm) as ranks, hostless.Queue() as queue:
        receive = ranks.recv_init(np.zeros(4), 1 - comm.rank)
        send = ranks.send_init(np.ones(4), 1 - comm.rank)
        hostless.match([send, receive])
        queue.enqueue_start(receive)
        queue.enqueue_wait(receive)
        if comm.rank == 1:
            raise KeyError("mine")
        begin = time.monotonic()
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


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_a_block_that_an_exception_leaves_tells_the_others(vendor, tmp_path):
    check_all_good(vendor, 2, LOSS, tmp_path)

"""A program of mpi4py's, without and with the library that carries its neighbourhood collectives."""

import os
import subprocess
import sys

import pytest

from test_mpi import environment_of, runs_with

PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
near = [(comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size]
ring = comm.Create_dist_graph_adjacent(near, near)
got = []
for call in range(5):
    everybody, swapped = np.zeros((2, 4)), np.zeros(8)
    ring.Neighbor_allgather(np.arange(4.0) + 100 * comm.rank + call, everybody)
    ring.Neighbor_alltoall(np.arange(8.0) + 100 * comm.rank + call, swapped)
    counts, theirs = [1 + comm.rank % 2] * 2, [1 + rank % 2 for rank in near]
    some = np.zeros(sum(theirs))
    ring.Neighbor_alltoallv([np.arange(4.0) + comm.rank, counts], [some, theirs])
    got += [everybody.tolist(), swapped.tolist(), some.tolist(), ring.neighbor_allgather({comm.rank: call})]
ring.Free()
for rank in range(comm.size):
    comm.Barrier()
    if rank == comm.rank:
        open(sys.argv[1], "a").write(repr(got) + "\\n")
comm.Barrier()
"""


def run_three(vendor, tmp_path, to, *words):
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = subprocess.run([f"mpirun.{vendor}", "-n", "3", "env", *words, sys.executable, str(tmp_path / "program.py"), str(to)],
                         env=environment_of(vendor, tmp_path), timeout=600, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return to.read_text(), ran.stdout, ran.stderr


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_an_unchanged_program_prints_the_same(vendor, tmp_path):
    if (missing := runs_with(vendor, tmp_path)) is not None:
        pytest.skip(missing)
    library = f"{os.environ['HOSTLESS_TEST_PLUGINS']}/libhostless_preload_{vendor}.so"
    without = run_three(vendor, tmp_path, tmp_path / "without")
    with_it = run_three(vendor, tmp_path, tmp_path / "with", f"LD_PRELOAD={library}", "HOSTLESS_PRELOAD_ROUTE=two_step",
                        "HOSTLESS_PRELOAD_RANKS_PER_NODE=2", "HOSTLESS_PRELOAD_COUNTS=checked",
                        f"HOSTLESS_PRELOAD_REPORT={tmp_path / 'report'}")
    assert with_it[:2] == without[:2] and len(without[0].splitlines()) == 3
    report = (tmp_path / "report").read_text()
    for call in ("allgather", "alltoall", "alltoallv"):  # MPICH has them with counts of 64 bits
        assert f"carried MPI_Neighbor_{call} by two_step: " in report or f"carried MPI_Neighbor_{call}_c by two_step: " in report, report

"""A process of a communicator with a GPU of its own, which fake_gpu.cpp plays: that one's ranks are threads of a process, so
that there is one process here."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = """
import warnings
import cupy
import numpy as np
from mpi4py import MPI
import hostless

comm = MPI.COMM_WORLD
A = hostless.generate("poisson2d", 20)
n = A.shape[0]
b = np.arange(1.0, n + 1)
here = dict(comm=comm, row_range=(0, n), rtol=1e-9, full_output=True)
expected, info, result = hostless.cg(A, b, **here)
assert info == 0 and "gpu" not in result.choices
for more in (dict(), dict(run="stream"), dict(preconditioner="jacobi"), dict(matrix_precision="fp64", slices=0)):
    x, info, there = hostless.cg(A, b, gpus=1, **more, **here)
    assert info == 0 and there.choices["gpu"] and (there.settings["gpus"], there.choices["transport"]) == ("1", "mpi")
    assert "preconditioner" in more or np.array_equal(x, expected)
with hostless.Matrix(A, comm=comm, row_range=(0, n), gpus="all", oversubscribe=True) as matrix:
    assert np.allclose(matrix @ b, A @ b)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x, info = matrix.solve(cupy.asarray(b), rtol=1e-9)
    assert info == 0 and "each process of comm has its own rows" in str(seen[0].message), seen
    assert np.array_equal(x.get(), expected)
print("all good")
"""


def helpers():
    spec = importlib.util.spec_from_file_location("mpi_helpers", Path(__file__).parents[1] / "test_mpi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_a_process_of_a_communicator_has_a_gpu(vendor, tmp_path):
    helpers().check_all_good(vendor, 1, SCRIPT, tmp_path)

"""Matrices of real structures (tests/data/matrices): read as scipy reads them, and solved as its sparse direct solver does."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import hostless

FOLDER = Path(__file__).resolve().parents[1] / "data" / "matrices"
# The largest error of x that rtol = 1e-12 may leave: some times the condition number over that of the diagonally scaled matrix.
LARGEST_ERROR = {"bcsstk13": 1e-7, "bcsstk16": 1e-10}


def files(name):
    path = FOLDER / f"{name}.mtx.gz"
    return path, sp.csc_array(scipy.io.mmread(path))


@pytest.mark.parametrize("name", LARGEST_ERROR)
def test_they_are_read_as_scipy_reads_them(name):
    path, known = files(name)
    b = np.random.default_rng(1).standard_normal(known.shape[0])
    with hostless.Matrix(hostless.read(path)) as matrix:
        assert matrix.shape == known.shape
        # The order of sums is another: each row may differ by the rounding of its products.
        bound = 40 * np.finfo(float).eps * (abs(known) @ abs(b))
        assert (abs(matrix @ b - known @ b) <= bound).all()


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("preconditioner", ["jacobi", "block-jacobi"])
@pytest.mark.parametrize("name", LARGEST_ERROR)
def test_they_are_solved_as_by_a_direct_solver(name, preconditioner, ranks):
    path, known = files(name)
    b = known @ np.random.default_rng(2).standard_normal(known.shape[0])
    expected = splu(known).solve(b)
    x, info, result = hostless.cg(hostless.read(path), b, rtol=1e-12, maxiter=10_000, preconditioner=preconditioner,
                                  ranks=ranks, full_output=True)
    assert info == 0 and result.status == "converged"
    assert np.linalg.norm(b - known @ x) <= 1.01e-12 * np.linalg.norm(b)
    error = x - expected
    assert np.linalg.norm(error) <= LARGEST_ERROR[name] * np.linalg.norm(expected)
    assert error @ (known @ error) <= 1e-10**2 * (expected @ (known @ expected))

"""What the cases of a GPU's memory share: matrices, and solves there and on the processor."""

import cupy
import numpy as np
import pytest
import scipy.sparse as sp

import hostless


def matrix_of(kind):
    if kind == "diagonals":
        return hostless.generate("poisson2d", 21)
    if kind == "narrow":
        return hostless.generate("poisson2d", (4, 120))
    if kind == "blocks":
        return hostless.generate("elasticity-hex8", (4, 5, 6))
    rng = np.random.default_rng(8)
    A = sp.random_array((300, 300), density=0.03, rng=rng)
    A = sp.csr_array(A + A.T + 40 * sp.eye_array(300))
    A.sort_indices()
    return A


def solved(A, b, **how):
    x, info, result = hostless.cg(A, b, full_output=True, rtol=1e-10, **{"gpus": 1, **how})
    assert info == 0
    return x, result


def by_processor(A, b, **how):
    """What all bits are held against: no library of any GPU has a part in it, and the answer is one by scipy's residual."""
    how.pop("format", None)  # one of a GPU
    x, result = solved(A, b, gpus=0, **how)
    assert np.linalg.norm(b - A @ x) <= 1.01e-10 * np.linalg.norm(b)
    assert "gpu" not in str(result.choices.get("device", "")).lower() and result.choices["run"] == "host"
    return x, result


def solved_plainly(A, b):
    return hostless.cg(A, b)[0]  # by the processor


@pytest.fixture(autouse=True)
def nothing_brought():
    cupy.brought.clear()
    yield
    assert "float64" not in cupy.brought and "float32" not in cupy.brought

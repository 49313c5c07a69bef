"""Solves with functions of Python that something raises out of, and their checkpoints."""

import numpy as np
import pytest
import scipy.sparse.linalg as sla

import hostless

METHODS = ("cg", "bicgstab", "minres", "cr")


class Interrupted(Exception):
    pass


@pytest.fixture(scope="module")
def problem():
    A = hostless.generate("poisson2d", 30)
    return A, np.random.default_rng(0).standard_normal(A.shape[0])


def diagonal(A, raises_at=None):
    """M, which raises at its call of that number."""
    calls = [0]

    def apply(r):
        calls[0] += 1
        if calls[0] == raises_at:
            raise Interrupted
        return np.ravel(r) / A.diagonal()

    return sla.LinearOperator(A.shape, matvec=apply, dtype=float)


def raises_at(iteration):
    calls = [0]

    def callback(_):
        calls[0] += 1
        if calls[0] == iteration:
            raise Interrupted

    return callback


def interrupted(A, b, file, **options):
    with pytest.raises(Interrupted):
        hostless.cg(A, b, rtol=1e-10, checkpoint=file, checkpoint_every=10, **options)


def goes_on(A, b, file, **options):
    x, _, whole = hostless.cg(A, b, rtol=1e-10, full_output=True, **options)
    again, _, result = hostless.cg(A, b, rtol=1e-10, full_output=True, resume=file, **options)
    assert (result.status, result.iterations) == ("converged", whole.iterations)
    assert again.tobytes() == x.tobytes()
    return result.to_dict()["resumed_at"]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_the_iteration_that_a_callback_leaves_is_ended(problem, tmp_path, method, ranks):
    A, b = problem
    file = tmp_path / "c"
    interrupted(A, b, file, M=diagonal(A), method=method, ranks=ranks, callback=raises_at(33))
    assert goes_on(A, b, file, M=diagonal(A), method=method, ranks=ranks) >= 33


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_what_a_function_leaves_unanswered_is_not_written(problem, tmp_path, method, ranks):
    A, b = problem
    file = tmp_path / "c"
    interrupted(A, b, file, M=diagonal(A, 87), method=method, ranks=ranks)
    assert goes_on(A, b, file, M=diagonal(A), method=method, ranks=ranks) % 10 == 0


@pytest.mark.parametrize("method", [*METHODS, "pipelined-cg"])
def test_an_operator_is_asked_until_the_iteration_has_ended(problem, tmp_path, method):
    A, b = problem
    apart = sla.LinearOperator(A.shape, matvec=lambda x: A @ np.ravel(x), dtype=float)
    file = tmp_path / "c"
    interrupted(apart, b, file, method=method, callback=raises_at(33))
    assert goes_on(apart, b, file, method=method) >= 33

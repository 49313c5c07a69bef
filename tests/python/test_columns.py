"""Several right-hand sides: solved at once where that can be, each to the bits that it has alone."""

import json
import re

import numpy as np
import pytest

import hostless


@pytest.fixture(scope="module")
def poisson():
    return hostless.generate("poisson7", (9, 8, 7))


def sides(A, count, seed=3):
    return np.random.default_rng(seed).standard_normal((A.shape[0], count))


def expect_as_alone(A, B, x0=None, ranks=1, **how):
    with hostless.Matrix(A, ranks=ranks) as matrix:
        X, info, results = matrix.solve(B, x0, full_output=True, **how)
        infos = []
        for k in range(B.shape[1]):
            x, one, alone = matrix.solve(B[:, k], None if x0 is None else x0[:, k], full_output=True,
                                         **{**how, "rhs_columns": 1})
            infos.append(one)
            assert np.array_equal(X[:, k], x, equal_nan=True)
            assert (results[k].status, results[k].message) == (alone.status, alone.message)
            assert (results[k].iterations, results[k].restarts) == (alone.iterations, alone.restarts)
            assert np.array_equal(results[k].residual_history, alone.residual_history, equal_nan=True)
            assert np.array_equal(results[k].true_residual, alone.true_residual, equal_nan=True)
            assert np.array_equal(results[k].condition_estimate, alone.condition_estimate, equal_nan=True)
    assert X.shape == B.shape
    assert info == next((one for one in infos if one), 0)
    return X, results


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("method", ["cg", "pipelined-cg", "bicgstab", "minres"])
def test_each_column_has_the_bits_that_it_has_alone(poisson, method, ranks):
    _, results = expect_as_alone(poisson, sides(poisson, 3), ranks=ranks, method=method)
    assert [result.settings["rhs_columns"] for result in results] == ["3"] * 3
    assert "columns" not in results[0].to_dict()


def test_more_than_fit_go_in_groups(poisson):
    _, results = expect_as_alone(poisson, sides(poisson, 11))
    assert [result.settings["rhs_columns"] for result in results] == ["8"] * 8 + ["3"] * 3
    _, results = expect_as_alone(poisson, sides(poisson, 5), rhs_columns=2)
    assert [result.settings["rhs_columns"] for result in results] == ["2"] * 4 + ["1"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_orders_guesses_and_types(poisson, order):
    B, x0 = (np.array(sides(poisson, 3, seed), order=order) for seed in (1, 2))
    kept = x0.copy()
    expect_as_alone(poisson, B, x0)
    assert np.array_equal(x0, kept)
    A = poisson.astype(np.float32)
    X, _ = expect_as_alone(A, B.astype(np.float32))
    assert X.dtype == np.float32


def test_shapes(poisson):
    b = sides(poisson, 1)
    X, info, result = hostless.cg(poisson, b, full_output=True)
    assert X.shape == b.shape and info == 0 and result.settings["rhs_columns"] == "1"
    with pytest.raises(hostless.UsageError, match="shape"):
        hostless.cg(poisson, b[:, :0])
    with pytest.raises(hostless.UsageError, match="2 columns of x0 for 3 of b"):
        hostless.cg(poisson, sides(poisson, 3), sides(poisson, 2))


def test_endings_that_differ(poisson):
    B = sides(poisson, 4)
    B[:, 0] = 0
    B[2, 2] = np.nan
    _, results = expect_as_alone(poisson, B)
    assert [result.status for result in results] == ["converged", "converged", "not_finite", "converged"]
    _, results = expect_as_alone(poisson, B, maxiter=3)
    assert [result.status for result in results] == ["converged", "iteration_limit", "not_finite", "iteration_limit"]


@pytest.mark.parametrize("solve", [hostless.cg, hostless.minres, hostless.bicgstab])
def test_every_function(poisson, solve):
    B = sides(poisson, 2)
    X, info = solve(poisson, B, rtol=1e-10)
    assert info == 0 and np.linalg.norm(poisson @ X - B) <= 1e-9 * np.linalg.norm(B)


def test_what_is_of_one_alone_goes_one_by_one(poisson, tmp_path):
    B, seen = sides(poisson, 2), []
    diagonal = poisson.diagonal()
    how = {"callback": seen.append}
    neumann = hostless.generate("poisson2d", 8, boundary="neumann")
    for A, sides_of_it, words in [(poisson, B, how), (poisson, B, {"M": np.diag(1 / diagonal)}),
                                  (neumann, sides(neumann, 2), {"null_space": "constant"})]:
        _, info, results = hostless.cg(A, sides_of_it, full_output=True, **words)
        assert info == 0 and [result.settings["rhs_columns"] for result in results] == ["1", "1"]
        with pytest.raises(hostless.UsageError, match="rhs_columns=2 with .* one right-hand side at a time"):
            hostless.cg(A, sides_of_it, rhs_columns=2, **words)
    assert len(seen) > 2
    with pytest.raises(hostless.UsageError, match="checkpoint or resume with 2 columns"):
        hostless.cg(poisson, B, checkpoint=tmp_path / "c", checkpoint_every=2)


@pytest.mark.parametrize("count", [0, 9])
def test_other_numbers_are_refused(poisson, count):
    with pytest.raises(hostless.UsageError, match=re.escape(f"rhs_columns={count} (a whole number from 1 to 8 is needed)")):
        hostless.cg(poisson, sides(poisson, 2), rhs_columns=count)


def test_an_operator_is_called_for_each(poisson):
    from scipy.sparse.linalg import aslinearoperator

    expect_as_alone(aslinearoperator(poisson), sides(poisson, 3))


def test_times_are_those_of_the_group(poisson):
    _, _, results = hostless.cg(poisson, sides(poisson, 3), full_output=True)
    assert len({json.dumps(result.timings) for result in results}) == 1

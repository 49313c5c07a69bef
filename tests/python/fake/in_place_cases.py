"""Matrices and vectors in the memory of a GPU: solved where they are, with the bits of a solve from the host, and
nothing of them read by the host. The GPU is fake_gpu.cpp, CuPy the module beside this file."""

import warnings

import cupy
import numpy as np
import pytest
import scipy.sparse as sp
from cupyx.scipy.sparse import csr_matrix as gpu_csr

import hostless
from hostless import _core
from whole_solves import by_processor, matrix_of, nothing_brought, solved, solved_plainly  # noqa: F401  (a fixture of every case)

pytestmark = pytest.mark.filterwarnings("error::hostless.HostlessWarning")


@pytest.mark.parametrize("preconditioner", ["none", "jacobi", "block-jacobi"])
@pytest.mark.parametrize("format", ["auto", "diagonals-full", "sell", "csr"])
@pytest.mark.parametrize("kind", ["diagonals", "blocks", "random"])
def test_the_bits_are_those_of_a_solve_from_the_host(kind, format, preconditioner):
    if kind != "diagonals" and format == "diagonals-full":
        format = "sell"
    A = matrix_of(kind)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    how = dict(format=format, preconditioner=preconditioner)
    expected, host = by_processor(A, b, **how)
    copied, _ = solved(A, b, **how)
    assert np.array_equal(copied, expected)
    x, result = solved(gpu_csr(A), cupy.asarray(b), **how)
    assert isinstance(x, cupy.ndarray)
    assert np.array_equal(x.look(), expected)
    assert result.iterations == host.iterations
    assert np.array_equal(result.residual_history, host.residual_history)
    assert result.true_relative_residual == host.true_relative_residual
    assert "in its memory" in result.choices["values"] and "GPU 0" in result.choices["vectors"]
    assert "values" not in host.choices
    assert cupy.brought == {}


@pytest.mark.parametrize("preconditioner", ["none", "block-jacobi"])
@pytest.mark.parametrize("partition", ["contiguous", "metis"])
@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("kind", ["diagonals", "blocks", "random"])
def test_several_gpus(kind, gpus, partition, preconditioner):
    A = matrix_of(kind)
    b, guess = np.random.default_rng(1).standard_normal((2, A.shape[0]))
    how = dict(preconditioner=preconditioner, rtol=1e-10, full_output=True)
    with hostless.Matrix(A, ranks=gpus, partition=partition) as known:  # as many ranks of the processor
        expected, info, host = known.solve(b, guess, **how)
    with hostless.Matrix(gpu_csr(A), gpus=gpus, partition=partition) as matrix:
        x, info_there, result = matrix.solve(cupy.asarray(b), cupy.asarray(guess), **how)
        assert info == info_there == 0
        assert np.array_equal(x.look(), expected)
        assert np.array_equal(result.residual_history, host.residual_history)
        assert np.allclose(matrix @ expected, b, atol=1e-6)  # products outside a solve
        matrix.update_values(gpu_csr(sp.csr_array(4 * A)))
        x, info, result = matrix.solve(cupy.asarray(4 * b), cupy.asarray(guess), **how)
        assert np.array_equal(x.look(), expected)


@pytest.mark.parametrize("gpus", [1, 2])
def test_only_one_of_them_is_on_a_gpu(gpus):
    A = matrix_of("blocks")
    b = np.random.default_rng(9).standard_normal(A.shape[0])
    expected = hostless.cg(A, b, ranks=gpus)[0]
    assert np.array_equal(hostless.cg(A, cupy.asarray(b), gpus=gpus)[0].look(), expected)
    x, info, result = hostless.cg(gpu_csr(A), b, gpus=gpus, full_output=True)
    assert info == 0 and isinstance(x, np.ndarray) and np.array_equal(x, expected)
    assert "values" in result.choices and "vectors" not in result.choices
    x, info, result = hostless.cg(gpu_csr(sp.csr_array(-A)), b, gpus=gpus, full_output=True)
    assert info == -1 and result.true_relative_residual > 0


def test_vectors_of_every_shape_and_type():
    A = matrix_of("random")
    rng = np.random.default_rng(2)
    B = rng.standard_normal((300, 3))
    with hostless.Matrix(gpu_csr(A), gpus=1) as matrix, hostless.Matrix(A) as known:
        X, info = matrix.solve(cupy.asarray(B), rtol=1e-9)
        expected, _ = known.solve(B, rtol=1e-9)
        assert info == 0 and X.shape == (300, 3) and np.array_equal(X.look(), expected)
        wide = cupy.asarray(np.repeat(B[:, 0], 2))
        x, _ = matrix.solve(wide.view_of(0, (300,), (16,)), rtol=1e-9)  # every second one
        assert np.array_equal(x.look(), expected[:, 0])
        back = cupy.asarray(B[::-1, 0].copy())
        x, _ = matrix.solve(back.view_of(299 * 8, (300,), (-8,)), rtol=1e-9)
        assert np.array_equal(x.look(), expected[:, 0])
        x, _ = matrix.solve(cupy.asarray(B[:, :1].astype(np.float32)), rtol=1e-9)
        assert x.shape == (300, 1) and x.dtype == np.float64  # A is float64
        assert np.array_equal(x.look(), known.solve(B[:, :1].astype(np.float32), rtol=1e-9)[0])
        whole = np.arange(300)
        assert np.array_equal(matrix.solve(cupy.asarray(whole))[0].look(), known.solve(whole)[0])
        assert matrix.set_ups == 1 and known.set_ups == 2  # for three columns at once, and for one


def test_guesses():
    A, rng = matrix_of("diagonals"), np.random.default_rng(3)
    b, guess = rng.standard_normal((2, A.shape[0]))
    with hostless.Matrix(gpu_csr(A), gpus=1) as matrix, hostless.Matrix(A) as known:
        for x0 in (guess, "Mb"):
            there = x0 if isinstance(x0, str) else cupy.asarray(x0)
            x, _, result = matrix.solve(cupy.asarray(b), there, full_output=True)
            expected, _, host = known.solve(b, x0, full_output=True)
            assert np.array_equal(x.look(), expected) and result.iterations == host.iterations
        assert np.array_equal(matrix.solve(cupy.asarray(b), guess)[0].look(), known.solve(b, guess)[0])
        there = cupy.asarray(guess)
        x, _ = matrix.solve(cupy.asarray(b), there)
        assert np.array_equal(there.look(), guess)  # not changed
        with pytest.raises(hostless.UsageError, match="2 columns of x0 for 1"):
            matrix.solve(cupy.asarray(b), cupy.asarray(np.stack([guess, guess], axis=1)))
        x, info = matrix.solve(cupy.asarray(np.zeros_like(b)), cupy.asarray(guess))
        assert info == 0 and not x.look().any()


def test_a_guess_that_is_not_finite_is_refused_where_no_product_sees_it():
    A = sp.csr_array((np.array([1.0, 2.0]), np.array([0, 1]), np.array([0, 1, 2, 2])), shape=(3, 3))
    b = np.array([1.0, 2.0, 0.0])
    with hostless.Matrix(gpu_csr(A), gpus=1) as matrix:
        for bad in (np.nan, np.inf):
            x, info, result = matrix.solve(cupy.asarray(b), cupy.asarray(np.array([0, 0, bad])), full_output=True)
            assert result.status == "not_finite" and "the guess" in result.message
        x, info = matrix.solve(cupy.asarray(b), cupy.asarray(np.array([0.0, 0, 7])))
        assert info == 0 and np.array_equal(x.look(), [1, 1, 7])


def test_single_precision_is_read_and_written_as_it_is():
    A = matrix_of("random").astype(np.float32)
    b = np.random.default_rng(4).standard_normal(300).astype(np.float32)
    x, result = hostless.cg(gpu_csr(A), cupy.asarray(b), gpus=1, full_output=True)[::2]
    expected, host = hostless.cg(A, b, full_output=True)[::2]
    assert x.dtype == np.float32 and np.array_equal(x.look(), expected)
    assert np.array_equal(result.residual_history, host.residual_history)


def test_an_answer_in_single_precision_is_judged_as_it_is():
    A = hostless.generate("poisson2d", 40).astype(np.float32)
    b = np.ones(A.shape[0], np.float32)
    with pytest.warns(hostless.HostlessWarning, match="Pass b in fp64"):
        expected, info, host = hostless.cg(A, b, rtol=1e-7, full_output=True)
    with pytest.warns(hostless.HostlessWarning, match="Pass b in fp64"):
        x, info_there, result = hostless.cg(gpu_csr(A), cupy.asarray(b), gpus=1, rtol=1e-7, full_output=True)
    assert np.array_equal(x.look(), expected) and info == info_there > 0
    assert (result.status, result.message) == (host.status, host.message) and result.status == "stagnated"
    assert result.true_relative_residual == host.true_relative_residual > 1e-7
    x, info, result = hostless.cg(gpu_csr(A), cupy.asarray(b.astype(float)), gpus=1, rtol=1e-7, full_output=True)
    assert x.dtype == np.float64 and info == 0 and result.true_relative_residual <= 1e-7


def test_what_is_queued_on_the_producers_stream_comes_first():
    A = matrix_of("diagonals")
    b = np.random.default_rng(5).standard_normal(A.shape[0])
    expected, _ = by_processor(A, b)
    with cupy.cuda.Stream(77):
        there = gpu_csr(sp.csr_array(A))  # its pattern too is only queued ...
        late = cupy.asarray(b)
    assert not late.look().any() and not there.indptr.look().any()  # ... as b is
    with cupy.cuda.Stream(77):
        x, _ = solved(there, late)
    assert np.array_equal(x.look(), expected)


def test_other_values_in_the_same_pattern():
    A = matrix_of("diagonals")
    b = np.random.default_rng(6).standard_normal(A.shape[0])
    shifted = sp.csr_array(A + 0.5 * sp.eye_array(A.shape[0]))
    bent = shifted.copy()
    bent[0, 1] = np.nextafter(bent[0, 1], 0)  # symmetric up to rounding: both triangles must be stored
    with hostless.Matrix(gpu_csr(A), gpus=1) as matrix:
        first = matrix.solve(cupy.asarray(b))[0].look()
        assert np.array_equal(first, solved_plainly(A, b))
        matrix.update_values(gpu_csr(shifted))
        assert np.array_equal(matrix.solve(cupy.asarray(b))[0].look(), solved_plainly(shifted, b))
        with pytest.warns(hostless.HostlessWarning, match="only up to rounding: A\\[(0, 1|1, 0)\\]"):
            matrix.update_values(gpu_csr(bent))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hostless.HostlessWarning)
            assert np.array_equal(matrix.solve(cupy.asarray(b))[0].look(), solved_plainly(bent, b))
        with pytest.raises(hostless.UsageError, match="another pattern"):
            matrix.update_values(gpu_csr(sp.csr_array(sp.eye_array(441))))
        with pytest.raises(hostless.UsageError, match="do not lie in a GPU"):
            matrix.update_values(A)
        matrix.update_values(gpu_csr(A))
        assert np.array_equal(matrix.solve(cupy.asarray(b))[0].look(), first)
        assert matrix.set_ups == 1


def test_matrices_that_must_be_made_ready_on_the_gpu():
    A = matrix_of("random")
    b = np.random.default_rng(7).standard_normal(300)
    expected = solved_plainly(A, b)
    twice = gpu_csr(A)
    half = sp.csr_array((np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape)
    twice.indptr, twice.indices, twice.data = map(cupy.asarray, (half.indptr, half.indices, half.data))
    assert np.array_equal(hostless.cg(twice, cupy.asarray(b), gpus=1)[0].look(), expected)
    assert np.array_equal(hostless.cg(cupy.asarray(A.toarray()), cupy.asarray(b), gpus=1)[0].look(), expected)


@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("kind", [sp.csr_array, gpu_csr])
def test_products_after_new_values_are_of_those(kind, gpus):
    A = matrix_of("diagonals")
    b = np.random.default_rng(9).standard_normal(A.shape[0])
    with hostless.Matrix(kind(A), gpus=gpus) as matrix:
        assert np.allclose(matrix @ b, A @ b)
        matrix.solve(b)
        matrix.update_values(kind(sp.csr_array(3 * A)))
        assert np.allclose(matrix @ b, 3 * (A @ b))
        matrix.update_values(kind(A))
        assert np.array_equal(matrix.solve(b)[0], hostless.cg(A, b, gpus=gpus)[0])


def test_other_shapes_than_the_offsets_say():
    there = gpu_csr(matrix_of("random"))
    there.shape = (299, 299)
    with pytest.raises(hostless.UsageError, match="301 offsets of 299 rows"):
        hostless.Matrix(there, gpus=1)


@pytest.mark.parametrize("spoil, said", [
    (lambda A: A.indices.__setitem__(A.indptr[6] - 1, 300), "row 5: column 300 of 300 rows"),
    (lambda A: A.indices.__setitem__(A.indptr[5], -2), "row 5: column -2 of 300 rows"),
    (lambda A: A.indptr.__setitem__(7, 10**6), "row 6: it begins at entry [0-9]+ and ends at 1000000"),
    (lambda A: A.indptr.__setitem__(7, 0), "row 6: it begins at entry [0-9]+ and ends at 0"),
    (lambda A: A.indptr.__setitem__(0, 1), "row 0: it begins at entry 1"),
])
def test_arrays_that_lead_nowhere(spoil, said):
    A = matrix_of("random").copy()
    spoil(A)
    there = gpu_csr(matrix_of("random"))
    there.indptr, there.indices = cupy.asarray(A.indptr), cupy.asarray(A.indices)
    with pytest.raises(hostless.BadInputError, match=said):
        hostless.Matrix(there, gpus=1)
    with hostless.Matrix(gpu_csr(matrix_of("random")), gpus=1) as matrix:
        with pytest.raises(hostless.BadInputError, match=said):
            matrix.update_values(there)


def test_what_is_not_symmetric_or_not_finite_is_found_there():
    A = matrix_of("random").copy()
    row, column = 5, A.indices[A.indptr[5]]
    A[row, column] += 1.0
    with pytest.raises(hostless.BadInputError, match="the matrix is not symmetric: A"):
        hostless.cg(gpu_csr(A), cupy.asarray(np.ones(300)), gpus=1)
    A = matrix_of("random").copy()
    A[7, 7] = np.nan
    assert hostless.cg(gpu_csr(A), cupy.asarray(np.ones(300)), gpus=1)[1] == -3
    A = matrix_of("random")
    for bad in (np.nan, np.inf):
        b = np.ones(300)
        b[11] = bad
        x, info, result = hostless.cg(gpu_csr(A), cupy.asarray(b), gpus=1, full_output=True)
        assert info == -3 and "right-hand side" in result.message
    for tiny in (1e-170, 1e200):
        ours = hostless.cg(gpu_csr(A), cupy.asarray(np.full(300, tiny)), gpus=1, full_output=True)
        host = hostless.cg(A, np.full(300, tiny), full_output=True)
        assert ours[1] == host[1] != 0 and ours[2].status == host[2].status
    flipped = sp.csr_array(-A)
    for preconditioner in ("none", "jacobi"):
        ours = hostless.cg(gpu_csr(flipped), cupy.asarray(b[:0].tolist() or np.ones(300)), gpus=1, full_output=True,
                           preconditioner=preconditioner)
        host = hostless.cg(flipped, np.ones(300), full_output=True, preconditioner=preconditioner)
        assert (ours[1], ours[2].status, ours[2].message) == (host[1], host[2].status, host[2].message)
        if preconditioner == "none":
            assert ours[2].true_relative_residual == host[2].true_relative_residual


def test_what_goes_through_the_host_says_so():
    A, b = matrix_of("diagonals"), np.ones(441)
    with pytest.warns(hostless.HostlessWarning, match="A goes through the host's memory: the processor solves"):
        with pytest.warns(hostless.HostlessWarning, match="b goes through the host's memory: the processor solves"):
            x, info = hostless.cg(gpu_csr(A), cupy.asarray(b))
    assert info == 0 and isinstance(x, cupy.ndarray)
    cupy.brought.clear()


def test_addresses_that_no_gpu_has():
    with pytest.raises(hostless.UsageError, match="no GPU's memory"):
        _core.GpuArray(np.ones(3).ctypes.data, 3, 1, "float64", None)
    with pytest.raises(hostless.UsageError, match="type int8"):
        _core.GpuArray(0, 3, 1, "int8", None)
    with hostless.Matrix(gpu_csr(matrix_of("diagonals")), gpus=1) as matrix:
        with pytest.raises(hostless.UsageError, match="shape \\(440,\\)"):
            matrix.solve(cupy.asarray(np.ones(440)))
        with pytest.raises(TypeError, match="complex"):
            matrix.solve(cupy.asarray(np.ones(441, complex)))


def test_ranks_that_share_a_gpu_and_runs_that_look_less_often_have_the_same_bits():
    A = matrix_of("diagonals")
    b = np.arange(1.0, A.shape[0] + 1)
    expected = solved(A, b, gpus=0, ranks=2)[0]
    for how in (dict(gpus=1, ranks=2, oversubscribe=True), dict(gpus=2, gpu_transport="peer", run="stream", check_interval=5, tune=False)):
        x, result = solved(A, b, **how)
        assert np.array_equal(x, expected) and all(result.settings[name] == {True: "yes", False: "no"}.get(value, str(value))
                                                   for name, value in how.items() if name != "ranks" and type(value) is not int)
    with pytest.raises(hostless.UsageError, match="2 ranks on 1 GPU"):
        hostless.cg(A, b, gpus=1, ranks=2)


def test_columns_of_the_host_at_once_and_those_of_a_gpu_in_turn():
    A = matrix_of("diagonals")
    B = np.random.default_rng(4).standard_normal((A.shape[0], 3))
    how = dict(rtol=1e-8, full_output=True)
    with hostless.Matrix(gpu_csr(A), gpus=1) as matrix:
        X, info, results = matrix.solve(B, **how)
        assert info == 0 and [one.settings["rhs_columns"] for one in results] == ["3"] * 3
        for k in range(3):
            x, _, alone = matrix.solve(B[:, k], **how)
            assert np.array_equal(X[:, k], x)
            assert np.array_equal(results[k].residual_history, alone.residual_history)
        there, info, results = matrix.solve(cupy.asarray(B), **how)
        assert info == 0 and [one.settings["rhs_columns"] for one in results] == ["1"] * 3
        assert np.array_equal(there.look(), X)
        with pytest.raises(hostless.UsageError, match="rhs_columns=3 with vectors that stay in a GPU's memory"):
            matrix.solve(cupy.asarray(B), rhs_columns=3)

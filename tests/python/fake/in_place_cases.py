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

pytestmark = pytest.mark.filterwarnings("error::hostless.HostlessWarning")


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


@pytest.fixture(autouse=True)
def nothing_brought():
    cupy.brought.clear()
    yield
    assert "float64" not in cupy.brought and "float32" not in cupy.brought


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
        assert matrix.set_ups == known.set_ups == 1


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


def test_single_precision_is_read_and_written_as_it_is():
    A = matrix_of("random").astype(np.float32)
    b = np.random.default_rng(4).standard_normal(300).astype(np.float32)
    x, result = hostless.cg(gpu_csr(A), cupy.asarray(b), gpus=1, full_output=True)[::2]
    expected, host = hostless.cg(A, b, full_output=True)[::2]
    assert x.dtype == np.float32 and np.array_equal(x.look(), expected)
    assert np.array_equal(result.residual_history, host.residual_history)


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


def solved_plainly(A, b):
    return hostless.cg(A, b)[0]  # by the processor


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
        hostless.Matrix(gpu_csr(A), gpus=1)
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


@pytest.fixture
def room():
    """Free memory for copies of what the host has; without it the host lays out."""
    cupy.make_room(1 << 30)
    yield
    cupy.make_room(0)


def bytes_of(A):
    return A.indptr.nbytes + A.indices.nbytes + A.data.nbytes


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("partition", ["contiguous", "auto"])
@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("kind", ["diagonals", "narrow", "blocks", "random"])
def test_rows_of_the_host_are_copied_and_laid_out_there(kind, gpus, partition, index, room):
    A = matrix_of(kind)
    A.indptr, A.indices = A.indptr.astype(index), A.indices.astype(index)
    b, guess = np.random.default_rng(1).standard_normal((2, A.shape[0]))
    how = dict(preconditioner="block-jacobi", rtol=1e-10, full_output=True)
    with hostless.Matrix(A, gpus=gpus, partition=partition) as matrix:
        x, info, result = matrix.solve(b, guess, **how)
        there = matrix.solve(cupy.asarray(b), cupy.asarray(guess), **how)[0].look()
        product = matrix @ b
        copied = not result.choices["partition"].startswith("metis")  # which deals rows of the host out
        assert cupy.room() == (1 << 30) - (bytes_of(A) if copied else 0)
    assert copied == (partition == "contiguous" or gpus == 1 or kind == "narrow")
    assert cupy.room() == 1 << 30, "the copy outlives the matrix"
    cupy.make_room(0)
    with hostless.Matrix(A, gpus=gpus, partition=partition) as known:
        expected, expected_info, host = known.solve(b, guess, **how)
        assert np.array_equal(product, known @ b)
    assert info == expected_info == 0 and isinstance(x, np.ndarray)
    assert np.array_equal(x, expected) and np.array_equal(there, expected)
    assert np.array_equal(result.residual_history, host.residual_history)
    assert f"a copy of the host's ({1e-6 * bytes_of(A):.1f} MB)" in result.choices["values"] if copied else \
        "values" not in result.choices
    assert "values" not in host.choices


@pytest.mark.parametrize("how, copied", [(dict(gpus=3, partition="metis"), False), (dict(gpus=3), False), (dict(gpus=1, partition="metis"), True),
                                         (dict(ranks=2), False)])
def test_what_the_host_deals_out_is_not_copied(how, copied, room):
    A = matrix_of("random")
    with hostless.Matrix(A, **how) as matrix:
        assert (cupy.room() < 1 << 30) == copied
        assert matrix.solve(np.ones(300), rtol=1e-8)[1] == 0


@pytest.mark.parametrize("short, copied", [(1, False), (0, True)])
def test_where_there_is_no_room_the_host_lays_out(short, copied):
    A = matrix_of("diagonals")
    b = np.ones(A.shape[0])
    cupy.make_room(2 * bytes_of(A) + 128 * A.shape[0] - short)
    try:
        before = _core.copied()[0]
        with hostless.Matrix(A, gpus=1) as matrix:
            assert _core.copied()[0] - before == (bytes_of(A) if copied else 0)
            assert ("values" in matrix.solve(b, full_output=True)[2].choices) == copied
    finally:
        cupy.make_room(0)


@pytest.mark.parametrize("looks", range(5))
@pytest.mark.parametrize("gpus, partition", [(1, "auto"), (3, "contiguous")])
def test_where_there_is_no_room_to_work_on_the_copy_the_host_lays_out(gpus, partition, looks, room):
    A = sp.csr_array(matrix_of("random").tocoo())
    A = A if looks else A[::-1, ::-1]  # whose order must be looked at first
    b = np.random.default_rng(1).standard_normal(300)
    try:
        cupy.let_look(looks)
        with hostless.Matrix(A, gpus=gpus, partition=partition) as matrix:
            cupy.let_look(-1)
            assert cupy.room() == 1 << 30, "the copy is still there"
            x, info, result = matrix.solve(b, full_output=True)
            matrix.update_values(3 * A)
            assert np.allclose(matrix @ b, 3 * (A @ b))
    finally:
        cupy.let_look(-1)
    assert info == 0 and "values" not in result.choices
    cupy.make_room(0)
    with hostless.Matrix(A, gpus=gpus, partition=partition) as known:
        assert np.array_equal(x, known.solve(b)[0])


def test_a_matrix_is_converted_once_whether_there_is_room_or_not(monkeypatch):
    A = matrix_of("random")
    b = np.ones(300)
    entry = sp.coo_array(([1.0, 1.0], ([5, 5], [5, 5])), shape=A.shape)  # twice
    given = sp.coo_array((np.concatenate([A.data[::-1], entry.data]),
                          (np.concatenate([A.tocoo().row[::-1], entry.row]),
                           np.concatenate([A.tocoo().col[::-1], entry.col]))), shape=A.shape)
    made = []
    convert = sp.coo_array.tocsr
    monkeypatch.setattr(sp.coo_array, "tocsr", lambda self, *how, **words: made.append(1) or convert(self, *how, **words))
    for free in (0, 1 << 30):
        made.clear()
        cupy.make_room(free)
        x, info = hostless.cg(given, b, gpus=1)
        assert info == 0 and np.allclose(given @ x, b, atol=1e-4) and len(made) == 1
    cupy.make_room(0)
    # Settled in place, unless it is the caller's.
    for kind, type in (("csr", np.float32), ("csr", np.float64), ("coo", np.float64)):
        halves = np.repeat(A.data / 2, 2).astype(type)
        twice = sp.csr_array((halves, np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape).asformat(kind)
        held = twice.data.copy()
        assert hostless.cg(twice, b, gpus=1)[1] == 0
        assert np.array_equal(twice.data, held) and len(held) == 2 * A.nnz


@pytest.mark.parametrize("ranks, said", [(1, "1 rank on 2 GPUs"), (3, "3 ranks on 2 GPUs"), (2, None), (None, None)])
def test_as_many_ranks_as_gpus_or_none_said(ranks, said):
    if said is None:
        with hostless.Matrix(matrix_of("random"), gpus=2, ranks=ranks) as matrix:
            assert matrix.ranks == 2
        return
    with pytest.raises(hostless.UsageError, match=said):
        hostless.Matrix(matrix_of("random"), gpus=2, ranks=ranks)


def test_rows_that_nobody_has_sorted_are_sorted_by_the_host(room):
    A = matrix_of("random")
    b = np.random.default_rng(7).standard_normal(300)
    expected = solved_plainly(A, b)
    half = sp.csr_array((np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape)
    backwards = np.lexsort((-A.indices, np.repeat(np.arange(300), np.diff(A.indptr))))
    back = sp.csr_array((A.data[backwards], A.indices[backwards], A.indptr), shape=A.shape)
    for given in (half, back):
        arrays = [array.copy() for array in (given.indptr, given.indices, given.data)]
        before = _core.copied()[0]
        assert np.array_equal(hostless.cg(given, b, gpus=1)[0], expected)
        assert _core.copied()[0] - before > bytes_of(given) + bytes_of(A)  # as they were, and sorted
        for was, now in zip(arrays, (given.indptr, given.indices, given.data)):
            assert np.array_equal(was, now)
    for given in (A.tocoo(), A.toarray(), A):
        before = _core.copied()[0]
        assert np.array_equal(hostless.cg(given, b, gpus=1)[0], expected)
        assert bytes_of(A) <= _core.copied()[0] - before < 2 * bytes_of(A)


def test_new_values_of_a_copied_matrix(room):
    A = matrix_of("diagonals")
    b = np.random.default_rng(6).standard_normal(A.shape[0])
    bent = A.copy()
    bent[0, 1] = np.nextafter(bent[0, 1], 0)
    with hostless.Matrix(A, gpus=1) as matrix:
        first = matrix.solve(b)[0]
        matrix.update_values(3 * A)
        assert np.array_equal(matrix.solve(b)[0], solved_plainly(3 * A, b))
        assert np.allclose(matrix @ b, 3 * (A @ b))
        with pytest.warns(hostless.HostlessWarning, match="only up to rounding"):
            matrix.update_values(bent)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hostless.HostlessWarning)
            assert np.array_equal(matrix.solve(b)[0], solved_plainly(bent, b))
        for other in (sp.csr_array(sp.eye_array(441)), sp.csr_array((441, 441))):
            with pytest.raises(hostless.UsageError, match="another pattern"):
                matrix.update_values(other)
        matrix.update_values(gpu_csr(A))  # a caller's own values on a GPU serve as well
        x, _, result = matrix.solve(b, full_output=True)
        assert np.array_equal(x, first)
        assert cupy.room() == 1 << 30 and "a copy" not in result.choices["values"]
        matrix.update_values(A)
        cupy.make_room(0)
        with pytest.raises(hostless.MachineError, match="no memory left"):
            matrix.update_values(3 * A)
        assert np.array_equal(matrix.solve(b)[0], first)  # the old values
        assert matrix.set_ups == 1
        assert np.array_equal(matrix.solve(b, preconditioner="jacobi")[0], hostless.cg(A, b, preconditioner="jacobi")[0])
        cupy.make_room(1 << 30)


def test_arrays_of_the_host_that_lead_nowhere(room):
    A = matrix_of("random").copy()
    A.indices[A.indptr[6] - 1] = 300
    A.has_canonical_format = A.has_sorted_indices = True
    with pytest.raises(hostless.BadInputError, match="row 5: column 300 of 300 rows"):
        hostless.Matrix(A, gpus=1)
    A = matrix_of("random").copy()
    first = A.indptr[5]
    A.indices[first:first + 2] = A.indices[first:first + 2][::-1].copy()
    A.has_canonical_format = A.has_sorted_indices = True
    with pytest.raises(hostless.BadInputError, match="do not rise inside each row although A says"):
        hostless.Matrix(A, gpus=1)
    A = matrix_of("random").copy()
    A.data[A.indptr[5]] += 1
    with pytest.raises(hostless.BadInputError, match="not symmetric"):
        hostless.Matrix(A, gpus=1)


def test_nothing_is_kept_of_rows_of_the_host(room):
    A = matrix_of("random").copy()
    b = np.random.default_rng(3).standard_normal(300)
    with hostless.Matrix(A, gpus=1) as matrix:
        expected = solved_plainly(A, b)
        A.data[:] = np.nan  # neither now nor when another solver is made
        assert np.array_equal(matrix.solve(b)[0], expected)
        assert matrix.solve(b, preconditioner="jacobi")[1] == 0

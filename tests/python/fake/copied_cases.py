"""Matrices of the host that are copied to a GPU which has room, and laid out there, with the bits of a solve from the
host. The GPU is fake_gpu.cpp, CuPy the module beside this file."""

import warnings

import cupy
import numpy as np
import pytest
import scipy.sparse as sp
from cupyx.scipy.sparse import csr_matrix as gpu_csr

import hostless
from hostless import _core
from whole_solves import matrix_of, nothing_brought, solved_plainly  # noqa: F401  (a fixture of every case)

pytestmark = pytest.mark.filterwarnings("error::hostless.HostlessWarning")

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
    with hostless.Matrix(A, gpus=1) as matrix, pytest.raises(hostless.BadInputError, match="not symmetric"):
        matrix.solve(np.ones(A.shape[0]))


def test_nothing_is_kept_of_rows_of_the_host(room):
    A = matrix_of("random").copy()
    b = np.random.default_rng(3).standard_normal(300)
    with hostless.Matrix(A, gpus=1) as matrix:
        expected = solved_plainly(A, b)
        A.data[:] = np.nan  # neither now nor when another solver is made
        assert np.array_equal(matrix.solve(b)[0], expected)
        assert matrix.solve(b, preconditioner="jacobi")[1] == 0

"""Matrices and right-hand sides of every kind: the same answer as scipy's, or a clear exception."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.sparse.linalg import cg as scipy_cg

import hostless
from systems import random_spd, shuffled_csr

SYSTEMS = 50


def wide(matrix):
    """With 64-bit indices."""
    matrix = sp.csr_array(matrix)
    return sp.csr_array((matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)),
                        shape=matrix.shape)


KINDS = {
    "csr": lambda dense, rng: sp.csr_matrix(dense),
    "csr_array": lambda dense, rng: sp.csr_array(dense),
    "csc": lambda dense, rng: sp.csc_matrix(dense),
    "coo": lambda dense, rng: sp.coo_array(dense),
    "bsr": lambda dense, rng: sp.bsr_array(dense),
    "dia": lambda dense, rng: sp.dia_array(dense),
    "lil": lambda dense, rng: sp.lil_array(dense),
    "dok": lambda dense, rng: sp.dok_array(dense),
    "int64-indices": lambda dense, rng: wide(dense),
    "unsorted-duplicates": shuffled_csr,
    "float32": lambda dense, rng: sp.csr_array(dense.astype(np.float32)),
    "longdouble": lambda dense, rng: sp.csr_array(dense.astype(np.longdouble)),
    "int8": lambda dense, rng: sp.coo_array(dense.astype(np.int8)),
    "int32": lambda dense, rng: sp.csr_array(dense.astype(np.int32)),
    "int64": lambda dense, rng: sp.csc_array(dense.astype(np.int64)),
    "uint16-diagonal": lambda dense, rng: sp.csr_array(np.diag(np.diag(dense)).astype(np.uint16)),
    "bool-diagonal": lambda dense, rng: sp.csr_array(np.eye(len(dense), dtype=bool)),
    "numpy": lambda dense, rng: dense.copy(),
    "numpy-fortran": lambda dense, rng: np.asfortranarray(dense),
    "numpy-float32": lambda dense, rng: dense.astype(np.float32),
    "numpy-strided": lambda dense, rng: np.repeat(np.repeat(dense, 2, axis=0), 3, axis=1)[::2, ::3],
    "np.matrix": lambda dense, rng: np.matrix(dense),
    "operator": lambda dense, rng: LinearOperator(dense.shape, matvec=lambda x: dense @ x, dtype=float),
    "aslinearoperator": lambda dense, rng: aslinearoperator(sp.csr_array(dense)),
    "hostless.Matrix": lambda dense, rng: hostless.Matrix(dense),
}
WHOLE = ("int8", "int32", "int64", "uint16-diagonal")


def known(matrix):
    """As something that scipy's cg multiplies with, in float64."""
    if isinstance(matrix, LinearOperator):
        return matrix
    return matrix.astype(np.float64) if sp.issparse(matrix) else np.asarray(matrix, dtype=np.float64)


def right_hand_side(rng, rows, k):
    b = rng.standard_normal(rows)
    if k % 5 == 1:
        return np.repeat(b, 2)[::2]  # not contiguous
    if k % 5 == 2:
        return b[::-1]
    if k % 5 == 3:
        b.setflags(write=False)
    if k % 5 == 4:
        return b.astype(np.float64)[:, np.newaxis]
    return b


@pytest.mark.filterwarnings("ignore::hostless.HostlessWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_fifty_random_systems(kind):
    rng = np.random.default_rng(sum(map(ord, kind)))
    for k in range(SYSTEMS):
        rows = 1 if k == 0 else int(rng.integers(1, 40))
        dense = random_spd(rng, rows, density=rng.uniform(0, 0.5), whole=kind in WHOLE)
        matrix = KINDS[kind](dense, rng)
        b = right_hand_side(rng, rows, k)
        expected, _ = scipy_cg(known(matrix), b, rtol=1e-13)
        ranks = 1 if "perator" in kind or "Matrix" in kind else 1 + k % 3
        x, info = hostless.cg(matrix, b, rtol=1e-10, ranks=ranks)
        assert info == 0 and x.shape == b.shape and x.dtype == np.float64
        product = known(matrix) @ np.ravel(x)
        assert np.linalg.norm(product - np.ravel(b)) <= 1.001e-10 * np.linalg.norm(b)
        # |x - x*| <= |A^-1| rtol |b|, and every eigenvalue is 1 or more.
        assert np.linalg.norm(np.ravel(x) - np.ravel(expected)) <= 2e-10 * np.linalg.norm(b)
        if kind == "hostless.Matrix":
            matrix.close()


@pytest.mark.parametrize("ranks", [1, 3])
def test_empty_rows(ranks):
    rng = np.random.default_rng(5)
    for _ in range(SYSTEMS):
        dense = random_spd(rng, 30)
        empty = rng.choice(30, size=5, replace=False)
        dense[empty], dense[:, empty] = 0, 0
        b = rng.standard_normal(30)
        b[empty] = 0
        x, info = hostless.cg(sp.csr_array(dense), b, rtol=1e-10, ranks=ranks)
        assert info == 0 and np.all(x[empty] == 0)
        assert np.linalg.norm(dense @ x - b) <= 1.001e-10 * np.linalg.norm(b)


def test_the_matrix_is_left_as_it_is():
    rng = np.random.default_rng(6)
    matrix = shuffled_csr(random_spd(rng, 20), rng)
    before = matrix.copy()
    hostless.cg(matrix, np.ones(20))
    assert np.array_equal(matrix.indices, before.indices) and np.array_equal(matrix.data, before.data)
    assert not matrix.has_canonical_format


def test_int8_parts_do_not_wrap_around():
    matrix = sp.coo_array((np.array([100, 100], dtype=np.int8), ([0, 0], [0, 0])), shape=(1, 1))
    x, info = hostless.cg(matrix, np.array([200.0]))
    assert info == 0 and x[0] == pytest.approx(1.0)


@pytest.mark.parametrize("form, index", [("csc", 9), ("csc", -1), ("coo", 9), ("coo", -1)])
def test_indices_that_lie_outside(form, index):
    """Before scipy converts them, which writes where they say."""
    matrix = sp.eye_array(9, format=form)
    if form == "csc":
        matrix.indices[4] = index
    else:
        matrix.row[4] = index
    with pytest.raises(hostless.BadInputError, match=f"entry 4 is in row {index} "):
        hostless.cg(matrix, np.ones(9))


def test_masks_are_refused():
    hidden = np.ma.masked_array(np.ones(4), [False, True, False, False])
    for A, b in ((np.ma.masked_array(np.eye(4), np.zeros((4, 4), bool)), np.ones(4)), (np.eye(4), hidden)):
        with pytest.raises(hostless.UsageError, match="mask"):
            hostless.cg(A, b)


def compressed_rows(dense, kind):
    """As cupyx has them: a GPU's matrix by duck typing."""
    rows = sp.csr_array(dense)

    class OnDevice:
        def __init__(self, array):
            self.array = array

        def get(self):
            return self.array.copy()

    OnDevice.__module__ = "cupy"

    class Compressed:
        shape = rows.shape
        indptr, indices, data = OnDevice(rows.indptr), OnDevice(rows.indices), OnDevice(rows.data.astype(kind))

        def tocsr(self):
            return self

    Compressed.__module__ = "cupyx.scipy.sparse"
    return Compressed()


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_arrays_of_a_gpu_come_by_their_get(kind):
    rng = np.random.default_rng(7)
    dense = random_spd(rng, 25).astype(kind).astype(float)
    x, info = hostless.cg(compressed_rows(dense, kind), np.ones(25), rtol=1e-10)
    assert info == 0 and np.allclose(dense @ x, 1, atol=1e-8)


# ---------------------------------------------------------------- right-hand sides and answers
def system():
    return sp.csr_array(random_spd(np.random.default_rng(1), 12))


@pytest.mark.parametrize("single_A", [False, True])
@pytest.mark.parametrize("single_b", [False, True])
def test_float32_comes_back_only_where_both_are(single_A, single_b):
    matrix = system().astype(np.float32 if single_A else np.float64)
    b = np.ones(12, dtype=np.float32 if single_b else np.float64)
    x, info = hostless.cg(matrix, b)
    expected, _ = scipy_cg(matrix, b)
    assert info == 0 and x.dtype == expected.dtype


def test_lists_and_memory():
    x, _ = hostless.cg([[2.0, 1.0], [1.0, 3.0]], [3, 4])
    assert isinstance(x, np.ndarray) and np.allclose(x, [1, 1])
    x, _ = hostless.cg(np.diag([2.0, 4.0]), memoryview(np.array([2.0, 4.0])))
    assert np.allclose(x, 1)


class Foreign:
    """An array of another library: DLPack and the array API's namespace, nothing else."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def __dlpack__(self, **how):
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __array_namespace__(self):
        class Space:
            asarray = staticmethod(Foreign)
        return Space


def test_the_answer_is_of_the_kind_of_b():
    x, info = hostless.cg(system(), Foreign(np.ones((12, 1))))
    assert info == 0 and type(x) is Foreign and x.shape == (12, 1)
    assert np.allclose(system() @ x.values, 1, atol=1e-4)


class FakeTensor:
    """What hostless asks of a torch tensor of a GPU, without a GPU; real ones of the processor: arrays/real_arrays_cases.py."""

    def __init__(self, values, device="cpu"):
        self.values, self.device = np.asarray(values), device
        self.dtype = f"torch.{self.values.dtype}"
        self.layout = "torch.strided"

    def detach(self):
        return self

    resolve_conj = resolve_neg = coalesce = detach

    @property
    def is_cuda(self):
        return self.device.startswith("cuda")

    def cpu(self):
        return type(self)(self.values)

    def to(self, device):
        return type(self)(self.values, device)

    def numpy(self):
        assert self.device == "cpu", "torch refuses tensors of a GPU"
        return self.values


class FakeSparse(FakeTensor):
    def __init__(self, rows, layout):
        self.rows, self.shape, self.device, self.layout = rows, rows.shape, "cuda:0", layout

    def to_sparse_csr(self):
        return FakeSparse(self.rows, "torch.sparse_csr")

    def crow_indices(self):
        assert self.layout == "torch.sparse_csr"
        return FakeTensor(self.rows.indptr, "cuda:0")

    def col_indices(self):
        return FakeTensor(self.rows.indices, "cuda:0")

    def values(self):
        return FakeTensor(self.rows.data, "cuda:0")


@pytest.mark.parametrize("layout", ["torch.sparse_csr", "torch.sparse_coo"])
def test_tensors_of_a_device_come_back_there(monkeypatch, layout):
    import sys
    import types

    fake = types.ModuleType("torch")
    fake.from_numpy = FakeTensor
    monkeypatch.setitem(sys.modules, "torch", fake)
    for kind in (FakeTensor, FakeSparse):
        monkeypatch.setattr(kind, "__module__", "torch")
    with pytest.warns(hostless.HostlessWarning, match="through the host's memory: the processor solves"):
        x, info = hostless.cg(FakeSparse(system(), layout), FakeTensor(np.ones((12, 1)), "cuda:1"), rtol=1e-10)
    assert info == 0 and isinstance(x, FakeTensor) and x.device == "cuda:1" and x.values.shape == (12, 1)
    assert np.allclose(system() @ x.values, 1)


def test_several_right_hand_sides():
    b = np.random.default_rng(2).standard_normal((12, 4))
    x, info, results = hostless.cg(system(), b, rtol=1e-10, full_output=True)
    assert info == 0 and x.shape == (12, 4) and len(results) == 4
    assert np.allclose(system() @ x, b)
    alone, _ = hostless.cg(system(), b[:, 2].copy(), rtol=1e-10)
    assert np.array_equal(x[:, 2], alone)


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize("what", ["A", "b", "x0", "M"])
def test_complex_numbers_are_refused(what):
    given = dict(A=system(), b=np.ones(12), x0=np.zeros(12), M=sp.eye_array(12))
    given[what] = given[what] * (1 + 0j)
    with pytest.raises(TypeError, match="complex"):
        hostless.cg(given["A"], given["b"], given["x0"], M=given["M"])


@pytest.mark.parametrize("A, error, text", [
    (np.ones((3, 4)), ValueError, "square"),
    (np.ones(4), ValueError, r"A has 1 dimension \("),
    (np.array([["a"]]), TypeError, "real numbers"),
    ("matrix", TypeError, "scipy.sparse"),
    (7, TypeError, "scipy.sparse"),
    (None, TypeError, "scipy.sparse"),
])
def test_what_is_no_matrix_is_refused(A, error, text):
    with pytest.raises(error, match=text):
        hostless.cg(A, np.ones(4))


class Op:
    """What no matrix is, with a vowel in front."""


def test_what_is_named_is_what_was_passed():
    from scipy.sparse.linalg import LinearOperator, spilu

    A, b = system(), np.ones(12)
    ilu = spilu(A.tocsc())
    for M, text in ((ilu, r"M is a SuperLU \(a matrix or a LinearOperator is meant\)\. Pass scipy.sparse.linalg.LinearOperator\(A.shape, M.solve\)\.$"),
                    (Op(), "M is an Op "), (np.ones(12).tolist(), r"M has 1 dimension \(")):
        with pytest.raises((TypeError, hostless.UsageError), match=text):
            hostless.cg(A, b, M=M)
    assert hostless.cg(A, b, M=LinearOperator(A.shape, ilu.solve))[1] == 0  # as it says
    with pytest.raises(TypeError, match=r"A is an Op \(hostless takes scipy.sparse, .* LinearOperators and hostless.Matrix\)"):
        hostless.cg(Op(), b)
    with hostless.Matrix(A) as matrix:
        with pytest.raises(TypeError, match=r"what to write is a Matrix \(hostless takes scipy.sparse, NumPy, torch and cupyx matrices\)\."):
            hostless.write("q.mtx", matrix)


def test_a_preconditioner_that_gives_nan_is_named():
    from scipy.sparse.linalg import LinearOperator

    x, info, result = hostless.cg(system(), np.ones(12), M=LinearOperator((12, 12), lambda r: r * np.nan), full_output=True)
    assert info != 0 and "what the preconditioner function gave" in result.message, result.message
    bad = system().astype(float).tolil()
    bad[3, 3] = np.inf
    result = hostless.cg(bad.tocsr(), np.ones(12), full_output=True)[2]
    assert result.status == "not_finite" and "the preconditioner function" not in result.message, result.message


def test_messages_of_a_result_say_options_as_python_has_them():
    A = hostless.generate("poisson2d", 8, boundary="neumann")
    result = hostless.cg(A, np.ones(64), full_output=True)[2]
    assert "Try null space `constant` (null_space='constant')." in result.message, result.message
    assert result.to_dict()["message"] == result.message
    columns = hostless.cg(A, np.ones((64, 2)), full_output=True)[2]
    assert all("null_space='constant'" in one.message and "--" not in one.message for one in columns)


def test_one_of_a_thing_is_no_plural():
    u = np.zeros((4, 4))
    step = hostless.Stencil.named("heat").run(u, 1, ranks=1)
    assert "after 1 step, " in repr(step) and repr(step).endswith("on 1 rank>"), step
    with pytest.raises(hostless.UsageError, match="arrays of 1 axis for heat"):
        hostless.Stencil.named("heat").run(np.zeros(4), 1)
    with pytest.raises(TypeError, match="is an int "):
        hostless.Stencil.named("heat").run(7, 1)
    with hostless.Matrix(np.eye(1)) as matrix:
        assert repr(matrix) == "<hostless.Matrix 1 x 1, 1 entry, 1 rank>"
        assert "after 1 iteration, " in repr(matrix.solve(np.ones(1), full_output=True)[2])


@pytest.mark.parametrize("b", [np.ones(11), np.ones((12, 0)), np.ones((1, 12)), np.ones((12, 1, 1)), 1.0])
def test_wrong_shapes_of_b_are_refused(b):
    with pytest.raises(hostless.UsageError, match=r"b has the shape"):
        hostless.cg(system(), b)


def test_not_symmetric_is_refused_with_its_place():
    dense = system().toarray()
    dense[3, 7] += 0.5
    for matrix in (dense, sp.csr_array(dense)):
        with pytest.raises(hostless.BadInputError, match=r"not symmetric: A\[\d, \d\]"):
            hostless.cg(matrix, np.ones(12))
    huge = sp.csr_array([[1e308, 1e308], [-1e308, 1e308]])  # whose difference overflows
    with pytest.raises(hostless.BadInputError, match="not symmetric"):
        hostless.cg(huge, np.ones(2))
    lower = sp.csr_array(np.tril(system().toarray()))
    with pytest.raises(ValueError, match="not symmetric"):
        hostless.cg(lower, np.ones(12))
    operator = LinearOperator((12, 12), matvec=lambda x: dense @ x, dtype=float)
    with pytest.raises(hostless.BadInputError, match="not symmetric"):
        hostless.cg(operator, np.ones(12))


def test_denormal_matrices_are_symmetric_too():
    """Products of theirs are off by as much as they are large: it is no asymmetry."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        dense = rng.random((12, 12))
        dense = (dense + dense.T + 10 * np.eye(12)) * 1e-320
        for matrix in (dense, LinearOperator((12, 12), matvec=lambda x, dense=dense: dense @ x, dtype=float)):
            hostless.cg(matrix, np.full(12, 1e-20), maxiter=1)
    dense[3, 7] *= 2
    with pytest.raises(hostless.BadInputError, match="not symmetric"):
        hostless.cg(LinearOperator((12, 12), matvec=lambda x: dense @ x, dtype=float), np.ones(12))
    dense[3, 7], dense[7, 3] = 1e-323, 5e-324
    with pytest.warns(hostless.HostlessWarning, match="up to rounding"):
        hostless.cg(dense, np.full(12, 1e-20), maxiter=1)


def test_rounding_is_accepted_with_a_warning():
    dense = system().toarray()
    dense[3, 7] = 1.0
    dense[7, 3] = np.nextafter(1.0, 2.0)
    with pytest.warns(hostless.HostlessWarning, match="up to rounding") as seen:
        _, info = hostless.cg(dense, np.ones(12))
    assert info == 0 and len(seen) == 1 and seen[0].filename == __file__


def test_whole_numbers_too_large_are_warned_of():
    matrix = sp.csr_array(np.array([[2**60 + 1]], dtype=np.int64))
    with pytest.warns(hostless.HostlessWarning, match="2\\^53"):
        hostless.cg(matrix, np.ones(1))


# ---------------------------------------------------------------- x in float32
def single_poisson():
    A = hostless.generate("poisson2d", 60).astype(np.float32)
    return A, np.ones(A.shape[0], dtype=np.float32)


def relative_residual(A, b, x):
    return np.linalg.norm(b - A.astype(np.float64) @ x.astype(np.float64)) / np.linalg.norm(b.astype(np.float64))


@pytest.mark.parametrize("solve", [hostless.cg, hostless.minres, hostless.bicgstab])
@pytest.mark.parametrize("ranks", [1, 2])
def test_an_answer_in_float32_is_judged_as_it_is_handed_back(solve, ranks):
    A, b = single_poisson()
    with pytest.warns(hostless.HostlessWarning, match="float32.*Pass b in fp64"):
        x, info, result = solve(A, b, rtol=1e-7, ranks=ranks, full_output=True)
    assert x.dtype == np.float32 and info > 0
    assert result.status == "stagnated" and "rounded to fp32" in result.message
    assert relative_residual(A, b, x) > 1e-7
    assert np.isclose(result.true_relative_residual, relative_residual(A, b, x), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info, result = solve(A, b, rtol=1e-2, ranks=ranks, full_output=True)  # which float32 holds
        assert x.dtype == np.float32 and info == 0 and relative_residual(A, b, x) <= 1e-2
        assert np.isclose(result.true_relative_residual, relative_residual(A, b, x), rtol=1e-6)
        x, info = solve(A, b.astype(np.float64), rtol=1e-7, ranks=ranks)
        assert x.dtype == np.float64 and info == 0 and relative_residual(A, b, x) <= 1e-7


def test_each_column_in_float32_is_judged_by_itself():
    A, b = single_poisson()
    easy = np.zeros_like(b)
    easy[0] = 1  # near the border, where the condition tells little
    with hostless.Matrix(A) as matrix:
        with pytest.warns(hostless.HostlessWarning, match="Pass b in fp64"):
            x, info, (first, second) = matrix.solve(np.stack([easy, b], axis=1), rtol=3e-6, full_output=True)
        assert (first.status, second.status) == ("converged", "stagnated") and info == max(second.iterations, 1)
        for k, (side, result) in enumerate(((easy, first), (b, second))):
            assert np.isclose(result.true_relative_residual, relative_residual(A, side, x[:, k]), rtol=1e-6)
        made = matrix.set_ups
        _, info, result = matrix.solve(np.stack([easy, b], axis=1).astype(np.float64), rtol=3e-6, full_output=True)
        assert info == 0 and matrix.set_ups == made  # the type of b makes nothing anew


def test_an_answer_in_float32_that_had_not_converged_keeps_its_ending():
    A, b = single_poisson()
    x, info, result = hostless.cg(A, b, maxiter=3, full_output=True)
    assert (result.status, info) == ("iteration_limit", 3)
    assert np.isclose(result.true_relative_residual, relative_residual(A, b, x), rtol=1e-6)


def test_offsets_that_rise_too_far_and_fall_are_refused_before_anything_is_read():
    """The last offset fits; the one before it points far behind the columns."""
    offsets, columns, values = np.array([0, 10**12, 3]), np.arange(3), np.ones(3)
    with pytest.raises(hostless.BadInputError, match="offsets fall behind row 1"):
        hostless._core.mirror(offsets, columns, values)


@pytest.mark.parametrize("row", [0, 40_000, 99_999])
def test_the_first_wrong_column_of_a_long_matrix_is_named(row):
    matrix = hostless.generate("poisson1d", 100_000)
    columns = matrix.indices.copy()
    columns[matrix.indptr[row]:] = 7  # and everything behind it
    with pytest.raises(hostless.BadInputError, match=f"in row {row} "):
        hostless._core.mirror(matrix.indptr, columns, matrix.data)

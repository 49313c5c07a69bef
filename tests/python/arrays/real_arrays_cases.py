"""Arrays of real torch, Numba and Array API libraries (tools/torch_for_tests.py brings them), on the processor."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import hostless

BROUGHT_BY = "TORCH=on tools/setup.sh test brings it"
torch = pytest.importorskip("torch", reason=f"no torch: {BROUGHT_BY}")
numba = pytest.importorskip("numba", reason=f"no Numba: {BROUGHT_BY}")
array_api_strict = pytest.importorskip("array_api_strict", reason=f"no array_api_strict: {BROUGHT_BY}")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse (CS|invariant):UserWarning", "error::hostless.HostlessWarning")

ROWS = 60


def dense(seed=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(ROWS, ROWS, dtype=torch.float64, generator=generator)
    A = torch.where(A.abs() > 1.2, A, torch.zeros_like(A))
    return (A + A.T + 40 * torch.eye(ROWS, dtype=torch.float64)).to(dtype)


def right_hand_side(*shape, seed=6):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def solved(A, b, **how):
    x, info = hostless.cg(A, b, rtol=1e-12, **how)
    assert info == 0
    return x


LAYOUTS = {
    "dense": lambda A: A,
    "csr": lambda A: A.to_sparse_csr(),
    "csr of 32 bits": lambda A: (lambda S: torch.sparse_csr_tensor(S.crow_indices().int(), S.col_indices().int(), S.values(),
                                                                   S.shape))(A.to_sparse_csr()),
    "csc": lambda A: A.to_sparse_csc(),
    "bsr": lambda A: A.to_sparse_bsr((2, 2)),
    "bsc": lambda A: A.to_sparse_bsc((2, 2)),
    "coo": lambda A: A.to_sparse_coo(),
    "coo, not coalesced": lambda A: (lambda S: torch.sparse_coo_tensor(
        torch.cat([S.indices()] * 2, dim=1), torch.cat([S.values() / 2] * 2), S.shape))(A.to_sparse_coo()),
    "transposed": lambda A: A.T.contiguous().T,
    "part of a larger one": lambda A: torch.nn.functional.pad(A, (3, 4, 1, 2))[1:-2, 3:-4],
    "with a gradient": lambda A: A.clone().requires_grad_(),
    "csr with a gradient": lambda A: A.to_sparse_csr().requires_grad_(),
    "parameter": torch.nn.Parameter,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrices_of_torch(layout):
    A, b = dense(), right_hand_side(ROWS)
    x = solved(LAYOUTS[layout](A), b)
    assert type(x) is torch.Tensor and x.dtype == torch.float64 and x.shape == b.shape and not x.requires_grad
    assert torch.allclose(x, torch.linalg.solve(A, b), rtol=1e-9, atol=1e-12)


VECTORS = {
    "every second": lambda b: torch.repeat_interleave(b, 2)[::2],
    "a column": lambda b: torch.stack([b, -b], dim=1)[:, 0],
    "with a gradient": lambda b: b.clone().requires_grad_(),
    "computed with a gradient": lambda b: 1.0 * b.clone().requires_grad_(),
    "negated when it is read": lambda b: torch.complex(b, -b).conj().imag,
}


@pytest.mark.parametrize("kind", VECTORS)
def test_vectors_of_torch(kind):
    A, b = dense(), right_hand_side(ROWS)
    given = VECTORS[kind](b)
    assert kind != "negated when it is read" or given.is_neg()
    kept = given.detach().clone()
    expected = torch.linalg.solve(A, b)
    x = solved(A, given)
    assert isinstance(x, torch.Tensor) and not x.requires_grad
    assert torch.allclose(x, expected, rtol=1e-9, atol=1e-12)
    again = solved(A, b, x0=VECTORS[kind](expected))
    assert torch.allclose(again, expected, rtol=1e-9, atol=1e-12)
    assert torch.equal(given.detach(), kept)  # nothing of the caller's was written to


def test_an_expanded_vector_and_several():
    A = dense()
    x = solved(A, torch.ones((), dtype=torch.float64).expand(ROWS))
    assert torch.allclose(A @ x, torch.ones(ROWS, dtype=torch.float64), atol=1e-9)
    B = right_hand_side(3, ROWS).T  # columns that do not lie together
    X = solved(A.to_sparse_csr(), B)
    assert X.shape == (ROWS, 3) and torch.allclose(X, torch.linalg.solve(A, B), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_single_precision_stays(sparse):
    A, b = dense(dtype=torch.float32), right_hand_side(ROWS).float()
    x, info = hostless.cg(A.to_sparse_csr() if sparse else A, b, rtol=1e-5)
    assert info == 0 and x.dtype == torch.float32
    assert torch.allclose(x.double(), torch.linalg.solve(A.double(), b.double()), rtol=1e-3, atol=1e-5)
    x, info = hostless.cg(dense(), b, rtol=1e-12)  # A is double
    assert info == 0 and x.dtype == torch.float64


def test_half_precision_is_read():
    A, b = dense().round(), right_hand_side(ROWS).bfloat16()
    x, info = hostless.cg(A.bfloat16(), b, rtol=1e-6)
    assert info == 0 and x.dtype == torch.float32
    assert torch.allclose(x.double(), torch.linalg.solve(A, b.double()), rtol=1e-4, atol=1e-6)


def test_what_is_refused():
    A, b = dense(), right_hand_side(ROWS)
    with pytest.raises(TypeError, match="complex"):
        hostless.cg(A.to(torch.complex128), b)
    with pytest.raises(TypeError, match="complex"):
        hostless.cg(A, b.to(torch.complex128))
    with pytest.raises(hostless.UsageError, match=r"\(59,\)"):
        hostless.cg(A, b[:-1])
    with pytest.raises(hostless.UsageError):
        hostless.cg(A[:, :-1], b)


def test_a_kept_matrix_of_torch():
    A, b = dense(), right_hand_side(ROWS)
    with hostless.Matrix(A.to_sparse_csr(), ranks=2) as matrix:
        x, info, result = matrix.solve(b, rtol=1e-12, full_output=True)
        assert info == 0 and result.status == "converged"
        matrix.update_values((2 * A).to_sparse_csr())
        assert torch.allclose(matrix.solve(2 * b, rtol=1e-12)[0], x, rtol=1e-9, atol=1e-12)


def test_products_that_numba_has_compiled():
    A = sp.csr_array(dense().numpy())
    data, indices, indptr = A.data, A.indices, A.indptr

    @numba.njit(nogil=True)
    def product(data, indices, indptr, x):
        y = np.zeros(len(indptr) - 1)
        for row in range(len(y)):
            for k in range(indptr[row], indptr[row + 1]):
                y[row] += data[k] * x[indices[k]]
        return y

    b = right_hand_side(ROWS).numpy()
    operator = LinearOperator(A.shape, matvec=lambda x: product(data, indices, indptr, x), dtype=float)
    x = solved(operator, b)
    assert np.allclose(x, np.linalg.solve(A.toarray(), b), rtol=1e-9, atol=1e-12)


def test_a_library_of_the_array_api():
    xp, A, b = array_api_strict, dense().numpy(), right_hand_side(ROWS).numpy()
    x = solved(xp.asarray(A), xp.asarray(b))
    assert type(x) is type(xp.asarray(b))
    assert np.allclose(np.from_dlpack(x), np.linalg.solve(A, b), rtol=1e-9, atol=1e-12)


class ByInterface:
    """Knows NumPy's interface of arrays and nothing else."""

    def __init__(self, array):
        self.kept, self.__array_interface__ = array, array.__array_interface__


class ByDlpack:
    """Knows DLPack and nothing else; torch is the producer."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **how):
        return self.tensor.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("kind", [lambda t: ByInterface(t.numpy()), ByDlpack], ids=["__array_interface__", "dlpack"])
def test_other_producers(kind):
    A, b = dense(), right_hand_side(ROWS)
    x = solved(kind(A), kind(b))
    assert isinstance(x, np.ndarray)
    assert np.allclose(x, torch.linalg.solve(A, b).numpy(), rtol=1e-9, atol=1e-12)
    strided = kind(torch.stack([b, b], dim=1)[:, 1])
    assert np.array_equal(solved(kind(A.T), strided), x)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_tensors_are_exchanged_where_they_lie(kind):
    plan = hostless.ExchangePlan([0, 1, 2], [2, 0])
    owned, ghosts = (torch.arange(6).reshape(3, 2) % 2).to(kind), torch.zeros((2, 2), dtype=kind)
    hostless.Exchange(plan, [(owned, ghosts)]).exchange()
    assert torch.equal(ghosts, owned[[2, 0]])
    with pytest.raises(hostless.UsageError, match="has gaps"):
        hostless.Exchange(plan, [(owned.repeat(1, 2)[:, ::2], ghosts)])


def test_tensors_that_autograd_follows_are_not_written():
    plan = hostless.ExchangePlan([0, 1], [1])
    tracked = torch.zeros(1, requires_grad=True)
    with pytest.raises(hostless.UsageError, match="autograd follows it"):
        hostless.Exchange(plan, [(torch.zeros(2), tracked)])
    total = torch.ones(2)
    hostless.ReverseExchange(plan, [(total, tracked)]).exchange()  # which only reads it
    assert total.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", [torch.float32, torch.int64, torch.bfloat16, torch.complex64])
def test_halos_of_tensors(kind):
    larger = torch.zeros((3, 7, 2), dtype=kind)
    part, whole = larger[:, 2:5], torch.zeros((3, 3), dtype=kind)
    part[1, 1], whole[1, 1] = torch.tensor([3, 4]).to(kind), 5
    with hostless.Communicator(None) as ranks, hostless.Queue() as queue:
        halo = hostless.QueueHalo(ranks, ranks=(1, 1), fields=[part, whole], periodic=True)
        halo.enqueue_gather(queue)
        queue.wait()
        assert torch.equal(part, torch.tensor([3, 4]).to(kind).expand(3, 3, 2)) and bool((whole == 5).all())
        assert not larger[:, :2].any() and not larger[:, 5:].any()
        for wrong, text in ((whole.T, "C order"), (torch.zeros((), dtype=kind).expand(3, 3), "C order"), (whole.to(torch.float64), "float64")):
            with pytest.raises(hostless.UsageError, match=text):
                halo.enqueue_gather(queue, [part, wrong])
    if kind.is_floating_point:
        with hostless.Communicator(None) as ranks, pytest.raises(hostless.UsageError, match="autograd follows it"):
            hostless.QueueHalo(ranks, ranks=(1, 1), fields=whole.requires_grad_())


STENCIL = "u + k*(u[-1,0] + u[1,0] + u[0,-1] + u[0,1] - 4*u)"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("view", [lambda u: u, lambda u: u.T, lambda u: u[::2, 3:]])
def test_stencils_step_tensors_in_place(dtype, view):
    u = view(torch.rand(20, 30, dtype=torch.float64).to(dtype))
    expected = u.numpy().copy()
    hostless.Stencil(STENCIL, k=0.2).run(expected, 7, boundary="periodic", ranks=2)
    k = torch.full((), 0.2, dtype=dtype)  # a number, though torch's
    assert hostless.Stencil(STENCIL, k=k).run(u, 7, boundary="periodic", ranks=2).steps == 7
    assert np.array_equal(u.numpy(), expected)


def test_stencils_read_coefficients_of_torch():
    u, a = torch.ones(9), torch.arange(9.0)
    hostless.Stencil("u*a[1]", a=a).run(u, 2, boundary="periodic")
    assert u.tolist() == [((i + 1) % 9) ** 2 for i in range(9)]


@pytest.mark.parametrize("make, kind, words", [
    (lambda: torch.ones(5, requires_grad=True), hostless.UsageError, "autograd"),
    (lambda: torch.complex(torch.ones(5), torch.ones(5)).conj().imag, hostless.UsageError, "negates"),
    (lambda: torch.ones(5, dtype=torch.bfloat16), TypeError, "bfloat16"),
    (lambda: torch.ones(5, dtype=torch.int32), TypeError, "int32"),
    (lambda: torch.ones(5, 5).to_sparse_csr(), hostless.UsageError, "the layout torch.sparse_csr")])
def test_stencils_refuse_tensors(make, kind, words):
    with pytest.raises(kind, match=words):
        hostless.Stencil("u*2").run(make(), 1)

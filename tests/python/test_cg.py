"""hostless.cg: what scipy's cg does, and what is hostless's own."""

import inspect
import json
import pickle
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import cg as scipy_cg

import hostless
from pressed import SOON, interrupted

WAYS = [dict(), dict(ranks=3), dict(method="single-reduction-cg"), dict(method="pipelined-cg", ranks=2),
        dict(run="persistent", lanes=2), dict(run="graph"), dict(preconditioner="jacobi"),
        dict(preconditioner="block-jacobi", ranks=2), dict(preconditioner="chebyshev"), dict(reduction="fast", ranks=2)]


@pytest.fixture(scope="module")
def poisson():
    return hostless.generate("poisson2d", 40)


def test_the_signature_begins_with_scipys():
    mine, theirs = (list(inspect.signature(f).parameters.values()) for f in (hostless.cg, scipy_cg))
    for own, other in zip(mine, theirs):
        assert (own.name, own.default, own.kind) == (other.name, other.default, other.kind)
    assert all(own.kind is inspect.Parameter.KEYWORD_ONLY for own in mine[len(theirs):])


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_way_solves(poisson, way):
    b = np.random.default_rng(3).standard_normal(poisson.shape[0])
    x, info, result = hostless.cg(poisson, b, rtol=1e-9, full_output=True, **way)
    assert info == 0 and result.converged
    assert np.linalg.norm(poisson @ x - b) <= 1.001e-9 * np.linalg.norm(b)
    asked = {"method": "cg", "run": "host", "preconditioner": "none", "ranks": 1, **way}
    asked.pop("reduction", None)
    for name, value in asked.items():
        assert result.choices[name] == str(value)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_callbacks_see_x_of_every_iteration(poisson, way):
    b = np.ones(poisson.shape[0])
    seen = []
    _, info, result = hostless.cg(poisson, b, maxiter=20, callback=seen.append, full_output=True, **way)
    assert info == 20 and len(seen) == 20
    norms = [np.linalg.norm(b - poisson @ x) for x in seen]
    assert np.allclose(norms, result.residual_history[1:], rtol=1e-6)
    assert len({id(x) for x in seen}) == 20  # each a vector of its own


def test_callbacks_see_the_last_x_and_scipys(poisson):
    b = np.ones(poisson.shape[0])
    mine, theirs = [], []
    x, _ = hostless.cg(poisson, b, rtol=1e-3, callback=mine.append)
    scipy_cg(poisson, b, rtol=1e-3, callback=lambda xk: theirs.append(xk.copy()))
    assert np.array_equal(mine[-1], x) and len(mine) == len(theirs)
    assert np.allclose(mine[:15], theirs[:15], rtol=1e-8)  # rounding drives them apart later


def test_callbacks_run_on_the_calling_thread(poisson):
    threads = set()
    hostless.cg(poisson, np.ones(poisson.shape[0]), ranks=3, callback=lambda x: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


def test_a_callback_changes_nothing(poisson):
    b = np.ones(poisson.shape[0])

    def spoil(x):
        x[:] = 1e300

    assert np.array_equal(hostless.cg(poisson, b, ranks=2, callback=spoil)[0], hostless.cg(poisson, b, ranks=2)[0])


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_a_callback_raises_comes_out(poisson, ranks):
    calls = []

    def fail(x):
        calls.append(x)
        if len(calls) == 4:
            raise ZeroDivisionError("mine")

    with hostless.Matrix(poisson, ranks=ranks) as matrix:
        with pytest.raises(ZeroDivisionError, match="mine"):
            matrix.solve(np.ones(poisson.shape[0]), callback=fail)
        assert len(calls) == 4
        assert matrix.solve(np.ones(poisson.shape[0]))[1] == 0


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_stopped_one_solve_does_not_stop_the_next(poisson, ranks):
    b = np.ones(poisson.shape[0])
    raising = [True]

    def callback(x):
        if raising[0]:
            raise ZeroDivisionError("mine")

    with hostless.Matrix(poisson, ranks=ranks) as matrix:
        expected, _ = matrix.solve(b)
        with pytest.raises(ZeroDivisionError):
            matrix.solve(b, callback=callback)
        raising[0] = False
        x, info = matrix.solve(b, callback=callback)  # by the solver that was stopped
        assert info == 0 and np.array_equal(x, expected) and matrix.set_ups == 2


# ---------------------------------------------------------------- operators and preconditioners
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("kind", ["array", "sparse", "operator"])
def test_preconditioners_of_every_kind(poisson, kind, ranks):
    rng = np.random.default_rng(4)
    scale = rng.uniform(1, 1000, poisson.shape[0])
    bad = sp.csr_array(sp.diags_array(scale) @ poisson @ sp.diags_array(scale))
    bad = (bad + bad.T) / 2  # the same numbers on both sides
    inverse = 1 / bad.diagonal()
    M = {"array": np.diag(inverse), "sparse": sp.diags_array(inverse),
         "operator": LinearOperator(bad.shape, matvec=lambda r: inverse * r, dtype=float)}[kind]
    b = rng.standard_normal(poisson.shape[0])
    x, info, result = hostless.cg(bad, b, M=M, ranks=ranks, rtol=1e-8, full_output=True)
    _, _, built_in = hostless.cg(bad, b, preconditioner="jacobi", ranks=ranks, rtol=1e-8, full_output=True)
    assert info == 0 and np.linalg.norm(bad @ x - b) <= 1.001e-8 * np.linalg.norm(b)
    assert abs(result.iterations - built_in.iterations) <= 2
    assert result.iterations < hostless.cg(bad, b, rtol=1e-8, ranks=ranks, full_output=True)[2].iterations / 2


def test_products_with_an_operator_are_counted(poisson):
    calls = []
    operator = LinearOperator(poisson.shape, matvec=lambda x: calls.append(1) or poisson @ x, dtype=float)
    _, info, result = hostless.cg(operator, np.ones(poisson.shape[0]), full_output=True)
    # One an iteration, two that sample the symmetry, the first residual and that of the answer.
    assert info == 0 and len(calls) == result.iterations + 4


def test_what_an_operator_raises_comes_out(poisson):
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        hostless.cg(LinearOperator(poisson.shape, matvec=fail, dtype=float), np.ones(poisson.shape[0]))
    with pytest.raises(KeyError, match="mine"):
        hostless.cg(poisson, np.ones(poisson.shape[0]), ranks=2,
                    M=LinearOperator(poisson.shape, matvec=fail, dtype=float))


# ---------------------------------------------------------------- endings
def test_info_says_how_it_ended():
    b = np.array([1.0, 1.0])
    assert hostless.cg(np.diag([1.0, 1000.0]), b, maxiter=1)[1] == 1
    assert hostless.cg(np.diag([1.0, -1.0]), np.array([0.0, 1.0]))[1] == -1
    assert hostless.cg(np.eye(2), b, M=-np.eye(2))[1] == -2
    assert hostless.cg(np.eye(2), np.array([np.nan, 1.0]))[1] == -3
    assert hostless.cg(np.eye(2) * 2, b, maxiter=0)[1] == 1
    assert hostless.cg(np.eye(2), np.zeros(2), x0=b)[1] == 0


def test_growth_of_a_badly_scaled_system_is_no_divergence():
    """A residual that grows 1e6 times on its way: scipy solves it, and so does hostless."""
    scale = sp.diags_array(10.0 ** np.linspace(-3.5, 3.5, 36))
    A = sp.csr_array(scale @ hostless.generate("poisson2d", 6) @ scale)
    A = sp.csr_array((A + A.T) / 2)
    b = 1 / scale.diagonal()
    assert scipy_cg(A, b, rtol=1e-8, maxiter=5000)[1] == 0
    x, info, result = hostless.cg(A, b, rtol=1e-8, maxiter=5000, full_output=True)
    assert info == 0 and np.linalg.norm(b - A @ x) <= 1.01e-8 * np.linalg.norm(b)
    assert result.residual_history.max() > 1e5 * result.residual_history[0]
    with hostless.Matrix(A) as matrix:
        for limit, status in ((1e5, "diverged"), (1e10, "converged")):
            x, info, result = matrix.solve(b, rtol=1e-8, maxiter=5000, divergence_limit=limit, full_output=True)
            assert (result.status, info == 0) == (status, status == "converged")
    assert hostless.cg(A, b, divergence_limit=1e5)[1] > 0


@pytest.mark.parametrize("bad, text", [
    (dict(method="gmres"), "method='gmres' .unknown.*Use cg, "), (dict(run="fast"), "run='fast' .unknown"), (dict(rtol=-1), "rtol"),
    (dict(maxiter=-1), "maxiter"), (dict(preconditioner="ilu"), "preconditioner='ilu' .unknown"),
    (dict(ranks=0), "ranks"), (dict(ranks=-2), "ranks"), (dict(ranks=10**6), "at most 4096"), (dict(transport="smoke"), "transport"), (dict(transport="mpi"), "comm"),
    (dict(row_range=(0, 3)), "comm"), (dict(gpus=[1]), "CUDA_VISIBLE_DEVICES"), (dict(gpus="some"), "gpus"),
    (dict(format="coo"), "coo"), (dict(reduction="slow"), "reduction"), (dict(run="stream"), "stream"),
    (dict(M=np.eye(3)), "shape"), (dict(M=np.eye(1600), preconditioner="jacobi"), "both M"),
    (dict(x0="zero"), "x0"), (dict(x0=np.ones(3)), "x0 has the shape"), (dict(callback=3), "callback"),
    (dict(lanes=2), "lanes"), (dict(comm=3), "communicator"), (dict(divergence_limit=0.5), "divergence_limit=0.5"),
    (dict(divergence_limit=np.nan), "divergence_limit"),
], ids=str)
def test_what_does_not_fit_is_refused(poisson, bad, text):
    with pytest.raises(hostless.UsageError, match=text):
        hostless.cg(poisson, np.ones(poisson.shape[0]), **bad)


def test_words_are_no_numbers(poisson):
    for bad in (dict(rtol="1e-5"), dict(atol=b"0"), dict(divergence_limit="far"), dict(rtol=None)):
        with pytest.raises(hostless.NumberTypeError, match="a number is meant") as raised:
            hostless.cg(poisson, np.ones(poisson.shape[0]), **bad)
        assert isinstance(raised.value, TypeError) and isinstance(raised.value, hostless.UsageError)


def test_right_hand_sides_that_lie_otherwise(poisson):
    rows = poisson.shape[0]
    with pytest.raises(hostless.UsageError, match="Pass b.T"):
        hostless.cg(poisson, np.ones((3, rows)))
    with pytest.raises(TypeError, match=r"Pass b\.toarray"):
        hostless.cg(poisson, sp.csr_array(np.ones((rows, 1))))


def test_the_result_tells_what_the_recurrence_believed(poisson):
    result = hostless.cg(poisson, np.ones(poisson.shape[0]), rtol=1e-9, full_output=True)[2]
    assert result.recurrence_relative_residual == pytest.approx(result.true_relative_residual, rel=1e-3)


def test_unknown_options_are_refused(poisson):
    with pytest.raises(TypeError):
        hostless.cg(poisson, np.ones(poisson.shape[0]), tol=1e-5)


def test_gpus_without_a_gpu_say_what_is_missing(poisson):
    if hostless._core.visible_gpus() > 0:
        pytest.skip("this machine has a GPU")
    with pytest.raises(hostless.MachineError, match="GPU"):
        hostless.cg(poisson, np.ones(poisson.shape[0]), gpus=1)


# ---------------------------------------------------------------- the result
def test_the_result_has_the_schema_of_the_command(poisson, tmp_path):
    import subprocess

    _, _, result = hostless.cg(poisson, np.ones(poisson.shape[0]), full_output=True)
    path = tmp_path / "result.json"
    subprocess.run([hostless.command(), "solve", "--generate", "poisson2d", "--size", "40", "--quiet", "--rtol", "1e-5",
                    "--no-bandwidth", "--json", str(path)], check=True)
    theirs, mine = json.loads(path.read_text()), result.to_dict()
    assert list(mine) == list(theirs) and list(mine["choices"]) == list(theirs["choices"])
    for same in ("version", "status", "iterations", "residual_history", "true_residual", "rows", "entries",
                 "bytes_per_iteration"):
        assert mine[same] == theirs[same]  # the same matrix on the same plan: the same bits


@pytest.mark.parametrize("method", ["cg", "single-reduction-cg", "pipelined-cg"])
@pytest.mark.parametrize("preconditioner", ["none", "jacobi"])
def test_the_result_tells_the_condition(method, preconditioner):
    A = hostless.generate("poisson2d", 12)
    scale = sp.diags(A.diagonal() ** -0.5) if preconditioner == "jacobi" else sp.identity(A.shape[0])
    eigenvalues = np.linalg.eigvalsh((scale @ A @ scale).toarray())
    b = np.random.default_rng(3).standard_normal(A.shape[0])
    _, _, result = hostless.cg(A, b, rtol=1e-12, method=method, preconditioner=preconditioner, full_output=True)
    smallest, largest = result.extreme_eigenvalues
    assert smallest == pytest.approx(eigenvalues[0], rel=1e-4) and largest == pytest.approx(eigenvalues[-1], rel=1e-4)
    assert result.condition_estimate == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-4)
    _, _, result = hostless.cg(A, b, maxiter=0, full_output=True)
    assert np.isnan(result.condition_estimate)


def test_the_result_shows_itself(poisson):
    _, _, result = hostless.cg(poisson, np.ones(poisson.shape[0]), full_output=True)
    assert "converged" in repr(result)
    page = result._repr_html_()
    assert "<svg" in page and "polyline" in page and "converged" in page and "instruction_set" in page
    again = pickle.loads(pickle.dumps(result))
    assert len(json.loads(result.to_json())["provenance"]["command"]) == 1  # the program's other words are its own
    assert again.to_json() == result.to_json() and again.iterations == result.iterations
    assert result.timings["solve"] > 0 and result.bytes["per_iteration"] > 0
    assert len(result.residual_history) == result.iterations + 1


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_give_the_bits_of_the_command(poisson, ranks, tmp_path):
    import subprocess

    path = tmp_path / "x.npy"
    subprocess.run([hostless.command(), "solve", "--generate", "poisson2d", "--size", "40", "--quiet", "--ranks",
                    str(ranks), "--no-bandwidth", "--output", str(path)], check=True)
    x, _ = hostless.cg(poisson, np.ones(poisson.shape[0]), rtol=1e-8, ranks=ranks)
    assert np.array_equal(x, np.load(path))


# ---------------------------------------------------------------- threads and signals
def hard(size=300):
    return hostless.generate("poisson2d", size, contrast=1e6)


@pytest.mark.parametrize("ranks", [1, 2])
def test_ctrl_c_stops_and_everything_works_again(ranks):
    matrix = hard()
    b = np.ones(matrix.shape[0])
    with hostless.Matrix(matrix, ranks=ranks) as laid_out:
        laid_out.solve(b, maxiter=1)
        assert interrupted(lambda: laid_out.solve(b, rtol=0, maxiter=10**9), 0.3) < SOON
        assert laid_out.solve(b, maxiter=5)[1] == 5


def test_other_threads_run_during_a_solve():
    matrix = hard()
    ticks = []
    done = threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    inside, iterations = 0, 1500
    while inside <= 20 and iterations < 100_000:  # a busy machine: longer; with the GIL held it would be a handful
        begin = time.monotonic()
        hostless.cg(matrix, np.ones(matrix.shape[0]), rtol=0, maxiter=iterations)
        end = time.monotonic()
        inside, iterations = sum(begin < tick < end for tick in ticks), 2 * iterations
    done.set()
    thread.join()
    assert inside > 20


def test_solves_of_several_threads_at_once(poisson):
    b = np.ones(poisson.shape[0])
    expected, _ = hostless.cg(poisson, b)
    found = []

    def solve():
        found.append(hostless.cg(poisson, b, ranks=1)[0])

    threads = [threading.Thread(target=solve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(np.array_equal(x, expected) for x in found)

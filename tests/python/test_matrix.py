"""hostless.Matrix: set up once, used many times, ended in order."""

import gc
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

import hostless


@pytest.fixture(scope="module")
def poisson():
    return hostless.generate("poisson7", (12, 11, 10))


@pytest.mark.parametrize("ranks", [1, 3])
def test_many_solves_of_one_set_up(poisson, ranks):
    rng = np.random.default_rng(1)
    with hostless.Matrix(poisson, ranks=ranks) as matrix:
        for step in range(6):
            b = rng.standard_normal(poisson.shape[0])
            x, info = matrix.solve(b, rtol=10.0 ** -(3 + step))
            assert info == 0
            assert np.linalg.norm(poisson @ x - b) <= 1.001 * 10.0 ** -(3 + step) * np.linalg.norm(b)
        assert matrix.set_ups == 1
        matrix.solve(b, method="pipelined-cg")
        assert matrix.set_ups == 2


def test_results_tell_who_sends_what(poisson):
    with hostless.Matrix(poisson, ranks=3) as matrix:
        _, _, result = matrix.solve(np.ones(poisson.shape[0]), full_output=True)
    planned = hostless.plan(poisson, ranks=3).summary["pairs"]
    assert result.to_dict()["communication"]["pairs"] == planned


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_guess_saves_iterations(poisson, ranks):
    b = np.ones(poisson.shape[0])
    with hostless.Matrix(poisson, ranks=ranks) as matrix:
        x, _, first = matrix.solve(b, rtol=1e-8, full_output=True)
        kept = x.copy()
        again, _, second = matrix.solve(b, x0=x, rtol=1e-8, full_output=True)
        assert second.iterations == 0 < first.iterations and np.array_equal(x, kept) and np.array_equal(again, x)


@pytest.mark.parametrize("partition", ["contiguous", "metis"])
@pytest.mark.parametrize("ranks", [1, 4])
def test_products(poisson, ranks, partition):
    rng = np.random.default_rng(2)
    x, several = rng.standard_normal(poisson.shape[0]), rng.standard_normal((poisson.shape[0], 3))
    with hostless.Matrix(poisson, ranks=ranks, partition=partition) as matrix:
        assert isinstance(matrix, LinearOperator) and matrix.shape == poisson.shape and matrix.dtype == np.float64
        for product in (matrix.matvec(x), matrix @ x, matrix.rmatvec(x), matrix.T @ x, matrix.H @ x):
            assert np.allclose(product, poisson @ x, rtol=1e-13)
        assert np.allclose(matrix @ several, poisson @ several, rtol=1e-13)
        assert matrix.matvec(x[:, None]).shape == (len(x), 1)
        seen = []
        solution, info = matrix.solve(x, rtol=1e-9, callback=seen.append)
        assert info == 0 and np.linalg.norm(poisson @ solution - x) <= 1.001e-9 * np.linalg.norm(x)
        assert np.array_equal(seen[-1], solution)  # in the caller's order, whatever the partition


def test_scipy_takes_it_as_an_operator(poisson):
    with hostless.Matrix(poisson, ranks=2) as matrix:
        assert np.allclose(eigsh(matrix, k=2, return_eigenvectors=False),
                           eigsh(poisson, k=2, return_eigenvectors=False))


@pytest.mark.parametrize("ranks", [1, 3])
def test_other_values_in_the_same_pattern(poisson, ranks):
    b = np.ones(poisson.shape[0])
    with hostless.Matrix(poisson, ranks=ranks) as matrix:
        matrix.solve(b, preconditioner="jacobi")
        matrix.update_values(3 * poisson)
        x, info = matrix.solve(b, preconditioner="jacobi", rtol=1e-10)
        assert info == 0 and np.allclose(3 * (poisson @ x), b, atol=1e-7) and matrix.set_ups == 1
        with pytest.raises(hostless.UsageError):
            matrix.update_values(np.eye(poisson.shape[0]))
        with pytest.raises(hostless.UsageError):
            matrix.update_values(np.eye(3))
        assert matrix.solve(b)[1] == 0


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_another_pattern_is_called_that_by_any_ranks(poisson, ranks):
    """Also where the other columns are of rows that a rank has never heard of."""
    other = poisson.tolil()
    other[5, poisson.shape[0] - 7] = other[poisson.shape[0] - 7, 5] = 1.0
    with hostless.Matrix(poisson, ranks=ranks) as matrix:
        with pytest.raises(hostless.UsageError, match=r"row 5 does not have the pattern .* new pattern\.$"):
            matrix.update_values(other.tocsr())
    other = poisson.tolil()
    last = poisson.shape[0] - 1
    other[last, 0] = 1.0
    with hostless.Matrix(poisson, ranks=ranks, check_symmetry=False) as matrix:
        with pytest.raises(hostless.UsageError, match=f"row {last} does not have the pattern"):
            matrix.update_values(other.tocsr())


def test_cg_takes_it(poisson):
    b = np.ones(poisson.shape[0])
    with hostless.Matrix(poisson, ranks=2) as matrix:
        assert np.array_equal(hostless.cg(matrix, b)[0], hostless.cg(poisson, b, ranks=2)[0])
        with pytest.raises(hostless.UsageError, match="laid out already"):
            hostless.cg(matrix, b, ranks=3)


def test_ranks_that_are_threads_are_its_own(poisson):
    rows = poisson.shape[0]

    def body(comm):
        first, last = (rows * rank // comm.size for rank in (comm.rank, comm.rank + 1))
        for use in (hostless.cg, lambda A, b, **where: hostless.Matrix(A, **where)):
            with pytest.raises(hostless.UsageError, match="comm is one that hostless.run_threads .* ranks=3 and without comm"):
                use(poisson[first:last], np.ones(last - first), comm=comm, row_range=(first, last))
        return True

    assert hostless.run_threads(3, body) == [True] * 3


def test_a_closed_one_says_so(poisson):
    matrix = hostless.Matrix(poisson, ranks=2)
    matrix.close()
    matrix.close()
    for use in (lambda: matrix.solve(np.ones(poisson.shape[0])), lambda: matrix @ np.ones(poisson.shape[0]),
                lambda: matrix.update_values(poisson)):
        with pytest.raises(hostless.UsageError, match="closed"):
            use()


def threads_here():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Threads"))


def test_ranks_end_with_their_matrix(poisson):
    before = threads_here()
    matrix = hostless.Matrix(poisson, ranks=3)
    assert threads_here() > before
    del matrix
    gc.collect()
    assert threads_here() == before
    outside = sp.csr_array(poisson, copy=True)
    outside.indices[-1] = poisson.shape[0]
    with pytest.raises(hostless.BadInputError):
        hostless.Matrix(outside, ranks=3)
    with pytest.raises(hostless.UsageError):
        hostless.Matrix(poisson, ranks=3, slices=-7)
    assert threads_here() == before


def test_one_thread_at_a_time(poisson):
    matrix = hostless.Matrix(poisson)
    refused = []

    def callback(x):
        if not refused:
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()

    def use():
        for call in (lambda: matrix.solve(np.ones(poisson.shape[0])), matrix.close):
            try:
                call()
            except hostless.UsageError as problem:
                refused.append(str(problem))

    assert matrix.solve(np.ones(poisson.shape[0]), callback=callback)[1] == 0
    assert len(refused) == 2 and all("another thread" in text for text in refused)


SCRIPTS = {
    "left open at the end": """
        matrix = hostless.Matrix(A, ranks=3)
        print(matrix.solve(b)[1])
    """,
    "left open in a cycle after an exception": """
        matrix = hostless.Matrix(A, ranks=3)
        matrix.itself = matrix
        try:
            matrix.solve(b, callback=lambda x: 1 / 0)
        except ZeroDivisionError:
            print(0)
    """,
    "forked": """
        import os, warnings
        warnings.simplefilter("ignore")
        matrix = hostless.Matrix(A, ranks=2)
        child = os.fork()
        if child == 0:
            try:
                matrix.solve(b)
            except hostless.UsageError as problem:
                assert "fork" in str(problem)
                matrix.close()
                del matrix
                assert hostless.cg(A, b, ranks=2)[1] == 0
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        print(matrix.solve(b)[1])
    """,
    "without scipy": """
        assert "scipy.sparse" not in sys.modules
        A = np.diag(np.arange(1.0, 9))
        with hostless.Matrix(A, ranks=2) as matrix:
            assert np.allclose(matrix @ np.ones(8), np.arange(1, 9)) and (matrix @ np.ones((8, 2))).shape == (8, 2)
            print(matrix.solve(np.ones(8))[1])
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_processes_end_in_order(name):
    script = "import sys\nimport numpy as np\n"
    script += "sys.modules['scipy'] = None\n" if name == "without scipy" else ""
    script += "import hostless\n"
    script += "" if name == "without scipy" else "A = hostless.generate('poisson2d', 20)\nb = np.ones(400)\n"
    ran = subprocess.run([sys.executable, "-c", script + textwrap.dedent(SCRIPTS[name]), name], timeout=600,
                         capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "0", "")


def test_a_closed_matrix_says_so():
    matrix = hostless.Matrix(hostless.generate("poisson2d", 4), ranks=2)
    assert repr(matrix) == "<hostless.Matrix 16 x 16, 64 entries, 2 ranks>"
    matrix.close()
    assert repr(matrix) == "<hostless.Matrix 16 x 16, closed>"

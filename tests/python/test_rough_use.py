"""What people do that nobody meant: rounded matrices, threads and interpreters that end, words of the wrong type."""

import gc
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import hostless

A = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(30, 30)).tocsr()
b = np.ones(30)


def script(text, code=0, seconds=600):
    """What a program of its own prints on standard error; it must end by itself with that exit code."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == code, f"{done.returncode}: {done.stderr}"
    return done.stderr


def test_float32_may_differ_from_its_mirror_by_its_own_rounding():
    rng = np.random.default_rng(0)
    R = rng.random((60, 30), dtype=np.float32)
    S = R.T @ (rng.random(60, dtype=np.float32)[:, None] * R) + np.eye(30, dtype=np.float32)
    assert (S != S.T).any()
    with pytest.warns(hostless.HostlessWarning, match="only up to rounding"):
        x, info = hostless.cg(S, b.astype(np.float32))
    assert info == 0 and np.allclose(S @ x, b, atol=1e-3)
    with pytest.raises(hostless.BadInputError, match="not symmetric"):
        hostless.cg(S.astype(np.float64), b)  # where that is no rounding
    S[3, 4] *= 1.01
    with pytest.raises(hostless.BadInputError, match="not symmetric"):
        hostless.cg(S, b)


def test_a_float32_operator():
    dense = np.asarray(hostless.generate("poisson7", 7).toarray(), dtype=np.float32)
    operator = sla.LinearOperator(dense.shape, matvec=lambda x: dense @ np.asarray(x, dtype=np.float32), dtype=np.float32)
    x, info = hostless.cg(operator, np.ones(343), rtol=1e-4)
    assert info == 0 and np.allclose(dense @ x, 1, atol=1e-2)
    with hostless.Matrix(operator) as matrix:
        assert np.allclose(matrix @ np.ones(343), dense @ np.ones(343), atol=1e-3)  # before any solve
    lower = sla.LinearOperator(dense.shape, matvec=lambda x: np.tril(dense) @ x, dtype=np.float32)
    with pytest.raises(hostless.BadInputError, match="Correct the function"):
        hostless.cg(lower, np.ones(343))


@pytest.mark.parametrize("kind", ["f4", "i8", "?"])
@pytest.mark.parametrize("form", ["lil", "dok", "coo", "dia", "bsr"])
def test_every_form_of_every_type(form, kind):
    given = (2 * sp.eye_array(30)).astype(kind).asformat(form)
    assert np.array_equal(hostless.cg(given, b)[0], b / given.toarray()[0, 0])


def test_factors_that_are_no_real_vectors():
    with hostless.Matrix(A) as matrix:
        for factor in (1j * b, b.astype(str)):
            with pytest.raises(TypeError, match="a factor of A"):
                matrix @ factor
        assert (matrix @ np.ones((30, 0))).shape == (30, 0)


def test_what_cannot_be_read_is_not_written(tmp_path):
    with pytest.raises(TypeError, match="complex"):
        hostless.write(tmp_path / "c.npy", np.array([1 + 2j]))
    with pytest.raises(hostless.BadInputError, match="entry 2 is nan"):
        hostless.write(tmp_path / "n.npy", np.array([1.0, np.nan]))
    columns = np.zeros((4, 3))
    columns[2, 1] = np.nan
    with pytest.raises(hostless.BadInputError, match="row 3 of column 2 is nan"):
        hostless.write(tmp_path / "columns.mtx", columns)
    with pytest.raises(hostless.BadInputError, match="entry 1 is inf"):
        hostless.write(tmp_path / "i.mtx", sp.csr_array([[np.inf]]))
    with pytest.raises(ValueError, match="null byte"):
        hostless.write("r\0.mtx", A)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("how, error, said", [
    (dict(ranks=2.0), TypeError, "ranks=2.0 is a float"), (dict(ranks="2"), TypeError, "ranks='2' is a str"),
    (dict(lanes=1.5), TypeError, "lanes=1.5"), (dict(format=None), TypeError, "format=None is a NoneType"),
    (dict(method=None), TypeError, "method=None"), (dict(maxiter=2.5), TypeError, "maxiter=2.5"),
    (dict(ranks=2**40), hostless.UsageError, "nothing has so many"), (dict(gpus=-1), hostless.UsageError, "gpus=-1"),
    (dict(gpus=1, ranks=2), hostless.UsageError, "2 ranks on 1 GPU"),
    (dict(M=lambda r: r), TypeError, "M is a function .*LinearOperator"), (dict(M="jacobi"), TypeError, "M is a str .*preconditioner="),
    (dict(M=[[1.0, 0.0], [0.0, 1.0]]), hostless.UsageError, "M has the shape"),
])
def test_options_of_the_wrong_kind_are_named(how, error, said):
    with pytest.raises(error, match=said):
        hostless.cg(A, b, **how)


@pytest.mark.parametrize("how, error, said", [
    (dict(ranks=2.0), TypeError, "ranks=2.0 is a float"), (dict(ranks=0), hostless.UsageError, "ranks=0"),
    (dict(ranks=2**40), hostless.UsageError, "nothing has so many"), (dict(route=None), TypeError, "route=None is a NoneType"),
    (dict(block=2.0), TypeError, "block=2.0 is a float"), (dict(seed=-1), hostless.UsageError, "seed=-1"),
    (dict(seed="1"), TypeError, "seed='1' is a str"), (dict(partition=3), TypeError, "partition=3 is an? int"),
])
def test_options_of_a_plan_of_the_wrong_kind_are_named(how, error, said):
    with pytest.raises(error, match=said):
        hostless.plan(A, **how)


def test_ranks_that_are_said_for_a_matrix_which_has_others():
    with hostless.Matrix(A, ranks=None) as matrix:
        assert matrix.ranks == 1 and hostless.cg(matrix, b, ranks=1)[1] == 0
    with hostless.Matrix(A, ranks=2) as matrix:
        with pytest.raises(hostless.UsageError, match="ranks=1 with a hostless.Matrix"):
            hostless.cg(matrix, b, ranks=1)


def test_more_iterations_than_a_number_holds_are_as_many_as_it_holds():
    assert hostless.cg(A, b, maxiter=2**70)[1] == 0


@pytest.mark.parametrize("name, value", [("columns", "16"), ("route", "direct"), ("block", 3), ("slices", 4),
                                         ("row_lanes", 2), ("format", "csr"), ("partition", "metis")])
def test_nothing_of_an_operator_is_laid_out(name, value):
    with pytest.raises(hostless.UsageError, match=f"{name}=.* of a LinearOperator"):
        hostless.Matrix(sla.aslinearoperator(A), **{name: value})


def test_sizes_that_are_no_whole_numbers():
    for size in (10.9, "10", (10.5, 4), (10, "4")):
        with pytest.raises(TypeError, match="size="):
            hostless.generate("poisson2d", size)
    assert hostless.generate("poisson2d", np.int32(4)).shape == hostless.generate("poisson2d", [4, 4]).shape == (16, 16)


def test_an_empty_matrix():
    with pytest.raises(hostless.UsageError, match="A has no rows"):
        hostless.cg(sp.csr_array((0, 0)), np.zeros(0))


def test_the_interpreter_ends_while_threads_solve():
    assert script("""
import threading, time, numpy as np, hostless
A = hostless.generate("poisson2d", 60); b = np.ones(3600)
idle, matrix = hostless.Matrix(A, ranks=2), hostless.Matrix(A)
def again(solve):
    while True:
        solve()
for solve in (lambda: matrix.solve(b, rtol=1e-12), lambda: hostless.cg(A, b, rtol=1e-12)):
    threading.Thread(target=again, args=(solve,), daemon=True).start()
time.sleep(0.3)
""").count("terminate") == 0


def test_an_operator_that_knows_its_matrix_is_collected():
    said = script("""
import numpy as np, scipy.sparse.linalg as sla, hostless
A = hostless.generate("poisson2d", 10)
op = sla.LinearOperator(A.shape, matvec=lambda x: A @ x if matrix else x, dtype=float)
with hostless.Matrix(op) as matrix:
    assert matrix.solve(np.ones(100))[1] == 0
left = hostless.Matrix(sla.LinearOperator(A.shape, matvec=lambda x: A @ x if left else x, dtype=float))
""")
    assert "leak" not in said

    class Knowing(sla.LinearOperator):
        def __init__(self):
            super().__init__(float, (30, 30))
            self.matrix = hostless.Matrix(self)

        def _matvec(self, x):
            return A @ x

    assert hostless.cg(Knowing().matrix, b)[1] == 0
    gc.collect()
    before = threading_count()
    for _ in range(20):
        Knowing()
    gc.collect()
    until = time.monotonic() + 240  # threads that have been joined leave the list a little later
    while threading_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading_count() <= before


def threading_count():
    return len(os.listdir("/proc/self/task"))


def test_a_fork_in_a_callback():
    script("""
import os, numpy as np, scipy.sparse as sp, hostless
A = sp.diags_array([-1., 2.5, -1.], offsets=[-1, 0, 1], shape=(30, 30)).tocsr()
def callback(x):
    child = os.fork()
    if child == 0:
        os._exit(0) if callback.quick else (_ for _ in ()).throw(SystemExit(7))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if callback.quick else 7)
for callback.quick in (True, False):
    assert hostless.cg(A, np.ones(30), callback=callback, maxiter=2)[1] == 2
""")


def test_threads_with_a_matrix_each():
    answers = {}

    def solve(k):
        with hostless.Matrix(k * A) as matrix:
            answers[k] = matrix.solve(b, rtol=1e-10)[0]

    threads = [threading.Thread(target=solve, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, x in answers.items():
        assert np.allclose(k * (A @ x), b)
    assert len(answers) == 3


@pytest.mark.parametrize("row, offset", [(0, -10**9), (10, -10**9), (3, 10**9), (3, 0), (3, 140), (3, -5), (50, 10**9)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_offsets_that_lead_out_of_the_arrays(row, offset, dtype):
    A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50), format="csr").astype(dtype)
    A.indptr[row] = offset
    for work in (lambda: hostless.cg(A, np.ones(50)), lambda: hostless.Matrix(A), lambda: hostless.plan(A, ranks=2)):
        with pytest.raises(hostless.BadInputError, match="offset"):
            work()

"""A matrix that is distributed by rows over the processes of an mpi4py communicator."""

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import sys
import numpy as np
from mpi4py import MPI
import hostless

comm = MPI.COMM_WORLD
A = hostless.generate("poisson2d", 30)
n = A.shape[0]
# Uneven shares, one of them empty where there are three ranks.
cuts = [0, 17 * n // 30, 17 * n // 30, n] if comm.size == 3 else [n * k // comm.size for k in range(comm.size + 1)]
first, last = cuts[comm.rank], cuts[comm.rank + 1]
b = np.arange(1.0, n + 1)
seen = []
x, info, result = hostless.cg(A[first:last], b[first:last], comm=comm, row_range=(first, last), rtol=1e-9,
                              callback=seen.append, preconditioner="jacobi", full_output=True)
assert info == 0 and x.shape == (last - first,) and len(seen) == result.iterations
assert np.array_equal(seen[-1], x)
whole = np.concatenate(comm.allgather(x))
assert np.linalg.norm(A @ whole - b) <= 1.001e-9 * np.linalg.norm(b)
assert result.choices["transport"] == "mpi" and result.choices["ranks"] == str(comm.size)

x_by_reach, info, result = hostless.cg(A[first:last], b[first:last], comm=comm, row_range=(first, last), rtol=1e-9, transport="composite",
                                       preconditioner="jacobi", full_output=True)
assert info == 0 and np.array_equal(x, x_by_reach) and result.choices["transport"] == "composite"
try:
    hostless.Matrix(A[first:last], comm=comm, row_range=(first, last), transport="composite" if comm.rank == 0 else "mpi")
    assert comm.size == 1, "accepted"
except hostless.UsageError:
    pass

scale = 1 / A.diagonal()[first:last]
with hostless.Matrix(A[first:last], comm=comm, row_range=(first, last)) as matrix:
    assert matrix.ranks == comm.size
    assert np.allclose(matrix @ b[first:last], (A @ b)[first:last])
    M = None
    if last > first:
        from scipy.sparse import diags_array
        M = diags_array(scale)
    else:
        M = np.zeros((0, 0))
    _, info = matrix.solve(b[first:last], M=M)
    assert info == 0
    matrix.update_values(2 * A[first:last])
    x, info = matrix.solve(b[first:last], rtol=1e-9)
    whole = np.concatenate(comm.allgather(x))
    assert info == 0 and np.linalg.norm(2 * (A @ whole) - b) <= 1.001e-9 * np.linalg.norm(b)

# Errors are everybody's.
for bad in (dict(row_range=(first, last + 1)), dict(row_range=None), dict(ranks=2)):
    try:
        hostless.cg(A[first:last], b[first:last], **{**dict(comm=comm, row_range=(first, last)), **bad})
        sys.exit("accepted")
    except hostless.UsageError:
        pass
# Each process a GPU of its machine: too few of them are refused before any is looked for, and where there is none that is said.
for gpus, more, kind, says in ((1, {}, hostless.UsageError, f"{comm.size} ranks on 1 GPU"), (comm.size, {}, hostless.MachineError, "GPU"),
                               (1, dict(oversubscribe=True), hostless.MachineError, "GPU")):
    if comm.size == 1 and kind is hostless.UsageError:
        continue
    try:
        hostless.cg(A[first:last], b[first:last], comm=comm, row_range=(first, last), gpus=gpus, **more)
        assert hostless._core.visible_gpus() >= gpus, "accepted"
    except kind as problem:
        assert says in str(problem), problem
try:
    hostless.cg(A[first:last, :n - 1], b[first:last], comm=comm, row_range=(first, last))
    sys.exit("accepted")
except hostless.UsageError as problem:
    assert (f"the ranks have {n} rows together, and the matrix has {n - 1} columns" in str(problem) or
            comm.size == 1 and "square" in str(problem)), problem
# x in float32 is judged as it is handed back, on all ranks alike.
import warnings
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    x, info, result = hostless.cg(A[first:last].astype("f4"), b[first:last].astype("f4"), comm=comm, row_range=(first, last), rtol=1e-7,
                                  full_output=True)
whole = np.concatenate(comm.allgather(x)).astype(float)
residual = np.linalg.norm(b - A.astype("f4").astype(float) @ whole) / np.linalg.norm(b)
assert info > 0 and result.status == "stagnated" and any("Pass b in fp64" in str(one.message) for one in warned)
assert x.dtype == np.float32 and np.isclose(result.true_relative_residual, residual, rtol=1e-6) and residual > 1e-7
# The library's own options are everybody's too, and a checkpoint is one file of all.
here = dict(comm=comm, row_range=(first, last), rtol=1e-9)
checkpoint = sys.argv[0] + ".checkpoint"
whole, info, result = hostless.cg(A[first:last], b[first:last], full_output=True, **here)
hostless.cg(A[first:last], b[first:last], checkpoint=checkpoint, checkpoint_every=10, maxiter=25, **here)
x, info, resumed = hostless.cg(A[first:last], b[first:last], resume=checkpoint, full_output=True, **here)
assert info == 0 and np.array_equal(x, whole) and resumed.to_dict()["resumed_at"] == 25
assert list(resumed.residual_history) == list(result.residual_history)
x, info, result = hostless.cg(A[first:last], b[first:last], time_limit=1e-6, full_output=True, **here)
assert info > 0 and result.status == "aborted" and "the time limit" in result.message
wrong = A.copy().tolil()
wrong[0, n - 1] = 5.0
try:
    hostless.cg(wrong.tocsr()[first:last], b[first:last], comm=comm, row_range=(first, last))
    sys.exit("accepted")
except hostless.BadInputError as problem:
    assert "not symmetric" in str(problem)

# How far mirrors may differ is that of the values there are now: float32's rounding, and none of float64's.
bent = A.copy()
bent.data[bent.indices > np.repeat(np.arange(n), np.diff(bent.indptr))] *= 1 + 1e-6
mine = bent[first:last]
for made, then, accepted in ((A[first:last], mine.astype(np.float32), True), (mine.astype(np.float32), mine, False)):
    for use in (lambda: matrix.solve(b[first:last], preconditioner="jacobi"), lambda: matrix @ b[first:last]):
        with hostless.Matrix(made, comm=comm, row_range=(first, last)) as matrix:
            if use() is None:
                sys.exit("nothing came back")
            matrix.update_values(then)
            try:
                # Another solver: one that is there has seen its matrix.
                assert matrix.solve(b[first:last], preconditioner="block-jacobi")[1] == 0 and accepted
            except hostless.BadInputError as problem:
                assert not accepted and "not symmetric" in str(problem), problem
# A - shift I of each process's rows.
x, info = hostless.minres(A[first:last], b[first:last], shift=0.01, rtol=1e-9, comm=comm, row_range=(first, last))
whole = np.concatenate(comm.allgather(x))
assert info == 0 and np.linalg.norm(A @ whole - 0.01 * whole - b) <= 1.001e-9 * np.linalg.norm(b)


def refused(where, says):
    try:
        hostless.cg(A[first:last], b[first:last], comm=where, row_range=(first, last))
        sys.exit("accepted: " + says)
    except hostless.UsageError as problem:
        assert says in str(problem), problem


# What is no communicator with ranks, and what nobody looks at the symmetry of.
freed = comm.Dup()
freed.Free()
refused(freed, "MPI.COMM_NULL")
if comm.size > 1:
    apart = comm.Split(comm.rank > 0)
    refused(apart.Create_intercomm(0, comm, 1 if comm.rank == 0 else 0, 7), "intercommunicator")
with hostless.Matrix(wrong.tocsr()[first:last], comm=comm, row_range=(first, last)) as matrix:
    try:
        matrix.rmatvec(b[first:last])
        sys.exit("accepted")
    except hostless.UsageError as problem:
        assert "nobody has compared" in str(problem), problem
comm.Barrier()
MPI.Finalize()
refused(comm, "finalised")
if first == 0:
    print("all good")
"""


#: The last rank does something wrong where all the others do not: nobody waits for it.
ONE_IS_WRONG = """
import sys
import numpy as np
from mpi4py import MPI
from scipy.sparse.linalg import LinearOperator
import hostless

comm = MPI.COMM_WORLD
wrong = comm.rank == comm.size - 1
A = hostless.generate("poisson2d", 20)
n = A.shape[0]
first, last = n * comm.rank // comm.size, n * (comm.rank + 1) // comm.size
mine, b = A[first:last], np.ones(last - first)
beyond = mine.copy()
beyond.indices[3] = n + 7
elsewhere = mine.copy().tolil()
elsewhere[-1, 0] = 1.0
elsewhere = elsewhere.tocsr()
here = dict(comm=comm, row_range=(first, last))


def refused(what, call, *expected):
    own, others, text = expected
    try:
        call()
    except Exception as problem:
        kind = own if wrong else others
        if not isinstance(problem, kind) or text not in str(problem):
            sys.exit(f"rank {comm.rank}, {what}: {type(problem).__name__}: {problem}")
        if not wrong and own in (usage, TypeError, ZeroDivisionError) and f"rank {comm.size - 1}" not in str(problem):
            sys.exit(f"rank {comm.rank}, {what}: not told who it was: {problem}")
    else:
        sys.exit(f"rank {comm.rank}, {what}: accepted")


usage, bad_input, anything = hostless.UsageError, hostless.BadInputError, hostless.Error
makes = {
    "complex": (dict(A=mine.astype(complex)), TypeError, usage, "complex"),
    "no matrix": (dict(A="A"), TypeError, usage, "A is a str"),
    "an operator": (dict(A=LinearOperator(mine.shape, matvec=lambda x: x, dtype=float)), usage, usage, "LinearOperator"),
    "ranks": (dict(ranks=2), usage, usage, "together with comm"),
    "an unknown transport": (dict(transport="tcp"), usage, usage, "transport='tcp' (unknown). Use 'mpi' or 'composite' with comm"),
    "a transport of others": (dict(transport="processes"), usage, usage, "together with comm"),
    "words for rows": (dict(row_range=("a", "b")), usage, usage, "row_range=('a', 'b')"),
    "rows beyond all numbers": (dict(row_range=(10**30 + first, 10**30 + last)), usage, usage, "row_range"),
    "too few rows": (dict(row_range=(first, last - 1)), usage, usage, "row_range"),
    "a word": (dict(format="coo"), usage, usage, "format='coo'"),
    "no option": (dict(tol=1), TypeError, usage, "Matrix() got an unexpected keyword argument 'tol'"),
    "another seed": (dict(seed=5), usage, usage, "seed=5"),
    "another width": (dict(A=A[first:last, :n - 1]), usage, usage, f"{n - 1} columns"),
}
for what, (change, *expected) in makes.items():
    words = {"A": mine, **here, **(change if wrong else {})}
    refused(what, lambda: hostless.Matrix(words.pop("A"), **words), *expected)
# What arrays hold is looked at behind Python; the text is that of the rank where it happened.
refused("beyond", lambda: hostless.Matrix(beyond if wrong else mine, **here), anything, bad_input, "column")
refused("a gap", lambda: hostless.Matrix(mine[1:] if wrong else mine, comm=comm, row_range=(first + wrong, last)),
        anything, anything, "")

for method in (hostless.cg, hostless.bicgstab, hostless.minres):
    refused("no option", lambda: method(mine, b, **here, **({"chek_interval": 2} if wrong else {})), TypeError, usage,
            "unexpected keyword argument 'chek_interval'. Did you mean 'check_interval'")

refused("another shift", lambda: hostless.minres(mine, b, shift=0.3 if wrong else 0.2, **here), usage, usage, "shift=0.3")
M = np.triu(np.ones((last - first, last - first))) if wrong else np.eye(last - first)
refused("an M", lambda: hostless.minres(mine, b, M=M, check=True, **here), bad_input, bad_input, "M is not symmetric")

with hostless.Matrix(mine, **here) as matrix:
    x, _ = matrix.solve(b, rtol=1e-9)
    solves = {
        "length": (dict(b=np.ones(3)), usage, usage, "shape"),
        "columns": (dict(b=np.ones((last - first, 2))), usage, usage, "2 columns of b"),
        "complex b": (dict(b=b + 1j), TypeError, usage, "complex"),
        "x0": (dict(x0=np.ones(3)), usage, usage, "x0"),
        "rtol": (dict(rtol=-1), usage, usage, "rtol"),
        "another rtol": (dict(rtol=1e-3), usage, usage, "rtol=0.001"),
        "maxiter": (dict(maxiter=7), usage, usage, "maxiter=7"),
        "method": (dict(method="pipelined-cg"), usage, usage, "pipelined-cg"),
        "an unknown method": (dict(method="gmres"), usage, usage, "gmres"),
        "M": (dict(M=np.eye(last - first)), usage, usage, "an M"),
        "a callback": (dict(callback=3), usage, usage, "callback"),
        "no option": (dict(tol=1), TypeError, usage, "unexpected keyword argument 'tol'. Did you mean 'rtol'"),
    }
    for what, (change, *expected) in solves.items():
        words = {"b": b, **(change if wrong else {})}
        refused(what, lambda: matrix.solve(**words), *expected)
    told = ""
    try:
        matrix.solve(b, maxiter=77 if wrong else 99)
    except hostless.UsageError as problem:
        told = str(problem)
    assert "rank 0 was given a solve, maxiter=99, and rank" in told and "a solve, maxiter=77 (all" in told, told
    refused("a product", lambda: matrix @ np.ones(3 if wrong else last - first), usage, usage, "factor of shape (3,)")
    refused("products", lambda: matrix @ np.ones((last - first, 3 if wrong else 2)), usage, usage, "3 columns")
    refused("values", lambda: matrix.update_values(A if wrong else mine), anything, usage, "number of rows")
    refused("another pattern", lambda: matrix.update_values(elsewhere if wrong else mine), anything, usage,
            f"row {n - 1} does not have the pattern")
    refused("values beyond", lambda: matrix.update_values(beyond if wrong else mine), anything, bad_input, "column")
    # Nothing of that has harmed the matrix; a callback may be one rank's alone.
    seen = []
    again, info, result = matrix.solve(b, rtol=1e-9, callback=seen.append if wrong else None, full_output=True)
    assert info == 0 and np.array_equal(again, x) and len(seen) == (result.iterations if wrong else 0)
    refused("a raising callback", lambda: matrix.solve(b, callback=(lambda xk: 1 / 0) if wrong else None),
            ZeroDivisionError, hostless.AbortedError, "division by zero")

    def raising(r):
        raise KeyError("no such")

    refused("a raising M", lambda: matrix.solve(b, M=LinearOperator((last - first,) * 2, matvec=raising if wrong else np.copy, dtype=float)),
            KeyError, hostless.AbortedError, "no such")
    assert np.array_equal(matrix.solve(b, rtol=1e-9, callback=lambda xk: None)[0], x)
single = mine.astype(np.float32)
refused("another precision", lambda: hostless.cg(single, b if wrong else b.astype(np.float32), **here), usage, usage, "x in float64")
comm.Barrier()
if comm.rank == 0:
    print("all good")
"""


#: Rows that start inside of blocks are told once, and those at multiples of their size are not.
BLOCKS = """
import warnings
import numpy as np
from mpi4py import MPI
import hostless

comm = MPI.COMM_WORLD
A = hostless.generate("elasticity-hex8", 8)
n = A.shape[0]
for unit in (3, 1):
    # Of three ranks [0, 510, 1023, 1536]: not at multiples of 12.
    cuts = [n * rank // comm.size // unit * unit + (unit == 1 and 0 < rank < comm.size) for rank in range(comm.size + 1)]
    first, last = cuts[comm.rank], cuts[comm.rank + 1]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        _, info, result = hostless.cg(A[first:last], np.ones(last - first), comm=comm, row_range=(first, last),
                                      preconditioner="block-jacobi", rtol=1e-8, full_output=True)
    texts = [str(one.message) for one in warned if issubclass(one.category, hostless.HostlessWarning)]
    why = result.choices.get("preconditioner_why", "")
    assert info == 0
    if unit == 3:
        assert result.choices["block"].startswith("block 3:") and not texts and not why, (result.choices, texts)
    else:
        assert "start inside blocks of 3: cut at multiples of 3" in why and result.choices["block"].startswith("1: "), result.choices
        assert len(texts) == (comm.rank == 0) and all("cut at multiples of 3" in text for text in texts), texts
    comm.Barrier()
if comm.rank == 0:
    print("all good")
"""


def mpich_by_another_name(folder):
    """A folder with MPICH under the name that mpi4py's wheel asks for; Debian's package calls it libmpich.so.12."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = [line.split()[-1] for line in listed.splitlines() if line.split()[:1] == ["libmpich.so.12"]]
    if found and not (folder / "libmpi.so.12").exists():
        (folder / "libmpi.so.12").symlink_to(found[0])
    return str(folder)


def environment_of(abi, tmp_path):
    """What mpirun and mpi4py need on machines with few cores, in containers, and with Debian's MPICH."""
    environment = {**os.environ, "MPI4PY_MPIABI": abi, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                   "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    if abi == "mpich":
        environment["LD_LIBRARY_PATH"] = mpich_by_another_name(tmp_path) + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    return environment


def run(launcher, ranks, script, tmp_path, abi):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    return subprocess.run([launcher, "-n", str(ranks), sys.executable, str(path)], env=environment_of(abi, tmp_path),
                          timeout=600, capture_output=True, text=True, check=False)


TRIED = {}


def runs_with(vendor, tmp_path):
    """None where mpi4py runs with this MPI, else why not: tried once a run of the tests, as an mpirun takes seconds."""
    if vendor not in TRIED:
        TRIED[vendor] = tried(vendor, tmp_path)
    return TRIED[vendor]


def tried(vendor, tmp_path):
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    launcher = shutil.which(f"mpirun.{vendor}")
    if launcher is None:
        return f"no mpirun.{vendor} on this machine"
    loads = run(launcher, 1, "from mpi4py import MPI\nprint(MPI.Get_library_version())", tmp_path, vendor)
    if loads.returncode != 0:
        return f"mpi4py cannot load {vendor}: {loads.stderr.strip().splitlines()[-1:]}"
    return None


def check_all_good(vendor, ranks, script, tmp_path):
    if (missing := runs_with(vendor, tmp_path)) is not None:
        pytest.skip(missing)
    ran = run(f"mpirun.{vendor}", ranks, script, tmp_path, vendor)
    assert ran.returncode == 0 and "all good" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_a_distributed_matrix(vendor, ranks, tmp_path):
    check_all_good(vendor, ranks, SCRIPT, tmp_path)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_what_one_rank_does_wrong_is_told_to_all(vendor, ranks, tmp_path):
    check_all_good(vendor, ranks, ONE_IS_WRONG, tmp_path)


def test_rows_that_start_inside_of_blocks_are_told(tmp_path):
    check_all_good("openmpi", 3, BLOCKS, tmp_path)

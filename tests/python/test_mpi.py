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
wrong = A.copy().tolil()
wrong[0, n - 1] = 5.0
try:
    hostless.cg(wrong.tocsr()[first:last], b[first:last], comm=comm, row_range=(first, last))
    sys.exit("accepted")
except hostless.BadInputError as problem:
    assert "not symmetric" in str(problem)
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
                          timeout=120, capture_output=True, text=True, check=False)


def runs_with(vendor, tmp_path):
    """None where mpi4py runs with this MPI, else why not."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    launcher = shutil.which(f"mpirun.{vendor}")
    if launcher is None:
        return f"no mpirun.{vendor} on this machine"
    loads = run(launcher, 1, "from mpi4py import MPI\nprint(MPI.Get_library_version())", tmp_path, vendor)
    if loads.returncode != 0:
        return f"mpi4py cannot load {vendor}: {loads.stderr.strip().splitlines()[-1:]}"
    return None


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_a_distributed_matrix(vendor, ranks, tmp_path):
    if (missing := runs_with(vendor, tmp_path)) is not None:
        pytest.skip(missing)
    ran = run(f"mpirun.{vendor}", ranks, SCRIPT, tmp_path, vendor)
    assert ran.returncode == 0 and "all good" in ran.stdout, ran.stdout + ran.stderr

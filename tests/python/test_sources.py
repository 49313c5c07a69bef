"""Generators, files, plans and the command that comes along."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import hostless


def command(*words):
    return subprocess.run([hostless.command(), *map(str, words)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", hostless.problems())
def test_generated_matrices_are_those_of_the_command(name, tmp_path):
    path = tmp_path / "A.mtx"
    assert command("generate", name, "--size", 5, "-o", path).returncode == 0
    mine = hostless.generate(name, 5)
    assert (mine != mine.T).nnz == 0 and mine.has_canonical_format
    assert (mine != sp.csr_array(scipy.io.mmread(path))).nnz == 0


def test_options_of_generators():
    assert hostless.generate("poisson7", (4, 3, 2)).shape == (24, 24)
    assert hostless.generate("ecology2", scale=0.001).shape[0] < 2000
    flat = hostless.generate("poisson2d", 6, contrast=1)
    assert set(np.unique(flat.data)) == {-1.0, 4.0}
    one, other = (hostless.generate("poisson2d", 6, seed=seed) for seed in (1, 2))
    assert (one != other).nnz > 0
    free = hostless.generate("poisson2d", 6, boundary="neumann")
    assert np.allclose(free @ np.ones(36), 0)
    for bad in (dict(name="cube"), dict(name="poisson2d", size=(3, 3, 3)), dict(name="flan", size=3),
                dict(name="poisson2d", scale=0.5), dict(name="poisson2d", time_step=1.0),
                dict(name="poisson2d", size=-1)):
        with pytest.raises(hostless.UsageError):
            hostless.generate(**bad)


@pytest.mark.parametrize("ending", [".mtx", ".petsc"])
def test_matrices_go_to_files_and_back(ending, tmp_path):
    matrix = hostless.generate("elasticity-hex8", 3)
    path = tmp_path / ("A" + ending)
    hostless.write(path, matrix.tocoo())
    again = hostless.read(path)
    assert isinstance(again, sp.csr_array) and (again != matrix).nnz == 0
    if ending == ".mtx":
        assert (sp.csr_array(scipy.io.mmread(path)) != matrix).nnz == 0
        with gzip.open(str(path) + ".gz", "wb") as packed:
            packed.write(path.read_bytes())
        assert (hostless.read(str(path) + ".gz") != matrix).nnz == 0


@pytest.mark.parametrize("ending", [".npy", ".mtx", ".petsc"])
def test_vectors_go_to_files_and_back(ending, tmp_path):
    values = np.random.default_rng(1).standard_normal(101)
    path = tmp_path / ("b" + ending)
    hostless.write(path, values[::-1])
    assert np.array_equal(hostless.read(path), values[::-1])
    if ending == ".npy":
        assert np.array_equal(np.load(path), values[::-1])
    if ending == ".mtx":
        assert np.array_equal(scipy.io.mmread(path).ravel(), values[::-1])


def test_bad_files_are_named(tmp_path):
    path = tmp_path / "A.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n7 1 1.0\n")
    with pytest.raises(hostless.BadInputError, match="A.mtx:3"):
        hostless.read(path)
    with pytest.raises(hostless.UsageError, match="nothing.mtx"):
        hostless.read(tmp_path / "nothing.mtx")
    with pytest.raises(hostless.UsageError, match="ending"):
        hostless.write(tmp_path / "A.txt", sp.eye_array(3))
    with pytest.raises(hostless.BadInputError, match="symmetric"):
        hostless.write(tmp_path / "A.mtx", np.triu(np.ones((3, 3))))
    with pytest.raises(hostless.MachineError, match="No such file"):
        hostless.write(tmp_path / "no" / "folder" / "A.mtx", sp.eye_array(3))


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_plans_are_those_of_the_command(ranks):
    plan = hostless.plan(hostless.generate("poisson2d", 20), ranks=ranks)
    said = command("plan", "--generate", "poisson2d", "--size", 20, "--ranks", ranks, "--json", "-")
    assert plan.summary == json.loads(said.stdout)
    assert plan.traffic.shape == (ranks, ranks) and np.all(np.diag(plan.traffic) == 0)
    total = plan.summary["total"]["sent"]
    assert 8 * plan.traffic.sum() == total["bytes_inside_nodes"] + total["bytes_between_nodes"]
    assert "total" in repr(plan)


def test_doctor_describes_this_machine():
    said = hostless.doctor(seconds=0.01)
    assert said["transports"]["threads"]["host"] == "native" and said["machine"]
    assert said["program"] == f"hostless {hostless.__version__}"


def test_python_runs_the_command():
    ran = subprocess.run([sys.executable, "-m", "hostless", "--version"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, f"hostless {hostless.__version__}")
    ran = subprocess.run([sys.executable, "-m", "hostless", "solve"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "nothing to solve" in ran.stderr


def test_everything_public_is_documented():
    for name in hostless.__all__:
        thing = getattr(hostless, name)
        if callable(thing):
            assert thing.__doc__, name
            for member, value in vars(thing).items() if isinstance(thing, type) else ():
                if callable(value) and not member.startswith("_") and name == "Matrix":
                    assert value.__doc__, f"{name}.{member}"

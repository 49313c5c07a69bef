"""Generators, files, plans and the command that comes along."""

import gzip
import json
import os
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


@pytest.mark.parametrize("ending", [".npz", ".petsc", ".mtx"])
@pytest.mark.parametrize("partition", ["contiguous", "metis"])
def test_zeros_that_are_stored_on_one_side_only(ending, partition, tmp_path):
    A = hostless.generate("poisson2d", 6).tocoo()
    b = np.linspace(-1, 2, 36)
    rows, columns = np.append(A.row, [0, 35, 20]), np.append(A.col, [30, 3, 2])
    order = np.lexsort((columns, rows))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=36))])
    more = sp.csr_array((np.append(A.data, [0.0, 0.0, -0.0])[order], columns[order], offsets), shape=A.shape)
    assert more.nnz == A.nnz + 3
    path = tmp_path / f"A{ending}"
    if ending == ".npz":
        sp.save_npz(path, more)
    elif ending == ".petsc":
        hostless.write(path, more)
    else:  # scipy's own mirrors what is symmetric
        scipy.io.mmwrite(path, more.tocoo(), symmetry="general")
    again = hostless.read(path)
    assert again.nnz == more.nnz and (again != more).nnz == 0
    x, info = hostless.cg(again, b, rtol=1e-12, ranks=3)
    assert info == 0 and np.linalg.norm(b - A @ x) <= 1e-11 * np.linalg.norm(b)
    how = ("--ranks", 3, "--partition", partition, "--quiet", "--no-bandwidth")
    assert command("solve", path, *how).returncode == 0
    with hostless.Matrix(more, ranks=3, partition=partition) as matrix:
        assert np.allclose(matrix @ b, A @ b, rtol=0, atol=1e-14)


def test_names_of_files_need_not_be_text(tmp_path):
    matrix = hostless.generate("poisson2d", 4)
    raw = os.fsencode(tmp_path) + b"/A\xff.mtx"
    for name in (raw, os.fsdecode(raw)):  # bytes, and how Python shows them
        hostless.write(name, matrix)
        assert (hostless.read(name) != matrix).nnz == 0
        os.remove(raw)
        with pytest.raises(hostless.BadInputError, match="No such file") as caught:
            hostless.read(name)
        assert os.fsencode(str(caught.value)).startswith(raw)
    for name in (b"A\xff.txt", "A\udcff.txt"):
        with pytest.raises(hostless.UsageError, match="ending decides"):
            hostless.write(name, matrix)
    for name in (b"A\0.mtx", "A\0.mtx"):
        with pytest.raises(ValueError, match="null byte"):
            hostless.read(name)


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


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("made", [sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array, sp.dia_array, sp.csr_matrix])
def test_scipys_archives(made, compressed, tmp_path):
    matrix = hostless.generate("elasticity-hex8", 3)
    for kind in (np.float64, np.float32, np.int64, np.int8, bool):
        given = made(sp.csr_array((matrix * 4).astype(kind)))
        sp.save_npz(tmp_path / "A.npz", given, compressed=compressed)
        again = hostless.read(tmp_path / "A.npz")
        assert again.dtype == np.float64 and again.shape == matrix.shape
        assert (again != sp.csr_array(given).astype(float)).nnz == 0, kind
    sp.save_npz(tmp_path / "B.npz", made(matrix), compressed=compressed)
    for ranks in (1, 2, 5):
        solved = command("solve", tmp_path / "B.npz", "--ranks", ranks, "--manufactured", "--no-bandwidth", "--json", "-")
        assert solved.returncode == 0, solved.stderr
        hostless.write(tmp_path / "B.mtx", matrix)
        plain = command("solve", tmp_path / "B.mtx", "--ranks", ranks, "--manufactured", "--no-bandwidth", "--json", "-")
        assert json.loads(solved.stdout)["relative_error"] == json.loads(plain.stdout)["relative_error"]


@pytest.mark.parametrize("rows", [*range(8170, 8182), 16384])  # what is unpacked ends around a multiple of 64 KiB
def test_archives_whose_last_bytes_unpack_to_many(rows, tmp_path):
    sp.save_npz(tmp_path / "A.npz", sp.eye_array(rows, format="dia"))
    assert hostless.read(tmp_path / "A.npz").nnz == rows


def test_scipys_archives_of_other_shapes(tmp_path):
    path = tmp_path / "A.npz"
    dense = np.diag(np.arange(1.0, 13)) + np.eye(12, k=5) + np.eye(12, k=-5)
    blocks = np.kron(np.eye(4), np.full((3, 3), 0.1)) + np.diag(np.arange(1.0, 13))
    wide = sp.csr_array(dense)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    short = sp.dia_array((np.array([[2.0, 2.0, 2.0], [0.0, -1.0, -1.0], [-1.0, -1.0, 0.0], [7.0, 7.0, 7.0]]),
                          [0, 1, -1, 9]), shape=(3, 3))
    for given in (wide, sp.bsr_array(blocks + 1, blocksize=(3, 2)), sp.bsr_array(blocks, blocksize=(3, 3)),
                  sp.dia_array(dense), short, sp.coo_array(dense[::1])):
        sp.save_npz(path, given)
        assert (hostless.read(path) != sp.csr_array(given)).nnz == 0
    half = sp.csr_array(dense)
    np.savez(path, format=b"coo", shape=half.shape, data=half.tocoo().data, coords=np.array(half.tocoo().coords))
    assert (hostless.read(path) != half).nnz == 0  # as later versions of scipy write it
    np.savez(path, format="csr", shape=half.shape, data=half.data.astype(">f4"), indices=half.indices.astype(">i8"),
             indptr=half.indptr.astype(np.uint16))
    assert (hostless.read(path) != half).nnz == 0
    parts = dict(format="csr", shape=half.shape, data=half.data, indices=half.indices)
    for place, says in ((0, "has 1 as its first offset where 0 is needed"), (-1, f"as its last offset where {half.nnz} is needed")):
        offsets = half.indptr.copy()
        offsets[place] += 1 if place == 0 else -1
        np.savez(path, **parts, indptr=offsets)
        with pytest.raises(hostless.BadInputError, match=says):
            hostless.read(path)
    np.savez(path, b=np.ones(3))
    with pytest.raises(hostless.BadInputError, match="has no format.npy but b.npy"):
        hostless.read(path)
    sp.save_npz(path, sp.csr_array(dense * 1j))
    with pytest.raises(hostless.BadInputError, match="complex"):
        hostless.read(path)


@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", ">f4", "<f2", "<i8", ">i8", ">i4", "<i2", "|i1", "<u8", ">u2", "|u1", "|b1"])
def test_vectors_of_every_type(kind, tmp_path):
    path = tmp_path / "b.npy"
    values = np.array([1, 0, 3, 100, 0, 7]).astype(kind)
    for shaped in (values, values.reshape(6, 1), values.reshape(1, 6), np.asfortranarray(values.reshape(6, 1))):
        np.save(path, shaped)
        again = hostless.read(path)
        assert again.dtype == np.float64 and np.array_equal(again, values.astype(np.float64))
    np.save(path, np.asfortranarray(np.ones((6, 2)).astype(kind)))
    assert np.array_equal(hostless.read(path), np.ones((6, 2)))


def test_pipes_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(hostless.BadInputError, match="a pipe"):
        hostless.read(tmp_path / "pipe")
    with pytest.raises(hostless.BadInputError, match="a folder"):
        hostless.read(tmp_path)


def test_bad_files_are_named(tmp_path):
    path = tmp_path / "A.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n7 1 1.0\n")
    with pytest.raises(hostless.BadInputError, match="A.mtx:3"):
        hostless.read(path)
    for wrong in (dict(seed=-1), dict(seed=2**64), dict(size=2**63), dict(size=-1)):
        with pytest.raises(hostless.UsageError):
            hostless.generate("poisson2d", **{"size": 4, **wrong})
    with pytest.raises(hostless.BadInputError, match="nothing.mtx"):
        hostless.read(tmp_path / "nothing.mtx")
    with pytest.raises(hostless.UsageError, match="ending"):
        hostless.write(tmp_path / "A.txt", sp.eye_array(3))
    with pytest.raises(hostless.BadInputError, match="is nan"):
        hostless.write(tmp_path / "A.mtx", np.full((3, 3), np.nan))
    with pytest.raises(hostless.MachineError, match="No such file"):
        hostless.write(tmp_path / "no" / "folder" / "A.mtx", sp.eye_array(3))


@pytest.mark.parametrize("thing, kind, says", [
    (np.ones((2, 2, 2)), hostless.UsageError, r"shape \(2, 2, 2\)"), (np.ones((3, 0)), hostless.UsageError, r"shape \(3, 0\)"),
    (np.float64(3), hostless.UsageError, r"shape \(\)"), (3.0, TypeError, "a float to write"), ("text", TypeError, "a str to write")])
@pytest.mark.parametrize("name", ["w.npy", "w.mtx", "w.petsc"])
def test_what_is_neither_vector_nor_matrix_is_not_written(tmp_path, name, thing, kind, says):
    with pytest.raises(kind, match=says):
        hostless.write(tmp_path / name, thing)
    assert not (tmp_path / name).exists()


def test_whole_numbers_that_lose_digits_are_warned_of(tmp_path):
    with pytest.warns(hostless.HostlessWarning, match=r"a vector to write holds whole numbers up to 9007199254740993"):
        hostless.write(tmp_path / "w.npy", np.array([2**53 + 1, 5]))
    assert np.array_equal(hostless.read(tmp_path / "w.npy"), [2.0**53, 5])
    hostless.write(tmp_path / "w.npy", np.array([[2**53, 5, -1]] * 2))  # which it holds


@pytest.mark.parametrize("value, says", [(2**64 - 1, "18446744073709551615"), (2**53 + 1, "9007199254740993")])
def test_a_natural_number_beyond_float64_is_shown_as_it_is(tmp_path, value, says):
    np.save(tmp_path / "w.npy", np.array([1, value], dtype=np.uint64))
    with pytest.raises(hostless.BadInputError, match=f"the integer {says} is beyond"):
        hostless.read(tmp_path / "w.npy")


@pytest.mark.parametrize("given, says", [(dict(ranks=0), "ranks=0 .the rows of a plan"), (dict(ranks=5000), "are planned for at once"),
                                         (dict(ranks=2, seed=2**63), r"seed=9223372036854775808 .a whole number from 0 to 2\^63 - 1"),
                                         (dict(ranks=2, slices=2**31), r"slices=2147483648 .a whole number from 0 to 2\^31 - 1")])
def test_plans_refuse_in_words_of_their_own(given, says):
    with pytest.raises(hostless.UsageError, match=says):
        hostless.plan(sp.eye_array(9), **given)


def test_plans_need_entries():
    from scipy.sparse.linalg import aslinearoperator

    A = sp.eye_array(9, format="csr")
    with hostless.Matrix(A) as matrix:
        for operator, says in ((aslinearoperator(A), "a plan of a MatrixLinearOperator"), (matrix, "a plan of a Matrix")):
            with pytest.raises(hostless.UsageError, match=f"{says} .its entries.*Pass the matrix"):
                hostless.plan(operator)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_plans_are_those_of_the_command(ranks):
    plan = hostless.plan(hostless.generate("poisson2d", 20), ranks=ranks)
    said = command("plan", "--generate", "poisson2d", "--size", 20, "--ranks", ranks, "--json", "-")
    assert plan.summary == json.loads(said.stdout)
    assert plan.traffic.shape == (ranks, ranks) and np.all(np.diag(plan.traffic) == 0)
    total = plan.summary["total"]["sent"]
    assert 8 * plan.traffic.sum() == total["bytes_inside_nodes"] + total["bytes_between_nodes"]
    assert "total" in repr(plan)


@pytest.mark.parametrize("given, words", [({}, ()), (dict(memory="gpu"), ("--memory", "gpu")), (dict(route="two_step"), ("--route", "two_step")),
                                          (dict(ranks_per_node=2), ("--ranks-per-node", 2))])
def test_plans_on_a_machine_have_the_commands_prices(given, words):
    plan = hostless.plan(hostless.generate("poisson2d", 20), ranks=6, machine="lassen", **given)
    said = command("plan", "--generate", "poisson2d", "--size", 20, "--ranks", 6, "--machine", "lassen", *words, "--json", "-")
    assert plan.summary == json.loads(said.stdout) and plan.to_json() == said.stdout
    assert plan.summary["route"] == given.get("route", plan.summary["prices"]["cheapest"]["route"])
    assert "lassen: one exchange, 8 bytes an item" in plan.table and "cheapest: " in plan.table


def test_plans_on_a_machine_of_a_file(tmp_path):
    command("machine", "show", "lassen", "--json", tmp_path / "mine.json")
    A = hostless.generate("poisson2d", 9)
    assert hostless.plan(A, machine=tmp_path / "mine.json").summary == hostless.plan(A, machine="lassen").summary
    assert "prices" not in hostless.plan(A).summary


@pytest.mark.parametrize("given, error, says", [
    (dict(machine="nowhere"), hostless.UsageError, "nowhere"), (dict(machine="lumi"), hostless.BadInputError, "lumi: no data of messages"),
    (dict(machine=""), hostless.UsageError, "no machine has an empty name"), (dict(memory="gpu"), hostless.UsageError, "without a machine"),
    (dict(machine="lassen", memory="disk"), hostless.UsageError, "memory='disk'"), (dict(machine=3), TypeError, "machine is an int"), (dict(machine=b"nowhere"), hostless.UsageError, "nowhere")])
def test_plans_on_machines_that_price_nothing_are_refused(given, error, says):
    with pytest.raises(error, match=says):
        hostless.plan(hostless.generate("poisson2d", 9), **given)


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


@pytest.mark.parametrize("given, says", [(dict(name=None), "name=None"), (dict(boundary=3), "boundary=3"), (dict(scale="a"), "scale='a'"),
                                         (dict(contrast=[1]), "contrast=")])
def test_generate_says_which_is_of_the_wrong_type(given, says):
    with pytest.raises(TypeError, match=says):
        hostless.generate(**{"name": "poisson2d", "size": 3, **given})
    with pytest.raises(hostless.UsageError, match="contrast = inf"):
        hostless.generate("poisson2d", 3, contrast=10**400)


@pytest.mark.parametrize("shape", [(7, 1), (7, 3), (2, 5), (4, 4)])
def test_arrays_of_several_columns(tmp_path, shape):
    array = np.random.default_rng(3).standard_normal(shape)
    for name in ("X.npy", "X.mtx")[:1 if shape == (4, 4) else 2]:
        hostless.write(tmp_path / name, array)
        got = hostless.read(tmp_path / name)
        assert np.array_equal(got, array[:, 0] if shape[1] == 1 else array), name
    np.save(tmp_path / "C.npy", array)  # by rows
    assert np.array_equal(hostless.read(tmp_path / "C.npy"), array[:, 0] if shape[1] == 1 else array)
    with pytest.raises(hostless.BadInputError):
        hostless.write(tmp_path / "X.npy", np.full(shape, np.nan))
    if 1 < shape[1] != shape[0]:
        with pytest.raises(hostless.UsageError, match="a vector of PETSc's has one"):
            hostless.write(tmp_path / "X.petsc", array)

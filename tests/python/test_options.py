"""Every option of the table, through Python, with an effect that is seen; and the faces held against each other."""

import inspect
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import hostless
from hostless import _core, _options

ROOT = Path(__file__).resolve().parents[2]
N = 30


@pytest.fixture(scope="module")
def grid():
    return hostless.generate("poisson2d", N)


@pytest.fixture(scope="module")
def ones():
    return np.ones(N * N)


def solved(A, b, **options):
    x, info, result = hostless.cg(A, b, full_output=True, **{"rtol": 1e-8, **options})
    return x, info, result


def by_command(*words):
    return subprocess.run([hostless.command(), "solve", "--generate", "poisson2d", "--size", str(N), "--quiet", "--no-bandwidth",
                           *map(str, words)], capture_output=True, text=True, check=False)


# ---------------------------------------------------------------- what there is
def test_signatures_and_doc_strings_have_every_option():
    names = {"cg": set(_options.TABLE), "Matrix": {one.name for one in _options.of_matrix()},
             "solve": {one.name for one in _options.of_solve()}}
    for function, own in ((hostless.cg, "cg"), (hostless.Matrix.__init__, "Matrix"), (hostless.Matrix.solve, "solve")):
        parameters = inspect.signature(function).parameters
        assert names[own] <= set(parameters) and not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
        told = function.__doc__ + (hostless.Matrix.__doc__ if own == "Matrix" else hostless.cg.__doc__)
        assert all(re.search(rf"\b{name}\b", told) for name in names[own])
    defaults = {name: one.default for name, one in inspect.signature(hostless.cg).parameters.items()}
    assert (defaults["rtol"], defaults["method"], defaults["chebyshev_degree"], defaults["maxiter"], defaults["tune"]) == \
        (1e-5, "cg", 4, None, True)


def test_the_members_of_the_c_struct_are_the_options_of_c():
    header = (ROOT / "include/hostless/hostless.h").read_text()
    struct = re.sub(r"/\*.*?\*/", "", re.search(r"typedef struct hostless_options \{(.*?)\}", header, re.S)[1], flags=re.S)
    members = {name for declaration in struct.split(";") if declaration.strip()
               for name in re.findall(r"(\w+)(?:,|$)", re.sub(r"^\s*(const )?\w+", "", declaration.strip()))}
    page = _core.options_page()
    named = {row.split("|")[4].strip().strip("`") for row in page.splitlines() if row.startswith("| ")}
    named = {name for name in named if not name.startswith("no: ")} - {"C"}
    assert members - {"struct_size", "user"} == named


def test_no_cell_of_the_page_is_empty():
    rows = [row for row in _core.options_page().splitlines() if row.startswith("| ")]
    assert len(rows) > 45
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 7 and all(cells), row
        assert all(re.fullmatch(r"`[\w-]+`|no: .{8,}|C|command|Python", cell) for cell in cells[1:4]), row


# ---------------------------------------------------------------- effects
def test_unknown_names_are_refused_with_what_may_be_meant(grid, ones):
    with pytest.raises(TypeError, match="unexpected keyword argument 'matrix_precison'. Did you mean 'matrix_precision'"):
        hostless.cg(grid, ones, matrix_precison="fp32")
    with pytest.raises(TypeError, match="'method'. It is one of a solve"):
        hostless.Matrix(grid, method="cg")
    with hostless.Matrix(grid) as matrix, pytest.raises(TypeError, match="'slices'. It is one of the matrix"):
        matrix.solve(ones, slices=3)
    for function in (hostless.minres, hostless.bicgstab):
        with pytest.raises(TypeError, match=f"{function.__name__}.. got an unexpected keyword argument 'tol'. Did you mean 'rtol'"):
            function(grid, ones, tol=1e-8)
        assert function(grid, ones, rtol=1e-8, ranks=2, slices=3)[1] == 0


def test_errors_have_the_names_of_python(grid, ones, tmp_path):
    ends = tmp_path / "ends"
    solved(grid, ones, checkpoint=ends, checkpoint_every=10, maxiter=25)
    for options, text in ((dict(null_space="constant"), "Drop null_space='constant'[.]$"), (dict(resume=tmp_path / "ends", maxiter=5), "Raise maxiter[.]$"),
                          (dict(resume=__file__), "Name a file that checkpoint wrote[.]$"), (dict(profile="t"), "Use gpus=1[.]$")):
        with pytest.raises(hostless.Error, match=text) as raised:
            hostless.cg(grid, ones, **options)
        assert "--" not in str(raised.value).replace(str(tmp_path), "")
    for text, python in (("Use --run stream or graph.", "Use run='stream' or graph."), ("--gpus-of-mine, x--gpus, --transport processes", None),
                         ("(--max-iterations 7)", "(maxiter=7)"), ("--gpus", "gpus"), ("--rtol", "rtol"), ("Use --tune no.", "Use tune=False."),
                         ("(--symmetry-tolerance, 1e-09 now)", "(symmetry_tolerance, 1e-09 now)")):
        assert _core.as_python_spells(text) == (python or text)


@pytest.mark.parametrize("bad, kind, text", [
    (dict(matrix_precision="fp16"), ValueError, "matrix_precision='fp16' .unknown.. Use fp64 or fp32."),
    (dict(chebyshev_degree=0), ValueError, "chebyshev_degree=0 .a whole number from 1 to 1000 is needed"),
    (dict(chebyshev_degree=1001), ValueError, "chebyshev_degree=1001 .a whole number from 1 to 1000 is needed"),
    (dict(chebyshev_degree=2), ValueError, "with preconditioner none"),
    (dict(chebyshev_ratio=1), ValueError, "chebyshev_ratio=1 .a finite number above 1"), (dict(chebyshev_inner="chebyshev"), ValueError, "inner='cheb"),
    (dict(chebyshev_upper=-1), ValueError, "chebyshev_upper=-1"), (dict(check_interval=0), ValueError, "check_interval=0"),
    (dict(time_limit=-1), ValueError, "time_limit=-1 .a finite number above 0"), (dict(time_limit="long"), TypeError, "time_limit='long'"),
    (dict(null_space="all"), ValueError, "null_space='all' .unknown.. Use none or constant."), (dict(null_space=3), TypeError, "null_space=3"),
    (dict(checkpoint=""), ValueError, "checkpoint=''"), (dict(checkpoint="c"), ValueError, "checkpoint_every"),
    (dict(checkpoint_every=0), ValueError, "checkpoint_every=0"), (dict(checkpoint_every=3), ValueError, "without a checkpoint file"), (dict(tune="on"), TypeError, "tune='on'"),
    (dict(gpu_transport="pigeon"), ValueError, "gpu_transport='pigeon'"), (dict(gpu_transport="nccl"), ValueError, "nccl on the processor"),
    (dict(profile="t.json"), ValueError, "a profile of a run on the processor"), (dict(longest_launch_s=0), ValueError, "longest_launch_s=0"),
    (dict(longest_launch_s=3.0), ValueError, "longest launch 3 s on the processor"), (dict(tune=False), ValueError, "tune=False without a GPU"),
    (dict(oversubscribe=True), ValueError, "oversubscribe"), (dict(setup_threads=-1), ValueError, "setup_threads=-1"),
    (dict(symmetry_tolerance=-1), ValueError, "symmetry_tolerance=-1"), (dict(block=5), ValueError, "block=5 .one of 0, 1"),
    (dict(partition="fair"), ValueError, "partition='fair' .unknown"), (dict(columns="17"), ValueError, "columns='17'"),
    (dict(row_lanes=3), ValueError, "row_lanes=3"), (dict(slices=-1), ValueError, "slices=-1"), (dict(route="scenic"), ValueError, "route='scenic'"),
    (dict(ranks_per_node=-1), ValueError, "ranks_per_node=-1"), (dict(seed=-1), ValueError, "seed=-1"),
], ids=str)
def test_values_are_refused_as_python_spells_them(grid, ones, bad, kind, text):
    with pytest.raises(kind, match=text):
        hostless.cg(grid, ones, **bad)


def test_a_polynomial_by_its_options(grid, ones):
    counts = {}
    for name, options in {"plain": {}, "degree": dict(chebyshev_degree=9), "ratio": dict(chebyshev_ratio=4), "upper": dict(chebyshev_upper=5),
                          "inner": dict(chebyshev_inner="none")}.items():
        _, info, result = solved(grid, ones, preconditioner="chebyshev", **options)
        words = [word for key, value in options.items() for word in ("--" + key.replace("_", "-"), str(value))]
        assert info == 0 and all(result.settings[key] == str(value) for key, value in options.items())
        counts[name] = result.residual_history
        if options:
            assert list(counts[name]) != list(counts["plain"]), name
        assert by_command("--preconditioner", "chebyshev", *words).returncode == 0
    assert len(counts["degree"]) < len(counts["plain"])


def test_an_fp32_matrix(grid, ones):
    x, info, result = solved(grid, ones, matrix_precision="fp32")
    assert info == 0 and result.choices["matrix_precision"].startswith("fp32") and result.to_dict()["replacements"] > 0
    assert np.linalg.norm(ones - grid @ x) <= 1.01e-8 * np.linalg.norm(ones)
    with pytest.raises(hostless.UsageError, match="Use method cg"):
        hostless.cg(grid, ones, matrix_precision="fp32", method="pipelined-cg")


def test_a_null_space(tmp_path):
    A = hostless.generate("poisson2d", 20, boundary="neumann")
    b = np.random.default_rng(5).standard_normal(A.shape[0])
    x, info, result = solved(A, b, null_space="constant")
    assert info == 0 and abs(x.mean()) < 1e-12 and result.to_dict()["null_space_removed"] > 0
    assert np.linalg.norm(b - b.mean() - A @ x) <= 1.1e-8 * np.linalg.norm(b)
    assert solved(A, b, null_space="none", maxiter=500)[1] != 0


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_guess_without_its_mean_where_nothing_is_iterated(ranks):
    edges = np.diag([1.0, 2.0, -3.0, 4.0])                 # of a cycle, one of which makes a diagonal entry negative
    around = np.eye(4) - np.roll(np.eye(4), 1, axis=1)
    A, b, guess = around.T @ edges @ around, np.array([1.0, -1.0, 2.0, -2.0]), np.array([5.0, 6.0, 7.0, 9.0])
    with hostless.Matrix(A, ranks=ranks) as matrix:
        for scale, more in ((1e-200, {}), (1.0, {"preconditioner": "jacobi"})):
            x, info, result = matrix.solve(scale * b, x0=guess, null_space="constant", full_output=True, **more)
            assert info != 0 and result.iterations == 0 and result.status in ("breakdown", "indefinite_preconditioner")
            assert x == pytest.approx(guess - guess.mean(), abs=1e-15)


def test_time_is_up():
    A = hostless.generate("poisson2d", 300, contrast=1e6)
    for limit in (0.2, 2, 20):  # on a busy machine the first may be up before an iteration
        x, info, result = hostless.cg(A, np.ones(A.shape[0]), rtol=0, maxiter=10**9, time_limit=limit, full_output=True)
        if result.iterations > 0:
            break
    assert result.status == "aborted" and info == result.iterations > 0 and f"the time limit of {limit} s" in result.message
    assert np.isfinite(x).all() and np.abs(x).max() > 0


def test_the_time_is_of_the_whole_call():
    A = hostless.generate("poisson2d", 300, contrast=1e6)
    b = np.random.default_rng(3).standard_normal((A.shape[0], 5))
    guess = np.ones_like(b)
    for several in (dict(rhs_columns=2), dict(callback=lambda x: None)):
        with hostless.Matrix(A) as matrix:
            for limit in (0.3, 3, 30):
                begun = time.process_time()
                X, info, results = matrix.solve(b, x0=guess, rtol=0, maxiter=10**9, time_limit=limit, full_output=True, **several)
                used = time.process_time() - begun
                if results[0].iterations > 0:
                    break
        at_once = several.get("rhs_columns", 1)
        assert info > 0 and [one.status for one in results] == ["aborted"] * 5
        assert all(f"the time limit of {limit} s" in one.message and one.settings["time_limit_s"] == str(limit) for one in results)
        # The first group has taken it all: no other one has taken a step.
        assert [one.iterations > 0 for one in results] == [k < at_once for k in range(5)]
        assert np.array_equal(X[:, at_once:], guess[:, at_once:]) and not np.array_equal(X[:, 0], guess[:, 0])
        assert used < 5 * limit + 1


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_checkpoint_is_the_commands_and_goes_on_to_the_bit(grid, ones, tmp_path, ranks):
    whole, info, result = solved(grid, ones, ranks=ranks)
    assert info == 0
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    _, info, stopped = solved(grid, ones, ranks=ranks, checkpoint=mine, checkpoint_every=10, maxiter=25)
    assert info == 25 and stopped.to_dict()["checkpoints"] == 3  # 10, 20, and the end
    assert by_command("--ranks", ranks, "--checkpoint", theirs, "--checkpoint-every", 10, "--max-iterations", 25).returncode == 1
    assert mine.read_bytes() == theirs.read_bytes()
    x, info, resumed = solved(grid, ones, ranks=ranks, resume=theirs)
    assert info == 0 and resumed.to_dict()["resumed_at"] == 25 and np.array_equal(x, whole)
    assert list(resumed.residual_history) == list(result.residual_history)
    with pytest.raises(hostless.UsageError, match="2 columns of b"):
        hostless.cg(grid, np.ones((N * N, 2)), resume=theirs)
    for x0 in (ones, "Mb"):
        with pytest.raises(hostless.UsageError, match="x0 with resume"):
            hostless.cg(grid, ones, x0=x0, resume=theirs)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_checkpoint_goes_on_with_the_M_that_it_was_written_with(grid, ones, tmp_path, ranks):
    weights = np.linspace(1, 3, N * N)

    def solve(scaled, **how):
        M = sp.linalg.LinearOperator(grid.shape, matvec=lambda r: scaled * r)
        return hostless.cg(grid, ones, M=M, rtol=1e-8, ranks=ranks, full_output=True, **how)

    whole, info, result = solve(weights)
    assert info == 0
    file = tmp_path / "c"
    assert solve(weights, checkpoint=file, checkpoint_every=10, maxiter=25)[1] == 25
    x, info, resumed = solve(weights, resume=file)
    assert info == 0 and np.array_equal(x, whole) and list(resumed.residual_history) == list(result.residual_history)
    assert solve(weights * (1 + 1e-10 * ones), resume=file)[1] == 0  # as of a library on another processor
    other = weights.copy()
    other[7] *= 1.01
    for M in (other, weights[::-1], 2 * weights):
        with pytest.raises(hostless.BadInputError, match="c: a checkpoint of another solve: another preconditioner function M "):
            solve(M, resume=file)
    with pytest.raises(hostless.BadInputError, match="preconditioner function [(]here none[)]"):
        hostless.cg(grid, ones, rtol=1e-8, ranks=ranks, resume=file)


def test_a_checkpoint_that_cannot_be_written_costs_nobody_x(grid, ones, tmp_path):
    whole, info, _ = solved(grid, ones)
    folder = tmp_path / "gone"
    how = dict(checkpoint=folder / "c", checkpoint_every=10)
    with pytest.raises(hostless.MachineError, match="gone/c"):  # before the first iteration
        solved(grid, ones, **how, callback=pytest.fail)
    folder.mkdir()
    with pytest.warns(hostless.HostlessWarning, match="gone/c.*x is returned all the same"):
        x, info, result = solved(grid, ones, **how, callback=lambda _: folder.exists() and folder.rmdir())
    assert info == 0 and result.to_dict()["checkpoints"] == 0 and np.array_equal(x, whole)


def test_choices_that_change_no_bit(grid, ones, tmp_path):
    parts = tmp_path / "parts.txt"
    parts.write_text("\n".join(str(int(row >= 400)) for row in range(N * N)) + "\n")
    expected = solved(grid, ones, ranks=2)[0]
    for options in (dict(check_interval=7), dict(setup_threads=3), dict(columns="32"), dict(columns=16), dict(route="two_step", ranks_per_node=1), dict(seed=9),
                    dict(symmetry_tolerance=1e-3), dict(check_symmetry=False),
                    dict(format="csr"), dict(run="persistent", lanes=2), dict(run="graph"), dict(divergence_limit=1e20)):
        x, info, result = solved(grid, ones, ranks=2, **options)
        assert info == 0 and np.array_equal(x, expected), options
        for key, value in options.items():
            said = {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else value
            assert result.settings[key] == (said if isinstance(said, str) else f"{said:g}"), options
    for options in (dict(slices=3), dict(row_lanes=4), dict(partition=f"file:{parts}"), dict(partition="metis")):
        x, info, result = solved(grid, ones, ranks=2, **options)
        assert info == 0 and not np.array_equal(x, expected) and np.allclose(x, expected, rtol=1e-5), options


def test_the_same_settings_as_the_command(grid, ones, tmp_path):
    import json

    path = tmp_path / "result.json"
    by_command("--json", path, "--check-interval", 3, "--slices", 5)
    theirs = json.loads(path.read_text())["settings"]
    mine = solved(grid, ones, check_interval=3, slices=5)[2].settings
    assert mine == theirs and theirs["check_symmetry"] == "yes"  # readers have compared every entry


def test_symmetry_is_looked_at_as_asked(grid, ones):
    A = sp.csr_array(grid, copy=True)
    A.data[1] *= 1 + 1e-6
    with pytest.raises(hostless.BadInputError, match="not symmetric"):
        hostless.cg(A, ones)
    with pytest.warns(hostless.HostlessWarning, match="up to rounding"):
        assert hostless.cg(A, ones, symmetry_tolerance=1e-3)[1] == 0
    assert hostless.cg(A, ones, check_symmetry=False)[1] == 0
    with pytest.raises(hostless.UsageError, match="symmetry_tolerance=0.001 with check_symmetry=False"):
        hostless.cg(A, ones, check_symmetry=False, symmetry_tolerance=1e-3)


def test_a_changed_option_makes_another_solver(grid, ones):
    with hostless.Matrix(grid) as matrix:
        matrix.solve(ones)
        matrix.solve(ones, rtol=1e-9)
        assert matrix.set_ups == 1
        matrix.solve(ones, check_interval=4)
        matrix.solve(ones, check_interval=4, atol=1e-3)
        assert matrix.set_ups == 2
        with pytest.raises(hostless.UsageError, match="slices=3 with a hostless.Matrix"):
            hostless.cg(matrix, ones, slices=3)
        assert hostless.cg(matrix, ones, slices=0, lanes=1)[1] == 0


@pytest.mark.parametrize("name", ["rtol", "time_limit", "divergence_limit", "chebyshev_ratio"])
def test_numbers_that_no_float64_holds(name):
    a, b = np.eye(2), np.ones(2)
    for far in (10**400, np.inf):
        if name == "rtol":  # of which infinity is one, as in scipy
            assert hostless.cg(a, b, rtol=far)[1] == hostless.cg(a, 0 * b, b, rtol=far)[1] == 0
        else:
            with pytest.raises(hostless.UsageError, match=f"{name}=inf .a (finite )?number"):
                hostless.cg(a, b, **{name: far})
    with pytest.raises(hostless.UsageError, match=f"{name}=nan .a (finite )?number .* is needed"):
        hostless.cg(a, b, **{name: np.nan})
    with pytest.raises(hostless.UsageError, match=name):
        hostless.cg(a, b, **{name: -10**400})
    for wrong in ([1], 1j, object()):
        with pytest.raises(hostless.NumberTypeError, match=f"{name}=.*a number is meant"):
            hostless.cg(a, b, **{name: wrong})


def test_types_are_refused_by_the_option_s_name():
    a, b = np.eye(2), np.ones(2)
    with pytest.raises(hostless.UsageError, match="gpus="):
        hostless.cg(a, b, gpus=10**400)
    with pytest.raises(TypeError, match="checkpoint=3 is an int"):
        hostless.cg(a, b, checkpoint=3, checkpoint_every=1)


def test_true_is_no_number_of_things(grid, ones):
    for value in (True, False):
        for call in (lambda: hostless.cg(grid, ones, maxiter=value), lambda: hostless.cg(grid, ones, rhs_columns=value),
                     lambda: hostless.generate("poisson2d", value)):
            with pytest.raises(hostless.NumberTypeError, match=f"{value} is a bool.*whole number is meant"):
                call()
        for call in (lambda: hostless.minres(grid, ones, shift=value), lambda: hostless.cg(grid, ones, rtol=np.bool_(value))):
            with pytest.raises(hostless.NumberTypeError, match=r"(shift|rtol)=.*\(a number is meant\)"):
                call()
    for how in (dict(steps=True), dict(steps=2, every=True), dict(steps=2, ranks=True)):
        with pytest.raises(TypeError, match="True is a bool"):
            hostless.Stencil("u*0.5").run(np.zeros((9, 9)), **how)

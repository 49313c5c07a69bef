"""What compiles stencils, where that is kept, and NumPy in its place: the same bits."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest

import hostless
from stencil_oracle import BOUNDARIES, same_bits, steps

TYPES = (np.float32, np.float64)
ISAS = ["", "baseline"] + (["v3"] if "avx2" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8") else [])
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTLESS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    return tmp_path / "cache" / "stencils"


@pytest.fixture
def no_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def random(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


class Expressions:
    """Random expressions, and beside each a function of Neighbours that does the same with NumPy."""

    def __init__(self, seed, dtype):
        self.random, self.t = np.random.default_rng(seed), dtype

    def number(self, depth):
        kind = self.random.integers(0, 11 if depth else 3)
        if kind == 0:
            value = float(np.round(self.random.uniform(0, 3), 3))
            return repr(value), lambda f: self.t(value)
        if kind in (1, 2):
            name, a, b = self.random.choice(["u", "v"]), int(self.random.integers(-2, 3)), int(self.random.integers(-2, 3))
            return f"{name}[{a},{b}]", lambda f: f[name][a, b]
        (x, of_x), (y, of_y) = self.number(depth - 1), self.number(depth - 1)
        if kind < 7:
            sign = "+-*/"[kind - 3]
            does = (np.add, np.subtract, np.multiply, np.divide)[kind - 3]
            return f"({x} {sign} {y})", lambda f: does(of_x(f), of_y(f))
        if kind == 7:
            return f"(-{x})**3", lambda f: (lambda z: z * z * z)(-of_x(f))
        if kind == 8:
            return f"sqrt(abs({x}))", lambda f: np.sqrt(np.abs(of_x(f)))
        if kind == 9:
            return f"max({x}, {y})", lambda f: (lambda p, q: np.where(q > p, q, p))(of_x(f), of_y(f))
        condition, holds = self.condition(depth - 1)
        return f"where({condition}, {x}, {y})", lambda f: np.where(holds(f), of_x(f), of_y(f))

    def condition(self, depth):
        (x, of_x), (y, of_y) = self.number(depth), self.number(depth)
        return (f"{x} < {y}", lambda f: of_x(f) < of_y(f)) if self.random.integers(0, 2) else (
            f"not ({x} < {y} or {y} != {x})", lambda f: ~((of_x(f) < of_y(f)) | (of_y(f) != of_x(f))))


@pytest.mark.parametrize("seed", range(12))
def test_random_expressions(seed, folder, monkeypatch, tmp_path):
    dtype, boundary = TYPES[seed % 2], BOUNDARIES[seed % 3]
    make = Expressions(seed, dtype)
    (one, of_one), (two, of_two) = make.number(5), make.number(4)
    # both read both, so that radius and axes are those of this test
    one, two = f"u*0.5 + v[0,2]*0.25 + v[2,0]*0.125 + {one}", f"v + u - ({two})"
    stencil = hostless.Stencil({"u": one, "v": two})

    def update(u, v):
        f = {"u": u, "v": v}
        return [u[0, 0] * dtype(0.5) + v[0, 2] * dtype(0.25) + v[2, 0] * dtype(0.125) + of_one(f), v[0, 0] + u[0, 0] - of_two(f)]

    u, v = random((15, 19), dtype, seed), random((15, 19), dtype, seed + 100)
    expected = steps([u.copy(), v.copy()], update, 2, boundary, (2, 2))
    compiled = (u.copy(), v.copy())
    result = stencil.run(compiled, 2, boundary=boundary, ranks=2)
    assert result.by == "compiled"
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.warns(hostless.HostlessWarning, match="no C\\+\\+ compiler"):
        assert stencil.run((u, v), 2, boundary=boundary).by == "numpy"
    for mine, sliced, meant in zip(compiled, (u, v), expected):
        assert np.array_equal(mine, meant, equal_nan=True) and np.array_equal(sliced, meant, equal_nan=True)
        assert (np.signbit(mine) == np.signbit(meant))[~np.isnan(meant)].all()


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("isa", ISAS)
def test_every_compiler_and_instruction_set(compiler, isa, folder, monkeypatch):
    text = "u + k*(u[-1,0]*a - u[0,2]/3 + u[1,-1]*u[1,-1]*0.1) - where(u > 0.5, u**-2, -u)"
    a, u = random((20, 40)), random((20, 40), seed=1) + 2
    with warnings.catch_warnings(), monkeypatch.context() as without:
        warnings.simplefilter("ignore", hostless.HostlessWarning)
        without.setenv("PATH", str(folder))
        expected = u.copy()
        assert hostless.Stencil(text, k=0.3, a=a).run(expected, 4, boundary="periodic").by == "numpy"
    monkeypatch.setenv("CXX", compiler)
    probe = "import hostless, numpy as np, sys\n" \
            "u, a = np.load(sys.argv[1]), np.load(sys.argv[2])\n" \
            f"assert hostless.Stencil({text!r}, k=0.3, a=a).run(u, 4, boundary='periodic', ranks=2).by == 'compiled'\n" \
            "np.save(sys.argv[1], u)"
    paths = [str(folder.parents[1] / name) for name in ("u.npy", "a.npy")]
    np.save(paths[0], u)
    np.save(paths[1], a)
    environment = {**os.environ, **({"HOSTLESS_ISA": isa} if isa else {})}
    subprocess.run([sys.executable, "-c", probe, *paths], check=True, env=environment)
    assert same_bits(np.load(paths[0]), expected)


class TestCache:
    def test_kept_and_private(self, folder):
        u = np.zeros((6, 6))
        hostless.Stencil("u + 0.25*u[1,0] + 17").run(u, 1)
        kept = list(folder.iterdir())
        assert len(kept) == 1 and kept[0].suffix == ".so"
        assert not folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        hostless.Stencil("u + 0.25*u[1,0] + 17").run(u, 1)  # the same text
        hostless.Stencil("u + k*u[1,0] + 17", k=1).run(u, 1)
        hostless.Stencil("u + k*u[1,0] + 17", k=2).run(u, 1)  # a parameter is no other text
        assert len(list(folder.iterdir())) == 2

    SCRIPT = "import hostless, numpy as np\nu = np.zeros((6, 6))\nhostless.Stencil('u + 0.25*u[1,0] + 18').run(u, 1)\nassert u[2, 2] == 18"

    def run(self, **environment):
        return subprocess.run([sys.executable, "-c", self.SCRIPT], env={**os.environ, **environment}, capture_output=True, text=True,
                              check=False)

    def test_compiled_once_for_all_processes(self, folder, tmp_path):
        log = tmp_path / "calls"
        wrapper = tmp_path / "cxx"
        wrapper.write_text(f"#!/bin/sh\necho \"$*\" >> {log}\nexec c++ \"$@\"\n")
        wrapper.chmod(0o755)
        for _ in range(2):
            ran = self.run(CXX=str(wrapper))
            assert ran.returncode == 0, ran.stderr
        assert sum("-shared" in line for line in log.read_text().splitlines()) == 1
        assert "-ffp-contract=off" in log.read_text()

    def test_what_was_written_by_halves(self, folder):
        assert self.run().returncode == 0
        kept, = folder.iterdir()
        whole = kept.read_bytes()
        kept.write_bytes(whole[:1000])
        assert self.run().returncode == 0
        assert kept.stat().st_size > 1000

    def test_a_folder_that_others_may_write_is_not_trusted(self, folder):
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        assert self.run().returncode == 0
        assert list(folder.iterdir()) == []

    def test_no_folder(self, tmp_path):
        (tmp_path / "file").write_text("")
        assert self.run(HOSTLESS_CACHE_DIR=str(tmp_path / "file")).returncode == 0


class TestCompilers:
    def test_one_that_fails(self, folder, tmp_path, monkeypatch):
        broken = tmp_path / "cxx"
        broken.write_text("#!/bin/sh\ncase \"$*\" in --version) echo broken; exit 0;; esac\necho 'no such flag, it says' >&2\nexit 3\n")
        broken.chmod(0o755)
        monkeypatch.setenv("CXX", str(broken))
        u = random((6, 6))
        before = u.copy()
        with pytest.raises(hostless.MachineError, match=r"u\[0,1\]\*7'\) does not compile .* 3;.*\n.*no such flag") as raised:
            hostless.Stencil("u[0,1]*7").run(u, 1)
        assert str(broken) in str(raised.value) and same_bits(u, before)
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize("words, text", [("no-such-compiler -O3", "no such program"), ("'g++", "No closing quotation")])
    def test_one_that_is_not_there(self, words, text, folder, monkeypatch):
        monkeypatch.setenv("CXX", words)
        with pytest.raises(hostless.UsageError, match=f"CXX=.*{text}"):
            hostless.Stencil("u[0,1]*7").run(np.zeros((5, 5)), 1)

    def test_one_that_makes_something_else(self, folder, tmp_path, monkeypatch):
        odd = tmp_path / "cxx"
        odd.write_text("#!/bin/sh\nwhile [ $# -gt 1 ]; do if [ \"$1\" = -o ]; then echo no library > \"$2\"; fi; shift; done\n")
        odd.chmod(0o755)
        monkeypatch.setenv("CXX", str(odd))
        with pytest.raises(hostless.MachineError, match="u\\*9'\\) was not written to, or not loaded from, .*HOSTLESS_CACHE_DIR"):
            hostless.Stencil("u*9").run(np.zeros(5), 1)

    def test_one_with_words(self, folder, monkeypatch):
        monkeypatch.setenv("CXX", "c++ -g1")
        u = np.ones((5, 5))
        assert hostless.Stencil("u[0,1]*7").run(u, 1).by == "compiled" and u[2, 2] == 7

    def test_named_ones_need_none(self, no_compiler):
        assert hostless.Stencil.named("jacobi2d").run(random((9, 9)), 3).by == "named"

    def test_source(self):
        stencil = hostless.Stencil("u + k*u[1,0]", k=3)
        assert "using T = float;" in stencil.source("float32") and "using T = double;" in stencil.source()
        assert "p[0]" in hostless.Stencil("u*k", k=3).source(axes=2)
        for call, text in ((lambda: hostless.Stencil("u*2").source(), "axes=None"), (lambda: stencil.source(axes=3), "axes=3"),
                           (lambda: hostless.Stencil.named("heat").source(), "no source")):
            with pytest.raises(hostless.UsageError, match=text):
                call()


@pytest.mark.filterwarnings("ignore::hostless.HostlessWarning")
class TestNumPyInItsPlace:
    HEAT = "u + k*(((u[0,-1] + u[0,1]) + (u[-1,0] + u[1,0])) - 4*u)"

    def both(self, u, *arguments, **options):
        v = u.copy()
        mine = hostless.Stencil(self.HEAT, k=0.2).run(u, *arguments, **options)
        other = hostless.Stencil.named("heat").run(v, *arguments, **options)
        assert mine.by == "numpy" and same_bits(u, v)
        assert (mine.status, mine.steps, repr(mine.history)) == (other.status, other.steps, repr(other.history))  # NaN equals nothing
        return mine

    @pytest.mark.parametrize("boundary", [*BOUNDARIES, ("periodic", "neumann")])
    @pytest.mark.parametrize("dtype", TYPES)
    def test_looks_and_endings(self, boundary, dtype, no_compiler):
        assert self.both(random((20, 23), dtype), 30, boundary=boundary, every=7).status == "steps_done"
        assert self.both(random((9, 9), dtype), 10000, boundary=boundary, every=10, tolerance=1e-3).status == "steady"
        u = random((9, 9), dtype)
        u[4, 4] = np.inf
        assert self.both(u.copy(), 3, boundary=boundary).message and self.both(u, 30, boundary=boundary, every=4).steps == 4
        assert self.both(random((9, 9), dtype), 30, boundary=boundary, every=3, callback=lambda change: change.step == 9).steps == 9

    def test_time_and_exceptions(self, no_compiler):
        u = np.zeros((5, 5))
        result = hostless.Stencil("u + 1").run(u, 10**9, time_limit=0.1)
        assert result.status == "aborted" and "time limit" in result.message and (u == result.steps).all()

        def callback(change):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            hostless.Stencil("u + 1").run(u, 10, every=3, callback=callback)
        assert (u == result.steps + 3).all()

    @pytest.mark.parametrize("how", [{"ranks": 2}, {"ranks_along": (2, 1)}, {"depth": 2}, {"depth": 2, "block_steps": 2}])
    def test_what_it_cannot_do(self, how, no_compiler):
        with pytest.raises(hostless.MachineError, match="without a C\\+\\+ compiler"):
            hostless.Stencil("u + 1").run(np.zeros((5, 5)), 1, **how)
        assert hostless.Stencil("u + 1").run(np.zeros((5, 5)), 1, ranks=1, depth=1)

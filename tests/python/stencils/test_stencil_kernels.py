"""Stencils on arrays of a GPU without one: NVRTC compiles the kernels' text, and the same text, compiled for the processor with a loop for its
threads, has NumPy's bits. CuPy is played by arrays of the host."""

import ctypes
import itertools
import subprocess
import sys
import types

import numpy as np
import pytest

import hostless
from hostless import _stencil_gpu, _stencil_nvrtc, _stencil_numpy
from hostless._stencil_source import kernel_source_of
from stencil_oracle import BOUNDARIES, same_bits
from test_stencil import HEAT, WIDE, random

PLAYED = """
struct Index { unsigned x; };
static thread_local Index blockIdx, blockDim, threadIdx;
#define __global__ static
#define hostless_step hostless_kernel
#include <cmath>
using namespace std;
%s
extern "C" void hostless_play(long long threads, Arrays const* a, Extent const* e, Parameters const* p) {
  blockDim.x = 64;
  for (long long k = 0; k < (threads + 63) / 64 * 64; ++k) {
    blockIdx.x = unsigned(k / 64), threadIdx.x = unsigned(k %% 64);
    hostless_kernel(*a, *e, *p);
  }
}
"""


class PlayedDriver:
    """Launches by calling."""

    def __init__(self, folder):
        self.folder, self.what, self.launches = folder, "a test", 0

    def capability(self):
        return (9, 0)

    def function(self, image):
        return ctypes.CDLL(image.decode()).hostless_play

    def launch(self, function, threads, stream, arguments):
        assert stream == 7
        self.launches += 1
        function(ctypes.c_longlong(threads), *(ctypes.byref(one) for one in arguments))

    def wait(self, stream):
        pass


class PlayedArray:
    """What of cupy.ndarray is asked."""

    def __init__(self, values):
        self.values = values
        self.shape, self.dtype, self.strides, self.device = values.shape, values.dtype, values.strides, 0
        self.data = types.SimpleNamespace(ptr=values.ctypes.data)
        self.__cuda_array_interface__ = {}

    def copy(self, order):
        return PlayedArray(self.values.copy(order=order))

    def get(self):
        return self.values.copy()

    def __setitem__(self, key, other):
        self.values[key] = other.values


PlayedArray.__module__ = "cupy"


@pytest.fixture
def played(monkeypatch, tmp_path):
    def compile_it(source, capability, what):
        number = len(list(tmp_path.iterdir()))
        text, library = tmp_path / f"{number}.cpp", tmp_path / f"{number}.so"
        text.write_text(PLAYED % source.replace('extern "C" ', ""))
        subprocess.run(["c++", "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", str(library), str(text)], check=True)
        return str(library).encode()

    driver = PlayedDriver(tmp_path)
    current = types.SimpleNamespace(cuda=types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=7)))
    monkeypatch.setitem(sys.modules, "cupy", current)
    monkeypatch.setattr(_stencil_gpu, "Driver", lambda what: driver)
    monkeypatch.setattr(_stencil_gpu, "_image", compile_it)
    return driver


def by_numpy(stencil, arrays, steps, boundary, coefficients=()):
    words = (boundary,) * arrays[0].ndim if isinstance(boundary, str) else boundary
    stepper = _stencil_numpy.Stepper(stencil._program, [*arrays, *coefficients], words, tuple(stencil.parameters.values()))
    for _ in range(steps):
        stepper.fields = stepper.next()
    return stepper.fields


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, BOUNDARIES)))
def test_bits_are_numpys(played, dtype, boundary):
    a, b = random((9, 11), dtype, 3), random((9, 11), dtype, 4) + dtype(0.5)
    u = random((9, 11), dtype)
    stencil = hostless.Stencil(WIDE, k=0.3, a=PlayedArray(a), b=PlayedArray(b))
    expected = by_numpy(stencil, [u], 3, boundary, [a, b])
    result = stencil.run(PlayedArray(u), 3, boundary=boundary)
    assert (result.by, result.steps, played.launches) == ("nvrtc", 3, 3) and same_bits(u, expected[0])


def test_fields_axes_and_strides(played):
    for shape, text in (((17,), "0.5*(u[-2] + v[1])"), ((5, 6, 7), "0.5*(u[-1,0,0] + v[0,1,-1])")):
        u, v = random(shape), np.asfortranarray(random(shape, seed=2))
        stencil = hostless.Stencil({"u": text, "v": "u"})
        expected = by_numpy(stencil, [u, v], 4, "neumann")
        stencil.run((PlayedArray(u), PlayedArray(v)), 4, boundary="neumann")
        assert same_bits(u, expected[0]) and same_bits(v, expected[1])


def test_looks_and_endings_are_the_hosts(played):
    heat = hostless.Stencil(HEAT, k=0.2)
    u, v = random((20, 30)), random((20, 30))
    host, seen = heat.run(u, 40, every=7, tolerance=0.3), []
    gpu = heat.run(PlayedArray(v), 40, every=7, tolerance=0.3, callback=lambda change: seen.append(change.step))
    assert (gpu.status, gpu.steps, gpu.history) == (host.status, host.steps, host.history) and same_bits(u, v)
    assert seen == [change.step for change in host.history]
    v[3, 3] = np.nan
    assert heat.run(PlayedArray(v), 5).status == "not_finite"
    assert heat.run(PlayedArray(np.zeros((9, 9))), 10**9, time_limit=0.05).status == "aborted"
    assert heat.run(PlayedArray(np.ones((2, 2))), 3).steps == 3  # every cell stays as given


def test_what_is_refused(played):
    heat, u = hostless.Stencil(HEAT, k=0.2), PlayedArray(np.zeros((6, 6)))
    for call, kind, words in ((lambda: heat.run(u, 1, ranks=2), hostless.UsageError, "on arrays of a GPU"),
                              (lambda: hostless.Stencil.named("heat").run(u, 1), hostless.UsageError, "hostless stencil --gpus 1"),
                              (lambda: heat.run(PlayedArray(np.zeros((6, 6), int)), 1), TypeError, "int64"),
                              (lambda: heat.run(PlayedArray(np.zeros(6)), 1), hostless.UsageError, "arrays of 1 axis"),
                              (lambda: hostless.Stencil("u*a", a=np.ones((6, 6))).run(u, 1), hostless.UsageError, "one package on one GPU"),
                              (lambda: hostless.Stencil("u*a", a=PlayedArray(np.ones((6, 5)))).run(u, 1), hostless.UsageError, "all arrays are alike"),
                              (lambda: hostless.Stencil({"u": "v", "v": "u"}).run((u, u), 1), hostless.UsageError, "share memory"),
                              (lambda: hostless.Stencil("u*a", a=u).run(np.zeros((6, 6)), 1), hostless.UsageError, "the fields are not")):
        with pytest.raises(kind, match=words):
            call()


@pytest.mark.skipif(_stencil_nvrtc.nvrtc() is None, reason="there is no NVRTC here")
@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
def test_nvrtc_compiles_every_kind_of_text(capability):
    every = "exp(u) + atan2(u, k) + cbrt(u[-1,0]) + where(u > 0.5 and not u[0,1] <= k, min(u, 1), max(u**3, floor(u), abs(u)))"
    for text, dtype, boundary in itertools.product((every, HEAT), (np.float32, np.float64), (("dirichlet", "neumann"), ("periodic", "periodic"))):
        source = kernel_source_of(hostless.Stencil(text, k=0.2)._program, 2, np.dtype(dtype), boundary)
        assert _stencil_nvrtc.compiled(source, capability, "a test").startswith(b"\x7fELF")
    with pytest.raises(hostless.MachineError, match="NVRTC fails"):
        _stencil_nvrtc.compiled(source.replace("T const t0", "T const t0, t0"), capability, "a test")

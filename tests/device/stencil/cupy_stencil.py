#!/usr/bin/env python3
"""Stencils of expressions on arrays that CuPy (and torch, where it is installed) has on a GPU: bits of the processor's run, looks, endings. Needs
a GPU, CuPy and NVRTC.

  PYTHONPATH=FOLDER_OF_THE_PACKAGE tests/device/stencil/cupy_stencil.py

Prints one line a case; exit code 1: one failed, 3: no GPU, no CuPy, or no package.
"""

import itertools
import sys

try:
    import cupy
    import numpy as np

    cupy.cuda.runtime.getDeviceCount()
    import hostless
except Exception as problem:  # whatever CuPy says where it cannot be used
    print(f"skipped: no CuPy, no GPU, or no package ({problem})")
    sys.exit(3)
try:
    import torch
except ImportError:
    torch = None

HEAT = "u + k*(u[-1,0] + u[1,0] + u[0,-1] + u[0,1] - 4*u)"
WIDE = "where(u[-1,-1] > u[1,1], a[0,1]*u[0,-2] - u[1,0]**2/4, min(u, sqrt(abs(u[-1,2])), 0.5))*0.5 + k"
BOUNDARIES = ("dirichlet", "neumann", "periodic")
failures = 0


def told(what, good):
    global failures
    failures += not good
    print(f"{'ok    ' if good else 'FAILED'} {what}", flush=True)


def random(shape, dtype, seed):
    return np.random.default_rng(seed).random(shape).astype(dtype)


def packages():
    yield "cupy", cupy.asarray, lambda array: array.get()
    if torch is not None:
        yield "torch", lambda array: torch.from_numpy(array).cuda(), lambda array: array.cpu().numpy()


for name, there, here in packages():
    for dtype, one, other in itertools.product((np.float32, np.float64), BOUNDARIES, BOUNDARIES):
        u, a = random((37, 71), dtype, 1), random((37, 71), dtype, 2)
        on_gpu = there(u.copy())
        hostless.Stencil(WIDE, k=0.125, a=a).run(u, 9, boundary=(one, other))
        result = hostless.Stencil(WIDE, k=0.125, a=there(a)).run(on_gpu, 9, boundary=(one, other))
        told(f"{name} {np.dtype(dtype)} {one},{other}", result.by == "nvrtc" and np.array_equal(here(on_gpu), u))
    heat, u = hostless.Stencil(HEAT, k=0.2), random((300, 500), np.float64, 3)
    on_gpu = there(u.copy())
    host, gpu = heat.run(u, 500, every=50, tolerance=0.5), heat.run(on_gpu, 500, every=50, tolerance=0.5)
    told(f"{name} looks", (gpu.status, gpu.steps, gpu.history) == (host.status, host.steps, host.history) and np.array_equal(here(on_gpu), u))
    on_gpu = there(np.asfortranarray(random((64, 96), np.float32, 4)))
    result = heat.run(on_gpu, 10**9, time_limit=0.3)
    told(f"{name} time limit", result.status == "aborted" and result.seconds < 5)
sys.exit(1 if failures else 0)

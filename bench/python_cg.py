#!/usr/bin/env python3
"""hostless.cg and cupyx.scipy.sparse.linalg.cg on matrices and vectors that CuPy has on a GPU. Needs a GPU and CuPy.

  PYTHONPATH=FOLDER_OF_THE_PACKAGE bench/python_cg.py [--iterations 1000] [--json FILE]

The four matrices of docs/performance-gpu.md at equal numbers of iterations, tolerance 0, x0 = 0. Best of --repeats of: the
whole call (hostless lays the matrix out in it), a solve alone (hostless.Matrix, whose set-up is paid once), and an
iteration: what a longer solve takes more than one of a tenth; and of the whole call on what scipy and NumPy have, the
copies to the GPU and back in it. The residuals of both are printed, and must fit.
"""

import argparse
import inspect
import json
import sys
import time

import numpy as np
import scipy.sparse as sp

try:
    import cupy
    from cupyx.scipy import sparse as gpu_sparse
    from cupyx.scipy.sparse.linalg import cg as cupy_cg

    cupy.cuda.runtime.getDeviceCount()
except Exception as problem:  # whatever CuPy says where it cannot be used
    print(f"skipped: no CuPy or no GPU ({problem})")
    sys.exit(3)

import hostless
from hostless._whole_file import write_whole

MATRICES = [("hex8 3 dof", "elasticity-hex8", (10, 108, 483)), ("7-point", "poisson7", (128, 128, 128)),
            ("5-point", "poisson2d", (1259, 1259)), ("triangular", "poisson2d-tri", (452, 452))]
TOLERANCE = "rtol" if "rtol" in inspect.signature(cupy_cg).parameters else "tol"


def seconds(call, repeats):
    """The best of so many, after one that warms up; and what the last one gave."""
    call()
    best = float("inf")
    for _ in range(repeats):
        cupy.cuda.runtime.deviceSynchronize()
        begin = time.perf_counter()
        given = call()
        cupy.cuda.runtime.deviceSynchronize()
        best = min(best, time.perf_counter() - begin)
    return best, given


def residual(A, b, x):
    return float(cupy.linalg.norm(b - A @ x) / cupy.linalg.norm(b))


def measure(name, kind, size, options):
    host = hostless.generate(kind, size)
    x_star = np.random.default_rng(1).uniform(-1, 1, host.shape[0])
    A = gpu_sparse.csr_matrix(sp.csr_matrix(host))
    b = A @ cupy.asarray(x_star / np.linalg.norm(x_star))
    n, tenth, how = options.iterations, max(options.iterations // 10, 1), dict(rtol=0.0, gpus=options.gpus)
    row = {"matrix": name, "rows": host.shape[0], "entries": int(host.nnz), "iterations": n, "gpus": options.gpus}

    def theirs(count):
        return cupy_cg(A, b, maxiter=count, **{TOLERANCE: 0.0})[0]

    row["cupy_s"], x = seconds(lambda: theirs(n), options.repeats)
    row["cupy_residual"] = residual(A, b, x)
    row["cupy_us"] = 1e6 * (row["cupy_s"] - seconds(lambda: theirs(tenth), options.repeats)[0]) / (n - tenth)
    row["call_s"], (x, _) = seconds(lambda: hostless.cg(A, b, maxiter=n, **how), options.repeats)
    begin = time.perf_counter()
    with hostless.Matrix(A, gpus=options.gpus) as matrix:
        row["matrix_s"] = time.perf_counter() - begin
        row["solve_s"], (x, _, result) = seconds(lambda: matrix.solve(b, rtol=0.0, maxiter=n, full_output=True),
                                                 options.repeats)
        row["iterations_done"], row["residual"] = result.iterations, residual(A, b, x)
        row["run"], row["format"] = result.choices["run"], result.choices["gpu_format"]
        shorter = seconds(lambda: matrix.solve(b, rtol=0.0, maxiter=tenth), options.repeats)[0]
        row["us"] = 1e6 * (row["solve_s"] - shorter) / (n - tenth)

    def fresh():
        """What a program has that has just assembled it: nobody knows yet whether it is sorted."""
        return sp.csr_matrix((host.data, host.indices, host.indptr), shape=host.shape)

    b_host = b.get()
    row["cupy_from_host_s"], _ = seconds(lambda: cupy_cg(gpu_sparse.csr_matrix(fresh()), cupy.asarray(b_host), maxiter=n,
                                                         **{TOLERANCE: 0.0})[0].get(), options.repeats)
    row["from_host_s"], (x, _) = seconds(lambda: hostless.cg(fresh(), b_host, maxiter=n, **how), options.repeats)
    A_host, row["matrix_from_host_s"] = fresh(), -time.perf_counter()
    with hostless.Matrix(A_host, gpus=options.gpus):
        row["matrix_from_host_s"] += time.perf_counter()
    row["residual_from_host"] = residual(A, b, cupy.asarray(x))
    assert row["residual_from_host"] == row["residual"], f"{name}: {row['residual_from_host']:.6e} from the host's arrays"
    assert row["iterations_done"] == n, result.message
    ratio = row["residual"] / row["cupy_residual"]
    assert 0.1 < ratio < 10, f"{name}: residuals {row['residual']:.3e} and {row['cupy_residual']:.3e}"
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--only", default="", help="matrices whose name has this in it")
    parser.add_argument("--json", help="keep the figures in this file")
    options = parser.parse_args()
    rows = []
    print("| matrix | cupyx cg: call | us an iteration | hostless.cg: call | Matrix: set-up | solve | us an iteration | "
          "solve against cupyx | from the host: cupyx | hostless.cg | Matrix: set-up |\n" + "|---" * 11 + "|")
    for name, kind, size in MATRICES:
        if options.only not in name:
            continue
        row = measure(name, kind, size, options)
        rows.append(row)
        print(f"| {name} | {row['cupy_s']:.3f} s | {row['cupy_us']:.1f} | {row['call_s']:.3f} s | {row['matrix_s']:.3f} s | "
              f"{row['solve_s']:.3f} s | {row['us']:.1f} | {row['cupy_s'] / row['solve_s']:.2f} | {row['cupy_from_host_s']:.3f} s | "
              f"{row['from_host_s']:.3f} s | {row['matrix_from_host_s']:.3f} s |", flush=True)
    if options.json:
        write_whole(options.json, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

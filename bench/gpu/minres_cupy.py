#!/usr/bin/env python3
"""MINRES of hostless against CuPy's, microseconds an iteration on one GPU: the 7-point matrix of a cube, side by side in one run.

  bench/gpu/minres_cupy.py HOSTLESS [SIDE] [ITERATIONS]

Both run a fixed number of iterations from zero, three times in turn; medians and the ratio are printed, with both residuals.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median


def theirs(a, b, iterations: int):
    import cupy
    from cupyx.scipy.sparse.linalg import minres

    begin = time.perf_counter()
    x, _ = minres(a, b, tol=1e-30, maxiter=iterations)
    cupy.cuda.Device().synchronize()
    return (time.perf_counter() - begin) / iterations * 1e6, x


def ours(hostless: str, path: str, right: str, iterations: int, run: str):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "r.json"
        subprocess.run([hostless, "solve", path, right, "--method", "minres", "--gpus", "1", "--run", run, "--rtol", "1e-30", "--max-iterations",
                        str(iterations), "--json", str(report), "--quiet"], check=False)
        found = json.loads(report.read_text())
    found = found.get("result", found)
    return found["time_solve_s"] / found["iterations"] * 1e6, found["true_relative_residual"]


def main() -> int:
    import cupy
    import numpy as np
    import scipy.sparse as sp
    from cupyx.scipy.sparse import csr_matrix

    hostless, side = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    iterations = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    one = sp.diags([-np.ones(side - 1), 2 * np.ones(side), -np.ones(side - 1)], [-1, 0, 1])
    eye = sp.eye(side)
    a = (sp.kron(sp.kron(one, eye), eye) + sp.kron(sp.kron(eye, one), eye) + sp.kron(sp.kron(eye, eye), one)).tocsr()
    a = (a - 0.1 * sp.eye(a.shape[0])).tocsr()  # indefinite
    b = np.random.default_rng(0).standard_normal(a.shape[0])
    with tempfile.TemporaryDirectory() as folder:
        path, right = f"{folder}/a.npz", f"{folder}/b.npy"
        sp.save_npz(path, a, compressed=False)
        np.save(right, b)
        there, b_there = csr_matrix(a), cupy.asarray(b)
        theirs(there, b_there, 20)
        times = {"cupy": [], "persistent": [], "graph": []}
        for _ in range(3):
            for run in ("persistent", "graph"):
                took, residual = ours(hostless, path, right, iterations, run)
                times[run].append(took)
            took, x = theirs(there, b_there, iterations)
            times["cupy"].append(took)
        far = float(cupy.linalg.norm(b_there - there @ x) / cupy.linalg.norm(b_there))
    for name, values in times.items():
        print(f"{name:12} {median(values):9.2f} us an iteration, {median(times['cupy']) / median(values):6.2f} of cupy's speed")
    print(f"rows {a.shape[0]}, {iterations} iterations, |b - A x| / |b|: hostless {residual:.6e}, cupy {far:.6e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares hostless with PETSc's KSPCG and KSPPIPECG, AIJ and BAIJ, on every generated matrix, in one run.

  cmake -B build-bench -DCMAKE_BUILD_TYPE=Release -DHOSTLESS_BUILD_BENCHMARKS=ON
  cmake --build build-bench --target petsc_compare
  bench/compare_with_petsc.py --build build-bench > table.md

Both sides get the same rows on the same ranks, the same right-hand side, x = 0 and the same number of iterations, and
solve in turns, so that both see the same machine; whole solves are timed, the slowest rank counts. Prints a table in
Markdown; what happens meanwhile goes to standard error. Exit code 1: answers differ, or a ratio is below --least.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "hostless"))
from _whole_file import write_whole  # noqa: E402

# name, kind, nx, ny, nz, iterations: each matrix is larger than the caches and far from converged at the end.
MATRICES = [
    ("7-point Poisson", "poisson7", 96, 96, 96, 100),
    ("hex8 elasticity", "elasticity-hex8", 40, 40, 40, 100),
    ("tet4 elasticity", "elasticity-tet4", 48, 48, 48, 100),
    ("27-point Poisson", "poisson27", 80, 80, 80, 100),
    ("5-point Poisson", "poisson2d", 999, 1001, 1, 100),
    ("P1 triangles", "poisson2d-tri", 1000, 1000, 1, 100),
    ("monodomain step", "monodomain", 80, 80, 80, 20),
    ("circuit", "circuit", 1000, 1000, 1, 100),
    ("1-D Poisson", "poisson1d", 2000000, 1, 1, 100),
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build-bench", help="CMake's build directory (default build-bench)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds, after one that warms up")
    parser.add_argument("--only", default="", help="comma-separated kinds, e.g. poisson7,elasticity-hex8")
    parser.add_argument("--preconditioners", default="none,jacobi")
    parser.add_argument("--shrink", type=int, default=1, help="divide every side by this (to try things out)")
    parser.add_argument("--least", type=float, default=0.0, help="fail when a ratio is below this")
    parser.add_argument("--json", help="keep all timings in this file")
    parser.add_argument("mpirun", nargs="*", help="more options of mpirun, after --")
    return parser.parse_args()


def run(options, matrix, preconditioner):
    """One mpirun: all contestants in turns. Returns what petsc_compare wrote."""
    _, kind, *sides, iterations = matrix
    sides = [max(2, n // options.shrink) if n > 1 else n for n in sides]
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        command = ["mpirun", "-n", str(options.ranks), *options.mpirun]
        command += [pathlib.Path(options.build) / "bench" / "petsc_compare", "--kind", kind, "--json", result]
        for name, side in zip(("--nx", "--ny", "--nz"), sides):
            command += [name, str(side)]
        command += ["--iterations", str(iterations), "--repeats", str(options.repeats)]
        if preconditioner == "jacobi":
            command.append("--jacobi")
        print(" ".join(map(str, command)), file=sys.stderr, flush=True)
        subprocess.run(command, check=True, env=environment)
        return json.loads(result.read_text())


def middle(contestant):
    return statistics.median(contestant["seconds"])


def ratios(petsc, ours):
    """PETSc's seconds over ours, round by round."""
    return [a / b for a, b in zip(petsc["seconds"], ours["seconds"])]


def same_answers(result):
    """CG's rounding errors grow with the contrast of the coefficients: PETSc's own methods part by a third of the
    residual after 100 iterations. That the counts of iterations are equal, petsc_compare checks itself."""
    residuals = [c["true_relative_residual"] for c in result["contestants"]]
    return max(residuals) <= 2 * min(residuals) or max(residuals) < 1e-10


def summary(result):
    """Picks PETSc's fastest variant and hostless' default method over MPI and over threads."""
    sides = {}
    for contestant in result["contestants"]:
        sides.setdefault(contestant["side"], []).append(contestant)
    petsc = min(sides["petsc"], key=middle)
    ours = {side: next(c for c in sides[side] if c["method"] == "cg") for side in ("hostless mpi", "hostless threads")}
    return petsc, ours["hostless mpi"], ours["hostless threads"]


def milliseconds(contestant, result):
    return f"{1e3 * middle(contestant) / result['iterations']:.3f}"


def spread(values):
    return f"**{statistics.median(values):.2f}** ({min(values):.2f} to {max(values):.2f})"


def row(name, result):
    petsc, mpi, threads = summary(result)
    cells = [
        name,
        f"{result['rows']:,}",
        f"{result['entries']:,}",
        f"{petsc['method'].split()[0]} {petsc['storage']}",
        milliseconds(petsc, result),
        mpi["storage"],
        milliseconds(mpi, result),
        spread(ratios(petsc, mpi)),
        milliseconds(threads, result),
        spread(ratios(petsc, threads)),
        f"{petsc['true_relative_residual']:.2e} / {mpi['true_relative_residual']:.2e}",
    ]
    return "| " + " | ".join(cells) + " |"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def print_table(options, preconditioner, results):
    print(f"\n### Preconditioner: {preconditioner}\n")
    print("| matrix | rows | entries | PETSc's fastest | ms/iteration | hostless stores | MPI ms/iteration "
          "| PETSc / hostless MPI | threads ms/iteration | PETSc / hostless threads | true residuals |")
    print("|---" * 11 + "|")
    for name, result in results:
        print(row(name, result), flush=True)


def main():
    options = arguments()
    chosen = [m for m in MATRICES if not options.only or m[1] in options.only.split(",")]
    everything, failures = {}, []
    for preconditioner in options.preconditioners.split(","):
        results = []
        for matrix in chosen:
            result = run(options, matrix, preconditioner)
            results.append((matrix[0], result))
            where = f"{matrix[0]}, preconditioner {preconditioner}"
            if not same_answers(result):
                failures.append(f"{where}: the answers differ")
            petsc, mpi, _ = summary(result)
            if statistics.median(ratios(petsc, mpi)) < options.least:
                failures.append(f"{where}: below {options.least} times PETSc's speed")
        everything[preconditioner] = [result for _, result in results]
        print_table(options, preconditioner, results)
    bandwidths = [r["read_bandwidth"] * 1e-9 for rs in everything.values() for r in rs]
    print(f"\n{processor()}, {options.ranks} ranks, reading {min(bandwidths):.1f} to {max(bandwidths):.1f} GB/s "
          f"meanwhile, load average {os.getloadavg()[0]:.1f} at the end; median of {options.repeats} rounds "
          "(smallest to largest ratio of one round).")
    if options.json:
        write_whole(options.json, json.dumps(everything, indent=1) + "\n")
    for failure in failures:
        print(f"compare_with_petsc: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

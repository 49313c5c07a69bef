#!/usr/bin/env python3
"""Every transport between GPUs with ranks that are processes: methods, preconditioners, routes and runs on small matrices
must end with the bits of the processor on as many ranks (kill_ranks.py --gpu-transport kills them).

    python3 tests/device/every_carrier.py --hostless build/apps/hostless/hostless [--gpus 2] [--carriers nvshmem,mpi]

What is absent here (a library, an MPI that takes device memory) is said and skipped. Exit code 1: something differs or
fails; 3: nothing could be tried.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

MATRICES = {
    "seven": ["--generate", "poisson7", "--size", "12"],
    "hex8": ["--generate", "elasticity-hex8", "--size", "5,6,7"],
}
METHODS = ["cg", "single-reduction-cg", "pipelined-cg"]
PRECONDITIONERS = {"cg": ["none", "jacobi", "chebyshev"], "single-reduction-cg": ["none"], "pipelined-cg": ["block-jacobi"]}
ROUTES = ["direct", "two_step", "three_step"]
# transport between GPUs: its runs, and how ranks are started
CARRIERS = {"peer": (["persistent", "graph", "stream"], ["processes"]), "nccl": (["graph", "stream"], ["processes"]),
            "nvshmem": (["persistent", "graph", "stream"], ["processes", "mpi"]), "mpi": (["stream"], ["mpi"]),
            "host": (["stream"], ["processes", "mpi"])}
ABSENT = ("without NVSHMEM", "without NCCL", "nvshmem under HIP", "takes no memory of GPUs", "no usable MPI",
          "no GPU can be used", "GPUs (this machine has")


def solve(options, folder, name, words):
    """(what must be equal, None), or (None, why not)."""
    x, report = Path(folder) / f"{name}.npy", Path(folder) / f"{name}.json"
    command = [options.hostless, "solve", *words, "--manufactured", "--no-bandwidth", "--quiet", "--rtol", "0",
               "--max-iterations", "61", "--output", str(x), "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode not in (0, 1) or not report.exists():
        told = [line for line in done.stderr.splitlines() if line.startswith("hostless:")]
        return None, (told or done.stderr.splitlines() or [f"exit code {done.returncode}"])[0]
    r = json.loads(report.read_text())
    return (x.read_bytes(), r["status"], r["iterations"], r["residual_history"], r["true_residual"]), None


def cases_of(carrier):
    runs, starts = CARRIERS[carrier]
    for matrix, method, route, run, start in itertools.product(MATRICES, METHODS, ROUTES, runs, starts):
        for preconditioner in PRECONDITIONERS[method]:
            if run != "persistent" or (method != "single-reduction-cg" and preconditioner != "chebyshev"):
                yield matrix, method, preconditioner, route, run, start


def look(options, folder, carrier, counts):
    """Compares all cases of a transport; why it is absent, or None."""
    for matrix, method, preconditioner, route, run, start in cases_of(carrier):
        tag = "-".join((carrier, matrix, method, preconditioner, route, run, start))
        words = [*MATRICES[matrix], "--method", method, "--preconditioner", preconditioner, "--route", route, "--ranks",
                 str(options.gpus), "--ranks-per-node", str(max(1, options.gpus // 2))]
        expected, why = solve(options, folder, "host", [*words, "--run", "host"])
        if expected is None:
            return f"the processor: {why}"
        got, why = solve(options, folder, "gpu", [*words, "--run", run, "--gpus", str(options.gpus), "--transport", start,
                                                  "--gpu-transport", carrier])
        if got is None and any(text in why for text in ABSENT):
            return why
        counts["equal" if got == expected else "failed" if got is None else "differ"] += 1
        if got != expected:
            print(f"{tag}: {'differs' if why is None else why}")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--gpus", type=int, default=2, help="and as many ranks")
    parser.add_argument("--carriers", default=",".join(CARRIERS), help="with commas")
    options = parser.parse_args()
    options.hostless = str(Path(options.hostless).resolve())
    counts = {"equal": 0, "differ": 0, "failed": 0}
    with tempfile.TemporaryDirectory(prefix="hostless-") as folder:
        for carrier in options.carriers.split(","):
            before = dict(counts)
            absent = look(options, folder, carrier, counts)
            done = ", ".join(f"{counts[key] - before[key]} {key}" for key in counts)
            print(f"{carrier}: {done}" + (f"; not tried: {absent}" if absent else ""))
    if counts["differ"] + counts["failed"] > 0:
        return 1
    return 0 if counts["equal"] > 0 else 3


if __name__ == "__main__":
    sys.exit(main())

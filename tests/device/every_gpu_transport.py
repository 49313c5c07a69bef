#!/usr/bin/env python3
"""Every transport between GPUs with ranks that are processes: methods, preconditioners, routes and runs on small matrices
must end with the bits of the processor on as many ranks (kill_ranks.py --gpu-transport kills them).

    python3 tests/device/every_gpu_transport.py --hostless build/apps/hostless/hostless [--gpus 2] [--starts processes,mpi]

A matrix and a way of starting ranks is one `hostless bench solve`, which solves on the processor first. What is absent here
(a library, an MPI that takes device memory, an MPI at all) is said and skipped; what hostless should refuse must be refused;
everything else must be solved and equal. Exit code 1: something is not so; 3: nothing could be tried.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

MATRICES = {
    "seven": ["--generate", "poisson7", "--size", "12"],
    "hex8": ["--generate", "elasticity-hex8", "--size", "5,6,7"],
}
METHODS = ["cg", "single-reduction-cg", "pipelined-cg"]
PRECONDITIONERS = ["none", "block-jacobi", "chebyshev"]
ROUTES = ["direct", "two_step", "three_step", "split", "leader"]
RUNS = ["persistent", "graph", "stream"]
# how ranks are started: what may carry between their GPUs
STARTS = {"processes": ["peer", "nccl", "nvshmem", "host"], "mpi": ["peer", "nccl", "nvshmem", "mpi", "host"]}
SERVED = {"peer": RUNS, "nccl": ["graph", "stream"], "nvshmem": RUNS, "mpi": ["graph", "stream"], "host": ["graph", "stream"]}
ABSENT = ("without NVSHMEM", "without NCCL", "nvshmem under HIP", "takes no memory of GPUs", "no GPU can be used",
          "GPUs (this machine has")


def is_refused(method, preconditioner, run, gpu_transport):
    """Whether hostless says that there is no such way, on any machine."""
    without_kernel = method == "single-reduction-cg" or preconditioner == "chebyshev"  # a persistent one of several ranks
    return ((preconditioner == "chebyshev" and method != "cg") or run not in SERVED[gpu_transport] or
            (run == "persistent" and without_kernel))


def measure(options, folder, start, matrix, gpu_transports):
    """The rows by (route, method, preconditioner, run, gpu_transport), and what the command said where it ended early."""
    report = Path(folder) / f"{start}-{matrix}.json"
    command = [options.hostless, "bench", "solve", *MATRICES[matrix], "--gpus", str(options.gpus), "--ranks",
               str(options.gpus), "--ranks-per-node", str(max(1, options.gpus // 2)), "--transport", start,
               "--methods", ",".join(METHODS), "--preconditioners", ",".join(PRECONDITIONERS), "--routes", ",".join(ROUTES),
               "--runs", ",".join(["host", *RUNS]), "--gpu-transports", ",".join(gpu_transports), "--iterations", "61",
               "--repeat", "1", "--json", str(report)]
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **os.environ}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, env=environment, check=False)
        lines = [line for line in done.stderr.splitlines() if any(map(str.isalpha, line))]
        told = [line for line in lines if line.startswith("hostless:")] or lines
        said = told[0] if told else "" if done.returncode in (0, 1) else f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        said = f"not ended after {options.limit} s"
    solves = json.loads(report.read_text())["solves"] if report.exists() else []
    return {(row["route"], row["method"], row["preconditioner"], row["run"], row.get("gpu_transport")): row
            for row in solves}, said


def judge(row, way, said):
    """(what became of a way, in words where it is wrong)."""
    _, method, preconditioner, run, gpu_transport = way
    if row is None:
        return "failed", said or "there is no row of it"
    error = row.get("error", "")
    if any(text in error for text in ABSENT):
        return "absent", error.splitlines()[0]
    if is_refused(method, preconditioner, run, gpu_transport):
        return ("refused", "") if error else ("failed", "it was solved, and should have been refused")
    if error:
        return "failed", error
    chosen = row["choices"]
    if chosen["run"] != run or not chosen["gpu_transport"].startswith(gpu_transport):
        return "failed", f"solved by {chosen['gpu_transport']}, {chosen['run']}"
    return ("equal", "") if row["bits"] == "equal" else ("differs", row["bits"])


def look(options, folder, start):
    """What became of all ways, by gpu_transport; why gpu_transports are absent; or why nothing of this start was tried."""
    counts = {gpu_transport: Counter() for gpu_transport in STARTS[start] if gpu_transport in options.gpu_transports}
    absent = {}
    for matrix in MATRICES:
        rows, said = measure(options, folder, start, matrix, list(counts))
        if not rows and ("no usable MPI" in said or "mpirun" in said):
            return {}, {}, said
        for way in itertools.product(ROUTES, METHODS, PRECONDITIONERS, RUNS, counts):
            host = rows.get((*way[:3], "host", None))
            verdict, why = judge(rows.get(way), way, said)
            if verdict == "equal" and (host is None or "bits" not in host):
                verdict, why = "failed", "the processor did not solve it"
            counts[way[4]][verdict] += 1
            if verdict == "absent":
                absent[way[4]] = why
            elif why:
                print(f"{start} {matrix} {' '.join(way)}: {why}")
    return counts, absent, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--gpus", type=int, default=2, help="and as many ranks")
    parser.add_argument("--starts", default=",".join(STARTS), help="with commas")
    parser.add_argument("--gpu-transports", default=",".join(SERVED), help="with commas")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one start may take")
    options = parser.parse_args()
    options.hostless = str(Path(options.hostless).resolve())
    options.gpu_transports = options.gpu_transports.split(",")
    total = Counter()
    with tempfile.TemporaryDirectory(prefix="hostless-") as folder:
        for start in options.starts.split(","):
            began = time.monotonic()
            counts, absent, why = look(options, folder, start)
            if why:
                print(f"{start}: not tried ({why})")
            for gpu_transport, of in counts.items():
                total += of
                print(f"{start} {gpu_transport}: " + ", ".join(f"{of[word]} {word}" for word in ("equal", "differs", "failed", "refused")
                                                         ) + (f"; absent: {absent[gpu_transport]}" if gpu_transport in absent else ""))
            print(f"{start}: {time.monotonic() - began:.1f} s", flush=True)
    print(f"{total['equal']} ways with the bits of the processor, {total['differs']} with others, {total['failed']} failed, "
          f"{total['refused']} refused as they should be, {total['absent']} absent")
    if total["differs"] + total["failed"] > 0:
        return 1
    return 0 if total["equal"] > 0 else 3


if __name__ == "__main__":
    sys.exit(main())

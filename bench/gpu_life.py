#!/usr/bin/env python3
"""Life on GPUs: queues whose streams start and wait for the halos, beside an MPI that a processor controls.

    python3 bench/gpu_life.py --hostless ./hostless [--gpus 2] [--sizes 2048,16384,61440] [--steps 1000] [--json FILE]

Each size by `bench life --queue peer` (standard and ready sends, on a stream and in a graph; beside them a processor that
exchanges between threads through the host's memory), and by `bench life --transport mpi`: a kernel packs, the processor
waits for it, starts the MPI's persistent messages, waits for them, and launches what unpacks and computes. The MPI's
messages lie in the GPUs' memory, once for each setting below, because what is best differs, and in the host's. The
fastest of those is what a queue is held against. Exit code 1: a glider was lost, or nothing could be compared.
"""

import argparse
import json
import os
import subprocess
import sys

OF_MPI = {
    "MPI, GPU memory": ("gpu", {"UCX_MEMTYPE_CACHE": "n"}),
    "MPI, GPU memory, looked up once": ("gpu", {"UCX_MEMTYPE_CACHE": "y"}),
    "MPI, host memory": ("host", {}),
}


def life(options, size, words, environment):
    """(rows of the report, None), or (None, why not)."""
    command = [options.hostless, "bench", "life", "--size", str(size), "--gpus", str(options.gpus), "--steps", str(options.steps),
               "--repeat", str(options.repeat), "--json", "-", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "HOSTLESS_MPI_DEVICE_MEMORY": "1", **environment})
    except subprocess.TimeoutExpired:
        return None, f"it took more than {options.limit:g} s"
    begin = done.stdout.find("{")
    if begin < 0:
        return None, " ".join((done.stderr or done.stdout).split())[:200]
    return json.JSONDecoder().raw_decode(done.stdout[begin:])[0]["life"], None


def ways(options, size):
    """(what, row of the report or None, why not), one after the other."""
    rows, problem = life(options, size, ["--queue", "peer"], {})
    for row in rows or []:
        of_queue = row["by"] != "host"
        yield (f"queue, {row['by']}, {row['run']}" if of_queue else "threads, host memory"), row, None
    if problem:
        yield "queue", None, problem
    for what, (memory, environment) in OF_MPI.items():
        rows, problem = life(options, size, ["--transport", "mpi", "--ranks", str(options.gpus), "--memory", memory], environment)
        yield what, rows[0] if rows else None, problem


def table(options, size):
    """The rows of one size, and whether every glider was conserved and both kinds were there."""
    found = []
    print(f"{size} x {size} cells on {options.gpus} GPUs, {options.steps} steps")
    for what, row, problem in ways(options, size):
        if row is None:
            print(f"  {what:34} {problem}")
        else:
            found.append({"what": what, **row})
    of_mpi = [row["median_us"] for row in found if row["what"].startswith("MPI")]
    fastest = min(of_mpi, default=None)
    for row in found:
        row["mpi_over_it"] = fastest / row["median_us"] if fastest else None
        ratio = f"{row['mpi_over_it']:10.2f}" if fastest else f"{'':10}"
        print(f"  {row['what']:34} {row['best_us']:10.2f} {row['median_us']:10.2f} {row['worst_us']:10.2f} {ratio}  {row['gliders']}")
    good = bool(of_mpi) and any(row["what"].startswith("queue") for row in found)
    return found, good and all(row["gliders"] == "conserved" for row in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--sizes", default="2048,16384,61440")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120, help="seconds of a run")
    parser.add_argument("--json", help="a file for all of it")
    options = parser.parse_args()
    print(f"  {'a step, us':34} {'best':>10} {'median':>10} {'worst':>10} {'MPI / it':>10}")
    report, good = {}, True
    for size in map(int, options.sizes.split(",")):
        report[size], right = table(options, size)
        good = good and right
    if options.json:
        with open(options.json, "w", encoding="utf-8") as to:
            json.dump({"gpus": options.gpus, "steps": options.steps, "life": report}, to, indent=1)
    print("every glider is where it must be, and the MPI stands beside the queue" if good else "NOT ALL OF IT CAN BE COMPARED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

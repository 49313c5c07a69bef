#!/usr/bin/env python3
"""`hostless solve --gpus N` in one process, with processes, and under mpirun, by the same plan: x, residual history, true
residual, iterations and status must have the same bits, and those of the processor on as many ranks.

    python3 tests/device/same_bits.py --hostless build/apps/hostless/hostless --gpus 4 [--ways peer:persistent,nccl:graph]

A way is what carries between GPUs, and a run. Between processes `peer` stores through handles of device memory. Where there
is no mpirun, or no GPU, that is said. Exit code 1: something differs or fails; 3: too little was there to compare anything.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SYSTEM = ["--generate", "elasticity-hex8", "--manufactured", "--rtol", "1e-8", "--preconditioner",
          "block-jacobi", "--no-bandwidth", "--quiet"]
KEYS = ("status", "iterations", "restarts", "residual_history", "true_residual")
NO_GPU = ("no GPU can be used", "GPUs (this machine has")


class Starts:
    """Ways of starting the ranks: each an empty launcher, or one's words, and options."""

    def __init__(self, options):
        self.options = options
        self.all = {"one process": ([], []), "processes": ([], ["--transport", "processes"])}
        words, self.no_mpi = helpers.launcher_of("openmpi", options.gpus)
        if words:
            self.all["mpirun"] = (words, [])

    def solve(self, start, words, folder):
        """(what must be equal, None), or (None, why not)."""
        launcher, more = self.all[start]
        x, report = Path(folder) / "x.npy", Path(folder) / "result.json"
        for path in (x, report):
            path.unlink(missing_ok=True)
        ranks = [] if launcher else ["--ranks", str(self.options.gpus)]
        command = [*launcher, self.options.hostless, "solve", *SYSTEM, "--size", self.options.size, *ranks, *more, *words, "--output", str(x), "--json", str(report)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.options.limit, check=False,
                                  env=helpers.surroundings())
        except subprocess.TimeoutExpired:
            return None, f"not ended after {self.options.limit} s"
        if done.returncode != 0 or not report.exists():
            lines = [line for line in done.stderr.splitlines() if any(map(str.isalpha, line))]
            told = [line for line in lines if line.startswith("hostless:")] or lines
            return None, (told or [f"exit code {done.returncode}"])[0]
        result = json.loads(report.read_text())
        return (x.read_bytes(), *(result[key] for key in KEYS)), None


def differences(one, other):
    names = ("x", *KEYS)
    return ", ".join(name for name, a, b in zip(names, one, other) if a != b)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--gpus", type=int, default=2, help="and as many ranks; 0: two ranks of the processor, to try this")
    parser.add_argument("--ways", default="peer:persistent,peer:graph,peer:stream,nccl:graph", help="with commas")
    parser.add_argument("--size", default="16,16,32", help="elements of the elastic block")
    parser.add_argument("--limit", type=float, default=60, help="seconds that one solve may take")
    options = parser.parse_args()
    options.hostless = os.environ["HOSTLESS_COMMAND"] = str(Path(options.hostless).resolve())
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
    global helpers
    import hostless_command as helpers  # reads that at once
    on_gpus = options.gpus > 0
    options.gpus = options.gpus or 2
    starts = Starts(options)
    if starts.no_mpi:
        print(f"mpirun: not tried ({starts.no_mpi})")
    compared = wrong = 0
    with tempfile.TemporaryDirectory(prefix="hostless-") as folder:
        expected, why = starts.solve("one process", ["--run", "host"], folder)
        if expected is None:
            sys.exit(f"the processor: {why}")
        for way in options.ways.split(","):
            gpu_transport, run = way.split(":")
            words = ["--run", run, "--gpus", str(options.gpus), "--gpu-transport", gpu_transport] if on_gpus else ["--run", run]
            for start in starts.all:
                began = time.monotonic()
                got, why = starts.solve(start, words, folder)
                if got is None and any(text in why for text in NO_GPU):
                    print(f"nothing can be compared: {why}")
                    return 3
                verdict = why if got is None else differences(got, expected)
                compared, wrong = compared + 1, wrong + bool(verdict)
                equal = "" if got is None else f"bits of the processor, {got[2]} iterations, {got[1]}"
                print(f"{gpu_transport:8} {run:11} {start:12} {'WRONG: ' + verdict if verdict else equal} "
                      f"({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{compared} solves, {wrong} wrong, {len(starts.all)} ways of starting {options.gpus} ranks")
    return 1 if wrong else 0 if len(starts.all) > 2 else 3


if __name__ == "__main__":
    sys.exit(main())

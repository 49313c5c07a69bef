#!/usr/bin/env python3
"""Every method, preconditioner, run and layout of one GPU through the command, on small matrices: x, status, iterations,
residual history and true residual must have the bits of the processor's.

    python3 tests/device/every_way.py --hostless build/apps/hostless/hostless [--jobs 8]

Exit code 1: something differs or fails.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MATRICES = {
    "tri": ["--generate", "poisson2d-tri", "--size", "60"],
    "five": ["--generate", "poisson2d", "--size", "83"],
    "seven": ["--generate", "poisson7", "--size", "19"],
    "hex8": ["--generate", "elasticity-hex8", "--size", "6,7,8"],
    "slices": ["--generate", "poisson7", "--size", "30", "--slices", "1500"],
}
METHODS = ["cg", "single-reduction-cg", "pipelined-cg"]
PRECONDITIONERS = ["none", "jacobi", "block-jacobi"]
ENDS = {"limit": ["--rtol", "0", "--max-iterations", "45"], "converges": ["--rtol", "1e-9"]}
RUNS = {"stream": ("stream", {}), "graph": ("graph", {}), "replay": ("graph", {"HOSTLESS_GPU_WHILE": "0"}),
        "persistent": ("persistent", {}), "auto": ("auto", {})}
FORMATS = ["auto", "sell", "csr"]


def solve(hostless, folder, name, words, environment):
    """(what must be equal, None), or (None, why not)."""
    x, report = Path(folder) / f"{name}.npy", Path(folder) / f"{name}.json"
    command = [hostless, "solve", *words, "--manufactured", "--no-bandwidth", "--quiet", "--output", str(x), "--json",
               str(report)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120,
                          check=False)
    if done.returncode not in (0, 1) or not report.exists():
        return None, done.stderr.strip()[-300:] or "it wrote no result"
    r = json.loads(report.read_text())
    return (x.read_bytes(), r["status"], r["iterations"], r["residual_history"], r["true_residual"]), None


def compare(hostless, folder, case):
    """[(way, True, False or None, why)] of one matrix, method, preconditioner and ending."""
    matrix, method, preconditioner, end = case
    words = [*MATRICES[matrix], "--method", method, "--preconditioner", preconditioner, *ENDS[end]]
    tag = "-".join(case)
    expected, why = solve(hostless, folder, tag + "-host", words, {})
    if expected is None:
        return [(tag + " host", None, why)]
    found = []
    for (run, (word, environment)), kind in itertools.product(RUNS.items(), FORMATS):
        name = f"{tag}-{run}-{kind}"
        got, why = solve(hostless, folder, name, [*words, "--gpus", "1", "--run", word, "--format", kind], environment)
        found.append((name, None if got is None else got == expected, why))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    cases = list(itertools.product(MATRICES, METHODS, PRECONDITIONERS, ENDS))
    cases += list(itertools.product(MATRICES, ["cg"], ["chebyshev"], ENDS))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        every = pool.map(lambda case: compare(options.hostless, folder, case), cases)
        found = list(itertools.chain.from_iterable(every))
    for name, equal, why in found:
        if not equal:
            print(f"{name}: {'differs' if equal is False else why}")
    count = [sum(equal is kind for _, equal, _ in found) for kind in (True, False, None)]
    print(f"{count[0]} equal, {count[1]} differ, {count[2]} failed")
    return 0 if count[0] == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())

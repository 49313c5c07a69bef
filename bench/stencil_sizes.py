#!/usr/bin/env python3
"""A table of `hostless bench stencil` over sizes, types and boundaries: how many times as fast as the plain loop a step is.

    python3 bench/stencil_sizes.py HOSTLESS [--sizes 16x16,...,1000x4x4] [--types fp32,fp64] [--boundaries dirichlet,neumann,periodic]
        [--ranks N] [--calls 3] [--seconds 0.05] [--json FILE] [--least 1]

Ranks, depth and blocks are what the command chooses (or N ranks, beside a plain loop on N threads); the plain loop is the faster of one thread and all.
Of each case so many calls of five repeats in turns, each of about so many seconds; a figure is the best time of the plain loop by the best of the stencil,
over all calls, and in brackets the median of the paired ratios: other work on the machine can only make both times longer. Exit code 1: other bits, a call
that failed, or a figure below --least.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SQUARES = tuple(2**k for k in range(4, 13))
CUBES = tuple(2**k for k in range(4, 9))
# what ends beside a vector, a cache line or a piece of a row, and grids that are thin along an axis
BETWEEN = ("3x3", "5x5", "10x10", "18x18", "24x24", "34x34", "40x40", "48x48", "66x66", "100x100", "200x200", "500x500", "1000x1000", "1000x3", "7x1000", "20000x5",
           "3x3x3", "6x6x6", "10x10x10", "20x20x20", "30x30x30", "40x40x40", "50x50x50", "66x66x66", "80x80x80", "100x100x100", "120x120x120", "4x4x1000",
           "4x1000x4", "1000x4x4")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hostless")
    parser.add_argument("--sizes", default=",".join([f"{n}x{n}" for n in SQUARES] + [f"{n}x{n}x{n}" for n in CUBES] + list(BETWEEN)))
    parser.add_argument("--types", default="fp32,fp64")
    parser.add_argument("--boundaries", default="dirichlet,neumann,periodic")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--least", type=float, default=0)
    return parser.parse_args()


def steps_of(size, seconds):
    """By a guess of two thousand million cells a second."""
    cells = 1
    for n in size.split("x"):
        cells *= int(n)
    return max(8, min(200_000, int(seconds * 2e9 / cells)))


def measured(options, size, kind, boundary, folder):
    """Of one case, over all calls: the figures, or what went wrong."""
    report = folder / "r.json"
    command = [options.hostless, "bench", "stencil", "--problem", "jacobi3d" if size.count("x") == 2 else "jacobi2d", "--size", size, "--type", kind,
               "--boundary", boundary, "--steps", str(steps_of(size, options.seconds)), "--no-bandwidth", "--json", str(report)]
    if options.ranks:
        command += ["--ranks", str(options.ranks)]
    stencil, plain, paired, found = [], [], [], {}
    for _ in range(options.calls):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return {"problem": (done.stdout + done.stderr).strip()[-300:]}
        found = json.loads(report.read_text())
        stencil.append(found["stencil"]["best_us"])
        plain.append((found["plain_loop"]["best_us"], found["plain_loop"]["threads"]))
        paired += found["paired_speedup"]
    best = min(plain)
    return {"size": size, "type": kind, "boundary": boundary, "ranks": found["ranks"], "depth": found["depth"], "block_steps": found["block_steps"],
            "stencil_us": min(stencil), "plain_us": best[0], "plain_threads": best[1], "speedup": best[0] / min(stencil),
            "paired": statistics.median(paired)}


def main():
    options = arguments()
    kinds, boundaries = options.types.split(","), options.boundaries.split(",")
    columns = [(kind, boundary) for kind in kinds for boundary in boundaries]
    print("| cells | " + " | ".join(f"{kind} {boundary}" for kind, boundary in columns) + " |")
    print("|---" * (len(columns) + 1) + "|", flush=True)
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes.split(","):
            cells = []
            for kind, boundary in columns:
                row = measured(options, size, kind, boundary, Path(folder))
                rows.append(row)
                failed = failed or "problem" in row or row["speedup"] < options.least
                cells.append(row.get("problem") or f"{row['speedup']:.2f} ({row['paired']:.2f}; {row['ranks']}, {row['stencil_us']:.3g} us)")
            print(f"| {size} | " + " | ".join(cells) + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

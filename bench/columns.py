#!/usr/bin/env python3
"""What a column costs where several right-hand sides are solved for at once, against one alone.

    python3 bench/columns.py HOSTLESS [--gpus 1] [--matrices seven:128,hex8:70] [--columns 1,2,4,8] [--iterations 300] [--repeat 5] [--json FILE]

By `hostless bench solve`, which compares the bits of every column with those of a solve of it alone; microseconds an
iteration, the median of the timed solves, of the run that is fastest there. One alone may take any run, several those that
take them. Exit code 1: bits differ, or a solve failed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = {"seven": "poisson7", "five": "poisson2d", "tri": "poisson2d-tri", "hex8": "elasticity-hex8"}


def bench(hostless, words):
    """Rows of a report, and what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = subprocess.run([hostless, "bench", "solve", *words, "--json", str(report)], capture_output=True, text=True, timeout=900)
        if done.returncode != 0 or not report.exists():
            return [], (done.stdout + done.stderr).strip()[-400:]
        return json.loads(report.read_text())["solves"], ""


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hostless")
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--matrices", default="seven:128,hex8:60")
    parser.add_argument("--columns", default="1,2,4,8")
    parser.add_argument("--iterations", default="300")
    parser.add_argument("--repeat", default="5")
    parser.add_argument("--json")
    options = parser.parse_args(argv)
    found, failures = [], 0
    print(f"{'matrix':12}{'columns':>8}  {'run':12}{'us an iteration':>16}{'us a column':>12}{'of one alone':>13}")
    for matrix in options.matrices.split(","):
        kind, size = matrix.split(":")
        alone = None
        for columns in map(int, options.columns.split(",")):
            where = (["--gpus", str(options.gpus), "--runs", "persistent,graph" if columns == 1 else "persistent,graph,stream" if columns <= 4 else "graph,stream"] if options.gpus else
                     ["--runs", "persistent", "--lanes", "2"])
            rows, problem = bench(options.hostless, ["--generate", KINDS[kind], "--size", size, "--preconditioner", "jacobi",
                                                     "--rhs-columns", str(columns), "--iterations", options.iterations, "--repeat",
                                                     options.repeat, *where])
            rows = [row for row in rows if row.get("median_us")]
            if problem or not rows:
                failures += 1
                print(f"{matrix:12}{columns:8}  {problem or 'nothing was solved'}", flush=True)
                continue
            best = min(rows, key=lambda row: row["median_us"])
            a_column = best["median_us"] / columns
            alone = a_column if columns == 1 else alone
            share = a_column / alone if alone else float("nan")
            print(f"{matrix:12}{columns:8}  {best['run']:12}{best['median_us']:16.2f}{a_column:12.2f}{share:13.3f}", flush=True)
            found.append({"matrix": matrix, "columns": columns, "run": best["run"], "median_us": best["median_us"], "share": share})
    if options.json:
        Path(options.json).write_text(json.dumps({"gpus": options.gpus, "rows": found}, indent=1) + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

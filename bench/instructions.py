#!/usr/bin/env python3
"""Two builds of hostless against each other on the processor, by the instructions of an iteration (no clock, no noise).

    python3 bench/instructions.py --before OLD/hostless --after NEW/hostless [--only poisson7,elasticity-hex8]
        [--methods cg,single-reduction-cg,pipelined-cg] [--json FILE]

Each matrix is solved by one rank with so many iterations and with twice as many under valgrind's callgrind, which counts the
instructions that were executed inside the method (--inside); the difference is what so many iterations take. Valgrind shows programs
a processor with AVX2, so these are the kernels of that instruction set. A ratio above 1 is more instructions.
Exit code 1: a solve failed, its true residual has other bits, or a ratio is above --limit (1.02); 3: there is no valgrind.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))
from _whole_file import write_whole  # noqa: E402

MATRICES = {  # kind: size; some ten thousand rows, so that what is not a row's hardly counts
    "poisson7": "28", "elasticity-hex8": "14", "poisson27": "24", "poisson2d": "150", "poisson2d-tri": "150", "circuit": "150",
}
METHODS = ("cg", "single-reduction-cg", "pipelined-cg")
COUNTED = re.compile(r"Collected : (\d+)")


def count(program, words, iterations, folder, inside):
    """(instructions, true residual) of one solve."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = ["valgrind", "--tool=callgrind", f"--toggle-collect={inside}", f"--callgrind-out-file={folder / 'counts'}", program, "solve",
               "--generate", *words, "--rtol", "1e-300", "--max-iterations", str(iterations), "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    found = COUNTED.search(done.stderr)
    if found is None or found.group(1) == "0" or not report.exists():
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    result = json.loads(report.read_text())
    if result["iterations"] != iterations:
        raise RuntimeError(f"{' '.join(command)} ended after {result['iterations']} iterations ({result['status']})")
    return int(found.group(1)), result["true_residual"]


def an_iteration(program, words, folder, options):
    once, _ = count(program, words, options.iterations, folder, options.inside)
    twice, residual = count(program, words, 2 * options.iterations, folder, options.inside)
    return (twice - once) / options.iterations, residual


def rows_of(options, folder):
    for kind in options.only.split(","):
        for method in options.methods.split(","):
            words = [kind, "--size", MATRICES[kind], "--method", method]
            try:
                before, was = an_iteration(options.before, words, folder, options)
                after, now = an_iteration(options.after, words, folder, options)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                yield {"matrix": kind, "method": method, "problem": str(error)}
                continue
            problem = "" if was == now else f"true residual {was!r} was, {now!r} is"
            yield {"matrix": kind, "method": method, "before": before, "after": after, "ratio": after / before, "problem": problem}


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--only", default=",".join(MATRICES), help="kinds of matrices (all)")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--inside", default="hostless::run_method*", help="functions of whose insides instructions are counted")
    parser.add_argument("--limit", type=float, default=1.02)
    parser.add_argument("--json")
    options = parser.parse_args(argv)
    for kind in options.only.split(","):
        if kind not in MATRICES:
            parser.error(f"no matrix '{kind}' (there are {', '.join(MATRICES)})")
    if shutil.which("valgrind") is None:
        print("no valgrind is installed: nothing was counted")
        return 3
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        print("| matrix | method | before | after | ratio |\n|---|---|---|---|---|")
        for row in rows_of(options, Path(folder)):
            rows.append(row)
            print(f"| {row['matrix']} | {row['method']} | " + (f"{row['before']:.0f} | {row['after']:.0f} | {row['ratio']:.4f} |" if "ratio" in row else "- | - | - |")
                  + (f" {row['problem']}" if row["problem"] else ""), flush=True)
    if options.json:
        write_whole(options.json, json.dumps(rows, indent=1) + "\n")
    return int(any(row["problem"] or row["ratio"] > options.limit for row in rows))


if __name__ == "__main__":
    sys.exit(main())

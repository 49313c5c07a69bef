#!/usr/bin/env python3
"""The four matrices of the performance table on one GPU: every layout and run that is asked for, with the bits of x
compared with the processor's.

    python3 bench/gpu_four.py --hostless build/apps/hostless/hostless [--only tri,five,seven,hex8] [--iterations 1000]
        [--reductions ordered,fast]
"""

import argparse
import itertools
import sys
import tempfile

from gpu_solves import HBM, MATRICES, same_bits, solve, timed

APART = ("merge", "vendor")  # their products are kernels of their own, in another order of sums


def agrees(report, expected):
    """Whether a sum in another order ended where it should: the residual after some iterations differs by rounding."""
    true_residual, other = report["true_relative_residual"], expected["true_relative_residual"]
    return abs(true_residual - other) <= 1e-6 * other


def measure(options, name, words, folder, host):
    """One way of solving: prints its line; its best time and whether it was right."""
    label = f"{name:6} " + " ".join(words[k + 1] for k in range(2, len(words), 2)).ljust(35)
    words = [*MATRICES[name], *options.more, *words]
    times, report, _, error = timed(options.hostless, [*words, "--max-iterations", options.iterations], folder, options.repeat)
    if report is None:
        print(f"{label} {error}", flush=True)
        return None, True
    verdict, right = "", True
    if options.check:
        checked = solve(options.hostless, [*words, "--max-iterations", str(options.check)], folder, "gpu")
        if "fast" in words:
            right = agrees(checked[0], host[0])
            verdict = f"residual {'agrees' if right else 'DIFFERS'}, "
        else:
            right = same_bits(checked, host)
            verdict = "bits equal, " if right else "BITS DIFFER, "
    best, choices = times[0], report["choices"]
    share = report["bytes_per_iteration"] / (best * 1e-6) / HBM
    print(f"{label} {best:8.2f} us (median {times[len(times) // 2]:.2f}) "
          f"{report['iterations']} iterations, {100 * share:.0f} % of 4.5 TB/s by its bytes, {verdict}"
          f"true {report['true_relative_residual']:.3e}; {choices['gpu_format']}; {choices['gpu_run']}; "
          f"reduction {choices['reduction']}; matrix {choices['matrix_precision']}", flush=True)
    return best, right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--only", default="tri,five,seven,hex8")
    parser.add_argument("--formats", default="auto")
    parser.add_argument("--runs", default="persistent")
    parser.add_argument("--reductions", default="ordered", help="ordered,fast prints what the order costs")
    parser.add_argument("--iterations", default="1000")
    parser.add_argument("--check", type=int, default=50, help="iterations of the comparison with the processor; 0: none")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of every solve")
    options = parser.parse_args()
    wrong, host = 0, None
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            if options.check:
                host = solve(options.hostless, [*MATRICES[name], *options.more, "--max-iterations", str(options.check)],
                             folder, "host")
            for kind, run in itertools.product(options.formats.split(","), options.runs.split(",")):
                if kind in APART and run == "persistent":
                    continue
                best = {}
                for reduction in ["fast"] if kind in APART else options.reductions.split(","):
                    words = ["--gpus", "1", "--run", run, "--format", kind, "--reduction", reduction]
                    best[reduction], right = measure(options, name, words, folder, host)
                    wrong += not right
                if best.get("ordered") and best.get("fast"):
                    print(f"{name:6} {kind} {run}: ordered takes {best['ordered'] / best['fast']:.3f} times as long as fast",
                          flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Two builds of hostless against each other on GPUs: did a change cost time?

    python3 bench/gpu_paired.py --before OLD/hostless --after NEW/hostless [--only tri,five,seven,hex8] [--gpus 1,2]
        [--ranks 4] [--pairs 10] [--iterations 1000] [--runs persistent] [--json FILE] [--more OPTION...]

Solves of the four matrices of the performance table in the order A B B A A B B A ..., so that what drifts hits both. Of each
matrix and number of GPUs: the median of the paired ratios after / before, and the upper end of its confidence interval of
95 % from order statistics (which supposes nothing of their distribution). A ratio above 1 is slower. x, residual history and
true residual of the two must have equal bits; where they may differ on purpose, --other-bits.
Exit code 1: a solve failed, bits differ, or a median is above --limit (1.02) or its bound above --bound (1.03).
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from pathlib import Path

from gpu_solves import MATRICES, same_bits, solve

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))
from _whole_file import write_whole  # noqa: E402


def upper_bound(values, confidence=0.95):
    """The smallest of the values that is not below the median of what they were drawn from, with that confidence.

    The largest where there are too few of them to be as sure as that (below five).
    """
    values, n = sorted(values), len(values)
    below = 0.0
    for k, value in enumerate(values):  # the median lies above the k + 1 smallest with probability 1 - below
        below += math.comb(n, k) / 2**n
        if below >= confidence:
            return value
    return values[-1]


def order_of(pairs):
    """Which of the two is solved when: A B B A ..."""
    return [name for k in range(pairs) for name in (("before", "after") if k % 2 == 0 else ("after", "before"))]


def compare(options, words, folder):
    """Ratios of all pairs, times of both, and what went wrong."""
    times = {"before": [], "after": []}
    seen = {}
    for which in order_of(options.pairs):
        report, x, error = solve(getattr(options, which), words, folder, which)
        if report is None:
            return None, times, f"{which}: {error}"
        times[which].append(report["device"]["us_per_iteration"])
        seen[which] = (report, x)
    ratios = [after / before for before, after in zip(times["before"], times["after"])]
    differ = not options.other_bits and not same_bits(seen["before"], seen["after"])
    return ratios, times, "bits differ" if differ else ""


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--only", default="tri,five,seven,hex8")
    parser.add_argument("--gpus", default="1")
    parser.add_argument("--ranks", help="where they are not one a GPU; more of them want --more --oversubscribe")
    parser.add_argument("--runs", default="persistent")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--iterations", default="1000")
    parser.add_argument("--limit", type=float, default=1.02)
    parser.add_argument("--bound", type=float, default=1.03)
    parser.add_argument("--other-bits", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[])
    options = parser.parse_args(argv)
    rows, failures = [], 0
    print(f"{'matrix':8}{'GPUs':>5}  {'run':12}{'before us':>10}{'after us':>10}{'ratio':>8}{'bound':>8}")
    for gpus in options.gpus.split(","):
        for run in options.runs.split(","):
            for name in options.only.split(","):
                words = [*MATRICES[name], "--partition", "contiguous", "--gpus", gpus, "--ranks", options.ranks or gpus, "--run", run,
                         "--max-iterations", options.iterations, *options.more]
                with tempfile.TemporaryDirectory() as folder:
                    ratios, times, problem = compare(options, words, folder)
                if ratios is None:
                    failures += 1
                    print(f"{name:8}{gpus:>5}  {run:12}{problem}", flush=True)
                    rows.append({"matrix": name, "gpus": gpus, "run": run, "problem": problem})
                    continue
                median, bound = statistics.median(ratios), upper_bound(ratios)
                if not problem and (median > options.limit or bound > options.bound):
                    problem = "slower"
                failures += bool(problem)
                print(f"{name:8}{gpus:>5}  {run:12}{statistics.median(times['before']):10.2f}"
                      f"{statistics.median(times['after']):10.2f}{median:8.3f}{bound:8.3f}  {problem}", flush=True)
                rows.append({"matrix": name, "gpus": gpus, "run": run, "times_us": times, "ratios": ratios, "median": median,
                             "bound": bound, "problem": problem})
    if options.json:
        rows_of_all = {"pairs": options.pairs, "iterations": options.iterations, "rows": rows}
        write_whole(options.json, json.dumps(rows_of_all, indent=1) + "\n")
    print(f"{len(rows) - failures} of {len(rows)} rows ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

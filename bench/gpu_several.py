#!/usr/bin/env python3
"""The four matrices of the performance table on 1, 2 and 4 GPUs, in every run that is asked for.

    python3 bench/gpu_several.py --hostless build/apps/hostless/hostless [--only tri,five,seven,hex8] [--gpus 1,2,4]
        [--runs persistent,graph,stream] [--iterations 1000] [--json out/gpu_several.json] [--more OPTION...]

Rows are cut into contiguous shares, a rank for each GPU. For each: best and median microseconds an iteration, the
efficiency against one GPU in the same run, the true residual, and whether x, residual history and true residual have the
bits of the other runs on as many GPUs and, after --check iterations, of the processor on as many ranks. Of 4 GPUs the best
run is held against what they must and should reach. Exit code 1: bits differ, or a solve failed.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from gpu_solves import MATRICES, same_bits, solve, timed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))
from _whole_file import write_whole  # noqa: E402

GOALS = {"hex8": (90, 75), "seven": (26, 21), "five": (16, 12.5), "tri": (10, 7)}  # us of an iteration on 4 GPUs
GOALS_GPUS = 4


class Plan:
    """The solves of one matrix on so many GPUs: all of them must have equal bits."""

    def __init__(self, options, name, gpus, folder):
        self.options, self.name, self.gpus, self.folder = options, name, gpus, folder
        same = [*MATRICES[name], "--partition", "contiguous", *options.more]
        self.words = [*same, "--format", options.format, *(["--oversubscribe"] if options.oversubscribe else [])]
        self.words += ["--ranks", str(gpus), "--gpus", str(min(gpus, options.oversubscribe or gpus))]
        self.first = None  # the report and x that the others are compared with
        self.host = None
        if options.check:
            self.host = solve(options.hostless, [*same, "--ranks", str(gpus), "--max-iterations", str(options.check)],
                              folder, "host")
            if self.host[0] is None:
                sys.exit(f"{name} on the processor: {self.host[2]}")

    def bits(self, words, full):
        """What differs, in words; nothing: equal."""
        differ = []
        if self.first is None:
            self.first = full
        elif not same_bits(full, self.first):
            differ.append("other runs")
        if self.host:
            short = solve(self.options.hostless, [*words, "--max-iterations", str(self.options.check)], self.folder, "gpu")
            if short[0] is None or not same_bits(short, self.host):
                differ.append("the processor")
        return ", ".join(differ)

    def measure(self, run):
        words = [*self.words, "--run", run]
        times, report, x, error = timed(self.options.hostless, [*words, "--max-iterations", self.options.iterations],
                                        self.folder, self.options.repeat)
        row = {"matrix": self.name, "gpus": self.gpus, "run": run}
        if report is None:
            return {**row, "error": error}
        return {**row, "best_us": times[0], "median_us": times[len(times) // 2], "all_us": times,
                "iterations": report["iterations"], "status": report["status"],
                "true_relative_residual": report["true_relative_residual"], "relative_error": report["relative_error"],
                "device": report["device"], "choices": report["choices"],
                "differs_from": self.bits(words, (report, x))}


def efficiency(row, rows):
    """Of all its GPUs, against one GPU in the same run; nothing where that was not measured."""
    for other in rows:
        if other["gpus"] == 1 and all(other[key] == row[key] for key in ("matrix", "run")) and "best_us" in other:
            return other["best_us"] / (row["gpus"] * row["best_us"])
    return None


def print_row(row):
    label = f"{row['matrix']:6} {row['gpus']:4} {row['run']:11}"
    if "error" in row:
        print(f"{label} {row['error']}", flush=True)
        return
    share = row["efficiency"]
    print(f"{label} {row['best_us']:9.2f} {row['median_us']:9.2f} {'' if share is None else f'{100 * share:.0f} %':>10} "
          f"{row['iterations']:10} {row['true_relative_residual']:13.3e}  "
          f"{'bits equal' if not row['differs_from'] else 'BITS DIFFER from ' + row['differs_from']}", flush=True)


def goals(rows):
    """Of each matrix that was solved on 4 GPUs: the best run and what it reached."""
    found = {}
    for name, (must, aim) in GOALS.items():
        times = [(row["best_us"], row["run"]) for row in rows
                 if row["matrix"] == name and row["gpus"] == GOALS_GPUS and "best_us" in row]
        if times:
            best, run = min(times)
            found[name] = {"must_us": must, "aim_us": aim, "best_us": best, "run": run,
                           "reached": "aim" if best <= aim else "must" if best <= must else "neither"}
    return found


def main(words=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--only", default="tri,five,seven,hex8")
    parser.add_argument("--gpus", default="1,2,4")
    parser.add_argument("--runs", default="persistent,graph,stream")
    parser.add_argument("--format", default="auto")
    parser.add_argument("--iterations", default="1000")
    parser.add_argument("--check", type=int, default=50, help="iterations of the comparison with the processor; 0: none")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", default="out/gpu_several.json", help="where all figures go")
    parser.add_argument("--oversubscribe", type=int, default=0, metavar="N",
                        help="the ranks share N GPUs: to see the bits, not the times")
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of every solve")
    options = parser.parse_args(words)
    rows = []
    print(f"{'matrix':6} {'GPUs':>4} {'run':11} {'best us':>9} {'median us':>9} {'efficiency':>10} {'iterations':>10} "
          f"{'true residual':>13}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            for gpus in sorted(map(int, options.gpus.split(","))):
                plan = Plan(options, name, gpus, folder)
                for run in options.runs.split(","):
                    rows.append(plan.measure(run))
                    if "best_us" in rows[-1]:
                        rows[-1]["efficiency"] = efficiency(rows[-1], rows)
                    print_row(rows[-1])
    reached = goals(rows)
    for name, goal in reached.items():
        print(f"{name:6} on {GOALS_GPUS} GPUs: {goal['best_us']:.2f} us ({goal['run']}); must {goal['must_us']}, "
              f"aim {goal['aim_us']}: {goal['reached']} reached")
    path = Path(options.json)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({"solves": rows, "goals": reached}, indent=1) + "\n")
    return 1 if any("error" in row or row["differs_from"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

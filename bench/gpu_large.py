#!/usr/bin/env python3
"""Matrices that fill a GPU and are generated there: 100 million rows of 7 points, 60 million rows of hex8 elasticity.

    python3 bench/gpu_large.py --hostless build/apps/hostless/hostless [--only seven,hex8] [--rtol 1e-6]
        [--max-iterations N] [--json FILE] [--more OPTION...]

For each: rows, entries, seconds until the solve begins, microseconds an iteration and what share of 4.5 TB/s that is by
the model's bytes, the true residual, and the most device memory taken against the bytes of matrix and vectors. Exit code
1: one did not converge (with --max-iterations: ended otherwise than by its limit or converged), or took more memory than
1.15 times the model's bytes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))
from _whole_file import write_whole  # noqa: E402

PROBLEMS = {
    "seven": ["--generate", "poisson7", "--size", "464"],
    "hex8": ["--generate", "elasticity-hex8", "--size", "271"],
}
HBM = 4.5e12
MOST_OVER_MODEL = 1.15


def solve(options, name, folder):
    report = Path(folder) / f"{name}.json"
    command = [options.hostless, "solve", *PROBLEMS[name], "--gpus", "1", "--run", options.run, "--generate-on", "gpu",
               "--manufactured", "--no-bandwidth", "--quiet", "--preconditioner", options.preconditioner,
               "--rtol", options.rtol, "--json", str(report), *options.more]
    if options.max_iterations:
        command += ["--max-iterations", options.max_iterations]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not report.exists():
        sys.exit(f"{name}: {done.stderr.strip()}")
    return json.loads(report.read_text()), time.monotonic() - began


def verdict(report, limited):
    ends = ("converged", "iteration_limit") if limited else ("converged",)
    device = report["device"]
    if report["status"] not in ends:
        return f"ended as {report['status']}: {report['message']}"
    if device["peak_bytes"] > MOST_OVER_MODEL * device["model_bytes"]:
        return f"took more than {MOST_OVER_MODEL} times the model's bytes"
    return "ok"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--only", default="seven,hex8")
    parser.add_argument("--run", default="auto")
    parser.add_argument("--preconditioner", default="jacobi")
    parser.add_argument("--rtol", default="1e-6")
    parser.add_argument("--max-iterations", default="")
    parser.add_argument("--json", help="write all reports, without their histories")
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of every solve")
    options = parser.parse_args()
    print(f"{'problem':8} {'rows':>11} {'entries':>14} {'set-up s':>9} {'solve s':>8} {'iterations':>10} {'us each':>9} "
          f"{'of HBM':>7} {'true residual':>13} {'error':>9} {'model GB':>9} {'peak GB':>9} {'peak/model':>10} "
          f"{'host GB':>8}  verdict")
    kept, wrong = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            report, seconds = solve(options, name, folder)
            device = report["device"]
            us = device["us_per_iteration"]
            share = report["bytes_per_iteration"] / (us * 1e-6) / HBM if us > 0 else 0.0
            says = verdict(report, bool(options.max_iterations))
            wrong += says != "ok"
            print(f"{name:8} {report['rows']:11} {report['entries']:14} {seconds - report['time_solve_s']:9.1f} "
                  f"{report['time_solve_s']:8.1f} {report['iterations']:10} {us:9.1f} {100 * share:6.1f}% "
                  f"{report['true_relative_residual']:13.3e} {report['relative_error']:9.2e} "
                  f"{device['model_bytes'] * 1e-9:9.3f} {device['peak_bytes'] * 1e-9:9.3f} "
                  f"{device['peak_bytes'] / device['model_bytes']:10.4f} {report['peak_process_bytes'] * 1e-9:8.2f}  {says}",
                  flush=True)
            for key in ("input", "gpu_format", "generated", "gpu_run", "run_why"):
                print(f"         {key}: {report['choices'].get(key, report.get(key))}", flush=True)
            report.pop("residual_history")
            kept[name] = report
    if options.json:
        write_whole(options.json, json.dumps(kept, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

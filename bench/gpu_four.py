#!/usr/bin/env python3
"""The four matrices of the performance table on one GPU: every layout and run that is asked for, with the bits of x
compared with the processor's.

    python3 bench/gpu_four.py --hostless build/apps/hostless/hostless [--only tri,five,seven,hex8] [--iterations 1000]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

MATRICES = {
    "tri": ["--generate", "poisson2d-tri", "--size", "452"],
    "five": ["--generate", "poisson2d", "--size", "1259"],
    "seven": ["--generate", "poisson7", "--size", "128"],
    "hex8": ["--generate", "elasticity-hex8", "--size", "10,108,483"],
}
HBM = 4.5e12


def solve(binary, words, folder, name):
    output = Path(folder) / f"{name}.npy"
    report = Path(folder) / f"{name}.json"
    command = [binary, "solve", *words, "--rtol", "0", "--manufactured", "--no-bandwidth", "--quiet", "--output", str(output),
               "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return None, None, done.stderr.strip()
    return json.loads(report.read_text()), output.read_bytes(), ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--only", default="tri,five,seven,hex8")
    parser.add_argument("--formats", default="auto")
    parser.add_argument("--runs", default="persistent")
    parser.add_argument("--iterations", default="1000")
    parser.add_argument("--check", type=int, default=50, help="iterations of the comparison of bits; 0: none")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of every solve")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            if options.check:
                host = solve(options.hostless, [*MATRICES[name], *options.more, "--max-iterations", str(options.check)],
                             folder, "host")
            for kind in options.formats.split(","):
                for run in options.runs.split(","):
                    gpu = [*MATRICES[name], *options.more, "--gpus", "1", "--run", run, "--format", kind]
                    times, report, error = [], None, ""
                    for _ in range(options.repeat):
                        report, _, error = solve(options.hostless, [*gpu, "--max-iterations", options.iterations],
                                                 folder, "gpu")
                        if report is None:
                            break
                        times.append(report["device"]["us_per_iteration"])
                    if report is None:
                        print(f"{name:6} {kind:15} {run:10} {error}", flush=True)
                        continue
                    same = ""
                    if options.check:
                        checked = solve(options.hostless, [*gpu, "--max-iterations", str(options.check)], folder, "gpu")
                        equal = checked[1] == host[1] and checked[0]["residual_history"] == host[0]["residual_history"]
                        same = "bits equal" if equal else "BITS DIFFER"
                        wrong += not equal
                    best = min(times)
                    share = report["bytes_per_iteration"] / (best * 1e-6) / HBM
                    print(f"{name:6} {kind:15} {run:10} {best:8.2f} us (median {sorted(times)[len(times) // 2]:.2f}) "
                          f"{report['iterations']} iterations, {100 * share:.0f} % of 4.5 TB/s by its bytes, {same}, "
                          f"true {report['true_relative_residual']:.3e}; {report['choices']['gpu_format']}; "
                          f"{report['choices']['gpu_run']}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Which share of the communication lies beside computing on the GPUs of this machine, and whether the figures make sense.

    bench/gpu/overlap.py HOSTLESS [--out FOLDER] [--size 1500] [--limit 240]

By commands of their own: solves that are traced (`--profile`), on one rank, on two ranks that share a GPU (for form: their
times say nothing), and, where there are two GPUs, on two by every transport; then `bench solve --overlap`, `bench papers
--overlap` and `--no-compute`. Every figure is printed as it came; a line that begins with FAILED says which does not hold:
0 <= share <= 1; computing, exposed and idle are the iteration, and the traced kernels' own time within 5 %; what computes nothing
has no share. A way that this machine does not have is `absent`, with the reason. FOLDER (./out/overlap) keeps traces and reports.
Exit code: how many do not hold, at most 99; 3 without a GPU.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

PARTS = ("computing_us", "exposed_us", "idle_us")
# What says that this machine does not have a way, and not that it went wrong.
ABSENT = (2, 4)


class Checks:
    def __init__(self, hostless: str, out: Path, limit: float):
        self.hostless, self.out, self.limit = hostless, out, limit
        self.failed = self.shown = self.absent = self.traced = 0

    def say(self, holds: bool, what: str) -> None:
        self.shown += 1
        if not holds:
            self.failed += 1
            print(f"FAILED {what}", flush=True)

    def run(self, name: str, words: list) -> dict | None:
        """The JSON of a command; what it said to people goes beside it. None: absent, or it failed."""
        report = self.out / f"{name}.json"
        report.unlink(missing_ok=True)
        command = [self.hostless, *map(str, words), "--json", str(report)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.limit,
                                  env={**os.environ, "NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1"}, check=False)
            code, said = done.returncode, (done.stdout + done.stderr).strip()
        except subprocess.TimeoutExpired as error:
            code, said = -1, f"longer than {self.limit:g} s: {(error.stderr or b'')[-300:]}"
        (self.out / f"{name}.log").write_text(f"{' '.join(command)}\nexit code {code}\n{said}\n")
        print(f"-- {name}: exit code {code}", flush=True)
        if code in ABSENT and not report.exists():
            self.absent += 1
            print("   absent: " + (said or "it said nothing")[-600:].replace("\n", "\n     "))
            return None
        if code not in (0, 1, *ABSENT) or not report.exists():  # a report has refused ways as rows
            self.say(False, f"{name}: exit code {code}: {said[-400:]}")
            return None
        return json.loads(report.read_text())

    def times(self, name: str, times: dict | None, communicates: bool | None, kernels_us: float | None = None) -> None:
        """Of one set of times by a clock. communicates: None: what is not known of this way."""
        print(f"   by its clock: {json.dumps(times)}", flush=True)
        if times is None:
            return self.say(False, f"{name}: nothing was traced")
        self.traced += 1
        total = sum(times[part] for part in PARTS)
        self.say(abs(total - times["iteration_us"]) <= 0.05 * times["iteration_us"],
                 f"{name}: parts {total:.3f} us of an iteration of {times['iteration_us']:.3f}")
        self.say(all(times[part] >= 0 for part in PARTS), f"{name}: a part below 0")
        self.say(times["computing_us"] > 0, f"{name}: nothing computes")
        if kernels_us:
            print(f"   traced kernels, by events: {kernels_us:.3f} us an iteration, {total / kernels_us:.4f} of it are in the parts")
            self.say(abs(total / kernels_us - 1) <= 0.05, f"{name}: {total:.3f} us in the parts, {kernels_us:.3f} by events")
        share, all_us = times["overlapped"], times["communication_us"]
        if communicates is not None:
            self.say((share is not None) == communicates, f"{name}: the share of communication is {share}")
        if share is not None:
            self.say(0 <= share <= 1, f"{name}: share {share}")
            self.say(times["exposed_us"] <= 1.001 * all_us, f"{name}: more is exposed than there is")

    def solve(self, name: str, problem: list, words: list, communicates: bool | None) -> None:
        for method in ("cg", "pipelined-cg"):
            way = f"{name}-{method}"
            result = self.run(f"solve-{way}", ["solve", *problem, "--manufactured", "--method", method, *words, "--rtol", "0",
                                               "--max-iterations", "300", "--profile", self.out / f"trace-{way}.json"])
            if result is None:
                continue
            print(f"   {result['status']}, {result['iterations']} iterations, {result['choices'].get('gpu_run')}")
            self.times(way, result["iteration_times"], communicates, (result.get("device") or {}).get("us_per_iteration"))
            events = json.loads((self.out / f"trace-{way}.json").read_text())["traceEvents"]
            self.say(len(events) > 10 and all(one["dur"] >= 0 for one in events), f"{way}: {len(events)} events in the trace")

    def overlap(self, name: str, row: dict, needs_times: bool) -> None:
        overlap = row.get("overlap")
        us = {key: row.get(key) for key in ("median_us", "communication_us", "exposed_us", "overlapped")}
        print(f"   {name}: {json.dumps(us)}\n   {json.dumps(overlap)}")
        if row.get("error"):
            self.absent += 1
            return print(f"   absent: {row['error']}")
        if overlap is None:
            return self.say(False, f"{name}: no overlap")
        self.times(name, overlap["by_clock"], None)
        for problem in ("by_clock_problem", "by_runs_problem"):
            if overlap.get(problem):
                print(f"   {problem}: {overlap[problem]}")
        by_runs = overlap["by_runs"]
        self.say(by_runs is not None or not needs_times, f"{name}: no share by three runs")
        if by_runs:
            self.say(0 <= by_runs["overlapped"] <= 1, f"{name}: share {by_runs['overlapped']} by three runs")
            self.say(all(by_runs[f"{part}_us"] > 0 for part in ("computing", "communication", "whole")), f"{name}: a run of no time")

    def benches(self, name: str, problem: list, words: list, transports: str) -> None:
        report = self.run(f"bench-{name}", ["bench", "solve", *problem, *words, "--overlap", "--iterations", 500, "--repeat", 3,
                                            "--runs", "persistent,stream,graph", "--gpu-transports", transports])
        for row in (report or {}).get("solves", ()):
            self.overlap(f"{row['method']} {row['run']} {row.get('gpu_transport', '')}", row, True)
        small = ["--rows", 200000, "--only", "Serena,ecology2", *words]
        report = self.run(f"papers-{name}", ["bench", "papers", *small, "--overlap", "--iterations", 500, "--repeat", 3, "--by-cpu",
                                             transports.split(",")[-1]])
        for matrix in (report or {}).get("matrices", ()):
            for row in matrix.get("runs", ()):
                self.overlap(f"{matrix['name']} {row['variant']}", row, True)
        report = self.run(f"no-compute-{name}", ["bench", "papers", *small, "--no-compute", "--by-cpu", transports.split(",")[-1]])
        for matrix in (report or {}).get("matrices", ()):
            for row in matrix.get("runs", ()):
                print(f"   no compute: {matrix['name']} {row['variant']}: {row.get('communication_us')} us {row.get('error', '')}")
                self.say("error" in row or row["communication_us"] > 0, f"no-compute {row['variant']}: no time")
                self.say("overlapped" not in row and "best_us" not in row, f"no-compute {row['variant']}: it computed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hostless")
    parser.add_argument("--out", type=Path, default=Path("out/overlap"))
    parser.add_argument("--size", type=int, default=1500, help="points along a side of a square (1500)")
    parser.add_argument("--limit", type=float, default=240, help="seconds of one command (240)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout if nvidia() else ""
    gpus = listed.count("GPU ")
    if gpus == 0:
        print("no GPU is seen here: nothing was shown")
        return 3
    print(listed.strip())
    checks = Checks(options.hostless, options.out, options.limit)
    problem = ["--generate", "poisson2d-tri", "--size", str(options.size), "--partition", "contiguous"]
    for run in ("persistent", "stream", "graph"):
        checks.solve(f"1-{run}", problem, ["--gpus", 1, "--run", run], False)
    two = [["--gpus", 1, "--ranks", 2, "--oversubscribe"]] + ([["--gpus", 2]] if gpus > 1 else [])
    for words in two:
        name = "2" if "--oversubscribe" not in words else "shared"
        for run, by, communicates in (("persistent", "peer", True), ("stream", "peer", False), ("stream", "host", True),
                                      ("graph", "host", True), ("stream", "nccl", True), ("graph", "nccl", True)):
            if by != "nccl" or name == "2":
                checks.solve(f"{name}-{run}-{by}", problem, [*words, "--run", run, "--gpu-transport", by], communicates)
        checks.benches(name, problem, words, "peer,host" if name == "shared" else "peer,host,nccl")
    checks.say(checks.traced > 0, "nothing was traced at all")
    print(f"{checks.traced} traces, {checks.absent} ways absent; {checks.shown} things were looked at, {checks.failed} do not hold")
    return min(99, checks.failed)


def nvidia() -> bool:
    return any((Path(folder) / "nvidia-smi").exists() for folder in os.environ.get("PATH", "").split(os.pathsep))


if __name__ == "__main__":
    sys.exit(main())

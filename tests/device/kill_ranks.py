#!/usr/bin/env python3
"""Kills ranks that are processes, at random moments of their jobs, and looks at what the others do.

    python3 tests/device/kill_ranks.py --hostless build/apps/hostless/hostless --ranks 3            # on the processor
    python3 tests/device/kill_ranks.py --hostless build/apps/hostless/hostless --ranks 3 --gpus 1 --oversubscribe

Every other job is killed anywhere between its start and its end, the rest while they iterate and would go on for long.
All survivors must end within the deadline and a second, with exit code 4 and `peer_lost` if they say anything; nobody
may say `converged` with an x whose residual, computed here, is too large. Exit code 1: something of that was not so.
"""

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))

RTOL = 1e-8
FIRST_S, LATER_S = 60.0, 10.0  # deadlines of hostless, before HOSTLESS_DEADLINE_SCALE
ENDLESS = ("--generate", "poisson1d", "--size", "2000000", "--rtol", "1e-14")  # 10^6 iterations
HOST_RUNS, GPU_RUNS = ("host", "persistent", "graph"), ("persistent", "graph", "stream")
COLUMNS = ("transport", "run", "kills", "no result", "peer_lost", "converged", "slowest survivor s", "hangs",
           "false converged", "other")


@dataclass
class Counts:
    """What became of the jobs of one transport and run."""
    kills: int = 0
    no_result: int = 0
    peer_lost: int = 0
    converged: int = 0
    slowest_s: float = 0.0
    hangs: int = 0
    false_converged: int = 0
    problems: list = field(default_factory=list)

    def good(self):
        return self.hangs == 0 and self.false_converged == 0 and not self.problems

    def row(self, transport, run):
        return (transport, run, self.kills, self.no_result, self.peer_lost, self.converged, f"{self.slowest_s:.2f}",
                self.hangs, self.false_converged, len(self.problems))


class Jobs:
    """Jobs of one transport and run, in a folder that also has the matrix."""

    def __init__(self, options, folder, transport, run):
        self.options, self.folder, self.run = options, Path(folder), run
        self.transport, self.counts = transport, Counts()
        self.launcher = ()
        if transport != "processes":
            self.launcher, self.absent = helpers.launcher_of(transport, options.ranks)
        else:
            self.absent = None
        deadline_scale = {"HOSTLESS_DEADLINE_SCALE": str(options.deadline_scale)}
        self.environment = helpers.surroundings(deadline_scale)
        self.usual_s = 0.0  # from the start of the ranks to the end of the job

    def start(self, endless):
        for name in ("x.npy", "result.json"):
            (self.folder / name).unlink(missing_ok=True)
        words = [helpers.COMMAND, "solve", *(ENDLESS if endless else ("A.mtx", "--rtol", repr(RTOL)))]
        words += ["--run", self.run, "--output", "x.npy", "--json", "result.json", "--no-bandwidth", "--quiet"]
        if self.options.gpu_transport:
            words += ["--gpu-transport", self.options.gpu_transport]
        if self.options.gpus > 0:
            words += ["--gpus", str(self.options.gpus), *(["--oversubscribe"] if self.options.oversubscribe else [])]
        if self.transport == "processes":
            words += ["--ranks", str(self.options.ranks), "--transport", "processes"]
        return subprocess.Popen([*self.launcher, *words], cwd=self.folder, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def ranks_of(self, job):
        """The ranks of a job once all of them are there, or none if it has ended before."""
        while job.poll() is None:
            ranks = sorted(helpers.ranks_of(job))
            if len(ranks) == self.options.ranks:
                return ranks
            time.sleep(0.002)
        return []

    def undisturbed(self):
        """Why the job does not work without being disturbed, or None; sets how long it takes."""
        job = self.start(endless=False)
        self.ranks_of(job)
        begin = time.monotonic()
        _, errors = job.communicate(timeout=helpers.SLOWEST)
        self.usual_s = time.monotonic() - begin
        if job.returncode != 0:
            return errors.strip().splitlines()[-1:] or [f"exit code {job.returncode}"]
        return None if self.residual() <= RTOL * 1.01 else ["its residual is too large"]

    def kill_one(self, chance, endless):
        counts = self.counts
        job = self.start(endless)
        ranks = self.ranks_of(job)
        victim = chance.choice(range(self.options.ranks))
        moment = chance.uniform(0.0, 1.1 * self.usual_s)
        time.sleep(moment)
        in_time = bool(ranks) and helpers.alive(ranks[victim])
        if in_time:
            helpers.kill(ranks[victim], signal.SIGKILL)
        begin = time.monotonic()
        limit = FIRST_S * self.options.deadline_scale + self.options.grace
        while any(map(helpers.alive, ranks)) and time.monotonic() - begin < limit:
            time.sleep(0.005)
        seconds = time.monotonic() - begin
        hangs = any(map(helpers.alive, ranks))
        try:
            _, errors = job.communicate(timeout=0.1 if hangs else 10.0 + self.options.grace)
        except subprocess.TimeoutExpired:
            hangs = True
            errors = ""
        helpers.end(job)
        counts.hangs += hangs
        if in_time:
            counts.kills += 1
            counts.slowest_s = max(counts.slowest_s, seconds)
        what = f"{self.transport} {self.run}, rank {victim} after {moment:.3f} s: "
        self.judge(job.returncode, what, in_time, endless, seconds, errors)

    def judge(self, code, what, killed, endless, seconds, errors):
        counts = self.counts
        status = None
        if (self.folder / "result.json").exists():
            status = json.loads((self.folder / "result.json").read_text())["status"]
        counts.peer_lost += status == "peer_lost"
        counts.converged += status == "converged"
        counts.no_result += killed and status is None
        if status == "converged" or (self.folder / "x.npy").exists():
            counts.false_converged += endless or not self.residual() <= RTOL * 1.01
        allowed = {0} if not killed else {0, 4} if self.transport == "processes" else {0, 4, 9, 137}  # MPI's own aborts
        if code not in allowed or (code == 0 and status != "converged"):
            counts.problems.append(f"{what}exit code {code}, status {status}: {errors.strip()[-300:]}")
        elif status not in (None, "peer_lost", "converged"):
            counts.problems.append(f"{what}status {status}")
        # Before the first barrier others may wait longer; whoever says peer_lost has iterated.
        elif killed and status == "peer_lost" and endless and seconds > LATER_S * self.options.deadline_scale + self.options.grace:
            counts.problems.append(f"{what}the others took {seconds:.2f} s")

    def residual(self):
        """|b - A x| / |b| of the tridiagonal system and of what was written, or infinity."""
        try:
            x = helpers.read_npy((self.folder / "x.npy").read_bytes())
        except (OSError, AssertionError):
            return float("inf")
        n = self.options.size
        if len(x) != n:
            return float("inf")
        padded = [0.0, *x, 0.0]
        return helpers.norm([1.0 - (2.0 * padded[i] - padded[i - 1] - padded[i + 1]) for i in range(1, n + 1)]) / n**0.5


def laplacian(n):
    lines = [f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {2 * n - 1}\n"]
    lines += [f"{i} {i} 2\n{i + 1} {i} -1\n" for i in range(1, n)]
    return "".join([*lines, f"{n} {n} 2\n"])


def print_table(rows):
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(COLUMNS))]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hostless", required=True, help="the built program")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--gpus", type=int, default=0, help="0: on the processor")
    parser.add_argument("--oversubscribe", action="store_true", help="ranks may share GPUs")
    parser.add_argument("--gpu-transport", default="", help="what carries between GPUs [auto]; name --runs that it has")
    parser.add_argument("--transports", default="processes", help="of processes, openmpi, mpich, with commas")
    parser.add_argument("--runs", default="", help="with commas [those of the processor, or of GPUs]")
    parser.add_argument("--times", type=int, default=10, help="kills of each transport and run")
    parser.add_argument("--size", type=int, help="rows of the matrix, twice its iterations [1000, on GPUs 100000]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--deadline-scale", type=float, default=0.2)
    parser.add_argument("--grace", type=float, default=1.0, help="seconds beyond a deadline; more where other work has the processors")
    options = parser.parse_args()
    if options.size is None:
        options.size = 100000 if options.gpus > 0 else 1000
    return options


def main():
    options = arguments()
    os.environ["HOSTLESS_COMMAND"] = str(Path(options.hostless).resolve())
    global helpers
    import hostless_command as helpers  # reads that at once
    runs = options.runs.split(",") if options.runs else GPU_RUNS if options.gpus > 0 else HOST_RUNS
    rows, problems, good = [COLUMNS], [], True
    with tempfile.TemporaryDirectory(prefix="hostless-") as folder:
        os.environ["HOSTLESS_CACHE_DIR"] = str(Path(folder) / "cache")
        (Path(folder) / "A.mtx").write_text(laplacian(options.size))
        for transport, run in itertools.product(options.transports.split(","), runs):
            jobs = Jobs(options, folder, transport, run)
            why = [jobs.absent] if jobs.absent else jobs.undisturbed()
            if why:
                print(f"{transport} {run}: not tried ({why[0]})")
                good = good and bool(jobs.absent)
                continue
            chance = random.Random(f"{options.seed} {transport} {run}")
            for k in range(3 * options.times):  # some have ended before they are killed
                if jobs.counts.kills == options.times:
                    break
                jobs.kill_one(chance, endless=k % 2 == 1)
            if jobs.counts.kills < options.times:
                problems.append(f"{transport} {run}: only {jobs.counts.kills} of {3 * options.times} jobs lived to be killed")
                good = False
            rows.append(jobs.counts.row(transport, run))
            problems += jobs.counts.problems
            good = good and jobs.counts.good()
    print_table(rows)
    print("\n".join(problems), end="\n" if problems else "")
    kills, hangs, false_converged = (sum(row[COLUMNS.index(name)] for row in rows[1:]) for name in ("kills", "hangs", "false converged"))
    print(f"{kills} kills, {hangs} hangs, {false_converged} false converged")
    return 0 if good and len(rows) > 1 else 1


if __name__ == "__main__":
    sys.exit(main())

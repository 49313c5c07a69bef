#!/usr/bin/env python3
"""A stencil on two machines that are network namespaces of this one: bits, and the depth of halos that is chosen on links of other rates.

    python3 bench/stencil_machines.py HOSTLESS [--rates none,1gbit,100mbit,10mbit] [--size 512,512] [--steps 400] [--ranks 1]
        [--json FILE] [--picture FILE.svg]

Needs root, `ip` and `tc`, and Open MPI. Two hosts of so many ranks each are joined by a bridge; each link takes so many bits a second. Of every
rate: what an exchange costs there is measured when the stencil is set up, the depth follows from it, and the cells must have the bits of one rank.
Beside the chosen depth: the time of a step with depth 1 and with the chosen one. Exit code 1: bits differ, or a run failed; 3: no
namespaces here.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def call(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True, timeout=60)


class Machines:
    """Two namespaces, a host name and an address each, joined by a bridge in a third."""

    def __init__(self, rate: str, folder: Path):
        self.name, self.folder = f"hostless{os.getpid()}", folder
        self.spaces = [f"{self.name}-{k}" for k in (1, 2)]
        self.bridge = f"{self.name}-b"
        try:
            self.make(rate)
        except BaseException:
            self.end()
            raise

    def make(self, rate: str):
        call("ip", "netns", "add", self.bridge)
        call("ip", "-n", self.bridge, "link", "add", "br0", "type", "bridge")
        call("ip", "-n", self.bridge, "link", "set", "br0", "up")
        for k, space in enumerate(self.spaces, 1):
            call("ip", "netns", "add", space)
            call("ip", "-n", space, "link", "set", "lo", "up")
            call("ip", "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{k}", "netns", self.bridge)
            call("ip", "-n", space, "addr", "add", f"10.78.0.{k}/24", "dev", "eth0")
            call("ip", "-n", space, "link", "set", "eth0", "up")
            call("ip", "-n", self.bridge, "link", "set", f"p{k}", "master", "br0", "up")
            if rate != "none":
                call("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "16kb", "latency", "200ms")
        agent = self.folder / "agent"
        agent.write_text(f"#!/bin/sh\nk=${{1##*.}}\nshift\nexec ip netns exec {self.name}-$k unshare --uts sh -c \"hostname h$k; $*\"\n")
        agent.chmod(0o755)
        self.agent = str(agent)

    def run(self, ranks: int, command: list):
        """Open MPI over both; what it ended with."""
        launch = ["ip", "netns", "exec", self.spaces[0], "unshare", "--uts", "sh", "-c", 'hostname h1; exec "$@"', "sh", "mpirun.openmpi", "-H",
                  f"10.78.0.1:{ranks},10.78.0.2:{ranks}", "-n", str(2 * ranks), "--map-by", "slot", "--oversubscribe",
                  "--mca", "plm_rsh_agent", self.agent, "--mca", "orte_keep_fqdn_hostnames", "1", "--mca", "btl", "tcp,self,vader",
                  "--mca", "btl_tcp_if_include", "10.78.0.0/24", "--mca", "oob_tcp_if_include", "10.78.0.0/24", "--mca", "mpi_yield_when_idle", "1"]
        allowed = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        return subprocess.run([*launch, *command], capture_output=True, text=True, timeout=300, env=allowed)

    def end(self):
        for space in (*self.spaces, self.bridge):
            call("ip", "netns", "del", space, check=False)


def stencil(options, folder, *more):
    return [options.hostless, "stencil", "--problem", "jacobi2d", "--size", options.size, "--type", "fp32", "--steps", str(options.steps), "--quiet",
            "--output", str(folder / "u.npy"), "--json", str(folder / "r.json"), *more]


def measured(options, rate, expected, folder):
    """The row of one rate, and what went wrong."""
    machines = Machines(rate, folder)
    row, problems = {"rate": rate}, []
    try:
        for which, more in (("chosen", []), ("one", ["--depth", "1"])):
            done = machines.run(options.ranks, stencil(options, folder, *more))
            if done.returncode != 0:
                return row, [f"{rate}: {(done.stdout + done.stderr).strip()[-300:]}"]
            report = json.loads((folder / "r.json").read_text())
            row |= {f"{which}_depth": report["depth"], f"{which}_us": report["microseconds_per_step"]}
            if (folder / "u.npy").read_bytes() != expected:
                problems.append(f"{rate}, depth {report['depth']}: other bits than one rank")
    finally:
        machines.end()
    return row, problems


def draw(rows, path):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))
    import plots  # the file itself: the package has a compiled part
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    depth, time = figure.subplots(1, 2)
    names = [row["rate"] for row in rows]
    depth.plot(names, [row["chosen_depth"] for row in rows], "o-")
    depth.set(title="depth that is chosen", xlabel="rate of the links", ylabel="steps between two exchanges")
    time.semilogy(names, [row["one_us"] for row in rows], "s--", label="depth 1")
    time.semilogy(names, [row["chosen_us"] for row in rows], "o-", label="chosen depth")
    time.set(title="time of a step", xlabel="rate of the links", ylabel="µs")
    time.legend()
    plots.write_svg(figure, path)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hostless")
    parser.add_argument("--rates", default="none,1gbit,100mbit,10mbit")
    parser.add_argument("--size", default="512,512")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--ranks", type=int, default=1, help="of each machine")
    parser.add_argument("--json")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args(argv)
    options.hostless = str(Path(options.hostless).resolve())
    if os.geteuid() != 0 or call("unshare", "--net", "--uts", "true", check=False).returncode != 0:
        print("no namespaces here (root may make them, where the system allows it): nothing was shown")
        return 3
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone = subprocess.run(stencil(options, folder, "--ranks", "1"), capture_output=True, text=True, timeout=300)
        if alone.returncode != 0:
            print(alone.stdout + alone.stderr)
            return 1
        expected = (folder / "u.npy").read_bytes()
        print(f"{'rate':10}{'depth':>7}{'us a step':>12}{'with depth 1':>14}")
        for rate in options.rates.split(","):
            row, problems = measured(options, rate, expected, folder)
            failures += problems
            if "one_us" in row:
                rows.append(row)
                print(f"{rate:10}{row['chosen_depth']:7}{row['chosen_us']:12.1f}{row['one_us']:14.1f}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps({"size": options.size, "ranks": 2 * options.ranks, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    if options.picture and rows:
        draw(rows, options.picture)
    print("\n".join(failures) if failures else f"{len(rows)} rates, cells bit for bit those of one rank")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

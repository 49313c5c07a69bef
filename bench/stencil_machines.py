#!/usr/bin/env python3
"""A stencil on two machines that are network namespaces of this one: bits, and the depth of halos that is chosen on links of other rates.

    python3 bench/stencil_machines.py HOSTLESS [--rates none,1gbit,100mbit,10mbit] [--delay-us 0] [--size 512,512] [--steps 400] [--ranks 1]
        [--json FILE] [--picture FILE.svg]

Needs root, `ip` and `tc`, and Open MPI. Two hosts of so many ranks each are joined by a bridge; each link takes so many bits a second. Of every
rate: what an exchange costs there is measured when the stencil is set up, the depth follows from it, and the cells must have the bits of one rank.
Beside the chosen depth: the time of a step with depth 1 and with the chosen one. Exit code 1: bits differ, or a run failed; 3: no
namespaces here.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from emulated_machines import Machines, missing


def stencil(options, folder, *more):
    return [options.hostless, "stencil", "--problem", "jacobi2d", "--size", options.size, "--type", "fp32", "--steps", str(options.steps), "--quiet",
            "--output", str(folder / "u.npy"), "--json", str(folder / "r.json"), *more]


def measured(options, rate, expected, folder):
    """The row of one rate, and what went wrong."""
    row, problems = {"rate": rate, "delay_us": options.delay_us}, []
    with Machines(2, rate, options.delay_us) as machines:
        for which, more in (("chosen", []), ("one", ["--depth", "1"])):
            done = machines.run(stencil(options, folder, *more), options.ranks)
            if done.returncode != 0:
                return row, [f"{rate}: {(done.stdout + done.stderr).strip()[-300:]}"]
            report = json.loads((folder / "r.json").read_text())
            row |= {f"{which}_depth": report["depth"], f"{which}_us": report["microseconds_per_step"]}
            if (folder / "u.npy").read_bytes() != expected:
                problems.append(f"{rate}, depth {report['depth']}: other bits than one rank")
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
    parser.add_argument("--delay-us", type=float, default=0, help="of the links")
    parser.add_argument("--size", default="512,512")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--ranks", type=int, default=1, help="of each machine")
    parser.add_argument("--json")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args(argv)
    options.hostless = str(Path(options.hostless).resolve())
    if problem := missing():
        print(f"{problem}: nothing was shown")
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

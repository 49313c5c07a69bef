#!/usr/bin/env python3
"""A stencil on two machines that are network namespaces of this one: bits, and the depth of halos that is chosen on links of other rates and latencies.

    python3 bench/stencil_machines.py HOSTLESS [--rates none,1gbit,100mbit,10mbit] [--delay-us 0] [--size 512,512] [--steps 400] [--ranks 1]
        [--json FILE] [--picture FILE.svg]
    python3 bench/stencil_machines.py HOSTLESS --rates 1gbit --delay-us 0,200,1000,5000 --picture latency.svg

Needs root, `ip` and `tc`, and Open MPI. Two hosts of so many ranks each are joined by a bridge; each link takes so many bits a second, and so many
microseconds. Of every rate and latency: what an exchange costs there is measured when the stencil is set up, the depth follows from it, and the cells
must have the bits of one rank. Beside the chosen depth: the time of a step with depth 1 and with the chosen one. Exit code 1: bits differ, or a run failed; 3: no
namespaces here.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from emulated_machines import Machines, missing
from program import picture, program


def stencil(options, folder, *more):
    return [options.hostless, "stencil", "--problem", "jacobi2d", "--size", options.size, "--type", "fp32", "--steps", str(options.steps), "--quiet",
            "--output", str(folder / "u.npy"), "--json", str(folder / "r.json"), *more]


def measured(options, rate, delay_us, expected, folder):
    """The row of one rate and latency, and what went wrong."""
    row, problems = {"rate": rate, "delay_us": delay_us}, []
    with Machines(2, rate, delay_us) as machines:
        for which, more in (("chosen", []), ("one", ["--depth", "1"])):
            done = machines.run(stencil(options, folder, *more), options.ranks)
            if done.returncode != 0:
                return row, [f"{rate}, {delay_us:g} us: {(done.stdout + done.stderr).strip()[-300:]}"]
            report = json.loads((folder / "r.json").read_text())
            row |= {f"{which}_depth": report["depth"], f"{which}_us": report["microseconds_per_step"]}
            if (folder / "u.npy").read_bytes() != expected:
                problems.append(f"{rate}, {delay_us:g} us, depth {report['depth']}: other bits than one rank")
    return row, problems


def draw(rows, path):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))
    import plots  # the file itself: the package has a compiled part
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    depth, time = figure.subplots(1, 2)
    of_delays = len({row["delay_us"] for row in rows}) > 1
    # over latencies a line for each rate, else one over rates
    for number, rate in enumerate(dict.fromkeys(row["rate"] for row in rows) if of_delays else [None]):
        colour = f"C{number}"
        line = [row for row in rows if rate in (None, row["rate"])]
        at = [row["delay_us"] if of_delays else row["rate"] for row in line]
        beside = f", {rate}" if rate else ""
        depth.plot(at, [row["chosen_depth"] for row in line], "o-", color=colour, label=rate)
        time.plot(at, [row["one_us"] for row in line], "s--", color=colour, label=f"depth 1{beside}")
        time.plot(at, [row["chosen_us"] for row in line], "o-", color=colour, label=f"chosen depth{beside}")
    over = "latency of the links, µs" if of_delays else "rate of the links"
    depth.set(title="depth that is chosen", xlabel=over, ylabel="steps between two exchanges")
    time.set(title="time of a step", xlabel=over, ylabel="µs", yscale="log")
    if of_delays:
        for cell in (depth, time):
            cell.set_xscale("symlog", linthresh=100)
            cell.set_xlim(-20, 1.5 * max(row["delay_us"] for row in rows))
    time.legend(fontsize="small")
    plots.write_svg(figure, path)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hostless", type=program)
    parser.add_argument("--rates", default="none,1gbit,100mbit,10mbit")
    parser.add_argument("--delay-us", default="0", help="of the links: one, or some between commas")
    parser.add_argument("--size", default="512,512")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--ranks", type=int, default=1, help="of each machine")
    parser.add_argument("--json")
    parser.add_argument("--picture", type=picture)
    options = parser.parse_args(argv)
    try:
        delays = [float(word) for word in options.delay_us.split(",")]
    except ValueError:
        delays = [-1.0]
    if not all(0 <= delay <= 1e6 for delay in delays):
        parser.error(f"--delay-us '{options.delay_us}' (microseconds from 0 to 1000000, between commas)")
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
        print(f"{'rate':10}{'latency us':>11}{'depth':>7}{'us a step':>12}{'with depth 1':>14}")
        for rate, delay_us in itertools.product(options.rates.split(","), delays):
            row, problems = measured(options, rate, delay_us, expected, folder)
            failures += problems
            if "one_us" in row:
                rows.append(row)
                print(f"{rate:10}{delay_us:11g}{row['chosen_depth']:7}{row['chosen_us']:12.1f}{row['one_us']:14.1f}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps({"size": options.size, "ranks": 2 * options.ranks, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    if options.picture and rows:
        draw(rows, options.picture)
    print("\n".join(failures) if failures else f"{len(rows)} links, cells bit for bit those of one rank")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

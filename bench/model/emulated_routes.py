#!/usr/bin/env python3
"""Every route of neighbourhood allgathers between emulated machines, measured and predicted: whether the route that prices choose is the fastest.

    python3 bench/model/emulated_routes.py HOSTLESS [--machines 3] [--ranks 3] [--rates 50mbit,200mbit] [--patterns 30] [--measure-s 20]
        [--files FOLDER] [--repeat 5] [--repeat-s 1] [--json FILE] [--picture FILE.svg]

Needs root (bench/emulated_machines.py). For each rate of the links: `machine measure` fits a machine file to what messages between these ranks take, and the rate itself limits what all ranks of a machine send; then each pattern (random sparse graphs and Moore neighbourhoods, blocks
of several sizes) is measured by every route (`bench neighbor`) and each route priced from that file alone (`predict collective`). A pattern counts where the price of the chosen route is by more than 80 % that of messages
and bytes between machines, and repeats of the chosen and of the fastest route spread by less than 5 %. --wide counts those of any spread too, beside them. Exit code 1: of those that count the chosen route is fastest, or within
10 % of it, in fewer than 90 %; 3: no namespaces here, or nothing counted.
"""

import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_machines import Machines, bits_of, missing, parser_of  # noqa: E402
from neighbor_machines import reported  # noqa: E402

ROUTES = ("direct", "two_step", "three_step", "split", "leader")
NETWORK, SPREAD, NEAR, SHARE = 0.8, 0.05, 1.1, 0.9
# Of so many ranks: graphs from thin to full, and neighbourhoods; blocks from latency to bandwidth.
GRAPHS = [["--pattern", "rsg", "--density", str(density), "--seed", str(seed)] for density, seed in ((0.15, 1), (0.3, 2), (0.45, 3), (0.6, 4), (0.8, 5), (1, 6))]
GRAPHS += [["--pattern", "moore", "--dimension", str(d), "--radius", str(r)] for d, r in ((1, 1), (1, 2), (2, 1), (2, 2))]
SIZES = (1 << 20, 1 << 17, 1 << 14)


def patterns(count):
    """Large blocks first: they tell links apart."""
    return list(itertools.islice(((words, size) for size in SIZES for words in GRAPHS), count))


def run(machines, options, *words):
    done = machines.run([options.hostless, *map(str, words)], options.ranks, options.mpi, timeout=options.limit_s)
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("hostless:")] or (done.stdout + done.stderr).splitlines()
        raise RuntimeError(f"{' '.join(map(str, words[:3]))}: {' '.join(said)[:300]}")


def with_known_rate(file, rate):
    """What all ranks of a machine send together passes at the rate of its link, as one knows it of cards; the bucket of `tc` lets small messages of a measurement pass faster."""
    machine = json.loads(file.read_text())
    bits = bits_of(rate)
    machine["sources"]["link"] = f"the link's rate, {rate}"
    machine["injection"] = [{"memory": "host", "limits": [{"up_to_bytes": None, "per": "node", "s_per_byte": 8 / bits}], "sharpness": None, "source": "link"}]
    file.write_text(json.dumps(machine, indent=1) + "\n", encoding="utf-8")


def measured(machines, options, folder, words, size, prices):
    """{route: microseconds of each repeat}, each of so many calls that it lasts: one alone says how lucky its connections were."""
    quickest_s = min(way["seconds"] for way in prices.values())
    steps = max(options.steps, min(math.ceil(options.repeat_s / quickest_s), 500))
    report = reported(machines, options, folder, *words, "--ways", ",".join(ROUTES), "--sizes", size, "--steps", steps, "--repeat", options.repeat, "--warm-up", 1)
    return {row["route"]: row for row in report["neighbor"]}


def predicted(options, folder, file, words, size):
    """{route: its price}"""
    report = folder / "predicted.json"
    command = [options.hostless, "predict", "collective", *words, "--bytes", str(size), "--machine", str(file), "--nodes", str(options.machines)]
    done = subprocess.run([*command, "--ranks-per-node", str(options.ranks), "--json", str(report)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"predict: {done.stderr.strip()[-300:]}")
    return {way["route"]: way for way in json.loads(report.read_text())["ways"] if "seconds" in way}


def spread(row):
    return (row["worst_us"] - row["best_us"]) / row["median_us"]


class Case:
    """One pattern on links of one rate."""

    def __init__(self, rate, words, size, times, prices):
        self.rate, self.size, self.name = rate, size, " ".join(words[1::2])
        self.us = {route: times[route]["median_us"] for route in ROUTES if route in prices}
        self.price_us = {route: 1e6 * prices[route]["seconds"] for route in self.us}
        self.chosen = next(route for route in self.us if prices[route]["chosen"])
        self.fastest = min(self.us, key=self.us.get)
        self.network = prices[self.chosen]["network_s"] / prices[self.chosen]["seconds"]
        self.spread = max(spread(times[self.chosen]), spread(times[self.fastest]))
        self.ratio = self.us[self.chosen] / self.us[self.fastest]

    def counts(self, any_spread=False):
        return self.network > NETWORK and (any_spread or self.spread < SPREAD)

    def line(self):
        prices = " ".join(f"{self.us[route]:9.0f}/{self.price_us[route]:<9.0f}" for route in self.us)
        mark = "counts" if self.counts() else "spread" if self.counts(True) else "not network"
        return f"{self.rate:>8} {self.name:12} {self.size:8} {prices} {self.chosen:10} {self.fastest:10} {self.ratio:6.2f} {100 * self.network:5.0f} {100 * self.spread:7.1f} {mark}"


def share_of(cases, what):
    if not cases:
        print(f"{what}: none")
        return None
    good = sum(case.ratio <= NEAR for case in cases)
    off = [abs(case.price_us[route] / us - 1) for case in cases for route, us in case.us.items()]
    print(f"{what}: {len(cases)}; the chosen route is the fastest or within 10 % of it in {good} ({100 * good / len(cases):.0f} %); prices are off by {100 * statistics.median(off):.0f} % in the median")
    return good / len(cases)


def draw(cases, path):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "hostless"))
    import plots  # the file itself: the package has a compiled part
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 5), layout="constrained")
    axes = figure.subplots()
    for route in ROUTES:
        points = [(case.us[route], case.price_us[route]) for case in cases if route in case.us]
        if points:
            axes.loglog(*zip(*points), "o", markersize=4, label=route)
    ends = [f(us for case in cases for us in case.us.values()) for f in (min, max)]
    for factor, style in ((1, "k-"), (1.26, "k:"), (0.74, "k:")):
        axes.loglog(ends, [factor * end for end in ends], style, linewidth=0.8)
    axes.set(xlabel="measured us of a call", ylabel="predicted")
    axes.legend()
    plots.write_svg(figure, path)


def measure(machines, options, file, times=3):
    """On a machine that others use, messages may take what no machine file can hold: then once more."""
    for left in reversed(range(times)):
        try:
            return run(machines, options, "machine", "measure", "--output", file, "--name", "emulated", "--seconds", options.measure_s, "--quiet")
        except RuntimeError as error:
            if left == 0:
                raise
            print(f"{error}: once more", flush=True)


def cases_of(options, rate, folder):
    """Cases as they are made; what failed is said and left out."""
    file = (options.files or folder) / f"{rate}.json"
    with Machines(options.machines, rate) as machines:
        if not file.exists():
            measure(machines, options, file)
            with_known_rate(file, rate)
        for words, size in patterns(options.patterns):
            try:
                prices = predicted(options, folder, file, words, size)
                case = Case(rate, words, size, measured(machines, options, folder, words, size, prices), prices)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{rate}, {' '.join(words)}, {size} bytes: {error}", flush=True)
                continue
            print(case.line(), flush=True)
            yield case


def options_of(argv):
    parser = parser_of(__doc__)
    parser.add_argument("--rates", default="50mbit,200mbit")
    parser.add_argument("--patterns", type=int, default=30)
    parser.add_argument("--measure-s", type=float, default=20, help="of each machine file")
    parser.add_argument("--repeat-s", type=float, default=1, help="at least, by its price, of each repeat of a route")
    parser.add_argument("--files", type=Path, help="a folder for the machine files, RATE.json; those that are there are taken")
    parser.add_argument("--wide", action="store_true", help="judge by those of any spread")
    return parser.parse_args(argv)


def main(argv=None) -> int:
    options = options_of(argv)
    if problem := missing():
        print(f"{problem}: nothing was shown")
        return 3
    routes = " ".join(f"{route + ' us/price':19}" for route in ROUTES)
    print(f"{'rate':>8} {'pattern':12} {'bytes':>8} {routes} {'chosen':10} {'fastest':10} {'ratio':>6} {'net %':>5} {'spread %':>8}")
    cases = []
    with tempfile.TemporaryDirectory() as name:
        for rate in options.rates.split(","):
            try:
                cases += cases_of(options, rate, Path(name))
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                print(f"{rate}: {error}")
    if options.json:
        options.json.write_text(json.dumps([vars(case) for case in cases], indent=1) + "\n", encoding="utf-8")
    counted = share_of([case for case in cases if case.counts()], f"network above {100 * NETWORK:.0f} % and spread below {100 * SPREAD:.0f} %")
    wide = share_of([case for case in cases if case.counts(True)], f"network above {100 * NETWORK:.0f} %, any spread")
    share_of(cases, "all")
    if options.picture and cases:
        draw(cases, options.picture)
    judged = wide if options.wide else counted
    if judged is None:
        return 3
    return int(judged < SHARE)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Neighbourhood allgathers, and products that gather so, between emulated machines: every route beside the MPI library's own, and the bytes that went over each link.

    python3 bench/neighbor_machines.py HOSTLESS [--mpi openmpi] [--machines 3] [--ranks 3] [--rate 100mbit] [--patterns rsg:0.6,moore:2:1,spmm:crack:64]
        [--sizes 4096,262144] [--steps 2] [--repeat 25] [--json FILE] [--picture FILE.svg]

Needs root (bench/emulated_machines.py). A pattern is rsg:DENSITY, moore:DIMENSION:RADIUS, spmm:MATRIX:COLUMNS or spmv:MATRIX, a file or a name that `hostless bench neighbor` knows; sizes are of the first two. Times are those of `hostless bench neighbor`: of each repeat the mean of its calls, of the slowest rank; the table has
medians, and of the time of the library over each way the median of paired repeats and its 95 % bound. `link` is the part of the library's time that the fullest link needs for what was counted: where it is above 80 %, `auto` must not be slower by more than 5 %. Each way then runs alone, at the largest size, and the bytes that each machine sends and receives are held against those that its plan counts: there may be more, by what TCP and set-up add
(--over, 15 %), and never less. Exit code 1: other bytes, `auto` slower (its bound is below 1 / 1.05), or a run failed; 3: no namespaces here.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from emulated_machines import Machines, bits_of, missing, parser_of


OPTIONS = {"rsg": ["--density"], "moore": ["--dimension", "--radius"], "spmm": [None, "--columns"], "spmv": [None]}  # None: the matrix, which has no option


def multiplies(pattern):
    return pattern.startswith("spm")


def words_of(pattern):
    """Options of `bench neighbor`."""
    kind, *values = pattern.split(":")
    names = OPTIONS.get(kind)
    if names is None or len(names) != len(values):
        raise SystemExit(f"pattern {pattern}: it is rsg:DENSITY, moore:DIMENSION:RADIUS, spmm:MATRIX:COLUMNS or spmv:MATRIX")
    return ["--pattern", kind, *(word for pair in zip(names, values) for word in pair if word is not None)]


def label_of(row):
    """Of products, what is gathered too."""
    return f"{row['gather']} {row['way']}" if "gather" in row else row["way"]


def reported(machines, options, folder, *words):
    """What `bench neighbor` says of those ranks."""
    report = folder / "r.json"
    command = [options.hostless, "bench", "neighbor", *map(str, words), "--json", str(report)]
    done = machines.run(command, options.ranks, options.mpi, timeout=options.limit_s)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {(done.stdout + done.stderr).strip()[-300:]}")
    return json.loads(report.read_text())


def over_links(machines, options, folder, pattern, way):
    """What went over each link in calls of one way (of products: `blocks direct`) at the largest size, in bytes of a call, beside what was counted; and what is wrong."""
    *gather, name = way.split()
    words = ["--ways", name, *(("--gather", *gather) if gather else ("--sizes", str(max(map(int, options.sizes.split(",")))))), "--steps", "2", "--repeat", "1", "--warm-up", "0"]
    before = machines.bytes()
    row = reported(machines, options, folder, *words_of(pattern), *words)["neighbor"][0]
    went = [[(now - then) / row["calls"] for now, then in zip(*pair)] for pair in zip(machines.bytes(), before)]
    counted = [list(pair) for pair in zip(row["bytes_in"], row["bytes_out"])]
    slack = 1 << 17  # of set-up and start, a call
    problems = [
        f"{pattern}, {way}: machine {k + 1} {what} {gone:.0f} bytes a call, and {known} were counted"
        for k in range(len(went))
        for what, gone, known in zip(("received", "sent"), went[k], counted[k])
        if not known <= gone <= known * (1 + options.over / 100) + slack
    ]
    return {"way": way, "bytes": row["bytes"], "counted": counted, "went": went}, problems


SATURATED = 0.8


def print_table(pattern, report, rate):
    print(f"{pattern}: {report['ranks']} ranks, {report['edges']} edges\n{'bytes':>10} {'way':17} {'median us':>12} {'library / it':>13} {'95 % bound':>13} {'w. set-up':>9} {'route':10} {'set-up us':>11} {'between nodes':>14}")
    library = {row["bytes"]: row["median_us"] for row in report["neighbor"] if row["way"] == "library"}
    slowest = max(library.values())  # rows that are needed are of other bytes than the library's blocks, which are of one length
    for row in report["neighbor"]:
        over = row["library_over_it"]
        row["ratio"], row["link"] = over["median"], link_share(row, library.get(row["bytes"], slowest), rate)
        bound = f"{over['low']:.2f} - {over['high']:.2f}" if over["low"] is not None else "no bound"
        print(f"{row['bytes']:10} {label_of(row):17} {row['median_us']:12.0f} {row['ratio']:13.2f} {bound:>13} {row['library_over_it_with_set_up']:9.2f} {row['route'] or '':10} {row['set_up_us']:11.0f} {row['bytes_between']:14}", flush=True)


def link_share(row, library_us, rate):
    """Of the library's time, what the fullest link needs for the bytes of a row; 0 where links have no rate."""
    return max(row["bytes_in"] + row["bytes_out"]) * 8e6 / bits_of(rate) / library_us if rate != "none" else 0


def slower(pattern, rows):
    """Where `auto` is surely slower than the library by more than 5 %, on links that the library keeps busy. So few pairs
    that nothing bounds their ratio make nothing sure."""
    busy = {row["bytes"] for row in rows if row["way"] == "library" and row["link"] > SATURATED}
    return [
        f"{pattern}: auto is slower, {row['bytes']} bytes: {row['ratio']:.2f}, at most {high:.2f}"
        for row in rows
        if row["way"] == "auto" and row["bytes"] in busy and (high := row["library_over_it"]["high"]) is not None and high < 1 / 1.05
    ]


def draw_product(axes, rows):
    """A bar for each way, and one beside it with set-up, as in figure 11 of Temuçin et al."""
    for shift, label, ratios in ((-0.2, "calls", [row["ratio"] for row in rows]), (0.2, "with set-up", [row["library_over_it_with_set_up"] for row in rows])):
        axes.bar([k + shift for k in range(len(rows))], ratios, 0.4, label=label)
    axes.axhline(1, linestyle="--", color="grey")
    axes.set_xticks(range(len(rows)), [label_of(row) for row in rows], rotation=60, ha="right", fontsize=8)
    axes.legend()


def draw(results, path):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))
    import plots  # the file itself: the package has a compiled part
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(results), 3.8), layout="constrained")
    for axes, result in zip(figure.subplots(1, len(results), squeeze=False)[0], results):
        axes.set(title=result["pattern"], ylabel="time of the MPI library over this one")
        if multiplies(result["pattern"]):
            draw_product(axes, result["rows"])
            continue
        for way in dict.fromkeys(row["way"] for row in result["rows"]):
            rows = [row for row in result["rows"] if row["way"] == way]
            axes.loglog([row["bytes"] for row in rows], [row["ratio"] for row in rows], "--" if way == "library" else "o-", label=way)
        axes.set(xlabel="bytes of a block", yscale="linear")
        axes.legend()
    plots.write_svg(figure, path)


def options_of(argv):
    parser = parser_of(__doc__)
    parser.set_defaults(repeat=25)
    parser.add_argument("--rate", default="100mbit")
    parser.add_argument("--delay-us", type=float, default=0)
    parser.add_argument("--patterns", default="rsg:0.6,moore:2:1")
    parser.add_argument("--sizes", default="4096,65536,262144")
    parser.add_argument("--over", type=float, default=15, help="per cent that a link may carry above what is counted")
    return parser.parse_args(argv)


def main(argv=None) -> int:
    options = options_of(argv)
    if problem := missing():
        print(f"{problem}: nothing was shown")
        return 3
    results, failures = [], []
    with tempfile.TemporaryDirectory() as name, Machines(options.machines, options.rate, options.delay_us) as machines:
        for pattern in options.patterns.split(","):
            try:
                sizes = () if multiplies(pattern) else ("--sizes", options.sizes)
                report = reported(machines, options, Path(name), *words_of(pattern), *sizes, "--steps", options.steps, "--repeat", options.repeat, "--warm-up", "1")
                print_table(pattern, report, options.rate)
                failures += slower(pattern, report["neighbor"])
                results.append({"pattern": pattern, "edges": report["edges"], "rows": report["neighbor"], "links": []})
                for way in ("blocks library", "blocks two_step", "rows direct") if multiplies(pattern) else ("library", "two_step", "leader"):
                    link, problems = over_links(machines, options, Path(name), pattern, way)
                    results[-1]["links"].append(link)
                    failures += problems
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failures.append(str(error))
    if options.json:
        head = {"mpi": options.mpi, "machines": options.machines, "ranks": options.ranks, "rate": options.rate, "delay_us": options.delay_us}
        options.json.write_text(json.dumps(head | {"results": results}, indent=1) + "\n", encoding="utf-8")
    if options.picture and results:
        draw(results, options.picture)
    print("\n".join(failures) if failures else "every link carried what was counted")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

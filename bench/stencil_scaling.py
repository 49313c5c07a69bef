#!/usr/bin/env python3
"""Weak and strong scaling of a stencil in the shape of Ismayilov et al. 2023, figures 5 and 6, and the depth of halos on networks of growing latency.

    python3 bench/stencil_scaling.py HOSTLESS weak    [--sizes 256,2048] [--ranks 1,2,4,8] ...
    python3 bench/stencil_scaling.py HOSTLESS strong  [--sizes 256] [--ranks 1,2,4,8] ...
    python3 bench/stencil_scaling.py HOSTLESS latency [--sizes 512] [--latencies 1,10,100,1000,10000] ...
        [--gpus 2] [--variants copy,overlap,blocked] [--type fp32] [--steps 100] [--repeat 5] [--json FILE] [--picture FILE.svg] [--draw FILE.json]

weak: Jacobi in two dimensions; every rank has N x N cells, and the grid doubles along alternating axes as ranks do. strong: Jacobi in three dimensions,
N^3 cells whatever the ranks. Of both a field with computing and one without for each size. latency: N x N cells on two ranks that are threads, what is sent arrives later
(`hostless bench stencil --latency-us`); the depth that the model chose, and the time of a step. Drawn is the least of --repeat times. Ranks are threads of this
machine; where they are more than its cores they take turns, and the picture says how many cores there are. With --gpus, which weak and strong take, parts of the
grid are on so many GPUs, as many on each: more parts than GPUs show the shape alone, not the time. --draw draws what an earlier call wrote with --json.
Exit code 1: bits differ, or a run failed. Pictures need matplotlib.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))

import plots  # noqa: E402  the file itself: the package has a compiled part
from program import picture, program  # noqa: E402

MARKS = "osD^vP*"


def grid_of(size: int, ranks: int) -> list:
    """size x size cells a rank, doubled along alternating axes, the first one first."""
    grid, axis = [size, size], 0
    while ranks > 1:
        grid[axis] *= 2
        axis, ranks = 1 - axis, ranks // 2
    return grid


def who(options, ranks: int) -> list:
    """Ranks that are threads, or parts dealt out to GPUs in order."""
    if not options.gpus:
        return ["--ranks", str(ranks)]
    gpus = min(options.gpus, ranks)
    return ["--gpus", "1" if ranks == 1 else ",".join(str(k * gpus // ranks) for k in range(ranks))]


class Failed(Exception):
    pass


def bench(options, problem, grid, ranks, *more):
    """The report of one call of `hostless bench stencil`."""
    command = [options.hostless, "bench", "stencil", "--problem", problem, "--size", ",".join(map(str, grid)), "--type", options.type, *who(options, ranks),
               "--variants", options.variants, "--steps", str(options.steps), "--warm-up", str(max(options.steps // 4, 1) if options.gpus else min(options.steps, 10)), "--repeat", str(options.repeat),
               "--json", "-", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}")
    return json.loads(done.stdout)


def rows_of(report, **where):
    return [{**where, "variant": row["name"], "label": row["label"], "best_us": row["best_us"], "depth": row["depth"]}
            for row in report["variants"] if "best_us" in row]


def with_and_without_computing(ranks: int) -> list:
    """Options of the bench, and what a field's name adds. With one rank nothing is exchanged."""
    return [((), "")] + ([(("--no-compute",), ", nothing computed")] if ranks > 1 else [])


def weak(options):
    rows = []
    for size in options.sizes:
        for ranks in options.ranks:
            grid = grid_of(size, ranks)
            for more, computes in with_and_without_computing(ranks):
                rows += rows_of(bench(options, "jacobi2d", grid, ranks, *more), field=f"{size} x {size} cells a rank{computes}", at=ranks)
                tell(rows, grid)
    return rows


def strong(options):
    rows = []
    for size in options.sizes:
        for ranks in options.ranks:
            for more, computes in with_and_without_computing(ranks):
                grid = [size] * 3
                rows += rows_of(bench(options, "jacobi3d", grid, ranks, *more), field=f"{size} x {size} x {size} cells{computes}", at=ranks)
                tell(rows, grid)
    return rows


def latency(options):
    rows = []
    for size in options.sizes:
        for late in options.latencies:
            report = bench(options, "jacobi2d", [size, size], 2, "--latency-us", str(late))
            rows += rows_of(report, field=f"{size} x {size} cells, two ranks", at=late)
            tell(rows, [size, size])
    return rows


def tell(rows, grid):
    row = rows[-1]
    now = [one for one in rows if (one["field"], one["at"]) == (row["field"], row["at"])]
    print(f"{row['field']:38} {row['at']:>8g} {'x'.join(map(str, grid)):>16}  "
          + "  ".join(f"{one['variant']} {one['best_us']:.2f} us (depth {one['depth']})" for one in now), flush=True)


def lines_of(rows, key):
    """{field: {label: [(at, value)]}}"""
    fields: dict = {}
    for row in rows:
        fields.setdefault(row["field"], {}).setdefault(row["label"], []).append((row["at"], row[key]))
    return fields


def whose(content) -> str:
    gpus = content.get("gpus", 0)
    return f"parts on {gpus} GPUs" if gpus else f"ranks ({content['cores']} cores)"


def draw(content, path):
    plots.matplotlib_or_advice()
    from matplotlib.figure import Figure

    fields = [(field, lines, "best_us") for field, lines in lines_of(content["rows"], "best_us").items()]
    if content["what"] == "latency":
        fields = [(f"{field}: depth", lines, "depth") for field, lines in lines_of(content["rows"], "depth").items()] + fields
    figure = Figure(figsize=(4.2 * len(fields), 3.6), layout="constrained")
    cells = figure.subplots(1, len(fields), squeeze=False)[0]
    looks = {label: (MARKS[k % len(MARKS)], f"C{k}") for k, label in enumerate(dict.fromkeys(row["label"] for row in content["rows"]))}
    for cell, (field, lines, key) in zip(cells, fields):
        for label, points in lines.items():
            mark, colour = looks[label]
            cell.plot(*zip(*points), marker=mark, color=colour, label=label)
        cell.set_title(field, fontsize="medium")
        cell.set_xscale("log", base=10 if content["what"] == "latency" else 2)
        cell.set_xlabel("latency, µs" if content["what"] == "latency" else whose(content))
        cell.set_ylabel("steps between two exchanges" if key == "depth" else "µs a step")
        if content["what"] == "latency":
            cell.set_yscale("log")
        else:
            cell.set_xticks(sorted({at for points in lines.values() for at, _ in points}))
            cell.xaxis.set_major_formatter(lambda at, _: f"{at:g}")
            cell.set_ylim(bottom=0)
    drawn = {line.get_label(): line for cell in cells for line in cell.get_lines()}  # no field need have all
    cells[0].legend(drawn.values(), drawn.keys(), fontsize="small")
    plots.write_svg(figure, path)


def numbers(text: str) -> list:
    values = [float(word) if "." in word else int(word) for word in text.split(",")]
    if min(values) <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' (numbers above 0 between commas)")
    return values


def powers(text: str) -> list:
    values = numbers(text)
    if any(value != int(value) or int(value) & (int(value) - 1) for value in values):
        raise argparse.ArgumentTypeError(f"'{text}' (ranks double: 1, 2, 4, ...)")
    return values


SHAPES = {"weak": (weak, [256, 2048]), "strong": (strong, [256]), "latency": (latency, [512])}


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hostless", type=program)
    parser.add_argument("what", choices=SHAPES)
    parser.add_argument("--sizes", type=numbers)
    parser.add_argument("--ranks", type=powers, default=[1, 2, 4, 8])
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--latencies", type=numbers, default=[1, 10, 100, 1000, 10000])
    parser.add_argument("--variants", default="copy,overlap,blocked")
    parser.add_argument("--type", default="fp32", choices=("fp32", "fp64"))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=picture)
    parser.add_argument("--draw", type=Path, help="draw this file; nothing is measured")
    options = parser.parse_args(argv)
    if options.gpus and options.what == "latency":
        parser.error("--gpus with latency (what threads send arrives later, and GPUs send nothing by them). Leave it out")
    measure, sizes = SHAPES[options.what]
    options.sizes = options.sizes or sizes
    try:
        if options.draw:
            content = json.loads(options.draw.read_text(encoding="utf-8"))
        else:
            content = {"what": options.what, "cores": len(os.sched_getaffinity(0)), "gpus": options.gpus, "type": options.type, "repeat": options.repeat, "steps": options.steps,
                       "rows": measure(options)}
        if options.json:
            options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        if options.picture:
            draw(content, options.picture)
    except (Failed, OSError, ValueError, KeyError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

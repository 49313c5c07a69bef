#!/usr/bin/env python3
"""Draws the time of an iteration against the number of GPUs (or of ranks of the processor) as one SVG.

    python3 bench/plot_scaling.py one.json two.json four.json --output scaling.svg [--matrices tri,hex8]
        [--methods cg] [--runs persistent,graph] [--weak TITLE]

The files are those of `hostless bench solve --json` and of bench/gpu_several.py. A field a matrix, a line for each
method, run and transport, through its best times; dotted: what one GPU's best time would be shared out evenly. The
run of the processor that checks the bits of GPUs is left out. With --weak the files are of matrices that grow with the
number of GPUs: they come into one field, where the best time would stay what it is. Needs matplotlib (`pip install matplotlib`, or Debian's
python3-matplotlib). The same input gives the same file, byte for byte.
"""

import argparse
import json
import sys
from pathlib import Path


def points_of(path: Path) -> list:
    """[(matrix, label of the line, number of GPUs or ranks, what is counted, microseconds)] of one file."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        rows = report["solves"]
        gpus_anywhere = max((row["gpus"] for row in rows), default=0) > 0
        points = []
        for row in rows:
            if "best_us" not in row or (gpus_anywhere and row["gpus"] == 0):
                continue
            choices = row.get("choices", {})
            method = row.get("method") or choices.get("method", "cg")
            on_gpus = row["gpus"] > 0
            carrier = (row.get("gpu_transport") or choices.get("gpu_transport", "peer")) if on_gpus else \
                report.get("transport", "threads")
            number = row["gpus"] or int(row["ranks"])
            points.append((row["matrix"], (method, row["run"], carrier), number, "GPUs" if on_gpus else "ranks",
                           float(row["best_us"])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemExit(f"{path}: no solves ({error!r}; nothing can be drawn). "
                         "Give a file of `hostless bench solve --json` or of bench/gpu_several.py.")
    return points


def fields_of(points: list, options) -> dict:
    """{(matrix, what is counted): {(method, run, transport): {number: best microseconds}}} of what is asked for."""
    wanted = [words and words.split(",") for words in (options.matrices, options.methods, options.runs)]
    fields = {}
    for matrix, line, number, counted, us in points:
        known = not wanted[0] or any(matrix.startswith(name) for name in wanted[0])
        if known and all(not words or word in words for words, word in zip(wanted[1:], line)):
            times = fields.setdefault((options.weak or matrix, counted), {}).setdefault(line, {})
            times[number] = min(us, times.get(number, us))
    return fields


def ideal(lines: dict, weak: bool) -> list:
    """[(number, microseconds)]: the best time of the smallest number, shared out evenly; `weak`: kept."""
    numbers = sorted({number for times in lines.values() for number in times})
    least = numbers[0]
    best = min(times[least] for times in lines.values() if least in times)
    return [(number, best if weak else best * least / number) for number in numbers]


def draw(fields: dict, weak: bool, output: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("matplotlib is missing (it draws the picture). Install it with `pip install matplotlib`.")
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "hostless", "font.size": 10, "svg.fonttype": "none"})
    from matplotlib import pyplot, ticker

    columns = min(2, len(fields))
    height = (len(fields) + columns - 1) // columns
    figure, grid = pyplot.subplots(height, columns, figsize=(5.2 * columns, 3.8 * height), squeeze=False, layout="constrained")
    cells = list(grid.flat)
    colours = {line: f"C{k % 10}" for k, line in enumerate(sorted({line for lines in fields.values() for line in lines}))}
    for cell, ((matrix, counted), lines) in zip(cells, fields.items()):
        for line, times in sorted(lines.items()):
            numbers = sorted(times)
            cell.loglog(numbers, [times[number] for number in numbers], "o-", markersize=4, linewidth=1.4,
                        color=colours[line], label=", ".join(line))
        shared = ideal(lines, weak)
        cell.loglog(*zip(*shared), ":", color="grey", linewidth=1.2, label="kept" if weak else "shared out evenly")
        cell.set_title(matrix.split(":")[0], fontsize=10)  # generated ones go on to describe themselves
        cell.set_xlabel(counted)
        cell.set_ylabel("microseconds an iteration")
        cell.xaxis.set_major_locator(ticker.FixedLocator([number for number, _ in shared]))
        cell.xaxis.set_minor_locator(ticker.NullLocator())
        for axis in (cell.xaxis, cell.yaxis):
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        cell.yaxis.set_minor_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}" if str(value)[0] in "25" else ""))
        cell.grid(True, which="both", alpha=0.25)
        cell.legend(frameon=False, fontsize=7)
    for cell in cells[len(fields):]:
        cell.set_axis_off()
    figure.savefig(output, metadata={"Date": None})


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files")
    parser.add_argument("--output", type=Path, default=Path("scaling.svg"), help="the picture (scaling.svg)")
    parser.add_argument("--matrices", default="", help="only those whose names begin so")
    parser.add_argument("--methods", default="", help="only these")
    parser.add_argument("--runs", default="", help="only these")
    parser.add_argument("--weak", default="", metavar="TITLE", help="matrices grow with the GPUs: one field of all of them")
    options = parser.parse_args(argv)
    fields = fields_of([point for path in options.results for point in points_of(path)], options)
    if not fields:
        raise SystemExit("no solve with a time is left (nothing can be drawn). Give other files, or leave out a choice.")
    draw(fields, bool(options.weak), options.output)
    lines = sum(map(len, fields.values()))
    print(f"{options.output}: {len(fields)} field{'s' if len(fields) != 1 else ''}, {lines} line{'s' if lines != 1 else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

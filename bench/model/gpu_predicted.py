#!/usr/bin/env python3
"""What `hostless bench solve --json` measured on GPUs, predicted from half of it: every method x run x transport, matrix by matrix.

    python3 bench/model/gpu_predicted.py table-*.json [--limit 10] [--json FILE] [--picture FILE.svg]

Microseconds of an iteration are a sum: what each kernel or barrier of a run costs, bytes of the matrix that a GPU moves (at one rate where they stay in its caches, at another from memory; how much stays follows
from what is stored), those of its vectors (written too: so many times what bytes of the matrix cost), and of several GPUs an exchange and the sums of the method by the run and who carries, and what their halos' bytes take. Of every run and transport each second matrix and method (a chessboard) is
fitted, by relative residuals with Huber's weights; the others are predicted. Values that few measurements decide stay near to usual ones. Exit code 1: the median of the predicted ones is off by more than --limit per cent;
3: too few measurements.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from transport_table import transport_of  # noqa: E402

KERNELS = {"cg": 3, "pipelined-cg": 2}  # of an iteration, where each phase is one
BARRIERS = {"cg": 2.5, "pipelined-cg": 1.5}  # of a persistent kernel: one less where neighbours' values come with a sum
SUMS = {"cg": 2, "pipelined-cg": 1}  # all-reduces
VECTORS = {"cg": 88, "pipelined-cg": 128}  # bytes of a row (solve/methods)
FIELDS = {"cg": 4, "pipelined-cg": 9}
USUAL = {"phase": 2.5, "cached": 0.17, "memory": 0.27, "vectors": 1.0, "capacity": 60.0, "exchange": 15.0, "together": 2.0, "sum": 8.0, "halo": 0.01}  # us, us a megabyte, megabytes, us a kilobyte
STIFF = {"capacity": 0.1, "halo": 0.01}  # how strongly a value stays near to the usual one; the others 0.03. Halos cost from 0.01 (over NVLink) to 1 us a kilobyte (staged)


class Cell:
    """One measurement, and what its price is made of."""

    def __init__(self, row, transport):
        self.matrix, self.method, self.run, self.gpus, self.us = row["matrix"], row["method"], row["run"], row["gpus"], row["best_us"]
        self.transport = transport if self.gpus > 1 else "alone"
        self.vectors = VECTORS[self.method] * row["rows"] / self.gpus / 1e6
        self.matrix_bytes = row["bytes_per_iteration"] / self.gpus / 1e6 - self.vectors
        self.stored = self.matrix_bytes + 8 * FIELDS[self.method] * row["rows"] / self.gpus / 1e6
        self.halo = row["halo_bytes_per_iteration"] / self.gpus / 1e3

    def terms(self, value):
        """What each part takes, in microseconds; `value` gives a parameter by its key."""
        persistent = self.run == "persistent"
        kept = min(1.0, max(0.0, 2 - self.stored / value((self.run == "persistent", "capacity"))))
        yield "phases", (BARRIERS if persistent else KERNELS)[self.method] * value((self.run, "phase"))
        megabyte = kept * value((persistent, "cached")) + (1 - kept) * value((persistent, "memory"))
        yield "bytes", (self.matrix_bytes + self.vectors * value((persistent, "vectors"))) * megabyte
        if self.gpus == 1:
            return
        way = (self.run, self.transport)
        yield "halo", value((*way, "together" if persistent else "exchange")) + self.halo * value((self.transport, "halo"))
        if not persistent:  # there a sum is what a barrier does
            yield "sums", SUMS[self.method] * value((*way, "sum"))

    def keys(self):
        used = []
        for _ in self.terms(lambda key: used.append(key) or 1.0):
            pass
        return used


class Model:
    def __init__(self, cells):
        self.index = {key: k for k, key in enumerate(dict.fromkeys(key for cell in cells for key in cell.keys()))}
        usual = np.log([USUAL[key[-1]] for key in self.index])
        stiff = np.array([STIFF.get(key[-1], 0.03) for key in self.index])

        def residuals(x):
            self.x = x
            return np.concatenate([[np.log(self.us(cell) / cell.us) for cell in cells], stiff * (x - usual)])

        self.x = least_squares(residuals, usual, loss="soft_l1", f_scale=0.05).x

    def value(self, key):
        return float(np.exp(self.x[self.index[key]]))

    def us(self, cell):
        return sum(us for _, us in cell.terms(self.value))


def cells_of(files):
    """The best of each matrix, method, run, transport and number of GPUs."""
    best = {}
    for file in files:
        report = json.loads(Path(file).read_text())
        for row in report["solves"]:
            if row["gpus"] == 0 or "error" in row or row["method"] not in KERNELS:
                continue
            cell = Cell(row, transport_of(row, report["transport"]))
            key = (cell.matrix, cell.method, cell.run, cell.transport, cell.gpus)
            if key not in best or cell.us < best[key].us:
                best[key] = cell
    return list(best.values())


def halves(cells):
    """Those that are fitted, and the others: a chessboard of matrix and method for each run, transport and number of GPUs."""
    matrices = {name: k for k, name in enumerate(dict.fromkeys(cell.matrix for cell in cells))}
    ways = {way: k for k, way in enumerate(dict.fromkeys((c.run, c.transport, c.gpus) for c in cells))}
    parts = ([], [])
    for cell in cells:
        parts[(matrices[cell.matrix] + (cell.method == "cg") + ways[cell.run, cell.transport, cell.gpus]) % 2].append(cell)
    return parts


def off(model, cells):
    return [abs(model.us(cell) / cell.us - 1) for cell in cells]


def summary(model, cells):
    errors = off(model, cells)
    return f"{100 * statistics.median(errors):5.1f} % in the median, {100 * float(np.quantile(errors, 0.9)):5.1f} % at the 90th percentile of {len(cells)}"


def print_all(model, fitted, others):
    print(f"{'matrix':34} {'method':12} {'run':10} {'transport':14} {'GPUs':>4} {'measured':>9} {'predicted':>9} {'off %':>6}  parts")
    for cell in sorted(others, key=lambda c: (c.gpus, c.matrix, c.method, c.run, c.transport)):
        parts = ", ".join(f"{name} {us:.1f}" for name, us in cell.terms(model.value))
        print(f"{cell.matrix[:34]:34} {cell.method:12} {cell.run:10} {cell.transport:14} {cell.gpus:4} {cell.us:9.1f} {model.us(cell):9.1f} {100 * (model.us(cell) / cell.us - 1):+6.1f}  {parts}")
    print(f"fitted:    {summary(model, fitted)}")
    print(f"predicted: {summary(model, others)}")
    for name in ("gpus", "run", "transport"):
        for value in sorted({getattr(cell, name) for cell in others}):
            print(f"  {name} {value!s:14} {summary(model, [cell for cell in others if getattr(cell, name) == value])}")
    for key in model.index:
        print(f"  {' '.join('persistent' if k is True else 'launched' if k is False else k for k in key)}: {model.value(key):.3g}")


def draw(model, parts, path):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "hostless"))
    import plots  # the file itself: the package has a compiled part
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4.6), layout="constrained")
    axes = figure.subplots()
    for label, cells, mark in (("fitted", parts[0], "."), ("predicted", parts[1], "o")):
        axes.loglog([cell.us for cell in cells], [model.us(cell) for cell in cells], mark, label=label)
    ends = [f(cell.us for cells in parts for cell in cells) for f in (min, max)]
    axes.loglog(ends, ends, "k-", linewidth=0.8)
    axes.set(xlabel="measured us of an iteration", ylabel="predicted")
    axes.legend()
    plots.write_svg(figure, path)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--limit", type=float, default=10, help="per cent")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args(argv)
    cells = cells_of(options.files)
    fitted, others = halves(cells)
    model = Model(fitted) if fitted else None
    known = [cell for cell in others if model and all(key in model.index for key in cell.keys())]
    if len(known) < 8:
        print(f"{len(cells)} measurements: too few to fit half of them (give tables of several matrices)")
        return 3
    if len(known) < len(others):
        print(f"{len(others) - len(known)} of a run and transport of which nothing was fitted are left out")
    print_all(model, fitted, known)
    median = 100 * statistics.median(off(model, known))
    if options.json:
        lines = [vars(cell) | {"predicted_us": model.us(cell), "fitted": cell in fitted} for cell in fitted + known]
        values = {" ".join(map(str, key)): model.value(key) for key in model.index}
        options.json.write_text(json.dumps({"median_off": median / 100, "values": values, "cells": lines}, indent=1) + "\n", encoding="utf-8")
    if options.picture:
        draw(model, (fitted, known), options.picture)
    print(f"{median:.1f} % off in the median: {'at most' if median <= options.limit else 'more than'} {options.limit:g} %")
    return int(median > options.limit)


if __name__ == "__main__":
    sys.exit(main())

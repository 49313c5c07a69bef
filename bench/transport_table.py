#!/usr/bin/env python3
"""One table of what `hostless bench solve --json` measured between GPUs: method x run x transport, a matrix after the other.

    python3 bench/transport_table.py table-*.json [--gpus 4] [--markdown table.md]

Files are of starts that differ in what may carry: ranks that are threads, processes, or of mpirun. A cell is the best time of
an iteration in microseconds, or the number of the reason, below, why there is none. Solved cells of one matrix, method and
number of GPUs must have equal bits, in whatever file they are: of x, of the residual history and of the true residual.
Exit code 1: bits differ, a solve failed, or a cell is in no file.
"""

import argparse
import json
import sys
from pathlib import Path

METHODS, RUNS = ("cg", "pipelined-cg"), ("persistent", "graph", "stream")
TRANSPORTS = ("peer", "nccl", "nvshmem", "mpi staged", "mpi GPU-aware", "host")
# What hostless says where a way is not there, rather than wrong: anything else is a failure.
ABSENT = ("the persistent run with GPU transport", "takes no memory of GPUs",
          "without NVSHMEM", "without NCCL", "nvshmem under HIP", "no usable MPI", "the persistent kernel of this method")


def transport_of(row, start):
    """The column: who carries, where the host does by its ranks' transport."""
    gpu_transport = row["gpu_transport"]
    return {"host": "mpi staged" if start == "mpi" else "host", "mpi": "mpi GPU-aware"}.get(gpu_transport, gpu_transport)


def cells_of(files, gpus):
    """{matrix: {(method, run, transport): row}}, the number of GPUs, and by matrix how the processor agreed.

    Of two rows of a cell the one that was solved is kept. gpus  0: the most that are in the files
    """
    reports = [json.loads(Path(file).read_text()) for file in files]
    gpus = gpus or max((row["gpus"] for report in reports for row in report["solves"]), default=0)
    table, processor = {}, {}
    for report in reports:
        if report["gpus"] != gpus:
            continue
        with_host = any(row["run"] == "host" and "bits" in row for row in report["solves"])
        for row in report["solves"]:
            cells = table.setdefault(row["matrix"], {})
            if row["gpus"] == 0:
                continue
            if with_host and row.get("bits", "").startswith("equal"):  # with all before it in that file
                processor.setdefault(row["matrix"], host_iterations(report))
            cell = (row["method"], row["run"], transport_of(row, report["transport"]))
            if "error" in cells.get(cell, {"error": ""}):
                cells[cell] = row
    return table, gpus, processor


def host_iterations(report):
    return max(row["iterations"] for row in report["solves"] if row["run"] == "host" and "bits" in row)


class Table:
    """The cells as text, with reasons that are numbered once."""

    def __init__(self, table, gpus, processor):
        self.table, self.gpus, self.processor = table, gpus, processor
        self.reasons, self.problems = [], []
        self.solved = self.absent = 0
        self.columns = [name for name in TRANSPORTS
                        if name != "host" or any(cell[2] == "host" for cells in table.values() for cell in cells)]

    def cell(self, matrix, digests, where):
        row = self.table[matrix].get(where)
        what = f"{matrix.split(':')[0]}, {', '.join(where)}"
        if row is None:
            self.problems.append(f"{what}: in no file")
            return "?"
        if "error" in row:
            if not any(text in row["error"] for text in ABSENT):
                self.problems.append(f"{what}: {row['error']}")
                return "failed"
            if row["error"] not in self.reasons:
                self.reasons.append(row["error"])
            self.absent += 1
            return f"[{self.reasons.index(row['error']) + 1}]"
        self.solved += 1
        if row["bits"].startswith("DIFFER") or digests.setdefault(where[0], row.get("digest")) != row.get("digest"):
            self.problems.append(f"{what}: other bits than another transport or run, or than the processor")
            return f"{row['best_us']:.2f} DIFFERS"
        return f"{row['best_us']:.2f}"

    def rows(self, matrix):
        digests = {}
        return [[method, run, *(self.cell(matrix, digests, (method, run, name)) for name in self.columns)]
                for method in METHODS for run in RUNS]

    def verdict(self, matrix):
        iterations = next((row["iterations"] for row in self.table[matrix].values() if "iterations" in row), 0)
        host = self.processor.get(matrix)
        beside = "not held against the processor" if host is None else \
            f"the processor's: {'all' if host == iterations else 'the residual history of the first'} {host} iterations"
        true_residuals = {row["true_relative_residual"] for row in self.table[matrix].values() if "iterations" in row}
        return f"{iterations} iterations; {beside}; true relative residuals {', '.join(f'{t:.3e}' for t in sorted(true_residuals))}"


def as_text(rows):
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) if k < 2 else cell.rjust(width)
                      for k, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


def as_markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * 2 + "---:|" * (len(rows[0]) - 2), *lines[1:]]


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files")
    parser.add_argument("--gpus", type=int, default=0, help="of files of several numbers of GPUs these [the most]")
    parser.add_argument("--markdown", type=Path, help="write the table there, too")
    options = parser.parse_args(words)
    try:
        table = Table(*cells_of(options.results, options.gpus))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{error!r} (no measurement can be read). Give files of `hostless bench solve --gpus N --json`.")
    text, markdown = [], []
    for matrix in table.table:
        rows = [["method", "run", *table.columns], *table.rows(matrix)]
        title = f"{matrix}, {table.gpus} GPUs"
        text += ["", title, table.verdict(matrix), *as_text(rows)]
        markdown += ["", f"**{title}**: {table.verdict(matrix)}", "", *as_markdown(rows)]
    counts = f"{table.solved} cells solved, {table.absent} absent, {len(table.problems)} wrong"
    below = [f"[{k + 1}] {reason}" for k, reason in enumerate(table.reasons)]
    print("\n".join(["microseconds of an iteration, of the best solve", *text, "", *below, counts,
                     *table.problems]))
    if options.markdown:
        options.markdown.write_text("\n".join(["Microseconds of an iteration, of the best solve.", *markdown, "",
                                               *(f"{line}\\" for line in below), counts, ""]))
    return 1 if table.problems or table.solved == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

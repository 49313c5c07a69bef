#!/usr/bin/env python3
"""Draws the time of an iteration against the number of GPUs (or of ranks of the processor) as one SVG.

    python3 bench/plot_scaling.py one.json two.json four.json --output scaling.svg [--matrices tri,hex8]
        [--methods cg] [--runs persistent,graph] [--weak TITLE]

The files are those of `hostless bench solve --json` and of bench/gpu_several.py. A field a matrix, a line for each
method, run and transport, through its best times; dotted: what one GPU's best time would be shared out evenly. The
run of the processor that checks the bits of GPUs is left out. With --weak the files are of matrices that grow with the
number of GPUs: they come into one field, where the best time would stay what it is. This is hostless.plot_scaling for
those who have a checkout and not the Python package. Needs matplotlib (`pip install matplotlib`, or Debian's
python3-matplotlib). The same input gives the same file, byte for byte.
"""

import argparse
import sys
from pathlib import Path

# The file itself and not the package: that has a compiled part.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))

import plots  # noqa: E402


def words(text: str) -> list:
    return text.split(",") if text else []


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files")
    parser.add_argument("--output", type=Path, default=Path("scaling.svg"), help="the picture, .svg (scaling.svg)")
    parser.add_argument("--matrices", type=words, default=[], help="only those whose names begin so")
    parser.add_argument("--methods", type=words, default=[], help="only these")
    parser.add_argument("--runs", type=words, default=[], help="only these")
    parser.add_argument("--weak", default="", metavar="TITLE", help="matrices grow with the GPUs: one field of all of them")
    options = parser.parse_args(argv)
    if options.output.suffix != ".svg":
        parser.error(f"--output {options.output} (pictures are SVG). Name a file that ends with .svg.")
    try:
        figure = plots.plot_scaling(options.results, options.matrices, options.methods, options.runs, options.weak)
        plots.write_svg(figure, options.output)
    except (ImportError, OSError, ValueError) as error:
        raise SystemExit(str(error))
    lines = [len(cell.get_lines()) - 1 for cell in figure.axes if cell.get_lines()]  # but for the dotted one
    print(f"{options.output}: {len(lines)} field{'s' if len(lines) != 1 else ''}, "
          f"{sum(lines)} line{'s' if sum(lines) != 1 else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

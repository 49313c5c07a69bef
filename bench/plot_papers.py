#!/usr/bin/env python3
"""Draws what `hostless bench papers|pingpong|life --json` wrote in the shape of the papers' figures, as one SVG.

    python3 bench/plot_papers.py one.json two.json --figure 001-7 --output speedups.svg [--matrices Queen_4147,ldoor]
    python3 bench/plot_papers.py threads.json mpi.json --figure 003-5 --output latency.svg

Figures: 000-1, speedups over aCG on one GPU against GPUs, a field a matrix; 001-7, speedups over Single GPU Standard on
the most GPUs, a group of bars a matrix; 001-8, the same against GPUs for a large, a medium and a small matrix; 001-1,
the share of the communication that overlapped (its part c), of files with --overlap, beside the time of an iteration. The files
are of one table each, one file for each number of GPUs (or of ranks of the processor), the first of one.
Of `bench pingpong --queue`, one file a type: 003-5, latency and bandwidth over bytes. Of `bench life`, one file a problem and number
of ranks: 003-6, speedups over ranks, by the logarithm and linear; 003-7, linear alone; with both, the largest of each as a table;
003-8, per cent over the host by the edge of a rank's box. This is
hostless.plot_papers for those who have a checkout and not the Python package. Needs matplotlib (`pip install
matplotlib`, or Debian's python3-matplotlib). The same input gives the same file, byte for byte.
"""

import argparse
import sys
from pathlib import Path

# The files themselves and not the package: that has a compiled part.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))

import plots  # noqa: E402
import plots_of_papers  # noqa: E402
import plots_of_queues  # noqa: E402


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files")
    parser.add_argument("--figure", choices=sorted((*plots_of_papers.FIGURES, *plots_of_queues.FIGURES)), default="001-7", help="of paper and figure (001-7)")
    parser.add_argument("--output", type=Path, default=Path("papers.svg"), help="the picture, .svg (papers.svg)")
    parser.add_argument("--matrices", type=lambda text: text.split(","), default=[], help="only these")
    options = parser.parse_args(argv)
    if options.output.suffix != ".svg":
        parser.error(f"--output {options.output} (pictures are SVG). Name a file that ends with .svg.")
    try:
        figure = plots_of_papers.plot_papers(options.results, options.figure, options.matrices)
        plots.write_svg(figure, options.output)
        if options.figure in ("003-6", "003-7"):
            print(plots_of_queues.table_of(options.results) + "\n")
    except (ImportError, OSError, ValueError) as error:
        raise SystemExit(str(error))
    print(f"{options.output}: figure {options.figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

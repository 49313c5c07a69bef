#!/usr/bin/env python3
"""Draws the residual histories of result files of `hostless solve --json` as one SVG.

    tools/plot_convergence.py out/demo.json --output docs/convergence.svg

This is hostless.plot_convergence for those who have a checkout and not the Python package. Needs matplotlib (Debian:
python3-matplotlib). The same input gives the same file, byte for byte.
"""

import argparse
import sys
from pathlib import Path

# The file itself and not the package: that has a compiled part.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "hostless"))

import plots  # noqa: E402


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files")
    parser.add_argument("--output", type=Path, default=Path("convergence.svg"), help="the picture (convergence.svg)")
    options = parser.parse_args(argv)
    try:
        plots.write_svg(plots.plot_convergence(options.results).figure, options.output)
    except (ImportError, OSError, ValueError) as error:
        raise SystemExit(str(error))
    curves = len(options.results)
    print(f"{options.output}: {curves} curve{'s' if curves != 1 else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Draws the residual histories of result files of `hostless solve --json` as one SVG.

    tools/plot_convergence.py out/demo.json --output docs/convergence.svg

Needs matplotlib (Debian: python3-matplotlib). The same input gives the same file, byte for byte.
"""

import argparse
import json
import sys
from pathlib import Path


def read_history(path: Path) -> tuple:
    """(label, relative residuals by iteration, true relative residual at the end) of one result file."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        history = [float(norm) for norm in result["residual_history"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{path}: no residual history ({error!r}; nothing can be drawn). "
                         "Give a file written by `hostless solve --json`.")
    if not history or not history[0] > 0:
        raise SystemExit(f"{path}: the history is empty or starts at zero (nothing can be drawn). "
                         "Solve a system with another initial guess.")
    label = str(result.get("label") or result.get("method") or path.stem)
    scale = result.get("rhs_norm") or history[0]  # as true_relative_residual is
    return label, [norm / scale for norm in history], result.get("true_relative_residual")


def draw(curves: list, output: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("matplotlib is missing (it draws the picture). Install python3-matplotlib.")
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "hostless", "font.size": 11, "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for label, norms, truth in curves:
        line, = axes.semilogy(range(len(norms)), norms, linewidth=1.6, label=label)
        if truth:
            axes.semilogy([len(norms) - 1], [truth], "o", color=line.get_color(),
                          label=f"true residual {truth:.1e}")
    axes.set_xlabel("iteration")
    axes.set_ylabel("relative residual")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(output, metadata={"Date": None})


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files")
    parser.add_argument("--output", type=Path, default=Path("convergence.svg"), help="the picture (convergence.svg)")
    options = parser.parse_args(argv)
    curves = [read_history(path) for path in options.results]
    draw(curves, options.output)
    print(f"{options.output}: {len(curves)} curve{'s' if len(curves) != 1 else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

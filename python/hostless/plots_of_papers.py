"""Pictures shaped like those of two papers, of what `hostless bench papers --json` wrote; those of a third are plots_of_queues.

Several files belong together, one for each number of GPUs (or of ranks of the processor): a speedup is over the one that
the paper divides by, on one of them. Like hostless.plots, this also serves the scripts of a checkout (bench/plot_papers.py).
"""

import math
from typing import NamedTuple

try:
    from . import plots, plots_of_queues
except ImportError:  # from a checkout, without the package
    import plots
    import plots_of_queues


class Figure(NamedTuple):
    """What a picture shows."""

    table: str  # of whose measurements, the beginning of its name
    base: str   # the variant that speedups are over, on one GPU or rank
    named: str  # the same in words
    time: str   # of a run
    methods: tuple  # that it shows


FIGURES = {"000-1": Figure("000", "acg-standard", "aCG (standard)", "best_s", ("cg",)),
           "001-7": Figure("001", "single-standard", "Single GPU Standard", "best_us", ("cg", "pipelined-cg")),
           "001-1": Figure("001", "", "", "median_us", ("cg", "pipelined-cg")),
           "001-8": Figure("001", "single-standard", "Single GPU Standard", "best_us", ("cg", "pipelined-cg"))}


def runs_of(sources, figure: Figure) -> tuple:
    """({matrix: {label: {number: run}}}, what the numbers count) of all that has times, in the order of the tables.

    Errors: ValueError for what is no measurement of the paper's table, or of GPUs and of ranks of the processor together.
    """
    want = f"files of `hostless bench papers --table {figure.table}-...`"
    found, counted = {}, set()
    for source in reversed(list(sources)):  # that of the most GPUs has the variants in the order of the paper
        name, report = plots.read_json(source, want)
        try:
            if report["bench"] != "papers" or not report["table"].startswith(figure.table):
                raise ValueError(f"{name or 'the measurement'}: of {report['bench']}, table {report.get('table')} (the picture "
                                 f"is of another). Give {want}.")
            for matrix in report["matrices"]:
                for run in matrix.get("runs", ()):
                    if "error" in run or run["method"] not in figure.methods or figure.time not in run:
                        continue
                    if not all(0 < float(time) < math.inf for time in (run[figure.time], run["best_us"], run["interval_us"][1])):
                        raise TypeError(f"times of {run[figure.time]!r}, {run['best_us']!r}")
                    counted.add("GPUs" if run["gpus"] else "ranks")
                    label = run["variant"] if run["variant"] == figure.base else run["label"]
                    found.setdefault(matrix["name"], {}).setdefault(label, {})[run["gpus"] or run["ranks"]] = run
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if type(error) is ValueError and "Give " in str(error):
                raise
            raise ValueError(f"{name or 'the measurement'}: no measurement ({error!r}; nothing can be drawn). Give {want}.") from error
    if len(counted) > 1:
        raise ValueError("measurements of GPUs and of ranks of the processor (they do not belong into one picture). Give those of one.")
    return found, (counted or {"ranks"}).pop()


def speedups_of(sources, figure: Figure, matrices=()) -> tuple:
    """({matrix: {label: {number: (speedup, the least of the repeats)}}}, what the numbers count).

    matrices  only these; empty: all. Errors: ValueError where the one that is divided by is missing, or nothing is left.
    """
    found, counted = runs_of(sources, figure)
    unknown = set(matrices) - found.keys()
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))}: not measured (nothing can be drawn). Name some of: {', '.join(found)}.")
    speedups = {}
    for matrix, lines in found.items():
        if matrices and matrix not in matrices:
            continue
        base = lines.get(figure.base, {}).get(1)
        if base is None:
            raise ValueError(f"{matrix}: {figure.named} on one of the {counted} is not there (speedups are over it). "
                             f"Measure with {'--gpus 1' if counted == 'GPUs' else '--ranks 1'} too.")
        shares = {label: {number: (base[figure.time] / run[figure.time],
                                   base[figure.time] / run[figure.time] * run["best_us"] / run["interval_us"][1])
                          for number, run in runs.items()}
                  for label, runs in lines.items() if label != figure.base}
        speedups[matrix] = {figure.named: {1: (1.0, base["best_us"] / base["interval_us"][1])}} | shares
    if not speedups:
        raise ValueError("no run with a time is there (nothing can be drawn). Give other files.")
    return speedups, counted


def selected(speedups: dict) -> dict:
    """A large, a medium and a small matrix: the tables go from many entries to few."""
    names = list(speedups)
    return {name: speedups[name] for name in dict.fromkeys((names[0], names[len(names) // 2], names[-1]))}


def draw_bars(speedups: dict, counted: str, named: str, axes) -> None:
    """Draws a group of bars a matrix, those of the largest number; the line in each goes down to the slowest repeat."""
    number = max(number for lines in speedups.values() for times in lines.values() for number in times)
    labels = [label for label in dict.fromkeys(label for lines in speedups.values() for label in lines)
              if any(number in lines.get(label, {}) for lines in speedups.values())]
    width = 0.8 / len(labels)
    for k, label in enumerate(labels):
        shown = [(place, lines[label][number]) for place, lines in enumerate(speedups.values()) if number in lines.get(label, {})]
        axes.bar([place + (k - (len(labels) - 1) / 2) * width for place, _ in shown], [best for _, (best, _) in shown], width,
                 color=plots.SERIES[k % len(plots.SERIES)], label=plots.plain(label), linewidth=0, ecolor=plots.INK,
                 yerr=[[best - least for _, (best, least) in shown], [0] * len(shown)], error_kw={"elinewidth": 0.8})
    axes.axhline(1, color=plots.QUIET, linestyle=":", linewidth=1.2)
    axes.set_xticks(range(len(speedups)), [plots.plain(name) for name in speedups], rotation=40, ha="right")
    axes.set_ylabel(f"speedup over {named}")
    axes.set_title(f"{number} {counted if number > 1 else counted[:-1]}", fontsize=10)
    axes.grid(True, axis="y")
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.06))


def draw_lines(matrix: str, lines: dict, counted: str, named: str, log: bool, labels: list, axes) -> None:
    """Draws the speedups of one matrix, a line a variant, beside that of as many; `log`: numbers by the logarithm."""
    from matplotlib import ticker

    numbers = sorted({number for times in lines.values() for number in times})
    for k, label in enumerate(labels):
        if times := lines.get(label):
            axes.plot(sorted(times), [times[number][0] for number in sorted(times)], "o-", markersize=4, linewidth=1.4,
                      color=plots.SERIES[k % len(plots.SERIES)], label=plots.plain(label))
    axes.plot(numbers, numbers, ":", color=plots.QUIET, linewidth=1.2, label="as many times")
    if log:
        axes.set_xscale("log", base=2)
    axes.set_title(plots.plain(matrix), fontsize=10)
    axes.set_xlabel(counted)
    axes.set_ylabel(f"speedup over\n{named}")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(ticker.FixedLocator(numbers))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(True, which="major")


def overlap_of(sources, figure: Figure, matrices=()) -> tuple:
    """({matrix: {label: run}}, number, what it counts) of the runs that say which share overlapped, of the largest number.

    Errors: ValueError where none does.
    """
    found, counted = runs_of(sources, figure)
    told = [(matrix, label, number, run) for matrix, lines in found.items() if not matrices or matrix in matrices
            for label, runs in lines.items() for number, run in runs.items() if "overlapped" in run]
    if not told:
        raise ValueError("no run says which share of its communication overlapped (nothing can be drawn). Measure several "
                         f"{counted} with --overlap.")
    most = max(number for _, _, number, _ in told)
    shares = {}
    for matrix, label, number, run in told:
        if number == most:
            shares.setdefault(matrix, {})[label] = run
    return shares, most, counted


def draw_overlap(shares: dict, shown: str, axes) -> None:
    """Draws a group of bars a matrix: per cent of the communication that lay beside computing, a diamond where three runs
    put it (`share`); or microseconds of an iteration, its exposed communication and the rest of it (`time`)."""
    labels = list(dict.fromkeys(label for lines in shares.values() for label in lines))
    width = 0.8 / len(labels)
    for k, label in enumerate(labels):
        runs = [(place + (k - (len(labels) - 1) / 2) * width, lines[label])
                for place, lines in enumerate(shares.values()) if label in lines]
        places, colour = [place for place, _ in runs], plots.SERIES[k % len(plots.SERIES)]
        if shown == "share":
            axes.bar(places, [100 * run["overlapped"] for _, run in runs], width, color=colour, linewidth=0, label=plots.plain(label))
            three = [(place, run["overlap"]["by_runs"]) for place, run in runs if (run.get("overlap") or {}).get("by_runs")]
            axes.plot([place for place, _ in three], [100 * by["overlapped"] for _, by in three], "D", markersize=3.5, color=plots.INK)
        else:
            rest = [max(0.0, run["median_us"] - run["exposed_us"]) for _, run in runs]
            axes.bar(places, rest, width, color=colour, linewidth=0)
            axes.bar(places, [run["exposed_us"] for _, run in runs], width, rest, color=colour, alpha=0.4, linewidth=0)
    axes.set_xticks(range(len(shares)), [plots.plain(name) for name in shares], rotation=40, ha="right")
    axes.set_ylabel("per cent overlapped" if shown == "share" else "microseconds an iteration\n(pale: exposed communication)")
    axes.set_ylim(0, 100) if shown == "share" else axes.set_ylim(bottom=0)
    axes.grid(True, axis="y")


def _draw_overlaps(shares: dict, number: int, counted: str):
    from matplotlib import pyplot

    figure, cells = pyplot.subplots(1, 2, figsize=(2 * max(3.6, 0.5 * len(shares) + 1.2), 3.9), layout="constrained")
    for cell, shown in zip(cells, ("share", "time")):
        draw_overlap(shares, shown, cell)
        cell.set_title(f"{number} {counted if number > 1 else counted[:-1]}", fontsize=10)
    figure.legend(*cells[0].get_legend_handles_labels(), frameon=False, fontsize=8, ncols=2, loc="outside lower center")
    return figure


def _draw_fields(speedups: dict, counted: str, named: str, log: bool):
    from matplotlib import pyplot

    columns = min(3, len(speedups))
    height = -(-len(speedups) // columns)
    figure = pyplot.figure(figsize=(3.4 * columns, 3 * height + 0.9), layout="constrained")
    cells = list(figure.subplots(height, columns, squeeze=False).flat)
    labels = list(dict.fromkeys(label for lines in speedups.values() for label in lines))
    for cell, (matrix, lines) in zip(cells, speedups.items()):
        draw_lines(matrix, lines, counted, named, log, labels, cell)
    for cell in cells[len(speedups):]:
        cell.set_axis_off()
    shown = {text: handle for cell in cells for handle, text in zip(*cell.get_legend_handles_labels())}
    figure.legend(shown.values(), shown.keys(), frameon=False, fontsize=8, ncols=min(3, columns + 1), loc="outside lower center")
    return figure


def plot_papers(measurements, figure: str, matrices=()):
    """Draws what three papers draw, of `hostless bench papers` and of `hostless bench pingpong|life --queue ...`.

    measurements  of `hostless bench ... --json`, a list: one for each number of GPUs, the first of one; file names or dictionaries
    figure        000-1: speedups of each matrix against GPUs, these by the logarithm; 001-7: bars of each matrix on most GPUs;
                  001-8: speedups of a large, a medium and a small one; 001-1: the share of communication that overlapped, of
                  each matrix on most GPUs, and the time of an iteration, as in the figure's part c; of queues: 003-5, latency and
                  bandwidth over bytes (pingpong); of life, one file a problem and number of ranks: 003-6, speedups over ranks, by the
                  logarithm and linear; 003-7, linear alone; 003-8, per cent over the host by the edge of a rank's box
    matrices      only these, of `bench papers`
    Returns the matplotlib figure. Errors: ValueError for other input, ImportError without matplotlib.
    """
    if figure in plots_of_queues.FIGURES:
        if matrices:
            raise ValueError(f"matrices={list(matrices)} of figure {figure} (queues move messages, of no matrix). Leave them out.")
        return plots_of_queues.plot_queues(measurements, figure)
    if figure not in FIGURES:
        raise ValueError(f"there is no figure {figure} (nothing can be drawn). Use one of: {', '.join((*FIGURES, *plots_of_queues.FIGURES))}.")
    shape = FIGURES[figure]
    if figure == "001-1":
        shares, most, counted = overlap_of(measurements, shape, matrices)
        with plots.matplotlib_or_advice().rc_context(plots.STYLE):
            return _draw_overlaps(shares, most, counted)
    speedups, counted = speedups_of(measurements, shape, matrices)
    with plots.matplotlib_or_advice().rc_context(plots.STYLE):
        if figure != "001-7":
            chosen = speedups if matrices or figure == "000-1" else selected(speedups)
            return _draw_fields(chosen, counted, shape.named, figure == "000-1")
        from matplotlib import pyplot

        drawn, axes = pyplot.subplots(figsize=(max(5, 0.62 * len(speedups) + 1.5), 3.8), layout="constrained")
        draw_bars(speedups, counted, shape.named, axes)
        return drawn

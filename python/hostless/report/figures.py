"""The pictures of a report: matplotlib's SVG, put into the page with the colours of the page."""

import re
from dataclasses import dataclass

from .. import plots
from . import results, stencil_plots

# Fixed colours of plots.py become variables of the page's style, which has them for light and for dark.
VARIABLES = {plots.INK: "var(--ink)", plots.QUIET: "var(--quiet)", plots.GRID: "var(--grid)",
             **{colour: f"var(--series-{k})" for k, colour in enumerate(plots.SERIES)}}
ON_COLOUR = "#fffffe"  # words on a bar
PAGE = "#fefefe"  # behind words on a line
VARIABLES.update({ON_COLOUR: "var(--on-colour)", PAGE: "var(--page)"})
WIDE = 9.8  # inches: the width of the page


@dataclass
class Figure:
    svg: str
    caption: str


def figure_of(width: float, height: float):
    """An empty figure, the page seen through it; width, height in inches. No state of pyplot takes part."""
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=(width, height), layout="constrained", facecolor="none")


def inline(figure, number: int, label: str) -> str:
    """The <svg> element of a figure: its ids made its own, its colours the page's, its size that of the page."""
    text = plots.svg_text(figure)
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<style [^>]*>.*?</style>", "", text, flags=re.S)  # would hold for the page
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)
    mine = f"figure-{number}-"
    text = re.sub(r'\bid="', f'id="{mine}', text)
    text = re.sub(r"url\(#", f"url(#{mine}", text)
    text = re.sub(r'xlink:href="#', f'xlink:href="#{mine}', text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    width = float(re.search(r'width="([\d.]+)pt"', text).group(1))
    head = f'<svg role="img" aria-label="{label}" style="max-width: {width * 4 / 3:.0f}px"'
    return re.sub(r'<svg\b', head, re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2), count=1)


def bars(cell, lengths, offset: float, height: float, colours: dict) -> None:
    """One stacked bar a result, lengths[k] = [(name, length, share in words)]; shares stand where there is room."""
    widest = max(sum(length for _, length, _ in parts) for parts in lengths)
    for k, parts in enumerate(lengths):
        left = 0.0
        for name, length, share in parts:
            cell.barh(k + offset, length, height, left=left, color=colours[name], linewidth=0)
            if length > 0.07 * widest:
                cell.text(left + length / 2, k + offset, share, ha="center", va="center", color=ON_COLOUR,
                          fontsize=8.5 if height > 0.3 else 7.5)
            left += length


def legend_of(cell, colours: dict, names) -> None:
    from matplotlib.patches import Patch

    cell.legend(handles=[Patch(facecolor=colours[name], label=name) for name in names], frameon=False, ncols=len(names),
                loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, handlelength=1.1, handleheight=1.1,
                columnspacing=1.4)


def name_rows(cell, solves) -> None:
    cell.set_yticks(range(len(solves)), [shortened(solve.name) for solve in solves])
    cell.set_ylim(len(solves) - 0.5, -0.5)
    cell.tick_params(axis="y", length=0)
    cell.spines["left"].set_visible(False)
    cell.grid(True, axis="x")


def shortened(name: str, most: int = 28) -> str:
    return plots.plain(name if len(name) <= most else name[:most - 1] + "…")


def in_parts(solves, parts_of, as_shares: bool) -> list:
    """For `bars`: parts as microseconds of an iteration, or as per cent of the solve."""
    lengths = []
    for solve in solves:
        share = {name: time / solve.result["time_solve_s"] for name, time in parts_of(solve)}
        scale = 100.0 if as_shares else 1e6 * solve.result["time_solve_s"] / solve.iterations_here
        lengths.append([(name, scale * part, f"{100 * part:.0f} %") for name, part in share.items()])
    return lengths


def phases(solves):
    """What an iteration of each solve spends where, and, below, what of it is waiting.

    In microseconds, or in per cent where one result would be too short to be seen beside another.
    """
    totals = [solve.result["time_solve_s"] / solve.iterations_here for solve in solves]
    as_shares = max(totals) > 5 * min(totals)
    figure = figure_of(WIDE, 0.75 + 0.75 * len(solves))
    cell = figure.subplots()
    parts = list(dict.fromkeys(name for solve in solves for name, _ in results.phases_of(solve)))
    waits = {f"waiting for {name}": name for solve in solves for name, _ in results.waits_of(solve)}
    colours = {"publish": plots.SERIES[3], "sweep": plots.SERIES[0], "rows": plots.SERIES[2], "kernels": plots.SERIES[6],
               "other": plots.SERIES[7], "ghosts": plots.SERIES[1], "sums": plots.SERIES[4]}
    bars(cell, in_parts(solves, results.phases_of, as_shares), -0.12, 0.46, colours)
    bars(cell, in_parts(solves, results.waits_of, as_shares), 0.26, 0.2, colours)
    name_rows(cell, solves)
    cell.set_xlabel("per cent of the solve" if as_shares else "microseconds an iteration")
    legend_of(cell, {**colours, **{text: colours[name] for text, name in waits.items()}}, [*parts, *waits])
    return figure


def bandwidth(solves):
    """What each solve reads and writes a second: as per cent of what its memory gives where that is known of all."""
    known = all(solve.bandwidth[0] for solve in solves)
    lengths = [100 * solve.share if known else solve.bytes_per_second for solve in solves]
    right = max([*lengths, 100 if known else 0])
    figure = figure_of(WIDE, 0.75 + 0.5 * len(solves))
    cell = figure.subplots()
    for k, (solve, length) in enumerate(zip(solves, lengths)):
        cell.barh(k, length, 0.46, color=plots.SERIES[0], linewidth=0)
        most, how = solve.bandwidth
        text = plots.bytes_in_words(solve.bytes_per_second) + "/s"
        text += f" = {results.percent(solve.share).text} of {plots.bytes_in_words(most)}/s {how}" if most else ""
        cell.annotate(text, (length, k), (6, 0), textcoords="offset points", va="center", color=plots.INK, fontsize=9,
                      bbox={"boxstyle": "square,pad=0.15", "facecolor": PAGE, "linewidth": 0})
    if known:
        cell.axvline(100, color=plots.SERIES[1], linewidth=2, zorder=0)
    name_rows(cell, solves)
    cell.set_xlim(0, 1.5 * right if right > 60 or not known else 125)
    cell.set_xticks([tick for tick in cell.get_xticks() if tick <= 1.02 * right])
    cell.set_xlabel("per cent of the memory's bandwidth" if known else "bytes a second")
    if not known:
        cell.xaxis.set_major_formatter(lambda value, _: plots.bytes_in_words(value) + "/s")
    return figure


def way_of(row: dict) -> str:
    return ", ".join(part for part in (row.get("method") or (row.get("choices") or {}).get("method", "cg"), row["run"],
                                       row.get("gpu_transport") if row.get("gpus") else "") if part)


def ways(rows):
    """The best and the median time of an iteration of each way of solving one matrix."""
    figure = figure_of(WIDE, 0.7 + 0.36 * len(rows))
    cell = figure.subplots()
    right = max(max(row["best_us"], row.get("median_us") or 0) for row in rows)
    for k, row in enumerate(rows):
        cell.barh(k, row["best_us"], 0.6, color=plots.SERIES[0 if row["gpus"] or row["run"] != "host" else 7], linewidth=0)
        median = row.get("median_us")
        if median:
            cell.plot([median] * 2, [k - 0.36, k + 0.36], color=plots.SERIES[1], linewidth=2)
        cell.text(max(row["best_us"], median or 0) + 0.012 * right, k, results.microseconds(row["best_us"]).text, va="center",
                  color=plots.INK, fontsize=9)
    cell.set_yticks(range(len(rows)), [plots.plain(way_of(row)) for row in rows])
    cell.set_ylim(len(rows) - 0.4, -0.6)
    cell.set_xlim(0, 1.14 * right)
    cell.tick_params(axis="y", length=0)
    cell.spines["left"].set_visible(False)
    cell.grid(True, axis="x")
    cell.set_xlabel("microseconds an iteration")
    return figure


class Pictures:
    """Makes the figures of one page, numbered, while it is entered: with the style of plots.py, and nothing behind them.

    Errors: ImportError without matplotlib.
    """

    def __init__(self):
        self._number = 0
        self._style = plots.matplotlib_or_advice().rc_context({**plots.STYLE, "axes.facecolor": "none"})

    def __enter__(self):
        self._style.__enter__()
        return self

    def __exit__(self, *what):
        self._style.__exit__(*what)

    def take(self, figure, caption: str) -> Figure:
        from markupsafe import escape  # comes with jinja2

        self._number += 1
        return Figure(inline(figure, self._number, str(escape(caption))), caption)

    def convergence(self, solves) -> Figure | None:
        curves = []
        for solve in solves:
            try:
                curves.append((solve.name, *plots.history_of(solve.result)[1:]))
            except ValueError:  # x0 was the answer, or nothing finite came: the table says so
                continue
        if not curves:
            return None
        figure = figure_of(WIDE, 3.8)
        plots.draw_histories(curves, figure.subplots())
        return self.take(figure, "|r| / |b| by iteration, as the recurrence has it; the dot is |b − A x| / |b| computed from x.")

    def phases(self, solves) -> Figure | None:
        solves = [solve for solve in solves if solve.iterations_here > 0 and solve.result["time_solve_s"] > 0]
        if not solves:
            return None
        note = "" if all(solve.device for solve in solves) else " Rank 0's clock. The thin bar is waiting, inside the phases."
        return self.take(phases(solves), "What an iteration spends where." + note)

    def bandwidth(self, solves) -> Figure | None:
        solves = [solve for solve in solves if solve.bytes_per_second]
        if not solves:
            return None
        note = " The line is what the memory gives." if all(solve.bandwidth[0] for solve in solves) else ""
        return self.take(bandwidth(solves), "Bytes of matrix and vectors a second, by the method's own count." + note)

    def communication(self, name: str, plan) -> Figure:
        ranks = len(plots.traffic_of(plan)[0])
        figure = figure_of(6.4, 6.4) if ranks > plots.MOST_NUMBERED else figure_of(5.2, 5.2)
        cell = plots.plot_plan(plan, figure.subplots())
        said = cell.get_title()
        cell.set_title("")
        return self.take(figure, f"{name}: from the rank of the line to that of the column; {said}.")

    def scaling(self, reports):
        """(figure, names) of the matrices that were solved on several numbers of GPUs or ranks; None where none was."""
        fields = plots.fields_of([point for report in reports for point in plots.points_of(report)])
        fields = {key: lines for key, lines in fields.items() if len({n for times in lines.values() for n in times}) > 1}
        if not fields:
            return None, set()
        columns = min(2, len(fields))
        legend = 0.2 * -(-(max(map(len, fields.values())) + 1) // 2)
        figure = figure_of(WIDE if columns == 2 else 6.4, (3.6 + legend) * -(-len(fields) // columns))
        drawn = self.take(plots.draw_fields(fields, False, figure), "The best time of an iteration against the number of GPUs or "
                          "ranks, logarithmic; dotted: the first best time shared out evenly.")
        return drawn, {matrix for matrix, _ in fields}

    def changes(self, curves) -> Figure | None:
        if not curves:
            return None
        figure = figure_of(WIDE, 3.4)
        stencil_plots.draw_changes(curves, figure.subplots())
        return self.take(figure, "How much a step changed a field: the root of the sum of squares over all cells.")

    def field(self, plane, shape, caption: str) -> Figure:
        figure = figure_of(5.2, 4.4)
        stencil_plots.draw_plane(plane, shape, figure.subplots())
        return self.take(figure, caption)

    def ways(self, name: str, rows) -> Figure:
        return self.take(ways(rows), f"{name}: the best time of an iteration; the line is the median.")

"""Pictures and a table shaped like those of Bridges et al. (docs/references.md, figures 5 to 8, table V), of what `hostless bench
pingpong|life --queue ... --json` wrote.

Several files belong together: of ping-pongs one for each type of queue, of Life one for each problem and number of ranks, the first
of one. Times are medians; what is shaded goes from the best repeat to the worst. hostless.plot_papers calls this.
"""

import math
from typing import NamedTuple

try:
    from . import plots
except ImportError:  # from a checkout, without the package
    import plots

FIGURES = ("003-5", "003-6", "003-7", "003-8")
WORDS = {"standard": "standard send", "ready": "ready send", "host": "host"}
MARKS = "osD^vP*X"


class Time(NamedTuple):
    """Of a row, in microseconds."""

    best: float
    median: float
    worst: float


class Run(NamedTuple):
    """One way of doing Life on so many ranks."""

    time: Time
    edge: float  # of a rank's box, in cells, on average


def _reports(sources, bench: str):
    """(name, report, its rows) of each. Errors: ValueError for what `bench` has not written with a queue."""
    want = f"files of `hostless bench {bench} --queue ... --json`"
    for source in sources:
        name, report = plots.read_json(source, want)
        try:
            if report["bench"] != bench or "queue" not in report:
                raise ValueError(f"{name or 'the measurement'}: of {report['bench']}{'' if 'queue' in report else ' without a queue'} "
                                 f"(the picture is of another). Give {want}.")
            rows = [(row, _label(report, row), _time(row)) for row in report[bench]]
            yield name, report, rows
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError) as error:
            if type(error) is ValueError and "Give " in str(error):
                raise
            raise ValueError(f"{name or 'the measurement'}: no measurement ({error!r}; nothing can be drawn). Give {want}.") from error


def _kind(report: dict) -> str:
    """Of its ranks: what starts their messages, else what moves them."""
    queue = report["queue"]
    return f"{report['transport']} from GPUs" if queue is None else report["transport"] if queue == "auto" else queue


def _label(report: dict, row: dict) -> str:
    run = row.get("run")
    return f"{_kind(report)}, {WORDS[row['by']]}" + (f", {run}" if run not in (None, "host") else "")


def _time(row: dict) -> Time:
    ways = 2 if row.get("of") == "round trip" else 1
    time = Time(*(float(row[key]) / ways for key in ("best_us", "median_us", "worst_us")))
    if not (0 < time.best <= time.median <= time.worst < math.inf):
        raise TypeError(f"times of {row['best_us']!r}, {row['median_us']!r}, {row['worst_us']!r}")
    return time


def ping_pongs_of(sources) -> dict:
    """{label: {bytes: Time of one way}}; of several pairs of ranks the first one of each file.

    Errors: ValueError where nothing is left.
    """
    found: dict = {}
    for _, _, rows in _reports(sources, "pingpong"):
        pair = [(row["first"], row["second"]) for row, _, _ in rows][:1]
        for row, label, time in rows:
            if [(row["first"], row["second"])] == pair:
                found.setdefault(label, {})[int(row["bytes"])] = time
    if not found:
        raise ValueError("no ping-pong is there (nothing can be drawn). Give other files.")
    return found


def lives_of(sources) -> dict:
    """{(rows, columns): {label: {ranks: Run}}}. Errors: ValueError where a glider was lost, or nothing is left."""
    found: dict = {}
    for name, report, rows in _reports(sources, "life"):
        try:
            size, along, ranks = tuple(report["size"]), report["ranks_along"], int(report["ranks"])
            edge = (size[0] / along[0] + size[1] / along[1]) / 2
        except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
            raise ValueError(f"{name or 'the measurement'}: no measurement ({error!r}; nothing can be drawn). Give files of `hostless bench "
                             "life --json`.") from error
        for row, label, time in rows:
            if row.get("gliders") != "conserved":
                raise ValueError(f"{name or 'the measurement'}: {label} has lost gliders (its times are of something else). Measure it "
                                 "again.")
            found.setdefault(size, {}).setdefault(label, {})[ranks] = Run(time, edge)
    if not found:
        raise ValueError("no Life is there (nothing can be drawn). Give other files.")
    return found


def _host_of(label: str, hosts) -> str:
    """Who does the same as `label` without a queue; of GPUs' streams, MPI where that is there too."""
    kind = label.split(", ")[0]
    of_mpi = f"mpi from GPUs, {WORDS['host']}"
    return of_mpi if kind == "peer" and of_mpi in hosts else f"{kind}, {WORDS['host']}"


def speedups_of(lives: dict) -> dict:
    """{problem: {label: {ranks: Time}}} of speedups over the host on one rank: that of the same ranks, else the first that is there.

    Errors: ValueError where there is none.
    """
    speedups: dict = {}
    for size, lines in lives.items():
        hosts = {label: runs[1].time.median for label, runs in lines.items() if label.endswith(f", {WORDS['host']}") and 1 in runs}
        if not hosts:
            raise ValueError(f"{_problem(size)}: the host on one rank is not there (speedups are over it). Measure with --ranks 1 too.")
        for label, runs in lines.items():
            base = hosts.get(_host_of(label, hosts), next(iter(hosts.values())))
            speedups.setdefault(size, {})[label] = {ranks: Time(*(base / time for time in reversed(run.time)))
                                                    for ranks, run in sorted(runs.items())}
    return speedups


def improvements_of(lives: dict) -> dict:
    """{(problem, label): {edge: per cent over the host of the same ranks, on as many}}, of several ranks.

    Errors: ValueError where there is none.
    """
    found: dict = {}
    for size, lines in lives.items():
        for label, runs in lines.items():
            if label.endswith(f", {WORDS['host']}"):
                continue
            host = lines.get(_host_of(label, lines), {})
            for ranks, run in runs.items():
                if ranks > 1 and ranks in host:
                    found.setdefault((size, label), {})[run.edge] = 100 * (host[ranks].time.median - run.time.median) / run.time.median
    if not found:
        raise ValueError("no queue on several ranks with the host beside it (nothing can be compared). Measure with --ranks 2 or more.")
    return found


def table_of(measurements) -> str:
    """The largest speedups of each problem, and the ranks that they were reached on, as table V has them: lines of Markdown."""
    lines = ["| problem | by | largest speedup | ranks |", "|---|---|---|---|"]
    for size, speedups in speedups_of(lives_of(measurements)).items():
        for label, times in speedups.items():
            ranks = max(times, key=lambda number: times[number].median)
            lines.append(f"| {_problem(size)} | {label} | {times[ranks].median:.4g} | {ranks} |")
    return "\n".join(lines)


def _problem(size: tuple) -> str:
    return f"{size[0]} x {size[1]} cells"


def _draw(cell, lines: dict, looks: dict, of=lambda x, time: time) -> None:
    """A line with its band for each label; of(x, time): what is drawn of a time."""
    for label, times in lines.items():
        colour, mark = looks[label]
        xs = sorted(times)
        drawn = [of(x, times[x]) for x in xs]
        cell.plot(xs, [time.median for time in drawn], "-", marker=mark, markersize=3.5, linewidth=1.4, color=colour, label=plots.plain(label))
        cell.fill_between(xs, [time.best for time in drawn], [time.worst for time in drawn], color=colour, alpha=0.18, linewidth=0)
    cell.grid(True, which="major")


def _looks(labels) -> dict:
    return {label: (plots.SERIES[k % len(plots.SERIES)], MARKS[k % len(MARKS)]) for k, label in enumerate(dict.fromkeys(labels))}


def _figure(rows: int, columns: int):
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(max(6, 4.6 * columns), 3.2 * rows + 0.9), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _legend(figure, cells, columns: int) -> None:
    shown = {text: handle for cell in cells for handle, text in zip(*cell.get_legend_handles_labels())}
    figure.legend(shown.values(), shown.keys(), frameon=False, fontsize=8, ncols=columns, loc="outside lower center")


def _number(axis, numbers) -> None:
    """These and no others stand at an axis."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.FixedLocator(numbers))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))


def draw_ping_pong(found: dict):
    """Latency and bandwidth over bytes, as figure 5."""
    looks = _looks(found)
    figure, ((latency, bandwidth),) = _figure(1, 2)
    _draw(latency, found, looks)
    _draw(bandwidth, found, looks, lambda size, time: Time(*(size / one * 1e-3 for one in time)))  # GB/s of microseconds
    for cell, what in ((latency, "one way, microseconds"), (bandwidth, "GB/s")):
        cell.set_xscale("log", base=2)
        cell.set_yscale("log")
        cell.set_xlabel("bytes")
        cell.set_ylabel(what)
    _legend(figure, [latency], 3)
    return figure


def draw_scaling(speedups: dict, log_too: bool):
    """Speedups over ranks, a row a problem: by the logarithm and linear, as figure 6, or linear alone, as figure 7."""
    looks = _looks(label for lines in speedups.values() for label in lines)
    figure, cells = _figure(len(speedups), 2 if log_too else 1)
    for row, (size, lines) in zip(cells, speedups.items()):
        numbers = sorted({ranks for times in lines.values() for ranks in times})
        for cell, log in zip(row, (True, False) if log_too else (False,)):
            _draw(cell, lines, looks)
            cell.plot(numbers, numbers, ":", color=plots.QUIET, linewidth=1.2, label="as many times")
            if log:
                cell.set_xscale("log", base=2)
                cell.set_yscale("log", base=2)
            else:
                cell.set_ylim(bottom=0)
            _number(cell.xaxis, numbers)
            cell.set_title(_problem(size), fontsize=10)
            cell.set_xlabel("ranks")
            cell.set_ylabel("speedup over the host on one")
    _legend(figure, cells.flat, 3 if log_too else 2)
    return figure


def draw_improvement(found: dict):
    """Per cent over the host by the edge of a rank's box, as figure 8."""
    looks = _looks(label for _, label in found)
    figure, ((cell,),) = _figure(1, 1)
    for k, size in enumerate(dict.fromkeys(size for size, _ in found)):
        for label, shares in ((label, shares) for (of, label), shares in found.items() if of == size):
            edges = sorted(shares)
            colour, mark = looks[label]
            cell.plot(edges, [shares[edge] for edge in edges], ("-", "--", ":", "-.")[k % 4], marker=mark, markersize=3.5, linewidth=1.4,
                      color=colour, label=plots.plain(f"{label}, {_problem(size)}"))
    cell.axhline(0, color=plots.QUIET, linestyle=":", linewidth=1.2)
    cell.set_xscale("log", base=2)
    cell.set_xlabel("edge of a rank's box, cells")
    cell.set_ylabel("per cent faster than the host")
    cell.grid(True, which="major")
    _legend(figure, [cell], 2)
    return figure


def plot_queues(measurements, figure: str):
    """Draws one of FIGURES. Returns the matplotlib figure. Errors: ValueError for other input, ImportError without matplotlib."""
    if figure == "003-5":
        pings = ping_pongs_of(measurements)
    else:
        lives = lives_of(measurements)
        shares = improvements_of(lives) if figure == "003-8" else speedups_of(lives)
    with plots.matplotlib_or_advice().rc_context(plots.STYLE):
        if figure == "003-5":
            return draw_ping_pong(pings)
        return draw_improvement(shares) if figure == "003-8" else draw_scaling(shares, figure == "003-6")

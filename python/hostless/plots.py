"""Pictures of solves, plans and measurements: what `hostless ... --json` wrote, drawn with matplotlib.

Everything takes what the command writes: the path of a JSON file, the dictionary in it, or an object whose `to_json()`
is its text (hostless.Result, hostless.Plan). matplotlib is imported when something is drawn, not before; nothing else
is needed, so this file also serves the scripts of a checkout (bench/plot_scaling.py, tools/plot_convergence.py).

The same input gives the same SVG, byte for byte (`write_svg`).
"""

import contextlib
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path

# Each can be told from its neighbours with every kind of colour vision; the report turns them into colours of its page.
SERIES = ("#2563c9", "#c2570c", "#12805c", "#a0368f", "#8a6d00", "#c42b45", "#0e7490", "#5b6472")
INK, QUIET, GRID = "#1d2430", "#5a6473", "#c9d0d9"
STYLE = {"font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": QUIET, "xtick.color": QUIET,
         "ytick.color": QUIET, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.spines.top": False,
         "axes.spines.right": False, "grid.color": GRID, "grid.linewidth": 0.6, "axes.axisbelow": True,
         "svg.hashsalt": "hostless", "svg.fonttype": "none"}
MOST_NUMBERED = 12  # ranks: in more, the bytes of a pair do not fit into its cell


def matplotlib_or_advice():
    """The module matplotlib. Errors: ImportError that says what to install."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("matplotlib is missing (it draws the pictures). Install it with `pip install matplotlib`, or "
                          "Debian's python3-matplotlib.") from error
    return matplotlib


def write_svg(figure, path) -> None:
    """Writes a figure as SVG: text as text, without a date, the same bytes each time.

    path  a file name or an open file
    """
    with matplotlib_or_advice().rc_context(STYLE):
        figure.savefig(path, format="svg", metadata={"Date": None})


def svg_text(figure) -> str:
    """The SVG of `write_svg` as a string."""
    text = io.StringIO()
    write_svg(figure, text)
    return text.getvalue()


def read_json(source, want: str):
    """(name, mapping) of a file, a mapping, or an object with `to_json()`, such as hostless.Result and hostless.Plan.

    Errors, with `want` (what should have been given): OSError for files that cannot be read, ValueError for what is no JSON
    object.
    """
    if isinstance(source, Mapping):
        return "", dict(source)
    try:
        if hasattr(source, "to_json"):
            name, text = "", source.to_json()
        else:
            name, text = str(source), Path(source).read_text(encoding="utf-8")
        content = json.loads(text)
    except OSError as error:
        raise OSError(error.errno, f"cannot be read: {error.strerror}. Give {want}", str(source)) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{source}: cannot be read ({error}). Give {want}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{source}: no JSON object (nothing in it has a name). Give {want}.")
    return name, content


@contextlib.contextmanager
def axes_or_new(ax, size):
    """The given axes, or those of a new figure of `size` inches, with our style while it is drawn."""
    matplotlib = matplotlib_or_advice()
    if ax is not None:
        yield ax
        return
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        yield pyplot.subplots(figsize=size, layout="constrained")[1]


def bytes_in_words(count: float) -> str:
    """1234567 -> '1.23 MB' (decimal units, three digits)."""
    count = float(count)
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    unit = 0
    while count >= 999.5 and unit + 1 < len(units):
        count /= 1000
        unit += 1
    return f"{count:.3g} {units[unit]}"


def plain(text: str) -> str:
    """The text so that matplotlib shows it as it is: no formula between dollars, in the legend whatever it begins with."""
    return ("\u200b" if text.startswith("_") else "") + text.replace("$", r"\$")


# ---- convergence

def history_of(source):
    """(label, relative residuals by iteration, true relative residual at the end or None) of one result.

    Residuals are of the recurrence, over |b| as the true one is (over the first where b is zero); nan where the result
    has null. Errors: ValueError for what is no result of a solve, or has nothing to draw.
    """
    name, result = read_json(source, want := "a file written by `hostless solve --json`")
    try:
        history = [math.nan if norm is None else float(norm) for norm in result["residual_history"]]
        scale = result.get("rhs_norm") or (history[0] if history else 0)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name or 'the result'}: no residual history ({error!r}; nothing can be drawn). "
                         f"Give {want}.") from error
    if not history or not history[0] > 0:
        raise ValueError(f"{name or 'the result'}: the history is empty or starts at zero (nothing can be drawn). "
                         "Solve a system with another initial guess.")
    choices = result.get("choices") or {}
    label = result.get("label") or result.get("method") or Path(name).stem or ", ".join(
        choices[key] for key in ("method", "preconditioner") if choices.get(key, "none") != "none") or "residual"
    return str(label), [norm / scale for norm in history], result.get("true_relative_residual")


def draw_histories(curves, ax) -> None:
    """Draws what `history_of` gave, one line each, and the true residual as a dot."""
    for k, (label, norms, true_residual) in enumerate(curves):
        colour = SERIES[k % len(SERIES)]
        ax.semilogy(range(len(norms)), [norm if norm > 0 else math.nan for norm in norms], linewidth=1.6, color=colour,
                    linestyle=(0, (5, 3)) if k % 2 else "-",  # equal bits are equal curves: both are seen
                    label=plain(f"{label}: true residual {true_residual:.1e}" if true_residual else label))
        if true_residual:
            ax.semilogy([len(norms) - 1], [true_residual], "o", color=colour, clip_on=False)
    ax.set_xlabel("iteration")
    ax.set_ylabel("relative residual")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(True, which="major")
    ax.legend(frameon=False)


def plot_convergence(results, ax=None):
    """Draws relative residuals by iteration, a line for each result, and the true residual at the end as a dot.

    results  a result of `hostless solve --json`, or a list of them: file name, dictionary, or hostless.Result
    ax       matplotlib axes to draw into; without, a new figure
    Returns the axes. Errors: ValueError for other input, ImportError without matplotlib.
    """
    several = results if isinstance(results, (list, tuple)) else [results]
    if not several:
        raise ValueError("no results (nothing can be drawn). Give one or more.")
    curves = [history_of(one) for one in several]
    with axes_or_new(ax, (7, 3.5)) as ax:
        draw_histories(curves, ax)
    return ax


# ---- plans

def traffic_of(source, name: str = ""):
    """(node of each rank, {(source, target): bytes of one exchange}, messages) of a plan or of a result.

    name  what errors call it; empty: the file, or "the plan". Errors: ValueError where neither stands there, or numbers that do not belong together.
    """
    file, content = read_json(source, want := "a file of `hostless plan --json` or of `hostless solve --json`")
    name = name or file or "the plan"
    try:
        if "per_rank" in content:
            nodes, pairs = [rank["node"] for rank in content["per_rank"]], content["pairs"]
        elif content["communication"] is None:
            raise ValueError(f"{name}: who sends what to whom is not in it (results tell of 64 ranks at most). "
                             "Give a file of `hostless plan --json`.")
        else:
            nodes, pairs = content["communication"]["node"], content["communication"]["pairs"]
        lists = [pairs[key] for key in ("source", "target", "messages", "bytes")]
        sent = {(int(a), int(b)): int(count) for a, b, count in zip(lists[0], lists[1], lists[3])}
        whole = len({len(one) for one in lists}) == 1 and len(sent) == len(lists[0])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{name}: no plan ({error!r}; nothing can be drawn). Give {want} of this version.") from error
    known = all(0 <= rank < len(nodes) for pair in sent for rank in pair) and all(count > 0 for count in sent.values())
    if not nodes or not whole or not known:
        raise ValueError(f"{name}: ranks and pairs do not belong together (the file is damaged). Give {want}.")
    return [int(node) for node in nodes], sent, sum(lists[2])


def shade(count: int, least: int, most: int) -> float:
    """How opaque a cell is: by the logarithm, so that small messages are seen beside large ones."""
    return 0.65 if most == least else 0.12 + 0.53 * math.log(count / least) / math.log(most / least)


def _mark_nodes(ax, nodes_in_order) -> None:
    """A frame around the pairs of each node, and its number at the right."""
    from matplotlib.patches import Rectangle

    starts = [k for k, node in enumerate(nodes_in_order) if k == 0 or nodes_in_order[k - 1] != node]
    ends = starts[1:] + [len(nodes_in_order)]
    for first, last in zip(starts, ends):
        ax.add_patch(Rectangle((first - 0.5, first - 0.5), last - first, last - first, fill=False, edgecolor=INK,
                               linewidth=1.4, zorder=3, clip_on=False))
    every = max(1, -(-len(starts) // 16))
    for first, last in list(zip(starts, ends))[::every]:
        ax.annotate(f"node {nodes_in_order[first]}", (len(nodes_in_order) - 0.5, (first + last - 1) / 2), (6, 0),
                    textcoords="offset points", color=QUIET, ha="left", va="center", fontsize="small")


def _shade_key(ax, amounts) -> None:
    """What the shades mean: the least, the middle and the most bytes."""
    from matplotlib.patches import Patch

    least, most = min(amounts), max(amounts)
    middle = sorted(amounts)[len(amounts) // 2]
    ax.legend(handles=[Patch(facecolor=SERIES[0], alpha=shade(count, least, most), label=bytes_in_words(count))
                       for count in sorted({least, middle, most})],
              frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.02), fontsize="small",
              handlelength=1.1, handleheight=1.1)


def plot_plan(plan, ax=None):
    """Draws who sends how many bytes to whom in one exchange: a line for the source, a column for the target.

    Ranks are ordered by node, and a frame is drawn around the pairs inside each node where there are several.

    plan  of `hostless plan --json`, or a result of `hostless solve --json`: file name, dictionary, hostless.Plan or Result
    ax    matplotlib axes to draw into; without, a new figure
    Returns the axes. Errors: ValueError for other input, ImportError without matplotlib.
    """
    nodes, sent, messages = traffic_of(plan)
    with axes_or_new(ax, (5, 5)) as ax:
        draw_traffic(nodes, sent, ax)
        ax.set_title(f"one exchange: {bytes_in_words(sum(sent.values()))} in {messages} message{'s' if messages != 1 else ''}",
                     fontsize=10)
    return ax


def draw_traffic(nodes: list, sent: dict, ax) -> None:
    """Draws what `traffic_of` gave: cells for pairs, frames for nodes, and bytes where they fit, else a key of shades."""
    from matplotlib.patches import Rectangle

    count = len(nodes)
    order = sorted(range(count), key=lambda rank: (nodes[rank], rank))
    place = {rank: k for k, rank in enumerate(order)}
    for (source, target), amount in sorted(sent.items()):
        x, y = place[target], place[source]
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=SERIES[0], linewidth=0,
                               alpha=shade(amount, min(sent.values()), max(sent.values()))))
        if count <= MOST_NUMBERED:
            ax.text(x, y, bytes_in_words(amount).replace(" ", "\n" if count > 6 else " "), ha="center", va="center",
                    color=INK, fontsize=8 if count > 6 else 9)
    for k in range(count):
        ax.add_patch(Rectangle((k - 0.5, k - 0.5), 1, 1, facecolor=GRID, alpha=0.45, linewidth=0))
    if len(set(nodes)) > 1:
        _mark_nodes(ax, [nodes[rank] for rank in order])
    if sent and count > MOST_NUMBERED:
        _shade_key(ax, list(sent.values()))
    every = max(1, -(-count // 16))
    ax.set_xticks(range(0, count, every), [order[k] for k in range(0, count, every)])
    ax.set_yticks(range(0, count, every), [order[k] for k in range(0, count, every)])
    ax.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5), aspect="equal", xlabel="to rank", ylabel="from rank")
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    for spine in ax.spines.values():
        spine.set(visible=True, color=GRID)


# ---- scaling

def points_of(source, name: str = "") -> list:
    """[(matrix, (method, run, transport), GPUs or ranks, which of them, microseconds)] of one measurement.

    The run of the processor that checks the bits of GPUs is left out, and so is what was refused.
    name  what errors call it; empty: the file, or "the measurement". Errors: ValueError for what is no measurement of solves.
    """
    file, report = read_json(source, want := "a file of `hostless bench solve --json` or of bench/gpu_several.py")
    try:
        rows = report["solves"]
        gpus_anywhere = max((row["gpus"] for row in rows), default=0) > 0
        points = []
        for row in rows:
            if row.get("best_us") is None or (gpus_anywhere and row["gpus"] == 0):
                continue
            choices = row.get("choices", {})
            method = row.get("method") or choices.get("method", "cg")
            on_gpus = row["gpus"] > 0
            gpu_transport = (row.get("gpu_transport") or choices.get("gpu_transport", "peer")) if on_gpus else \
                report.get("transport", "threads")
            if on_gpus and gpu_transport == "host" and report.get("transport") == "mpi":
                gpu_transport = "mpi staged"  # the host carries by what its ranks have
            if row.get("preconditioner", "none") != "none":
                method += f" {row['preconditioner']}"
            number = row["gpus"] or int(row["ranks"])
            points.append((row["matrix"], (method, row["run"], gpu_transport), number, "GPUs" if on_gpus else "ranks",
                           float(row["best_us"])))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{name or file or 'the measurement'}: no solves ({error!r}; nothing can be drawn). "
                         f"Give {want}.") from error
    return points


def fields_of(points: list, matrices=(), methods=(), runs=(), weak: str = "") -> dict:
    """{(matrix, what is counted): {(method, run, transport): {number: best microseconds}}} of what is asked for.

    matrices  beginnings of names; methods, runs  names; each empty: all
    weak      not empty: all matrices come into the one field of that name
    """
    fields = {}
    for matrix, line, number, counted, us in points:
        known = not matrices or any(matrix.startswith(name) for name in matrices)
        if known and all(not words or word.split()[0] in words for words, word in zip((methods, runs), line)):
            times = fields.setdefault((weak or matrix, counted), {}).setdefault(line, {})
            times[number] = min(us, times.get(number, us))
    return fields


def ideal(lines: dict, weak: bool) -> list:
    """[(number, microseconds)]: the best time of the smallest number, shared out evenly; `weak`: kept."""
    numbers = sorted({number for times in lines.values() for number in times})
    least = numbers[0]
    best = min(times[least] for times in lines.values() if least in times)
    return [(number, best if weak else best * least / number) for number in numbers]


def looks_of(every_line: list) -> dict:
    """{(method, run, transport): how it is drawn}: a colour each, or, of more lines than colours, a colour a transport,
    dashes a run and a mark a method."""
    if len(every_line) <= len(SERIES):
        return {line: {"color": SERIES[k], "marker": "o"} for k, line in enumerate(every_line)}
    methods, runs, gpu_transports = (sorted(set(words), key=lambda word: (word != "persistent", word)) for words in zip(*every_line))
    dashes = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
    return {(method, run, gpu_transport): {"color": SERIES[gpu_transports.index(gpu_transport) % len(SERIES)],
                                     "linestyle": dashes[runs.index(run) % len(dashes)],
                                     "marker": "osD^v"[methods.index(method) % 5]}
            for method, run, gpu_transport in every_line}


def draw_field(cell, matrix: str, counted: str, lines: dict, weak: bool, looks: dict) -> None:
    """Draws one field of `fields_of` into the axes `cell`."""
    from matplotlib import ticker

    for line, times in sorted(lines.items()):
        numbers = sorted(times)
        cell.loglog(numbers, [times[number] for number in numbers], markersize=4, linewidth=1.4,
                    **looks[line], label=plain(", ".join(line)))
    shared = ideal(lines, weak)
    cell.loglog(*zip(*shared), ":", color=QUIET, linewidth=1.2, label="kept" if weak else "shared out evenly")
    cell.set_title(plain(matrix.split(":")[0]), fontsize=10)  # generated ones go on to describe themselves
    cell.set_xlabel(counted)
    cell.set_ylabel("microseconds an iteration")
    cell.xaxis.set_major_locator(ticker.FixedLocator([number for number, _ in shared]))
    cell.xaxis.set_minor_locator(ticker.NullLocator())
    # At 1, 2 and 5 of every decade, and nowhere else: a range may hold no power of ten at all.
    cell.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    cell.yaxis.set_minor_locator(ticker.NullLocator())
    for axis in (cell.xaxis, cell.yaxis):
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    cell.grid(True, which="major")
    cell.legend(frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17), handlelength=3.2)  # on no line


def draw_fields(fields: dict, weak: bool, figure=None):
    """Draws what `fields_of` gave, two fields beside each other; returns the figure (a new one without `figure`)."""
    matplotlib = matplotlib_or_advice()
    columns = min(2, len(fields))
    height = (len(fields) + columns - 1) // columns
    with matplotlib.rc_context(STYLE):
        if figure is None:
            from matplotlib import pyplot

            legend = 0.2 * -(-(max(map(len, fields.values())) + 1) // 2)
            figure = pyplot.figure(figsize=(5.2 * columns, (3.6 + legend) * height), layout="constrained")
        cells = list(figure.subplots(height, columns, squeeze=False).flat)
        every_line = sorted({line for lines in fields.values() for line in lines})
        looks = looks_of(every_line)
        for cell, ((matrix, counted), lines) in zip(cells, fields.items()):
            draw_field(cell, matrix, counted, lines, weak, looks)
        for cell in cells[len(fields):]:
            cell.set_axis_off()
    return figure


def plot_scaling(measurements, matrices=(), methods=(), runs=(), weak: str = "", figure=None):
    """Draws the best time of an iteration against the number of GPUs (or of ranks): a field a matrix, a line a way.

    measurements  of `hostless bench solve --json` or of bench/gpu_several.py, one or a list: file name or dictionary
    matrices      only those whose names begin so;  methods, runs  only these
    weak          a title: matrices grow with the GPUs and come into one field, where the best time would stay
    figure        matplotlib figure to draw into; without, a new one
    Returns the figure. Errors: ValueError for other input or where nothing is left, ImportError without matplotlib.
    """
    several = measurements if isinstance(measurements, (list, tuple)) else [measurements]
    fields = fields_of([point for one in several for point in points_of(one)], matrices, methods, runs, weak)
    if not fields:
        raise ValueError("no solve with a time is left (nothing can be drawn). Give other files, or leave out a choice.")
    return draw_fields(fields, bool(weak), figure)

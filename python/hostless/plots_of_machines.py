"""Pictures of what `hostless machine ...` writes: fields of lines, drawn with matplotlib on logarithmic axes.

The command runs `main` with a JSON file and the picture's name. Like hostless.plots, this file also serves a checkout.
"""

import sys

try:
    from . import plots
except ImportError:  # from a checkout, without the package
    import plots

MARKS = "osD^vP*X"


def draw_field(cell, field: dict, looks: dict) -> None:
    """Draws one field into the axes `cell`: a line for each entry, its marked points circled."""
    for line in field["lines"]:
        colour, mark = looks[line["label"].removesuffix(", device-aware")]
        cell.loglog(line["x"], line["y"], "--" if line["dashed"] else "-", color=colour, linewidth=1.3, marker=mark, markersize=2.5,
                    label=plots.plain(line["label"]))
        circled = [(x, y) for x, y, marked in zip(line["x"], line["y"], line["marked"]) if marked]
        if circled:
            cell.loglog(*zip(*circled), "o", color=colour, markersize=7, markerfacecolor="none", markeredgewidth=1.4)
    cell.set_title(plots.plain(field["title"]), fontsize=10)
    cell.set_xlabel(field["x_label"])
    cell.set_ylabel(field["y_label"])
    cell.grid(True, which="major")


def plot_fields(source, figure=None):
    """Draws a report's `fields`, two beside each other, with one legend below; returns the figure.

    source  JSON file or mapping with `title` and `fields` of lines
    Errors: ValueError for other input, ImportError without matplotlib.
    """
    want = "what `hostless machine figures --json` has in `pictures`"
    name, report = plots.read_json(source, want)
    fields = report.get("fields")
    if not isinstance(fields, list) or not fields:
        raise ValueError(f"{name or 'the mapping'}: no fields (nothing can be drawn). Give {want}.")
    matplotlib = plots.matplotlib_or_advice()
    columns = min(2, len(fields))
    height = -(-len(fields) // columns)
    labels = list(dict.fromkeys(line["label"].removesuffix(", device-aware") for field in fields for line in field["lines"]))
    looks = {label: (plots.SERIES[k % len(plots.SERIES)], MARKS[k % len(MARKS)]) for k, label in enumerate(labels)}
    with matplotlib.rc_context(plots.STYLE):
        if figure is None:
            from matplotlib import pyplot

            figure = pyplot.figure(figsize=(5.4 * columns, 3.3 * height + 1.0), layout="constrained")
        cells = list(figure.subplots(height, columns, squeeze=False).flat)
        for cell, field in zip(cells, fields):
            draw_field(cell, field, looks)
        for cell in cells[len(fields):]:
            cell.set_axis_off()
        entries = {text: handle for cell in cells for handle, text in zip(*cell.get_legend_handles_labels())}
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        figure.suptitle(plots.plain(report.get("title", "")), fontsize=11)
    return figure


def main(argv=None) -> int:
    """JSON file, picture: draws one from the other; nothing: looks whether it could. Returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        if not words:
            plots.matplotlib_or_advice()
            return 0
        source, picture = words
        plots.write_svg(plot_fields(source), picture)
    except (ImportError, OSError, ValueError) as error:
        print(f"hostless: {error}", file=sys.stderr)
        return 4
    return 0

"""Pictures of stencils: what steps changed, and the fields themselves.

`plot_change` draws what `hostless stencil --every ... --json` wrote, `plot_field` what its `--output` did, or an array. matplotlib
is imported when something is drawn, not before.
"""

import math
import zipfile
from pathlib import Path

from .. import plots

MOST_CELLS = 512  # of a picture along an axis: more are drawn as means of neighbours
WANT = "files of `hostless stencil --json`"


# ---- what steps changed

def changes_of(source):
    """(label, [(name of a field, steps, norms of their changes)]) of one result; fields without a look are left out.

    Errors: ValueError for what is no result of a stencil, OSError for a file that cannot be read.
    """
    path, result = plots.read_json(source, WANT)
    try:
        looks = [(int(look["step"]), [math.nan if norm is None else float(norm) for norm in look["norm"]])
                 for look in result["history"]]
        names = [str(name) for name in result["fields"]]
        lines = [(name, [step for step, _ in looks], [norms[k] for _, norms in looks]) for k, name in enumerate(names)]
        label = str(result.get("label") or Path(path).stem or result["problem"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{path or 'the result'}: no history of a stencil ({error!r}; nothing can be drawn). Give {WANT}.") from error
    return label, [line for line in lines if line[1]]


def draw_changes(curves, ax) -> None:
    """Draws what `changes_of` gave, a line for each field of each result."""
    several = len(curves) > 1
    number = 0
    for label, lines in curves:
        for name, steps, norms in lines:
            words = label if several and len(lines) == 1 else f"{label}: {name}" if several else name
            ax.semilogy(steps, [norm if norm > 0 else math.nan for norm in norms], linewidth=1.6,
                        color=plots.SERIES[number % len(plots.SERIES)], marker="o" if len(steps) == 1 else None,
                        linestyle=(0, (5, 3)) if number % 2 else "-", label=plots.plain(words))
            number += 1
    ax.set_xlabel("step")
    ax.set_ylabel("change of a step, 2-norm")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(True, which="major")
    ax.legend(frameon=False)


def plot_change(results, ax=None):
    """Draws how much a step changed, by step: a line for each field of each result.

    results  a result of `hostless stencil --every ... --json`, or a list of them: file name or dictionary
    ax       matplotlib axes to draw into; without, a new figure
    Returns the axes. Errors: ValueError for other input, also where nobody looked (no --every), ImportError without matplotlib.
    """
    several = results if isinstance(results, (list, tuple)) else [results]
    curves = [changes_of(one) for one in several]
    if not any(lines for _, lines in curves):
        raise ValueError("nobody looked at what a step changed (nothing can be drawn). Give results of `--every`.")
    with plots.axes_or_new(ax, (7, 3.5)) as ax:
        draw_changes(curves, ax)
    return ax


# ---- fields

def plane_of(field):
    """(plane, words) to be drawn of a field of two or three axes: of three the middle plane across the first one.

    At most MOST_CELLS along each axis; what is larger becomes means of equally many neighbours, those at the far ends left out
    where they do not fill a mean. Errors: ValueError for other numbers of axes, no cells, or none that is finite.
    """
    import numpy

    if field.ndim not in (2, 3) or field.size == 0:
        raise ValueError(f"an array of shape {tuple(field.shape)} (a picture needs two or three axes, and cells). Give a field.")
    words = ""
    if field.ndim == 3:
        middle = field.shape[0] // 2
        field, words = field[middle], f"plane {middle} of {field.shape[0]}"
    step = [-(-extent // MOST_CELLS) for extent in field.shape]
    if max(step) > 1:
        rows, columns = (count // each for count, each in zip(field.shape, step))
        plane = numpy.empty((rows, columns))
        for k in range(rows):  # a row of means at a time: the field may be larger than memory
            some = numpy.asarray(field[k * step[0]:(k + 1) * step[0], :columns * step[1]], dtype=float)
            plane[k] = some.reshape(step[0], columns, step[1]).mean(axis=(0, 2))
        means = f"means of {step[0]} x {step[1]} cells"
        words = f"{words}, {means}" if words else means
    else:
        plane = numpy.array(field, dtype=float)
    if not numpy.isfinite(plane).any():
        raise ValueError("no value is finite (nothing has a colour). Give a field of before.")
    return plane, words


def draw_plane(plane, shape, ax) -> None:
    """Draws a plane of `plane_of`, with the numbers of cells of a field whose last two extents are `shape`."""
    drawn = ax.imshow(plane, cmap="viridis", interpolation="nearest", extent=(-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5))
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_major_locator().set_params(integer=True)
    ax.set_frame_on(False)
    ax.figure.colorbar(drawn, ax=ax, shrink=0.85)


def read_field(path):
    """The array of a .npy file, read as far as it is used. Errors: ValueError for another file, OSError."""
    import numpy

    try:
        field = numpy.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: cannot be read as .npy ({error}). Give a field that `hostless stencil --output` wrote.") from error
    if not isinstance(field, numpy.ndarray) or field.dtype.kind not in "fiub":
        raise ValueError(f"{path}: no array of numbers. Give a field that `hostless stencil --output` wrote.")
    return field


def plot_field(field, ax=None):
    """Draws a field by colours, its first axis downwards; of three axes the middle plane across the first one.

    field  an array of two or three axes, or the name of a .npy file, as `hostless stencil --output` writes it
    ax     matplotlib axes to draw into; without, a new figure
    Returns the axes. Errors: ValueError for other input, OSError for a file that cannot be read, ImportError without matplotlib.
    Cost: of a large field the plane that is drawn is read, and at most 512 means along an axis are kept.
    """
    import numpy

    array = read_field(field) if isinstance(field, (str, Path)) else numpy.asarray(field)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"a field of {array.dtype} (cells are drawn as real numbers). Give its real part, say.")
    plane, words = plane_of(array)
    with plots.axes_or_new(ax, (5.6, 4.6)) as ax:
        draw_plane(plane, array.shape[-2:], ax)
        if words:
            ax.set_title(words, fontsize=10)
    return ax

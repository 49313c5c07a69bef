"""How a stencil is run: what is looked at, and put into words for the engine."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from . import _core
from ._rows import real, small, whole
from ._stencil_arrays import Cells
from .errors import UsageError, a_type, counted

#: More steps than anybody takes, and fewer than are counted.
MOST_STEPS = 2**53


class How(NamedTuple):
    """What `Stencil.run` is asked for beside arrays and steps, as it was given."""

    boundary: Any
    ranks_along: Any
    depth: Any
    block_steps: Any
    every: Any
    tolerance: Any
    callback: Any
    time_limit: Any
    others: dict


def of_grid(values: Any, missing: Any) -> tuple:
    """Of the axes of an array, those of the engine's grid of three: the last is the last."""
    values = tuple(values)
    return (values[0], missing, values[1]) if len(values) == 2 else (missing,) * (3 - len(values)) + values


def of_array(values: Any, axes: int) -> tuple:
    """The other way round."""
    values = tuple(values)
    return (values[0], values[2]) if axes == 2 else values[3 - axes:]


def between(value: Any, name: str, least: int, most: int) -> int:
    number = whole(value, name)
    if not least <= number <= most:
        raise UsageError(f"{name}={number} (from {least} to {most}). Use a number between.")
    return number


def limits(tolerance: Any, time_limit: Any) -> tuple:
    allowed, seconds = real(tolerance, "tolerance"), 0.0 if time_limit is None else real(time_limit, "time_limit")
    if not (allowed >= 0 and math.isfinite(allowed)):
        raise UsageError(f"tolerance={tolerance} (what a step may change). Use a finite number from 0 on.")
    if time_limit is not None and not (seconds > 0 and math.isfinite(seconds)):
        raise UsageError(f"time_limit={time_limit} (seconds after which it ends). Use a finite number above 0, or None.")
    return allowed, seconds


def check_looks(task: Any, callback: Any) -> None:
    if callback is not None and not callable(callback):
        raise UsageError(f"callback is {a_type(callback)} (it is called with a StencilChange). Pass a function.")
    if task.every == 0 and (callback is not None or task.tolerance > 0):
        raise UsageError(f"{'a callback' if callback is not None else 'a tolerance'} without every (nobody would look). Say after how "
                         "many steps to look, like every=10.")


def grid_of(shape: tuple, edges: tuple, ranks_along: Any) -> Any:
    """A task with its grid, and how many boxes are along each axis where that is said."""
    task = _core.StencilTask()
    task.extent, task.boundary = of_grid(shape, 1), of_grid(edges, "dirichlet")
    if ranks_along is None:
        return task
    if not isinstance(ranks_along, (tuple, list)) or len(ranks_along) != len(shape):
        raise UsageError(f"ranks_along={ranks_along!r} (the arrays have {counted(len(shape), 'axis', 'axes')}). Pass a tuple of as many "
                         "numbers.")
    along = tuple(small(one, "ranks_along") for one in ranks_along)
    if min(along) < 1:
        raise UsageError(f"ranks_along={ranks_along!r} (each axis has a rank). Use numbers from 1 on.")
    for axis, (count, size) in enumerate(zip(along, shape)):
        if count > size:
            raise UsageError(f"{counted(count, 'rank')} along axis {axis}, which has {counted(size, 'cell')} (each rank needs one). Use 1 to {size}.")
    task.ranks_along = of_grid(along, 1)
    return task


def set_ranks(task: Any, cells: Cells, ranks: Any, how: How, are_threads: bool) -> None:
    for array in cells.arrays:
        task.add(array.ctypes.data, of_grid(array.strides, 0))
    if ranks is not None:
        task.ranks = between(small(ranks, "ranks"), "ranks", 1, _core.MOST_RANKS)
    if how.ranks_along is not None:
        count = math.prod(task.ranks_along)
        if are_threads:
            between(count, "ranks", 1, _core.MOST_RANKS)
        if task.ranks not in (0, count):
            raise UsageError(f"ranks={ranks} and ranks_along={how.ranks_along!r}, which are {count} (each rank has one box). Leave "
                             "ranks out.")
    for name, value in (("depth", how.depth), ("block_steps", how.block_steps)):
        if value is not None:
            if small(value, name) < 1:
                raise UsageError(f"{name}={value} (steps are counted from 1 on). Use 1 or more, or None to have it chosen.")
            setattr(task, name, small(value, name))

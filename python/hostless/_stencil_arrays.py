"""Arrays that stencils step in place, and those that they read: what is looked at before anything is stepped."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._device import is_there
from ._rows import check_apart, check_numbers, is_array, root_of, to_numpy
from ._stencil_expression import MOST_AXES, by_read_names, near
from .errors import UsageError, a_type, counted

TAKEN = (np.dtype(np.float32), np.dtype(np.float64))
BOUNDARIES = ("dirichlet", "neumann", "periodic")
#: How long NumPy may look for memory that two arrays share.
OVERLAP_WORK = 10_000


class Cells(NamedTuple):
    """The arrays of a run: fields, then coefficients, of one shape and type."""

    arrays: list
    shape: tuple
    dtype: np.dtype


def named_fields(given: Any, fields: tuple) -> list:
    """[(what, array)] in the order of the fields, of one array, a dict by name or a sequence."""
    if isinstance(given, dict):
        given = by_read_names(given)
        for name in given:
            if name not in fields:
                raise UsageError(f"an array for {name!r}{near(str(name), fields)} (the stencil has {', '.join(fields)}). Pass an array "
                                 "for each field.")
        missing = [name for name in fields if name not in given]
        if missing:
            raise UsageError(f"no array for {' and '.join(missing)} (the stencil has {', '.join(fields)}, all stepped at once). Pass one "
                             "for each.")
        return [(name, given[name]) for name in fields]
    if isinstance(given, (tuple, list)) and (len(fields) > 1 or len(given) == 1 and is_array(given[0]) and np.ndim(given[0])):
        if len(given) != len(fields):
            raise UsageError(f"{counted(len(given), 'array')} for {counted(len(fields), 'field')} ({', '.join(fields)}). Pass one for each.")
        return list(zip(fields, given))
    if len(fields) > 1:
        raise UsageError(f"one array for {len(fields)} fields ({', '.join(fields)}, all stepped at once). Pass a dict or a tuple of "
                         "arrays.")
    return [(fields[0], given)]


def _refuse_there(thing: Any, what: str) -> None:
    if is_there(thing):
        raise UsageError(f"{what} is in the memory of a GPU, and the fields are not (cells are stepped where the fields lie). Copy it with "
                         ".get(), or .cpu() of torch.")


def field_of(thing: Any, what: str) -> np.ndarray:
    """An array as NumPy's, of the same memory."""
    _refuse_there(thing, what)
    if root_of(thing) == "torch":
        return _of_torch(thing, what)
    if not isinstance(thing, np.ndarray):
        try:
            thing = np.from_dlpack(thing) if hasattr(thing, "__dlpack__") else np.asarray(memoryview(thing))
        except (BufferError, TypeError, RuntimeError, ValueError):
            raise TypeError(f"{what} is {a_type(thing)} (its cells are stepped where they lie). Pass an array of NumPy, or a "
                            "tensor of torch.") from None
    if isinstance(thing, np.ma.MaskedArray):
        raise UsageError(f"{what} has a mask (every cell is stepped). Fill it first.")
    _check_type(thing.dtype, what)
    if not thing.flags.writeable:
        raise UsageError(f"{what} is read-only (its cells are stepped in place). Pass a copy.")
    return thing


def _of_torch(tensor: Any, what: str) -> np.ndarray:
    if "strided" not in str(tensor.layout):
        raise UsageError(f"{what} is a tensor of the layout {tensor.layout} (every cell is stepped). Pass a dense one.")
    if tensor.requires_grad or tensor.is_conj() or tensor.is_neg():
        raise UsageError(f"{what} is followed by autograd, or a view that negates (its cells are stepped in place). Pass tensor.detach(), "
                         "or a copy.")
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in ("float32", "float64"):
        raise TypeError(f"{what} has the type {name} (cells are float32 or float64). Convert it.")
    return tensor.detach().numpy()


def _check_type(dtype: np.dtype, what: str) -> None:
    if dtype.kind == "c":
        raise TypeError(f"{what} is complex ({dtype}; cells are float32 or float64). Step the real and imaginary parts as two fields.")
    if dtype not in TAKEN or not dtype.isnative:
        raise TypeError(f"{what} has the type {dtype} (cells are float32 or float64). Convert it, like {what}.astype(float).")


def cells_of(fields: list, coefficients: list) -> Cells:
    """Looks at all arrays of a run; [(what, array)] each.

    TypeError: no arrays, or of another type. UsageError: shapes that differ, read-only, shared memory.
    """
    arrays = [field_of(thing, what) for what, thing in fields]
    first, what_first = arrays[0], fields[0][0]
    if not 1 <= first.ndim <= MOST_AXES:
        raise UsageError(f"{what_first} has {counted(first.ndim, 'axis', 'axes')} (arrays of 1 to {MOST_AXES} are stepped). Reshape it.")
    if first.size == 0:
        raise UsageError(f"{what_first} has the shape {first.shape} (there is no cell to step). Pass at least one.")
    for (what, _), array in zip(fields[1:], arrays[1:]):
        if array.dtype != first.dtype:
            raise TypeError(f"{what} is {array.dtype}, {what_first} {first.dtype} (all fields have one type). Convert one.")
        _check_shape(array.shape, what, first.shape, what_first)
    for (what, _), array in zip(fields, arrays):
        check_apart(what, array.shape, array.strides, array.itemsize)
    for k, (what, _) in enumerate(fields):
        for j in range(k):
            if _shares(arrays[j], arrays[k]):
                raise UsageError(f"{fields[j][0]} and {what} share memory (each field is stepped in place). Pass a copy of one.")
    for what, thing in coefficients:
        _refuse_there(thing, what)
        array = np.asarray(to_numpy(thing))
        _check_shape(array.shape, what, first.shape, what_first)
        arrays.append(_as_cells(array, first.dtype, what))
    return Cells(arrays, first.shape, first.dtype)


def _as_cells(array: np.ndarray, dtype: np.dtype, what: str) -> np.ndarray:
    """A coefficient in the type of the cells. UsageError: a value is beyond that type."""
    with np.errstate(over="ignore"):
        made = array.astype(dtype, copy=False)
    if made is not array and array.dtype.kind == "f":
        beyond = np.isinf(made) & np.isfinite(array)
        if beyond.any():
            where = tuple(int(one) for one in np.argwhere(beyond)[0])
            raise UsageError(f"{what}{list(where)} = {array[where]!s} is beyond {dtype} (it would be infinite there). Use "
                             f"{'float64 arrays, or ' if dtype == np.float32 else ''}smaller numbers.")
    return made


def _check_shape(shape: tuple, what: str, wanted: tuple, of: str) -> None:
    if shape != wanted:
        raise UsageError(f"{what} has the shape {shape}, {of} {wanted} (each cell has a value of every array). Pass arrays of one shape.")


def _shares(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        return np.shares_memory(one, other, max_work=OVERLAP_WORK)
    except (RuntimeError, ValueError):  # NumPy's TooHardError
        return False


def coefficient_of(thing: Any, what: str) -> Any:
    """What was given as a coefficient: looked at, and kept as it is, so that each run reads what is in it then."""
    if is_there(thing):
        return thing  # fields that lie there too are stepped there
    try:
        array = np.asarray(to_numpy(thing))
    except UsageError:
        raise
    except ValueError:  # rows of different lengths
        raise UsageError(f"{what} is {a_type(thing)} that NumPy makes no array of (its rows differ in length). Pass one value "
                         "a cell.") from None
    check_numbers(array.dtype, what)
    return thing if not isinstance(thing, (list, tuple)) else array


def check_reach(radius: tuple, shape: tuple, what: str) -> None:
    for axis, (far, size) in enumerate(zip(radius, shape)):
        if far > size:
            raise UsageError(f"an offset of {far} cells along axis {axis}, of which {what} has {size} (it leads beyond the array from "
                             "every cell). Pass a larger array.")


def boundary_of(given: Any, axes: int) -> tuple:
    """A word for each axis."""
    words = (given,) * axes if isinstance(given, str) else given
    if not isinstance(words, (tuple, list)) or len(words) != axes:
        raise UsageError(f"boundary={given!r} (the arrays have {counted(axes, 'axis', 'axes')}). Pass a word, or a tuple of {axes} of {', '.join(BOUNDARIES)}.")
    for word in words:
        if word not in BOUNDARIES:
            raise UsageError(f"boundary={word!r}{near(str(word), BOUNDARIES)}. Use {', '.join(BOUNDARIES[:-1])} or {BOUNDARIES[-1]}.")
    return tuple(words)

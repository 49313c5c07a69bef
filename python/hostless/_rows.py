"""Matrices of every kind as compressed rows: int32 or int64 offsets and columns, float64 values."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, NamedTuple, Optional

import numpy as np

from .errors import BadInputError, NumberTypeError, UsageError, a_type, counted, warn

#: Above this, float64 does not hold every whole number.
LARGEST_EXACT = 2**53


class Unsettled:
    """Rows as scipy has them, in whose order nobody has looked. Settled in place, but for what is the caller's."""

    def __init__(self, rows: Any, is_callers: bool):
        self._rows, self._is_callers = rows, is_callers

    def settled(self) -> Any:
        if not self._rows.has_canonical_format:
            if self._is_callers:
                self._rows, self._is_callers = self._rows.copy(), False
            self._rows.sum_duplicates()
        return self._rows


class Rows(NamedTuple):
    """Compressed rows; columns rise inside a row, no place is stored twice."""

    offsets: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    shape: tuple
    kind: str  #: what it was, for people
    single: bool  #: it was float32
    pending: Optional[Unsettled] = None  #: whether columns rise and no place is stored twice: `settled` looks

    @property
    def arrays(self) -> tuple:
        return self.offsets, self.columns, self.values


def root_of(thing: Any) -> str:
    """The package that a thing's type comes from."""
    return type(thing).__module__.split(".")[0]


def overlaps(shape: tuple, strides: tuple, item: int) -> bool:
    """Whether two cells of one array share memory; strides in bytes. They tell it at once, but for those that no slice has."""
    reach = item
    for stride, size in sorted((abs(stride), size) for stride, size in zip(strides, shape) if size > 1):
        if stride < reach:
            break
        reach += (size - 1) * stride
    else:
        return False
    places = np.zeros((), np.int64)
    for stride, size in zip(strides, shape):
        places = np.add.outer(places, np.arange(size, dtype=np.int64) * stride)
    return bool(np.diff(np.sort(places, axis=None)).min(initial=item) < item)


def check_apart(what: str, shape: tuple, strides: tuple, item: int) -> None:
    if 0 not in shape and overlaps(shape, strides, item):
        raise UsageError(f"{what} has cells that share memory (each has a value of its own). Pass a copy.")


def check_numbers(dtype: Any, what: str) -> np.dtype:
    """The dtype, if its numbers are real ones that float64 stands for."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        raise TypeError(f"{what} is complex ({dtype}; hostless computes with real numbers). Solve the real and "
                        "imaginary parts apart where the matrix is real, or use scipy's methods.")
    if dtype.kind not in "fiub":
        raise TypeError(f"{what} has the type {dtype} (real numbers are needed). Convert it with astype(float).")
    return dtype


def as_doubles(values: np.ndarray, what: str) -> np.ndarray:
    """float64 of real numbers of any type; warns where they lose digits."""
    dtype = check_numbers(values.dtype, what)
    if dtype.kind in "iu" and dtype.itemsize == 8 and values.size:
        # Of int64, abs() of the smallest would overflow.
        largest = max(int(values.max()), -int(values.min()))
        if largest > LARGEST_EXACT:
            warn(f"{what} holds whole numbers up to {largest} (float64 holds them exactly up to 2^53): they were "
                 "rounded. Scale the system.")
    if dtype.kind == "f" and dtype.itemsize > 8:
        warn(f"{what} is {dtype} (hostless computes in float64): digits beyond the 16th were dropped.")
    return np.ascontiguousarray(values, dtype=np.float64)


def index_array(indices: Any) -> np.ndarray:
    indices = np.asarray(indices)
    if indices.dtype == np.int32 or indices.dtype == np.int64:
        return np.ascontiguousarray(indices)
    return np.ascontiguousarray(indices, dtype=np.int64)


def check_offsets(offsets: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
    """What is read by them lies inside the arrays. scipy looks at this no more than its user does."""
    if len(offsets) == 0 or offsets[0] != 0:
        raise BadInputError("the first offset is not 0 (row 0 begins there). Pass the arrays of a whole matrix.")
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falls):
        row = int(falls[0])
        raise BadInputError(f"row {row} ends at {int(offsets[row + 1])}, before it begins at {int(offsets[row])} (a row's entries lie "
                            "between two offsets). Correct the matrix.")
    if offsets[-1] > min(len(columns), len(values)):
        raise BadInputError(f"{counted(len(columns), 'column')} and {counted(len(values), 'value')} where the offsets count "
                            f"{counted(int(offsets[-1]), 'entry', 'entries')}. Pass whole arrays.")


def check_inside(indices: np.ndarray, count: int, what: str) -> None:
    wrong = np.flatnonzero((indices < 0) | (indices >= count))
    if len(wrong):
        entry = int(wrong[0])
        raise BadInputError(f"entry {entry} is in {what} {int(indices[entry])} (there are {count}, from 0 on). Correct the matrix.")


def compressed(offsets: Any, columns: Any, values: np.ndarray, shape: tuple, kind: str, single: bool) -> Rows:
    """Compressed rows as they should be: sorted, duplicates summed (in float64), one index type."""
    offsets, columns = index_array(offsets), index_array(columns)
    if offsets.dtype != columns.dtype:
        offsets, columns = offsets.astype(np.int64), columns.astype(np.int64)
    if offsets.shape != (shape[0] + 1,):
        raise BadInputError(f"{counted(offsets.shape[0], 'offset')} for {counted(shape[0], 'row')} (a row's entries lie between two of them). "
                            "Pass one more than rows.")
    check_offsets(offsets, columns, values)
    row = np.repeat(np.arange(shape[0], dtype=columns.dtype), np.diff(offsets))
    if len(row) != len(columns) or len(row) != len(values):
        raise BadInputError(f"{counted(len(columns), 'column')} and {counted(len(values), 'value')} where the offsets count "
                            f"{counted(len(row), 'entry', 'entries')}. Pass whole arrays.")
    rises = columns[1:] > columns[:-1]
    if not np.all(rises | (row[1:] != row[:-1])):
        order = np.lexsort((columns, row))
        row, columns, values = row[order], columns[order], values[order]
        first = np.ones(len(row), dtype=bool)
        first[1:] = (row[1:] != row[:-1]) | (columns[1:] != columns[:-1])
        values = np.add.reduceat(values, np.flatnonzero(first)) if len(row) else values
        row, columns = row[first], columns[first]
        offsets = np.zeros(shape[0] + 1, dtype=columns.dtype)
        np.cumsum(np.bincount(row, minlength=shape[0]), out=offsets[1:])
    return Rows(offsets, np.ascontiguousarray(columns), np.ascontiguousarray(values), tuple(shape), kind, single)


def of_scipy(matrix: Any, later: bool = False, what: str = "A") -> Rows:
    given = matrix
    if matrix.ndim != 2:
        raise UsageError(f"a sparse array of {counted(matrix.ndim, 'dimension')} (a matrix has two). Reshape it to (n, n).")
    kind = f"{type(matrix).__module__.split('.')[0]}.{type(matrix).__name__} of {matrix.dtype}"
    single = matrix.dtype == np.float32
    if hasattr(matrix, "indptr"):  # before any conversion: they write where it says
        check_offsets(matrix.indptr, matrix.indices, matrix.data)
    if matrix.format == "csc":
        check_inside(matrix.indices[:int(matrix.indptr[-1])], matrix.shape[0], "row")
    elif matrix.format == "coo":
        check_inside(matrix.row, matrix.shape[0], "row")
        check_inside(matrix.col, matrix.shape[1], "column")
    if check_numbers(matrix.dtype, what) != np.float64:
        if matrix.format in ("lil", "dok"):  # which hold no array of values, nor anything twice
            matrix = matrix.tocsr()
        # Before anything is summed: int8 + int8 would wrap around.
        as_doubles(matrix.data, what)
        matrix = matrix.astype(np.float64)
    made = matrix.tocsr()
    pending = Unsettled(made, made is given)
    rows = Rows(*_arrays_of(made), matrix.shape, kind, single, pending)
    return rows if later else settled(rows)


def settled(rows: Rows) -> Rows:
    """The same with columns that rise and no place stored twice."""
    if rows.pending is None:
        return rows
    offsets, columns, values = _arrays_of(rows.pending.settled())
    return rows._replace(offsets=offsets, columns=columns, values=values, pending=None)


def _arrays_of(rows: Any) -> tuple:
    return *_one_type(rows.indptr, rows.indices), np.ascontiguousarray(rows.data)


def _one_type(offsets: np.ndarray, columns: np.ndarray) -> tuple:
    offsets, columns = index_array(offsets), index_array(columns)
    if offsets.dtype == columns.dtype:
        return offsets, columns
    return offsets.astype(np.int64), columns.astype(np.int64)


def of_dense(array: np.ndarray, kind: str, what: str = "A") -> Rows:
    if array.ndim != 2:
        raise UsageError(f"{what} has {counted(array.ndim, 'dimension')} (a matrix has two). Pass a two-dimensional array.")
    single = array.dtype == np.float32
    array = as_doubles(array, what)
    stored = array != 0  # NaN too: the solve will say so
    offsets = np.zeros(array.shape[0] + 1, dtype=np.int64)
    np.cumsum(np.count_nonzero(stored, axis=1), out=offsets[1:])
    return Rows(offsets, np.nonzero(stored)[1].astype(np.int64), array[stored], array.shape, kind, single)


class Shifted:
    """A - shift I, of which nothing is made before all processes have said what they were given."""

    def __init__(self, matrix: Any, shift: float):
        self.matrix, self.shift = matrix, shift

    @classmethod
    def parts(cls, matrix: Any) -> tuple:
        return (matrix.matrix, matrix.shift) if isinstance(matrix, cls) else (matrix, 0.0)


class Checked:
    """An M that has to be symmetric, which is looked at where all processes hear of it."""

    def __init__(self, matrix: Any):
        self.matrix = matrix


def shifted(rows: Rows, shift: float, first: int = 0) -> Rows:
    """rows - shift I, of which they are the rows from `first` on."""
    if shift == 0:
        return rows
    count = np.arange(len(rows.offsets) - 1, dtype=rows.columns.dtype)
    ends = rows.offsets[1:]
    return compressed(np.asarray(rows.offsets) + np.arange(len(rows.offsets), dtype=rows.offsets.dtype),
                      np.insert(rows.columns, ends, count + first), np.insert(rows.values, ends, -shift), rows.shape, rows.kind,
                      rows.single)


def of_torch(tensor: Any, what: str = "A") -> Rows:
    """torch tensors: sparse ones of any layout that converts to CSR, or dense; what is on a GPU is copied from it."""
    kind = f"torch {str(tensor.layout).removeprefix('torch.')} on {tensor.device}"
    if "sparse" not in str(tensor.layout):
        return of_dense(to_numpy(tensor), kind, what)
    rows = tensor.detach()
    if "bsr" in kind or "bsc" in kind:  # torch converts them to nothing
        return of_torch_blocks(rows, kind, what)
    if "csr" not in str(rows.layout):
        rows = rows.coalesce().to_sparse_csr() if "coo" in str(rows.layout) else rows.to_sparse_csr()
    values = to_numpy(rows.values())
    return compressed(to_numpy(rows.crow_indices()), to_numpy(rows.col_indices()), as_doubles(values, what),
                      tuple(rows.shape), kind, values.dtype == np.float32)


def of_torch_blocks(tensor: Any, kind: str, what: str) -> Rows:
    """Blocks by rows, or by columns: then it is the transpose of its transposed blocks by rows."""
    from scipy.sparse import bsr_array

    values, (rows, columns) = to_numpy(tensor.values()), tensor.shape
    if "bsr" in kind:
        blocks = bsr_array((values, to_numpy(tensor.col_indices()), to_numpy(tensor.crow_indices())), shape=(rows, columns))
    else:
        blocks = bsr_array((values.transpose(0, 2, 1), to_numpy(tensor.row_indices()), to_numpy(tensor.ccol_indices())),
                           shape=(columns, rows)).T
    return of_scipy(blocks.tocsr(), what=what)._replace(kind=kind)


def of_compressed(matrix: Any, what: str = "A") -> Rows:
    """Anything with indptr, indices, data and shape, as cupyx.scipy.sparse has them."""
    kind = f"{type(matrix).__module__.split('.')[0]}.{type(matrix).__name__}"
    values = to_numpy(matrix.data)
    check_numbers(values.dtype, what)
    return compressed(to_numpy(matrix.indptr), to_numpy(matrix.indices), as_doubles(values, what), matrix.shape, kind,
                      values.dtype == np.float32)


def to_numpy(array: Any) -> np.ndarray:
    """An array of the processor or of a GPU as NumPy's; from a GPU it is copied.

    Errors: UsageError (a mask: NumPy's array has what it hides).
    """
    if isinstance(array, np.ma.MaskedArray):
        raise UsageError("an array with a mask (hostless reads every entry). Fill or compress it first.")
    root = root_of(array)
    if root == "torch":
        array = array.detach().cpu()
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()  # which NumPy does not have
        return array.resolve_conj().resolve_neg().numpy()
    if root in ("cupy", "cupyx"):
        return array.get()
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return np.asarray(array)
    try:
        return np.from_dlpack(array)
    except (BufferError, TypeError, RuntimeError, ValueError):
        return np.asarray(array)


def is_array(thing: Any) -> bool:
    """Whether NumPy can make an array of it, by any of the protocols or because it is a list."""
    return (isinstance(thing, (np.ndarray, list, tuple)) or
            any(hasattr(thing, name) for name in ("__array__", "__array_interface__", "__dlpack__")))


def is_operator(thing: Any) -> bool:
    return hasattr(thing, "matvec") and hasattr(thing, "shape")


def is_scipy(thing: Any) -> bool:
    """Without importing scipy: what is of scipy has imported it."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(thing)


def whole(value: Any, name: str) -> int:
    """A whole number that an option is given as; True is none."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise NumberTypeError(f"{name}={value!r} is {a_type(value)} (a whole number is meant). Pass one.") from None


def real(value: Any, name: str) -> float:
    """A real number that an option is given as, True is none; infinity where it is larger than any float64."""
    try:
        if value is None or isinstance(value, (bool, np.bool_, str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        raise NumberTypeError(f"{name}={value!r} is {a_type(value)} (a number is meant). Pass one.") from None


def small(value: Any, name: str) -> int:
    """A whole number that counts things of a machine."""
    number = whole(value, name)
    if not -2**31 <= number < 2**31:
        raise UsageError(f"{name}={number} (nothing has so many). Use fewer.")
    return number


def word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is {a_type(value)} (a word is meant). Pass one.")
    if "\0" in value:
        raise UsageError(f"{name}={value!r} (no word has a NUL in it). Correct it.")
    return value


def rows_of(matrix: Any, later: bool = False, what: str = "A", others: str = ", LinearOperators and hostless.Matrix") -> Rows:
    """Compressed rows of a matrix of any kind. The matrix itself is left as it is. later: whoever takes them looks at the
    order of their columns, and calls `settled` where it is needed. what: its name in messages; others: what the caller's
    caller may pass beside matrices.

    TypeError: complex numbers, or no matrix. UsageError: not two dimensions.
    """
    if is_scipy(matrix):
        return of_scipy(matrix, later, what)
    root = root_of(matrix)
    if root == "torch":
        return of_torch(matrix, what)
    if root == "cupyx":
        matrix = matrix.tocsr()
    if all(hasattr(matrix, name) for name in ("indptr", "indices", "data", "shape")):
        return of_compressed(matrix, what)
    if is_array(matrix):
        array = np.asarray(to_numpy(matrix))
        return of_dense(array, f"{type(matrix).__module__.split('.')[0]}.{type(matrix).__name__} of {array.dtype}", what)
    raise TypeError(f"{what} is {a_type(matrix)} (hostless takes scipy.sparse, NumPy, torch and cupyx matrices{others}). Convert "
                    "it to one of them.")

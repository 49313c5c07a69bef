"""Arrays and matrices in the memory of GPUs, of any package: what is used where it is."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from . import _core
from ._rows import Rows, check_numbers, root_of, settled, to_numpy
from .errors import BadInputError, UsageError, counted, warn

#: Of DLPack: CUDA, CUDA's managed memory, ROCm.
GPUS = {2: "cuda", 13: "cuda", 10: "rocm"}
#: What a solve reads and writes as it is; other types become float64 on the GPU.
TAKEN = (np.dtype(np.float64), np.dtype(np.float32))


class Held(NamedTuple):
    """An array in a GPU's memory."""

    owner: Any  #: keeps the memory
    address: int
    shape: tuple
    strides: tuple  #: in bytes
    dtype: np.dtype
    stream: Optional[int]  #: what fills it was queued there; None: nothing to wait for

    def core(self, column: Optional[int] = None) -> Any:
        """For the extension module: a vector, or one column of several. It waits for what is queued now."""
        address, stride = self.address, self.strides[0]
        if column is not None:
            address += column * self.strides[1]
        return _core.GpuArray(address, self.shape[0], stride // self.dtype.itemsize, str(self.dtype), self.stream)


def is_there(thing: Any) -> bool:
    """Whether an array, or what holds a matrix' values, is in the memory of a GPU."""
    values = values_of(thing)
    if root_of(values) == "torch":
        return bool(values.is_cuda)
    if hasattr(values, "__cuda_array_interface__") or root_of(values) == "cupy":
        return True
    try:
        return hasattr(values, "__dlpack_device__") and int(values.__dlpack_device__()[0]) in GPUS
    except (BufferError, RuntimeError, TypeError, ValueError):
        return False


def values_of(thing: Any) -> Any:
    """The entries of a sparse matrix; anything else, and what knows by itself where it is, is its own values."""
    if root_of(thing) == "cupyx" or all(hasattr(thing, name) for name in ("indptr", "indices", "data")):
        return getattr(thing, "data", thing)
    return thing


def held(array: Any) -> Held:
    """The array as its package's protocol describes it, with the stream that its package has in use now."""
    root = root_of(array)
    if root == "torch":
        return _of_torch(array)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None and root == "cupy":  # on ROCm it has none
        import cupy

        return Held(array, array.data.ptr, array.shape, array.strides, array.dtype, cupy.cuda.get_current_stream().ptr)
    if interface is not None and (interface.get("version", 0) >= 3 or not hasattr(array, "__dlpack__")):
        return _of_interface(array, interface)
    return of_dlpack(array)


def _of_torch(array: Any) -> Held:
    import torch

    array = array.detach().resolve_conj().resolve_neg()
    dtype = np.dtype(str(array.dtype).removeprefix("torch.")) if "bfloat" not in str(array.dtype) else None
    if dtype is None:
        array, dtype = array.double(), np.dtype(np.float64)
    strides = tuple(stride * dtype.itemsize for stride in array.stride())
    return Held(array, array.data_ptr(), tuple(array.shape), strides, dtype,
                torch.cuda.current_stream(array.device).cuda_stream)


def _of_interface(array: Any, interface: dict) -> Held:
    if interface.get("mask") is not None:
        raise UsageError("an array with a mask (hostless reads every entry). Fill it first.")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or dense_strides(shape, dtype)
    # Before version 3 nobody says which stream; the default one waits for those that are not told otherwise.
    stream = interface.get("stream") if interface.get("version", 0) >= 3 else 0
    return Held(array, interface["data"][0], shape, tuple(strides), dtype, stream)


def dense_strides(shape: tuple, dtype: np.dtype) -> tuple:
    strides, step = [], dtype.itemsize
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def of_dlpack(array: Any) -> Held:
    # The producer makes the default stream wait: 1 on CUDA, 0 on ROCm.
    stream = 0 if GPUS[int(array.__dlpack_device__()[0])] == "rocm" else 1
    address, shape, strides, kind, owner = _core.of_dlpack(array.__dlpack__(stream=stream))
    dtype = np.dtype(kind) if kind != "unknown" else np.dtype(object)
    return Held((array, owner), address, shape, tuple(stride * dtype.itemsize for stride in strides), dtype, stream)


def as_taken(array: Any, what: str) -> Any:
    """The array itself where it is float64 or float32; else in float64, made by its package on its GPU."""
    dtype = held(array).dtype
    if dtype in TAKEN:
        return array
    check_numbers(dtype, what)
    if root_of(array) == "torch":
        return array.double()
    if hasattr(array, "astype"):
        return array.astype(np.float64)
    raise UsageError(f"{what} has the type {dtype} (a GPU's arrays are read as float64 or float32). Convert it.")


def maker_of(array: Any) -> Optional[Callable]:
    """make(shape, dtype): an array of the same package on the same GPU, not filled; None where it has none to write to."""
    root = root_of(array)
    if root == "torch":
        import torch

        return lambda shape, dtype: torch.empty(shape, dtype=getattr(torch, str(dtype)), device=array.device)
    if root == "cupy":
        import cupy

        def make(shape: tuple, dtype: np.dtype) -> Any:
            with array.device:
                return cupy.empty(shape, dtype=dtype)
        return make
    if root == "numba":
        from numba import cuda

        return lambda shape, dtype: cuda.device_array(shape, dtype=dtype)
    return None


def to_gpu_like(given: Any, like: Any) -> Any:
    """A guess where b is: as it is where it is there already, else copied there from the host."""
    if is_there(given):
        return given
    values = np.asarray(to_numpy(given))
    check_numbers(values.dtype, "x0")
    values = np.ascontiguousarray(values, dtype=np.float64)
    root = root_of(like)
    if root == "torch":
        import torch

        return torch.from_numpy(values).to(like.device)
    if root == "cupy":
        import cupy

        with like.device:
            return cupy.asarray(values)
    from numba import cuda

    return cuda.to_device(values)


class DeviceVectors:
    """One or several right-hand sides in a GPU's memory.

    columns  each as the extension module takes it
    """

    def __init__(self, given: Any, rows: int, name: str):
        self._held = held(as_taken(given, name))  # keeps what was converted
        self.given, self.shape, self.single = given, self._held.shape, self._held.dtype == np.float32
        if not (len(self.shape) in (1, 2) and self.shape[0] == rows and int(np.prod(self.shape)) >= rows):
            raise UsageError(f"{name} has the shape {self.shape} (the matrix has {counted(rows, 'row')}). Pass ({rows},), "
                             f"({rows}, 1), or ({rows}, k) for k right-hand sides.")
        count = 1 if len(self.shape) == 1 else self.shape[1]
        self.columns = [self._held.core(None if len(self.shape) == 1 else k) for k in range(count)]

    def answer(self, single: bool) -> "DeviceVectors":
        """Vectors of that kind, shape and place, not filled."""
        make = maker_of(self.given)
        assert make is not None  # who calls has asked
        return DeviceVectors(make(self.shape, np.dtype(np.float32 if single else np.float64)), self.shape[0], "x")


class DeviceRows(NamedTuple):
    """Compressed rows that stay on a GPU."""

    rows: Any  #: as the extension module takes them
    kind: str
    single: bool
    owner: Any  #: keeps the arrays


def device_rows_of(matrix: Any) -> Optional[DeviceRows]:
    """Compressed rows of a matrix in a GPU's memory, sorted and without duplicates: its own arrays where they are so,
    else made on the GPU. None: no package does that there.

    BadInputError: not sorted, and nobody sorts them there; offsets or columns that lead nowhere.
    """
    root = root_of(matrix)
    given = matrix
    if root == "torch":
        given = _torch_csr(matrix.detach())
        offsets, columns, values = given.crow_indices(), given.col_indices(), given.values()
    elif root in ("cupy", "cupyx"):
        given = _cupy_csr(matrix)
        offsets, columns, values = given.indptr, given.indices, given.data
    elif all(hasattr(matrix, name) for name in ("indptr", "indices", "data", "shape")):
        offsets, columns, values = matrix.indptr, matrix.indices, matrix.data
        if not (is_there(offsets) and is_there(columns)):
            return None
    else:
        return None
    there = [held(array) for array in (offsets, columns, as_taken(values, "A"))]
    if any(one.dtype not in (np.int32, np.int64) for one in there[:2]) or there[0].dtype != there[1].dtype:
        return None
    if there[0].shape[0] != matrix.shape[0] + 1:
        raise UsageError(f"{there[0].shape[0]} offsets of {matrix.shape[0]} rows (n rows have n + 1). Pass whole arrays.")
    rows = _core.GpuRows(*(one.core() for one in there))
    if not rows.rises:
        return device_rows_of(_sorted(given, root))
    return DeviceRows(rows, f"{root}.{type(matrix).__name__} of {there[2].dtype}",
                      there[2].dtype == np.float32, there)


def copied_rows_of(rows: Rows, if_there_is_room: bool) -> Optional[DeviceRows]:
    """A copy on the first GPU of rows of the host. None: nothing is stored in them, or there is no room.

    BadInputError: columns that do not rise although the matrix says so; offsets or columns that lead nowhere.
    """
    copied = _core.copy_rows(*rows.arrays, if_there_is_room)
    if copied is not None and rows.pending is not None and not copied.rows.rises:
        del copied  # before another one takes as much
        rows = settled(rows)
        copied = _core.copy_rows(*rows.arrays, if_there_is_room)
    if copied is None:
        return None
    if copied.rows.rises:
        return DeviceRows(copied.rows, rows.kind, rows.single, copied)
    raise BadInputError("the columns of A do not rise inside each row although A says that they do "
                        "(has_canonical_format). Sort them, and sum duplicates.")


def _torch_csr(matrix: Any) -> Any:
    layout = str(matrix.layout)
    if "csr" in layout:
        return matrix
    return matrix.coalesce().to_sparse_csr() if "coo" in layout else matrix.to_sparse_csr()


def _cupy_csr(matrix: Any) -> Any:
    if root_of(matrix) == "cupyx":
        return matrix.tocsr()
    from cupyx.scipy import sparse

    return sparse.csr_matrix(matrix)


def _sorted(rows: Any, root: str) -> Any:
    """Other rows with the same entries, sorted and without duplicates, made on the GPU."""
    if root == "torch":
        return rows.to_sparse_coo().coalesce().to_sparse_csr()
    if root in ("cupy", "cupyx"):
        rows = rows.copy()
        rows.has_canonical_format = rows.has_sorted_indices = False  # whoever made them may have said so
        rows.sum_duplicates()
        return rows
    raise BadInputError("the columns of A do not rise inside each row (its arrays are read where they are, and nobody "
                        "sorts them there). Sort them, and sum duplicates.")


def warn_of_host(what: str, why: str) -> None:
    warn(f"{what} goes through the host's memory: {why}")

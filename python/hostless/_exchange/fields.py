"""Arrays that take part in exchanges: what is looked at before bytes of them travel."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

import numpy as np

from .. import _core
from .._device import GPUS, dense_strides, is_there, of_dlpack
from .._rows import root_of
from ..errors import UsageError, a_type, counted

#: What can be added, by NumPy's kind and bytes; integers wrap around, so a sign does not matter.
ELEMENTS = {("f", 4): "f32", ("f", 8): "f64", ("i", 4): "i32", ("i", 8): "i64", ("u", 4): "i32", ("u", 8): "i64"}
#: More bytes than any item has: kernels count them in 32 bits.
MOST_BYTES = 1 << 20


class Array(NamedTuple):
    """An array of items, where it lies."""

    keeps: Any  #: keeps the memory
    address: int
    shape: tuple
    kind: str  #: of its numbers, for people, and to compare with other ranks
    element_bytes: int
    element: Optional[str]  #: as what it can be added
    is_dense: bool
    is_writable: bool
    there: bool  #: in the memory of a GPU
    device: int  #: which, where its package says so; else -1
    strides: tuple  #: in bytes

    @property
    def item_shape(self) -> tuple:
        return self.shape[1:]


def array_of(thing: Any, what: str) -> Array:
    """TypeError: no array, or of the host's objects. UsageError: masked, or something that is computed when it is read."""
    there = is_there(thing)
    if root_of(thing) == "torch":
        return _of_torch(thing, what, there)
    return _of_gpu(thing, what) if there else _of_host(thing, what)


def _of_host(thing: Any, what: str) -> Array:
    if not isinstance(thing, np.ndarray):
        try:
            thing = np.asarray(memoryview(thing))
        except TypeError:
            raise TypeError(f"{what} is {a_type(thing)} (items are read and written where they lie). Pass an array "
                            "of NumPy, CuPy or torch.") from None
    if isinstance(thing, np.ma.MaskedArray):
        raise UsageError(f"{what} has a mask (every byte of it travels). Fill it first.")
    dtype = thing.dtype
    if dtype.hasobject:
        raise TypeError(f"{what} has the type {dtype} (addresses mean nothing on another rank). Pass numbers.")
    return Array(thing, thing.ctypes.data, thing.shape, _name_of(dtype), dtype.itemsize, _element_of(dtype),
                 thing.flags.c_contiguous, thing.flags.writeable, False, -1, thing.strides)


def _name_of(dtype: np.dtype) -> str:
    return str(dtype) if dtype.names is None else f"{dtype.itemsize} bytes of {', '.join(dtype.names)}"


def _element_of(dtype: np.dtype) -> Optional[str]:
    return ELEMENTS.get((dtype.kind, dtype.itemsize)) if dtype.isnative else None


def _of_torch(tensor: Any, what: str, there: bool) -> Array:
    if "strided" not in str(tensor.layout):
        raise UsageError(f"{what} is a tensor of the layout {tensor.layout} (its items do not lie side by side). Pass a "
                         "dense one.")
    if tensor.is_conj() or tensor.is_neg():
        raise UsageError(f"{what} is a view that conjugates or negates (its bytes are others). Resolve it first.")
    name = str(tensor.dtype).removeprefix("torch.")
    element = ELEMENTS.get((name[0], tensor.element_size())) if name[0] in "fiu" else None
    data = tensor.detach()
    device = data.device.index if there and data.device.index is not None else -1
    strides = tuple(stride * data.element_size() for stride in data.stride())
    # What autograd follows may not change behind its back.
    return Array(data, data.data_ptr(), tuple(data.shape), name, data.element_size(), element, data.is_contiguous(),
                 not tensor.requires_grad, there, device, strides)


def _of_gpu(array: Any, what: str) -> Array:
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None and root_of(array) == "cupy":  # on ROCm it has none
        interface = {"shape": array.shape, "typestr": array.dtype.str, "strides": array.strides,
                     "data": (array.data.ptr, False)}
    if interface is None:
        found = of_dlpack(array)
        interface = {"shape": found.shape, "typestr": found.dtype.str, "strides": found.strides,
                     "data": (found.address, False)}
        array = found.owner
    if interface.get("mask") is not None:
        raise UsageError(f"{what} has a mask (every byte of it travels). Fill it first.")
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if dtype.hasobject:
        raise TypeError(f"{what} has a type that DLPack does not name (how many bytes it has is not known). View it as "
                        "another one.")
    address, is_read_only = interface["data"]
    strides = tuple(interface.get("strides") or dense_strides(shape, dtype))
    device = getattr(getattr(array, "device", None), "id", -1)
    return Array(array, address or 0, shape, _name_of(dtype), dtype.itemsize, _element_of(dtype),
                 _is_dense(shape, strides, dtype.itemsize), not is_read_only, True, device if isinstance(device, int) else -1, strides)


def _is_dense(shape: tuple, strides: tuple, step: int) -> bool:
    if 0 in shape:
        return True
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def check_dense(array: Array, what: str, moved: str) -> None:
    """UsageError, unless its bytes lie as C has them. moved: what of it, and how, for people"""
    if array.is_dense:
        return
    shape, strides, step = array.shape, array.strides, array.element_bytes
    apart = [(abs(stride), size) for stride, size in zip(strides, shape) if size != 1]
    if not _is_dense(*zip(*((size, stride) for stride, size in sorted(apart, reverse=True))), step):
        matter = "has gaps between its " + moved.split()[0]
    elif any(stride < 0 for stride, size in zip(strides, shape) if size != 1):
        matter = "runs backwards in memory"
    else:
        matter = "is in Fortran order" if _is_dense(shape[::-1], strides[::-1], step) else "has its axes in another order than C"
    raise UsageError(f"{what} {matter} ({moved} as one piece of memory, the last axis fastest). Pass a C-contiguous array.")


def stream_of(given: Any) -> int:
    """The number of a stream: of CuPy, torch, Numba, or one with __cuda_stream__; a number is one already."""
    if isinstance(given, int) and not isinstance(given, bool):
        if not 0 <= given < 2**64:
            raise UsageError(f"stream = {given if abs(given) < 2**70 else 'a longer number'} (a stream's number is its handle, from 0 to 2^64 - 1). Pass the stream itself.")
        return given
    if hasattr(given, "__cuda_stream__"):
        protocol = given.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("ptr", "cuda_stream", "handle"):  # of CuPy, torch, Numba
        value = getattr(given, name, None)
        if value is not None:
            return int(getattr(value, "value", value) or 0)
    raise TypeError(f"stream is {a_type(given)} (a stream of CuPy, torch or Numba is meant, or its number). Pass one.")


def stream_in_use(arrays: list) -> int:
    """The stream that the packages of these arrays have in use now.

    UsageError: they have several, and nobody says which comes first.
    """
    streams = {}
    for array in arrays:
        stream = _stream_in_use(array)
        if stream is not None:  # 0 and 1 are the default stream
            streams.setdefault(stream if stream != 1 else 0, root_of(array))
    if len(streams) > 1:
        words = ", ".join(f"{root} {stream:#x}" for stream, root in streams.items())
        raise UsageError(f"the packages of these arrays have several streams in use: {words} (an exchange comes after what is "
                         "on one). Pass stream=, and let it wait for the others.")
    return next(iter(streams), 0)


def _stream_in_use(array: Any) -> Optional[int]:
    root = root_of(array)
    if root == "torch":
        import torch

        return torch.cuda.current_stream(array.device).cuda_stream
    if root == "cupy":
        import cupy

        return cupy.cuda.get_current_stream().ptr
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        # Before version 3 nobody says which stream; the default one waits for those that are not told otherwise.
        return interface.get("stream") if interface.get("version", 0) >= 3 else 0
    producer = array[0] if isinstance(array, tuple) else array  # of DLPack, with what keeps the memory
    if int(producer.__dlpack_device__()[0]) in GPUS:
        of_dlpack(producer)  # the producer makes the default stream wait
    return 0


class Fields(NamedTuple):
    """The fields of an exchange, as the extension module takes them."""

    words: list
    keeps: list  #: all arrays
    there: bool
    device: int
    same: str  #: what all ranks must have alike


class Whole(NamedTuple):
    """Of a plan whose ghosts are an array of their own: one array of owned items, then ghosts."""

    array: Any


def fields_of(fields: Any, plan: Any, adds: bool) -> Fields:
    """Looks at every array of an exchange. plan: of the extension module. adds: ghosts to their owners.

    TypeError, UsageError: with the number of the field, and the value.
    """
    if not isinstance(fields, (list, tuple)) or (not fields and (plan.items_sent or plan.items_received)):
        raise UsageError(f"fields={fields!r} (a list is meant: of pairs of arrays, owned and ghosts, or of arrays with ghosts "
                         "around). Pass at least one.")
    words, arrays, same = [], [], []
    for number, field in enumerate(fields):
        pair = _pair_of(field, number, plan, adds)
        for array, what, rows, writes in pair:
            _check(array, what, rows, writes)
        first, last = pair[0][0], pair[-1][0]
        _check_alike(first, last, number)
        words.append(_words_of(first, last, number, plan, adds))
        arrays += [array for array, *_ in pair]
        same.append(f"{first.kind}{list(first.item_shape)}")
    place = {array.there for array in arrays}
    if len(place) > 1:
        raise UsageError("fields in the memory of the processor and of a GPU (one exchange moves one kind). Make two "
                         "exchanges.")
    devices = [array.device for array in arrays if array.device >= 0]
    there = place == {True}
    where = "a GPU" if there else "the processor"
    return Fields(words, [array.keeps for array in arrays], there, devices[0] if devices else -1,
                  f"{'ghosts to add' if adds else 'ghosts to fill'} of {counted(len(words), 'field')} ({', '.join(same)}) in the memory of {where}")


def _pair_of(field: Any, number: int, plan: Any, adds: bool) -> list:
    """[(array, its name, its items, whether it is written)] of one field."""
    what = f"fields[{number}]"
    is_list = isinstance(field, (list, tuple))
    if plan.around:
        if is_list:
            raise UsageError(f"{what} is {counted(len(field), 'thing')} (ghosts lie around the owned items in this plan). Pass one array of "
                             f"{counted(plan.owned + plan.ghosts, 'item')}.")
        return [(array_of(field, what), what, plan.owned + plan.ghosts, True)]
    if isinstance(field, Whole):
        _check_items(array_of(field.array, "array"), "array", plan.owned + plan.ghosts)
        field, what = _parts_of(field.array, plan.owned), "array"
    elif not is_list or len(field) != 2:
        given = counted(len(field), "thing") if is_list else a_type(field)
        raise UsageError(f"{what} is {given} (ghosts are an array of their own in this plan). Pass (owned, ghosts).")
    return [(array_of(one, f"{what}, {name}"), f"{what}, {name}", items, writes)
            for one, name, items, writes in ((field[0], "owned", plan.owned, adds), (field[1], "ghosts", plan.ghosts, not adds))]


def _parts_of(array: Any, owned: int) -> tuple:
    """Own items and ghosts of an array that array_of takes."""
    if not (isinstance(array, np.ndarray) or root_of(array) == "torch" or is_there(array)):
        array = np.asarray(memoryview(array))  # its own slices may be copies, which nobody sees
    try:
        return array[:owned], array[owned:]
    except Exception:  # of any package's arrays
        raise TypeError(f"array is {a_type(array)} (it cannot be sliced into own items and ghosts). Pass an array of NumPy, "
                        "CuPy or torch, or move (owned, ghosts) by hostless.Exchange(exchange.plan, [(owned, ghosts)]).") from None


def _check_items(array: Array, what: str, items: int) -> None:
    if not array.shape or array.shape[0] != items:
        raise UsageError(f"{what} has the shape {array.shape} (its first axis is the item, and the plan has {items}). Pass "
                         f"({items},), or ({items}, k) for k values an item.")


def _check(array: Array, what: str, items: int, writes: bool) -> None:
    _check_items(array, what, items)
    check_dense(array, what, "items are read and written")
    if writes and not array.is_writable:
        raise UsageError(f"{what} is read-only, or autograd follows it (the exchange writes there). Pass an array that may be "
                         "written.")


def _check_alike(owned: Array, ghosts: Array, number: int) -> None:
    if (owned.kind, owned.item_shape) != (ghosts.kind, ghosts.item_shape):
        raise UsageError(f"fields[{number}]: owned items are {owned.kind}{list(owned.item_shape)}, ghosts "
                         f"{ghosts.kind}{list(ghosts.item_shape)} (a ghost is a copy of an item). Pass arrays of one type and "
                         "shape of items.")


def _words_of(owned: Array, ghosts: Array, number: int, plan: Any, adds: bool) -> Any:
    values = math.prod(owned.item_shape)
    words = _core.FieldWords()
    words.item_bytes = values * owned.element_bytes
    if not 1 <= words.item_bytes <= MOST_BYTES:
        raise UsageError(f"fields[{number}]: items of {words.item_bytes} bytes (1 to {MOST_BYTES} travel). Pass another array, or "
                         "leave the field out.")
    words.owned = owned.address + plan.below * words.item_bytes
    words.ghosts = words.owned if plan.around else ghosts.address
    if adds:
        if owned.element is None:
            raise UsageError(f"fields[{number}] has the type {owned.kind} (float32, float64, and integers of 4 and 8 bytes can be "
                             "added, of this machine's byte order). Convert it.")
        words.element, words.values = owned.element, values
    return words

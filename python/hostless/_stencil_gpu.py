"""Stencils of expressions over arrays of CuPy and torch in a GPU's memory: a kernel a step, compiled by NVRTC."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from ._device import is_there
from ._rows import check_apart, root_of
from ._stencil_expression import MOST_AXES, Program
from ._stencil_nvrtc import Driver, compiled
from ._stencil_numpy import change_of
from ._stencil_source import kernel_source_of
from .errors import UsageError, a_type

#: Kernels that are queued before somebody waits: clocks, signals and memory of the driver would be far behind.
QUEUED = 256


class OfCupy:
    """What is asked of the arrays' package."""

    def dtype(self, array: Any) -> np.dtype:
        return np.dtype(array.dtype)

    def strides(self, array: Any) -> tuple:
        return tuple(array.strides)

    def copy(self, array: Any) -> Any:
        return array.copy(order="C")

    def write(self, array: Any, values: Any) -> None:
        array[...] = values

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def to_host(self, array: Any) -> np.ndarray:
        return array.get()

    def stream(self, array: Any) -> int:
        import cupy  # pylint: disable=import-error

        return int(cupy.cuda.get_current_stream().ptr)

    def place(self, array: Any) -> Any:
        return array.device


class OfTorch(OfCupy):
    def dtype(self, array: Any) -> np.dtype:
        name = str(array.dtype).removeprefix("torch.")
        return np.dtype(name) if name in ("float32", "float64") else np.dtype(object)

    def strides(self, array: Any) -> tuple:
        return tuple(one * array.element_size() for one in array.stride())

    def copy(self, array: Any) -> Any:
        copy = array.detach().clone()
        return copy if copy.is_contiguous() else copy.contiguous()

    def write(self, array: Any, values: Any) -> None:
        array.detach().copy_(values)

    def address(self, array: Any) -> int:
        return int(array.data_ptr())

    def to_host(self, array: Any) -> np.ndarray:
        return array.cpu().numpy()

    def stream(self, array: Any) -> int:
        import torch  # pylint: disable=import-error

        return int(torch.cuda.current_stream(array.device).cuda_stream)


PACKAGES = {"cupy": OfCupy, "torch": OfTorch}


def arrays_of(fields: list, coefficients: list) -> tuple:
    """(the package, the arrays) of [(what, array)] that all lie on one GPU, fields and then coefficients, of one shape and type.

    UsageError, TypeError: they do not.
    """
    (first_name, first), *others = fields + coefficients
    if root_of(first) not in PACKAGES:
        raise UsageError(f"{first_name} is {a_type(first)} in the memory of a GPU (stencils step arrays of CuPy and torch there). Pass "
                         "one of them.")
    package = PACKAGES[root_of(first)]()
    dtype, shape = package.dtype(first), tuple(first.shape)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"{first_name} has the type {first.dtype} (cells are float32 or float64). Convert it.")
    if not 1 <= len(shape) <= MOST_AXES or 0 in shape:
        raise UsageError(f"{first_name} has the shape {shape} (arrays of 1 to {MOST_AXES} axes with a cell are stepped). Reshape it.")
    for what, other in others:
        if not is_there(other) or root_of(other) != root_of(first) or package.place(other) != package.place(first):
            raise UsageError(f"{what} and {first_name} are not arrays of one package on one GPU (a kernel reads them together). Move {what} there.")
        if package.dtype(other) != dtype or tuple(other.shape) != shape:
            raise UsageError(f"{what} is {other.dtype} of {tuple(other.shape)}, {first_name} {first.dtype} of {shape} (all arrays are alike). Convert it.")
    for k, (what, one) in enumerate(fields):
        check_apart(what, shape, package.strides(one), dtype.itemsize)
        for before, other in fields[:k]:
            if one is other or package.address(one) == package.address(other):
                raise UsageError(f"{before} and {what} share memory (each field is stepped in place). Pass a copy of one.")
    return package, [first, *(other for _, other in others)]


@functools.lru_cache(maxsize=64)
def _image(source: str, capability: tuple, what: str) -> bytes:
    return compiled(source, capability, what)


class Stepper:
    """As _stencil_numpy's, with fields that are the package's arrays."""

    def __init__(self, program: Program, package: Any, arrays: list, boundary: tuple, parameters: tuple, driver: Any):
        self.package, self.driver = package, driver
        count, shape, dtype = len(program.fields), tuple(arrays[0].shape), package.dtype(arrays[0])
        self.fields, self.spare = [package.copy(one) for one in arrays[:count]], [package.copy(one) for one in arrays[:count]]
        self.coefficients = [package.copy(one) for one in arrays[count:]]
        cell = ctypes.c_float if dtype == np.float32 else ctypes.c_double
        source = kernel_source_of(program, len(shape), dtype, boundary)
        self.function = driver.function(_image(source, driver.capability(), driver.what))
        inside = [n - 2 * r if word == "dirichlet" else n for n, r, word in zip(shape, program.radius(len(shape)), boundary)]
        self.threads = int(np.prod([max(n, 0) for n in inside]))
        self.extent = (ctypes.c_longlong * len(shape))(*shape)
        self.parameters = (cell * max(len(parameters), 1))(*parameters)
        self.queued = 0

    def next(self) -> list:
        new = self.spare
        if self.threads > 0:
            addresses = [self.package.address(one) for one in (*self.fields, *self.coefficients, *new)]
            stream = self.package.stream(new[0])
            self.driver.launch(self.function, self.threads, stream, [(ctypes.c_void_p * len(addresses))(*addresses), self.extent, self.parameters])
            self.queued += 1
            if self.queued % QUEUED == 0:
                self.driver.wait(stream)
        self.spare = self.fields
        return new

    def changed(self, old: list, new: list) -> tuple:
        """With the host's bits, on the host."""
        return change_of(*([self.package.to_host(one) for one in some] for some in (old, new)))

    def finite(self) -> bool:
        return all(np.isfinite(self.package.to_host(one)).all() for one in self.fields)


def stepper_of(program: Program, package: Any, arrays: list, boundary: tuple, parameters: tuple, what: str) -> Stepper:
    """Errors: MachineError (no NVRTC, no driver, a kernel that fails)."""
    return Stepper(program, package, arrays, boundary, parameters, Driver(what))

"""Right-hand sides of every kind, and answers of the same kind."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ._rows import as_doubles, check_numbers, root_of, to_numpy
from .errors import UsageError, counted


class Vectors:
    """One or several right-hand sides.

    columns  each a contiguous float64 vector of the processor
    like     makes of a NumPy array one of the kind that was given, in its place
    """

    def __init__(self, given: Any, rows: int, name: str):
        if hasattr(given, "toarray") and hasattr(given, "tocsr"):
            raise TypeError(f"{name} is sparse ({type(given).__name__}; every entry of a right-hand side is read). Pass "
                            f"{name}.toarray().")
        array = np.asarray(to_numpy(given))
        check_numbers(array.dtype, name)
        if not (array.ndim in (1, 2) and array.shape[0] == rows and array.size >= rows):
            turned = array.ndim == 2 and array.shape[1] == rows and array.shape[0] > 0
            raise UsageError(f"{name} has the shape {array.shape} (the matrix has {counted(rows, 'row')}). " +
                             (f"Pass {name}.T: a right-hand side is a column." if turned else
                              f"Pass ({rows},), ({rows}, 1), or ({rows}, k) for k right-hand sides."))
        self.shape = array.shape
        self.single = array.dtype == np.float32
        doubles = as_doubles(array, name)
        self.columns = [doubles] if array.ndim == 1 else [np.ascontiguousarray(column) for column in doubles.T]
        self.like = giver_of(given)

    def answer(self, columns: list, single: bool) -> Any:
        """Vectors of the processor in the kind, shape and place of what was given."""
        x = columns[0] if len(self.shape) == 1 else np.stack(columns, axis=1)
        return self.like(x.astype(np.float32) if single else x)


def joined(columns: list) -> np.ndarray:
    """Column after column; one alone as it is."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def giver_of(given: Any) -> Callable[[np.ndarray], Any]:
    """What turns a NumPy array into one like `given`."""
    root = root_of(given)
    if root == "torch":
        import torch
        return lambda x: torch.from_numpy(x).to(given.device)
    if root == "cupy":
        import cupy

        def give(x: np.ndarray) -> Any:
            with given.device:
                return cupy.asarray(x)
        return give
    if not isinstance(given, np.ndarray) and hasattr(given, "__array_namespace__"):
        space = given.__array_namespace__()
        return lambda x: space.asarray(x)
    return lambda x: x

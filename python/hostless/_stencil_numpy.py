"""Steps of stencils by slices of NumPy's, where nothing can be compiled: one rank, and the bits of the compiled function."""

from __future__ import annotations

import time
from typing import Any, Callable, Optional

import numpy as np

from ._stencil_expression import Program
from ._stencil_source import constant

#: The same functions by NumPy's names.
NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
         "atan2": "arctan2", "pow": "power", "negate": "negative", "not": "logical_not", "+": "add", "-": "subtract",
         "*": "multiply", "/": "divide", "&": "logical_and", "|": "logical_or", "<": "less", "<=": "less_equal", ">": "greater",
         ">=": "greater_equal", "==": "equal", "!=": "not_equal"}
MODES = {"neumann": "symmetric", "periodic": "wrap"}
#: Of the sum of a step's changes, as the compiled engine adds them: integers relative to the largest.
BITS = 60


class Stepper:
    """Arrays, and what they are after a step.

    arrays    fields, then coefficients, of one shape and type
    boundary  of each axis
    """

    def __init__(self, program: Program, arrays: list, boundary: tuple, parameters: tuple):
        self.program, self.boundary = program, boundary
        self.fields = [np.array(one, order="C") for one in arrays[:len(program.fields)]]
        dtype, shape = self.fields[0].dtype, self.fields[0].shape
        self.radius = program.radius(len(shape))
        # Cells that a step changes: beyond Dirichlet's ends all stay as given.
        self.inside = tuple(slice(r, max(n - r, r)) if kind == "dirichlet" else slice(0, n)
                            for r, n, kind in zip(self.radius, shape, boundary))
        self.padded = [self._pad(np.asarray(one)) for one in arrays[len(program.fields):]]
        self.parameters = [dtype.type(value) for value in parameters]
        self.numbers = {k: dtype.type(constant(step.value, dtype)) for k, step in enumerate(program.steps) if step.what == "number"}

    def _pad(self, array: np.ndarray) -> np.ndarray:
        for axis, (radius, kind) in enumerate(zip(self.radius, self.boundary)):
            if kind != "dirichlet" and radius:
                array = np.pad(array, [(radius, radius) if a == axis else (0, 0) for a in range(array.ndim)], mode=MODES[kind])
        return array

    def _read(self, array: np.ndarray, offsets: tuple) -> np.ndarray:
        slices = []
        for a, (inside, kind) in enumerate(zip(self.inside, self.boundary)):
            first = inside.start + (self.radius[a] if kind != "dirichlet" else 0) + (offsets[a] if offsets else 0)
            slices.append(slice(first, first + inside.stop - inside.start))
        return array[tuple(slices)]

    def next(self) -> list:
        """The fields after one step, in arrays of their own."""
        arrays = [self._pad(one) for one in self.fields] + self.padded
        values: list = []
        with np.errstate(all="ignore"):
            for k, step in enumerate(self.program.steps):
                operands = [values[one] for one in step.operands]
                if step.what == "number":
                    values.append(self.numbers[k])
                elif step.what == "parameter":
                    values.append(self.parameters[step.value])
                elif step.what == "read":
                    values.append(self._read(arrays[step.value[0]], step.value[1]))
                elif step.what == "where":
                    values.append(np.where(*operands))
                else:
                    values.append(getattr(np, NAMES.get(step.what, step.what))(*operands))
        made = [one.copy() for one in self.fields]
        for field, result in zip(made, self.program.results):
            field[self.inside] = values[result]
        return made

    def changed(self, old: list, new: list) -> tuple:
        return change_of(old, new)

    def finite(self) -> bool:
        return all(np.isfinite(one).all() for one in self.fields)


def change_of(old: list, new: list) -> tuple:
    """([fields] sqrt(sum (new - old)^2), [fields] max |new - old|) with the bits of the compiled engine: an exact sum."""
    norms, largest = [], []
    with np.errstate(all="ignore"):
        for before, after in zip(old, new):
            difference = after.astype(np.float64) - before.astype(np.float64)
            finite = bool(np.isfinite(difference).all())
            top = float(np.abs(difference).max()) if finite else float("nan")
            largest.append(top)
            norms.append(_norm(difference, top) if finite and top > 0 else top)
    return norms, largest


def _norm(difference: np.ndarray, top: float) -> float:
    exponent = int(np.frexp(top)[1])
    scaled = np.ldexp(difference, -exponent)
    squares = np.ldexp(scaled * scaled, BITS).astype(np.uint64).reshape(-1)
    total = (int((squares >> np.uint64(32)).sum()) << 32) + int((squares & np.uint64(0xFFFFFFFF)).sum())
    more = total.bit_length() - 53  # what a float holds, truncated as the engine does
    if more > 0:
        total = total >> more << more
    return float(np.ldexp(np.sqrt(np.ldexp(float(total), -BITS)), exponent))


def run(stepper: Any, give_back: Callable[[list], None], steps: int, every: int, tolerance: float,
        callback: Optional[Callable[[tuple], Any]], time_limit: Optional[float]) -> dict:
    """Steps, looks and endings as the compiled engine has them. give_back: writes the fields to where they came from; whatever
    ends the run, an exception too, it is called with the last complete step."""
    found: dict = {"status": "steps_done", "steps": 0, "history": [], "message": ""}
    began = time.monotonic()
    try:
        while found["steps"] < steps and found["status"] == "steps_done":
            old, new = stepper.fields, stepper.next()
            stepper.fields = new
            found["steps"] += 1
            if every and found["steps"] % every == 0:
                change = (found["steps"], *stepper.changed(old, new))
                found["history"].append(change)
                if not np.isfinite(change[1]).all():
                    found["status"] = "not_finite"
                elif tolerance > 0 and max(change[1]) <= tolerance:
                    found["status"] = "steady"
                if callback is not None:
                    give_back(stepper.fields)
                    if callback(change) and found["status"] == "steps_done":
                        found["status"], found["message"] = "aborted", f"the callback asked to stop after step {found['steps']}"
            late = time_limit is not None and time.monotonic() - began >= time_limit
            if late and found["status"] == "steps_done" and found["steps"] < steps:
                found["status"] = "aborted"
                found["message"] = f"the time limit of {time_limit:g} s was reached after step {found['steps']}"
    finally:
        give_back(stepper.fields)
    if found["status"] in ("steps_done", "aborted") and not stepper.finite():
        found["status"] = "not_finite"
    if found["status"] == "not_finite":
        found["message"] = (f"a field has NaN or infinity after step {found['steps']} (given so, or an unstable step). Look at the "
                            "initial arrays, or take smaller steps.")
    found["seconds"] = time.monotonic() - began
    return found

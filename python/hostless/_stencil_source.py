"""Operations of stencils as C++."""

from __future__ import annotations

import math
from typing import Callable

import numpy as np

from ._stencil_expression import COMPARISONS, ROUNDED, Program
from .errors import UsageError


def constant(value: float, dtype: np.dtype) -> float:
    """A number as the type of the cells has it. UsageError: it is beyond that type."""
    with np.errstate(over="ignore"):
        rounded = float(dtype.type(value))
    if math.isfinite(value) and not math.isfinite(rounded):
        raise UsageError(f"{value!r} is beyond {dtype} (it would be infinite there). Use float64 arrays, or a smaller number.")
    return rounded


def operations_of(program: Program, dtype: np.dtype, read: Callable[[int, tuple], str], parameters: str,
                  function: Callable[[str], str]) -> list:
    """Lines that compute t0, t1, ... of type T or bool, one for each operation, in C++.

    read        what an array's value at some offsets is called
    parameters  the array of them
    function    what the C library's function of that name is called, but for its suffix
    """
    suffix, lines = "f" if dtype == np.float32 else "", []
    for k, step in enumerate(program.steps):
        operands = [f"t{one}" for one in step.operands]
        kind = "bool" if step.what in ("&", "|", "not", *COMPARISONS.values()) else "T"
        if step.what == "number":
            text = f"{constant(step.value, dtype).hex()}{suffix}"
        elif step.what == "parameter":
            text = f"{parameters}[{step.value}]"
        elif step.what == "read":
            text = read(*step.value)
        elif step.what in ("negate", "not"):
            text = f"{'-' if step.what == 'negate' else '!'}{operands[0]}"
        elif step.what == "where":
            text = f"{operands[0]} ? {operands[1]} : {operands[2]}"
        elif len(step.operands) == 2 and step.what not in ROUNDED:
            text = f"{operands[0]} {step.what} {operands[1]}"
        else:
            text = f"{function('fabs' if step.what == 'abs' else step.what)}{suffix}({', '.join(operands)})"
        lines.append(f"      {kind} const t{k} = {text};")
    return lines


def source_of(program: Program, axes: int, dtype: np.dtype, layout: dict) -> str:
    """A CellFunction in C++ that needs no header.

    layout  where the members of CellBlock lie: the text fails to compile where its own say otherwise
    """
    of_cell = "float" if dtype == np.float32 else "double"
    radius = (program.radius(axes) + (0,))[:2] if axes == 3 else (program.radius(axes)[0] if axes == 2 else 0, 0)
    rows: dict = {}  # (array, a, b) of the first two axes of Grid: its number in CellBlock::in

    def read(array: int, offsets: tuple) -> str:
        a, b, c = ((0,) * (3 - axes) + (offsets or (0,) * axes))
        a, b = (b, 0) if axes == 2 else (a, b)
        row = (array * (2 * radius[0] + 1) + a + radius[0]) * (2 * radius[1] + 1) + b + radius[1]
        return f"r{rows.setdefault(row, row)}[i + {c}]" if c else f"r{rows.setdefault(row, row)}[i]"

    lines = operations_of(program, dtype, read, "p", lambda what: f"__builtin_{what}")
    pointers = [f"    T const* __restrict const r{row} = static_cast<T const*>(block.in[{row}]) + row * block.in_stride[{row}];"
                for row in sorted(rows)]
    outs = [f"    T* __restrict const o{f} = static_cast<T*>(block.out[{f}]) + row * block.out_stride;" for f in range(len(program.fields))]
    stores = [f"      o{f}[i] = t{result};" for f, result in enumerate(program.results)]
    checks = [f"static_assert(__builtin_offsetof(CellBlock, {name}) == {offset}, \"CellBlock is another one\");"
              for name, offset in layout.items()]
    return "\n".join([
        f"using T = {of_cell};",
        "struct CellBlock {", "  void* const* out;", "  void const* const* in;", "  long long const* in_stride;", "  long long out_stride;",
        "  long long rows, cells;", "  void const* parameters;", "};", *checks,
        "extern \"C\" void hostless_cells(CellBlock const& block) {",
        "  [[maybe_unused]] T const* const p = static_cast<T const*>(block.parameters);",
        "  for (long long row = 0; row < block.rows; ++row) {", *pointers, *outs,
        "#if defined(__clang__)", "#pragma clang loop vectorize(assume_safety)", "#elif defined(__GNUC__)", "#pragma GCC ivdep", "#endif",
        "    for (long long i = 0; i < block.cells; ++i) {", *lines, *stores, "    }", "  }", "}", ""])


def kernel_source_of(program: Program, axes: int, dtype: np.dtype, boundaries: tuple) -> str:
    """A kernel of CUDA (and HIP) that takes one step, a thread a cell: hostless_step(Arrays, Extent, Parameters) over arrays in C order.

    boundaries  a word for each axis: they are in the text. Of an axis that is dirichlet, cells that stay as given are no threads'
    """
    radius, names = program.radius(axes), "zyx"[3 - axes:]
    places: dict = {}  # (axis, offset): what a cell's number along that axis is called there

    def place(axis: int, offset: int) -> str:
        name = f"{names[axis]}_{'before' if offset < 0 else 'after'}_{abs(offset)}" if offset else names[axis]
        places.setdefault((axis, offset), name)
        return name

    def read(array: int, offsets: tuple) -> str:
        at = ""
        for axis, offset in enumerate(offsets or (0,) * axes):
            at = f"({at}) * n[{axis}] + {place(axis, offset)}" if at else place(axis, offset)
        return f"a.in[{array}][{at}]"

    lines = operations_of(program, dtype, read, "parameters.p", lambda what: what)
    fixed = [far if word == "dirichlet" else 0 for far, word in zip(radius, boundaries)]
    decoded = ["  long long left = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;"]
    for axis in reversed(range(axes)):
        cells = f"(n[{axis}] - {2 * fixed[axis]})"
        if axis > 0:
            decoded += [f"  long long const {names[axis]} = left % {cells} + {fixed[axis]};", f"  left /= {cells};"]
        else:
            decoded += [f"  long long const {names[axis]} = left + {fixed[axis]};", f"  if (left >= {cells}) return;"]
    for (axis, offset), name in places.items():
        if offset == 0:
            continue
        moved, text = f"{names[axis]} + {offset}", None
        if boundaries[axis] == "periodic":
            text = f"{moved} {'< 0' if offset < 0 else f'>= n[{axis}]'} ? {moved} {'+' if offset < 0 else '-'} n[{axis}] : {moved}"
        elif boundaries[axis] == "neumann":
            text = f"{moved} < 0 ? -1 - ({moved}) : {moved}" if offset < 0 else f"{moved} >= n[{axis}] ? 2 * n[{axis}] - 1 - ({moved}) : {moved}"
        decoded.append(f"  long long const {name} = {text or moved};")
    cell = read(0, ()).removeprefix("a.in[0]")
    return "\n".join([
        f"using T = {'float' if dtype == np.float32 else 'double'};",
        f"struct Arrays {{ T const* in[{len(program.fields) + len(program.coefficients)}]; T* out[{len(program.fields)}]; }};",
        f"struct Extent {{ long long n[{axes}]; }};", f"struct Parameters {{ T p[{max(len(program.parameters), 1)}]; }};",
        "extern \"C\" __global__ void hostless_step(Arrays const a, Extent const extent, Parameters const parameters) {",
        "  long long const* const n = extent.n;", *decoded, *(line[4:] for line in lines),
        *(f"  a.out[{f}]{cell} = t{result};" for f, result in enumerate(program.results)), "}", ""])

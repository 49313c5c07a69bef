"""Stencils one step at a time, a cell at a time, in Python's floats, and arrays of any axes as .npy files.

A float of Python is an IEEE double; for fp32 every operation is rounded to 32 bits once more, which gives what fp32 gives
(a double has more than twice its bits). Written from the formulas of docs/howto/run-a-stencil.md, not from the code.
"""

import itertools
import math
import struct


def fp32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def fp64(x):
    return x


ROUND = {"fp32": fp32, "fp64": fp64}
DEFAULTS = {"jacobi2d": {}, "jacobi3d": {}, "heat": {"k": 0.2}, "wave": {"k": 0.25}, "life": {},
            "gray_scott": {"diffusion_u": 0.16, "diffusion_v": 0.08, "feed": 0.035, "kill": 0.065}}


def inside(i, n, boundary):
    """Where the neighbour i of an axis of n cells is found."""
    if boundary == "periodic":
        return i % n
    if boundary == "neumann":
        return -1 - i if i < 0 else 2 * n - 1 - i if i >= n else i
    return i


def around(r, u, axes):
    """West and east, then north and south, then down and up."""
    def pair(axis):
        return r(u(axis, -1) + u(axis, 1))
    total = r(pair(axes - 1) + pair(axes - 2))
    return r(total + pair(0)) if axes == 3 else total


def cell(problem, r, axes, numbers, reads, diagonal):
    """The new values of one cell."""
    u = reads[0]
    here = u(0, 0)
    if problem == "jacobi2d":
        return [r(0.25 * around(r, u, axes))]
    if problem == "jacobi3d":
        return [r(around(r, u, axes) / 6.0)]
    if problem == "life":
        beside = sum(diagonal(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
        return [1.0 if beside == 3 or (beside == 2 and here == 1) else 0.0]

    def laplacian(field):
        return r(around(r, field, axes) - r(2.0 * axes * field(0, 0)))
    if problem == "heat":
        return [r(here + r(r(numbers["k"]) * laplacian(u)))]
    if problem == "wave":
        return [r(r(r(2.0 * here) - reads[1](0, 0)) + r(r(numbers["k"]) * laplacian(u))), here]
    v = reads[1](0, 0)
    reaction = r(r(here * v) * v)
    grown = r(r(r(r(numbers["diffusion_u"]) * laplacian(u)) - reaction) + r(r(numbers["feed"]) * r(1.0 - here)))
    killed = r(r(r(numbers["diffusion_v"]) * laplacian(reads[1])) + reaction)
    return [r(here + grown), r(v + r(killed - r(r(numbers["feed"] + numbers["kill"]) * v)))]


class Grid:
    """Fields of a shape, as lists with the last axis fastest."""

    def __init__(self, problem, shape, boundary, kind, fields, parameters=None):
        self.problem, self.shape, self.boundary = problem, shape, boundary
        self.round, self.fields = ROUND[kind], [list(map(ROUND[kind], field)) for field in fields]
        self.numbers = {**DEFAULTS[problem], **({"k": 0.15} if problem == "heat" and len(shape) == 3 else {}),
                        **(parameters or {})}

    def number(self, index):
        at = 0
        for i, n in zip(index, self.shape):
            at = at * n + i
        return at

    def step(self):
        old, axes = [list(field) for field in self.fields], len(self.shape)
        for index in itertools.product(*map(range, self.shape)):
            if any(kind == "dirichlet" and i in (0, n - 1) for i, n, kind in zip(index, self.shape, self.boundary)):
                continue

            def at(field, offsets, index=index):
                return old[field][self.number([inside(i + d, n, kind) for i, d, n, kind
                                               in zip(index, offsets, self.shape, self.boundary)])]

            def reader(field, at=at):
                return lambda axis, by: at(field, [by if a == axis else 0 for a in range(axes)])
            new = cell(self.problem, self.round, axes, self.numbers, [reader(f) for f in range(len(old))],
                       lambda dy, dx, at=at: at(0, (dy, dx)))
            for field, value in zip(self.fields, new):
                field[self.number(index)] = value
        return old

    def steps(self, count):
        for _ in range(count):
            self.step()
        return self.fields

    def change(self):
        """(norm, largest) of the next step, of each field."""
        old = self.step()
        changes = [[abs(new - before) for new, before in zip(*pair)] for pair in zip(self.fields, old)]
        return [math.sqrt(math.fsum(c * c for c in one)) for one in changes], [max(one) for one in changes]


def npy(values, shape, kind="fp64", fortran=False, descr=None):
    """The bytes of a .npy file; `values` have the last axis fastest."""
    letter = {"fp32": "f", "fp64": "d"}[kind]
    descr = descr or {"fp32": "<f4", "fp64": "<f8"}[kind]
    if fortran:
        indices = [tuple(reversed(one)) for one in itertools.product(*map(range, reversed(shape)))]
        strides = [math.prod(shape[a + 1:]) for a in range(len(shape))]
        values = [values[sum(i * s for i, s in zip(index, strides))] for index in indices]
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({', '.join(map(str, shape))}{',' * (len(shape) == 1)}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    order = ">" if descr[0] == ">" else "<"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"{order}{len(values)}{letter}", *values)


# ---- what a run begins with where no file says it

def mixed(number):
    """SplitMix64's finaliser."""
    mask = (1 << 64) - 1
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9 & mask
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb & mask
    return number ^ (number >> 31)


def initial(problem, shape):
    """The fields that `hostless stencil` begins with."""
    def middle(index):
        return [2 * i - (n - 1) for i, n in zip(index, shape)]

    def value(number, index, field):
        if problem == "heat":
            return float(all(abs(m) < (n + 2) // 3 for m, n in zip(middle(index), shape)))
        if problem == "wave":
            left = 1 - sum(float(m) * float(m) for m in middle(index)) / ((min(shape) / 2) * (min(shape) / 2))
            return (left * left) * (left * left) if left > 0 else 0.0
        if problem == "life":
            return float(mixed(number + 1) >> 61 < 3)
        if problem == "gray_scott":
            if any(abs(m) >= 20 for m in middle(index)):
                return 1.0 - field
            noise = (mixed(2 * number + field + 1) >> 11) * 2.0**-52 - 1
            return (0.25 if field else 0.5) * (1 + 0.01 * noise)
        return float(index[0] == 0)
    fields = 2 if problem in ("wave", "gray_scott") else 1
    return [[value(number, index, field) for number, index in enumerate(itertools.product(*map(range, shape)))]
            for field in range(fields)]

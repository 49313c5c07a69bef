"""Linear systems in PETSc's binary files: reading, writing, and judging an answer.

Python's standard library does all of it; numpy, where it is there, multiplies a hundred times faster.
"""

import array
import bisect
import contextlib
import itertools
import math
import os
import random
import sys

try:
    import numpy
except ImportError:  # small systems only
    numpy = None

MATRIX, VECTOR = 1211216, 1211214
SLAB = 1 << 24  # entries multiplied at a time: keeps the products out of the way of a matrix of a gigabyte


class Wrong(Exception):
    """Something that makes the comparison worthless; its text says what."""


def big_endian(numbers):
    """The same numbers for a file, or from one."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def read_numbers(file, kind, count):
    numbers = array.array(kind)
    try:
        numbers.fromfile(file, count)
    except (EOFError, ValueError):  # at a number's end, or inside one
        raise Wrong(f"{file.name}: ends too early (it was cut short). Write it again.") from None
    return big_endian(numbers)


def read_header(file, identity, words, what):
    header = read_numbers(file, "i", words)
    if header[0] != identity:
        raise Wrong(f"{file.name}: is no {what} of PETSc (class id {header[0]}). Give the right file.")
    return header


class Matrix:
    """A square sparse matrix by rows: offsets (rows + 1 numbers), columns, values."""

    def __init__(self, offsets, columns, values):
        self.offsets, self.columns, self.values = offsets, columns, values
        self.rows, self.nonzeros = len(offsets) - 1, len(values)

    @classmethod
    def read(cls, path):
        with open(path, "rb") as file:
            _, rows, columns, nonzeros = read_header(file, MATRIX, 4, "matrix")
            there, needed = os.fstat(file.fileno()).st_size, 16 + 4 * rows + 12 * nonzeros
            if rows != columns or rows < 1 or there != needed:
                raise Wrong(f"{path}: {rows} x {columns} with {nonzeros} entries in {there} bytes (a square one of "
                            f"{needed} bytes was expected). Write it again.")
            lengths = read_numbers(file, "i", rows)
            if min(lengths) < 1 or sum(lengths) != nonzeros:
                raise Wrong(f"{path}: its rows do not fit its header (or one is empty). Write it again.")
            offsets = array.array("q", itertools.accumulate(lengths, initial=0))
            return cls(offsets, read_numbers(file, "i", nonzeros), read_numbers(file, "d", nonzeros))

    def slabs(self, most=None):
        """Ranges of rows with at most that many entries (SLAB), or one row."""
        begin = 0
        while begin < self.rows:
            end = max(begin + 1, bisect.bisect_right(self.offsets, self.offsets[begin] + (most or SLAB)) - 1)
            yield begin, end
            begin = end

    def times(self, x):
        """A x, as an array.array."""
        if numpy is None:
            return array.array("d", (math.fsum(self.values[k] * x[self.columns[k]] for k in range(begin, end))
                                     for begin, end in itertools.pairwise(self.offsets)))
        offsets, columns, values, x = map(numpy.asarray, (self.offsets, self.columns, self.values, x))
        product = numpy.empty(self.rows)
        for begin, end in self.slabs():
            of_slab = slice(offsets[begin], offsets[end])
            product[begin:end] = numpy.add.reduceat(values[of_slab] * x[columns[of_slab]],
                                                    offsets[begin:end] - offsets[begin])
        return array.array("d", product.tobytes())


def read_vector(path, rows):
    with open(path, "rb") as file:
        _, count = read_header(file, VECTOR, 2, "vector")
        if count != rows:
            raise Wrong(f"{path}: {count} numbers (the matrix has {rows} rows). Give the vector of this matrix.")
        return read_numbers(file, "d", count)


@contextlib.contextmanager
def whole(path):
    """A file to write whole or not at all, so that a run that was ended leaves nothing for the next one to trust."""
    partial = f"{path}.partial"
    with open(partial, "wb") as file:
        yield file
    os.replace(partial, path)


def write_vector(path, numbers):
    with whole(path) as file:
        big_endian(array.array("i", (VECTOR, len(numbers)))).tofile(file)
        big_endian(array.array("d", numbers)).tofile(file)


def norm(numbers):
    return math.sqrt(math.fsum(v * v for v in numbers))


def manufactured_solution(rows, seed=1):
    """x* uniform in [-1, 1], normalised (Trotter et al. 2025, section 4.1.4; docs/references.md)."""
    generator = random.Random(seed)
    x = [generator.uniform(-1.0, 1.0) for _ in range(rows)]
    length = norm(x)
    return array.array("d", (v / length for v in x))


class Judge:
    """A matrix, b = A x* and x*: what all contestants solve and one place measures them by."""

    def __init__(self, matrix, seed=1):
        self.matrix = matrix
        self.solution = manufactured_solution(matrix.rows, seed)
        self.rhs = matrix.times(self.solution)
        self.rhs_norm = norm(self.rhs)

    def residual(self, x):
        """|b - A x| / |b|"""
        return norm(b - ax for b, ax in zip(self.rhs, self.matrix.times(x))) / self.rhs_norm

    def error(self, x):
        """|x - x*| / |x*|; x = 0 has 1, and in CG it falls with every iteration."""
        return norm(a - b for a, b in zip(x, self.solution)) / norm(self.solution)

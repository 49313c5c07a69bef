"""The files that other solvers read and write: Matrix Market, aCG's binary form of it, and the answers of both.

aCG's form is what its mtx2bin writes and its --binary reads (ParCoreLab/aCG 1.0): the first line and the size line of
Matrix Market, each ended by a newline, and then, without anything between them and in the machine's byte order,

  the rows of all entries, from 1 on: integers of 4 bytes, or of 8 where aCG was built with IDXSIZE=64
  their columns, likewise
  their values: doubles

A vector is "vector array real general", a line with its length, and the doubles. Matrices are called symmetric and hold
their lower triangle.
"""

import array
import itertools
import pathlib
import re

import linear_system
from linear_system import Wrong, whole

MATRIX_LINE = b"%%MatrixMarket matrix coordinate real symmetric\n"
BANNER = re.compile(r"^%%MatrixMarket (?:matrix|vector) array real general[^\n]*\n", re.I | re.M)
TEXT_SLAB = 1 << 19  # entries written at a time: their text takes some 30 bytes each
INTEGERS = {4: "i", 8: "q"}


def slab_of_lower_triangle(matrix, begin, end):
    """Rows, columns (from 1 on) and values of the entries on and below the diagonal in rows [begin, end)."""
    offsets, columns, values = matrix.offsets, matrix.columns, matrix.values
    first, last = offsets[begin], offsets[end]
    numpy = linear_system.numpy
    if numpy is None:
        rows = [row for row in range(begin, end) for _ in range(offsets[row], offsets[row + 1])]
        kept = [(row + 1, column + 1, value) for row, column, value
                in zip(rows, columns[first:last], values[first:last]) if column <= row]
        return tuple(map(list, zip(*kept))) if kept else ([], [], [])
    rows = numpy.repeat(numpy.arange(begin, end), numpy.diff(numpy.asarray(offsets[begin:end + 1])))
    there = numpy.asarray(columns)[first:last]
    kept = there <= rows
    return rows[kept] + 1, there[kept] + 1, numpy.asarray(values)[first:last][kept]


def lower_triangle(matrix, entries_at_a_time=None):
    """That of the whole matrix, some rows at a time."""
    for begin, end in matrix.slabs(entries_at_a_time):
        yield slab_of_lower_triangle(matrix, begin, end)


def on_diagonal(rows, columns):
    if linear_system.numpy is None:
        return sum(row == column for row, column in zip(rows, columns))
    return int((rows == columns).sum())


def header(matrix):
    """The two lines before the entries. Both triangles must be as large, since one of them is left out."""
    stored = diagonal = 0
    for rows, columns, _ in lower_triangle(matrix):
        stored += len(rows)
        diagonal += on_diagonal(rows, columns)
    if 2 * stored - diagonal != matrix.nonzeros:
        raise Wrong(f"a matrix of {matrix.nonzeros} entries with {stored} on and below its diagonal (it is not symmetric, "
                    "and the files for rivals hold one triangle). Give a symmetric one.")
    return MATRIX_LINE + f"{matrix.rows} {matrix.rows} {stored}\n".encode()


def plain(numbers):
    """A list of Python's own numbers, whose repr has all digits and no type."""
    return numbers.tolist() if hasattr(numbers, "tolist") else numbers


def put(file, kind, numbers):
    """In the machine's byte order."""
    if hasattr(numbers, "astype"):
        file.write(numbers.astype(kind).tobytes())
    else:
        array.array(kind, numbers).tofile(file)


def write_market(path, matrix):
    with whole(path) as file:
        file.write(header(matrix))
        for slab in lower_triangle(matrix, TEXT_SLAB):
            entries = zip(*map(plain, slab))
            file.write("".join(f"{row} {column} {value!r}\n" for row, column, value in entries).encode())


def write_acg(path, matrix, index_bytes=4):
    if index_bytes == 4 and matrix.rows > 0x7FFFFFFF:
        raise Wrong(f"{matrix.rows} rows (integers of 4 bytes do not count so far). Use the form of 8 bytes.")
    with whole(path) as file:
        file.write(header(matrix))
        for which, kind in enumerate((INTEGERS[index_bytes], INTEGERS[index_bytes], "d")):
            for slab in lower_triangle(matrix):
                put(file, kind, slab[which])


def write_market_vector(path, numbers):
    with whole(path) as file:
        file.write(f"%%MatrixMarket matrix array real general\n{len(numbers)} 1\n".encode())
        for begin in range(0, len(numbers), TEXT_SLAB):
            file.write("".join(f"{value!r}\n" for value in numbers[begin:begin + TEXT_SLAB]).encode())


def write_acg_vector(path, numbers):
    with whole(path) as file:
        file.write(f"%%MatrixMarket vector array real general\n{len(numbers)}\n".encode())
        array.array("d", numbers).tofile(file)


def has_vector(text):
    """Whether what a rival has printed holds a vector, as aCG prints x."""
    return BANNER.search(text) is not None


def market_vector(text, rows, where):
    """The numbers of an array in Matrix Market's text, behind whatever was printed before it."""
    begin = BANNER.search(text)
    if begin is None:
        raise Wrong(f"{where}: neither a vector of PETSc nor an array of Matrix Market. Write x as one of them.")
    lines = (line for line in text[begin.end():].splitlines() if line.strip() and not line.startswith("%"))
    size = next(lines, "").split()
    if size not in ([str(rows)], [str(rows), "1"]):
        raise Wrong(f"{where}: an array of size '{' '.join(size)}' (the matrix has {rows} rows). Give the x of this matrix.")
    try:
        numbers = array.array("d", map(float, itertools.islice(lines, rows)))
    except ValueError as why:
        raise Wrong(f"{where}: a line that is no number ({why}). Write x again.") from None
    if len(numbers) != rows:
        raise Wrong(f"{where}: {len(numbers)} numbers instead of {rows} (it was cut short). Write x again.")
    return numbers


def read_answer(path, rows):
    """x as a rival left it: PETSc's bytes or Matrix Market's text."""
    with open(path, "rb") as file:
        start = file.read(2)
    if start == b"%%":
        return market_vector(pathlib.Path(path).read_text(encoding="latin-1"), rows, path)
    return linear_system.read_vector(path, rows)

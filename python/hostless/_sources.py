"""Matrices that are generated or read, plans of exchanges, and what this machine has."""

from __future__ import annotations

import html
import json
import os
import subprocess
from typing import Any, Optional

import numpy as np

from . import _core
from ._checks import check_ranks, check_square, file_name
from ._options import set_options
from ._rows import as_doubles, is_array, is_operator, real, rows_of, small, to_numpy, whole, word
from .errors import BadInputError, MachineError, UsageError, a_type


def problems() -> list:
    """Kinds that `generate` knows: shapes and coefficients of any size."""
    return list(_core.problem_names())


def presets() -> list:
    """Sizes and classes of matrices that papers measure, for `generate`."""
    return list(_core.preset_names())


def generate(name: str, size: Any = (), *, scale: Optional[float] = None, contrast: Optional[float] = None,
             boundary: str = "", long_edges: Optional[float] = None, time_step: Optional[float] = None,
             seed: int = 1) -> Any:
    """A generated matrix as scipy.sparse.csr_array, symmetric bit for bit; the same as `hostless generate` makes.

    name        one of problems() or presets()
    size        nodes in each direction, a number or up to three; of kinds
    scale       about this share of the rows, in (0, 1]; of presets
    contrast    spread of the coefficients; 1 makes them constant
    boundary    "standard", "dirichlet" or "neumann"
    long_edges  of circuit; time_step: of monodomain
    Errors: UsageError. Cost: 25 to 250 million entries a second, one thread.
    """
    sides = [whole(side, "size") for side in ([size] if np.ndim(size) == 0 else size)]
    for value, what in [(side, "size") for side in sides] + [(whole(seed, "seed"), "seed")]:
        if not 0 <= value < 2**63:
            raise UsageError(f"{what}={value!r} (it is from 0 to 2^63 - 1). Correct it.")
    numbers = [None if value is None else real(value, what) for what, value in
               (("scale", scale), ("contrast", contrast), ("long_edges", long_edges), ("time_step", time_step))]
    return _csr(_core.generate(word(name, "name"), sides, *numbers, word(boundary, "boundary"), seed))


def _csr(arrays: tuple) -> Any:
    from scipy.sparse import csr_array

    offsets, columns, values = arrays
    rows = len(offsets) - 1
    matrix = csr_array((values, columns, offsets), shape=(rows, rows))
    matrix.has_canonical_format = True
    return matrix


def read(path: Any) -> Any:
    """A matrix (scipy.sparse.csr_array) from Matrix Market, plain or gz, PETSc binary or scipy's .npz; or a vector (NumPy)
    from a Matrix Market array, .npy or PETSc binary; of several columns it has the shape (n, k). Told apart by content.

    Errors: BadInputError, with file and line where it has lines; also for a file that cannot be opened or read.
    """
    path = file_name(path)
    shape = _core.vector_shape(path)
    if shape is None:
        return _csr(_core.read_rows(path))
    values = _core.read_entries(path, *shape)
    return values if shape[1] == 1 else np.ascontiguousarray(values.reshape(shape[::-1]).T)


def write(path: Any, thing: Any) -> None:
    """Writes a matrix (.mtx, .petsc), or a vector or a NumPy array (n, k) of several (.npy, .mtx; one: .petsc); the ending
    says how. A matrix as an array of (n, n) is written as a matrix, but to .npy.

    Whole numbers that float64 does not hold are rounded, with a warning.

    Errors: UsageError (another ending or shape, not square, no entries to .mtx), BadInputError (NaN, infinity), TypeError (complex
    numbers, no matrix and no array), MachineError (the disk).
    """
    path = file_name(path)
    array = None if hasattr(thing, "tocsr") else np.asarray(to_numpy(thing)) if is_array(thing) else None
    if array is not None and (array.ndim == 1 or array.ndim == 2 and array.shape[1] > 0 and
                              (array.shape[0] != array.shape[1] or path.endswith(b".npy"))):
        columns = 1 if array.ndim == 1 else array.shape[1]
        _core.write_entries(path, _finite(as_doubles(array.T, "a vector to write").reshape(-1), columns), columns)
        return
    if array is not None and (array.ndim not in (1, 2) or array.ndim == 2 and array.shape[1] == 0):
        raise UsageError(f"an array of the shape {array.shape} to write (a vector is (n,), several are (n, k), a matrix is (n, n)). "
                         "Reshape it.")
    if array is None and not hasattr(thing, "shape"):
        raise TypeError(f"{a_type(thing)} to write (a matrix or an array is meant). Pass one.")
    if not path.endswith((b".mtx", b".petsc")):
        raise UsageError(f"output '{os.fsdecode(path)}' (its ending decides the format). Use .mtx or .petsc.")
    rows = rows_of(thing, what="what to write", others="")
    check_square(rows.shape)
    _finite(rows.values)
    _core.write_rows(path, *rows.arrays, path.endswith(b".petsc"), _core.mirror(*rows.arrays) is None)


def _finite(values: np.ndarray, columns: int = 1) -> np.ndarray:
    """What `read` takes back; of several columns one after the other."""
    good = np.isfinite(values)
    if not good.all():
        first = int(np.argmin(good))
        column, row = divmod(first, len(values) // columns)
        where = f"entry {first + 1}" if columns == 1 else f"row {row + 1} of column {column + 1}"
        raise BadInputError(f"{where} is {values[first]} (files of NaN or infinity are not read). Write finite numbers.")
    return values


class Plan:
    """What the ranks of a matrix would exchange in every iteration; nothing is solved.

    summary    the dict that `hostless plan --json` writes: ranks, nodes, route, totals and each rank's share
    table      the same for people
    traffic    NumPy array [ranks, ranks]: items (8 bytes each) that a rank sends to another one in an exchange
    partition, block  what was chosen, and why
    """

    def __init__(self, given: tuple, ranks: int):
        text, self.table, self.partition, self.block, complaints, traffic = given
        self._text = text
        self.summary = json.loads(text)
        self.traffic = np.asarray(traffic).reshape(ranks, ranks)
        if complaints:
            raise BadInputError("the plan is wrong, which is an error of hostless: " + " ".join(complaints))

    def to_json(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<hostless.Plan\n{self.table}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.table)}</pre>"


def plan(A: Any, *, ranks: int = 2, partition: str = "auto", route: str = "auto", block: int = 0, slices: int = 0,
         row_lanes: int = 1, ranks_per_node: int = 0, seed: int = 1, machine: Any = None, memory: str = "host") -> Plan:
    """The exchange plan of a matrix on so many ranks, proven by the checker; needs neither MPI nor GPUs.

    A               as for hostless.Matrix, but none of those and no LinearOperator: the entries are needed
    ranks           that share the rows, contiguously as `hostless plan` deals them out
    partition, route, block, ranks_per_node, seed  as options of hostless.Matrix (docs/options.md)
    slices, row_lanes  are checked as a matrix checks them and change no exchange: they are of the sweep
    machine         a name of `hostless machine list`, or a machine file: the exchange is priced there by every route, in
                    `summary["prices"]` and `table`, and route "auto" takes the cheapest
    memory          where the items lie there: "host", or "gpu", sent from there or by the host

    Errors: UsageError; BadInputError, also where the machine has no data of messages.
    """
    if is_operator(A) and not isinstance(A, np.ndarray):
        raise UsageError(f"a plan of {a_type(A)} (its entries say who reads what, and it shows none). Pass the matrix.")
    rows = rows_of(A, others="")
    check_square(rows.shape)
    if memory not in ("host", "gpu"):
        raise UsageError(f"memory={memory!r} (items lie in one of two). Use \"host\" or \"gpu\".")
    if machine is None and memory != "host":
        raise UsageError(f"memory={memory!r} without a machine (nothing would be priced). Name one with machine=.")
    if not isinstance(machine, (str, bytes, os.PathLike, type(None))):
        raise TypeError(f"machine is {a_type(machine)} (the name of a machine, or a path). Pass a text.")
    where = "" if machine is None else os.fsdecode(machine)
    if machine is not None and not where:
        raise UsageError("machine='' (no machine has an empty name). Give a name of `hostless machine list`, or a file.")
    choices = _core.Choices()
    set_options(choices, dict(partition=partition, route=route, block=block, slices=slices, row_lanes=row_lanes,
                              ranks_per_node=ranks_per_node, seed=seed))
    check_ranks(small(ranks, "ranks"), "the rows of a plan lie on one or more", "are planned for at once). Plan for fewer.")
    return Plan(_core.plan(*rows.arrays, choices, ranks, where, memory == "gpu"), ranks)


def command() -> str:
    """The path of the `hostless` command that came with the package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostless")


def doctor(seconds: float = 0.1, prove: bool = False) -> dict:
    """This machine as `hostless doctor --json` describes it: cores, bandwidth, transports, MPI and GPU libraries, and
    what is missing.

    seconds  of each bandwidth measurement; prove: moves data between every two GPUs and looks at it there
    Errors: MachineError (the command cannot be run).
    """
    words = [command(), "doctor", "--seconds", str(seconds), "--json", "-"] + (["--prove"] if prove else [])
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as problem:
        raise MachineError(f"{words[0]}: {problem.strerror} (it looks at the machine). Install the package again.")
    if said.returncode != 0:
        raise MachineError(said.stderr.strip() or f"{words[0]} ended with {said.returncode}.")
    return json.loads(said.stdout)

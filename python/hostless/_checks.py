"""What is looked at before anything is laid out or solved."""

from __future__ import annotations

import operator
import os
from typing import Any, Optional

from . import _core
from ._device import DeviceRows, DeviceVectors
from ._rows import Rows, small
from .errors import AbortedError, BadInputError, MachineError, PeerLostError, UsageError, a_type, counted, warn

#: A mirror may differ by this much of the entries' size: rounding, not a mistake.
ROUNDING = 1e-9
#: The same where A was float32.
SINGLE_ROUNDING = 1e-5
#: How ranks reach each other: threads of this process, or processes of a communicator.
TRANSPORTS = ("threads", "mpi", "composite")
OPERATOR_ALONE = ("a LinearOperator on several ranks, a GPU or a communicator (it is one function of the host). Use "
                  "ranks=1, or pass the matrix.")


_told = False  # of variables that nothing asks for, once a process


def check_environment() -> None:
    """Refuses variables of hostless that would be ignored, and warns of those that look like one of them."""
    global _told
    _core.check_environment()
    if not _told:
        _told = True
        for one in _core.unknown_variables():
            warn(one)


def file_name(path: Any) -> bytes:
    """Of a file, whatever bytes it has: names need not be text."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise UsageError("embedded null byte in a path (the system's names end there). Correct it.")
    return name


def gpus_of(gpus: Any) -> int:
    """How many GPUs are meant by a number, "all", or a list of the first ones."""
    if gpus is None:
        return 0
    if isinstance(gpus, str):
        if gpus != "all":
            raise UsageError(f"gpus={gpus!r} (a number, \"all\" or a list is meant). Use one of them.")
        return max(_core.visible_gpus(), 1)  # one that is not there is an error with its reason
    if isinstance(gpus, (list, tuple, range)):
        if list(gpus) != list(range(len(gpus))):
            raise UsageError(f"gpus={list(gpus)} (ranks take the GPUs that are visible in turn, from 0 on). Choose "
                             "them by CUDA_VISIBLE_DEVICES, and say how many.")
        gpus = len(gpus)
    count = small(gpus, "gpus")
    if count < 0:
        raise UsageError(f"gpus={count} (there cannot be fewer than none). Use 0 or more.")
    visible = _core.visible_gpus() if count else 0
    if 0 < visible < count:  # without one, whoever needs it says why there is none
        raise MachineError(f"gpus={count} (this machine shows {visible}). Use gpus={visible}.")
    return count


def asymmetry_of(rows: Rows, allowed: float) -> str:
    """Compares every entry with its mirror. allowed: as a share of their size; below 0: nobody looks.

    Which entry is further from it than rounding explains; empty: none. Warns where only rounding does.
    """
    mirror = _core.mirror(*rows.arrays) if allowed >= 0 else None
    return _judge_mirror(allowed, *mirror) if mirror is not None else ""


def asymmetry_there(rows: DeviceRows, allowed: float) -> tuple:
    """The same of values in a GPU's memory, compared there: (whether all have the bits of their mirrors, which has not)."""
    same_bits, *mirror = rows.rows.mirror
    return same_bits, _judge_mirror(allowed, *mirror) if mirror[0] > 0 and allowed >= 0 else ""


def refuse_asymmetry(where: str) -> None:
    """BadInputError: there is one, for a method that needs A = A'."""
    if where:
        raise BadInputError(f"the matrix is not symmetric: {where} (the method needs A = A'). Store both triangles, or use a "
                            "method for others, like bicgstab.")


def symmetry_tolerance(single: bool) -> float:
    """How far entries may be from their mirrors, as a share of their size."""
    return SINGLE_ROUNDING if single else ROUNDING


def _judge_mirror(allowed: float, difference: float, row: int, column: int, value: float, other: float) -> str:
    where = f"A[{row}, {column}] = {value!r} and A[{column}, {row}] = {other!r}"
    if difference > allowed:
        return where
    warn(f"the matrix is symmetric only up to rounding: {where}. Use (A + A.T) / 2 to be sure.")
    return ""


def check_square(shape: tuple) -> None:
    if len(shape) != 2:
        raise UsageError(f"A has the shape {tuple(shape)} (expected 2-D: it is a matrix). Pass a square matrix.")
    if shape[0] != shape[1]:
        raise UsageError(f"A has the shape {tuple(shape)} (a system has as many equations as unknowns). Pass a square "
                         "matrix.")
    if shape[0] == 0:
        raise UsageError("A has no rows (there is nothing to solve for). Pass a matrix with one or more.")


def check_ranks(ranks: int, why_one: str = "a matrix needs one to lie on",
                most: str = "threads of one machine are started). Use fewer, or comm.") -> None:
    """why_one: why none is too few; most: what there cannot be more of, and what to do."""
    if ranks < 1:
        raise UsageError(f"ranks={ranks} ({why_one}). Use 1 or more.")
    if ranks > _core.MOST_RANKS:
        raise UsageError(f"ranks={ranks} (at most {_core.MOST_RANKS} {most}")


def check_transport(transport: str, comm: Any, row_range: Any, ranks: Optional[int], gpus: int,
                    oversubscribe: bool) -> None:
    """ranks: None where not given."""
    if comm is not None:
        if transport not in (*TRANSPORTS, "processes"):
            raise UsageError(f"transport={transport!r} (unknown). Use 'mpi' or 'composite' with comm, or leave it out.")
        if transport not in TRANSPORTS or ranks is not None:
            raise UsageError("ranks or a transport together with comm are refused (its processes are the ranks). Drop them.")
        return
    if ranks is not None:
        check_ranks(ranks)
    if gpus and ranks not in (None, gpus) and not (oversubscribe and ranks > gpus):
        raise UsageError(f"{counted(ranks, 'rank')} on {counted(gpus, 'GPU')} (each rank has one "
                         "of its own). Leave ranks out.")
    if row_range is not None:
        raise UsageError("row_range without comm is refused (a matrix of one process has all its rows). Pass comm=, or drop it.")
    if transport in ("mpi", "composite"):
        raise UsageError(f"transport={transport!r} without a communicator is refused (it says who the ranks are). Pass comm=.")
    if transport != "threads":
        raise UsageError(f"transport={transport!r} (ranks of a Python process are its threads). Use 'threads', comm= "
                         "with mpi4py, or the command `hostless solve --transport processes`.")


def first_row_of(row_range: Any, rows: int) -> int:
    """Where a process's rows begin in the whole matrix.

    UsageError: `row_range` is no (first, last) of so many rows.
    """
    try:
        first, last = (operator.index(one) for one in row_range)
        if isinstance(row_range, (dict, set)) or last - first != rows or not -2**63 <= first < 2**63:
            raise ValueError
    except (TypeError, ValueError):
        raise UsageError(f"{counted(rows, 'row')} for row_range={row_range} (it says which of the whole matrix they are). Pass (first, "
                         "last), with last - first rows in A.") from None
    return first


def check_communicator(comm: Any) -> None:
    if isinstance(comm, _core.Ranks):
        raise UsageError("comm is one that hostless.run_threads hands out (the ranks of a matrix are threads of its own). Pass the whole "
                         f"matrix once, with ranks={comm.size} and without comm, or a communicator of mpi4py.")
    if not hasattr(comm, "py2f") or not hasattr(comm, "Is_inter"):
        raise UsageError(f"comm is {a_type(comm)} (a communicator of mpi4py is meant). Pass MPI.COMM_WORLD.")
    from mpi4py import MPI

    if not MPI.Is_initialized() or MPI.Is_finalized():
        raise UsageError("MPI is not running (it has been finalised, or never begun). Call before MPI.Finalize().")
    if comm == MPI.COMM_NULL:
        raise UsageError("comm is MPI.COMM_NULL (no process belongs to it: it was freed, or split without this one). Pass a "
                         "communicator that has this process.")
    if comm.Is_inter():
        raise UsageError("comm is an intercommunicator (its two groups have no ranks in common). Pass comm.Merge().")


def vendor_of(comm: Any) -> str:
    check_communicator(comm)
    from mpi4py import MPI

    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise UsageError("MPI was initialised for one thread (hostless calls it from one of its own). Leave "
                         "mpi4py.rc.thread_level at 'multiple' or 'serialized'.")
    vendor = _core.mpi_vendor()
    if vendor is None:
        raise UsageError("the MPI of this process is not known. Set HOSTLESS_MPI to openmpi or mpich.")
    return vendor


def check_as_many(guesses: list, vectors: Any) -> None:
    if len(guesses) != len(vectors.columns):
        raise UsageError(f"{counted(len(guesses), 'column')} of x0 for {len(vectors.columns)} of b (each is solved from its own). "
                         "Pass as many.")


def check_at_once(vectors: Any, choices: Any, function: Any, callback: Any) -> None:
    """UsageError: several columns at once are asked for by number, with what is of one alone."""
    if min(choices.rhs_columns, len(vectors.columns)) == 1:
        return
    what = ("M" if function else "a callback" if callback is not None else
            "vectors that stay in a GPU's memory" if isinstance(vectors, DeviceVectors) else choices.one_by_one)
    if what:
        raise UsageError(f"rhs_columns={choices.rhs_columns} with {what} is refused (that is of one right-hand side at a time). Leave "
                         "rhs_columns out: columns are then solved one by one.")


def check_ended(report: Any) -> None:
    """Endings that leave no answer. Where time was up there is the x of the last iteration; of files that were not written it warns."""
    if report.status == "peer_lost":
        raise PeerLostError(report.message or "a rank was lost (nothing can be solved without it). See its message.")
    if report.status == "aborted" and not report.message.startswith("the time limit"):
        raise AbortedError(f"{report.message.rstrip('.') or 'another rank asked to stop'} (the solve ended without an answer on all "
                           "ranks). See its message.")
    for problem in report.unwritten:
        warn(f"{problem} x is returned all the same.")


def kind_of(problem: BaseException) -> str:
    """The exception that other processes raise for one of this process."""
    for kind in (UsageError, BadInputError, MachineError, PeerLostError, AbortedError):
        if isinstance(problem, kind):
            return kind.__name__
    if isinstance(problem, (TypeError, ValueError)):
        return "UsageError"
    return "MachineError" if isinstance(problem, (MemoryError, OSError)) else "AbortedError"

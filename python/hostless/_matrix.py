"""A matrix that is laid out once and solved many times."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Optional

import numpy as np

from . import _core
from ._checks import (OPERATOR_ALONE, check_as_many, check_at_once, check_ended, check_environment, check_square, asymmetry_of,
                      asymmetry_there, check_transport, first_row_of, gpus_of, kind_of, refuse_asymmetry, symmetry_tolerance, vendor_of)
from ._device import DeviceRows, DeviceVectors, copied_rows_of, device_rows_of, is_there, maker_of, to_gpu_like, warn_of_host
from ._functions import function_of, preconditioner_of
from ._operator import Base
from ._options import APART, of_matrix, of_solve, refuse_others, set_options, takes
from ._result import Result, info_of
from ._rows import Rows, Shifted, check_numbers, is_operator, root_of, rows_of, settled, shifted, small
from ._vectors import Vectors, joined
from .errors import AbortedError, Error, MachineError, PeerLostError, UsageError, a_type, counted, warn

#: Right-hand sides that are solved for at once where nobody says how many.
MOST_COLUMNS = 8
#: Rows of the host are copied to a GPU that has room for them, and laid out there; False: the host lays them out.
COPIES = True


class Matrix(Base):
    """A matrix, laid out on its ranks once: partition, conversion and binding are done
    here; then `solve` and `matvec` as often as needed, without set-up.

    A          scipy.sparse of any format and index type, a NumPy array, torch sparse or dense, CuPy's, or a
               LinearOperator (ranks=1). Duplicates are summed; A is not changed and, on the processor, not kept. Other
               types than float64 are computed in float64.
    ranks      threads of this process that share the rows; where not given one, with gpus as many as GPUs
    gpus       a number, "all", or a list of the first ones; None: the processor. The GPU library is looked for now.
    comm       an mpi4py communicator instead of ranks: A then has the rows `row_range` = (first, last) of the whole
               matrix and all its columns; vectors, `shape` and `M` are of those rows. Collective: every call on
               every rank, with the same options. An error of one rank, and options that differ, are raised on all.
               With gpus, so many GPUs of each machine, a process for each: rows and vectors then go through the host.

    With gpus, an A in a GPU's memory stays there: GPUs look at A's own arrays and lay them out, float64 or float32 (others
    become float64 there, and what is not sorted or not CSR is made so there, by A's package). Where METIS deals the rows
    out to several GPUs (partition), the host gets the pattern for it. A is kept for solvers that are made later, so change
    it only together with update_values. Work is ordered after the stream that CuPy or torch has in use, the `stream` of
    __cuda_array_interface__, or what DLPack's protocol says. Checked there: every entry against its mirror; of the
    preconditioners "jacobi" and "block-jacobi" the diagonal comes to the host. With gpus, b and x0 in a GPU's memory are
    read there, and x is written there in b's kind, before the call returns; on another GPU than the one that solves, they
    are copied between the two. What cannot stay there goes through the host with a HostlessWarning.

    A LinearOperator of scipy where scipy is installed. One thread may use it at a time. Close it, or use it in a
    `with` block, to end its ranks at once; otherwise they end with it.

    Errors: UsageError (options, shapes), BadInputError (a column out of range; where a solve needs
    a symmetric matrix: which entry is not its mirror), TypeError (complex
    numbers, no matrix), MachineError (no such GPU, too many threads).
    Cost: arrays of scipy's canonical CSR in float64 are read in place; the layout is the only copy. With gpus they are
    copied to the first GPU, which lays them out; a copy stays there until the matrix is closed. Where there is no room for
    it beside layout and vectors, or METIS deals the rows out to several GPUs, all the processors that this
    process may use make the layout (`taskset` and the like limit them). With comm each call agrees first: one gather of 16 bytes a rank
    (17 us on two ranks of one machine).
    """

    @takes(of_matrix)
    def __init__(self, A: Any, *, ranks: Optional[int] = None, gpus: Any = None, transport: str = "threads", comm: Any = None,
                 row_range: Optional[tuple] = None, **options: Any):
        A, shift = Shifted.parts(A)
        self._system: Any = None
        self._there: Any = None  # keeps values that solvers read in a GPU's memory
        self._copied = False  # from the host
        self._comm, self._gpus, self._choices = comm, 0, None
        self._tolerance = options.get("symmetry_tolerance")
        self._single = False
        self._asymmetry = ""  # which entry is not its mirror, for methods that need A = A'
        self._compared = False  # whether all entries have been compared with their mirrors

        def set_all() -> None:
            refuse_others("Matrix", options, of_matrix())
            check_environment()
            self._choices = _core.Choices()
            set_options(self._choices, options)
            if self._tolerance is not None and not self._choices.check_symmetry:
                raise UsageError(f"symmetry_tolerance={self._tolerance!r} with check_symmetry=False is refused (nobody compares anything). Drop one "
                                 "of them.")
            self._gpus = gpus_of(gpus)
            self._choices.set("gpus", self._gpus)
            check_transport(transport, comm, row_range, None if ranks is None else small(ranks, "ranks"), self._gpus,
                            self._choices.oversubscribe)

        if comm is not None:
            self._of_share(A, shift, comm, row_range, transport == "composite", set_all)
        else:
            set_all()
            self._of_process(A, shift, max(self._gpus, 1) if ranks is None else ranks)
        super().__init__(np.dtype(np.float64), (self._system.rows, self._system.rows))

    def refuse_other(self, **given: Any) -> None:
        """UsageError: an option of a matrix that is laid out otherwise already, or not at all."""
        for name, value in given.items():
            if value is None or name == "ranks" and value == self.ranks or name == "transport" and value == "threads":
                continue
            if name not in ("ranks", "transport", "comm", "row_range", *APART):
                asked = _core.Choices(self._choices)
                set_options(asked, {name: value})
                if asked.words(True) == self._choices.words(True):
                    continue
            raise UsageError(f"{name}={value!r} with a hostless.Matrix is refused (it is laid out already). Say it when the matrix is "
                             "made.")

    @property
    def _symmetry(self) -> float:
        """How far entries may be from their mirrors, as a share of their size; below 0: nobody looks."""
        if not self._choices.check_symmetry:
            return -1.0
        return symmetry_tolerance(self._single) if self._tolerance is None else float(self._tolerance)

    def _of_process(self, A: Any, shift: float, ranks: int) -> None:
        partition = self._choices.partition
        if is_operator(A) and not isinstance(A, np.ndarray):
            self._of_operator(A, shift, ranks)
        elif shift != 0 and self._gpus and is_there(A):
            raise UsageError(f"shift={shift!r} with an A in a GPU's memory is refused (whose diagonal its own package changes). Pass "
                             "A - shift I.")
        elif (there := self._rows_there(A)) is not None:
            self._of_device(there, ranks)
        else:
            # METIS and files deal rows out by the host, which would want their pattern back.
            copies = COPIES and self._gpus > 0 and (ranks == 1 or partition in ("auto", "contiguous"))
            rows = rows_of(A, later=copies)
            check_square(rows.shape)
            rows = shifted(settled(rows), shift) if shift != 0 else rows
            if copies and ranks > 1 and partition == "auto":
                copies = _core.stays_contiguous(*rows.arrays, ranks)
            if copies and self._of_copy(rows, ranks):
                return
            rows = settled(rows)
            self._single, self._kind, self._compared = rows.single, rows.kind, self._choices.check_symmetry
            self._asymmetry = asymmetry_of(rows, self._symmetry)
            self._system = _core.System(*rows.arrays, rows.shape[1], self._choices, ranks)

    def _of_copy(self, rows: Rows, ranks: int) -> bool:
        """Has a copy laid out that is made on the first GPU. False: there is no room for it, or for the work on it."""
        try:
            there = copied_rows_of(rows, True)
            if there is None:
                return False
            self._copied = True
            self._of_device(there, ranks)
        except MachineError:  # what the host then lacks too, it says itself
            self._copied, self._there = False, None
        return self._copied

    def _rows_there(self, A: Any) -> Optional[DeviceRows]:
        """A as rows whose values stay in a GPU's memory; None: they do not lie there, or it cannot be (with a warning)."""
        if not is_there(A):
            return None
        if self._gpus == 0:
            warn_of_host("A", "the processor solves. Pass gpus=1 to solve where A is.")
            return None
        if hasattr(A, "shape"):
            check_square(A.shape)
        rows = device_rows_of(A)
        if rows is None:
            warn_of_host("A", f"nothing of {type(A).__module__.split('.')[0]} makes compressed rows on a GPU. Use CuPy's "
                         "or torch's.")
        return rows

    def _of_device(self, rows: DeviceRows, ranks: int) -> None:
        self._single, self._kind, self._there = rows.single, rows.kind, rows.owner
        self._compared = self._choices.check_symmetry
        same_bits, self._asymmetry = asymmetry_there(rows, self._symmetry)
        self._system = _core.System(rows.rows, same_bits, self._choices, ranks)
        if self._copied:
            self._system.say_copied(rows.owner.bytes, rows.owner.seconds)

    def _of_operator(self, A: Any, shift: float, ranks: int) -> None:
        if ranks != 1 or self._gpus:
            raise UsageError(OPERATOR_ALONE)
        for changed in self._choices.layout_changes():
            raise UsageError(f"{changed} of a LinearOperator (nothing of it is stored, and one rank has it all). Drop it.")
        check_square(A.shape)
        dtype = getattr(A, "dtype", None)
        self._single = dtype is not None and check_numbers(dtype, "A") == np.float32
        self._kind = type(A).__name__
        apply = function_of(A.matvec, A.shape[0])
        self._system = _core.System(A.shape[0], apply if shift == 0 else lambda v: apply(v) - shift * v)

    def _of_share(self, A: Any, shift: float, comm: Any, row_range: Optional[tuple], by_reach: bool,
                  set_all: Callable[[], None]) -> None:
        # First of all, so that whatever is refused on one process is refused on all.
        self._system = _core.System(vendor_of(comm), comm.py2f(), by_reach)

        def prepare() -> tuple:
            set_all()
            if is_operator(A) and not isinstance(A, np.ndarray):
                raise UsageError(OPERATOR_ALONE)
            if is_there(A):
                warn_of_host("A", "each process of comm brings rows that others look at. Without comm they stay there.")
            rows = rows_of(A)
            first = first_row_of(row_range, rows.shape[0])
            what = f"a matrix, {counted(rows.shape[1], 'column')}, shift={shift}, {self._choices.words(True)}"
            return shifted(rows, shift, first), first, what

        try:
            rows, first, _ = self._agree(prepare)
            self._single, self._kind = rows.single, rows.kind
            self._system.lay_out(*rows.arrays, rows.shape[1], first, self._choices)
            if self._system.lost_blocks and comm.rank == 0:
                warn(f"the matrix is laid out without blocks that it has: {self._system.lost_blocks} (block-jacobi becomes jacobi, and "
                     "columns are stored more often). Or pass block=1.")
        except BaseException:
            self._system.close()
            raise

    def _agree(self, prepare: Callable[[], tuple], flag: bool = False) -> tuple:
        """What `prepare` returns but for its last part: in words what all processes of a communicator must have been
        given alike. Instead of that, whether `flag` is set on any of them.

        An error of one of them is raised on all before anything collective begins: where it happened as it is, elsewhere
        with the number of that rank.
        """
        if self._comm is None:
            return *prepare()[:-1], flag
        try:
            made = prepare()
        except BaseException as problem:
            with contextlib.suppress(Error):  # this one's own says more
                self._system.agree((kind_of(problem), f"rank {self._comm.rank}: {problem}"), "", False)
            raise
        return *made[:-1], self._system.agree(None, made[-1], flag)

    # ------------------------------------------------------------------ solving
    @takes(of_solve)
    def solve(self, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None,
              M: Any = None, callback: Optional[Callable] = None, full_output: bool = False, **options: Any) -> tuple:
        """Solves A x = b: (x, info), or (x, info, result) with full_output.

        As `hostless.cg`. With other tolerances, b or x0 than before nothing is made again; another value of any other option
        makes another solver. Several columns of b are solved at once, in groups of `rhs_columns`, each to the bits that it has
        alone; one after the other where M is a function, with a callback or a null space, on vectors that stay in a GPU's memory, and
        where GPUs do it for one alone (docs/howto/from-python.md). Then info is that of the first one that did not converge, else 0,
        and result a list; times and bytes in it are those of the group. A group of another size makes another solver too.
        """
        def prepare() -> tuple:
            refuse_others("solve", options, of_solve())
            return self._prepare(b, x0, M, callback, dict(options, rtol=rtol, atol=atol, maxiter=maxiter))

        vectors, guesses, choices, function, single, called = self._agree(prepare, callback is not None)
        several = MOST_COLUMNS if options.get("rhs_columns") is None else choices.rhs_columns
        if called or function or choices.one_by_one and options.get("rhs_columns") is None:
            several = 1
        if called and callback is None:  # another process has one, and all must run the same solver
            callback = _do_nothing
        shown = None if callback is None else lambda x: callback(vectors.like(x))  # as a vector in the kind of b
        in_place = isinstance(vectors, DeviceVectors)
        answers, reports, begun = [], [], time.monotonic()
        x = vectors.answer(single) if in_place else None
        if in_place:
            choices.set("rhs_columns", 1)
            for k, (column, guess) in enumerate(zip(vectors.columns, guesses)):
                self._system.time_spent_s = time.monotonic() - begun if k else 0.0
                reports.append(self._system.solve_in_place(self._kind, choices, column, guess, x.columns[k]))
                check_ended(reports[-1])
        else:
            for first in range(0, len(guesses), several):
                now = slice(first, first + several)
                count = len(guesses[now])
                choices.set("rhs_columns", count)
                found = joined(guesses[now])
                self._system.time_spent_s = time.monotonic() - begun if first else 0.0
                reports += self._system.solve(self._kind, choices, joined(vectors.columns[now]), found,
                                              shown, function, single)
                answers += np.split(found, count)
                for report in reports[first:]:
                    check_ended(report)
        if lost := [report for report in reports if report.lost_by_rounding]:
            warn(f"A and b are float32, and so is x, which rounded so misses the tolerance that it had met: {lost[0].message}")
        infos = [info_of(report.status, report.iterations) for report in reports]
        info = next((one for one in infos if one != 0), 0)
        x = x.given if in_place else vectors.answer(answers, single)
        if not full_output:
            return x, info
        results = [Result.of(report) for report in reports]
        return x, info, results if len(vectors.shape) == 2 and vectors.shape[1] > 1 else results[0]

    def _prepare(self, b: Any, x0: Any, M: Any, callback: Any, asked: dict) -> tuple:
        """(b, guesses, choices, M as a function, whether x is float32, what all ranks must agree on) of a solve."""
        rows = self._system.rows
        choices = self._chosen()
        set_options(choices, asked)
        if asked.get("tune") is not None and not asked["tune"] and self._gpus == 0:
            raise UsageError("tune=False without a GPU is refused (it is of the runs there). Pass gpus=1, or leave it out.")
        if choices.needs_symmetric:
            refuse_asymmetry(self._asymmetry)
        vectors = DeviceVectors(b, rows, "b") if self._stays(b, M, callback, choices) else Vectors(b, rows, "b")
        if choices.has_files and len(vectors.columns) > 1:
            raise UsageError(f"checkpoint or resume with {counted(len(vectors.columns), 'column')} of b are refused (a file is of one solve). Solve "
                             "them one by one.")
        if x0 is not None and asked.get("resume") is not None:
            raise UsageError("x0 with resume is refused (the checkpoint goes on from its own x). Drop one of them.")
        guesses = self._guesses(x0, vectors, M)
        function = preconditioner_of(M, rows, choices.preconditioner)
        if callback is not None and not callable(callback):
            raise UsageError(f"callback is {a_type(callback)} (it is called with x). Pass a function.")
        check_at_once(vectors, choices, function, callback)
        single = self._single and vectors.single
        same = (f"a solve, {choices.words(False)}, {'an' if function else 'no'} M, {counted(len(guesses), 'column')} of b, "
                f"x in {'float32' if single else 'float64'}")
        return vectors, guesses, choices, function, single, same

    def _chosen(self) -> Any:
        """As the matrix was made; how far mirrors may differ is that of the values there are now."""
        choices = _core.Choices(self._choices)
        if choices.check_symmetry:
            choices.set("symmetry_tolerance", self._symmetry)
        return choices

    def _stays(self, b: Any, M: Any, callback: Any, choices: Any) -> bool:
        """Whether b, x0 and x stay in the memory of GPUs. Where b is there and they do not, a warning says why."""
        if not is_there(b):
            return False
        why = ("the processor solves. Make the matrix with gpus=1." if self._gpus == 0 else
               "each process of comm has its own rows of it." if self._comm is not None else
               "M or a callback reads vectors there." if M is not None or callback is not None else
               "checkpoints and null spaces are the host's." if choices.has_files or choices.null_space else
               f"nothing of {root_of(b)} makes an array to write x to. Pass b as CuPy's or torch's." if maker_of(b) is None
               else None)
        if why is not None:
            warn_of_host("b", why)
        return why is None

    def _guesses(self, x0: Any, vectors: Any, M: Any) -> list:
        if isinstance(vectors, DeviceVectors):
            return self._guesses_there(x0, vectors)
        if x0 is None:
            return [np.zeros(len(column)) for column in vectors.columns]
        if isinstance(x0, str):
            if x0 != "Mb":
                raise UsageError(f"x0={x0!r} (scipy knows 'Mb', which is M @ b). Pass a vector.")
            function = preconditioner_of(M, self._system.rows, "none")
            return [np.array(function(column) if function else column) for column in vectors.columns]
        guesses = Vectors(x0, self._system.rows, "x0").columns
        check_as_many(guesses, vectors)
        return [guess.copy() for guess in guesses]

    def _guesses_there(self, x0: Any, vectors: DeviceVectors) -> list:
        if x0 is None:
            return [None] * len(vectors.columns)
        if isinstance(x0, str):
            if x0 != "Mb":
                raise UsageError(f"x0={x0!r} (scipy knows 'Mb', which is M @ b). Pass a vector.")
            return vectors.columns  # no M: it is the identity
        self._x0 = DeviceVectors(to_gpu_like(x0, vectors.given), self._system.rows, "x0")  # kept during the solve
        check_as_many(self._x0.columns, vectors)
        return self._x0.columns

    # ------------------------------------------------------------------ products
    def matvec(self, x: Any) -> np.ndarray:
        """A @ x of a vector of `shape[1]` entries. With comm collective, of each process's rows."""
        self._agree(lambda: self._check_factor(x))
        return super().matvec(x)

    def matmat(self, X: Any) -> np.ndarray:
        """A @ X of the columns of X, one after the other. With comm collective, of each process's rows."""
        self._agree(lambda: self._check_factor(X))
        return super().matmat(X) if np.shape(X)[1:] != (0,) else np.empty(np.shape(X))

    def _check_factor(self, x: Any) -> tuple:
        shape = np.shape(x)
        if shape[:1] != (self._system.rows,) or len(shape) > 2:
            raise UsageError(f"a factor of shape {shape} (the matrix has {counted(self._system.rows, 'row')}). Pass one entry a row.")
        check_numbers(np.asarray(x).dtype, "a factor of A")
        return (f"a factor of {counted(1 if len(shape) == 1 else shape[1], 'column')}",)

    def _matvec(self, x: Any) -> np.ndarray:
        x = np.asarray(x).reshape(-1)
        check_numbers(x.dtype, "a factor of A")
        x = np.ascontiguousarray(x, dtype=np.float64)
        y = np.empty(self._system.rows)
        self._system.multiply(self._chosen(), x, y)
        return y

    def _rmatvec(self, x: Any) -> np.ndarray:
        return self._adjoint()._matvec(x)

    def _adjoint(self) -> "Matrix":
        if self._asymmetry:
            raise UsageError(f"A.T of a matrix that is not symmetric: {self._asymmetry} (its rows are laid out, not its columns). "
                             "Make another hostless.Matrix of A.T.")
        if not self._compared:
            raise UsageError("A.T of a matrix whose entries nobody has compared with their mirrors: one of a communicator, of a "
                             "LinearOperator, or with check_symmetry=False (its rows are laid out, not its columns). Use A @ x "
                             "where A is symmetric, or make another hostless.Matrix of A.T.")
        return self

    _transpose = _adjoint

    # ------------------------------------------------------------------ life
    def update_values(self, A: Any) -> None:
        """Other values in the same pattern (time steps, Newton), without planning again. What is stored in A must be
        what was stored before, zeros too. Where the first values were in a GPU's memory, these must be. Where a copy of the
        first ones was laid out there, these are copied too, and for a moment there are two copies; values of an array on a
        GPU are then read, and kept, where they are.

        Errors: UsageError (another pattern, another place), BadInputError (not symmetric where the first values were; with comm
        the next solve says so), MachineError (no room for a second copy; the matrix stays as it was).
        """
        if self._there is not None:
            return self._update_there(A)
        if is_there(A) and not self._system.closed:
            warn_of_host("A", "its first values came from there. Make a new hostless.Matrix of A.")

        def prepare() -> tuple:
            rows, where = rows_of(A, others=""), ""
            if self._comm is None:
                check_square(rows.shape)
                where = asymmetry_of(rows, self._symmetry)
                if not self._asymmetry:  # as it was made: the next solve would have to refuse it
                    refuse_asymmetry(where)
            return rows, where, "other values"

        rows, where, _ = self._agree(prepare)
        self._system.update_values(*rows.arrays, rows.shape[1], self._system.first_row)
        self._single, self._asymmetry = rows.single, where

    def _update_there(self, A: Any) -> None:
        rows = self._rows_there(A)
        if rows is None and self._copied:
            given = rows_of(A, later=True, others="")
            check_square(given.shape)
            rows = copied_rows_of(given, False)
            if rows is None:
                raise UsageError("the new values have another pattern than the matrix (nothing is stored in them). Make "
                                 "another matrix.")
        if rows is None:
            raise UsageError("values that do not lie in a GPU's memory for a matrix whose values do (they are read where "
                             "they are). Pass a matrix of the same kind, or make a new hostless.Matrix.")
        same_bits, where = asymmetry_there(rows, self._symmetry)
        if not self._asymmetry:
            refuse_asymmetry(where)
        before, self._there = self._there, (self._there, rows.owner)  # both, until it is known which ones all ranks have
        try:
            self._system.update_values(rows.rows, same_bits)
        except Error as problem:
            if not isinstance(problem, (PeerLostError, AbortedError)):
                self._there = before  # all have refused the new ones
            raise
        self._single, self._there, self._asymmetry = rows.single, rows.owner, where
        self._system.say_copied(getattr(rows.owner, "bytes", 0))

    def close(self) -> None:
        """Ends the ranks. Everything else then raises UsageError."""
        self._end(False)

    def _end(self, leaving: bool) -> None:
        if self._system is not None:
            self._system.close(leaving)
            self._there = None

    def __enter__(self) -> "Matrix":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._end(kind is not None)

    @property
    def ranks(self) -> int:
        return self._system.ranks

    @property
    def global_rows(self) -> int:
        """Rows of the whole matrix; with comm more than `shape` says."""
        return self._system.global_rows

    @property
    def entries(self) -> int:
        """Stored entries of the whole matrix; 0 for a LinearOperator."""
        return self._system.entries

    @property
    def set_ups(self) -> int:
        """How many solvers have been made so far: one for each time that an option changed."""
        return self._system.solvers_made

    def __repr__(self) -> str:
        if self._system.closed:
            return f"<hostless.Matrix {self.shape[0]} x {self.shape[1]}, closed>"
        where = counted(self._gpus, "GPU") if self._gpus else counted(self.ranks, "rank")
        return f"<hostless.Matrix {self.shape[0]} x {self.shape[1]}, {counted(self.entries, 'entry', 'entries')}, {where}>"


def _do_nothing(x: Any) -> None:
    """The callback of a process that has none where another one has."""

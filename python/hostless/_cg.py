"""scipy's cg, on hostless."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ._matrix import Matrix, Shifted
from ._options import TABLE, of_matrix, refuse_others, takes


@takes(lambda: TABLE.values())
def cg(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None,
       M: Any = None, callback: Optional[Callable] = None, ranks: Optional[int] = None, gpus: Any = None,
       transport: str = "threads", comm: Any = None, row_range: Optional[tuple] = None, full_output: bool = False,
       **options: Any) -> tuple:
    """Solves A x = b for a real symmetric positive definite A by conjugate gradients: scipy.sparse.linalg.cg, on
    several ranks, and with an answer that was checked.

    A              scipy.sparse of any format, a NumPy array, torch or cupyx sparse, a LinearOperator, or a
                   hostless.Matrix, which keeps the set-up for the next solve
    b              (n,), (n, 1), or (n, k) for k right-hand sides: NumPy, torch, CuPy, a list, anything with DLPack or
                   the array interface. x comes back in its kind, shape and place; float32 only where A and b are, and
                   is judged so: stagnated, with a HostlessWarning, where rounding it to float32 loses the tolerance.
                   With gpus, what lies in a GPU's memory (CuPy, torch, Numba) is used there: hostless.Matrix says how.
    x0             the guess, which is not changed; zeros where not given; 'Mb' is M @ b, as in scipy
    rtol, atol     ends when |b - A x| <= max(rtol |b|, atol), with |b - A x| computed from x
    maxiter        10 n where not given
    M              approximates the inverse of A: a matrix, an array or a LinearOperator; on the processor, of
                   every method but those of one sum an iteration.
                   With several ranks M sees whole vectors, with comm those of its own rows.
    callback       callback(xk) after each iteration, with a vector of its own; on the processor. It runs on the thread
                   that called cg, while the ranks wait.

    ranks          threads of this process that share the rows; where not given one, with gpus as many as GPUs
    gpus           a number, "all", or a list of the first ones; with comm, of each machine, a process for each
    transport      "threads"; with comm "mpi", or "composite" (processes of a node share memory)
    comm           an mpi4py communicator: A, b and x0 are then this process's rows [first, last) = row_range. Collective;
                   an error of one process is raised on all of them.
    full_output    also returns a hostless.Result

    Returns (x, info), or (x, info, result). info: 0 converged; > 0 not converged after so many iterations (the limit,
    of iterations or of time, no progress, or an x that float32 does not hold); < 0 broken down: -1 A is not positive definite, -2 M is not, -3 NaN or
    infinity, -4 a divisor is zero. `result.status` has the word for it, and `result.message` a sentence where there is more
    to say.

    Errors: BadInputError (a ValueError: A is not symmetric), UsageError (a ValueError: shapes, unknown words, a callback
    on a GPU), TypeError (complex numbers, options that there are not), MachineError (no GPU), PeerLostError; what callback
    and operators raise. KeyboardInterrupt ends the solve at its next sum; everything can be used again.
    """
    if comm is None:  # else all processes are told, by `solve`
        refuse_others("cg", options, TABLE.values())
    of_layout = {one.name for one in of_matrix()}
    layout = {name: value for name, value in options.items() if name in of_layout}
    how = dict(rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, full_output=full_output,
               **{name: value for name, value in options.items() if name not in of_layout})
    if isinstance(A, Matrix):
        A.refuse_other(ranks=ranks, gpus=gpus, transport=transport, comm=comm, row_range=row_range, **layout)
        return A.solve(b, x0, **how)
    given = Shifted.parts(A)[0]
    if M is None and hasattr(given, "psolve") and hasattr(given, "matvec"):  # as scipy does
        from scipy.sparse.linalg import LinearOperator

        how["M"] = LinearOperator(given.shape, matvec=given.psolve, dtype=given.dtype)
    with Matrix(A, ranks=ranks, gpus=gpus, transport=transport, comm=comm, row_range=row_range, **layout) as matrix:
        return matrix.solve(b, x0, **how)

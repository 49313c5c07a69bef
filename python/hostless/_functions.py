"""Functions of the caller: operators and preconditioners as functions of vectors."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from ._rows import Checked, check_numbers, is_array, is_operator, root_of, rows_of
from .errors import BadInputError, UsageError, a_type, counted


def function_of(function: Callable, rows: int) -> Callable:
    def doubles(x: np.ndarray) -> np.ndarray:
        y = np.asarray(function(x))
        check_numbers(y.dtype, "what an operator gave")
        if y.size != rows:
            raise UsageError(f"an operator gave the shape {y.shape} (vectors have {counted(rows, 'entry', 'entries')}). Correct it.")
        return np.ascontiguousarray(y.reshape(rows), dtype=np.float64)

    return doubles


def preconditioner_of(M: Any, rows: int, preconditioner: str) -> Optional[Callable]:
    """z = M r as a function, or None."""
    if isinstance(M, Checked):
        function = preconditioner_of(M.matrix, rows, preconditioner)
        check_symmetric(function, rows)
        return function
    if M is None:
        return None
    if preconditioner != "none":
        raise UsageError(f"both M and preconditioner={preconditioner!r} are refused (one of them approximates the inverse). Drop "
                         "one.")
    if callable(M) and not hasattr(M, "shape") or isinstance(M, str):
        raise TypeError(f"M is {a_type(M)} (a matrix or a LinearOperator is meant). Use "
                        "scipy.sparse.linalg.LinearOperator(A.shape, matvec=function), or preconditioner= for a word.")
    if not is_operator(M):
        if not is_array(M) and not hasattr(M, "shape"):
            raise TypeError(f"M is {a_type(M)} (a matrix or a LinearOperator is meant). Pass one.")
        if hasattr(M, "solve") and not hasattr(M, "dtype"):  # a factorisation, as scipy's splu and spilu make them
            raise TypeError(f"M is {a_type(M)} (a matrix or a LinearOperator is meant). Pass "
                            "scipy.sparse.linalg.LinearOperator(A.shape, M.solve).")
        if not isinstance(M, np.ndarray) and root_of(M) not in ("scipy",):
            from scipy.sparse import csr_array

            stored = rows_of(M, what="M", others=", and LinearOperators")
            M = csr_array((stored.values, stored.columns, stored.offsets), shape=stored.shape)
        check_numbers(M.dtype, "M")
        if tuple(M.shape) != (rows, rows):
            raise UsageError(f"M has the shape {tuple(M.shape)} (A has {counted(rows, 'row')}). Pass one of A's shape.")
        return function_of(lambda r: M @ r, rows)
    if tuple(M.shape) != (rows, rows):
        raise UsageError(f"M has the shape {tuple(M.shape)} (A has {counted(rows, 'row')}). Pass one of A's shape.")
    return function_of(M.matvec, rows)


def check_symmetric(function: Callable, rows: int) -> None:
    """As scipy does: M M' and M' M of one vector."""
    v = np.random.default_rng(0).uniform(-1, 1, rows)
    once = function(v)
    twice = function(once)
    square, crossed = float(once @ once), float(v @ twice)
    if abs(square - crossed) > 1e-5 * (square + abs(crossed)):
        raise BadInputError(f"M is not symmetric: (M v)'(M v) = {square:.6e}, v'M M v = {crossed:.6e} for a random v (MINRES "
                            "needs a symmetric positive definite M). Pass another one.")

"""scipy's solvers for matrices that are not positive definite, or not symmetric, on hostless."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from ._cg import cg
from ._matrix import Matrix
from ._rows import is_operator, is_scipy
from .errors import BadInputError, UsageError


def bicgstab(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None,
             M: Any = None, callback: Optional[Callable] = None, **options: Any) -> tuple:
    """Solves A x = b for a real regular A by the stabilised bi-conjugate gradient method: scipy.sparse.linalg.bicgstab.

    A need not be symmetric, nor M. An iteration multiplies with A twice. Everything else is as of hostless.cg, which
    has the other options too.

    Returns (x, info), or (x, info, result) with full_output. info -4: a divisor is zero.
    """
    return cg(A, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, **_of("bicgstab", options))


def minres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, shift: float = 0.0, maxiter: Optional[int] = None,
           M: Any = None, callback: Optional[Callable] = None, show: bool = False, check: bool = False, **options: Any) -> tuple:
    """Solves (A - shift I) x = b for a real symmetric A by the minimal residual method: scipy.sparse.linalg.minres.

    A may be indefinite, and singular: where no x reaches all of b, info > 0, result.status is "stagnated", and x leaves about
    the least residual. M is symmetric positive definite. `rtol` is one of |b - A x| / |b|, as everywhere in hostless;
    scipy measures |A| |x| + |b| instead and so ends earlier. Everything else is as of hostless.cg, which has the
    other options too.

    show     prints how it ended
    check    looks whether M is symmetric too; A is looked at anyway

    Returns (x, info), or (x, info, result) with full_output.

    Errors: as hostless.cg; BadInputError (check: M is not symmetric), UsageError (a shift of a hostless.Matrix).
    """
    if check and M is not None:
        _check_symmetric(M, np.shape(b)[0])
    full_output = options.pop("full_output", False)
    x, info, result = cg(_shifted(A, shift), b, x0, rtol=rtol, maxiter=maxiter, M=M, callback=callback, full_output=True,
                         **_of("minres", options))
    if show:
        print(result)
    return (x, info, result) if full_output else (x, info)


def _of(method: str, options: dict) -> dict:
    if "method" in options:
        raise TypeError(f"{method}() got an unexpected keyword argument 'method'. It is hostless.cg's.")
    return {**options, "method": method}


def _shifted(A: Any, shift: float) -> Any:
    if shift == 0:
        return A
    if isinstance(A, Matrix):
        raise UsageError(f"shift={shift!r} with a hostless.Matrix (it is laid out already). Make one of A - shift I.")
    if is_scipy(A):
        from scipy.sparse import eye

        return A - shift * eye(A.shape[0], dtype=np.float64, format=A.format)
    if is_operator(A) and not isinstance(A, np.ndarray):
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(A.shape, matvec=lambda v: A.matvec(v) - shift * v, dtype=np.float64)
    if isinstance(A, np.ndarray):
        return A - shift * np.eye(len(A))
    raise UsageError(f"shift={shift!r} with a {type(A).__name__} (whose diagonal only its own package changes). Pass "
                     "A - shift I.")


def _check_symmetric(M: Any, rows: int) -> None:
    """As scipy does: M M' and M' M of one vector."""
    apply = M.matvec if hasattr(M, "matvec") else M.__matmul__
    v = np.random.default_rng(0).uniform(-1, 1, rows)
    once = np.ravel(apply(v))
    twice = np.ravel(apply(once))
    square, crossed = float(once @ once), float(v @ twice)
    if abs(square - crossed) > 1e-5 * (square + abs(crossed)):
        raise BadInputError(f"M is not symmetric: (M v)'(M v) = {square:.6e}, v'M M v = {crossed:.6e} for a random v (MINRES "
                            "needs a symmetric positive definite M). Pass another one.")

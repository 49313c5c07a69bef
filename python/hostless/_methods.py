"""scipy's solvers for matrices that are not positive definite, or not symmetric, on hostless."""

from __future__ import annotations

import inspect
import math
from typing import Any, Callable, Optional

from ._cg import cg
from ._matrix import Matrix
from ._options import TABLE, refuse_others
from ._rows import Checked, Shifted, real
from .errors import UsageError


def bicgstab(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None,
             M: Any = None, callback: Optional[Callable] = None, **options: Any) -> tuple:
    """Solves A x = b for a real regular A by the stabilised bi-conjugate gradient method: scipy.sparse.linalg.bicgstab.

    A need not be symmetric, nor M. An iteration multiplies with A twice. x is that of the last iteration, whose residual may be
    some times the least on the way, since residuals jump: result.true_residual is of this x. Everything else is as of hostless.cg, which
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
    shift = real(shift, "shift")
    if not math.isfinite(shift):
        raise UsageError(f"shift={shift!r} (a finite number is needed). Correct it.")
    if shift != 0 and isinstance(A, Matrix):
        raise UsageError(f"shift={shift!r} with a hostless.Matrix is refused (it is laid out already). Make one of A - shift I.")
    if check and M is not None:
        M = Checked(M)
    full_output = options.pop("full_output", False)
    x, info, result = cg(A if shift == 0 else Shifted(A, shift), b, x0, rtol=rtol, maxiter=maxiter, M=M, callback=callback, full_output=True,
                         **_of("minres", options))
    if show:
        print(result)
    return (x, info, result) if full_output else (x, info)


def _of(method: str, options: dict) -> dict:
    if "method" in options:
        raise TypeError(f"{method}() got an unexpected keyword argument 'method'. It is hostless.cg's.")
    of_cg = inspect.signature(cg).parameters
    if options.get("comm") is None:  # as in `cg`
        refuse_others(method, (name for name in options if name not in of_cg), TABLE.values())
    return {**options, "method": method}

"""hostless: sparse linear systems by conjugate gradients, MINRES and BiCGStab, on one core, many ranks or GPUs.

    import hostless
    x, info = hostless.cg(A, b)                     # scipy.sparse.linalg.cg's signature; so have minres and bicgstab
    with hostless.Matrix(A, ranks=4) as matrix:     # set up once
        x, info = matrix.solve(b, rtol=1e-8)

exchanges of ghosts between ranks, without a matrix (hostless.ExchangePlan, Exchange, ReverseExchange),
collectives between neighbours (hostless.Neighborhood), messages that a queue starts and waits for (hostless.Queue), halos of grids among
them (hostless.QueueHalo), and stencils on arrays by an expression (hostless.Stencil).
See hostless.cg, hostless.Matrix, hostless.generate, hostless.read, hostless.plan, hostless.doctor.
"""

import atexit
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._cg import cg
    from ._core import version as __version__
    from ._exchange import Collective, Exchange, ExchangePlan, Neighborhood, ReverseExchange, run_threads
    from ._matrix import Matrix
    from ._methods import bicgstab, minres
    from ._queue import Communicator, Match, Queue, QueueHalo, Request, Status, begin_match, match
    from ._result import Result
    from ._sources import Plan, command, doctor, generate, plan, presets, problems, read, write
    from ._stencil import Stencil, stencil_names
    from ._stencil_result import StencilChange, StencilResult
    from .errors import (AbortedError, BadInputError, Error, HostlessWarning, MachineError, NumberTypeError, PeerLostError,
                         QueueError, UsageError)
    from .plots import plot_convergence, plot_plan, plot_scaling
    from .plots_of_papers import plot_papers
    from .report.stencil_plots import plot_change, plot_field

__all__ = ["AbortedError", "BadInputError", "Collective", "Communicator", "Error", "Exchange", "ExchangePlan", "HostlessWarning", "MachineError",
           "Match", "Matrix", "Neighborhood", "NumberTypeError", "PeerLostError", "Plan", "Queue", "QueueError", "QueueHalo", "Request", "Result",
           "ReverseExchange", "Status", "Stencil", "StencilChange", "StencilResult", "UsageError", "__version__", "begin_match", "bicgstab", "cg", "command",
           "doctor", "generate", "match", "minres", "plan", "plot_change", "plot_convergence", "plot_field", "plot_papers", "plot_plan", "plot_scaling", "presets",
           "problems", "read", "run_threads", "stencil_names", "write"]

# Imported when they are asked for: reports and pictures of a checkout need neither the extension module nor NumPy.
_PLACES = {"_cg": ("cg",), "_methods": ("bicgstab", "minres"),
           "_exchange": ("Collective", "Exchange", "ExchangePlan", "Neighborhood", "ReverseExchange", "run_threads"), "_matrix": ("Matrix",),
           "_queue": ("Communicator", "Match", "Queue", "QueueHalo", "Request", "Status", "begin_match", "match"), "_result": ("Result",),
           "_sources": ("Plan", "command", "doctor", "generate", "plan", "presets", "problems", "read", "write"),
           "_stencil": ("Stencil", "stencil_names"), "_stencil_result": ("StencilChange", "StencilResult"),
           "errors": ("AbortedError", "BadInputError", "Error", "HostlessWarning", "MachineError", "NumberTypeError",
                      "PeerLostError", "QueueError", "UsageError"),
           "plots": ("plot_convergence", "plot_plan", "plot_scaling"), "plots_of_papers": ("plot_papers",),
           "report.stencil_plots": ("plot_change", "plot_field")}

#: How long the interpreter's end waits for what other threads are at.
_PATIENCE_S = 60.0


# Registered here, so that handlers of the program, which Python calls in reverse order, come before.
@atexit.register
def _end() -> None:
    queues = sys.modules.get(__name__ + "._queue")
    if queues is not None:
        queues.end_all(_PATIENCE_S)
    core = sys.modules.get(__name__ + "._core")
    if core is not None:
        core.end_all(_PATIENCE_S)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("._core", __name__).version
    if name in ("errors", "plots"):
        return importlib.import_module("." + name, __name__)
    for module, names in _PLACES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module("." + module, __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list:
    return sorted(set(globals()) | set(__all__))

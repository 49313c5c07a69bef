"""What a run of a stencil tells."""

from __future__ import annotations

from typing import Any, NamedTuple, Union

from .errors import counted


class StencilChange(NamedTuple):
    """What one step changed, over all cells: numbers, or of several fields a tuple of them in the order of the fields."""

    step: int  #: after so many steps of the run
    norm: Union[float, tuple]  #: sqrt(sum (new - old)^2), added up exactly
    largest: Union[float, tuple]  #: max |new - old|


class StencilResult:
    """How a run of a stencil ended. It is true where all steps were taken or the field was steady, else false.

    status       steps_done, steady (a step changed at most `tolerance`), not_finite (NaN or infinity), or aborted (the time was
                 up, or the callback asked to stop)
    message      one sentence for people; empty where there is nothing to say
    steps        that were taken: the arrays hold the cells after so many
    history      a list of StencilChange (step, norm, largest), one of each look
    seconds      of the run, without what compiling took
    exchange_seconds
                 of them waited for other ranks, by the first rank
    ranks, ranks_along, depth, block_steps
                 as they were given or chosen
    by           "compiled", "named", "numpy" or, on arrays of a GPU, "nvrtc": who took the steps
    """

    def __init__(self, fields: tuple, **values: Any):
        self.status: str = values["status"]
        self.message: str = values["message"]
        self.steps: int = values["steps"]
        self.history = [change_of(one, len(fields)) for one in values["history"]]
        self.seconds: float = values["seconds"]
        self.exchange_seconds: float = values.get("exchange_seconds", 0.0)
        self.ranks: int = values.get("ranks", 1)
        self.ranks_along: tuple = values["ranks_along"]
        self.depth: int = values.get("depth", 1)
        self.block_steps: int = values.get("block_steps", 1)
        self.by: str = values["by"]

    @property
    def steady(self) -> bool:
        """Whether a step changed every field by at most `tolerance`."""
        return self.status == "steady"

    def __bool__(self) -> bool:
        return self.status in ("steps_done", "steady")

    def __repr__(self) -> str:
        changed = f", the last look saw a change of {self.history[-1].norm}" if self.history else ""
        return f"<hostless.StencilResult: {self.status} after {counted(self.steps, 'step')}{changed}, {self.seconds:.3g} s on " \
            f"{counted(self.ranks, 'rank')}>"


def change_of(change: tuple, fields: int) -> StencilChange:
    step, norm, largest = change
    return StencilChange(step, norm[0], largest[0]) if fields == 1 else StencilChange(step, tuple(norm), tuple(largest))

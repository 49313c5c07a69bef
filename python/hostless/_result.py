"""What a solve tells: the object that full_output=True returns."""

from __future__ import annotations

import html
import json
import math
from typing import Any, Optional

import numpy as np

from .errors import counted

#: info where no more iterations would help; positive where they might.
BREAKDOWNS = {"indefinite_matrix": -1, "indefinite_preconditioner": -2, "not_finite": -3, "breakdown": -4}


def info_of(status: str, iterations: int) -> int:
    """scipy's `info`: 0 converged; > 0 not converged, the number of iterations; < 0 broken down."""
    if status == "converged":
        return 0
    return BREAKDOWNS.get(status, max(int(iterations), 1))


class Result:
    """How a solve ended, and what it cost; of each right-hand side one.

    status                  converged, iteration_limit, indefinite_matrix, indefinite_preconditioner, not_finite,
                            breakdown, stagnated, diverged or aborted (time was up)
    message                 one sentence for people; empty where there is nothing to say
    iterations, restarts    of the method; times that the true residual disagreed with the recurrence
    residual_history        NumPy array [iterations + 1] of |r| of the recurrence
    true_residual           |b - A x|, computed from x; NaN where nothing was computed
    true_relative_residual  over |b|
    recurrence_relative_residual  what the iteration believed it to be
    condition_estimate      of M A, from below, by the coefficients of the method's steps; NaN without any
    extreme_eigenvalues     (smallest, largest) of M A, whose quotient that is
    timings                 seconds: input, setup, solve, and of the solve publish, sweep, rows, sums, ghosts, waiting
    bytes                   per_iteration (matrix and vectors), halo_per_iteration, peak_process
    choices                 what was chosen, and why: format, partition, run, transport, ...
    settings                the options as they were understood, in words

    `to_json()` is what `hostless solve --json` writes, with the same names; `to_dict()` the same as a dict.
    """

    def __init__(self, text: str):
        self._text = text
        self._read: Optional[dict] = None

    @classmethod
    def of(cls, report: Any) -> "Result":
        return cls(report.to_json())

    @property
    def _data(self) -> dict:
        if self._read is None:
            self._read = json.loads(self._text)
        return self._read

    def to_json(self) -> str:
        return self._text

    def to_dict(self) -> dict:
        return json.loads(self._text)

    def __getstate__(self) -> dict:
        return {"_text": self._text, "_read": None}

    @property
    def status(self) -> str:
        return self._data["status"]

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def message(self) -> str:
        return self._data["message"]

    @property
    def iterations(self) -> int:
        return self._data["iterations"]

    @property
    def restarts(self) -> int:
        return self._data["restarts"]

    @property
    def residual_history(self) -> np.ndarray:
        return np.array(self._data["residual_history"], dtype=np.float64)  # None becomes NaN

    @property
    def true_residual(self) -> float:
        return _number(self._data["true_residual"])

    @property
    def true_relative_residual(self) -> float:
        return _number(self._data["true_relative_residual"])

    @property
    def recurrence_relative_residual(self) -> float:
        return _number(self._data["recurrence_relative_residual"])

    @property
    def condition_estimate(self) -> float:
        return _number(self._data["condition_estimate"])

    @property
    def extreme_eigenvalues(self) -> tuple:
        return _number(self._data["smallest_eigenvalue"]), _number(self._data["largest_eigenvalue"])

    @property
    def timings(self) -> dict:
        data = self._data
        return {"input": data["time_input_s"], "setup": data["time_setup_s"], "solve": data["time_solve_s"],
                **data["time_by_phase_s"]}

    @property
    def bytes(self) -> dict:
        data = self._data
        return {"per_iteration": data["bytes_per_iteration"], "halo_per_iteration": data["halo_bytes_per_iteration"],
                "peak_process": data["peak_process_bytes"]}

    @property
    def choices(self) -> dict:
        return dict(self._data["choices"])

    @property
    def settings(self) -> dict:
        return dict(self._data["settings"])

    def __repr__(self) -> str:
        return (f"<hostless.Result: {self.status} after {counted(self.iterations, 'iteration')}, "
                f"|b - A x| / |b| = {self.true_relative_residual:.3e}, {self.timings['solve']:.3g} s>")

    def _repr_html_(self) -> str:
        data = self._data
        rows = [("residual", f"|b - A x| / |b| = {self.true_relative_residual:.3e} (computed from x)"),
                ("condition", f"at least {self.condition_estimate:.3g}"),
                ("matrix", f"{data['input']}: {data['rows']} rows, {data['entries']} entries"),
                ("time", f"{data['time_solve_s']:.3g} s solve, "
                         f"{data['time_input_s'] + data['time_setup_s']:.3g} s set-up"),
                *data["choices"].items()]
        table = "".join(f"<tr><th style='text-align:left'>{html.escape(str(key))}</th>"
                        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>" for key, value in rows)
        message = f": {html.escape(self.message)}" if self.message else ""
        return (f"<div><b>{html.escape(self.status)}</b> after {counted(self.iterations, 'iteration')}{message}"
                f"{self._curve()}<details><summary>numbers and choices</summary><table>{table}</table></details></div>")

    def _curve(self, width: int = 360, height: int = 90) -> str:
        """The residual against the iteration as a small picture, the residual by its logarithm."""
        history = self.residual_history
        history = history[np.isfinite(history) & (history > 0)]
        if len(history) < 2:
            return ""
        history = history[np.unique(np.linspace(0, len(history) - 1, width).astype(int))]
        logs = np.log10(history)
        low, high = math.floor(logs.min()), math.ceil(logs.max())
        x = np.linspace(2, width - 2, len(logs))
        y = 2 + (height - 4) * (high - logs) / max(high - low, 1)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
        return (f"<svg width='{width}' height='{height}' style='display:block' role='img'>"
                f"<title>|r| against iteration, 1e{high} to 1e{low}</title>"
                f"<polyline points='{points}' fill='none' stroke='#1f6feb' stroke-width='1.5'/></svg>")


def _number(value: Optional[float]) -> float:
    return math.nan if value is None else float(value)

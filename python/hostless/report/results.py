"""What the files of a report hold, and its tables: rows of a name and one cell for each result."""

from dataclasses import dataclass, field
from pathlib import Path

from ..plots import bytes_in_words, points_of, read_json, traffic_of
from . import shapes

WANT = "files of `hostless solve`, `stencil`, `plan` or `bench solve`, each with --json"

# status: (good?, in words, what it means and what to do), as docs/howto/read-the-result.md has them
STATUS = {
    "converged": (True, "converged", "|b − A x|, computed from x, met the tolerance."),
    "iteration_limit": (False, "iteration limit", "The tolerance was not met in the iterations allowed. More iterations, or "
                        "a better preconditioner."),
    "indefinite_matrix": (False, "indefinite matrix", "pᵀA p < 0 was seen: A is not positive definite, or it is singular. "
                          "Check signs and boundary conditions."),
    "indefinite_preconditioner": (False, "indefinite preconditioner", "rᵀM r ≤ 0 was seen. Another preconditioner."),
    "not_finite": (False, "not finite", "NaN or infinity in A, b or x0, or overflow. Scale the system."),
    "breakdown": (False, "breakdown", "A divisor is exactly zero: A is singular."),
    "stagnated": (False, "stagnated", "Restarts from the true residual gained nothing any more: no x reaches b, or rounding is in "
                  "the way. Another method or preconditioner may reach further; else a higher tolerance."),
    "diverged": (False, "diverged", "The true residual grew beyond the divergence limit. Is A symmetric?"),
    "peer_lost": (False, "peer lost", "A rank died, or was silent past the deadline."),
    "aborted": (False, "aborted", "By a signal, a time limit or a callback; x is that of the last complete iteration."),
}


@dataclass
class Solve:
    """One result of `hostless solve`."""

    name: str
    result: dict
    declared_bandwidth: float | None = None  # bytes a second, where nothing was measured

    @property
    def device(self) -> dict:
        return self.result.get("device") or {}

    @property
    def iterations_here(self) -> int:
        """Without those that a checkpoint brought along."""
        return self.result["iterations"] - self.result.get("resumed_at", 0)

    @property
    def us_per_iteration(self) -> float | None:
        """Of the kernels where there are any, else by the clock of the host."""
        if self.iterations_here <= 0:
            return None
        return self.device.get("us_per_iteration") or 1e6 * self.result["time_solve_s"] / self.iterations_here

    @property
    def bytes_per_second(self) -> float | None:
        us = self.us_per_iteration
        if not us:
            return None
        return 1e6 * self.result["bytes_per_iteration"] / us if self.device else self.result["bytes_per_second"]

    @property
    def bandwidth(self):
        """(bytes a second that the memory gives, how that is known), or (None, "")."""
        if self.result.get("measured_bandwidth") and not self.device:
            return self.result["measured_bandwidth"], "measured"
        return (self.declared_bandwidth, "declared") if self.declared_bandwidth else (None, "")

    @property
    def share(self) -> float | None:
        achieved, (most, _) = self.bytes_per_second, self.bandwidth
        return achieved / most if achieved and most else None


@dataclass
class Content:
    """What all files of a report hold."""

    solves: list = field(default_factory=list)  # of Solve
    plans: list = field(default_factory=list)   # (name, plan)
    benches: list = field(default_factory=list)  # (name, report)
    stencils: list = field(default_factory=list)  # (name, result, folder of its file)


def read_all(sources, bandwidth=None) -> Content:
    """Sorts files, dictionaries or objects by what they are. Errors: ValueError for one that is none of them."""
    content, names = Content(), set()
    for number, source in enumerate(sources, 1):
        path, it = read_json(source, WANT)
        name = unique(str(it.get("label") or "") or Path(path).stem or f"result {number}", names)
        if "solves" in it:
            check(path or name, it, shapes.BENCH)
            points_of(it, path or name)
            content.benches.append((name, it))
        elif "per_rank" in it:
            check(path or name, it, shapes.PLAN)
            traffic_of(it, path or name)
            content.plans.append((name, it))
        elif "residual_history" in it:
            check(path or name, it, shapes.SOLVE)
            if it.get("communication"):
                traffic_of(it, path or name)
            content.solves.append(Solve(name, it, bandwidth))
        elif "ranks_along" in it and "bench" not in it:
            check(path or name, it, shapes.STENCIL)
            content.stencils.append((name, it, Path(path).parent))
        else:
            kind = f" (of `hostless bench {it['bench']}`)" if "bench" in it else ""
            raise ValueError(f"{path or name}: neither a result of a solve or stencil nor a plan nor a measurement of solves{kind} (there is nothing "
                             f"to show). Give {WANT}.")
    return content


def check(name: str, it, shape) -> None:
    if problem := shapes.misfit(it, shape):
        raise ValueError(f"{name}: {problem} (of another version, or damaged). Give {WANT} of this version.")


def unique(name: str, names: set) -> str:
    number, first = 1, name
    while name in names:
        number += 1
        name = f"{first} ({number})"
    names.add(name)
    return name


# ---- words

@dataclass
class Cell:
    text: str
    exact: object = ""  # the number as the file has it: shown when pointed at
    kind: str = ""      # good, bad: of a status; text: long words


NOTHING = Cell("–")


def three_digits(value: float) -> str:
    """12.3 and 1.23, zeros at the end kept so that columns can be compared; 1,234 in full."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def seconds(value) -> Cell:
    if value is None:
        return NOTHING
    scale, unit = (1e6, "µs") if abs(value) < 0.9995e-3 else (1e3, "ms") if abs(value) < 0.9995 else (1, "s")
    return Cell(f"{three_digits(value * scale)} {unit}", value)


def microseconds(value) -> Cell:
    return NOTHING if value is None else Cell(f"{three_digits(value)} µs", value)


def whole(value) -> Cell:
    return NOTHING if value is None else Cell(f"{value:,}", value)


def small(value) -> Cell:
    return NOTHING if value is None else Cell(f"{value:.3e}", value)


def amount(value, unit: str = "") -> Cell:
    return NOTHING if value is None else Cell(bytes_in_words(value) + unit, value)


def percent(value) -> Cell:
    return NOTHING if value is None else Cell(f"{100 * value:.0f} %" if value >= 0.0995 else f"{100 * value:.1f} %", value)


def words(value) -> Cell:
    return Cell(str(value), kind="text") if value not in (None, "") else NOTHING


# ---- tables

@dataclass
class Row:
    name: str
    cells: list
    note: str = ""
    differs: bool = False
    begins: bool = False  # another kind of thing than the rows above


def table_of(solves: list, lines) -> list:
    """Rows of (name, note, function of a Solve that gives a Cell); those without anything to say are left out."""
    rows = []
    for name, note, cell_of in lines:
        cells = [cell_of(solve) for solve in solves]
        if any(cell is not NOTHING for cell in cells):
            rows.append(Row(name, cells, note, differs=len({cell.text for cell in cells}) > 1))
    return rows


def status_words(result, known=None) -> tuple:
    """known: as STATUS, of what else than a solve ends."""
    status = str(result["status"])
    return (known or STATUS).get(status, (False, status.replace("_", " "), ""))


def status_cell(one, known=None) -> Cell:
    good, text, _ = status_words(one.result, known)
    return Cell(text, kind="good" if good else "bad")


def verdict(one, sentence: str, known=None) -> dict:
    """What the page says of how it ended: in one sentence, and what that means."""
    good, text, meaning = status_words(one.result, known)
    return {"name": one.name, "good": good, "status": text, "sentence": sentence, "meaning": meaning,
            "message": one.result.get("message") or ""}


def where_cell(solve: Solve) -> Cell:
    choices = solve.result["choices"]
    ranks = choices.get("ranks", "1")
    count = f"{ranks} rank{'s' if ranks != '1' else ''} ({choices.get('transport', 'threads')})"
    return words(count + (f", on GPUs by {choices.get('gpu_transport', 'peer')}" if solve.device and ranks != "1" else
                          ", on a GPU" if solve.device else ""))


def get(*keys):
    """A function of a Solve: what stands under these keys of its result, or None."""
    def value(solve: Solve):
        it = solve.result
        for key in keys:
            it = (it or {}).get(key)
        return it
    return value


def line(name: str, how, value, note: str = "") -> tuple:
    return name, note, lambda solve: how(value(solve))


def only_above_zero(value):
    return lambda solve: value(solve) or None


PROBLEM = (
    line("matrix", words, get("input")),
    line("right-hand side", words, get("right_hand_side")),
    line("rows", whole, get("rows")),
    line("entries", whole, only_above_zero(get("entries"))),
    ("worked on by", "", where_cell),
    line("method", words, get("choices", "method")),
    line("preconditioner", words, get("choices", "preconditioner")),
)
ANSWER = (
    ("status", "", status_cell),
    line("iterations", whole, get("iterations")),
    line("resumed at iteration", whole, only_above_zero(get("resumed_at"))),
    line("restarts", whole, only_above_zero(get("restarts")), "the true residual disagreed with the recurrence"),
    line("replacements", whole, only_above_zero(get("replacements")), "planned true residuals of an fp32 matrix"),
    line("true residual", small, get("true_relative_residual"), "|b − A x| / |b|, computed from x"),
    line("recurrence’s residual", small, get("recurrence_relative_residual"), "what the iteration believed"),
    line("error", small, get("relative_error"), "|x − x*| / |x*|, of a known solution"),
)
TIMES = (
    line("solve", seconds, get("time_solve_s")),
    line("making the solver", seconds, get("time_setup_s")),
    line("reading and laying out", seconds, get("time_input_s")),
    line("an iteration", microseconds, lambda solve: None if solve.device else solve.us_per_iteration),
    line("an iteration in kernels", microseconds, lambda solve: solve.us_per_iteration if solve.device else None),
    line("kernels", seconds, get("device", "time_s")),
    line("launches", whole, get("device", "launches")),
    line("communication overlapped", percent, get("iteration_times", "overlapped"), "what of it lay beside computing, by a trace"),
    line("communication", microseconds, get("iteration_times", "communication_us"), "of an iteration, from its first send to its last arrival"),
    line("exposed communication", microseconds, get("iteration_times", "exposed_us"), "of an iteration, nothing computed beside it"),
    line("computing", microseconds, get("iteration_times", "computing_us"), "of an iteration, by a trace or the phases"),
)
BYTES = (
    line("bytes an iteration", amount, only_above_zero(get("bytes_per_iteration")), "matrix and vectors, by count"),
    ("bytes a second", "matrix and vectors", lambda solve: amount(solve.bytes_per_second, "/s")),
    ("memory gives", "", lambda solve: NOTHING if not solve.bandwidth[0] else Cell(
        f"{bytes_in_words(solve.bandwidth[0])}/s {solve.bandwidth[1]}", solve.bandwidth[0])),
    line("share of bandwidth", percent, lambda solve: solve.share),
    line("sent an iteration", amount, get("halo_bytes_per_iteration"), "between all ranks"),
    line("held on the GPU", amount, get("device", "bytes")),
    line("largest process", amount, get("peak_process_bytes"), "resident memory"),
    line("checkpoints", whole, only_above_zero(get("checkpoints"))),
)


def summary_rows(solves: list) -> list:
    rows = []
    for lines in (ANSWER, PROBLEM, TIMES, BYTES):
        group = table_of(solves, lines)
        if rows and group:
            group[0].begins = True
        rows += group
    return rows


def choice_rows(solves: list) -> list:
    """One row a choice, in the order of the files; `format_why` explains `format`."""
    keys = dict.fromkeys(key for solve in solves for key in solve.result["choices"])
    return table_of(solves, [line(key.replace("_", " "), words, get("choices", key)) for key in keys])


PHASES = (("publish", "forms the field that is sent, and starts the exchange"),
          ("sweep", "multiplies with the matrix, and takes part in a sum"),
          ("rows", "updates vectors row by row, and takes part in a sum"))
WAITS = (("ghosts", "values of other ranks, inside the sweep"), ("sums", "the other ranks' contributions to sums"))


def phases_of(solve: Solve) -> list:
    """[(name, seconds)] of the parts of a solve: on a GPU of its kernels, else of rank 0's phases."""
    total = solve.result["time_solve_s"]
    if solve.device:
        parts = [("kernels", solve.device["time_s"])]
    else:
        times = solve.result["time_by_phase_s"]
        parts = [(name, times.get(name, 0.0)) for name, _ in PHASES]
    return [*parts, ("other", max(0.0, total - sum(time for _, time in parts)))]


def waits_of(solve: Solve) -> list:
    """[(what is waited for, seconds)], inside the phases; nothing on a GPU, whose kernels wait inside."""
    if solve.device:
        return []
    times = solve.result["time_by_phase_s"]
    return [(name, times.get(name, 0.0)) for name, _ in WAITS]


def phase_rows(solves: list) -> list:
    """Microseconds of an iteration by phase, and its share of the solve."""
    notes = {**dict(PHASES), "kernels": "all that ran on the GPU",
             "other": "first and last residuals, and what no phase counts"}
    rows = []

    def add(name, note, parts_of):
        cells = []
        for solve in solves:
            time = dict(parts_of(solve)).get(name)
            if time is None or solve.iterations_here <= 0:
                cells.append(NOTHING)
                continue
            share = time / solve.result["time_solve_s"] if solve.result["time_solve_s"] > 0 else 0.0
            each = 1e6 * time / solve.iterations_here
            cells.append(Cell(f"{microseconds(each).text} ({percent(share).text})", time))
        if any(cell is not NOTHING for cell in cells):
            rows.append(Row(name, cells, note))

    for name in dict.fromkeys(name for solve in solves for name, _ in phases_of(solve)):
        add(name, notes[name], phases_of)
    for name, note in WAITS:
        add(f"waiting for {name}", note, lambda solve: [(f"waiting for {key}", time) for key, time in waits_of(solve)])
    return rows

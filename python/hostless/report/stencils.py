"""What a report says of stencils: how they ended, a table of them side by side, pictures of changes and fields."""

from dataclasses import dataclass
from pathlib import Path

from . import results, stencil_plots
from .results import NOTHING, Cell, get, line

# status: (good?, in words, what it means and what to do)
STATUS = {
    "steps_done": (True, "all steps", ""),
    "steady": (True, "steady", "A step changed every field by at most the tolerance."),
    "not_finite": (False, "not finite", "NaN or infinity appeared. A smaller step in time, or other initial fields."),
    "peer_lost": (False, "peer lost", "A rank died, or was silent past the deadline. Go on from the last checkpoint with --resume."),
    "aborted": (False, "aborted", "By a signal or the time limit; the fields are those of the last step that all ranks took."),
}


@dataclass
class Stencil:
    """One result of `hostless stencil`; folder: where its file lies."""

    name: str
    result: dict
    folder: Path


def verdict(stencil: Stencil) -> dict:
    """One sentence of how it ended."""
    result = stencil.result
    resumed = result.get("resumed_at") or 0
    taken = result["steps"] - resumed
    sentence = f"{steps_in_words(taken)} of {result['problem']} in {results.seconds(result['seconds']).text}"
    if resumed:
        sentence += f", behind {resumed:,} of a run before"
    if result["history"]:
        look = result["history"][-1]
        known = [norm for norm in look["norm"] if norm is not None]
        if known:
            sentence += f"; step {look['step']:,} changed {' and '.join(f'{norm:.3e}' for norm in known)}"
    return results.verdict(stencil, sentence, STATUS)


def steps_in_words(count: int) -> str:
    return f"{count:,} step{'s' if count != 1 else ''}"


def times(sizes) -> str:
    return " x ".join(str(size) for size in sizes)


def parameters_cell(stencil) -> Cell:
    return results.words(", ".join(f"{name} = {value:g}" for name, value in stencil.result["parameters"].items()))


def where_cell(stencil) -> Cell:
    result = stencil.result
    if result.get("gpus"):
        return results.words(f"{result['gpus']} GPU{'s' if result['gpus'] != 1 else ''}, {result.get('gpu_run') or ''}".rstrip(", "))
    ranks = result["ranks"]
    return results.words(f"{ranks} rank{'s' if ranks != 1 else ''} ({times(result['ranks_along'])}), {result['transport']}")


def waiting_cell(stencil) -> Cell:
    total, waited = stencil.result["seconds"], stencil.result["exchange_seconds"]
    return results.percent(waited / total) if total > 0 and not stencil.result.get("gpus") else NOTHING


def cells_cell(stencil) -> Cell:
    value = stencil.result["cells_per_second"]
    return Cell(f"{results.three_digits(1e-6 * value)} million", value) if value else NOTHING


LINES = (
    ("status", "", lambda stencil: results.status_cell(stencil, STATUS)),
    line("steps", results.whole, get("steps")),
    line("resumed at step", results.whole, lambda stencil: stencil.result.get("resumed_at") or None),
    line("stencil", results.words, get("problem")),
    ("cells", "", lambda stencil: results.words(times(stencil.result["size"]))),
    line("type", results.words, get("type")),
    ("boundary", "", lambda stencil: results.words(", ".join(dict.fromkeys(stencil.result["boundary"])))),
    ("parameters", "", parameters_cell),
    line("initial fields", results.words, get("initial")),
    ("stepped by", "", where_cell),
    line("steps between exchanges", results.whole, get("depth")),
    line("steps in one pass over memory", results.whole, get("block_steps")),
    line("time", results.seconds, get("seconds")),
    line("a step", results.microseconds, lambda stencil: stencil.result["microseconds_per_step"] or None),
    ("cells a second", "", cells_cell),
    ("waiting for halos", "of the time, on the slowest rank", waiting_cell),
    line("checkpoints", results.whole, lambda stencil: stencil.result.get("checkpoints") or None),
)


def summary_rows(stencils: list) -> list:
    return results.table_of(stencils, LINES)


def changes_of(stencils: list) -> list:
    """Of those at which somebody looked, as stencil_plots draws them."""
    curves = [stencil_plots.changes_of({**one.result, "label": one.name}) for one in stencils]
    return [curve for curve in curves if curve[1]]


def found(folder: Path, file: str) -> Path:
    """A file that a run named in its own folder: from here, or beside the result."""
    return next((path for path in (folder / file, Path(file), folder / Path(file).name) if path.exists()), folder / file)


def fields_of(stencil: Stencil, pictures) -> list:
    """[(figure or None, words)] of the fields that it wrote: the files are looked for beside the result."""
    fields, files = stencil.result["fields"], stencil.result.get("output") or []
    if files and len(files) != len(fields):
        return [(None, f"{stencil.name}: {len(files)} of {len(fields)} fields were written, so none is drawn (which they are is not told).")]
    told = []
    for field, file in zip(fields, files):
        path = found(stencil.folder, file)
        try:
            array = stencil_plots.read_field(path)
            if list(array.shape) != stencil.result["size"]:
                raise ValueError(f"{path}: {times(array.shape)} cells, and the result is of {times(stencil.result['size'])}")
            plane, words = stencil_plots.plane_of(array)
        except (OSError, ValueError) as error:
            said = f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error).split(". Give")[0]
            told.append((None, f"{stencil.name}: {field} is not drawn ({said})."))
            continue
        caption = f"{stencil.name}: {field} after {steps_in_words(stencil.result['steps'])}" + (f"; {words}" if words else "") + "."
        told.append((pictures.field(plane, array.shape[-2:], caption), ""))
    return told

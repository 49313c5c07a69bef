"""Puts the page together: what the files hold, as tables and pictures, into the template."""

import functools
from datetime import datetime, timezone
from pathlib import Path

from .. import plots
from . import figures, results, stencils


@functools.lru_cache(maxsize=1)  # it keeps the template that it has compiled
def environment():
    """Jinja2's, which escapes everything that a template writes. Errors: ImportError that says what to install."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("jinja2 is missing (it fills the page). Install it with `pip install jinja2`, or Debian's "
                          "python3-jinja2.") from error
    return jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=jinja2.StrictUndefined)


def verdict(solve) -> dict:
    """One sentence of how a solve ended."""
    result = solve.result
    true_residual = result["true_relative_residual"]
    sentence = f"after {result['iterations']:,} iteration{'s' if result['iterations'] != 1 else ''} " \
               f"and {results.seconds(result['time_solve_s']).text}"
    if true_residual is not None:
        sentence += f"; |b − A x| / |b| = {true_residual:.3e}, computed from x"
    return results.verdict(solve, sentence)


def communication_of(content, pictures) -> list:
    """[(name, figure or None, words)] of plans and of results that tell of pairs of ranks."""
    told = []
    for solve in content.solves:
        communication = solve.result.get("communication")
        ranks = str(solve.result["choices"].get("ranks", "1"))
        if ranks == "1":
            continue
        if not communication:
            told.append((solve.name, None, f"{ranks} ranks: who sends what to whom is not in this result. Add a file of "
                         "`hostless plan --json` to the report."))
            continue
        exchanges = communication["exchanges_per_iteration"]
        told.append((solve.name, pictures.communication(solve.name, solve.result),
                     f"{exchanges} exchange{'s' if exchanges != 1 else ''} an iteration."))
    for name, plan in content.plans:
        told.append((name, pictures.communication(name, plan), f"Route {plan['route'].replace('_', ' ')}, {plan['ranks']} "
                     f"ranks on {plan['nodes']} node{'s' if plan['nodes'] != 1 else ''}."))
    return told


def traffic_rows(plan) -> list:
    """Rows of the table of a plan: one a rank, as cells."""
    rows = []
    for rank in plan["per_rank"]:
        cells = [results.whole(rank[key]) for key in ("rank", "node", "owned", "ghosts")]
        for side in ("sent", "received"):
            for place in ("inside", "between"):
                cells += [results.whole(rank[side][f"messages_{place}_nodes"]),
                          results.amount(rank[side][f"bytes_{place}_nodes"])]
        rows.append(cells)
    return rows


WAY_COLUMNS = (("best", "best_us", results.microseconds), ("median", "median_us", results.microseconds),
               ("by the wall", "wall_best_us", results.microseconds), ("iterations", "iterations", results.whole),
               ("communication", "communication_us", results.microseconds), ("of it overlapped", "overlapped", results.percent),
               ("true residual", "true_relative_residual", results.small), ("bits", "bits", results.words))


def table_of_ways(rows) -> dict:
    """Columns that have anything in them, and a row of cells for each way; the fastest is marked."""
    columns = [column for column in WAY_COLUMNS if any(row.get(column[1]) is not None for row in rows)]
    best = min((row["best_us"] for row in rows if row.get("best_us") is not None), default=None)
    told = []
    for row in rows:
        number, counted = (row["gpus"], "GPU") if row["gpus"] else (int(row.get("ranks", 1)), "rank")
        cells = [results.words(figures.way_of(row)), results.Cell(f"{number} {counted}{'s' if number != 1 else ''}")]
        error = row.get("error") or ""
        if not error:
            cells += [cell_of(row.get(key)) for _, key, cell_of in columns]
        told.append({"cells": cells, "error": error, "best": not error and row.get("best_us") == best,
                     "differs": str(row.get("bits", "")).startswith("DIFFER")})
    return {"columns": [name for name, _, _ in columns], "rows": told}


def bench_of(name: str, report, pictures, scaled: set) -> dict:
    """The tables of one measurement, one a matrix, and bars for a matrix that no picture of scaling has."""
    parts = []
    for matrix in dict.fromkeys(row["matrix"] for row in report["solves"]):
        rows = [row for row in report["solves"] if row["matrix"] == matrix]
        timed = [row for row in rows if row.get("best_us") is not None]
        bars = pictures.ways(matrix.split(":")[0], timed) if timed and matrix not in scaled else None
        parts.append({"matrix": matrix, "figure": bars, "table": table_of_ways(rows)})
    return {"name": name, "parts": parts}


def title_of(content) -> str:
    if content.solves:
        inputs = list(dict.fromkeys(str(solve.result["input"]).split(":")[0] for solve in content.solves))
        return "Solves of " + ", ".join(inputs[:3]) + (" and others" if len(inputs) > 3 else "")
    if content.stencils:
        return "Steps of " + ", ".join(dict.fromkeys(result["problem"] for _, result, _ in content.stencils))
    return "Ways of solving" if content.benches else "Plans of exchanges"


def stencils_of(content, pictures) -> dict:
    """What the template shows of stencils; empty where there are none."""
    given = [stencils.Stencil(*one) for one in content.stencils]
    if not given:
        return {}
    return {"names": [one.name for one in given], "verdicts": [stencils.verdict(one) for one in given],
            "summary": stencils.summary_rows(given), "changes": pictures.changes(stencils.changes_of(given)),
            "fields": [told for one in given for told in stencils.fields_of(one, pictures)]}


def make_page(sources, title: str = "", bandwidth: float | None = None) -> str:
    """One self-contained HTML page of results, plans and measurements; it loads nothing and runs nothing.

    sources    of `hostless solve`, `stencil`, `plan` and `bench solve`, each with --json: file names, dictionaries, or
               hostless.Result and Plan; several results stand side by side. Fields that a stencil wrote are drawn where their
               files lie beside its own, of a dictionary where they lie in the working folder
    title      of the page; empty: made from the results
    bandwidth  bytes a second that the memory of a solve can be read at, for results without a measurement
    Returns the text. Errors: ValueError for other input, OSError for files that cannot be read, ImportError without
    matplotlib or jinja2.
    Cost: a second or two, most of it matplotlib's start.
    """
    content = results.read_all(sources, bandwidth)
    template = environment().get_template("page.html.j2")
    solves, reports = content.solves, [report for _, report in content.benches]
    results_of_stencils = [result for _, result, _ in content.stencils]
    told = [*(solve.result for solve in solves), *results_of_stencils, *reports]
    programs = dict.fromkeys(one["program"] for one in told if one.get("program"))
    with figures.Pictures() as pictures:
        scaling, scaled = pictures.scaling(reports)
        return template.render(
            title=title or title_of(content), programs=list(programs), made=f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
            names=[solve.name for solve in solves], verdicts=[verdict(solve) for solve in solves],
            summary=results.summary_rows(solves), choices=results.choice_rows(solves),
            phase_table=results.phase_rows(solves), convergence=pictures.convergence(solves), phases=pictures.phases(solves),
            bandwidth=pictures.bandwidth(solves), stencils=stencils_of(content, pictures), communication=communication_of(content, pictures),
            plans=[{"name": name, "rows": traffic_rows(plan)} for name, plan in content.plans], scaling=scaling,
            benches=[bench_of(name, report, pictures, scaled) for name, report in content.benches])

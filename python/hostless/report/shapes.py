"""What the files of a report must look like, so that a damaged one is named and nothing else fails later.

A shape is a type or a tuple of types, [shape] for a list of such, {...: shape} for a dictionary of any keys, or a
dictionary of keys and their shapes; a key that ends with ? may be missing, or be null.
"""

NUMBER, NUMBER_OR_NULL = (int, float), (int, float, type(None))
INTEGERS = [int]
PAIRS = {"source": INTEGERS, "target": INTEGERS, "messages": INTEGERS, "bytes": INTEGERS}

SOLVE = {
    "program?": str, "status": str, "message?": str, "input": str, "right_hand_side?": str, "rows": int, "entries": int, "iterations": int,
    "resumed_at?": int, "restarts?": int, "replacements?": int, "rhs_norm?": NUMBER,
    "true_relative_residual": NUMBER_OR_NULL, "recurrence_relative_residual?": NUMBER, "relative_error?": NUMBER,
    "time_input_s?": NUMBER, "time_setup_s?": NUMBER, "time_solve_s": NUMBER, "time_by_phase_s": {...: NUMBER},
    "iteration_times?": {"clock": str, "iterations": int, "communication_us?": NUMBER, "overlapped?": NUMBER,
                         **{f"{part}_us": NUMBER for part in ("iteration", "computing", "exposed", "idle")}},
    "device?": {"time_s": NUMBER, "us_per_iteration": NUMBER, "launches": int, "bytes": int},
    "bytes_per_iteration": int, "halo_bytes_per_iteration?": int,
    "communication?": {"exchanges_per_iteration": int, "node": INTEGERS, "pairs": PAIRS}, "bytes_per_second": NUMBER,
    "measured_bandwidth?": NUMBER, "peak_process_bytes?": int, "checkpoints?": int, "choices": {...: str},
    "residual_history": [NUMBER_OR_NULL]}

TRAFFIC = {f"{what}_{where}_nodes": int for what in ("messages", "bytes") for where in ("inside", "between")}
PLAN = {"route": str, "ranks": int, "nodes": int, "pairs": PAIRS,
        "per_rank": [{"rank": int, "node": int, "owned": int, "ghosts": int, "sent": TRAFFIC, "received": TRAFFIC}]}

STENCIL = {
    "program?": str, "problem": str, "size": INTEGERS, "type": str, "boundary": [str], "parameters": {...: NUMBER}, "fields": [str],
    "initial?": str, "transport": str, "ranks": int, "ranks_along": INTEGERS, "gpus?": int, "gpu_run?": str, "depth": int,
    "block_steps": int, "resumed_at?": int, "steps": int, "status": str, "message?": str, "seconds": NUMBER,
    "exchange_seconds": NUMBER, "microseconds_per_step": NUMBER_OR_NULL, "cells_per_second": NUMBER_OR_NULL, "checkpoints?": int,
    "history": [{"step": int, "norm": [NUMBER_OR_NULL], "largest": [NUMBER_OR_NULL]}], "output?": [str]}

BENCH = {"program?": str, "transport?": str, "solves": [{
    "matrix": str, "method?": str, "run": str, "ranks?": int, "gpus": int, "gpu_transport?": str, "error?": str,
    "best_us?": NUMBER, "median_us?": NUMBER, "wall_best_us?": NUMBER, "iterations?": int,
    "true_relative_residual?": NUMBER, "overlapped?": NUMBER, "communication_us?": NUMBER, "bits?": str, "choices?": {...: str}}]}


def misfit(it, shape, where: str = "") -> str:
    """The first place that has another shape, in words; empty where all fits."""
    if isinstance(shape, list):
        if not isinstance(it, list):
            return f"{where} is no list"
        return first(misfit(one, shape[0], f"{where}[{k}]") for k, one in enumerate(it))
    if not isinstance(shape, dict):
        # True is an int to Python, and no number to anybody else.
        return "" if isinstance(it, shape) and not isinstance(it, bool) else f"{where} is {str(it)[:40]!r}"
    if not isinstance(it, dict):
        return f"{where} is no object"
    if ... in shape:
        return first(misfit(one, shape[...], f"{where}.{key}") for key, one in it.items())
    return first(member(it, key, inner, where) for key, inner in shape.items())


def member(it: dict, key: str, shape, where: str) -> str:
    name = key.rstrip("?")
    place = f"{where}.{name}".lstrip(".")
    if name != key and it.get(name) is None:
        return ""
    return misfit(it[name], shape, place) if name in it else f"{place} is missing"


def first(complaints) -> str:
    return next((complaint for complaint in complaints if complaint), "")

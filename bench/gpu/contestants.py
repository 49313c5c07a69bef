"""Who takes part in bench/gpu/compare.py: how each is started, and how what it prints is read."""

import dataclasses
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

import rivals as named
from linear_system import Wrong

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Contestant:
    """One line of the table."""
    name: str
    command: list
    ours: bool = False
    processes: int = 1  # hostless solves once a process; the rivals here repeat inside
    allowed: tuple = (0,)  # exit codes
    prepare: object = None  # of rivals that the caller names: writes their files, returns the command
    read: object = None  # (contestant, what its processes have printed) -> Outcome; None: the JSON of ours and of rivals here


@dataclasses.dataclass
class Outcome:
    """What a contestant says of itself, and where its x is."""
    name: str
    ours: bool
    us: dict  # best, median, worst
    iterations: int  # None: it does not say
    claimed_residual: float  # None: it claims none
    bytes_per_iteration: float  # None: nobody knows
    details: dict
    residual: float = None  # both by the judge
    error: float = None
    answers: bool = True  # whether there is an x, of the b that all solve, for the judge


def rivals(options, matrix_file, rhs_file, x_file):
    common = [matrix_file, rhs_file, "--iterations", options.iterations, "--warm-up", options.warm_up, "--repeats",
              options.repeats, "--output", x_file]
    return {
        "plain": Contestant("cuSPARSE + cuBLAS, scalars on the host", [options.plain, *common]),
        "plain-device": Contestant("cuSPARSE + cuBLAS, scalars on the device",
                                   [options.plain, *common, "--scalars", "device"]),
        "cupy": Contestant("cupy cg", [sys.executable, HERE / "cupy_cg.py", *common]),
    }


def named_rival(one, options, judge, stem, x_file):
    """A rival of the caller's (rivals.Rival)."""
    def prepare():
        return named.prepare(one, options, judge.matrix, judge.rhs, stem, x_file)

    def read(contestant, printed):
        us, made = named.figures(one, [done.stdout + "\n" + done.stderr for done in printed], options.iterations)
        answers = named.keep_printed_answer(one, printed[-1].stdout, judge.matrix.rows, x_file)
        return Outcome(contestant.name, False, us, made, None, None, {}, answers=answers)

    return Contestant(one.name, [], processes=options.repeats, prepare=prepare, read=read)


APART = ("merge", "vendor")  # formats whose product is a kernel of its own, in an order of sums of its own


def goes(run, storage):
    """Whether this run knows this format."""
    return storage not in APART or run in ("graph", "stream")


def hostless(options, problem, run, storage, matrix_file, rhs_file, x_file):
    """`storage`: a format, or format:columns."""
    matrix = problem.generator(options) if options.generated else [matrix_file]
    kind, _, columns = storage.partition(":")
    command = [options.hostless, "solve", *matrix, rhs_file, "--run", run, "--format", kind,
               *(["--columns", columns] if columns else []), *(["--reduction", "fast"] if kind in APART else []),
               *shlex.split(options.hostless_options), "--rtol", 0, "--max-iterations", options.iterations,
               "--no-bandwidth", "--json", "-", "--output", x_file]
    # 1: the limit of iterations was reached, which is what was asked for.
    return Contestant(f"hostless {run}, {storage}", command, ours=True, processes=options.repeats, allowed=(0, 1))


def call(command, limit, allowed=(0,)):
    """What a command has printed; Wrong when it fails or takes more than `limit` seconds. Numbers are printed plainly."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=limit,
                              stdin=subprocess.DEVNULL, check=False, env={**os.environ, "LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        raise Wrong(f"took more than {limit:g} s ({' '.join(words)})") from None
    except OSError as problem:
        raise Wrong(f"{words[0]} does not start: {problem.strerror}") from None
    if done.returncode not in allowed:
        said = done.stderr.strip().splitlines()
        raise Wrong(f"exit code {done.returncode}: {said[-1] if said else 'it said nothing'} ({' '.join(words)})")
    return done


def microseconds(result):
    """(us an iteration, whose clock) of a result of `hostless solve`. Only a run on the host may lack the device's."""
    if result["choices"]["run"] == "host":
        return 1e6 * result["time_solve_s"] / max(result["iterations"], 1), "host"
    return float(result["device"]["us_per_iteration"]), "device"


def of_hostless(contestant, results):
    times = [microseconds(result) for result in results]
    us = [value for value, _ in times]
    last = results[-1]
    return Outcome(contestant.name, True, {"best": min(us), "median": statistics.median(us), "worst": max(us)},
                   min(result["iterations"] for result in results), last["true_relative_residual"],
                   last["bytes_per_iteration"],
                   {"clock": times[-1][1], "status": last["status"], "choices": last["choices"],
                    "recurrence_relative_residual": last["recurrence_relative_residual"], "us": us})


def of_rival(contestant, result):
    # What a CSR solve must move that fuses nothing: 12 bytes an entry, 4 an offset, and 14 passes over vectors (product 2,
    # dot 2, three axpys 9, norm 1).
    unfused = 12 * result["nonzeros"] + 116 * result["rows"]
    details = {key: result[key] for key in ("contestant", "device", "product", "recurrence_relative_residual")
               if key in result}
    return Outcome(contestant.name, False, result["us_per_iteration"], result["iterations"],
                   float(result["true_relative_residual"]), unfused, details)


def outcome_of(contestant, limit):
    """Runs it as often as it needs. Wrong when it fails or prints what cannot be read."""
    begin = time.monotonic()
    print(f"  {contestant.name}", end="", file=sys.stderr, flush=True)
    try:
        command = contestant.prepare() if contestant.prepare else contestant.command
        printed = [call(command, limit, contestant.allowed) for _ in range(contestant.processes)]
    finally:
        print(f": {time.monotonic() - begin:.1f} s in all", file=sys.stderr, flush=True)
    try:
        outcome = read(contestant, printed)
    except (ValueError, KeyError, TypeError) as problem:
        raise Wrong(f"its JSON is not as expected: {problem!r}") from None
    outcome.details["command"] = shlex.join(map(str, command))
    return outcome


def read(contestant, printed):
    if contestant.read:
        return contestant.read(contestant, printed)
    results = [json.loads(done.stdout) for done in printed]
    return of_hostless(contestant, results) if contestant.ours else of_rival(contestant, results[0])

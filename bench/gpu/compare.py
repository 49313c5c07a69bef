#!/usr/bin/env python3
"""Compares hostless on GPUs with plain cuSPARSE + cuBLAS conjugate gradients, with cupy's and with whatever else has a
command, in one run.

  nvcc -std=c++20 -O3 -arch=sm_90 -o plain_cg bench/gpu/plain_cg.cu -lcusparse -lcublas
  bench/gpu/compare.py --hostless build/apps/hostless/hostless --plain ./plain_cg --must > table.md
  bench/gpu/compare.py --hostless build/apps/hostless/hostless --rivals '' --rival 'aCG=acg-cuda --binary {matrix-acg} \
      {rhs-acg} --solver acg --residual-rtol {tolerance} --max-iterations {iterations} --warmup {warm-up} --numfmt %.17g'

Every contestant reads the same matrix and the same b = A x* (x* uniform in [-1, 1], normalised), starts from x = 0 and
makes the same number of iterations, tolerance zero. The rivals time whole solves after a warm-up; hostless' time is
device.us_per_iteration of its result, one process a repeat. Every answer is judged here, from the x that the contestant
wrote. Prints one table in Markdown and writes all figures to --json; what happens meanwhile goes to standard error.
Exit code 1: a contestant failed, an answer is wrong or differs from the others', or (--must) hostless misses a target.
What --rival, --rival-time and --rival-iterations take is said at the top of bench/gpu/rivals.py.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import contestants
import rivals
from linear_system import Judge, Matrix, Wrong, write_vector
from rival_files import read_answer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "hostless"))
from _whole_file import write_whole  # noqa: E402

BANDWIDTH = 4.5e12  # bytes a second that one H200 reads
RUNS = "stream,graph,persistent"


@dataclasses.dataclass
class Problem:
    """A generated matrix; must and aim: microseconds an iteration, only for the whole size."""
    name: str
    kind: str
    size: tuple
    small: tuple
    unknowns: int
    formats: str
    must: float
    aim: float

    def sides(self, options):
        return self.small if options.small else self.size

    def rows(self, options):
        return math.prod(self.sides(options)) * self.unknowns

    def generator(self, options):
        return ["--generate", self.kind, "--size", ",".join(map(str, self.sides(options)))]


ROWS = "auto,diagonals-full,sell,csr,merge,vendor"
PROBLEMS = [
    Problem("hex8, 3 dof", "elasticity-hex8", (10, 108, 483), (3, 4, 5), 3,
            "auto,diagonals,diagonals-full,csr,merge,vendor", 300, 265),
    Problem("7-point", "poisson7", (128, 128, 128), (8, 8, 8), 1, ROWS, 90, 75),
    Problem("5-point", "poisson2d", (1259, 1259), (24, 24), 1, ROWS, 56, 46),
    Problem("triangular 7-point", "poisson2d-tri", (452, 452), (20, 20), 1, ROWS, 10, 7.5),
]
RIVALS = "plain,plain-device,cupy"


def whole(least):
    def number(text):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} (needed is {least} or more)")
        return value
    return number


def one_of(known):
    def names(text):
        chosen = [name for name in text.split(",") if name]
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no '{name}'. Use {', '.join(known)}")
        return chosen
    return names


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = [problem.kind for problem in PROBLEMS]
    parser.add_argument("--hostless", required=True, help="the hostless program")
    parser.add_argument("--plain", default="./plain_cg", help="the program of plain_cg.cu (default ./plain_cg)")
    parser.add_argument("--only", type=one_of(kinds), default=kinds, help=f"of {','.join(kinds)}")
    parser.add_argument("--rivals", type=one_of(RIVALS.split(",")), default=RIVALS.split(","),
                        help=f"of {RIVALS}; '' for none")
    parser.add_argument("--rival", action="append", default=[], metavar="NAME=COMMAND",
                        help="a rival's command with {matrix} and {iterations}; may be given several times")
    parser.add_argument("--rival-time", action="append", default=[], metavar="NAME=PATTERN",
                        help="finds its time: a regular expression with a group (?P<s>...), or ms, us, ns, s_per_iteration ...")
    parser.add_argument("--rival-iterations", action="append", default=[], metavar="NAME=PATTERN",
                        help="finds its iterations: a regular expression with one group")
    parser.add_argument("--runs", default=RUNS, help=f"of hostless (default {RUNS})")
    parser.add_argument("--formats", default="auto", help="of hostless, as FORMAT or FORMAT:COLUMNS, comma-separated; "
                        "'all' takes those of a GPU that suit the matrix; merge and vendor take part with --reduction fast "
                        "in the runs graph and stream (default auto)")
    parser.add_argument("--hostless-options", default="--gpus 1", help="default '--gpus 1'")
    parser.add_argument("--generated", action="store_true",
                        help="hostless generates its rows, equal bit for bit, instead of reading the file (faster)")
    parser.add_argument("--iterations", type=whole(1), help="default 1000; with --small 10")
    parser.add_argument("--repeats", type=whole(1), default=3)
    parser.add_argument("--warm-up", type=whole(0), default=10,
                        help="iterations of the rivals before the timed ones (of one that is named, where its command says so)")
    parser.add_argument("--small", action="store_true", help="tiny matrices, to try things out")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which one process is ended")
    parser.add_argument("--folder", help="keeps the matrices here and uses those that are there (default: temporary)")
    parser.add_argument("--json", default="out/gpu-comparison.json", help="default out/gpu-comparison.json")
    parser.add_argument("--must", action="store_true", help="fail when hostless' best is above the target")
    options = parser.parse_args(argv)
    options.iterations = options.iterations or (10 if options.small else 1000)
    if options.must and options.small:
        parser.error("--must with --small (targets hold for the whole size). Drop one")
    try:
        rivals.named_rivals(options)
    except ValueError as problem:
        parser.error(str(problem))
    return options


def judged(outcome, judge, x_file):
    if not outcome.answers:
        return outcome
    x = read_answer(x_file, judge.matrix.rows)
    outcome.residual, outcome.error = judge.residual(x), judge.error(x)
    return outcome


# What another order of sums may change: seen on hosts after 1,000 iterations of these matrices, a quarter in residuals
# and 1.5 % in errors.
LIKENESS = {"residual": 2.0, "error": 1.25}


def about_equal(a, b, factor):
    low, high = sorted((a, b))
    return math.isfinite(low) and math.isfinite(high) and (high <= factor * low or high < 1e-10)


def complaints(outcomes, iterations):
    """What is wrong with these answers of one matrix; nothing, if all is well."""
    found = []
    for one in outcomes:
        if one.iterations is None and not one.answers:
            found.append(f"{one.name}: says neither how many iterations it made nor what x is (nothing shows what was timed)")
        if one.iterations not in (None, iterations):
            found.append(f"{one.name}: {one.iterations} iterations instead of {iterations}")
        if not one.answers:
            continue
        if one.claimed_residual is not None and not about_equal(one.claimed_residual, one.residual, LIKENESS["residual"]):
            found.append(f"{one.name}: says its residual is {one.claimed_residual:.3e}, but it is {one.residual:.3e}")
        if not one.error < 1:
            found.append(f"{one.name}: |x - x*| / |x*| = {one.error:.3e}, no better than x = 0")
    for what, factor in LIKENESS.items():
        ranked = sorted((getattr(one, what), one.name) for one in outcomes if one.answers)
        if ranked and not about_equal(ranked[0][0], ranked[-1][0], factor):
            (low, first), (high, last) = ranked[0], ranked[-1]
            found.append(f"{first} and {last}: {what}s of {low:.3e} and {high:.3e}")
    return found


def all_contestants(options, problem, files, judge=None):
    """`judge` has the matrix and b that named rivals are given; their files are written when it is their turn."""
    known = contestants.rivals(options, *files)
    stem = str(files[0]).removesuffix(".petsc")
    others = [contestants.named_rival(one, options, judge, stem, files[2]) for one in rivals.named_rivals(options).values()]
    storages = problem.formats if options.formats == "all" else options.formats
    ours = [contestants.hostless(options, problem, run, storage, *files)
            for run in options.runs.split(",") for storage in storages.split(",") if contestants.goes(run, storage)]
    return [known[name] for name in options.rivals] + others + ours


def matrix_of(options, problem, path):
    """Written by hostless once, read here for the judge."""
    if not path.exists():
        kind, sides = problem.kind, ",".join(map(str, problem.sides(options)))
        contestants.call([options.hostless, "generate", kind, "--size", sides, "-o", path, "--ranks",
                          min(16, os.cpu_count() or 1)], options.limit)
    matrix = Matrix.read(path)
    if matrix.rows != problem.rows(options):
        raise Wrong(f"{path}: {matrix.rows} rows instead of {problem.rows(options)}. Remove it")
    return matrix


def compare(options, problem, folder):
    """One matrix: (rows, nonzeros, outcomes, [(contestant's name, why it failed)])."""
    stem = "-".join([problem.kind, *map(str, problem.sides(options))])
    files = [folder / f"{stem}{end}" for end in (".petsc", "-b.petsc", "-x.petsc")]
    matrix = matrix_of(options, problem, files[0])
    judge = Judge(matrix)
    write_vector(files[1], judge.rhs)
    outcomes, failed = [], []
    for contestant in all_contestants(options, problem, files, judge):
        files[2].unlink(missing_ok=True)  # nobody is judged by the x of another
        try:
            outcomes.append(judged(contestants.outcome_of(contestant, options.limit), judge, files[2]))
        except (Wrong, OSError) as problem_of_it:
            failed.append((contestant.name, str(problem_of_it)))
    return matrix.rows, matrix.nonzeros, outcomes, failed


def best_of_hostless(outcomes):
    return min((one for one in outcomes if one.ours), key=lambda one: one.us["best"], default=None)


def share(outcome):
    """Of the bandwidth, by the bytes that the method must move."""
    if outcome.bytes_per_iteration is None:
        return None
    return outcome.bytes_per_iteration / (1e-6 * outcome.us["best"]) / BANDWIDTH


HEADER = ("| matrix | contestant | us/iteration, best | median | spread | times hostless' best | iterations "
          "| true residual | MB/iteration | share of 4.5 TB/s |\n" + "|---" * 10 + "|")


def lines(name, outcomes, failed):
    """This matrix' lines of the table."""
    ours = best_of_hostless(outcomes)
    printed = []
    for one in outcomes:
        us, part = one.us, share(one)
        cells = [name, f"**{one.name}**" if one is ours else one.name.replace("|", "/"), f"{us['best']:.2f}", f"{us['median']:.2f}",
                 f"{100 * (us['worst'] - us['best']) / us['median']:.1f} %",
                 f"{us['best'] / ours.us['best']:.2f}" if ours else "",
                 "not said" if one.iterations is None else str(one.iterations),
                 f"{one.residual:.3e}" if one.answers else "no x to judge",
                 "" if part is None else f"{1e-6 * one.bytes_per_iteration:.1f}", "" if part is None else f"{100 * part:.0f} %"]
        printed.append("| " + " | ".join(cells) + " |")
    printed += [f"| {name} | {who} | failed: {why.replace('|', '/')} |" + " |" * 7 for who, why in failed]
    return printed


def against_targets(problem, outcomes):
    """(one line, whether `must` is reached)"""
    ours = best_of_hostless(outcomes)
    if ours is None:
        return f"{problem.name}: hostless has no result", False
    best = ours.us["best"]
    verdicts = [f"{what} {limit:g}: {'reached' if best <= limit else 'missed'}"
                for what, limit in (("must", problem.must), ("aim", problem.aim))]
    return f"{problem.name}: {ours.name} {best:.2f} us; {', '.join(verdicts)}", best <= problem.must


def device():
    """What nvidia-smi calls the GPU; None where there is none."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def compare_all(options, folder):
    """Prints as it goes and keeps the JSON file up to date: a machine may be taken away. Returns what is wrong."""
    record = {"device": device(), "bandwidth": BANDWIDTH, "options": vars(options), "matrices": [], "failures": []}
    failures, verdicts = record["failures"], []
    file = pathlib.Path(options.json)
    file.parent.mkdir(parents=True, exist_ok=True)
    print(HEADER)
    for problem in (p for p in PROBLEMS if p.kind in options.only):
        print(problem.name, file=sys.stderr, flush=True)
        try:
            rows, nonzeros, outcomes, failed = compare(options, problem, folder)
        except (Wrong, OSError) as why:
            rows, nonzeros, outcomes, failed = problem.rows(options), None, [], [("all", str(why))]
        print("\n".join(lines(problem.name, outcomes, failed)), flush=True)
        failures += [f"{problem.name}, {who}: {why}" for who, why in failed]
        failures += [f"{problem.name}, {what}" for what in complaints(outcomes, options.iterations)]
        if not options.small:
            verdict, reached = against_targets(problem, outcomes)
            verdicts.append(verdict)
            failures += [verdict] if options.must and not reached else []
        record["matrices"].append({
            "name": problem.name, "kind": problem.kind, "size": problem.sides(options), "rows": rows,
            "nonzeros": nonzeros,
            "contestants": [{**dataclasses.asdict(one), "share": share(one)} for one in outcomes]})
        write_whole(file, json.dumps(record, indent=1) + "\n")
    print("\n" + "\n".join(f"- {verdict}" for verdict in verdicts) if verdicts else "", flush=True)
    return failures


def main(argv=None):
    options = arguments(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="hostless-") as temporary:
            folder = pathlib.Path(options.folder or temporary)
            folder.mkdir(parents=True, exist_ok=True)
            failures = compare_all(options, folder)
    except OSError as problem:
        failures = [str(problem)]
    for failure in failures:
        print(f"compare: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

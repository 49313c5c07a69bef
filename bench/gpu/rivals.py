"""Rivals that the caller of bench/gpu/compare.py names: --rival 'name=command'.

What the driver puts into a command, each into the word it stands in (no shell is started; "{{" is a brace):

  {matrix}      the matrix in Matrix Market, symmetric         {rhs}      b in Matrix Market, an array
  {matrix-acg}  in aCG's binary form, integers of 4 bytes      {rhs-acg}  b in that form
  {matrix-acg64}  the same with integers of 8 bytes
  {matrix-petsc}  in PETSc's binary form                       {rhs-petsc}  b in that form
  {iterations}  how many to make                               {tolerance}  0
  {warm-up}     of --warm-up                                   {x}  where to write x, in PETSc's form or as an array of Matrix Market

A command must take a matrix and the iterations. x is judged where b was given and x was written, or printed as an array
of Matrix Market, which is what aCG does. Each process is one repeat; it runs with LC_ALL=C.

Its time is found in what it prints (standard output, then standard error) by --rival-time 'name=regular expression'
with one named group: s, ms, us or ns for the time of a whole solve, s_per_iteration and so on for that of an iteration;
a group named solves divides. --rival-iterations 'name=regular expression', with one group, finds the iterations made.
The last match counts. Without them a line of JSON as plain_cg prints it is taken, else what aCG, PETSc (-log_view and
-ksp_converged_reason) and AmgX say.
"""

import dataclasses
import json
import pathlib
import re
import shlex
import statistics

import rival_files
from linear_system import Wrong, write_vector

PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
MATRICES = {"matrix": (".mtx", rival_files.write_market),
            "matrix-acg": (".acg", rival_files.write_acg),
            "matrix-acg64": (".acg64", lambda path, matrix: rival_files.write_acg(path, matrix, 8)),
            "matrix-petsc": (".petsc", None)}  # there already
VECTORS = {"rhs": ("-b.mtx", rival_files.write_market_vector),
           "rhs-acg": ("-b.acg", rival_files.write_acg_vector),
           "rhs-petsc": ("-b.petsc", write_vector)}
NUMBERS = ("iterations", "tolerance", "warm-up", "x")
UNITS = {f"{unit}{of}": (factor, bool(of)) for unit, factor in (("s", 1e6), ("ms", 1e3), ("us", 1.0), ("ns", 1e-3))
         for of in ("", "_per_iteration")}
TIMES = (r"^\s*total solver time: (?P<s>\S+) seconds",  # aCG
         r"^KSPSolve +(?P<solves>\d+) +\S+ +(?P<s>\S+)",  # PETSc, the slowest rank
         r"^\s*solve\(per iteration\): (?P<s_per_iteration>\S+) s")  # AmgX
ITERATIONS = (r"^\s*total iterations: (\d+)", r"^\s*Linear solve .*iterations (\d+)", r"^\s*Total Iterations: (\d+)")


@dataclasses.dataclass
class Rival:
    name: str
    words: list  # of its command, with places
    times: tuple = TIMES
    iterations: tuple = ITERATIONS

    def places(self):
        return {place for word in self.words for place in PLACE.findall(word) if place}

    def command(self, values):
        """Its words, each place replaced by its value."""
        def value(match):
            return match[0][0] if match[1] is None else str(values[match[1]])
        return [PLACE.sub(value, word) for word in self.words]

    def is_told(self):
        """Whether it solves the b that everybody solves."""
        return bool(self.places() & VECTORS.keys())


def named(text, option):
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise ValueError(f"{option} {text} (a name and what belongs to it are needed). Write 'name=...'")
    return name, rest


def checked_pattern(text, option, name):
    try:
        return re.compile(text, re.M)
    except re.error as why:
        raise ValueError(f"{option} of {name}: {text} ({why}). Correct the regular expression") from None


def rival(name, command):
    try:
        found = Rival(name, shlex.split(command))
    except ValueError as why:
        raise ValueError(f"--rival {name}: {command} ({why}). Close what is open") from None
    known = (*MATRICES, *VECTORS, *NUMBERS)
    for place in found.places():
        if place not in known:
            raise ValueError(f"--rival {name}: {{{place}}} (nothing is known by that name). Use {', '.join(known)}")
    if not found.places() & MATRICES.keys():
        raise ValueError(f"--rival {name}: no matrix in its command (it would solve another one). Write {{matrix}} or a form of it")
    if "iterations" not in found.places():
        raise ValueError(f"--rival {name}: no {{iterations}} in its command (all contestants make as many). Write it")
    return found


def named_rivals(options):
    """The rivals of --rival, --rival-time and --rival-iterations, by name; ValueError says what is wrong with them."""
    found = {}
    for text in options.rival:
        name, command = named(text, "--rival")
        if name in found:
            raise ValueError(f"--rival {name}: there are two of that name (a table needs one each). Rename one")
        found[name] = rival(name, command)
    for option, texts, field in (("--rival-time", options.rival_time, "times"),
                                 ("--rival-iterations", options.rival_iterations, "iterations")):
        for text in texts:
            name, pattern = named(text, option)
            if name not in found:
                raise ValueError(f"{option} {name}: there is no --rival of that name. Name one of {', '.join(found) or 'none'}")
            compiled = checked_pattern(pattern, option, name)
            if field == "times" and len(compiled.groupindex.keys() & UNITS.keys()) != 1:
                raise ValueError(f"--rival-time of {name}: {pattern} (its unit is the name of a group). "
                                 f"Write one group (?P<unit>...), unit one of {', '.join(UNITS)}")
            if field == "iterations" and compiled.groups != 1:
                raise ValueError(f"--rival-iterations of {name}: {pattern} (one group is needed). Put the number in brackets")
            setattr(found[name], field, (pattern,))
    return found


def prepare(one, options, matrix, rhs, stem, x_file):
    """Writes the files that its command names where they are not there yet; its command."""
    values = {"iterations": options.iterations, "tolerance": 0, "warm-up": options.warm_up, "x": x_file}
    for forms, content in ((MATRICES, matrix), (VECTORS, rhs)):
        for place in one.places() & forms.keys():
            end, write = forms[place]
            path = values[place] = pathlib.Path(f"{stem}{end}")
            if write is not None and not path.exists():
                write(path, content)
    return one.command(values)


def number(text, what):
    try:
        return float(text)
    except ValueError:
        raise Wrong(f"its {what} is '{text}' (no number). Give a regular expression whose group is one") from None


def last_match(patterns, text):
    """Of the first pattern that is found at all."""
    for pattern in patterns:
        match = None
        for match in re.finditer(pattern, text, re.M):
            pass
        if match is not None:
            return match
    return None


def said_as_json(text):
    """What a line as plain_cg's says, or None."""
    for line in reversed(text.splitlines()):
        if line.startswith("{") and '"us_per_iteration"' in line:
            try:
                said = json.loads(line)
                return float(said["us_per_iteration"]["best"]), said.get("iterations")
            except (ValueError, KeyError, TypeError) as why:
                raise Wrong(f"its JSON is not as plain_cg's: {why!r}") from None
    return None


def time_and_iterations(one, printed, asked):
    """(microseconds an iteration, iterations made or None) of what one process has printed."""
    if one.times is TIMES and (said := said_as_json(printed)) is not None:
        return said
    found = last_match(one.iterations, printed)
    made = None if found is None else int(number(found[1], "number of iterations"))
    match = last_match(one.times, printed)
    if match is None:
        raise Wrong(f"no time in what it printed (looked for: {' | '.join(one.times)}). Give --rival-time")
    groups = match.groupdict()
    unit = next(name for name in UNITS if name in groups)
    factor, of_an_iteration = UNITS[unit]
    us = factor * number(groups[unit], "time") / number(groups.get("solves", "1"), "number of solves")
    us = us if of_an_iteration else us / (made or asked)
    if not us > 0:
        raise Wrong(f"its time is {us:g} us an iteration ({match[0].strip()}). Give a --rival-time that finds the right one")
    return us, made


def keep_printed_answer(one, printed, rows, x_file):
    """Whether there is an x to judge; one that was printed is moved to x_file."""
    if not one.is_told():
        return False
    if "x" in one.places():
        return True
    if not rival_files.has_vector(printed):
        return False
    write_vector(x_file, rival_files.market_vector(printed, rows, f"what {one.name} printed"))
    return True


def figures(one, printed, asked):
    """({best, median, worst} microseconds, fewest iterations or None) over its processes."""
    pairs = [time_and_iterations(one, text, asked) for text in printed]
    us = [value for value, _ in pairs]
    made = [count for _, count in pairs]
    return ({"best": min(us), "median": statistics.median(us), "worst": max(us)},
            None if None in made else next((count for count in made if count != asked), asked))

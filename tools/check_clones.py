#!/usr/bin/env python3
"""Finds copied code: runs of at least --window equal lines that stand in two places of include/, src/ and apps/.

Lines are compared without white space, comments and string contents; blank lines, lone braces, includes and
namespace lines do not count. Prints every run and the clone rate (lines inside a copied run / all lines);
fails above --most per cent. Tests are not looked at: their likeness is often the point.
"""

import re
import sys
from collections import defaultdict

from repository import CPP, arguments, files, finish, text

IGNORED = re.compile(r"^(|[{}();,]+|#(include|pragma|endif|else).*|(inline)?namespace.*|"
                     r"(public|private|protected):|using[\w:]+;|default:|break;)$")
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STRING_OR_LINE_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*')


def normalised(source: str) -> list:
    """[(line number, normalised text)] of the lines that count."""
    source = BLOCK_COMMENT.sub(lambda m: "\n" * m.group().count("\n"), source)
    source = STRING_OR_LINE_COMMENT.sub(lambda m: '""' if m.group().startswith('"') else "", source)
    lines = ((number, re.sub(r"\s+", "", line)) for number, line in enumerate(source.split("\n"), 1))
    return [(number, line) for number, line in lines if not IGNORED.match(line)]


def runs(sources: dict, window: int) -> tuple:
    """(copied lines by file, [(file, first line, last line, other file, its first line)]) for maximal runs."""
    seen = defaultdict(list)
    for name in sorted(sources):
        lines = sources[name]
        for at in range(len(lines) - window + 1):
            seen[tuple(line for _, line in lines[at:at + window])].append((name, at))
    copied, pairs = defaultdict(set), {}
    for places in seen.values():
        apart = [places[0]]
        for name, at in places[1:]:  # a run may repeat itself inside one file, but not overlap itself
            if all(name != other or at - before >= window for other, before in apart):
                apart.append((name, at))
        if len(apart) < 2:
            continue
        for name, at in apart:
            copied[name].update(range(at, at + window))
        (first, start), *others = apart
        for other, at in others:
            pairs[(first, other, at - start)] = pairs.get((first, other, at - start), set()) | {start}
    found = []
    for (first, other, shift), starts in sorted(pairs.items()):
        for low, high in stretches(starts):
            found.append((first, sources[first][low][0], sources[first][high + window - 1][0],
                          other, sources[other][low + shift][0]))
    return copied, found


def stretches(numbers: set) -> list:
    """[(low, high)] of the runs of consecutive numbers."""
    result = []
    for n in sorted(numbers):
        if result and n == result[-1][1] + 1:
            result[-1][1] = n
        else:
            result.append([n, n])
    return result


def main(argv=None) -> int:
    options = arguments(__doc__, argv, window=dict(type=int, default=6, help="shortest run in lines (6)"),
                        most=dict(type=float, default=1.0, help="highest clone rate in per cent (1)"))
    paths = files(options.root, ("include", "src", "apps"), CPP)
    sources = {str(path): normalised(text(options.root, path)) for path in paths}
    copied, found = runs(sources, options.window)
    for first, low, high, other, at in found:
        print(f"{first}:{low}-{high} stands again at {other}:{at}")
    total = sum(len(lines) for lines in sources.values())
    rate = 100.0 * sum(len(lines) for lines in copied.values()) / max(total, 1)
    print(f"clone rate {rate:.2f} % of {total} lines")
    problems = [f"clone rate {rate:.2f} % (at most {options.most:g} %). Make one piece of code serve both places."
                ] if rate > options.most else []
    return finish("check_clones", len(paths), problems)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Fails when a public header explains nothing (no /// at all) or a Markdown link leads to no file.

Types declared without a /// line above them are listed as warnings.
"""

import re
import sys

from repository import arguments, files, finish, text

TYPE = re.compile(r"^(?:class|struct|enum class)\s+(?:\[\[.*?\]\]\s*)?(\w+)[^;]*(\{|$)")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def undocumented_types(lines: list) -> list:
    """Names of types of namespace scope (column 0) whose definition has no /// just above."""
    names = []
    for number, line in enumerate(lines):
        match = TYPE.match(line)
        if not match:
            continue
        above = number - 1
        while above >= 0 and lines[above].startswith(("template", "  ", "requires")):
            above -= 1
        if (above < 0 or not lines[above].startswith("///")) and "///<" not in line:
            names.append(match.group(1))
    return names


def dead_links(root, path) -> list:
    found = []
    for number, line in enumerate(text(root, path).splitlines(), 1):
        for target in LINK.findall(line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (root / path.parent / target).exists():
                found.append(f"{path}:{number}: the link leads to no file: {target}")
    return found


def main(argv=None) -> int:
    root = arguments(__doc__, argv).root
    headers, pages = files(root, ("include",), (".hpp", ".h")), files(root, (), (".md",))
    problems, warnings = [], []
    for path in headers:
        lines = text(root, path).splitlines()
        if not any("///" in line for line in lines):
            problems.append(f"{path}: no /// at all (a public header says what it is for). Add doc strings.")
        warnings += [f"{path}: {name} has no /// above it" for name in undocumented_types(lines)]
    for path in pages:
        problems += dead_links(root, path)
    return finish("check_docs", len(headers) + len(pages), problems, warnings)


if __name__ == "__main__":
    sys.exit(main())

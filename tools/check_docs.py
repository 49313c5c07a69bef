#!/usr/bin/env python3
"""Fails when a public header explains nothing (no /// at all), a Markdown link leads to no file, in a notebook too, or a
notebook holds what it was executed with.

Types declared without a /// line above them are listed as warnings.
"""

import json
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


def dead_links(root, path, content=None) -> list:
    """Of a page, or of other `content` that lies at its place; lines are counted in that."""
    found = []
    for number, line in enumerate((text(root, path) if content is None else content).splitlines(), 1):
        for target in LINK.findall(line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (root / path.parent / target).exists():
                found.append(f"{path}:{number}: the link leads to no file: {target}")
    return found


def notebook_problems(root, path) -> list:
    """Dead links, and outputs: they change with every run and every machine, and the tests make them anew."""
    try:
        cells = json.loads(text(root, path))["cells"]
    except (ValueError, KeyError, TypeError) as error:
        return [f"{path}: no notebook ({error!r}). Save it again."]
    found = []
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] == "markdown":
            found += [f"cell {number} of {one}" for one in dead_links(root, path, "".join(cell["source"]))]
        elif cell.get("outputs") or cell.get("execution_count") is not None:
            found.append(f"cell {number} of {path}: outputs are kept in it (each run makes others). Clear them.")
    return found


def main(argv=None) -> int:
    root = arguments(__doc__, argv).root
    headers, pages = files(root, ("include",), (".hpp", ".h")), files(root, (), (".md",))
    notebooks = files(root, (), (".ipynb",))
    problems, warnings = [], []
    for path in headers:
        lines = text(root, path).splitlines()
        if not any("///" in line for line in lines):
            problems.append(f"{path}: no /// at all (a public header says what it is for). Add doc strings.")
        warnings += [f"{path}: {name} has no /// above it" for name in undocumented_types(lines)]
    for path in pages:
        problems += dead_links(root, path)
    for path in notebooks:
        problems += notebook_problems(root, path)
    return finish("check_docs", len(headers) + len(pages) + len(notebooks), problems, warnings)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Fails when a public header explains nothing (no /// at all), a Markdown link leads to no file, in a notebook too, a
notebook holds what it was executed with, or a text cites a path that is not in the repository: a page (*.md) that is nowhere, a
file or folder below a folder of the repository that does not exist, or anything below a folder that lies outside of it.

Types declared without a /// line above them are listed as warnings.
"""

import json
import posixpath
import re
import sys
from pathlib import PurePosixPath

from repository import CPP, arguments, files, finish, text

TYPE = re.compile(r"^(?:class|struct|enum class)\s+(?:\[\[.*?\]\]\s*)?(\w+)[^;]*(\{|$)")
#: Pages, and paths whose first part is a folder of the repository or one of those that people keep beside a checkout.
PAGE = re.compile(r"(?<![\w./*<>{}$-])((?:\.\./)*(?:[\w.*-]+/)*[\w*-]+\.md)\b")
CITED = re.compile(r"(?<![\w./*<>{}$~-])((?:\.\./)*([\w.-]+)/[\w./*-]*[\w*])(?![\w{<$(*-])")
WRITTEN = re.compile(r"(> |--[\w-]+ |/ \")$")  # by the command on that line, or below a folder of a program's choice
ELSEWHERE = {"papers", "shared", "design", "reference"}
#: Texts that people read and write; test data and what made-up checkouts hold cite nothing.
TEXTS = (*CPP, ".c", ".cu", ".py", ".sh", ".cmake", ".in", ".md", ".ipynb", ".toml", ".txt", ".yml")
MADE_UP = ("tools/tests/", "tests/data/", "tests/fuzz/corpus/", "python/requirements/")
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


class Citations:
    """What texts may cite: the files of the repository and their folders."""

    def __init__(self, root):
        self.files = {str(path) for path in files(root)}
        self.folders = {str(above) for path in self.files for above in PurePosixPath(path).parents} - {"."}
        self.pages = {PurePosixPath(path).name for path in self.files if path.endswith(".md")}
        self.tops = {folder for folder in self.folders if "/" not in folder}

    def exists(self, cited: str, below: str) -> bool:
        """As a path from the root or from the citing file's folder; `*` stands for any name, an ending may be left out."""
        if cited in self.pages or cited.rpartition("/")[2].isupper():  # FILE stands for any
            return True
        for base in ("", below, "src", "include", "python"):
            name = posixpath.normpath(posixpath.join(base, cited))
            if name in self.files or name in self.folders:
                return True
            if "*" in name and any(PurePosixPath(one).match(name) for one in self.files | self.folders):
                return True
            if any(one.startswith(name) and one[len(name)] in "-." for one in self.files):  # decisions/0001
                return True
        return False

    def problems(self, path, content: str) -> list:
        found, below = [], str(path.parent)
        for number, line in enumerate(content.splitlines(), 1):
            cited = {match[1] for match in PAGE.finditer(line) if not WRITTEN.search(line[:match.start()])}
            for match in CITED.finditer(line):
                first = match[2]
                if first in ELSEWHERE or first in self.tops and "://" not in line[:match.start()].split(" ")[-1]:
                    cited.add(match[1])
            found += [f"{path}:{number}: cites {one}, which is not in the repository. Bring in what is needed of it, or cite "
                      "what is published (docs/references.md)." for one in sorted(cited) if not self.exists(one, below)]
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
    citations = Citations(root)
    for path in files(root, (), TEXTS) + [path for path in files(root) if path.name in ("Makefile", "run")]:
        if not str(path).startswith(MADE_UP):
            problems += citations.problems(path, text(root, path))
    return finish("check_docs", len(headers) + len(pages) + len(notebooks), problems, warnings)


if __name__ == "__main__":
    sys.exit(main())

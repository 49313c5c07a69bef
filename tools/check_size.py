#!/usr/bin/env python3
"""Fails when a file, function, parameter list or folder is larger than people read at a glance.

Limits (code lines: neither blank nor comment alone):
  file       at most 500 lines of text; 95 of 100 have at most 300 code lines
  function   at most 80 lines from its head to its last brace, at most 8 parameters, but for MPI's lists (LISTS_OF_MPI)
  folder     at most 30 files with code
  #if        at most 0.5 for 1,000 lines of C++ in src/ and include/, header guards and what the vendors' runtimes tell apart aside
tools/size_exceptions.txt lists what was larger when the limit was set, with the size that it may have at most; a line that is
not needed any more fails.
"""

import ast
import re
import sys
from collections import Counter

from repository import CPP, arguments, files, finish, text

FILE, CODE, FUNCTION, PARAMETERS, FOLDER, CONDITIONS = 500, 300, 80, 8, 30, 0.5
FOLDERS = ("include", "src", "apps", "python", "bench", "tools", "tests")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")
SCOPE = re.compile(r"^(?:(?:inline|static|constexpr|typedef|public:|private:|protected:|friend)\s+)*"
                   r"(?:namespace|class|struct|union|enum|extern\s+\"\")(?!\w)")
QUALIFIER = re.compile(r"(?:\)|\bconst|\bnoexcept|\boverride|\bfinal|\bmutable|(?:\)|\bconst|\bvolatile)\s*&&?|->(?:[^(){};]|\((?:[^(){};]|\([^(){};]*\))*\))*"
                       r"|\btry|\brequires[^{};]*)\s*$")
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|el|endif)")
LISTS_OF_MPI = re.compile(r"hostless_neighbor_\w+_init|MPIX?_I?[Nn]eighbor_\w+")  # MPI's own, and what is called as they are
OPEN = "{"  # in the place of a function's name: braces that nothing closes


def blank(match) -> str:
    """As many lines, and nothing in them."""
    return '""' * (match.group(0)[0] in "\"'R") + "\n" * match.group(0).count("\n")


def parameters_of(head: str) -> int:
    """Of the first list in a function's head, template arguments in it not counted."""
    depth, angle, count, seen = 0, 0, 0, False
    for letter in head[head.index("("):]:
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                break
        elif letter == "<":
            angle += 1
        elif letter == ">":
            angle = max(0, angle - 1)
        elif letter == "," and depth == 1 and angle == 0:
            count += 1
        elif not letter.isspace():
            seen = True
    return count + seen


def without_other_branches(code: str) -> str:
    """Of an #if whose branches open or close braces the first branch alone: a compiler sees one, too."""
    lines, groups = code.split("\n"), []  # of the groups that are open: where each branch begins

    def close(ends: int) -> None:
        starts = [*groups.pop(), ends]
        changes = [sum(line.count("{") - line.count("}") for line in lines[a + 1:b]) for a, b in zip(starts, starts[1:])]
        if len(changes) > 1 and any(changes):
            for k in range(starts[1] + 1, ends):
                lines[k] = ""

    for k, line in enumerate(lines):
        word = CONDITION.match(line)
        if word and word.group(1) == "if":
            groups.append([k])
        elif word and groups and word.group(1) == "el":
            groups[-1].append(k)
        elif word and groups:
            close(k)
    return "\n".join(lines)


def cpp_functions(source: str):
    """(name, line, lines, parameters) of every function with a body, lambdas inside functions not apart."""
    code = DIRECTIVE.sub(blank, without_other_branches(NOISE.sub(blank, source)))
    stack = []  # of the braces that are open: a function's (name, line, parameters), "value", or None
    head, line, first = "", 1, 1
    inside = 0  # functions that are open
    for letter in code:
        if letter == "{":
            words = " ".join(head.split())
            if inside or not words:
                stack.append(None)
            elif SCOPE.search(TEMPLATE.sub("", words).strip()) and not re.search(r"\)\s*(?:const|noexcept)?$", words):
                stack.append(None)
            elif "(" in words and (QUALIFIER.search(words) or re.search(r"\)\s*:.*[)}]\s*$", words)):
                name = re.search(r"(operator\s*\S+|~?\w+)\s*\($", words[:words.index("(") + 1])
                stack.append((name.group(1) if name else "?", first, parameters_of(words)))
                inside += 1
            else:
                stack.append("value")  # an initializer: what comes before it goes on behind it
                head += "{"
                continue
            head = ""
        elif letter == "}":
            opened = stack.pop() if stack else None
            if opened == "value":
                head += "}"
                continue
            if opened is not None:
                inside -= 1
                yield opened[0], opened[1], line - opened[1] + 1, opened[2]
            head = ""
        elif letter == ";" and "value" not in stack[-1:] and head.count("(") == head.count(")"):
            head = ""
        else:
            if not head.strip() and not letter.isspace():
                first = line
            head += letter
        line += letter == "\n"
    if stack:
        yield OPEN, line, 0, 0


def python_functions(source: str):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            named = node.args.posonlyargs + node.args.args
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1, len(named) - (named[:1] != [] and named[0].arg in ("self", "cls"))


def code_lines(source: str, cpp: bool) -> int:
    start = ("//", "/*", "*") if cpp else ("#",)
    return sum(1 for line in source.splitlines() if line.strip() and not line.strip().startswith(start))


def exceptions_of(listed: str) -> dict:
    """{(what, where): most} of lines `what where most`."""
    allowed = {}
    for line in listed.splitlines():
        words = line.split("#")[0].split()
        if words:
            allowed[(words[0], " ".join(words[1:-1]))] = int(words[-1])
    return allowed


def measured(root):
    """(what, where, size, limit, where it stands) of everything that has a size."""
    paths = files(root, FOLDERS, (*CPP, ".cu", ".py"))
    folders, conditions, lines, sizes = Counter(), 0, 0, []
    for path in paths:
        source, cpp = text(root, path), path.suffix != ".py"
        folders[str(path.parent)] += 1
        yield "file", str(path), source.count("\n"), FILE, str(path)
        sizes.append(code_lines(source, cpp))
        functions = cpp_functions(source) if cpp else python_functions(source)
        for name, line, length, parameters in functions:
            if name == OPEN:
                yield "braces", f"{path} that open", 1, 0, str(path)
                continue
            yield "function", f"{path} {name}", length, FUNCTION, f"{path}:{line}"
            # scipy's, CMake's and a test's arguments by name are not a list that one must remember; MPI's one knows.
            if cpp and not LISTS_OF_MPI.fullmatch(name):
                yield "parameters", f"{path} {name}", parameters, PARAMETERS, f"{path}:{line}"
        if cpp and path.parts[0] in ("src", "include") and path.parts[1] != "device":
            conditions += len(re.findall(r"^\s*#\s*(?:if|elif)", source, re.MULTILINE))
            lines += source.count("\n")
    for folder, count in folders.items():
        yield "folder", folder, count, FOLDER, folder
    if sizes:
        yield "files", "95-of-100", sorted(sizes)[int(0.95 * (len(sizes) - 1))], CODE, "files"
    if lines >= 1000:
        yield "conditions", "src-and-include", round(conditions * 1000 / lines * 100), round(CONDITIONS * 100), "src/ and include/ (#if for 100,000 lines)"


def main(argv=None) -> int:
    root = arguments(__doc__, argv).root
    listed = root / "tools/size_exceptions.txt"
    allowed = exceptions_of(listed.read_text()) if listed.exists() else {}
    largest, places, limits = {}, {}, {}
    for what, where, size, limit, place in measured(root):
        if size > largest.get((what, where), -1):
            largest[(what, where)], places[(what, where)], limits[(what, where)] = size, place, limit
    problems = []
    for key, size in sorted(largest.items()):
        most = max(limits[key], allowed.get(key, 0))
        if size > most:
            problems.append(f"{places[key]}: {key[0]} {key[1].split()[-1]} has {size}, at most {most}. Split it." if key[0] != "braces" else
                            f"{places[key]}: braces open that nothing closes (functions behind them are not seen). Close them in each branch of an #if.")
    for key, most in allowed.items():
        if largest.get(key, 0) <= limits.get(key, 0):
            problems.append(f"tools/size_exceptions.txt: `{key[0]} {key[1]}` keeps the limit now. Take the line out.")
    return finish("check_size", sum(what == "file" for what, _ in largest), problems)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Fails on what the style card forbids: unfinished work, overlong files, vendor #ifs outside their three files,
names of package registries and home folders, and waits without a deadline.

A wait that is bounded for another reason says so on its line: // bounded: <reason>
"""

import re
import sys

from repository import CPP, arguments, files, finish, text

LONG, TOO_LONG = 400, 800
TEXT = (*CPP, ".py", ".sh", ".cmake", ".in", ".md", ".json", ".txt", ".yml", ".cff")
VENDOR_HOMES = {"src/device/runtime.hpp", "include/hostless/base/anywhere.hpp",
                "src/solve/gpu/vendor_product.gpu.cpp"}
AT_ROOT = {".clang-format", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CMakePresets.json",
           "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "pyproject.toml"}
HERE = {"tools/check_style.py", "tools/tests/test_checks.py"}  # name what they forbid

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
VENDOR = re.compile(r"^\s*#\s*(el)?if.*(CUDA|HIP|NVCC|__CUDA)")
REGISTRY = re.compile(r"\b(pypi\.org|pythonhosted\.org|registry\.npmjs|crates\.io|repo1?\.maven|rubygems\.org|"
                      r"proxy\.golang|deb\.debian\.org|archive\.ubuntu\.com)")
MACHINE_PATH = re.compile(r"(?<![\w.}/])/(home/\w|Users/\w|root/|work/|mnt/\w)")
BLOCKING = re.compile(
    r"std::(barrier|latch|counting_semaphore|binary_semaphore)\b|pthread_barrier|"
    r"\bP?MPI_(Wait(all|any|some)?|Barrier|Recv|Send|Ssend|Sendrecv|Probe|Bcast|Reduce|Allreduce|Gatherv?|"
    r"Allgatherv?|Scatterv?|Alltoall[vw]?)\s*\(|"
    r"std::(condition_variable|future|async|promise)\b|\.wait\([^;]*std::memory_order")
BOUNDED = re.compile(r"//\s*bounded: \S")
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//.*')


def code_of(line: str) -> str:
    return STRING_OR_COMMENT.sub('""', line)


def problems_of(name: str, lines: list) -> list:
    found = []
    is_cpp = name.endswith(CPP)
    is_product = is_cpp and name.split("/")[0] in ("include", "src", "apps")
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}:"
        if UNFINISHED.search(line):
            found.append(f"{where} unfinished work in the text. Do it, or open an issue.")
        if REGISTRY.search(line):
            found.append(f"{where} names a package registry. Use the registry's client without a host.")
        if MACHINE_PATH.search(line):
            found.append(f"{where} names a path of one machine. Use a path relative to the checkout.")
        if is_cpp and VENDOR.search(line) and name not in VENDOR_HOMES:
            found.append(f"{where} #if for a vendor. Only {', '.join(sorted(VENDOR_HOMES))} may ask.")
        if is_product and BLOCKING.search(code_of(line)) and not BOUNDED.search(line):
            found.append(f"{where} a wait without a deadline. Poll with wait_for (hostless/base/wait.hpp).")
    if is_cpp and len(lines) > TOO_LONG:
        found.append(f"{name}: {len(lines)} lines (at most {TOO_LONG}). Split it.")
    return found


def main(argv=None) -> int:
    root = arguments(__doc__, argv).root
    problems, warnings, looked_at = [], [], 0
    for path in files(root):
        name = str(path)
        if len(path.parts) == 1 and name not in AT_ROOT:
            problems.append(f"{name}: a file that nobody expects at the root. Remove it, or name it in check_style.py.")
        if name in HERE or not (path.suffix in TEXT or path.name in ("Makefile", "run", "CMakeLists.txt")):
            continue
        looked_at += 1
        lines = text(root, path).splitlines()
        problems += problems_of(name, lines)
        if path.suffix in (*CPP, ".py") and LONG < len(lines) <= TOO_LONG:
            warnings.append(f"{name}: {len(lines)} lines (files are mostly under {LONG})")
    return finish("check_style", looked_at, problems, warnings)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Holds registers, spills and stack of the persistent kernels against tools/persistent_registers.txt.

  tools/check_registers.py LOG --compiler TEXT [--write] [--architecture sm_90]

LOG is what `ptxas -v` printed (CMake's -DHOSTLESS_GPU_RESOURCES=ON, as `make gpu-full` has it). TEXT names the compiler. Fails
when a kernel of that architecture takes more than the table says, or is not in it, or is missing; --write writes the table.
Another compiler than the table's allots otherwise: then what it says is printed and nothing fails.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parent / "persistent_registers.txt"
HEAD = "# compiler: "
COLUMNS = "# text  precision of the matrix  block  ranks  architecture | registers  spilled bytes stored  loaded  stack"
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(sm_\w+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
KERNEL = re.compile(r"persistent_kernel<(\d+), (?:\w+::)*(\w+)(<.*>)?, (\w+), \((?:\w+::)*Ranks\)([012])>\(")
RANKS = ("one", "several", "routed")


def demangled(names: list) -> list:
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def kernels_of(log: str) -> dict:
    """{(text, precision, block, ranks, architecture): (registers, stores, loads, stack)} of the persistent ones."""
    found, mangled = [], None
    for line in log.splitlines():
        entry = ENTRY.search(line)
        if entry:
            mangled, facts = entry.groups(), []
        elif mangled and STACK.search(line) and not facts:
            facts = [int(number) for number in STACK.search(line).groups()]
        elif mangled and facts and USED.search(line):
            found.append((mangled, (int(USED.search(line).group(1)), facts[1], facts[2], facts[0])))
            mangled = None
    kernels = {}
    for ((_, architecture), size), name in zip(found, demangled([name for (name, _), _ in found])):
        match = KERNEL.search(name)
        if match:
            block, text, rest, precision, ranks = match.groups()
            inner = sorted(set(re.findall(r"\b(\w*Chebyshev\w*|\w*Preconditioner)\b", rest or "")) - {"NoChebyshev"})
            key = ("+".join([text, *inner]), precision, block, RANKS[int(ranks)], architecture)
            kernels[key] = tuple(map(max, size, kernels.get(key, size)))  # of instances that the table does not tell apart
    return kernels


def line_of(kernel, size) -> str:
    return " ".join(kernel) + " | " + " ".join(map(str, size))


def table_of(text: str):
    """(compiler, kernels) of a table."""
    compiler, kernels = "", {}
    for line in text.splitlines():
        if line.startswith(HEAD):
            compiler = line[len(HEAD):]
        elif line and not line.startswith("#"):
            kernel, size = line.split(" | ")
            kernels[tuple(kernel.split())] = tuple(map(int, size.split()))
    return compiler, kernels


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--architecture", default="sm_90")
    options = parser.parse_args(argv)
    kernels = {kernel: size for kernel, size in kernels_of(options.log.read_text()).items() if kernel[-1] == options.architecture}
    if not kernels:
        print(f"{options.log}: no persistent kernel in it. Compile with -DHOSTLESS_GPU_RESOURCES=ON, without a cache.", file=sys.stderr)
        return 1
    if options.write:
        lines = [HEAD + options.compiler, COLUMNS, *sorted(line_of(*item) for item in kernels.items())]
        options.table.write_text("\n".join(lines) + "\n")
        print(f"check_registers: {len(kernels)} kernels written")
        return 0
    compiler, known = table_of(options.table.read_text())
    if compiler != options.compiler:
        print(f"check_registers: the table is of {compiler}, this is {options.compiler}: not compared.")
        for item in sorted(kernels.items()):
            print("  " + line_of(*item))
        return 0
    problems = [f"{line_of(kernel, size)}: not in the table." for kernel, size in kernels.items() if kernel not in known]
    problems += [f"{' '.join(kernel)}: in the table, and was not compiled." for kernel in known if kernel not in kernels]
    problems += [f"{line_of(kernel, size)}: the table has {' '.join(map(str, known[kernel]))}."
                 for kernel, size in kernels.items() if kernel in known and any(a > b for a, b in zip(size, known[kernel]))]
    better = sum(kernel in known and size != known[kernel] for kernel, size in kernels.items()) - len(
        [p for p in problems if "the table has" in p])
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"check_registers: {len(kernels)} kernels, {len(problems)} problems, {better} take less than the table says (--write)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Counts the lines of C++ that only CUDA or only HIP understands, and fails when there are too many or when they
stand elsewhere than in src/device/runtime.hpp and in the source file of the vendors' products.

Counted are lines inside an #if that asks for a vendor's compiler, with the #if itself, and lines that name something
of one vendor (cudaMalloc, hipFree, __shfl_xor_sync, asm). Comments, strings and empty lines do not count. HOSTLESS_GPU(Malloc)
belongs to both.
"""

import re
import sys

from repository import CPP, arguments, files, finish, text

MOST = 310
HEADER = "src/device/runtime.hpp"
SOURCE = "src/run/gpu/vendor_product.gpu.cpp"

ASKS = re.compile(r"CUDA|HIP|NVCC|__AMDGCN|__NVPTX")
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")
NAMES = re.compile(
    r"\b(cu|cuda|cublas|cusparse|nvtx|hip|hipblas|hipsparse|rocblas|rocsparse|roctx)[A-Z_]\w*|"
    r"[<\"](cuda|hip|cooperative_groups|nvtx3|rocprim|cub|roc\w*|cu\w*)[\w/.]*\.(h|hpp|cuh)[>\"]|"
    r"\b__(CUDA|HIP|NVCC|NVPTX|AMDGCN|hip_|nv_|nvvm_|builtin_amdgcn|builtin_nv)\w*|"
    r"\b__(ldg|ldcg|ldcs|ldlu|ldcv|stcg|stcs|stwt|shfl|shfl_\w+|any|all|ballot|any_sync|all_sync|ballot_sync|activemask|"
    r"match_\w+|reduce_\w+_sync|syncwarp|nanosleep|grid_constant__|cluster_dims__|lane_id|s_sleep)\b|"
    r"(?<!\) )\b(asm|__asm__)\b")  # behind a declaration it is the name for linkers, of no vendor
COMMENT_OR_STRING = re.compile(r'//.*|/\*.*?\*/|"(?:\\.|[^"\\])*"')
INCLUDE = re.compile(r"^\s*#\s*include\b")
IN_TEXT = re.compile(r"//.*|/\*.*?\*/")


def vendor_lines(lines: list) -> list:
    """Numbers of the counted lines."""
    found, asking = [], []  # asking: for each open #if, whether it or a branch of it asks for a vendor
    for number, line in enumerate(lines, 1):
        code = (IN_TEXT if INCLUDE.match(line) else COMMENT_OR_STRING).sub("", line)
        condition = CONDITION.match(code)
        if condition:
            word, asks = condition.group(1), bool(ASKS.search(condition.group(2)))
            if word.startswith("if"):
                asking.append(asks)
            elif asking and asks:
                asking[-1] = True
        inside = any(asking)
        if condition and condition.group(1) == "endif" and asking:
            asking.pop()
        if code.strip() and (inside or NAMES.search(code)):
            found.append(number)
    return found


def main(argv=None) -> int:
    root = arguments(__doc__, argv).root
    paths = files(root, ("include", "src", "apps"), CPP)
    counted = {}
    problems = []
    for path in paths:
        lines = text(root, path).splitlines()
        numbers = vendor_lines(lines)
        if numbers:
            counted[str(path)] = numbers
    for name, numbers in counted.items():
        if name not in (HEADER, SOURCE):
            problems.append(f"{name}:{numbers[0]}: {len(numbers)} lines that one vendor's compiler understands "
                            f"(only {HEADER} and {SOURCE} may have them). Give it one name in {HEADER}.")
    total = sum(map(len, counted.values()))
    if total > MOST:
        problems.append(f"{total} vendor lines (at most {MOST}). Say it once for both vendors.")
    for name, numbers in sorted(counted.items()):
        print(f"{name}: {len(numbers)} vendor lines")
    print(f"{total} vendor lines in all (at most {MOST})")
    return finish("check_vendor", len(paths), problems)


if __name__ == "__main__":
    sys.exit(main())

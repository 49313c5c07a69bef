#!/usr/bin/env python3
"""Every method on one GPU against the processor, bit for bit: each run, preconditioner and block size by `hostless bench solve`, and
a matrix that is not symmetric, from a file; over streams too, with ranks that share the GPU.

  bench/gpu/every_method.py HOSTLESS [METHOD...]      without METHOD: those that take more than positive definite matrices

Prints a line a comparison; exit code 1 where bits differ or a way fails.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROBLEMS = (("poisson2d", "300"), ("poisson7", "40"), ("elasticity-hex8", "12"), ("elasticity-tet4", "10"), ("circuit", "200"), ("monodomain", "32"))
RUNS = "host,persistent,graph,stream"


def bench(hostless: str, words: list) -> tuple:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = subprocess.run([hostless, "bench", "solve", *words, "--repeat", "1", "--json", str(report)], capture_output=True,
                              text=True, timeout=300)
        found = json.loads(report.read_text()) if report.exists() else {}
    return done.returncode, found, (done.stdout + done.stderr).strip()


def convection(path: Path, side: int) -> None:
    """Upwind differences of a convection-diffusion equation; every seventh row reads nothing behind it."""
    lines = []
    for y in range(side):
        for x in range(side):
            i = y * side + x
            row = [(i, 7.0)]
            row += [(i - side, -3.0)] if y else []
            row += [(i - 1, -2.0)] if x else []
            if i % 7:
                row += [(i + 1, -1.0)] if x + 1 < side else []
                row += [(i + side, -1.0)] if y + 1 < side else []
            lines += [f"{i + 1} {j + 1} {value}" for j, value in row]
    n = side * side
    path.write_text("\n".join([f"%%MatrixMarket matrix coordinate real general\n{n} {n} {len(lines)}", *lines, ""]), encoding="utf-8")


def main() -> int:
    hostless, methods = sys.argv[1], sys.argv[2:] or ["minres", "bicgstab"]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "convection.mtx"
        convection(file, 150)
        cases = []
        for name, size in PROBLEMS:
            for preconditioner in ("none", "jacobi", "block-jacobi"):
                cases.append((["--generate", name, "--size", size, "--preconditioner", preconditioner], methods, "1"))
        for block in ("2", "3", "4", "6"):
            cases.append((["--generate", "poisson7", "--size", "24", "--block-size", block], methods, "1"))
        for form in ("diagonals-full", "sell", "csr"):
            cases.append((["--generate", "poisson7", "--size", "30", "--format", form], methods, "1"))
        if "bicgstab" in methods:
            for preconditioner in ("none", "jacobi"):
                cases.append(([str(file), "--preconditioner", preconditioner], ["bicgstab"], "1"))
        for words, of, gpus in cases:
            runs = RUNS if "--format" not in words else "persistent,graph,stream"
            code, report, said = bench(hostless, [*words, "--methods", ",".join(of), "--runs", runs, "--gpus", gpus, "--iterations", "60"])
            failures += code != 0
            print("ok  " if code == 0 else "FAIL", " ".join(words).replace(folder, ""), flush=True)
            if code != 0:
                print(said, flush=True)
        for words in (["--generate", "poisson7", "--size", "24"], [str(file)]):
            of = methods if words[0] == "--generate" else ["bicgstab"]
            code, report, said = bench(hostless, [*words, "--methods", ",".join(of), "--runs", "host,graph,stream", "--gpus", "1", "--ranks", "3",
                                                  "--oversubscribe", "--gpu-transports", "host,peer", "--iterations", "60",
                                                  "--preconditioner", "jacobi"])
            failures += code != 0
            print("ok  " if code == 0 else "FAIL", "3 ranks of one GPU", " ".join(words).replace(folder, ""), flush=True)
            if code != 0:
                print(said, flush=True)
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ.setdefault("HOSTLESS_CACHE_DIR", tempfile.mkdtemp())
    sys.exit(main())

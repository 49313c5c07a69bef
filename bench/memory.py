#!/usr/bin/env python3
"""Peak memory of a rank against its share, at sizes where it matters. Both figures are in docs/performance-cpu.md.

  bench/memory.py --build build-bench

1. 20 million rows of 7-point Poisson, generated in the final layout and solved for 50 iterations by 2 MPI ranks: the
   share is half of the matrix as stored and of five vectors.
2. A Matrix Market file of 1 GB read by 2 MPI ranks: the share is half of the file.

Prints a line each; exit code 1 when one is above its limit (1.3 and 1.1 times the share).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

VECTORS = 5  # b, x, r, p, q


def run(*command):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run([str(word) for word in command], env=environment, stdout=subprocess.PIPE, text=True)
    return done.returncode, done.stdout


def solve(hostless, size, folder):
    """Rank 0 holds the largest share of rows; its matrix is described in the choices of the result."""
    result = folder / "result.json"
    code, _ = run(hostless, "solve", "--generate", "poisson7", "--size", ",".join(map(str, size)), "--ranks", 2,
                  "--transport", "mpi", "--partition", "contiguous", "--max-iterations", 50, "--rtol", 0,
                  "--no-bandwidth", "--quiet", "--json", result)
    if code != 1:  # 1: the iteration limit
        sys.exit(f"memory.py: hostless solve ended with {code}")
    report = json.loads(result.read_text())
    stored = next(word for word in report["choices"]["format"].split(", ") if word.endswith(" MB"))
    rows = report["rows"] // 2
    share = float(stored.removesuffix(" MB")) * 1e6 + VECTORS * 8 * rows
    return report["peak_process_bytes"], share, f"{report['rows']:,} rows, {report['iterations']} iterations"


def read(hostless, reader, scale, folder):
    file = folder / "big.mtx"
    code, _ = run(hostless, "generate", "flan", "--scale", scale, "--output", file, "--ranks", 2)
    if code != 0:
        sys.exit(f"memory.py: hostless generate ended with {code}")
    code, text = run("mpirun", "-n", 2, reader, file)
    if code != 0:
        sys.exit(f"memory.py: read_memory ended with {code}")
    report = json.loads(text)
    return report["peak_bytes"], report["share_bytes"], f"{file.stat().st_size * 1e-9:.3f} GB, {report['seconds']:.1f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build-bench", type=pathlib.Path)
    parser.add_argument("--size", default="272,272,271", help="nodes of the Poisson problem")
    parser.add_argument("--scale", default="0.54", help="of the preset flan: 0.54 makes a file of 1 GB")
    options = parser.parse_args()
    hostless = options.build / "apps" / "hostless" / "hostless"
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for what, limit, figures in (
            ("solve", 1.3, solve(hostless, [int(n) for n in options.size.split(",")], folder)),
            ("read", 1.1, read(hostless, options.build / "bench" / "read_memory", options.scale, folder)),
        ):
            peak, share, detail = figures
            failed |= peak > limit * share
            print(f"{what}: {detail}: peak {peak * 1e-9:.3f} GB a rank, {peak / share:.2f} of its share "
                  f"({share * 1e-9:.3f} GB); limit {limit}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Jacobi on one GPU and on several: microseconds a step of every way that `hostless bench stencil --gpus` has, by turns.

  bench/gpu/stencil_gpus.py HOSTLESS [--gpus 0,1] [--problem jacobi2d] [--sizes 256,512,1024,2048,4096,8192] [--type fp32] [--variants all] [--seconds 0.1]
                            [--json FILE] [-- OPTIONS OF THE BENCH]

For each N: N x N cells (jacobi3d: N x N x N) on the first GPU; as many on each of all (weak); N x N cells on all (strong). So many steps that about --seconds pass. With --json all reports.
Exit code 1: bits differ, or a run failed.
"""

import argparse
import json
import subprocess
import sys


def report_of(options, extents: list, gpus: str, steps: int) -> dict:
    words = [options.hostless, "bench", "stencil", "--problem", options.problem, "--size", ",".join(map(str, extents)), "--type", options.type, "--gpus", gpus,
             "--variants", options.variants, "--steps", str(steps), "--warm-up", str(max(steps // 4, 1)), "--json", "-", *options.more]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if not done.stdout.startswith("{"):
        return {"problem": (done.stderr or done.stdout).strip()[-300:]}
    return {**json.loads(done.stdout), "code": done.returncode}


def steps_for(cells: int, seconds: float) -> int:
    """By what a step takes at least, of cells in the memory of one GPU; whole exchanges of every depth."""
    return max(480, min(48000, int(seconds / (2e-6 + cells * 2e-12)))) // 240 * 240


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hostless")
    parser.add_argument("--gpus", default="0,1")
    parser.add_argument("--problem", choices=("jacobi2d", "jacobi3d"), default="jacobi2d")
    parser.add_argument("--sizes", default="256,512,1024,2048,4096,8192")
    parser.add_argument("--type", default="fp32")
    parser.add_argument("--variants", default="all")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--json")
    parser.add_argument("more", nargs="*")
    options = parser.parse_args()
    parts, reports, failures = options.gpus.count(",") + 1, [], 0
    for size in map(int, options.sizes.split(",")):
        for what, rows, gpus in (("one GPU", size, "1"), ("weak", parts * size, options.gpus), ("strong", size, options.gpus)):
            extents = [rows] + [size] * (1 if options.problem == "jacobi2d" else 2)
            report = report_of(options, extents, gpus, steps_for(size ** len(extents), options.seconds))
            reports.append({"what": what, "n": size, **report})
            failures += report.get("code", 1) != 0
            print(f"{size}^{len(extents)}, {what}: {' x '.join(map(str, extents))} on {gpus}" + (f": {report['problem']}" if "variants" not in report else f", bits {report.get('bits')}"))
            for row in report.get("variants", []):
                if "best_us" in row:
                    print(f"  {row['name']:9} {row['best_us']:9.3f} best {row['median_us']:9.3f} median us a step   {row.get('how', '')}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(reports, file, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

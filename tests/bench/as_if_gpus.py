#!/usr/bin/env python3
"""Stands in for hostless on several GPUs: ranks of the processor, with times that are made up.

GPU_FAULT names what it does wrong: RUN:bits (another guess of x in that run) or RUN:refuse.
"""

import json
import os
import pathlib
import subprocess
import sys

TIMES = {"persistent": 16.0, "graph": 24.0, "stream": 32.0}  # of one GPU


def take(words, option):
    """The value of an option, which is taken out."""
    if option not in words:
        return None
    at = words.index(option)
    value = words[at + 1]
    del words[at:at + 2]
    return value


def main():
    words = sys.argv[1:]
    gpus, run = take(words, "--gpus"), take(words, "--run")
    fault_run, _, fault = os.environ.get("GPU_FAULT", "").partition(":")
    faulty = gpus is not None and run == fault_run
    if faulty and fault == "refuse":
        sys.exit(print("hostless: no such GPU.", file=sys.stderr) or 4)
    if faulty and fault == "bits":
        words[words.index("--max-iterations") + 1] = "3"
    ranks = int(words[words.index("--ranks") + 1]) if "--ranks" in words else int(gpus or 1)
    if "--oversubscribe" in words:
        words.remove("--oversubscribe")
    elif gpus is not None and ranks > int(gpus):
        sys.exit(print("hostless: more ranks than GPUs.", file=sys.stderr) or 2)
    code = subprocess.run([os.environ["HOSTLESS_COMMAND"], *words]).returncode
    if gpus is not None:
        file = pathlib.Path(words[words.index("--json") + 1])
        report = json.loads(file.read_text())
        report["device"] = {"us_per_iteration": TIMES[run] / ranks, "gpus": int(gpus)}
        file.write_text(json.dumps(report))
    return code


if __name__ == "__main__":
    sys.exit(main())

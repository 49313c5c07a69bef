#!/usr/bin/env python3
"""Kills programs whose GPUs' streams wait for messages and move them, and looks whether the next one finds the GPUs usable.

    python3 tests/device/queue/kill_queues.py --hostless ./hostless [--gpus 2] [--times 10]

Ranks of a queue of streams are threads of one process, so a kill takes all of them while kernels spin and store into each
other's memory. Every program is killed at a random moment once it has begun its messages; then one sends some, whose answers
must be right, within a limit. Exit code 1: something of that was not so.
"""

import argparse
import random
import subprocess
import sys
import time

SIZES = (8, 65536, 1 << 20, 1 << 24)


def ping_pong(options, *words):
    return [options.hostless, "bench", "pingpong", "--queue", "peer", "--gpus", str(options.gpus), "--ranks", "2", *options.more, *words]


def kill_one(options, drawn, number):
    """Why it could not be killed while it sent, or None."""
    words = ("--sizes", str(SIZES[number % len(SIZES)]), "--run", ("stream", "graph")[number // len(SIZES) % 2], "--steps", "1000",
             "--repeat", "1000000", "--warm-up", "0")
    with subprocess.Popen(ping_pong(options, *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        heads = [program.stdout.readline() for _ in range(2)]  # written when its GPUs are open
        time.sleep(drawn.uniform(0.3, 1.5))
        ended = program.poll()
        program.kill()
        said = "".join(heads) + program.stdout.read()
    return None if ended is None else f"it ended by itself with {ended}: {said[-300:]}"


def go_on(options):
    """Seconds that the next program took, and why it was wrong, or None."""
    began = time.monotonic()
    try:
        done = subprocess.run(ping_pong(options, "--sizes", "8,65536,1048576", "--steps", "100", "--repeat", "1"), capture_output=True,
                              text=True, timeout=options.limit, check=False)
    except subprocess.TimeoutExpired:
        return options.limit, f"the next program took more than {options.limit:g} s"
    return time.monotonic() - began, None if done.returncode == 0 else (done.stderr or done.stdout)[-300:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", required=True)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--limit", type=float, default=60, help="seconds of a program that comes after a kill")
    parser.add_argument("--seed", type=int, default=1)
    options, options.more = parser.parse_known_args()
    drawn, problems, slowest = random.Random(options.seed), [], 0.0
    for number in range(options.times):
        why = kill_one(options, drawn, number)
        took, wrong = go_on(options)
        slowest = max(slowest, took)
        problems += [f"kill {number}: {text}" for text in (why, wrong) if text]
    for problem in problems:
        print(problem)
    print(f"{options.times} kills of programs whose streams waited, {len(problems)} problems, the slowest of those that came next took {slowest:.2f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

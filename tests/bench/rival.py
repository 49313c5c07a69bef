#!/usr/bin/env python3
"""Stands in for plain_cg: conjugate gradients in plain Python, with its command line and its JSON.

RIVAL_FAULT names what it does wrong, for the driver to find.
"""

import argparse
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "gpu"))

import linear_system  # noqa: E402


def dot(u, v):
    return sum(a * b for a, b in zip(u, v))


def solve(matrix, b, iterations):
    x, r = [0.0] * matrix.rows, list(b)
    s, rho = list(r), dot(b, b)
    for _ in range(iterations):
        t = matrix.times(s)
        alpha = rho / dot(s, t)
        x = [a + alpha * v for a, v in zip(x, s)]
        r = [a - alpha * v for a, v in zip(r, t)]
        rho, before = dot(r, r), rho
        s = [a + rho / before * v for a, v in zip(r, s)]
    return x, (rho / dot(b, b)) ** 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("matrix")
    parser.add_argument("rhs")
    for name in ("--iterations", "--warm-up", "--repeats"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--scalars", default="host", choices=["host", "device"])
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    fault = os.environ.get("RIVAL_FAULT", "")
    if fault == "ends":
        sys.exit("rival: out of order")
    if fault == "hangs":
        time.sleep(600)
    matrix = linear_system.Matrix.read(options.matrix)
    b = linear_system.read_vector(options.rhs, matrix.rows)
    made = options.iterations - (5 if fault == "lazy" else 0)
    x, residual = solve(matrix, b, made)
    if fault == "wrong":
        x = [3 * v for v in x]
        residual = linear_system.norm(u - v for u, v in zip(b, matrix.times(x))) / linear_system.norm(b)
    if fault != "silent" or options.scalars == "host":  # silent after another has left an x
        linear_system.write_vector(options.output, x)
    print("no JSON" if fault == "chatty" else json.dumps({
        "contestant": f"rival, {options.scalars}", "device": "none", "product": "python", "matrix": options.matrix,
        "rows": matrix.rows, "nonzeros": matrix.nonzeros,
        "iterations": options.iterations if fault == "wrong" else made,
        "us_per_iteration": {"best": 100.0, "median": 110.0, "worst": 121.0},
        "true_relative_residual": 0.01 * residual if fault == "boasts" else residual,
        "recurrence_relative_residual": residual}))


if __name__ == "__main__":
    main()

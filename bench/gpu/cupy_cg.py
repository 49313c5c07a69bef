#!/usr/bin/env python3
"""cupyx.scipy.sparse.linalg.cg on one GPU, every solve with the same number of iterations (tolerance zero).

  bench/gpu/cupy_cg.py A.petsc b.petsc --iterations 1000

Its cg compares the residual with the tolerance on the host in every iteration, whatever the tolerance: that is how it
is used, so that is what is timed. It does not return its own residual: recurrence_relative_residual is null.
Prints one line of JSON, as plain_cg does.
"""

import argparse
import inspect
import json
import statistics
import sys
import time

import cupy
import cupyx.scipy.sparse
import cupyx.scipy.sparse.linalg
import numpy

import linear_system


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matrix")
    parser.add_argument("rhs")
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--warm-up", type=int, default=10, help="iterations before anything is timed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", help="write x in PETSc's format")
    return parser.parse_args()


def tolerance_zero():
    """cupy 14 renamed tol to rtol, as scipy did."""
    known = inspect.signature(cupyx.scipy.sparse.linalg.cg).parameters
    return {"rtol" if "rtol" in known else "tol": 0.0, "atol": 0.0}


def solve(a, b, iterations):
    """(x, iterations made, seconds)"""
    made = 0

    def count(_):
        nonlocal made
        made += 1

    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    x, _ = cupyx.scipy.sparse.linalg.cg(a, b, maxiter=iterations, callback=count, **tolerance_zero())
    cupy.cuda.Device().synchronize()
    return x, made, time.perf_counter() - begin


def main():
    options = arguments()
    matrix = linear_system.Matrix.read(options.matrix)
    rhs = linear_system.read_vector(options.rhs, matrix.rows)
    a = cupyx.scipy.sparse.csr_matrix(
        (cupy.asarray(numpy.asarray(matrix.values)), cupy.asarray(numpy.asarray(matrix.columns)),
         cupy.asarray(numpy.asarray(matrix.offsets).astype(numpy.int32))), shape=(matrix.rows, matrix.rows))
    b = cupy.asarray(numpy.asarray(rhs))
    if options.warm_up:
        solve(a, b, options.warm_up)
    us = []
    for _ in range(options.repeats):
        x, made, seconds = solve(a, b, options.iterations)
        us.append(1e6 * seconds / made)
    x = cupy.asnumpy(x)
    if options.output:
        linear_system.write_vector(options.output, x)
    residual = numpy.asarray(rhs) - numpy.asarray(matrix.times(x))
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    print(json.dumps({
        "contestant": f"cupy {cupy.__version__} cg", "device": properties["name"].decode(), "matrix": options.matrix,
        "rows": matrix.rows, "nonzeros": matrix.nonzeros, "iterations": made,
        "us_per_iteration": {"best": min(us), "median": statistics.median(us), "worst": max(us)},
        "true_relative_residual": float(numpy.linalg.norm(residual) / numpy.linalg.norm(rhs)),
        "recurrence_relative_residual": None}))


if __name__ == "__main__":
    try:
        main()
    except linear_system.Wrong as problem:
        sys.exit(f"cupy_cg: {problem}")

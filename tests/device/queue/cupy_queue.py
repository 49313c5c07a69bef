#!/usr/bin/env python3
"""Halos that queues fill of arrays that CuPy has, where they are. Needs a GPU and CuPy.

  PYTHONPATH=FOLDER_OF_THE_PACKAGE tests/device/queue/cupy_queue.py [--gpus N]

Grids made up at random over ranks that are threads, one GPU each as far as --gpus has them, against all ranks' arrays on the
host, bit for bit: gathers and scatters on a stream and in a captured graph, by peer and, where each rank has a GPU, by nccl.
Prints one line a case; exit code 1: one failed, 3: no GPU, no CuPy, or no package.
"""

import argparse
import os
import pathlib
import sys
import traceback

# Ranks that share a GPU have a stream each, and those a hardware queue each.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
try:
    import cupy
    import numpy as np

    cupy.cuda.runtime.getDeviceCount()
    import hostless
    from hostless import _core
except Exception as problem:  # whatever CuPy says where it cannot be used
    print(f"skipped: no CuPy, no GPU, or no package ({problem})")
    sys.exit(3)
tests = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(tests / "python" / "queues"))  # of a checkout; else it lies beside this file
from halo_worlds import Grid, made  # noqa: E402

SEEDS = range(12)


def fill(grid, comm, ranks, queue, stream, in_graph):
    arrays = [[array for array, _ in of_copy] for of_copy in made(grid, comm.rank, cupy.zeros, cupy.asarray)]
    with hostless.QueueHalo(ranks, ranks=grid.ranks, fields=arrays[0], width=grid.width, reach=grid.reach, periodic=grid.periodic,
                            ready=grid.ready, tag=grid.seed % 3) as halo:
        stream.synchronize()
        comm.barrier()  # where ranks share a GPU none may allocate memory while another's step waits for it
        if in_graph:
            stream.begin_capture()
        for scatters, copy, ends_run in grid.steps:
            step = halo.enqueue_scatter if scatters else halo.enqueue_gather
            step(queue, arrays[1] if copy else None, ends_run=ends_run)
        graph = stream.end_capture() if in_graph else None
        if in_graph:
            graph.launch(stream)
        queue.wait()
        comm.barrier()
    for copy, right in enumerate(grid.whole()):
        for field, of_ranks in enumerate(right):
            seen = arrays[copy][field].get()
            assert seen.tobytes() == of_ranks[comm.rank].tobytes(), (grid.seed, grid.size, comm.rank, copy, field)
    return graph


def halos(count, gpus, by, in_graph):
    def body(comm):
        with cupy.cuda.Device(comm.rank % gpus):
            stream = cupy.cuda.Stream(non_blocking=True)
            words = {"transport": "nccl"} if by == "nccl" else {}
            with stream, hostless.Communicator(comm, gpu=comm.rank % gpus, **words) as ranks:
                for seed in SEEDS:
                    # A queue of a stream keeps what a graph uses as long as there is the queue.
                    with hostless.Queue(stream, **({"type": "nccl"} if by == "nccl" else {})) as queue:
                        graph = fill(Grid(seed, count, adds=True), comm, ranks, queue, stream, in_graph)
                        stream.synchronize()
                        del graph
                    comm.barrier()

    hostless.run_threads(count, body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    gpus = parser.parse_args().gpus
    if _core.visible_gpus() < gpus:
        print(f"skipped: hostless sees {_core.visible_gpus()} GPUs")
        sys.exit(3)
    failed = 0
    for count in (1, 2, 4):
        for by in ["peer"] + (["nccl"] if count <= gpus else []):
            for in_graph in (False, True):
                what = f"{count} ranks, {by}, {'in a graph' if in_graph else 'on a stream'}"
                try:
                    halos(count, gpus, by, in_graph)
                    print(f"ok      {what}: {len(SEEDS)} grids", flush=True)
                except Exception:
                    failed += 1
                    traceback.print_exc()
                    print(f"FAILED  {what}", flush=True)
    print(f"{failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

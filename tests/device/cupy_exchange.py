#!/usr/bin/env python3
"""What CuPy (and torch, where it is installed) has on GPUs is exchanged where it is. Needs a GPU and CuPy.

  PYTHONPATH=FOLDER_OF_THE_PACKAGE tests/device/cupy_exchange.py [--gpus N] [--only CASE]

Plans made up at random over ranks that are threads, one GPU each as far as --gpus has them: every byte against NumPy's
indexing, both directions, by peer and host (by nccl where each rank has a GPU, or is alone); producers that still run when an
exchange is started; captured graphs that are replayed; torch; a rank that is lost. Prints one line a case; exit code 1: one
failed, 3: no GPU, no CuPy, or no package.
"""

import argparse
import os
import pathlib
import sys
import time
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
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))  # of a checkout; else it lies beside this file
from exchange_worlds import check, ring  # noqa: E402

CASES = []
GPUS = 1
RANKS = (1, 2, 3)


def case(function):
    CASES.append(function)
    return function


def on_gpus(ranks, body):
    """body(comm, stream) on so many ranks, each with its GPU and a stream of its own in use."""
    def of_rank(comm):
        with cupy.cuda.Device(comm.rank % GPUS):
            stream = cupy.cuda.Stream(non_blocking=True)
            with stream:
                try:
                    return body(comm, stream)
                finally:
                    stream.synchronize()

    return hostless.run_threads(ranks, of_rank)


def transports(ranks):
    return ["peer", "host"] + (["nccl"] if ranks <= GPUS else [])


def put(array, values):
    if values.size:
        array.set(np.ascontiguousarray(values))


THERE = (lambda shape, dtype: cupy.empty(shape, dtype), put, lambda array: array.get())


@case
def random_patterns():
    def body(comm, stream, by):
        def settle():
            """Where ranks share a GPU none may allocate or free memory while another's exchange waits for it."""
            stream.synchronize()
            comm.barrier()

        check(range(30), comm, comm.rank, comm.size, THERE, adds_around=False, numbers_alone=True, gpu_transport=by,
              **({"settle": settle} if comm.size > GPUS else {}))

    for ranks in RANKS:
        for by in transports(ranks):
            on_gpus(ranks, lambda comm, stream: body(comm, stream, by))
            print(f"  {ranks} ranks, {by}: 30 plans, both directions", flush=True)


def waiting_kernel():
    kernel = cupy.RawKernel("""extern "C" __global__ void waiting(long long cycles) {
        long long const begin = clock64(); while (clock64() - begin < cycles) {} }""", "waiting")
    kernel((1,), (1,), (1,))  # compiled
    return kernel


def ring_of_numbers(comm, by, count=1000):
    """(exchange, owned, its ghosts, what they must be for a given start) of a wide ring."""
    plan = ring(comm)
    owned, ghosts = cupy.zeros((4, count)), cupy.zeros((2, count))
    exchange = hostless.Exchange(plan, [(owned, ghosts)], gpu_transport=by, limit=30)
    items = np.array([(4 * comm.rank - 1) % (4 * comm.size), (4 * comm.rank + 4) % (4 * comm.size)])
    mine = np.arange(4 * comm.rank, 4 * comm.rank + 4)

    def values(numbers, turn):
        return (1000.0 * turn + numbers)[:, None] + np.zeros(count)

    return exchange, owned, ghosts, lambda turn: cupy.asarray(values(mine, turn)), lambda turn: values(items, turn)


@case
def the_producers_stream():
    """What is queued when an exchange is started comes first, and what is queued after its end sees the ghosts."""
    def body(comm, stream, by):
        kernel = waiting_kernel()
        exchange, owned, ghosts, given, expected = ring_of_numbers(comm, by)
        turns = [given(turn) for turn in range(4)]
        seen = [cupy.zeros_like(ghosts) for _ in turns]
        other = cupy.cuda.Stream(non_blocking=True)
        stream.synchronize()
        comm.barrier()
        for turn, values in enumerate(turns):
            kernel((1,), (1,), (20_000_000,))  # some hundredths of a second
            owned[...] = values
            if turn % 2:
                exchange.exchange()
            else:
                exchange.start()
                exchange.finish()
            seen[turn][...] = ghosts
            exchange.wait()
        for turn, one in enumerate(seen):
            assert np.array_equal(one.get(), expected(turn)), f"rank {comm.rank}, turn {turn}"
        with other:  # named by hand
            owned[...] = given(7)
        for name in (other, other.ptr):
            exchange.start(stream=name)
            exchange.finish(stream=name)
            exchange.wait()
        other.synchronize()
        assert np.array_equal(ghosts.get(), expected(7))

    for ranks in RANKS:
        for by in transports(ranks):
            on_gpus(ranks, lambda comm, stream: body(comm, stream, by))


@case
def captured_graphs():
    def body(comm, stream, by, beside):
        exchange, owned, ghosts, given, expected = ring_of_numbers(comm, by)
        turns = [given(turn) for turn in range(5)]
        if not exchange.may_be_recorded:
            return False
        exchange.exchange()
        exchange.wait()
        stream.synchronize()
        comm.barrier()
        stream.begin_capture()
        if beside:
            exchange.start()
            exchange.finish()
        else:
            exchange.exchange()
        graph = stream.end_capture()
        comm.barrier()
        for turn, values in enumerate(turns):
            owned[...] = values
            if turn == 2:  # mixed with one that is not recorded
                exchange.exchange()
            else:
                graph.launch(stream)
            began = time.monotonic()
            while not stream.done and time.monotonic() - began < 30:
                exchange.test()  # where the host carries it moves the messages
            stream.synchronize()
            assert np.array_equal(ghosts.get(), expected(turn)), f"rank {comm.rank}, {by}, turn {turn}"
            comm.barrier()
        return True

    for ranks in RANKS:
        for by in transports(ranks):
            for beside in (False, True):
                recorded = on_gpus(ranks, lambda comm, stream: body(comm, stream, by, beside))
                assert recorded[0] or by == "host", by
            print(f"  {ranks} ranks, {by}: {'replayed' if recorded[0] else 'cannot be recorded'}", flush=True)


@case
def a_lost_rank():
    def body(comm, stream, by):
        plan = ring(comm)
        exchange = hostless.Exchange(plan, [(cupy.zeros(4), cupy.zeros(2))], gpu_transport=by, limit=0.5)
        if comm.rank == 1:
            return time.sleep(2)
        began = time.monotonic()
        try:
            exchange.exchange()
            exchange.wait()
            raise AssertionError("nobody was missed")
        except hostless.PeerLostError:
            assert time.monotonic() - began < 20 and exchange.lost

    for by in ("peer", "host"):
        on_gpus(2, lambda comm, stream: body(comm, stream, by))


@case
def refused_without_harm():
    plan = hostless.ExchangePlan([0, 1], [1])
    wide = cupy.zeros((2, 4))
    for fields in ([(wide[:, ::2], cupy.zeros((1, 2)))], [(wide, cupy.zeros((1, 4), "f4"))], [(cupy.zeros(2), np.zeros(1))]):
        try:
            hostless.Exchange(plan, fields)
            raise AssertionError("accepted")
        except hostless.UsageError:
            pass


@case
def torch_too():
    try:
        import torch
    except ImportError:
        print("  no torch")
        return
    for kind in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool):
        plan = hostless.ExchangePlan([0, 1, 2], [2, 0])
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            owned = (torch.arange(6, device="cuda").reshape(3, 2) % 2).to(kind)
            ghosts = torch.zeros((2, 2), dtype=kind, device="cuda")
            exchange = hostless.Exchange(plan, [(owned, ghosts)])
            exchange.start()
            exchange.finish()
            assert torch.equal(ghosts.cpu(), owned.cpu()[[2, 0]]), kind
            exchange.wait()
    tracked = torch.zeros(2, device="cuda", requires_grad=True)
    try:
        hostless.Exchange(plan, [(torch.zeros(3, device="cuda"), tracked)])
        raise AssertionError("accepted")
    except hostless.UsageError as problem:
        assert "autograd" in str(problem)


def main():
    global GPUS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    options = parser.parse_args()
    GPUS = options.gpus
    if _core.visible_gpus() < GPUS:
        print(f"skipped: hostless sees {_core.visible_gpus()} GPUs")
        sys.exit(3)
    failed = 0
    for one in CASES:
        if options.only not in one.__name__:
            continue
        try:
            one()
            print(f"ok      {one.__name__}", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"FAILED  {one.__name__}", flush=True)
    print(f"{failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

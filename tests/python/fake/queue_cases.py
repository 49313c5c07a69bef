"""Queues whose work streams do, with arrays in the memory of GPUs: the GPUs are those that tests/unit/queue plays."""

import ctypes
import gc
import os
import pathlib
import sys
import weakref

import numpy as np
import pytest

import hostless

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "queues"))
from halo_worlds import Grid, check as check_halo  # noqa: E402
from queue_worlds import World, check  # noqa: E402
from test_queue_keeps import settled  # noqa: E402

PLAYED = ctypes.CDLL(os.path.join(os.environ["HOSTLESS_PLUGIN_DIR"], "libhostless_cuda.so"))
PLAYED.played_memory.restype = PLAYED.played_stream.restype = ctypes.c_void_p
PLAYED.played_memory.argtypes = [ctypes.c_size_t, ctypes.c_int]
PLAYED.played_replay.argtypes = [ctypes.c_void_p]
ENQUEUES = ctypes.CFUNCTYPE(None)
PLAYED.played_record.argtypes = [ctypes.c_void_p, ENQUEUES]


class Stream:
    """As Numba has them; the others hold one of these."""

    def __init__(self, gpu):
        self.handle = ctypes.c_void_p(PLAYED.played_stream(gpu))


class Array(np.ndarray):
    """Memory of a played GPU, which is the processor: a package's array that knows where it is."""

    _gpu = 0

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.ctypes.data, False), "version": 2,
                "strides": None if self.flags.c_contiguous else self.strides}


def maker(gpu):
    def make(shape, dtype):
        dtype = np.dtype(dtype)
        size = max(1, int(np.prod(shape)) * dtype.itemsize)
        memory = (ctypes.c_char * size).from_address(PLAYED.played_memory(size, gpu))
        array = np.ndarray(shape, dtype, memory).view(Array)
        array[...] = 0
        return array
    return make


def given(stream, how):
    number = stream.handle.value

    class Protocol:
        def __cuda_stream__(self):
            return 0, number

    class Old:
        __cuda_stream__ = (0, number)

    CuPys, Torchs = type("CuPys", (), {"ptr": number}), type("Torchs", (), {"cuda_stream": number})
    return {"number": number, "Numba's": stream, "protocol": Protocol(), "as an attribute": Old(), "CuPy's": CuPys(),
            "torch's": Torchs()}[how]


@pytest.mark.parametrize("how", ["number", "Numba's", "protocol", "as an attribute", "CuPy's", "torch's"])
@pytest.mark.parametrize("ranks, gpus", [(1, 1), (2, 1), (2, 2), (3, 2)])
def test_random_programs(ranks, gpus, how):
    def body(comm):
        gpu = comm.rank % gpus
        stream = Stream(gpu)
        with hostless.Communicator(comm, gpu=gpu) as communicator, hostless.Queue(given(stream, how)) as queue:
            assert communicator.gpu == gpu and repr(queue) == "<hostless.Queue of a stream>"
            for seed in range(8):
                check(World(seed, ranks), communicator, queue, maker(gpu))

    hostless.run_threads(ranks, body)


def by_nccl(ranks, check_one):
    """Of eight seeds, on ranks with a GPU each."""
    def body(comm):
        with hostless.Communicator(comm, gpu=comm.rank, transport="nccl") as communicator, hostless.Queue(Stream(comm.rank), type="nccl") as queue:
            for seed in range(8):
                check_one(seed, communicator, queue, maker(comm.rank))

    hostless.run_threads(ranks, body)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_random_programs_by_nccl(ranks):
    by_nccl(ranks, lambda seed, *what: check(World(seed, ranks), *what))


def test_what_nccl_refuses():
    def refused(says, **words):
        with pytest.raises(hostless.QueueError, match=says) as told:
            hostless.Communicator(**words)
        assert told.value.why == "unsupported"

    refused("without gpu=", comm=None, transport="nccl")
    hostless.run_threads(2, lambda comm: refused("GPU 0", comm=comm, gpu=0, transport="nccl"))
    with pytest.raises(hostless.QueueError) as told:
        hostless.Queue(0, type="nccl")
    assert told.value.why == "unsupported"
    with hostless.Communicator(None, gpu=0, transport="nccl") as ranks, hostless.Queue(Stream(0)) as queue:
        both = ranks.send_init(maker(0)(4, "f8"), 0), ranks.recv_init(maker(0)(4, "f8"), 0)
        hostless.match(both)
        with pytest.raises(hostless.QueueError, match="nccl") as told:  # a queue of the type peer
            queue.enqueue_start(both)
        assert told.value.why == "unsupported"


def test_a_recorded_step():
    def body(comm):
        stream, make = Stream(0), maker(0)
        with hostless.Communicator(comm, gpu=0) as ranks:
            queue = hostless.Queue(stream)
            out, into = make(4, "f8"), make(4, "f8")
            both = [ranks.recv_init(into, 1 - comm.rank), ranks.send_init(out, 1 - comm.rank)]
            hostless.match(both)
            raised = []

            def add():
                out[...] = out + 1 + comm.rank

            def enqueue():
                queue.enqueue_function(add)
                queue.enqueue_start_and_wait(both)
                try:
                    queue.wait()
                except hostless.UsageError as problem:
                    raised.append(str(problem))
                raised.append(queue.test())

            PLAYED.played_record(stream.handle, ENQUEUES(enqueue))
            assert "being recorded" in raised[0] and raised[1] is False
            del both
            for _ in range(3):
                PLAYED.played_replay(stream.handle)
            queue.wait()
            comm.barrier()
            queue.close()
            return into.tolist()

    assert hostless.run_threads(2, body) == [[6.0] * 4, [3.0] * 4]


def test_what_is_refused():
    with hostless.Communicator(None, gpu=0) as ranks:
        for array, says in ((np.zeros(4), "not pinned"), (maker(1)(4, "f8"), "GPU 1")):
            with pytest.raises(hostless.QueueError, match=says) as told:
                ranks.send_init(array, 0)
            assert told.value.why == "unsupported"
        with pytest.raises(hostless.UsageError, match="gaps"):
            ranks.send_init(maker(0)(4, "f8")[::2], 0)
        here = ranks.send_init(maker(0)(4, "f8"), 0), ranks.recv_init(maker(0)(4, "f8"), 0)
        hostless.match(here)
        for queue, says in ((hostless.Queue(), "GPU 0's"), (hostless.Queue(Stream(1)), "that of GPU 1")):
            with pytest.raises(hostless.QueueError, match=says) as told:
                queue.enqueue_start(here)
            assert told.value.why == "unsupported"
    with hostless.Communicator(None) as ranks, pytest.raises(hostless.QueueError, match="gpu=") as told:
        ranks.send_init(maker(0)(4, "f8"), 0)
    assert told.value.why == "unsupported"
    with pytest.raises(hostless.MachineError, match="no such GPU"):
        hostless.Communicator(None, gpu=3)


def test_a_stream_is_kept():
    class Held(Stream):
        def __del__(self):
            ended.append(1)

    ended = []
    queue = hostless.Queue(Held(0))
    queue.enqueue_function(ended.append, 0)
    assert 1 not in ended
    queue.close()
    hostless.Queue().close()
    assert ended == [0, 1]


# ---- halos


def recorded(stream):
    """Has work recorded and launched once."""
    def by(enqueue):
        raised = []

        def call():  # which C calls: nothing may come out of it
            try:
                enqueue()
            except BaseException as problem:
                raised.append(problem)

        PLAYED.played_record(stream.handle, ENQUEUES(call))
        for problem in raised:
            raise problem
        PLAYED.played_replay(stream.handle)
    return by


@pytest.mark.parametrize("how", ["enqueued", "recorded"])
@pytest.mark.parametrize("ranks, gpus", [(1, 1), (2, 1), (3, 3), (4, 2)])
def test_random_halos(ranks, gpus, how):
    def body(comm):
        gpu = comm.rank % gpus
        stream = Stream(gpu)
        by = recorded(stream) if how == "recorded" else lambda enqueue: enqueue()
        with hostless.Communicator(comm, gpu=gpu) as communicator, hostless.Queue(stream) as queue:
            for seed in range(8):
                check_halo(Grid(seed, ranks), communicator, queue, maker(gpu), by)

    hostless.run_threads(ranks, body)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_random_halos_by_nccl(ranks):
    by_nccl(ranks, lambda seed, *what: check_halo(Grid(seed, ranks), *what))


def test_a_halo_by_nccl_is_the_set_of_its_ranks():
    with hostless.Communicator(None, gpu=0, transport="nccl") as ranks, hostless.Queue(Stream(0), type="nccl") as queue:
        words = {"ranks": (1, 1), "fields": maker(0)((3, 3), "f8"), "periodic": True}
        first = hostless.QueueHalo(ranks, **words)
        first.enqueue_gather(queue)
        queue.wait()
        with pytest.raises(hostless.QueueError) as told:
            hostless.QueueHalo(ranks, **words)
        assert told.value.why == "unsupported"
        first.close()  # which the queue would keep for graphs
        hostless.QueueHalo(ranks, **words).close()


def test_halos_in_memory_that_is_not_reached():
    def body(comm):
        gpu = comm.rank
        good = {"ranks": (2, 1), "fields": maker(gpu)((3, 3), "f8")}
        with hostless.Communicator(comm, gpu=gpu) as ranks:
            for array, says in ((np.zeros((3, 3)), "not pinned"), (maker(1 - gpu)((3, 3), "f8"), f"GPU {1 - gpu}")):
                with pytest.raises(hostless.QueueError, match="rank 1" if gpu == 0 else says) as told:
                    hostless.QueueHalo(ranks, **{**good, **({"fields": array} if gpu == 1 else {})})
                assert told.value.why == "unsupported"
            halo = hostless.QueueHalo(ranks, **good)
            for array, says in ((np.zeros((3, 3)), "not pinned"), (maker(1 - gpu)((3, 3), "f8"), f"GPU {1 - gpu}")):
                with pytest.raises(hostless.QueueError, match=says) as told:
                    halo.enqueue_gather(queue := hostless.Queue(Stream(gpu)), array)
                assert told.value.why == "unsupported" and queue.is_idle
            with pytest.raises(hostless.QueueError, match="host") as told:
                halo.enqueue_gather(hostless.Queue())
            assert told.value.why == "unsupported"

    hostless.run_threads(2, body)
    with hostless.Communicator(None) as ranks, pytest.raises(hostless.QueueError, match="gpu=") as told:
        hostless.QueueHalo(ranks, ranks=(1, 1), fields=maker(0)((3, 3), "f8"))
    assert told.value.why == "unsupported"


def test_a_stream_keeps_what_steps_use():
    stream, make, gone = Stream(0), maker(0), []

    def step(by):
        array = make((3, 3), "f8")
        array[1, 1] = 3
        gone.append(weakref.ref(array))
        by(lambda: halo.enqueue_gather(queue, array))

    with hostless.Communicator(None, gpu=0) as ranks:
        queue, halo = hostless.Queue(stream), hostless.QueueHalo(ranks, ranks=(1, 1), fields=make((3, 3), "f8"), periodic=True)
        step(lambda enqueue: enqueue())
        gc.collect()
        assert gone[0]() is not None
        queue.wait()
        assert settled(lambda: gone[0]() is None)
        step(recorded(stream))
        gc.collect()
        queue.wait()
        assert gone[1]()[0].tolist() == [3.0] * 3
        gone[1]()[1, 1] = 4
        gone.append(weakref.ref(halo))
        del halo
        gc.collect()
        PLAYED.played_replay(stream.handle)
        queue.wait()
        assert gone[1]()[0].tolist() == [4.0] * 3 and gone[2]() is not None
        queue.close()
        assert settled(lambda: gone[1]() is None and gone[2]() is None)

"""Exchanges over arrays in the memory of a GPU: their bytes, whose streams they wait for, what is refused. The GPU is
fake_gpu.cpp with the exchanges that tests/unit/exchange plays; CuPy the module beside this file."""

import pathlib
import re
import sys

import cupy
import numpy as np
import pytest

import hostless

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import neighbor_worlds  # noqa: E402
from exchange_worlds import check, ring  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "howto" / "exchange-on-gpus.md"


def put(array, values):
    if values.size:
        array.put(values)


#: Each array is put to its stream, if one is in use, and looked at without a wait.
THERE = (lambda shape, dtype: cupy.empty(shape, dtype), put, lambda array: array.look())


def pair(value=0.0):
    return cupy.asarray(np.full(4, value)), cupy.asarray(np.zeros(2))


class Interface:
    """An array of a package that has the array interface alone."""

    def __init__(self, array, **change):
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **change}
        self.keeps = array


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_random_patterns(ranks):
    hostless.run_threads(ranks, lambda comm: check(range(25), comm, comm.rank, ranks, THERE, adds_around=False,
                                                   gpu_transport="host"))


def test_what_is_said_of_it():
    plan = hostless.ExchangePlan([0, 1], [0])
    exchange = hostless.Exchange(plan, [(cupy.asarray(np.zeros(2)), cupy.asarray(np.zeros(1)))], gpu_transport="host")
    assert exchange.gpu_transport == "host" and exchange.may_be_recorded and exchange.device_bytes >= 0
    assert "played" in repr(exchange)


@pytest.mark.parametrize("way", ["exchange", "start"])
@pytest.mark.parametrize("given", ["in use", "CuPy's", "number", "torch's", "protocol"])
def test_the_producers_stream_comes_first(way, given):
    class Torchs:
        cuda_stream = 77

    class Protocol:
        def __cuda_stream__(self):
            return 0, 77

    named = {"in use": None, "CuPy's": cupy.cuda.Stream(77), "number": 77, "torch's": Torchs(), "protocol": Protocol()}[given]
    plan = hostless.ExchangePlan([0, 1], [1])
    owned, ghosts = cupy.asarray(np.zeros(2)), cupy.asarray(np.zeros(1))
    exchange = hostless.Exchange(plan, [(owned, ghosts)], gpu_transport="host")
    with cupy.cuda.Stream(77):
        owned.put(np.array([1.0, 2.0]))  # queued
        assert owned.look().tolist() == [0.0, 0.0]
        if named is None:
            getattr(exchange, way)()
    if named is not None:
        getattr(exchange, way)(stream=named)
    exchange.finish(named)
    exchange.wait()
    assert ghosts.look().tolist() == [2.0]


def test_the_stream_of_the_interface():
    plan = hostless.ExchangePlan([0, 1], [1])
    owned, ghosts = cupy.asarray(np.zeros(2)), cupy.asarray(np.zeros(1))
    exchange = hostless.Exchange(plan, [(Interface(owned, stream=78), Interface(ghosts, stream=None))], gpu_transport="host")
    with cupy.cuda.Stream(78):
        owned.put(np.array([1.0, 3.0]))
    exchange.exchange()
    assert ghosts.look().tolist() == [3.0]
    several = hostless.Exchange(plan, [(Interface(owned, stream=78), Interface(ghosts, stream=79))], gpu_transport="host")
    with pytest.raises(hostless.UsageError, match="several streams in use: .*0x4e, .*0x4f"):
        several.start()
    several.exchange(stream=78)


def test_the_first_axis_is_the_item_and_a_whole_array_has_no_gaps():
    plan = hostless.ExchangePlan([0, 1], [1])
    owned, ghosts = cupy.asarray(np.arange(6.0).reshape(2, 3)), cupy.asarray(np.zeros((1, 3)))
    hostless.Exchange(plan, [(Interface(owned, strides=None), ghosts)], gpu_transport="host").exchange()
    assert ghosts.look().tolist() == [[3.0, 4.0, 5.0]]


PAIR = pair()
REFUSED = {
    "both places": (lambda: [pair(), (np.zeros(4), np.zeros(2))], hostless.UsageError, "the processor and of a GPU"),
    "gaps": (lambda: [(cupy.asarray(np.zeros(8)).view_of(0, (4,), (16,)), PAIR[1])], hostless.UsageError, "fields\\[0\\], owned has gaps"),
    "backwards": (lambda: [(PAIR[0].view_of(24, (4,), (-8,)), PAIR[1])], hostless.UsageError, "fields\\[0\\], owned runs backwards"),
    "read-only": (lambda: [(PAIR[0], Interface(PAIR[1], data=(PAIR[1].ptr, True)))], hostless.UsageError, "fields\\[0\\], ghosts is read-only"),
    "a mask": (lambda: [(PAIR[0], Interface(PAIR[1], mask=PAIR[0]))], hostless.UsageError, "fields\\[0\\], ghosts has a mask"),
    "objects": (lambda: [(Interface(PAIR[0], typestr="|O"), PAIR[1])], TypeError, "fields\\[0\\], owned has a type"),
    "types": (lambda: [(PAIR[0], cupy.asarray(np.zeros(2, "f4")))], hostless.UsageError, "float64\\[\\], ghosts float32\\[\\]"),
    "items": (lambda: [(PAIR[1], PAIR[1])], hostless.UsageError, "owned has the shape \\(2,\\)"),
    "nobody's memory": (lambda: [(PAIR[0], Interface(PAIR[1], data=(8, False)))], hostless.UsageError, "fields\\[0\\].receive: no memory of a GPU"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_on_all_ranks(what):
    make, kind, text = REFUSED[what]

    def body(comm):
        plan = ring(comm)
        with pytest.raises(kind if comm.rank else hostless.Error, match=text):
            hostless.Exchange(plan, make() if comm.rank else [pair()], gpu_transport="host")

    hostless.run_threads(2, body)


def test_other_things_on_other_ranks():
    def body(comm):
        plan = ring(comm)
        with pytest.raises(hostless.UsageError, match="gpu_transport='peer'"):
            hostless.Exchange(plan, [pair()], gpu_transport="host" if comm.rank else "peer")
        with pytest.raises(hostless.UsageError, match="memory of the processor.*memory of a GPU"):
            hostless.Exchange(plan, [pair()] if comm.rank else [(np.zeros(4), np.zeros(2))])

    hostless.run_threads(2, body)


def test_streams_and_sums_that_cannot_be():
    plan = hostless.ExchangePlan([0, 1], [0], around=True)
    with pytest.raises(hostless.UsageError, match="Make the plan without around"):
        hostless.ReverseExchange(plan, [cupy.asarray(np.zeros(3))], gpu_transport="host")
    exchange = hostless.Exchange(plan, [cupy.asarray(np.zeros(3))], gpu_transport="host")
    with pytest.raises(TypeError, match="stream is a str"):
        exchange.start(stream="s")


def test_a_lost_rank():
    def body(comm):
        exchange = hostless.Exchange(ring(comm), [pair()], gpu_transport="host", limit=0.3)
        if comm.rank == 1:
            return
        with pytest.raises(hostless.PeerLostError):
            exchange.exchange()
        assert exchange.lost
        for use in (exchange.start, exchange.wait, exchange.test):
            with pytest.raises(hostless.PeerLostError):
                use()

    hostless.run_threads(2, body)


def test_arrays_live_as_long_as_the_exchange():
    plan = hostless.ExchangePlan([0, 1], [1])
    owned, ghosts = cupy.asarray(np.array([1.0, 2.0])), cupy.asarray(np.zeros(1))
    block = ghosts._block
    before = sys.getrefcount(ghosts)
    exchange = hostless.Exchange(plan, [(owned, ghosts)], gpu_transport="host")
    assert sys.getrefcount(ghosts) > before
    exchange.close()
    assert sys.getrefcount(ghosts) == before and block.ptr


def test_what_the_page_says():
    """Its Python block, but for the way: this GPU has the host carry."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 1 and 'gpu_transport="peer"' in blocks[0]
    names = {}
    exec(compile(blocks[0].replace('gpu_transport="peer"', 'gpu_transport="host"'), str(PAGE), "exec"), names)  # noqa: S102
    assert hostless.run_threads(2, names["body"]) == [[7.0, 4.0], [3.0, 0.0]]


# ---- collectives between neighbours, and exchanges from numbers

@pytest.mark.parametrize("ranks", [1, 3])
def test_collectives_of_random_graphs(ranks):
    def body(comm):
        for seed in range(25):
            graph = neighbor_worlds.Graph(seed, comm.size)
            send, receive = graph.array(comm.rank, 0), graph.room(comm.rank)
            there, back = cupy.asarray(send), cupy.asarray(receive)
            neighbours = hostless.Neighborhood(comm, graph.sources[comm.rank], graph.destinations[comm.rank], **graph.how)
            collective = graph.collective(neighbours, comm.rank, there, back, cupy.empty, gpu_transport="host")
            collective.start()
            collective.finish()
            collective.wait()
            assert back.look().tobytes() == graph.expected(comm.rank, 0).tobytes(), (graph.call, seed)

    hostless.run_threads(ranks, body)


def test_update():
    def body(comm):
        exchange = hostless.Exchange(comm, [comm.rank], [(comm.rank + 1) % comm.size], gpu_transport="host")
        array = cupy.asarray(np.array([[10.0 * comm.rank, 1.0], [-1.0, -1.0]]))
        for _ in range(2):
            exchange.update(array)
        return array.look().tolist()

    assert hostless.run_threads(2, body) == [[[0, 1], [10, 1]], [[10, 1], [0, 1]]]

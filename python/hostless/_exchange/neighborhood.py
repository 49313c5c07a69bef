"""Collectives between the neighbours of a graph, made once and then started and finished."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from .. import _core
from ..errors import UsageError, counted
from .bound import Bound, OfRanks, agreed, bind_words, check_carrier
from .plan import integers, plan_words
from .fields import Array, array_of, check_dense


class Collective(Bound):
    """A collective of a Neighborhood over two arrays: start, finish, exchange, test and wait, as hostless.Exchange has them."""

    def __init__(self, of: "Neighborhood", call: str, bound: Any, arrays: list, is_on_gpu: bool):
        self._of, self._call, self._bound = of, call, bound
        self._arrays, self._is_on_gpu = arrays if is_on_gpu else [], is_on_gpu
        of._exchanges.add(self)

    @property
    def _route(self) -> str:
        return self._of.route

    def __repr__(self) -> str:
        return super().__repr__().replace("Collective", self._call)


class Neighborhood(OfRanks):
    """Who sends to whom, as MPI's distributed graph has it.

    comm          who the ranks are: a communicator of mpi4py, what `run_threads` hands to its function, or None (one rank)
    sources       ranks that this one receives from, in the order of the blocks that it receives
    destinations  ranks that it sends to, in the order of the blocks that it sends. Both lists may have the own rank, and a
                  rank several times: the k-th block that goes to it is the k-th that it has from there
    route, ranks_per_node, transport
                  as hostless.ExchangePlan has them

    Collective, as are its collectives: every rank makes the same call, and what one of them does wrong is raised on all, before
    anything has moved. It ends as a plan does.

    Errors: UsageError (ranks that are none; an edge that one of its ranks has more often than the other), TypeError,
    PeerLostError.
    """

    def __init__(self, comm: Any, sources: Any = None, destinations: Any = None, *, route: str = "auto", ranks_per_node: int = 0,
                 transport: Optional[str] = None):
        self._begin(comm, transport)

        def prepare() -> tuple:
            check_carrier(comm, transport)
            if sources is None or destinations is None:
                has_graph = hasattr(comm, "inedges")  # as mpi4py's communicators with a topology have
                raise TypeError("a Neighborhood without sources or destinations (the graph of a communicator is not read). Pass " +
                                ("sources=comm.inedges, destinations=comm.outedges, each without MPI.PROC_NULL."
                                 if has_graph else "both lists of ranks."))
            words, same = plan_words(route, False, ranks_per_node)
            return integers(sources, "sources", np.int32).tolist(), integers(destinations, "destinations", np.int32).tolist(), words, same

        self.sources, self.destinations, words = agreed(self._ranks, prepare)
        self._graph = _core.RanksNeighborhood(self._ranks, self.sources, self.destinations, words)

    @property
    def route(self) -> str:
        """The route of all collectives; "auto": each collective has one by what it moves."""
        return self._graph.route

    def allgather(self, send: Any, receive: Any, *, limit: Any = None, gpu_transport: str = "auto") -> Collective:
        """The same block to every destination.

        send     the block: all of the array
        receive  [sources, ...] blocks of the same size; that of sources[k] becomes receive[k]
        limit, gpu_transport  as hostless.Exchange has them

        Arrays are of one type, C-contiguous, in the memory of the processor or of one GPU; they are read and written where they
        lie, share no byte, and are kept as long as the collective is there.

        Errors: UsageError (shapes, types, gaps, read-only arrays; blocks of other lengths on the two sides), TypeError,
        MachineError, PeerLostError.
        """
        return self._made("allgather", (send, None, None), (receive, None, None), limit, gpu_transport)

    def allgatherv(self, send: Any, receive: Any, counts: Any, displacements: Any = None, *, limit: Any = None,
                   gpu_transport: str = "auto") -> Collective:
        """As allgather, with blocks of any lengths.

        counts, displacements  [sources] receive[displacements[k]:displacements[k] + counts[k]] is the block of sources[k]; None:
                               one behind the other. What lies between them is left as it is
        """
        return self._made("allgatherv", (send, None, None), (receive, counts, displacements), limit, gpu_transport)

    def alltoall(self, send: Any, receive: Any, *, limit: Any = None, gpu_transport: str = "auto") -> Collective:
        """A block of its own to every destination.

        send, receive  [destinations, ...] and [sources, ...] blocks of one size; the rest as allgather
        """
        return self._made("alltoall", (send, None, None), (receive, None, None), limit, gpu_transport)

    def alltoallv(self, send: Any, send_counts: Any, receive: Any, receive_counts: Any, *, send_displacements: Any = None,
                  receive_displacements: Any = None, limit: Any = None, gpu_transport: str = "auto") -> Collective:
        """As alltoall, with blocks of any lengths: counts and displacements along the first axis, as allgatherv has them. Blocks
        that are sent may overlap."""
        return self._made("alltoallv", (send, send_counts, send_displacements), (receive, receive_counts, receive_displacements),
                          limit, gpu_transport)

    def _made(self, call: str, send: tuple, receive: tuple, limit: Any, gpu_transport: Any) -> Collective:
        self._check_open()

        def prepare() -> tuple:
            sent, out = _side(send, "send", len(self.destinations), False, call == "alltoall")
            received, into = _side(receive, "receive", len(self.sources), True, call in ("allgather", "alltoall"))
            if sent.kind != received.kind:
                raise UsageError(f"send is {sent.kind}, receive {received.kind} (a block is a copy). Pass arrays of one type.")
            if sent.there != received.there:
                raise UsageError("one array is in the memory of the processor, one in that of a GPU (a collective moves one kind). "
                                 "Pass both of one.")
            words, same = bind_words(False, sent.there, max(sent.device, received.device), limit, gpu_transport)
            where = "a GPU" if sent.there else "the processor"
            return sent, out, received, into, words, f"{call} of {sent.kind} in the memory of {where}, {same}"

        sent, out, received, into, words = agreed(self._ranks, prepare)
        plan, field = self._graph.plan(call, out, into)
        kept = [sent.keeps, received.keeps]
        return Collective(self, call, _core.BoundArrays(plan, [field], words, tuple(kept)), kept, sent.there)

    def __repr__(self) -> str:
        return (f"<hostless.Neighborhood of rank {self.rank} of {self.ranks}: {counted(len(self.sources), 'source')}, "
                f"{counted(len(self.destinations), 'destination')}, {self.route}>")


def _side(given: tuple, what: str, neighbours: int, writes: bool, has_axis: bool) -> tuple:
    """An array and where its blocks lie, as the extension module takes it."""
    thing, counts, displacements = given
    array = array_of(thing, what)
    _check(array, what, writes)
    if has_axis and (not array.shape or array.shape[0] != neighbours):
        raise UsageError(f"{what} has the shape {array.shape} (its first axis is the neighbour, and there {'is' if neighbours == 1 else 'are'} {neighbours}). Pass "
                         f"({neighbours}, ...).")
    words = _core.BlockWords()
    words.address, words.bytes = array.address, math.prod(array.shape) * array.element_bytes
    item_bytes = math.prod(array.item_shape) * array.element_bytes
    if counts is not None and item_bytes == 0:
        raise UsageError(f"{what} has the shape {array.shape} (its items have no bytes, so nothing would travel). Leave the call "
                         "out, or pass items of a byte or more.")
    words.item_bytes = max(1, item_bytes)
    if what == "send" and counts is None and not has_axis:
        return array, words  # of a gather: all of it
    if not has_axis:
        words.counts = integers(counts, f"{what}_counts", np.int64, "Give a smaller one.").tolist()
        if displacements is not None:
            words.displacements = integers(displacements, f"{what}_displacements", np.int64, "Give a smaller one.").tolist()
            if not words.displacements and neighbours:
                raise UsageError(f"{what}_displacements: 0 for {counted(neighbours, 'neighbour')} (each block has one). Pass as many, or none.")
    return array, words


def _check(array: Array, what: str, writes: bool) -> None:
    check_dense(array, what, "items are read and written")
    if writes and not array.is_writable:
        raise UsageError(f"{what} is read-only, or autograd follows it (the collective writes there). Pass an array that may be "
                         "written.")

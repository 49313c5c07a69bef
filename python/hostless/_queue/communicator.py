"""The ranks of queues, and the arrays that their messages move."""

from __future__ import annotations

import math
import numbers
from typing import Any, Optional

from .. import _core
from .._exchange.bound import OfRanks, agreed
from .._exchange.fields import Array, array_of, check_dense
from .._rows import small, word
from ..errors import QueueError, UsageError
from .request import Request

TRANSPORTS = ("mpi", "ofi", "nccl")
OPERATIONS = ("sum", "product", "minimum", "maximum")


class Communicator(OfRanks):
    """Ranks, between which requests are made.

    comm       who they are: a communicator of mpi4py, what `run_threads` hands to its function (of which one communicator is
               open at a time), or None (one rank, which may send to itself)
    gpu        the number of the GPU whose streams start and wait for its requests, between ranks that are threads; several ranks
               may have the same. None: the host does. All ranks make their communicators before anybody's first wait
    transport  with mpi4py "mpi" (None means it) or "ofi": libfabric's deferred operations. With gpu None (memory that the GPUs
               share) or "nccl": NCCL's groups, between ranks with a GPU each, for queues of the type "nccl" (docs/howto/queue.md)
    limit      seconds that a match may take; None: 600, times HOSTLESS_DEADLINE_SCALE

    Collective. With mpi4py the communicator is duplicated, and ends on all ranks together: `close` it on all, use it in a
    `with` block, or drop it with its requests. Whoever waits for a rank that has closed it is told. One thread at a time uses it.

    Errors: UsageError (unknown words), QueueError unsupported (a GPU between processes, "mpi" or "ofi" between threads, "nccl"
    without a GPU or with one of two ranks), MachineError (no such GPU, no libfabric, no NCCL), PeerLostError.
    """

    def __init__(self, comm: Any, *, gpu: Optional[int] = None, transport: Optional[str] = None, limit: Optional[float] = None):
        self._begin(comm, None)

        def prepare() -> tuple:
            if transport is not None and word(transport, "transport") not in TRANSPORTS:
                raise UsageError(f"transport={transport!r} (it carries messages). Use one of {', '.join(TRANSPORTS)}.")
            if transport == "nccl" and gpu is None:
                raise QueueError("transport='nccl' without gpu= is refused (it carries between GPUs). Name this rank's.", "unsupported")
            if transport in ("mpi", "ofi") and (comm is None or isinstance(comm, _core.Ranks)):
                raise QueueError(f"transport={transport!r} between ranks that are threads (they load and store in one memory). Leave "
                                 "it out.", "unsupported")
            number = -1 if gpu is None else small(gpu, "gpu")
            if gpu is not None and number < 0:
                raise UsageError(f"gpu={number} (they count from 0). Use another number, or None for the host.")
            place = "the host" if gpu is None else "a GPU"
            return number, transport or "", seconds_of(limit), f"a communicator of {place}, transport={transport or 'mpi'!r}"

        number, by, limit_s = agreed(self._ranks, prepare)
        self._gpu = gpu
        self._is_mpi4py = comm is not None and not self._is_of_thread
        self._bound = _core.HeldCommunicator(self._ranks, number, by, limit_s)

    @property
    def gpu(self) -> Optional[int]:
        return self._gpu

    def close(self) -> None:
        """Leaves: requests that still exist can only be freed, and who waits for this rank is told. With mpi4py on all ranks
        together."""
        if not self._closed:
            self._bound.close()
            super().close()

    def send_init(self, buffer: Any, peer: int, tag: int = 0) -> Request:
        """A send of all of an array, inactive and unmatched. It leaves when the receiver's queue has reached the receive's start too.

        buffer  C-contiguous, of NumPy or anything with memory (the host's), of CuPy, torch or Numba (a communicator's with a
                GPU; pinned memory of the host too). It is kept, and may change but between a start and its wait

        Errors: UsageError (no such rank, a tag below 0, gaps), QueueError wildcard (any rank or tag), unsupported (memory that
        cannot be reached), TypeError (no array).
        """
        return self._send(buffer, peer, tag, False)

    def ready_send_init(self, buffer: Any, peer: int, tag: int = 0) -> Request:
        """As send_init, but it leaves at once: you promise that the start of its receive has been reached by then."""
        return self._send(buffer, peer, tag, True)

    def recv_init(self, buffer: Any, peer: int, tag: int = 0) -> Request:
        """A receive into an array, which may be longer than the message. Between a start and its wait it is the library's.

        Errors: as send_init; UsageError (read-only, or followed by autograd)
        """
        array = self._array(buffer, "buffer", True)
        peer, tag = self._place(peer, tag)
        core = self._bound.receive(_words(array), peer, tag, (self._bound, array.keeps))
        return Request(self, core, f"receive of {array.kind} {list(array.shape)} from rank {peer} with tag {tag}")

    def barrier_init(self) -> Request:
        """A barrier: its wait ends when all ranks have reached its start."""
        return Request(self, self._bound.barrier((self._bound,)), "barrier")

    def all_reduce_init(self, send: Any, receive: Any = None, operation: str = "sum") -> Request:
        """receive = send of all ranks, element by element, in the order of ranks: equal bits on all.

        send, receive  arrays of as many elements of one type: float32, float64, integers of 4 and 8 bytes (which wrap around),
                       uint8; None, or the same array: in place
        operation      "sum", "product", "minimum", "maximum" (the last two not of uint32 and uint64; NaN where any rank has one)

        Cost: size - 1 messages a rank, and memory for size + 1 times the array. Errors: as recv_init; MachineError (memory)
        """
        what = word(operation, "operation")
        if what not in OPERATIONS:
            raise UsageError(f"operation={operation!r} (it joins the elements of all ranks). Use one of {', '.join(OPERATIONS)}.")
        out = self._array(send, "send", receive is None)
        into = out if receive is None else self._array(receive, "receive", True)
        if (out.kind, math.prod(out.shape)) != (into.kind, math.prod(into.shape)):
            raise UsageError(f"send is {out.kind} {list(out.shape)}, receive {into.kind} {list(into.shape)} (each element has its "
                             "result). Pass as many of one type.")
        element = "byte" if out.kind == "uint8" else out.element
        if element is None or (out.kind in ("uint32", "uint64") and what in ("minimum", "maximum")):
            raise UsageError(f"{what} of {out.kind} (float32, float64, uint8 and integers of 4 and 8 bytes are joined, of those "
                             "without a sign sums and products). Convert it.")
        core = self._bound.all_reduce(_words(out), _words(into), element, what, (self._bound, out.keeps, into.keeps))
        return Request(self, core, f"all-reduce ({what}) of {out.kind} {list(out.shape)}")

    def broadcast_init(self, buffer: Any, root: int = 0) -> Request:
        """The array of `root` on all ranks, whose arrays have as many bytes. Errors: as recv_init; UsageError (no such root)"""
        root = small(root, "root")
        array = self._array(buffer, "buffer", root != self.rank)
        core = self._bound.broadcast(_words(array), root, (self._bound, array.keeps))
        return Request(self, core, f"broadcast of {array.kind} {list(array.shape)} from rank {root}")

    def _send(self, buffer: Any, peer: int, tag: int, is_ready: bool) -> Request:
        array = self._array(buffer, "buffer", False)
        peer, tag = self._place(peer, tag)
        core = self._bound.send(_words(array), peer, tag, is_ready, (self._bound, array.keeps))
        name = "ready send" if is_ready else "send"
        return Request(self, core, f"{name} of {array.kind} {list(array.shape)} to rank {peer} with tag {tag}")

    def _array(self, thing: Any, what: str, writes: bool) -> Array:
        array = array_of(thing, what)
        check_dense(array, what, "elements are moved")
        return self._within_reach(array, what, writes)

    def _within_reach(self, array: Array, what: str, writes: bool) -> Array:
        if writes and not array.is_writable:
            raise UsageError(f"{what} is read-only, or autograd follows it (the message is written there). Pass an array that may be "
                             "written.")
        if array.there and self._gpu is None:
            raise QueueError(f"{what} is in the memory of a GPU, of a communicator of the host (whose messages the host moves). Make "
                             "the communicator with gpu=.", "unsupported")
        return array

    def _place(self, peer: Any, tag: Any) -> tuple:
        peer, tag = small(peer, "peer"), small(tag, "tag")
        if self._is_mpi4py and peer < 0:  # whose numbers differ from one MPI to another
            from mpi4py import MPI

            if peer == MPI.PROC_NULL:
                raise UsageError("peer=MPI.PROC_NULL (nobody is there, and nothing would be matched). Leave the request out.")
            peer = -1 if peer == MPI.ANY_SOURCE else peer
        return peer, tag

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the communicator is closed (nobody hears of its requests). Make a new hostless.Communicator.")

    def __repr__(self) -> str:
        where = "closed" if self._closed else "the host" if self._gpu is None else f"GPU {self._gpu}"
        return f"<hostless.Communicator of rank {self.rank} of {self.ranks}, {where}>"


def _words(array: Array) -> Any:
    return _core.BufferWords(array.address, math.prod(array.shape) * array.element_bytes)


def seconds_of(limit: Any) -> float:
    """-1: what the library has."""
    if limit is None:
        return -1.0
    if isinstance(limit, bool) or not isinstance(limit, numbers.Real) or not limit > 0:
        raise UsageError(f"limit={limit!r} (seconds above 0 are meant). Pass them.")
    return float(min(limit, 1e300))

"""What is bound to arrays and ranks, and then started and finished: exchanges and collectives."""

from __future__ import annotations

import contextlib
import numbers
import operator
import weakref
from typing import Any, Callable, Optional

from .. import _core
from .._checks import check_communicator, check_environment, kind_of, vendor_of
from .._rows import word
from ..errors import Error, UsageError, a_type, counted
from .fields import stream_in_use, stream_of

GPU_TRANSPORTS = ("auto", "peer", "nccl", "nvshmem", "mpi", "host", "peer+nccl", "peer+mpi", "peer+host")


def ranks_of(comm: Any, transport: Any = None) -> Any:
    """transport: what `check_carrier` will refuse on all ranks opens MPI alone."""
    if comm is None:
        return _core.Ranks.single()
    if isinstance(comm, _core.Ranks):
        return comm
    return _core.Ranks.of_mpi(vendor_of(comm), comm.py2f(), isinstance(transport, str) and transport == "composite")


def place_of(comm: Any) -> tuple:
    """(rank, size), of whatever says both."""
    if hasattr(comm, "py2f"):
        check_communicator(comm)
    try:
        rank, size = operator.index(comm.rank), operator.index(comm.size)
    except (AttributeError, TypeError):
        raise UsageError(f"comm is {a_type(comm)} (it says which of how many ranks this one is). Pass a communicator of mpi4py, or what "
                         "hostless.run_threads hands out.") from None
    if not 0 <= rank < size:
        raise UsageError(f"rank {rank} of {counted(size, 'rank')} (they are counted from 0). Correct comm.")
    return rank, size


def check_carrier(comm: Any, transport: Any) -> None:
    if transport is None:
        return
    if comm is None or isinstance(comm, _core.Ranks):
        raise UsageError(f"transport={transport!r} without a communicator of MPI is refused (it says how its processes reach each other). "
                         "Leave it out.")
    if word(transport, "transport") not in ("mpi", "composite"):
        raise UsageError(f"transport={transport!r} (it says how processes of comm reach each other). Use mpi or composite.")


def agreed(ranks: Any, prepare: Callable[[], tuple]) -> tuple:
    """What `prepare` returns but for its last part: in words what all ranks must have been given alike.

    An error of one of them is raised on all before anything collective begins: where it happened as it is, elsewhere
    with the number of that rank.
    """
    try:
        check_environment()
        made = prepare()
    except BaseException as problem:
        with contextlib.suppress(Error):  # this one's own says more
            ranks.agree((kind_of(problem), f"rank {ranks.rank}: {problem}"), "")
        raise
    ranks.agree(None, made[-1])
    return made[:-1]


def bind_words(adds: bool, there: bool, device: int, limit: Any, gpu_transport: Any) -> tuple:
    """How arrays are bound, as the extension module takes it, and in words what of it all ranks must have alike.

    there   in the memory of a GPU
    device  which, or -1
    """
    words = _core.BindWords()
    words.adds = adds
    words.first_s, words.later_s = _limits(limit)
    if word(gpu_transport, "gpu_transport") not in GPU_TRANSPORTS:
        raise UsageError(f"gpu_transport={gpu_transport!r} (it carries between GPUs). Use one of {', '.join(GPU_TRANSPORTS)}.")
    words.on_gpu, words.device, words.gpu_transport = there, device, gpu_transport
    if not there and gpu_transport != "auto":
        raise UsageError(f"gpu_transport={gpu_transport!r} for fields in the memory of the processor (the plan's ranks carry "
                         "between them). Drop it.")
    return words, f"limit={words.first_s, words.later_s}, gpu_transport={words.gpu_transport!r}"


def _limits(limit: Any) -> tuple:
    if limit is None:
        return _core.wait_limits()
    both = tuple(limit) if isinstance(limit, (list, tuple)) else (limit, limit)
    if len(both) != 2 or not all(isinstance(one, numbers.Real) and one > 0 for one in both):
        raise UsageError(f"limit={limit!r} (seconds above 0 are meant, or two of them: of the first wait, of later ones). Pass "
                         "them.")
    return tuple(float(min(one, 1e300)) for one in both)


class OfRanks:
    """What is made of a communicator, and what ends with it."""

    def _begin(self, comm: Any, transport: Any) -> None:
        self._ranks = ranks_of(comm, transport)
        self._is_of_thread = self._ranks is comm  # whose ranks are not this one's to end
        self._exchanges: Any = weakref.WeakSet()
        self._closed = self._is_left = False

    def _check_open(self) -> None:
        if self._closed:
            name = type(self).__name__
            word = "plan" if name == "ExchangePlan" else name.lower()
            raise UsageError(f"the {word} is closed (its exchanges have ended). Make a new hostless.{name}.")

    @property
    def rank(self) -> int:
        return self._ranks.rank

    @property
    def ranks(self) -> int:
        return self._ranks.size

    def close(self) -> None:
        """Ends all exchanges made of it, and lets go of its ranks: of processes, on all of them together. What `run_threads` has
        handed out is left as it is."""
        for exchange in list(self._exchanges):
            exchange.close()
        if not self._is_of_thread:
            self._ranks.close(self._is_left)
        self._closed = True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        for exchange in list(self._exchanges) if kind is not None else ():
            with contextlib.suppress(Error):  # the exception on its way says more
                exchange._bound.leave()
        self._is_left = kind is not None  # the others may be anywhere, and are told
        self.close()


class Bound:
    """What all have alike. Whoever inherits binds: sets _bound, _arrays (of a GPU) and _is_on_gpu."""

    _bound: Any
    _arrays: list
    _is_on_gpu: bool

    def _stream(self, stream: Any) -> int:
        if not self._is_on_gpu:
            if stream is not None:
                raise UsageError(f"stream={stream!r} of an exchange of the processor (it is no work of a GPU). Leave it out.")
            return 0
        return stream_in_use(self._arrays) if stream is None else stream_of(stream)

    def start(self, stream: Any = None) -> None:
        """Starts the next exchange, and comes back at once. All ranks start equally often.

        stream  of fields in a GPU's memory: it begins after what is queued there, beside what is queued there next. A
                stream of CuPy, torch or Numba, or its number; None: the one that the package of the arrays has in use now.

        Errors: UsageError (the last one is not complete; the stream records a graph and this transport cannot be recorded),
        PeerLostError.
        """
        self._bound.start(self._stream(stream))

    def finish(self, stream: Any = None) -> None:
        """The end of what was started. Of the processor: waits, as `wait`. Of a GPU: what is queued on the stream from
        here on comes after it, and nobody waits. Errors: as start."""
        self._bound.finish(self._stream(stream))

    def exchange(self, stream: Any = None) -> None:
        """start and finish at once; on a GPU queued on the stream itself. Errors: as start."""
        self._bound.enqueue(self._stream(stream))

    def test(self) -> bool:
        """Moves it on, without waiting. True: it is complete (of a GPU: the last one that was queued and not recorded).

        Errors: PeerLostError when a rank has left, died, or been silent for the limit while this was called: a loop of it ends.
        """
        return self._bound.test()

    def wait(self) -> None:
        """Waits until it is complete, with the GIL free. Ctrl-C is a KeyboardInterrupt; the exchange is still on its way
        then, and can be waited for again.

        Errors: PeerLostError when a rank has left, died, or been silent for the limit; on the other ranks then too, at the
        latest in the next exchange.
        """
        self._bound.wait()

    @property
    def lost(self) -> bool:
        """Whether a rank was lost; it stays so, and everything raises PeerLostError."""
        return self._bound.lost

    @property
    def gpu_transport(self) -> Optional[str]:
        """What carries between GPUs; None: the fields are in the memory of the processor."""
        return self._bound.gpu_transport if self._is_on_gpu else None

    @property
    def may_be_recorded(self) -> bool:
        """Whether it may be part of a captured graph."""
        return self._is_on_gpu and self._bound.may_be_recorded

    @property
    def device_bytes(self) -> int:
        """Memory on the GPU beside the fields'."""
        return self._bound.device_bytes if self._is_on_gpu else 0

    def close(self) -> None:
        """Lets go of the arrays; where an exchange is on its way, the other ranks lose this one. Not collective."""
        self._bound.close()
        self._arrays = []

    def __enter__(self) -> "Bound":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self._bound.closed else self._bound.description if self._is_on_gpu else "processor"
        return f"<hostless.{type(self).__name__} by {self._route}, {where}>"

    @property
    def _route(self) -> str:
        raise NotImplementedError

"""Queues: work that is done in order, beside the program."""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
import weakref
from typing import Any, Callable, Iterable, Optional, Union

from .. import _core
from .._checks import check_environment
from .._exchange.fields import stream_of
from .._rows import word
from ..errors import Error, a_type
from .communicator import seconds_of
from .request import Request, listed

#: How long work may still take when a block is left by an exception.
GRACE_S = 1.0

_numbers = itertools.count(1)
_queues: Any = weakref.WeakSet()


class Queue:
    """Work that is done in order: starts, which never block it, waits, which do, and functions.

    stream  of a GPU, which does all of the work: one of CuPy, torch or Numba, anything with __cuda_stream__, or its number; not
            the default one. It is kept. None: the host does it, by a thread of the queue's or, over MPI, inside calls of this
            package about queues and requests (so wait for it, or `test` it now and then)
    type    "threads", "mpi", "ofi", with a stream "peer" or "nccl"; "auto": as its first request has it, with a stream "peer"
    limit   seconds that a wait on it may take; None: 600, times HOSTLESS_DEADLINE_SCALE

    A call about several requests is accepted or refused as a whole. One thread at a time calls about a queue; the GIL is free
    meanwhile. A `with` block waits at its end; left by an exception it gives its work a second, then closes the communicators of
    its requests, so that the other ranks are told. A queue that is dropped waits for its work.

    Errors: UsageError (unknown words; a stream of no GPU), QueueError unsupported (a type that is not there; a stream for a type
    of the host, the default stream), MachineError (no GPU).
    """

    def __init__(self, stream: Any = None, *, type: str = "auto", limit: Optional[float] = None):  # noqa: A002
        check_environment()
        kind, number = word(type, "type"), 0 if stream is None else stream_of(stream)
        # 0 and 1 are the default stream, which the library refuses as none.
        if stream is not None and number in (0, 1) and kind in ("auto", "peer", "nccl"):
            kind, number = "peer" if kind == "auto" else kind, 0
        seconds = seconds_of(limit)
        self._number, self._communicators, self._recorded = next(_numbers), weakref.WeakSet(), set()
        self._is_of_gpu = stream is not None
        self._core = _core.HeldQueue(kind, number, stream)
        if seconds > 0:
            self._core.set_limit(seconds)
        _queues.add(self)

    def enqueue_start(self, requests: Union[Request, Iterable[Request]]) -> None:
        """Starts them when the queue comes to it. Never blocks.

        Errors: QueueError not_matched, already_started, other_queue, twice, no_request, unsupported (another transport than the
        type's), too_many.
        """
        given = listed(requests)
        self._core.enqueue_start([request._core for request in given])
        self._know_all(given)

    def _know_all(self, requests: Iterable[Request]) -> None:
        for request in requests:
            if request._queue != self._number:
                self._know(request)

    def _know(self, request: Any) -> None:
        """A request, or a halo."""
        request._queue = self._number
        self._communicators.add(request._communicator)
        if self._is_of_gpu:  # a graph may start it as long as the queue is there
            self._recorded = {one for one in self._recorded if one._core.exists} | {request}

    def enqueue_wait(self, requests: Union[None, Request, Iterable[Request]] = None) -> None:
        """The queue waits for them; without an argument for all that was started on it and is not yet waited for.

        Errors: QueueError not_started, other_queue, twice, no_request.
        """
        if requests is None:
            self._core.enqueue_wait_all()
        else:
            self._core.enqueue_wait([request._core for request in listed(requests)])

    def enqueue_start_and_wait(
        self, starts: Union[Request, Iterable[Request]], waits: Union[None, Request, Iterable[Request]] = None
    ) -> None:
        """Starts `starts`, then waits for `waits`: requests that this call starts, or that were started on this queue before; without
        `waits` for `starts`. Nothing is enqueued where one of them is refused. On a stream (type peer) it is a launch less.

        Errors: those of both.
        """
        first = listed(starts)
        then = first if waits is None else listed(waits)
        self._core.enqueue_start_and_wait([request._core for request in first], [request._core for request in then])
        self._know_all(first)

    def enqueue_function(self, function: Callable, *args: Any) -> None:
        """Calls function(*args) when the queue comes to it, on a thread of its own, with the GIL. What it raises is raised by
        wait(). Inside it every call about queues and requests is refused (QueueError in_use). On a stream it may not use the GPU."""
        if not callable(function):
            raise TypeError(f"function is {a_type(function)} (it is called when the queue comes to it). Pass a function.")
        self._core.enqueue_function(functools.partial(function, *args) if args else function)

    def wait(self) -> None:
        """Blocks until all is done, on a stream until that is idle, with the GIL free. Ctrl-C is a KeyboardInterrupt; the work goes on
        then.

        Errors: what a function raised; PeerLostError (a wait ended by a loss or by the limit: from then on all requests of this
        queue are lost, starts and waits on it do nothing, functions are still called), UsageError (a ready send whose promise was
        broken; its stream records).
        """
        self._core.wait()

    def test(self) -> bool:
        """Whether all is done. Never blocks; errors as wait."""
        return self._core.test()

    @property
    def is_idle(self) -> bool:
        """Whether there is neither work nor a start without a wait."""
        return self._core.is_idle

    def close(self) -> None:
        """Waits, then lets go of the requests and the stream. Errors: as wait; it is closed all the same."""
        if not self._core.closed:
            try:
                self._core.wait()
            finally:
                self._end(GRACE_S)

    def _end(self, patience_s: float) -> None:
        """Closes it; where its work takes longer, what it waits for is lost first."""
        until = time.monotonic() + patience_s
        with contextlib.suppress(Exception):  # what a wait would have raised
            while not self._core.test() and time.monotonic() < until:
                time.sleep(0.001)
            if not self._core.test():
                for communicator in list(self._communicators):
                    communicator._bound.close()
        self._core.close()
        self._recorded = set()

    def __enter__(self) -> "Queue":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        elif not self._core.closed:
            with contextlib.suppress(Error):  # the exception on its way says more
                self._end(GRACE_S)

    def __repr__(self) -> str:
        state = "closed" if self._core.closed else "of a stream" if self._is_of_gpu else "of the host"
        return f"<hostless.Queue {state}>"


def end_all(patience_s: float) -> None:
    """At the interpreter's end, while functions can still be called."""
    for queue in list(_queues):
        if not queue._core.closed:
            with contextlib.suppress(Error):
                queue._end(patience_s)

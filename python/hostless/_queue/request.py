"""Requests: messages and collectives that are matched once, then started and waited for again and again."""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, NamedTuple, Union

from .. import _core
from ..errors import Error, a_type


class Status(NamedTuple):
    """What arrived at a receive, or what went with a send."""

    peer: int    #: -1 of a collective
    tag: int     #: -1 of a collective
    bytes: int   #: of the message, which may be shorter than the receiver's array
    starts: int  #: how often it has been complete
    lost: bool   #: its peer is lost, or stayed silent for the queue's limit: not complete


class Request:
    """What a Communicator's send_init, recv_init ... make.

    It keeps its array and its communicator; a queue keeps what is enqueued on it. One thread at a time calls about a request.
    In a `with` block it is freed at the end.
    """

    def __init__(self, communicator: Any, core: Any, what: str):
        self._communicator, self._core, self._what = communicator, core, what
        self._queue = 0  # the number of the last one that has started it

    @property
    def is_matched(self) -> bool:
        """Never blocks. Errors: QueueError (freed; asked in a function of a queue)."""
        return self._core.is_matched()

    @property
    def status(self) -> Status:
        """Of the last start whose wait was reached. Never blocks."""
        return Status(*self._core.status())

    def free(self) -> None:
        """Lets go of the array. Errors: QueueError in_use (started and not yet waited for, its last wait not yet reached, or under
        match with a rank that has not left)."""
        self._core.free()

    def __enter__(self) -> "Request":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        with contextlib.suppress(Error) if kind is not None else contextlib.nullcontext():
            if self._core.exists:
                self.free()

    def __repr__(self) -> str:
        return f"<hostless.Request: {self._what}{'' if self._core.exists else ', freed'}>"


class Match:
    """A match that goes on: what `begin_match` returns."""

    def __init__(self, core: Any):
        self._core = core

    @property
    def is_matched(self) -> bool:
        """Whether all of it is matched. Never blocks."""
        return self._core.is_matched()

    def test(self) -> bool:
        """The same, with the errors of `wait`. It moves the match on."""
        return self._core.test()

    def wait(self) -> None:
        """Waits until all is matched, with the GIL free. Ctrl-C is a KeyboardInterrupt; the match goes on then.

        Errors: QueueError mismatch (one does not fit its other side), PeerLostError (a rank has left, or the communicator's
        limit has passed: requests without their other side can only be freed then).
        """
        self._core.wait()


def listed(requests: Any) -> list:
    """TypeError: something is no request."""
    if isinstance(requests, Request):
        return [requests]
    if not hasattr(requests, "__iter__"):
        raise TypeError(f"requests is {a_type(requests)} (requests are meant). Pass a list of them.")
    all_of_them = list(requests)
    for one in all_of_them:
        if not isinstance(one, Request):
            raise TypeError(f"{a_type(one)} among the requests (what send_init, recv_init ... return is meant). Pass those.")
    return all_of_them


def match(requests: Union[Request, Iterable[Request]]) -> None:
    """Matches requests with those of their peers, by (communicator, peer, tag) in the order of calls and, inside one, of the list;
    collectives in their own order; once and for good. Blocks until all are matched, with the GIL free.

    Errors: QueueError no_request, already_matched, twice (nothing was matched), mismatch; PeerLostError; as Match.wait.
    """
    begin_match(requests).wait()


def begin_match(requests: Union[Request, Iterable[Request]]) -> Match:
    """The same without waiting. What it returns is waited for before its requests are started."""
    return Match(_core.begin_match([request._core for request in listed(requests)]))

"""What can go wrong. Every text says what the problem is, why it matters and what to do."""

import sys
import warnings
from typing import Any


def counted(count: int, one: str, many: str = "") -> str:
    """"1 step", "0 steps", "3 boxes" (many: "boxes"; without it an s behind the one)."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def a_type(thing: Any) -> str:
    """What a thing is, with its article: "a str", "an ndarray"."""
    name = type(thing).__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' or name == 'ndarray' else 'a'} {name}"


class Error(Exception):
    """Base of all errors of hostless."""


class UsageError(Error, ValueError):
    """Something was asked for that does not exist, or does not fit together: an unknown word, shapes that differ,
    a callback where a run cannot call one."""


class QueueError(UsageError):
    """A refused call about requests and queues: nothing was enqueued, matched or freed.

    why  "no_request", "not_persistent", "already_matched", "not_matched", "already_started", "not_started", "other_queue",
         "in_use", "wildcard", "mismatch", "unsupported", "twice", "too_many" (include/hostless/queue/refusal.hpp says what each is)
    """

    def __init__(self, text: str, why: str = ""):
        super().__init__(text)
        self.why = why


class NumberTypeError(UsageError, TypeError):
    """What is no real number where one is meant: a word, None, a list, a complex number; no whole one: a fraction."""


class BadInputError(Error, ValueError):
    """A matrix, a vector or a file holds something that it must not hold: it is not symmetric, a column is out of
    range, a line of a file cannot be read, or the file itself."""


class MachineError(Error, OSError):
    """The machine lacks something: a library, a GPU, memory, the right to write a file."""


class PeerLostError(Error, RuntimeError):
    """Another rank died or stayed silent past the deadline. The matrix cannot be used any more."""


class AbortedError(Error, RuntimeError):
    """Another rank asked all ranks to stop (ctrl-C there, or a callback that raised), or could not begin: its own exception
    was none of these."""


class HostlessWarning(UserWarning):
    """Input that was accepted and looks like a mistake."""


def warn(text: str) -> None:
    """Warns at the line that called the package, once a line as Python does."""
    level = 2
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "hostless":
        frame = frame.f_back
        level += 1
    warnings.warn(text, HostlessWarning, stacklevel=level)

"""Halos of grids that a queue fills."""

from __future__ import annotations

import contextlib
import math
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._exchange.bound import agreed
from .._exchange.fields import Array, array_of
from .._rows import small, word
from ..errors import Error, UsageError, a_type, counted
from .communicator import Communicator
from .queue import Queue

REACHES = ("box", "star")
#: More bytes than a cell has.
MOST_BYTES = 64


class _Field(NamedTuple):
    """An array of a box and its halo, as the first `axes` of its axes have it."""

    array: Array
    axes: int

    @property
    def box(self) -> tuple:
        return self.array.shape[:self.axes]

    @property
    def cell_bytes(self) -> int:
        return math.prod(self.array.shape[self.axes:]) * self.array.element_bytes

    @property
    def layout(self) -> tuple:
        """What an array must have alike that stands in for it."""
        shape, strides = self.array.shape, self.array.strides
        return self.array.kind, shape, tuple(stride for size, stride in zip(shape, strides) if size != 1)


class QueueHalo:
    """The halo of a grid in boxes, one a rank: a queue fills it with the neighbours' cells, or adds what lies in it to theirs.

    communicator  of the grid's ranks. With a GPU: fields are in its memory, or in pinned memory of the host
    ranks         how many there are along each of 2 or 3 axes; rank 1 is rank 0's neighbour along the last axis that has several
    fields        an array or a list of up to 16, all of them in one message a neighbour: [the box and 2 width more, by axis, ...],
                  of NumPy, CuPy, torch or Numba. Further axes are the values of a cell, which lie side by side and have 1 to 64
                  bytes; between rows and planes there may be gaps. float32, float64 and integers of 4 and 8 bytes, aligned, can be
                  scattered; any other type is gathered alone. Boxes may differ, where faces fit
    width         of the halo on both sides of each axis: 1 to 3 cells, which a box has at least
    reach         "box": of neighbours across faces, edges and corners; "star": across faces alone
    periodic      whether the first rank follows the last one: on all axes, or one word for each
    ready         ready sends: steps are runs, of which the last one says that it ends (docs/howto/queue.md#halos-of-grids)
    tag           the first of 54; two halos under way between the same ranks need other ones

    Collective, and alike on all ranks, with the GIL free; Ctrl-C is heard when it is made. One thread at a time uses it. It keeps
    its fields and its communicator, and a queue keeps those of its steps: until they are done, on a stream until a wait for the
    queue has returned, in a graph as long as there is the queue. `close` it, use it in a `with` block, or drop it.

    Cost: memory of two messages a neighbour (with ready four), a match. Source: StreamHalo of Bridges et al., section IV
    (docs/references.md).

    Errors, on all ranks, with nothing made: UsageError (axes, shapes, strides, a read-only array, ranks whose product is another
    number), TypeError (no array, no number), QueueError mismatch (ranks say different things, or faces do not fit), unsupported
    (memory that the communicator does not reach), PeerLostError. Of what one rank's arguments are wrong by themselves the others
    have a UsageError with its number. On this rank alone: TypeError (no communicator), QueueError in_use (inside a function).
    """

    def __init__(self, communicator: Communicator, *, ranks: Any, fields: Any, width: int = 1, reach: str = "box", periodic: Any = False,
                 ready: bool = False, tag: int = 0):
        if not isinstance(communicator, Communicator):
            raise TypeError(f"communicator is {a_type(communicator)} (the ranks of a grid are those of a communicator of "
                            "queues). Pass a hostless.Communicator.")
        _core.refuse_in_function("a new halo")
        self._communicator, self._queue = communicator, 0  # the number of the last one that has a step of it

        def prepare() -> tuple:
            communicator._check_open()
            along, cells = _numbers(ranks), small(width, "width")
            ends = [_flag(periodic, "periodic")] * len(along) if not _is_several(periodic) else \
                [_flag(one, f"periodic[{axis}]") for axis, one in enumerate(periodic)]
            if word(reach, "reach") not in REACHES:
                raise UsageError(f"reach={reach!r} (it says across what neighbours are). Use one of {', '.join(REACHES)}.")
            made = [self._field(one, f"fields[{number}]", len(along)) for number, one in enumerate(_listed(fields))]
            words = _core.HaloWords(along, ends, _sizes(made, cells), cells, reach == "star", _flag(ready, "ready"), small(tag, "tag"))
            for field in made:
                words.add_field(field.array.address, field.cell_bytes, field.array.element or "byte",
                                list(field.array.strides[:field.axes]))
            return made, words, "the halo of a grid"

        made, words = agreed(communicator._ranks, prepare)
        self._axes, self._layouts = made[0].axes, [field.layout for field in made]
        self._added = [(field.array.kind, field.array.element is not None) for field in made]
        self._core = communicator._bound.halo(words, (communicator._bound, *(field.array.keeps for field in made)))
        self._what = f"{len(made)} field{'s' * (len(made) != 1)}, {reach} of width {width}"

    @property
    def messages(self) -> int:
        """Of a step, to other ranks."""
        return self._core.messages

    @property
    def bytes(self) -> int:
        """In these messages."""
        return self._core.bytes

    def enqueue_gather(self, queue: Queue, arrays: Any = None, ends_run: bool = False) -> None:
        """Cells of the neighbours' borders become those of the halo, when the queue comes to it, behind what it has before. What no
        neighbour has, beyond a border of the grid and at the corners of a star, stays as it is. Never blocks. All ranks enqueue the
        same steps in the same order.

        arrays    in the place of the fields, as many, of their types, shapes and strides; None: the fields
        ends_run  with ready sends: this step is the last of a run, which all ranks say. A run ends before a step on another queue, and
                  at the end of what a stream records

        Cost: on a stream four kernels (pack, start, wait, unpack), on the host two functions of the queue.

        Errors: UsageError (arrays that differ from the fields; the halo or the queue is closed), TypeError (no queue, no array),
        QueueError as Queue.enqueue_start, other_queue (the run of another one was not ended), in_use: nothing is enqueued, and only
        this rank is told. After a loss, which `Queue.wait` raises, cells of the halo are anything.
        """
        queue_core, addresses, keeps = self._step(queue, arrays)
        queue_core.enqueue_gather(self._core, addresses, _flag(ends_run, "ends_run"), keeps)
        self._is_known_to(queue)

    def enqueue_scatter(self, queue: Queue, arrays: Any = None, ends_run: bool = False) -> None:
        """The reverse: what lies in the halo is added to its owners' cells, and becomes 0. A cell is the sum of itself and of what
        comes, from left to right in the order of the neighbours' directions, (-1, -1), (-1, 0) ...: equal bits on every queue;
        integers wrap around.

        arrays, ends_run, cost and errors  as enqueue_gather; UsageError (a field of a type that is not added)
        """
        queue_core, addresses, keeps = self._step(queue, arrays)
        for number, (kind, is_added) in enumerate(self._added):
            if not is_added:
                raise UsageError(f"fields[{number}] is {kind}, which is not added (float32, float64 and integers of 4 and 8 bytes are). "
                                 "Gather alone, or convert it.")
        queue_core.enqueue_scatter(self._core, addresses, _flag(ends_run, "ends_run"), keeps)
        self._is_known_to(queue)

    def close(self) -> None:
        """Lets go of the fields and the messages; what queues have of it goes on, and a graph is launched no more. Not collective.

        Errors: QueueError in_use (inside a function of a queue), UsageError (another thread is in a call)
        """
        self._core.close()

    def __enter__(self) -> "QueueHalo":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        with contextlib.suppress(Error) if kind is not None else contextlib.nullcontext():
            self.close()

    def __repr__(self) -> str:
        return f"<hostless.QueueHalo of {self._what}{'' if self._core.exists else ', closed'}>"

    def _field(self, thing: Any, what: str, axes: int) -> _Field:
        field = _Field(self._communicator._within_reach(array_of(thing, what), what, True), axes)
        shape, strides = field.array.shape, field.array.strides
        if len(shape) < axes:
            raise UsageError(f"{what} has the shape {shape} (ranks= has {counted(axes, 'axis', 'axes')}, which come first). Pass an array of the box and "
                             "its halo.")
        if not 1 <= field.cell_bytes <= MOST_BYTES:
            raise UsageError(f"{what} has cells of {counted(field.cell_bytes, 'byte')}, {field.array.kind}{list(shape[axes:])} (what is behind "
                             f"the first {axes} axes is a cell's, of 1 to {MOST_BYTES}). Pass wider ones as several fields.")
        least = field.array.element_bytes
        for axis in reversed(range(len(shape))):
            is_apart = strides[axis] != least if axis >= axes else strides[axis] < least
            if is_apart and shape[axis] > 1:
                raise UsageError(f"{what} has strides of {strides} bytes for the shape {shape} (in memory rows follow each other as they "
                                 f"do in the array, none overlap, and a cell's values lie side by side). Pass an array in C order.")
            least = shape[axis] * (strides[axis] if axis < axes else least)
        return field

    def _step(self, queue: Any, arrays: Any) -> tuple:
        if not isinstance(queue, Queue):
            raise TypeError(f"queue is {a_type(queue)} (its work is a queue's). Pass a hostless.Queue.")
        if arrays is None:
            return queue._core, [], None
        others = [self._field(one, f"arrays[{number}]", self._axes) for number, one in enumerate(_listed(arrays))]
        if len(others) != len(self._layouts):
            raise UsageError(f"{counted(len(others), 'array')} for a halo of {counted(len(self._layouts), 'field')} (each stands in for one). Pass as many, or "
                             "None.")
        for number, (other, layout) in enumerate(zip(others, self._layouts)):
            if other.layout != layout:
                raise UsageError(f"arrays[{number}] is {_words(other.layout)}, and fields[{number}] {_words(layout)} (it stands in for "
                                 "that). Pass one of the same type, shape and strides.")
        return (queue._core, [other.array.address for other in others],
                (self._communicator._bound, *(other.array.keeps for other in others)))

    def _is_known_to(self, queue: Queue) -> None:
        if self._queue != queue._number:
            queue._know(self)


def _is_several(given: Any) -> bool:
    return hasattr(given, "__iter__") and not isinstance(given, str)


def _listed(arrays: Any) -> list:
    return list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]


def _numbers(ranks: Any) -> list:
    if not _is_several(ranks):
        raise TypeError(f"ranks={ranks!r} (a number along each axis is meant). Pass a tuple of 2 or 3.")
    along = [small(one, f"ranks[{axis}]") for axis, one in enumerate(ranks)]
    if len(along) not in (2, 3):
        raise UsageError(f"ranks={tuple(along)} (a grid has 2 or 3 axes). Pass a number for each.")
    return along


def _flag(given: Any, name: str) -> bool:
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError(f"{name}={given!r} is {a_type(given)} (True or False is meant). Pass one.")
    return bool(given)


def _sizes(fields: list, width: int) -> list:
    """Of the box that all of them have."""
    if not fields:
        raise UsageError("fields=[] (a halo is that of an array). Pass at least one.")
    box = fields[0].box
    for number, field in enumerate(fields):
        if field.box != box:
            raise UsageError(f"fields[{number}] has a box of {field.box} cells, fields[0] one of {box} (all of a halo share it). Pass "
                             "arrays of one box, or make two halos.")
    return [cells - 2 * width for cells in box]


def _words(layout: tuple) -> str:
    kind, shape, strides = layout
    return f"{kind} {list(shape)} with strides of {list(strides)} bytes"

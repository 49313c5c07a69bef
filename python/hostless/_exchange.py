"""Exchanges of ghosts without a matrix: plans, both directions, and ranks that are threads."""

from __future__ import annotations

import contextlib
import numbers
import os
import weakref
from typing import Any, Callable, Optional

import numpy as np

from . import _core
from ._checks import check_ranks, file_name, kind_of, vendor_of
from ._fields import fields_of, stream_in_use, stream_of
from ._rows import is_array, small, to_numpy, whole, word
from .errors import Error, UsageError

#: Local numbers have 31 bits.
MOST_ITEMS = 2**31 - 1
ROUTES = ("auto", "direct", "two_step", "three_step")
GPU_TRANSPORTS = ("auto", "peer", "nccl", "nvshmem", "mpi", "host")


def run_threads(ranks: int, body: Callable, *args: Any) -> list:
    """Calls body(comm, *args) on so many threads of this process, each of them a rank, and waits for all.

    ranks  from 1 on
    body   gets its end of the ranks, to be passed on as `comm=`: `comm.rank`, `comm.size` and `comm.barrier()`. It is
           there until body returns, as is all that was made of it.

    Returns what the bodies returned, by rank. What one of them raises comes out here as it is; the others get a
    PeerLostError as soon as they wait for that rank. Of several that of the lowest rank is raised, PeerLostErrors last.
    Ctrl-C ends each rank at its next exchange (AbortedError there), and is raised here.

    Errors: UsageError (the number), MachineError (too many threads). NumPy frees the GIL in long operations, and
    exchanges do while they wait; other Python code of ranks takes turns.
    """
    _core.check_environment()
    count = small(ranks, "ranks")
    check_ranks(count, "somebody has to call the function", "threads of one machine are started). Use fewer.")
    if not callable(body):
        raise UsageError(f"body is a {type(body).__name__} (it is called with the rank's comm). Pass a function.")
    return _core.run_threads(count, lambda comm: body(comm, *args))


def _ranks_of(comm: Any) -> Any:
    if comm is None:
        return _core.Ranks.single()
    if isinstance(comm, _core.Ranks):
        return comm
    return _core.Ranks.of_mpi(vendor_of(comm), comm.py2f())


def _agreed(ranks: Any, prepare: Callable[[], tuple]) -> tuple:
    """What `prepare` returns but for its last part: in words what all ranks must have been given alike.

    An error of one of them is raised on all before anything collective begins: where it happened as it is, elsewhere
    with the number of that rank.
    """
    try:
        _core.check_environment()
        made = prepare()
    except BaseException as problem:
        with contextlib.suppress(Error):  # this one's own says more
            ranks.agree((kind_of(problem), f"rank {ranks.rank}: {problem}"), "")
        raise
    ranks.agree(None, made[-1])
    return made[:-1]


class ExchangePlan:
    """Who reads what, and how it gets there: made once, of any number of exchanges in either direction.

    owned   global numbers of the items that this rank owns, in the order in which they lie: an array or list of integers
            from 0 on, with gaps as you like. An item has one owner.
    ghosts  global numbers of the items that this rank reads, in the order in which their ghosts shall lie, each once.
            Own items may be among them (periodic boundaries).
    comm    who the ranks are: a communicator of mpi4py, what `run_threads` hands to its function, or None (one rank)
    route   "direct"; "two_step" and "three_step" for nodes of several ranks; "auto": three_step where there are several
    around  False: ghosts are an array of their own. True: they lie in the array of the owned items, which are behind the
            ghosts of lower ranks and in front of all others: `plan.first_owned`; in which order, `plan.order` says.
    ranks_per_node
            0: nodes are found by host name; else so many ranks are a node

    Collective, as `from_lists`, `load` and `save`: every rank makes the same call, and what one of them does wrong, or
    otherwise than the others, is raised on all. With mpi4py the communicator is duplicated, and the plan ends on all ranks
    together: `close` it on all, use it in a `with` block (one that is left by an exception tells the other ranks), or drop it.
    One thread at a time uses a rank.

    Errors: UsageError (a negative number, an item of two owners, a ghost that nobody owns or that is there twice, unknown
    words), TypeError (no integers), PeerLostError (a rank does not come within ten minutes). Ctrl-C is heard when all are there.
    Cost: O(n log n) for n own items, ghosts and readers; four gathers; the patterns of all ranks on all ranks.
    """

    def __init__(self, owned: Any, ghosts: Any, *, comm: Any = None, route: str = "auto", around: bool = False,
                 ranks_per_node: int = 0):
        self._begin(comm)

        def prepare() -> tuple:
            words, same = _words_of(route, around, ranks_per_node)
            return (_integers(owned, "owned", np.int64), _integers(ghosts, "ghosts", np.int64), words,
                    f"numbers of items, {same}")

        mine, theirs, words = _agreed(self._ranks, prepare)
        self._plan = _core.PlannedExchange.of_numbers(self._ranks, mine, theirs, words)

    def _begin(self, comm: Any) -> None:
        self._ranks = _ranks_of(comm)
        self._is_of_thread = self._ranks is comm  # whose ranks are not this plan's to end
        self._exchanges: Any = weakref.WeakSet()
        self._closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the plan is closed (its exchanges have ended). Make a new hostless.ExchangePlan.")

    @classmethod
    def from_lists(cls, owned: int, send: Any, receive: Any, *, comm: Any = None, route: str = "auto", around: bool = False,
                   ranks_per_node: int = 0) -> "ExchangePlan":
        """A plan from lists, as neighbourhood collectives have them: item send[r][k] of this rank becomes the ghost
        receive[s][k] of rank r, where s is this rank.

        owned    how many items this rank has
        send     a list for each rank, or a dict by rank: own items that go there, in any order, none twice
        receive  the same of ghosts: what those of each rank become; together every number below their count once

        Errors: as the class; UsageError also for lists of different lengths at both ends, which names both ranks.
        """
        plan = cls.__new__(cls)
        plan._begin(comm)

        def prepare() -> tuple:
            words, same = _words_of(route, around, ranks_per_node)
            size = plan._ranks.size
            if not 0 <= whole(owned, "owned") <= MOST_ITEMS:
                raise UsageError(f"owned={owned} (a rank has from 0 to {MOST_ITEMS} items). Count its own.")
            return whole(owned, "owned"), _lists(send, "send", size), _lists(receive, "receive", size), words, f"lists, {same}"

        plan._plan = _core.PlannedExchange.of_lists(plan._ranks, *_agreed(plan._ranks, prepare))
        return plan

    @classmethod
    def load(cls, path: Any, *, comm: Any = None) -> "ExchangePlan":
        """A plan that `save` has written, for as many ranks. Every rank reads the file; rank 0 proves the plans of all.

        Errors: BadInputError (no plan file, or a wrong one, with the place), UsageError (of another number of ranks; other
        files on other ranks).
        """
        plan = cls.__new__(cls)
        plan._begin(comm)
        name, = _agreed(plan._ranks, lambda: (file_name(path), "a plan file"))
        plan._plan = _core.PlannedExchange.of_file(plan._ranks, name)
        return plan

    def save(self, path: Any) -> None:
        """Writes the plans of all ranks as JSON (rank 0 does). Errors: MachineError (it cannot be written)."""
        self._check_open()
        name, = _agreed(self._ranks, lambda: (file_name(path), f"a plan file to write, {os.fspath(path)!r}"))
        self._plan.save(name)

    @property
    def rank(self) -> int:
        return self._ranks.rank

    @property
    def ranks(self) -> int:
        return self._ranks.size

    @property
    def route(self) -> str:
        """The route that was taken: "auto" is answered as what it came to."""
        return self._plan.route

    @property
    def owned(self) -> int:
        """How many items this rank owns."""
        return self._plan.owned

    @property
    def ghosts(self) -> int:
        """How many ghosts it has."""
        return self._plan.ghosts

    @property
    def around(self) -> bool:
        return self._plan.around

    @property
    def first_owned(self) -> int:
        """Where the first owned item lies in an array with ghosts around: `array[first_owned:first_owned + owned]`."""
        return self._plan.below

    @property
    def order(self) -> np.ndarray:
        """(ghosts,) int32: ghost k as it lies is ghost order[k] as they were named. Apart: 0, 1, 2 ...; around: by (rank of
        the owner, its item), the first `first_owned` of them before the owned items."""
        return np.asarray(self._plan.order, dtype=np.int32)

    @property
    def items_sent(self) -> int:
        """Items that this rank sends in an exchange, those that it passes on for others too."""
        return self._plan.items_sent

    @property
    def items_received(self) -> int:
        return self._plan.items_received

    def close(self) -> None:
        """Ends all exchanges of this plan, and lets go of its ranks: of processes, on all of them together. What `run_threads` has
        handed out is left as it is."""
        for exchange in list(self._exchanges):
            exchange.close()
        if not self._is_of_thread:
            self._ranks.close()
        self._closed = True

    def __enter__(self) -> "ExchangePlan":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        for exchange in list(self._exchanges) if kind is not None else ():
            with contextlib.suppress(Error):  # the exception on its way says more
                exchange._bound.leave()
        self.close()

    def __repr__(self) -> str:
        return (f"<hostless.ExchangePlan of rank {self.rank} of {self.ranks}: {self.owned} items, {self.ghosts} ghosts, "
                f"{self.route}{', around' if self.around else ''}>")


def _words_of(route: Any, around: Any, ranks_per_node: Any) -> tuple:
    words = _core.PlanWords()
    if not isinstance(around, (bool, np.bool_)):
        raise UsageError(f"around={around!r} (ghosts lie around the owned items or do not). Use True or False.")
    words.route, words.around = word(route, "route"), bool(around)
    words.ranks_per_node = small(ranks_per_node, "ranks_per_node")
    if route not in ROUTES:
        raise UsageError(f"route={route!r} (it says by which ranks items go). Use one of {', '.join(ROUTES)}.")
    if words.ranks_per_node < 0:
        raise UsageError(f"ranks_per_node={ranks_per_node} (a node has a rank). Use 0 to find nodes.")
    return words, f"route={route!r}, around={words.around}, ranks_per_node={words.ranks_per_node}"


def _integers(given: Any, what: str, kind: Any) -> np.ndarray:
    if not is_array(given) and not isinstance(given, range):
        raise TypeError(f"{what} is a {type(given).__name__} (numbers of items are meant). Pass an array or a list of integers.")
    if isinstance(given, np.ma.MaskedArray):
        raise UsageError(f"{what} has a mask (every number in it counts). Compress it first.")
    array = _counted(given, what) if isinstance(given, range) else np.asarray(to_numpy(given))
    if array.size == 0:
        array = array.reshape(-1).astype(kind)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{what} is {array.dtype} of the shape {array.shape} (numbers of items are integers in a row). Pass them "
                        "so.")
    limits = np.iinfo(kind)
    wrong = np.flatnonzero((array > limits.max) | (array < limits.min))
    if len(wrong):
        raise UsageError(f"{what}[{int(wrong[0])}] is {int(array[wrong[0]])} (items are counted up to {limits.max}). Number them "
                         "from 0 on.")
    return np.ascontiguousarray(array, dtype=kind)


def _counted(given: range, what: str) -> np.ndarray:
    if len(given) == 0:
        return np.zeros(0, np.int64)
    step = given.step if len(given) > 1 else 1  # of one item it says nothing
    if len(given) > MOST_ITEMS or not all(-2**63 <= end < 2**63 for end in (given[0], given[-1])):
        raise UsageError(f"{what} is {given} (a rank has at most {MOST_ITEMS} items, whose numbers have 63 bits). Share them out.")
    return given[0] + np.arange(len(given), dtype=np.int64) * step


def _lists(given: Any, what: str, ranks: int) -> list:
    if isinstance(given, dict):
        for rank in given:
            if not 0 <= whole(rank, f"a rank of {what}") < ranks:
                raise UsageError(f"{what} has a list for rank {rank} (there are {ranks}, from 0 on). Correct it.")
        given = [given.get(rank, []) for rank in range(ranks)]
    if not isinstance(given, (list, tuple)) or len(given) != ranks:
        count = f"has {len(given)} lists" if isinstance(given, (list, tuple)) else f"is a {type(given).__name__}"
        raise UsageError(f"{what} {count} (there are {ranks} ranks, and each has one). Pass a list of lists, or a dict by rank.")
    return [_integers(one, f"{what}[{rank}]", np.int32) for rank, one in enumerate(given)]


class _Bound:
    """What both directions have alike."""

    _adds = False

    def __init__(self, plan: ExchangePlan, fields: Any, *, limit: Any = None, gpu_transport: str = "auto"):
        if not isinstance(plan, ExchangePlan):
            raise TypeError(f"plan is a {type(plan).__name__} (it says who reads what). Pass a hostless.ExchangePlan.")
        plan._check_open()
        self._plan = plan

        def prepare() -> tuple:
            found = fields_of(fields, plan._plan, self._adds)
            words = _core.BindWords()
            words.adds = self._adds
            words.first_s, words.later_s = _limits(limit)
            if word(gpu_transport, "gpu_transport") not in GPU_TRANSPORTS:
                raise UsageError(f"gpu_transport={gpu_transport!r} (it carries between GPUs). Use one of {', '.join(GPU_TRANSPORTS)}.")
            words.on_gpu, words.device, words.gpu_transport = found.there, found.device, gpu_transport
            if not found.there and gpu_transport != "auto":
                raise UsageError(f"gpu_transport={gpu_transport!r} for fields in the memory of the processor (the plan's ranks carry "
                                 "between them). Drop it.")
            same = f"{found.same}, limit={words.first_s, words.later_s}, gpu_transport={gpu_transport!r}"
            return found, words, same

        found, words = _agreed(plan._ranks, prepare)
        self._arrays = found.keeps if found.there else []
        self._is_on_gpu = found.there
        self._bound = _core.BoundArrays(plan._plan, found.words, words, tuple(found.keeps))
        plan._exchanges.add(self)

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
    def plan(self) -> ExchangePlan:
        return self._plan

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

    def __enter__(self) -> "_Bound":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self._bound.closed else self._bound.description if self._is_on_gpu else "processor"
        return f"<hostless.{type(self).__name__} by {self._plan.route}, {where}>"


class Exchange(_Bound):
    """Fills the ghosts of any number of fields with what their owners hold, all fields in one message a neighbour.

    plan    who reads what
    fields  a list of pairs (owned, ghosts) of arrays [plan.owned, ...] and [plan.ghosts, ...] of one type and one shape of
            items, C-contiguous; where the plan has ghosts around, of single arrays [plan.owned + plan.ghosts, ...]. The first
            axis is the item; what follows, and the type, differ from field to field as you like, up to a mebibyte an item.
            NumPy, torch and whatever has memory that can be written; all in the memory of the processor, or all in that of
            one GPU (CuPy, torch, Numba: __cuda_array_interface__ or DLPack). They are read and written where they lie, and
            kept as long as the exchange is there.
    limit   a rank that is silent for so many seconds is lost: a number, or (of the first wait, of later ones); None: 60 and
            10, both times HOSTLESS_DEADLINE_SCALE. Longer than anything a rank computes between two exchanges.
    gpu_transport
            between GPUs: "peer" (which "auto" takes), "nccl", "nvshmem", "mpi", "host"

    Then start, work on what needs no ghosts, finish (or test and wait); as often as you like. In between the owned items may
    not change and the ghosts may not be touched. Where several exchanges are under way all ranks wait for them in one order,
    or test all in turn: one moves on only while it is called. Where the host carries between GPUs ("mpi", "host") it must
    call test or wait. Keep it until it is complete: one that goes before is a rank that leaves.

    Collective. Errors, on all ranks: UsageError (with the number of the field: shapes, types, gaps, read-only ghosts, arrays
    that share bytes; other fields on other ranks), TypeError (no arrays), MachineError (no GPU, no library), PeerLostError.
    Cost: O(items moved by this rank) time and memory once; then nothing is allocated.
    """


class ReverseExchange(_Bound):
    """Adds the ghosts of all ranks to the items that they are copies of: item + ghost of the lowest rank + that of the next
    one ...: the same bits by every route and transport. Ghosts keep their values.

    As Exchange; fields of float32, float64 and of integers of 4 and 8 bytes, which wrap around. Pairs are (owned, ghosts) here
    too: owned is added to, ghosts are only read. Ghosts around owned items in a GPU's memory cannot be added (UsageError).
    Where a PeerLostError is raised nothing has been added on this rank.
    """

    _adds = True


def _limits(limit: Any) -> tuple:
    if limit is None:
        return _core.wait_limits()
    both = tuple(limit) if isinstance(limit, (list, tuple)) else (limit, limit)
    if len(both) != 2 or not all(isinstance(one, numbers.Real) and one > 0 for one in both):
        raise UsageError(f"limit={limit!r} (seconds above 0 are meant, or two of them: of the first wait, of later ones). Pass "
                         "them.")
    return tuple(float(min(one, 1e300)) for one in both)

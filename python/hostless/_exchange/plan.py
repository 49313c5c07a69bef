"""Who reads what, and how it gets there; ranks that are threads."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional

import numpy as np

from .. import _core
from .._checks import check_environment, check_ranks, file_name
from .._rows import is_array, small, to_numpy, whole, word
from ..errors import UsageError, a_type, counted
from .bound import OfRanks, agreed, check_carrier

#: Local numbers have 31 bits.
MOST_ITEMS = 2**31 - 1
ROUTES = ("auto", "direct", "two_step", "three_step", "split", "leader")


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
    check_environment()
    count = small(ranks, "ranks")
    check_ranks(count, "somebody has to call the function", "threads of one machine are started). Use fewer.")
    if not callable(body):
        raise UsageError(f"body is {a_type(body)} (it is called with the rank's comm). Pass a function.")
    return _core.run_threads(count, lambda comm: body(comm, *args))


class ExchangePlan(OfRanks):
    """Who reads what, and how it gets there: made once, of any number of exchanges in either direction.

    owned   global numbers of the items that this rank owns, in the order in which they lie: an array or list of integers
            from 0 on, with gaps as you like. An item has one owner.
    ghosts  global numbers of the items that this rank reads, in the order in which their ghosts shall lie, each once.
            Own items may be among them (periodic boundaries).
    comm    who the ranks are: a communicator of mpi4py, what `run_threads` hands to its function, or None (one rank)
    route   "direct"; "two_step", "three_step", "split" and "leader" for nodes of several ranks; "auto": three_step where there are several
    around  False: ghosts are an array of their own. True: they lie in the array of the owned items, which are behind the
            ghosts of lower ranks and in front of all others: `plan.first_owned`; in which order, `plan.order` says.
    ranks_per_node
            0: nodes are found by host name; else so many ranks are a node
    transport
            with mpi4py "mpi" (None means it) or "composite": processes of one node exchange through memory that they share

    Collective, as `from_lists`, `load` and `save`: every rank makes the same call, and what one of them does wrong, or
    otherwise than the others, is raised on all. With mpi4py the communicator is duplicated, and the plan ends on all ranks
    together: `close` it on all, use it in a `with` block (one that is left by an exception tells the other ranks), or drop it.
    One thread at a time uses a rank.

    Errors: UsageError (a negative number, an item of two owners, a ghost that nobody owns or that is there twice, unknown
    words), TypeError (no integers), PeerLostError (a rank does not come within ten minutes). Ctrl-C is heard when all are there.
    Cost: O(n log n) for n own items, ghosts and readers; four gathers; the patterns of all ranks on all ranks.
    """

    def __init__(self, owned: Any, ghosts: Any, *, comm: Any = None, route: str = "auto", around: bool = False,
                 ranks_per_node: int = 0, transport: Optional[str] = None):
        self._begin(comm, transport)

        def prepare() -> tuple:
            check_carrier(comm, transport)
            words, same = plan_words(route, around, ranks_per_node)
            return (integers(owned, "owned", np.int64), integers(ghosts, "ghosts", np.int64), words,
                    f"numbers of items, {same}")

        mine, theirs, words = agreed(self._ranks, prepare)
        self._plan = _core.PlannedExchange.of_numbers(self._ranks, mine, theirs, words)

    @classmethod
    def from_lists(cls, owned: int, send: Any, receive: Any, *, comm: Any = None, route: str = "auto", around: bool = False,
                   ranks_per_node: int = 0, transport: Optional[str] = None) -> "ExchangePlan":
        """A plan from lists, as neighbourhood collectives have them: item send[r][k] of this rank becomes the ghost
        receive[s][k] of rank r, where s is this rank.

        owned    how many items this rank has
        send     a list for each rank, or a dict by rank: own items that go there, in any order, none twice
        receive  the same of ghosts: what those of each rank become; together every number below their count once

        Errors: as the class; UsageError also for lists of different lengths at both ends, which names both ranks.
        """
        plan = cls.__new__(cls)
        plan._begin(comm, transport)

        def prepare() -> tuple:
            check_carrier(comm, transport)
            words, same = plan_words(route, around, ranks_per_node)
            size = plan._ranks.size
            if not 0 <= whole(owned, "owned") <= MOST_ITEMS:
                raise UsageError(f"owned={owned} (a rank has from 0 to {MOST_ITEMS} items). Count its own.")
            return whole(owned, "owned"), _lists(send, "send", size), _lists(receive, "receive", size), words, f"lists, {same}"

        plan._plan = _core.PlannedExchange.of_lists(plan._ranks, *agreed(plan._ranks, prepare))
        return plan

    @classmethod
    def load(cls, path: Any, *, comm: Any = None, transport: Optional[str] = None) -> "ExchangePlan":
        """A plan that `save` has written, for as many ranks. Every rank reads the file; rank 0 proves the plans of all.

        Errors: BadInputError (no plan file, or a wrong one, with the place), UsageError (of another number of ranks; other
        files on other ranks).
        """
        plan = cls.__new__(cls)
        plan._begin(comm, transport)

        def prepare() -> tuple:
            check_carrier(comm, transport)
            return file_name(path), "a plan file"

        name, = agreed(plan._ranks, prepare)
        plan._plan = _core.PlannedExchange.of_file(plan._ranks, name)
        return plan

    def save(self, path: Any) -> None:
        """Writes the plans of all ranks as JSON (rank 0 does). Errors: MachineError (it cannot be written)."""
        self._check_open()
        name, = agreed(self._ranks, lambda: (file_name(path), f"a plan file to write, {os.fspath(path)!r}"))
        self._plan.save(name)

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

    def __repr__(self) -> str:
        return (f"<hostless.ExchangePlan of rank {self.rank} of {self.ranks}: {counted(self.owned, 'item')}, {counted(self.ghosts, 'ghost')}, "
                f"{self.route}{', around' if self.around else ''}>")


def plan_words(route: Any, around: Any, ranks_per_node: Any) -> tuple:
    words = _core.PlanWords()
    if not isinstance(around, (bool, np.bool_)):
        raise UsageError(f"around={around!r} (ghosts lie around the owned items or do not). Use True or False.")
    words.route, words.around = word(route, "route"), bool(around)
    words.ranks_per_node = small(ranks_per_node, "ranks_per_node")
    if route not in ROUTES:
        raise UsageError(f"route={route!r} (it says by which ranks items go). Use one of {', '.join(ROUTES)}.")
    if words.ranks_per_node < 0:
        raise UsageError(f"ranks_per_node={ranks_per_node} (a node has a rank). Use 0 to find nodes.")
    return words, f"route={words.route!r}, around={words.around}, ranks_per_node={words.ranks_per_node}"


def integers(given: Any, what: str, kind: Any, advice: str = "Number them from 0 on.") -> np.ndarray:
    if not is_array(given) and not isinstance(given, range):
        raise TypeError(f"{what} is {a_type(given)} (numbers of items are meant). Pass an array or a list of integers.")
    if isinstance(given, np.ma.MaskedArray):
        raise UsageError(f"{what} has a mask (every number in it counts). Compress it first.")
    array = _counted(given, what) if isinstance(given, range) else np.asarray(to_numpy(given))
    if array.size == 0:
        array = array.reshape(-1).astype(kind)
    if array.dtype == object and array.ndim == 1 and all(isinstance(one, int) and not isinstance(one, bool) for one in array):
        kind_limits = np.iinfo(kind)  # NumPy has no type for all of them
        k = next((k for k, one in enumerate(array) if not kind_limits.min <= one <= kind_limits.max), None)
        if k is not None:
            raise UsageError(f"{what}[{k}] is {array[k]} (items are counted up to {kind_limits.max}). {advice}")
        array = array.astype(kind)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{what} is {array.dtype} of the shape {array.shape} (numbers of items are integers in a row). Pass them "
                        "so.")
    limits = np.iinfo(kind)
    wrong = np.flatnonzero((array > limits.max) | (array < limits.min))
    if len(wrong):
        raise UsageError(f"{what}[{int(wrong[0])}] is {int(array[wrong[0]])} (items are counted up to {limits.max}). {advice}")
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
        count = f"has {counted(len(given), 'list')}" if isinstance(given, (list, tuple)) else f"is {a_type(given)}"
        raise UsageError(f"{what} {count} (there {'is' if ranks == 1 else 'are'} {counted(ranks, 'rank')}, and each has one). Pass a list of lists, or a dict by rank.")
    return [integers(one, f"{what}[{rank}]", np.int32) for rank, one in enumerate(given)]

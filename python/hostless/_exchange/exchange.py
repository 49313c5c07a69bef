"""Exchanges of ghosts without a matrix, in both directions."""

from __future__ import annotations

import collections
from typing import Any, Optional

from .. import _core
from ..errors import UsageError, a_type
from .bound import Bound, agreed, bind_words
from .fields import Whole, array_of, fields_of
from .plan import ExchangePlan

#: Arrays that an exchange made from numbers remembers.
MOST_UPDATED = 8


class _OfPlan(Bound):
    """What both directions have alike."""

    _adds = False

    def __init__(self, plan: ExchangePlan, fields: Any, *, limit: Any = None, gpu_transport: str = "auto"):
        if not isinstance(plan, ExchangePlan):
            raise TypeError(f"plan is {a_type(plan)} (it says who reads what). Pass a hostless.ExchangePlan, or a "
                            "communicator with owned and ghosts.")
        plan._check_open()
        self._plan = plan

        def prepare() -> tuple:
            found = fields_of(fields, plan._plan, self._adds)
            words, same = bind_words(self._adds, found.there, found.device, limit, gpu_transport)
            return found, words, f"{found.same}, {same}"

        found, words = agreed(plan._ranks, prepare)
        self._arrays = found.keeps if found.there else []
        self._is_on_gpu = found.there
        self._bound = _core.BoundArrays(plan._plan, found.words, words, tuple(found.keeps))
        plan._exchanges.add(self)

    @property
    def plan(self) -> ExchangePlan:
        return self._plan

    @property
    def _route(self) -> str:
        return self._plan.route


class Exchange(_OfPlan):
    """Fills the ghosts of any number of fields with what their owners hold, all fields in one message a neighbour.

    Two forms: Exchange(plan, fields), and Exchange(comm, owned, ghosts), whose fields are what `update` is given.

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
            between GPUs: "peer" (which "auto" takes), "nccl", "nvshmem", "mpi", "host"; inside nodes peer and between
            them another: "peer+nccl", "peer+mpi", "peer+host"
    comm, owned, ghosts, route, ranks_per_node, transport
            what hostless.ExchangePlan is made of: `exchange.plan`, which ends with the exchange

    Then start, work on what needs no ghosts, finish (or test and wait); as often as you like. In between the owned items may
    not change and the ghosts may not be touched. Where several exchanges are under way all ranks wait for them in one order,
    or test all in turn: one moves on only while it is called. Where the host carries between GPUs ("mpi", "host") it must
    call test or wait. Keep it until it is complete: one that goes before is a rank that leaves.

    Collective. Errors, on all ranks: UsageError (with the number of the field: shapes, types, gaps, read-only ghosts, arrays
    that share bytes; other fields on other ranks), TypeError (no arrays), MachineError (no GPU, no library), PeerLostError.
    Cost: O(items moved by this rank) time and memory once; then nothing is allocated.
    """

    def __init__(self, plan: Any, fields: Any, ghosts: Any = None, *, limit: Any = None, gpu_transport: str = "auto",
                 route: str = "auto", ranks_per_node: int = 0, transport: Optional[str] = None):
        self._updated: Any = None
        if isinstance(plan, ExchangePlan) or (ghosts is None and plan is not None):
            if ghosts is not None or (route, ranks_per_node, transport) != ("auto", 0, None):
                raise UsageError("ghosts, route, ranks_per_node and transport beside a plan (which has them). Leave them out.")
            super().__init__(plan, fields, limit=limit, gpu_transport=gpu_transport)
            return
        self._plan = ExchangePlan(fields, () if ghosts is None else ghosts, comm=plan, route=route, ranks_per_node=ranks_per_node,
                                  transport=transport)
        self._updated = collections.OrderedDict()  # by the number of the binding, which is that of all ranks
        self._bindings = 0
        self._bound, self._arrays, self._is_on_gpu = _NoFields(self._updated), [], False
        self._how = {"limit": limit, "gpu_transport": gpu_transport}

    def update(self, array: Any, stream: Any = None) -> None:
        """Fills the ghosts of an array: of exchanges that were made from numbers.

        array   [owned + ghosts, ...]: own items in their order, then ghosts in theirs. Of NumPy, CuPy, torch ...; an item
                is what follows the first axis
        stream  as in `exchange`: on a GPU it is queued there, and nobody waits

        Collective: all ranks pass the arrays that belong together, in the same order. They are bound when one rank sees its
        own for the first time, or in the place of another, and then kept; the last eight are known. A rank without items
        and ghosts passes an array of none, of the type and shape of items that the others' have. Where one rank changes its
        array and another does not, each call binds anew.

        Errors, on all ranks: UsageError (of an exchange of fields; what binding refuses), TypeError, PeerLostError.
        Cost: a number of each rank is gathered before the exchange, by the processor, whatever the stream; fields that are
        bound to a plan have no such step.
        """
        if self._updated is None:
            raise UsageError("update of an exchange with fields of its own (it moves those). Call exchange(), or make "
                             "hostless.Exchange(comm, owned, ghosts).")
        if self._plan._closed:
            raise UsageError("the exchange is closed (its ranks have been let go). Make a new hostless.Exchange.")
        key = _key_of(array)
        mine = next((number for number, kept in self._updated.items() if key is not None and kept[1] == key), _NEW)
        if self._plan.owned + self._plan.ghosts == 0 and key is not None and key[1][:1] == (0,):
            mine = _ANY
        number = self._plan._ranks.common(mine)
        if number == _NEW:
            exchange = Exchange(self._plan, [Whole(array)], **self._how)
            if mine >= 0:  # bound anew beside others: the newer one is found, and all ranks have as many as before
                self._updated[mine] = self._updated[mine][0], None, array
            number, self._bindings = self._bindings, self._bindings + 1
            self._updated[number] = exchange, key, array
        self._updated.move_to_end(number)
        if len(self._updated) > MOST_UPDATED:
            self._updated.popitem(last=False)[1][0].close()
        self._updated[number][0].exchange(stream)

    def close(self) -> None:
        """Lets go of the arrays; where an exchange is on its way, the other ranks lose this one. Not collective, unless it was made
        from numbers of a communicator: then its plan ends with it, on all ranks."""
        super().close()
        if self._updated is not None:
            self._updated.clear()
            if not self._plan._closed:
                self._plan.close()

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if self._updated is not None:
            self._plan.__exit__(kind, *rest)
        self.close()


class _NoFields:
    """In the place of bound arrays where there are none."""

    closed = False

    def __init__(self, updated: Any):
        self._updated = updated

    @property
    def lost(self) -> bool:
        return any(kept[0].lost for kept in self._updated.values())

    def close(self) -> None:
        self.closed = True

    def __getattr__(self, name: str) -> Any:
        raise UsageError(f"{name} of an exchange that was made from numbers (what it moves is given to update). Call "
                         "update(array), or bind fields to its plan.")


#: What a rank says of its array beside the number of a binding: it has none, or nothing of it is moved.
_NEW, _ANY = -1, -2


def _key_of(array: Any) -> Any:
    """Tells memory apart that is alive; None: binding says what is wrong with it, on all ranks."""
    try:
        seen = array_of(array, "array")
    except Exception:  # of whatever package's array
        return None
    if not (seen.is_dense and seen.is_writable):
        return None
    return seen.address, seen.shape, seen.kind, seen.there, seen.device


class ReverseExchange(_OfPlan):
    """Adds the ghosts of all ranks to the items that they are copies of: item + ghost of the lowest rank + that of the next
    one ...: the same bits by every route and transport. Ghosts keep their values.

    As Exchange; fields of float32, float64 and of integers of 4 and 8 bytes, which wrap around. Pairs are (owned, ghosts) here
    too: owned is added to, ghosts are only read. Ghosts around owned items in a GPU's memory cannot be added (UsageError).
    Where a PeerLostError is raised nothing has been added on this rank.
    """

    _adds = True

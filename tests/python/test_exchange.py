"""Exchanges of ghosts between ranks that are threads, against NumPy's indexing, and what is refused."""

import json

import numpy as np
import pytest

import hostless
from exchange_worlds import World, check, pair, ring


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_random_patterns(ranks):
    hostless.run_threads(ranks, lambda comm: check(range(60), comm, comm.rank, ranks))


def test_worlds_are_worth_a_look():
    """The oracle would be content with nothing: most worlds move items, by every route, both ways of naming and lying."""
    worlds = [World(seed, 3) for seed in range(60)]
    assert {world.how["route"] for world in worlds} == {"direct", "two_step", "three_step", "split", "leader", "auto"}
    assert {(world.around, world.as_lists) for world in worlds} == {(a, b) for a in (False, True) for b in (False, True)}
    moved = [sum(number not in set(world.owned[rank]) for number in world.ghosts[rank]) for world in worlds for rank in range(3)]
    assert np.mean([count > 0 for count in moved]) > 0.7
    sizes = {np.dtype(kind).itemsize * int(np.prod(shape)) for world in worlds for kind, shape in world.items}
    assert min(sizes) == 1 and max(sizes) == 64 and len(sizes) > 8


def test_what_comes_back_and_which_rank_is_which():
    assert hostless.run_threads(3, lambda comm, more: (comm.rank, comm.size, more), "x") == [(r, 3, "x") for r in range(3)]
    seen = []

    def body(comm):
        if comm.rank == 0:
            seen.append("first")
        comm.barrier()
        return list(seen)

    assert hostless.run_threads(3, body) == [["first"]] * 3


def test_numbers_in_arrays_of_objects_are_numbers():
    plan = hostless.ExchangePlan(np.array([2**40, 3, 5], object), np.array([5], object))
    assert (plan.owned, plan.ghosts) == (3, 1)


def test_alone_a_rank_reads_its_own_items():
    plan = hostless.ExchangePlan([7, 3, 5], [5, 7])
    assert (plan.rank, plan.ranks, plan.owned, plan.ghosts, plan.first_owned) == (0, 1, 3, 2, 0)
    assert plan.route == "direct" and not plan.around and plan.order.tolist() == [0, 1] and plan.items_sent == 0
    owned, ghosts = np.array([70.0, 30.0, 50.0]), np.zeros(2)
    hostless.Exchange(plan, [(owned, ghosts)]).exchange()
    assert ghosts.tolist() == [50.0, 70.0]
    hostless.ReverseExchange(plan, [(owned, ghosts)]).exchange()
    assert owned.tolist() == [140.0, 30.0, 100.0]


def test_ghosts_around():
    def body(comm):
        plan = ring(comm, around=True)
        numbers = np.array([(4 * comm.rank - 1) % 12, (4 * comm.rank + 4) % 12])[plan.order]
        whole = np.zeros(6)
        mine = whole[plan.first_owned:plan.first_owned + 4]
        mine[...] = np.arange(4 * comm.rank, 4 * comm.rank + 4)
        hostless.Exchange(plan, [whole]).exchange()
        assert np.concatenate([whole[:plan.first_owned], whole[plan.first_owned + 4:]]).tolist() == numbers.tolist()
        return plan.first_owned

    assert hostless.run_threads(3, body) == [0, 1, 2]  # ghosts of lower ranks


def test_memory_of_other_packages():
    """Whatever has memory that can be written: Python's own arrays, and bytes."""
    import array

    plan = hostless.ExchangePlan([0, 1], [1])
    owned, ghosts = array.array("d", [1.5, 2.5]), array.array("d", [0.0])
    text, copy = b"ab", bytearray(1)
    hostless.Exchange(plan, [(owned, ghosts), (text, copy)]).exchange()
    assert ghosts[0] == 2.5 and copy == b"b"


class Tensor:
    """What is asked of a torch tensor of the processor; real ones: arrays/real_arrays_cases.py."""

    __module__ = "torch"

    def __init__(self, values, name=None, **change):
        self.values, self.dtype, self.shape = values, f"torch.{name or values.dtype}", values.shape
        self.layout, self.is_cuda, self.requires_grad = "torch.strided", False, False
        self.conjugated = False
        self.__dict__.update(change)

    def is_conj(self):
        return self.conjugated

    def is_neg(self):
        return False

    def detach(self):
        return self

    def element_size(self):
        return self.values.itemsize

    def data_ptr(self):
        return self.values.ctypes.data

    def is_contiguous(self):
        return self.values.flags.c_contiguous

    def stride(self):
        return tuple(step // self.values.itemsize for step in self.values.strides)


def test_tensors():
    plan = hostless.ExchangePlan([0, 1], [1])
    owned, ghosts = np.arange(4, dtype=np.uint16).reshape(2, 2), np.zeros((1, 2), np.uint16)
    hostless.Exchange(plan, [(Tensor(owned, "bfloat16"), Tensor(ghosts, "bfloat16"))]).exchange()  # which NumPy has not
    assert ghosts.tolist() == [[2, 3]]
    total, share = np.ones(2, np.float32), np.full(1, 0.5, np.float32)
    hostless.ReverseExchange(plan, [(Tensor(total), Tensor(share))]).exchange()
    assert total.tolist() == [1.0, 1.5]
    for change, text in ((dict(layout="torch.sparse_coo"), "ghosts is a tensor of the layout torch.sparse_coo"),
                         (dict(conjugated=True), "conjugates or negates"), (dict(requires_grad=True), "autograd follows it")):
        with pytest.raises(hostless.UsageError, match=text):
            hostless.Exchange(plan, [(Tensor(total), Tensor(share, **change))])
    with pytest.raises(hostless.UsageError, match="has the type bfloat16"):
        hostless.ReverseExchange(plan, [(Tensor(owned, "bfloat16"), Tensor(ghosts, "bfloat16"))])


def test_records():
    kind = np.dtype({"names": ["mark", "speed"], "formats": ["u1", ("f4", 3)], "itemsize": 20})  # with gaps
    plan = hostless.ExchangePlan([0, 1], [1])
    owned, ghosts = np.zeros(2, kind), np.zeros(1, kind)
    owned["mark"], owned["speed"] = [1, 2], [[1, 2, 3], [4, 5, 6]]
    hostless.Exchange(plan, [(owned, ghosts)]).exchange()
    assert ghosts["mark"] == 2 and ghosts["speed"].tolist() == [[4, 5, 6]]


def test_two_on_their_way_at_once(tmp_path):
    def body(comm):
        plan = ring(comm)
        one, other = (np.full(4, float(comm.rank)), np.zeros(2)), (np.full(4, 10.0 * comm.rank), np.zeros(2))
        first, second = hostless.Exchange(plan, [one]), hostless.Exchange(plan, [other])
        first.start()
        second.start()
        done = [False, False]
        while not all(done):
            done = [first.test(), second.test()]
        assert other[1].tolist() == [10 * value for value in one[1]] == [10.0 * ((comm.rank - 1) % 3), 10.0 * ((comm.rank + 1) % 3)]

    hostless.run_threads(3, body)


def test_a_plan_file(tmp_path):
    path = tmp_path / "plan.json"

    def write(comm, around):
        plan = ring(comm, route="two_step", ranks_per_node=2, around=around)
        plan.save(path)
        return plan.order.tolist()

    def read(comm):
        plan = hostless.ExchangePlan.load(path, comm=comm)
        whole = np.full(6, 1.0 + comm.rank)
        if plan.around:
            hostless.Exchange(plan, [whole]).exchange()
            hostless.ReverseExchange(plan, [whole]).exchange()
        else:
            owned, ghosts = whole[:4], whole[4:]
            hostless.Exchange(plan, [(owned, ghosts)]).exchange()
            assert sorted(ghosts) == sorted([1.0 + (comm.rank - 1) % 4, 1.0 + (comm.rank + 1) % 4])
            hostless.ReverseExchange(plan, [(owned, ghosts)]).exchange()
        mine = whole[plan.first_owned:plan.first_owned + 4]
        assert mine.tolist() == [2 * (1.0 + comm.rank), 1.0 + comm.rank, 1.0 + comm.rank, 2 * (1.0 + comm.rank)]
        return plan.route, plan.order.tolist()

    for around in (False, True):
        order = hostless.run_threads(4, write, around)
        assert [found for found in hostless.run_threads(4, read)] == [("two_step", one) for one in order]
    with pytest.raises(hostless.UsageError, match="plans of 4 ranks, and there are 3"):
        hostless.run_threads(3, read)
    path.write_text(path.read_text().replace('"owned"', '"owned" '))
    hostless.run_threads(4, read)
    names = json.loads(path.read_text())
    names["named"][1] = [0, 0]
    path.write_text(json.dumps(names))
    with pytest.raises(hostless.BadInputError, match="\\$.named: named\\[1\\]: it has not each of the 2 ghosts once"):
        hostless.run_threads(4, read)
    path.write_text("{")
    with pytest.raises(hostless.BadInputError, match="plan.json:1"):
        hostless.run_threads(2, read)
    with pytest.raises(hostless.BadInputError, match="none.json"):
        hostless.ExchangePlan.load(tmp_path / "none.json")
    with pytest.raises(hostless.MachineError, match="no/such"):
        hostless.ExchangePlan([0], []).save(tmp_path / "no" / "such" / "folder.json")


def test_a_loaded_plan_names_its_ghosts(tmp_path):
    path = tmp_path / "plan.json"

    def body(comm):
        first, last = 4 * comm.rank, 4 * comm.rank + 3
        ghosts = [(last + 1) % 12, (first - 1) % 12]
        made = hostless.ExchangePlan(range(first, last + 1), ghosts, comm=comm, around=True)
        made.save(path)
        for plan in (made, hostless.ExchangePlan.load(path, comm=comm)):
            whole = np.zeros(6)
            whole[plan.first_owned:plan.first_owned + 4] = range(first, last + 1)
            hostless.Exchange(plan, [whole]).exchange()
            lying = np.concatenate([whole[:plan.first_owned], whole[plan.first_owned + 4:]])
            named = np.empty(2)
            named[plan.order] = lying
            assert named.tolist() == ghosts

    hostless.run_threads(3, body)


def test_other_files_on_other_ranks(tmp_path):
    """Rank 0 proves what is in its file, so all must have that one: also where patterns are equal and stages are not."""
    path = tmp_path / "plan.json"

    def write(comm):
        first, theirs = 4 * comm.rank, 4 * (1 - comm.rank)
        hostless.ExchangePlan(range(first, first + 4), [theirs, theirs + 1, theirs + 3], comm=comm).save(path)

    hostless.run_threads(2, write)
    other = json.loads(path.read_text())
    index = other["plans"][1]["stages"][1]["pack"][0]["from"]["index"]
    assert index == [0, 1, 3]
    index.reverse()
    (tmp_path / "other.json").write_text(json.dumps(other))

    def body(comm):
        with pytest.raises(hostless.UsageError, match="ranks 0 and 1 have read other plans"):
            hostless.ExchangePlan.load(tmp_path / "other.json" if comm.rank == 1 else path, comm=comm)
        with pytest.raises(hostless.UsageError, match="plan file to write"):
            hostless.ExchangePlan([comm.rank], [], comm=comm).save(tmp_path / f"{comm.rank}.json")

    hostless.run_threads(2, body)


def test_the_environment_is_looked_at(monkeypatch):
    for name, value in (("HOSTLESS_DEADLINE_SCALE", "0"), ("HOSTLESS_ISA", "x")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            with pytest.raises(hostless.UsageError, match=name):
                hostless.run_threads(1, lambda comm: None)
            with pytest.raises(hostless.UsageError, match=name):
                hostless.ExchangePlan([0], [0])


class TestRefused:
    """With the number of the field and the value; on all ranks, whoever was wrong."""

    PLANS = {
        "a negative number": (dict(owned=[-1]), hostless.UsageError, "owned\\[0\\] is -1"),
        "twice": (dict(owned=[3, 3]), hostless.UsageError, "3"),
        "nobody's": (dict(ghosts=[99]), hostless.UsageError, "ghosts\\[0\\] is item 99, which no rank owns"),
        "floats": (dict(owned=[0.5]), TypeError, "owned is float64"),
        "an object beyond 64 bits": (dict(owned=np.array([3, 2**64], object)), hostless.UsageError, "owned\\[1\\] is 18446744073709551616"),
        "objects": (dict(owned=np.array([True, False], object)), TypeError, "owned is object"),
        "no numbers": (dict(ghosts="01"), TypeError, "ghosts is a str"),
        "two dimensions": (dict(ghosts=[[1]]), TypeError, "shape \\(1, 1\\)"),
        "a route": (dict(route="teleport"), hostless.UsageError, "route='teleport'"),
        "no word": (dict(route=3), TypeError, "route=3"),
        "nodes": (dict(ranks_per_node=-1), hostless.UsageError, "ranks_per_node=-1"),
        "beyond 64 bits": (dict(owned=np.array([2**63], dtype=np.uint64)), hostless.UsageError, "9223372036854775808"),
        "a long range": (dict(owned=range(10**10)), hostless.UsageError, "owned is range\\(0, 10000000000\\)"),
        "a mask": (dict(owned=np.ma.masked_array([2, 3], [False, True])), hostless.UsageError, "owned has a mask"),
        "a word": (dict(around="no"), hostless.UsageError, "around='no'"),
    }

    @pytest.mark.parametrize("what", PLANS)
    def test_plans(self, what):
        change, kind, text = self.PLANS[what]

        def body(comm):
            given = dict(owned=[2 * comm.rank, 2 * comm.rank + 1], ghosts=[0])
            wrong = comm.rank == 1
            with pytest.raises(kind if wrong else hostless.Error, match=text):
                hostless.ExchangePlan(**{**given, **(change if wrong else {})}, comm=comm)
            assert hostless.ExchangePlan(**given, comm=comm).ghosts == 1  # nothing of that has harmed the ranks

        hostless.run_threads(2, body)

    LISTS = {
        "lengths": (dict(send=[[0], [0, 1]]), "1 .* sends 2 items to rank 0, which receives 1|sends 2 items"),
        "an item": (dict(send=[[5], []]), "send\\[0\\]\\[0\\] is 5"),
        "a ghost": (dict(receive=[[3], []]), "receive\\[0\\]\\[0\\] is 3"),
        "ranks": (dict(send=[[0]]), "send has 1 list \\(there are 2 ranks"),
        "no rank": (dict(receive={7: [0]}), "list for rank 7"),
        "no lists": (dict(send=3), "send is an int"),
        "owned": (dict(owned=2**63), "owned=9223372036854775808"),
        "fewer than none": (dict(owned=-1), "owned=-1"),
    }

    @pytest.mark.parametrize("what", LISTS)
    def test_lists(self, what):
        change, text = self.LISTS[what]

        def body(comm):
            given = dict(owned=2, send={1 - comm.rank: [0]}, receive={1 - comm.rank: [0]})
            with pytest.raises(hostless.UsageError, match=text):
                hostless.ExchangePlan.from_lists(**{**given, **(change if comm.rank == 1 else {})}, comm=comm)

        hostless.run_threads(2, body)

    READ_ONLY = np.zeros(2)
    READ_ONLY.flags.writeable = False
    MASKED = np.ma.masked_array(np.zeros(2), [True, False])
    FIELDS = {
        "no list": (lambda: 3, {}, hostless.UsageError, "fields=3"),
        "none": (lambda: [], {}, hostless.UsageError, "fields=\\[\\]"),
        "one array": (lambda: [pair(), np.zeros(4)], {}, hostless.UsageError, "fields\\[1\\] is an ndarray .* Pass \\(owned, ghosts\\)"),
        "three": (lambda: [(*pair(), 1)], {}, hostless.UsageError, "fields\\[0\\] is 3 things"),
        "items": (lambda: [pair(), (np.zeros(5), np.zeros(2))], {}, hostless.UsageError, "fields\\[1\\], owned has the shape \\(5,\\)"),
        "ghosts": (lambda: [(np.zeros(4), np.zeros((3, 1)))], {}, hostless.UsageError, "fields\\[0\\], ghosts has the shape \\(3, 1\\)"),
        "a number": (lambda: [(np.float64(3), np.zeros(2))], {}, hostless.UsageError, "fields\\[0\\], owned has the shape \\(\\)"),
        "gaps": (lambda: [(np.zeros(8)[::2], np.zeros(2))], {}, hostless.UsageError, "fields\\[0\\], owned has gaps"),
        "columns first": (lambda: [(np.zeros((4, 3), order="F"), np.zeros((2, 3)))], {}, hostless.UsageError, "owned is in Fortran order"),
        "read-only": (lambda: [(np.zeros(4), TestRefused.READ_ONLY)], {}, hostless.UsageError, "fields\\[0\\], ghosts is read-only"),
        "bytes": (lambda: [(b"abcd", b"ab")], {}, hostless.UsageError, "ghosts is read-only"),
        "types": (lambda: [(np.zeros(4), np.zeros(2, np.float32))], {}, hostless.UsageError, "float64\\[\\], ghosts float32\\[\\]"),
        "shapes": (lambda: [(np.zeros((4, 2)), np.zeros((2, 3)))], {}, hostless.UsageError, "float64\\[2\\], ghosts float64\\[3\\]"),
        "objects": (lambda: [(np.zeros(4, object), np.zeros(2, object))], {}, TypeError, "fields\\[0\\], owned has the type object"),
        "a list": (lambda: [([1, 2, 3, 4], np.zeros(2))], {}, TypeError, "fields\\[0\\], owned is a list"),
        "a mask": (lambda: [(np.zeros(4), TestRefused.MASKED)], {}, hostless.UsageError, "fields\\[0\\], ghosts has a mask"),
        "no bytes": (lambda: [(np.zeros((4, 0)), np.zeros((2, 0)))], {}, hostless.UsageError, "fields\\[0\\]: items of 0 bytes"),
        "too many bytes": (lambda: [(np.zeros((4, 2**18), "f8"), np.zeros((2, 2**18)))], {}, hostless.UsageError, "items of 2097152 bytes"),
        "shared": (lambda: [(lambda a: (a[:4], a[3:5]))(np.zeros(6))], {}, hostless.UsageError, "fields\\[0\\].*share"),
        "a limit": (lambda: [pair()], dict(limit=0), hostless.UsageError, "limit=0"),
        "limits": (lambda: [pair()], dict(limit=(1, "2")), hostless.UsageError, "limit=\\(1, '2'\\)"),
        "an unknown GPU transport": (lambda: [pair()], dict(gpu_transport="pigeon"), hostless.UsageError, "'pigeon'"),
        "a GPU's transport": (lambda: [pair()], dict(gpu_transport="nccl"), hostless.UsageError, "'nccl' for fields in the memory of the processor"),
    }

    @pytest.mark.parametrize("what", FIELDS)
    def test_fields(self, what):
        make, how, kind, text = self.FIELDS[what]

        def body(comm):
            plan = ring(comm)
            wrong = comm.rank == 1
            with pytest.raises(kind if wrong else hostless.Error, match=text):
                hostless.Exchange(plan, make() if wrong else [pair()], **(how if wrong else {}))
            hostless.Exchange(plan, [pair()]).exchange()

        hostless.run_threads(2, body)

    DIFFERENT = {
        "types": (lambda: [(np.zeros(4, "i8"), np.zeros(2, "i8"))], {}, "float64.*int64"),
        "shapes": (lambda: [(np.zeros((4, 1)), np.zeros((2, 1)))], {}, "float64\\[1\\]"),
        "more": (lambda: [pair(), pair()], {}, "of 2 fields"),
        "limits": (lambda: [pair()], dict(limit=3), "limit=\\(3.0, 3.0\\)"),
    }

    @pytest.mark.parametrize("what", DIFFERENT)
    def test_other_things_on_other_ranks(self, what):
        make, how, text = self.DIFFERENT[what]

        def body(comm):
            plan = ring(comm)
            with pytest.raises(hostless.UsageError, match=text) as raised:
                hostless.Exchange(plan, make() if comm.rank == 1 else [pair()], **(how if comm.rank == 1 else {}))
            assert "rank 0 was given" in str(raised.value)
            with pytest.raises(hostless.UsageError, match="to add"):
                (hostless.Exchange if comm.rank else hostless.ReverseExchange)(plan, [pair()])
            with pytest.raises(hostless.UsageError, match="route='two_step'"):
                ring(comm, route="direct" if comm.rank else "two_step")

        hostless.run_threads(2, body)

    def test_what_cannot_be_added(self):
        plan = hostless.ExchangePlan([0, 1], [0])
        for kind in ("f2", "i2", "c16", "?", ">f8", "S4"):
            with pytest.raises(hostless.UsageError, match="fields\\[0\\] has the type"):
                hostless.ReverseExchange(plan, [(np.zeros(2, kind), np.zeros(1, kind))])
        owned = np.zeros(2)
        owned.flags.writeable = False
        with pytest.raises(hostless.UsageError, match="fields\\[0\\], owned is read-only"):
            hostless.ReverseExchange(plan, [(owned, np.zeros(1))])
        ghosts = np.ones(1)
        ghosts.flags.writeable = False  # which are only read
        hostless.ReverseExchange(plan, [(np.zeros(2), ghosts)]).exchange()

    def test_plans_of_another_kind(self):
        plan = hostless.ExchangePlan([0, 1], [0], around=True)
        with pytest.raises(hostless.UsageError, match="fields\\[0\\] is 2 things .* Pass one array of 3 items"):
            hostless.Exchange(plan, [(np.zeros(2), np.zeros(1))])
        with pytest.raises(hostless.UsageError, match="fields\\[0\\] has the shape \\(2,\\)"):
            hostless.Exchange(plan, [np.zeros(2)])
        with pytest.raises(TypeError, match="plan is an int"):
            hostless.Exchange(3, [np.zeros(3)])

    def test_ranks_and_communicators(self):
        for ranks, text in ((0, "ranks=0 .somebody has to call"), (10**7, "at most .* threads of one machine are started.. Use fewer.$"), (2**40, "nothing has so many")):
            with pytest.raises(hostless.UsageError, match=text):
                hostless.run_threads(ranks, lambda comm: None)
        with pytest.raises(TypeError, match="ranks='2'"):
            hostless.run_threads("2", lambda comm: None)
        with pytest.raises(hostless.UsageError, match="body is an int"):
            hostless.run_threads(1, 3)
        with pytest.raises(hostless.UsageError, match="comm is an int"):
            hostless.ExchangePlan([0], [], comm=3)

    def test_use(self):
        plan = hostless.ExchangePlan([0], [0])
        exchange = hostless.Exchange(plan, [(np.zeros(1), np.zeros(1))])
        with pytest.raises(hostless.UsageError, match="stream=5 of an exchange of the processor"):
            exchange.start(stream=5)
        assert exchange.gpu_transport is None and not exchange.may_be_recorded and exchange.device_bytes == 0 and not exchange.lost
        exchange.close()
        exchange.close()
        for use in (exchange.start, exchange.finish, exchange.exchange, exchange.test, exchange.wait):
            with pytest.raises(hostless.UsageError, match="the exchange is closed"):
                use()
        assert "closed" in repr(exchange)
        plan.close()
        plan.close()
        with pytest.raises(hostless.UsageError, match="the plan is closed"):
            hostless.Exchange(plan, [(np.zeros(1), np.zeros(1))])
        with pytest.raises(hostless.UsageError, match="the plan is closed"):
            plan.save("nowhere")

    def test_plans_of_one_thread_end_alone(self):
        def body(comm):
            with ring(comm) as plan, ring(comm) as other:
                exchange = hostless.Exchange(plan, [pair()])
                still = hostless.Exchange(other, [pair()])
                plan.close()
                with pytest.raises(hostless.UsageError, match="the exchange is closed"):
                    exchange.start()
                still.exchange()
            hostless.Exchange(ring(comm), [pair()]).exchange()

        hostless.run_threads(2, body)

    def test_twice(self):
        def body(comm):
            exchange = hostless.Exchange(ring(comm), [pair()])
            if comm.rank == 0:
                exchange.start()
                with pytest.raises(hostless.UsageError, match="before the last one was complete"):
                    exchange.start()
                comm.barrier()
            else:
                comm.barrier()
                exchange.start()
            exchange.wait()

        hostless.run_threads(2, body)

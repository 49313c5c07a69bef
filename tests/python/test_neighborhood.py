"""Collectives between neighbours, against the memory that the lists name and against those of MPI; exchanges from numbers."""

import pathlib
from array import array as memory_of

import numpy as np
import pytest

import hostless
from neighbor_worlds import Graph, check
from test_mpi import check_all_good

def both(comm, **how):
    """Each of two ranks sends to itself and to the other."""
    return hostless.Neighborhood(comm, [0, 1], [0, 1], **how)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_random_graphs(ranks):
    hostless.run_threads(ranks, lambda comm: check(range(40), comm, comm.rank, ranks))


def test_graphs_are_worth_a_look():
    graphs = [Graph(seed, 3) for seed in range(40)]
    assert {graph.call for graph in graphs} == {"allgather", "allgatherv", "alltoall", "alltoallv"}
    lists = [mine for graph in graphs for mine in graph.destinations]
    assert any(len(set(mine)) < len(mine) for mine in lists) and any(not mine for mine in lists)
    assert any(rank in mine for graph in graphs for rank, mine in enumerate(graph.destinations))


def test_a_ring():
    def body(comm):
        last, following = (comm.rank - 1) % 3, (comm.rank + 1) % 3
        with hostless.Neighborhood(comm, [last, following], [following, last], route="two_step", ranks_per_node=2) as ring:
            assert (ring.rank, ring.ranks, ring.route) == (comm.rank, 3, "two_step")
            assert repr(ring) == f"<hostless.Neighborhood of rank {comm.rank} of 3: 2 sources, 2 destinations, two_step>"
            send, receive, gathered = np.array([10 * comm.rank, 10 * comm.rank + 1]), np.zeros(2, int), np.zeros((2, 2), int)
            swap = ring.alltoall(send, receive)
            assert "alltoall by two_step, processor" in repr(swap)
            swap.start()
            swap.finish()
            ring.allgather(send, gathered).exchange()
            padded = np.full(5, -1)
            ring.alltoallv(send, [1, 1], padded, [1, 1], receive_displacements=[3, 1], send_displacements=[1, 1]).exchange()
            assert padded.tolist() == [-1, 10 * following + 1, -1, 10 * last + 1, -1]
            return receive.tolist(), gathered.tolist()

    for rank, (receive, gathered) in enumerate(hostless.run_threads(3, body)):
        last, following = (rank - 1) % 3, (rank + 1) % 3
        assert receive == [10 * last, 10 * following + 1]
        assert gathered == [[10 * last, 10 * last + 1], [10 * following, 10 * following + 1]]


def refused(act, *parts, kind=hostless.UsageError):
    """Two ranks leave `act` with one text between them, whoever it happened to."""
    texts = []

    def body(comm):
        with pytest.raises((kind, hostless.UsageError)) as told:
            act(comm, comm.rank)
        texts.append(str(told.value).replace(f"rank {1 - comm.rank}: ", ""))

    hostless.run_threads(2, body)
    for text in texts:
        assert all(part in text for part in parts), text


def test_what_is_refused():
    zeros = np.zeros
    refused(lambda comm, me: hostless.Neighborhood(comm, [2 * me], [0]), "there are 2 ranks")
    refused(lambda comm, me: hostless.Neighborhood(comm, [1 - me], [1 - me, -2]), "destinations[1] is -2, and there are 2 ranks (MPI_PROC_NULL", "Leave it out.")
    refused(lambda comm, me: hostless.Neighborhood(comm), "without sources or destinations", "Pass both lists of ranks.", kind=TypeError)
    refused(lambda comm, me: hostless.Neighborhood(comm, [0], [1 - me]), "among its destinations")
    refused(lambda comm, me: hostless.Neighborhood(comm, [0.5], [0]), "integers in a row", kind=TypeError)
    refused(lambda comm, me: hostless.Neighborhood(comm, [], [], route="teleport"), "'teleport'")
    refused(lambda comm, me: both(comm).alltoall(zeros(3 - me), zeros(2)), "send has the shape (3,)")
    refused(lambda comm, me: both(comm).alltoall(zeros(2), zeros((2, 1 + me), "f4")), "receive float32")
    refused(lambda comm, me: both(comm).alltoall(zeros((2, 1 + me)), zeros((2, 1))), "sends 16 bytes to its destinations[0], rank 0")
    refused(lambda comm, me: both(comm).alltoall(zeros(4)[::2], zeros(2)), "send has gaps")
    refused(lambda comm, me: both(comm).allgather(zeros(1), np.frombuffer(bytes(16))), "receive is read-only")
    refused(lambda comm, me: both(comm).allgather(7, zeros(2)), "send is an int", kind=TypeError)
    refused(lambda comm, me: both(comm).allgatherv(zeros(1), zeros(2), [1, 1], [0, 0]), "received blocks 0 and 1 share bytes")
    refused(lambda comm, me: both(comm).allgatherv(zeros(1), zeros(1), [1, 1]), "received block 1 has 1 item of 8 bytes from item 1 on", "leave the memory's 8 bytes")
    refused(lambda comm, me: both(comm).alltoallv(zeros(2), [-1, 1], zeros(2), [1, 1]), "sent block 0 has -1 items (")
    refused(lambda comm, me: both(comm).allgatherv(zeros(1), zeros(2), [1, 1], [0, -3]), "received block 1 begins at item -3, in front")
    refused(lambda comm, me: both(comm).allgatherv(zeros(1), zeros(2), [1]), "1 count of received blocks for 2 neighbours")
    refused(lambda comm, me: both(comm).allgatherv(zeros(1), zeros(2), [1, 1], []), "0 for 2 neighbours")
    refused(lambda comm, me: both(comm).alltoallv(zeros(2), [1, 2**64], zeros(2), [1, 1]), "send_counts[1] is 18446744073709551616 (items are counted up to 9223372036854775807). Give a smaller one.")
    refused(lambda comm, me: both(comm).alltoallv(zeros(2), [1, 1], zeros(2), [1, 1], gpu_transport="peer"), "Drop it")
    refused(lambda comm, me: both(comm).alltoallv(zeros(2), [1, 1], zeros(2), [1, 1], limit=-1), "limit=-1")
    refused(lambda comm, me: both(comm).alltoallv(zeros((2, 0)), [1, 1], zeros((2, 0)), [1, 1]), "send has the shape (2, 0)", "no bytes")
    refused(lambda comm, me: both(comm).allgatherv(zeros((1, 0)), zeros((2, 0)), [1, 1]), "receive has the shape (2, 0)", "no bytes")
    refused(lambda comm, me: (both(comm).allgather(zeros(1), zeros(2)) if me else both(comm).alltoall(zeros(2), zeros(2))), "allgather")


def test_an_end():
    neighbours = hostless.Neighborhood(None, [0], [0])
    receive = np.zeros(1)
    collective = neighbours.alltoall(np.array([4.0]), receive)
    collective.exchange()
    assert receive[0] == 4
    neighbours.close()
    for act in (collective.start, lambda: neighbours.alltoall(np.zeros(1), np.zeros(1))):
        with pytest.raises(hostless.UsageError, match="closed"):
            act()


# ---- hostless.Exchange(comm, owned, ghosts)


class Unsliced:
    """Says where six numbers of a GPU are, and has no parts."""

    __cuda_array_interface__ = {"shape": (6,), "typestr": "<f8", "data": (0, False), "version": 2}


class UnslicedMemory(memory_of):
    __array_interface__ = None

    def __getitem__(self, index):
        raise TypeError("this class has no parts")


def test_update_fills_ghosts_of_any_array():
    def body(comm):
        first, every = 4 * comm.rank, 4 * comm.size
        ghosts = [(first + 4) % every, (first - 1) % every]
        exchange = hostless.Exchange(comm, range(first, first + 4), ghosts, route="direct")
        assert exchange.plan.ghosts == 2 and not exchange.lost and "processor" in repr(exchange)
        one, many = np.zeros(6), [np.zeros((6, 2), "i4") for _ in range(12)]
        for turn in range(3):
            one[:4] = 100 * turn + np.arange(first, first + 4)
            exchange.update(one)
            assert one[4:].tolist() == [100 * turn + number for number in ghosts]
            for array in many:  # more than it remembers
                array[:4] = np.arange(first, first + 4)[:, None] + [0, turn]
                exchange.update(array)
                assert array[4:].tolist() == [[number, number + turn] for number in ghosts]
        exchange.update(one[:])  # the same memory
        for wrong, what in ((np.zeros(5), r"array has the shape \(5,\) .* has 6\)"), (np.zeros(12)[::2], "gaps"), (7, "is an int"),
                            (Unsliced(), "array is an Unsliced .it cannot be sliced")):
            with pytest.raises((hostless.UsageError, TypeError), match=what):
                exchange.update(wrong)
        for kind in (memory_of, UnslicedMemory):
            buffer = kind("d", [*range(first, first + 4), 0, 0])  # whose slices are copies, or none
            exchange.update(buffer)
            assert list(memoryview(buffer)[4:]) == ghosts
        exchange.close()
        with pytest.raises(hostless.UsageError, match="the exchange is closed"):
            exchange.update(one)

    hostless.run_threads(3, body)


def test_update_of_ranks_that_differ():
    def body(comm):
        last = comm.rank == comm.size - 1  # which has nothing
        own = [] if last else [comm.rank]
        exchange = hostless.Exchange(comm, own, [] if last else [1 - comm.rank])
        kept, other = np.zeros(0 if last else 2), np.zeros(0 if last else 2)
        for turn in range(20):
            # Views, copies on one rank alone, and more arrays than are remembered; a rank of nothing passes anything.
            array = kept[:] if turn % 3 else other
            if comm.rank == turn % 2 and turn % 5 == 0 or turn > 12:
                array = np.zeros(len(kept))
            array[:len(own)] = 10 * turn + comm.rank
            exchange.update(array)
            assert array.tolist() == ([] if last else [10 * turn + comm.rank, 10 * turn + 1 - comm.rank])
        released = memoryview(bytearray(8))
        released.release()
        every = np.zeros(2 * len(kept))
        exchange.update(every[:len(kept)])
        apart = every[::2]  # whose address and shape are known
        every[:], apart[:len(own)] = -1, 7 + comm.rank
        exchange.update(apart)
        assert every.tolist() == ([] if last else [7 + comm.rank, -1, 8 - comm.rank, -1])
        for wrong in (np.array(1.0), np.float64(1), {}, np.zeros(3), released):
            with pytest.raises((hostless.UsageError, TypeError, ValueError)):
                exchange.update(wrong if comm.rank == 1 else kept)
        exchange.update(kept)

    hostless.run_threads(3, body)


def test_the_two_forms_are_told_apart():
    plan = hostless.ExchangePlan([0, 1], [1])
    owned, ghosts = np.zeros(2), np.zeros(1)
    with pytest.raises(hostless.UsageError, match="fields of its own"):
        hostless.Exchange(plan, [(owned, ghosts)]).update(owned)
    with pytest.raises(hostless.UsageError, match="beside a plan"):
        hostless.Exchange(plan, [(owned, ghosts)], [1])
    with pytest.raises(TypeError, match="plan is an int"):
        hostless.Exchange(7, [(owned, ghosts)])
    with hostless.Exchange(None, [5, 6], [6]) as exchange:
        with pytest.raises(hostless.UsageError, match="start of an exchange that was made from numbers"):
            exchange.start()
        array = np.array([1.0, 2.0, 0.0])
        exchange.update(array)
        assert array[2] == 2


BESIDE_MPI = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from mpi4py import MPI
import neighbor_worlds, hostless

comm = MPI.COMM_WORLD
neighbor_worlds.check(range(100, 120), comm, comm.rank, comm.size, beside_mpi=True)
exchange = hostless.Exchange(comm, [comm.rank], [(comm.rank + 1) % comm.size])
x = np.array([float(comm.rank), -1.0])
exchange.update(x)
assert x[1] == (comm.rank + 1) % comm.size
exchange.close()
# A communicator's own graph is not read, but has the lists; where a grid ends they have what is no rank.
cart = comm.Create_cart([comm.size], periods=[False])
for sources, destinations, says in ((None, None, "sources=comm.inedges, destinations=comm.outedges"),
                                    (cart.inedges, cart.outedges, "(MPI_PROC_NULL is such a number: nobody is there). Leave it out.")):
    try:
        hostless.Neighborhood(cart, sources, destinations)
        raise SystemExit("accepted: " + says)
    except (TypeError, hostless.UsageError) as problem:
        assert says in str(problem), problem
beside = [rank for rank in cart.inedges if rank != MPI.PROC_NULL]
with hostless.Neighborhood(cart, beside, beside) as neighbours:
    got = np.zeros(len(beside))
    neighbours.allgather(np.array([float(cart.rank)]), got).exchange()
    assert got.tolist() == beside
cart.Free()
comm.Barrier()
if comm.rank == 0:
    print("all good")
"""


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_beside_mpi(vendor, tmp_path):
    script = BESIDE_MPI.format(folder=str(pathlib.Path(__file__).resolve().parent))
    check_all_good(vendor, 3, script, tmp_path)

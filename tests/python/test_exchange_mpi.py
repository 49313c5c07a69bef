"""Exchanges between the processes of an mpi4py communicator."""

import pathlib

import pytest

import hostless
from test_mpi import check_all_good, run, runs_with

#: What the scripts begin with: a ring of four items a rank.
START = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).resolve().parent)!r})
""" + """
import gc, os, signal, threading, time
import numpy as np
from mpi4py import MPI
import exchange_worlds, hostless

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def ring(**how):
    return exchange_worlds.ring(comm, **how)


def pair():
    return np.full(4, float(rank)), np.zeros(2)
"""

#: The last rank is taken by an exception from what all have made, where no exchange is on its way: the others are told long
#: before the minute that the end of ranks waits for those which come late, whatever they ask for next.
ONE_IS_TAKEN = START + """
import scipy.sparse

eye = scipy.sparse.identity(4, format="csr")


def taken(make, go_on):
    comm.Barrier()
    began = time.monotonic()
    try:
        with make() as made:
            if rank == size - 1:
                raise ZeroDivisionError("mine")
            go_on(made)
        sys.exit(f"nobody was missed by {made}")
    except ZeroDivisionError:
        assert rank == size - 1
    except hostless.PeerLostError:
        assert rank != size - 1
    assert time.monotonic() - began < 30, time.monotonic() - began


def fill(plan):
    hostless.Exchange(plan, [pair()]).exchange()


def after_one(plan):
    with hostless.Exchange(plan, [pair()], limit=600) as exchange:
        exchange.exchange()
    fill(plan)


def rows():
    return hostless.Matrix(scipy.sparse.hstack([eye if r == rank else 0 * eye for r in range(size)]).tocsr(), comm=comm,
                           row_range=(4 * rank, 4 * rank + 4))


def receive(ranks):
    hostless.match([ranks.recv_init(np.zeros(1), size - 1)])


taken(ring, fill)
taken(ring, after_one)
taken(lambda: hostless.Exchange(comm, [rank], [(rank + 1) % size]), lambda exchange: exchange.update(np.zeros(2)))
taken(rows, lambda matrix: matrix.solve(np.ones(4)))
taken(lambda: hostless.Communicator(comm), receive)
print(f"rank {rank} is content", flush=True)
comm.Barrier()  # mpirun ends the others as soon as one has ended without MPI_Finalize
os._exit(0)
"""

#: Two and two ranks are played to be nodes: messages go both ways.
BY_REACH = START + """
from exchange_worlds import World, check_fill, check_sum

os.environ["HOSTLESS_COMPOSITE_RANKS_PER_NODE"] = "2"
for seed in range(8):
    world = World(seed, size)
    world.how["transport"] = "composite"
    check_fill(world, comm, rank)
    world.around = world.how["around"] = False
    check_sum(world, comm, rank)
name = f"{sys.argv[0]}.plan"
with ring(transport="composite") as plan:
    plan.save(name)
comm.Barrier()
with hostless.ExchangePlan.load(name, comm=comm, transport="composite") as plan:
    hostless.Exchange(plan, [pair()]).exchange()
with hostless.Neighborhood(comm, [(rank - 1) % size], [(rank + 1) % size], transport="composite") as graph:
    sent, received = np.array([float(rank)]), np.zeros((1, 1))
    graph.allgather(sent, received).exchange()
    assert received[0, 0] == (rank - 1) % size
exchange = hostless.Exchange(comm, [rank], [(rank + 1) % size], transport="composite")
x = np.array([float(rank), -1.0])
exchange.update(x)
exchange.close()
assert x[1] == (rank + 1) % size

# What transport is said reaches the ranks: it is everybody's, and a word that is none is told to all.
makes = [lambda how: ring(transport=how), lambda how: hostless.ExchangePlan.load(name, comm=comm, transport=how),
         lambda how: hostless.ExchangePlan.from_lists(0, {}, {}, comm=comm, transport=how),
         lambda how: hostless.Exchange(comm, [rank], [], transport=how),
         lambda how: hostless.Neighborhood(comm, [], [], transport=how)]
for make in makes:
    for other, text in (("mpi", f"transport='composite' on {size - 1} of {size} processes"), ("smoke", "transport='")):
        try:
            make(other if rank == 0 else "composite")
            sys.exit(f"accepted, not {text}")
        except hostless.UsageError as problem:
            assert text in str(problem), problem
    try:
        make("smoke" if rank == 0 else None)
        sys.exit("accepted")
    except hostless.Error as problem:
        assert "transport='smoke'" in str(problem), problem
comm.Barrier()
if rank == 0:
    print("all good")
"""

GOOD = START + """
from exchange_worlds import check

check(range(20), comm, rank, size)
with ring(around=True) as plan:
    whole = np.zeros(6)
    whole[plan.first_owned:plan.first_owned + 4] = rank
    with hostless.Exchange(plan, [whole]) as exchange:
        exchange.exchange()
    assert sorted(np.delete(whole, np.arange(plan.first_owned, plan.first_owned + 4))) == sorted([(rank - 1) % size, (rank + 1) % size])
    name = f"{sys.argv[0]}.plan"
    plan.save(name)
with hostless.ExchangePlan.load(name, comm=comm) as plan:
    assert plan.around and plan.ranks == size
    hostless.Exchange(plan, [whole]).exchange()

# Some ranks of a communicator, while the others do something else.
half = comm.Split(rank % 2)
with hostless.ExchangePlan([half.rank], [(half.rank + 1) % half.size], comm=half) as plan:
    owned, ghosts = np.array([half.rank]), np.array([-1])
    hostless.Exchange(plan, [(owned, ghosts)]).exchange()
    assert ghosts[0] == (half.rank + 1) % half.size
half.Free()
comm.Barrier()
if rank == 0:
    print("all good")
"""

#: The last rank does something wrong where all the others do not: nobody waits for it.
ONE_IS_WRONG = START + """
wrong = rank == size - 1


def refused(call, kind, text):
    try:
        call()
    except Exception as problem:
        expected = kind if wrong else hostless.Error
        if not isinstance(problem, expected) or text not in str(problem) or (not wrong and f"rank {size - 1}" not in str(problem)):
            sys.exit(f"rank {rank}: {type(problem).__name__}: {problem}")
    else:
        sys.exit(f"rank {rank}: accepted, not {text}")


refused(lambda: hostless.ExchangePlan([0.5] if wrong else [rank], [], comm=comm), TypeError, "float64")
refused(lambda: ring(route="teleport" if wrong else "auto"), hostless.UsageError, "teleport")
refused(lambda: ring(route="direct" if wrong else "two_step"), hostless.UsageError, "two_step")
refused(lambda: hostless.ExchangePlan([rank], [99] if wrong else [], comm=comm), hostless.UsageError, "no rank owns")
plan = ring()
refused(lambda: hostless.Exchange(plan, [(np.zeros(4), np.zeros(3 if wrong else 2))]), hostless.UsageError, "(3,)")
refused(lambda: hostless.Exchange(plan, [pair(), pair()] if wrong else [pair()]), hostless.UsageError, "2 fields")
refused(lambda: plan.save(3 if wrong else os.devnull), TypeError, "")
exchange = hostless.Exchange(plan, [pair()])
exchange.exchange()  # nothing of that has harmed the ranks
exchange.close()
plan.close()
comm.Barrier()
if rank == 0:
    print("all good")
"""

#: The last rank leaves by an exception: the others are told, soon.
ONE_RAISES = START + """
began = time.monotonic()
try:
    with ring() as plan:
        exchange = hostless.Exchange(plan, [pair()], limit=600)
        exchange.exchange()
        if rank == size - 1:
            raise ZeroDivisionError("mine")
        exchange.start()
        exchange.wait()
        exchange.exchange()
except ZeroDivisionError:
    assert rank == size - 1
except hostless.PeerLostError:
    assert rank != size - 1 and exchange.lost
assert time.monotonic() - began < 240, time.monotonic() - began
print(f"rank {rank} is content", flush=True)
comm.Barrier()  # mpirun ends the others as soon as one has ended without MPI_Finalize
os._exit(0)
"""

#: Ctrl-C while rank 0 waits: the exchange can be waited for again. And one that is dropped on its way.
INTERRUPTED = START + """
plan = ring()
owned, ghosts = pair()
exchange = hostless.Exchange(plan, [(owned, ghosts)], limit=600)
if rank == 0:
    exchange.start()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        exchange.wait()
        sys.exit("nobody interrupted")
    except KeyboardInterrupt:
        pass
    timer.join()
    comm.Send(np.zeros(1), dest=1)
    exchange.wait()
else:
    if rank == 1:
        comm.Recv(np.zeros(1), source=0)
    exchange.exchange()
assert sorted(ghosts) == sorted([(rank - 1) % size, (rank + 1) % size])
exchange.exchange()

comm.Barrier()
began = time.monotonic()
if rank == 1:
    exchange.start()
    del exchange, owned, ghosts
    gc.collect()
else:
    time.sleep(0.5)  # so that nothing of this exchange has come when rank 1 lets go
    try:
        for _ in range(3):  # what has been sent before may have come
            exchange.exchange()
        sys.exit("nobody was missed")
    except hostless.PeerLostError:
        pass
assert time.monotonic() - began < 240, time.monotonic() - began
print(f"rank {rank} is content", flush=True)
comm.Barrier()  # mpirun ends the others as soon as one has ended without MPI_Finalize
os._exit(0)
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_random_patterns(vendor, ranks, tmp_path):
    check_all_good(vendor, ranks, GOOD, tmp_path)


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_messages_by_reach(vendor, tmp_path):
    check_all_good(vendor, 3, BY_REACH, tmp_path)


@pytest.mark.parametrize("comm", [None, "of threads"])
def test_a_transport_without_processes(comm):
    def refused(of_thread, *_):
        with pytest.raises(hostless.UsageError, match="without a communicator of MPI"):
            hostless.ExchangePlan([of_thread.rank if of_thread else 0], [], comm=of_thread, transport="composite")

    if comm is None:
        refused(None)
    else:
        hostless.run_threads(2, refused)


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
def test_what_one_rank_does_wrong_is_told_to_all(vendor, tmp_path):
    check_all_good(vendor, 3, ONE_IS_WRONG, tmp_path)


@pytest.mark.parametrize("vendor", ["openmpi", "mpich"])
@pytest.mark.parametrize("what", ["ONE_RAISES", "ONE_IS_TAKEN", "INTERRUPTED"])
def test_ranks_that_go(vendor, what, tmp_path):
    """MPI is given up after a loss, so mpirun may complain: each rank says that it saw what it should."""
    if (missing := runs_with(vendor, tmp_path)) is not None:
        pytest.skip(missing)
    ran = run(f"mpirun.{vendor}", 2, globals()[what], tmp_path, vendor)
    assert all(f"rank {rank} is content" in ran.stdout for rank in range(2)), ran.stdout + ran.stderr

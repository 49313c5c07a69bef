"""Programs of queues made up at random, and what must come of them: every rank makes the same one from its seed."""

import numpy as np
import pytest

import hostless

KINDS = [("u1", ()), ("f4", (3,)), ("f8", ()), ("c16", (2,)), ("i2", (5,)), ("i8", (2, 2))]


class World:
    def __init__(self, seed, ranks):
        random = np.random.default_rng((seed, ranks))
        self.seed, self.ranks = seed, ranks
        self.steps = int(random.integers(1, 6))
        self.messages = []  # (from, to, tag, type, shape, items, items of the receiver's array, ready)
        for _ in range(random.integers(0, 9)):
            kind, shape = KINDS[random.integers(len(KINDS))]
            items = int(random.choice([0, 1, 7, 3000]))
            self.messages.append((int(random.integers(ranks)), int(random.integers(ranks)), int(random.integers(3)), kind, shape, items,
                                  items + int(random.integers(2)) * 5))
        self.reduces = [(str(random.choice(["f4", "f8", "i4", "i8", "u1"])), str(random.choice(["sum", "product", "minimum", "maximum"])),
                         int(random.integers(0, 40)), bool(random.integers(2))) for _ in range(random.integers(0, 3))]
        self.roots = [int(root) for root in random.integers(0, ranks, random.integers(0, 3))]

    def values(self, dtype, shape, *key):
        return np.random.default_rng((self.seed, *key)).integers(1, 100, shape).astype(dtype)

    def sent(self, number, step):
        _, _, _, kind, shape, items, _ = self.messages[number]
        return self.values(kind, (items, *shape), 1, number, step)

    def reduced(self, number, step):
        kind, operation, count, _ = self.reduces[number]
        all_of_them = [self.values(kind, count, 2, number, step, rank) for rank in range(self.ranks)]
        join = {"sum": np.add, "product": np.multiply, "minimum": np.minimum, "maximum": np.maximum}[operation]
        total = all_of_them[0]
        for one in all_of_them[1:]:
            total = join(total, one)
        return total


def check(world, communicator, queue, make=np.zeros):
    """All steps are enqueued before the first one is waited for; functions fill the arrays and look at what has come."""
    me, seen = communicator.rank, []
    sends, receives, reduces, roots = [], [], [], []
    for number, (of, to, tag, kind, shape, items, room) in enumerate(world.messages):
        if of == me:
            array = make((items, *shape), kind)
            sends.append((communicator.send_init(array, to, tag), array, number))
        if to == me:
            array = make((room, *shape), kind)
            receives.append((communicator.recv_init(array, of, tag), array, number))
    for number, (kind, operation, count, in_place) in enumerate(world.reduces):
        out = make((count,), kind)
        into = out if in_place else make((count,), kind)
        reduces.append((communicator.all_reduce_init(out, None if in_place else into, operation), out, into, number))
    for number, root in enumerate(world.roots):
        array = make((11,), "f4")
        roots.append((communicator.broadcast_init(array, root), array, number, root))
    barrier = communicator.barrier_init()
    everything = [one[0] for one in (*sends, *receives, *reduces, *roots)] + [barrier]
    hostless.match(everything)
    assert all(request.is_matched for request in everything)

    def fill(step):
        for _, array, number in sends:
            array[...] = world.sent(number, step)
        for _, out, _, number in reduces:
            kind, _, count, _ = world.reduces[number]
            out[...] = world.values(kind, count, 2, number, step, me)
        for _, array, number, root in roots:
            array[...] = world.values("f4", 11, 3, number, step) if root == me else -1

    def look(step):
        for request, array, number in receives:
            assert array[:world.messages[number][5]].tobytes() == world.sent(number, step).tobytes(), (world.seed, step, number)
        for _, _, into, number in reduces:
            assert into.tobytes() == world.reduced(number, step).tobytes(), (world.seed, step, world.reduces[number])
        for _, array, number, _ in roots:
            assert array.tobytes() == world.values("f4", 11, 3, number, step).tobytes(), (world.seed, step, number)
        seen.append(step)

    for step in range(world.steps):
        queue.enqueue_function(fill, step)
        if step % 3 == 0:
            queue.enqueue_start_and_wait(everything)
        elif step % 3 == 1:
            queue.enqueue_start(everything[:3])
            queue.enqueue_start_and_wait(everything[3:], everything)
        else:
            queue.enqueue_start(everything)
            queue.enqueue_wait(everything if step % 2 else None)
        queue.enqueue_function(look, step)
    queue.wait()
    assert seen == list(range(world.steps)) and queue.is_idle and queue.test()
    for some, end in ((sends, 1), (receives, 0)):
        for request, _, number in some:
            message = world.messages[number]
            sent = world.sent(number, 0).nbytes
            assert request.status == (message[end], message[2], sent, world.steps, False)
    for request in everything:
        request.free()


def pair(body):
    """body(communicator, rank, queue) on two ranks."""
    def on_rank(comm):
        with hostless.Communicator(comm) as ranks, hostless.Queue(limit=30) as queue:
            return body(ranks, comm.rank, queue)

    return hostless.run_threads(2, on_rank)


def both(ranks, rank, count=4, kind="f8"):
    """A send to the other of two ranks and a receive from it, matched, with their arrays."""
    out, into = np.zeros(count, kind), np.zeros(count, kind)
    send, receive = ranks.send_init(out, 1 - rank, 3), ranks.recv_init(into, 1 - rank, 3)
    hostless.match([send, receive])
    return send, receive, out, into


def refused(why, act, *parts):
    with pytest.raises(hostless.QueueError) as told:
        act()
    assert told.value.why == why and all(part in str(told.value) for part in parts), (told.value.why, str(told.value))
    assert isinstance(told.value, hostless.UsageError)

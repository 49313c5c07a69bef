"""Patterns made up at random, and what an exchange of them must bring: NumPy's indexing says it, which knows nothing of ranks.

Every rank makes the same world from its seed, so that it can look at all by itself.
"""

import numpy as np

import hostless

#: (type, shape) of items of 1 to 64 bytes.
ITEMS = [("u1", ()), ("?", ()), ("i2", (3,)), ("S5", ()), ("V7", ()), ("f4", (3,)), ("f8", ()), ("c16", ()), ("u1", (5, 7)),
         ("i8", (2, 2)), ("f8", (2, 4)), ("V24", ())]
#: What can be added.
ELEMENTS = [("f4", ()), ("f8", (3,)), ("i4", ()), ("i8", (2,)), ("u4", ()), ("u8", ()), ("f8", ())]
ROUTES = ("direct", "two_step", "three_step", "split", "leader", "auto")


def ring(comm, **how):
    """Each rank owns four items and reads the nearest one of each neighbour."""
    first, every = 4 * comm.rank, 4 * comm.size
    return hostless.ExchangePlan(range(first, first + 4), [(first - 1) % every, (first + 4) % every], comm=comm, **how)


def pair():
    return np.zeros(4), np.zeros(2)


class World:
    """Who owns and who reads what, on so many ranks."""

    def __init__(self, seed, ranks):
        self.seed, self.ranks = seed, ranks
        random = np.random.default_rng((seed, ranks))
        counts = random.integers(0, 13, ranks)
        numbers = random.permutation(int(3 * counts.sum()) + 1)  # with gaps
        cuts = np.concatenate([[0], np.cumsum(counts)])
        self.owned = [numbers[first:last] for first, last in zip(cuts, cuts[1:])]
        everything = np.concatenate(self.owned)
        self.ghosts = [random.permutation(everything)[:random.integers(0, min(20, len(everything)) + 1)] for _ in range(ranks)]
        self.numbers = len(numbers)
        self.around = bool(random.integers(2))
        self.how = dict(route=ROUTES[random.integers(len(ROUTES))], ranks_per_node=int(random.integers(0, 3)), around=self.around)
        self.as_lists = bool(random.integers(2))
        self.items = [ITEMS[k] for k in random.integers(0, len(ITEMS), random.integers(1, 6))]
        self.elements = [ELEMENTS[k] for k in random.integers(0, len(ELEMENTS), random.integers(1, 4))]

    def plan(self, comm, rank):
        if not self.as_lists:
            return hostless.ExchangePlan(self.owned[rank], self.ghosts[rank], comm=comm, **self.how)
        return hostless.ExchangePlan.from_lists(len(self.owned[rank]), *self.lists(rank), comm=comm, **self.how)

    def lists(self, rank):
        """What the rank sends to and receives from each, by items of its own."""
        send, receive = {}, {}
        for other in range(self.ranks):
            mine = {number: item for item, number in enumerate(self.owned[rank])}
            send[other] = [mine[number] for number in self.ghosts[other] if number in mine]
            theirs = set(self.owned[other])
            receive[other] = [ghost for ghost, number in enumerate(self.ghosts[rank]) if number in theirs]
        return send, receive

    def table(self, kind, shape, *key):
        """(numbers, *shape) of a type: any bytes, of all items by their numbers; equal on all ranks."""
        dtype = np.dtype(kind)
        random = np.random.default_rng((self.seed, self.ranks, *key))
        if dtype.kind == "?":
            return random.integers(0, 2, (self.numbers, *shape)).astype(dtype)
        raw = random.integers(0, 256, (self.numbers, int(np.prod(shape)) * dtype.itemsize), dtype=np.uint8)
        return raw.view(dtype).reshape(self.numbers, *shape)

    def numbers_to_add(self, kind, shape, *key):
        """Of moderate size, so that sums are finite and depend on their order; integers wrap around."""
        dtype = np.dtype(kind)
        if dtype.kind in "iu":
            return self.table(kind, shape, *key)
        return np.random.default_rng((self.seed, self.ranks, *key)).standard_normal((self.numbers, *shape)).astype(dtype)


class Arrays:
    """One field of one rank: two arrays, or one with ghosts around. make, put, look: of the package of the arrays."""

    def __init__(self, plan, kind, shape, make, put, look):
        self.plan, self.put, self.look = plan, put, look
        dtype = np.dtype(kind)
        if plan.around:
            self.whole = make((plan.owned + plan.ghosts, *shape), dtype)
            self.field = self.whole
        else:
            self.field = (make((plan.owned, *shape), dtype), make((plan.ghosts, *shape), dtype))

    def parts(self, whole):
        """(owned, ghosts as they were named) of a whole array."""
        first = self.plan.first_owned
        ghosts = np.concatenate([whole[:first], whole[first + self.plan.owned:]])
        named = np.empty_like(ghosts)
        named[self.plan.order] = ghosts
        return whole[first:first + self.plan.owned], named

    def set(self, owned, ghosts):
        if not self.plan.around:
            self.put(self.field[0], owned)
            self.put(self.field[1], ghosts)
            return
        first = self.plan.first_owned
        lying = ghosts[self.plan.order]
        self.put(self.whole, np.concatenate([lying[:first], owned, lying[first:]]))

    def get(self):
        if self.plan.around:
            return self.parts(self.look(self.whole))
        return self.look(self.field[0]), self.look(self.field[1])


def put_numpy(array, values):
    array[...] = values


NUMPY = (lambda shape, dtype: np.zeros(shape, dtype), put_numpy, np.copy)


def same(one, other):
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def nothing():
    pass


def check_fill(world, comm, rank, package=NUMPY, settle=nothing, **how):
    """Every byte of every ghost in three exchanges, by each way of starting and ending them.

    settle: called between the exchanges and what allocates and frees memory before and after them.
    """
    plan = world.plan(comm, rank)
    assert (plan.rank, plan.ranks) == (rank, world.ranks)
    assert (plan.owned, plan.ghosts) == (len(world.owned[rank]), len(world.ghosts[rank]))
    fields = [Arrays(plan, kind, shape, *package) for kind, shape in world.items]
    exchange = hostless.Exchange(plan, [field.field for field in fields], **how)
    settle()
    for epoch in range(3):
        tables = [world.table(kind, shape, number, epoch) for number, (kind, shape) in enumerate(world.items)]
        for field, table in zip(fields, tables):
            ghosts = table[world.ghosts[rank]]
            field.set(table[world.owned[rank]], np.zeros_like(ghosts))
        if epoch == 0:
            exchange.exchange()
        else:
            exchange.start()
            exchange.finish()
        if epoch == 2:
            while not exchange.test():
                pass
        exchange.wait()
        for number, (field, table) in enumerate(zip(fields, tables)):
            owned, ghosts = field.get()
            assert same(ghosts, table[world.ghosts[rank]]), f"seed {world.seed}: ghosts of field {number} in exchange {epoch}"
            assert same(owned, table[world.owned[rank]]), f"seed {world.seed}: owned items of field {number} were changed"
    settle()
    exchange.close()


def check_sum(world, comm, rank, package=NUMPY, settle=nothing, **how):
    """Bits of sums in the order of ranks, in two exchanges on top of each other. settle: as above."""
    plan = world.plan(comm, rank)
    fields = [Arrays(plan, kind, shape, *package) for kind, shape in world.elements]
    exchange = hostless.ReverseExchange(plan, [field.field for field in fields], **how)
    tables = [world.numbers_to_add(kind, shape, 100 + number) for number, (kind, shape) in enumerate(world.elements)]
    settle()
    for epoch in range(2):
        given = [[world.numbers_to_add(kind, shape, 200 + number, epoch, other) for other in range(world.ranks)]
                 for number, (kind, shape) in enumerate(world.elements)]
        for field, table, of_ranks in zip(fields, tables, given):
            field.set(table[world.owned[rank]], of_ranks[rank][world.ghosts[rank]])
        exchange.start()
        exchange.finish()
        exchange.wait()
        for number, (field, table, of_ranks) in enumerate(zip(fields, tables, given)):
            for other in range(world.ranks):
                readers = world.ghosts[other]
                table[readers] += of_ranks[other][readers]
            owned, ghosts = field.get()
            assert same(owned, table[world.owned[rank]]), f"seed {world.seed}: sums of field {number} in exchange {epoch}"
            assert same(ghosts, of_ranks[rank][world.ghosts[rank]]), f"seed {world.seed}: ghosts of field {number} were changed"
    settle()
    exchange.close()


def check(seeds, comm, rank, ranks, package=NUMPY, adds_around=True, numbers_alone=False, **how):
    """adds_around: what lies around owned items can be added. numbers_alone: the package has neither text nor raw bytes."""
    for seed in seeds:
        world = World(seed, ranks)
        if numbers_alone:
            world.items = [(kind, shape) if np.dtype(kind).kind not in "SV" else ("u1", (np.dtype(kind).itemsize,))
                           for kind, shape in world.items]
        check_fill(world, comm, rank, package, **how)
        world.around = world.how["around"] = world.around and adds_around
        check_sum(world, comm, rank, package, **how)

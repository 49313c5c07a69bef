"""Collectives between neighbours made up at random, and what must come of them: copied from what the sender has, block by block.

Every rank makes the same graph from its seed, so that it can look at all by itself.
"""

import numpy as np

import hostless

CALLS = ("allgather", "allgatherv", "alltoall", "alltoallv")
ITEMS = [("u1", ()), ("i2", (3,)), ("f4", ()), ("f8", ()), ("f8", (4,)), ("c16", (2, 2))]


class Graph:
    def __init__(self, seed, ranks):
        self.seed, self.ranks = seed, ranks
        random = self.random = np.random.default_rng((seed, ranks))
        self.call = CALLS[random.integers(4)]
        self.how = dict(route=("direct", "two_step", "three_step", "split", "leader", "auto")[random.integers(6)], ranks_per_node=int(random.integers(0, 3)))
        self.kind, self.shape = ITEMS[random.integers(len(ITEMS))]
        times = random.choice([0, 0, 1, 1, 2], (ranks, ranks))  # source, destination
        self.destinations = [[int(to) for to in random.permutation(np.repeat(np.arange(ranks), times[rank]))] for rank in range(ranks)]
        self.sources = [[int(of) for of in random.permutation(np.repeat(np.arange(ranks), times[:, rank]))] for rank in range(ranks)]
        equal = self.call in ("allgather", "alltoall")
        count = int(random.integers(0, 6))
        draw = lambda blocks: [count] * blocks if equal else [int(n) for n in random.integers(0, 6, blocks)]  # noqa: E731
        self.gathers = self.call.startswith("allgather")
        self.sent = [draw(1) * max(len(to), 1) if self.gathers else draw(len(to)) for to in self.destinations]
        self.received = [[self.sent[of][self.edge(rank, k)] for k, of in enumerate(self.sources[rank])] for rank in range(ranks)]
        self.is_dense = equal or bool(random.integers(2))
        self.sent_from = [[0] * len(counts) if self.gathers else self.lie(counts) for counts in self.sent]
        self.received_to = [self.lie(counts) for counts in self.received]

    def lie(self, counts):
        """Where blocks begin."""
        gaps = np.zeros(len(counts), int) if self.is_dense else self.random.integers(0, 3, len(counts))
        return [int(n) for n in np.cumsum(gaps) + np.cumsum([0, *counts])[:len(counts)]]

    def edge(self, rank, k):
        """Which of the blocks of its source block k of a rank is."""
        of = self.sources[rank][k]
        repeat = self.sources[rank][:k].count(of)
        return [e for e, to in enumerate(self.destinations[of]) if to == rank][repeat]

    def items(self, counts, first):
        if self.gathers and first == [0] * len(counts) and counts:
            return counts[0]
        return max((a + n for n, a in zip(counts, first)), default=0)

    def array(self, rank, epoch):
        """What a rank sends: any bytes."""
        items = self.items(self.sent[rank], self.sent_from[rank])
        dtype = np.dtype(self.kind)
        raw = np.random.default_rng((self.seed, rank, epoch)).integers(0, 100, (items, *self.shape))
        return raw.astype(dtype)

    def room(self, rank):
        items = max((a + n for n, a in zip(self.received[rank], self.received_to[rank])), default=0)
        return np.full((items, *self.shape), 77, self.kind)

    def expected(self, rank, epoch):
        array = self.room(rank)
        for k, of in enumerate(self.sources[rank]):
            to, first, count = self.received_to[rank][k], self.sent_from[of][self.edge(rank, k)], self.received[rank][k]
            array[to:to + count] = self.array(of, epoch)[first:first + count]
        return array

    def collective(self, neighbours, rank, send, receive, make=np.zeros, **how):
        """With the arrays as this call wants them."""
        if self.call in ("allgather", "alltoall"):
            count = self.sent[rank][0] if self.sent[rank] else 0
            parts = receive.reshape(len(self.sources[rank]), -1) if receive.size else make((len(self.sources[rank]), 0), self.kind)
            if self.call == "allgather":
                return neighbours.allgather(send, parts, **how)
            blocks = len(self.destinations[rank])
            return neighbours.alltoall(send.reshape(blocks, count * send[:1].size if blocks and count else 0), parts, **how)
        where = {} if self.is_dense else {"receive_displacements": self.received_to[rank]}
        if self.call == "allgatherv":
            return neighbours.allgatherv(send, receive, self.received[rank], where.get("receive_displacements"), **how)
        if where:
            where["send_displacements"] = self.sent_from[rank]
        return neighbours.alltoallv(send, self.sent[rank], receive, self.received[rank], **where, **how)

    def by_mpi(self, comm, rank, send):
        """What MPI makes of it, in bytes; its v-variants say everything."""
        size = np.dtype(self.kind).itemsize * int(np.prod(self.shape))
        graph = comm.Create_dist_graph_adjacent(self.sources[rank], self.destinations[rank])
        room = self.room(rank)
        mine, theirs = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (send, room))
        into = (theirs, ([n * size for n in self.received[rank]], [a * size for a in self.received_to[rank]]), _byte())
        if self.gathers:
            graph.Neighbor_allgatherv((mine, _byte()), into)
        else:
            graph.Neighbor_alltoallv((mine, ([n * size for n in self.sent[rank]], [a * size for a in self.sent_from[rank]]), _byte()), into)
        graph.Free()
        return room


def _byte():
    from mpi4py import MPI

    return MPI.BYTE


def check(seeds, comm, rank, ranks, beside_mpi=False):
    for seed in seeds:
        graph = Graph(seed, ranks)
        send, receive = graph.array(rank, 0), graph.room(rank)
        with hostless.Neighborhood(comm, graph.sources[rank], graph.destinations[rank], **graph.how) as neighbours:
            collective = graph.collective(neighbours, rank, send, receive)
            for epoch in range(2):
                send[...] = graph.array(rank, epoch)
                collective.exchange()
                said = f"{graph.call} {seed} on rank {rank} of {ranks}"
                assert receive.tobytes() == graph.expected(rank, epoch).tobytes(), said
                if beside_mpi:
                    assert receive.tobytes() == graph.by_mpi(comm, rank, send).tobytes(), f"{said}, beside MPI"

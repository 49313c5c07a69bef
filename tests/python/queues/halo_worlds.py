"""Grids made up at random, what all ranks have of them after some steps, and a queue that does the same: every rank makes the same
grid from its seed."""

import itertools

import numpy as np

import hostless

#: Types of a cell that can be scattered, with the shape of its values, and those that are gathered alone.
ADDED = [("f4", ()), ("f8", (2,)), ("i4", (3,)), ("i8", ()), ("u4", ())]
GATHERED = [*ADDED, ("u1", ()), ("c16", ()), ("f2", (3,)), ("?", (5,)), ([("a", "f4"), ("b", "i2")], (2,))]


class Grid:
    """ranks  along each axis; it and what else is None is drawn"""

    def __init__(self, seed, size, *, ranks=None, width=None, periodic=None, ready=None, adds=None, kinds=None):
        draw = np.random.default_rng((seed, size))
        self.seed, self.size = seed, size
        self.ranks = ranks or self._cut(size, int(draw.integers(2, 4)), draw)
        self.axes = len(self.ranks)
        self.width = width or int(draw.integers(1, 4))
        self.periodic = tuple(bool(one) for one in draw.integers(0, 2, self.axes)) if periodic is None else periodic
        self.reach = str(draw.choice(["box", "box", "star"]))
        self.ready = bool(draw.integers(2)) if ready is None else ready
        self.adds = bool(draw.integers(2)) if adds is None else adds
        # Boxes of different sizes, by axis and place on it.
        self.sizes = [[self.width + int(more) for more in draw.integers(0, 4, along)] for along in self.ranks]
        some = ADDED if self.adds else GATHERED
        self.kinds = kinds or [some[k] for k in draw.integers(0, len(some), int(draw.integers(1, 4)))]
        self.gaps = [bool(one) for one in draw.integers(0, 2, len(self.kinds))]
        # (it scatters, which of two arrays a field, it ends a run)
        self.steps = [(self.adds and bool(draw.integers(2)), int(draw.integers(2)), bool(draw.integers(3) == 0))
                      for _ in range(int(draw.integers(1, 6)))]
        self.steps[-1] = (*self.steps[-1][:2], True)

    @staticmethod
    def _cut(size, axes, draw):
        along, prime = [1] * axes, 2
        while size > 1:
            if size % prime:
                prime += 1
                continue
            along[draw.integers(axes)] *= prime
            size //= prime
        return tuple(along)

    def place(self, rank):
        return np.unravel_index(rank, self.ranks)  # the last axis is that of neighbouring ranks

    def box(self, rank):
        return tuple(self.sizes[axis][at] for axis, at in enumerate(self.place(rank)))

    def shape(self, rank):
        return tuple(cells + 2 * self.width for cells in self.box(rank))

    def slices(self, rank, halo):
        """Where its box is in the whole grid, with a halo around both or without."""
        firsts = [sum(self.sizes[axis][:at]) for axis, at in enumerate(self.place(rank))]
        return tuple(slice(first, first + cells + 2 * halo) for first, cells in zip(firsts, self.box(rank)))

    @property
    def own(self):
        return (slice(self.width, -self.width),) * self.axes

    def values(self, field, rank, *key):
        """Of all cells of a rank, its halo's too."""
        kind, cell = self.kinds[field]
        draw, dtype, shape = np.random.default_rng((self.seed, field, rank, *key)), np.dtype(kind), (*self.shape(rank), *cell)
        if dtype.names or dtype.kind not in "fiu":  # bytes that are 0 or 1 are values of any type
            count = int(np.prod(shape)) * dtype.itemsize
            return np.frombuffer(draw.integers(0, 2, count, np.uint8).tobytes(), dtype).reshape(shape).copy()
        if dtype.kind == "f":  # whose sum depends on the order
            return (draw.standard_normal(shape) * 10.0 ** draw.integers(-4, 4, shape)).astype(dtype)
        return draw.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)

    # ---- what must come of it

    def gathered(self, arrays):
        """By the whole grid, around which its other end lies, or nothing."""
        whole = np.zeros((*(sum(sizes) for sizes in self.sizes), *arrays[0].shape[self.axes:]), arrays[0].dtype)
        for rank, array in enumerate(arrays):
            whole[self.slices(rank, 0)] = array[self.own]
        there = np.ones(whole.shape[:self.axes], bool)
        for axis, joined in enumerate(self.periodic):
            cells = np.arange(-self.width, whole.shape[axis] + self.width)
            inside = joined | ((cells >= 0) & (cells < whole.shape[axis]))
            there = np.take(there, cells % whole.shape[axis], axis) & np.expand_dims(inside, [a for a in range(self.axes) if a != axis])
            whole = np.take(whole, cells % whole.shape[axis], axis)
        for rank, array in enumerate(arrays):
            here = self.slices(rank, self.width)
            comes = there[here] & self._is_halo(rank)
            array[comes] = whole[here][comes]

    def _is_halo(self, rank):
        outside = [np.ones(cells + 2 * self.width, int) for cells in self.box(rank)]
        for one in outside:
            one[self.width:-self.width] = 0
        crossed = sum(np.ix_(*outside)[axis] for axis in range(self.axes))
        return crossed == 1 if self.reach == "star" else crossed > 0

    def scattered(self, arrays):
        """By the borders of every two neighbours, in the order of the owner's directions."""
        before = [array.copy() for array in arrays]
        for rank, way in itertools.product(range(self.size), itertools.product((-1, 0, 1), repeat=self.axes)):
            other = self._neighbour(rank, way)
            if other is None:
                continue
            with np.errstate(over="ignore"):
                arrays[rank][self._part(rank, way, 0)] += before[other][self._part(other, tuple(-one for one in way), self.width)]
        for rank, way in itertools.product(range(self.size), itertools.product((-1, 0, 1), repeat=self.axes)):
            if self._neighbour(rank, way) is not None:
                arrays[rank][self._part(rank, way, self.width)] = 0

    def _neighbour(self, rank, way):
        crossed = sum(one != 0 for one in way)
        to = [at + one for at, one in zip(self.place(rank), way)]
        if crossed == 0 or (crossed > 1 and self.reach == "star"):
            return None
        if any(not 0 <= at < along and not joined for at, along, joined in zip(to, self.ranks, self.periodic)):
            return None
        return int(np.ravel_multi_index(tuple(at % along for at, along in zip(to, self.ranks)), self.ranks))

    def _part(self, rank, way, beyond):
        """The cells at a border, or so far beyond it."""
        w = self.width
        return tuple(slice(w, w + cells) if one == 0 else slice(w - beyond, 2 * w - beyond) if one < 0 else
                     slice(cells + beyond, cells + w + beyond) for one, cells in zip(way, self.box(rank)))

    def whole(self):
        """[copy][field][rank]: all arrays after all steps. Before each of them the owned cells of gathers get new values."""
        arrays = [[[self.values(field, rank, copy) for rank in range(self.size)] for field in range(len(self.kinds))] for copy in (0, 1)]
        for number, (scatters, copy, _) in enumerate(self.steps):
            for field, of_ranks in enumerate(arrays[copy]):
                for rank, array in enumerate(of_ranks):
                    self.change(array, number, field, rank)
                (self.scattered if scatters else self.gathered)(of_ranks)
        return arrays

    def change(self, array, number, field, rank):
        """What a function of the queue does before a step: with scatters sums grow step by step instead."""
        if not self.adds:
            array[self.own] = self.values(field, rank, 2, number)[self.own]


def made(grid, rank, make, there=lambda values: values):
    """[copy][field]: an array, and what it is a part of, between whose rows there may be other cells, which are 0.

    there  brings values of NumPy to where the arrays are
    """
    arrays = ([], [])
    for copy, (field, (kind, cell)) in itertools.product((0, 1), enumerate(grid.kinds)):
        shape, gap = grid.shape(rank), int(grid.gaps[field])
        larger = make((*shape[:-1], shape[-1] + 3 * gap, *cell), kind)
        array = _inner(larger, grid, gap)
        array[...] = there(grid.values(field, rank, copy))
        arrays[copy].append((array, larger))
    return arrays


def _inner(larger, grid, gap):
    return larger[(slice(None),) * (grid.axes - 1) + (slice(gap, larger.shape[grid.axes - 1] - 2 * gap),)]


def check(grid, communicator, queue, make=np.zeros, by=lambda enqueue: enqueue()):
    """by: has the steps enqueued that it is given, and done once."""
    rank = communicator.rank
    both = made(grid, rank, make)
    arrays = [[array for array, _ in of_copy] for of_copy in both]

    def change(number, copy):
        for field, array in enumerate(arrays[copy]):
            grid.change(array, number, field, rank)

    def enqueue():
        for number, (scatters, copy, ends_run) in enumerate(grid.steps):
            queue.enqueue_function(change, number, copy)
            step = halo.enqueue_scatter if scatters else halo.enqueue_gather
            try:
                step(queue, arrays[1] if copy else None, ends_run=ends_run)
            except hostless.QueueError as problem:
                if problem.why != "too_many":
                    raise
                queue.wait()  # nothing of it was enqueued: it is enqueued again
                step(queue, arrays[1] if copy else None, ends_run=ends_run)

    with hostless.QueueHalo(communicator, ranks=grid.ranks, fields=arrays[0], width=grid.width, reach=grid.reach, periodic=grid.periodic,
                            ready=grid.ready, tag=grid.seed % 3) as halo:
        by(enqueue)
        queue.wait()
        others = [other for way in itertools.product((-1, 0, 1), repeat=grid.axes) if (other := grid._neighbour(rank, way)) not in (None, rank)]
        assert halo.messages == len(others) and (halo.bytes > 0) == bool(others)
    for copy, right in enumerate(grid.whole()):
        for field, of_ranks in enumerate(right):
            array, larger = both[copy][field]
            assert array.tobytes() == of_ranks[rank].tobytes(), (grid.seed, grid.size, rank, copy, field)
            rest = np.array(larger)
            _inner(rest, grid, int(grid.gaps[field]))[...] = 0
            assert not any(rest.tobytes()), (grid.seed, grid.size, rank, copy, field)

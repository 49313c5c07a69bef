"""Grids and stencils made up at random, and what ranks that each have a box of one make of it: the cells of one rank, to the bit."""

import numpy as np

import hostless
from stencil_oracle import BOUNDARIES, same_bits

WAVE = {1: "2*u - v + c*(u[-1] - 2*u + u[1])", 2: "2*u - v + c*(u[-1,0] + u[1,0] + u[0,-1] + u[0,1] - 4*u)",
        3: "2*u - v + c*(u[-1,0,0] + u[1,0,0] + u[0,-1,0] + u[0,1,0] + u[0,0,-1] + u[0,0,1] - 6*u)"}
BLUR = {1: "0.5*u[-2] + k*u[1]", 2: "0.5*u[-1,-1] + k*u[1,2] - 0.25*u[0,-1]", 3: "0.5*u[-1,-1,0] + k*u[1,0,2] - 0.25*u[0,-1,1]"}


class World:
    """The same on every rank that makes it of one seed."""

    def __init__(self, seed, ranks):
        random = np.random.default_rng((seed, ranks))
        self.axes = int(random.integers(1, 4))
        self.dtype = (np.float32, np.float64)[random.integers(2)]
        self.along = self.some_boxes(random, ranks)
        low = 8 * np.array(self.along)
        self.shape = tuple(int(n) for n in low + random.integers(0, 9, self.axes))
        self.boundary = tuple(BOUNDARIES[k] for k in random.integers(0, 3, self.axes))
        self.given = self.along if random.integers(2) else None
        self.steps = int(random.integers(0, 12))
        self.depth = (None, 1, 2, 3)[random.integers(4)]
        self.is_wave = bool(random.integers(2))
        count = 2 if self.is_wave else 1
        self.whole = [random.random(self.shape).astype(self.dtype) for _ in range(count)]
        self.c = random.random(self.shape) * 0.1
        self.every = int(random.integers(0, 4))

    def some_boxes(self, random, ranks):
        along = [1] * self.axes
        for prime in (2, 3, 5, 7):
            while ranks % prime == 0:
                along[random.integers(self.axes)] *= prime
                ranks //= prime
        return tuple(along)

    def stencil(self, cells=...):
        if self.is_wave:
            return hostless.Stencil({"u": WAVE[self.axes], "v": "u"}, c=self.c[cells])
        return hostless.Stencil(BLUR[self.axes], k=0.3)

    def fields(self, cells=...):
        """Copies whose last axis is not contiguous."""
        return tuple(np.repeat(one[cells], 2, axis=-1)[..., ::2] for one in self.whole)

    def expected(self):
        cells = self.fields()
        result = self.stencil().run(cells, self.steps, boundary=self.boundary, ranks=1, every=self.every)
        return cells, result

    def check(self, comm, **how):
        """Collective."""
        box = self.stencil().box(self.shape, comm, boundary=self.boundary, ranks_along=self.given)
        mine = self.fields(box)
        result = self.stencil(box).run(mine, self.steps, comm=comm, shape=self.shape, boundary=self.boundary, ranks_along=self.given,
                                       depth=self.depth, every=self.every, **how)
        cells, alone = self.expected()
        assert result.status == alone.status and result.steps == alone.steps and result.ranks == comm.size, (result, alone)
        assert result.history == alone.history, (result.history, alone.history)
        for one, whole in zip(mine, cells):
            assert same_bits(one, whole[box]), (self.__dict__, comm.rank, box)
        return box

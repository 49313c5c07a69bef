"""`hostless stencil` under both MPIs: the bits of one step at a time, and a checkpoint that other ranks go on with."""

import unittest

import stencil_oracle as oracle
from hostless_command import launcher_of
from test_stencil import Stencil


class Mpi:
    """Of each MPI; `vendor` is the subclass's."""
    vendor = ""

    def test_ranks_of_mpirun(self):
        words, why = launcher_of(self.vendor, 3)
        if words is None:
            self.skipTest(why)
        for problem, shape in (("gray_scott", (10, 13)), ("wave", (7, 6, 8))):
            values, given = self.give(problem, shape)
            grid = oracle.Grid(problem, shape, ("neumann",) * len(shape), "fp64", values)
            grid.steps(6)
            result = self.stencil(problem, *given, "--boundary", "neumann", "--steps", 6, "--checkpoint", "c",
                                  *self.outputs(2), launcher=words)
            self.assertEqual((result["transport"], result["ranks"]), ("mpi", 3))
            self.expect(grid, shape, "fp64")
            grid.steps(3)
            self.stencil(problem, "--size", ",".join(map(str, shape)), "--boundary", "neumann", "--steps", 9, "--resume", "c",
                         *self.outputs(2))
            self.expect(grid, shape, "fp64")


class OpenMpi(Mpi, Stencil):
    vendor = "openmpi"


class Mpich(Mpi, Stencil):
    vendor = "mpich"


if __name__ == "__main__":
    unittest.main()

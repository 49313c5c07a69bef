"""Matrices that are not symmetric, or not definite, from files: which methods take them, and equal bits over transports and
routes."""

import struct
import unittest
import zipfile

from hostless_command import Command, nearly_symmetric, npy, read_npy

N = 12  # a side of the grid


def convection():
    """{(row, column): value} of upwind differences; every seventh row reads nothing behind it."""
    entries = {}
    for y in range(N):
        for x in range(N):
            i = y * N + x
            entries[i, i] = 7.0
            if y > 0:
                entries[i, i - N] = -3.0
            if x > 0:
                entries[i, i - 1] = -2.0
            if i % 7:
                if x + 1 < N:
                    entries[i, i + 1] = -1.0
                if y + 1 < N:
                    entries[i, i + N] = -1.0
    return entries


def general(entries, rows=N * N):
    lines = [f"{i + 1} {j + 1} {v!r}" for (i, j), v in sorted(entries.items())]
    return "\n".join([f"%%MatrixMarket matrix coordinate real general\n{rows} {rows} {len(lines)}", *lines, ""])


def npy_of(content):
    """The bytes of an array of float64, of int64, or of a word."""
    if isinstance(content, bytes):
        kind, shape, data = f"|S{len(content)}", "()", content
    else:
        whole = all(isinstance(one, int) for one in content)
        kind, shape = "<i8" if whole else "<f8", f"({len(content)},)"
        data = struct.pack(f"<{len(content)}{'q' if whole else 'd'}", *content)
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


class General(Command):
    def setUp(self):
        super().setUp()
        self.write("A.mtx", general(convection()))
        self.x = [((7 * i) % 11) / 11 - 0.4 for i in range(N * N)]
        b = [0.0] * (N * N)
        for (i, j), value in convection().items():
            b[i] += value * self.x[j]
        (self.folder / "b.npy").write_bytes(npy(b))

    def test_the_method_says_what_a_file_may_hold(self):
        for method in ("cg", "single-reduction-cg", "pipelined-cg", "minres"):
            text = self.refused(3, "solve", "A.mtx", "--method", method)
            self.assertRegex(text, r"A\.mtx:\d+: entry \(2, 3\) .* is -?\d.*symmetric")
        result = self.solve("A.mtx", "b.npy", "--method", "bicgstab", "--rtol", "1e-12", "--output", "x.npy")
        self.assertEqual(result["status"], "converged")
        for value, expected in zip(read_npy(self.content("x.npy")), self.x):
            self.assertAlmostEqual(value, expected, delta=1e-10)

    def test_transports_and_routes_have_the_same_bits(self):
        answers = set()
        for transport in ("threads", "processes"):
            for route in ("direct", "two_step", "three_step", "split", "leader"):
                for run in ("host", "persistent", "graph"):
                    result = self.solve("A.mtx", "b.npy", "--method", "bicgstab", "--ranks", 4, "--ranks-per-node", 2, "--transport",
                                        transport, "--route", route, "--run", run, "--output", "x.npy")
                    self.assertEqual(result["status"], "converged")
                    answers.add(self.content("x.npy"))
        self.assertEqual(len(answers), 1)

    def test_convection_lets_residuals_grow_before_they_fall(self):
        side, along, across = 72, 1.05, 0.525  # Péclet numbers of a cell: central differences of diffusion and a wind
        matrix = {(row, row): 4.0 for row in range(side**2)}
        for row in range(side**2):
            for beside, steps, wind, fits in ((-1, side, -along, row >= side), (1, side, along, row < side**2 - side),
                                              (-1, 1, -across, row % side > 0), (1, 1, across, row % side < side - 1)):
                if fits:
                    matrix[row, row + beside * steps] = wind - 1
        self.write("C.mtx", general(matrix, side**2))
        solve = ("C.mtx", "--method", "bicgstab")
        result = self.solve(*solve)
        self.assertEqual(result["status"], "converged")
        self.assertGreater(max(result["residual_history"]), 1e10 * result["residual_history"][0])
        self.assertEqual(result["settings"]["divergence_limit"], "1e+16")
        low = self.solve(*solve, "--divergence-limit", 1e10, code=1)
        self.assertEqual((low["status"], low["settings"]["divergence_limit"]), ("diverged", "10000000000"))
        for told in (low, self.solve(*solve, "--max-iterations", 9, code=1)):
            self.assertIn("Where convection is strong there is no GMRES or ILU here: upwind it", told["message"])
        definite = self.solve("--generate", "poisson2d", "--size", 9, "--max-iterations", 3, code=1)
        self.assertEqual(definite["settings"]["divergence_limit"], "10000000000")
        self.assertNotIn("convection", definite["message"])

    def test_info_and_plan_take_it(self):
        self.assertRegex(self.json_of("info", "A.mtx")["symmetry"], r"none: entry \(2, 3\)")
        self.run_it("plan", "A.mtx", "--ranks", 3)

    def test_bench_compares_bits_of_methods_that_take_it(self):
        self.run_it("bench", "solve", "A.mtx", "--methods", "bicgstab", "--runs", "host,graph", "--iterations", 5, "--repeat", 1)
        self.refused(3, "bench", "solve", "A.mtx", "--methods", "bicgstab,cg", "--runs", "host", "--iterations", 5, "--repeat", 1)

    def test_the_entry_that_is_no_mirror_is_the_file_s(self):
        # [[1, 2], [0, 1]], by columns, as scipy.sparse.save_npz writes it
        with zipfile.ZipFile(self.folder / "C.npz", "w") as archive:
            for name, content in (("format", b"csc"), ("shape", [2, 2]), ("indptr", [0, 1, 3]), ("indices", [0, 0, 1]),
                                  ("data", [1.0, 2.0, 1.0])):
                with archive.open(name + ".npy", "w") as member:
                    member.write(npy_of(content))
        self.assertIn("C.npz: entry (1, 2) is 2 but (2, 1) is missing", self.refused(3, "solve", "C.npz"))

    def test_symmetric_up_to_rounding(self):
        def write(difference):
            self.write("S.mtx", nearly_symmetric(difference))

        write(2.0**-52)
        for words in ((), ("--ranks", 3), ("--transport", "processes", "--ranks", 2)):
            done = self.run_it("solve", "S.mtx", *words)
            self.assertIn("S.mtx is symmetric only up to rounding: entry (1, 2) is -1 but (2, 1) is -1.0000000000000002\n", done.stderr)
            self.assertEqual(done.stderr.count("rounding"), 1)
        self.assertEqual(self.json_of("info", "S.mtx")["symmetry"], "up to rounding: entry (1, 2) is -1 but (2, 1) is -1.0000000000000002")
        self.assertRegex(self.refused(3, "solve", "S.mtx", "--symmetry-tolerance", 0), r"S\.mtx:4: entry \(1, 2\) is -1 but \(2, 1\) is -1\.0000000000000002 .*"
                         r"where 5\.6e-17 of their size is rounding, allow it \(--symmetry-tolerance, 0 now\)")
        write(1e-6)
        self.assertIn("where 2.5e-07 of their size is rounding", self.refused(3, "solve", "S.mtx"))
        self.run_it("solve", "S.mtx", "--symmetry-tolerance", "3e-7")
        write(0.5)
        self.assertNotIn("rounding", self.refused(3, "solve", "S.mtx"))
        write(0)
        self.assertIn("(3, 1) is 1e-17 but (1, 3) is missing", self.run_it("solve", "S.mtx").stderr)

    def test_a_tolerance_that_nobody_uses(self):
        self.assertIn("Drop it", self.refused(2, "solve", "--generate", "poisson2d", "--size", "5,5", "--symmetry-tolerance", "1e-9"))
        self.assertIn("Drop one", self.refused(2, "solve", "A.mtx", "--method", "bicgstab", "--symmetry-tolerance", "1e-9"))

    def test_skew_symmetric_files_are_refused_whatever_the_method(self):
        self.write("K.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 1\n")
        self.assertIn("Write both triangles, as general", self.refused(3, "solve", "K.mtx", "--method", "bicgstab"))

    def test_an_indefinite_matrix(self):
        self.write("S.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 2\n2 2 -1\n3 3 1\n3 1 1\n")
        (self.folder / "c.npy").write_bytes(npy([2.0, 1.0, 3.0]))
        self.assertEqual(self.solve("S.mtx", "c.npy", code=1)["status"], "indefinite_matrix")
        self.assertEqual(self.solve("S.mtx", "c.npy", "--method", "minres", "--rtol", "1e-12")["status"], "converged")


if __name__ == "__main__":
    unittest.main()

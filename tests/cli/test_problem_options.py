"""The options of generated problems, of `hostless generate` and of `hostless info`: each has an effect or is refused."""

import struct
import unittest

from hostless_command import Command, chain, market, nearly_symmetric


def entries_of(text):
    """{(row, column): value} of the lower triangle of Matrix Market text, by a reader of our own."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    return {(int(i) - 1, int(j) - 1): float(v) for i, j, v in (line.split() for line in lines[1:])}


class Problems(Command):
    def info(self, *words):
        return self.json_of("info", *words)

    def test_sizes(self):
        for words, rows in ((("poisson1d", "--size", "7"), 7), (("poisson2d", "--size", "4"), 16),
                            (("poisson2d", "--size", "4,5"), 20), (("poisson7", "--size", "3,4,5"), 60),
                            (("poisson2d", "--size", "4x5"), 20), (("poisson7", "--size", "3x4,5"), 60),
                            (("elasticity-hex8", "--size", "3"), 81)):
            with self.subTest(words=words):
                self.assertEqual(self.info("--generate", *words)["rows"], rows)

    def test_sizes_that_overflow_or_do_not_fit(self):
        for kind, size in (("poisson1d", 2**40 + 1), ("poisson1d", 2**63), ("poisson1d", 2**64), ("poisson1d", 10**30),
                           ("poisson2d", f"{2**32},{2**32}"), ("poisson7", 2**31), ("elasticity-hex8", 2**20),
                           ("poisson1d", "0"), ("poisson1d", "-3"), ("poisson1d", "3,3"), ("poisson2d", "3,3,3"),
                           ("poisson7", "3,3"), ("poisson7", "3,3,3,3"), ("poisson7", "3,"), ("poisson7", "3,x"), ("poisson7", "3x"), ("poisson7", "x"), ("poisson7", "3X3X3"), ("poisson7", "")):
            with self.subTest(kind=kind, size=size):
                says = self.refused(2, "info", "--generate", kind, "--size", size)
                self.assertTrue(any(word in says for word in ("--size", "for the size of", "nx =", "overflow")), says)

    def test_a_file_may_follow_the_size(self):
        self.assertIn("one of", self.refused(2, "info", "--generate", "poisson7", "--size", "3", "4"))

    def test_presets_and_scale(self):
        small = self.info("--preset", "thermomech", "--scale", "0.01")
        large = self.info("--preset", "thermomech", "--scale", "0.02")
        self.assertAlmostEqual(small["rows"] / 204304, 0.01, delta=0.001)
        self.assertAlmostEqual(large["rows"] / 204304, 0.02, delta=0.001)
        for scale in ("0", "1.5", "-1", "nan"):
            self.assertIn("scale", self.refused(2, "info", "--preset", "flan", "--scale", scale))

    def test_coefficients(self):
        base = ("--generate", "poisson2d", "--size", "9")
        usual = self.info(*base)
        constant = self.info(*base, "--contrast", "1")
        self.assertEqual((constant["diagonal_min"], constant["diagonal_max"]), (4.0, 4.0))
        self.assertGreater(self.info(*base, "--contrast", "1e6")["diagonal_max"], usual["diagonal_max"])
        self.assertNotEqual(self.info(*base, "--seed", "2")["diagonal_max"], usual["diagonal_max"])
        singular = self.info(*base, "--contrast", "1", "--boundary", "neumann")
        self.assertEqual(singular["diagonal_min"], 2.0)
        self.assertEqual(self.info(*base, "--boundary", "dirichlet"), {
            **usual, "input": self.info(*base, "--boundary", "dirichlet")["input"]})
        for contrast in ("0", "0.5", "1e13", "nan", "-1"):
            self.assertIn("contrast", self.refused(2, "info", *base, "--contrast", contrast))

    def test_help_says_what_holds_where_nothing_is_given(self):
        words = {"--contrast": ("poisson2d", "100"), "--boundary": ("poisson2d", "standard"), "--long-edges": ("circuit", r"0\.02"),
                 "--time-step": ("monodomain", r"0\.125")}
        for command in ("generate", "solve", "bench halo"):
            told = " ".join(self.run_it(*command.split(), "--help").stdout.split())
            for option, (kind, value) in words.items():
                self.assertRegex(told, rf" {option} [^(]*(\([^)]*\)[^(]*)*\(default:? {value}\b")
                given = ("--generate", kind, "--size", "6")
                self.assertEqual(self.info(*given, option, value.replace("\\", "")), self.info(*given))
            self.assertRegex(told, r" --scale [^(]*\(default 1\)")
            self.assertRegex(told, r" --size [^(]*\(default: 100000 in one dimension, 300 each in two, 32 in three\)")
        for kind, rows in (("poisson1d", 100000), ("poisson2d", 300**2), ("poisson7", 32**3)):
            self.assertEqual(self.info("--generate", kind)["rows"], rows)

    def test_long_edges(self):
        grid = ("--generate", "circuit", "--size", "30")
        counts = [self.info(*grid, "--long-edges", share)["entries"] for share in ("0", "0.02", "0.5")]
        self.assertLess(counts[0], counts[1])
        self.assertLess(counts[1], counts[2])
        self.assertEqual(self.info(*grid)["entries"], counts[1])
        self.assertLess(self.info(*grid, "--long-edges", "0")["bandwidth"], 31)
        self.assertIn("only circuit", self.refused(2, "info", "--generate", "poisson2d", "--long-edges", "0.1"))
        self.assertIn("long_edges", self.refused(2, "info", *grid, "--long-edges", "0.6"))
        preset = ("--preset", "g3_circuit", "--scale", "0.001")
        self.assertGreater(self.info(*preset, "--long-edges", "0.4")["entries"], self.info(*preset)["entries"])

    def test_time_step(self):
        heart = ("--generate", "monodomain", "--size", "5")
        small, usual, large = (self.info(*heart, "--time-step", dt)["diagonal_max"] for dt in ("1e-6", "0.125", "50"))
        self.assertEqual(self.info(*heart)["diagonal_max"], usual)
        self.assertLess(small, usual)
        self.assertLess(usual, large)
        self.assertIn("only monodomain", self.refused(2, "info", "--generate", "poisson7", "--time-step", "1"))
        for step in ("0", "-1", "nan", "inf"):
            self.assertIn("time_step", self.refused(2, "info", *heart, "--time-step", step))

    def test_nothing_is_ignored(self):
        self.write("A.mtx", market(chain(4), 4))
        for option, value in (("--size", "3"), ("--scale", "0.5"), ("--contrast", "3"), ("--boundary", "neumann"),
                              ("--long-edges", "0.1"), ("--time-step", "1")):
            for command in ("solve", "info", "plan"):
                with self.subTest(option=option, command=command):
                    self.assertIn(f"{option} with the matrix A.mtx", self.refused(2, command, "A.mtx", option, value))
        self.assertIn("--scale", self.refused(2, "info", "--generate", "poisson2d", "--scale", "0.5"))
        self.assertIn("--size", self.refused(2, "info", "--preset", "flan", "--size", "4"))


class Generate(Command):
    def test_market_equals_petsc_equals_solving_directly(self):
        problem = ("poisson2d", "--size", "8,9", "--contrast", "50", "--seed", "3")
        for name in ("A.mtx", "A.petsc"):
            done = self.run_it("generate", *problem, "-o", name)
            self.assertIn(f"written to {name}", done.stdout)
            self.assertIn("72 rows", done.stdout)
        lower = entries_of(self.content("A.mtx").decode())
        data = self.content("A.petsc")
        kind, rows, columns, entries = struct.unpack(">4i", data[:16])
        self.assertEqual((kind, rows, columns), (1211216, 72, 72))
        lengths = struct.unpack(f">{rows}i", data[16:16 + 4 * rows])
        column = struct.unpack(f">{entries}i", data[16 + 4 * rows:16 + 4 * (rows + entries)])
        value = struct.unpack(f">{entries}d", data[16 + 4 * (rows + entries):])
        row = [i for i, length in enumerate(lengths) for _ in range(length)]
        self.assertEqual({(i, j): v for i, j, v in zip(row, column, value) if j <= i}, lower)
        histories = [self.solve(*words)["residual_history"]
                     for words in (("A.mtx",), ("A.petsc",), ("--generate", *problem))]
        self.assertEqual(histories[0], histories[2])
        self.assertEqual(histories[1], histories[2])

    def test_the_name_stands_by_itself(self):
        for option, name in (("--generate", "poisson7"), ("--preset", "flan")):
            says = self.refused(2, "generate", option, name, "--size", "4", "-o", "A.mtx")
            self.assertIn(f"{option}: '{name}' (", says)
            self.assertIn(f" Write hostless generate {name}.", says)
            self.assertIn(" Write hostless generate NAME.", self.refused(2, "generate", "-o", "A.mtx", option))
            self.assertNotRegex(self.run_it("generate", "--help").stdout, rf"(?m)^ *{option}")

    def test_what_was_typed_is_told(self):
        for command in (("generate", "poisson7", "-o", "A.mtx"), ("info", "--generate", "poisson7")):
            for size, told in (("x", "x"), ("3,x", "3,x"), ("3,y", "y"), ("4x4*4", "4*4"), ("4 x 4", "4 ")):
                self.assertIn(f"'{told}'", self.refused(2, *command, "--size", size))

    def test_ranks_write_the_same_file(self):
        for ranks in (1, 3):
            self.run_it("generate", "circuit", "--size", "20", "--ranks", ranks, "--output", f"{ranks}.mtx")
        self.assertEqual(self.content("1.mtx"), self.content("3.mtx"))
        self.refused(2, "generate", "circuit", "-o", "A.mtx", "--ranks", "0")

    def test_graphs(self):
        for name, rows, edges in (("ccc_G_06", 384, 576), ("debr_G_08", 256, 509), ("delaunay_n10", 1024, 3054), ("crack", 10240, 30237)):
            self.assertIn(f"{rows} rows, {2 * edges} entries", self.run_it("generate", name, "-o", "A.mtx", "--ranks", 2).stdout)
            lower = entries_of(self.content("A.mtx").decode())
            self.assertEqual((len(lower), set(lower.values())), (edges, {1.0}))
            self.assertEqual([place for place in lower if place[0] <= place[1]], [])
            self.assertEqual(self.json_of("info", "A.mtx")["rows"], rows)
        for option, value in (("--size", "4"), ("--scale", "0.5"), ("--contrast", "2"), ("--boundary", "neumann"), ("--long-edges", "0.1"), ("--time-step", "1"), ("--seed", "2")):
            self.assertIn(f"{option} with the graph crack", self.refused(2, "generate", "crack", "-o", "A.mtx", option, value))

    def test_every_option_of_a_problem(self):
        for what, *words in (("circuit", "--size", "12", "--long-edges", "0.3"), ("thermomech", "--scale", "0.001"),
                             ("monodomain", "--size", "3", "--time-step", "2", "--boundary", "neumann"),
                             ("poisson2d", "--size", "5", "--contrast", "7", "--seed", "9")):
            with self.subTest(what=what):
                source = "--preset" if what == "thermomech" else "--generate"
                self.run_it("generate", what, *words, "-o", "A.mtx")
                self.assertEqual(self.json_of("info", "A.mtx")["diagonal_max"],
                                 self.json_of("info", source, what, *words)["diagonal_max"])


class Info(Command):
    def test_facts_of_a_small_matrix(self):
        matrix = chain(6)
        matrix[2, 2], matrix[0, 5], matrix[5, 0] = -9.5, 4.0, 4.0
        del matrix[4, 4]
        self.write("A.mtx", market(matrix, 6))
        report = self.json_of("info", "A.mtx")
        lengths = [sum(1 for i, _ in matrix if i == row) for row in range(6)]
        off = [sum(abs(v) for (i, j), v in matrix.items() if i == row != j) for row in range(6)]
        diagonal = [matrix.get((row, row), 0.0) for row in range(6)]
        expected = {"version": 1, "input": "A.mtx", "rows": 6, "entries": len(matrix), "row_length_min": min(lengths),
                    "row_length_max": max(lengths), "row_length_mean": len(matrix) / 6, "bandwidth": 5,
                    "diagonal_min": min(diagonal), "diagonal_max": max(diagonal), "diagonal_missing": 1,
                    "diagonal_not_positive": 2, "rows_not_dominant": sum(d < o for d, o in zip(diagonal, off)),
                    "block": 1}
        self.assertEqual({key: report[key] for key in expected}, expected)
        text = self.run_it("info", "A.mtx", "--json", "A.json").stdout
        self.assertEqual(self.content("A.json").decode(), self.run_it("info", "A.mtx", "--json", "-").stdout)
        for words in ("every entry compared with its mirror: equal", "1 missing, 2 not positive", report["why_format"],
                      report["why_block"], "bandwidth   5"):
            self.assertIn(words, text)

    def test_storage(self):
        block = ("--generate", "elasticity-hex8", "--size", "5")
        found = self.json_of("info", *block)
        self.assertEqual((found["block"], found["format"]), (3, "bsr"))
        self.assertEqual(self.json_of("info", *block, "--format", "csr")["format"], "csr")
        self.assertEqual(self.json_of("info", *block, "--block-size", "1")["block"], 1)
        wide, narrow = (self.json_of("info", *block, "--format", "csr", "--columns", bits)["bytes"]
                        for bits in ("32", "16"))
        self.assertEqual(wide - narrow, 2 * found["entries"])
        self.assertEqual(self.json_of("info", *block, "--setup-threads", "3"), found)  # the same matrix with any number

    def test_negative_diagonals_and_symmetry(self):
        self.write("A.mtx", market({(i, i): -2.0 - i for i in range(4)}, 4))
        report = self.json_of("info", "A.mtx")
        self.assertEqual((report["diagonal_min"], report["diagonal_max"]), (-5.0, -2.0))
        self.assertIn("compared", report["symmetry"])
        self.assertEqual(self.json_of("info", "--generate", "poisson2d")["symmetry"], "by construction")

    def test_a_tolerance_of_symmetry(self):
        self.write("S.mtx", nearly_symmetric(1e-6))
        apart = "entry (1, 2) is -1 but (2, 1) is -1.000001"
        for words, said in (((), "none: "), (("--symmetry-tolerance", "2e-7"), "none: "), (("--symmetry-tolerance", "3e-7"), "up to rounding: ")):
            self.assertEqual(self.json_of("info", "S.mtx", *words)["symmetry"], said + apart)
        self.assertIn("Drop it", self.refused(2, "info", "--generate", "poisson2d", "--symmetry-tolerance", "1e-9"))
        self.assertIn("-1", self.refused(2, "info", "S.mtx", "--symmetry-tolerance", "-1"))

    def test_options_of_several_ranks_are_not_offered(self):
        for option in ("--route", "--partition", "--slices", "--row-lanes", "--ranks-per-node", "--ranks"):
            self.assertIn(option, self.refused(2, "info", "--generate", "poisson2d", option, "1"))


if __name__ == "__main__":
    unittest.main()

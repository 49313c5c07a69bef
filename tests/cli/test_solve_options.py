"""Every option of `hostless solve`, shown to have an effect."""

import json
import os
import pty
import random
import re
import signal
import unittest

from hostless_command import (SLOWEST, Command, chain, market, market_vector, norm, npy, petsc_vector, read_market_vector,
                              read_npy, read_petsc_vector, times)

GRID = ("--generate", "poisson2d", "--size", "30")


class Systems(Command):
    n = 8

    def setUp(self):
        super().setUp()
        self.matrix = chain(self.n)
        self.x = [0.25 * (i - 3) for i in range(self.n)]
        self.write("A.mtx", market(self.matrix, self.n))
        self.b = times(self.matrix, self.x)

    def test_right_hand_side_and_guess_in_every_format(self):
        for name, data in (("b.mtx", market_vector(self.b).encode()), ("b.npy", npy(self.b)),
                           ("b.petsc", petsc_vector(self.b))):
            (self.folder / name).write_bytes(data)
        for name in ("b.mtx", "b.npy", "b.petsc"):
            self.solve("A.mtx", name, "--rtol", "1e-13", "--output", "x.npy")
            for value, expected in zip(read_npy(self.content("x.npy")), self.x):
                self.assertAlmostEqual(value, expected, delta=1e-11)
        (self.folder / "x0.npy").write_bytes(npy(self.x))
        self.assertEqual(self.solve("A.mtx", "b.npy", "x0.npy")["iterations"], 0)
        self.assertGreater(self.solve("A.mtx", "x0.npy", "b.npy")["iterations"], 0)

    def test_vectors_of_a_generated_problem(self):
        self.solve("--generate", "poisson1d", "--size", self.n, "--output", "x.npy", "--rtol", "1e-14")
        (self.folder / "b.npy").write_bytes(npy([1.0] * self.n))
        again = self.solve("--generate", "poisson1d", "--size", self.n, "b.npy", "x.npy", "--rtol", "1e-13")
        self.assertEqual(again["iterations"], 0)

    def test_without_b_it_is_one(self):
        self.assertEqual(self.solve("A.mtx")["rhs_norm"] ** 2, norm([1.0] * self.n) ** 2)

    def test_output_in_every_format(self):
        values = []
        for name, read in (("x.npy", read_npy), ("x.mtx", lambda data: read_market_vector(data.decode())),
                           ("x.petsc", read_petsc_vector)):
            self.solve("A.mtx", "--output", name, "--ranks", 3)
            values.append(read(self.content(name)))
        self.assertEqual(values[0], values[1])  # 17 digits are all
        self.assertEqual(values[0], values[2])

    def test_divergence_limit(self):
        side, scale = 6, [10.0 ** (6 * k / 35 - 3) for k in range(36)]
        matrix = {(i, j): scale[i] * scale[j] * (4.0 if i == j else -1.0) for i in range(36) for j in range(36)
                  if i == j or abs(i - j) == side or (abs(i - j) == 1 and i // side == j // side)}
        self.write("bad.mtx", market(matrix, 36))
        self.write("b.mtx", market_vector([1 / s for s in scale]))
        system = ("bad.mtx", "b.mtx", "--max-iterations", 2000)
        result = self.solve(*system)
        self.assertEqual(result["status"], "converged", "the residual grows, A is positive definite")
        self.assertGreater(max(result["residual_history"]), 1e5 * result["residual_history"][0])
        low = self.solve(*system, "--divergence-limit", "1e5", code=1)
        self.assertEqual((low["status"], low["settings"]["divergence_limit"]), ("diverged", "100000"))
        self.assertIn("more than 1e+05 times", low["message"])
        # Of a solve that goes on, it is that of the one that does.
        self.solve("bad.mtx", "b.mtx", "--max-iterations", 100, "--checkpoint", "c", "--checkpoint-every", 50, code=1)
        history = result["residual_history"]
        between = 0.5 * max(history[120:]) / history[0]
        late = self.solve(*system, "--resume", "c", "--divergence-limit", between, code=1)
        self.assertEqual(late["status"], "diverged")
        self.assertGreater(late["iterations"], 100)
        self.assertEqual(self.solve(*system, "--resume", "c")["residual_history"], history)

    def test_time_limit_is_one_of_the_solve(self):
        for limit in (0.5, 5, 50):  # on a busy machine the first may be up before an iteration
            result = self.solve("--generate", "poisson1d", "--size", 300000, "--time-limit", limit, "--rtol", "1e-14", code=4)
            self.assertEqual(result["status"], "aborted")
            self.assertGreater(result["time_solve_s"], limit)
            if result["iterations"] > 1:
                break
        self.assertGreater(result["iterations"], 1)

    def test_manufactured_and_seed(self):
        results = [self.solve("A.mtx", "--manufactured", "--seed", seed, "--rtol", "1e-13") for seed in (1, 1, 2)]
        self.assertEqual(results[0]["residual_history"], results[1]["residual_history"])
        self.assertNotEqual(results[0]["residual_history"], results[2]["residual_history"])
        for result in results:
            self.assertLess(result["relative_error"], 1e-11)
        self.assertIsNone(self.solve("A.mtx")["relative_error"])

    def test_null_space(self):
        neumann = (*GRID, "--boundary", "neumann", "--manufactured")
        result = self.solve(*neumann, "--null-space", "constant", "--output", "x.npy")
        self.assertEqual(result["status"], "converged")
        self.assertLess(abs(sum(read_npy(self.content("x.npy")))), 1e-9)  # mean zero
        self.assertGreater(result["null_space_removed"], 0)
        self.assertEqual(self.solve(*neumann, "--null-space", "none")["null_space_removed"], 0)
        self.assertIn("--null-space", self.refused(3, "solve", "A.mtx", "--null-space", "constant"))


    def test_what_is_solved_for_without_a_right_hand_side(self):
        def chosen(*words, **how):
            result = self.solve(*words, **how)
            return result["right_hand_side"], result
        for kind, size in (("poisson2d", 12), ("circuit", 12), ("elasticity-hex8", 3)):
            singular = ("--generate", kind, "--size", size, "--boundary", "neumann")
            words, result = chosen(*singular, "--seed", 3)
            self.assertTrue(words.startswith("A x*, x* random of seed 3 (A is singular, "), words)
            self.assertEqual(result["status"], "converged", kind)
            self.assertGreater(result["iterations"], 3)
            self.assertEqual(result["residual_history"], self.solve(*singular, "--seed", 3, "--manufactured")["residual_history"])
            self.assertIsNone(result["relative_error"])  # x is one of many
        free = ("--generate", "poisson2d", "--size", 12, "--boundary", "neumann")
        result = self.solve(*free, "--null-space", "constant")
        self.assertEqual((result["status"], result["message"]), ("converged", ""))
        self.assertGreater(result["iterations"], 3)
        self.assertEqual(chosen("--generate", "poisson2d", "--size", 12)[0], "1 in every row")
        self.assertEqual(chosen("--generate", "monodomain", "--size", 4, "--boundary", "neumann")[0], "1 in every row")  # regular
        self.write("ones.mtx", market_vector([1.0] * 144))
        words, result = chosen(*free, "ones.mtx", "--null-space", "constant")
        self.assertEqual((words, result["iterations"]), ("ones.mtx", 0))
        self.assertIn("b was constant, and all of it lost with its mean", result["message"])


class Advice(Command):
    def test_a_singular_matrix_and_a_right_hand_side_with_a_constant_part(self):
        self.write("ones.mtx", market_vector([1.0] * int(GRID[GRID.index("--size") + 1]) ** 2))
        result = self.solve(*GRID, "ones.mtx", "--boundary", "neumann", code=1)  # b is all constant
        self.assertIn("--null-space constant", result["message"])

    def test_a_singular_matrix_at_the_iteration_limit_of_least_residuals(self):
        chance = random.Random(1)
        self.write("b.mtx", market_vector([chance.uniform(-1, 1) for _ in range(216)]))
        words = ("--generate", "poisson7", "--size", 6, "--boundary", "neumann", "b.mtx")
        for ranks, limit, status in ((1, 60, "iteration_limit"), (2, 60, "iteration_limit"), (1, 2**62, "stagnated"), (2, 2**62, "stagnated")):
            told = self.solve(*words, "--method", "cr", "--ranks", ranks, "--max-iterations", limit, code=1)
            self.assertEqual(told["status"], status)
            self.assertLess(told["iterations"], 200)
            self.assertRegex(told["message"], r"^A 1 = 0: the matrix is singular\. b has a constant part of .* \(--null-space constant\)\.$")
        early = self.solve(*words, "--method", "cr", "--max-iterations", 2, code=1)["message"]
        self.assertIn("the limit of 2 iterations came first", early)  # nobody knows yet what keeps it up

    def test_an_entry_of_the_diagonal_that_has_no_inverse(self):
        matrix = chain(5)
        matrix[2, 2] = 0.0
        self.write("A.mtx", market(matrix, 5))
        for value, advice in ((0.0, "or bicgstab with preconditioner none."), (-3.0, "or bicgstab.")):
            matrix[2, 2] = value
            self.write("A.mtx", market(matrix, 5))
            told = self.solve("A.mtx", "--method", "cg", "--preconditioner", "jacobi", code=1)["message"]
            self.assertTrue(told.endswith(f"Try method minres, whose jacobi takes absolute values, {advice}"), told)
        for ranks in (1, 2):  # the first row has an inverse, a later one has none
            matrix[1, 1], matrix[4, 4] = -3.0, 0.0
            self.write("A.mtx", market(matrix, 5))
            told = self.solve("A.mtx", "--method", "cg", "--preconditioner", "jacobi", "--ranks", ranks, code=1)["message"]
            self.assertRegex(told, "entry of row 2 is not positive.* with preconditioner none")
        matrix = chain(5)
        matrix[2, 2] = 0.0
        self.write("A.mtx", market(matrix, 5))
        told = self.solve("A.mtx", "--method", "bicgstab", "--preconditioner", "jacobi", code=1)["message"]
        self.assertIn("has no inverse. Try preconditioner none.", told)
        for words in (("--method", "bicgstab", "--preconditioner", "none"), ("--method", "minres", "--preconditioner", "jacobi")):
            self.assertEqual(self.solve("A.mtx", *words)["status"], "converged")  # as was advised

    def test_another_indefinite_matrix_is_not_told_so(self):
        matrix = chain(5)
        matrix[2, 2] = -7.0
        self.write("A.mtx", market(matrix, 5))
        result = self.solve("A.mtx", code=1)
        self.assertEqual(result["status"], "indefinite_matrix")
        self.assertIn("not positive definite", result["message"])
        self.assertNotIn("null", result["message"])
        self.assertIsNone(result["condition_estimate"])

    def test_at_the_iteration_limit(self):
        limit = ("--max-iterations", 20)
        for words, says in (((*GRID, *limit), "or try preconditioner jacobi."),
                            ((*GRID, *limit, "--contrast", 1), "or try preconditioner chebyshev."),  # a scaled identity
                            ((*GRID, *limit, "--preconditioner", "jacobi"), "or try preconditioner chebyshev."),
                            ((*GRID, *limit, "--preconditioner", "jacobi", "--method", "pipelined-cg"),
                             "or try preconditioner chebyshev with method cg."),
                            (("--generate", "elasticity-hex8", "--size", 4, *limit, "--block-size", 3),
                             "or try preconditioner block-jacobi.")):
            with self.subTest(words=words):
                message = self.solve(*words, "--rtol", "1e-14", code=1)["message"]
                self.assertIn("the limit of 20 iterations came first (condition at least ", message)
                self.assertTrue(message.endswith(says), message)

    def test_how_many_iterations_the_condition_lets_expect(self):
        grid = ("--generate", "poisson2d", "--size", 40, "--contrast", 1)
        message = self.solve(*grid, "--max-iterations", 60, code=1)["message"]
        expected = int(re.search("some ([0-9]+) by that condition", message).group(1))
        self.assertEqual(self.solve(*grid, "--max-iterations", expected)["status"], "converged")

    def test_few_iterations_tell_no_number(self):
        for limit in (1, 5, 19):
            message = self.solve("--generate", "elasticity-hex8", "--size", 6, "--max-iterations", limit, code=1)["message"]
            self.assertIn("Allow many more (so few do not tell how many), or try preconditioner block-jacobi.", message)
            self.assertNotIn("condition at least", message)

    def test_no_more_iterations_where_x_has_lost_the_recurrence(self):
        result = self.solve("--generate", "poisson2d", "--size", 100, "--method", "pipelined-cg", "--rtol", "1e-14",
                            "--max-iterations", 1000, code=1)
        self.assertGreater(result["true_relative_residual"], 10 * result["recurrence_relative_residual"])
        self.assertIn(f"is {result['true_relative_residual']:.1e}, where the recurrence has "
                      f"{result['recurrence_relative_residual']:.1e} (condition at least ", result["message"])
        self.assertIn("Try method cg, which loses fewer digits, preconditioner jacobi, or raise the tolerance.", result["message"])
        self.assertNotIn("Allow", result["message"])

    def test_a_tolerance_that_is_out_of_reach(self):
        message = self.solve(*GRID, "--rtol", "1e-18", code=1)["message"]
        self.assertIn("restarts from the true residual gain nothing any more", message)
        self.assertNotIn("method cg", message)
        message = self.solve(*GRID, "--rtol", "1e-18", "--method", "single-reduction-cg", code=1)["message"]
        self.assertIn("Try method cg, which loses fewer digits, ", message)

    def test_block_jacobi_without_blocks_says_what_it_is(self):
        said = "block-jacobi is jacobi here: the matrix has no blocks"
        for words in (("--ranks", 1), ("--ranks", 2)):
            self.assertEqual(self.solve(*GRID, *words, "--preconditioner", "block-jacobi")["choices"]["preconditioner_why"],
                             said)
        self.assertIn(said, self.run_it("solve", *GRID, "--preconditioner", "block-jacobi", "--no-bandwidth").stdout)
        blocks = ("--generate", "elasticity-hex8", "--size", 3, "--block-size", 3, "--preconditioner", "block-jacobi")
        self.assertNotIn("preconditioner_why", self.solve(*blocks)["choices"])


class Choices(Command):
    def test_words_arrive_in_the_choices(self):
        for option, values in (("method", ("cg", "single-reduction-cg", "pipelined-cg")),
                               ("run", ("host", "persistent", "graph")), ("ranks", ("1", "2", "3")),
                               ("preconditioner", ("none", "jacobi", "block-jacobi")),
                               ("transport", ("threads", "processes")), ("reduction", ("ordered", "fast")),
                               ("slices", ("5", "9")), ("row-lanes", ("1", "4")), ("partition", ("contiguous", "metis")),
                               ("route", ("direct", "two_step", "three_step", "split", "leader"))):
            for value in values:
                with self.subTest(option=option, value=value):
                    base = () if option == "ranks" else ("--ranks", 2)
                    result = self.solve(*GRID, *base, f"--{option}", value)
                    self.assertEqual(result["status"], "converged")
                    if (option, value) == ("reduction", "fast"):  # threads have none, and say so
                        self.assertIn("no library all-reduce", result["choices"]["reduction"])
                    else:
                        self.assertEqual(result["choices"][option.replace("-", "_")], value)

    def test_storage(self):
        block = ("--generate", "elasticity-hex8", "--size", "5")
        for words, says in ((("--format", "csr"), "csr with block 3"), (("--format", "sell"), "sell with block 3"),
                            (("--format", "bsr"), "bsr with block 3"), (("--format", "bsr3"), "bsr with block 3"),
                            (("--block-size", "3"), "block 3"), (("--block-size", "1"), "block 1"),
                            (("--format", "csr", "--columns", "32"), "16-bit columns in 0 of 1"),
                            (("--format", "csr", "--columns", "16"), "16-bit columns in 1 of 1")):
            with self.subTest(words=words):
                self.assertIn(says, self.solve(*block, *words)["choices"]["format"])

    def test_partition_from_a_file(self):
        self.write("parts.txt", "\n".join(str(i % 2) for i in range(900)) + "\n")
        result = self.solve(*GRID, "--ranks", 2, "--partition", "file:parts.txt")
        self.assertEqual(result["choices"]["partition"], "from a file")
        # Neighbours in a row of the grid belong to the other rank: every value is sent.
        self.assertEqual(result["halo_bytes_per_iteration"], 900 * 8)

    def test_seed_reaches_metis(self):
        self.run_it("generate", "circuit", "--size", "40", "-o", "A.mtx")
        halos = {self.solve("A.mtx", "--ranks", 5, "--partition", "metis", "--seed", seed)["halo_bytes_per_iteration"]
                 for seed in (1, 2, 3, 4, 5, 6)}
        self.assertGreater(len(halos), 1)

    def test_nodes(self):
        for per_node, nodes, route in ((1, "4", "three_step"), (2, "2", "three_step"), (4, "1", "direct")):
            choices = self.solve(*GRID, "--ranks", 4, "--ranks-per-node", per_node)["choices"]
            self.assertEqual((choices["nodes"], choices["route"]), (nodes, route))

    def test_lanes(self):
        self.assertEqual(self.solve(*GRID, "--run", "persistent")["choices"]["lanes"], "2")
        self.assertEqual(self.solve(*GRID, "--run", "persistent", "--lanes", 3)["choices"]["lanes"], "3")

    def test_run_auto_is_host_on_the_processor(self):
        self.assertEqual(self.solve(*GRID, "--run", "auto")["choices"]["run"], "host")

    def test_choices_cannot_change_a_bit(self):
        same = ("--ranks", 2, "--partition", "metis")
        expected = self.solve(*GRID, *same, "--output", "x.npy")["residual_history"]
        x = self.content("x.npy")
        for words in (("--check-interval", 7), ("--run", "graph"), ("--run", "persistent", "--lanes", 2),
                      ("--transport", "processes"), ("--route", "two_step", "--ranks-per-node", 1), ("--quiet",)):
            with self.subTest(words=words):
                self.assertEqual(self.solve(*GRID, *same, *words, "--output", "y.npy")["residual_history"], expected)
                self.assertEqual(self.content("y.npy"), x)
        plain = self.solve(*GRID, *same, "--output", "y.npy", environment={"HOSTLESS_ISA": "baseline"})
        self.assertEqual(plain["choices"]["instruction_set"], "baseline")
        self.assertEqual((plain["residual_history"], self.content("y.npy")), (expected, x))
        self.assertNotEqual(self.solve(*GRID, *same, "--slices", 3)["residual_history"], expected)
        self.assertNotEqual(self.solve(*GRID, *same, "--row-lanes", 4)["residual_history"], expected)

    def test_row_lanes_are_a_power_of_two_and_csr(self):
        for value in ("0", "3", "64", "-2", "x"):
            self.assertIn("--row-lanes", self.refused(2, "solve", *GRID, "--row-lanes", value))
        for form in ("sell", "bsr2"):
            self.assertIn("with 2 row lanes", self.refused(2, "solve", *GRID, "--row-lanes", "2", "--format", form))
        self.assertIn("2 accumulators a row", self.solve(*GRID, "--row-lanes", 2)["choices"]["format"])

    def test_formats_of_gpus_are_known(self):
        for form in ("diagonals", "diagonals-full", "merge", "vendor"):
            self.assertIn(f"format '{form}' on the processor is refused (only GPUs have it)", self.refused(2, "solve", *GRID, "--format", form))

    def test_polynomial(self):
        polynomial = (*GRID, "--preconditioner", "chebyshev")
        expected = self.solve(*polynomial)
        self.assertEqual(expected["choices"]["chebyshev_degree"], "4")
        for words, key in ((("--chebyshev-degree", "9"), "degree"), (("--chebyshev-ratio", "4"), "ratio"),
                           (("--chebyshev-upper", "5"), "upper"), (("--chebyshev-inner", "none"), "inner")):
            with self.subTest(words=words):
                result = self.solve(*polynomial, *words)
                self.assertEqual(result["settings"][f"chebyshev_{key}"], words[1])
                self.assertNotEqual(result["residual_history"], expected["residual_history"])
        self.assertLess(self.solve(*polynomial, "--chebyshev-degree", "9")["iterations"], expected["iterations"])
        for words, says in ((("--chebyshev-degree", "0"), "--chebyshev-degree: '0' (a whole number from 1 to 1000 is needed)"),
                            (("--chebyshev-degree", "2147483647"), "--chebyshev-degree: '2147483647' (a whole number from 1 to 1000 is needed)"),
                            (("--chebyshev-ratio", "1"), "--chebyshev-ratio: '1' (a finite number above 1 is needed)"),
                            (("--chebyshev-upper", "-1"), "--chebyshev-upper: '-1'"),
                            (("--chebyshev-inner", "chebyshev"), "--chebyshev-inner chebyshev (unknown). Use none, jacobi or block-jacobi.")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, "solve", *polynomial, *words))
        self.assertIn("Chebyshev polynomial with preconditioner none", self.refused(2, "solve", *GRID, "--chebyshev-degree", "3"))

    def test_threads_of_the_set_up_change_nothing(self):
        expected = self.solve(*GRID)
        for threads in ("1", "3"):
            result = self.solve(*GRID, "--setup-threads", threads)
            self.assertEqual(result["settings"]["setup_threads"], threads)
            self.assertEqual(result["residual_history"], expected["residual_history"])
        self.assertIn("--setup-threads", self.refused(2, "solve", *GRID, "--setup-threads", "-1"))

    def test_check_interval_only_spares_looks(self):
        # A look costs nothing that can be seen from outside; an interval beyond the end must still end.
        self.assertEqual(self.solve(*GRID, "--check-interval", 100000)["status"], "converged")
        for run in ("persistent", "graph"):
            self.assertIn("no gates to look at", self.refused(2, "solve", *GRID, "--run", run, "--check-interval", 2))

    def test_tolerances(self):
        loose, tight = (self.solve(*GRID, "--rtol", rtol) for rtol in ("1e-2", "1e-10"))
        self.assertLess(loose["iterations"], tight["iterations"])
        self.assertLessEqual(tight["true_relative_residual"], 1e-10)
        by_size = self.solve(*GRID, "--rtol", "0", "--atol", "0.5")
        self.assertLessEqual(by_size["true_residual"], 0.5)
        self.assertGreater(by_size["true_residual"], 0.5e-3)

    def test_preconditioners_help(self):
        rough = ("--generate", "elasticity-hex8", "--size", "6", "--contrast", "1e6")
        plain, jacobi, block = (self.solve(*rough, "--preconditioner", name)["iterations"]
                                for name in ("none", "jacobi", "block-jacobi"))
        self.assertLess(jacobi, plain)
        self.assertNotEqual(block, jacobi)
        self.assertLess(block, plain)

    def test_matrix_precision(self):
        rough = (*GRID, "--contrast", "1e5", "--rtol", "1e-12", "--manufactured")
        double, single = (self.solve(*rough, "--matrix-precision", name) for name in ("fp64", "fp32"))
        self.assertEqual(self.solve(*rough)["residual_history"], double["residual_history"])
        self.assertNotEqual(single["residual_history"], double["residual_history"])
        self.assertLessEqual(single["true_relative_residual"], 1e-12)
        self.assertEqual((double["replacements"], double["choices"]["matrix_precision"]), (0, "fp64"))
        self.assertGreaterEqual(single["replacements"], 2)
        self.assertEqual(single["restarts"], 0)
        self.assertRegex(single["choices"]["matrix_precision"],
                         rf"^fp32 in iterations \(.*\), fp64 for the true residual; {single['replacements']} replacements$")
        for words, code, says in ((("--matrix-precision", "fp16"), 2, "Use fp64 or fp32."),
                                  (("--matrix-precision", "fp32", "--method", "pipelined-cg"), 2, "Use method cg"),
                                  (("--matrix-precision", "fp32", "--preconditioner", "chebyshev"), 2, "chebyshev")):
            self.assertIn(says, self.refused(code, "solve", *rough, *words))
        matrix = chain(5)
        matrix[2, 2] = 1e300
        self.write("A.mtx", market(matrix, 5))
        self.assertIn("value 1.000000e+300 in row 3 does not fit fp32",
                      self.refused(3, "solve", "A.mtx", "--matrix-precision", "fp32"))

    def test_max_iterations(self):
        self.assertEqual(self.solve(*GRID, "--max-iterations", 7, code=1)["iterations"], 7)

    def test_bandwidth_is_measured_unless_told_not_to(self):
        self.assertGreater(self.json_of("solve", *GRID)["measured_bandwidth"], 0)
        self.assertIsNone(self.json_of("solve", *GRID, "--no-bandwidth")["measured_bandwidth"])

    def test_quiet(self):
        done = self.run_it("solve", *GRID, "--quiet")
        self.assertEqual((done.stdout, done.stderr), ("", ""))


class ProgressLine(Command):
    def solve_with_terminal(self, *words, lines=None):
        """What an endless solve writes to the terminal on its standard error until it is ended, after so many lines."""
        ours, its = pty.openpty()
        self.addCleanup(os.close, ours)
        process = self.start("solve", "--generate", "poisson1d", "--size", "200000", "--rtol", "1e-14", "--json", "result.json", "--no-bandwidth", *words, stderr=its)
        os.close(its)
        text = b""
        while True:
            try:
                text += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if lines is not None and text.count(b" iterations/s ") >= lines:
                process.send_signal(signal.SIGINT)
                lines = None
        self.assertEqual(process.wait(timeout=SLOWEST), 4)
        return text.decode()

    def test_on_a_terminal(self):
        text = self.solve_with_terminal(lines=3)
        shown = re.findall(r"\r\x1b\[Kiteration (\d+)   \|r\| ([-+.e\d]+) \(target ([-+.e\d]+)\)   (\d+) iterations/s"
                           r"   ([.\d]+) s", text)
        self.assertGreaterEqual(len(shown), 3, text)
        for before, after in zip(shown, shown[1:]):  # in seconds with one digit
            self.assertGreaterEqual(float(after[4]) - float(before[4]), 0.2 - 0.1 - 1e-9, "five times a second at most")
        self.assertGreaterEqual(float(shown[-1][4]), 0.2 * len(shown) - 0.1, text)
        result = json.loads(self.content("result.json"))
        iteration, residual, target = int(shown[-1][0]), float(shown[-1][1]), float(shown[-1][2])
        self.assertAlmostEqual(residual, result["residual_history"][iteration], delta=1e-3 * residual)
        self.assertAlmostEqual(target, 1e-14 * result["rhs_norm"], delta=1e-3 * target)
        self.assertTrue(text.endswith("\r\x1b[K"), "the line is wiped away")

    def test_quiet(self):
        self.assertEqual(self.solve_with_terminal("--quiet", "--time-limit", "0.9"), "")

    def test_none_when_piped(self):
        done = self.run_it("solve", "--generate", "poisson1d", "--size", "200000", "--rtol", "1e-14", "--time-limit",
                           "0.6", code=4)
        self.assertEqual(done.stderr, "")
        self.assertNotIn("iterations/s", done.stdout)


if __name__ == "__main__":
    unittest.main()

"""The JSON result of a solve: its keys, and values checked by arithmetic of our own."""

import datetime
import json
import math
import os
import struct
import unittest

from hostless_command import Command, chain, market, market_vector, norm, read_npy, times

TYPES = {
    "version": int, "program": str, "status": str, "message": str, "input": str, "right_hand_side": str, "rows": int, "entries": int,
    "iterations": int, "resumed_at": int, "restarts": int, "replacements": int, "rhs_norm": float,
    "true_residual": float, "true_relative_residual": float,
    "recurrence_relative_residual": float, "residual_gap": float, "relative_error": (float, type(None)),
    "condition_estimate": (float, type(None)), "smallest_eigenvalue": (float, type(None)),
    "largest_eigenvalue": (float, type(None)), "settings": dict, "provenance": dict,
    "null_space_removed": float, "time_input_s": float, "time_setup_s": float, "time_solve_s": float,
    "time_by_phase_s": dict, "iteration_times": dict, "bytes_per_iteration": int, "halo_bytes_per_iteration": int, "communication": dict,
    "bytes_per_second": float,
    "measured_bandwidth": (float, type(None)), "share_of_bandwidth": (float, type(None)), "peak_process_bytes": int,
    "checkpoints": int, "choices": dict, "residual_history": list}
CHOICES = {"method", "preconditioner", "transport", "run", "lanes", "ranks", "nodes", "route", "partition", "block",
           "slices", "row_lanes", "format", "format_why", "matrix_precision", "reduction", "instruction_set"}
SETTINGS = {"method", "preconditioner", "matrix_precision", "rtol", "atol", "max_iterations", "null_space", "reduction",
            "run", "lanes", "check_interval", "host_waits", "gpus", "oversubscribe", "gpu_transport", "time_limit_s", "divergence_limit", "checkpoint_file",
            "checkpoint_every", "resume_file", "first_deadline_s", "later_deadline_s", "tune", "profile", "longest_launch_s",
            "chebyshev_degree", "chebyshev_ratio", "chebyshev_upper", "chebyshev_inner", "check_symmetry", "symmetry_tolerance",
            "generate_on", "block_size", "format", "columns", "setup_threads", "partition", "slices", "row_lanes", "route",
            "ranks_per_node", "seed", "rhs_columns"}
PROVENANCE = {"date", "command", "options_given", "options", "environment", "host", "processor", "mpi", "versions"}
PHASES = {"publish", "sweep", "rows", "sums", "ghosts", "waiting"}


class Result(Command):
    n = 9

    def setUp(self):
        super().setUp()
        self.matrix = chain(self.n)
        self.b = [1.0 + 0.5 * math.sin(3.0 * i) for i in range(self.n)]
        self.write("A.mtx", market(self.matrix, self.n))
        self.write("b.mtx", market_vector(self.b))

    def residual(self, x):
        return norm([b - ax for b, ax in zip(self.b, times(self.matrix, x))])

    def test_keys_and_types(self):
        result = self.json_of("solve", "A.mtx", "b.mtx")
        self.assertEqual(result.keys(), TYPES.keys())
        for key, kind in TYPES.items():
            self.assertIsInstance(result[key], kind, key)
        self.assertEqual(result["version"], 1)
        self.assertEqual(result["program"], self.run_it("--version").stdout.strip())
        self.assertEqual(result["choices"].keys(), CHOICES)
        self.assertEqual(result["time_by_phase_s"].keys(), PHASES)
        self.assertEqual(result["settings"].keys(), SETTINGS)
        self.assertEqual(result["provenance"].keys(), PROVENANCE)
        for value in [*result["choices"].values(), *result["settings"].values()]:
            self.assertIsInstance(value, str)
        for value in [*result["time_by_phase_s"].values(), *result["residual_history"]]:
            self.assertIsInstance(value, float)

    def test_values_of_a_small_system(self):
        for method in ("cg", "single-reduction-cg", "pipelined-cg"):
            for iterations in (0, 1, 3, 5):
                with self.subTest(method=method, iterations=iterations):
                    result = self.solve("A.mtx", "b.mtx", "--method", method, "--max-iterations", iterations,
                                        "--output", "x.npy", "--ranks", 2, code=1)
                    true_residual = self.residual(read_npy(self.content("x.npy")))
                    self.assertEqual(result["status"], "iteration_limit")
                    self.assertEqual((result["rows"], result["entries"]), (self.n, len(self.matrix)))
                    self.assertEqual(result["iterations"], iterations)
                    self.assertEqual(len(result["residual_history"]), iterations + 1)
                    self.near(result["rhs_norm"], norm(self.b))
                    self.near(result["true_residual"], true_residual)
                    self.near(result["true_relative_residual"], true_residual / norm(self.b))
                    self.near(result["residual_history"][0], norm(self.b))  # x0 = 0
                    self.near(result["residual_history"][-1], true_residual)  # no rounding yet that would part them
                    self.assertEqual(result["residual_gap"], abs(result["true_relative_residual"]
                                                                 - result["recurrence_relative_residual"]))

    def near(self, value, expected):
        self.assertLessEqual(abs(value - expected), 1e-12 * expected + 1e-15)

    def test_eigenvalues_of_a_small_system(self):
        # A chain of n: after n steps the method knows them all; the extremes by bisection with Sturm's sequence.
        def below(shift):
            count, pivot = 0, 1.0
            for i in range(self.n):
                beside = self.matrix.get((i, i - 1), 0.0)
                pivot = self.matrix[i, i] - shift - beside * beside / pivot
                count += pivot < 0
            return count

        def bisected(is_high):
            low, high = 0.0, 20.0
            for _ in range(80):
                middle = (low + high) / 2
                low, high = (low, middle) if is_high(below(middle)) else (middle, high)
            return high
        smallest, largest = bisected(lambda count: count >= 1), bisected(lambda count: count >= self.n)
        for method in ("cg", "single-reduction-cg", "pipelined-cg"):
            result = self.solve("A.mtx", "b.mtx", "--method", method, "--rtol", "1e-12")
            self.assertAlmostEqual(result["smallest_eigenvalue"] / smallest, 1, delta=1e-5)
            self.assertAlmostEqual(result["largest_eigenvalue"] / largest, 1, delta=1e-5)
            self.assertAlmostEqual(result["condition_estimate"] / (largest / smallest), 1, delta=1e-5)
            said = self.run_it("solve", "A.mtx", "b.mtx", "--method", method, "--rtol", "1e-12", "--no-bandwidth").stdout
            self.assertIn(f"condition       at least {largest / smallest:.3g}: eigenvalues from {smallest:.3g}", said)
        self.assertIsNone(self.solve("A.mtx", "b.mtx", "--max-iterations", 0, code=1)["condition_estimate"])

    def test_can_be_made_again(self):
        before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        words = ("A.mtx", "b.mtx", "--rtol", "1e-7", "--ranks", 2, "--run", "persistent", "--quiet", "--no-bandwidth")
        for transport in ("threads", "processes"):
            self.run_it("solve", *words, "--json", "r.json", "--transport", transport,
                        environment={"HOSTLESS_DEADLINE_SCALE": "2"})
            result = json.loads(self.content("r.json"))
            whence = result["provenance"]
            date = datetime.datetime.strptime(whence["date"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
            self.assertTrue(before <= date <= datetime.datetime.now(datetime.timezone.utc), date)
            self.assertEqual(whence["command"][1:], ["solve", *map(str, words), "--json", "r.json", "--transport", transport])
            self.assertEqual(whence["options_given"],
                             {"files": "A.mtx b.mtx", "--rtol": "1e-7", "--ranks": "2", "--run": "persistent",
                              "--quiet": "true", "--no-bandwidth": "true", "--json": "r.json", "--transport": transport})
            self.assertLess(whence["options_given"].keys(), whence["options"].keys())
            self.assertEqual([key for key, value in whence["options"].items() if value == ""], [])
            self.assertEqual((whence["options"]["--method"], whence["options"]["--manufactured"]), ("cg", "false"))
            self.assertEqual(whence["environment"], {
                name: value for name, value in os.environ.items() if name.startswith("HOSTLESS_") and value
                and name not in ("HOSTLESS_RANK", "HOSTLESS_SIZE", "HOSTLESS_RENDEZVOUS", "HOSTLESS_MPI")}
                | {"HOSTLESS_DEADLINE_SCALE": "2"})
            self.assertEqual(whence["host"], os.uname().nodename)
            self.assertIsNone(whence["mpi"])
            self.assertEqual(whence["versions"]["hostless"], result["program"].split()[1])
            self.assertIn("Linux", whence["versions"]["kernel"])
            self.assertRegex(whence["versions"]["compiler"], "^(GCC|Clang) [0-9]")
            # What was left open has been decided, and deadlines are those of the environment.
            settings = result["settings"]
            self.assertEqual((float(settings["rtol"]), settings["max_iterations"], settings["lanes"],
                              settings["later_deadline_s"]), (1e-7, str(10 * self.n), "2", "20"))
            self.assertEqual(settings["check_symmetry"], "yes")  # the reader has compared every entry

    def test_converged_is_true(self):
        result = self.solve("A.mtx", "b.mtx", "--rtol", "1e-12", "--output", "x.npy")
        self.assertEqual(result["status"], "converged")
        self.assertLessEqual(result["true_relative_residual"], 1e-12)
        self.assertLessEqual(self.residual(read_npy(self.content("x.npy"))), 1e-11 * norm(self.b))
        self.assertLessEqual(result["iterations"], self.n + 1)

    def test_times_and_bytes_belong_together(self):
        result = self.json_of("solve", "--generate", "poisson7", "--size", "16", "--ranks", 2)
        seconds = result["time_solve_s"]
        self.assertGreater(seconds, 0)
        self.assertGreater(result["time_input_s"], 0)
        self.assertGreater(result["time_setup_s"], 0)
        self.near(result["bytes_per_second"], result["bytes_per_iteration"] * result["iterations"] / seconds)
        self.near(result["share_of_bandwidth"], result["bytes_per_second"] / result["measured_bandwidth"])
        # fp64 values and vectors at the least; a plane of 16 x 16 values goes each way.
        self.assertGreater(result["bytes_per_iteration"], 8 * (result["entries"] / 2 + 3 * result["rows"]))
        self.assertEqual(result["halo_bytes_per_iteration"], 2 * 16 * 16 * 8)
        phases = result["time_by_phase_s"]
        self.assertLessEqual(phases["publish"] + phases["sweep"] + phases["rows"], 1.01 * seconds)
        self.assertGreater(result["peak_process_bytes"], 8 * (result["entries"] / 2 + 3 * result["rows"]))

    def test_communication_is_told_by_pairs(self):
        # Three slabs: a plane of 8 x 8 values goes each way; a Chebyshev polynomial multiplies once more a degree.
        words = ("--generate", "poisson7", "--size", 8, "--ranks", 3, "--ranks-per-node", 2, "--partition", "contiguous",
                 "--route", "direct")
        for more, exchanges in (((), 1), (("--preconditioner", "chebyshev"), 5)):
            with self.subTest(more=more):
                result = self.solve(*words, *more)
                told = result["communication"]
                self.assertEqual((told["exchanges_per_iteration"], told["node"]), (exchanges, [0, 0, 1]))
                pairs = told["pairs"]
                self.assertEqual((pairs["source"], pairs["target"]), ([0, 1, 1, 2], [1, 0, 2, 1]))
                self.assertEqual((pairs["messages"], pairs["bytes"]), ([1] * 4, [8 * 8 * 8] * 4))
                self.assertEqual(exchanges * sum(pairs["bytes"]), result["halo_bytes_per_iteration"])
        self.assertEqual(self.json_of("plan", *words)["pairs"], pairs)
        alone = self.solve("A.mtx", "b.mtx")["communication"]
        self.assertEqual(alone["node"], [0])
        self.assertEqual(alone["pairs"], {"source": [], "target": [], "messages": [], "bytes": []})

    def test_communication_of_many_ranks_is_left_to_the_plan(self):
        words = ("--generate", "poisson1d", "--size", 260)
        self.assertEqual(len(self.solve(*words, "--ranks", 64, "--max-iterations", 1, code=1)["communication"]["pairs"]["bytes"]), 2 * 63)
        self.assertIsNone(self.solve(*words, "--ranks", 65, "--max-iterations", 1, code=1)["communication"])

    def test_what_was_never_computed_is_null(self):
        self.write("b.mtx", market_vector([1e300] * self.n))
        result = self.solve("A.mtx", "b.mtx", code=1)
        self.assertEqual(result["status"], "not_finite")
        self.assertIn("1.000e+300", result["message"])
        self.assertIsNone(result["true_relative_residual"])
        self.assertIsNone(result["rhs_norm"])
        self.assertEqual((result["iterations"], result["bytes_per_second"]), (0, 0))

    def test_file_and_standard_output_say_the_same(self):
        self.run_it("solve", "A.mtx", "b.mtx", "--json", "result.json")
        from_file = json.loads(self.content("result.json"))
        direct = self.json_of("solve", "A.mtx", "b.mtx")
        for key in ("status", "iterations", "residual_history", "true_residual", "choices", "input"):
            self.assertEqual(from_file[key], direct[key], key)

    def test_the_summary_tells_people_the_same(self):
        text = self.run_it("solve", "--generate", "poisson2d", "--size", "20", "--boundary", "neumann", "--null-space",
                           "constant", "--manufactured", "--preconditioner", "jacobi", "--checkpoint", "c",
                           "--checkpoint-every", 10, "--output", "x.npy", "--json", "result.json").stdout
        result = json.loads(self.content("result.json"))
        self.assertTrue(text.startswith(f"converged after {result['iterations']} iterations\n"), text)
        for words in (f"|b - A x| / |b| = {result['true_relative_residual']:.3e} (true)",
                      f"|x - x*| / |x*| = {result['relative_error']:.3e}", "400 rows", "of b was constant and removed",
                      "B/s", f"checkpoints     {result['checkpoints']}", "solution        x.npy",
                      *result["choices"].values()):
            self.assertIn(words, text)

    def test_restarts_are_told(self):
        # A tolerance below the rounding: recurrence and true residual part.
        words = ("--generate", "poisson2d", "--size", 30, "--preconditioner", "jacobi", "--rtol", "1e-16")
        done = self.run_it("solve", *words, "--json", "result.json", "--no-bandwidth", code=1)
        result = json.loads(self.content("result.json"))
        self.assertGreaterEqual(result["restarts"], 1)
        self.assertEqual(result["status"], "stagnated")
        self.assertGreater(result["true_relative_residual"], 10 * result["recurrence_relative_residual"])
        self.assertIn(f", {result['restarts']} restarts from the true residual", done.stdout)


class Columns(Command):
    """Several right-hand sides from one file, into one file."""
    n, k = 11, 3

    def setUp(self):
        super().setUp()
        self.write("A.mtx", market(chain(self.n), self.n))
        self.columns = [[1.0 + math.sin(3.0 * i + c) for i in range(self.n)] for c in range(self.k)]
        for c, column in enumerate(self.columns):
            self.write(f"b{c}.mtx", market_vector(column))
        lines = "".join(f"{v!r}\n" for column in self.columns for v in column)
        self.write("B.mtx", f"%%MatrixMarket matrix array real general\n{self.n} {self.k}\n{lines}")

    def npy(self, name, fortran):
        values = ([v for column in self.columns for v in column] if fortran else
                  [column[i] for i in range(self.n) for column in self.columns])
        self.write_npy(name, f"{{'descr': '<f8', 'fortran_order': {fortran}, 'shape': ({self.n}, {self.k}), }}\n", values)

    def write_npy(self, name, header, values):
        (self.folder / name).write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode()
                                         + struct.pack(f"<{len(values)}d", *values))

    def test_each_is_the_solve_that_it_is_alone(self):
        self.npy("C.npy", False)
        self.npy("F.npy", True)
        alone = [self.solve("A.mtx", f"b{c}.mtx", "--ranks", "2", "--output", f"x{c}.npy") for c in range(self.k)]
        x = [v for c in range(self.k) for v in read_npy((self.folder / f"x{c}.npy").read_bytes())]
        for name in ("B.mtx", "C.npy", "F.npy"):
            result = self.solve("A.mtx", name, "--rhs-columns", self.k, "--ranks", "2", "--output", "X.npy")
            self.assertEqual(len(result["columns"]), self.k)
            for one, other in zip(result["columns"], alone):
                for key, value in one.items():
                    self.assertEqual(value, other[key], key)
            raw = (self.folder / "X.npy").read_bytes()
            self.assertIn(b"'fortran_order': True, 'shape': (11, 3)", raw)
            self.assertEqual(list(struct.unpack("<33d", raw[-8 * 33:])), x)
        self.run_it("solve", "A.mtx", "B.mtx", "X.npy", "--rhs-columns", "3", "--output", "X.mtx", "--quiet")
        self.assertEqual((self.folder / "X.mtx").read_text().splitlines()[1], "11 3")
        summary = self.run_it("solve", "A.mtx", "X.mtx", "--rhs-columns", "3").stdout
        self.assertEqual(len([line for line in summary.splitlines() if line.startswith("  column ")]), 3)

    def test_manufactured(self):
        result = self.solve("A.mtx", "--manufactured", "--rhs-columns", "8")
        self.assertLess(result["relative_error"], 1e-6)
        self.assertEqual(len(result["columns"]), 8)
        self.assertNotIn("columns", self.solve("A.mtx", "--manufactured"))

    def test_refusals(self):
        self.npy("C.npy", False)
        for file in ("B.mtx", "C.npy"):
            text = self.refused(3, "solve", "A.mtx", file)
            self.assertIn(file, text)
            self.assertIn("3 columns, and 1 right-hand side is solved for at once", text)
            self.assertIn("--rhs-columns 3", text)
            self.assertIn("3 columns, and 4 right-hand sides are", self.refused(3, "solve", "A.mtx", file, "--rhs-columns", "4"))
        self.assertIn("1 column, and 2 right-hand sides", self.refused(3, "solve", "A.mtx", "b0.mtx", "--rhs-columns", "2"))
        for words in (("b0.mtx", "B.mtx"), ("b0.mtx", "C.npy"), ("B.mtx", "b0.mtx", "--rhs-columns", "3")):
            text = self.refused(3, "solve", "A.mtx", *words)  # of the guess, which --rhs-columns alone does not help
            self.assertIn("a guess needs as many columns as b", text)
            self.assertIn("if b has", text)
        self.run_it("solve", "A.mtx", "b0.mtx", "--output", "x.petsc", "--quiet")
        self.assertIn("PETSc", self.refused(3, "solve", "A.mtx", "x.petsc", "--rhs-columns", "2"))
        self.assertIn("X.petsc: 3 columns (a vector of PETSc's has one)",
                      self.refused(2, "solve", "A.mtx", "B.mtx", "--rhs-columns", "3", "--output", "X.petsc"))
        self.assertIn("without a right-hand side", self.refused(2, "solve", "A.mtx", "--rhs-columns", "2"))
        self.assertIn("'9' (a whole number from 1 to 8 is needed)", self.refused(2, "solve", "A.mtx", "--rhs-columns", "9"))
        self.assertIn("a null space with 3 right-hand sides at once",
                      self.refused(2, "solve", "A.mtx", "B.mtx", "--rhs-columns", "3", "--null-space", "constant"))


if __name__ == "__main__":
    unittest.main()

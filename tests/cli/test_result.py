"""The JSON result of a solve: its keys, and values checked by arithmetic of our own."""

import datetime
import json
import math
import os
import unittest

from hostless_command import Command, chain, market, market_vector, norm, read_npy, times

TYPES = {
    "version": int, "program": str, "status": str, "message": str, "input": str, "rows": int, "entries": int,
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
            "ranks_per_node", "seed"}
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
                      " % of the ", f"checkpoints     {result['checkpoints']}", "solution        x.npy",
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


if __name__ == "__main__":
    unittest.main()

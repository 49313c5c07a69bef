"""bench/gpu/compare.py from end to end: the built hostless on the host against a rival in Python, right and wrong."""

import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import struct
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench" / "gpu"))

import compare  # noqa: E402
import contestants  # noqa: E402
import linear_system  # noqa: E402


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def chain(self, n):
        """tridiag(-1, 4, -1) in PETSc's bytes"""
        rows = [[(j, 4.0 if j == i else -1.0) for j in (i - 1, i, i + 1) if 0 <= j < n] for i in range(n)]
        entries = [entry for row in rows for entry in row]
        path = self.folder / "A.petsc"
        path.write_bytes(struct.pack(">4i", 1211216, n, n, len(entries)) +
                         struct.pack(f">{n}i", *map(len, rows)) +
                         struct.pack(f">{len(entries)}i", *(j for j, _ in entries)) +
                         struct.pack(f">{len(entries)}d", *(v for _, v in entries)))
        return path


class Driver(Folder):
    def compare(self, *words, fault="", plain=HERE / "rival.py", small=True):
        """(exit code, the table's rows as lists of cells, standard error, the JSON file)"""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, RIVAL_FAULT=fault), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err):
            code = compare.main([
                "--hostless", os.environ["HOSTLESS_COMMAND"], "--plain", str(plain), "--runs", "host",
                *(["--small"] if small else []), "--hostless-options", "", "--rivals", "plain,plain-device",
                "--repeats", "2", "--json", str(self.folder / "figures.json"), *words])
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.getvalue().splitlines()
                if line.startswith("|")]
        return code, rows, err.getvalue(), json.loads((self.folder / "figures.json").read_text())

    def test_all_four_matrices(self):
        code, rows, err, figures = self.compare("--formats", "auto,csr,sell")
        self.assertEqual((code, figures["failures"]), (0, []), err)
        self.assertEqual({len(row) for row in rows}, {10})
        self.assertEqual([row[0] for row in rows[2:]],
                         ["hex8, 3 dof"] * 5 + ["7-point"] * 5 + ["5-point"] * 5 + ["triangular 7-point"] * 5)
        self.assertEqual([m["rows"] for m in figures["matrices"]], [180, 512, 576, 400])
        for matrix in figures["matrices"]:
            residuals = [one["residual"] for one in matrix["contestants"]]
            self.assertLess(max(residuals), 1.001 * min(residuals))  # ten iterations: hardly any rounding
            self.assertEqual({one["iterations"] for one in matrix["contestants"]}, {10})

    def test_the_figures_of_a_line(self):
        code, rows, _, figures = self.compare("--only", "poisson7")
        self.assertEqual(code, 0)
        matrix = figures["matrices"][0]
        rival, _, ours = matrix["contestants"]
        self.assertEqual((matrix["rows"], matrix["nonzeros"]), (512, 7 * 512 - 6 * 64))
        moved = 12 * matrix["nonzeros"] + 116 * 512
        self.assertEqual(rival["bytes_per_iteration"], moved)
        self.assertAlmostEqual(rival["share"], moved / 100e-6 / 4.5e12, delta=1e-12)
        self.assertEqual(rows[2][1:5], ["cuSPARSE + cuBLAS, scalars on the host", "100.00", "110.00", "19.1 %"])
        self.assertEqual(rows[2][5], f"{100 / ours['us']['best']:.2f}")
        self.assertEqual(rows[4][1], "**hostless host, auto**")
        self.assertEqual(rows[4][5], "1.00")
        self.assertEqual(ours["details"]["clock"], "host")
        self.assertEqual(len(ours["details"]["us"]), 2)

    def test_every_fault_is_found(self):
        for fault, words in (("wrong", "residuals of"), ("lazy", "5 iterations instead of 10"),
                             ("boasts", "says its residual is"), ("ends", "exit code 1: rival: out of order"),
                             ("chatty", "its JSON is not as expected"), ("silent", "No such file")):
            with self.subTest(fault):
                code, rows, err, figures = self.compare("--only", "poisson2d", fault=fault)
                self.assertEqual(code, 1)
                self.assertIn(words, err)
                self.assertTrue(any(words in failure for failure in figures["failures"]))
                self.assertIn("**hostless host, auto**", [row[1] for row in rows])  # the others still have their say

    def test_a_rival_that_hangs_is_ended(self):
        code, rows, err, _ = self.compare("--only", "poisson2d", "--rivals", "plain", "--limit", "5", fault="hangs")
        self.assertEqual(code, 1)
        self.assertIn("took more than 5 s", err)
        self.assertTrue(rows[3][2].startswith("failed: took more than 5 s"), rows)

    def test_what_is_not_there_is_said(self):
        code, _, err, _ = self.compare("--only", "poisson2d", plain=self.folder / "missing")
        self.assertEqual(code, 1)
        self.assertIn("missing does not start: No such file", err)
        code, rows, err, _ = self.compare("--only", "poisson2d", "--hostless", str(self.folder / "nowhere"))
        self.assertEqual(code, 1)
        self.assertIn("nowhere does not start", err)
        self.assertEqual(rows[2][1], "all")

    def test_columns_and_generated_rows(self):
        code, _, err, figures = self.compare("--only", "poisson7", "--formats", "csr:32,csr:16", "--generated")
        self.assertEqual(code, 0, err)
        wide, narrow = figures["matrices"][0]["contestants"][2:]
        self.assertEqual(wide["name"], "hostless host, csr:32")
        self.assertIn("16-bit columns in 0 of 8", wide["details"]["choices"]["format"])
        self.assertIn("16-bit columns in 8 of 8", narrow["details"]["choices"]["format"])
        self.assertEqual(wide["residual"], narrow["residual"])

    def test_matrices_are_kept_and_checked(self):
        keep = ["--only", "poisson2d", "--folder", str(self.folder / "kept")]
        self.assertEqual(self.compare(*keep)[0], 0)
        matrix = self.folder / "kept" / "poisson2d-24-24.petsc"
        before = matrix.stat().st_mtime_ns
        self.assertEqual(self.compare(*keep)[0], 0)
        self.assertEqual(matrix.stat().st_mtime_ns, before)
        matrix.write_bytes(matrix.read_bytes()[:-8])
        code, _, err, _ = self.compare(*keep)
        self.assertEqual(code, 1)
        self.assertIn("Write it again", err)

    def test_a_missed_target_fails_where_asked(self):
        for must, asked, expected in ((1e9, True, 0), (1e-9, True, 1), (1e-9, False, 0)):
            problem = dataclasses.replace(compare.PROBLEMS[2], size=(24, 24), must=must)
            with self.subTest(must=must, asked=asked), mock.patch.object(compare, "PROBLEMS", [problem]), \
                    mock.patch.object(compare, "device", lambda: "none"):
                code, _, err, _ = self.compare("--iterations", "10", *(["--must"] if asked else []), small=False)
                self.assertEqual(code, expected, err)
                self.assertEqual("must 1e-09: missed" in err, expected == 1)

    def test_formats_of_a_gpu_take_part_in_the_runs_that_know_them(self):
        options = compare.arguments(["--hostless", "h", "--formats", "all", "--runs", "graph,persistent", "--rivals",
                                     "plain"])
        for problem in compare.PROBLEMS:
            ours = {one.name: [str(word) for word in one.command]
                    for one in compare.all_contestants(options, problem, ("A", "b", "x")) if one.ours}
            known = problem.formats.split(",")
            self.assertLessEqual({"auto", "diagonals-full", "csr", "merge", "vendor"}, set(known))
            self.assertEqual(set(ours), {f"hostless graph, {kind}" for kind in known} |
                             {f"hostless persistent, {kind}" for kind in known if kind not in ("merge", "vendor")})
            for name, command in ours.items():
                fast = name.endswith(("merge", "vendor"))
                self.assertEqual("--reduction fast" in " ".join(command), fast, name)

    def test_wrong_use(self):
        for words in (["--only", "poisson8"], ["--rivals", "acg"], ["--iterations", "0"], ["--must", "--small"]):
            with self.subTest(words), self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
                compare.main(["--hostless", "hostless", *words])
            self.assertEqual(ended.exception.code, 2)


def outcome(name="one", ours=False, best=10.0, residual=1e-3, error=1e-2, claimed=None, iterations=100):
    return contestants.Outcome(name, ours, {"best": best, "median": best, "worst": best}, iterations,
                               residual if claimed is None else claimed, 1e6, {}, residual, error)


class Judgement(unittest.TestCase):
    def test_answers_may_differ_by_rounding(self):
        self.assertEqual(compare.complaints([outcome(), outcome(residual=1.9e-3, error=1.2e-2)], 100), [])
        self.assertEqual(compare.complaints([outcome(residual=1e-13), outcome(residual=9e-11)], 100), [])

    def test_each_rule_alone(self):
        for other, words in ((outcome(residual=2.1e-3), "residuals of"), (outcome(error=1.3e-2), "errors of"),
                             (outcome(iterations=99), "99 iterations"), (outcome(claimed=1e-4), "says its residual"),
                             (outcome(claimed=math.nan), "says its residual"),
                             (outcome(residual=math.nan), "says its residual")):
            with self.subTest(words):
                found = compare.complaints([outcome(), other], 100)
                self.assertTrue(any(words in what for what in found), found)
        self.assertIn("no better than x = 0", compare.complaints([outcome(error=1.0)], 100)[0])
        self.assertIn("no better than x = 0", compare.complaints([outcome(error=math.nan)], 100)[0])

    def test_targets(self):
        problem = compare.PROBLEMS[0]
        best = lambda us: [outcome("rival", best=1.0), outcome("slow", True, 999.0), outcome("fast", True, us)]  # noqa
        self.assertEqual(compare.against_targets(problem, best(280.0)),
                         ("hex8, 3 dof: fast 280.00 us; must 300: reached, aim 265: missed", True))
        self.assertFalse(compare.against_targets(problem, best(300.5))[1])
        self.assertFalse(compare.against_targets(problem, [outcome("rival", best=1.0)])[1])

    def test_only_a_run_on_the_host_may_lack_the_device_clock(self):
        result = {"iterations": 4, "time_solve_s": 1.0, "choices": {"run": "graph"},
                  "device": {"us_per_iteration": 12.5}}
        self.assertEqual(contestants.microseconds(result), (12.5, "device"))
        del result["device"]
        with self.assertRaises(KeyError):
            contestants.microseconds(result)
        result["choices"]["run"] = "host"
        self.assertEqual(contestants.microseconds(result), (250000.0, "host"))

    def test_the_worst_process_of_hostless_counts(self):
        result = {"time_solve_s": 1.0, "true_relative_residual": 0.5, "recurrence_relative_residual": 0.5,
                  "bytes_per_iteration": 7, "status": "iteration_limit", "choices": {"run": "persistent"}}
        results = [{**result, "iterations": n, "device": {"us_per_iteration": us}}
                   for n, us in ((10, 3.0), (9, 5.0), (10, 1.0))]
        one = contestants.of_hostless(contestants.Contestant("ours", [], ours=True), results)
        self.assertEqual((one.iterations, one.us), (9, {"best": 1.0, "median": 3.0, "worst": 5.0}))


class Files(Folder):
    def test_a_matrix_times_a_vector(self):
        x = [1.0, -2.0, 0.5, 3.0, 8.0]
        expected = [6.0, -9.5, 1.0, 3.5, 29.0]
        matrix = linear_system.Matrix.read(self.chain(5))
        self.assertEqual((matrix.rows, matrix.nonzeros), (5, 13))
        self.assertEqual(list(matrix.times(x)), expected)
        with mock.patch.object(linear_system, "numpy", None):
            self.assertEqual(list(matrix.times(x)), expected)
        with mock.patch.object(linear_system, "SLAB", 4):  # a row or two at a time
            self.assertEqual(list(matrix.times(x)), expected)

    def test_vectors_keep_their_bytes(self):
        path = self.folder / "v.petsc"
        linear_system.write_vector(path, [1.5, -0.0, 1e-300])
        self.assertEqual(path.read_bytes(), struct.pack(">ii3d", 1211214, 3, 1.5, -0.0, 1e-300))
        self.assertEqual(list(linear_system.read_vector(path, 3)), [1.5, -0.0, 1e-300])
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["v.petsc"])

    def test_damage_is_refused(self):
        good = self.chain(5).read_bytes()
        path = self.folder / "damaged"
        for bytes_of_it, words in ((good[:-1], "bytes"), (good[:9], "ends too early"), (good + b"x", "bytes"),
                                   (good[:8] + struct.pack(">i", 6) + good[12:], "5 x 6"),
                                   (good[:16] + struct.pack(">i", 3) + good[20:], "do not fit its header"),
                                   (struct.pack(">ii", 1211214, 0), "ends too early"),
                                   (b"\0\0\0\1" + good[4:], "is no matrix of PETSc")):
            path.write_bytes(bytes_of_it)
            with self.subTest(words), self.assertRaisesRegex(linear_system.Wrong, words):
                linear_system.Matrix.read(path)
        path.write_bytes(struct.pack(">ii2d", 1211214, 2, 1, 2))
        with self.assertRaisesRegex(linear_system.Wrong, "2 numbers"):
            linear_system.read_vector(path, 3)

    def test_the_judge_knows_the_answer(self):
        judge = linear_system.Judge(linear_system.Matrix.read(self.chain(50)))
        self.assertAlmostEqual(linear_system.norm(judge.solution), 1.0, delta=1e-15)
        self.assertLess(judge.residual(judge.solution), 1e-16)
        self.assertEqual(judge.error(judge.solution), 0)
        self.assertEqual((judge.residual([0.0] * 50), judge.error([0.0] * 50)), (1, 1))
        self.assertTrue(min(judge.solution) < 0 < max(judge.solution))


if __name__ == "__main__":
    unittest.main()

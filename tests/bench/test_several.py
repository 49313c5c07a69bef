"""bench/gpu_several.py from end to end, with ranks of the processor in place of GPUs: right and wrong."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

import gpu_several  # noqa: E402
import gpu_solves  # noqa: E402

SMALL = {"tri": ["--generate", "poisson2d-tri", "--size", "30"], "hex8": ["--generate", "elasticity-hex8", "--size", "4"]}


class Several(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "new" / "figures.json"

    def measure(self, *words, fault=""):
        """(exit code, what was printed, the JSON file)"""
        out = io.StringIO()
        with mock.patch.dict(os.environ, GPU_FAULT=fault), mock.patch.dict(gpu_solves.MATRICES, SMALL), \
                contextlib.redirect_stdout(out):
            code = gpu_several.main(["--hostless", str(HERE / "as_if_gpus.py"), "--only", "tri,hex8", "--iterations", "12",
                                     "--check", "6", "--repeat", "2", "--json", str(self.file), *words])
        return code, out.getvalue(), json.loads(self.file.read_text())

    def test_all_combinations(self):
        code, text, figures = self.measure()
        self.assertEqual(code, 0, text)
        rows = figures["solves"]
        self.assertEqual({(row["matrix"], row["gpus"], row["run"]) for row in rows},
                         {(name, gpus, run) for name in SMALL for gpus in (1, 2, 4)
                          for run in ("persistent", "graph", "stream")})
        for row in rows:
            self.assertEqual((row["iterations"], row["differs_from"], row["efficiency"]), (12, "", 1.0))
            self.assertEqual(len(row["all_us"]), 2)
            self.assertGreater(row["true_relative_residual"], 0)
        self.assertEqual(text.count("bits equal"), len(rows))

    def test_goals_are_those_of_4_gpus(self):
        figures = self.measure("--runs", "graph,persistent", "--check", "0")[2]
        self.assertEqual(figures["goals"]["tri"], {"must_us": 10, "aim_us": 7, "best_us": 4.0, "run": "persistent",
                                                   "reached": "aim"})
        with mock.patch.dict(gpu_several.GOALS, {"tri": (4.0, 3.0), "hex8": (3.0, 2.0)}):
            code, text, figures = self.measure("--check", "0")
        self.assertEqual([figures["goals"][name]["reached"] for name in ("tri", "hex8")], ["must", "neither"])
        self.assertIn("must 4.0, aim 3.0: must reached", text)
        self.assertEqual(code, 0)
        self.assertEqual(self.measure("--gpus", "1,2", "--check", "0")[2]["goals"], {})

    def test_efficiency_needs_one_gpu(self):
        for row in self.measure("--gpus", "2", "--runs", "graph", "--check", "0")[2]["solves"]:
            self.assertIsNone(row["efficiency"])

    def test_other_bits_are_found(self):
        code, text, figures = self.measure("--gpus", "2", fault="graph:bits")
        self.assertEqual(code, 1)
        for row in figures["solves"]:
            self.assertEqual(row["differs_from"], "other runs, the processor" if row["run"] == "graph" else "")
        self.assertEqual(text.count("BITS DIFFER from other runs, the processor"), len(SMALL))

    def test_a_refused_solve_says_why_and_the_others_go_on(self):
        code, text, figures = self.measure("--gpus", "1", fault="stream:refuse")
        self.assertEqual(code, 1)
        self.assertEqual(text.count("hostless: no such GPU."), len(SMALL))
        self.assertEqual(sum("best_us" in row for row in figures["solves"]), 2 * len(SMALL))

    def test_oversubscribed(self):
        code, text, figures = self.measure("--gpus", "1,4", "--oversubscribe", "2", "--runs", "graph")
        self.assertEqual(code, 0, text)
        self.assertEqual([row["device"]["gpus"] for row in figures["solves"]], [1, 2] * len(SMALL))


if __name__ == "__main__":
    unittest.main()

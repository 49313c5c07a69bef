"""bench/gpu_paired.py: the order of solves, the bound, and what it calls slower, with solves that are made up."""

import contextlib
import io
import json
import math
import pathlib
import random
import statistics
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

import gpu_paired  # noqa: E402

PAIRS = 10


class Paired(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "figures.json"
        self.asked = []

    def compare(self, factor, *words, x_after=b"x", broken=False):
        """(exit code, what was printed, the JSON rows) where `after` takes `factor` times as long, and both drift alike."""
        def solve(binary, solve_words, folder, name):
            self.asked.append(binary)
            if broken and binary == "new":
                return None, None, "no GPU"
            us = 10.0 * (1 + 0.01 * math.floor((len(self.asked) - 1) / 2)) * (factor if binary == "new" else 1.0)
            return {"device": {"us_per_iteration": us}, "residual_history": [1.0], "true_residual": 0.5}, \
                x_after if binary == "new" else b"x", ""

        out = io.StringIO()
        with mock.patch.object(gpu_paired, "solve", solve), contextlib.redirect_stdout(out):
            code = gpu_paired.main(["--before", "old", "--after", "new", "--only", "tri,hex8", "--pairs", str(PAIRS), "--json",
                                    str(self.file), *words])
        return code, out.getvalue(), json.loads(self.file.read_text())["rows"]

    def test_equal_times_pass_and_are_taken_in_turns(self):
        code, text, rows = self.compare(1.0)
        self.assertEqual((code, len(rows)), (0, 2), text)
        self.assertEqual(self.asked[:8], ["old", "new", "new", "old"] * 2)
        self.assertEqual(len(self.asked), 2 * 2 * PAIRS)
        for row in rows:
            self.assertAlmostEqual(row["median"], 1.0)

    def test_slower_is_named(self):
        code, text, rows = self.compare(1.025)
        self.assertEqual((code, [row["problem"] for row in rows]), (1, ["slower", "slower"]), text)
        self.assertEqual(self.compare(1.015)[0], 0)
        self.assertEqual(self.compare(1.015, "--limit", "1.01")[0], 1)

    def test_other_bits_are_a_failure_unless_asked_for(self):
        code, text, rows = self.compare(1.0, x_after=b"y")
        self.assertEqual((code, rows[0]["problem"]), (1, "bits differ"), text)
        self.assertEqual(self.compare(1.0, "--other-bits", x_after=b"y")[0], 0)

    def test_a_solve_that_fails(self):
        code, text, rows = self.compare(1.0, broken=True)
        self.assertEqual((code, rows[0]["problem"]), (1, "after: no GPU"), text)

    def test_the_bound_covers_the_median_as_often_as_it_says(self):
        self.assertEqual(gpu_paired.upper_bound(range(10)), 8)  # P(at most 8 of 10 below the median) = 0.989, at most 7: 0.945
        self.assertEqual(gpu_paired.upper_bound([3, 1, 2]), 3)
        draws, true_median = random.Random(5), math.exp(1.0)
        covered = statistics.mean(gpu_paired.upper_bound([draws.lognormvariate(1.0, 0.5) for _ in range(10)]) >= true_median
                                  for _ in range(4000))
        self.assertAlmostEqual(covered, 0.989, delta=0.008)


if __name__ == "__main__":
    unittest.main()

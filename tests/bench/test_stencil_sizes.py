"""bench/stencil_sizes.py: its table and its JSON say the same, and it fails where a figure is too low or a call fails."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "stencil_sizes.py"


class Sizes(unittest.TestCase):
    def call(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "r.json"
            done = subprocess.run([sys.executable, str(SCRIPT), os.environ["HOSTLESS_COMMAND"], "--calls", "2", "--seconds", "1e-6", "--json", str(report),
                                   *words], capture_output=True, text=True, timeout=600)
            return done, json.loads(report.read_text()) if report.exists() else []

    def test_table(self):
        done, rows = self.call("--sizes", "16x20,9x8x7", "--types", "fp64", "--boundaries", "dirichlet,periodic")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "| cells | fp64 dirichlet | fp64 periodic |")
        self.assertEqual([(row["size"], row["boundary"]) for row in rows], [(size, boundary) for size in ("16x20", "9x8x7") for boundary in ("dirichlet", "periodic")])
        for line, pair in zip(lines[2:], (rows[:2], rows[2:])):
            for cell, row in zip(line.split(" | ")[1:], pair):
                self.assertAlmostEqual(row["speedup"], row["plain_us"] / row["stencil_us"], delta=1e-9)
                self.assertTrue(cell.startswith(f"{row['speedup']:.2f} ({row['paired']:.2f}; {row['ranks']}, "), line)

    def test_failures(self):
        self.assertEqual(self.call("--sizes", "16x16", "--types", "fp32", "--boundaries", "neumann", "--least", "1e9")[0].returncode, 1)
        done, rows = self.call("--sizes", "16x16", "--types", "fp8", "--boundaries", "neumann")
        self.assertEqual((done.returncode, "fp8" in rows[0]["problem"]), (1, True))


if __name__ == "__main__":
    unittest.main()

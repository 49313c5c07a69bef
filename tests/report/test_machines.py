"""Pictures of machines: `hostless machine figures` and what it draws."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path
import sys

from picture_case import COMMAND, MISSING, SURROUNDINGS, WHY_SKIPPED, json_of

from hostless import plots_of_machines


@unittest.skipIf(MISSING, WHY_SKIPPED)
class Machines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def drawn(self, *words):
        environment = {**SURROUNDINGS, "HOSTLESS_PYTHON": sys.executable}
        done = subprocess.run([COMMAND, "machine", *words], capture_output=True, text=True, cwd=self.folder, env=environment, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / "a.svg").read_text()

    def test_every_figure_is_drawn(self):
        for figure, words in (("2.5", "on_socket"), ("2.6", "40 ranks"), ("3.1", "host_to_device, 4 processes"), ("4.3", "2-Step 1, device-aware")):
            picture = self.drawn("figures", "--machine", "lassen", "--figure", figure, "--output", "a.svg")
            self.assertTrue(picture.startswith("<?xml"))
            self.assertIn(words, picture)
        self.assertEqual(os.listdir(self.folder), ["a.svg"])  # what was passed to Python is gone

    def test_machines_are_drawn(self):
        picture = self.drawn("show", "lassen", "--plot", "a.svg")
        for words in ("on_node", "32 ranks", "device_to_host, 1 process"):
            self.assertIn(words, picture)
        self.assertIn("frontier-ready", self.drawn("compare", "frontier", "frontier-ready", "--plot", "a.svg"))

    def test_lines_and_circles_are_those_of_the_data(self):
        report = json_of("machine", "figures", "--machine", "lassen", "--figure", "4.3")["pictures"][1]
        figure = plots_of_machines.plot_fields(report)
        cells = [cell for cell in figure.axes if cell.get_title()]
        self.assertEqual([cell.get_title() for cell in cells], [field["title"] for field in report["fields"]])
        for cell, field in zip(cells, report["fields"]):
            lines = [line for line in cell.get_lines() if not line.get_label().startswith("_")]
            self.assertEqual([list(line.get_ydata()) for line in lines], [line["y"] for line in field["lines"]])
            self.assertEqual([line.get_linestyle() for line in lines], ["--" if line["dashed"] else "-" for line in field["lines"]])
            circles = sum(len(line.get_xdata()) for line in cell.get_lines() if line.get_label().startswith("_"))
            self.assertEqual(circles, len(field["lines"][0]["x"]))

    def test_what_is_no_figure(self):
        for wrong in ({}, {"fields": []}, {"fields": 1}):
            with self.assertRaises(ValueError):
                plots_of_machines.plot_fields(wrong)


if __name__ == "__main__":
    unittest.main()

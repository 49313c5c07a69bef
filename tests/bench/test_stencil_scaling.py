"""bench/stencil_scaling.py: grids that grow along alternating axes, what it measures and, with matplotlib, its pictures."""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parents[1] / "bench" / "stencil_scaling.py"
sys.path.insert(0, str(SCRIPT.parent))

import stencil_scaling  # noqa: E402

BRIEF = ("--steps", "4", "--repeat", "2", "--ranks", "1,2")


class Scaling(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *words, code=0):
        done = subprocess.run([sys.executable, str(SCRIPT), os.environ["HOSTLESS_COMMAND"], *map(str, words)], capture_output=True, text=True,
                              timeout=600)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def measured(self, *words):
        self.call(*words, "--json", self.folder / "r.json")
        return json.loads((self.folder / "r.json").read_text())

    def test_the_program_may_be_a_word_of_the_path(self):
        (self.folder / "there").mkdir()
        (self.folder / "there" / "hostless").symlink_to(os.environ["HOSTLESS_COMMAND"])
        environment = {**os.environ, "PATH": f"{self.folder / 'there'}:{os.environ['PATH']}"}
        for script, words, code in ((SCRIPT, ("weak", "--sizes", "8", *BRIEF), 0),
                                    (SCRIPT.with_name("stencil_machines.py"), ("--delay-us", "-1"), 2),
                                    (SCRIPT.with_name("neighbor_machines.py"), ("--help",), 0)):
            done = subprocess.run([sys.executable, str(script), "hostless", *words], capture_output=True, text=True, timeout=600,
                                  env=environment, cwd=self.folder)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        found = subprocess.run([sys.executable, "-c", "import emulated_machines as m; print(m.parser_of('').parse_args(['hostless']).hostless)"],
                               capture_output=True, text=True, timeout=600, cwd=SCRIPT.parent, env=environment).stdout.strip()
        self.assertTrue(os.path.samefile(found, os.environ["HOSTLESS_COMMAND"]), found)

    def test_grids_double_along_alternating_axes(self):
        self.assertEqual([stencil_scaling.grid_of(8, ranks) for ranks in (1, 2, 4, 8, 16)], [[8, 8], [16, 8], [16, 16], [32, 16], [32, 32]])

    def test_parts_are_dealt_out_to_gpus_in_order(self):
        def who(gpus, parts):
            return stencil_scaling.who(argparse.Namespace(gpus=gpus), parts)

        self.assertEqual(who(0, 4), ["--ranks", "4"])
        self.assertEqual([who(2, parts) for parts in (1, 2, 4)], [["--gpus", "1"], ["--gpus", "0,1"], ["--gpus", "0,0,1,1"]])
        self.assertEqual(who(4, 8), ["--gpus", "0,0,1,1,2,2,3,3"])
        self.assertIn("--gpus with latency", self.call("latency", "--gpus", 2, code=2).stderr)

    def test_weak(self):
        rows = self.measured("weak", "--sizes", "16,24", *BRIEF)["rows"]
        fields = [(f"{n} x {n} cells a rank{more}", ranks) for n in (16, 24) for ranks, more in ((1, ""), (2, ""), (2, ", nothing computed"))]
        self.assertEqual([(row["field"], row["at"], row["variant"]) for row in rows], [(*field, variant) for field in fields for variant in ("copy", "overlap", "blocked")])
        self.assertTrue(all(row["best_us"] > 0 for row in rows))

    def test_strong(self):
        rows = self.measured("strong", "--sizes", "12", "--variants", "copy", *BRIEF)["rows"]
        self.assertEqual([(row["field"], row["at"]) for row in rows], [("12 x 12 x 12 cells", 1), ("12 x 12 x 12 cells", 2),
                                                                       ("12 x 12 x 12 cells, nothing computed", 2)])

    def test_latency(self):
        for _ in range(10):  # what else a busy machine does adds to the short latency, too
            content = self.measured("latency", "--sizes", "512", "--latencies", "5,20000", "--variants", "copy,blocked", *BRIEF)
            depths = [row["depth"] for row in content["rows"] if row["variant"] == "blocked"]
            if depths[0] < depths[1]:
                break
        self.assertLess(depths[0], depths[1])
        self.assertEqual([row["at"] for row in content["rows"]], [5, 5, 20000, 20000])

    def test_what_fails_is_said(self):
        self.assertIn("is none", self.call("weak", "--sizes", "8", "--variants", "ours", code=1).stderr)
        self.assertIn("ranks double", self.call("weak", "--ranks", "3", code=2).stderr)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_pictures(self):
        for what, fields in (("weak", ["16 x 16 cells a rank"]), ("strong", ["9 x 9 x 9 cells", "9 x 9 x 9 cells, nothing computed"]),
                             ("latency", ["64 x 64 cells, two ranks: depth", "64 x 64 cells, two ranks"])):
            size = fields[0].split(" ")[0]
            self.call(what, "--sizes", size, "--latencies", "10,100", *BRIEF, "--json", self.folder / f"{what}.json")
            for name in ("a.svg", "b.svg") if what == "weak" else ("a.svg",):
                self.call(what, "--draw", self.folder / f"{what}.json", "--picture", self.folder / name)
            text = (self.folder / "a.svg").read_text()
            if what == "weak":
                self.assertEqual(text, (self.folder / "b.svg").read_text())
            for words in (*fields, "Baseline Copy", "ours: halos"):
                self.assertIn(words, text)


    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_a_variant_looks_alike_in_all_fields(self):
        def row(field, label):
            return {"field": field, "at": 1, "variant": label, "label": label, "best_us": 2.0, "depth": 1}

        content = {"what": "strong", "cores": 2, "rows": [row("one", "alone"), row("one", "both"), row("two", "both"), row("two", "late")]}
        file = self.folder / "drawn.json"
        file.write_text(json.dumps(content))
        self.call("strong", "--draw", file, "--picture", self.folder / "a.svg")
        text = (self.folder / "a.svg").read_text()
        colours = [text.count(colour) > 0 for colour in ("#1f77b4", "#ff7f0e", "#2ca02c")]
        self.assertEqual(colours, [True, True, True])
        self.assertIn("late", text)


if __name__ == "__main__":
    unittest.main()

"""bench/plot_scaling.py: which points of which files become which line, and, with matplotlib, the picture."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

import plot_scaling  # noqa: E402
from plot_scaling import plots  # noqa: E402

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


def bench_row(gpus, run, us, **more):
    return {"matrix": "poisson2d 9 x 9 nodes: more", "method": "cg", "run": run, "ranks": max(gpus, 1), "gpus": gpus,
            "best_us": us, "choices": {}, **more}


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, report):
        path = self.folder / name
        path.write_text(json.dumps(report))
        return str(path)

    def drawn(self, *words):
        """(the fields that were drawn, whether scaling is weak)"""
        with mock.patch.object(plots, "draw_fields") as draw, mock.patch.object(plots, "write_svg"), \
                contextlib.redirect_stdout(io.StringIO()):
            draw.return_value.axes = []
            self.assertEqual(plot_scaling.main(list(words)), 0)
        return draw.call_args.args[:2]

    def test_files_of_bench_solve(self):
        one = self.write("1.json", {"transport": "threads", "solves": [
            bench_row(1, "persistent", 8.0), bench_row(1, "graph", 9.0), bench_row(0, "host", 500.0)]})
        two = self.write("2.json", {"transport": "threads", "solves": [
            bench_row(2, "persistent", 5.0), bench_row(2, "persistent", 4.5), bench_row(2, "graph", 0, error="no")
            | {"best_us": 6.0}, {"matrix": "poisson2d", "run": "stream", "gpus": 2, "ranks": 2, "error": "refused"},
            bench_row(0, "host", 300.0, ranks=2), bench_row(2, "graph", 7.0, gpu_transport="nccl")]})
        fields, weak = self.drawn(one, two)
        self.assertFalse(weak)
        self.assertEqual(fields, {("poisson2d 9 x 9 nodes: more", "GPUs"): {
            ("cg", "persistent", "peer"): {1: 8.0, 2: 4.5}, ("cg", "graph", "peer"): {1: 9.0, 2: 6.0},
            ("cg", "graph", "nccl"): {2: 7.0}}})

    def test_files_of_gpu_several(self):
        row = {"matrix": "tri", "gpus": 2, "run": "graph", "best_us": 3.0, "choices": {"method": "cg"}}
        fields, _ = self.drawn(self.write("s.json", {"solves": [row, {**row, "matrix": "hex8", "gpus": 1,
                                                                      "choices": {}}], "goals": {}}))
        self.assertEqual(fields, {("tri", "GPUs"): {("cg", "graph", "peer"): {2: 3.0}},
                                  ("hex8", "GPUs"): {("cg", "graph", "peer"): {1: 3.0}}})

    def test_ranks_of_the_processor(self):
        made = self.folder / "made.json"
        for ranks in (1, 2):
            subprocess.run([os.environ["HOSTLESS_COMMAND"], "bench", "solve", "--generate", "poisson2d", "--size", "20",
                            "--iterations", "5", "--ranks", str(ranks), "--transport", "processes", "--runs", "host",
                            "--methods", "cg", "--json", str(made)], check=True, capture_output=True)
            made.rename(self.folder / f"{ranks}.json")
        fields, _ = self.drawn(str(self.folder / "1.json"), str(self.folder / "2.json"))
        ((matrix, counted), lines), = fields.items()
        self.assertEqual(counted, "ranks")
        self.assertEqual({line: set(times) for line, times in lines.items()}, {("cg", "host", "processes"): {1, 2}})

    def test_choices(self):
        rows = [bench_row(1, run, 2.0, method=method, matrix=matrix) for run in ("graph", "stream")
                for method in ("cg", "pipelined-cg") for matrix in ("tri", "five")]
        path = self.write("all.json", {"solves": rows})
        fields, _ = self.drawn(path, "--matrices", "fi", "--methods", "cg", "--runs", "graph,stream")
        self.assertEqual(fields, {("five", "GPUs"): {("cg", run, "peer"): {1: 2.0} for run in ("graph", "stream")}})
        fields, weak = self.drawn(path, "--weak", "grown", "--runs", "graph")
        self.assertEqual((list(fields), weak), ([("grown", "GPUs")], True))

    def test_the_ideal(self):
        lines = {"a": {1: 8.0, 4: 3.0}, "b": {1: 6.0, 2: 4.0}}
        self.assertEqual(plots.ideal(lines, False), [(1, 6.0), (2, 3.0), (4, 1.5)])
        self.assertEqual(plots.ideal(lines, True), [(1, 6.0), (2, 6.0), (4, 6.0)])

    def test_what_cannot_be_drawn(self):
        (self.folder / "text.json").write_text("none")
        for words in ([str(self.folder / "text.json")], [str(self.folder / "no.json")], [self.write("l.json", [])],
                      [self.write("other.json", {"pingpong": []})], [self.write("row.json", {"solves": [{}]})]):
            with self.assertRaisesRegex(SystemExit, "(no solves|cannot be read|no JSON object).*Give a file of `hostless bench solve"):
                plot_scaling.main(words)
        with self.assertRaisesRegex(SystemExit, "no solve with a time is left"):
            plot_scaling.main([self.write("empty.json", {"solves": []})])
        with contextlib.redirect_stderr(io.StringIO()) as told, self.assertRaises(SystemExit):
            plot_scaling.main(["some.json", "--output", "picture.png"])
        self.assertIn("picture.png (pictures are SVG)", told.getvalue())

    def test_without_matplotlib(self):
        path = self.write("1.json", {"solves": [bench_row(1, "graph", 2.0)]})
        with mock.patch.dict(sys.modules, {"matplotlib": None}), self.assertRaisesRegex(SystemExit, "pip install matplotlib"):
            plot_scaling.main([path, "--output", str(self.folder / "x.svg")])

    @unittest.skipUnless(HAS_MATPLOTLIB, "matplotlib is not installed: nothing is drawn")
    def test_the_picture(self):
        path = self.write("all.json", {"solves": [bench_row(gpus, run, 8.0 / gpus, matrix=matrix) for gpus in (1, 2, 4)
                                                  for run in ("graph", "stream") for matrix in ("tri", "five", "hex8")]})
        pictures = []
        for name in ("one.svg", "two.svg"):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                plot_scaling.main([path, "--output", str(self.folder / name)])
            self.assertIn("3 fields, 6 lines", out.getvalue())
            pictures.append((self.folder / name).read_bytes())
        self.assertEqual(*pictures)
        for words in (b"tri", b"five", b"hex8", b"cg, graph, peer", b"shared out evenly", b"microseconds an iteration"):
            self.assertIn(words, pictures[0])


if __name__ == "__main__":
    unittest.main()

"""bench/plot_papers.py: whose times become which speedups, what is refused, and, with matplotlib, the series of the pictures."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

import plot_papers  # noqa: E402
from plot_papers import plots_of_papers  # noqa: E402

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
SINGLE = ("single-standard", "Single GPU Standard")
CONTROLLED = ("cpu-controlled-standard", "CPU-Controlled Standard CG")
FREE = ("cpu-free-standard", "CPU-Free Standard CG")


def run(variant, number, us, worst=None, method="cg"):
    return {"variant": variant[0], "label": variant[1], "method": method, "gpus": number, "ranks": number, "best_us": us,
            "best_s": us * 1e-3, "interval_us": [us, worst or us]}


def report(table="001-1", **matrices):
    return {"bench": "papers", "table": table, "matrices": [{"name": name, "runs": runs} for name, runs in matrices.items()]}


ONE = report(large=[run(SINGLE, 1, 80.0, 100.0), run(FREE, 1, 100.0)], small=[run(SINGLE, 1, 10.0), run(FREE, 1, 5.0)])
TWO = report(large=[run(CONTROLLED, 2, 50.0), run(FREE, 2, 40.0, 50.0), {"variant": "x", "error": "no", "gpus": 2}],
             small=[run(CONTROLLED, 2, 20.0), run(FREE, 2, 4.0)])


class Speedups(unittest.TestCase):
    def speedups(self, *sources, figure="001-7", matrices=()):
        return plots_of_papers.speedups_of(sources, plots_of_papers.FIGURES[figure], matrices)

    def test_are_over_one_gpu(self):
        found, counted = self.speedups(ONE, TWO)
        self.assertEqual(counted, "GPUs")
        self.assertEqual(found["large"], {"Single GPU Standard": {1: (1.0, 0.8)},
                                          "CPU-Controlled Standard CG": {2: (1.6, 1.6)},
                                          "CPU-Free Standard CG": {1: (0.8, 0.8), 2: (2.0, 1.6)}})
        self.assertEqual(found["small"]["CPU-Controlled Standard CG"], {2: (0.5, 0.5)})
        self.assertEqual(list(self.speedups(ONE, TWO, matrices=["small"])[0]), ["small"])

    def test_of_000_are_of_whole_solves_with_the_standard_method(self):
        base, mpi = ("acg-standard", "aCG (standard)"), ("acg-mpi", "aCG (MPI)")
        one = report("000-2", Serena=[run(base, 1, 8.0) | {"best_s": 6.0}])
        two = report("000-1", Serena=[run(mpi, 2, 8.0) | {"best_s": 2.0},
                                      run(("p", "pipelined"), 2, 1.0, method="pipelined-cg")])
        self.assertEqual(self.speedups(one, two, figure="000-1")[0]["Serena"],
                         {"aCG (standard)": {1: (1.0, 1.0)}, "aCG (MPI)": {2: (3.0, 3.0)}})

    def test_what_is_refused(self):
        on_ranks = report(large=[run(SINGLE, 0, 1.0) | {"ranks": 1}])
        for sources, matrices, text in (((TWO,), (), "Measure with --gpus 1 too"), ((ONE,), ("huge",), "huge: not measured"),
                                        ((report("000-1"),), (), "of another"), ((report(),), (), "no run with a time"),
                                        (({"bench": "papers", "table": "001-1"},), (), "KeyError"),
                                        ((ONE, on_ranks), (), "do not belong into one picture")):
            with self.assertRaisesRegex(ValueError, text):
                self.speedups(*sources, matrices=matrices)
        for wrong in (None, 0, -1.0, "a", float("nan"), 10**400):
            for key in ("best_us", "interval_us"):
                bad = report(large=[run(SINGLE, 1, 80.0) | {key: [1.0, wrong] if key == "interval_us" else wrong}])
                with self.assertRaisesRegex(ValueError, "no measurement"):
                    self.speedups(bad)
        alone = {key: value for key, value in run(SINGLE, 2, 1.0).items() if not key.startswith(("best", "interval"))}
        with self.assertRaisesRegex(ValueError, "no run with a time"):  # of --no-compute
            self.speedups(report(large=[alone]))
        with self.assertRaisesRegex(ValueError, "no figure 9"):
            plots_of_papers.plot_papers([ONE], "9")

    def test_a_large_a_medium_and_a_small_matrix_are_selected(self):
        self.assertEqual(list(plots_of_papers.selected(dict.fromkeys("abcdefg"))), ["a", "d", "g"])
        self.assertEqual(list(plots_of_papers.selected(dict.fromkeys("ab"))), ["a", "b"])


@unittest.skipUnless(HAS_MATPLOTLIB, "matplotlib is missing")
class Pictures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def drawn(self, figure, *reports):
        files = [self.folder / f"{k}.json" for k in range(len(reports))]
        for file, one in zip(files, reports):
            file.write_text(json.dumps(one))
        output = self.folder / "picture.svg"
        self.assertEqual(plot_papers.main([*map(str, files), "--figure", figure, "--output", str(output)]), 0)
        return output.read_text()

    def test_every_figure_has_its_series(self):
        for figure in ("001-7", "001-8"):
            text = self.drawn(figure, ONE, TWO)
            for series in (CONTROLLED[1], FREE[1], "large", "small", "speedup over"):
                self.assertIn(series, text)
            self.assertEqual(text, self.drawn(figure, ONE, TWO))
        self.assertIn("2 GPUs", self.drawn("001-7", ONE, TWO))

    def test_bars_are_as_high_as_the_speedups(self):
        axes = plots_of_papers.plot_papers([ONE, TWO], "001-7").axes[0]
        heights = [[bar.get_height() for bar in bars if hasattr(bar, "get_height")]
                   for bars in axes.containers if bars.get_label() in (CONTROLLED[1], FREE[1])]
        self.assertEqual(heights, [[1.6, 0.5], [2.0, 2.5]])

    def overlapping(self, variant, share, by_runs=None):
        runs = None if by_runs is None else {"overlapped": by_runs}
        return run(variant, 2, 40.0) | {"median_us": 50.0, "exposed_us": 10.0, "overlapped": share, "overlap": {"by_runs": runs}}

    def test_shares_that_overlapped(self):
        two = report(large=[self.overlapping(CONTROLLED, 0.25), self.overlapping(FREE, 0.75, 0.5)],
                     small=[self.overlapping(FREE, 0.0), run(CONTROLLED, 2, 9.0)])
        shares, times = plots_of_papers.plot_papers([ONE, two], "001-1").axes
        heights = [[bar.get_height() for bar in bars] for bars in shares.containers]
        self.assertEqual(heights, [[25.0], [75.0, 0.0]])
        self.assertEqual([list(line.get_ydata()) for line in shares.lines], [[], [50.0]])
        self.assertEqual([[bar.get_height() for bar in bars] for bars in times.containers], [[40.0], [10.0], [40.0] * 2, [10.0] * 2])
        self.assertIn("per cent overlapped", self.drawn("001-1", ONE, two))
        with self.assertRaisesRegex(ValueError, "Measure several ranks with --overlap"):
            plots_of_papers.plot_papers([ONE, TWO], "001-1")

    def test_of_what_the_command_measured(self):
        reports = []
        for ranks in ("1", "2"):
            done = subprocess.run([os.environ["HOSTLESS_COMMAND"], "bench", "papers", "--rows", "300", "--iterations", "9",
                                   "--only", "ldoor,hood", "--ranks", ranks, "--json", "-"], capture_output=True, text=True,
                                  check=True, timeout=600)
            reports.append(json.loads(done.stdout))
        text = self.drawn("001-7", *reports)
        for series in ("2 ranks", "ldoor", "hood", "CPU-Controlled Pipelined CG", "CPU-Free Pipelined CG"):
            self.assertIn(series, text)
        self.assertIn("CPU-Free Pipelined CG", self.drawn("001-1", *reports))  # the processor's are told without --overlap


if __name__ == "__main__":
    unittest.main()

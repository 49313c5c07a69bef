"""Pictures of queues by bench/plot_papers.py: which times become what, what is refused, and what the command measures here."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

import plot_papers  # noqa: E402
from plot_papers import plots_of_papers, plots_of_queues  # noqa: E402

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


def times(us):
    return {"best_us": us * 0.5, "median_us": us, "worst_us": us * 2}


def pings(queue, *rows):
    return {"bench": "pingpong", "queue": queue, "transport": "threads", "ranks": 2, "pingpong": list(rows)}


def ping(size, by, us, **more):
    return {"first": 0, "second": 1, "bytes": size, "by": by, **times(us), **more}


def life(ranks, along, size=(64, 32), queue="threads", transport="threads", **of):
    rows = [{"by": by.split("_")[0], "gliders": "conserved", **times(us), **({"run": by.split("_")[1]} if "_" in by else {})} for by, us in of.items()]
    return {"bench": "life", "queue": queue, "transport": transport, "ranks": ranks, "ranks_along": along, "size": list(size), "life": rows}


ONE = life(1, [1, 1], standard=40.0, host=20.0)
TWO = life(2, [2, 1], standard=10.0, ready=8.0, host=16.0)
SMALL = [life(1, [1, 1], (8, 8), host=4.0), life(2, [1, 2], (8, 8), host=4.0, standard=8.0)]


class Numbers(unittest.TestCase):
    def test_round_trips_are_two_ways(self):
        found = plots_of_queues.ping_pongs_of([pings("threads", ping(8, "standard", 3.0), ping(64, "standard", 4.0), ping(8, "host", 6.0),
                                                     ping(8, "standard", 99.0) | {"second": 2}),
                                               pings("peer", ping(8, "ready", 3.0, of="round trip", run="graph"))])
        self.assertEqual(found, {"threads, standard send": {8: (1.5, 3.0, 6.0), 64: (2.0, 4.0, 8.0)}, "threads, host": {8: (3.0, 6.0, 12.0)},
                                 "peer, ready send, graph": {8: (0.75, 1.5, 3.0)}})

    def test_speedups_are_over_the_host_on_one_rank(self):
        found = plots_of_queues.speedups_of(plots_of_queues.lives_of([ONE, TWO, *SMALL]))
        self.assertEqual(found[(64, 32)], {"threads, standard send": {1: (0.25, 0.5, 1.0), 2: (1.0, 2.0, 4.0)},
                                           "threads, host": {1: (0.5, 1.0, 2.0), 2: (0.625, 1.25, 2.5)},
                                           "threads, ready send": {2: (1.25, 2.5, 5.0)}})
        self.assertEqual(found[(8, 8)]["threads, standard send"], {2: (0.25, 0.5, 1.0)})
        self.assertEqual(plots_of_queues.table_of([ONE, TWO]).splitlines()[2:],
                         ["| 64 x 32 cells | threads, standard send | 2 | 2 |", "| 64 x 32 cells | threads, host | 1.25 | 2 |",
                          "| 64 x 32 cells | threads, ready send | 2.5 | 2 |"])

    def test_improvements_are_over_the_same_ranks(self):
        lives = plots_of_queues.lives_of([ONE, TWO, *SMALL])
        self.assertEqual(plots_of_queues.improvements_of(lives), {((64, 32), "threads, standard send"): {32.0: 60.0},
                                                                  ((64, 32), "threads, ready send"): {32.0: 100.0},
                                                                  ((8, 8), "threads, standard send"): {6.0: -50.0}})
        with self.assertRaisesRegex(ValueError, "Measure with --ranks 2"):
            plots_of_queues.improvements_of(plots_of_queues.lives_of([ONE]))

    def test_streams_are_held_against_mpi_where_it_is_there(self):
        streams = life(2, [1, 2], queue="peer", host_host=50.0, standard_graph=10.0)
        mpi = life(2, [1, 2], queue=None, transport="mpi", host_host=20.0)
        for files, share in (([streams], 400.0), ([streams, mpi], 100.0)):
            self.assertEqual(plots_of_queues.improvements_of(plots_of_queues.lives_of(files)),
                             {((64, 32), "peer, standard send, graph"): {40.0: share}})

    def test_what_is_refused(self):
        alone = {key: value for key, value in pings("threads").items() if key != "queue"}
        lost = life(1, [1, 1], host=1.0)
        lost["life"][0]["gliders"] = "LOST"
        for figure, sources, text in (("003-5", [ONE], "of another"), ("003-5", [alone], "without a queue"), ("003-5", [], "nothing can be drawn"),
                                      ("003-5", [pings("threads")], "nothing can be drawn"), ("003-6", [pings("threads")], "of another"),
                                      ("003-6", [TWO], "Measure with --ranks 1 too"), ("003-6", [lost], "lost gliders"),
                                      ("003-6", [ONE | {"size": [64]}], "no measurement"), ("003-8", [ONE | {"life": [{}]}], "KeyError"),
                                      ("003-5", [{"queue": "threads"}], "KeyError"), ("003-9", [ONE], "no figure 003-9")):
            with self.subTest(figure=figure, text=text), self.assertRaisesRegex(ValueError, text):
                plots_of_papers.plot_papers(sources, figure)
        for wrong in (None, 0, -1.0, "a", float("nan"), 10**400, float("inf")):
            for key in ("best_us", "median_us", "worst_us"):
                with self.assertRaisesRegex(ValueError, "no measurement"):
                    plots_of_papers.plot_papers([pings("threads", ping(8, "host", 1.0) | {key: wrong})], "003-5")
        with self.assertRaisesRegex(ValueError, "of no matrix"):
            plots_of_papers.plot_papers([ONE], "003-6", ["ldoor"])


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
        output, said = self.folder / "picture.svg", io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(plot_papers.main([*map(str, files), "--figure", figure, "--output", str(output)]), 0)
        return output.read_text(), said.getvalue()

    def test_lines_are_the_speedups(self):
        for figure, fields in (("003-6", 4), ("003-7", 2)):
            axes = plots_of_papers.plot_papers([ONE, TWO, *SMALL], figure).axes
            self.assertEqual(len(axes), fields)
            lines = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes[0].lines}
            self.assertEqual(lines, {"threads, standard send": ([1, 2], [0.5, 2.0]), "threads, host": ([1, 2], [1.0, 1.25]),
                                     "threads, ready send": ([2], [2.5]), "as many times": ([1, 2], [1, 2])})
            text, said = self.drawn(figure, ONE, TWO, *SMALL)
            self.assertIn("| 64 x 32 cells | threads, ready send | 2.5 | 2 |", said)
            self.assertEqual(text, self.drawn(figure, ONE, TWO, *SMALL)[0])
        share, = plots_of_papers.plot_papers([ONE, TWO], "003-8").axes
        self.assertEqual([list(line.get_ydata()) for line in share.lines if line.get_label().startswith("threads")], [[60.0], [100.0]])

    def test_latency_and_bandwidth(self):
        latency, bandwidth = plots_of_papers.plot_papers([pings("threads", ping(1000, "host", 2.0))], "003-5").axes
        self.assertEqual([list(line.get_ydata()) for cell in (latency, bandwidth) for line in cell.lines], [[2.0], [0.5]])
        self.assertEqual((latency.get_xscale(), latency.get_yscale()), ("log", "log"))

    def measured(self, *words, transport):
        command = [os.environ["HOSTLESS_COMMAND"], "bench", *words, "--transport", transport, "--steps", "4", "--repeat", "3", "--warm-up", "1",
                   "--json", "-"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600,
                              env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                   "OMPI_MCA_rmaps_base_oversubscribe": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{"):])[0]

    def figures_of(self, kind, transport):
        text, _ = self.drawn("003-5", self.measured("pingpong", "--queue", kind, "--ranks", "2", "--sizes", "8,256,65536", transport=transport))
        for series in (f"{kind}, standard send", f"{kind}, ready send", f"{kind}, host", "GB/s"):
            self.assertIn(series, text)
        lives = [self.measured("life", "--queue", kind, "--ranks", str(ranks), "--size", size, transport=transport)
                 for ranks in (1, 2) for size in ("16,16", "64,32")]
        for figure in plots_of_queues.FIGURES[1:]:
            text, said = self.drawn(figure, *lives)
            self.assertIn(f"{kind}, ready send", text)
            self.assertEqual(said.count("| 16 x 16 cells |"), 0 if figure == "003-8" else 3)

    def test_of_what_threads_measured(self):
        self.figures_of("threads", "threads")

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "no Open MPI on this machine")
    def test_of_what_mpi_measured(self):
        self.figures_of("mpi", "mpi")


if __name__ == "__main__":
    unittest.main()

"""python/hostless/plots.py: which numbers are drawn, and, with matplotlib, that they are what the picture holds."""

import io
import json
import math
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import picture_case
from picture_case import MISSING, WHY_SKIPPED

from hostless import plots  # the checkout's


class Numbers(unittest.TestCase):
    def written(self, content):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "some.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def test_files_dictionaries_and_objects_say_the_same(self):
        result = picture_case.solved()
        path = self.written(result)
        thing = mock.Mock(spec=["to_json"], to_json=lambda: json.dumps(result))
        seen = [plots.history_of(source)[1:] for source in (path, str(path), result, thing)]
        self.assertEqual(seen, seen[:1] * 4)
        self.assertEqual(seen[0][0], [norm / result["rhs_norm"] for norm in result["residual_history"]])
        self.assertEqual(seen[0][1], result["true_relative_residual"])

    def test_labels(self):
        result = {"residual_history": [2.0, 1.0], "choices": {"method": "cg", "preconditioner": "jacobi"}}
        self.assertEqual(plots.history_of(self.written(result))[0], "some")
        self.assertEqual(plots.history_of(result)[0], "cg, jacobi")
        self.assertEqual(plots.history_of({**result, "choices": {"method": "cg", "preconditioner": "none"}})[0], "cg")
        self.assertEqual(plots.history_of({**result, "label": "mine"})[0], "mine")

    def test_residuals_are_relative(self):
        self.assertEqual(plots.history_of({"residual_history": [4.0, 2.0, 1.0]})[1], [1.0, 0.5, 0.25])
        self.assertEqual(plots.history_of({"residual_history": [4.0, 2.0], "rhs_norm": 8.0})[1], [0.5, 0.25])
        norms = plots.history_of({"residual_history": [4.0, None]})[1]
        self.assertTrue(math.isnan(norms[1]))

    def test_what_cannot_be_drawn_is_named(self):
        for content in ("{}", "no json", "[]", {"residual_history": []}, {"residual_history": [0.0]},
                        {"residual_history": 3}, {"residual_history": ["x"]}):
            with self.subTest(content=content), self.assertRaisesRegex(ValueError, r"some\.json: .*\. (Give|Solve) "):
                plots.history_of(self.written(content))
        with self.assertRaisesRegex(FileNotFoundError, "cannot be read: No such file .*hostless solve.*nowhere.json"):
            plots.history_of("nowhere.json")
        with self.assertRaisesRegex(ValueError, "no results"):
            plots.plot_convergence([])

    def test_traffic_of_a_plan_and_of_a_solve(self):
        plan = picture_case.planned()
        nodes, sent, messages = plots.traffic_of(plan)
        self.assertEqual(nodes, [0] * 4 + [1] * 4)
        total = plan["total"]["sent"]
        self.assertEqual(sum(sent.values()), total["bytes_inside_nodes"] + total["bytes_between_nodes"])
        self.assertEqual(messages, total["messages_inside_nodes"] + total["messages_between_nodes"])
        for rank in plan["per_rank"]:
            self.assertEqual(sum(count for (source, _), count in sent.items() if source == rank["rank"]),
                             rank["sent"]["bytes_inside_nodes"] + rank["sent"]["bytes_between_nodes"])
        result = picture_case.solved()
        nodes, sent, _ = plots.traffic_of(result)
        self.assertEqual(nodes, [0, 0, 1, 1])
        self.assertEqual(sum(sent.values()), result["halo_bytes_per_iteration"])

    def test_damaged_plans(self):
        plan = {"per_rank": [{"node": 0}, {"node": 0}],
                "pairs": {"source": [0], "target": [1], "messages": [1], "bytes": [8]}}
        self.assertEqual(plots.traffic_of(plan), ([0, 0], {(0, 1): 8}, 1))
        for change in ({"source": [0, 1]}, {"target": [2]}, {"target": [-1]}, {"bytes": [0]}, {"bytes": [8, 8]},
                       {"source": [0, 0], "target": [1, 1], "messages": [1, 1], "bytes": [8, 8]}):
            with self.subTest(change=change), self.assertRaisesRegex(ValueError, "do not belong together"):
                plots.traffic_of({**plan, "pairs": {**plan["pairs"], **change}})
        with self.assertRaisesRegex(ValueError, "64 ranks at most.*hostless plan"):
            plots.traffic_of({"communication": None})
        for content in ({}, {"per_rank": [{}]}, {"per_rank": [{"node": 0}]}, {"communication": {"node": [0]}}):
            with self.subTest(content=content), self.assertRaisesRegex(ValueError, "no plan"):
                plots.traffic_of(content)

    def test_bytes_in_words(self):
        for count, text in ((0, "0 B"), (8, "8 B"), (999, "999 B"), (1000, "1 kB"), (999_499, "999 kB"),
                            (999_500, "1 MB"), (12_345_678, "12.3 MB"), (4.5e12, "4.5 TB"), (3e21, "3e+06 PB")):
            self.assertEqual(plots.bytes_in_words(count), text)

    def test_shades_rise_with_the_bytes(self):
        shades = [plots.shade(count, 8, 8000) for count in (8, 80, 800, 8000)]
        self.assertEqual(shades, sorted(shades))
        self.assertAlmostEqual(shades[2] - shades[1], shades[1] - shades[0])
        self.assertLess(shades[-1], 0.7)  # words stay readable on it
        self.assertEqual(plots.shade(8, 8, 8), shades[-1])

    def test_without_matplotlib(self):
        result = picture_case.solved()
        with mock.patch.dict(sys.modules, {"matplotlib": None}):
            for draw, source in ((plots.plot_convergence, result), (plots.plot_plan, result),
                                 (plots.plot_scaling, picture_case.measured(1))):
                with self.assertRaisesRegex(ImportError, "pip install matplotlib"):
                    draw(source)


@unittest.skipIf("matplotlib" in MISSING, WHY_SKIPPED)
class Pictures(unittest.TestCase):
    def setUp(self):
        import matplotlib

        matplotlib.use("svg")  # no window
        from matplotlib import pyplot

        self.addCleanup(pyplot.close, "all")
        self.pyplot = pyplot

    def words_of(self, ax):
        return [text.get_text() for text in ax.texts]

    def test_convergence_holds_the_history(self):
        one, other = picture_case.solved(), picture_case.solved("--preconditioner", "jacobi")
        ax = plots.plot_convergence([one, other])
        self.assertEqual((ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()), ("iteration", "relative residual", "log"))
        curves = [line for line in ax.get_lines() if line.get_label()[0] != "_"]
        for line, result in zip(curves, (one, other), strict=True):
            self.assertEqual(list(line.get_ydata()), plots.history_of(result)[1])
            self.assertIn(f"true residual {result['true_relative_residual']:.1e}", line.get_label())
        dots = [line for line in ax.get_lines() if line not in curves]
        for dot, result in zip(dots, (one, other), strict=True):
            self.assertEqual((list(dot.get_xdata()), list(dot.get_ydata())),
                             ([result["iterations"]], [result["true_relative_residual"]]))

    def test_axes_of_the_caller_are_drawn_into(self):
        figure, axes = self.pyplot.subplots(1, 2)
        self.assertIs(plots.plot_convergence(picture_case.solved(), axes[0]), axes[0])
        self.assertIs(plots.plot_plan(picture_case.solved(), axes[1]), axes[1])
        self.assertEqual(self.pyplot.get_fignums(), [figure.number])

    def test_a_plan_shows_every_pair(self):
        result = picture_case.solved()
        _, sent, _ = plots.traffic_of(result)
        ax = plots.plot_plan(result)
        words = self.words_of(ax)
        self.assertEqual(sorted(word for word in words if word.startswith("node")), ["node 0", "node 1"])
        self.assertEqual(sorted(word for word in words if not word.startswith("node")),
                         sorted(plots.bytes_in_words(count) for count in sent.values()))
        shaded = {(round(patch.get_y() + 0.5), round(patch.get_x() + 0.5)) for patch in ax.patches
                  if patch.get_facecolor()[:3] == self.rgb(plots.SERIES[0]) and patch.get_fill()}
        self.assertEqual(shaded, set(sent))
        self.assertIn(plots.bytes_in_words(sum(sent.values())), ax.get_title())

    def rgb(self, colour):
        from matplotlib.colors import to_rgb

        return to_rgb(colour)

    def test_ranks_of_a_node_stand_together(self):
        pairs = {"source": [0, 1], "target": [2, 3], "messages": [1, 1], "bytes": [8, 16]}
        ax = plots.plot_plan({"per_rank": [{"node": node} for node in (0, 1, 0, 1)], "pairs": pairs})
        self.assertEqual([label.get_text() for label in ax.get_yticklabels()], ["0", "2", "1", "3"])
        places = {text.get_text(): tuple(text.get_position()) for text in ax.texts}
        self.assertEqual((places["8 B"], places["16 B"]), ((1, 0), (3, 2)))

    def test_many_ranks_have_shades_and_a_key(self):
        plan = json.loads(picture_case._text("plan", *picture_case.GRID, "--ranks", "20"))
        ax = plots.plot_plan(plan)
        self.assertEqual(self.words_of(ax), [])  # one node, and no room for numbers
        _, sent, _ = plots.traffic_of(plan)
        key = [text.get_text() for text in ax.get_legend().get_texts()]
        self.assertEqual((key[0], key[-1]), (plots.bytes_in_words(min(sent.values())), plots.bytes_in_words(max(sent.values()))))
        self.assertLessEqual(len(ax.get_xticks()), 16)

    def test_one_rank_sends_nothing(self):
        ax = plots.plot_plan(picture_case.json_of("solve", *picture_case.GRID))
        self.assertIn("0 B in 0 messages", ax.get_title())

    def test_scaling_holds_the_best_times(self):
        one, two = picture_case.measured(1), picture_case.measured(2)
        figure = plots.plot_scaling([one, two], methods=["cg"])
        cell, = figure.axes
        lines = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in cell.get_lines()}
        best = [{row["run"]: row["best_us"] for row in report["solves"] if row["method"] == "cg"} for report in (one, two)]
        for run in ("host", "persistent", "graph"):
            self.assertEqual(lines[f"cg, {run}, threads"], ([1, 2], [best[0][run], best[1][run]]))
        least = min(best[0].values())
        self.assertEqual(lines["shared out evenly"], ([1, 2], [least, least / 2]))
        self.assertIn("kept", [line.get_label() for line in plots.plot_scaling([one, two], weak="grown").axes[0].get_lines()])
        with self.assertRaisesRegex(ValueError, "no solve with a time is left"):
            plots.plot_scaling(one, runs=["stream"])

    def test_the_same_input_gives_the_same_bytes(self):
        def drawn(draw, *what):
            made = draw(*what)
            text = io.StringIO()
            plots.write_svg(getattr(made, "figure", made), text)
            return text.getvalue()

        for draw, source in ((plots.plot_convergence, picture_case.solved()), (plots.plot_plan, picture_case.planned()),
                             (plots.plot_scaling, picture_case.measured(2))):
            once = drawn(draw, source)
            self.assertEqual(once, drawn(draw, source))
            self.assertIn("<text", once)  # not outlines of letters


if __name__ == "__main__":
    unittest.main()

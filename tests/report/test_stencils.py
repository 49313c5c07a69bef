"""python/hostless/report/stencil_plots.py and what the page says of stencils: numbers and fields are those of the files."""

import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import picture_case
from picture_case import MISSING, WHY_SKIPPED
from test_report import NOT_DRAWN, Page

if not MISSING:
    import numpy
    from hostless.report import stencil_plots
    from hostless.report import make_page


@unittest.skipIf(MISSING, WHY_SKIPPED)
class Stencils(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def stepped(self, name="heat", *words):
        """A result and its field as files, and the result."""
        words = words or ("--problem", "heat", "--size", "40,50", "--steps", "60", "--every", "20")
        picture_case.run("stencil", *words, "--quiet", "--output", self.folder / f"{name}.npy", "--json", self.folder / f"{name}.json")
        file = self.folder / f"{name}.json"
        result = json.loads(file.read_text())
        result["output"] = [f"{name}.npy"]  # as one who was in that folder has it
        file.write_text(json.dumps(result))
        return file, result

    def test_the_numbers_are_those_of_the_result(self):
        file, result = self.stepped()
        text = make_page([file])
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertEqual([one for one in page.addresses if not one.startswith(("#", "data:image/png;base64,"))], [])
        for name, key in (("steps", "steps"), ("time", "seconds"), ("a step", "microseconds_per_step"), ("cells a second", "cells_per_second"),
                          ("steps between exchanges", "depth")):
            self.assertEqual(page.row(name)[0][1], str(result[key]), name)
        for name, words in (("cells", "40 x 50"), ("stencil", "heat"), ("type", "fp64"), ("boundary", "dirichlet"), ("parameters", "k = 0.2"),
                            ("status", "all steps")):
            self.assertEqual(page.row(name)[0][0], words)
        norm = result["history"][-1]["norm"][0]
        for words in ("Steps of heat", f"step 60 changed {norm:.3e}", "heat: u after 60 steps.", "How much a step changed"):
            self.assertIn(words, page.text)
        self.assertEqual(len([one for one in page.addresses if one.startswith("data:")]), 2)  # the field, and its key
        self.assertIn("img-src data:", text)

    @NOT_DRAWN
    def test_several_stand_side_by_side_with_solves(self, _):
        one, _ = self.stepped()
        other, _ = self.stepped("life", "--problem", "life", "--size", "8,8", "--boundary", "periodic", "--steps", "4")
        page = Page(make_page([one, other, picture_case.solved()]))
        self.assertEqual([cell[0] for cell in page.row("stencil")], ["heat", "life"])
        self.assertEqual([cell[0] for cell in page.row("parameters")], ["k = 0.2", "–"])
        self.assertIn("Solves of", page.text)
        self.assertIn("Steps of stencils", page.text)

    @NOT_DRAWN
    def test_a_field_that_is_not_there_is_said(self, _):
        file, _ = self.stepped()
        field = self.folder / "heat.npy"
        field.rename(self.folder / "elsewhere.npy")
        self.assertIn("heat: u is not drawn", Page(make_page([file])).text)
        numpy.save(field, numpy.zeros((3, 4)))
        self.assertIn("3 x 4 cells, and the result is of 40 x 50", Page(make_page([file])).text)
        field.write_bytes(b"text")
        self.assertIn("cannot be read as .npy", Page(make_page([file])).text)
        field.write_bytes(b"PK\x03\x04 no zip")
        self.assertIn("cannot be read as .npy", Page(make_page([file])).text)
        numpy.save(field, numpy.full((40, 50), numpy.inf))
        self.assertIn("no value is finite", Page(make_page([file])).text)
        numpy.save(field, numpy.array([["a", "b"]]))
        self.assertIn("no array of numbers", Page(make_page([file])).text)

    @NOT_DRAWN
    def test_fields_are_found_where_they_were_written(self, _):
        out = self.folder / "out"
        out.mkdir()
        picture_case.run("stencil", "--problem", "heat", "--size", "9,9", "--steps", 3, "--quiet", "--output", out / "u.npy", "--json", out / "r.json")
        result = json.loads((out / "r.json").read_text())
        for named in (str(out / "u.npy"), "out/u.npy", "u.npy"):  # as the run said it, in whatever folder it was
            (out / "r.json").write_text(json.dumps({**result, "output": [named]}))
            self.assertNotIn("is not drawn", Page(make_page([out / "r.json"])).text)

    @NOT_DRAWN
    def test_a_resumed_run_and_fields_that_were_not_written(self, _):
        _, result = self.stepped()
        text = Page(make_page([{**result, "resumed_at": 59, "output": []}])).text
        self.assertIn("1 step of heat in", text)
        self.assertIn("behind 59 of a run before", text)
        lost = {**result, "fields": ["u", "before"], "history": [], "output": ["v.npy"]}
        self.assertIn("1 of 2 fields were written", Page(make_page([lost])).text)

    @NOT_DRAWN
    def test_other_endings_and_damaged_results(self, _):
        file, result = self.stepped()
        lost = {**result, "status": "peer_lost", "message": "rank 1 was silent", "history": []}
        page = Page(make_page([lost]))
        for words in ("peer lost", "rank 1 was silent", "--resume"):
            self.assertIn(words, page.text)
        self.assertNotIn("How much a step changed", page.text)
        not_finite = {**result, "status": "not_finite", "history": [{"step": 20, "norm": [None], "largest": [None]}]}
        self.assertIn("A smaller step in time", Page(make_page([not_finite])).text)
        for damage, says in (({"size": "40"}, "size is no list"), ({"steps": 1.5}, "steps is '1.5'"), ({"history": [{"step": 1}]}, r"history\[0\].norm")):
            with self.assertRaisesRegex(ValueError, says):
                make_page([{**result, **damage}])

    def test_plots(self):
        file, result = self.stepped()
        axes = stencil_plots.plot_change([file, {**result, "label": "again"}])
        self.assertEqual([line.get_label() for line in axes.get_lines()], ["heat", "again"])
        self.assertEqual(list(axes.get_lines()[0].get_xdata()), [20, 40, 60])
        self.assertEqual(list(axes.get_lines()[0].get_ydata()), [look["norm"][0] for look in result["history"]])
        with self.assertRaisesRegex(ValueError, "nobody looked"):
            stencil_plots.plot_change({**result, "history": []})
        with self.assertRaisesRegex(ValueError, "no history of a stencil"):
            stencil_plots.plot_change({"fields": ["u"]})
        field = numpy.load(self.folder / "heat.npy")
        drawn = stencil_plots.plot_field(self.folder / "heat.npy").get_images()[0]
        self.assertTrue((numpy.asarray(drawn.get_array()) == field).all())
        with self.assertRaisesRegex(ValueError, "two or three axes"):
            stencil_plots.plot_field(numpy.zeros(5))

    def test_planes(self):
        rng = numpy.random.default_rng(1)
        cube = rng.random((5, 6, 7))
        plane, words = stencil_plots.plane_of(cube)
        self.assertTrue((plane == cube[2]).all())
        self.assertEqual(words, "plane 2 of 5")
        wide = rng.random((7, 1030))
        with mock.patch.object(stencil_plots, "MOST_CELLS", 5):
            plane, words = stencil_plots.plane_of(wide)
        self.assertEqual(plane.shape, (3, 5))
        self.assertAlmostEqual(plane[1, 2], wide[2:4, 412:618].mean())
        self.assertEqual(words, "means of 2 x 206 cells")
        with self.assertRaisesRegex(ValueError, "no value is finite"):
            stencil_plots.plot_field(numpy.full((3, 3), numpy.nan))
        half = numpy.full((3, 3), numpy.nan)
        half[1] = 2.0
        self.assertTrue((stencil_plots.plane_of(half)[0][1] == 2.0).all())


if __name__ == "__main__":
    unittest.main()

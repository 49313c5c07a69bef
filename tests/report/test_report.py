"""python/hostless/report: the numbers of the page are those of the files, nothing is loaded, what is damaged is named."""

import copy
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import picture_case
from picture_case import MISSING, SURROUNDINGS, WHY_SKIPPED

if not MISSING:
    from hostless.report import make_page, results, shapes  # the checkout's

def put(it, place, value):
    """Puts a value where the keys of `place` lead to, and returns what stood there."""
    for key in place[:-1]:
        it = it[key]
    before, it[place[-1]] = it[place[-1]], value
    return before


NOT_DRAWN = mock.patch("hostless.report.figures.inline", return_value="")  # where many pages are made for their words

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(html.parser.HTMLParser):
    """Tables as lists of rows of (text, title), words, and every address that a browser might load."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.words, self.addresses, self.open, self.tags = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.addresses += [value for key, value in attributes.items() if key in ("src", "href", "xlink:href", "srcset", "data")]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(["", attributes.get("title")])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes something else")

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words.append(data)
        if self.open and {"td", "th"} & set(self.open) and "svg" not in self.open:
            self.tables[-1][-1][-1][0] += data

    def row(self, name):
        """The cells of the first row of that name in any table."""
        for table in self.tables:
            for row in table:
                if row and row[0][0].startswith(name):
                    return row[1:]
        raise AssertionError(f"no row {name}")

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


@unittest.skipIf(MISSING, WHY_SKIPPED)
class Report(unittest.TestCase):
    def page(self, *sources, **how):
        text = make_page(sources, **how)
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertEqual([one for one in page.addresses if not one.startswith("#")], [])
        self.assertEqual(set(re.findall(r"url\(([^)#])", text)) | ({"script"} & set(page.tags)), set())
        ids = re.findall(r'\bid="([^"]+)"', text)
        self.assertEqual(len(ids), len(set(ids)))
        self.assertLessEqual(set(re.findall(r'(?:url\(|xlink:href=")#([^")]+)', text)), set(ids))
        return page

    def test_the_numbers_of_the_summary_are_those_of_the_result(self):
        result = picture_case.solved()
        page = self.page(result)
        for name, keys in (("iterations", ("iterations",)), ("rows", ("rows",)), ("entries", ("entries",)),
                           ("true residual", ("true_relative_residual",)), ("solve", ("time_solve_s",)),
                           ("recurrence’s residual", ("recurrence_relative_residual",)), ("error", ("relative_error",)),
                           ("making the solver", ("time_setup_s",)), ("reading and laying out", ("time_input_s",)),
                           ("bytes an iteration", ("bytes_per_iteration",)), ("bytes a second", ("bytes_per_second",)),
                           ("memory gives", ("measured_bandwidth",)), ("sent an iteration", ("halo_bytes_per_iteration",)),
                           ("publish", ("time_by_phase_s", "publish")), ("sweep", ("time_by_phase_s", "sweep")),
                           ("waiting for ghosts", ("time_by_phase_s", "ghosts")),
                           ("waiting for sums", ("time_by_phase_s", "sums"))):
            value = result
            for key in keys:
                value = value[key]
            cell, = page.row(name)
            self.assertEqual(cell[1], str(value), name)
        self.assertEqual(page.row("status")[0][0], "converged")
        self.assertAlmostEqual(float(page.row("share of bandwidth")[0][1]), result["share_of_bandwidth"])
        self.assertAlmostEqual(float(page.row("an iteration")[0][1]), 1e6 * result["time_solve_s"] / result["iterations"])
        for key, value in result["choices"].items():
            self.assertEqual(page.row(key.replace("_", " "))[0][0], value)
        for words in (f"converged after {result['iterations']} iterations", "poisson2d 24 x 24 nodes", "4 ranks (threads)",
                      f"{result['true_relative_residual']:.3e}", "1 exchange an iteration", "node 1", result["program"]):
            self.assertIn(words, page.text)

    def test_several_results_stand_side_by_side(self):
        one, other = picture_case.solved(), picture_case.solved("--method", "pipelined-cg", "--preconditioner", "jacobi")
        page = self.page({**one, "label": "plain"}, {**other, "label": "plain"}, picture_case.as_if_on_gpus(one))
        self.assertEqual([cell[0] for cell in page.tables[0][0][1:]], ["plain", "plain (2)", "result 3"])
        self.assertEqual([cell[1] for cell in page.row("iterations")], [str(it["iterations"]) for it in (one, other, one)])
        self.assertEqual([cell[0] for cell in page.row("method")], ["cg", "pipelined-cg", "cg"])
        self.assertEqual([cell[0] for cell in page.row("kernels")][:2], ["–", "–"])
        self.assertIn("plain (2): true residual", page.text)

    def test_a_result_of_gpus(self):
        result = picture_case.as_if_on_gpus(picture_case.solved())
        page = self.page(result)
        self.assertEqual(page.row("an iteration")[0], ["37.5 µs", "37.5"])
        self.assertEqual(page.row("kernels")[0][1], str(result["device"]["time_s"]))
        rate = float(page.row("bytes a second")[0][1])
        self.assertAlmostEqual(rate, result["bytes_per_iteration"] / 37.5e-6)
        self.assertNotIn("memory gives", page.text)
        self.assertNotIn("waiting", page.text.split("Share of memory bandwidth")[0].split("Where the time goes")[1])
        declared = self.page(result, bandwidth=4.5e12)
        self.assertEqual(declared.row("memory gives")[0], ["4.5 TB/s declared", "4500000000000.0"])
        self.assertAlmostEqual(float(declared.row("share of bandwidth")[0][1]), rate / 4.5e12)
        # what was measured is not overruled
        self.assertIn("measured", self.page(picture_case.solved(), bandwidth=4.5e12).row("memory gives")[0][0])

    @NOT_DRAWN
    def test_times_have_three_digits(self, _):
        for value, text in ((0, "0.00 µs"), (3.07e-9, "0.00 µs"), (1.2345e-6, "1.23 µs"), (9.996e-6, "10.0 µs"),
                            (99.96e-6, "100 µs"), (0.9996e-3, "1.00 ms"), (0.0123, "12.3 ms"), (0.9996, "1.00 s"),
                            (59.94, "59.9 s"), (1234.5, "1,234 s"), (None, "–")):
            self.assertEqual(results.seconds(value).text, text)
        self.assertEqual(results.microseconds(13772.7).text, "13,773 µs")

    @NOT_DRAWN
    def test_endings_are_told_in_words(self, _):
        result = {**picture_case.solved(), "message": "mind <this> & that"}
        for status, (good, words, meaning) in results.STATUS.items():
            with self.subTest(status=status):
                page = self.page({**result, "status": status})
                self.assertIn(words, page.text)
                self.assertEqual(meaning in page.text, not good)
                self.assertIn("mind <this> & that", page.text)
        self.assertIn("of another kind", self.page({**result, "status": "of_another_kind"}).text)
        documented = (picture_case.ROOT / "docs" / "howto" / "read-the-result.md").read_text()
        self.assertEqual(set(results.STATUS), set(re.findall(r"^\| `(\w+)` \|", documented.split("\n## ")[1], re.M)))

    @NOT_DRAWN
    def test_solves_that_have_little_to_show(self, _):
        result = picture_case.solved()
        never = {**result, "status": "not_finite", "iterations": 0, "residual_history": [], "rhs_norm": None,
                 "true_relative_residual": None, "recurrence_relative_residual": None, "relative_error": None,
                 "bytes_per_second": 0, "time_solve_s": 0.0, "communication": None}
        page = self.page(never)
        self.assertNotIn("Convergence", page.text)
        self.assertNotIn("Where the time goes", page.text)
        self.assertIn("who sends what to whom is not in this result", page.text)
        for key in [key for key in shapes.SOLVE if key.endswith("?")]:
            with self.subTest(key=key):
                self.page({name: value for name, value in result.items() if name != key[:-1]})
        self.assertNotIn("Who sends", self.page(picture_case.json_of("solve", *picture_case.GRID)).text)

    def test_a_plan(self):
        plan = picture_case.planned()
        page = self.page(plan)
        table = page.tables[-1][2:]
        self.assertEqual(len(table), 8)
        for row, rank in zip(table, plan["per_rank"]):
            self.assertEqual([cell[1] for cell in row[:4]], [str(rank[key]) for key in ("rank", "node", "owned", "ghosts")])
            self.assertEqual([cell[1] for cell in row[4:]],
                             [str(rank[side][f"{what}_{place}_nodes"]) for side in ("sent", "received")
                              for place in ("inside", "between") for what in ("messages", "bytes")])
        self.assertIn("Route three step, 8 ranks on 2 nodes.", page.text)

    def test_a_measurement(self):
        report = picture_case.measured(2)
        report["solves"].append({"matrix": report["solves"][0]["matrix"], "method": "cg", "run": "stream", "ranks": 2,
                                 "gpus": 0, "error": "no <run>"})
        page = self.page(report)
        table = page.tables[0][1:]
        self.assertEqual(len(table), len(report["solves"]))
        for row, measured in zip(table, report["solves"][:-1]):
            self.assertEqual(row[0][0], f"{measured['method']}, {measured['run']}")
            self.assertEqual([cell[1] for cell in row[2:7]], [str(measured[key]) for key in (
                "best_us", "median_us", "wall_best_us", "iterations", "true_relative_residual")])
            self.assertEqual(row[7][0], measured["bits"])
        self.assertEqual(table[-1][2][0], "no <run>")
        self.assertNotIn("shared out evenly", page.text)  # of one number of ranks nothing scales
        self.assertIn("the line is the median", page.text)
        several = self.page(picture_case.measured(1), report)
        self.assertIn("shared out evenly", several.text)
        self.assertIn("cg, persistent, threads", several.text)
        self.assertNotIn("the line is the median", several.text)

    def test_names_are_text_wherever_they_stand(self):
        bad = "_<script>alert('x')</script>&\"$a_b$"
        result = {**picture_case.solved(), "label": bad, "input": bad, "message": bad, "program": bad}
        result["choices"] = {key: bad if key not in ("ranks",) else value for key, value in result["choices"].items()}
        report = json.loads(json.dumps(picture_case.measured(2)).replace("poisson2d", "<b>&"))
        page = self.page(result, {**report, "label": bad, "program": bad}, title=bad)
        self.assertNotIn("script", page.tags)
        self.assertNotIn("b", page.tags)
        self.assertEqual(page.tables[0][0][1][0], bad)
        self.assertIn(f"\u200b{bad}: true residual", page.text)

    def test_long_histories_stay_small(self):
        result = picture_case.solved()
        length = 300_000
        result["residual_history"] = [result["rhs_norm"] * 0.99995 ** k * (1.5 if k % 7 else 0.5) for k in range(length)]
        result["iterations"] = length - 1
        self.assertLess(len(make_page([result])), 2_000_000)

    @NOT_DRAWN
    def test_what_is_damaged_is_named(self, _):
        with self.assertRaisesRegex(ValueError, "neither a result of a solve or stencil nor a plan nor .*`hostless bench halo`"):
            make_page([{"bench": "halo", "halo": []}])
        for whole in (picture_case.as_if_on_gpus(picture_case.solved()), picture_case.planned(), picture_case.measured(2)):
            pages = {}  # of what is no damage to a page, by how deep it lies and what stands there: none lies inside another
            for place in self.places(whole):
                for wrong in ("x", None) if place[-1] == 0 else ([], True):
                    damaged = copy.deepcopy(whole)
                    if type(put(damaged, place, wrong)) is type(wrong):
                        continue
                    with self.subTest(place=place, wrong=wrong):
                        try:
                            results.read_all([damaged], None)
                        except ValueError:
                            with self.assertRaisesRegex(ValueError, r"^result 1: .*\. Give "):
                                make_page([damaged])
                        else:
                            put(pages.setdefault((len(place), str(wrong)), copy.deepcopy(whole)), place, wrong)
            self.assertGreater(len(pages), 2)
            for (depth, wrong), one in pages.items():
                with self.subTest(depth=depth, wrong=wrong):
                    make_page([one])

    def places(self, it, at=()):
        """Keys of every value, but of only the first entry of a list, or of the choices."""
        found = [at] if at else []
        members = list(it.items() if isinstance(it, dict) else enumerate(it) if isinstance(it, list) else ())
        members = members[:1] if isinstance(it, list) or at[-1:] == ("choices",) else members
        return found + [place for key, value in members for place in self.places(value, (*at, key))]


@unittest.skipIf(MISSING, WHY_SKIPPED)
class CommandOfPython(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "one.json").write_text(json.dumps(picture_case.solved()))  # four pictures, of which
        (self.folder / "plan.json").write_text(json.dumps(picture_case.planned()))  # has one, where none is looked at

    def run_it(self, *words, code=0, program=(sys.executable, "-m", "hostless.report"), more=None):
        done = subprocess.run([*program, *words], cwd=self.folder, env={**SURROUNDINGS, **(more or {})}, timeout=600,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"{done.stdout[:500]}\n{done.stderr}")
        return done

    def test_a_page_is_written(self):
        said = self.run_it("one.json", "-o", "page.html", "--title", "Mine").stdout
        page = Page((self.folder / "page.html").read_text())
        self.assertEqual(page.tables[0][0][1][0], "one")
        self.assertIn("Mine", page.text)
        self.assertTrue(said.startswith("page.html: 1 file, "), said)
        self.run_it("plan.json")
        self.assertIn("<svg", (self.folder / "report.html").read_text())

    def test_a_page_is_written_whole_or_not_at_all(self):
        page, link = self.folder / "page.html", self.folder / "link.html"
        page.write_text("older")
        page.chmod(0o640)
        link.symlink_to(page)
        # No file may become longer than a block of 512 bytes, and a page has more.
        full = ("sh", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"", sys.executable, "-m", "hostless.report")
        for name in ("page.html", "link.html"):
            said = self.run_it("plan.json", "-o", name, code=4, program=full, more={"MPLCONFIGDIR": str(self.folder)})
            self.assertIn(f"{name}: cannot be written: File too large", said.stderr)
            self.assertEqual(page.read_text(), "older")
            self.assertFalse(list(self.folder.glob("*.partial")))
        self.run_it("plan.json", "-o", "link.html")
        self.assertTrue(link.is_symlink())
        self.assertIn("<svg", page.read_text())
        self.assertEqual(page.stat().st_mode & 0o777, 0o640)

    def test_a_page_does_not_replace_a_result(self):
        before = (self.folder / "one.json").read_bytes()
        (self.folder / "same.json").symlink_to("one.json")
        for name in ("one.json", "./one.json", "same.json"):
            self.assertIn("are one file", self.run_it("one.json", "-o", name, code=2).stderr)
        self.assertEqual((self.folder / "one.json").read_bytes(), before)

    def test_the_command_hostless_makes_the_same_page(self):
        command = (picture_case.COMMAND, "report")
        env = {"HOSTLESS_PYTHON": sys.executable}
        words = ("one.json", "--output", "-", "--title", "Mine", "--bandwidth", "1e12")
        pages = [re.sub(r"page made [^<]*", "", self.run_it(*words, **how).stdout)
                 for how in ({}, {"program": command, "more": env})]
        self.assertIn("Mine", pages[0])
        self.assertEqual(*pages)
        self.run_it("nowhere.json", code=3, program=command, more=env)

    def test_exit_codes(self):
        (self.folder / "text.json").write_text("none")
        (self.folder / "other.json").write_text('{"bench": "pingpong"}')
        for code, words, says in ((2, (), "files"), (2, ("one.json", "--bandwidth", "-1"), "--bandwidth"),
                                  (2, ("one.json", "--unknown"), "unknown"), (3, ("nowhere.json",), "nowhere.json: cannot be read: No such file"),
                                  (3, (".",), ".: cannot be read: Is a directory"),
                                  (3, ("text.json",), "text.json: cannot"), (3, ("one.json", "other.json"), "other.json: neither"),
                                  (4, ("one.json", "-o", "no/where.html"), "no/where.html: cannot be written")):
            with self.subTest(words=words):
                said = self.run_it(*words, code=code)
                self.assertEqual(said.stdout, "")
                self.assertIn(says, said.stderr)
        self.assertFalse((self.folder / "report.html").exists())

    def test_a_page_that_cannot_be_printed(self):
        for words in (("plan.json", "-o", "-"), ("plan.json", "-o", "page.html")):
            for closed in (False, True):
                with self.subTest(words=words, closed=closed), open("/dev/full", "w", encoding="ascii") as full:
                    done = subprocess.run([sys.executable, "-m", "hostless.report", *words], cwd=self.folder, env=SURROUNDINGS,
                                          timeout=600, stdout=full, stderr=subprocess.PIPE, text=True,
                                          preexec_fn=(lambda: os.close(1)) if closed else None)
                    self.assertEqual(done.returncode, 4, done.stderr)
                    self.assertRegex(done.stderr, "^hostless: standard output cannot be written: .*\n$")

    def test_what_is_missing_is_said(self):
        for name in ("matplotlib", "jinja2"):
            folder = self.folder / f"without_{name}"
            folder.mkdir()
            (folder / f"{name}.py").write_text(f"raise ImportError('no {name}')\n")
            said = self.run_it("one.json", code=4, more={"PYTHONPATH": f"{folder}:{SURROUNDINGS['PYTHONPATH']}"})
            self.assertRegex(said.stderr, f"^hostless: {name} is missing .*pip install {name}`, or Debian's python3-{name}")
            self.assertEqual(len(said.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()

"""`hostless bench stencil`: what it writes and prints, and that its two answers are compared."""

import json
import os
import unittest

from test_bench import Bench

BRIEF = ("--steps", 8, "--repeat", 3, "--warm-up", 3)


class StencilBeside(Bench):
    def bench(self, problem, *words, **how):
        return self.json_of("bench", "stencil", "--problem", problem, *BRIEF, *words, **how)

    def test_every_problem_has_the_bits_of_the_plain_loop(self):
        for problem, size in (("jacobi2d", "41x57"), ("jacobi3d", "11,14,17"), ("heat", "41,57"), ("heat", "11,14,17"), ("wave", "41,57"),
                              ("wave", "11,14,17"), ("life", "41,57"), ("gray_scott", "41,57"), ("jacobi2d", "3,2"), ("heat", "9,2,9")):
            for words in (("--type", "fp32"), ("--ranks", 3, "--depth", 1)):
                if size == "3,2" and "--ranks" in words:
                    continue
                with self.subTest(problem=problem, size=size, words=words):
                    report = self.bench(problem, "--size", size, "--no-bandwidth", *words)
                    self.assertEqual(report["bits"], "equal")

    def test_every_boundary_has_the_bits_of_the_plain_loop(self):
        for problem, size, words in (("jacobi2d", "41x57", ()), ("life", "41,57", ()), ("life", "41,57", ("--depth", 3)), ("wave", "11,14,70", ()),
                                     ("heat", "23,9,17", ("--block-steps", 3)), ("jacobi3d", "11,14,17", ("--ranks-along", "1x3x1"))):
            axes = len(size.replace("x", ",").split(","))
            for boundary in ("neumann", "periodic", ",".join(("periodic", "dirichlet", "neumann")[:axes]), ",".join(("neumann", "periodic", "periodic")[:axes])):
                for ranks in ((3,) if "--ranks-along" in words else (1, 2)):
                    with self.subTest(problem=problem, words=words, boundary=boundary, ranks=ranks):
                        report = self.bench(problem, "--size", size, "--boundary", boundary, "--no-bandwidth", "--ranks", ranks, *words)
                        self.assertEqual((report["bits"], report["boundary"]), ("equal", boundary))

    def test_threads_that_nobody_has_named(self):
        usable = len(os.sched_getaffinity(0))
        small = self.bench("jacobi2d", "--size", "20x20", "--no-bandwidth")
        self.assertEqual((small["ranks"], small["bits"]), (1, "equal"))
        self.assertIn(small["plain_loop"]["threads"], (1, usable))
        large = self.bench("jacobi2d", "--size", "96x64", "--no-bandwidth")
        self.assertEqual((large["ranks"], large["bits"]), (min(usable, 3), "equal"))
        self.assertEqual(large["paired_speedup"], sorted(large["paired_speedup"]))
        self.assertEqual(self.bench("jacobi2d", "--size", "96x64", "--no-bandwidth", "--ranks", 2)["plain_loop"]["threads"], 2)

    def test_report(self):
        report = self.bench("heat", "--size", "60x70", "--ranks", 4, "--ranks-along", "2x2", "--depth", 4, "--block-steps", 2, "--parameter", "k=0.1",
                            "--route", "two_step", "--ranks-per-node", 2)
        self.head(report, "stencil", "threads", 4)
        self.assertEqual({key: report[key] for key in ("problem", "size", "type", "boundary", "ranks_along", "route", "depth", "block_steps", "steps")},
                         {"problem": "heat", "size": [60, 70], "type": "fp64", "boundary": "dirichlet", "ranks_along": [2, 2],
                          "route": "two_step", "depth": 4, "block_steps": 2, "steps": 8})
        for row in (report["stencil"], report["plain_loop"]):
            self.times_are_sane(row)
            self.assertEqual(len(row["all_us"]), 3)
            self.assertEqual(sorted(row["all_us"])[1], row["median_us"])
            self.assertAlmostEqual(row["cells_per_second"] * row["median_us"], 60 * 70 * 1e6, delta=1)
            self.assertAlmostEqual(row["bytes_per_second"], 16 * row["cells_per_second"], delta=1)
            self.assertAlmostEqual(row["share_of_bandwidth"] * report["bandwidth"], row["bytes_per_second"], delta=1)
        self.assertAlmostEqual(report["speedup"], report["plain_loop"]["median_us"] / report["stencil"]["median_us"], delta=1e-9)

    def test_the_table_says_the_same(self):
        words = ("bench", "stencil", "--problem", "jacobi2d", "--size", "60x70", *BRIEF, "--json", "r.json")
        text = self.run_it(*words).stdout.splitlines()
        report = json.loads(self.content("r.json"))
        self.assertEqual(text[0].split(":")[0], "jacobi2d, 60 x 70 cells, fp64")
        for line, what in ((text[2], "stencil"), (text[3], "plain_loop")):
            self.assertIn(f"{report[what]['median_us']:.3f}", line)
            self.assertIn(f"{report[what]['share_of_bandwidth']:.2f}", line)
        self.assertIn("bits equal", text[4])

    def test_variants(self):
        words = ("--size", "40x50", "--ranks", 2, "--variants", "all", "--overlap")
        for problem, way in (("jacobi2d", ()), ("gray_scott", ("--type", "fp32", "--transport", "processes"))):
            report = self.bench(problem, *words, *way)
            self.head(report, "stencil", way[-1] if way else "threads", 2)
            rows = {row["name"]: row for row in report["variants"]}
            self.assertEqual(list(rows), ["copy", "overlap", "p2p", "nvshmem", "cpu-free", "cpu-free-two-kernels", "cpu-free-perks", "blocked",
                                          "blocked-overlap"])
            self.assertEqual((report["bits"], report["computes"]), ("equal", True))
            for name, row in rows.items():
                if "problem" in row:
                    self.assertEqual(set(row), {"name", "label", "problem"})
                    continue
                self.times_are_sane(row)
                self.assertEqual((len(row["all_us"]), (row["depth"], row["block_steps"]) == (1, 1) or "blocked" in name), (3, True))
                self.assertGreater(row["communication_us"], 0)
                self.assertGreater(row["computing_us"], 0)
                share = (row["computing_us"] + row["communication_us"] - row["median_us"]) / row["communication_us"]
                self.assertAlmostEqual(row["overlapped"], min(max(share, 0), 1), delta=1e-6)
            self.assertEqual([name for name, row in rows.items() if "problem" not in row], ["copy", "overlap", "blocked", "blocked-overlap"])

    def test_variants_without_computing(self):
        report = self.bench("wave", "--size", "12x9x10", "--ranks", 3, "--variants", "blocked,copy", "--no-compute", "--depth", 2)
        self.assertEqual([(row["name"], row["depth"], "overlapped" in row) for row in report["variants"]], [("copy", 1, False), ("blocked", 2, False)])
        self.assertEqual((report["computes"], "bits" in report), (False, False))

    def rival(self, name, *lines):
        """A program that says so, after it has kept the words it was given in `said`."""
        self.write(name, "\n".join(("#!/bin/sh", f"echo \"$0 $*\" >>said", *lines, "")))
        (self.folder / name).chmod(0o755)
        return f"./{name}"

    def said(self):
        lines = self.content("said").decode().splitlines()
        (self.folder / "said").unlink()
        return lines

    def test_rivals_of_nvidia(self):
        several = self.rival("several", "echo Single GPU jacobi relaxation", "echo sample, $2, $4, $6, 1, 2, 1, 0.004, 0.008")
        single = self.rival("single", "echo single, $2, $4, $6, 1, 0.008")
        report = self.bench("jacobi2d", "--size", "30x20", "--variants", "copy,blocked", "--rival", several, "--rival", f"one={single}")
        ours, rival, one = report["variants"][1:]
        words = "-nx 20 -ny 30 -niter 8 -nccheck 8 -csv"
        self.assertEqual([(row["name"], row["label"], row["time_by"]) for row in (rival, one)],
                         [("rival", f"{several} {words}", "csv"), ("one", f"{single} {words}", "csv")])
        for row, us in ((rival, 500), (one, 1000)):
            self.assertAlmostEqual(row["median_us"], us, delta=1e-9)
            self.assertEqual(len(row["all_us"]), 3)
            self.assertAlmostEqual(row["speedup"], us / ours["median_us"], delta=1e-9 * row["speedup"])
        self.assertEqual(sorted(self.said()), sorted([f"{several} {words}", f"{single} {words}"] * 4))  # once before what is timed

    def test_rivals_of_any_kind(self):
        mine = self.rival("mine", "echo wrong 1 ms >&2", "echo 'after 16 steps: 3.2 ms'")
        report = self.bench("wave", "--size", "12x9x10", "--ranks", 2, "--type", "fp32", "--no-bandwidth",
                            "--rival", f"mine={mine} {{nx}}x{{ny}}x{{nz}} '{{steps}} {{type}}' {{ranks}} {{{{}}}}",
                            "--rival", f"step={mine}", "--rival", f"wall={mine}",
                            "--rival-time", "mine=after (?P<steps>[0-9]+) steps: (?P<ms>[0-9.]+)", "--rival-time", "step=: (?P<ms_per_step>\\S+) ms",
                            "--rival-time", "wall=wall")
        rows = {row["name"]: row for row in report["rivals"]}
        self.assertEqual(rows["mine"]["command"], [mine, "10x9x12", "8 fp32", "2", "{}"])
        self.assertAlmostEqual(rows["mine"]["median_us"], 3200 / 16, delta=1e-9)
        self.assertAlmostEqual(rows["step"]["median_us"], 3200, delta=1e-9)
        self.assertEqual([row["time_by"] for row in report["rivals"]], ["pattern", "pattern", "wall"])
        self.assertGreater(rows["wall"]["best_us"], 10)  # a shell was started
        for row in report["rivals"]:
            self.assertAlmostEqual(row["speedup"], row["median_us"] / report["stencil"]["median_us"], delta=1e-9 * row["speedup"])
        text = self.run_it("bench", "stencil", "--problem", "heat", "--size", "9x9", *BRIEF, "--no-bandwidth", "--rival", f"mine={mine}", "--rival-time",
                           "(?P<ms>[0-9.]+) ms").stdout
        self.assertIn("mine          125.000    125.000    125.000  ", text)  # what comes last, errors too, counts: of the 1 ms

    def test_rivals_that_fail(self):
        words = ("--size", "30x20", "--no-bandwidth")
        code = self.rival("code", "echo no room >&2", "exit 3")
        silent = self.rival("silent", "echo nothing")
        slow = self.rival("slow", "sleep 60")
        second = self.rival("second", "[ $(wc -l <said) -lt 2 ] || exit 5", "echo a, 1, 2, 8, 1, 0.008")
        for limit in (0.2, 2, 20):
            problem = self.bench("jacobi2d", *words, "--rival", slow, "--rival-limit", limit)["rivals"][0]["problem"]
            self.assertIn(f"it did not end within {limit} s", problem)
            if (self.folder / "said").exists():  # a busy machine may not even start it within the first of them
                break
        self.assertEqual(len(self.said()), 1)
        for command, more, says, starts in ((code, (), "it ended with code 3: no room", 1), (silent, (), "it printed no line of NAME", 1),
                                            (silent, ("--rival-time", "took (?P<s>.*)"), "that 'took (?P<s>.*)' matches", 1),
                                            (silent, ("--rival-time", "(?P<s>no.*)"), "its time was read as 'nothing'", 1),
                                            (second, (), "it ended with code 5", 2)):
            with self.subTest(command=command, more=more):
                report = self.bench("jacobi2d", *words, "--rival", command, *more)
                self.assertIn(says, report["rivals"][0]["problem"])
                self.assertEqual(len(self.said()), starts)
        text = self.run_it("bench", "stencil", "--problem", "jacobi2d", *words, *BRIEF, "--rival", code).stdout
        self.assertIn("rival      not timed: it ended with code 3: no room", text)

    def test_rivals_that_are_refused(self):
        self.write("plain", "no program")
        mine = self.rival("mine", "echo 1")
        words = ("bench", "stencil", "--problem", "jacobi2d", "--size", "30x20", "--rival")
        for more, says in ((("./absent",), "'./absent' cannot be started (there is no such file)"), (("./plain",), "the file is not executable"),
                           (("no-such-program-anywhere",), "no folder of PATH"), ((f"{mine} {{nz}}",), "'{nz}' is no place"),
                           ((f"{mine} 'open",), "a quote is open"), (("",), "no command"), (("a=" + mine, "--rival", "a=" + mine), "two of that name"),
                           ((mine, "--rival-time", "[0-9]+"), "no group (?P<unit>...)"), ((mine, "--rival-time", "(?P<h>.*)"), "the group 'h' is no unit"),
                           ((mine, "--rival-time", "(?P<s>.*) (?P<ms>.*)"), "a second time"), ((mine, "--rival-time", "(?P<s>.*"), "no regular expression"),
                           ((mine, "--transport", "processes", "--variants", "copy"), "--rival with ranks of --transport processes")):
            with self.subTest(more=more):
                self.assertIn(says, self.refused(2, *words, *more))
        self.assertFalse((self.folder / "said").exists())

    def test_refusals(self):
        words = ("bench", "stencil", "--problem", "heat")
        self.assertIn("--size is required", self.refused(2, *words))
        self.assertIn("no/r.json", self.refused(4, *words, "--size", "9x9", "--json", "no/r.json"))
        variants = (*words, "--size", "9x9", "--variants", "copy")
        self.assertIn("'ours' is none", self.refused(2, *words, "--size", "9x9", "--variants", "copy,ours"))
        self.assertIn("--variants", self.refused(2, *words, "--size", "9x9", "--no-compute"))
        self.assertIn("--transport processes beside the plain loop", self.refused(2, *words, "--size", "9x9", "--transport", "processes"))
        self.assertIn("--latency-us with --transport mpi", self.refused(2, *variants, "--latency-us", 5, "--transport", "mpi"))
        self.assertIn("--rival rival with heat", self.refused(2, *variants, "--rival", "true"))
        self.assertIn("--boundary with --variants", self.refused(2, *variants, "--boundary", "periodic"))
        self.assertIn("--no-bandwidth with --variants", self.refused(2, *variants, "--no-bandwidth"))
        self.assertIn("excludes", self.refused(2, *variants, "--overlap", "--no-compute"))
        self.assertIn("it has k", self.refused(2, *words, "--size", "9x9", "--parameter", "q=1"))
        self.assertIn("not_finite", self.refused(4, *words, "--size", "9x9", "--parameter", "k=1e300", *BRIEF))


if __name__ == "__main__":
    unittest.main()

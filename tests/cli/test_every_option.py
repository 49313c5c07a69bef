"""No option without a test: each one that a subcommand's --help lists stands in a test of that subcommand; and the page of all options."""

import re
import unittest
from pathlib import Path

from hostless_command import Command

TESTS_OF = {"solve": ("exit_codes", "solve_options", "general", "endings", "result", "gpu"), "generate": ("problem_options",),
            "info": ("problem_options",), "plan": ("plan", "problem_options"), "doctor": ("plan", "gpu"), "report": ("report",), "predict": ("predict",), **{f"predict {what}": ("predict",) for what in ("stencil", "collective")}, "options": ("every_option",),
            "bench solve": ("bench",), "bench papers": ("bench_papers", "bench"), "bench stencil": ("bench_stencil", "stencil_gpu"),
            "bench life": ("bench_queue",), "bench neighbor": ("bench_neighbor",),
            "stencil": ("stencil", "stencil_endings", "stencil_gpu"),
            **{f"machine {what}": ("machine",) for what in ("list", "show", "price", "halo", "fit", "forms", "figures", "measure", "compare")},
            **{f"bench {what}": ("bench", "bench_queue", "bench_rows") for what in ("pingpong", "halo", "allreduce")}}
# Those of generated problems are one text for all subcommands, tested through `info` and refused one by one.
OF_PROBLEMS = {"--generate", "--preset", "--size", "--scale", "--contrast", "--boundary", "--long-edges", "--time-step"}


class EveryOption(Command):
    def listed(self, *command):
        return set(re.findall(r"^  ([a-z]+)  ", self.run_it(*command, "--help").stdout, re.M))

    def test_subcommands(self):
        listed = self.listed()
        for command in tuple(TESTS_OF):
            family, *inner = command.split()
            if inner:
                listed = (listed - {family} if family not in TESTS_OF else listed) | {f"{family} {one}" for one in self.listed(family)}
        self.assertEqual(listed, TESTS_OF.keys())

    def test_options(self):
        for command, suites in TESTS_OF.items():
            listed = set(re.findall(r"^ +(?:-\w,)?(--[\w-]+)", self.run_it(*command.split(), "--help").stdout, re.M)) - {"--help"}
            self.assertGreaterEqual(len(listed), 1)
            text = "".join(Path(__file__).with_name(f"test_{suite}.py").read_text() for suite in suites)
            text += Path(__file__).with_name("test_problem_options.py").read_text() if listed & OF_PROBLEMS else ""
            named = set(re.findall(r'"(--[\w-]+)"', text))
            named |= {f"--{word}" for word in re.findall(r'\("([a-z]+)", \("', text)}  # tables of option and values
            self.assertEqual(listed - named, set(), command)


class Options(Command):
    def test_the_page_has_every_option_of_a_solve(self):
        page = self.run_it("options").stdout
        listed = set(re.findall(r"^ +(--[\w-]+)", self.run_it("solve", "--help").stdout, re.M))
        named = set(re.findall(r"^\| \w+ \| `(--[\w-]+)`", page, re.M))
        # The problem, files and what is told: of this program alone.
        own = {"--generate", "--preset", "--size", "--scale", "--contrast", "--boundary", "--long-edges", "--time-step",
               "--manufactured", "--json", "--output", "--no-bandwidth", "--quiet"}
        self.assertEqual(listed - own - {"--help"}, named)

    def test_a_page_that_was_written_is_the_same(self):
        self.run_it("options", "--output", "options.md")
        self.assertEqual((self.folder / "options.md").read_text(), self.run_it("options").stdout)
        self.run_it("options", "--check", "options.md")
        (self.folder / "options.md").write_text("# Options\n")
        done = self.run_it("options", "--check", "options.md", code=1)
        self.assertIn("options.md is not what the table of options says", done.stderr)
        self.run_it("options", "--check", "missing.txt", code=3)
        self.run_it("options", "--check", ".", code=3)
        self.refused(2, "options", "--check", "options.md", "--output", "options.md")


if __name__ == "__main__":
    unittest.main()

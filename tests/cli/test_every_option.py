"""No option without a test: each one that a subcommand's --help lists stands in a test of that subcommand."""

import re
import unittest
from pathlib import Path

from hostless_command import Command

TESTS_OF = {"solve": ("exit_codes", "solve_options", "endings", "result", "gpu"), "generate": ("problem_options",),
            "info": ("problem_options",), "plan": ("plan", "problem_options"), "doctor": ("plan", "gpu"), "report": ("report",), "predict": ("predict",), "options": ("options",),
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
                listed = (listed - {family}) | {f"{family} {one}" for one in self.listed(family)}
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


if __name__ == "__main__":
    unittest.main()

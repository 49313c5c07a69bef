"""`hostless options`: the page of all options, and whether one that is there is up to date."""

import re
import unittest

from hostless_command import Command


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
        self.run_it("options", "--check", "missing.txt", code=4)
        self.refused(2, "options", "--check", "options.md", "--output", "options.md")


if __name__ == "__main__":
    unittest.main()

"""`hostless report`: which Python it becomes, what that is given, and what is said where there is none.

A script stands for Python here; the page itself has tests of its own (tests/report).
"""

import os
import shutil
import sys
import unittest
from pathlib import Path

from hostless_command import COMMAND, Command

#: Answers what a Python is asked first.
FAKE = '#!/bin/sh\n[ "$2" = "print(6 * 7)" ] && echo 42 && exit\nprintf "%s\\n" "{name}" "$@"\nexit {code}\n'


class Report(Command):
    def fake(self, path, code=0):
        """A Python that prints its name and its words."""
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FAKE.format(name=path.parent.name, code=code))
        path.chmod(0o755)
        return str(path)

    def words_given(self, *words, code=0, environment=None, program=COMMAND):
        """(name of the Python, the words behind the program that it is given)"""
        said = self.run_it("report", *words, code=code, environment=environment, program=program).stdout.splitlines()
        self.assertIn("from hostless.report.__main__ import main", " ".join(said))
        begin = said.index("--output")
        return said[0], said[begin:]

    def test_options_reach_python(self):
        python = {"HOSTLESS_PYTHON": self.fake("mine/python")}
        for words, given in ((("a.json",), ["--output", "report.html", "--", "a.json"]),
                             (("a.json", "b c.json", "--output", "x.html"), ["--output", "x.html", "--", "a.json", "b c.json"]),
                             (("-o", "-", "--title", "T & U", "--bandwidth", "4.5e12", "a.json"),
                              ["--output", "-", "--title", "T & U", "--bandwidth", "4.5e12", "--", "a.json"])):
            with self.subTest(words=words):
                self.assertEqual(self.words_given(*words, environment=python), ("mine", given))

    def test_its_exit_code_is_that_of_python(self):
        for code in (0, 3, 4):
            self.words_given("a.json", code=code, environment={"HOSTLESS_PYTHON": self.fake("mine/python", code)})

    def test_usage(self):
        for words in ((), ("a.json", "--bandwidth", "0"), ("a.json", "--bandwidth", "fast"), ("a.json", "--unknown")):
            with self.subTest(words=words):
                self.assertIn("See hostless report --help", self.refused(2, "report", *words))

    def test_help_names_what_it_takes(self):
        says = self.run_it("report", "--help").stdout
        for command in ("solve", "stencil", "plan", "bench solve"):
            self.assertIn(f"`{command}`", says)

    def test_which_python(self):
        self.fake("path/python3")
        path = {"PATH": f"{self.folder / 'path'}{os.pathsep}{os.environ['PATH']}", "HOSTLESS_PYTHON": ""}
        self.assertEqual(self.words_given("a.json", environment=path)[0], "path")
        # of an environment: its own, whether or not it is activated; beside other programs in a folder: PATH's
        command = shutil.copy(COMMAND, Path(self.fake("env/bin/python3")).parent)
        self.assertEqual(self.words_given("a.json", environment=path, program=command)[0], "path")
        for mark in ("pyvenv.cfg", "conda-meta"):
            (self.folder / "env" / mark).mkdir()
            self.assertEqual(self.words_given("a.json", environment=path, program=command)[0], "bin")
            (self.folder / "env" / mark).rmdir()
        mine = {**path, "HOSTLESS_PYTHON": self.fake("mine/python")}
        self.assertEqual(self.words_given("a.json", environment=mine, program=command)[0], "mine")

    def test_without_python(self):
        for environment in ({"PATH": str(self.folder), "HOSTLESS_PYTHON": ""}, {"HOSTLESS_PYTHON": "/nowhere/python"}):
            says = self.refused(4, "report", "a.json", environment=environment)
            self.assertIn("cannot be run: No such file or directory (Python makes the page). Install python3", says)

    def test_what_is_no_python(self):
        for script, how in (("exit 1", "it ended with exit code 1"), ("exit 0", "it printed something else"), ("kill -9 $$", "it ended with signal 9")):
            (self.folder / "no").write_text(f"#!/bin/sh\n{script}\n")
            (self.folder / "no").chmod(0o755)
            says = self.refused(4, "report", "a.json", environment={"HOSTLESS_PYTHON": str(self.folder / "no")})
            self.assertIn(f"{self.folder / 'no'}: is no Python that runs: {how}", says)

    def test_without_the_package(self):
        (self.folder / "packages" / "hostless").mkdir(parents=True)
        (self.folder / "packages" / "hostless" / "__init__.py").touch()
        environment = {"HOSTLESS_PYTHON": sys.executable, "PYTHONPATH": str(self.folder / "packages")}
        says = self.refused(4, "report", "a.json", environment=environment)
        self.assertIn("cannot import hostless.report: No module named 'hostless.report'", says)
        self.assertIn("Install it with `pip install .`", says)
        # what lies in the folder one stands in is not run
        (self.folder / "hostless").mkdir()
        (self.folder / "hostless" / "report.py").write_text("print('run')")
        self.refused(4, "report", "a.json", environment=environment)


if __name__ == "__main__":
    unittest.main()

"""The last line of .ci/run and its exit code, with stages that do nothing but write what they are told."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from tests.checkout import checkout

ROOT = Path(__file__).resolve().parents[2]
PASSED = '<testcase name="good" status="run"><system-out>fine</system-out></testcase>'
SKIPPED = ('<testcase name="solve_gpu_libraries_hip" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
           "<system-out>not compiled: no usable hipcc was found</system-out></testcase>")


def run(tests=PASSED, asan=PASSED, allowed="", codes=None):
    """(exit code, lines) of .ci/run where stages write these reports and end with these codes."""
    codes = codes or {}

    def script(name, report=""):
        return f"#!/bin/sh\n{report}\nexit {codes.get(name, 0)}\n"

    def sanitizer(cases):
        return f"""if [ "$2" = build ]; then echo "compiled $1"; exit {codes.get("ahead", 0)}; fi
if [ "$1" = asan-ubsan ]; then echo '<testsuite>{cases}</testsuite>'; else echo '<testsuite>{PASSED}</testsuite>'; fi >"$3" """

    files = {".ci/run": (ROOT / ".ci/run").read_text(), "tools/count_tests.py": (ROOT / "tools/count_tests.py").read_text(),
             "tests/allowed_skips.txt": allowed, "tools/setup.sh": script("packages"), "tools/fuzz.sh": script("fuzz"),
             "tools/sanitize.sh": script("sanitize", sanitizer(asan)),
             "bin/make": script("tests", f"""for word; do case $word in REPORT=*) report=${{word#REPORT=}} ;; esac; done
[ "$GPU" = on ] && echo '<testsuite>{tests}</testsuite>' >"$report" """)}
    with checkout(files) as root:
        for name in files:
            (root / name).chmod(0o755)
        done = subprocess.run([root / ".ci/run"], capture_output=True, text=True, check=False, timeout=600,
                              env={**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}"})
        return done.returncode, done.stdout.splitlines()


class CiRun(unittest.TestCase):
    def expect(self, last, inside="", **how):
        code, lines = run(**how)
        self.assertEqual((code, lines[-1]), (0 if " 0 failed" in last else 1, last), "\n".join(lines))
        self.assertIn(inside, "\n".join(lines))

    def test_every_stage_counts(self):  # packages and fuzz are one test each
        self.expect("5 passed, 0 failed, 0 skipped")

    def test_a_compiler_that_is_not_there_fails(self):
        self.expect("5 passed, 1 failed, 0 skipped", tests=PASSED + SKIPPED, inside=(
            "failed: tests: solve_gpu_libraries_hip was skipped, which tests/allowed_skips.txt does not allow here: "
            "not compiled: no usable hipcc was found"))

    def test_what_is_allowed_in_one_stage_is_not_in_another(self):
        allowed = "asan-ubsan ci | solve_gpu_libraries_* | not compiled: *\n"
        self.expect("5 passed, 0 failed, 1 skipped", asan=PASSED + SKIPPED, allowed=allowed)
        self.expect("5 passed, 1 failed, 1 skipped", asan=PASSED + SKIPPED, tests=PASSED + SKIPPED, allowed=allowed)
        self.expect("5 passed, 1 failed, 0 skipped", allowed=allowed, inside="allowed_skips.txt:1: nothing was skipped")

    def test_stages_that_fail(self):
        self.expect("4 passed, 1 failed, 0 skipped", codes={"packages": 1}, inside="failed: packages: exit code 1")
        self.expect("5 passed, 1 failed, 0 skipped", codes={"tests": 2}, inside="failed: tests: exit code 2")

    def test_what_is_compiled_ahead_is_shown_and_not_counted(self):
        code, lines = run(codes={"ahead": 1})
        self.assertEqual((code, lines[-1]), (0, "5 passed, 0 failed, 0 skipped"), "\n".join(lines))
        said = [line for line in lines if re.match(r"== [a-z-]+ \(|compiled ", line)]
        self.assertEqual([line.split(" (")[0] for line in said],
                         ["== packages", "== tests", "compiled asan-ubsan", "== asan-ubsan", "compiled tsan", "== tsan",
                          "== fuzz", "== done"])


if __name__ == "__main__":
    unittest.main()

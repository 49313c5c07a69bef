"""What counts as passed, failed and skipped: reports as ctest writes them, with what the three frameworks print."""

import contextlib
import io
import unittest
from xml.sax.saxutils import escape

from tests.checkout import checkout

import count_tests

GOOGLE = """[==========] Running 3 tests from 1 test suite.
[ RUN      ] Mpi.Loads
a line of the test
[       OK ] Mpi.Loads (8 ms)
[ RUN      ] All/Mpi.Gives/two
mpi_test.cpp:157: Skipped
this user cannot
give files away

text of a child[  SKIPPED ] All/Mpi.Gives/two (0 ms)
[ RUN      ] Mpi.Ends
[       OK ] Mpi.Ends (0 ms)
[==========] 3 tests from 1 test suite ran. (9 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] All/Mpi.Gives/two
"""
ALL_SKIPPED = """[==========] Running 1 test from 1 test suite.
[ RUN      ] Gpu.Solves
gpu_setting.hpp:32: Skipped
no GPU is visible

[  SKIPPED ] Gpu.Solves (0 ms)
[==========] 1 test from 1 test suite ran. (0 ms total)
[  PASSED  ] 0 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Gpu.Solves
"""
FAILED = """[==========] Running 2 tests from 1 test suite.
[ RUN      ] A.One
[  FAILED  ] A.One, where GetParam() = 3 (1 ms)
[ RUN      ] A.Two
[       OK ] A.Two (1 ms)
[  PASSED  ] 1 test.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.One, where GetParam() = 3
"""
NOTHING = "[==========] Running 0 tests from 0 test suites.\n[==========] 0 tests ran. (0 ms total)\n[  PASSED  ] 0 tests.\n"
UNITTEST = """test_one (test_gpu.Gpu.test_one) ... ok
test_two (test_gpu.Gpu.test_two)
What it is for. ... skipped 'no "GPU" here'
test_three (test_gpu.Gpu.test_three) ... ok

----------------------------------------------------------------------
Ran 3 tests in 0.1s

OK (skipped=1)
"""
QUIET = "Ran 4 tests in 0.1s\n\nOK (skipped=1)\n"
PYTEST = """..s.                                                                     [100%]
=========================== short test summary info ============================
SKIPPED tests/python/test_a.py::test_torch[a] - Skipped: torch is not installed
3 passed, 1 skipped, 2 warnings in 0.12s
"""


def case(name, text="", status="run", inner=""):
    return f'<testcase name="{name}" status="{status}">{inner}<system-out>{escape(text)}</system-out></testcase>'


def counted(*stages, reports=None, allowed=None, where=""):
    """(exit code, everything printed); stages name reports as {name}."""
    files = {f"{name}.xml": f"<testsuite>{''.join(cases)}</testsuite>" for name, cases in (reports or {}).items()}
    if allowed is not None:
        files["allowed.txt"] = allowed
    printed = io.StringIO()
    with checkout(files) as root, contextlib.redirect_stdout(printed):
        words = [stage.replace("{", f"{root}/").replace("}", ".xml") for stage in stages]
        options = ["--allowed", str(root / "allowed.txt"), "--where", where] if allowed is not None else []
        code = count_tests.main([*options, *words])
    return code, printed.getvalue()


def of(*cases, **how):
    return counted("tests=0:{tests}", reports={"tests": cases}, **how)


class Frameworks(unittest.TestCase):
    def expect(self, text, last, *lines):
        code, printed = of(case("program", text))
        self.assertEqual((code, printed.splitlines()[-1]), (0, last), printed)
        self.assertEqual(printed.splitlines()[:-1], list(lines))

    def test_each_test_inside_a_program_counts(self):
        self.expect(GOOGLE, "2 passed, 0 failed, 1 skipped",
                    "skipped: tests: program: All/Mpi.Gives/two (this user cannot give files away)")
        self.expect(UNITTEST, "2 passed, 0 failed, 1 skipped",
                    "skipped: tests: program: test_gpu.Gpu.test_two (no \"GPU\" here)")
        self.expect("it printed something", "1 passed, 0 failed, 0 skipped")

    def test_pytest(self):
        code, printed = of(case("python", PYTEST))
        self.assertEqual((code, printed), (
            0, "skipped: tests: python: tests/python/test_a.py::test_torch[a] (torch is not installed)\n"
               "3 passed, 0 failed, 1 skipped\n"))

    def test_a_program_whose_every_test_was_skipped_has_not_passed(self):
        self.expect(ALL_SKIPPED, "0 passed, 0 failed, 1 skipped", "skipped: tests: program: Gpu.Solves (no GPU is visible)")

    def test_a_program_in_which_no_test_ran_has_not_passed(self):
        self.expect(NOTHING, "0 passed, 0 failed, 1 skipped",
                    "skipped: tests: program (no test ran: what its command line asks for is not in it)")

    def test_a_skip_that_was_not_named_is_counted(self):
        self.expect(QUIET, "3 passed, 0 failed, 1 skipped",
                    "skipped: tests: program: (not named) (no reason was printed)")

    def test_many_of_one_reason_stand_together(self):
        code, printed = of(case("program", ALL_SKIPPED.replace("[  SKIPPED ] 1 test,", "[  SKIPPED ] 5 tests,")
                                + "".join(f"[ RUN      ] Gpu.T{k}\na.cpp:1: Skipped\nno GPU is visible\n\n"
                                          f"[  SKIPPED ] Gpu.T{k} (0 ms)\n" for k in range(4))))
        self.assertIn("program: Gpu.Solves, and 4 more (no GPU is visible)\n0 passed, 0 failed, 5 skipped\n", printed)


class Failures(unittest.TestCase):
    def expect(self, cases, last, inside):
        code, printed = of(*cases)
        self.assertEqual((code, printed.splitlines()[-1]), (1, last), printed)
        self.assertIn(inside, printed)

    def test_inside_a_program(self):
        self.expect([case("a", FAILED, "fail", "<failure message=''/>")], "1 passed, 1 failed, 0 skipped",
                    "failed: tests: a: a test inside it")

    def test_of_a_program_that_said_all_was_well(self):
        self.expect([case("a", GOOGLE, "fail", "<failure message='Timeout'/>")], "2 passed, 1 failed, 1 skipped",
                    "failed: tests: a: failed")

    def test_what_a_sanitizer_found_in_a_program_that_was_skipped(self):
        self.expect([case("a", ALL_SKIPPED + "==7==ERROR: LeakSanitizer: detected memory leaks\n", "notrun",
                          "<skipped message='SKIP_REGULAR_EXPRESSION_MATCHED'/>")],
                    "0 passed, 1 failed, 1 skipped", "a: a sanitizer has found something")

    def test_what_could_not_be_started(self):
        self.expect([case("a", "", "notrun", "<skipped message='Unable to find executable'/>")],
                    "0 passed, 1 failed, 0 skipped", "a: Unable to find executable")

    def test_a_stage_that_failed_beside_its_tests(self):
        code, printed = counted("packages=0", "tests=2:{tests}", "fuzz=1", reports={"tests": [case("a")]})
        self.assertEqual((code, printed.splitlines()[-1]), (1, "2 passed, 2 failed, 0 skipped"), printed)

    def test_a_report_that_was_not_written_or_is_cut_short(self):
        code, printed = counted("tests=0:/nowhere/tests.xml")
        self.assertEqual((code, printed.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"))
        code, printed = counted("tests=0:{allowed}", reports={}, allowed="")
        self.assertEqual(code, 1, printed)


class Allowed(unittest.TestCase):
    GPU = "no-gpu tests | device*::* | no GPU*\n"

    def expect(self, allowed, where, last, inside="", cases=(case("device", ALL_SKIPPED), case("a"))):
        code, printed = of(*cases, allowed=allowed, where=where)
        self.assertEqual(printed.splitlines()[-1], last, printed)
        self.assertEqual(code, 0 if " 0 failed" in last else 1)
        self.assertIn(inside, printed)

    def test_what_the_list_allows_here(self):
        self.expect("# why\n\n" + self.GPU, "ci,no-gpu", "1 passed, 0 failed, 1 skipped")

    def test_nothing_else(self):
        self.expect("", "no-gpu", "1 passed, 1 failed, 0 skipped", "device::Gpu.Solves was skipped, which")
        self.expect(self.GPU, "ci", "1 passed, 1 failed, 0 skipped")
        self.expect("tests !ci | device::* | *\n", "ci", "1 passed, 1 failed, 0 skipped")
        self.expect("tests | device::* | another reason\n", "ci", "1 passed, 2 failed, 0 skipped")
        self.expect("tsan | device::* | *\n", "no-gpu", "1 passed, 1 failed, 0 skipped")

    def test_an_entry_that_allowed_nothing_is_stale(self):
        self.expect(self.GPU + "tests | mpi::* | *\n", "no-gpu", "1 passed, 1 failed, 1 skipped",
                    "allowed.txt:2: nothing was skipped as 'mpi::*'")
        self.expect(self.GPU + "tests ? | mpi::* | *\n", "no-gpu", "1 passed, 0 failed, 1 skipped")
        self.expect(self.GPU + "tsan | mpi::* | *\n", "no-gpu", "1 passed, 0 failed, 1 skipped")

    def test_not_where_the_stage_did_not_end(self):
        code, printed = counted("tests=1:{tests}", reports={"tests": [case("a")]}, allowed="tests | mpi::* | *\n")
        self.assertEqual((code, printed.splitlines()[-1]), (1, "1 passed, 1 failed, 0 skipped"), printed)

    def test_a_line_that_is_no_entry(self):
        with self.assertRaisesRegex(SystemExit, r"allowed.txt:1: 'tests \| a' is no entry"):
            of(case("a"), allowed="tests | a\n")


if __name__ == "__main__":
    unittest.main()

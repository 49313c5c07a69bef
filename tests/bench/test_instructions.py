"""bench/instructions.py with a valgrind that counts what a fake hostless says it took."""

import contextlib
import io
import os
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import instructions  # noqa: E402

VALGRIND = """\
    #!{python}
    import json, sys
    words = sys.argv[1:]
    program = next(word for word in words if not word.startswith("-"))
    setup, iteration, residual, ends = open(program).read().split()
    after = words[words.index(program) + 1:]
    assert "--toggle-collect=hostless::run_method*" in words and after[0] == "solve"
    steps = int(after[after.index("--max-iterations") + 1])
    done = min(steps, int(ends))
    json.dump({{"iterations": done, "true_residual": float(residual), "status": "played"}}, open(after[after.index("--json") + 1], "w"))
    print(f"==1== Collected : {{int(setup) + done * int(iteration)}}", file=sys.stderr)
    """


class Instructions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bin").mkdir()
        valgrind = self.folder / "bin" / "valgrind"
        valgrind.write_text(textwrap.dedent(VALGRIND).format(python=sys.executable))
        valgrind.chmod(0o755)
        self.path = os.environ["PATH"]
        os.environ["PATH"] = str(self.folder / "bin")
        self.addCleanup(os.environ.__setitem__, "PATH", self.path)

    def played(self, name, text):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def run_it(self, before, after, *more):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = instructions.main(["--before", self.played("before", before), "--after", self.played("after", after),
                                      "--only", "poisson7", "--methods", "cg", *more])
        return code, said.getvalue()

    def test_set_up_does_not_count(self):
        code, said = self.run_it("5000 1000 1e-3 99", "90000 1010 1e-3 99")
        self.assertEqual(code, 0)
        self.assertIn("| poisson7 | cg | 1000 | 1010 | 1.0100 |", said)

    def test_more_instructions_fail(self):
        self.assertEqual(self.run_it("0 1000 1e-3 99", "0 1030 1e-3 99")[0], 1)
        self.assertEqual(self.run_it("0 1000 1e-3 99", "0 1030 1e-3 99", "--limit", "1.04")[0], 0)

    def test_other_bits_fail(self):
        code, said = self.run_it("0 1000 1e-3 99", "0 1000 2e-3 99")
        self.assertEqual(code, 1)
        self.assertIn("true residual 0.001 was, 0.002 is", said)

    def test_a_solve_that_ends_early_fails(self):
        code, said = self.run_it("0 1000 1e-3 99", "0 1000 1e-3 12")
        self.assertEqual(code, 1)
        self.assertIn("ended after 12 iterations", said)

    def test_without_valgrind_nothing_is_counted(self):
        os.environ["PATH"] = str(self.folder)
        self.assertEqual(self.run_it("0 1000 1e-3 99", "0 1000 1e-3 99")[0], 3)


if __name__ == "__main__":
    unittest.main()

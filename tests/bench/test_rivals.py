"""bench/gpu/compare.py with rivals that its caller names: what they are given, what is found in what they print, what is
said of those that cannot be compared."""

import argparse
import contextlib
import io
import json
import os
import shlex
import struct
import subprocess
import sys
from unittest import mock

from test_compare import HERE, Folder

import compare
import linear_system
import rival_files
import rivals

OTHER = shlex.join([sys.executable, str(HERE / "other_rival.py")])


class Driver(Folder):
    def compare(self, *words, fault=""):
        """(exit code, the table's rows as lists of cells, standard error, the contestants of the JSON file)"""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, OTHER_FAULT=fault), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = compare.main(["--hostless", os.environ["HOSTLESS_COMMAND"], "--rivals", "", "--runs", "host", "--small",
                                 "--hostless-options", "", "--repeats", "2", "--json", str(self.folder / "figures.json"),
                                 "--only", "poisson2d", *words])
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.getvalue().splitlines()
                if line.startswith("|")]
        return code, rows[2:], err.getvalue(), json.loads((self.folder / "figures.json").read_text())["matrices"][0]["contestants"]

    def test_forms_and_what_others_print(self):
        code, rows, err, figures = self.compare(
            "--rival", f"aCG={OTHER} acg {{matrix-acg}} {{rhs-acg}} {{iterations}} acg",
            "--rival", f"aCG 64={OTHER} acg64 {{matrix-acg64}} {{rhs-acg}} {{iterations}} acg {{x}}",
            "--rival", f"PETSc={OTHER} market {{matrix}} {{rhs}} {{iterations}} petsc {{x}}",
            "--rival", f"AmgX={OTHER} market {{matrix}} {{rhs}} {{iterations}} amgx {{x}}",
            "--rival", f"own={OTHER} market {{matrix}} {{rhs}} {{iterations}} json {{x}}")
        self.assertEqual(code, 0, err)
        self.assertEqual([row[1] for row in rows], ["aCG", "aCG 64", "PETSc", "AmgX", "own", "**hostless host, auto**"])
        for row, one in zip(rows[:-1], figures):
            self.assertEqual(row[2:4], ["50.00", "50.00"])
            self.assertEqual(row[6], "10")
            self.assertEqual(row[8:], ["", ""])  # nobody knows how many bytes they move
            self.assertAlmostEqual(one["residual"], figures[-1]["residual"], delta=1e-10 * one["residual"])
            self.assertLess(one["error"], 1)
        self.assertIn("2d-24-24.acg ", figures[0]["details"]["command"])

    def test_a_time_of_its_own(self):
        for pattern, us in ((r"(?P<ms>\S+) milliseconds", 50.0), (r"(?P<us_per_iteration>\S+) milli", 0.5),
                            (r"^(?P<s>\S+) milli", 5e4)):
            with self.subTest(pattern):
                code, rows, err, figures = self.compare(
                    "--rival", f"it={OTHER} market {{matrix}} {{rhs}} {{iterations}} words {{x}}", "--rival-time", f"it={pattern}",
                    "--rival-iterations", r"it=made=(\d+)")
                self.assertEqual(code, 0, err)
                self.assertAlmostEqual(figures[0]["us"]["best"], us, delta=1e-9 * us)
                self.assertEqual(rows[0][6], "10")

    def test_one_with_its_own_right_hand_side_is_timed_and_not_judged(self):
        command = f"it={OTHER} market {{matrix}} - {{iterations}} "
        code, rows, err, figures = self.compare("--rival", command + "petsc")
        self.assertEqual(code, 0, err)
        self.assertEqual(rows[0][7], "no x to judge")
        self.assertIsNone(figures[0]["residual"])
        code, rows, err, _ = self.compare("--rival", command + "acg")  # an x that it prints is that of its own b
        self.assertEqual((code, rows[0][7]), (0, "no x to judge"), err)
        code, _, err, _ = self.compare("--rival", command + "words", "--rival-time", r"it=(?P<ms>\S+) milli")
        self.assertEqual(code, 1)
        self.assertIn("says neither how many iterations it made nor what x is", err)

    def test_an_x_vouches_for_iterations_that_are_not_said(self):
        words = ("--rival", f"it={OTHER} market {{matrix}} {{rhs}} {{iterations}} words {{x}}",
                 "--rival-time", r"it=(?P<ms>\S+) milli")
        code, rows, err, _ = self.compare(*words)
        self.assertEqual((code, rows[0][6]), (0, "not said"), err)
        code, _, err, _ = self.compare(*words, fault="lazy")
        self.assertEqual(code, 1)
        self.assertIn("residuals of", err)

    def test_every_fault_is_found(self):
        for style, fault, words in (("acg", "wrong", "residuals of"), ("petsc", "lazy", "7 iterations instead of 10"),
                                    ("plain", "", "no time in what it printed"), ("petsc", "silent", "No such file"),
                                    ("petsc", "cut", "575 numbers instead of 576"), ("none", "fails", "exit code 1")):
            with self.subTest(style=style, fault=fault):
                form = "market {matrix}" if fault != "fails" else "acg {matrix}"
                x = "" if style == "acg" else " {x}"
                code, rows, err, _ = self.compare("--rival", f"it={OTHER} {form} {{rhs}} {{iterations}} {style}{x}", fault=fault)
                self.assertEqual(code, 1)
                self.assertIn(words, err)
                self.assertIn("**hostless host, auto**", [row[1] for row in rows])

    def test_a_rival_that_is_no_program(self):
        code, rows, err, _ = self.compare("--rival", "it=/nowhere/solver {matrix} {iterations}")
        self.assertEqual(code, 1)
        self.assertIn("/nowhere/solver does not start", err)

    def test_hostless_reads_what_is_written_for_rivals(self):
        """Both forms of one matrix: the same bits of x."""
        self.compare("--rival", f"it={OTHER} market {{matrix}} {{rhs}} {{iterations}} petsc {{x}}", "--folder", str(self.folder))
        answers = []
        for matrix, rhs in ((".petsc", "-b.petsc"), (".mtx", "-b.mtx")):
            stem, x = self.folder / "poisson2d-24-24", self.folder / "x.petsc"
            subprocess.run([os.environ["HOSTLESS_COMMAND"], "solve", f"{stem}{matrix}", f"{stem}{rhs}", "--quiet", "--output", str(x)],
                           check=True, capture_output=True)
            answers.append(x.read_bytes())
        self.assertEqual(*answers)


class Words(Folder):
    def refused(self, *words):
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as err:
            compare.main(["--hostless", "hostless", *words])
        self.assertEqual(ended.exception.code, 2)
        return err.getvalue()

    def test_wrong_use(self):
        good = "it=solver {matrix} {iterations}"
        for words, said in (
                (["--rival", "solver {matrix}{iterations}"], "a name and what belongs to it"),
                (["--rival", "it=solver {matrx} {iterations}"], "{matrx} (nothing is known by that name). Use matrix, "),
                (["--rival", "it=solver A.mtx {iterations}"], "no matrix in its command"),
                (["--rival", "it=solver {matrix}"], "no {iterations} in its command"),
                (["--rival", "it=solver '{matrix} {iterations}"], "Close what is open"),
                (["--rival", good, "--rival", good], "there are two of that name"),
                (["--rival", good, "--rival-time", "other=(?P<s>x)"], "no --rival of that name. Name one of it"),
                (["--rival", good, "--rival-time", "it=(?P<s>x"], "Correct the regular expression"),
                (["--rival", good, "--rival-time", "it=time (.*)"], "its unit is the name of a group"),
                (["--rival", good, "--rival-time", "it=(?P<s>.)(?P<ms>.)"], "its unit is the name of a group"),
                (["--rival", good, "--rival-iterations", "it=made .*"], "one group is needed")):
            with self.subTest(words):
                self.assertIn(said, self.refused(*words))

    def test_a_command_is_words_and_not_a_shell(self):
        options = argparse.Namespace(rival=["it=mpirun -n 2 'a b' {{}} --file={matrix-acg} -n{iterations} $HOME;{x}"],
                                     rival_time=[], rival_iterations=[], iterations=7, warm_up=3)
        matrix = linear_system.Matrix.read(self.chain(4))
        one = rivals.named_rivals(options)["it"]
        self.assertEqual(rivals.prepare(one, options, matrix, [1.0] * 4, self.folder / "c d", "x file"),
                         ["mpirun", "-n", "2", "a b", "{}", f"--file={self.folder}/c d.acg", "-n7", "$HOME;x file"])

    def test_the_last_time_counts_and_must_be_a_time(self):
        one = rivals.Rival("it", [], times=(r"took (?P<us>\S+)",))
        self.assertEqual(rivals.time_and_iterations(one, "took 500\ntook 30", 10), (3.0, None))
        for printed, said in (("took 1,5", "'1,5' \\(no number\\)"), ("took 0", "is 0 us"), ("took nan", "is nan us"), ("", "no time")):
            with self.subTest(printed), self.assertRaisesRegex(linear_system.Wrong, said):
                rivals.time_and_iterations(one, printed, 10)

    def test_repeats(self):
        one = rivals.Rival("it", [])
        text = "total solver time: {} seconds\ntotal iterations: {}\n"
        us, made = rivals.figures(one, [text.format(t, n) for t, n in ((0.3, 100), (0.1, 100), (0.2, 100))], 100)
        self.assertEqual({name: round(value) for name, value in us.items()}, {"best": 1000, "median": 2000, "worst": 3000})
        self.assertEqual(made, 100)
        self.assertEqual(rivals.figures(one, [text.format(1, n) for n in (100, 99, 100)], 100)[1], 99)


class Files(Folder):
    def test_the_bytes_of_both_forms(self):
        matrix = linear_system.Matrix.read(self.chain(3))
        rows, columns, values = (1, 2, 2, 3, 3), (1, 1, 2, 2, 3), (4.0, -1.0, 4.0, -1.0, 4.0)
        head = b"%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n"
        for numpy in {linear_system.numpy, None}:
            for most in (None, 2):
                with self.subTest(numpy=bool(numpy), most=most), mock.patch.object(linear_system, "numpy", numpy), \
                        mock.patch.object(linear_system, "SLAB", most or linear_system.SLAB), \
                        mock.patch.object(rival_files, "TEXT_SLAB", most or rival_files.TEXT_SLAB):
                    path = self.folder / "m"
                    rival_files.write_market(path, matrix)
                    self.assertEqual(path.read_bytes(), head + b"1 1 4.0\n2 1 -1.0\n2 2 4.0\n3 2 -1.0\n3 3 4.0\n")
                    for width, code in ((4, "i"), (8, "q")):
                        rival_files.write_acg(path, matrix, width)
                        self.assertEqual(path.read_bytes(), head + struct.pack(f"=5{code}", *rows) +
                                         struct.pack(f"=5{code}", *columns) + struct.pack("=5d", *values))
                    rival_files.write_acg_vector(path, [1.5, -0.0])
                    self.assertEqual(path.read_bytes(), b"%%MatrixMarket vector array real general\n2\n" + struct.pack("=2d", 1.5, -0.0))
                    rival_files.write_market_vector(path, [1e-300, 0.1, 3.0])
                    self.assertEqual(path.read_bytes(), b"%%MatrixMarket matrix array real general\n3 1\n1e-300\n0.1\n3.0\n")
                    self.assertEqual(list(rival_files.read_answer(path, 3)), [1e-300, 0.1, 3.0])

    def test_one_triangle_is_not_left_out_where_the_other_differs(self):
        matrix = linear_system.Matrix.read(self.chain(3))
        lower = linear_system.Matrix(matrix.offsets[:2], matrix.columns[:1], matrix.values[:1])
        lower.rows, lower.offsets, lower.columns, lower.values, lower.nonzeros = 2, [0, 1, 3], [0, 0, 1], [1.0, 2.0, 3.0], 3
        with self.assertRaisesRegex(linear_system.Wrong, "not symmetric"):
            rival_files.write_acg(self.folder / "m", lower)
        self.assertFalse((self.folder / "m").exists())

    def test_answers_that_are_none(self):
        path = self.folder / "x"
        banner = "%%MatrixMarket matrix array real general\n"
        for text, said in ((banner + "3 1\n1\n2\n", "2 numbers instead of 3"), (banner + "2 1\n1\n2\n", "size '2 1'"),
                           (banner + "3 1\n1\ntwo\n3\n", "no number"), (banner, "size ''"), ("%% nothing\n", "neither a vector")):
            path.write_text(text)
            with self.subTest(text), self.assertRaisesRegex(linear_system.Wrong, said):
                rival_files.read_answer(path, 3)


if __name__ == "__main__":
    import unittest
    unittest.main()

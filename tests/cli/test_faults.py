"""The same fault has the same exit code whichever command meets it: commands by faults.

What the codes mean stands in docs/howto/solve-a-matrix.md.
"""

import os
import re
import unittest

from hostless_command import Command, chain, idle, limited, market

# How each command is called when nothing is wrong; {} is where a matrix stands.
MATRIX = {"solve": ("solve", "{}", "--no-bandwidth"), "info": ("info", "{}"), "plan": ("plan", "{}"),
          "bench solve": ("bench", "solve", "{}", "--iterations", "2", "--repeat", "1"),
          "bench halo": ("bench", "halo", "{}", "--steps", "1", "--repeat", "1", "--warm-up", "0")}
SMALL = ("--generate", "poisson2d", "--size", "6")
OTHER = {"generate": ("generate", "poisson2d", "--size", "6", "-o", "out.mtx"),
         "doctor": ("doctor", "--seconds", "0.001"), "report": ("report", "result.json"),
         "bench allreduce": ("bench", "allreduce", "--steps", "1", "--repeat", "1"),
         "bench pingpong": ("bench", "pingpong", "--ranks", "2", "--sizes", "8", "--steps", "1", "--repeat", "1")}
SHARING = ("solve", "plan", "bench solve", "bench halo")  # deal rows out
RANKS = ("solve", "bench solve", "bench halo", "bench allreduce", "bench pingpong")  # choose who carries
GPUS = ("solve", "bench solve", "bench halo", "bench allreduce")
JSON = (*MATRIX, "doctor", "bench allreduce", "bench pingpong")

BAD_FILES = {"garbage": "this is no matrix\n", "empty": "",
             "cut": market(chain(9), 9)[:-30],
             "unsymmetric": "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2\n2 2 2\n1 2 1\n",
             "not-square": "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 2\n",
             "infinite": "%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 inf\n",
             "out-of-range": "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n3 1 1.0\n"}


def on(name, matrix=SMALL):
    """The words of a command that works on that matrix."""
    words = []
    for word in {**MATRIX, **OTHER}[name]:
        words.extend(matrix if word == "{}" else (word,))
    return words


def generating(name, *words):
    """A command that makes a problem of these words instead."""
    if name == "generate":
        return ["generate", words[1], *words[2:], "-o", "out.mtx"]
    return on(name, words)


class Faults(Command):
    def setUp(self):
        super().setUp()
        self.write("A.mtx", market(chain(9), 9))
        self.write("result.json", "{}")

    def all_end_with(self, code, fault, commands, words_of, **how):
        """Runs them all before it says which do not."""
        ends = {name: self.run_it(*words_of(name), code=None, **how) for name in commands}
        wrong = {name: (done.returncode, done.stderr) for name, done in ends.items()
                 if done.returncode != code or not done.stderr.startswith("hostless: ") or done.stderr.count("\n") != 1}
        self.assertEqual(wrong, {}, f"{fault}: {code} is expected")

    def all_end_alike(self, fault, commands, words_of):
        codes = {name: self.run_it(*words_of(name), code=None).returncode for name in commands}
        self.assertEqual(len(set(codes.values())), 1, f"{fault}: {codes}")
        return next(iter(codes.values()))

    def test_none(self):
        for name in (*MATRIX, "generate", "doctor", "bench allreduce", "bench pingpong"):
            with self.subTest(name=name):
                self.run_it(*on(name))
                if name in MATRIX:
                    self.run_it(*on(name, ("A.mtx",)))

    def test_words(self):
        everything = (*MATRIX, *OTHER)
        for fault, more in (("an unknown option", ("--nonsense",)), ("an unknown short option", ("-z",))):
            with self.subTest(fault=fault):
                self.all_end_with(2, fault, everything, lambda name, more=more: [*on(name), *more])
        for fault, more in (("a missing value", ("--json",)), ("an option twice", ("--json", "a", "--json", "b"))):
            with self.subTest(fault=fault):
                self.all_end_with(2, fault, JSON, lambda name, more=more: [*on(name), *more])
        self.all_end_with(2, "nothing to work on", MATRIX, lambda name: on(name, ()))
        self.all_end_with(2, "a variable that would be ignored", [name for name in everything if name != "report"], on,
                          environment={"HOSTLESS_ISA": "abacus"})

    def test_problems(self):
        for fault, words in (
                ("an unknown kind", ("--generate", "poisson9")),
                ("no size", ("--generate", "poisson7", "--size", "0")),
                ("a negative size", ("--generate", "poisson7", "--size", "-3")),
                ("a size in words", ("--generate", "poisson7", "--size", "large")),
                ("half a node", ("--generate", "poisson7", "--size", "3.5")),
                ("two of three sides", ("--generate", "poisson7", "--size", "3,3")),
                ("three of two sides", ("--generate", "poisson2d", "--size", "3,3,3")),
                ("four sides", ("--generate", "poisson7", "--size", "3,3,3,3")),
                ("a side too long for any number", ("--generate", "poisson2d", "--size", "99999999999999999999")),
                ("more entries than 64 bits count", ("--generate", "poisson7", "--size", "10000000")),
                ("a scale of a kind", ("--generate", "poisson7", "--scale", "0.5")),
                ("no contrast", ("--generate", "poisson7", "--contrast", "0")),
                ("contrast in words", ("--generate", "poisson7", "--contrast", "high")),
                ("an unknown boundary", ("--generate", "poisson7", "--boundary", "fence")),
                ("another kind's option", ("--generate", "poisson7", "--long-edges", "0.1")),
                ("a negative seed", ("--generate", "poisson7", "--seed", "-1"))):
            with self.subTest(fault=fault):
                self.all_end_with(2, fault, (*MATRIX, "generate"), lambda name, w=words: generating(name, *w))
        for fault, words in (("an unknown preset", ("--preset", "moon")),
                             ("a scale above 1", ("--preset", "flan", "--scale", "2")),
                             ("a size of a preset", ("--preset", "flan", "--size", "3"))):
            with self.subTest(fault=fault):
                self.all_end_with(2, fault, (*MATRIX, "generate"), lambda name, w=words: generating(name, *w))

    def test_too_large(self):
        for words in (("--generate", "poisson2d", "--size", "1000000"), ("--generate", "poisson7", "--size", "20000")):
            with self.subTest(words=words):
                self.all_end_with(4, "too large for this machine", (*MATRIX, "generate"),
                                  lambda name, w=words: generating(name, *w))

    def test_files(self):
        for name, text in BAD_FILES.items():
            self.write(f"{name}.mtx", text)
            # Who solves nothing takes what some method does.
            commands = [one for one in MATRIX if name != "unsymmetric" or one not in ("info", "plan", "bench halo")]
            with self.subTest(file=name):
                self.all_end_with(3, name, commands, lambda command, name=name: on(command, (f"{name}.mtx",)))
        (self.folder / "folder.mtx").mkdir()
        codes = {self.all_end_alike(file, MATRIX, lambda name, file=file: on(name, (file,)))
                 for file in ("missing.mtx", "folder.mtx", "A.mtx/below.mtx")}
        self.assertEqual(len(codes), 1, "a name that leads to no file")
        self.all_end_with(2, "an option of problems with a file", MATRIX,
                          lambda name: [*on(name, ("A.mtx",)), "--contrast", "3"])

    def test_layout(self):
        ranks = {"solve": ("--ranks", "2"), "plan": ("--ranks", "2"), "bench solve": ("--ranks", "2"),
                 "bench halo": ("--ranks", "2")}
        for fault, more in (("an unknown partition", ("--partition", "fair")), ("an unknown route", ("--route", "scenic")),
                            ("a block size without kernels", ("--block-size", "5")),
                            ("three row lanes", ("--row-lanes", "3")), ("a negative number of slices", ("--slices", "-1")),
                            ("slices of nothing", ("--slices", "999999999")),
                            ("no ranks", ("--ranks", "0")), ("ranks in words", ("--ranks", "two")),
                            ("more ranks than one machine should start", ("--ranks", "4097"))):
            with self.subTest(fault=fault):
                own = () if more[0] == "--ranks" else None
                self.all_end_with(2, fault, SHARING, lambda name, more=more, own=own: [
                    *on(name), *(ranks[name] if own is None else own), *more])
        self.write("bad.txt", "0\n7\n")
        self.all_end_with(3, "a bad partition", SHARING,
                          lambda name: [*on(name), *ranks[name], "--partition", "file:bad.txt"])
        missing = self.all_end_alike("a partition that is not there", SHARING,
                                     lambda name: [*on(name), *ranks[name], "--partition", "file:missing.txt"])
        self.assertEqual(missing, self.all_end_alike("a missing matrix", MATRIX, lambda name: on(name, ("missing.mtx",))))
        for fault, more in (("an unknown format", ("--format", "coo")), ("columns of 17 bits", ("--columns", "17")),
                            ("a format and another block size", ("--format", "bsr3", "--block-size", "2"))):
            with self.subTest(fault=fault):
                self.all_end_with(2, fault, ("solve", "info", "bench solve"), lambda name, more=more: [*on(name), *more])

    def test_ranks_and_gpus(self):
        self.all_end_with(2, "an unknown transport", RANKS, lambda name: [*on(name), "--transport", "pigeons"])
        self.all_end_with(2, "a negative number of GPUs", GPUS, lambda name: [*on(name), "--gpus", "-1"])
        if self.run_it(*on("solve"), "--gpus", "1", code=None).returncode != 0:
            ends = {name: self.run_it(*on(name), "--gpus", "1", code=None) for name in GPUS}  # a line a library
            self.assertEqual({name: done.returncode for name, done in ends.items()}, dict.fromkeys(GPUS, 4))

    def test_output(self):
        for target in ("no/such/folder.json", "."):
            with self.subTest(target=target):
                ends = {name: self.run_it(*on(name), "--json", target, code=None).returncode for name in JSON}
                self.assertEqual(set(ends.values()), {4}, ends)
        self.all_end_with(4, "a target that cannot be written", ("generate",),
                          lambda name: ["generate", "poisson1d", "--size", "5", "-o", "no/such/A.mtx"])

    @unittest.skipIf({"ASAN_OPTIONS", "TSAN_OPTIONS"} & os.environ.keys(), "a sanitizer needs all addresses")
    def test_a_file_too_large_for_its_limit(self):
        rows = ("--generate", "poisson1d", "--size", "20000000")
        self.all_end_with(4, "too large for the process", ("solve", "info", "bench solve"), lambda name: on(name, rows),
                          launcher=limited("-v", 300_000))


class Advice(Command):
    """What is said first is what helps."""

    def empty_row(self, b):
        n = 30
        lines = [f"{i} {i} 4\n" + (f"{i + 1} {i} -1\n" if i < n and 6 not in (i, i + 1) else "") for i in range(1, n + 1) if i != 6]
        entries = "".join(lines)
        self.write("zero.mtx", f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {entries.count(chr(10))}\n{entries}")
        self.write("b.mtx", f"%%MatrixMarket matrix array real general\n{n} 1\n" + "".join(f"{b if i == 6 else 1}\n" for i in range(1, n + 1)))

    def test_a_row_of_zeros_is_named_first(self):
        self.empty_row(2)
        for words in (("--method", "cg"), ("--method", "minres"), ("--method", "cr"), ("--method", "bicgstab"), ("--preconditioner", "jacobi"),
                      ("--preconditioner", "chebyshev"), ("--method", "minres", "--ranks", 3), ("--method", "bicgstab", "--preconditioner", "jacobi")):
            with self.subTest(words=words):
                told = self.solve("zero.mtx", "b.mtx", *words, code=1)
                said = "row 6 of A holds only zeros, and b is 2 there, which no x reaches. Take that row and its column out, or put a 1 on its diagonal."
                of_x = "( x is that of iteration 1: later ones have spoilt it.)?"
                self.assertRegex(told["message"], f"^{re.escape(said)}{of_x}$")
        self.empty_row(0)
        self.solve("zero.mtx", "b.mtx", "--method", "cg", code=0)  # b asks nothing of that row
        told = self.solve("zero.mtx", "b.mtx", "--preconditioner", "jacobi", code=1)["message"]
        self.assertTrue(told.startswith("row 6 of A holds only zeros: A is singular. Take that row and its column out, or put a 1 on its diagonal. "
                                        "Else: the diagonal entry of row 6"), told)

    def test_an_entry_that_a_never_reads_may_not_be_infinite(self):
        """Column 1 is empty: what an iteration makes of x[0] is in no residual, and here it overflows."""
        rows = ["1 2 1e-150"] + [f"{i} {i} 2.5e-150" for i in range(2, 7)]
        rows += [f"{i + 1} {i} -1e-150\n{i} {i + 1} -1e-150" for i in range(2, 6)]
        self.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n6 6 14\n" + "\n".join(rows) + "\n")
        for name, values in (("b.mtx", (1e150, 1.5e150, 0.5e150, 0.5e150, 0.5e150, 1.5e150)), ("x0.mtx", (1.7976931348623157e308, 0, 0, 0, 0, 0))):
            self.write(name, "%%MatrixMarket matrix array real general\n6 1\n" + "".join(f"{one!r}\n" for one in values))
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                told = self.solve("A.mtx", "b.mtx", "x0.mtx", "--method", "bicgstab", "--ranks", ranks, "--output", f"x{ranks}.mtx", code=1)
                self.assertEqual(told["status"], "not_finite")
                self.assertIn("an entry of x that A never reads", told["message"])
                self.assertIsNone(told["true_relative_residual"])
        self.assertIn(b"inf", self.content("x1.mtx"))

    def test_rows_of_very_different_size_are_to_be_scaled(self):
        size = [10.0 ** (8 * (i % 3) - 8) for i in range(60)]
        entries = "".join(f"{i + 1} {i + 1} {4 * size[i] ** 2!r}\n" + (f"{i + 2} {i + 1} {-size[i] * size[i + 1]!r}\n" if i < 59 else "")
                          for i in range(60))
        self.write("rows.mtx", f"%%MatrixMarket matrix coordinate real symmetric\n60 60 119\n{entries}")
        for words in ("jacobi", "chebyshev"):
            with self.subTest(words=words):
                told = self.solve("rows.mtx", "--preconditioner", words, "--divergence-limit", 10, code=1)
                self.assertEqual(told["status"], "diverged")
                self.assertIn("can do that: scale the system, rows and columns alike, so that", told["message"])

    def test_a_polynomial_where_none_is_taken(self):
        for method in ("bicgstab", "minres", "cr"):
            told = self.refused(2, "solve", *SMALL, "--method", method, "--preconditioner", "chebyshev")
            self.assertTrue(told.endswith("Use preconditioner jacobi or block-jacobi, or a function of your own; "
                                          "where A is symmetric positive definite, method cg."), told)
        self.assertTrue(self.refused(2, "solve", *SMALL, "--method", "pipelined-cg", "--preconditioner", "chebyshev").endswith("Use method cg."))

    def test_prices_that_are_missing_name_the_cure(self):
        told = self.refused(3, "predict", "--preset", "poisson1d_large", "--machine", "lumi", "--nodes", "8..16")
        self.assertIn("takes the messages of another one with --messages-of NAME", told)

    def test_lines_that_end_with_a_carriage_return_alone(self):
        (self.folder / "cr.mtx").write_bytes(market(chain(9), 9).replace("\n", "\r").encode())
        self.assertIn("cr.mtx:1: lines end with a carriage return alone", self.refused(3, "info", "cr.mtx"))

    def test_one_iteration_is_one(self):
        self.assertTrue(self.run_it("solve", *SMALL, "--rtol", 1e9, "--max-iterations", 1, "--no-bandwidth").stdout.startswith("converged after 0 iterations"))
        self.assertIn(" after 1 iteration:", self.run_it("solve", *SMALL, "--max-iterations", 1, "--no-bandwidth", code=1).stdout)


class BusyMachine(Command):
    def test_times_of_a_busy_machine_are_told_or_refused(self):
        words = ("machine", "measure", "--ranks", 2, "--seconds", 0.2, "--samples", "times.csv", "--quiet")
        self.run_it(*words)
        head, *times = self.content("times.csv").decode().splitlines()

        def resumed(*more, code, change):
            """With the times of an idle machine, `change(size)` times as long."""
            lines = []
            for line in map(idle, times):
                *what, seconds = line.split(",")
                size, messages = int(what[3]), int(what[4])
                lines.append(",".join([*what, f"{float(seconds) * (change(size) if messages == 1 else 1):.6e}"]))
            self.write("times.csv", "\n".join([head, *lines]) + "\n")
            return self.run_it(*words, "--resume", *more, code=code).stderr

        told = resumed("--output", "here.json", code=0, change=lambda size: 4 ** (size.bit_length() % 3))
        self.assertRegex(told, r"^hostless: times of 'on_.* host .*' are \d+ % off their fit in the median \(the machine was busy while it was "
                               r"timed\)\. Delete times\.csv and measure again when it is idle, with a core for each rank\.\n$")
        (self.folder / "here.json").unlink()
        seen = {1: 25.6, 2: 14, 4: 17.9, 8: 15.9, 16: 0.07, 32: 0.056, 64: 0.057, 128: 0.057, 256: 0.06, 512: 0.076}  # with twice as many jobs as cores
        told = resumed("--output", "here.json", code=4, change=lambda size: seen.get(size, 1))
        self.assertRegex(told, r"hostless: the fit prices the smallest messages \d+ times off what they took, and nothing was written to here\.json "
                               r"\(the machine was busy")
        self.assertFalse((self.folder / "here.json").exists())
        told = resumed("--output", "here.json", code=4, change=lambda size: 1e6)  # a second a message
        self.assertIn("what was fitted is no machine's, and nothing was written to here.json (the machine was busy", told)
        self.assertIn("messages/0/pieces/0/alpha_s: 1.0", told)  # which of its numbers, but no line of a file that is not there
        self.assertNotRegex(told, r"here\.json:\d|Correct that line")
        self.assertTrue(told.rstrip().endswith("Delete times.csv and measure again when it is idle, with a core for each rank."), told)


if __name__ == "__main__":
    unittest.main()

"""The same fault has the same exit code whichever command meets it: commands by faults.

What the codes mean stands in docs/howto/solve-a-matrix.md.
"""

import os
import unittest

from hostless_command import Command, chain, limited, market

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


if __name__ == "__main__":
    unittest.main()

"""Sizes that cannot fit are refused before anything is made, with the number and what to do."""

import json
import os
import re
import struct
import unittest

from hostless_command import Command, chain, limited, market

SANITIZERS = {"ASAN_OPTIONS", "TSAN_OPTIONS"}
SCARCE = 60_000  # KiB: enough to solve, and less than bandwidth is measured on
IMPOSSIBLE = ("--generate", "poisson2d", "--size", "1000000")  # 10^12 rows


class Impossible(Command):
    def test_are_refused_at_once_by_every_command(self):
        for words in (("solve", *IMPOSSIBLE), ("solve", *IMPOSSIBLE, "--ranks", 4),
                      ("solve", *IMPOSSIBLE, "--ranks", 2, "--transport", "processes"), ("info", *IMPOSSIBLE),
                      ("bench", "solve", *IMPOSSIBLE), ("solve", *IMPOSSIBLE, "--partition", "metis", "--ranks", 2),
                      ("solve", *IMPOSSIBLE, "--format", "csr", "--method", "pipelined-cg")):
            with self.subTest(words=words):
                says = self.refused(4, *words)
                self.assertRegex(says, r"at least [0-9.]+ TB of memory are needed on this machine.*: matrix [0-9.]+ [TG]B, "
                                       r"vectors [0-9.]+ [a-zA-Z]+, set-up [0-9.]+ [a-zA-Z]+ "
                                       r"\([0-9.]+ .B are there: .*\)\. Use more machines or a smaller problem")

    def test_what_local_numbers_cannot_count_is_refused_at_once_too(self):
        for words in (("plan", *IMPOSSIBLE), ("bench", "halo", *IMPOSSIBLE),
                      ("plan", "--generate", "poisson7", "--size", 4000, "--ranks", 8)):
            with self.subTest(words=words):
                self.assertIn("rows on one rank (local numbers have 31 bits)", self.refused(4, *words))

    def test_numbers_that_overflow(self):
        for size in (10**7, 2**40):
            for words in (("solve",), ("plan",), ("info",)):
                with self.subTest(words=words, size=size):
                    self.assertIn("overflow", self.refused(2, *words, "--generate", "poisson7", "--size", size))

    def test_a_file_larger_than_its_disk(self):
        for name in ("A.mtx", "A.petsc"):
            with self.subTest(name=name):
                says = self.refused(4, "generate", "poisson2d", "--size", 1_000_000, "-o", name)
                self.assertRegex(says, name + r": at least [0-9.]+ TB are needed on its disk \([0-9.]+ .B are free\)")

    def test_whoever_wants_to_goes_on_all_the_same(self):
        says = self.refused(4, "solve", *IMPOSSIBLE, environment={"HOSTLESS_SIZE_CHECK": "0"})
        self.assertIn("31 bits", says)


class Limits(Command):
    """Of the process: RLIMIT_AS, which is the same everywhere."""

    def setUp(self):
        if SANITIZERS & os.environ.keys():
            self.skipTest("a sanitizer needs all addresses")
        super().setUp()

    def needs(self, words, mebibytes, **how):
        says = self.refused(4, *words, launcher=limited("-v", 300_000), **how)
        found = re.search(r"at least ([0-9.]+) ([MG])B of memory are needed by this process", says)
        self.assertTrue(found, says)
        self.assertIn("RLIMIT_AS", says)
        self.assertAlmostEqual(float(found[1]) * (1e9 if found[2] == "G" else 1e6) / 2**20, mebibytes, delta=0.05 * mebibytes)

    def test_what_is_counted(self):
        n = 20_000_000
        rows = ("--generate", "poisson1d", "--size", n)
        mib = n / 2**20
        self.needs(("info", *rows), mib * 4 * 4)  # one triangle of 3 entries a row: 2 values, halved from 4
        self.needs(("info", *rows, "--format", "csr"), mib * (3 * 10 + 4))
        self.needs(("solve", *rows), mib * (16 + 5 * 8))
        self.needs(("solve", *rows, "--method", "pipelined-cg"), mib * (16 + 9 * 8))
        self.needs(("solve", *rows, "--ranks", 3), mib * (16 + 5 * 8))  # all threads of it together
        self.needs(("solve", *rows, "--partition", "metis", "--ranks", 2), mib * (16 + max(5 * 8, 3 * 16)))  # not at a time

    def test_ranks_that_are_processes_have_a_limit_each(self):
        rows = ("--generate", "poisson1d", "--size", 4_000_000)  # 214 MiB: too much for one, not for two
        self.needs(("solve", *rows, "--method", "pipelined-cg"), 4_000_000 / 2**20 * (16 + 9 * 8))
        self.run_it("solve", *rows, "--method", "pipelined-cg", "--ranks", 2, "--transport", "processes",
                    "--max-iterations", 1, "--no-bandwidth", launcher=limited("-v", 400_000), code=1)

    def test_files_are_judged_by_their_headers(self):
        n = 8_000_000
        with open(self.folder / "A.petsc", "wb") as file:  # nothing behind the header is ever read
            file.write(struct.pack(">iiii", 1211216, n, n, 3 * n))
            file.truncate(16 + 4 * n + 12 * 3 * n)
        stored = 8 + 12 * 3
        self.needs(("info", "A.petsc"), n / 2**20 * (16 + stored))
        self.needs(("solve", "A.petsc"), n / 2**20 * (16 + max(5 * 8, stored)))
        self.needs(("plan", "A.petsc"), n / 2**20 * stored)

    def test_what_fits_is_not_refused(self):
        self.write("A.mtx", market(chain(50), 50))
        self.run_it("solve", "A.mtx", "--no-bandwidth", launcher=limited("-v", 400_000))

    def test_a_solve_outlives_the_measurement_of_bandwidth(self):
        for words in ((), ("--ranks", 2, "--transport", "processes")):
            with self.subTest(words=words):
                solve = ("solve", "--generate", "poisson2d", "--size", 30, "--json", "m.json", "--output", "x.npy", *words)
                done = self.run_it(*solve, launcher=limited("-v", SCARCE))
                self.assertIn("hostless: the memory bandwidth is unknown: ", done.stderr)
                self.assertIn("converged", done.stdout)
                result = json.loads(self.content("m.json"))
                self.assertEqual((result["status"], result["measured_bandwidth"]), ("converged", None))
                done = self.run_it(*solve, "--quiet", launcher=limited("-v", SCARCE))
                self.assertIn("hostless: the memory bandwidth is unknown: ", done.stderr)  # the JSON has it

    def test_nobody_measures_what_nobody_reads(self):
        # and nobody who looks at a solve of milliseconds waits for it
        for words in (("--quiet",), (), ("--ranks", 2, "--transport", "processes")):
            with self.subTest(words=words):
                done = self.run_it("solve", "--generate", "poisson2d", "--size", 30, *words, launcher=limited("-v", SCARCE))
                self.assertNotIn("bandwidth", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Set-up: it says how far it is on a terminal, and ends within a second when it is asked to."""

import os
import pty
import random
import re
import signal
import subprocess
import time
import unittest

from hostless_command import COMMAND, SLOWEST, Command, alive, launcher_of, ranks_of

WITHIN = 1.0  # seconds
POISSON = ("--generate", "poisson7", "--size", "230")  # some seconds of set-up
METIS = ("--generate", "poisson7", "--size", "140", "--ranks", "4", "--partition", "metis")
PROCESSES = (*POISSON, "--ranks", "2", "--transport", "processes")


class Interrupted(Command):
    random = random.Random(19)

    def ended(self, words, number, after, launcher=()):
        """What a command said that got a signal `after` seconds, in set-up."""
        process = self.start(*words, launcher=launcher)
        time.sleep(after)
        while process.poll() is not None and after > 0.02:  # a fast machine: earlier, then
            process.communicate()
            after /= 2
            process = self.start(*words, launcher=launcher)
            time.sleep(after)
        self.assertIsNone(process.poll(), "it has ended before it was interrupted: make the problem larger")
        began = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=SLOWEST)
        took = time.monotonic() - began
        self.assertLess(took, WITHIN, f"{words} took {took:.2f} s to end")
        self.assertEqual(process.returncode, 4, err)
        return out, err

    def test_at_any_moment_with_one_line_and_exit_code_4(self):
        for words in (("solve", *POISSON), ("info", *POISSON), ("plan", *METIS), ("solve", *METIS), ("solve", *PROCESSES),
                      ("bench", "solve", *POISSON), ("bench", "halo", *METIS)):
            for number, says in ((signal.SIGINT, "ctrl-C"), (signal.SIGTERM, "SIGTERM")):
                after = self.random.uniform(0.1, 1.5)
                with self.subTest(words=words, number=number, after=after):
                    out, err = self.ended(words, number, after)
                    self.assertEqual(out, "")
                    self.assertRegex(err, rf"\Ahostless: ended by {says}( while [a-zA-Z ]+)? \(there is no answer yet\)\. "
                                          r"Start it again\.\n\Z")

    def test_in_a_file_that_is_read(self):
        self.run_it("generate", "poisson7", "--size", 100, "-o", "A.mtx")
        for number in (signal.SIGINT, signal.SIGTERM):
            for words in (("solve", "A.mtx"), ("info", "A.mtx"), ("plan", "A.mtx", "--ranks", 2)):
                with self.subTest(words=words, number=number):
                    # it may be read by then
                    self.assertRegex(self.ended(words, number, self.random.uniform(0.2, 0.6))[1],
                                     "while (reading|looking at the rows|planning|laying out)")

    def test_in_metis(self):
        big = ("plan", "--generate", "poisson7", "--size", "130", "--ranks", "8", "--partition", "metis")
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number):
                process = self.start(*big, stderr=subprocess.PIPE)
                self.wait_for_more_threads(process)
                time.sleep(0.2)
                began = time.monotonic()
                process.send_signal(number)
                _, err = process.communicate(timeout=SLOWEST)
                self.assertLess(time.monotonic() - began, WITHIN)
                self.assertEqual(process.returncode, 4, err)
                self.assertIn("while partitioning by METIS", err)

    def wait_for_more_threads(self, process):
        """METIS has a thread of its own beside those of the 8 ranks."""
        until = time.monotonic() + SLOWEST
        while len(os.listdir(f"/proc/{process.pid}/task")) < 9:
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), until)
            time.sleep(0.002)

    def wait_for_bytes(self, process):
        """Until something of a file is written."""
        until = time.monotonic() + SLOWEST
        while not any(os.stat(file).st_size for file in os.scandir(self.folder)):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), until)
            time.sleep(0.002)

    def test_a_matrix_half_written_is_removed(self):
        for ending in ("mtx", "petsc"):
            with self.subTest(ending=ending):
                process = self.start("generate", "poisson7", "--size", 150, "-o", f"A.{ending}")
                self.wait_for_bytes(process)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=SLOWEST)
                self.assertEqual(process.returncode, 4, err)
                self.assertIn("interrupted", err)
                self.assertEqual(os.listdir(self.folder), [])

    def test_under_mpirun(self):
        for vendor in ("openmpi", "mpich"):
            with self.subTest(vendor=vendor):
                launcher, missing = launcher_of(vendor, 2)
                if missing:
                    self.skipTest(missing)
                process = self.start("solve", *POISSON, launcher=launcher)
                until = time.monotonic() + SLOWEST
                while len(ranks := ranks_of(process)) != 2:
                    self.assertIsNone(process.poll())
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.02)
                time.sleep(1)  # in the set-up, which takes many times that
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
                _, err = process.communicate(timeout=SLOWEST)
                self.assertLess(time.monotonic() - began, 5)  # mpirun takes its time, and has codes of its own
                self.assertLessEqual(err.count("hostless: ended by SIGTERM"), 1, err)
                self.assertNotIn("peer", err)
                until = time.monotonic() + 5  # mpirun may end before those that it has told
                while any(alive(rank) for rank in ranks) and time.monotonic() < until:
                    time.sleep(0.02)
                self.assertEqual([rank for rank in ranks if alive(rank)], [])

    def test_who_ignores_the_signal_goes_on(self):
        process = self.start("solve", "--generate", "poisson7", "--size", 60, "--no-bandwidth",
                             launcher=("sh", "-c", 'trap "" INT; exec "$0" "$@"'))
        until = time.monotonic() + SLOWEST
        while not os.path.samefile(f"/proc/{process.pid}/exe", COMMAND):  # the shell has set its trap
            self.assertLess(time.monotonic(), until)
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SLOWEST)
        self.assertEqual((process.returncode, err), (0, ""))


class Progress(Command):
    def on_a_terminal(self, *words, environment=None, interrupt=None):
        """(exit code, what came to the terminal that standard error is)."""
        ours, theirs = pty.openpty()
        process = self.start(*words, stdout=subprocess.DEVNULL, stderr=theirs, environment=environment)
        os.close(theirs)
        seen = b""
        while True:
            try:
                got = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not got:
                break
            seen += got
            if interrupt is not None and b"%" in seen:
                process.send_signal(interrupt)
                interrupt = None
        os.close(ours)
        return process.wait(timeout=SLOWEST), seen.decode()

    def test_one_line_that_is_rewritten_and_erased(self):
        code, seen = self.on_a_terminal("info", "--generate", "poisson7", "--size", 170,
                                        environment={"HOSTLESS_PROGRESS": "1"})
        self.assertEqual(code, 0)
        shares = [int(share) for share in re.findall(r"\r\x1b\[K[a-zA-Z ]+   ([0-9]+) %", seen)]
        self.assertGreater(len(shares), 3, seen)
        self.assertTrue(all(share <= 100 for share in shares))
        self.assertGreater(len(set(shares)), 2)  # it moves
        self.assertNotIn("\n", seen)
        self.assertTrue(seen.endswith("\r\x1b[K"), seen)
        self.assertIn("laying out", seen)

    def test_of_reading_partitioning_and_solving(self):
        at_once = {"HOSTLESS_PROGRESS": "1"}  # each stage may be over within a second
        for size in (90, 120, 150):  # and between two looks at it, on a machine that reads fast
            self.run_it("generate", "poisson7", "--size", size, "-o", "A.mtx")
            _, seen = self.on_a_terminal("plan", "A.mtx", "--ranks", 4, "--partition", "metis", environment=at_once)
            if "reading" in seen:
                break
        self.assertIn("reading", seen)
        self.assertIn("partitioning", seen)
        _, seen = self.on_a_terminal("generate", "poisson7", "--size", 110, "-o", "B.mtx", environment=at_once)
        self.assertIn("generating and writing", seen)

    def test_it_is_erased_when_interrupted(self):
        code, seen = self.on_a_terminal("solve", *POISSON, interrupt=signal.SIGINT)
        self.assertEqual(code, 4)
        self.assertRegex(seen, r"\r\x1b\[Khostless: ended by ctrl-C while [a-zA-Z ]+ \(there is no answer yet\)\. "
                               r"Start it again\.\r\n\Z")

    def test_nothing_of_short_ones_nothing_where_unwanted_nothing_when_piped(self):
        self.assertEqual(self.on_a_terminal("info", "--generate", "poisson7", "--size", 20), (0, ""))
        self.assertEqual(self.on_a_terminal("solve", "--generate", "poisson7", "--size", 150, "--max-iterations", 0,
                                            "--quiet")[1], "")
        self.assertEqual(self.on_a_terminal("info", "--generate", "poisson7", "--size", 150,
                                            environment={"HOSTLESS_PROGRESS": "0"}), (0, ""))
        self.assertEqual(self.run_it("info", "--generate", "poisson7", "--size", 150).stderr, "")


if __name__ == "__main__":
    unittest.main()

"""Set-up: it says how far it is on a terminal, and ends soon when it is asked to."""

import os
import pty
import random
import re
import signal
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hostless_command import COMMAND, PATIENT, SLOWEST, Command, catches, cpu_seconds, end, kill, launcher_of, ranks_of

WITHIN = 3.0 * (os.cpu_count() or 1)  # seconds of processor time: threads go on until they hear it, and others may have the processors meanwhile
POISSON = ("--generate", "poisson7", "--size", "230")  # some seconds of set-up
METIS = ("--generate", "poisson7", "--size", "140", "--ranks", "4", "--partition", "metis")
PROCESSES = (*POISSON, "--ranks", "2", "--transport", "processes")
TRIES = 20


class Interrupted(Command):
    random = random.Random(19)

    def read_to_the_end(self, process):
        """What a command says, and the processor time that it has used in all."""
        with ThreadPoolExecutor() as readers:
            out, err = (readers.submit(stream.read) for stream in (process.stdout, process.stderr))
            ended = []
            self.wait_until(lambda: ended.append(os.wait4(process.pid, os.WNOHANG)) or ended[-1][0], "its end")
            _, status, used = ended[-1]
            process.returncode = os.waitstatus_to_exitcode(status)
            return out.result(), err.result(), used.ru_utime + used.ru_stime

    def uninterrupted(self, *words):
        """Processor time of a command that nobody interrupts."""
        process = self.start(*words, environment=PATIENT)
        _, err, used = self.read_to_the_end(process)
        self.assertEqual(process.returncode, 0, err)
        return used

    def end_of(self, process, number, within=WITHIN):
        """What a command says that gets a signal now; it may be stopped."""
        before = cpu_seconds(process.pid)
        for one in (number, signal.SIGCONT):  # Popen's own would reap what has ended by the first, and its times with it
            kill(process.pid, one)
        out, err, used = self.read_to_the_end(process)
        self.assertLess(used - before, within, f"{process.args} used {used - before:.2f} s to end")
        self.assertEqual(process.returncode, 4, err)
        return out, err

    def stopped(self, words, is_there):
        """A command that is stopped where `is_there(its process id)`: it is still there when the signal comes."""
        for _ in range(TRIES):
            process = self.start(*words, environment=PATIENT)  # who waits for a lost one is not ended by a deadline
            self.wait_until(lambda: process.poll() is not None or is_there(process.pid), "the moment to be stopped")
            process.send_signal(signal.SIGSTOP)
            if process.poll() is None and is_there(process.pid):
                return process
            end(process)  # it went on faster than it was looked at
        self.fail(f"{words} was never found where it was to be stopped: make the problem larger")

    def running(self, words, number, used):
        """A command in set-up that hears the signal and has used that much processor time."""
        process = self.start(*words, environment=PATIENT)
        self.wait_until(lambda: process.poll() is not None or catches(process.pid, number) and cpu_seconds(process.pid) >= used,
                        "the time that it shall have used")
        return process

    def test_at_any_moment_with_one_line_and_exit_code_4(self):
        # Of what the set-up alone takes on this machine: where it has many processors that is far below WITHIN.
        half = {words: 0.5 * self.uninterrupted(command, *words) for command, words in (("info", POISSON), ("plan", METIS))}
        for words in (("solve", *POISSON), ("info", *POISSON), ("plan", *METIS), ("solve", *METIS), ("solve", *PROCESSES),
                      ("bench", "solve", *POISSON), ("bench", "halo", *METIS)):
            for number, says in ((signal.SIGINT, "ctrl-C"), (signal.SIGTERM, "SIGTERM")):
                used = self.random.uniform(0, 1.5)
                with self.subTest(words=words, number=number, used=used):
                    process = self.running(words, number, used)
                    while process.poll() is not None and used > 0.02:  # a fast machine: earlier, then
                        used /= 2
                        process = self.running(words, number, used)
                    self.assertIsNone(process.poll(), "it has ended before it was interrupted: make the problem larger")
                    out, err = self.end_of(process, number, min(WITHIN, half[METIS if "metis" in words else POISSON]))
                    self.assertEqual(out, "")
                    self.assertRegex(err, rf"\Ahostless: ended by {says}( while [a-zA-Z ]+)? \(there is no answer yet\)\. "
                                          r"Start it again\.\n\Z")

    def test_in_a_file_that_is_read(self):
        self.run_it("generate", "poisson7", "--size", 100, "-o", "A.mtx")
        size = (self.folder / "A.mtx").stat().st_size
        for number in (signal.SIGINT, signal.SIGTERM):
            for words in (("solve", "A.mtx"), ("info", "A.mtx"), ("plan", "A.mtx", "--ranks", 2)):
                begin = self.random.uniform(0.05, 0.6) * size
                with self.subTest(words=words, number=number, begin=begin):
                    process = self.stopped(words, lambda pid, begin=begin: begin < bytes_read(pid) < 0.9 * size)
                    self.assertIn("while reading", self.end_of(process, number)[1])

    def test_in_metis(self):
        big = ("plan", "--generate", "poisson7", "--size", "130", "--ranks", "8", "--partition", "metis")
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number):  # METIS has a thread of its own beside those of the 8 ranks
                process = self.stopped(big, lambda pid: longest_of_more_threads(pid, 8) > 0.1)
                self.assertIn("while partitioning by METIS", self.end_of(process, number)[1])

    def test_a_matrix_half_written_is_removed(self):
        for ending in ("mtx", "petsc"):
            with self.subTest(ending=ending):
                process = self.start("generate", "poisson7", "--size", 150, "-o", f"A.{ending}")
                self.wait_until(lambda: any(file.stat().st_size for file in self.folder.iterdir()), "bytes of a file", process)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=SLOWEST)
                self.assertEqual(process.returncode, 4, err)
                self.assertIn("interrupted", err)
                self.assertEqual(os.listdir(self.folder), [])

    def test_a_rank_of_mpirun_says_that_it_may_have_been_ctrl_c(self):
        launcher, missing = launcher_of("openmpi", 1)
        if missing:
            self.skipTest(missing)
        process = self.start("solve", *POISSON, launcher=launcher)
        self.wait_until(lambda: len(ranks_of(process)) == 1, "a rank", process)
        rank, = ranks_of(process)
        self.wait_until(lambda: catches(rank, signal.SIGTERM) and cpu_seconds(rank) > 0.5, "a rank in set-up, which takes many times that",
                        process)
        os.kill(rank, signal.SIGTERM)
        _, err = process.communicate(timeout=SLOWEST)
        self.assertIn("hostless: ended by SIGTERM (mpirun sends it at ctrl-C too)", err)

    def test_under_mpirun(self):
        for vendor in ("openmpi", "mpich"):
            with self.subTest(vendor=vendor):
                launcher, missing = launcher_of(vendor, 2)
                if missing:
                    self.skipTest(missing)
                process = self.start("solve", *POISSON, launcher=launcher)
                self.wait_until(lambda: len(ranks_of(process)) == 2, "two ranks", process)
                ranks = ranks_of(process)
                self.wait_until(lambda: all(catches(rank, signal.SIGTERM) and cpu_seconds(rank) > 0.5 for rank in ranks),
                                "ranks in set-up, which takes many times that", process)
                process.send_signal(signal.SIGTERM)
                out, err = process.communicate(timeout=SLOWEST)  # mpirun takes its time, and has codes of its own: MPICH's also 0
                self.assertNotIn("converged", out)
                self.assertLessEqual(err.count("hostless: ended by SIGTERM"), 1, err)
                self.assertNotIn("peer", err)
                self.wait_until_gone(ranks)  # mpirun may end before those that it has told

    def test_who_ignores_the_signal_goes_on(self):
        process = self.start("solve", "--generate", "poisson7", "--size", 60, "--no-bandwidth",
                             launcher=("sh", "-c", 'trap "" INT; exec "$0" "$@"'))
        self.wait_until(lambda: os.path.samefile(f"/proc/{process.pid}/exe", COMMAND), "the shell has set its trap")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SLOWEST)
        self.assertEqual((process.returncode, err), (0, ""))


def bytes_read(process):
    """What a process has read so far, of all files (0: it is none any more)."""
    try:
        return int(Path(f"/proc/{process}/io").read_text().split()[1])
    except OSError:
        return 0


def longest_of_more_threads(process, ordinary):
    """The longest processor time among the threads of a process that came after the first `ordinary` ones."""
    try:
        threads = sorted(int(thread) for thread in os.listdir(f"/proc/{process}/task"))[ordinary:]
        return max((cpu_seconds_of_thread(process, thread) for thread in threads), default=0)
    except OSError:
        return 0


def cpu_seconds_of_thread(process, thread):
    fields = Path(f"/proc/{process}/task/{thread}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
        for _ in range(TRIES):  # a busy machine may make anything long, of which nothing is said here
            began = time.monotonic()
            code, seen = self.on_a_terminal("info", "--generate", "poisson7", "--size", 20)
            if time.monotonic() - began < 1:
                break
        else:
            self.fail("nothing is short on this machine")
        self.assertEqual((code, seen), (0, ""))
        self.assertEqual(self.on_a_terminal("solve", "--generate", "poisson7", "--size", 150, "--max-iterations", 0,
                                            "--quiet")[1], "")
        self.assertEqual(self.on_a_terminal("info", "--generate", "poisson7", "--size", 150,
                                            environment={"HOSTLESS_PROGRESS": "0"}), (0, ""))
        self.assertEqual(self.run_it("info", "--generate", "poisson7", "--size", 150).stderr, "")


if __name__ == "__main__":
    unittest.main()

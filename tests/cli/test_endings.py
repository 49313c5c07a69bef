"""Solves that are ended, and solves that go on: ctrl-C, time limit, checkpoint and resume."""

import fcntl
import json
import os
import pty
import re
import resource
import signal
import subprocess
import termios
import time
import unittest

from hostless_command import ENDLESS, PATIENT, SLOWEST, Command, alive, descendants, end, kill, pending, ranks_of

CHECKPOINT = ("--checkpoint", "c", "--checkpoint-every", "20")


class Interrupted(Command):
    def interrupted(self, number, *words):
        """The result of an endless solve that got a signal while it was iterating."""
        process = self.start("solve", *ENDLESS, *CHECKPOINT, "--output", "x.npy", "--json", "result.json",
                             "--no-bandwidth", *words)
        self.wait_for_file("c", process)
        process.send_signal(number)
        out, err = process.communicate()
        self.assertEqual((process.returncode, err), (4, ""))
        result = json.loads(self.content("result.json"))
        self.assertTrue(out.startswith(f"aborted after {result['iterations']} iterations"), out)
        self.assertEqual(result["status"], "aborted")
        self.assertGreaterEqual(result["iterations"], 20)
        self.assertEqual(len(result["residual_history"]), result["iterations"] + 1)
        says = {signal.SIGINT: "interrupted by ctrl-C (SIGINT).", signal.SIGTERM: "asked to end by SIGTERM.",
                signal.SIGHUP: "asked to end by SIGHUP (its terminal has gone).",
                signal.SIGXCPU: "asked to end by SIGXCPU (its limit of processor time)."}
        self.assertEqual(result["message"], says[number])
        self.assertIn(says[number], out)
        return result

    def is_the_last_complete_iteration(self, result, *words):
        again = self.solve(*ENDLESS, *words, "--max-iterations", result["iterations"], "--output", "y.npy", code=1)
        self.assertEqual(again["residual_history"], result["residual_history"])
        self.assertEqual(self.content("x.npy"), self.content("y.npy"))
        self.assertEqual(again["true_residual"], result["true_residual"])

    def test_ctrl_c_leaves_x_of_the_last_complete_iteration(self):
        for words in (("--ranks", 2), ("--run", "persistent", "--lanes", 2), ("--method", "pipelined-cg")):
            with self.subTest(words=words):
                result = self.interrupted(signal.SIGINT, *words)
                self.is_the_last_complete_iteration(result, *words)
                (self.folder / "c").unlink()

    def test_ctrl_c_reaches_ranks_that_are_processes(self):
        words = ("--ranks", 2, "--transport", "processes")
        self.is_the_last_complete_iteration(self.interrupted(signal.SIGINT, *words), *words)

    def test_terminated(self):
        self.interrupted(signal.SIGTERM, "--ranks", 2)

    def test_a_terminal_that_closes_or_processor_time_that_is_up(self):
        for number in (signal.SIGHUP, signal.SIGXCPU):
            for words in (("--ranks", 2), ("--ranks", 2, "--transport", "processes")):
                with self.subTest(number=number, words=words):
                    self.is_the_last_complete_iteration(self.interrupted(number, *words), *words)
                    (self.folder / "c").unlink()

    def test_a_terminal_that_has_gone_costs_nobody_the_answer(self):
        master, slave = pty.openpty()
        process = self.start("solve", *ENDLESS, *CHECKPOINT, "--output", "x.npy", "--json", "result.json", "--no-bandwidth", stdout=slave,
                             stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.wait_for_file("c", process)
        os.close(master)
        process.wait(timeout=SLOWEST)
        result = json.loads(self.content("result.json"))
        self.assertEqual((result["status"], result["message"]), ("aborted", "asked to end by SIGHUP (its terminal has gone)."))
        self.assertEqual(process.returncode, 4)
        self.assertTrue((self.folder / "x.npy").exists())

    def test_a_limit_of_processor_time_says_it_every_second(self):
        process = self.start("solve", *ENDLESS, *CHECKPOINT, "--output", "x.npy", "--json", "result.json", "--no-bandwidth",
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 60)))
        out, err = process.communicate(timeout=SLOWEST)
        self.assertEqual((process.returncode, err), (4, ""))
        self.assertIn("asked to end by SIGXCPU (its limit of processor time).", out)
        self.assertEqual(json.loads(self.content("result.json"))["status"], "aborted")

    def test_under_nohup_it_goes_on(self):
        process = self.start("solve", *ENDLESS, *CHECKPOINT, "--no-bandwidth", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_file("c", process)
        process.send_signal(signal.SIGHUP)
        (self.folder / "c").unlink()
        self.wait_for_file("c", process)  # another checkpoint
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=SLOWEST)
        self.assertIn("asked to end by SIGTERM.", out)

    @unittest.skipIf("TSAN_OPTIONS" in os.environ, "a sanitizer puts signals off while a call of the system waits")
    def test_a_second_ctrl_c_ends_the_process(self):
        # Nobody reads what it prints: the first one ends the solve, whose summary then waits for room.
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(writer, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        self.addCleanup(os.close, writer)
        for _ in range(10):
            process = self.start("solve", *ENDLESS, *CHECKPOINT, "--no-bandwidth", stdout=writer)
            self.wait_for_file("c", process)
            began = time.monotonic()
            self.interrupt(process)
            self.interrupt(process)  # within a second: the same one again
            if time.monotonic() - began < 1:
                break
            end(process)  # a machine so busy that it may have been another one
            (self.folder / "c").unlink()
        time.sleep(1.5)  # a second after the program has heard the first one
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=SLOWEST), -signal.SIGINT)

    def interrupt(self, process):
        """Sends ctrl-C, and returns when the process has heard it."""
        process.send_signal(signal.SIGINT)
        self.wait_until(lambda: process.poll() is not None or not pending(process.pid, signal.SIGINT), "a handled ctrl-C")

    def test_what_is_told_the_process_and_its_group_is_told_once(self):
        """As `timeout` does it: everybody gets the group's signal, and ranks what their launcher passes on."""
        for words in (("--ranks", 2), ("--ranks", 2, "--transport", "processes")):
            for _ in range(4):
                process = self.start("solve", *ENDLESS, *CHECKPOINT, "--output", "x.npy", "--no-bandwidth", *words,
                                     start_new_session=True)
                self.wait_for_file("c", process)
                process.send_signal(signal.SIGTERM)
                os.killpg(process.pid, signal.SIGTERM)
                out, err = process.communicate(timeout=SLOWEST)
                self.assertEqual((process.returncode, err), (4, ""), words)
                self.assertTrue(out.startswith("aborted after"), out)
                for written in ("x.npy", "c"):
                    (self.folder / written).unlink()

    def test_time_limit(self):
        words = ("--ranks", 2)
        result = self.solve(*ENDLESS, *words, "--time-limit", "0.5", "--output", "x.npy", code=4)
        self.assertEqual((result["status"], result["message"]), ("aborted", "the time limit of 0.5 s was reached."))
        self.assertGreater(result["time_solve_s"], 0.5)
        self.is_the_last_complete_iteration(result, *words)


class Resumed(Command):
    problem = ("--generate", "poisson2d", "--size", "40", "--ranks", "2", "--partition", "metis", "--manufactured",
               "--rtol", "1e-10")

    def test_equals_the_uninterrupted_solve(self):
        for words in (("--method", "cg"), ("--method", "single-reduction-cg"), ("--method", "pipelined-cg"),
                      ("--preconditioner", "jacobi"), ("--transport", "processes"), ("--run", "graph"),
                      ("--run", "persistent")):
            with self.subTest(words=words):
                whole = self.solve(*self.problem, *words, "--output", "whole.npy")
                first = self.solve(*self.problem, *words, *CHECKPOINT, "--max-iterations", 50, code=1)
                self.assertEqual(first["checkpoints"], 3)  # 20, 40, and the end
                rest = self.solve(*self.problem, *words, "--resume", "c", "--output", "rest.npy")
                self.assertEqual(rest["residual_history"], whole["residual_history"])
                self.assertEqual(self.content("rest.npy"), self.content("whole.npy"))
                for key in ("iterations", "restarts", "true_residual", "relative_error", "status", "condition_estimate",
                            "smallest_eigenvalue", "largest_eigenvalue"):
                    self.assertEqual(rest[key], whole[key], key)
                self.assertEqual((whole["resumed_at"], rest["resumed_at"]), (0, 50))

    def test_speed_is_that_of_the_iterations_made_here(self):
        self.solve(*self.problem, *CHECKPOINT, "--max-iterations", 50, code=1)
        rest = self.solve(*self.problem, "--resume", "c", "--max-iterations", 60, code=1)
        self.assertEqual((rest["iterations"], rest["resumed_at"]), (60, 50))
        self.assertAlmostEqual(rest["bytes_per_second"] * rest["time_solve_s"] / rest["bytes_per_iteration"], 10, delta=1e-6)
        again = self.solve(*self.problem, "--resume", "c", "--max-iterations", 50, code=1)
        self.assertEqual((again["iterations"], again["bytes_per_second"]), (50, 0))
        for limit, says in ((40, "it is at iteration 50, and 40 are allowed"), (1, "and 1 is allowed")):
            self.assertIn(says, self.refused(3, "solve", *self.problem, "--resume", "c", "--max-iterations", limit))

    def test_the_time_limit_leaves_one(self):
        rare = ("--checkpoint", "c", "--checkpoint-every", 10**9)
        cut = self.solve(*ENDLESS, *rare, "--time-limit", 0.3, code=4)
        self.assertEqual((cut["status"], cut["checkpoints"]), ("aborted", 1))
        made = cut["iterations"]
        rest = self.solve(*ENDLESS, "--resume", "c", "--max-iterations", made + 9, "--output", "rest.npy", code=1)
        self.assertEqual(rest["resumed_at"], made)
        whole = self.solve(*ENDLESS, "--max-iterations", made + 9, "--output", "whole.npy", code=1)
        self.assertEqual(rest["residual_history"], whole["residual_history"])
        self.assertEqual(self.content("rest.npy"), self.content("whole.npy"))

    def test_on_another_transport_and_run(self):
        self.solve(*self.problem, *CHECKPOINT, "--max-iterations", 30, code=1)
        self.solve(*self.problem, "--output", "whole.npy")
        self.solve(*self.problem, "--resume", "c", "--transport", "processes", "--run", "graph", "--output", "rest.npy")
        self.assertEqual(self.content("rest.npy"), self.content("whole.npy"))

    def test_after_an_abort(self):
        process = self.start("solve", *ENDLESS, *CHECKPOINT, "--quiet")
        self.wait_for_file("c", process)
        process.kill()  # not even a signal that can be caught
        process.wait()
        rest = self.solve(*ENDLESS, "--resume", "c", "--max-iterations", 200, "--output", "rest.npy", code=1)
        whole = self.solve(*ENDLESS, "--max-iterations", 200, "--output", "whole.npy", code=1)
        self.assertEqual(rest["residual_history"], whole["residual_history"])
        self.assertEqual(self.content("rest.npy"), self.content("whole.npy"))

    def test_another_problem_is_refused(self):
        self.solve(*self.problem, *CHECKPOINT, "--max-iterations", 30, code=1)
        for words in (("--seed", "2"), ("--method", "pipelined-cg"), ("--preconditioner", "jacobi"), ("--slices", "7"),
                      ("--row-lanes", "2"), ("--contrast", "5")):
            with self.subTest(words=words):
                self.assertTrue(self.refused(3, "solve", *self.problem, *words, "--resume", "c").startswith("c: "))

    def test_damaged_checkpoints_are_refused(self):
        self.solve(*self.problem, *CHECKPOINT, "--max-iterations", 30, code=1)
        whole = self.content("c")
        for name, data in (("short", whole[:-8]), ("empty", b""), ("flipped", whole[:-3] + b"\x55" + whole[-2:])):
            with self.subTest(name=name):
                (self.folder / name).write_bytes(data)
                self.assertTrue(self.refused(3, "solve", *self.problem, "--resume", name).startswith(f"{name}: "))


class LostProcess(Command):
    """A rank that is killed in the middle: the job ends long before its deadline, and says so."""

    def test_kill_minus_9(self):
        for run in ("host", "persistent"):
            with self.subTest(run=run):
                self.lose_a_rank(run)

    def lose_a_rank(self, run):
        (self.folder / "c").unlink(missing_ok=True)
        job = self.start("solve", *ENDLESS, *CHECKPOINT, "--ranks", 3, "--transport", "processes", "--run", run,
                         "--json", "result.json", "--no-bandwidth", environment=PATIENT)
        self.wait_for_file("c", job)
        ranks = sorted(ranks_of(job))
        self.assertEqual(len(ranks), 3)
        result = self.lose(job, ranks[2])  # not the one that reports
        # The text ends where ranks wait for each other's numbers, or a rank that is called for is known to have ended:
        # the killed one, or rank 1, which may have left because of it before rank 0 looked.
        told = re.fullmatch(r"a rank left or stayed silent past the deadline after iteration (\d+) \(.*|rank [12] has ended \(.*",
                            result["message"])
        self.assertTrue(told, result["message"])
        if told[1]:
            self.assertEqual(int(told[1]), result["iterations"])
        self.assertFalse(any(map(alive, ranks)))

    def test_a_killed_launcher_takes_the_ranks_along(self):
        job = self.start("solve", *ENDLESS, *CHECKPOINT, "--ranks", 3, "--transport", "processes", environment=PATIENT)
        self.wait_for_file("c", job)
        ranks = descendants(job.pid)
        self.assertEqual(len(ranks), 3)
        kill(job.pid, signal.SIGKILL)
        self.wait_until_gone(ranks)
        end(job)


if __name__ == "__main__":
    unittest.main()

"""`hostless stencil` that is ended, and that goes on: ctrl-C, time limit, checkpoints, a killed rank."""

import json
import re
import signal
import unittest

from hostless_command import PATIENT, SLOWEST, alive, kill, ranks_of
from test_stencil import Stencil

ENDLESS = ("--size", "90x110", "--boundary", "periodic,neumann")
STEPS = ("--steps", 10**9)
CHECKPOINT = ("--checkpoint", "c", "--checkpoint-every", 37)


class Ended(Stencil):
    def files(self, *words):
        """What another run has after the steps that those words name."""
        self.stencil("gray_scott", *ENDLESS, *words, "--output", "a.npy", "b.npy")
        return self.content("a.npy"), self.content("b.npy")

    def is_whole(self, result, out):
        """Output and checkpoint are of the step that the result names."""
        self.assertGreater(result["steps"], 0)
        whole = self.files("--steps", result["steps"])
        self.assertEqual((self.content("u.npy"), self.content("v.npy")), whole)
        rest = self.stencil("gray_scott", *ENDLESS, "--steps", result["steps"], "--resume", "c", "--output", "a.npy", "b.npy", "--ranks", 2)
        self.assertEqual((rest["resumed_at"], rest["steps"]), (result["steps"], result["steps"]))
        self.assertEqual((self.content("a.npy"), self.content("b.npy")), whole)
        self.assertTrue(out.startswith(f"{result['status']} after {result['steps']} steps of gray_scott"), out)

    def interrupted(self, number, *words):
        process = self.start("stencil", "--problem", "gray_scott", *ENDLESS, *STEPS, *CHECKPOINT, "--output", "u.npy", "v.npy", "--json",
                             "result.json", *words)
        self.wait_for_file("c", process)
        process.send_signal(number)
        out, err = process.communicate()
        self.assertEqual((process.returncode, err), (4, ""))
        result = json.loads(self.content("result.json"))
        self.assertEqual(result["status"], "aborted")
        says = {signal.SIGINT: "interrupted by ctrl-C (SIGINT).", signal.SIGTERM: "asked to end by SIGTERM.",
                signal.SIGHUP: "asked to end by SIGHUP (its terminal has gone).",
                signal.SIGXCPU: "asked to end by SIGXCPU (its limit of processor time)."}
        self.assertEqual(result["message"], says[number])
        self.is_whole(result, out)
        (self.folder / "c").unlink()

    def test_ctrl_c(self):
        self.interrupted(signal.SIGINT)
        self.interrupted(signal.SIGINT, "--ranks", 2, "--transport", "processes")

    def test_terminated(self):
        self.interrupted(signal.SIGTERM, "--ranks", 3, "--every", 10**8)
        self.interrupted(signal.SIGHUP, "--ranks", 2)
        self.interrupted(signal.SIGXCPU, "--ranks", 2)

    def test_time_limit(self):
        done = self.run_it("stencil", "--problem", "gray_scott", *ENDLESS, *STEPS, "--time-limit", "0.3", "--ranks", 2, "--checkpoint", "c",
                           "--output", "u.npy", "v.npy", "--json", "result.json", code=4)
        result = json.loads(self.content("result.json"))
        self.assertEqual((result["status"], result["message"]), ("aborted", "the time limit of 0.3 s was reached."))
        self.is_whole(result, done.stdout)


class Unwritten(Stencil):
    """Files that do not fit keep nothing else from being written: checkpoints are both fields."""

    GRID = ("stencil", "--problem", "gray_scott", "--size", "300x320")  # fields of 768 kB

    def unwritten(self, room, *words, **how):
        done = self.run_it(*self.GRID, *words, "--output", "u.npy", "v.npy", "--json", "r.json", code=4, launcher=("prlimit", f"--fsize={room}"), **how)
        result = json.loads(self.content("r.json"))
        self.assertTrue(done.stdout.startswith(f"{result['status']} after {result['steps']} steps of gray_scott"), done.stdout)
        return result, done.stderr

    def test_checkpoints(self):
        self.run_it(*self.GRID, "--steps", 30, "--output", "a.npy", "b.npy", "--quiet")
        for words in ((), ("--checkpoint-every", 7), ("--checkpoint-every", 10), ("--ranks", 2, "--transport", "processes")):
            with self.subTest(words=words):
                result, err = self.unwritten(10**6, "--steps", 30, "--checkpoint", "c", *words)
                self.assertEqual((result["status"], result["steps"], result["checkpoints"]), ("steps_done", 30, 0))
                self.assertTrue(err.startswith("hostless: c: cannot ") and err.count("\n") == 1, err)
                self.assertEqual((self.content("u.npy"), self.content("v.npy")), (self.content("a.npy"), self.content("b.npy")))
                self.assertFalse((self.folder / "c").exists())

    def test_a_run_that_is_ended(self):
        result, err = self.unwritten(10**6, *STEPS, "--checkpoint", "c", "--time-limit", "0.3")
        self.assertEqual(result["status"], "aborted")
        self.assertIn("c: cannot ", err)
        self.run_it(*self.GRID, "--steps", result["steps"], "--output", "a.npy", "b.npy", "--quiet")
        self.assertEqual((self.content("u.npy"), self.content("v.npy")), (self.content("a.npy"), self.content("b.npy")))

    def test_one_field_of_two_and_all_that_is_missing(self):
        (self.folder / "u.npy").symlink_to("/dev/full")
        done = self.run_it(*self.GRID, "--steps", 3, "--output", "u.npy", "v.npy", code=4)
        self.assertIn("u.npy: cannot be written: not a regular file", done.stderr)  # before the first step
        (self.folder / "u.npy").unlink()
        result, err = self.unwritten(500_000, "--steps", 3, "--checkpoint", "c")
        for name in ("u.npy", "v.npy", "c"):
            self.assertEqual(err.count(f"{name}: cannot "), 1, err)
        self.assertEqual((result["status"], result["steps"]), ("steps_done", 3))
        for command in ((*self.GRID, "--steps", 3, "--output", "u.npy", "v.npy", "--checkpoint", "c"),
                        ("solve", "--generate", "poisson2d", "--size", 50, "--checkpoint", "c", "--checkpoint-every", 20, "--output", "u.npy")):
            done = self.run_it(*command, "--json", "s.json", code=4, launcher=("prlimit", "--fsize=100"))
            for name in ("u.npy", "c", "s.json"):
                self.assertEqual(done.stderr.count(f"{name}: cannot "), 1, done.stderr)


class Resumed(Stencil):
    def test_bits_and_history_are_those_of_a_run_without_a_pause(self):
        words = ("--size", "20x31", "--every", 7)
        for problem in ("wave", "life"):
            outputs = self.outputs(2 if problem == "wave" else 1)
            whole = self.stencil(problem, *words, "--steps", 60, *outputs)
            files = [self.content(name) for name in outputs[1::2]]
            for way, others in (((), ("--ranks", 3)), (("--ranks", 2), ("--ranks", 2, "--transport", "processes", "--depth", 3)),
                                (("--ranks", 3, "--transport", "processes"), ())):
                first = self.stencil(problem, *words, "--steps", 25, "--checkpoint", "c", "--checkpoint-every", 10, *way)
                self.assertEqual((first["checkpoints"], first["steps"]), (3, 25))  # 10, 20, and the end
                rest = self.stencil(problem, *words, "--steps", 60, "--resume", "c", "--checkpoint", "c", *outputs, *others)
                self.assertEqual((rest["resumed_at"], rest["steps"], rest["initial"]), (25, 60, "checkpoint c"))
                self.assertEqual([self.content(name) for name in outputs[1::2]], files)
                self.assertEqual(first["history"] + rest["history"], whole["history"])

    def test_another_run_is_refused(self):
        self.stencil("heat", "--size", "9x11", "--steps", 5, "--checkpoint", "c")
        for problem, words, part in (("jacobi2d", ("--size", "9x11"), "of the stencil heat, and this run has jacobi2d"),
                                     ("heat", ("--size", "11x9"), "a grid of 9 x 11, and this run has 11 x 9"),
                                     ("heat", ("--size", "9x11x2"), "a grid of 9 x 11, and this run has 9 x 11 x 2"),
                                     ("heat", ("--size", "9x11", "--type", "fp32"), "in fp64, and this run has fp32"),
                                     ("heat", ("--size", "9x11", "--parameter", "k=0.21"), "parameters 0.2, and this run has 0.21"),
                                     ("heat", ("--size", "9x11", "--boundary", "periodic"),
                                      "boundary dirichlet,dirichlet, and this run has periodic,periodic")):
            for way in ((), ("--ranks", 2, "--transport", "processes")):
                text = self.refused(3, "stencil", "--problem", problem, *words, "--steps", 9, "--resume", "c", *way)
                self.assertTrue(text.startswith("c: "), text)
                self.assertIn(part, text)
        text = self.refused(2, "stencil", "--problem", "heat", "--size", "9x11", "--steps", 4, "--resume", "c")
        self.assertIn("--steps 4: the checkpoint c is at step 5", text)

    def test_damaged_checkpoints_are_refused(self):
        self.stencil("heat", "--size", "9x11", "--steps", 5, "--checkpoint", "c")
        whole = self.content("c")
        for name, data, part in (("short", whole[:-8], "cut short"), ("empty", b"", "is no checkpoint"), ("long", whole + b"x", "too much"),
                                 ("flipped", whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:], "a checksum is wrong"),
                                 ("head", whole[:40] + bytes([whole[40] ^ 1]) + whole[41:], "a checksum is wrong"),
                                 ("text", b"not a checkpoint at all", "is no checkpoint")):
            (self.folder / name).write_bytes(data)
            text = self.refused(3, "stencil", "--problem", "heat", "--size", "9x11", "--steps", 9, "--resume", name, "--ranks", 2)
            self.assertTrue(text.startswith(f"{name}: "), text)
            self.assertIn(part, text)
        for name, part in (("empty", "is no checkpoint"), ("head", "a checksum is wrong"), ("text", "is no checkpoint")):  # whose grid it is
            text = self.refused(3, "stencil", "--problem", "heat", "--steps", 9, "--resume", name, "--ranks", 2)
            self.assertTrue(text.startswith(f"{name}: ") and part in text, text)


class LostRank(Stencil):
    def test_a_rank_that_hangs(self):
        job = self.start("stencil", "--problem", "heat", "--size", "90x110", *STEPS, "--checkpoint", "c", "--checkpoint-every", 30000, "--ranks", 3,
                         "--transport", "processes", "--json", "result.json", "--output", "u.npy", environment={"HOSTLESS_DEADLINE_SCALE": "0.5"})
        self.wait_for_file("c", job)
        ranks = sorted(ranks_of(job))
        kill(ranks[2], signal.SIGSTOP)  # among steps, as a rule: files have the longer deadline of set-up
        out, err = job.communicate(timeout=SLOWEST)
        self.assertEqual(job.returncode, 4, err)
        self.assertIn("peer_lost", out)
        result = json.loads(self.content("result.json"))
        self.assertEqual(result["status"], "peer_lost")
        time = re.search(r"(?m)^  time +([0-9.]+) s until the loss was noticed$", out)
        self.assertIsNotNone(time, out)
        self.assertGreater(result["seconds"], 0.1)  # it was among steps when a checkpoint had been written, then silence
        self.assertAlmostEqual(float(time[1]), result["seconds"], delta=4)  # each rank that is left says when it noticed, after 5 s at least
        self.assertEqual((result["microseconds_per_step"], result["cells_per_second"]), (0, 0))
        self.assertFalse(any(map(alive, ranks)))
        self.assertFalse((self.folder / "u.npy").exists())
        at = self.stencil("heat", "--size", "90x110", "--steps", 10**7, "--time-limit", "0.001", "--resume", "c", code=4)["resumed_at"]
        self.stencil("heat", "--size", "90x110", "--steps", at + 20, "--resume", "c", "--ranks", 2, "--output", "a.npy")
        self.stencil("heat", "--size", "90x110", "--steps", at + 20, "--output", "b.npy")
        self.assertEqual(self.content("a.npy"), self.content("b.npy"))

    def test_kill_minus_9(self):
        job = self.start("stencil", "--problem", "gray_scott", *ENDLESS, *STEPS, *CHECKPOINT, "--ranks", 3, "--transport", "processes", "--json",
                         "result.json", "--output", "u.npy", "v.npy", environment=PATIENT)
        self.wait_for_file("c", job)
        ranks = sorted(ranks_of(job))
        self.assertEqual(len(ranks), 3)
        self.lose(job, ranks[2])  # not the one that reports
        self.assertFalse(any(map(alive, ranks)))
        self.assertFalse((self.folder / "u.npy").exists())
        # the last checkpoint goes on bit for bit, with other ranks
        rest = self.stencil("gray_scott", *ENDLESS, "--steps", 10**7, "--time-limit", "0.001", "--resume", "c", "--ranks", 2, code=4)
        total = rest["resumed_at"] + 50
        self.assertEqual(rest["resumed_at"] % 37, 0)
        files = ("--output", "a.npy", "b.npy")
        self.stencil("gray_scott", *ENDLESS, "--steps", total, "--resume", "c", "--ranks", 2, *files)
        rest = self.content("a.npy"), self.content("b.npy")
        self.stencil("gray_scott", *ENDLESS, "--steps", total, *files)
        self.assertEqual((self.content("a.npy"), self.content("b.npy")), rest)


if __name__ == "__main__":
    unittest.main()

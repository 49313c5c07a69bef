"""`hostless stencil --gpus`: without a GPU, and with a library of the tests in the place of one (HOSTLESS_PLAYED_GPU, its folder)."""

import json
import os
import signal
import unittest

from hostless_command import launcher_of
from test_gpu import HIDDEN
from test_stencil import Stencil

PLAYED = {"HOSTLESS_PLUGIN_DIR": os.environ["HOSTLESS_PLAYED_GPU"]}
HEAT = ("stencil", "--problem", "heat", "--size", "20x31", "--steps", 9)


class WithoutGpu(Stencil):
    def test_it_says_what_each_library_found(self):
        lines = self.run_it(*HEAT, "--gpus", 1, code=4, environment=HIDDEN).stderr.splitlines()
        self.assertEqual(lines[0], "hostless: no GPU can be used (a stencil was to be stepped on one). Leave out --gpus.")
        self.assertEqual([line.split(":")[0].strip() for line in lines[1:]], ["cuda", "hip"])
        for line in lines[1:]:
            self.assertRegex(line, "no GPU is visible|was not found next to|cannot be loaded")

    def test_what_does_not_go_together_is_refused(self):
        for words, says in ((("--gpus", "0,x"), "--gpus: 'x'"), (("--gpus", "0,1", "--ranks", 2), "--ranks 2 with --gpus 0,1"), (("--gpus", -1), "--gpus"),
                            (("--gpus", 1, "--ranks", 2), "--ranks 2 with --gpus 1"),
                            (("--gpus", 1, "--ranks-along", "1x1"), "--ranks-along with --gpus 1"),
                            (("--gpus", 1, "--route", "direct"), "--route with --gpus 1"),
                            (("--gpus", 1, "--ranks-per-node", 1), "--ranks-per-node with --gpus 1"),
                            (("--run", "graph"), "--run on the processor"), (("--cells", "plain"), "--cells on the processor"),
                            (("--gpus", 1, "--run", "host"), "--run"), (("--gpus", 1, "--cells", "square"), "--cells")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, *HEAT, *words, environment=HIDDEN))


class Played(Stencil):
    def on_gpu(self, problem, *words, **how):
        return self.stencil(problem, "--gpus", 1, *words, environment=PLAYED, **how)

    def test_fields_and_history_are_those_of_ranks(self):
        for problem, size, kind, fields in (("heat", "20x31", "fp32", 1), ("jacobi3d", "9x8x7", "fp64", 1), ("gray_scott", "33x40", "fp32", 2),
                                            ("life", "20x30", "fp64", 1), ("wave", "8x9x10", "fp64", 2), ("jacobi2d", "17x64", "fp32", 1)):
            words = ("--size", size, "--type", kind, "--boundary", "neumann", "--steps", 23, "--every", 6, *self.outputs(fields))
            ranks = self.stencil(problem, *words, "--ranks", 2)
            files = [self.content(f"v{number}.npy") for number in range(fields)]
            gpu = self.on_gpu(problem, *words)
            self.assertEqual([self.content(f"v{number}.npy") for number in range(fields)], files)
            self.assertEqual(gpu["history"], ranks["history"])
            self.assertEqual((ranks["gpus"], gpu["gpus"], gpu["gpu"], gpu["ranks"]), (0, 1, "played GPU", 1))
            self.assertRegex(gpu["gpu_run"], "^(stream|graph|persistent), (plain|streamed|resident): played by the processor$")

    def test_how_it_is_stepped_can_be_said(self):
        for words, run, depth, block in ((("--run", "stream", "--cells", "plain"), "stream, plain", 1, 1),
                                         (("--cells", "streamed", "--block-steps", 8), "graph, streamed", 1, 8),
                                         (("--cells", "resident", "--depth", 4), "persistent, resident", 4, 1),
                                         (("--cells", "cached"), "persistent, cached", 1, 1)):
            result = self.on_gpu("heat", "--size", "64x128", "--steps", 9, *words)
            self.assertEqual((result["gpu_run"].split(":")[0], result["depth"], result["block_steps"]), (run, depth, block))
        refused = ("stencil", "--problem", "jacobi3d", "--size", "9x9x9", "--steps", 1, "--gpus", 1, "--cells", "resident")
        self.assertIn("it is for two axes", self.refused(2, *refused, environment=PLAYED))
        for words, says in ((("--run", "graph"), "cells cached in run graph"), (("--depth", 4), "exchanged after every step"),
                            (("--block-steps", 2), "exchanged after every step")):
            self.assertIn(says, self.refused(2, *refused[:-1], "cached", *words, environment=PLAYED))

    def test_parts_on_several_gpus(self):
        words = ("--size", "64x70", "--steps", 9, "--every", 4, "--output", "v.npy")
        one = self.on_gpu("heat", *words)
        cells = self.content("v.npy")
        for gpus, parts in (("2", [0, 1]), ("0,1", [0, 1]), ("1,0,1", [1, 0, 1]), ("0,0", [0, 0])):
            result = self.stencil("heat", *words, "--gpus", gpus, environment=PLAYED)
            self.assertEqual((result["gpus"], result["gpu_of_part"]), (len(set(parts)), parts))
            self.assertEqual((result["history"], self.content("v.npy")), (one["history"], cells))
        for gpus, words, says in (("0,7", (), "GPU 7 of 2"), ("3", (), "GPU 2 of 2"), ("2", ("--cells", "plain", "--depth", 40), "halos of 40"),
                                  ("2", ("--cells", "streamed", "--depth", 12), "halos last for whole passes"),
                                  (",".join("0" * 100), ("--cells", "cached"), "cells cached in 100 parts on one GPU")):
            self.assertIn(says, self.refused(2, *HEAT[:3], "--size", "64x70", "--steps", 9, "--gpus", gpus, *words, environment=PLAYED))

    def test_a_bench_of_ways_by_turns(self):
        words = ("bench", "stencil", "--problem", "heat", "--size", "40x70", "--type", "fp32", "--steps", 4, "--repeat", 2, "--warm-up", 1)
        report = self.json_of(*words, "--gpus", "0,1", environment=PLAYED)
        rows = {row["name"]: row for row in report["variants"]}
        timed = ["copy", "overlap", "p2p", "cpu-free", "cpu-free-two-kernels", "cpu-free-perks", "blocked"]
        self.assertEqual(([name for name in rows if "best_us" in rows[name]], report["bits"]), (timed, "equal"))
        self.assertEqual([(rows[name]["how"].split(":")[0], rows[name]["depth"]) for name in timed[:-1]],
                         [("stream, plain", 1)] * 3 + [("persistent, plain", 1)] * 2 + [("persistent, cached", 1)])
        self.assertIn("NVSHMEM", rows["nvshmem"]["problem"])
        report = self.json_of("bench", "stencil", "--problem", "jacobi3d", "--size", "9x8x70", "--gpus", 1, "--steps", 4, "--repeat", 2, "--variants",
                              "cpu-free-two-kernels,cpu-free-perks", environment=PLAYED)
        self.assertEqual(([row["how"].split(":")[0] for row in report["variants"]], report["bits"]), (["persistent, plain", "persistent, cached"], "equal"))
        report = self.json_of(*words, "--gpus", 2, "--variants", "p2p,cpu-free-two-kernels,cpu-free-perks,blocked", "--no-compute", environment=PLAYED)
        self.assertEqual([("best_us" in row, "problem" in row) for row in report["variants"]], [(True, False)] * 3 + [(False, True)])
        self.assertNotIn("bits", report)
        report = self.json_of(*words, "--gpus", 2, "--variants", "blocked", "--run", "graph", "--cells", "plain", "--depth", 4, environment=PLAYED)
        self.assertEqual([(row["how"].split(":")[0], row["depth"]) for row in report["variants"]], [("graph, plain", 4)])
        self.assertIn("not run: halos by copies of a grid in one part", self.run_it(*words, "--gpus", 1, environment=PLAYED).stdout)
        for more, says in ((("--variants", "copy", "--overlap"), "--overlap on GPUs"), (("--ranks", 2), "--ranks 2 with --gpus 2"),
                           (("--variants", "copy", "--latency-us", 3), "--latency-us on GPUs"),
                           (("--variants", "copy", "--transport", "processes"), "--transport processes on GPUs")):
            self.assertIn(says, self.refused(2, *words, "--gpus", 2, *more, environment=PLAYED))

    def test_ranks_of_mpirun_are_refused(self):
        words, why = launcher_of("mpich", 2)
        if words is None:
            self.skipTest(why)
        self.assertIn("2 ranks with --gpus 1", self.refused(2, *HEAT, "--gpus", 1, environment=PLAYED, launcher=words))

    def test_a_checkpoint_goes_on_elsewhere(self):
        words = ("--size", "20x31", "--steps", 60, "--every", 7)
        whole = self.stencil("heat", *words, "--output", "whole.npy")
        first = ("--size", "20x31", "--steps", 25, "--every", 7, "--checkpoint", "c", "--checkpoint-every", 10)
        for begin, end in ((self.on_gpu, self.stencil), (self.stencil, self.on_gpu), (self.on_gpu, self.on_gpu)):
            begun = begin("heat", *first)
            self.assertEqual(begun["checkpoints"], 3)
            rest = end("heat", *words, "--resume", "c", "--output", "rest.npy")
            self.assertEqual(self.content("rest.npy"), self.content("whole.npy"))
            self.assertEqual(begun["history"] + rest["history"], whole["history"])

    def test_endings(self):
        result = self.on_gpu("heat", "--size", "20x31", "--steps", 10**9, "--time-limit", 0.3, "--checkpoint", "c", "--output", "u.npy", code=4)
        self.assertEqual((result["status"], result["message"]), ("aborted", "the time limit of 0.3 s was reached."))
        self.stencil("heat", "--size", "20x31", "--steps", result["steps"], "--output", "v.npy")
        self.assertEqual(self.content("u.npy"), self.content("v.npy"))
        result = self.on_gpu("heat", "--size", "9x9", "--parameter", "k=40", "--steps", 1000, "--boundary", "periodic", "--every", 10, code=1)
        self.assertEqual((result["status"], result["steps"]), ("not_finite", result["history"][-1]["step"]))
        steady = self.on_gpu("jacobi2d", "--size", "16x16", "--steps", 10**6, "--every", 10, "--tolerance", 1e-4)
        self.assertEqual(steady["status"], "steady")

    def test_ctrl_c_and_the_summary(self):
        process = self.start("stencil", "--problem", "heat", "--size", "20x31", "--steps", 10**9, "--gpus", 1, "--checkpoint", "c", "--checkpoint-every",
                             1000, "--json", "r.json", environment=PLAYED)
        self.wait_for_file("c", process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual((process.returncode, err), (4, ""))
        self.assertEqual(json.loads(self.content("r.json"))["message"], "interrupted by ctrl-C (SIGINT).")
        self.assertIn("  gpu         played GPU; ", out)
        self.assertNotIn("waiting for halos", out)


if __name__ == "__main__":
    unittest.main()

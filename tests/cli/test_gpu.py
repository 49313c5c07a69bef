"""`--gpus` and what `hostless doctor` says about GPUs: on machines without one, and on those with one."""

import json
import os
import pathlib
import shutil
import unittest

from hostless_command import COMMAND, Command

PROBLEM = ("solve", "--generate", "poisson2d", "--size", "40", "--no-bandwidth")
GPU = (*PROBLEM, "--gpus", "1", "--run", "persistent")
HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1"}
NONE = "hostless: no GPU can be used (a GPU run was asked for). Leave out --gpus."
class WithoutGpu(Command):
    def test_a_solve_says_what_each_library_found(self):
        lines = self.run_it(*GPU, code=4, environment=HIDDEN).stderr.splitlines()
        self.assertEqual(lines[0], NONE)
        self.assertEqual([line.split(":")[0].strip() for line in lines[1:]], ["cuda", "hip"])
        for line in lines[1:]:
            self.assertRegex(line, "no GPU is visible|was not found next to|cannot be loaded")

    def test_a_gpu_needs_no_other_option(self):  # the run is then measured; that of the processor is refused
        self.assertIn(NONE, self.run_it(*PROBLEM, "--gpus", "1", code=4, environment=HIDDEN).stderr)
        self.assertIn("the host run on a GPU", self.refused(2, *PROBLEM, "--gpus", "1", "--run", "host"))

    def test_a_program_without_its_libraries(self):
        alone = shutil.copy(COMMAND, self.folder)
        lines = self.run_it(*GPU, code=4, program=alone).stderr.splitlines()
        self.assertEqual(lines[0], NONE)
        for vendor, line in zip(("cuda", "hip"), lines[1:]):
            self.assertIn(f"{vendor}: libhostless_{vendor}.so was not found next to the program", line)

    def test_a_library_of_somebody_else_beside_the_program(self):
        alone = shutil.copy(COMMAND, self.folder)
        self.write("libhostless_cuda.so", "rubbish")
        os.chmod(self.folder / "libhostless_cuda.so", 0o666)
        self.assertIn("libhostless_cuda.so is left alone: anybody may write it",
                      self.run_it(*GPU, code=4, program=alone).stderr)
        os.chmod(self.folder / "libhostless_cuda.so", 0o644)
        if self.given_away(self.folder / "libhostless_cuda.so"):
            refused = "libhostless_cuda.so is left alone: it belongs to user 12345"
            self.assertIn(refused, self.run_it(*GPU, code=4, program=alone).stderr)
            os.chown(alone, 12345, 12345)  # whose program is run anyhow
            self.assertIn("libhostless_cuda.so cannot be loaded", self.run_it(*GPU, code=4, program=alone).stderr)
            # By its name alone, from a folder with another program of that name: which file runs is what counts.
            elsewhere = self.folder / "elsewhere"
            elsewhere.mkdir()
            ours = shutil.copy(COMMAND, elsewhere / "hostless")
            decoy = shutil.copy(COMMAND, self.folder / "hostless")
            os.chown(decoy, 12345, 12345)
            path = {"PATH": f"{elsewhere}:{os.environ['PATH']}"}
            says = self.run_it(*GPU, code=4, program=pathlib.Path(ours).name, environment=path).stderr
            self.assertNotIn("left alone", says)
            self.assertIn("libhostless_cuda.so was not found", says)

    def given_away(self, path):
        """Whether this user could give a file to user 12345."""
        try:
            os.chown(path, 12345, 12345)
        except OSError:
            return False
        return True

    def test_a_file_that_is_no_library(self):
        self.write("libhostless_cuda.so", "rubbish")
        says = self.run_it(*GPU, code=4, environment={**HIDDEN, "HOSTLESS_PLUGIN_DIR": str(self.folder)}).stderr
        self.assertIn(f"{self.folder}/libhostless_cuda.so cannot be loaded", says)

    def test_without_the_option_nothing_is_loaded(self):
        self.write("libhostless_cuda.so", "rubbish")
        self.run_it(*PROBLEM, environment={"HOSTLESS_PLUGIN_DIR": str(self.folder)})

    def test_what_does_not_go_together_is_refused(self):
        for words, says in ((("--gpus", "1", "--ranks", "2"), "2 ranks on 1 GPU are refused (they would wait for each other"),
                            (("--gpus", "2", "--ranks", "4"), "Use --gpus 4, or --oversubscribe"),
                            (("--gpus", "2", "--ranks", "4", "--transport", "processes"), "4 ranks on 2 GPUs"),
                            (("--gpus", "4", "--ranks", "2"), "2 ranks on 4 GPUs (some would have nothing to do)"),
                            (("--oversubscribe",), "oversubscribed GPUs on the processor"),
                            (("--oversubscribe", "--ranks", "2"), "oversubscribed GPUs on the processor"),
                            (("--gpus", "-1"), "--gpus"),
                            (("--gpus", "1", "--format", "bsr"), "bsr"),
                            (("--format", "diagonals"), "diagonals"),
                            (("--gpus", "1", "--matrix-precision", "fp32", "--method", "single-reduction-cg"),
                             "Use method cg"),
                            (("--gpus", "1", "--format", "merge"), "format merge with reduction ordered"),
                            (("--gpus", "1", "--format", "vendor"), "format vendor with reduction ordered"),
                            (("--gpus", "1", "--format", "merge", "--reduction", "fast"), "in the persistent run"),
                            (("--gpus", "1", "--format", "vendor", "--reduction", "fast"), "in the persistent run"),
                            (("--gpus", "2", "--format", "vendor", "--reduction", "fast"), "format vendor on 2 ranks"),
                            (("--format", "merge"), "merge"),
                            (("--gpus", "1", "--row-lanes", "2", "--format", "sell"), "GPU format sell with 2 row lanes"),
                            (("--tune", "off"), "--tune without a GPU"),
                            (("--tune", "on", "--gpus", "1"), "--tune with the persistent run"),
                            (("--tune", "perhaps", "--gpus", "1"), "--tune"),
                            (("--gpu-transport", "nccl"), "GPU transport nccl on the processor"),
                            (("--gpus", "2", "--gpu-transport", "nccl"), "the persistent run with GPU transport nccl"),
                            (("--gpus", "2", "--gpu-transport", "host"), "the persistent run with GPU transport host"),
                            (("--gpu-transport", "mpi"), "GPU transport mpi on the processor"),
                            (("--gpus", "2", "--gpu-transport", "nvshmem"), "2 ranks that are threads of one process"),
                            (("--gpus", "2", "--gpu-transport", "mpi"), "the persistent run with GPU transport mpi"),
                            (("--gpus", "2", "--gpu-transport", "pigeon"), "--gpu-transport pigeon (unknown). Use auto, peer, "),
                            (("--longest-launch-s", "0"), "--longest-launch-s: '0' (a finite number above 0"),
                            (("--longest-launch-s", "2"), "longest launch 2 s on the processor"),
                            (("--tune", "maybe", "--gpus", "1"), "'maybe' (it is yes or no; on, off, true and false are taken too)"),
                            (("--tune", "true"), "--tune without a GPU"), (("--tune", "no"), "--tune without a GPU"),
                            (("--host-waits", "every_sum"), "host waits every_sum with the persistent run on the processor"),
                            (("--host-waits", "now"), "--host-waits now (unknown). Use when_needed, every_iteration or every_sum"),
                            (("--profile", "trace.json"), "Use --gpus 1.")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, *PROBLEM, "--run", "persistent", *words, environment=HIDDEN))

    def test_runs_are_measured_on_one_gpu_alone(self):
        for words, says in ((("--gpus", "2"), "several ranks or a --gpu-transport"),
                            (("--gpus", "1", "--ranks", "2", "--oversubscribe"), "several ranks or a --gpu-transport"),
                            (("--gpus", "1", "--gpu-transport", "host"), "several ranks or a --gpu-transport"),
                            (("--gpus", "1", "--profile", "trace.json"), "--profile or --check-interval"),
                            (("--gpus", "1", "--check-interval", "5"), "--profile or --check-interval")):
            with self.subTest(words=words):
                self.assertIn(f"--tune with {says}", self.refused(2, *PROBLEM, "--tune", "on", *words, environment=HIDDEN))
        says = self.run_it(*PROBLEM, "--tune", "on", "--gpus", "1", "--gpu-transport", "peer", code=4, environment=HIDDEN)
        self.assertIn(NONE, says.stderr)

    def test_what_carries_between_gpus(self):
        shared = "GPU transport {} and 3 ranks on 2 GPUs is refused (one rank's kernels that wait for the host would keep another's waiting). Use --run stream"
        for words, says in ((("--run", "graph", "--gpu-transport", "host", "--gpus", "2", "--ranks", "3", "--oversubscribe"),
                             shared.format("host")),
                            (("--run", "stream", "--gpu-transport", "nccl", "--gpus", "2", "--ranks", "4", "--oversubscribe"),
                             "GPU transport nccl with 4 ranks on 2 GPUs is refused (the library takes one rank a GPU). Use --gpus 4"),
                            (("--run", "graph", "--gpu-transport", "mpi", "--gpus", "2", "--ranks", "3", "--oversubscribe"),
                             shared.format("mpi")),
                            (("--run", "graph", "--gpu-transport", "nvshmem", "--gpus", "2", "--ranks", "3", "--oversubscribe"),
                             "GPU transport nvshmem with 3 ranks on 2 GPUs is refused (the library takes one rank a GPU)"),
                            (("--run", "stream", "--gpu-transport", "nvshmem", "--gpus", "2"),
                             "2 ranks that are threads of one process (NVSHMEM knows a process a GPU). Use --transport processes"),
                            (("--run", "stream", "--gpu-transport", "mpi", "--gpus", "2"),
                             "GPU transport mpi with ranks of transport threads (it is their own messages that carry). Use --transport mpi"),
                            (("--run", "stream", "--gpu-transport", "mpi", "--gpus", "2", "--transport", "processes"),
                             "GPU transport mpi with ranks of transport processes"),
                            (("--run", "persistent", "--gpu-transport", "peer+nccl", "--gpus", "2"),
                             "the persistent run with GPU transport peer+nccl is refused"),
                            (("--run", "stream", "--gpu-transport", "peer+mpi", "--gpus", "2"),
                             "GPU transport peer+mpi with ranks of transport threads (it is their own messages that carry). Use --transport mpi, or "
                             "--gpu-transport peer+host"),
                            (("--run", "graph", "--gpu-transport", "peer+host", "--gpus", "2", "--ranks", "3", "--oversubscribe"),
                             shared.format("peer+host"))):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, *PROBLEM, *words, environment=HIDDEN))
        self.assertIn(NONE, self.run_it(*PROBLEM, "--gpus", "2", "--transport", "processes", "--gpu-transport", "nvshmem", code=4,
                                        environment=HIDDEN).stderr)
        for words in (("--run", "graph", "--gpu-transport", "nccl"), ("--run", "stream", "--gpu-transport", "host"),
                      ("--run", "graph", "--gpu-transport", "host"), ("--run", "graph", "--gpu-transport", "peer+host"),
                      ("--run", "graph", "--gpu-transport", "peer+nccl", "--ranks", "4", "--ranks-per-node", "2", "--oversubscribe"),
                      ("--run", "auto", "--gpu-transport", "nccl"), ("--gpu-transport", "peer"), ("--gpu-transport", "auto")):
            with self.subTest(words=words):
                self.assertIn(NONE, self.run_it(*PROBLEM, "--gpus", "2", *words, code=4, environment=HIDDEN).stderr)

    def test_doctor_names_the_file_of_measured_runs(self):
        text = self.run_it("doctor", "--seconds", "0.01", environment={**HIDDEN, "HOSTLESS_CACHE_DIR": "/here"}).stdout
        self.assertIn("runs are kept in /here/gpu-runs.jsonl", text)

    def test_a_layout_that_the_matrix_does_not_fit_is_refused(self):
        says = self.refused(2, "solve", "--generate", "circuit", "--size", "40", "--gpus", "1", "--run", "persistent",
                            "--format", "diagonals", environment=HIDDEN)
        self.assertIn("the matrix does not fit format diagonals", says)

    def test_what_a_gpu_does_not_generate_is_refused(self):
        on_gpu = ("--gpus", "1", "--run", "auto", "--generate-on", "gpu")
        for words, says in ((("--generate", "circuit", *on_gpu), "rows that only the host makes"),
                            (("--generate", "poisson2d", "--generate-on", "gpu"), "Use --gpus 1."),
                            (("--generate", "poisson2d", "--generate-on", "moon"), "--generate-on"),
                            (("--generate", "poisson2d", *on_gpu, "--ranks", "2", "--oversubscribe"), "Use one rank."),
                            (("--generate", "poisson2d", "--gpus", "2", "--generate-on", "gpu"), "and 2 GPUs (it stays on the one"),
                            (("--generate", "poisson2d", *on_gpu, "--block-size", "2"), "block size 2"),
                            (("--generate", "poisson2d", *on_gpu, "--format", "csr"), "format csr"),
                            (("--generate", "poisson7", "--size", "2000", *on_gpu), "31 bits"),
                            (("A.mtx", *on_gpu), "--generate-on gpu with the matrix A.mtx")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, "solve", *words, environment=HIDDEN))

    def test_doctor(self):
        text = self.run_it("doctor", "--seconds", "0.01", "--json", "report.json", environment=HIDDEN).stdout
        found = json.loads(self.content("report.json"))["gpu_libraries"]
        self.assertEqual([one["vendor"] for one in found], ["cuda", "hip"])
        for one in found:
            self.assertEqual(one["gpus"], [])
            self.assertNotEqual(one["problem"], "")
            self.assertIn(f"missing: {one['vendor']}: {one['problem']}", text)
            loaded = {"cuda": "native", "hip": "unproven"}[one["vendor"]]
            self.assertEqual(one["support"], loaded if one["library"] else "absent")
            self.assertEqual("unproven: compiled, never seen running" in text, found[1]["support"] == "unproven")
        carriers = json.loads(self.content("report.json"))["gpu_carriers"]
        self.assertEqual([(one["vendor"], one["name"]) for one in carriers],
                         [(one["vendor"], name) for one in found if one["library"] for name in ("nccl", "nvshmem", "mpi")])
        for one in carriers:
            self.assertEqual((one["support"], one["tried"]), ("unproven" if one["library"] else "absent", False))
            self.assertEqual(bool(one["problem"]), not one["library"])
            self.assertIn(f"carriers   {one['vendor']}: {one['name']}: {one['support']}: {one['library'] or one['problem']}", text)
            self.assertEqual(bool(one["detail"]), bool(one["library"]) and one["name"] != "mpi")
            self.assertIn(one["detail"], text)
            if one["name"] == "nvshmem" and one["library"]:
                self.assertRegex(one["detail"], "inside a node .*P2P.*between nodes .*A put is a whole message")
        self.assertEqual("carriers   none: no GPU library can be loaded" in text, not carriers)

    def test_doctor_has_no_paths_to_prove(self):
        text = self.run_it("doctor", "--seconds", "0.01", "--prove", "--json", "report.json", environment=HIDDEN).stdout
        self.assertIn("paths      nothing to prove: no GPU is visible", text)
        report = json.loads(self.content("report.json"))
        self.assertEqual(report["gpu_paths"], [])
        for one in report["gpu_carriers"]:
            self.assertEqual((one["support"] == "proven", one["tried"]), (False, False))
            self.assertTrue(not one["library"] or one["problem"] == "nothing to prove: fewer than two GPUs")
        self.assertNotIn("gpu_paths", self.json_of("doctor", "--seconds", "0.01", environment=HIDDEN))


class WithGpu(Command):
    def setUp(self):
        super().setUp()
        self.libraries = self.json_of("doctor", "--seconds", "0.01")["gpu_libraries"]
        if not any(one["gpus"] for one in self.libraries):
            self.skipTest("; ".join(f"{one['vendor']}: {one['problem']}" for one in self.libraries))

    def test_doctor_describes_every_gpu(self):
        text = self.run_it("doctor", "--seconds", "0.01").stdout
        for library in self.libraries:
            for gpu in library["gpus"]:
                self.assertIn(gpu["name"], text)
                self.assertGreater(gpu["multiprocessors"], 0)
                self.assertGreater(gpu["l2_bytes"], 0)
                self.assertGreaterEqual(gpu["memory_bytes"], gpu["free_bytes"])

    def test_doctor_proves_the_paths_between_gpus(self):
        report = self.json_of("doctor", "--seconds", "0.01", "--prove")
        gpus = {one["vendor"]: len(one["gpus"]) for one in report["gpu_libraries"]}
        text = self.run_it("doctor", "--seconds", "0.01", "--prove").stdout
        for vendor, number in gpus.items():
            paths = [one for one in report["gpu_paths"] if one["vendor"] == vendor]
            self.assertEqual([(one["from"], one["to"]) for one in paths],
                             [(a, b) for a in range(number) for b in range(number) if a != b and number > 1])
            if number == 1:
                self.assertIn(f"paths      {vendor}: nothing to prove: fewer than two GPUs", text)
            for one in paths:
                self.assertEqual(one["support"], "absent" if one["problem"] else "native")
                if not one["problem"]:  # wide physical limits
                    self.assertTrue(0.1 < one["word_us"] < 1000, one)
                    self.assertTrue(1e8 < one["bytes_per_second"] < 1e13, one)

    def test_every_layout_has_the_bits_of_the_processor(self):
        self.run_it(*PROBLEM, "--output", "host.npy")
        for layout in ("auto", "diagonals", "diagonals-full", "sell", "csr"):
            self.run_it(*GPU, "--format", layout, "--output", "gpu.npy")
            self.assertEqual(self.content("gpu.npy"), self.content("host.npy"), layout)

    def test_an_fp32_matrix_has_the_bits_of_the_processor(self):
        words = ("--matrix-precision", "fp32", "--rtol", "1e-12")
        self.run_it(*PROBLEM, *words, "--output", "host.npy")
        for run in ("persistent", "graph", "stream"):
            result = self.solve(*PROBLEM[1:], *words, "--gpus", "1", "--run", run, "--output", "gpu.npy")
            self.assertEqual(self.content("gpu.npy"), self.content("host.npy"), run)
            self.assertRegex(result["choices"]["matrix_precision"], "fp32 in iterations .* MB a sweep instead of")

    def test_a_matrix_that_the_gpu_makes_has_the_bits_of_the_processor(self):
        for kind in ("poisson2d", "elasticity-hex8"):
            problem = ("solve", "--generate", kind, "--size", "12", "--manufactured", "--no-bandwidth")
            self.run_it(*problem, "--output", "host.npy")
            report = self.json_of(*problem, "--gpus", "1", "--run", "auto", "--generate-on", "gpu", "--output", "gpu.npy")
            self.assertEqual(self.content("gpu.npy"), self.content("host.npy"), kind)
            self.assertIn("on the GPU", report["choices"]["generated"])
            self.assertGreater(report["device"]["model_bytes"], 0)
            self.assertGreater(report["device"]["peak_bytes"], 0)

    def test_its_speed_is_not_held_against_the_processor(self):
        report = self.json_of(*PROBLEM[:-1], "--gpus", "1", "--run", "graph")
        self.assertGreater(report["bytes_per_second"], 0)
        self.assertEqual((report["measured_bandwidth"], report["share_of_bandwidth"]), (None, None))

    def test_runs_are_measured_once(self):
        words = (*PROBLEM[1:], "--gpus", "1", "--run", "auto")
        first, second = (self.solve(*words)["choices"]["run_why"] for _ in range(2))
        self.assertRegex(first, r"^measured: .*persistent [0-9.]+ us")
        self.assertEqual(second, first.replace("measured: ", "measured before (cache): "))
        self.assertRegex(self.solve(*words, "--tune", "off")["choices"]["run_why"], "^model: ")
        self.assertRegex(self.solve(*words, "--tune", "on")["choices"]["run_why"], "^measured before")

    def test_bench_holds_every_run_against_the_processor(self):
        report = self.json_of("bench", *PROBLEM[:-1], "--gpus", "1", "--iterations", "30", "--runs",
                              "host,persistent,graph,stream", "--methods", "cg,single-reduction-cg,pipelined-cg")
        self.assertEqual([(row["run"], row["bits"], row["gpus"]) for row in report["solves"]],
                         3 * [("host", "first", 0), *((run, "equal", 1) for run in ("persistent", "graph", "stream"))])
        for row in report["solves"]:
            self.assertGreater(row["wall_best_us"], 0)
            self.assertGreater(row["best_us"], 0)

    def test_products_apart_reach_the_target(self):
        for layout in ("merge", "vendor"):
            for run in ("stream", "graph"):
                with self.subTest(layout=layout, run=run):
                    done = self.run_it(*PROBLEM, "--gpus", "1", "--run", run, "--format", layout, "--reduction", "fast",
                                       "--rtol", "1e-9", "--json", "-", code=None)
                    if layout == "vendor" and done.returncode == 4:
                        self.assertIn("format vendor", done.stderr)  # the vendor's library is not on this machine
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertLessEqual(json.loads(done.stdout)["true_relative_residual"], 1e-9)

    def test_the_profile_is_a_trace(self):
        for run, names in (("persistent", {"publish", "sweep", "rows", "words", "decision"}), ("stream", {"computing"}),
                           ("graph", {"computing"})):
            with self.subTest(run=run):
                result = self.json_of(*PROBLEM, "--gpus", "1", "--run", run, "--profile", "trace.json")
                events = json.loads(self.content("trace.json"))["traceEvents"]
                self.assertLessEqual(names, {one["name"] for one in events})
                for one in events:
                    self.assertGreaterEqual(one["dur"], 0)
                times = result["iteration_times"]
                self.assertEqual(times["clock"], "kernel" if run == "persistent" else "stamps")
                self.assertGreater(times["computing_us"], 0)
                self.assertIsNone(times["overlapped"])  # one rank has nobody to hear from
                self.assertAlmostEqual(times["computing_us"] + times["exposed_us"] + times["idle_us"], times["iteration_us"], 6)
        self.assertIsNone(self.json_of(*GPU)["iteration_times"])


if __name__ == "__main__":
    unittest.main()

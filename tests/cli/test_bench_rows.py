"""`hostless bench pingpong|halo|allreduce --transports`: every transport and face in one table, none missing in silence."""

import json
import os
import shutil
import signal
import unittest
from pathlib import Path

from hostless_command import PATIENT, SLOWEST, Command, cpu_seconds, kill, launcher_of, ranks_of

GRID = ("--generate", "poisson2d", "--size", "24")
BRIEF = ("--steps", "20", "--repeat", "2", "--warm-up", "3")
HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1"}
ALL = [("threads", "host"), ("processes", "host"), ("openmpi", "host"), ("mpich", "host"), ("peer", "kernel"), ("peer", "stream"),
       ("nccl", "stream"), ("nvshmem", "stream"), ("mpi", "stream"), ("host", "stream"),
       ("peer+nccl", "stream"), ("peer+mpi", "stream"), ("peer+host", "stream")]
# A library in the place of a GPU's (tests/unit/exchange/fake_gpu): two GPUs, for which the host carries.
PLAYED = {"HOSTLESS_PLUGIN_DIR": os.environ.get("HOSTLESS_PLAYED_GPU", "")}


class Rows(Command):
    def rows(self, *words, **how):
        report = self.json_of("bench", *words, *BRIEF, **{"environment": HIDDEN, **how})
        counted = [sum(row["status"] == status for row in report["rows"]) for status in ("measured", "absent", "failed")]
        self.assertEqual(counted, [report["measured"], report["absent"], report["failed"]])
        self.assertEqual(sum(counted), len(report["rows"]))
        for row in report["rows"]:
            self.assertEqual("error" in row, row["status"] != "measured", row)
            self.assertNotEqual(row.get("error"), "")
        return report

    def expected(self):
        """What must be measured here."""
        here = {"threads", "processes"}
        return here | {vendor for vendor in ("openmpi", "mpich") if launcher_of(vendor, 2)[1] is None}

    def test_all_of_them_exchange_messages(self):
        report = self.rows("pingpong", "--ranks", 2, "--transports", "all", "--sizes", "8,4099")
        self.assertEqual((report["version"], report["bench"]), (1, "pingpong"))
        self.assertEqual(report["provenance"]["options_given"]["--transports"], "all")
        self.assertEqual([(row["transport"], row["face"]) for row in report["rows"]], ALL)
        measured = {row["transport"] for row in report["rows"] if row["status"] == "measured"}
        self.assertEqual(measured, self.expected())
        for row in report["rows"]:
            if row["status"] != "measured":
                continue
            self.assertEqual((row["ranks"], [one["bytes"] for one in row["pingpong"]]), (2, [8, 4099]))
            self.assertTrue(all(0 < one["best_us"] <= one["median_us"] <= one["worst_us"] for one in row["pingpong"]))
            library = {"openmpi": "Open MPI", "mpich": "MPICH"}.get(row["transport"])
            self.assertIn(library or "", row.get("mpi", ""))
            self.assertEqual("mpi" in row, library is not None)
        self.assertIn("no GPU can be used", report["rows"][-1]["error"])

    def test_all_of_them_carry_a_plan_and_its_answer_is_the_same(self):
        report = self.rows("halo", *GRID, "--ranks", 2, "--transports", "all", "--fields", 2, "--item-bytes", 24)
        told = {(row["most_bytes_sent"], row["most_messages_sent"], json.dumps(row["per_rank"])) for row in report["rows"]
                if row["status"] == "measured"}
        self.assertEqual(len(told), 1)
        self.assertEqual(told.pop()[:2], (24 * 48, 1))
        self.assertEqual(report["measured"], len(self.expected()))

    def test_sums_and_the_rival_where_there_is_one(self):
        report = self.rows("allreduce", "--ranks", 2, "--transports", "mpich,openmpi,threads", "--values", "1,8")
        self.assertEqual([row["transport"] for row in report["rows"]], ["mpich", "openmpi", "threads"])
        without = 0
        for row in report["rows"]:
            if row["status"] != "measured":
                continue
            self.assertEqual([(one["reduction"], one["doubles"]) for one in row["allreduce"]],
                             [(how, k) for how in ("ordered", "fast", "library") for k in (1, 8)])
            errors = [one for one in row["allreduce"] if "error" in one]
            self.assertEqual(len(errors), 4 if row["transport"] == "threads" else 0)
            without += len(errors)
        self.assertEqual(report["absent_figures"], without)

    def test_kernels_of_gpus_are_a_row_beside_the_others(self):
        doctor = self.json_of("doctor", "--seconds", "0.01")
        if not any(library["gpus"] for library in doctor["gpu_libraries"]):
            self.skipTest("no GPU is visible")
        shared = ("--gpus", 1, "--ranks", 2, "--oversubscribe", "--transports", "threads,peer")
        for words, count in ((("pingpong", "--sizes", 8), 2), (("halo", *GRID, "--sums", 1), 2), (("allreduce", "--values", "1,4"), 2)):
            found = [row for row in self.rows(*words, *shared[:-1], "peer", environment=None)["rows"] if row["transport"] == "peer"]
            self.assertEqual([(row["status"], row["face"], row["gpus"]) for row in found if row["face"] == "kernel"], [("measured", "kernel", 1)])
            text = self.run_it("bench", *words, *shared, *BRIEF).stdout
            self.assertEqual(len([line for line in text.splitlines() if line.startswith("peer       kernel")]), count)

    def stream_rows(self, *words, transports="peer,nccl,nvshmem,mpi,host", environment=None, **how):
        report = self.rows(*words, "--ranks", 2, "--transports", transports, environment={**PLAYED, **(environment or {})}, **how)
        return report, {row["transport"]: row for row in report["rows"] if row["face"] == "stream"}

    def test_streams_of_a_played_gpu_carry_messages(self):
        report, rows = self.stream_rows("pingpong", "--sizes", "8,4099,65536", environment={"HOSTLESS_MPI_DEVICE_MEMORY": "1"})
        self.assertEqual([rows[name]["status"] for name in ("peer", "nccl", "nvshmem", "host")], ["absent", "absent", "absent", "measured"])
        self.assertIn("no such stream face", rows["peer"]["error"])
        self.assertIn("no NVSHMEM", rows["nvshmem"]["error"])
        has_mpi = {"openmpi", "mpich"} & self.expected()
        self.assertEqual(rows["mpi"]["status"], "measured" if has_mpi else "absent", rows["mpi"])
        for name in ("host", *(("mpi",) if has_mpi else ())):
            found = [(one["bytes"], one["by"]) for one in rows[name]["pingpong"]]
            self.assertEqual(found, [(size, by) for size in (8, 4099, 65536) for by in ("stream", "graph")])
            for one in rows[name]["pingpong"]:
                self.assertTrue(0 < one["best_us"] <= one["median_us"] <= one["worst_us"], one)
                self.assertEqual((one["first"], one["second"], one["carried_by"]), (0, 1, "played"))
            self.assertEqual((rows[name]["gpu_transport"], rows[name]["gpus"]), (name, 2))
        self.assertEqual(report["failed"], 0)

    def test_an_mpi_that_takes_no_device_memory_is_absent(self):
        if not {"openmpi", "mpich"} & self.expected():
            self.skipTest("no MPI can start ranks here")
        _, rows = self.stream_rows("allreduce", "--values", "2", transports="mpi,host")
        self.assertEqual((rows["mpi"]["status"], rows["host"]["status"]), ("absent", "measured"))
        self.assertIn("takes no memory of GPUs", rows["mpi"]["error"])

    def test_streams_of_a_played_gpu_carry_plans_and_parts_of_sums(self):
        _, rows = self.stream_rows("halo", *GRID, "--fields", 2, "--item-bytes", 24, transports="host")
        self.assertEqual((rows["host"]["most_bytes_sent"], rows["host"]["most_messages_sent"]), (24 * 48, 1))
        self.assertEqual([(rows["host"][how]["by"], rows["host"][how]["best_us"] > 0) for how in ("queued", "replayed")],
                         [("stream", True), ("graph", True)])
        _, rows = self.stream_rows("allreduce", "--values", "1,8", transports="host")
        self.assertEqual([(one["doubles"], one["reduction"], one["by"]) for one in rows["host"]["allreduce"]],
                         [(k, "gathered", by) for k in (1, 8) for by in ("stream", "graph")])

    def test_messages_in_memory_of_gpus_by_an_mpi(self):
        words = ("pingpong", "--ranks", 2, "--memory", "gpu", "--sizes", "1,4099", *BRIEF)
        self.assertIn("GPU transport mpi with ranks of transport threads", self.refused(2, "bench", *words, environment=PLAYED))
        if not {"openmpi", "mpich"} & self.expected():
            self.skipTest("no MPI can start ranks here")
        report = self.json_of("bench", *words, "--transport", "mpi", environment={**PLAYED, "HOSTLESS_MPI_DEVICE_MEMORY": "1"})
        self.assertEqual((report["memory"], [one["bytes"] for one in report["pingpong"]]), ("gpu", [1, 4099]))
        self.assertIn("takes no memory of GPUs", self.run_it("bench", *words, "--transport", "mpi", code=None, environment=PLAYED).stderr)

    def test_one_stream_face_alone(self):
        words = ("pingpong", "--ranks", 2, "--gpu-transport", "host", "--sizes", 64, *BRIEF)
        text = self.run_it("bench", *words, environment=PLAYED).stdout.splitlines()
        self.assertEqual([line.split()[:4] for line in text[2:]], [["stream", "0,", "1", "64"], ["graph", "0,", "1", "64"]])
        for ranks, gpus, by, says in ((2, 1, "host", "2 ranks on 1 GPU (some would share one)"), (3, 3, "host", "3 GPUs (this machine has 2)"),
                                      (2, 2, "loopback", "unknown GPU transport 'loopback'"), (1, 1, "host", "a ping-pong of one rank")):
            with self.subTest(ranks=ranks, gpus=gpus, by=by):
                self.assertIn(says, self.refused(2, "bench", "pingpong", "--ranks", ranks, "--gpus", gpus, "--gpu-transport", by, quiet=False, environment=PLAYED))
        self.assertIn("ranks 0 and 7 as a pair", self.refused(2, "bench", *words, "--pair", "0,7", environment=PLAYED))
        self.run_it("bench", *words, "--gpus", 1, "--oversubscribe", environment=PLAYED)
        self.assertIn("--sums with --gpu-transport", self.refused(2, "bench", "halo", *GRID, "--gpu-transport", "peer", "--sums", 1))

    def test_under_mpirun_each_rank_of_a_machine_has_a_gpu(self):
        words = ("bench", "pingpong", "--gpu-transport", "host", "--sizes", 64, *BRIEF)
        vendors = [vendor for vendor in ("openmpi", "mpich") if vendor in self.expected()]
        if not vendors:
            self.skipTest("no MPI can start ranks here")
        for vendor in vendors:
            launcher, _ = launcher_of(vendor, 2)
            with self.subTest(vendor=vendor):
                report = self.json_of(*words, launcher=launcher, environment=PLAYED)
                self.assertEqual((report["ranks"], report["gpus"], len(report["pingpong"])), (2, 2, 2))
                three, _ = launcher_of(vendor, 3)
                done = self.run_it(*words, launcher=three, environment=PLAYED, code=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("3 ranks on 2 GPUs (some would share one)", done.stderr)
                report = self.json_of(*words, "--oversubscribe", launcher=three, environment=PLAYED)
                self.assertEqual((report["ranks"], report["gpus"]), (3, 2))
                done = self.run_it("solve", *GRID, "--gpu-transport", "host", launcher=launcher, environment=PLAYED, code=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("GPU transport host on the processor is refused (there are no GPUs to carry between). Use --gpus", done.stderr)

    def test_the_table_says_the_same(self):
        text = self.run_it("bench", "pingpong", "--ranks", 2, "--transports", "threads,peer,processes", "--sizes", "8,64", *BRIEF,
                           "--json", "report.json", environment=HIDDEN).stdout.splitlines()
        report = json.loads(self.content("report.json"))
        self.assertEqual(text[0].split()[:2], ["transport", "face"])
        self.assertEqual(text[-1], "2 measured, 2 absent, 0 failed")
        figures = [line.split() for line in text if " 0, 1 " in line]
        self.assertEqual([(line[0], line[1], line[4], line[5]) for line in figures],
                         [(row["transport"], row["face"], str(one["bytes"]), f"{one['best_us']:.3f}")
                          for row in report["rows"] if row["status"] == "measured" for one in row["pingpong"]])
        self.assertEqual([line.split()[:3] for line in text if line.startswith("peer")], [["peer", "kernel", "absent:"], ["peer", "stream", "absent:"]])

    def test_what_is_missing_says_why_and_is_no_failure_unless_all_are(self):
        nowhere = {**HIDDEN, "PATH": str(self.folder)}
        report = self.rows("pingpong", "--ranks", 2, "--sizes", 8, "--transports", "openmpi,mpich,threads", environment=nowhere)
        self.assertEqual([row["status"] for row in report["rows"]], ["absent", "absent", "measured"])
        self.assertTrue(all(row["error"] for row in report["rows"][:2]))
        report = self.rows("pingpong", "--ranks", 2, "--transports", "openmpi,peer", environment=nowhere, code=4)
        self.assertEqual((report["measured"], report["absent"]), (0, 3))
        # asked for what a transport has not
        report = self.rows("pingpong", "--ranks", 2, "--pair", "0,2", "--transports", "threads,processes", code=2)
        self.assertEqual(report["absent"], 2)
        self.assertIn("as a pair among 2 ranks", report["rows"][0]["error"])

    def test_what_fails_is_the_exit_code(self):
        report = self.rows("halo", "nowhere.mtx", "--ranks", 2, "--transports", "threads,processes", code=3)
        self.assertEqual(report["failed"], 2)
        self.assertIn("nowhere.mtx", report["rows"][1]["error"])

    def endless(self):
        (self.folder / "tmp").mkdir()
        job = self.start("bench", "pingpong", "--ranks", 2, "--transports", "processes,threads", "--sizes", "8", "--row-limit", 10 * SLOWEST,
                         "--steps", 10**9, "--json", "report.json", environment={**PATIENT, "TMPDIR": str(self.folder / "tmp")})
        def ranks():
            return [one for one in ranks_of(job) if b"HOSTLESS_RANK=" in surroundings_of(one)]
        self.wait_until(lambda: len(ranks()) == 2 and all(cpu_seconds(one) > 0.1 for one in ranks()), "ranks that answer each other", job)
        return job, ranks()

    def test_a_killed_rank_fails_its_row(self):
        job, ranks = self.endless()
        kill(ranks[1], signal.SIGKILL)
        self.wait_until_gone(ranks)
        job.stdout.readline()  # the head
        out = job.stdout.readline()
        self.wait_until(lambda: any(cpu_seconds(one) > 0.1 for one in ranks_of(job)), "the threads of the next row at work", job)
        kill(job.pid, signal.SIGINT)
        _, err = job.communicate(timeout=SLOWEST)
        self.assertEqual(job.returncode, 4, err)
        self.assertRegex(out, "processes +host +failed: .*(by signal|a rank was lost)")

    def test_an_interrupted_one_takes_its_ranks_along(self):
        job, ranks = self.endless()
        kill(job.pid, signal.SIGINT)
        _, err = job.communicate(timeout=SLOWEST)
        self.assertEqual(job.returncode, 4, err)
        self.wait_until_gone(ranks)
        self.assertFalse((self.folder / "report.json").exists())
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_a_killed_one_takes_its_ranks_along(self):
        for number in (signal.SIGKILL, signal.SIGHUP):
            with self.subTest(signal=number):
                shutil.rmtree(self.folder / "tmp", ignore_errors=True)
                job, ranks = self.endless()
                kill(job.pid, number)
                job.communicate(timeout=SLOWEST)
                self.wait_until_gone(ranks)

    def test_one_that_takes_too_long_leaves_nothing(self):
        (self.folder / "tmp").mkdir()
        report = self.json_of("bench", "pingpong", "--ranks", 2, "--transports", "processes,openmpi", "--row-limit", "1", "--sizes", "8",
                              "--steps", 10**9, code=4, environment={"TMPDIR": str(self.folder / "tmp")})
        told = [row["error"] for row in report["rows"] if row["status"] == "failed"]
        self.assertEqual(told, ["it did not end within 1 s"] * (1 + ("openmpi" in self.expected())))
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_what_makes_no_sense_is_refused(self):
        for words, says in ((("--transports", "threads,pigeon"), "--transports: 'pigeon'"), (("--transports", ""), "--transports"),
                            (("--transports", "threads", "--transport", "threads"), "excludes"),
                            (("--row-limit", "3"), "--row-limit requires --transports"),
                            (("--transports", "all", "--row-limit", "0"), "--row-limit"),
                            (("--transports", "threads", "--gpus", "1"), "none is of GPUs"),
                            (("--transports", "threads", "--oversubscribe"), "none is of GPUs")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, "bench", "allreduce", *words))
        self.assertIn("no/where.json", self.refused(4, "bench", "allreduce", "--transports", "threads", "--json", "no/where.json"))
        launcher, _ = launcher_of("openmpi", 2)
        if launcher is not None:
            done = self.run_it("bench", "allreduce", "--transports", "all", launcher=launcher, code=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("--transports under mpirun", done.stderr)


def surroundings_of(process):
    try:
        return Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return b""  # ended meanwhile


if __name__ == "__main__":
    unittest.main()

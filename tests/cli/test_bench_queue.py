"""`hostless bench pingpong --queue`, `halo --queue` and `life`: what they write and print, and what they refuse."""

import json
import os
import re
import unittest

from test_bench import Bench

BRIEF = ("--steps", 8, "--repeat", 3, "--warm-up", 3)


class Queues(Bench):
    def rows_are_sane(self, rows, by):
        self.assertEqual([row["by"] for row in rows], by)
        for row in rows:
            self.times_are_sane(row)

    def test_ping_pong(self):
        report = self.json_of("bench", "pingpong", "--queue", "threads", "--ranks", 2, "--sizes", "8,8193", *BRIEF)
        self.head(report, "pingpong", "threads", 2)
        self.assertEqual(report["queue"], "threads")
        self.rows_are_sane(report["pingpong"], ["standard", "ready", "host"] * 2)
        self.assertEqual([row["bytes"] for row in report["pingpong"]], [8] * 3 + [8193] * 3)

    # By a library that plays two GPUs: what is written, not how long it takes.
    def test_ping_pong_of_streams(self):
        played = {"HOSTLESS_PLUGIN_DIR": os.environ["HOSTLESS_PLAYED_GPU"]}
        words = ("bench", "pingpong", "--queue", "peer", "--sizes", "8,8193", *BRIEF)
        report = self.json_of(*words, "--gpus", 2, environment=played)
        self.head(report, "pingpong", "threads", 2)
        self.assertEqual((report["queue"], report["gpus"]), ("peer", 2))
        rows = report["pingpong"]
        self.rows_are_sane(rows, ["standard", "ready"] * 4)
        self.assertEqual([row["run"] for row in rows], ["stream", "stream", "graph", "graph"] * 2)
        self.assertEqual([row["bytes"] for row in rows], [8] * 4 + [8193] * 4)
        rows = self.json_of(*words, "--gpus", 1, "--oversubscribe", "--run", "graph", environment=played)["pingpong"]
        self.assertEqual({row["run"] for row in rows}, {"graph"})
        self.refused(4, *words, "--gpus", 3, "--pair", "0,2", environment=played)

    def test_halo(self):
        report = self.json_of("bench", "halo", "--queue", "auto", "--ranks", 3, "--generate", "poisson2d", "--size", 20, "--fields", 2, *BRIEF)
        self.head(report, "halo", "threads", 3)
        self.assertEqual(report["route"], "direct")
        for row in (report["standard"], report["host"]):
            self.times_are_sane(row)

    # A queue's messages go directly: plans of another route say something else than what is timed.
    def test_halo_of_another_route(self):
        plan = ("--generate", "poisson2d", "--size", 20, "--ranks-per-node", 2)
        words = ("bench", "halo", "--queue", "threads", *BRIEF)
        self.assertIn("route two_step with --queue", self.refused(2, *words, *plan, "--ranks", 4, "--route", "two_step"))
        report = self.json_of(*words, *plan, "--ranks", 4, "--route", "auto")
        self.assertEqual(report["route"], "direct")
        self.run_it("plan", *plan, "--ranks", 4, "--route", "three_step", "--save", "p.json")
        self.assertIn("route three_step with --queue", self.refused(2, *words, "--load", "p.json"))

    def test_life(self):
        report = self.json_of("bench", "life", "--size", "32,48", "--ranks", 4, "--transport", "threads", *BRIEF)
        self.head(report, "life", "threads", 4)
        self.rows_are_sane(report["life"], ["standard", "ready", "host"])
        for row in report["life"]:
            self.assertEqual((row["alive"], row["gliders"]), (5 * 4 * 6, "conserved"))
        self.assertEqual((report["size"], report["ranks_along"]), ([32, 48], [2, 2]))
        # Each of 2 x 2 ranks has no neighbour but the others: edges of 16 and 24 cells twice, four corners.
        self.assertEqual((report["messages"], report["bytes"]), (8, 2 * (16 + 24) + 4))

    def test_life_of_streams(self):
        played = {"HOSTLESS_PLUGIN_DIR": os.environ["HOSTLESS_PLAYED_GPU"]}
        words = ("bench", "life", "--queue", "peer", "--gpus", 2, *BRIEF)
        report = self.json_of(*words, "--size", "32,48", environment=played)
        self.head(report, "life", "threads", 2)
        self.assertEqual((report["gpus"], report["ranks_along"], report["messages"]), (2, [1, 2], 6))
        self.rows_are_sane(report["life"], ["host"] + ["standard", "ready"] * 2)
        self.assertEqual([row["run"] for row in report["life"]], ["host", "stream", "stream", "graph", "graph"])
        for row in report["life"]:
            self.assertEqual((row["alive"], row["gliders"]), (5 * 4 * 6, "conserved"))
        # Boxes whose lines are no multiple of 16 cells, by three ranks of which two share a GPU.
        report = self.json_of(*words, "--size", "16,40", "--ranks", 3, "--oversubscribe", "--run", "graph", environment=played)
        self.assertEqual([(row["run"], row["gliders"]) for row in report["life"]], [("host", "conserved")] + [("graph", "conserved")] * 2)

    def test_life_by_groups(self):
        played = {"HOSTLESS_PLUGIN_DIR": os.environ["HOSTLESS_PLAYED_GPU"], "PLAYED_GPUS": "4"}
        for gpus in (2, 4):
            report = self.json_of("bench", "life", "--queue", "nccl", "--gpus", gpus, *BRIEF, "--size", "32,48", environment=played)
            self.head(report, "life", "threads", gpus)
            self.assertEqual([(row["by"], row["run"]) for row in report["life"]], [("host", "host"), ("standard", "stream"), ("standard", "graph")])
            for row in report["life"]:
                self.assertEqual((row["alive"], row["gliders"]), (5 * 4 * 6, "conserved"))

    def test_life_that_processors_exchange(self):
        played = {"HOSTLESS_PLUGIN_DIR": os.environ["HOSTLESS_PLAYED_GPU"]}
        words = ("bench", "life", "--gpus", 2, "--size", "32,48", *BRIEF)
        for more in ((), ("--transport", "processes")):
            report = self.json_of(*words, *more, environment=played)
            row, = report["life"]
            self.assertEqual((row["by"], row["alive"], row["gliders"]), ("host", 5 * 4 * 6, "conserved"))
            self.assertEqual((report["queue"], report["memory"], report["messages"]), (None, "host", 6))
        for says, more in (("ranks of transport threads", ("--memory", "gpu")), ("3 ranks on 2 GPUs", ("--ranks", 3)),
                           ("--run without --queue peer", ("--run", "graph")), ("--memory gpu without", ("--queue", "peer", "--memory", "gpu")),
                           ("--gpus or --oversubscribe with --queue mpi", ("--queue", "mpi"))):
            with self.subTest(more=more):
                self.assertIn(says, self.refused(2, *words, *more, environment=played))

    def test_processor_time_of_what_was_queued_before(self):
        played = {"HOSTLESS_PLUGIN_DIR": os.environ["HOSTLESS_PLAYED_GPU"]}
        words = ("bench", "pingpong", "--processor-time", "--sizes", 8, *BRIEF)

        def rows(**behind_the_hold):
            found = self.json_of(*words, "--queue", "peer", "--gpus", 2, environment={**played, **behind_the_hold})["pingpong"]
            self.assertEqual(len(found), 4)
            return [row["queued_beforehand"] for row in found]

        # Both GPUs that the processor plays keep it busy for so long, whoever else runs: and who waits sleeps.
        spin, sleep = 0.1, 0.5
        for queued in rows(PLAYED_SPIN_S=str(spin)):
            self.assertGreaterEqual(queued["round_trips"], 20)
            self.assertGreaterEqual(queued["processor_s"], 2 * spin)
            self.assertGreaterEqual(queued["wall_s"], spin)
        # Or sleep for so long, and not quite at the same time: all processors may be busy for the rest, and who waits looks now and then.
        for queued in rows(PLAYED_SLEEP_S=str(sleep)):
            self.assertGreaterEqual(queued["wall_s"], sleep)
            self.assertLessEqual(queued["processor_s"], 2 * os.cpu_count() * (queued["wall_s"] - sleep) + 0.5 * sleep)
        self.assertIn("--processor-time without --queue peer", self.refused(2, *words, "--ranks", 2))

    def test_the_table_says_the_same(self):
        text = self.run_it("bench", "life", "--size", 16, "--ranks", 2, "--ranks-along", "2,1", *BRIEF, "--json", "r.json").stdout.splitlines()
        report = json.loads(self.content("r.json"))
        self.assertIn("2 x 1 ranks", text[0])
        for line, row in zip(text[2:5], report["life"]):
            self.assertIn(row["by"], line)
            self.assertIn(f"{row['median_us']:.3f}", line)
        self.assertEqual(text[5], "every glider is where it must be")

    # What is written, not how long it takes: the provider that defers operations is a slow one.
    def test_over_libfabric(self):
        said = self.run_it("doctor", code=None).stdout
        if not re.search("ofi +found", said):
            self.skipTest("no queue type ofi here")
        words = ("--queue", "ofi", "--transport", "processes", "--ranks", 2, "--steps", 2, "--repeat", 1, "--warm-up", 1)
        report = self.json_of("bench", "pingpong", "--sizes", 8193, *words)
        self.head(report, "pingpong", "processes", 2)
        self.assertEqual(report["queue"], "ofi")
        self.rows_are_sane(report["pingpong"], ["standard", "ready", "host"])
        report = self.json_of("bench", "halo", "--generate", "poisson2d", "--size", 20, *words)
        self.head(report, "halo", "processes", 2)
        self.times_are_sane(report["standard"])
        report = self.json_of("bench", "life", "--size", 16, *words)
        self.assertEqual({row["gliders"] for row in report["life"]}, {"conserved"})
        self.refused(2, "bench", "pingpong", "--queue", "ofi", "--transport", "threads", "--ranks", 2)

    def test_refusals(self):
        self.assertIn("multiple of 8", self.refused(2, "bench", "life", "--size", 20))
        self.assertIn("Their product", self.refused(2, "bench", "life", "--size", 16, "--ranks", 2, "--ranks-along", "2,2"))
        self.assertIn("queue of the type mpi", self.refused(2, "bench", "life", "--size", 16, "--queue", "mpi", *BRIEF))
        for says, words in (("--gpus or --oversubscribe with --queue auto", ("pingpong", "--ranks", 2, "--queue", "auto", "--gpus", 1)),
                            ("--queue peer without GPUs", ("pingpong", "--ranks", 2, "--queue", "peer")),
                            ("2 ranks on 1 GPU ", ("pingpong", "--queue", "peer", "--gpus", 1)),
                            ("between processes", ("pingpong", "--queue", "peer", "--gpus", 2, "--transport", "mpi")),
                            ("--run without --queue peer", ("pingpong", "--queue", "threads", "--run", "graph")),
                            ("--queue peer without GPUs", ("life", "--size", 16, "--queue", "peer")),
                            ("--queue nccl of bench pingpong", ("pingpong", "--queue", "nccl", "--gpus", 2)),
                            ("--queue nccl of bench halo", ("halo", "--queue", "nccl", "--gpus", 2, "--generate", "poisson2d", "--size", 20)),
                            ("--oversubscribe with --queue nccl", ("life", "--size", 16, "--queue", "nccl", "--gpus", 1, "--oversubscribe")),
                            ("--queue nccl without GPUs", ("life", "--size", 16, "--queue", "nccl")),
                            ("--sums 2 with --queue", ("halo", "--queue", "auto", "--ranks", 2, "--sums", 2, "--generate", "poisson2d", "--size", 20)),
                            ("--memory gpu with --queue", ("pingpong", "--queue", "peer", "--gpus", 2, "--memory", "gpu")),
                            ("--memory gpu with --queue", ("pingpong", "--queue", "threads", "--ranks", 2, "--memory", "gpu")),
                            ("--queue peer of bench halo", ("halo", "--queue", "peer", "--gpus", 2, "--generate", "poisson2d", "--size", 20))):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, "bench", *words, *BRIEF))


if __name__ == "__main__":
    unittest.main()

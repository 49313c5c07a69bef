"""`hostless bench pingpong --queue`, `halo --queue` and `life`: what they write and print, and what they refuse."""

import json
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

    def test_halo(self):
        report = self.json_of("bench", "halo", "--queue", "auto", "--ranks", 3, "--generate", "poisson2d", "--size", 20, "--fields", 2, *BRIEF)
        self.head(report, "halo", "threads", 3)
        for row in (report["standard"], report["host"]):
            self.times_are_sane(row)

    def test_life(self):
        report = self.json_of("bench", "life", "--size", "32,48", "--ranks", 4, "--transport", "threads", *BRIEF)
        self.head(report, "life", "threads", 4)
        self.rows_are_sane(report["life"], ["standard", "ready", "host"])
        for row in report["life"]:
            self.assertEqual((row["alive"], row["gliders"]), (5 * 4 * 6, "conserved"))
        self.assertEqual((report["size"], report["ranks_along"]), ([32, 48], [2, 2]))
        # Each of 2 x 2 ranks has no neighbour but the others: edges of 16 and 24 cells twice, four corners.
        self.assertEqual((report["messages"], report["bytes"]), (8, 2 * (16 + 24) + 4))

    def test_the_table_says_the_same(self):
        text = self.run_it("bench", "life", "--size", 16, "--ranks", 2, "--ranks-along", "2,1", *BRIEF, "--json", "r.json").stdout.splitlines()
        report = json.loads(self.content("r.json"))
        self.assertIn("2 x 1 ranks", text[0])
        for line, row in zip(text[2:5], report["life"]):
            self.assertIn(row["by"], line)
            self.assertIn(f"{row['median_us']:.3f}", line)
        self.assertEqual(text[5], "every glider is where it must be")

    def test_refusals(self):
        self.assertIn("multiple of 8", self.refused(2, "bench", "life", "--size", 20))
        self.assertIn("Their product", self.refused(2, "bench", "life", "--size", 16, "--ranks", 2, "--ranks-along", "2,2"))
        self.assertIn("queue of the type mpi", self.refused(2, "bench", "life", "--size", 16, "--queue", "mpi", *BRIEF))
        self.assertIn("queue of the type peer", self.refused(2, "bench", "pingpong", "--ranks", 2, "--queue", "peer", *BRIEF))
        self.assertIn("--gpus excludes --queue", self.refused(2, "bench", "pingpong", "--ranks", 2, "--queue", "auto", "--gpus", 1))


if __name__ == "__main__":
    unittest.main()

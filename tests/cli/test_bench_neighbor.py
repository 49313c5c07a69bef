"""`hostless bench neighbor`: what crosses between nodes against counts by hand, MPI's own beside it, and what is refused."""

import unittest

from hostless_command import Command, launcher_of

BRIEF = ("--sizes", "24,100", "--steps", 2, "--repeat", 3, "--warm-up", 1)
ROUTES = ["direct", "two_step", "three_step", "split", "leader"]


class Neighbor(Command):
    def rows_of(self, *words, **how):
        report = self.json_of("bench", "neighbor", *words, *BRIEF, **how)
        for row in report["neighbor"]:
            self.assertGreater(row["best_us"], 0)
            self.assertLessEqual(row["best_us"], row["median_us"])
            self.assertGreater(row["set_up_us"], 0)
            self.assertEqual(row["calls"], 2 * 3 + 1 + 2)
            self.assertEqual(row["bytes_between"], sum(row["bytes_out"]))
            self.assertEqual(row["bytes_between"], sum(row["bytes_in"]))
        return report, {(row["way"], row["bytes"]): row for row in report["neighbor"]}

    def crosses(self, rows, way, blocks):
        for size in (24, 100):
            self.assertEqual(rows[way, size]["bytes_out"], [blocks * size, blocks * size])

    def test_a_ring_and_everybody_by_hand(self):
        two_nodes = ("--ranks", 4, "--ranks-per-node", 2, "--pattern", "moore", "--dimension", 1)
        report, ring = self.rows_of(*two_nodes, "--radius", 1)
        self.assertEqual((report["ranks"], report["edges"]), (4, 8))
        self.assertEqual(list(ring), [(way, size) for size in (24, 100) for way in ["auto", *ROUTES]])
        for way in ["auto", *ROUTES]:  # 1 and 2, 3 and 0
            self.crosses(ring, way, 2)
        self.assertEqual(ring["auto", 24]["route"], "direct")  # no route has fewer bytes, and a stage more is for nothing
        self.assertNotIn("library_over_it", ring["auto", 24])
        self.assertEqual([ring[way, 24]["messages_between"] for way in ("direct", "three_step")], [4, 2])
        report, everybody = self.rows_of(*two_nodes, "--radius", 2)
        self.assertEqual(report["edges"], 12)
        self.crosses(everybody, "direct", 4)
        for way in ("two_step", "three_step", "leader"):  # a block crosses once
            self.crosses(everybody, way, 2)

    def test_random_graphs(self):
        for density, edges in (("0", 0), ("1", 20)):
            report, _ = self.rows_of("--pattern", "rsg", "--density", density, "--ranks", 5, "--transport", "threads", "--ways", "auto")
            self.assertEqual(report["edges"], edges)
        self.run_it("bench", "neighbour", *BRIEF, "--ranks", 2, "--ways", "direct")  # the other spelling
        some = [self.rows_of("--density", "0.5", "--seed", seed, "--ranks", 5, "--ways", "direct")[0]["edges"] for seed in (1, 1, 2, 3, 4)]
        self.assertEqual(some[0], some[1])
        self.assertGreater(len(set(some)), 1)

    def library_beside_ours(self, vendor):
        words, why = launcher_of(vendor, 3)
        if words is None:
            self.skipTest(why)
        report, rows = self.rows_of("--density", "1", "--ranks-per-node", 1, "--ways", "library,two_step", launcher=words)
        self.assertEqual((report["transport"], report["edges"]), ("mpi", 6))
        self.assertIsNone(rows["library", 24]["route"])
        self.assertEqual(rows["library", 24]["library_over_it"], {"median": 1, "low": None, "high": None})  # of 3 repeats
        self.assertGreater(rows["two_step", 24]["library_over_it"]["median"], 0)
        for way in ("library", "two_step"):
            self.assertEqual((rows[way, 100]["bytes_out"], rows[way, 100]["messages_between"]), ([200, 200, 200], 6))

    def test_open_mpis_own_beside_ours(self):
        self.library_beside_ours("openmpi")

    def test_mpichs_own_beside_ours(self):
        self.library_beside_ours("mpich")

    def test_what_is_refused(self):
        for words in (("--ways", "library"), ("--ways", "shortest"), ("--pattern", "moore", "--density", "0.5"), ("--radius", "2"), ("--density", "1.5"), ("--density", "nan"), ("--seed", "-1"),
                      ("--pattern", "moore", "--dimension", "5")):
            self.run_it("bench", "neighbor", "--ranks", 2, *words, code=2)
        self.assertIn("one rank (it has nobody to send to)", self.run_it("bench", "neighbor", "--ranks", 1, code=2).stderr)
        said = self.run_it("bench", "neighbor", "--ranks", 2, "--sizes", 8, "--steps", 1, "--json", "written.json").stdout
        self.assertIn("three_step", said)
        self.assertIn(b'"neighbor"', self.content("written.json"))


if __name__ == "__main__":
    unittest.main()

"""`hostless predict`: what an iteration costs on a machine, by the number of nodes."""

import json
import unittest
from pathlib import Path

from hostless_command import Command

POISSON = ("--generate", "poisson7", "--size", 512, "--machine", "frontier")


class Predict(Command):
    def points(self, *words):
        return self.json_of("predict", *words)["points"]

    def test_strong_scaling_of_a_lattice(self):
        points = self.points(*POISSON, "--nodes", "1,64,1024", "--gpus-per-node", 8, "--method", "cg")
        self.assertEqual([p["nodes"] for p in points], [1, 64, 1024])
        self.assertEqual(points[-1]["ranks"], 8192)
        for p in points:
            self.assertAlmostEqual(sum(p["terms"].values()) / p["seconds"], 1)
            self.assertLess(p["least_s"], p["seconds"])
            self.assertLess(p["seconds"], p["most_s"])
            self.assertEqual(p["rows_of_a_rank"], 512 ** 3 / p["ranks"])
        first, last = points[0], points[-1]
        self.assertEqual(first["efficiency"], 1)
        self.assertAlmostEqual(last["efficiency"], first["seconds"] / last["seconds"] / 1024)
        self.assertAlmostEqual(last["terms"]["vectors_s"] / (96 * 512 ** 3 / 8192 / 1.315e12), 1)

    def test_weak_scaling_keeps_the_rows_of_a_rank(self):
        points = self.points("--generate", "poisson1d", "--size", 1 << 20, "--machine", "frontier", "--nodes", "2,4,16", "--scaling", "weak")
        self.assertEqual([p["rows"] for p in points], [1 << 20, 1 << 21, 1 << 23])
        self.assertEqual(len({p["rows_of_a_rank"] for p in points}), 1)
        self.assertLess(points[2]["efficiency"], points[1]["efficiency"])
        for wrong, says in (("2,3", "no multiple"), ("2,6", "power of two")):
            refused = self.run_it("predict", "--generate", "poisson1d", "--size", 4096, "--machine", "frontier", "--scaling", "weak", "--nodes", wrong, code=2)
            self.assertIn(says, refused.stderr)
        large = ("predict", "--generate", "poisson1d", "--size", 2**54 + 1, "--machine", "frontier", "--scaling", "weak", "--gpus-per-node", 1, "--nodes", "1,1024")
        self.run_it(*large, code=2)

    def test_a_file_is_planned(self):
        self.run_it("generate", "poisson2d", "--size", 40, "-o", "A.mtx")
        text = self.run_it("predict", "A.mtx", "--machine", "lumi", "--messages-of", "frontier", "--nodes", "1,2", "--gpus-per-node", 2, "--method", "pipelined-cg")
        self.assertIn("pipelined-cg", text.stdout)
        self.assertIn("messages, injection and copies are those of frontier", text.stdout)
        self.assertIn("priced as those between nodes", text.stdout)
        point = self.points("A.mtx", "--machine", "frontier", "--nodes", "2", "--gpus-per-node", 1)[0]
        self.assertEqual([p["nodes"] for p in self.points(*POISSON, "--nodes", "1..4")], [1, 2, 4])
        self.assertEqual((point["rows"], point["entries"]), (1600, 5 * 1600 - 4 * 40))
        refused = self.run_it("predict", "A.mtx", "--machine", "frontier", "--nodes", "1,2", "--gpus-per-node", 1, "--scaling", "weak", code=2)
        self.assertIn("does not grow", refused.stderr)

    def test_a_chain_of_a_file_is_the_chain_that_is_counted(self):
        self.run_it("generate", "poisson1d", "--size", 4096, "-o", "A.mtx")
        words = ("--machine", "frontier", "--nodes", "1,2", "--gpus-per-node", 4)
        for read, counted in zip(self.points("A.mtx", *words), self.points("--generate", "poisson1d", "--size", 4096, *words)):
            for key in ("ranks", "rows", "entries", "rows_of_a_rank", "exchange_s", "exchange"):
                self.assertEqual(read[key], counted[key], key)
            self.assertAlmostEqual(read["seconds"] / counted["seconds"], 1, delta=1e-9)  # the most of any rank, not the mean

    def test_rows_that_wait_are_those_of_the_matrix(self):
        # Four boxes of 8 x 8 cells: 15 of each have a neighbour elsewhere.
        words = ("--machine", "frontier", "--nodes", "1", "--gpus-per-node", 4)
        point = self.points("--generate", "poisson2d", "--size", 16, *words)[0]
        hidden = point["terms"]["product_s"] * (1 - 15 / 64)
        self.assertAlmostEqual((point["exchange_s"] - point["terms"]["halo_s"]) / hidden, 1)

    def test_matrices_of_blocks_and_many_ranks(self):
        # Rows are rows also where they come in blocks of 3.
        self.run_it("generate", "elasticity-hex8", "--size", "3", "-o", "B.mtx")
        rows = self.json_of("info", "B.mtx")["rows"]
        points = self.points("B.mtx", "--machine", "frontier", "--nodes", "1", "--gpus-per-node", 2)
        self.assertTrue(rows / 2 <= points[0]["rows_of_a_rank"] <= 0.6 * rows)
        self.run_it("generate", "poisson2d", "--size", 100, "-o", "A.mtx")
        last = self.points("A.mtx", "--machine", "frontier", "--nodes", "256,1024", "--gpus-per-node", 8)[-1]
        self.assertEqual(last["ranks"], 8192)
        self.assertLessEqual(last["rows_of_a_rank"], 3)
        self.run_it("generate", "poisson2d", "--size", 4, "-o", "C.mtx")
        few = self.run_it("predict", "C.mtx", "--machine", "frontier", "--nodes", "4", "--gpus-per-node", 8, code=2)
        self.assertIn("32 ranks for 16 rows", few.stderr)

    def test_what_is_missing_is_named(self):
        words = ("predict", "--generate", "poisson1d", "--size", 100000, "--nodes", "2")
        self.assertIn("no data of on_socket messages", self.run_it(*words, "--machine", "lumi", code=3).stderr)
        self.assertIn("no data of the bandwidth of gpu memory", self.run_it(*words, "--machine", "lassen", code=3).stderr)
        self.assertIn("no data of sums of host memory", self.run_it(*words, "--machine", "frontier", "--sums", "host", code=3).stderr)
        frontier = (*words[:-2], "--machine", "frontier")
        self.assertIn("tuolumne: it has no data of messages", self.run_it(*words, "--machine", "lumi", "--messages-of", "tuolumne", code=2).stderr)
        self.assertIn("GB/s, between", self.run_it("machine", "show", "lumi").stdout)
        self.assertIn("Drop it", self.run_it(*frontier, "--nodes", "1", "--messages-of", "lassen", code=2).stderr)
        self.assertIn("has 8", self.run_it(*frontier, "--nodes", "1", "--gpus-per-node", 9, code=2).stderr)
        self.assertIn(".svg", self.run_it(*frontier, "--nodes", "1", "--output", "a.png", code=2).stderr)
        for wrong in ("4..1", "0", "1..", "a", "1..2..4", "2048"):
            self.run_it(*frontier, "--nodes", wrong, code=2)

    def test_a_picture_has_every_part(self):
        python = self.folder / "python"
        python.write_text('#!/bin/sh\ncp "$3" "$4"\n')  # the picture is what it is drawn from
        python.chmod(0o755)
        machine = json.loads((Path(__file__).parents[2] / "machines" / "frontier.json").read_text())
        machine["triggers"] = {"kernel_launch_s": 0.01, "source": next(iter(machine["sources"]))}  # so slow that work hides nothing
        (self.folder / "slow.json").write_text(json.dumps(machine))
        words = ("--generate", "poisson7", "--size", 512, "--machine", "slow.json", "--nodes", "2,4", "--output", "a.svg")
        points = self.json_of("predict", *words, environment={"HOSTLESS_PYTHON": str(python)})["points"]
        lines = {line["label"]: line["y"] for line in json.loads((self.folder / "a.svg").read_text())["fields"][0]["lines"]}
        for k, point in enumerate(points):
            self.assertAlmostEqual(lines["launches"][k] / point["terms"]["launches_s"], 1)
            parts = [lines[name][k] if name in lines else 0 for name in ("product", "vectors", "halo", "sums", "launches")]
            self.assertAlmostEqual(sum(parts) / lines["iteration"][k], 1)

    def test_a_picture_needs_python(self):
        words = ("predict", *POISSON, "--nodes", "1", "--output", "a.svg")
        self.assertIn("no-python: ", self.run_it(*words, code=4, environment={"HOSTLESS_PYTHON": "no-python"}).stderr)
        self.assertEqual(list(self.folder.glob("a.svg*")), [])
        self.assertEqual(self.run_it(*words, code=4, environment={"HOSTLESS_PYTHON": "no-python"}).stdout, "")
        self.assertIn("missing/x", self.run_it("predict", *POISSON, "--nodes", "1", "--json", "missing/x", code=4).stderr)


if __name__ == "__main__":
    unittest.main()

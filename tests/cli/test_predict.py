"""`hostless predict`: what an iteration costs on a machine, by the number of nodes."""

import json
import unittest
from pathlib import Path

from hostless_command import Command, nearly_symmetric

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
        self.assertAlmostEqual(last["terms"]["vectors_s"] / (96 * 512 ** 3 / 8192 / 1.6e12), 1)

    def test_what_was_asked_stands_in_the_json(self):
        report = self.json_of("predict", *POISSON, "--nodes", "1", "--gpus-per-node", 4)
        self.assertEqual([report[key] for key in ("memory", "sums", "ranks_per_node", "gpus_per_node")], ["gpu", "gpu", 4, 4])

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

    def test_what_is_counted_of_a_lattice_is_what_its_matrix_has(self):
        words = ("--machine", "frontier", "--nodes", "1", "--gpus-per-node", 1)
        for kind, size in (("poisson27", "5,4,6"), ("poisson7", "5,4,6"), ("monodomain", "5,4,6"), ("monodomain", "7,3,2")):
            self.run_it("generate", kind, "--size", size, "-o", "A.mtx")
            read, counted = (self.points(*matrix, *words)[0] for matrix in (("A.mtx",), ("--generate", kind, "--size", size)))
            self.assertEqual((read["rows"], read["entries"]), (counted["rows"], counted["entries"]), kind)
        heart = self.points("--preset", "heart15", "--machine", "lumi", "--messages-of", "frontier", "--nodes", "8")[0]
        self.assertEqual(heart["rows"], 956 ** 3)
        self.assertTrue(14.9 < heart["entries"] / heart["rows"] < 15)

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

    def test_bytes_on_processors_are_those_of_a_solve(self):
        machine = json.loads((Path(__file__).parents[2] / "machines" / "lassen.json").read_text())
        rate = dict.fromkeys(("bytes_per_s", "least_bytes_per_s", "most_bytes_per_s"), 1e11)
        machine["memory"] = [{"memory": "host", **rate, "source": next(iter(machine["sources"]))}]
        self.write("here.json", json.dumps(machine))
        self.run_it("generate", "poisson7", "--size", 24, "-o", "A.mtx")
        # Solves share rows out row after row here, boxes have as many; A.mtx on 6 ranks is dealt by METIS.
        for matrix, ranks in ((("--generate", "poisson7", "--size", 48), 1), (("--generate", "poisson7", "--size", "16,16,96"), 2),
                              (("--generate", "poisson27", "--size", 20), 1), (("A.mtx",), 1), (("A.mtx",), 2), (("A.mtx",), 6),
                              (("--generate", "monodomain", "--size", 24), 1), (("--generate", "poisson2d", "--size", 150), 1),
                              (("--generate", "elasticity-hex8", "--size", 12), 1), (("--generate", "circuit", "--size", 60), 1)):
            rows = self.json_of("bench", "solve", *matrix, "--ranks", ranks, "--methods", "cg,pipelined-cg,bicgstab", "--runs", "host", "--iterations", 3, "--repeat", 1)["solves"]
            self.assertEqual(len(rows), 3)
            for row in rows:
                words = ("--memory", "host", "--ranks-per-node", ranks, "--nodes", 1, "--method", row["method"])
                (point,) = self.points(*matrix, "--machine", "here.json", *words)
                self.assertAlmostEqual(point["bytes_of_a_rank"] * ranks / row["bytes_per_iteration"], 1, delta=0.03, msg=(matrix, ranks, row["method"]))
                moved = (point["terms"]["product_s"] + point["terms"]["vectors_s"]) * 1e11
                self.assertAlmostEqual(moved / (point["bytes_of_a_rank"] * ranks), 1)

    def test_what_does_not_fit_has_no_price(self):
        # 12 bytes an entry, 44 a row; a die of Frontier has 64 GiB.
        lattice = ("--generate", "poisson7", "--size", 2048, "--machine", "frontier", "--gpus-per-node", 8)
        points = self.points(*lattice, "--nodes", "1,2,4")
        kept = [12 * (7 * 2**33 - 6 * 2048**2) / p["ranks"] + 44 * p["rows_of_a_rank"] for p in points]
        self.assertEqual([k > 64 * 2**30 for k in kept], [True, False, False])
        self.assertEqual(["refused" in p for p in points], [True, False, False])
        self.assertEqual(points[0]["refused"], "matrix and vectors of a GPU take 128.0 GiB or more, and it has 64.0")
        self.assertNotIn("seconds", points[0])
        self.assertEqual(points[1]["efficiency"], 1)  # the first that can be
        self.assertIn("      1      8 refused: matrix", self.run_it("predict", *lattice, "--nodes", "1,2").stdout)
        self.assertIn("Use more nodes", self.run_it("predict", *lattice, "--nodes", "1", code=2).stderr)

    def test_more_ranks_than_it_has_boxes_have_no_price(self):
        lattice = ("--generate", "poisson7", "--size", 6, "--machine", "frontier", "--gpus-per-node", 8)
        points = self.points(*lattice, "--nodes", "1,2,64")
        self.assertEqual(["refused" in p for p in points], [False, False, True])
        self.assertIn("no 512 boxes have a cell each", points[2]["refused"])
        alone = self.run_it("predict", *lattice, "--nodes", "64", code=2).stderr
        self.assertIn("Use fewer ranks.", alone)
        self.assertNotIn("more nodes", alone)

    def test_what_the_method_refuses_has_no_price(self):
        Path(self.folder, "A.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2\n2 2 2\n1 2 -1\n")
        words = ("A.mtx", "--machine", "frontier", "--nodes", "1,2", "--gpus-per-node", 1)
        self.assertIn("use a method for others", self.refused(3, "predict", *words))
        points = self.points(*words, "--method", "bicgstab")  # which is priced
        self.assertEqual([(p["rows"], p["entries"]) for p in points], [(2, 3), (2, 3)])
        self.assertIn("no symmetry is needed", self.refused(2, "predict", *words, "--method", "bicgstab", "--symmetry-tolerance", "1e-9"))

    def test_a_matrix_that_is_symmetric_up_to_rounding(self):
        self.write("S.mtx", nearly_symmetric(1e-6))
        words = ("--machine", "frontier", "--nodes", "1", "--gpus-per-node", 1)
        self.assertIn("allow it (--symmetry-tolerance, 1e-09 now)", self.refused(3, "predict", "S.mtx", *words))
        self.assertEqual(self.points("S.mtx", *words, "--symmetry-tolerance", "3e-7")[0]["rows"], 3)
        self.assertIn("Drop it", self.refused(2, "predict", *POISSON, "--nodes", "1", "--symmetry-tolerance", "1e-9"))

    def test_it_is_said_how_rows_are_dealt(self):
        words = ("--machine", "frontier", "--nodes", "1", "--gpus-per-node", 4)
        self.run_it("generate", "poisson2d", "--size", 40, "-o", "A.mtx")
        self.run_it("generate", "poisson1d", "--size", 4000, "-o", "B.mtx")
        for matrix, dealt in ((("A.mtx",), "metis"), (("B.mtx",), "contiguous"), (("--generate", "poisson2d", "--size", 40), "boxes")):
            self.assertEqual(self.points(*matrix, *words)[0]["dealt"], dealt)
            self.assertIn(f"note: rows are dealt {'in ' if dealt == 'boxes' else ''}{dealt}", self.run_it("predict", *matrix, *words).stdout)

    def test_what_is_missing_is_named(self):
        words = ("predict", "--generate", "poisson1d", "--size", 100000, "--nodes", "2")
        hint = "'hostless predict' takes the messages of another one with --messages-of NAME"
        for machine, of in (("lumi", "no data of on_socket messages"), ("marenostrum5", "marenostrum5: no data of sums of gpu memory, nor of")):
            told = self.refused(3, *words, "--machine", machine)
            self.assertIn(of, told)
            self.assertIn(hint, told)
        self.assertIn(hint, self.refused(3, "predict", "collective", "--pattern", "allreduce", "--machine", "marenostrum5", "--nodes", "2"))
        self.assertIn("no data of the bandwidth of gpu memory", self.run_it(*words, "--machine", "lassen", code=3).stderr)
        self.assertIn("no data of sums of host memory", self.run_it(*words, "--machine", "frontier", "--sums", "host", code=3).stderr)
        frontier = (*words[:-2], "--machine", "frontier")
        self.assertIn("tuolumne: it has no data of messages", self.run_it(*words, "--machine", "lumi", "--messages-of", "tuolumne", code=2).stderr)
        self.assertIn("GB/s, between", self.run_it("machine", "show", "lumi").stdout)
        self.assertIn("Drop it", self.run_it(*frontier, "--nodes", "1", "--messages-of", "lassen", code=2).stderr)
        self.assertIn("has 8", self.run_it(*frontier, "--nodes", "1", "--gpus-per-node", 9, code=2).stderr)
        self.assertIn(".svg", self.run_it(*frontier, "--nodes", "1", "--output", "a.png", code=2).stderr)
        for option in ("--seed", "--contrast"):
            self.assertIn(f"{option} of poisson1d is refused (entries are counted", self.run_it(*frontier, "--nodes", "1", option, 5, code=2).stderr)
        heart = ("predict", "--preset", "heart15", "--machine", "frontier", "--nodes", "1")
        self.assertIn("--time-step of monodomain", self.run_it(*heart, "--time-step", 0.1, code=2).stderr)
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
        done = self.run_it(*words, "--json", "j.json", code=4, environment={"HOSTLESS_PYTHON": "no-python"})
        self.assertTrue(done.stdout.startswith("frontier: cg on poisson7"), done.stdout)  # which costs neither table nor JSON
        self.assertEqual(len(json.loads(Path(self.folder, "j.json").read_text())["points"]), 1)
        self.assertIn("missing/x", self.run_it("predict", *POISSON, "--nodes", "1", "--json", "missing/x", code=4).stderr)

    def test_options_of_solves_are_not_those_of_subcommands(self):
        refused = self.run_it("predict", "--machine", "frontier", "stencil", "--problem", "life", "--size", "64,64", "--machine", "frontier", "--nodes", "1", code=2)
        self.assertIn("--machine before stencil", refused.stderr)
        self.assertIn("--nodes is missing", self.run_it("predict", *POISSON, code=2).stderr)
        self.assertIn("--machine is missing", self.run_it("predict", "--generate", "poisson1d", "--size", 100, "--nodes", 1, code=2).stderr)


class PredictStencil(Command):
    WORDS = ("predict", "stencil", "--machine", "frontier", "--problem")

    def points(self, *words):
        return self.json_of(*self.WORDS, *words)["points"]

    def test_strong_scaling_by_hand(self):
        points = self.points("heat", "--size", "16384,16384", "--nodes", "1,4,128", "--ranks-per-node", 8)
        for p in points:
            self.assertAlmostEqual(sum(p["terms"].values()) / p["seconds"], 1)
            self.assertLessEqual(p["least_s"], p["seconds"])
            self.assertGreaterEqual(p["most_s"], p["seconds"])
            self.assertAlmostEqual(p["terms"]["cells_s"] / (16 * 16384**2 / p["ranks"] / 1.6e12), 1)
        self.assertAlmostEqual(points[1]["efficiency"], points[0]["seconds"] / points[1]["seconds"] / 4)
        self.assertLess(points[2]["efficiency"], points[1]["efficiency"])
        self.assertGreater(points[2]["terms"]["halo_s"], 0)  # 1 us of cells hides no message
        halved = self.points("heat", "--size", "16384,16384", "--nodes", "1", "--type", "fp32")[0]
        self.assertAlmostEqual(halved["terms"]["cells_s"] / points[0]["terms"]["cells_s"], 0.5)

    def test_weak_scaling_keeps_the_cells_of_a_rank(self):
        points = self.points("life", "--size", "8192,4096", "--nodes", "1..16", "--scaling", "weak")
        self.assertEqual([p["nodes"] for p in points], [1, 2, 4, 8, 16])
        self.assertEqual(len({p["terms"]["cells_s"] for p in points}), 1)
        self.assertIn("power of two", self.run_it(*self.WORDS, "life", "--size", "64,64", "--nodes", "1,3", "--scaling", "weak", code=2).stderr)
        large = self.run_it(*self.WORDS, "life", "--size", f"{2**26},{2**26}", "--nodes", "1..16", "--scaling", "weak", code=2).stderr
        self.assertIn("more than 2^53 cells (no grid has more). Give fewer nodes", large)

    def test_deep_halos_pay_where_messages_are_slow(self):
        words = ("jacobi2d", "--size", "2048,2048", "--nodes", "16")
        each, deep = (self.points(*words, "--depth", depth)[0] for depth in (1, 8))
        self.assertEqual(each["terms"]["repeated_s"], 0)
        self.assertGreater(deep["terms"]["repeated_s"], 0)
        self.assertLess(deep["seconds"], each["seconds"] / 2)
        self.assertIn("thinnest", self.run_it(*self.WORDS, "jacobi2d", "--size", "64,64", "--nodes", "16", "--depth", 9, code=2).stderr)

    def test_boxes_that_are_too_thin_have_no_price(self):
        words = ("jacobi2d", "--size", "64,64", "--depth", 9)
        points = self.points(*words, "--nodes", "1,16,2")
        self.assertEqual(["refused" in p for p in points], [False, True, False])
        self.assertIn("thinnest", points[1]["refused"])
        self.assertEqual((points[1]["ranks"], "seconds" in points[1]), (128, False))
        self.assertAlmostEqual(points[2]["efficiency"], points[0]["seconds"] / points[2]["seconds"] / 2)
        few = self.points("jacobi2d", "--size", "8,8", "--nodes", "64,1")
        self.assertEqual(("refused" in few[0], few[1]["efficiency"]), (True, 1))  # against the first that can be
        said = self.run_it(*self.WORDS, *words, "--nodes", "1,16").stdout
        self.assertIn("     16    128 refused: a halo of 9 cells", said)
        self.assertIn("--nodes 16: a halo of 9 cells", self.refused(2, *self.WORDS, *words, "--nodes", "16"))

    def test_a_table_for_people_and_what_is_refused(self):
        text = self.run_it(*self.WORDS, "life", "--size", "4096,4096", "--nodes", "1,2", "--boundary", "periodic", "--memory", "gpu").stdout
        self.assertIn("us of a step", text)
        self.assertIn("no data of kernel launches", text)
        self.assertIn("--size is missing", self.run_it(*self.WORDS, "life", "--nodes", "1", code=2).stderr)
        self.assertIn("has 8", self.run_it(*self.WORDS, "life", "--size", "64,64", "--nodes", "1", "--ranks-per-node", 9, code=2).stderr)
        self.assertIn("bandwidth of host memory", self.run_it(*self.WORDS, "life", "--size", "64,64", "--nodes", "1", "--memory", "host", code=3).stderr)
        lumi = ("predict", "stencil", "--machine", "lumi", "--problem", "life", "--size", "512,512", "--nodes", "2")
        self.assertIn("no data of on_socket messages", self.run_it(*lumi, code=3).stderr)
        self.assertIn("are those of frontier", self.run_it(*lumi, "--messages-of", "frontier").stdout)

    def test_a_picture_has_every_part(self):
        python = self.folder / "python"
        python.write_text('#!/bin/sh\ncp "$3" "$4"\n')  # the picture is what it is drawn from
        python.chmod(0o755)
        words = ("heat", "--size", "1024,1024", "--nodes", "2,4", "--output", "a.svg")
        points = self.json_of(*self.WORDS, *words, environment={"HOSTLESS_PYTHON": str(python)})["points"]
        lines = {line["label"]: line["y"] for line in json.loads((self.folder / "a.svg").read_text())["fields"][0]["lines"]}
        for k, point in enumerate(points):
            self.assertAlmostEqual(lines["step"][k] / point["seconds"], 1)
            self.assertAlmostEqual(lines["halo"][k] / point["terms"]["halo_s"], 1)
            self.assertAlmostEqual(lines["most"][k] / point["most_s"], 1)


class PredictCollective(Command):
    WORDS = ("predict", "collective", "--machine", "lassen", "--pattern")

    def test_a_neighbourhood_has_the_price_of_its_plan(self):
        report = self.json_of(*self.WORDS, "moore", "--dimension", 1, "--radius", 1, "--bytes", 4096, "--nodes", "1,2,8", "--ranks-per-node", 4)
        for point in report["points"]:
            ways = [way for way in report["ways"] if way["nodes"] == point["nodes"]]
            self.assertEqual({way["route"] for way in ways}, {"direct", "two_step", "three_step", "split", "leader"})
            self.assertTrue(1 - 1e-9 < point["seconds"] / min(way["seconds"] for way in ways) <= 1.02)
            self.assertAlmostEqual(sum(point["terms"].values()) / point["seconds"], 1)
            self.assertAlmostEqual(point["most_s"] / point["seconds"], 1.26)
        self.assertEqual(report["points"][0]["terms"]["between_s"], 0)
        # Two neighbours on the socket: a message, and one behind it.
        one, two = (self.json_of("machine", "price", "--machine", "lassen", "--locality", "on-socket", "--memory", "host", "--bytes", 4096, "--messages", n)["seconds"] for n in (1, 2))
        direct = next(way["seconds"] for way in report["ways"] if way["nodes"] == 1 and way["route"] == "direct")
        self.assertAlmostEqual(direct / two, 1)
        self.assertLess(one, two)

    def test_blocks_stay_or_shrink(self):
        words = ("rsg", "--density", 0.5, "--seed", 3, "--bytes", 65536, "--nodes", "1,2", "--ranks-per-node", 4, "--memory", "gpu")
        weak, strong = (self.json_of(*self.WORDS, *words, "--scaling", scaling) for scaling in ("weak", "strong"))
        self.assertEqual((weak["density"], weak["seed"]), (0.5, 3))
        weak, strong = weak["points"], strong["points"]
        self.assertEqual(weak[0], strong[0])
        self.assertLess(strong[1]["seconds"], weak[1]["seconds"])

    def test_an_all_reduce_is_its_doublings(self):
        points = self.json_of("predict", "collective", "--machine", "frontier", "--pattern", "allreduce", "--nodes", "1..128", "--memory", "gpu")["points"]
        self.assertAlmostEqual(points[0]["seconds"] / (3 * 7.7e-6), 1)
        self.assertAlmostEqual(points[-1]["seconds"] / (10 * 7.7e-6), 1)
        self.assertIn("no data of sums of that size", self.run_it(*self.WORDS, "allreduce", "--bytes", 1024, "--nodes", "2").stdout)

    def test_bytes_are_whole_numbers_in_the_help_too(self):
        for words in (self.WORDS[:2], ("machine", "price")):
            self.assertRegex(self.run_it(*words, "--help").stdout, "--bytes INT")
            self.assertRegex(self.run_it(*words, "--bytes", 0.5, code=2).stderr, "'0.5' .a whole number")

    def test_one_rank_has_no_price(self):
        points = self.json_of(*self.WORDS, "allreduce", "--nodes", "1,2", "--ranks-per-node", 1)["points"]
        self.assertEqual([p.get("refused", "")[:8] for p in points], ["one rank", ""])
        self.assertEqual(points[1]["efficiency"], 1)

    def test_what_does_not_fit_is_refused(self):
        for words, says in ((("allreduce", "--nodes", 2, "--scaling", "strong"), "Drop it"), (("moore", "--nodes", 2, "--density", 0.1), "--density with --pattern moore"),
                            (("rsg", "--nodes", 2, "--radius", 2), "--radius with"), (("rsg", "--nodes", 1, "--ranks-per-node", 1), "one rank"),
                            (("rsg", "--nodes", 1024), "at most 8192"), (("moore", "--nodes", 1, "--ranks-per-node", 4096), "Give fewer"), (("rsg",), "--nodes is missing"), (("rsg", "--nodes", 2, "--output", "a.png"), ".svg")):
            self.assertIn(says, self.run_it(*self.WORDS, *words, code=2).stderr)
        for words in (("--density", "nan"), ("--density", 2), ("--seed", -1), ("--seed", 2**63), ("--bytes", "1e308"), ("--bytes", 10**15 + 1),
                      ("--bytes", 0.001), ("--bytes", 0)):
            self.run_it(*self.WORDS, "rsg", "--nodes", 2, *words, code=2)
        self.assertIn("Drop it", self.run_it(*self.WORDS, "rsg", "--nodes", 2, "--messages-of", "frontier", code=2).stderr)


if __name__ == "__main__":
    unittest.main()

"""`hostless bench neighbor`: what crosses between nodes against counts by hand, MPI's own beside it, and what is refused."""

import os
import unittest

from hostless_command import Command, chain, launcher_of, market

FEW = ("--steps", 2, "--repeat", 3, "--warm-up", 1)
BRIEF = ("--sizes", "24,100", *FEW)
# A library in the place of a GPU's (tests/unit/exchange/fake_gpu): two GPUs, for which the host carries.
PLAYED = {"HOSTLESS_PLUGIN_DIR": os.environ.get("HOSTLESS_PLAYED_GPU", "")}
HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1"}
ROUTES = ["direct", "two_step", "three_step", "split", "leader"]


class Neighbors(Command):
    def report_of(self, *words, **how):
        report = self.json_of("bench", "neighbor", *words, **how)
        for row in report["neighbor"]:
            self.assertGreater(row["best_us"], 0)
            self.assertLessEqual(row["best_us"], row["median_us"])
            self.assertGreater(row["set_up_us"], 0)
            self.assertEqual(row["calls"], 2 * 3 + 1 + 2)
            self.assertEqual(row["bytes_between"], sum(row["bytes_out"]))
            self.assertEqual(row["bytes_between"], sum(row["bytes_in"]))
        return report


class Neighbor(Neighbors):
    def rows_of(self, *words, **how):
        report = self.report_of(*words, *BRIEF, **how)
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
        for of_library in ("library_over_it", "library_over_it_with_set_up"):
            self.assertNotIn(of_library, ring["auto", 24])
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
        self.assertEqual(rows["library", 24]["library_over_it_with_set_up"], 1)
        ours, theirs = rows["two_step", 24], rows["library", 24]
        self.assertGreater(ours["library_over_it"]["median"], 0)
        together = [row["set_up_us"] + 2 * row["median_us"] for row in (theirs, ours)]  # 2 calls of a repeat
        self.assertAlmostEqual(ours["library_over_it_with_set_up"], together[0] / together[1])
        for way in ("library", "two_step"):
            self.assertEqual((rows[way, 100]["bytes_out"], rows[way, 100]["messages_between"]), ([200, 200, 200], 6))

        _, rows = self.rows_of("--density", "0", "--ranks-per-node", 1, "--ways", "library", launcher=words)  # nobody sends: null is no buffer to MPICH
        self.assertEqual(rows["library", 100]["bytes_out"], [0, 0, 0])

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


class Products(Neighbors):
    """A product of a sparse matrix and 3 columns (or one), whose rows are gathered as blocks or as they are needed."""

    def rows_of(self, *words, **how):
        report = self.report_of(*words, *FEW, **how)
        return report, {(row["gather"], row["way"]): row for row in report["neighbor"]}

    def test_a_chain_by_hand(self):
        self.write("A.mtx", market(chain(13), 13))
        for pattern, columns in ((("spmm", "--columns", "3"), 3), (("spmv",), 1)):
            report, rows = self.rows_of("A.mtx", "--pattern", *pattern, "--ranks", 3, "--ranks-per-node", 1)
            self.assertEqual([report[key] for key in ("matrix", "rows", "entries", "columns", "edges")], ["A.mtx", 13, 37, columns, 4])
            self.assertEqual(list(rows), [(gather, way) for gather in ("blocks", "rows") for way in ["auto", *ROUTES]])
            row_bytes = 8 * columns
            for (gather, _), row in rows.items():  # of 4, 4 and 5 rows, and the middle one has two neighbours
                out = [4, 8, 5] if gather == "blocks" else [1, 2, 1]
                self.assertEqual(row["bytes"], sum(out) * row_bytes)
                self.assertEqual((row["bytes_out"], row["messages_between"]), ([rows * row_bytes for rows in out], 4))

    def test_entries_on_one_side(self):
        self.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n9 9 4\n1 1 2\n1 9 -1.5\n2 8 0.25\n5 1 3\n")
        report, rows = self.rows_of("A.mtx", "--pattern", "spmm", "--ranks", 3, "--transport", "threads", "--ways", "direct", "--gather", "rows")
        self.assertEqual((report["edges"], list(rows)), (2, [("rows", "direct")]))
        self.assertEqual(rows["rows", "direct"]["bytes"], 3 * 8 * 8)  # 8 columns where nobody says how many

    def test_graphs_by_name(self):
        # Of 4 ranks each has 16 corners of the cube, and two bits of a corner say which: 2 neighbours, a node of each corner.
        for name, rows_of_all, entries, edges, needed, blocks in (("ccc_G_06", 384, 1152, 8, 8 * 16, 8 * 96), ("debr_G_08", 256, 1018, 10, None, 10 * 64)):
            report, rows = self.rows_of(name, "--pattern", "spmm", "--columns", 2, "--ranks", 4, "--ways", "direct,two_step", "--transport", "processes")
            self.assertEqual([report[key] for key in ("rows", "entries", "edges")], [rows_of_all, entries, edges])
            self.assertEqual(rows["blocks", "two_step"]["bytes"], blocks * 16)
            self.assertEqual(rows["rows", "two_step"]["bytes"], needed * 16 if needed else rows["rows", "direct"]["bytes"])
            self.assertLess(rows["rows", "two_step"]["bytes"], blocks * 16)
        report, _ = self.rows_of("crack", "--pattern", "spmv", "--ranks", 2, "--ways", "auto")
        self.assertEqual((report["rows"], report["edges"]), (10240, 2))
        report, _ = self.rows_of("thermomech", "--pattern", "spmv", "--ranks", 2, "--ways", "auto", "--gather", "blocks")
        self.assertEqual((report["rows"], report["edges"]), (204304, 2))

    def library_beside_ours(self, vendor):
        words, why = launcher_of(vendor, 3)
        if words is None:
            self.skipTest(why)
        report, rows = self.rows_of("delaunay_n10", "--pattern", "spmm", "--columns", 2, "--ranks-per-node", 1, "--ways", "library,direct", launcher=words)
        self.assertEqual((report["transport"], report["rows"], list(rows)), ("mpi", 1024, [("blocks", "library"), ("blocks", "direct"), ("rows", "direct")]))
        self.assertEqual(rows["blocks", "library"]["bytes_out"], rows["blocks", "direct"]["bytes_out"])
        self.assertLess(rows["rows", "direct"]["bytes"], rows["blocks", "library"]["bytes"])
        for row in rows.values():
            self.assertGreater(row["library_over_it"]["median"], 0)
            self.assertGreater(row["library_over_it_with_set_up"], 0)
        self.write("diagonal.mtx", market({(i, i): 2.0 for i in range(5)}, 5))  # nobody has a neighbour
        report, rows = self.rows_of("diagonal.mtx", "--pattern", "spmv", "--ways", "library,direct", launcher=words)
        self.assertEqual((report["edges"], [row["bytes"] for row in rows.values()]), (0, [0, 0, 0]))

    def test_open_mpis_own_beside_ours(self):
        self.library_beside_ours("openmpi")

    def test_mpichs_own_beside_ours(self):
        self.library_beside_ours("mpich")

    def test_what_is_refused(self):
        self.write("A.mtx", market(chain(4), 4))
        self.write("long.mtx", "%%MatrixMarket matrix coordinate real general\n4 3 1\n1 1 2\n")
        for words, says in ((("--pattern", "spmm"), "without a matrix"), (("A.mtx",), "the matrix A.mtx with --pattern rsg"), (("A.mtx", "--pattern", "spmm", "--columns", "0"), "--columns"),
                            (("A.mtx", "--pattern", "spmm", "--columns", "many"), "--columns"), (("A.mtx", "--pattern", "spmv", "--columns", "2"), "it is of spmm"),
                            (("A.mtx", "--pattern", "spmm", "--sizes", "8"), "it is of rsg and moore"), (("A.mtx", "--pattern", "spmm", "--density", "0.5"), "it is of rsg"),
                            (("--pattern", "rsg", "--gather", "rows"), "it is of spmm and spmv"), (("A.mtx", "--pattern", "spmm", "--gather", "columns"), "--gather"),
                            (("A.mtx", "--pattern", "spmm", "--ways", "library"), "without MPI"), (("A.mtx", "--pattern", "spmm", "--ways", "library", "--gather", "rows"), "gathers blocks"),
                            (("A.mtx", "--pattern", "spmm", "--json", "A.mtx"), "A.mtx")):
            self.assertIn(says, self.refused(2, "bench", "neighbor", "--ranks", 2, *words, quiet=False))
        self.assertIn("5 ranks for 4 rows", self.refused(2, "bench", "neighbor", "A.mtx", "--pattern", "spmv", "--ranks", 5))
        self.assertIn("B.mtx", self.refused(3, "bench", "neighbor", "B.mtx", "--pattern", "spmv", "--ranks", 2))
        self.assertIn("long.mtx", self.refused(3, "bench", "neighbor", "long.mtx", "--pattern", "spmv", "--ranks", 2))

    def test_the_table(self):
        said = self.run_it("bench", "neighbor", "ccc_G_06", "--pattern", "spmm", "--columns", 4, "--ranks", 2, *FEW).stdout
        self.assertIn("product of ccc_G_06 (384 rows, 1152 entries) with 4 columns", said)
        self.assertIn("rows three_step", said)


class OnGpus(Command):
    """Collectives on buffers of GPUs that are played, and what is absent there."""

    RING = ("--pattern", "moore", "--dimension", 1)
    TRIGGERS = ("host", "stream", "graph", "kernel")

    def cells_of(self, *words, code=0, environment=None, **how):
        report = self.json_of("bench", "neighbor", "--gpus", 2, "--sizes", "8,4096", *FEW, *words, code=code, environment={**PLAYED, **(environment or {})}, **how)
        for row in report["neighbor"]:
            if row["status"] == "measured":
                self.assertTrue(0 < row["best_us"] <= row["median_us"] <= row["worst_us"], row)
                self.assertTrue(0 < row["steps"] <= 3 and row["set_up_us"] > 0, row)
            else:
                self.assertTrue(row["error"] and "best_us" not in row, row)
        return report, {(row["collective"], row["way"], row["trigger"], row["bytes"]): row for row in report["neighbor"]}

    def status(self, rows, way, collective="allgather", size=8):
        return [rows[collective, way, trigger, size]["status"] for trigger in self.TRIGGERS if (collective, way, trigger, size) in rows]

    def test_every_way_and_trigger_has_a_cell(self):
        report, rows = self.cells_of(*self.RING, "--seed", 3)
        self.assertEqual((report["ranks"], report["gpus"], report["edges"], report["seed"]), (2, 2, 2, 3))
        ways = ["nccl grouped", "library", "peer", "copies", "nccl", "nvshmem", "mpi", "host", "peer+nccl", "peer+mpi", "peer+host"]
        self.assertEqual(list(dict.fromkeys(key[1] for key in rows)), ways)
        for collective in ("allgather", "alltoallv"):
            for size in (8, 4096):
                self.assertEqual(self.status(rows, "host", collective, size), ["measured"] * 3 + ["absent"])
                self.assertEqual(self.status(rows, "peer", collective, size), ["absent"] * 4)
                self.assertEqual(self.status(rows, "nccl grouped", collective, size), ["absent"] * 3)
                self.assertEqual(self.status(rows, "library", collective, size), ["absent"])
        self.assertIn("no kernels", rows["allgather", "peer", "kernel", 8]["error"])
        self.assertIn("which is no multiple of the 8", rows["alltoallv", "peer", "kernel", 8]["error"])
        self.assertIn("only transport peer can communicate from inside a kernel", rows["allgather", "nccl", "kernel", 8]["error"])
        self.assertIn("no NCCL", rows["allgather", "nccl grouped", "graph", 8]["error"])

    def test_nccls_own_group_stands_beside(self):
        report, rows = self.cells_of(*self.RING, "--gpu-transport", "host,nccl", "--triggers", "stream,kernel", environment={"PLAYED_NCCL": "right"})
        self.assertEqual([key[1:3] for key in rows if key[0] == "allgather" and key[3] == 8],
                         [("nccl grouped", "stream"), ("nccl grouped", "graph"), ("library", "host"), ("host", "stream"), ("host", "kernel"), ("nccl", "stream"), ("nccl", "kernel")])
        theirs, ours = rows["alltoallv", "nccl grouped", "stream", 4096], rows["alltoallv", "host", "stream", 4096]
        self.assertEqual((theirs["nccl_over_it"], theirs["carried_by"]), (1, "played group"))
        self.assertAlmostEqual(ours["nccl_over_it"], theirs["median_us"] / ours["median_us"])
        self.assertIsNone(ours["library_over_it"])

    def test_a_word_named_twice_is_measured_once(self):
        _, once = self.cells_of(*self.RING, "--gpu-transport", "host", "--triggers", "host,stream", "--collective", "allgather")
        report, rows = self.cells_of(*self.RING, "--gpu-transport", "host,host", "--triggers", "host,stream,host", "--collective", "allgather,allgather")
        self.assertEqual(list(rows), list(once))
        self.assertEqual(len(report["neighbor"]), len(rows))
        report, rows = self.cells_of(*self.RING, "--gpu-transport", "host,all", "--triggers", "host")
        self.assertEqual([row["way"] for row in report["neighbor"][:7]], ["nccl grouped", "library", "host", "peer", "copies", "nccl", "nvshmem"])
        self.assertEqual(len(report["neighbor"]), len(rows))

    def test_products_are_multiplied_by_a_kernel(self):
        self.write("A.mtx", market(chain(13), 13))
        words = ("bench", "neighbor", "A.mtx", "--gpus", 2, "--pattern", "spmm", "--columns", 3, *FEW, "--gpu-transport", "host", "--triggers", "host,stream,graph,kernel")
        report = self.json_of(*words, environment={**PLAYED, "PLAYED_NCCL": "right"})
        self.assertEqual([report[key] for key in ("matrix", "rows", "entries", "columns", "edges", "gpus")], ["A.mtx", 13, 37, 3, 2, 2])
        rows = {(row["collective"], row["way"], row["trigger"]): row for row in report["neighbor"]}
        for gather, gathered in (("blocks", 13), ("rows", 2)):  # of 6 and 7 rows
            for trigger in self.TRIGGERS[:3]:
                row = rows[gather, "host", trigger]
                self.assertEqual((row["status"], row["bytes"]), ("measured", gathered * 3 * 8))
                self.assertEqual(row["nccl_over_it"] is None, gather == "rows")
            self.assertIn("a kernel", rows[gather, "host", "kernel"]["error"])
        theirs, ours = rows["blocks", "nccl grouped", "stream"], rows["blocks", "host", "stream"]
        together = [row["set_up_us"] + 2 * row["median_us"] for row in (theirs, ours)]
        self.assertAlmostEqual(ours["nccl_over_it_with_set_up"], together[0] / together[1])
        self.assertIn("whole blocks", rows["rows", "nccl grouped", "stream"]["error"])
        alone = self.json_of(*words, "--gather", "rows", "--ranks", 3, "--oversubscribe", environment=PLAYED)
        self.assertEqual({row["collective"] for row in alone["neighbor"]}, {"rows"})
        wrong = self.run_it(*words, "--gather", "blocks", code=1, environment={**PLAYED, "PLAYED_NCCL": "wrong"})
        self.assertIn("wrong: rank 0: value (12, 2) of rank 1 is", wrong.stdout)

    def test_a_wrong_byte_is_exit_code_1(self):
        words = (*self.RING, "--gpu-transport", "host", "--triggers", "host,graph", "--collective", "allgather")
        _, rows = self.cells_of(*words, code=1, environment={"PLAYED_NCCL": "wrong"})
        self.assertEqual(self.status(rows, "nccl grouped"), ["wrong", "wrong"])
        self.assertEqual(self.status(rows, "host"), ["measured", "measured"])
        self.assertEqual(rows["allgather", "nccl grouped", "host", 4096]["error"], "rank 0: byte 4095 of the block of 4096 bytes from rank 1 is not what was sent")
        done = self.run_it("bench", "neighbor", "--gpus", 2, "--sizes", 8, *FEW, *words, code=1, environment={**PLAYED, "PLAYED_NCCL": "wrong"})
        self.assertIn("wrong: rank 0: byte 7 of the block of 8 bytes from rank 1", done.stdout)
        self.assertIn("received data differ from what was sent", done.stderr)

    def test_virtual_ranks_share_gpus(self):
        report, rows = self.cells_of("--density", "1", "--ranks", 5, "--oversubscribe", "--gpu-transport", "host,nccl", environment={"PLAYED_NCCL": "right"})
        self.assertEqual((report["ranks"], report["edges"]), (5, 20))
        self.assertEqual(self.status(rows, "host"), ["measured", "measured", "absent", "absent"])
        self.assertEqual(self.status(rows, "nccl"), ["absent"] * 4)
        for way in ("nccl grouped", "nccl"):
            self.assertIn("one rank a GPU", rows["allgather", way, "host", 8]["error"])

    def test_the_table_says_once_what_is_absent(self):
        lines = self.run_it("bench", "neighbor", "--gpus", 2, "--sizes", "8,64", *FEW, *self.RING, "--gpu-transport", "copies,host", "--json", "cells.json", environment=PLAYED).stdout.splitlines()
        self.assertEqual(lines[0], "2 ranks on 2 GPUs, threads, pattern moore with 2 edges: collectives on the GPUs' buffers")
        self.assertEqual([line.split()[:4] for line in lines if line.startswith("all")],
                         [[collective, size, "host", trigger] for collective in ("allgather", "alltoallv") for size in ("8", "64") for trigger in self.TRIGGERS[:3]])
        self.assertEqual(sum("absent by host, stream, graph: played GPUs have no NCCL" in line for line in lines), 1)
        self.assertIn(b'"neighbor"', self.content("cells.json"))

    def test_under_mpirun_the_librarys_own_takes_device_memory_where_it_says_so(self):
        launchers = [launcher for launcher, _ in (launcher_of(vendor, 2) for vendor in ("openmpi", "mpich")) if launcher]
        if not launchers:
            self.skipTest("no MPI can start ranks here")
        for launcher in launchers:
            words = (*self.RING, "--gpu-transport", "mpi,host", "--triggers", "host,stream")
            _, rows = self.cells_of(*words, launcher=launcher)
            for way in ("library", "mpi"):
                self.assertIn("takes no memory of GPUs", rows["allgather", way, "host", 8]["error"])
            _, rows = self.cells_of(*words, launcher=launcher, environment={"HOSTLESS_MPI_DEVICE_MEMORY": "1"})
            for collective in ("allgather", "alltoallv"):
                for way in ("mpi", "host"):
                    self.assertEqual(self.status(rows, way, collective, 4096), ["measured", "measured"])
                    self.assertGreater(rows[collective, way, "host", 4096]["library_over_it"], 0)
                self.assertEqual(self.status(rows, "library", collective, 4096), ["measured"])

    def test_what_is_refused(self):
        for words, says in ((("--triggers", "host"), "--triggers without --gpus"), (("--oversubscribe",), "--oversubscribe without --gpus"),
                            (("--collective", "allgather"), "--collective without --gpus"), (("--gpu-transport", "peer"), "--gpu-transport without --gpus"),
                            (("--gpus", 2, "--triggers", "moon"), "--triggers: 'moon'"), (("--gpus", 2, "--gpu-transport", "host,pigeon"), "--gpu-transport: 'pigeon'"),
                            (("--gpus", 2, "--collective", "alltoall"), "--collective: 'alltoall'"), (("--gpus", 2, "--ways", "direct"), "--ways with --gpus"),
                            (("--gpus", 2, "--ranks-per-node", 1), "--ranks-per-node with --gpus"), (("--gpus", 2, "--density", "0"), "a graph without edges"),
                            (("ccc_G_06", "--gpus", 2, "--pattern", "spmm", "--collective", "allgather"), "--collective with --pattern spmm"),
                            (("ccc_G_06", "--gpus", 2, "--pattern", "spmm", "--seed", 5), "--seed with --pattern spmm"),
                            (("--gpus", 2, *self.RING, "--collective", "allgather", "--seed", 5), "--seed with --pattern moore"), ((*self.RING, "--seed", 5), "--seed with --pattern moore"),
                            (("--gpus", 2, "--ranks", 3, *self.RING), "3 ranks on 2 GPUs"), (("--gpus", 3, *self.RING), "3 GPUs (this machine has 2)")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, "bench", "neighbor", *words, quiet=False, environment=PLAYED))
        done = self.run_it("bench", "neighbor", "--gpus", 2, *self.RING, "--sizes", 8, *FEW, "--triggers", "kernel", "--gpu-transport", "nccl", code=4, environment=PLAYED)
        self.assertIn("absent by kernel: nccl inside a kernel (only transport peer can communicate from inside a kernel)", done.stdout)
        self.assertIn("nothing of what was asked for can be measured here", done.stderr)
        self.assertIn("no GPU can be used", self.run_it("bench", "neighbor", "--gpus", 2, *self.RING, code=4, environment=HIDDEN).stderr)


if __name__ == "__main__":
    unittest.main()

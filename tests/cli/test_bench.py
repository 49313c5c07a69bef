"""`hostless bench`: every option of its subcommands, what they print and write, and what they refuse."""

import json
import math
import signal
import time
import unittest

from hostless_command import PATIENT, SLOWEST, Command, alive, chain, cpu_seconds, kill, market, nearly_symmetric, ranks_of

GRID = ("--generate", "poisson2d", "--size", "24")
BRIEF = ("--steps", "20", "--repeat", "2", "--warm-up", "3")
HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1"}


class Bench(Command):
    def times_are_sane(self, row):
        self.assertGreater(row["best_us"], 0)
        self.assertLessEqual(row["best_us"], row["median_us"])
        self.assertLessEqual(row["median_us"], row.get("worst_us", math.inf))

    def head(self, report, bench, transport, ranks, to="-"):
        self.assertEqual((report["version"], report["bench"], report["transport"], report["ranks"]),
                         (1, bench, transport, ranks))
        self.assertEqual(report["program"], self.run_it("--version").stdout.strip())
        whence = report["provenance"]
        self.assertEqual(whence["command"][1:3], ["bench", bench])
        self.assertEqual(whence["options_given"]["--json"], to)
        self.assertLess(whence["options_given"].keys(), whence["options"].keys())
        self.assertRegex(whence["date"], "^20[0-9-]+T[0-9:]+Z$")
        self.assertIn("compiler", whence["versions"])


class Solves(Bench):
    def bench(self, *words, **how):
        return self.json_of("bench", "solve", *words, "--iterations", "20", "--repeat", "2", **how)

    def test_every_way_is_solved_and_compared(self):
        report = self.bench(*GRID, "--ranks", 2, "--methods", "cg,single-reduction-cg,pipelined-cg", "--runs",
                            "host,persistent,graph")
        self.head(report, "solve", "threads", 2)
        self.assertEqual((report["rows"], report["asked_iterations"], report["gpus"]), (576, 20, 0))
        self.assertEqual([(row["method"], row["run"], row["bits"]) for row in report["solves"]],
                         [(method, run, "first" if run == "host" else "equal")
                          for method in ("cg", "single-reduction-cg", "pipelined-cg")
                          for run in ("host", "persistent", "graph")])
        for row in report["solves"]:
            self.times_are_sane(row)
            self.assertEqual((row["iterations"], len(row["all_us"]), row["ranks"], row["gpus"]), (20, 2, 2, 0))
            self.assertEqual(row["choices"]["run"], row["run"])
            self.assertEqual((row["settings"]["run"], row["settings"]["rtol"]), (row["run"], "0"))
            self.assertGreater(row["condition_estimate"], 1)
            self.assertTrue(row["matrix"].startswith("poisson2d 24 x 24 nodes"), row["matrix"])
        # the figures are of the solves that `hostless solve` makes
        alone = self.solve(*GRID, "--ranks", 2, "--manufactured", "--rtol", "0", "--max-iterations", 20, code=1)
        self.assertEqual(report["solves"][0]["true_relative_residual"], alone["true_relative_residual"])

    def test_a_matrix_that_is_symmetric_up_to_rounding(self):
        self.write("S.mtx", nearly_symmetric(1e-6))
        self.assertIn("allow it (--symmetry-tolerance, 1e-09 now)", self.refused(3, "bench", "solve", "S.mtx"))
        rows = self.bench("S.mtx", "--symmetry-tolerance", "3e-7", "--runs", "host", "--methods", "cg,bicgstab")["solves"]
        self.assertEqual([row["settings"]["symmetry_tolerance"] for row in rows], ["3e-07", "3e-07"])
        self.assertIn("Drop it", self.refused(2, "bench", "solve", *GRID, "--symmetry-tolerance", "1e-9"))
        self.assertIn("with --methods bicgstab is refused (no symmetry is needed",
                      self.refused(2, "bench", "solve", "S.mtx", "--methods", "bicgstab", "--symmetry-tolerance", "1e-9"))

    def test_the_table_says_the_same(self):
        text = self.run_it("bench", "solve", *GRID, "--iterations", 5, "--runs", "host,graph", "--methods", "cg", "--json",
                           "report.json").stdout.splitlines()
        rows = json.loads(self.content("report.json"))["solves"]
        self.assertIn("poisson2d 24 x 24 nodes", text[0])
        self.assertEqual(len(text), 4)
        for line, row in zip(text[2:], rows):
            self.assertEqual(line.split()[:3], ["cg", row["run"], f"{row['best_us']:.2f}"])
            self.assertTrue(line.endswith(row["bits"]))

    def test_what_is_refused_is_a_row_and_the_others_go_on(self):
        report = self.bench(*GRID, "--gpus", 2, "--runs", "persistent,host,graph", "--methods", "cg", environment=HIDDEN)
        rows = {row["run"]: row for row in report["solves"]}
        self.assertEqual(list(rows), ["persistent", "host", "graph"])
        for run in ("persistent", "graph"):
            self.assertIn("no GPU can be used", rows[run]["error"])
            self.assertNotIn("best_us", rows[run])
            self.assertEqual(rows[run]["gpus"], 2)
        self.assertEqual((rows["host"]["gpus"], rows["host"]["bits"]), (0, "first"))
        text = self.run_it("bench", "solve", *GRID, "--runs", "stream,host", "--methods", "cg", "--iterations", 3).stdout
        self.assertIn("the stream run on the processor is refused (it launches kernels). Use --gpus 1", text)
        self.assertIn("first", text)

    def test_each_transport_between_gpus_is_a_way(self):
        report = self.bench(*GRID, "--gpus", 2, "--runs", "host,persistent,stream", "--methods", "cg", "--gpu-transports",
                            "peer,nccl,nvshmem,mpi,host", environment=HIDDEN)
        self.assertEqual([(row["run"], row.get("gpu_transport")) for row in report["solves"]],
                         [("host", None), *((run, by) for run in ("persistent", "stream") for by in ("peer", "nccl", "nvshmem", "mpi", "host"))])
        errors = {(row["run"], row["gpu_transport"]): row["error"] for row in report["solves"][1:]}
        self.assertIn("no GPU can be used", errors["stream", "nccl"])
        for run in ("stream", "persistent"):
            self.assertIn("2 ranks that are threads of one process", errors[run, "nvshmem"])
        self.assertIn("GPU transport mpi with ranks of transport threads", errors["stream", "mpi"])
        for by in ("nccl", "mpi", "host"):
            self.assertIn(f"the persistent run with GPU transport {by}", errors["persistent", by])

    def test_preconditioners_and_routes_in_one_program(self):
        report = self.bench(*GRID, "--ranks", 4, "--ranks-per-node", 2, "--methods", "cg,pipelined-cg", "--runs", "host,graph",
                            "--preconditioners", "jacobi,chebyshev", "--routes", "direct,three_step")
        rows = report["solves"]
        self.assertEqual([(row["route"], row["method"], row["preconditioner"], row["run"]) for row in rows],
                         [(route, method, kind, run) for route in ("direct", "three_step") for method in ("cg", "pipelined-cg")
                          for kind in ("jacobi", "chebyshev") for run in ("host", "graph")])
        digests = {}
        for row in rows:
            if (row["method"], row["preconditioner"]) == ("pipelined-cg", "chebyshev"):
                self.assertIn("Use method cg", row["error"])
                continue
            self.assertEqual((row["choices"]["route"], row["choices"]["preconditioner"]), (row["route"], row["preconditioner"]))
            first = (row["route"], row["run"]) == ("direct", "host")
            self.assertEqual(row["bits"], "first" if first else "equal")
            digests.setdefault((row["method"], row["preconditioner"]), set()).add(row["digest"])
        self.assertEqual([len(one) for one in digests.values()], [1, 1, 1])
        self.assertEqual(len(set.union(*digests.values())), 3)
        # of another start the digest is the same, of other numbers it is not
        words = (*GRID, "--transport", "processes", "--methods", "cg", "--preconditioner", "jacobi", "--runs", "graph")
        row, = self.bench(*words, "--ranks", 4)["solves"]
        self.assertEqual(digests["cg", "jacobi"], {row["digest"]})
        row, = self.bench(*words, "--ranks", 4, "--seed", 7)["solves"]
        self.assertNotIn(row["digest"], digests["cg", "jacobi"])

    def test_the_processor_may_do_the_beginning_alone(self):
        rows = self.bench(*GRID, "--ranks", 2, "--methods", "cg", "--runs", "graph,host,persistent", "--host-iterations", "7")["solves"]
        self.assertEqual([(row["iterations"], row["bits"], len(row["all_us"])) for row in rows],
                         [(20, "first", 2), (7, "equal for 7 iterations", 1), (20, "equal", 2)])
        self.assertEqual(rows[0]["digest"], rows[2]["digest"])
        self.assertNotEqual(rows[0]["digest"], rows[1]["digest"])

    def test_nothing_solved_is_no_success(self):
        self.bench(*GRID, "--runs", "stream", code=2)
        self.bench(*GRID, "--gpus", 1, "--runs", "graph", code=4, environment=HIDDEN)

    def test_a_free_order_of_sums_is_not_compared(self):
        for row in self.bench(*GRID, "--reduction", "fast", "--runs", "host")["solves"]:
            self.assertEqual(row["bits"], "not compared: the order of sums is free")

    def test_options_arrive_in_the_choices(self):
        for option, value, key in (("--preconditioner", "jacobi", "preconditioner"), ("--partition", "metis", "partition"),
                                   ("--slices", "5", "slices"), ("--row-lanes", "4", "row_lanes"),
                                   ("--route", "two_step", "route"), ("--ranks-per-node", "1", "nodes"),
                                   ("--transport", "processes", "transport")):
            with self.subTest(option=option):
                row, = self.bench(*GRID, "--ranks", 2, "--methods", "cg", "--runs", "host", option, value)["solves"]
                self.assertEqual(row["choices"][key], "2" if option == "--ranks-per-node" else value)
        for option, value, says in (("--block-size", "2", "block 2"), ("--format", "sell", "sell"),
                                    ("--columns", "32", "16-bit columns in 0 of")):
            with self.subTest(option=option):
                layout = () if option == "--format" else ("--format", "csr")
                row, = self.bench(*GRID, "--methods", "cg", "--runs", "host", *layout, option, value)["solves"]
                self.assertIn(says, row["choices"]["format"])
        row, = self.bench(*GRID, "--methods", "cg", "--runs", "host", "--matrix-precision", "fp32")["solves"]
        self.assertIn("fp32", row["choices"]["matrix_precision"])
        polynomial = (*GRID, "--methods", "cg", "--runs", "host", "--setup-threads", 2, "--preconditioner", "chebyshev")
        digests = {self.bench(*polynomial, *words)["solves"][0]["digest"] for words in
                   ((), ("--chebyshev-degree", 6), ("--chebyshev-ratio", 9), ("--chebyshev-upper", 4), ("--chebyshev-inner", "none"))}
        self.assertEqual(len(digests), 5)
        self.assertIn("no other has them", self.refused(2, "bench", "solve", *GRID, "--chebyshev-degree", 6))
        rows = self.bench(*GRID, "--methods", "cg", "--runs", "host,persistent", "--lanes", "3")["solves"]
        self.assertEqual([row["choices"]["lanes"] for row in rows], ["1", "3"])
        seeds = [self.bench(*GRID, "--methods", "cg", "--runs", "host", "--seed", seed)["solves"][0] for seed in (1, 2)]
        self.assertNotEqual(*(row["true_relative_residual"] for row in seeds))

    def test_a_file(self):
        self.write("A.mtx", market(chain(40), 40))
        self.assertEqual(self.bench("A.mtx", "--runs", "host")["rows"], 40)

    def test_a_solve_that_ends_at_once_has_no_time(self):
        self.write("A.mtx", market({at: -value for at, value in chain(5).items()}, 5))
        row, = self.bench("A.mtx", "--runs", "host", "--methods", "cg", code=1)["solves"]
        self.assertIn("indefinite_matrix after 0 iterations", row["error"])

    def test_what_makes_no_sense_is_refused(self):
        for words, says in (((), "give one of: a matrix file"), (("A.mtx", *GRID), "give one of"),
                            ((*GRID, "--methods", "cg,magic"), "magic"), ((*GRID, "--methods", ""), "unknown method"),
                            ((*GRID, "--runs", "host,magic"), "magic"), ((*GRID, "--iterations", "0"), "--iterations"),
                            ((*GRID, "--repeat", "0"), "--repeat"), ((*GRID, "--preconditioner", "magic"), "magic"),
                            ((*GRID, "--routes", "direct,magic"), "magic"), ((*GRID, "--preconditioners", "none,magic"), "magic"),
                            ((*GRID, "--routes", "direct", "--route", "direct"), "--route excludes --routes"),
                            ((*GRID, "--preconditioners", "none", "--preconditioner", "none"), "excludes --preconditioners"),
                            ((*GRID, "--runs", "graph", "--host-iterations", "2"), "--host-iterations without the run host"),
                            ((*GRID, "--runs", "host", "--lanes", "2"), "--lanes without the persistent run"),
                            ((*GRID, "--gpus", "1", "--lanes", "2"), "--lanes without the persistent run"),
                            ((*GRID, "--gpus", "2", "--ranks", "4"), "--oversubscribe"),
                            ((*GRID, "--gpus", "4", "--ranks", "2"), "some would have nothing to do"),
                            ((*GRID, "--gpu-transports", "peer"), "--gpu-transports without a GPU"),
                            ((*GRID, "--gpus", "2", "--gpu-transports", "peer,pigeon"), "unknown GPU transport 'pigeon'"),
                            ((*GRID, "--oversubscribe"), "oversubscribed GPUs on the processor"),
                            ((*GRID, "--generate-on", "gpu"), "--generate-on gpu without a GPU")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, "bench", "solve", *words, environment=HIDDEN))
        self.assertIn("no/where.json: cannot create it", self.refused(4, "bench", "solve", *GRID, "--json", "no/where.json"))


class LostRank(Command):
    def test_a_rank_that_hangs_in_a_solve_ends_them_all(self):
        """By the deadline of iterations: what comes next would wait for it by that of set-up, sixty times as long."""
        scale = 0.5  # 5 s among iterations: who is slow does not take them
        job = self.start("bench", "solve", "--generate", "poisson1d", "--size", 300000, "--iterations", 10**6, "--ranks", 2, "--transport",
                         "processes", "--methods", "cg,minres", "--runs", "host", environment={"HOSTLESS_DEADLINE_SCALE": str(scale)})
        self.wait_until(lambda: len(ranks_of(job)) == 2 and cpu_seconds(job.pid) > 2, "iterations", job)
        ranks = sorted(ranks_of(job))
        began = time.monotonic()
        kill(ranks[1], signal.SIGSTOP)
        _, err = job.communicate(timeout=SLOWEST)
        self.assertEqual(job.returncode, 4, err)
        self.assertRegex(err, "hostless: peer_lost after [0-9]+ iterations")
        self.assertLess(time.monotonic() - began, scale * 600 / 2)
        self.wait_until_gone(ranks)


    def test_a_rank_that_hangs_between_short_repeats_of_a_halo(self):
        """Where ranks meet before and after a repeat the deadlines are those of steps, too."""
        scale = 0.5
        job = self.start("bench", "halo", "--generate", "poisson2d", "--size", 60, "--ranks", 3, "--transport", "processes", "--steps", 1,
                         "--repeat", 10**7, environment={"HOSTLESS_DEADLINE_SCALE": str(scale)})
        self.wait_until(lambda: len(ranks_of(job)) == 3 and cpu_seconds(job.pid) > 2, "repeats", job)
        ranks = sorted(ranks_of(job))
        began = time.monotonic()
        kill(ranks[1], signal.SIGSTOP)
        _, err = job.communicate(timeout=SLOWEST)
        self.assertEqual(job.returncode, 4, err)
        self.assertIn("hostless: a rank was lost ", err)
        self.assertLess(time.monotonic() - began, scale * 600 / 2)
        self.wait_until_gone(ranks)


class PingPong(Bench):
    def test_each_two_ranks(self):
        report = self.json_of("bench", "pingpong", "--ranks", 3, "--sizes", "1,4096", *BRIEF)
        self.head(report, "pingpong", "threads", 3)
        self.assertEqual([(row["first"], row["second"], row["bytes"]) for row in report["pingpong"]],
                         [(a, b, size) for a, b in ((0, 1), (0, 2), (1, 2)) for size in (1, 4096)])
        for row in report["pingpong"]:
            self.times_are_sane(row)
            self.assertEqual(row["steps"], 20)
            self.assertAlmostEqual(row["bytes_per_second"] * row["best_us"] * 1e-6, row["bytes"])

    def test_one_pair_between_processes(self):
        text = self.run_it("bench", "pingpong", "--ranks", 3, "--transport", "processes", "--pair", "2,0", "--sizes", "64",
                           *BRIEF, "--json", "report.json").stdout
        report = json.loads(self.content("report.json"))
        self.head(report, "pingpong", "processes", 3, "report.json")
        row, = report["pingpong"]
        self.assertEqual((row["first"], row["second"]), (2, 0))
        self.assertEqual(text.splitlines()[-1].split()[:4], ["2,", "0", "64", f"{row['best_us']:.3f}"])

    def test_a_killed_rank_ends_it(self):
        job = self.start("bench", "pingpong", "--ranks", 3, "--transport", "processes", "--sizes", "8", "--steps", 10**9,
                         environment=PATIENT)
        self.assertIn("3 ranks, processes", job.stdout.readline())
        self.wait_until(lambda: len(ranks_of(job)) == 3, "three ranks", job)
        ranks = sorted(ranks_of(job))
        kill(ranks[1], signal.SIGKILL)
        _, err = job.communicate(timeout=SLOWEST)
        self.assertEqual(job.returncode, 4, err)
        self.assertIn("signal 9", err)
        self.assertFalse(any(map(alive, ranks)))

    def test_sizes_by_themselves(self):
        report = self.json_of("bench", "pingpong", "--ranks", 2, "--steps", "2", "--repeat", "1")
        sizes = [row["bytes"] for row in report["pingpong"]]
        self.assertEqual((sizes[0], sizes[-1]), (8, 1 << 21))

    def test_what_makes_no_sense_is_refused(self):
        for words, says in (((), "a ping-pong of one rank"), (("--ranks", 2, "--pair", "0,2"), "as a pair among 2 ranks"),
                            (("--ranks", 2, "--pair", "1,1"), "as a pair"), (("--ranks", 2, "--pair", "1"), "a pair has two"),
                            (("--ranks", 2, "--pair", "0,x"), "--pair"), (("--ranks", 2, "--sizes", "8,,9"), "--sizes"),
                            (("--ranks", 2, "--sizes", "0"), "--sizes"), (("--ranks", 2, "--sizes", "1e3"), "--sizes"),
                            (("--steps", "0"), "--steps"), (("--repeat", "0"), "--repeat"), (("--warm-up", "-1"), "--warm-up"),
                            (("--ranks", 2, "--transport", "processes", "--pair", "0,7"), "ranks 0 and 7 as a pair among 2 ranks")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, "bench", "pingpong", *words))


class Halo(Bench):
    def test_of_a_matrix(self):
        # a chain in contiguous shares: the ranks in the middle send one value each way
        self.write("A.mtx", market(chain(48), 48))
        report = self.json_of("bench", "halo", "A.mtx", "--ranks", 4, "--block-size", 1, "--partition", "contiguous", *BRIEF)
        self.head(report, "halo", "threads", 4)
        self.assertEqual((report["input"], report["route"], report["most_bytes_sent"]), ("A.mtx", "direct", 16))
        self.assertEqual(report["plan"]["sent"]["bytes_inside_nodes"], 6 * 8)
        self.assertEqual(report["most_messages_sent"], 2)
        self.assertEqual([rank["sent"]["messages_inside_nodes"] for rank in report["per_rank"]], [1, 2, 2, 1])
        for what in ("exchange_and_sum", "sum_alone", "exchange_alone"):
            self.times_are_sane(report[what])
        self.assertEqual(report["exchange_alone"]["reuse"], "answer")

    def test_fields_travel_together(self):
        self.write("A.mtx", market(chain(48), 48))
        report = self.json_of("bench", "halo", "A.mtx", "--ranks", 4, "--block-size", 1, "--partition", "contiguous", "--fields",
                              "3", "--item-bytes", "20", *BRIEF)
        self.assertEqual((report["fields"], report["item_bytes"]), (3, 20))
        self.assertEqual((report["most_bytes_sent"], report["most_messages_sent"]), (2 * 60, 2))
        self.assertEqual(report["plan"]["sent"]["bytes_inside_nodes"], 6 * 60)

    def test_of_saved_plans(self):
        self.run_it("plan", *GRID, "--ranks", 4, "--route", "three_step", "--ranks-per-node", 2, "--save", "plans.json")
        for words in ((), ("--transport", "processes"), ("--ranks", 4)):
            report = self.json_of("bench", "halo", "--load", "plans.json", *words, *BRIEF)
            self.assertEqual((report["input"], report["ranks"], report["route"]), ("plans.json", 4, "three_step"))
            self.times_are_sane(report["exchange_alone"])
        self.assertIn("plans of 4 ranks among 3", self.refused(2, "bench", "halo", "--load", "plans.json", "--ranks", 3))
        self.assertIn("excludes", self.refused(2, "bench", "halo", "--load", "plans.json", *GRID))
        plans = json.loads(self.content("plans.json"))
        plans["plans"][1]["stages"][0]["out"][0]["id"] += 1000
        self.write("wrong.json", json.dumps(plans))
        self.assertIn("wrong.json: ", self.refused(3, "bench", "halo", "--load", "wrong.json"))

    def test_of_every_route_and_transport(self):
        for words in (("--route", "three_step", "--ranks-per-node", "2"), ("--transport", "processes"),
                      ("--slices", "4", "--row-lanes", "2", "--seed", "3")):
            with self.subTest(words=words):
                text = self.run_it("bench", "halo", *GRID, "--ranks", 4, *BRIEF, *words, "--json", "report.json").stdout
                report = json.loads(self.content("report.json"))
                self.assertEqual(report["route"], "three_step" if "three_step" in words else "direct")
                line = next(line for line in text.splitlines() if line.startswith("exchange and sum"))
                self.assertEqual(line.split()[3], f"{report['exchange_and_sum']['best_us']:.3f}")

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn("give one of", self.refused(2, "bench", "halo"))
        for words, says in ((("--fields", "0"), "--fields"), (("--item-bytes", "0"), "--item-bytes"),
                            (("--gpus", "1", "--fields", "2"), "one fp64 vector")):
            self.assertIn(says, self.refused(2, "bench", "halo", *GRID, *words))
        self.assertIn("--format", self.refused(2, "bench", "halo", *GRID, "--format", "csr"))
        self.assertIn("unknown", self.refused(2, "bench", "halo", *GRID, "--partition", "magic"))
        self.assertIn("nowhere.mtx", self.refused(3, "bench", "halo", "nowhere.mtx"))


class Sums(Bench):
    def test_in_order_and_what_there_is_not(self):
        report = self.json_of("bench", "allreduce", "--ranks", 3, "--values", "1,4,8", *BRIEF)
        self.head(report, "allreduce", "threads", 3)
        rows = report["allreduce"]
        self.assertEqual([(row["reduction"], row["doubles"]) for row in rows],
                         [(reduction, k) for reduction in ("ordered", "fast", "library") for k in (1, 4, 8)])
        for row in rows[:3]:
            self.times_are_sane(row)
        for row in rows[3:]:  # threads have no library
            self.assertIn("no library all-reduce", row["error"])

    def test_what_makes_no_sense_is_refused(self):
        for values in ("0", "9", "", "one"):
            self.assertIn("--values", self.refused(2, "bench", "allreduce", "--values", values))
        self.assertIn("See hostless bench allreduce --help.", self.refused(2, "bench", "allreduce", "--magic"))


class OnGpus(Bench):
    """Meetings, halos and messages inside kernels."""

    def test_what_makes_no_sense_is_refused(self):
        halo, pingpong, sums = ("halo", *GRID), ("pingpong",), ("allreduce",)
        for words, says in (((*halo, "--sums", "2"), "--sums without a GPU"),
                            ((*halo, "--gpus", "1", "--sums", "3"), "--sums"),
                            ((*halo, "--gpus", "2", "--ranks", "4"), "Use --gpus 4, or --oversubscribe"),
                            ((*halo, "--gpus", "4", "--ranks", "2"), "some would have nothing to do"),
                            ((*halo, "--oversubscribe"), "oversubscribed GPUs on the processor"),
                            ((*halo, "--gpus", "2", "--partition", "magic"), "unknown"),
                            ((*sums, "--oversubscribe"), "oversubscribed GPUs on the processor"),
                            ((*sums, "--gpus", "1", "--ranks", "2"), "2 ranks on 1 GPU"),
                            ((*sums, "--gpus", "2", "--values", "5"), "--values"),
                            ((*sums, "--gpus", "-1"), "--gpus"),
                            ((*pingpong, "--gpus", "1"), "a ping-pong of one rank"),
                            ((*pingpong, "--gpus", "1", "--ranks", "2"), "--oversubscribe"),
                            ((*pingpong, "--gpus", "2", "--pair", "0,2"), "as a pair among 2 ranks"),
                            ((*pingpong, "--gpus", "2", "--pair", "0"), "a pair has two"),
                            ((*pingpong, "--gpus", "2", "--transport", "processes"), "one must see both GPUs of a pair")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, "bench", *words, environment=HIDDEN, quiet=False))

    def test_without_a_gpu_it_says_so(self):
        for words in (("halo", *GRID, "--gpus", "2"), ("halo", *GRID, "--gpus", "1", "--ranks", "2", "--oversubscribe", "--sums", "1"),
                      ("allreduce", "--gpus", "2"), ("pingpong", "--gpus", "2"),
                      ("pingpong", "--gpus", "1", "--ranks", "2", "--oversubscribe")):
            with self.subTest(words=words):
                done = self.run_it("bench", *words, *BRIEF, code=4, environment=HIDDEN)
                self.assertIn("hostless: no GPU can be used", done.stderr)
                self.assertEqual(done.stderr.count("hostless: "), 1, done.stderr)

    def shared_gpu(self, ranks):
        doctor = self.json_of("doctor", "--seconds", "0.01")
        if not any(library["gpus"] for library in doctor["gpu_libraries"]):
            self.skipTest("no GPU is visible")
        return ("--gpus", 1, "--ranks", ranks, "--oversubscribe") if ranks > 1 else ("--gpus", 1)

    def kernel_times_are_sane(self, row):
        self.times_are_sane(row)
        self.times_are_sane(row["by_events"])
        for phase in row["phases"]:
            self.assertGreater(phase["meetings"], 0)
            self.assertGreater(phase["words_us"], 0)

    def test_sums_inside_a_kernel(self):
        for ranks in (1, 2):
            report = self.json_of("bench", "allreduce", *self.shared_gpu(ranks), "--values", "1,3", *BRIEF)
            self.head(report, "allreduce", "threads", ranks)
            self.assertEqual([(row["doubles"], row["reduction"]) for row in report["allreduce"]],
                             [(1, "ordered"), (3, "ordered")])
            for row in report["allreduce"]:
                self.kernel_times_are_sane(row)
                self.assertEqual([phase["phase"] for phase in row["phases"]], ["sum"])

    def test_the_halo_of_a_matrix(self):
        for sums in (1, 2):
            text = self.run_it("bench", "halo", *GRID, *self.shared_gpu(2), "--sums", sums, *BRIEF, "--json", "report.json").stdout
            report = json.loads(self.content("report.json"))
            self.head(report, "halo", "threads", 2)
            self.assertEqual((report["sums"], report["gpus"], report["most_bytes_sent"]), (sums, 1, 24 * 8))
            for what in ("exchange_and_sum", "sum_alone"):
                self.kernel_times_are_sane(report[what])
            self.assertIn("the halo", report["kernel"])
            self.assertIn(f"{report['sum_alone']['best_us']:.3f}", text)

    def test_messages(self):
        report = self.json_of("bench", "pingpong", *self.shared_gpu(2), "--sizes", "8,4096", *BRIEF)
        self.head(report, "pingpong", "threads", 2)
        self.assertEqual([(row["bytes"], row["by"]) for row in report["pingpong"]],
                         [(size, by) for size in (8, 4096) for by in ("words", "fences")])
        for row in report["pingpong"]:
            self.times_are_sane(row)
            self.times_are_sane(row["by_events"])
        says = self.refused(2, "bench", "pingpong", *self.shared_gpu(2), "--sizes", "12", quiet=False)
        self.assertIn("messages of 12 bytes between GPUs", says)


class Columns(Command):
    def test_each_has_the_bits_that_it_has_alone(self):
        report = self.json_of("bench", "solve", "--generate", "poisson2d", "--size", "20", "--rhs-columns", "4",
                              "--iterations", "5", "--repeat", "1")
        self.assertEqual(len(report["solves"]), 6)
        for row in report["solves"]:
            self.assertEqual((row["rhs_columns"], row["best_us_per_column"]), (4, row["best_us"] / 4))
            self.assertEqual(row["bits"], "equal")


class Overlap(Command):
    def test_by_the_clock_and_by_runs(self):
        report = self.json_of("bench", "solve", "--generate", "poisson2d", "--size", "60", "--methods", "cg", "--runs", "host", "--ranks", "2",
                              "--overlap", "--iterations", "20", "--repeat", "1")
        found = report["solves"][0]["overlap"]
        by_clock, by_runs = found["by_clock"], found["by_runs"]
        self.assertEqual((by_clock["clock"], by_clock["iterations"]), ("phases", 20))
        parts = by_clock["computing_us"] + by_clock["exposed_us"] + by_clock["idle_us"]
        self.assertAlmostEqual(parts, by_clock["iteration_us"], delta=0.01 * by_clock["iteration_us"])
        self.assertGreater(min(by_runs["computing_us"], by_runs["communication_us"], by_runs["whole_us"]), 0)

    def test_of_several_right_hand_sides_is_refused(self):
        self.assertIn("of one right-hand side", self.refused(2, "bench", "solve", *GRID, "--overlap", "--rhs-columns", "2"))


if __name__ == "__main__":
    unittest.main()

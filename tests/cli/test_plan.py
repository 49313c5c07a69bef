"""`hostless plan`: every option, and plans saved and loaded; and `hostless doctor`."""

import json
import os
import shutil
import unittest
from pathlib import Path

from hostless_command import COMMAND, Command, chain, market

PLANS = Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "plan"

GRID = ("--generate", "poisson2d", "--size", "12")


class Plan(Command):
    def plan(self, *words):
        return self.json_of("plan", *words)

    def messages(self, report):
        sent = report["total"]["sent"]
        self.assertEqual(sent, report["total"]["received"])
        return sent["messages_inside_nodes"], sent["messages_between_nodes"]

    def test_a_chain_in_the_head(self):
        # 48 rows on 4 ranks: each sends one value of 8 bytes to each neighbour.
        self.write("A.mtx", market(chain(48), 48))
        report = self.plan("A.mtx", "--ranks", 4, "--block-size", 1, "--partition", "contiguous", "--ranks-per-node", 2)
        self.assertEqual((report["version"], report["ranks"], report["route"]), (1, 4, "three_step"))
        report = self.plan("A.mtx", "--ranks", 4, "--block-size", 1, "--partition", "contiguous", "--ranks-per-node", 2,
                           "--route", "direct")
        self.assertEqual(self.messages(report), (4, 2))
        self.assertEqual(report["total"]["sent"]["bytes_inside_nodes"], 4 * 8)
        self.assertEqual(report["total"]["sent"]["bytes_between_nodes"], 2 * 8)
        self.assertEqual([rank["ghosts"] for rank in report["per_rank"]], [1, 2, 2, 1])

    def test_routes_and_nodes(self):
        words = (*GRID, "--ranks", 8, "--partition", "metis", "--ranks-per-node", 4)
        reports = {route: self.plan(*words, "--route", route) for route in ("direct", "two_step", "three_step", "split", "leader", "auto")}
        self.assertEqual(reports["auto"], reports["three_step"])
        between = {route: self.messages(report)[1] for route, report in reports.items()}
        self.assertEqual(between["three_step"], 2)  # one message each way between two nodes
        self.assertGreater(between["direct"], between["three_step"])
        self.assertEqual(between["split"], 2)  # less than a cap of items
        items = {route: report["total"]["sent"]["bytes_between_nodes"] for route, report in reports.items()}
        self.assertEqual(items["split"], items["three_step"])
        self.assertEqual(items["leader"], items["three_step"])
        for route in ("split", "leader"):
            self.assertEqual(reports[route]["route"], route)
        # duplicate values leave a node once
        self.assertLessEqual(reports["three_step"]["total"]["sent"]["bytes_between_nodes"],
                             reports["direct"]["total"]["sent"]["bytes_between_nodes"])
        self.assertEqual(self.messages(self.plan(*GRID, "--ranks", 8, "--ranks-per-node", 8))[1], 0)

    def test_a_machine_prices_every_route_and_decides_auto(self):
        words = (*GRID, "--ranks", 8, "--ranks-per-node", 4)
        report = self.plan(*words, "--machine", "lassen")
        ways = {way["route"]: way["seconds"] for way in report["prices"]["ways"]}
        self.assertEqual(set(ways), {"direct", "two_step", "three_step", "split", "leader"})
        best = min(ways, key=ways.get)
        self.assertEqual((report["route"], report["prices"]["cheapest"]), (best, {"route": best, "path": "host"}))
        self.assertNotEqual(best, self.plan(*words)["route"])  # without a machine nothing is priced
        kept = self.plan(*words, "--machine", "lassen", "--route", "two_step")
        self.assertEqual((kept["route"], kept["prices"]["cheapest"]["route"]), ("two_step", best))
        # A card 25,000 times slower: what leaves a node twice decides.
        self.run_it("machine", "show", "lassen", "--json", "slow.json")
        slow = json.loads(self.content("slow.json"))
        slow["injection"] = [{"memory": "host", "sharpness": None, "source": "lassen-data",
                              "limits": [{"up_to_bytes": None, "per": "node", "s_per_byte": 1e-6}]}]
        self.write("slow.json", json.dumps(slow))
        corners = ("--generate", "poisson7", "--size", 8, "--ranks", 8, "--partition", "contiguous", "--ranks-per-node", 4)
        self.assertEqual(self.plan(*corners, "--machine", "lassen")["route"], "direct")
        self.assertNotEqual(self.plan(*corners, "--machine", "slow.json")["route"], "direct")
        staged = self.plan(*words, "--machine", "lassen", "--memory", "gpu")["prices"]["ways"]
        self.assertEqual([way["path"] for way in staged], 5 * ["device", "staged"])
        text = self.run_it("plan", *words, "--machine", "lassen", "--save", "plan.json").stdout
        self.assertIn("cheapest: " + best, text)
        self.assertEqual(self.plan("--load", "plan.json", "--machine", "lassen")["prices"], report["prices"])
        self.assertIn("--machine", self.refused(2, "plan", *words, "--memory", "gpu"))
        self.write("bad.json", self.content("slow.json").decode().replace('"version": 1', '"version": 7'))
        self.assertTrue(self.refused(3, "plan", *words, "--machine", "bad.json").startswith("bad.json:1: version: 7"))
        self.assertIn("lumi: no data", self.refused(3, "plan", *words, "--machine", "lumi"))
        self.refused(2, "plan", *words, "--machine", "nowhere")

    def test_routes_are_priced_alike_where_buffers_are_freed_by_messages(self):
        def messages(name):
            ways = self.plan("--load", PLANS / name, "--machine", "lassen")["prices"]["ways"]
            return {way["route"]: [one["messages"] for one in way["total"].values()] for way in ways}
        alone, with_credits = messages("good_direct.json"), messages("good_credit.json")
        self.assertEqual(len(alone), 5)
        for route, counts in alone.items():  # an empty one for each
            self.assertEqual(with_credits[route], [2 * count for count in counts], route)

    def test_the_table_says_the_same(self):
        text = self.run_it("plan", *GRID, "--ranks", 3, "--json", "plan.json").stdout
        report = json.loads(self.content("plan.json"))
        for words in ("poisson2d 12 x 12", "partition", "block", "direct",
                      "proven: every ghost is filled once, from its owner, on all 3 ranks"):
            self.assertIn(words, text)
        self.assertEqual(report["ranks"], 3)

    def test_layout_options_reach_the_plan(self):
        halves = "\n".join("0" if i < 72 else "1" for i in range(144)) + "\n"
        self.write("halves.txt", halves)
        words = (*GRID, "--ranks", 2)
        self.assertEqual(self.plan(*words, "--partition", "file:halves.txt")["total"]["sent"]["bytes_inside_nodes"],
                         2 * 12 * 8)
        for option, one, other in (("--slices", "2", "3"), ("--row-lanes", "1", "4"), ("--block-size", "1", "2")):
            with self.subTest(option=option):
                shown = []
                for value in (one, other):
                    text = self.run_it("plan", *words, option, value, "--save", value + ".json").stdout
                    shown += [line for line in text.splitlines() if line.startswith("  sweep")]
                self.assertNotEqual(*shown)  # two lines, one a call
                self.assertEqual(self.content(one + ".json"), self.content(other + ".json"))  # no part of an exchange
        self.run_it("generate", "circuit", "--size", "40", "-o", "A.mtx")
        cuts = {self.plan("A.mtx", "--ranks", 5, "--partition", "metis", "--seed", seed)["total"]["ghosts"]
                for seed in (1, 2, 3, 4, 5, 6)}
        self.assertGreater(len(cuts), 1)
        for option in ("--format", "--columns"):  # no part of a plan
            self.assertIn(option, self.refused(2, "plan", *words, option, "auto"))

    def test_saved_and_loaded(self):
        self.run_it("plan", *GRID, "--ranks", 5, "--ranks-per-node", 2, "--save", "first.json", "--json", "first.table")
        text = self.run_it("plan", "--load", "first.json", "--save", "second.json", "--json", "second.table").stdout
        self.assertIn("proven", text)
        self.assertEqual(self.content("first.json"), self.content("second.json"))
        self.assertEqual(self.content("first.table"), self.content("second.table"))
        self.assertEqual(json.loads(self.content("first.json"))["version"], 4)

    def test_damaged_plans(self):
        self.run_it("plan", *GRID, "--ranks", 2, "--save", "plan.json")
        whole = self.content("plan.json").decode()
        for name, text in (("cut.json", whole[:len(whole) // 2]), ("empty.json", ""), ("list.json", "[]"),
                           ("version.json", whole.replace('"version":4', '"version":99')),
                           ("old.json", whole.replace('"version":4', '"version":2'))):
            with self.subTest(name=name):
                self.write(name, text)
                self.assertTrue(self.refused(3, "plan", "--load", name).startswith(name))
        self.assertIn("$.version: 2 is of an earlier hostless, this one reads version 4 only (the plan cannot be used). "
                      "Write the plan again with 'hostless plan'", self.refused(3, "plan", "--load", "old.json"))
        self.assertIn("nowhere.json", self.refused(3, "plan", "--load", "nowhere.json"))

    def test_a_plan_that_is_not_proven_has_no_price(self):
        self.run_it("plan", *GRID, "--ranks", 4, "--ranks-per-node", 2, "--route", "two_step", "--save", "plan.json")
        plan = json.loads(self.content("plan.json"))
        plan["plans"][-1]["stages"] = []
        self.write("plan.json", json.dumps(plan))
        for words in ((), ("--machine", "lassen", "--json", "report.json")):
            with self.subTest(words=words):
                says = self.run_it("plan", "--load", "plan.json", *words, code=3).stderr
                self.assertRegex(says, "^hostless: check ")
        self.assertNotIn("prices", json.loads(self.content("report.json")))

    def test_a_saved_plan_takes_no_option_that_would_make_one(self):
        self.run_it("plan", *GRID, "--save", "plan.json")
        for words in (("A.mtx",), ("--generate", "poisson2d"), ("--preset", "flan"), ("--size", "3"), ("--scale", "1"),
                      ("--contrast", "2"), ("--boundary", "neumann"), ("--long-edges", "0"), ("--time-step", "1"),
                      ("--seed", "2"), ("--ranks", "2"), ("--block-size", "1"),
                      ("--partition", "metis"), ("--slices", "2"), ("--row-lanes", "2"), ("--route", "direct"),
                      ("--ranks-per-node", "1")):
            with self.subTest(words=words):
                self.assertIn("--load excludes", self.refused(2, "plan", "--load", "plan.json", *words))


class Doctor(Command):
    def test_report(self):
        report = self.json_of("doctor", "--seconds", "0.01")
        self.assertEqual(report["version"], 1)
        self.assertEqual(report["program"], self.run_it("--version").stdout.strip())
        for name in ("threads", "processes"):
            self.assertEqual(report["transports"][name]["host"], "native")
            self.assertEqual(report["transports"][name]["stream"], "absent")
        self.assertEqual({one["vendor"] for one in report["mpi"]}, {"openmpi", "mpich"})
        for one in report["mpi"]:  # found, or what is missing
            self.assertNotEqual(one["library"] == "", one["problem"] == "")
        machine = json.dumps(report["machine"])
        self.assertIn(str(len(os.sched_getaffinity(0))), machine)

    def test_text_and_file(self):
        text = self.run_it("doctor", "--seconds", "0.01", "--json", "report.json").stdout
        report = json.loads(self.content("report.json"))
        for words in (report["program"], "threads", "processes", "mpi", "bandwidth"):
            self.assertIn(words, text)
        for one in report["mpi"]:
            self.assertIn(one["library"] or one["problem"], text)

    def test_what_is_missing_and_the_package_that_brings_it(self):
        alone = shutil.copy(COMMAND, self.folder)  # away from its plugins
        text = self.run_it("doctor", "--seconds", "0.01", program=alone).stdout
        for words in ("missing: openmpi", "libopenmpi-dev", "missing: mpich", "libmpich-dev"):
            self.assertIn(words, text)
        says = self.refused(4, "solve", *GRID, "--transport", "mpi", "--ranks", 2, program=alone)
        self.assertTrue(says.startswith("no usable MPI."), says)


if __name__ == "__main__":
    unittest.main()

"""`hostless machine`: files, prices, fits."""

import json
import os
import unittest
from pathlib import Path

from hostless_command import Command, idle

MEASURED = Path(__file__).resolve().parents[1] / "data" / "measurements"
PATTERN = ("--locality", "off-node", "--memory", "host")


class Machine(Command):
    def price(self, *words, machine="lassen", pattern=PATTERN):
        return self.json_of("machine", "price", "--machine", machine, *pattern, *words)

    def test_shipped_machines_are_listed_and_shown(self):
        listed = {entry["name"]: entry for entry in self.json_of("machine", "list")["machines"]}
        self.assertLessEqual({"lassen", "summit", "frontier", "tuolumne", "lumi", "marenostrum5", "hgx-a100", "mi250-node", "dgx-h200"}, set(listed))
        self.assertEqual([listed[name]["has_costs"] for name in ("lassen", "frontier", "lumi")], [True, True, False])
        self.assertRegex(self.run_it("machine", "list").stdout, r"lumi .*of memory; no data of messages\)\n")
        shown = self.run_it("machine", "show", "lumi").stdout
        self.assertIn("messages   no data", shown)
        self.assertIn("2978 nodes", shown)
        self.assertIn("1.89 us", self.run_it("machine", "show", "lassen").stdout)  # table 2, as published

    def test_a_file_is_what_was_shown(self):
        self.run_it("machine", "show", "lassen", "--json", "own.json")
        again = self.run_it("machine", "show", "./own.json", "--json", "-").stdout
        self.assertEqual(again.encode(), self.content("own.json"))
        words = ("--bytes", 4096, "--messages", 8)
        self.assertEqual(self.price(*words, machine="own.json")["seconds"], self.price(*words)["seconds"])

    def test_prices(self):
        one = self.price("--bytes", 524288)
        self.assertEqual((one["machine"], one["locality"], one["memory"], one["protocol"]), ("lassen", "off_node", "host", "rendezvous"))
        self.assertAlmostEqual(one["seconds"] / 45.3e-6, 1, delta=0.05)          # lassen_ping_pong
        many = self.price("--bytes", 524288, "--active-ranks", 20)
        self.assertAlmostEqual(many["seconds"] / 432e-6, 1, delta=0.1)           # lassen_maxrate
        self.assertEqual(many["bound_by"], "injection")
        several = self.price("--bytes", 256, "--messages", 20)
        self.assertAlmostEqual(several["seconds"] / 24.7e-6, 1, delta=0.15)      # lassen_mult_pong
        gpu = self.price("--bytes", 524288, pattern=("--locality", "on_socket", "--memory", "gpu"))
        self.assertAlmostEqual(gpu["seconds"] / 25.8e-6, 1, delta=0.05)
        packed = self.price("--bytes", 1048576, machine="frontier", pattern=("--locality", "off-node", "--memory", "gpu"))
        self.assertAlmostEqual(packed["seconds"] / 67.2e-6, 1, delta=0.05)       # frontier_ping_pong
        text = self.run_it("machine", "price", "--machine", "lassen", *PATTERN, "--bytes", 8).stdout
        self.assertIn("source: fitted by", text)
        alone = self.run_it("machine", "price", "--machine", "lassen", *PATTERN, "--bytes", 8, "--json").stdout
        self.assertEqual(json.loads(alone)["seconds"], self.price("--bytes", 8)["seconds"])

    def test_what_cannot_be_priced(self):
        words = ("machine", "price", *PATTERN, "--bytes", 8)
        self.assertIn("no data of off_node messages", self.run_it(*words, "--machine", "lumi", code=3).stderr)
        self.assertIn("Did you mean 'lassen'?", self.run_it(*words, "--machine", "lasen", code=2).stderr)
        self.run_it(*words, "--machine", "./none.json", code=3)
        for wrong in (("--bytes", -1), ("--messages", 0), ("--active-ranks", 1.5), ("--locality", "rack"), ("--memory", "disk")):
            self.run_it(*words, "--machine", "lassen", *wrong, code=2)

    def test_malformed_files_are_refused_in_one_line(self):
        self.run_it("machine", "show", "lassen", "--json", "good.json")
        good = json.loads(self.content("good.json"))
        good["injection"][0]["limits"][0]["s_per_byte"] = 2.4e10
        self.write("rate.json", json.dumps(good, indent=1))
        error = self.run_it("machine", "show", "rate.json", code=3).stderr
        self.assertRegex(error, r"^hostless: rate.json:\d+: injection/0/limits/0/s_per_byte: 24000000000.0 cannot be seconds a byte")
        self.assertEqual(error.count("\n"), 1)
        for text in ("", "{", "[1]", '{"format": "hostless-machine"}', "\0"):
            self.write("bad.json", text)
            error = self.run_it("machine", "show", "bad.json", code=3).stderr
            self.assertRegex(error, r"^hostless: bad.json:\d+: ")
            self.assertEqual(error.count("\n"), 1)

    def test_closed_forms(self):
        words = ("machine", "forms", "--machine", "lassen", "--messages", 256, "--bytes", 1024, "--nodes", 16)
        report = self.json_of(*words)
        self.assertEqual(report["message_cap_bytes"], 8192)
        self.assertEqual(report["symbols"]["s_node_to_node"], 16384)
        forms = {(form["strategy"], form["staged"], form["reading"]): form for form in report["forms"]}
        self.assertEqual(len(forms), 20)
        # postal model (2.1) with table 2: 64 messages of a GPU, eager
        self.assertAlmostEqual(forms["standard", False, "literal"]["seconds"], 64 * 8.95e-6 + 65536 * 1.72e-10, delta=1e-12)
        for form in forms.values():
            self.assertAlmostEqual(form["seconds"], form["off_node_s"] + form["on_node_s"] + form["copies_s"], delta=1e-15)
        fewer = {(form["strategy"], form["staged"], form["reading"]): form for form in self.json_of(*words, "--duplicates", 0.25)["forms"]}
        self.assertEqual(fewer["standard", True, "chosen"], forms["standard", True, "chosen"])
        self.assertLess(fewer["two_step_one", False, "chosen"]["seconds"], forms["two_step_one", False, "chosen"]["seconds"])
        self.assertIn("device-aware", self.run_it(*words).stdout)
        self.run_it(*words, "--duplicates", 1, code=2)
        self.assertIn("no data", self.run_it("machine", "forms", "--machine", "lumi", code=3).stderr)

    def halo(self, *words):
        return self.json_of("machine", "halo", "--machine", "lassen", *words)

    def test_the_halo_of_many_ranks_needs_no_matrix(self):
        # 8 x 8 x 8 boxes of 32^3 cells: 7 cuts of 64 faces along each axis, a message each way.
        report = self.halo("--size", "256,256,256", "--ranks", 512, "--ranks-per-node", 4)
        self.assertEqual((report["ranks_along"], report["nodes"]), ([8, 8, 8], 128))
        ways = {way["route"]: way for way in report["ways"]}
        self.assertEqual(set(ways), {"direct", "two_step", "three_step", "split", "leader"})
        for route in ("split", "leader"):  # they cut strips: too many cells for seconds
            self.assertIn("not counted", ways.pop(route)["problem"])
        total = ways["direct"]["total"].values()
        self.assertEqual(sum(spans["messages"] for spans in total), 2 * 3 * 7 * 64)
        self.assertEqual(sum(spans["bytes"] for spans in total), 2 * 3 * 7 * 64 * 32 * 32 * 8)
        # A node is 4 boxes of a row: of its 18 faces outwards 16 are along the row.
        self.assertEqual(ways["direct"]["most_node_bytes"], 17 * 32 * 32 * 8)
        self.assertEqual(ways["three_step"]["most"]["off_node"]["messages"], 2)
        for way in ways.values():
            self.assertAlmostEqual(sum(way["terms"].values()), way["seconds"], delta=1e-12)
            self.assertEqual((len(way["ready_s"]), max(way["ready_s"])), (512, way["seconds"]))
        self.assertEqual(report["cheapest"]["route"], min(ways, key=lambda route: ways[route]["seconds"]))

    def test_two_boxes_are_priced_by_hand(self):
        # One face of 16 x 16 cells of 24 bytes each way, between nodes: the price of one message.
        words = ("--size", "16,16,32", "--ranks", 2, "--ranks-per-node", 1, "--item-bytes", 24)
        one = self.price("--bytes", 16 * 16 * 24)["seconds"]
        self.assertAlmostEqual(self.halo(*words)["ways"][0]["seconds"] / one, 1, delta=1e-9)
        two = self.price("--bytes", 2 * 16 * 16 * 24)["seconds"]
        self.assertAlmostEqual(self.halo(*words, "--depth", 2)["ways"][0]["seconds"] / two, 1, delta=1e-9)
        self.assertEqual([way["route"] for way in self.halo(*words)["ways"] if way["seconds"]], ["direct", "two_step", "three_step", "split", "leader"])
        copied = self.halo(*words, "--memory", "gpu")["ways"][1]
        self.assertEqual((copied["path"], copied["route"]), ("staged", "direct"))
        self.assertAlmostEqual(copied["terms"]["copies_s"], 1.295e-5 + 1.286e-5 + 6144 * (1.922e-11 + 2.009e-11), delta=1e-12)
        report = self.halo(*words, "--periodic", "--corners")
        self.assertEqual((report["ranks_per_node"], report["corners"], report["periodic"]), (1, True, True))
        self.assertEqual([self.halo(*words)[key] for key in ("corners", "periodic")], [False, False])
        wraps = report["ways"][0]["total"]
        self.assertEqual(wraps["off_node"], {"messages": 2, "bytes": 2 * 2 * 18 * 18 * 24})  # both sides of a box in one message
        text = self.run_it("machine", "halo", "--machine", "lassen", *words).stdout
        self.assertIn("cheapest: direct (host)", text)
        refused = self.run_it("machine", "halo", "--machine", "lumi", *words, code=3)
        self.assertIn("no data", refused.stderr)
        self.assertEqual(refused.stdout, "")
        flat = ("--size", "64,64", "--ranks", 4)
        self.assertEqual(self.halo(*flat), self.halo("--size", "64x64", "--ranks", 4))
        self.assertIn("letters x", self.refused(2, "machine", "halo", "--machine", "lassen", "--size", "64x", "--ranks", 4))
        self.assertEqual(self.halo(*flat)["ranks_along"], [2, 2])
        self.assertIn("64 x 64 cells in 2 x 2 boxes", self.run_it("machine", "halo", "--machine", "lassen", *flat).stdout)
        for wrong in (("--size", "1,2,3,4"), ("--size", "0"), ("--ranks", 0), ("--depth", 99), ("--memory", "disk"), ("--item-bytes", -1)):
            self.run_it("machine", "halo", "--machine", "lassen", *words, *wrong, code=2)

    def figure(self, number, *words, machine="lassen"):
        return self.json_of("machine", "figures", "--machine", machine, "--figure", number, *words)

    def test_figures_as_data(self):
        scenarios = self.figure("4.3")
        literal, chosen = scenarios["pictures"]
        self.assertEqual([len(picture["fields"]) for picture in (literal, chosen)], [8, 8])
        for field in chosen["fields"]:
            lines = {line["label"]: line for line in field["lines"]}
            self.assertLessEqual({"2-Step All", "2-Step 1", "2-Step 1, device-aware", "Split+DD"}, set(lines))
            self.assertFalse(any(lines["2-Step 1"]["marked"]) or any(lines["2-Step 1, device-aware"]["marked"]))
            for marks in zip(*(line["marked"] for line in lines.values())):
                self.assertEqual(sum(marks), 1)  # one minimum a size
        priced = self.json_of("machine", "forms", "--machine", "lassen", "--messages", 32, "--bytes", 1024, "--nodes", 4)["forms"]
        wanted = [form["seconds"] for form in priced if (form["strategy"], form["staged"], form["reading"]) == ("three_step", True, "chosen")]
        line = {one["label"]: one for one in chosen["fields"][0]["lines"]}["3-Step"]
        self.assertEqual([line["y"][line["x"].index(1024)]], wanted)
        localities = self.figure("2.5")["pictures"][0]["fields"]
        self.assertEqual([[line["label"] for line in field["lines"]] for field in localities], 2 * [["on_socket", "on_node", "off_node"]])
        shared = self.figure("2.6")["pictures"][0]["fields"][0]["lines"]
        self.assertEqual([line["label"] for line in shared], ["1 rank", *(f"{n} ranks" for n in (2, 4, 8, 16, 32, 40))])
        self.assertEqual(len(self.figure("3.1")["pictures"][0]["fields"][0]["lines"]), 4)

    def test_a_figure_of_a_matrix(self):
        # A chain in blocks of rows: each node sends one value to each neighbour.
        report = self.figure("4.2", "--generate", "poisson1d", "--size", 400, "--gpus", "4,8,12")
        symbols = [entry["symbols"] for entry in report["patterns"]]
        self.assertEqual([s["s_node"] for s in symbols], [0, 8, 16])
        self.assertEqual((symbols[2]["s_proc"], symbols[2]["m_node"], symbols[2]["m_proc"], symbols[2]["kept"]), (8, 2, 1, 1))
        lines = report["pictures"][0]["fields"][0]["lines"]
        self.assertEqual(lines[0]["x"], [8, 12])
        self.run_it("machine", "figures", "--machine", "lassen", "--figure", "4.2", "--generate", "poisson1d", "--json", "-", code=2)
        self.run_it("machine", "figures", "--machine", "lassen", "--gpus", "4", "--json", "-", code=2)
        for word, value in (("--size", 9), ("--contrast", 4), ("--seed", 2), ("--scale", 0.5), ("--boundary", "neumann")):
            refused = self.run_it("machine", "figures", "--machine", "lassen", word, value, "--json", "-", code=2)
            self.assertIn(f"{word} with figure 4.3", refused.stderr)
        self.run_it("machine", "figures", "--machine", "lassen", code=2)
        self.run_it("machine", "figures", "--machine", "lassen", "--output", "a.png", code=2)
        literal = ("machine", "figures", "--machine", "lassen", "--reading", "literal")
        self.assertIn("--output", self.run_it(*literal, "--json", "-", code=2).stderr)  # JSON has both
        self.assertIn("--reading with figure 3.1", self.run_it(*literal, "--figure", "3.1", "--output", "a.svg", code=2).stderr)
        self.assertIn("nothing to draw", self.run_it("machine", "figures", "--machine", "lumi", "--figure", "2.5", "--json", "-", code=3).stderr)

    def test_a_picture_needs_python(self):
        words = ("machine", "figures", "--machine", "lassen", "--output", "a.svg")
        self.assertIn("no-python: ", self.run_it(*words, code=4, environment={"HOSTLESS_PYTHON": "no-python"}).stderr)
        self.assertEqual(list(self.folder.glob("a.svg*")), [])

    def test_this_machine_is_measured(self):
        words = ("machine", "measure", "--ranks", 2, "--seconds", 0.5, "--samples", "times.csv")
        done = self.run_it(*words)
        self.assertIn("1 of ", done.stderr)  # progress
        self.assertIn("prices of the", done.stdout)
        head, *times = self.content("times.csv").decode().splitlines()
        # This machine may be busy: what follows is fitted to the times of an idle one.
        times = [idle(line) for line in times]
        self.write("times.csv", "\n".join([head, *times]) + "\n")
        done = self.run_it(*words, "--resume", "--quiet", "--output", "here.json", "--name", "mine")
        self.assertEqual(done.stderr, "")
        self.assertEqual(head, "series,memory,locality,bytes,messages,active_ranks,seconds")
        self.assertEqual(len(times), 61)
        sizes = {int(line.split(",")[3]) for line in times if line.startswith("ping_pong")}
        self.assertEqual(sizes, {2 ** k for k in range(21)})
        made = json.loads(self.content("here.json"))
        self.assertEqual(made["name"], "mine")
        # Sums of two ranks on one node; of nodes nothing is known.
        (sums,) = made["sums"]
        self.assertEqual((sums["memory"], sums["between_nodes_s"]), ("host", "no data"))
        self.assertTrue(1e-8 < sums["on_node_s"] < 0.1)
        (memory,) = made["memory"]
        self.assertEqual(memory["memory"], "host")
        threads = max(2, len(os.sched_getaffinity(0)))  # together the ranks keep all processors busy that they may use
        self.assertIn(f"read by {threads} threads of all 2 ranks", made["sources"][memory["source"]])
        self.assertTrue(1e8 < memory["least_bytes_per_s"] <= memory["bytes_per_s"] <= memory["most_bytes_per_s"] < 1e13, memory)
        solves = ("predict", "--generate", "poisson7", "--size", 64, "--machine", "here.json", "--nodes", 1)
        predicted = self.json_of(*solves, "--memory", "host", "--ranks-per-node", 2)
        self.assertEqual((predicted["memory"], predicted["sums"], predicted["ranks_per_node"]), ("host", "host", 2))
        (point,) = predicted["points"]
        self.assertAlmostEqual(point["terms"]["vectors_s"] * memory["bytes_per_s"] / (72 * 64**3), 1)
        self.assertAlmostEqual(point["terms"]["sums_on_node_s"] / (2 * sums["on_node_s"]), 1)
        self.assertIn("Use --memory host", self.run_it(*solves, code=3).stderr)
        self.assertIn("Drop one", self.run_it(*solves, "--gpus-per-node", 1, "--ranks-per-node", 1, code=2).stderr)
        self.assertIn("Use --ranks-per-node", self.run_it(*solves, "--memory", "host", "--gpus-per-node", 1, code=2).stderr)
        self.assertIn("no GPU has anything to add", self.run_it(*solves, "--memory", "host", "--ranks-per-node", 2, "--sums", "gpu", code=2).stderr)
        self.assertIn("no data of nodes", self.run_it("machine", "show", "here.json").stdout)
        summed = ("predict", "collective", "--machine", "here.json", "--pattern", "allreduce", "--ranks-per-node", 2)
        self.assertAlmostEqual(self.json_of(*summed, "--nodes", 1)["points"][0]["seconds"] / sums["on_node_s"], 1)
        self.assertIn("has 2", self.run_it(*summed[:-1], 4, "--nodes", 1, code=2).stderr)
        self.assertIn("nor of off_node messages", self.run_it(*summed, "--nodes", 2, code=3).stderr)
        where = times[0].split(",")[2]
        one = self.price("--bytes", 1024, machine="here.json", pattern=("--locality", where, "--memory", "host"))
        self.assertGreater(one["seconds"], 0)
        # What is there is kept to the last digit, what is missing is timed.
        self.write("times.csv", "\n".join([head, *times[:40]]) + "\n")
        again = self.run_it(*words, "--resume", "--quiet", "--json", "-")
        self.assertGreater(len(json.loads(again.stdout)["pieces"]), 1)
        lines = self.content("times.csv").decode().splitlines()[1:]
        self.assertLessEqual(set(times[:40]), set(lines))
        self.assertEqual(len(lines), 61)
        self.write("times.csv", "\n".join([head, *lines[:29], *lines[30:]]) + "\n")  # one of the middle
        self.run_it(*words, "--resume", "--quiet")
        lines = self.content("times.csv").decode().splitlines()[1:]
        self.assertEqual(len(lines), 61)
        self.assertIn("--samples times.csv is there", self.run_it(*words, code=2).stderr)  # nothing is lost
        of_others = self.run_it("machine", "measure", "--ranks", 3, "--samples", "times.csv", "--resume", code=2).stderr
        self.assertIn("times.csv:2: 'ping_pong of 2 ranks on 1 nodes by threads from ", of_others)
        self.assertEqual(self.content("times.csv").decode().splitlines()[1:], lines)
        self.assertIn("both standard output", self.run_it("machine", "measure", "--ranks", 2, "--output", "-", "--json", "-", code=2).stderr)

    def test_over_processes_and_what_cannot_be_measured(self):
        done = self.run_it("machine", "measure", "--ranks", 3, "--transport", "processes", "--seconds", 0.3, "--quiet")
        self.assertIn("following", done.stdout)
        self.assertIn("one rank", self.run_it("machine", "measure", "--ranks", 1, code=2).stderr)
        self.run_it("machine", "measure", "--ranks", 2, "--resume", code=2)
        self.write("bad.csv", "x\n")
        self.assertIn("bad.csv:1", self.run_it("machine", "measure", "--ranks", 2, "--samples", "bad.csv", "--resume", code=3).stderr)

    def test_machines_are_compared(self):
        report = self.json_of("machine", "compare", "lassen", "frontier")
        self.assertEqual(report["machines"], ["lassen", "frontier"])
        rows = {(row["locality"], row["memory"], row["bytes"]): row["seconds"] for row in report["messages"]}
        self.assertEqual(rows["off_node", "host", 8][0], self.price("--bytes", 8)["seconds"])
        self.assertIsNone(rows["off_node", "host", 8][1])
        self.assertGreater(rows["off_node", "gpu", 8][1], rows["off_node", "gpu", 8][0])
        self.assertIn("no data", self.run_it("machine", "compare", "lassen", "frontier").stdout)
        self.run_it("machine", "compare", "lumi", "tuolumne", code=3)
        self.run_it("machine", "compare", "lassen", code=2)
        for words in (("compare", "lassen", "frontier"), ("show", "lassen")):
            self.run_it("machine", *words, "--plot", "a.svg", code=4, environment={"HOSTLESS_PYTHON": "no-python"})
        self.run_it("machine", "show", "lumi", "--plot", "a.svg", code=3)

    def test_a_fit_makes_a_file(self):
        fitted = self.json_of("machine", "fit", MEASURED / "lassen_messages.csv", MEASURED / "lassen_copies.csv", "--machine", "lassen",
                              "--output", "fitted.json", "--name", "mine", "--source", "seen in 2021")
        self.assertEqual((fitted["short_up_to_bytes"], fitted["eager_up_to_bytes"]), (128, 8192))
        self.assertLess(fitted["errors"]["median"], 0.05)
        for piece in fitted["pieces"]:
            self.assertGreaterEqual(piece["worst_residual"], piece["median_residual"])
        made = json.loads(self.content("fitted.json"))
        self.assertEqual((made["name"], made["sources"]["fit"]), ("mine", "seen in 2021"))
        words = ("--bytes", 65536, "--messages", 3, "--active-ranks", 7)
        self.assertAlmostEqual(self.price(*words, machine="fitted.json")["seconds"] / self.price(*words)["seconds"], 1, delta=0.01)
        given = self.json_of("machine", "fit", MEASURED / "lassen_messages.csv", "--machine", "lassen", "--short-up-to", 512, "--eager-up-to", 4096)
        self.assertEqual((given["short_up_to_bytes"], given["eager_up_to_bytes"]), (512, 4096))
        self.write("bad.csv", "series,memory,locality,bytes,messages,active_ranks,seconds\na,host,off_node,8,1,1,0\n")
        self.assertIn("bad.csv:2: 0 cannot be measured seconds", self.run_it("machine", "fit", "bad.csv", "--machine", "lassen", code=3).stderr)
        self.run_it("machine", "fit", "bad.csv", "--machine", "lassen", "--json", "bad.csv", code=2)
        turned = self.run_it("machine", "fit", MEASURED / "lassen_messages.csv", "--machine", "lassen", "--short-up-to", 9000, "--eager-up-to", 512, code=2)
        self.assertIn("short messages up to 9000 bytes and eager ones up to 512", turned.stderr)
        words = ("machine", "fit", MEASURED / "lassen_messages.csv", "--machine", "lassen")
        for option in ("--name", "--source"):
            self.assertIn("--output", self.run_it(*words, option, "mine", code=2).stderr)
        self.assertIn("--name has control", self.run_it(*words, "--output", "x.json", "--name", "a\nb", code=2).stderr)
        self.assertEqual(json.loads(self.run_it(*words, "--output", "-", "--name", "mine").stdout)["name"], "mine")

    def test_a_fit_that_no_reader_takes_is_not_written(self):
        head = "series,memory,locality,bytes,messages,active_ranks,seconds\n"
        self.write("slow.csv", head + "".join(f"a,host,on_node,{bytes},1,1,{5 + 1e-3 * bytes}\n" for bytes in (8, 64, 512, 4096)))
        failed = self.run_it("machine", "fit", "slow.csv", "--machine", "lassen", "--output", "slow.json", code=3).stderr
        self.assertIn("what was fitted is no machine's, and nothing was written to slow.json", failed)
        self.assertNotRegex(failed, r"slow\.json:\d|Correct that line")
        self.assertTrue(failed.rstrip().endswith("Look at the measurements."), failed)
        self.assertFalse((self.folder / "slow.json").exists())

    def test_names_are_for_people(self):
        self.run_it("machine", "show", "lassen", "--json", "good.json")
        named = json.loads(self.content("good.json"))
        named["name"] = "las\x1b[31msen"
        self.write("named.json", json.dumps(named, indent=1))
        self.assertIn("has control characters", self.run_it("machine", "show", "named.json", code=3).stderr)


@unittest.skipUnless(os.environ.get("PUBLISHED_MEASUREMENTS"), "PUBLISHED_MEASUREMENTS names no folder of the published tables")
class Published(unittest.TestCase):
    def test_the_summary_is_of_the_published_tables(self):
        import importlib.util
        spec = importlib.util.spec_from_file_location("summarise", MEASURED / "summarise.py")
        summarise = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(summarise)
        for name, head, lines in summarise.tables(Path(os.environ["PUBLISHED_MEASUREMENTS"])):
            self.assertEqual((MEASURED / name).read_text(), "\n".join((head, *lines)) + "\n", name)


if __name__ == "__main__":
    unittest.main()

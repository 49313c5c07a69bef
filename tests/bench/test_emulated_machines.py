"""bench/emulated_machines.py: ranks on machines of their own, bytes of the links, a latency, and nothing left behind."""

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import neighbor_machines  # noqa: E402
import slow_bridge  # noqa: E402
import stencil_machines  # noqa: E402
from emulated_machines import Machines, missing  # noqa: E402

HOSTLESS = os.environ["HOSTLESS_COMMAND"]
SOLVE = [HOSTLESS, "solve", "--generate", "poisson2d", "--size", "30", "--rtol", "1e-8", "--no-bandwidth", "--quiet"]
ENDLESS = [HOSTLESS, "solve", "--generate", "poisson2d", "--size", "100", "--max-iterations", "1000000000", "--rtol", "0", "--no-bandwidth", "--quiet"]
SIGNALLED = "import sys; from emulated_machines import Machines\nwith Machines(2) as machines:\n print(machines.name, flush=True); sys.stdin.read()"

SIGNALLED_AT_THE_END = """
import os, signal, sys
import emulated_machines
real = emulated_machines.call
def call(*words, **how):
    if "del" in words:
        os.kill(os.getpid(), int(sys.argv[1]))
    return real(*words, **how)
emulated_machines.call = call
with emulated_machines.Machines(2) as machines:
    print(machines.name, flush=True)
print("went on")
"""


def namespaces(name):
    return [line for line in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.splitlines() if line.startswith(name)]


class SlowBridge(unittest.TestCase):
    def test_it_never_sleeps_past_a_frame_and_sleeps_most_of_long_ones(self):
        with select.epoll() as poll:
            for left in (-1, 0, 2e-4, 9e-4, 1.4e-3, 2e-3, 3.3e-3, 1.25e-2):
                slept = []
                for _ in range(50):  # one moment in which nobody else has the processor is enough
                    begin = time.monotonic()
                    poll.poll(slow_bridge.patience(left))
                    slept.append(time.monotonic() - begin)
                self.assertLess(min(slept), max(left, 1e-4))
                self.assertGreaterEqual(max(slept), left - 2e-3)


@unittest.skipIf(missing(), "no machines can be emulated here")
class EmulatedMachines(unittest.TestCase):
    def test_bytes_and_latency_of_links(self):
        size, delay_us = 200000, 2000
        with tempfile.TemporaryDirectory() as folder, Machines(2, "1gbit", delay_us) as machines:
            before = machines.bytes()
            report = Path(folder) / "r.json"
            done = machines.run(
                [HOSTLESS, "bench", "pingpong", "--sizes", str(size), "--steps", "1", "--repeat", "1", "--warm-up", "0", "--json", str(report)], ranks=1
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            row = json.loads(report.read_text())["pingpong"][0]
            self.assertGreaterEqual(row["best_us"], delay_us)
            for (received, sent), (received_before, sent_before) in zip(machines.bytes(), before):
                self.assertGreater(received - received_before, size)
                self.assertGreater(sent - sent_before, size)

    def solve(self, machines, folder, transport):
        """The result, x, and what the link of the first machine has sent meanwhile."""
        report, x = Path(folder) / f"{transport}.json", Path(folder) / f"{transport}.npy"
        before = machines.bytes()[0][1]
        done = machines.run([*SOLVE, "--transport", transport, "--json", str(report), "--output", str(x)], ranks=2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(report.read_text()), x.read_bytes(), machines.bytes()[0][1] - before

    def test_composite_has_equal_bits_and_sends_less(self):
        with tempfile.TemporaryDirectory() as folder, Machines(2) as machines:
            by_reach, x, sent = self.solve(machines, folder, "composite")
            by_mpi, x_by_mpi, sent_by_mpi = self.solve(machines, folder, "mpi")
            self.assertEqual((by_reach["choices"]["transport"], by_reach["choices"]["ranks"]), ("composite", "4"))
            self.assertEqual(by_reach["residual_history"], by_mpi["residual_history"])
            self.assertEqual(x, x_by_mpi)
            self.assertLess(sent, sent_by_mpi)

    def test_a_node_of_two_machines_is_refused(self):
        with Machines(2) as machines:
            done = machines.run([*SOLVE, "--transport", "composite"], ranks=1, environment={"HOSTLESS_COMPOSITE_RANKS_PER_NODE": "2"})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("rank 1 is on node 0 with rank 0, and they run on h2 and h1", done.stderr)

    def test_a_killed_rank_of_another_machine_ends_all(self):
        with tempfile.TemporaryDirectory() as folder, Machines(2) as machines, ThreadPoolExecutor(1) as beside:
            begun = Path(folder) / "c"
            words = [*ENDLESS, "--transport", "composite", "--checkpoint", str(begun), "--checkpoint-every", "20"]
            ending = beside.submit(machines.run, words, ranks=2)
            while not begun.exists() and not ending.done():
                time.sleep(0.05)
            self.assertTrue(begun.exists(), ending.result() if ending.done() else "")
            for process in subprocess.run(["ip", "netns", "pids", machines.spaces[1]], capture_output=True, text=True).stdout.split():
                if Path(f"/proc/{process}/cmdline").read_bytes().startswith(f"{HOSTLESS}\0solve".encode()):
                    os.kill(int(process), signal.SIGKILL)
                    break
            else:
                self.fail("no rank is on the second machine")
            self.assertNotEqual(ending.result().returncode, 0)

    def test_ranks_are_on_machines_of_their_own(self):
        with Machines(2) as machines:
            done = machines.run(["sh", "-c", "echo $(hostname) $SAID"], ranks=1, environment={"SAID": "word"})
            self.assertEqual(sorted(done.stdout.splitlines()), ["h1 word", "h2 word"], done.stderr)
            self.assertNotEqual(machines.run(["false"], ranks=1).returncode, 0)

    def test_errors_leave_nothing(self):
        with self.assertRaises(ZeroDivisionError), Machines(2) as machines:
            self.assertEqual(len(namespaces(machines.name)), 3)
            raise ZeroDivisionError
        self.assertEqual(namespaces(machines.name), [])
        with self.assertRaises(OSError), Machines(2, rate="fast"):
            self.fail("tc knows no such rate")
        self.assertEqual(namespaces(f"hostless{os.getpid()}n"), [])

    def test_a_run_that_takes_too_long_leaves_no_ranks(self):
        with Machines(2) as machines:
            with self.assertRaises(subprocess.TimeoutExpired):
                machines.run(["sleep", "1000"], ranks=2, timeout=3)
            for space in machines.spaces:
                self.assertEqual(subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True).stdout, "")

    def test_signals_while_all_is_taken_down_come_afterwards(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            words = [sys.executable, "-B", "-c", SIGNALLED_AT_THE_END, str(int(number))]
            child = subprocess.run(words, cwd=BENCH, capture_output=True, text=True, timeout=300)
            self.assertNotEqual(child.returncode, 0)
            self.assertEqual(child.stdout.count("\n"), 1, child.stdout)
            self.assertEqual(namespaces(child.stdout.strip()), [])

    def test_signals_leave_nothing(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            child = subprocess.Popen([sys.executable, "-B", "-c", SIGNALLED], cwd=BENCH, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.addCleanup(child.terminate)
            name = child.stdout.readline().strip()
            self.assertEqual(len(namespaces(name)), 3)
            child.send_signal(number)
            self.assertNotEqual(child.wait(timeout=300), 0)
            self.assertEqual(namespaces(name), [])
            child.stdin.close()
            child.stdout.close()


class StencilMachines(unittest.TestCase):
    """What bench/stencil_machines.py draws and refuses; what it measures takes machines and minutes."""

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_pictures_are_over_what_varies(self):
        def row(rate, delay_us, depth):
            return {"rate": rate, "delay_us": delay_us, "chosen_depth": depth, "chosen_us": 50.0, "one_us": 100.0}

        both = [row(rate, delay_us, 8 + delay_us // 10) for rate in ("1gbit", "10mbit") for delay_us in (0, 500)]
        with tempfile.TemporaryDirectory() as name:
            for rows, words, without in ((both, ("latency of the links", "chosen depth, 10mbit"), "rate of the links"),
                                         (both[::2], ("rate of the links", "10mbit"), "latency of the links")):
                stencil_machines.draw(rows, Path(name) / "a.svg")
                text = (Path(name) / "a.svg").read_text()
                for word in words:
                    self.assertIn(word, text)
                self.assertNotIn(without, text)

    def test_a_latency_that_is_none_is_refused(self):
        for text in ("often", "0,-1", "2e6", "nan"):
            done = subprocess.run([sys.executable, str(BENCH / "stencil_machines.py"), HOSTLESS, f"--delay-us={text}"], capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 2, text)
            self.assertIn(f"'{text}' (microseconds from 0", done.stderr)


class NeighborMachines(unittest.TestCase):
    """What bench/neighbor_machines.py asks for, draws and, of one small product, measures."""

    def test_patterns_are_options(self):
        for pattern, words in (("rsg:0.6", ["--pattern", "rsg", "--density", "0.6"]), ("moore:2:1", ["--pattern", "moore", "--dimension", "2", "--radius", "1"]),
                               ("spmm:crack:64", ["--pattern", "spmm", "crack", "--columns", "64"]), ("spmv:A.mtx", ["--pattern", "spmv", "A.mtx"])):
            self.assertEqual(neighbor_machines.words_of(pattern), words)
        for pattern in ("spmm:crack", "spmv", "ring", "rsg:0.5:1"):
            with self.assertRaisesRegex(SystemExit, "spmv:MATRIX"):
                neighbor_machines.words_of(pattern)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_pictures_have_lines_over_sizes_and_bars_of_products(self):
        def row(way, **more):
            return {"way": way, "bytes": 8, "ratio": 1.5, "library_over_it_with_set_up": 0.5, **more}

        results = [{"pattern": "moore:1:1", "rows": [row("direct")]}, {"pattern": "spmv:crack", "rows": [row("library", gather="blocks"), row("direct", gather="rows")]}]
        with tempfile.TemporaryDirectory() as name:
            neighbor_machines.draw(results, Path(name) / "a.svg")
            text = (Path(name) / "a.svg").read_text()
        for word in ("bytes of a block", "with set-up", "blocks library", "rows direct", "spmv:crack"):
            self.assertIn(word, text)

    def test_auto_is_slower_where_a_bound_says_so(self):
        def slower_by(ratio, high, link=1):
            rows = [{"way": way, "bytes": 8, "ratio": ratio, "link": link, "library_over_it": {"high": high}} for way in ("library", "auto")]
            return neighbor_machines.slower("moore:1:1", rows)

        self.assertEqual(slower_by(0.5, 0.6), ["moore:1:1: auto is slower, 8 bytes: 0.50, at most 0.60"])
        for ratio, high, link in ((0.5, None, 1), (0.5, 0.96, 1), (0.5, 0.6, 0)):  # no bound, 4 %, idle links
            self.assertEqual(slower_by(ratio, high, link), [])

    @unittest.skipIf(missing(), "no machines can be emulated here")
    def test_links_carry_what_is_counted_of_a_product(self):
        with tempfile.TemporaryDirectory() as name:
            report = Path(name) / "r.json"
            done = subprocess.run([sys.executable, str(BENCH / "neighbor_machines.py"), HOSTLESS, "--machines", "2", "--ranks", "1", "--rate", "1gbit", "--patterns", "spmm:ccc_G_06:512",
                                   "--steps", "1", "--repeat", "1", "--json", str(report)], capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("every link carried what was counted", done.stdout)
            links = {link["way"]: link["counted"] for link in json.loads(report.read_text())["results"][0]["links"]}
        block, needed = 192 * 512 * 8, 32 * 512 * 8  # half the corners of the cube, a node of each is next to the other half
        self.assertEqual(links, {"blocks library": [[block] * 2] * 2, "blocks two_step": [[block] * 2] * 2, "rows direct": [[needed] * 2] * 2})


if __name__ == "__main__":
    unittest.main()

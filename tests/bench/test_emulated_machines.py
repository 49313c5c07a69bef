"""bench/emulated_machines.py: ranks on machines of their own, bytes of the links, a latency, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from emulated_machines import Machines, missing  # noqa: E402

HOSTLESS = os.environ["HOSTLESS_COMMAND"]
SIGNALLED = "import sys; from emulated_machines import Machines\nwith Machines(2) as machines:\n print(machines.name, flush=True); sys.stdin.read()"


def namespaces(name):
    return [line for line in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.splitlines() if line.startswith(name)]


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


if __name__ == "__main__":
    unittest.main()

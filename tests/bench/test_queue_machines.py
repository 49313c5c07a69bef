"""Queues over libfabric between two emulated machines: ping-pong, halo, random programs, a bound of starts, and a machine that vanishes."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from emulated_machines import Machines, missing  # noqa: E402

HOSTLESS = os.environ["HOSTLESS_COMMAND"]
CONTRACT = os.environ["QUEUE_CONTRACT"]
# The provider finds a network by itself where there is one with a name; these machines have none.
BY_THE_LINK = {"FI_SOCKETS_IFACE": "eth0"}
PROGRAMS = int(os.environ.get("QUEUE_PROGRAMS", "20"))


@unittest.skipIf(missing(), "no machines can be emulated here")
class QueueMachines(unittest.TestCase):
    """Ranks meet by Open MPI; what their queues start goes by libfabric."""

    @classmethod
    def setUpClass(cls):
        said = subprocess.run([HOSTLESS, "doctor"], capture_output=True, text=True, timeout=300, check=False).stdout
        for what, found in (("ofi", "ofi +found"), ("Open MPI", "mpi +found: openmpi")):
            if not re.search(found, said):
                raise unittest.SkipTest(f"no {what} between machines here")
        cls.machines = Machines(2)
        cls.machines.__enter__()
        cls.addClassCleanup(cls.machines.__exit__)

    def run_it(self, *words, ranks=1):
        """What it printed, and the fewest bytes that the link of a machine has received or sent meanwhile."""
        before = self.machines.bytes()
        done = self.machines.run([str(word) for word in words], ranks, environment=BY_THE_LINK, timeout=600 + PROGRAMS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, min(now - then for of_now, of_then in zip(self.machines.bytes(), before) for now, then in zip(of_now, of_then))

    def bench(self, *words, ranks=1):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "r.json"
            more = ("--queue", "ofi", "--transport", "mpi", "--steps", 2, "--repeat", 1, "--warm-up", 0, "--json", report)
            crossed = self.run_it(HOSTLESS, "bench", *words, *more, ranks=ranks)[1]
            return json.loads(report.read_text()), crossed

    def contract(self, *words, ranks=1):
        said, crossed = self.run_it(CONTRACT, "--as-rank", "openmpi", "ofi", *words, ranks=ranks)
        self.assertEqual(said.count("kept queue;"), 2 * ranks, said)
        print(f"{2 * ranks} ranks on two machines, {words[0]}: at least {crossed} bytes each way over each link. {said.splitlines()[0]}")
        return crossed

    # What is answered is compared by the program itself, after every size.
    def test_ping_pong(self):
        size = 200000
        report, crossed = self.bench("pingpong", "--sizes", f"8,{size}")
        self.assertEqual((report["queue"], report["ranks"]), ("ofi", 2))
        self.assertEqual([(row["bytes"], row["by"]) for row in report["pingpong"]], [(b, by) for b in (8, size) for by in ("standard", "ready", "host")])
        self.assertGreater(crossed, 3 * 2 * size)

    def test_halo(self):
        report, crossed = self.bench("halo", "--generate", "poisson2d", "--size", 64, "--fields", 4, ranks=2)
        self.assertEqual((report["queue"], report["ranks"], report["route"]), ("ofi", 4, "direct"))
        self.assertGreater(report["standard"]["best_us"], 0)
        self.assertGreater(crossed, 2 * 2 * 64 * 4 * 8)  # two steps by each of both: a line of cells

    def test_random_programs(self):
        for ranks, programs in ((1, (PROGRAMS + 1) // 2), (2, PROGRAMS // 2)):
            self.contract("random", 2000000 * ranks, programs, f"tests/bench/test_queue_machines.py, {2 * ranks} ranks", ranks=ranks)

    # Twice 100,000 bytes go each way, which no other library carries.
    def test_starts_in_flight_are_bounded(self):
        self.assertGreater(self.contract("bounded"), 2 * 100000)


if __name__ == "__main__":
    unittest.main()

"""bench/model: half of what GPUs were measured to take is predicted from the other half; routes between machines are judged by their prices."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench" / "model"))

import emulated_routes  # noqa: E402

HAS_SCIPY = importlib.util.find_spec("scipy") is not None
HOSTLESS = os.environ["HOSTLESS_COMMAND"]
# name, rows, megabytes of the matrix, kilobytes of a rank's halo
MATRICES = (("a", 204304, 6.5, 3.6), ("b", 1585081, 38, 10), ("c", 2097152, 67, 131), ("d", 390000, 240, 13), ("e", 512000, 54, 51), ("f", 1000000, 32, 8))


def table(folder, us):
    """Files of tables of one GPU and two; `us` says what a cell takes, of run, transport, GPUs, sums, megabytes moved and kilobytes of the halo."""
    files = []
    for start, by in (("threads", ("peer", "nccl", "host")), ("processes", ("nvshmem",)), ("mpi", ("host", "mpi"))):
        for gpus in (1, 2):
            rows = []
            for name, n, megabytes, halo in MATRICES:
                for method, vectors in (("cg", 88), ("pipelined-cg", 128)):
                    for run in ("persistent", "graph", "stream"):
                        for transport in by if gpus == 2 else ("peer",):
                            row = {"matrix": name, "method": method, "run": run, "gpus": gpus, "gpu_transport": transport}
                            if run == "persistent" and transport in ("nccl", "host", "mpi"):
                                rows.append(row | {"error": "the persistent run with GPU transport"})
                                continue
                            bytes_moved = megabytes * 1e6 + vectors * n
                            best = us(run, transport, gpus, 2 if method == "cg" else 1, bytes_moved / gpus / 1e6, halo)
                            rows.append(row | {"best_us": best, "rows": n, "bytes_per_iteration": bytes_moved, "halo_bytes_per_iteration": 1e3 * halo * gpus * (gpus > 1)})
            if gpus == 2 or start == "threads":
                files.append(str(pathlib.Path(folder) / f"table-{start}-{gpus}.json"))
                pathlib.Path(files[-1]).write_text(json.dumps({"transport": start, "gpus": gpus, "solves": rows}))
    return files


def made_up(noise):
    waits = {"peer": 9, "nccl": 30, "nvshmem": 25, "host": 28, "mpi": 150}

    def us(run, transport, gpus, sums, megabytes, halo):
        alone = {"persistent": 2.5, "graph": 4, "stream": 5}[run] * (sums + 1) + 0.25 * megabytes
        if gpus == 1:
            return alone * noise()
        between = 3 if run == "persistent" else waits[transport] + (4 if run == "graph" else 12) * sums
        return (alone + between + 0.02 * halo) * noise()

    return us


@unittest.skipUnless(HAS_SCIPY, "no scipy here")
class GpuPredicted(unittest.TestCase):
    def predicted(self, us, *words):
        import gpu_predicted

        with tempfile.TemporaryDirectory(prefix="hostless-") as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            report = pathlib.Path(folder) / "r.json"
            code = gpu_predicted.main([*table(folder, us), "--json", str(report), *words])
            return code, said.getvalue(), json.loads(report.read_text())

    def test_costs_that_add_up_are_predicted(self):
        noise = random.Random(3)
        code, said, report = self.predicted(made_up(lambda: noise.uniform(0.97, 1.03)))
        self.assertEqual(code, 0, said)
        self.assertLess(report["median_off"], 0.06)
        fitted = sum(cell["fitted"] for cell in report["cells"])
        self.assertAlmostEqual(fitted / len(report["cells"]), 0.5, delta=0.1)
        for way in (("graph", "nccl"), ("stream", "mpi GPU-aware"), ("persistent", "nvshmem"), ("graph", "mpi staged"), ("stream", "alone")):
            self.assertIn(way, {(cell["run"], cell["transport"]) for cell in report["cells"] if not cell["fitted"]})
        self.assertIn("at most 10 %", said)

    def test_what_follows_no_model_is_said(self):
        noise = random.Random(5)
        code, said, report = self.predicted(made_up(lambda: noise.choice((0.3, 1, 3))))
        self.assertEqual(code, 1)
        self.assertGreater(report["median_off"], 0.1)
        self.assertIn("more than 10 %", said)

    def test_few_measurements_are_refused(self):
        import gpu_predicted

        with tempfile.TemporaryDirectory(prefix="hostless-") as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            path = pathlib.Path(folder) / "t.json"
            path.write_text(json.dumps({"transport": "threads", "gpus": 2, "solves": []}))
            self.assertEqual(gpu_predicted.main([str(path)]), 3)
        self.assertIn("too few", said.getvalue())


class EmulatedRoutes(unittest.TestCase):
    def case(self, times, prices, spread=0.02, network=0.95):
        rows = {route: {"median_us": us, "best_us": us * (1 - spread / 2), "worst_us": us * (1 + spread / 2)} for route, us in times.items()}
        ways = {route: {"seconds": 1e-6 * us, "network_s": network * 1e-6 * us, "chosen": us == min(prices.values())} for route, us in prices.items()}
        return emulated_routes.Case("50mbit", ["--pattern", "rsg", "--density", "0.5"], 4096, rows, ways)

    def test_what_counts_and_what_is_good(self):
        times = dict(zip(emulated_routes.ROUTES, (100, 90, 80, 70, 75)))
        right = self.case(times, dict(zip(emulated_routes.ROUTES, (10, 9, 8, 6, 7))))
        self.assertEqual((right.chosen, right.fastest, right.ratio), ("split", "split", 1))
        near = self.case(times, dict(zip(emulated_routes.ROUTES, (10, 9, 8, 7, 6))))
        self.assertEqual(near.chosen, "leader")
        self.assertAlmostEqual(near.ratio, 75 / 70)
        wrong = self.case(times, dict(zip(emulated_routes.ROUTES, (1, 9, 8, 7, 6))))
        self.assertTrue(right.counts() and wrong.counts())
        self.assertFalse(self.case(times, times, spread=0.2).counts())
        self.assertTrue(self.case(times, times, spread=0.2).counts(any_spread=True))
        self.assertFalse(self.case(times, times, network=0.7).counts(any_spread=True))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertAlmostEqual(emulated_routes.share_of([right, near, wrong], "three"), 2 / 3)
            self.assertIsNone(emulated_routes.share_of([], "none"))
        self.assertIn("in 2 (67 %)", said.getvalue())
        self.assertEqual(len(emulated_routes.patterns(30)), 30)
        self.assertEqual(len({(tuple(words), size) for words, size in emulated_routes.patterns(30)}), 30)

    def test_prices_of_all_routes_are_of_the_link(self):
        with tempfile.TemporaryDirectory(prefix="hostless-") as folder:
            file = pathlib.Path(folder) / "50mbit.json"
            subprocess.run([HOSTLESS, "machine", "show", "lassen", "--json", str(file)], check=True, stdout=subprocess.DEVNULL)
            emulated_routes.with_known_rate(file, "50mbit")
            options = emulated_routes.options_of([HOSTLESS, "--machines", "3", "--ranks", "2"])
            size = 1 << 20
            ways = emulated_routes.predicted(options, pathlib.Path(folder), file, ["--pattern", "rsg", "--density", "1"], size)
            self.assertEqual(set(ways), set(emulated_routes.ROUTES))
            # Each of two ranks sends its block to two machines, once or to each of two ranks there.
            least = 2 * 2 * size * 8 / 50e6
            self.assertAlmostEqual(ways["direct"]["seconds"] / (2 * least), 1, delta=0.02)
            self.assertAlmostEqual(ways["leader"]["seconds"] / least, 1, delta=0.1)
            self.assertGreater(ways["direct"]["network_s"] / ways["direct"]["seconds"], 0.95)


if __name__ == "__main__":
    unittest.main()

"""What judges transports between GPUs, with ranks of the processor in their place: tests/device/every_gpu_transport.py and
same_bits.py, and bench/transport_table.py. Right, and wrong in every way."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = HERE.parent / "device"
sys.path.insert(0, str(HERE.parents[1] / "bench"))

import transport_table  # noqa: E402

STANDS_IN = HERE / "as_if_gpu_transports.py"


def run(script, *words, fault=""):
    """(exit code, what it printed)"""
    done = subprocess.run([sys.executable, "-B", str(DEVICE / script), "--hostless", str(STANDS_IN), *words], text=True,
                          capture_output=True, env={**os.environ, "GPU_FAULT": fault, "GPU_STANDS_FOR": os.environ["HOSTLESS_COMMAND"]}, timeout=600, check=False)
    return done.returncode, done.stdout + done.stderr


class EveryGpuTransport(unittest.TestCase):
    def test_all_gpu_transports_between_processes(self):
        code, text = run("every_gpu_transport.py", "--starts", "processes")
        self.assertEqual(code, 0, text)
        for gpu_transport, equal, refused in (("peer", 180, 90), ("nccl", 140, 130), ("nvshmem", 180, 90), ("host", 140, 130)):
            self.assertIn(f"processes {gpu_transport}: {equal} equal, 0 differs, 0 failed, {refused} refused", text)

    def test_what_is_absent_is_said(self):
        code, text = run("every_gpu_transport.py", "--starts", "mpi", "--gpu-transports", "mpi,host")
        if "not tried" in text:
            self.skipTest(text)
        self.assertEqual(code, 0, text)
        self.assertIn("0 failed, 130 refused; absent: this MPI takes no memory of GPUs", text)

    def test_faults_are_found(self):
        for fault, count in (("nccl:bits", "nccl: 0 equal, 140 differs, 0 failed"), ("host:refuse", "host: 70 equal, 0 differs, 70 failed"),
                             ("nccl:lose", "nccl: 0 equal, 0 differs, 270 failed"),
                             ("host:solve", "host: 140 equal, 0 differs, 70 failed")):
            with self.subTest(fault=fault):
                code, text = run("every_gpu_transport.py", "--starts", "processes", "--gpu-transports", "nccl,host", fault=fault)
                self.assertEqual(code, 1, text)
                self.assertIn(count, text)


class SameBits(unittest.TestCase):
    WORDS = ("--gpus", "2", "--ways", "peer:graph,host:stream", "--size", "4,4,6")

    def test_equal_and_other_bits(self):
        code, text = run("same_bits.py", *self.WORDS)
        self.assertEqual(code, 3 if "mpirun: not tried" in text else 0, text)
        self.assertIn(" 0 wrong", text)
        code, text = run("same_bits.py", *self.WORDS, fault="host:bits")
        self.assertEqual(code, 1, text)
        for line in text.splitlines():
            self.assertEqual(line.startswith("host "), "WRONG" in line, line)


def row(method, run_, gpu_transport, us=0.0, digest="d", **more):
    """Of a solve, or of a refusal with `error`."""
    solved = {} if "error" in more else {"best_us": us, "iterations": 9, "true_relative_residual": 0.5, "bits": "equal", "digest": digest}
    return {"matrix": "tri: small", "method": method, "run": run_, "gpus": 4, "gpu_transport": gpu_transport, **solved, **more}


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def files(self, change=lambda rows: rows):
        """Of a start with threads and of one by mpirun: all that there can be, after `change`."""
        both = [(method, run_) for method in transport_table.METHODS for run_ in transport_table.RUNS]
        no = {"error": "the persistent run with GPU transport x (nobody can)."}
        threads = [row(*of, gpu_transport, 2.0 + k) if of[1] != "persistent" or gpu_transport in ("peer", "nvshmem") else row(*of, gpu_transport, **no)
                   for of in both for k, gpu_transport in enumerate(("peer", "nccl", "nvshmem"))]
        host = [{**row(method, "host", None), "gpus": 0} for method in transport_table.METHODS]
        mpi = [row(*of, "host", 7.0) if of[1] != "persistent" else row(*of, "host", **no) for of in both]
        mpi += [row(*of, "mpi", error="GPU transport mpi: it takes no memory of GPUs (so).") for of in both]
        paths = []
        for start, rows in (("threads", host + threads), ("mpi", mpi)):
            paths.append(self.folder / f"{start}.json")
            paths[-1].write_text(json.dumps({"transport": start, "gpus": 4, "solves": change(rows)}))
        return paths

    def made(self, *paths):
        out, markdown = io.StringIO(), self.folder / "table.md"
        with contextlib.redirect_stdout(out):
            code = transport_table.main([*map(str, paths), "--markdown", str(markdown)])
        return code, out.getvalue(), markdown.read_text()

    def test_all_cells(self):
        code, text, markdown = self.made(*self.files())
        self.assertEqual(code, 0, text)
        self.assertIn("20 cells solved, 10 absent, 0 wrong", text)
        self.assertIn("9 iterations; the processor's: all 9 iterations; true relative residuals 5.000e-01", text)
        self.assertIn("| cg | persistent | 2.00 | [1] | 4.00 | [1] | [2] |", markdown)
        self.assertIn("| pipelined-cg | stream | 2.00 | 3.00 | 4.00 | 7.00 | [2] |", markdown)
        self.assertIn("[2] GPU transport mpi: it takes no memory of GPUs (so).", text)

    def test_what_is_wrong(self):
        def other_bits(rows):
            rows[-1] = {**rows[-1], **({"digest": "e"} if "digest" in rows[-1] else {})}
            return rows

        for change, says in ((other_bits, "tri, pipelined-cg, stream, nvshmem: other bits"),
                             (lambda rows: [r | {"bits": "DIFFER: x"} if r.get("best_us") == 7.0 else r for r in rows],
                              "tri, cg, stream, mpi staged: other bits"),
                             (lambda rows: [r for r in rows if r["run"] != "graph"], "tri, cg, graph, peer: in no file"),
                             (lambda rows: [row(r["method"], r["run"], r["gpu_transport"], error="peer_lost after 3") if
                                            r["gpu_transport"] == "nccl" else r for r in rows], "tri, cg, graph, nccl: peer_lost")):
            with self.subTest(says=says):
                code, text, _ = self.made(*self.files(change))
                self.assertEqual(code, 1, text)
                self.assertIn(says, text)

    def test_the_processor_is_not_made_up(self):
        text = self.made(*self.files(lambda rows: [r for r in rows if r["run"] != "host"]))[1]
        self.assertIn("not held against the processor", text)

    def test_no_measurement(self):
        (self.folder / "x.json").write_text("{}")
        with self.assertRaises(SystemExit) as end:
            transport_table.main([str(self.folder / "x.json")])
        self.assertIn("no measurement can be read", str(end.exception))


if __name__ == "__main__":
    unittest.main()

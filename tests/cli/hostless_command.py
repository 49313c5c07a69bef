"""What the tests of the command line share: running it, tiny systems, vectors, other processes.

HOSTLESS_COMMAND names the built program (ctest sets it).
"""

import functools
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMAND = os.environ["HOSTLESS_COMMAND"]
SLOWEST = 900  # seconds no run of these tests takes, on busy machines and with instrumented code too

# Deadlines that nobody reaches within SLOWEST, however slow: what ends all the same has seen that a rank has died.
PATIENT = {"HOSTLESS_DEADLINE_SCALE": "200"}  # of 10 s in iterations

# A solve that goes on for many minutes unless something ends it: n iterations for n rows in one dimension.
ENDLESS = ("--generate", "poisson1d", "--size", "300000", "--rtol", "1e-14")


def idle(line):
    """A line of the file of `machine measure --samples` with the time of a machine on which nothing else runs."""
    *what, size, messages, ranks, _ = line.split(",")
    return ",".join([*what, size, messages, ranks, f"{int(messages) * (1e-6 + int(size) * 1e-10):.6e}"])


class Command(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        os.environ["HOSTLESS_CACHE_DIR"] = str(self.folder / "cache")  # nothing that others measured

    def run_it(self, *words, code=0, launcher=(), environment=None, program=COMMAND):
        """The finished process of `hostless words...`; its exit code must be `code`, None: any."""
        for _ in range(3):
            done = subprocess.run([*launcher, program, *map(str, words)], capture_output=True, text=True, cwd=self.folder,
                                  timeout=SLOWEST, env=surroundings(environment), stdin=subprocess.DEVNULL)
            # MPICH's mpiexec now and then dies, in silence, of the pipe of a rank that has ended before it looks, or
            # hangs up on ranks that are about to end, or kills them, and then ends as they do.
            of_launcher = ("Hangup (signal 1)", "Killed (signal 9)")
            if not (launcher and (done.returncode == -signal.SIGPIPE or any(one in done.stdout for one in of_launcher))):
                break
        if code is not None:
            self.assertEqual(done.returncode, code, f"{done.args}\n{done.stdout}\n{done.stderr}")
        return done

    def json_of(self, *words, **how):
        """The JSON that `--json -` puts on standard output, which holds nothing else."""
        return json.loads(self.run_it(*words, "--json", "-", **how).stdout)

    def solve(self, *words, **how):
        """The JSON result of a solve."""
        return self.json_of("solve", *words, "--no-bandwidth", **how)

    def refused(self, code, *words, quiet=True, **how):
        """The one line that a refused command prints, without its `hostless: `; `quiet`: and nothing else."""
        done = self.run_it(*words, code=code, **how)
        if quiet:
            self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("hostless: "), lines[0])
        return lines[0][len("hostless: "):]

    def side_by_side(self, check, cases):
        """check(*case) of each, two at a time: they wait more than they compute (Open MPI's mpirun a second for ranks that it ends).

        In threads, so `check` opens no subTest; words say which case it was.
        """
        with ThreadPoolExecutor(2) as workers:  # more, and libraries that spin keep each other's ranks waiting
            for done in [workers.submit(check, *case) for case in cases]:
                done.result()

    def start(self, *words, launcher=(), environment=None, **how):
        """A running `hostless words...`, killed at the end of the test if it still runs."""
        process = subprocess.Popen([*launcher, COMMAND, *map(str, words)], cwd=self.folder, text=True,
                                   stdin=subprocess.DEVNULL, env=surroundings(environment),
                                   **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how})
        self.addCleanup(end, process)
        return process

    def wait_until(self, happened, what, process=None):
        """Waits for what `happened()` tells, however slow the machine is; `process` must not end before."""
        until = time.monotonic() + SLOWEST
        while not happened():
            if process is not None:
                self.assertIsNone(process.poll(), f"it has ended before: {what}")
            self.assertLess(time.monotonic(), until, f"never came: {what}")
            time.sleep(0.002)

    def wait_for_file(self, name, process):
        """Waits until a running solve has written a file (a checkpoint: it is iterating)."""
        self.wait_until((self.folder / name).exists, f"the file {name}", process)

    def wait_until_gone(self, processes):
        self.wait_until(lambda: not any(map(alive, processes)), "the end of what it has started")

    def lose(self, job, rank):
        """Kills a rank of a job with `--json result.json` and PATIENT, which ends and says so. The result."""
        kill(rank, signal.SIGKILL)
        out, err = job.communicate(timeout=SLOWEST)
        self.assertEqual(job.returncode, 4, err)
        self.assertIn("signal 9", err)
        self.assertIn("peer_lost", out)
        result = json.loads(self.content("result.json"))
        self.assertEqual(result["status"], "peer_lost")
        return result

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def content(self, name):
        return (self.folder / name).read_bytes()


def surroundings(more=None):
    """This process's environment without what a launcher around the tests may have left, and with `more`.

    Containers often forbid one process to read another's memory, and binding fights with tests that run beside.
    """
    ours = re.compile(r"^(OMPI_COMM_|PMI_|PMIX_|HOSTLESS_(RANK|SIZE|RENDEZVOUS|MPI)$)")
    kept = {name: value for name, value in os.environ.items() if not ours.match(name)}
    return {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_hwloc_base_binding_policy": "none", **kept,
            **(more or {})}


def limited(option, value, ignoring=""):
    """A launcher that sets a limit of the shell's `ulimit` first; `ignoring`: a signal that goes with it."""
    trap = f"trap '' {ignoring}; " if ignoring else ""
    return "sh", "-c", f'{trap}ulimit {option} {value}; exec "$0" "$@"'


def end(process):
    if process.poll() is None:
        for one in [*descendants(process.pid), process.pid]:
            kill(one, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def kill(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def descendants(ancestor):
    """Process ids of the children of a process, and theirs."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:
                continue  # ended meanwhile
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    found, young = [], {ancestor}
    while young:
        young = {child for child, parent in parents.items() if parent in young}
        found += young
    return found


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def catches(process, number):
    """Whether a process has a handler of a signal by now: before, the signal just ends it."""
    return in_signals(process, "SigCgt", number)


def pending(process, number):
    """Whether a process has not yet heard a signal that it was sent."""
    return in_signals(process, "ShdPnd", number)


def in_signals(process, which, number):
    try:
        signals = re.search(rf"^{which}:\s*([0-9a-f]+)$", Path(f"/proc/{process}/status").read_text(), re.M)
    except OSError:
        return False
    return signals is not None and int(signals[1], 16) >> (number - 1) & 1 == 1


def cpu_seconds(ancestor):
    """The processor time of a process and of all below it: what goes on beside them adds nothing to it."""
    ticks = 0
    for process in (ancestor, *descendants(ancestor)):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # its parent has its time now
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def ranks_of(job):
    """Process ids of the ranks that a running launcher has started, in no order."""
    program = os.path.realpath(COMMAND)
    found = []
    for process in descendants(job.pid):
        try:
            if os.readlink(f"/proc/{process}/exe") == program:
                found.append(process)
        except OSError:
            continue
    return found


@functools.lru_cache(maxsize=None)
def problems_of_mpi():
    """What the doctor says of each MPI, which he tries: asked once a program of tests, as it takes long."""
    done = subprocess.run([COMMAND, "doctor", "--seconds", "0.001", "--json", "-"], check=True, capture_output=True, text=True,
                          env=surroundings())
    return {one["vendor"]: one["problem"] for one in json.loads(done.stdout)["mpi"]}


def launcher_of(vendor, ranks):
    """(words that start `ranks` processes under this MPI, None), or (None, why there are none)."""
    names = {"openmpi": ("mpirun.openmpi", "mpirun"), "mpich": ("mpiexec.mpich", "mpiexec.hydra")}[vendor]
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        return None, f"no launcher of {vendor} in PATH"
    problem = problems_of_mpi()[vendor]
    if problem:
        return None, problem
    words = [program, "-n", str(ranks)]
    if vendor == "openmpi":
        words[1:1] = ["--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
    return words, None


# ---- matrices and vectors

def chain(n):
    """A symmetric positive definite tridiagonal matrix: {(row, column): value}, both triangles."""
    matrix = {(i, i): 2.0 + 0.25 * i for i in range(n)}
    for i in range(n - 1):
        matrix[i, i + 1] = matrix[i + 1, i] = -1.0 - 0.125 * (i % 3)
    return matrix


def market(matrix, n):
    """Matrix Market text of the lower triangle."""
    lower = [(i, j, v) for (i, j), v in sorted(matrix.items()) if j <= i]
    return (f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {len(lower)}\n"
            + "".join(f"{i + 1} {j + 1} {v!r}\n" for i, j, v in lower))


def nearly_symmetric(difference):
    """Matrix Market text of both triangles, one entry so far from its mirror; (1, 3) is not stored."""
    return ("%%MatrixMarket matrix coordinate real general\n3 3 8\n1 1 4\n1 2 -1\n2 1 " f"{-1 - difference!r}"
            "\n2 2 4\n2 3 -1\n3 2 -1\n3 3 4\n3 1 1e-17\n")


def market_vector(values):
    return (f"%%MatrixMarket matrix array real general\n{len(values)} 1\n" + "".join(f"{v!r}\n" for v in values))


def times(matrix, x):
    product = [0.0] * len(x)
    for (i, j), value in matrix.items():
        product[i] += value * x[j]
    return product


def norm(values):
    return math.sqrt(math.fsum(v * v for v in values))


def read_npy(data):
    """The values of a one-dimensional little-endian float64 .npy file."""
    assert data[:6] == b"\x93NUMPY", data[:6]
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    header = data[10:begin].decode()
    assert "'<f8'" in header and "'fortran_order': False" in header, header
    return list(struct.unpack(f"<{(len(data) - begin) // 8}d", data[begin:]))


def npy(values):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(
        f"<{len(values)}d", *values)


def petsc_vector(values):
    return struct.pack(f">ii{len(values)}d", 1211214, len(values), *values)


def read_petsc_vector(data):
    kind, n = struct.unpack(">ii", data[:8])
    assert kind == 1211214, kind
    return list(struct.unpack(f">{n}d", data[8:]))


def read_market_vector(text):
    lines = text.splitlines()
    assert lines[0] == "%%MatrixMarket matrix array real general", lines[0]
    return [float(line) for line in lines[2:]]

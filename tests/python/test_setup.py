"""Set-up in Python: ctrl-C is heard soon, the line on a terminal, sizes that cannot fit."""

import os
import pty
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import hostless
from pressed import SOON, interrupted

MATRIX = {}
moments = random.Random(20)  # of ctrl-C


def matrix():
    """Made once: some seconds of set-up on four ranks."""
    return MATRIX.setdefault("A", hostless.generate("poisson7", 110))


def ones():
    return np.ones(matrix().shape[0])


@pytest.mark.parametrize("what", ["generate", "lay out", "metis", "plan", "cg"])
def test_ctrl_c_at_any_moment(what):
    matrix()
    work, latest = {
        "generate": (lambda: hostless.generate("poisson7", 260), 1.5),
        "lay out": (lambda: [hostless.Matrix(matrix()) for _ in range(100)], 1.0),
        "metis": (lambda: [hostless.Matrix(matrix(), ranks=4, partition="metis") for _ in range(9)], 3.0),
        "plan": (lambda: [hostless.plan(matrix(), ranks=8, partition="metis") for _ in range(9)], 3.0),
        "cg": (lambda: [hostless.cg(matrix(), ones(), rtol=1e-14) for _ in range(99)], 1.0),
    }[what]
    for _ in range(2):
        assert interrupted(work, moments.uniform(0.1, latest)) < SOON


def test_ctrl_c_while_a_file_is_read(tmp_path):
    hostless.write(tmp_path / "A.mtx", matrix())
    for _ in range(2):
        assert interrupted(lambda: [hostless.read(tmp_path / "A.mtx") for _ in range(9)], moments.uniform(0.1, 1.0)) < SOON


def test_ctrl_c_while_a_vector_is_written(tmp_path):
    values = np.pi * np.arange(1.0, 12e6)  # a second
    assert interrupted(lambda: hostless.write(tmp_path / "x.mtx", values), 0.2) < SOON
    assert list(tmp_path.iterdir()) == []  # it was not written to its end first


def test_signals_while_ghosts_are_counted():
    from hostless import _core

    n = 400_000_000  # half a second; zeros that nobody has written take no memory
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(time.monotonic()))
    try:
        offsets, columns, values = np.array([0, 0, 0, 0, n], np.int32), np.zeros(n, np.int32), np.zeros(n)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        _core.stays_contiguous(offsets, columns, values, 4)
        assert time.monotonic() - seen[0] > 0.05, "it was heard when everything was over"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_what_comes_after_is_as_if_nothing_had_been():
    def solved():
        return hostless.Matrix(hostless.generate("poisson2d", 40), ranks=2, partition="metis").solve(
            np.ones(1600))[0].tobytes()

    expected = solved()
    interrupted(lambda: [hostless.Matrix(matrix(), ranks=4, partition="metis") for _ in range(9)], 1.5)
    assert solved() == expected


@pytest.mark.parametrize("work", [lambda: hostless.generate("poisson2d", 1_000_000),
                                  lambda: hostless.generate("heart15")])
def test_sizes_that_cannot_fit(work):
    with pytest.raises(hostless.errors.MachineError, match=r"at least [0-9.]+ [TPG]B of memory are needed .* Use "):
        work()


LIMITED = """
import resource, sys
import numpy, scipy.sparse, hostless
A = scipy.sparse.eye_array(3_000_000, format="csr")
size = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + (int(sys.argv[1]) << 20), -1))
hostless.Matrix(A)
"""


def test_a_matrix_beyond_the_limit_of_the_process():
    def said(megabytes, **environment):
        return subprocess.run([sys.executable, "-c", LIMITED, str(megabytes)], capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})

    done = said(250)  # 23 MiB of matrix, 114 of vectors; arenas of new threads take some
    assert "MachineError: a matrix of 3000000 rows: at least 144 MB of memory are needed by this process" in done.stderr
    assert "RLIMIT_AS" in done.stderr
    assert "are needed" not in said(250, HOSTLESS_SIZE_CHECK="0").stderr
    assert said(2000).returncode == 0


def on_a_terminal(program, **environment):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", program], stderr=theirs, env={**os.environ, **environment})
    os.close(theirs)
    seen = b""
    try:
        while got := os.read(ours, 4096):
            seen += got
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    assert process.wait() == 0, seen
    return seen.decode()


def test_progress_on_a_terminal_and_nowhere_else():
    program = "import hostless; hostless.Matrix(hostless.generate('poisson7', 100), ranks=2, partition='metis')"
    seen = on_a_terminal(program, HOSTLESS_PROGRESS="1")  # each stage may be over within a second
    assert len(re.findall(r"\r\x1b\[K[a-zA-Z ]+   [0-9]+ %   [0-9]+ s", seen)) > 2
    assert "making arrays" in seen and "partitioning" in seen
    assert seen.endswith("\r\x1b[K") and "\n" not in seen
    assert on_a_terminal(program, HOSTLESS_PROGRESS="0") == ""
    piped = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert piped.stderr == ""


PROGRAM = """
import warnings, numpy as np, hostless
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(2):
        {what}
print([(one.category.__name__, str(one.message)) for one in seen])
"""


@pytest.mark.parametrize("what", ["hostless.Matrix(np.eye(3)).close()", "hostless.Stencil('u + u[1]').run(np.zeros(9), 1)",
                                  "hostless.run_threads(1, lambda comm: None)"])
def test_misspelt_variables_are_told_once(what):
    ran = subprocess.run([sys.executable, "-c", PROGRAM.format(what=what)], capture_output=True, text=True, check=True, timeout=600,
                         env={**os.environ, "HOSTLESS_DEADLINE_SCAL": "6", "HOSTLESS_DEADLINE_SCALE": "1"})
    assert ran.stdout == ("[('HostlessWarning', \"HOSTLESS_DEADLINE_SCAL is no variable of hostless (it changes nothing). "
                          "Did you mean 'HOSTLESS_DEADLINE_SCALE'?\")]\n")

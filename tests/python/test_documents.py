"""The pages for users of other packages do what they say: their Python lines and commands are run, in order.

Of each page the blocks marked `python` share one set of names, as if they were typed one after the other; one that begins
with "# mpirun -n N" is a program of its own, run on two ranks. Indented lines that begin with "hostless" (behind mpirun too) are commands.
What needs a GPU, a program of the reader's or another package is left out: blocks that are marked otherwise, and commands
with --gpus.
"""

import os
import pathlib
import re
import subprocess

import numpy as np
import pytest
import scipy.io

import hostless
from test_mpi import environment_of, run, runs_with

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "howto"
#: page -> how many Python blocks and commands it has: less would mean that they are not found.
PAGES = {"from-python.md": (4, 0), "from-scipy.md": (5, 0), "from-petsc.md": (1, 1), "from-acg.md": (2, 4),
         "exchange-ghosts.md": (3, 0), "neighbour-collectives.md": (1, 0), "queue.md": (3, 0), "ones-own-stencil.md": (7, 0), "run-a-stencil.md": (1, 6),
         "waves-on-several-gpus.md": (4, 2)}

COMMAND = re.compile(r"^ {4}((?:mpirun -n \d+ )?hostless [^\n]*)$", re.M)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def pieces(text):
    """[("python" or "command", line, text)] in the order of the page."""
    found = [("python", match.start(2), match[2]) for match in BLOCK.finditer(text) if match[1] == "python"]
    outside = BLOCK.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found += [("command", match.start(1), match[1]) for match in COMMAND.finditer(outside) if "--gpus" not in match[1]]
    return [(kind, text.count("\n", 0, place) + 1, what) for kind, place, what in sorted(found, key=lambda one: one[1])]


def obey(where, command, environment):
    ran = subprocess.run(["bash", "-c", command], env=environment, timeout=600, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{where}: {command}\n{ran.stdout}{ran.stderr}"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with what readers of these pages have: a matrix in both kinds of files, and a partition of aCG's tool."""
    monkeypatch.chdir(tmp_path)
    matrix = hostless.generate("elasticity-hex8", 10)
    hostless.write("A.mtx", matrix)
    hostless.write("A.petsc", matrix)
    part = 1 + (np.arange(matrix.shape[0]) >= matrix.shape[0] // 2)
    scipy.io.mmwrite("part.mtx", part.reshape(-1, 1).astype(int))
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_says(page, place):
    found = pieces((FOLDER / page).read_text(encoding="utf-8"))
    counts = tuple(sum(kind == wanted for kind, _, _ in found) for wanted in ("python", "command"))
    assert counts == PAGES[page], "blocks and commands of the page (correct the table if it has others now)"
    environment = {**environment_of("openmpi", place),
                   "PATH": os.path.dirname(hostless.command()) + os.pathsep + os.environ["PATH"]}
    names, left_out = {}, []
    for kind, line, what in found:
        where = f"{page}:{line}"
        launched = re.match(r"(?:# )?mpirun -n (\d+) ", what)
        if launched and (missing := runs_with("openmpi", place)) is not None:
            left_out.append(f"{where}: {missing}")
        elif kind == "command":
            obey(where, re.sub(r"^mpirun -n \d+", "mpirun.openmpi -n 2", what), environment)
        elif launched:
            ran = run("mpirun.openmpi", 2, what, place, "openmpi")
            assert ran.returncode == 0, f"{where}:\n{ran.stdout}{ran.stderr}"
        else:
            exec(compile("\n" * line + what, where, "exec"), names)  # noqa: S102
    if left_out:
        pytest.skip("all the rest passed, and left out was: " + "; ".join(left_out))

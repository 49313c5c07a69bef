"""What the tests of pictures share: the package from the checkout, solves to draw, and what is installed.

HOSTLESS_COMMAND names the built program (ctest sets it).
"""

import atexit
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = os.environ["HOSTLESS_COMMAND"]
MISSING = [name for name in ("matplotlib", "jinja2") if importlib.util.find_spec(name) is None]
WHY_SKIPPED = f"{' and '.join(MISSING)} not installed for {sys.executable}: nothing is drawn"

# The pure Python part of the package without the compiled one, whatever else is installed: its files under a package
# of the same name that is empty.
_folder = tempfile.TemporaryDirectory(prefix="hostless-package-")
atexit.register(_folder.cleanup)
PACKAGES = Path(_folder.name)
(PACKAGES / "hostless").mkdir()
(PACKAGES / "hostless" / "__init__.py").touch()
for part in ("_whole_file.py", "plots.py", "plots_of_machines.py", "report"):
    (PACKAGES / "hostless" / part).symlink_to(ROOT / "python" / "hostless" / part)
sys.path.insert(0, str(PACKAGES))
SURROUNDINGS = {**os.environ, "PYTHONPATH": str(PACKAGES), "PYTHONDONTWRITEBYTECODE": "1"}


def run(*words) -> str:
    """What `hostless words...` prints; it may end unconverged."""
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=600)
    if done.returncode > 1:
        raise AssertionError(f"{done.args}\n{done.stderr}")
    return done.stdout


@functools.lru_cache(maxsize=None)
def _text(*words) -> str:
    return run(*words, "--json", "-")


def json_of(*words) -> dict:
    """The JSON of a command, run once and then remembered; a copy of its own for each caller."""
    return json.loads(_text(*words))


GRID = ("--generate", "poisson2d", "--size", "24")


def solved(*more) -> dict:
    """A solve on four ranks, two a node."""
    return json_of("solve", *GRID, "--ranks", "4", "--ranks-per-node", "2", "--manufactured", *more)


def planned(ranks=8) -> dict:
    return json_of("plan", *GRID, "--ranks", str(ranks), "--ranks-per-node", "4")


def measured(ranks) -> dict:
    return json_of("bench", "solve", *GRID, "--iterations", "5", "--ranks", str(ranks))


def as_if_on_gpus(result) -> dict:
    """The result as a solve on GPUs writes it: kernels with a clock of their own, no bandwidth of the processor."""
    each = 37.5
    device = {"time_s": 1e-6 * each * result["iterations"], "us_per_iteration": each, "launches": 3, "bytes": 5_000_000,
              "model_bytes": 4_900_000, "peak_bytes": 6_000_000}
    return {**result, "device": device, "measured_bandwidth": None, "share_of_bandwidth": None,
            "time_solve_s": 1.25 * device["time_s"], "choices": {**result["choices"], "gpu_transport": "peer"}}

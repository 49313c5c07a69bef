"""What the measurements on GPUs share: the matrices of the performance table, and solves of them."""

import json
import subprocess
from pathlib import Path

MATRICES = {
    "tri": ["--generate", "poisson2d-tri", "--size", "452"],
    "five": ["--generate", "poisson2d", "--size", "1259"],
    "seven": ["--generate", "poisson7", "--size", "128"],
    "hex8": ["--generate", "elasticity-hex8", "--size", "10,108,483"],
}
HBM = 4.5e12


def solve(binary, words, folder, name):
    """The report, the bytes of x and no error; or neither, and what the command said."""
    output = Path(folder) / f"{name}.npy"
    report = Path(folder) / f"{name}.json"
    command = [binary, "solve", *words, "--rtol", "0", "--manufactured", "--no-bandwidth", "--quiet", "--output", str(output),
               "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return None, None, done.stderr.strip()
    return json.loads(report.read_text()), output.read_bytes(), ""


def timed(binary, words, folder, repeat):
    """Microseconds an iteration of every solve, sorted, and report, x and error of the last one."""
    times = []
    for _ in range(repeat):
        report, x, error = solve(binary, words, folder, "gpu")
        if report is None:
            return [], None, None, error
        times.append(report["device"]["us_per_iteration"])
    return sorted(times), report, x, ""


def same_bits(one, other):
    """Of (report, x): x, the residual history and the true residual."""
    return one[1] == other[1] and all(one[0][key] == other[0][key] for key in ("residual_history", "true_residual"))

#!/usr/bin/env python3
"""Stands in for hostless on several GPUs: `bench solve` and `solve` are done by ranks of the processor, by every transport
that would carry between GPUs, and refused where hostless refuses.

GPU_STANDS_FOR is the built command. GPU_FAULT names what it does wrong: TRANSPORT:bits, TRANSPORT:refuse (in the run stream),
TRANSPORT:lose (no rows of it) or TRANSPORT:solve (what should be refused).
"""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "device"))
import every_gpu_transport  # noqa: E402
from as_if_gpus import take  # noqa: E402

TIMES = {"persistent": 16.0, "graph": 24.0, "stream": 32.0}  # of one GPU
FAULTY, _, FAULT = os.environ.get("GPU_FAULT", "").partition(":")
REFUSAL = {"persistent": "the persistent run with GPU transport {} (made up)."}


def as_if_by(row, run, gpu_transport, gpus):
    """The row of the processor as one of GPUs."""
    refused = every_gpu_transport.is_refused(row["method"], row["preconditioner"], run, gpu_transport)
    new = {**row, "run": run, "gpus": gpus, "gpu_transport": gpu_transport}
    if refused and (gpu_transport, "solve") != (FAULTY, FAULT):
        why = REFUSAL.get(run, "{} is not there (made up).").format(gpu_transport)
    elif gpu_transport == "mpi":
        why = "this MPI takes no memory of GPUs (made up)."
    elif (gpu_transport, run, "refuse") == (FAULTY, "stream", FAULT):
        why = "a rank was lost (made up)."
    else:
        new |= {"best_us": TIMES[run] / gpus, "choices": {"run": run, "gpu_transport": f"{gpu_transport} (made up)"}}
        if (gpu_transport, "bits") == (FAULTY, FAULT):
            new |= {"bits": "DIFFER: x", "digest": "0"}
        return new
    return {key: new[key] for key in ("matrix", "method", "preconditioner", "route", "run", "ranks", "gpus", "gpu_transport")} | {
        "error": why}


def bench(words):
    gpus, gpu_transports = int(take(words, "--gpus")), take(words, "--gpu-transports").split(",")
    runs, file = take(words, "--runs").split(","), pathlib.Path(words[words.index("--json") + 1])
    take(words, "--host-iterations")
    code = subprocess.run([os.environ["GPU_STANDS_FOR"], *words, "--runs", "host,graph"], check=False).returncode
    if code:
        return code
    report = json.loads(file.read_text())
    rows = []
    for row in report["solves"]:
        if row["run"] == "host":
            rows += [row] if "host" in runs else []
        else:
            rows += [as_if_by(row, run, gpu_transport, gpus) for run in runs if run != "host" for gpu_transport in gpu_transports
                     if (gpu_transport, "lose") != (FAULTY, FAULT)]
    file.write_text(json.dumps({**report, "gpus": gpus, "solves": rows}))
    return code


def solve(words):
    take(words, "--gpus")
    gpu_transport = take(words, "--gpu-transport")
    if "stream" in words:
        words[words.index("stream")] = "graph"
    if (gpu_transport, "bits") == (FAULTY, FAULT):
        words += ["--max-iterations", "5"]
    return subprocess.run([os.environ["GPU_STANDS_FOR"], *words], check=False).returncode


def main():
    words = sys.argv[1:]
    if words[:2] == ["bench", "solve"] and "--gpus" in words:
        return bench(words)
    return solve(words)


if __name__ == "__main__":
    sys.exit(main())

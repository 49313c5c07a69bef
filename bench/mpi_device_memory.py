#!/usr/bin/env python3
"""What makes an MPI with device memory slower than staging: each suspect alone, in one table.

    python3 bench/mpi_device_memory.py --hostless ./hostless [--sizes 8,1024,16384,262144] [--json FILE]

Two ranks on two GPUs. Ways, in microseconds one way, best of the repeats:

    host memory   messages of the MPI in the host's memory: what the library costs without a GPU
    device memory messages of the MPI in the GPUs' memory, nothing else on them: what it does for that (looks where memory
                  lies, copies, events, a handshake)
    mpi           the stream face with everything in device memory: kernels pack, ask and wait while the MPI works
    mpi, waited   the same, but no kernel waits: the host waits for the stream (HOSTLESS_GPU_HOST_WAITS)
    mpi, few      the stream face as it is used: levels of few bytes through pinned memory
    host          staging

each without more, and with each of the settings below, of which one changes one thing that is suspected. `device memory`
far above `host memory`: it is the library's doing, and the settings say of what. `mpi` above `device memory` by more than
`host` is above `host memory`: kernels and the library stand in each other's way; `mpi, waited` without that: it is the kernel
that waits. A setting under which the library does not start is a row with its reason.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

SETTINGS = {
    "as it is": {},
    "memory looked up once (UCX_MEMTYPE_CACHE=y)": {"UCX_MEMTYPE_CACHE": "y"},
    "no such cache (UCX_MEMTYPE_CACHE=n)": {"UCX_MEMTYPE_CACHE": "n"},
    "no copies between GPUs (UCX_TLS=^cuda_ipc)": {"UCX_TLS": "^cuda_ipc"},
    "no mapped copies (UCX_TLS=^gdr_copy)": {"UCX_TLS": "^gdr_copy"},
    "handshake from 1 byte (UCX_RNDV_THRESH=1)": {"UCX_RNDV_THRESH": "1"},
    "handshake from 1 MiB (UCX_RNDV_THRESH=1m)": {"UCX_RNDV_THRESH": "1m"},
    "receiver reads (UCX_RNDV_SCHEME=get_zcopy)": {"UCX_RNDV_SCHEME": "get_zcopy"},
    "older protocols (UCX_PROTO_ENABLE=n)": {"UCX_PROTO_ENABLE": "n"},
    "32 queues (CUDA_DEVICE_MAX_CONNECTIONS=32)": {"CUDA_DEVICE_MAX_CONNECTIONS": "32"},
    "Open MPI's own transports (OMPI_MCA_pml=ob1)": {"OMPI_MCA_pml": "ob1"},
}
ALL_ON_DEVICE = {"HOSTLESS_MPI_DEVICE_BYTES": "0"}
WAYS = {
    "host memory": (("--transport", "mpi"), {}),
    "device memory": (("--transport", "mpi", "--memory", "gpu", "--gpus", "2"), {}),
    "mpi": (("--transport", "mpi", "--gpu-transport", "mpi", "--gpus", "2"), ALL_ON_DEVICE),
    "mpi, waited": (("--transport", "mpi", "--gpu-transport", "mpi", "--gpus", "2"), {**ALL_ON_DEVICE, "HOSTLESS_GPU_HOST_WAITS": "1"}),
    "mpi, few": (("--transport", "mpi", "--gpu-transport", "mpi", "--gpus", "2"), {}),
    "host": (("--transport", "mpi", "--gpu-transport", "host", "--gpus", "2"), {}),
}


def measure(options, words, environment):
    """({bytes: microseconds}, None), or ({}, why not)."""
    command = [options.hostless, "bench", "pingpong", "--ranks", "2", "--sizes", options.sizes, "--steps", str(options.steps),
               "--repeat", "3", "--json", "-", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "HOSTLESS_MPI_DEVICE_MEMORY": "1", **environment})
    except subprocess.TimeoutExpired:
        return {}, f"not within {options.limit} s"
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        return {}, said[0][:160] if said else f"exit code {done.returncode}"
    text = done.stdout
    rows = json.loads(text[text.index("{\n"):text.rindex("\n}") + 2])["pingpong"]
    return {row["bytes"]: row["best_us"] for row in rows if row.get("by", "stream") == "stream" and "best_us" in row}, None


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostless", default="hostless")
    parser.add_argument("--sizes", default="8,1024,16384,262144,1048576")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--limit", type=float, default=60, help="seconds for one start")
    parser.add_argument("--ways", default=",".join(name for name in WAYS), help="some of them, ';' between")
    parser.add_argument("--settings", help="words of those to try, ';' between; all without")
    parser.add_argument("--json")
    options = parser.parse_args(argv)
    if shutil.which(options.hostless) is None:
        parser.error(f"--hostless {options.hostless}: no such program")
    ways = list(WAYS) if options.ways == ",".join(WAYS) else options.ways.split(";")
    if unknown := [name for name in ways if name not in WAYS]:
        parser.error(f"--ways {unknown[0]}: none of {'; '.join(WAYS)}")
    wanted = options.settings.split(";") if options.settings else [""]
    settings = {name: value for name, value in SETTINGS.items() if any(word in name for word in wanted)}
    sizes = [int(word) for word in options.sizes.split(",")]
    print(f"{'way':14} {'setting':46} " + " ".join(f"{size:>10}" for size in sizes))
    rows = []
    for setting, environment in settings.items():
        for way in ways:
            words, more = WAYS[way]
            figures, problem = measure(options, words, {**environment, **more})
            rows.append({"way": way, "setting": setting, "environment": environment, "us": figures, "problem": problem})
            shown = problem or " ".join(f"{figures[size]:10.2f}" if size in figures else f"{'-':>10}" for size in sizes)
            print(f"{way:14} {setting:46} {shown}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"sizes": sizes, "rows": rows}, file, indent=1)
    return 0 if any(row["us"] for row in rows) else 3


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Makes the tables beside this file of the published ones (folder given), in the form that `hostless machine fit` reads.

Ping-pongs become their medians by size and locality; of the rest every measurement stays. Ranks 0, 1 are on one socket,
2, 3 on the other, 4 to 7 on the second node. Of Frontier's ping-pongs, packing kernels included, the way there is half of
a round trip; sent by the machine's MPI, by standard and by ready stream-triggered sends; so is the Game of Life, 1,000 steps.
"""

import csv
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path


def rows(folder, name):
    with open(folder / name, newline="") as file:
        yield from csv.DictReader(file)


def memory(row):
    return "gpu" if "GPU" in row["section"] else "host"


def locality(between):
    a, b = (int(n) for n in re.findall(r"\d+", between))
    return "off_node" if a // 4 != b // 4 else "on_socket" if a // 2 == b // 2 else "on_node"


def messages(folder):
    pairs = defaultdict(list)
    for row in rows(folder, "lassen_ping_pong.csv"):
        pairs[memory(row), locality(row["between"]), int(row["bytes"])].append(float(row["seconds"]))
    for (kind, where, size), times in pairs.items():
        yield f"ping_pong,{kind},{where},{size},1,1,{statistics.median(times):.4g}"
    for row in rows(folder, "lassen_maxrate.csv"):
        yield f"maxrate,{memory(row)},off_node,{row['bytes']},1,{row['processes']},{float(row['seconds']):.4g}"
    for row in rows(folder, "lassen_mult_pong.csv"):
        yield f"mult_pong,{memory(row)},off_node,{row['bytes']},{row['messages']},1,{float(row['seconds']):.4g}"


def copies(folder):
    times = defaultdict(list)
    for row in rows(folder, "lassen_memcpy.csv"):
        ends = re.findall(r"\d+", row["between"])
        direction = {"Memcpy Host To Device": "host_to_device", "Memcpy Device To Host": "device_to_host"}.get(row["section"])
        if direction and int(ends[0]) // 2 == int(ends[1]) // 2:  # on the socket, as table 3 assumes
            times[direction, int(row["bytes"])].append(float(row["seconds"]))
    for (direction, size), all_times in times.items():
        yield f"{direction},1,{size},{statistics.median(all_times):.4g}"


def ping_pongs(folder, backend, bufferings):
    for row in rows(folder, "frontier_ping_pong.csv"):
        if row["backend"] == backend and row["buffering"] in bufferings:
            seconds = float(row["median_total_s"]) / (2 * int(row["round_trips"]))
            yield f"{backend}-{row['buffering']},gpu,off_node,{4 * int(row['items'])},1,1,{seconds:.5g}"


def life(folder):
    for row in rows(folder, "frontier_life_scaling.csv"):
        sends = "mpi" if "MPICH" in row["backend"] else row["send_type"].split()[0].lower()
        yield f"{sends},{row['memory_type']},{row['edge_cells']},{row['nodes']},{row['ranks_per_node']},{float(row['median_s']):.5g}"


def tables(folder):
    """(name, head, lines) of each file beside this one."""
    of_messages = "series,memory,locality,bytes,messages,active_ranks,seconds"
    return (("lassen_messages.csv", of_messages, messages(folder)),
            ("lassen_copies.csv", "direction,processes,bytes,seconds", copies(folder)),
            ("frontier_mpi.csv", of_messages, ping_pongs(folder, "mpi", ("sb", "db"))),
            ("frontier_standard.csv", of_messages, ping_pongs(folder, "cxi-coarse", ("sb",))),
            ("frontier_ready.csv", of_messages, ping_pongs(folder, "cxi-coarse", ("db",))),
            ("frontier_life.csv", "sends,memory,edge_cells,nodes,ranks_per_node,seconds", life(folder)))


def main(folder):
    for name, head, lines in tables(folder):
        (Path(__file__).parent / name).write_text("\n".join((head, *lines)) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

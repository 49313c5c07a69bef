#!/usr/bin/env python3
"""One table of JSON files of `hostless bench neighbor --gpus`: medians in microseconds, a column for each size.

    python3 bench/gpu/neighbor_table.py two.json eight.json

A line is a way and a trigger; what is absent says why, once a file.
"""

import argparse
import json
from pathlib import Path


def size(number: int) -> str:
    """Bytes as people say them."""
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if number >= factor and number % factor == 0:
            return f"{number // factor} {unit}"
    return str(number)


def figure(row) -> str:
    if row is None:
        return "-"
    return f"{row['median_us']:.1f}" if row["status"] == "measured" else row["status"]


def table_of(name: str, report: dict) -> list:
    """Lines of one file."""
    rows = {(row["collective"], row["way"], row["trigger"], row["bytes"]): row for row in report["neighbor"]}
    sizes = sorted({key[3] for key in rows})
    lines = [f"{name}: {report['ranks']} ranks on {report['gpus']} GPUs, {report['transport']}, {report['pattern']}, "
             f"{report['edges']} edges; median us",
             f"{'':10} {'way':12} {'trigger':7}" + "".join(f"{size(one):>10}" for one in sizes)]
    reasons = {}
    for collective, way, trigger in dict.fromkeys(key[:3] for key in rows):
        of_sizes = [rows.get((collective, way, trigger, one)) for one in sizes]
        for row in of_sizes:
            if row is not None and row["status"] != "measured":
                reasons.setdefault((way, row["error"]), {})[trigger] = True
        if any(row is not None and row["status"] != "absent" for row in of_sizes):
            lines.append(f"{collective:10} {way:12} {trigger:7}" + "".join(f"{figure(row):>10}" for row in of_sizes))
    lines += [f"  {way} ({', '.join(triggers)}): {why}" for (way, why), triggers in reasons.items()]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="what --json has written")
    for name in parser.parse_args().files:
        print("\n".join(table_of(Path(name).stem, json.loads(Path(name).read_text()))))


if __name__ == "__main__":
    main()

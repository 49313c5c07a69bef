#!/usr/bin/env python3
"""Means of the phases in a profile that `hostless solve --profile` wrote: microseconds by phase and part.

    python3 bench/phase_times.py profile.json
"""

import json
import sys
from collections import defaultdict


def main() -> int:
    events = json.load(open(sys.argv[1]))["traceEvents"]
    times, phase = defaultdict(list), {}
    for event in events:
        if event["args"]["iteration"] < 5:  # the first ones fill caches
            continue
        if event["name"] in ("publish", "begin", "sweep", "rows"):
            phase[event["pid"], event["tid"]] = event["name"]
            times[event["name"], "work"].append(event["dur"])
        elif (event["pid"], event["tid"]) in phase:
            times[phase[event["pid"], event["tid"]], event["name"]].append(event["dur"])
    total = 0.0
    for name in ("publish", "begin", "sweep", "rows"):
        parts = {part: values for (owner, part), values in times.items() if owner == name}
        if parts:
            mean = {part: sum(values) / len(values) for part, values in parts.items()}
            total += sum(mean.values())
            print(f"{name:8} " + "  ".join(f"{part} {mean[part]:6.2f} (max {max(parts[part]):.2f})" for part in parts))
    print(f"together {total:.2f} us an iteration")
    return 0


if __name__ == "__main__":
    sys.exit(main())

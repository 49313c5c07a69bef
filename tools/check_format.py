#!/usr/bin/env python3
"""Fails when clang-format would change a file. --fix lets it.

Other major versions format differently, so without clang-format 14 nothing is checked, and the reason is printed.
"""

import re
import shutil
import subprocess
import sys

from repository import CPP, arguments, files, finish

VERSION = 14


def formatter() -> tuple:
    """(path, '') of clang-format 14, or ('', why there is none)."""
    seen = []
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if not path:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        match = re.search(r"version (\d+)", said)
        if match and int(match.group(1)) == VERSION:
            return path, ""
        seen.append(match.group(1) if match else said.strip())
    return "", f"found version {', '.join(seen)}, not {VERSION}" if seen else "no clang-format on this machine"


def main(argv=None) -> int:
    options = arguments(__doc__, argv, fix=dict(action="store_true", help="format the files in place"))
    tool, reason = formatter()
    if not tool:
        print(f"check_format: skipped, {reason}")
        return 0
    paths = files(options.root, ("include", "src", "apps", "python", "tests", "bench"), CPP)
    if not paths:
        return finish("check_format", 0, [])
    mode = ["-i"] if options.fix else ["--dry-run"]
    ran = subprocess.run([tool, *mode, *map(str, paths)], cwd=options.root, capture_output=True, text=True,
                         check=False)
    places = re.findall(r"^(\S+?):(\d+):\d+: (?:warning|error): code should be clang-formatted", ran.stderr, re.M)
    first = {}
    for name, line in places:
        first.setdefault(name, line)
    problems = [f"{name}:{line}: clang-format would change it. Run `make format`." for name, line in first.items()]
    if ran.returncode != 0 and not problems:
        problems = [ran.stderr.strip() or f"{tool} ended with {ran.returncode}"]
    return finish("check_format", len(paths), problems)


if __name__ == "__main__":
    sys.exit(main())

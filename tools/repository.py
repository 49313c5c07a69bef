"""What every check needs: the files of the checkout, and one way to print findings and leave."""

import argparse
import subprocess
import sys
from pathlib import Path

CPP = (".hpp", ".h", ".cpp")
FETCHED = {".git", ".headers", ".torch", ".venv", "out"}  # made or fetched here, not written by us


def arguments(doc: str, argv=None, **options) -> argparse.Namespace:
    """Parses the common command line; `options` maps extra option names to add_argument keywords."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="checkout to look at (default: the one this tool lies in)")
    for name, keywords in options.items():
        parser.add_argument("--" + name.replace("_", "-"), **keywords)
    return parser.parse_args(argv)


def files(root: Path, folders=(), suffixes=()) -> list:
    """Files of the checkout, relative to root: what git tracks, plus what is new and not ignored.

    Without git (an unpacked archive) every file below the folders counts.
    """
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], capture_output=True, check=True).stdout.decode()
        paths = [Path(name) for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        tops = [root / folder for folder in folders] or [root]
        paths = [path.relative_to(root) for top in tops for path in top.rglob("*") if path.is_file()]
    return sorted({path for path in paths
                   if path.parts[0] not in FETCHED and not path.parts[0].startswith("build")
                   and (not folders or path.parts[0] in folders)
                   and (not suffixes or path.suffix in suffixes)
                   and (root / path).is_file()})


def text(root: Path, path: Path) -> str:
    return (root / path).read_text(encoding="utf-8", errors="replace")


def finish(tool: str, looked_at: int, problems: list, warnings=()) -> int:
    """Prints warnings and problems; returns the exit code."""
    for warning in warnings:
        print(f"warning: {warning}")
    for problem in problems:
        print(problem, file=sys.stderr)
    verdict = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}" if problems else "ok"
    print(f"{tool}: {looked_at} files, {verdict}")
    return 1 if problems else 0

"""The command `hostless`, as `python -m hostless` and as the script that pip installs."""

import os
import sys


def main() -> None:
    from ._sources import command

    path = command()
    os.environ.setdefault("HOSTLESS_PYTHON", sys.executable)  # `hostless report` is this package's
    try:
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as problem:
        sys.exit(f"hostless: {path}: {problem.strerror} (it is the command itself). Install the package again.")


if __name__ == "__main__":
    main()

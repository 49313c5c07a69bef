"""python3 -m hostless.report result.json [more.json ...] -o report.html

Exit codes: 0 done, 2 usage and files that are not there, 3 a file that is no result, 4 something is missing or cannot be
read or written.
"""

import argparse
import math
import sys
from pathlib import Path

from .page import make_page


def positive(text: str) -> float:
    value = float(text)
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(text)
    return value


def main(argv=None) -> int:
    """Runs the command and returns its exit code; argv: its words, those of the process where it is None."""
    parser = argparse.ArgumentParser(prog="hostless report", description="One HTML page of JSON results: tables and "
                                     "pictures, in one file that loads nothing.")
    parser.add_argument("files", nargs="+", help="JSON files of `hostless solve`, `plan` and `bench solve`")
    parser.add_argument("-o", "--output", default="report.html", help="the page; - for standard output (report.html)")
    parser.add_argument("--title", default="", help="of the page (made from the results)")
    parser.add_argument("--bandwidth", type=positive, metavar="BYTES", help="bytes a second that the memory of a solve "
                        "can be read at, for results without a measurement (those of GPUs)")
    options = parser.parse_args(argv)
    try:
        page = make_page(options.files, title=options.title, bandwidth=options.bandwidth)
    except OSError as error:
        no_file = isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError))
        return fail(2 if no_file else 4, f"{error.filename}: {error.strerror}.")
    except ValueError as error:
        return fail(3, error)
    except ImportError as error:
        return fail(4, error)
    if options.output == "-":
        sys.stdout.buffer.write(page.encode())
        return 0
    try:
        Path(options.output).write_text(page, encoding="utf-8")
    except OSError as error:
        return fail(4, f"{options.output}: cannot be written: {error.strerror} (the page would be lost). Name a file in "
                    "a folder where you may write.")
    print(f"{options.output}: {len(options.files)} file{'s' if len(options.files) != 1 else ''}, {len(page.encode())} bytes")
    return 0


def fail(code: int, problem) -> int:
    print(f"hostless: {problem}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

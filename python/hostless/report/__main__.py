"""python3 -m hostless.report result.json [more.json ...] -o report.html

Exit codes: 0 done, 2 usage, 3 a file that is no result or cannot be read, 4 something is missing or cannot be written.
"""

import argparse
import errno
import math
import os
import sys

from .._whole_file import write_whole
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
    parser.add_argument("files", nargs="+", help="JSON files of `hostless solve`, `stencil`, `plan` and `bench solve`")
    parser.add_argument("-o", "--output", default="report.html", help="the page; - for standard output (report.html)")
    parser.add_argument("--title", default="", help="of the page (made from the results)")
    parser.add_argument("--bandwidth", type=positive, metavar="BYTES", help="bytes a second that the memory of a solve "
                        "can be read at, for results without a measurement (those of GPUs)")
    options = parser.parse_args(argv)
    for name in options.files:
        if options.output != "-" and is_same_file(name, options.output):
            return fail(2, f"--output and {name} are one file (the page would replace the result). Name another file.")
    try:
        page = make_page(options.files, title=options.title, bandwidth=options.bandwidth)
    except OSError as error:
        return fail(3, f"{error.filename}: {error.strerror}.")
    except ValueError as error:
        return fail(3, error)
    except ImportError as error:
        return fail(4, error)
    if options.output == "-":
        return put(page.encode())
    try:
        write_whole(options.output, page)
    except OSError as error:
        return fail(4, f"{options.output}: cannot be written: {error.strerror} (the page would be lost). Name a file in "
                    "a folder where you may write.")
    return put(f"{options.output}: {len(options.files)} file{'s' if len(options.files) != 1 else ''}, "
               f"{len(page.encode())} bytes\n".encode())


def is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def put(what: bytes) -> int:
    """To standard output, with the exit code: Python itself would notice at its end, and end with 120."""
    try:
        if sys.stdout is None:  # it was closed
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        out = getattr(sys.stdout, "buffer", None)
        if out is None:  # a stream of text only, in a notebook
            sys.stdout.write(what.decode())
        else:
            sys.stdout.flush()
            out.write(what)
        sys.stdout.flush()
    except OSError as error:
        if sys.stdout is sys.__stdout__ and sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would be tried again
        return fail(4, f"standard output cannot be written: {error.strerror} (what was to be printed is lost). Give it a "
                    "place with room, or name a file.")
    return 0


def fail(code: int, problem) -> int:
    print(f"hostless: {problem}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

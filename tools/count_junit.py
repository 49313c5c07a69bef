#!/usr/bin/env python3
"""Prints `<passed> <failed>` of a JUnit report that ctest wrote. Skipped and disabled tests count as neither."""

import argparse
import sys
import xml.etree.ElementTree as ElementTree


def count(path: str) -> tuple:
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    failed = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None
                 or case.get("status") == "fail")
    passed = sum(1 for case in cases if case.get("status", "run") == "run" and case.find("failure") is None
                 and case.find("error") is None and case.find("skipped") is None)
    return passed, failed


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="the file given to ctest --output-junit")
    print(*count(parser.parse_args(argv).report))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Counts the tests inside the programs that ctest ran, lists what was skipped with the reason, and judges the skips.

    tools/count_tests.py tests=build/tests.xml                       what a user sees after `make test`
    tools/count_tests.py --allowed tests/allowed_skips.txt --where ci,no-gpu packages=0 tests=0:build/tests.xml fuzz=1

A stage is `name=report`, `name=exit code` or `name=exit code:report`; a report is what `ctest --output-junit` wrote with
the whole output of passed tests (--test-output-size-passed). Inside a program tests of GoogleTest, unittest and pytest are
counted one by one. A stage without a report counts as one test. With --allowed, a skip that the list does not allow
here counts as failed, and so does an entry of it that applies here and allowed nothing. The last line is
`N passed, M failed, K skipped`; the exit code is 1 where M is not 0.
"""

import argparse
import fnmatch
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

UNNAMED = "(not named)"


@dataclass
class Skip:
    stage: str
    test: str  # program::test, or the program alone
    reason: str


@dataclass
class Count:
    passed: int = 0
    failures: list = field(default_factory=list)  # (stage, what failed)
    skips: list = field(default_factory=list)

    def add(self, other) -> None:
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips


@dataclass
class Found:
    """What the output of one framework says: the sums of its last lines, and the names that it printed."""
    passed: int
    failed: int
    skipped: int
    named: list  # (test, reason) of skips


def google_test(text: str):
    if "[==========] Running " not in text:
        return None
    named, failed, said = [], set(), []
    for line in text.splitlines():
        ended = re.search(r"\[ +(OK|SKIPPED|FAILED) +\] ([^\s,]+).* \(\d+ ms\)$", line)
        if "[ RUN      ] " in line:
            said = []
        elif not ended:
            said.append(line)
        elif ended[1] == "SKIPPED":
            words = "\n".join(said).partition(": Skipped\n")[2]
            named.append((ended[2], " ".join(words.split())))
        elif ended[1] == "FAILED":
            failed.add(ended[2])
    passed = sum(map(int, re.findall(r"^\[  PASSED  \] (\d+) tests?", text, re.M)))
    skipped = sum(map(int, re.findall(r"^\[  SKIPPED \] (\d+) tests?, listed below", text, re.M)))
    return Found(passed, len(failed), max(skipped, len(named)), named)


def unit_test(text: str):
    ran = re.findall(r"^Ran (\d+) tests? in ", text, re.M)
    if not ran:
        return None
    sums = Counter()
    for words in re.findall(r"^(?:OK|FAILED) \((.*)\)$", text, re.M):
        sums.update({kind: int(number) for kind, number in re.findall(r"(\w+)=(\d+)", words)})
    named, test = [], UNNAMED
    for line in text.splitlines():
        begun = re.match(r"\s*(\w+) \(([\w.]+)\)", line)
        test = begun[2] if begun else test
        why = re.search(r"\.\.\. .*?skipped (['\"])(.*)\1$", line)
        if why:
            named.append((test, why[2]))
    failed, skipped = sums["failures"] + sums["errors"], max(sums["skipped"], len(named))
    return Found(max(0, sum(map(int, ran)) - failed - skipped), failed, skipped, named)


def py_test(text: str):
    last = re.findall(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s.*$", text, re.M)
    if not last and not re.search(r"^no tests ran in ", text, re.M):
        return None
    sums = Counter()
    for words in last:
        sums.update({kind: int(number) for number, kind in re.findall(r"(\d+) (\w+)", words)})
    named = re.findall(r"^SKIPPED (?!\[)(\S.*?) - (?:Skipped: )?(.*)$", text, re.M)
    return Found(sums["passed"] + sums["xfailed"], sums["failed"] + sums["errors"] + sums["error"] + sums["xpassed"],
                 max(sums["skipped"], len(named)), named)


def count_case(stage: str, case) -> Count:
    """One program of a report."""
    program = case.get("name")
    text = case.findtext("system-out") or ""
    left_out = case.find("skipped")
    why = left_out.get("message", "") if left_out is not None else ""
    whole_skip = why.startswith("SKIP_") or case.get("status") == "disabled"
    ok = case.get("status", "run") == "run" and case.find("failure") is None and case.find("error") is None
    count = Count()
    if whole_skip and re.search(r"(ERROR|WARNING): \w+Sanitizer|runtime error: ", text):  # ctest looks at its words alone
        whole_skip, why = False, "a sanitizer has found something"
    inside = [found for found in (google_test(text), unit_test(text), py_test(text)) if found]
    for found in inside:
        count.passed += found.passed
        count.skips += [Skip(stage, f"{program}::{test}", reason) for test, reason in found.named]
        count.skips += [Skip(stage, f"{program}::{UNNAMED}", "")] * (found.skipped - len(found.named))
        count.failures += [(stage, f"{program}: a test inside it")] * found.failed
    if whole_skip and not count.skips:
        said = [line for line in text.splitlines() if "skip" in line.lower() or "not compiled" in line]
        count.skips.append(Skip(stage, program, said[-1].strip() if said else why))
    elif ok and not inside:
        count.passed += 1
    elif ok and not count.passed and not count.skips:
        count.skips.append(Skip(stage, program, "no test ran: what its command line asks for is not in it"))
    if not ok and not whole_skip and not count.failures:
        count.failures.append((stage, f"{program}: {why or 'failed'}"))
    return count


def count_stage(words: str) -> Count:
    name, _, what = words.partition("=")
    code, _, report = what.partition(":") if re.match(r"\d+(:|$)", what) else ("0", "", what)
    count = Count()
    if report and Path(report).is_file():
        try:
            for case in ElementTree.parse(report).getroot().iter("testcase"):
                count.add(count_case(name, case))
        except ElementTree.ParseError as error:
            count.failures.append((name, f"{report}: {error}"))
    elif report:
        count.failures.append((name, f"{report} was not written"))
    elif code == "0":
        count.passed = 1
    # A stage that failed before or beside its tests (a build, a sanitizer's start) must not vanish in the sum.
    if code != "0" and not count.failures:
        count.failures.append((name, f"exit code {code}"))
    return count


@dataclass
class Entry:
    where: list
    test: str
    reason: str
    line: int
    maybe: bool  # it may have nothing to allow
    used: int = 0

    def applies(self, places: set) -> bool:
        return all((word[1:] not in places) if word.startswith("!") else (word in places) for word in self.where)

    def allows(self, skip: Skip, places: set) -> bool:
        return (self.applies(places | {skip.stage}) and fnmatch.fnmatchcase(skip.test, self.test)
                and fnmatch.fnmatchcase(skip.reason, self.reason))


def read_allowed(path: str) -> list:
    """Lines `where | test | reason`; where ends with ? when there may be nothing to allow."""
    entries = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise SystemExit(f"{path}:{number}: '{line}' is no entry (three parts are needed). "
                             "Write: where | program::test | reason")
        words = parts[0].rstrip("?").split()
        entries.append(Entry(words, parts[1], parts[2], number, parts[0].endswith("?")))
    return entries


def judge(count: Count, entries: list, path: str, places: set, stages: set) -> None:
    """Turns skips that nothing allows, and entries that allowed nothing, into failures."""
    skips, count.skips = count.skips, []
    for skip in skips:
        allowing = [entry for entry in entries if entry.allows(skip, places)]
        for entry in allowing:
            entry.used += 1
        if allowing:
            count.skips.append(skip)
        else:
            count.failures.append((skip.stage, f"{skip.test} was skipped, which {path} does not allow here: {skip.reason}"))
    for entry in entries:
        if not entry.used and not entry.maybe and any(entry.applies(places | {stage}) for stage in stages):
            count.failures.append((f"{path}:{entry.line}", f"nothing was skipped as '{entry.test}' with '{entry.reason}': "
                                   "remove the entry, or mend its pattern"))


def list_skips(skips: list, every: bool) -> None:
    together = {}
    for skip in skips:
        program, _, test = skip.test.partition("::")
        together.setdefault((skip.stage, program, skip.reason), []).append(test)
    for (stage, program, reason), tests in together.items():
        names = [test for test in tests if test]
        few = names if every or len(names) <= 3 else [names[0], f"and {len(names) - 1} more"]
        print(f"skipped: {stage}: {program}{': ' if few else ''}{', '.join(few)} ({reason or 'no reason was printed'})")


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="+", metavar="stage", help="name=report, name=code or name=code:report")
    parser.add_argument("--allowed", help="the list of skips that are allowed; without it none is judged")
    parser.add_argument("--where", default="", help="words of this place that the list knows, with commas")
    parser.add_argument("--every", action="store_true", help="name every skipped test, not the first of many")
    options = parser.parse_args(argv)
    count, places = Count(), set(filter(None, options.where.split(",")))
    whole = set()
    for words in options.stages:
        one = count_stage(words)
        count.add(one)
        if not one.failures:  # what a broken stage did not reach makes no entry stale
            whole.add(words.partition("=")[0])
    list_skips(count.skips, options.every)
    if options.allowed:
        judge(count, read_allowed(options.allowed), options.allowed, places, whole)
    for stage, what in count.failures:
        print(f"failed: {stage}: {what}")
    print(f"{count.passed} passed, {len(count.failures)} failed, {len(count.skips)} skipped")
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""How tests/device/run_suite.sh judges, with programs in the place of the device programs that print what they are told."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from tests.checkout import checkout

SUITE = Path(__file__).resolve().parents[2] / "tests/device/run_suite.sh"
PROGRAMS = re.findall(r"\w+", " ".join(re.findall(r"^of_(?:one|several)=\(([^)]*)\)", SUITE.read_text(), re.M)))

ROWS = len(PROGRAMS) + 1  # exchange twice: by the library of tests, too


def output(passed, skipped=0, failed=0, reason="no GPU is visible"):
    text = f"{reason}\n".join("gpu_setting.hpp:32: Skipped\n" for _ in range(skipped)) + (f"{reason}\n" if skipped else "")
    text += f"[  PASSED  ] {passed} tests.\n"
    if skipped:
        text += f"[  SKIPPED ] {skipped} tests, listed below:\n"
    return text + (f"[  FAILED  ] {failed} tests, listed below:\n" if failed else "")


def suite(special=None, stages=("plain",), code=None, **environment):
    """(exit code, rows by name, everything printed); `special`: what a program prints instead of a good end."""
    texts = {program: output(3) for program in PROGRAMS} | (special or {})
    files = {f"{name}.txt": text for name, text in texts.items()}
    for name in texts:
        files[f"device_{name}"] = f"#!/bin/sh\ncat {name}.txt\nexit {(code or {}).get(name, 0)}\n"
    files["every_gpu_transport.py"] = f"print('said')\nraise SystemExit({(code or {}).get('every_gpu_transport', 0)})\n"
    with checkout(files) as root:
        for name in texts:
            (root / f"device_{name}").chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if name not in ("ONLY", "MAY_SKIP", "GPUS")}
        done = subprocess.run(["bash", SUITE, "-C", root, *stages], env={**kept, **environment}, capture_output=True,
                              text=True, timeout=600, check=False)
    rows = {match[2]: match[0] for match in re.finditer(r"^(\S+) +(\S+) .*$", done.stdout, re.M)}
    return done.returncode, rows, done.stdout + done.stderr


class Judging(unittest.TestCase):
    def test_all_passed(self):
        code, rows, text = suite()
        self.assertEqual(code, 0, text)
        self.assertIn(f"{ROWS} of {ROWS} rows ok", text)
        self.assertTrue(rows["peers"].endswith(" ok"), text)

    def test_a_row_of_skips_is_not_ok(self):
        code, rows, text = suite({"peers": output(0, 20)})
        self.assertEqual(code, 1, text)
        self.assertIn("NOTHING WAS TRIED: 20 x no GPU is visible", rows["peers"])
        self.assertIn(f"{ROWS - 1} of {ROWS} rows ok, 1 tried nothing", text)

    def test_unless_it_is_named(self):
        special = {"peers": output(0, 20), "nvshmem": output(0, 3, reason="no NVSHMEM")}
        self.assertEqual(suite(special, MAY_SKIP="plain-nvshmem")[0], 1)
        code, rows, text = suite(special, MAY_SKIP="other plain-peers* plain-nv*")
        self.assertEqual(code, 0, text)
        self.assertIn("nothing was tried, as MAY_SKIP allows: 3 x no NVSHMEM", rows["nvshmem"])

    def test_some_skips_beside_passed_tests_are_told(self):
        code, rows, text = suite({"peers": output(17, 6, reason="no persistent kernel")})
        self.assertEqual(code, 0, text)
        self.assertTrue(rows["peers"].endswith(" ok"))
        self.assertIn("plain-peers: skipped 6 x no persistent kernel", text)

    def test_what_failed_hung_or_ran_nothing(self):
        code, rows, text = suite({"life": output(2, failed=1), "loss": "", "stop": output(2)}, code={"life": 1, "stop": 137},
                                 MAY_SKIP="*")
        self.assertEqual(code, 1, text)
        self.assertIn("exit code 1", rows["life"])
        self.assertIn("no test ran", rows["loss"])
        self.assertIn("hung: killed after 300 s", rows["stop"])
        self.assertIn(f"{ROWS - 3} of {ROWS} rows ok\n", text)

    def test_scripts_that_tried_nothing(self):
        code, rows, text = suite(stages=("plain", "processes"), code={"every_gpu_transport": 3})
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"processes +gpu_transports .*NOTHING WAS TRIED: said")
        code, rows, text = suite(stages=("plain", "processes"), code={"every_gpu_transport": 3}, MAY_SKIP="processes-gpu_transports")
        self.assertEqual(code, 0, text)

    def test_no_gpu_at_all(self):
        nothing = {program: output(0, 4) for program in PROGRAMS}
        for allowed in ("", "*"):
            code, _, text = suite(nothing, MAY_SKIP=allowed)
            self.assertEqual(code, 3, text)
            self.assertIn("nothing was shown: no GPU could be used", text)


if __name__ == "__main__":
    unittest.main()

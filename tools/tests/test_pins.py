"""What python/requirements pins: all of it with hashes, one version for all purposes, and what the package asks for."""

import ast
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINNED = ROOT / "python" / "requirements"


class Pins(unittest.TestCase):
    def lines(self, name):
        text = (PINNED / name).read_text(encoding="utf-8")
        return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]

    def test_every_purpose_is_pinned_with_hashes(self):
        purposes = sorted(path.stem for path in PINNED.glob("*.in"))
        self.assertIn("package", purposes)
        self.assertEqual(purposes, sorted(path.stem for path in PINNED.glob("*.txt")))
        for purpose in purposes:
            packages = re.findall(r"^([a-z0-9-]+)==(\S+)[^\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
                                  (PINNED / f"{purpose}.txt").read_text(encoding="utf-8"), re.M)
            self.assertEqual(len(packages), sum("==" in re.split(" ;|--", line)[0] for line in self.lines(f"{purpose}.txt")))
            for wanted in self.lines(f"{purpose}.in"):
                self.assertIn(re.split("[ <>=~!;]", wanted)[0], {name for name, _, _ in packages}, "run tools/pin_requirements.sh")

    def test_purposes_agree_on_versions(self):
        versions = {}
        for path in PINNED.glob("*.txt"):
            for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(encoding="utf-8"), re.M):
                versions.setdefault(name, {}).setdefault(path.name, set()).add(version)
        for name, by_file in versions.items():
            self.assertEqual(len({frozenset(of) for of in by_file.values()}), 1, f"{name}: {by_file}")

    def test_they_are_what_the_package_asks_for(self):
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        asked = {what for key in ("requires", "dependencies")
                 for what in ast.literal_eval(re.search(rf"^{key} = (\[.*?\])$", project, re.M | re.S)[1])}
        self.assertGreaterEqual(len(asked), 4)
        self.assertLessEqual(asked, set(self.lines("package.in")))


if __name__ == "__main__":
    unittest.main()

"""What the short names of the Makefile run, with a cmake that only notes what it is asked."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CMAKE = """#!/bin/sh
echo "$*" >> cmake.log
case "$1" in --preset) mkdir -p build/apps/hostless; touch build/gpu-libraries.txt;; esac
case "$1" in --build) cp /bin/true build/apps/hostless/hostless;; esac
"""


class Installing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "tools").mkdir()
        (self.folder / "bin").mkdir()
        shutil.copy(ROOT / "Makefile", self.folder)
        for name, text in {"tools/setup.sh": "#!/bin/sh\n", "tools/demo.sh": "#!/bin/sh\n", "bin/cmake": CMAKE}.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def make(self, *words):
        """What cmake was asked by it."""
        kept = {name: value for name, value in os.environ.items() if name not in ("GPU", "PREFIX", "CMAKE_FLAGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        kept["PATH"] = f"{self.folder / 'bin'}:{kept['PATH']}"
        log = self.folder / "cmake.log"
        log.unlink(missing_ok=True)
        subprocess.run(["make", *words], cwd=self.folder, env=kept, check=True, capture_output=True, timeout=600)
        return log.read_text().splitlines()

    def test_what_was_built_is_installed(self):
        self.assertIn("-DHOSTLESS_GPU=OFF", self.make("demo", "GPU=off")[0])
        asked = self.make("install", "PREFIX=/there")
        self.assertEqual([one for one in asked if "--preset" in one], [])  # which would compile GPU libraries
        self.assertEqual(asked[-1], "--install build --prefix /there")

    def test_who_says_gpu_again_means_it(self):
        self.make("demo", "GPU=off")
        asked = self.make("install", "GPU=auto")
        self.assertIn("-DHOSTLESS_GPU=ON", asked[0])
        self.assertTrue(asked[-1].startswith("--install build"))

    def test_nothing_built_is_built_first(self):
        asked = self.make("install", "GPU=off")
        self.assertIn("-DHOSTLESS_GPU=OFF", asked[0])
        self.assertTrue(asked[-1].startswith("--install build"))


if __name__ == "__main__":
    unittest.main()

"""tools/python_environment.sh with packages of this test's own in place of an index: what is installed has the pinned hash,
what has another one ends it, what is not to be had is said."""

import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def wheel(folder, name, version="1.0"):
    """Writes a package of one module; its file."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in ((f"{name}.py", "there = True\n"), (f"{about}/RECORD", ""),
                             (f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
                             (f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")):
            archive.writestr(member, text)
    return path


def source(folder, name, version="1.0"):
    """The same as a source distribution, whose set-up says that it was run."""
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, text in (("PKG-INFO", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
                             ("setup.py", "import os, pathlib\npathlib.Path(os.environ['MARKER']).write_text('ran')\n")):
            entry = tarfile.TarInfo(f"{name}-{version}/{member}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def pin(path, version="1.0"):
    return f"{path.name.split('-')[0]}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@unittest.skipUnless(os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
                     "the headers of Python are missing, without which the tool leaves at once")
class PythonEnvironment(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("index", "tools", "python/requirements"):
            (self.folder / name).mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "python_environment.sh", self.folder / "tools")
        self.index = self.folder / "index"
        self.pinned("package", pin(wheel(self.index, "needed_by_this_test")))

    def pinned(self, purpose, text):
        (self.folder / "python" / "requirements" / f"{purpose}.txt").write_text(text)

    def make(self, tool=("bash", "python_environment.sh")):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(self.index), MARKER=str(self.folder / "marker"))
        runs, name, *words = tool
        return subprocess.run([runs, str(self.folder / "tools" / name), *words], env=environment, capture_output=True, text=True,
                              timeout=600, check=False)

    def has(self, module):
        python = self.folder / ".venv" / "bin" / "python"
        return python.exists() and subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0

    def is_marked(self):
        return any((self.folder / ".venv").glob(".holds.*"))

    def test_what_is_pinned_is_installed_and_the_rest_is_named(self):
        self.pinned("pictures", pin(wheel(self.index, "drawn_by_this_test")))
        self.pinned("mpi", "not_to_be_had==1.0 --hash=sha256:" + 64 * "0" + "\n")
        self.pinned("notebooks", pin(source(self.index, "built_by_this_test")))
        self.pinned("arrays", pin(wheel(self.index, "of_another_folder")))
        done = self.make()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.has("needed_by_this_test") and self.has("drawn_by_this_test") and self.is_marked())
        self.assertIn("could not install what python/requirements/mpi.txt pins", done.stdout)
        self.assertIn("could not install what python/requirements/notebooks.txt pins", done.stdout)
        self.assertFalse((self.folder / "marker").exists(), "a set-up was run: nothing is to be built from source")
        self.assertNotIn("pictures.txt", done.stdout)
        self.assertFalse(self.has("of_another_folder"))
        again = self.make()  # what was left out is tried again
        self.assertEqual(again.returncode, 0)
        self.assertIn("pip could not install", again.stdout)
        self.pinned("mpi", pin(wheel(self.index, "at_last")))
        self.make()
        self.assertTrue(self.has("at_last"), "other pins, another environment")

    def test_another_hash_ends_it(self):
        for purpose in ("package", "pictures"):
            with self.subTest(purpose):
                self.pinned("package", pin(self.index / "needed_by_this_test-1.0-py3-none-any.whl"))
                self.pinned(purpose, re.sub("[0-9a-f]{64}", 64 * "1", pin(wheel(self.index, "exchanged"))))
                done = self.make()
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(f"python/requirements/{purpose}.txt pins another hash", done.stderr)
                self.assertFalse(self.has("exchanged") or self.is_marked())

    @unittest.skipIf(importlib.util.find_spec("pip") is None, "this Python has no pip, which installs arrays for tests")
    def test_arrays_of_another_hash_end_it_too(self):
        shutil.copy(ROOT / "tools" / "torch_for_tests.py", self.folder / "tools")
        self.pinned("arrays", re.sub("[0-9a-f]{64}", 64 * "1", pin(wheel(self.index, "exchanged"))))
        done = self.make((sys.executable, "torch_for_tests.py", "--python", sys.executable))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("python/requirements/arrays.txt pins another hash", done.stderr)
        self.assertFalse((self.folder / ".torch").exists())

    def test_without_the_packages_that_build_it_there_is_no_environment(self):
        (self.index / "needed_by_this_test-1.0-py3-none-any.whl").unlink()
        done = self.make()
        self.assertEqual(done.returncode, 0)
        self.assertIn("the Python package is neither built nor tested", done.stdout)
        self.assertFalse((self.folder / ".venv").exists())


if __name__ == "__main__":
    unittest.main()

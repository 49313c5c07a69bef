"""tools/fetch_headers.sh with packages of this test's own in place of an index: nothing of them runs before the hash of the
archive is known to be the reviewed one, and nothing at all runs that is in it or that it asks for."""

import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "fetch_headers.sh"
NAME = "fast_matrix_market-1.7.6"
#: A build backend inside the archive: pip runs it for the metadata of what it downloads.
BACKEND = '''import os, pathlib
pathlib.Path(os.environ["MARKER"]).write_text("ran")
def prepare_metadata_for_build_wheel(folder, settings=None):
    name = "fast_matrix_market-1.7.6.dist-info"
    os.mkdir(os.path.join(folder, name))
    with open(os.path.join(folder, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: fast-matrix-market\\nVersion: 1.7.6\\n")
    return name
def build_wheel(*ignored): raise RuntimeError
build_sdist = build_wheel
'''
WITHIN = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
AS_IT_IS = '[build-system]\nrequires = ["scikit-build-core", "pybind11"]\nbuild-backend = "scikit_build_core.build"\n'
FILES = {"PKG-INFO": "Metadata-Version: 2.1\nName: fast_matrix_market\nVersion: 1.7.6\n", "LICENSE.txt": "words\n",
         "fast_matrix_market/include/fast_matrix_market/fast_matrix_market.hpp": "// of this test\n",
         "fast_matrix_market/dependencies/fast_float/include/fast_float/fast_float.h": "// of this test\n",
         "fast_matrix_market/dependencies/fast_float/LICENSE-MIT": "words\n"}


@unittest.skipIf(subprocess.run(["python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0,
                 "python3 has no pip, which downloads the headers")
class FetchHeaders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "index").mkdir()
        (self.folder / "tools").mkdir()
        self.tool = self.folder / "tools" / TOOL.name
        shutil.copy(TOOL, self.tool)

    def publish(self, project):
        """Puts an archive where pip will find it; its hash."""
        path = self.folder / "index" / f"{NAME}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, text in {**FILES, "pyproject.toml": project, "backend.py": BACKEND}.items():
                entry = tarfile.TarInfo(f"{NAME}/{name}")
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def trust(self, sha256):
        text, changes = re.subn(r"^sha256=[0-9a-f]{64}$", f"sha256={sha256}", self.tool.read_text(), flags=re.M)
        self.assertEqual(changes, 1)
        self.tool.write_text(text)

    def fetch(self, *words):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("PIP_") and name not in ("HOSTLESS_FMM_TARBALL", "PYTHONPATH")}
        environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(self.folder / "index"), MARKER=str(self.folder / "marker"))
        return subprocess.run(["sh", str(self.tool), str(self.folder / "headers"), *map(str, words)], env=environment,
                              capture_output=True, text=True, timeout=600, check=False)

    def ran(self):
        return (self.folder / "marker").exists()

    def test_an_archive_with_another_hash_never_runs(self):
        self.publish(WITHIN)
        done = self.fetch()
        self.assertFalse(self.ran(), "code of an unknown archive was run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has another sha256 than 38f36d28", done.stderr)
        self.assertFalse((self.folder / "headers").exists())

    def test_nothing_that_the_archive_asks_for_is_fetched_or_run(self):
        self.trust(self.publish(AS_IT_IS))
        done = self.fetch()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(self.ran())
        for name in ("fast_matrix_market/fast_matrix_market.hpp", "fast_float/fast_float.h", "fast_matrix_market/LICENSE.txt"):
            self.assertTrue((self.folder / "headers" / name).is_file(), name)
        (self.folder / "index" / f"{NAME}.tar.gz").unlink()
        self.assertEqual(self.fetch().returncode, 0)  # they are there

    def test_a_tarball_by_hand_is_verified_too(self):
        sha256, tarball = self.publish(AS_IT_IS), self.folder / "index" / f"{NAME}.tar.gz"
        self.assertIn("has another sha256", self.fetch(tarball).stderr)
        self.assertFalse((self.folder / "headers").exists())
        self.trust(sha256)
        self.assertEqual(self.fetch(tarball).returncode, 0)
        self.assertIn("is not a file", self.fetch_again_without(self.folder / "nowhere.tar.gz"))

    def fetch_again_without(self, tarball):
        shutil.rmtree(self.folder / "headers")
        return self.fetch(tarball).stderr

    def test_without_an_index_it_says_what_to_do(self):
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        self.assertIn("Give the tarball as second argument", done.stderr)


if __name__ == "__main__":
    unittest.main()

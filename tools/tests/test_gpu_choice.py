"""Who is given a GPU compiler, and whose GPU libraries are compiled: `GPU=` of make and of tools/setup.sh."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from tests.checkout import checkout

ROOT = Path(__file__).resolve().parents[2]
FAKES = {
    "dpkg-query": 'for name; do :; done\ncase $name in hipcc) exit 1 ;; *) printf installed ;; esac\n',
    "apt-cache": "exit 0\n",
    "apt-get": 'echo "$@" >>"$LOG"\n',
    "sudo": 'shift\n"$@"\n',
}


def asked_of_apt(level, **environment):
    """What tools/setup.sh has apt install on a machine that lacks hipcc alone."""
    empty = "#!/bin/sh\n"
    files = {"tools/setup.sh": (ROOT / "tools/setup.sh").read_text(), "tools/fetch_headers.sh": empty,
             "tools/python_environment.sh": empty, "tools/torch_for_tests.py": empty, "log": ""}
    with checkout(files | {f"bin/{name}": empty + text for name, text in FAKES.items()}) as root:
        for program in (*root.glob("bin/*"), *root.glob("tools/*")):
            program.chmod(0o755)
        for program in ("bash", "dirname", "env", "id", "sed"):  # and nothing else: a hipcc of this machine is not seen
            (root / "bin" / program).symlink_to(shutil.which(program))
        kept = {name: value for name, value in os.environ.items() if name not in ("GPU", "TORCH", "HOSTLESS_SETUP")}
        done = subprocess.run(["bash", root / "tools/setup.sh", level], capture_output=True, text=True, check=False, timeout=600,
                              env={**kept, "PATH": str(root / "bin"), "LOG": str(root / "log"), **environment})
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return [word for word in (root / "log").read_text().split() if word == "hipcc"]


def made(*words):
    """What make would do."""
    kept = {name: value for name, value in os.environ.items() if name not in ("GPU", "MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(["make", "-n", "-C", ROOT, *words], capture_output=True, text=True, check=False, env=kept, timeout=600)


@unittest.skipIf(shutil.which("make") is None, "there is no make")
class Make(unittest.TestCase):
    def test_gpu_libraries_are_compiled_unless_they_are_left_out(self):
        for target in ("demo", "test"):
            for gpu, flag in (("auto", "ON"), ("on", "ON"), ("off", "OFF")):
                self.assertIn(f"-DHOSTLESS_GPU={flag}", made(target, f"GPU={gpu}").stdout)
            self.assertIn("-DHOSTLESS_GPU=ON", made(target).stdout)

    def test_another_word_is_refused(self):
        done = made("test", "GPU=yes")
        self.assertEqual(done.returncode, 2)
        self.assertIn("GPU=yes: this says whether", done.stderr)


class Setup(unittest.TestCase):
    def test_nobody_is_given_a_compiler_unasked(self):
        for level in ("build", "test", "pictures", "ci"):
            for environment in ({}, {"GPU": "auto"}, {"GPU": "off"}):
                self.assertEqual(asked_of_apt(level, **environment), [], level)

    def test_who_asks_gets_it(self):
        for level in ("build", "test", "ci"):
            self.assertEqual(asked_of_apt(level, GPU="on"), ["hipcc"], level)


if __name__ == "__main__":
    unittest.main()

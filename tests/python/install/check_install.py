#!/usr/bin/env python3
"""check_install.py SOURCE WORK BUILD: what README promises to Python users.

Makes a fresh virtual environment in WORK, installs there what python/requirements/package.txt pins, by hash, and then SOURCE
with pip, which may look for nothing else: what builds SOURCE and what it needs must be among the pinned. Runs README's Python
lines, the command and its script. Packages come as pip finds them (set PIP_FIND_LINKS and PIP_NO_INDEX without a network).
It is compiled in BUILD, a folder made for that. Objects of a build folder beside it come from ccache where it is installed:
seen from both, all that is read has the same names.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv


def must(*words, **how):
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **how)
    if ran.returncode != 0:
        sys.exit(f"failed ({ran.returncode}): {' '.join(map(str, words))}\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}")
    return ran.stdout


def main(source: pathlib.Path, work: pathlib.Path, build: pathlib.Path) -> None:
    for folder in (work, build):
        shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True)
    readme = (source / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"```python\n(.*?)```", readme, re.S)
    if not lines:
        sys.exit("README.md has no Python lines (they are what users try first). Write them.")
    venv.create(work / "venv", with_pip=True)
    python = work / "venv" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HOSTLESS_PLUGIN_DIR")}
    environment.update(CC="cc", CXX="c++")  # as CMake calls them elsewhere: ccache tells compilers apart by name
    environment["CMAKE_BUILD_PARALLEL_LEVEL"] = str(os.cpu_count())
    install = (python, "-m", "pip", "install", "--disable-pip-version-check")
    must(*install, "--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement",
         source / "python" / "requirements" / "package.txt", cwd=work, env=environment)
    must(*install, "--no-build-isolation", "--no-index", "--config-settings", f"build-dir={build}", f"{source}", cwd=work, env=environment)
    shutil.rmtree(build)
    for number, text in enumerate(lines):
        script = work / f"readme{number}.py"
        script.write_text(text, encoding="utf-8")
        print(must(python, script, cwd=work, env=environment), end="")
    where = must(python, "-c", "import hostless; print(hostless.__file__)", cwd=work, env=environment).strip()
    package = pathlib.Path(where).parent
    if work not in package.parents:
        sys.exit(f"{package} was imported, not what pip installed")
    for name in ("py.typed", "_core.pyi", "hostless"):
        if not (package / name).exists():
            sys.exit(f"{name} was not installed into {package}")
    said = must(work / "venv" / "bin" / "hostless", "doctor", "--seconds", "0.01", "--json", "-", env=environment)
    for plugin in package.glob("libhostless_mpi_*.so"):
        if str(plugin) not in said:
            sys.exit(f"the installed command does not find {plugin}:\n{said}")
    print(must(work / "venv" / "bin" / "hostless", "solve", "--generate", "poisson2d", "--no-bandwidth",
               env=environment).splitlines()[0])


if __name__ == "__main__":
    main(*(pathlib.Path(word).resolve() for word in sys.argv[1:4]))

#!/usr/bin/env python3
"""Puts torch for the processor, Numba and an Array API library into .torch, for tests/python/arrays.

PyPI's torch for Linux on x86-64 is one for GPUs, whose CUDA libraries take gigabytes. Without them it does not load, so
libraries without a function stand in their place (.torch/absent): what calls none of them, as everything on the processor,
is torch as people have it. Half a gigabyte comes over the network, once. Does nothing where everything is there; where it
cannot be made, says why and leaves: the tests are then skipped, saying so. Packages have the versions and hashes that
python/requirements/arrays.txt pins; another hash ends it with 1.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".torch"
PINNED = ROOT / "python" / "requirements" / "arrays.txt"
OF_CUDA = re.compile(r"lib(cu|nv|nccl)")
UNVERSIONED = re.compile(r"p?nccl|cusparseLt|cu[A-Z]")  # names of functions


def run(*words, **environment):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


def needed_by(libraries):
    """Of CUDA's libraries that these need: name -> (names of symbol versions, or none, and functions that are asked of it)."""
    versions, functions, names = {}, {}, set()
    for library in libraries:
        names |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", library).stdout))
        for name, inside in re.findall(r"File: (\S+)(.*?)(?=File: |\Z)", run("readelf", "-VW", library).stdout, re.S):
            versions.setdefault(name, set()).update(re.findall(r"Name: (\S+)\s+Flags", inside))
        for symbol in re.findall(r"\S+$", run("nm", "-D", "--undefined-only", library).stdout, re.M):
            name, _, version = symbol.partition("@")
            if version or UNVERSIONED.match(name):
                functions.setdefault(version.strip("@"), set()).add(name)
    return {name: {version: functions.get(version, set()) for version in versions.get(name) or {""}}
            for name in names if OF_CUDA.match(name)}


def stand_in(path: Path, versions: dict) -> None:
    """A shared library in which every function returns 1, an error in all of CUDA's libraries."""
    text = "".join(f"int {name}(void) {{ return 1; }}\n" for names in versions.values() for name in sorted(names))
    script = path.with_suffix(".map")
    script.write_text("".join(f"{version} {{ global: {'; '.join(sorted(names) or ['none'])}; }};\n"
                              for version, names in versions.items() if version))
    words = ["cc", "-shared", "-fPIC", "-w", "-o", path, f"-Wl,-soname,{path.name}", "-x", "c", "-"]
    if script.stat().st_size:
        words.insert(1, f"-Wl,--version-script={script}")
    subprocess.run([str(word) for word in words], input=text, text=True, check=True, capture_output=True)
    script.unlink()


def stand_in_for_cuda() -> None:
    absent = FOLDER / "absent"
    absent.mkdir()
    there = {path.name for path in FOLDER.rglob("lib*.so*")}
    for name, versions in needed_by((FOLDER / "torch/lib").glob("*.so*")).items():
        if name not in there:
            stand_in(absent / name, versions)


def install(python: str) -> str:
    """Why it could not be made, or nothing."""
    for_gpus = os.uname().machine == "x86_64"  # of other processors' wheels none is
    got = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile",
              "--only-binary", ":all:", "--require-hashes", "--target", FOLDER, "--requirement", PINNED)
    if "Expected sha256" in got.stderr:
        shutil.rmtree(FOLDER, ignore_errors=True)
        sys.exit(f"setup: {PINNED} pins another hash than that of the package that was found (it is not the reviewed one, and "
                 "nothing of it was run). See where packages come from; pin anew only if the package was reviewed.")
    if got.returncode != 0:
        return f"pip could not install it: {got.stderr.strip().splitlines()[-1:]}"
    if for_gpus:
        try:
            stand_in_for_cuda()
        except (OSError, subprocess.CalledProcessError) as error:
            return f"no libraries could be made in the place of CUDA's: {error}"
    tried = run(python, "-c", "import torch, numba, array_api_strict; torch.ones(2).numpy()", PYTHONPATH=str(FOLDER),
                LD_LIBRARY_PATH=str(FOLDER / "absent"))
    return "" if tried.returncode == 0 else f"it cannot be imported: {tried.stderr.strip().splitlines()[-1:]}"


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"), help="for which it is (default: .venv's)")
    python = parser.parse_args(argv).python
    what = PINNED.read_text(encoding="utf-8") + Path(__file__).read_text(encoding="utf-8")
    mark = FOLDER / f".holds.{hashlib.sha256(what.encode()).hexdigest()[:16]}"
    if mark.exists():
        return 0
    problem = "there is no .venv" if shutil.which(python) is None else ""
    if not problem:
        shutil.rmtree(FOLDER, ignore_errors=True)
        problem = install(python)
    if problem:
        shutil.rmtree(FOLDER, ignore_errors=True)
        print(f"setup: no torch for the tests ({problem}): those of real tensors are skipped")
        return 0
    mark.touch()
    print("setup: torch for the processor and Numba are in .torch")
    return 0


if __name__ == "__main__":
    sys.exit(main())

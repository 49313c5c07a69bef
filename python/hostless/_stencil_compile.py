"""The system's C++ compiler at run time, and the user's folder of what it has made."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from typing import Optional

from .errors import MachineError, UsageError

#: Nothing that may change a bit: no contraction, no other order. The last two let loops be vectorised.
FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-x", "c++")
#: By HOSTLESS_ISA, as the library's own kernels (which refuses other words).
INSTRUCTIONS = {"baseline": (), "v3": ("-march=x86-64-v3",), "v4": ("-march=x86-64-v4",)}
#: The longest that a compiler may take.
PATIENCE_S = 120.0


def compiler() -> Optional[list]:
    """$CXX, or the first of c++, g++ and clang++ there is, as the words of a command. None: there is none.

    UsageError: $CXX names nothing that can be run.
    """
    chosen = os.environ.get("CXX", "").strip()
    if chosen:
        try:
            words = shlex.split(chosen)
        except ValueError as problem:
            raise UsageError(f"CXX={chosen!r} ({problem}; it names the compiler). Correct it, or unset it.") from None
        if shutil.which(words[0]) is None:
            raise UsageError(f"CXX={chosen!r} (no such program; it names the compiler that stencils are compiled by). Correct it, or "
                             "unset it.")
        return words
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name) is not None:
            return [name]
    return None


@functools.lru_cache(maxsize=None)
def version_of(command: tuple) -> str:
    """What a compiler says of itself, with its place: another one may have the same words."""
    try:
        ran = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                             stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise MachineError(f"{command[0]} cannot be run ({problem}; it compiles stencils). Set CXX to a C++ compiler.") from None
    return f"{shutil.which(command[0])}\n{ran.stdout}"


@functools.lru_cache(maxsize=None)
def processor() -> str:
    """What -march=native depends on."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read().split("\n\n")[0].splitlines()
    except OSError:
        return platform.machine() + platform.processor()
    words = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU implementer", "CPU part")
    return "\n".join([platform.machine(), *(line for line in first if line.split("\t")[0].split(":")[0].strip() in words)])


def instructions() -> tuple:
    isa = os.environ.get("HOSTLESS_ISA", "")
    if isa:
        return INSTRUCTIONS.get(isa, ())
    return ("-march=native",) if platform.machine() in ("x86_64", "AMD64", "i686") else ("-mcpu=native",)


def cache_folder() -> Optional[str]:
    """HOSTLESS_CACHE_DIR, else hostless in XDG_CACHE_HOME, else in ~/.cache: its folder of stencils, made where it is not there.

    None: it cannot be written, or belongs to somebody else or lets others write: what is loaded from it is executed.
    """
    base = os.environ.get("HOSTLESS_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "hostless")
    if base.startswith("~"):  # nobody knows this user's home
        return None
    folder = os.path.join(base, "stencils")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.stat(folder)
    except OSError:
        return None
    is_ours = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder if is_ours and os.access(folder, os.W_OK | os.X_OK) else None


class Compiled:
    """A function that was compiled, for as long as this lives."""

    def __init__(self, path: str):
        self._library = ctypes.CDLL(path)
        function = self._library.hostless_cells  # AttributeError: it is none of ours
        self.address = ctypes.cast(function, ctypes.c_void_p).value


@functools.lru_cache(maxsize=512)
def compiled(source: str, command: tuple, flags: tuple, expression: str) -> Compiled:
    """The function of a source, from the cache or compiled now. expression: for people.

    MachineError: the compiler fails, or there is nowhere to write.
    """
    key = hashlib.sha256("\0".join((source, version_of(command), processor(), *command, *FLAGS, *flags)).encode()).hexdigest()[:32]
    folder = cache_folder()
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="hostless-") as own:  # loaded libraries stay when their file goes
            return _made(source, command, flags, expression, os.path.join(own, f"{key}.so"))
    path = os.path.join(folder, f"{key}.so")
    if _is_whole(path):
        try:
            return Compiled(path)
        except (OSError, AttributeError):
            pass  # of another machine: made anew
    return _made(source, command, flags, expression, path)


def _made(source: str, command: tuple, flags: tuple, expression: str, path: str) -> Compiled:
    try:
        return Compiled(_compile(source, command, flags, expression, path))
    except MachineError:
        raise
    except (OSError, AttributeError) as problem:
        raise MachineError(f"the stencil {expression} was not written to, or not loaded from, {os.path.dirname(path)} ({problem}; it is "
                           "compiled there). Set HOSTLESS_CACHE_DIR to a folder with room, from which programs may be loaded.") from None


def _is_whole(path: str) -> bool:
    """Whether a library is there to its last byte, as `_compile` has sealed it: who loads half of one is killed."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    return data[-32:] == hashlib.sha256(data[:-32]).digest()


def _compile(source: str, command: tuple, flags: tuple, expression: str, path: str) -> str:
    """Compiles into a file of its own beside `path`, which then gets that name: nobody sees half of it."""
    with tempfile.TemporaryDirectory(prefix="compiling-", dir=os.path.dirname(path)) as own:
        made = os.path.join(own, "stencil.so")
        text = os.path.join(own, "stencil.cpp")
        with open(text, "w", encoding="utf-8") as file:
            file.write(source)
        words = [*command, *FLAGS, *flags, "-o", made, text]
        if sys.platform == "linux":
            words += ["-x", "none", "-lm"]
        try:
            ran = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
                                 errors="replace")
        except subprocess.TimeoutExpired:
            raise MachineError(f"{command[0]} took more than {PATIENCE_S:g} s for the stencil {expression} (it is too long, or the "
                               "compiler waits for something). Write a shorter one, or set CXX to another compiler.") from None
        except OSError as problem:
            raise MachineError(f"{command[0]} cannot be run ({problem}; it compiles stencils). Set CXX to a C++ compiler.") from None
        if ran.returncode != 0:
            said = "\n".join((ran.stderr or ran.stdout).strip().splitlines()[:12])
            raise MachineError(f"the stencil {expression} does not compile ({shlex.join(words[:len(command)])} ended with "
                               f"{ran.returncode}; its steps are those of the compiled function). Set CXX to a C++17 compiler. It said:"
                               f"\n{said}")
        with open(made, "rb+") as file:
            file.write(hashlib.sha256(file.read()).digest())  # behind what a loader reads
        os.replace(made, path)
    return path

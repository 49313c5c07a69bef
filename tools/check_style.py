#!/usr/bin/env python3
"""Fails on what the style card forbids: unfinished work, overlong files, vendor #ifs outside their three files,
names of package registries and home folders, words that docs/glossary.md has replaced by those of the field, and waits
without a deadline (those of docs/waits.md).

A wait that is bounded for another reason says so on its line, or above it: // bounded: <reason>
"""

import functools
import re
import sys

from repository import CPP, arguments, files, finish, text

LONG, TOO_LONG = 400, 800
TEXT = (*CPP, ".py", ".sh", ".cmake", ".in", ".md", ".json", ".txt", ".yml", ".cff")
VENDOR_HOMES = {"src/device/runtime.hpp", "include/hostless/base/host_device.hpp",
                "src/run/gpu/vendor_product.gpu.cpp"}
AT_ROOT = {".clang-format", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CMakePresets.json",
           "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "pyproject.toml"}
HERE = {"tools/check_style.py", "tools/tests/test_checks.py"}  # name what they forbid

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
VENDOR = re.compile(r"^\s*#\s*(el)?if.*(CUDA|HIP|NVCC|__CUDA)")
REGISTRY = re.compile(r"\b(pypi\.org|pythonhosted\.org|registry\.npmjs|crates\.io|repo1?\.maven|rubygems\.org|"
                      r"proxy\.golang|deb\.debian\.org|archive\.ubuntu\.com)")
MACHINE_PATH = re.compile(r"(?<![\w.}/])/(home/\w|Users/\w|root/|work/|mnt/\w)")
SYSTEM_CALLS = (r"p?poll|p?select|epoll_wait|p?readv?|recv(?:from|msg)?|accept4?|connect|flock|open(?:at)?")
BLOCKING = re.compile(
    r"std::(barrier|latch|counting_semaphore|binary_semaphore)\b|pthread_(barrier|join)|"
    r"\bP?MPI_(Wait(all|any|some)?|Barrier|Recv|Send|Ssend|Sendrecv|Probe|Bcast|Reduce|Allreduce|Gatherv?|"
    r"Allgatherv?|Scatterv?|Alltoall[vw]?)\s*\(|"
    r"std::(condition_variable|future|async|promise)\b|\.wait\([^;]*std::memory_order|"
    # of a GPU: a kernel may never end
    r"(?:\bcuda|\bhip|\bHOSTLESS_GPU\()(Stream|Device|Event)Synchronize\b|"
    # of threads and processes
    r"(?:\.|->)join\(\)|\b(waitpid|wait4|waitid|system|popen|pclose)\s*\(|std::system\b|"
    # of files, one of which may be a FIFO without another end, and of descriptors
    r"\b(fopen|freopen)\s*\(|\bstd::[io]?fstream\s+\w+\s*[({]|\bF_(OFD_)?SETLKW\b|(?<![\w>])::(CALLS)\s*\(".replace(
        "CALLS", SYSTEM_CALLS))
# Members and functions of a project may have these names, in files that know nothing of the system's.
UNQUALIFIED = re.compile(r"(?<![\w.>:])(" + SYSTEM_CALLS + r")\s*\(")
SYSTEM_HEADER = re.compile(r"^\s*#\s*include\s*<(unistd|fcntl|poll|sys/(socket|select|epoll|file|uio))\.h>")
LOOKS_FOR = ("WNOHANG",)  # a call that only looks
BOUNDED = re.compile(r"//\s*bounded: \S")
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//.*')

# Words that the code once had for what the field calls otherwise: no identifier of C++ and no file may bring them back.
# Parts of identifiers (leaf in LeafShape and first_leaf); whole identifiers; what is said instead; in the end the folders
# or files where the word means something else, which its field calls so, or belongs to somebody else's interface.
OLD_WORDS = (
    ({"lane", "lanes"}, set(), "thread (of a rank), accumulator (of a sum) or threads_per_row",
     # of a warp, a vector of the processor, a group of sliced ELL; the C interface's and DLPack's field
     ("src/device/", "src/operate/", "src/run/gpu/", "src/solve/gpu/", "src/transport/peer/", "tests/unit/operate/", "tests/unit/run/",
      "include/hostless/hostless.h", "src/api/", "python/binding/bind_gpu_arrays.cpp")),
    ({"meet", "meets", "meeting", "meetings"}, set(), "barrier, grid_barrier or unique_id", ()),
    ({"carrier", "carriers", "carriage", "carried"}, set(), "a transport's stream face or endpoint, messages", ()),
    (set(), {"Word", "by_words", "shown_words", "await_words", "store_word"}, "FlaggedWord (a value and its epoch)",
     ("python/", "bench/", "src/files/", "src/solve/matrix/memory_need.cpp")),
    ({"leaf", "leaves"}, set(), "block_row", ()),
    ({"place", "places", "placed"}, set(), "local_column, vector_offset or value_index", ()),
    ({"truth", "truths"}, {"Judge"}, "true_residual, ConvergenceTest", ()),
    ({"ANYWHERE"}, set(), "HOST_DEVICE", ()),
    (set(), {"Reach", "Free"}, "Locality, ReuseGuarantee", ("src/device/memory.hpp",)),
    ({"surveyor", "survey", "crew", "desk", "seat", "seats"}, set(), "pattern_scan, thread_team, mailbox, slot", ()),
    (set(), {"forming", "Forming", "shows", "Shown", "everything_near", "Kept", "kept_in_shared"},
     "fused_update, halo_source, on_chip", ("src/exchange/exchange.cpp", "tests/unit/files/", "tests/unit/transport/")),
    (set(), {"inverse", "inverse_", "InverseKind", "put_inverse"}, "preconditioner_data",
     ("tests/numerics/", "tests/unit/solve/solver_test.cpp")),
    ({"offload"}, set(), "GpuSolver", ()),
    (set(), {"MessageLevel", "StreamLevel", "PutLevel", "LevelMessages", "most_levels", "send_level"}, "round (messages that go at once)", ()),
    (set(), {"PairOrder", "PartedPairs", "pairs_a_thread", "most_pairs"}, "tile (two slices that a block works on)", ()),
)
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
NOT_THEIRS = re.compile(r"(^|_)in_place(?=_|$)|Leaves")  # updates in place; what a test says that something leaves
NAMED_BY_OTHERS = ("tests/data/", "tests/fuzz/corpus/")


@functools.lru_cache(maxsize=None)
def parts_of(name: str) -> frozenset:
    return frozenset(part if part.isupper() and len(part) > 1 else part.lower()
                     for part in PART.findall(NOT_THEIRS.sub("", name)))


def old_word(name: str, file: str) -> str:
    """What to call instead what `name`, an identifier or the name of a file, calls by an old word; else ''."""
    for parts, wholes, instead, elsewhere in OLD_WORDS:
        if (name in wholes or parts & parts_of(name)) and not file.startswith(elsewhere):
            return instead
    return ""


def old_words(name: str, lines: list) -> list:
    found = []
    for number, line in enumerate(lines, 1):
        for identifier in dict.fromkeys(IDENTIFIER.findall(code_of(line))):
            if instead := old_word(identifier, name):
                found.append(f"{name}:{number}: `{identifier}` is an old word (docs/glossary.md). Say {instead}.")
    return found


def code_of(line: str) -> str:
    return STRING_OR_COMMENT.sub('""', line)


def waits(name: str) -> bool:
    """Whether waits of a file are looked at: those of everything that people run."""
    return name.endswith(CPP) and name.startswith(("include/", "src/", "apps/", "python/binding/", "bench/"))


def blocks(code: str, knows_the_system: bool) -> bool:
    found = BLOCKING.search(code) or (knows_the_system and UNQUALIFIED.search(code))
    return bool(found) and not any(word in code for word in LOOKS_FOR)


def is_bounded(lines: list, number: int) -> bool:
    """Whether line `number`, or a comment of its own above it, says why a wait ends."""
    above = lines[number - 2].strip() if number > 1 else ""
    return bool(BOUNDED.search(lines[number - 1])) or (above.startswith("//") and bool(BOUNDED.match(above)))


def problems_of(name: str, lines: list) -> list:
    found = []
    is_cpp = name.endswith(CPP)
    system = any(SYSTEM_HEADER.match(line) for line in lines)
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}:"
        if UNFINISHED.search(line):
            found.append(f"{where} unfinished work in the text. Do it, or open an issue.")
        if REGISTRY.search(line):
            found.append(f"{where} names a package registry. Use the registry's client without a host.")
        if MACHINE_PATH.search(line):
            found.append(f"{where} names a path of one machine. Use a path relative to the checkout.")
        if is_cpp and VENDOR.search(line) and name not in VENDOR_HOMES:
            found.append(f"{where} #if for a vendor. Only {', '.join(sorted(VENDOR_HOMES))} may ask.")
        if waits(name) and blocks(code_of(line), system) and not is_bounded(lines, number):
            found.append(f"{where} a wait without a deadline. Poll with wait_for (hostless/base/wait.hpp).")
    if is_cpp:
        found += old_words(name, lines)
    if is_cpp and len(lines) > TOO_LONG:
        found.append(f"{name}: {len(lines)} lines (at most {TOO_LONG}). Split it.")
    return found


def main(argv=None) -> int:
    root = arguments(__doc__, argv).root
    problems, warnings, looked_at = [], [], 0
    for path in files(root):
        name = str(path)
        if len(path.parts) == 1 and name not in AT_ROOT:
            problems.append(f"{name}: a file that nobody expects at the root. Remove it, or name it in check_style.py.")
        if not name.startswith(NAMED_BY_OTHERS) and (instead := old_word(path.name.split(".")[0], name)):
            problems.append(f"{name}: its name has an old word (docs/glossary.md). Say {instead}.")
        if name in HERE or not (path.suffix in TEXT or path.name in ("Makefile", "run", "CMakeLists.txt")):
            continue
        looked_at += 1
        lines = text(root, path).splitlines()
        problems += problems_of(name, lines)
        if path.suffix in (*CPP, ".py") and LONG < len(lines) <= TOO_LONG:
            warnings.append(f"{name}: {len(lines)} lines (files are mostly under {LONG})")
    return finish("check_style", looked_at, problems, warnings)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Fails when something that is compiled, linked or imported goes against the arrows of docs/architecture.md.

Reads the #include lines of all C++, the layers that CMakeLists.txt link, and the imports of Python. A layer may see
itself and the layers in its row of ALLOWED, by their public headers or those of src/; the tests of a layer what it may
see; nothing sees apps, the binding or programs. A solver names no transport (NAMELESS). LIBRARIES says where a library's header may be included, MODULES which
modules of the Python package one may import.
"""

import ast
import os
import re
import sys
from pathlib import PurePath

from repository import CPP, arguments, files, finish, text

ALLOWED = {
    "base": set(),
    "device": {"base"},
    "plan": {"base"},
    "transport": {"base", "device"},
    "queue": {"base", "device", "transport"},
    "operate": {"base", "device", "plan", "problems"},
    "machine": {"base", "device", "plan", "transport"},
    "model": {"base", "plan", "machine"},
    "files": {"base", "transport"},
    "problems": {"base", "transport"},
    "exchange": {"base", "device", "plan", "transport", "machine"},
    "run": {"base", "device", "plan", "transport", "operate", "exchange"},
    "solve": {"base", "device", "plan", "transport", "operate", "exchange", "run", "machine", "model", "files",
              "problems"},
    "stencil": {"base", "device", "plan", "transport", "exchange", "run", "machine", "model", "files"},
    "bench": {"base", "device", "machine", "plan", "transport", "queue", "operate", "exchange", "run", "solve"},
}
# What lies directly in include/hostless/ (the C++ and C faces) and the folder `api`: above every layer.
ALLOWED["api"] = set(ALLOWED)
# The names of another interface, over the C face.
ALLOWED["mpis"] = set(ALLOWED)
# What stands in front of an MPI, for programs that know nothing of all this.
ALLOWED["preload"] = {"base", "plan", "transport", "machine", "exchange"}
# The command, the Python package's binding, programs of bench/, and tests of more than one layer.
LAYERS = set(ALLOWED)
TOPS = {"apps": "apps", "python": "binding", "bench": "programs", "tests": "tests"}
ALLOWED.update({top: LAYERS for top in TOPS.values()})

# A library's headers, and the only folders that may include them. (What a GPU's vendor ships: check_vendor.py.)
LIBRARIES = {"rdma/fabric.h": ("src/transport/ofi/",), "mpi.h": ("src/transport/mpi/", "src/mpis/", "src/preload/", "include/hostless/mpis/", "bench/", "tests/"), "hwloc.h": ("src/machine/",), "metis.h": ("src/plan/",),
             "zlib.h": ("src/files/", "tests/"), "nanobind/": ("python/binding/",), "CLI/": ("apps/", "bench/")}

# Modules of the Python package, and those of it that each may import. Whoever is outside imports `hostless` alone.
MODULES = {
    "errors": set(), "_core": set(), "_result": {"errors"}, "_whole_file": set(), "plots": set(),
    "plots_of_papers": {"plots", "plots_of_queues"},
    "plots_of_queues": {"plots"},
    "plots_of_machines": {"plots"},
    "_rows": {"errors"},
    "_vectors": {"_rows", "errors"},
    "_device": {"_core", "_rows", "errors"},
    "_checks": {"_core", "_device", "_rows", "errors"},
    "_options": {"_core", "_rows", "errors"},
    "_exchange": {"_core", "_checks", "_device", "_rows", "errors"},
    "_queue": {"_core", "_checks", "_exchange", "_rows", "errors"},
    "_functions": {"_rows", "errors"},
    "_operator": set(),
    "_matrix": {"_core", "_checks", "_device", "_functions", "_operator", "_options", "_result", "_rows", "_vectors", "errors"},
    "_cg": {"_matrix", "_options"},
    "_methods": {"_cg", "_matrix", "_options", "_rows", "errors"},
    "_sources": {"_core", "_checks", "_options", "_rows", "errors"},
    "_stencil_expression": {"errors"},
    "_stencil_source": {"_stencil_expression", "errors"},
    "_stencil_compile": {"errors"},
    "_stencil_result": {"errors"},
    "_stencil_numpy": {"_stencil_expression", "_stencil_source"},
    "_stencil_nvrtc": {"errors"},
    "_stencil_gpu": {"_device", "_rows", "_stencil_expression", "_stencil_numpy", "_stencil_nvrtc", "_stencil_source", "errors"},
    "_stencil_arrays": {"_device", "_rows", "_stencil_expression", "errors"},
    "_stencil_task": {"_core", "_rows", "_stencil_arrays", "errors"},
    "_stencil": {"_checks", "_core", "_device", "_exchange", "_rows", "_stencil_arrays", "_stencil_compile", "_stencil_expression",
                 "_stencil_gpu", "_stencil_numpy", "_stencil_result", "_stencil_source", "_stencil_task", "errors"},
    "report": {"_whole_file", "plots"},
}
MODULES["__main__"] = {"_sources"}
MODULES["__init__"] = set(MODULES)

# Where no transport is named: what these need of one they ask its facts. Folders of one, enumerators, names.
NAMELESS = ("src/solve/", "include/hostless/solve/")
TRANSPORT = re.compile(r"transport/(?:threads|processes|mpi|peer|nccl|nvshmem|staged)/|hostless/transport/mpi\.hpp|\bGpuTransport::(?!automatic\b)\w+"
                       r"|\bMpiVendor\b|(?i:\b(?:nccl|nvshmem|openmpi|mpich)\b)")

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def layer_of(path) -> str:
    """The layer that a file belongs to, or '' for a file of no layer."""
    parts = path.parts
    if parts[:2] == ("tests", "unit") and len(parts) > 3:
        return parts[2]
    if parts[0] in TOPS:
        return TOPS[parts[0]]
    inner = parts[2:] if parts[:2] == ("include", "hostless") else parts[1:] if parts[0] == "src" else ()
    if not inner:
        return ""
    return inner[0] if len(inner) > 1 else "api"


def target_of(include: str, path, sources: set) -> str:
    """The layer that an include leads to, or '' for a header of the system or a library."""
    parts = include.split("/")
    if parts[0] == "hostless":
        return parts[1] if len(parts) > 2 else "api"
    if "src/" + include in sources:  # headers of src/ are named from there
        return parts[0]
    beside = os.path.normpath(path.parent / include)
    return layer_of(PurePath(beside)) if beside in sources else ""


def problems_of(path, lines, sources) -> list:
    layer = layer_of(path)
    if not layer:
        return []
    if layer not in ALLOWED:
        return [f"{path}: layer '{layer}' is not in the table (nobody decided what it may see). "
                "Add its row to tools/check_layers.py and docs/architecture.md."]
    found = []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        target = target_of(match.group(1), path, sources) if match else ""
        if target and target != layer and target not in ALLOWED[layer]:
            found.append(f"{path}:{number}: {layer} includes {target} ({match.group(1)}), against the arrows. "
                         f"{layer} may see: {', '.join(sorted(ALLOWED[layer])) or 'nothing'}.")
    return found


def named_transports(path, lines) -> list:
    if not str(path).startswith(NAMELESS):
        return []
    return [f"{path}:{number}: names a transport ({found.group(0)}). Ask what it is like instead (HostTransport, GpuTransportFacts)."
            for number, line in enumerate(lines, 1) if (found := TRANSPORT.search(line))]


def wrong_libraries(path, lines) -> list:
    found = []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        for library, folders in LIBRARIES.items() if match else ():
            if match.group(1).startswith(library) and not str(path).startswith(folders):
                found.append(f"{path}:{number}: {match.group(1)} is included outside {' and '.join(folders)}.")
    return found


def wrong_links(path, cmake: str) -> list:
    """Of `hostless_layer(name SOURCES ... LAYERS a b LIBRARIES ...)`, and of what is linked by the name of its target, hostless_a."""
    found = []
    for command, name, words in re.findall(r"(hostless_layer|hostless_test|target_link_libraries)\(\s*([^\s()]+)([^()]*)\)",
                                           re.sub(r"#[^\n]*", "", cmake)):
        listed = re.search(r"\bLAYERS\b(.*?)(?:\b[A-Z]{4,}\b|$)", words, re.DOTALL) if command == "hostless_layer" else None
        linked = (listed.group(1).split() if listed else []) + [word for word in re.findall(r"\bhostless_(\w+)", words) if word in LAYERS]
        layer = name if command == "hostless_layer" else name.removeprefix("hostless_") if name.startswith("hostless_") else ""
        if layer not in LAYERS:
            layer = layer_of(path)  # a plugin, a test
        for other in linked:
            if other != layer and other not in ALLOWED.get(layer, ()):
                found.append(f"{path}: {layer} links {other}, against the arrows.")
    return found


def imported(tree, package: tuple) -> list:
    """(line, module of `hostless` by its first word) for every import; '' is the package itself."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [(node.module, [alias.name for alias in node.names])]
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1]
            if not base:
                continue  # beyond the top: Python refuses it
            names = [(".".join(base + ((node.module,) if node.module else ())), [alias.name for alias in node.names])]
        else:
            continue
        for name, members in names:
            parts = name.split(".")
            if parts[0] != "hostless":
                continue
            inner = [parts[1]] if len(parts) > 1 else [m for m in members if m in MODULES] or [""]
            found += [(node.lineno, module) for module in inner]
    return found


def wrong_imports(path, source: str) -> list:
    inside = path.parts[:2] == ("python", "hostless")
    package = ("hostless",) + path.parts[2:-1] if inside else ()
    own = (path.parts[2] if len(path.parts) > 3 else path.stem) if inside else ""
    if inside and own not in MODULES:
        return [f"{path}: module '{own}' is not in the table. Add its row to tools/check_layers.py."]
    found = []
    for line, module in imported(ast.parse(source), package):
        if module in ("", own) or module in MODULES.get(own, ()):
            continue
        if module == "_whole_file" and path.parts[0] == "bench":
            continue  # of the standard library alone
        if inside or (module.startswith("_") and not module.startswith("__") and path.parts[0] != "tests"):
            found.append(f"{path}:{line}: {own or path.stem} imports hostless.{module}, against the arrows.")
    return found


def main(argv=None) -> int:
    root = arguments(__doc__, argv).root
    paths = files(root, ("include", "src", *TOPS), (*CPP, ".cu"))
    sources = {str(path) for path in paths}
    problems = []
    for path in paths:
        lines = text(root, path).splitlines()
        problems += problems_of(path, lines, sources) + wrong_libraries(path, lines) + named_transports(path, lines)
    builds = [path for path in files(root, ("src", *TOPS)) if path.name == "CMakeLists.txt"]
    problems += [p for path in builds for p in wrong_links(path, text(root, path))]
    modules = files(root, (), (".py",))
    problems += [p for path in modules for p in wrong_imports(path, text(root, path))]
    return finish("check_layers", len(paths) + len(builds) + len(modules), problems)


if __name__ == "__main__":
    sys.exit(main())

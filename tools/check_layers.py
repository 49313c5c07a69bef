#!/usr/bin/env python3
"""Fails when an #include goes against the arrows of docs/architecture.md.

Reads the #include lines of include/, src/ and apps/. A layer may include itself and the layers in its row of
ALLOWED, by their public headers or those of src/; nothing includes apps.
"""

import re
import sys

from repository import CPP, arguments, files, finish, text

ALLOWED = {
    "base": set(),
    "device": {"base"},
    "plan": {"base"},
    "transport": {"base", "device"},
    "operate": {"base", "device", "plan", "problems"},
    "machine": {"base", "device", "plan", "transport"},
    "model": {"base", "plan", "machine"},
    "files": {"base", "transport"},
    "problems": {"base", "transport"},
    "exchange": {"base", "device", "plan", "transport"},
    "run": {"base", "device", "plan", "transport", "operate", "exchange"},
    "solve": {"base", "device", "plan", "transport", "operate", "exchange", "run", "machine", "model", "files",
              "problems"},
    "bench": {"base", "device", "plan", "transport", "operate", "exchange", "run", "solve"},
}
# What lies directly in include/hostless/ (the C++ and C faces) and the folder `api`: above every layer.
ALLOWED["api"] = set(ALLOWED)
ALLOWED["apps"] = set(ALLOWED)

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def layer_of(path) -> str:
    """The layer that a file belongs to, or '' for a file of no layer."""
    parts = path.parts
    if parts[0] == "apps":
        return "apps"
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
    if str(path.parent / include) in sources:
        return layer_of(path)
    return ""


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


def main(argv=None) -> int:
    root = arguments(__doc__, argv).root
    paths = files(root, ("include", "src", "apps"), CPP)
    sources = {str(path) for path in paths}
    problems = [p for path in paths for p in problems_of(path, text(root, path).splitlines(), sources)]
    return finish("check_layers", len(paths), problems)


if __name__ == "__main__":
    sys.exit(main())

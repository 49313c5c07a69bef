#!/usr/bin/env bash
# Makes .venv in the repository root: a Python that builds and tests the package (nanobind, NumPy, SciPy, pytest; where
# they can be had matplotlib, jinja2, mpi4py, and what executes notebooks). Where it cannot be made, says why and leaves: the package's tests are then
# skipped. Does nothing where everything is there.
set -euo pipefail
cd "$(dirname "$0")/.."
needed=("nanobind>=3.1" "numpy>=1.26" "scipy>=1.11" "pytest>=8")
wanted=("matplotlib>=3.6" "jinja2" "mpi4py>=4" "nbclient>=0.10" "ipykernel>=6")
mark=.venv/.holds.$(printf '%s ' "${needed[@]}" "${wanted[@]}" | sha256sum | cut -c1-16)
[ -e "$mark" ] && exit 0

say() { echo "setup: $*: the Python package is neither built nor tested"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! python3 -c 'import sys, sysconfig, os
sys.exit(sys.version_info < (3, 10) or not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'; then
  say "python3 is older than 3.10 or its headers are missing (python3-dev)"
  exit 0
fi
rm -rf .venv
if ! python3 -m venv .venv >"$log" 2>&1; then
  rm -rf .venv
  say "python3 -m venv failed (python3-venv)"
  exit 0
fi
pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
if ! "${pip[@]}" "${needed[@]}" >"$log" 2>&1; then
  tail -n 3 "$log" >&2
  rm -rf .venv
  say "pip could not install ${needed[*]} (no network, or no package index is reachable)"
  exit 0
fi
for package in "${wanted[@]}"; do
  "${pip[@]}" "$package" >"$log" 2>&1 || echo "setup: pip could not install $package: what needs it is left out"
done
: >"$mark"
echo "setup: Python with nanobind, NumPy and SciPy is in .venv"

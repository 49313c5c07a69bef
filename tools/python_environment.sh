#!/usr/bin/env bash
# Makes .venv in the repository root: a Python that builds and tests the package, with the versions and hashes that
# python/requirements pins: package.txt, without which there is no environment, and one file for each other purpose
# (pictures, mpi, notebooks), each left out where it cannot be had. Nothing is built from source, so nothing runs that
# has no pinned hash. What is left out is said, and the tests that need it are skipped; another hash than the pinned one
# ends it with 1. Does nothing where everything is there. tools/pin_requirements.sh makes the pins.
set -euo pipefail
cd "$(dirname "$0")/.."
pins=python/requirements
files=()
for file in "$pins"/*.txt; do  # arrays are for another folder (tools/torch_for_tests.py)
  [ "$file" = "$pins/arrays.txt" ] || files+=("$file")
done
mark=.venv/.holds.$(cat "$0" "${files[@]}" | sha256sum | cut -c1-16)
left_out=()  # of an earlier try, which had no network perhaps
if [ -e "$mark" ]; then
  mapfile -t left_out <"$mark"
  [ ${#left_out[@]} = 0 ] && exit 0
fi

say() { echo "setup: $*: the Python package is neither built nor tested"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! python3 -c 'import sys, sysconfig, os
sys.exit(sys.version_info < (3, 10) or not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'; then
  say "python3 is older than 3.10 or its headers are missing (python3-dev)"
  exit 0
fi
if [ ${#left_out[@]} = 0 ]; then
  rm -rf .venv
  if ! python3 -m venv .venv >"$log" 2>&1; then
    rm -rf .venv
    say "python3 -m venv failed (python3-venv)"
    exit 0
  fi
fi

# Whether all that a file pins is installed now. The pins name every dependency, so pip looks for no other.
installed() {
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --requirement "$1" >"$log" 2>&1 && return 0
  tail -n 3 "$log" >&2
  if grep -q "Expected sha256" "$log"; then
    rm -rf .venv
    echo "setup: $1 pins another hash than that of the package that was found (it is not the reviewed one, and nothing of it" \
      "was run). See where packages come from; pin anew only if the package was reviewed." >&2
    exit 1
  fi
  return 1
}
wanted=("${left_out[@]}")
if [ ${#wanted[@]} = 0 ]; then
  if ! installed "$pins/package.txt"; then
    rm -rf .venv
    say "pip could not install what $pins/package.txt pins (no network, no package index, or no such package for this machine)"
    exit 0
  fi
  wanted=("${files[@]}")
fi
left_out=()
for file in "${wanted[@]}"; do
  installed "$file" && continue
  left_out+=("$file")
  echo "setup: pip could not install what $file pins: what needs it is left out"
done
printf '%s' "${left_out[@]/%/$'\n'}" >"$mark"  # tried again next time
echo "setup: Python with nanobind, NumPy and SciPy is in .venv"

#!/usr/bin/env bash
# Pins what python/requirements/*.in ask for: writes a .txt beside each, with versions and hashes for Python 3.10 and later
# on any machine, which tools/python_environment.sh installs and nothing else. All of them agree on versions. Versions that are
# pinned and still fit are kept; with --upgrade the newest are taken.
#
#   tools/pin_requirements.sh [--upgrade]
#
# It needs a network and uv (from PATH, else it is fetched into a folder that goes again).
set -euo pipefail
cd "$(dirname "$0")/../python/requirements"
case "${1:-}" in "" | --upgrade) ;; *) sed -n '2,8s/^# \{0,1\}//p' "../../tools/$(basename "$0")" >&2; exit 2 ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
uv=$(command -v uv || true)
if [ -z "$uv" ]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
  uv=$work/venv/bin/uv
fi
pin() { "$uv" pip compile --quiet --universal --no-header --no-annotate "$@"; }

# One resolution for all that lies in one environment, from which each file then takes its part. Arrays lie elsewhere, without
# their dependencies, and for the Python of CI (tools/torch_for_tests.py).
purposes=(*.in)
together=()
for wanted in "${purposes[@]}"; do [ "$wanted" = arrays.in ] || together+=("$wanted"); done
cat ./*.txt 2>/dev/null | grep -v -e '--hash=' -e '^#' | sed 's/ *\\$//' | sort -u >"$work/pinned.txt" || true
for name in all arrays; do cp "$work/pinned.txt" "$work/$name.txt"; done
pin --python-version 3.10 ${1:+"$1"} "${together[@]}" --output-file "$work/all.txt"
pin --python-version 3.11 ${1:+"$1"} --no-deps --constraint "$work/all.txt" arrays.in --output-file "$work/arrays.txt"
for wanted in "${purposes[@]}"; do
  options=(--python-version 3.10 --constraint "$work/all.txt")
  [ "$wanted" = arrays.in ] && options=(--python-version 3.11 --no-deps --constraint "$work/arrays.txt")
  rm -f "$work/one.txt"
  pin --generate-hashes "${options[@]}" "$wanted" --output-file "$work/one.txt"
  { echo "# Made by tools/pin_requirements.sh from $wanted: change that, and run it again."; cat "$work/one.txt"; } >"${wanted%.in}.txt"
  echo "pinned ${wanted%.in}.txt: $(grep -c '==' "${wanted%.in}.txt") packages"
done

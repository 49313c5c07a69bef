#!/usr/bin/env bash
# The papers' measurements on a machine with one GPU or more, in one call: every table of `hostless bench papers`, and the pictures.
#   bench/papers_session.sh SUITE [MATRICES]
# SUITE     what `cmake --build build --target device_suite` made elsewhere, with -DHOSTLESS_GPU=OFF, from the sources of this checkout;
#           its GPU libraries are compiled here where they are not there yet
# MATRICES  a folder of matrix files by the collection's names; presets stand in for those that are not there
# JSON files and pictures go to the folder OUT (./out). TABLES (001-1 000-2 000-1), ROWS (of presets; whole), ITERATIONS, ONLY and
# LIMIT (1200 s, of a start) shorten it. Pictures need matplotlib; without it the JSON files are what there is.
set -uo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=$(cd "$1" && pwd) || exit 2
matrices=${2:-}
out=${OUT:-$source/out}
mkdir -p "$out"
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
if [ "$gpus" = 0 ]; then
  echo 'no GPU is seen here: nothing was shown'
  exit 3
fi
if [ ! -d "$suite/of_tests" ]; then
  "$source/tests/device/build_and_run.sh" "$suite" | tee "$out/compile.log" || exit 1
fi
export LD_LIBRARY_PATH="$suite:${LD_LIBRARY_PATH:-}"
words=()
if [ -n "$matrices" ]; then words+=(--matrices "$matrices"); fi
if [ -n "${ROWS:-}" ]; then words+=(--rows "$ROWS"); fi
if [ -n "${ITERATIONS:-}" ]; then words+=(--iterations "$ITERATIONS"); fi
if [ -n "${ONLY:-}" ]; then words+=(--only "$ONLY"); fi

failures=0
# measure TABLE GPUS: a start that ends early leaves what it has measured
measure() {
  timeout -k 5 "${LIMIT:-1200}" "$suite/hostless" bench papers --table "$1" --gpus "$2" --overlap "${words[@]}" --json "$out/papers-$1-$2.json" \
    2>&1 | tee "$out/papers-$1-$2.log" || failures=$((failures + 1))
}
draw() {
  python3 "$source/bench/plot_papers.py" "${@:2}" --figure "$1" --output "$out/papers-$1.svg" || failures=$((failures + 1))
}
for table in ${TABLES:-001-1 000-2 000-1}; do
  for ((count = 1; count <= gpus; count *= 2)); do
    if [ "$table" = 000-2 ] && [ "$count" -gt 1 ]; then continue; fi # its table is of one GPU
    measure "$table" "$count"
  done
done
if python3 -c 'import matplotlib' 2>/dev/null; then
  for figure in 001-7 001-8 001-1; do
    if [ "$figure" = 001-1 ] && [ "$gpus" -lt 2 ]; then continue; fi # of one GPU there is no communication
    if compgen -G "$out/papers-001-1-*.json" >/dev/null; then draw "$figure" "$out"/papers-001-1-*.json; fi
  done
  if compgen -G "$out/papers-000-1-*.json" >/dev/null; then draw 000-1 "$out"/papers-000-1-*.json; fi
fi
echo "$failures of the steps failed; figures and pictures are in $out"
[ "$failures" = 0 ]

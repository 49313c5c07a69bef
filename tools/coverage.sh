#!/usr/bin/env bash
# Prints the line coverage of host code (include/, src/, apps/) by all tests.
#   tools/coverage.sh [least per cent, default 95]     0 only prints
# The last line is `lines: NN.N% (covered out of all)`; ends with 2 when it is below the least.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac
least=${1:-95}
if ! command -v gcovr >/dev/null; then
  echo "coverage: no gcovr on this machine (it adds the counters up). Install gcovr (tools/setup.sh ci)." >&2
  exit 1
fi
cmake --preset coverage >/dev/null
cmake --build --preset coverage
find build-coverage -name '*.gcda' -delete
HOSTLESS_DEADLINE_SCALE=${HOSTLESS_DEADLINE_SCALE:-2} ctest --test-dir build-coverage -LE checks --output-on-failure -j "$(nproc)"
gcovr --root . --object-directory build-coverage --filter include/ --filter src/ --filter apps/ \
  --txt build-coverage/coverage.txt --html-details build-coverage/coverage.html --print-summary \
  --fail-under-line "$least" >build-coverage/summary.txt && code=0 || code=$?
cat build-coverage/coverage.txt
grep '^lines:' build-coverage/summary.txt || cat build-coverage/summary.txt
exit "$code"

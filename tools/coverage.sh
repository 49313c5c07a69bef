#!/usr/bin/env bash
# Prints the line coverage of host code (include/, src/, apps/, python/binding/) by all tests.
#   tools/coverage.sh [least per cent, default 95]     0 only prints
# The last lines are `lines: NN.N% (covered out of all)` and the commit that it is of; ends with 2 when it is below the least.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac
least=${1:-95}
if ! command -v gcovr >/dev/null; then
  echo "coverage: no gcovr on this machine (it adds the counters up). Install gcovr (tools/setup.sh ci)." >&2
  exit 1
fi
if [ ! -x .venv/bin/python ]; then
  echo "coverage: no .venv (the binding of the Python package counts too). Run tools/setup.sh ci." >&2
  exit 1
fi
cmake --preset coverage -DHOSTLESS_PYTHON=ON "-DPython_EXECUTABLE=$PWD/.venv/bin/python" >/dev/null
cmake --build --preset coverage
find build-coverage -name '*.gcda' -delete
HOSTLESS_DEADLINE_SCALE=${HOSTLESS_DEADLINE_SCALE:-2} ctest --test-dir build-coverage -LE 'checks|install' --output-on-failure -j "$(nproc)"
# What src/run/gpu/*.gpu.hpp hold are functions of the GPU: the fake runtime compiles them, and no host runs them.
gcovr --root . --object-directory build-coverage --filter include/ --filter src/ --filter apps/ --filter python/binding/ \
  --exclude '.*run/gpu/[^/]*\.gpu\.hpp' --txt build-coverage/coverage.txt --html-details build-coverage/coverage.html --print-summary \
  --fail-under-line "$least" >build-coverage/summary.txt && code=0 || code=$?
cat build-coverage/coverage.txt
grep '^lines:' build-coverage/summary.txt || cat build-coverage/summary.txt
echo "of commit $(git describe --always --dirty 2>/dev/null || echo unknown), $(date -u +%Y-%m-%d)"
exit "$code"

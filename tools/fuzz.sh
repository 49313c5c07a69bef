#!/usr/bin/env bash
# Runs every libFuzzer target for a while, from its seeds: tests/fuzz/corpus/X for X.cpp or X_reader.cpp; the machine files too.
#   tools/fuzz.sh [seconds each, default 60] [targets at a time, default: processors]
#   tools/fuzz.sh build                      runs none
# Prints one line a target; ends with 1 when one found something, whose input is left in build-fuzz/found/.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in -h | --help) sed -n '2,5s/^# //p' "$0"; exit 0 ;; esac
export SECONDS_EACH=${1:-60}
at_a_time=${2:-$(nproc)}

if ! command -v clang++ >/dev/null; then
  echo "fuzz: no clang++ on this machine (libFuzzer comes with it). Install clang (tools/setup.sh ci)." >&2
  exit 1
fi
cmake --preset asan-ubsan >/dev/null
cmake --build --preset asan-ubsan --target fuzzers
if [ "$SECONDS_EACH" = build ]; then exit 0; fi

fuzz_one() {
  local name=$1 work=build-fuzz/corpus/$1 log=build-fuzz/$1.log
  mkdir -p "$work" build-fuzz/found
  local seeds=()
  local about=${name#fuzz_} folder
  for folder in "tests/fuzz/corpus/$about" "tests/fuzz/corpus/${about%_reader}"; do
    if [ -d "$folder" ]; then seeds=("$folder"); fi
  done
  if [ "$name" = fuzz_machine_reader ]; then seeds+=(machines); fi
  # malloc_limit: a header's numbers must not decide how much is allocated.
  if "build-asan-ubsan/tests/fuzz/$name" -max_total_time="$SECONDS_EACH" -timeout=20 -rss_limit_mb=2048 \
    -malloc_limit_mb=256 -max_len=65536 -print_final_stats=1 -artifact_prefix="build-fuzz/found/$name-" \
    "$work" "${seeds[@]}" >"$log" 2>&1; then
    echo "fuzz: $name passed, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
  else
    echo "fuzz: $name FAILED"
    tail -n 40 "$log"
    return 1
  fi
}
export -f fuzz_one
find build-asan-ubsan/tests/fuzz -maxdepth 1 -type f -perm -u+x -name 'fuzz_*' -printf '%f\n' | sort |
  xargs -P "$at_a_time" -I{} bash -c 'fuzz_one {}' || exit 1

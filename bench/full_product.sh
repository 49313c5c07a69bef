#!/usr/bin/env bash
# Everything of a suite instead of what a commit runs, its tests side by side: minutes on many cores, hours on two.
#   bench/full_product.sh PROGRAM OUT [TRANSPORT...]
# PROGRAM  solve_contract, stencil_contract: all cells or points instead of their pairwise cover; exchange_all_routes: 2,000 patterns;
#          queue_contract: 10,000 random programs, 100 hangs and 10 kills of a transport
# OUT      a folder for a log each
# Transports: threads processes openmpi mpich ... (all). SECONDS_EACH (3600) is the most that a test may take. Prints a line each: its exit
# code and how much it has compared; exit code 1 where a test failed or was skipped, or nothing was compared; 2: no such program, or no test of a transport.
set -uo pipefail
program=$1 out=$2
shift 2
mkdir -p "$out"
export HOSTLESS_FULL_PRODUCT=1 HOSTLESS_ALL_ROUTES=2000 HOSTLESS_QUEUE_PROGRAMS=10000 HOSTLESS_QUEUE_HANGS=100 HOSTLESS_QUEUE_KILLS=10
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1
rm -f "$out"/*.code
[ -x "$program" ] || { echo "$program is no program."; exit 2; }
mapfile -t tests < <("$program" --gtest_list_tests | awk '/^[^ ]/ {suite = $1} /^ / {print suite $1}' | grep -v '^Cover')
names=("$@")
for name in "${names[@]}"; do
  [[ "${tests[*]}" == *"$name"* ]] || { echo "$name: no test of $program is of it."; exit 2; }
done
failed=0 compared=0
for test in "${tests[@]}"; do
  wanted=0
  for name in "${names[@]:-}"; do [[ -z $name || $test == *"$name"* ]] && wanted=1; done
  [ "$wanted" = 1 ] || continue
  log=$out/${test//\//_}.log
  (
    code=0
    timeout -k 5 "${SECONDS_EACH:-3600}" "$program" --gtest_filter="$test" >"$log" 2>&1 </dev/null || code=$?
    echo "$code" >"$log.code"
  ) &
done
wait
for code in "$out"/*.code; do
  log=${code%.code}
  [ -e "$code" ] || continue  # the pattern itself
  read -r value <"$code"
  count=$(grep -Eo '[0-9]+ (cells|points|programs|hangs|kills|rows|messages of)[^"]*' "$log" | tail -n 1)
  echo "$(basename "${log%.log}"): exit code $value${count:+, $count}"
  if [ "$value" != 0 ] || grep -q '^\[  SKIPPED \]' "$log"; then failed=1; elif [ -n "$count" ]; then compared=$((compared + 1)); fi
done
[ "$compared" != 0 ] || { echo 'Nothing was compared.'; failed=1; }
exit "$failed"

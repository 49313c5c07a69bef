#!/usr/bin/env bash
# The contract suite's whole product instead of its pairwise cover, its transports side by side: minutes on many cores, hours on two.
#   bench/full_product.sh PROGRAM OUT [TRANSPORT...]
# PROGRAM  the test program solve_contract or stencil_contract   OUT  a folder for a log each
# Transports: threads processes openmpi mpich (all). Prints a line each: how many cells or points, and whether one differed; exit code 1 if so, and where
# nothing was compared; 2: no such program, or no test of a transport.
set -uo pipefail
program=$1 out=$2
shift 2
mkdir -p "$out"
export HOSTLESS_FULL_PRODUCT=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
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
    "$program" --gtest_filter="$test" >"$log" 2>&1 </dev/null || code=$?
    echo "$code" >"$log.code"
  ) &
done
wait
for code in "$out"/*.code; do
  log=${code%.code}
  [ -e "$code" ] || continue  # the pattern itself
  read -r value <"$code"
  count=$(grep -Eo '[0-9]+ (cells|points)[^"]*' "$log" | tail -n 1)
  echo "$(basename "${log%.log}"): exit code $value, ${count:-nothing was compared}"
  if [ "$value" = 0 ] && [ -n "$count" ]; then compared=$((compared + 1)); else failed=1; fi
done
[ "$compared" != 0 ] || { echo 'Nothing was compared.'; failed=1; }
exit "$failed"

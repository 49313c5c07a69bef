#!/usr/bin/env bash
# What only several GPUs of one machine can show, from a folder of `device_suite`; builds nothing.
#   run_several.sh [-C FOLDER] [--gpus N] [STAGE...]
# Stages, all without a name: peers (ten times: what depends on timing), hangs (a hundred ranks lost a run and transport),
# carriers (the full product), paths, table (every method, run and transport of the four matrices of the performance
# table, as JSON), kills (processes killed). Logs and JSON go to FOLDER/logs; the last lines are one table. Exit code 1:
# something failed.
set -uo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) gpus=2
while [ $# -gt 0 ]; do
  case "$1" in
    -C) folder=$(cd "$2" && pwd) || exit 2 ;;
    --gpus) gpus=$2 ;;
    *) break ;;
  esac
  shift 2
done
if [ $# -gt 0 ]; then stages=("$@"); else stages=(peers hangs carriers paths table kills); fi
cd "$folder" || exit 2
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} HOSTLESS_COMMAND=$folder/hostless
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
logs=$folder/logs
mkdir -p "$logs"
rows=() failures=0

# one NAME SECONDS COMMAND...: runs it, keeps its log, adds a row.
one() {
  local name=$1 limit=$2 began=$SECONDS code=0 verdict=ok
  shift 2
  timeout -k 5 "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null || code=$?
  case "$code" in
    0) ;;
    124 | 137) verdict="hung: killed after $limit s" ;;
    *) verdict="exit code $code" ;;
  esac
  if [ "$verdict" != ok ]; then
    failures=$((failures + 1))
    grep -E 'Failure$|^\[  FAILED  \]|error|differ' "$logs/$name.log" | head -n 5
  fi
  local said
  said=$(grep -E '^\[  (PASSED|SKIPPED) .* tests?|[0-9] cells, |differ|kills' "$logs/$name.log" | tail -n 2 | paste -sd ' ')
  rows+=("$(printf '%-12s %5s s  %-22s %s' "$name" $((SECONDS - began)) "$verdict" "${said:0:90}")")
}

declare -A problem=([tri]='poisson2d-tri --size 452' [five]='poisson2d --size 1259' [seven]='poisson7 --size 128'
  [hex8]='elasticity-hex8 --size 10,108,483')
declare -A runs=([tri]=host, [five]=host,)  # on the processor the others take minutes
for stage in "${stages[@]}"; do
  case "$stage" in
    peers)
      for round in $(seq 10); do one "peers-$round" 60 ./device_peers '--gtest_filter=-*HundredHangs*'; done
      ;;
    hangs) one hangs 240 ./device_peers '--gtest_filter=*HundredHangs*' ;;
    carriers) one carriers 240 env HOSTLESS_FULL_PRODUCT=1 ./device_carriers ;;
    paths) one paths 60 ./device_paths ;;
    table)
      for matrix in tri five seven hex8; do
        read -ra words <<<"${problem[$matrix]}"
        one "table-$matrix" 120 ./hostless bench solve --generate "${words[@]}" --partition contiguous --gpus "$gpus" \
          --methods cg,pipelined-cg --runs "${runs[$matrix]:-}persistent,graph,stream" --gpu-transports peer,nccl,host \
          --iterations 300 --repeat 3 --json "$logs/table-$matrix-$gpus.json"
      done
      ;;
    kills) one kills 240 python3 ./kill_ranks.py --hostless ./hostless --ranks "$gpus" --gpus "$gpus" --times 10 ;;
    *)
      echo "$stage: no such stage. See the first lines of $0." >&2
      exit 2
      ;;
  esac
done
printf '%s\n' "${rows[@]}"
echo "$((${#rows[@]} - failures)) of ${#rows[@]} rows ok"
[ "$failures" = 0 ]

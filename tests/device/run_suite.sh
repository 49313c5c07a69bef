#!/usr/bin/env bash
# Runs the device programs of a folder (`cmake --build build --target device_suite` makes one), builds nothing.
#   run_suite.sh [-C FOLDER] [STAGE...]
# Stages, those of one GPU and `processes` without a name: plain (full products of contract and geometry), guard (arrays
# between guard bytes), processes (every_carrier.py: what carries between two GPUs of ranks that are processes), memcheck,
# racecheck, initcheck, synccheck (compute-sanitizer over the short set, several programs at once: SANITIZER_JOBS). Of GPUS
# (2) GPUs, by name: again (peers ten times: what depends on timing), table (every method, run and transport of the four
# matrices of the performance table, as JSON), kills (processes killed). Logs and JSON go to FOLDER/logs; the last lines are
# one table. Exit code 0: all passed; 1: something failed; 3: no GPU could be used.
set -uo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = -C ]; then
  folder=$(cd "$2" && pwd) || exit 2
  shift 2
fi
if [ $# -gt 0 ]; then stages=("$@"); else stages=(plain guard processes memcheck racecheck initcheck synccheck); fi
cd "$folder" || exit 2
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export HOSTLESS_COMMAND=$folder/hostless NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
gpus=${GPUS:-2}
programs=(contract geometry breakdown fast loss stop life precision generated products tuning peers carriers communication paths refusals)
# What sanitizers look at, fifty times slower: every kernel, layout and ending once; nothing that measures time.
declare -A short=(
  [contract]='GpuContract.*'
  [geometry]='GpuGeometry.AllBlockSizes:GpuGeometry.SlicesWithoutLeaves'
  [breakdown]='All/Breakdown.*_auto'
  [fast]='All/GpuFastBeside.*'
  [precision]='GpuPrecision.FallsBackToFp64:GpuPrecision.NewValuesAreRoundedToo'
  [generated]='GpuGenerated.ProductsOutsideASolve:GpuGenerated.GoesOnFromACheckpointOfTheHostsLayout'
  [products]='All/GpuProducts.FirstIterationsAreThoseOfTheHost/merge:All/GpuProducts.NewValues/merge'
  [peers]='All/GpuPeers.SmallMatrix/*'
  [carriers]='All/GpuCarriers.SmallMatrix/host*'
  [communication]='GpuCommunication.SumsOfAllWidths:GpuCommunication.EpochsBeginAgain:GpuCommunication.MessagesOfAllSizes'
  [life]='All/GpuLife.NewValues/method_0:All/GpuCheckpoint.GoesOnAnywhere/method_1'
)
declare -A parts=([life]=2 [peers]=3 [fast]=4 [geometry]=2 [products]=2 [precision]=2 [generated]=2)
logs=$folder/logs
mkdir -p "$logs"
table=() failures=0 solved=0

# The number in the last line of the log that starts with [  WORD  ] and a number.
number() {
  local found
  found=$(sed -n "s/^\[  $2 *\] \([0-9][0-9]*\) test.*/\1/p" "$1" | tail -n 1)
  echo "${found:-0}"
}

# judge STAGE PROGRAM SECONDS CODE LIMIT: adds a row from the log.
judge() {
  local stage=$1 program=$2 log=$logs/$1-$2.log code=$4 verdict=ok
  local passed failed skipped
  passed=$(number "$log" PASSED) failed=$(number "$log" FAILED) skipped=$(number "$log" SKIPPED)
  if [ "$code" = 124 ] || [ "$code" = 137 ]; then
    verdict="hung: killed after $5 s"
  elif [ "$code" = 9 ]; then
    verdict="$stage found errors"
  elif [ "$code" != 0 ]; then
    verdict="exit code $code"
  elif [ "$((passed + skipped))" = 0 ]; then
    verdict='no test ran'
  elif [[ $stage == *check ]] && ! grep -q 'SUMMARY: 0 \(errors\|hazards\)' "$log"; then
    verdict="$stage said nothing"
  fi
  if [ "$verdict" != ok ]; then
    failures=$((failures + 1))
    grep -E '^=+ (Error|Warning|Invalid|Uninit|Race|Barrier|ERROR|RACECHECK)|Failure$|^\[  FAILED  \]' "$log" | head -n 5
  fi
  case "$program" in contract | geometry | loss | precision | peers | carriers | communication) solved=$((solved + passed)) ;; esac
  table+=("$(printf '%-10s %-12s %7s %7s %8s %6s s  %s' "$stage" "$program" "$passed" "$failed" "$skipped" "$3" "$verdict")")
}

# one STAGE PROGRAM SECONDS COMMAND...: runs it and judges it.
one() {
  local stage=$1 program=$2 limit=$3 began=$SECONDS code=0
  shift 3
  timeout -k 5 "$limit" "$@" >"$logs/$stage-$program.log" 2>&1 </dev/null || code=$?
  judge "$stage" "$program" $((SECONDS - began)) "$code" "$limit"
}

# script STAGE NAME SECONDS COMMAND...: one row of a program that says itself what it found. Exit code 3 is no failure: a
# machine with too few GPUs, or nothing to carry.
script() {
  local stage=$1 name=$2 limit=$3 began=$SECONDS code=0 verdict
  local log=$logs/$stage-$name.log
  shift 3
  PYTHONDONTWRITEBYTECODE=1 timeout -k 5 "$limit" "$@" >"$log" 2>&1 </dev/null || code=$?
  case "$code" in
    0) verdict="ok: $(tr '\n' ' ' <"$log" | tail -c 300)" solved=$((solved + 1)) ;;
    3) verdict="nothing was tried: $(tail -n 1 "$log" | cut -c 1-200)" ;;
    *)
      verdict="exit code $code"
      if [ "$code" = 124 ] || [ "$code" = 137 ]; then verdict="hung: killed after $limit s"; fi
      failures=$((failures + 1))
      tail -n 20 "$log"
      ;;
  esac
  table+=("$(printf '%-10s %-12s %7s %7s %8s %6s s  %s' "$stage" "$name" - - - $((SECONDS - began)) "$verdict")")
}

declare -A problem=([tri]='poisson2d-tri --size 452' [five]='poisson2d --size 1259' [seven]='poisson7 --size 128'
  [hex8]='elasticity-hex8 --size 10,108,483')
declare -A hosts=([tri]=host, [five]=host,)  # on the processor the others take minutes
every_way() {
  local matrix words
  for matrix in tri five seven hex8; do
    read -ra words <<<"${problem[$matrix]}"
    script table "$matrix" 120 ./hostless bench solve --generate "${words[@]}" --partition contiguous --gpus "$gpus" \
      --methods cg,pipelined-cg --runs "${hosts[$matrix]:-}persistent,graph,stream" --gpu-transports peer,nccl,host \
      --iterations 300 --repeat 3 --json "$logs/table-$matrix-$gpus.json"
  done
}

# The short set of every program under all sanitizers that are asked for, several at once, long ones in parts.
sanitize() {
  local limit=${SANITIZER_SECONDS:-240} at_once=${SANITIZER_JOBS:-$(nproc)} stage program part of name
  local -a names=()
  for stage in "$@"; do
    for program in life peers carriers communication fast geometry products contract breakdown precision generated; do
      of=${parts[$program]:-1}
      for ((part = 0; part < of; ++part)); do
        names+=("$stage $program.$part")
        while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
        (
          options=(--tool "$stage" --error-exitcode 9 --print-limit 20)
          if [ "$stage" = memcheck ]; then options+=(--leak-check full); fi
          # Of kernels in WHILE nodes memcheck says that they read out of bounds what "is inside the nearest
          # allocation", and synccheck that whole warps diverge; replayed, the same kernels are clean.
          export HOSTLESS_GPU_WHILE=0
          began=$SECONDS code=0
          HOSTLESS_DEADLINE_SCALE=60 GTEST_TOTAL_SHARDS=$of GTEST_SHARD_INDEX=$part timeout -k 5 "$limit" "$sanitizer" \
            "${options[@]}" "./device_$program" "--gtest_filter=${short[$program]}" \
            >"$logs/$stage-$program.$part.log" 2>&1 </dev/null || code=$?
          echo "$code $((SECONDS - began))" >"$logs/$stage-$program.$part.code"
        ) &
      done
    done
  done
  wait
  local code seconds
  for name in "${names[@]}"; do
    read -r stage program <<<"$name"
    read -r code seconds <"$logs/$stage-$program.code"
    judge "$stage" "$program" "$seconds" "$code" "$limit"
  done
}

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
checks=()
for stage in "${stages[@]}"; do
  case "$stage" in
    plain)
      for program in "${programs[@]}"; do
        one plain "$program" 300 env HOSTLESS_FULL_PRODUCT=1 "./device_$program"
      done
      ;;
    guard)
      for program in "${programs[@]}"; do
        one guard "$program" 300 env HOSTLESS_GPU_GUARD=1 "./device_$program"
      done
      ;;
    processes) script processes carriers 600 python3 every_carrier.py --hostless ./hostless ;;
    again)
      for round in $(seq 10); do one "again$round" peers 60 ./device_peers '--gtest_filter=-*HundredHangs*'; done
      ;;
    table) every_way ;;
    kills) script kills "$gpus" 240 python3 kill_ranks.py --hostless ./hostless --ranks "$gpus" --gpus "$gpus" --times 10 ;;
    memcheck | racecheck | initcheck | synccheck) checks+=("$stage") ;;
    *)
      echo "$stage: no such stage. See the first lines of $0." >&2
      exit 2
      ;;
  esac
done
if [ ${#checks[@]} -gt 0 ]; then
  if [ -n "$sanitizer" ]; then
    sanitize "${checks[@]}"
  else
    table+=("${checks[*]}: compute-sanitizer is not installed")
    failures=$((failures + 1))
  fi
fi

printf '\n%-10s %-12s %7s %7s %8s %8s  %s\n' stage program passed failed skipped time verdict
printf '%s\n' "${table[@]}"
if [ "$solved" = 0 ] && [ "$failures" = 0 ]; then
  grep -h -m 1 'cuda:\|hip:' "$logs"/*-contract.log 2>/dev/null
  echo 'no GPU could be used: nothing was shown'
  exit 3
fi
echo "$((${#table[@]} - failures)) of ${#table[@]} rows ok"
[ "$failures" = 0 ]

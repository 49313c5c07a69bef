#!/usr/bin/env bash
# Runs the device programs of a folder (`cmake --build build --target device_suite` makes one), builds nothing.
#   run_suite.sh [-C FOLDER] [STAGE...]
# Stages, those of one GPU and `processes` without a name: plain (full products of contract and geometry), guard (arrays
# between guard bytes), processes (every_gpu_transport.py: what carries between two GPUs of ranks that are processes), memcheck,
# racecheck, initcheck, synccheck (compute-sanitizer over the short set, several programs at once: SANITIZER_JOBS, 10 a GPU; ONLY
# names some, as memcheck-peers.*). Of GPUS
# (2) GPUs, by name: mpis (programs for MPIS_... on their streams), python (cupy_in_place.py: what CuPy has on one of them, solved in place; cupy_exchange.py: exchanged; cupy_stencil.py: stepped; cupy_queue.py: in halos of queues), again (peers ten times: what
# depends on timing), bits (one process, processes and mpirun end with equal bits), table (every method, run and transport of
# the MATRICES of the performance table, as JSON and one table), scaling (the same of fewer GPUs, SCALING_MATRICES:
# bench/plot_scaling.py draws logs/table-*.json), hangs (a hundred injected ones a transport and run), kills (ten processes
# killed a transport). Where there are more GPUs than one thing needs, several go on at a time, those that measure time never.
# A row in which nothing was tried (every test skipped, or a script that ended with 3) has failed unless a pattern of MAY_SKIP is
# that of STAGE-PROGRAM: MAY_SKIP='*-nvshmem* processes-gpu_transports'. Tests skipped beside others that ran are counted in their row,
# with their reasons below the table.
# Logs and JSON go to FOLDER/logs; the last lines are one table. Exit code 0: all passed; 1: something failed, or was not tried and
# may not be skipped; 3: no GPU could be used, or every row was one in which nothing was tried.
set -uo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = -C ]; then
  folder=$(cd "$2" && pwd) || exit 2
  shift 2
fi
if [ $# -gt 0 ]; then stages=("$@"); else stages=(plain guard processes memcheck racecheck initcheck synccheck); fi
cd "$folder" || exit 2
elsewhere=${LD_LIBRARY_PATH:-}  # of this machine: its Python does without what was carried
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export HOSTLESS_COMMAND=$folder/hostless NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1 PYTHONDONTWRITEBYTECODE=1
# Open MPI: started by root, ranks free to choose their cores, no reading of others' memory where containers forbid it.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
gpus=${GPUS:-2}
IFS=, read -ra visible <<<"${CUDA_VISIBLE_DEVICES:-${HIP_VISIBLE_DEVICES:-}}"
if [ ${#visible[@]} = 0 ]; then read -ra visible < <(seq -s ' ' 0 $(($(nvidia-smi -L 2>/dev/null | grep -c '^GPU') - 1))); fi
of_one=(contract columns life stencil geometry fast products generated precision breakdown loss stop refusals)  # long ones first
of_several=(tuning peers gpu_transports nvshmem communication exchange queue paths stencil_parts)  # tuning measures time
# What sanitizers look at, fifty times slower: every kernel, layout and ending once; nothing that measures time.
declare -A short=(
  [contract]='GpuContract.*'
  [columns]='GpuColumns.LongRowsAreShared:GpuColumns.ChebyshevPolynomials'
  [geometry]='All/GpuBlockSizes.*:GpuGeometry.SlicesWithoutLeaves'
  [breakdown]='All/Breakdown.*_auto'
  [fast]='All/GpuFastBeside.*'
  [precision]='GpuPrecision.FallsBackToFp64:GpuPrecision.NewValuesAreRoundedToo'
  [generated]='GpuGenerated.ProductsOutsideASolve:GpuGenerated.GoesOnFromACheckpointOfTheHostsLayout'
  [stencil]='All/GpuStencil.ChangesHaveTheBitsOfTheHost/*'
  [stencil_parts]='All/GpuParts.ChangesHaveTheBitsOfTheHost/jacobi2d_2:All/GpuParts.ChangesHaveTheBitsOfTheHost/wave_3'
  [products]='All/GpuProducts.FirstIterationsAreThoseOfTheHost/merge:All/GpuProducts.NewValues/merge'
  [peers]='All/GpuPeers.SmallMatrix/*'
  [gpu_transports]='All/GpuTransports.SmallMatrix/host*'
  [communication]='GpuCommunication.SumsOfAllWidths:GpuCommunication.EpochsBeginAgain:GpuCommunication.MessagesOfAllSizes'
  [exchange]='GpuExchanges.Peer*:GpuExchanges.StagedByThreads'  # NCCL did not get ready under a tool
  [life]='All/GpuLife.NewValues/method_0:All/GpuCheckpoint.GoesOnAnywhere/method_1'
)
declare -A parts=([life]=2 [stencil]=4 [stencil_parts]=2 [peers]=3 [fast]=3 [breakdown]=4 [geometry]=6 [communication]=3 [products]=2 [precision]=2 [generated]=2)
logs=$folder/logs
mkdir -p "$logs"
table=() reasons=() failures=0 untried=0 solved=0

# is_one_of NAME PATTERNS: whether one of the patterns (with spaces between) is that of the name.
is_one_of() {
  local pattern
  local -a patterns
  read -ra patterns <<<"$2"
  for pattern in "${patterns[@]}"; do
    # shellcheck disable=SC2053
    if [[ $1 == $pattern ]]; then return 0; fi
  done
  return 1
}

# The number in the last line of the log that starts with [  WORD  ] and a number.
number() {
  local found
  found=$(sed -n "s/^\[  $2 *\] \([0-9][0-9]*\) test.*/\1/p" "$1" | tail -n 1)
  echo "${found:-0}"
}

# The reasons of a log's skips, one a line.
skip_reasons() {
  sed -n '/: Skipped$/{n;p}' "$1" | sort | uniq -c | sort -rn | sed 's/^ *\([0-9]*\) /\1 x /' | cut -c 1-200
}

# nothing_tried STAGE-PROGRAM WHY: sets verdict, and counts it where it may not be.
nothing_tried() {
  if is_one_of "$1" "${MAY_SKIP:-}"; then
    verdict="nothing was tried, as MAY_SKIP allows: $2"
  else
    verdict="NOTHING WAS TRIED: $2"
    untried=$((untried + 1))
  fi
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
  elif [ "$passed" = 0 ]; then
    nothing_tried "$stage-$program" "$(skip_reasons "$log" | head -n 1)"
  elif [[ $stage == *check ]] && ! grep -q 'SUMMARY: 0 \(errors\|hazards\)' "$log"; then
    verdict="$stage said nothing"
  fi
  if [ "$skipped" != 0 ] && [ "$passed" != 0 ]; then
    reasons+=("$(skip_reasons "$log" | sed "s/^/$stage-$program: skipped /")")
  fi
  if [[ $verdict != ok && ${verdict,,} != 'nothing was tried'* ]]; then
    failures=$((failures + 1))
    grep -E '^=+ (Error|Warning|Invalid|Uninit|Race|Barrier|ERROR|RACECHECK)|Failure$|^\[  FAILED  \]' "$log" | head -n 5
  fi
  case "$program" in
    contract | queue | programs | stencil | stencil_parts | geometry | loss | precision | peers* | gpu_transports* | nvshmem* | communication) solved=$((solved + passed)) ;;
  esac
  table+=("$(printf '%-10s %-24s %7s %7s %8s %6s s  %s' "$stage" "$program" "$passed" "$failed" "$skipped" "$3" "$verdict")")
}

# measure STAGE NAME SECONDS COMMAND...: runs it; its log and, in NAME.code, exit code and seconds are for who judges.
measure() {
  local name=$1-$2 limit=$3 began=$SECONDS code=0
  shift 3
  timeout -k 5 "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null || code=$?
  echo "$code $((SECONDS - began)) $limit" >"$logs/$name.code"
}

# one STAGE PROGRAM SECONDS COMMAND...: a program of tests.
one() {
  measure "$@"
  judge_measured "$1" "$2"
}
judge_measured() {
  local code seconds limit
  read -r code seconds limit <"$logs/$1-$2.code"
  judge "$1" "$2" "$seconds" "$code" "$limit"
}

# script STAGE NAME SECONDS COMMAND...: one row of a program that says itself what it found. Exit code 3: it tried nothing (a
# machine with too few GPUs, or nothing to carry).
script() {
  measure "$@"
  judge_script "$1" "$2"
}
judge_script() {
  local log=$logs/$1-$2.log code seconds limit verdict
  read -r code seconds limit <"$logs/$1-$2.code"
  case "$code" in
    0) verdict="ok: $(grep -v '^ *$' "$log" | tail -n 1 | cut -c 1-200)" solved=$((solved + 1)) ;;
    3) nothing_tried "$1-$2" "$(tail -n 1 "$log" | cut -c 1-200)" ;;
    *)
      verdict="exit code $code"
      if [ "$code" = 124 ] || [ "$code" = 137 ]; then verdict="hung: killed after $limit s"; fi
      failures=$((failures + 1))
      tail -n 20 "$log"
      ;;
  esac
  table+=("$(printf '%-10s %-24s %7s %7s %8s %6s s  %s' "$1" "$2" - - - "$seconds" "$verdict")")
}

declare -A problem=([tri]='poisson2d-tri --size 452' [five]='poisson2d --size 1259' [seven]='poisson7 --size 128'
  [hex8]='elasticity-hex8 --size 10,108,483')
declare -A host_iterations=([tri]=300 [five]=50 [seven]=50 [hex8]=20)  # where all of them would take long
# What carries, by how ranks start: NVSHMEM takes processes, an MPI its own; one rank alone is all of it.
declare -A gpu_transports=([threads]='peer,nccl,host' [processes]='nvshmem' [mpi]='host,mpi')
every_way() {  # GPUS MATRIX...
  local gpus=$1 matrix start runs by rows
  local -a words more starts=(threads processes mpi)
  shift
  if [ "$gpus" = 1 ]; then starts=(threads); fi
  rm -f "$logs"/table-*-"$gpus"-*.json  # of an earlier call
  for matrix in "$@"; do
    read -ra words <<<"${problem[$matrix]}"
    for start in "${starts[@]}"; do
      by=${gpu_transports[$start]}
      runs=persistent,graph,stream more=()
      if [ "$start" = threads ]; then runs=host,$runs more=(--host-iterations "${host_iterations[$matrix]}"); fi
      if [ "$gpus" = 1 ]; then by=peer,nccl,nvshmem,host; fi
      rows=$logs/table-$matrix-$gpus-$start.json
      measure table "$matrix-$gpus-$start" 90 ./hostless bench solve --generate "${words[@]}" --partition contiguous \
        --gpus "$gpus" --ranks "$gpus" --transport "$start" --methods cg,pipelined-cg --runs "$runs" --gpu-transports "$by" \
        --iterations 300 --repeat 2 "${more[@]}" --json "$rows"
      if grep -q '"error"' "$rows" 2>/dev/null && ! grep -q '"best_us"' "$rows"; then  # a library is not here: transport_table.py judges that
        sed -i 's/^[24] /3 /' "$logs/table-$matrix-$gpus-$start.code"
      fi
      judge_script table "$matrix-$gpus-$start"
    done
  done
}

# see GPU...: nothing else is seen from here on.
see() {
  local seen
  seen=$(IFS=,; echo "$*")
  export CUDA_VISIBLE_DEVICES=$seen HIP_VISIBLE_DEVICES=$seen
}
# in_lanes STAGE HOW WIDTH: the lines of ${lanes[@]} are `LANE NAME SECONDS COMMAND...`; those of one lane follow each other,
# with WIDTH GPUs of their own where there are enough for several lanes. HOW judges each.
in_lanes() {
  local stage=$1 how=$2 width=$3 lane line count=$((${#visible[@]} / $3))
  local -a words
  if [ "$gpus" -lt $((width * count)) ]; then count=$((gpus / width)); fi
  for ((lane = 0; lane < (count > 1 ? count : 1); ++lane)); do
    (
      if [ "$count" -gt 1 ]; then see "${visible[@]:width * lane:width}"; fi
      for line in "${lanes[@]}"; do
        read -ra words <<<"$line"
        if [ "$count" -le 1 ] || [ $((words[0] % count)) = "$lane" ]; then measure "$stage" "${words[@]:1}"; fi
      done
    ) &
  done
  wait
  for line in "${lanes[@]}"; do
    read -ra words <<<"$line"
    "$how" "$stage" "${words[1]}"
  done
}
hang_ranks() {
  local peers='90 ./device_peers --gtest_filter=*HundredHangs'
  local of_gpu_transports='280 env HOSTLESS_HANGS=100 ./device_gpu_transports --gtest_filter=*ManyHangs'
  local of_nvshmem='120 env HOSTLESS_HANGS=100 ./device_nvshmem --gtest_filter=*ManyHangs'
  lanes=("0 queue 120 ./device_queue --gtest_filter=*HundredHangs*" "0 gpu_transports-nccl-stream $of_gpu_transports/nccl_stream" "1 gpu_transports-nccl-graph $of_gpu_transports/nccl_graph"
    "0 peers-persistent $peers/persistent" "1 peers-graph $peers/graph" "0 peers-stream $peers/stream"
    "1 gpu_transports-host-stream $of_gpu_transports/host_stream" "0 gpu_transports-host-graph $of_gpu_transports/host_graph"
    "0 nvshmem-persistent $of_nvshmem/persistent"
    "1 nvshmem-graph $of_nvshmem/graph" "0 nvshmem-stream $of_nvshmem/stream")
  in_lanes hangs judge_measured 2
}
kill_ranks() {
  local kill='200 python3 kill_ranks.py --hostless ./hostless --ranks 2 --gpus 2 --size 20000 --gpu-transport'
  local soon='--deadline-scale 0.1'  # NVSHMEM needs some seconds to begin
  lanes=("0 peer $kill peer --times 4 $soon" "1 nccl $kill nccl --runs graph,stream --times 5 $soon"
    "1 nvshmem $kill nvshmem --times 4" "0 host $kill host --runs graph,stream --times 5 $soon"
    "0 mpi-staged $kill host --runs graph,stream --transports openmpi --times 5 $soon"
    "1 queues 200 python3 kill_queues.py --hostless ./hostless --gpus 2 --times 10")
  in_lanes kills judge_script 2
}

# all_programs STAGE VARIABLE=VALUE: every program.
all_programs() {
  local stage=$1 program at=0
  lanes=()
  for program in "${of_one[@]}"; do lanes+=("$((at++)) $program 300 env $2 ./device_$program"); done
  in_lanes "$stage" judge_measured 1
  for program in "${of_several[@]}"; do one "$stage" "$program" 300 env "$2" "./device_$program"; done
  # A transport of tests, by the GPU library that has it.
  one "$stage" exchange_of_tests 300 env "$2" HOSTLESS_OF_TESTS=1 HOSTLESS_PLUGIN_DIR="$folder/of_tests" \
    ./device_exchange '--gtest_filter=*OfTests.*'
}

# is_wanted NAME: whether a pattern of ONLY is that of STAGE-PROGRAM.PART; all are without ONLY.
is_wanted() { is_one_of "$1" "${ONLY:-*}"; }

# The short set of every program under all sanitizers that are asked for, several at once, long ones in parts.
sanitize() {
  local limit=${SANITIZER_SECONDS:-240} at_once=${SANITIZER_JOBS:-$((10 * (${#visible[@]} > 1 ? ${#visible[@]} : 1)))} stage program part of name at=0
  local -a names=()
  for stage in "$@"; do
    for program in life stencil stencil_parts peers gpu_transports exchange communication fast geometry products contract breakdown precision generated; do
      of=${parts[$program]:-1}
      for ((part = 0; part < of; ++part)); do
        is_wanted "$stage-$program.$part" || continue
        names+=("$stage $program.$part")
        while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
        (
          options=(--tool "$stage" --error-exitcode 9 --print-limit 20)
          if [ "$stage" = memcheck ]; then options+=(--leak-check full); fi
          # Of kernels in WHILE nodes memcheck says that they read out of bounds what "is inside the nearest
          # allocation", and synccheck that whole warps diverge; replayed, the same kernels are clean.
          export HOSTLESS_GPU_WHILE=0
          filter=${short[$program]}
          # Copies wait under initcheck for kernels that wait for the host, which queues the copies.
          if [ "$stage" = initcheck ]; then export HOSTLESS_GPU_HOST_WAITS=1 filter=${filter//'/host*'/'/host_stream'}; fi
          # Ranks have a GPU each where they can: device_peers on one was not seen to end under a tool.
          if [ ${#visible[@]} -gt 1 ] && [[ " ${of_one[*]} " == *" $program "* ]]; then see "${visible[at % ${#visible[@]}]}"; fi
          began=$SECONDS code=0
          HOSTLESS_UNDER_A_TOOL=1 HOSTLESS_DEADLINE_SCALE=60 GTEST_TOTAL_SHARDS=$of GTEST_SHARD_INDEX=$part timeout -k 5 "$limit" "$sanitizer" \
            "${options[@]}" "./device_$program" "--gtest_filter=$filter" \
            >"$logs/$stage-$program.$part.log" 2>&1 </dev/null || code=$?
          echo "$code $((SECONDS - began))" >"$logs/$stage-$program.$part.code"
        ) &
        at=$((at + 1))
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
    plain) all_programs plain HOSTLESS_FULL_PRODUCT=1 ;;
    guard) all_programs guard HOSTLESS_GPU_GUARD=1 ;;
    mpis) one mpis programs 240 ./mpis_programs '--gtest_filter=*.Of_peer_ProgramsKeep' ;;
    python)
      script python in_place 300 env LD_LIBRARY_PATH="$elsewhere" PYTHONPATH="$folder/python" \
        HOSTLESS_PLUGIN_DIR="$folder" python3 cupy_in_place.py --gpus "$gpus"
      script python exchange 300 env LD_LIBRARY_PATH="$elsewhere" PYTHONPATH="$folder/python" \
        HOSTLESS_PLUGIN_DIR="$folder" python3 cupy_exchange.py --gpus "$gpus"
      script python stencil 300 env LD_LIBRARY_PATH="$elsewhere" PYTHONPATH="$folder/python" python3 cupy_stencil.py
      script python queue 300 env LD_LIBRARY_PATH="$elsewhere" PYTHONPATH="$folder/python" \
        HOSTLESS_PLUGIN_DIR="$folder" python3 cupy_queue.py --gpus "$gpus"
      ;;
    processes) script processes gpu_transports 600 python3 every_gpu_transport.py --hostless ./hostless --gpus "$gpus" ;;
    bits) script bits "$gpus" 240 python3 same_bits.py --hostless ./hostless --gpus "$gpus" ;;
    again)
      for round in $(seq 10); do one "again$round" peers 60 ./device_peers '--gtest_filter=-*HundredHangs*'; done
      ;;
    table)
      read -ra matrices <<<"${MATRICES:-tri five seven hex8}"
      every_way "$gpus" "${matrices[@]}"
      measure table all 30 python3 transport_table.py "$logs"/table-*-"$gpus"-*.json --markdown "$logs/table.md"
      cat "$logs/table-all.log"
      judge_script table all >/dev/null
      ;;
    scaling)
      read -ra matrices <<<"${SCALING_MATRICES:-tri hex8}"
      for fewer in 1 2 4; do
        if [ "$fewer" -lt "$gpus" ]; then every_way "$fewer" "${matrices[@]}"; fi
      done
      ;;
    hangs) hang_ranks ;;
    kills) kill_ranks ;;
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

printf '\n%-10s %-24s %7s %7s %8s %8s  %s\n' stage program passed failed skipped time verdict
printf '%s\n' "${table[@]}"
if [ ${#reasons[@]} -gt 0 ]; then printf '%s\n' "${reasons[@]}"; fi
if [ "$solved" = 0 ] && [ "$failures" = 0 ]; then
  grep -h -m 1 'cuda:\|hip:' "$logs"/*-contract.log 2>/dev/null
  echo 'nothing was shown: no GPU could be used, or nothing that was asked for could be tried'
  exit 3
fi
said="$((${#table[@]} - failures - untried)) of ${#table[@]} rows ok"
if [ "$untried" != 0 ]; then said+=", $untried tried nothing (MAY_SKIP names rows that may)"; fi
echo "$said"
[ "$((failures + untried))" = 0 ]

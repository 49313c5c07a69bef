#!/usr/bin/env bash
# All that a change has to show on a machine with one GPU or two, in one call: bits, endings, and times against an earlier build.
#   bench/gpu_session.sh SUITE BEFORE [STEP...]
# SUITE   what `cmake --build build --target device_suite` made elsewhere, with -DHOSTLESS_GPU=OFF, from the sources of this checkout
# BEFORE  an earlier commit: its sources (`git archive`; CMakeLists.txt and cmake/HostlessGpu.cmake as of this checkout, where that
#         commit has no HOSTLESS_GPU_ALONE) and its program `hostless`, built elsewhere; - where no step is `times`
# Both GPU libraries are compiled here. Steps (all of them): bits times suite peers nodes queues neighbors hangs kills. What they print is in the folder OUT
# (./out) too; each has a limit, and the last lines say which passed. PAIRS (10) of the times.
set -uo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=$(cd "$1" && pwd) || exit 2
before=
if [ "$2" != - ]; then before=$(cd "$2" && pwd) || exit 2; fi
shift 2
if [ $# -gt 0 ]; then steps=("$@"); else steps=(bits times suite peers nodes queues neighbors hangs kills); fi
case "$before ${steps[*]}" in " "*times*) echo 'times: of which earlier commit?' >&2; exit 2 ;; esac
out=${OUT:-$source/out}
mkdir -p "$out"
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
if [ "$gpus" = 0 ]; then
  echo 'no GPU is seen here: nothing was shown'
  exit 3
fi

compile_before() {
  cmake -S "$before" -B "$before/build-gpu-alone" -G 'Unix Makefiles' -DCMAKE_BUILD_TYPE=Release -DHOSTLESS_GPU_ALONE=ON &&
    cmake --build "$before/build-gpu-alone" -j "$(nproc)" &&
    cp "$before"/build-gpu-alone/lib/hostless/libhostless_*.so "$before"
}
compiling=
if [ -n "$before" ]; then
  compile_before >"$out/compile-before.log" 2>&1 &
  compiling=$!
fi
"$source/tests/device/build_and_run.sh" "$suite" | tee "$out/compile-after.log" || exit 1
[ -z "$compiling" ] || wait "$compiling" || { tail -n 20 "$out/compile-before.log"; exit 1; }

export source before suite out gpus PAIRS  # of what runs in a shell of its own
verdicts=() failures=0
# step NAME SECONDS COMMAND...
step() {
  local name=$1 limit=$2 code=0 began=$SECONDS
  shift 2
  if [ "$(type -t "$1")" = function ]; then set -- bash -c "$(declare -f paired pairs); \"\$@\"" bash "$@"; fi
  timeout -k 5 "$limit" "$@" 2>&1 | tee "$out/$name.log" || code=$?
  verdicts+=("$name: exit code $code after $((SECONDS - began)) s")
  if [ "$code" != 0 ]; then failures=$((failures + 1)); fi
}
# paired GPUS MATRICES NAME: JSON and a log of that name
paired() {
  LD_LIBRARY_PATH="$suite:${LD_LIBRARY_PATH:-}" python3 "$source/bench/gpu_paired.py" --before "$before/hostless" --after "$suite/hostless" \
    --gpus "$1" --only "$2" --pairs "${PAIRS:-10}" --json "$out/$3.json"
}
# One GPU's pairs on both at a time, where there are two: each has its own, and what is timed is the kernels.
pairs() {
  local code=0
  if [ "$gpus" -lt 2 ]; then paired 1 tri,five,seven,hex8 times; return; fi
  CUDA_VISIBLE_DEVICES=1 paired 1 tri,five,seven times-1-b >"$out/times-1-b.log" 2>&1 &
  CUDA_VISIBLE_DEVICES=0 paired 1 hex8 times-1-a || code=1
  wait "$!" || code=1
  cat "$out/times-1-b.log"
  paired 2 tri,five,seven,hex8 times-2 || code=1
  return "$code"
}
suite_of() { step "$1" "$2" env GPUS="$gpus" "$suite/run_suite.sh" -C "$suite" "${@:3}"; }
for name in "${steps[@]}"; do
  case "$name" in
    bits) step bits 120 env LD_LIBRARY_PATH="$suite:${LD_LIBRARY_PATH:-}" HOSTLESS_COMMAND="$suite/hostless" "$suite/device_contract" ;;
    times) step times 900 pairs ;;
    suite) suite_of suite 900 plain guard ;;
    peers) suite_of peers 400 again bits processes ;;
    nodes)  # peer memory inside nodes, NCCL or the host between: exchanges, solves, losses
      step nodes-exchanges 300 env LD_LIBRARY_PATH="$suite:${LD_LIBRARY_PATH:-}" "$suite/device_exchange" '--gtest_filter=*Nodes*:*NcclByThreads'
      step nodes-solves 600 env LD_LIBRARY_PATH="$suite:${LD_LIBRARY_PATH:-}" "$suite/device_gpu_transports" '--gtest_filter=*/peer_*:*EqualPlans*'
      ;;
    queues) step queues 400 env LD_LIBRARY_PATH="$suite:${LD_LIBRARY_PATH:-}" HOSTLESS_QUEUE_PROGRAMS=10000 "$suite/device_queue" ;;
    neighbors) step neighbors 300 env OUT="$out/neighbors" "$source/bench/gpu_neighbors.sh" "$suite" ;;
    hangs) suite_of hangs 900 hangs ;;
    kills) suite_of kills 600 kills ;;
    *)
      echo "$name: no such step. See the first lines of $0." >&2
      exit 2
      ;;
  esac
done
printf '%s\n' "${verdicts[@]}"
echo "$((${#verdicts[@]} - failures)) of ${#verdicts[@]} steps passed"
[ "$failures" = 0 ]

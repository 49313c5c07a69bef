#!/usr/bin/env bash
# The tables that bench/model/gpu_predicted.py predicts half of: cg and pipelined-cg in every run and by every transport, on one GPU and on two.
#   bench/model/gpu_predicted.sh FOLDER OUT [SECONDS]      FOLDER: of `cmake --build build --target device_suite`, with its GPU libraries
# Ends with what the script says of all tables that are there; no matrix is begun after SECONDS (120).
set -uo pipefail
folder=$(cd "$1" && pwd) || exit 2
mkdir -p "$2"
out=$(cd "$2" && pwd) || exit 2
limit=${3:-120}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SECONDS=0
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
problems=('poisson2d-tri --size 452' 'poisson2d --size 1259' 'poisson7 --size 128' 'elasticity-hex8 --size 10,54,242'
  'poisson2d-tri --size 1000' 'poisson27 --size 80' 'poisson2d --size 700' 'poisson7 --size 80')
table() {  # NAME GPUS START TRANSPORTS PROBLEM...
  local name=$1 gpus=$2 start=$3 by=$4
  shift 4
  LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout -k 5 40 "$folder/hostless" bench solve --generate "$@" \
    --partition contiguous --gpus "$gpus" --ranks "$gpus" --transport "$start" --methods cg,pipelined-cg \
    --runs persistent,graph,stream --gpu-transports "$by" --iterations 200 --repeat 2 --json "$out/table-$name-$gpus-$start.json" \
    >"$out/table-$name-$gpus-$start.log" 2>&1 </dev/null || echo "$name, $gpus GPUs, $start: exit code $?: $(tail -n 1 "$out/table-$name-$gpus-$start.log")"
}
for k in "${!problems[@]}"; do
  if [ "$SECONDS" -ge "$limit" ]; then
    echo "not begun after $limit s: ${problems[*]:$k}"
    break
  fi
  read -ra words <<<"${problems[$k]}"
  table "$k" 1 threads peer "${words[@]}"
  table "$k" 2 threads peer,nccl,host "${words[@]}"
  table "$k" 2 processes nvshmem "${words[@]}"
  table "$k" 2 mpi host,mpi "${words[@]}"
done
echo "$SECONDS s"
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} python3 "$here/gpu_predicted.py" "$out"/table-*.json --json "$out/predicted.json"

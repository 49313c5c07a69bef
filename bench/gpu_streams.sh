#!/usr/bin/env bash
# What exchanges between two GPUs cost on streams, every way, in one go: bench/gpu_streams.sh [HOSTLESS [FOLDER]].
# JSON goes to FOLDER (streams). Peer exchanges twice: every block of what unpacks waits for itself, or a kernel of its own
# waits before it (HOSTLESS_GPU_AWAIT_APART=1); rows `stream`, `graph`, and `copies` by the copy engine.
set -uo pipefail
hostless=${1:-hostless} folder=${2:-streams}
mkdir -p "$folder"
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
sizes=8,256,4096,16384,65536,131072,262144,1048576,16777216
halo=(--generate poisson2d-tri --size 452)
code=0
try() {  # NAME WORDS...: a table, and its JSON
  local name=$1
  shift
  echo "== $name"
  "$hostless" bench "$@" --json "$folder/$name.json" || code=$?
}
for apart in 0 1; do
  export HOSTLESS_GPU_AWAIT_APART=$apart
  try "pingpong-peer-apart$apart" pingpong --gpus 2 --ranks 2 --gpu-transport peer --sizes "$sizes"
  try "halo-peer-apart$apart" halo "${halo[@]}" --gpus 2 --ranks 2 --gpu-transport peer
done
unset HOSTLESS_GPU_AWAIT_APART
all=peer,nccl,nvshmem,mpi,host
try pingpong-all pingpong --ranks 2 --gpus 2 --transports "$all" --sizes "$sizes"
try halo-all halo "${halo[@]}" --ranks 2 --gpus 2 --transports "$all"
try allreduce-all allreduce --ranks 2 --gpus 2 --transports "$all"
exit "$code"

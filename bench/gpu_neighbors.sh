#!/usr/bin/env bash
# Neighbourhood collectives on buffers of two GPUs, by peer memory, NCCL, staged and GPU-aware MPI, by every trigger, in one
# go of four minutes at most (on one GPU: what needs no second one, by virtual ranks):
#   bench/gpu_neighbors.sh FOLDER
# FOLDER  what `cmake --build build --target device_suite` made, with the GPU libraries beside the program `hostless`
# JSON goes to OUT (./neighbors), a file for each start of the program; one table of all of them is printed in the end. Two ranks
# have a GPU each, and multiply a matrix too; 4 and 8 are virtual, several on each GPU. Under mpirun, where there is one, messages are Open MPI's:
# `host` stages them. GPU_MPIRUN names the mpirun of an MPI that takes device memory, with options of its own, as
# GPU_MPIRUN='/opt/ompi/bin/mpirun --mca pml ucx': its libraries are looked for beside it. SIZES in place of 1 KiB to 64 MiB.
# Exit code: the largest of all starts, 1 where a byte came wrong; 3: no GPU is seen.
set -uo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(cd "${1:?the folder of the programs}" && pwd) || exit 2
out=${OUT:-neighbors}
mkdir -p "$out"
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
if [ "$gpus" = 0 ]; then
  echo 'no GPU is seen here: nothing was shown'
  exit 3
fi
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export NCCL_NVLS_ENABLE=0 CUDA_DEVICE_MAX_CONNECTIONS=32
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
sizes=${SIZES:-1024,4096,16384,65536,262144,1048576,4194304,16777216,67108864}
brief=(--gpus 2 --steps 50 --repeat 3) by_two=peer,copies,nccl,host by_product=peer,nccl,host
if [ "$gpus" = 1 ]; then  # NCCL and MPI that takes device memory want a GPU for each rank
  brief=(--gpus 1 --oversubscribe --steps 50 --repeat 3) by_two=peer,copies,host by_product=peer,host
fi
all_pairs=(--pattern rsg --density 1 --sizes "$sizes")
whole=235 began=$SECONDS code=0 files=()
# try NAME SECONDS WORDS...: those before -- start the program; a table, its JSON and what it took
try() {
  local name=$1 limit=$2 left=$((whole - SECONDS + began)) ended=0 start=()
  shift 2
  while [ "$1" != -- ]; do start+=("$1"); shift; done
  shift
  if [ "$left" -lt "$limit" ]; then limit=$left; fi
  if [ "$limit" -lt 5 ]; then echo "== $name: not started, the four minutes are over"; code=4; return; fi
  echo "== $name"
  timeout -k 5 "$limit" "${start[@]}" "$folder/hostless" bench neighbor "${brief[@]}" "$@" --json "$out/$name.json" || ended=$?
  echo "exit code $ended after $((SECONDS - began)) s in all"
  if [ "$ended" -gt "$code" ]; then code=$ended; fi
  if [ -s "$out/$name.json" ]; then files+=("$out/$name.json"); fi
}
rm -f "$out"/{two,mpi,gpu-mpi,product-crack,product-ccc_G_06,four,eight}.json
try two 80 -- --ranks 2 "${all_pairs[@]}" --gpu-transport "$by_two"
if command -v mpirun >/dev/null && [ "$gpus" -gt 1 ]; then
  try mpi 45 mpirun -n 2 -- "${all_pairs[@]}" --gpu-transport mpi,host --triggers host,stream,graph
fi
if [ -n "${GPU_MPIRUN:-}" ] && [ "$gpus" -gt 1 ]; then
  read -ra start <<<"$GPU_MPIRUN"
  libraries=$(cd "$(dirname "${start[0]}")/../lib" && pwd)
  LD_LIBRARY_PATH=$libraries:$LD_LIBRARY_PATH try gpu-mpi 60 "${start[@]}" -n 2 -- \
    "${all_pairs[@]}" --gpu-transport peer,mpi,host --triggers host,stream,graph
fi
for matrix in crack ccc_G_06; do
  try "product-$matrix" 20 -- --ranks 2 "$matrix" --pattern spmm --columns 64 --gpu-transport "$by_product" --triggers host,stream,graph
done
try four 60 -- --ranks 4 --oversubscribe --pattern rsg --density 0.7 --sizes "$sizes" --gpu-transport peer,host
try eight 60 -- --ranks 8 --oversubscribe --pattern moore --dimension 1 --sizes "$sizes" --gpu-transport peer,host
if [ ${#files[@]} -gt 0 ]; then python3 "$source/bench/gpu/neighbor_table.py" "${files[@]}"; fi
exit "$code"

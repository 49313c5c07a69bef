#!/usr/bin/env bash
# On a machine with nvcc and none of the packages: compiles a GPU library of stencils alone (stencils_alone.gpu.cpp), in minutes, into a
# folder that goes into HOSTLESS_PLUGIN_DIR, or that has programs of device_suite beside which they look for it.
#   tests/device/stencil/build_alone.sh FOLDER
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
cd "$source"
began=$SECONDS waiting=()
for file in src/stencil/gpu/texts/*.gpu.cpp src/stencil/gpu/*.gpu.cpp src/stencil/gpu/parts/*.gpu.cpp src/transport/memory/paths.gpu.cpp \
  src/transport/peer/ping_pong.gpu.cpp tests/device/stencil/stencils_alone.gpu.cpp; do
  nvcc -x cu -std=c++20 -O3 -arch="${ARCHITECTURE:-sm_90}" --fmad=false -DHOSTLESS_GPU_COMPILER -Iinclude -Isrc -diag-suppress 20011,20012,20013,20014 \
    -Xcompiler -ffp-contract=off,-fPIC,-fvisibility=hidden -c "$file" -o "$objects/${file//\//_}.o" &
  waiting+=($!)
done
for process in "${waiting[@]}"; do wait "$process"; done
nvcc -shared --cudart=static -Xlinker --no-undefined "$objects"/*.o -o "$folder/libhostless_cuda.so"
echo "compiled in $((SECONDS - began)) s: $folder/libhostless_cuda.so"

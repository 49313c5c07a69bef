#!/usr/bin/env bash
# On a machine with a GPU and its compiler, and without the packages: compiles the GPU library of this checkout there, puts it
# into a folder that `cmake --build build --target device_suite` made elsewhere (with -DHOSTLESS_GPU=OFF, from the same
# sources), and runs run_suite.sh in it.
#   tests/device/build_and_run.sh FOLDER [STAGE...]       without a stage: compile, and nothing more
# CMAKE_FLAGS are added to those of configuring.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(cd "$1" && pwd)
shift
build=$source/build-gpu-alone
began=$SECONDS
# shellcheck disable=SC2086
cmake -S "$source" -B "$build" -G 'Unix Makefiles' -DCMAKE_BUILD_TYPE=Release -DHOSTLESS_GPU_ALONE=ON ${CMAKE_FLAGS:-} >"$build.log"
cat "$build/gpu-libraries.txt"
cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 || { tail -n 30 "$build.log"; exit 1; }
cp "$build"/lib/hostless/libhostless_*.so "$folder"
mkdir -p "$folder/of_tests"
cp "$build"/lib/hostless_tests/libhostless_*.so "$folder/of_tests"
echo "compiled in $((SECONDS - began)) s"
if [ $# -gt 0 ]; then exec "$folder/run_suite.sh" -C "$folder" "$@"; fi

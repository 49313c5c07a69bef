#!/usr/bin/env bash
# Compiles the GPU libraries as a release has them (every instruction optimised, for sm_80 as well as sm_90, and for gfx90a),
# loads both, holds the registers of persistent kernels against tools/persistent_registers.txt, and runs the contract suite's whole
# product. Once before an issue is closed: CI compiles them quickly.
#   tools/gpu_full.sh [-j jobs]
# build-gpu-full/gpu-full.log says of which commit, when, by which compilers, and what was printed. Fails when one of the two
# libraries was not compiled or cannot be loaded.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in -h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;; esac
jobs=("${@:--j$(nproc)}")
build=build-gpu-full
mkdir -p "$build"
exec > >(tee "$build/gpu-full.log") 2>&1

version() {  # of a compiler that CMake has found
  local compiler
  compiler=$(sed -n "s/^HOSTLESS_$1:[A-Z]*=//p" "$build/CMakeCache.txt")
  # All of it is read: some compilers complain of a pipe that is closed before.
  "$compiler" --version 2>&1 | awk '!seen && /release|HIP version/ {print; seen = 1}'
}
echo "gpu-full of commit $(git describe --always --dirty 2>/dev/null || echo unknown), begun $(date -u '+%Y-%m-%d %H:%M') UTC"
cmake --preset gpu-full -DHOSTLESS_BUILD_TESTS=ON -DHOSTLESS_GPU=ON -DHOSTLESS_GPU_QUICK=OFF -DHOSTLESS_GPU_RESOURCES=ON >"$build/configure.txt"
cat "$build/gpu-libraries.txt"
for vendor in cuda hip; do
  if ! grep -q "library $vendor: compiled for" "$build/gpu-libraries.txt"; then
    echo "gpu-full: the $vendor library cannot be compiled here (a release has both). Install its compiler." >&2
    exit 1
  fi
done
echo "nvcc: $(version NVCC)"
echo "hipcc: $(version HIPCC)"
# Appended to: what is not compiled again keeps what was said of it.
if ! cmake --build "$build" "${jobs[@]}" --target hostless_cuda hostless_hip solve_gpu_libraries solve_contract >>"$build/build.txt" 2>&1; then
  tail -n 40 "$build/build.txt"
  exit 1
fi
python3 tools/check_registers.py "$build/build.txt" --compiler "$(version NVCC)"
ls -l "$build"/lib/hostless/libhostless_cuda.so "$build"/lib/hostless/libhostless_hip.so | awk '{print $5, "bytes", $9}'
ctest --test-dir "$build" -R '^solve_gpu_libraries_' --output-junit "$PWD/$build/tests.xml" \
  --test-output-size-passed 1000000 >"$build/tests.txt" || true
# Nothing may be skipped: the list is empty.
python3 tools/count_tests.py --allowed /dev/null "libraries=$build/tests.xml"
cmake --build "$build" --target full_product
echo "gpu-full: ended $(date -u '+%Y-%m-%d %H:%M') UTC"

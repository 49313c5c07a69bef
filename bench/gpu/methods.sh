#!/usr/bin/env bash
# Times of every method on one GPU, microseconds an iteration, bits compared between runs.
#   bench/gpu/methods.sh HOSTLESS [OUT]
set -uo pipefail
hostless=$1
out=${2:-.}
failed=0
measure() { # NAME WORDS...
  local name=$1
  shift
  "$hostless" bench solve "$@" --methods cg,single-reduction-cg,pipelined-cg,minres,bicgstab --runs persistent,graph,stream --gpus 1 --iterations 500 \
    --repeat 5 --preconditioner jacobi --json "$out/methods-$name.json" || failed=$((failed + 1))
}
measure triangular --generate poisson2d-tri --size 270
measure 5-point --generate poisson2d --size 1000
measure 7-point --generate poisson7 --size 128
measure hex8 --generate elasticity-hex8 --size 70
echo "$failed failed"
[ "$failed" = 0 ]

#!/usr/bin/env bash
# The main job on a real problem: linear elasticity of a clamped, layered block (hexahedra, three unknowns a node),
# two ranks, solved and compared with a known solution. `make demo` runs it; it is the one place with this command.
#   tools/demo.sh [path of the hostless command]
set -euo pipefail
cd "$(dirname "$0")/.."
hostless=${1:-build/apps/hostless/hostless}
mkdir -p out
set -x
"$hostless" solve --generate elasticity-hex8 --size 24 --ranks 2 --transport threads --method cg \
  --preconditioner jacobi --rtol 1e-8 --manufactured --json out/demo.json

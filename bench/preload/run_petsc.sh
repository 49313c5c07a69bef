#!/bin/bash
# PETSc, with its neighbourhood collectives and with hypre, without and with what is preloaded: prints whether both print the
# same, and the report. With Debian's petsc-dev, whose MPI is Open MPI.
#   bench/preload/run_petsc.sh build/lib/hostless/libhostless_preload_openmpi.so [ranks]
# PETSC_FLAGS: what compiles and links PETSc, in the place of `pkg-config --cflags --libs petsc`.
set -euo pipefail
library=$(realpath "${1:?which library is to be preloaded? Name libhostless_preload_openmpi.so}")
ranks=${2:-3}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
read -ra flags <<< "${PETSC_FLAGS:-$(pkg-config --cflags --libs petsc)}"
mpicc.openmpi -o "$work/uses_petsc" "$here/uses_petsc.c" "${flags[@]}"
launch=(timeout 120 mpirun.openmpi -n "$ranks" --oversubscribe)
[ "$(id -u)" != 0 ] || launch+=(--allow-run-as-root)
code=0
for options in "-sf_type neighbor" "-pc_type hypre"; do
  read -ra words <<< "$options"
  "${launch[@]}" "$work/uses_petsc" "${words[@]}" > "$work/without"
  "${launch[@]}" env LD_PRELOAD="$library" HOSTLESS_PRELOAD_ROUTE=three_step HOSTLESS_PRELOAD_RANKS_PER_NODE=2 \
    HOSTLESS_PRELOAD_COUNTS=checked HOSTLESS_PRELOAD_REPORT="$work/report" "$work/uses_petsc" "${words[@]}" > "$work/with"
  if cmp "$work/without" "$work/with"; then echo "$options: the same"; else code=1; fi
  tail -n 1 "$work/with"
  cat "$work/report"
done
exit $code

#!/bin/bash
# MPICH's own tests that use neighbourhood collectives or graph communicators, without and with what is preloaded: prints of
# each whether both say the same and end alike, and what was carried. From the sources of Debian's package (`apt-get source
# mpich`), which any MPI compiles: with Debian's Open MPI or MPICH, by the library's name.
#   bench/preload/run_mpich_tests.sh build/lib/hostless/libhostless_preload_{mpich,openmpi}.so SOURCES [ranks]
set -euo pipefail
library=$(realpath "${1:?which library is to be preloaded? Name libhostless_preload_mpich.so or libhostless_preload_openmpi.so}")
tests=$(realpath "${2:?where are the sources of MPICH? Name their folder}")/test/mpi
ranks=${3:-4}
case "$library" in *openmpi*) mpi=openmpi launch=(mpirun.openmpi --oversubscribe) ;; *) mpi=mpich launch=(mpiexec.mpich) ;; esac
if [ $mpi = openmpi ] && [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi
launch=(timeout 120 "${launch[@]}" -n "$ranks")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: > "$work/mpitestconf.h"
# what their configure would find, and threads of POSIX
flags=(-w -I"$work" -I"$tests/include" -DHAVE_STDLIB_H -DHAVE_STRING_H -DHAVE_UNISTD_H -DHAVE_STDARG_H -DHAVE_STDINT_H
  -DTHREAD_PACKAGE_NAME=THREAD_PACKAGE_POSIX -DTHREAD_PACKAGE_POSIX=3 -DTEST_NEIGHB_COLL=1)
same=0 differ=0 left=0
for source in "$tests"/coll/{neighb_,p_neighb_,ring_neighbor_}*.c "$tests"/topo/{distgraph1,dgraph_unwgt,graphcr,graphcr2,graphmap1,topodup,topotest,cartcreates,cartshift1,cartzero}.c; do
  name=$(basename "$source" .c)
  if ! mpicc.$mpi "${flags[@]}" "$source" "$tests"/util/mtest.c "$tests"/util/mtest_common.c "$tests"/util/mtest_thread.c -o "$work/$name" -lpthread 2> "$work/compiled"; then
    echo "$name: not compiled ($(grep -m1 -E 'error|undefined' "$work/compiled" | sed 's/.*: //'))"
    left=$((left + 1))
    continue
  fi
  code=0 with=0
  "${launch[@]}" "$work/$name" > "$work/without.out" 2>&1 || code=$?
  rm -f "$work/report"
  "${launch[@]}" env LD_PRELOAD="$library" HOSTLESS_PRELOAD_ROUTE=three_step HOSTLESS_PRELOAD_RANKS_PER_NODE=2 \
    HOSTLESS_PRELOAD_COUNTS=checked HOSTLESS_PRELOAD_AFTER=0 HOSTLESS_PRELOAD_REPORT="$work/report" "$work/$name" > "$work/with.out" 2>&1 || with=$?
  # of a test that fails without, which ranks say so before the others are ended is chance
  if [ $code = $with ] && { [ $code != 0 ] || cmp -s <(sort "$work/without.out") <(sort "$work/with.out"); }; then
    same=$((same + 1))
    echo "$name: the same (exit code $code); $(grep -m1 -o "[0-9]* calls\? carried, [0-9]* handed on" "$work/report" 2> /dev/null || echo 'no report')"
  else
    differ=$((differ + 1))
    echo "$name: DIFFERS: exit code $code without, $with with it"
    diff <(sort "$work/without.out") <(sort "$work/with.out") | head -n 5 || true
  fi
done
echo "$mpi, $ranks ranks: $same the same, $differ differ, $left not compiled"
[ $differ = 0 ]

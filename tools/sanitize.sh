#!/usr/bin/env bash
# Builds and runs the tests that a sanitizer can say something about.
#   tools/sanitize.sh asan-ubsan|tsan [--all] [build | more options of ctest]   (build: runs nothing)
# Left out: tests of MPI, of what goes by it between nodes, and libfabric (these libraries are not instrumented and report leaks and
# races of their own; composite's own part is run by the tests' transport nodes), of GPUs, of what Python does (the package, pictures,
# bench/), of the installed package, checks of the text, set-up that is interrupted (cli_endings interrupts what has begun). tsan runs
# what has several threads. Without --all, of what comes in hundreds a sample (tests/sample/sample.hpp), and neither whole solves
# against oracles nor explorations nor what else takes long for code that other tests run. clang.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-}
without='mpi|_ofi|_composite|install|^check_|tools_self_test|^device_|^report_|^python|^bench_(compare|rivals|several|paired|plot|stencil_scaling|gpu_transports|emulated_machines|queue_machines)|^cli_bench_(rows|papers|neighbor|queue)|^cli_setup'
# What --all runs too.
long='^numerics_(breakdown|oracle)|^solve_known_bits'
case "$preset" in
  asan-ubsan)
    with='.'
    # tsan has these contracts; what the others run is run by shorter ones.
    long+='|^[^q].*_contract_threads|^(transport|solve|context)_contract_processes|^solve_contract_loopback'
    long+='|^protocols|^numerics_ordered'
    # The command's processes start slowly here: of what its tests run, those of files, endings and faults, and some of each subcommand.
    long+='|^cli_(output|stencil|gpu|bench|exit_codes|solve_options|stencil_gpu|report|memory)$'
    ;;
  tsan)
    with='base|transport|thread|queue|exchange|run|solve|contract|machine|files|fault|operate_places|^cli_'
    without+='|files_malformed|files_failing|queue_without_memory'  # they have an operator new of their own, as clang's ThreadSanitizer does
    without+='|^queue_text'  # one thread plays two ranks
    # Of the command checkpoints and the launcher, whose processes are real ones (cli_endings, cli_starts).
    long+='|^cli_([^es]|e[^n]|s[^t]|st[^a])|^machine_test_baseline'
    # Ranks that are processes have one thread each but for what watches them: asan-ubsan has these programs.
    long+='|^fault_ranks|^transport_contract_nodes|^exchange_random_(processes|nodes)|^(stencil|context)_contract_nodes'
    long+='|^stencil_contract_processes'
    ;;
  -h | --help) sed -n '2,8s/^# //p' "$0"; exit 0 ;;
  *) sed -n '2,8s/^# //p' "$0" >&2; exit 2 ;;
esac
shift
not='*Mpi*:*mpi*'
if [ "${1:-}" = --all ]; then
  shift
else
  export HOSTLESS_TEST_SAMPLE=1
  without+="|$long"
  # They take 40 s to count, half of the time of all checkpoints for solves that others continue alike, and a minute for millions of
  # rows that are made as the first of them are.
  not+=':*CountsBeyondTwoToThe31*:*GoesOnThroughProjections*:*OfAFunctionGoesOn*:*AtFullSize*:Preset.StandIns*'
fi
cmake --preset "$preset" -DHOSTLESS_BUILD_TESTS=ON >/dev/null
# Only the programs of the tests that will run are built.
mapfile -t targets < <(python3 - "build-$preset" <(ctest --test-dir "build-$preset" -N -R "$with" -E "$without") \
  <(cmake --build --preset "$preset" --target help) <<'EOF'
import pathlib, re, sys
chosen = set(re.findall(r"Test *#\d+: (\S+)", open(sys.argv[2]).read()))
known = set(re.findall(r"^(\w+): phony", open(sys.argv[3]).read(), re.M))
listed = "".join(f.read_text() for f in pathlib.Path(sys.argv[1]).rglob("CTestTestfile.cmake"))
programs = {pathlib.Path(program).name
            for name, program in re.findall(r'^add_test\(\[=\[(.+?)\]=\] "([^"]+)"', listed, re.M) if name in chosen}
print("\n".join(sorted((programs | chosen) & known)))  # a target of a test's name has what it loads
EOF
)
cmake --build --preset "$preset" --target hostless_cli "${targets[@]}"
if [ "${1:-}" = build ]; then exit 0; fi

export GTEST_FILTER="-$not"
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tools/tsan.supp"
export HOSTLESS_DEADLINE_SCALE=${HOSTLESS_DEADLINE_SCALE:-4}
# ThreadSanitizer of GCC 11-13 cannot map its shadow under newer kernels' address randomisation.
steady=()
if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then steady=(setarch "$(uname -m)" -R); fi
# One job more than processors: some wait for deadlines, and none runs under mpirun, whose ranks that spin make others late.
"${steady[@]}" ctest --test-dir "build-$preset" -R "$with" -E "$without" --output-on-failure --no-tests=error \
  -j "$(($(nproc) + 1))" --test-output-size-passed 100000000 --test-output-size-failed 100000000 "$@"

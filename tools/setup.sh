#!/usr/bin/env bash
# Makes sure that what a make target needs is on this machine.
#   tools/setup.sh build    what `make demo` needs
#   tools/setup.sh test     that, GoogleTest, both MPI libraries, libfabric where apt has it, a Python with NumPy in .venv
#   tools/setup.sh bench    that, and PETSc to compare with
#   tools/setup.sh pictures what test needs, and Chromium, which opens the pages that the tests have drawn
#   tools/setup.sh ci       what test and pictures need, clang for the sanitizers, coverage, formatting
# With GPU=on, hipcc too where apt offers it (ci: and rocSPARSE). With TORCH=on, a torch for the tests (half a gigabyte).
# Packages come from apt (Debian 12, Ubuntu 22.04 and 24.04), as root or through sudo. Where nothing is missing, no
# right is needed. HOSTLESS_SETUP=skip trusts the machine (other distributions, containers without apt).
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; }
level=${1:-build}
build=(g++ cmake ninja-build pkg-config python3 python3-pip python3-dev python3-venv zlib1g-dev libfmt-dev nlohmann-json3-dev libcli11-dev
  libmetis-dev libhwloc-dev)
test=(libgtest-dev libopenmpi-dev openmpi-bin libmpich-dev mpich)
# A name with | is satisfied by the first that the distribution has: clang's run-time library was split out in 2023.
ci=(clang "libclang-rt-dev|libclang-common-14-dev" "clang-format-14|clang-format" gcovr ccache)
# Done without where the distribution has none (or older ones than C++20 needs). A GPU compiler takes a gigabyte, and its
# libraries a quarter of an hour: who has none is not given one unasked.
optional=()
if [ "${GPU:-}" = on ]; then optional+=(hipcc); fi
case "$level" in test | pictures | ci) optional+=(libfabric-dev) ;; esac  # queues of the type ofi
case "$level" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  ci)
    wanted=("${build[@]}" "${test[@]}" "${ci[@]}") optional+=(chromium)
    # The product of AMD's library (--format vendor) is compiled where its headers are.
    if [ "${GPU:-}" = on ]; then optional+=(librocsparse-dev); fi
    ;;
  # Half a minute, so no part of `test`: what opens pages is skipped without it, saying so.
  pictures) wanted=("${build[@]}" "${test[@]}") optional+=(chromium) ;;
  bench) wanted=("${build[@]}" "${test[@]}" petsc-dev) optional=() ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}
any_installed() {
  local name
  for name in ${1//|/ }; do installed "$name" && return 0; done
  return 1
}
choose() {  # the first of the alternatives that apt knows
  local name
  for name in ${1//|/ }; do
    if offered "$name"; then echo "$name"; return; fi
  done
  echo "${1%%|*}"
}
# Asks only whether root is reachable without a question: nothing here may wait for a password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
can_be_root() {
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

offered() {
  apt-cache show "$1" >/dev/null 2>&1
}
# What is there already, or cannot be had, is said and left alone.
install_optional() {
  local name
  for name in "${optional[@]}"; do
    if command -v "$name" >/dev/null || installed "$name"; then continue; fi
    if ! can_be_root; then
      echo "setup: $name is not installed and this user may not install it: what needs it is left out"
      continue
    fi
    offered g++ || as_root apt-get update -qq  # a fresh container knows no packages at all
    if ! offered "$name"; then
      echo "setup: this distribution offers no $name: what needs it is left out"
    elif ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$name" >/dev/null; then
      echo "setup: $name could not be installed: what needs it is left out"
    else
      echo "setup: installed $name"
    fi
  done
}

install_missing() {
  local missing=() name
  for name in "${wanted[@]}"; do any_installed "$name" || missing+=("$name"); done
  [ ${#missing[@]} = 0 ] && return
  if ! can_be_root; then
    echo "setup: these packages are missing (the build needs them), and this user may not install them:" >&2
    echo "  ${missing[*]//|*/}" >&2
    echo "Ask an administrator to run: apt-get install --no-install-recommends ${missing[*]//|*/}" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  echo "setup: installing ${missing[*]//|*/}"
  as_root apt-get update -qq
  local chosen=()
  for name in "${missing[@]}"; do chosen+=("$(choose "$name")"); done
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${chosen[@]}" >/dev/null
}

if [ "${HOSTLESS_SETUP:-}" = skip ]; then
  echo "setup: packages not looked at (HOSTLESS_SETUP=skip)"
elif command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  install_missing
  install_optional
else
  echo "setup: no apt on this machine, so its packages are not looked at; if the build misses something, it is one of:"
  echo "  ${wanted[*]}"
fi
tools/fetch_headers.sh
case "$level" in
  test | pictures | ci)
    tools/python_environment.sh
    if [ "${TORCH:-}" = on ]; then tools/torch_for_tests.py; fi
    ;;
esac

#!/bin/sh
# Puts the C++ headers of fast_matrix_market (and the fast_float header it bundles) where the build looks for them.
# Debian has no package of it; its Python source distribution holds the headers.
#
#   tools/fetch_headers.sh [FOLDER] [TARBALL]
#
# FOLDER   where the headers go; default .headers in the repository root
# TARBALL  a fast_matrix_market-1.7.6.tar.gz already on this machine (also: the variable HOSTLESS_FMM_TARBALL)
set -eu

version=1.7.6
sha256=38f36d28e780316685b939c439618f06579199d736ebdcda9b9dea8e605c102e
name=fast_matrix_market-$version

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/.headers}
tarball=${2:-${HOSTLESS_FMM_TARBALL:-}}
mark=$folder/.$name.$sha256

fail() {
  echo "fetch_headers.sh: $*" >&2
  exit 1
}

[ -f "$mark" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

download() {
  command -v python3 >/dev/null 2>&1 ||
    fail "python3 is missing (it downloads fast_matrix_market). Install python3-pip, or give the tarball as second argument."
  python=python3
  if ! python3 -m pip --version >/dev/null 2>&1; then
    python3 -m venv "$work/venv" >"$work/log" 2>&1 ||
      fail "python3 has neither pip nor venv (one of them must download fast_matrix_market). Install python3-pip or python3-venv."
    python=$work/venv/bin/python3
  fi
  # pip compares the hash before it unpacks the archive. Then it wants to know the package's name and version from the
  # build backend that the archive asks for; without isolation it fetches none, and this one answers.
  mkdir -p "$work/answers/scikit_build_core" "$work/archive"
  : >"$work/answers/scikit_build_core/__init__.py"
  cat >"$work/answers/scikit_build_core/build.py" <<END
import os


def prepare_metadata_for_build_wheel(folder, settings=None):
    name = "$name.dist-info"
    os.mkdir(os.path.join(folder, name))
    with open(os.path.join(folder, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: fast_matrix_market\\nVersion: $version\\n")
    return name
END
  echo "fast_matrix_market==$version --hash=sha256:$sha256" >"$work/wanted.txt"
  PYTHONPATH=$work/answers "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --no-binary fast_matrix_market --require-hashes --requirement "$work/wanted.txt" --dest "$work/archive" >"$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    if grep -q "Expected sha256" "$work/log"; then
      fail "$name.tar.gz has another sha256 than $sha256 (it is not the release that was reviewed). Nothing of it was used; give the right tarball as second argument."
    fi
    fail "pip could not download $name (no network, or no package index is reachable). Give the tarball as second argument, or in HOSTLESS_FMM_TARBALL."
  }
  tarball=$work/archive/$name.tar.gz
}

[ -n "$tarball" ] || download
[ -f "$tarball" ] || fail "$tarball is not a file (the headers are taken from it). Check the name."
echo "$sha256  $tarball" | sha256sum --check --status ||
  fail "$tarball has another sha256 than $sha256 (it is not the release that was reviewed). Remove it and fetch again."

tar -xzf "$tarball" -C "$work"
source=$work/$name
mkdir -p "$folder"
rm -rf "$folder/fast_matrix_market" "$folder/fast_float"
cp -R "$source/fast_matrix_market/include/fast_matrix_market" "$folder/"
cp -R "$source/fast_matrix_market/dependencies/fast_float/include/fast_float" "$folder/"
cp "$source/LICENSE.txt" "$folder/fast_matrix_market/LICENSE.txt"
cp "$source/fast_matrix_market/dependencies/fast_float/LICENSE-MIT" "$folder/fast_float/LICENSE-MIT"
: >"$mark"
echo "headers of $name are in $folder"

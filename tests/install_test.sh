#!/usr/bin/env bash
# Installs into an empty folder and builds a project there that knows nothing but that folder, by
# CMake and by pkg-config.
#   install_test.sh BUILD_FOLDER CXX SANITIZERS
set -eu -o pipefail
build=$1 cxx=$2 sanitize=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
flags=${sanitize:+-fsanitize=$sanitize}
unset CMAKE_PREFIX_PATH PKG_CONFIG_PATH

expect_right() {
  local said
  said=$("$@")
  [ "$said" = "worker 0 of 1 is right" ] || { echo "$*: said \"$said\"" >&2; exit 1; }
}

cmake --install "$build" --prefix "$prefix" >/dev/null
mv "$prefix" "$work/moved"  # nothing may depend on where it was installed first
prefix=$work/moved
for file in bin/syncopate include/syncopate/syncopate.h lib/libsyncopate.so lib/pkgconfig/syncopate.pc; do
  [ -e "$prefix/$file" ] || { echo "$file is not installed" >&2; exit 1; }
done
"$prefix/bin/syncopate" --version | grep -q '^syncopate [0-9]'

cmake -S "$here/outside" -B "$work/by-cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="$flags" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/by-cmake"
expect_right "$work/by-cmake/outside"

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
# shellcheck disable=SC2046,SC2086
"$cxx" -std=c++20 $flags "$here/outside/outside_main.cc" -o "$work/by-pkg-config" \
  $(pkg-config --cflags --libs syncopate) -Wl,-rpath,"$prefix/lib"
expect_right "$work/by-pkg-config"
echo "both outside programs are right"

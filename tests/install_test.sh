#!/usr/bin/env bash
# Installs into an empty folder, builds the examples that know nothing but that folder, by CMake and
# by pkg-config, and runs them alone and as several workers.
#   install_test.sh BUILD_FOLDER CXX SANITIZERS TRAINING(ON or OFF)
set -eu -o pipefail
build=$1 cxx=$2 sanitize=${3:-} training=${4:-OFF}
example=$(cd "$(dirname "$0")/../examples" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
flags=${sanitize:+-fsanitize=$sanitize}
unset CMAKE_PREFIX_PATH PKG_CONFIG_PATH
export LC_ALL=C

# expect TEXT COMMAND...: the command's output, its lines sorted.
expect() {
  local expected=$1 said
  shift
  said=$("$@" | sort)
  [ "$said" = "$expected" ] || { printf '%s: said "%s"\n' "$*" "$said" >&2; exit 1; }
}

cmake --install "$build" --prefix "$prefix" >/dev/null
mv "$prefix" "$work/moved"  # nothing may depend on where it was installed first
prefix=$work/moved
for file in bin/syncopate include/syncopate/syncopate.h lib/libsyncopate.so lib/pkgconfig/syncopate.pc; do
  [ -e "$prefix/$file" ] || { echo "$file is not installed" >&2; exit 1; }
done
"$prefix/bin/syncopate" --version | grep -q '^syncopate [0-9]'

cmake -S "$example" -B "$work/by-cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="$flags" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/by-cmake"
expect "rank 0 of 1: the mean is 0" "$work/by-cmake/mean"

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
# shellcheck disable=SC2046,SC2086
"$cxx" -std=c++20 $flags "$example/mean.cc" -o "$work/by-pkg-config" \
  $(pkg-config --cflags --libs syncopate) -Wl,-rpath,"$prefix/lib"
expect "rank 0 of 1: the mean is 0" "$work/by-pkg-config"

# Several times, since starting and ending together is where workers meet most.
for _ in 1 2 3 4 5; do
  expect "[0] rank 0 of 4: the mean is 1.5
[1] rank 1 of 4: the mean is 1.5
[2] rank 2 of 4: the mean is 1.5
[3] rank 3 of 4: the mean is 1.5" "$prefix/bin/syncopate" launch -n 4 --timeout 1m -- "$work/by-cmake/mean"
done
if [ "$training" = OFF ]; then
  [ ! -e "$prefix/include/syncopate/torch.h" ] || { echo "torch.h without its library" >&2; exit 1; }
  echo "both programs are right"
  exit 0
fi

# A LibTorch loop of an outside project: all its workers learn, and end with the same parameters.
for file in bin/syncopate-train include/syncopate/torch.h lib/libsyncopate_torch.so; do
  [ -e "$prefix/$file" ] || { echo "$file is not installed" >&2; exit 1; }
done
said=$("$prefix/bin/syncopate" launch -n 2 --no-tag --timeout 1m -- "$work/by-cmake/torch_training")
echo "$said"
[ "$(grep -c 'of 2: the loss fell, the parameters add up to' <<<"$said")" = 2 ]
[ "$(grep -o 'add up to.*' <<<"$said" | sort -u | wc -l)" = 1 ]
"$prefix/bin/syncopate" train --model mlp --data synthetic --synthetic-samples 64 --evaluate-samples 8 \
  --batch 8 --iterations 2 -n 2 --json | grep -q '"iterations":2'
echo "all programs are right"

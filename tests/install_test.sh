#!/usr/bin/env bash
# Builds the examples from the build folder, as after ./quickstart. Then installs into an empty folder, builds the
# examples that know nothing but that folder, by CMake and by pkg-config, and runs them alone and as several workers.
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

# From the build folder: the examples find it beside them, as build/release. They say so if there is none.
mkdir -p "$work/tree/build"
cp -r "$example" "$work/tree/examples"
configure=(cmake -S "$work/tree/examples" -B "$work/tree/build/examples" -G Ninja
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="$flags")
if said=$("${configure[@]}" -B "$work/none" -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF 2>&1); then
  echo "the examples were configured without a package: $said" >&2
  exit 1
fi
grep -q 'Run ./quickstart, or install it' <<<"$said" || { echo "$said" >&2; exit 1; }
ln -s "$(realpath "$build")" "$work/tree/build/release"
said=$("${configure[@]}" 2>&1) || { echo "$said" >&2; exit 1; }
grep -q "Syncopate 0.1.*: $work/tree/build/release" <<<"$said" || { echo "$said" >&2; exit 1; }
if [ "$training" = ON ] && grep -q 'torch_training is left out' <<<"$said"; then echo "$said" >&2; exit 1; fi
cmake --build "$work/tree/build/examples" --target mean
expect "rank 0 of 1: the mean is 0" "$work/tree/build/examples/mean"

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
expect "[0] rank 0 of 3: the means are 1 and 2, the series is 1.645
[1] rank 1 of 3: the means are 1 and 2, the series is 1.645
[2] rank 2 of 3: the means are 1 and 2, the series is 1.645" \
  "$prefix/bin/syncopate" launch -n 3 --timeout 1m -- "$work/by-cmake/async_handle"

expect "[0] rank 0 of 4: sum of my half 2, weighted mean 2, at the ends 3
[1] rank 1 of 4: sum of my half 4, weighted mean 2, at the ends 1
[2] rank 2 of 4: sum of my half 2, weighted mean 2, at the ends 2
[3] rank 3 of 4: sum of my half 4, weighted mean 2, at the ends 3" \
  "$prefix/bin/syncopate" launch -n 4 --timeout 1m -- "$work/by-cmake/groups"
# The last rank kills itself, the others go on, and the job has ended well.
expect "[0] rank 0: done with 3 of 4 workers, the mean is 1
[0] rank 0: rank 3 is lost in step 2
[1] rank 1: done with 3 of 4 workers, the mean is 1
[1] rank 1: rank 3 is lost in step 2
[2] rank 2: done with 3 of 4 workers, the mean is 1
[2] rank 2: rank 3 is lost in step 2" \
  "$prefix/bin/syncopate" launch -n 4 --on-failure continue --timeout 1m -- "$work/by-cmake/survive"

# Algorithms from outside: a planner, rules and a program.
expect "[0] rank 0 of 3, a program of our own: the sum is 3
[0] rank 0 of 3, a ring by name: the sum is 3
[0] rank 0 of 3, the line by a rule: the sum is 3
[1] rank 1 of 3, a program of our own: the sum is 3
[1] rank 1 of 3, a ring by name: the sum is 3
[1] rank 1 of 3, the line by a rule: the sum is 3
[2] rank 2 of 3, a program of our own: the sum is 3
[2] rank 2 of 3, a ring by name: the sum is 3
[2] rank 2 of 3, the line by a rule: the sum is 3" \
  "$prefix/bin/syncopate" launch -n 3 --timeout 1m -- "$work/by-cmake/own_program"
# Every worker of a program that has no planner "line" refuses the rule, and says what there is.
if said=$(SYNCOPATE_ALGORITHM=allreduce:line "$work/by-cmake/mean" 2>&1); then
  echo "mean took a rule that names no algorithm: $said" >&2
  exit 1
fi
grep -q 'SYNCOPATE_ALGORITHM: rule 1, "allreduce:line": "line" is not an algorithm for all-reduce; choose' <<<"$said"
# Workers that have registered differently: one error, with both.
cat >"$work/mixed" <<END
#!/bin/sh
[ "\$SYNCOPATE_RANK" = 1 ] && exec "$work/by-cmake/own_program"
exec "$work/by-cmake/mean"
END
chmod +x "$work/mixed"
if said=$("$prefix/bin/syncopate" launch -n 2 --timeout 1m -- "$work/mixed" 2>&1); then
  echo "workers that differ were started: $said" >&2
  exit 1
fi
grep -q 'worker 0 has nothing special, worker 1 has the rules .*line and planners of its own all-reduce:line' <<<"$said" ||
  { echo "$said" >&2; exit 1; }
if [ "$training" = OFF ]; then
  [ ! -e "$prefix/include/syncopate/torch.h" ] || { echo "torch.h without its library" >&2; exit 1; }
  echo "all programs are right"
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

#!/usr/bin/env bash
# A new algorithm is one new file and one new test: no source of the rooms below, outside of an
# algorithm's own files and tests, contains its name, neither as a string nor in an identifier.
#   algorithm_names_test.sh TOP_FOLDER
#
# The algorithms are the files of src/plan/algorithms. Own files of some_name are those whose name is
# some_name or begins with some_name_, and the folder src/plan/some_name. An algorithm may be built from
# parts of another, so identifiers are free in that folder; names as strings are not. Comments are free,
# and so are tests: whoever tests a choice names it.
set -eu -o pipefail
rooms="plan worker"
folder=src/plan/algorithms

# Prints one line for each place in the tree $1 that knows an algorithm by its name.
known_names() {
  local top=$1 code file path name camel own text
  code=$(mktemp -d)  # without comments: in "all", and in "names" without strings as well
  (cd "$top" && for room in $rooms; do find "src/$room" -name '*.h' -o -name '*.cc'; done) |
    grep -vE '_(test|testing|benchmark)\.(cc|h)$' | while read -r path; do
      mkdir -p "$code/all/$(dirname "$path")" "$code/names/$(dirname "$path")"
      sed -E 's@^[[:space:]]*//.*@@; s@[[:space:]]//[[:space:]].*@@' "$top/$path" >"$code/all/$path"
      sed -E '/#include/!s@"[^"]*"@@g' "$code/all/$path" >"$code/names/$path"
    done
  for file in "$top/$folder"/*.cc; do
    name=$(basename "$file" .cc)
    case $name in *_test | *_benchmark) continue ;; esac
    camel=$(sed -E 's/(^|_)([a-z0-9])/\U\2/g' <<<"$name")
    own="(/$name|/${name}_[a-z0-9_]*)\.(cc|h):|^src/plan/$name/"
    # As a string of its own; names of several words anywhere in a string.
    text="\"${name//_/-}\""
    case $name in *_*) text="\"([^\"]*[^\"a-z0-9-])?${name//_/-}([^\"a-z0-9-][^\"]*)?\"" ;; esac
    (cd "$code/all" &&
      { grep -rnP "$text" src | grep -vE "$own" | sed "s/^/the string ${name//_/-}: /" || true; })
    (cd "$code/names" && {
      grep -rnP "(?<![A-Za-z0-9_])((k|Plan|Register|Try|Make|Is|Has|With)?$camel([A-Z0-9][A-Za-z0-9_]*)?|${name}(_[A-Za-z0-9_]*)?)(?![A-Za-z0-9_-])" src |
        grep -vE "$own" | grep -v "^$folder/" | sed "s/^/an identifier of ${name//_/-}: /" || true
    })
  done
  rm -rf "$code"
}

# The check itself must be able to fail: a tree with every fault has as many complaints.
proof=$(mktemp -d)
trap 'rm -rf "$proof"' EXIT
mkdir -p "$proof/$folder" "$proof/src/plan/collective" "$proof/src/plan/star" "$proof/src/worker"
printf 'Add("star"); Add("two-step");  // star\n' >"$proof/$folder/star.cc"   # fault 1: another's name
printf 'Add("two-step"); Star star;\n' >"$proof/$folder/two_step.cc"          # may use another's parts
printf 'if (name == "star") return;\n' >"$proof/$folder/star_test.cc"
printf 'int star_size; int TryStar();\n' >"$proof/src/plan/star/part.h"
printf 'const auto name = "a two-step, say";\n' >"$proof/src/plan/collective/a.cc"  # fault 2
printf 'constexpr int kStar = 1;\n' >"$proof/src/plan/collective/b.h"               # fault 3
printf 'Selection::star_plan;\n' >"$proof/src/plan/collective/c.cc"                 # fault 4
printf 'x = TwoStepSeconds();\n' >"$proof/src/plan/collective/d.cc"                 # fault 5
printf '  if (name == "star") return;\n' >"$proof/src/worker/e.cc"                     # fault 6
printf '#include "plan/star/part.h"\n' >"$proof/src/worker/f.cc"                       # fault 7
printf 'EXPECT_EQ(name, "star");\n' >"$proof/src/worker/e_test.cc"
printf '// "star" is good\nint started;  // by star_plan\n"follow the stars, step two"\n' >"$proof/src/worker/fine.cc"
found=$(known_names "$proof")
if [ "$(printf '%s\n' "$found" | wc -l)" != 7 ]; then
  printf 'the check should find 7 faults in a bad tree, but says:\n%s\n' "$found" >&2
  exit 1
fi

found=$(known_names "$1")
if [ -n "$found" ]; then
  printf '%s\n' "$found" >&2
  exit 1
fi
echo "nobody knows an algorithm by its name"

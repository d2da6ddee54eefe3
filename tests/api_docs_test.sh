#!/usr/bin/env bash
# Makes the reference of the C++ interface as a user does, and sees that a public member without a comment is an
# error.
#   api_docs_test.sh BUILD_FOLDER TOP_FOLDER
set -eu -o pipefail
build=$1 top=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --build "$build" --target docs >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
grep -q "docs: open .*/docs/html/index.html" "$work/log"
said=$(cat "$build"/docs/html/*.html)
for word in "AllReduceAmong" "GetSuspect" "ParseReduceOp" "RegisterPlanner" "AverageBuffers" "kWeightedAverage" \
  "Waits for the end of the operation" "as many as were asked for"; do
  grep -qF "$word" <<<"$said" || { echo "the reference does not have \"$word\"" >&2; exit 1; }
done

# The same with a header whose second function has no comment.
mkdir "$work/include"
printf '%s\n' '// A header.' 'namespace syncopate {' '// Documented.' 'void Good();' 'void Bare();' '}' >"$work/include/bad.h"
sed -e "s|^INPUT .*|INPUT = $work/include|" -e '/^USE_MDFILE/d' -e "s|^OUTPUT_DIRECTORY.*|OUTPUT_DIRECTORY = $work|" \
  "$build/docs/Doxyfile" >"$work/Doxyfile"
if doxygen "$work/Doxyfile" >"$work/log" 2>&1; then
  echo "a public function without a comment is not an error" >&2
  exit 1
fi
grep -q 'Member Bare() (function) of namespace syncopate is not documented' "$work/log" || { cat "$work/log" >&2; exit 1; }
if grep -q Good "$work/log"; then cat "$work/log" >&2; exit 1; fi
echo "the reference is whole"

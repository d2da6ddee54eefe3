#!/usr/bin/env bash
# ./quickstart and ./check explain themselves and refuse what they do not know, before they do anything.
#   commands_test.sh TOP_FOLDER
set -u
cd "$1" || exit 1
failed=0

# expect CODE STREAM COMMAND...: the exit code, and something on just that stream.
expect() {
  local code=$1 stream=$2 out err got
  shift 2
  err=$("$@" 2>&1 >/dev/null </dev/null) && got=0 || got=$?
  out=$("$@" 2>/dev/null </dev/null)
  local said=$out silent=$err
  [ "$stream" = err ] && said=$err silent=$out
  if [ "$got" != "$code" ] || [ -z "$said" ] || [ -n "$silent" ]; then
    printf '%s: exit code %s, out "%s", err "%s"\n' "$*" "$got" "$out" "$err" >&2
    failed=1
  fi
}

for command in ./quickstart ./check; do
  expect 0 out "$command" --help
  expect 2 err "$command" --no-such-option
  expect 2 err "$command" something
done
expect 2 err ./check --asan --tsan
[ "$(grep -c './check' .ci/run)" = 1 ] || { echo ".ci/run does not call ./check" >&2; failed=1; }
exit $failed

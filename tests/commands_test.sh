#!/usr/bin/env bash
# ./quickstart, ./check and syncopate explain themselves and refuse what they do not know, before they
# do anything.
#   commands_test.sh TOP_FOLDER SYNCOPATE
set -u
cd "$1" || exit 1
syncopate=$2
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

# refuses MESSAGE ARGUMENT...: `syncopate ARGUMENT...` says just this, in one line, and how to get help.
refuses() {
  local message="syncopate$1" out err got
  shift
  err=$("$syncopate" "$@" 2>&1 >/dev/null </dev/null) && got=0 || got=$?
  out=$("$syncopate" "$@" 2>/dev/null </dev/null)
  case $err in
    "$message"*" --help shows what is possible") ;;
    *) got="$got, not what was expected" ;;
  esac
  if [ "$got" != 2 ] || [ -n "$out" ] || [ "$(printf '%s\n' "$err" | wc -l)" != 1 ]; then
    printf 'syncopate %s:\n  exit code %s, out "%s"\n  said:     %s\n  expected: %s\n' \
      "$*" "$got" "$out" "$err" "$message" >&2
    failed=1
  fi
}

refuses ': there is no command "foo"; ' foo
refuses ': there is no command "trian"; did you mean syncopate train? ' trian --model cnn
refuses ': there is no command "up"; did you mean syncopate lab up? ' up
refuses ' lab: there is no command "upp"; did you mean syncopate lab up? ' lab upp
refuses ' lab: which command? up, down, list, ' lab
refuses ' reproduce: which command? forest, asc-wfbp; ' reproduce
refuses ' train: there is no option --modle; did you mean --model? ' train --modle cnn
refuses ' replay: there is no option --modle; did you mean --model? ' replay --modle resnet-152
refuses ' replay: --model is missing; its help says: ' replay
refuses ' lab up: the argument "file" is missing; its help says: TOML file' lab up
refuses ' train: "mnist" is not expected: the command takes options only; ' train mnist
refuses ' train: -n: "0" is not a whole number of at least 1; ' train -n 0
refuses ' train: --ranks: "two" is not a whole number of at least 1; ' train --ranks two
refuses ' train: --batch: "1.5" is not a whole number; its help says: ' train --batch 1.5
refuses ' train: --seed: "x" is not a whole number of at least 0; ' train --seed x
refuses ' train: --seed: "-1" is not a whole number of at least 0' train --seed -1
refuses ' bench train: --seed: "-1" is not a whole number of at least 0' bench train --seed -1
refuses ' probe: --seed: "-1" is not a whole number of at least 0' probe --seed -1
refuses ' train: --lr: "fast" is not a number; ' train --lr fast
refuses ' train: --model: its value is missing; its help says: mlp, cnn, ' train --model
refuses ' train: --model: its value is missing: --data, which follows, is an option; ' train --model --data mnist
refuses ' train: --json takes no value, but "x" was given; ' train --json=x
refuses ' train: --model was given 2 times, as "cnn" and "mlp"; give it once; ' train --model cnn --model mlp
refuses ' train: -H and --hostfile cannot be given together; leave one out; ' train -H a,b --hostfile hosts
refuses ' plan: --cores: "0" is not a whole number from 1 to 1048576; ' plan --cores 0
refuses ' plan: --root: "-1" is not a whole number of at least 0; ' plan --root -1
refuses ' launch: there is no option --no-tags; did you mean --no-tag? ' launch -n 2 --no-tags -- true
refuses ' lab exec: there is no option --labb; did you mean --lab? ' lab exec --labb x h0 -- true

# Every command has help, and refuses an option that it does not have. Those of `lab` that change a lab look at
# their words later, and need root for that.
for command in launch bench 'bench train' plan doctor lab 'lab up' 'lab down' 'lab list' 'lab topology' \
  'lab status' 'lab check' 'lab exec' 'lab run' 'lab undo' 'lab scenario' probe reproduce 'reproduce forest' \
  'reproduce asc-wfbp' report train replay simulate program 'program check' 'program run'; do
  # shellcheck disable=SC2086  # the words of a command
  expect 0 out "$syncopate" $command --help
  # shellcheck disable=SC2086
  refuses " $command: there is no option --no-such-option; " $command --no-such-option
done

# Checks of values come from tools/command_line.h: the messages of the library's are not for users.
if grep -rnE 'CLI::(Range|Bound|PositiveNumber|NonNegativeNumber|Number|IsMember|Existing[A-Z])' src; then
  echo "use the checks of tools/command_line.h instead" >&2
  failed=1
fi
exit $failed

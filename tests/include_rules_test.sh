#!/usr/bin/env bash
# Holds src/ and include/ to tests/include_rules.txt: values flow one way, stages do not know each
# other.
#   include_rules_test.sh TOP_FOLDER
set -eu -o pipefail

# Prints one line for each broken rule in the tree $1, by the rules in file $2.
broken_rules() {
  (cd "$1" && grep -rnE '^[[:space:]]*#[[:space:]]*include' src include --include='*.h' --include='*.cc') |
    awk -v rules="$2" '
      BEGIN {
        while ((getline line < rules) > 0) {
          if (line ~ /^#/ || line !~ /:/) continue
          colon = index(line, ":")
          who = substr(line, 1, colon - 1)
          count = split(substr(line, colon + 1), rooms, " ")
          if (who == "pure") { for (i = 1; i <= count; i++) pure[rooms[i]] = 1; continue }
          known[who] = 1
          for (i = 1; i <= count; i++) may[who, rooms[i]] = 1
        }
      }
      {
        split($0, part, ":")
        file = part[1]; place = part[1] ":" part[2]
        name = $0
        sub(/^[^"<]*["<]/, "", name); sub(/[">].*/, "", name)
        quoted = $0 ~ /include[[:space:]]*"/
        split(file, folder, "/"); split(name, target, "/")
        if (folder[1] == "include") {
          if (quoted && target[1] != "syncopate" && target[1] != "absl")
            print place ": a public header includes \"" name "\"; only syncopate/ and absl/ may be seen from outside"
          next
        }
        room = folder[2]
        if (!(room in known)) {
          if (!(room in told)) print file ": room " room " has no line in tests/include_rules.txt"
          told[room] = 1
          next
        }
        if ((room in pure) && file !~ /(_(test|benchmark)\.cc|_testing\.h)$/ &&
            name ~ /^(thread|mutex|atomic|condition_variable|future|fstream|filesystem|unistd\.h|fcntl\.h|poll\.h|pthread\.h|sys\/.*|linux\/.*|absl\/synchronization\/.*)$/)
          print place ": room " room " has neither threads nor files, but includes " name
        if (!quoted) next
        if (name !~ /\//) {
          print place ": write \"" name "\" with its path from src/"
          next
        }
        if (target[1] == room || target[1] == "syncopate") next
        if (!(target[1] in known)) next  # another library
        in_test = file ~ /(_(test|benchmark)\.cc|_testing\.h)$/
        if (!((room, target[1]) in may) && !(in_test && ((room " tests", target[1]) in may)))
          print place ": room " room " must not include \"" name "\""
      }'
}

# The check itself must be able to fail: a tree with every fault has as many complaints.
proof=$(mktemp -d)
trap 'rm -rf "$proof"' EXIT
mkdir -p "$proof/src/model" "$proof/src/plan" "$proof/src/attic" "$proof/include/syncopate"
printf '#include "plan/ring.h"\n#include "base/ok.h"\n#include "near.h"\n' >"$proof/src/model/bad.cc"
printf '#include <thread>\n#include "transport/shm.h"\n#include <vector>\n' >"$proof/src/plan/bad.h"
printf '#include "base/ok.h"\n' >"$proof/src/attic/bad.h"
printf '#include "model/program.h"\n#include "absl/status/status.h"\n' >"$proof/include/syncopate/bad.h"
found=$(broken_rules "$proof" "$1/tests/include_rules.txt")
if [ "$(printf '%s\n' "$found" | wc -l)" != 6 ]; then
  printf 'the check should find 6 faults in a bad tree, but says:\n%s\n' "$found" >&2
  exit 1
fi

found=$(broken_rules "$1" "$1/tests/include_rules.txt")
if [ -n "$found" ]; then
  printf '%s\n' "$found" >&2
  exit 1
fi
echo "all includes keep the rules"

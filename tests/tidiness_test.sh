#!/usr/bin/env bash
# Holds the repository's files to what anyone would expect of them.
#   tidiness_test.sh format|files TOP_FOLDER
set -eu -o pipefail
cd "$2"

# The files of the repository, also where there is no git history (an unpacked archive).
repository_files() {
  git -c safe.directory='*' ls-files --cached --others --exclude-standard -z -- "$@" 2>/dev/null && return
  [ $# -gt 0 ] || set -- '*'
  for pattern in "$@"; do
    find . -path ./build -prune -o -path ./.git -prune -o -type f -name "$pattern" -print0
  done
}

case $1 in
  format)
    repository_files '*.cc' '*.h' | xargs -0 -r -n 20 clang-format --dry-run -Werror ||
      { echo "run clang-format -i on the files above" >&2; exit 1; }
    ;;
  files)
    bad=$(repository_files | xargs -0 -r ls -l 2>/dev/null | awk '$5 > 1048576 { print $NF ": " $5 " bytes; keep files below 1 MiB" }')
    # Folders of one person's machine; the pattern is written so that it does not find itself.
    bad+=$(repository_files | xargs -0 -r grep -nIE '(^|[^[:alnum:]_./-])/(home|roo[t]|wor[k]|Users)/[[:alnum:]]' 2>/dev/null |
      sed 's/^/a path of one machine: /' || true)
    # Prose of pages wraps where people can read it; tables, code and single long words are as wide as they are.
    bad+=$(repository_files '*.md' | xargs -0 -r perl -CSD -lne '
      $code = !$code if /^ *```/;
      print "$ARGV:$.: ", length, " characters; wrap lines of text at 120"
        if !$code && length > 120 && !/^ *\|/ && !/^    / && / .* /;
      if (eof) { close ARGV; $code = 0 }')
    lines=$(wc -l <README.md)
    [ "$lines" -le 80 ] || bad+="README.md: $lines lines; it fits on one screen (80) and links to the rest in docs/"$'\n'
    bad+=$(find docs/pictures -type f -size +100k -printf '%p: %s bytes; keep pictures of pages below 100 KiB\n')
    if [ -n "$bad" ]; then
      printf '%s\n' "$bad" >&2
      exit 1
    fi
    ;;
  *)
    echo "tidiness_test.sh format|files TOP_FOLDER" >&2
    exit 2
    ;;
esac

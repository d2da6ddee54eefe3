#!/usr/bin/env bash
# Holds the player of the docs to its own promise: a page that says what happens passes, and every way in
# which a page can be wrong is found, with its place.
#   play_docs_test.sh TOP_FOLDER
set -eu -o pipefail
player=$1/tests/play_docs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/src"
printf '#!/bin/sh\necho "this is syncopate"\n' >"$work/build/src/syncopate"
chmod +x "$work/build/src/syncopate"

# play EXIT_CODE TEXT: plays the page on the standard input; its exit code and what must be in its output.
play() {
  local wanted=$1 text=$2 code=0 said
  cat >"$work/page.md"
  said=$("$player" --build "$work/build" "${options[@]}" "$work/page.md" 2>&1) || code=$?
  if [ "$code" != "$wanted" ] || ! grep -qF -- "$text" <<<"$said"; then
    printf 'the page\n%s\nended with %s, not with %s and "%s":\n%s\n' "$(cat "$work/page.md")" "$code" "$wanted" "$text" "$said" >&2
    exit 1
  fi
}
options=()

# What passes: other numbers, units, digests and widths; lines that are left out; files; excerpts; exit codes.
play 0 "9 played, 0 failed" <<'END'
<!-- play -->
    $ syncopate
    this is syncopate
    $ echo "took   12.5 ms, digest 0123456789abcdef0123456789abcdef, 1,200 rows"
    took 3 us, digest ffffffffffffffffffffffffffffffff, 7 rows
    $ printf 'a\nb\nc\nd\n'
    a
    ...
    d
    $ exit 7
    $ echo $?
    7

<!-- file: numbers.txt -->
```
two
one
```
<!-- play: unordered, exact -->

```console
$ cat numbers.txt
one
two
```

<!-- play: exit 3 -->
    cat numbers.txt
    exit 3   # a comment, and a command \
        over two lines

<!-- from: tests/play_docs_test.sh -->
    options=()
    ...
    echo "the player finds what it should"

    $ a block without a mark is not played; exit 1
END

# What fails, each with its place.
play 1 "page.md:2: exit 1" <<'END'
<!-- play -->
    $ exit 1
END
play 1 "ended with exit code 0, not 2" <<'END'
<!-- play: exit 2 -->
    true
END
play 1 "page.md:3: echo other words" <<'END'
<!-- play -->
    $ true
    $ echo other words
    these words
END
play 1 "does not say, in its place: c" <<'END'
<!-- play -->
    $ printf 'a\nb\n'
    a
    ...
    c
END
play 1 'no more lines, but it says "b"' <<'END'
<!-- play -->
    $ printf 'a\nb\n'
    a
END
play 1 "does not say, in its place: 2 rows" <<'END'
<!-- play: exact -->
    $ echo 1 rows
    2 rows
END
play 1 "does not say, in its place: 1" <<'END'
<!-- play -->
    $ exit 7
    $ echo $?
    1
END
play 1 "the file does not say, in its place: this is nowhere" <<'END'
<!-- from: tests/install_test.sh -->
    set -eu -o pipefail
    this is nowhere
END
play 1 "nothing was played" <<'END'
    $ true
END
play 1 "nothing was played" <<'END'
<!-- play: slow -->
    $ true
END
play 1 "page.md:1: the link #no-such-heading leads nowhere" <<'END'
[nowhere](#no-such-heading), [somewhere](#a-heading-with-code)
[elsewhere](https://example.com/#nothing)
## A heading, with `code`
END
play 1 "page.md:1: the link gone.md leads nowhere" <<'END'
[gone](gone.md)
END
# A failure does not hide the next one.
play 1 "1 played, 2 failed" <<'END'
<!-- play -->
    $ exit 1

<!-- play -->
    $ exit 1

<!-- play -->
    $ true
END
options=(--all)
play 1 "page.md:2: exit 1" <<'END'
<!-- play: slow -->
    $ exit 1
END
options=(--seconds 1)
play 1 "it took too long and was ended" <<'END'
<!-- play -->
    $ sleep 1000
END
options=()

# Marks that cannot be understood.
play 2 'page.md:1: a mark does not know "quick"' <<'END'
<!-- play: quick -->
    $ true
END
play 2 "page.md:1: no block of code follows the mark" <<'END'
<!-- play -->
A paragraph.
END
play 2 "page.md:1: a mark is one comment on a line of its own" <<'END'
<!-- play --> and more
    $ true
END
echo "the player finds what it should"

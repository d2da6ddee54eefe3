# Sourced by ./quickstart and ./check: installs what is missing, configures and builds.
# Needs $top, the top folder of the repository.

say() { printf '==> %s\n' "$*"; }

# fail WHAT: one line on standard error, then exit code 1.
fail() {
  printf '%s: failed: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Prints the packages of scripts/packages.txt that are not installed, in one line. What an installed
# package provides counts as installed: some packages of nodejs bring npm, and exclude Debian's.
missing_packages() {
  local wanted installed
  wanted=$(sed -e 's/#.*//' "$top/scripts/packages.txt" | xargs -n 1 | sort -u)
  # shellcheck disable=SC2016
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null |
    sed -n 's/^installed //p' | tr -s ', ' '\n' | sort -u)
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$installed") | xargs
}

# Installs missing Debian packages, as root or by sudo. Does not touch the network if none is missing.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "packages: this is not Debian; install what corresponds to scripts/packages.txt yourself"
    return
  fi
  local missing root=()
  missing=$(missing_packages)
  if [ -z "$missing" ]; then
    say "packages: all installed"
    return
  fi
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      fail "packages are missing and this is neither root nor is there sudo; run as root: apt-get install $missing"
    root=(sudo)
  fi
  say "packages: installing $missing"
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0)
  "${apt[@]}" update </dev/null || fail "apt-get update; is there a network?"
  # shellcheck disable=SC2086
  "${apt[@]}" install -y --no-install-recommends $missing </dev/null ||
    fail "apt-get install $missing; see the lines above"
}

# Older thread sanitizers cannot run with the address randomisation of newer kernels.
without_randomisation() {
  if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi
}

# build PRESET [TARGET...]
build() {
  local preset=$1 runner=() log
  shift
  [[ $preset == tsan* ]] && runner=(without_randomisation)  # building also asks tests for their names
  # The compiler cache needs a folder that can be written.
  if [ -z "${CCACHE_DIR:-}" ] && ! { [ -n "${HOME:-}" ] && mkdir -p "$HOME/.cache/ccache" 2>/dev/null && [ -w "$HOME/.cache/ccache" ]; }; then
    export CCACHE_DIR="$top/.cache/ccache"
  fi
  say "build: preset $preset in build/$preset, $(nproc) jobs"
  log=$(cmake --preset "$preset" 2>&1) || {
    printf "%s\n" "$log" >&2
    fail "cmake --preset $preset; see the lines above"
  }
  "${runner[@]}" cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"} ||
    fail "the build; see the lines above"
}

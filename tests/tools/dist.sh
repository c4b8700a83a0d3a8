#!/bin/bash
# Tests `make dist`: the tarball holds the tree and MIR with its licence, is the same when it is made again, and builds
# without cargo. dist.sh all: the whole of it, and the program runs; else MIR alone, and what make would do.
set -u
cd "$(dirname "$0")/../.." || exit 1
for need in git cargo; do
  command -v "$need" >/dev/null || { echo "skip dist: no $need"; exit 0; }
done
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || { echo "skip dist: no checkout of git"; exit 0; }
d=$PWD/build/check/dist
rm -rf "$d"
mkdir -p "$d/bin"
test() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$d/out" 2>&1; then echo "ok dist/$name"; else echo "not ok dist/$name: $(tail -n 1 "$d/out")"; fi
}
if ! .ci/dist >"$d/path" 2>"$d/out"; then
  echo "not ok dist/made: $(tail -n 1 "$d/out")"
  exit 1
fi
tarball=$(cat "$d/path")
first=$(sha256sum <"$tarball")
same() { .ci/dist >/dev/null && [ "$(sha256sum <"$tarball")" = "$first" ]; }
test same-bytes same
tar -xzf "$tarball" -C "$d" || exit 1
tree=$d/$(basename "$tarball" .tar.gz)
# What git has is there, and nothing else but MIR.
listed() {
  git ls-files | while read -r f; do [ -e "$f" ] && echo "$f"; done | LC_ALL=C sort >"$d/want"
  (cd "$tree" && find . ! -type d | sed 's|^\./||' | grep -v '^jit/mir/source/') | LC_ALL=C sort >"$d/have"
  diff "$d/want" "$d/have"
}
test files listed
licence() {
  grep -q '^MIT License' "$tree/jit/mir/source/LICENSE" &&
    grep -q '^Copyright (C) .*Makarov' "$tree/jit/mir/source/LICENSE"
}
test licence licence
# Cargo is not to be asked.
printf '#!/bin/sh\necho "cargo was called" >&2\nexit 1\n' >"$d/bin/cargo"
chmod +x "$d/bin/cargo"
without() { (cd "$tree" && env -u MAKEFLAGS -u MAKELEVEL PATH="$d/bin:$PATH" CARGO_NET_OFFLINE=true "$@"); }
test mir-builds without jit/mir/build.sh build/mir
[ "${1:-}" = all ] || exit 0
test builds without make -j2
runs() { [ "$("$tree/build/weft" -e 'sum(arange(10))')" = 45 ]; }
test runs runs

#!/bin/sh
# Puts MIR into build/mir: libmir.a, its members in obj/, include/ (MIR's headers, plus weft_mir_abi.h that tells its
# variant).
#   jit/mir/build.sh BUILD_DIR [MIR_PREFIX]
# From MIR_PREFIX when given, else from the source: that beside this file, as a tarball has it (.ci/dist), or that in
# the crate mir-sys, which cargo fetches.
set -eu
out=$1
prefix=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)

if [ -n "$prefix" ]; then
  headers=$prefix/include
  archive=$prefix/lib/libmir.a
else
  if [ -d "$here/source" ]; then
    echo "  MIR from its source (about ten seconds)"
    headers=$here/source
  else
    command -v cargo >/dev/null || { echo "MIR: no cargo; run 'make setup', or give MIR_PREFIX=DIR" >&2; exit 1; }
    echo "  MIR from its crate (about ten seconds)"
    # Puts the source where cargo keeps what it fetches, and tells where that is. Nothing of Rust is built.
    headers=$(cargo metadata --quiet --locked --format-version 1 --manifest-path "$here/Cargo.toml" | tr ',' '\n' |
      sed -n 's|.*"manifest_path":"\([^"]*/mir-sys-[^"]*\)/Cargo.toml".*|\1|p')/mir
  fi
  archive=$out/libmir.a
  # The generator alone: no text reader, no binary files, no interpreter, no logs of the generator. `long double` is 64
  # bits, as in all that includes mir.h. Hidden: its calls of itself go straight.
  flags="-std=gnu11 -w -fPIC -fsigned-char -mlong-double-64 -DNDEBUG -DMIR_NO_IO=1 -DMIR_NO_SCAN=1 -DMIR_NO_INTERP=1
    -DMIR_NO_GEN_DEBUG=1 -O2 -ffunction-sections -fdata-sections -fvisibility=hidden -ffile-prefix-map=$out/new=.
    -ffile-prefix-map=$headers=."
  rm -rf "$out/new" "$archive" "$out/target"
  mkdir "$out/new"
  for f in "$headers/mir.c" "$headers"/mir-gen*.c "$headers"/mir*.h; do
    sed -f "$here/quick.sed" "$f" >"$out/new/${f##*/}"
  done
  # Each of its lines must find what it changes: some belong together.
  for f in mir.c:240 mir-gen.c:345 mir-gen-x86_64.c:216 mir-htab.h:7 mir-bitmap.h:18 mir-varr.h:18; do
    lines=$(diff "$headers/${f%:*}" "$out/new/${f%:*}" | grep -c '^[<>]') || true
    [ "$lines" = "${f#*:}" ] || { echo "MIR: jit/mir/quick.sed does not fit ${f%:*}: $lines lines differ" >&2; exit 1; }
  done
  (cd "$out/new" && for f in mir mir-gen; do ${CC:-gcc} $flags -I. -I"$headers" -c $f.c -o $f.o || exit 1; done)
  (cd "$out/new" && "${AR:-ar}" qcs "$archive" mir.o mir-gen.o)
  rm -rf "$out/new"
fi
for f in "$headers/mir.h" "$headers/mir-gen.h" "$archive"; do
  [ -f "$f" ] || { echo "MIR: $f is not there" >&2; exit 1; }
done

rm -rf "$out/include"
mkdir "$out/include"
for h in "$headers"/mir*.h; do ln -s "$h" "$out/include/"; done
# Upstream's MIR_link takes three arguments, the crate's a fourth for the resolver.
args=3
echo '#include <mir.h>
void probe (MIR_context_t c) { MIR_link (c, 0, 0, 0); }' |
  ${CC:-gcc} -mlong-double-64 -fsyntax-only -I"$headers" -xc - 2>/dev/null && args=4
cat >"$out/include/weft_mir_abi.h" <<EOF
/* Written by jit/mir/build.sh: the variant of MIR at hand. */
#define WEFT_MIR_LINK_ARGS $args
EOF
rm -rf "$out/obj"
mkdir "$out/obj"
cp "$archive" "$out/new.a"
(cd "$out/obj" && "${AR:-ar}" x ../new.a)
mv "$out/new.a" "$out/libmir.a"
# Where code goes and whence memory comes is Weft's to say (jit/scalar/mir_code.c): MIR's own functions for code give
# way, its calls of malloc go to mir_malloc. In the crate's build, whose calls of them are known to go by symbol.
hooks=0
if [ -z "$prefix" ] && command -v "${OBJCOPY:-objcopy}" >/dev/null; then
  hooks=1
  for o in "$out"/obj/*.o; do
    "${OBJCOPY:-objcopy}" --weaken-symbol=_MIR_publish_code --weaken-symbol=_MIR_change_code \
      --weaken-symbol=_MIR_update_code_arr --redefine-sym malloc=mir_malloc --redefine-sym calloc=mir_calloc \
      --redefine-sym realloc=mir_realloc --redefine-sym free=mir_free "$o"
  done
  rm "$out/libmir.a"
  "${AR:-ar}" qcs "$out/libmir.a" "$out"/obj/*.o
fi
echo "#define WEFT_MIR_CODE_HOOKS $hooks" >>"$out/include/weft_mir_abi.h"
# quick.sed makes instructions for the high half of a product: an installed MIR has none.
echo "#define WEFT_MIR_MULHI $([ -z "$prefix" ] && echo 1 || echo 0)" >>"$out/include/weft_mir_abi.h"

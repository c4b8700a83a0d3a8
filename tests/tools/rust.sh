#!/bin/bash
# Tests the Rust crates: their declarations beside weft.h, their tests with the shared library, an example with the
# archive, found by pkg-config where it is installed. No crate comes from anywhere else, and no network is used.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
d=$root/build/check/rust
rm -rf "$d"
mkdir -p "$d"

say() { # say NAME CONDITION-RESULT WHY
  if [ "$2" -eq 0 ]; then echo "ok rust/$1"; else echo "not ok rust/$1: $3"; fi
}
skip() { # every step from here on
  echo "skip rust/crates: $1"
  exit 0
}
command -v cargo >/dev/null || skip "cargo is not installed"
minor=$(cargo --version | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
[ "${minor:-0}" -ge 77 ] || skip "cargo is older than 1.77: $(cargo --version)"

# ---- what weft.h declares
unset WEFT_LAYOUT
if command -v python3 >/dev/null; then
  out=$(python3 rust/weft-sys/generate.py --check 2>&1)
  say declarations-are-those-of-weft.h $? "$out"
  out=$(python3 rust/weft-sys/generate.py --layout >"$d/layout.c" && ${CC:-gcc} -Iapi "$d/layout.c" -o "$d/layout" &&
    "$d/layout" >"$d/layout.txt" 2>&1)
  say layout-of-c $? "$out"
  export WEFT_LAYOUT=$d/layout.txt
else
  echo "skip rust/declarations-are-those-of-weft.h: python3 is not installed"
fi

# ---- the tests of the crates, with the shared library of build/
export CARGO_TARGET_DIR=$d/target RUST_BACKTRACE=0 WEFT_LIB_DIR=$root/build
cd rust || exit 1
LD_LIBRARY_PATH=$root/build cargo test --offline --locked >"$d/test.log" 2>&1
status=$?
# those of the documentation are named by their number, since their lines move
awk '$1 == "test" && $NF ~ /^(ok|FAILED)$/ && / \.\.\. / {
  name = $2 ~ /\.rs$/ ? "documentation-" ++n : $2
  print ($NF == "ok" ? "ok rust/" name : "not ok rust/" name ": build/check/rust/test.log says why")
}' "$d/test.log"
[ "$(grep -c '^test .* ok$' "$d/test.log")" -ge 25 ]
say test-count $? "$(grep -c '^test .* ok$' "$d/test.log") tests ran"
say test-status $status "$(tail -n 3 "$d/test.log" | tr '\n' ' ')"
if cargo clippy --version >/dev/null 2>&1; then
  out=$(cargo clippy --offline --locked --all-targets -- -D warnings 2>&1)
  say no-warnings $? "$(grep -m 1 '^error' <<<"$out")"
fi
if command -v rustfmt >/dev/null; then
  out=$(cargo fmt --check -p weft 2>&1)
  say layout-of-source $? "$(head -n 1 <<<"$out")"
fi

# ---- an example with the archive, as pkg-config finds it; and what is said where there is no library
want='f64[3]: Some([10.0, 20.0, 30.0])
shape at Some((2, 1)): add: shapes (3,) and (2,) do not broadcast: axis -1 is 3 and 2
stopped: interrupted'
make -s -C .. install PREFIX="$d/usr" >"$d/install.log" 2>&1
rm -f "$d"/usr/lib/libweft.so*
out=$(env -u WEFT_LIB_DIR PKG_CONFIG_PATH="$d/usr/lib/pkgconfig" \
  cargo run --quiet --offline --locked --features static --example host 2>"$d/example.log")
[ "$out" = "$want" ]
say example-by-pkg-config $? "$(tail -n 1 "$d/example.log") $out"
out=$(env -u WEFT_LIB_DIR PKG_CONFIG_PATH="$d/none" PKG_CONFIG_LIBDIR="$d/none" \
  cargo build --offline --locked 2>&1)
[ $? -ne 0 ] && grep -q "set WEFT_LIB_DIR to the folder of the library" <<<"$out"
say no-library-by-pkg-config $? "$(tail -n 1 <<<"$out")"
out=$(WEFT_LIB_DIR=$d/none cargo build --offline --locked 2>&1)
[ $? -ne 0 ] && grep -q "weft-sys: WEFT_LIB_DIR has no libweft.so: .*none" <<<"$out"
say no-library-in-folder $? "$(tail -n 1 <<<"$out")"
exit 0

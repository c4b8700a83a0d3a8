#!/bin/bash
# Builds the library with musl as C library, in build/musl, and runs the cases there, interpreted and compiled: that
# finds what depends on glibc. The program `weft` needs a readline for musl and is left out. `make check-all` does so;
# musl.sh TIER… runs other tiers.
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! command -v musl-gcc >/dev/null; then
  echo "skip musl/builds: musl-gcc is not installed (Debian: musl-tools)"
  exit 0
fi
mkdir -p build/check
if ! make --no-print-directory -j2 B=build/musl MIR_DIR=build/musl/mir CC="${MUSL_CC:-musl-gcc}" build/cases/ops.weft \
  build/musl/tests/cases build/musl/tests/libcuda.so >build/check/musl.out 2>&1; then
  echo "not ok musl/builds: $(grep -m 1 -iE 'error|undefined' build/check/musl.out | cut -c 1-200)"
  exit 1
fi
echo "ok musl/builds"
[ $# -eq 0 ] && set -- eager mir
tiers=()
for tier in "$@"; do tiers+=(--tier "$tier"); done
# Libraries that are made for glibc are not loaded: the cases that need them say which one is not there, and four see
# another error than theirs for that. musl's own functions of complex numbers (casin and its kind) are less exact, and
# give other values at infinities and on branch cuts.
build/musl/tests/cases "${tiers[@]}" | awk '
  BEGIN {
    split("memory_refused/linear-algebra regex/too-many-steps trace_rules/...-what-they-refuse-is-an-error-as-ever " \
          "mechanisms_frames/A12-what-nobody-needs-and-may-raise-is-not-left-out-for-the-numbers-that-it-looks-at",
          a, " ")
    for (i in a) why[a[i] ":"] = "needs OpenBLAS or PCRE2 made for musl"
    split("complex/a-complex-element-in-an-array-of-floats-is-an-error " \
          "complex/hyperbolic-functions-of-imaginary-numbers " \
          "complex_special/what-functions-of-complex-numbers-give-at-0,-infinities-and-NaN " \
          "complex_special/functions-of-complex-numbers-agree-with-values-of-two-hundred-bits", b, " ")
    for (i in b) why[b[i] ":"] = "the functions of complex numbers are those of musl"
  }
  /^not ok / && /is not installed|which is not there/ { print "skip musl:" $3 " a library made for musl"; next }
  /^not ok / && ($3 in why) { print "skip musl:" $3 " " why[$3]; next }
  /^not ok / { sub(/^not ok /, "not ok musl:") }
  /^(ok|skip) / { sub(/ /, " musl:") }
  { print }'

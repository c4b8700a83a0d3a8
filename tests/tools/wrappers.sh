#!/bin/bash
# Each function of weft.h is in each wrapper (C++, Rust, Python), or tests/tools/wrappers.txt says why it is left out.
#   wrappers.sh [HEADER]     another weft.h, for the test of this test
set -u
cd "$(dirname "$0")/../.." || exit 1
header=${1:-api/weft.h}

declared() { sed -n 's/^WEFT_API [^(;]*\<\(weft_[a-z0-9_]*\)(.*/\1/p' "$1" | sort -u; }
left_out() { # WRAPPER: its functions in wrappers.txt
  awk -F ' : ' -v w="$1" '!/^#/ && NF == 3 && (" " $1 " ") ~ (" " w " ") { gsub(/ /, "\n", $2); print $2 }' \
    tests/tools/wrappers.txt | sort
}
files_of() {
  case $1 in
    cxx) echo api/weft.hpp ;;
    rust) echo rust/weft/src/*.rs ;;
    python) echo python/weft/*.py ;;
  esac
}
named() { # WRAPPER: the functions that its source calls
  # shellcheck disable=SC2046
  sed 's|^ *//.*||; s|/\*.*\*/||' $(files_of "$1") | grep -oE '\bweft_[a-z0-9_]+\b' | sort -u
}

# compare HEADER: lines that say what is wrong
compare() {
  local wrapper all
  all=$(declared "$1")
  [ "$(wc -l <<<"$all")" -ge 120 ] || echo "$1: $(wc -l <<<"$all") functions: they are no longer found"
  for wrapper in cxx rust python; do
    left_out $wrapper | uniq -d | sed "s/.*/&: stands twice in wrappers.txt for $wrapper/"
    comm -23 <(echo "$all") <({ named $wrapper; left_out $wrapper; } | sort -u) |
      sed "s/.*/&: $wrapper neither has it nor says in wrappers.txt why not/"
    comm -12 <(left_out $wrapper) <(named $wrapper) | sed "s/.*/&: $wrapper has it, wrappers.txt says not/"
    comm -13 <(echo "$all") <(left_out $wrapper | uniq) | sed "s/.*/&: in wrappers.txt, and not in weft.h/"
  done
}

say() { # say NAME WRONG
  if [ -z "$2" ]; then echo "ok wrappers/$1"; else echo "not ok wrappers/$1: $(head -n 3 <<<"$2" | tr '\n' ' ')"; fi
}
say every-function "$(compare "$header")"
say reasons "$(awk -F ' : ' '!/^#/ && NF && (NF != 3 || $3 == "") { print FILENAME ":" FNR ": no reason" }' \
  tests/tools/wrappers.txt)"

# A function that is new in weft.h is noticed, for each wrapper; and one that is gone.
mkdir -p build/check
{ cat "$header"; echo 'WEFT_API void weft_brand_new(WeftVM *vm);'; } >build/check/wrappers.h
[ "$(compare build/check/wrappers.h | grep -c '^weft_brand_new: .* neither')" -eq 3 ]
say notices-a-new-one "$([ $? -eq 0 ] || echo "weft_brand_new was not noticed")"
grep -v 'weft_set_hook(' "$header" >build/check/wrappers.h
[ "$(compare build/check/wrappers.h | grep -c '^weft_set_hook: in wrappers.txt')" -eq 3 ]
say notices-one-that-is-gone "$([ $? -eq 0 ] || echo "weft_set_hook was not missed")"
exit 0

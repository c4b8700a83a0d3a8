#!/bin/bash
# Compares format specs with CPython's format(): random values and specs, eagerly by computed specs, and compiled by
# written ones.
#   tests/tools/format.sh [SEED [COUNT]]
set -u
cd "$(dirname "$0")/../.." || exit 1
W=$(realpath "${WEFT:-build/weft}")
seed=${1:-1} count=${2:-20000}
command -v python3 >/dev/null || { echo "skip format/specs: there is no python3 to compare with"; exit 0; }
d=$PWD/build/check/format
rm -rf "$d"
mkdir -p "$d"
cd "$d" || exit 1
python3 ../../../tests/tools/format.py "$seed" "$count" || exit 1
# same NAME WANTED PROGRAM: the same lines; shows the first that differ, with what was asked
same() {
  local got
  WEFT_PACE=0 timeout 300 "$W" "$3" >got.txt 2>err.txt
  if [ -s err.txt ]; then echo "not ok format/$1: $(head -n 1 err.txt)"
  elif got=$(paste -d $'\001' "$2" got.txt "${2%.wanted}.asked" | awk -F $'\001' '$1 != $2 {
    printf "%s gives \"%s\" instead of \"%s\"; ", $3, $2, $1; if (++n == 5) exit }') && [ -n "$got" ]
  then echo "not ok format/$1: $got"
  elif [ "$(wc -l <"$2")" -ne "$(wc -l <got.txt)" ]; then echo "not ok format/$1: not as many lines"
  else echo "ok format/$1"; fi
}
WEFT_BACKEND=eager same computed-specs computed.wanted computed.weft
WEFT_HOT=0 same compiled-specs written.wanted written.weft
WEFT_BACKEND=eager same written-specs written.wanted written.weft

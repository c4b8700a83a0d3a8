#!/bin/bash
# Runs the programs of tests/bugs in four modes and compares what they print: bugs.sh [NAME...] runs some of them.
set -u
cd "$(dirname "$0")/../.." || exit 1
W=$(realpath "${WEFT:-build/weft}")
limit=60 # seconds; what takes so long hangs
mkdir -p build/check
err=$(realpath build/check)/bugs.err
out=$(realpath build/check)/bugs.out

# run NAME MODE [SETTING...]: one program in one mode.
run() {
  local name=$1 mode=$2 rc
  shift 2
  (cd tests/bugs && exec timeout -k 5 "$limit" env "$@" "$W" "$name.weft") >"$out" 2>"$err" </dev/null
  rc=$?
  if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then echo "not ok bugs/$name-$mode: ran past $limit seconds"
  elif [ $rc -ne 0 ]; then echo "not ok bugs/$name-$mode: exit status $rc: $(head -n 1 "$err")"
  elif ! diff "$out" "tests/bugs/$name.expected" >"$out.diff"; then
    echo "not ok bugs/$name-$mode: prints < instead of >: $(tr '\n' '~' <"$out.diff" | cut -c 1-300)"
  else echo "ok bugs/$name-$mode"; fi
}

shopt -s nullglob
if [ $# -eq 0 ]; then
  for program in tests/bugs/*.weft; do
    name=${program##*/}
    set -- "$@" "${name%.weft}"
  done
fi
for name in "$@"; do
  if ! [ -e "tests/bugs/$name.expected" ]; then
    echo "not ok bugs/$name: there is no tests/bugs/$name.expected"
    continue
  fi
  run "$name" eager WEFT_BACKEND=eager
  run "$name" hot WEFT_HOT=0
  run "$name" defaults
  run "$name" verify WEFT_BACKEND=verify WEFT_HOT=0
done
rm -f "$err" "$out" "$out.diff"

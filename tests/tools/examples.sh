#!/bin/bash
# Runs the programs of examples/programs and examples/training in four modes and compares what they print: examples.sh
# [NAME...] runs some. Those of training say how often their step was compiled, which is not asked of the interpreter.
# In the mode `bytecode` a program runs as `weft compile -c --strip` writes it.
set -u
cd "$(dirname "$0")/../.." || exit 1
W=$(realpath "${WEFT:-build/weft}")
limit=60 # seconds; what takes so long hangs
mkdir -p build/check/examples/{programs,training}
cp examples/*.csv build/check/examples
TMPDIR=$(realpath build/check/examples) # where they write
export TMPDIR

# run NAME MODE [SETTING...]: one program in one mode.
run() {
  local name=$1 mode=$2 program=$folder/$1.weft rc
  shift 2
  if [ "$mode" = bytecode ]; then
    program=$TMPDIR/${folder##*/}/$name.weftc # the data lie in the folder above
    if ! "$W" compile -c --strip "$folder/$name.weft" -o "$program" 2>"$TMPDIR/err"; then
      echo "not ok examples/$name-$mode: $(head -n 1 "$TMPDIR/err")"
      return
    fi
  fi
  timeout -k 5 "$limit" env "$@" "$W" "$program" >"$TMPDIR/out" 2>"$TMPDIR/err" </dev/null
  rc=$?
  cp "$folder/$name.expected" "$TMPDIR/want"
  if [ "$folder-$mode" = examples/training-eager ]; then sed -i '/^compiled: /d' "$TMPDIR/out" "$TMPDIR/want"; fi
  if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then echo "not ok examples/$name-$mode: ran past $limit seconds"
  elif [ $rc -ne 0 ]; then echo "not ok examples/$name-$mode: exit status $rc: $(head -n 1 "$TMPDIR/err")"
  elif ! diff "$TMPDIR/out" "$TMPDIR/want" >"$TMPDIR/diff"; then
    echo "not ok examples/$name-$mode: prints < instead of >: $(tr '\n' '~' <"$TMPDIR/diff" | cut -c 1-300)"
  else echo "ok examples/$name-$mode"; fi
}

if [ $# -eq 0 ]; then
  for program in examples/programs/*.weft examples/training/*.weft; do
    name=${program##*/}
    set -- "$@" "${name%.weft}"
  done
fi
for name in "$@"; do
  folder=examples/programs
  [ -e "examples/training/$name.weft" ] && folder=examples/training
  if ! [ -e "$folder/$name.expected" ]; then
    echo "not ok examples/$name: there is no $folder/$name.expected"
    continue
  fi
  run "$name" eager WEFT_BACKEND=eager
  run "$name" hot WEFT_HOT=0
  run "$name" defaults
  run "$name" bytecode
done

#!/bin/bash
# Tests the build tool of the modules written in Weft: what is wrong in one is said with its place, and nothing is made
# of it.
set -u
cd "$(dirname "$0")/../.." || exit 1
tool=$PWD/build/host/gen_modules
d=$PWD/build/check/modules
rm -rf "$d"
mkdir -p "$d"
cp stdlib/modules/*.weft "$d"
cd "$d" || exit 1

# refused NAME 'PATTERN' TEXT [FILE]: TEXT is added to the module FILE (nn.weft)
refused() {
  local file=${4:-nn.weft} out rc
  cp "$OLDPWD"/stdlib/modules/*.weft .
  printf '%s\n' "$3" >>"$file"
  out=$("$tool" out.c ./*.weft 2>&1)
  rc=$?
  out=$(tr '\n' '~' <<<"$out")
  if [ $rc -eq 0 ]; then echo "not ok modules/$1: it was taken"
  elif ! grep -qE -- "$2" <<<"$out"; then echo "not ok modules/$1: said ${out:0:300}"
  else echo "ok modules/$1"; fi
}

if "$tool" out.c ./*.weft && grep -q 'nn.rms_norm' out.c; then echo "ok modules/takes-what-there-is"
else echo "not ok modules/takes-what-there-is"; fi
refused syntax 'error: .*--> ./nn.weft:[0-9]+:[0-9]+' 'fn _f(x) = '
refused name-not-declared 'error: y is not declared.*--> ./nn.weft:[0-9]+:[0-9]+.*\^' 'fn _f(x) = y'
refused statements 'declarations of functions alone.*--> ./nn.weft:[0-9]+:1' 'let x = 1'
refused expressions 'declarations of functions alone' 'print(1)'
refused function-without-row "nothing: no row of lang/ops.def.*--> ./nn.weft" 'fn nothing(x) = x'
refused function-in-c "softmax: no row of lang/ops.def of this name says .weft." 'fn softmax(x, axis=-1) = x'
refused helper-of-an-entry '_entry_said: a helper of lang/takes.def has this name' 'fn _entry_said(x) = x'
refused twice 'nn.rms_norm: is declared twice' 'fn rms_norm(x, weight=nil, eps=1e-6, axis=-1) = x'
for params in 'x, weight, eps=1e-6, axis=-1' 'x, weight=nil, axis=-1, eps=1e-6' 'x, weight=nil, eps=1e-6' \
  'x, ...weight' 'x, weight=nil, eps=1e-6, axis=-1, more=1'; do
  printf '# A module.\nfn rms_norm(%s) = x\n' "$params" >nn.weft
  out=$("$tool" out.c ./*.weft 2>&1 | tr '\n' '~')
  if grep -q 'nn.rms_norm: its parameters are not those of its row.*--> ./nn.weft:2:1' <<<"$out"; then
    echo "ok modules/parameters ($params)"
  else echo "not ok modules/parameters ($params): said ${out:0:300}"; fi
done
printf '# A module.\nfn _helper(x) = x\n' >nn.weft
out=$("$tool" out.c ./*.weft 2>&1)
wanted="gen_modules: nn.rms_norm: its row of lang/ops.def says \`weft\`, and no module in stdlib/modules/ has it"
if [ "$out" = "$wanted" ]; then
  echo "ok modules/row-without-function"
else echo "not ok modules/row-without-function: said $out"; fi

#!/bin/bash
# Tests the Python package: its wheel, built without network, in an empty environment; then what NumPy and notebooks
# add, as far as a Python of this machine has them (WEFT_PYTHON names another one).
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
d=$root/build/check/python
rm -rf "$d"
mkdir -p "$d"

say() { # say NAME CONDITION-RESULT WHY
  if [ "$2" -eq 0 ]; then echo "ok python/$1"; else echo "not ok python/$1: $3"; fi
}
skip() { # every step from here on
  echo "skip python/package: $1"
  exit 0
}

command -v python3 >/dev/null || skip "python3 is not installed"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "python3 is older than 3.9"

# ---- the wheel
export WEFT_LIBRARY
WEFT_LIBRARY=$(realpath "${WEFT_LIBRARY:-build/libweft.so}")
out=$(WEFT_LIBRARY=$d/none.so python3 python/build.py "$d" 2>&1)
[ $? -ne 0 ] && grep -q "no library at .*none.so" <<<"$out"
say build-without-library $? "$out"
out=$(python3 python/build.py "$d" 2>&1)
say build $? "$out"
wheel=$(echo "$d"/weft-*.whl)
mkdir -p "$d/again"
python3 python/build.py "$d/again" >/dev/null && cmp -s "$wheel" "$d/again/${wheel##*/}"
say builds-the-same-again $? "two wheels of the same files differ"
unset WEFT_LIBRARY

# ---- in an environment of its own
if python3 -m venv "$d/env" >"$d/venv.err" 2>&1; then
  p=$d/env/bin/python
  out=$("$p" -m pip install --no-index --quiet "$wheel" 2>&1)
  say pip-installs-the-wheel $? "$(tail -n 1 <<<"$out")"
  # as a user does: `pip install ./python`, with the library of build/
  if [ -e build/libweft.so ]; then
    mkdir -p "$d/pip"
    out=$(env -u WEFT_LIBRARY "$p" -m pip wheel --no-index --no-deps --quiet -w "$d/pip" ./python 2>&1)
    ls "$d"/pip/weft-*.whl >/dev/null 2>&1
    say pip-builds-from-the-folder $? "$(tail -n 1 <<<"$out")"
  fi
  out=$(WEFT_LIBRARY=$d/none.so "$p" -m pip wheel --no-index --no-deps -w "$d/pip" ./python 2>&1)
  [ $? -ne 0 ] && grep -q "weft: no library at .*none.so: WEFT_LIBRARY names it" <<<"$out"
  say pip-says-what-is-missing $? "$(tail -n 3 <<<"$out")"
else
  echo "skip python/pip-installs-the-wheel: python3 has no venv (Debian: python3-venv)"
  mkdir -p "$d/site" && python3 -m zipfile -e "$wheel" "$d/site"
  export PYTHONPATH=$d/site
  p=python3
fi
out=$(cd "$d" && "$p" -c 'import weft; print(weft.VM().eval("sum(arange(10))"))' 2>&1)
[ "$out" = 45 ]
say runs-without-numpy $? "$out"

# The structs that Python declares have the sizes that weft.h gives them.
structs=$(sed -n 's/^class \([A-Za-z]*\)(Structure):  # \(Weft[A-Za-z]*\)$/\1 \2/p' python/weft/_library.py)
{
  printf '#include <stdio.h>\n#include "api/weft.h"\nint main(void) {\n'
  while read -r ours theirs; do printf '  printf("%s %%zu\\n", sizeof(%s));\n' "$ours" "$theirs"; done <<<"$structs"
  printf '  return 0;\n}\n'
} >"$d/sizes.c"
out=$(${CC:-gcc} -I. "$d/sizes.c" -o "$d/sizes" 2>&1 && "$d/sizes" >"$d/sizes.c.out" && cd "$d" && "$p" -c '
import ctypes, sys, weft._library as l
for line in open("sizes.c.out"):
    name, size = line.split()
    if ctypes.sizeof(getattr(l, name)) != int(size):
        sys.exit(f"{name} has {ctypes.sizeof(getattr(l, name))} bytes, of {size}")' 2>&1)
say structs-as-in-weft.h $? "$out"

suite() { # suite NAME PYTHON MODULE [-CLASS...]: without these
  (cd "$d" && timeout 250 "$2" "$root/python/tests/run.py" "python/$1" "${@:3}") 2>"$d/$1.err"
  say "$1-suite" $? "$(tail -n 2 "$d/$1.err" | tr '\n' ' ') (build/check/python/$1.err)"
}
[ -e build/tests/libcuda.so ] && export WEFT_CUDA_DRIVER=$root/build/tests/libcuda.so # the stand-in for a driver
suite alone "$p" test_weft -NumPy -Other

# ---- with what is installed beside it: WEFT_PYTHON, or the first one that has NumPy
mkdir -p "$d/site" && python3 -m zipfile -e "$wheel" "$d/site"
export PYTHONPATH=$d/site
q=
for candidate in ${WEFT_PYTHON:-python3 /usr/bin/python3 build/peers/bin/python}; do
  [ -z "$q" ] && "$candidate" -c 'import numpy' 2>/dev/null && q=$(command -v "$candidate")
done
if [ -n "$q" ]; then
  suite numpy "$(realpath -s "$q")" test_weft
else
  echo "skip python/numpy-suite: NumPy is not installed (Debian: python3-numpy; WEFT_PYTHON names another Python)"
fi
q=${q:-python3}
if "$q" -c 'import nbclient, ipykernel' 2>/dev/null; then
  suite notebook "$(realpath -s "$(command -v "$q")")" test_notebook
else
  echo "skip python/notebook-suite: nbclient and ipykernel are not installed"
fi
exit 0

#!/bin/bash
# Tests the build tool that takes the signatures of lang/ops.def apart: a parameter that does not say what it holds is
# refused, and so is a row that says it wrongly.
set -u
cd "$(dirname "$0")/../.." || exit 1
d=$PWD/build/check/op-params
rm -rf "$d"
mkdir -p "$d/lang"

# made SIGNATURE FAMILY KERNEL: the tool, built with a table of one row, run; what it says is in $out.
made() {
  local row='OP(one, "%s", %s, custom, none, none, none, pure, bits, %s, none, zero, loop, 0, "one row")\n'
  # shellcheck disable=SC2059
  printf "$row" "$1" "$2" "$3" >"$d/lang/ops.def"
  out=$(${CC:-cc} -std=gnu11 -D_GNU_SOURCE -I"$d" -I. jit/host/gen_ops.c -o "$d/tool" 2>&1 &&
    "$d/tool" "$d/out.h" 2>&1)
}

# refused NAME 'PATTERN' SIGNATURE [FAMILY [KERNEL]]
refused() {
  if made "$3" "${4:-reduce}" "${5:-own}"; then echo "not ok op-params/$1: it was taken"
  elif ! grep -qE -- "^gen_ops: one: $2" <<<"$out"; then echo "not ok op-params/$1: said ${out:0:300}"
  else echo "ok op-params/$1"; fi
}

# taken NAME 'PATTERN' SIGNATURE [FAMILY [KERNEL]]: PATTERN is in what was made
taken() {
  if ! made "$3" "${4:-reduce}" "${5:-own}"; then echo "not ok op-params/$1: said ${out:0:300}"
  elif ! grep -qF -- "$2" "$d/out.h"; then echo "not ok op-params/$1: $(head -c 600 "$d/out.h")"
  else echo "ok op-params/$1"; fi
}

taken kinds '{"axis", "nil", 4, true, true, false, false, PARAM_axis}' '(x: operand, axis: axis=nil)'
taken signature-as-users-see-it '"(x, ...ys, axis=nil)"' '(x: operand, ...ys: operand, axis: axis=nil)'
taken strips-take-operands '"y", NULL, 1, false, false, false, false, PARAM_operand' '(x, y)' elementwise binary
taken values-of-any-kind '"s", NULL, 1, false, false, false, false, PARAM_any' '(s)' text
taken functions-in-weft '"axis", "-1", 4, true, false, false, false, PARAM_any' '(x, axis=-1)' reduce weft
refused kind-left-out 'a parameter does not say what it holds' '(x: operand, axis=nil)'
refused kind-of-the-first-left-out 'a parameter does not say what it holds' '(x)'
refused kind-of-the-rest-left-out 'a parameter does not say what it holds' '(...xs)'
refused kind-that-is-none 'a kind of parameter that is not in OP_PARAM_KINDS' '(x: number)'
refused kind-of-values 'a kind of parameter that is not in OP_PARAM_KINDS' '(x: any)'
refused kind-where-all-are-alike 'its parameters are all of one kind' '(x: operand)' elementwise unary
refused flag-without-its-default 'a flag is what has the default true or false' '(x: operand, keepdims: flag=nil)'
refused truth-that-is-no-flag 'a flag is what has the default true or false' '(x: operand, keepdims: setting=false)'

#!/bin/bash
# The tests that need a card: every case in the tier `ptx` by the real driver, compared with eager. Without a card, a skip.
#   tests/tools/gpu-check.sh     (make gpu-check)
set -u
cd "$(dirname "$0")/../.." || exit 1
driver=${WEFT_CUDA_DRIVER:-}
if ! said=$(build/weft -e 'print(to(to([1.5, 2.5], "gpu") * 2.0, "cpu"))' 2>&1); then
  echo "skip gpu: $(head -n 1 <<<"$said")"
  exit 0
fi
if [ "$said" = "[3.0, 5.0]" ]; then echo "ok gpu/works"; else echo "not ok gpu/works: $said"; exit 1; fi
log=build/check/gpu-check.log
mkdir -p build/check
build/tests/cases --tier ptx --driver "$driver" >"$log" 2>&1
passed=$(grep -c '^ok ' "$log") failed=$(grep -c '^not ok ' "$log")
grep '^not ok ' "$log" | head -n 20
echo "gpu-check: $passed cases agree with eager, $failed do not (the whole list: $log)"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

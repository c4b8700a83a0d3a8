#!/bin/bash
# The tests that need a card: every case in the tier `ptx` by the real driver, compared with eager, in as many processes
# as there are processors (the driver compiles each kernel, tenths of a second). Without a card, a skip.
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
rm -rf "$log".d
mkdir "$log".d
# Longest files first. A process for each, since one at a time makes a context.
export driver log
ls -S tests/cases/*.weft build/cases/*.weft | xargs -P "$(nproc)" -I FILE \
  sh -c 'build/tests/cases --tier ptx --driver "$driver" FILE >"$log.d/$(basename FILE)" 2>&1'
bad=$?
cat "$log".d/* >"$log"
passed=$(grep -c '^ok ' "$log") failed=$(grep -c '^not ok ' "$log")
grep '^not ok ' "$log" | head -n 20
echo "gpu-check: $passed cases agree with eager, $failed do not (the whole list: $log)"
[ "$bad" -eq 0 ] && [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

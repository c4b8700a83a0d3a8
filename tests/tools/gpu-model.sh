#!/bin/bash
# How long the cases of bench/gpu.weft would take on a card that is not there: predicted from counts of the stand-in
# (docs/gpu-model.md), beside the share of a copy that each has reached (bench/gpu-floors).
#   tests/tools/gpu-model.sh [NAME…]             a row for each case, on an H200
#   tests/tools/gpu-model.sh --card L4 [NAME…]   on another card
#   tests/tools/gpu-model.sh --launches [NAME…]  each launch with its counts, too
#   tests/tools/gpu-model.sh --check [--all]     `ok` or `not ok` for each case: has it its share?  .ci/check runs this
#   tests/tools/gpu-model.sh --plant FAULT NAME…  with a fault of the stand-in: one-block, scalar, unpadded
# It measures nothing. build/cuda/ptxas (make cuda-tools) tells registers; without it they are estimated,
# too high as a rule, and --check is skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
card=H200 check= launches= plant= all=
while [ $# -gt 0 ]; do
  case $1 in
    --card) card=${2:-}; shift ;;
    --plant) plant=${2:-}; shift ;;
    --check) check=1 ;;
    --all) all=1 ;;
    --launches) launches=1 ;;
    -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) break ;;
  esac
  shift
done
case $plant in '' | one-block | scalar | unpadded) ;; *) echo "gpu-model: no fault is called $plant"; exit 2 ;; esac
[ "$check" ] && [ -z "$all" ] && few=1 || few=
[ $# -gt 0 ] || set -- $(awk -v few="$few" '!/^#/ && !(few && $4 == "all") { print $1 }' bench/gpu-floors)
ptxas=${WEFT_PTXAS:-build/cuda/ptxas}
[ -x "$ptxas" ] || ptxas=
if [ "$check" ] && [ -z "$ptxas" ]; then
  echo "skip gpu-model/shares: no ptxas tells registers; make cuda-tools fetches it, or WEFT_PTXAS=PATH names it"
  exit 0
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.out"' EXIT

# part: which part of the rows of bench/gpu.weft is run: of elementwise kernels, where the time goes with the elements
# but for what a call and a launch cost.
cost() { sed -n "s/^CARD($card, //p" tests/support/cuda/cards.def | tr -d ' "' | awk -F, -v f="$1" '{ print $f }'; }
sms=$(cost 1) mhz=$(cost 2) copy=$(cost 3) doubles=$(cost 8) call=$(cost 12) each=$(cost 13) link=$(cost 14)
tensor=$(cost 16)
[ -n "$copy" ] || { echo "gpu-model: no card is called $card (tests/support/cuda/cards.def)"; exit 2; }
[ "$check" ] || echo "$card: predicted, not measured"
bad=0
for name; do
  part=1
  case $name in scaled | chain | gelu) part=8 ;; esac
  # Products: operations in place of bytes, and the share of all the fmas that the card can begin.
  rate=${copy}e9 of="a copy"
  case $name in
    matmul-f64) rate=$((2 * doubles * sms * mhz))e6 of="the f64 units" ;;
    matmul-f16 | matmul-bf16 | layer-f16) rate=$((2 * tensor * sms * mhz))e6 of="the tensor cores" ;;
    matmul-u8 | matmul-i32) rate=$((2 * 64 * sms * mhz))e6 of="the lanes that multiply integers" ;;
    matmul-i64) rate=$((2 * 64 * sms * mhz / 3))e6 of="the lanes that multiply integers" ;;
    matmul | layer) rate=$((2 * 128 * sms * mhz))e6 of="the issue slots" ;;
  esac
  if ! WEFT_CACHE= WEFT_CUDA_DRIVER=$PWD/build/tests/libcuda.so WEFT_MOCK_MODEL=$log WEFT_MOCK_CARD=$card \
    WEFT_MOCK_PTXAS=$ptxas WEFT_MOCK_PLANT=$plant build/weft bench/gpu.weft "$name" $part >"$log.out" 2>&1; then
    echo "not ok gpu-model/$name: $(tail -n 1 "$log.out")"
    bad=1
    continue
  fi
  read -r bytes _ < <(tail -n 1 "$log.out")
  read -r floor alone < <(awk -v n="$name" '$1 == n { print $2, $3 }' bench/gpu-floors)
  # The launches of the last call stand between the last two reads.
  awk -v name="$name" -v bytes="$bytes" -v part=$part -v rate=$rate -v of="$of" -v call="$call" -v each="$each" \
    -v link="$link" -v floor="${floor:-0}" \
    -v least="${alone:-0}" -v check="$check" -v launches="$launches" -v card="$card" '
    $1 == "write" { pending_us += $2 / link / 1e3 }
    $1 == "read" && $2 > 64 { pending_us += $2 / link / 1e3; moved += $2 }
    $1 == "read" && $2 <= 64 {
      if (!pending) { again++; next } # behind the read of a check
      count = pending; us = pending_us; top = pending_top; copied = moved; again = 0
      for (i = 1; i <= pending; i++) last[i] = row[i]
      pending = pending_us = pending_top_us = moved = 0
    }
    $1 == "launch" {
      row[++pending] = $0
      split($3, t, "="); split($4, b, "=")
      pending_us += t[2]
      if (t[2] + 0 >= pending_top_us + 0) { pending_top_us = t[2]; pending_top = b[2] " in " $2 }
    }
    END {
      if (!count) { printf "not ok gpu-model/%s: nothing was launched\n", name; exit 1 }
      total = call * (1 + again) + each * count + us * part
      share = 100 * bytes * part / (total * 1e-6) / rate
      alone = 100 * bytes * part / ((each * count + us * part) * 1e-6) / rate
      if (check) {
        if (share < 0.98 * floor) {
          printf "not ok gpu-model/%s: %.3g %% of %s, once %s %%; bound by %s\n", name, share, of, floor, top
          exit 1
        }
        if (alone < 0.98 * least) {
          printf "not ok gpu-model/%s: launches alone %.3g %% of %s, once %s %%; bound by %s\n", name, alone,
            of, least, top
          exit 1
        }
        printf "ok gpu-model/%s\n", name
        exit
      }
      printf "%-15s %10.4f ms  %5.3g %% of %s (launches alone %.3g %%)  %d launches, bound by %s%s\n", name,
        total * 1e-3, share, of, alone, count, copied ? "copies by way of the processor, then " : "", top
      for (i = 1; launches && i <= count; i++) { gsub(/ /, "\n    ", last[i]); print "  " last[i] }
    }' "$log" || bad=1
done
# What the check is for: with a fault planted, it must fail.
if [ "$check" ] && [ -z "$plant" ]; then
  for fault in one-block:sum scalar:scaled unpadded:transpose; do
    if "$0" --plant "${fault%:*}" --check "${fault#*:}" | grep -q '^not ok gpu-model/.* of a copy'; then
      echo "ok gpu-model/plant-${fault%:*}"
    else
      echo "not ok gpu-model/plant-${fault%:*}: the model does not see it"
      bad=1
    fi
  done
fi
exit $bad

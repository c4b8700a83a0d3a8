#!/bin/bash
# The twenty kernels of bench/npbench on tiny inputs: NumPy's results, interpreted and compiled at once by each backend.
set -u
cd "$(dirname "$0")/../.." || exit 1
W=${WEFT:-build/weft}
names=$(sed -n 's/^  "\([a-z0-9_]*\)":.*/\1/p' bench/npbench/sizes.json)
for backend in eager interp loops mir; do
  said=$(WEFT_BACKEND=$backend WEFT_HOT=0 "$W" bench/npbench/check.weft 2>"build/npbench.$backend.err")
  for name in $names; do
    line=$(grep -E "^(not )?ok npbench/$name(:|\$)" <<<"$said")
    case $line in
      "ok npbench/$name") echo "$line" ;;
      "") echo "not ok npbench/$name: $backend says nothing: $(head -n 1 "build/npbench.$backend.err")" ;;
      *) echo "$line ($backend)" ;;
    esac
  done
  rm -f "build/npbench.$backend.err"
done

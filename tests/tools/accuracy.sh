#!/bin/bash
# Measures all elementary functions (build/tests/math: minutes) and writes the table of docs/accuracy.md anew.
set -u
cd "$(dirname "$0")/../.." || exit 1
page=docs/accuracy.md
table=$(build/tests/math --all --table) || exit 1
{
  sed '/^|/,$d' "$page"
  printf '| function | f64 | f32 |\n| --- | --- | --- |\n%s\n' "$table"
  sed '1,/^|/d' "$page" | grep -v '^|'
} >build/accuracy.md && mv build/accuracy.md "$page"
git diff --stat -- "$page"

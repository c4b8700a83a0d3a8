#!/bin/bash
# The grammar for tree-sitter has no error in a program that Weft's parser accepts, and its colours are what Weft's
# lexer says. Programs are the cases, the examples, the modules of the library and the benchmarks.
#   WEFT_TREE_SITTER   the command line of tree-sitter, else `tree-sitter` on the path
set -u
cd "$(dirname "$0")/../.." || exit 1
ts=$(command -v "${WEFT_TREE_SITTER:-tree-sitter}") ||
  { echo "skip tree-sitter/grammar: there is no tree-sitter (WEFT_TREE_SITTER)"; exit 0; }
command -v node >/dev/null || { echo "skip tree-sitter/grammar: there is no node, which reads the grammar"; exit 0; }
d=$PWD/build/check/tree-sitter
rm -rf "$d"
mkdir -p "$d/programs"
# What it builds and remembers stays in this folder.
export XDG_CACHE_HOME=$d/cache XDG_CONFIG_HOME=$d/config TREE_SITTER_DIR=$d/config TREE_SITTER_LIBDIR=$d/lib
cp -r editors/tree-sitter "$d/grammar"
mapfile -t files < <(find "$PWD"/examples "$PWD"/stdlib/modules "$PWD"/bench -name '*.weft' | LC_ALL=C sort)
build/tests/editors --accepted "$d/programs" "${files[@]}" >"$d/list" ||
  { echo "not ok tree-sitter/programs: build/tests/editors failed"; exit 1; }
count=$(wc -l <"$d/list")
editors=$PWD/build/tests/editors

cd "$d/grammar" || exit 1
if "$ts" generate >"$d/out" 2>&1; then echo "ok tree-sitter/generate"
else echo "not ok tree-sitter/generate: $(head -c 500 "$d/out")"; exit 1; fi

# A program with an error is told; no other is.
echo 'let = 1' >"$d/broken.weft"
if "$ts" parse --quiet "$d/broken.weft" 2>&1 | grep -qE '\((ERROR|MISSING)'; then echo "ok tree-sitter/error"
else echo "not ok tree-sitter/error: none was told of 'let = 1'"; fi
"$ts" parse --quiet --paths "$d/list" >"$d/parsed" 2>"$d/out"
status=$?
grep -E '\((ERROR|MISSING)' "$d/parsed" | head -n 20 | sed 's/^/not ok tree-sitter\/parse: /'
if [ "$status" = 0 ]; then echo "ok tree-sitter/parse: $count programs"
else grep -qE '\((ERROR|MISSING)' "$d/parsed" || echo "not ok tree-sitter/parse: $(head -c 500 "$d/out")"; fi

# Trees where a line or a look at several tokens decides.
if "$ts" test >"$d/out" 2>&1; then echo "ok tree-sitter/trees"
else echo "not ok tree-sitter/trees: $(tail -c 1000 "$d/out")"; fi

if "$ts" query --captures --paths "$d/list" queries/highlights.scm >"$d/captures" 2>"$d/out"; then
  "$editors" --captures "$d/list" "$d/captures"
else echo "not ok tree-sitter/highlights: $(head -c 500 "$d/out")"; fi
for q in locals folds indents helix/indents; do
  if "$ts" query "queries/$q.scm" "$(tail -n 1 "$d/list")" >"$d/out" 2>&1 && [ "$(wc -l <"$d/out")" -gt 5 ]; then
    echo "ok tree-sitter/$q"
  else echo "not ok tree-sitter/$q: $(head -c 500 "$d/out")"; fi
done

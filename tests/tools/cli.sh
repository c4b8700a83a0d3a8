#!/bin/bash
# Tests the program `weft` from outside: ways to run it, exit codes, messages of wrong input, limits, interrupts.
set -u
export WEFT_PACE=0 # what is compiled does not go by the clock
export WEFT_CACHE= # and kernels are not kept, but where a test says so
cd "$(dirname "$0")/../.." || exit 1
W=${WEFT:-build/weft}
W=$(realpath "$W")
d=$PWD/build/check/cli
rm -rf "$d"
mkdir -p "$d"
cd "$d" || exit 1

# expect NAME CODE 'PATTERN in stdout+stderr' COMMAND...
expect() {
  local name=$1 code=$2 pattern=$3 out rc
  shift 3
  out=$("$@" 2>&1 </dev/null)
  rc=$?
  out=$(tr '\n' '~' <<<"$out")
  if [ "$rc" -ne "$code" ]; then echo "not ok cli/$name: exit status $rc instead of $code: ${out:0:200}"
  elif ! grep -qE -- "$pattern" <<<"$out"; then echo "not ok cli/$name: said ${out:0:300}"
  else echo "ok cli/$name"; fi
}
# wrong NAME CODE 'PATTERN' PROGRAM: one error, with its span, and nothing else
wrong() {
  local name=$1 code=$2 pattern=$3
  printf '%s\n' "$4" >"$name.weft"
  shift 4
  local out rc
  out=$("$W" "$@" "$name.weft" 2>&1 </dev/null)
  rc=$?
  if [ $rc -ne "$code" ]; then
    echo "not ok cli/$name: exit status $rc instead of $code: $(head -n 2 <<<"$out" | tr '\n' ' ')"
  elif [ "$(grep -c '^error: ' <<<"$out")" -ne 1 ]; then
    echo "not ok cli/$name: not one error: $(tr '\n' '~' <<<"$out")"
  elif ! grep -qE -- "$pattern" <<<"$out"; then echo "not ok cli/$name: said $(tr '\n' '~' <<<"$out")"
  elif ! grep -qE -- "--> $name.weft:[0-9]+:[0-9]+" <<<"$out"; then
    echo "not ok cli/$name: no place: $(tr '\n' '~' <<<"$out")"
  elif ! grep -q '\^' <<<"$out"; then echo "not ok cli/$name: no caret"
  else echo "ok cli/$name"; fi
}

# ---- ways to run
echo 'print(1 + 1)' >two.weft
printf '#!/usr/bin/env weft\nprint(args())\n' >args.weft
expect version 0 '[0-9]+\.[0-9]+' "$W" --version
expect help 0 'weft' "$W" --help
expect lsp-no-input 1 "^~$" "$W" lsp --stdio
expect lsp-unknown-option 2 "weft lsp: unknown option: --port" "$W" lsp --port
expect code 0 '^3~$' "$W" -e 'print(1 + 2)'
expect file 0 '^2~$' "$W" two.weft
expect arguments 0 '"a", "-b"' "$W" args.weft a -b
expect stdin 0 '^5~$' sh -c "echo 'print(5)' | '$W' -"
expect stdin-arguments 0 '"a", "-b"' sh -c "echo 'print(args())' | '$W' - a -b"
expect stdin-is-a-script 0 '^5~$' sh -c "echo 'print(5)' | '$W'"
expect stdin-shows-no-values 0 '^~$' sh -c "echo 5 | '$W'"
expect stdin-from-file 0 '^2~$' sh -c "'$W' <two.weft"
expect stdin-empty-lines 0 '^3~$' sh -c "printf 'fn f(x) {\n\n  x\n}\nprint(f(3))\n' | '$W'"
expect stdin-error 1 '^error: foo is not declared~  --> <stdin>:2:1' sh -c "printf '\nfoo\n' | '$W'"
expect stdin-error-on-stderr 1 '^~$' sh -c "printf 'foo\n' | '$W' 2>/dev/null"
expect stdin-exit-code 7 '' sh -c "echo 'exit(7)' | '$W'"
expect stdin-empty 0 '^~$' "$W"
expect stdin-closed 1 'cannot read the standard input: Bad file' sh -c "'$W' <&-"
expect stdin-zero-byte 1 'control character' sh -c "printf 'print(1)\\0' | '$W'"
expect stdin-device 0 '^6~$' sh -c "echo 'print(6)' | '$W' /dev/stdin"
expect stdin-read-line-is-over 0 '^nil~$' sh -c "echo 'print(read_line())' | '$W'"
expect process-substitution 0 '^7~$' bash -c "'$W' <(echo 'print(7)')"
mkfifo program_pipe data_pipe module_pipe
expect program-from-pipe 0 '^8~$' sh -c "echo 'print(8)' >program_pipe & '$W' program_pipe"
expect import-from-pipe 0 '^9~$' sh -c "echo 'let k = 9' >module_pipe & '$W' -e 'import \"module_pipe\" as m
print(m.k)'"
expect csv-from-pipe 0 '^\{a: \[1\], b: \[2\]\}~$' \
  sh -c "printf 'a,b\n1,2\n' >data_pipe & '$W' -e 'print(load_csv(\"data_pipe\"))'"
expect text-from-pipe 0 '^héllo~' sh -c "printf 'héllo' >data_pipe & '$W' -e 'print(read_text(\"data_pipe\"))'"
expect npy-from-pipe 0 '^\[1, 2, 3\]~' sh -c "'$W' -e 'save_npy(\"three.npy\", array([1, 2, 3]))' &&
  cat three.npy >data_pipe & '$W' -e 'print(load_npy(\"data_pipe\"))'"
expect pipe-deadline 1 'the deadline has passed' "$W" --deadline 0.3 -e 'read_text("data_pipe")'
expect interactive-pipe 0 '^weft .*> 1 \+ 1~2~> ' sh -c "echo '1 + 1' | '$W' -i"
expect interactive-unfinished 0 'the unfinished input is dropped' sh -c "echo 'fn f(x) {' | '$W' -i"
expect explain 0 'kernel' "$W" --explain two.weft
echo 'for i in 0..3 { print(i) }' >three.weft
expect explain-short-loop 0 'three.weft:1:10: 3 trips in all, asked from trip 60 on: not compiled' \
  "$W" --explain three.weft
expect exit-code 7 '' "$W" -e 'exit(7)'
expect wrong-option 2 '--nonsense' "$W" --nonsense
expect missing-file 2 '^weft: cannot read "not-there.weft": No such file or directory~$' "$W" not-there.weft
expect no-such-command 2 '^weft: cannot read "help": No such file.*~try: weft --help; weft alone is a prompt' \
  "$W" help
expect folder-as-file 2 '^weft: cannot read ".": Is a directory~$' "$W" .
expect folder-import 1 "cannot read .*: Is a directory" "$W" -e 'import "." as m'
expect short-message 2 '^weft: unknown option: --nonsense~try: weft --help~$' "$W" --nonsense
expect value-behind-equals 0 '^3~$' "$W" --fuel=100 --memory=64M -e '1 + 2'
expect wrong-behind-equals 2 '^weft: --fuel needs a positive number: x~' "$W" --fuel=x -e 1
expect too-little-memory 1 '^weft: --memory: 1 bytes are too few to start' "$W" --memory=1 -e 1
expect missing-value 2 '^weft: a value is missing behind: --fuel~' "$W" --fuel
expect several-codes 0 '^3~$' "$W" -e 'let x = 1' -e 'x + 2'
expect code-arguments 0 '"-b", "c"' "$W" -e 'args()' -b c
cp two.weft ./-dashed
expect dashed-file 0 '^2~$' "$W" -- -dashed
expect short-version 0 '^weft [0-9.]+~$' "$W" -v
expect no-code 2 '' "$W" -e

# ---- weft run, weft test, weft doc
expect run 0 '^2~$' "$W" run two.weft
expect run-arguments 0 '^\("a", "-b"\)~$' "$W" run args.weft a -b
expect run-nothing 2 '^weft: weft run: a file is missing~try: weft --help~$' "$W" run
cat >tested.weft <<'END'
# Squares and their sums.

## Squares x.
##
## > square(3)
## 9
## > square([1, 2])
## [1, 4]
##
## > let y = 4
## > square(
## ... y)
## 16
fn square(x) = x * x

fn nothing_said(x) = x

fn test_square() { assert(square(2) == 4) }
fn test_others() = square(1) == 1
END
expect test 0 '^6 tests, 0 failed~$' "$W" test tested.weft
sed 's/## 9/## 8/; s/== 4/== 5, "two"/; s/== 1/== 2/' tested.weft >failing.weft
expect test-failing-example 1 \
  'FAILED failing.weft:5: example `square\(3\)`~  wanted: 8~  got:    9~.*6 tests, 3 failed~' "$W" test failing.weft
expect test-failing-function 1 'FAILED failing.weft:18: test_square~error: two~  --> failing.weft:18:20' "$W" test \
  failing.weft
expect test-false 1 'FAILED failing.weft:19: test_others gives false~' "$W" test failing.weft
expect test-several-files 1 '12 tests, 3 failed~$' "$W" test tested.weft failing.weft
expect test-nothing-there 1 'FAILED two.weft: nothing to test' "$W" test two.weft
printf 'let x = nowhere\nfn test_x() = 1\n' >broken.weft
expect test-does-not-run 1 'FAILED broken.weft: does not run~error: nowhere is not declared' "$W" test broken.weft
expect test-missing-file 1 '^weft: cannot read "nowhere.weft": No such file or directory~0 tests, 1 failed~$' \
  "$W" test nowhere.weft
expect test-no-file 2 '^weft test: a file is missing~try: weft --help~$' "$W" test
expect test-unknown-option 2 '^weft test: unknown option: --fast~' "$W" test --fast
printf '## > 1 + nowhere\n## 2\nfn f() = 1\n' >error.weft
expect test-example-fails 1 'FAILED error.weft:1: example `1 \+ nowhere`~error: nowhere is not declared' \
  "$W" test error.weft
printf 'fn test_stop() = exit(3)\nfn test_more() = true\n' >stopped.weft
expect test-exits 1 \
  'FAILED stopped.weft:1: test_stop~error: the program has ended itself with the code 3~.*2 tests, 1 failed~$' \
  "$W" test stopped.weft
expect doc 0 '^sum\(x.*  .*sum' "$W" doc sum
expect doc-of-module 0 '^linalg.svd\(' "$W" doc linalg.svd
expect doc-of-word 0 '^if: a reserved word' "$W" doc if
expect doc-of-file 0 '^Squares and their sums\.~~square\(x\)~  Squares x\.~  ~  > square\(3\)~.*nothing_said\(x\)~' \
  "$W" doc tested.weft
expect doc-of-nothing 1 '^weft doc: nowhere is not declared' "$W" doc nowhere
expect doc-no-name 1 '^weft doc: "1 \+ 1" is no name~$' "$W" doc '1 + 1'
expect doc-empty-name 1 '^weft doc: "" is no name~$' "$W" doc ''
printf '## Adds.\nfn add(a,\n       b=(1)) = a + b\n' >lines.weft
expect doc-of-several-lines 0 '^~add\(a,~       b=\(1\)\)~  Adds\.~$' "$W" doc lines.weft
expect doc-missing-file 2 '^weft: cannot read "nowhere.weft": No such file or directory~$' "$W" doc nowhere.weft
expect doc-missing 2 '^weft doc: a name or a file is missing~' "$W" doc

# ---- weft compile
printf 'let xs = [1, 2, 3]\nprint(sum(xs), args())\nfn bad(é) {\n  é + [1, 2]\n}\nbad(xs)\n' >made.weft
made='^6 \("a", "-b"\)~error: .*--> made.weft:4:3~'
expect compile 0 '^~$' "$W" compile -c made.weft
expect compiled-runs 1 "$made.*é \\+ \\[1, 2\\]" "$W" made.weftc a -b
expect compiled-is-the-same 1 '^~same' sh -c "'$W' made.weft a -b >one 2>&1; '$W' made.weftc a -b >two 2>&1
  cmp one two && echo && echo same && exit 1"
expect compile-strip 0 '^~$' "$W" compile -c --strip made.weft -o bare.weftc
expect compiled-stripped-runs 1 "$made" "$W" run bare.weftc a -b
expect compiled-stripped-shows-no-line 1 '^~$' sh -c "'$W' bare.weftc 2>&1 | grep -a '\[1, 2\]'"
expect compiled-from-stdin 0 '^2~$' sh -c "echo 'print(1 + 1)' | '$W' compile -c - -o in.weftc && '$W' - <in.weftc"
expect compiled-to-a-pipe 0 '^2~$' sh -c "'$W' compile -c two.weft -o /dev/stdout | '$W'"
expect compiled-explained 1 'what was compiled:' "$W" --explain made.weftc
expect compiled-exits 7 '^~$' sh -c "echo 'exit(7)' >seven.weft && '$W' compile -c seven.weft && '$W' seven.weftc"
printf 'let k = 5\n' >lib_made.weft
printf 'import "lib_made.weftc" as m\nprint(m.k)\n' >imports.weft
expect compiled-imports-compiled 0 '^5~$' sh -c "
  '$W' compile -c lib_made.weft && '$W' compile -c imports.weft -o imports.weftc && '$W' imports.weftc"
cp imports.weftc alone.weftc
mkdir -p elsewhere && cp imports.weftc elsewhere
expect compiled-import-lies-beside 1 'import: cannot read .*lib_made.weftc' "$W" elsewhere/imports.weftc
head -c 100 made.weftc >cut.weftc
expect compiled-cut 1 '^error: cannot load "cut.weftc": it was cut or changed since it was compiled~$' "$W" cut.weftc
(head -c 4 made.weftc && printf '\002' && tail -c +6 made.weftc) >other.weftc
expect compiled-by-another-version 1 \
  '^error: cannot load "other.weftc": it was compiled by another version of Weft: compile it again~$' "$W" other.weftc
expect compile-again 1 '^weft: "made.weftc" is compiled already~$' "$W" compile -c made.weftc
printf 'let x = nowhere\n' >unknown.weft
expect compile-error 1 '^error: nowhere is not declared.*~  --> unknown.weft:1:9' "$W" compile -c unknown.weft
expect compile-error-makes-no-file 1 '^~$' test -e unknown.weftc
expect compile-itself 2 '^weft compile: -o is the program itself: two.weft~' "$W" compile -c two.weft -o two.weft
expect compile-no-c 2 '^weft compile: -c is missing' "$W" compile two.weft
expect compile-no-file 2 '^weft compile: a file is missing~' "$W" compile -c
expect compile-two-files 2 '^weft compile: one file at a time: made.weft~' "$W" compile -c two.weft made.weft
expect compile-no-out 2 '^weft compile: a value is missing behind: -o~' "$W" compile -c two.weft -o
expect compile-stdin-no-out 2 '^weft compile: standard input needs -o~' "$W" compile -c -
expect compile-unknown-option 2 '^weft compile: unknown option: --fast~' "$W" compile -c --fast two.weft
expect compile-missing-file 2 '^weft: cannot read "nowhere.weft": No such file' "$W" compile -c nowhere.weft
expect compile-cannot-write 1 '^weft: cannot write "no/where.weftc": No such file' \
  "$W" compile -c two.weft -o no/where.weftc
expect compiled-is-no-text 1 'error' "$W" fmt made.weftc
expect wrong-limit 2 'fuel' "$W" --fuel many two.weft
expect backend-named 2 'WEFT_BACKEND' env WEFT_BACKEND=nonsense "$W" two.weft

# ---- the examples print the same compiled and eager, but for the report on compilation; the training loop is one
# compiled loop that leaves at its print; loops whose trips are much work are compiled before their 60th
examples=$(realpath "$d/../../../examples")
for example in digits sunspots; do
  for backend in eager mir; do
    (cd "$examples/.." && WEFT_BACKEND=$backend "$W" "examples/$example.weft") >"$example.$backend" 2>&1
  done
  if diff <(grep -v '^compiled:\|graph breaks' $example.eager) <(grep -v '^compiled:\|graph breaks' \
    $example.mir) >/dev/null && [ -s $example.mir ]; then
    echo "ok cli/example-$example"
  else
    echo "not ok cli/example-$example: $(diff $example.eager $example.mir | head -n 3 | tr '\n' '~')"
  fi
done
expect training-loop-compiled 0 'compiled: [0-9]+ regions.* [1-9][0-9]* loops lifted, [1-9][0-9]* with an exit' cat \
  digits.mir
heavy='let x = arange(300000) * 0.5
for i in 0..30 { x = x * 0.5 + 1 }
let s = trace.stats()
print(s.lifted_loops)'
expect heavy-loop-compiled 0 '^1~$' env WEFT_BACKEND=mir "$W" -e "$heavy"
expect light-loop-not-compiled 0 '^0~$' env WEFT_BACKEND=mir "$W" -e "${heavy//300000/300}"

# ---- imports of a program in another folder stand beside it
mkdir -p beside
printf 'let k = 41\n' >beside/part.weft
printf 'import "part.weft" as part\nprint(part.k + 1)\n' >beside/whole.weft
printf 'import "circle.weft" as me\n' >beside/circle.weft
expect import-beside-the-program 0 '^42~$' "$W" beside/whole.weft
expect import-of-the-program 1 'imports itself' "$W" beside/circle.weft

# ---- wrong input: each one clear error
wrong syntax 1 'expected|unexpected' 'let x = (1 +'
wrong undeclared 1 'x is not declared' 'x = 3'
wrong unknown-name 1 'valeu' 'let value = 1
print(valeu)'
wrong shapes 1 'do not align' 'let z = zeros((3, 4)) @ zeros((5, 2))'
wrong broadcast 1 '\(2,\).*\(3,\)' 'let z = [1, 2] + [1, 2, 3]'
wrong dtype-store 1 'i64.*f64|f64.*i64' 'let a = [1, 2]
a[0] = 2.5'
wrong bounds 1 'index 7.*axis 0.*size 3' 'let a = [1, 2, 3]
print(a[7])'
wrong missing-csv 1 'nowhere.csv' 'let t = load_csv("nowhere.csv")'
wrong missing-module 1 'nowhere.weft' 'import "nowhere.weft" as m'
printf 'a,b\n1,2\n3\n' >short.csv
wrong malformed-csv 1 'short.csv' 'let t = load_csv("short.csv")'
printf 'no numpy' >bad.npy
wrong malformed-npy 1 'bad.npy' 'let t = load_npy("bad.npy")'
wrong deep-recursion 1 'recursion|deep' 'fn f(n) = 1 + f(n + 1)
f(0)'
wrong fuel 1 'fuel' 'while true { }' --fuel 100000
wrong memory 1 'memory' 'let a = zeros(100000000)' --memory 10000000
wrong deadline 1 'deadline|time' 'let i = 0
while true { i += 1 }' --deadline 0.2
wrong zero-division 1 'zero' 'print(1 // 0)'
wrong text-plus-number 1 'text' 'print("a" + 1)'
wrong no-condition 1 'any' 'if [1, 2] { print(1) }'
wrong unknown-argument 1 'axsi' 'print(sum([1, 2], axsi=0))'
wrong missing-argument 1 'f' 'fn f(a, b) = a
f(1)'
wrong assertion 1 'told so' 'assert(1 > 2, "told so")'
wrong user-error 1 'mine' 'error("mine")'
wrong unsupported 1 'not supported' 'sort([1j])'
wrong single-quotes 1 '"' "print('a')"
wrong call-trace 1 'in inner' 'fn inner(x) { let y = x[9]; y }
fn outer(x) { let y = inner(x); y }
outer([1])'

# ---- interrupts: 130, also from a compiled loop
interrupt() { # NAME PROGRAM
  "$W" -e "$2" >"$1.out" 2>&1 </dev/null &
  local pid=$!
  sleep 0.7
  kill -INT $pid
  local rc
  ( sleep 60; kill -KILL $pid 2>/dev/null ) &
  local killer=$!
  wait $pid
  rc=$?
  kill -- -$killer 2>/dev/null
  if [ $rc -eq 130 ]; then echo "ok cli/$1"; else echo "not ok cli/$1: exit status $rc: $(head -c 200 "$1.out")"; fi
}
set -m # a background job would ignore SIGINT otherwise
interrupt interrupt-loop 'let i = 0; while true { i += 1 }' 2>/dev/null
interrupt interrupt-compiled \
  'fn f(n) { let s = 0.0; let i = 0; while i < n { s += 0.5; i += 1 }; s }; f(100000); f(1000000000000)' 2>/dev/null
interrupt interrupt-kernels \
  'fn f(x) = sum(exp(x) * 2 - x); let x = arange(100000) * 1.0; while true { f(x) }' 2>/dev/null

interrupt interrupt-pipe 'read_text("data_pipe")' 2>/dev/null
set +m

# ---- the REPL goes on after an error (tests/prompt drives it at a terminal)
repl() { # NAME PATTERN LINES...
  local name=$1 pattern=$2 out
  shift 2
  out=$(printf '%s\n' "$@" | HOME=$d timeout 120 "$W" -i 2>&1)
  if grep -qE -- "$pattern" <<<"$(tr '\n' '~' <<<"$out")"; then
    echo "ok cli/$name"
  else
    echo "not ok cli/$name: said $(tr '\n' '~' <<<"$out" | head -c 300)"
  fi
}
repl repl-value '3' '1 + 2'
repl repl-goes-on 'error: .*42' 'y + 1' '40 + 2'
repl repl-declares '9' 'x = 9' 'x'
repl repl-many-lines '5' 'fn f(a) {' '  a + 2' '}' 'f(3)'
repl repl-help ':graph' ':help'
again=('fn f(x) = sum(x * 2)' 'for i in 0..40 { f(ones(3)) }' 'for i in 0..40 { f(arange(4)) }')
repl repl-why 'recompiled at <repl:1>:1:15: a guard missed: type\(x\), wanted f64 of rank 1, got i64 of rank 1' \
  "${again[@]}" ':why'
repl repl-why-nothing 'nothing broke or missed so far' ':why'
repl repl-breaks 'break at <repl:1>:1:28: output: print' 'fn g(x) { let y = x + 1.0; print("x"); y * 2 }' \
  'for i in 0..40 { g(1.0) }' ':breaks g'
repl repl-stats 'compiles: +2,~ recompiles: +1' "${again[@]}" ':stats f'
repl repl-guards 'type\(x\) +because @1:15' "${again[@]}" ':guards f'
repl repl-graph 'multiply %1 2' "${again[@]}" ':graph f'

# ---- docs/explain.md: the lines that it quotes of a command are lines that the command says
quoted() { # COMMAND
  awk -v want="\$ $1" '$0 == want { on = 1; next } /^```/ { on = 0 } on' "$examples/../docs/explain.md" |
    grep -v 'compiled in'
}
for command in 'weft examples/explain/step1.weft' 'weft examples/explain/step2.weft' \
  'weft examples/explain/step3.weft' 'WEFT_LOG=recompiles weft examples/explain/step3.weft' \
  'weft examples/explain/step4.weft'; do
  name=explain-page-$(basename "$command" .weft)
  case $command in WEFT_LOG*) name=$name-log ;; esac
  quoted "$command" >"$name.wanted"
  (cd "$examples/.." && env WEFT_BACKEND=mir ${command/weft/$W}) >"$name.said" 2>&1
  missing=$(grep -vxFf "$name.said" "$name.wanted")
  if [ ! -s "$name.wanted" ]; then echo "not ok cli/$name: the page does not quote it"
  elif [ -n "$missing" ]; then echo "not ok cli/$name: it does not say: $(head -n 1 <<<"$missing")"
  else echo "ok cli/$name"; fi
done
wrong explain-page-strict 1 'trace.strict: a recompile: type\(a\), wanted weak i64, got weak f64' \
  "$(sed 's/jit(miss)/trace.strict(miss)/; s|"examples/|"'"$examples"'/|' "$examples/explain/step3.weft")"

# ---- the log: as JSON, and as spans for a trace viewer; both also when the program fails
echo 'fn f(x) = sum(x * 2)
for i in 0..40 { f(ones(3)) }
for i in 0..40 { f(arange(4)) }
f(1, 2)' >logged.weft
expect log-file-fails-with-program 1 'argument' "$W" --log-file log.json --trace-file spans.json logged.weft
told='"kind": "miss", "reason": "a guard missed", "guard": "type\(x\)", "wanted": "f64 of rank 1", '
expect log-file 0 "$told"'"got": "i64 of rank 1", "file": "logged.weft", "line": 1' cat log.json
expect log-file-phases 0 \
  '"phases_us": \{"record": [0-9.]+, "simplify": [0-9.]+, "guards": [0-9.]+, "compile": [0-9.]+\}' cat log.json
expect trace-file 0 '"traceEvents": .*"name": "f#1", "cat": "run", "ph": "X"' cat spans.json
expect log-file-by-environment 0 'counters' sh -c "WEFT_LOG_FILE=env.json '$W' two.weft >/dev/null; cat env.json"
echo 'fn f(x) = x * 2.0 + 1.0
let y = f(ones(1000))' >profiled.weft
expect profile 0 'of roof +kernel.*f#1 k1 \(line 1, 2 operations\).*spans: profiled\.trace\.json' env WEFT_HOT=0 "$W" \
  --profile profiled.weft
expect profile-spans 0 '"traceEvents": .*"name": "f#1", "cat": "run", "ph": "X"' cat profiled.trace.json
echo 'let s = 0.0
let x = ones(1000)
for k in 0..40 { s += sum(x * k) }' >module.weft
expect profile-of-module-code 0 ' [0-9]+ +[0-9.]+ .* main#[0-9]+ [kr][12] \(line 3, 2 operations\)' env WEFT_HOT=0 \
  "$W" --profile module.weft
expect log-of-module-code 0 '"regions": \[.*"name": "main#[0-9]+"' \
  sh -c "WEFT_HOT=0 '$W' --log-file module.json module.weft; cat module.json"
cat >late.weft <<'END'
fn f(a, b, c, d) {
  let n = a.shape[0]
  let s = 0
  for t in 0..n {
    for i in 0..n { d = c }
    for i in 0..n {
      d[(i + 1) % n] += (d[t] + a[(i + 1) % n] )
      for j in 0..n {
        b[t] += (a[i] + b[i] )
        if c[i] % 2 == 0 {
        } else { s += 1 }
        s = (s + sum(b) + a[(n - 1 - i)])
      }
    }
  }
}
for r in 0..3 { let n = 4 + r
let a = arange(n) * 7 % 11
print(f(a, a, a + 1, a * 2)) }
END
expect exits-inside-make-again-what-is-stored-late 0 '^nil~nil~nil~$' env WEFT_HOT=0 WEFT_FORCE='exits 2' "$W" late.weft
expect profile-needs-a-file 2 'profile needs a file' "$W" --profile
expect log-file-unwritable 1 'cannot write "/nowhere/x.json"' "$W" --log-file /nowhere/x.json two.weft
expect hot-no-number 2 'WEFT_HOT must be a whole number' env WEFT_HOT=soon "$W" -e 1
expect hot-negative 2 'WEFT_HOT must be' env WEFT_HOT=-1 "$W" -e 1
expect threads-negative 2 'WEFT_THREADS must be' env WEFT_THREADS=-3 "$W" -e 1
# a function that calls itself: calls that are made twice in the program are made once, which 10^16 of them need
expect calls-made-once 0 '^23416728348467685~' env WEFT_HOT=0 timeout 120 \
  "$W" -e 'fn fib(n) { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
print(fib(80))'
expect read-line-not-utf8 1 'io error: read_line: the line is not UTF-8|read_line: the line is not UTF-8' \
  sh -c 'printf "a\377b\n" | "$0" -e "codes(read_line())"' "$W"
mkfifo asked answered
expect read-line-shows-first 0 '^you~' bash -c '
  "$0" -e "print(\"name?\"); print(read_line())" <answered >asked &
  exec 3>answered 4<asked
  read -r -t 10 question <&4 && [ "$question" = "name?" ] && echo you >&3 && read -r -t 10 answer <&4 && echo "$answer"
' "$W"
expect read-line-utf8 0 '^\[228\]~' sh -c 'printf "\303\244\n" | "$0" -e "codes(read_line())"' "$W"
expect env-not-utf8 1 'env: the variable is not UTF-8' sh -c 'X=$(printf "\370\370") exec "$0" -e "codes(env(\"X\"))"' \
  "$W"
expect args-not-utf8 1 'args: an argument is not UTF-8' \
  sh -c 'echo "print(len(args()))" >args.weft; exec "$0" args.weft ok "$(printf "\200\200")"' "$W"
expect log-unknown 2 'WEFT_LOG is unknown .*: bogus' env WEFT_LOG=graph,bogus "$W" -e 1
expect output-refused 1 'cannot write to standard output: No space left' sh -c '"$0" -e "print(1)" >/dev/full' "$W"
expect file-limit 0 'cannot write "limited": File too large' \
  sh -c '(ulimit -f 0; exec "$0" -e "write_text(\"limited\", \"abc\")" 2>&1) | cat' "$W"
expect output-refused-once 1 '^1~$' \
  sh -c '"$0" -e "print(1)" 2>&1 >/dev/full | grep -c "cannot write"; "$0" -e "print(1)" >/dev/full 2>/dev/null' "$W"
for said in --help --version '-e 1'; do
  # shellcheck disable=SC2086
  expect "output-refused-$said" 1 '^weft: cannot write to standard output: No space left on device~$' \
    sh -c "'$W' $said >/dev/full"
done
# who writes into a full pipe stops by an interrupt, and what was printed before is whole
expect output-interrupted 0 '130 whole~$' bash -c 'set -m; mkfifo slow_pipe
  "$0" -e "for i in 0..1000000 { print(i) }" >slow_pipe 2>slow_error & pid=$!
  exec 3<slow_pipe; set +m; sleep 0.5; kill -INT $pid; sleep 0.2; cat <&3 >slow_out; wait $pid; rc=$?
  last=$(tail -n 1 slow_out); [ "$(wc -l <slow_out)" -eq $((last + 1)) ] && echo "$rc whole"' "$W"
WEFT_LOG=recompiles repl repl-redefined 'a function it relied on was replaced: k.*recompiles.*1' 'fn k(x) = x + 1' \
  'fn f(x) = sum(k(x) * 2)' 'for i in 0..60 { f(arange(4.0)) }' 'fn k(x) = x + 10' \
  'for i in 0..60 { f(arange(4.0)) }' '("recompiles", trace.stats(f).recompiles)'
WEFT_HOT=0 repl repl-ptx '\.visible \.entry.*fma\.rn\.f64|\.visible \.entry.*mul\.rn\.f64.*st\.global\.f64' \
  'fn f(x) = x * 2.5 + 1.0' 'f(ones(5))' ':ptx f'
WEFT_CPU=strip WEFT_HOT=0 repl repl-mir 'dmov.*endfunc' 'fn f(x) = x * 2.5 + 1.0' 'f(ones(5))' ':mir f'
# a place that is read and written is an address both times, in a loop whose indices may count from the end
WEFT_HOT=0 repl repl-mir-places 'i64:\((v[0-9]+), (v[0-9]+), 8\)~.*L[0-9]+:~.*i64:\(\1, \2, 8\), v' \
  'fn f(a, i, j) { while i < j { (a[i], a[j]) = (a[j], a[i]); i += 1; j -= 1 }; a }' 'f(arange(9), 0, 8)' ':mir f'
WEFT_CPU=avx2 WEFT_HOT=0 repl repl-asm 'f.*bytes' 'fn f(x) = x * 2.5 + 1.0' 'f(ones(5))' ':asm f'

# ---- the GPU: what is said without a driver, and when the driver fails (a stand-in that does as it is told)
mock=$(dirname "$W")/tests/libcuda.so
if [ -e "$mock" ]; then
  mock=$(realpath "$mock")
  gpu() { # NAME CODE PATTERN 'ENVIRONMENT' CODE
    # shellcheck disable=SC2086
    expect "$1" "$2" "$3" env WEFT_CUDA_DRIVER="$mock" $4 "$W" -e "$5"
  }
  expect gpu-no-driver 1 'the GPU cannot be used: no CUDA driver was found: .*nowhere' env \
    WEFT_CUDA_DRIVER="$d/nowhere.so" "$W" -e 'to(1.0, "gpu")'
  expect gpu-no-driver-ptx 1 'WEFT_BACKEND is ptx: the GPU cannot be used: no CUDA driver' env \
    WEFT_CUDA_DRIVER="$d/nowhere.so" WEFT_BACKEND=ptx "$W" -e 1
  gpu gpu-value 0 '^\[2.0, 4.0\]~$' '' 'print(to([1.0, 2.0], "gpu") * 2.0)'
  gpu gpu-no-card 1 'does not start' WEFT_MOCK_FAIL=cuDeviceGetCount 'to(1.0, "gpu")'
  gpu gpu-no-start 1 'does not start: cuInit was told to fail' WEFT_MOCK_FAIL=cuInit 'to(1.0, "gpu")'
  gpu gpu-copy-fails 1 'the GPU failed: copying to it: cuMemcpyHtoD was told to fail' WEFT_MOCK_FAIL=cuMemcpyHtoD \
    'to([1.0], "gpu")'
  gpu gpu-copy-back-fails 1 'the GPU failed: copying from it: cuMemcpyDtoH' WEFT_MOCK_FAIL=cuMemcpyDtoH \
    'to(to([1.0], "gpu"), "cpu")'
  gpu gpu-memory 1 'the GPU has no memory for [0-9]+ bytes: arrays hold' WEFT_MOCK_MEMORY=100000 \
    'to(ones(20000), "gpu")'
  gpu gpu-memory-again 0 '^40000.0~$' WEFT_MOCK_MEMORY=400000 \
    'let s = 0.0; for i in 0..8 { s += sum(to(ones(5000), "gpu")) }; print(s)'
  gpu gpu-memory-given-back 0 '^30000.0~$' WEFT_MOCK_MEMORY=300000 \
    'fn f(n) = sum(to(ones(n), "gpu")); print(f(2000) + f(5000) + f(23000))'
  gpu gpu-launch-fails 1 'the GPU failed' WEFT_MOCK_FAIL=cuLaunchKernel 'print(to([1.0], "gpu") * 2.0)'
  gpu gpu-zero-fails 1 'the GPU failed: .*cuMemsetD8 was told to fail' WEFT_MOCK_FAIL=cuMemsetD8 \
    'print(cumsum(to(ones(9000), "gpu"))[0])'
  gpu gpu-zero-fails-mask 1 'the GPU failed: nonzero: cuMemsetD8 was told' WEFT_MOCK_FAIL=cuMemsetD8 \
    'let x = to(ones(9), "gpu"); print(x[x > 0.0])'
  # two arrays of 128 KB and the cells, and nothing for what the blocks of a scan hand on
  gpu gpu-no-scratch 0 '^9000.0~$' WEFT_MOCK_MEMORY=270400 'print(cumsum(to(ones(9000), "gpu"))[8999])'
  # faults in kernels that the stand-in sees, or that make another result
  gpu gpu-plant-no-meeting 1 'two threads use a place in shared memory between meetings' WEFT_MOCK_PLANT=no-meeting \
    'print(cumsum(to(ones(9000), "gpu"))[0])'
  gpu gpu-plant-silent 1 'it does not end' 'WEFT_MOCK_PLANT=silent WEFT_MOCK_STEPS=3000000' \
    'print(cumsum(to(ones(9000), "gpu"))[0])'
  gpu gpu-no-tie 0 '^0~$' '' 'print(argmax(to(ones(50000), "gpu")))'
  gpu gpu-plant-tie 0 '^[1-9][0-9]*~$' WEFT_MOCK_PLANT=tie 'print(argmax(to(ones(50000), "gpu")))'
  # products of halves: on tensor cores, and on a card without them
  product='let x = f16(reshape(arange(1040) * 5 % 7 - 3, (130, 8))); let y = f16(reshape(arange(800) % 5, (8, 100)))
    print(all(to(to(x, "gpu") @ to(y, "gpu"), "cpu") == x @ y))'
  gpu gpu-product 0 '^true~$' '' "$product"
  gpu gpu-product-old-card 0 '^true~$' 'WEFT_MOCK_CAPABILITY=75 WEFT_MOCK_FAIL=cuFuncSetAttribute' "$product"
  gpu gpu-product-fails 1 'the GPU failed: matmul: cuFuncSetAttribute' WEFT_MOCK_FAIL=cuFuncSetAttribute "$product"
  gpu gpu-plant-fragment 0 '^false~$' WEFT_MOCK_PLANT=fragment "$product"
  gpu gpu-plant-product-no-meeting 1 'two threads use a place in shared' WEFT_MOCK_PLANT=no-meeting "$product"
  # products of integers, whose bytes lie in 32 bits in shared memory
  integers='let x = reshape(u8(arange(1300) * 7 % 256), (130, 10)); let y = reshape(u8(arange(1000) % 251), (10, 100))
    print(all(to(to(x, "gpu") @ to(y, "gpu"), "cpu") == x @ y))'
  gpu gpu-integers 0 '^true~$' '' "$integers"
  gpu gpu-integers-launch 1 'the GPU failed: matmul: cuLaunchKernel' WEFT_MOCK_FAIL=cuLaunchKernel "$integers"
  gpu gpu-plant-forget 0 '^false~$' WEFT_MOCK_PLANT=forget "$integers"
  gpu gpu-plant-integers-no-meeting 1 'two threads use a place in shared' WEFT_MOCK_PLANT=no-meeting "$integers"
  # halves with a kernel behind the product in it, which is one launch; two where the driver says that it spills
  layer='fn layer(x, y, b) = maximum(x @ y + b, 0.0)
    let x = f16(reshape(arange(1040) * 5 % 7 - 3, (130, 8))); let y = f16(reshape(arange(832) % 5, (8, 104)))
    let (a, b) = (to(x, "gpu"), to(y, "gpu")); let before = trace.stats().launches; let z = layer(a, b, b[0])
    print(trace.stats().launches - before, all(to(z, "cpu") == layer(x, y, y[0])))'
  gpu gpu-layer 0 '^1 true~$' WEFT_HOT=0 "$layer"
  gpu gpu-layer-spills 0 '^2 true~$' 'WEFT_HOT=0 WEFT_MOCK_SPILLS=8' "$layer"
  gpu gpu-layer-load-fails 0 '^2 true~$' 'WEFT_HOT=0 WEFT_MOCK_FAIL=cuModuleLoadDataEx@2' "$layer"
  gpu gpu-plant-layer-fragment 0 '^1 false~$' 'WEFT_HOT=0 WEFT_MOCK_PLANT=fragment' "$layer"
  gpu gpu-plant-layer-no-meeting 1 'two threads use a place in shared' 'WEFT_HOT=0 WEFT_MOCK_PLANT=no-meeting' "$layer"
  gpu gpu-load-fails 0 'weft: demote: .*cuModuleLoadDataEx was told to fail.*~\[2.0\]~$' \
    'WEFT_LOG=breaks WEFT_MOCK_FAIL=cuModuleLoadDataEx' 'print(to([1.0], "gpu") * 2.0)'

  # compiled kernels in files: what a process compiled the next one only loads, and a broken entry is made again
  kept() { # NAME COMPILED LOADED 'ENVIRONMENT'
    # shellcheck disable=SC2086
    expect "$1" 0 "^\\[2.0, 4.0\\] 3.0~$2 compiled, $3 loaded~\$" env WEFT_CUDA_DRIVER="$mock" WEFT_CACHE="$d/kernels" \
      WEFT_MOCK_COUNT="$d/count" env $4 sh -c 'rm -f "$WEFT_MOCK_COUNT"; "$0" -e "$1" &&
        echo "$(grep -c compiled "$WEFT_MOCK_COUNT") compiled, $(grep -c loaded "$WEFT_MOCK_COUNT") loaded"' \
      "$W" 'let x = to([1.0, 2.0], "gpu"); print(x * 2.0, sum(x))'
  }
  kept cache-first 2 2 ''
  kept cache-second 0 2 ''
  kept cache-other-card 2 2 WEFT_MOCK_CAPABILITY=86
  kept cache-two-cards 0 2 ''
  for entry in kernels/*.cubin; do printf x | dd of="$entry" bs=1 seek=2000 conv=notrunc 2>dd.log; done
  kept cache-changed 2 2 ''
  for entry in kernels/*.cubin; do truncate -s -1 "$entry"; done
  kept cache-short 2 2 ''
  for entry in kernels/*.cubin; do : >"$entry"; done
  kept cache-empty 2 2 ''
  for entry in kernels/*.cubin; do rm "$entry" && mkdir "$entry"; done
  kept cache-no-files 2 2 ''
  rmdir kernels/*.cubin
  kept cache-again 2 2 ''
  kept cache-whole 0 2 ''
  # whole, and the driver refuses the code: counted are the texts that were compiled again, and their code
  kept cache-refused 2 2 WEFT_MOCK_BUILD=2
  kept cache-refused-then-kept 0 2 WEFT_MOCK_BUILD=2
  chmod 777 kernels
  kept cache-of-everybody 2 0 ''
  chmod 700 kernels
  kept cache-off 2 0 WEFT_CACHE=
  kept cache-nowhere 2 0 WEFT_CACHE=/proc/nowhere
  for refused in cuLinkCreate cuLinkAddData; do
    kept "cache-$refused" 2 0 "WEFT_CACHE=$d/kernels2 WEFT_MOCK_FAIL=$refused"
  done
  kept cache-cuLinkComplete 4 0 "WEFT_CACHE=$d/kernels2 WEFT_MOCK_FAIL=cuLinkComplete"
  expect cache-refused-keeps-nothing 0 '^0~$' sh -c 'ls -A kernels2 | wc -l'
  kept cache-home 2 2 "-u WEFT_CACHE -u XDG_CACHE_HOME HOME=$d/home"
  kept cache-home-again 0 2 "WEFT_CACHE=$d/home/.cache/weft"
  # several processes at once
  for i in 1 2 3 4 5 6; do
    WEFT_CUDA_DRIVER=$mock WEFT_CACHE=$d/kernels3 "$W" -e 'print(sum(to(ones(9), "gpu") * 3.0))' >"at-once-$i" 2>&1 &
  done
  wait
  expect cache-at-once 0 '^6~$' sh -c 'cat at-once-? | grep -c "^27.0$"'
fi

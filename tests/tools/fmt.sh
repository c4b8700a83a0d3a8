#!/bin/bash
# Tests `weft fmt`: one layout by example, every program of the tree, and what can go wrong with files.
set -u
cd "$(dirname "$0")/../.." || exit 1
W=$(realpath "${WEFT:-build/weft}")
d=$PWD/build/check/fmt
rm -rf "$d"
mkdir -p "$d/all"

say() { # say NAME CONDITION-RESULT WHY
  if [ "$2" -eq 0 ]; then echo "ok fmt/$1"; else echo "not ok fmt/$1: $3"; fi
}

# ---- the layout, by example
cat >"$d/messy.weft" <<'END'
#!/usr/bin/env weft
let   x=[1,2,3] ;let y= -x



fn f( a,b = 2 , ...rest )  { # comment
let c=a+b*-2
      if c>1 and not(c==3){ c } else if c<0 { -c }
      else { ~c }
}
let r={a:1,b : {c: [1,
                    2, 3]}}
let { a,b }=r
print( f"{x[0]:.2f} a  { y }" , x[1:,nil] , x[ ... , 0],x[ : , ::2 ][-1 :])
map(v=>{
v+1
},x)
let q =
3+
4
x|>sum|>print
fn g(x:f64[n,d])=x.T@x ** 2
let h=fn ( x ){ x }
try { g( 1 ) } catch e {print(e.message) }
for (k,v) in r { if k==nil {continue}
  # a comment that has a line
 }
let e = {  }
while(false) {}
x [0]+=1
let t = """kept
   as   it is"""
END
cat >"$d/neat.weft" <<'END'
#!/usr/bin/env weft
let x = [1, 2, 3]; let y = -x


fn f(a, b=2, ...rest) { # comment
  let c = a + b * -2
  if c > 1 and not (c == 3) { c } else if c < 0 { -c }
  else { ~c }
}
let r = {a: 1, b: {c: [1,
                       2, 3]}}
let {a, b} = r
print(f"{x[0]:.2f} a  { y }", x[1:, nil], x[..., 0], x[:, ::2][-1:])
map(v => {
  v + 1
}, x)
let q =
  3 +
  4
x |> sum |> print
fn g(x: f64[n, d]) = x.T @ x ** 2
let h = fn(x) { x }
try { g(1) } catch e { print(e.message) }
for (k, v) in r { if k == nil { continue }
  # a comment that has a line
}
let e = {}
while (false) { }
x[0] += 1
let t = """kept
   as   it is"""
END
"$W" fmt - <"$d/messy.weft" >"$d/got.weft"
diff "$d/neat.weft" "$d/got.weft" >"$d/diff"
say example $? "$(head -n 6 "$d/diff" | tr '\n' '~')"
"$W" fmt --check "$d/neat.weft" >/dev/null
say neat-stays $? "neat.weft is not neat"

# ---- every program of the tree: nothing but blanks changes, and a second time nothing at all
files=0 wrong='' again=''
for f in tests/cases/*.weft tests/bugs/*.weft examples/*.weft examples/*/*.weft stdlib/modules/*.weft bench/*.weft \
  bench/*/*.weft; do
  to=$d/all/${f//\//_}
  "$W" fmt - <"$f" >"$to" 2>/dev/null || continue # a case of an error of syntax
  files=$((files + 1))
  cmp -s <(tr -d ' \t\n' <"$f") <(tr -d ' \t\n' <"$to") || wrong+=" $f"
  "$W" fmt --check "$to" >/dev/null || again+=" $f"
done
[ -z "$wrong" ]; say changes-only-blanks $? "$wrong"
[ -z "$again" ]; say twice-is-once $? "$again"
[ $files -gt 300 ]; say many-programs $? "only $files"
# programs run as before
"$W" fmt - <examples/programs/life.weft >"$d/life.weft"
cmp -s <("$W" examples/programs/life.weft) <("$W" "$d/life.weft")
say runs-as-before $? "another output"
out=$("$W" fmt --check stdlib/modules/*.weft examples/*.weft examples/*/*.weft)
say own-programs-are-neat $? "$out"

# ---- files
cp "$d/messy.weft" "$d/file.weft"
chmod 640 "$d/file.weft"
ln -s file.weft "$d/link.weft"
out=$("$W" fmt --check "$d/link.weft")
[ $? -eq 1 ] && [ "$out" = "$d/link.weft" ] && cmp -s "$d/messy.weft" "$d/file.weft"
say check-tells-and-leaves $? "$out"
"$W" fmt "$d/link.weft" && cmp -s "$d/file.weft" "$d/neat.weft" && [ -L "$d/link.weft" ] &&
  [ "$(stat -c %a "$d/file.weft")" = 640 ]
say in-place $? "$(ls -l "$d/file.weft" "$d/link.weft")"
printf 'let a = (1,\n' >"$d/broken.weft"
printf 'let  b=1\n' >"$d/other.weft"
out=$("$W" fmt "$d/broken.weft" "$d/none.weft" "$d/other.weft" 2>&1)
[ $? -eq 1 ] && grep -q 'broken.weft:1:' <<<"$out" && grep -q 'cannot read ".*none.weft": No such file' <<<"$out" &&
  [ "$(cat "$d/broken.weft")" = 'let a = (1,' ] && [ "$(cat "$d/other.weft")" = 'let b = 1' ]
say one-error-does-not-stop-the-others $? "$(tr '\n' '~' <<<"$out")"
out=$("$W" fmt 2>&1)
[ $? -eq 2 ] && [ "$(wc -l <<<"$out")" -eq 2 ]
say no-file $? "$out"
out=$("$W" fmt --nope 2>&1)
[ $? -eq 2 ] && grep -q 'unknown option: --nope' <<<"$out"
say wrong-option $? "$out"
[ "$(printf '' | "$W" fmt -)" = '' ]; say empty $? 'an empty program is not empty'

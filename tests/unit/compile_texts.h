/* compile_texts.h — programs and the code they compile to (test_compile.c). */
{"literals",
 "(nil, true, 2, -2.5, \"a\\\"b\", -3)",
 "fn () registers 6\n"
 "0000 move r0 k0(nil)\n"
 "0001 move r1 k1(true)\n"
 "0002 move r2 k2(2)\n"
 "0003 move r3 k3(-2.5)\n"
 "0004 move r4 k4(\"a\\\"b\")\n"
 "0005 move r5 k5(-3)\n"
 "0006 list r0 r0..r5*\n"
 "0007 ret r0*\n"},

{"operators on variables die at their last use",
 "fn f(a, b) { let c = a * b; c - a }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a, b) registers 4\n"
 "0000 mul r2 r0 r1*\n"
 "0001 sub r3 r2* r0*\n"
 "0002 ret r3*\n"},

{"a = a + 1 is in place",
 "fn f(a) { a = a + 1; a }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 1\n"
 "0000 add r0 r0* k0(1)\n"
 "0001 ret r0*\n"},

{"x = g(x) moves its argument",
 "fn f(x, g) { x = g(x); x }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(x, g) registers 4\n"
 "0000 move r2 r1*\n"
 "0001 move r3 r0*\n"
 "0002 call r0 r2..r3*\n"
 "0003 ret r0*\n"},

{"xs += (v,)",
 "fn f(xs, v) { xs += (v,); xs }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(xs, v) registers 3\n"
 "0000 move r2 r1*\n"
 "0001 list r2 r2*\n"
 "0002 add r0 r0* r2*\n"
 "0003 ret r0*\n"},

{"the same register twice",
 "fn f(x) = x * x",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(x) registers 2\n"
 "0000 mul r1 r0 r0*\n"
 "0001 ret r1*\n"},

{"module variables",
 "let n = 1; fn f() { n += 1; n = n * 2; n = f() }",
 "fn () registers 1\n"
 "0000 setmod k0(1) n\n"
 "0001 closure r0 f0(f)\n"
 "0002 setmod r0 f\n"
 "0003 ret r0*\n"
 "f0: fn f() registers 1\n"
 "0000 move r0 k0(1)\n"
 "0001 setpath n add= r0*\n"
 "0002 move r0 k1(2)\n"
 "0003 setpath n mul= r0*\n"
 "0004 getmod r0 f\n"
 "0005 call r0 r0*\n"
 "0006 setmod r0* n\n"
 "0007 ret k2(nil)\n"},

{"path",
 "fn f(r, i, v) { r.w[i, 1:, ...] = v; r.w[2].x += v; r }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(r, i, v) registers 8\n"
 "0000 move r3 r1*\n"
 "0001 move r4 k0(1)\n"
 "0002 move r5 k1(nil)\n"
 "0003 move r6 k1(nil)\n"
 "0004 move r7 r2\n"
 "0005 setpath r0.w[_, _:_:_, ...] r3..r7*\n"
 "0006 move r3 k2(2)\n"
 "0007 move r4 r2*\n"
 "0008 setpath r0.w[_].x add= r3..r4*\n"
 "0009 ret r0*\n"},

{"path of a module variable, of a cell",
 "let a = 1; fn f(c) { a[0] = c; () => { c.value += 1 } }",
 "fn () registers 1\n"
 "0000 setmod k0(1) a\n"
 "0001 closure r0 f0(f)\n"
 "0002 setmod r0 f\n"
 "0003 ret r0*\n"
 "f0: fn f(c) registers 3\n"
 "0000 move r1 k0(0)\n"
 "0001 move r2 r0\n"
 "0002 setpath a[_] r1..r2*\n"
 "0003 closure r1 f0()\n"
 "0004 ret r1*\n"
 "f0: fn () registers 2 captures c=r0\n"
 "0000 getcap r0 0\n"
 "0001 move r1 k0(1)\n"
 "0002 setpath r0 fixed.value add= r1*\n"
 "0003 ret k1(nil)\n"},

{"index forms",
 "fn f(a, i) = (a[i], a[i, nil], a[::2], a[..., 0])",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a, i) registers 10\n"
 "0000 index r2 r0 r1\n"
 "0001 move r6 r0\n"
 "0002 move r7 r1*\n"
 "0003 indexn r3 r6..r7* [_, nil]\n"
 "0004 move r6 r0\n"
 "0005 move r7 k0(nil)\n"
 "0006 move r8 k0(nil)\n"
 "0007 move r9 k1(2)\n"
 "0008 indexn r4 r6..r9* [_:_:_]\n"
 "0009 move r6 r0*\n"
 "0010 move r7 k2(0)\n"
 "0011 indexn r5 r6..r7* [..., _]\n"
 "0012 list r2 r2..r5*\n"
 "0013 ret r2*\n"},

{"if as a value and for its effect",
 "fn f(a) { if a { a() }; let b = if a { 1 } else if a() { 2 }; b + 1 }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 3\n"
 "0000 jnot r0 -> 0003\n"
 "0001 move r1 r0\n"
 "0002 call r1 r1*\n"
 "0003 jnot r0 -> 0006\n"
 "0004 move r1 k0(1)\n"
 "0005 jump -> 0012\n"
 "0006 move r2 r0*\n"
 "0007 call r2 r2*\n"
 "0008 jnot r2* -> 0011\n"
 "0009 move r1 k1(2)\n"
 "0010 jump -> 0012\n"
 "0011 move r1 k2(nil)\n"
 "0012 add r2 r1* k0(1)\n"
 "0013 ret r2*\n"
 "if 0..3 head 1 else 3 writes r1\n"
 "if 3..12 head 4 else 6 writes r1 r2\n"
 "if 8..12 head 9 else 11 in 2 writes r1\n"},

{"if in tail position",
 "fn f(a) = if a { f(1) } else { a }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 3\n"
 "0000 jnot r0 -> 0004\n"
 "0001 getmod r1 f\n"
 "0002 move r2 k0(1)\n"
 "0003 tail r1..r2*\n"
 "0004 ret r0*\n"
 "if 0..5 head 1 else 4 writes r1 r2\n"},

{"and, or, not",
 "fn f(a, b, c) = a and not b or c",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a, b, c) registers 4\n"
 "0000 truth r3 r0*\n"
 "0001 jnot r3 -> 0003\n"
 "0002 not r3 r1*\n"
 "0003 jif r3 -> 0005\n"
 "0004 truth r3 r2*\n"
 "0005 ret r3*\n"
 "if 1..3 head 2 else 3 writes r3\n"
 "if 3..5 head 4 else 5 writes r3\n"},

{"chained comparison",
 "fn f(a, b) = 1 < a <= b < 3",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a, b) registers 3\n"
 "0000 lt r2 k0(1) r0\n"
 "0001 jnot r2 -> 0006\n"
 "0002 le r2 r0* r1\n"
 "0003 jnot r2 -> 0006\n"
 "0004 lt r2 r1* k1(3)\n"
 "0005 truth r2 r2*\n"
 "0006 ret r2*\n"
 "if 1..6 head 2 else 6 writes r2\n"
 "if 3..6 head 4 else 6 in 1 writes r2\n"},

{"while with break and continue",
 "fn f(a) { while a { if a() { break }; if a(1) { continue }; a(2) } }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 4\n"
 "0000 jnot r0 -> 0014\n"
 "0001 move r2 r0\n"
 "0002 call r2 r2*\n"
 "0003 jnot r2* -> 0005\n"
 "0004 jump -> 0014\n"
 "0005 move r2 r0\n"
 "0006 move r3 k0(1)\n"
 "0007 call r2 r2..r3*\n"
 "0008 jnot r2* -> 0010\n"
 "0009 jump -> 0013\n"
 "0010 move r2 r0\n"
 "0011 move r3 k1(2)\n"
 "0012 call r2 r2..r3*\n"
 "0013 loop -> 0000\n"
 "0014 move r1 k2(nil)\n"
 "0015 ret r1*\n"
 "while 0..14 head 0 else 13 writes r2 r3\n"
 "if 3..5 head 4 else 5 in 1\n"
 "if 8..10 head 9 else 10 in 1\n"},

{"for over a pattern",
 "fn f(xs) { for (i, x) in xs { i(x) }; xs[0] = 1; xs }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(xs) registers 9\n"
 "0000 forprep r1 r0\n"
 "0001 fornext r1 -> 0007\n"
 "0002 unpack r5..r6 r4* (2)\n"
 "0003 move r7 r5*\n"
 "0004 move r8 r6*\n"
 "0005 call r7 r7..r8*\n"
 "0006 loop -> 0001\n"
 "0007 move r1 k0(nil)\n"
 "0008 move r1 k1(0)\n"
 "0009 move r2 k2(1)\n"
 "0010 setpath r0[_] r1..r2*\n"
 "0011 ret r0*\n"
 "for 0..7 head 1 else 6 writes r1 r2 r3 r4 r5 r6 r7 r8\n"},

{"for over a range",
 "fn f(n) { let s = 0; for i in 0..n by 2 { s += i }; s }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(n) registers 9\n"
 "0000 move r1 k0(0)\n"
 "0001 move r6 k0(0)\n"
 "0002 move r7 r0*\n"
 "0003 move r8 k1(2)\n"
 "0004 range r6 r6..r8*\n"
 "0005 forprep r2 r6*\n"
 "0006 fornext r2 -> 0009\n"
 "0007 add r1 r1* r5*\n"
 "0008 loop -> 0006\n"
 "0009 ret r1*\n"
 "for 5..9 head 6 else 8 writes r1 r2 r3 r4 r5\n"},

{"try keeps what the handler reads",
 "fn f(x) { try { x = f(x) } catch e { x = e }; x }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(x) registers 3\n"
 "0000 getmod r1 f\n"
 "0001 move r2 r0*\n"
 "0002 call r0 r1..r2*\n"
 "0003 jump -> 0006\n"
 "0004 catch r1\n"
 "0005 move r0 r1*\n"
 "0006 ret r0*\n"
 "try 0..6 head 4 else 6 writes r0 r1 r2\n"},

{"no tail call inside try",
 "fn f(x) { try { return f(x) } catch { f(1) } }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(x) registers 5\n"
 "0000 getmod r2 f\n"
 "0001 move r3 r0*\n"
 "0002 call r2 r2..r3*\n"
 "0003 ret r2*\n"
 "0004 move r1 k0(nil)\n"
 "0005 jump -> 0010\n"
 "0006 catch r2\n"
 "0007 getmod r3 f\n"
 "0008 move r4 k1(1)\n"
 "0009 call r1 r3..r4*\n"
 "0010 ret r1*\n"
 "try 0..10 head 6 else 10 writes r1 r2 r3 r4\n"},

{"a value read later is copied before an assignment",
 "fn f(x) = x + { x = 2; x }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(x) registers 3\n"
 "0000 move r1 r0*\n"
 "0001 move r0 k0(2)\n"
 "0002 move r2 r0*\n"
 "0003 add r1 r1* r2*\n"
 "0004 ret r1*\n"},

{"closures, captures of captures",
 "fn f(a) { let b = 1; x => y => a + b + x + y }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 3\n"
 "0000 move r1 k0(1)\n"
 "0001 closure r2 f0()\n"
 "0002 ret r2*\n"
 "f0: fn (x) registers 2 captures a=r0 b=r1\n"
 "0000 closure r1 f0()\n"
 "0001 ret r1*\n"
 "f0: fn (y) registers 3 captures a=c0 b=c1 x=r0\n"
 "0000 getcap r1 0\n"
 "0001 getcap r2 1\n"
 "0002 add r1 r1* r2*\n"
 "0003 getcap r2 2\n"
 "0004 add r1 r1* r2*\n"
 "0005 add r1 r1* r0*\n"
 "0006 ret r1*\n"},

{"a group",
 "fn f(n) { fn g(x) = h(x) + n; fn h(x) = () => g(x); g }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(n) registers 3\n"
 "0000 group r1..r2 f0(g) f1(h)\n"
 "0001 ret r1*\n"
 "f0: fn g(x) registers 3 group 0 of 2 captures n=r0\n"
 "0000 groupfn r1 1\n"
 "0001 move r2 r0*\n"
 "0002 call r1 r1..r2*\n"
 "0003 getcap r2 0\n"
 "0004 add r1 r1* r2*\n"
 "0005 ret r1*\n"
 "f1: fn h(x) registers 2 group 1 of 2 captures n=r0\n"
 "0000 closure r1 f0()\n"
 "0001 ret r1*\n"
 "f0: fn () registers 2 captures g=g0 x=r0\n"
 "0000 getcap r0 0\n"
 "0001 getcap r1 1\n"
 "0002 tail r0..r1*\n"},

{"lone recursion",
 "fn f() { fn g(x) = g(x - 1); g }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f() registers 1\n"
 "0000 closure r0 f0(g)\n"
 "0001 ret r0*\n"
 "f0: fn g(x) registers 3\n"
 "0000 groupfn r1 0\n"
 "0001 sub r2 r0* k0(1)\n"
 "0002 tail r1..r2*\n"},

{"parameters",
 "fn f(a, (b, _), c=a, ...r, k=c) = b",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a, _, c=, ...r, k=) registers 7\n"
 "0000 unpack r5..r6 r1* (2)\n"
 "0001 move r6 k0(nil)\n"
 "0002 jgiven r2 -> 0004\n"
 "0003 move r2 r0*\n"
 "0004 jgiven r4 -> 0006\n"
 "0005 move r4 r2*\n"
 "0006 ret r5*\n"
 "if 2..4 head 3 else 4 writes r2\n"
 "if 4..6 head 5 else 6 writes r4\n"},

{"annotations",
 "fn f(x: f64[n, d], y: i32[d, 3, _, n], z: text) = n + d",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(x, y, z) registers 6\n"
 "0000 checkarg r3..r4 r0 x: f64[n->r3, d->r4]\n"
 "0001 checkarg r1 y: i32[d==r4, 3, _, n==r3]\n"
 "0002 checkarg r2 z: text\n"
 "0003 add r5 r3* r4*\n"
 "0004 ret r5*\n"},

{"call forms",
 "fn f(g, x) { g(x, ...x, k=1); g.h(x); g.sum(x, axis=0); (g.h)(x) }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(g, x) registers 6\n"
 "0000 move r2 r0\n"
 "0001 move r3 r1\n"
 "0002 move r4 r1\n"
 "0003 move r5 k0(1)\n"
 "0004 callx r2 r2..r5* (_, ..._, k=_)\n"
 "0005 move r3 r0\n"
 "0006 move r2 k1(nil)\n"
 "0007 method r2 .h\n"
 "0008 move r4 r1\n"
 "0009 call r2 r2..r4* method\n"
 "0010 move r3 r0\n"
 "0011 getmod r2 sum\n"
 "0012 method r2 .sum\n"
 "0013 move r4 r1\n"
 "0014 move r5 k2(0)\n"
 "0015 callx r2 r2..r5* (_, _, axis=_) method\n"
 "0016 field r2 r0* .h\n"
 "0017 move r3 r1*\n"
 "0018 tail r2..r3*\n"},

{"pipes",
 "fn f(x, g) { x |> g; x |> g(1); x |> g(2, _); x |> g(3).h(4); x |> nn.relu(k=1) }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(x, g) registers 8\n"
 "0000 move r3 r0\n"
 "0001 move r2 r1\n"
 "0002 call r2 r2..r3*\n"
 "0003 move r3 r0\n"
 "0004 move r2 r1\n"
 "0005 move r4 k0(1)\n"
 "0006 call r2 r2..r4*\n"
 "0007 move r4 r0\n"
 "0008 move r2 r1\n"
 "0009 move r3 k1(2)\n"
 "0010 call r2 r2..r4*\n"
 "0011 move r6 r0\n"
 "0012 move r5 r1*\n"
 "0013 move r7 k2(3)\n"
 "0014 call r3 r5..r7*\n"
 "0015 move r2 k3(nil)\n"
 "0016 method r2 .h\n"
 "0017 move r4 k4(4)\n"
 "0018 call r2 r2..r4* method\n"
 "0019 move r4 r0*\n"
 "0020 getmod r3 nn\n"
 "0021 getmod r2 relu\n"
 "0022 method r2 .relu\n"
 "0023 move r5 k0(1)\n"
 "0024 tailx r2..r5* (_, _, k=_) method\n"},

{"assert shows its condition",
 "fn f(a) { assert(a > 1); assert(a, \"no\") }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 4\n"
 "0000 getmod r1 assert\n"
 "0001 gt r2 r0 k0(1)\n"
 "0002 move r3 k1(\"assertion failed: a > 1\")\n"
 "0003 call r1 r1..r3*\n"
 "0004 getmod r1 assert\n"
 "0005 move r2 r0*\n"
 "0006 move r3 k2(\"no\")\n"
 "0007 tail r1..r3*\n"},

{"text with parts",
 "fn f(x, n) = f\"x = {x:.{n}f} {n}\"",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(x, n) registers 9\n"
 "0000 move r2 k0(\"x = \")\n"
 "0001 move r6 k1(\".\")\n"
 "0002 fmt r7 r1 k2(nil)\n"
 "0003 move r8 k3(\"f\")\n"
 "0004 join r6 r6..r8*\n"
 "0005 fmt r3 r0* r6*\n"
 "0006 move r4 k4(\" \")\n"
 "0007 fmt r5 r1* k2(nil)\n"
 "0008 join r2 r2..r5*\n"
 "0009 ret r2*\n"},

{"containers with spreads",
 "fn f(a) = ((1, ...a, 2, 3), {...a, x: 1}, {x: 1, y: 2, x: 3})",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 6\n"
 "0000 move r4 k0(1)\n"
 "0001 list r1 r4*\n"
 "0002 extend r1 r0\n"
 "0003 move r4 k1(2)\n"
 "0004 move r5 k2(3)\n"
 "0005 list r4 r4..r5*\n"
 "0006 extend r1 r4*\n"
 "0007 record r2 {}\n"
 "0008 recspread r2 r0*\n"
 "0009 recput r2 k0(1) k3(\"x\")\n"
 "0010 move r4 k0(1)\n"
 "0011 move r5 k1(2)\n"
 "0012 record r3 r4..r5* {x, y}\n"
 "0013 recput r3 k2(3) k3(\"x\")\n"
 "0014 list r1 r1..r3*\n"
 "0015 ret r1*\n"},

{"unpacking without a list",
 "fn f(a, b) { (a, b) = (b, a); let (c, (d, _)) = (a, b); c + d }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a, b) registers 7\n"
 "0000 move r2 r1*\n"
 "0001 move r3 r0*\n"
 "0002 move r0 r2*\n"
 "0003 move r1 r3*\n"
 "0004 move r2 r0*\n"
 "0005 move r3 r1*\n"
 "0006 unpack r4..r5 r3* (2)\n"
 "0007 move r5 k0(nil)\n"
 "0008 add r6 r2* r4*\n"
 "0009 ret r6*\n"},

{"unpacking",
 "let (a, ...b) = (1, 2, 3)\nlet {x, y: (z, _)} = a",
 "fn () registers 5\n"
 "0000 move r2 k0(1)\n"
 "0001 move r3 k1(2)\n"
 "0002 move r4 k2(3)\n"
 "0003 list r2 r2..r4*\n"
 "0004 unpack r0..r1 r2* (1, ..., 0)\n"
 "0005 setmod r0* a\n"
 "0006 setmod r1* b\n"
 "0007 getmod r2 a\n"
 "0008 unpackrec r0..r1 r2* {x, y}\n"
 "0009 setmod r0* x\n"
 "0010 unpack r2..r3 r1* (2)\n"
 "0011 setmod r2* z\n"
 "0012 ret k3(nil)\n"},

{"a variable is emptied at the end of its scope",
 "fn f(a) { { let b = a; if a { b() } }; a[0] = 1; a }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 3\n"
 "0000 move r1 r0\n"
 "0001 jnot r0 -> 0004\n"
 "0002 move r2 r1*\n"
 "0003 call r2 r2*\n"
 "0004 move r1 k0(nil)\n"
 "0005 move r1 k1(0)\n"
 "0006 move r2 k2(1)\n"
 "0007 setpath r0[_] r1..r2*\n"
 "0008 ret r0*\n"
 "if 1..4 head 2 else 4 writes r2\n"},

{"what follows return",
 "fn f(a) { return a; a() }",
 "fn () registers 1\n"
 "0000 closure r0 f0(f)\n"
 "0001 setmod r0 f\n"
 "0002 ret r0*\n"
 "f0: fn f(a) registers 2\n"
 "0000 ret r0*\n"
 "0001 move r1 r0*\n"
 "0002 tail r1*\n"},

{"import",
 "import \"lib.weft\" as lib\nimport linalg",
 "fn () registers 1\n"
 "0000 import r0 k0(\"lib.weft\") k1(\"lib\")\n"
 "0001 setmod r0* lib\n"
 "0002 setmod k2(linalg) linalg\n"
 "0003 ret k3(nil)\n"},


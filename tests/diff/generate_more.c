/* generate_more.c — statements of the random programs that are patterns of their own: host functions, walks over
 * texts and lists of things, recursion inside functions, slices whose ends are data, several levels of try, numbers
 * that wrap, many trips. */
#include "tests/diff/generate_inner.h"

#define PICK(g, list) (list)[gen_below(g, (int)(sizeof(list) / sizeof(list)[0]))]

/* A variable that takes what a pattern computed: one that is there, else a new one. NULL: no room. */
static const Var *target(Gen *g, Type type) {
  const Var *v = gen_pick_var(g, type, true);
  if (v) return v;
  Var *made = gen_new_var(g, type, 'v');
  if (!made) return NULL;
  made->type = TYPES;
  gen_put(g, "let %s = ", made->name);
  gen_leaf(g, type);
  made->type = type;
  gen_line(g);
  return made;
}

static void host_call(Gen *g) {
  const Var *v = target(g, FLOAT);
  if (!v) return;
  switch (gen_below(g, 6)) {
  case 0: gen_put(g, "%s = half(", v->name), gen_expr(g, FLOAT, 1), gen_put(g, ") + tick(1)"); break;
  case 1:
    gen_put(g, "try { %s = risky(", v->name), gen_expr(g, FLOAT, 1),
        gen_put(g, ") } catch e { print(e.message, e.trace) }");
    break;
  case 2:
    gen_put(g, "for u%d in 0..%d { %s = half(%s + u%d) * 1.5; if tick(u%d) > ", g->next_name, 1 + gen_below(g, 12),
            v->name, v->name, g->next_name, g->next_name), gen_expr(g, INT, 1), gen_put(g, " { %s -= 1.0 } }", v->name),
        g->next_name++;
    break;
  case 3:
    gen_put(g, "%s = again(", v->name), gen_leaf(g, CLOSURE), gen_put(g, ", "), gen_expr(g, FLOAT, 1), gen_put(g, ")");
    break;
  case 4:
    gen_put(g, "if "), gen_expr(g, BOOL, 1),
        gen_put(g, " { %s = %s + tick(2) * 0.25; print(%s) } else { %s = half(%s) }", v->name, v->name, v->name,
                v->name, v->name);
    break;
  default: gen_put(g, "if "), gen_expr(g, BOOL, 1), gen_put(g, " { %s = risky(%s) }", v->name, v->name); break;
  }
}

static void text_loop(Gen *g) {
  static const char *const tests[] = {"c%d == \"a\"", "c%d < \"m\"", "c%d in \"aeiou-.\"", "len(s%d) %% 3 == 1",
                                      "upper(c%d) == c%d"};
  static const char *const words[] = {"\"a tale of wefts\"", "\"x=1.5;y=-2\"", "\"\u00e4\u00f6 a \u20ac\"",
                                      "\"mmmaaa\""};
  const Var *v = target(g, TEXT), *n = gen_pick_var(g, INT, true);
  int k = g->next_name++;
  if (!v) return;
  gen_put(g, "let s%d = \"\"", k);
  gen_line(g);
  gen_put(g, "for c%d in ", k);
  if (gen_chance(g, 50)) gen_put(g, "%s", PICK(g, words));
  else gen_leaf(g, TEXT);
  gen_put(g, " { if ");
  int t = gen_below(g, 5);
  gen_put(g, tests[t], k, k);
  gen_put(g, " { s%d += c%d } else { %s }", k, k, gen_chance(g, 50) ? "continue" : "");
  if (n && gen_chance(g, 60)) gen_put(g, "; %s += codes(c%d)[0]", n->name, k);
  if (gen_chance(g, 25)) gen_put(g, "; if len(s%d) > %d { break }", k, gen_below(g, 6));
  gen_put(g, " }");
  gen_line(g);
  if (gen_chance(g, 40))
    gen_put(g, "for u%d in 0..len(s%d) { if s%d[u%d] != \"a\" { %s = s%d[u%d:] } }", k, k, k, k, v->name, k, k);
  else gen_put(g, "%s = s%d + \"/\" + str(len(s%d))", v->name, k, k);
}

/* Lists of texts, of arrays, of records; records of lists. */
static void things(Gen *g) {
  const Var *f = target(g, FLOAT), *x = target(g, FLOATS), *t = target(g, TEXT);
  int k = g->next_name++;
  if (!f || !x || !t) return;
  switch (gen_below(g, 7)) {
  case 0:
    gen_put(g, "for t%d in (\"b\", ", k), gen_expr(g, TEXT, 1),
        gen_put(g, ", \"weft\") { if t%d > \"a\" { %s = %s + t%d } }", k, t->name, t->name, k);
    break;
  case 1:
    gen_put(g, "let l%d = (", k), gen_expr(g, FLOATS, 1), gen_put(g, ", "), gen_expr(g, FLOATS, 1), gen_put(g, ")");
    gen_line(g), gen_put(g, "l%d[1][:] %s ", k, gen_chance(g, 50) ? "=" : "+="), gen_expr(g, FLOAT, 1);
    gen_line(g), gen_put(g, "for u%d in l%d { %s += sum(u%d) * 0.5 }", k, k, f->name, k);
    gen_line(g), gen_put(g, "%s = l%d[%d]", x->name, k, gen_below(g, 3) - 1);
    break;
  case 2:
    gen_put(g, "let r%d = ({a: ", k), gen_expr(g, FLOAT, 1), gen_put(g, ", k: 1}, {a: 2.5, k: "), gen_expr(g, INT, 1),
        gen_put(g, "})");
    gen_line(g), gen_put(g, "for u%d in 0..%d { r%d[u%d %% 2].a += u%d * 0.5; if r%d[0].a > %d.5 { r%d[1].k += 1 } }",
                         k, 1 + gen_below(g, 9), k, k, k, k, gen_below(g, 4), k);
    gen_line(g), gen_put(g, "for q%d in r%d { %s += q%d.a * q%d.k }", k, k, f->name, k, k);
    break;
  case 3:
    gen_put(g, "let l%d = map(u%d => %s * u%d, 0..%d)", k, k, x->name, k, 1 + gen_below(g, 4));
    gen_line(g), gen_put(g, "l%d += (", k), gen_expr(g, FLOATS, 1), gen_put(g, ",)");
    gen_line(g), gen_put(g, "%s = l%d[-1] + sum(l%d[0])", x->name, k, k);
    break;
  case 4:
    gen_put(g, "let d%d = {w: (1.0, ", k), gen_expr(g, FLOAT, 1), gen_put(g, "), t: "), gen_leaf(g, TEXT),
        gen_put(g, "}");
    gen_line(g), gen_put(g, "for u%d in 0..%d { d%d.w[u%d %% 2] += %s; d%d.t += \"%d\"; if d%d.w[0] > ", k,
                         1 + gen_below(g, 6), k, k, f->name, k, gen_below(g, 9), k), gen_expr(g, FLOAT, 1),
        gen_put(g, " { break } }");
    gen_line(g), gen_put(g, "%s = d%d.w[1]; %s = d%d.t", f->name, k, t->name, k);
    break;
  case 5:
    gen_put(g, "let d%d = {}", k), gen_line(g);
    gen_put(g, "for c%d in %s { d%d[c%d] = (if c%d in d%d { d%d[c%d] } else { 0 }) + 1 }", k, t->name, k, k,
            k, k, k, k);
    gen_line(g), gen_put(g, "for (c%d, u%d) in d%d { %s += u%d * 0.25 }", k, k, k, f->name, k);
    break;
  default:
    gen_put(g, "for (u%d, q%d) in zip(split(\"a b c d\"), %s) { if q%d > ", k, k, x->name, k), gen_expr(g, FLOAT, 1),
        gen_put(g, " { %s += u%d; %s -= q%d } }", t->name, k, f->name, k);
    break;
  }
}

/* Texts in records, lists and variables of loops, records at computed keys, lists of weak and strong numbers. */
static void texts_among(Gen *g) {
  const Var *f = target(g, FLOAT), *x = target(g, FLOATS), *t = target(g, TEXT);
  int k = g->next_name++, trips = 1 + gen_below(g, 12);
  if (!f || !x || !t) return;
  switch (gen_below(g, 5)) {
  case 0:
    gen_put(g, "let r%d = ({s: \"ann\", a: ", k), gen_expr(g, FLOAT, 1), gen_put(g, "}, {s: "), gen_leaf(g, TEXT),
        gen_put(g, ", a: 2.5}, {s: \"b\", a: 0.5})");
    gen_line(g), gen_put(g, "for u%d in 0..%d { let i%d = u%d * 2 %% 3; if r%d[i%d].s != \"b\" { r%d[i%d].a += ", k,
                         trips, k, k, k, k, k, k), gen_expr(g, FLOAT, 1);
    gen_put(g, " } else { r%d%s }; (r%d[0], r%d[i%d]) = (r%d[i%d], r%d[0]) }", k,
            gen_chance(g, 50) ? "[0].s = \"é\"" : "[0].a += 1", k, k, k, k, k, k);
    gen_line(g), gen_put(g, "for q%d in r%d { %s += q%d.a; %s = q%d.s }", k, k, f->name, k, t->name, k);
    break;
  case 1:
    gen_put(g, "let s%d = \"a\"", k), gen_line(g);
    gen_put(g, "for u%d in 0..%d { if s%d == \"a\" { if u%d %% 3 == 1 { s%d = \"\" } } else if s%d == \"\" { s%d = ", k,
            trips, k, k, k, k, k), gen_leaf(g, TEXT);
    gen_put(g, " } else { s%d = \"a\" }; %s += if s%d in (\"a\", \"weft\") { 0.5 } else { 1 } }", k, f->name, k);
    gen_line(g), gen_put(g, "%s = s%d", t->name, k);
    break;
  case 2:
    gen_put(g, "let d%d = {a: 0.5, bc: ", k), gen_expr(g, FLOAT, 1), gen_put(g, ", d: 1.5}"), gen_line(g);
    gen_put(g, "let w%d = (\"bc\", \"d\", ", k), gen_put(g, "%s, \"a\")", gen_chance(g, 80) ? "\"a\"" : t->name),
        gen_line(g);
    gen_put(g, "for u%d in 0..%d { d%d[w%d[u%d * 3 %% 4]] += ", k, trips, k, k, k), gen_expr(g, FLOAT, 1),
        gen_put(g, " }");
    gen_line(g), gen_put(g, "for (s%d, u%d) in d%d { %s += u%d * 0.25 }", k, k, k, f->name, k);
    break;
  case 3:
    gen_put(g, "let l%d = (0.5, 1.5)", k), gen_line(g);
    gen_put(g, "for u%d in 0..%d { l%d += (l%d[-1] + ", k, trips, k, k), gen_expr(g, FLOAT, 1), gen_put(g, ",)");
    if (gen_chance(g, 50)) gen_put(g, "; l%d[u%d %% 2] = u%d * 0.5", k, k, k);
    if (gen_chance(g, 50)) gen_put(g, "; if len(l%d) > 4 { l%d = l%d[:-%d] }", k, k, k, 1 + gen_below(g, 3));
    if (gen_chance(g, 30)) gen_put(g, "; %s += f64((f32(1) + l%d[u%d %% 2]) * 0.5)", f->name, k, k);
    gen_put(g, " }"), gen_line(g), gen_put(g, "%s += l%d[-1] + l%d[0]", f->name, k, k);
    break;
  default:
    gen_put(g, "let w%d = ()", k), gen_line(g);
    gen_put(g, "for u%d in 0..%d { w%d += (if u%d %% 3 == 0 { \"c\" } else { %s },); "
               "if w%d[u%d // 2] == \"c\" { %s -= 0.5 } }", k, trips, k, k, t->name, k, k, f->name);
    gen_line(g), gen_put(g, "%s = join(w%d, \"\")", t->name, k);
    break;
  }
}

/* A function of this one that calls itself, and sees what stands around it. */
static void inner_recursion(Gen *g) {
  const Var *f = target(g, FLOAT);
  int k = g->next_name++;
  if (!f || g->loop_depth > 1) return;
  gen_put(g, "fn z%d(k, s) {", k);
  g->indent++;
  gen_line(g);
  gen_put(g, "if k <= 0 { return %s }", gen_chance(g, 50) ? "s" : "s + a * 0.5");
  if (gen_chance(g, 30)) gen_line(g), gen_put(g, "if k == %d { print(\"deep\", s) }", gen_below(g, 5));
  if (gen_chance(g, 30))
    gen_line(g), gen_put(g, "let t = [0.5, 1.5, -2.0, 8.0, 0.0, 1.0][k%s]", gen_chance(g, 90) ? " % 6" : "");
  else gen_line(g), gen_put(g, "let t = sum(x[:2]) + k");
  if (gen_chance(g, 15)) gen_line(g), gen_put(g, "assert(t != -2.0, \"found\")");
  gen_line(g);
  switch (gen_below(g, 4)) {
  case 0: gen_put(g, "z%d(k - 1, s + t)", k); break;
  case 1: gen_put(g, "t * 0.5 + z%d(k - 1, s * 0.5) - z%d(k - 2, t)", k, k); break;
  case 2:
    gen_put(g, "let r = 0.0\n  %*sfor i in 0..k { r += z%d(i - 1, s + i) * t }\n  %*sr", 2 * g->indent, "", k,
            2 * g->indent, "");
    break;
  default: gen_put(g, "(if s > 1 { z%d(k - 1, s - t) } else { rand() + z%d(k - 2, s + 1) })", k, k); break;
  }
  g->indent--;
  gen_line(g);
  gen_put(g, "}");
  gen_line(g);
  if (gen_chance(g, 50))
    gen_put(g, "for u%d in 0..%d { %s = %s * 0.5 + z%d(u%d, ", k, 1 + gen_below(g, 5), f->name, f->name, k, k),
        gen_expr(g, FLOAT, 1), gen_put(g, ") }");
  else if (gen_chance(g, 30))
    gen_put(g, "try { %s += z%d(%d, ", f->name, k, gen_below(g, 8)), gen_expr(g, FLOAT, 1),
        gen_put(g, ") } catch e { print(e.message, e.trace) }");
  else
    gen_put(g, "%s = z%d(%d, ", f->name, k, gen_below(g, 6)), gen_expr(g, FLOAT, 1),
        gen_put(g, ") + %s * z%d(2, 1.0)", f->name, k);
}

static void end_of_slice(Gen *g) {
  static const char *const ends[] = {"1", "n // 2", "n - 1", "len(unique(p))", "argmax(x)", "2", "-1", "n + 3"};
  int roll = gen_below(g, 8);
  if (roll == 0) gen_put(g, "count_nonzero("), gen_expr(g, MASK, 1), gen_put(g, ")");
  else if (gen_chance(g, 20)) gen_put(g, "("), gen_expr(g, INT, 1), gen_put(g, " %% 5)");
  else gen_put(g, "%s", ends[roll]);
}

/* Slices whose ends depend on data, read and written. */
static void slices(Gen *g) {
  const Var *x = target(g, FLOATS), *f = target(g, FLOAT);
  if (!x || !f) return;
  switch (gen_below(g, 6)) {
  case 0: gen_put(g, "%s = sum(%s[:", f->name, x->name), end_of_slice(g), gen_put(g, "])"); break;
  case 1:
    gen_put(g, "%s[", x->name), end_of_slice(g), gen_put(g, ":] %s ", gen_chance(g, 50) ? "=" : "*="),
        gen_expr(g, FLOAT, 1);
    break;
  case 2:
    gen_put(g, "%s = sum(%s[", f->name, x->name), end_of_slice(g), gen_put(g, ":"), end_of_slice(g),
        gen_put(g, "] * 2)");
    break;
  case 3:
    gen_put(g, "for u%d in 0..n { %s[:u%d] %s ", g->next_name, x->name, g->next_name, gen_chance(g, 50) ? "+=" : "="),
        gen_expr(g, FLOAT, 1), gen_put(g, "; %s += sum(%s[u%d:]) }", f->name, x->name, g->next_name), g->next_name++;
    break;
  case 4: gen_put(g, "%s[:", x->name), end_of_slice(g), gen_put(g, "] += rand()"); break;
  default: gen_put(g, "%s = max(concat((%s[:", f->name, x->name), end_of_slice(g), gen_put(g, "], [0.5])))"); break;
  }
}

/* try inside try, inside loops, with jumps out of them and errors raised again. */
static void levels(Gen *g) {
  const Var *f = target(g, FLOAT), *x = target(g, FLOATS);
  int k = g->next_name++;
  if (!f || !x) return;
  bool loop = gen_chance(g, 60);
  static const char *const bad[] = {"error(\"deep\")", "assert(%s < 0.5)", "%s = [1.0, 2.0][u%d]",
                                    "%s += 1 // (u%d - 1)", "risky(%s * 2)", "rand(-1)"};
  if (loop) gen_put(g, "for u%d in 0..%d { ", k, 1 + gen_below(g, 5));
  else gen_put(g, "let u%d = %d", k, gen_below(g, 3)), gen_line(g);
  gen_put(g, "try { try { %s += 0.5; if ", f->name), gen_expr(g, BOOL, 1), gen_put(g, " { ");
  int b = gen_below(g, 6);
  gen_put(g, bad[b], f->name, k);
  gen_put(g, " }");
  if (loop && gen_chance(g, 30)) gen_put(g, "; if u%d == 2 { %s }", k, gen_chance(g, 50) ? "break" : "continue");
  gen_put(g, "; %s[0] += u%d } catch e { %s", x->name, k, gen_chance(g, 50) ? "print(e.message); " : "");
  gen_put(g, gen_chance(g, 40) ? "if e.kind == \"user\" { error(e) }"
                               : gen_chance(g, 50) ? "error(\"again\", kind=\"value\")" : "%s = -1.0", f->name);
  gen_put(g, " } } catch d { print(d.kind, d.trace); %s = %s * 0.5 }%s", f->name, f->name, loop ? " }" : "");
}

/* Integers at their ends, and of other widths. */
static void wraps(Gen *g) {
  static const char *const steps[] = {"%s = %s * 6364136223846793005 + 1442695040888963407", "%s = %s << 7 ^ (%s >> 3)",
                                      "%s = %s * %s + 9223372036854775807", "%s = (%s + 4611686018427387904) * 2",
                                      "%s = -%s - 9223372036854775807"};
  static const char *const narrow[] = {"i32", "u8", "i64"};
  const Var *n = target(g, INT), *p = gen_pick_var(g, INTS, true);
  int k = g->next_name++;
  if (!n) return;
  if (p && gen_chance(g, 40)) {
    gen_put(g, "%s = %s(%s) * %s(%d) + %s(p)", p->name, PICK(g, narrow), p->name, narrow[gen_below(g, 2)],
            100 + gen_below(g, 27), PICK(g, narrow));
    return;
  }
  if (gen_chance(g, 70)) gen_put(g, "for u%d in 0..%d { ", k, 1 + gen_below(g, 20));
  else gen_put(g, "{ ");
  gen_put(g, PICK(g, steps), n->name, n->name, n->name);
  if (gen_chance(g, 40)) gen_put(g, "; if %s %% 3 == 1 { %s += 1 }", n->name, n->name);
  gen_put(g, " }");
}

static void many_trips(Gen *g) {
  const Var *f = target(g, FLOAT), *n = gen_pick_var(g, INT, true);
  int k = g->next_name++;
  if (!f || g->loop_depth) return;
  switch (gen_below(g, 4)) {
  case 0:
    gen_put(g, "for u%d in 0..%d { %s = %s * 0.75 + (if u%d %% 7 == 3 { ", k, 200 + gen_below(g, 900), f->name, f->name,
            k), gen_expr(g, FLOAT, 1), gen_put(g, " } else { 0.5 }) }");
    break;
  case 1:
    gen_put(g, "%s += sum(arange(%d) * ", f->name, 1000 + gen_below(g, 9000)), gen_expr(g, FLOAT, 1), gen_put(g, ")");
    break;
  case 2:
    gen_put(g, "let y%d = zeros(%d)", k, 300 + gen_below(g, 3000)), gen_line(g),
        gen_put(g, "for u%d in 0..%d { y%d[u%d] = u%d * %s; if u%d > 250 and y%d[u%d] > ", k, 300, k, k,
                k, f->name, k, k, k), gen_expr(g, FLOAT, 1), gen_put(g, " { break } }"), gen_line(g),
        gen_put(g, "%s = sum(y%d)", f->name, k);
    break;
  default:
    gen_put(g, "let u%d = 0", k), gen_line(g),
        gen_put(g, "while u%d < %d and (%s < 1e6 or u%d %% 2 == 0) { u%d += 1; %s += u%d * 0.5 }", k,
                100 + gen_below(g, 300), f->name, k, k, f->name, k);
    break;
  }
  if (n && gen_chance(g, 30)) gen_line(g), gen_put(g, "%s += 1000000007", n->name);
}

/* dtypes that meet. */
static void mixes(Gen *g) {
  const Var *f = target(g, FLOAT), *x = target(g, FLOATS), *p = gen_pick_var(g, INTS, true);
  if (!f || !x) return;
  switch (gen_below(g, 9)) {
  case 8:
    gen_put(g, "{ let c = %s; for i in 0..40 { c = if abs(c) > 2 { c / 4 } else { c * c + %s }; "
               "if i %% 5 == 0 { c = conj(c) } }; %s = abs(c) }",
            gen_chance(g, 50) ? "0.5j" : "c64(1j)", gen_chance(g, 50) ? "0.1j" : "complex(0.25, 0.5)", f->name);
    break;
  case 7:
    gen_put(g, "{ let c = complex(%s, %s); for i in 0..3 { c = c * 0.5j + conj(c) * %s }; %s = real(c) + imag(c) }",
            x->name, f->name, f->name, x->name);
    break;
  case 6: gen_put(g, "%s = f16(%s) * 0.1 + f16(%s)", x->name, x->name, f->name); break;
  case 0: gen_put(g, "%s = f32(%s) * i32(arange(n))", x->name, x->name); break;
  case 1: gen_put(g, "%s = f32(%s) + ", f->name, f->name), gen_expr(g, INT, 1); break;
  case 2: gen_put(g, "for i in 0..n { %s[i] += f32(i) * 0.1 }", x->name); break;
  case 3: gen_put(g, "%s = f64(sum(f32(%s)) * i32(3))", f->name, x->name); break;
  case 4:
    if (p)
      gen_put(g, "%s = where(", p->name), gen_expr(g, MASK, 1), gen_put(g, ", i32(%s), 3)", p->name);
    else gen_put(g, "%s += 1", f->name);
    break;
  default:
    gen_put(g, "%s[", x->name), gen_expr(g, MASK, 1),
        gen_put(g, " & (%s < 2)] %s ", x->name, gen_chance(g, 50) ? "+=" : "="), gen_expr(g, FLOAT, 1);
    break;
  }
}

/* Updates of the places where masks are true, of elements at these places and others. */
static void masked(Gen *g) {
  static const char *const stores[] = { /* $x: a name with the pattern's number */
      "$x[$w] = -$x[$w]", "$x[$w] += $y[$w] * 2", "$x[$w] = ($y[$w] + $x[$w]) / 3", "$x[$w] = abs($x[$w] - 0.5)",
      "$x[$w] *= $c", "$x[$w] = exp($y[$w])", "$x[$w] = $c", "$y[$w] = $x[$w] ** 2", "$y[$w] -= maximum($x[$w], $c)",
      "$x[$w] /= $y[$w]", "$x[$w] = $x[not $w]", "$w[$w] = $y[$w] > 0", "$x[$w] = $y[0:1]",
      "let $h = $x[$w]; $y[$w] = $h + $h", "$x[$w] = i32(3)", "$x[$w] = $y[$w] + $y[$y > 0]"};
  const Var *x = target(g, FLOATS), *y = target(g, FLOATS), *f = target(g, FLOAT);
  int k = g->next_name++;
  if (!x || !y || !f) return;
  bool loops = gen_chance(g, 40);
  gen_put(g, "let x%d = %s; let y%d = %s; let c%d = %s; let w%d = ", k, x->name, k, y->name, k, f->name, k);
  gen_expr(g, MASK, 1);
  gen_line(g);
  if (loops) gen_put(g, "for t%d in 0..%d { ", k, 1 + gen_below(g, 12));
  for (int count = 1 + gen_below(g, 3); count > 0; count--) {
    for (const char *form = PICK(g, stores); *form; form++)
      if (*form == '$') form++, gen_put(g, "%c%d", *form, k);
      else gen_put(g, "%c", *form);
    gen_put(g, count > 1 ? "; " : "");
  }
  if (loops) gen_put(g, " }");
  gen_line(g), gen_put(g, "%s = x%d + y%d", x->name, k, k);
}

/* Arrays whose size was chosen or computed. */
static void sizes(Gen *g) {
  static const char *const uses[] = {
      "%s += sum(arange(u%d) * 0.5)", "%s += zeros((u%d, 2)).size", "%s += sum(ones(u%d))",
      "%s += sum(linspace(0.0, 1.0, u%d + 1))", "%s += sum(tile([1.0, 2.0], u%d))",
      "%s += sum(repeat([1.0, 3.0], u%d))", "%s += sum(array(0..u%d))", "%s += sum(eye(u%d + 1))",
      "%s += sum(sum(full((u%d, 3), 0.25), axis=0))", "%s += sum(cumsum(arange(u%d)))", "%s += sum(rand(u%d))"};
  const Var *f = target(g, FLOAT), *x = gen_pick_var(g, FLOATS, false);
  int k = g->next_name++, loop = gen_chance(g, 40);
  if (!f || g->bare) return;
  if (loop) gen_put(g, "for v%d in 0..%d { ", k, 2 + gen_below(g, 6));
  gen_put(g, "let u%d = ", k);
  switch (gen_below(g, 7)) {
  case 0:
    gen_put(g, "if "), gen_expr(g, BOOL, 1), gen_put(g, " { %d } else { %d }", gen_below(g, 6), gen_below(g, 6));
    break;
  case 1:
    gen_put(g, "if ("), gen_expr(g, INT, 1),
        gen_put(g, ") %% 3 == %s { %d } else { p %% 4 }", loop ? "1" : "0", gen_below(g, 6));
    break;
  case 2:
    gen_put(g, "cond("), gen_expr(g, BOOL, 1), gen_put(g, ", () => %d, () => %d)", gen_below(g, 6), gen_below(g, 6));
    break;
  case 3: gen_put(g, "minimum(("), gen_expr(g, INT, 1), gen_put(g, ") %% 7, %d)", gen_below(g, 6)); break;
  case 4: gen_put(g, "[3, 1, 4][("), gen_expr(g, INT, 1), gen_put(g, ") %% 3]"); break;
  case 5: gen_put(g, "{ let w = 0; while w * w < ("), gen_expr(g, INT, 1), gen_put(g, ") %% 30 { w += 1 }; w }"); break;
  default:
    gen_put(g, "len(%s) - (if ", x ? x->name : "(1, 2)"), gen_expr(g, BOOL, 1), gen_put(g, " { 0 } else { 1 })");
    break;
  }
  if (loop) gen_put(g, "; ");
  else gen_line(g);
  gen_put(g, PICK(g, uses), f->name, k);
  if (gen_chance(g, 40)) gen_put(g, "; "), gen_put(g, PICK(g, uses), f->name, k);
  if (gen_chance(g, 20)) gen_put(g, "; print(u%d, arange(u%d))", k, k);
  if (loop) gen_put(g, " }");
}

void gen_pattern(Gen *g) {
  static void (*const patterns[])(Gen *) = {
      host_call, host_call, text_loop, text_loop, things, things, things, texts_among, texts_among, texts_among,
      inner_recursion, inner_recursion, slices, slices, levels, levels, wraps, many_trips, mixes, mixes, gen_rows,
      gen_rows, gen_arms, gen_zips, gen_bodies, gen_links, gen_links, sizes, sizes, masked, masked, gen_kit, gen_kit,
      gen_kit, gen_kit, gen_kit, gen_kit, gen_kit, gen_kit, gen_kit, gen_kit, gen_kit, gen_kit};
  gen_line(g);
  PICK(g, patterns)(g);
}

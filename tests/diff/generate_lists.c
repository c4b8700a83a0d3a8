/* generate_lists.c — loops of the random programs that update arrays in arms, over enumerate and zip, and over records
 * that hold arrays. */
#include "tests/diff/generate_inner.h"

#define PICK(g, list) (list)[gen_below(g, (int)(sizeof(list) / sizeof(list)[0]))]

/* `$` is the pattern's number. */
static void put(Gen *g, const char *form, int number) {
  for (; *form; form++)
    if (*form == '$') gen_put(g, "%d", number);
    else gen_put(g, "%c", *form);
}

static void store(Gen *g, int number, int depth) {
  static const char *const forms[] = {"y$[u$ % 5] += v$[0]", "y$[u$ * 3 % 7] = 0.5", "z$ = y$", "(y$, z$) = (z$, y$)",
                                      "y$[0] += z$[u$ % 4]", "y$ = y$ + 1", "y$[1:3] *= 0.5", "y$[9 - u$] = 2.5",
                                      "for q$ in 0..3 { y$[q$] += u$ }", "s$ += sum(y$)", "z$[u$ % 3:] = v$[1]",
                                      "y$[2] -= 1; z$[1] += y$[2]"};
  static const char *const modules[] = {"G3[u$ % 5] += v$[0]", "G3[u$ * 2 % 11] = s$; G4[0] += 1", "G4 = G3",
                                        "G3[9 - u$] = 1.5", "y$[1] += sum(e$ @ G3[:2])", "z$ = G4"};
  if (depth < 2 && gen_chance(g, 25)) {
    gen_put(g, "if u%d %% %d == %d { ", number, 2 + gen_below(g, 3), gen_below(g, 3));
    store(g, number, depth + 1);
    if (gen_chance(g, 25)) gen_put(g, "; continue");
    gen_put(g, " }");
    if (gen_chance(g, 40)) gen_put(g, " else { "), store(g, number, depth + 1), gen_put(g, " }");
  } else {
    put(g, g->module && gen_chance(g, 60) ? PICK(g, modules) : PICK(g, forms), number);
  }
}

void gen_arms(Gen *g) {
  const Var *f = gen_pick_var(g, FLOAT, true);
  int k = g->next_name++;
  if (g->loop_depth || g->bare) {
    gen_put(g, "let u%d = 0", k);
    return;
  }
  put(g, "let y$ = zeros(12)", k), gen_line(g);
  put(g, "let z$ = ", k), put(g, gen_chance(g, 50) ? "y$" : "ones(12)", k), gen_line(g);
  put(g, "let e$ = eye(2) * 0.5", k), gen_line(g);
  put(g, "let v$ = ones(2)", k), gen_line(g);
  put(g, "let s$ = 0.0", k), gen_line(g);
  bool guarded = gen_chance(g, 30);
  if (guarded) gen_put(g, "try { ");
  gen_put(g, "for u%d in 0..%d { ", k, 2 + gen_below(g, 12)), put(g, "v$ = e$ @ v$ + 0.25; ", k);
  for (int n = 1 + gen_below(g, 4); n > 0; n--) {
    gen_put(g, "if s%d %s %d { ", k, gen_chance(g, 50) ? "<" : ">=", gen_below(g, 9));
    store(g, k, 0);
    gen_put(g, " }");
    if (gen_chance(g, 50)) gen_put(g, " else { "), store(g, k, 0), gen_put(g, " }");
    gen_put(g, "; ");
    if (gen_chance(g, 30)) store(g, k, 1), gen_put(g, "; ");
  }
  if (gen_chance(g, 20)) put(g, "if u$ == 5 { print(y$) }; ", k);
  put(g, "s$ += y$[u$ % 6] + sum(e$ @ y$[:2]); if s$ > 1e6 { break } }", k);
  if (guarded) gen_put(g, " } catch e { print(e.message, e.trace) }");
  gen_line(g);
  put(g, "print(s$, y$, z$, v$)", k);
  if (f) gen_line(g), gen_put(g, "%s += y%d[3] * 0.125", f->name, k);
}

/* A sequence of numbers; `$` as above. */
static void sequence(Gen *g, int number) {
  static const char *const forms[] = {"x", "x", "p", "l$", "l$", "arange(40) * 0.5", "0..n", "3..50 by 2", "(x + 1)",
                                      "zeros(0)"};
  put(g, PICK(g, forms), number);
}

void gen_zips(Gen *g) {
  static const char *const uses[] = {"s$ += a$ * 0.5 - b$", "s$ = s$ * 0.5 + b$", "if b$ > 2 { s$ += a$ }",
                                     "l$[a$ % 2] += b$", "if a$ == 5 { print(a$, b$) }", "if s$ > 40 { break }",
                                     "if a$ % 3 == 1 { continue }", "q$ += ((a$, b$),)"};
  const Var *f = gen_pick_var(g, FLOAT, true);
  int k = g->next_name++;
  if (g->bare) {
    gen_put(g, "let u%d = 0", k);
    return;
  }
  gen_put(g, "let l%d = ", k);
  if (gen_chance(g, 50)) gen_put(g, "map(u => u * 0.5, 0..%d)", 2 + gen_below(g, 60));
  else gen_put(g, "(1, 2, 3)");
  gen_line(g);
  put(g, "let s$ = 0.0", k), gen_line(g);
  put(g, "let q$ = ()", k), gen_line(g);
  put(g, "let z$ = ", k);
  bool pairs = gen_chance(g, 50);
  gen_put(g, pairs ? "enumerate(" : "zip("), sequence(g, k);
  if (!pairs) gen_put(g, ", "), sequence(g, k);
  gen_put(g, ")"), gen_line(g);
  put(g, gen_chance(g, 80) ? "for (a$, b$) in z$ { " : "for (b$, (a$, c$)) in enumerate(z$) { ", k);
  for (int n = 1 + gen_below(g, 3); n > 0; n--) put(g, PICK(g, uses), k), gen_put(g, n > 1 ? "; " : " }");
  gen_line(g);
  put(g, "print(s$, q$, l$, len(z$))", k);
  if (f) gen_line(g), gen_put(g, "%s += s%d * 0.125", f->name, k);
}

void gen_bodies(Gen *g) {
  static const char *const uses[] = {"l$[u$].p += 0.25 * l$[u$ - 1].q", "l$[u$].q = l$[u$].p - l$[0].p",
                                     "l$[-1].p[1] -= q$.n", "s$ += sum(q$.p * q$.q)", "a$ = a$ + q$.p",
                                     "q$.p[0] = s$; l$[u$] = q$", "if q$.p[1] > s$ { l$[u$ - 1] = q$ }",
                                     "if u$ == 7 { print(l$[2].p) }", "m$ += ({p: q$.q, n: u$},)",
                                     "if sum(l$[u$].q) > 90 { break }", "l$[u$].n += u$ % 3"};
  static const char *const found[] = {"if h$ == nil or q$.n < h$.n { h$ = q$ }", "if q$.p[0] > 2 { h$ = q$ }",
                                      "if h$ != nil and h$.p[0] > q$.p[0] { h$ = nil }",
                                      "let w$ = near$(q$, s$); if w$ != nil { s$ += w$.t; h$ = w$.b }",
                                      "let w$ = near$(q$, 3); if w$ != nil and w$.t > s$ { s$ = w$.t }",
                                      "if h$ != nil { s$ += h$.n * 0.125 }",
                                      "h$ = if q$.n % 5 == 3 { q$ } else { h$ }"};
  int k = g->next_name++;
  if (g->loop_depth || g->bare) {
    gen_put(g, "let u%d = 0", k);
    return;
  }
  bool guarded = gen_chance(g, 25);
  put(g, "let near$ = (b, s) => { if b.p[0] + b.q[1] < s { nil } else { {t: b.p[0] - s, b: b} } }", k), gen_line(g);
  put(g, "let l$ = map(u => {p: [u * 0.5, 2.0 - u], q: [1.0, u * 0.25], n: u}, ", k),
      gen_put(g, "0..%d)", 3 + gen_below(g, 45)), gen_line(g);
  put(g, "let m$ = ()", k), gen_line(g);
  put(g, "let h$ = nil", k), gen_line(g);
  put(g, "let s$ = 0.0", k), gen_line(g);
  put(g, "let a$ = [0.0, 0.0]", k), gen_line(g);
  if (guarded) gen_put(g, "try { ");
  put(g, "for u$ in 0..len(l$) { let q$ = l$[u$]; ", k);
  for (int n = 1 + gen_below(g, 4); n > 0; n--)
    put(g, gen_chance(g, 50) ? PICK(g, uses) : PICK(g, found), k), gen_put(g, n > 1 ? "; " : " }");
  if (guarded) gen_put(g, " } catch e { print(e.message, e.trace) }");
  gen_line(g);
  put(g, "print(s$, a$, h$, len(m$), l$[0], l$[-1])", k);
}

/* Lists of lists of several lengths: read, walked, kept, changed. */
void gen_links(Gen *g) {
  static const char *const made[] = {"map(k => (i * 3 + k * 5) % 11, 0..i % 4)", "map(k => i * 0.5 - k, 0..i % 3 + 1)",
                                     "if i % 3 == 0 { (1, 2.5, i) } else { (i * 0.25,) }",
                                     "map(k => i + k, 0..i % 2 * 5)"};
  static const char *const uses[] = {
      "for a$ in l$[u$] { s$ += a$ }", "s$ += l$[u$][0]", "s$ += l$[u$][-1] * len(l$[u$])", "q$ = l$[u$ * 7 % len(l$)]",
      "for a$ in q$ { s$ = s$ * 0.5 + a$; if s$ > 30 { break } }", "if u$ == 9 { print(q$, l$[u$]) }",
      "q$ = if s$ > 2 { l$[0] } else { l$[u$] }", "for k$ in 0..len(q$) { s$ += q$[k$] * l$[u$][k$] }",
      "if len(l$[u$]) == 0 { continue }", "if u$ == 13 { q$[0] = 7; s$ += q$[0] - l$[u$][0] }",
      "if u$ == 11 { l$[2] = q$ }", "for (h$, a$) in enumerate(l$[u$]) { s$ += a$ * h$ }",
      "if 3 in l$[u$] { s$ += 1 }", "w$ += (l$[u$],)", "l$[u$][0] += 0.5", "l$[u$ * 5 % len(l$)][-1] = s$",
      "(l$[u$], l$[u$ * 3 % len(l$)]) = (l$[u$ * 3 % len(l$)], l$[u$])", "(l$[0], l$[-1]) = (l$[-1], l$[0])",
      "l$[u$] = l$[0]", "for k$ in 0..len(l$[u$]) { l$[u$][k$] = l$[u$][k$] * 0.5 + l$[0][0] }"};
  int k = g->next_name++;
  if (g->loop_depth || g->bare) {
    gen_put(g, "let u%d = 0", k);
    return;
  }
  bool guarded = gen_chance(g, 40);
  put(g, "let l$ = map(i => ", k), put(g, PICK(g, made), k), gen_put(g, ", 0..%d)", 3 + gen_below(g, 45)), gen_line(g);
  put(g, "let q$ = l$[1]", k), gen_line(g);
  put(g, "let w$ = ()", k), gen_line(g);
  put(g, "let s$ = 0.0", k), gen_line(g);
  if (guarded) gen_put(g, "try { ");
  put(g,
      gen_chance(g, 75) ? "for u$ in 0..len(l$) { " : "for (u$, r$) in enumerate(l$) { for b$ in r$ { s$ += b$ }; ", k);
  for (int n = 1 + gen_below(g, 4); n > 0; n--) put(g, PICK(g, uses), k), gen_put(g, n > 1 ? "; " : " }");
  if (guarded) gen_put(g, " } catch e { print(e.message, e.trace) }");
  gen_line(g);
  put(g, "print(s$, q$, len(w$), l$[0], l$[-1])", k);
}

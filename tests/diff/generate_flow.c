/* generate_flow.c — control flow under vmap, map and derivatives: functions of a number and an array, made of
 * loops, branches, early ends, stores and explicit constructs, and what each transform of them gives. Arms guard
 * what has no finite value or slope beside them. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/diff/generate_inner.h"

enum { WIDTH = 4, NAMES = 24 };

/* Numbers in sight, as their letters with a number each; the array `v` and its copy `w` are always there. */
typedef struct Flow {
  Gen *g;
  int floats[NAMES], nfloats, next;
  int own; /* from here on they may be assigned: the rest is outside of a function */
  int ints[NAMES], nints; /* counters of loops */
  int loops;              /* around, in this function */
  int depth;              /* of blocks */
  int left;               /* statements that may still be made */
  bool function;          /* the body of a function, not of a lambda: `return` may stand there, `w` may be written */
  bool list;              /* there is a list `q` of numbers, which grows */
} Flow;

static void number(Flow *f, int depth);

static void a_float(Flow *f) { gen_put(f->g, "a%d", f->floats[gen_below(f->g, f->nfloats)]); }

/* One that may be assigned. */
static int target(const Flow *f) { return f->floats[f->own + gen_below(f->g, f->nfloats - f->own)]; }

static void integer(Flow *f) {
  if (f->nints && gen_chance(f->g, 80)) gen_put(f->g, "i%d", f->ints[gen_below(f->g, f->nints)]);
  else gen_put(f->g, "%d", gen_below(f->g, WIDTH));
}

static void element(Flow *f, const char *of) {
  gen_put(f->g, "%s[", of);
  integer(f);
  gen_put(f->g, " %% %d]", WIDTH);
}

static void test(Flow *f) {
  Gen *g = f->g;
  switch (gen_below(g, 10)) {
    case 0: integer(f), gen_put(g, " %% 2 == %d", gen_below(g, 2)); break;
    case 1: integer(f), gen_put(g, " %s %d", gen_chance(g, 50) ? "==" : ">", gen_below(g, 4)); break;
    case 2: a_float(f), gen_put(g, " > "), a_float(f); break;
    case 3: element(f, gen_chance(g, 50) ? "v" : "w"), gen_put(g, " < "), number(f, 0); break;
    case 4:
      a_float(f), gen_put(g, " < 0.5 %s ", gen_chance(g, 50) ? "and" : "or"), a_float(f), gen_put(g, " > -1");
      break;
    default:
      a_float(f), gen_put(g, " %s %s", gen_chance(g, 50) ? "<" : ">",
                          gen_chance(g, 50) ? "0" : gen_chance(g, 50) ? "0.75" : "-0.5");
      break;
  }
}

static void number(Flow *f, int depth) {
  Gen *g = f->g;
  if (depth <= 0) {
    switch (gen_below(g, 8)) {
      case 0: gen_put(g, "%s", gen_chance(g, 50) ? "0.5" : gen_chance(g, 50) ? "1" : "-1.5"); return;
      case 1: element(f, gen_chance(g, 60) ? "v" : "w"); return;
      case 2:
        if (f->nints) {
          integer(f);
          return;
        }
        break;
      default: break;
    }
    a_float(f);
    return;
  }
  gen_put(g, "(");
  switch (gen_below(g, 12)) {
    case 0: number(f, depth - 1), gen_put(g, " + "), number(f, depth - 1); break;
    case 1: number(f, depth - 1), gen_put(g, " - "), number(f, depth - 1); break;
    case 2: number(f, depth - 1), gen_put(g, " * tanh("), number(f, depth - 1), gen_put(g, ")"); break;
    case 3: gen_put(g, "sin("), number(f, depth - 1), gen_put(g, ")"); break;
    case 4:
      gen_put(g, "%s(", gen_chance(g, 50) ? "maximum" : "minimum"), number(f, depth - 1), gen_put(g, ", "),
          number(f, depth - 1), gen_put(g, ")");
      break;
    case 5:
      gen_put(g, "where("), test(f), gen_put(g, ", "), number(f, depth - 1), gen_put(g, ", "), number(f, depth - 1),
          gen_put(g, ")");
      break;
    case 6:
      gen_put(g, "cond("), test(f), gen_put(g, ", () => 0.5 * "), number(f, depth - 1),
          gen_put(g, ", () => 0.25 + 1.0 * "), number(f, depth - 1), gen_put(g, ")");
      break;
    case 7:
      gen_put(g, "if "), test(f), gen_put(g, " { "), number(f, depth - 1), gen_put(g, " } else { "),
          number(f, depth - 1), gen_put(g, " }");
      break;
    case 8: gen_put(g, "sum(%s * ", gen_chance(g, 50) ? "v" : "w"), number(f, depth - 1), gen_put(g, ") * 0.25"); break;
    case 9: gen_put(g, "tanh("), number(f, depth - 1), gen_put(g, ")"); break;
    default: number(f, depth - 1), gen_put(g, " * 0.5"); break;
  }
  gen_put(g, ")");
}

static void statements(Flow *f, int most);

/* What must not run where its guard does not hold, nor count in a derivative. */
static void guarded(Flow *f) {
  Gen *g = f->g;
  int x = f->floats[gen_below(g, f->nfloats)], y = target(f), before = f->next++;
  switch (gen_below(g, 5)) {
    case 0: gen_put(g, "if a%d > 0 { a%d += log(a%d)", x, y, x); break;
    case 1: gen_put(g, "if a%d != 0 { a%d += tanh(1 / a%d)", x, y, x); break;
    case 2: gen_put(g, "if a%d > 0.25 { a%d += sqrt(a%d)", x, y, x); break;
    case 3:
      gen_put(g, "let b%d = log(a%d)", before, x), gen_line(g), gen_put(g, "if a%d > 0 { a%d += b%d", x, y, before);
      break;
    default:
      gen_put(g, "let b%d = sqrt(a%d)", before, x), gen_line(g),
          gen_put(g, "a%d += if a%d > 0 { b%d * 0.5 } else { 0.5", y, x, before);
      break;
  }
  if (f->loops && gen_chance(g, 20)) gen_put(g, "; %s", gen_chance(g, 60) ? "continue" : "break");
  gen_put(g, " }");
}

static void in_block(Flow *f, int most) {
  int floats = f->nfloats, ints = f->nints;
  f->depth++;
  f->g->indent++;
  statements(f, most);
  f->g->indent--;
  f->depth--;
  f->nfloats = floats;
  f->nints = ints;
}

/* An arm, or the body of a loop: sometimes it ends the trip, the loop or the function. */
static void arm(Flow *f, int most, int percent) {
  Gen *g = f->g;
  in_block(f, most);
  g->indent++;
  if (f->loops && gen_chance(g, percent)) gen_line(g), gen_put(g, "%s", gen_chance(g, 60) ? "continue" : "break");
  else if (f->function && gen_chance(g, percent / 4)) gen_line(g), gen_put(g, "return a0 * 0.5 + a1 + "), number(f, 1);
  g->indent--;
  gen_line(g);
  gen_put(g, "}");
}

static void branch(Flow *f) {
  Gen *g = f->g;
  gen_put(g, "if "), test(f), gen_put(g, " {");
  arm(f, 2, 50);
  if (gen_chance(g, 40)) gen_put(g, " else {"), arm(f, 2, 30);
}

static void loop(Flow *f) {
  Gen *g = f->g;
  if (f->loops >= 3 || f->nints >= NAMES || f->nfloats >= NAMES) {
    branch(f);
    return;
  }
  int i = f->next++;
  bool has_counter = true;
  int kind = gen_below(g, 4);
  switch (kind) {
    case 0: gen_put(g, "for a%d in %s {", i, gen_chance(g, 50) ? "v" : "w"), has_counter = false; break;
    case 1: gen_put(g, "let i%d = 0", i), gen_line(g), gen_put(g, "while i%d < %d", i, 1 + gen_below(g, 4)); break;
    case 2:
      if (f->nints) {
        gen_put(g, "for i%d in 0..i%d {", i, f->ints[gen_below(g, f->nints)]);
        break;
      }
      /* fallthrough */
    default: gen_put(g, "for i%d in 0..%d {", i, 1 + gen_below(g, 5)); break;
  }
  if (kind == 1) {
    if (gen_chance(g, 40)) gen_put(g, " and "), test(f);
    gen_put(g, " {");
    g->indent++;
    gen_line(g);
    gen_put(g, "i%d += 1", i);
    g->indent--;
  }
  int floats = f->nfloats, ints = f->nints;
  if (has_counter) f->ints[f->nints++] = i;
  else f->floats[f->nfloats++] = i;
  f->loops++;
  arm(f, 4, 6);
  f->loops--;
  f->nfloats = floats;
  f->nints = ints;
}

/* A function inside: it reads what is outside, and writes what is its own. */
static void body(Flow *f, int floats, int ints) {
  int own = f->own, loops = f->loops;
  bool function = f->function;
  f->own = f->nfloats - floats;
  f->loops = 0;
  f->function = false;
  in_block(f, 3);
  f->own = own;
  f->loops = loops;
  f->function = function;
  f->nfloats -= floats;
  f->nints -= ints;
  gen_line(f->g);
}

static void construct(Flow *f) {
  Gen *g = f->g;
  int a = target(f), c = f->next++, y = f->next++;
  if (f->nfloats + 2 > NAMES || f->nints >= NAMES || f->depth > 3) {
    gen_put(g, "a%d = ", a), number(f, 2);
    return;
  }
  f->floats[f->nfloats++] = c;
  switch (gen_below(g, 4)) {
    case 0:
      f->floats[f->nfloats++] = y;
      gen_put(g, "let s%d = scan((a%d, a%d) => {", c, c, y), body(f, 2, 0);
      gen_put(g, "  (tanh(1.0 * a%d), 1.0 * a%d) }, f64(a%d), v)", c, gen_chance(g, 50) ? c : a, a), gen_line(g);
      gen_put(g, "a%d = s%d[0] + sum(s%d[1]) * 0.5", a, c, c);
      break;
    case 1:
      f->ints[f->nints++] = y;
      gen_put(g, "a%d = fori_loop(0, %d, (i%d, a%d) => {", a, 1 + gen_below(g, 4), y, c), body(f, 1, 1);
      gen_put(g, "  1.0 * a%d }, f64(a%d))", c, a);
      break;
    case 2:
      gen_put(g, "a%d = while_loop(a%d => a%d < 1.5, a%d => {", a, c, c, c), body(f, 1, 0);
      gen_put(g, "  a%d * 0.5 + 0.4 }, f64(a%d), max_steps=%d)", c, a, 1 + gen_below(g, 4));
      break;
    default:
      gen_put(g, "a%d = sum(%s(a%d => {", a, gen_chance(g, 50) ? "vmap" : "map", c);
      body(f, 1, 0);
      gen_put(g, "  1.0 * a%d }, %s)) * 0.5", c, "v");
      break;
  }
}

/* Items behind the list, sometimes the last one taken off, or read. */
static void list_statement(Flow *f) {
  Gen *g = f->g;
  int a = target(f);
  switch (gen_below(g, 6)) {
    case 0: gen_put(g, "q += (1.0 * "), number(f, 1), gen_put(g, ", 0.5 * "), number(f, 0), gen_put(g, ")"); return;
    case 1: gen_put(g, "if len(q) > %d { q = q[:-1] }", gen_below(g, 3)); return;
    case 2: gen_put(g, "if len(q) > 0 { a%d = a%d * 0.5 + q[-1] * 0.25 }", a, a); return;
    default: gen_put(g, "q += (1.0 * "), number(f, 1), gen_put(g, ",)"); return;
  }
}

static void statement(Flow *f) {
  Gen *g = f->g;
  int a = target(f);
  if (f->list && f->function && gen_chance(g, 20)) {
    list_statement(f);
    return;
  }
  switch (gen_below(g, 16)) {
    case 0:
    case 1: {
      if (f->nfloats >= NAMES) break;
      int fresh = f->next++;
      gen_put(g, "let a%d = 1.0 * ", fresh), number(f, 2);
      f->floats[f->nfloats++] = fresh;
      return;
    }
    case 2:
    case 3:
    case 4: branch(f); return;
    case 5:
    case 6:
    case 7: loop(f); return;
    case 8:
    case 14: guarded(f); return;
    case 9:
      if (f->depth > 2) break;
      construct(f);
      return;
    case 10:
      if (!f->function) break;
      element(f, "w"), gen_put(g, " %s ", gen_chance(g, 50) ? "=" : "+="), number(f, 1);
      return;
    case 11: gen_put(g, "a%d %s ", a, gen_chance(g, 70) ? "+=" : "-="), number(f, 2); return;
    case 12:
      if (gen_chance(g, 70)) break;
      gen_put(g, gen_chance(g, 50) ? "assert(a%d < 40)" : "a%d += v[i64(minimum(abs(a%d), 9))] * 0.125", a, a);
      return;
    case 13:
      if (gen_chance(g, 85)) break;
      gen_put(g, "a%d = %s", a, gen_chance(g, 50) ? "1.5" : "0.0"); return;
    default: break;
  }
  gen_put(g, "a%d = a%d * 0.5 + ", a, a), number(f, 2);
}

static void statements(Flow *f, int most) {
  for (int n = 1 + gen_below(f->g, most); n > 0 && f->left > 0; n--) {
    f->left--;
    gen_line(f->g);
    statement(f);
  }
}

static void function(Gen *g, int n) {
  Flow f = {.g = g, .floats = {0, 1}, .nfloats = 2, .next = 2, .left = 14, .function = true};
  gen_put(g, "fn f%d(a0, v) {", n);
  g->indent = 1;
  gen_line(g);
  gen_put(g, "let w = v");
  gen_line(g);
  gen_put(g, "let a1 = %s", gen_chance(g, 50) ? "0.0" : gen_chance(g, 50) ? "a0 * 0.5" : "1.0");
  if ((f.list = gen_chance(g, 35))) gen_line(g), gen_put(g, "let q = %s", gen_chance(g, 70) ? "()" : "(a0, 0.5)");
  statements(&f, 6);
  gen_line(g);
  loop(&f);
  gen_line(g);
  if (f.list) {
    gen_put(g, gen_chance(g, 50) ? "if len(q) > 0 { a1 += tanh(sum(array(q))) }"
                                 : "for y in q { a1 += tanh(y) * 0.5 }");
    gen_line(g);
  }
  gen_put(g, "a0 + a1 * 0.5 + sum(w) * 0.25\n}\n");
  g->indent = 0;
}

/* Derivatives may add in another order, and know no sign of zero: they are compared to some digits. */
static const char *const uses[] = {
    "map(x => f0(x, v), X)",
    "vmap(f0, in_axes=(0, nil))(X, v)",
    "vmap(f0)(X, V)",
    "vmap(f0, in_axes=(nil, 0))(x, V)",
    "vmap(x => vmap(w => f0(x, w))(V))(X)",
    "map(w => sum(map(x => f0(x, w), X)), V)",
    "near(grad(f0)(x, v))",
    "near(grad(f0, argnum=1)(x, v))",
    "near(vmap(grad(f0), in_axes=(0, nil))(X, v))",
    "near(vmap(grad(f0, argnum=1))(X, V))",
    "near(grad(X => sum(vmap(f0, in_axes=(0, nil))(X, v)))(X))",
    "near(grad(X => sum(map(x => f0(x, v), X)))(X))",
    "near(grad(v => sum(map(x => f0(x, v), X)))(v))",
    "near(grad(V => sum(vmap(f0)(X, V)))(V))",
    "near(jvp(f0, (x, v), (1.0, v * 0.5 + 1))[1])",
    "near(jvp(X => map(x => f0(x, v), X), (X,), (X + 1,))[1])",
    "near(hessian(x => f0(x, v))(x))",
    "near(hessian(v => f0(x, v))(v))",
    "near(grad(x => grad(x => f0(x, v))(x))(x))",
    "near(grad(X => sum(vmap(grad(f0), in_axes=(0, nil))(X, v)))(X))",
    "near(jacrev(v => map(x => f0(x, v), X))(v))",
    "near(jacfwd(X => map(x => f0(x, v), X))(X))",
    "near(vmap(x => hessian(y => f0(y, v))(x))(X))",
    "near(scan((c, x) => { let y = f0(x, v); (tanh(c + y), y) }, 0.0, X)[1])",
    "near(grad(c => scan((c, x) => { let y = f0(c * x, v); (tanh(c + y), y) }, c, X)[0])(x))",
};

void gen_flow(Gen *g) {
  enum { USES = sizeof uses / sizeof uses[0], MAPS = 6 };
  function(g, 0);
  gen_put(g, "fn near(y) = f32(where(abs(y) < 1e-9, 0.0, y))\nlet out = ()\n");
  int count = 3 + gen_below(g, 3);
  for (int i = 0; i < count; i++)
    gen_put(g, "fn p%d(x, v, X, V) = %s\n", i, uses[gen_below(g, gen_chance(g, 25) ? MAPS : USES)]);
  static const char *const calls[] = {
      ("0.7, [0.5, -1.0, 2.0, 0.25], [0.3, -1.2, 0.0, 1.7], [[0.5, 1.0, -2.0, 0.0], [0.0, 0.0, 0.0, 0.0], "
       "[1.5, -0.5, 0.25, 3.0], [-1.0, 2.0, 1.0, 0.5]]"),
      "0.0, [0.0, 0.0, 1.0, -1.0], [0.0, 0.0], [[0.0, 0.5, 1.0, -1.0], [2.0, 1.0, 0.0, 0.0]]",
      "-1.3, [2.0, 1.0, 0.5, 0.1], [2.5], [[0.1, 0.2, 0.3, 0.4]]",
  };
  bool again = gen_chance(g, 25);
  if (again) gen_put(g, "for again in 0..4 {\n"); /* so that it gets hot on the way */
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 3; k++)
      gen_put(g, "try { out += (p%d(%s),) } catch e { out += (e.kind, e.message) }\n", i, calls[k]);
  gen_put(g, again ? "}\nout\n" : "out\n");
}

/* generate_probes.c — whole random programs of four makes: loops that are left and gone on with, under every
 * transform; every built-in operation with its settings; things of more parts than any fixed room has; trees of
 * lists whose length varies and of records of many keys.
 *
 * Each call stands in a function of its own, which is called several times, so that every tier compiles it; what it
 * raises is part of the outcome. */
#include <string.h>

#include "lang/ops.h"
#include "tests/diff/generate_inner.h"

#define PICK(g, list) (list)[gen_below(g, (int)(sizeof(list) / sizeof(list)[0]))]

/* ---- loops under transforms ---------------------------------------------------------------------------------- */

/* Derivatives of derivatives of compiled loops add in another order (docs/transforms.md), jvp and jacfwd too: functions
 * for these are given numbers of few bits, of which every order makes the same sum. */
static bool few_bits;

/* Forms: `#` a number made of x, `?` a condition on it, `@` a number that does not depend on the lane, `^` the loop's
 * counter. */
static void form(Gen *g, const char *text, int depth) {
  static const char *const short_numbers[] = {"x", "s", "t", "x * 0.5", "s - t", "t - x", "x * x", "1.5", "s + 1.0",
                                              "t + x", "abs(x)", "maximum(s, x)"};
  static const char *const numbers[] = {"x", "s", "t", "x * 0.5", "s * 0.25", "t - x", "x * x", "1.5", "s + 1.0",
                                        "sin(t)", "abs(x)", "maximum(s, x)"};
  static const char *const conditions[] = {"x > 0.0", "s > 2.0", "t < 1.0", "x < 0.5", "s < t", "abs(x) > 1.0", "k > 1",
                                           "k == 2", "x > 0.0 and k < 2", "not (s > 1.0)", "k % 2 == 1"};
  static const char *const outside[] = {"2", "3", "n", "4"};
  for (; *text; text++)
    if (*text == '#') gen_put(g, "%s", few_bits ? PICK(g, short_numbers) : PICK(g, numbers));
    else if (*text == '?') gen_put(g, "%s", PICK(g, conditions));
    else if (*text == '@') gen_put(g, "%s", PICK(g, outside));
    else if (*text == '^') gen_put(g, "%c", "ijqw"[depth & 3]);
    else gen_put(g, "%c", *text);
}

static void body(Gen *g, int depth, bool looped, bool returns);

static void loop(Gen *g, int depth, bool returns) {
  int d = depth & 3;
  switch (gen_below(g, 4)) {
  case 0: form(g, "for ^ in 0..@ { k = ^; ", depth); break;
  case 1: form(g, "for ^ in [1.0, -0.5, 2.0] { t = t + ^; k += 1; ", depth); break;
  case 2: gen_put(g, "let m%d = 0; while m%d < %d { m%d += 1; k = m%d; ", d, d, 2 + gen_below(g, 3), d, d); break;
  default:
    gen_put(g, "let m%d = 0; while m%d < 4 and ", d, d), form(g, "?", depth),
        gen_put(g, " { m%d += 1; k = m%d; ", d, d);
    break;
  }
  body(g, depth + 1, true, returns);
  gen_put(g, " }");
}

static void one(Gen *g, int depth, bool looped, bool returns) {
  static const char *const plain[] = {"s = s + #", "s += #", "t = #", "s = s * 0.5 + #", "t *= 0.5", "s = #",
                                      "a[k % 3] += #", "a[0] = #", "s += a[k % 3]", "s += sum(a) * 0.1", "k += 1"};
  static const char *const short_plain[] = {"s = s + #", "s += #", "t = #", "s = # - s", "t -= 0.5", "s = #",
                                            "a[k % 3] += #", "a[0] = #", "s += a[k % 3]", "s += sum(a)", "k += 1"};
  _Static_assert(sizeof plain == sizeof short_plain, "the same programs but for their numbers");
  static const char *const checks[] = {"assert(x < 50.0)", "let h = i64(x)", "let h = 7 // (k + 9)",
                                       "assert(k < 99, \"k\")", "let h = a[k % 3]"};
  int roll = gen_below(g, 100);
  if (looped && roll < 22) {
    gen_put(g, "if "), form(g, "?", depth), gen_put(g, " { ");
    if (gen_chance(g, 35)) form(g, few_bits ? PICK(g, short_plain) : PICK(g, plain), depth), gen_put(g, "; ");
    gen_put(g, "%s }", gen_chance(g, 50) ? "continue" : gen_chance(g, 70) || !returns ? "break" : "return s");
  } else if (depth < 3 && roll < 40) {
    gen_put(g, "if "), form(g, "?", depth), gen_put(g, " { "), body(g, depth + 1, looped, returns), gen_put(g, " }");
    if (gen_chance(g, 50)) gen_put(g, " else { "), body(g, depth + 1, looped, returns), gen_put(g, " }");
  } else if (depth < 2 && roll < 55) {
    loop(g, depth, returns);
  } else if (roll < 62) {
    gen_put(g, "if "), form(g, "?", depth), gen_put(g, " { %s }", PICK(g, checks));
  } else if (returns && roll < 66) {
    form(g, "if ? { return # }", depth);
  } else {
    form(g, few_bits ? PICK(g, short_plain) : PICK(g, plain), depth);
  }
}

static void body(Gen *g, int depth, bool looped, bool returns) {
  for (int n = 1 + gen_below(g, 3); n > 0; n--) one(g, depth, looped, returns), gen_put(g, n > 1 ? "; " : "");
}

/* f(x): a number to a number, by loops. */
static void loops_function(Gen *g) {
  bool returns = gen_chance(g, 40);
  gen_put(g, "fn f(x) {\n  let n = 3; let k = 0; let s = x * 1.0; let t = 0.5; let a = [x * 1.0, 1.0, x + 2.0]\n");
  for (int i = 1 + gen_below(g, 2); i > 0; i--) {
    gen_put(g, "  "), loop(g, 0, returns), gen_put(g, "\n");
    if (gen_chance(g, 50)) gen_put(g, "  "), one(g, 1, false, returns), gen_put(g, "\n");
  }
  gen_put(g, "  s + t * 0.125 + k\n}\n");
}

static const char *const transformed[] = {
    "f(z[0])", "vmap(f)(z)", "array(map(f, z))", "array(map(f, z)) + 1", "grad(f)(z[1])", "value_and_grad(f)(z[0])",
    "vmap(grad(f))(z)", "grad(v => sum(vmap(f)(v)))(z)",
    "grad(v => sum(array(map(f, v))))(z)", "jvp(f, (z[0],), (1.0,))", "hessian(f)(z[1])", "vmap(value_and_grad(f))(z)",
    "jacfwd(v => vmap(f)(v))(z)", "jacrev(v => vmap(f)(v))(z)",
    "scan((c, v) => (f(c * 0.5 + v), c), 0.5, z)", "scan((c, v) => (c * 0.5 + 1.0, f(v)), 0.5, z)[1]",
    "grad(v => sum(scan((c, w) => (f(w) + c, c), 0.5, v)[1]))(z)",
    "fori_loop(0, 3, (i, c) => f(c * 0.25), z[0])", "while_loop(c => c < 3.0, c => abs(f(c)) + c + 1.0, z[0])",
    "cond(z[0] > 0.0, f, v => v * 2.0, z[0])", "vmap(v => cond(v > 0.0, f, w => w, v))(z)",
    "vmap(v => sum(array(map(w => f(w) * v, z))))(z)", "vmap(v => scan((c, w) => (c + f(w), c * v), v, z)[0])(z)",
    "grad(v => f(v) * f(v + 1.0))(z[0])", "vmap(v => while_loop(c => c < 3.0, c => c * c + f(v) * 0.0 + 1.0, 0.5))(z)",
};

static void calls(Gen *g, const char *arguments) {
  gen_put(g, "let out = ()\nfor r in 0..3 { try { out += (p(%s),) } catch e { out += (e.kind, e.message) } }\n",
          arguments);
}

static void gen_transforms(Gen *g) {
  static const char *const points[] = {"[0.25, -1.5, 3.0]", "[1.0, 0.0, -0.25, 7.0]", "[-2.0]", "[0.75, 0.75]"};
  const Gen before = *g;
  few_bits = false;
  for (bool again = true; again;) { /* twice, where the uses turn out to ask for few bits */
    const char *uses[3];
    loops_function(g);
    again = false;
    for (int n = 0; n < 3; n++) {
      uses[n] = PICK(g, transformed);
      gen_put(g, "fn p%d(z) = %s\n", n, uses[n]);
      again |= !few_bits && (strstr(uses[n], "jvp") || strstr(uses[n], "jacfwd") || strstr(uses[n], "hessian"));
    }
    if (!again) break;
    g->state = before.state;
    g->length = before.length;
    few_bits = true;
  }
  gen_put(g, "let out = ()\nfor r in 0..3 {\n");
  for (int n = 0; n < 3; n++) {
    gen_put(g, "  try { out += (p%d(%s),) } catch e { out += (e.kind, e.message) }\n", n, PICK(g, points));
    gen_put(g, "  try { out += (p%d(%s),) } catch e { out += (e.kind, e.message) }\n", n, PICK(g, points));
  }
  gen_put(g, "}\nout\n");
}

/* ---- every operation with its settings --------------------------------------------------------------------------- */

static bool is(const OpParam *p, const char *name) {
  return p->len == strlen(name) && memcmp(p->name, name, p->len) == 0;
}

/* A value for a parameter; false: it is not known what would do. */
static bool setting(Gen *g, const OpParam *p) {
  static const struct {
    const char *name, *values[8];
  } known[] = {
      {"axis", {"0", "1", "-1", "-2", "nil", "(0, 1)", "2"}},
      {"axes", {"(1, 0)", "nil", "(0, 1)", "1"}},
      {"keepdims", {"true", "false"}},
      {"descending", {"true", "false"}},
      {"stable", {"true", "false"}},
      {"ord", {"1", "2", "inf", "-inf", "0", "3", "0.5"}},
      {"correction", {"0", "1", "0.5", "2"}},
      {"dtype", {"f32", "f64", "i64", "i32", "bool"}},
      {"side", {"\"left\"", "\"right\""}},
      {"k", {"0", "1", "-1", "2"}},
      {"offset", {"0", "1", "-1"}},
      {"n", {"1", "2", "3"}},
      {"shift", {"1", "-1", "2", "(1, 2)"}},
      {"repeats", {"2", "3", "[1, 2, 1]"}},
      {"reps", {"2", "(2, 1)"}},
      {"q", {"0.5", "[0.25, 0.75]", "0.0", "1.0"}},
      {"eps", {"1e-5", "0.1"}},
      {"min", {"0.5", "nil", "-1.0"}},
      {"max", {"1.5", "nil", "2.0"}},
      {"initial", {"0.5", "1.0"}},
      {"approximate", {"true", "false"}},
      {"shape", {"(3,)", "(2, 3)", "(-1,)", "(3, 2)"}},
      {"bins", {"3", "[0.0, 1.0, 2.0]"}},
      {"range", {"(0.0, 2.0)", "nil"}},
      {"minlength", {"3", "0"}},
      {"num", {"3", "5"}},
      {"decimals", {"0", "2"}},
      {"size", {"2", "3"}},
      {"window", {"2", "3"}},
      {"mode", {"\"reduced\"", "\"complete\"", "\"add\"", "\"set\"", "\"max\""}},
      {"pad", {"1", "((1, 0), (0, 2))"}},
      {"value", {"0.0", "1.5"}},
      {"indexing", {"\"ij\"", "\"xy\""}},
      {"upper", {"true", "false"}},
      {"lower", {"true", "false"}},
      {"include_initial", {"true", "false"}},
      {"reverse", {"true", "false"}},
      {"exclusive", {"true", "false"}},
      {"endpoint", {"true", "false"}},
      {"base", {"2", "10"}},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (!is(p, known[i].name)) continue;
    int n = 0;
    while (n < 8 && known[i].values[n]) n++;
    gen_put(g, "%s", known[i].values[gen_below(g, n)]);
    return true;
  }
  return false;
}

/* An array, or a list of such. */
static void operand(Gen *g, const OpParam *p, const char *of) {
  static const char *const whole[] = {"x", "y", "x * 0.5", "x.T", "x[0]", "x[1:]", "y[:, 0]",
                                      "i64(y)", "x > 1.0", "f32(x)", "x[0, 0]", "1.5"},
      *const indices[] = {"[0, 1]", "[1, 0, -1]", "[[0, 1], [1, 0]]", "0"};
  if (is(p, "indices") || is(p, "index")) gen_put(g, "%s", PICK(g, indices));
  else if (is(p, "xs") || is(p, "arrays") || p->rest)
    gen_put(g, "(%s, %s)", of, gen_chance(g, 80) ? of : PICK(g, whole));
  else if (is(p, "condition") || is(p, "mask")) gen_put(g, "%s > 1.0", of);
  else gen_put(g, "%s", gen_chance(g, 75) ? of : PICK(g, whole));
}

static bool may_call(const OpInfo *info) {
  if (info->effect > EFF_raises || !info->nparams) return false;
  switch (info->family) {
  case FAM_elementwise: case FAM_reduce: case FAM_scan: case FAM_view: case FAM_index: case FAM_sort: case FAM_make:
    break;
  case FAM_linalg: return info->agree != AGREE_lib; /* what libraries compute may differ in the last bit */
  default: return strncmp(info->name, "nn.", 3) == 0;
  }
  for (u32 i = 0; i < info->nparams; i++)
    if (info->params[i].rest && info->family == FAM_make) return false;
  return strchr(info->name, ' ') == NULL;
}

static void operation(Gen *g) {
  const OpInfo *info;
  do info = op_info(1 + (u32)gen_below(g, OP_COUNT - 1));
  while (!may_call(info));
  static const char *const of[] = {"x", "y", "x", "x[0]", "y[:, 1]"};
  const char *whole = PICK(g, of);
  bool first = true;
  gen_put(g, "%s(", info->name);
  for (u32 i = 0; i < info->nparams; i++) {
    const OpParam *p = &info->params[i];
    bool named = p->has_default || p->keyword_only;
    if (named && gen_chance(g, 45)) continue;
    size_t before = g->length;
    if (!first) gen_put(g, ", ");
    if (named) gen_put(g, "%.*s=", (int)p->len, p->name);
    if (!setting(g, p)) {
      if (named) { /* its default will do */
        g->length = before;
        g->text[before] = 0;
        continue;
      }
      if (p->rest) gen_put(g, "%s, %s", whole, whole);
      else operand(g, p, whole);
    }
    first = false;
  }
  gen_put(g, ")");
}

static void gen_operations(Gen *g) {
  static const char *const around[] = {"%", "%", "%", "vmap(x => %)(stack((x, x * 2.0)))",
                                       "vmap((x, y) => %)(stack((x, x)), stack((y, y + 1.0)))", "grad(x => sum(%))(x)",
                                       "map(c => %, 0..2)"};
  static const char *const arguments[] = {
      "[[1.0, -2.0, 0.5], [3.0, 0.25, 2.0]], [[2.0, 1.0, 3.0], [0.5, 4.0, 1.0]]",
      "[[0.5, 1.5], [2.5, 0.25]], [[1.0, 2.0], [3.0, 4.0]]", "[[1, 2, 3]], [[3, 2, 1]]", "zeros((0, 3)), ones((0, 3))",
      "f32([[1.5, 2.5, -1.0]]), f32([[0.5, 1.0, 2.0]])", "[[nan, 1.0, inf]], [[-inf, 0.0, -0.0]]"};
  enum { EACH = 6 };
  for (int n = 0; n < EACH; n++) {
    gen_put(g, "fn p%d(x, y) = ", n);
    for (const char *at = PICK(g, around); *at; at++)
      if (*at == '%') operation(g);
      else gen_put(g, "%c", *at);
    gen_put(g, "\n");
  }
  gen_put(g, "let out = ()\nfor r in 0..2 {\n");
  for (int k = 0; k < 3; k++) {
    const char *with = PICK(g, arguments);
    for (int n = 0; n < EACH; n++)
      gen_put(g, "  try { out += (p%d(%s),) } catch e { out += (e.kind, e.message) }\n", n, with);
  }
  gen_put(g, "}\nout\n");
}

/* ---- many parts -------------------------------------------------------------------------------------------------- */

static int many(Gen *g) {
  static const int around[] = {16, 24, 25, 32, 33, 63, 64, 65, 66, 127, 128, 129, 130, 200, 201, 255, 256, 257};
  return PICK(g, around) + (gen_chance(g, 25) ? gen_below(g, 9) : 0);
}

static void listed(Gen *g, int n, const char *open, const char *item, const char *close) {
  gen_put(g, "%s", open);
  for (int i = 0; i < n; i++) {
    gen_put(g, i ? ", " : "");
    for (const char *c = item; *c; c++)
      if (*c == '#') gen_put(g, "%d", i);
      else gen_put(g, "%c", *c);
  }
  gen_put(g, "%s", close);
}

/* Lanes that share a variable may add its cotangents in another order (docs/transforms.md): LANES is given numbers
 * of few bits, of which every order makes the same sum. */
enum { LANES = 11, PARTS = 14 };

static void parts_expression(Gen *g, int n, int which) {
  switch (which) {
  case 0: gen_put(g, "{ let s = 0.0; for v in unstack(z) { s += v * v }; s }"); break;
  case 1: gen_put(g, "sum(concat(split(z, %d)))", n); break;
  case 2: gen_put(g, "sum(split(z, %d)[%d] * 2.0)", n, gen_below(g, n)); break;
  case 3: listed(g, n, "sum(stack((", "z * #.5", ")))"); break;
  case 4: listed(g, n, "sum(concat((", "z + #.0", ")))"); break;
  case 5: listed(g, n, "sum(array([", "z[#] * 2.0", "]))"); break;
  case 6: listed(g, n, "{ let l = (", "z[#] + 1.0", "); let s = 0.0; for v in l { s += v * v }; s }"); break;
  case 7: listed(g, n, "{ let r = {", "k#: z[#] * 0.5", "}; let s = 0.0; for (k, v) in r { s += v }; s }"); break;
  case 8:
    listed(g, n, "{ let r = {", "k#: z[#]", "}; let q = tree_map(v => v * 2.0, r); "),
        gen_put(g, "q.k0 + q.k%d }", n - 1);
    break;
  case 9: /* a function of so many parameters */
    listed(g, n, "{ let h = (", "a#", ") => a0 * a");
    gen_put(g, "%d; ", n - 1);
    listed(g, n, "h(", "z[#]", ") }");
    break;
  case 10: gen_put(g, "sum(stack(map(v => v * v, unstack(z))))"); break;
  case LANES: gen_put(g, "sum(vmap(v => v * v + sum(z) * 0.25)(z))"); break;
  case 12: gen_put(g, "sum(scan((c, v) => (c * 0.5 + v, c), 0.0, z)[1])"); break;
  default: gen_put(g, "{ let l = (); for v in z { l += (v * 1.5,) }; sum(stack(l)) }"); break;
  }
}

static void gen_parts(Gen *g) {
  static const char *const around[] = {"f(z)", "grad(f)(z)", "jvp(f, (z,), (z + 1.0,))", "vmap(f)(stack((z, z * 2.0)))",
                                       "value_and_grad(f)(z)", "f(z)", "vmap(grad(f))(stack((z, z * 2.0)))"};
  int n = many(g), which = gen_below(g, PARTS);
  gen_put(g, "fn f(z) = ");
  parts_expression(g, n, which);
  gen_put(g, "\nfn p(z) = %s\n", PICK(g, around));
  gen_put(g, which == LANES ? "let x = arange(%d) * 0.0625 - 1.0\n" : "let x = linspace(-1.0, 2.0, %d)\n", n);
  calls(g, "x");
  gen_put(g, "out\n");
}

/* ---- trees ----------------------------------------------------------------------------------- */

static void tree_value(Gen *g, const char *n, int depth) {
  switch (gen_below(g, depth > 1 ? 3 : 8)) {
  case 0: gen_put(g, "map(k => k * 1.0 + c, 0..%s)", n); break;
  case 1: gen_put(g, "c * 0.5"); break;
  case 2: gen_put(g, "[c, 1.0, 2.0]"); break;
  case 3: gen_put(g, "map(k => [k * 1.0, c], 0..%s)", n); break;
  case 4: gen_put(g, "map(k => {w: k * 0.5, b: [c, k * 1.0]}, 0..%s)", n); break;
  case 5:
    gen_put(g, "{a: "), tree_value(g, n, depth + 1), gen_put(g, ", b: "), tree_value(g, n, depth + 1), gen_put(g, "}");
    break;
  case 6:
    gen_put(g, "("), tree_value(g, n, depth + 1), gen_put(g, ", "), tree_value(g, n, depth + 1), gen_put(g, ")");
    break;
  default: gen_put(g, "{ let l = (); for k in 0..%s { l += (k * 2.0 + c,) }; l }", n); break;
  }
}

static void trees(Gen *g) {
  static const char *const uses[] = {
      "tree_map(v => v * 2, t)", "tree_map((a, b) => a + b * 0.5, t, t)", "tree_leaves(t)",
      "tree_reduce((a, b) => a + sum(b), t, 0.0)", "len(tree_leaves(t))",
      "tree_map(v => sum(v) + 1, t)", "tree_map((a, b) => a - 0.1 * b, t, tree_map(v => v * v, t))",
      "fori_loop(0, 3, (i, q) => tree_map(v => v + 1, q), t)",
      "grad(q => tree_reduce((a, b) => a + sum(b * b), q, 0.0))(t)",
      "while_loop(((i, q)) => i < 3, ((i, q)) => (i + 1, tree_map(v => v * 0.5, q)), (0, t))[1]",
      "scan((q, v) => (tree_map(w => w + v, q), v), t, [1.0, 2.0])[0]"};
  int n = many(g), keys = gen_chance(g, 30) ? many(g) : 0;
  gen_put(g, "fn make(n, c) = ");
  if (keys) listed(g, keys, "{", gen_chance(g, 50) ? "k#: #.5 + c" : "k#: [#.0, c]", "}");
  else tree_value(g, "n", 0);
  gen_put(g, "\n");
  for (int k = 0; k < 3; k++) gen_put(g, "fn p%d(t) = %s\n", k, PICK(g, uses));
  gen_put(g, "let out = ()\nfor r in 0..7 { let t = make(%s, r * 0.5)\n",
          gen_chance(g, 50) ? "r % 4 + 1" : gen_chance(g, 50) ? "r" : "70 + r");
  for (int k = 0; k < 3; k++) gen_put(g, "  try { out += (p%d(t),) } catch e { out += (e.kind, e.message) }\n", k);
  gen_put(g, "  try { out += (%s,) } catch e { out += (e.kind, e.message) }\n}\n", PICK(g, uses));
  gen_put(g, "let t = make(%d, 0.25)\n"
             "for r in 0..3 { try { out += (p0(t),) } catch e { out += (e.kind, e.message) } }\nout\n", n);
}

void gen_probe(Gen *g) {
  int roll = gen_below(g, 100);
  if (roll < 45) gen_transforms(g);
  else if (roll < 70) gen_operations(g);
  else if (roll < 85) gen_parts(g);
  else trees(g);
}

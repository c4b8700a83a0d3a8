/* generate_sizes.c — random programs of functions whose numbers become sizes in arms, and again in others: arrays
 * of as many elements, slices, masks, lengths that are compared and counted to. Errors leave in the middle and show
 * all variables. */
#include "tests/diff/generate_inner.h"

#define PICK(g, list) (list)[gen_below(g, (int)(sizeof(list) / sizeof(list)[0]))]

enum { FUNCTIONS = 4, DEEPEST = 2 };

/* Forms: `#` is a size, `?` a condition, `~` an array of a few elements. No size grows by more than a sum from trip to
 * trip. */
static void put(Gen *g, const char *form) {
  static const char *const sizes[] = {"k", "k", "k - 1", "k + 1", "len(y)", "len(y) - 2", "len(y) - n", "k * 2",
                                      "m", "m - 1", "-k", "len(y) + k", "maximum(k, 0)", "len(a) - 1", "len(a)",
                                      "n", "k - n"};
  static const char *const conditions[] = {"x[0] > 2", "k > 0", "len(y) > 2", "k == n", "x[n] > 0", "len(y) == k",
                                           "k < 0", "m > 1", "len(a) > k", "len(a) == len(y)", "m != k",
                                           "# < #", "# == #"};
  static const char *const arrays[] = {"a", "b", "y", "x", "b[1:]", "a + 1", "a * b", "a + b", "arange(#)", "a[a > #]",
                                       "where(a > #, a, #)", "b[::-1]", "concat((a, b))[:9]", "b[:#]", "sort(a)",
                                       "cumsum(b)", "outer(a, b)[0]", "reshape(a, (2, -1))[0]", "a[b % len(a)]",
                                       "roll(a, #)", "array(l)[:9]"};
  for (; *form; form++)
    if (*form == '#') put(g, PICK(g, sizes));
    else if (*form == '?') put(g, PICK(g, conditions));
    else if (*form == '~') put(g, PICK(g, arrays));
    else gen_put(g, "%c", *form);
}

/* Numbers and arrays. */
static const char *const plain[] = {
    "a = zeros(#, dtype=i64)", "let u = zeros(#)", "let u = eye(#)", "let u = ones((#, 2))", "s += sum(x[#:])",
    "s += sum(x[:#]) * 3", "s += len(arange(#)) * 5", "s += maximum(#, 0) * 7", "s += (if ? { 1 } else { 2 })", "m = #",
    "s += len(y[#:])", "y = x[x > #]", "s += x[#]", "let u = x[#]", "s += len(zeros(#))", "a = y[#:]", "s += sum(a)",
    "let u = a + y", "let u = repeat(x, #)", "s += minimum(#, len(x)) * 11", "s = s % 1009", "let u = full(#, #)"};

/* What else may change, be shown or end early. */
static const char *const mixed[] = {"a = ~", "b = ~", "let z = ~", "s += sum(~)", "s += max(~)", "a[#] = #",
                                    "b[#] += #", "r.p = #", "r.q = ~", "c[0] += #", "l += (#,)", "l[#] = #",
                                    "l = l[1:]", "k = (#) % 9 - 2", "s += g(#, #)", "a = h(~, #)",
                                    "print(#, s)", "G += #", "s += G + r.p", "m = (#) // (#)",
                                    "if ? { return (s, m, a, b, r, c, l, \"early\") }", "if ? { error(\"x\") }"};

static void block(Gen *g, int depth, bool rich, bool inside);

static void loop(Gen *g, int depth, bool rich) {
  static const char *const ends[] = {"3", "n", "len(y)", "3", "n", "len(y)", "len(a)", "m % 5"},
      *const steps[] = {"1", "-1", "j"};
  bool counted = rich && gen_chance(g, 30);
  if (counted) gen_put(g, "let t%d = 0; while t%d < %s { t%d += 1; ", depth, depth, PICK(g, ends), depth);
  else gen_put(g, "for j in 0..%s { ", PICK(g, ends));
  block(g, depth + 1, rich, true);
  gen_put(g, "; m += %s }", counted ? "1" : PICK(g, steps));
}

static void statement(Gen *g, int depth, bool rich, bool inside) {
  int roll = gen_below(g, 100);
  if (depth < DEEPEST && roll < 30) {
    put(g, "if ? { "), block(g, depth + 1, rich, inside), gen_put(g, " }");
    if (gen_chance(g, 60)) gen_put(g, " else { "), block(g, depth + 1, rich, inside), gen_put(g, " }");
  } else if (depth < DEEPEST && roll < 40) {
    loop(g, depth, rich);
  } else if (rich && depth < DEEPEST && roll < 44) {
    gen_put(g, "try { "), block(g, depth + 1, rich, false), gen_put(g, " } catch e { log += (e.kind,); "),
        block(g, depth + 1, rich, false), gen_put(g, " }");
  } else if (inside && rich && roll < 50) {
    put(g, gen_chance(g, 50) ? "if ? { break }" : "if ? { continue }");
  } else {
    put(g, rich && gen_chance(g, 50) ? PICK(g, mixed) : PICK(g, plain));
  }
}

static void block(Gen *g, int depth, bool rich, bool inside) {
  for (int n = 1 + gen_below(g, rich ? 3 : 2); n > 0; n--)
    statement(g, depth, rich, inside), gen_put(g, n > 1 ? "; " : "");
}

static void function(Gen *g, int number, bool rich) {
  static const char *const firsts[] = {"sum(x)", "x[n]", "sum(x) - n", "min(x)"};
  const char *more = rich ? ", b, r, c, l, log" : "";
  gen_put(g, "fn f%d(x, n) {\n  let s = 0; let m = 2; let y = x[x > 1]; let k = %s; let a = x\n", number,
          PICK(g, firsts));
  if (rich) gen_put(g, "  let b = x * 2; let r = {p: 1, q: x}; let c = [1, 2]; let l = (3, 4); let log = ()\n");
  gen_put(g, "  try {");
  for (int n = 3 + gen_below(g, 5); n > 0; n--) gen_put(g, "\n    "), statement(g, 0, rich, false);
  gen_put(g, "\n  } catch e { return (s, m, y, a, k%s, e.message, e.trace[0]) }\n  (s, m, y, a, k%s)\n}\n", more, more);
}

void gen_sizes(Gen *g) {
  static const char *const arguments[] = {"[3, 1, 2]", "[0, 5, -4, 0]", "[-3, 2, 1]", "[4, 4, -4, 2, 0, 1]",
                                          "[2, 0, 0]", "[-1, -1, -1]", "[1, 1, 1]", "[2, 0]", "[1]"};
  enum { ARGUMENTS = sizeof arguments / sizeof arguments[0] };
  bool rich = gen_chance(g, 40), looped = gen_chance(g, 20);
  gen_put(g, "let G = 0\nlet out = ()\n");
  gen_put(g, "fn g(p, q) { if p > q { p - q } else { if q > 50 { error(\"g\") }; p * 2 + G } }\n"
             "fn h(v, q) { let w = v; if len(w) > 0 { w[0] = q }; w }\n");
  for (int f = 0; f < FUNCTIONS; f++) function(g, f, rich);
  for (int f = 0; f < FUNCTIONS; f++)
    for (int x = 0; x < ARGUMENTS; x++) {
      if (looped)
        gen_put(g, "for n in 0..3 { try { out += (f%d(%s, n),) } catch e { out += (e.message,) }; G = G %% 100 }\n", f,
                arguments[x]);
      for (int n = 0; n < 3 && !looped; n++)
        gen_put(g, "try { out += (f%d(%s, %d),) } catch e { out += (e.message,) }; G = G %% 100\n", f, arguments[x], n);
    }
  gen_put(g, "(out, G)\n");
}

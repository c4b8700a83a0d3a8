/* generate_raised.c — random programs of loops whose trips may be done at once, or reduced in any order: arms that look
 * and store, truth values, extremes and their places, loops of a few trips inside, neighbours. Few trips and many,
 * places that repeat or are not there, errors in the middle; the state behind them is shown. */
#include "tests/diff/generate_inner.h"

#define PICK(g, list) (list)[gen_below(g, (int)(sizeof(list) / sizeof(list)[0]))]

enum { FUNCTIONS = 3 };

/* Forms: `?` a condition, `~` a float, `#` an integer, `<` a comparison. */
static void put(Gen *g, const char *form, int depth) {
  static const char *const conditions[] = {"x[i] > 0.5", "x[i] < y[i]", "k[i] % 3 == 1", "m[i]", "k[i] >= 2",
                                           "y[i] != y[i]", "i > 40", "x[i] == 0", "not m[i]", "# < #", "~ < ~",
                                           "? and ?", "? or ?", "k[p[i]] > 1"};
  static const char *const floats[] = {"x[i]", "y[i]", "x[i] * 0.5", "-x[i]", "abs(y[i])", "x[i] - y[i]", "1.5",
                                       "x[p[i]]", "c", "(if ? { ~ } else { ~ })", "x[i] + k[i]", "(~ + ~)", "x[-i]",
                                       "(if m[i] { x[i] } else { 0.0 })", "f64(i)"};
  static const char *const integers[] = {"k[i]", "i", "k[i] * 3", "7", "k[p[i]]", "k[i] - i", "(k[i] ^ i)", "q[i]",
                                         "(if ? { # } else { # })", "i64(m[i])", "k[i] // 2", "k[i] % 5", "p[i]"};
  static const char *const compares[] = {"<", ">", "<=", ">="};
  for (; *form; form++)
    if (*form == '?') put(g, conditions[gen_below(g, depth > 1 ? 9 : 14)], depth + 1);
    else if (*form == '~') put(g, floats[gen_below(g, depth > 1 ? 8 : 15)], depth + 1);
    else if (*form == '#') put(g, integers[gen_below(g, depth > 1 ? 5 : 13)], depth + 1);
    else if (*form == '<' && form[1] == '@') gen_put(g, "%s", PICK(g, compares)), form++;
    else gen_put(g, "%c", *form);
}

static const char *const statements[] = {
    "if ? { z[i] = ~ }", "if ? { z[i] = ~ } else { z[i] = ~ }", "if ? { y[i] = ~ }", "if ? { z[i] += ~ }", "y[i] = ~",
    "if ? { q[i] = # }", "if ? { if ? { q[i] = # } else { z[i] = ~ } }", "z[i] = ~", "q[i] += #",
    "if ? { n += 1 }", "if ? { s += # }", "s += #", "if ? { s -= # } else { s += # }", "s = s ^ #",
    "some = some or ?", "every = every and ?", "some = some or (? and ?)", "if ? { some = true }",
    "if ? { every = false }", "some = ? or some", "if ? { last = i }", "if ? { last = q[i] }",
    "if x[i] <@ x[at] { at = i }", "if x[i] <@ x[at] { at = i }", "if k[i] <@ k[to] { to = i }",
    "if x[p[i]] <@ x[at] { at = p[i] }", "if x[-i] <@ x[at] { at = -i }", "if x[at] <@ x[i] { at = i }",
    "if w[r, i] <@ w[r, to] { to = i }", "if x[i] <@ x[at] and ? { at = i }", "at = if x[i] <@ x[at] { i } else { at }",
    "if x[i] <@ best { best = x[i] }", "if x[i] <@ best { best = x[i]; last = i }", "best = maximum(best, ~)",
    "if k[i] <@ top { top = k[i]; to = i }",
    "for u in 0..3 { s += k[i] * u }", "let t = 0.0; for u in 0..3 { t += v[i + u] }; z[i] = t",
    "let t = 0; for u in -1..2 { for h in -1..2 { if u != h { t += d[i + 1 + u, 1 + h] } } }; q[i] = t",
    "let t = ~; for u in 0..4 { if t < x[i] { t += 0.5 } }; z[i] = t",
    "for u in 0..2 { if ? { n += u } }", "let t = 1.0; for u in 0..o { t = t * 0.5 + ~ }; y[i] = t",
    "let t = 0; for u in 0..3 { if d[i, u] > t { t = d[i, u] } }; s += t",
    "if i > 0 { z[i] = y[i - 1] }", "z[i] = v[i] + v[i + 1]"};

/* They need care: the next trip, or one that is not known, looks at what they store. */
static const char *const chained[] = {"y[i] = y[i - 1] * 0.5 + x[i]", "y[p[i]] += 1", "v[i + 1] = v[i] * 0.5 + ~",
                                      "if ? { v[i] = v[i + 2] }", "x[i] = ~", "k[p[i]] = #", "v[i + o] = v[i]",
                                      "p[i] = (p[i] + i) % 3"};

/* They end a loop that has come so far. */
static const char *const ends[] = {"z[i] = x[k[i] + stop]", "if i == stop + 500 { error(\"so far\") }",
                                   "s += k[p[i] + stop]", "q[i] = i64(z[i] * 1e300)", "z[i + stop] = 1.0"};

static void function(Gen *g, int number) {
  static const char *const ranges[] = {"0..len(x)", "0..len(x)", "0..len(x)", "1..len(x)", "o..len(x)",
                                       "0..len(x) - 1", "2..len(x) + 1", "0..len(x) by 2"};
  static const char *const places[] = {"0", "0", "0", "1", "-1", "len(x) - 1", "len(x)", "-3"};
  gen_put(g, "fn f%d(x, y, k, p, m, v, d, w, o, stop) {\n"
             "  let z = zeros(len(x)); let q = zeros(len(x), dtype=i64); let (s, n, last, r) = (0, 0, -1, 1)\n",
          number);
  gen_put(g, "  let (some, every, c, best, top) = (false, true, 0.25, %s, k[0]); let (at, to) = (%s, %s)\n",
          gen_chance(g, 50) ? "x[0]" : "-inf", PICK(g, places), PICK(g, places));
  gen_put(g, "  let why = \"\"\n  try {\n    for i in %s {\n", PICK(g, ranges));
  for (int count = 1 + gen_below(g, 3); count > 0; count--) {
    int roll = gen_below(g, 100);
    gen_put(g, "      ");
    put(g, roll < 8 ? PICK(g, ends) : roll < 20 ? PICK(g, chained) : PICK(g, statements), 0);
    gen_put(g, "\n");
  }
  gen_put(g, "    }\n  } catch e { why = e.message }\n"
             "  (z, q, y, k, x, p, v, s, n, last, some, every, best, top, at, to, why)\n}\n");
}

void gen_raised(Gen *g) {
  static const char *const floats[] = {"x", "x * 0", "where(x > 2, nan, x)", "where(x > 1, -0.0, 0.0)", "-x", "f32(x)",
                                       "where(x > 3, inf, -inf)", "full(len(x), nan)"};
  static const char *const integers[] = {"k", "k * 0 + 5", "-k", "i32(k)", "k * 3037000500 * 3037000500", "u8(k)"};
  static const char *const places[] = {"p", "p // 2", "p * 0", "p[::-1]", "p - 1", "p + p // 60"};
  gen_put(g, "let out = ()\n");
  for (int f = 0; f < FUNCTIONS; f++) function(g, f);
  gen_put(g, "for t in (1, 2, %d, %d, %d, %d, %d) {\n"
             "  let k = arange(t) * 37 %% 11; let x = k * 0.5 - (arange(t) * 7 %% 3); let p = arange(t) * 5 %% t\n",
          3 + gen_below(g, 30), 31 + gen_below(g, 40), 64 + gen_below(g, 8), 120 + gen_below(g, 40),
          200 + gen_below(g, 900));
  gen_put(g, "  let v = arange(t + 3) * 0.25; let d = reshape(arange(3 * t + 9) * 7 %% 13, (t + 3, 3))\n"
             "  let w = reshape(arange(3 * t) * 11 %% 17, (3, t))\n");
  for (int f = 0; f < FUNCTIONS; f++)
    for (int call = 0; call < 2; call++) {
      gen_put(g, "  try { out += (f%d(%s, ", f, PICK(g, floats));
      gen_put(g, "%s, %s, ", PICK(g, floats), PICK(g, integers));
      gen_put(g, "%s, k > %d, v, d, w, %d, ", PICK(g, places), gen_below(g, 9), gen_below(g, 4));
      gen_put(g, "%s),) } catch e { out += (e.message,) }\n", gen_chance(g, 50) ? "0" : "t - 9");
    }
  gen_put(g, "}\nout\n");
}

/* generate_trees.c — random programs over trees: lists and records of all makes (of any length, grown, long,
 * ragged, queues, of texts, of matrices, with static parts), under the tree functions, the constructs, derivatives
 * and native loops. Numbers are multiples of a half, so that sums are exact in any order. */
#include "tests/diff/generate_inner.h"

#define PICK(g, list) (list)[gen_below(g, (int)(sizeof(list) / sizeof(list)[0]))]

enum { FUNCTIONS = 5, DEEPEST = 2 };

/* Trees of n: `#` is a size, `@` another tree, `~` a function of one leaf, `^` of two. */
static const char *const makers[] = {
    "map(k => k * 0.5, 0..#)", "map(k => k * 0.5, 0..#)", "grown(#)", "grown(#)", "map(k => 2, 0..#)",
    "map(k => if k % 2 == 0 { 2 } else { i64(k) }, 0..#)",
    "map(k => f32(k), 0..#)", "map(k => k > 1, 0..#)", "(1.0, 2.0, 3.5, 4.0)[:#]", "map(k => [k * 1.0, 2.0], 0..#)",
    "map(k => full((2, 2), k * 0.5), 0..#)",
    "map(k => ones(k + 1), 0..#)", "map(k => {a: k * 1.0, b: [0.5, k]}, 0..#)",
    "map(k => {w: ones((2, k + 1)), b: zeros(k + 1)}, 0..#)", "map(k => (k, k * 0.5), 0..#)",
    "map(k => map(j => j * 0.5, 0..k % 3), 0..#)", "map(k => f\"t{k}\", 0..#)",
    "map(k => {n: f\"t{k}\", v: k * 0.5}, 0..#)", "map(k => (k * 0.5, nil, \"s\"), 0..#)", "cut(#)",
    "records(#)", "keyed(#)", "pairs(#)", "list(0..#)", "map(k => {r: 0..k, v: k * 0.5}, 0..#)", "enumerate(grown(#))",
    "zip(grown(#), grown(#))", "map(k => grown(k), 0..#)",
    "grown(#)[1:]", "grown(#) + grown(2)", "values(keyed(#))", "sort(grown(#))",
    "map(k => if k == 1 { nil } else { k * 0.5 }, 0..#)", "tree_leaves(records(#))",
};
static const char *const wholes[] = {
    "{x: @, y: 1.5}", "(@, @)", "{x: @, y: @, t: \"static\", r: 0..3}", "(@,)", "{x: (@, 2), z: nil}",
    "{l: @, f: half}", "{x: @, r: 0..#}", "{x: @, t: f\"n{#}\"}",
};
static const char *const ones[] = {"v => v + 1", "v => v * 2", "v => v", "v => v * f32(2)", "v => sum(v)",
                                   "v => [v * 0.5, v]", "v => v > 1", "half", "v => {p: v, q: 1}", "v => (v, v)",
                                   "v => if p { v } else { v * 2 }", "v => { c.value += 1; v }", "v => 1",
                                   "v => f\"{v}\"", "v => 2.5", "negative"};
static const char *const twos[] = {"(v, w) => v - 0.5 * w", "(v, w) => v + w", "(v, w) => w", "(v, w) => v", "add",
                                   "(v, w) => (v, w)", "(v, w) => v * sum(w)", "(v, w) => v > w"};
static const char *const folds[] = {"(s, v) => s + sum(v)", "add", "(s, v) => s + sum(v * v)",
                                    "(s, v) => v", "(s, v) => s", "(s, v) => s * 0.5 + sum(v)",
                                    "(s, v) => { c.value += 1; s + sum(v) }",
                                    "(s, v) => if sum(v) > 1 { s + 1 } else { s }"};

/* Values of trees t and u, which are often alike. */
static const char *const values[] = {
    "tree_map(~, t)", "tree_map(~, t)", "tree_map(~, t)", "tree_map(^, t, u)", "tree_map(^, t, u)",
    "tree_map((v, w, z) => v + w * z, t, u, t)", "tree_leaves(t)", "tree_leaves(t)", "tree_leaves((t, u))",
    "tree_reduce(&, t, 0.0)", "tree_reduce(&, t, 0)", "tree_reduce(&, u, f32(1))", "tree_map(~, tree_map(~, t))",
    "tree_map(^, tree_map(~, t), u)", "tree_reduce(&, tree_map(~, t), 0.0)",
    "len(tree_leaves(t))", "fori_loop(0, 3, (i, q) => tree_map(~, q), t)",
    "fori_loop(0, 3, (i, q) => tree_map(v => v + i, q), t)", "fori_loop(0, m, (i, q) => tree_map(^, q, u), t)",
    "while_loop(q => q[1] < 3, q => (tree_map(~, q[0]), q[1] + 1), (t, 0))",
    "while_loop(q => q[1] < m, q => (tree_map(v => v * 0.5, q[0]), q[1] + 1), (t, 0), max_steps=4)",
    "scan((s, x) => (tree_map(v => v + x, s), tree_reduce(&, s, 0.0)), t, arange(3) * 0.5)",
    "scan((s, x) => (s + 1.0, tree_map(v => v + s, x)), 0.0, t)",
    "scan((s, x) => (tree_map(~, s), s), t, nil, length=2)[0]",
    "cond(p, q => tree_map(~, q), q => q, t)", "cond(p, () => t, () => u)",
    "cond(p, q => tree_map(v => v + 1, q), q => tree_map(v => v * 2, q), t)", "cond(p, (q, r) => q, (q, r) => r, t, u)",
    "grad(q => tree_reduce((s, v) => s + sum(v * v), q, 0.0))(t)",
    "value_and_grad(q => tree_reduce((s, v) => s + sum(v * 3), tree_map(v => v * 2, q), 0.0))(t)",
    "grad(x => tree_reduce((s, v) => s + sum(v * x), t, 0.0))(1.5)",
    "vjp(q => tree_map(v => v * 3, q), t)[0]", "vjp(q => tree_map(v => v * 3, q), t)[1](u)",
    "jvp(q => tree_map(v => v * 3, q), (t,), (u,))", "vmap(q => tree_map(~, q))(t)",
    "vmap(q => tree_reduce(&, q, 0.0))(t)",
    "vmap((q, s) => tree_map(v => v * s, q), in_axes=(nil, 0))(t, [1.0, 2.0])",
    "vmap(s => tree_map(v => v * s, t))([1.0, 2.0])",
    "map(s => tree_reduce((x, v) => x + sum(v * s), t, 0.0), [1.0, 2.0])",
    "checkpoint(q => tree_map(~, q))(t)", "grad(checkpoint(q => tree_reduce((s, v) => s + sum(v * v), q, 0.0)))(t)",
    "jit(q => tree_map(~, q))(t)", "stop_gradient(t)",
    "grad(q => tree_reduce((s, v) => s + sum(v), tree_map((v, w) => v * w, q, stop_gradient(q)), 0.0))(t)",
    "custom_vjp(q => tree_reduce(&, q, 0.0), q => (tree_reduce(&, q, 0.0), q), (r, g) => tree_map(v => v * g, r))(t)",
    "call(q => tree_map(~, q), t)", "map(q => tree_map(~, q), (t, u))",
    "jacrev(q => tree_reduce((s, v) => s + sum(v * v), q, 0.0))(t)",
    "associative_scan((x, y) => tree_map(add, x, y), tree_map(v => v * ones(3), t))",
    "tree_map(~, t) == tree_map(~, u)", "str(tree_map(~, t))", "type(t)", "optim_step(t, u)",
};

/* Statements; t is there, and a result s. */
static const char *const statements[] = {
    "t = tree_map(~, t)", "t = tree_map(^, t, u)", "for j in 0..3 { t = tree_map(v => v + j, t) }",
    "for j in 0..m { t = tree_map(~, t); s += tree_reduce(&, t, 0.0) }", "if p { t = tree_map(~, t) } else { t = u }",
    "if m > 2 { t = tree_map(~, t) }",
    "let l = (); for j in 0..# { l += (j * 0.5,); s += tree_reduce(&, l, 0.0) }; t = tree_map(~, l)",
    "for x in tree_leaves(t) { s += sum(x) }",
    "let l = (); for j in 0..# { l += (t,) }; t = tree_map(~, l)",
    "let q = grown(# + 2); for j in 0..m { q = q[1:]; q += (j * 0.5,); s += tree_reduce(&, tree_map(v => v * 2, q), "
    "0.0) }; t = q",
    "let r = {}; for j in 0..# { r[f\"k{j}\"] = t }; t = r", "let k = 0; while k < m { k += 1; t = tree_map(^, t, t) }",
    "for j in 0..m { if j == 2 { continue }; t = tree_map(v => v + j, t); if s > 50 { break } }",
    "t = {x: t, n: m}", "t = (t, grown(#))", "let b = @; for j in 0..m { b = tree_map(v => v * 0.5, b) }; t = b",
    "let l = @; for j in 0..m { s += tree_reduce(&, l[:j], 0.0) }", "c.value = c.value + tree_reduce(&, t, 0.0)",
    "for j in 0..m { let (y, d) = value_and_grad(q => tree_reduce((x, v) => x + sum(v * v), q, 0.0))(t); "
    "t = tree_map((v, w) => v - 0.5 * w, t, d); s += y }", "print(tree_leaves(t))",
};

static void put(Gen *g, const char *form, int depth) {
  static const char *const sizes[] = {"n", "n", "n", "n", "n + 1", "n % 3", "3", "m", "70", "n + 66"};
  for (; *form; form++)
    switch (*form) {
      case '#': gen_put(g, "%s", PICK(g, sizes)); break;
      case '~': put(g, PICK(g, ones), depth); break;
      case '^': put(g, PICK(g, twos), depth); break;
      case '&': put(g, PICK(g, folds), depth); break;
      case '@': put(g, depth < DEEPEST && gen_chance(g, 25) ? PICK(g, wholes) : PICK(g, makers), depth + 1); break;
      default: gen_put(g, "%c", *form); break;
    }
}

static void function(Gen *g, int number) {
  gen_put(g, "fn f%d(t, u, n, m, p, c) {\n  let s = 0.0\n", number);
  for (int k = gen_below(g, 4); k > 0; k--) gen_put(g, "  "), put(g, PICK(g, statements), 0), gen_put(g, "\n");
  gen_put(g, "  (s, "), put(g, PICK(g, values), 0);
  if (gen_chance(g, 50)) gen_put(g, ", "), put(g, PICK(g, values), 0);
  gen_put(g, ")\n}\n");
}

void gen_trees(Gen *g) {
  static const char *const helpers[] = {
      "fn half(v) = v * 0.5", "fn grown(n) { let l = (); for i in 0..n { l += (i * 0.5,) }; l }",
      "fn pairs(n) { let l = (); for i in 0..n { l += ((i, i * 0.5),) }; l }",
      "fn records(n) { let l = (); for i in 0..n { l += ({a: i * 0.5, b: (i, 1.5)},) }; l }",
      "fn keyed(n) { let r = {}; for i in 0..n { r[f\"k{i}\"] = i * 0.5 }; r }",
      "fn cut(n) { let q = grown(n + 3); for i in 0..3 { q = q[1:] }; q }",
      "fn optim_step(p, d) = tree_map((v, w) => v - 0.5 * w, p, d)",
  };
  for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++) gen_put(g, "%s\n", helpers[i]);
  for (int f = 0; f < FUNCTIONS; f++) function(g, f);
  gen_put(g, "let out = ()\nlet c = ref(0.0)\n");
  for (int f = 0; f < FUNCTIONS; f++) {
    static const char *const lengths[] = {"i % 3", "i % 4 + 1", "i", "i % 2 + 65", "3 - i % 3", "i * 20", "2"};
    const char *tree = gen_chance(g, 35) ? PICK(g, wholes) : PICK(g, makers);
    gen_put(g, "for i in 0..%d {\n  let n = %s\n  let m = i %% 4\n  let t = ", 4 + gen_below(g, 6), PICK(g, lengths));
    uint64_t same = g->state;
    put(g, tree, 0);
    gen_put(g, "\n  let u = ");
    if (gen_chance(g, 85)) g->state = same;
    put(g, tree, 0);
    gen_put(g, "\n  try { out += (f%d(t, u, n, m, i %% 2 == 0, c),) } catch e { out += (e.kind, e.message) }\n}\n", f);
  }
  gen_put(g, "(out, c.value)\n");
}

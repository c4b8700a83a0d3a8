/* generate_expr.c — expressions of the random programs, by type. */
#include <stdio.h>

#include "tests/diff/generate_inner.h"

static void literal(Gen *g, Type type) {
  static const char *const ints[] = {"0", "1", "2", "3", "7", "-1", "10", "-5", "1000003"};
  static const char *const floats[] = {"0.0", "1.0", "0.5", "-2.25", "3.5", "1e-3", "100.0", "-0.0"};
  static const char *const texts[] = {"\"\"", "\"a\"", "\"weft\"", "\"\u00e4b\""};
  switch (type) {
  case INT: gen_put(g, "%s", ints[gen_below(g, 9)]); break;
  case FLOAT: gen_put(g, "%s", floats[gen_below(g, 8)]); break;
  case BOOL: gen_put(g, gen_chance(g, 50) ? "true" : "false"); break;
  case FLOATS: gen_put(g, gen_chance(g, 50) ? "zeros(n)" : "ones(n)"); break;
  case INTS: gen_put(g, "arange(n)"); break;
  case MASK: gen_put(g, "(arange(n) %% 2 == 0)"); break;
  case RECORD: gen_put(g, "{w: ones(n), b: 0.5, k: 2}"); break;
  case LIST: gen_put(g, "(1.5, 0.25)"); break;
  case TEXT: gen_put(g, "%s", texts[gen_below(g, 4)]); break;
  case CLOSURE: gen_put(g, gen_chance(g, 50) ? "sin" : "(z => z * 0.5)"); break;
  case CELL: gen_put(g, "ref(1.0)"); break;
  default: gen_put(g, "ones((n, 3))"); break;
  }
}

void gen_leaf(Gen *g, Type type) {
  const Var *v = gen_chance(g, 85) ? gen_pick_var(g, type, false) : NULL;
  if (v)
    gen_put(g, "%s", v->name);
  else
    literal(g, type);
}

static void binary(Gen *g, const char *op, Type a, Type b, int depth) {
  gen_put(g, "(");
  gen_expr(g, a, depth);
  gen_put(g, " %s ", op);
  gen_expr(g, b, depth);
  gen_put(g, ")");
}

static void call1(Gen *g, const char *name, Type a, int depth) {
  gen_put(g, "%s(", name);
  gen_expr(g, a, depth);
  gen_put(g, ")");
}

static void call2(Gen *g, const char *name, Type a, Type b, int depth) {
  gen_put(g, "%s(", name);
  gen_expr(g, a, depth);
  gen_put(g, ", ");
  gen_expr(g, b, depth);
  gen_put(g, ")");
}

static void choice(Gen *g, Type type, int depth) {
  gen_put(g, "(if ");
  gen_expr(g, BOOL, depth);
  gen_put(g, " { ");
  gen_expr(g, type, depth);
  gen_put(g, " } else { ");
  gen_expr(g, type, depth);
  gen_put(g, " })");
}


/* Something readable inside another thing: of a record, a list, a cell. */
static bool part(Gen *g, Type type) {
  const Var *v;
  switch (type) {
  case INT:
    if ((v = gen_pick_var(g, RECORD, false))) gen_put(g, "%s.k", v->name);
    return v;
  case FLOAT:
    if (gen_chance(g, 40) && (v = gen_pick_var(g, RECORD, false))) gen_put(g, "%s.b", v->name);
    else if (gen_chance(g, 60) && (v = gen_pick_var(g, LIST, false)))
      gen_put(g, gen_chance(g, 96) ? "%s[%d]" : "%s[%d5]", v->name, gen_below(g, 3) - 1);
    else if ((v = gen_pick_var(g, CELL, false))) gen_put(g, "%s.value", v->name);
    return v;
  case FLOATS:
    if ((v = gen_pick_var(g, RECORD, false))) gen_put(g, "%s.w", v->name);
    return v;
  default: return false;
  }
}

/* `(z) => expr` with z of type FLOAT; an f64 whatever it computes, so that bodies agree. */
static void lambda(Gen *g, const char *params, const char *const *names, int count, Type result, int depth) {
  int vars = g->var_count;
  bool in_for = g->in_for;
  gen_put(g, "%s => ", params);
  for (int i = 0; i < count && g->var_count < VARS; i++) {
    Var *v = &g->vars[g->var_count++];
    *v = (Var){.type = FLOAT, .fixed = true};
    snprintf(v->name, sizeof v->name, "%s", names[i]);
  }
  g->in_for = false;
  g->lambdas++;
  int prints = result == FLOAT && !g->bare && gen_chance(g, 25) ? 1 + gen_below(g, 3) : 0;
  if (prints == 1) gen_put(g, "{ print(\"%s\", %s); ", names[0], names[count - 1]);
  if (prints == 2) gen_put(g, "{ let r = ");
  if (prints == 3) gen_put(g, "{ if %s > 0.5 { print(f\"{%s:.3f} up\") }; ", names[0], names[count - 1]);
  if (result == FLOAT) gen_put(g, "f64(");
  gen_expr(g, result, depth);
  if (result == FLOAT) gen_put(g, ")");
  gen_put(g, "%s", prints == 2 ? "; print(\"r\", r, sep=\"=\"); r }" : prints ? " }" : "");
  g->lambdas--;
  g->in_for = in_for;
  g->var_count = vars;
}

static const char *const z_name[] = {"z"};
static const char *const cy_names[] = {"c", "y"};

static void number_of(Gen *g, int depth) {
  gen_put(g, "f64(");
  gen_expr(g, FLOAT, depth);
  gen_put(g, ")");
}

/* Calls of what takes functions. */
static void construct(Gen *g, Type type, int d) {
  bool bare = g->bare;
  int roll = gen_below(g, type == FLOATS ? 6 : 8);
  if (g->lambdas > 1) {
    gen_leaf(g, type);
    return;
  }
  if (type == FLOATS) {
    switch (roll) {
    case 0:
      gen_put(g, "scan((c, y) => (f64("), g->lambdas++;
      gen_expr(g, FLOAT, d), gen_put(g, " + c * 0.5), y + c), "), g->lambdas--;
      number_of(g, 1), gen_put(g, ", "), gen_expr(g, FLOATS, 1),
          gen_put(g, gen_chance(g, 30) ? ", reverse=true)[1]" : ")[1]");
      break;
    case 1:
      gen_put(g, "map("), lambda(g, "z", z_name, 1, FLOAT, d), gen_put(g, ", "), gen_expr(g, FLOATS, 1),
          gen_put(g, ")");
      break;
    case 2:
      g->bare = true, gen_put(g, "vmap("), lambda(g, "z", z_name, 1, FLOAT, d), g->bare = bare, gen_put(g, ")("),
          gen_expr(g, FLOATS, 1), gen_put(g, ")");
      break;
    case 3:
      if (bare || !gen_pick_var(g, CLOSURE, false)) gen_leaf(g, FLOATS);
      else if (gen_chance(g, 50))
        gen_put(g, "map("), gen_leaf(g, CLOSURE), gen_put(g, ", "), gen_expr(g, FLOATS, 1), gen_put(g, ")");
      else gen_put(g, "vmap("), gen_leaf(g, CLOSURE), gen_put(g, ")("), gen_expr(g, FLOATS, 1), gen_put(g, ")");
      break;
    default:
      gen_put(g, "associative_scan(%s, ", gen_chance(g, 50) ? "add" : "maximum"), gen_expr(g, FLOATS, 1),
          gen_put(g, ")");
      break;
    }
    return;
  }
  switch (roll) {
  case 0:
    gen_put(g, "cond("), gen_expr(g, BOOL, 1), gen_put(g, ", ");
    lambda(g, "z", z_name, 1, FLOAT, d), gen_put(g, ", "), lambda(g, "z", z_name, 1, FLOAT, d), gen_put(g, ", "),
        number_of(g, 1), gen_put(g, ")");
    break;
  case 1:
    gen_put(g, "fori_loop(0, %d, ", gen_below(g, 6)), lambda(g, "(y, c)", cy_names, 2, FLOAT, d), gen_put(g, ", "),
        number_of(g, 1), gen_put(g, ")");
    break;
  case 2:
    gen_put(g, "while_loop(((c, y)) => c < %d and y < 50.0, ((c, y)) => (c + 1, ", gen_below(g, 6)), g->lambdas++;
    number_of(g, d), gen_put(g, " + y + 1.0), (0, "), g->lambdas--, number_of(g, 1), gen_put(g, "))[1]");
    break;
  case 3:
    gen_put(g, "scan("), gen_put(g, "(c, y) => (f64("), g->lambdas++, gen_expr(g, FLOAT, d),
        gen_put(g, " + c - y), nil)"), g->lambdas--;
    gen_put(g, ", "), number_of(g, 1), gen_put(g, ", "), gen_expr(g, FLOATS, 1), gen_put(g, ")[0]");
    break;
  case 4:
    g->bare = true, gen_put(g, "grad("), lambda(g, "z", z_name, 1, FLOAT, d), g->bare = bare, gen_put(g, ")("),
        number_of(g, 1), gen_put(g, ")");
    break;
  case 5:
    g->bare = true, gen_put(g, "sum(grad(z => sum(z * "), gen_expr(g, FLOATS, d), g->bare = bare, gen_put(g, "))("),
        gen_expr(g, FLOATS, 1), gen_put(g, "))");
    break;
  case 6:
    if (!bare && gen_pick_var(g, CLOSURE, false))
      gen_put(g, "grad("), gen_leaf(g, CLOSURE), gen_put(g, ")("), number_of(g, 1), gen_put(g, ")");
    else gen_leaf(g, FLOAT);
    break;
  default:
    gen_put(g, "("), lambda(g, "z", z_name, 1, FLOAT, d), gen_put(g, ")("), gen_expr(g, FLOAT, 1), gen_put(g, ")");
    break;
  }
}

static void int_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*", "&", "|", "^"};
  static const char *const shifts[] = {" >> 2)", " << 3)", " << i)", " << (i + 1))", " >> (n - i))", " << (i + 60))",
                                       " >> (2 - i))", " << n)"};
  switch (gen_below(g, 17)) {
  case 0: case 1: case 2: case 3: binary(g, ops[gen_below(g, 6)], INT, INT, d); break;
  case 4: /* a divisor that is seldom zero */
    gen_put(g, "(");
    gen_expr(g, INT, d);
    gen_put(g, gen_chance(g, 50) ? " // (" : " %% (");
    gen_expr(g, INT, d);
    gen_put(g, gen_chance(g, 95) ? " %% 5 + 7))" : "))");
    break;
  case 5: call2(g, gen_chance(g, 50) ? "minimum" : "maximum", INT, INT, d); break;
  case 6: choice(g, INT, d); break;
  case 7: call1(g, "sum", gen_chance(g, 70) ? INTS : MASK, d); break;
  case 8: /* an element */
    gen_leaf(g, INTS);
    gen_put(g, g->in_for && gen_chance(g, 60) ? "[i %% n]" : gen_chance(g, 97) ? "[0]" : "[9]");
    break;
  case 9:
    gen_put(g, "("), gen_expr(g, INT, d),
        gen_put(g, "%s", shifts[gen_below(g, g->in_for && gen_chance(g, 60) ? 8 : 2)]);
    break;
  case 10: call1(g, "abs", INT, d); break;
  case 11: call1(g, gen_chance(g, 50) ? "argmax" : "argmin", FLOATS, d); break;
  case 12: call1(g, "len", gen_chance(g, 50) ? LIST : TEXT, d); break;
  case 13:
    if (gen_chance(g, 50)) call1(g, "count_nonzero", MASK, d);
    else if (gen_chance(g, 50))
      gen_put(g, "len("), gen_leaf(g, FLOATS), gen_put(g, "["), gen_expr(g, MASK, d), gen_put(g, "])");
    else gen_put(g, "len(unique("), gen_expr(g, INTS, d), gen_put(g, "))");
    break;
  case 14: if (!part(g, INT)) gen_put(g, "n"); break;
  case 15:
    gen_put(g, "i64(trunc(clip("), gen_expr(g, FLOAT, d),
        gen_put(g, gen_chance(g, 90) ? ", -50.0, 50.0)))" : ", -1e30, 1e30)))");
    break;
  default: gen_put(g, "n"); break;
  }
}

/* A real number or array by way of complex ones of two of its type. */
static void through_complex(Gen *g, Type type, int d) {
  static const char *const before[] = {"abs(", "real(-1.5j * ", "imag(exp(0.1j * ", "real(conj(",
                                       "imag((1 + 2j) / (3j + "};
  static const char *const behind[] = {")", ")", "))", ") * 2j)", "))"};
  int form = gen_below(g, 5);
  gen_put(g, "%s", before[form]);
  call2(g, "complex", type, type, d);
  gen_put(g, "%s", behind[form]);
}

static void float_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*", "/"};
  static const char *const functions[] = {"sqrt", "exp", "sin", "tanh", "abs", "floor", "sigmoid", "log1p",
                                          "round", "f32", "f16"};
  static const char *const reductions[] = {"sum", "mean", "max", "min", "prod", "std", "norm", "logsumexp",
                                           "var", "median"};
  switch (gen_below(g, 21)) {
  case 0: case 1: case 2: binary(g, ops[gen_below(g, 4)], FLOAT, FLOAT, d); break;
  case 3: binary(g, ops[gen_below(g, 4)], FLOAT, INT, d); break;
  case 4: call1(g, functions[gen_below(g, g->bare ? 5 : 11)], FLOAT, d); break;
  case 5: call2(g, gen_chance(g, 50) ? "minimum" : "maximum", FLOAT, FLOAT, d); break;
  case 6: choice(g, FLOAT, d); break;
  case 7: case 8: call1(g, reductions[gen_below(g, 10)], FLOATS, d); break;
  case 9:
    gen_leaf(g, FLOATS), gen_put(g, g->in_for && gen_chance(g, 60) ? "[i %% n]" : gen_chance(g, 97) ? "[-1]" : "[7]");
    break;
  case 10: call1(g, "f64", INT, d); break;
  case 11:
    if (!g->bare && gen_chance(g, 30)) through_complex(g, FLOAT, d);
    else call1(g, "sum", MATRIX, d);
    break;
  case 12: case 13: if (!part(g, FLOAT)) gen_leaf(g, FLOAT); break;
  case 14: case 15: construct(g, FLOAT, d); break;
  case 16: gen_leaf(g, CLOSURE), gen_put(g, "("), gen_expr(g, FLOAT, d), gen_put(g, ")"); break;
  case 17:
    gen_put(g, gen_chance(g, 70) ? "sum((" : gen_chance(g, 50) ? "norm((" : "sum(sort("), gen_leaf(g, FLOATS),
        gen_put(g, "["), gen_expr(g, MASK, d), gen_put(g, "]))");
    break;
  case 19:
    gen_put(g, "sum("), gen_leaf(g, FLOATS), gen_put(g, "["), gen_expr(g, INT, 1), gen_put(g, " %% 5 - 1..("),
        gen_expr(g, INT, d), gen_put(g, ") %% 7])");
    break;
  case 18:
    gen_put(g, "("), gen_expr(g, FLOAT, d),
        gen_put(g, gen_chance(g, 40) ? " ** 2)" : gen_chance(g, 50) ? " // 0.75)" : " %% 3)");
    break;
  default:
    if (g->bare || gen_chance(g, 50)) gen_put(g, "clip("), gen_expr(g, FLOAT, d), gen_put(g, ", -4.0, 4.0)");
    else gen_put(g, gen_chance(g, 50) ? "rand()" : "random.uniform(random.key(%d), ())", gen_below(g, 9));
    break;
  }
}

static void bool_expr(Gen *g, int d) {
  static const char *const compares[] = {"<", "<=", "==", "!=", ">", ">="};
  switch (gen_below(g, 11)) {
  case 0: case 1: binary(g, compares[gen_below(g, 6)], INT, INT, d); break;
  case 2: case 3: binary(g, compares[gen_below(g, 6)], FLOAT, FLOAT, d); break;
  case 4: binary(g, gen_chance(g, 50) ? "and" : "or", BOOL, BOOL, d); break;
  case 5: call1(g, gen_chance(g, 50) ? "any" : "all", MASK, d); break;
  case 6: gen_put(g, "(-1.0 < "), gen_expr(g, FLOAT, d), gen_put(g, " <= 2)"); break;
  case 7: binary(g, gen_chance(g, 50) ? "==" : "<", TEXT, TEXT, 0); break;
  case 8: gen_put(g, "("), gen_expr(g, INT, d), gen_put(g, " in 0..5)"); break;
  case 9: binary(g, gen_chance(g, 50) ? "==" : "!=", gen_chance(g, 50) ? LIST : RECORD, LIST, 0); break;
  default: gen_put(g, "(not "), gen_expr(g, BOOL, d), gen_put(g, ")"); break;
  }
}

static void floats_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*", "/"};
  static const char *const functions[] = {"exp", "sin", "tanh", "sqrt", "abs", "relu", "cumsum", "sort", "flip",
                                          "square", "round", "cumprod", "cummax"};
  switch (gen_below(g, 20)) {
  case 0: case 1: case 2: binary(g, ops[gen_below(g, 4)], FLOATS, FLOATS, d); break;
  case 3: binary(g, ops[gen_below(g, 4)], FLOATS, gen_chance(g, 50) ? FLOAT : INT, d); break;
  case 4: case 5: call1(g, functions[gen_below(g, g->bare ? 6 : 13)], FLOATS, d); break;
  case 6: binary(g, ops[gen_below(g, 3)], FLOATS, INTS, d); break;
  case 7: /* by element */
    gen_put(g, "where(");
    if (gen_chance(g, 50)) {
      gen_expr(g, MASK, d);
    } else {
      gen_expr(g, FLOATS, d);
      gen_put(g, " > ");
      gen_expr(g, gen_chance(g, 50) ? FLOAT : FLOATS, d);
    }
    gen_put(g, ", ");
    gen_expr(g, FLOATS, d);
    gen_put(g, ", ");
    gen_expr(g, gen_chance(g, 70) ? FLOATS : FLOAT, d);
    gen_put(g, ")");
    break;
  case 8:
    gen_put(g, "%s(", gen_chance(g, 50) ? "sum" : gen_chance(g, 50) ? "mean" : "max"), gen_expr(g, MATRIX, d),
        gen_put(g, ", axis=1)");
    break;
  case 9: gen_leaf(g, MATRIX), gen_put(g, "[:, %d]", gen_below(g, 3)); break;
  case 10:
    gen_leaf(g, FLOATS), gen_put(g, gen_chance(g, 50) ? "[::-1]" : gen_chance(g, 60) ? "[arange(n)]" : "[0..n]");
    break;
  case 11:
    if (!g->bare && gen_chance(g, 40)) through_complex(g, FLOATS, d);
    else choice(g, FLOATS, d);
    break;
  case 12: if (!part(g, FLOATS)) gen_leaf(g, FLOATS); break;
  case 13: case 14: construct(g, FLOATS, d); break;
  case 15:
    gen_put(g, "concat(("), gen_leaf(g, FLOATS), gen_put(g, "[1:], "), gen_leaf(g, FLOATS), gen_put(g, "[:1]))");
    break;
  case 16: gen_put(g, "roll("), gen_expr(g, FLOATS, d), gen_put(g, ", %d)", gen_below(g, 5) - 2); break;
  case 17:
    gen_put(g, "%s(", gen_below(g, 3) ? gen_chance(g, 50) ? "f32" : "f64" : "f16"), gen_expr(g, FLOATS, d);
    gen_put(g, ")");
    break;
  case 18:
    gen_put(g, "("), gen_expr(g, FLOATS, d),
        gen_put(g, gen_chance(g, 40) ? " ** 2)" : gen_chance(g, 50) ? " // 0.75)" : " %% 3)");
    break;
  default:
    if (g->bare || gen_chance(g, 50)) gen_put(g, "clip("), gen_expr(g, FLOATS, d), gen_put(g, ", -4.0, 4.0)");
    else gen_put(g, gen_chance(g, 50) ? "rand(n)" : "random.normal(random.key(%d), n)", gen_below(g, 9));
    break;
  }
}

static void ints_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*", "&", "|", "^"};
  static const char *const dtypes[] = {"i32", "u8", "i64"};
  switch (gen_below(g, 9)) {
  case 0: case 1: binary(g, ops[gen_below(g, 6)], INTS, INTS, d); break;
  case 2: binary(g, ops[gen_below(g, 3)], INTS, INT, d); break;
  case 3: call1(g, gen_chance(g, 50) ? "cumsum" : "argsort", INTS, d); break;
  case 4: gen_put(g, "argsort("), gen_expr(g, FLOATS, d), gen_put(g, ")"); break;
  case 5:
    gen_put(g, "where("), gen_expr(g, MASK, d), gen_put(g, ", "), gen_expr(g, INTS, d), gen_put(g, ", "),
        gen_expr(g, INT, 1), gen_put(g, ")");
    break;
  case 6: gen_put(g, "%s(", dtypes[gen_below(g, 3)]), gen_expr(g, INTS, d), gen_put(g, ")"); break;
  case 7: gen_put(g, "("), gen_expr(g, INTS, d), gen_put(g, gen_chance(g, 50) ? " // 3)" : " >> 1)"); break;
  default: gen_put(g, "("), gen_expr(g, INTS, d), gen_put(g, " %% 11)"); break;
  }
}

static void mask_expr(Gen *g, int d) {
  static const char *const compares[] = {"<", "<=", "==", "!=", ">", ">="};
  switch (gen_below(g, 6)) {
  case 0: binary(g, compares[gen_below(g, 6)], FLOATS, FLOAT, d); break;
  case 1: binary(g, compares[gen_below(g, 6)], FLOATS, FLOATS, d); break;
  case 2: binary(g, compares[gen_below(g, 6)], INTS, INT, d); break;
  case 3: binary(g, gen_chance(g, 50) ? "&" : gen_chance(g, 50) ? "|" : "^", MASK, MASK, d); break;
  case 4: gen_put(g, "~"), gen_leaf(g, MASK); break;
  default: call1(g, gen_chance(g, 50) ? "isnan" : "isfinite", FLOATS, d); break;
  }
}

static void matrix_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*"};
  switch (gen_below(g, 8)) {
  case 0: binary(g, ops[gen_below(g, 3)], MATRIX, MATRIX, d); break;
  case 1: binary(g, ops[gen_below(g, 3)], MATRIX, FLOAT, d); break;
  case 2:
    gen_put(g, "("), gen_expr(g, MATRIX, d), gen_put(g, " * "), gen_expr(g, FLOATS, d), gen_put(g, "[:, nil])");
    break;
  case 3: call1(g, gen_chance(g, 50) ? "tanh" : "abs", MATRIX, d); break;
  case 4:
    gen_put(g, "stack(("), gen_expr(g, FLOATS, d), gen_put(g, ", "), gen_expr(g, FLOATS, d), gen_put(g, ", "),
        gen_leaf(g, FLOATS), gen_put(g, "), axis=1)");
    break;
  case 5: gen_put(g, "cumsum("), gen_expr(g, MATRIX, d), gen_put(g, ", axis=%d)", gen_below(g, 2)); break;
  case 6: gen_put(g, "reshape(ravel("), gen_expr(g, MATRIX, d), gen_put(g, ")[::-1], (n, 3))"); break;
  default:
    gen_put(g, "("), gen_expr(g, MATRIX, d), gen_put(g, " - mean("), gen_expr(g, MATRIX, d), gen_put(g, ", axis=0))");
    break;
  }
}

static void record_expr(Gen *g, int d) {
  const Var *v = gen_pick_var(g, RECORD, false);
  if (v && gen_chance(g, 40)) gen_put(g, "{...%s, b: ", v->name), gen_expr(g, FLOAT, d), gen_put(g, "}");
  else if (v && gen_chance(g, 30)) choice(g, RECORD, d);
  else
    gen_put(g, "{w: "), gen_expr(g, FLOATS, d), gen_put(g, ", b: "), gen_expr(g, FLOAT, d), gen_put(g, ", k: "),
        gen_expr(g, INT, d), gen_put(g, "}");
}

static void list_expr(Gen *g, int d) {
  const Var *v = gen_pick_var(g, LIST, false);
  if (v && gen_chance(g, 30)) gen_put(g, "(...%s, ", v->name), gen_expr(g, FLOAT, d), gen_put(g, ")");
  else if (v && gen_chance(g, 20)) gen_put(g, "(%s + (", v->name), gen_expr(g, FLOAT, d), gen_put(g, ",))");
  else if (v && gen_chance(g, 20)) choice(g, LIST, d);
  else if (v && gen_chance(g, 20))
    gen_put(g, "map("), lambda(g, "z", z_name, 1, FLOAT, d), gen_put(g, ", %s)", v->name);
  else if (v && gen_chance(g, 15)) gen_put(g, "sort(%s)", v->name);
  else if (v && gen_chance(g, 15)) gen_put(g, "map(((y, c)) => y * 0.5 + c, enumerate(%s))", v->name);
  else gen_put(g, "("), gen_expr(g, FLOAT, d), gen_put(g, ", "), gen_expr(g, FLOAT, d), gen_put(g, ")");
}

static void text_expr(Gen *g, int d) {
  switch (gen_below(g, 8)) {
  case 5: gen_put(g, "join(map(str, "), gen_leaf(g, LIST), gen_put(g, "), \"-\")"); break;
  case 6: gen_leaf(g, TEXT), gen_put(g, gen_chance(g, 50) ? "[::-1]" : gen_chance(g, 90) ? "[0:2]" : "[1]"); break;
  case 7: gen_put(g, "replace("), gen_leaf(g, TEXT), gen_put(g, ", \"a\", \"bc\")"); break;
  case 0: gen_put(g, "f\"{"), gen_leaf(g, INT), gen_put(g, "}-{"), gen_leaf(g, FLOAT), gen_put(g, ":.3f}\""); break;
  case 1: call1(g, "str", gen_chance(g, 50) ? INT : FLOAT, d); break;
  case 2: gen_put(g, "upper("), gen_leaf(g, TEXT), gen_put(g, ")"); break;
  case 3: choice(g, TEXT, d); break;
  default: gen_put(g, "("), gen_leaf(g, TEXT), gen_put(g, " + "), gen_leaf(g, TEXT), gen_put(g, ")"); break;
  }
}

void gen_expr(Gen *g, Type type, int depth) {
  if (depth <= 0 || gen_chance(g, 15)) {
    gen_leaf(g, type);
    return;
  }
  switch (type) {
  case INT: int_expr(g, depth - 1); break;
  case FLOAT: float_expr(g, depth - 1); break;
  case BOOL: bool_expr(g, depth - 1); break;
  case FLOATS: floats_expr(g, depth - 1); break;
  case INTS: ints_expr(g, depth - 1); break;
  case MASK: mask_expr(g, depth - 1); break;
  case RECORD: record_expr(g, depth - 1); break;
  case LIST: list_expr(g, depth - 1); break;
  case TEXT: text_expr(g, depth - 1); break;
  case CLOSURE: gen_put(g, "("), lambda(g, "z", z_name, 1, FLOAT, depth - 1), gen_put(g, ")"); break;
  case CELL: gen_put(g, "ref("), gen_expr(g, FLOAT, depth - 1), gen_put(g, ")"); break;
  default: matrix_expr(g, depth - 1); break;
  }
}

/* generate.c — random Weft programs: typed, so that most run to their end, and made of what tracing finds hard.
 *
 * A program is a few functions and calls of the last one with several arguments: other sizes, other dtypes, other
 * branches. Bodies are statements over variables of known types: loops that carry several values, branches that assign,
 * break, continue, return, updates of elements and slices, calls, prints in rare arms, try. An expression of type T is
 * built by `expr(T, depth)`. Loops are bounded by construction. Errors at run time (a zero divisor, an index out of bounds)
 * are rare on purpose, not excluded: they must be the same in every tier. */
#include "tests/diff/generate.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum Type { INT, FLOAT, BOOL, FLOATS, INTS, MATRIX, TYPES } Type;

enum { VARS = 32, FUNCTIONS = 3, PARAMS = 5 };

typedef struct Var {
  char name[8];
  Type type;
  bool fixed; /* a loop's counter: read only */
} Var;

typedef struct Gen {
  uint64_t state;
  char *text;
  size_t length, cap;
  int indent;
  Var vars[VARS];
  int var_count, next_name;
  int loop_depth;
  int statements;  /* how many more may be made */
  int functions;   /* already written: f0 … */
  bool in_for;     /* `i` of the innermost for loop may index */
} Gen;

static uint64_t next(Gen *g) { /* SplitMix64 */
  uint64_t z = (g->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static int below(Gen *g, int n) { return (int)(next(g) % (uint64_t)n); }
static bool chance(Gen *g, int percent) { return below(g, 100) < percent; }

__attribute__((format(printf, 2, 3))) static void put(Gen *g, const char *format, ...) {
  char piece[256];
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(piece, sizeof piece, format, ap);
  va_end(ap);
  if (g->length + (size_t)n + 1 > g->cap) {
    g->cap = g->cap ? g->cap * 2 : 4096;
    g->text = realloc(g->text, g->cap);
    if (!g->text) exit(2);
  }
  memcpy(g->text + g->length, piece, (size_t)n + 1);
  g->length += (size_t)n;
}

static void line(Gen *g) { put(g, "\n%*s", 2 * g->indent, ""); }

static const Var *pick_var(Gen *g, Type type, bool writable) {
  const Var *found = NULL;
  int count = 0;
  for (int i = 0; i < g->var_count; i++) {
    const Var *v = &g->vars[i];
    if (v->type == type && !(writable && v->fixed) && below(g, ++count) == 0) found = v;
  }
  return found;
}

static Var *new_var(Gen *g, Type type, char letter) {
  if (g->var_count == VARS) return NULL;
  Var *v = &g->vars[g->var_count++];
  *v = (Var){.type = type};
  snprintf(v->name, sizeof v->name, "%c%d", letter, g->next_name++ % 10000);
  return v;
}

/* ---- expressions --------------------------------------------------------------------------- */

static void expr(Gen *g, Type type, int depth);

static void literal(Gen *g, Type type) {
  static const char *const ints[] = {"0", "1", "2", "3", "7", "-1", "10", "-5", "1000003"};
  static const char *const floats[] = {"0.0", "1.0", "0.5", "-2.25", "3.5", "1e-3", "100.0", "-0.0"};
  switch (type) {
  case INT: put(g, "%s", ints[below(g, 9)]); break;
  case FLOAT: put(g, "%s", floats[below(g, 8)]); break;
  case BOOL: put(g, chance(g, 50) ? "true" : "false"); break;
  case FLOATS: put(g, chance(g, 50) ? "zeros(n)" : "ones(n)"); break;
  case INTS: put(g, "arange(n)"); break;
  default: put(g, "ones((n, 3))"); break;
  }
}

static void leaf(Gen *g, Type type) {
  const Var *v = chance(g, 85) ? pick_var(g, type, false) : NULL;
  if (v)
    put(g, "%s", v->name);
  else
    literal(g, type);
}

static void binary(Gen *g, const char *op, Type a, Type b, int depth) {
  put(g, "(");
  expr(g, a, depth);
  put(g, " %s ", op);
  expr(g, b, depth);
  put(g, ")");
}

static void call1(Gen *g, const char *name, Type a, int depth) {
  put(g, "%s(", name);
  expr(g, a, depth);
  put(g, ")");
}

static void call2(Gen *g, const char *name, Type a, Type b, int depth) {
  put(g, "%s(", name);
  expr(g, a, depth);
  put(g, ", ");
  expr(g, b, depth);
  put(g, ")");
}

static void choice(Gen *g, Type type, int depth) {
  put(g, "(if ");
  expr(g, BOOL, depth);
  put(g, " { ");
  expr(g, type, depth);
  put(g, " } else { ");
  expr(g, type, depth);
  put(g, " })");
}

static void int_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*", "&", "|", "^"};
  switch (below(g, 12)) {
  case 0: case 1: case 2: case 3: binary(g, ops[below(g, 6)], INT, INT, d); break;
  case 4: /* a divisor that is seldom zero */
    put(g, "(");
    expr(g, INT, d);
    put(g, chance(g, 50) ? " // (" : " %% (");
    expr(g, INT, d);
    put(g, chance(g, 95) ? " %% 5 + 7))" : "))");
    break;
  case 5: call2(g, chance(g, 50) ? "minimum" : "maximum", INT, INT, d); break;
  case 6: choice(g, INT, d); break;
  case 7: call1(g, "sum", INTS, d); break;
  case 8: /* an element */
    leaf(g, INTS);
    put(g, g->in_for && chance(g, 60) ? "[i %% n]" : chance(g, 97) ? "[0]" : "[9]");
    break;
  case 9: put(g, "("), expr(g, INT, d), put(g, chance(g, 50) ? " >> 2)" : " << 3)"); break;
  case 10: call1(g, "abs", INT, d); break;
  default: put(g, "n"); break;
  }
}

static void float_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*", "/"};
  static const char *const functions[] = {"sqrt", "exp", "sin", "tanh", "abs", "floor", "sigmoid", "log1p"};
  static const char *const reductions[] = {"sum", "mean", "max", "min"};
  switch (below(g, 12)) {
  case 0: case 1: case 2: binary(g, ops[below(g, 4)], FLOAT, FLOAT, d); break;
  case 3: binary(g, ops[below(g, 4)], FLOAT, INT, d); break;
  case 4: call1(g, functions[below(g, 8)], FLOAT, d); break;
  case 5: call2(g, chance(g, 50) ? "minimum" : "maximum", FLOAT, FLOAT, d); break;
  case 6: choice(g, FLOAT, d); break;
  case 7: case 8: call1(g, reductions[below(g, 4)], FLOATS, d); break;
  case 9: leaf(g, FLOATS), put(g, g->in_for && chance(g, 60) ? "[i %% n]" : chance(g, 97) ? "[-1]" : "[7]"); break;
  case 10: call1(g, "f64", INT, d); break;
  default: call1(g, "sum", MATRIX, d); break;
  }
}

static void bool_expr(Gen *g, int d) {
  static const char *const compares[] = {"<", "<=", "==", "!=", ">", ">="};
  switch (below(g, 6)) {
  case 0: case 1: binary(g, compares[below(g, 6)], INT, INT, d); break;
  case 2: case 3: binary(g, compares[below(g, 6)], FLOAT, FLOAT, d); break;
  case 4: binary(g, chance(g, 50) ? "and" : "or", BOOL, BOOL, d); break;
  default: put(g, "(not "), expr(g, BOOL, d), put(g, ")"); break;
  }
}

static void floats_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*", "/"};
  static const char *const functions[] = {"exp", "sin", "tanh", "sqrt", "abs", "relu", "cumsum", "sort", "flip", "square"};
  switch (below(g, 12)) {
  case 0: case 1: case 2: binary(g, ops[below(g, 4)], FLOATS, FLOATS, d); break;
  case 3: binary(g, ops[below(g, 4)], FLOATS, chance(g, 50) ? FLOAT : INT, d); break;
  case 4: case 5: call1(g, functions[below(g, 10)], FLOATS, d); break;
  case 6: binary(g, ops[below(g, 3)], FLOATS, INTS, d); break;
  case 7: /* by element */
    put(g, "where(");
    expr(g, FLOATS, d);
    put(g, " > ");
    expr(g, chance(g, 50) ? FLOAT : FLOATS, d);
    put(g, ", ");
    expr(g, FLOATS, d);
    put(g, ", ");
    expr(g, FLOATS, d);
    put(g, ")");
    break;
  case 8: put(g, "sum("), expr(g, MATRIX, d), put(g, ", axis=1)"); break;
  case 9: leaf(g, MATRIX), put(g, "[:, %d]", below(g, 3)); break;
  case 10: leaf(g, FLOATS), put(g, chance(g, 50) ? "[::-1]" : "[arange(n)]"); break;
  default: choice(g, FLOATS, d); break;
  }
}

static void ints_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*"};
  switch (below(g, 6)) {
  case 0: case 1: binary(g, ops[below(g, 3)], INTS, INTS, d); break;
  case 2: binary(g, ops[below(g, 3)], INTS, INT, d); break;
  case 3: call1(g, chance(g, 50) ? "cumsum" : "argsort", INTS, d); break;
  case 4: put(g, "argsort("), expr(g, FLOATS, d), put(g, ")"); break;
  default: put(g, "("), expr(g, INTS, d), put(g, " %% 11)"); break;
  }
}

static void matrix_expr(Gen *g, int d) {
  static const char *const ops[] = {"+", "-", "*"};
  switch (below(g, 5)) {
  case 0: binary(g, ops[below(g, 3)], MATRIX, MATRIX, d); break;
  case 1: binary(g, ops[below(g, 3)], MATRIX, FLOAT, d); break;
  case 2: put(g, "("), expr(g, MATRIX, d), put(g, " * "), expr(g, FLOATS, d), put(g, "[:, nil])"); break;
  case 3: call1(g, chance(g, 50) ? "tanh" : "abs", MATRIX, d); break;
  default: put(g, "("), expr(g, MATRIX, d), put(g, " - mean("), expr(g, MATRIX, d), put(g, ", axis=0))"); break;
  }
}

static void expr(Gen *g, Type type, int depth) {
  if (depth <= 0 || chance(g, 15)) {
    leaf(g, type);
    return;
  }
  switch (type) {
  case INT: int_expr(g, depth - 1); break;
  case FLOAT: float_expr(g, depth - 1); break;
  case BOOL: bool_expr(g, depth - 1); break;
  case FLOATS: floats_expr(g, depth - 1); break;
  case INTS: ints_expr(g, depth - 1); break;
  default: matrix_expr(g, depth - 1); break;
  }
}

/* ---- statements ---------------------------------------------------------------------------- */

static void block(Gen *g, int count);

static Type any_type(Gen *g) { return (Type)below(g, TYPES); }

static void declare(Gen *g) {
  Type type = any_type(g);
  size_t before = g->length;
  line(g);
  size_t name_at = g->length;
  put(g, "let %-5s = ", "");
  expr(g, type, 3);
  Var *v = new_var(g, type, 'v');
  if (!v) { /* no room: as if nothing was written */
    g->length = before;
    g->text[before] = 0;
    return;
  }
  memcpy(g->text + name_at + 4, v->name, strlen(v->name));
}

static void assign(Gen *g) {
  static const char *const ops[] = {"=", "=", "+=", "-=", "*="};
  Type type = any_type(g);
  const Var *v = pick_var(g, type, true);
  if (!v) {
    declare(g);
    return;
  }
  line(g);
  put(g, "%s %s ", v->name, type == BOOL ? "=" : ops[below(g, 5)]);
  expr(g, type, 3);
}

static void update(Gen *g) {
  Type type = chance(g, 60) ? FLOATS : chance(g, 50) ? INTS : MATRIX;
  const Var *v = pick_var(g, type, true);
  if (!v) return;
  line(g);
  const char *op = chance(g, 60) ? "=" : chance(g, 50) ? "+=" : "*=";
  const char *element = g->in_for ? "i % n" : chance(g, 97) ? "0" : "8";
  switch (type == MATRIX ? 2 : below(g, 2)) {
  case 0:
    put(g, "%s[%s] %s ", v->name, element, op);
    expr(g, type == INTS ? INT : FLOAT, 2);
    break;
  case 1:
    put(g, "%s[1:] %s ", v->name, op);
    if (type == INTS || chance(g, 50))
      expr(g, type == INTS ? INT : FLOAT, 2);
    else
      put(g, "%s[:-1]", v->name);
    break;
  default:
    if (chance(g, 50))
      put(g, "%s[:, %d] %s ", v->name, below(g, 3), op), expr(g, FLOATS, 2);
    else
      put(g, "%s[%s, :] %s ", v->name, element, op), expr(g, FLOAT, 2);
    break;
  }
}

static void scoped_block(Gen *g, int count) {
  int vars = g->var_count;
  put(g, " {");
  g->indent++;
  block(g, count);
  g->indent--;
  line(g);
  put(g, "}");
  g->var_count = vars;
}

static void branch(Gen *g) {
  line(g);
  put(g, "if ");
  expr(g, BOOL, 2);
  scoped_block(g, 1 + below(g, 3));
  if (chance(g, 50)) {
    put(g, " else");
    scoped_block(g, 1 + below(g, 2));
  }
}

static void rare_arm(Gen *g) {
  if (!g->in_for) return;
  line(g);
  put(g, "if i %% 4 == 3 { print(i, ");
  expr(g, FLOAT, 1);
  put(g, ") }");
}

static void for_loop(Gen *g) {
  bool outer = g->in_for;
  int vars = g->var_count;
  line(g);
  bool over = chance(g, 30);
  if (over) {
    Var *x = new_var(g, FLOAT, 'x');
    if (!x) return;
    put(g, "for %s in ", x->name);
    x->type = TYPES; /* not yet to be read */
    leaf(g, FLOATS);
    x->type = FLOAT;
  } else {
    g->in_for = true;
    static const char *const ranges[] = {"0..n", "0..2 * n", "0..7", "1..n", "n..0 by -1", "0..20 by 3"};
    put(g, "for i in %s", ranges[below(g, 6)]);
    Var *i = g->var_count < VARS ? &g->vars[g->var_count++] : NULL;
    if (i) *i = (Var){.name = "i", .type = INT, .fixed = true};
  }
  g->loop_depth++;
  scoped_block(g, 1 + below(g, 4));
  g->loop_depth--;
  g->var_count = vars;
  g->in_for = outer;
}

static void while_loop(Gen *g) {
  int k = g->next_name++;
  line(g);
  put(g, "let w%d = 0", k);
  line(g);
  put(g, "while w%d < %d and ", k, 1 + below(g, 12));
  expr(g, BOOL, 2);
  int vars = g->var_count;
  put(g, " {");
  g->indent++;
  line(g);
  put(g, "w%d += 1", k); /* first, so that `continue` cannot pass it by */
  g->loop_depth++;
  block(g, 1 + below(g, 3));
  g->loop_depth--;
  g->indent--;
  line(g);
  put(g, "}");
  g->var_count = vars;
}

static void jump(Gen *g) {
  if (!g->loop_depth) return;
  line(g);
  put(g, "if ");
  expr(g, BOOL, 1);
  put(g, " { %s }", chance(g, 45) ? "break" : chance(g, 80) ? "continue" : "return (n, 1.5)");
}

static void call_earlier(Gen *g) {
  if (!g->functions || g->loop_depth > 1) return;
  line(g);
  Var *v = new_var(g, FLOAT, 'v');
  if (!v) return;
  v->type = TYPES;
  put(g, "let %s = h%d(", v->name, below(g, g->functions));
  expr(g, INT, 1);
  put(g, ", ");
  expr(g, FLOAT, 1);
  put(g, ")");
  v->type = FLOAT;
}

static void try_block(Gen *g) {
  if (!g->var_count) return;
  line(g);
  put(g, "try");
  scoped_block(g, 2);
  put(g, " catch e { print(e.kind) }");
}

static void block(Gen *g, int count) {
  for (int i = 0; i < count && g->statements > 0; i++) {
    g->statements--;
    int roll = below(g, 100);
    if (roll < 22) declare(g);
    else if (roll < 47) assign(g);
    else if (roll < 57) update(g);
    else if (roll < 69) branch(g);
    else if (roll < 79 && g->loop_depth < 2) for_loop(g);
    else if (roll < 85 && g->loop_depth < 2) while_loop(g);
    else if (roll < 90) jump(g);
    else if (roll < 93) rare_arm(g);
    else if (roll < 97) call_earlier(g);
    else try_block(g);
  }
}

/* ---- functions and the program ------------------------------------------------------------- */

static void begin_function(Gen *g) {
  g->var_count = 0;
  g->loop_depth = 0;
  g->in_for = false;
  g->indent = 1;
}

static void parameter(Gen *g, const char *name, Type type) {
  Var *v = &g->vars[g->var_count++];
  *v = (Var){.type = type};
  snprintf(v->name, sizeof v->name, "%s", name);
}

static void result(Gen *g) {
  line(g);
  put(g, "(n");
  for (int i = 0; i < g->var_count; i++) put(g, ", %s", g->vars[i].name);
  put(g, ")\n}\n");
}

/* A function of two numbers that gives a number. */
static void helper(Gen *g) {
  begin_function(g);
  put(g, "fn h%d(k, s) {\n  let n = 3", g->functions);
  parameter(g, "k", INT);
  parameter(g, "s", FLOAT);
  g->statements = 5;
  g->loop_depth = 1; /* at most one loop, and no early return of a list */
  for (int i = 0; i < 3; i++) chance(g, 60) ? assign(g) : declare(g);
  g->loop_depth = 0;
  line(g);
  put(g, "f64(");
  expr(g, FLOAT, 2);
  put(g, ")\n}\n");
  g->functions++;
}

char *generate_program(uint64_t seed) {
  Gen g = {.state = seed * 0x2545f4914f6cdd1du + 1};
  int helpers = below(&g, FUNCTIONS);
  for (int i = 0; i < helpers; i++) helper(&g);
  begin_function(&g);
  put(&g, "fn f(n, a, x, p, m) {");
  parameter(&g, "a", FLOAT);
  parameter(&g, "x", FLOATS);
  parameter(&g, "p", INTS);
  parameter(&g, "m", MATRIX);
  g.statements = 6 + below(&g, 14);
  block(&g, g.statements);
  g.indent = 1;
  result(&g);
  static const char *const calls[] = {
      "f(4, 0.5, arange(4) * 0.25, arange(4), reshape(arange(12) * 0.5, (4, 3)))",
      "f(4, -1.5, linspace(-1, 1, 4), array((3, 1, 2, 0)), zeros((4, 3)))",
      "f(6, 2.0, arange(6) * 1.0, arange(6) - 3, ones((6, 3)))",
      "f(1, 0.0, ones(1), zeros(1, dtype=i64), ones((1, 3)))",
      "f(5, 3, arange(5) * 0.1, arange(5) * 2, reshape(arange(15) * 0.1, (5, 3)))",
      "f(3, f32(0.5), f32(arange(3)), i32(arange(3)), f32(ones((3, 3))))",
  };
  int count = 2 + below(&g, 4);
  put(&g, "let out = ()\n");
  for (int i = 0; i < count; i++)
    put(&g, "try { out += (%s,) } catch e { out += (e.kind, e.message) }\n", calls[below(&g, 6)]);
  put(&g, "out\n");
  return g.text;
}

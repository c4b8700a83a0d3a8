/* generate.c — random Weft programs: typed, so that most run to their end, and made of what tracing finds hard.
 *
 * A program is a few functions and calls of the last one with several arguments: other sizes, other dtypes, other
 * branches. Bodies are statements over variables of known types: loops that carry several values, branches that assign,
 * break, continue, return, updates of elements and slices, calls, prints in rare arms, try. An expression of type T is
 * built by `gen_expr(T, depth)`. Loops are bounded by construction. Errors at run time (a zero divisor, an index out
 * of bounds) are rare on purpose, not excluded: they must be the same in every tier. */
#include "tests/diff/generate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/diff/generate_inner.h"

enum { FUNCTIONS = 3 };

static uint64_t next(Gen *g) { /* SplitMix64 */
  uint64_t z = (g->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
int gen_below(Gen *g, int n) { return (int)(next(g) % (uint64_t)n); }
bool gen_chance(Gen *g, int percent) { return gen_below(g, 100) < percent; }

void gen_put(Gen *g, const char *format, ...) {
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

void gen_line(Gen *g) { gen_put(g, "\n%*s", 2 * g->indent, ""); }

const Var *gen_pick_var(Gen *g, Type type, bool writable) {
  const Var *found = NULL;
  int count = 0;
  for (int i = 0; i < g->var_count; i++) {
    const Var *v = &g->vars[i];
    if (v->type == type && !(writable && v->fixed) && gen_below(g, ++count) == 0) found = v;
  }
  return found;
}

Var *gen_new_var(Gen *g, Type type, char letter) {
  if (g->var_count == VARS) return NULL;
  Var *v = &g->vars[g->var_count++];
  *v = (Var){.type = type};
  snprintf(v->name, sizeof v->name, "%c%d", letter, g->next_name++ % 10000);
  return v;
}

/* ---- statements ---------------------------------------------------------------------------- */

static void block(Gen *g, int count);

static Type any_type(Gen *g) {
  static const Type types[] = {INT, INT, FLOAT, FLOAT, FLOAT, BOOL, FLOATS, FLOATS, FLOATS, INTS, INTS, MASK, MATRIX,
                               RECORD, LIST, TEXT, CLOSURE, CELL};
  return types[gen_below(g, (int)(sizeof types / sizeof types[0]))];
}

static void declare(Gen *g) {
  Type type = any_type(g);
  size_t before = g->length;
  gen_line(g);
  size_t name_at = g->length;
  gen_put(g, "let %-5s = ", "");
  gen_expr(g, type, 3);
  Var *v = gen_new_var(g, type, 'v');
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
  const Var *v = gen_pick_var(g, type, true);
  if (!v) {
    declare(g);
    return;
  }
  gen_line(g);
  switch (type) {
  case INT: case FLOAT: case FLOATS: case INTS: case MATRIX:
    gen_put(g, "%s %s ", v->name, ops[gen_below(g, 5)]);
    gen_expr(g, type, 3);
    break;
  case LIST:
    if (gen_chance(g, 50)) gen_put(g, "%s += (", v->name), gen_expr(g, FLOAT, 2), gen_put(g, ",)");
    else gen_put(g, "%s[%d] %s ", v->name, gen_below(g, 3) - 1, ops[gen_below(g, 5)]), gen_expr(g, FLOAT, 2);
    break;
  case TEXT: gen_put(g, "%s %s ", v->name, gen_chance(g, 50) ? "=" : "+="), gen_expr(g, TEXT, 2); break;
  case CELL: gen_put(g, "%s.value %s ", v->name, ops[gen_below(g, 5)]), gen_expr(g, FLOAT, 2); break;
  case RECORD:
    switch (gen_below(g, 4)) {
    case 0: gen_put(g, "%s.b %s ", v->name, ops[gen_below(g, 5)]), gen_expr(g, FLOAT, 2); break;
    case 1: gen_put(g, "%s.k %s ", v->name, ops[gen_below(g, 5)]), gen_expr(g, INT, 2); break;
    case 2:
      gen_put(g, "%s.w[%s] %s ", v->name, g->in_for ? "i % n" : "0", ops[gen_below(g, 5)]), gen_expr(g, FLOAT, 2);
      break;
    default: gen_put(g, "%s = ", v->name), gen_expr(g, RECORD, 2); break;
    }
    break;
  default:
    gen_put(g, "%s = ", v->name);
    gen_expr(g, type, 3);
    break;
  }
}

/* Two variables change places. */
static void swap(Gen *g) {
  Type type = any_type(g);
  const Var *v = gen_pick_var(g, type, true), *w = gen_pick_var(g, type, true);
  if (!v || v == w) return;
  gen_line(g);
  gen_put(g, "(%s, %s) = (%s, %s)", v->name, w->name, w->name, v->name);
}

static void update(Gen *g) {
  Type type = gen_chance(g, 60) ? FLOATS : gen_chance(g, 50) ? INTS : MATRIX;
  const Var *v = gen_pick_var(g, type, true);
  if (!v) return;
  gen_line(g);
  const char *op = gen_chance(g, 60) ? "=" : gen_chance(g, 50) ? "+=" : "*=";
  const char *element = g->in_for ? "i % n" : gen_chance(g, 97) ? "0" : "8";
  switch (type == MATRIX ? 4 : gen_below(g, 4)) {
  case 2:
    gen_put(g, "%s[", v->name), gen_expr(g, MASK, 2), gen_put(g, "] %s ", op),
        gen_expr(g, type == INTS ? INT : FLOAT, 2);
    break;
  case 3:
    gen_put(g, "%s[%s] %s ", v->name, gen_chance(g, 50) ? "arange(n) % 2" : gen_chance(g, 95) ? "[0, -1, 0]" : "[0, 6]",
            gen_chance(g, 70) ? "+=" : op);
    gen_expr(g, type == INTS ? INT : FLOAT, 2);
    break;
  case 0:
    gen_put(g, "%s[%s] %s ", v->name, element, op);
    gen_expr(g, type == INTS ? INT : FLOAT, 2);
    break;
  case 1:
    gen_put(g, "%s[1:] %s ", v->name, op);
    if (type == INTS || gen_chance(g, 50))
      gen_expr(g, type == INTS ? INT : FLOAT, 2);
    else
      gen_put(g, "%s[:-1]", v->name);
    break;
  default:
    if (gen_chance(g, 50))
      gen_put(g, "%s[:, %d] %s ", v->name, gen_below(g, 3), op), gen_expr(g, FLOATS, 2);
    else
      gen_put(g, "%s[%s, :] %s ", v->name, element, op), gen_expr(g, FLOAT, 2);
    break;
  }
}

static void scoped_block(Gen *g, int count) {
  int vars = g->var_count;
  gen_put(g, " {");
  g->indent++;
  block(g, count);
  g->indent--;
  gen_line(g);
  gen_put(g, "}");
  g->var_count = vars;
}

static void branch(Gen *g) {
  gen_line(g);
  gen_put(g, "if ");
  gen_expr(g, BOOL, 2);
  scoped_block(g, 1 + gen_below(g, 3));
  if (gen_chance(g, 50)) {
    gen_put(g, " else");
    scoped_block(g, 1 + gen_below(g, 2));
  }
}

static void rare_arm(Gen *g) {
  if (!g->in_for) return;
  gen_line(g);
  gen_put(g, "if i %% 4 == 3 { print(i, ");
  gen_expr(g, FLOAT, 1);
  gen_put(g, ") }");
}

/* The head of a loop over the items of something; false: no room for its variables. */
static bool for_items(Gen *g) {
  int roll = gen_below(g, 7);
  Var *k = roll > 2 && roll < 5 ? gen_new_var(g, TYPES, 'k') : NULL, *x = gen_new_var(g, TYPES, 'x');
  if (!x || (roll > 2 && roll < 5 && !k)) return false;
  switch (roll) {
  case 0: gen_put(g, "for %s in ", x->name), gen_leaf(g, FLOATS); break;
  case 1: gen_put(g, "for %s in ", x->name), gen_leaf(g, LIST); break;
  case 2: gen_put(g, "for %s in ", x->name), gen_leaf(g, INTS); break;
  case 3: gen_put(g, "for (%s, %s) in enumerate(", k->name, x->name), gen_leaf(g, FLOATS), gen_put(g, ")"); break;
  case 4:
    gen_put(g, "for (%s, %s) in zip(", k->name, x->name), gen_leaf(g, INTS), gen_put(g, ", "), gen_leaf(g, FLOATS),
        gen_put(g, ")");
    break;
  case 5: gen_put(g, "for %s in ", x->name), gen_leaf(g, MATRIX); break; /* rows: read by nobody, or as text */
  default: gen_put(g, "for %s in ", x->name), gen_leaf(g, TEXT); break;
  }
  if (roll == 2) x->type = INT;
  else if (roll < 5) x->type = FLOAT;
  else if (roll == 6) x->type = TEXT;
  x->fixed = gen_chance(g, 50);
  if (k) k->type = INT, k->fixed = true;
  return true;
}

static void for_loop(Gen *g) {
  bool outer = g->in_for;
  int vars = g->var_count;
  size_t before = g->length;
  gen_line(g);
  if (gen_chance(g, 40)) {
    if (!for_items(g)) {
      g->length = before;
      g->text[before] = 0;
      g->var_count = vars;
      return;
    }
  } else {
    g->in_for = true;
    static const char *const ranges[] = {"0..n", "0..2 * n", "0..7", "1..n", "n..0 by -1", "0..20 by 3"};
    gen_put(g, "for i in %s", ranges[gen_below(g, 6)]);
    Var *i = g->var_count < VARS ? &g->vars[g->var_count++] : NULL;
    if (i) *i = (Var){.name = "i", .type = INT, .fixed = true};
  }
  g->loop_depth++;
  scoped_block(g, 1 + gen_below(g, 4));
  g->loop_depth--;
  g->var_count = vars;
  g->in_for = outer;
}

static void while_loop(Gen *g) {
  int k = g->next_name++;
  gen_line(g);
  gen_put(g, "let w%d = 0", k);
  gen_line(g);
  gen_put(g, "while w%d < %d and ", k, 1 + gen_below(g, 12));
  gen_expr(g, BOOL, 2);
  int vars = g->var_count;
  gen_put(g, " {");
  g->indent++;
  gen_line(g);
  gen_put(g, "w%d += 1", k); /* first, so that `continue` cannot pass it by */
  g->loop_depth++;
  block(g, 1 + gen_below(g, 3));
  g->loop_depth--;
  g->indent--;
  gen_line(g);
  gen_put(g, "}");
  g->var_count = vars;
}

static void jump(Gen *g) {
  if (!g->loop_depth) return;
  gen_line(g);
  gen_put(g, "if ");
  gen_expr(g, BOOL, 1);
  gen_put(g, " { %s }",
          gen_chance(g, 40) ? "break" : gen_chance(g, 70) || !g->returns ? "continue" : "return (n, 1.5)");
}

static void print_some(Gen *g) {
  gen_line(g);
  gen_put(g, "print(");
  gen_expr(g, gen_chance(g, 50) ? FLOAT : TEXT, 1);
  gen_put(g, ")");
}

/* A function within the function: it sees what stands around it as it is now. */
static void local_function(Gen *g) {
  int vars = g->var_count, loops = g->loop_depth;
  bool in_for = g->in_for;
  Var *f = gen_new_var(g, TYPES, 'q');
  if (!f || vars + 2 >= VARS) return;
  int first = g->var_count;
  gen_line(g);
  gen_put(g, "fn %s(z) {", f->name);
  for (int i = 0; i < first; i++) g->vars[i].fixed |= true;
  g->vars[g->var_count++] = (Var){.name = "z", .type = FLOAT};
  const Var *cell = gen_pick_var(g, CELL, false);
  bool returns = g->returns;
  g->indent++;
  g->in_for = g->returns = false;
  g->lambdas++;
  gen_line(g);
  gen_put(g, "if z > 3 { return z }");
  if (cell && gen_chance(g, 70)) gen_line(g), gen_put(g, "%s.value += z", cell->name);
  if (gen_chance(g, 40)) {
    int k = g->next_name++;
    gen_line(g);
    gen_put(g, "for u%d in 0..%d { if z * u%d > ", k, 1 + gen_below(g, 9), k), gen_expr(g, FLOAT, 1),
        gen_put(g, " { return z + u%d }; z += 0.25 }", k);
  }
  if (gen_chance(g, 60)) declare(g);
  gen_line(g);
  gen_put(g, "z %s ", gen_chance(g, 50) ? "=" : "+="), gen_expr(g, FLOAT, 2);
  gen_line(g);
  gen_expr(g, FLOAT, 2);
  g->indent--;
  g->lambdas--;
  gen_line(g);
  gen_put(g, "}");
  g->var_count = first;
  g->returns = returns;
  g->in_for = in_for;
  g->loop_depth = loops;
  f->type = CLOSURE;
  f->fixed = true;
}

static void raise(Gen *g) {
  gen_line(g);
  if (gen_chance(g, 40)) gen_put(g, "assert("), gen_expr(g, BOOL, 2), gen_put(g, gen_chance(g, 50) ? ", \"no\")" : ")");
  else
    gen_put(g, "if "), gen_expr(g, BOOL, 1),
        gen_put(g, " { error(\"bad\"%s) }", gen_chance(g, 50) ? "" : ", kind=\"value\"");
}

static void call_earlier(Gen *g) {
  if (!g->functions || g->loop_depth > 1) return;
  gen_line(g);
  Var *v = gen_new_var(g, FLOAT, 'v');
  if (!v) return;
  v->type = TYPES;
  gen_put(g, "let %s = h%d(", v->name, gen_below(g, g->functions));
  gen_expr(g, INT, 1);
  gen_put(g, ", ");
  gen_expr(g, FLOAT, 1);
  gen_put(g, ")");
  v->type = FLOAT;
}

static void try_block(Gen *g) {
  if (!g->var_count) return;
  gen_line(g);
  gen_put(g, "try");
  scoped_block(g, 2);
  static const char *const caught[] = {"print(e.kind)", "print(e.message)", "print(e.kind, e.trace)"};
  gen_put(g, " catch e { %s }", caught[gen_below(g, 3)]);
}

/* Text and records walked, items appended where it depends, elements of one array chosen by another. */
static void walk_things(Gen *g) {
  const Var *list = gen_pick_var(g, LIST, true), *text = gen_pick_var(g, TEXT, true),
      *array = gen_pick_var(g, FLOATS, true), *record = gen_pick_var(g, RECORD, true);
  int k = g->next_name++;
  gen_line(g);
  switch (gen_below(g, 9)) {
  case 0:
    if (!list) return;
    gen_put(g, "for u%d in 0..%d { if ", k, 1 + gen_below(g, 8)), gen_expr(g, BOOL, 1),
        gen_put(g, " { %s += (u%d * 0.5,) } }", list->name, k);
    break;
  case 1:
    if (!text) return;
    gen_put(g, "for u%d in split(\"a bb c a\") { if u%d in ", k, k), gen_leaf(g, TEXT),
        gen_put(g, " { %s = replace(%s, u%d, \"z\") } }", text->name, text->name, k);
    break;
  case 2:
    if (!array) return;
    gen_put(g, "for u%d in nonzero(", k), gen_expr(g, MASK, 1),
        gen_put(g, ")[0] { %s[u%d] %s ", array->name, k, gen_chance(g, 50) ? "+=" : "="), gen_expr(g, FLOAT, 1),
        gen_put(g, " }");
    break;
  case 3:
    if (!record) return;
    gen_put(g, "for (u%d, t%d) in {a: 1, b: 2.5} { %s.b += t%d; %s[u%d] = t%d }", k, k, record->name, k,
            record->name, k, k);
    break;
  case 4:
    if (!array) return;
    gen_put(g, "let u%d = 0", k), gen_line(g);
    gen_put(g, "while u%d < len(%s) - 1 { if %s[u%d] > %s[u%d + 1] { (%s[u%d], %s[u%d + 1]) = (%s[u%d + 1], "
               "%s[u%d]) }; u%d += 1 }", k, array->name, array->name, k, array->name, k, array->name, k, array->name, k,
            array->name, k, array->name, k, k);
    break;
  case 5: /* a range between computed ends */
    if (!array) return;
    gen_put(g, "for u%d in (", k), gen_expr(g, INT, 1), gen_put(g, ") %% 9 - 2..("), gen_expr(g, INT, 1);
    gen_put(g, ") %% 7");
    if (gen_chance(g, 40))
      gen_put(g, " by "), gen_chance(g, 30) ? gen_put(g, "2") : gen_chance(g, 50) ? gen_put(g, "n")
                                            : (gen_put(g, "("), gen_expr(g, INT, 1), gen_put(g, ") %% 4"));
    gen_put(g, " { %s[u%d %% n] += u%d * 0.5 }", array->name, k, k);
    break;
  case 6: { /* a list of records, or of pairs */
    bool pairs = gen_chance(g, 40);
    const char *one = pairs ? "[0]" : ".a", *two = pairs ? "[1]" : ".b";
    gen_put(g, "let u%d = ()", k), gen_line(g);
    gen_put(g, pairs ? "for t%d in 0..%d { u%d += ((t%d, " : "for t%d in 0..%d { u%d += ({a: t%d, b: ", k,
            2 + gen_below(g, 70), k, k);
    gen_expr(g, FLOAT, 1), gen_put(g, pairs ? "),)" : "},)");
    if (gen_chance(g, 60)) gen_put(g, "; u%d[t%d // 2]%s += ", k, k, two), gen_expr(g, FLOAT, 1);
    if (gen_chance(g, 30))
      gen_put(g, "; if t%d == %d { u%d = %s }", k, 1 + gen_below(g, 9), k,
              gen_chance(g, 50) ? "()" : pairs ? "((7, 0.5),)" : "({a: 7, b: 0.5},)");
    if (gen_chance(g, 30)) gen_put(g, "; if len(u%d) > %d { u%d = u%d[:-1] }", k, 1 + gen_below(g, 9), k, k);
    gen_put(g, " }"), gen_line(g);
    gen_put(g, "for t%d in u%d { if t%d%s > %d { print(t%d%s, len(u%d)); %s } }", k, k, k, one, gen_below(g, 90), k,
            two, k, gen_chance(g, 70) ? "break" : "continue");
    break;
  }
  case 7: /* a text made of another's characters */
    gen_put(g, "let u%d = %s", k, gen_chance(g, 60) ? "\"\"" : "\"q\""), gen_line(g);
    gen_put(g, "for t%d in ", k), gen_leaf(g, TEXT),
        gen_put(g, " + \"some more, %s\" { if t%d ", gen_chance(g, 50) ? "and ünder" : "x", k);
    if (gen_chance(g, 20))
      gen_put(g, "> \"b\" { u%d += \"xyz é\"[(", k), gen_expr(g, INT, 1),
          gen_put(g, ") %% %d] }", 5 + gen_chance(g, 20));
    else
      gen_put(g, "%s { u%d += t%d }",
              gen_chance(g, 30) ? "< \"n\"" : gen_chance(g, 50) ? ">= \"cd\"" : "in \"aeiou\"", k, k);
    if (gen_chance(g, 60)) gen_put(g, " else if t%d == \"m\" { %s }", k, gen_chance(g, 50) ? "continue" : "");
    if (gen_chance(g, 40))
      gen_put(g, "; if len(u%d) > %d { u%d = %s }", k, 1 + gen_below(g, 5), k, gen_chance(g, 60) ? "\"\"" : "\"no\"");
    if (gen_chance(g, 30)) gen_put(g, "; if u%d == \"e\" { print(t%d) }", k, k);
    gen_put(g, " }"), gen_line(g);
    gen_put(g, "print(u%d, len(u%d))", k, k);
    break;
  default:
    if (!list) return;
    gen_put(g, "for t%d in %s { if t%d > ", k, list->name, k), gen_expr(g, FLOAT, 1),
        gen_put(g, " { print(t%d); %s } }", k, g->loop_depth || !g->returns ? "break" : "return (n, 2.5)");
    break;
  }
}

static void block(Gen *g, int count) {
  for (int i = 0; i < count && g->statements > 0; i++) {
    g->statements--;
    int roll = gen_below(g, 100 + (g->lambdas ? 0 : 18));
    if (roll >= 100) gen_pattern(g);
    else if (roll < 22) declare(g);
    else if (roll < 45) assign(g);
    else if (roll < 55) update(g);
    else if (roll < 66) branch(g);
    else if (roll < 76 && g->loop_depth < 2) for_loop(g);
    else if (roll < 82 && g->loop_depth < 2) while_loop(g);
    else if (roll < 87) jump(g);
    else if (roll < 90) rare_arm(g);
    else if (roll < 93) call_earlier(g);
    else if (roll < 95) swap(g);
    else if (roll < 96) try_block(g);
    else if (roll < 97) walk_things(g);
    else if (roll < 98) local_function(g);
    else if (roll < 99) raise(g);
    else print_some(g);
  }
}

/* ---- functions and the program ------------------------------------------------------------- */

static void begin_function(Gen *g) {
  g->var_count = 0;
  g->lambdas = 0;
  g->loop_depth = 0;
  g->in_for = false;
  g->indent = 1;
}

static void parameter(Gen *g, const char *name, Type type) {
  Var *v = &g->vars[g->var_count++];
  *v = (Var){.type = type};
  snprintf(v->name, sizeof v->name, "%s", name);
}

/* Variables of the module, which functions may assign. */
static void module_variables(Gen *g) {
  if (!g->module) return;
  parameter(g, "G0", INT);
  parameter(g, "G1", FLOAT);
  parameter(g, "G2", LIST);
}

static void result(Gen *g) {
  gen_line(g);
  gen_put(g, "(n");
  for (int i = 0; i < g->var_count; i++) {
    const Var *v = &g->vars[i];
    if (v->type == CLOSURE) gen_put(g, ", %s(0.5)", v->name);
    else gen_put(g, v->type == CELL ? ", %s.value" : ", %s", v->name);
  }
  gen_put(g, ")\n}\n");
}

/* A function that looks for something in loops and returns from there, or calls itself. */
static void search(Gen *g) {
  begin_function(g);
  gen_put(g, "fn h%d(k, s) {\n  let n = 3", g->functions);
  parameter(g, "k", INT);
  parameter(g, "s", FLOAT);
  module_variables(g);
  if (gen_chance(g, 50)) {
    gen_put(g, "\n  for i in 0..%d {", 2 + gen_below(g, 12));
    g->in_for = true;
    parameter(g, "i", INT);
    g->vars[g->var_count - 1].fixed = true;
    bool inner = gen_chance(g, 40);
    if (inner) gen_put(g, " for j in 0..%d {", 1 + gen_below(g, 5));
    gen_put(g, "\n    s += "), gen_expr(g, FLOAT, 1);
    gen_put(g, "\n    if "), gen_expr(g, BOOL, 2), gen_put(g, " { return "), gen_put(g, "f64("), gen_expr(g, FLOAT, 1),
        gen_put(g, ") }");
    if (gen_chance(g, 50))
      gen_put(g, "\n    if "), gen_expr(g, BOOL, 1), gen_put(g, " { %s }", gen_chance(g, 50) ? "break" : "continue");
    gen_put(g, inner ? "\n  } }" : "\n  }");
    g->var_count--;
    g->in_for = false;
    gen_put(g, "\n  f64("), gen_expr(g, FLOAT, 2), gen_put(g, ")\n}\n");
  } else {
    gen_put(g, "\n  if k <= 0 or k > 9 { return f64("), gen_expr(g, FLOAT, 1), gen_put(g, ") }\n  ");
    if (gen_chance(g, 50)) gen_put(g, "1.0 + ");
    gen_put(g, "h%d(k - %d, ", g->functions, 1 + gen_below(g, 2)), gen_expr(g, FLOAT, 2), gen_put(g, ")\n}\n");
  }
  g->functions++;
}

static void call_again(Gen *g, const char *k) {
  gen_put(g, "h%d(%s, ", g->functions, k);
  gen_expr(g, FLOAT, 1);
  gen_put(g, ")");
}

/* A function that calls itself several times: in sums, in a loop, in branches; that may fail deep inside. */
static void tree(Gen *g) {
  begin_function(g);
  gen_put(g, "fn h%d(k, s%s) {\n  let n = 3", g->functions, gen_chance(g, 20) ? ", d=k + 1" : "");
  parameter(g, "k", INT);
  parameter(g, "s", FLOAT);
  bool strong = gen_chance(g, 50);
  gen_put(g, "\n  if k <= 0 or k > 6 { return ");
  if (gen_chance(g, 60)) gen_put(g, strong ? "f64(" : "("), gen_expr(g, FLOAT, 1), gen_put(g, ")");
  else gen_put(g, gen_chance(g, 50) ? "s" : gen_chance(g, 50) ? "k" : "0.5");
  gen_put(g, " }\n  let t = "), gen_expr(g, FLOAT, 1);
  if (gen_chance(g, 30)) gen_put(g, "\n  t += [1.0, 2.0, 0.5, -1.0][k - %d]", gen_below(g, 3));
  if (gen_chance(g, 15)) gen_put(g, "\n  t += 7 // (k - %d)", gen_below(g, 7));
  switch (gen_below(g, 7)) {
    case 6: /* a call in tail position, of numbers that change places or not */
      gen_put(g, gen_chance(g, 50) ? "\n  if s > t { return h%d(k - %d, t) }"
                                   : "\n  if n < k { return h%d(k - %d, s) }", g->functions, 1 + gen_below(g, 2));
      if (gen_chance(g, 60)) gen_put(g, "\n  return h%d(k - 1, t)", g->functions);
      break;
    case 4: /* calls that others make too */
    case 5:
      for (int i = 2 + gen_below(g, 2); i > 0; i--)
        gen_put(g, "%sh%d(k - %d, %s)", i == 1 ? gen_chance(g, 50) ? " * " : " - " : "\n  t += ", g->functions,
                1 + gen_below(g, 3), gen_chance(g, 80) ? "s" : "t");
      break;
    case 0:
      gen_put(g, "\n  t += "), call_again(g, "k - 1"), gen_put(g, gen_chance(g, 50) ? " * " : " - "),
          call_again(g, "k - 2");
      break;
    case 1: gen_put(g, "\n  for i in 0..k { t = t * 0.5 + "), call_again(g, "k - 1 - i"), gen_put(g, " }"); break;
    case 2:
      gen_put(g, "\n  if "), gen_expr(g, BOOL, 1), gen_put(g, " { t = "), call_again(g, "k - 2"),
          gen_put(g, " } else { t -= "), call_again(g, "k - 1");
      gen_put(g, gen_chance(g, 30) ? "; return t * 2 }" : " }");
      break;
    default:
      gen_put(g, "\n  try { t += "), call_again(g, "k - 1"), gen_put(g, " } catch e { t = 3.0 }\n  t += "),
          call_again(g, "k - 3");
      break;
  }
  gen_put(g, strong ? "\n  f64(t)\n}\n" : "\n  t\n}\n");
  g->functions++;
}

/* A function of two numbers that gives a number. */
static void helper(Gen *g) {
  begin_function(g);
  gen_put(g, "fn h%d(k, s) {\n  let n = 3", g->functions);
  parameter(g, "k", INT);
  parameter(g, "s", FLOAT);
  module_variables(g);
  g->statements = 5;
  g->loop_depth = 1; /* at most one loop, and no early return of a list */
  for (int i = 0; i < 3; i++) gen_chance(g, 60) ? assign(g) : declare(g);
  g->loop_depth = 0;
  gen_line(g);
  gen_put(g, "f64(");
  gen_expr(g, FLOAT, 2);
  gen_put(g, ")\n}\n");
  g->functions++;
}

char *generate_program(uint64_t seed, bool probes) {
  Gen g = {.state = seed * 0x2545f4914f6cdd1du + 1};
  if (seed % 8 == 0) { /* every eighth is of another make */
    gen_sizes(&g);
    return g.text;
  }
  if (seed % 8 == 4) {
    gen_trees(&g);
    return g.text;
  }
  if (seed % 8 == 6) {
    gen_flow(&g);
    return g.text;
  }
  if (seed % 8 == 2) {
    gen_raised(&g);
    return g.text;
  }
  if (probes && seed % 4 == 1) {
    gen_probe(&g);
    return g.text;
  }
  g.module = gen_chance(&g, 40);
  if (g.module) gen_put(&g, "let G0 = 1\nlet G1 = 0.5\nlet G2 = (1.0, 2.0)\nlet G3 = zeros(12)\nlet G4 = ones(12)\n");
  int helpers = gen_below(&g, FUNCTIONS);
  for (int i = 0; i < helpers; i++) gen_chance(&g, 25) ? tree(&g) : gen_chance(&g, 40) ? search(&g) : helper(&g);
  begin_function(&g);
  g.returns = true;
  gen_put(&g, "fn f(n, a, x, p, m) {");
  parameter(&g, "a", FLOAT);
  parameter(&g, "x", FLOATS);
  parameter(&g, "p", INTS);
  parameter(&g, "m", MATRIX);
  module_variables(&g);
  g.statements = 6 + gen_below(&g, 14);
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
      "f(4, 1.5, f32(linspace(-1, 2, 4)), u8([7, 200, 0, 3]), reshape(arange(12), (4, 3)))",
      "f(3, f16(0.1), f16(arange(3)) / 3, u8([7, 200, 3]), bf16(ones((3, 3))))",
      "f(3, 0.5, arange(3) * 0.5, u64([18446744073709551615, 7, 3]), ones((3, 3)))",
      "f(70, 0.25, linspace(-2, 2, 70), arange(70) % 7, ones((70, 3)) * 0.5)",
      "f(0, 1.0, zeros(0), arange(0), zeros((0, 3)))",
      "f(2, true, [true, false], [5, -7], [[1.0, nan, inf], [0.0, -0.0, -inf]])",
  };
  enum { CALLS = sizeof calls / sizeof calls[0] };
  int count = 2 + gen_below(&g, 4), picked[8];
  bool again = gen_chance(&g, 25), seeded = gen_chance(&g, 50);
  for (int i = 0; i < count; i++) picked[i] = gen_below(&g, gen_chance(&g, 80) ? CALLS - 2 : CALLS);
  gen_put(&g, "let out = ()\n%s", seeded ? "seed(7)\n" : "seed(1)\n");
  if (again) gen_put(&g, "for again in 0..%d {\n", 3 + gen_below(&g, 3)); /* so that it gets hot on the way */
  for (int i = 0; i < count; i++)
    gen_put(&g, "try { out += (%s,) } catch e { out += (e.kind, e.message, e.trace) }\n", calls[picked[i]]);
  if (again) gen_put(&g, "}\n");
  if (gen_chance(&g, 10)) gen_put(&g, "out += (%s,)\n", calls[picked[0]]); /* an error here is the program's */
  gen_put(&g, g.module ? "(out, G0, G1, G2, G3, G4, rand())\n" : "(out, rand())\n");
  return g.text;
}

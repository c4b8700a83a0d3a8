/* generate_rows.c — loops of the random programs that work on rows, columns and slices of arrays: what they store
 * overlaps what they read in all ways, is reduced over lengths of the trip, swapped, kept for later, and left in
 * the middle. */
#include <string.h>

#include "tests/diff/generate_inner.h"

#define PICK(g, list) (list)[gen_below(g, (int)(sizeof(list) / sizeof(list)[0]))]

enum { KINDS = 5, FORMS = 12 };

/* Parts of one length: of w (size × size) and x (size), by the counters i and k of one loop, the last two at places
 * that p (size) gives. `$` is the pattern's number. */
static const char *const parts[KINDS][FORMS] = {
    {"w$[i]", "w$[k]", "w$[i - 1]", "w$[:, i]", "w$[k, ::-1]", "x$", "flip(x$)", "w$[-1]", "x$[::-1]", "w$[:, k]",
     "x$[p$]", "x$[p$[::-1]]"},
    {"w$[i, k:]", "w$[k, k:]", "x$[k:]", "w$[k:, i]", "x$[:size$ - k]", "flip(x$[k:])", "w$[k:, k]", "w$[i - 1, k:]",
     "w$[i, :size$ - k]", "w$[i, k:][::-1]", "x$[p$[k:]]", "w$[i][p$[k:]]"},
    {"w$[i, :k]", "x$[:k]", "w$[:k, i]", "x$[size$ - k:]", "w$[k, :k]", "flip(w$[i, :k])", "w$[:k, k]", "w$[i - 1, :k]",
     "w$[i][:k]", "x$[:k]", "x$[p$[:k]]", "x$[k - 1 - p$[:k] % (k + 1)]"},
    {"x$[1:-1]", "x$[2:]", "x$[:-2]", "w$[i, 1:-1]", "w$[i, 2:]", "w$[i, :-2]", "w$[1:-1, k]", "w$[k, 2:]",
     "x$[1:-1][::-1]", "w$[:-2, i]", "x$[p$[1:-1]]", "w$[k, p$[2:]]"},
    {"w$", "w$.T", "w$[::-1]", "flip(w$)", "w$[:, i:i + 1] * w$[k:k + 1, :]", "outer(x$, w$[i])", "w$[k]",
     "w$[:, ::-1]", "w$ * x$", "outer(w$[:, k], x$)", "outer(x$[p$], x$)", "w$[p$]"},
};

static void put_part(Gen *g, const char *form, int number) {
  for (; *form; form++)
    if (*form == '$') gen_put(g, "%d", number);
    else gen_put(g, "%c", *form);
}

static void operand(Gen *g, int kind, int number) { put_part(g, PICK(g, parts[kind]), number); }

static void sum_of_parts(Gen *g, int kind, int number) {
  static const char *const joins[] = {" + ", " - ", " * 0.5 + ", " * ", " - 0.25 * "};
  static const char *const around[] = {"abs(", "minimum(4, ", "("};
  int terms = 1 + gen_below(g, 3);
  bool wrapped = gen_chance(g, 25);
  if (wrapped) gen_put(g, "%s", PICK(g, around));
  operand(g, kind, number);
  for (int t = 1; t < terms; t++) gen_put(g, "%s", PICK(g, joins)), operand(g, kind, number);
  if (wrapped) gen_put(g, ")");
}

/* One statement of the trip; `kept`: t is there, of this kind. */
static void statement(Gen *g, int number, int *kept) {
  static const char *const wholes[] = {"w$", "w$[::-1]", "w$[:, ::-1]"};
  static const char *const folds[] = {"sum(", "sum(", "prod(0.5 * (", "count_nonzero(", "argmax(", "max("};
  int kind = gen_below(g, KINDS), roll = gen_below(g, 12);
  const char *target = kind == 4 ? PICK(g, wholes) : PICK(g, parts[kind]);
  while (target[0] == 'f' || strchr(target, 'p')) target = PICK(g, parts[kind]);
  switch (roll) {
  case 0:
  case 1:
  case 2:
  case 3:
    put_part(g, target, number);
    gen_put(g, " = (");
    sum_of_parts(g, kind, number);
    gen_put(g, ") * 0.5");
    break;
  case 4:
  case 5:
    put_part(g, target, number);
    gen_put(g, "%s", gen_chance(g, 50) ? " -= 0.125 * (" : " += 0.25 * (");
    sum_of_parts(g, kind, number);
    gen_put(g, ")");
    break;
  case 6:
  case 7: {
    int f = gen_below(g, 6);
    if (f >= 4 && gen_chance(g, 85)) f = 0; /* of nothing: an error */
    gen_put(g, "s%d += %s", number, folds[f]);
    sum_of_parts(g, kind, number);
    gen_put(g, "%s", f == 2 ? "))" : ")");
    break;
  }
  case 8: gen_put(g, "let h = w%d[i]; w%d[i] = w%d[k]; w%d[k] = h", number, number, number, number); break;
  case 9:
    if (*kept == kind) {
      put_part(g, target, number);
      gen_put(g, " += t * 0.5");
    } else {
      gen_put(g, "let t = ");
      sum_of_parts(g, kind, number);
      *kept = kind;
    }
    break;
  case 10:
    gen_put(g, "if s%d > %d { ", number, gen_below(g, 9)), put_part(g, target, number),
        gen_put(g, " = %d.5%s }", gen_below(g, 3), gen_chance(g, 40) ? "" : "; continue");
    break;
  default: gen_put(g, "x%d[i] = w%d[k, i] - s%d * 0.125", number, number, number); break;
  }
}

void gen_rows(Gen *g) {
  static const int sizes[] = {1, 2, 3, 4, 6, 9, 17, 40};
  int number = g->next_name++, size = PICK(g, sizes), kept = -1;
  const Var *f = gen_pick_var(g, FLOAT, true);
  if (g->loop_depth || g->bare) {
    gen_put(g, "let u%d = %d", number, size);
    return;
  }
  gen_put(g, "let size%d = %d", number, size), gen_line(g);
  gen_put(g, "let w%d = reshape(f64(arange(%d)) * 37 %% 11 - 4, (%d, %d))", number, size * size, size, size),
      gen_line(g);
  gen_put(g, "let x%d = f64(arange(%d)) * 5 %% 7", number, size), gen_line(g);
  gen_put(g, "let p%d = arange(%d) * 3 %% %d - %d", number, size, size, size / 2), gen_line(g);
  if (gen_chance(g, 10)) gen_put(g, "p%d[%d] = %d", number, gen_below(g, size), size), gen_line(g);
  gen_put(g, "let s%d = 0.0", number), gen_line(g);
  bool guarded = gen_chance(g, 25);
  if (guarded) gen_put(g, "try { ");
  gen_put(g, "for k in 0..size%d { for i in %s..size%d { ", number, gen_chance(g, 50) ? "k" : "0", number);
  for (int n = 1 + gen_below(g, 5); n > 0; n--) statement(g, number, &kept), gen_put(g, n > 1 ? "; " : "");
  gen_put(g, " }");
  if (gen_chance(g, 30)) gen_put(g, "; let i = k; "), kept = -1, statement(g, number, &kept);
  gen_put(g, "; if s%d > 1e9 { break } }", number);
  if (guarded) gen_put(g, " } catch e { print(e.message, e.trace) }");
  gen_line(g);
  gen_put(g, "print(s%d, x%d, sum(w%d * x%d, axis=1))", number, number, number, number);
  if (f) gen_line(g), gen_put(g, "%s += sum(w%d) * 0.125", f->name, number);
}

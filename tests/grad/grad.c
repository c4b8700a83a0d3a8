/* grad.c — derivative rules against finite differences, driven by the table of operations: an operation whose row says
 * `rule` must have a point in points.def, where its first and second derivatives are right, and its
 * batched derivative is that of each lane, eagerly and compiled. And a derivative by any parameter of any operation
 * that has not a derivative of 0 is that of finite differences, or an error. And with each setting an operation
 * gives the same eagerly and compiled: value, derivatives both ways and lanes, or the same error. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/ops.h"
#include "tests/support/host.h"

typedef struct Point {
  const char *op, *fn, *at;
  bool first; /* the first derivative alone */
} Point;

static const Point points[] = {
#define POINT(op, fn, at) {#op, fn, at, false},
#define FIRST(op, fn, at) {#op, fn, at, true},
#define NONE(op, why)
#include "tests/grad/points.def"
#undef POINT
#undef FIRST
#undef NONE
};
static const char *const without[] = {
#define POINT(op, fn, at)
#define FIRST(op, fn, at)
#define NONE(op, why) #op,
#include "tests/grad/points.def"
#undef POINT
#undef FIRST
#undef NONE
};

static bool has_none(const char *id) {
  for (u32 i = 0; i < sizeof without / sizeof without[0]; i++)
    if (strcmp(without[i], id) == 0) return true;
  return false;
}

static const char *const ids[] = {
    "",
#define OP(name, ...) #name,
#include "lang/ops.def"
#undef OP
};

/* ---- the table of rules ------------------------------------------------------------------------------------- */

enum { COLUMN_back, COLUMN_batch, COLUMNS };
static const char *const columns[COLUMNS] = {"back", "batch"};

typedef struct Cell {
  const char *op; /* NULL: all of the family */
  u32 family, column;
  const char *why;
} Cell;

static const Cell empty[] = {
#define FAMILY(name, column, why) {NULL, FAM_##name, COLUMN_##column, why},
#define CELL(op, column, why) {#op, 0, COLUMN_##column, why},
#include "tests/grad/cells.def"
#undef FAMILY
#undef CELL
};
static u8 asked[sizeof empty / sizeof empty[0]];

static bool has_rule(const OpInfo *info, u32 column) {
  return column == COLUMN_back ? info->deriv != DERIVATIVE_none : info->batch != BATCH_loop;
}

/* The reason for an empty cell; NULL: none. */
static const char *why_empty(u32 op, u32 column) {
  const OpInfo *info = op_info(op);
  if (column == COLUMN_back && *info->instead) return info->instead;
  for (u32 i = 0; i < sizeof empty / sizeof empty[0]; i++) {
    const Cell *c = &empty[i];
    if (c->column != column || (c->op ? strcmp(c->op, ids[op]) != 0 : c->family != info->family)) continue;
    asked[i] = 1;
    return c->why;
  }
  return NULL;
}

/* Each operation of the kernel has a rule in each column, or there is a reason. */
static int check_table(bool print) {
  int failures = 0;
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    const char *bad = NULL;
    if (info->deriv == DERIVATIVE_weft) continue; /* it is made of others */
    for (u32 c = 0; c < COLUMNS; c++) {
      const char *why = has_rule(info, c) ? "a rule" : why_empty(op, c);
      if (!why) bad = columns[c];
      if (print) printf("%s%s: %s", c ? "; " : info->name, c ? columns[c] : " back", why ? why : "?");
    }
    if (print) printf("\n");
    failures += bad != NULL;
    if (!print) printf(bad ? "not ok grad/cells-of-%s: no rule for `%s`, and no reason in cells.def\n"
                           : "ok grad/cells-of-%s\n", info->name, bad);
  }
  for (u32 i = 0; i < sizeof empty / sizeof empty[0] && !print; i++) {
    if (asked[i]) continue;
    failures++;
    printf("not ok grad/reason-%u: cells.def has a reason (%s, %s) for a cell that is not empty\n", i,
           empty[i].op ? empty[i].op : "a family", columns[empty[i].column]);
  }
  return failures;
}

static const char prelude[] =
    "let v = [1.5, -0.7, 2.25, 0.4, -1.1, 3.0]\n"
    "let m = v.reshape((2, 3))\n"
    "let p = abs(v)\n"
    "let u = v * 0.3\n"
    "let z = [1.5, -0.7, 0.0, 0.4, 0.0, 3.0]\n"
    "fn w(y) = sum(y * cos(arange(y.size).reshape(y.shape) * 1.0 + 1.0))\n"
    "fn differences(f, x) {\n"
    "  let flat = ravel(x)\n"
    "  let out = zeros(len(flat))\n"
    "  for i in 0..len(flat) {\n"
    "    let a = flat; a[i] += 1e-5\n"
    "    let b = flat; b[i] -= 1e-5\n"
    "    out[i] = (f(a.reshape(x.shape)) - f(b.reshape(x.shape))) / 2e-5\n"
    "  }\n"
    "  out.reshape(x.shape)\n"
    "}\n"
    "fn far(f, x) { let d = differences(f, x); max(abs(grad(f)(x) - d) / (1.0 + abs(d))) }\n";

/* What is wrong, or NULL; text in static memory. */
static const char *check(const Point *p, const char *backend, int hot) {
  static char why[400];
  char program[4000];
  snprintf(program, sizeof program, "%slet f = %s\n"
                                    "let g = y => %s\n"
                                    "for i in 0..2 { far(f, %s); far(g, %s) }\n"
                                    "fn lanes(b) = vmap(grad(f))(b)\n"
                                    "let lane = %s\n"
                                    "let two = stack((lane, lane * 1.01))\n"
                                    "lanes(two)\n"
                                    "let apart = abs(lanes(two) - stack((grad(f)(lane), grad(f)(lane * 1.01))))\n"
                                    "(far(f, %s) < 1e-6, far(g, %s) < 1e-5, max(apart) < 1e-9)", prelude, p->fn,
           p->first ? "f(y)" : "sum(grad(f)(y) * sin(1.0 + arange(y.size)).reshape(y.shape))", p->at, p->at, p->at,
           p->at, p->at);
  HostRun run = host_run(&(HostSetup){.backend = backend, .hot = hot}, p->op, program);
  const char *bad = NULL;
  if (run.end != HOST_VALUE) {
    snprintf(why, sizeof why, "%s: %s", run.kind ? run.kind : "no VM", run.message ? run.message : "");
    bad = why;
  } else if (strcmp(run.value, "(true, true, true)") != 0) {
    snprintf(why, sizeof why, "first and second derivative, and those of lanes right: %s, in %s", run.value, backend);
    bad = why;
  }
  host_run_free(&run);
  return bad;
}

/* An operation by element that points.def does not name: at the first of these places where it gives finite numbers. Of
 * two operands by either, at points that are no others' multiples. */
static const char *const places[] = {"v", "u", "abs(u) * 0.9 + 0.05", "p", "p + 1.0"};

static bool default_point(u32 op, u32 place, char *fn, size_t cap, Point *out) {
  const OpInfo *info = op_info(op);
  if (info->family != FAM_elementwise || place >= sizeof places / sizeof places[0] || info->nparams > 2) return false;
  if (info->nparams == 1) snprintf(fn, cap, "x => w(%s(x))", info->name);
  else snprintf(fn, cap, "x => w(%s(x, flip(%s))) + w(%s(flip(%s) * 1.1, x))", info->name, places[place], info->name,
                places[place]);
  *out = (Point){ids[op], fn, places[place], false};
  return true;
}

static bool is_finite_at(const Point *p) {
  char program[2000];
  snprintf(program, sizeof program, "%slet f = %s\nisfinite(f(%s))", prelude, p->fn, p->at);
  HostRun run = host_run(&(HostSetup){.backend = "eager", .hot = -1}, p->op, program);
  bool finite = run.end == HOST_VALUE && strcmp(run.value, "true") == 0;
  host_run_free(&run);
  return finite;
}

/* ---- every parameter ------------------------------------------------------------------------------------------- */

/* The required arguments of an operation, where x, y, a and b being matrices of floats are not what it takes. */
typedef struct Call {
  const char *op, *args; /* one behind the other, `|` between */
} Call;

static const Call calls[] = {
#define CALL(op, args) {#op, args},
#define EXTRA(op, text)
#include "tests/support/calls.def"
#undef CALL
#undef EXTRA
};
static const Call extras[] = {
#define CALL(op, args)
#define EXTRA(op, text) {#op, text},
#include "tests/support/calls.def"
#undef EXTRA
};

static const char *const defaults[] = {"axis", "axes", "dtype", "device", "keepdims", "shape", "indexing", "mode",
                                       "side", "reduce", "key", NULL};

static bool is_one_of(const OpParam *p, const char *const *names) {
  for (; *names; names++)
    if (strlen(*names) == p->len && memcmp(*names, p->name, p->len) == 0) return true;
  return false;
}

/* The text of argument `at` of the operation in `out`. False: calls.def does not say, and it is a matrix. */
static bool argument(u32 op, u32 at, char *out, size_t cap) {
  snprintf(out, cap, "%s", "q");
  for (u32 i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    if (strcmp(calls[i].op, ids[op]) != 0) continue;
    const char *from = calls[i].args;
    for (; at && from; at--) from = (from = strchr(from, '|')) ? from + 1 : NULL;
    if (!from) return false;
    const char *end = strchr(from, '|');
    snprintf(out, cap, "%.*s", end ? (int)(end - from) : (int)strlen(from), from);
    return true;
  }
  return false;
}

/* A setting of a call: the value of a parameter that has a default. NULL: as it stands. */
typedef struct Setting {
  int param;
  const char *value;
  bool keepdims; /* as well */
} Setting;

/* The call with parameter `by` in terms of c; by -1: as it stands. */
static void call_text(u32 op, int by, const char *value, const Setting *set, char *out, size_t cap) {
  const OpInfo *info = op_info(op);
  size_t n = (size_t)snprintf(out, cap, "%s(", info->name);
  for (u32 p = 0; p < info->nparams; p++) {
    const OpParam *param = &info->params[p];
    char text[200];
    if ((int)p == by) snprintf(text, sizeof text, param->has_default ? "%s" : "(%s)", value);
    else if (set && (int)p == set->param) snprintf(text, sizeof text, "%s", set->value);
    else if (set && set->keepdims && param->len == 8 && memcmp(param->name, "keepdims", 8) == 0)
      snprintf(text, sizeof text, "true");
    else if (!argument(op, p, text, sizeof text) && param->has_default) continue;
    if (param->has_default)
      n += (size_t)snprintf(out + n, cap - n, "%s%.*s=%s", p ? ", " : "", (int)param->len, param->name, text);
    else n += (size_t)snprintf(out + n, cap - n, "%s%s%s", p ? ", " : "", param->rest ? "..." : "", text);
  }
  snprintf(out + n, cap - n, ")");
}

/* A derivative by any number that an operation takes is right, or an error; never silently 0. NULL, or what is
 * wrong. */
static const char *check_expression(const char *call, const char *backend, int hot) {
  static char why[800];
  char program[4000];
  snprintf(program, sizeof program,
           "%slet q = [[1.5, 0.7], [0.7, 1.1]]\n"
           "fn total(t) = if type(t) == \"list\" { let s = 0.0; "
           "for i in t { s += total(i) * (1.1 + s * 0.0) }; s } else { w(f64(array(t))) }\n"
           "fn w1(t) = w(f64(array(t)))\n"
           "let f = c => total(%s)\n"
           "fn t(g) { try { g() } catch e { e.kind } }\n"
           "let bad = ()\n"
           "for c in (1.013, 0.487, 2.031) {\n"
           "  let n = t(() => (f(c + 1e-6) - f(c - 1e-6)) / 2e-6)\n"
           "  if type(n) == \"text\" or isnan(n) { continue }\n"
           "  for k in 0..3 {\n"
           "    let g = t(() => grad(f)(c))\n"
           "    let h = t(() => jvp(f, (c,), (1.0,))[1])\n"
           "    if type(g) == \"text\" and (g == \"unsupported\" or g == \"dtype\") { continue }\n"
           "    if type(g) == \"text\" or not (abs(g - n) < 1e-5 * (1.0 + abs(n))) or "
           "not (abs(h - n) < 1e-5 * (1.0 + abs(n))) { bad += ((c, n, g, h),) }\n"
           "  }\n"
           "}\n"
           "bad", prelude, call);
  HostRun run = host_run(&(HostSetup){.backend = backend, .hot = hot}, "parameter", program);
  const char *bad = NULL;
  if (run.end != HOST_VALUE)
    snprintf(why, sizeof why, "%.300s in %s: %s: %.300s", call, backend, run.kind ? run.kind : "no VM",
             run.message ? run.message : ""), bad = why;
  else if (strcmp(run.value, "()") != 0)
    snprintf(why, sizeof why, "%.300s in %s: (place, difference, grad, jvp) %.300s", call, backend, run.value),
        bad = why;
  host_run_free(&run);
  return bad;
}

static void in_terms_of_c(u32 op, u32 p, char *out, size_t cap) {
  const OpParam *param = &op_info(op)->params[p];
  char own[200];
  bool list = param->rest || op == OP_stack || op == OP_concat;
  if (!argument(op, p, own, sizeof own) && param->has_default) snprintf(out, cap, "c");
  else snprintf(out, cap, list ? "map(v => v * c, %s)" : "(%s) * c", own);
}

static const char *check_parameter(u32 op, u32 p) {
  char value[240], call[600];
  in_terms_of_c(op, p, value, sizeof value);
  call_text(op, (int)p, value, NULL, call, sizeof call);
  const char *bad = check_expression(call, "eager", -1);
  return bad ? bad : check_expression(call, "mir", 0);
}

/* The call as it stands gives a value: else calls.def needs a row. */
static const char *check_call(u32 op) {
  static char why[1000];
  char call[600], program[2000];
  call_text(op, -1, "", NULL, call, sizeof call);
  snprintf(program, sizeof program, "%slet q = [[1.5, 0.7], [0.7, 1.1]]\n%s; true", prelude, call);
  HostRun run = host_run(&(HostSetup){.backend = "eager", .hot = -1}, "call", program);
  bool ok = run.end == HOST_VALUE;
  if (!ok)
    snprintf(why, sizeof why, "%.500s: %.400s (calls.def says what it takes)", call, run.message ? run.message : "");
  host_run_free(&run);
  return ok ? NULL : why;
}

static bool has_parameters(const OpInfo *info) {
  switch (info->family) {
    case FAM_elementwise:
    case FAM_reduce:
    case FAM_scan:
    case FAM_make:
    case FAM_view:
    case FAM_index:
    case FAM_sort:
    case FAM_linalg:
    case FAM_random: return true;
    default: return false;
  }
}

static int check_parameters(void) {
  int failures = 0;
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    if (!has_parameters(info) || !op_is_pure(op) || info->deriv == DERIVATIVE_zero) continue;
    const char *bad = check_call(op);
    for (u32 p = 0; p < info->nparams && !bad; p++) {
      if (is_one_of(&info->params[p], defaults)) continue;
      bad = check_parameter(op, p);
    }
    for (u32 i = 0; i < sizeof extras / sizeof extras[0] && !bad; i++) {
      if (strcmp(extras[i].op, ids[op]) != 0) continue;
      bad = check_expression(extras[i].args, "eager", -1);
      if (!bad) bad = check_expression(extras[i].args, "mir", 0);
    }
    if (bad) failures++;
    printf(bad ? "not ok grad/parameters-of-%s: %s\n" : "ok grad/parameters-of-%s\n", info->name, bad);
  }
  return failures;
}

/* ---- every setting --------------------------------------------------------------------------- */

static const char *const any_value[] = {"nil", "true", "0", "1", "-1", "2", "(0, 1)", "(1,)", "()", NULL};
static const struct {
  const char *param, *values[8];
} more_values[] = {
    {"dtype", {"f32", "i64", "bool"}},
    {"ord", {"1", "inf", "\"fro\"", "\"nuc\""}},
    {"mode", {"\"edge\"", "\"reflect\"", "\"wrap\"", "\"constant\"", "\"complete\""}},
    {"side", {"\"left\"", "\"right\""}},
    {"indexing", {"\"ij\"", "\"xy\""}},
    {"reduce", {"\"add\"", "\"mul\"", "\"min\"", "\"max\"", "\"set\""}},
    {"device", {"\"cpu\""}},
    {"key", {"v => -v"}},
};

typedef struct Settings {
  char *program;
  size_t len, cap;
  u32 count;
} Settings;

static void add_text(Settings *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(s->program + s->len, s->cap - s->len, format, args);
  va_end(args);
  if (n < 0 || (size_t)n >= s->cap - s->len) abort();
  s->len += (size_t)n;
}

static void add_setting(Settings *s, u32 op, const Setting *set) {
  char value[240], call[600];
  in_terms_of_c(op, 0, value, sizeof value);
  call_text(op, 0, value, set, call, sizeof call);
  add_text(s, "fn f%u(c) = %s\n", s->count++, call);
}

/* One function for each value of each parameter that has a default. */
static void add_settings(Settings *s, u32 op) {
  const OpInfo *info = op_info(op);
  bool keeps = false;
  for (u32 p = 0; p < info->nparams; p++)
    keeps |= info->params[p].len == 8 && memcmp(info->params[p].name, "keepdims", 8) == 0;
  for (u32 p = 1; p < info->nparams; p++) {
    const OpParam *param = &info->params[p];
    const char *const *own = NULL;
    if (!param->has_default) continue;
    for (u32 i = 0; i < sizeof more_values / sizeof more_values[0]; i++)
      if (strlen(more_values[i].param) == param->len && memcmp(more_values[i].param, param->name, param->len) == 0)
        own = more_values[i].values;
    for (u32 keep = 0; keep <= (keeps ? 1 : 0); keep++) {
      for (const char *const *v = any_value; *v; v++) add_setting(s, op, &(Setting){(int)p, *v, keep});
      for (u32 i = 0; own && i < 8 && own[i]; i++) add_setting(s, op, &(Setting){(int)p, own[i], keep});
    }
  }
}

/* Derivatives both ways, with the value, and lanes: interpreted and compiled the same, or the same error. */
static const char *check_settings(u32 op) {
  static char program[60000], why[1200];
  Settings s = {.program = program, .cap = sizeof program};
  add_text(&s, "%slet q = [[1.5, 0.7], [0.7, 1.1]]\n"
               "fn total(t) = if type(t) == \"list\" { let s = 0.0; "
               "for i in t { s += total(i) * (1.1 + s * 0.0) }; s } else { w(f64(array(t))) }\n"
               "fn near(y) = tree_map(v => round(f64(v) * 1e6) / 1e6 + 0.0, y)\n"
               "fn t(g) { try { near(g()) } catch e { (e.kind, e.message) } }\n", prelude);
  add_settings(&s, op);
  if (!s.count) return NULL;
  add_text(&s, "let out = ()\nfor again in 0..3 {\n  out = ()\n");
  for (u32 i = 0; i < s.count; i++)
    add_text(&s, "  out += ((\"f%u\", t(() => grad(c => total(f%u(c)))(1.013)), t(() => jvp(c => total(f%u(c)), "
                 "(1.013,), (1.0,))), t(() => vmap(f%u)([1.013, 0.487]))),)\n", i, i, i, i);
  add_text(&s, "}\nout");
  HostRun eager = host_run(&(HostSetup){.backend = "eager", .hot = -1}, "settings", program);
  HostRun mir = host_run(&(HostSetup){.backend = "mir", .hot = 0}, "settings", program);
  const char *bad = NULL;
  if (eager.end != HOST_VALUE || mir.end != HOST_VALUE) {
    snprintf(why, sizeof why, "%.500s", eager.message ? eager.message : mir.message ? mir.message : "no VM");
    bad = why;
  } else if (strcmp(eager.value, mir.value) != 0) {
    size_t at = 0, from = 0;
    for (; eager.value[at] == mir.value[at]; at++)
      if (memcmp(eager.value + at, "(\"f", 3) == 0) from = at;
    char name[16] = "", *line = NULL;
    snprintf(name, sizeof name, "fn %.*s(", (int)strcspn(eager.value + from + 2, "\""), eager.value + from + 2);
    line = strstr(program, name);
    snprintf(why, sizeof why, "%.*s: eager …%.200s, compiled …%.200s", line ? (int)strcspn(line, "\n") : 0,
             line ? line : "", eager.value + from, mir.value + from);
    bad = why;
  }
  host_run_free(&eager);
  host_run_free(&mir);
  return bad;
}

static int check_all_settings(void) {
  int failures = 0;
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    if (!has_parameters(info) || !op_is_pure(op)) continue;
    const char *bad = check_settings(op);
    if (bad) failures++;
    printf(bad ? "not ok grad/settings-of-%s: %s\n" : "ok grad/settings-of-%s\n", info->name, bad);
  }
  return failures;
}

/* --table: the table of rules alone. */
int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--table") == 0) return check_table(true);
  int failures = check_table(false) + check_parameters() + check_all_settings();
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    if (info->deriv != DERIVATIVE_rule && (info->deriv != DERIVATIVE_weft || has_none(ids[op]))) continue;
    const char *bad = NULL, *at = NULL;
    u32 found = 0;
    for (u32 i = 0; i < sizeof points / sizeof points[0] && !bad; i++) {
      if (strcmp(points[i].op, ids[op]) != 0) continue;
      found++;
      at = points[i].fn;
      bad = check(&points[i], "eager", -1);
      if (!bad) bad = check(&points[i], "mir", 0);
    }
    char fn[200];
    Point made = {0};
    u32 place = 0;
    while (!found && default_point(op, place, fn, sizeof fn, &made) && !is_finite_at(&made)) place++;
    if (!found && made.fn && place < sizeof places / sizeof places[0]) {
      found++;
      at = made.fn;
      bad = check(&made, "eager", -1);
      if (!bad) bad = check(&made, "mir", 0);
    }
    if (!found) bad = "ops.def says that it has a rule, points.def has no point for it";
    if (bad) {
      printf("not ok grad/%s: %s (%s)\n", info->name, bad, at ? at : "");
      failures++;
    } else {
      printf("ok grad/%s\n", info->name);
    }
  }
  return failures != 0;
}

/* errors.c — errors of functions of the library, those written in Weft and operations on arrays and texts: whatever
 * goes wrong inside is said by the function that the program called, where it called it, interpreted and compiled.
 * What lang/takes.def says of parameters is tried with values of every other kind, and functions that it lets run in
 * f32 are compared with f32. */
#include "tests/support/calls.h"
#include "tests/support/host.h"

static const char *const values[] = {"\"a\"", "nil", "{a: 1}", "x => x", "(1, \"b\")", "(1.0, 2.0)", "1..3", "2.0",
                                     "-7", "1.5", "nan", "zeros(0)", "zeros((2, 3, 4, 5))", "[true, false, true]",
                                     "u8([1, 2, 3])", "[[1, 2, 3], [4, 5, 6]]", "f32"};

static const char prelude[] = "let q = [[1.5, 0.7], [0.7, 1.1]]\nlet v = [1.5, -0.7, 2.25, 0.4, -1.1, 3.0]\n";
enum { LINE = 3, COLUMN = 10 };

/* What is wrong, or NULL; text in static memory. */
static const char *check(const OpInfo *info, const char *call, const char *backend, int hot, int *refused) {
  static char why[600];
  char program[2000];
  size_t len = strlen(info->name);
  snprintf(program, sizeof program, "%sfn f() = %s\nlet out = f()\nout", prelude, call);
  HostRun run = host_run(&(HostSetup){.backend = backend, .hot = hot}, "errors", program);
  const char *bad = NULL, *said = run.message ? run.message : "no VM";
  *refused += run.end == HOST_ERROR;
  bool named = strncmp(said, info->name, len) == 0 && said[len] == ':';
  bool here = run.line == LINE && run.column == COLUMN;
  if (run.end != HOST_VALUE && !(named && here)) {
    snprintf(why, sizeof why, "%s, %s: \"%s\" at %d:%d", call, backend, said, run.line, run.column);
    bad = why;
  }
  host_run_free(&run);
  return bad;
}

/* ---- lang/takes.def ---- */

static const struct { u32 op; const char *param, *kind; } takes[] = {
#define KIND(name, condition, what)
#define HELPER(name, declaration)
#define HALVES(...)
#define TAKES(op, param, kind) {OP_##op, #param, #kind},
#include "lang/takes.def"
#undef KIND
#undef TAKES
#undef HALVES
};
static const struct { const char *name, *what; } kinds[] = {
#define KIND(name, condition, what) {#name, what},
#define TAKES(op, param, kind)
#define HALVES(...)
#include "lang/takes.def"
#undef KIND
#undef TAKES
#undef HALVES
};
static const struct { u32 op; const char *params; } halves[] = {
#define KIND(name, condition, what)
#define TAKES(op, param, kind)
#define HALVES(op, ...) {OP_##op, #__VA_ARGS__},
#include "lang/takes.def"
#undef KIND
#undef TAKES
#undef HALVES
#undef HELPER
};

/* Values that are none of the kind, one behind the other with blanks between; none of them is nil, which may be a
 * default. */
static const struct { const char *kind, *values; } wrong[] = {
    {"array", "\"a\" () {a:1} 1..3 x=>x f32"},
    {"number", "\"a\" (1,2) {a:1} [] [1.0] [[1,2]] x=>x"},
    {"whole", "\"a\" (1,2) {a:1} [] [1] 1.5 2.0 nan inf true x=>x"},
    {"size", "-1 i32(-1) \"a\" (1,2) {a:1} [] [1] 1.5 2.0 nan inf true x=>x"},
    {"count", "0 u8(0) -1 \"a\" (1,2) {a:1} [] [1] 1.5 2.0 nan inf true x=>x"},
    {"positive", "0 0.0 -0.5 -inf nan \"a\" (1,2) {a:1} [] [1.0] x=>x"},
    {"least", "-1 -1e-300 -inf nan \"a\" (1,2) {a:1} [] [1.0] x=>x"},
    {"rate", "-0.5 1 1.5 inf nan \"a\" (1,2) {a:1} [] [0.5] x=>x"},
    {"share", "-0.5 1.5 -inf inf nan \"a\" (1,2) {a:1} [] [0.5] x=>x"},
    {"level", "0 1 -0.5 1.5 inf nan \"a\" (1,2) {a:1} [] [0.5] x=>x"},
    {"sizes", "-1 (0,-1) \"a\" (1.5,) {a:1} [] [1] 1.5 nan true x=>x"},
    {"counts", "0 -1 (1,0) \"a\" (1.5,) {a:1} [] [1] 1.5 nan true x=>x"},
    {"padding", "-1 (0,-1) \"a\" (1.5,) {a:1} [] [1] 1.5 nan true ((1,2,3),) ((1,-1),) x=>x"},
    {"paddings", "-1 (0,-1) \"same\" (1.5,) {a:1} [] [1] 1.5 nan true ((1,2,3),) ((1,-1),) x=>x"},
    {"rates", "\"a\" (1,2) {a:1} [0.5] inf nan"},
    {"text", "1 (1,2) {a:1} [1] nan x=>x"},
    {"dtype", "1 (1,2) {a:1} [1] nan \"a\" x=>x"},
    {"record", "1 (1,2) [1] nan \"a\" x=>x"},
    {"pair", "1 (1,) (1,2,3) {a:1} [1] nan \"a\" x=>x"},
    {"operator", "(1,2) {a:1} \"a\" f32"},
    {"shape", "-1 1.5 (1,-2) [1.5] [[1,2]] \"a\" {a:1} x=>x nan true"},
    {"function", "1 (1,2) {a:1} [1] nan \"a\""},
};

static const char *what_of(const char *kind) {
  for (u32 i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(kinds[i].name, kind) == 0) return kinds[i].what;
  return "";
}

static int param_index(const OpInfo *info, const char *name, size_t len) {
  for (u32 p = 0; p < info->nparams; p++)
    if (info->params[p].len == len && memcmp(info->params[p].name, name, len) == 0) return (int)p;
  return -1;
}

/* Is every wrong value refused in the words of the kind? */
static int check_taken(u32 row) {
  const OpInfo *info = op_info(takes[row].op);
  const char *values_text = NULL, *bad = NULL;
  for (u32 i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    if (strcmp(wrong[i].kind, takes[row].kind) == 0) values_text = wrong[i].values;
  if (!values_text) {
    printf("not ok errors/takes %s %s: no wrong values of kind %s\n", info->name, takes[row].param, takes[row].kind);
    return 1;
  }
  static char program[20000];
  size_t n = (size_t)snprintf(program, sizeof program,
                              "%sfn f(g, call) = try { g(); call + \" is taken; \" } catch e {\n"
                              "  let good = starts_with(e.message, \"%s: %s \") and (find(e.message, \"%.*s\") >= 0 or "
                              "find(e.message, \"needs an array\") >= 0)\n"
                              "  if good { \"\" } else { f\"{call} says {e.message}; \" }\n}\nlet out = \"\"\n",
                              prelude, info->name, takes[row].param,
                              (int)strcspn(what_of(takes[row].kind), "\""), what_of(takes[row].kind));
  for (const char *s = values_text; *s; s += strspn(s, " ")) {
    char value[60], call[600];
    snprintf(value, sizeof value, "%.*s", (int)strcspn(s, " "), s);
    s += strlen(value);
    call_text(takes[row].op, param_index(info, takes[row].param, strlen(takes[row].param)), value, call, sizeof call);
    n += (size_t)snprintf(program + n, sizeof program - n, "if out == \"\" { out = f(() => %s, \"%s\") }\n", call,
                          *value == '"' ? "text" : value);
  }
  snprintf(program + n, sizeof program - n, "out");
  for (int hot = -1; hot <= 0 && !bad; hot++) {
    static char why[2000];
    HostRun run = host_run(&(HostSetup){.backend = hot ? "eager" : "mir", .hot = hot}, "errors", program);
    if (run.end != HOST_VALUE || strcmp(run.value, "\"\"") != 0) {
      snprintf(why, sizeof why, "%s", run.end == HOST_VALUE ? run.value : run.message ? run.message : "no VM");
      bad = why;
    }
    host_run_free(&run);
  }
  if (bad) printf("not ok errors/takes %s %s: %s\n", info->name, takes[row].param, bad);
  else printf("ok errors/takes %s %s\n", info->name, takes[row].param);
  return bad != NULL;
}

/* Is what comes of halves what comes of the same numbers as f32, rounded once, and is nothing of f32 an f64? */
static int check_half(u32 row, const char *half) {
  const OpInfo *info = op_info(halves[row].op);
  char calls_text[2][600], program[3000];
  const char *bad = NULL;
  static char why[4000];
  for (int wide = 0; wide < 2; wide++) {
    char *out = calls_text[wide];
    size_t cap = sizeof calls_text[wide], n = (size_t)snprintf(out, cap, "%s(", info->name);
    bool more = false;
    for (u32 p = 0; p < info->nparams; p++) {
      const OpParam *param = &info->params[p];
      char text[200];
      if (!call_argument(halves[row].op, p, text, sizeof text) && param->has_default) continue;
      n += (size_t)snprintf(out + n, cap - n, "%s%.*s=lower(%s, %s)", more ? ", " : "", (int)param->len, param->name,
                            text, wide ? "true" : "false");
      more = true;
    }
    snprintf(out + n, cap - n, ")");
  }
  snprintf(program, sizeof program,
           "%sfn lower(x, wide) = if type(x) == \"array\" { if x.dtype != f64 { x } else if wide { f32(%s(x)) } else { "
           "%s(x) } } else if type(x) == \"list\" or type(x) == \"record\" { tree_map(y => lower(y, wide), x) } else "
           "{ x }\n"
           "fn rounded(x) = tree_map(y => if y.dtype == f32 { %s(y) } else { y }, x)\n"
           "fn f() = %s\nfn wide() = %s\nfn g() = rounded(wide())\nlet a = str(f())\nlet b = str(g())\n"
           "if tree_reduce((wider, y) => wider or y.dtype == f64, wide(), false) { \"f64 of f32\" } else "
           "if a == b { \"same\" } else { f\"{a} for {b}\" }",
           prelude, half, half, half, calls_text[0], calls_text[1]);
  for (int hot = -1; hot <= 0 && !bad; hot++) {
    HostRun run = host_run(&(HostSetup){.backend = hot ? "eager" : "mir", .hot = hot}, "errors", program);
    const char *said = run.end == HOST_VALUE ? run.value : run.message;
    if (run.end != HOST_VALUE || strcmp(said, "\"same\"") != 0) {
      snprintf(why, sizeof why, "%s: %s", calls_text[0], said ? said : "no VM");
      bad = why;
    }
    host_run_free(&run);
  }
  if (bad) printf("not ok errors/halves %s %s: %s\n", info->name, half, bad);
  else printf("ok errors/halves %s %s\n", info->name, half);
  return bad != NULL;
}

/* ---- nil for an argument that must be given ---- */

static const struct { u32 op; const char *params; } nils[] = {
#define CALL(op, args)
#define EXTRA(op, text)
#define NIL(op, params) {OP_##op, params},
#include "tests/support/calls.def"
#undef CALL
#undef EXTRA
};

/* Is nil a value like any other for this parameter? */
static bool takes_nil(u32 op, u32 p) {
  const OpParam *param = &op_info(op)->params[p];
  for (u32 i = 0; i < sizeof nils / sizeof nils[0]; i++)
    for (const char *s = nils[i].op == op ? nils[i].params : ""; *s; s += strspn(s, " ")) {
      if (strcspn(s, " ") == param->len && memcmp(s, param->name, param->len) == 0) return true;
      s += strcspn(s, " ");
    }
  return false;
}

/* What f64("a") says and astype("a", f64), which is the same call, names the dtype. */
static bool is_asked(u32 op) {
  if (op == OP_astype) return false;
  return op_info(op)->lower == LOWER_weft || call_is_on_arrays(op_info(op)) ||
         (op_info(op)->family == FAM_text && op_is_pure(op));
}

/* Does nil for each of them give one error, which names the function and the parameter? Where there is a default, nil
 * may also be taken: for the default, or for a choice of its own. */
static int check_nil(u32 op) {
  const OpInfo *info = op_info(op);
  static char program[20000], why[3000];
  const char *bad = NULL;
  int asked = 0;
  size_t n = (size_t)snprintf(program, sizeof program,
                              "%sfn f(g, call, param, given) = try { g(); if given { call + \" is taken; \" } else { "
                              "\"\" } } catch e {\n"
                              "  if starts_with(e.message, \"%s: \") and regex.find(e.message, \"\\\\b\" + param + "
                              "\"\\\\b\") != nil "
                              "and regex.find(e.message, \"^[^ ]+: [^ ]+: \") == nil { \"\" } else "
                              "{ f\"{call} says {e.message}; \" }\n}\n"
                              "fn works(g) = try { g(); true } catch e { false }\nlet out = \"\"\n",
                              prelude, info->name);
  char plain[600];
  call_text(op, -1, "", plain, sizeof plain);
  for (u32 p = 0; p < info->nparams; p++) {
    const OpParam *param = &info->params[p];
    char call[600];
    if (param->rest || takes_nil(op, p) || (param->has_default && !is_asked(op))) continue;
    call_text(op, (int)p, "nil", call, sizeof call);
    const int len = (int)param->len;
    n += (size_t)snprintf(program + n, sizeof program - n,
                          "out += if not %s or works(() => %s) { f(() => %s, \"%s with nil for %.*s\", \"%.*s\", %s) } "
                          "else { \"\" }\n", param->has_default ? "true" : "false", plain, call, info->name, len,
                          param->name, len, param->name, param->has_default ? "false" : "true");
    asked++;
  }
  if (!asked) return 0;
  snprintf(program + n, sizeof program - n, "out");
  for (int hot = -1; hot <= 0 && !bad; hot++) {
    const HostSetup setup = {.backend = hot ? "eager" : "mir", .hot = hot, .files = true};
    HostRun run = host_run(&setup, "errors", program);
    if (run.end != HOST_VALUE || strcmp(run.value, "\"\"") != 0) {
      snprintf(why, sizeof why, "%s", run.end == HOST_VALUE ? run.value : run.message ? run.message : "no VM");
      bad = why;
    }
    host_run_free(&run);
  }
  if (bad) printf("not ok errors/nil %s: %s\n", info->name, bad);
  else printf("ok errors/nil %s\n", info->name);
  return bad != NULL;
}

int main(void) {
  int failures = 0;
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    if (!is_asked(op)) continue;
    const char *bad = NULL;
    int refused = 0;
    for (u32 p = 0; p < info->nparams && !bad; p++)
      for (u32 i = 0; i < sizeof values / sizeof values[0] && !bad; i++) {
        char call[600], value[100];
        snprintf(value, sizeof value, info->params[p].rest ? "%s," : "%s", values[i]); /* a list of one */
        call_text(op, (int)p, value, call, sizeof call);
        bad = check(info, call, "eager", -1, &refused);
        if (!bad) bad = check(info, call, "mir", 0, &refused);
      }
    /* one on other things than arrays may take them all: it gives a function, or looks at nothing yet */
    if (!bad && call_is_on_arrays(info) && info->nparams && !refused) bad = "none of these values is refused";
    if (bad) printf("not ok errors/%s: %s\n", info->name, bad);
    else printf("ok errors/%s\n", info->name);
    failures += bad != NULL;
  }
  for (u32 op = 1; op < OP_COUNT; op++) failures += check_nil(op);
  for (u32 row = 0; row < sizeof takes / sizeof takes[0]; row++) failures += check_taken(row);
  for (u32 row = 0; row < sizeof halves / sizeof halves[0]; row++)
    failures += check_half(row, "f16") + check_half(row, "bf16");
  return failures != 0;
}

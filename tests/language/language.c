/* language.c — docs/language.md promises what there is, and README.md says what there is not.
 *
 *   language [NAME…]     the built-ins of these names alone
 *
 * Sections 4 and 5 of docs/language.md show the parameters of every built-in: a name without parentheses has those of
 * the next one in its code span. Whatever is shown must be there, and what is there must be shown. Then each built-in
 * is called with each of its parameters by name, interpreted and compiled: calls are those of tests/support/calls.h and
 * of language.def, where values of parameters stand, and a parameter must change what comes of the call. */
#include "tests/support/calls.h"
#include "tests/support/host.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_LEN = 80, PARAMS_MAX = 400 };

static int failures;

static char *read_text(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    printf("not ok language/%s: cannot be read\n", path);
    exit(1);
  }
  char *text = NULL;
  size_t length = 0, got;
  do {
    text = realloc(text, length + 65536);
    if (!text) exit(2);
    got = fread(text + length, 1, 65535, f);
    length += got;
  } while (got);
  fclose(f);
  text[length] = 0;
  return text;
}

/* ---- what the page shows ---------------------------------------------------------------------- */

static bool shown[OP_COUNT];
static int page_faults;

static int line_of(const char *text, const char *at) {
  int line = 1;
  for (const char *s = text; s < at; s++) line += *s == '\n';
  return line;
}

/* Parameters without blanks, with `"` for texts. */
static void tight(const char *from, const char *end, char *out, size_t cap) {
  size_t n = 0;
  bool quoted = false;
  for (; from < end && n + 1 < cap; from++) {
    char c = *from == '\'' ? '"' : *from;
    if (c == '"') quoted = !quoted;
    if (quoted || !isspace((unsigned char)c)) out[n++] = c;
  }
  out[n] = 0;
}

static void params_of(const OpInfo *info, char *out, size_t cap) {
  char text[2 * PARAMS_MAX];
  size_t n = 0;
  text[0] = 0;
  for (u32 p = 0; p < info->nparams; p++) {
    const OpParam *param = &info->params[p];
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%.*s%s%s", p ? "," : "", param->rest ? "..." : "",
                          (int)param->len, param->name, param->has_default ? "=" : "",
                          param->has_default ? param->initial : "");
  }
  tight(text, text + n, out, cap);
}

static bool is_word_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The end of the name that begins here, `fft.fft` included. */
static const char *name_end(const char *s) {
  while (is_word_char(*s) || (*s == '.' && isalpha((unsigned char)s[1]))) s++;
  return s;
}

/* The end of a pair of brackets that opens here, behind it; NULL when it stays open. */
static const char *close_of(const char *s, const char *end) {
  int depth = 0;
  bool quoted = false;
  for (; s < end; s++) {
    if (*s == '"') quoted = !quoted;
    if (quoted) continue;
    depth += strchr("([{", *s) != NULL;
    depth -= strchr(")]}", *s) != NULL;
    if (!depth) return s + 1;
  }
  return NULL;
}

/* Are these parameters, `name`, `...name` or `name=default` with commas between? */
static bool are_params(const char *s, const char *end) {
  for (bool first = true; s < end; first = false) {
    if (!first && *s++ != ',') return false;
    s += strspn(s, " \n");
    if (first && s == end) return true;
    if (strncmp(s, "...", 3) == 0) s += 3;
    if (!isalpha((unsigned char)*s)) return false;
    while (is_word_char(*s)) s++;
    if (*s != '=') continue;
    for (bool quoted = false; s < end && (quoted || *s != ','); s++) {
      if (*s == '"') quoted = !quoted;
      const char *closed = !quoted && strchr("([{", *s) ? close_of(s, end) : NULL;
      if (closed) s = closed - 1;
    }
  }
  return true;
}

static u32 op_shown(const char *module, const char *name, size_t len) {
  char full[2 * NAME_LEN];
  int n = snprintf(full, sizeof full, "%s%s%.*s", module, *module ? "." : "", (int)len, name);
  return op_by_name(full, (size_t)n);
}

/* One name with its parameters. */
static void take_shown(const char *page, const char *module, const char *name, size_t len, const char *params) {
  u32 op = op_shown(module, name, len);
  static u32 last; /* what a parameter that is a function is called with: `cond(p, f, g, ...xs)` calls `f(...xs)` */
  for (u32 p = 0; !op && p < op_info(last)->nparams; p++)
    if (op_info(last)->params[p].len == len && strncmp(op_info(last)->params[p].name, name, len) == 0) return;
  last = op;
  if (!op) {
    printf("not ok language/page: docs/language.md:%d: there is no built-in %s%s%.*s\n", line_of(page, name), module,
           *module ? "." : "", (int)len, name);
    page_faults++;
    return;
  }
  char has[PARAMS_MAX];
  params_of(op_info(op), has, sizeof has);
  if (strcmp(has, params) != 0) {
    printf("not ok language/page: docs/language.md:%d: %s takes (%s), not (%s)\n", line_of(page, name),
           op_info(op)->name, has, params);
    page_faults++;
  }
  shown[op] = true;
}

/* The names of a code span: those up to one with parameters have these. A span that is anything else than names and
 * parameters is an example. */
static void read_span(const char *page, const char *module, const char *s, const char *end) {
  const char *names[100];
  size_t lens[100], count = 0;
  while (s < end) {
    s += strspn(s, " \n");
    if (s >= end || !isalpha((unsigned char)*s)) return;
    const char *stop = name_end(s);
    if (count == sizeof names / sizeof names[0]) return;
    names[count] = s;
    lens[count++] = (size_t)(stop - s);
    s = stop;
    if (s < end && *s == '(') {
      const char *closed = close_of(s, end);
      if (!closed || !are_params(s + 1, closed - 1)) return;
      char params[PARAMS_MAX];
      tight(s + 1, closed - 1, params, sizeof params);
      for (size_t i = 0; i < count; i++) take_shown(page, module, names[i], lens[i], params);
      count = 0;
      s = closed;
    }
    if (s < end && !isspace((unsigned char)*s)) return;
  }
}

/* Words in bold print say of which module the names behind them are: **`fft`**. */
static void read_page(const char *page, const char *s, const char *end) {
  char module[NAME_LEN] = "";
  while (s < end) {
    if (strncmp(s, "\n```", 4) == 0) {
      const char *close = strstr(s + 4, "\n```");
      s = close ? close + 4 : end;
    } else if (strncmp(s, "**", 2) == 0) {
      const char *close = strstr(s + 2, "**");
      module[0] = 0;
      for (u32 i = 0; i < OP_MODULE_COUNT && close; i++) {
        size_t len = strlen(op_modules[i]);
        if ((size_t)(close - s) == len + 4 && strncmp(s + 3, op_modules[i], len) == 0)
          snprintf(module, sizeof module, "%s", op_modules[i]);
      }
      s = close ? close + 2 : end;
    } else if (*s == '`') {
      const char *close = strchr(s + 1, '`');
      if (!close) return;
      read_span(page, module, s + 1, close);
      s = close + 1;
    } else {
      s++;
    }
  }
}

/* Names of modules anywhere on the page, `linalg.svd`, must be there too. */
static void read_mentions(const char *page) {
  for (const char *s = page; *s; s++) {
    if ((s > page && (is_word_char(s[-1]) || s[-1] == '.')) || !isalpha((unsigned char)*s)) continue;
    const char *dot = s;
    while (is_word_char(*dot)) dot++;
    if (*dot != '.' || !isalpha((unsigned char)dot[1])) continue;
    for (u32 i = 0; i < OP_MODULE_COUNT; i++) {
      if (strlen(op_modules[i]) != (size_t)(dot - s) || strncmp(s, op_modules[i], (size_t)(dot - s)) != 0) continue;
      const char *stop = dot + 1;
      while (is_word_char(*stop)) stop++;
      bool file = strncmp(dot, ".weft", 5) == 0 || strncmp(dot, ".md", 3) == 0;
      if (file || op_by_name(s, (size_t)(stop - s))) continue;
      printf("not ok language/page: docs/language.md:%d: there is no %.*s\n", line_of(page, s), (int)(stop - s), s);
      page_faults++;
    }
  }
}

static void check_page(void) {
  char *page = read_text("docs/language.md");
  const char *from = strstr(page, "\n## 4. "), *to = strstr(page, "\n## 6. ");
  if (!from || !to) {
    printf("not ok language/page: docs/language.md has no sections 4 to 6\n");
    page_faults++;
  } else {
    read_page(page, from, to);
    read_mentions(page);
  }
  for (u32 op = 1; op < OP_COUNT; op++) {
    if (shown[op]) continue;
    char has[PARAMS_MAX];
    params_of(op_info(op), has, sizeof has);
    printf("not ok language/page: docs/language.md does not show %s(%s)\n", op_info(op)->name, has);
    page_faults++;
  }
  if (!page_faults) printf("ok language/page\n");
  failures += page_faults != 0;
  free(page);
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* Rows of language.def; a column that a row lacks is "". */
typedef struct Row {
  const char *kind, *op, *name, *text, *other;
} Row;

static const Row rows[] = {
#define CALL(op, args) {"call", #op, "", args, ""},
#define FIRST(op, text) {"first", #op, "", text, ""},
#define SHOW(op, text) {"show", #op, "", text, ""},
#define WITH(op, values) {"with", #op, "", values, ""},
#define TRY(op, name, text, other) {"try", #op, #name, text, other},
#define ANY(values) {"any", "", "", values, ""},
#define LEAVES(op, text, code) {"leaves", #op, "", text, code},
#define WHOLE(op, why) {"whole", #op, "", why, ""},
#define LACKS(phrase, text, said) {"lacks", "", phrase, text, said},
#include "tests/language/language.def"
#undef CALL
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const Row *find_row(const char *kind, const char *op, const OpParam *param) {
  for (u32 i = 0; i < ROW_COUNT; i++) {
    const Row *r = &rows[i];
    if (strcmp(r->kind, kind) != 0 || strcmp(r->op, op) != 0) continue;
    if (!param || (strlen(r->name) == param->len && strncmp(r->name, param->name, param->len) == 0)) return r;
  }
  return NULL;
}

static const char *row_text(const char *kind, u32 op) {
  const Row *r = find_row(kind, call_ids[op], NULL);
  return r ? r->text : NULL;
}

/* The piece number `at` of a text with `|` between. */
static bool piece(const char *text, u32 at, char *out, size_t cap) {
  for (; at && text; at--) text = (text = strchr(text, '|')) ? text + 1 : NULL;
  if (text) snprintf(out, cap, "%.*s", (int)strcspn(text, "|"), text);
  return text != NULL;
}

/* The value of a parameter in a row WITH or ANY; *mark: `~` or `!`, or 0. */
static bool value_in(const char *values, const OpParam *param, char *out, size_t cap, char *mark) {
  char text[300];
  for (u32 i = 0; values && piece(values, i, text, sizeof text); i++) {
    const char *s = text + strspn(text, "~!");
    if (strncmp(s, param->name, param->len) != 0 || s[param->len] != '=') continue;
    *mark = *text == '~' || *text == '!' ? *text : 0;
    snprintf(out, cap, "%s", s + param->len + 1);
    return true;
  }
  return false;
}

static bool value_of(u32 op, const OpParam *param, char *out, size_t cap, char *mark) {
  if (value_in(row_text("with", op), param, out, cap, mark)) return true;
  for (u32 i = 0; i < ROW_COUNT; i++)
    if (strcmp(rows[i].kind, "any") == 0 && value_in(rows[i].text, param, out, cap, mark)) return true;
  return false;
}

/* The call in `out`: parameters in front of `...rest` by position, all others by name; `by` is given `value`. */
static void call_by_names(u32 op, int by, const char *value, char *out, size_t cap) {
  const OpInfo *info = op_info(op);
  const char *own = row_text("call", op), *comma = "";
  size_t n = (size_t)snprintf(out, cap, "%s(", info->name);
  int rest = -1;
  for (u32 p = 0; p < info->nparams; p++)
    if (info->params[p].rest) rest = (int)p;
  for (u32 p = 0; p < info->nparams; p++) {
    const OpParam *param = &info->params[p];
    char text[300];
    if ((int)p == by) snprintf(text, sizeof text, "%s", value);
    else if (!(own ? piece(own, p, text, sizeof text) : call_argument(op, p, text, sizeof text)) && param->has_default)
      continue;
    if (param->rest) n += (size_t)snprintf(out + n, cap - n, "%s...%s", comma, text);
    else if ((int)p < rest) n += (size_t)snprintf(out + n, cap - n, "%s%s", comma, text);
    else n += (size_t)snprintf(out + n, cap - n, "%s%.*s=%s", comma, (int)param->len, param->name, text);
    comma = ", ";
  }
  snprintf(out + n, cap - n, ")");
}

static const char prelude[] =
    "let q = [[1.5, 0.7], [0.7, 1.1]]\nlet m = [[1.5, 0.7], [0.6, 1.1]]\nlet v = [1.5, -0.7, 2.25, 0.4, -1.1, 3.0]\n"
    /* alike: arrays of one dtype and shape that differ by rounding at most; the rest as it is printed */
    "fn alike(a, b) = if type(a) == \"array\" and type(b) == \"array\" {\n"
    "  a.dtype == b.dtype and len(a.shape) == len(b.shape) and a.shape == b.shape and\n"
    "  if a.dtype in (f32, f64, c64, c128) { bool(allclose(a, b, 1e-6, 1e-9, true)) } else { str(a) == str(b) }\n"
    "} else if type(a) == \"list\" and type(b) == \"list\" and len(a) == len(b) {\n"
    "  for (x, y) in zip(a, b) { if not alike(x, y) { return false } }\n  true\n"
    "} else if type(a) == \"record\" and type(b) == \"record\" and keys(a) == keys(b) {\n"
    "  alike(values(a), values(b))\n} else { str(a) == str(b) }\n"
    /* out(f): what f gives; what the program itself says by error and assert counts, other errors are faults */
    "fn out(f) = try { f() } catch e { if e.kind in (\"user\", \"assert\") { f\"{e.kind}: {e.message}\" } else {\n"
    "  error(e) } }\n"
    "fn failure(f) { let it = try { f(); nil } catch e { f\"{e.kind}: {e.message}\" }\n"
    "  if it == nil { error(\"no error\", kind=\"value\") }\n  it }\n"
    "fn twice(o) { let (d, s) = o.update(q, o.init(q), q)\n o.update(reshape(v[:4], (2, 2)), s, q) }\n"
    "let t = {a: [1, 2, 1, 1], b: [3.0, 4.0, 5.0, 5.0]}\nlet bad = \"\"\n";

static char program[80000];
static size_t program_len;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(program + program_len, sizeof program - program_len, format, args);
  va_end(args);
  if (n < 0 || (size_t)n >= sizeof program - program_len) exit(2);
  program_len += (size_t)n;
}

/* What the call gives, interpreted in the variable `e_NAME` and compiled in `c_NAME`. */
static void put_call(u32 op, const char *name, const char *call, bool fails) {
  const char *first = row_text("first", op), *show = row_text("show", op);
  put("fn f_%s() { %s\n let it = %s\n %s }\n", name, first ? first : "", call, show ? show : "it");
  const char *out = fails ? "failure" : "out";
  const char *plainly = row_text("whole", op) ? "call" : "eager";
  put("let e_%s = %s(() => %s(f_%s))%s\nlet c_%s = %s(f_%s)\n", name, plainly, out, name,
      *plainly == 'e' ? "()" : "", name, out, name);
  put("if not alike(e_%s, c_%s) { bad += f\"%s: {c_%s} compiled, {e_%s} interpreted; \" }\n", name, name, name, name,
      name);
}

static const char *check_calls(u32 op) {
  static char why[4000];
  const OpInfo *info = op_info(op);
  char call[1000], value[300];
  bool ends = false;
  for (u32 i = 0; i < ROW_COUNT; i++) {
    if (strcmp(rows[i].kind, "leaves") != 0 || strcmp(rows[i].op, call_ids[op]) != 0) continue;
    ends = true;
    HostRun run = host_run(&(HostSetup){.backend = "mir", .hot = 0}, "language", rows[i].text);
    bool left = run.exit_code == atoi(rows[i].other);
    snprintf(why, sizeof why, "%s ends with %d", rows[i].text, run.exit_code);
    host_run_free(&run);
    if (!left) return why;
  }
  if (ends) return NULL;
  program_len = 0;
  put("%s", prelude);
  call_by_names(op, -1, "", call, sizeof call);
  put_call(op, "plain", call, false);
  for (u32 p = 0; p < info->nparams; p++) {
    const OpParam *param = &info->params[p];
    if (!param->has_default) continue;
    char name[NAME_LEN], without[NAME_LEN] = "plain";
    char mark = 0;
    snprintf(name, sizeof name, "with_%.*s", (int)param->len, param->name);
    const Row *tried = find_row("try", call_ids[op], param);
    if (tried) {
      snprintf(without, sizeof without, "without_%.*s", (int)param->len, param->name);
      put_call(op, name, tried->text, false);
      put_call(op, without, tried->other, false);
    } else if (value_of(op, param, value, sizeof value, &mark)) {
      call_by_names(op, (int)p, value, call, sizeof call);
      put_call(op, name, call, mark == '!');
    } else {
      snprintf(why, sizeof why, "tests/language/language.def has no value for %.*s", (int)param->len, param->name);
      return why;
    }
    put("if alike(e_%s, e_%s) != %s { bad += f\"%.*s %s: {e_%s}; \" }\n", name, without, mark == '~' ? "true" : "false",
        (int)param->len, param->name, mark == '~' ? "changes the result" : "changes nothing", name);
  }
  put("bad");
  HostRun run = host_run(&(HostSetup){.backend = "mir", .hot = 0, .files = true}, "language", program);
  const char *said = run.end == HOST_VALUE ? run.value : run.message ? run.message : "no VM";
  bool good = run.end == HOST_VALUE && strcmp(run.value, "\"\"") == 0;
  if (!good) {
    const char *line = program;
    for (int i = 1; i < run.line && line; i++) line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    snprintf(why, sizeof why, "%s%s%.*s", said, run.line ? " in" : "",
             run.line && line ? (int)strcspn(line, "\n") : 0, line ? line : "");
  }
  host_run_free(&run);
  return good ? NULL : why;
}

/* ---- what is not there ------------------------------------------------------------------------ */

static const char lacks_prelude[] =
    "fn refused(fs) { for f in fs {\n"
    "  let said = try { f(); \"it is there\" } catch e { f\"{e.kind}: {e.message}\" }\n"
    "  if not starts_with(said, \"unsupported: \") { return said }\n}\n"
    "\"refused\" }\n"
    "fn reasons(f, ...xs) = str(map(b => b.reason, trace.explain(f, ...xs).breaks))\n";

/* Every paragraph of the list in README.md has a row here that shows it, and what rows speak of is said there. */
static void check_lacks(void) {
  char *text = read_text("README.md");
  char *from = strstr(text, "\n## What is not there yet");
  bool used[ROW_COUNT] = {false};
  int bad = !from;
  if (!from) printf("not ok language/lacks: README.md has no list of what is not there yet\n");
  for (char *s = from; s && (s = strstr(s, "\n- ")); s++) {
    char *end = strstr(s + 1, "\n-");
    char item[3000];
    size_t n = 0;
    for (char *c = s + 3; *c && c != end && n + 1 < sizeof item; c++)
      if (!isspace((unsigned char)*c) || (n && item[n - 1] != ' ')) item[n++] = isspace((unsigned char)*c) ? ' ' : *c;
    item[n] = 0;
    bool tested = false;
    for (u32 i = 0; i < ROW_COUNT; i++) {
      bool here = strcmp(rows[i].kind, "lacks") == 0 && strstr(item, rows[i].name) != NULL;
      used[i] |= here;
      tested |= here;
    }
    if (!tested) {
      printf("not ok language/lacks: README.md:%d has no row LACKS in tests/language/language.def\n",
             line_of(text, s) + 1);
      bad++;
    }
  }
  for (u32 i = 0; i < ROW_COUNT; i++) {
    if (strcmp(rows[i].kind, "lacks") != 0) continue;
    program_len = 0;
    put("%s%s", lacks_prelude, rows[i].text);
    HostRun run = host_run(&(HostSetup){.backend = "mir", .hot = 0}, "lacks", program);
    const char *said = run.end == HOST_VALUE ? run.value : run.message ? run.message : "no VM";
    if (!used[i] || !strstr(said, rows[i].other)) {
      printf("not ok language/lacks: README.md %s \"%s\"; its program says: %s\n", used[i] ? "says" : "does not say",
             rows[i].name, said);
      bad++;
    }
    host_run_free(&run);
  }
  if (!bad) printf("ok language/lacks\n");
  failures += bad != 0;
  free(text);
}

static bool is_asked(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return argc < 2;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    check_page();
    check_lacks();
  }
  mkdir("build/check", 0777);
  mkdir("build/check/language", 0777);
  if (chdir("build/check/language") != 0) return 2; /* files are written there */
  for (u32 op = 1; op < OP_COUNT; op++) {
    const char *name = op_info(op)->name;
    if (!is_asked(name, argc, argv)) continue;
    const char *why = check_calls(op);
    if (why) printf("not ok language/%s: %s\n", name, why);
    else printf("ok language/%s\n", name);
    failures += why != NULL;
  }
  return failures != 0;
}

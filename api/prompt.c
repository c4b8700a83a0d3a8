/* prompt.c — what a prompt needs beside evaluation: what kind of thing was entered, commands, how a value is shown (see
 * weft.h, docs/prompt.md). */
#include "api/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "parser/parser.h"
#include "stdlib/stdlib.h"
#include "tracer/tracer.h"

/* ---- showing ------------------------------------------------------------------------------------------- */

/* How the terminal shows pictures, by the names that such terminals give themselves; WEFT_PICTURES says it of others
 * ("none": of this one not). NULL: it does not. */
static const char *picture_protocol(void) {
  static const struct { const char *variable, *begins, *protocol; } known[] = {
      {"KITTY_WINDOW_ID", "", "kitty"},   {"TERM", "xterm-kitty", "kitty"},        {"TERM", "xterm-ghostty", "kitty"},
      {"TERM", "foot", "sixel"},          {"TERM", "mlterm", "sixel"},             {"TERM", "contour", "sixel"},
      {"TERM_PROGRAM", "WezTerm", "sixel"}, {"TERM_PROGRAM", "iTerm.app", "sixel"}};
  const char *asked = getenv("WEFT_PICTURES"), *term = getenv("TERM");
  if (asked && *asked) return strcmp(asked, "sixel") == 0 || strcmp(asked, "kitty") == 0 ? asked : NULL;
  if (!term || strcmp(term, "dumb") == 0 || getenv("TMUX") || getenv("STY")) return NULL; /* tmux and screen eat them */
  for (u32 i = 0; i < COUNT_OF(known); i++) {
    const char *is = getenv(known[i].variable);
    if (is && *is && strncmp(is, known[i].begins, strlen(known[i].begins)) == 0) return known[i].protocol;
  }
  return NULL;
}

/* The text that a built-in gives for a drawing and further arguments, which are released; false: it failed. */
static bool draw_by(WeftVM *w, u32 op, WeftValue *value, WeftValue **args, size_t count) {
  WeftValue *fn = NULL, *text = NULL;
  Value v;
  bool drawn = fn_builtin(w->vm, op, &v) && value_hand_over(w, v, &fn) == WEFT_OK;
  for (size_t i = 1; i < count; i++) drawn &= args[i] != NULL;
  args[0] = value;
  drawn = drawn && weft_call(w, fn, args, count, &text) == WEFT_OK && text->value.kind == V_TEXT;
  if (drawn) (void)text_hold(w, text->value.text->data, text->value.text->len);
  else if (w->vm->error.raised) vm_error_clear(w->vm);
  weft_release(w, fn);
  weft_release(w, text);
  for (size_t i = 1; i < count; i++) weft_release(w, args[i]);
  return drawn;
}

/* plot.picture of a drawing where the terminal shows such, else plot.text, as wide as the terminal; of plain characters
 * on one that is dumb. False: it failed. */
static bool draw(WeftVM *w, WeftValue *value) {
  enum { WIDE = 72, NARROW = 24, WIDEST = 160, LOW = 6, HIGH = 18, ROUND = 6 /* rows for axes and titles */ };
  enum { DOTS = 640, CELL = 8 /* of a character */, WIDE_LEAST = 200, HIGH_LEAST = 150 /* that plot.picture takes */ };
  struct winsize window = {0};
  const char *term = getenv("TERM");
  bool terminal = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0;
  const char *protocol = terminal ? picture_protocol() : NULL;
  if (protocol) {
    i64 dots = window.ws_xpixel ? window.ws_xpixel : (window.ws_col ? window.ws_col : WIDE) * CELL;
    dots = dots < WIDE_LEAST ? WIDE_LEAST : dots > DOTS ? DOTS : dots;
    i64 high = dots * 21 / 32 < HIGH_LEAST ? HIGH_LEAST : dots * 21 / 32;
    WeftValue *args[4] = {0};
    if (weft_int(w, dots, &args[1]) != WEFT_OK || weft_int(w, high, &args[2]) != WEFT_OK ||
        weft_text(w, protocol, strlen(protocol), &args[3]) != WEFT_OK)
      vm_error_clear(w->vm);
    if (draw_by(w, OP_plot_picture, value, args, COUNT_OF(args))) return true;
  }
  i64 width = terminal && window.ws_col ? window.ws_col - 1 : WIDE;
  i64 height = terminal && window.ws_row ? window.ws_row : HIGH + ROUND;
  width = width < NARROW ? NARROW : width > WIDEST ? WIDEST : width;
  height = height - ROUND < LOW ? LOW : height - ROUND > HIGH ? HIGH : height - ROUND;
  const bool dumb = term && strcmp(term, "dumb") == 0;
  WeftValue *args[5] = {0};
  if (weft_int(w, width, &args[1]) != WEFT_OK || weft_int(w, height, &args[2]) != WEFT_OK ||
      weft_bool(w, terminal && dumb, &args[3]) != WEFT_OK ||
      weft_bool(w, terminal && term && !dumb && !getenv("NO_COLOR"), &args[4]) != WEFT_OK)
    vm_error_clear(w->vm);
  return draw_by(w, OP_plot_text, value, args, COUNT_OF(args));
}

static void display(WeftVM *w, WeftValue *value) {
  ON_STACK_OF(w);
  w->text.len = 0;
  w->text.failed = false;
  if (vm_catch_up(w->vm) != WEFT_OK) return vm_error_clear(w->vm); /* a ref may be in it */
  display_value(w, value->value, &w->text);
}

const char *weft_display(WeftVM *w, WeftValue *value) {
  if (!usable(w) || !value || !value_ok(w, value) || value->value.kind == V_NIL) return "";
  if (is_drawing(w->vm, value->value) && draw(w, value)) return buf_text(&w->text);
  const Text *report = tracer_report_text(w->vm, value->value);
  if (report) (void)text_hold(w, report->data, report->len);
  else display(w, value);
  if (w->text.len && w->text.data[w->text.len - 1] != '\n') buf_putc(&w->text, '\n');
  return w->text.failed ? "" : buf_text(&w->text);
}

void weft_remember(WeftVM *w, WeftValue *value) {
  u32 slot;
  if (!usable(w) || !value || !value_ok(w, value) || value->value.kind == V_NIL) return;
  ON_STACK_OF(w);
  Name name = name_find(&w->vm->names, "ans", 3);
  bool there = name && scope_find(&w->main->scope, name, &slot) && module_has_variable(w->main, slot);
  if (there && memcmp(&w->main->slots[slot].value, &w->answer, sizeof w->answer) != 0) return; /* the program's own */
  w->answer = value->value;
  if (weft_set_global(w, "ans", value) != WEFT_OK) vm_error_clear(w->vm);
}

/* ---- what an input is ---------------------------------------------------------------------------------- */

static WeftInput parse(Vm *vm, const char *text) {
  WeftInput kind = WEFT_INPUT_WHOLE;
  Names names = {0};
  Sources sources = {0};
  Arena arena;
  Ast ast;
  Diag diag = {0};
  const ParseOptions options = {.repl = true};
  arena_init(&arena, &vm->alloc);
  u32 file = 0;
  bool ready = names_init(&names, &vm->alloc) == WEFT_OK && sources_init(&sources, &vm->alloc) == WEFT_OK;
  if (ready) file = sources_add(&sources, "", text, strlen(text));
  WeftStatus status = file ? parser_parse(&ast, &arena, &names, &sources, file, &diag, &options) : WEFT_ERROR;
  if (status == WEFT_INCOMPLETE) kind = WEFT_INPUT_UNFINISHED;
  if (status == WEFT_OK) {
    const AstNode *root = ast_node(&ast, ast.root);
    const AstNode *last = root->count ? ast_node(&ast, ast_kid(&ast, root, root->count - 1)) : NULL;
    if (last && last->kind == AST_FN && last->ref) kind = WEFT_INPUT_DECLARES;
  }
  arena_free(&arena);
  if (sources.alloc) sources_free(&sources);
  if (names.alloc) names_free(&names);
  return kind;
}

static size_t name_length(const char *s) {
  size_t n = 0;
  while (is_name_byte(s[n]) || s[n] == '.') n++;
  return n;
}

static bool is_blank(const char *s) { return !s[strspn(s, " \t\r\n")]; }

bool module_has_variable(const struct Module *m, u32 slot) {
  return slot < m->slot_cap && (m->scope.flags.data[slot] & MODVAR_DECLARED) && m->slots[slot].value.kind != V_HOLE;
}

/* Is the line this word alone, or a call of it without arguments, and no variable has the name? */
static bool is_word(const WeftVM *w, const char *line, const char *word, bool called) {
  const char *s = line + strspn(line, " \t");
  size_t n = name_length(s);
  if (n != strlen(word) || strncmp(s, word, n) != 0) return false;
  if (!is_blank(s + n) && !(called && strncmp(s + n, "()", 2) == 0 && is_blank(s + n + 2))) return false;
  u32 slot;
  Name name = name_find(&w->vm->names, word, n);
  return !(name && scope_find(&w->main->scope, name, &slot) && (w->main->scope.flags.data[slot] & MODVAR_DECLARED));
}

/* `?name`, `name?` and `help name` ask what a name is: where it stands, and its length; NULL: that is not asked. Two
 * signs, `??name`, ask for its source. */
static const char *name_asked(const char *line, size_t *length, bool *source) {
  const char *s = line + strspn(line, " \t");
  size_t asked = strspn(s, "?"), signs = asked;
  s += asked;
  if (!asked && strncmp(s, "help", 4) == 0 && (s[4] == ' ' || s[4] == '\t')) {
    asked = 1;
    s += 4;
  }
  s += strspn(s, " \t");
  size_t n = name_length(s), blanks = strspn(s + n, " \t"), behind = strspn(s + n + blanks, "?");
  if (!n || !(asked || behind) || !is_blank(s + n + blanks + behind) || (*s >= '0' && *s <= '9')) return NULL;
  *length = n;
  *source = signs + behind >= 2;
  return s;
}

/* What stands for a command without its colon; NULL: nothing does. */
static const char *plain_command(const WeftVM *w, const char *line) {
  const char *s = line + strspn(line, " \t");
  if (is_word(w, line, "quit", true) || is_word(w, line, "exit", false)) return "quit";
  bool asks = *s == '?' && is_blank(s + strspn(s, "?"));
  return is_word(w, line, "help", false) || asks ? "help" : NULL;
}

WeftInput weft_input(WeftVM *w, const char *text) {
  size_t length;
  bool source;
  if (!usable(w) || !text) return WEFT_INPUT_WHOLE;
  ON_STACK_OF(w);
  bool command = text[strspn(text, " \t")] == ':' || name_asked(text, &length, &source) || plain_command(w, text);
  return command ? WEFT_INPUT_COMMAND : parse(w->vm, text);
}

/* ---- commands ------------------------------------------------------------------------------------------- */

static const char help_text[] =
    "  :help                 this text; help(f) or ?f tells what a function does, ??f\n"
    "                        shows its source, help() lists the built-in ones\n"
    "  :find TEXT            built-in functions that have TEXT in their description\n"
    "  :vars                 the variables declared here; ans is the last value\n"
    "  :load FILE            run a file here\n"
    "  :save FILE            write the inputs of this session that ran to a file\n"
    "  :edit  :edit f        edit the last input, or a function, and run it ($EDITOR)\n"
    "  :history  :history T  inputs of before, those that hold the text T\n"
    "  :time CODE            run CODE and say how long it took\n"
    "  :bench CODE           run CODE many times and say how long it takes\n"
    "  :profile CODE         run CODE and say what its kernels cost\n"
    "  :show p               show the drawing p in the browser\n"
    "  :reset                forget all variables and what was compiled\n"
    "  :digits N  :rows N    digits of a float, rows of an array that are shown\n"
    "  :graph f  :guards f   the graphs compiled for f, and what they rely on\n"
    "  :breaks f             where capturing f broke, and what its guards missed\n"
    "  :why                  the last break or recompile, with its reason\n"
    "  :stats  :stats f      counters of the VM, or of a function\n"
    "  :loops f  :mir f  :asm f  :ptx f\n"
    "                        the kernels of f, as loop IR, MIR, vector code and PTX\n"
    "  :quit                 leave\n";

const Command prompt_commands[] = {
    {"help", ARG_NONE, false, "the commands"},
    {"find", ARG_WORDS, true, "TEXT  built-in functions that have to do with it"},
    {"vars", ARG_NONE, false, "the variables declared here"},
    {"load", ARG_FILE, true, "FILE  run a file here"},
    {"save", ARG_FILE, true, "FILE  write the inputs of this session to a file"},
    {"edit", ARG_FUNCTION, false, "edit the last input, or a function, in $EDITOR"},
    {"history", ARG_CODE, false, "inputs of before"},
    {"graph", ARG_FUNCTION, true, "f  the graphs compiled for f"},
    {"guards", ARG_FUNCTION, true, "f  what they rely on"},
    {"breaks", ARG_FUNCTION, true, "f  where capturing f broke"},
    {"why", ARG_FUNCTION, false, "the last break or recompile"},
    {"stats", ARG_FUNCTION, false, "counters"},
    {"loops", ARG_FUNCTION, true, "f  kernels as loop IR"},
    {"mir", ARG_FUNCTION, true, "f  kernels as MIR"},
    {"asm", ARG_FUNCTION, true, "f  kernels as vector code"},
    {"ptx", ARG_FUNCTION, true, "f  kernels as PTX"},
    {"time", ARG_CODE, true, "CODE  run it and say how long it took"},
    {"bench", ARG_CODE, true, "CODE  run it many times and say how long it takes"},
    {"profile", ARG_CODE, true, "CODE  run it and say what its kernels cost"},
    {"digits", ARG_NUMBER, false, "N  significant digits of a float that are shown; all"},
    {"rows", ARG_NUMBER, false, "N  rows of an array that are shown; auto"},
    {"show", ARG_CODE, true, "p  show a drawing in the browser"},
    {"reset", ARG_NONE, false, "forget all variables"},
    {"quit", ARG_NONE, false, "leave"},
    {NULL, ARG_NONE, false, NULL},
};

/* Lines of ASCII, those that are too long cut at blanks; what goes on stands below the descriptions, or, where a window
 * has no room for them, a little to the right. */
static void put_lines(WeftVM *w, const char *text) {
  enum { DESCRIPTIONS = 24, RIGHT = 6, NARROW = 48 };
  const size_t width = display_width(w), indent = width < NARROW ? RIGHT : DESCRIPTIONS;
  for (const char *end; *text; text = end + (*end != 0)) {
    end = text + strcspn(text, "\n");
    size_t before = 0, room = width;
    while ((size_t)(end - text) > room) {
      size_t n = room;
      while (n > 0 && text[n] != ' ') n--;
      size_t kept = n;
      while (kept > 0 && text[kept - 1] == ' ') kept--;
      if (!kept) break; /* one word */
      buf_printf(&w->text, "%*s%.*s\n", (int)before, "", (int)kept, text);
      text += n + strspn(text + n, " ");
      before = indent;
      room = width - indent;
    }
    buf_printf(&w->text, "%*s%.*s\n", (int)before, "", (int)(end - text), text);
  }
}

/* What is to be shown lies in w->text. */
static WeftCommandEnd show(WeftVM *w, const char *text) {
  (void)text_hold(w, text, strlen(text));
  return WEFT_COMMAND_DONE;
}

static WeftCommandEnd ended(WeftStatus status) {
  return status == WEFT_OK ? WEFT_COMMAND_DONE : WEFT_COMMAND_FAILED;
}

static WeftCommandEnd run_and_show(WeftVM *w, const char *code, const char *name) {
  WeftValue *v = NULL;
  WeftStatus status = weft_eval(w, code, name, &v);
  w->text.len = 0;
  if (status == WEFT_OK && v) (void)weft_display(w, v);
  weft_release(w, v);
  return ended(status);
}

/* "before" + name + "behind", run. */
static WeftCommandEnd run_call(WeftVM *w, const char *before, const char *name, size_t n, const char *behind,
                               const char *where) {
  Buf code;
  buf_init(&code, &w->vm->alloc);
  buf_printf(&code, "%s%.*s%s", before, (int)n, name, behind);
  WeftCommandEnd end = code.failed ? ended(vm_error_memory(w->vm)) : run_and_show(w, buf_text(&code), where);
  buf_free(&code);
  return end;
}

static WeftCommandEnd tell_name(WeftVM *w, const char *name, size_t n, bool source) {
  if (source) return run_call(w, "help(", name, n, ", source=true)", "<help>");
  for (const char *const *word = parser_reserved_words(); *word; word++)
    if (strlen(*word) == n && strncmp(*word, name, n) == 0) return run_call(w, "help(\"", name, n, "\")", "<help>");
  return run_call(w, "help(", name, n, ")", "<help>");
}

static WeftCommandEnd show_dump(WeftVM *w, const char *what, const char *name) {
  WeftValue *f = NULL;
  if (name && weft_eval(w, name, "<command>", &f) != WEFT_OK) /* a built-in, a member of a record or module, too */
    return WEFT_COMMAND_FAILED;
  if (!weft_dump(w, f, what)) (void)show(w, "nothing to show\n");
  weft_release(w, f);
  return WEFT_COMMAND_DONE;
}

/* Counters that are not 0, one a line. */
static WeftCommandEnd show_counters(WeftVM *w) {
  for (u32 i = 0; i < STAT_COUNT; i++) {
    double value = (double)vm_stat(w->vm, i);
    if (value != 0) buf_printf(&w->text, "  %-20s %.0f\n", stat_name(i), value);
  }
  return WEFT_COMMAND_DONE;
}

static WeftCommandEnd run_timed(WeftVM *w, const char *code) {
  WeftValue *v = NULL;
  f64 begin = vm_clock();
  WeftStatus status = weft_eval_line(w, code, "<:time>", &v);
  f64 spent = vm_clock() - begin;
  if (status == WEFT_INCOMPLETE) status = weft_eval(w, code, "<:time>", &v); /* says what is missing */
  if (status == WEFT_OK) {
    w->text.len = 0;
    if (v) (void)weft_display(w, v);
    buf_printf(&w->text, "%.6f s\n", spent);
  }
  weft_release(w, v);
  return ended(status);
}

static bool holds(const char *text, const char *part) {
  size_t n = strlen(part);
  for (; *text; text++)
    if (strncasecmp(text, part, n) == 0) return true;
  return false;
}

/* Their names, parameters and what they do, without examples. */
static WeftCommandEnd find_functions(WeftVM *w, const char *part) {
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    size_t n = strcspn(info->doc, ";");
    char doc[400];
    snprintf(doc, sizeof doc, "%.*s", (int)n, info->doc);
    if (holds(info->name, part) || holds(doc, part))
      buf_printf(&w->text, "  %s  %s\n      %s\n", info->name, info->signature, doc);
  }
  if (!w->text.len) buf_printf(&w->text, "nothing has \"%s\" in its name or its description\n", part);
  return WEFT_COMMAND_DONE;
}

static void put_time(Buf *out, f64 s) {
  const f64 scale = s < 1e-6 ? 1e9 : s < 1e-3 ? 1e6 : s < 1 ? 1e3 : 1;
  buf_printf(out, "%.4g %s", s * scale, s < 1e-6 ? "ns" : s < 1e-3 ? "µs" : s < 1 ? "ms" : "s");
}

static int less(const void *a, const void *b) {
  f64 x = *(const f64 *)a, y = *(const f64 *)b;
  return (x > y) - (x < y);
}

/* A function without arguments that runs the code; WEFT_ERROR: it does not compile. */
static WeftStatus function_of(WeftVM *w, const char *code, WeftValue **out) {
  Buf text;
  buf_init(&text, &w->vm->alloc);
  buf_printf(&text, "() => { %s\n}", code);
  WeftStatus status = text.failed ? vm_error_memory(w->vm) : weft_eval(w, buf_text(&text), "<:bench>", out);
  buf_free(&text);
  return status;
}

/* How long `runs` calls take; below 0: one failed. */
static f64 time_of(WeftVM *w, WeftValue *f, u64 runs) {
  f64 begin = vm_clock();
  for (u64 i = 0; i < runs; i++) {
    WeftValue *v = NULL;
    if (weft_call(w, f, NULL, 0, &v) != WEFT_OK) return -1;
    weft_release(w, v);
  }
  return vm_clock() - begin;
}

/* First as long as code is being compiled, then samples of a hundredth of the time each. */
static WeftCommandEnd run_bench(WeftVM *w, const char *code) {
  enum { SAMPLES = 50 };
  const f64 total = 0.5, warm = 0.1, sample = 0.005;
  WeftValue *f = NULL;
  f64 times[SAMPLES], spent = 0, begin = vm_clock();
  u64 runs = 1, all = 0;
  u32 n = 0;
  if (function_of(w, code, &f) != WEFT_OK) return WEFT_COMMAND_FAILED;
  f64 took = time_of(w, f, 1);
  for (; took >= 0 && vm_clock() - begin < warm; all++) took = time_of(w, f, 1);
  while (took >= 0 && took < sample && runs < 1u << 30) {
    runs *= took > sample / 8 ? 2 : 8;
    took = time_of(w, f, runs);
  }
  for (; took >= 0 && n < SAMPLES && (n < 3 || spent < total); n++) {
    took = time_of(w, f, runs);
    times[n] = took / (f64)runs;
    spent += took;
    all += runs;
  }
  weft_release(w, f);
  if (took < 0) return WEFT_COMMAND_FAILED;
  qsort(times, n, sizeof *times, less);
  w->text.len = 0;
  put_time(&w->text, times[n / 2]);
  buf_puts(&w->text, " per run (least ");
  put_time(&w->text, times[0]);
  buf_puts(&w->text, ", most ");
  put_time(&w->text, times[n - 1]);
  buf_printf(&w->text, "; %llu runs)\n", (unsigned long long)all);
  return WEFT_COMMAND_DONE;
}

static WeftCommandEnd run_profiled(WeftVM *w, const char *code) {
  WeftValue *v = NULL;
  weft_keep_log(w, false);
  WeftStatus status = weft_eval_line(w, code, "<:profile>", &v);
  if (status == WEFT_INCOMPLETE) status = weft_eval(w, code, "<:profile>", &v);
  weft_release(w, v);
  if (status == WEFT_OK && !weft_dump(w, NULL, "profile")) (void)show(w, "nothing to show\n");
  return ended(status);
}

/* A number, or the word for `none`; without an argument what is set is told. */
static WeftCommandEnd set_shown(WeftVM *w, const char *rest, const char *what, const char *word, int none, int *to) {
  enum { MOST = 10000 };
  int n = rest ? atoi(rest) : 0;
  int most = to == &w->digits ? DIGITS_ALL : MOST;
  bool is_word_given = rest && strcmp(rest, word) == 0, whole = rest && rest[strspn(rest, "0123456789")] == 0;
  if (rest && !is_word_given && !(whole && n >= 1 && n <= most)) {
    buf_printf(&w->text, "%s: a number from 1 to %d, or %s\n", what, most, word);
    return WEFT_COMMAND_DONE;
  }
  if (rest) *to = is_word_given ? none : n;
  int now = to == &w->digits && !*to ? DIGITS_USUAL : *to;
  if (now == none) buf_printf(&w->text, "%s: %s\n", what, word);
  else buf_printf(&w->text, "%s: %d\n", what, now);
  return WEFT_COMMAND_DONE;
}

/* Commands on the session, which the program of the prompt does itself. */
static bool is_of_program(const char *word) {
  static const char *const words[] = {"save", "edit", "history", "reset", "show"};
  for (u32 i = 0; i < COUNT_OF(words); i++)
    if (strcmp(words[i], word) == 0) return true;
  return false;
}

static WeftCommandEnd load_file(WeftVM *w, const char *path, size_t n) {
  bool quoted = n >= 2 && path[0] == '"' && path[n - 1] == '"';
  Buf name;
  buf_init(&name, &w->vm->alloc);
  buf_put(&name, path + quoted, n - 2 * quoted);
  WeftStatus status = name.failed ? vm_error_memory(w->vm) : weft_load_file(w, buf_text(&name), NULL);
  buf_free(&name);
  w->text.len = 0;
  return ended(status);
}

static WeftCommandEnd show_variables(WeftVM *w) {
  const struct Module *m = w->main;
  for (u32 i = 0; i < m->scope.slots.count; i++) {
    if (!module_has_variable(m, i)) continue;
    Value v = m->slots[i].value;
    buf_printf(&w->text, "  %-16s %s", name_text(&w->vm->names, m->scope.slots.data[i]), value_type_name(v));
    if (v.kind == V_NUM) buf_printf(&w->text, " %s", dtype_name(v.dtype));
    if (v.kind == V_ARRAY) {
      buf_printf(&w->text, " %s (", dtype_name(array_dtype(v.array)));
      for (u32 d = 0; d < array_rank(v.array); d++)
        buf_printf(&w->text, d ? ", %lld" : "%lld", (long long)array_dims(v.array)[d]);
      buf_puts(&w->text, array_rank(v.array) == 1 ? ",)" : ")");
    }
    if (v.kind == V_LIST) buf_printf(&w->text, " of %u", v.list->count);
    if (v.kind == V_RECORD) buf_printf(&w->text, " of %u", v.record->shape->count);
    buf_putc(&w->text, '\n');
  }
  return w->text.len ? WEFT_COMMAND_DONE : show(w, "  nothing is declared yet\n");
}

/* `rest`: what stands behind the word, NULL: nothing does. */
static WeftCommandEnd run_command(WeftVM *w, const Command *c, const char *rest) {
  const char *word = c->name;
  if (strcmp(word, "help") == 0) return put_lines(w, help_text), WEFT_COMMAND_HELP;
  if (strcmp(word, "quit") == 0) return WEFT_COMMAND_QUIT;
  if (strcmp(word, "vars") == 0) return show_variables(w);
  if (strcmp(word, "load") == 0) return load_file(w, rest, strlen(rest));
  if (strcmp(word, "time") == 0) return run_timed(w, rest);
  if (strcmp(word, "find") == 0) return find_functions(w, rest);
  if (strcmp(word, "bench") == 0) return run_bench(w, rest);
  if (strcmp(word, "profile") == 0) return run_profiled(w, rest);
  if (strcmp(word, "digits") == 0) return set_shown(w, rest, "digits of a float", "all", DIGITS_ALL, &w->digits);
  if (strcmp(word, "rows") == 0) return set_shown(w, rest, "rows of an array", "auto", 0, &w->rows);
  if (is_of_program(word)) {
    buf_printf(&w->text, ":%s: not supported by this prompt\n", word);
    return WEFT_COMMAND_DONE;
  }
  if (strcmp(word, "stats") == 0)
    return rest ? run_call(w, "trace.stats(", rest, strlen(rest), ")", "<:stats>") : show_counters(w);
  return show_dump(w, strcmp(word, "breaks") == 0 ? "why" : word, rest);
}

static WeftCommandEnd command(WeftVM *w, const char *line) {
  static const char *const wanted[] = {"", "the name of a function", "something to run", "the name of a file",
                                       "a number", "something to look for"};
  const char *blanks = " \t\r\n", *word = line + strspn(line, blanks), *rest = word + strcspn(word, blanks);
  size_t n = (size_t)(rest - word);
  const Command *c = prompt_commands;
  rest += strspn(rest, blanks);
  if (n == 1 && *word == 'q') word = "quit", n = 4;
  if (!n) word = "help", n = 4;
  while (c->name && (strlen(c->name) != n || strncmp(c->name, word, n) != 0)) c++;
  if (!c->name) {
    const char *near = NULL;
    u32 limit = name_near(n);
    for (c = prompt_commands; c->name; c++) {
      u32 away = limit ? name_distance(word, n, c->name, strlen(c->name), limit) : 0;
      if (away < limit) limit = away, near = c->name;
    }
    if (near) buf_printf(&w->text, ":%.*s: no such command; did you mean :%s?\n", (int)n, word, near);
    else buf_printf(&w->text, ":%.*s: no such command; :help lists them\n", (int)n, word);
    return WEFT_COMMAND_DONE;
  }
  if (c->needed && !*rest) {
    buf_printf(&w->text, ":%s needs %s\n", c->name, wanted[c->arg]);
    return WEFT_COMMAND_DONE;
  }
  Buf trimmed; /* without the blanks at its end; the text of w is needed for what is shown */
  buf_init(&trimmed, &w->vm->alloc);
  size_t len = strlen(rest);
  while (len && strchr(blanks, rest[len - 1])) len--;
  buf_put(&trimmed, rest, len);
  const char *argument = len ? buf_text(&trimmed) : NULL;
  WeftCommandEnd end = trimmed.failed ? ended(vm_error_memory(w->vm)) : run_command(w, c, argument);
  buf_free(&trimmed);
  return end;
}

WeftCommandEnd weft_command(WeftVM *w, const char *line, const char **text) {
  size_t length;
  bool source = false;
  if (text) *text = "";
  if (!usable(w) || !line) return WEFT_COMMAND_UNKNOWN;
  const char *begin = line + strspn(line, " \t"), *plain = plain_command(w, line);
  const char *name = name_asked(line, &length, &source);
  if (*begin != ':' && !plain && !name) return WEFT_COMMAND_UNKNOWN;
  w->text.len = 0;
  w->text.failed = false;
  w->commands++;
  WeftCommandEnd end = plain ? command(w, plain) : name ? tell_name(w, name, length, source) : command(w, begin + 1);
  w->commands--;
  if (text && end != WEFT_COMMAND_FAILED && w->text.len) *text = buf_text(&w->text);
  return end;
}

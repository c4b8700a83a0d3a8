/* prompt.c — what a prompt needs beside evaluation: what kind of thing was entered, commands, how a value is shown (see
 * weft.h, docs/prompt.md). */
#include "api/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "parser/parser.h"
#include "stdlib/stdlib.h"
#include "tracer/tracer.h"

/* ---- showing ------------------------------------------------------------------------------------------- */

/* What functions of the module plot give: a record whose first keys are these. */
static bool is_drawing(Vm *vm, Value v) {
  static const char *const keys[] = {"plot", "series", "title", "xlabel", "ylabel", "xscale", "yscale"};
  if (v.kind != V_RECORD || v.record->shape->count != COUNT_OF(keys)) return false;
  for (u32 i = 0; i < COUNT_OF(keys); i++)
    if (strcmp(name_text(&vm->names, v.record->shape->keys[i]), keys[i]) != 0) return false;
  return true;
}

/* plot.text of a drawing, as wide as the terminal; of plain characters on one that is dumb. False: it failed. */
static bool draw(WeftVM *w, WeftValue *value) {
  enum { WIDE = 72, NARROW = 24, WIDEST = 160, LOW = 6, HIGH = 18, ROUND = 6 /* rows for axes and titles */ };
  struct winsize window = {0};
  const char *term = getenv("TERM");
  bool terminal = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0;
  i64 width = terminal && window.ws_col ? window.ws_col - 1 : WIDE;
  i64 height = terminal && window.ws_row ? window.ws_row : HIGH + ROUND;
  width = width < NARROW ? NARROW : width > WIDEST ? WIDEST : width;
  height = height - ROUND < LOW ? LOW : height - ROUND > HIGH ? HIGH : height - ROUND;
  WeftValue *fn = NULL, *args[4] = {value}, *text = NULL;
  Value v;
  bool drawn = fn_builtin(w->vm, OP_plot_text, &v) && value_hand_over(w, v, &fn) == WEFT_OK &&
               weft_int(w, width, &args[1]) == WEFT_OK && weft_int(w, height, &args[2]) == WEFT_OK &&
               weft_bool(w, terminal && term && strcmp(term, "dumb") == 0, &args[3]) == WEFT_OK &&
               weft_call(w, fn, args, COUNT_OF(args), &text) == WEFT_OK && text->value.kind == V_TEXT;
  if (drawn) (void)text_hold(w, text->value.text->data, text->value.text->len);
  else if (w->vm->error.raised) vm_error_clear(w->vm);
  weft_release(w, fn);
  weft_release(w, text);
  for (u32 i = 1; i < COUNT_OF(args); i++) weft_release(w, args[i]);
  return drawn;
}

const char *weft_display(WeftVM *w, WeftValue *value) {
  if (!usable(w) || !value || !value_ok(w, value) || value->value.kind == V_NIL) return "";
  if (is_drawing(w->vm, value->value) && draw(w, value)) return buf_text(&w->text);
  const Text *report = tracer_report_text(w->vm, value->value);
  if (report) (void)text_hold(w, report->data, report->len);
  else (void)weft_show(w, value);
  if (w->text.len && w->text.data[w->text.len - 1] != '\n') buf_putc(&w->text, '\n');
  return w->text.failed ? "" : buf_text(&w->text);
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

/* `?name`, `name?` and `help name` ask what a name is: where it stands, and its length; NULL: that is not asked. */
static const char *name_asked(const char *line, size_t *length) {
  const char *s = line + strspn(line, " \t");
  size_t asked = strspn(s, "?");
  s += asked;
  if (!asked && strncmp(s, "help", 4) == 0 && (s[4] == ' ' || s[4] == '\t')) {
    asked = 1;
    s += 4;
  }
  s += strspn(s, " \t");
  size_t n = name_length(s), blanks = strspn(s + n, " \t"), behind = strspn(s + n + blanks, "?");
  if (!n || !(asked || behind) || !is_blank(s + n + blanks + behind) || (*s >= '0' && *s <= '9')) return NULL;
  *length = n;
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
  if (!usable(w) || !text) return WEFT_INPUT_WHOLE;
  ON_STACK_OF(w);
  bool command = text[strspn(text, " \t")] == ':' || name_asked(text, &length) || plain_command(w, text);
  return command ? WEFT_INPUT_COMMAND : parse(w->vm, text);
}

/* ---- commands ------------------------------------------------------------------------------------------- */

static const char help_text[] =
    "  :help                 this text; help(f) or ?f tells what a function does,\n"
    "                        help() lists the built-in ones\n"
    "  :vars                 the variables declared here\n"
    "  :load FILE            run a file here\n"
    "  :time CODE            run CODE and say how long it took\n"
    "  :graph f  :guards f   the graphs compiled for f, and what they rely on\n"
    "  :breaks f             where capturing f broke, and what its guards missed\n"
    "  :why                  the last break or recompile, with its reason\n"
    "  :stats  :stats f      counters of the VM, or of a function\n"
    "  :loops f  :mir f  :asm f  :ptx f\n"
    "                        the kernels of f, as loop IR, MIR, vector code and PTX\n"
    "  :quit                 leave\n";

const Command prompt_commands[] = {
    {"help", ARG_NONE, false}, {"vars", ARG_NONE, false}, {"load", ARG_FILE, true}, {"graph", ARG_FUNCTION, true},
    {"guards", ARG_FUNCTION, true}, {"breaks", ARG_FUNCTION, true}, {"why", ARG_FUNCTION, false},
    {"stats", ARG_FUNCTION, false}, {"loops", ARG_FUNCTION, true}, {"mir", ARG_FUNCTION, true},
    {"asm", ARG_FUNCTION, true}, {"ptx", ARG_FUNCTION, true}, {"time", ARG_CODE, true}, {"quit", ARG_NONE, false},
    {NULL, ARG_NONE, false},
};

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

static WeftCommandEnd tell_name(WeftVM *w, const char *name, size_t n) {
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
  if (strcmp(word, "help") == 0) return (void)show(w, help_text), WEFT_COMMAND_HELP;
  if (strcmp(word, "quit") == 0) return WEFT_COMMAND_QUIT;
  if (strcmp(word, "vars") == 0) return show_variables(w);
  if (strcmp(word, "load") == 0) return load_file(w, rest, strlen(rest));
  if (strcmp(word, "time") == 0) return run_timed(w, rest);
  if (strcmp(word, "stats") == 0)
    return rest ? run_call(w, "trace.stats(", rest, strlen(rest), ")", "<:stats>") : show_counters(w);
  return show_dump(w, strcmp(word, "breaks") == 0 ? "why" : word, rest);
}

static WeftCommandEnd command(WeftVM *w, const char *line) {
  static const char *const wanted[] = {"", "the name of a function", "something to run", "the name of a file"};
  const char *blanks = " \t\r\n", *word = line + strspn(line, blanks), *rest = word + strcspn(word, blanks);
  size_t n = (size_t)(rest - word);
  const Command *c = prompt_commands;
  rest += strspn(rest, blanks);
  if (n == 1 && *word == 'q') word = "quit", n = 4;
  if (!n) word = "help", n = 4;
  while (c->name && (strlen(c->name) != n || strncmp(c->name, word, n) != 0)) c++;
  if (!c->name) {
    buf_printf(&w->text, ":%.*s: no such command; :help lists them\n", (int)n, word);
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
  if (text) *text = "";
  if (!usable(w) || !line) return WEFT_COMMAND_UNKNOWN;
  const char *begin = line + strspn(line, " \t"), *plain = plain_command(w, line), *name = name_asked(line, &length);
  if (*begin != ':' && !plain && !name) return WEFT_COMMAND_UNKNOWN;
  w->text.len = 0;
  w->text.failed = false;
  WeftCommandEnd end = plain ? command(w, plain) : name ? tell_name(w, name, length) : command(w, begin + 1);
  if (text && end != WEFT_COMMAND_FAILED && w->text.len) *text = buf_text(&w->text);
  return end;
}

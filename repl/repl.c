/* repl.c — read an input, run it, show its value; lines that begin with `:` are commands (see repl.h,
 * docs/prompt.md). */
#include "repl/repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "parser/parser.h"
#include "repl/complete.h"
#include "repl/history.h"
#include "repl/line.h"
#include "repl/output.h"
#include "tracer/tracer.h"

/* ---- showing ------------------------------------------------------------------------------------------- */

static void show_error(WeftVM *vm) {
  if (interrupt_pending()) out_drop();
  out_fresh_line();
  interrupt_forget(); /* the next one ends what is shown */
  out_puts(weft_error_text(vm));
}

/* nil is nothing to show; of a report by trace.explain its text is shown. */
static void show_value(WeftVM *vm, WeftValue *v) {
  if (!v || strcmp(weft_type(vm, v), "nil") == 0) return;
  const Text *report = tracer_report_text(weft_vm_of(vm), weft_value_of(v));
  out_fresh_line();
  if (report) {
    out_put(report->data, report->len);
  } else {
    out_puts(weft_show(vm, v));
    out_puts("\n");
  }
  out_fresh_line();
}

/* ---- what an input is ---------------------------------------------------------------------------------- */

typedef enum InputKind { INPUT_WHOLE, INPUT_DECLARES /* ends in a declaration of a function */,
                         INPUT_UNFINISHED } InputKind;

static InputKind input_kind(const char *text) {
  InputKind kind = INPUT_WHOLE;
  Names names = {0};
  Sources sources = {0};
  Arena arena;
  Ast ast;
  Diag diag = {0};
  const ParseOptions options = {.repl = true};
  arena_init(&arena, allocator_system());
  u32 file = 0;
  bool ready = names_init(&names, allocator_system()) == WEFT_OK &&
               sources_init(&sources, allocator_system()) == WEFT_OK;
  if (ready) file = sources_add(&sources, "", text, strlen(text));
  WeftStatus status = file ? parser_parse(&ast, &arena, &names, &sources, file, &diag, &options) : WEFT_ERROR;
  if (status == WEFT_INCOMPLETE) kind = INPUT_UNFINISHED;
  if (status == WEFT_OK) {
    const AstNode *root = ast_node(&ast, ast.root);
    const AstNode *last = root->count ? ast_node(&ast, ast_kid(&ast, root, root->count - 1)) : NULL;
    if (last && last->kind == AST_FN && last->ref) kind = INPUT_DECLARES;
  }
  arena_free(&arena);
  if (sources.alloc) sources_free(&sources);
  if (names.alloc) names_free(&names);
  return kind;
}

/* Does the next line, which waits already, belong to this text? */
static bool goes_on(const char *text) {
  const char *word = line_next_word();
  char *both = *word ? malloc(strlen(text) + strlen(word) + 1) : NULL;
  bool more = both && input_kind(strcat(strcpy(both, text), word)) == INPUT_UNFINISHED;
  free(both);
  return more;
}

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         (unsigned char)c >= 0x80;
}

static size_t name_length(const char *s) {
  size_t n = 0;
  while (is_name_char(s[n])) n++;
  return n;
}

static bool is_blank(const char *s) { return !s[strspn(s, " \t\n")]; }

/* Is the line this word alone, or a call of it without arguments, and no variable has the name? */
static bool is_word(WeftVM *vm, const char *line, const char *word, bool called) {
  const char *s = line + strspn(line, " \t");
  size_t n = name_length(s);
  if (n != strlen(word) || strncmp(s, word, n) != 0) return false;
  if (!is_blank(s + n) && !(called && strncmp(s + n, "()", 2) == 0 && is_blank(s + n + 2))) return false;
  const Vm *inner = weft_vm_of(vm);
  const struct Module *m = weft_main_of(vm);
  u32 slot;
  Name name = name_find(&inner->names, word, n);
  return !(name && scope_find(&m->scope, name, &slot) && (m->scope.flags.data[slot] & MODVAR_DECLARED));
}

/* `?name`, `name?` and `help name` ask what a name is: the call that tells, to be freed, or NULL. */
static char *help_asked(const char *line) {
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
  const char *quote = "";
  for (const char *const *w = parser_reserved_words(); *w; w++)
    if (strlen(*w) == n && strncmp(*w, s, n) == 0) quote = "\"";
  char *call = malloc(n + 10);
  if (call) snprintf(call, n + 10, "help(%s%.*s%s)", quote, (int)n, s, quote);
  return call;
}

/* What stands for a command without its colon; NULL: nothing does. */
static const char *plain_command(WeftVM *vm, const char *line) {
  const char *s = line + strspn(line, " \t");
  if (is_word(vm, line, "quit", true) || is_word(vm, line, "exit", false)) return "quit";
  return is_word(vm, line, "help", false) || (*s && is_blank(s + strspn(s, "?")) && *s == '?') ? "help" : NULL;
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
    "  :quit                 leave; so does Ctrl-D\n"
    "  Keys: Tab completes, Ctrl-C drops the input or stops what runs, Ctrl-D drops\n"
    "  unfinished input, Up and Ctrl-R bring back what was entered (docs/prompt.md).\n";

const Command commands[] = {
    {"help", ARG_NONE, false}, {"vars", ARG_NONE, false}, {"load", ARG_FILE, true}, {"graph", ARG_FUNCTION, true},
    {"guards", ARG_FUNCTION, true},
    {"breaks", ARG_FUNCTION, true}, {"why", ARG_FUNCTION, false}, {"stats", ARG_FUNCTION, false},
    {"loops", ARG_FUNCTION, true}, {"mir", ARG_FUNCTION, true},
    {"asm", ARG_FUNCTION, true}, {"ptx", ARG_FUNCTION, true}, {"time", ARG_CODE, true}, {"quit", ARG_NONE, false},
    {NULL, ARG_NONE, false},
};

static void show_dump(WeftVM *vm, const char *what, const char *name) {
  WeftValue *f = NULL;
  if (name && weft_eval(vm, name, "<command>", &f) != WEFT_OK) { /* a built-in, a member of a record or module, too */
    show_error(vm);
    return;
  }
  const char *text = weft_dump(vm, f, what);
  out_puts(text ? text : "nothing to show\n");
  weft_release(vm, f);
}

static void run_and_show(WeftVM *vm, const char *code, const char *name) {
  WeftValue *v = NULL;
  if (weft_eval(vm, code, name, &v) == WEFT_OK) show_value(vm, v);
  else show_error(vm);
  weft_release(vm, v);
}

static void show_stats(WeftVM *vm, const char *name) {
  char *code = malloc(strlen(name) + 16);
  if (code) sprintf(code, "trace.stats(%s)", name);
  if (code) run_and_show(vm, code, "<:stats>");
  free(code);
}

/* Counters that are not 0, one a line. */
static void show_all_stats(WeftVM *vm) {
  double value;
  const char *name;
  for (unsigned i = 0; (name = weft_stat_at(vm, i, &value)); i++)
    if (value != 0) out_printf("  %-20s %.0f\n", name, value);
}

static void run_timed(WeftVM *vm, const char *code) {
  WeftValue *v = NULL;
  f64 begin = vm_clock();
  WeftStatus status = weft_eval_line(vm, code, "<:time>", &v);
  f64 spent = vm_clock() - begin;
  if (status == WEFT_INCOMPLETE) status = weft_eval(vm, code, "<:time>", &v); /* says what is missing */
  if (status == WEFT_OK) {
    show_value(vm, v);
    out_fresh_line();
    out_printf("%.6f s\n", spent);
  } else {
    show_error(vm);
  }
  weft_release(vm, v);
}

static void load_file(WeftVM *vm, char *path) {
  size_t n = strlen(path);
  if (n >= 2 && path[0] == '"' && path[n - 1] == '"') {
    path[n - 1] = 0;
    path++;
  }
  WeftValue *v = NULL;
  if (weft_load_file(vm, path, &v) != WEFT_OK) show_error(vm);
  weft_release(vm, v);
}

static void show_variables(WeftVM *vm) {
  const Vm *inner = weft_vm_of(vm);
  const struct Module *m = weft_main_of(vm);
  u32 shown = 0;
  for (u32 i = 0; i < m->scope.slots.count && i < m->slot_cap; i++) {
    Value v = m->slots[i].value;
    if (!(m->scope.flags.data[i] & MODVAR_DECLARED) || v.kind == V_HOLE) continue;
    out_printf("  %-16s %s", name_text(&inner->names, m->scope.slots.data[i]), value_type_name(v));
    if (v.kind == V_NUM) out_printf(" %s", dtype_name(v.dtype));
    if (v.kind == V_ARRAY) {
      out_printf(" %s (", dtype_name(array_dtype(v.array)));
      for (u32 d = 0; d < array_rank(v.array); d++)
        out_printf(d ? ", %lld" : "%lld", (long long)array_dims(v.array)[d]);
      out_puts(array_rank(v.array) == 1 ? ",)" : ")");
    }
    if (v.kind == V_LIST) out_printf(" of %u", v.list->count);
    if (v.kind == V_RECORD) out_printf(" of %u", v.record->shape->count);
    out_puts("\n");
    shown++;
  }
  if (!shown) out_puts("  nothing is declared yet\n");
}

/* False: leave. */
static bool command(WeftVM *vm, char *line) {
  char *word = strtok(line + 1, " \t\n"), *rest = strtok(NULL, "");
  if (rest) rest += strspn(rest, " \t\n");
  for (size_t n = rest ? strlen(rest) : 0; n && strchr(" \t\n", rest[n - 1]);) rest[--n] = 0;
  if (rest && !*rest) rest = NULL;
  if (!word) word = "help";
  if (strcmp(word, "q") == 0) word = "quit";
  const Command *c = commands;
  while (c->name && strcmp(c->name, word) != 0) c++;
  static const char *const wanted[] = {"", "the name of a function", "something to run", "the name of a file"};
  if (!c->name) out_printf(":%s: no such command; :help lists them\n", word);
  else if (c->needed && !rest) out_printf(":%s needs %s\n", word, wanted[c->arg]);
  else if (strcmp(word, "help") == 0) out_puts(help_text);
  else if (strcmp(word, "quit") == 0) return false;
  else if (strcmp(word, "vars") == 0) show_variables(vm);
  else if (strcmp(word, "load") == 0) load_file(vm, rest);
  else if (strcmp(word, "time") == 0) run_timed(vm, rest);
  else if (strcmp(word, "stats") == 0 && rest) show_stats(vm, rest);
  else if (strcmp(word, "stats") == 0) show_all_stats(vm);
  else if (strcmp(word, "breaks") == 0 || (strcmp(word, "why") == 0 && rest)) show_dump(vm, "why", rest);
  else if (strcmp(word, "why") == 0) out_puts(weft_dump(vm, NULL, "why"));
  else show_dump(vm, word, rest);
  return weft_exit_code(vm) < 0;
}

/* ---- the loop ------------------------------------------------------------------------------------------- */

typedef struct Session {
  WeftVM *vm;
  char *text; /* lines of an input that is not finished */
  int number; /* of inputs, for the names in messages */
} Session;

/* Adds a line; false: there is no memory. */
static bool join_line(Session *s, const char *line) {
  size_t n = s->text ? strlen(s->text) : 0, m = strlen(line);
  char *all = realloc(s->text, n + m + 2);
  if (!all) return false;
  memcpy(all + n, line, m);
  all[n + m] = '\n';
  all[n + m + 1] = 0;
  s->text = all;
  return true;
}

static void forget_input(Session *s) {
  free(s->text);
  s->text = NULL;
}

static void run_input(Session *s, InputKind kind) {
  char name[32];
  WeftValue *v = NULL;
  if (!s->text[strspn(s->text, " \t\r\n")]) return;
  snprintf(name, sizeof name, "<repl:%d>", ++s->number);
  WeftStatus status = weft_eval_line(s->vm, s->text, name, &v);
  if (weft_exit_code(s->vm) < 0) {
    if (status != WEFT_OK) show_error(s->vm);
    else if (kind != INPUT_DECLARES) show_value(s->vm, v);
  }
  weft_release(s->vm, v);
}

/* One line: false, leave. */
static bool take_line(Session *s, char *line) {
  const char *begin = line + strspn(line, " \t");
  const char *plain = s->text ? NULL : plain_command(s->vm, line);
  if (plain || (!s->text && *begin == ':')) {
    char word[16] = ":";
    prompt_history_add(line);
    return command(s->vm, plain ? strncat(word, plain, sizeof word - 2) : line + (begin - line));
  }
  char *asked = s->text ? NULL : help_asked(line);
  bool joined = join_line(s, line);
  InputKind kind = joined && !asked ? input_kind(s->text) : INPUT_WHOLE;
  if (!joined) {
    out_puts("weft: out of memory\n");
  } else if (kind == INPUT_UNFINISHED || (!asked && goes_on(s->text))) {
    return true;
  } else {
    prompt_history_add(s->text);
    if (asked) run_and_show(s->vm, asked, "<help>");
    else run_input(s, kind);
  }
  free(asked);
  forget_input(s);
  return weft_exit_code(s->vm) < 0;
}

int repl_run(WeftVM *vm) {
  Session s = {.vm = vm};
  bool terminal = isatty(STDIN_FILENO);
  line_begin();
  weft_vm_of(vm)->typed = line_typed;
  complete_in(vm);
  if (terminal) prompt_history_load();
  out_printf("weft %s   :help for help, Ctrl-D to leave\n", weft_version());
  for (bool go_on = true; go_on;) {
    char *line;
    interrupt_forget();
    switch (line_read(s.text ? "... " : "> ", &line)) {
    case LINE_DROPPED: forget_input(&s); break;
    case LINE_WHOLE:
      go_on = take_line(&s, line);
      if (interrupt_pending()) out_drop();
      break;
    case LINE_OVER:
      out_puts("\n");
      if (!s.text || !terminal) go_on = false;
      if (s.text) out_puts("the unfinished input is dropped\n");
      forget_input(&s);
    }
    free(line);
    if (out_error()) go_on = false;
  }
  forget_input(&s);
  return weft_exit_code(vm) < 0 ? 0 : weft_exit_code(vm);
}

void repl_explain(WeftVM *vm) {
  static const char *const shown[] = {"compiles", "kernels", "natives", "lifted_loops", "cold_exits", "breaks",
                                      "recompiles", "continuations", "exits", "demotions"};
  out_flush();
  fputs("what was compiled:\n", stderr);
  for (unsigned i = 0;; i++) {
    double value;
    const char *name = weft_stat_at(vm, i, &value);
    if (!name) break;
    for (u32 k = 0; k < COUNT_OF(shown); k++)
      if (strcmp(shown[k], name) == 0) fprintf(stderr, "  %-14s %.0f\n", name, value);
  }
  tracer_report(weft_vm_of(vm));
}

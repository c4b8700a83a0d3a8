/* complete.c — completion at the prompt (see complete.h): names, what stands behind a point, arguments by name,
 * commands, and files inside quotes. Nothing of the line is run: a name is followed through records and modules
 * only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "api/api.h"
#include "parser/parser.h"
#include "repl/complete.h"

static WeftVM *completing;

/* ---- what is offered -------------------------------------------------------------------------- */

static struct {
  char **names;
  size_t count, cap;
  const char *prefix;
} offers;

static void offer(const char *name, size_t len, const char *behind) {
  size_t n = strlen(offers.prefix), more = strlen(behind);
  if (len < n || strncmp(name, offers.prefix, n) != 0) return;
  if (offers.count == offers.cap) {
    size_t cap = offers.cap ? 2 * offers.cap : 64;
    char **names = realloc(offers.names, cap * sizeof *names);
    if (!names) return;
    offers.names = names;
    offers.cap = cap;
  }
  char *copy = malloc(len + more + 1);
  if (!copy) return;
  memcpy(copy, name, len);
  memcpy(copy + len, behind, more + 1);
  offers.names[offers.count++] = copy;
}

static void offer_name(const char *name) { offer(name, strlen(name), ""); }

static char *next_offer(const char *prefix, int again) {
  static size_t at;
  (void)prefix;
  if (!again) at = 0;
  return at < offers.count ? offers.names[at++] : NULL; /* readline frees it */
}

static char **matches(const char *text) {
  char **found = offers.count ? rl_completion_matches(text, next_offer) : NULL;
  offers.count = 0;
  return found;
}

static bool is_private(const char *name) { return name[0] == '_'; }

/* Variables of a module; `open`: those that others see. */
static void offer_variables(const Vm *vm, const struct Module *m, bool open, bool functions) {
  for (u32 i = 0; i < m->scope.slots.count; i++) {
    const char *name = name_text(&vm->names, m->scope.slots.data[i]);
    bool there = (m->scope.flags.data[i] & MODVAR_DECLARED) && i < m->slot_cap && m->slots[i].value.kind != V_HOLE;
    if (there && !(open && is_private(name)) && (!functions || m->slots[i].value.kind == V_FN)) offer_name(name);
  }
}

static void offer_builtins(bool functions) {
  for (u32 i = 0; i < builtin_count(); i++) {
    Builtin b = builtin_at(i);
    if (b.kind == BUILTIN_OP || (b.kind != BUILTIN_NONE && !functions)) offer_name(b.name);
  }
}

/* ---- what a line says ------------------------------------------------------------------------- */

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (unsigned char)c >= 0x80;
}

/* Names with points between them that end at s[end]: where they begin; `end` when there are none, or they do not begin
 * with a name. */
static int chain_start(const char *s, int end) {
  int at = end;
  while (at > 0 && (is_name_char(s[at - 1]) || s[at - 1] == '.')) at--;
  while (at < end && s[at] == '.') at++;
  if (at < end && s[at] >= '0' && s[at] <= '9') return end;
  /* `f(x).name`, whose value is not known */
  if (at >= 1 && s[at - 1] == '.' && !(at >= 2 && s[at - 2] == '.')) return end;
  return at;
}

/* What names with points between them stand for. */
typedef struct Meaning {
  enum { UNKNOWN, VALUE, MODULE_OF_OPS, OP } kind;
  Value value;        /* borrowed */
  const char *module; /* MODULE_OF_OPS */
  u32 op;
  bool method; /* a function that is called with what stands in front of the point */
} Meaning;

static Meaning of_value(Value v) {
  if (v.kind == V_FN && v.fn->kind == FN_BUILTIN) return (Meaning){.kind = OP, .op = v.fn->op, .value = v};
  if (v.kind == V_FN && v.fn->kind == FN_CLOSURE && v.fn->code->proto->op)
    return (Meaning){.kind = OP, .op = v.fn->code->proto->op, .value = v};
  if (v.kind == V_MODULE && !*v.module->path && v.module != weft_main_of(completing))
    return (Meaning){.kind = MODULE_OF_OPS, .module = name_text(&weft_vm_of(completing)->names, v.module->name),
                     .value = v};
  return (Meaning){.kind = VALUE, .value = v};
}

static Meaning global(const char *s, size_t len) {
  Vm *vm = weft_vm_of(completing);
  Name name = name_find(&vm->names, s, len);
  Value *v = name ? module_var(vm, weft_main_of(completing), name) : NULL;
  if (v) return of_value(*v);
  Builtin b = builtin_find(s, len);
  if (b.kind == BUILTIN_OP) return (Meaning){.kind = OP, .op = b.id};
  if (b.kind == BUILTIN_MODULE) return (Meaning){.kind = MODULE_OF_OPS, .module = b.name};
  return (Meaning){0};
}

static Meaning member(Meaning of, const char *s, size_t len) {
  Vm *vm = weft_vm_of(completing);
  Name name = name_find(&vm->names, s, len);
  Value *v = NULL;
  if (of.kind == MODULE_OF_OPS) {
    char full[128];
    int n = snprintf(full, sizeof full, "%s.%.*s", of.module, (int)len, s);
    OpId op = n > 0 && (size_t)n < sizeof full ? op_by_name(full, (size_t)n) : OP_none;
    return op ? (Meaning){.kind = OP, .op = op} : (Meaning){0};
  }
  if (of.kind == VALUE && name && of.value.kind == V_RECORD) v = record_find(of.value.record, name);
  if (of.kind == VALUE && name && of.value.kind == V_MODULE) v = module_var(vm, of.value.module, name);
  if (v) return of_value(*v);
  Meaning m = global(s, len);
  m.method = true;
  return m;
}

static Meaning meaning(const char *s, int from, int to) {
  int end = from;
  while (end < to && s[end] != '.') end++;
  Meaning m = global(s + from, (size_t)(end - from));
  while (end < to) {
    int begin = end + 1;
    for (end = begin; end < to && s[end] != '.';) end++;
    m = member(m, s + begin, (size_t)(end - begin));
  }
  return m;
}

/* The bracket that is open at `at`: its place, -1: none. Texts and comments are passed over. */
static int open_bracket(const char *s, int at) {
  int depth = 0, found = -1;
  int *open = malloc(sizeof *open * (size_t)(at + 1));
  for (int i = 0; open && i < at; i++) {
    if (s[i] == '"') {
      for (i++; i < at && s[i] != '"'; i++) i += s[i] == '\\';
    } else if (s[i] == '#') {
      while (i < at && s[i] != '\n') i++;
    } else if (s[i] == '(' || s[i] == '[' || s[i] == '{') {
      open[depth++] = i;
    } else if ((s[i] == ')' || s[i] == ']' || s[i] == '}') && depth) {
      depth--;
    }
  }
  if (open && depth) found = open[depth - 1];
  free(open);
  return found;
}

/* ---- the kinds of places ---------------------------------------------------------------------- */

static void offer_members(const char *s, int point) {
  static const char *const properties[] = {"shape", "dtype", "ndim", "size", "T", "device"};
  const Vm *vm = weft_vm_of(completing);
  int from = chain_start(s, point);
  Meaning m = from < point ? meaning(s, from, point) : (Meaning){0};
  if (m.kind == MODULE_OF_OPS) {
    size_t len = strlen(m.module);
    for (u32 op = 1; op < OP_COUNT; op++) {
      const char *name = op_name(op);
      if (strncmp(name, m.module, len) == 0 && name[len] == '.') offer_name(name + len + 1);
    }
    return;
  }
  if (m.kind == VALUE && m.value.kind == V_MODULE) {
    offer_variables(vm, m.value.module, true, false);
    return;
  }
  if (m.kind == VALUE && m.value.kind == V_RECORD) {
    const Shape *shape = m.value.record->shape;
    for (u32 i = 0; i < shape->count; i++) {
      const char *key = name_text(&vm->names, shape->keys[i]);
      bool plain = *key && !(*key >= '0' && *key <= '9');
      for (const char *c = key; *c; c++) plain &= is_name_char(*c);
      if (plain) offer_name(key);
    }
    if (offers.count) return;
  }
  if (m.kind == VALUE && m.value.kind == V_REF) offer_name("value");
  bool array = m.kind == UNKNOWN || (m.kind == VALUE && (m.value.kind == V_ARRAY || value_is_num(m.value)));
  for (u32 i = 0; array && i < COUNT_OF(properties); i++) offer_name(properties[i]);
  offer_variables(vm, weft_main_of(completing), false, true);
  offer_builtins(true);
}

/* Parameters of the function whose call this argument begins in. */
static bool offer_parameters(const char *s, int start) {
  int before = start;
  while (before > 0 && strchr(" \t\n", s[before - 1])) before--;
  if (!before || (s[before - 1] != '(' && s[before - 1] != ',')) return false;
  int bracket = open_bracket(s, start);
  if (bracket < 0 || s[bracket] != '(') return false;
  int from = chain_start(s, bracket);
  const Vm *vm = weft_vm_of(completing);
  Meaning m = from < bracket ? meaning(s, from, bracket) : (Meaning){0};
  if (m.kind == OP) {
    const OpInfo *info = op_info(m.op);
    for (u32 i = m.method; i < info->nparams; i++)
      if (!info->params[i].rest) offer(info->params[i].name, info->params[i].len, "=");
  } else if (m.kind == VALUE && m.value.kind == V_FN && m.value.fn->kind == FN_CLOSURE) {
    const Proto *p = m.value.fn->code->proto;
    for (u32 i = m.method; i < p->nparams; i++)
      if ((i32)i != p->rest_index && p->params[i].name)
        offer(name_text(&vm->names, p->params[i].name), name_len(&vm->names, p->params[i].name), "=");
  }
  return offers.count > 0;
}

/* The command that the line begins with; NULL: it begins with none that is whole. *word: its name without the colon. */
static const Command *command_of(const char *s, int *word, int *end) {
  *word = (int)strspn(s, " \t");
  *end = *word;
  if (s[*word] != ':') return NULL;
  ++*word;
  for (*end = *word; is_name_char(s[*end]);) ++*end;
  for (const Command *c = commands; c->name; c++)
    if (strlen(c->name) == (size_t)(*end - *word) && strncmp(c->name, s + *word, (size_t)(*end - *word)) == 0) return c;
  return NULL;
}

static char **files(const char *text) {
  rl_filename_completion_desired = 1;
  return rl_completion_matches(text, rl_filename_completion_function);
}

static char **complete(const char *text, int start, int end) {
  (void)end;
  const char *s = rl_line_buffer;
  int word, behind;
  rl_attempted_completion_over = 1;
  rl_completion_append_character = '\0';
  offers.prefix = text;
  offers.count = 0;
  const Command *c = command_of(s, &word, &behind);
  if (word && s[word - 1] == ':' && start == word) {
    rl_completion_append_character = ' ';
    for (const Command *any = commands; any->name; any++) offer_name(any->name);
    return matches(text);
  }
  if (c && c->arg == ARG_FILE) return files(text);
  if (rl_completion_quote_character) return files(text);
  if (c && c->arg == ARG_FUNCTION) {
    offer_variables(weft_vm_of(completing), weft_main_of(completing), false, true);
    return matches(text);
  }
  if (c && c->arg == ARG_NONE) return NULL;
  if (start > 0 && s[start - 1] == '.' && !(start > 1 && s[start - 2] == '.')) {
    offer_members(s, start - 1);
    return matches(text);
  }
  bool named = offer_parameters(s, start);
  if (named && !*text) return matches(text);
  for (const char *const *w = parser_reserved_words(); *w; w++) offer_name(*w);
  offer_variables(weft_vm_of(completing), weft_main_of(completing), false, false);
  offer_builtins(false);
  return matches(text);
}

/* A name ends at everything that cannot stand in one; the name of a file, at blanks. */
static char *breaks(void) {
  static char for_names[] = " \t\n\"'`!#$%&()*+,-./:;<=>?@[\\]^{|}~", for_files[] = " \t\n";
  int word, end;
  const Command *c = command_of(rl_line_buffer, &word, &end);
  return c && c->arg == ARG_FILE && rl_point > end ? for_files : for_names;
}

void complete_begin(void) {
  rl_attempted_completion_function = complete;
  rl_completion_word_break_hook = breaks;
  rl_completer_quote_characters = "\"";
  rl_variable_bind("expand-tilde", "on"); /* programs do not expand it */
}

void complete_in(WeftVM *vm) { completing = vm; }

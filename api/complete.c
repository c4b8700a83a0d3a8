/* complete.c — how a line of a prompt may go on: names, what stands behind a point, arguments by name, commands (see
 * weft.h). Nothing of the line is run: a name is followed through records and modules only. */
#include "api/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parser/parser.h"

typedef struct Completer {
  WeftVM *w;
  const char *prefix; /* what is there of the word */
  size_t length;
} Completer;

/* ---- what is offered -------------------------------------------------------------------------- */

/* A word, and a note on it behind its end. */
static void offer(Completer *c, const char *name, size_t len, const char *behind, const char *note) {
  Words *words = &c->w->words;
  if (len < c->length || memcmp(name, c->prefix, c->length) != 0) return;
  if (!vec_push(&c->w->vm->alloc, &words->starts, (u32)words->text.len)) words->text.failed = true;
  buf_put(&words->text, name, len);
  buf_put(&words->text, behind, strlen(behind) + 1);
  buf_put(&words->text, note, strlen(note) + 1);
}

enum { NOTE_MOST = 300 };
typedef struct Note {
  char text[NOTE_MOST];
} Note;

/* The parameters of a function, and what it does without its example. */
static void note_of_op(u32 op, Note *out) {
  const OpInfo *info = op_info(op);
  const char *end = strchr(info->doc, ';');
  snprintf(out->text, sizeof out->text, "%s  %.*s", info->signature,
           end ? (int)(end - info->doc) : (int)strlen(info->doc), info->doc);
}

/* A function of the program: its parameters, and the first line of its `##` lines. */
static void note_of_closure(const Vm *vm, const Proto *p, Note *out) {
  size_t n = (size_t)snprintf(out->text, sizeof out->text, "(");
  for (u32 i = 0; i < p->nparams && n < sizeof out->text; i++) {
    const char *initial = !p->params[i].has_default ? "" : p->params[i].initial ? p->params[i].initial : "…";
    n += (size_t)snprintf(out->text + n, sizeof out->text - n, "%s%s%s%s%s", i ? ", " : "",
                          (i32)i == p->rest_index ? "..." : "",
                          p->params[i].name ? name_text(&vm->names, p->params[i].name) : "_",
                          p->params[i].has_default ? "=" : "", initial);
  }
  if (n < sizeof out->text)
    snprintf(out->text + n, sizeof out->text - n, ")%s%.*s", p->doc ? "  " : "",
             p->doc ? (int)strcspn(p->doc, "\n") : 0, p->doc ? p->doc : "");
}

static void note_of_value(const Vm *vm, Value v, Note *out) {
  if (v.kind == V_FN && v.fn->kind == FN_BUILTIN) return note_of_op(v.fn->op, out);
  if (v.kind == V_FN && v.fn->kind == FN_CLOSURE) return note_of_closure(vm, v.fn->code->proto, out);
  size_t n = (size_t)snprintf(out->text, sizeof out->text, "%s", value_type_name(v));
  char *to = out->text + n;
  size_t room = sizeof out->text - n;
  if (v.kind == V_NUM) snprintf(to, room, " %s", dtype_name(v.dtype));
  u32 count = v.kind == V_TEXT ? v.text->count : v.kind == V_LIST ? v.list->count :
              v.kind == V_RECORD ? v.record->shape->count : 0;
  const char *of = v.kind == V_TEXT ? "character" : v.kind == V_LIST ? "item" : v.kind == V_RECORD ? "key" : NULL;
  if (of) snprintf(to, room, " of %u %s%s", count, of, count == 1 ? "" : "s");
  if (v.kind != V_ARRAY) return;
  n += (size_t)snprintf(to, room, " %s (", dtype_name(array_dtype(v.array)));
  for (u32 d = 0; d < array_rank(v.array) && n < sizeof out->text; d++)
    n += (size_t)snprintf(out->text + n, sizeof out->text - n, d ? ", %lld" : "%lld",
                          (long long)array_dims(v.array)[d]);
  if (n < sizeof out->text) snprintf(out->text + n, sizeof out->text - n, array_rank(v.array) == 1 ? ",)" : ")");
}

static void offer_value(Completer *c, const char *name, Value v) {
  Note note;
  note_of_value(c->w->vm, v, &note);
  offer(c, name, strlen(name), "", note.text);
}

static void offer_op(Completer *c, const char *name, u32 op) {
  Note note;
  note_of_op(op, &note);
  offer(c, name, strlen(name), "", note.text);
}

static bool is_private(const char *name) { return name[0] == '_'; }

/* Variables of a module; `open`: those that others see. */
static void offer_variables(Completer *c, const struct Module *m, bool open, bool functions) {
  for (u32 i = 0; i < m->scope.slots.count; i++) {
    const char *name = name_text(&c->w->vm->names, m->scope.slots.data[i]);
    if (module_has_variable(m, i) && !(open && is_private(name)) && (!functions || m->slots[i].value.kind == V_FN))
      offer_value(c, name, m->slots[i].value);
  }
}

static void offer_builtins(Completer *c, bool functions) {
  for (u32 i = 0; i < builtin_count(); i++) {
    Builtin b = builtin_at(i);
    if (b.kind == BUILTIN_OP) offer_op(c, b.name, b.id);
    else if (b.kind != BUILTIN_NONE && !functions)
      offer(c, b.name, strlen(b.name), "", b.kind == BUILTIN_MODULE ? "module" : "");
  }
}

/* ---- what a line says ------------------------------------------------------------------------- */

/* Names with points between them that end at s[end]: where they begin; `end` when there are none, or they do not begin
 * with a name. */
static int chain_start(const char *s, int end) {
  int at = end;
  while (at > 0 && (is_name_byte(s[at - 1]) || s[at - 1] == '.')) at--;
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

static Meaning of_value(const Completer *c, Value v) {
  if (v.kind == V_FN && v.fn->kind == FN_BUILTIN) return (Meaning){.kind = OP, .op = v.fn->op, .value = v};
  if (v.kind == V_FN && v.fn->kind == FN_CLOSURE && v.fn->code->proto->op)
    return (Meaning){.kind = OP, .op = v.fn->code->proto->op, .value = v};
  const char *module = v.kind == V_MODULE ? name_text(&c->w->vm->names, v.module->name) : "";
  if (builtin_find(module, strlen(module)).kind == BUILTIN_MODULE && !*v.module->path && v.module != c->w->main)
    return (Meaning){.kind = MODULE_OF_OPS, .module = module, .value = v};
  return (Meaning){.kind = VALUE, .value = v};
}

static Meaning global(const Completer *c, const char *s, size_t len) {
  Vm *vm = c->w->vm;
  Name name = name_find(&vm->names, s, len);
  Value *v = name ? module_var(vm, c->w->main, name) : NULL;
  if (v) return of_value(c, *v);
  Builtin b = builtin_find(s, len);
  if (b.kind == BUILTIN_OP) return (Meaning){.kind = OP, .op = b.id};
  if (b.kind == BUILTIN_MODULE) return (Meaning){.kind = MODULE_OF_OPS, .module = b.name};
  return (Meaning){0};
}

static Meaning member(const Completer *c, Meaning of, const char *s, size_t len) {
  Vm *vm = c->w->vm;
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
  if (v) return of_value(c, *v);
  Meaning m = global(c, s, len);
  m.method = true;
  return m;
}

static Meaning meaning(const Completer *c, const char *s, int from, int to) {
  int end = from;
  while (end < to && s[end] != '.') end++;
  Meaning m = global(c, s + from, (size_t)(end - from));
  while (end < to) {
    int begin = end + 1;
    for (end = begin; end < to && s[end] != '.';) end++;
    m = member(c, m, s + begin, (size_t)(end - begin));
  }
  return m;
}

/* Where the text that is open at `at` begins, behind its quote; IN_COMMENT: it is a comment; -1: none is. *bracket: the
 * bracket that is open there, -1: none. Texts and comments are passed over. */
enum { IN_COMMENT = -2 };
static int open_text(const char *s, int at, int *bracket) {
  int depth[2] = {0, 0}, text = -1;
  *bracket = -1;
  for (u32 pass = 0; pass < 2; pass++) { /* the last bracket that leads to the depth in which the line ends */
    for (int i = 0; i < at; i++) {
      if (s[i] == '"') {
        text = i + 1;
        for (i++; i < at && s[i] != '"'; i++) i += s[i] == '\\';
        if (i < at) text = -1;
      } else if (s[i] == '#') {
        while (i < at && s[i] != '\n') i++;
        if (i >= at) text = IN_COMMENT;
      } else if (s[i] == '(' || s[i] == '[' || s[i] == '{') {
        if (++depth[pass] == depth[0] && pass) *bracket = i;
      } else if ((s[i] == ')' || s[i] == ']' || s[i] == '}') && depth[pass]) {
        depth[pass]--;
      }
    }
  }
  if (!depth[0]) *bracket = -1;
  return text;
}

/* ---- the kinds of places ---------------------------------------------------------------------- */

static void offer_members(Completer *c, const char *s, int point) {
  static const char *const properties[] = {"shape", "dtype", "ndim", "size", "T", "device"};
  const Vm *vm = c->w->vm;
  int from = chain_start(s, point);
  Meaning m = from < point ? meaning(c, s, from, point) : (Meaning){0};
  if (m.kind == MODULE_OF_OPS) {
    size_t len = strlen(m.module);
    for (u32 op = 1; op < OP_COUNT; op++) {
      const char *name = op_name(op);
      if (strncmp(name, m.module, len) == 0 && name[len] == '.') offer_op(c, name + len + 1, op);
    }
    return;
  }
  if (m.kind == VALUE && m.value.kind == V_MODULE) {
    offer_variables(c, m.value.module, true, false);
    return;
  }
  if (m.kind == VALUE && m.value.kind == V_RECORD) {
    const Shape *shape = m.value.record->shape;
    for (u32 i = 0; i < shape->count; i++) {
      const char *key = name_text(&vm->names, shape->keys[i]);
      bool plain = *key && !(*key >= '0' && *key <= '9');
      for (const char *k = key; *k; k++) plain &= is_name_byte(*k);
      if (plain) offer_value(c, key, m.value.record->items[i]);
    }
    if (c->w->words.starts.count) return;
  }
  if (m.kind == VALUE && m.value.kind == V_REF) offer_value(c, "value", m.value.ref->value);
  bool array = m.kind == UNKNOWN || (m.kind == VALUE && (m.value.kind == V_ARRAY || value_is_num(m.value)));
  for (u32 i = 0; array && i < COUNT_OF(properties); i++)
    offer(c, properties[i], strlen(properties[i]), "", "property of arrays");
  offer_variables(c, c->w->main, false, true);
  offer_builtins(c, true);
}

/* Parameters of the function whose call this argument begins in. */
static bool offer_parameters(Completer *c, const char *s, int start) {
  int before = start;
  while (before > 0 && strchr(" \t\n", s[before - 1])) before--;
  if (!before || (s[before - 1] != '(' && s[before - 1] != ',')) return false;
  int bracket;
  if (open_text(s, start, &bracket) >= 0 || bracket < 0 || s[bracket] != '(') return false;
  int from = chain_start(s, bracket);
  const Vm *vm = c->w->vm;
  Meaning m = from < bracket ? meaning(c, s, from, bracket) : (Meaning){0};
  if (m.kind == OP) {
    const OpInfo *info = op_info(m.op);
    for (u32 i = m.method; i < info->nparams; i++)
      if (!info->params[i].rest) offer(c, info->params[i].name, info->params[i].len, "=", "argument");
  } else if (m.kind == VALUE && m.value.kind == V_FN && m.value.fn->kind == FN_CLOSURE) {
    const Proto *p = m.value.fn->code->proto;
    for (u32 i = m.method; i < p->nparams; i++)
      if ((i32)i != p->rest_index && p->params[i].name)
        offer(c, name_text(&vm->names, p->params[i].name), name_len(&vm->names, p->params[i].name), "=",
              "argument");
  }
  return c->w->words.starts.count > 0;
}

/* The command that the line begins with; NULL: it begins with none that is whole. *word: its name without the colon. */
static const Command *command_of(const char *s, int *word, int *end) {
  *word = (int)strspn(s, " \t");
  *end = *word;
  if (s[*word] != ':') return NULL;
  ++*word;
  for (*end = *word; is_name_byte(s[*end]);) ++*end;
  for (const Command *c = prompt_commands; c->name; c++)
    if (strlen(c->name) == (size_t)(*end - *word) && strncmp(c->name, s + *word, (size_t)(*end - *word)) == 0) return c;
  return NULL;
}

static void find_words(Completer *c, const char *s, int at, WeftCompletion *out) {
  int word, behind, bracket, from = at, text = open_text(s, at, &bracket);
  const Command *command = command_of(s, &word, &behind);
  bool file = command && command->arg == ARG_FILE && at > behind;
  while (from > 0 && (file ? !strchr(" \t\n", s[from - 1]) : is_name_byte(s[from - 1]))) from--;
  if (text == IN_COMMENT && !file) {
    out->from = (size_t)at;
    c->prefix = s + at;
    c->length = 0;
    return;
  }
  if (text >= 0) from = text;
  out->from = (size_t)from;
  out->files = file || text >= 0;
  c->prefix = s + from;
  c->length = (size_t)(at - from);
  if (word && s[word - 1] == ':' && from == word) {
    out->blank = true;
    for (const Command *any = prompt_commands; any->name; any++)
      offer(c, any->name, strlen(any->name), "", any->doc);
    return;
  }
  if (out->files || (command && command->arg == ARG_NONE)) return;
  if (command && command->arg == ARG_FUNCTION && (from <= 0 || s[from - 1] != '.'))
    return offer_variables(c, c->w->main, false, true);
  if (from > 0 && s[from - 1] == '.' && !(from > 1 && s[from - 2] == '.')) return offer_members(c, s, from - 1);
  if (offer_parameters(c, s, from) && !c->length) return;
  for (const char *const *w = parser_reserved_words(); *w; w++) offer(c, *w, strlen(*w), "", "reserved word");
  offer_variables(c, c->w->main, false, false);
  offer_builtins(c, false);
}

static int in_order(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void complete(WeftVM *w, const char *line, size_t at, WeftCompletion *out) {
  Words *words = &w->words;
  Completer c = {.w = w};
  words_free(w);
  buf_init(&words->text, &w->vm->alloc);
  find_words(&c, line, (int)at, out);
  u32 n = words->starts.count, kept = 0;
  words->sorted = mem_alloc(&w->vm->alloc, sizeof *words->sorted * (2 * (size_t)n + 1));
  words->room = 2 * n + 1;
  if (!words->sorted || words->text.failed) return words_free(w);
  for (u32 i = 0; i < n; i++) words->sorted[i] = words->text.data + words->starts.data[i];
  qsort(words->sorted, n, sizeof *words->sorted, in_order);
  for (u32 i = 0; i < n; i++)
    if (!kept || strcmp(words->sorted[kept - 1], words->sorted[i]) != 0) words->sorted[kept++] = words->sorted[i];
  for (u32 i = 0; i < kept; i++) words->sorted[n + i] = words->sorted[i] + strlen(words->sorted[i]) + 1;
  out->count = kept;
  out->words = words->sorted;
  out->notes = words->sorted + n;
}

WeftStatus weft_complete(WeftVM *w, const char *line, size_t at, WeftCompletion *out) {
  enum { FIRST = BYTES_TO(WeftCompletion, notes) };
  WeftCompletion found = {.from = at};
  if (!struct_sized(out, FIRST)) return WEFT_MISUSE;
  const bool ok = usable(w) && line;
  if (ok && at <= strlen(line) && at <= INT32_MAX / 2) complete(w, line, at, &found);
  return struct_give(out, &found, sizeof found, FIRST) && ok ? WEFT_OK : WEFT_MISUSE;
}

void words_free(WeftVM *w) {
  Words *words = &w->words;
  if (!words->text.alloc) return; /* there were none */
  buf_free(&words->text);
  vec_free(&w->vm->alloc, &words->starts);
  mem_free(&w->vm->alloc, words->sorted, sizeof *words->sorted * words->room);
  *words = (Words){0};
}

/* regex.c — patterns in text by PCRE2, loaded when one is first used. Positions are code points, as everywhere. */
#include "stdlib/text/regex.h"
#include "stdlib/array/make.h"
#include "stdlib/text/text.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* As pcre2.h has it, whose package need not be there when the library is built. */
#define OPTION_ANCHORED 0x80000000u
#define OPTION_NO_CHECK 0x40000000u /* texts are UTF-8 */
#define OPTION_UTF 0x00080000u
#define OPTION_UCP 0x00020000u /* \w and \d know Unicode */
#define OPTION_NO_BYTES 0x00100000u /* \C, which would cut characters, is refused */
#define OPTION_NOT_EMPTY 0x00000008u /* no match of nothing where it begins */
#define OPTION_INTERPRET 0x00002000u /* without machine code */
#define OPTION_WHOLE 0x00000001u     /* machine code for whole matches */
enum {
  NO_MATCH = -1,
  STACK_TOO_SMALL = -46, /* of machine code */
  TOO_MANY_STEPS = -47,
  NO_MEMORY = -48,
  TOO_DEEP = -53,
  TOO_MUCH_HEAP = -63,
};
enum { INFO_GROUPS = 4, INFO_NAMES = 17, INFO_NAME_BYTES = 18, INFO_NAME_TABLE = 19, INFO_SIZE = 22 };
/* Patterns that have seen so many bytes of text get machine code, which takes PCRE2 some 50 us to make. */
enum { BYTES_FOR_CODE = 1 << 15 };
enum { STEPS_MOST = 5000000, HEAP_MOST = 1 << 16 /* KiB */, CACHED = 8, GROUPS_MOST = 1000 };
enum { PATTERN_MOST = 1 << 20 }; /* bytes; PCRE2 looks at no clock while it compiles them, for 20 ms or so */
/* Bytes of a compiled pattern: of a longer one it takes more than 15 ms to make machine code. */
enum { CODE_MOST = 1 << 15 };
static const size_t unset = ~(size_t)0;

/* Library handles are the one kind of state a process has. */
static struct {
  pthread_once_t once;
  bool there;
  void *(*compile)(const char *, size_t, u32, int *, size_t *, void *);
  void (*code_free)(void *);
  int (*info)(const void *, u32, void *);
  void *(*data_new)(const void *, void *);
  void (*data_free)(void *);
  size_t *(*spans)(void *);
  int (*match)(const void *, const char *, size_t, size_t, u32, void *, void *);
  int (*message)(int, char *, size_t);
  void *(*memory_new)(void *(*)(size_t, void *), void (*)(void *, void *), void *);
  void (*memory_free)(void *);
  void *(*compile_new)(void *);
  void (*compile_free)(void *);
  void *(*limits_new)(void *);
  void (*limits_free)(void *);
  int (*limit_steps)(void *, u32);
  int (*limit_heap)(void *, u32);
  int (*to_code)(void *, u32);
} pcre = {.once = PTHREAD_ONCE_INIT};

static void pcre_load(void) {
  static const struct {
    const char *name;
    void *at;
  } wanted[] = {
      {"pcre2_compile_8", &pcre.compile},
      {"pcre2_code_free_8", &pcre.code_free},
      {"pcre2_pattern_info_8", &pcre.info},
      {"pcre2_match_data_create_from_pattern_8", &pcre.data_new},
      {"pcre2_match_data_free_8", &pcre.data_free},
      {"pcre2_get_ovector_pointer_8", &pcre.spans},
      {"pcre2_match_8", &pcre.match},
      {"pcre2_get_error_message_8", &pcre.message},
      {"pcre2_general_context_create_8", &pcre.memory_new},
      {"pcre2_general_context_free_8", &pcre.memory_free},
      {"pcre2_compile_context_create_8", &pcre.compile_new},
      {"pcre2_compile_context_free_8", &pcre.compile_free},
      {"pcre2_match_context_create_8", &pcre.limits_new},
      {"pcre2_match_context_free_8", &pcre.limits_free},
      {"pcre2_set_match_limit_8", &pcre.limit_steps},
      {"pcre2_set_heap_limit_8", &pcre.limit_heap},
      {"pcre2_jit_compile_8", &pcre.to_code},
  };
  void *handle = dlopen("libpcre2-8.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
  bool all = true;
  for (u32 i = 0; i < COUNT_OF(wanted); i++) {
    void *at = dlsym(handle, wanted[i].name);
    all &= at != NULL;
    memcpy(wanted[i].at, &at, sizeof at);
  }
  pcre.there = all;
}

/* ---- patterns -------------------------------------------------------------------------------- */

typedef struct Pattern {
  Value text; /* that it was compiled from; a hole: none */
  void *code, *data;
  u32 groups, names, name_bytes;
  const char *name_table; /* of names: two bytes of the group's number, then the name */
  size_t bytes;           /* of texts that were looked at, until it has machine code; too many: it gets none */
  Shape *named;           /* of its names; NULL: not made yet, or a name stands twice */
} Pattern;

enum { MATCH_TEXT, MATCH_START, MATCH_STOP, MATCH_GROUPS, MATCH_NAMED, MATCH_FIELDS };


struct RegexState {
  void *memory, *compile, *limits; /* of PCRE2: where its memory comes from */
  Pattern kept[CACHED];
  u32 next; /* which goes when another one comes */
  Shape *match; /* {text, start, stop, groups, named} */
};

/* PCRE2's memory is the VM's; each block tells its size. */
static void *take_memory(size_t size, void *alloc) {
  const size_t n = size + 16;
  char *p = size < SIZE_MAX - 16 ? mem_alloc(alloc, n) : NULL;
  if (!p) return NULL;
  memcpy(p, &n, sizeof n);
  return p + 16;
}

static void give_memory(void *p, void *alloc) {
  size_t n;
  if (!p) return;
  memcpy(&n, (char *)p - 16, sizeof n);
  mem_free(alloc, (char *)p - 16, n);
}

static void pattern_free(Vm *vm, Pattern *p) {
  if (p->data) pcre.data_free(p->data);
  if (p->code) pcre.code_free(p->code);
  if (p->named) shape_drop(vm, p->named);
  value_drop(vm, p->text);
  *p = (Pattern){.text = value_hole()};
}

void regex_remove(Vm *vm) {
  RegexState *s = stdlib_of(vm)->regex;
  if (!s) return;
  for (u32 i = 0; i < CACHED; i++) pattern_free(vm, &s->kept[i]);
  if (s->match) shape_drop(vm, s->match);
  if (s->limits) pcre.limits_free(s->limits);
  if (s->compile) pcre.compile_free(s->compile);
  if (s->memory) pcre.memory_free(s->memory);
  mem_free(&vm->alloc, s, sizeof *s);
  stdlib_of(vm)->regex = NULL;
}

/* The shape of records with these keys, which stay. */
static Shape *shape_of_names(Vm *vm, const char *const *names, u32 count) {
  Name *keys = mem_alloc(&vm->alloc, sizeof *keys * count);
  bool ok = keys != NULL;
  for (u32 i = 0; i < count && ok; i++) ok = (keys[i] = name_cstr(&vm->names, names[i])) != 0;
  Shape *made = ok ? shape_of_keys(vm, keys, count) : NULL;
  if (keys) mem_free(&vm->alloc, keys, sizeof *keys * count);
  if (!made && !vm->error.raised) (void)vm_error_memory(vm);
  return made;
}

static WeftStatus regex_state(Vm *vm, u32 op, RegexState **out) {
  static const char *const fields[MATCH_FIELDS] = {"text", "start", "stop", "groups", "named"};
  RegexState *s = stdlib_of(vm)->regex;
  pthread_once(&pcre.once, pcre_load);
  if (!pcre.there)
    return vm_error(vm, EK_unsupported, "%s: patterns need PCRE2 (libpcre2-8.so.0; Debian: libpcre2-8-0), which is not "
                                        "there", op_name(op));
  if (!s) {
    if (!(s = mem_alloc_zero(&vm->alloc, sizeof *s))) return vm_error_memory(vm);
    for (u32 i = 0; i < CACHED; i++) s->kept[i].text = value_hole();
    stdlib_of(vm)->regex = s;
    s->memory = pcre.memory_new(take_memory, give_memory, &vm->alloc);
    s->compile = s->memory ? pcre.compile_new(s->memory) : NULL;
    s->limits = s->compile ? pcre.limits_new(s->memory) : NULL;
    if (!s->limits) {
      regex_remove(vm);
      return vm_error_memory(vm);
    }
    (void)pcre.limit_steps(s->limits, STEPS_MOST);
    (void)pcre.limit_heap(s->limits, HEAP_MOST);
  }
  if (!s->match && !(s->match = shape_of_names(vm, fields, MATCH_FIELDS))) return WEFT_ERROR;
  *out = s;
  return WEFT_OK;
}

static WeftStatus many_groups(Vm *vm, u32 op) {
  return vm_error(vm, EK_limit, "%s: the pattern has more than %d groups", op_name(op), GROUPS_MOST);
}

/* More named groups than there may be? PCRE2 takes the square of their number to find that out. What looks like one
 * inside of brackets or \\Q…\\E counts as well. */
static bool has_many_names(const Text *t) {
  u32 names = 0;
  for (u32 i = 0; i + 3 < t->len && names <= GROUPS_MOST; i++) {
    const char *s = t->data + i;
    if (s[0] == '\\') i++;
    else if (s[0] == '(' && s[1] == '?')
      names += s[2] == '\'' || (s[2] == 'P' && s[3] == '<') || (s[2] == '<' && s[3] != '=' && s[3] != '!');
  }
  return names > GROUPS_MOST;
}

static WeftStatus pattern_compile(Vm *vm, u32 op, const RegexState *s, Value text, Pattern *p) {
  int code;
  size_t at;
  const Text *t = text.text;
  *p = (Pattern){.text = value_hole()};
  if (has_many_names(t)) return many_groups(vm, op);
  p->code = pcre.compile(t->data, t->len, OPTION_UTF | OPTION_UCP | OPTION_NO_BYTES, &code, &at, s->compile);
  if (!p->code) {
    char why[160] = "";
    if (code == 121) return vm_error_memory(vm);
    (void)pcre.message(code, why, sizeof why);
    return vm_error(vm, EK_value, "%s: pattern \"%.*s\", character %u: %s", op_name(op),
                    (int)(t->len > 60 ? text_offset(t, 20) : t->len), t->data,
                    text_count(t->data, at <= t->len ? at : t->len), why);
  }
  p->data = pcre.data_new(p->code, s->memory);
  size_t size = 0;
  (void)pcre.info(p->code, INFO_SIZE, &size);
  if (size > CODE_MOST) p->bytes = BYTES_FOR_CODE + 1;
  (void)pcre.info(p->code, INFO_GROUPS, &p->groups);
  (void)pcre.info(p->code, INFO_NAMES, &p->names);
  (void)pcre.info(p->code, INFO_NAME_BYTES, &p->name_bytes);
  (void)pcre.info(p->code, INFO_NAME_TABLE, &p->name_table);
  p->text = value_keep(text);
  if (p->data && p->groups <= GROUPS_MOST) return WEFT_OK;
  const bool memory = !p->data;
  pattern_free(vm, p);
  return memory ? vm_error_memory(vm) : many_groups(vm, op);
}

/* The compiled pattern, good until another one is asked for. */
static WeftStatus pattern_of(Vm *vm, u32 op, Value text, Pattern **out) {
  RegexState *s = NULL;
  if (text.kind != V_TEXT) return args_error(vm, op, 1, text, "a text");
  if (text.text->len > PATTERN_MOST)
    return vm_error(vm, EK_limit, "%s: a pattern has at most %d bytes, got %u", op_name(op), PATTERN_MOST,
                    text.text->len);
  TRY(regex_state(vm, op, &s));
  for (u32 i = 0; i < CACHED; i++) {
    const Value k = s->kept[i].text;
    if (k.kind != V_TEXT || (k.text != text.text && (k.text->len != text.text->len ||
                                                     memcmp(k.text->data, text.text->data, k.text->len) != 0)))
      continue;
    *out = &s->kept[i];
    return WEFT_OK;
  }
  Pattern made;
  TRY(pattern_compile(vm, op, s, text, &made));
  pattern_free(vm, &s->kept[s->next]);
  s->kept[s->next] = made;
  *out = &s->kept[s->next];
  s->next = (s->next + 1) % CACHED;
  return WEFT_OK;
}

/* ---- matches --------------------------------------------------------------------------------- */

/* A walk over the matches in a text, in order. */
typedef struct Walk {
  Vm *vm;
  u32 op;
  Pattern *p;
  const Text *t;
  size_t from;       /* where the next match may begin */
  bool emptied;      /* the last match was of nothing, there */
  const size_t *at;  /* pairs of bytes: of the match, of each group */
  size_t seen;       /* up to this byte, */
  u32 seen_points;   /* there are so many code points */
} Walk;

static WeftStatus match_failed(Vm *vm, u32 op, int code) {
  char why[160] = "";
  if (code == NO_MEMORY) return vm_error_memory(vm);
  if (code == TOO_MANY_STEPS || code == TOO_DEEP || code == TOO_MUCH_HEAP)
    return vm_error(vm, EK_limit, "%s: the pattern takes too many steps on this text", op_name(op));
  (void)pcre.message(code, why, sizeof why);
  return vm_error(vm, EK_value, "%s: %s", op_name(op), why);
}

static WeftStatus match_once(Walk *w, u32 options, bool *found) {
  const RegexState *s = stdlib_of(w->vm)->regex;
  TRY(vm_poll(w->vm, 1)); /* STEPS_MOST take a tenth of a second */
  Pattern *p = w->p;
  options |= OPTION_NO_CHECK;
  if (p->bytes <= BYTES_FOR_CODE && (p->bytes += w->t->len - w->from) > BYTES_FOR_CODE)
    (void)pcre.to_code(p->code, OPTION_WHOLE); /* where that cannot be, matches are interpreted */
  int code = pcre.match(p->code, w->t->data, w->t->len, w->from, options, p->data, s->limits);
  if (code == STACK_TOO_SMALL)
    code = pcre.match(p->code, w->t->data, w->t->len, w->from, options | OPTION_INTERPRET, p->data, s->limits);
  *found = code > 0;
  if (code < 0 && code != NO_MATCH) return match_failed(w->vm, w->op, code);
  w->at = pcre.spans(w->p->data);
  if (*found && w->at[0] > w->at[1]) /* \K in a look-ahead */
    return vm_error(w->vm, EK_value, "%s: a match ends before it begins", op_name(w->op));
  return WEFT_OK;
}

/* The next match. Behind one of nothing a longer one is looked for at the same place, then at the next character. */
static WeftStatus next_match(Walk *w, bool *found) {
  *found = false;
  if (w->emptied) {
    TRY(match_once(w, OPTION_NOT_EMPTY | OPTION_ANCHORED, found));
    if (!*found) {
      if (w->from >= w->t->len) return WEFT_OK;
      do w->from++;
      while (w->from < w->t->len && ((u8)w->t->data[w->from] & 0xC0) == 0x80);
    }
  }
  if (!*found) TRY(match_once(w, 0, found));
  if (!*found) return WEFT_OK;
  w->from = w->at[1] > w->from ? w->at[1] : w->from;
  w->emptied = w->at[0] == w->at[1];
  return WEFT_OK;
}

/* Code points before a byte; bytes are asked for in order. */
static WeftStatus point_at(Walk *w, size_t byte, Value *out) {
  u32 points = (u32)byte;
  if (w->t->len != w->t->count) {
    if (byte < w->seen) w->seen = 0, w->seen_points = 0;
    TRY(text_count_long(w->vm, w->t->data + w->seen, byte - w->seen, &w->seen_points));
    w->seen = byte;
    points = w->seen_points;
  }
  *out = value_weak_i64(points);
  return WEFT_OK;
}

static WeftStatus group_text(Walk *w, u32 group, Value *out) {
  *out = value_nil();
  if (w->at[2 * group] == unset) return WEFT_OK;
  const size_t from = w->at[2 * group], to = w->at[2 * group + 1];
  return text_of_program(w->vm, w->t->data + from, to - from, out) ? WEFT_OK : WEFT_ERROR;
}

static const char *name_entry(const Pattern *p, u32 i) { return p->name_table + (size_t)i * p->name_bytes; }

/* Does the name stand in the entry before as well? They are sorted by names; `(?J)` lets groups share one. */
static bool is_named_again(const Pattern *p, u32 i) {
  return i > 0 && strcmp(name_entry(p, i - 1) + 2, name_entry(p, i) + 2) == 0;
}

/* The texts of the pattern's named groups by name; of several groups of a name that of the one that took part. */
static WeftStatus named_groups(Walk *w, Value *out) {
  Vm *vm = w->vm;
  Pattern *p = w->p;
  if (!p->names) return record_new(vm, out) ? WEFT_OK : WEFT_ERROR;
  if (!p->named) {
    const char *names[GROUPS_MOST];
    u32 count = 0;
    for (u32 i = 0; i < p->names; i++)
      if (!is_named_again(p, i)) names[count++] = name_entry(p, i) + 2;
    if (!(p->named = shape_of_names(vm, names, count))) return WEFT_ERROR;
  }
  if (!record_new_shape(vm, p->named, out)) return WEFT_ERROR;
  Value *item = out->record->items;
  for (u32 i = 0; i < p->names; i++) {
    const char *entry = name_entry(p, i);
    item += i > 0 && !is_named_again(p, i);
    if (item->kind != V_NIL || group_text(w, (u32)(u8)entry[0] << 8 | (u8)entry[1], item) == WEFT_OK) continue;
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

static WeftStatus unnamed_groups(Walk *w, Value *out) {
  if (!list_new(w->vm, w->p->groups, out)) return WEFT_ERROR;
  for (u32 g = 1; g <= w->p->groups; g++) {
    Value v;
    if (group_text(w, g, &v) == WEFT_OK && list_push(w->vm, out, v)) continue;
    value_drop(w->vm, *out);
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

/* {text, start, stop, groups, named} of the match at hand. */
static WeftStatus match_record(Walk *w, Value *out) {
  Vm *vm = w->vm;
  Value part, start, stop;
  TRY(point_at(w, w->at[0], &start));
  TRY(point_at(w, w->at[1], &stop));
  if (!record_new_shape(vm, stdlib_of(vm)->regex->match, out)) return WEFT_ERROR;
  Value *items = out->record->items;
  items[MATCH_START] = start;
  items[MATCH_STOP] = stop;
  WeftStatus status = group_text(w, 0, &part);
  if (status == WEFT_OK) items[MATCH_TEXT] = part;
  if (status == WEFT_OK) status = unnamed_groups(w, &part);
  if (status == WEFT_OK) items[MATCH_GROUPS] = part;
  if (status == WEFT_OK) status = named_groups(w, &part);
  if (status == WEFT_OK) items[MATCH_NAMED] = part;
  else value_drop(vm, *out);
  return status;
}

static WeftStatus walk_begin(Vm *vm, u32 op, const Value *args, Walk *w) {
  *w = (Walk){.vm = vm, .op = op};
  if (args[0].kind != V_TEXT) return args_error(vm, op, 0, args[0], "a text");
  w->t = args[0].text;
  return pattern_of(vm, op, args[1], &w->p);
}

/* ---- the operations -------------------------------------------------------------------------- */

WeftStatus eager_regex_find(Vm *vm, Value *args, Value *out) {
  Walk w;
  bool found;
  i64 start = 0;
  TRY(walk_begin(vm, OP_regex_find, args, &w));
  TRY(args_int(vm, OP_regex_find, 2, args[2], &start));
  if (start < 0 || start > w.t->count)
    return vm_error(vm, EK_index, "regex.find: start must be 0 to %u, got %lld", w.t->count, (long long)start);
  u32 from;
  if (!text_place(vm, w.t, (u32)start, &from)) return WEFT_ERROR;
  w.from = from;
  TRY(match_once(&w, 0, &found));
  *out = value_nil();
  return found ? match_record(&w, out) : WEFT_OK;
}

WeftStatus eager_regex_match(Vm *vm, Value *args, Value *out) {
  Walk w;
  bool found;
  TRY(walk_begin(vm, OP_regex_match, args, &w));
  TRY(match_once(&w, OPTION_ANCHORED, &found));
  *out = value_nil();
  return found ? match_record(&w, out) : WEFT_OK;
}

static WeftStatus all_matches(Walk *w, Value *out) {
  bool found;
  if (!list_new(w->vm, 8, out)) return WEFT_ERROR;
  for (;;) {
    Value m;
    WeftStatus status = next_match(w, &found);
    if (status == WEFT_OK && !found) return WEFT_OK;
    if (status == WEFT_OK) status = match_record(w, &m);
    if (status != WEFT_OK) {
      value_drop(w->vm, *out);
      return status;
    }
    TRY(list_add(w->vm, out, m));
  }
}

WeftStatus eager_regex_find_all(Vm *vm, Value *args, Value *out) {
  Walk w;
  TRY(walk_begin(vm, OP_regex_find_all, args, &w));
  return all_matches(&w, out);
}

WeftStatus eager_regex_split(Vm *vm, Value *args, Value *out) {
  Walk w;
  bool found;
  size_t begin = 0;
  TRY(walk_begin(vm, OP_regex_split, args, &w));
  if (!list_new(vm, 8, out)) return WEFT_ERROR;
  do {
    Value part;
    if (next_match(&w, &found) != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
    const size_t end = found ? (w.at[0] > begin ? w.at[0] : begin) : w.t->len;
    if (!text_of_program(vm, w.t->data + begin, end - begin, &part)) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
    TRY(list_add(vm, out, part));
    begin = found ? w.at[1] : begin;
  } while (found);
  return WEFT_OK;
}

/* The number of the group that is named so; below 0: there is none. */
static i32 group_named(const Pattern *p, const char *name, size_t n) {
  u32 number = 0;
  bool digits = n > 0 && n < 5;
  for (size_t i = 0; i < n && digits; i++) {
    digits = name[i] >= '0' && name[i] <= '9';
    number = number * 10 + (u32)(name[i] - '0');
  }
  if (digits) return number <= p->groups ? (i32)number : -1;
  for (u32 i = 0; i < p->names; i++) {
    const char *entry = name_entry(p, i);
    if (strlen(entry + 2) == n && memcmp(entry + 2, name, n) == 0) return (u8)entry[0] << 8 | (u8)entry[1];
  }
  return -1;
}

/* What stands for a match: $1, ${12} and ${name} are groups, $$ is $. */
static WeftStatus put_replacement(Walk *w, const Text *new, Buf *b) {
  for (const char *s = new->data, *end = s + new->len; s < end;) {
    const char *sign = memchr(s, '$', (size_t)(end - s));
    buf_put(b, s, (size_t)((sign ? sign : end) - s));
    if (!sign) break;
    s = sign + 1;
    if (s < end && *s == '$') {
      buf_putc(b, *s++);
      continue;
    }
    const bool braced = s < end && *s == '{';
    const char *name = s + braced, *stop = name;
    while (stop < end && (braced ? *stop != '}' : stop < name + 2 && *stop >= '0' && *stop <= '9')) stop++;
    if (stop == name || (braced && stop == end))
      return vm_error(w->vm, EK_value, "%s: new: a group is written $1 or ${name}, a $ as $$", op_name(w->op));
    const i32 group = group_named(w->p, name, (size_t)(stop - name));
    if (group < 0)
      return vm_error(w->vm, EK_value, "%s: new: the pattern has no group \"%.*s\"", op_name(w->op),
                      (int)(stop - name < 40 ? stop - name : 40), name);
    if (w->at[2 * group] != unset) buf_put(b, w->t->data + w->at[2 * group], w->at[2 * group + 1] - w->at[2 * group]);
    s = stop + braced;
  }
  return WEFT_OK;
}

/* All matches are found first: the function may use patterns of its own. */
static WeftStatus replace_by_function(Walk *w, Value fn, Buf *b) {
  Vm *vm = w->vm;
  Value all;
  u32 done = 0, at = 0; /* code points of the text that are dealt with, and their bytes */
  WeftStatus status = all_matches(w, &all);
  if (status != WEFT_OK) return status;
  for (u32 i = 0; i < all.list->count && status == WEFT_OK; i++) {
    Value arg[1] = {value_keep(all.list->items[i])}, by;
    const Record *m = arg[0].record;
    const u32 start = (u32)m->items[MATCH_START].i, stop = (u32)m->items[MATCH_STOP].i;
    const u32 to = start > done ? text_behind(w->t, at, start - done) : at;
    buf_put(b, w->t->data + at, to - at);
    at = to;
    if (start > done) done = start;
    if (stop > done) at = text_behind(w->t, at, stop - done), done = stop;
    status = vm_call(vm, fn, arg, 1, &by);
    if (status != WEFT_OK) break;
    if (by.kind == V_TEXT) buf_put(b, by.text->data, by.text->len);
    else status = vm_error(vm, EK_type, "%s: new must give a text, got %s", op_name(w->op), value_type_name(by));
    value_drop(vm, by);
  }
  value_drop(vm, all);
  buf_put(b, w->t->data + at, w->t->len - at);
  return status;
}

WeftStatus eager_regex_replace(Vm *vm, Value *args, Value *out) {
  Walk w;
  Buf b;
  const u32 op = OP_regex_replace;
  const Value new = args[2];
  TRY(walk_begin(vm, op, args, &w));
  if (new.kind != V_TEXT && new.kind != V_FN) return args_error(vm, op, 2, new, "a text or a function");
  vm_buf_init(vm, &b);
  WeftStatus status = WEFT_OK;
  if (new.kind == V_FN) {
    status = replace_by_function(&w, new, &b);
  } else {
    bool found = true;
    for (size_t done = 0; found && status == WEFT_OK && !b.failed;) {
      status = next_match(&w, &found);
      if (status != WEFT_OK) break;
      const size_t start = found ? (w.at[0] > done ? w.at[0] : done) : w.t->len;
      buf_put(&b, w.t->data + done, start - done);
      if (found) status = put_replacement(&w, new.text, &b);
      done = found ? w.at[1] : start;
    }
  }
  if (status == WEFT_OK)
    status = b.failed ? vm_error_buf(vm) : text_of_program(vm, buf_text(&b), b.len, out) ? WEFT_OK : WEFT_ERROR;
  buf_free(&b);
  return status;
}

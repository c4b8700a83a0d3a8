/* groups.c — rows of tables that are equal: each gets the number of its group (table.codes). */
#include "stdlib/array/make.h"

#include <string.h>

/* One column of the rows, of two tables where rows of both are compared. Numbers as words that are equal when they are;
 * texts and other items of lists as they stand. */
typedef struct Column {
  u64 *words;         /* NULL: a list */
  bool integers;      /* these are integers, by their order as i64 */
  i64 *rests;         /* integers less their words, where integers and floats are compared; else NULL */
  const Value *items; /* of the first table, */
  const Value *more;  /* and of the second */
} Column;

typedef struct Groups {
  Vm *vm;
  Column *columns;
  u32 count;     /* of columns */
  i64 first, rows; /* of the first table; of both */
} Groups;

static const u64 spread = 0x9E3779B97F4A7C15u;

static u64 mix(u64 h, u64 word) {
  h = (h ^ word) * spread;
  return h ^ h >> 29;
}

/* NaN is one value here, and so are the two zeros. */
static u64 float_word(f64 x) {
  u64 w;
  if (x != x) x = (f64)NAN;
  if (x == 0) x = 0;
  memcpy(&w, &x, sizeof w);
  return x != x ? 0x7FF8000000000000u : w;
}

static u64 number_word(Value v, bool as_float) {
  return as_float ? float_word(num_as_f64(v)) : (u64)v.i;
}

/* An integer less the float next to it: 0 below 2^53. */
static i64 number_rest(Value v) {
  if (dtype_kind(v.dtype) == DK_FLOAT) return 0;
  const f64 near = num_as_f64(v);
  return (i64)((u64)v.i - (near >= 0x1p64 ? 0 : near < 0 ? (u64)(i64)near : (u64)near));
}

static Value item_of(const Groups *g, const Column *c, i64 row) {
  return value_untracked(row < g->first ? c->items[row] : c->more[row - g->first]);
}

static u64 item_hash(Value v) {
  u64 h = v.kind;
  if (v.kind == V_NUM) return mix(h, float_word(num_as_f64(v)));
  if (v.kind != V_TEXT) return h;
  const char *s = v.text->data;
  u32 n = v.text->len;
  for (; n >= 8; s += 8, n -= 8) {
    u64 w;
    memcpy(&w, s, sizeof w);
    h = mix(h, w);
  }
  u64 last = n;
  for (u32 i = 0; i < n; i++) last = last << 8 | (u8)s[i];
  return mix(h, last);
}

static bool items_same(Value x, Value y) {
  if (x.kind != y.kind) return false;
  if (x.kind == V_TEXT) return x.text->len == y.text->len && memcmp(x.text->data, y.text->data, x.text->len) == 0;
  return x.kind != V_NUM || (float_word(num_as_f64(x)) == float_word(num_as_f64(y)) &&
                             number_rest(x) == number_rest(y));
}

static u64 row_hash(const Groups *g, i64 row) {
  u64 h = g->vm->names.seed[0];
  for (u32 c = 0; c < g->count; c++) {
    const Column *k = &g->columns[c];
    h = mix(h, k->words ? k->words[row] : item_hash(item_of(g, k, row)));
  }
  return h;
}

static bool rows_same(const Groups *g, i64 a, i64 b) {
  for (u32 c = 0; c < g->count; c++) {
    const Column *k = &g->columns[c];
    if (k->rests && k->rests[a] != k->rests[b]) return false;
    if (k->words ? k->words[a] != k->words[b] : !items_same(item_of(g, k, a), item_of(g, k, b))) return false;
  }
  return true;
}

/* ---- columns --------------------------------------------------------------------------------- */

static i64 column_rows(Value v) {
  if (v.kind == V_LIST) return v.list->count;
  return v.kind == V_ARRAY && array_rank(v.array) == 1 && array_device(v.array) == DEV_CPU ? v.array->size : -1;
}

/* Column `name` of a table. *rows: below 0 before the first. */
static WeftStatus find_column(Vm *vm, u32 param, const Record *t, Name name, i64 *rows, Value *out) {
  const Value *at = record_find(t, name);
  const char *table = param ? "other" : "t", *shown = name_text(&vm->names, name);
  if (!at) return vm_error(vm, EK_key, "table.codes: %s has no column \"%.80s\"", table, shown);
  *out = value_untracked(*at);
  const i64 n = column_rows(*out);
  if (n < 0) {
    char what[DESCRIBED];
    args_describe(*out, what, sizeof what);
    return vm_error(vm, EK_type, "table.codes: column \"%.80s\" must be an array of rank 1 or a list, got %s", shown,
                    what);
  }
  if (*rows >= 0 && n != *rows)
    return vm_error(vm, EK_value, "table.codes: column \"%.80s\" has %lld rows, the first has %lld", shown,
                    (long long)n, (long long)*rows);
  *rows = n;
  if (out->kind == V_ARRAY && dtype_kind(out->dtype) == DK_COMPLEX)
    return vm_error(vm, EK_unsupported, "table.codes: not supported for %s", dtype_name(out->dtype));
  if (out->kind == V_LIST) {
    if (!list_boxed(vm, out->list)) return WEFT_ERROR;
    for (u32 i = 0; i < out->list->count; i++) {
      const Value v = value_untracked(out->list->items[i]);
      if (v.kind == V_NUM && dtype_kind(v.dtype) == DK_COMPLEX)
        return vm_error(vm, EK_unsupported, "table.codes: not supported for %s", dtype_name(v.dtype));
      if (v.kind != V_TEXT && v.kind != V_NUM && v.kind != V_NIL)
        return vm_error(vm, EK_type, "table.codes: row %u of column \"%.80s\" must be text, a number or nil, got %s",
                        i, shown, value_type_name(v));
    }
  }
  return WEFT_OK;
}

static void put_words(u64 *to, Value column, bool as_float) {
  Array *a = column.array;
  const i64 stride = array_strides(a)[0];
  const u32 dtype = array_dtype(a);
  if (!as_float && (dtype == DT_i64 || dtype == DT_u64)) {
    const u64 *from = (const u64 *)a->data;
    for (i64 i = 0; i < a->size; i++) to[i] = from[i * stride];
    return;
  }
  if (as_float && dtype == DT_f64) {
    const f64 *from = (const f64 *)a->data;
    for (i64 i = 0; i < a->size; i++) to[i] = float_word(from[i * stride]);
    return;
  }
  for (i64 i = 0; i < a->size; i++) to[i] = number_word(array_load(a, i * stride), as_float);
}

static void put_rests(i64 *to, Value column) {
  Array *a = column.array;
  const i64 stride = array_strides(a)[0];
  for (i64 i = 0; i < a->size; i++) to[i] = number_rest(array_load(a, i * stride));
}

/* Numbers that are compared with texts, or with numbers of a list, are items of a list as well. */
static WeftStatus put_column(Groups *g, Column *c, const Value *pair, u32 tables, Value *held) {
  Vm *vm = g->vm;
  bool arrays = true, floats = false, integers = false, unsigned64 = false, other = false;
  for (u32 i = 0; i < tables; i++) {
    arrays &= pair[i].kind == V_ARRAY;
    const bool is_float = pair[i].kind == V_ARRAY && dtype_kind(array_dtype(pair[i].array)) == DK_FLOAT;
    floats |= is_float;
    integers |= !is_float;
    if (pair[i].kind == V_ARRAY) *(array_dtype(pair[i].array) == DT_u64 ? &unsigned64 : &other) = true;
  }
  floats |= unsigned64 && other; /* no word of 64 bits holds both sorts */
  if (arrays) {
    c->words = mem_alloc(&vm->alloc, sizeof(u64) * ((size_t)g->rows + 1));
    if (!c->words) return vm_error_memory(vm);
    put_words(c->words, pair[0], floats);
    if (tables > 1) put_words(c->words + g->first, pair[1], floats);
    c->integers = !floats;
    if (!floats || !integers) return WEFT_OK;
    c->rests = mem_alloc(&vm->alloc, sizeof(i64) * ((size_t)g->rows + 1));
    if (!c->rests) return vm_error_memory(vm);
    put_rests(c->rests, pair[0]);
    put_rests(c->rests + g->first, pair[1]);
    return WEFT_OK;
  }
  for (u32 i = 0; i < tables; i++) {
    Value list;
    if (pair[i].kind == V_LIST) list = value_keep(pair[i]);
    else {
      Value args[1] = {value_keep(pair[i])};
      TRY(run_op(vm, OP_list, args, 1, &list));
    }
    if (!list_push(vm, held, list)) return WEFT_ERROR;
    *(i ? &c->more : &c->items) = list.list->items;
  }
  return WEFT_OK;
}

/* ---- numbering ------------------------------------------------------------------------------- */

/* Groups found so far: a table of 1 + the first row of a group by its hash, which grows with the groups and not with
 * the rows, so that a few groups stay in the caches. */
typedef struct Found {
  i64 *slots;
  u64 count, groups;
} Found;

static bool make_slots(Vm *vm, Found *f, u64 count) {
  f->slots = mem_alloc_zero(&vm->alloc, count * sizeof *f->slots);
  f->count = count;
  return f->slots || vm_error_memory(vm) == WEFT_OK;
}

/* Room for twice as many groups and more. */
static bool grow_slots(const Groups *g, Found *f) {
  const Found old = *f;
  bool ok = make_slots(g->vm, f, old.count * 4);
  for (u64 i = 0; ok && i < old.count; i++) {
    if (!old.slots[i]) continue;
    u64 at = row_hash(g, old.slots[i] - 1) & (f->count - 1);
    while (f->slots[at]) at = (at + 1) & (f->count - 1);
    f->slots[at] = old.slots[i];
  }
  mem_free(&g->vm->alloc, old.slots, old.count * sizeof *old.slots);
  return ok;
}

/* Rows from `row` to `end`. */
static bool number_by_hash(const Groups *g, Found *f, i64 *codes, i64 row, i64 end) {
  const u64 *words = g->count == 1 && !g->columns[0].rests ? g->columns[0].words : NULL; /* which say it all */
  const u64 seed = g->vm->names.seed[0];
  for (; row < end; row++) {
    if (2 * (f->groups + 1) > f->count && !grow_slots(g, f)) return false;
    u64 at = (words ? mix(seed, words[row]) : row_hash(g, row)) & (f->count - 1);
    i64 first;
    while ((first = f->slots[at]) && (words ? words[first - 1] != words[row] : !rows_same(g, first - 1, row)))
      at = (at + 1) & (f->count - 1);
    codes[row] = first ? codes[first - 1] : (i64)f->groups++;
    if (!first) f->slots[at] = row + 1;
  }
  return true;
}

/* One column of integers, no further from each other than there are rows: f->slots[word - least] is 1 + the number. */
static bool number_by_place(const Groups *g, Found *f, i64 *codes, i64 row, i64 end, u64 least) {
  const u64 *words = g->columns[0].words;
  for (; row < end; row++) {
    i64 *at = &f->slots[words[row] - least];
    if (!*at) *at = (i64)++f->groups;
    codes[row] = *at - 1;
  }
  return true;
}

static bool has_places(const Groups *g, u64 *least, u64 *count) {
  const u64 *words = g->columns[0].words;
  if (g->count != 1 || !g->columns[0].integers || g->rows < 1) return false;
  i64 low = INT64_MAX, high = INT64_MIN;
  for (i64 i = 0; i < g->rows; i++) {
    const i64 w = (i64)words[i];
    low = w < low ? w : low;
    high = w > high ? w : high;
  }
  *least = (u64)low;
  *count = (u64)high - (u64)low + 1;
  return *count - 1 < (u64)g->rows + 4096;
}

static WeftStatus number_rows(const Groups *g, i64 *codes) {
  enum { BLOCK = 4096, SLOTS = 1024 };
  Vm *vm = g->vm;
  u64 least = 0, count = SLOTS;
  Found f = {.groups = 0};
  const bool places = has_places(g, &least, &count);
  if (!make_slots(vm, &f, places ? count : SLOTS)) return WEFT_ERROR;
  WeftStatus status = WEFT_OK;
  for (i64 row = 0; row < g->rows && status == WEFT_OK; row += BLOCK) {
    const i64 end = row + BLOCK < g->rows ? row + BLOCK : g->rows;
    bool ok = places ? number_by_place(g, &f, codes, row, end, least) : number_by_hash(g, &f, codes, row, end);
    status = ok ? vm_poll(vm, 1 + 4 * (u64)g->count) : WEFT_ERROR;
  }
  if (f.slots) mem_free(&vm->alloc, f.slots, f.count * sizeof *f.slots);
  return status;
}

static WeftStatus codes_of(Groups *g, const Value *args, const Name *names, Value *held, Value *out) {
  Vm *vm = g->vm;
  const u32 tables = args_given(args[2]) ? 2 : 1;
  i64 rows[2] = {-1, -1};
  Value pair[2];
  for (u32 pass = 0; pass < 2; pass++) /* how many rows there are is known when all columns were seen */
    for (u32 c = 0; c < g->count; c++) {
      for (u32 i = 0; i < tables; i++)
        TRY(find_column(vm, i ? 2 : 0, args[i ? 2 : 0].record, names[c], &rows[i], &pair[i]));
      if (pass) TRY(put_column(g, &g->columns[c], pair, tables, held));
      g->first = rows[0];
      g->rows = rows[0] + (tables > 1 ? rows[1] : 0);
    }
  TRY(array_new(vm, DT_i64, 1, &g->rows, out));
  WeftStatus status = number_rows(g, out->array->data);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

/* The names of the columns: all of the table, one text, or a list of texts. */
static WeftStatus names_of(Vm *vm, const Record *t, Value by, Name *out, u32 count) {
  for (u32 i = 0; i < count; i++) {
    if (!args_given(by)) {
      out[i] = t->shape->keys[i];
      continue;
    }
    const Value v = by.kind == V_TEXT ? by : by.list->items[i];
    if (v.kind != V_TEXT) return args_error(vm, OP_table_codes, 1, v, "a column's name or a list of them");
    if (!name_known(&vm->names, v.text->data, v.text->len, &out[i]))
      return vm_error(vm, EK_key, "table.codes: t has no column \"%.80s\"", v.text->data);
  }
  return WEFT_OK;
}

/* ---- as text -------------------------------------------------------------------------------------------------- */

/* Columns of the same length: arrays of rank 1 on the processor, lists. */
static WeftStatus rows_of(Vm *vm, const Record *t, i64 *rows) {
  *rows = 0;
  for (u32 i = 0; i < t->shape->count; i++) {
    const Value v = t->items[i];
    const char *key = name_text(&vm->names, t->shape->keys[i]);
    if (v.kind == V_ARRAY) TRY(args_array(vm, OP_table_text, 0, v));
    if (v.kind == V_LIST && !list_boxed(vm, v.list)) return WEFT_ERROR;
    if (v.kind != V_LIST && (v.kind != V_ARRAY || array_rank(v.array) != 1))
      return vm_error(vm, EK_type, "table.text: column \"%.80s\" must be an array of rank 1 or a list", key);
    const i64 n = v.kind == V_LIST ? v.list->count : v.array->size;
    if (i && n != *rows)
      return vm_error(vm, EK_value, "table.text: column \"%.80s\" has %lld rows, the first has %lld", key, (long long)n,
                      (long long)*rows);
    *rows = n;
  }
  return WEFT_OK;
}

WeftStatus eager_table_text(Vm *vm, Value *args, Value *out) {
  enum { ROWS = 20, WIDTH = 80, NARROW = 20, MOST = 1 << 20 };
  i64 shown = ROWS, width = WIDTH, rows;
  if (args[0].kind != V_RECORD) return args_error(vm, OP_table_text, 0, args[0], "a record of columns");
  TRY(rows_of(vm, args[0].record, &rows));
  TRY(args_size(vm, OP_table_text, 1, args[1], &shown));
  TRY(args_size(vm, OP_table_text, 2, args[2], &width));
  if (width < NARROW || width > MOST)
    return vm_error(vm, EK_value, "table.text: width must be from %d to %d, got %lld", NARROW, MOST, (long long)width);
  if (!vm->lay_out) return vm_error(vm, EK_unsupported, "table.text: the host shows no values");
  Buf b;
  vm_buf_init(vm, &b);
  vm->lay_out(vm, args[0].record, rows, (u32)(shown < MOST ? shown : MOST), (u32)width, &b);
  WeftStatus status = b.failed                                     ? vm_error_buf(vm)
                      : text_new(vm, buf_text(&b), b.len, out) ? WEFT_OK
                                                                   : WEFT_ERROR;
  buf_free(&b);
  return status;
}

/* ---- numbers of groups ---------------------------------------------------------------------------------------- */

WeftStatus eager_table_codes(Vm *vm, Value *args, Value *out) {
  const Value by = args[1];
  if (args[0].kind != V_RECORD) return args_error(vm, OP_table_codes, 0, args[0], "a record of columns");
  if (args_given(args[2]) && args[2].kind != V_RECORD)
    return args_error(vm, OP_table_codes, 2, args[2], "a record of columns");
  if (args_given(by) && by.kind != V_TEXT && (by.kind != V_LIST || !list_boxed(vm, by.list)))
    return vm->error.raised ? WEFT_ERROR
                            : args_error(vm, OP_table_codes, 1, by, "a column's name or a list of them");
  Groups g = {.vm = vm, .count = !args_given(by) ? args[0].record->shape->count : by.kind == V_TEXT ? 1
                                                                                           : by.list->count};
  if (!g.count) return vm_error(vm, EK_value, "table.codes: on names no column");
  const size_t bytes = (sizeof *g.columns + sizeof(Name)) * ((size_t)g.count + 1);
  g.columns = mem_alloc_zero(&vm->alloc, bytes);
  if (!g.columns) return vm_error_memory(vm);
  Name *names = (Name *)(g.columns + g.count + 1);
  Value held = value_nil();
  WeftStatus status = list_new(vm, 4, &held) ? names_of(vm, args[0].record, by, names, g.count) : WEFT_ERROR;
  if (status == WEFT_OK) status = codes_of(&g, args, names, &held, out);
  for (u32 c = 0; c < g.count; c++) {
    if (g.columns[c].rests) mem_free(&vm->alloc, g.columns[c].rests, sizeof(i64) * ((size_t)g.rows + 1));
    if (g.columns[c].words) mem_free(&vm->alloc, g.columns[c].words, sizeof(u64) * ((size_t)g.rows + 1));
  }
  value_drop(vm, held);
  mem_free(&vm->alloc, g.columns, bytes);
  return status;
}

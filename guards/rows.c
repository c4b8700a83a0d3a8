/* rows.c — lists of numbers, small arrays of one shape and short texts of one kind, of trees of such, and the code
 * points of texts, packed into arrays with room behind them when a region is entered: one array for each number,
 * array or text of a tree. A text in a tree is a number of its own (text_number). A list that lies in columns
 * already (vm/packed.h) gives them as they are. */
#include "guards/guards_inner.h"
#include "lang/mechanisms.h"

#include <string.h>

/* ---- what items have in common ------------------------------------------------------------------------------- */

static u64 head_of(u32 kind, u32 count) { return kind | (u64)count << 32; }

static bool put_word(RowLayout *l, u64 w) {
  if (l->count == ROW_WORDS) return false;
  l->words[l->count++] = w;
  return true;
}

/* An array that is packed has a shape of its own in the layout: its dtype and rank in the first word, its sizes
 * behind. */
static u64 array_word(const Array *a) { return V_ARRAY | (u64)array_dtype(a) << 8 | (u64)array_rank(a) << 32; }

bool rows_small(Value v) {
  return v.kind == V_ARRAY && array_device(v.array) == DEV_CPU && array_rank(v.array) && array_rank(v.array) <=
         ROW_RANK && v.array->size && v.array->size <= ROW_ARRAY && array_dtype(v.array) != DT_c128;
}

/* ---- lists of any length ------------------------------------------------------------------------------------ */

enum { RAGGED = 1 }; /* Value.aux of the nil */

bool rows_ragged(Value kind) {
  return kind.kind == V_LIST && kind.list->count == 2 && kind.list->items[0].kind == V_NIL &&
         kind.list->items[0].aux == RAGGED;
}

Packed *rows_given(const List *l, bool ragged) {
  return l->packed && rows_ragged(l->packed->kind) == ragged ? l->packed : NULL;
}

bool rows_total(const Value *items, u32 count, u64 *out) {
  bool lists = true;
  *out = 0;
  for (u32 i = 0; i < count && lists; i++)
    if ((lists = items[i].kind == V_LIST)) *out += items[i].list->count;
  return lists && *out <= ROWS_MOST;
}

static bool put_layout(Value v, u32 depth, RowLayout *l) {
  if (rows_keyed(v)) return !depth && put_word(l, value_tag(v));
  if (rows_ragged(v)) return !depth && put_word(l, ROW_RAGGED) && put_layout(v.list->items[1], 0, l);
  if (v.kind == V_NUM) return put_word(l, value_tag(v));
  if (rows_small(v)) {
    bool ok = put_word(l, array_word(v.array));
    for (u32 d = 0; d < array_rank(v.array) && ok; d++) ok = put_word(l, (u64)array_dims(v.array)[d]);
    return ok;
  }
  if (v.kind == V_HOLE || (v.kind == V_TEXT && text_has_number(v.text))) return put_word(l, value_tag(value_hole()));
  if ((v.kind != V_LIST && v.kind != V_RECORD) || depth == ROW_DEPTH) return false;
  u32 n = v.kind == V_LIST ? v.list->count : v.record->shape->count;
  const Value *items = v.kind == V_LIST ? v.list->items : v.record->items;
  if (n > ROW_WORDS || !put_word(l, head_of(v.kind, n))) return false;
  for (u32 i = 0; v.kind == V_RECORD && i < n; i++)
    if (!put_word(l, v.record->shape->keys[i])) return false;
  for (u32 i = 0; i < n; i++)
    if (!put_layout(items[i], depth + 1, l)) return false;
  return true;
}

bool rows_layout(Value item, RowLayout *out) {
  out->count = 0;
  return put_layout(item, 0, out);
}

static u64 rows_word_at(const void *layout, u32 i) {
  u64 w;
  memcpy(&w, (const u8 *)layout + (size_t)i * sizeof w, sizeof w);
  return w;
}

static bool fits_ragged(const Value *items, u32 count, const void *layout) {
  u64 total;
  const u64 *item = (const u64 *)layout + 1;
  if (count == 1 && rows_ragged(items[0])) return rows_fit(&items[0].list->items[1], 1, item);
  if (!rows_total(items, count, &total)) return false;
  for (u32 i = 0; i < count; i++)
    if (rows_ragged(items[i]) || !rows_fit(items[i].list->items, items[i].list->count, item)) return false;
  return true;
}

/* Depth is bounded by ROW_DEPTH. */
static bool fits(Value v, const void *layout, u32 *at) {
  u64 w = rows_word_at(layout, (*at)++);
  u32 kind = (u8)w, n = (u32)(w >> 32);
  if (kind == V_NUM) return w & ROW_MIXED ? (v.kind == V_NUM && v.dtype == (u8)(w >> 8)) : value_tag(v) == w;
  if (kind == V_HOLE) return v.kind == V_HOLE || (v.kind == V_TEXT && text_has_number(v.text));
  if (kind == V_ARRAY) {
    bool same = v.kind == V_ARRAY && array_word(v.array) == w && array_device(v.array) == DEV_CPU;
    for (u32 i = 0; i < n && same; i++) same = (u64)array_dims(v.array)[i] == rows_word_at(layout, *at + i);
    *at += n;
    return same;
  }
  if (v.kind != kind || (kind == V_LIST ? v.list->count : v.record->shape->count) != n) return false;
  for (u32 i = 0; kind == V_RECORD && i < n; i++)
    if (v.record->shape->keys[i] != rows_word_at(layout, (*at)++)) return false;
  const Value *items = kind == V_LIST ? v.list->items : v.record->items;
  for (u32 i = 0; i < n; i++)
    if (!fits(items[i], layout, at)) return false;
  return true;
}

bool rows_fit(const Value *items, u32 count, const void *layout) {
  u64 differ = 0, tag = rows_word_at(layout, 0);
  if ((u8)tag == V_NUM && !(tag & ROW_MIXED)) {
    for (u32 i = 0; i < count; i++) differ |= value_tag(items[i]) ^ tag;
    return differ == 0;
  }
  if ((u8)tag == V_DTYPE) return count == 1 && value_tag(items[0]) == tag;
  if (tag == ROW_RAGGED) return fits_ragged(items, count, layout);
  for (u32 i = 0; i < count; i++) {
    u32 at = 0;
    if (!fits(items[i], layout, &at)) return false;
  }
  return true;
}

/* What an item looks like, with nothing in it. Depth is bounded: it has a layout. */
static bool kind_of(Vm *vm, Value v, Value *out) {
  *out = v.kind == V_NUM ? (Value){.kind = V_NUM, .dtype = v.dtype, .flags = v.flags & VF_WEAK, .aux = v.aux}
                         : value_hole();
  if (v.kind == V_ARRAY) *out = value_keep(v);
  if (v.kind != V_LIST && v.kind != V_RECORD) return true;
  bool list = v.kind == V_LIST, ok = true;
  if (list ? !list_new(vm, v.list->count, out) : !record_new_shape(vm, v.record->shape, out)) return false;
  u32 n = list ? v.list->count : v.record->shape->count;
  for (u32 i = 0; i < n && ok; i++) {
    Value part;
    ok = kind_of(vm, (list ? v.list->items : v.record->items)[i], &part);
    if (ok && list) ok = list_push(vm, out, part);
    else if (ok) out->record->items[i] = part;
  }
  if (!ok) value_drop(vm, *out);
  return ok;
}

bool rows_widen(Value *kind, Value other) {
  if (kind->kind == V_NUM && other.kind == V_NUM) {
    if (kind->dtype != other.dtype) return false;
    if (!kind->aux && (other.aux || (kind->flags ^ other.flags) & VF_WEAK)) {
      kind->aux = 1;
      kind->flags = 0;
    }
    return true;
  }
  if (kind->kind == V_HOLE) return other.kind == V_HOLE || (other.kind == V_TEXT && text_has_number(other.text));
  if (kind->kind == V_ARRAY) return rows_take(*kind, other);
  if (kind->kind != other.kind || (kind->kind != V_LIST && kind->kind != V_RECORD)) return false;
  bool list = kind->kind == V_LIST;
  u32 n = list ? kind->list->count : kind->record->shape->count;
  if (n != (list ? other.list->count : other.record->shape->count)) return false;
  for (u32 i = 0; !list && i < n; i++)
    if (kind->record->shape->keys[i] != other.record->shape->keys[i]) return false;
  for (u32 i = 0; i < n; i++)
    if (!rows_widen(&(list ? kind->list->items : kind->record->items)[i],
                    (list ? other.list->items : other.record->items)[i]))
      return false;
  return true;
}

bool rows_kind(Vm *vm, const Value *items, u32 count, Value *kind) {
  RowLayout l;
  bool raised = vm->error.raised;
  if (!count || !rows_layout(items[0], &l)) return false;
  if (!kind_of(vm, items[0], kind)) {
    if (!raised) vm_error_clear(vm);
    return false;
  }
  if (rows_fit(items, count, l.words)) return true;
  bool ok = true;
  for (u32 i = 1; i < count && ok; i++) ok = rows_widen(kind, items[i]);
  if (!ok) value_drop(vm, *kind);
  return ok;
}

/* What the items of all these lists have in common; *kind owned, and there. */
static bool common_kind(Vm *vm, const Value *items, u32 count, Value *kind) {
  bool found = false, ok = true;
  RowLayout l;
  for (u32 i = 0; i < count && ok; i++) {
    const List *row = items[i].list;
    Value other;
    if (!row->count || (found && rows_layout(*kind, &l) && rows_fit(row->items, row->count, l.words))) continue;
    if (!(ok = rows_kind(vm, row->items, row->count, &other))) break;
    if (!found) *kind = other;
    else {
      ok = rows_widen(kind, other);
      value_drop(vm, other);
    }
    found = true;
  }
  if (found && !ok) value_drop(vm, *kind);
  return found && ok;
}

bool rows_ragged_kind(Vm *vm, const Value *items, u32 count, Value *kind) {
  u64 total;
  Value item, nil = {.kind = V_NIL, .aux = RAGGED};
  bool raised = vm->error.raised;
  if (!rows_total(items, count, &total) || !common_kind(vm, items, count, &item)) return false;
  bool ok = list_from(vm, (Value[]){nil, item}, 2, kind);
  value_drop(vm, item);
  if (!ok && !raised) vm_error_clear(vm);
  return ok;
}

bool rows_take(Value kind, Value other) {
  RowLayout l;
  return rows_layout(kind, &l) && rows_fit(&other, 1, l.words);
}

bool rows_alike(Value a, Value b) { return rows_take(a, b) && rows_take(b, a); }

/* The number of leaves that remain to be passed by, or ~0 when the wanted one was found. */
static u32 find_column(const void *layout, u32 *at, u32 left, u32 depth, Fill *out) {
  u64 w = rows_word_at(layout, (*at)++);
  u32 kind = (u8)w, n = (u32)(w >> 32);
  if (kind == V_NUM || kind == V_HOLE) {
    out->tag = w;
    out->depth = (u8)depth;
    if (kind == V_NUM && w & ROW_MIXED && left == 1) out->tag |= ROW_FLAGS;
    return kind == V_NUM && w & ROW_MIXED ? (left < 2 ? UINT32_MAX : left - 2) : left - 1; /* wraps when it was 0 */
  }
  if (kind == V_ARRAY) {
    out->tag = w;
    out->depth = (u8)depth;
    for (u32 i = 0; i < n; i++) out->dims[i] = (u8)rows_word_at(layout, (*at)++);
    return left - 1;
  }
  if (kind == V_RECORD) *at += n;
  for (u32 i = 0; i < n; i++) {
    out->path[depth] = (u8)i;
    if ((left = find_column(layout, at, left, depth + 1, out)) == UINT32_MAX) return left;
  }
  return left;
}

bool rows_column(const void *layout, u32 column, Fill *out) {
  u32 at = 0;
  if (rows_word_at(layout, 0) == ROW_RAGGED) {
    out->part = column == 0 ? ROW_STARTS : column == 1 ? ROW_COUNTS : ROW_FLAT;
    if (column < 2) return true;
    at = 1;
    column -= 2;
  }
  return find_column(layout, &at, column, 0, out) == UINT32_MAX;
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

static Value leaf_of(Value v, const Fill *f) {
  for (u32 d = 0; d < f->depth; d++) v = (v.kind == V_LIST ? v.list->items : v.record->items)[f->path[d]];
  return v;
}

static i64 room_of(u64 count) { return 2 * (i64)count + ROWS_ROOM; }

static bool pack_arrays(Vm *vm, const List *list, const Fill *f, u64 *slot) {
  i64 dims[ROW_RANK + 1] = {room_of(list->count)}, strides[ROW_RANK];
  u32 dtype = (u8)(f->tag >> 8), rank = (u32)(f->tag >> 32);
  for (u32 d = 0; d < rank; d++) dims[d + 1] = f->dims[d];
  bool raised = vm->error.raised;
  Value out;
  if (array_new(vm, dtype, rank + 1, dims, &out) != WEFT_OK) {
    if (!raised) vm_error_clear(vm);
    return false;
  }
  dense_strides(rank, dims + 1, strides);
  size_t size = (size_t)(dims_size(rank, dims + 1)) * dtype_bytes(dtype);
  u8 *at = out.array->data;
  for (u32 i = 0; i < list->count; i++, at += size) {
    const Array *a = leaf_of(list->items[i], f).array;
    if (array_dense(a)) memcpy(at, a->data, size);
    else strided_copy(vm, dtype_bytes(dtype), rank, dims + 1, at, strides, a->data, a->geometry + rank);
  }
  memset(at, 0, ((size_t)dims[0] - list->count) * size);
  *slot = (u64)(uintptr_t)out.array;
  return true;
}

/* What lies behind the items is zero, so that two packings of a list are equal. */
static bool rows_pack(Vm *vm, const List *list, const Fill *f, u64 *slot) {
  Value kind = {0}, out;
  memcpy(&kind, &f->tag, sizeof f->tag);
  if (kind.kind == V_ARRAY) return pack_arrays(vm, list, f, slot);
  bool texts = kind.kind == V_HOLE, numbered = true, flags = f->tag & ROW_FLAGS;
  if (flags) kind.dtype = DT_bool;
  if (texts) kind.dtype = DT_i64;
  i64 room = room_of(list->count);
  bool raised = vm->error.raised;
  if (array_new(vm, kind.dtype, 1, &room, &out) != WEFT_OK) {
    if (!raised) vm_error_clear(vm);
    return false;
  }
  u8 *data = out.array->data;
  size_t size = dtype_bytes(kind.dtype);
  if (texts) {
    for (u32 i = 0; i < list->count && numbered; i++)
      numbered = text_number(vm, leaf_of(list->items[i], f).text, (i64 *)(void *)data + i);
    if (!numbered) {
      value_drop(vm, out);
      return false;
    }
  } else if (flags) {
    for (u32 i = 0; i < list->count; i++) data[i] = value_is_weak(leaf_of(list->items[i], f));
  } else if (size == 8 && !f->depth)
    for (u32 i = 0; i < list->count; i++) ((u64 *)(void *)data)[i] = list->items[i].bits;
  else
    for (u32 i = 0; i < list->count; i++) num_store(data + i * size, kind.dtype, leaf_of(list->items[i], f));
  memset(data + list->count * size, 0, ((size_t)room - list->count) * size);
  *slot = (u64)(uintptr_t)out.array;
  return true;
}

/* Room for so many integers. NULL: memory was refused, and nothing is told. */
static i64 *numbers_new(Vm *vm, i64 room, Value *out) {
  bool raised = vm->error.raised;
  if (array_new(vm, DT_i64, 1, &room, out) == WEFT_OK) return (i64 *)(void *)out->array->data;
  if (!raised) vm_error_clear(vm);
  return NULL;
}

/* The place of a text among those packed last, which it is the newest of now. */
static TextPoints *points_kept(Vm *vm, const Text *t) {
  TextPoints *p = vm->text_points, mine = {.text = t, .column = value_nil()};
  u32 at = 0;
  while (at < POINTS_KEPT - 1 && p[at].text != t) at++;
  if (p[at].text == t) mine = p[at];
  else value_drop(vm, p[at].column);
  memmove(p + 1, p, sizeof *p * at);
  p[0] = mine;
  return p;
}

/* The code points of a text, as rows. Those of a text that is packed a second time are kept as long as it is among the
 * last ones: loops are left and entered again, and functions called again, with the same text. One that grows is
 * another text each time. */
static bool points_pack(Vm *vm, const Text *t, u64 *slot, bool *made) {
  i64 room = room_of(t->count), *data;
  bool keeps = t->count >= POINTS_LEAST && vm_may_keep(vm) && MECHANISM(vm, points_kept);
  TextPoints *kept = keeps ? points_kept(vm, t) : NULL;
  Value out;
  if (kept && kept->column.kind == V_ARRAY) {
    *made = false;
    *slot = (u64)(uintptr_t)value_keep(kept->column).array;
    return true;
  }
  if (!(data = numbers_new(vm, room, &out))) return false;
  text_points(t, data);
  memset(data + t->count, 0, ((size_t)room - t->count) * sizeof *data);
  if (kept && kept->packed) kept->column = value_keep(out);
  else if (kept) kept->packed = true;
  *slot = (u64)(uintptr_t)out.array;
  return true;
}

/* Where each of several lists begins among the items of all of them, or how many it has. */
static bool pack_places(Vm *vm, const List *list, bool counts, u64 *slot) {
  i64 room = room_of(list->count), at = 0, *data;
  Value out;
  if (!(data = numbers_new(vm, room, &out))) return false;
  for (u32 i = 0; i < list->count; at += list->items[i++].list->count)
    data[i] = counts ? list->items[i].list->count : at;
  memset(data + list->count, 0, ((size_t)room - list->count) * sizeof *data);
  *slot = (u64)(uintptr_t)out.array;
  return true;
}

/* The items of several lists one behind the other. */
static bool pack_flat(Vm *vm, const List *list, const Fill *f, u64 *slot) {
  u64 total = 0, at = 0;
  if (!rows_total(list->items, list->count, &total)) return false;
  size_t size = (size_t)(total + 1) * sizeof(Value);
  List all = {.count = (u32)total, .items = mem_alloc(&vm->alloc, size)};
  if (!all.items) return false;
  for (u32 i = 0; i < list->count; at += list->items[i++].list->count)
    if (list->items[i].list->count)
      memcpy(all.items + at, list->items[i].list->items, list->items[i].list->count * sizeof(Value));
  bool ok = rows_pack(vm, &all, f, slot);
  mem_free(&vm->alloc, all.items, size);
  return ok;
}

/* Leaves in front of the one at `depth` and below of the fill's path, which is *leaf. Depth is that of the path. */
static u32 leaves_before(Value kind, const Fill *f, u32 depth, bool on_path, Value *leaf) {
  u32 n = 0;
  if (kind.kind != V_LIST && kind.kind != V_RECORD) {
    if (on_path) *leaf = kind;
    return on_path ? 0 : 1 + rows_mixed(kind);
  }
  const Value *parts = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  u32 count = kind.kind == V_LIST ? kind.list->count : kind.record->shape->count;
  for (u32 i = 0; i < count && !(on_path && i > f->path[depth]); i++)
    n += leaves_before(parts[i], f, depth + 1, on_path && i == f->path[depth], leaf);
  return n;
}

static bool pack_new(Vm *vm, const List *list, const Fill *f, u64 *slot) {
  if (!f->part) return rows_pack(vm, list, f, slot);
  return f->part == ROW_FLAT ? pack_flat(vm, list, f, slot) : pack_places(vm, list, f->part == ROW_COUNTS, slot);
}

/* The column of a list that has some. The one that says which numbers are weak is made where they are all weak, or
 * none; one that was not asked for before is made, as *made says, and kept. */
static bool column_given(Vm *vm, List *list, const Fill *f, u64 *slot, bool *made) {
  Packed *p = list->packed;
  Value leaf = value_hole(), out;
  i64 room = room_of(f->part == ROW_FLAT ? p->reads : list->count);
  bool raised = vm->error.raised, flags = f->tag & ROW_FLAGS, ragged = rows_ragged(p->kind);
  u32 at = f->part == ROW_STARTS ? 0 : f->part == ROW_COUNTS ? 1 : 2 * ragged +
           leaves_before(ragged ? p->kind.list->items[1] : p->kind, f, 0, true, &leaf);
  bool given = flags && rows_mixed(leaf), constant = flags && !given;
  if (!constant && p->column[at + given].kind == V_NIL) {
    *made = true;
    if (!pack_new(vm, list, f, slot)) return false;
    p->column[at + given] = value_keep(value_obj(V_ARRAY, (void *)(uintptr_t)*slot));
    return true;
  }
  if (constant ? array_new(vm, DT_bool, 1, &room, &out) != WEFT_OK : !packed_column(vm, list, at + given, room, &out)) {
    if (!raised) vm_error_clear(vm);
    return false;
  }
  if (constant) memset(out.array->data, value_is_weak(leaf), (size_t)room);
  *slot = (u64)(uintptr_t)out.array;
  return true;
}

/* Depth is bounded: it has a layout. */
static u32 columns_of(Value kind, bool *arrays) {
  u32 n = kind.kind == V_LIST ? kind.list->count : kind.kind == V_RECORD ? kind.record->shape->count : 0, sum = 0;
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.kind == V_RECORD ? kind.record->items : NULL;
  *arrays |= kind.kind == V_ARRAY;
  for (u32 i = 0; i < n; i++) sum += columns_of(items[i], arrays);
  return items ? sum : rows_mixed(kind) ? 2 : 1;
}

Packed *rows_known(Vm *vm, List *l, bool ragged) {
  Value kind;
  u64 total = 0;
  bool arrays = false;
  if (l->packed || l->count < (u64)vm->tunables.packed_items) return rows_given(l, ragged);
  if (ragged && !rows_total(l->items, l->count, &total)) return NULL;
  if (!(ragged ? rows_ragged_kind(vm, l->items, l->count, &kind) : rows_kind(vm, l->items, l->count, &kind)))
    return NULL;
  u32 columns = ragged ? 2 + columns_of(kind.list->items[1], &arrays) : columns_of(kind, &arrays);
  if (arrays) value_drop(vm, kind);
  else if (list_keep(vm, l, kind, columns)) l->packed->reads = (u32)total;
  return rows_given(l, ragged);
}

/* ---- records by character -------------------------------------------------------------------- */

bool rows_keyed_fit(const Vm *vm, const Record *r, Value kind) {
  const Value number = {.kind = V_NUM, .dtype = kind.dtype, .flags = kind.flags};
  for (u32 i = 0; i < r->shape->count; i++) {
    Name key = r->shape->keys[i];
    if (value_tag(r->items[i]) != value_tag(number) || name_len(&vm->names, key) != 1 ||
        (u8)name_text(&vm->names, key)[0] >= 0x80)
      return false;
  }
  return true;
}

bool rows_keyed_kind(const Vm *vm, const Record *r, Value *kind) {
  if (!r->shape->count || r->items[0].kind != V_NUM || r->items[0].dtype == DT_c128) return false;
  *kind = rows_keyed_of(r->items[0].dtype, value_is_weak(r->items[0]));
  return rows_keyed_fit(vm, r, *kind);
}

static bool pack_keyed(Vm *vm, const Record *r, const Fill *f, u64 *slot) {
  Value kind = {0}, out;
  i64 room = KEYS_ROOM;
  memcpy(&kind, &f->tag, sizeof f->tag);
  u32 dtype = f->part == ROW_KEY_ORDER ? DT_i64 : f->part == ROW_KEY_THERE ? DT_bool : kind.dtype;
  bool raised = vm->error.raised;
  if (array_new_zero(vm, dtype, 1, &room, &out) != WEFT_OK) {
    if (!raised) vm_error_clear(vm);
    return false;
  }
  u8 *data = out.array->data;
  for (u32 i = 0; i < r->shape->count; i++) {
    u8 point = (u8)name_text(&vm->names, r->shape->keys[i])[0];
    if (f->part == ROW_KEY_ORDER) ((i64 *)(void *)data)[i] = point;
    else if (f->part == ROW_KEY_THERE) data[point] = 1;
    else num_store(data + point * dtype_bytes(dtype), dtype, r->items[i]);
  }
  *slot = (u64)(uintptr_t)out.array;
  return true;
}

static bool pack(Vm *vm, Value from, const Fill *f, u64 *slot, bool *made) {
  *made = true;
  if (f->part >= ROW_KEY_ORDER) return pack_keyed(vm, from.record, f, slot);
  if (from.kind == V_TEXT) return points_pack(vm, from.text, slot, made);
  if (!rows_given(from.list, f->part != ROW_ALL)) return pack_new(vm, from.list, f, slot);
  *made = false;
  return column_given(vm, from.list, f, slot, made);
}

bool rows_fill(Vm *vm, const GuardProg *p, const Value *scratch, u64 *slots) {
  u64 packed = 0;
  for (u32 i = 0; i < p->nfills; i++) {
    if (!p->fills[i].rows) continue;
    Value from = scratch[p->fills[i].from];
    bool made;
    if (pack(vm, from, &p->fills[i], &slots[i], &made)) {
      if (made)
        packed += (u64)((const Array *)(uintptr_t)slots[i])->size *
                  (p->fills[i].depth || p->fills[i].part == ROW_FLAT ? ROWS_DEEP : 1);
      continue;
    }
    while (i-- > 0)
      if (p->fills[i].rows) rows_give_back(vm, &slots[i]);
    return false;
  }
  *p->packed = packed;
  vm->counters.at[STAT_packed_elements] += packed;
  return true;
}

void rows_give_back(Vm *vm, u64 *slot) {
  if (*slot) value_drop(vm, value_obj(V_ARRAY, (void *)(uintptr_t)*slot));
  *slot = 0;
}

u64 guard_rows_packed(const GuardProg *p) { return *p->packed; }

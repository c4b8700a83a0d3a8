/* packed.c — lists whose items lie in columns (see packed.h); short texts as numbers. */
#include <string.h>

#include "vm/alloc.h"

/* ---- texts as numbers ------------------------------------------------------------------------------------------ */

enum { NUMBERED_MOST = 48, NAMES_MOST = 1 << 20 };

bool text_has_number(const Text *t) { return t->count == 1 || t->len <= NUMBERED_MOST; }

bool text_number(Vm *vm, const Text *t, i64 *out) {
  if (t->count == 1) text_points(t, out);
  if (t->count == 1) return true;
  Name n = t->len > NUMBERED_MOST ? 0 : name_find(&vm->names, t->data, t->len);
  if (n) name_stay(&vm->names, n); /* nobody counts numbers in columns */
  if (!n && t->len && t->len <= NUMBERED_MOST && vm->names.count < NAMES_MOST)
    n = name_intern(&vm->names, t->data, t->len);
  *out = -1 - (i64)n;
  return n || !t->len;
}

bool text_of_number(Vm *vm, i64 number, Value *out) {
  if (number >= 0) return text_of_point(vm, (u32)number, out);
  Name n = (Name)(-1 - number);
  return n ? text_new(vm, name_text(&vm->names, n), name_len(&vm->names, n), out) : text_new(vm, "", 0, out);
}

/* ---- made and freed --------------------------------------------------------------------------------------------- */

static size_t packed_bytes(u32 columns) { return sizeof(Packed) + sizeof(Value) * columns; }

bool list_of_columns(Vm *vm, Value kind, Value *columns, u32 n, u32 count, Value *out) {
  Packed *p = obj_alloc(vm, packed_bytes(n));
  if (!p || !list_new(vm, 0, out)) {
    if (p) obj_free(vm, p, packed_bytes(n));
    else (void)vm_error_memory(vm);
    value_drop(vm, kind);
    for (u32 i = 0; i < n; i++) value_drop(vm, columns[i]);
    return false;
  }
  p->kind = kind;
  p->columns = n;
  p->reads = 0;
  memcpy(p->column, columns, sizeof *columns * n);
  out->list->packed = p;
  out->list->count = count;
  return true;
}

void packed_free(Vm *vm, Packed *p) {
  value_drop(vm, p->kind); /* a few levels deep */
  for (u32 i = 0; i < p->columns; i++) value_drop(vm, p->column[i]);
  obj_free(vm, p, packed_bytes(p->columns));
}

bool packed_copy(Vm *vm, const List *l, Value *out) {
  Value columns[ROW_LEAVES];
  const Packed *p = l->packed;
  for (u32 i = 0; i < p->columns; i++) columns[i] = value_keep(p->column[i]);
  return list_of_columns(vm, value_keep(p->kind), columns, p->columns, l->count, out);
}

/* ---- items ----------------------------------------------------------------------------------- */

static u32 parts_of(Value v, Value **items) {
  *items = v.kind == V_LIST ? v.list->items : v.record->items;
  return v.kind == V_LIST ? v.list->count : v.record->shape->count;
}

/* *leaf: the column of the first leaf in `kind`; of the first one behind it afterwards. */
static bool make_item(Vm *vm, const Packed *p, Value kind, u32 *leaf, u32 at, Value *out) {
  if (kind.kind == V_NUM || kind.kind == V_HOLE) {
    const u8 *data = p->column[(*leaf)++].array->data;
    if (kind.kind == V_HOLE) return text_of_number(vm, ((const i64 *)(const void *)data)[at], out);
    *out = num_load(data + (size_t)at * dtype_bytes(kind.dtype), kind.dtype);
    out->flags |= kind.flags & VF_WEAK;
    if (kind.aux && ((const u8 *)p->column[(*leaf)++].array->data)[at]) out->flags |= VF_WEAK;
    return true;
  }
  Value *kinds, *items;
  u32 n = parts_of(kind, &kinds);
  if (kind.kind == V_LIST ? !list_new(vm, n, out) : !record_new_shape(vm, kind.record->shape, out)) return false;
  items = kind.kind == V_LIST ? out->list->items : out->record->items;
  for (u32 i = 0; i < n; i++) {
    if (!make_item(vm, p, kinds[i], leaf, at, &items[i])) {
      items[i] = value_nil();
      value_drop(vm, *out);
      return false;
    }
    if (kind.kind == V_LIST) out->list->count = i + 1;
  }
  return true;
}

bool vm_may_keep(const Vm *vm) { return !vm->limits.bytes || vm->stats.bytes_now < vm->limits.bytes / 2; }

bool list_box(Vm *vm, List *l) {
  Packed *p = l->packed;
  Value *items = l->count ? items_resize(vm, NULL, 0, l->count) : NULL;
  if (l->count && !items) return (void)vm_error_memory(vm), false;
  for (u32 i = 0; i < l->count; i++) {
    u32 leaf = 0;
    bool ok = make_item(vm, p, p->kind, &leaf, i, &items[i]);
    /* the host reads lists, too, and an interrupt then is for the next program */
    if (ok && (!vm->frame_count || vm_item(vm, i))) continue;
    if (ok) value_drop(vm, items[i]);
    while (i-- > 0) value_drop(vm, items[i]);
    items_free(vm, items, l->count);
    return false;
  }
  vm->counters.at[STAT_boxed_items] += l->count;
  l->items = items;
  l->cap = l->count;
  if (!items || !vm_may_keep(vm)) list_forget_slow(vm, l);
  return true;
}

bool list_keep(Vm *vm, List *l, Value kind, u32 columns) {
  Packed *p = l->items && columns <= ROW_LEAVES + 2 && vm_may_keep(vm) ? obj_alloc(vm, packed_bytes(columns)) : NULL;
  if (!p) {
    value_drop(vm, kind);
    return false;
  }
  *p = (Packed){.kind = kind, .columns = columns};
  for (u32 i = 0; i < columns; i++) p->column[i] = value_nil();
  l->packed = p;
  return true;
}

void list_forget_slow(Vm *vm, List *l) {
  packed_free(vm, l->packed);
  l->packed = NULL;
}

bool packed_item(Vm *vm, List *l, u32 at, Value *out) {
  u32 leaf = 0;
  const Packed *p = l->packed;
  u32 dtype = p->kind.dtype;
  if (p->kind.kind == V_NUM && (dtype == DT_i64 || dtype == DT_f64 || dtype == DT_bool) && !p->kind.aux &&
      p->reads < l->count) {
    const void *data = p->column[0].array->data;
    l->packed->reads++;
    *out = p->kind; /* weak or not */
    out->u = dtype == DT_bool ? ((const u8 *)data)[at] : ((const u64 *)data)[at];
    return true;
  }
  if (++l->packed->reads <= l->count) return make_item(vm, l->packed, l->packed->kind, &leaf, at, out);
  if (!list_box(vm, l)) return false;
  *out = value_keep(l->items[at]);
  return true;
}

/* Has v the look of `kind`, and its texts numbers? Depth is that of the kind. */
static bool fits(Vm *vm, Value kind, Value v) {
  i64 number;
  if (kind.kind == V_NUM) return kind.aux ? v.kind == V_NUM && v.dtype == kind.dtype : value_tag(v) == value_tag(kind);
  if (kind.kind == V_HOLE) return v.kind == V_TEXT && text_number(vm, v.text, &number);
  if (v.kind != kind.kind) return false;
  Value *kinds, *items;
  u32 n = parts_of(kind, &kinds);
  if (parts_of(v, &items) != n) return false;
  if (kind.kind == V_RECORD && v.record->shape != kind.record->shape &&
      memcmp(v.record->shape->keys, kind.record->shape->keys, sizeof(Name) * n) != 0)
    return false;
  for (u32 i = 0; i < n; i++)
    if (!fits(vm, kinds[i], items[i])) return false;
  return true;
}

static void put_item(Vm *vm, const Packed *p, Value kind, u32 *leaf, u32 at, Value v) {
  if (kind.kind == V_NUM || kind.kind == V_HOLE) {
    u8 *data = p->column[(*leaf)++].array->data;
    if (kind.kind == V_HOLE) (void)text_number(vm, v.text, (i64 *)(void *)data + at); /* as when it fitted */
    else num_store(data + (size_t)at * dtype_bytes(kind.dtype), kind.dtype, v);
    if (kind.aux) ((u8 *)p->column[(*leaf)++].array->data)[at] = value_is_weak(v);
    return;
  }
  Value *kinds, *items;
  u32 n = parts_of(kind, &kinds);
  (void)parts_of(v, &items);
  for (u32 i = 0; i < n; i++) put_item(vm, p, kinds[i], leaf, at, items[i]);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Elements that fit behind the beginning of a dense array, where its memory begins. */
static u64 capacity(const Array *a) {
  if (!a->owner) return (u64)a->size;
  if (a->head.flags & ARRAY_OWNER_ARRAY) return a->data == a->base->data ? (u64)a->base->size : (u64)a->size;
  const Storage *s = a->storage;
  if (a->data != s->data || s->device != DEV_CPU || s->head.flags & (STORAGE_EXTERNAL | STORAGE_SHARED))
    return (u64)a->size;
  return (s->bytes - (size_t)((const char *)s->data - (const char *)s)) / dtype_bytes(array_dtype(a));
}

/* A column with room for `need` items, of which `used` are there. */
static bool grown(Vm *vm, const Array *a, u64 used, u64 need, Value *out) {
  i64 room = (i64)(need + need / 2);
  if (array_new(vm, array_dtype(a), 1, &room, out) != WEFT_OK) return false;
  memcpy(out->array->data, a->data, used * dtype_bytes(array_dtype(a)));
  return true;
}

/* All columns may be written, up to item `need`. False: memory was refused; what was raised is forgotten. */
static bool packed_reserve(Vm *vm, List *l, u64 need) {
  Packed *p = l->packed;
  bool raised = vm->error.raised;
  for (u32 i = 0; i < p->columns; i++) {
    Array *a = p->column[i].array;
    Value more;
    if (array_writable(a) && capacity(a) >= need) continue;
    if (!grown(vm, a, l->count, need, &more)) {
      if (!raised) vm_error_forget(vm);
      return false;
    }
    value_drop(vm, p->column[i]);
    p->column[i] = more;
  }
  return true;
}

/* A number behind numbers of one kind, where there is room. */
static bool push_number(List *l, Value v) {
  const Packed *p = l->packed;
  if (p->kind.kind != V_NUM || p->kind.aux || value_tag(v) != value_tag(p->kind) || l->head.refs != 1) return false;
  Array *a = p->column[0].array;
  u32 bytes = dtype_bytes(v.dtype);
  if (!array_writable(a) || capacity(a) <= l->count || l->count >= UINT32_MAX / 4) return false;
  num_store((u8 *)a->data + (size_t)l->count++ * bytes, v.dtype, v);
  return true;
}

bool packed_extend(Vm *vm, Value *list, const Value *items, u32 n) {
  List *l = list->list;
  if (n == 1 && push_number(l, *items)) return true;
  u64 count = (u64)l->count + n;
  bool raised = vm->error.raised;
  if (count > UINT32_MAX / 4) return false;
  for (u32 i = 0; i < n; i++)
    if (!fits(vm, l->packed->kind, items[i])) return false;
  if (l->head.refs > 1) {
    Value own;
    if (!packed_copy(vm, l, &own)) {
      if (!raised) vm_error_forget(vm);
      return false;
    }
    if (!packed_reserve(vm, own.list, count)) {
      value_drop(vm, own);
      return false;
    }
    value_drop(vm, *list);
    *list = own;
    l = own.list;
  } else if (!packed_reserve(vm, l, count)) {
    return false;
  }
  for (u32 i = 0; i < n; i++) {
    u32 leaf = 0;
    put_item(vm, l->packed, l->packed->kind, &leaf, l->count++, items[i]);
  }
  return true;
}

bool packed_set(Vm *vm, List *l, u32 at, Value item) {
  u32 leaf = 0;
  if (l->head.refs != 1 || !fits(vm, l->packed->kind, item) || !packed_reserve(vm, l, l->count)) return false;
  put_item(vm, l->packed, l->packed->kind, &leaf, at, item);
  return true;
}

void packed_shorten(Vm *vm, List *l, u32 count) {
  l->count = count;
  if (count) return;
  packed_free(vm, l->packed);
  l->packed = NULL;
}

bool packed_column(Vm *vm, List *l, u32 leaf, i64 room, Value *out) {
  const i64 by_one = 1;
  Value *column = &l->packed->column[leaf], more;
  if (capacity(column->array) < (u64)room) {
    if (!grown(vm, column->array, l->count, (u64)room, &more)) return false;
    value_drop(vm, *column);
    *column = more;
  }
  if (column->array->size == room) {
    *out = value_keep(*column);
    return true;
  }
  return array_view(vm, column->array, 0, 1, &room, &by_one, out) == WEFT_OK;
}

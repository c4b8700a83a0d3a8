/* rows.c — lists of numbers of one kind and the code points of texts, packed into an array with room behind them when a
 * region is entered. */
#include "guards/guards_inner.h"

#include <string.h>

bool rows_kind(const Value *items, u32 count, Value *kind) {
  if (!count || items[0].kind != V_NUM) return false;
  *kind = items[0];
  return rows_fit(items, count, value_tag(items[0]));
}

bool rows_fit(const Value *items, u32 count, u64 tag) {
  u64 differ = 0;
  for (u32 i = 0; i < count; i++) differ |= value_tag(items[i]) ^ tag;
  return differ == 0;
}

/* What lies behind the items is zero, so that two packings of a list are equal. */
bool rows_pack(Vm *vm, const List *list, u64 tag, u64 *slot) {
  Value kind = {0}, out;
  memcpy(&kind, &tag, sizeof tag);
  i64 room = 2 * (i64)list->count + ROWS_ROOM;
  bool raised = vm->error.raised;
  if (array_new(vm, kind.dtype, 1, &room, &out) != WEFT_OK) {
    if (!raised) vm_error_clear(vm);
    return false;
  }
  u8 *data = out.array->data;
  size_t size = dtype_bytes(kind.dtype);
  if (size == 8)
    for (u32 i = 0; i < list->count; i++) ((u64 *)(void *)data)[i] = list->items[i].bits;
  else
    for (u32 i = 0; i < list->count; i++) num_store(data + i * size, kind.dtype, list->items[i]);
  memset(data + list->count * size, 0, ((size_t)room - list->count) * size);
  *slot = (u64)(uintptr_t)out.array;
  return true;
}

/* The code points of a text, as rows. */
static bool points_pack(Vm *vm, const Text *t, u64 *slot) {
  i64 room = 2 * (i64)t->count + ROWS_ROOM;
  bool raised = vm->error.raised;
  Value out;
  if (array_new(vm, DT_i64, 1, &room, &out) != WEFT_OK) {
    if (!raised) vm_error_clear(vm);
    return false;
  }
  i64 *data = (i64 *)(void *)out.array->data;
  text_points(t, data);
  memset(data + t->count, 0, ((size_t)room - t->count) * sizeof *data);
  *slot = (u64)(uintptr_t)out.array;
  return true;
}

static bool pack(Vm *vm, Value from, u64 tag, u64 *slot) {
  return from.kind == V_TEXT ? points_pack(vm, from.text, slot) : rows_pack(vm, from.list, tag, slot);
}

bool rows_fill(Vm *vm, const GuardProg *p, const Value *scratch, u64 *slots) {
  for (u32 i = 0; i < p->nfills; i++) {
    if (!p->fills[i].rows) continue;
    if (pack(vm, scratch[p->fills[i].from], p->fills[i].tag, &slots[i])) continue;
    while (i-- > 0)
      if (p->fills[i].rows) rows_give_back(vm, &slots[i]);
    return false;
  }
  return true;
}

void rows_give_back(Vm *vm, u64 *slot) {
  if (*slot) value_drop(vm, value_obj(V_ARRAY, (void *)(uintptr_t)*slot));
  *slot = 0;
}

u64 guard_rows_packed(const GuardProg *p, const u64 *slots) {
  u64 n = 0;
  for (u32 i = 0; p->nrows && i < p->nfills; i++)
    if (p->fills[i].rows && slots[i]) n += (u64)((const Array *)(uintptr_t)slots[i])->size;
  return n;
}

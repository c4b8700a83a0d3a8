/* list.c — lists: a counted head with a vector of values that grows by doubling. */
#include <string.h>

#include "vm/alloc.h"

bool list_new(Vm *vm, u32 cap, Value *out) {
  List *l = obj_alloc(vm, sizeof *l);
  Value *items = l && cap ? items_resize(vm, NULL, 0, cap) : NULL;
  if (!l || (cap && !items)) {
    if (l) obj_free(vm, l, sizeof *l);
    return (void)vm_error_memory(vm), false;
  }
  *l = (List){.head = {1, 0}, .cap = cap, .items = items};
  *out = value_obj(V_LIST, l);
  return true;
}

bool list_from(Vm *vm, const Value *items, u32 count, Value *out) {
  if (!list_new(vm, count, out)) return false;
  for (u32 i = 0; i < count; i++) {
    out->list->items[i] = value_keep(items[i]);
    out->list->count = i + 1;
    if (vm_item(vm, i)) continue;
    value_drop(vm, *out);
    return false;
  }
  return true;
}

bool list_unique(Vm *vm, Value *list) {
  List *l = list->list;
  if (!list_boxed(vm, l)) return false;
  if (l->head.refs == 1) {
    list_forget(vm, l);
    return true;
  }
  Value copy;
  if (!list_from(vm, l->items, l->count, &copy)) return false;
  l->head.refs--;
  *list = copy;
  return true;
}

static bool list_reserve(Vm *vm, List *l, u64 need) {
  if (need <= l->cap) return true;
  u64 cap = (u64)l->cap * 2 > 4 ? (u64)l->cap * 2 : 4;
  if (cap < need) cap = need;
  if (cap > UINT32_MAX / 2)
    return (void)vm_error(vm, EK_limit, "a list of %llu items is too long", (unsigned long long)need), false;
  Value *items = items_resize(vm, l->items, l->cap, (u32)cap);
  if (!items) return (void)vm_error_memory(vm), false;
  l->items = items;
  l->cap = (u32)cap;
  return true;
}

bool list_push(Vm *vm, Value *list, Value item) {
  if (list_is_packed(list->list) && packed_extend(vm, list, &item, 1)) {
    value_drop(vm, item);
    return true;
  }
  if (!list_unique(vm, list) || !list_reserve(vm, list->list, (u64)list->list->count + 1)) {
    value_drop(vm, item);
    return false;
  }
  list->list->items[list->list->count++] = item;
  return true;
}

bool list_extend(Vm *vm, Value *list, const Value *items, u32 count) {
  if (list_is_packed(list->list) && packed_extend(vm, list, items, count)) return true;
  if (!list_unique(vm, list)) return false;
  List *l = list->list;
  bool self = items >= l->items && items < l->items + l->count; /* xs + xs: the vector may move */
  size_t at = self ? (size_t)(items - l->items) : 0;
  if (!list_reserve(vm, l, (u64)l->count + count)) return false;
  if (self) items = l->items + at;
  for (u32 i = 0; i < count; i++) {
    l->items[l->count + i] = value_keep(items[i]);
    if (vm_item(vm, i)) continue;
    for (u32 k = 0; k <= i; k++) value_drop(vm, l->items[l->count + k]);
    return false;
  }
  l->count += count;
  return true;
}

void list_shorten(Vm *vm, List *l, u32 start, u32 count) {
  u32 was = l->count;
  if (list_is_packed(l)) {
    packed_shorten(vm, l, count);
    return;
  }
  list_forget(vm, l);
  for (u32 i = 0; i < start; i++) value_drop(vm, l->items[i]);
  for (u32 i = start + count; i < was; i++) value_drop(vm, l->items[i]);
  if (start && count) memmove(l->items, l->items + start, count * sizeof *l->items);
  l->count = count;
  if (l->cap <= 64 || count >= l->cap / 4) return;
  Value *items = items_resize(vm, l->items, l->cap, l->cap / 2);
  if (!items) return; /* it stays as long as it is */
  l->items = items;
  l->cap /= 2;
}

/* list_sets.c — unique and isin of lists: items that are equal, found by their order (sort.c). */
#include "stdlib/array/order.h"

/* Positions that sort the items of a list, and for each of them in that order the number of its group of equal ones. */
typedef struct Grouped {
  Value at, group; /* i64, owned */
  i64 count;       /* of groups */
} Grouped;

static WeftStatus grouped(Vm *vm, u32 op, Value list, Grouped *out) {
  const i64 n = list.list->count;
  out->count = 0;
  TRY(order_list(vm, op, list, value_nil(), false, &out->at));
  WeftStatus status = array_new(vm, DT_i64, 1, &n, &out->group);
  if (status != WEFT_OK) {
    value_drop(vm, out->at);
    return status;
  }
  const i64 *at = out->at.array->data;
  i64 *group = out->group.array->data;
  for (i64 k = 0; k < n && status == WEFT_OK; k++) {
    bool same = false;
    if (k) status = value_equal(vm, list.list->items[at[k - 1]], list.list->items[at[k]], &same);
    group[k] = out->count += !same;
    if (status == WEFT_OK) status = vm_walk(vm);
  }
  if (status == WEFT_OK) return WEFT_OK;
  value_drop(vm, out->at);
  value_drop(vm, out->group);
  return status;
}

static void grouped_drop(Vm *vm, Grouped *g) {
  value_drop(vm, g->at);
  value_drop(vm, g->group);
}

WeftStatus unique_list(Vm *vm, Value list, const bool want[3], Value *out) {
  const i64 n = list.list->count;
  Grouped g;
  Value results[4] = {value_hole(), value_hole(), value_hole(), value_hole()}; /* items; index, inverse, counts */
  TRY(grouped(vm, OP_unique, list, &g));
  const i64 *at = g.at.array->data, *group = g.group.array->data;
  WeftStatus status = list_new(vm, (u32)g.count, &results[0]) ? WEFT_OK : WEFT_ERROR;
  if (status != WEFT_OK) results[0] = value_hole();
  for (u32 i = 0; i < 3 && status == WEFT_OK; i++) {
    const i64 size = i == 1 ? n : g.count;
    if (want[i]) status = array_new_zero(vm, DT_i64, 1, &size, &results[i + 1]);
    if (status != WEFT_OK) results[i + 1] = value_hole();
  }
  for (i64 k = 0; k < n && status == WEFT_OK; k++) {
    const i64 which = group[k] - 1;
    if (!k || group[k - 1] != group[k]) {
      status = list_add(vm, &results[0], value_keep(list.list->items[at[k]]));
      if (status != WEFT_OK) results[0] = value_hole(); /* list_add has dropped it */
      if (want[0]) ((i64 *)results[1].array->data)[which] = at[k];
    }
    if (want[1]) ((i64 *)results[2].array->data)[at[k]] = which;
    if (want[2]) ((i64 *)results[3].array->data)[which]++;
  }
  grouped_drop(vm, &g);
  if (status == WEFT_OK && !want[0] && !want[1] && !want[2]) {
    *out = results[0];
    return WEFT_OK;
  }
  if (status == WEFT_OK && !list_new(vm, 4, out)) status = WEFT_ERROR;
  for (u32 i = 0; i < 4; i++) { /* a list that cannot grow is dropped */
    if (status == WEFT_OK && (i == 0 || want[i - 1])) status = list_add(vm, out, results[i]);
    else if (results[i].kind != V_HOLE) value_drop(vm, results[i]);
  }
  return status;
}

/* Which items of the first list are in the second: both are ordered as one. */
WeftStatus isin_list(Vm *vm, Value x, Value values, Value *out) {
  const i64 n = x.list->count;
  Value both;
  Grouped g;
  if (!list_new(vm, x.list->count + values.list->count, &both)) return WEFT_ERROR;
  for (u32 i = 0; i < 2; i++) {
    const List *l = i ? values.list : x.list;
    for (u32 k = 0; k < l->count; k++) TRY(list_add(vm, &both, value_keep(l->items[k])));
  }
  WeftStatus status = grouped(vm, OP_isin, both, &g);
  if (status == WEFT_OK) {
    const i64 *at = g.at.array->data, *group = g.group.array->data, all = both.list->count;
    status = array_new_zero(vm, DT_bool, 1, &n, out);
    for (i64 k = 0, end = 0; k < all && status == WEFT_OK; k = end) {
      bool found = false;
      for (end = k; end < all && group[end] == group[k]; end++) found |= at[end] >= n;
      for (i64 i = k; i < end; i++)
        if (at[i] < n) ((u8 *)out->array->data)[at[i]] = found;
    }
    grouped_drop(vm, &g);
  }
  value_drop(vm, both);
  return status;
}

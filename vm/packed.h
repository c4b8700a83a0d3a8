/* packed.h — lists whose items lie in columns, as compiled code leaves them: an array for each number or short text
 * of an item.
 *
 * Items are made of them when somebody looks at all of them (list_boxed); single ones are read, set and appended
 * where they lie. Only what a register, a variable of a module or a walk holds may be packed: nothing that other
 * values, closures, refs or hosts hold is. A boxed list may keep columns beside its items until it is changed, so
 * that a region that is entered again finds them. */
#ifndef WEFT_VM_PACKED_H
#define WEFT_VM_PACKED_H

#include "vm/vm.h" /* which includes this at its end */

enum { ROW_LEAVES = 16 }; /* numbers and texts in an item, at most */

typedef struct Packed {
  /* what an item looks like: a number of this dtype, weak or not, or, with `aux`, either: then a column of bools says
   * which; V_HOLE: a text by its number; lists and records of such */
  Value kind;
  u32 columns;
  u32 reads;         /* items that were made one by one; of lists of any length: how many items they have together */
  /* arrays of rank 1; they may have room behind the items. Beside boxed items: or nil, not made yet */
  Value column[];
} Packed;

/* A text as a number: a single character its code point, another short one less than 0. False: too long, or memory was
 * refused. */
bool text_has_number(const Text *t);
bool text_number(Vm *vm, const Text *t, i64 *out);
bool text_of_number(Vm *vm, i64 number, Value *out); /* raises when memory is refused */

/* A list of `count` items, more than none, in n columns. Consumes kind and columns, whatever comes of it; raises. */
bool list_of_columns(Vm *vm, Value kind, Value *columns, u32 n, u32 count, Value *out) MUST_USE;

static inline bool list_is_packed(const List *l) { return l->packed && !l->items; }
bool list_box(Vm *vm, List *l) MUST_USE; /* raises when memory is refused */
static inline bool list_boxed(Vm *vm, List *l) { return LIKELY(!l->packed) || l->items || list_box(vm, l); }
static inline bool value_boxed(Vm *vm, Value v) { return v.kind != V_LIST || list_boxed(vm, v.list); }
static inline bool values_boxed(Vm *vm, const Value *v, u32 n) {
  for (u32 i = 0; i < n; i++)
    if (UNLIKELY(!value_boxed(vm, v[i]))) return false;
  return true;
}

/* Item `at` of a packed list, in bounds; *out owned. When as many were read as there are, the list is boxed. Raises. */
bool packed_item(Vm *vm, List *l, u32 at, Value *out) MUST_USE;
/* Items behind those of a packed list, or in place of item `at`. False: they do not fit, or memory was refused: nothing
 * was done. */
bool packed_extend(Vm *vm, Value *list, const Value *items, u32 n) MUST_USE;
bool packed_set(Vm *vm, List *l, u32 at, Value item) MUST_USE;
/* The first `count` of them alone. */
void packed_shorten(Vm *vm, List *l, u32 count);
/* Another list of the same columns. Raises. */
bool packed_copy(Vm *vm, const List *l, Value *out) MUST_USE;
/* What is kept for later stays as long as its list or text: not where memory may run short for that. */
bool vm_may_keep(const Vm *vm);
/* A boxed list keeps so many columns, of which none is made yet. Consumes kind; false: it does not, or memory was
 * refused. */
bool list_keep(Vm *vm, List *l, Value kind, u32 columns);
void list_forget_slow(Vm *vm, List *l);
/* Before a boxed list is changed: what it keeps would not fit any more. */
static inline void list_forget(Vm *vm, List *l) {
  if (UNLIKELY(l->packed != NULL)) list_forget_slow(vm, l);
}
/* The column of a leaf as an array of `room` elements, at least as many as there are items; *out owned. Raises. */
bool packed_column(Vm *vm, List *l, u32 leaf, i64 room, Value *out) MUST_USE;
void packed_free(Vm *vm, Packed *p);

#endif

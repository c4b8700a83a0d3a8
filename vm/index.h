/* index.h — what an index on an array selects, for reading and for writing. */
#ifndef WEFT_VM_INDEX_H
#define WEFT_VM_INDEX_H

#include "vm/vm.h"

/* A selection. Without index arrays it is a view: dims, strides, offset. With them, the axes of the view that no
 * array indexes stay (dims …), and `count` places, each an element offset, are put in before view axis `at`. */
typedef struct Selection {
  u32 rank; /* of the view */
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
  i64 offset;
  bool gathers;
  u32 at;
  u32 place_rank;
  i64 place_dims[ARRAY_MAX_RANK];
  i64 count;
  i64 *places; /* from vm->alloc; count entries */
} Selection;

/* Errors: index, shape, dtype, type. On success selection_free it. */
WeftStatus selection_make(Vm *vm, Array *a, const u8 *items, u32 item_count, const Value *regs,
                          Selection *out) MUST_USE;
void selection_free(Vm *vm, Selection *s);
/* Dims of the result: view axes with the place axes put in. */
u32 selection_dims(const Selection *s, i64 *dims);
/* Do the elements of such a view lie one and the same step apart, in row-major order? */
bool linear_walk(u32 rank, const i64 *dims, const i64 *strides, i64 *step);

/* One mask over the first axes of an array, both on the same device. */
/* An array among what an index is made of, where it or the array lies on a device. */
bool index_has_device_places(const Array *a, const u8 *items, u32 item_count, const Value *regs);
bool index_is_device_mask(Array *a, const u8 *items, u32 item_count, const Value *regs);
/* to(v, device) of an array; anything else as it is. *out owned. */
WeftStatus index_taken_to(Vm *vm, Value v, u32 device, Value *out) MUST_USE;

/* Registers that index items take. */
u32 index_register_count(const u8 *items, u32 item_count);

/* One integer index, wrapped and checked. `what` names the thing for the error. */
WeftStatus index_integer(Vm *vm, Value v, i64 size, const char *what, i64 *out) MUST_USE;
/* Python's slice: first item, number of items, step. */
WeftStatus index_slice(Vm *vm, const Value *regs, i64 size, i64 *start, i64 *count, i64 *step) MUST_USE;
/* The items of a range that lie in 0 … size-1. */
void index_range(const Range *r, i64 size, i64 *start, i64 *count, i64 *step);

#endif

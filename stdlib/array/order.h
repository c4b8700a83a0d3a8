/* order.h — sorting by 64-bit keys. Every dtype maps to unsigned keys that order as its values do: NaN last, also
 * descending; -0 and +0 equal. All sorts are stable. */
#ifndef WEFT_STDLIB_ORDER_H
#define WEFT_STDLIB_ORDER_H

#include "stdlib/array/make.h"

typedef struct Keyed {
  u64 key;
  i64 at; /* position before */
} Keyed;

/* All of them look at the clock now and then. WEFT_ERROR: that raised, and what they were to write is half done. */

/* Keys of n elements of `dtype`, `stride` elements apart. *hidden: some element is -0, which its key does not show. */
WeftStatus keys_make(Vm *vm, u64 *keys, const void *x, i64 n, i64 stride, u32 dtype, bool descending,
                     bool *hidden) MUST_USE;
/* Positions that sort n integers, many and close together: by counts of each value, with no memory but these counts.
 * *done: they were. */
WeftStatus keys_count(Vm *vm, const void *x, i64 n, i64 stride, u32 dtype, bool descending, i64 *at,
                      bool *done) MUST_USE;
/* The element of a key (NaN: the positive quiet one; -0 as 0). */
void keys_value(u64 key, u32 dtype, bool descending, void *out);
bool key_is_nan(u64 key, u32 dtype);

/* Sort n entries; `spare` has room for as many. The result lies in `x`. */
WeftStatus keys_sort(Vm *vm, u64 *x, u64 *spare, i64 n) MUST_USE;
WeftStatus keyed_sort(Vm *vm, Keyed *x, Keyed *spare, i64 n) MUST_USE;
/* The keys with their positions, sorted. */
WeftStatus keyed_order(Vm *vm, const u64 *keys, Keyed *x, Keyed *spare, i64 n) MUST_USE;
/* Positions by any order: `less` must be a strict weak one. */
WeftStatus positions_sort(Vm *vm, i64 *at, i64 *spare, i64 n, bool (*less)(const void *ctx, i64 a, i64 b),
                          const void *ctx) MUST_USE;

/* Positions that sort a list of numbers, texts or lists of them, by what the function `key` gives where it is no nil:
 * i64 of rank 1, owned. */
WeftStatus order_list(Vm *vm, u32 op, Value list, Value key, bool descending, Value *positions) MUST_USE;
/* Of lists; want: index, inverse, counts. */
WeftStatus unique_list(Vm *vm, Value list, const bool want[3], Value *out) MUST_USE;
WeftStatus isin_list(Vm *vm, Value x, Value values, Value *out) MUST_USE;

#endif

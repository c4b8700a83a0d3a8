/* order.h — sorting by 64-bit keys. Every dtype maps to unsigned keys that order as its values do: NaN last, also
 * descending; -0 and +0 equal. All sorts are stable. */
#ifndef WEFT_STDLIB_ORDER_H
#define WEFT_STDLIB_ORDER_H

#include "stdlib/array/make.h"

typedef struct Keyed {
  u64 key;
  i64 at; /* position before */
} Keyed;

/* Keys of n elements of `dtype`, `stride` elements apart. True: some element is -0, which its key does not show. */
bool keys_make(u64 *keys, const void *x, i64 n, i64 stride, u32 dtype, bool descending);
/* The element of a key (NaN: the positive quiet one; -0 as 0). */
void keys_value(u64 key, u32 dtype, bool descending, void *out);
bool key_is_nan(u64 key, u32 dtype);

/* Sort n entries; `spare` has room for as many. The result lies in `x`. */
void keys_sort(u64 *x, u64 *spare, i64 n);
void keyed_sort(Keyed *x, Keyed *spare, i64 n);
/* Positions by any order: `less` must be a strict weak one. */
void positions_sort(i64 *at, i64 *spare, i64 n, bool (*less)(const void *ctx, i64 a, i64 b), const void *ctx);

#endif

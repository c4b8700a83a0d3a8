/* affine.h — indices of kernels: sums of size expressions times loop variables, and index vectors of them.
 *
 * An Aff is c + sum of factor * var, with sizes as factors; equal ones have equal ids. An Ix says which element of a
 * value is meant: one Aff for each axis, or (linear) one Aff that is the row-major number of the element. */
#ifndef WEFT_JIT_AFFINE_H
#define WEFT_JIT_AFFINE_H

#include "jit/lower/compile.h"

typedef struct AffTerm {
  u32 var;
  Dim factor;
} AffTerm;

typedef struct Aff {
  Dim c;
  u32 first, count; /* Affines.terms, sorted by var */
} Aff;

typedef struct Ix {
  bool linear;
  u8 count;
  u32 first; /* Affines.items */
} Ix;

typedef struct Affines {
  Allocator *alloc;
  SizePool *sizes;
  VEC(Aff) affs;      /* entry 0 is the constant 0 */
  VEC(AffTerm) terms;
  VEC(Ix) ixs;        /* entry 0 is the index of a number: no axes */
  VEC(u32) items;
  u32 *aff_table, *ix_table; /* open addressing */
  u32 aff_slots, ix_slots;
  bool failed;   /* memory was refused */
  bool too_big;  /* a size expression got too large */
} Affines;

bool affines_init(Affines *a, Allocator *alloc, SizePool *sizes);
void affines_free(Affines *a);
void affines_clear(Affines *a);

u32 aff_const(Affines *a, Dim c);
u32 aff_var(Affines *a, u32 var);
u32 aff_add(Affines *a, u32 x, u32 y);
u32 aff_scale(Affines *a, u32 x, Dim by);
static inline const Aff *aff_at(const Affines *a, u32 x) { return &a->affs.data[x]; }
static inline const AffTerm *aff_terms(const Affines *a, u32 x) { return a->terms.data + a->affs.data[x].first; }

u32 ix_make(Affines *a, u32 count, const u32 *affs);
u32 ix_linear(Affines *a, u32 aff);
static inline const Ix *ix_at(const Affines *a, u32 x) { return &a->ixs.data[x]; }
/* 0 beyond the end: what a failure leaves is shorter than it should be. */
static inline u32 ix_item(const Affines *a, u32 x, u32 i) {
  return i < a->ixs.data[x].count ? a->items.data[a->ixs.data[x].first + i] : 0;
}
/* Row-major (or any strides') number of the element that a vector index names. */
u32 ix_offset(Affines *a, u32 ix, const Dim *strides);

#endif

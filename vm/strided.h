/* strided.h — copying and converting elements between strided places in host memory. */
#ifndef WEFT_VM_STRIDED_H
#define WEFT_VM_STRIDED_H

#include "vm/array.h"

/* dst[…] = src[…] for elements of `bytes` (1, 2, 4, 8 or 16); strides in elements. No overlap unless equal. Of many
 * elements the threads of `vm` share them; NULL: they do not. */
void strided_copy(Vm *vm, u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides, const void *src,
                  const i64 *src_strides);

/* The same in parts, with looks at the clock between them. WEFT_ERROR: one raised, the rest is missing. */
WeftStatus strided_copy_polled(Vm *vm, u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides,
                               const void *src, const i64 *src_strides) MUST_USE;

/* Of a large result that lies together (but for a source that lies otherwise than transposed: false, nothing is
 * done): parts of its rows, before they are stored. `run` gets `n` elements at `at`, which are the result's from
 * number `first` on, and changes them in their place; any thread. */
typedef struct StridedThen {
  void (*run)(void *ctx, void *at, i64 first, i64 n);
  void *ctx;
  /* the elements' numbers do not matter: `first` is 0, and other elements may lie between those of a part */
  bool anywhere;
} StridedThen;
bool strided_transpose(Vm *vm, u32 bytes, const i64 *dims, void *dst, const void *src, const i64 *src_strides,
                  const StridedThen *then);

#ifdef __x86_64__
/* 8 × 8 elements of 8 bytes, transposed, for processors with AVX-512: rows of `from` begin `apart` elements from
 * each other, those of `to` `pitch`; what lies `next` elements behind each row that is read is fetched. */
void strided_transpose_square(void *to, i64 pitch, const void *from, i64 apart, i64 next);
/* The same in registers. */
typedef f64 StridedRow __attribute__((vector_size(64)));
typedef i64 StridedPlaces __attribute__((vector_size(64)));
/* The elements of x (0 … 7) and y (8 … 15) at these places. */
#ifdef __clang__
#define STRIDED_PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define STRIDED_PICK(x, y, ...) __builtin_shuffle(x, y, (StridedPlaces){__VA_ARGS__})
#endif
__attribute__((target("avx512f"), always_inline)) static inline void strided_square(StridedRow *r) {
  StridedRow a[8], b[8];
  UNROLL(4) for (u32 i = 0; i < 8; i += 2) {
    a[i] = STRIDED_PICK(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    a[i + 1] = STRIDED_PICK(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  UNROLL(2) for (u32 i = 0; i < 8; i += 4)
    UNROLL(2) for (u32 j = i; j < i + 2; j++) {
      b[j] = STRIDED_PICK(a[j], a[j + 2], 0, 1, 4, 5, 8, 9, 12, 13);
      b[j + 2] = STRIDED_PICK(a[j], a[j + 2], 2, 3, 6, 7, 10, 11, 14, 15);
    }
  UNROLL(4) for (u32 j = 0; j < 4; j++) {
    r[j] = STRIDED_PICK(b[j], b[j + 4], 0, 1, 4, 5, 8, 9, 12, 13);
    r[j + 4] = STRIDED_PICK(b[j], b[j + 4], 2, 3, 6, 7, 10, 11, 14, 15);
  }
}
#endif

/* The same with conversion of numbers, of complex ones to complex alone; for float to integer the caller has checked
 * the range. */
void strided_convert(u32 rank, const i64 *dims, u32 dst_dtype, void *dst, const i64 *dst_strides, u32 src_dtype,
                     const void *src, const i64 *src_strides);
WeftStatus strided_convert_polled(Vm *vm, u32 rank, const i64 *dims, u32 dst_dtype, void *dst, const i64 *dst_strides,
                                  u32 src_dtype, const void *src, const i64 *src_strides) MUST_USE;

/* dst[…] = one element of `bytes`. */
void strided_fill(u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides, const void *element);
WeftStatus strided_fill_polled(Vm *vm, u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides,
                               const void *element) MUST_USE;

#endif

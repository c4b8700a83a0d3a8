/* array.h — hand-off format: arrays, views and storage.
 * Described in docs/formats/values.md.
 *
 * An array is one allocation: head, tag, geometry and, up to ARRAY_INLINE_MAX bytes, the data.
 * `data` points to element (0, …, 0). Strides are in elements, signed; 0 means broadcast.
 * A view pins `owner`: a Storage, or the Array whose inline data it shows. */
#ifndef WEFT_VM_ARRAY_H
#define WEFT_VM_ARRAY_H

#include "vm/value.h"

enum { ARRAY_MAX_RANK = 16, ARRAY_INLINE_MAX = 512, STORAGE_ALIGN = 64 };
#define ARRAY_MAX_SIZE ((i64)1 << 62) /* exclusive */

typedef enum DeviceId { DEV_CPU = 0, DEV_GPU = 1, DEV_HOST = 2 /* the one that a host registered */ } DeviceId;

/* Layout classes, cheapest first. Sizes-1 axes do not count.
 * DENSE: row-major without gaps. ROWS: last stride 1, outer strides free. STRIDED: any non-zero strides.
 * BROADCAST: some axis of size > 1 has stride 0. */
typedef enum Layout { LAY_DENSE, LAY_ROWS, LAY_STRIDED, LAY_BROADCAST } Layout;

/* tag word: kind 0-7 (V_ARRAY), dtype 8-15, rank 16-23, device 24-31, layout 32-39 */
#define ARRAY_TAG(dtype, rank, device, layout) \
  ((u64)V_ARRAY | (u64)(dtype) << 8 | (u64)(rank) << 16 | (u64)(device) << 24 | (u64)(layout) << 32)

enum {
  STORAGE_SHARED = 1,   /* counts atomically, never unique: frozen between VMs, or lent by a host */
  STORAGE_EXTERNAL = 2, /* `release` frees it */
};

typedef struct Storage {
  Obj head; /* refs; flags = STORAGE_* */
  size_t bytes; /* of data; of an allocation of its own that holds head and data: all of it */
  void *data;
  u32 device;
  void (*release)(void *ctx, void *data, size_t bytes); /* external only */
  void *release_ctx;
} Storage;

enum {
  ARRAY_OWNER_ARRAY = 1, /* `owner` is an Array */
  ARRAY_OVERLAPS = 2,    /* two indices may name one element (sliding windows): never written in place */
};

typedef struct Array {
  Obj head; /* refs; flags = ARRAY_* */
  u64 tag;
  void *data;
  union { /* NULL: the data lies inline in this allocation */
    Storage *storage;
    struct Array *base;
    Obj *owner;
  };
  i64 size;      /* number of elements */
  i64 geometry[]; /* dims[rank], strides[rank], then inline data (16-aligned) */
} Array;

static inline u32 array_dtype(const Array *a) { return (u8)(a->tag >> 8); }
static inline u32 array_rank(const Array *a) { return (u8)(a->tag >> 16); }
static inline u32 array_device(const Array *a) { return (u8)(a->tag >> 24); }
static inline u32 array_layout(const Array *a) { return (u8)(a->tag >> 32); }
static inline i64 *array_dims(Array *a) { return a->geometry; }
static inline i64 *array_strides(Array *a) { return a->geometry + array_rank(a); }
/* Said where elements are read or written as memory of the processor; the sanitized build looks. Elsewhere the stand-in
 * driver of the tests ends the process: its addresses are none of the host's. */
#ifdef __SANITIZE_ADDRESS__
#define ARRAY_HERE(a) ((void)(array_device(a) == DEV_CPU || (__builtin_trap(), 0)))
#else
#define ARRAY_HERE(a) ((void)0)
#endif
static inline bool array_dense(const Array *a) { return array_layout(a) == LAY_DENSE; }

/* A new array with its own, uninitialised, dense row-major data. `device` DEV_CPU needs no hook.
 * Checks rank and size. Errors: shape, limit. */
WeftStatus array_new(Vm *vm, u32 dtype, u32 rank, const i64 *dims, Value *out) MUST_USE;
/* on the processor, of the shape of `like` */
WeftStatus array_new_like(struct Vm *vm, u32 dtype, const Array *like, Value *out) MUST_USE;
/* its elements, in order, as an array of the processor; *out owned */
WeftStatus array_from_device(Vm *vm, Array *a, Value *out) MUST_USE;
WeftStatus array_new_on(Vm *vm, u32 device, u32 dtype, u32 rank, const i64 *dims, Value *out) MUST_USE;
WeftStatus array_new_zero(Vm *vm, u32 dtype, u32 rank, const i64 *dims, Value *out) MUST_USE;
/* Result holder for kernels: rank 0 gives a V_NUM later; see array_finish. */

/* A view on the data of `of` (borrowed; pinned by the result), offset in elements from its element 0.
 * No bounds are checked: the caller has. */
WeftStatus array_view(Vm *vm, Array *of, i64 offset, u32 rank, const i64 *dims, const i64 *strides,
                      Value *out) MUST_USE;
/* An array over host memory; `release` may be NULL. Shared storage: never updated in place. */
WeftStatus array_external(Vm *vm, u32 dtype, u32 rank, const i64 *dims, const i64 *strides, void *data, size_t bytes,
                          void (*release)(void *, void *, size_t), void *release_ctx, Value *out) MUST_USE;
void array_destroy(Vm *vm, Array *a);
void storage_drop(Vm *vm, Storage *s);

/* May the data of `a` be overwritten in place by whoever holds the one count of `a`? */
bool array_writable(const Array *a);
/* Afterwards *v (consumed and replaced) is a dense or otherwise own array that may be written in place;
 * counts stats `copies` when it had to copy. V_NUM is boxed to a rank-0 array. */
WeftStatus array_make_unique(Vm *vm, Value *v) MUST_USE;
WeftStatus array_copy(Vm *vm, Array *a, Value *out) MUST_USE; /* dense, with its own data. CPU */
/* A dense row-major version of v (borrowed): *out is v itself (kept) when it is already dense. CPU. */
WeftStatus array_make_dense(Vm *vm, Value v, Value *out) MUST_USE;

/* One element as V_NUM (c128: rank-0 array). `at` is an element offset from data. CPU only. */
Value array_load(const Array *a, i64 at);
/* V_NUM of a rank-0 CPU array; anything else is returned as it is. Consumes v. */
Value array_finish(Vm *vm, Value v);
/* The same of what may lie on a device: what has no axes comes to the processor, where numbers live. Consumes v; *out
 * owned. */
WeftStatus array_settle(Vm *vm, Value v, Value *out) MUST_USE;
/* A V_NUM as a borrowed array view on the stack (no allocation): `box` must outlive the use. */
typedef struct NumBox {
  Array array;
  u64 payload[2];
} NumBox;
Array *array_of(Value v, NumBox *box); /* v: V_NUM or V_ARRAY, borrowed */
/* One element as array_load has it, of any dtype: c128 as an array in `box`, to be looked at alone. */
Value array_borrow(const Array *a, i64 at, NumBox *box);

/* Scalar access by dtype, with numeric conversion (C semantics; float to int must be checked before). Never to c128,
 * which is no V_NUM; of complex numbers only to c64 and bool. */
Value num_convert_unchecked(Value v, u32 dtype);
f64 num_as_f64(Value v); /* of a real number */
/* an integer beyond i64, whose bits are those of a negative one */
static inline bool num_is_huge(Value v) { return v.dtype == DT_u64 && v.i < 0; }
bool num_as_index(Value v, i64 *out); /* false unless an integer or bool scalar that fits i64 */
bool num_fits(Value v, u32 dtype); /* a weak number that takes the dtype: an integer in its range, anything else */
void num_store(void *at, u32 dtype, Value v); /* v.dtype == dtype */
/* a number of rank 0 (V_NUM, c128) as an element of `dtype`; complex to real must not be asked, float to integer be
 * checked */
void num_store_as(void *at, u32 dtype, Value v);
/* A complex number of rank 0: V_NUM of c64, an array of c128. */
WeftStatus value_complex(Vm *vm, u32 dtype, f64 re, f64 im, bool weak, Value *out) MUST_USE;
/* A number of rank 0 on the CPU, however it is kept. */
static inline bool value_is_scalar(Value v) {
  return v.kind == V_NUM || (v.kind == V_ARRAY && v.array->tag == ARRAY_TAG(DT_c128, 0, DEV_CPU, LAY_DENSE));
}
/* Real and imaginary part of a number of rank 0: V_NUM, or c128 on the CPU. */
void num_parts(Value v, f64 *re, f64 *im);
Value num_load(const void *at, u32 dtype);

/* Row-major size of dims; -1 when it overflows ARRAY_MAX_SIZE. */
i64 dims_size(u32 rank, const i64 *dims);
u32 layout_of(u32 rank, const i64 *dims, const i64 *strides);
void dense_strides(u32 rank, const i64 *dims, i64 *strides);

#endif

/* matmul.h — inside gpu/: products of matrices on the device, by kernels of their own. */
#ifndef WEFT_GPU_MATMUL_H
#define WEFT_GPU_MATMUL_H

#include "gpu/device.h"
#include "jit/loops/loops.h"

enum { MATMUL_STEP = 8, MATMUL_SIDE = 128, MATMUL_PARAMS = 12, MMA_STEP = 32, MMA_STAGES = 3, MMA_PACK_PARAMS = 9 };

/* Types that the kernel is made for. Integers of either sign have the same one, as products and sums wrap. */
enum { MATMUL_TYPES = 5 };
static inline LoopType matmul_type(u32 n) {
  return n == 0 ? LT_F32 : n == 1 ? LT_F64 : n == 2 ? LT_U8 : n == 3 ? LT_U32 : LT_U64;
}
const char *matmul_entry(LoopType type);

/* A module with the entry matmul_f32, or that of another type, for blocks of 256 threads, one for each tile of SIDE
 * times SIDE of the results, matrix by matrix, row by row. Its parameters, words of 64 bits: addresses of x, y and the
 * result; m, n, k; strides of x (rows, inner axis) and of y (columns, inner axis); strides of x and y from matrix to
 * matrix. WEFT_ERROR: memory was refused. */
WeftStatus matmul_ptx(LoopType type, Buf *out) MUST_USE;

typedef enum MmaTile { MMA_LARGE, MMA_SMALL } MmaTile;
typedef struct MmaKind {
  bool brain;     /* bf16; else f16 */
  bool across[2]; /* the stride of 1 of x is that of its rows, not of its inner axis; of y, that of its columns */
  MmaTile tile;
} MmaKind;
enum { MMA_KINDS = 16 };
static inline MmaKind mma_kind(u32 n) { return (MmaKind){n >> 3 & 1, {n & 1, n >> 1 & 1}, (MmaTile)(n >> 2 & 1)}; }
static inline u32 mma_number(MmaKind k) { return 8u * k.brain + 4u * k.tile + 2u * k.across[1] + k.across[0]; }

/* The same for halves on tensor cores, entry mma, for blocks of mma_threads threads and mma_shared bytes. Operands
 * begin at a multiple of 16 bytes, so do rows of their stride that is not 1, and matrices. */
WeftStatus mma_ptx(MmaKind kind, Buf *out) MUST_USE;
u32 mma_threads(u32 tile);
void mma_sides(u32 tile, u64 *rows, u64 *columns);
u32 mma_shared(MmaKind kind);
/* Copies of operands for it, entry mma_pack, for blocks of 256 threads: addresses from and to; elements of the copy,
 * its rows in a matrix, elements of a row that are copied, and that it has (u32, all four); strides from element to
 * element, row to row, matrix to matrix. */
WeftStatus mma_pack_ptx(Buf *out) MUST_USE;

/* x @ y of matrices, or stacks of them, on the device that fit each other: both of f32, of f64, of the same integers,
 * or of f16 or bf16 where the device has tensor cores for them. False: it is none of these, nothing was done. Borrows
 * args; *out owned. */
bool device_product(Device *d, const Value *args, WeftStatus *status, Value *out);

/* ---- a product that waits for the kernel behind it --------------------------------------------------------------
 *
 * Where vm->hands_on says that a kernel alone reads the result, device_product gives the array and does not launch: the
 * operands are held until the kernel is launched, with the product in it, or something else is done on the device. */

/* It is launched now. Done before anything that may read or write an array. WEFT_ERROR: the error stands in the VM. */
WeftStatus product_flush(Device *d) MUST_USE;
void product_forget(Device *d, const void *memory); /* of an array that is freed: nobody waits for it */
void product_end(Device *d); /* nor for any */

/* The kernel behind: its own parameters, which have room for MATMUL_PARAMS more. */
typedef struct ProductEnd {
  CuFunction (*find)(void *ctx, u32 kind); /* of mma_kind, of halves; NULL: there is none */
  void *ctx, **params;
  u32 count;
} ProductEnd;
typedef struct ProductShape {
  const void *to;      /* the array */
  u32 dtype;
  u64 rows, columns;   /* rows of all matrices */
} ProductShape;
/* What waits. False: nothing does. */
bool product_waiting(const Device *d, ProductShape *shape);
bool product_reads(const Device *d, Array *a); /* the array may share memory with one of the operands */
/* The launches of both. False: there is no such kernel, and nothing was launched; the product waits as before. */
bool product_fuse(Device *d, const ProductEnd *end, CuResult *error);

#endif

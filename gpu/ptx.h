/* ptx.h — inside gpu/: kernels of the loop IR as PTX text.
 *
 *   LoopFn ──ptx_module──▶ text ──ptxas, or the driver──▶ machine code
 *
 * One kernel is one entry. Its parameters are 64-bit words in the order of the function's parameters (as in
 * LoopKernelFn: numbers extended, a buffer the device address of its element 0), then lo, hi and the address of the
 * key, a u64 that holds LOOP_KEY_NONE before the launch and the least failing check behind it.
 *
 * The trips of the outermost `par` are dealt to threads, or to warps when the body holds a reduction in the order
 * LANES: then the 32 threads of a warp run the trip together, each has every value of it, and the lanes of the
 * reduction are spread over them. Loops that fill its body are dealt with it. Any grid gives the same bits.
 * Transcendental functions come from lang/math.loops: short ones are expanded where they are used, long ones are
 * functions of the module.
 *
 * Every value has a register of its own; a bool is a predicate in registers and a byte in memory; u8 lies in 32
 * bits. */
#ifndef WEFT_GPU_PTX_H
#define WEFT_GPU_PTX_H

#include "jit/jit.h"
#include "jit/loops/loops.h"

typedef enum PtxSpread {
  PTX_THREADS, /* one trip, one thread */
  PTX_WARPS,   /* one trip, 32 threads */
} PtxSpread;

enum { PTX_SPLIT_HEADS = 8 };

/* A kernel whose reductions can be spread over the grid (ptx_split.c). */
typedef struct PtxSplit {
  Allocator *alloc;
  u32 nodes;
  u8 *late;   /* by node: computed of the result of a reduction */
  u32 heads[PTX_SPLIT_HEADS], count;
  bool rows;  /* order ROWS: an item is done by a thread, not by a warp */
  bool best;  /* its two reductions are the greatest element and its number (ptx_best.c) */
  u32 block;  /* elements of an item */
  u32 rest;   /* order LANES: results of blocks that a warp of the last entry takes in at once */
} PtxSplit;

/* False: it has no reductions of that kind, or memory was refused. */
bool ptx_split(const LoopFn *fn, Allocator *alloc, PtxSplit *s);
void ptx_split_free(PtxSplit *s);

enum { PTX_NEST_HEADS = 7 };

/* Loops directly inside the outermost one whose trips are dealt with its own (ptx_nest.c), from the outside in. */
typedef struct PtxNest {
  u32 heads[PTX_NEST_HEADS], count;
} PtxNest;

/* False: there are none. */
bool ptx_nest(const LoopFn *fn, PtxNest *nest);

enum { PTX_TILE_SIDE = 32, PTX_TILE_LOADS = 4 };

/* A kernel over several axes that reads arrays across two of them (ptx_tile.c). */
typedef struct PtxTile {
  u32 outer, inner, first; /* its loops over these two; where the outermost loop stands in the body */
  u32 rest[PTX_NEST_HEADS], rests; /* loops over the other axes, from the outside in */
  u32 loads[PTX_TILE_LOADS], at[PTX_TILE_LOADS], count, bytes; /* what is read across; its place in shared memory */
} PtxTile;

/* False: it is none of that kind. */
bool ptx_tile(const LoopFn *fn, PtxTile *tile);

enum { PTX_ROW_HEADS = 8, PTX_ROW_SLOTS = 4, PTX_ROW_PARTIALS = 32, PTX_ROW_PARTIAL_BYTES = 512 /* twice so many */ };

/* A kernel whose trips go over a row several times (ptx_rows.c). */
typedef struct PtxRows {
  Allocator *alloc;
  u32 nodes, first;            /* where the outermost loop stands in the body */
  u32 heads[PTX_ROW_HEADS], from[PTX_ROW_HEADS], end[PTX_ROW_HEADS], count; /* its loops and their statements */
  u32 *same;                   /* by node: the first one that has the same value for an element of the same number */
  u8 *slot, *made;             /* by such a node: its place in shared memory + 1; the loop that leaves it there */
  u8 *needed;                  /* by node; for the analysis */
  u8 slot_bytes[PTX_ROW_SLOTS];
  u32 slots;
  u32 part, reductions;        /* elements of a part of a row, whole blocks of each sum; how many loops reduce */
  u64 longest;                 /* elements of a row whose sums a block of threads can join */
} PtxRows;

/* False: it is none of that kind, or memory was refused. */
bool ptx_rows(const LoopFn *fn, Allocator *alloc, PtxRows *r);
void ptx_rows_free(PtxRows *r);
void ptx_rows_from_memory(PtxRows *r); /* nothing stands in shared memory: each loop reads the row again */
u32 ptx_rows_bytes(const PtxRows *r); /* of shared memory for each element; PTX_ROW_PARTIAL_BYTES come to that */
/* NAME_team: elements of a part of a row; bytes of shared memory; bytes of scratch memory for a row. */
u32 ptx_rows_part(const PtxRows *r);
u32 ptx_rows_shared(const PtxRows *r);
u32 ptx_rows_scratch(const PtxRows *r);

enum { PTX_SCAN_PIECE = 4096, PTX_COLUMN_PIECE = 256 };

/* A kernel whose trips are scans along rows (ptx_scan.c), or down columns (ptx_columns.c). */
typedef struct PtxScan {
  Allocator *alloc;
  u32 nodes, first;            /* where the outermost loop stands in the body */
  u32 inner, across;           /* a loop between it and the scan, or 0; the loop over columns, or 0: along rows */
  u32 head, from, end, prefix; /* the scan, its statements, the one that gives results */
  LoopType type;
  u8 *before, *after;          /* by node: needed for what is scanned; for what is done with the results */
} PtxScan;

/* False: it is none of that kind, or memory was refused. */
bool ptx_scan(const LoopFn *fn, Allocator *alloc, PtxScan *s);
void ptx_scan_free(PtxScan *s);
u32 ptx_scan_bytes(const PtxScan *s); /* of shared memory */
u32 ptx_scan_columns(const PtxScan *s); /* that a block takes side by side, with 16 threads each; 1: along rows */
/* Bytes of scratch memory for a scan of so many pieces, or for ptx_scan_columns of them side by side; 0: too many. */
u64 ptx_scan_scratch(const PtxScan *s, u64 pieces);
u64 ptx_chain_scratch(LoopType t, u64 pieces); /* of one scan without more than a total and a scan for each piece */

/* A kernel that does something to each element of a product of matrices (ptx_epilogue.c). */
typedef struct PtxEpilogue {
  u32 param;             /* the product: of `type` */
  u32 head, inner;       /* its loop over rows, and that over columns in it; 0: the first one goes over elements */
  u32 first, body;       /* where statements of a row begin, and those of an element */
  LoopType type;
} PtxEpilogue;

/* Word `word` of its arguments may be a product. False: it is none of that kind. */
bool ptx_epilogue(const LoopFn *fn, u32 word, PtxEpilogue *e);
/* Arrays lie so that it can take four columns at a time. */
bool ptx_epilogue_fits(const LoopFn *fn, const PtxEpilogue *e, const u64 *words);
/* A module with the entry NAME_product (NULL: as the function): the kernel of matmul.h for products of that type,
 * with its parameters behind those of the kernel, lo, hi and the key; each element is handed on to the kernel and not
 * stored. Of halves that of mma_kind(kind). WEFT_ERROR as ptx_module. */
WeftStatus ptx_product_module(const LoopFn *fn, const char *name, const PtxEpilogue *e, u32 kind, Buf *out,
                              Buf *why) MUST_USE;

enum { PTX_MAX_PARAMS = 512 /* 4,352 bytes of parameters are what every driver takes */ };

/* How the trips of a kernel are dealt. */
PtxSpread ptx_spread(const LoopFn *fn);

/* A module with these kernels; entry i is named names[i] (NULL: as the function). One that ptx_tile takes has one more,
 * NAME_tile, for blocks of 256 threads, a tile each. One that ptx_rows takes has NAME_rows and NAME_long, for blocks of
 * any number of warps, a trip each, with shared memory given at the launch: ptx_rows_bytes for each element and
 * PTX_ROW_PARTIAL_BYTES; the second one PTX_ROW_PARTIAL_BYTES alone, of rows of `longest` elements at most; and
 * NAME_team, for blocks of 256 threads, one for each of the `blocks` parts of a row, PTX_ROW_PARTIALS at most, that all
 * run at once, with the parameters of NAME_pieces below and ptx_rows_shared, ptx_rows_scratch. One that ptx_split takes
 * has three more, NAME_part, NAME_join (without the kernel's own parameters) and NAME_rest, with four more parameters:
 * scratch memory to read and to write, how many elements (join, rest: results in scratch memory) a reduction has, and
 * how many blocks (rest: 0) that makes; NAME_rest is for blocks of up to 32 warps, a trip each, with
 * PTX_ROW_PARTIAL_BYTES of shared memory, where the reductions have the order LANES. WEFT_ERROR: memory was refused, or
 * a kernel is not supported: then `why` holds a line that says so and which. One that ptx_scan takes along rows has
 * NAME_scan, for blocks of 256 threads with ptx_scan_bytes of shared memory, a trip each; and NAME_pieces, a block for
 * each of the `blocks` pieces of each trip, with the parameters of NAME_part: `from` is a counter of 4 bytes, `to` has
 * `total` bytes of scratch memory for each scan, and all of it is zero. Down columns it has NAME_columns, with the same
 * parameters, for blocks of 16 threads a column: one for each piece of ptx_scan_columns of them. */
WeftStatus ptx_module(const LoopFn *const *fns, const char *const *names, u32 count, Buf *out, Buf *why) MUST_USE;

#endif

/* ptx_writer.h — inside gpu/: the state of one PTX module in the making, shared by the files of the renderer. */
#ifndef WEFT_GPU_PTX_WRITER_H
#define WEFT_GPU_PTX_WRITER_H

#include "gpu/ptx.h"

/* Kinds of registers; the numbers of each begin at 1. */
typedef enum RegKind { REG_NONE, REG_P, REG_H, REG_R, REG_RD, REG_F, REG_D, REG_KINDS } RegKind;

/* An operand: a register, or a constant of a type when `kind` is REG_NONE. */
typedef struct Opnd {
  u8 kind;
  u8 type; /* LoopType of a constant; VOID: no operand */
  u32 n;
  u64 bits;
} Opnd;

/* How a reduction is done. */
typedef enum FoldMode {
  FOLD_NONE,
  FOLD_SERIAL, /* each thread by itself, exact operations in any order */
  FOLD_ROWS,   /* each thread by itself, in the order ROWS */
  FOLD_SCAN,   /* each thread by itself, in segments */
  FOLD_SPREAD, /* element e by thread e mod 32 of the warp */
  FOLD_PUSH,   /* all threads compute all elements; lane e mod W is kept by one of them */
} FoldMode;

enum { FOLD_LEVELS = 8, LANE_LEVELS = 4 };

/* An open head. */
typedef struct OpenHead {
  u32 head;
  u32 label;    /* its labels are L<label>_… */
  u8 fold;      /* FoldMode */
  bool has_else;
  bool leaves;  /* while: its body always leaves by break or next */
  bool lanes;   /* a loop that the threads of a warp deal among them */
  bool split;   /* its elements are dealt to several items (ptx_split.c) */
  Opnd cond;
  Opnd number;  /* of the element at work, u64; folds only */
  Opnd total;   /* elements */
  Opnd acc[FOLD_LEVELS][2];
  Opnd before[FOLD_LEVELS];
  Opnd base;    /* spread: first element of the block; */
  Opnd block;   /* … its number */
  Opnd limit;   /* … its end */
} OpenHead;

/* Which entry of a kernel is written. */
/* Those from PTX_PART on have scratch memory. */
typedef enum PtxPhase {
  PTX_WHOLE, PTX_TILED, PTX_ROWS, PTX_LONG, PTX_SCAN, PTX_PRODUCT, PTX_PART, PTX_JOIN, PTX_REST, PTX_PIECES,
  PTX_COLUMNS, PTX_TEAM, PTX_PHASES
} PtxPhase;

/* One function that is being written: the kernel, or a math function inside it. */
typedef struct PtxFn {
  const LoopFn *fn;
  Opnd *values;  /* by node id */
  u32 first_open; /* its heads are open[first_open …] */
  Opnd result;   /* math: the result */
  u32 end;       /* math: label behind it */
} PtxFn;

typedef struct PtxWide PtxWide;

typedef struct PtxWriter {
  Allocator *alloc;
  Buf *out, *why;
  Buf body;
  LoopModule defs;      /* definitions of math functions */
  VEC(u32) tables;      /* tables of defs that are used, in order of first use */
  VEC(u64) called;      /* what stands in `functions`: addresses of definitions, or small numbers of ptx_fold.c */
  Buf functions;
  const LoopFn *kernel;
  const char *name;
  PtxFn *f;             /* the function at work */
  VEC(OpenHead) open;
  u32 regs[REG_KINDS];
  u32 labels, depth;
  PtxSpread spread;
  u32 spread_depth;     /* open heads of mode FOLD_SPREAD */
  Opnd lane;            /* u32: number within the warp */
  Opnd lo, hi, key;
  Opnd index, step;     /* of the outermost par */
  const PtxWide *wide;  /* it takes four elements at a time; NULL elsewhere */
  PtxNest nest;         /* loops dealt with the outermost one: how much their indices grow from item to item */
  Opnd nest_step[PTX_NEST_HEADS], nest_outer_step;
  PtxPhase phase;
  const PtxTile *tile;   /* of PTX_TILED */
  const PtxRows *rows;   /* of PTX_ROWS */
  const PtxScan *scan;   /* of PTX_SCAN and the last two */
  const PtxSplit *split; /* of the phases behind it, with its scratch memory and numbers, as in ptx.h */
  Opnd from, to, total, blocks;
  Opnd item, item_trip, item_block; /* the item at work, from 0 */
  const PtxEpilogue *epilogue; /* of PTX_PRODUCT; … */
  u32 product;           /* … the kind of product, of halves; */
  u32 first_param;       /* … the number of its first parameter */
  Opnd guard;            /* stores are done where this is true; none: everywhere */
  bool tensor;          /* a module for sm_80: tensor cores, copies that go on by themselves */
  bool failed;          /* memory was refused */
  bool refused;         /* not supported: `why` says what */
} PtxWriter;

/* ---- ptx_emit.c: registers and instructions ------------------------------------------------------------ */

Opnd ptx_new(PtxWriter *w, RegKind kind);
RegKind ptx_kind_of(LoopType t);
Opnd ptx_new_for(PtxWriter *w, LoopType t);
Opnd ptx_const(LoopType t, u64 bits);
static inline Opnd ptx_u32(u32 v) { return ptx_const(LT_U32, v); }
static inline Opnd ptx_number(i64 v) { return ptx_const(LT_I64, (u64)v); }
Opnd ptx_value(PtxWriter *w, u32 id);            /* what node id gives; constants as they are, bools in a predicate */
Opnd ptx_define(PtxWriter *w, u32 id);           /* the register of node id, made at its first mention */
Opnd ptx_in_register(PtxWriter *w, Opnd v);
/* one instruction or comment, with its indentation */
void ptx_line(PtxWriter *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
void ptx_label(PtxWriter *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
void ptx_refuse(PtxWriter *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The instruction, then its operands. The name may hold one %s: the text of the type. */
void ptx_ins(PtxWriter *w, const char *name, const Opnd *ops, u32 count);
#define INS(w, name, ...) ptx_ins(w, name, (const Opnd[]){__VA_ARGS__}, COUNT_OF(((const Opnd[]){__VA_ARGS__})))
void ptx_ins_of(PtxWriter *w, const char *name, LoopType t, const Opnd *ops, u32 count);
#define INS_T(w, name, t, ...) \
  ptx_ins_of(w, name, t, (const Opnd[]){__VA_ARGS__}, COUNT_OF(((const Opnd[]){__VA_ARGS__})))
typedef struct OpndText {
  char s[32];
} OpndText;
OpndText ptx_text(Opnd v);
void ptx_move(PtxWriter *w, LoopType t, Opnd to, Opnd from);
/* A word of shared memory at an address, u32, none of them a predicate. */
void ptx_shared_load(PtxWriter *w, LoopType t, Opnd to, Opnd at);
Opnd ptx_shared_word(PtxWriter *w, LoopType t, Opnd at); /* loads it */
void ptx_shared_store(PtxWriter *w, LoopType t, Opnd at, Opnd v);
void ptx_shared_store_where(PtxWriter *w, Opnd p, LoopType t, Opnd at, Opnd v);
Opnd ptx_parameter(PtxWriter *w, const char *type, u32 number, RegKind kind); /* a<number> of the entry */
Opnd ptx_bits(PtxWriter *w, Opnd v, u32 shift, u32 mask); /* u32: (v >> shift) & mask */
/* Tables of values for `count` elements that are written side by side: copies of the function's own. False: memory was
 * refused. end puts back the own one; both are called in any case. */
bool ptx_copies_begin(PtxWriter *w, u32 count, Opnd **values);
void ptx_copies_end(PtxWriter *w, u32 count, Opnd *const *values, Opnd *own);
const char *ptx_type(LoopType t); /* as arithmetic has it: "s32", "f64" */

/* A function of the module with parameters and result of one type. It is written in the midst of a kernel, which is put
 * aside: begin gives false when `key` has been written before. */
typedef struct PtxAside {
  Buf body;
  u32 regs[REG_KINDS], labels, depth;
  Opnd params[3];
} PtxAside;
bool ptx_function_begin(PtxWriter *w, PtxAside *a, u64 key, LoopType t, u32 params);
void ptx_function_end(PtxWriter *w, PtxAside *a, const char *name, LoopType t, u32 params, Opnd result);
void ptx_call(PtxWriter *w, const char *name, LoopType t, const Opnd *params, u32 count, Opnd result);
void ptx_put_registers(const PtxWriter *w, Buf *out);
/* A module of one entry whose text stands in w->body, which is freed: parameters a0 … and shared memory `tile`; 0: its
 * shared memory is `rows`, as much as the launch gives. */
WeftStatus ptx_one_entry(PtxWriter *w, const char *comment, const char *entry, u32 params, u32 shared,
                         Buf *out) MUST_USE;

/* ---- ptx_ops.c: values --------------------------------------------------------------------------------- */

/* r = a op b for operations of the loop IR; also what reductions combine with. */
Opnd ptx_operation(PtxWriter *w, LoopOp op, LoopType t, Opnd a, Opnd b, Opnd c);
void ptx_operation_to(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b, Opnd c);
void ptx_compare(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b);
void ptx_select(PtxWriter *w, LoopType t, Opnd to, Opnd c, Opnd a, Opnd b);
void ptx_convert(PtxWriter *w, const LoopNode *n, Opnd to, Opnd a);
/* A predicate: the check holds. */
Opnd ptx_check(PtxWriter *w, LoopCheck kind, LoopType t, Opnd a, Opnd b);
void ptx_load(PtxWriter *w, const LoopNode *n, Opnd to);
void ptx_store(PtxWriter *w, const LoopNode *n);
Opnd ptx_address(PtxWriter *w, const LoopNode *n); /* of the element */
void ptx_load_from(PtxWriter *w, const LoopNode *n, Opnd at, Opnd to);
void ptx_store_to(PtxWriter *w, const LoopNode *n, Opnd at);
/* A load or store of four elements, one behind the other, from a multiple of 16 bytes or of their own length on. */
void ptx_access_four(PtxWriter *w, const LoopNode *n, const Opnd *four);
/* The value, f32, of a half in shared memory: `brain`: of a bf16. */
void ptx_half_from_shared(PtxWriter *w, bool brain, Opnd at, u32 offset, Opnd to);

/* ---- ptx_fold.c: reductions and scans ------------------------------------------------------------------- */

FoldMode ptx_fold_mode(const PtxWriter *w, u32 head);
void ptx_fold_begin(PtxWriter *w, OpenHead *h); /* up to where the body begins: indices are set */
void ptx_fold_take(PtxWriter *w, OpenHead *h, Opnd v); /* the element's value */
Opnd ptx_fold_prefix(PtxWriter *w, OpenHead *h, Opnd v);
void ptx_fold_end(PtxWriter *w, OpenHead *h); /* from the element's end on */
bool ptx_body_has_lanes(const LoopFn *fn, u32 head); /* 0: the whole function */
/* Each thread has a trip of the reduction to itself: in the order ROWS, or in any order where threads beside one
 * another read elements beside one another. */
bool ptx_in_rows(const LoopFn *fn, u32 head);
/* v of the thread of the warp whose number differs in one bit. */
Opnd ptx_exchange(PtxWriter *w, LoopType t, Opnd v, u32 bit);

/* Of a reduction whose elements a warp deals among its threads, by parts: lanes of one level, in h->acc[0]. */
void ptx_fold_make(PtxWriter *w, OpenHead *h);
void ptx_fold_clear(PtxWriter *w, OpenHead *h);
/* The thread's element; `at`: its number, u32, or `copy`: so many times 32 behind a multiple of 64 (at is not read). */
void ptx_fold_give(PtxWriter *w, OpenHead *h, u32 copy, Opnd at, Opnd v);
Opnd ptx_fold_join(PtxWriter *w, OpenHead *h); /* every thread has the result */

/* Of a scan whose pieces, PTX_SCAN_PIECE elements each, are done elsewhere: the scan of their totals. `next`: elements
 * up to the piece's end; *to: the scan up to and with it. */
void ptx_fold_begin_pieces(PtxWriter *w, OpenHead *h);
void ptx_fold_piece(PtxWriter *w, OpenHead *h, Opnd next, Opnd total, Opnd to);

bool ptx_is_exact(const LoopNode *n, LoopType t); /* any order gives the same bits */

/* ---- ptx_nest.c: loops inside the outermost one --------------------------------------------------------- */

bool ptx_is_lane_loop(const PtxWriter *w, u32 head); /* a loop inside of a warp's trip, for its threads to deal */
bool ptx_in_nest(const PtxWriter *w, u32 head); /* it is one of these: its index is set where the item begins */
/* Indices of the thread's first item; `label` is the outermost loop's. */
void ptx_nest_begin(PtxWriter *w, u32 label, Opnd outermost);
void ptx_nest_next(PtxWriter *w, Opnd outermost); /* those of the next one */
bool ptx_moves_with(const LoopFn *fn, const LoopNode *access, u32 index); /* its place depends on the index */

/* ---- ptx_wide.c: four elements at a time ------------------------------------------------------------------- */

/* An elementwise kernel: its outermost loop, the statement behind that, and what differs from element to element. */
struct PtxWide {
  Allocator *alloc;
  u32 nodes, head, first;
  u8 *varies; /* by node */
};
/* False: it is none of that kind, or memory was refused. */
bool ptx_wide(const LoopFn *fn, Allocator *alloc, PtxWide *s);
void ptx_wide_free(PtxWide *s);
/* Of a reduction whose element h->number is at work: elements h->number, + stride, … four at a time, as long as there
 * are four below h->limit; nothing where its body does more than load and compute. */
void ptx_put_trips_by_four(PtxWriter *w, OpenHead *h, u32 stride);
void ptx_put_fours(PtxWriter *w); /* up to the outermost loop; w->lo is what is left for that */

/* ---- ptx_tile.c: arrays that are read across ---------------------------------------------------------------- */

void ptx_put_tiles(PtxWriter *w); /* the body of the entry */

bool ptx_goes_along(const LoopFn *fn, const LoopNode *access, u32 index); /* from trip to trip by one element */

/* ---- ptx_rows.c: a block of threads does a row -------------------------------------------------------------- */

typedef enum PtxRowPass { PTX_ROW_EACH, PTX_ROW_SUM } PtxRowPass; /* elements by threads; by lanes of a warp */
void ptx_put_rows(PtxWriter *w); /* the body of the entry */

/* The block of threads at work, and the shared memory where its warps leave results for one another. */
typedef struct PtxBlock {
  Opnd thread, threads, warp, warps, lane; /* u32 */
  Opnd partial; /* u32: where results lie */
  u32 joins;    /* so many times results were handed on: places are used in turn */
} PtxBlock;
void ptx_block_begin(PtxWriter *w, PtxBlock *b);
/* The place for the next results; PTX_ROW_PARTIALS at most. */
Opnd ptx_block_place(PtxWriter *w, PtxBlock *b);
/* Each warp leaves what its threads have, joined, as result `number`. */
void ptx_block_leave(PtxWriter *w, const PtxBlock *b, OpenHead *h, Opnd place, Opnd number);
/* The threads of the block meet; results 0 .. count joined, in every thread. */
Opnd ptx_block_join(PtxWriter *w, const PtxBlock *b, OpenHead *h, Opnd place, Opnd count);

/* ---- ptx_chain.c: pieces of a scan that are done at the same time --------------------------------------------- */

/* What a piece publishes: its total; the scan up to and with it; scans along rows: the total without its last
 * sixteenth, and that. */
enum { PTX_CHAIN_TOTAL, PTX_CHAIN_SCAN, PTX_CHAIN_COLUMN_SLOTS, PTX_CHAIN_FIFTEEN = PTX_CHAIN_COLUMN_SLOTS,
       PTX_CHAIN_LAST, PTX_CHAIN_ROW_SLOTS };
enum { PTX_CHAIN_LEVELS = 8, PTX_CHAIN_READS = 5 };

/* The scan of one thread over totals of pieces. */
typedef struct PtxChain {
  LoopOp op;
  LoopType type;
  Opnd base;           /* u64: its words of scratch memory: `slots` values for each element of each level, … */
  u32 slots, lanes;    /* … between which those of so many threads beside it lie */
  Opnd piece, blocks;  /* u32: this one; how many */
  Opnd keep;           /* u32: its own places in shared memory, one for each level, … */
  u32 keep_step;       /* … so many bytes apart */
} PtxChain;

typedef struct PtxChainWord {
  Opnd element, has; /* u32; predicate: it is read */
  u32 which, ahead;  /* … of the element so many behind that one */
} PtxChainWord;

/* Bytes of scratch memory from value to value. */
static inline u32 ptx_chain_step(LoopType t, u32 lanes) { return (loop_type_bytes(t) == 8 ? 16 : 8) * lanes; }
void ptx_chain_put(PtxWriter *w, const PtxChain *c, Opnd element, u32 which, Opnd v);
void ptx_chain_get(PtxWriter *w, const PtxChain *c, u32 count, const PtxChainWord *from, Opnd *values); /* waits */
Opnd ptx_chain_scan(PtxWriter *w, const PtxChain *c, Opnd total); /* up to and with this piece; publishes both */
Opnd ptx_chain_before(PtxWriter *w, const PtxChain *c, Opnd has, Opnd first, Opnd v); /* first ⊕ v where has, else v */
/* The number of this block's piece, u32, in every thread; `place`: a word of shared memory. The block meets. */
Opnd ptx_chain_ticket(PtxWriter *w, const PtxBlock *b, Opnd counter, Opnd place);

/* ---- ptx_scan.c: scans along rows ----------------------------------------------------------------------------- */

void ptx_put_scan(PtxWriter *w); /* the body of the entry */

/* ---- ptx_columns.c: scans down columns ------------------------------------------------------------------------ */

void ptx_put_columns(PtxWriter *w); /* the body of the entry */
u32 ptx_columns_words(const PtxScan *s); /* of shared memory */

/* ---- ptx_split.c: kernels in several entries ------------------------------------------------------------- */

bool ptx_trips_are_given(const LoopFn *fn, u32 head); /* of every axis, before the launch */
void ptx_items_begin(PtxWriter *w, u32 label);
void ptx_items_end(PtxWriter *w, u32 label);
Opnd ptx_scratch_load(PtxWriter *w, const OpenHead *h); /* element h->number of the trip */
/* The elements of scratch memory, so many at a time that their loads are under way together. */
void ptx_put_scratch_trips(PtxWriter *w, OpenHead *h);
void ptx_put_rest(PtxWriter *w); /* the entry NAME_rest, where a block of threads does a trip */
void ptx_scratch_store(PtxWriter *w, const OpenHead *h, Opnd v);

/* ---- ptx_best.c: the number of the greatest element ---------------------------------------------------------- */

bool ptx_is_best(const LoopFn *fn, u32 head, u32 second); /* two reductions of these kinds, in the body's outer loop */
void ptx_put_best(PtxWriter *w);                           /* both of an item, or of a trip */
void ptx_put_best_rest(PtxWriter *w, const PtxBlock *block); /* of a trip, by a block of threads */

/* ---- ptx_epilogue.c: a kernel behind a product ------------------------------------------------------------------ */

enum { PTX_ELEMENTS = 8 };

/* Some elements of a row of the product. */
typedef struct PtxElements {
  Opnd row, width;              /* u64: its number, over all matrices; columns of the product */
  u32 count, group;             /* how many; 4: so many lie beside one another, and their guards are the same; 1 */
  Opnd columns[PTX_ELEMENTS];   /* u64, inside of the product */
  Opnd guards[PTX_ELEMENTS];    /* predicates: it is an element */
  Opnd sums[PTX_ELEMENTS];      /* as a load of the dtype gives them */
} PtxElements;
void ptx_put_epilogue(PtxWriter *w, const PtxElements *x);
void ptx_put_product(PtxWriter *w);                        /* the body of the entry */
void ptx_put_matmul(PtxWriter *w, LoopType type);          /* ptx_matmul.c: the same where it is a kernel of its own */
void ptx_put_mma(PtxWriter *w, u32 kind);                  /* ptx_mma.c */
u32 ptx_matmul_shared(LoopType type);

/* ---- ptx.c ----------------------------------------------------------------------------------------------- */

static inline bool ptx_is_access(const LoopNode *n) { return n->op == LOOP_LOAD || n->op == LOOP_STORE; }
static inline const LoopNode *ptx_node(const PtxWriter *w, u32 id) { return loop_node(w->f->fn, id); }
/* The index of the END of the head at body[i]. */
static inline u32 ptx_end_of(const LoopFn *fn, u32 i) {
  for (u32 depth = 0;; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (loop_is_head(n)) depth++;
    if (n->op == LOOP_END && --depth == 0) return i;
  }
}

void ptx_put_params(PtxWriter *w); /* the kernel's own parameters, to registers */
void ptx_put_statement(PtxWriter *w, u32 id);
/* Nested loops over the axes of a head: their beginning and end; `skip` is the label where the next trip begins. */
void ptx_axes_begin(PtxWriter *w, const OpenHead *h);
void ptx_axes_end(PtxWriter *w, const OpenHead *h);

#endif

/* vector_emitter.h — shared by the files of the vector emitter; nothing else includes it.
 *
 *   vector.c         which kernels qualify, code memory, processors
 *   vector_loops.c   loops, reductions; vector_serial.c the loops around them
 *   vector_access.c  addresses, loads and stores
 *   vector_check.c   checks
 *   vector_ops.c     operations; vector_convert.c conversions, comparisons, selects
 *   vector_narrow.c  small integers in narrow lanes
 *   vector_math.c    `math` expanded inline; calls of strip kernels for rare arguments
 *   vector_order.c   the order of instructions; vector_alloc.c registers; vector_encode.c machine code
 *   vector_runtime.c C functions that emitted code calls; vector_text.c disassembled code
 *
 * Code is first a list of instructions over virtual registers (vectors and masks; general registers are physical
 * from the start), then registers are given out in one scan, then bytes are written.
 *
 * General registers: RBX arguments, R15 index of the vector loop, R14 its limit, RSI RDI R8 … R13 streams, RAX RCX
 * RDX free within a statement, RSP the frame, 64-byte aligned. Mask K7: lanes of a tail; K0 and K6 scratch. The last
 * two vector registers are scratch.
 *
 * Scopes. Outside a vector loop a value is one lane (128-bit instructions; what the other lanes hold means nothing).
 * Inside, a value has `lanes` lanes of 4 or 8 bytes (u8 and i1 of AVX2 in 4); an i1 is a mask register with AVX-512,
 * else lanes of 4 bytes, all ones or 0; where `packed` is set, a byte of four times as many lanes. Where `narrow` is
 * set, integers and conditions have lanes of so many bytes (vector_narrow.c). */
#ifndef WEFT_JIT_VECTOR_EMITTER_H
#define WEFT_JIT_VECTOR_EMITTER_H

#include "jit/loops/loops.h"
#include "jit/vector/vector.h"
#include "jit/vector/vector_asm.h"

typedef u32 VReg; /* 0: none */

typedef enum VPlace { VP_REG, VP_SLOT, VP_POOL } VPlace;

typedef struct VInfo {
  u8 mask;   /* a mask register */
  u8 place;  /* VPlace */
  u8 phys;
  u8 bytes;  /* POOL: of the element */
  u32 at;    /* SLOT: in the frame; POOL: in the pool */
  u32 first, last; /* positions of its life */
  u32 weight;
} VInfo;

/* Instructions beyond VecOp. */
enum {
  G_FIRST = V_COUNT,
  G_MOV = G_FIRST, /* dst a */
  G_IMM,           /* dst x */
  G_LOAD,          /* dst mem */
  G_SAVE,          /* mem a */
  G_LEA,           /* dst mem */
  G_ALU,           /* imm dst a */
  G_ALU_IMM,       /* imm dst x */
  G_ALU_LOAD,      /* imm dst mem */
  G_ALU_MEM_IMM,   /* imm mem x */
  G_IMUL,          /* dst a */
  G_IMUL_IMM,      /* dst a x */
  G_IMUL_LOAD,     /* dst mem */
  G_SHL,           /* dst x */
  G_SHR,           /* dst x */
  G_CMOV,          /* imm dst a */
  G_JCC,           /* imm x */
  G_JUMP,          /* x */
  G_LABEL,         /* x */
  G_TAIL,          /* K7 = the first RCX lanes; RAX is lost */
  G_LOW,           /* RAX = its low RCX bits */
  G_FIRST_BIT,     /* RAX = number of its lowest bit that is set */
  G_BYTE,          /* dst mem: a byte, zero-extended */
  G_BYTE_TO,       /* mem a */
  G_HALF,          /* dst mem: 16 bits */
  G_HALF_TO,       /* mem a */
  G_FETCH,         /* mem: will be read soon */
  G_CALL,          /* the C function x with RDI RSI RDX RCX; all vector and mask registers and the streams are kept */
  G_NOTHING,       /* what it gave is not used */
  P_FMA,           /* dst = a * b + c; imm: 8 or 4, and FMA_ bits */
  P_RARE,          /* dst = c, where the mask is set call.fn of a, b */
  P_COPY,          /* dst = a */
  M_FIRST,         /* + MaskOp: dst a b, virtual masks */
  M_LAST = M_FIRST + K_COUNT,
};

enum {
  VI_ZERO = 1,  /* masked-off lanes become 0 */
  VI_EARLY = 2, /* dst shares no register with a, b, mask */
  VI_TIED = 4,  /* dst begins as c */
  VI_TAIL = 8,  /* masked by K7 */
  /* masked by a copy of `mask` (0: K7 with VI_TAIL, else all lanes) in K6 that the instruction uses up */
  VI_SCRATCH_MASK = 16,
  VI_KEEP = 32, /* dst lives already: what it had is changed */
};

enum { FMA_BYTES = 15, FMA_NEGATED = 16 /* -(a * b) */, FMA_MINUS = 32 /* - c */ };

typedef struct VIns {
  u16 op;
  u8 length, imm, flags;
  bool commutes;
  VReg dst, a, b, c, mask; /* of G_: physical */
  VecMem mem;              /* vector_index: the register is `b`, virtual */
  u64 x;
} VIns;

static inline bool has_vregs(const VIns *i) { return i->op < V_COUNT || i->op >= P_FMA; }

typedef struct VConst {
  u64 bits;
  u32 bytes; /* 0: empty */
  VReg reg;
} VConst;
enum { CONST_PLACES = 256 }; /* power of two; what does not find a place near its own is not shared */

typedef struct VFact { /* how a value came about, for what is made of it */
  VReg of, a, b;
  VReg wide; /* AVX2: of a comparison, lanes of 8 bytes */
  u8 op;     /* LoopOp: a comparison of floats, LOOP_NEG; LOOP_NOT: none of these */
  u8 fits;   /* LoopType: an integer that each lane that counts fits, as a check before it has found; 0: none */
} VFact;
enum { FACTS_MOST = 64 }; /* a power of two: the latest of those that share a place */

typedef struct VSpan { /* a loop of the machine code */
  u32 first, last;
} VSpan;

enum { RARE_DIVIDED = 0xFFFFFF /* in place of the number of a function: a / b */ };
/* of the loop at hand; what magnitudes of usual dividends lie above the least, and 0; where the divisor is not usual 0
 * and NaN */
typedef struct VDivisor {
  u32 id;
  VReg inverse, span, zero;
} VDivisor;

typedef struct VCold { /* rare arguments of a math function */
  u32 label, back;
  VecIns blend; /* dst and mask as they are known */
  VReg dst, a, b, mask;
  u8 dst_phys;
  u32 fn; /* in VecFn.calls */
  u8 length, lanes, bytes;
} VCold;

/* Pairs of rows for 4 and 8 bytes stand next to each other. */
static inline VecOp by_width(LoopType t, VecOp op) { return (VecOp)(op + (t == LT_F64 || t == LT_I64 || t == LT_U64)); }

enum { HEADS_MOST = 16, ABREAST_MOST = 4 /* copies of a loop's body statement by statement */ };

typedef struct VFail { /* a check that failed, behind the function's end: RAX has the lanes */
  u32 label, number;
  u32 heads[HEADS_MOST], count; /* around it */
  u32 copy, lanes;   /* of the vector loop, when it stands in one */
  bool vector;
} VFail;

enum { ROW_AXES = 4 /* most axes of a loop over rows */ };

typedef enum VAccess { VA_UNIT, VA_SAME, VA_STRIDED, VA_GATHER,
                       VA_BACK /* a load of what lies together, the last element first */ } VAccess;

typedef struct VStream { /* addresses of a vector loop that differ by constants */
  u32 buffer;
  const LoopTerm *terms; /* without the vector loop's index and computed values where `skip` says so */
  u32 count, bytes; /* of an element */
  u8 kind; /* VAccess */
  bool pairs; /* STRIDED: see moves_every_other */
  bool near;  /* STRIDED: bytes a few apart, by shuffles */
  u8 reg;  /* RSP: in the frame at `slot` */
  i32 slot;
  VReg index; /* STRIDED: lane numbers times stride; BACK: lane numbers from the last on */
  VReg beside[ABREAST_MOST]; /* STRIDED, columns: the same for each copy */
  i32 step;   /* STRIDED: slot of the bytes per trip of one vector */
  i32 one, four; /* near: slots of the bytes from one element to the next, and to the fourth */
  VReg order;    /* near: which bytes of 16 four elements are */
  i64 coef;   /* STRIDED: of the loop's index, with its stride parameters */
  u32 stride[2];
  u32 row;  /* head of the loop over rows that it goes along with; 0: none */
  i32 row_step[ROW_AXES]; /* slots of the bytes that step_rows goes on by, for each axis */
} VStream;

typedef struct VRange {
  i64 low, high;
} VRange;

typedef struct VNarrow { /* an integer of the vector loop at hand */
  VRange range;
  u8 need; /* bits that are used; 64: all */
  bool known;
} VNarrow;

typedef struct VLoop {
  u32 head, first, last; /* positions of the body */
  u32 lanes, copies;
  u32 tail_lanes;        /* of what is left: `lanes` masked, 1, or 0: nothing is left */
  /* conditions or bytes that are read and stored, nothing else: a vector of bytes instead of four copies */
  bool packed;
  /* long bodies: so many copies side by side, statement by statement, since one is mostly waiting for itself; 1:
   * none */
  u32 abreast;
  u32 narrow; /* bytes of a lane; 0: those of the types */
  u32 rest_lanes; /* AVX2, narrow lanes: of what is left, in lanes of 4 bytes */
} VLoop;

typedef struct VecFn {
  Allocator *alloc;
  const LoopFn *fn;
  const VecEmitter *level;
  Asm as;
  bool evex;
  bool pairs; /* the loop at hand moves every other element by two vectors; what is left in the end goes one by one */
  u32 near; /* lanes of the loop at hand, which reads bytes a few apart by shuffles; 0: it does not */
  VEC(VIns) ins;
  VEC(VInfo) regs; /* 0 unused */
  VEC(VSpan) spans;
  VEC(VCold) cold;
  VEC(VFail) fails;
  u32 heads[HEADS_MOST], head_count; /* open serial loops */
  u32 key_slot, done;   /* what the kernel returns; the label of its end */
  VEC(VStream) streams; /* of the vector loop at hand */
  VEC(u64) calls;       /* addresses */
  VConst *consts;       /* by a hash of their bits */
  VFact facts[FACTS_MOST];
  VEC(VReg) kept;       /* constants that have a register */
  u32 *where;           /* per node: position in the body; of a parameter: its number */
  u32 *end;             /* per body position of a head: its END */
  VReg *value;          /* per node: in the scope at hand: values[0], or of the copy that runs beside it */
  VReg *values[ABREAST_MOST];
  VReg *spread;         /* per node: broadcast for the vector loop at hand */
  u32 *index_slot;      /* per node: of a serial loop's index, in the frame; 0 none */
  u32 frame;            /* bytes */
  u32 call_frame;       /* four words for C functions, then what is saved around them */
  bool calls_made;
  u32 save_label;
  u32 lanes;            /* 1 outside vector loops */
  bool tail;            /* stores and loads are masked by K7 */
  bool past, passes, may_pass; /* non-temporal stores: all; some; some could be */
  bool whole;           /* whole vectors: a loop but for its rest */
  u32 narrow;           /* bytes of a lane of the vector loop at hand; 0: those of the types */
  VNarrow *narrowed;    /* per node: of the vector loop at hand */
  VReg *spread_4, *spread_low; /* per node: `spread` for lanes of 4 bytes, and for narrower ones */
  bool packed;          /* an i1 is a byte, 0 or 1 */
  bool fetches, reads, folds; /* something is prefetched; could be; for reductions */
  u32 fetched[8], fetched_count; /* loads of which that is done, in the copies at hand */
  /* AVX2: where the first of several interleaved reductions begins, which gain nothing by touch_trip; 0: they are
   * none */
  u32 turns_from;
  u32 trip_copies;      /* vectors of a trip of the loop at hand */
  u32 copy;             /* number of the unrolled copy at hand */
  u32 vector_head;      /* head of the vector loop at hand; 0 none */
  u32 inside_first, inside_last; /* positions of its body */
  bool columns;         /* it holds loops over rows (vector_columns.c), */
  u32 limit_slot;       /* whose columns end at this place of the frame */
  VReg going;           /* mask: lanes that still go through a `while`; 0: all */
  u32 lo_slot, hi_slot; /* of the outermost loop */
  i32 ahead;            /* what goes along with a loop over rows is fetched so many bytes ahead */
  u32 block_slot;       /* frame: the first trip of the block of the inner loop at hand; 0: all of it */
  VDivisor divisor[4];  /* that do not change in the loop at hand */
  u32 divisors;
  VReg rare;            /* mask of the math function that is being expanded */
  u32 math_depth;
  u32 scratch_x, scratch_y, scratch_out; /* frame: operands and result of a strip */
  bool failed;
  const char *why; /* cannot be emitted */
  VIns nowhere;    /* what is written after a failure */
} VecFn;

static inline const LoopNode *vnode(const VecFn *f, u32 id) { return loop_node(f->fn, id); }
static inline u32 body_node(const VecFn *f, u32 pos) { return f->fn->body.data[pos]; }
static inline u32 element_bytes(LoopType t) { return t == LT_F64 || t == LT_I64 || t == LT_U64 ? 8 : 4; }
static inline u8 length_of(u32 bytes, u32 lanes) {
  return bytes * lanes <= 16 ? L128 : bytes * lanes == 32 ? L256 : L512;
}
static inline u8 vlength(const VecFn *f, LoopType t) { return length_of(element_bytes(t), f->lanes); }

/* vector_alloc.c */
VReg new_vec(VecFn *f);
VReg new_mask(VecFn *f); /* AVX-512 only */
VReg new_const(VecFn *f, u64 bits, u32 bytes); /* the same in all lanes */
void learn(VecFn *f, VFact fact);
const VFact *fact_of(const VecFn *f, VReg v); /* NULL: nothing is known */
bool inside(const VecFn *f, u32 id); /* Is the node computed in the body of the vector loop at hand? */
VReg new_pool(VecFn *f, const void *bytes);    /* lanes of their own: a vector of 64 or 32 bytes */
VIns *put(VecFn *f, VIns i);                   /* valid until the next */
void refuse(VecFn *f, const char *why);
i32 frame_room(VecFn *f, u32 bytes, u32 align);
bool give_registers(VecFn *f);

/* vector_order.c */
void order_instructions(VecFn *f);

/* vector_encode.c */
bool encode(VecFn *f);

/* Instructions. */
VReg v_rm(VecFn *f, VecOp op, u8 length, VReg a);
VReg v_rmi(VecFn *f, VecOp op, u8 length, VReg a, u8 imm);
VReg v_rvm(VecFn *f, VecOp op, u8 length, VReg a, VReg b);
VReg v_rvmi(VecFn *f, VecOp op, u8 length, VReg a, VReg b, u8 imm);
VReg v_compare(VecFn *f, VecOp op, u8 length, VReg a, VReg b, u8 imm); /* a mask */
/* where masked the operation, else old */
VReg v_masked(VecFn *f, VecOp op, u8 length, VReg mask, VReg old, VReg a, VReg b);
VReg v_mask_op(VecFn *f, MaskOp op, VReg a, VReg b);
VReg v_load(VecFn *f, VecOp op, u8 length, VecMem m);
void v_save(VecFn *f, VecOp op, u8 length, VecMem m, VReg a);
void g_load(VecFn *f, u32 dst, u32 base, i32 disp);
void g_save(VecFn *f, u32 base, i32 disp, u32 src);
void g_alu_imm(VecFn *f, u32 alu, u32 dst, i64 v);
void g_alu(VecFn *f, u32 alu, u32 dst, u32 src);
void g_alu_load(VecFn *f, u32 alu, u32 dst, u32 base, i32 disp);
void g_imul_imm(VecFn *f, u32 dst, i64 x);
void g_mov(VecFn *f, u32 dst, u32 src);
void g_imm(VecFn *f, u32 dst, u64 v);
u32 g_label(VecFn *f);
void g_put(VecFn *f, u32 label);
void g_jcc(VecFn *f, u32 cc, u32 label);
void g_jump(VecFn *f, u32 label);
static inline VecMem mem_at(u32 base, i32 disp) {
  return (VecMem){.used = true, .base = (u8)base, .index = NO_INDEX, .disp = disp};
}

/* vector_ops.c: values of pure operations on virtual registers. */
VReg lower_op(VecFn *f, LoopOp op, LoopType type, VReg a, VReg b, VReg c);
VReg lower_constant(VecFn *f, LoopType type, u64 bits);
/* the quotient or what is left, toward minus infinity, by a positive constant; 0: not of this type */
VReg lower_divided_by(VecFn *f, LoopOp op, LoopType type, VReg a, u64 by);

/* vector_convert.c */
VReg lower_convert(VecFn *f, LoopType to, LoopType from, VReg a);
VReg lower_compare(VecFn *f, LoopOp op, LoopType type, VReg a, VReg b);
VReg lower_select(VecFn *f, LoopType type, VReg cond, VReg yes, VReg no);
VReg lower_logic(VecFn *f, LoopOp op, VReg a, VReg b); /* of i1 */
VReg flags_to_wide(VecFn *f, VReg cond); /* AVX2: lanes of 8 bytes */
VReg flags_of_numbers(VecFn *f, VReg v); /* i1 of lanes of 4 bytes, not 0 */
VReg numbers_of_flags(VecFn *f, VReg cond); /* 0 and 1 in lanes of 4 bytes */

/* vector_math.c */
void begin_divisors(VecFn *f);
VReg lower_quotient(VecFn *f, const LoopNode *n); /* a division in a vector loop */
VReg lower_math(VecFn *f, const LoopFn *caller, const LoopNode *n, const VReg *args);
u32 math_widest(VecFn *f, const LoopNode *n); /* bytes of the widest type in its definition; 0 refused */

/* vector_access.c */
void statement(VecFn *f, u32 id);   /* of straight-line code */
VReg operand(VecFn *f, u32 id);     /* in the scope at hand */
void word_to(VecFn *f, u32 reg, u32 id); /* an i64 of one lane to a general register; RAX RCX RDX only */
/* before the loop: addresses in at most so many registers, what is broadcast; more: beside those there are */
enum { NEAR_MOST = 4, /* bytes from one element to the next: four elements lie in 16 bytes then */
       NEAR_TRIPS = 12 /* trips behind a vector in which the last byte that is read for it lies, at the latest */ };
bool moves_near(const VecFn *f, const LoopNode *n, u32 head, u32 first, u32 last);
void leave_far(VecFn *f, u32 label); /* jumps where elements are not so near after all */
void begin_streams(VecFn *f, u32 registers, bool more);
void step_streams(VecFn *f);
void touch_trip(VecFn *f, u32 step);
void store_address(VecFn *f, const LoopNode *n); /* RAX: of the trip R15 of the vector loop at hand */
/* to the next row of the innermost axis; of an axis around others: to its next row and the first of those inside */
void step_rows(VecFn *f, u32 head, u32 axis);
VAccess access_kind(const VecFn *f, const LoopNode *access, u32 head, u32 first, u32 last);
/* a load of 8 bytes whose place moves on by two: by two vectors */
bool moves_every_other(const VecFn *f, const LoopNode *n, u32 head, u32 first, u32 last);
void call_words(VecFn *f, u64 fn, u32 state, u64 second, u64 third); /* fn(frame + state, second, third) */

/* vector_narrow.c */
u32 narrow_bytes(VecFn *f);
void narrow_spread(VecFn *f, u32 id);
bool narrow_quotients(const VecFn *f);
VReg narrow_quotient(VecFn *f, const LoopNode *n);
VReg narrow_operand(VecFn *f, u32 id);
VReg narrow_value(VecFn *f, u32 id);
VReg narrow_load(VecFn *f, LoopType mem, VecMem m);
void narrow_store(VecFn *f, LoopType mem, VecMem m, VReg v);
void narrow_lanes(VecFn *f, VReg cond);
/* The type that a lane has: of narrow lanes of 4 bytes an i64 is an i32. */
static inline LoopType lane_type(const VecFn *f, LoopType t) { return f->narrow == 4 && t == LT_I64 ? LT_I32 : t; }

/* vector_check.c: the first check that fails ends the kernel: what it wrote means nothing then. */
void check(VecFn *f, const LoopNode *n);
void emit_fails(VecFn *f);

/* vector_serial.c */
enum { SERIAL_BLOCK = 32 }; /* trips of an inner loop that go together */
bool is_short(const VecFn *f, u32 head, u32 first, u32 last);
void serial_loop(VecFn *f, u32 head, u32 first, u32 last);

/* vector_loops.c */
enum { BYTES_OF_ONE = 0x01010101 };
bool is_straight(const VecFn *f, u32 first, u32 last);
void end_span(VecFn *f, u32 first); /* a loop of the machine code, from that instruction to here */
void emit_body(VecFn *f, u32 first, u32 last);
void loop_bounds(VecFn *f, const VLoop *l); /* R15 and R14: the first trip and the one behind the last */
void loop_leave(VecFn *f);
/* bytes of the widest lane; pairs: every other element is moved by two vectors */
u32 loop_widest(VecFn *f, const VLoop *l, u32 *strided, bool *narrow, bool pairs);

/* vector_columns.c */
/* the loop that begins there is one over columns, with loops over rows inside */
bool is_columns(const VecFn *f, u32 pos);
void columns_loop(VecFn *f, VLoop *l);

/* vector_text.c */
void vec_text(const u8 *code, u32 count, const char *name, Buf *out);

/* vector_runtime.c: the levels above the first of a float reduction in the order LANES. */
typedef struct VecLanes {
  u64 count; /* elements in the first of them */
  u64 op, used, type;
  u64 counts[6];
  union {
    f64 d[32];
    f32 f[64];
  } lane[7]; /* [0] belongs to `count` */
} VecLanes;
void vec_lanes_begin(VecLanes *l, u64 op, u64 type); /* the lanes of the first level begin; `count` stays 0 */
void vec_lanes_carry(VecLanes *l); /* the first level is full */
void vec_lanes_end(VecLanes *l);   /* the result to lane[0], element 0 */

/* The levels above the first of sums, products and scans of floats in the order of rows: a vector of columns at a
 * time. */
enum { ROW_LEVELS = 8 };
typedef union VecRow {
  f64 d[32];
  f32 f[64];
} VecRow;
typedef struct VecRows {
  u64 used, n /* columns */, count[ROW_LEVELS];
  VecRow value, acc[ROW_LEVELS], before[ROW_LEVELS];
} VecRows;
void vec_rows_push(VecRows *r, u64 op, u64 type); /* a block's result: `value` */
void vec_rows_end(VecRows *r, u64 op, u64 type);  /* of all of them, to `value` */
/* The same for all columns of a strip, of fewer than VEC_STRIP_ROWS rows: a quarter of what the levels hold, since the
 * end rounds up. */
enum { VEC_STRIP_WORDS = 1024, VEC_STRIP_LEVELS = 3, VEC_STRIP_ROWS = 1 << 22 };
typedef union VecStripRow {
  f64 d[VEC_STRIP_WORDS];
  f32 f[VEC_STRIP_WORDS * 2];
} VecStripRow;
typedef struct VecStrip {
  u64 used, n /* columns */, count[VEC_STRIP_LEVELS];
  VecStripRow value, acc[VEC_STRIP_LEVELS];
} VecStrip;
void vec_strip_push(VecStrip *s, u64 op, u64 type); /* `value` begins anew */
void vec_strip_end(VecStrip *s, u64 op, u64 type);  /* of all blocks and of `value`, the last one, to `value` */
void vec_scan_push(VecRows *r, u64 op, u64 type); /* a segment's total; gives what the next one stands behind */

#endif

/* mir_emitter.h — shared by the files of the MIR emitter; nothing else includes it.
 *
 *   mir_code.c     pools, contexts, groups of functions, the one setjmp
 *   mir_lives.c    spans and shared registers
 *   mir_function.c one function: parameters, statements, checks, exits, calls
 *   mir_operands.c instructions with memory, displacements and immediates as the processor has them
 *   mir_calls.c    calls, functions that others call
 *   mir_heads.c    loops and branches
 *   mir_polls.c    polls, of counted loops many at once
 *   mir_streams.c  pointers that step along with loops
 *   mir_strips.c   loops with transcendental functions, by strips
 *   mir_folds.c    reductions and scans
 *   mir_ops.c      operations on values
 *   mir_divide.c   division of integers
 *   mir_fold.c     constants and addresses back into instructions
 *   mir_select.c   one of two values
 *   mir_wrap.c     indices counted from the end, shifts out of range
 *   mir_patch.c    marked stand-ins become machine instructions that MIR lacks
 *   mir_runtime.c  C functions that emitted code calls */
#ifndef WEFT_JIT_MIR_EMITTER_H
#define WEFT_JIT_MIR_EMITTER_H

#include <mir.h>

#include "jit/scalar/mir_lives.h"

/* ---- marks (mir_patch.c) ------------------------------------------------------------------- */

/* What a marked stand-in becomes. A mark is a store of MIR_MARK | kind << 12 | number to the frame's first word. A
 * stand-in lies between its mark and MARK_CLOSE of the same number, with a store of its result to the same place:
 * what is stored is neither dropped nor moved. */
typedef enum MirMark {
  MARK_END, /* the end of what is searched: number = function of the group */
  MARK_SQRT,
  MARK_MIN,
  MARK_MAX,
  MARK_OR,
  MARK_AND,
  MARK_FLOOR,
  MARK_CEIL,
  MARK_TRUNC,
  MARK_RINT,
  MARK_FMA,  /* two stand-ins: mul, then add */
  MARK_CALL, /* no stand-in: calls the context's thunk for FRAME_CALL, which keeps every register */
  MARK_POLL, /* likewise for mir_poll */
  MARK_CLOSE,
  MARK_COUNT
} MirMark;
#define MIR_MARK 0x57E50000u

bool mir_can_mark(MirMark kind); /* does this processor have the instruction */
/* Offset behind the end mark of function `number` in code that has one; 0 when it does not come within `limit`
 * bytes. */
size_t mir_code_end(const u8 *code, size_t limit, u32 number);
/* Patches a copy of the code up to its end mark. False when what lies between two marks cannot be replaced. */
typedef struct MirThunks {
  const u8 *call, *poll;
} MirThunks;
bool mir_patch(u8 *bytes, size_t length, const u8 *address, const MirThunks *thunks, u64 *patched);

/* The frame of a function that uses marks: words that have a meaning. */
enum { FRAME_MARK = 0, FRAME_CAST = 8, FRAME_CALL = 16, FRAME_ARG = 24, FRAME_ARG2 = 32, FRAME_ANSWER = 40,
       FRAME_VALUE = 48, FRAME_CTX = 56, FRAME_FIRST = 64 };
/* Code that calls the function at FRAME_CALL with FRAME_ARG and FRAME_ARG2 (or `poll` with FRAME_CTX when it is not
 * NULL), puts its result to FRAME_ANSWER, and keeps all registers; the frame is where the stack pointer points to.
 * Its bytes to `code`, at most 512; returns their number. */
size_t mir_thunk(u8 *code, u64 (*poll)(LoopCtx *));
/* Asks ctx->poll, if there is one; not 0: leave. Leaves a budget of 0 at least. */
u64 mir_poll(LoopCtx *ctx);

/* ---- C functions that emitted code calls (mir_runtime.c) ------------------------------------- */

/* Levels above the first of a float reduction or scan that does not fit one block. */
typedef struct MirLanes { /* order LANES */
  u64 used; /* levels that hold something; the emitted code sets it to 0 */
  u64 op;   /* LOOP_ADD or LOOP_MUL */
  u64 any;  /* at the end: has the last block elements */
  u64 count[6];
  union {
    f64 d[6][32];
    f32 f[6][64];
  } lane;
} MirLanes;

typedef struct MirRows { /* order ROWS, and scans */
  u64 used;
  u64 op;
  u64 any;
  u64 count[16];
  f64 acc[16]; /* an f32 accumulator is kept as f64 and rounded at every step: exact */
  f64 before[16];
} MirRows;

/* A full block: its lanes go up as one element. */
void mir_lanes_push_f64(MirLanes *l, f64 *lanes);
void mir_lanes_push_f32(MirLanes *l, f32 *lanes);
/* The end: of the last block in *v, when `any`, and what went up before; to *v. */
void mir_lanes_end_f64(MirLanes *l, f64 *v);
void mir_lanes_end_f32(MirLanes *l, f32 *v);
void mir_rows_push_f64(MirRows *r, f64 *v);
void mir_rows_push_f32(MirRows *r, f32 *v);
void mir_rows_end_f64(MirRows *r, f64 *v);
void mir_rows_end_f32(MirRows *r, f32 *v);
/* A segment's total in; what comes before the next segment out. */
void mir_scan_push_f64(MirRows *r, f64 *v);
void mir_scan_push_f32(MirRows *r, f32 *v);

/* Scalar operations by name of the loop IR, for what MIR cannot say: NULL when there is none. */
void (*mir_runtime_op(LoopOp op, LoopType type))(void);
f32 mir_half_in(u64 bits);
u64 mir_half_out(f32 v);
f32 mir_brain_in(u64 bits);
u64 mir_brain_out(f32 v);

/* ---- prototypes ---------------------------------------------------------------------------- */

typedef enum MirProto {
  PROTO_D_D, /* f64 (f64) and so on: result, arguments; P pointer or word, V nothing */
  PROTO_D_DD,
  PROTO_D_DDD,
  PROTO_F_F,
  PROTO_F_FF,
  PROTO_F_FFF,
  PROTO_P_P,
  PROTO_P_PP,
  PROTO_F_P,
  PROTO_P_F,
  PROTO_KERNEL, /* P (P, P, P) */
  PROTO_FRAME,  /* V (P, P, P, P, P) */
  PROTO_STRIP,  /* P (P, P, P, P) */
  PROTO_COUNT
} MirProto;

/* ---- one function -------------------------------------------------------------------------- */

typedef struct MirUnit { /* one function of a group that is being compiled */
  const LoopFn *source;
  LoopFn *fn; /* simplified */
  MIR_item_t item; /* a forward declaration until it is compiled */
  MIR_item_t inner; /* likewise; NULL: it has but the one entry */
  bool is_inner;   /* it has two: others of the group call it */
  bool broken;     /* memory was refused for its outer entry */
  u32 marks;
} MirUnit;

typedef struct MirGroup {
  MIR_context_t ctx;
  Allocator *alloc;
  MIR_item_t protos[PROTO_COUNT]; /* NULL: nobody asked yet */
  MirUnit *units;
  u32 count;
  bool plain; /* no marks */
  u64 serial;
  Buf *why;
} MirGroup;

MIR_item_t mir_prototype(MirGroup *g, u32 proto); /* made when it is first asked for */

/* A pointer that steps along with a loop: base of a buffer plus the terms of an index whose variables are the
 * indices of open loops. It belongs to the innermost of them; its value at the start of that loop is its parent. */
typedef struct Stream {
  u32 buffer;
  u32 first, count; /* in Emitter.stream_terms */
  u32 axis;         /* index node; 0: a constant of the function, or `mixed` */
  u32 parent;
  bool mixed;       /* has computed terms: made from its parent, which has the others, where it is asked for */
  MIR_reg_t reg;
  MIR_op_t step; /* bytes per trip */
} Stream;

/* Of two integers where the function begins, in a register that nothing else is written to. */
typedef struct Product {
  MIR_reg_t a;
  i64 b; /* register or constant */
  bool constant;
  MIR_reg_t reg;
} Product;

typedef struct Known {
  u32 stream; /* a mixed one */
  MIR_reg_t reg;
} Known;

typedef enum FoldKind { FOLD_NONE, FOLD_EXACT, FOLD_LANES, FOLD_ROWS, FOLD_SCAN } FoldKind;

/* Registers of a reduction or scan that runs. */
typedef struct Fold {
  FoldKind kind;
  LoopOp op;
  LoopType type;
  MIR_reg_t acc;      /* EXACT ROWS SCAN */
  MIR_reg_t before;   /* SCAN: what the segments before this one come to */
  MIR_reg_t total;    /* SCAN: the latest value; 0 when nobody asks */
  MIR_reg_t lane, lane0, lane_end; /* LANES: pointer to the lane of the next element, to the first, behind the last */
  MIR_reg_t left;     /* LANES: elements from this block on */
  MIR_reg_t chunks;   /* LANES ROWS SCAN: trips until the block is full */
  u32 state_at;       /* offset in the frame of MirLanes or MirRows */
} Fold;

/* A counted loop that pays for its polls in advance (mir_polls.c). */
typedef struct Chunk {
  u32 head;        /* 0: it polls each trip */
  u32 poll;        /* position of the poll */
  MIR_reg_t limit; /* trips below this index are paid for */
  MIR_label_t again; /* behind them */
} Chunk;

typedef struct OpenHead {
  u32 head;
  Chunk chunk;
  MIR_label_t next;    /* loops: where a trip ends */
  MIR_label_t done;    /* behind it */
  MIR_label_t top[8];  /* per axis; of a while its first */
  MIR_label_t skip[8]; /* per axis: no trips */
  MIR_label_t arm;     /* if: the second arm, or its end */
  MIR_label_t empty;   /* reductions without elements */
  bool live;           /* if: the current arm's end is reached */
  u32 header_if;       /* while: position of the `if` its body begins with, tested at the bottom too; 0 = none */
  MIR_label_t then_label, else_label; /* also of an `if` that goes on to the next one's arms: these */
  bool threads;
  MIR_label_t late;    /* if: its first arm, which is moved behind the body; NULL: it stands here, or has been moved */
  Fold fold;
} OpenHead;

/* Code that is seldom run, placed behind the function's end. */
typedef enum ColdKind {
  COLD_CHECK,  /* kernel: notes the key */
  COLD_LEAVE,  /* native: leaves by an exit */
  COLD_POLL,   /* native: asks the VM */
  COLD_BLOCK,  /* reduction: a block is full */
  COLD_FINISH, /* reduction: there were several blocks */
  COLD_WRAP,   /* an index that is negative, or none */
  COLD_SHIFT,  /* a shift by as many bits as there are, or more */
} ColdKind;

typedef struct Cold {
  ColdKind kind;
  u32 node;
  MIR_label_t label, back;
  MIR_reg_t code; /* leave: what the callee returned; 0 = the node's own number. Wrap, shift: the result */
  MIR_label_t failed; /* wrap: it is no index */
  bool inner;     /* it gave that in place of the budget */
  u32 open, open_count; /* heads around a check, in Emitter.cold_open */
  u32 saved, saved_count; /* float registers that live across it, in Emitter.cold_saved */
  Chunk chunk; /* poll: the loop it pays for. Leave: the loop that paid for more than it did */
  MIR_label_t top; /* poll of such a loop: its body */
  Fold fold;
} Cold;

typedef struct MirDivision MirDivision;

typedef struct Emitter {
  MirGroup *group;
  MirUnit *unit;
  const LoopFn *fn;
  Allocator *alloc;
  Lives lives;
  MIR_context_t ctx;
  MIR_item_t item;
  MIR_reg_t *regs; /* per class */
  MIR_insn_t entry; /* what must run first ends here */
  MIR_reg_t frame, key, left, code;
  MIR_reg_t args, lo, hi, native_ctx;
  MIR_reg_t depth, result; /* of an inner function (mir_calls.c), else 0 */
  u32 frame_bytes;
  u32 temps;
  u32 marks;
  u32 folds;      /* reductions open: each depth has its own places in the frame */
  u32 fold_lanes[8], fold_state[8];
  u32 save_at;    /* offset of the room for mir_save */
  u32 words_at;   /* offset of the room for exit values and kernel arguments; 0 = not asked for yet */
  MIR_label_t tell; /* native: tells the host the frame left by exit `left_by` with `left_values` words */
  MIR_reg_t left_by, left_values;
  MIR_label_t exit;
  struct Strip *strip; /* the loop that runs by strips, or NULL */
  MIR_reg_t strip_pointer; /* to the trip's element in its first buffer */
  /* the arms of the `if` that comes next, when others have gone there; else NULL */
  MIR_label_t thread_then, thread_else;
  VEC(OpenHead) open;
  VEC(Stream) streams; /* 0 unused */
  VEC(LoopTerm) stream_terms;
  VEC(Product) products;
  u32 *access_stream; /* per node */
  u32 mask_of; /* condition that `mask` is made of, as long as `known` holds; 0: of none */
  MIR_reg_t mask, shifted; /* `shifted`: a register with the constant `shifts`, as long as `known` holds; 0: none */
  i64 shifts;
  u32 twice, in_range; /* a loop that is being written twice; where its shifts are in range */
  /* addresses of mixed streams in registers: within a block, as long as no computed value changes */
  VEC(Known) known;
  /* divisions of this block, forgotten where addresses are; more than these replace the first */
  struct MirDivision {
    u32 a, b; /* nodes */
    bool floors;
    MIR_reg_t quotient, rest; /* 0: not made */
  } division[4];
  u32 divisions;
  /* arms that come behind the body; behind those, what begins with a label marked by `mark_rare` */
  DLIST(MIR_insn_t) late, rare;
  VEC(Cold) cold;
  Cold no_cold; /* stands in when memory was refused */
  VEC(u32) cold_open;
  VEC(u32) cold_saved;
  VEC(MIR_label_t) labels; /* not put yet; its place is in the label's aux data until then */
  VEC(u32) floats; /* float registers of open heads, besides the values' */
  VEC(u32) constants; /* float constants with a register of their own */
  bool failed;        /* memory refused, or `missing` */
  const char *missing; /* what has no definition */
  const char *missing_name;
} Emitter;

static inline const LoopNode *en(const Emitter *e, u32 id) { return loop_node(e->fn, id); }
static inline LoopType et(const Emitter *e, u32 id) { return loop_type_of(e->fn, id); }

static inline MIR_op_t R(const Emitter *e, MIR_reg_t r) { return MIR_new_reg_op(e->ctx, r); }
static inline MIR_op_t I(const Emitter *e, i64 v) { return MIR_new_int_op(e->ctx, v); }
static inline MIR_op_t L(const Emitter *e, MIR_label_t l) { return MIR_new_label_op(e->ctx, l); }

static inline void put(Emitter *e, MIR_insn_t insn) { MIR_append_insn(e->ctx, e->item, insn); }
/* mir_operands.c */
void ins2(Emitter *e, MIR_insn_code_t c, MIR_op_t a, MIR_op_t b);
/* Of registers, and of a constant last: what they are made of is written once. */
void rr(Emitter *e, MIR_insn_code_t c, MIR_reg_t a, MIR_reg_t b);
void ri(Emitter *e, MIR_insn_code_t c, MIR_reg_t a, i64 v);
void rrr(Emitter *e, MIR_insn_code_t c, MIR_reg_t a, MIR_reg_t b, MIR_reg_t d);
void rri(Emitter *e, MIR_insn_code_t c, MIR_reg_t a, MIR_reg_t b, i64 v);
void brr(Emitter *e, MIR_insn_code_t c, MIR_label_t to, MIR_reg_t a, MIR_reg_t b);
void bri(Emitter *e, MIR_insn_code_t c, MIR_label_t to, MIR_reg_t a, i64 v);
/* never one register three times: MIR's spilling trips on that */
void ins3(Emitter *e, MIR_insn_code_t c, MIR_op_t a, MIR_op_t b, MIR_op_t d);
/* memory operand; of a far displacement emits its address */
MIR_op_t M(Emitter *e, MIR_type_t t, MIR_reg_t base, i64 disp);
void mir_load(Emitter *e, MIR_reg_t r, MIR_reg_t base, i64 disp); /* words */
void mir_store(Emitter *e, MIR_reg_t base, i64 disp, MIR_reg_t r);
void mir_negate(Emitter *e, LoopType t, MIR_reg_t to, MIR_op_t from);
/* Between MIR's simplification and its generator: puts displacements and immediates where they belong. */
void mir_settle_operands(MIR_item_t function);
static inline void jump(Emitter *e, MIR_label_t l) { put(e, MIR_new_insn(e->ctx, MIR_JMP, L(e, l))); }
MIR_label_t new_label(Emitter *e); /* freed with the function when it is never put */
void put_label(Emitter *e, MIR_label_t l);
/* From the first such label on all is seldom run, and no register is given for it (quick.sed). */
static inline void mark_rare(MIR_label_t l) { l->ops[0].data = (void *)1; }

/* Of a loop type: MIR's register type, its type in memory, its move. */
static inline MIR_type_t reg_type(LoopType t) { return t == LT_F64 ? MIR_T_D : t == LT_F32 ? MIR_T_F : MIR_T_I64; }
static inline MIR_insn_code_t move_code(LoopType t) {
  return t == LT_F64 ? MIR_DMOV : t == LT_F32 ? MIR_FMOV : MIR_MOV;
}
MIR_type_t mir_memory_type(LoopType t);

/* mir_function.c */
MIR_reg_t mir_temp(Emitter *e, LoopType t);
MIR_reg_t mir_entry_reg(Emitter *e, LoopType t, const char *prefix); /* no value yet */
void mir_at_entry(Emitter *e, MIR_insn_t insn);
MIR_reg_t mir_reg(Emitter *e, u32 id);  /* register of a value's class */
MIR_op_t mir_op(Emitter *e, u32 id);    /* register, or constant */
MIR_op_t mir_const_op(Emitter *e, LoopType t, u64 bits);
u32 mir_frame_room(Emitter *e, u32 bytes); /* offset; never given back */
MIR_reg_t mir_frame(Emitter *e);
void mir_missing(Emitter *e, const char *what, const char *name);
typedef struct Move {
  MIR_reg_t to;
  MIR_op_t from;
  LoopType type;
} Move;
void mir_moves(Emitter *e, Move *moves, u32 count); /* all at once: reads before writes */
/* result first, then arguments */
void mir_call(Emitter *e, MirProto proto, void (*fn)(void), u32 nops, const MIR_op_t *ops);
Cold *mir_cold(Emitter *e, ColdKind kind, u32 id, u32 at); /* with its label; a dummy after a failure */
MIR_label_t mir_leave_label(Emitter *e, u32 check, u32 at); /* native: where it goes when it fails */
/* of a check that leaves by the same exit with the same values; NULL: none. paid_by: limit of the chunk that paid for
 * more than it did, 0: none */
MIR_label_t mir_known_leave(const Emitter *e, u32 id, MIR_reg_t paid_by);
/* A call in cold code that hot code does not feel: fn(a, b), by the thunk; without marks, float registers that live
 * across it go to the frame and back. */
/* by an exit: puts its values where `tell` reads them */
void mir_leave(Emitter *e, u32 exit, MIR_reg_t code, const u32 *values, u32 count);
MIR_reg_t mir_quiet_call(Emitter *e, const Cold *c, void (*fn)(void), MIR_op_t a, MIR_op_t b);
void mir_statement(Emitter *e, u32 at);
void mir_statements(Emitter *e, u32 from, u32 to); /* positions */
WeftStatus mir_function(MirGroup *g, u32 unit);

/* Offsets in LoopCtx. */
enum { CTX_RESULTS = 0, CTX_BUDGET = 8, CTX_DEPTH = 16, CTX_POLL = 24, CTX_FRAME = 32 };
MIR_op_t mir_ctx_word(Emitter *e, i64 offset);
void mir_store_word(Emitter *e, MIR_reg_t base, i64 offset, u32 id);
u32 mir_words_room(Emitter *e); /* in the frame, for exit values and arguments of kernels */

/* mir_calls.c */
void mir_put_call(Emitter *e, u32 id, u32 at);
MIR_type_t mir_argument_type(LoopType t);
u32 mir_inner_types(const LoopFn *fn, MIR_type_t types[2]);
void mir_find_inner(MirGroup *g); /* MirUnit.is_inner */
void mir_outer(MirGroup *g, u32 number);

/* mir_ops.c */
void mir_value(Emitter *e, u32 id);
/* Goes to `yes` when the i1 `id` holds, else on; or the other way round. */
void mir_branch_if(Emitter *e, u32 id, MIR_label_t yes);
void mir_branch_unless(Emitter *e, u32 id, MIR_label_t no);
void mir_combine(Emitter *e, LoopOp op, LoopType t, MIR_reg_t to, MIR_op_t a, MIR_op_t b); /* to may be a's register */
/* to = to KIND with; the stand-in is a subtraction. */
/* A register for a sequence that may write it early: the value's own, or a fresh one when others share that;
 * mir_finish brings what is in it to the value's. */
MIR_reg_t mir_own(Emitter *e, u32 id);
void mir_finish(Emitter *e, u32 id, MIR_reg_t r);
void mir_move(Emitter *e, LoopType t, MIR_reg_t to, MIR_op_t from); /* nothing when it is there */
MIR_reg_t mir_in_reg(Emitter *e, LoopType t, MIR_op_t op);          /* an operand that has to be in a register */
void mir_call_op(Emitter *e, LoopOp op, LoopType t, MIR_reg_t to, u32 count, const MIR_op_t *args);
/* mir_divide.c */
/* Did a check of this kind hold for the value on the way to `at`: in its block or one around it, before. */
bool mir_checked(const Emitter *e, LoopCheck kind, u32 value, u32 at);
void mir_divide(Emitter *e, u32 id, const LoopNode *n);
void mir_mulhi(Emitter *e, u32 id, const LoopNode *n);
void mir_extend(Emitter *e, LoopType t, MIR_reg_t r);               /* wraps an integer register to its type */
void mir_stand_in(Emitter *e, MirMark kind, LoopType t, MIR_reg_t to, MIR_op_t with);
void mir_mark(Emitter *e, MirMark kind, u32 number);

/* mir_fold.c: of a function that MIR has simplified. */
void mir_fold(MIR_context_t ctx, MIR_item_t item, Allocator *alloc);

/* mir_wrap.c */
bool mir_wrap(Emitter *e, u32 id); /* a select and the check behind it as one; false: it is no such select */
bool mir_is_wrapped(const Emitter *e, u32 check, u32 at); /* the check was made with the select in front of it */
void mir_shift(Emitter *e, u32 id, const LoopNode *n);
/* a loop whose shifts count with it; the position of its end, 0: it is no such loop */
u32 mir_shift_loop(Emitter *e, u32 at);
void mir_cold_wrap(Emitter *e, const Cold *c);
void mir_cold_shift(Emitter *e, const Cold *c);

/* mir_select.c */
void mir_select(Emitter *e, u32 id, const LoopNode *n);
MIR_reg_t mir_unless(Emitter *e, u32 cond);

/* mir_heads.c */
void mir_open_head(Emitter *e, u32 id, u32 at);
void mir_else(Emitter *e);
void mir_close_head(Emitter *e, u32 at);
void mir_set_aside(Emitter *e, MIR_insn_t from, bool rare); /* all since then comes behind the body */
void mir_put_late(Emitter *e);
void mir_terminator(Emitter *e, u32 at);
OpenHead *mir_innermost_loop(Emitter *e);

/* mir_polls.c */
void mir_poll_statement(Emitter *e, u32 id, u32 at);
void mir_cold_poll(Emitter *e, const Cold *c);
void mir_find_chunk(Emitter *e, OpenHead *o, u32 at); /* of a `for` at a position */
void mir_begin_chunk(Emitter *e, OpenHead *o); /* its index is 0 */
void mir_end_trip(Emitter *e, const OpenHead *o); /* at the bottom, where there are trips left to be paid for */
void mir_give_back(Emitter *e, const Chunk *c); /* what was paid for later trips, in a trip */

/* mir_streams.c */
bool mir_find_streams(Emitter *e); /* false when memory was refused */
MIR_reg_t mir_address(Emitter *e, u32 access, i64 *disp);
void mir_forget_addresses(Emitter *e);
void mir_begin_streams(Emitter *e, u32 axis, MIR_reg_t from); /* from: the first index; 0 = it is 0 */
void mir_step_streams(Emitter *e, u32 axis);

/* mir_strips.c */
/* the position of the END of the loop at `at`, which is done; 0: it does not qualify */
u32 mir_strip_loop(Emitter *e, u32 at);
bool mir_strip_value(Emitter *e, u32 id); /* a function's result out of its buffer; false: it is to be called */

/* mir_folds.c */
void mir_open_fold(Emitter *e, OpenHead *o, u32 at);
void mir_fold_trip(Emitter *e, OpenHead *o, u32 at); /* at the start of a trip */
void mir_fold_element(Emitter *e, OpenHead *o, u32 at, MIR_op_t v);
void mir_prefix(Emitter *e, u32 id);
void mir_close_fold(Emitter *e, OpenHead *o, u32 at);
void mir_cold_fold(Emitter *e, const Cold *c);

#endif

/* mir_folds.c — reductions and scans in the order of ir.md section 10.
 *
 * Integers, min and max are exact in any order: one accumulator. Float sums and products keep the lanes of a block in
 * the frame (W * bytes = 256, so an addition meets its own store only W elements later), or one accumulator per
 * block of rows or segment of a scan. A full block goes up to the levels above through a C function, in cold code;
 * of a reduction within one block nothing is called. Absent lanes are skipped: the start of a lane is an exact
 * identity. */
#include <string.h>

#include "jit/scalar/mir_emitter.h"

enum { LANE_BYTES = 256 };

static u32 bytes_of(const Fold *f) { return loop_type_bytes(f->type); }

static LoopReduce reduction_of(const Emitter *e, u32 head) { return (LoopReduce)en(e, head)->aux; }

static MIR_op_t identity(Emitter *e, u32 head, LoopType t) {
  return mir_const_op(e, t, loop_reduce_identity(reduction_of(e, head), t));
}
static MIR_op_t empty(Emitter *e, u32 head, LoopType t) {
  return mir_const_op(e, t, loop_reduce_empty(reduction_of(e, head), t));
}

static void keep_float(Emitter *e, MIR_reg_t r) {
  if (!vec_push(e->alloc, &e->floats, r)) e->failed = true;
}

static void set_state(Emitter *e, const Fold *f) {
  ins2(e, MIR_MOV, M(e, MIR_T_I64, mir_frame(e), f->state_at), I(e, 0));     /* used */
  ins2(e, MIR_MOV, M(e, MIR_T_I64, mir_frame(e), f->state_at + 8), I(e, f->op)); /* op */
}

static MIR_reg_t state_of(Emitter *e, const Fold *f) {
  MIR_reg_t r = mir_temp(e, LT_I64);
  rri(e, MIR_ADD, r, mir_frame(e), f->state_at);
  return r;
}

_Static_assert(offsetof(MirLanes, used) == 0 && offsetof(MirLanes, op) == 8 && offsetof(MirLanes, any) == 16,
               "emitted code writes these");
_Static_assert(offsetof(MirRows, used) == 0 && offsetof(MirRows, op) == 8 && offsetof(MirRows, any) == 16,
               "emitted code writes these");

/* A block begins: as many lanes as it will have elements start from the identity. */
static void begin_block(Emitter *e, u32 head, const Fold *f) {
  MIR_label_t fill = new_label(e), whole = new_label(e);
  MIR_reg_t end = mir_temp(e, LT_I64), bits = mir_temp(e, LT_I64);
  u64 start = loop_reduce_identity(reduction_of(e, head), f->type);
  rr(e, MIR_MOV, end, f->lane_end);
  bri(e, MIR_UBGE, whole, f->left, loop_lanes(f->type));
  rri(e, MIR_MUL, end, f->left, bytes_of(f));
  rrr(e, MIR_ADD, end, f->lane0, end);
  put_label(e, whole);
  ri(e, MIR_MOV, bits, (i64)start);
  rr(e, MIR_MOV, f->lane, f->lane0);
  put_label(e, fill);
  ins2(e, MIR_MOV, M(e, f->type == LT_F64 ? MIR_T_I64 : MIR_T_I32, f->lane, 0), R(e, bits));
  rri(e, MIR_ADD, f->lane, f->lane, bytes_of(f));
  brr(e, MIR_UBLT, fill, f->lane, end);
  rr(e, MIR_MOV, f->lane, f->lane0);
  ri(e, MIR_MOV, f->chunks, LOOP_BLOCK_TRIPS);
}

/* The number of elements, known to be the product of the trip counts. */
static void count_elements(Emitter *e, u32 head, MIR_reg_t to) {
  const LoopNode *n = en(e, head);
  ins2(e, MIR_MOV, R(e, to), mir_op(e, loop_trips_of(e->fn, head, 0)));
  for (u32 axis = 1; axis < n->a; axis++)
    ins3(e, MIR_MUL, R(e, to), R(e, to), mir_op(e, loop_trips_of(e->fn, head, axis)));
}

static u32 room_at_depth(Emitter *e, u32 *places, u32 bytes) {
  u32 depth = e->folds < 8 ? e->folds : 7;
  if (e->folds >= 8) return mir_frame_room(e, bytes);
  if (!places[depth]) places[depth] = mir_frame_room(e, bytes);
  return places[depth];
}

void mir_open_fold(Emitter *e, OpenHead *o, u32 at) {
  const LoopNode *n = en(e, o->head);
  Fold *f = &o->fold;
  (void)at;
  f->type = et(e, loop_result_of(e->fn, o->head, 0));
  f->op = loop_reduce_op((LoopReduce)n->aux);
  /* FOLD_NONE: only what the body does besides */
  if (n->op == LOOP_REDUCE && !e->lives.uses[loop_result_of(e->fn, o->head, 0)]) return;
  bool exact = !loop_is_float(f->type) || f->op == LOOP_MIN || f->op == LOOP_MAX;
  f->kind = exact ? FOLD_EXACT : n->op == LOOP_SCAN ? FOLD_SCAN : n->mem == LOOP_ORDER_ROWS ? FOLD_ROWS : FOLD_LANES;
  if (f->kind != FOLD_LANES) {
    f->acc = mir_temp(e, f->type);
    ins2(e, move_code(f->type), R(e, f->acc), identity(e, o->head, f->type));
    if (loop_is_float(f->type)) keep_float(e, f->acc);
  }
  if (n->op == LOOP_SCAN && e->lives.uses[loop_result_of(e->fn, o->head, 0)]) {
    f->total = mir_temp(e, f->type);
    ins2(e, move_code(f->type), R(e, f->total), empty(e, o->head, f->type));
    if (loop_is_float(f->type)) keep_float(e, f->total);
  }
  if (exact) return;
  f->state_at = room_at_depth(e, e->fold_state,
                              sizeof(MirLanes) > sizeof(MirRows) ? sizeof(MirLanes) : sizeof(MirRows));
  set_state(e, f);
  f->chunks = mir_temp(e, LT_I64);
  if (f->kind == FOLD_SCAN) {
    f->before = mir_temp(e, f->type);
    ins2(e, move_code(f->type), R(e, f->before), identity(e, o->head, f->type));
    keep_float(e, f->before);
    ri(e, MIR_MOV, f->chunks, LOOP_SCAN_SEGMENT);
  } else {
    MIR_reg_t elements = mir_temp(e, LT_I64);
    o->empty = new_label(e);
    count_elements(e, o->head, elements);
    bri(e, MIR_BEQ, o->empty, elements, 0);
    if (f->kind == FOLD_ROWS) {
      ri(e, MIR_MOV, f->chunks, LOOP_ROW_BLOCK);
    } else {
      f->left = elements;
      f->lane = mir_temp(e, LT_I64);
      f->lane0 = mir_temp(e, LT_I64);
      f->lane_end = mir_temp(e, LT_I64);
      rri(e, MIR_ADD, f->lane0, mir_frame(e), room_at_depth(e, e->fold_lanes, LANE_BYTES));
      rri(e, MIR_ADD, f->lane_end, f->lane0, LANE_BYTES);
      begin_block(e, o->head, f);
    }
  }
  e->folds++;
}

static void cold_block(Emitter *e, OpenHead *o, u32 at, MIR_insn_code_t branch, MIR_op_t a, MIR_op_t b) {
  Cold *c = mir_cold(e, COLD_BLOCK, o->head, at);
  c->back = new_label(e);
  c->fold = o->fold;
  MIR_label_t back = c->back;
  ins3(e, branch, L(e, c->label), a, b);
  put_label(e, back);
}

/* A scan's segment goes up before the next element: its last value is out by then. */
void mir_fold_trip(Emitter *e, OpenHead *o, u32 at) {
  if (o->fold.kind == FOLD_SCAN) cold_block(e, o, at, MIR_BEQ, R(e, o->fold.chunks), I(e, 0));
}

/* Of float min and max, what changes nothing (strictly: zeros and NaN are left to the rest) is jumped over: the
 * branch is foreseen, and no chain of additions waits for the accumulator. */
static void accumulate(Emitter *e, Fold *f, MIR_op_t v) {
  MIR_label_t same = new_label(e);
  bool skips = loop_is_float(f->type) && (f->op == LOOP_MIN || f->op == LOOP_MAX) && v.mode == MIR_OP_REG;
  if (skips) {
    MIR_insn_code_t less = f->type == LT_F64 ? MIR_DBLT : MIR_FBLT;
    if (f->op == LOOP_MAX) ins3(e, less, L(e, same), v, R(e, f->acc));
    else ins3(e, less, L(e, same), R(e, f->acc), v);
  }
  mir_combine(e, f->op, f->type, f->acc, R(e, f->acc), v);
  if (skips) put_label(e, same);
}

void mir_fold_element(Emitter *e, OpenHead *o, u32 at, MIR_op_t v) {
  Fold *f = &o->fold;
  if (f->kind == FOLD_NONE) return;
  if (f->kind != FOLD_LANES) accumulate(e, f, v);
  if (f->kind == FOLD_ROWS) {
    rri(e, MIR_SUB, f->chunks, f->chunks, 1);
    cold_block(e, o, at, MIR_BEQ, R(e, f->chunks), I(e, 0));
  }
  if (f->kind != FOLD_LANES) return;
  MIR_type_t memory = mir_memory_type(f->type);
  MIR_reg_t t = mir_temp(e, f->type);
  ins2(e, move_code(f->type), R(e, t), M(e, memory, f->lane, 0));
  mir_combine(e, f->op, f->type, t, R(e, t), v);
  ins2(e, move_code(f->type), M(e, memory, f->lane, 0), R(e, t));
  rri(e, MIR_ADD, f->lane, f->lane, bytes_of(f));
  cold_block(e, o, at, MIR_BEQ, R(e, f->lane), R(e, f->lane_end));
}

void mir_prefix(Emitter *e, u32 id) {
  OpenHead *o = &e->open.data[e->open.count - 1];
  Fold *f = &o->fold;
  MIR_reg_t to = mir_reg(e, id);
  mir_combine(e, f->op, f->type, f->acc, R(e, f->acc), mir_op(e, en(e, id)->a));
  if (f->kind == FOLD_SCAN) {
    mir_combine(e, f->op, f->type, to, R(e, f->before), R(e, f->acc));
    rri(e, MIR_SUB, f->chunks, f->chunks, 1);
  } else {
    rr(e, move_code(f->type), to, f->acc);
  }
  if (f->total) rr(e, move_code(f->type), f->total, to);
}

/* Lanes combine as l with l + W/2, then W/4 … 1, of those that are there: `present` is their bytes. */
static void combine_lanes(Emitter *e, const Fold *f, MIR_reg_t present) {
  MIR_label_t level = new_label(e), lane = new_label(e), lower = new_label(e), done = new_label(e);
  MIR_type_t memory = mir_memory_type(f->type);
  MIR_reg_t half = mir_temp(e, LT_I64), p = mir_temp(e, LT_I64), q = mir_temp(e, LT_I64), end = mir_temp(e, LT_I64);
  MIR_reg_t a = mir_temp(e, f->type);
  ri(e, MIR_MOV, half, LANE_BYTES / 2);
  put_label(e, level);
  brr(e, MIR_BLE, lower, present, half);
  rr(e, MIR_MOV, p, f->lane0);
  rrr(e, MIR_ADD, q, p, half);
  rrr(e, MIR_ADD, end, p, present);
  put_label(e, lane);
  ins2(e, move_code(f->type), R(e, a), M(e, memory, p, 0));
  mir_combine(e, f->op, f->type, a, R(e, a), M(e, memory, q, 0));
  ins2(e, move_code(f->type), M(e, memory, p, 0), R(e, a));
  rri(e, MIR_ADD, p, p, bytes_of(f));
  rri(e, MIR_ADD, q, q, bytes_of(f));
  brr(e, MIR_UBLT, lane, q, end);
  rr(e, MIR_MOV, present, half);
  put_label(e, lower);
  rri(e, MIR_URSH, half, half, 1);
  bri(e, MIR_BGE, level, half, bytes_of(f));
  put_label(e, done);
}

/* Behind the loop. A second block was begun only if `used` is set. */
void mir_close_fold(Emitter *e, OpenHead *o, u32 at) {
  Fold *f = &o->fold;
  u32 result_id = loop_result_of(e->fn, o->head, 0);
  bool scan = en(e, o->head)->op == LOOP_SCAN;
  if (f->kind == FOLD_NONE) return;
  if (f->kind != FOLD_EXACT) e->folds--;
  if (scan || f->kind == FOLD_EXACT) {
    MIR_reg_t from = scan ? f->total : f->acc;
    if (from) rr(e, move_code(f->type), mir_reg(e, result_id), from);
    e->floats.count -= loop_is_float(f->type) ? (u32)(f->acc != 0) + (f->total != 0) + (f->before != 0) : 0;
    return;
  }
  MIR_reg_t result = mir_reg(e, result_id), r = mir_temp(e, f->type), used = mir_temp(e, LT_I64);
  MIR_label_t done = new_label(e);
  if (f->kind == FOLD_LANES) {
    MIR_label_t counted = new_label(e);
    MIR_reg_t present = mir_temp(e, LT_I64);
    f->left = mir_temp(e, LT_I64); /* now: are there elements in the last block */
    ri(e, MIR_MOV, present, LANE_BYTES);
    bri(e, MIR_BNE, counted, f->chunks, LOOP_BLOCK_TRIPS);
    rrr(e, MIR_SUB, present, f->lane, f->lane0);
    put_label(e, counted);
    rr(e, MIR_MOV, f->left, present);
    combine_lanes(e, f, present);
    ins2(e, move_code(f->type), R(e, r), M(e, mir_memory_type(f->type), f->lane0, 0));
  } else {
    f->left = mir_temp(e, LT_I64);
    ins3(e, MIR_SUB, R(e, f->left), I(e, LOOP_ROW_BLOCK), R(e, f->chunks));
    rr(e, move_code(f->type), r, f->acc);
    e->floats.count--;
  }
  Cold *c = mir_cold(e, COLD_FINISH, o->head, at);
  c->back = new_label(e);
  f->total = r;
  c->fold = *f;
  MIR_label_t back = c->back;
  mir_load(e, used, mir_frame(e), f->state_at);
  bri(e, MIR_BNE, c->label, used, 0);
  put_label(e, back);
  rr(e, move_code(f->type), result, r);
  jump(e, done);
  put_label(e, o->empty);
  ins2(e, move_code(f->type), R(e, result), empty(e, o->head, f->type));
  put_label(e, done);
}

/* ---- cold code ----------------------------------------------------------------------------- */

typedef void (*Function)(void);

static void push_lanes(Emitter *e, const Cold *c) {
  const Fold *f = &c->fold;
  rr(e, MIR_MOV, f->lane, f->lane0);
  rri(e, MIR_SUB, f->chunks, f->chunks, 1);
  bri(e, MIR_BNE, c->back, f->chunks, 0);
  Function push = f->type == LT_F64 ? (Function)mir_lanes_push_f64 : (Function)mir_lanes_push_f32;
  (void)mir_quiet_call(e, c, push, R(e, state_of(e, f)), R(e, f->lane0));
  rri(e, MIR_SUB, f->left, f->left, (i64)loop_lanes(f->type) * LOOP_BLOCK_TRIPS);
  begin_block(e, c->node, f);
}

/* Calls fn(state, &value) with a value in a register, which gets the answer. */
static void call_with_value(Emitter *e, const Cold *c, Function fn, MIR_reg_t value) {
  const Fold *f = &c->fold;
  MIR_op_t at = M(e, mir_memory_type(f->type), mir_frame(e), FRAME_VALUE);
  MIR_reg_t pointer = mir_temp(e, LT_I64);
  ins2(e, move_code(f->type), at, R(e, value));
  rri(e, MIR_ADD, pointer, mir_frame(e), FRAME_VALUE);
  (void)mir_quiet_call(e, c, fn, R(e, state_of(e, f)), R(e, pointer));
  ins2(e, move_code(f->type), R(e, value), at);
}

static void push_acc(Emitter *e, const Cold *c) {
  const Fold *f = &c->fold;
  bool d = f->type == LT_F64, scan = f->kind == FOLD_SCAN;
  Function scan_push = d ? (Function)mir_scan_push_f64 : (Function)mir_scan_push_f32;
  Function rows_push = d ? (Function)mir_rows_push_f64 : (Function)mir_rows_push_f32;
  call_with_value(e, c, scan ? scan_push : rows_push, f->acc);
  if (scan) rr(e, move_code(f->type), f->before, f->acc);
  ins2(e, move_code(f->type), R(e, f->acc), identity(e, c->node, f->type));
  ri(e, MIR_MOV, f->chunks, scan ? LOOP_SCAN_SEGMENT : LOOP_ROW_BLOCK);
}

void mir_cold_fold(Emitter *e, const Cold *c) {
  const Fold *f = &c->fold;
  bool d = f->type == LT_F64;
  put_label(e, c->label);
  if (c->kind == COLD_BLOCK) {
    if (f->kind == FOLD_LANES) push_lanes(e, c);
    else push_acc(e, c);
  } else {
    Function lanes = d ? (Function)mir_lanes_end_f64 : (Function)mir_lanes_end_f32;
    Function rows = d ? (Function)mir_rows_end_f64 : (Function)mir_rows_end_f32;
    mir_store(e, mir_frame(e), f->state_at + 16, f->left); /* any */
    call_with_value(e, c, f->kind == FOLD_LANES ? lanes : rows, f->total);
  }
  jump(e, c->back);
}

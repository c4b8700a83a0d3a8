/* mir_function.c — one loop IR function as a MIR function: parameters, statements, checks, exits, calls.
 *
 * Layout: an entry section (frame, parameters, constants, base pointers) that later code may still add to; the body;
 * cold code; the one exit. Calls in hot code make MIR keep float values in memory; so what is seldom run saves and
 * restores the float registers that live across its calls itself. */
#include <stdio.h>
#include <string.h>

#include "jit/scalar/mir_emitter.h"

enum { SAVED_MOST = 48, ALIKE_MOST = 16 };

/* ---- registers ----------------------------------------------------------------------------- */

MIR_type_t mir_memory_type(LoopType t) {
  switch (t) {
    case LT_I1:
    case LT_U8: return MIR_T_U8;
    case LT_I32: return MIR_T_I32;
    case LT_U32: return MIR_T_U32;
    case LT_F32: return MIR_T_F;
    case LT_F64: return MIR_T_D;
    default: return MIR_T_I64;
  }
}

static MIR_reg_t new_reg(Emitter *e, LoopType t, const char *prefix, u32 number) {
  char name[NUMBERED_MAX];
  name_numbered(name, prefix, number);
  return MIR_new_func_reg(e->ctx, e->item->u.func, reg_type(t), name);
}

MIR_reg_t mir_temp(Emitter *e, LoopType t) { return new_reg(e, t, "x", ++e->temps); }
MIR_reg_t mir_entry_reg(Emitter *e, LoopType t, const char *prefix) { return new_reg(e, t, prefix, ++e->temps); }

void mir_at_entry(Emitter *e, MIR_insn_t insn) {
  if (e->entry) MIR_insert_insn_after(e->ctx, e->item, e->entry, insn);
  else MIR_prepend_insn(e->ctx, e->item, insn);
  e->entry = insn;
}

/* ---- labels --------------------------------------------------------------------------------- */

MIR_label_t new_label(Emitter *e) {
  bool room = vec_reserve(e->alloc, (void **)&e->labels.data, &e->labels.cap, e->labels.count + 1,
                          sizeof *e->labels.data);
  if (!room) e->failed = true;
  if (!room && e->exit) return e->exit; /* any label will do now */
  MIR_label_t l = MIR_new_label(e->ctx);
  if (!room) {
    put(e, l);
    return l;
  }
  e->labels.data[e->labels.count++] = l;
  l->data = (void *)(uintptr_t)e->labels.count;
  return l;
}

void put_label(Emitter *e, MIR_label_t l) {
  if (!l->data) return; /* put before: only after a failure */
  e->labels.data[(uintptr_t)l->data - 1] = NULL;
  l->data = NULL;
  put(e, l);
}

/* After a failure, code may jump to labels that were not put: then the module is never linked, and they go with it. */
static void free_labels(Emitter *e) {
  for (u32 i = 0; i < e->labels.count; i++) {
    MIR_label_t l = e->labels.data[i];
    if (!l) continue;
    if (e->failed) put_label(e, l);
    else _MIR_free_insn(e->ctx, l);
  }
}

MIR_reg_t mir_reg(Emitter *e, u32 id) {
  u32 class = e->lives.class_of[id];
  if (!e->regs[class]) e->regs[class] = new_reg(e, et(e, class), "v", class);
  return e->regs[class];
}

static MIR_op_t immediate(Emitter *e, LoopType t, u64 bits) {
  if (t == LT_F64) {
    f64 v;
    memcpy(&v, &bits, 8);
    return MIR_new_double_op(e->ctx, v);
  }
  if (t == LT_F32) {
    u32 low = (u32)bits;
    f32 v;
    memcpy(&v, &low, 4);
    return MIR_new_float_op(e->ctx, v);
  }
  return I(e, (i64)bits);
}

/* A constant of the emitter's own: float ones in a register from the entry on. */
MIR_op_t mir_const_op(Emitter *e, LoopType t, u64 bits) {
  if (!loop_is_float(t)) return I(e, (i64)bits);
  MIR_reg_t r = mir_entry_reg(e, t, "c");
  mir_at_entry(e, MIR_new_insn(e->ctx, move_code(t), R(e, r), immediate(e, t, bits)));
  return R(e, r);
}

MIR_op_t mir_op(Emitter *e, u32 id) {
  const LoopNode *n = en(e, id);
  if (n->op != LOOP_CONST) return R(e, mir_reg(e, id));
  LoopType t = (LoopType)n->type;
  if (!loop_is_float(t) || !e->lives.in_loop[id]) return immediate(e, t, n->imm);
  if (!e->regs[id]) {
    e->regs[id] = new_reg(e, t, "k", id);
    mir_at_entry(e, MIR_new_insn(e->ctx, move_code(t), R(e, e->regs[id]), immediate(e, t, n->imm)));
    if (!vec_push(e->alloc, &e->constants, id)) e->failed = true;
  }
  return R(e, e->regs[id]);
}

/* The frame lies where the stack pointer points to; its size is known at the end. */
MIR_reg_t mir_frame(Emitter *e) {
  if (!e->frame) {
    e->frame = new_reg(e, LT_I64, "frame", 0);
    MIR_insn_t insn = MIR_new_insn(e->ctx, MIR_ALLOCA, R(e, e->frame), I(e, FRAME_FIRST));
    MIR_prepend_insn(e->ctx, e->item, insn);
    if (!e->entry) e->entry = insn;
    e->frame_bytes = FRAME_FIRST;
  }
  return e->frame;
}

u32 mir_frame_room(Emitter *e, u32 bytes) {
  (void)mir_frame(e);
  u32 at = e->frame_bytes;
  e->frame_bytes += (bytes + 15) & ~15u;
  return at;
}

/* Room for words that are read at once: exit values, arguments of kernels. */
u32 mir_words_room(Emitter *e) {
  u32 most = 1;
  for (u32 i = 0; !e->words_at && i < e->fn->body.count; i++) {
    const LoopNode *n = en(e, e->fn->body.data[i]);
    LoopForm form = loop_op_form((LoopOp)n->op);
    if ((form == LOOP_FORM_CHECK || form == LOOP_FORM_CALL || form == LOOP_FORM_EXIT) && n->count > most)
      most = n->count;
  }
  if (!e->words_at) e->words_at = mir_frame_room(e, most * 8);
  return e->words_at;
}

void mir_missing(Emitter *e, const char *what, const char *name) {
  if (e->missing) return;
  e->missing = what;
  e->missing_name = name;
  e->failed = true;
}

/* All moves at once: one is made when nobody still reads what it writes; a cycle is broken through a fresh register. */
void mir_moves(Emitter *e, Move *moves, u32 count) {
  u32 left = 0;
  for (u32 i = 0; i < count; i++)
    if (!(moves[i].from.mode == MIR_OP_REG && moves[i].from.u.reg == moves[i].to)) moves[left++] = moves[i];
  while (left) {
    bool progress = false;
    for (u32 i = 0; i < left;) {
      bool read = false;
      for (u32 k = 0; k < left; k++)
        read |= k != i && moves[k].from.mode == MIR_OP_REG && moves[k].from.u.reg == moves[i].to;
      if (read) {
        i++;
        continue;
      }
      ins2(e, move_code(moves[i].type), R(e, moves[i].to), moves[i].from);
      moves[i] = moves[--left];
      progress = true;
    }
    if (progress) continue;
    MIR_reg_t copy = mir_temp(e, moves[0].type);
    MIR_reg_t of = moves[0].from.u.reg;
    ins2(e, move_code(moves[0].type), R(e, copy), moves[0].from);
    for (u32 k = 0; k < left; k++)
      if (moves[k].from.mode == MIR_OP_REG && moves[k].from.u.reg == of) moves[k].from = R(e, copy);
  }
}

void mir_call(Emitter *e, MirProto proto, void (*fn)(void), u32 nops, const MIR_op_t *ops) {
  MIR_op_t all[10] = {MIR_new_ref_op(e->ctx, mir_prototype(e->group, proto)),
                      MIR_new_uint_op(e->ctx, (u64)(uintptr_t)fn)};
  memcpy(all + 2, ops, sizeof *ops * nops);
  put(e, MIR_new_insn_arr(e->ctx, MIR_CALL, nops + 2, all));
}

static MIR_op_t function_in_reg(Emitter *e, LoopType t, MIR_op_t op) {
  if (op.mode == MIR_OP_REG) return op;
  MIR_reg_t r = mir_temp(e, t);
  ins2(e, move_code(t), R(e, r), op);
  return R(e, r);
}

/* ---- cold code ----------------------------------------------------------------------------- */

static void note_saved(Emitter *e, MIR_reg_t r) {
  if (!vec_push(e->alloc, &e->cold_saved, r)) e->failed = true;
}

Cold *mir_cold(Emitter *e, ColdKind kind, u32 id, u32 at) {
  static const Cold none;
  Cold c = none;
  c.kind = kind;
  c.node = id;
  c.label = new_label(e);
  c.open = e->cold_open.count;
  c.saved = e->cold_saved.count;
  OpenHead *loop = mir_innermost_loop(e);
  if (loop) c.chunk = loop->chunk;
  for (u32 i = 0; kind == COLD_CHECK && i < e->open.count; i++)
    if (!vec_push(e->alloc, &e->cold_open, e->open.data[i].head)) e->failed = true;
  c.open_count = e->cold_open.count - c.open;
  if (kind == COLD_POLL || kind == COLD_BLOCK || kind == COLD_FINISH) {
    for (u32 node = 1; node < e->fn->nodes.count; node++) {
      const LoopNode *n = en(e, node);
      if (!loop_is_float((LoopType)n->type) || e->lives.class_of[node] != node || !e->regs[node] || n->op == LOOP_CONST)
        continue;
      bool across = n->op == LOOP_PARAM ? e->lives.last[node] >= at : lives_across(&e->lives, node, at);
      if (across) note_saved(e, e->regs[node]);
    }
    for (u32 i = 0; i < e->floats.count; i++) note_saved(e, e->floats.data[i]);
    if (e->cold_saved.count - c.saved > SAVED_MOST) e->cold_saved.count = c.saved + SAVED_MOST; /* the rest is MIR's */
  }
  c.saved_count = e->cold_saved.count - c.saved;
  if (vec_push(e->alloc, &e->cold, c)) return &e->cold.data[e->cold.count - 1];
  e->failed = true;
  e->no_cold = c;
  return &e->no_cold;
}

/* Does it leave by the exit that node `id` leaves by, with the same values? */
static bool leaves_alike(const Emitter *e, const Cold *c, u32 id, MIR_reg_t paid_by) {
  const LoopNode *a = en(e, id), *b = en(e, c->node);
  if (c->kind != COLD_LEAVE || b->op != LOOP_CHECK || a->imm != b->imm || a->count != b->count ||
      c->chunk.limit != paid_by)
    return false;
  return !a->count || memcmp(loop_list(e->fn, a), loop_list(e->fn, b), sizeof(u32) * a->count) == 0;
}

MIR_label_t mir_known_leave(const Emitter *e, u32 id, MIR_reg_t paid_by) {
  for (u32 i = e->cold.count, n = 0; i-- && n < ALIKE_MOST; n++)
    if (leaves_alike(e, &e->cold.data[i], id, paid_by)) return e->cold.data[i].label;
  return NULL;
}

/* Where a failed check goes: many leave alike, as those that a loop begins with. */
MIR_label_t mir_leave_label(Emitter *e, u32 check, u32 at) {
  const OpenHead *loop = mir_innermost_loop(e);
  MIR_label_t known = mir_known_leave(e, check, loop ? loop->chunk.limit : 0);
  return known ? known : mir_cold(e, COLD_LEAVE, check, at)->label;
}

static void move_saved(Emitter *e, const Cold *c, bool out) {
  if (c->saved_count && !e->save_at) e->save_at = mir_frame_room(e, SAVED_MOST * 8);
  for (u32 i = 0; i < c->saved_count; i++) {
    MIR_reg_t r = e->cold_saved.data[c->saved + i];
    bool d = MIR_reg_type(e->ctx, r, e->item->u.func) == MIR_T_D;
    MIR_op_t at = M(e, d ? MIR_T_D : MIR_T_F, e->frame, e->save_at + i * 8);
    if (out) ins2(e, d ? MIR_DMOV : MIR_FMOV, at, R(e, r));
    else ins2(e, d ? MIR_DMOV : MIR_FMOV, R(e, r), at);
  }
}

static void call_and_restore(Emitter *e, const Cold *c, MIR_op_t fn, MIR_reg_t answer, MIR_op_t a, MIR_op_t b) {
  move_saved(e, c, true);
  MIR_op_t ops[5] = {MIR_new_ref_op(e->ctx, mir_prototype(e->group, PROTO_P_PP)), fn, R(e, answer), a, b};
  put(e, MIR_new_insn_arr(e->ctx, MIR_CALL, 5, ops));
  move_saved(e, c, false);
  for (u32 i = 0; i < e->constants.count; i++) {
    u32 id = e->constants.data[i];
    ins2(e, move_code(et(e, id)), R(e, e->regs[id]), immediate(e, et(e, id), en(e, id)->imm));
  }
}

MIR_reg_t mir_quiet_call(Emitter *e, const Cold *c, void (*fn)(void), MIR_op_t a, MIR_op_t b) {
  MIR_reg_t answer = mir_temp(e, LT_I64);
  MIR_op_t callee = I(e, (i64)(uintptr_t)fn);
  if (e->group->plain || e->depth) { /* there are calls in hot code, too */
    call_and_restore(e, c, callee, answer, a, b);
    return answer;
  }
  MIR_reg_t frame = mir_frame(e);
  callee = function_in_reg(e, LT_I64, callee);
  ins2(e, MIR_MOV, M(e, MIR_T_I64, frame, FRAME_CALL), callee);
  ins2(e, MIR_MOV, M(e, MIR_T_I64, frame, FRAME_ARG), a);
  ins2(e, MIR_MOV, M(e, MIR_T_I64, frame, FRAME_ARG2), b);
  mir_mark(e, MARK_CALL, ++e->marks);
  mir_load(e, answer, frame, FRAME_ANSWER);
  return answer;
}

_Static_assert(offsetof(LoopCtx, results) == CTX_RESULTS && offsetof(LoopCtx, budget) == CTX_BUDGET &&
               offsetof(LoopCtx, depth) == CTX_DEPTH && offsetof(LoopCtx, poll) == CTX_POLL &&
               offsetof(LoopCtx, frame) == CTX_FRAME, "emitted code reads these");

MIR_op_t mir_ctx_word(Emitter *e, i64 offset) { return M(e, MIR_T_I64, e->native_ctx, offset); }

/* Stores a value as a word at base + offset. */
void mir_store_word(Emitter *e, MIR_reg_t base, i64 offset, u32 id) {
  const LoopNode *n = en(e, id);
  MIR_op_t v = mir_op(e, id);
  if (n->op == LOOP_CONST) {
    MIR_reg_t bits = mir_temp(e, LT_I64);
    ri(e, MIR_MOV, bits, (i64)n->imm);
    mir_store(e, base, offset, bits);
  } else if (n->type == LT_F32) {
    ins2(e, MIR_MOV, M(e, MIR_T_I64, base, offset), I(e, 0));
    ins2(e, MIR_FMOV, M(e, MIR_T_F, base, offset), v);
  } else {
    ins2(e, move_code((LoopType)n->type), M(e, n->type == LT_F64 ? MIR_T_D : MIR_T_I64, base, offset), v);
  }
}

void mir_leave(Emitter *e, u32 exit, MIR_reg_t code, const u32 *values, u32 count) {
  u32 at = count ? mir_words_room(e) : 0;
  if (!e->tell) {
    e->tell = new_label(e);
    e->left_by = new_reg(e, LT_I64, "left_by", 0);
    e->left_values = new_reg(e, LT_I64, "left_values", 0);
  }
  for (u32 i = 0; i < count; i++) mir_store_word(e, mir_frame(e), at + i * 8, values[i]);
  ri(e, MIR_MOV, e->left_by, exit);
  ri(e, MIR_MOV, e->left_values, count);
  if (e->depth) { /* in place of the budget that is left */
    mir_store(e, e->native_ctx, CTX_BUDGET, e->left);
    if (code) mir_negate(e, LT_I64, e->left, R(e, code));
    else ri(e, MIR_MOV, e->left, -(i64)exit);
  } else {
    ins2(e, MIR_MOV, R(e, e->code), code ? R(e, code) : I(e, exit));
  }
  jump(e, e->tell);
}

/* A value on all ways. */
static void no_result(Emitter *e) {
  LoopType t = e->result ? (LoopType)e->fn->results.data[0] : LT_VOID;
  if (e->result) ins2(e, move_code(t), R(e, e->result), immediate(e, t, 0));
}

/* Tells the host the frame that is left; then the exit follows. */
static void put_tell(Emitter *e) {
  MIR_reg_t fn = mir_temp(e, LT_I64), words = mir_temp(e, LT_I64);
  put_label(e, e->tell);
  no_result(e);
  if (e->words_at) rri(e, MIR_ADD, words, mir_frame(e), e->words_at);
  else ri(e, MIR_MOV, words, 0);
  mir_load(e, fn, e->native_ctx, CTX_FRAME);
  bri(e, MIR_BEQ, e->exit, fn, 0);
  MIR_op_t ops[7] = {MIR_new_ref_op(e->ctx, mir_prototype(e->group, PROTO_FRAME)), R(e, fn), R(e, e->native_ctx),
                     I(e, (i64)e->fn->tag), R(e, e->left_by), R(e, words), R(e, e->left_values)};
  put(e, MIR_new_insn_arr(e->ctx, MIR_CALL, 7, ops));
}

static void cold_leave(Emitter *e, const Cold *c) {
  const LoopNode *n = en(e, c->node);
  const u32 *list = loop_list(e->fn, n);
  u32 skip = n->op == LOOP_CALL ? n->a : 0;
  put_label(e, c->label);
  if (c->inner) { /* it gave its exit in place of the budget */
    mir_negate(e, LT_I64, c->code, R(e, e->left));
    mir_load(e, e->left, e->native_ctx, CTX_BUDGET);
  }
  mir_give_back(e, &c->chunk);
  mir_leave(e, n->op == LOOP_CALL ? n->c : (u32)n->imm, c->code, list + skip, n->count - skip);
}

/* The least key: check number on top of the row-major element. */
static void cold_check(Emitter *e, const Cold *c) {
  const u64 most = ((u64)1 << 48) - 1;
  MIR_reg_t key = mir_temp(e, LT_I64);
  MIR_label_t fits = new_label(e);
  put_label(e, c->label);
  ri(e, MIR_MOV, key, 0);
  for (u32 i = 0; i < c->open_count; i++) {
    u32 head = e->cold_open.data[c->open + i];
    const LoopNode *n = en(e, head);
    for (u32 axis = 0; axis < n->a; axis++) {
      if (i) ins3(e, MIR_MUL, R(e, key), R(e, key), mir_op(e, loop_trips_of(e->fn, head, axis)));
      rrr(e, MIR_ADD, key, key, mir_reg(e, loop_index_of(head, axis)));
    }
  }
  bri(e, MIR_UBLE, fits, key, (i64)most);
  ri(e, MIR_MOV, key, (i64)most);
  put_label(e, fits);
  ins3(e, MIR_OR, R(e, key), R(e, key), I(e, (i64)(en(e, c->node)->imm << 48)));
  brr(e, MIR_UBGE, c->back, key, e->key);
  rr(e, MIR_MOV, e->key, key);
  jump(e, c->back);
}

static void put_cold(Emitter *e) {
  for (u32 i = 0; i < e->cold.count && !e->failed; i++) {
    Cold c = e->cold.data[i];
    mark_rare(c.label);
    switch (c.kind) {
      case COLD_CHECK: cold_check(e, &c); break;
      case COLD_LEAVE: cold_leave(e, &c); break;
      case COLD_POLL: mir_cold_poll(e, &c); break;
      case COLD_WRAP: mir_cold_wrap(e, &c); break;
      case COLD_SHIFT: mir_cold_shift(e, &c); break;
      default: mir_cold_fold(e, &c);
    }
  }
}

/* ---- statements ---------------------------------------------------------------------------- */

/* Bounds that a float that fits lies strictly between. */
static void fit_bounds(LoopCheck kind, f64 *above, f64 *below) {
  switch (kind) {
    case LOOP_CHECK_FIT_U8: *above = -1, *below = 256; return;
    case LOOP_CHECK_FIT_I32: *above = -2147483649.0, *below = 2147483648.0; return;
    case LOOP_CHECK_FIT_U32: *above = -1, *below = 4294967296.0; return;
    case LOOP_CHECK_FIT_I64: *above = -0x1.0000000000001p63, *below = 0x1p63; return;
    default: *above = -1, *below = 0x1p64; return;
  }
}

static void check_fit(Emitter *e, const LoopNode *n, MIR_label_t failed) {
  f64 bounds[2];
  u64 bits[2];
  MIR_label_t fits = new_label(e);
  MIR_op_t v = mir_op(e, n->a);
  fit_bounds((LoopCheck)n->aux, &bounds[0], &bounds[1]);
  memcpy(bits, bounds, sizeof bits);
  if (et(e, n->a) == LT_F32 || v.mode != MIR_OP_REG) {
    MIR_reg_t wide = mir_temp(e, LT_F64);
    ins2(e, et(e, n->a) == LT_F32 ? MIR_F2D : MIR_DMOV, R(e, wide), v);
    v = R(e, wide);
  }
  ins3(e, MIR_DBLE, L(e, failed), v, mir_const_op(e, LT_F64, bits[0]));
  ins3(e, MIR_DBLT, L(e, fits), v, mir_const_op(e, LT_F64, bits[1])); /* NaN: neither */
  jump(e, failed);
  put_label(e, fits);
}

static void put_check(Emitter *e, u32 id, u32 at) {
  const LoopNode *n = en(e, id);
  if (mir_is_wrapped(e, id, at)) return;
  MIR_label_t failed;
  if (e->fn->kind == LOOP_KERNEL) {
    const OpenHead *loop = mir_innermost_loop(e);
    Cold *c = mir_cold(e, COLD_CHECK, id, at);
    c->back = en(e, loop->head)->op == LOOP_WHILE ? loop->done : loop->next;
    failed = c->label;
  } else {
    failed = mir_leave_label(e, id, at);
  }
  switch (n->aux) {
    case LOOP_CHECK_INDEX: {
      MIR_op_t most = mir_op(e, n->b);
      bool sign = most.mode == MIR_OP_INT && most.u.i == INT64_MIN; /* alone is asked for */
      ins3(e, sign ? MIR_BLT : MIR_UBGE, L(e, failed), function_in_reg(e, LT_I64, mir_op(e, n->a)),
           sign ? I(e, 0) : most);
      return;
    }
    case LOOP_CHECK_ZERO_DIV:
      ins3(e, MIR_BEQ, L(e, failed), function_in_reg(e, LT_I64, mir_op(e, n->a)), I(e, 0));
      return;
    case LOOP_CHECK_ASSERT: mir_branch_unless(e, n->a, failed); return;
    default: check_fit(e, n, failed);
  }
}

static void put_return(Emitter *e, const LoopNode *n) {
  if (e->depth) {
    LoopType t = n->count ? (LoopType)e->fn->results.data[0] : LT_I64;
    MIR_op_t value = n->count ? mir_op(e, loop_list(e->fn, n)[0]) : I(e, 0);
    if (n->count && (value.mode != MIR_OP_REG || value.u.reg != e->result))
      ins2(e, move_code(t), R(e, e->result), value);
    jump(e, e->exit);
    return;
  }
  MIR_reg_t results = mir_temp(e, LT_I64);
  if (n->count) mir_load(e, results, e->native_ctx, CTX_RESULTS);
  for (u32 i = 0; i < n->count; i++) mir_store_word(e, results, i * 8, loop_list(e->fn, n)[i]);
  ri(e, MIR_MOV, e->code, 0);
  jump(e, e->exit);
}

void mir_statement(Emitter *e, u32 at) {
  u32 id = e->fn->body.data[at];
  const LoopNode *n = en(e, id);
  if (e->failed) return;
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_HEAD: mir_open_head(e, id, at); return;
    case LOOP_FORM_MARK:
      if (n->op == LOOP_ELSE) mir_else(e);
      else mir_close_head(e, at);
      return;
    case LOOP_FORM_CHECK: put_check(e, id, at); return;
    case LOOP_FORM_CALL: mir_put_call(e, id, at); return;
    case LOOP_FORM_EXIT:
      if (n->op == LOOP_POLL) {
        mir_poll_statement(e, id, at);
        return;
      }
      mir_leave(e, (u32)n->imm, 0, loop_list(e->fn, n), n->count);
      break;
    case LOOP_FORM_TERM:
      if (n->op != LOOP_RETURN) {
        mir_terminator(e, at);
        return;
      }
      put_return(e, n);
      break;
    default: mir_value(e, id); return;
  }
  if (e->open.count) e->open.data[e->open.count - 1].live = false;
}

/* ---- functions ----------------------------------------------------------------------------- */

static void load_kernel_params(Emitter *e) {
  for (u32 i = 0; i < e->fn->params.count; i++) {
    u32 id = e->fn->params.data[i];
    LoopType t = et(e, id);
    if (!e->lives.uses[id]) continue;
    MIR_op_t word = MIR_new_mem_op(e->ctx, loop_is_float(t) ? mir_memory_type(t) : MIR_T_I64, i * 8, e->args, 0, 1);
    mir_at_entry(e, MIR_new_insn(e->ctx, move_code(t), R(e, mir_reg(e, id)), word));
  }
}

static void begin_function(Emitter *e, const char *name) {
  MIR_type_t result = e->fn->kind == LOOP_KERNEL ? MIR_T_I64 : MIR_T_U32;
  if (e->fn->kind == LOOP_KERNEL) {
    e->item = MIR_new_func(e->ctx, name, 1, &result, 3, MIR_T_P, "args", MIR_T_I64, "lo", MIR_T_I64, "hi");
    e->args = MIR_reg(e->ctx, "args", e->item->u.func);
    e->lo = MIR_reg(e->ctx, "lo", e->item->u.func);
    e->hi = MIR_reg(e->ctx, "hi", e->item->u.func);
    return;
  }
  u32 count = e->fn->params.count, first = e->unit->inner ? 3 : 1;
  MIR_var_t *vars = mem_alloc(e->alloc, sizeof *vars * (count + first));
  char *names = mem_alloc(e->alloc, NUMBERED_MAX * (size_t)(count + 1));
  if (!vars || !names) count = 0, e->failed = true;
  MIR_var_t always[3] = {{.type = MIR_T_P, .name = "ctx"}, {.type = MIR_T_I64, .name = "left"},
                         {.type = MIR_T_I64, .name = "depth"}};
  if (vars) memcpy(vars, always, sizeof *vars * first);
  for (u32 i = 0; i < count; i++) {
    u32 id = e->fn->params.data[i];
    name_numbered(names + NUMBERED_MAX * i, "v", id);
    vars[i + first] = (MIR_var_t){.type = mir_argument_type(et(e, id)), .name = names + NUMBERED_MAX * i};
  }
  MIR_type_t types[2];
  u32 results = e->unit->inner ? mir_inner_types(e->fn, types) : 1;
  e->item = MIR_new_func_arr(e->ctx, name, results, e->unit->inner ? types : &result, count + first,
                             vars ? vars : always);
  MIR_func_t func = e->item->u.func;
  e->native_ctx = MIR_reg(e->ctx, "ctx", func);
  if (e->unit->inner) {
    e->left = MIR_reg(e->ctx, "left", func);
    e->depth = MIR_reg(e->ctx, "depth", func);
  }
  for (u32 i = 0; i < count; i++) {
    u32 id = e->fn->params.data[i];
    e->regs[id] = MIR_reg(e->ctx, names + NUMBERED_MAX * i, func);
  }
  if (e->unit->inner && results == 2) { /* where the last of its statements has it: it need not move */
    const LoopNode *last = en(e, e->fn->body.data[e->fn->body.count - 1]);
    bool has = last->op == LOOP_RETURN && en(e, loop_list(e->fn, last)[0])->op != LOOP_CONST;
    e->result = has ? mir_reg(e, loop_list(e->fn, last)[0]) : new_reg(e, (LoopType)e->fn->results.data[0], "result", 0);
  }
  mem_free(e->alloc, names, NUMBERED_MAX * (size_t)(e->fn->params.count + 1));
  mem_free(e->alloc, vars, sizeof *vars * (e->fn->params.count + first));
}

static bool holds(const LoopFn *fn, LoopOp op) {
  for (u32 i = 0; i < fn->body.count; i++)
    if (loop_node(fn, fn->body.data[i])->op == op) return true;
  return false;
}

static void put_exit(Emitter *e) {
  put_label(e, e->exit);
  if (e->left && !e->depth) mir_store(e, e->native_ctx, CTX_BUDGET, e->left);
  if (e->marks) mir_mark(e, MARK_END, (u32)(e->unit - e->group->units));
  if (e->depth) {
    put(e, e->result ? MIR_new_ret_insn(e->ctx, 2, R(e, e->left), R(e, e->result))
                     : MIR_new_ret_insn(e->ctx, 1, R(e, e->left)));
    return;
  }
  MIR_op_t result = e->fn->kind == LOOP_KERNEL ? (e->key ? R(e, e->key) : I(e, -1)) : R(e, e->code);
  put(e, MIR_new_ret_insn(e->ctx, 1, result));
}

/* The last position before what must be emitted next: an arm that a constant condition never takes is left out,
 * since MIR would drop its arithmetic and keep its marks. */
static u32 behind_dead_arm(const Emitter *e, u32 at) {
  const LoopNode *n = en(e, e->fn->body.data[at]);
  u32 head = n->op == LOOP_IF ? e->fn->body.data[at] : n->op == LOOP_ELSE ? n->a : 0;
  if (!head || en(e, loop_cond_of(e->fn, head))->op != LOOP_CONST) return at;
  bool taken = en(e, loop_cond_of(e->fn, head))->imm != 0;
  if (n->op == LOOP_IF) return taken ? at : e->lives.other[head] - 1;
  return taken ? e->lives.end[head] - 1 : at;
}

void mir_statements(Emitter *e, u32 from, u32 to) {
  for (u32 at = from; at < to && !e->failed; at++) {
    if (!toil(e->fn->module->toil, 1)) e->failed = true;
    u32 done = mir_strip_loop(e, at);
    if (!done) done = mir_shift_loop(e, at);
    if (done) {
      at = done;
      continue;
    }
    mir_statement(e, at);
    at = behind_dead_arm(e, at);
  }
}

static void put_body(Emitter *e) {
  const LoopFn *fn = e->fn;
  e->exit = new_label(e);
  if (fn->kind == LOOP_KERNEL) {
    load_kernel_params(e);
    if (holds(fn, LOOP_CHECK)) {
      e->key = new_reg(e, LT_I64, "key", 0);
      ri(e, MIR_MOV, e->key, -1);
    }
    brr(e, MIR_BGE, e->exit, e->lo, e->hi);
  } else if (e->depth) {
    MIR_label_t fits = new_label(e);
    bri(e, MIR_BGE, fits, e->depth, 0);
    ri(e, MIR_MOV, e->left, 0); /* the first poll asks the VM */
    put_label(e, fits);
    if (en(e, fn->body.data[fn->body.count - 1])->op != LOOP_RETURN) {
      no_result(e);
      bri(e, MIR_BEQ, e->exit, e->native_ctx, 0);
    }
  } else {
    e->code = new_reg(e, LT_I64, "code", 0);
    ri(e, MIR_MOV, e->code, 0);
    if (holds(fn, LOOP_POLL) || holds(fn, LOOP_CALL)) {
      e->left = new_reg(e, LT_I64, "left", 0);
      mir_load(e, e->left, e->native_ctx, CTX_BUDGET);
    }
    if (holds(fn, LOOP_POLL) && !e->group->plain) mir_store(e, mir_frame(e), FRAME_CTX, e->native_ctx);
    bri(e, MIR_BEQ, e->exit, e->native_ctx, 0); /* the exit is always reached: the end mark stays */
  }
  if (!mir_find_streams(e)) e->failed = true;
  mir_statements(e, 0, fn->body.count);
  jump(e, e->exit);
  mir_put_late(e);
  put_cold(e);
  if (e->tell) put_tell(e);
  put_exit(e); /* last: its mark ends what is searched for marks */
}

/* The frame's size is in its ALLOCA, which stands first. */
static void set_frame_size(Emitter *e) {
  if (!e->frame) return;
  MIR_insn_t insn = DLIST_HEAD(MIR_insn_t, e->item->u.func->insns);
  insn->ops[1] = I(e, e->frame_bytes);
}

static void close_emitter(Emitter *e) {
  mem_free(e->alloc, e->regs, sizeof *e->regs * e->fn->nodes.count);
  mem_free(e->alloc, e->access_stream, sizeof(u32) * e->fn->nodes.count);
  vec_free(e->alloc, &e->labels);
  vec_free(e->alloc, &e->open);
  vec_free(e->alloc, &e->streams);
  vec_free(e->alloc, &e->stream_terms);
  vec_free(e->alloc, &e->products);
  vec_free(e->alloc, &e->known);
  vec_free(e->alloc, &e->cold);
  vec_free(e->alloc, &e->cold_open);
  vec_free(e->alloc, &e->cold_saved);
  vec_free(e->alloc, &e->floats);
  vec_free(e->alloc, &e->constants);
  lives_free(&e->lives);
  mem_free(e->alloc, e, sizeof *e);
}

enum { MIR_MOST_NS = 500000000 };

/* MIR cannot be stopped, and takes more than in proportion: what it would be too long at is not given to it. */
static bool may_be_compiled(MirGroup *g, const Lives *l) {
  u64 cost = lives_cost(l);
  Toil *t = l->fn->module->toil;
  if (toil_pass(t)) toil_forever(t);
  if (cost > MIR_MOST_NS && g->why)
    buf_printf(g->why, "%s: too long a function for MIR: %u statements", name_text(&l->fn->module->names, l->fn->name),
               l->fn->body.count);
  return cost <= MIR_MOST_NS && toil(t, cost / 32);
}

WeftStatus mir_function(MirGroup *g, u32 number) {
  MirUnit *unit = &g->units[number];
  Emitter *e = mem_alloc(g->alloc, sizeof *e);
  char name[40];
  if (!e) return WEFT_ERROR;
  *e = (Emitter){.group = g, .unit = unit, .fn = unit->fn, .alloc = g->alloc, .ctx = g->ctx};
  snprintf(name, sizeof name, unit->inner ? "in_%llu_%u" : "fn_%llu_%u", (unsigned long long)g->serial, number);
  if (lives_init(&e->lives, e->fn, e->alloc) != WEFT_OK) return mem_free(g->alloc, e, sizeof *e), WEFT_ERROR;
  if (!may_be_compiled(g, &e->lives)) {
    lives_free(&e->lives);
    return mem_free(g->alloc, e, sizeof *e), WEFT_ERROR;
  }
  e->regs = mem_alloc_zero(e->alloc, sizeof *e->regs * e->fn->nodes.count);
  if (e->regs) {
    begin_function(e, name);
    if (!e->failed) put_body(e);
    set_frame_size(e);
    free_labels(e);
    MIR_finish_func(e->ctx);
    if (unit->inner) unit->inner = e->item;
    else unit->item = e->item;
    unit->marks = e->marks;
    if (unit->inner && !e->failed) mir_outer(g, number);
  }
  if (e->missing && g->why)
    buf_printf(g->why, "%s: %s %s", name_text(&e->fn->module->names, e->fn->name), e->missing, e->missing_name);
  bool ok = e->regs && !e->failed;
  close_emitter(e);
  return ok ? WEFT_OK : WEFT_ERROR;
}

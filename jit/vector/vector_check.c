/* vector_check.c — checks (vector_emitter.h). Each is a condition per lane. Where one does not hold, the kernel
 * ends at once with a key: of the first such element in the order of the trips, since whatever a kernel wrote means
 * nothing once a check failed. */
#include "jit/vector/vector_emitter.h"

static VReg below(VecFn *f, LoopType t, VReg v, f64 most, f64 least, bool least_too) {
  union {
    f64 d;
    u64 bits;
  } d;
  union {
    f32 s;
    u32 bits;
  } s;
  VReg bounds[2];
  for (u32 k = 0; k < 2; k++) {
    d.d = k ? least : most;
    s.s = (f32)d.d;
    bounds[k] = new_const(f, t == LT_F64 ? d.bits : s.bits, element_bytes(t));
  }
  VReg under = lower_compare(f, LOOP_LT, t, v, bounds[0]);
  VReg over = lower_compare(f, least_too ? LOOP_GE : LOOP_GT, t, v, bounds[1]);
  VReg both = lower_logic(f, LOOP_AND, under, over);
  if (!f->evex && t == LT_F64)
    learn(f, (VFact){.of = both, .wide = v_rvm(f, V_ANDPD, vlength(f, t), flags_to_wide(f, under),
                                               flags_to_wide(f, over)), .op = LOOP_NOT});
  return both;
}

/* A float that truncates into the type. The bounds are exact in both widths. */
static VReg check_fits(VecFn *f, LoopCheck kind, LoopType t, VReg v) {
  switch (kind) {
    case LOOP_CHECK_FIT_U8: return below(f, t, v, 256, -1, false);
    case LOOP_CHECK_FIT_I32:
      return t == LT_F64 ? below(f, t, v, 0x1p31, -2147483649.0, false) : below(f, t, v, 0x1p31, -0x1p31, true);
    case LOOP_CHECK_FIT_U32: return below(f, t, v, 0x1p32, -1, false);
    case LOOP_CHECK_FIT_I64: return below(f, t, v, 0x1p63, -0x1p63, true);
    default: return below(f, t, v, 0x1p64, -1, false);
  }
}

/* The type that a float which passes the check fits; 0: it asks something else. */
static LoopType fitted(LoopCheck kind) {
  switch (kind) {
    case LOOP_CHECK_FIT_I32: return LT_I32;
    case LOOP_CHECK_FIT_I64: return LT_I64;
    default: return (LoopType)0;
  }
}

static VReg condition(VecFn *f, const LoopNode *n) {
  LoopType t = lane_type(f, loop_type_of(f->fn, n->a));
  VReg a = operand(f, n->a);
  switch ((LoopCheck)n->aux) {
    case LOOP_CHECK_INDEX: return lower_compare(f, LOOP_LT, LT_U64, a, operand(f, n->b));
    case LOOP_CHECK_ZERO_DIV: return lower_compare(f, LOOP_NE, t, a, lower_constant(f, t, 0));
    case LOOP_CHECK_ASSERT: return a;
    default: return check_fits(f, (LoopCheck)n->aux, t, a);
  }
}

void check(VecFn *f, const LoopNode *n) {
  VReg holds = condition(f, n);
  bool low = f->narrow && f->narrow < 4;
  u64 all = UINT64_MAX >> (64 - f->lanes);
  VFail fail = {.label = g_label(f), .number = (u32)n->imm, .count = f->head_count, .copy = f->copy, .lanes = f->lanes,
                .vector = f->vector_head != 0};
  for (u32 i = 0; i < f->head_count; i++) fail.heads[i] = f->heads[i];
  if (fail.vector && fail.count < HEADS_MOST) fail.heads[fail.count++] = f->vector_head;
  const VFact *h = low ? NULL : fact_of(f, holds);
  VReg wide = !f->evex && h ? h->wide : 0;
  u8 length = length_of(wide ? 8 : 4, f->lanes);
  if (low) narrow_lanes(f, holds);
  else if (f->evex) put(f, (VIns){.op = M_FIRST + K_KTO, .a = holds, .x = RAX});
  else put(f, (VIns){.op = wide ? V_MOVMSKPD : V_MOVMSKPS, .length = length, .a = wide ? wide : holds, .x = RAX});
  if (low ? f->evex && f->lanes < 64 : f->evex || f->lanes * (wide ? 8 : 4) < (length == L256 ? 32u : 16u))
    g_alu_imm(f, ALU_AND, RAX, (i64)all);
  if (f->lanes == 64) g_alu_imm(f, ALU_XOR, RAX, -1);
  else g_alu_imm(f, ALU_XOR, RAX, (i64)all);
  if (f->tail) {
    g_mov(f, RCX, R14);
    g_alu(f, ALU_SUB, RCX, R15);
    put(f, (VIns){.op = G_LOW});
    g_alu_imm(f, ALU_CMP, RAX, 0);
  }
  g_jcc(f, CC_NE, fail.label);
  LoopType fits = fitted((LoopCheck)n->aux);
  if (fits && inside(f, n->a)) {
    VReg v = operand(f, n->a);
    const VFact *known = fact_of(f, v);
    VFact fact = known ? *known : (VFact){.of = v, .op = LOOP_NOT};
    fact.fits = (u8)fits;
    learn(f, fact);
  }
  if (!vec_push(f->alloc, &f->fails, fail)) refuse(f, "out of memory");
}

/* RCX = number of the trip of a loop; RAX keeps what it has. */
static void trip_to(VecFn *f, const VFail *c, u32 k) {
  u32 head = c->heads[k];
  if (!c->vector || k + 1 < c->count) {
    g_load(f, RCX, RSP, (i32)f->index_slot[loop_index_of(head, 0)]);
    return;
  }
  g_mov(f, RCX, R15);
  g_alu_imm(f, ALU_ADD, RCX, c->copy * c->lanes);
}

static void fail_code(VecFn *f, const VFail *c) {
  g_put(f, c->label);
  put(f, (VIns){.op = G_FIRST_BIT});
  if (!c->vector) g_imm(f, RAX, 0);
  g_mov(f, RDX, RAX); /* the lane, then the sum */
  g_imm(f, RAX, 0);
  for (u32 k = 0; k < c->count; k++) { /* element = element * trips + trip, the outermost first */
    if (k) {
      const LoopNode *h = vnode(f, c->heads[k]);
      for (u32 axis = 0; axis < h->a; axis++) {
        u32 trips = loop_trips_of(f->fn, c->heads[k], axis);
        u8 op = vnode(f, trips)->op;
        if (op != LOOP_PARAM && op != LOOP_CONST) {
          refuse(f, "a check in a loop of so many trips");
          return;
        }
        word_to(f, RCX, trips);
        put(f, (VIns){.op = G_IMUL, .dst = RAX, .a = RCX});
      }
    }
    trip_to(f, c, k);
    g_alu(f, ALU_ADD, RAX, RCX);
  }
  g_alu(f, ALU_ADD, RAX, RDX);
  g_imm(f, RCX, ((u64)1 << 48) - 1);
  g_alu(f, ALU_CMP, RAX, RCX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_A, .dst = RAX, .a = RCX});
  g_imm(f, RCX, (u64)c->number << 48);
  g_alu(f, ALU_OR, RAX, RCX);
  g_save(f, RSP, (i32)f->key_slot, RAX);
  g_jump(f, f->done);
}

void emit_fails(VecFn *f) {
  for (u32 i = 0; i < f->fails.count && !f->failed; i++) fail_code(f, &f->fails.data[i]);
}

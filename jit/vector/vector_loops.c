/* vector_loops.c — loops: serial ones around, vector ones inside, reductions (vector_emitter.h).
 *
 * A loop whose body is straight-line runs `lanes` trips at a time: `copies` vectors per trip of the machine's loop,
 * then what is left, masked (AVX-512) or one by one (AVX2). A float sum or product keeps the lanes of ir.md section
 * 10 in `copies` accumulators (together 256 bytes); what is left joins them in the frame. A block's result is
 * combined here and added to the first level above; the C functions of vector_runtime.c do the rest. Exact
 * reductions need no order. */
#include <string.h>

#include "jit/vector/vector_emitter.h"

enum { LANE_BYTES = 256, COPIES_MOST = 16, CHEAP = 8, MIDDLE = 24, LONG = 80 };
/* Operations for each place that is gathered from which lanes are worth it, with AVX-512: `x + x.T` and `x.T * 2` of
 * 100 × 100 take 4.7 us by gathers and 7.8 one by one (Xeon, model 207); a copy alone is not made here. */
enum { STRIDED_WORK = 3 };

typedef struct VFold {
  LoopReduce reduce;
  LoopOp op;
  LoopType type; /* of the accumulator: i1 is kept as 0 and 1 in i32 */
  bool ordered, flags;
  u32 yield;     /* the value */
  u32 lanes_at;  /* frame: the accumulators while what is left joins */
  u32 state_at;  /* frame: VecLanes */
  u32 end_slot, off_slot;
  u32 sum_slot;  /* frame: of a group: what the blocks so far give, or the result */
  bool in_frame; /* what is left finds the accumulators there */
  u32 beside;    /* accumulators behind those of the copies (keeps_beside): 2, or 0 */
  VReg even;     /* the element of the copy before, of an even number */
  VReg acc[COPIES_MOST];
} VFold;

/* ---- which loops run on vectors ------------------------------------------------------------- */

bool is_straight(const VecFn *f, u32 first, u32 last) {
  for (u32 pos = first; pos <= last; pos++) {
    switch (loop_op_form((LoopOp)vnode(f, body_node(f, pos))->op)) {
      case LOOP_FORM_HEAD: case LOOP_FORM_MARK: case LOOP_FORM_CALL: case LOOP_FORM_EXIT: case LOOP_FORM_PREFIX:
        return false;
      default: break;
    }
  }
  return true;
}

/* In a loop whose trips are in order: does a trip read or write over what another wrote. */
static bool is_free_of_order(const VecFn *f, u32 first, u32 last) {
  for (u32 a = first; a <= last; a++) {
    const LoopNode *s = vnode(f, body_node(f, a));
    if (s->op != LOOP_STORE) continue;
    for (u32 b = first; b <= last; b++) {
      const LoopNode *n = vnode(f, body_node(f, b));
      if (b == a || (n->op != LOOP_LOAD && n->op != LOOP_STORE) || n->a != s->a) continue;
      if (n->count != s->count || n->imm != s->imm) return false;
      for (u32 k = 0; k < n->count; k++)
        if (!loop_terms_equal(&loop_terms(f->fn, n)[k], &loop_terms(f->fn, s)[k])) return false;
    }
  }
  return true;
}

typedef struct Widest {
  VecFn *f;
  u32 bytes;
} Widest;

static void widen(void *ctx, u32 id) {
  Widest *w = ctx;
  LoopType t = (LoopType)vnode(w->f, id)->type;
  if (t != LT_PTR && t != LT_VOID && element_bytes(t) == 8) w->bytes = 8;
}

static bool is_division(const LoopNode *n) {
  return (n->op == LOOP_DIV && loop_is_int((LoopType)n->type)) || n->op == LOOP_FLOORDIV || n->op == LOOP_REM ||
         n->op == LOOP_MOD;
}

/* Bytes of the widest lane; strided counts places that no plain vector load reaches, narrow: of elements that no gather
 * takes. */
u32 loop_widest(VecFn *f, const VLoop *l, u32 *strided, bool *narrow, bool pairs) {
  Widest w = {f, 4};
  for (u32 pos = l->first; pos <= l->last; pos++) {
    u32 id = body_node(f, pos);
    const LoopNode *n = vnode(f, id);
    if (loop_is_head(n)) continue; /* counts of trips are no lanes */
    if (n->op == LOOP_LOAD || n->op == LOOP_STORE) {
      VAccess kind = access_kind(f, n, l->head, l->first, l->last);
      if (kind == VA_STRIDED || kind == VA_GATHER)
        ++*strided, w.bytes = pairs ? w.bytes : 8, *narrow |= loop_type_bytes((LoopType)n->mem) < 4;
      widen(&w, n->op == LOOP_LOAD ? id : n->b);
      continue;
    }
    widen(&w, id);
    loop_each_operand(f->fn, n, widen, &w);
    if ((n->op == LOOP_MATH && math_widest(f, n) == 8) || is_division(n)) w.bytes = 8;
  }
  return w.bytes;
}

static u32 effort(const VecFn *f, const VLoop *l) {
  u32 n = 0;
  for (u32 pos = l->first; pos <= l->last; pos++) {
    const LoopNode *x = vnode(f, body_node(f, pos));
    n += x->op == LOOP_MATH ? 30 : is_division(x) ? CHEAP : 1;
  }
  return n;
}

static void use_loop(VecFn *f, const VLoop *l) {
  f->vector_head = l->head;
  f->inside_first = l->first;
  f->inside_last = l->last;
}

static bool is_flag_of(const VecFn *f, const VLoop *l, u32 id) {
  u32 at = f->where[id];
  return at >= l->first && at <= l->last && body_node(f, at) == id && vnode(f, id)->type == LT_I1;
}

/* The same for a number of one byte. */
static bool is_byte_of(const VecFn *f, const VLoop *l, u32 id) {
  u32 at = f->where[id];
  if (vnode(f, id)->type != LT_U8) return false;
  return vnode(f, id)->op == LOOP_CONST || (at >= l->first && at <= l->last && body_node(f, at) == id);
}

/* Conditions and bytes that are read, combined and stored, and nothing else. */
static bool is_packed(const VecFn *f, const VLoop *l) {
  const LoopNode *h = vnode(f, l->head);
  bool bytes = h->op != LOOP_REDUCE;
  if (h->op == LOOP_REDUCE && h->aux != LOOP_REDUCE_AND && h->aux != LOOP_REDUCE_OR) return false;
  for (u32 pos = l->first; pos <= l->last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    bool byte = bytes && n->type == LT_U8;
    switch (n->op) {
      case LOOP_LOAD:
      case LOOP_STORE:
        if ((n->mem != LT_I1 && !(bytes && n->mem == LT_U8)) ||
            access_kind(f, n, l->head, l->first, l->last) != VA_UNIT)
          return false;
        if (n->op == LOOP_STORE && !(n->mem == LT_I1 ? is_flag_of(f, l, n->b) : is_byte_of(f, l, n->b))) return false;
        break;
      case LOOP_CONVERT:
        if (!byte || !is_flag_of(f, l, n->a)) return false;
        break;
      case LOOP_ADD: case LOOP_SUB: case LOOP_MIN: case LOOP_MAX:
        if (!byte || !is_byte_of(f, l, n->a) || !is_byte_of(f, l, n->b)) return false;
        break;
      case LOOP_AND: case LOOP_OR: case LOOP_XOR:
        if (byte && is_byte_of(f, l, n->a) && is_byte_of(f, l, n->b)) break; /* fall through */
      case LOOP_NOT: case LOOP_EQ: case LOOP_NE:
        if (!is_flag_of(f, l, n->a) || (n->op != LOOP_NOT && !is_flag_of(f, l, n->b))) return false;
        break;
      case LOOP_YIELD:
        if (!is_flag_of(f, l, loop_list(f->fn, n)[0])) return false;
        break;
      default: return false;
    }
  }
  return true;
}

static bool strides_are_pairs(const VecFn *f, const VLoop *l) {
  for (u32 pos = l->first; pos <= l->last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    if (n->op != LOOP_LOAD && n->op != LOOP_STORE) continue;
    VAccess kind = access_kind(f, n, l->head, l->first, l->last);
    if (kind == VA_GATHER || (kind == VA_STRIDED && !moves_every_other(f, n, l->head, l->first, l->last))) return false;
  }
  return true;
}

/* Do all accesses that are not side by side read bytes a few apart. */
static bool strides_are_near(const VecFn *f, const VLoop *l) {
  bool some = false;
  for (u32 pos = l->first; pos <= l->last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    if (n->op != LOOP_LOAD && n->op != LOOP_STORE) continue;
    VAccess kind = access_kind(f, n, l->head, l->first, l->last);
    bool near = moves_near(f, n, l->head, l->first, l->last);
    if ((kind == VA_STRIDED || kind == VA_GATHER) && !near) return false;
    some |= near;
  }
  return some && !f->fn->module->bytes_stay;
}

static bool divides(const VecFn *f, const VLoop *l) {
  bool found = false;
  for (u32 pos = l->first; pos <= l->last; pos++) found |= is_division(vnode(f, body_node(f, pos)));
  return found;
}

/* Bytes of narrow lanes (vector_narrow.c); 0: none. *widest: those of lanes of 4 bytes, or 8 for divisions. */
static u32 narrow_of(VecFn *f, const VLoop *l, u32 *widest) {
  use_loop(f, l);
  u32 bytes = narrow_bytes(f);
  if (bytes && (!divides(f, l) || (!f->fn->module->divisions_stay && narrow_quotients(f)))) *widest = 4;
  f->vector_head = 0;
  return bytes;
}

/* A gather takes three times as long as its elements one by one, more where they come from memory: the loop runs on
 * vectors when there is enough to do beside. Sums keep their lanes. */
static bool shape_of(VecFn *f, VLoop *l, bool folds) {
  u32 strided = 0;
  bool narrow = false;
  bool pairs = !folds && strides_are_pairs(f, l), near = !folds && !pairs && strides_are_near(f, l);
  u32 bytes = loop_widest(f, l, &strided, &narrow, pairs || near), cost = effort(f, l), whole = f->evex ? 64 : 32;
  f->near = near;
  if (!folds && (near || (!strided && !is_packed(f, l)))) l->narrow = narrow_of(f, l, &bytes);
  l->lanes = whole / bytes;
  l->copies = strided || cost > MIDDLE ? 1 : cost > CHEAP ? 2 : 4;
  if (f->level->unroll) l->copies = strided ? 1 : f->level->unroll;
  l->abreast = strided || cost <= MIDDLE ? 1 : cost > LONG && f->evex ? 4 : 2;
  if (l->copies == 1) l->copies = l->abreast;
  l->tail_lanes = f->evex ? l->lanes : 1;
  l->packed = !strided && is_packed(f, l);
  if (l->packed) l->copies = 4, l->abreast = 1;
  if (l->narrow && l->narrow < 4) {
    l->rest_lanes = l->lanes;
    l->lanes = whole / l->narrow;
    l->copies = cost > CHEAP ? 1 : 2;
    l->abreast = 1;
    l->tail_lanes = f->evex ? l->lanes : 1;
  }
  f->pairs = strided && pairs;
  if (f->pairs) l->tail_lanes = 1;
  else if (near) f->near = l->lanes, l->copies = l->abreast = l->tail_lanes = 1, f->fn->module->shuffled++;
  else if (strided && (!f->evex || narrow || (!folds && cost < STRIDED_WORK * strided)))
    l->lanes = l->copies = 1, l->tail_lanes = 0, l->abreast = 1;
  return !f->failed;
}

/* ---- copies of the body ---------------------------------------------------------------------- */

static void forget(VecFn *f, const VLoop *l) {
  const LoopNode *h = vnode(f, l->head);
  for (u32 axis = 0; axis < h->a; axis++) f->value[loop_index_of(l->head, axis)] = 0;
}

static void loops_use_copy(VecFn *f, u32 copy, u32 beside) {
  f->copy = copy;
  f->value = f->values[beside];
}

/* Copies from `copy` on; what they give is found in values[0] and so on. */
static void emit_abreast(VecFn *f, const VLoop *l, u32 copy, u32 count) {
  for (u32 k = 0; k < count; k++) loops_use_copy(f, copy + k, k), forget(f, l);
  for (u32 pos = l->first; pos <= l->last && !f->failed; pos++)
    for (u32 k = 0; k < count && vnode(f, body_node(f, pos))->op != LOOP_YIELD; k++) {
      loops_use_copy(f, copy + k, k);
      statement(f, body_node(f, pos));
    }
  loops_use_copy(f, copy, 0);
}

static void emit_copy(VecFn *f, const VLoop *l, u32 copy) {
  f->copy = copy;
  forget(f, l);
  for (u32 pos = l->first; pos <= l->last && !f->failed; pos++)
    if (vnode(f, body_node(f, pos))->op != LOOP_YIELD) statement(f, body_node(f, pos));
}

void end_span(VecFn *f, u32 first) {
  VSpan s = {first, f->ins.count ? f->ins.count - 1 : 0};
  if (!vec_push(f->alloc, &f->spans, s)) refuse(f, "out of memory");
}

static void enter(VecFn *f, const VLoop *l, u32 lanes, bool tail) {
  (void)l;
  f->lanes = lanes;
  f->tail = tail;
  f->copy = 0;
}

/* ---- reductions ------------------------------------------------------------------------------ */

static u64 identity_of(const VFold *r) {
  if (r->flags) return r->reduce == LOOP_REDUCE_AND ? BYTES_OF_ONE : 0;
  return loop_reduce_identity(r->reduce, r->type);
}

static VReg identity(VecFn *f, const VFold *r) { return lower_constant(f, r->type, identity_of(r)); }

static void copy_to(VecFn *f, VReg to, VReg from) { put(f, (VIns){.op = P_COPY, .dst = to, .a = from}); }

/* AVX2: of floats VMAXPS knows neither NaN nor -0, and what makes up for it takes four times as long. So the best
 * of each copy is what compares so; beside it are kept the lanes where there was a NaN, asked of two copies at
 * once, and the signs of all joined: when the best is a zero, the others have the sign of what loses, and so they
 * are those of the zeros. */
enum { BESIDE_NAN, BESIDE_SIGNS, BESIDE, CMP_UNORDERED = 3, CMP_OTHER = 4, CMP_SAME = 0 };

static bool keeps_beside(const VecFn *f, const VLoop *l, const VFold *r) {
  return !f->evex && !r->ordered && loop_is_float(r->type) && (r->op == LOOP_MAX || r->op == LOOP_MIN) &&
         l->copies % 2 == 0 && l->copies + BESIDE <= COPIES_MOST && l->abreast == 1 && !l->packed;
}

static VReg lanes_of(VecFn *f, const VFold *r, VecOp op, VReg a, VReg b) {
  return v_rvm(f, by_width(r->type, op), vlength(f, r->type), a, b);
}

/* to = v, by the instruction that made v where it may write there. */
static void update(VecFn *f, VReg to, VReg v) {
  VIns *last = f->ins.count ? &f->ins.data[f->ins.count - 1] : NULL;
  if (!f->failed && last && last->dst == v && !last->flags && (last->op < V_COUNT || last->op == P_FMA)) last->dst = to;
  else copy_to(f, to, v);
}

static VReg element(VecFn *f, const VFold *r) {
  VReg v = operand(f, r->yield);
  return r->flags && !f->packed ? numbers_of_flags(f, v) : v;
}

static void new_accumulators(VecFn *f, const VLoop *l, VFold *r) {
  for (u32 k = 0; k < l->copies + r->beside; k++) r->acc[k] = new_vec(f);
}

static void begin_block(VecFn *f, const VLoop *l, VFold *r) {
  for (u32 k = 0; k < l->copies; k++) {
    if (!r->acc[k]) r->acc[k] = new_vec(f);
    copy_to(f, r->acc[k], identity(f, r));
  }
  for (u32 k = 0; k < r->beside; k++) {
    VReg *v = &r->acc[l->copies + k];
    if (!*v) *v = new_vec(f);
    copy_to(f, *v, lower_constant(f, LT_I32, k == BESIDE_SIGNS && r->op == LOOP_MAX ? UINT32_MAX : 0));
  }
}

static void fold_beside(VecFn *f, const VLoop *l, VFold *r, u32 copy, VReg v) {
  VReg *nan = &r->acc[l->copies + BESIDE_NAN], *signs = &r->acc[l->copies + BESIDE_SIGNS];
  /* of a NaN and a number: the second */
  update(f, r->acc[copy], lanes_of(f, r, r->op == LOOP_MAX ? V_MAXPS : V_MINPS, v, r->acc[copy]));
  if (copy % 2 == 0) { /* two at a time: what waits for the one before is half as long */
    r->even = v;
    return;
  }
  VecOp join = r->op == LOOP_MAX ? V_ANDPS : V_ORPS;
  update(f, *signs, lanes_of(f, r, join, *signs, lanes_of(f, r, join, r->even, v)));
  update(f, *nan, lanes_of(f, r, V_ORPS, *nan,
                           v_rvmi(f, by_width(r->type, V_CMPPS), vlength(f, r->type), r->even, v, CMP_UNORDERED)));
}

/* What was kept beside goes into the copies, which are then as if each step had known all: code behind this one, which
 * is made once, finds nothing beside. */
static void settle_beside(VecFn *f, const VLoop *l, VFold *r) {
  if (!r->beside || f->failed) return;
  VReg nan = r->acc[l->copies + BESIDE_NAN], signs = r->acc[l->copies + BESIDE_SIGNS],
      none = lower_constant(f, r->type, 0);
  f->lanes = l->lanes;
  for (u32 k = 0; k < l->copies; k++) {
    bool max = r->op == LOOP_MAX;
    VReg v = r->acc[k],
        zero = v_rvmi(f, by_width(r->type, V_CMPPS), vlength(f, r->type), v, none, max ? CMP_OTHER : CMP_SAME);
    if (max) v = lanes_of(f, r, V_ANDPS, v, lanes_of(f, r, V_ORPS, signs, zero));
    else
      v = lanes_of(f, r, V_ORPS, v,
                   lanes_of(f, r, V_ANDPS, lanes_of(f, r, V_ANDPS, signs, zero),
                            lower_constant(f, r->type, loop_type_bytes(r->type) == 8 ? (u64)1 << 63 : (u64)1 << 31)));
    if (!k) v = lanes_of(f, r, V_ORPS, v, nan);
    update(f, r->acc[k], v);
  }
  r->beside = 0;
}

static void fold_copy(VecFn *f, const VLoop *l, VFold *r, u32 copy) {
  emit_copy(f, l, copy);
  if (!f->failed && r->beside) fold_beside(f, l, r, copy, element(f, r));
  else if (!f->failed) update(f, r->acc[copy], lower_op(f, r->op, r->type, r->acc[copy], element(f, r), 0));
}

static void fold_abreast(VecFn *f, const VLoop *l, VFold *r, u32 copy, u32 count) {
  emit_abreast(f, l, copy, count);
  for (u32 k = 0; k < count && !f->failed; k++) {
    loops_use_copy(f, copy + k, k);
    update(f, r->acc[copy + k], lower_op(f, r->op, r->type, r->acc[copy + k], element(f, r), 0));
  }
  loops_use_copy(f, copy, 0);
}

/* What is left on masked vectors: absent lanes take the identity. */
static VReg masked(VecFn *f, const VLoop *l, const VFold *r) {
  emit_copy(f, l, 0);
  if (f->failed) return 0;
  VReg v = element(f, r), d = new_vec(f);
  put(f, (VIns){.op = (u16)by_width(r->type, V_BLENDMPS), .length = vlength(f, r->type), .dst = d, .a = identity(f, r),
                .b = v, .flags = VI_TAIL});
  return d;
}

static void fold_masked(VecFn *f, const VLoop *l, VFold *r, u32 acc) {
  VReg d = masked(f, l, r);
  if (!f->failed) update(f, r->acc[acc], lower_op(f, r->op, r->type, r->acc[acc], d, 0));
}

static VecOp load_op(u32 bytes, u32 lanes) {
  return lanes > 1 ? (bytes == 8 ? V_MOVUPD : V_MOVUPS) : bytes == 8 ? V_MOVSD_FROM : V_MOVSS_FROM;
}
static VecOp save_op(u32 bytes, u32 lanes) {
  return lanes > 1 ? (bytes == 8 ? V_MOVUPD_TO : V_MOVUPS_TO) : bytes == 8 ? V_MOVSD_TO : V_MOVSS_TO;
}

static void move_accumulators(VecFn *f, const VLoop *l, VFold *r, bool back) {
  u32 bytes = element_bytes(r->type);
  u8 length = length_of(bytes, l->lanes);
  for (u32 k = 0; k < l->copies + r->beside; k++) {
    VecMem m = mem_at(RSP, (i32)(r->lanes_at + k * l->lanes * bytes));
    if (!back) v_save(f, V_MOVUPS_TO, length, m, r->acc[k]);
    else put(f, (VIns){.op = V_MOVUPS, .length = length, .dst = r->acc[k], .mem = m});
  }
}

/* One step of what is left, onto the lanes in the frame from byte RCX on. */
static void fold_in_frame(VecFn *f, const VLoop *l, VFold *r) {
  u32 bytes = element_bytes(r->type);
  emit_copy(f, l, 0);
  if (f->failed) return;
  VReg v = element(f, r);
  g_load(f, RCX, RSP, (i32)r->off_slot);
  VecMem m = {.used = true, .base = RSP, .index = RCX, .disp = (i32)r->lanes_at};
  VecMem save = m;
  VReg was = v_load(f, load_op(bytes, f->lanes), vlength(f, r->type), m);
  VReg now = lower_op(f, r->op, r->type, was, v, 0);
  put(f, (VIns){.op = (u16)save_op(bytes, f->lanes), .length = vlength(f, r->type), .a = now, .mem = save,
                .flags = f->tail ? VI_TAIL : 0});
  if (r->ordered) {
    g_alu_imm(f, ALU_ADD, RCX, bytes * f->lanes);
    g_save(f, RSP, (i32)r->off_slot, RCX);
  }
}

/* Lanes combine as l with l + W/2, then W/4 … 1; the result is the first lane. */
static VReg combine_lanes(VecFn *f, const VLoop *l, const VFold *r) {
  u32 bytes = element_bytes(r->type);
  VReg acc[COPIES_MOST];
  memcpy(acc, r->acc, sizeof acc);
  f->lanes = l->lanes;
  for (u32 half = l->copies / 2; half; half /= 2)
    for (u32 k = 0; k < half; k++) acc[k] = lower_op(f, r->op, r->type, acc[k], acc[k + half], 0);
  VReg v = acc[0];
  for (u32 half = l->lanes / 2; half; half /= 2) {
    VReg high = new_vec(f);
    u32 at = half * bytes;
    f->lanes = half;
    if (at >= 16)
      put(f, (VIns){.op = at == 32 ? V_EXTRACT4X64 : f->evex ? V_EXTRACT4X32 : V_EXTRACT128,
                    .length = at == 32 ? L512 : L256, .dst = high, .a = v, .imm = 1});
    else put(f, (VIns){.op = V_PSHUFD, .length = L128, .dst = high, .a = v, .imm = at == 8 ? 0x0E : 0x01});
    v = lower_op(f, r->op, r->type, v, high, 0);
  }
  f->lanes = 1;
  return v;
}

/* A block's result goes up. RAX holds the number of those before it. */
static void push_block(VecFn *f, const VFold *r, VReg v) {
  u32 bytes = element_bytes(r->type), lanes = LANE_BYTES / bytes;
  i32 count = (i32)(r->state_at + offsetof(VecLanes, count));
  u32 begun = g_label(f), done = g_label(f);
  g_load(f, RAX, RSP, count);
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_NE, begun);
  g_load(f, RAX, RSP, (i32)(r->state_at + offsetof(VecLanes, used)));
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_NE, begun);
  call_words(f, (u64)(uintptr_t)vec_lanes_begin, r->state_at, r->op, r->type);
  g_put(f, begun);
  g_load(f, RCX, RSP, count);
  g_alu_imm(f, ALU_AND, RCX, lanes - 1);
  VecMem m = {.used = true, .base = RSP, .index = RCX, .scale = bytes == 8 ? 3 : 2,
              .disp = (i32)(r->state_at + offsetof(VecLanes, lane))};
  VReg was = v_load(f, load_op(bytes, 1), L128, m);
  v_save(f, save_op(bytes, 1), L128, m, lower_op(f, r->op, r->type, was, v, 0));
  g_load(f, RAX, RSP, count);
  g_alu_imm(f, ALU_ADD, RAX, 1);
  g_save(f, RSP, count, RAX);
  g_alu_imm(f, ALU_CMP, RAX, (i64)lanes * LOOP_BLOCK_TRIPS);
  g_jcc(f, CC_NE, done);
  call_words(f, (u64)(uintptr_t)vec_lanes_carry, r->state_at, 0, 0);
  g_put(f, done);
}

/* ---- vector loops ---------------------------------------------------------------------------- */

/* R15 goes on to R14, `copies` vectors a trip, then what is left. Of `count` reductions side by side each takes every
 * vector. */
static void main_loop(VecFn *f, const VLoop *l, VFold *r, u32 count) {
  u32 step = l->lanes * l->copies, top = g_label(f), rest = g_label(f), copies = l->packed ? 1 : l->copies;
  u32 before = step - 1 + (f->near ? NEAR_TRIPS : 0); /* trips that are left at least */
  enter(f, l, l->lanes, false);
  f->packed = l->packed;
  f->trip_copies = copies;
  if (before) g_alu_imm(f, ALU_SUB, R14, before);
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_GE, rest);
  if (f->near) leave_far(f, rest);
  for (u32 i = count; i-- > 0;) {
    if (count > 1) use_loop(f, &l[i]);
    begin_divisors(f);
  }
  u32 begin = f->ins.count;
  g_put(f, top);
  f->fetched_count = 0;
  if (r) touch_trip(f, step);
  for (u32 k = 0, side; k < copies; k += side) {
    f->whole = true;
    f->folds |= r != NULL;
    f->fetched_count = 0;
    side = l->abreast < copies - k ? l->abreast : copies - k;
    for (u32 i = 1; i < count; i++) use_loop(f, &l[i]), fold_copy(f, &l[i], &r[i], k);
    if (count > 1) use_loop(f, l);
    if (side > 1 && r) fold_abreast(f, l, r, k, side);
    else if (side > 1) emit_abreast(f, l, k, side);
    else if (r) fold_copy(f, l, r, k);
    else emit_copy(f, l, k);
    if (l->abreast == 1) step_streams(f);
  }
  f->whole = f->packed = false;
  f->divisors = 0;
  g_alu_imm(f, ALU_ADD, R15, step);
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_L, top);
  end_span(f, begin);
  g_put(f, rest);
  if (l->packed && r && r->op == LOOP_AND)
    copy_to(f, r->acc[0],
            numbers_of_flags(f, lower_compare(f, LOOP_EQ, LT_I32, r->acc[0], new_const(f, BYTES_OF_ONE, 4))));
  if (before) g_alu_imm(f, ALU_ADD, R14, before);
}

/* Fewer elements than the accumulators have lanes are left: masked, each vector onto its own accumulator. */
static void rest_in_registers(VecFn *f, const VLoop *l, VFold *r) {
  u32 done = g_label(f);
  for (u32 k = 0; k < l->copies && !f->failed; k++) {
    g_alu(f, ALU_CMP, R15, R14);
    g_jcc(f, CC_GE, done);
    enter(f, l, l->lanes, true);
    g_mov(f, RCX, R14);
    g_alu(f, ALU_SUB, RCX, R15);
    put(f, (VIns){.op = G_TAIL, .x = f->narrow && f->narrow < 4});
    fold_masked(f, l, r, k);
    step_streams(f);
    g_alu_imm(f, ALU_ADD, R15, l->lanes);
  }
  enter(f, l, l->lanes, false);
  g_put(f, done);
}

/* AVX2: what is left of a trip of several vectors, while it fills one; each joins the accumulator that its place in the
 * trip has. */
static void rest_by_vectors(VecFn *f, const VLoop *l, VFold *r) {
  u32 top = g_label(f), rest = g_label(f);
  enter(f, l, l->lanes, false);
  g_alu_imm(f, ALU_SUB, R14, l->lanes - 1);
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_GE, rest);
  u32 begin = f->ins.count;
  g_put(f, top);
  if (r) fold_in_frame(f, l, r);
  else emit_copy(f, l, 0);
  g_alu_imm(f, ALU_ADD, R15, l->lanes);
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_L, top);
  end_span(f, begin);
  g_put(f, rest);
  g_alu_imm(f, ALU_ADD, R14, l->lanes - 1);
}

static void rest_loop(VecFn *f, const VLoop *l, VFold *r) {
  if (!l->tail_lanes) {
    if (r && r->in_frame) move_accumulators(f, l, r, true);
    return;
  }
  if (r && r->ordered && f->evex && l->copies <= 4 && effort(f, l) <= CHEAP) {
    rest_in_registers(f, l, r);
    return;
  }
  VLoop fewer = *l;
  if (l->narrow && l->narrow < 4 && !f->evex) { /* in lanes of 4 bytes */
    f->narrow = 4;
    fewer.lanes = l->rest_lanes, fewer.copies = 2;
    l = &fewer;
  }
  u32 top = g_label(f), single = g_label(f), done = g_label(f);
  bool masked = l->tail_lanes > 1, framed = r && (r->ordered || !masked), in_frame = r && r->in_frame;
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_GE, done);
  enter(f, l, l->tail_lanes, masked);
  if (framed) {
    if (!in_frame) move_accumulators(f, l, r, false);
    g_imm(f, RAX, 0);
    g_save(f, RSP, (i32)r->off_slot, RAX);
  }
  if (!masked && l->copies > 1) {
    rest_by_vectors(f, l, r);
    g_alu(f, ALU_CMP, R15, R14);
    g_jcc(f, CC_GE, single);
    enter(f, l, l->tail_lanes, false);
  }
  u32 begin = f->ins.count;
  g_put(f, top);
  if (masked) {
    g_mov(f, RCX, R14);
    g_alu(f, ALU_SUB, RCX, R15);
    put(f, (VIns){.op = G_TAIL, .x = f->narrow && f->narrow < 4});
  }
  if (framed) fold_in_frame(f, l, r);
  else if (r) fold_masked(f, l, r, 0);
  else emit_copy(f, l, 0);
  step_streams(f);
  g_alu_imm(f, ALU_ADD, R15, l->tail_lanes);
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_L, top);
  end_span(f, begin);
  g_put(f, single);
  if (in_frame) g_put(f, done);
  if (framed) {
    enter(f, l, l->lanes, false);
    move_accumulators(f, l, r, true);
  }
  if (!in_frame) g_put(f, done);
}

/* `more`: another loop goes on in the same registers. */
static bool begin_vector(VecFn *f, const VLoop *l, bool more) {
  use_loop(f, l);
  enter(f, l, l->lanes, false);
  f->narrow = l->narrow;
  if (l->narrow) f->lanes = f->evex ? 8 : 4; /* what is broadcast is one vector, whatever its type */
  begin_streams(f, 8, more);
  f->lanes = l->lanes;
  return !f->failed;
}

void loop_leave(VecFn *f) {
  f->vector_head = 0;
  f->narrow = 0;
  f->lanes = 1;
  f->tail = false;
  f->streams.count = 0;
  memset(f->spread, 0, sizeof *f->spread * f->fn->nodes.count);
  memset(f->spread_4, 0, sizeof *f->spread * f->fn->nodes.count);
}

/* R15 … R14: the block that begins at `at`, before R14. */
static void block_of(VecFn *f, i32 at, u32 elements) {
  g_load(f, R15, RSP, at);
  put(f, (VIns){.op = G_LEA, .dst = RAX, .mem = mem_at(R15, (i32)elements)});
  g_alu(f, ALU_CMP, R14, RAX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_G, .dst = R14, .a = RAX});
}

/* R15 and R14: the first trip and the one behind the last. */
void loop_bounds(VecFn *f, const VLoop *l) {
  if (vnode(f, l->head)->op == LOOP_PAR) {
    g_load(f, R15, RSP, (i32)f->lo_slot);
    g_load(f, R14, RSP, (i32)f->hi_slot);
  } else {
    word_to(f, R14, loop_trips_of(f->fn, l->head, 0));
    for (u32 axis = 1; axis < vnode(f, l->head)->a; axis++) {
      word_to(f, RAX, loop_trips_of(f->fn, l->head, axis));
      put(f, (VIns){.op = G_IMUL, .dst = R14, .a = RAX});
    }
    if (f->block_slot) block_of(f, (i32)f->block_slot, SERIAL_BLOCK);
    else g_imm(f, R15, 0);
  }
}

/* The first store of a loop whose stores may be non-temporal: whole vectors, one behind the other, of the only array
 * that the kernel stores, or at the same places of two that begin as far from the beginning of a line
 * (blocks_past). NULL: it may not. */
static const LoopNode *past_store(const VecFn *f, const VLoop *l) {
  const LoopNode *s = NULL, *first = NULL;
  u32 other = 0; /* what other loops store */
  if (l->lanes == 1 || f->block_slot || f->head_count > 1) return NULL;
  for (u32 pos = 0; pos < f->fn->body.count; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    if (n->op != LOOP_STORE) continue;
    u32 bytes = loop_type_bytes((LoopType)n->mem);
    if (pos < l->first || pos > l->last) {
      if (other && n->a != other) return NULL;
      other = n->a;
      continue;
    }
    if (bytes < 4 || bytes * l->lanes < (f->evex ? 32u : 16u) ||
        access_kind(f, n, l->head, l->first, l->last) != VA_UNIT)
      return NULL;
    if (s && (s != first || n->a == s->a || bytes != loop_type_bytes((LoopType)s->mem))) return NULL;
    s = n;
    if (!first) first = n;
  }
  return other && first && (s != first || s->a != other) ? NULL : first;
}

/* The trips before the first one whose vector is whole where it is stored, masked (AVX2: one by one); R15 is that
 * trip's then. */
static void until_whole(VecFn *f, const VLoop *l, const LoopNode *s) {
  u32 bytes = loop_type_bytes((LoopType)s->mem), whole = g_label(f);
  i32 end = frame_room(f, 8, 8);
  if (!begin_vector(f, l, false)) return;
  store_address(f, s);
  g_imm(f, RCX, 0);
  g_alu(f, ALU_SUB, RCX, RAX);
  g_alu_imm(f, ALU_AND, RCX, bytes * l->lanes - 1);
  g_jcc(f, CC_E, whole);
  put(f, (VIns){.op = G_SHR, .dst = RCX, .x = bytes == 8 ? 3 : 2});
  g_save(f, RSP, end, R14);
  g_alu(f, ALU_ADD, RCX, R15);
  g_alu(f, ALU_CMP, R14, RCX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_G, .dst = R14, .a = RCX});
  if (l->tail_lanes > 1) {
    g_mov(f, RCX, R14);
    g_alu(f, ALU_SUB, RCX, R15);
    enter(f, l, l->lanes, true);
    put(f, (VIns){.op = G_TAIL, .x = f->narrow && f->narrow < 4});
    emit_copy(f, l, 0);
    g_mov(f, R15, R14);
  } else {
    VLoop fewer = *l; /* than a vector has lanes */
    fewer.copies = 1;
    rest_loop(f, &fewer, NULL);
  }
  g_load(f, R14, RSP, end);
  g_put(f, whole);
  loop_leave(f);
}

static void vector_loop(VecFn *f, VLoop *l) {
  u32 done = g_label(f);
  if (vnode(f, l->head)->op == LOOP_FOR && !is_free_of_order(f, l->first, l->last)) {
    refuse(f, "trips that read what others wrote");
    return;
  }
  if (!shape_of(f, l, false)) return;
  loop_bounds(f, l);
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_GE, done);
  const LoopNode *past = past_store(f, l);
  f->may_pass |= past != NULL;
  if (!f->level->past) past = NULL;
  if (past) until_whole(f, l, past);
  if (f->failed || !begin_vector(f, l, false)) return;
  f->passes |= f->past = past != NULL;
  main_loop(f, l, NULL, 1);
  f->past = false;
  rest_loop(f, l, NULL);
  loop_leave(f);
  g_put(f, done);
}

static bool fold_of(VecFn *f, const VLoop *l, VFold *r) {
  const LoopNode *h = vnode(f, l->head);
  r->reduce = (LoopReduce)h->aux;
  r->op = loop_reduce_op(r->reduce);
  r->type = loop_type_of(f->fn, loop_result_of(f->fn, l->head, 0));
  r->flags = r->type == LT_I1;
  if (r->flags) r->type = LT_I32;
  r->ordered = loop_is_float(r->type) && (r->op == LOOP_ADD || r->op == LOOP_MUL);
  if (r->ordered && h->mem == LOOP_ORDER_ROWS) return refuse(f, "a reduction in the order of rows"), false;
  const LoopNode *y = vnode(f, body_node(f, l->last));
  if (y->op != LOOP_YIELD) return refuse(f, "a reduction without value"), false;
  r->yield = loop_list(f->fn, y)[0];
  r->lanes_at = (u32)frame_room(f, LANE_BYTES + 64, 64);
  r->off_slot = (u32)frame_room(f, 8, 8);
  return true;
}

static void fold_shape(VecFn *f, VLoop *l, VFold *r) {
  u32 bytes = element_bytes(r->type);
  if (r->ordered) l->copies = LANE_BYTES / bytes / l->lanes;
  else l->copies = l->lanes == 1 ? 1 : l->copies < 4 ? 2 : 4;
  if (l->copies > COPIES_MOST || (l->lanes == 1 && r->ordered)) refuse(f, "more lanes than registers");
  if (keeps_beside(f, l, r)) r->beside = BESIDE;
}

static void answer(VecFn *f, const VFold *r, VReg result, VReg v) {
  (void)r;
  copy_to(f, result, v);
}

/* As few elements as a vector holds: each is a lane of its own, and what the others hold is exact. Many short rows
 * spend little else. */
static void one_vector(VecFn *f, const VLoop *l, u32 lanes, const VFold *r, VReg result, u32 done) {
  VLoop one = *l;
  VFold own = *r;
  u32 longer = g_label(f);
  if (!f->evex || vnode(f, l->head)->a > 1 || effort(f, l) > CHEAP) return;
  g_mov(f, RCX, R14);
  g_alu(f, ALU_SUB, RCX, R15);
  g_alu_imm(f, ALU_CMP, RCX, lanes);
  g_jcc(f, CC_G, longer);
  one.lanes = lanes;
  one.copies = 1;
  enter(f, &one, lanes, true);
  put(f, (VIns){.op = G_TAIL, .x = f->narrow && f->narrow < 4});
  own.acc[0] = masked(f, l, r);
  if (f->failed) return;
  answer(f, r, result, combine_lanes(f, &one, &own));
  g_jump(f, done);
  g_put(f, longer);
}

static void ordered_blocks(VecFn *f, VLoop *l, VFold *r, VReg result) {
  u32 bytes = element_bytes(r->type), block = g_label(f), more = g_label(f), done = g_label(f);
  one_vector(f, l, l->lanes / 2, r, result, done);
  one_vector(f, l, l->lanes, r, result, done);
  r->state_at = (u32)frame_room(f, sizeof(VecLanes), 64);
  r->end_slot = (u32)frame_room(f, 8, 8);
  g_save(f, RSP, (i32)r->end_slot, R14);
  g_imm(f, RAX, 0);
  g_save(f, RSP, (i32)(r->state_at + offsetof(VecLanes, count)), RAX);
  g_save(f, RSP, (i32)(r->state_at + offsetof(VecLanes, used)), RAX);
  u32 begin = f->ins.count;
  g_put(f, block);
  enter(f, l, l->lanes, false);
  begin_block(f, l, r);
  g_load(f, R14, RSP, (i32)r->end_slot);
  put(f, (VIns){.op = G_LEA, .dst = RAX, .mem = mem_at(R15, (i32)(LANE_BYTES / bytes * LOOP_BLOCK_TRIPS))});
  g_alu(f, ALU_CMP, R14, RAX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_G, .dst = R14, .a = RAX});
  main_loop(f, l, r, 1);
  rest_loop(f, l, r);
  VReg v = combine_lanes(f, l, r);
  g_alu_load(f, ALU_CMP, R15, RSP, (i32)r->end_slot);
  g_jcc(f, CC_L, more);
  g_load(f, RAX, RSP, (i32)(r->state_at + offsetof(VecLanes, used)));
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_NE, more);
  answer(f, r, result, v);
  g_jump(f, done);
  g_put(f, more);
  push_block(f, r, v);
  g_alu_load(f, ALU_CMP, R15, RSP, (i32)r->end_slot);
  g_jcc(f, CC_L, block);
  end_span(f, begin);
  call_words(f, (u64)(uintptr_t)vec_lanes_end, r->state_at, 0, 0);
  answer(f, r, result, v_load(f, load_op(bytes, 1), L128, mem_at(RSP, (i32)(r->state_at + offsetof(VecLanes, lane)))));
  g_put(f, done);
}

static void reduce_loop(VecFn *f, VLoop *l) {
  VFold r = {0};
  u32 none = g_label(f), done = g_label(f), id = loop_result_of(f->fn, l->head, 0);
  if (!is_free_of_order(f, l->first, l->last)) refuse(f, "trips that write over what others wrote");
  if (f->failed || !shape_of(f, l, true) || !fold_of(f, l, &r)) return;
  fold_shape(f, l, &r);
  VReg result = new_vec(f);
  loop_bounds(f, l);
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_GE, none);
  if (f->failed || !begin_vector(f, l, false)) return;
  if (r.ordered) {
    ordered_blocks(f, l, &r, result);
  } else {
    begin_block(f, l, &r);
    main_loop(f, l, &r, 1);
    settle_beside(f, l, &r);
    rest_loop(f, l, &r);
    answer(f, &r, result, combine_lanes(f, l, &r));
  }
  loop_leave(f);
  g_jump(f, done);
  g_put(f, none);
  answer(f, &r, result, r.flags ? identity(f, &r) : lower_constant(f, r.type, loop_reduce_empty(r.reduce, r.type)));
  g_put(f, done);
  f->value[id] = r.flags ? flags_of_numbers(f, result) : result;
}

/* ---- reductions side by side --------------------------------------------------------------------- */

/* Several reductions over the same elements that do not use each other: each takes a block of the elements, then
 * the next one does, so that they are read from memory once; those whose accumulators all find registers run side
 * by side. */
enum { GROUP_MOST = 8, FOLDS_MOST = 16, CHUNK_TRIPS = 8, CHUNK_LEAST = 2 };

typedef struct Uses {
  const VecFn *f;
  const VLoop *group;
  u32 count;
  bool found;
} Uses;

static void find_result(void *ctx, u32 id) {
  Uses *u = ctx;
  for (u32 i = 0; i < u->count; i++) u->found |= loop_result_of(u->f->fn, u->group[i].head, 0) == id;
}

static bool same_trips(const VecFn *f, u32 a, u32 b) {
  u32 axes = vnode(f, a)->a;
  if (vnode(f, b)->a != axes) return false;
  for (u32 k = 0; k < axes; k++) {
    u32 x = loop_trips_of(f->fn, a, k), y = loop_trips_of(f->fn, b, k);
    if (x != y &&
        !(vnode(f, x)->op == LOOP_CONST && vnode(f, y)->op == LOOP_CONST && vnode(f, x)->imm == vnode(f, y)->imm))
      return false;
  }
  return true;
}

static u32 ordered_bytes(const VecFn *f, u32 head) { /* of the accumulator of a float sum or product; 0: exact */
  const LoopNode *h = vnode(f, head);
  LoopType t = loop_type_of(f->fn, loop_result_of(f->fn, head, 0));
  LoopOp op = loop_reduce_op((LoopReduce)h->aux);
  return loop_is_float(t) && (op == LOOP_ADD || op == LOOP_MUL) ? element_bytes(t) : 0;
}

/* The reductions from body position `pos` on that can go with the first; 1: none. */
static u32 group_at(const VecFn *f, u32 pos, u32 last, VLoop *group) {
  u32 count = 0, bytes = 0;
  for (; pos <= last && count < GROUP_MOST; pos = f->end[pos] + 1) {
    u32 head = body_node(f, pos);
    if (vnode(f, head)->op != LOOP_REDUCE) break;
    VLoop l = {.head = head, .first = pos + 1, .last = f->end[pos] - 1};
    if (f->end[pos] <= pos + 1 || !is_straight(f, l.first, l.last) || (count && !same_trips(f, group[0].head, head)))
      break;
    Uses u = {.f = f, .group = group, .count = count};
    for (u32 k = l.first; k <= l.last; k++) {
      const LoopNode *n = vnode(f, body_node(f, k));
      u.found |= n->op == LOOP_STORE || n->op == LOOP_CHECK;
      loop_each_operand(f->fn, n, find_result, &u);
    }
    u32 own = ordered_bytes(f, head);
    if (u.found || (own && bytes && own != bytes)) break;
    if (own) bytes = own;
    group[count++] = l;
  }
  return count;
}

static void block_bounds(VecFn *f, i32 at, i32 end, u32 elements) {
  g_load(f, R14, RSP, end);
  block_of(f, at, elements);
}

static void frame_value(VecFn *f, const VFold *r, VReg v) {
  v_save(f, save_op(element_bytes(r->type), 1), L128, mem_at(RSP, (i32)r->sum_slot), v);
}

static VReg value_in_frame(VecFn *f, const VFold *r) {
  return v_load(f, load_op(element_bytes(r->type), 1), L128, mem_at(RSP, (i32)r->sum_slot));
}

/* A block's result joins those before it; the only one is the answer. */
static void end_block(VecFn *f, const VFold *r, VReg v, i32 end) {
  if (!r->ordered) {
    frame_value(f, r, lower_op(f, r->op, r->type, value_in_frame(f, r), v, 0));
    return;
  }
  u32 more = g_label(f), done = g_label(f);
  g_alu_load(f, ALU_CMP, R15, RSP, end);
  g_jcc(f, CC_L, more);
  g_load(f, RAX, RSP, (i32)(r->state_at + offsetof(VecLanes, used)));
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_NE, more);
  frame_value(f, r, v);
  g_jump(f, done);
  g_put(f, more);
  push_block(f, r, v);
  g_put(f, done);
}

static void begin_group(VecFn *f, VFold *r) {
  r->sum_slot = (u32)frame_room(f, 8, 8);
  if (!r->ordered) {
    frame_value(f, r, identity(f, r));
    return;
  }
  r->state_at = (u32)frame_room(f, sizeof(VecLanes), 64);
  g_imm(f, RAX, 0);
  g_save(f, RSP, (i32)(r->state_at + offsetof(VecLanes, count)), RAX);
  g_save(f, RSP, (i32)(r->state_at + offsetof(VecLanes, used)), RAX);
}

static void end_group(VecFn *f, const VFold *r, VReg result) {
  if (r->ordered) {
    u32 one = g_label(f);
    g_load(f, RAX, RSP, (i32)(r->state_at + offsetof(VecLanes, used)));
    g_alu_imm(f, ALU_CMP, RAX, 0);
    g_jcc(f, CC_E, one);
    call_words(f, (u64)(uintptr_t)vec_lanes_end, r->state_at, 0, 0);
    frame_value(f, r, v_load(f, load_op(element_bytes(r->type), 1), L128,
                             mem_at(RSP, (i32)(r->state_at + offsetof(VecLanes, lane)))));
    g_put(f, one);
  }
  copy_to(f, result, value_in_frame(f, r));
}

/* Does l read something that `first` does? */
static bool shares_reads(const VecFn *f, const VLoop *first, const VLoop *l) {
  for (u32 i = first->first; i <= first->last; i++)
    for (u32 k = l->first; k <= l->last; k++) {
      const LoopNode *a = vnode(f, body_node(f, i)), *b = vnode(f, body_node(f, k));
      if (a->op != LOOP_LOAD || b->op != LOOP_LOAD || a->a != b->a || a->imm != b->imm || a->count != b->count)
        continue;
      const LoopTerm *s = loop_terms(f->fn, a), *t = loop_terms(f->fn, b);
      u32 same = 0;
      while (same < a->count && (s[same].var == t[same].var || (s[same].var == loop_index_of(first->head, 0) &&
                                                                t[same].var == loop_index_of(l->head, 0))))
        same++;
      if (same == a->count) return true;
    }
  return false;
}

/* Short bodies whose accumulators all find registers read each vector once. */
static bool runs_abreast(const VecFn *f, const VLoop *group, u32 count) {
  u32 cost = 0;
  for (u32 i = 0; i < count; i++) {
    const VLoop *l = &group[i];
    cost += effort(f, l);
    if ((!cpu_has(CPU_FETCH) && !shares_reads(f, &group[0], l)) || l->copies != group[0].copies ||
        l->lanes != group[0].lanes || l->abreast > 1)
      return false;
    for (u32 pos = l->first; pos <= l->last; pos++) {
      const LoopNode *n = vnode(f, body_node(f, pos));
      if (n->op == LOOP_LOAD && access_kind(f, n, l->head, l->first, l->last) > VA_SAME) return false;
    }
  }
  return f->evex && count * group[0].copies <= FOLDS_MOST && cost <= MIDDLE;
}

static void blocks_abreast(VecFn *f, VLoop *group, VFold *r, u32 count, i32 at, i32 end, u32 elements) {
  i32 rest = frame_room(f, 8, 8);
  block_bounds(f, at, end, elements);
  for (u32 i = 0; i < count && !f->failed; i++) {
    (void)begin_vector(f, &group[i], i > 0);
    begin_block(f, &group[i], &r[i]);
  }
  main_loop(f, group, r, count);
  g_save(f, RSP, rest, R15);
  for (u32 i = 0; i < count && !f->failed; i++) {
    use_loop(f, &group[i]);
    g_load(f, R15, RSP, rest);
    rest_loop(f, &group[i], &r[i]);
    end_block(f, &r[i], combine_lanes(f, &group[i], &r[i]), end);
  }
  loop_leave(f);
}

static void blocks_in_turn(VecFn *f, VLoop *group, VFold *r, u32 count, i32 at, i32 end, u32 elements) {
  for (u32 i = 0; i < count && !f->failed; i++) {
    block_bounds(f, at, end, elements);
    if (!begin_vector(f, &group[i], false)) return;
    begin_block(f, &group[i], &r[i]);
    main_loop(f, &group[i], &r[i], 1);
    rest_loop(f, &group[i], &r[i]);
    VReg v = combine_lanes(f, &group[i], &r[i]);
    loop_leave(f);
    end_block(f, &r[i], v, end);
  }
}

/* How many trips a chunk ends behind the one before: so many that what is new in it, counted once for each array,
 * stays a few lines for the fetching to bridge; of one array's blocks far apart CHUNK_TRIPS are new after each
 * change from the one to the other. */
static u32 chunk_trips(const VecFn *f, const VLoop *group, u32 count) {
  u32 seen[CHUNK_TRIPS / CHUNK_LEAST], arrays = 0;
  for (u32 i = 0; i < count; i++)
    for (u32 pos = group[i].first; pos <= group[i].last; pos++) {
      const LoopNode *n = vnode(f, body_node(f, pos));
      u32 k = 0;
      while (k < arrays && seen[k] != n->a) k++;
      if (n->op == LOOP_LOAD && k == arrays && arrays < COUNT_OF(seen)) seen[arrays++] = n->a;
    }
  if (arrays == 1 && count > 1 && !shares_reads(f, &group[0], &group[count - 1]))
    return CHUNK_TRIPS / (count - count / 2 + 1);
  return arrays > 1 ? CHUNK_TRIPS / arrays : CHUNK_LEAST;
}

/* The same in chunks of some trips, so that the memory of the next ones comes meanwhile: of a whole block it would
 * come in the first reduction alone. Each chunk ends some trips behind the one before, and goes through all
 * that its reduction has not seen yet: so each reads new memory for those trips alone, and changes from one
 * reduction to another, which take as long as some twenty vectors, are seldom. */
static void blocks_in_chunks(VecFn *f, VLoop *group, VFold *r, u32 count, i32 at, i32 end, u32 elements) {
  i32 some = frame_room(f, 8, 8), before = frame_room(f, 8, 8);
  u32 chunk = g_label(f), step = elements / LOOP_BLOCK_TRIPS * chunk_trips(f, group, count);
  block_bounds(f, at, end, elements);
  g_save(f, RSP, before, R14);
  g_save(f, RSP, some, R15);
  for (u32 i = 0; i < count && !f->failed; i++) {
    enter(f, &group[i], group[i].lanes, false);
    new_accumulators(f, &group[i], &r[i]);
    begin_block(f, &group[i], &r[i]);
    move_accumulators(f, &group[i], &r[i], false);
    r[i].end_slot = (u32)frame_room(f, 8, 8);
    g_load(f, RAX, RSP, some);
    g_save(f, RSP, (i32)r[i].end_slot, RAX);
  }
  u32 begin = f->ins.count;
  g_put(f, chunk);
  for (u32 i = 0; i < count && !f->failed; i++) {
    block_bounds(f, some, before, step);
    g_save(f, RSP, some, RAX); /* what R14 would be without an end */
    g_load(f, R15, RSP, (i32)r[i].end_slot);
    if (!begin_vector(f, &group[i], false)) return;
    new_accumulators(f, &group[i], &r[i]);
    move_accumulators(f, &group[i], &r[i], true);
    main_loop(f, &group[i], &r[i], 1);
    move_accumulators(f, &group[i], &r[i], false);
    g_save(f, RSP, (i32)r[i].end_slot, R15);
    loop_leave(f);
  }
  g_load(f, RAX, RSP, some);
  g_alu_imm(f, ALU_SUB, RAX, (count - 1) * step);
  g_alu_load(f, ALU_CMP, RAX, RSP, before);
  g_jcc(f, CC_L, chunk);
  end_span(f, begin);
  for (u32 i = 0; i < count && !f->failed; i++) {
    g_load(f, R15, RSP, (i32)r[i].end_slot);
    g_load(f, R14, RSP, before);
    if (!begin_vector(f, &group[i], false)) return;
    new_accumulators(f, &group[i], &r[i]);
    r[i].in_frame = !r[i].beside && !f->evex;
    if (!r[i].in_frame) move_accumulators(f, &group[i], &r[i], true);
    settle_beside(f, &group[i], &r[i]);
    rest_loop(f, &group[i], &r[i]);
    VReg v = combine_lanes(f, &group[i], &r[i]);
    loop_leave(f);
    end_block(f, &r[i], v, end);
  }
}

static void reduce_group(VecFn *f, VLoop *group, u32 count) {
  VFold r[GROUP_MOST] = {0};
  VReg results[GROUP_MOST];
  u32 none = g_label(f), done = g_label(f), block = g_label(f), bytes = 4;
  for (u32 i = 0; i < count; i++) {
    if (f->failed || !shape_of(f, &group[i], true) || !fold_of(f, &group[i], &r[i])) return;
    fold_shape(f, &group[i], &r[i]);
    group[i].packed = false;
    if (r[i].ordered) bytes = element_bytes(r[i].type);
    results[i] = new_vec(f);
  }
  i32 at = frame_room(f, 8, 8), end = frame_room(f, 8, 8);
  loop_bounds(f, &group[0]);
  g_alu(f, ALU_CMP, R15, R14);
  g_jcc(f, CC_GE, none);
  g_save(f, RSP, at, R15);
  g_save(f, RSP, end, R14);
  for (u32 i = 0; i < count; i++) begin_group(f, &r[i]);
  u32 begin = f->ins.count;
  if (!f->evex && count > 1) f->turns_from = group[0].first;
  bool apart = count > 1 && !cpu_has(CPU_FETCH) && !shares_reads(f, &group[0], &group[count - 1]);
  g_put(f, block);
  if (runs_abreast(f, group, count)) blocks_abreast(f, group, r, count, at, end, LANE_BYTES / bytes * LOOP_BLOCK_TRIPS);
  else if (!f->evex || apart) blocks_in_chunks(f, group, r, count, at, end, LANE_BYTES / bytes * LOOP_BLOCK_TRIPS);
  else blocks_in_turn(f, group, r, count, at, end, LANE_BYTES / bytes * LOOP_BLOCK_TRIPS);
  g_save(f, RSP, at, R15);
  g_alu_load(f, ALU_CMP, R15, RSP, end);
  g_jcc(f, CC_L, block);
  f->turns_from = 0;
  end_span(f, begin);
  for (u32 i = 0; i < count; i++) end_group(f, &r[i], results[i]);
  g_jump(f, done);
  g_put(f, none);
  for (u32 i = 0; i < count; i++)
    answer(f, &r[i], results[i],
           r[i].flags ? identity(f, &r[i]) : lower_constant(f, r[i].type, loop_reduce_empty(r[i].reduce, r[i].type)));
  g_put(f, done);
  for (u32 i = 0; i < count; i++)
    f->value[loop_result_of(f->fn, group[i].head, 0)] = r[i].flags ? flags_of_numbers(f, results[i]) : results[i];
}

void emit_body(VecFn *f, u32 first, u32 last) {
  for (u32 pos = first; pos <= last && !f->failed; pos++) {
    u32 id = body_node(f, pos);
    const LoopNode *n = vnode(f, id);
    if (!loop_is_head(n)) {
      statement(f, id);
      continue;
    }
    u32 end = f->end[pos];
    VLoop l = {.head = id, .first = pos + 1, .last = end - 1};
    bool straight = end > pos + 1 && is_straight(f, pos + 1, end - 1);
    VLoop group[GROUP_MOST];
    u32 grouped = straight && n->op == LOOP_REDUCE ? group_at(f, pos, last, group) : 0;
    if (grouped > 1) {
      reduce_group(f, group, grouped);
      pos = group[grouped - 1].last + 1;
      continue;
    }
    if (n->op == LOOP_REDUCE && straight) reduce_loop(f, &l);
    else if (straight && (n->op == LOOP_PAR || n->op == LOOP_FOR) && n->a == 1 && !n->b &&
             is_short(f, l.head, l.first, l.last))
      serial_loop(f, id, pos + 1, end - 1);
    else if (straight && (n->op == LOOP_PAR || n->op == LOOP_FOR) && n->a == 1 && !n->b) vector_loop(f, &l);
    else if (is_columns(f, pos)) columns_loop(f, &l);
    else if (n->op == LOOP_PAR || n->op == LOOP_FOR) serial_loop(f, id, pos + 1, end - 1);
    else refuse(f, "control flow");
    pos = end;
  }
}

/* vector_access.c — addresses, loads and stores; operands and statements of straight-line code (vector_emitter.h).
 *
 * In a vector loop an access belongs to a stream: the address without the loop's index, computed once before the
 * loop, in a general register or in the frame. Outside, addresses are computed where they are needed. */
#include <string.h>

#include "jit/vector/vector_emitter.h"

static const u8 stream_regs[] = {RSI, RDI, R8, R9, R10, R11, R12, R13};

bool inside(const VecFn *f, u32 id) {
  const LoopNode *n = vnode(f, id);
  if (n->op == LOOP_PARAM || n->op == LOOP_CONST || n->op == LOOP_TABLE || n->op == LOOP_INDEX) return false;
  if (n->op == LOOP_CARRY || n->op == LOOP_RESULT)
    return f->columns && f->where[n->a] >= f->inside_first && f->where[n->a] <= f->inside_last;
  return f->vector_head && f->where[id] >= f->inside_first && f->where[id] <= f->inside_last;
}

static bool is_vector_index(const VecFn *f, u32 id) {
  const LoopNode *n = vnode(f, id);
  return n->op == LOOP_INDEX && f->vector_head && n->a == f->vector_head;
}

/* The index of a loop over rows inside the vector loop. */
static bool is_row_index(const VecFn *f, u32 id) {
  const LoopNode *n = vnode(f, id);
  return n->op == LOOP_INDEX && f->columns && f->where[n->a] >= f->inside_first && f->where[n->a] <= f->inside_last;
}

/* ---- words in general registers ------------------------------------------------------------ */

void word_to(VecFn *f, u32 reg, u32 id) {
  const LoopNode *n = vnode(f, id);
  if (n->op == LOOP_CONST) g_imm(f, reg, n->imm);
  else if (n->op == LOOP_PARAM) g_load(f, reg, RBX, (i32)(8 * f->where[id]));
  else if (is_vector_index(f, id)) g_mov(f, reg, R15);
  else if (n->op == LOOP_INDEX) g_load(f, reg, RSP, (i32)f->index_slot[id]);
  else put(f, (VIns){.op = V_MOVQ_TO_GPR, .a = f->value[id], .x = reg});
}

/* reg = coef * strides (* var when there is one); RDX is lost. */
static void product_to(VecFn *f, u32 reg, u32 var, i64 coef, const u32 *stride) {
  if (var) word_to(f, reg, var);
  else g_imm(f, reg, (u64)coef);
  for (u32 k = 0; k < 2; k++)
    if (stride[k]) put(f, (VIns){.op = G_IMUL_LOAD, .dst = reg, .mem = mem_at(RBX, (i32)(8 * f->where[stride[k]]))});
  if (!var || coef == 1) return;
  if (coef == (i32)coef) {
    g_imul_imm(f, reg, coef);
    return;
  }
  g_imm(f, RDX, (u64)coef);
  put(f, (VIns){.op = G_IMUL, .dst = reg, .a = RDX});
}

/* RAX = the buffer plus the terms that `wanted` lets through, in bytes. */
static void address(VecFn *f, const LoopNode *n, bool (*wanted)(const VecFn *, const LoopTerm *)) {
  u32 bytes = loop_type_bytes((LoopType)n->mem);
  g_load(f, RAX, RBX, (i32)(8 * f->where[n->a]));
  for (u32 i = 0; i < n->count; i++) {
    const LoopTerm *t = &loop_terms(f->fn, n)[i];
    if (!wanted(f, t)) continue;
    product_to(f, RCX, t->var, (i64)((u64)t->coef * bytes), t->stride);
    g_alu(f, ALU_ADD, RAX, RCX);
  }
}

enum { TOUCHED = 64 }; /* a line, of which touch_trip reads a word */

static bool every_term(const VecFn *f, const LoopTerm *t) { return (void)f, (void)t, true; }
static bool outer_term(const VecFn *f, const LoopTerm *t) {
  return !t->var || (!is_vector_index(f, t->var) && !inside(f, t->var));
}

/* ---- streams ------------------------------------------------------------------------------- */

/* Several axes of one loop are one when an outer index counts whole rows of the inner ones: its factor is their
 * product. */
static bool counts_rows(const VecFn *f, const LoopTerm *t, u32 head, u32 axis) {
  u32 axes = vnode(f, head)->a, params = 0;
  u64 factor = 1;
  for (u32 k = axis + 1; k < axes; k++) {
    const LoopNode *n = vnode(f, loop_trips_of(f->fn, head, k));
    if (n->op == LOOP_CONST) factor *= n->imm;
    else if (n->op == LOOP_PARAM && params < 2 && (t->stride[params] == loop_trips_of(f->fn, head, k))) params++;
    else return false;
  }
  return (u64)t->coef == factor && (params == 2 || !t->stride[params]);
}

static bool has_one_trip(const VecFn *f, u32 head, u32 axis) {
  const LoopNode *n = vnode(f, loop_trips_of(f->fn, head, axis));
  return n->op == LOOP_CONST && n->imm == 1;
}

/* Of a loop over several axes: does the access go along with the number of the element. */
static VAccess kind_over_axes(const VecFn *f, const LoopNode *n, u32 head) {
  u32 axes = vnode(f, head)->a, seen = 0, wanted = 0;
  for (u32 k = 0; k < axes; k++) wanted |= has_one_trip(f, head, k) ? 0 : 1u << k;
  for (u32 i = 0; i < n->count; i++) {
    const LoopTerm *t = &loop_terms(f->fn, n)[i];
    const LoopNode *v = t->var ? vnode(f, t->var) : NULL;
    if (!v || v->op != LOOP_INDEX || v->a != head) continue;
    if (seen >> v->b & 1 || !counts_rows(f, t, head, v->b)) return VA_GATHER;
    seen |= 1u << v->b;
  }
  return !seen ? VA_SAME : (seen & wanted) == wanted ? VA_UNIT : VA_GATHER;
}

/* How an access in the body first … last of a vector loop goes along with its index. */
VAccess access_kind(const VecFn *f, const LoopNode *n, u32 head, u32 first, u32 last) {
  VAccess kind = VA_SAME;
  if (vnode(f, head)->a > 1) kind = kind_over_axes(f, n, head);
  if (kind == VA_GATHER) return kind;
  bool several = vnode(f, head)->a > 1;
  for (u32 i = 0; i < n->count; i++) {
    const LoopTerm *t = &loop_terms(f->fn, n)[i];
    if (!t->var) continue;
    const LoopNode *v = vnode(f, t->var);
    if (v->op == LOOP_INDEX) {
      if (v->a != head || several) continue;
      bool near = !t->stride[0] && !t->stride[1];
      kind = kind != VA_SAME ? VA_GATHER : near && t->coef == 1 ? VA_UNIT
                             : near && t->coef == -1 && n->op == LOOP_LOAD ? VA_BACK : VA_STRIDED;
    } else if (v->op != LOOP_PARAM && v->op != LOOP_CONST) {
      u32 at = f->where[v->op == LOOP_RESULT || v->op == LOOP_CARRY ? v->a : t->var];
      if (at < first || at > last) continue;
      kind = VA_GATHER;
      break;
    }
  }
  return kind;
}

/* The store of the element beside: the other part of a complex number. */
static const LoopNode *store_beside(const VecFn *f, const LoopNode *n, u32 first, u32 last, u32 *at) {
  for (u32 pos = first; pos <= last; pos++) {
    const LoopNode *m = vnode(f, body_node(f, pos));
    if (m->op != LOOP_STORE || m->a != n->a || m->mem != n->mem || m->count != n->count ||
        (m->imm + 1 != n->imm && n->imm + 1 != m->imm))
      continue;
    bool same = true;
    for (u32 i = 0; i < n->count && same; i++)
      same = loop_terms_equal(&loop_terms(f->fn, m)[i], &loop_terms(f->fn, n)[i]);
    *at = pos;
    if (same) return m;
  }
  return NULL;
}

bool moves_every_other(const VecFn *f, const LoopNode *n, u32 head, u32 first, u32 last) {
  u32 bytes = loop_type_bytes((LoopType)n->mem), at;
  if ((bytes != 8 && bytes != 4) || access_kind(f, n, head, first, last) != VA_STRIDED ||
      (n->op == LOOP_STORE && !store_beside(f, n, first, last, &at)))
    return false;
  for (u32 i = 0; i < n->count; i++) {
    const LoopTerm *t = &loop_terms(f->fn, n)[i];
    if (t->var && vnode(f, t->var)->op == LOOP_INDEX && vnode(f, t->var)->a == head &&
        (t->coef != 2 || t->stride[0] || t->stride[1]))
      return false;
  }
  return true;
}

/* A load of bytes, maybe a few apart: by a constant, or by a size that is known once the loop begins. */
bool moves_near(const VecFn *f, const LoopNode *n, u32 head, u32 first, u32 last) {
  if (n->op != LOOP_LOAD || loop_type_bytes((LoopType)n->mem) != 1 ||
      access_kind(f, n, head, first, last) != VA_STRIDED)
    return false;
  for (u32 i = 0; i < n->count; i++) {
    const LoopTerm *t = &loop_terms(f->fn, n)[i];
    if (t->var && vnode(f, t->var)->op == LOOP_INDEX && vnode(f, t->var)->a == head && !t->stride[0] && !t->stride[1])
      return t->coef > 0 && t->coef <= NEAR_MOST;
  }
  return true;
}

static bool same_stream(const VecFn *f, const VStream *s, const LoopNode *n, VAccess kind) {
  if (s->buffer != n->a || s->kind != kind || s->count != n->count) return false;
  for (u32 i = 0; i < n->count; i++)
    if (!loop_terms_equal(&s->terms[i], &loop_terms(f->fn, n)[i])) return false;
  return true;
}

/* One that memory was refused for is as good as any: nobody runs what is emitted then. */
static const VStream *stream_of(VecFn *f, const LoopNode *n) {
  static const VStream refused;
  VAccess kind = access_kind(f, n, f->vector_head, f->inside_first, f->inside_last);
  for (u32 i = 0; i < f->streams.count; i++)
    if (same_stream(f, &f->streams.data[i], n, kind)) return &f->streams.data[i];
  return &refused;
}

/* RCX: bytes from one element to the next. Lane k of each four gets byte k RCX, and zeros. */
static void find_near(VecFn *f, VStream *s) {
  u8 length = length_of(4, f->near);
  u32 numbers[16];
  for (u32 k = 0; k < 16; k++) numbers[k] = k % 4;
  VReg step = new_vec(f);
  put(f, (VIns){.op = V_MOVD_GPR, .length = L128, .dst = step, .x = RCX});
  step = v_rvm(f, V_PMULLD, length, v_rm(f, V_BROADCASTD, length, step), new_pool(f, numbers));
  s->order = v_rvm(f, V_ORPS, length, step, new_const(f, 0x80808000u, 4));
  s->one = frame_room(f, 8, 8);
  s->four = frame_room(f, 8, 8);
  g_save(f, RSP, s->one, RCX);
  g_imul_imm(f, RCX, 4);
  g_save(f, RSP, s->four, RCX);
  g_load(f, RCX, RSP, s->one);
}

static void find_step(VecFn *f, VStream *s, u32 bytes) {
  for (u32 i = 0; i < s->count; i++)
    if (s->terms[i].var && is_vector_index(f, s->terms[i].var)) {
      s->coef = s->terms[i].coef;
      memcpy(s->stride, s->terms[i].stride, sizeof s->stride);
    }
  product_to(f, RCX, 0, s->coef, s->stride);
  if (s->near) find_near(f, s);
  if (f->lanes > 1 && !s->pairs && !s->near) { /* lane numbers times the stride, in elements */
    u64 numbers[8];
    VReg step = new_vec(f);
    for (u32 k = 0; k < 8; k++) numbers[k] = k;
    put(f, (VIns){.op = V_MOVQ_GPR, .length = L128, .dst = step, .x = RCX});
    step = v_rm(f, V_BROADCASTQ, length_of(8, f->lanes), step);
    s->index = v_rvm(f, V_PMULLQ, length_of(8, f->lanes), step, new_pool(f, numbers));
    for (u32 copy = 0; copy < ABREAST_MOST && f->columns; copy++) {
      for (u32 k = 0; k < 8; k++) numbers[k] = copy * f->lanes + k;
      s->beside[copy] = v_rvm(f, V_PMULLQ, length_of(8, f->lanes), step, new_pool(f, numbers));
    }
  }
  g_imul_imm(f, RCX, bytes);
  g_mov(f, RDX, RCX);
  put(f, (VIns){.op = G_IMUL, .dst = RDX, .a = R15});
  g_alu(f, ALU_ADD, RAX, RDX);
  g_imul_imm(f, RCX, s->near ? f->near : f->lanes);
  s->step = frame_room(f, 8, 8);
  g_save(f, RSP, s->step, RCX);
}

/* Bytes from one row to the next, of what goes along with a loop over rows, for each of its axes. */
static void find_rows(VecFn *f, VStream *s, u32 bytes) {
  for (u32 i = 0; i < s->count; i++) {
    const LoopTerm *t = &s->terms[i];
    if (!t->var || !is_row_index(f, t->var)) continue;
    u32 axis = vnode(f, t->var)->b, axes = vnode(f, vnode(f, t->var)->a)->a;
    if (!s->row)
      for (u32 k = 0; k < axes; k++) {
        s->row_step[k] = frame_room(f, 8, 8);
        g_imm(f, RCX, 0);
        g_save(f, RSP, s->row_step[k], RCX);
      }
    product_to(f, RCX, 0, (i64)((u64)t->coef * bytes), t->stride);
    g_alu_load(f, ALU_ADD, RCX, RSP, s->row_step[axis]);
    g_save(f, RSP, s->row_step[axis], RCX);
    s->row = vnode(f, t->var)->a;
  }
  /* of an axis around others: also back over the one inside, which has gone through its trips */
  for (u32 axis = 0; s->row && axis + 1 < vnode(f, s->row)->a; axis++) {
    word_to(f, RCX, loop_trips_of(f->fn, s->row, axis + 1));
    put(f, (VIns){.op = G_IMUL_LOAD, .dst = RCX, .mem = mem_at(RSP, s->row_step[axis + 1])});
    g_load(f, RDX, RSP, s->row_step[axis]);
    g_alu(f, ALU_SUB, RDX, RCX);
    g_save(f, RSP, s->row_step[axis], RDX);
  }
}

static VReg lane_numbers(VecFn *f, u32 bytes, bool back) {
  u32 numbers[16] = {0};
  for (u32 k = 0; k < f->lanes; k++) numbers[k * bytes / 4] = back ? f->lanes - 1 - k : k;
  return new_pool(f, numbers);
}

static void add_stream(VecFn *f, const LoopNode *n, u32 registers) {
  if (stream_of(f, n)->buffer) return;
  VStream s = {.buffer = n->a, .terms = loop_terms(f->fn, n), .count = n->count};
  s.bytes = loop_type_bytes((LoopType)n->mem);
  s.kind = (u8)access_kind(f, n, f->vector_head, f->inside_first, f->inside_last);
  address(f, n, outer_term);
  s.pairs = f->pairs && moves_every_other(f, n, f->vector_head, f->inside_first, f->inside_last);
  s.near = f->near && moves_near(f, n, f->vector_head, f->inside_first, f->inside_last);
  if (s.kind == VA_STRIDED) find_step(f, &s, loop_type_bytes((LoopType)n->mem));
  if (s.kind == VA_BACK && f->lanes > 1)
    s.index = lane_numbers(f, element_bytes(loop_value_type((LoopType)n->mem)), true);
  if (f->columns) find_rows(f, &s, loop_type_bytes((LoopType)n->mem));
  if (f->streams.count < registers) {
    s.reg = stream_regs[f->streams.count];
    g_mov(f, s.reg, RAX);
  } else {
    s.reg = RSP;
    s.slot = frame_room(f, 8, 8);
    g_save(f, RSP, s.slot, RAX);
  }
  if (!vec_push(f->alloc, &f->streams, s)) refuse(f, "out of memory");
}

void step_streams(VecFn *f) {
  for (u32 i = 0; i < f->streams.count; i++) {
    const VStream *s = &f->streams.data[i];
    if (s->kind != VA_STRIDED) continue;
    u32 reg = s->reg == RSP ? (u32)RAX : s->reg;
    if (s->reg == RSP) g_load(f, RAX, RSP, s->slot);
    if (s->pairs) g_alu_imm(f, ALU_ADD, reg, 2 * s->bytes * f->lanes);
    else g_alu_load(f, ALU_ADD, reg, RSP, s->near && f->lanes == 1 ? s->one : s->step);
    if (s->reg == RSP) g_save(f, RSP, s->slot, RAX);
  }
}

void leave_far(VecFn *f, u32 label) {
  for (u32 i = 0; i < f->streams.count; i++) {
    const VStream *s = &f->streams.data[i];
    if (!s->near || (!s->stride[0] && !s->stride[1])) continue;
    g_load(f, RAX, RSP, s->one);
    g_alu_imm(f, ALU_SUB, RAX, 1);
    g_alu_imm(f, ALU_AND, RAX, -(i64)NEAR_MOST);
    g_jcc(f, CC_NE, label);
  }
}

void step_rows(VecFn *f, u32 head, u32 axis) {
  for (u32 i = 0; i < f->streams.count; i++) {
    const VStream *s = &f->streams.data[i];
    if (s->row != head) continue;
    u32 reg = s->reg == RSP ? (u32)RAX : s->reg;
    if (s->reg == RSP) g_load(f, RAX, RSP, s->slot);
    g_alu_load(f, ALU_ADD, reg, RSP, s->row_step[axis]);
    if (s->reg == RSP) g_save(f, RSP, s->slot, RAX);
  }
}

/* ---- values from outside a vector loop ------------------------------------------------------ */

static VReg flags_from_word(VecFn *f, VReg v) { return flags_of_numbers(f, v); }

static VReg spread_word(VecFn *f, LoopType t, VecMem m) {
  VReg r = v_load(f, by_width(t, V_BROADCASTD), vlength(f, t), m);
  return t == LT_I1 ? flags_from_word(f, r) : r;
}

static VReg spread_flag(VecFn *f, VReg v) {
  VReg d = new_mask(f);
  put(f, (VIns){.op = M_FIRST + K_KTO, .a = v, .x = RAX});
  g_alu_imm(f, ALU_AND, RAX, 1);
  g_imul_imm(f, RAX, 0xFFFF);
  put(f, (VIns){.op = M_FIRST + K_KFROM, .dst = d, .x = RAX});
  return d;
}

static VReg spread(VecFn *f, u32 id) {
  const LoopNode *n = vnode(f, id);
  LoopType t = (LoopType)n->type;
  if (n->op == LOOP_PARAM) return spread_word(f, t, mem_at(RBX, (i32)(8 * f->where[id])));
  if (n->op == LOOP_INDEX) return spread_word(f, t, mem_at(RSP, (i32)f->index_slot[id]));
  if (!f->value[id]) return refuse(f, "a value of another loop"), 0;
  if (t == LT_I1 && f->evex) return spread_flag(f, f->value[id]);
  return v_rm(f, by_width(t, V_BROADCASTD), vlength(f, t), f->value[id]);
}

static void want(void *ctx, u32 id) {
  VecFn *f = ctx;
  const LoopNode *n = vnode(f, id);
  if (n->op == LOOP_CONST || n->op == LOOP_TABLE || n->type == LT_PTR || is_vector_index(f, id) ||
      is_row_index(f, id) || inside(f, id) || f->spread[id])
    return;
  f->spread[id] = spread(f, id);
}

static VReg load(VecFn *f, const LoopNode *n);

static bool is_stored(const VecFn *f, u32 buffer) {
  for (u32 pos = f->inside_first; pos <= f->inside_last; pos++) {
    const LoopNode *n = vnode(f, f->fn->body.data[pos]);
    if (n->op == LOOP_STORE && n->a == buffer) return true;
  }
  return false;
}

void begin_streams(VecFn *f, u32 registers, bool more) {
  u32 narrow = f->narrow;
  f->narrow = 0;
  if (!more) f->streams.count = 0;
  if (!more) memset(f->spread, 0, sizeof *f->spread * f->fn->nodes.count);
  for (u32 pos = f->inside_first; pos <= f->inside_last && !f->failed; pos++) {
    u32 id = f->fn->body.data[pos];
    const LoopNode *n = vnode(f, id);
    if (n->op == LOOP_STORE) want(f, n->b);
    for (u32 i = 0; f->columns && loop_is_head(n) && i < n->b; i++) want(f, loop_init_of(f->fn, id, i));
    if (n->op == LOOP_IF) want(f, loop_cond_of(f->fn, id));
    if (n->op == LOOP_LOAD || n->op == LOOP_STORE) {
      if (vnode(f, n->a)->op == LOOP_TABLE) refuse(f, "tables");
      else add_stream(f, n, registers);
    } else if (!loop_is_head(n)) {
      loop_each_operand(f->fn, n, want, f);
    }
  }
  /* what does not change with the loop; a check may guard what is behind it */
  for (u32 pos = f->inside_first; pos <= f->inside_last && !f->failed; pos++) {
    u32 id = f->fn->body.data[pos];
    const LoopNode *n = vnode(f, id);
    if (n->op == LOOP_CHECK || n->op == LOOP_WHILE) break;
    if (n->op == LOOP_LOAD && stream_of(f, n)->kind == VA_SAME && !stream_of(f, n)->row && !is_stored(f, n->a))
      f->spread[id] = load(f, n);
  }
  f->narrow = narrow;
  for (u32 pos = f->inside_first; narrow && pos <= f->inside_last && !f->failed; pos++) {
    u32 id = f->fn->body.data[pos];
    const LoopNode *n = vnode(f, id);
    for (u32 k = 0; k < 4; k++) {
      u32 of = k == 0 ? n->a : k == 1 ? n->b : k == 2 ? n->c : id;
      if (f->spread[of] && !f->spread_4[of]) narrow_spread(f, of);
    }
  }
}

static VReg own_index(VecFn *f) {
  u64 numbers[8];
  u8 length = length_of(8, f->lanes);
  for (u32 k = 0; k < 8; k++) numbers[k] = k + f->copy * f->lanes;
  VReg at = new_vec(f);
  put(f, (VIns){.op = V_MOVQ_GPR, .length = L128, .dst = at, .x = R15});
  at = v_rm(f, V_BROADCASTQ, length, at);
  return v_rvm(f, V_PADDQ, length, at, new_pool(f, numbers));
}

VReg operand(VecFn *f, u32 id) {
  if (!id) return 0;
  const LoopNode *n = vnode(f, id);
  if (f->narrow && f->narrow < 4) return narrow_operand(f, id);
  if (n->op == LOOP_CONST) return lower_constant(f, lane_type(f, (LoopType)n->type), n->imm);
  if (is_vector_index(f, id) && vnode(f, f->vector_head)->a > 1)
    return refuse(f, "an index of several axes as a value"), 0;
  if (is_vector_index(f, id)) return f->value[id] ? f->value[id] : (f->value[id] = own_index(f));
  if (f->vector_head) {
    if (f->spread[id]) return f->narrow ? f->spread_4[id] : f->spread[id];
    if (is_row_index(f, id)) return f->value[id] ? f->value[id] : (f->value[id] = spread(f, id));
    if (!inside(f, id)) refuse(f, "a value that was not broadcast");
    return f->value[id];
  }
  if (n->op == LOOP_PARAM || n->op == LOOP_INDEX) return spread(f, id);
  return f->value[id];
}

/* ---- loads --------------------------------------------------------------------------------- */

static VReg word_vector(VecFn *f, u32 reg) {
  VReg d = new_vec(f);
  put(f, (VIns){.op = V_MOVD_GPR, .length = L128, .dst = d, .x = reg});
  return d;
}

static VReg widen_half(VecFn *f, LoopType mem, VReg v) {
  u8 length = length_of(4, f->lanes);
  return mem == LT_F16 ? v_rm(f, V_CVTPH2PS, length, v) : v_rvm(f, V_PSLLVD, length, v, new_const(f, 16, 4));
}

/* One lane at the address, or that lane in all. */
static VReg load_one(VecFn *f, LoopType mem, VecMem m, bool all) {
  u32 bytes = loop_type_bytes(mem);
  LoopType t = loop_value_type(mem);
  VReg v;
  if (bytes >= 4) {
    v = v_load(f, all ? by_width(t, V_BROADCASTD) : bytes == 8 ? V_MOVSD_FROM : V_MOVSS_FROM,
               all ? vlength(f, t) : (u8)L128, m);
    return v;
  }
  put(f, (VIns){.op = bytes == 1 ? G_BYTE : G_HALF, .dst = RCX, .mem = m});
  v = word_vector(f, RCX);
  if (all) v = v_rm(f, V_BROADCASTD, length_of(4, f->lanes), v);
  if (bytes == 2)
    return mem == LT_F16 && all ? v_rm(f, V_CVTPH2PS, length_of(4, f->lanes),
                                       v_rvm(f, V_ORPS, length_of(4, f->lanes), v,
                                             v_rvm(f, V_PSLLVD, length_of(4, f->lanes), v, new_const(f, 16, 4))))
                                : widen_half(f, mem, v);
  return mem == LT_I1 ? flags_of_numbers(f, v) : v;
}

/* The lanes in the other order. Of a tail only those of K7, which hold what was loaded from behind its last element
 * on. */
static VReg turned(VecFn *f, LoopType t, VReg from, VReg v) {
  u32 bytes = element_bytes(t);
  u8 length = length_of(bytes, f->lanes * bytes < 32 ? 32 / bytes : f->lanes);
  if (bytes == 8 && !f->evex) return v_rmi(f, V_PERMQ_I, length, v, 0x1B);
  if (f->tail) {
    VReg last = new_vec(f);
    put(f, (VIns){.op = V_MOVQ_GPR, .length = L128, .dst = last, .x = RDX});
    from = v_rvm(f, by_width(t, V_PSUBD), length, v_rm(f, by_width(t, V_BROADCASTD), length, last),
                 lane_numbers(f, bytes, false));
  }
  return v_rvm(f, by_width(t, V_PERMD), length, from, v);
}

static VReg load_lanes(VecFn *f, LoopType mem, VecMem m, VReg back) {
  u32 bytes = loop_type_bytes(mem);
  u8 length = vlength(f, loop_value_type(mem));
  if (f->packed) return v_load(f, V_MOVUPS, length, m);
  if (f->narrow && f->narrow < 4) return narrow_load(f, mem, m);
  VecOp op = bytes == 8 ? V_MOVUPD : bytes == 4 ? V_MOVUPS : bytes == 1 ? V_PMOVZXBD : mem == LT_F16 ? V_CVTPH2PS
                        : V_PMOVZXWD;
  VReg v = new_vec(f);
  put(f, (VIns){.op = (u16)op, .length = length, .dst = v, .mem = m, .mask = f->going,
                .flags = f->going ? VI_ZERO : f->tail ? VI_TAIL | VI_ZERO : 0});
  if (back) v = turned(f, loop_value_type(mem), back, v);
  if (mem == LT_BF16) return widen_half(f, mem, v);
  return mem == LT_I1 ? flags_of_numbers(f, v) : v;
}

static u32 base_of(VecFn *f, const VStream *s) {
  if (s->reg != RSP) return s->reg;
  g_load(f, RAX, RSP, s->slot);
  return RAX;
}

static u8 scale_of(u32 bytes) { return bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2 ? 1 : 0; }

/* Where a vector of VA_BACK begins: its index, and bytes beside; of a tail RDX is the number of its last lane. */
static i64 place_back(VecFn *f, VecMem *m, u32 bytes) {
  m->index = RCX;
  m->scale = scale_of(bytes);
  if (!f->tail || f->lanes == 1) {
    put(f, (VIns){.op = G_IMUL_IMM, .dst = RCX, .a = R15, .x = ~(u64)0});
    return -(i64)((f->copy * f->lanes + f->lanes - 1) * bytes);
  }
  g_mov(f, RDX, R14);
  g_alu(f, ALU_SUB, RDX, R15);
  g_imm(f, RCX, f->lanes);
  g_alu(f, ALU_CMP, RDX, RCX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_G, .dst = RDX, .a = RCX});
  g_alu_imm(f, ALU_SUB, RDX, 1);
  put(f, (VIns){.op = G_LEA, .dst = RCX, .mem = {.used = true, .base = R15, .index = RDX}});
  g_imul_imm(f, RCX, -1);
  return -(i64)(f->copy * f->lanes * bytes);
}

static bool access_fits(const VecFn *f, i64 v) {
  return v == (i32)v || (refuse((VecFn *)(uintptr_t)f, "a constant index that is too large"), false);
}

static VReg gather_index(VecFn *f, const LoopNode *n) {
  if (vnode(f, f->vector_head)->a > 1) return refuse(f, "places of their own in a loop of several axes"), 0;
  u8 length = length_of(8, f->lanes);
  VReg sum = 0;
  for (u32 i = 0; i < n->count; i++) {
    const LoopTerm *t = &loop_terms(f->fn, n)[i];
    if (!t->var || (!is_vector_index(f, t->var) && !inside(f, t->var))) continue;
    VReg v = operand(f, t->var);
    for (u32 k = 0; k < 2; k++)
      if (t->stride[k])
        v = lower_op(f, LOOP_MUL, LT_I64, v, spread_word(f, LT_I64, mem_at(RBX, (i32)(8 * f->where[t->stride[k]]))), 0);
    if (t->coef != 1) v = lower_op(f, LOOP_MUL, LT_I64, v, new_const(f, (u64)t->coef, 8), 0);
    sum = sum ? v_rvm(f, V_PADDQ, length, sum, v) : v;
  }
  return sum;
}

/* The memory of an access; *index: numbers of elements by lane, 0: one address. */
static VecMem place_of(VecFn *f, const LoopNode *n, VReg *index) {
  u32 bytes = loop_type_bytes((LoopType)n->mem);
  i64 constant = (i64)(n->imm * bytes);
  *index = 0;
  if (!f->vector_head) {
    address(f, n, every_term);
    (void)access_fits(f, constant);
    return mem_at(RAX, (i32)constant);
  }
  const VStream *s = stream_of(f, n);
  VecMem m = {.used = true, .index = NO_INDEX};
  if (s->kind == VA_UNIT) {
    constant += (i64)f->copy * f->lanes * bytes;
    m.index = R15;
    m.scale = scale_of(bytes);
  }
  if (s->kind == VA_BACK) constant += place_back(f, &m, bytes);
  if (s->kind == VA_GATHER) *index = gather_index(f, n);
  if (s->kind == VA_STRIDED && f->lanes > 1 && !s->near) /* of pairs none */
    *index = f->columns ? s->beside[f->copy] : s->index;
  m.base = (u8)base_of(f, s);
  (void)access_fits(f, constant);
  m.disp = (i32)constant;
  if (*index && f->lanes == 1) { /* by one address after all */
    put(f, (VIns){.op = V_MOVQ_TO_GPR, .a = *index, .x = RCX});
    put(f,
        (VIns){.op = G_LEA, .dst = RAX, .mem = {.used = true, .base = m.base, .index = RCX, .scale = scale_of(bytes)}});
    m.base = RAX;
    *index = 0;
  }
  return m;
}

/* Once for each vector, though several reductions side by side read it, each by an index of its own. */
static bool is_new_read(VecFn *f, const LoopNode *n) {
  for (u32 i = 0; i < f->fetched_count; i++) {
    const LoopNode *m = vnode(f, f->fetched[i] >> 4);
    bool same = (f->fetched[i] & 15) == f->copy && m->a == n->a && m->imm == n->imm && m->count == n->count;
    for (u32 k = 0; same && k < n->count; k++) {
      LoopTerm t = loop_terms(f->fn, m)[k];
      t.var = loop_terms(f->fn, n)[k].var;
      same = loop_terms_equal(&t, &loop_terms(f->fn, n)[k]);
    }
    if (same) return false;
  }
  if (f->fetched_count < COUNT_OF(f->fetched)) f->fetched[f->fetched_count++] = (u32)(n - vnode(f, 0)) << 4 | f->copy;
  return true;
}

/* Does another read of the loop come to the same lines not long before? */
static bool follows(VecFn *f, const LoopNode *n) {
  enum { NEAR = 1 << 15 /* elements: they are still in the cache beside the nearest */ };
  const VStream *s = stream_of(f, n);
  for (u32 pos = f->inside_first; pos <= f->inside_last; pos++) {
    const LoopNode *m = vnode(f, body_node(f, pos));
    i64 before = (i64)(s->kind == VA_BACK ? n->imm - m->imm : m->imm - n->imm);
    if (m->op == LOOP_LOAD && before > 0 && before < NEAR && stream_of(f, m) == s) return true;
  }
  return false;
}

static bool is_read_in(const VecFn *f, const LoopNode *n, u32 from, u32 to) {
  for (u32 pos = from; pos < to; pos++) {
    const LoopNode *m = vnode(f, body_node(f, pos));
    if (m->op == LOOP_LOAD && m->a == n->a) return true;
  }
  return false;
}

/* Of short rows the last loop that reads them fetches the next ones, since what reads first waits for memory anyway; of
 * interleaved reductions the first. */
static bool is_fetched_elsewhere(const VecFn *f, const LoopNode *n) {
  if (f->turns_from && is_read_in(f, n, f->turns_from, f->inside_first)) return true;
  return f->level->short_rows && cpu_has(CPU_PAGES) && is_read_in(f, n, f->inside_last + 1, f->fn->body.count);
}

static bool fetches_ahead(VecFn *f, const LoopNode *n) {
  f->reads = true;
  if (!(f->past ? cpu_has(CPU_BESIDE) : f->level->ahead && cpu_has(CPU_FETCH)) || is_fetched_elsewhere(f, n) ||
      follows(f, n) || !is_new_read(f, n))
    return false;
  return f->fetches = true;
}

/* Reads one word of each line of what the loop at hand needs in its next trip, of so many elements, by a short loop
 * for each array. Processors that fetch by themselves look at how far an instruction's addresses move on: of many
 * vectors a trip, each instruction makes a large step. */
void touch_trip(VecFn *f, u32 step) {
  if (!f->level->ahead || f->turns_from || cpu_has(CPU_FETCH)) return;
  f->copy = 0;
  for (u32 pos = f->inside_first; pos <= f->inside_last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    u32 bytes = step * loop_type_bytes((LoopType)n->mem), more = g_label(f);
    VReg index;
    if (n->op != LOOP_LOAD || stream_of(f, n)->kind != VA_UNIT || bytes % TOUCHED || !is_new_read(f, n)) continue;
    put(f, (VIns){.op = G_LEA, .dst = RAX, .mem = place_of(f, n, &index)});
    put(f, (VIns){.op = G_LEA, .dst = RCX, .mem = mem_at(RAX, (i32)bytes)});
    g_put(f, more);
    g_load(f, RDX, RAX, 0);
    g_alu_imm(f, ALU_ADD, RAX, TOUCHED);
    g_alu(f, ALU_CMP, RAX, RCX);
    g_jcc(f, CC_L, more);
    f->fetches = true;
  }
}

/* Words of 8 bytes in the order that the halves of two vectors have in each 16 bytes (apart), or back. */
static VReg words_apart(VecFn *f, u8 length, VReg v, bool apart) {
  u64 order[8];
  if (length == L128) return v;
  if (length == L256) return v_rmi(f, V_PERMQ_I, length, v, 0xD8);
  for (u32 k = 0; k < 8; k++) order[k] = apart ? k / 2 + (k & 1) * 4 : k < 4 ? 2 * k : 2 * k - 7;
  return v_rvm(f, by_width(LT_F64, V_PERMD), length, new_pool(f, order), v);
}

/* Of the second vector, which begins one place early and so ends with the last that is read, the odd places. */
static VReg load_every_other(VecFn *f, u32 bytes, VecMem m) {
  u8 length = length_of(bytes, f->lanes);
  VecOp op = bytes == 8 ? V_MOVUPD : V_MOVUPS;
  VReg low = v_load(f, op, length, m);
  m.disp += (i32)(bytes * f->lanes - bytes);
  VReg mixed = v_rvmi(f, V_SHUFPS, length, low, v_load(f, op, length, m), bytes == 8 ? 0xE4 : 0xD8);
  return words_apart(f, length, mixed, false);
}

/* The elements of two vectors, interleaved. */
static void store_in_turns(VecFn *f, u32 bytes, VecMem m, VReg even, VReg odd) {
  u8 length = length_of(bytes, f->lanes);
  VecOp op = bytes == 8 ? V_MOVUPD_TO : V_MOVUPS_TO;
  even = words_apart(f, length, even, true);
  odd = words_apart(f, length, odd, true);
  for (u32 half = 0; half < 2; half++) {
    VReg v = v_rvmi(f, V_SHUFPS, length, even, odd, half ? 0xEE : 0x44);
    if (bytes == 4) v = v_rvmi(f, V_SHUFPS, length, v, v, 0xD8);
    put(f, (VIns){.op = (u16)op, .length = length, .a = v, .mem = m});
    m.disp += (i32)(bytes * f->lanes);
  }
}

static __attribute__((noinline)) void fetch_at(VecFn *f, VecMem m, i32 ahead) {
  m.disp += ahead;
  put(f, (VIns){.op = G_FETCH, .mem = m});
}

/* What page_ahead says, of where the vector at hand is read; going back, the same upside down. Of two lines in
 * different turns the second is farther on: all the same each line is fetched once. */
static void fetch_page(VecFn *f, const LoopNode *n, VecMem *m, u32 lines) {
  bool back = stream_of(f, n)->kind == VA_BACK;
  VReg index;
  put(f, (VIns){.op = G_LEA, .dst = RAX, .mem = *m});
  if (back) g_alu_imm(f, ALU_XOR, RAX, -1);
  g_mov(f, RCX, RAX);
  g_mov(f, RDX, RAX);
  g_alu_imm(f, ALU_AND, RCX, PAGE_BYTES - 1);
  g_alu_imm(f, ALU_AND, RDX, PAGE_TURN - PAGE_LINE);
  g_alu(f, ALU_SUB, RAX, RCX);
  g_imul_imm(f, RDX, PAGE_NEXT / PAGE_LINE);
  put(f, (VIns){.op = G_SHR, .dst = RCX, .x = PAGES_SHIFT});
  g_alu(f, ALU_ADD, RAX, RDX);
  g_alu(f, ALU_ADD, RAX, RCX);
  if (back) g_alu_imm(f, ALU_XOR, RAX, -1);
  for (i32 k = 0; k < (i32)lines; k++) fetch_at(f, mem_at(RAX, 0), (PAGE_FIRST + k * PAGE_NEXT) * (back ? -1 : 1));
  if (m->base <= RDX || m->index <= RDX) *m = place_of(f, n, &index);
}

/* What a long run needs later of an array that it reads in order, or every other element of: maybe of two vectors at
 * once. */
static void fetch_on(VecFn *f, const LoopNode *n, VecMem *m) {
  if (!f->past && !f->whole) return;
  const VStream *s = stream_of(f, n);
  bool pages = cpu_has(CPU_PAGES);
  u32 bytes = f->lanes * loop_type_bytes((LoopType)n->mem) << s->pairs, trip = f->trip_copies * bytes;
  /* several at once of loops with much else to do; others gain nothing by it */
  u32 lines = pages && (bytes > PAGE_LINE || trip == 2 * PAGE_LINE) ? 2 : 1;
  if (!(s->kind == VA_UNIT || (pages && (s->pairs || s->kind == VA_BACK))) || f->copy * bytes % (lines * PAGE_LINE) ||
      !fetches_ahead(f, n))
    return;
  if (pages) fetch_page(f, n, m, lines);
  else fetch_at(f, *m, FETCH_AHEAD);
}

/* Four elements of each 16 bytes, widened to lanes of 4 bytes. */
static VReg load_near(VecFn *f, LoopType mem, const VStream *s, VecMem m) {
  bool known = !s->stride[0] && !s->stride[1];
  u8 length = length_of(4, f->lanes);
  VReg v = v_load(f, V_MOVUPS, L128, m);
  for (u32 part = 1; part < f->lanes / 4; part++) {
    VReg more = new_vec(f);
    if (known) {
      m.disp += (i32)(4 * s->coef);
    } else if (part == 1) {
      g_load(f, RCX, RSP, s->four);
      put(f, (VIns){.op = G_LEA, .dst = RAX, .mem = {.used = true, .base = m.base, .index = RCX}});
      m.base = RAX;
    } else {
      g_alu(f, ALU_ADD, RAX, RCX);
    }
    put(f, (VIns){.op = f->evex ? V_INSERT4X32 : V_INSERT128, .length = part == 1 ? L256 : length, .dst = more, .a = v,
                  .mem = m, .imm = (u8)part});
    v = more;
  }
  v = v_rvm(f, V_PSHUFB, length, v, s->order);
  return mem == LT_I1 ? flags_of_numbers(f, v) : v;
}

static VReg load(VecFn *f, const LoopNode *n) {
  LoopType mem = (LoopType)n->mem;
  VReg index;
  bool same = f->vector_head && stream_of(f, n)->kind == VA_SAME;
  VecMem m = place_of(f, n, &index);
  if (f->failed) return 0;
  /* what the next trips of the loop around it need */
  if (f->block_slot && f->vector_head && f->lanes == 1 && stream_of(f, n)->kind == VA_STRIDED) {
    fetch_at(f, m, 64);
  }
  fetch_on(f, n, &m);
  /* of the row's next columns */
  if (f->ahead && !f->tail && stream_of(f, n)->kind == VA_UNIT && stream_of(f, n)->row &&
      f->copy * f->lanes * loop_type_bytes(mem) % 64 == 0) {
    fetch_at(f, m, f->ahead);
  }
  if (same || f->lanes == 1) return load_one(f, mem, m, f->lanes > 1);
  if (stream_of(f, n)->near) return load_near(f, mem, stream_of(f, n), m);
  if (stream_of(f, n)->pairs) return load_every_other(f, loop_type_bytes(mem), m);
  if (!index) return load_lanes(f, mem, m, stream_of(f, n)->kind == VA_BACK ? stream_of(f, n)->index : 0);
  u32 bytes = loop_type_bytes(mem);
  if (bytes < 4) return refuse(f, "elements of fewer than 4 bytes with strides"), 0;
  VReg d = new_vec(f);
  m.vector_index = true;
  m.scale = scale_of(bytes);
  put(f, (VIns){.op = bytes == 8 ? V_GATHERQPD : V_GATHERQPS, .length = length_of(8, f->lanes), .dst = d,
                .b = index, .mem = m, .mask = f->going,
    .flags = (u8)(VI_SCRATCH_MASK | VI_EARLY | (f->tail && !f->going ? VI_TAIL : 0))});
  return d;
}

/* ---- stores -------------------------------------------------------------------------------- */

static VReg half_of(VecFn *f, LoopType mem, VReg v) {
  u8 length = length_of(4, f->lanes);
  if (mem == LT_BF16)
    return v_rvm(f, V_PSRLVD, length, lower_op(f, LOOP_ROUND_BF16, LT_F32, v, 0, 0), new_const(f, 16, 4));
  VReg d = new_vec(f);
  put(f, (VIns){.op = V_CVTPS2PH, .length = length, .dst = d, .a = v});
  return d;
}

static void store_one(VecFn *f, LoopType mem, VecMem m, VReg v) {
  u32 bytes = loop_type_bytes(mem);
  if (bytes >= 4) {
    v_save(f, bytes == 8 ? V_MOVSD_TO : V_MOVSS_TO, L128, m, v);
    return;
  }
  if (mem == LT_I1) v = numbers_of_flags(f, v);
  if (bytes == 2) v = half_of(f, mem, v);
  put(f, (VIns){.op = V_MOVD_TO_GPR, .a = v, .x = RCX});
  put(f, (VIns){.op = bytes == 1 ? G_BYTE_TO : G_HALF_TO, .a = RCX, .mem = m});
}

/* AVX2: the low bytes of 4 or 8 lanes. */
static void store_bytes(VecFn *f, VecMem m, VReg v) {
  VReg high = v;
  if (f->lanes == 8) {
    high = new_vec(f);
    put(f, (VIns){.op = V_EXTRACT128, .length = L256, .dst = high, .a = v, .imm = 1});
  }
  v = v_rvm(f, V_PACKUSDW, L128, v, high);
  v = v_rvm(f, V_PACKUSWB, L128, v, v);
  v_save(f, f->lanes == 8 ? V_MOVSD_TO : V_MOVSS_TO, L128, m, v);
}

/* AVX2: the low words of 4 or 8 lanes. */
static void store_words(VecFn *f, VecMem m, VReg v) {
  VReg high = v;
  if (f->lanes == 8) {
    high = new_vec(f);
    put(f, (VIns){.op = V_EXTRACT128, .length = L256, .dst = high, .a = v, .imm = 1});
  }
  v_save(f, f->lanes == 8 ? V_MOVUPS_TO : V_MOVSD_TO, L128, m, v_rvm(f, V_PACKUSDW, L128, v, high));
}

static void store_lanes(VecFn *f, LoopType mem, VecMem m, VReg v) {
  u32 bytes = loop_type_bytes(mem);
  u8 length = vlength(f, loop_value_type(mem)), flags = f->tail ? VI_TAIL : 0;
  if (f->packed) {
    v_save(f, V_MOVUPS_TO, length, m, v);
    return;
  }
  if (f->narrow && f->narrow < 4) {
    narrow_store(f, mem, m, v);
    return;
  }
  if (mem == LT_I1) v = numbers_of_flags(f, v);
  if (bytes == 1 && !f->evex) {
    store_bytes(f, m, v);
    return;
  }
  if (mem == LT_BF16) v = half_of(f, mem, v);
  if (mem == LT_BF16 && !f->evex) {
    store_words(f, m, v);
    return;
  }
  VecOp op = bytes == 8 ? V_MOVUPD_TO : bytes == 4 ? V_MOVUPS_TO : bytes == 1 ? V_PMOVDB
                        : mem == LT_F16 ? V_CVTPS2PH : V_PMOVDW;
  if (f->past) op = bytes == 8 ? V_MOVNTPD_TO : V_MOVNTPS_TO;
  put(f, (VIns){.op = (u16)op, .length = length, .a = v, .mem = m, .flags = flags});
}

void store_address(VecFn *f, const LoopNode *n) {
  VReg index;
  VecMem m = place_of(f, n, &index);
  put(f, (VIns){.op = G_LEA, .dst = RAX, .mem = m});
}

static void store(VecFn *f, const LoopNode *n) {
  LoopType mem = (LoopType)n->mem;
  VReg v = operand(f, n->b), index;
  if (f->vector_head) {
    u8 kind = stream_of(f, n)->kind;
    if (kind == VA_SAME || kind == VA_GATHER) {
      refuse(f, "a store whose place is computed");
      return;
    }
  }
  if (loop_type_bytes(mem) == 1 && f->lanes == 1 && mem == LT_I1) v = operand(f, n->b);
  const LoopNode *beside = NULL;
  if (f->lanes > 1 && f->vector_head && stream_of(f, n)->pairs) {
    u32 at;
    beside = store_beside(f, n, f->inside_first, f->inside_last, &at);
    if (at > f->where[(u32)(n - vnode(f, 0))]) return; /* stored with that */
  }
  VecMem m = place_of(f, beside && beside->imm < n->imm ? beside : n, &index);
  if (f->failed) return;
  if (f->lanes == 1) {
    store_one(f, mem, m, v);
    return;
  }
  if (beside) {
    VReg other = operand(f, beside->b);
    bool second = beside->imm < n->imm;
    store_in_turns(f, loop_type_bytes(mem), m, second ? other : v, second ? v : other);
    return;
  }
  if (!index) {
    store_lanes(f, mem, m, v);
    return;
  }
  u32 bytes = loop_type_bytes(mem);
  if (bytes < 4) {
    refuse(f, "elements of fewer than 4 bytes with strides");
    return;
  }
  m.vector_index = true;
  m.scale = scale_of(bytes);
  put(f, (VIns){.op = bytes == 8 ? V_SCATTERQPD : V_SCATTERQPS, .length = length_of(8, f->lanes), .a = v,
                .b = index, .mem = m,
    .flags = (u8)(VI_SCRATCH_MASK | (f->tail ? VI_TAIL : 0))});
}

/* ---- statements ---------------------------------------------------------------------------- */

void statement(VecFn *f, u32 id) {
  const LoopNode *n = vnode(f, id);
  LoopType type = lane_type(f, (LoopType)n->type), of = n->a ? lane_type(f, loop_type_of(f->fn, n->a)) : LT_VOID;
  LoopForm form = loop_op_form((LoopOp)n->op);
  if (f->vector_head && f->spread[id]) return; /* done before the loop */
  if (f->narrow && f->narrow < 4 && form != LOOP_FORM_ACCESS && form != LOOP_FORM_CHECK) {
    f->value[id] = narrow_value(f, id);
    return;
  }
  switch (form) {
    case LOOP_FORM_BINARY:
      if (n->op == LOOP_DIV && f->divisors) {
        f->value[id] = lower_quotient(f, n);
        return;
      }
      if (f->narrow == 4 && (f->value[id] = narrow_quotient(f, n))) return;
      if (vnode(f, n->b)->op == LOOP_CONST &&
          (f->value[id] = lower_divided_by(f, (LoopOp)n->op, type, operand(f, n->a), vnode(f, n->b)->imm)))
        return; /* fallthrough */
    case LOOP_FORM_UNARY:
    case LOOP_FORM_TERNARY:
      f->value[id] = lower_op(f, (LoopOp)n->op, type, operand(f, n->a), operand(f, n->b), operand(f, n->c));
      return;
    case LOOP_FORM_COMPARE:
      f->value[id] = lower_compare(f, (LoopOp)n->op, of, operand(f, n->a), operand(f, n->b));
      return;
    case LOOP_FORM_SELECT:
      f->value[id] = lower_select(f, type, operand(f, n->a), operand(f, n->b), operand(f, n->c));
      return;
    case LOOP_FORM_CONVERT:
      f->value[id] =
        n->op == LOOP_BITCAST ? operand(f, n->a) : lower_convert(f, type, of, operand(f, n->a));
      return;
    case LOOP_FORM_MATH: {
      VReg args[3] = {operand(f, n->a), operand(f, n->b), operand(f, n->c)};
      f->value[id] = lower_math(f, f->fn, n, args);
      return;
    }
    case LOOP_FORM_ACCESS:
      if (n->op == LOOP_STORE) store(f, n);
      else f->value[id] = load(f, n);
      return;
    case LOOP_FORM_CHECK: check(f, n); return;
    default: refuse(f, "control flow"); return;
  }
}

void call_words(VecFn *f, u64 fn, u32 state, u64 second, u64 third) {
  put(f, (VIns){.op = G_LEA, .dst = RCX, .mem = mem_at(RSP, (i32)state)});
  g_save(f, RSP, (i32)f->call_frame, RCX);
  g_imm(f, RCX, second);
  g_save(f, RSP, (i32)f->call_frame + 8, RCX);
  g_imm(f, RCX, third);
  g_save(f, RSP, (i32)f->call_frame + 16, RCX);
  put(f, (VIns){.op = G_CALL, .x = fn});
}

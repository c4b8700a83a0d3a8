/* mir_streams.c — addresses: pointers that step along with loops for what is affine, arithmetic for the rest.
 *
 * MIR at level 1 neither moves nor strengthens address arithmetic, and takes apart scaled operands. So the part of an index
 * whose variables are loop indices becomes a pointer of the innermost of those loops, stepped once per trip; accesses that differ
 * by a constant share it. Its start is the pointer for the index without that loop's terms, a stream of a loop further out. */
#include <string.h>

#include "jit/mir_emitter.h"

static bool is_affine(const Emitter *e, const LoopTerm *t) {
  u8 op = en(e, t->var)->op;
  return op == LOOP_INDEX || op == LOOP_PARAM;
}

/* Greater for indices of loops further in; 0 for parameters. */
static u64 depth_of(const Emitter *e, u32 var) {
  const LoopNode *n = en(e, var);
  return n->op == LOOP_INDEX ? ((u64)e->lives.where[n->a] + 1) << 8 | n->b : 0;
}

static bool same_terms(const Emitter *e, const Stream *s, const LoopTerm *terms, u32 count) {
  return s->count == count && memcmp(e->stream_terms.data + s->first, terms, sizeof *terms * count) == 0;
}

/* coef * strides * bytes as a register or constant, made where the function begins. */
static MIR_op_t scale_of(Emitter *e, const LoopTerm *t, u32 bytes) {
  i64 factor = (i64)((u64)t->coef * bytes);
  if (!t->stride[0]) return I(e, factor);
  MIR_reg_t r = mir_entry_reg(e, LT_I64, "s");
  mir_at_entry(e, MIR_new_insn(e->ctx, MIR_MUL, R(e, r), mir_op(e, t->stride[0]), I(e, factor)));
  if (t->stride[1]) mir_at_entry(e, MIR_new_insn(e->ctx, MIR_MUL, R(e, r), R(e, r), mir_op(e, t->stride[1])));
  return R(e, r);
}

static u32 stream_of(Emitter *e, u32 buffer, const LoopTerm *terms, u32 count);

/* Adds the terms of parameters to the base: a constant of the function. */
static void make_base(Emitter *e, Stream *s, const LoopTerm *terms) {
  u32 bytes = loop_type_bytes((LoopType)en(e, s->buffer)->mem);
  s->reg = s->count ? mir_entry_reg(e, LT_I64, "b") : mir_reg(e, s->buffer);
  MIR_op_t from = mir_op(e, s->buffer);
  for (u32 i = 0; i < s->count; i++) {
    MIR_op_t scale = scale_of(e, &terms[i], bytes);
    MIR_reg_t r = mir_entry_reg(e, LT_I64, "s");
    mir_at_entry(e, MIR_new_insn(e->ctx, MIR_MUL, R(e, r), mir_op(e, terms[i].var), scale));
    mir_at_entry(e, MIR_new_insn(e->ctx, MIR_ADD, R(e, s->reg), from, R(e, r)));
    from = R(e, s->reg);
  }
}

/* What one trip adds: the terms of the stream's own index. */
static void make_step(Emitter *e, Stream *s, const LoopTerm *terms, u32 count) {
  u32 bytes = loop_type_bytes((LoopType)en(e, s->buffer)->mem);
  i64 constant = 0;
  MIR_reg_t sum = 0;
  for (u32 i = 0; i < count; i++) {
    if (terms[i].var != s->axis) continue;
    MIR_op_t scale = scale_of(e, &terms[i], bytes);
    if (scale.mode != MIR_OP_REG) {
      constant = (i64)((u64)constant + (u64)scale.u.i);
    } else if (!sum) {
      sum = scale.u.reg; /* its own register: nobody else reads it */
    } else {
      mir_at_entry(e, MIR_new_insn(e->ctx, MIR_ADD, R(e, sum), R(e, sum), scale));
    }
  }
  if (sum && constant) mir_at_entry(e, MIR_new_insn(e->ctx, MIR_ADD, R(e, sum), R(e, sum), I(e, constant)));
  s->step = sum ? R(e, sum) : I(e, constant);
  s->reg = mir_entry_reg(e, LT_I64, "p");
}

/* Depth of recursion: one per loop around the access. */
static u32 stream_of(Emitter *e, u32 buffer, const LoopTerm *terms, u32 count) {
  for (u32 i = 1; i < e->streams.count; i++)
    if (e->streams.data[i].buffer == buffer && same_terms(e, &e->streams.data[i], terms, count)) return i;
  Stream s = {.buffer = buffer, .first = e->stream_terms.count, .count = count};
  u64 deepest = 0;
  for (u32 i = 0; i < count; i++) {
    if (!vec_push(e->alloc, &e->stream_terms, terms[i])) return e->failed = true, 0;
    if (depth_of(e, terms[i].var) > deepest) deepest = depth_of(e, terms[i].var), s.axis = terms[i].var;
  }
  if (s.axis) {
    LoopTerm few[16], *rest = few;
    u32 left = 0;
    if (count > COUNT_OF(few) && !(rest = mem_alloc(e->alloc, sizeof *rest * count))) return e->failed = true, 0;
    for (u32 i = 0; i < count; i++)
      if (terms[i].var != s.axis) rest[left++] = terms[i];
    s.parent = stream_of(e, buffer, rest, left);
    if (rest != few) mem_free(e->alloc, rest, sizeof *rest * count);
    make_step(e, &s, terms, count);
  } else {
    make_base(e, &s, terms);
  }
  if (e->failed || !vec_push(e->alloc, &e->streams, s)) return e->failed = true, 0;
  return e->streams.count - 1;
}

static bool before(const LoopTerm *a, const LoopTerm *b) { return memcmp(a, b, sizeof *a) < 0; }

/* The affine terms of an access in an order of their own; too many are left to arithmetic. */
static u32 affine_terms(const Emitter *e, const LoopNode *n, LoopTerm *out, u32 most) {
  u32 count = 0;
  const LoopTerm *t = loop_terms(e->fn, n);
  for (u32 i = 0; i < n->count && count < most; i++) {
    if (!is_affine(e, &t[i])) continue;
    u32 at = count++;
    for (; at > 0 && before(&t[i], &out[at - 1]); at--) out[at] = out[at - 1];
    out[at] = t[i];
  }
  return count;
}

enum { MOST_TERMS = 24 };

bool mir_find_streams(Emitter *e) {
  e->access_stream = mem_alloc_zero(e->alloc, sizeof(u32) * e->fn->nodes.count);
  if (!e->access_stream || !vec_push(e->alloc, &e->streams, (Stream){0})) return false;
  for (u32 pos = 0; pos < e->fn->body.count && !e->failed; pos++) {
    u32 id = e->fn->body.data[pos];
    const LoopNode *n = en(e, id);
    if (n->op != LOOP_LOAD && n->op != LOOP_STORE) continue;
    if (en(e, n->a)->op == LOOP_TABLE) {
      mir_missing(e, "tables outside math functions are not supported:", name_text(&e->fn->module->names, e->fn->module->tables.data[en(e, n->a)->a].name));
      return true;
    }
    LoopTerm terms[MOST_TERMS];
    if (n->count > MOST_TERMS) {
      mir_missing(e, "an index of so many terms is not supported", "");
      return true;
    }
    e->access_stream[id] = stream_of(e, n->a, terms, affine_terms(e, n, terms, MOST_TERMS));
  }
  return !e->failed || e->missing;
}

void mir_begin_streams(Emitter *e, u32 axis, MIR_reg_t from) {
  for (u32 i = 1; i < e->streams.count; i++) {
    const Stream *s = &e->streams.data[i];
    if (s->axis != axis) continue;
    MIR_op_t start = R(e, e->streams.data[s->parent].reg);
    if (!from) {
      ins2(e, MIR_MOV, R(e, s->reg), start);
      continue;
    }
    ins3(e, MIR_MUL, R(e, s->reg), R(e, from), s->step);
    ins3(e, MIR_ADD, R(e, s->reg), R(e, s->reg), start);
  }
}

void mir_step_streams(Emitter *e, u32 axis) {
  for (u32 i = 1; i < e->streams.count; i++) {
    const Stream *s = &e->streams.data[i];
    if (s->axis == axis) ins3(e, MIR_ADD, R(e, s->reg), R(e, s->reg), s->step);
  }
}

static u32 log2_of(u64 v) { return v && !(v & (v - 1)) ? (u32)__builtin_ctzll(v) : 64; }

MIR_reg_t mir_address(Emitter *e, u32 access, i64 *disp) {
  const LoopNode *n = en(e, access);
  const LoopTerm *t = loop_terms(e->fn, n);
  i64 bytes = loop_type_bytes((LoopType)n->mem);
  MIR_reg_t at = e->streams.data[e->access_stream[access]].reg;
  for (u32 i = 0; i < n->count; i++) {
    if (is_affine(e, &t[i])) continue;
    u64 factor = (u64)t[i].coef * (u64)bytes;
    MIR_reg_t r = mir_temp(e, LT_I64);
    MIR_op_t v = mir_op(e, t[i].var);
    if (factor != 1) {
      if (log2_of(factor) < 64) ins3(e, MIR_LSH, R(e, r), v, I(e, log2_of(factor)));
      else ins3(e, MIR_MUL, R(e, r), v, I(e, (i64)factor));
      v = R(e, r);
    }
    for (u32 k = 0; k < 2; k++) {
      if (!t[i].stride[k]) continue;
      ins3(e, MIR_MUL, R(e, r), v, mir_op(e, t[i].stride[k]));
      v = R(e, r);
    }
    ins3(e, MIR_ADD, R(e, r), R(e, at), v);
    at = r;
  }
  i64 constant = (i64)(n->imm * (u64)bytes);
  *disp = constant;
  if (constant == (i32)constant) return at;
  MIR_reg_t far = mir_temp(e, LT_I64);
  ins3(e, MIR_ADD, R(e, far), R(e, at), I(e, constant));
  *disp = 0;
  return far;
}

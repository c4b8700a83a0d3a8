/* mir_streams.c — addresses: pointers that step along with loops for what is affine, arithmetic for the rest.
 *
 * MIR at level 1 neither moves nor strengthens address arithmetic, and takes apart scaled operands. So an index is
 * first written as a sum over loop indices, parameters and computed values (through additions and constant factors);
 * what varies with the innermost of its loop indices becomes a pointer of that loop, stepped once per trip; accesses
 * that differ by a constant share it. Its start is the address without that loop's terms: a pointer of a loop
 * further out, or made there. */
#include <string.h>

#include "jit/scalar/mir_emitter.h"

enum { MOST_TERMS = 24, MOST_WORK = 64 };

/* A sum of terms and a constant, in elements. */
typedef struct Sum {
  LoopTerm terms[MOST_TERMS];
  u32 count;
  u64 constant;
  bool full; /* more terms than there is room for */
} Sum;

static bool is_computed(const Emitter *e, u32 var) {
  u8 op = en(e, var)->op;
  return op != LOOP_INDEX && op != LOOP_PARAM;
}

/* Greater for indices of loops further in; 0 for what is no index. */
static u64 depth_of(const Emitter *e, u32 var) {
  const LoopNode *n = en(e, var);
  return n->op == LOOP_INDEX ? ((u64)e->lives.where[n->a] + 1) << 8 | n->b : 0;
}

static bool before(const LoopTerm *a, const LoopTerm *b) {
  if (a->var != b->var) return a->var < b->var;
  if (a->stride[0] != b->stride[0]) return a->stride[0] < b->stride[0];
  return a->stride[1] < b->stride[1];
}

/* Keeps the terms in order, equal variables and strides as one. */
static void add_term(Sum *s, const LoopTerm *t) {
  u32 at = 0;
  while (at < s->count && before(&s->terms[at], t)) at++;
  if (at < s->count && !before(t, &s->terms[at])) {
    s->terms[at].coef = (i64)((u64)s->terms[at].coef + (u64)t->coef);
    if (s->terms[at].coef == 0) memmove(&s->terms[at], &s->terms[at + 1], sizeof *t * (--s->count - at));
    return;
  }
  if (s->count == MOST_TERMS) {
    s->full = true;
    return;
  }
  memmove(&s->terms[at + 1], &s->terms[at], sizeof *t * (s->count++ - at));
  s->terms[at] = *t;
}

/* Is a value made of loop indices, parameters and constants alone, by what expand_term writes out? */
static bool is_affine(const Emitter *e, u32 var, u32 depth) {
  const LoopNode *n = en(e, var);
  if (!is_computed(e, var) || n->op == LOOP_CONST) return true;
  if (depth == 0) return false;
  bool constant = n->b && en(e, n->b)->op == LOOP_CONST;
  switch (n->op) {
    case LOOP_ADD:
    case LOOP_SUB: return is_affine(e, n->a, depth - 1) && is_affine(e, n->b, depth - 1);
    case LOOP_NEG: return is_affine(e, n->a, depth - 1);
    case LOOP_MUL:
    case LOOP_SHL: return constant && is_affine(e, n->a, depth - 1);
    default: return false;
  }
}

/* Writes a term's computed variable as the sum it is, as far as it is computed in `loop`: what comes from outside
 * lives as long as the loop does, what that was made of need not, unless it is indices and parameters. Wrapping
 * arithmetic distributes. */
static void expand_term(const Emitter *e, Sum *s, LoopTerm first, u32 loop) {
  LoopTerm work[MOST_WORK];
  u32 depth = 0, left = MOST_WORK;
  work[depth++] = first;
  while (depth) {
    LoopTerm t = work[--depth], other = t;
    const LoopNode *n = en(e, t.var);
    bool constant = n->b && en(e, n->b)->op == LOOP_CONST;
    u64 bits = constant ? en(e, n->b)->imm : 0;
    if (n->op == LOOP_CONST && !t.stride[0]) {
      s->constant += (u64)t.coef * n->imm;
      continue;
    }
    bool splits = n->op == LOOP_ADD || n->op == LOOP_SUB;
    bool scales = constant && (n->op == LOOP_MUL || (n->op == LOOP_SHL && bits < 64));
    bool here = is_computed(e, t.var) && (e->lives.loop[e->lives.where[t.var]] == loop || is_affine(e, t.var, 4));
    if (!here || left == 0 || depth + 2 > MOST_WORK || (!splits && !scales && n->op != LOOP_NEG)) {
      add_term(s, &t);
      continue;
    }
    left--;
    t.var = n->a;
    if (n->op == LOOP_NEG) t.coef = (i64)(0 - (u64)t.coef);
    if (scales) t.coef = (i64)((u64)t.coef * (n->op == LOOP_SHL ? (u64)1 << bits : bits));
    work[depth++] = t;
    if (!splits) continue;
    other.var = n->b;
    if (constant && t.stride[0]) { /* so many strides */
      other.coef = (i64)((u64)other.coef * bits);
      other.var = t.stride[0];
      other.stride[0] = t.stride[1];
      other.stride[1] = 0;
    }
    if (n->op == LOOP_SUB) other.coef = (i64)(0 - (u64)other.coef);
    work[depth++] = other;
  }
}

/* ---- streams ------------------------------------------------------------------------------- */

static u32 deepest_index(const Emitter *e, const LoopTerm *terms, u32 count) {
  u32 axis = 0;
  u64 deepest = 0;
  for (u32 i = 0; i < count; i++)
    if (depth_of(e, terms[i].var) > deepest) deepest = depth_of(e, terms[i].var), axis = terms[i].var;
  return axis;
}

/* Is a computed value there before the loop of `axis` begins. */
static bool known_before(const Emitter *e, u32 var, u32 axis) {
  return e->lives.where[var] < e->lives.where[en(e, axis)->a];
}

/* Can the sum be a pointer of its innermost loop: nothing in it is computed inside. */
static bool can_step(const Emitter *e, const LoopTerm *terms, u32 count) {
  u32 axis = deepest_index(e, terms, count);
  for (u32 i = 0; i < count; i++)
    if (is_computed(e, terms[i].var) && (!axis || !known_before(e, terms[i].var, axis))) return false;
  return true;
}

static u32 log2_of(u64 v) { return v && !(v & (v - 1)) ? (u32)__builtin_ctzll(v) : 64; }

static MIR_reg_t entry_constant(Emitter *e, MIR_op_t v) {
  MIR_reg_t r = mir_entry_reg(e, LT_I64, "s");
  mir_at_entry(e, MIR_new_insn(e->ctx, MIR_MOV, R(e, r), v));
  return r;
}

/* A product of integers that is made where the function begins, once. */
static MIR_reg_t product(Emitter *e, MIR_op_t a, MIR_op_t b) {
  if (a.mode != MIR_OP_REG) {
    MIR_op_t first = a;
    a = b.mode == MIR_OP_REG ? b : R(e, entry_constant(e, b));
    b = first;
  }
  bool constant = b.mode != MIR_OP_REG;
  i64 by = constant ? b.u.i : (i64)b.u.reg;
  for (u32 i = 0; i < e->products.count; i++) {
    const Product *k = &e->products.data[i];
    if (k->a == a.u.reg && k->b == by && k->constant == constant) return k->reg;
  }
  MIR_reg_t r = mir_entry_reg(e, LT_I64, "s");
  bool shift = constant && log2_of((u64)by) < 64;
  mir_at_entry(e, MIR_new_insn(e->ctx, shift ? MIR_LSH : MIR_MUL, R(e, r), a, shift ? I(e, log2_of((u64)by)) : b));
  if (!vec_push(e->alloc, &e->products, ((Product){a.u.reg, by, constant, r}))) e->failed = true;
  return r;
}

/* coef * strides * bytes as a register or constant, made where the function begins. */
static MIR_op_t scale_of(Emitter *e, const LoopTerm *t, u32 bytes) {
  i64 factor = (i64)((u64)t->coef * bytes);
  if (!t->stride[0]) return I(e, factor);
  MIR_reg_t r = product(e, mir_op(e, t->stride[0]), I(e, factor));
  return R(e, t->stride[1] ? product(e, R(e, r), mir_op(e, t->stride[1])) : r);
}

static u32 stream_of(Emitter *e, u32 buffer, const LoopTerm *terms, u32 count);

/* Adds the terms of parameters to the base: a constant of the function. */
static void make_base(Emitter *e, Stream *s, const LoopTerm *terms) {
  u32 bytes = loop_type_bytes((LoopType)en(e, s->buffer)->mem);
  s->reg = s->count ? mir_entry_reg(e, LT_I64, "b") : mir_reg(e, s->buffer);
  MIR_op_t from = mir_op(e, s->buffer);
  for (u32 i = 0; i < s->count; i++) {
    MIR_op_t scale = scale_of(e, &terms[i], bytes);
    MIR_reg_t r = product(e, mir_op(e, terms[i].var), scale);
    mir_at_entry(e, MIR_new_insn(e->ctx, MIR_ADD, R(e, s->reg), from, R(e, r)));
    from = R(e, s->reg);
  }
}

static MIR_reg_t entry_sum(Emitter *e, MIR_reg_t a, MIR_op_t b) {
  MIR_reg_t r = mir_entry_reg(e, LT_I64, "s");
  mir_at_entry(e, MIR_new_insn(e->ctx, MIR_ADD, R(e, r), R(e, a), b));
  return r;
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
      sum = scale.u.reg;
    } else {
      sum = entry_sum(e, sum, scale);
    }
  }
  if (sum && constant) sum = entry_sum(e, sum, I(e, constant));
  s->step = sum ? R(e, sum) : I(e, constant);
  s->reg = mir_entry_reg(e, LT_I64, "p");
}

static bool same_terms(const Emitter *e, const Stream *s, const LoopTerm *terms, u32 count) {
  bool same = s->count == count;
  for (u32 i = 0; same && i < count; i++) same = loop_terms_equal(&e->stream_terms.data[s->first + i], &terms[i]);
  return same;
}

/* Depth of recursion: one per loop around the access, and one. */
static u32 stream_of(Emitter *e, u32 buffer, const LoopTerm *terms, u32 count) {
  for (u32 i = 1; i < e->streams.count; i++)
    if (e->streams.data[i].buffer == buffer && same_terms(e, &e->streams.data[i], terms, count)) return i;
  Stream s = {.buffer = buffer, .first = e->stream_terms.count, .count = count};
  LoopTerm rest[MOST_TERMS] = {0};
  u32 left = 0;
  for (u32 i = 0; i < count; i++)
    if (!vec_push(e->alloc, &e->stream_terms, terms[i])) return e->failed = true, 0;
  s.mixed = !can_step(e, terms, count);
  if (!s.mixed) s.axis = deepest_index(e, terms, count);
  for (u32 i = 0; i < count; i++)
    if (s.mixed ? !is_computed(e, terms[i].var) : terms[i].var != s.axis) rest[left++] = terms[i];
  if (s.mixed || s.axis) s.parent = stream_of(e, buffer, rest, left);
  if (s.axis) make_step(e, &s, terms, count);
  else if (!s.mixed) make_base(e, &s, terms);
  if (e->failed || !vec_push(e->alloc, &e->streams, s)) return e->failed = true, 0;
  return e->streams.count - 1;
}

/* The sum of an access: written out where that makes a pointer, else as it stands. */
static void sum_of(const Emitter *e, u32 access, Sum *s) {
  const LoopNode *n = en(e, access);
  const LoopTerm *t = loop_terms(e->fn, n);
  u32 loop = e->lives.loop[e->lives.where[access]];
  *s = (Sum){.constant = n->imm};
  for (u32 i = 0; i < n->count; i++) expand_term(e, s, t[i], loop);
  if (!s->full && can_step(e, s->terms, s->count)) return;
  *s = (Sum){.constant = n->imm};
  for (u32 i = 0; i < n->count; i++) add_term(s, &t[i]);
}

bool mir_find_streams(Emitter *e) {
  Sum s;
  e->access_stream = mem_alloc_zero(e->alloc, sizeof(u32) * e->fn->nodes.count);
  if (!e->access_stream || !vec_push(e->alloc, &e->streams, (Stream){0})) return false;
  for (u32 pos = 0; pos < e->fn->body.count && !e->failed; pos++) {
    u32 id = e->fn->body.data[pos];
    const LoopNode *n = en(e, id);
    if (n->op != LOOP_LOAD && n->op != LOOP_STORE) continue;
    if (en(e, n->a)->op == LOOP_TABLE) {
      mir_missing(e, "tables outside math functions are not supported:",
                  name_text(&e->fn->module->names, e->fn->module->tables.data[en(e, n->a)->a].name));
      return true;
    }
    sum_of(e, id, &s);
    if (s.full) {
      mir_missing(e, "an index of so many terms is not supported", "");
      return true;
    }
    e->access_stream[id] = stream_of(e, n->a, s.terms, s.count);
  }
  return !e->failed || e->missing;
}

/* ---- code ---------------------------------------------------------------------------------- */

static MIR_reg_t in_temp(Emitter *e, i64 v) {
  MIR_reg_t r = mir_temp(e, LT_I64);
  ri(e, MIR_MOV, r, v);
  return r;
}

/* A mixed stream's address: its parent's register plus the computed terms. */
static MIR_reg_t mixed_address(Emitter *e, const Stream *s) {
  u64 bytes = loop_type_bytes((LoopType)en(e, s->buffer)->mem);
  MIR_reg_t at = e->streams.data[s->parent].reg;
  for (u32 i = 0; i < s->count; i++) {
    LoopTerm t = e->stream_terms.data[s->first + i];
    if (!is_computed(e, t.var)) continue;
    u64 factor = (u64)t.coef * bytes;
    MIR_reg_t r = mir_temp(e, LT_I64);
    MIR_op_t v = mir_op(e, t.var);
    if (factor != 1) {
      /* mir_fold.c takes it as it is */
      if (log2_of(factor) < 64) put(e, MIR_new_insn(e->ctx, MIR_LSH, R(e, r), v, R(e, in_temp(e, log2_of(factor)))));
      else ins3(e, MIR_MUL, R(e, r), v, I(e, (i64)factor));
      v = R(e, r);
    }
    for (u32 k = 0; k < 2; k++) {
      if (!t.stride[k]) continue;
      ins3(e, MIR_MUL, R(e, r), v, mir_op(e, t.stride[k]));
      v = R(e, r);
    }
    MIR_reg_t sum = mir_temp(e, LT_I64);
    ins3(e, MIR_ADD, R(e, sum), R(e, at), v);
    at = sum;
  }
  return at;
}

static MIR_reg_t start_of(Emitter *e, u32 stream) {
  Stream s = e->streams.data[stream];
  return s.mixed ? mixed_address(e, &s) : s.reg;
}

void mir_begin_streams(Emitter *e, u32 axis, MIR_reg_t from) {
  for (u32 i = 1; i < e->streams.count; i++) {
    Stream s = e->streams.data[i];
    if (s.axis != axis) continue;
    MIR_op_t start = R(e, start_of(e, s.parent));
    if (!from) {
      ins2(e, MIR_MOV, R(e, s.reg), start);
      continue;
    }
    ins3(e, MIR_MUL, R(e, s.reg), R(e, from), s.step);
    ins3(e, MIR_ADD, R(e, s.reg), R(e, s.reg), start);
  }
}

void mir_step_streams(Emitter *e, u32 axis) {
  for (u32 i = 1; i < e->streams.count; i++) {
    const Stream *s = &e->streams.data[i];
    if (s->axis == axis) ins3(e, MIR_ADD, R(e, s->reg), R(e, s->reg), s->step);
  }
}

void mir_forget_addresses(Emitter *e) { e->known.count = e->mask_of = e->shifted = e->divisions = 0; }

MIR_reg_t mir_address(Emitter *e, u32 access, i64 *disp) {
  const LoopNode *n = en(e, access);
  Sum s;
  sum_of(e, access, &s);
  i64 constant = (i64)(s.constant * loop_type_bytes((LoopType)n->mem));
  u32 stream = e->access_stream[access];
  MIR_reg_t at = 0;
  for (u32 i = 0; i < e->known.count; i++)
    if (e->known.data[i].stream == stream) at = e->known.data[i].reg;
  if (!at) {
    at = start_of(e, stream);
    if (e->streams.data[stream].mixed && !vec_push(e->alloc, &e->known, (Known){stream, at})) e->failed = true;
  }
  *disp = constant;
  if (constant == (i32)constant) return at;
  MIR_reg_t far = mir_temp(e, LT_I64);
  rri(e, MIR_ADD, far, at, constant);
  *disp = 0;
  return far;
}

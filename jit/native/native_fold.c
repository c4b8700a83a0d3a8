/* native_fold.c — numbers that a loop carries, and that may be reduced in any order, are reduced by kernels.
 *
 * What native_raise.c does for a loop needs of each carried number that it follows from the index, or is one of these:
 *
 * - a chain: it is combined with a value of each trip by an operation whose order does not matter: + * min max & | ^ of
 *   integers, & | ^ of conditions, min and max of floats. `if p { n += v }` adds v, or what changes nothing.
 *   `n or p` asks for p where n is false alone: `if n { n } else { p }`; likewise `n and p`.
 * - a chain that is picked: `if v < m { m = v }`. NaN never is. Which of 0.0 and -0.0 comes first is not known from the
 *   least: where a zero would be picked, the loop itself goes on.
 * - a latch: `if v < m { m = v; at = w }` and `if p { at = w }`, where w follows from the index. One kernel finds the
 *   least, another the first trip that has it (where it is picked by <=: the last one); or the last trip in which p
 *   holds.
 *
 * Each is a kernel of its own: `par in 0..1 { reduce j in 0..trips { the body, with index from + j; yield } store }`.
 * The result comes back in a number's memory, and is combined with what was carried. */
#include "jit/native/native_raise.h"

#include <stdio.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------------------------------------ */

void fold_begin(Raise *r) {
  memset(r->folded, 0, sizeof *r->folded * r->nodes);
  for (u32 i = 0; i < r->carried && i < RAISE_FOLDS; i++)
    r->folded[loop_carry_of(r->fn, r->loop, i)] = (Folded){.kind = FOLD_CHAIN, .carry = i};
}

const Folded *fold_of(const Raise *r, u32 id) {
  return id && id < r->nodes && r->folded[id].kind ? &r->folded[id] : NULL;
}

static bool fold_reduce(LoopOp op, LoopType t, LoopReduce *out) {
  static const LoopReduce all[] = {LOOP_REDUCE_ADD, LOOP_REDUCE_MUL, LOOP_REDUCE_MIN, LOOP_REDUCE_MAX,
                                   LOOP_REDUCE_AND, LOOP_REDUCE_OR,  LOOP_REDUCE_XOR};
  for (u32 i = 0; i < COUNT_OF(all); i++) {
    if (loop_reduce_op(all[i]) != op) continue;
    *out = all[i];
    bool most = op == LOOP_MIN || op == LOOP_MAX, bits = op == LOOP_AND || op == LOOP_OR || op == LOOP_XOR;
    return loop_is_int(t) || (loop_is_float(t) && most) || (t == LT_I1 && bits);
  }
  return false;
}

static u32 fold_emit(Raise *r, LoopOp op, u32 a, u32 b) { return loop_emit(r->kernel, op, LT_VOID, a, b, 0); }

/* What changes nothing. */
static u32 fold_identity(Raise *r, LoopOp op, LoopType t) {
  LoopReduce reduce;
  return fold_reduce(op, t, &reduce) ? loop_const(r->kernel, t, loop_reduce_identity(reduce, t)) : 0;
}

static u32 fold_also(Raise *r, u32 also, u32 cond) { return also ? fold_emit(r, LOOP_AND, also, cond) : cond; }

static LoopOp fold_mirrored(LoopOp op) {
  return op == LOOP_LT ? LOOP_GT : op == LOOP_LE ? LOOP_GE : op == LOOP_GT ? LOOP_LT : LOOP_LE;
}

bool fold_is_carry(const Folded *f) { return f && f->kind == FOLD_CHAIN && !f->value; }

static bool fold_keep(Raise *r, u32 id, const Folded *f) {
  r->folded[id] = *f;
  return !r->kernel->failed;
}

/* `carry op value op more` */
static bool fold_chain(Raise *r, u32 id, const Folded *chain, LoopOp op, u32 more) {
  LoopReduce reduce;
  LoopType t = loop_type_of(r->fn, id);
  Folded f = *chain;
  if (!more || f.kind != FOLD_CHAIN || f.picked || !fold_reduce(op, t, &reduce)) return false;
  if (f.value && f.op != op) return false;
  f.value = f.value ? fold_emit(r, op, f.value, more) : more;
  f.op = (u8)op;
  return f.value && fold_keep(r, id, &f);
}

static bool fold_compare(Raise *r, u32 id, const LoopNode *n) {
  const Folded *a = fold_of(r, n->a), *b = fold_of(r, n->b), *c = a ? a : b;
  if ((a && b) || !fold_is_carry(c) || loop_type_of(r->fn, n->a) == LT_I1) return false;
  u32 value = raise_operand(r, a ? n->b : n->a);
  LoopOp by = a ? fold_mirrored((LoopOp)n->op) : (LoopOp)n->op;
  return value && fold_keep(r, id, &(Folded){.kind = FOLD_BEATS, .by = (u8)by, .carry = c->carry, .value = value});
}

/* `carry ? yes : no`, where a truth value is carried: `carry or no`, `carry and yes`. */
static bool fold_truth(Raise *r, u32 out, const Folded *carry, u32 yes, u32 no) {
  const Folded *y = fold_of(r, yes), *n = fold_of(r, no);
  const LoopNode *a = raise_node(r, yes), *b = raise_node(r, no);
  bool stays_true = y ? fold_is_carry(y) && y->carry == carry->carry : a->op == LOOP_CONST && a->imm,
       stays_false = n ? fold_is_carry(n) && n->carry == carry->carry : b->op == LOOP_CONST && !b->imm;
  if (loop_type_of(r->fn, out) != LT_I1) return false;
  if (stays_true && !n) return fold_chain(r, out, carry, LOOP_OR, raise_operand(r, no));
  return stays_false && !y && fold_chain(r, out, carry, LOOP_AND, raise_operand(r, yes));
}

bool fold_select(Raise *r, u32 out, u32 cond, const Folded *beats, u32 yes, u32 no) {
  const Folded *y = fold_of(r, yes), *n = fold_of(r, no);
  LoopType t = loop_type_of(r->fn, out);
  if (fold_is_carry(y) && fold_is_carry(n) && y->carry == n->carry) return fold_keep(r, out, y);
  if (beats && beats->kind == FOLD_CHAIN) return fold_truth(r, out, beats, yes, no);
  if (beats) { /* value by carry ? yes : carry */
    if (y || !fold_is_carry(n)) return false;
    Folded f = *beats;
    u32 value = raise_operand(r, yes);
    f.carry = n->carry;
    if (f.carry == beats->carry && value == beats->value) {
      f.kind = FOLD_CHAIN;
      f.picked = true;
      f.op = f.by == LOOP_LT || f.by == LOOP_LE ? LOOP_MIN : LOOP_MAX;
    } else {
      f.kind = FOLD_LATCH;
      f.rival = beats->carry + 1;
      f.node = yes;
    }
    return fold_keep(r, out, &f);
  }
  if (fold_is_carry(y) || (y && n && !fold_is_carry(n))) { /* the other way round */
    const Folded *old = y;
    if (!fold_is_carry(y)) { /* both add */
      if (y->kind != FOLD_CHAIN || n->kind != FOLD_CHAIN || y->picked || n->picked || y->carry != n->carry ||
          y->op != n->op)
        return false;
      Folded f = *y;
      f.value = loop_emit(r->kernel, LOOP_SELECT, LT_VOID, cond, y->value, n->value);
      return fold_keep(r, out, &f);
    }
    y = n;
    n = old;
    yes = no;
    cond = loop_emit(r->kernel, LOOP_NOT, LT_VOID, cond, 0, 0);
  }
  if (!fold_is_carry(n)) return false;
  if (!y) {
    const LoopNode *x = raise_node(r, yes);
    if (t == LT_I1 && x->op == LOOP_CONST)
      return fold_chain(r, out, n, x->imm ? LOOP_OR : LOOP_AND,
                        x->imm ? cond : loop_emit(r->kernel, LOOP_NOT, LT_VOID, cond, 0, 0));
    return fold_keep(r, out, &(Folded){.kind = FOLD_LATCH, .carry = n->carry, .also = cond, .node = yes});
  }
  if (y->carry != n->carry || (y->kind != FOLD_CHAIN && y->kind != FOLD_LATCH)) return false;
  Folded f = *y;
  if (f.kind == FOLD_LATCH || f.picked) {
    f.also = fold_also(r, f.also, cond);
  } else {
    u32 none = fold_identity(r, (LoopOp)f.op, t);
    f.value = none ? loop_emit(r->kernel, LOOP_SELECT, LT_VOID, cond, f.value, none) : 0;
  }
  return f.value + f.also && fold_keep(r, out, &f);
}

bool fold_statement(Raise *r, u32 id) {
  const LoopNode n = *raise_node(r, id);
  const Folded *a = fold_of(r, n.a), *b = fold_of(r, n.b);
  if (n.op == LOOP_SELECT) {
    if (a && a->kind != FOLD_BEATS && !fold_is_carry(a)) return false;
    const Folded beats = a ? *a : (Folded){.kind = FOLD_NONE};
    u32 cond = a ? 0 : raise_operand(r, n.a);
    return (a || cond) && fold_select(r, id, cond, a ? &beats : NULL, n.b, n.c);
  }
  if (n.op == LOOP_LT || n.op == LOOP_LE || n.op == LOOP_GT || n.op == LOOP_GE) return fold_compare(r, id, &n);
  if (loop_op_form((LoopOp)n.op) != LOOP_FORM_BINARY || (a && b)) return false;
  u32 other = raise_operand(r, a ? n.b : n.a);
  const Folded f = a ? *a : *b;
  if (!other) return false;
  if (f.kind == FOLD_BEATS && n.op == LOOP_AND) {
    Folded both = f;
    both.also = fold_also(r, f.also, other);
    return both.also && fold_keep(r, id, &both);
  }
  if (n.op != LOOP_SUB) return fold_chain(r, id, &f, (LoopOp)n.op, other);
  return a && loop_is_int((LoopType)n.type) &&
         fold_chain(r, id, &f, LOOP_ADD, loop_emit(r->kernel, LOOP_NEG, LT_VOID, other, 0, 0));
}

/* ---- what is carried --------------------------------------------------------------------------------------------- */

bool fold_next(Raise *r, const LoopNode *next) {
  r->folding = 0;
  for (u32 i = 0; i < next->count; i++) {
    u32 id = loop_list(r->fn, next)[i];
    const Folded *f = fold_of(r, id);
    if (raise_follows(r, id, true, RAISE_DEPTH)) {
      if (i < RAISE_FOLDS) r->folds[i] = (Folded){.kind = FOLD_FOLLOWS};
      continue;
    }
    if (!f || i >= RAISE_FOLDS || f->carry != i || f->kind == FOLD_BEATS) return false;
    r->folds[i] = *f;
    r->folding++;
  }
  for (u32 i = 0; i < next->count && i < RAISE_FOLDS; i++) {
    const Folded *f = &r->folds[i], *rival = f->kind == FOLD_LATCH && f->rival ? &r->folds[f->rival - 1] : NULL;
    if (f->kind != FOLD_LATCH) continue;
    r->loads = true;
    bool follows = raise_follows(r, f->node, true, RAISE_DEPTH);
    r->loads = false;
    if (!follows) return false;
    if (rival && (rival->kind != FOLD_CHAIN || !rival->picked || rival->by != f->by || rival->value != f->value ||
                  rival->also != f->also))
      return false;
  }
  return true;
}

/* A constant that each trip adds. */
static bool fold_counts(const Raise *r, const Folded *f) {
  return f->kind == FOLD_CHAIN && f->op == LOOP_ADD && loop_node(r->kernel, f->value)->op == LOOP_CONST;
}

bool fold_plan(Raise *r) {
  r->reduced_count = 0;
  for (u32 i = 0; i < r->carried && i < RAISE_FOLDS; i++) {
    const Folded *f = &r->folds[i];
    if (f->kind == FOLD_FOLLOWS || fold_is_carry(f) || fold_counts(r, f)) continue;
    if (r->reduced_count == RAISE_REDUCED) return false;
    r->reduced[r->reduced_count++] = (Made){.reduces = true, .fold = i};
  }
  return true;
}

/* ---- a kernel ---------------------------------------------------------------------------------------------------- */

static LoopType fold_type(const Raise *r, u32 carry) {
  return loop_type_of(r->fn, loop_carry_of(r->fn, r->loop, carry));
}

/* Of a latch: the first of several trips that would do, not the last. */
static bool fold_is_first(const Folded *f) { return f->rival && (f->by == LOOP_LT || f->by == LOOP_GT); }

/* Of what the kernel reduces. */
static LoopType fold_result(const Raise *r, const Made *m, LoopOp *op) {
  const Folded *f = &r->folds[m->fold];
  *op = f->kind == FOLD_CHAIN ? (LoopOp)f->op : fold_is_first(f) ? LOOP_MIN : LOOP_MAX;
  return f->kind == FOLD_CHAIN ? fold_type(r, m->fold) : LT_I64;
}

u32 fold_head(Raise *r, Made *m) {
  LoopFn *k = r->kernel;
  LoopOp op;
  LoopReduce reduce;
  LoopType t = fold_result(r, m, &op);
  const Folded *f = &r->folds[m->fold];
  if (!fold_reduce(op, t, &reduce)) return 0;
  u32 trips = loop_param(k, "n", LT_I64);
  r->base = loop_param(k, "from", LT_I64);
  m->to = loop_param_buffer(k, "to", t, LOOP_OUT);
  m->best = f->kind == FOLD_LATCH && f->rival ? loop_param(k, "best", fold_type(r, f->rival - 1)) : 0;
  loop_begin_par(k, NULL, loop_const_i(k, LT_I64, 1), 1);
  u32 head = loop_begin_reduce(k, reduce, t, LOOP_ORDER_LANES, 1, &trips);
  r->index = fold_emit(r, LOOP_ADD, loop_index_of(head, 0), r->base);
  return head;
}

bool fold_end(Raise *r, Made *m, u32 head) {
  LoopFn *k = r->kernel;
  LoopOp op;
  LoopType t = fold_result(r, m, &op);
  const Folded *f = &r->folds[m->fold];
  u32 value = f->value, also = f->also, none = fold_identity(r, op, t);
  if (f->kind == FOLD_LATCH) {
    if (f->rival) also = fold_also(r, also, fold_emit(r, LOOP_EQ, f->value, m->best));
    value = r->index;
    if (!fold_is_first(f)) none = loop_const_i(k, LT_I64, -1);
  } else if (f->picked && loop_is_float(t)) {
    also = fold_also(r, also, fold_emit(r, LOOP_EQ, value, value));
  }
  if (also) value = loop_emit(k, LOOP_SELECT, LT_VOID, also, value, none);
  loop_yield(k, 1, &value);
  loop_end(k);
  return loop_store(k, m->to, 0, NULL, 0, loop_result_of(k, head, 0)) != 0;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

/* A number's memory, which the kernel writes. */
static u32 fold_cell(Raise *r, LoopType t) {
  Native *n = r->n;
  NBuffer b = {.temp = true, .written = true, .cell = true, .elem = t, .version = ++n->versions};
  b.slot = plan_slot(n->c->plan, &(PlanSlot){.dtype = DT_i64});
  b.ir = native_buffer_param(n, t, LOOP_INOUT);
  if (vec_push(n->c->alloc, &n->buffers, b)) return b.ir;
  r->fn->failed = "out of memory";
  return 0;
}

static u32 fold_call(Raise *r, const Made *m, u32 from, u32 to, u32 best) {
  LoopOp op;
  u32 args[RAISE_WORDS + 6], count = 0, cell = fold_cell(r, fold_result(r, m, &op));
  if (!cell) return 0;
  args[count++] = raise_op(r, LOOP_SUB, to, from);
  args[count++] = from;
  args[count++] = cell;
  if (best) args[count++] = best;
  memcpy(args + count, m->own, sizeof *args * m->words);
  count += m->words;
  args[count++] = loop_const_i(r->fn, LT_I64, 0);
  args[count++] = loop_const_i(r->fn, LT_I64, 1);
  loop_call(r->fn, m->fn, count, args, 0, 0, NULL);
  return loop_load(r->fn, cell, 0, NULL, 0);
}

static const Made *fold_made(const Raise *r, u32 carry) {
  for (u32 i = 0; i < r->reduced_count; i++)
    if (r->reduced[i].fold == carry) return &r->reduced[i];
  return NULL;
}

u32 fold_chains(Raise *r, u32 from, u32 to) {
  LoopFn *fn = r->fn;
  u32 odd = 0;
  for (u32 i = 0; i < r->carried && i < RAISE_FOLDS; i++) {
    const Folded *f = &r->folds[i];
    const Made *m = fold_made(r, i);
    r->next[i] = r->now[i];
    if (f->kind != FOLD_CHAIN || !f->value) continue;
    if (!m) {
      LoopType t = fold_type(r, i);
      u32 trips = raise_op(r, LOOP_SUB, to, from), by = loop_const(fn, t, loop_node(r->kernel, f->value)->imm);
      if (t != LT_I64) trips = loop_emit(fn, LOOP_CONVERT, t, trips, 0, 0);
      r->next[i] = raise_op(r, LOOP_ADD, r->now[i], raise_op(r, LOOP_MUL, trips, by));
      continue;
    }
    u32 made = fold_call(r, m, from, to, 0);
    if (!f->picked) {
      r->next[i] = raise_op(r, (LoopOp)f->op, r->now[i], made);
      continue;
    }
    r->beats[i] = raise_op(r, (LoopOp)f->by, made, r->now[i]);
    r->next[i] = loop_emit(fn, LOOP_SELECT, LT_VOID, r->beats[i], made, r->now[i]);
    if (!loop_is_float(fold_type(r, i))) continue;
    u32 zero = raise_op(r, LOOP_AND, r->beats[i],
                        raise_op(r, LOOP_EQ, made, loop_const_i(fn, fold_type(r, i), 0)));
    odd = odd ? raise_op(r, LOOP_OR, odd, zero) : zero;
  }
  return odd;
}

void fold_latches(Raise *r, u32 from, u32 to) {
  LoopFn *fn = r->fn;
  for (u32 i = 0; i < r->carried && i < RAISE_FOLDS; i++) {
    const Folded *f = &r->folds[i];
    if (f->kind != FOLD_LATCH) continue;
    LoopType t = fold_type(r, i);
    u32 at = 0, found, value;
    if (!f->rival) at = fold_call(r, fold_made(r, i), from, to, 0);
    found = f->rival ? r->beats[f->rival - 1] : raise_op(r, LOOP_GE, at, loop_const_i(fn, LT_I64, 0));
    u32 head = loop_begin_if(fn, found, 1, &t);
    if (f->rival) at = fold_call(r, fold_made(r, i), from, to, r->next[f->rival - 1]);
    if (f->rival && !fold_is_first(f)) { /* where nothing is picked, the extreme of nothing may still be no less */
      u32 any = raise_op(r, LOOP_GE, at, loop_const_i(fn, LT_I64, 0));
      value = raise_value(r, f->node, raise_op(r, LOOP_MAX, at, from));
      value = loop_emit(fn, LOOP_SELECT, LT_VOID, any, value, r->now[i]);
    } else {
      value = raise_value(r, f->node, at);
    }
    loop_yield(fn, 1, &value);
    loop_else(fn);
    loop_yield(fn, 1, &r->now[i]);
    loop_end(fn);
    r->next[i] = loop_result_of(fn, head, 0);
  }
}

/* ptx_best.c — the number of the greatest or least element (argmax, argmin), spread over the grid in one read.
 *
 * The loop IR has two reductions for it: the greatest value, then the least number of an element that is equal to it,
 * or is NaN. The second one reads what the first one gives, so that its blocks could not be done beside those of the
 * first. Here both are done together: a thread keeps the best element so far and its number, and a later one takes its
 * place where it is better: greater (less), or NaN in front of a number. Of equal ones the least number stays; zeros
 * are equal, whatever their sign, and NaN is as good as NaN, as in the second reduction. What threads have is joined
 * by the same rule in any order, since no two elements have one number.
 *
 * No element yet is the number NONE, with the identity of the first reduction: only elements that are equal to that
 * leave it there, and then the first one is meant. */
#include "gpu/ptx_writer.h"

enum { BEST_WARP = 32, BEST_ELEMENTS = 4, BEST_RESULTS = 8 /* at a time: elements, or what items left of blocks */,
       BEST_BYTES = 16 /* of shared memory for a warp: value, number */ };
_Static_assert(BEST_BYTES * 32 <= PTX_ROW_PARTIAL_BYTES, "what a launch gives");

/* ---- which kernels ---------------------------------------------------------------------------------------- */

typedef struct Reads {
  u32 id;
  bool found;
} Reads;

static void ask_reads(void *ctx, u32 id) {
  Reads *r = ctx;
  r->found |= id == r->id;
}

static bool same_element(const LoopFn *fn, const LoopNode *a, u32 i, const LoopNode *b, u32 j) {
  if (a->op != LOOP_LOAD || b->op != LOOP_LOAD || a->a != b->a || a->imm != b->imm || a->count != b->count ||
      a->mem != b->mem || a->type != b->type || !loop_access_is_affine(fn, a))
    return false;
  for (u32 k = 0; k < a->count; k++) {
    LoopTerm s = loop_terms(fn, a)[k];
    const LoopTerm *t = &loop_terms(fn, b)[k];
    if (s.var == i) s.var = j;
    if (!loop_terms_equal(&s, t)) return false;
  }
  return true;
}

/* or(eq(element, best), ne(element, element)), or eq alone of integers: body[*i …], *i moved behind it. */
static bool take_equal(const LoopFn *fn, u32 best, u32 element, u32 *i, u32 *equal) {
  u32 first = fn->body.data[*i];
  const LoopNode *eq = loop_node(fn, first);
  if (eq->op != LOOP_EQ || !((eq->a == element && eq->b == best) || (eq->a == best && eq->b == element))) return false;
  *equal = first;
  *i += 1;
  if (!loop_is_float(loop_type_of(fn, element))) return true;
  u32 other = fn->body.data[*i], both = fn->body.data[*i + 1];
  const LoopNode *ne = loop_node(fn, other), *or = loop_node(fn, both);
  *equal = both;
  *i += 2;
  return ne->op == LOOP_NE && ne->a == element && ne->b == element && or->op == LOOP_OR && or->a == first &&
         or->b == other;
}

bool ptx_is_best(const LoopFn *fn, u32 head, u32 second) {
  u32 i = 0, k = 0, equal;
  while (fn->body.data[i] != head) i++;
  while (fn->body.data[k] != second) k++;
  if (ptx_end_of(fn, i) != i + 3 || k <= i) return false;
  const LoopNode *one = loop_node(fn, head), *two = loop_node(fn, second);
  u32 best = loop_result_of(fn, head, 0), element = fn->body.data[i + 1], again = fn->body.data[k + 1], from = k;
  const LoopNode *yield = loop_node(fn, fn->body.data[i + 2]);
  if (one->op != LOOP_REDUCE || (one->aux != LOOP_REDUCE_MAX && one->aux != LOOP_REDUCE_MIN) || one->a != 1 ||
      two->op != LOOP_REDUCE || two->aux != LOOP_REDUCE_MIN || two->a != 1 ||
      loop_type_of(fn, loop_result_of(fn, second, 0)) != LT_I64 || loop_type_of(fn, best) == LT_I1 ||
      loop_trips_of(fn, head, 0) != loop_trips_of(fn, second, 0))
    return false;
  if (yield->op != LOOP_YIELD || loop_list(fn, yield)[0] != element ||
      !same_element(fn, loop_node(fn, element), loop_index_of(head, 0), loop_node(fn, again), loop_index_of(second, 0)))
    return false;
  u32 end = ptx_end_of(fn, k);
  k += 2;
  if (end - k < 3 || !take_equal(fn, best, again, &k, &equal) || k + 2 != end) return false;
  u32 chosen = fn->body.data[k];
  const LoopNode *select = loop_node(fn, chosen), *last = loop_node(fn, fn->body.data[k + 1]);
  if (select->op != LOOP_SELECT || select->a != equal || select->b != loop_index_of(second, 0) ||
      loop_node(fn, select->c)->op != LOOP_CONST || loop_node(fn, select->c)->imm != (u64)INT64_MAX ||
      last->op != LOOP_YIELD || loop_list(fn, last)[0] != chosen)
    return false;
  for (i = 0; i < fn->body.count; i++) { /* nothing else asks for the value: of zeros it would need the sign */
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    Reads r = {.id = best};
    loop_each_operand(fn, n, ask_reads, &r);
    if (r.found && (i <= from || i >= end || n->op != LOOP_EQ)) return false;
  }
  return true;
}

/* ---- the best so far ---------------------------------------------------------------------------------------- */

typedef struct Best {
  u32 head, second;
  LoopType type;
  bool greatest;
  Opnd value, number; /* number: i64 */
} Best;

static Best begin_best(PtxWriter *w) {
  const LoopFn *fn = w->f->fn;
  Best b = {.head = w->split->heads[0], .second = w->split->heads[1]};
  b.type = loop_type_of(fn, loop_result_of(fn, b.head, 0));
  b.greatest = loop_node(fn, b.head)->aux == LOOP_REDUCE_MAX;
  b.value = ptx_new_for(w, b.type);
  b.number = ptx_new(w, REG_RD);
  u64 none = loop_reduce_identity((LoopReduce)loop_node(fn, b.head)->aux, b.type);
  ptx_move(w, b.type, b.value, ptx_const(b.type, none));
  INS(w, "mov.u64", b.number, ptx_number(INT64_MAX));
  return b;
}

/* The element takes the place of the best one; `any_order`: it may stand in front of that. */
static void take_better(PtxWriter *w, Best *b, Opnd value, Opnd number, bool any_order) {
  Opnd better = ptx_new(w, REG_P), other = ptx_new(w, REG_P), same = ptx_new(w, REG_P);
  INS_T(w, b->greatest ? "setp.gt" : "setp.lt", b->type, better, value, b->value);
  if (any_order) INS_T(w, "setp.eq", b->type, same, value, b->value);
  if (loop_is_float(b->type)) {
    Opnd held = ptx_new(w, REG_P), both = ptx_new(w, REG_P);
    INS_T(w, "setp.nan", b->type, other, value, value);
    INS_T(w, "setp.nan", b->type, held, b->value, b->value);
    if (any_order) {
      INS(w, "and.pred", both, other, held);
      INS(w, "or.pred", same, same, both);
    }
    INS(w, "not.pred", held, held);
    INS(w, "and.pred", other, other, held);
    INS(w, "or.pred", better, better, other);
  }
  if (any_order) {
    Opnd before = ptx_new(w, REG_P);
    INS(w, "setp.lt.s64", before, number, b->number);
    INS(w, "and.pred", same, same, before);
    INS(w, "or.pred", better, better, same);
  }
  INS_T(w, "selp", b->type, b->value, value, b->value, better);
  INS(w, "selp.u64", b->number, number, b->number, better);
}

/* What the threads of a warp have joined: each has it. */
static void join_warp(PtxWriter *w, Best *b) {
  for (u32 bit = BEST_WARP / 2; bit; bit /= 2) {
    Opnd value = ptx_exchange(w, b->type, b->value, bit), number = ptx_exchange(w, LT_I64, b->number, bit);
    take_better(w, b, value, number, true);
  }
}

/* What items left of block number `number` of the trip. */
static void read_results(PtxWriter *w, const Best *b, Opnd number, Opnd *value, Opnd *place) {
  OpenHead h = {.head = b->head, .number = number};
  *value = ptx_scratch_load(w, &h);
  h.head = b->second;
  *place = ptx_scratch_load(w, &h);
}

/* Elements number, + step … below limit, so many at a time as long as there are so many. */
static void put_some(PtxWriter *w, Best *b, Opnd number, Opnd limit, Opnd step, u32 copies, bool results) {
  Opnd *own = w->f->values, *values[BEST_RESULTS], numbers[BEST_RESULTS], value[BEST_RESULTS], place[BEST_RESULTS],
       out = ptx_new(w, REG_P), stride = ptx_new(w, REG_RD);
  u32 label = ++w->labels, index = loop_index_of(b->head, 0), from = 0;
  ptx_label(w, "L%u_trip", label);
  for (u32 c = 0; c < copies; c++) {
    numbers[c] = c ? ptx_new(w, REG_RD) : number;
    if (c) INS(w, "add.u64", numbers[c], numbers[c - 1], step);
  }
  INS(w, "setp.ge.u64", out, numbers[copies - 1], limit);
  ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, label);
  w->depth++;
  while (w->f->fn->body.data[from] != b->head) from++;
  if (ptx_copies_begin(w, copies, values))
    for (u32 c = 0; c < copies; c++) {
      w->f->values = values[c];
      values[c][index] = numbers[c];
      if (results) {
        read_results(w, b, numbers[c], &value[c], &place[c]);
        continue;
      }
      ptx_put_statement(w, w->f->fn->body.data[from + 1]);
      value[c] = ptx_in_register(w, ptx_value(w, w->f->fn->body.data[from + 1]));
      place[c] = numbers[c];
    }
  ptx_copies_end(w, copies, values, own);
  for (u32 c = 0; c < copies && !w->failed; c++) take_better(w, b, value[c], place[c], false);
  INS(w, "mul.lo.u64", stride, step, ptx_number(copies));
  INS(w, "add.u64", number, number, stride);
  ptx_line(w, "bra L%u_trip;", label);
  w->depth--;
  ptx_label(w, "L%u_out", label);
}

static void put_many(PtxWriter *w, Best *b, Opnd number, Opnd limit, Opnd step, bool results) {
  bool lanes = w->spread == PTX_WARPS;
  w->spread_depth += lanes;
  put_some(w, b, number, limit, step, results ? BEST_RESULTS : BEST_ELEMENTS, results);
  put_some(w, b, number, limit, step, 1, results);
  w->spread_depth -= lanes;
}

/* ---- entries ------------------------------------------------------------------------------------------------ */

/* The number is the result; the first one where every element is the identity. */
static void put_result(PtxWriter *w, Best *b, Opnd total) {
  Opnd none = ptx_new(w, REG_P), some = ptx_new(w, REG_P),
       result = ptx_define(w, loop_result_of(w->f->fn, b->second, 0));
  INS(w, "setp.eq.s64", none, b->number, ptx_number(INT64_MAX));
  INS(w, "setp.ne.u64", some, total, ptx_number(0));
  INS(w, "and.pred", none, none, some);
  INS(w, "selp.u64", result, ptx_number(0), b->number, none);
}

void ptx_put_best(PtxWriter *w) {
  Best b = begin_best(w);
  Opnd number = ptx_new(w, REG_RD), limit = ptx_new(w, REG_RD), step = ptx_number(1),
       total = ptx_in_register(w, w->phase == PTX_WHOLE ? ptx_value(w, loop_trips_of(w->f->fn, b.head, 0)) : w->total);
  bool blocks = w->phase == PTX_PART || w->phase == PTX_JOIN;
  INS(w, "mov.u64", number, ptx_number(0));
  INS(w, "mov.u64", limit, total);
  if (blocks) {
    INS(w, "mul.lo.u64", number, w->item_block, ptx_number(w->split->block));
    INS(w, "add.u64", limit, number, ptx_number(w->split->block));
    INS(w, "min.u64", limit, limit, total);
  }
  if (w->spread == PTX_WARPS) {
    Opnd lane = ptx_new(w, REG_RD);
    INS(w, "cvt.u64.u32", lane, w->lane);
    INS(w, "add.u64", number, number, lane);
    step = ptx_number(BEST_WARP);
  }
  put_many(w, &b, number, limit, step, w->phase == PTX_JOIN || w->phase == PTX_REST);
  if (w->spread == PTX_WARPS) join_warp(w, &b);
  if (!blocks) {
    put_result(w, &b, total);
    return;
  }
  ptx_scratch_store(w, &(OpenHead){.head = b.head}, b.value);
  ptx_scratch_store(w, &(OpenHead){.head = b.second}, b.number);
}

void ptx_put_best_rest(PtxWriter *w, const PtxBlock *block) {
  Best b = begin_best(w);
  Opnd number = ptx_new(w, REG_RD), step = ptx_new(w, REG_RD), at = ptx_new(w, REG_R), first = ptx_new(w, REG_P),
       there = ptx_new(w, REG_P);
  INS(w, "cvt.u64.u32", number, block->thread);
  INS(w, "cvt.u64.u32", step, block->threads);
  put_many(w, &b, number, w->total, step, true);
  join_warp(w, &b);
  INS(w, "setp.eq.u32", first, block->lane, ptx_const(LT_U32, 0));
  INS(w, "mad.lo.u32", at, block->warp, ptx_const(LT_U32, BEST_BYTES), block->partial);
  ptx_shared_store_where(w, first, b.type, at, b.value);
  INS(w, "add.u32", at, at, ptx_const(LT_U32, 8));
  ptx_shared_store_where(w, first, LT_U64, at, b.number);
  ptx_line(w, "bar.sync 0;");
  Opnd value = ptx_new_for(w, b.type), place = ptx_new(w, REG_RD), lane = ptx_new(w, REG_R);
  INS(w, "setp.lt.u32", there, block->lane, block->warps);
  INS(w, "selp.u32", lane, block->lane, ptx_const(LT_U32, 0), there); /* twice the same changes nothing */
  INS(w, "mad.lo.u32", at, lane, ptx_const(LT_U32, BEST_BYTES), block->partial);
  ptx_shared_load(w, b.type, value, at);
  INS(w, "add.u32", at, at, ptx_const(LT_U32, 8));
  ptx_shared_load(w, LT_U64, place, at);
  ptx_move(w, b.type, b.value, value);
  INS(w, "mov.u64", b.number, place);
  join_warp(w, &b);
  put_result(w, &b, w->total);
}

/* ptx_split.c — reductions of a few long rows spread over the whole grid: one kernel as three entries.
 *
 * The order of a reduction (ir.md section 10) is blocks, and blocks of block results. So the results of blocks can be
 * computed anywhere and joined afterwards, with the same bits:
 *
 *   NAME_part  an item is (trip, block): the body of each reduction for the elements of that block; its result goes to
 *              scratch memory
 *   NAME_join  the same for blocks of what another entry left there; as often as many are left
 *   NAME_rest  an item is a trip: the reductions of what is left, then the rest of the trip. In the order LANES a
 *              block of threads does it: each warp some blocks of what is left, joined through shared memory
 *
 * Scratch memory holds 8 bytes for each reduction, trip and block: block by block of a trip where a warp does an item
 * (order LANES), trip by trip of a block where a thread does it (order ROWS), so that neighbours read and write what
 * lies together. */
#include "gpu/ptx_writer.h"

#include <string.h>

/* Elements of an item where any order gives the same bits: so many that what items leave is little beside them. */
enum { EXACT_ROWS = 128, EXACT_LANES = 4096, EXACT_BEST = 8192, EXACT_REST = 512 /* of results */ };

/* ---- which kernels ---------------------------------------------------------------------------------------- */

typedef struct Taint {
  const u8 *of;
  bool found;
} Taint;

static void ask(void *ctx, u32 id) {
  Taint *t = ctx;
  t->found |= t->of[id] != 0;
}

static bool reads_a_result(const LoopFn *fn, const LoopNode *n, const u8 *of) {
  Taint t = {.of = of};
  loop_each_operand(fn, n, ask, &t);
  return t.found;
}

/* The trips of every axis are known before the launch: constants, or parameters. */
bool ptx_trips_are_given(const LoopFn *fn, u32 head) {
  for (u32 axis = 0; axis < loop_node(fn, head)->a; axis++) {
    u32 op = loop_node(fn, loop_trips_of(fn, head, axis))->op;
    if (op != LOOP_CONST && op != LOOP_PARAM) return false;
  }
  return true;
}

static bool same_trips(const LoopFn *fn, u32 a, u32 b) {
  if (loop_node(fn, a)->a != loop_node(fn, b)->a) return false;
  for (u32 axis = 0; axis < loop_node(fn, a)->a; axis++)
    if (loop_trips_of(fn, a, axis) != loop_trips_of(fn, b, axis)) return false;
  return true;
}

/* Takes in one reduction: all have the same elements and blocks. */
static bool take_head(const LoopFn *fn, u32 id, PtxSplit *s) {
  const LoopNode *n = loop_node(fn, id);
  LoopType t = loop_type_of(fn, loop_result_of(fn, id, 0));
  bool rows = n->op == LOOP_REDUCE && ptx_in_rows(fn, id);
  u32 block = ptx_is_exact(n, t) ? 0 : rows ? LOOP_ROW_BLOCK : loop_lanes(t) * LOOP_BLOCK_TRIPS;
  if (n->op != LOOP_REDUCE || s->count == PTX_SPLIT_HEADS || !ptx_trips_are_given(fn, id)) return false;
  if (!rows && ptx_body_has_lanes(fn, id)) return false;
  if (s->count && (s->rows != rows || !same_trips(fn, s->heads[0], id))) return false;
  if (block && s->block && block != s->block) return false;
  if (block) s->block = block;
  s->rows = rows;
  s->heads[s->count++] = id;
  return true;
}

/* One statement of the body at this depth of heads. What a reduction gives, and what is computed of that, must not be
 * read inside of another one. */
static bool take_statement(const LoopFn *fn, u32 id, u32 depth, PtxSplit *s) {
  const LoopNode *n = loop_node(fn, id);
  bool late = reads_a_result(fn, n, s->late);
  s->late[id] = late;
  if (depth > 1) return !late && n->op != LOOP_STORE;
  if (!loop_is_head(n)) return true;
  if (late || !take_head(fn, id, s)) return false;
  s->late[loop_result_of(fn, id, 0)] = true;
  return true;
}

bool ptx_split(const LoopFn *fn, Allocator *alloc, PtxSplit *s) {
  *s = (PtxSplit){.alloc = alloc, .nodes = fn->nodes.count};
  u32 i = 0; /* what stands in front of the outermost loop is done in each entry */
  while (i < fn->body.count && !loop_is_head(loop_node(fn, fn->body.data[i]))) i++;
  if (fn->kind != LOOP_KERNEL || i == fn->body.count) return false;
  const LoopNode *par = loop_node(fn, fn->body.data[i++]);
  if (par->op != LOOP_PAR || par->a != 1 || par->b != 0 || !(s->late = mem_alloc_zero(alloc, s->nodes))) return false;
  bool ok = true;
  u32 depth = 1;
  for (; i < fn->body.count && depth && ok; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (n->op == LOOP_END) {
      depth--;
      continue;
    }
    if (depth == 1 && s->count == 1 && n->op == LOOP_REDUCE && ptx_is_best(fn, s->heads[0], id)) {
      s->best = true;
      s->heads[s->count++] = id;
      s->late[loop_result_of(fn, id, 0)] = true;
      i = ptx_end_of(fn, i);
      continue;
    }
    ok = !(s->best && loop_is_head(n)) && take_statement(fn, id, depth, s);
    if (loop_is_head(n)) depth++;
  }
  if (ok && i == fn->body.count && s->count) {
    s->rest = s->block && !s->rows ? s->block : EXACT_REST;
    if (!s->block) s->block = s->rows ? EXACT_ROWS : s->best ? EXACT_BEST : EXACT_LANES;
    return true;
  }
  ptx_split_free(s);
  return false;
}

void ptx_split_free(PtxSplit *s) {
  mem_free(s->alloc, s->late, s->nodes);
  s->late = NULL;
}

/* ---- items -------------------------------------------------------------------------------------------------- */

/* Items of part and join, number g, + number of all threads (or warps), … */
void ptx_items_begin(PtxWriter *w, u32 label) {
  Opnd trips = ptx_new(w, REG_RD), items = ptx_new(w, REG_RD), out = ptx_new(w, REG_P), fast = ptx_new(w, REG_RD),
       slow = ptx_new(w, REG_RD);
  w->item = ptx_new(w, REG_RD);
  INS(w, "sub.u64", trips, w->hi, w->lo);
  INS(w, "mul.lo.u64", items, trips, w->blocks);
  INS(w, "mov.u64", w->item, w->index);
  ptx_label(w, "L%u_trip", label);
  INS(w, "setp.ge.u64", out, w->item, items);
  ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, label);
  w->depth++;
  INS(w, "div.u64", slow, w->item, w->split->rows ? trips : w->blocks);
  INS(w, "rem.u64", fast, w->item, w->split->rows ? trips : w->blocks);
  w->item_trip = w->split->rows ? fast : slow;
  w->item_block = w->split->rows ? slow : fast;
}

void ptx_items_end(PtxWriter *w, u32 label) {
  ptx_label(w, "L%u_next", label);
  INS(w, "add.u64", w->item, w->item, w->step);
  ptx_line(w, "bra L%u_trip;", label);
  w->depth--;
  ptx_label(w, "L%u_out", label);
}

/* The address in scratch memory of one result of reduction number k: `count` blocks of each trip lie there. */
static Opnd scratch_at(PtxWriter *w, Opnd memory, u32 k, Opnd trip, Opnd block, Opnd count) {
  Opnd trips = ptx_new(w, REG_RD), at = ptx_new(w, REG_RD), row = ptx_new(w, REG_RD);
  INS(w, "sub.u64", trips, w->hi, w->lo);
  if (w->split->rows) {
    INS(w, "mad.lo.u64", row, count, ptx_number(k), block);
    INS(w, "mad.lo.u64", at, row, trips, trip);
  } else {
    INS(w, "mad.lo.u64", row, trips, ptx_number(k), trip);
    INS(w, "mad.lo.u64", at, row, count, block);
  }
  INS(w, "mad.lo.u64", at, at, ptx_number(8), memory);
  return at;
}

static u32 number_of(const PtxWriter *w, u32 head) {
  u32 k = 0;
  while (w->split->heads[k] != head) k++;
  return k;
}

static const char *word_type(LoopType t) { return t == LT_I1 ? "u32" : ptx_type(t); }

Opnd ptx_scratch_load(PtxWriter *w, const OpenHead *h) {
  LoopType t = loop_type_of(w->f->fn, loop_result_of(w->f->fn, h->head, 0));
  Opnd v = ptx_new_for(w, t), word = t == LT_I1 ? ptx_new(w, REG_R) : v;
  Opnd at = scratch_at(w, w->from, number_of(w, h->head), w->item_trip, h->number, w->total);
  ptx_line(w, "ld.global.%s %s, [%s];", word_type(t), ptx_text(word).s, ptx_text(at).s);
  if (t == LT_I1) INS(w, "setp.ne.u32", v, word, ptx_const(LT_U32, 0));
  return v;
}

void ptx_scratch_store(PtxWriter *w, const OpenHead *h, Opnd v) {
  LoopType t = loop_type_of(w->f->fn, loop_result_of(w->f->fn, h->head, 0));
  Opnd word = ptx_in_register(w, v), first = ptx_new(w, REG_P);
  Opnd at = scratch_at(w, w->to, number_of(w, h->head), w->item_trip, w->item_block, w->blocks);
  if (t == LT_I1) {
    word = ptx_new(w, REG_R);
    INS(w, "selp.u32", word, ptx_const(LT_U32, 1), ptx_const(LT_U32, 0), v);
  }
  if (w->spread == PTX_WARPS) INS(w, "setp.eq.u32", first, w->lane, ptx_const(LT_U32, 0));
  ptx_line(w, "%s%s%sst.global.%s [%s], %s;", w->spread == PTX_WARPS ? "@" : "",
           w->spread == PTX_WARPS ? ptx_text(first).s : "", w->spread == PTX_WARPS ? " " : "", word_type(t),
           ptx_text(at).s, ptx_text(word).s);
}

enum { SCRATCH_COPIES = 16 };

/* Elements number, + stride, … below `limit`, 16 at a time, whose words lie `step` bytes apart from `at` on. `lanes`:
 * they are a warp's. */
static void put_scratch_loop(PtxWriter *w, OpenHead *h, Opnd limit, Opnd at, Opnd step, u32 stride,
                             bool lanes) {
  LoopType t = loop_type_of(w->f->fn, loop_result_of(w->f->fn, h->head, 0));
  Opnd values[SCRATCH_COPIES], words[SCRATCH_COPIES], last = ptx_new(w, REG_RD), out = ptx_new(w, REG_P),
       number = h->number, each = ptx_new(w, REG_RD);
  ptx_label(w, "L%u_many", h->label);
  INS(w, "add.u64", last, number, ptx_number((SCRATCH_COPIES - 1) * (i64)stride));
  INS(w, "setp.ge.u64", out, last, limit);
  ptx_line(w, "@%s bra L%u_few;", ptx_text(out).s, h->label);
  w->depth++;
  INS(w, "mov.u64", each, at);
  for (u32 c = 0; c < SCRATCH_COPIES; c++) {
    values[c] = ptx_new_for(w, t);
    words[c] = t == LT_I1 ? ptx_new(w, REG_R) : values[c];
    ptx_line(w, "ld.global.%s %s, [%s];", word_type(t), ptx_text(words[c]).s, ptx_text(each).s);
    INS(w, "add.u64", each, each, step);
  }
  INS(w, "mov.u64", at, each);
  for (u32 c = 0; c < SCRATCH_COPIES; c++) {
    if (t == LT_I1) INS(w, "setp.ne.u32", values[c], words[c], ptx_const(LT_U32, 0));
    if (lanes) {
      ptx_fold_give(w, h, c, (Opnd){0}, values[c]);
      continue;
    }
    if (c) {
      h->number = ptx_new(w, REG_RD);
      INS(w, "add.u64", h->number, number, ptx_number(c));
    }
    ptx_fold_take(w, h, values[c]);
  }
  h->number = number;
  INS(w, "add.u64", number, number, ptx_number(SCRATCH_COPIES * (i64)stride));
  ptx_line(w, "bra L%u_many;", h->label);
  w->depth--;
  ptx_label(w, "L%u_few", h->label);
}

void ptx_put_scratch_trips(PtxWriter *w, OpenHead *h) {
  Opnd step = ptx_new(w, REG_RD), trips = ptx_new(w, REG_RD);
  bool spread = h->fold == FOLD_SPREAD;
  Opnd at = scratch_at(w, w->from, number_of(w, h->head), w->item_trip, h->number, w->total);
  if (spread) {
    INS(w, "mov.u64", step, ptx_number(32 * 8));
  } else {
    INS(w, "sub.u64", trips, w->hi, w->lo);
    INS(w, "mul.lo.u64", step, trips, ptx_number(8)); /* order ROWS: trip by trip of a block */
  }
  put_scratch_loop(w, h, h->limit, at, step, spread ? 32 : 1, spread);
}

/* What is left of one reduction: warp b joins the blocks b, b + number of warps, … */
static void put_rest_of(PtxWriter *w, PtxBlock *b, u32 head) {
  const LoopFn *fn = w->f->fn;
  LoopType t = loop_type_of(fn, loop_result_of(fn, head, 0));
  OpenHead h = {.head = head, .label = ++w->labels, .fold = FOLD_SPREAD, .total = w->total};
  Opnd place = ptx_block_place(w, b), block = ptx_new(w, REG_R), first = ptx_new(w, REG_RD), out = ptx_new(w, REG_P),
       lane = ptx_new(w, REG_RD), blocks = ptx_new(w, REG_RD), count = ptx_new(w, REG_R), low = ptx_new(w, REG_R),
       empty = ptx_new(w, REG_P);
  u32 length = w->split->rest;
  h.number = ptx_new(w, REG_RD);
  h.limit = ptx_new(w, REG_RD);
  ptx_fold_make(w, &h);
  INS(w, "mov.u32", block, b->warp);
  INS(w, "cvt.u64.u32", lane, b->lane);
  ptx_label(w, "L%u_block", h.label);
  INS(w, "mul.wide.u32", first, block, ptx_const(LT_U32, length));
  INS(w, "setp.ge.u64", out, first, w->total);
  ptx_line(w, "@%s bra L%u_joined;", ptx_text(out).s, h.label);
  w->depth++;
  INS(w, "add.u64", h.limit, first, ptx_number(length));
  INS(w, "min.u64", h.limit, h.limit, w->total);
  INS(w, "add.u64", h.number, first, lane);
  ptx_fold_clear(w, &h);
  ptx_put_scratch_trips(w, &h);
  ptx_label(w, "L%u_trip", h.label);
  INS(w, "setp.ge.u64", out, h.number, h.limit);
  ptx_line(w, "@%s bra L%u_lanes;", ptx_text(out).s, h.label);
  INS(w, "cvt.u32.u64", low, h.number);
  ptx_fold_give(w, &h, UINT32_MAX, low, ptx_scratch_load(w, &h));
  INS(w, "add.u64", h.number, h.number, ptx_number(32));
  ptx_line(w, "bra L%u_trip;", h.label);
  ptx_label(w, "L%u_lanes", h.label);
  ptx_block_leave(w, b, &h, place, block);
  INS(w, "add.u32", block, block, b->warps);
  ptx_line(w, "bra L%u_block;", h.label);
  w->depth--;
  ptx_label(w, "L%u_joined", h.label);
  INS(w, "add.u64", blocks, w->total, ptx_number(length - 1));
  INS(w, "div.u64", blocks, blocks, ptx_number(length));
  INS(w, "cvt.u32.u64", count, blocks);
  Opnd v = ptx_block_join(w, b, &h, place, count), result = ptx_define(w, loop_result_of(fn, head, 0));
  INS(w, "setp.eq.u64", empty, w->total, ptx_number(0));
  ptx_select(w, t, result, empty, ptx_const(t, loop_reduce_empty((LoopReduce)loop_node(fn, head)->aux, t)), v);
}

void ptx_put_rest(PtxWriter *w) {
  const LoopFn *fn = w->f->fn;
  PtxBlock b = {0};
  u32 first = 0;
  for (; !loop_is_head(loop_node(fn, fn->body.data[first])); first++) ptx_put_statement(w, fn->body.data[first]);
  ptx_block_begin(w, &b);
  u32 label = ++w->labels;
  Opnd index = ptx_define(w, loop_index_of(fn->body.data[first], 0)), step = ptx_new(w, REG_RD),
       out = ptx_new(w, REG_P), block = ptx_new(w, REG_R), grid = ptx_new(w, REG_R);
  ptx_line(w, "mov.u32 %s, %%ctaid.x;", ptx_text(block).s);
  ptx_line(w, "mov.u32 %s, %%nctaid.x;", ptx_text(grid).s);
  w->item_trip = ptx_new(w, REG_RD);
  INS(w, "cvt.u64.u32", index, block);
  INS(w, "add.s64", index, index, w->lo);
  INS(w, "cvt.u64.u32", step, grid);
  ptx_label(w, "L%u_trip", label);
  INS(w, "setp.ge.s64", out, index, w->hi);
  ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, label);
  w->depth++;
  INS(w, "sub.s64", w->item_trip, index, w->lo);
  /* where a check that fails goes on: all threads have the same values */
  if (!vec_push(w->alloc, &w->open, ((OpenHead){.head = fn->body.data[first], .label = label}))) w->failed = true;
  for (u32 i = first + 1; i + 1 < fn->body.count && !w->failed && !w->refused; i++) {
    u32 id = fn->body.data[i];
    w->lane = b.thread; /* thread 0 stores */
    if (!loop_is_head(loop_node(fn, id))) {
      ptx_put_statement(w, id);
      continue;
    }
    w->lane = b.lane;
    if (!w->split->best) put_rest_of(w, &b, id);
    else if (id == w->split->heads[0]) ptx_put_best_rest(w, &b);
    i = ptx_end_of(fn, i);
  }
  if (w->open.count) w->open.count--;
  ptx_label(w, "L%u_next", label);
  ptx_line(w, "bar.sync 0;"); /* all have read the results of this trip */
  INS(w, "add.s64", index, index, step);
  ptx_line(w, "bra.uni L%u_trip;", label);
  w->depth--;
  ptx_label(w, "L%u_out", label);
}

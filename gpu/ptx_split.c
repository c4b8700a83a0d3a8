/* ptx_split.c — reductions of a few long rows spread over the whole grid: one kernel as three entries.
 *
 * The order of a reduction (ir.md section 10) is blocks, and blocks of block results. So the results of blocks can be
 * computed anywhere and joined afterwards, with the same bits:
 *
 *   NAME_part  an item is (trip, block): the body of each reduction for the elements of that block; its result goes to
 *              scratch memory
 *   NAME_join  the same for blocks of what another entry left there; as often as many are left
 *   NAME_rest  an item is a trip: the reductions of what is left, then the rest of the trip
 *
 * Scratch memory holds 8 bytes for each reduction, trip and block: block by block of a trip where a warp does an item
 * (order LANES), trip by trip of a block where a thread does it (order ROWS), so that neighbours read and write what
 * lies together. */
#include "gpu/ptx_writer.h"

#include <string.h>

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
static bool trips_are_given(const LoopFn *fn, u32 head) {
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
  bool rows = n->mem == LOOP_ORDER_ROWS;
  u32 block = ptx_is_exact(n, t) ? 0 : rows ? LOOP_ROW_BLOCK : loop_lanes(t) * LOOP_BLOCK_TRIPS;
  if (n->op != LOOP_REDUCE || s->count == PTX_SPLIT_HEADS || !trips_are_given(fn, id)) return false;
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
    ok = take_statement(fn, id, depth, s);
    if (loop_is_head(n)) depth++;
  }
  if (ok && i == fn->body.count && s->count) {
    if (!s->block) s->block = s->rows ? LOOP_ROW_BLOCK : 1024; /* exact: any block */
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

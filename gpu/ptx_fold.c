/* ptx_fold.c — reductions and scans as PTX, in the orders of ir.md section 10.
 *
 * FOLD_SERIAL  exact operations, inside one thread: one accumulator.
 * FOLD_ROWS    one thread: an accumulator per level, each of 64 elements of the level below. The number of the
 *              element says which levels are complete: level k when the lowest 6 (k + 1) bits of number + 1 are
 *              zero.
 * FOLD_SCAN    likewise in segments of 16, with the total before each segment.
 * FOLD_SPREAD  a warp: element e belongs to lane e mod W. Exact operations: lanes of their own, joined at the end.
 *              Float sums and products: blocks of 64 W elements; a thread holds W / 32 lanes. The lanes of a block
 *              are joined as l with l + W/2, W/4 … 1, so l and l + 32 first, within the thread, then a butterfly;
 *              all threads have the result.
 * FOLD_PUSH    the same lanes, but every thread has every element (a collective stands in the body): its owner adds it.
 *
 * The results of blocks are elements of the level above. An accumulator begins with the exact identity (-0.0, 1), so
 * a level of one element hands it on unchanged and levels that are not needed cost no bits. LANE_LEVELS levels hold
 * (64 W)^4 elements, FOLD_LEVELS levels of rows 64^8: more than any memory. */
#include "gpu/ptx_writer.h"

#include <stdio.h>

enum { WARP = 32 };

static Opnd small(u32 v) { return ptx_const(LT_U32, v); }

bool ptx_is_exact(const LoopNode *n, LoopType t) {
  return !loop_is_float(t) || (n->aux != LOOP_REDUCE_ADD && n->aux != LOOP_REDUCE_MUL);
}

static LoopType fold_type(const PtxWriter *w, u32 head) {
  return loop_type_of(w->f->fn, loop_result_of(w->f->fn, head, 0));
}

static u32 log2_of(u32 v) { return 31 - (u32)__builtin_clz(v); }

bool ptx_in_rows(const LoopFn *fn, u32 head) {
  const LoopNode *n = loop_node(fn, head);
  if (n->mem == LOOP_ORDER_ROWS || !ptx_is_exact(n, loop_type_of(fn, loop_result_of(fn, head, 0))))
    return n->mem == LOOP_ORDER_ROWS;
  u32 i = 0;
  while (i < fn->body.count && !loop_is_head(loop_node(fn, fn->body.data[i]))) i++;
  u32 outer = i < fn->body.count ? fn->body.data[i] : 0;
  if (!outer || outer == head || loop_node(fn, outer)->op != LOOP_PAR || loop_node(fn, outer)->a != 1) return false;
  while (fn->body.data[i] != head) i++;
  bool across = false;
  for (u32 end = ptx_end_of(fn, i++); i < end; i++) {
    const LoopNode *access = loop_node(fn, fn->body.data[i]);
    if (loop_is_head(access)) return false;
    if (access->op != LOOP_LOAD) continue;
    across |= ptx_goes_along(fn, access, loop_index_of(outer, 0));
    for (u32 axis = 0; axis < n->a; axis++)
      if (ptx_goes_along(fn, access, loop_index_of(head, axis))) return false;
  }
  return across;
}

bool ptx_body_has_lanes(const LoopFn *fn, u32 head) {
  u32 depth = 0;
  bool inside = head == 0;
  for (u32 i = 0; i < fn->body.count; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (id == head) inside = true;
    else if (inside && n->op == LOOP_REDUCE && !ptx_in_rows(fn, id)) return true;
    if (!inside || !head) continue;
    if (loop_is_head(n)) depth++;
    if (n->op == LOOP_END && --depth == 0) return false;
  }
  return false;
}

FoldMode ptx_fold_mode(const PtxWriter *w, u32 head) {
  const LoopNode *n = ptx_node(w, head);
  if (n->op == LOOP_SCAN) return FOLD_SCAN;
  bool exact = ptx_is_exact(n, fold_type(w, head));
  if (ptx_in_rows(w->f->fn, head)) return exact ? FOLD_SERIAL : FOLD_ROWS;
  if (w->spread_depth) return FOLD_SERIAL; /* exact: any other reduction here has made the one outside FOLD_PUSH */
  if (ptx_body_has_lanes(w->f->fn, head)) return exact ? FOLD_SERIAL : FOLD_PUSH;
  return FOLD_SPREAD;
}

/* ---- lanes ------------------------------------------------------------------------------------------------- */

static LoopOp op_of(const PtxWriter *w, const OpenHead *h) {
  return loop_reduce_op((LoopReduce)ptx_node(w, h->head)->aux);
}

static Opnd identity(const PtxWriter *w, const OpenHead *h) {
  LoopType t = fold_type(w, h->head);
  return ptx_const(t, loop_reduce_identity((LoopReduce)ptx_node(w, h->head)->aux, t));
}

Opnd ptx_exchange(PtxWriter *w, LoopType t, Opnd v, u32 bit) {
  Opnd r = ptx_new_for(w, t);
  if (loop_type_bytes(t) == 8) {
    Opnd low = ptx_new(w, REG_R), high = ptx_new(w, REG_R);
    ptx_line(w, "mov.b64 {%s, %s}, %s;", ptx_text(low).s, ptx_text(high).s, ptx_text(v).s);
    ptx_line(w, "shfl.sync.bfly.b32 %s, %s, %u, 31, 0xFFFFFFFF;", ptx_text(low).s, ptx_text(low).s, bit);
    ptx_line(w, "shfl.sync.bfly.b32 %s, %s, %u, 31, 0xFFFFFFFF;", ptx_text(high).s, ptx_text(high).s, bit);
    ptx_line(w, "mov.b64 %s, {%s, %s};", ptx_text(r).s, ptx_text(low).s, ptx_text(high).s);
    return r;
  }
  Opnd bits = ptx_new(w, REG_R);
  if (t == LT_I1) INS(w, "selp.u32", bits, small(1), small(0), v);
  else INS(w, "mov.b32", bits, v);
  ptx_line(w, "shfl.sync.bfly.b32 %s, %s, %u, 31, 0xFFFFFFFF;", ptx_text(bits).s, ptx_text(bits).s, bit);
  if (t == LT_I1) INS(w, "setp.ne.u32", r, bits, small(0));
  else INS(w, "mov.b32", r, bits);
  return r;
}

static u32 lanes_per_thread(const PtxWriter *w, const OpenHead *h) {
  LoopType t = fold_type(w, h->head);
  return ptx_is_exact(ptx_node(w, h->head), t) ? 1 : loop_lanes(t) / WARP;
}

/* The lanes that 32 threads hold joined: every thread has the result. */
static Opnd butterfly(PtxWriter *w, LoopOp op, LoopType t, Opnd v) {
  for (u32 bit = WARP / 2; bit; bit /= 2) v = ptx_operation(w, op, t, v, ptx_exchange(w, t, v, bit), (Opnd){0});
  return v;
}

/* The lanes of a level joined. Float sums and products do so on several levels: by a function of the module. */
static Opnd join_lanes(PtxWriter *w, OpenHead *h, u32 level) {
  LoopType t = fold_type(w, h->head);
  LoopOp op = op_of(w, h);
  if (ptx_is_exact(ptx_node(w, h->head), t)) return butterfly(w, op, t, h->acc[level][0]);
  u32 parts = lanes_per_thread(w, h);
  PtxAside a;
  char name[64];
  snprintf(name, sizeof name, "join_%s_%s", loop_op_text(op), loop_type_text(t));
  if (ptx_function_begin(w, &a, (u64)op << 8 | t, t, parts)) {
    Opnd v = a.params[0];
    if (parts == 2) v = ptx_operation(w, op, t, v, a.params[1], (Opnd){0});
    ptx_function_end(w, &a, name, t, parts, butterfly(w, op, t, v));
  }
  Opnd result = ptx_new_for(w, t);
  ptx_call(w, name, t, h->acc[level], parts, result);
  return result;
}

static void clear_lanes(PtxWriter *w, OpenHead *h, u32 level) {
  for (u32 i = 0; i < lanes_per_thread(w, h); i++) ptx_move(w, fold_type(w, h->head), h->acc[level][i], identity(w, h));
}

/* acc op v where `mine` holds. */
static void add_where(PtxWriter *w, OpenHead *h, Opnd acc, Opnd v, Opnd mine) {
  LoopType t = fold_type(w, h->head);
  Opnd sum = ptx_operation(w, op_of(w, h), t, acc, v, (Opnd){0});
  ptx_select(w, t, acc, mine, sum, acc);
}

/* v is element number `at` of a level: its lane takes it. `all`: every thread has v; else it lies in the thread that
 * owns it. */
static void give_lane(PtxWriter *w, OpenHead *h, u32 level, Opnd at, Opnd v, bool all) {
  u32 parts = lanes_per_thread(w, h);
  Opnd mine = {0}, low = ptx_new(w, REG_R);
  INS(w, "cvt.u32.u64", low, at);
  if (all) {
    Opnd owner = ptx_new(w, REG_R);
    mine = ptx_new(w, REG_P);
    INS(w, "and.b32", owner, low, small(WARP - 1));
    INS(w, "setp.eq.u32", mine, owner, w->lane);
  }
  if (parts == 1) {
    if (all) add_where(w, h, h->acc[level][0], v, mine);
    else ptx_operation_to(w, op_of(w, h), fold_type(w, h->head), h->acc[level][0], h->acc[level][0], v, (Opnd){0});
    return;
  }
  Opnd bit = ptx_new(w, REG_R);
  INS(w, "and.b32", bit, low, small(WARP));
  for (u32 i = 0; i < parts; i++) {
    Opnd half = ptx_new(w, REG_P);
    INS(w, i ? "setp.ne.u32" : "setp.eq.u32", half, bit, small(0));
    if (all) INS(w, "and.pred", half, half, mine);
    add_where(w, h, h->acc[level][i], v, half);
  }
}

/* Behind element number `at` of a level: when its block is complete, the block's result goes to the level above. */
static void close_blocks(PtxWriter *w, OpenHead *h, u32 level, Opnd at, u32 tag) {
  u32 block = loop_lanes(fold_type(w, h->head)) * LOOP_BLOCK_TRIPS;
  if (level + 1 >= LANE_LEVELS) return;
  Opnd next = ptx_new(w, REG_RD), rest = ptx_new(w, REG_RD), open = ptx_new(w, REG_P), above = ptx_new(w, REG_RD);
  INS(w, "add.u64", next, at, ptx_number(1));
  INS(w, "and.b64", rest, next, ptx_number(block - 1));
  INS(w, "setp.ne.u64", open, rest, ptx_number(0));
  ptx_line(w, "@%s bra L%u_open%u;", ptx_text(open).s, h->label, tag);
  INS(w, "shr.u64", above, at, small(log2_of(block)));
  Opnd v = join_lanes(w, h, level);
  clear_lanes(w, h, level);
  give_lane(w, h, level + 1, above, v, true);
  close_blocks(w, h, level + 1, above, tag); /* four levels at most */
  if (level == 0 || (level == 1 && h->fold == FOLD_SPREAD)) ptx_label(w, "L%u_open%u", h->label, tag);
}

/* The result: what is left on each level goes up. `count`: elements of `level`. */
static Opnd finish_lanes(PtxWriter *w, OpenHead *h, u32 level, Opnd count) {
  u32 block = loop_lanes(fold_type(w, h->head)) * LOOP_BLOCK_TRIPS;
  for (;; level++) {
    Opnd v = join_lanes(w, h, level);
    if (level + 1 >= LANE_LEVELS) return v;
    Opnd above = ptx_new(w, REG_RD);
    INS(w, "shr.u64", above, count, small(log2_of(block))); /* complete blocks: the number of the one that is not */
    give_lane(w, h, level + 1, above, v, true);
    count = above;
  }
}

/* ---- beginning ----------------------------------------------------------------------------------------------- */

static bool is_split(const PtxWriter *w, u32 head) {
  for (u32 k = 0; w->split && w->phase >= PTX_PART && k < w->split->count; k++)
    if (w->split->heads[k] == head) return true;
  return false;
}

static Opnd count_elements(PtxWriter *w, u32 head) {
  const LoopNode *n = ptx_node(w, head);
  if (is_split(w, head)) return w->total;
  Opnd total = ptx_value(w, loop_trips_of(w->f->fn, head, 0));
  for (u32 axis = 1; axis < n->a; axis++) {
    Opnd product = ptx_new(w, REG_RD);
    INS(w, "mul.lo.u64", product, ptx_in_register(w, total), ptx_value(w, loop_trips_of(w->f->fn, head, axis)));
    total = product;
  }
  return ptx_in_register(w, total);
}

/* The indices of element number e. */
static void split_number(PtxWriter *w, const OpenHead *h) {
  const LoopNode *n = ptx_node(w, h->head);
  Opnd rest = h->number;
  for (u32 axis = n->a; axis-- > 0;) {
    Opnd index = ptx_define(w, loop_index_of(h->head, axis));
    if (axis == 0) {
      INS(w, "mov.u64", index, rest);
      return;
    }
    Opnd trips = ptx_value(w, loop_trips_of(w->f->fn, h->head, axis)), quotient = ptx_new(w, REG_RD);
    INS(w, "rem.u64", index, rest, trips);
    INS(w, "div.u64", quotient, rest, trips);
    rest = quotient;
  }
}

static void make_levels(PtxWriter *w, OpenHead *h, u32 levels, u32 parts) {
  LoopType t = fold_type(w, h->head);
  for (u32 l = 0; l < levels; l++)
    for (u32 i = 0; i < parts; i++) {
      h->acc[l][i] = ptx_new_for(w, t);
      ptx_move(w, t, h->acc[l][i], identity(w, h));
    }
}

void ptx_fold_make(PtxWriter *w, OpenHead *h) { make_levels(w, h, 1, lanes_per_thread(w, h)); }
void ptx_fold_clear(PtxWriter *w, OpenHead *h) { clear_lanes(w, h, 0); }
Opnd ptx_fold_join(PtxWriter *w, OpenHead *h) { return join_lanes(w, h, 0); }

void ptx_fold_give(PtxWriter *w, OpenHead *h, u32 copy, Opnd at, Opnd v) {
  LoopType t = fold_type(w, h->head);
  Opnd wide = ptx_new(w, REG_RD);
  if (copy != UINT32_MAX || lanes_per_thread(w, h) == 1) {
    Opnd acc = h->acc[0][copy % lanes_per_thread(w, h)];
    ptx_operation_to(w, op_of(w, h), t, acc, acc, v, (Opnd){0});
    return;
  }
  INS(w, "cvt.u64.u32", wide, at);
  give_lane(w, h, 0, wide, v, false);
}

static void begin_spread(PtxWriter *w, OpenHead *h) {
  LoopType t = fold_type(w, h->head);
  bool exact = ptx_is_exact(ptx_node(w, h->head), t);
  Opnd lane = ptx_new(w, REG_RD), out = ptx_new(w, REG_P);
  h->total = count_elements(w, h->head);
  h->number = ptx_new(w, REG_RD);
  make_levels(w, h, exact ? 1 : LANE_LEVELS, lanes_per_thread(w, h));
  INS(w, "cvt.u64.u32", lane, w->lane);
  if (exact) {
    h->limit = h->total;
    INS(w, "mov.u64", h->number, lane);
  } else {
    u32 block = loop_lanes(t) * LOOP_BLOCK_TRIPS;
    Opnd end = ptx_new(w, REG_P);
    h->base = ptx_new(w, REG_RD);
    h->block = ptx_new(w, REG_RD);
    h->limit = ptx_new(w, REG_RD);
    INS(w, "mov.u64", h->base, ptx_number(0));
    INS(w, "mov.u64", h->block, ptx_number(0));
    ptx_label(w, "L%u_block", h->label);
    INS(w, "setp.ge.u64", end, h->base, h->total);
    ptx_line(w, "@%s bra L%u_blocks;", ptx_text(end).s, h->label);
    INS(w, "add.u64", h->number, h->base, lane);
    INS(w, "add.u64", h->limit, h->base, ptx_number(block));
    INS(w, "min.u64", h->limit, h->limit, h->total);
  }
  ptx_put_trips_by_four(w, h, WARP);
  ptx_label(w, "L%u_trip", h->label);
  INS(w, "setp.ge.u64", out, h->number, h->limit);
  ptx_line(w, "@%s bra L%u_lanes;", ptx_text(out).s, h->label);
  w->depth++;
  split_number(w, h);
  w->spread_depth++;
}

/* Of a reduction that is split: the elements of one block; what is left for the rest in the order ROWS, too. */
static void begin_block(PtxWriter *w, OpenHead *h) {
  bool spread = h->fold == FOLD_SPREAD;
  Opnd out = ptx_new(w, REG_P);
  make_levels(w, h, h->fold == FOLD_ROWS ? FOLD_LEVELS : 1, spread ? lanes_per_thread(w, h) : 1);
  h->total = w->total;
  h->number = ptx_new(w, REG_RD);
  if (w->phase == PTX_REST) {
    h->limit = w->total;
    INS(w, "mov.u64", h->number, ptx_number(0));
  } else {
    h->limit = ptx_new(w, REG_RD);
    INS(w, "mul.lo.u64", h->number, w->item_block, ptx_number(w->split->block));
    INS(w, "add.u64", h->limit, h->number, ptx_number(w->split->block));
    INS(w, "min.u64", h->limit, h->limit, w->total);
  }
  if (spread) {
    Opnd lane = ptx_new(w, REG_RD);
    INS(w, "cvt.u64.u32", lane, w->lane);
    INS(w, "add.u64", h->number, h->number, lane);
    w->spread_depth++;
  }
  if (w->phase == PTX_PART) ptx_put_trips_by_four(w, h, spread ? WARP : 1);
  else ptx_put_scratch_trips(w, h);
  ptx_label(w, "L%u_trip", h->label);
  INS(w, "setp.ge.u64", out, h->number, h->limit);
  ptx_line(w, "@%s bra L%u_lanes;", ptx_text(out).s, h->label);
  w->depth++;
  if (w->phase == PTX_PART) split_number(w, h);
}

void ptx_fold_begin(PtxWriter *w, OpenHead *h) {
  h->fold = (u8)ptx_fold_mode(w, h->head);
  h->split = is_split(w, h->head);
  if (h->split) {
    begin_block(w, h);
    return;
  }
  if (h->fold == FOLD_SPREAD) {
    begin_spread(w, h);
    return;
  }
  u32 levels = h->fold == FOLD_SERIAL ? 1 : h->fold == FOLD_PUSH ? LANE_LEVELS : FOLD_LEVELS;
  make_levels(w, h, levels, h->fold == FOLD_PUSH ? lanes_per_thread(w, h) : 1);
  if (h->fold == FOLD_SCAN) {
    LoopType t = fold_type(w, h->head);
    Opnd result = ptx_define(w, loop_result_of(w->f->fn, h->head, 0));
    ptx_move(w, t, result, ptx_const(t, loop_reduce_empty((LoopReduce)ptx_node(w, h->head)->aux, t)));
    for (u32 l = 0; l + 1 < FOLD_LEVELS; l++) {
      h->before[l] = ptx_new_for(w, t);
      ptx_move(w, t, h->before[l], identity(w, h));
    }
  } else {
    h->total = count_elements(w, h->head);
  }
  h->number = ptx_new(w, REG_RD);
  INS(w, "mov.u64", h->number, ptx_number(0));
  ptx_axes_begin(w, h);
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

static void take_rows(PtxWriter *w, OpenHead *h, Opnd v) {
  LoopType t = fold_type(w, h->head);
  LoopOp op = op_of(w, h);
  Opnd next = ptx_new(w, REG_RD);
  u32 tag = ++w->labels;
  INS(w, "add.u64", next, h->number, ptx_number(1));
  for (u32 l = 0;; l++) {
    ptx_operation_to(w, op, t, h->acc[l][0], h->acc[l][0], v, (Opnd){0});
    if (l + 1 == FOLD_LEVELS) break;
    Opnd rest = ptx_new(w, REG_RD), open = ptx_new(w, REG_P);
    INS(w, "and.b64", rest, next, ptx_number(((i64)1 << (6 * (l + 1))) - 1));
    INS(w, "setp.ne.u64", open, rest, ptx_number(0));
    ptx_line(w, "@%s bra L%u_open%u;", ptx_text(open).s, h->label, tag);
    v = ptx_new_for(w, t);
    ptx_move(w, t, v, h->acc[l][0]);
    ptx_move(w, t, h->acc[l][0], identity(w, h));
  }
  ptx_label(w, "L%u_open%u", h->label, tag);
}

void ptx_fold_take(PtxWriter *w, OpenHead *h, Opnd v) {
  LoopType t = fold_type(w, h->head);
  v = ptx_in_register(w, v);
  switch (h->fold) {
    case FOLD_SERIAL: ptx_operation_to(w, op_of(w, h), t, h->acc[0][0], h->acc[0][0], v, (Opnd){0}); return;
    case FOLD_ROWS: take_rows(w, h, v); return;
    case FOLD_SPREAD: give_lane(w, h, 0, h->number, v, false); return;
    case FOLD_PUSH:
      give_lane(w, h, 0, h->number, v, true);
      close_blocks(w, h, 0, h->number, ++w->labels);
      return;
    default: return; /* a scan takes its elements by `prefix` */
  }
}

/* One level of a scan, inside those below it: v is the next element; *to the scan up to and with it. */
static void scan_level(PtxWriter *w, OpenHead *h, u32 level, Opnd next, Opnd v, Opnd to) {
  LoopType t = fold_type(w, h->head);
  LoopOp op = op_of(w, h);
  Opnd acc = h->acc[level][0];
  ptx_operation_to(w, op, t, acc, acc, v, (Opnd){0});
  if (level + 1 == FOLD_LEVELS) {
    ptx_move(w, t, to, acc);
    return;
  }
  Opnd has = ptx_new(w, REG_P), rest = ptx_new(w, REG_RD), open = ptx_new(w, REG_P);
  u32 tag = ++w->labels;
  u32 bits = 4 * (level + 1);
  Opnd joined = ptx_operation(w, op, t, h->before[level], acc, (Opnd){0});
  INS(w, "setp.gt.u64", has, next, ptx_number((i64)1 << bits)); /* a segment lies before this one */
  ptx_select(w, t, to, has, joined, acc);
  INS(w, "and.b64", rest, next, ptx_number(((i64)1 << bits) - 1));
  INS(w, "setp.ne.u64", open, rest, ptx_number(0));
  ptx_line(w, "@%s bra L%u_open%u;", ptx_text(open).s, h->label, tag);
  scan_level(w, h, level + 1, next, acc, h->before[level]); /* eight levels */
  ptx_move(w, t, acc, identity(w, h));
  ptx_label(w, "L%u_open%u", h->label, tag);
}

void ptx_fold_begin_pieces(PtxWriter *w, OpenHead *h) {
  LoopType t = fold_type(w, h->head);
  make_levels(w, h, FOLD_LEVELS, 1);
  for (u32 l = 0; l + 1 < FOLD_LEVELS; l++) {
    h->before[l] = ptx_new_for(w, t);
    ptx_move(w, t, h->before[l], identity(w, h));
  }
}

void ptx_fold_piece(PtxWriter *w, OpenHead *h, Opnd next, Opnd total, Opnd to) {
  enum { PIECE_LEVEL = 3 };
  _Static_assert(1 << 4 * PIECE_LEVEL == PTX_SCAN_PIECE, "the level of totals of pieces");
  scan_level(w, h, PIECE_LEVEL, next, total, to);
}

Opnd ptx_fold_prefix(PtxWriter *w, OpenHead *h, Opnd v) {
  LoopType t = fold_type(w, h->head);
  Opnd next = ptx_new(w, REG_RD), to = ptx_new_for(w, t);
  INS(w, "add.u64", next, h->number, ptx_number(1));
  scan_level(w, h, 0, next, ptx_in_register(w, v), to);
  ptx_move(w, t, ptx_define(w, loop_result_of(w->f->fn, h->head, 0)), to);
  return to;
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

static Opnd end_spread(PtxWriter *w, OpenHead *h) {
  LoopType t = fold_type(w, h->head);
  bool exact = ptx_is_exact(ptx_node(w, h->head), t);
  w->spread_depth--;
  ptx_label(w, "L%u_next", h->label);
  INS(w, "add.u64", h->number, h->number, ptx_number(WARP));
  ptx_line(w, "bra L%u_trip;", h->label);
  w->depth--;
  ptx_label(w, "L%u_lanes", h->label);
  if (exact) return join_lanes(w, h, 0);
  Opnd v = join_lanes(w, h, 0);
  clear_lanes(w, h, 0);
  give_lane(w, h, 1, h->block, v, true);
  close_blocks(w, h, 1, h->block, ++w->labels);
  INS(w, "add.u64", h->block, h->block, ptx_number(1));
  INS(w, "add.u64", h->base, h->base, ptx_number(loop_lanes(t) * LOOP_BLOCK_TRIPS));
  ptx_line(w, "bra.uni L%u_block;", h->label);
  ptx_label(w, "L%u_blocks", h->label);
  return finish_lanes(w, h, 1, h->block);
}

/* The levels of one thread joined. */
static Opnd join_levels(PtxWriter *w, OpenHead *h) {
  Opnd v = h->acc[0][0];
  if (h->fold == FOLD_ROWS)
    for (u32 l = 1; l < FOLD_LEVELS; l++)
      v = ptx_operation(w, op_of(w, h), fold_type(w, h->head), h->acc[l][0], v, (Opnd){0});
  return v;
}

static Opnd end_block(PtxWriter *w, OpenHead *h) {
  bool spread = h->fold == FOLD_SPREAD;
  ptx_label(w, "L%u_next", h->label);
  INS(w, "add.u64", h->number, h->number, ptx_number(spread ? WARP : 1));
  ptx_line(w, "bra L%u_trip;", h->label);
  w->depth--;
  ptx_label(w, "L%u_lanes", h->label);
  if (spread) w->spread_depth--;
  return spread ? join_lanes(w, h, 0) : join_levels(w, h);
}

void ptx_fold_end(PtxWriter *w, OpenHead *h) {
  const LoopNode *n = ptx_node(w, h->head);
  LoopType t = fold_type(w, h->head);
  Opnd v;
  if (h->split && w->phase != PTX_REST) {
    ptx_scratch_store(w, h, end_block(w, h));
    return;
  }
  if (h->fold == FOLD_SPREAD) {
    v = end_spread(w, h);
  } else if (h->split) {
    v = end_block(w, h);
  } else {
    ptx_label(w, "L%u_next", h->label);
    INS(w, "add.u64", h->number, h->number, ptx_number(1));
    ptx_axes_end(w, h);
    if (h->fold == FOLD_SCAN) return;
    v = h->fold == FOLD_PUSH ? finish_lanes(w, h, 0, h->number) : join_levels(w, h);
  }
  Opnd empty = ptx_new(w, REG_P), result = ptx_define(w, loop_result_of(w->f->fn, h->head, 0));
  INS(w, "setp.eq.u64", empty, h->total, ptx_number(0));
  ptx_select(w, t, result, empty, ptx_const(t, loop_reduce_empty((LoopReduce)n->aux, t)), v);
}

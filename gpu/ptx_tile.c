/* ptx_tile.c — kernels that read an array across: through tiles in shared memory.
 *
 * `par i { for j { … load x[i + j*n] … store y[i*m + j] } }`: threads beside one another do neighbouring j, so that
 * y is written in whole sectors, and x would be read by a word of each. So a block does a tile of 32 times 32: its
 * threads first read x with neighbouring i and leave it in shared memory, meet, and then take their own elements from
 * there. A row of the tile has one word more than 32, which puts the words of a column into different banks.
 *
 * Of more loops (permuted axes, stacks of matrices) i may be any one outside of the last: there are such tiles for each
 * trip of the others. */
#include "gpu/ptx_writer.h"

enum { TILE_ROW = PTX_TILE_SIDE + 1, STEPS = PTX_TILE_SIDE / 8 /* eight warps: rows of a warp */, TILE_NODES = 64 };

/* ---- which kernels ---------------------------------------------------------------------------------------- */

static bool reads_across(const LoopFn *fn, const LoopNode *n, u32 outer, u32 inner) {
  return n->op == LOOP_LOAD && n->type != LT_I1 && loop_access_is_affine(fn, n) && ptx_goes_along(fn, n, outer) &&
         ptx_moves_with(fn, n, inner) && !ptx_goes_along(fn, n, inner);
}

/* The loop that the first such load goes along; the outermost one where there is no such load. */
static u32 outer_of(const LoopFn *fn, u32 outermost, const PtxNest *nest) {
  u32 inner = loop_index_of(nest->heads[nest->count - 1], 0);
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    for (u32 k = 0; n->op == LOOP_LOAD && k + 1 < nest->count; k++)
      if (reads_across(fn, n, loop_index_of(nest->heads[k], 0), inner)) return nest->heads[k];
    if (n->op == LOOP_LOAD && reads_across(fn, n, loop_index_of(outermost, 0), inner)) return outermost;
  }
  return outermost;
}

static bool is_dealt(const PtxNest *nest, u32 id) {
  for (u32 k = 0; k < nest->count; k++)
    if (nest->heads[k] == id) return true;
  return false;
}

bool ptx_tile(const LoopFn *fn, PtxTile *tile) {
  PtxNest nest;
  *tile = (PtxTile){.count = 0};
  if (!ptx_nest(fn, &nest) || fn->body.count > TILE_NODES) return false;
  u32 first = 0, at = 0;
  while (!loop_is_head(loop_node(fn, fn->body.data[first]))) first++;
  tile->inner = nest.heads[nest.count - 1];
  tile->outer = outer_of(fn, fn->body.data[first], &nest);
  tile->first = first;
  for (u32 k = 0; k < nest.count; k++) {
    u32 head = k ? nest.heads[k - 1] : fn->body.data[first];
    if (head != tile->outer) tile->rest[tile->rests++] = head;
  }
  for (u32 i = first + 1; i < fn->body.count; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (is_dealt(&nest, id) || n->op == LOOP_END) continue;
    if (loop_is_head(n) || loop_is_terminator(n) || n->op == LOOP_CHECK || n->op == LOOP_ELSE) return false;
    if (n->op == LOOP_STORE && !ptx_goes_along(fn, n, loop_index_of(tile->inner, 0))) return false;
    if (!reads_across(fn, n, loop_index_of(tile->outer, 0), loop_index_of(tile->inner, 0))) continue;
    if (tile->count == PTX_TILE_LOADS) return false;
    tile->loads[tile->count] = id;
    tile->at[tile->count++] = at;
    at += PTX_TILE_SIDE * TILE_ROW * (loop_type_bytes((LoopType)n->type) == 8 ? 8 : 4);
  }
  tile->bytes = at;
  return tile->count > 0;
}

/* ---- the entry ---------------------------------------------------------------------------------------------- */

static u32 word_bytes(LoopType t) { return loop_type_bytes(t) == 8 ? 8 : 4; }

/* The address of element (row, column) of tile k. */
static Opnd shared_at(PtxWriter *w, u32 k, Opnd row, Opnd column) {
  Opnd at = ptx_new(w, REG_R), base = ptx_new(w, REG_R);
  u32 bytes = word_bytes(loop_type_of(w->f->fn, w->tile->loads[k]));
  INS(w, "mad.lo.u32", at, row, ptx_const(LT_U32, TILE_ROW), column);
  ptx_line(w, "mov.u32 %s, tile;", ptx_text(base).s);
  INS(w, "mad.lo.u32", at, at, ptx_const(LT_U32, bytes), base);
  if (w->tile->at[k]) INS(w, "add.u32", at, at, ptx_const(LT_U32, w->tile->at[k]));
  return at;
}

/* first + u64 of number */
static Opnd moved_by(PtxWriter *w, Opnd first, Opnd number) {
  Opnd wide = ptx_new(w, REG_RD), sum = ptx_new(w, REG_RD);
  INS(w, "cvt.u64.u32", wide, number);
  INS(w, "add.s64", sum, first, wide);
  return sum;
}

static bool is_par(const PtxWriter *w, u32 head) { return w->f->fn->body.data[w->tile->first] == head; }

/* The end of the loop that i is the index of. */
static Opnd end_of(PtxWriter *w) {
  u32 outer = w->tile->outer;
  return is_par(w, outer) ? w->hi : ptx_value(w, loop_trips_of(w->f->fn, outer, 0));
}

/* Where i and j lie in the array: jumps to `L<label>_skip<number>` elsewhere. */
static void put_bounds(PtxWriter *w, u32 label, u32 number, Opnd i, Opnd j) {
  Opnd out = ptx_new(w, REG_P);
  INS(w, "setp.ge.s64", out, i, end_of(w));
  ptx_line(w, "@%s bra L%u_skip%u;", ptx_text(out).s, label, number);
  INS(w, "setp.ge.u64", out, j, ptx_value(w, loop_trips_of(w->f->fn, w->tile->inner, 0)));
  ptx_line(w, "@%s bra L%u_skip%u;", ptx_text(out).s, label, number);
}

/* The tile's elements of what is read across, to shared memory: this thread's are i + x, j + y, j + y + 8 … */
static void put_reads(PtxWriter *w, u32 label, Opnd i, Opnd j, Opnd x, Opnd y) {
  const LoopFn *fn = w->f->fn;
  Opnd own = moved_by(w, i, x), rows[STEPS], values[PTX_TILE_LOADS][STEPS];
  INS(w, "mov.u64", ptx_define(w, loop_index_of(w->tile->outer, 0)), own);
  for (u32 r = 0; r < STEPS; r++) {
    rows[r] = ptx_new(w, REG_R);
    INS(w, "add.u32", rows[r], y, ptx_const(LT_U32, 8 * r));
    INS(w, "mov.u64", ptx_define(w, loop_index_of(w->tile->inner, 0)), moved_by(w, j, rows[r]));
    for (u32 k = 0; k < w->tile->count; k++) {
      LoopType t = loop_type_of(fn, w->tile->loads[k]);
      values[k][r] = ptx_new_for(w, t);
      ptx_move(w, t, values[k][r], ptx_const(t, 0));
    }
    put_bounds(w, label, r, own, ptx_define(w, loop_index_of(w->tile->inner, 0)));
    for (u32 k = 0; k < w->tile->count; k++) ptx_load(w, loop_node(fn, w->tile->loads[k]), values[k][r]);
    ptx_label(w, "L%u_skip%u", label, r);
  }
  for (u32 r = 0; r < STEPS; r++)
    for (u32 k = 0; k < w->tile->count; k++) {
      LoopType t = loop_type_of(fn, w->tile->loads[k]);
      ptx_shared_store(w, t, shared_at(w, k, rows[r], x), values[k][r]);
    }
}

static bool take_from_tile(PtxWriter *w, u32 id, Opnd row, Opnd column) {
  for (u32 k = 0; k < w->tile->count; k++) {
    if (w->tile->loads[k] != id) continue;
    Opnd at = shared_at(w, k, row, column);
    ptx_shared_load(w, loop_type_of(w->f->fn, id), ptx_define(w, id), at);
    return true;
  }
  return false;
}

/* The kernel's statements for i + y, i + y + 8 … and j + x. */
static void put_elements(PtxWriter *w, u32 label, Opnd i, Opnd j, Opnd x, Opnd y) {
  const LoopFn *fn = w->f->fn;
  INS(w, "mov.u64", ptx_define(w, loop_index_of(w->tile->inner, 0)), moved_by(w, j, x));
  for (u32 r = 0; r < STEPS; r++) {
    Opnd row = ptx_new(w, REG_R);
    INS(w, "add.u32", row, y, ptx_const(LT_U32, 8 * r));
    INS(w, "mov.u64", ptx_define(w, loop_index_of(w->tile->outer, 0)), moved_by(w, i, row));
    put_bounds(w, label, STEPS + r, ptx_define(w, loop_index_of(w->tile->outer, 0)),
               ptx_define(w, loop_index_of(w->tile->inner, 0)));
    for (u32 s = w->tile->first + 1; s < fn->body.count && !w->failed && !w->refused; s++) {
      u32 id = fn->body.data[s];
      if (loop_is_head(loop_node(fn, id)) || loop_node(fn, id)->op == LOOP_END) continue;
      if (!take_from_tile(w, id, x, row)) ptx_put_statement(w, id);
    }
    ptx_label(w, "L%u_skip%u", label, STEPS + r);
  }
}

/* ceil(number of trips / 32), u32 */
static Opnd tiles_along(PtxWriter *w, Opnd trips) {
  Opnd n = ptx_new(w, REG_RD), narrow = ptx_new(w, REG_R);
  INS(w, "add.u64", n, trips, ptx_number(PTX_TILE_SIDE - 1));
  INS(w, "shr.u64", n, n, ptx_u32(5));
  INS(w, "cvt.u32.u64", narrow, n);
  return narrow;
}

/* The trips of a loop. */
static Opnd trips_along(PtxWriter *w, u32 head) {
  if (!is_par(w, head)) return ptx_in_register(w, ptx_value(w, loop_trips_of(w->f->fn, head, 0)));
  Opnd trips = ptx_new(w, REG_RD);
  INS(w, "sub.s64", trips, w->hi, w->lo);
  return trips;
}

/* *left to its quotient by `count`; the rest. */
static Opnd take_rest(PtxWriter *w, Opnd *left, Opnd count) {
  Opnd quotient = ptx_new(w, REG_R), rest = ptx_new(w, REG_R);
  INS(w, "div.u32", quotient, *left, count);
  INS(w, "mul.lo.u32", rest, quotient, count);
  INS(w, "sub.u32", rest, *left, rest);
  *left = quotient;
  return rest;
}

void ptx_put_tiles(PtxWriter *w) {
  const LoopFn *fn = w->f->fn;
  const PtxTile *tile = w->tile;
  for (u32 i = 0; i < tile->first; i++) ptx_put_statement(w, fn->body.data[i]);
  u32 label = ++w->labels;
  Opnd blocks = ptx_new(w, REG_R), thread = ptx_new(w, REG_R), x = ptx_new(w, REG_R), y = ptx_new(w, REG_R),
       t = ptx_new(w, REG_R), out = ptx_new(w, REG_P), i = ptx_new(w, REG_RD), j = ptx_new(w, REG_RD),
       all = ptx_new(w, REG_R), counts[PTX_NEST_HEADS];
  ptx_line(w, "mov.u32 %s, %%ctaid.x;", ptx_text(t).s);
  ptx_line(w, "mov.u32 %s, %%nctaid.x;", ptx_text(blocks).s);
  ptx_line(w, "mov.u32 %s, %%tid.x;", ptx_text(thread).s);
  INS(w, "and.b32", x, thread, ptx_u32(PTX_TILE_SIDE - 1));
  INS(w, "shr.u32", y, thread, ptx_u32(5));
  Opnd along = tiles_along(w, trips_along(w, tile->inner)), down = tiles_along(w, trips_along(w, tile->outer));
  INS(w, "mul.lo.u32", all, along, down); /* a launch has fewer than 2^32 */
  for (u32 k = 0; k < tile->rests; k++) {
    counts[k] = ptx_new(w, REG_R);
    INS(w, "cvt.u32.u64", counts[k], trips_along(w, tile->rest[k]));
    INS(w, "mul.lo.u32", all, all, counts[k]);
  }
  ptx_label(w, "L%u_tile", label);
  INS(w, "setp.ge.u32", out, t, all);
  ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, label);
  w->depth++;
  Opnd left = t, column = take_rest(w, &left, along), row = tile->rests ? take_rest(w, &left, down) : left;
  for (u32 k = tile->rests; k-- > 0;) {
    Opnd index = ptx_define(w, loop_index_of(tile->rest[k], 0)), part = k ? take_rest(w, &left, counts[k]) : left;
    INS(w, "cvt.u64.u32", index, part);
    if (is_par(w, tile->rest[k])) INS(w, "add.s64", index, index, w->lo);
  }
  INS(w, "mul.wide.u32", i, row, ptx_u32(PTX_TILE_SIDE));
  INS(w, "mul.wide.u32", j, column, ptx_u32(PTX_TILE_SIDE));
  if (is_par(w, tile->outer)) INS(w, "add.s64", i, i, w->lo);
  put_reads(w, label, i, j, x, y);
  ptx_line(w, "bar.sync 0;");
  put_elements(w, label, i, j, x, y);
  ptx_line(w, "bar.sync 0;");
  INS(w, "add.u32", t, t, blocks);
  ptx_line(w, "bra.uni L%u_tile;", label);
  w->depth--;
  ptx_label(w, "L%u_out", label);
}

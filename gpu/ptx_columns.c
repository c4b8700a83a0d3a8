/* ptx_columns.c — scans down columns (`cumsum(x, axis=0)`): a block takes a piece of columns that lie side by side.
 *
 * `par c { scan r { … x[r·n + c] … } }`, or with a loop over columns between the two. A piece is 16 segments of 16
 * rows, of as many columns as fill 128 bytes of results; a thread has one segment of one column. It scans the segment
 * and leaves it in shared memory; the first thread of each column scans the 16 totals, and has what lies before the
 * piece from blocks that do the pieces above (ptx_chain.c); then every thread puts what lies before its segment in
 * front of each element. Each element is read and written once.
 *
 * Threads of columns behind the last one have no rows, and the addresses of the last column. */
#include "gpu/ptx_writer.h"

enum { SEGMENT = LOOP_SCAN_SEGMENT, PIECE = PTX_COLUMN_PIECE, COPIES = 4 };
_Static_assert(SEGMENT * SEGMENT == (int)PIECE, "segments of a piece");
/* In words of shared memory for each column: elements, totals of segments, what lies before the piece, the places of
 * ptx_chain.c; behind all of them the number of the piece. */
enum { TOTALS_AT = PIECE, BEFORE_AT = TOTALS_AT + SEGMENT, KEEP_AT = BEFORE_AT + 1,
       COLUMN_WORDS = KEEP_AT + PTX_CHAIN_LEVELS };

u32 ptx_columns_words(const PtxScan *s) { return COLUMN_WORDS * ptx_scan_columns(s) + 1; }

typedef struct ColumnState {
  const PtxScan *s;
  PtxBlock b;
  u32 bytes, columns; /* of a word of shared memory; of a block */
  Opnd lane, segment; /* u32: the thread's column and segment in the piece */
  Opnd row, left;     /* its first row, u64; how many it has, u32 */
  Opnd own;           /* u32: the place of its first element */
  PtxChain chain;
  Opnd behind;        /* predicate: a piece lies before this one */
} ColumnState;

/* The place of the thread's column in row `row` of shared memory. */
static Opnd column_place(PtxWriter *w, const ColumnState *s, u32 first, Opnd row) {
  Opnd at = ptx_new(w, REG_R);
  INS(w, "mad.lo.u32", at, row, ptx_u32(s->columns), s->lane);
  INS(w, "mad.lo.u32", at, at, ptx_u32(s->bytes), s->b.partial);
  if (first) INS(w, "add.u32", at, at, ptx_u32(first * s->columns * s->bytes));
  return at;
}

/* Rows number, number + 1 … of the thread. Up: values are scanned into `scan` and left in shared memory. Down: `scan`
 * is put before them where `has`, and they go where they belong. Loads come first, so that they are under way
 * together. */
static void put_rows_of(PtxWriter *w, const ColumnState *s, bool down, Opnd number, u32 copies, Opnd has, Opnd scan,
                        Opnd *const *values) {
  const LoopFn *fn = w->f->fn;
  const u8 *needed = down ? s->s->after : s->s->before;
  Opnd place[COPIES];
  for (u32 c = 0; c < copies; c++) {
    Opnd index = ptx_new(w, REG_RD), nth = number;
    place[c] = ptx_new(w, REG_R);
    if (c) {
      nth = ptx_new(w, REG_R);
      INS(w, "add.u32", nth, number, ptx_u32(c));
    }
    INS(w, "cvt.u64.u32", index, nth);
    INS(w, "add.u64", index, index, s->row);
    INS(w, "mad.lo.u32", place[c], nth, ptx_u32(s->columns * s->bytes), s->own);
    values[c][loop_index_of(s->s->head, 0)] = index;
    if (down)
      values[c][s->s->prefix] = ptx_chain_before(w, &s->chain, has, scan, ptx_shared_word(w, s->s->type, place[c]));
  }
  for (u32 turn = 0; turn < 2; turn++)
    for (u32 i = s->s->from; i < s->s->end; i++) {
      u32 id = fn->body.data[i];
      if (!needed[id] || id == s->s->prefix || (loop_node(fn, id)->op == LOOP_LOAD) != (turn == 0)) continue;
      for (u32 c = 0; c < copies; c++) {
        w->f->values = values[c];
        ptx_put_statement(w, id);
      }
    }
  for (u32 c = 0; c < copies && !down; c++) {
    w->f->values = values[c];
    ptx_operation_to(w, s->chain.op, s->s->type, scan, scan,
                     ptx_in_register(w, ptx_value(w, loop_node(fn, s->s->prefix)->a)), (Opnd){0});
    ptx_shared_store(w, s->s->type, place[c], scan);
  }
}

static void put_rows_loop(PtxWriter *w, const ColumnState *s, bool down, Opnd number, u32 copies, Opnd has,
                          Opnd scan) {
  Opnd *own = w->f->values, *values[COPIES], last = ptx_new(w, REG_R), out = ptx_new(w, REG_P);
  u32 label = ++w->labels;
  ptx_label(w, "L%u_row", label);
  INS(w, "add.u32", last, number, ptx_u32(copies - 1));
  INS(w, "setp.ge.u32", out, last, s->left);
  ptx_line(w, "@%s bra L%u_rows;", ptx_text(out).s, label);
  w->depth++;
  if (ptx_copies_begin(w, copies, values)) put_rows_of(w, s, down, number, copies, has, scan, values);
  ptx_copies_end(w, copies, values, own);
  INS(w, "add.u32", number, number, ptx_u32(copies));
  ptx_line(w, "bra L%u_row;", label);
  w->depth--;
  ptx_label(w, "L%u_rows", label);
}

static void put_pass(PtxWriter *w, const ColumnState *s, bool down, Opnd has, Opnd scan) {
  Opnd number = ptx_new(w, REG_R);
  INS(w, "mov.u32", number, ptx_u32(0));
  put_rows_loop(w, s, down, number, COPIES, has, scan);
  put_rows_loop(w, s, down, number, 1, has, scan);
}

/* By the first thread of a column: totals of segments become scans up to and with the segment, and the place before
 * them gets what lies before the piece's first segment. */
static void scan_totals(PtxWriter *w, ColumnState *s) {
  Opnd at[SEGMENT], sums[SEGMENT], last = ptx_new(w, REG_R), other = ptx_new(w, REG_R), more = ptx_new(w, REG_P),
       values[3];
  const PtxChain *c = &s->chain;
  for (u32 k = 0; k < SEGMENT; k++) {
    at[k] = column_place(w, s, TOTALS_AT + k, ptx_u32(0));
    Opnd v = ptx_shared_word(w, s->s->type, at[k]);
    sums[k] = k ? ptx_operation(w, c->op, c->type, sums[k - 1], v, (Opnd){0}) : v;
  }
  (void)ptx_chain_scan(w, c, sums[SEGMENT - 1]);
  INS(w, "setp.gt.u32", more, c->piece, ptx_u32(1));
  INS(w, "max.u32", last, c->piece, ptx_u32(1));
  INS(w, "sub.u32", last, last, ptx_u32(1));
  INS(w, "max.u32", other, last, ptx_u32(1));
  INS(w, "sub.u32", other, other, ptx_u32(1));
  const PtxChainWord from[] = {{other, more, PTX_CHAIN_SCAN, 0}, {last, s->behind, PTX_CHAIN_SCAN, 0},
                               {last, s->behind, PTX_CHAIN_TOTAL, 0}};
  ptx_chain_get(w, c, COUNT_OF(from), from, values);
  LoopType t = s->s->type;
  ptx_shared_store(w, t, column_place(w, s, BEFORE_AT, ptx_u32(0)),
                   ptx_chain_before(w, c, more, values[0], values[2]));
  for (u32 k = 0; k < SEGMENT; k++)
    ptx_shared_store(w, t, at[k], ptx_chain_before(w, c, s->behind, values[1], sums[k]));
}

/* The thread's place among the columns and rows of the piece; indices of loops outside of the scan. */
static void put_columns_place(PtxWriter *w, ColumnState *s, Opnd ticket) {
  const LoopFn *fn = w->f->fn;
  u32 par = fn->body.data[s->s->first], shift = s->columns == 32 ? 5 : 4;
  Opnd count = ptx_new(w, REG_RD), tiles = ptx_new(w, REG_RD), item = ptx_new(w, REG_RD), tile = ptx_new(w, REG_RD),
       piece = ptx_new(w, REG_RD), outer = ptx_new(w, REG_RD), column = ptx_new(w, REG_RD), end = ptx_new(w, REG_RD),
       valid = ptx_new(w, REG_P), lane = ptx_new(w, REG_RD), region = ptx_new(w, REG_RD);
  s->lane = ptx_new(w, REG_R);
  s->segment = ptx_new(w, REG_R);
  INS(w, "and.b32", s->lane, s->b.thread, ptx_u32(s->columns - 1));
  INS(w, "shr.u32", s->segment, s->b.thread, ptx_u32(shift));
  if (s->s->inner) INS(w, "mov.u64", count, ptx_value(w, loop_trips_of(fn, s->s->across, 0)));
  else INS(w, "sub.u64", count, w->hi, w->lo);
  INS(w, "add.u64", tiles, count, ptx_number(s->columns - 1));
  INS(w, "shr.u64", tiles, tiles, ptx_u32(shift));
  INS(w, "cvt.u64.u32", item, ticket);
  INS(w, "rem.u64", tile, item, tiles);
  INS(w, "div.u64", item, item, tiles);
  INS(w, "rem.u64", piece, item, w->blocks);
  INS(w, "div.u64", outer, item, w->blocks);
  INS(w, "cvt.u64.u32", lane, s->lane);
  INS(w, "mad.lo.u64", column, tile, ptx_number(s->columns), lane);
  INS(w, "setp.lt.u64", valid, column, count);
  INS(w, "sub.u64", end, count, ptx_number(1));
  INS(w, "min.u64", column, column, end);
  INS(w, "add.s64", ptx_define(w, loop_index_of(par, 0)), w->lo, s->s->inner ? outer : column);
  if (s->s->inner) INS(w, "mov.u64", ptx_define(w, loop_index_of(s->s->inner, 0)), column);
  /* its scratch memory */
  PtxChain *c = &s->chain;
  c->slots = PTX_CHAIN_COLUMN_SLOTS;
  c->lanes = s->columns;
  c->base = ptx_new(w, REG_RD);
  c->piece = ptx_new(w, REG_R);
  c->blocks = ptx_new(w, REG_R);
  c->keep = column_place(w, s, KEEP_AT, ptx_u32(0));
  c->keep_step = s->columns * s->bytes;
  INS(w, "cvt.u32.u64", c->piece, piece);
  INS(w, "cvt.u32.u64", c->blocks, w->blocks);
  INS(w, "mad.lo.u64", region, outer, tiles, tile);
  INS(w, "mad.lo.u64", c->base, region, w->total, w->to);
  INS(w, "mad.lo.u64", c->base, lane, ptx_number(ptx_chain_step(s->s->type, 1)), c->base);
  s->behind = ptx_new(w, REG_P);
  INS(w, "setp.gt.u64", s->behind, piece, ptx_number(0));
  /* its rows */
  Opnd wide = ptx_new(w, REG_RD), first = ptx_new(w, REG_R), rows = ptx_new(w, REG_RD);
  s->row = ptx_new(w, REG_RD);
  s->left = ptx_new(w, REG_R);
  INS(w, "mul.wide.u32", wide, s->segment, ptx_u32(SEGMENT));
  INS(w, "mad.lo.u64", s->row, piece, ptx_number(PIECE), wide);
  INS(w, "max.u64", rows, ptx_value(w, loop_trips_of(fn, s->s->head, 0)), s->row);
  INS(w, "sub.u64", rows, rows, s->row);
  INS(w, "min.u64", rows, rows, ptx_number(SEGMENT));
  INS(w, "cvt.u32.u64", s->left, rows);
  INS(w, "selp.u32", s->left, s->left, ptx_u32(0), valid);
  INS(w, "mul.lo.u32", first, s->segment, ptx_u32(SEGMENT));
  s->own = column_place(w, s, 0, first);
}

void ptx_put_columns(PtxWriter *w) {
  const LoopFn *fn = w->f->fn;
  ColumnState s = {.s = w->scan, .columns = ptx_scan_columns(w->scan)};
  LoopType t = s.s->type;
  LoopReduce kind = (LoopReduce)loop_node(fn, s.s->head)->aux;
  s.bytes = loop_type_bytes(t) == 8 ? 8 : 4;
  s.chain = (PtxChain){.op = loop_reduce_op(kind), .type = t};
  for (u32 i = 0; i < s.s->first; i++) ptx_put_statement(w, fn->body.data[i]);
  ptx_block_begin(w, &s.b);
  Opnd place = ptx_new(w, REG_R), scan = ptx_new_for(w, t), inner = ptx_new(w, REG_P), has = ptx_new(w, REG_P),
       before = ptx_new(w, REG_R);
  INS(w, "add.u32", place, s.b.partial, ptx_u32(COLUMN_WORDS * s.columns * s.bytes));
  put_columns_place(w, &s, ptx_chain_ticket(w, &s.b, w->from, place));
  for (u32 i = s.s->first + 1; fn->body.data[i] != s.s->head; i++)
    if (fn->body.data[i] != s.s->inner) ptx_put_statement(w, fn->body.data[i]);
  ptx_move(w, t, scan, ptx_const(t, loop_reduce_identity(kind, t)));
  put_pass(w, &s, false, (Opnd){0}, scan);
  ptx_shared_store(w, s.s->type, column_place(w, &s, TOTALS_AT, s.segment), scan);
  ptx_line(w, "bar.sync 0;");
  INS(w, "setp.gt.u32", inner, s.segment, ptx_u32(0));
  u32 label = ++w->labels;
  ptx_line(w, "@%s bra L%u_totals;", ptx_text(inner).s, label);
  w->depth++;
  scan_totals(w, &s);
  w->depth--;
  ptx_label(w, "L%u_totals", label);
  ptx_line(w, "bar.sync 0;");
  /* the total before segment k is in row k - 1; what lies before the piece has a row of its own */
  INS(w, "add.u32", before, s.segment, ptx_u32(TOTALS_AT - 1));
  INS(w, "selp.u32", before, before, ptx_u32(BEFORE_AT), inner);
  INS(w, "or.pred", has, inner, s.behind);
  put_pass(w, &s, true, has, ptx_shared_word(w, s.s->type, column_place(w, &s, 0, before)));
}

/* ptx_scan.c — scans along rows (`cumsum`, `cummax` …): a block of 256 threads takes a piece of a row.
 *
 * The order of a scan (ir.md section 10) is segments of 16, whose totals are scanned by the same rule. A piece is
 * 16 · 16 · 16 elements. They go to shared memory; a thread scans a segment, 16 threads the totals of 256, one thread
 * those of 16; then what lies before is put in front, from the outside in:
 *
 *   level 2   before the piece: the scan of totals of pieces
 *   level 1   before a segment of 256: the scan on level 2 up to the segment before it
 *   level 0   before a segment of 16: the scan on level 1 up to the segment before it
 *
 * For the first segments of a piece these come from the piece before it: `before[0 … 2]`.
 *
 *   NAME_scan    a block does a row, piece by piece
 *   NAME_pieces  long rows: a block does a piece, and has what lies before it from other blocks (ptx_chain.c)
 *
 * A row of shared memory has a word more than 16, so that the threads' segments begin in different banks. */
#include "gpu/ptx_writer.h"

#include <string.h>

enum { SEGMENT = LOOP_SCAN_SEGMENT, THREADS = 256, COPIES = 4, SCAN_NODES = 64, PIECE_LEVELS = 3 };
_Static_assert(SEGMENT * SEGMENT * SEGMENT == (int)PTX_SCAN_PIECE, "levels of a piece");
/* In words of shared memory: the elements, totals of segments, totals of those; behind them the piece's own. Of
 * NAME_pieces besides: what lies before it, the places of ptx_chain.c, the number of the piece. */
enum { TOTALS_AT = PTX_SCAN_PIECE + PTX_SCAN_PIECE / SEGMENT, OVER_AT = TOTALS_AT + THREADS + SEGMENT,
       BEFORE_AT = OVER_AT + SEGMENT + 1, KEEP_AT = BEFORE_AT + PIECE_LEVELS, TICKET_AT = KEEP_AT + PTX_CHAIN_LEVELS,
       WORDS = TICKET_AT + 1 };

/* ---- which kernels ---------------------------------------------------------------------------------------- */

static void mark_needed(void *ctx, u32 id) { ((u8 *)ctx)[id] = 1; }

/* The index counts elements, up or down: 1, -1; 0: neither. */
static i64 direction(const LoopFn *fn, const LoopNode *access, u32 index) {
  i64 found = 0;
  if (!loop_access_is_affine(fn, access)) return 0;
  for (u32 i = 0; i < access->count; i++) {
    const LoopTerm *t = &loop_terms(fn, access)[i];
    if (t->var != index) continue;
    if (found || t->stride[0] || t->stride[1] || (t->coef != 1 && t->coef != -1)) return 0;
    found = t->coef;
  }
  return found;
}

static bool is_stored(const LoopFn *fn, u32 buffer) {
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_STORE && n->a == buffer) return true;
  }
  return false;
}

/* Loads and stores go along the row; or stores go from column to column. */
static bool is_access_known(const LoopFn *fn, const LoopNode *n, const PtxScan *s) {
  u32 index = loop_index_of(s->head, 0), par = loop_index_of(fn->body.data[s->first], 0);
  if (!s->across) return direction(fn, n, index) != 0;
  if (!loop_access_is_affine(fn, n)) return false;
  return n->op == LOOP_LOAD || (ptx_goes_along(fn, n, loop_index_of(s->across, 0)) && ptx_moves_with(fn, n, index) &&
                                ptx_moves_with(fn, n, par));
}

/* The statements of the scan: one prefix, no check. */
static bool take_body(const LoopFn *fn, PtxScan *s) {
  u32 index = loop_index_of(s->head, 0);
  for (u32 i = s->from; i < s->end; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    bool access = n->op == LOOP_LOAD || n->op == LOOP_STORE;
    if (loop_is_head(n) || loop_is_terminator(n) || n->op == LOOP_CHECK || n->op == LOOP_ELSE) return false;
    if (n->op == LOOP_PREFIX) {
      if (s->prefix) return false;
      s->prefix = id;
    }
    if (access && !is_access_known(fn, n, s)) return false;
    if (n->op == LOOP_LOAD && is_stored(fn, n->a)) return false;
    if (access) continue;
    memset(s->before, 0, s->nodes);
    loop_each_operand(fn, n, mark_needed, s->before);
    if (s->before[index] || s->before[loop_result_of(fn, s->head, 0)]) return false;
  }
  return s->prefix != 0;
}

/* What the scan's elements need, and what is done with the results. */
static void find_passes(const LoopFn *fn, PtxScan *s) {
  memset(s->before, 0, s->nodes);
  s->before[loop_node(fn, s->prefix)->a] = 1;
  for (u32 i = s->end; i-- > s->from;) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (s->before[id] && id != s->prefix) loop_each_operand(fn, n, mark_needed, s->before);
    if (n->op == LOOP_STORE) s->after[id] = 1;
    if (s->after[id] && id != s->prefix) loop_each_operand(fn, n, mark_needed, s->after);
  }
  s->before[s->prefix] = 0;
}

bool ptx_scan(const LoopFn *fn, Allocator *alloc, PtxScan *s) {
  u32 i = 0;
  *s = (PtxScan){.alloc = alloc, .nodes = fn->nodes.count};
  while (i < fn->body.count && !loop_is_head(loop_node(fn, fn->body.data[i]))) i++;
  if (fn->kind != LOOP_KERNEL || i == fn->body.count || fn->body.count > SCAN_NODES) return false;
  const LoopNode *par = loop_node(fn, fn->body.data[i]);
  if (par->op != LOOP_PAR || par->a != 1 || par->b || ptx_end_of(fn, i) + 1 != fn->body.count) return false;
  s->first = i++;
  u32 inner = 0;
  for (; !loop_is_head(loop_node(fn, fn->body.data[i])) || loop_node(fn, fn->body.data[i])->op == LOOP_FOR; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_STORE || n->op == LOOP_CHECK || n->op == LOOP_END || loop_is_terminator(n) ||
        (n->op == LOOP_LOAD && is_stored(fn, n->a)))
      return false;
    if (n->op != LOOP_FOR) continue;
    if (inner || n->a != 1) return false;
    inner = s->inner = fn->body.data[i];
  }
  s->head = fn->body.data[i];
  s->from = i + 1;
  s->end = ptx_end_of(fn, i);
  const LoopNode *scan = loop_node(fn, s->head);
  if (scan->op != LOOP_SCAN || scan->a != 1 || s->end + 2 + (inner != 0) != fn->body.count) return false;
  s->type = loop_type_of(fn, loop_result_of(fn, s->head, 0));
  if (!ptx_trips_are_given(fn, s->head) || (inner && !ptx_trips_are_given(fn, inner)) || s->type == LT_I1) return false;
  s->before = mem_alloc_zero(alloc, s->nodes);
  s->after = mem_alloc_zero(alloc, s->nodes);
  bool taken = s->before && s->after && !inner && take_body(fn, s);
  if (!taken && s->before && s->after) {
    s->across = inner ? inner : fn->body.data[s->first];
    s->prefix = 0;
    taken = take_body(fn, s);
  }
  if (taken) {
    find_passes(fn, s);
    return true;
  }
  ptx_scan_free(s);
  return false;
}

void ptx_scan_free(PtxScan *s) {
  mem_free(s->alloc, s->before, s->nodes);
  mem_free(s->alloc, s->after, s->nodes);
  s->before = s->after = NULL;
}

u32 ptx_scan_columns(const PtxScan *s) { return !s->across ? 1 : loop_type_bytes(s->type) == 8 ? 16 : 32; }

u32 ptx_scan_bytes(const PtxScan *s) {
  return (s->across ? ptx_columns_words(s) : (u32)WORDS) * (loop_type_bytes(s->type) == 8 ? 8 : 4);
}

/* Totals of so many pieces, of their segments, and so on. */
static u64 totals_of(u64 pieces, u32 *levels) {
  u64 elements = 0;
  for (*levels = 0; pieces; pieces /= SEGMENT, ++*levels) elements += pieces;
  return elements;
}

u64 ptx_chain_scratch(LoopType t, u64 pieces) {
  u32 levels;
  return totals_of(pieces, &levels) * PTX_CHAIN_COLUMN_SLOTS * ptx_chain_step(t, 1);
}

u64 ptx_scan_scratch(const PtxScan *s, u64 pieces) {
  u32 levels;
  u64 elements = totals_of(pieces, &levels);
  /* a level of the processor's has room for 16 segments of the one below, up to the eighth */
  if (levels + (s->across ? 2 : PIECE_LEVELS) > PTX_CHAIN_LEVELS) return 0;
  u32 slots = s->across ? PTX_CHAIN_COLUMN_SLOTS : PTX_CHAIN_ROW_SLOTS;
  return elements * slots * ptx_chain_step(s->type, ptx_scan_columns(s));
}

/* ---- a piece ------------------------------------------------------------------------------------------------ */

typedef struct ScanState {
  const PtxScan *s;
  OpenHead h;
  PtxBlock b;
  u32 bytes;      /* of a word of shared memory */
  LoopOp op;
  Opnd *bases;    /* by node id: the address of the piece's first element */
  Opnd left;      /* elements of the piece, u32 */
  Opnd behind;    /* predicate: it is not the row's first one */
  Opnd before[PIECE_LEVELS];
  PtxChain chain; /* NAME_pieces */
} ScanState;

static Opnd combine(PtxWriter *w, const ScanState *s, Opnd a, Opnd b) {
  return ptx_operation(w, s->op, s->s->type, a, b, (Opnd){0});
}

/* Where word number + number / 16 lies, `first` words from the beginning. */
static Opnd padded_at(PtxWriter *w, const ScanState *s, u32 first, Opnd number) {
  Opnd at = ptx_new(w, REG_R), pad = ptx_new(w, REG_R);
  INS(w, "shr.u32", pad, number, ptx_u32(4));
  INS(w, "add.u32", pad, pad, number);
  INS(w, "mad.lo.u32", at, pad, ptx_u32(s->bytes), s->b.partial);
  if (first) INS(w, "add.u32", at, at, ptx_u32(first * s->bytes));
  return at;
}

static Opnd plain_at(PtxWriter *w, const ScanState *s, u32 first, Opnd number) {
  Opnd at = ptx_new(w, REG_R);
  INS(w, "mad.lo.u32", at, number, ptx_u32(s->bytes), s->b.partial);
  if (first) INS(w, "add.u32", at, at, ptx_u32(first * s->bytes));
  return at;
}

static void meet(PtxWriter *w) { ptx_line(w, "bar.sync 0;"); }

/* Jumps to `L<label>_…` where the thread's number is `count` or more. */
static u32 threads_below(PtxWriter *w, const ScanState *s, u32 count) {
  u32 label = ++w->labels;
  Opnd out = ptx_new(w, REG_P);
  INS(w, "setp.ge.u32", out, s->b.thread, ptx_u32(count));
  ptx_line(w, "@%s bra L%u_skip;", ptx_text(out).s, label);
  w->depth++;
  return label;
}

static void threads_all(PtxWriter *w, u32 label) {
  w->depth--;
  ptx_label(w, "L%u_skip", label);
}

/* The 16 words from `at` on, scanned in place; in words[] what was there, in sums[] what is. */
static void scan_segment(PtxWriter *w, const ScanState *s, Opnd at, Opnd *words, Opnd *sums) {
  Opnd each[SEGMENT];
  for (u32 k = 0; k < SEGMENT; k++) {
    each[k] = k ? ptx_new(w, REG_R) : at;
    if (k) INS(w, "add.u32", each[k], at, ptx_u32(k * s->bytes));
    words[k] = ptx_shared_word(w, s->s->type, each[k]);
  }
  for (u32 k = 0; k < SEGMENT; k++) sums[k] = k ? combine(w, s, sums[k - 1], words[k]) : words[0];
  for (u32 k = 0; k < SEGMENT; k++) ptx_shared_store(w, s->s->type, each[k], sums[k]);
}

static Opnd put_before(PtxWriter *w, const ScanState *s, Opnd has, Opnd first, Opnd v) {
  return ptx_chain_before(w, &s->chain, has, first, v);
}

/* Segments of all levels scanned, each by itself. */
static void put_levels(PtxWriter *w, ScanState *s) {
  Opnd words[SEGMENT], sums[SEGMENT], at = ptx_new(w, REG_R);
  meet(w);
  INS(w, "mad.lo.u32", at, s->b.thread, ptx_u32((SEGMENT + 1) * s->bytes), s->b.partial);
  scan_segment(w, s, at, words, sums);
  ptx_shared_store(w, s->s->type, padded_at(w, s, TOTALS_AT, s->b.thread), sums[SEGMENT - 1]);
  meet(w);
  u32 label = threads_below(w, s, SEGMENT);
  Opnd row = ptx_new(w, REG_R);
  INS(w, "mul.lo.u32", row, s->b.thread, ptx_u32(SEGMENT + 1));
  scan_segment(w, s, plain_at(w, s, TOTALS_AT, row), words, sums);
  ptx_shared_store(w, s->s->type, plain_at(w, s, OVER_AT, s->b.thread), sums[SEGMENT - 1]);
  threads_all(w, label);
  meet(w);
}

/* What lies before the piece: the scan up to the one before it, and what that one and the scan before it make. */
static void read_befores(PtxWriter *w, ScanState *s, const Opnd *words, const Opnd *sums) {
  const PtxChain *c = &s->chain;
  Opnd last = ptx_new(w, REG_R), other = ptx_new(w, REG_R), more = ptx_new(w, REG_P), values[5];
  ptx_chain_put(w, c, c->piece, PTX_CHAIN_FIFTEEN, sums[SEGMENT - 2]);
  ptx_chain_put(w, c, c->piece, PTX_CHAIN_LAST, words[SEGMENT - 1]);
  (void)ptx_chain_scan(w, c, sums[SEGMENT - 1]);
  INS(w, "setp.gt.u32", more, c->piece, ptx_u32(1));
  INS(w, "max.u32", last, c->piece, ptx_u32(1));
  INS(w, "sub.u32", last, last, ptx_u32(1));
  INS(w, "max.u32", other, last, ptx_u32(1));
  INS(w, "sub.u32", other, other, ptx_u32(1));
  const PtxChainWord from[] = {{other, more, PTX_CHAIN_SCAN, 0}, {last, s->behind, PTX_CHAIN_SCAN, 0},
                               {last, s->behind, PTX_CHAIN_TOTAL, 0}, {last, s->behind, PTX_CHAIN_FIFTEEN, 0},
                               {last, s->behind, PTX_CHAIN_LAST, 0}};
  ptx_chain_get(w, c, COUNT_OF(from), from, values);
  s->before[2] = values[1];
  ptx_shared_store(w, s->s->type, plain_at(w, s, BEFORE_AT, ptx_u32(1)), put_before(w, s, more, values[0], values[2]));
  ptx_shared_store(w, s->s->type, plain_at(w, s, BEFORE_AT, ptx_u32(0)),
           combine(w, s, put_before(w, s, more, values[0], values[3]), values[4]));
}

/* … and what lies before them: on level 2 by one thread, on level 1 by each thread one. */
static void put_befores(PtxWriter *w, ScanState *s) {
  Opnd words[SEGMENT], sums[SEGMENT], over = plain_at(w, s, OVER_AT, ptx_u32(0));
  u32 label = threads_below(w, s, 1);
  scan_segment(w, s, over, words, sums);
  ptx_shared_store(w, s->s->type, plain_at(w, s, OVER_AT, ptx_u32(SEGMENT)), sums[SEGMENT - 1]);
  if (w->phase == PTX_PIECES) read_befores(w, s, words, sums);
  for (u32 k = 0; k < SEGMENT; k++)
    ptx_shared_store(w, s->s->type, plain_at(w, s, OVER_AT, ptx_u32(k)),
                     put_before(w, s, s->behind, s->before[2], sums[k]));
  threads_all(w, label);
  meet(w);
  for (u32 k = 0; k < 2 && w->phase == PTX_PIECES; k++)
    s->before[k] = ptx_shared_word(w, s->s->type, plain_at(w, s, BEFORE_AT, ptx_u32(k)));
  Opnd at = padded_at(w, s, TOTALS_AT, s->b.thread), group = ptx_new(w, REG_R), inner = ptx_new(w, REG_P),
       has = ptx_new(w, REG_P), first = ptx_new_for(w, s->s->type), of = ptx_new(w, REG_R);
  INS(w, "shr.u32", group, s->b.thread, ptx_u32(4));
  INS(w, "setp.gt.u32", inner, group, ptx_u32(0));
  INS(w, "selp.u32", of, group, ptx_u32(1), inner);
  INS(w, "sub.u32", of, of, ptx_u32(1));
  INS(w, "or.pred", has, inner, s->behind);
  Opnd there = ptx_shared_word(w, s->s->type, plain_at(w, s, OVER_AT, of));
  ptx_select(w, s->s->type, first, inner, there, s->before[1]);
  ptx_shared_store(w, s->s->type, at, put_before(w, s, has, first, ptx_shared_word(w, s->s->type, at)));
  meet(w);
}

/* The scan up to and with element `number`. */
static Opnd result_of(PtxWriter *w, ScanState *s, Opnd number) {
  Opnd segment = ptx_new(w, REG_R), inner = ptx_new(w, REG_P), has = ptx_new(w, REG_P), of = ptx_new(w, REG_R),
       first = ptx_new_for(w, s->s->type);
  INS(w, "shr.u32", segment, number, ptx_u32(4));
  INS(w, "setp.gt.u32", inner, segment, ptx_u32(0));
  INS(w, "selp.u32", of, segment, ptx_u32(1), inner);
  INS(w, "sub.u32", of, of, ptx_u32(1));
  INS(w, "or.pred", has, inner, s->behind);
  Opnd there = ptx_shared_word(w, s->s->type, padded_at(w, s, TOTALS_AT, of));
  Opnd own = ptx_shared_word(w, s->s->type, padded_at(w, s, 0, number));
  ptx_select(w, s->s->type, first, inner, there, s->before[0]);
  return put_before(w, s, has, first, own);
}

/* Statement `id` for element `number` of the piece. */
static void put_scan_statement(PtxWriter *w, ScanState *s, u32 id, Opnd number) {
  const LoopNode *n = ptx_node(w, id);
  if (n->op != LOOP_LOAD && n->op != LOOP_STORE) {
    ptx_put_statement(w, id);
    return;
  }
  Opnd at = ptx_new(w, REG_RD), bytes = ptx_u32(loop_type_bytes((LoopType)n->mem));
  if (direction(w->f->fn, n, loop_index_of(s->s->head, 0)) > 0) {
    INS(w, "mad.wide.u32", at, number, bytes, s->bases[id]);
  } else {
    INS(w, "mul.wide.u32", at, number, bytes);
    INS(w, "sub.s64", at, s->bases[id], at);
  }
  if (n->op == LOOP_LOAD) ptx_load_from(w, n, at, ptx_define(w, id));
  else ptx_store_to(w, n, at);
}

/* Elements numbers[0 .. copies), loads first: into shared memory, or out of it and to the end. */
static void put_scan_elements(PtxWriter *w, ScanState *s, bool after, u32 copies, const Opnd *numbers,
                              Opnd *const *values) {
  const LoopFn *fn = w->f->fn;
  const u8 *needed = after ? s->s->after : s->s->before;
  for (u32 c = 0; after && c < copies; c++) values[c][s->s->prefix] = result_of(w, s, numbers[c]);
  for (u32 turn = 0; turn < 2; turn++)
    for (u32 i = s->s->from; i < s->s->end; i++) {
      u32 id = fn->body.data[i];
      if (!needed[id] || id == s->s->prefix || (loop_node(fn, id)->op == LOOP_LOAD) != (turn == 0)) continue;
      for (u32 c = 0; c < copies; c++) {
        w->f->values = values[c];
        put_scan_statement(w, s, id, numbers[c]);
      }
    }
  for (u32 c = 0; c < copies && !after; c++) {
    w->f->values = values[c];
    Opnd v = ptx_in_register(w, ptx_value(w, loop_node(fn, s->s->prefix)->a));
    ptx_shared_store(w, s->s->type, padded_at(w, s, 0, numbers[c]), v);
  }
}

/* Elements thread, thread + 256 … of the piece, so many at a time as long as there are so many. */
static void put_scan_loop(PtxWriter *w, ScanState *s, bool after, Opnd number, u32 copies) {
  Opnd *own = w->f->values, *values[COPIES], numbers[COPIES], out = ptx_new(w, REG_P);
  u32 label = ++w->labels;
  ptx_label(w, "L%u_trip", label);
  for (u32 c = 0; c < copies; c++) {
    numbers[c] = c ? ptx_new(w, REG_R) : number;
    if (c) INS(w, "add.u32", numbers[c], number, ptx_u32(c * THREADS));
  }
  INS(w, "setp.ge.u32", out, numbers[copies - 1], s->left);
  ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, label);
  w->depth++;
  if (ptx_copies_begin(w, copies, values)) put_scan_elements(w, s, after, copies, numbers, values);
  ptx_copies_end(w, copies, values, own);
  INS(w, "add.u32", number, number, ptx_u32(copies * THREADS));
  ptx_line(w, "bra L%u_trip;", label);
  w->depth--;
  ptx_label(w, "L%u_out", label);
}

static void put_all_elements(PtxWriter *w, ScanState *s, bool after) {
  Opnd number = ptx_new(w, REG_R);
  INS(w, "mov.u32", number, s->b.thread);
  w->spread_depth++;
  put_scan_loop(w, s, after, number, COPIES);
  put_scan_loop(w, s, after, number, 1);
  w->spread_depth--;
}

/* Words behind the last element: they belong to no result, but are added up with those that do. */
static void clear_rest(PtxWriter *w, ScanState *s) {
  u32 label = ++w->labels;
  Opnd number = ptx_new(w, REG_R), out = ptx_new(w, REG_P);
  LoopType t = s->s->type;
  INS(w, "add.u32", number, s->b.thread, s->left);
  ptx_label(w, "L%u_clear", label);
  INS(w, "setp.ge.u32", out, number, ptx_u32(PTX_SCAN_PIECE));
  ptx_line(w, "@%s bra L%u_cleared;", ptx_text(out).s, label);
  Opnd none = ptx_const(t, loop_reduce_identity((LoopReduce)loop_node(w->f->fn, s->s->head)->aux, t));
  ptx_shared_store(w, s->s->type, padded_at(w, s, 0, number), ptx_in_register(w, none));
  INS(w, "add.u32", number, number, ptx_u32(THREADS));
  ptx_line(w, "bra L%u_clear;", label);
  ptx_label(w, "L%u_cleared", label);
}

/* The addresses of accesses for the row's element `start` (u64). */
static void put_scan_bases(PtxWriter *w, ScanState *s, Opnd start) {
  const LoopFn *fn = w->f->fn;
  w->f->values[loop_index_of(s->s->head, 0)] = start;
  for (u32 i = s->s->from; i < s->s->end; i++) {
    u32 id = fn->body.data[i], op = loop_node(fn, id)->op;
    if (op == LOOP_LOAD || op == LOOP_STORE) s->bases[id] = ptx_address(w, loop_node(fn, id));
  }
}

static void put_left(PtxWriter *w, ScanState *s, Opnd count, Opnd start) {
  Opnd wide = ptx_new(w, REG_RD);
  s->left = ptx_new(w, REG_R);
  INS(w, "sub.u64", wide, count, start);
  INS(w, "min.u64", wide, wide, ptx_number(PTX_SCAN_PIECE));
  INS(w, "cvt.u32.u64", s->left, wide);
}

/* ---- entries -------------------------------------------------------------------------------------------------- */

/* A row, piece by piece. */
static void put_row(PtxWriter *w, ScanState *s, Opnd count) {
  LoopType t = s->s->type;
  u32 label = ++w->labels;
  Opnd start = ptx_new(w, REG_RD), out = ptx_new(w, REG_P), next = ptx_new(w, REG_RD), scan = ptx_new_for(w, t);
  s->behind = ptx_new(w, REG_P);
  ptx_fold_begin_pieces(w, &s->h);
  for (u32 k = 0; k < PIECE_LEVELS; k++) {
    s->before[k] = ptx_new_for(w, t);
    ptx_move(w, t, s->before[k], ptx_const(t, 0));
  }
  INS(w, "mov.u64", start, ptx_number(0));
  ptx_label(w, "L%u_piece", label);
  INS(w, "setp.ge.u64", out, start, count);
  ptx_line(w, "@%s bra L%u_end;", ptx_text(out).s, label);
  w->depth++;
  INS(w, "setp.gt.u64", s->behind, start, ptx_number(0));
  put_left(w, s, count, start);
  put_scan_bases(w, s, start);
  put_all_elements(w, s, false);
  clear_rest(w, s);
  put_levels(w, s);
  put_befores(w, s);
  put_all_elements(w, s, true);
  INS(w, "add.u64", next, start, ptx_number(PTX_SCAN_PIECE));
  Opnd total = ptx_shared_word(w, s->s->type, plain_at(w, s, OVER_AT, ptx_u32(SEGMENT)));
  ptx_fold_piece(w, &s->h, next, total, scan);
  ptx_move(w, t, s->before[0], ptx_shared_word(w, s->s->type, padded_at(w, s, TOTALS_AT, ptx_u32(THREADS - 1))));
  ptx_move(w, t, s->before[1], ptx_shared_word(w, s->s->type, plain_at(w, s, OVER_AT, ptx_u32(SEGMENT - 1))));
  ptx_move(w, t, s->before[2], scan);
  INS(w, "mov.u64", start, next);
  meet(w);
  ptx_line(w, "bra.uni L%u_piece;", label);
  w->depth--;
  ptx_label(w, "L%u_end", label);
}

/* Piece number `item` of all. */
static void put_piece(PtxWriter *w, ScanState *s, Opnd count, Opnd item) {
  Opnd start = ptx_new(w, REG_RD), piece = ptx_new(w, REG_RD);
  PtxChain *c = &s->chain;
  c->slots = PTX_CHAIN_ROW_SLOTS;
  c->lanes = 1;
  c->base = ptx_new(w, REG_RD);
  c->piece = ptx_new(w, REG_R);
  c->blocks = ptx_new(w, REG_R);
  c->keep = plain_at(w, s, KEEP_AT, ptx_u32(0));
  c->keep_step = s->bytes;
  INS(w, "rem.u64", piece, item, w->blocks);
  INS(w, "mul.lo.u64", start, piece, ptx_number(PTX_SCAN_PIECE));
  INS(w, "cvt.u32.u64", c->piece, piece);
  INS(w, "cvt.u32.u64", c->blocks, w->blocks);
  INS(w, "mad.lo.u64", c->base, w->item_trip, w->total, w->to);
  s->behind = ptx_new(w, REG_P);
  INS(w, "setp.gt.u64", s->behind, piece, ptx_number(0));
  put_left(w, s, count, start);
  put_scan_bases(w, s, start);
  put_all_elements(w, s, false);
  clear_rest(w, s);
  put_levels(w, s);
  put_befores(w, s);
  put_all_elements(w, s, true);
}

/* A trip, or a piece of one. */
static void put_item(PtxWriter *w, ScanState *s, Opnd item) {
  const LoopFn *fn = w->f->fn;
  Opnd index = ptx_define(w, loop_index_of(fn->body.data[s->s->first], 0));
  w->item_trip = item;
  if (w->phase == PTX_PIECES) {
    w->item_trip = ptx_new(w, REG_RD);
    INS(w, "div.u64", w->item_trip, item, w->blocks);
  }
  INS(w, "add.s64", index, w->lo, w->item_trip);
  for (u32 i = s->s->first + 1; fn->body.data[i] != s->s->head; i++) ptx_put_statement(w, fn->body.data[i]);
  Opnd count = ptx_in_register(w, ptx_value(w, loop_trips_of(fn, s->s->head, 0)));
  if (w->phase == PTX_PIECES) put_piece(w, s, count, item);
  else put_row(w, s, count);
}

void ptx_put_scan(PtxWriter *w) {
  const LoopFn *fn = w->f->fn;
  ScanState s = {.s = w->scan, .h = {.head = w->scan->head}, .bytes = loop_type_bytes(w->scan->type) == 8 ? 8 : 4};
  size_t bytes = sizeof *s.bases * (fn->nodes.count + 1);
  s.op = loop_reduce_op((LoopReduce)loop_node(fn, s.s->head)->aux);
  s.chain = (PtxChain){.op = s.op, .type = s.s->type};
  if (!(s.bases = mem_alloc_zero(w->alloc, bytes))) {
    w->failed = true;
    return;
  }
  for (u32 i = 0; i < s.s->first; i++) ptx_put_statement(w, fn->body.data[i]);
  ptx_block_begin(w, &s.b);
  u32 label = s.h.label = ++w->labels;
  Opnd item = ptx_new(w, REG_RD), items = ptx_new(w, REG_RD), step = ptx_new(w, REG_RD), out = ptx_new(w, REG_P),
       block = ptx_new(w, REG_R), grid = ptx_new(w, REG_R);
  if (w->phase == PTX_PIECES) {
    INS(w, "cvt.u64.u32", item, ptx_chain_ticket(w, &s.b, w->from, plain_at(w, &s, TICKET_AT, ptx_u32(0))));
    put_item(w, &s, item);
    mem_free(w->alloc, s.bases, bytes);
    return;
  }
  ptx_line(w, "mov.u32 %s, %%ctaid.x;", ptx_text(block).s);
  ptx_line(w, "mov.u32 %s, %%nctaid.x;", ptx_text(grid).s);
  INS(w, "cvt.u64.u32", item, block);
  INS(w, "cvt.u64.u32", step, grid);
  INS(w, "sub.u64", items, w->hi, w->lo);
  ptx_label(w, "L%u_item", label);
  INS(w, "setp.ge.u64", out, item, items);
  ptx_line(w, "@%s bra L%u_done;", ptx_text(out).s, label);
  w->depth++;
  put_item(w, &s, item);
  INS(w, "add.u64", item, item, step);
  ptx_line(w, "bra.uni L%u_item;", label);
  w->depth--;
  ptx_label(w, "L%u_done", label);
  mem_free(w->alloc, s.bases, bytes);
}

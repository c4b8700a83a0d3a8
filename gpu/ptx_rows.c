/* ptx_rows.c — kernels that go over the same row several times (softmax, layer norm): a block of threads takes a row,
 * and reads it from memory once.
 *
 * `par i { m = reduce max j {…}  s = reduce add j {…}  for j {…} }`, all loops of the same length:
 *
 *   fill    what several loops read is loaded by the first of them and left in shared memory; likewise a function
 *           such as `exp` that several loops compute, and what a sum adds where that is costly
 *   loops   thread t does the elements t, t + number of threads, …, so it finds its own elements in shared memory
 *   sums    in the order LANES: a block of 64 W elements is done by a warp, behind a meeting of the threads
 *   join    results of warps, or of blocks of elements, lie in shared memory; behind a meeting every warp joins them
 *
 * What is computed once for a row, every thread computes. Any number of threads gives the same bits.
 *
 * A row that is too long for the shared memory of a block is done by several, a part each (NAME_team). Parts are whole
 * blocks of each sum. What a part gives of a reduction the others read from scratch memory, and all join the same
 * results in the same order. A block waits for all others of its row, so these run at once: a launch has no more parts
 * than the device can hold, and blocks take their numbers in the order in which they begin. */
#include "gpu/ptx_writer.h"

#include <string.h>

enum { WARP = 32, COPIES = 4, SUM_COPIES = 8, ROW_NODES = 96, EXACT_PART = 4096,
       SCRATCH_BYTES = PTX_ROW_PARTIALS * 16 /* of a reduction: two words for each result, at most */ };

static Opnd word32(u32 v) { return ptx_const(LT_U32, v); }

/* ---- which kernels ---------------------------------------------------------------------------------------- */

static u32 slot_width(LoopType t) { return loop_type_bytes(t) == 8 ? 8 : 4; }

static bool is_sum(const LoopFn *fn, u32 head) {
  return loop_node(fn, head)->op == LOOP_REDUCE &&
         !ptx_is_exact(loop_node(fn, head), loop_type_of(fn, loop_result_of(fn, head, 0)));
}

static bool is_head_taken(const LoopFn *fn, u32 head) {
  const LoopNode *n = loop_node(fn, head);
  if (n->a != 1 || n->b) return false;
  if (n->op == LOOP_REDUCE) return !ptx_in_rows(fn, head) && loop_type_of(fn, loop_result_of(fn, head, 0)) != LT_I1;
  return n->op == LOOP_FOR || n->op == LOOP_PAR;
}

/* Values that are the same for equal elements: the first one of a class stands for all. */
static bool same_value(const PtxRows *r, const LoopFn *fn, u32 a, u32 b) {
  const LoopNode *x = loop_node(fn, a), *y = loop_node(fn, b);
  LoopForm form = loop_op_form((LoopOp)x->op);
  if (x->op != y->op || x->type != y->type || x->mem != y->mem || x->imm != y->imm || x->aux != y->aux) return false;
  if (form != LOOP_FORM_ACCESS)
    return r->same[x->a] == r->same[y->a] && r->same[x->b] == r->same[y->b] && r->same[x->c] == r->same[y->c];
  if (x->op != LOOP_LOAD || x->a != y->a || x->count != y->count) return false;
  for (u32 i = 0; i < x->count; i++) {
    const LoopTerm *s = &loop_terms(fn, x)[i], *t = &loop_terms(fn, y)[i];
    if (s->coef != t->coef || s->stride[0] != t->stride[0] || s->stride[1] != t->stride[1] ||
        r->same[s->var] != r->same[t->var])
      return false;
  }
  return true;
}

static void find_class(PtxRows *r, const LoopFn *fn, u32 id) {
  for (u32 k = 0; k < r->count; k++)
    for (u32 i = r->from[k]; i < r->end[k]; i++) {
      u32 other = fn->body.data[i];
      if (other == id) return;
      if (r->same[other] == other && same_value(r, fn, id, other)) {
        r->same[id] = other;
        return;
      }
    }
}

/* The index counts in whole elements, in one term. */
bool ptx_goes_along(const LoopFn *fn, const LoopNode *access, u32 index) {
  u32 terms = 0;
  bool whole = false;
  for (u32 i = 0; i < access->count; i++) {
    const LoopTerm *t = &loop_terms(fn, access)[i];
    if (t->var != index) continue;
    terms++;
    whole = t->coef == 1 && !t->stride[0] && !t->stride[1];
  }
  return terms == 1 && whole && loop_access_is_affine(fn, access);
}

static bool is_written(const LoopFn *fn, u32 buffer) {
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_STORE && n->a == buffer) return true;
  }
  return false;
}

/* One loop, from its head at body[at] on: it loads what the kernel does not write, computes, yields or stores. */
static bool take_loop(PtxRows *r, const LoopFn *fn, u32 at) {
  u32 head = fn->body.data[at], k = r->count, trips = loop_trips_of(fn, head, 0), op = loop_node(fn, trips)->op;
  if (k == PTX_ROW_HEADS || !is_head_taken(fn, head) || (op != LOOP_CONST && op != LOOP_PARAM)) return false;
  if (k && loop_trips_of(fn, r->heads[0], 0) != trips) return false;
  r->heads[k] = head;
  r->from[k] = at + 1;
  r->end[k] = ptx_end_of(fn, at);
  r->count++;
  u32 index = loop_index_of(head, 0);
  r->same[index] = loop_index_of(r->heads[0], 0);
  for (u32 i = r->from[k]; i < r->end[k]; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (n->op == LOOP_YIELD && i + 1 == r->end[k]) continue;
    if (loop_is_head(n) || loop_is_terminator(n) || n->op == LOOP_CHECK || n->op == LOOP_ELSE || n->op == LOOP_PREFIX)
      return false;
    if (n->op == LOOP_STORE && !ptx_goes_along(fn, n, index)) return false;
    if (n->op == LOOP_LOAD && is_written(fn, n->a)) return false;
    if (n->op != LOOP_STORE) find_class(r, fn, id);
  }
  return loop_node(fn, head)->op != LOOP_REDUCE || loop_node(fn, fn->body.data[r->end[k] - 1])->op == LOOP_YIELD;
}

static u32 yield_of(const PtxRows *r, const LoopFn *fn, u32 k) {
  const LoopNode *n = loop_node(fn, fn->body.data[r->end[k] - 1]);
  return n->op == LOOP_YIELD ? loop_list(fn, n)[0] : 0;
}

/* Its value comes from shared memory in loop k: there, or by the sums of the loop that left it there. */
static bool comes_from_slot(const PtxRows *r, u32 id, u32 k, PtxRowPass pass) {
  u8 slot = r->slot[r->same[id]];
  return slot && (r->made[r->same[id]] < k || pass == PTX_ROW_SUM);
}

static void mark(void *ctx, u32 id) { ((u8 *)ctx)[id] = 1; }

/* Which statements of loop k a pass needs, in r->needed. */
static void find_needed(const PtxRows *r, const LoopFn *fn, u32 k, PtxRowPass pass) {
  bool sum = is_sum(fn, r->heads[k]);
  u32 yield = yield_of(r, fn, k);
  memset(r->needed, 0, r->nodes);
  if (yield && sum == (pass == PTX_ROW_SUM)) r->needed[yield] = 1;
  for (u32 i = r->end[k]; i-- > r->from[k];) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (n->op == LOOP_YIELD) continue;
    bool makes = n->op != LOOP_STORE && pass == PTX_ROW_EACH && r->slot[r->same[id]] && r->made[r->same[id]] == k;
    if (n->op == LOOP_STORE || makes) r->needed[id] = 1;
    if (r->needed[id] && (n->op == LOOP_STORE || !comes_from_slot(r, id, k, pass)))
      loop_each_operand(fn, n, mark, r->needed);
  }
}

/* In how many loops a value of this class is needed; *first and *last of them. */
static u32 loops_with(const PtxRows *r, const LoopFn *fn, u32 class, u32 *first, u32 *last) {
  u32 count = 0;
  for (u32 k = 0; k < r->count; k++) {
    bool found = false;
    for (PtxRowPass pass = PTX_ROW_EACH; pass <= PTX_ROW_SUM; pass++) {
      if (pass == PTX_ROW_SUM && !is_sum(fn, r->heads[k])) continue;
      find_needed(r, fn, k, pass);
      for (u32 i = r->from[k]; i < r->end[k]; i++) {
        u32 id = fn->body.data[i];
        found |= r->same[id] == class && r->needed[id];
      }
    }
    if (!found) continue;
    if (!count++) *first = k;
    *last = k;
  }
  return count;
}

/* What a sum adds takes a function, or an element that lies in no shared memory: all threads compute it. */
static bool is_costly(const PtxRows *r, const LoopFn *fn, u32 k) {
  find_needed(r, fn, k, PTX_ROW_SUM);
  for (u32 i = r->from[k]; i < r->end[k]; i++) {
    u32 id = fn->body.data[i], op = loop_node(fn, id)->op;
    if (r->needed[id] && !r->slot[r->same[id]] && (op == LOOP_MATH || op == LOOP_LOAD)) return true;
  }
  return false;
}

/* Each class that shared memory is to hold gets a place, in the order of the loops that make them; a place whose value
 * no later loop needs is used again. */
static bool give_places(PtxRows *r, const LoopFn *fn) {
  u32 free_from[PTX_ROW_SLOTS] = {0}, made[PTX_ROW_SLOTS];
  for (u32 k = 0; k < r->count; k++)
    for (u32 i = r->from[k]; i < r->end[k]; i++) {
      u32 id = fn->body.data[i], first = 0, last = 0, bytes, s = 0;
      if (r->same[id] != id || !r->slot[id]) continue;
      (void)loops_with(r, fn, id, &first, &last);
      bytes = slot_width(loop_type_of(fn, id));
      /* in loop k itself it is read by its own thread, unless the sums of that loop read it */
      bool sums_read = is_sum(fn, r->heads[k]) && !r->slot[r->same[yield_of(r, fn, k)]];
      while (s < r->slots && (r->slot_bytes[s] != bytes || free_from[s] > k + !sums_read || made[s] == k ||
                              loop_node(fn, id)->op == LOOP_LOAD))
        s++;
      if (s == PTX_ROW_SLOTS) return false;
      if (s == r->slots) r->slot_bytes[r->slots++] = (u8)bytes;
      free_from[s] = last + 1;
      made[s] = k;
      r->slot[id] = (u8)(s + 1);
    }
  return true;
}

static bool choose_slots(PtxRows *r, const LoopFn *fn) {
  static const u32 kinds[] = {LOOP_MATH, LOOP_LOAD};
  for (u32 pass = 0; pass < COUNT_OF(kinds); pass++)
    for (u32 k = 0; k < r->count; k++)
      for (u32 i = r->from[k]; i < r->end[k]; i++) {
        u32 id = fn->body.data[i], first = 0, last = 0;
        const LoopNode *n = loop_node(fn, id);
        if (n->op != kinds[pass] || r->same[id] != id || n->type == LT_I1) continue;
        if (n->op == LOOP_LOAD && !ptx_goes_along(fn, n, loop_index_of(r->heads[k], 0))) continue;
        if (loops_with(r, fn, id, &first, &last) < 2) continue;
        r->slot[id] = PTX_ROW_SLOTS + 1; /* its place is not known yet */
        r->made[id] = (u8)first;
      }
  for (u32 k = 0; k < r->count; k++) {
    u32 yield = yield_of(r, fn, k);
    if (!is_sum(fn, r->heads[k]) || !is_costly(r, fn, k)) continue;
    if (loop_node(fn, yield)->type == LT_I1 || r->slot[r->same[yield]]) continue;
    r->slot[r->same[yield]] = PTX_ROW_SLOTS + 1;
    r->made[r->same[yield]] = (u8)k;
  }
  return give_places(r, fn) && r->slots > 0;
}

bool ptx_rows(const LoopFn *fn, Allocator *alloc, PtxRows *r) {
  u32 i = 0;
  *r = (PtxRows){.alloc = alloc, .nodes = fn->nodes.count};
  while (i < fn->body.count && !loop_is_head(loop_node(fn, fn->body.data[i]))) i++;
  if (fn->kind != LOOP_KERNEL || i == fn->body.count || fn->body.count > ROW_NODES) return false;
  const LoopNode *par = loop_node(fn, fn->body.data[i]);
  if (par->op != LOOP_PAR || par->a != 1 || par->b || ptx_end_of(fn, i) + 1 != fn->body.count) return false;
  r->first = i;
  r->same = mem_alloc(alloc, sizeof *r->same * r->nodes);
  r->slot = mem_alloc_zero(alloc, r->nodes);
  r->made = mem_alloc_zero(alloc, r->nodes);
  r->needed = mem_alloc_zero(alloc, r->nodes);
  bool ok = r->same && r->slot && r->made && r->needed;
  for (u32 id = 0; ok && id < r->nodes; id++) r->same[id] = id;
  for (i++; ok && i + 1 < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (loop_is_head(n)) {
      ok = take_loop(r, fn, i);
      if (ok) i = r->end[r->count - 1];
      continue;
    }
    ok = !loop_is_terminator(n) && n->op != LOOP_CHECK && n->op != LOOP_ELSE &&
         (n->op != LOOP_LOAD || !is_written(fn, n->a));
  }
  if (ok && r->count > 1 && choose_slots(r, fn)) {
    r->longest = UINT32_MAX / 2;
    for (u32 k = 0; k < r->count; k++) {
      r->reductions += loop_node(fn, r->heads[k])->op == LOOP_REDUCE;
      if (!is_sum(fn, r->heads[k])) continue;
      LoopType t = loop_type_of(fn, loop_result_of(fn, r->heads[k], 0));
      if (r->part < LOOP_BLOCK_TRIPS * loop_lanes(t)) r->part = LOOP_BLOCK_TRIPS * loop_lanes(t);
      u64 most = (u64)PTX_ROW_PARTIALS * LOOP_BLOCK_TRIPS * loop_lanes(t);
      if (most < r->longest) r->longest = most;
    }
    if (!r->part) r->part = EXACT_PART; /* there is no sum */
    return true;
  }
  ptx_rows_free(r);
  return false;
}

void ptx_rows_free(PtxRows *r) {
  mem_free(r->alloc, r->same, sizeof *r->same * r->nodes);
  mem_free(r->alloc, r->slot, r->nodes);
  mem_free(r->alloc, r->made, r->nodes);
  mem_free(r->alloc, r->needed, r->nodes);
  r->same = NULL;
  r->slot = r->made = r->needed = NULL;
}

void ptx_rows_from_memory(PtxRows *r) {
  memset(r->slot, 0, r->nodes);
  r->slots = 0;
}

u32 ptx_rows_bytes(const PtxRows *r) {
  u32 bytes = 0;
  for (u32 s = 0; s < r->slots; s++) bytes += r->slot_bytes[s];
  return bytes;
}

u32 ptx_rows_part(const PtxRows *r) { return r->part; }
u32 ptx_rows_shared(const PtxRows *r) { return PTX_ROW_PARTIAL_BYTES + r->part * ptx_rows_bytes(r) + 8; }
u32 ptx_rows_scratch(const PtxRows *r) { return r->reductions * SCRATCH_BYTES; }

/* ---- the entry ---------------------------------------------------------------------------------------------- */

typedef struct RowState {
  const PtxRows *r;
  PtxBlock b;
  Opnd count;                /* elements of a row, u32 */
  Opnd from, end;            /* u32: those of this block; NAME_team: a part of them */
  Opnd place[PTX_ROW_SLOTS]; /* u32; of element 0, wherever the part begins */
  Opnd part, parts;          /* NAME_team, u32: the part, of how many */
  Opnd scratch;              /* u64: the row's scratch memory */
  u32 handed;                /* reductions that stand in the text so far */
} RowState;

static Opnd special(PtxWriter *w, const char *name) {
  Opnd v = ptx_new(w, REG_R);
  ptx_line(w, "mov.u32 %s, %%%s;", ptx_text(v).s, name);
  return v;
}

/* base + number * bytes in shared memory */
static Opnd word_at(PtxWriter *w, Opnd base, Opnd number, u32 bytes) {
  Opnd at = ptx_new(w, REG_R);
  INS(w, "mad.lo.u32", at, number, word32(bytes), base);
  return at;
}

void ptx_block_begin(PtxWriter *w, PtxBlock *b) {
  b->thread = special(w, "tid.x");
  b->threads = special(w, "ntid.x");
  b->warp = ptx_new(w, REG_R);
  b->warps = ptx_new(w, REG_R);
  b->lane = ptx_new(w, REG_R);
  b->partial = ptx_new(w, REG_R);
  INS(w, "shr.u32", b->warp, b->thread, word32(5));
  INS(w, "shr.u32", b->warps, b->threads, word32(5));
  INS(w, "and.b32", b->lane, b->thread, word32(WARP - 1));
  ptx_line(w, "mov.u32 %s, rows;", ptx_text(b->partial).s);
}

Opnd ptx_block_place(PtxWriter *w, PtxBlock *b) {
  Opnd place = ptx_new(w, REG_R);
  INS(w, "add.u32", place, b->partial, word32(b->joins++ % 2 * PTX_ROW_PARTIAL_BYTES / 2));
  return place;
}

void ptx_block_leave(PtxWriter *w, const PtxBlock *b, OpenHead *h, Opnd place, Opnd number) {
  LoopType t = loop_type_of(w->f->fn, loop_result_of(w->f->fn, h->head, 0));
  Opnd v = ptx_fold_join(w, h), first = ptx_new(w, REG_P), at = word_at(w, place, number, 8);
  if (t == LT_I1) {
    Opnd word = ptx_new(w, REG_R);
    INS(w, "selp.u32", word, word32(1), word32(0), v);
    v = word;
  }
  INS(w, "setp.eq.u32", first, b->lane, word32(0));
  ptx_shared_store_where(w, first, t == LT_I1 ? LT_U32 : t, at, v);
}

Opnd ptx_block_join(PtxWriter *w, const PtxBlock *b, OpenHead *h, Opnd place, Opnd count) {
  LoopType t = loop_type_of(w->f->fn, loop_result_of(w->f->fn, h->head, 0));
  Opnd v = ptx_new_for(w, t), there = ptx_new(w, REG_P), word = t == LT_I1 ? ptx_new(w, REG_R) : v;
  ptx_line(w, "bar.sync 0;");
  ptx_shared_load(w, t == LT_I1 ? LT_U32 : t, word, word_at(w, place, b->lane, 8));
  if (t == LT_I1) INS(w, "setp.ne.u32", v, word, word32(0));
  INS(w, "setp.lt.u32", there, b->lane, count);
  ptx_fold_clear(w, h);
  ptx_select(w, t, h->acc[0][0], there, v, h->acc[0][0]);
  return ptx_fold_join(w, h);
}

/* This block's part of a row: by a number that it takes. */
static void take_part_of_row(PtxWriter *w, RowState *s) {
  Opnd place = ptx_new(w, REG_R), row = ptx_new(w, REG_R), wide = ptx_new(w, REG_RD);
  INS(w, "add.u32", place, s->b.partial, word32(ptx_rows_shared(s->r) - 8));
  Opnd ticket = ptx_chain_ticket(w, &s->b, w->from, place);
  s->part = ptx_new(w, REG_R);
  s->parts = ptx_new(w, REG_R);
  s->from = ptx_new(w, REG_R);
  s->end = ptx_new(w, REG_R);
  s->scratch = ptx_new(w, REG_RD);
  INS(w, "cvt.u32.u64", s->parts, w->blocks);
  INS(w, "div.u32", row, ticket, s->parts);
  INS(w, "rem.u32", s->part, ticket, s->parts);
  INS(w, "mul.lo.u32", s->from, s->part, word32(s->r->part));
  INS(w, "add.u32", s->end, s->from, word32(s->r->part));
  INS(w, "min.u32", s->end, s->end, s->count);
  INS(w, "cvt.u64.u32", wide, row);
  INS(w, "mad.lo.u64", s->scratch, wide, w->total, w->to);
  w->item = wide;
}

/* Results from .. end of `total` are this block's, and lie in shared memory from `place` on; those of the other parts
 * of the row come there. */
static void hand_on(PtxWriter *w, RowState *s, LoopType t, Opnd place, Opnd from, Opnd end, Opnd total) {
  u32 label = ++w->labels;
  PtxChain c = {.type = t, .base = ptx_new(w, REG_RD), .slots = 1, .lanes = 1};
  Opnd out = ptx_new(w, REG_P), other = ptx_new(w, REG_P), low = ptx_new(w, REG_P), high = ptx_new(w, REG_P), got,
       v = ptx_new_for(w, t), at = word_at(w, place, s->b.lane, 8);
  INS(w, "add.u64", c.base, s->scratch, ptx_number(s->handed++ * SCRATCH_BYTES));
  ptx_line(w, "bar.sync 0;");
  INS(w, "setp.ge.u32", out, s->b.thread, total); /* threads of the first warp: there are no more results */
  ptx_line(w, "@%s bra L%u_handed;", ptx_text(out).s, label);
  w->depth++;
  INS(w, "setp.lt.u32", low, s->b.lane, from);
  INS(w, "setp.ge.u32", high, s->b.lane, end);
  INS(w, "or.pred", other, low, high);
  ptx_line(w, "@%s bra L%u_theirs;", ptx_text(other).s, label);
  ptx_shared_load(w, t, v, at);
  ptx_chain_put(w, &c, s->b.lane, 0, v);
  ptx_line(w, "bra L%u_handed;", label);
  ptx_label(w, "L%u_theirs", label);
  PtxChainWord word = {s->b.lane, other, 0, 0};
  ptx_chain_get(w, &c, 1, &word, &got);
  ptx_shared_store(w, t, at, got);
  w->depth--;
  ptx_label(w, "L%u_handed", label);
}

static void put_state(PtxWriter *w, RowState *s) {
  Opnd trips = ptx_in_register(w, ptx_value(w, loop_trips_of(w->f->fn, s->r->heads[0], 0)));
  ptx_block_begin(w, &s->b);
  s->count = ptx_new(w, REG_R);
  INS(w, "cvt.u32.u64", s->count, trips);
  bool team = w->phase == PTX_TEAM;
  s->from = word32(0);
  s->end = s->count;
  if (team) take_part_of_row(w, s);
  Opnd at = ptx_new(w, REG_R);
  INS(w, "add.u32", at, s->b.partial, word32(PTX_ROW_PARTIAL_BYTES));
  for (u32 bytes = 8; bytes >= 4; bytes -= 4) /* wide ones first: they are aligned */
    for (u32 k = 0; k < s->r->slots; k++) {
      if (s->r->slot_bytes[k] != bytes) continue;
      s->place[k] = at;
      if (team) {
        s->place[k] = ptx_new(w, REG_R);
        INS(w, "mul.lo.u32", s->place[k], s->from, word32(bytes));
        INS(w, "sub.u32", s->place[k], at, s->place[k]);
      }
      at = word_at(w, at, team ? word32(s->r->part) : s->count, bytes);
    }
}

/* Addresses of accesses in loop k for its element 0, by node id: computed once for a row. */
static void put_bases(PtxWriter *w, const RowState *s, u32 k, Opnd *bases) {
  const LoopFn *fn = w->f->fn;
  u32 index = loop_index_of(s->r->heads[k], 0);
  w->f->values[index] = ptx_in_register(w, ptx_number(0));
  for (u32 i = s->r->from[k]; i < s->r->end[k]; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if ((n->op != LOOP_LOAD && n->op != LOOP_STORE) || !ptx_goes_along(fn, n, index)) continue;
    if (n->op == LOOP_LOAD && comes_from_slot(s->r, id, k, PTX_ROW_EACH)) continue;
    bases[id] = ptx_address(w, n);
  }
}

static bool reads_index(const PtxRows *r, const LoopFn *fn, u32 k) {
  u32 index = loop_index_of(r->heads[k], 0);
  bool found = false;
  for (u32 i = r->from[k]; i < r->end[k] && !found; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    bool access = n->op == LOOP_LOAD || n->op == LOOP_STORE;
    if (access && ptx_goes_along(fn, n, index)) continue;
    memset(r->needed, 0, r->nodes);
    loop_each_operand(fn, n, mark, r->needed);
    found = r->needed[index];
  }
  return found;
}

static Opnd slot_at(PtxWriter *w, const RowState *s, u32 class, Opnd number) {
  return word_at(w, s->place[s->r->slot[class] - 1], number, slot_width(loop_type_of(w->f->fn, class)));
}

static void leave_in_slot(PtxWriter *w, const RowState *s, u32 id, Opnd number) {
  Opnd at = slot_at(w, s, s->r->same[id], number), v = ptx_in_register(w, ptx_value(w, id));
  ptx_shared_store(w, loop_type_of(w->f->fn, id), at, v);
}

static void put_row_statement(PtxWriter *w, const RowState *s, u32 id, u32 k, PtxRowPass pass, const Opnd *bases,
                              Opnd number) {
  const LoopNode *n = ptx_node(w, id);
  if (n->op != LOOP_STORE && comes_from_slot(s->r, id, k, pass)) {
    Opnd at = slot_at(w, s, s->r->same[id], number);
    ptx_shared_load(w, (LoopType)n->type, ptx_define(w, id), at);
  } else if (bases[id].kind != REG_NONE) {
    Opnd at = ptx_new(w, REG_RD);
    INS(w, "mad.wide.u32", at, number, word32(loop_type_bytes((LoopType)n->mem)), bases[id]);
    if (n->op == LOOP_LOAD) ptx_load_from(w, n, at, ptx_define(w, id));
    else ptx_store_to(w, n, at);
  } else {
    ptx_put_statement(w, id);
  }
}

/* Elements numbers[0 .. copies) of loop k, loads first. values[c]: those of element c. */
static void put_row_elements(PtxWriter *w, const RowState *s, u32 k, PtxRowPass pass, const Opnd *bases, u32 copies,
                             const Opnd *numbers, Opnd *const *values) {
  const LoopFn *fn = w->f->fn;
  const PtxRows *r = s->r;
  for (u32 turn = 0; turn < 2; turn++)
    for (u32 i = r->from[k]; i < r->end[k]; i++) {
      u32 id = fn->body.data[i];
      const LoopNode *n = loop_node(fn, id);
      if (n->op == LOOP_YIELD || !r->needed[id]) continue;
      bool slot = n->op != LOOP_STORE && comes_from_slot(r, id, k, pass);
      bool load = slot || (n->op == LOOP_LOAD && bases[id].kind != REG_NONE);
      if (load != (turn == 0)) continue;
      for (u32 c = 0; c < copies; c++) {
        w->f->values = values[c];
        put_row_statement(w, s, id, k, pass, bases, numbers[c]);
      }
    }
  if (pass == PTX_ROW_SUM) return;
  for (u32 i = r->from[k]; i < r->end[k]; i++) {
    u32 id = fn->body.data[i];
    bool makes = loop_node(fn, id)->op != LOOP_STORE && r->slot[r->same[id]] && r->made[r->same[id]] == k;
    for (u32 c = 0; c < copies && makes; c++) {
      w->f->values = values[c];
      leave_in_slot(w, s, id, numbers[c]);
    }
  }
}

typedef struct RowLoop {
  u32 k;
  PtxRowPass pass;
  OpenHead *h;   /* of a reduction whose elements are taken, or NULL */
  Opnd number, limit, step; /* u32; step: of a thread from element to element */
  const Opnd *bases;
  bool index;    /* the body reads its number */
} RowLoop;

/* Elements number, number + step … below limit, so many at a time as long as there are so many. */
static void put_row_loop(PtxWriter *w, const RowState *s, const RowLoop *l, u32 copies) {
  const LoopFn *fn = w->f->fn;
  Opnd *own = w->f->values, *values[SUM_COPIES], numbers[SUM_COPIES], out = ptx_new(w, REG_P);
  u32 label = ++w->labels, index = loop_index_of(s->r->heads[l->k], 0), yield = yield_of(s->r, fn, l->k);
  Opnd stride = ptx_new(w, REG_R);
  ptx_label(w, "L%u_trip", label);
  for (u32 c = 0; c < copies; c++) {
    numbers[c] = c ? ptx_new(w, REG_R) : l->number;
    if (c) INS(w, "add.u32", numbers[c], numbers[c - 1], l->step);
  }
  INS(w, "setp.ge.u32", out, numbers[copies - 1], l->limit);
  ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, label);
  w->depth++;
  if (ptx_copies_begin(w, copies, values)) {
    for (u32 c = 0; c < copies && l->index; c++) {
      values[c][index] = ptx_new(w, REG_RD);
      INS(w, "cvt.u64.u32", values[c][index], numbers[c]);
    }
    find_needed(s->r, fn, l->k, l->pass);
    put_row_elements(w, s, l->k, l->pass, l->bases, copies, numbers, values);
    for (u32 c = 0; c < copies && l->h; c++) {
      w->f->values = values[c];
      ptx_fold_give(w, l->h, copies == 1 ? UINT32_MAX : c, l->number, ptx_in_register(w, ptx_value(w, yield)));
    }
  }
  ptx_copies_end(w, copies, values, own);
  INS(w, "mul.lo.u32", stride, l->step, word32(copies));
  INS(w, "add.u32", l->number, l->number, stride);
  ptx_line(w, "bra L%u_trip;", label);
  w->depth--;
  ptx_label(w, "L%u_out", label);
}

/* A sum: warp b does the blocks b, b + number of warps, … */
static Opnd put_sum(PtxWriter *w, RowState *s, u32 k, OpenHead *h, Opnd partial, const Opnd *bases, bool index) {
  LoopType t = loop_type_of(w->f->fn, loop_result_of(w->f->fn, h->head, 0));
  u32 length = loop_lanes(t) * LOOP_BLOCK_TRIPS, label = ++w->labels;
  Opnd block = ptx_new(w, REG_R), first = ptx_new(w, REG_R), limit = ptx_new(w, REG_R), out = ptx_new(w, REG_P),
       number = ptx_new(w, REG_R), blocks = ptx_new(w, REG_R);
  ptx_line(w, "bar.sync 0;");
  bool team = w->phase == PTX_TEAM;
  Opnd own = ptx_new(w, REG_R), own_end = ptx_new(w, REG_R);
  if (team) {
    INS(w, "mul.lo.u32", own, s->part, word32(s->r->part / length));
    INS(w, "add.u32", own_end, own, word32(s->r->part / length));
    INS(w, "add.u32", block, own, s->b.warp);
  } else {
    INS(w, "mov.u32", block, s->b.warp);
  }
  ptx_label(w, "L%u_block", label);
  INS(w, "mul.lo.u32", first, block, word32(length));
  INS(w, "setp.ge.u32", out, first, s->end);
  ptx_line(w, "@%s bra L%u_joined;", ptx_text(out).s, label);
  w->depth++;
  INS(w, "add.u32", limit, first, word32(length));
  INS(w, "min.u32", limit, limit, s->end);
  INS(w, "add.u32", number, first, s->b.lane);
  ptx_fold_clear(w, h);
  RowLoop l = {.k = k, .pass = PTX_ROW_SUM, .h = h, .number = number, .limit = limit, .step = word32(WARP),
               .bases = bases, .index = index};
  put_row_loop(w, s, &l, SUM_COPIES);
  put_row_loop(w, s, &l, 1);
  ptx_block_leave(w, &s->b, h, partial, block);
  INS(w, "add.u32", block, block, s->b.warps);
  ptx_line(w, "bra L%u_block;", label);
  w->depth--;
  ptx_label(w, "L%u_joined", label);
  INS(w, "add.u32", blocks, s->count, word32(length - 1));
  INS(w, "div.u32", blocks, blocks, word32(length));
  if (team) hand_on(w, s, t, partial, own, own_end, blocks);
  return ptx_block_join(w, &s->b, h, partial, blocks);
}

/* What the parts of the row have of an exact reduction, joined. */
static Opnd join_parts(PtxWriter *w, RowState *s, OpenHead *h, Opnd own) {
  LoopType t = loop_type_of(w->f->fn, loop_result_of(w->f->fn, h->head, 0));
  Opnd place = ptx_block_place(w, &s->b), first = ptx_new(w, REG_P), end = ptx_new(w, REG_R);
  INS(w, "setp.eq.u32", first, s->b.thread, word32(0));
  ptx_shared_store_where(w, first, t, word_at(w, place, s->part, 8), own);
  INS(w, "add.u32", end, s->part, word32(1));
  hand_on(w, s, t, place, s->part, end, s->parts);
  return ptx_block_join(w, &s->b, h, place, s->parts);
}

static void put_loop(PtxWriter *w, RowState *s, u32 k) {
  const LoopFn *fn = w->f->fn;
  const PtxRows *r = s->r;
  u32 head = r->heads[k], label = ++w->labels;
  bool sum = is_sum(fn, head), reduces = loop_node(fn, head)->op == LOOP_REDUCE, index = reads_index(r, fn, k);
  OpenHead h = {.head = head, .label = label, .fold = FOLD_SPREAD};
  Opnd *bases = mem_alloc_zero(w->alloc, sizeof *bases * (fn->nodes.count + 1)), result = {0},
       number = ptx_new(w, REG_R), partial = {0};
  if (!bases) {
    w->failed = true;
    return;
  }
  ptx_line(w, "// %s", loop_op_text((LoopOp)loop_node(fn, head)->op));
  put_bases(w, s, k, bases);
  w->spread_depth++;
  if (reduces) {
    ptx_fold_make(w, &h);
    partial = ptx_block_place(w, &s->b);
  }
  find_needed(r, fn, k, PTX_ROW_EACH);
  bool each = !sum;
  for (u32 i = r->from[k]; i < r->end[k]; i++) each |= r->needed[fn->body.data[i]];
  if (each) {
    RowLoop l = {.k = k, .pass = PTX_ROW_EACH, .h = sum || !reduces ? NULL : &h, .number = number, .limit = s->end,
                 .step = s->b.threads, .bases = bases, .index = index};
    INS(w, "add.u32", number, s->b.thread, s->from);
    put_row_loop(w, s, &l, COPIES);
    put_row_loop(w, s, &l, 1);
  }
  if (sum) {
    result = put_sum(w, s, k, &h, partial, bases, index);
  } else if (reduces) {
    ptx_block_leave(w, &s->b, &h, partial, s->b.warp);
    result = ptx_block_join(w, &s->b, &h, partial, s->b.warps);
    if (w->phase == PTX_TEAM) result = join_parts(w, s, &h, result);
  }
  w->spread_depth--;
  u32 of = reduces ? loop_result_of(fn, head, 0) : 0;
  if (reduces) ptx_move(w, loop_type_of(fn, of), ptx_define(w, of), result);
  mem_free(w->alloc, bases, sizeof *bases * (fn->nodes.count + 1));
}

void ptx_put_rows(PtxWriter *w) {
  const LoopFn *fn = w->f->fn;
  const PtxRows *r = w->rows;
  RowState s = {.r = r};
  for (u32 i = 0; i < r->first; i++) ptx_put_statement(w, fn->body.data[i]);
  put_state(w, &s);
  u32 label = ++w->labels, k = 0;
  bool team = w->phase == PTX_TEAM;
  Opnd index = ptx_define(w, loop_index_of(fn->body.data[r->first], 0)), step = ptx_new(w, REG_RD),
       out = ptx_new(w, REG_P), stores = s.b.thread;
  if (team) {
    stores = ptx_new(w, REG_R);
    INS(w, "or.b32", stores, s.b.thread, s.part);
    INS(w, "add.s64", index, w->item, w->lo);
    INS(w, "sub.u64", step, w->hi, w->lo); /* a block has one part of one row */
  } else {
    INS(w, "cvt.u64.u32", index, special(w, "ctaid.x"));
    INS(w, "add.s64", index, index, w->lo);
    INS(w, "cvt.u64.u32", step, special(w, "nctaid.x"));
  }
  w->spread = PTX_WARPS;
  ptx_label(w, "L%u_trip", label);
  INS(w, "setp.ge.s64", out, index, w->hi);
  ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, label);
  w->depth++;
  for (u32 i = r->first + 1; i + 1 < fn->body.count && !w->failed && !w->refused; i++) {
    w->lane = stores; /* of the row's own statements: thread 0 stores, of the first part */
    if (!loop_is_head(loop_node(fn, fn->body.data[i]))) {
      ptx_put_statement(w, fn->body.data[i]);
      continue;
    }
    i = r->end[k];
    w->lane = s.b.lane;
    put_loop(w, &s, k++);
  }
  ptx_line(w, "bar.sync 0;"); /* all have read this row */
  INS(w, "add.s64", index, index, step);
  ptx_line(w, "bra.uni L%u_trip;", label);
  w->depth--;
  ptx_label(w, "L%u_out", label);
}

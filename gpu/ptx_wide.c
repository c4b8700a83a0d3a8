/* ptx_wide.c — elementwise kernels, and the loops of reductions, four elements at a time.
 *
 * A thread takes the elements 4 g … 4 g + 3 of arrays whose elements lie one behind the other, with loads and stores of
 * 16 bytes (of narrow dtypes 4 or 8); all loads stand in front of all stores, so that they are under way together. Each
 * value has a register for each of the four. What is left behind the last four, and arrays that do not begin at a
 * multiple of 16 bytes, are done by the loop over single elements that stands behind. */
#include "gpu/ptx_writer.h"

enum { WIDE = 4, WIDE_BYTES = 16, WIDE_NODES = 96,
       WIDE_FUNCTIONS = 3 /* more make long code, in which loads are a small part */ };

/* ---- which kernels ---------------------------------------------------------------------------------------- */

typedef struct Varies {
  const u8 *of;
  bool found;
} Varies;

static void ask_varies(void *ctx, u32 id) {
  Varies *v = ctx;
  v->found |= v->of[id] != 0;
}

static bool is_in_row(const LoopFn *fn, const LoopNode *n, u32 index) {
  const LoopTerm *t = loop_terms(fn, n);
  return n->count == 1 && t->coef == 1 && t->var == index && !t->stride[0] && !t->stride[1];
}

/* What is written is read only in front of that, and at the same element. */
static bool reads_before(const LoopFn *fn, u32 from, u32 at, u32 index) {
  const LoopNode *store = loop_node(fn, fn->body.data[at]);
  for (u32 i = from; i + 1 < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (i == at || !ptx_is_access(n) || n->a != store->a) continue;
    if (i > at || n->op == LOOP_STORE || !is_in_row(fn, n, index) || n->imm != store->imm) return false;
  }
  return true;
}

bool ptx_wide(const LoopFn *fn, Allocator *alloc, PtxWide *s) {
  u32 i = 0, rows = 0, functions = 0;
  *s = (PtxWide){.alloc = alloc, .nodes = fn->nodes.count};
  while (i < fn->body.count && !loop_is_head(loop_node(fn, fn->body.data[i]))) i++;
  if (fn->kind != LOOP_KERNEL || i == fn->body.count || fn->body.count - i > WIDE_NODES) return false;
  const LoopNode *par = loop_node(fn, fn->body.data[i]);
  if (par->op != LOOP_PAR || par->a != 1 || par->b || ptx_end_of(fn, i) + 1 != fn->body.count) return false;
  s->head = fn->body.data[i];
  s->first = i + 1;
  if (!(s->varies = mem_alloc_zero(alloc, s->nodes))) return false;
  u32 index = loop_index_of(s->head, 0);
  s->varies[index] = 1;
  bool ok = true;
  for (i = s->first; ok && i + 1 < fn->body.count; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    Varies v = {.of = s->varies};
    loop_each_operand(fn, n, ask_varies, &v);
    s->varies[id] = v.found;
    functions += n->op == LOOP_MATH;
    ok = !loop_is_head(n) && !loop_is_terminator(n) && n->op != LOOP_CHECK && n->op != LOOP_ELSE &&
         functions <= WIDE_FUNCTIONS;
    if (!ptx_is_access(n)) continue;
    bool row = is_in_row(fn, n, index);
    if (row) rows++;
    if (n->op == LOOP_STORE) ok = ok && row && reads_before(fn, s->first, i, index);
  }
  if (ok && rows) return true;
  ptx_wide_free(s);
  return false;
}

void ptx_wide_free(PtxWide *s) {
  mem_free(s->alloc, s->varies, s->nodes);
  s->varies = NULL;
}

/* ---- the loop over fours --------------------------------------------------------------------------------- */

/* Jumps to `L<label>_rest` unless every array that is taken by fours has its first element, that of trip lo, at a
 * multiple of 16 bytes. */
static void put_alignment(PtxWriter *w, u32 label) {
  const LoopFn *fn = w->f->fn;
  Opnd all = ptx_new(w, REG_RD), odd = ptx_new(w, REG_P);
  INS(w, "mov.u64", all, ptx_number(0));
  for (u32 i = w->wide->first; i + 1 < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (!ptx_is_access(n) || !is_in_row(fn, n, loop_index_of(w->wide->head, 0))) continue;
    i64 bytes = loop_type_bytes((LoopType)n->mem);
    Opnd at = ptx_new(w, REG_RD);
    INS(w, "mad.lo.s64", at, w->lo, ptx_number(bytes), w->f->values[n->a]);
    if (n->imm) INS(w, "add.s64", at, at, ptx_number((i64)n->imm * bytes));
    INS(w, "or.b64", all, all, at);
  }
  INS(w, "and.b64", all, all, ptx_number(WIDE_BYTES - 1));
  INS(w, "setp.ne.u64", odd, all, ptx_number(0));
  ptx_line(w, "@%s bra L%u_rest;", ptx_text(odd).s, label);
}

/* Statement `id` for each of the four, or once where it gives the same for all. */
static void put_four(PtxWriter *w, u32 id, Opnd *const *values) {
  const LoopNode *n = loop_node(w->f->fn, id);
  Opnd four[WIDE];
  if (ptx_is_access(n) && is_in_row(w->f->fn, n, loop_index_of(w->wide->head, 0))) {
    for (u32 c = 0; c < WIDE; c++) {
      w->f->values = values[c];
      four[c] = n->op == LOOP_LOAD ? ptx_define(w, id) : ptx_in_register(w, ptx_value(w, n->b));
    }
    w->f->values = values[0];
    ptx_access_four(w, n, four);
    return;
  }
  for (u32 c = 0; c < WIDE; c++) {
    w->f->values = values[c];
    if (c == 0 || w->wide->varies[id]) ptx_put_statement(w, id);
    else values[c][id] = values[0][id];
  }
}

static void put_fours(PtxWriter *w, Opnd *const *values) {
  const LoopFn *fn = w->f->fn;
  u32 index = loop_index_of(w->wide->head, 0);
  enum { LOADS, VALUES, STORES, PASSES };
  for (u32 pass = LOADS; pass < PASSES; pass++)
    for (u32 i = w->wide->first; i + 1 < fn->body.count && !w->failed && !w->refused; i++) {
      u32 id = fn->body.data[i];
      const LoopNode *n = loop_node(fn, id);
      bool load = n->op == LOOP_LOAD && is_in_row(fn, n, index);
      if (pass == (load ? LOADS : n->op == LOOP_STORE ? STORES : VALUES)) put_four(w, id, values);
    }
}

void ptx_put_fours(PtxWriter *w) {
  Opnd *own = w->f->values, *values[WIDE];
  u32 label = ++w->labels, index = loop_index_of(w->wide->head, 0);
  Opnd first = ptx_new(w, REG_RD), step = ptx_new(w, REG_RD), end = ptx_new(w, REG_RD), out = ptx_new(w, REG_P),
       rest = ptx_new(w, REG_RD);
  INS(w, "mov.u64", rest, w->lo);
  put_alignment(w, label);
  INS(w, "mad.lo.s64", first, w->index, ptx_number(WIDE), w->lo);
  INS(w, "mul.lo.s64", step, w->step, ptx_number(WIDE));
  INS(w, "sub.s64", end, w->hi, ptx_number(WIDE - 1));
  ptx_label(w, "L%u_fours", label);
  INS(w, "setp.ge.s64", out, first, end);
  ptx_line(w, "@%s bra L%u_left;", ptx_text(out).s, label);
  w->depth++;
  if (ptx_copies_begin(w, WIDE, values)) {
    for (u32 c = 0; c < WIDE; c++) {
      values[c][index] = c ? ptx_new(w, REG_RD) : first;
      if (c) INS(w, "add.s64", values[c][index], first, ptx_number(c));
    }
    put_fours(w, values);
  }
  ptx_copies_end(w, WIDE, values, own);
  INS(w, "add.s64", first, first, step);
  ptx_line(w, "bra L%u_fours;", label);
  w->depth--;
  ptx_label(w, "L%u_left", label);
  INS(w, "sub.s64", rest, w->hi, w->lo);
  INS(w, "and.b64", rest, rest, ptx_number(-WIDE));
  INS(w, "add.s64", rest, rest, w->lo);
  ptx_label(w, "L%u_rest", label);
  w->lo = rest;
}

/* ---- reductions ------------------------------------------------------------------------------------------- */

/* A loop over one axis that loads, computes and yields, and does nothing else. *from and *end: its statements. */
static bool is_plain(const LoopFn *fn, u32 head, u32 *from, u32 *end) {
  u32 i = 0;
  while (fn->body.data[i] != head) i++;
  *from = i + 1;
  *end = ptx_end_of(fn, i);
  if (loop_node(fn, head)->a != 1 || *end - *from > WIDE_NODES / 4) return false;
  for (i = *from; i < *end; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (loop_is_head(n) || n->op == LOOP_CHECK || n->op == LOOP_STORE || n->op == LOOP_MATH || n->op == LOOP_PREFIX ||
        (loop_is_terminator(n) && (n->op != LOOP_YIELD || i + 1 != *end)))
      return false;
  }
  return true;
}

/* The statements of elements numbers[0 …], loads first, and their values in this order to the reduction. */
static void put_elements_of(PtxWriter *w, OpenHead *h, u32 from, u32 end, Opnd *const *values, const Opnd *numbers) {
  const LoopFn *fn = w->f->fn;
  Opnd own = h->number;
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 i = from; i + 1 < end; i++) {
      const LoopNode *n = loop_node(fn, fn->body.data[i]);
      bool load = n->op == LOOP_LOAD && loop_access_is_affine(fn, n);
      for (u32 c = 0; c < WIDE && load == (pass == 0); c++) {
        w->f->values = values[c];
        ptx_put_statement(w, fn->body.data[i]);
      }
    }
  const LoopNode *yield = loop_node(fn, fn->body.data[end - 1]);
  for (u32 c = 0; c < WIDE; c++) {
    w->f->values = values[c];
    h->number = numbers[c];
    ptx_fold_take(w, h, ptx_value(w, loop_list(fn, yield)[0]));
  }
  h->number = own;
}

void ptx_put_trips_by_four(PtxWriter *w, OpenHead *h, u32 stride) {
  u32 from, end, index = loop_index_of(h->head, 0);
  Opnd *own = w->f->values, *values[WIDE], numbers[WIDE], out = ptx_new(w, REG_P);
  if (!is_plain(w->f->fn, h->head, &from, &end)) return;
  for (u32 c = 0; c < WIDE; c++) numbers[c] = c ? ptx_new(w, REG_RD) : h->number;
  ptx_label(w, "L%u_four", h->label);
  for (u32 c = 1; c < WIDE; c++) INS(w, "add.u64", numbers[c], h->number, ptx_number(c * stride));
  INS(w, "setp.ge.u64", out, numbers[WIDE - 1], h->limit);
  ptx_line(w, "@%s bra L%u_trip;", ptx_text(out).s, h->label);
  w->depth++;
  if (ptx_copies_begin(w, WIDE, values)) {
    for (u32 c = 0; c < WIDE; c++) values[c][index] = numbers[c];
    put_elements_of(w, h, from, end, values, numbers);
  }
  ptx_copies_end(w, WIDE, values, own);
  INS(w, "add.u64", h->number, h->number, ptx_number(WIDE * stride));
  ptx_line(w, "bra L%u_four;", h->label);
  w->depth--;
}

/* ptx_epilogue.c — an elementwise kernel behind a product of matrices, as the end of the kernel that makes the product.
 *
 * `maximum(x @ y + b, 0.0)` is a product and a kernel that reads it element by element. Here each thread computes what
 * the kernel does of the elements that it has, so that the product goes to no memory. The kernel's trips are the rows
 * of the product, those of a loop in it the columns; or its trips are the elements. A thread takes eight columns of a
 * row at a time, of products of halves by fours: loads and stores of a row are of 16 bytes then, or 4 or 8. Threads
 * outside of the product do what those at its edge do, and store nothing.
 *
 * Values are those of the kernel by itself, since a product is rounded to its dtype before. */
#include "gpu/ptx_writer.h"

enum {
  NODES = 40, /* they stand in the code 64 times */
  ARRAYS = 5, /* the product, what is read beside it and what is written: with eight there are too few registers */
  FOUR = 4,
};

/* ---- which kernels ---------------------------------------------------------------------------------------- */

static bool is_simple(const LoopNode *n) {
  return !loop_is_head(n) && !loop_is_terminator(n) && n->op != LOOP_END && n->op != LOOP_CHECK && n->op != LOOP_ELSE &&
         n->op != LOOP_PREFIX;
}

/* Its place grows by one from column to column; `row` says whether something else may be in it. */
static bool goes_along(const LoopFn *fn, const PtxEpilogue *e, const LoopNode *n) {
  u32 index = e->inner ? loop_index_of(e->inner, 0) : loop_index_of(e->head, 0), found = 0;
  if (!e->inner && n->count != 1) return false;
  for (u32 i = 0; i < n->count; i++) {
    const LoopTerm *t = &loop_terms(fn, n)[i];
    if (t->var != index) continue;
    if (t->coef != 1 || t->stride[0] || t->stride[1]) return false;
    found++;
  }
  return found == 1;
}

/* The element of the product that the trip is for: row times columns plus column. */
static bool is_element(const LoopFn *fn, const PtxEpilogue *e, const LoopNode *n) {
  if (n->op != LOOP_LOAD || n->imm || !goes_along(fn, e, n) || n->count != (e->inner ? 2 : 1)) return false;
  for (u32 i = 0; i < n->count && e->inner; i++) {
    const LoopTerm *t = &loop_terms(fn, n)[i];
    u32 trips = loop_trips_of(fn, e->inner, 0);
    if (t->var == loop_index_of(e->inner, 0)) continue;
    if (t->var != loop_index_of(e->head, 0) || t->stride[1]) return false;
    bool given = t->stride[0] == trips && t->coef == 1;
    if (!given && (t->stride[0] || loop_node(fn, trips)->op != LOOP_CONST || (u64)t->coef != loop_node(fn, trips)->imm))
      return false;
  }
  return true;
}

bool ptx_epilogue(const LoopFn *fn, u32 word, PtxEpilogue *e) {
  u32 i = 0, loads = 0, arrays = 0;
  PtxNest nest;
  *e = (PtxEpilogue){0};
  if (fn->kind != LOOP_KERNEL || word >= fn->params.count || fn->body.count > NODES) return false;
  e->param = fn->params.data[word];
  const LoopNode *p = loop_node(fn, e->param);
  e->type = (LoopType)p->mem;
  if (p->type != LT_PTR || (e->type != LT_F32 && e->type != LT_F64 && e->type != LT_F16 && e->type != LT_BF16))
    return false;
  for (u32 k = 0; k < fn->params.count; k++) arrays += loop_node(fn, fn->params.data[k])->type == LT_PTR;
  if (arrays > ARRAYS) return false;
  while (i < fn->body.count && !loop_is_head(loop_node(fn, fn->body.data[i]))) i++;
  if (i == fn->body.count) return false;
  e->head = fn->body.data[i];
  e->first = i + 1;
  const LoopNode *par = loop_node(fn, e->head);
  if (par->op != LOOP_PAR || par->a != 1 || par->b || ptx_end_of(fn, i) + 1 != fn->body.count) return false;
  bool inside = ptx_nest(fn, &nest);
  if (inside && nest.count != 1) return false;
  if (inside) e->inner = nest.heads[0];
  u32 last = fn->body.count - (inside ? 2 : 1);
  for (e->body = e->first; inside && fn->body.data[e->body] != e->inner;) e->body++;
  e->body += inside;
  for (u32 k = 0; k < last; k++) {
    u32 id = fn->body.data[k];
    const LoopNode *n = loop_node(fn, id);
    if (id == e->head || id == e->inner) continue;
    if (!is_simple(n) || (n->op == LOOP_STORE && (k < e->body || !loop_access_is_affine(fn, n)))) return false;
    if (ptx_is_access(n) && n->a == e->param && (k < e->body || !is_element(fn, e, n))) return false;
    loads += ptx_is_access(n) && n->a == e->param;
    for (u32 m = 0; n->op == LOOP_STORE && m < last; m++) { /* what is written is read at the same element, before */
      const LoopNode *other = loop_node(fn, fn->body.data[m]);
      if (m != k && ptx_is_access(other) && other->a == n->a && (inside || m > k || !goes_along(fn, e, other)))
        return false;
    }
    if (n->op == LOOP_STORE && !inside && !goes_along(fn, e, n)) return false;
  }
  return loads > 0;
}

bool ptx_epilogue_fits(const LoopFn *fn, const PtxEpilogue *e, const u64 *words) {
  for (u32 k = e->body; k < fn->body.count; k++) {
    const LoopNode *n = loop_node(fn, fn->body.data[k]);
    if (!ptx_is_access(n) || n->a == e->param || !goes_along(fn, e, n)) continue;
    u64 bytes = loop_type_bytes((LoopType)n->mem), whole = FOUR * bytes < 16 ? FOUR * bytes : 16, at = n->imm * bytes;
    for (u32 i = 0; i < fn->params.count; i++)
      if (fn->params.data[i] == n->a) at += words[i];
    if (at % whole) return false;
    for (u32 i = 0; i < n->count; i++) {
      const LoopTerm *t = &loop_terms(fn, n)[i];
      u64 step = (u64)t->coef;
      if (t->var == (e->inner ? loop_index_of(e->inner, 0) : loop_index_of(e->head, 0))) continue;
      for (u32 s = 0; s < 2; s++)
        for (u32 w = 0; t->stride[s] && w < fn->params.count; w++)
          if (fn->params.data[w] == t->stride[s]) step *= words[w];
      if (step % FOUR) return false;
    }
  }
  return true;
}

/* ---- what is written ---------------------------------------------------------------------------------------- */

/* One statement of the innermost body, for columns first … first + count - 1. */
static void put_for(PtxWriter *w, u32 id, const PtxElements *x, u32 first, u32 count, Opnd *const *values) {
  const PtxEpilogue *e = w->epilogue;
  const LoopNode *n = loop_node(w->f->fn, id);
  Opnd four[FOUR];
  if (n->op == LOOP_LOAD && n->a == e->param) {
    for (u32 c = 0; c < count; c++) values[first + c][id] = x->sums[first + c];
    return;
  }
  w->guard = x->guards[first];
  if (count == FOUR && ptx_is_access(n) && goes_along(w->f->fn, e, n)) {
    for (u32 c = 0; c < FOUR; c++) {
      w->f->values = values[first + c];
      four[c] = n->op == LOOP_LOAD ? ptx_define(w, id) : ptx_in_register(w, ptx_value(w, n->b));
    }
    w->f->values = values[first];
    ptx_access_four(w, n, four);
  } else {
    for (u32 c = 0; c < count; c++) {
      w->f->values = values[first + c];
      w->guard = x->guards[first + c];
      ptx_put_statement(w, id);
    }
  }
  w->guard = (Opnd){0};
}

void ptx_put_epilogue(PtxWriter *w, const PtxElements *x) {
  const PtxEpilogue *e = w->epilogue;
  const LoopFn *fn = w->f->fn;
  Opnd *values[PTX_ELEMENTS], *own = w->f->values, row = ptx_in_register(w, x->row);
  u32 index = loop_index_of(e->inner ? e->inner : e->head, 0);
  for (u32 i = 0; i + 1 < e->first; i++) ptx_put_statement(w, fn->body.data[i]);
  if (e->inner) own[loop_index_of(e->head, 0)] = row;
  for (u32 i = e->first; i + 1 < e->body && e->inner; i++) ptx_put_statement(w, fn->body.data[i]);
  if (ptx_copies_begin(w, x->count, values)) {
    for (u32 c = 0; c < x->count; c++) {
      Opnd at = x->columns[c];
      if (!e->inner) {
        at = ptx_new(w, REG_RD);
        INS(w, "mad.lo.s64", at, row, x->width, x->columns[c]);
      }
      values[c][index] = at;
    }
    u32 end = fn->body.count - (e->inner ? 2 : 1);
    for (u32 i = e->body; i < end && !w->failed && !w->refused; i++)
      for (u32 c = 0; c < x->count; c += x->group) put_for(w, fn->body.data[i], x, c, x->group, values);
  }
  ptx_copies_end(w, x->count, values, own);
}

void ptx_put_product(PtxWriter *w) {
  if (w->tensor) ptx_put_mma(w, w->product);
  else ptx_put_matmul(w, w->epilogue->type);
}

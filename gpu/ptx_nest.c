/* ptx_nest.c — loops that stand directly inside the outermost one, dealt to threads together with it.
 *
 * `par i { for j { … } }` has as many items as there are pairs (i, j): thread number g does the pairs g, g + number of
 * all threads, … in row-major order, so that neighbours do neighbouring j. Quotients are taken once, of the thread's
 * number and of the number of threads; from then on an index grows by its part of the second, and what passes the end
 * of a loop is carried to the loop outside of it.
 *
 * Where a warp runs a trip, because of a reduction in it, its threads deal the trips of the other loops among them. */
#include "gpu/ptx_writer.h"

/* ---- which kernels ---------------------------------------------------------------------------------------- */

static bool is_given(const LoopFn *fn, u32 id) {
  u32 op = loop_node(fn, id)->op;
  return op == LOOP_CONST || op == LOOP_PARAM;
}

/* It may be done again for each trip of the loops inside: it gives a value, and changes nothing. */
static bool is_pure(const LoopNode *n) {
  return !loop_is_head(n) && !loop_is_terminator(n) && n->op != LOOP_END && n->op != LOOP_STORE &&
         n->op != LOOP_CHECK && n->op != LOOP_ELSE;
}

static bool breaks(const LoopFn *fn, u32 head) {
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_BREAK && n->a == head) return true;
  }
  return false;
}

bool ptx_moves_with(const LoopFn *fn, const LoopNode *access, u32 index) {
  for (u32 i = 0; i < access->count; i++)
    if (loop_terms(fn, access)[i].var == index) return true;
  return false;
}

static bool same_place(const LoopFn *fn, const LoopNode *a, const LoopNode *b) {
  if (a->count != b->count || a->imm != b->imm) return false;
  for (u32 i = 0; i < a->count; i++)
    if (!loop_terms_equal(&loop_terms(fn, a)[i], &loop_terms(fn, b)[i])) return false;
  return true;
}

/* Of the statements body[from .. end): each trip writes places of its own, and of what is written only these are read
 * in the kernel. Then the trips may run in any order. */
static bool any_order(const LoopFn *fn, u32 from, u32 end, const u32 *heads, u32 count) {
  for (u32 i = from; i < end; i++) {
    const LoopNode *store = loop_node(fn, fn->body.data[i]);
    if (store->op != LOOP_STORE) continue;
    if (!loop_access_is_affine(fn, store)) return false;
    for (u32 k = 0; k < count; k++)
      if (!ptx_moves_with(fn, store, loop_index_of(heads[k], 0))) return false;
    for (u32 k = 0; k < fn->body.count; k++) {
      const LoopNode *n = loop_node(fn, fn->body.data[k]);
      if ((n->op == LOOP_LOAD || n->op == LOOP_STORE) && n->a == store->a && !same_place(fn, n, store)) return false;
    }
  }
  return true;
}

bool ptx_nest(const LoopFn *fn, PtxNest *nest) {
  u32 heads[PTX_NEST_HEADS + 1], count = 1, i = 0;
  *nest = (PtxNest){.count = 0};
  while (i < fn->body.count && !loop_is_head(loop_node(fn, fn->body.data[i]))) i++;
  if (fn->kind != LOOP_KERNEL || i == fn->body.count) return false;
  heads[0] = fn->body.data[i];
  u32 end = ptx_end_of(fn, i);
  if (loop_node(fn, heads[0])->op != LOOP_PAR || loop_node(fn, heads[0])->a != 1 || end + 1 != fn->body.count)
    return false;
  for (i++; count <= PTX_NEST_HEADS; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (is_pure(n)) continue;
    if ((n->op != LOOP_FOR && n->op != LOOP_PAR) || n->a != 1 || n->b || !is_given(fn, loop_trips_of(fn, id, 0)) ||
        breaks(fn, id) || ptx_end_of(fn, i) + 1 != end)
      break;
    end--;
    heads[count++] = id;
  }
  if (count == 1 || !any_order(fn, 0, fn->body.count, heads, count)) return false;
  for (u32 k = 1; k < count; k++) nest->heads[nest->count++] = heads[k];
  return true;
}

bool ptx_is_lane_loop(const PtxWriter *w, u32 head) {
  const LoopFn *fn = w->f->fn;
  const LoopNode *n = loop_node(fn, head);
  u32 i = 0;
  if (w->spread != PTX_WARPS || w->spread_depth || fn != w->kernel || (n->op != LOOP_FOR && n->op != LOOP_PAR) ||
      n->a != 1 || n->b || breaks(fn, head) || ptx_body_has_lanes(fn, head))
    return false;
  while (fn->body.data[i] != head) i++;
  u32 end = ptx_end_of(fn, i);
  for (u32 k = i + 1; k < end; k++) {
    u32 op = loop_node(fn, fn->body.data[k])->op;
    if (op == LOOP_FOR || op == LOOP_PAR) return false; /* that one is for the lanes */
  }
  return any_order(fn, i + 1, end, &head, 1);
}

/* ---- indices ------------------------------------------------------------------------------------------------ */

static Opnd nest_trips(PtxWriter *w, u32 k) { return ptx_value(w, loop_trips_of(w->f->fn, w->nest.heads[k], 0)); }
static Opnd nest_index(PtxWriter *w, u32 k) { return ptx_define(w, loop_index_of(w->nest.heads[k], 0)); }

/* *number to its part on axis k, which `part` gets, and what is left for the loops outside. */
static void take_part(PtxWriter *w, u32 k, Opnd part, Opnd *number) {
  Opnd quotient = ptx_new(w, REG_RD), product = ptx_new(w, REG_RD);
  INS(w, "div.u64", quotient, *number, nest_trips(w, k));
  INS(w, "mul.lo.u64", product, quotient, nest_trips(w, k));
  INS(w, "sub.u64", part, *number, product);
  *number = quotient;
}

void ptx_nest_begin(PtxWriter *w, u32 label, Opnd outermost) {
  Opnd number = w->index, step = w->step, none = ptx_new(w, REG_P);
  for (u32 k = 0; k < w->nest.count; k++) {
    INS(w, "setp.eq.u64", none, ptx_in_register(w, nest_trips(w, k)), ptx_number(0));
    ptx_line(w, "@%s bra L%u_out;", ptx_text(none).s, label);
  }
  for (u32 k = w->nest.count; k-- > 0;) {
    w->nest_step[k] = ptx_new(w, REG_RD);
    take_part(w, k, nest_index(w, k), &number);
    take_part(w, k, w->nest_step[k], &step);
  }
  w->nest_outer_step = step;
  INS(w, "add.s64", outermost, w->lo, number);
}

void ptx_nest_next(PtxWriter *w, Opnd outermost) {
  Opnd passed = {0};
  for (u32 k = w->nest.count; k-- > 0;) {
    Opnd index = nest_index(w, k), less = ptx_new(w, REG_RD);
    INS(w, "add.u64", index, index, w->nest_step[k]);
  if (passed.kind != REG_NONE) INS(w, "add.u64", index, index, passed);
    Opnd over = ptx_new(w, REG_P);
    INS(w, "setp.ge.u64", over, index, nest_trips(w, k));
    INS(w, "sub.u64", less, index, nest_trips(w, k));
    INS(w, "selp.u64", index, less, index, over);
    passed = ptx_new(w, REG_RD);
    INS(w, "selp.u64", passed, ptx_number(1), ptx_number(0), over);
  }
  INS(w, "add.s64", outermost, outermost, w->nest_outer_step);
  INS(w, "add.s64", outermost, outermost, passed);
}

bool ptx_in_nest(const PtxWriter *w, u32 head) {
  for (u32 k = 0; w->phase == PTX_WHOLE && w->f->fn == w->kernel && k < w->nest.count; k++)
    if (w->nest.heads[k] == head) return true;
  return false;
}

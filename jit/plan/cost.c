/* cost.c — bytes and operations of a kernel's run (see cost.h). */
#include "jit/plan/cost.h"

enum { COST_DEPTH = 32 };

/* The number in a value that is known at the call: a parameter or a constant; else 1. */
static u64 cost_known(const LoopFn *fn, const u64 *args, u32 id) {
  const LoopNode *n = loop_node(fn, id);
  if (n->op == LOOP_CONST) return n->imm;
  for (u32 i = 0; n->op == LOOP_PARAM && i < fn->params.count; i++)
    if (fn->params.data[i] == id) return args[i];
  return 1;
}

static u64 times(u64 a, u64 b) {
  u64 r;
  return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static u64 cost_trips_of(const LoopFn *fn, const u64 *args, u32 head, i64 lo, i64 hi) {
  const LoopNode *n = loop_node(fn, head);
  u64 trips = 1;
  if (n->op == LOOP_PAR) return hi > lo ? (u64)(hi - lo) : 0;
  if (n->op != LOOP_FOR && n->op != LOOP_REDUCE && n->op != LOOP_SCAN) return 1;
  for (u32 k = 0; k < n->a; k++) {
    i64 axis = (i64)cost_known(fn, args, loop_trips_of(fn, head, k));
    trips = times(trips, axis > 0 ? (u64)axis : 0);
  }
  return trips;
}

static u64 operations(const LoopNode *n) {
  switch (loop_op_form(n->op)) {
    case LOOP_FORM_UNARY:
    case LOOP_FORM_BINARY:
    case LOOP_FORM_MATH: return loop_is_float(n->type);
    case LOOP_FORM_TERNARY: return loop_is_float(n->type) ? 2 : 0;
    case LOOP_FORM_PREFIX: return loop_is_float(n->type);
    default: return 0;
  }
}

/* Elements that lie between the places of two trips, of the axis where they are nearest; 8 is a line. */
static u64 apart(const LoopFn *fn, const u64 *args, const LoopNode *n) {
  u64 least = 0;
  for (u32 k = 0; k < n->count; k++) {
    const LoopTerm *t = &loop_terms(fn, n)[k];
    if (!t->var || loop_node(fn, t->var)->op != LOOP_INDEX) continue;
    u64 step = (u64)t->coef;
    for (u32 i = 0; i < 2; i++) step *= t->stride[i] ? cost_known(fn, args, t->stride[i]) : 1;
    if ((i64)step < 0) step = -step;
    if (!least || step < least) least = step;
  }
  return least > 8 ? 8 : least ? least : 1;
}

void loops_cost(const LoopFn *fn, const u64 *args, i64 lo, i64 hi, LoopCost *sum) {
  u64 around[COST_DEPTH], now = 1;
  u32 depth = 0;
  for (u32 i = 0; i < fn->body.count; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (loop_is_head(n)) {
      if (depth == COST_DEPTH) return;
      around[depth++] = now;
      now = times(now, cost_trips_of(fn, args, id, lo, hi));
      if ((n->op == LOOP_REDUCE || n->op == LOOP_SCAN) && loop_is_float(loop_type_of(fn, loop_result_of(fn, id, 0))))
        sum->flops += now;
    } else if (n->op == LOOP_END && depth) {
      now = around[--depth];
    } else if (n->op == LOOP_LOAD || n->op == LOOP_STORE) {
      u64 bytes = times(now, loop_type_bytes(n->mem));
      sum->bytes += bytes;
      sum->moved += times(bytes, apart(fn, args, n));
      if (n->op == LOOP_STORE) sum->written += bytes;
    } else {
      sum->flops += times(now, operations(n));
      if (loop_op_form(n->op) == LOOP_FORM_MATH) sum->maths += now;
    }
  }
}

bool loops_go_down(const LoopFn *fn) {
  u32 depth = 0, par = fn->body.count ? fn->body.data[0] : 0;
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (loop_is_head(n)) depth++;
    else if (n->op == LOOP_END && depth) depth--;
    bool along = false, down = false;
    for (u32 k = 0; n->op == LOOP_LOAD && depth > 1 && k < n->count; k++) {
      const LoopTerm *t = &loop_terms(fn, n)[k];
      const LoopNode *v = t->var ? loop_node(fn, t->var) : NULL;
      bool unit = t->coef == 1 && !t->stride[0];
      if (v && v->op == LOOP_INDEX && v->a == par) along |= unit;
      else if (v && v->op == LOOP_INDEX) down |= !unit;
    }
    if (along && down) return true;
  }
  return false;
}

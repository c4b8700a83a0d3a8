/* pairs.c — complex numbers become pairs of real ones: what computes with them is written out as operations on their
 * parts, with the bits of the eager kernels (stdlib/kernels/complex_strips.def, stdlib/array/parts.c). What is left is
 * `complex`, which puts two parts together, `real` and `imag`, which take them apart, and what only moves elements:
 * kernels read and store parts (kernel_view.c).
 *
 * 1. A complex number that a loop carries or a condition gives becomes two numbers. Arrays stay whole: their parts lie
 *    in memory anyway.
 * 2. Each operation of the list below, in program order.
 * 3. Exits that name a complex number name its parts.
 *
 * Operations that are not listed take whole complex numbers, and give them. */
#include "jit/lower/pair_formulae.h"

#include <string.h>

typedef struct Pairs {
  Compiler *c;
  Graph *g;
  ValueMap re, im;     /* the parts of complex values, as far as they are known */
  VEC(ValueId) from, to; /* replaced */
  VEC(u32) gone;       /* nodes */
} Pairs;

static void pairs_failed(Pairs *p) { compile_no_memory(p->c); }

static void pairs_replace(Pairs *p, ValueId from, ValueId to) {
  if (!vec_push(p->c->alloc, &p->from, from) || !vec_push(p->c->alloc, &p->to, to)) pairs_failed(p);
}

static bool is_pair(const Graph *g, ValueId v) {
  return v && !value_is_token(g, v) && dtype_is_pair(value_type(g, v)->dtype);
}

static bool known_parts(const Pairs *p, ValueId v, Pair *out) {
  *out = (Pair){v < p->re.count ? p->re.to[v] : 0, v < p->im.count ? p->im.to[v] : 0};
  return out->re && out->im;
}

static void note_parts(Pairs *p, ValueId v, Pair x) {
  if (!map_set(&p->re, v, x.re) || !map_set(&p->im, v, x.im)) pairs_failed(p);
}

/* ---- short forms ------------------------------------------------------------------------------------- */

static ValueId one(Pairs *p, u32 op, ValueId a) { return unary(p->g, op, a); }
static ValueId both(Pairs *p, u32 op, ValueId a, ValueId b) { return binary(p->g, op, a, b); }
static ValueId sel(Pairs *p, ValueId c, ValueId a, ValueId b) { return pick(p->g, c, a, b); }
static ValueId real_number(Pairs *p, u32 dtype, f64 x) { return graph_const_f64(p->g, dtype, x); }
static ValueId as_dtype(Pairs *p, ValueId v, u32 dtype) {
  if (!v || value_type(p->g, v)->dtype == dtype) return v;
  return graph_convert(p->g, v, dtype);
}

/* A real value exactly as a part of `like` is: its dtype, shape, and whether it is weak. */
static ValueId as_part(Pairs *p, ValueId v, const ArrayType *like) {
  Graph *g = p->g;
  v = as_dtype(p, v, dtype_real_of(like->dtype));
  if (!v) return 0;
  const ArrayType t = *value_type(g, v);
  if (t.rank != like->rank || !dims_same(p->c, t.rank, t.dims, like->dims))
    v = graph_broadcast(g, v, like->rank, like->dims);
  if (!v || like->rank) return v;
  if (like->weak && !t.weak) return graph_weaken(g, v);
  return !like->weak && t.weak ? graph_convert(g, v, dtype_real_of(like->dtype)) : v;
}

/* The number as a weak one; a condition by way of a number. */
static ValueId as_weak(Pairs *p, ValueId v) {
  if (value_type(p->g, v)->dtype != DT_bool) return graph_weaken(p->g, v);
  ValueId x = graph_weaken(p->g, graph_convert(p->g, v, DT_f64));
  return both(p, OP_not_equal, x, graph_const(p->g, value_weak_f64(0)));
}

/* Behind what makes v; of a parameter at the beginning of its block. */
static void cursor_behind(Graph *g, ValueId v) {
  NodeId n = value_node(g, v), next = n ? node_next(g, n) : block_first(g, value_block(g, v));
  if (next) graph_at(g, next);
  else graph_at_end(g, n ? graph_node_at(g, n)->block : value_block(g, v));
}

/* The parts of a complex value that is made as a whole, taken apart where it is made. */
static Pair taken_apart(Pairs *p, ValueId v) {
  Graph *g = p->g;
  const BlockId at = g->at;
  const NodeId before = g->before;
  Pair x;
  if (value_block(g, v)) cursor_behind(g, v);
  x.re = one(p, OP_real, v);
  x.im = one(p, OP_imag, v);
  g->at = at;
  g->before = before;
  return x;
}

/* The parts of a complex value in its own block. False: it lies on a device, or memory was refused. */
static bool parts_of(Pairs *p, ValueId v, Pair *out) {
  Graph *g = p->g;
  if (known_parts(p, v, out)) return true;
  if (value_type(g, v)->device != DEV_CPU) return false;
  const BlockId b = value_block(g, v);
  ValueId outer = 0;
  if (b && g->values.data[v].origin == GV_param)
    for (u32 i = 0; i < g->blocks.data[b].captures.count && !outer; i++)
      if (g->blocks.data[b].captures.data[i].inner == v) {
        u32 first;
        NodeId n = g->blocks.data[b].node;
        outer = g->blocks.data[b].captures.data[i].outer;
        if (n) {
          (void)node_captures(g, n, &first);
          outer = node_operand(g, n, first + i);
        }
      }
  if (outer) { /* depth of blocks is bounded */
    Pair x;
    if (!parts_of(p, outer, &x)) return false;
    *out = (Pair){graph_lift(g, b, x.re), graph_lift(g, b, x.im)};
  } else {
    *out = taken_apart(p, v);
  }
  if (out->re && out->im) note_parts(p, v, *out);
  else pairs_failed(p);
  return out->re && out->im;
}

/* The same of a real value, whose imaginary part is 0, and in the dtype that it is computed with. */
static bool operand_parts(Pairs *p, ValueId v, u32 real, Pair *out) {
  if (is_pair(p->g, v)) {
    if (!parts_of(p, v, out)) return false;
  } else {
    if (value_type(p->g, v)->rank && value_type(p->g, v)->device != DEV_CPU) return false;
    *out = (Pair){v, real_number(p, real, 0)};
  }
  *out = (Pair){as_dtype(p, out->re, real), as_dtype(p, out->im, real)};
  return out->re && out->im;
}

/* ---- formulae ------------------------------------------------------------------------------------------ */

static ValueId is_not_zero(Pairs *p, Pair x) {
  ValueId zero = real_number(p, value_type(p->g, x.re)->dtype, 0);
  return both(p, OP_logical_or, both(p, OP_not_equal, x.re, zero), both(p, OP_not_equal, x.im, zero));
}

/* A number beside an array that the shape comes from: 0 * x would not do for infinities, so the axes are stretched. */
static Pair alike(Pairs *p, const ArrayType *like, Pair x) {
  return (Pair){as_part(p, x.re, like), as_part(p, x.im, like)};
}

/* The node with other operands in place of its first, and a result of this dtype. */
static ValueId node_on(Pairs *p, NodeId n, u32 op, ValueId first, u32 dtype) {
  Graph *g = p->g;
  const GraphNode x = *graph_node_at(g, n);
  if (!first) return 0;
  ValueId *operands = arena_alloc(&p->c->arena, sizeof *operands * x.operand_count);
  GraphAttr *attrs = arena_alloc(&p->c->arena, sizeof *attrs * (x.attr_count + 1));
  ArrayType t = *value_type(g, node_result(g, n, 0));
  t.dtype = (u8)dtype;
  t.weak = false;
  TypeId type = graph_type(g, &t);
  if (!operands || !attrs || !type) {
    pairs_failed(p);
    return 0;
  }
  for (u32 i = 0; i < x.operand_count; i++) operands[i] = i ? node_operand(g, n, i) : first;
  for (u32 i = 0; i < x.attr_count; i++) attrs[i] = *node_attr(g, n, i);
  NodeId made = graph_node(g, NODE_op, op, operands, x.operand_count, attrs, x.attr_count, &type, 1);
  return made ? node_result(g, made, 0) : 0;
}

/* ---- one operation --------------------------------------------------------------------------------------- */

typedef struct Split {
  NodeId node;
  u32 op, count;
  ValueId operands[3];
  u32 real; /* the dtype of the parts that it is computed with */
  Pair x[3];
} Split;

/* What the operation makes: the parts of its complex result, or its real result in out->re alone (im 0). False: it
 * stays as it is. */
static bool arithmetic(Pairs *p, Split *s, Pair *out) {
  const Pair x = s->x[0], y = s->x[1];
  *out = (Pair){0, 0};
  switch (s->op) {
    case OP_positive: *out = x; return true;
    case OP_conj: *out = (Pair){x.re, one(p, OP_negative, x.im)}; return true;
    case OP_negative: *out = (Pair){one(p, OP_negative, x.re), one(p, OP_negative, x.im)}; return true;
    case OP_add:
    case OP_subtract: *out = (Pair){both(p, s->op, x.re, y.re), both(p, s->op, x.im, y.im)}; return true;
    case OP_multiply: *out = pair_product(p->g, x, y); return true;
    case OP_square: *out = pair_product(p->g, x, x); return true;
    case OP_divide:
      *out = is_pair(p->g, s->operands[1]) ? pair_quotient(p->g, x, y) : pair_quotient_by_real(p->g, x, y.re);
      return true;
    case OP_reciprocal:
      *out = pair_quotient(p->g, (Pair){real_number(p, DT_f64, 1), real_number(p, DT_f64, 0)}, x);
      return true;
    case OP_power:
    case OP_pow: return pair_power(p->g, x, s->operands[1], out);
    case OP_round: *out = (Pair){one(p, OP_round, x.re), one(p, OP_round, x.im)}; return true;
    case OP_real: out->re = x.re; return true;
    case OP_imag: out->re = x.im; return true;
    case OP_abs: out->re = both(p, OP_hypot, x.re, x.im); return true;
    case OP_angle: out->re = both(p, OP_atan2, x.im, x.re); return true;
    case OP_equal:
      out->re = both(p, OP_logical_and, both(p, OP_equal, x.re, y.re), both(p, OP_equal, x.im, y.im));
      return true;
    case OP_not_equal:
      out->re = both(p, OP_logical_or, both(p, OP_not_equal, x.re, y.re), both(p, OP_not_equal, x.im, y.im));
      return true;
    case OP_isnan: out->re = both(p, OP_logical_or, one(p, OP_isnan, x.re), one(p, OP_isnan, x.im)); return true;
    case OP_isinf: out->re = both(p, OP_logical_or, one(p, OP_isinf, x.re), one(p, OP_isinf, x.im)); return true;
    case OP_isfinite:
      out->re = both(p, OP_logical_and, one(p, OP_isfinite, x.re), one(p, OP_isfinite, x.im));
      return true;
    case OP_where:
      *out = (Pair){sel(p, s->operands[0], s->x[1].re, s->x[2].re), sel(p, s->operands[0], s->x[1].im, s->x[2].im)};
      return true;
    default: return pair_function(p->g, s->op, x, out);
  }
}

/* In f64 whatever the operands are, as the eager kernels compute. */
static bool computes_wide(u32 op) {
  switch (op) {
    case OP_divide:
    case OP_reciprocal:
    case OP_power:
    case OP_pow:
    case OP_abs:
    case OP_angle:
    case OP_exp:
    case OP_exp2:
    case OP_expm1:
    case OP_sqrt:
    case OP_log:
    case OP_log2:
    case OP_log10:
    case OP_log1p:
    case OP_sin:
    case OP_cos:
    case OP_tan:
    case OP_sinh:
    case OP_cosh:
    case OP_tanh: return true;
    default: return false;
  }
}

static bool split_elements(Pairs *p, Split *s, Pair *out) {
  Graph *g = p->g;
  const ArrayType *types[3];
  DTypeResult r;
  RuleError err;
  u32 used = 0, first = op_info(s->op)->params[0].kind == PARAM_condition;
  s->count = element_operands(g, s->node, s->operands);
  for (u32 i = 0; i < s->count; i++) {
    if (!s->operands[i] || value_is_token(g, s->operands[i])) return false;
    types[used++] = value_type(g, s->operands[i]);
  }
  if (first && s->count < 3) return false;
  if (op_converts(s->op)) {
    const ArrayType t = *value_type(g, node_result(g, s->node, 0));
    if (!dtype_is_pair(t.dtype) && t.dtype != DT_bool) return false;
    if (!operand_parts(p, s->operands[0], is_pair(g, s->operands[0]) ? dtype_real_of(types[0]->dtype) : DT_f64, out))
      return false;
    if (!is_pair(g, s->operands[0])) out->re = s->operands[0];
    if (t.dtype == DT_bool) *out = (Pair){is_not_zero(p, *out), 0};
    return true;
  }
  if (!used || !rule_dtype(s->op, used, types, &r, &err)) return false;
  bool logic = s->op == OP_logical_and || s->op == OP_logical_or || s->op == OP_logical_xor || s->op == OP_logical_not;
  if (logic) {
    ValueId truth[2] = {0};
    for (u32 i = 0; i < s->count && i < 2; i++) {
      truth[i] = s->operands[i];
      if (!is_pair(g, truth[i])) continue;
      if (!parts_of(p, truth[i], &s->x[i])) return false;
      truth[i] = is_not_zero(p, s->x[i]);
    }
    *out = (Pair){s->count == 1 ? one(p, s->op, truth[0]) : both(p, s->op, truth[0], truth[1]), 0};
    return true;
  }
  if (!dtype_is_pair(r.compute)) return false;
  s->real = computes_wide(s->op) ? DT_f64 : dtype_real_of(r.compute);
  bool power = s->op == OP_power || s->op == OP_pow;
  for (u32 i = first; i < s->count; i++) {
    if (power && i) continue;
    if (!operand_parts(p, s->operands[i], s->real, &s->x[i])) return false;
    if (s->real == dtype_real_of(r.compute)) continue;
    /* an operand is of the dtype of all of them first */
    u32 narrow = dtype_real_of(r.compute);
    s->x[i].re = as_dtype(p, as_dtype(p, s->x[i].re, narrow), s->real);
    s->x[i].im = as_dtype(p, as_dtype(p, s->x[i].im, narrow), s->real);
  }
  return arithmetic(p, s, out);
}

static bool has_parts_rule(u32 op) {
  switch (op) {
    case OP_sum:
    case OP_mean:
    case OP_cumsum:
    case OP_diff:
    case OP_any:
    case OP_all:
    case OP_count_nonzero:
    case OP_var:
    case OP_std:
    case OP_norm: return true;
    default: return false;
  }
}

static bool split_reduction(Pairs *p, Split *s, Pair *out) {
  Graph *g = p->g;
  const GraphNode *x = graph_node_at(g, s->node);
  if (!has_parts_rule(s->op) || !x->operand_count || !is_pair(g, node_operand(g, s->node, 0))) return false;
  ValueId v = node_operand(g, s->node, 0);
  for (u32 i = 0; i < x->attr_count; i++)
    if (node_attr(g, s->node, i)->kind == ATTR_dtype) return false;
  u32 real = dtype_real_of(value_type(g, v)->dtype), result = value_type(g, node_result(g, s->node, 0))->dtype;
  if (!parts_of(p, v, &s->x[0])) return false;
  Pair z = s->x[0];
  switch (s->op) {
    case OP_sum:
    case OP_mean:
    case OP_cumsum:
    case OP_diff: *out = (Pair){node_on(p, s->node, s->op, z.re, real), node_on(p, s->node, s->op, z.im, real)}; break;
    case OP_any:
    case OP_all:
    case OP_count_nonzero: *out = (Pair){node_on(p, s->node, s->op, is_not_zero(p, z), result), 0}; break;
    case OP_var:
    case OP_std: {
      ValueId sum = both(p, OP_add, node_on(p, s->node, OP_var, z.re, real), node_on(p, s->node, OP_var, z.im, real));
      *out = (Pair){s->op == OP_var ? sum : one(p, OP_sqrt, sum), 0};
      break;
    }
    case OP_norm: {
      ValueId size = both(p, OP_hypot, as_dtype(p, z.re, DT_f64), as_dtype(p, z.im, DT_f64));
      *out = (Pair){node_on(p, s->node, OP_norm, as_dtype(p, size, real), real), 0};
      break;
    }
    default: return false;
  }
  return true;
}

static bool same_type(Pairs *p, ValueId a, ValueId b) {
  return a && b && type_same(p->g, p->g->values.data[a].type, p->g->values.data[b].type);
}

static void split_node(Pairs *p, NodeId n) {
  Graph *g = p->g;
  const GraphNode *x = graph_node_at(g, n);
  Split s = {.node = n, .op = x->op};
  Pair out;
  ValueId v = node_result(g, n, 0), made = 0;
  graph_at(g, n);
  g->origin = x->origin;
  const ArrayType t = *value_type(g, v);
  if (s.op == OP_complex) {
    if (t.device != DEV_CPU) return;
    out = alike(p, &t, (Pair){node_operand(g, n, 0), node_operand(g, n, 1)});
    if (out.re && out.im) note_parts(p, v, out);
    return;
  }
  bool ok = op_info(s.op)->family == FAM_elementwise ? split_elements(p, &s, &out)
                                                                          : split_reduction(p, &s, &out);
  if (!ok) return;
  if (dtype_is_pair(t.dtype)) {
    out = alike(p, &t, out);
    made = both(p, OP_complex, out.re, out.im);
  } else {
    made = as_dtype(p, out.re, t.dtype);
    if (made && !t.rank && t.weak != value_type(g, made)->weak)
      made = t.weak ? as_weak(p, made) : graph_convert(g, made, t.dtype);
  }
  if (!same_type(p, made, v)) return; /* what was made for nothing, nobody uses */
  if (dtype_is_pair(t.dtype)) {
    note_parts(p, made, out);
    note_parts(p, v, out);
  }
  pairs_replace(p, v, made);
  if (!vec_push(p->c->alloc, &p->gone, n)) pairs_failed(p);
}

/* ---- loops and conditions ----------------------------------------------------------------------------------- */

static bool is_number_pair(const Graph *g, ValueId v) {
  return is_pair(g, v) && !value_type(g, v)->rank && value_type(g, v)->device == DEV_CPU;
}

/* The values of a list, complex numbers by their parts. Built at the cursor. */
static bool listed(Pairs *p, const ValueId *values, const bool *pair, u32 count, ValueId *out, u32 *n) {
  *n = 0;
  for (u32 i = 0; i < count; i++) {
    if (pair[i]) out[(*n)++] = one(p, OP_real, values[i]);
    out[(*n)++] = pair[i] ? one(p, OP_imag, values[i]) : values[i];
  }
  for (u32 i = 0; i < *n; i++)
    if (!out[i]) return false;
  return true;
}

/* What blocks in `b` and `b` itself give to the loop, or arms to their condition. Depth of blocks is bounded. */
static bool give_parts(Pairs *p, BlockId b, bool loop, const bool *pair, u32 count, ValueId *room) {
  Graph *g = p->g;
  u32 n;
  TermKind term = (TermKind)g->blocks.data[b].term;
  for (NodeId k = loop ? block_first(g, b) : 0; k; k = node_next(g, k)) {
    if (graph_node_at(g, k)->kind != NODE_cond) continue;
    for (u32 s = 0; s < 2; s++)
      if (!give_parts(p, graph_node_at(g, k)->sub[s], true, pair, count, room)) return false;
  }
  if (loop ? term != TERM_next && term != TERM_break : term != TERM_yield) return true;
  if (g->blocks.data[b].term_count != count) return true;
  ValueId *values = room, *out = room + count;
  for (u32 i = 0; i < count; i++) values[i] = block_result(g, b, i);
  graph_at_end(g, b);
  return listed(p, values, pair, count, out, &n) && graph_renew_terminator(g, b, out, n);
}

/* Parameters of a loop's block, complex numbers by their parts, which are put together where the block begins. */
static bool take_parts(Pairs *p, BlockId b, const bool *pair, u32 count) {
  Graph *g = p->g;
  ValueId *old = arena_alloc(&p->c->arena, sizeof *old * (count + 1));
  if (!old || g->blocks.data[b].params.count != count) return false;
  memcpy(old, g->blocks.data[b].params.data, sizeof *old * count);
  g->blocks.data[b].params.count = 0;
  for (u32 i = 0; i < count; i++) {
    if (!pair[i]) {
      if (!vec_push(g->alloc, &g->blocks.data[b].params, old[i])) return false;
      continue;
    }
    const ArrayType t = *value_type(g, old[i]);
    TypeId type = graph_scalar_type(g, dtype_real_of(t.dtype), t.weak);
    ValueId re = graph_param(g, b, type), im = graph_param(g, b, type);
    if (block_first(g, b)) graph_at(g, block_first(g, b));
    else graph_at_end(g, b);
    ValueId made = both(p, OP_complex, re, im);
    if (!made) return false;
    note_parts(p, made, (Pair){re, im});
    note_parts(p, old[i], (Pair){re, im});
    pairs_replace(p, old[i], made);
  }
  return true;
}

/* The results of the construct anew. */
static bool result_parts(Pairs *p, NodeId n, const bool *pair, u32 count) {
  Graph *g = p->g;
  const ValueId old = graph_node_at(g, n)->result_first;
  TypeId *types = arena_alloc(&p->c->arena, sizeof *types * (2 * count + 1));
  u32 made = 0, at = 0;
  if (!types) return false;
  for (u32 i = 0; i < count; i++) {
    const TypeId own = g->values.data[old + i].type;
    if (pair[i]) types[made++] = graph_scalar_type(g, dtype_real_of(type_of(g, own)->dtype), type_of(g, own)->weak);
    types[made] = pair[i] ? types[made - 1] : own;
    made++;
  }
  if (!graph_renew_results(g, n, types, made)) return false;
  for (u32 i = 0; i < count; i++) {
    ValueId v = node_result(g, n, at);
    if (pair[i]) {
      if (node_next(g, n)) graph_at(g, node_next(g, n));
      else graph_at_end(g, graph_node_at(g, n)->block);
      v = both(p, OP_complex, v, node_result(g, n, at + 1));
    }
    if (!v) return false;
    at += 1 + pair[i];
    pairs_replace(p, old + i, v);
  }
  return true;
}

static bool split_control(Pairs *p, NodeId n) {
  Graph *g = p->g;
  const GraphNode x = *graph_node_at(g, n);
  const u32 count = x.result_count;
  bool *pair = arena_alloc(&p->c->arena, sizeof *pair * (count + 1)), any = false, ok = true;
  ValueId *room = arena_alloc(&p->c->arena, sizeof *room * (3 * count + x.operand_count + 1));
  if (!pair || !room) return false;
  for (u32 i = 0; i < count; i++) any |= pair[i] = is_number_pair(g, node_result(g, n, i));
  if (!any) return true;
  if (x.kind == NODE_cond) {
    for (u32 s = 0; s < 2; s++) ok = ok && give_parts(p, x.sub[s], false, pair, count, room);
    return ok && result_parts(p, n, pair, count);
  }
  u32 made, captures;
  for (u32 i = 0; i < count; i++) room[i] = node_operand(g, n, i);
  graph_at(g, n);
  ok = listed(p, room, pair, count, room + count, &made);
  for (u32 i = 0; ok && i < made; i++) { /* an initial value may be weak where the loop's is not */
    u32 k = 0;
    for (u32 at = 0; k < count && at + pair[k] < i; k++) at += 1 + pair[k];
    ValueId v = room[count + i];
    if (pair[k]) ok = (room[count + i] = as_part(p, v, value_type(g, g->blocks.data[x.sub[1]].params.data[k]))) != 0;
  }
  captures = graph_node_at(g, n)->operand_count - count;
  for (u32 i = 0; i < captures; i++) room[count + made + i] = node_operand(g, n, count + i);
  ok = ok && graph_renew_operands(g, n, room + count, made + captures);
  g->nodes.data[n].carried = made;
  for (u32 s = 0; s < 2; s++) ok = ok && take_parts(p, x.sub[s], pair, count);
  return ok && give_parts(p, x.sub[1], true, pair, count, room) && result_parts(p, n, pair, count);
}

/* ---- the way -------------------------------------------------------------------------------------------------- */

static void pairs_in_place(Pairs *p) {
  Graph *g = p->g;
  Compiler *c = p->c;
  u32 values = g->values.count;
  ValueId *map = mem_alloc_zero(c->alloc, sizeof *map * values);
  for (u32 i = 0; map && i < p->from.count; i++) map[p->from.data[i]] = p->to.data[i];
  if (!map || !graph_replace(g, map, values)) pairs_failed(p);
  if (map) mem_free(c->alloc, map, sizeof *map * values);
  for (u32 i = 0; i < p->gone.count && !c->failed; i++) graph_unlink(g, p->gone.data[i]);
  p->from.count = p->to.count = p->gone.count = 0;
}

/* An exit makes the number of its parts, wherever these are then. */
static void exits_name_parts(Pairs *p) {
  ExitTable *t = &p->g->exits;
  for (u32 i = 1; i < t->recipes.count; i++) {
    Recipe *r = &t->recipes.data[i];
    Pair x;
    if (r->kind != RCP_value || !is_number_pair(p->g, r->a) || !known_parts(p, r->a, &x)) continue;
    NodeId n = value_node(p->g, x.re);
    if (n && graph_node_at(p->g, n)->op == OP_real) continue; /* there as a whole */
    r->constant = value_type(p->g, r->a)->weak;
    r->kind = RCP_complex;
    r->a = x.re;
    r->b = x.im;
  }
}

static bool takes_pairs(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  if (x->kind != NODE_op || x->result_count != 1) return false;
  for (u32 i = 0; i < x->operand_count; i++)
    if (is_pair(g, node_operand(g, n, i))) return true;
  return is_pair(g, node_result(g, n, 0));
}

static void split_all(Pairs *p, bool control) {
  Graph *g = p->g;
  VEC(u32) found = {0};
  GraphWalk w = walk_begin(g, 1);
  while (walk_next(&w)) {
    u8 kind = graph_node_at(g, w.node)->kind;
    bool wanted = control ? kind == NODE_while || kind == NODE_cond : takes_pairs(g, w.node);
    if (wanted && !vec_push(p->c->alloc, &found, w.node)) pairs_failed(p);
  }
  for (u32 i = 0; i < found.count && compile_goes_on(p->c, 1) && !g->failed; i++) {
    if (!control) split_node(p, found.data[i]);
    else if (!split_control(p, found.data[i])) pairs_failed(p);
  }
  vec_free(p->c->alloc, &found);
  if (g->failed) pairs_failed(p);
  if (!compile_stopped(p->c)) pairs_in_place(p);
}

bool pairs_split(Compiler *c) {
  Graph *g = c->g;
  bool any = false;
  for (u32 i = 2; i < g->types.count && !any; i++) any = g->types.data[i] && dtype_is_pair(g->types.data[i]->dtype);
  if (!any || c->device || compile_stopped(c)) return true;
  Pairs p = {.c = c, .g = g};
  map_init(&p.re, c->alloc);
  map_init(&p.im, c->alloc);
  split_all(&p, true);
  if (!compile_stopped(c)) split_all(&p, false);
  if (!compile_stopped(c)) exits_name_parts(&p);
  map_free(&p.re);
  map_free(&p.im);
  vec_free(c->alloc, &p.from);
  vec_free(c->alloc, &p.to);
  vec_free(c->alloc, &p.gone);
  graph_at_end(g, 1);
  return !c->failed && (compile_stopped(c) || decompose(c)); /* reductions of parts have formulae */
}

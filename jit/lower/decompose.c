/* decompose.c — operations that are formulae of others become these: the formulae of stdlib/array/compose.c, so
 * that every tier gives the same bits. Calls, custom rules and checkpoints become their bodies, a scan becomes a
 * while.
 *
 * Ends because every rewrite takes one node away, and what it makes is not rewritten again but for the constructs of a
 * body, of which there is one copy. What a formula does not cover stays, and runs by its eager kernel. */
#include "jit/lower/compile.h"
#include "lang/halves.h"
#include "lang/mechanisms.h"

#include <math.h>
#include <string.h>

typedef struct Rewrite {
  Compiler *c;
  Graph *g;
  VEC(ValueId) from, to;
  VEC(u32) gone; /* nodes */
  bool again;    /* what was made is to be looked at once more */
  u8 *dead;      /* by NodeId: a construct that was replaced, of those that were there when the pass began */
} Rewrite;

static void replace(Rewrite *r, ValueId from, ValueId to) {
  if (!vec_push(r->c->alloc, &r->from, from) || !vec_push(r->c->alloc, &r->to, to)) compile_no_memory(r->c);
}

/* ---- formulae ---------------------------------------------------------------------------------------- */

static ValueId op1(Rewrite *r, u32 op, ValueId a) { return a ? graph_op1(r->g, op, a) : 0; }
static ValueId op2(Rewrite *r, u32 op, ValueId a, ValueId b) { return a && b ? graph_op2(r->g, op, a, b) : 0; }

static ValueId reduced(Rewrite *r, u32 op, ValueId x, u32 mask, bool keep) {
  return x ? graph_reduce(r->g, op, x, mask, keep) : 0;
}

/* f(x): x as its float dtype, strong. */
static ValueId as_float(Rewrite *r, ValueId x) {
  return graph_convert(r->g, x, dtype_float_of(value_type(r->g, x)->dtype));
}

static ValueId weak_number(Rewrite *r, f64 v) { return graph_const(r->g, value_weak_f64(v)); }

/* The number of elements reduced, a weak float. `less`: a correction, not below 0. */
static ValueId count_of(Rewrite *r, ValueId x, u32 mask, f64 less) {
  SizePool *p = &r->g->sizes;
  const ArrayType t = *value_type(r->g, x);
  Dim n = 1;
  i64 k;
  for (u32 d = 0; d < t.rank; d++)
    if (mask >> d & 1) n = size_mul(p, n, t.dims[d]);
  if (size_is_const(p, n, &k)) return weak_number(r, (f64)k - less > 0 ? (f64)k - less : 0);
  if (less != floor(less) || fabs(less) > 1e9) return 0;
  if (less != 0) n = size_max(p, size_sub(p, n, size_const(p, (i64)less)), 0);
  return n == DIM_NONE ? 0 : graph_size_typed(r->g, n, DT_f64, true);
}

static bool decompose_number_arg(Rewrite *r, const GraphArg *a, f64 fallback, f64 *out) {
  Value v;
  *out = fallback;
  if (a->kind == ARG_hole) return true;
  if (a->kind == ARG_value) {
    if (!value_const(r->g, a->value, &v)) return false;
    *out = num_as_f64(v);
    return true;
  }
  if (a->kind != ARG_attr) return false;
  if (a->attr->kind == ATTR_int) *out = (f64)a->attr->i;
  else if (a->attr->kind == ATTR_float) *out = a->attr->f;
  else return false;
  return true;
}

static ValueId mean_of(Rewrite *r, ValueId f, u32 mask, bool keep) {
  return op2(r, OP_divide, reduced(r, OP_sum, f, mask, keep), count_of(r, f, mask, 0));
}

static ValueId variance(Rewrite *r, const GraphArg *args, u32 mask, bool keep) {
  f64 correction;
  ValueId f = as_float(r, args[0].value);
  if (!f || !decompose_number_arg(r, &args[2], 0, &correction)) return 0;
  ValueId d = op1(r, OP_square, op2(r, OP_subtract, f, mean_of(r, f, mask, true)));
  return op2(r, OP_divide, reduced(r, OP_sum, d, mask, keep), count_of(r, f, mask, correction));
}

static ValueId norm(Rewrite *r, const GraphArg *args, u32 mask, bool keep) {
  f64 ord;
  ValueId f = as_float(r, args[0].value);
  if (!f || !decompose_number_arg(r, &args[1], 2, &ord)) return 0;
  if (ord == 2) return op1(r, OP_sqrt, reduced(r, OP_sum, op1(r, OP_square, f), mask, keep));
  ValueId a = op1(r, OP_abs, f);
  if (ord == 1) return reduced(r, OP_sum, a, mask, keep);
  if (isinf(ord)) return reduced(r, ord > 0 ? OP_max : OP_min, a, mask, keep);
  if (ord == 0) {
    ValueId n = reduced(r, OP_count_nonzero, a, mask, keep);
    return n ? graph_convert(r->g, n, value_type(r->g, f)->dtype) : 0;
  }
  ValueId powers = op2(r, OP_power, a, weak_number(r, ord));
  return op2(r, OP_power, reduced(r, OP_sum, powers, mask, keep), weak_number(r, 1 / ord));
}

/* The largest elements of a formula that is defined for no elements too, where they are -inf. */
static ValueId top_of(Rewrite *r, ValueId x, u32 mask) {
  ValueId top = reduced(r, OP_max, x, mask, true);
  NodeId n = top ? value_node(r->g, top) : 0;
  if (n) r->g->nodes.data[n].total = true;
  return top;
}

static ValueId logsumexp(Rewrite *r, const GraphArg *args, u32 mask, bool keep) {
  Graph *g = r->g;
  ValueId f = as_float(r, args[0].value);
  if (!f) return 0;
  ValueId top = top_of(r, f, mask), finite = op1(r, OP_isfinite, top);
  ValueId m = finite ? graph_op3(g, OP_where, finite, top, weak_number(r, 0)) : 0;
  ValueId e = op1(r, OP_exp, op2(r, OP_subtract, f, m));
  ValueId v = op2(r, OP_add, op1(r, OP_log, reduced(r, OP_sum, e, mask, true)), m);
  if (!v || keep || !mask) return v;
  const ArrayType t = *value_type(g, args[0].value);
  ArrayType shape = t;
  rule_reduce(&t, mask, false, &shape);
  return graph_reshape(g, v, shape.rank, shape.dims);
}

static ValueId shifted(Rewrite *r, ValueId f, u32 mask) {
  return op2(r, OP_subtract, f, top_of(r, f, mask));
}

static ValueId softmax(Rewrite *r, ValueId x, u32 mask) {
  ValueId f = as_float(r, x);
  if (!f) return 0;
  ValueId e = op1(r, OP_exp, shifted(r, f, mask));
  return op2(r, OP_divide, e, reduced(r, OP_sum, e, mask, true));
}

static ValueId log_softmax(Rewrite *r, ValueId x, u32 mask) {
  ValueId f = as_float(r, x);
  if (!f) return 0;
  ValueId s = shifted(r, f, mask);
  return op2(r, OP_subtract, s, op1(r, OP_log, reduced(r, OP_sum, op1(r, OP_exp, s), mask, true)));
}

static ValueId layer_norm(Rewrite *r, const GraphArg *args, u32 mask) {
  ValueId f = as_float(r, args[0].value), eps;
  f64 small;
  if (!f || !decompose_number_arg(r, &args[4], 1e-5, &small)) return 0;
  eps = args[4].kind == ARG_value ? args[4].value : weak_number(r, small);
  ValueId d = op2(r, OP_subtract, f, mean_of(r, f, mask, true));
  ValueId v = mean_of(r, op1(r, OP_square, d), mask, true);
  ValueId y = op2(r, OP_divide, d, op1(r, OP_sqrt, op2(r, OP_add, v, eps)));
  if (args[1].kind == ARG_value) y = op2(r, OP_multiply, y, args[1].value);
  if (args[2].kind == ARG_value) y = op2(r, OP_add, y, args[2].value);
  return y;
}

/* The approximate one; the exact one is a function of elements. */
static ValueId gelu(Rewrite *r, const GraphArg *args) {
  if (!arg_bool(&args[1], false)) return 0;
  const ArrayType t = *value_type(r->g, args[0].value);
  ValueId x = dtype_kind(t.dtype) == DK_FLOAT ? args[0].value : as_float(r, args[0].value);
  ValueId inner = op2(r, OP_add, op2(r, OP_multiply, op1(r, OP_square, x), weak_number(r, 0.07135481627260025)),
                      weak_number(r, 1.5957691216057308));
  return op2(r, OP_multiply, op1(r, OP_sigmoid, op2(r, OP_multiply, inner, x)), x);
}

/* x[1:] - x[:-1] along an axis, n times. */
static ValueId differences(Rewrite *r, const GraphArg *args) {
  Graph *g = r->g;
  i64 n, axis;
  u32 own;
  RuleError err;
  ValueId x = args[0].value;
  if (!arg_int(&args[1], 1, &n) || !arg_int(&args[2], -1, &axis) || n < 1 || n > 16) return 0;
  if (!rule_axis(axis, value_type(g, x)->rank, &own, &err)) return 0;
  if (value_type(g, x)->dtype == DT_bool) return 0;
  for (i64 k = 0; k < n && x; k++) {
    ArrayType t = *value_type(g, x), part = t;
    IndexItem items[TYPE_MAX_RANK];
    ValueId sides[2];
    if (size_prove(&g->sizes, REL_lt, 0, t.dims[own]) != TRUTH_always) return 0;
    part.dims[own] = size_sub(&g->sizes, t.dims[own], 1);
    part.weak = false;
    for (u32 s = 0; s < 2; s++) {
      memset(items, 0, sizeof items);
      for (u32 d = 0; d < t.rank; d++) items[d].kind = INDEX_slice;
      items[own].part[s] = PART_dim;
      items[own].at[s] = s ? size_const(&g->sizes, -1) : 1;
      sides[s] = graph_index(g, x, NULL, 0, items, t.rank, graph_type(g, &part));
    }
    x = op2(r, OP_subtract, sides[0], sides[1]);
  }
  return x;
}

/* One operation that is taken apart. */
typedef struct Formula {
  NodeId node;
  u32 op, mask; /* mask: the axes, where there is a parameter of that name */
  bool keep;
  ValueId x; /* the first operand */
  GraphArg args[OP_MAX_PARAMS];
} Formula;

/* Of integers, rows by a vector or by rows of the same shape: sums of products in the result's dtype, modulo its range,
 * in any order. There is no library that does it sooner, and what is multiplied or comes of it needs no memory. */
static ValueId inner_integers(Rewrite *r, u32 op, const GraphArg *args, u32 dtype) {
  ValueId x = args[0].value, y = args[1].value;
  const ArrayType xt = *value_type(r->g, x), yt = *value_type(r->g, y);
  if ((dtype != DT_i64 && dtype != DT_i32) || !dtype_in_loops(xt.dtype) || !dtype_in_loops(yt.dtype) || !xt.rank ||
      !(yt.rank == 1 || (op == OP_vecdot && xt.rank == yt.rank)) || xt.rank < yt.rank || r->c->device != DEV_CPU ||
      !MECHANISM(r->c->vm, integer_rows))
    return 0;
  ValueId products = op2(r, OP_multiply, graph_convert(r->g, x, dtype), graph_convert(r->g, y, dtype));
  ValueId sum = reduced(r, OP_sum, products, 1u << (xt.rank - 1), false);
  return sum ? graph_convert(r->g, sum, dtype) : 0;
}

/* Of two vectors, or rows of the same shape: the sum of their products. */
static ValueId inner(Rewrite *r, const Formula *f) {
  const GraphArg *args = f->args;
  const u32 op = f->op;
  if (args[1].kind != ARG_value || value_is_token(r->g, args[1].value)) return 0;
  u32 dtype = value_type(r->g, node_result(r->g, f->node, 0))->dtype;
  if (dtype_kind(dtype) != DK_FLOAT)
    return op == OP_vecdot && args[2].kind != ARG_hole ? 0 : inner_integers(r, op, args, dtype);
  const ArrayType x = *value_type(r->g, args[0].value), y = *value_type(r->g, args[1].value);
  if (x.dtype != y.dtype || dtype_kind(x.dtype) != DK_FLOAT || x.rank != y.rank || !x.rank) return 0;
  if (op == OP_vecdot ? args[2].kind != ARG_hole : x.rank != 1) return 0;
  return reduced(r, OP_sum, op2(r, OP_multiply, args[0].value, args[1].value), 1u << (x.rank - 1), false);
}

/* Of two vectors: a column times a row. */
static ValueId outer(Rewrite *r, const GraphArg *args) {
  if (args[1].kind != ARG_value || value_is_token(r->g, args[1].value)) return 0;
  ArrayType column = *value_type(r->g, args[0].value);
  column.rank = 2;
  column.dims[1] = 1;
  return op2(r, OP_multiply, graph_index(r->g, args[0].value, NULL, 0, (IndexItem[2]){
      {.kind = INDEX_slice}, {.kind = INDEX_newaxis}}, 2, graph_type(r->g, &column)), args[1].value);
}

/* Fills in the value of each result. False: the formula does not cover this node. */
typedef bool (*Compose)(Rewrite *r, const Formula *f, ValueId *out);

/* Of one array that kernels can hold. */
static bool covered(Rewrite *r, const Formula *f) {
  if (!f->x) return false;
  const ArrayType *t = value_type(r->g, f->x);
  return dtype_in_loops(t->dtype) && (t->device == DEV_CPU || t->rank);
}

/* Axes: the last one by default where `last`, else all. */
static bool axes_of(Rewrite *r, Formula *f, bool last) {
  u32 axis = op_param(f->op, "axis"), keepdims = op_param(f->op, "keepdims"), rank = value_type(r->g, f->x)->rank;
  f->keep = keepdims != UINT32_MAX && arg_bool(&f->args[keepdims], false);
  if (!last || f->args[axis].kind != ARG_hole) return arg_axes(&f->args[axis], rank, &f->mask);
  f->mask = rank ? 1u << (rank - 1) : 0;
  return rank > 0;
}

#define COMPOSE(name, value)                                                     \
  static bool compose_##name(Rewrite *r, const Formula *f, ValueId *out) {       \
    return covered(r, f) && (out[0] = value) != 0;                                           \
  }
#define COMPOSE_AXES(name, last, value)                                          \
  static bool compose_##name(Rewrite *r, const Formula *given, ValueId *out) {   \
    Formula own = *given, *f = &own;                                             \
    return covered(r, f) && axes_of(r, f, last) && (out[0] = value) != 0;        \
  }
COMPOSE_AXES(mean, false, mean_of(r, as_float(r, f->x), f->mask, f->keep))
COMPOSE_AXES(var, false, variance(r, f->args, f->mask, f->keep))
COMPOSE_AXES(std, false, op1(r, OP_sqrt, variance(r, f->args, f->mask, f->keep)))
COMPOSE_AXES(norm, false, norm(r, f->args, f->mask, f->keep))
COMPOSE_AXES(logsumexp, false, logsumexp(r, f->args, f->mask, f->keep))
COMPOSE_AXES(nn_softmax, true, softmax(r, f->x, f->mask))
COMPOSE_AXES(nn_log_softmax, true, log_softmax(r, f->x, f->mask))
COMPOSE_AXES(nn_layer_norm, true, layer_norm(r, f->args, f->mask))
COMPOSE(diff, differences(r, f->args))
COMPOSE(gelu, gelu(r, f->args))
COMPOSE(inner, inner(r, f))
COMPOSE(outer, outer(r, f->args))

/* The cell `lower` of each row of ops.def. A formula that is named and not there does not compile. */
#define CELL_compose ~, OWN, 0
#define CELL_compose_by(formula) ~, SHARED, formula
#define CELL_math_or_compose ~, OWN, 0
#define OWN(name, formula) [OP_##name] = compose_##name,
#define SHARED(name, formula) [OP_##name] = compose_##formula,
static const Compose formulae[OP_COUNT] = {
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, lower, ...) \
  OP_CELL(name, CELL_##lower)
#include "lang/ops.def"
#undef OP
};

static bool formula(Rewrite *r, NodeId n, ValueId *out) {
  Graph *g = r->g;
  Formula f = {.node = n, .op = graph_node_at(g, n)->op};
  node_args(g, n, f.args);
  if (f.args[0].kind == ARG_value && !value_is_token(g, f.args[0].value)) f.x = f.args[0].value;
  return formulae[f.op](r, &f, out);
}

/* ---- dtypes that compute in a wider one --------------------------------------------------------------- */

static bool is_wide(u32 op, u32 dtype) { return dtype_can(dtype, op_need(op)) == CAN_wide; }

/* The dtype that operands are converted to first, as the interpreter does, and that has no arithmetic of its own;
 * DT_NONE: the operation is done as it stands. */
static u32 narrow_dtype(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  const OpInfo *info = op_info(x->op);
  if (x->kind != NODE_op || info->lower == LOWER_none || info->lower == LOWER_calls || info->lower == LOWER_weft ||
      (info->lower == LOWER_extern && op_need(x->op) != NEED_product))
    return DT_NONE; /* the eager kernel sees to it */
  if (info->family == FAM_elementwise) {
    ValueId operands[3];
    const ArrayType *types[3];
    u32 used = 0, count = element_operands(g, n, operands);
    DTypeResult r;
    RuleError err;
    for (u32 i = 0; i < count; i++)
      if (operands[i] && !value_is_token(g, operands[i])) types[used++] = value_type(g, operands[i]);
    return used && rule_dtype(x->op, used, types, &r, &err) && is_wide(x->op, r.compute) ? r.compute : DT_NONE;
  }
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId v = node_operand(g, n, i);
    if (!value_is_token(g, v) && is_wide(x->op, value_type(g, v)->dtype)) return value_type(g, v)->dtype;
  }
  for (u32 i = 0; i < x->result_count; i++) {
    ValueId v = node_result(g, n, i);
    if (!value_is_token(g, v) && is_wide(x->op, value_type(g, v)->dtype)) return value_type(g, v)->dtype;
  }
  return DT_NONE;
}

/* The half beside a towards b, as f32; `next` is the f32 beside it. */
static ValueId next_half(Rewrite *r, u32 half, ValueId a, ValueId b, ValueId next) {
  Graph *g = r->g;
  ValueId step = op2(r, OP_subtract, next, a);
  ValueId far = op2(r, OP_multiply, op1(r, OP_abs, step), weak_number(r, half_steps(half)));
  far = op2(r, OP_copysign, op2(r, OP_maximum, far, weak_number(r, half_least(half))), step);
  far = op2(r, OP_add, a, far);
  ValueId last = op2(r, OP_copysign, weak_number(r, half_largest(half)), a), endless = op1(r, OP_isinf, a);
  ValueId same = op2(r, OP_equal, a, b);
  if (!far || !last || !endless || !same || !(far = graph_op3(g, OP_where, endless, last, far))) return 0;
  return graph_op3(g, OP_where, same, next, far);
}

/* The operation on what its operands compute in; results are rounded. The node that stands for it, 0: refused. */
static bool widen(Rewrite *r, NodeId n, u32 dtype) {
  Graph *g = r->g;
  const GraphNode x = *graph_node_at(g, n);
  const bool elements = op_info(x.op)->family == FAM_elementwise;
  u32 compute = dtype_compute(dtype), most = x.operand_count + 1;
  ValueId *operands = arena_alloc(&r->c->arena, sizeof *operands * most);
  GraphAttr *attrs = arena_alloc(&r->c->arena, sizeof *attrs * (x.attr_count + 1));
  TypeId *types = arena_alloc(&r->c->arena, sizeof *types * (x.result_count + 1));
  bool ok = operands && attrs && types;
  for (u32 i = 0; i < x.operand_count && ok; i++) {
    ValueId v = node_operand(g, n, i);
    operands[i] = v;
    if (value_is_token(g, v)) continue;
    u32 own = value_type(g, v)->dtype;
    if (elements && own != dtype) v = graph_convert(g, v, dtype);
    if (elements || is_wide(x.op, own)) v = graph_convert(g, v, elements ? compute : dtype_compute(own));
    ok = (operands[i] = v) != 0;
  }
  for (u32 i = 0; i < x.attr_count && ok; i++) {
    attrs[i] = *node_attr(g, n, i);
    if (attrs[i].kind == ATTR_dtype && is_wide(x.op, (u32)attrs[i].i)) attrs[i].i = dtype_compute((u32)attrs[i].i);
  }
  for (u32 i = 0; i < x.result_count && ok; i++) {
    types[i] = g->values.data[node_result(g, n, i)].type;
    if (value_is_token(g, node_result(g, n, i))) continue;
    ArrayType t = *value_type(g, node_result(g, n, i));
    if (!is_wide(x.op, t.dtype)) continue;
    t.dtype = (u8)dtype_compute(t.dtype);
    t.weak = false;
    ok = (types[i] = graph_type(g, &t)) != 0;
  }
  NodeId made = ok ? graph_node(g, NODE_op, x.op, operands, x.operand_count, attrs, x.attr_count, types, x.result_count)
                   : 0;
  if (made) g->nodes.data[made].exit = x.exit;
  for (u32 i = 0; made && i < x.result_count; i++) {
    ValueId old = node_result(g, n, i), v = node_result(g, made, i);
    if (x.op == OP_nextafter) v = next_half(r, dtype, operands[0], operands[1], v);
    if (!value_is_token(g, old) && is_wide(x.op, value_type(g, old)->dtype))
      v = v ? graph_convert(g, v, value_type(g, old)->dtype) : 0;
    if (!v) made = 0;
    else replace(r, old, v);
  }
  if (!made) compile_no_memory(r->c);
  return made != 0;
}

static u32 result_dtype_of(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  if (!x->result_count || value_is_token(g, node_result(g, n, 0))) return DT_NONE;
  return value_type(g, node_result(g, n, 0))->dtype;
}

/* The next operand, from number `from` on, that is stored as it is into a result of another dtype, one that is rounded
 * to; UINT32_MAX: there is none. Eager kernels round by themselves. */
static u32 stored_other(const Graph *g, NodeId n, u32 from) {
  const GraphNode *x = graph_node_at(g, n);
  const u32 dtype = result_dtype_of(g, n);
  if (x->kind != NODE_op || dtype_compute(dtype) == dtype || op_info(x->op)->lower == LOWER_extern) return UINT32_MAX;
  GraphArg args[OP_MAX_PARAMS];
  node_args(g, n, args);
  for (u32 p = 0, i = 0, behind; p < op_info(x->op)->nparams; p++, i = behind) {
    const u8 kind = op_info(x->op)->params[p].kind;
    behind = i + arg_operands(&args[p]);
    if (kind != PARAM_stored && kind != PARAM_joined) continue;
    for (i = i < from ? from : i; i < behind; i++) {
      ValueId v = node_operand(g, n, i);
      if (!value_is_token(g, v) && value_type(g, v)->dtype != dtype) return i;
    }
  }
  return UINT32_MAX;
}

/* They are rounded before. */
static void round_stored(Rewrite *r, NodeId n) {
  Graph *g = r->g;
  const u32 dtype = result_dtype_of(g, n);
  for (u32 i = 0; (i = stored_other(g, n, i)) != UINT32_MAX; i++) {
    ValueId to = graph_convert(g, node_operand(g, n, i), dtype);
    if (to) graph_set_operand(g, n, i, to);
    else compile_no_memory(r->c);
  }
}

/* A product of halves, or of u32, that lie on a device: it multiplies them as they are where it can, and widens them
 * where not. */
static bool product_of_device(const Rewrite *r, NodeId n) {
  const Graph *g = r->g;
  if (graph_node_at(g, n)->op != OP_matmul || r->c->device == DEV_CPU) return false;
  const ArrayType *x = value_type(g, node_operand(g, n, 0)), *y = value_type(g, node_operand(g, n, 1));
  return x->dtype == y->dtype && (x->dtype == DT_f16 || x->dtype == DT_bf16 || x->dtype == DT_u32) &&
         x->rank >= 2 && y->rank >= 2 && x->device == r->c->device && y->device == r->c->device;
}

/* ---- constructs ------------------------------------------------------------------------------------------ */

/* The nodes of block `b` stand at the cursor instead of node n; its yields are n's results. */
static bool inline_block(Rewrite *r, NodeId n, BlockId b, u32 args) {
  Graph *g = r->g;
  ValueMap map;
  map_init(&map, r->c->alloc);
  bool ok = g->blocks.data[b].term == TERM_yield;
  u32 first, captures = node_captures(g, n, &first);
  for (u32 i = 0; ok && i < args && i < g->blocks.data[b].params.count; i++)
    ok = map_set(&map, g->blocks.data[b].params.data[i], node_operand(g, n, i));
  for (u32 i = 0; ok && i < captures && i < g->blocks.data[b].captures.count; i++)
    ok = map_set(&map, g->blocks.data[b].captures.data[i].inner, node_operand(g, n, first + i));
  if (ok) {
    ok = graph_inline(g, b, &map);
    if (!ok) compile_no_memory(r->c);
  }
  for (u32 i = 0; ok && i < graph_node_at(g, n)->result_count; i++)
    replace(r, node_result(g, n, i), map_get(&map, block_result(g, b, i)));
  map_free(&map);
  return ok;
}

/* Element `at` of xs, weak when the parameter is that stands for it. */
static ValueId element_at(Rewrite *r, ValueId xs, ValueId at, ValueId param) {
  Graph *g = r->g;
  ArrayType t = *value_type(g, xs),
      item = {.dtype = t.dtype, .device = t.device, .rank = (u8)(t.rank - 1), .weak = value_type(g, param)->weak};
  memcpy(item.dims, t.dims + 1, item.rank * sizeof *item.dims);
  IndexItem i = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
  return graph_index(g, xs, &at, 1, &i, 1, graph_type(g, &item));
}

/* scan (init) (xs) {body}: a while that counts, indexes the xs and fills the stacked results. */
static bool scan_to_while(Rewrite *r, NodeId n) {
  Graph *g = r->g;
  GraphNode x = *graph_node_at(g, n);
  Allocator *alloc = r->c->alloc;
  BlockId from = x.sub[0];
  u32 stacked = x.result_count - x.carried, count = 1 + x.carried + stacked;
  ValueId *values = mem_alloc_zero(alloc, sizeof *values * (count + 1));
  ValueMap map;
  map_init(&map, alloc);
  bool ok = values && g->blocks.data[from].term == TERM_next;
  BlockId cond = 0, body = 0;
  NodeId made = 0;
  u32 first, captures = node_captures(g, n, &first);
  for (u32 i = x.carried; i < x.operand_count && ok; i++) ok = !value_is_token(g, node_operand(g, n, i));
  if (!ok) goto done;
  values[0] = graph_const(g, value_i64(0));
  for (u32 i = 0; i < x.carried; i++) {
    ValueId init = node_operand(g, n, i), param = g->blocks.data[from].params.data[i];
    values[1 + i] = !value_is_token(g, init) && value_type(g, init)->rank == 0 &&
                    value_type(g, init)->weak != value_type(g, param)->weak && value_type(g, init)->dtype !=
                    value_type(g, param)->dtype ? graph_convert(g, init, value_type(g, param)->dtype) : init;
  }
  for (u32 i = 0; i < stacked; i++) {
    const ArrayType t = *value_type(g, node_result(g, n, x.carried + i));
    ValueId zeros = graph_full(g, dtype_real_of(t.dtype), t.rank, t.dims, 0);
    values[1 + x.carried + i] = dtype_is_pair(t.dtype) ? op2(r, OP_complex, zeros, zeros) : zeros;
  }
  for (u32 i = 0; i < count && ok; i++) ok = values[i] != 0;
  ValueId *init = NULL;
  if (ok) {
    init = arena_alloc(&r->c->arena, sizeof *init * count);
    ok = init && (cond = graph_open(g)) != 0;
  }
  if (!ok) goto done;
  memcpy(init, values, sizeof *init * count);
  {
    ValueId i = graph_param(g, cond, graph_scalar_type(g, DT_i64, false));
    for (u32 k = 0; k < x.carried; k++)
      (void)graph_param(g, cond, g->values.data[g->blocks.data[from].params.data[k]].type);
    for (u32 k = 0; k < stacked; k++) (void)graph_param(g, cond, g->values.data[init[1 + x.carried + k]].type);
    ValueId more = graph_op2(g, OP_less, i, graph_size(g, x.length));
    ok = more && graph_close(g, TERM_yield, &more, 1, 0) && (body = graph_open(g)) != 0;
  }
  if (ok) {
    ValueId i = graph_param(g, body, graph_scalar_type(g, DT_i64, false)), at = i;
    for (u32 k = 0; k < x.carried && ok; k++) {
      ValueId old = g->blocks.data[from].params.data[k], p = graph_param(g, body, g->values.data[old].type);
      ok = p && map_set(&map, old, p);
    }
    for (u32 k = 0; k < stacked; k++)
      values[1 + x.carried + k] = graph_param(g, body, g->values.data[init[1 + x.carried + k]].type);
    if (ok && x.reverse) at = graph_op2(g, OP_subtract, graph_size(g, size_sub(&g->sizes, x.length, 1)), i);
    for (u32 k = 0; k < captures && ok; k++) {
      ValueId v = graph_lift(g, body, node_operand(g, n, first + k));
      ok = v && map_set(&map, g->blocks.data[from].captures.data[k].inner, v);
    }
    for (u32 k = 0; k < x.xs && ok; k++) {
      ValueId xs = graph_lift(g, body, node_operand(g, n, x.carried + k)),
          item = xs && at ? element_at(r, xs, at, g->blocks.data[from].params.data[x.carried + k]) : 0;
      ok = item && map_set(&map, g->blocks.data[from].params.data[x.carried + k], item);
    }
    if (ok && x.index) ok = map_set(&map, g->blocks.data[from].params.data[x.carried + x.xs], at);
    ok = ok && graph_inline(g, from, &map);
    if (ok) {
      ValueId one = graph_const(g, value_i64(1));
      values[0] = graph_op2(g, OP_add, i, one);
      for (u32 k = 0; k < x.carried; k++) values[1 + k] = map_get(&map, block_result(g, from, k));
      IndexItem item = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
      for (u32 k = 0; k < stacked; k++)
        values[1 + x.carried + k] = graph_update(g, OP_none, values[1 + x.carried + k], &at, 1, &item, 1,
                                                 map_get(&map, block_result(g, from, x.carried + k)));
      for (u32 k = 0; k < count && ok; k++) ok = values[k] != 0;
      ok = ok && graph_close(g, TERM_next, values, count, 0);
    }
    if (ok) made = graph_while(g, init, count, cond, body);
    ok = made != 0;
    if (ok && x.exit != NO_EXIT) {
      u32 exit = exit_clone(&g->exits, x.exit, map.to, map.count);
      ok = exit != NO_EXIT;
      g->nodes.data[made].exit = exit;
    }
  }
  if (!ok) compile_no_memory(r->c); /* half a loop stands there */
  for (u32 i = 0; ok && i < x.carried; i++) replace(r, node_result(g, n, i), node_result(g, made, 1 + i));
  for (u32 i = 0; ok && i < stacked; i++)
    replace(r, node_result(g, n, x.carried + i), node_result(g, made, 1 + x.carried + i));
done:
  if (values) mem_free(alloc, values, sizeof *values * (count + 1));
  map_free(&map);
  return ok;
}

/* ---- the walk -------------------------------------------------------------------------------------------------- */

static bool wants_rewrite(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  switch ((NodeKind)x->kind) {
    case NODE_call:
    case NODE_custom:
    case NODE_checkpoint:
    case NODE_scan:
    case NODE_update: return true;
    case NODE_op: break;
    default: return false;
  }
  return formulae[x->op] || x->op == OP_stop_gradient || narrow_dtype(g, n) || stored_other(g, n, 0) != UINT32_MAX;
}

static bool rewrite(Rewrite *r, NodeId n) {
  Graph *g = r->g;
  graph_at(g, n);
  g->origin = graph_node_at(g, n)->origin;
  const GraphNode *x = graph_node_at(g, n);
  switch ((NodeKind)x->kind) {
    case NODE_call: return inline_block(r, n, x->sub[0], x->operand_count);
    case NODE_custom:
    case NODE_checkpoint: return inline_block(r, n, x->sub[0], x->xs);
    case NODE_scan: return scan_to_while(r, n);
    case NODE_update: {
      ValueId all = MECHANISM(r->c->vm, masks_selected) ? mask_update(r->c, n) : 0;
      if (all) replace(r, node_result(g, n, 0), all);
      return all != 0;
    }
    default: break;
  }
  if (x->op == OP_stop_gradient) { /* derivatives have been taken */
    ValueId v = node_operand(g, n, 0), out = node_result(g, n, 0);
    if (value_is_token(g, v) || g->values.data[v].type != g->values.data[out].type) return false;
    replace(r, out, v);
    return true;
  }
  u32 count = x->result_count, dtype = narrow_dtype(g, n);
  if (dtype && product_of_device(r, n)) return false;
  if (stored_other(g, n, 0) != UINT32_MAX) {
    round_stored(r, n);
    return false;
  }
  bool elements = op_info(x->op)->family == FAM_elementwise; /* its formula is of operations that are rounded each */
  r->again |= dtype != DT_NONE;
  if (dtype && !(elements && formulae[x->op])) return widen(r, n, dtype);
  ValueId *out = arena_alloc(&r->c->arena, sizeof *out * (count + 1));
  if (!out) {
    compile_no_memory(r->c);
    return false;
  }
  if (!formulae[x->op] || !formula(r, n, out)) return dtype ? widen(r, n, dtype) : false;
  for (u32 i = 0; i < count; i++) {
    const ArrayType *a = value_type(g, out[i]), *b = value_type(g, node_result(g, n, i));
    if (a->dtype != b->dtype || a->rank != b->rank || (a->rank == 0 && a->weak != b->weak)) return false;
  }
  for (u32 i = 0; i < count; i++) replace(r, node_result(g, n, i), out[i]);
  return true;
}

/* Inside a construct that was replaced by a copy: the copy is looked at in the next pass. */
static bool is_dead(const Rewrite *r, NodeId n) {
  const Graph *g = r->g;
  BlockId b = graph_node_at(g, n)->block;
  for (u32 i = 0; b && i < GRAPH_MAX_DEPTH; i++) {
    NodeId holder = g->blocks.data[b].node;
    if (!holder) return false;
    if (r->dead[holder]) return true;
    b = graph_node_at(g, holder)->block;
  }
  return !b;
}

/* One pass over all blocks; true in `*more` when what it made may want another. */
/* each takes the outermost constructs apart that are left; calls and loops are GRAPH_MAX_DEPTH deep at most */
enum { PASSES = 2 * GRAPH_MAX_DEPTH };

static void one_pass(Rewrite *r, bool *more) {
  Graph *g = r->g;
  Compiler *c = r->c;
  VEC(u32) found = {0};
  u32 *blocks = NULL, count = 0;
  *more = r->again = false;
  r->from.count = r->to.count = r->gone.count = 0;
  r->dead = arena_alloc(&c->arena, g->nodes.count + 1);
  if (!r->dead) compile_no_memory(c);
  if (!r->dead || !graph_blocks(g, c->alloc, &blocks, &count)) {
    compile_no_memory(c);
    return;
  }
  for (u32 i = 0; i < count; i++) {
    if (g->blocks.data[blocks[i]].shared) continue;
    for (NodeId n = block_first(g, blocks[i]); n && compile_goes_on(c, 1); n = node_next(g, n))
      if (wants_rewrite(g, n) && !vec_push(c->alloc, &found, n)) compile_no_memory(c);
  }
  mem_free(c->alloc, blocks, sizeof *blocks * count);
  for (u32 i = 0; i < found.count && !compile_stopped(c) && !g->failed; i++) {
    NodeId n = found.data[i];
    if (is_dead(r, n)) continue;
    bool construct = graph_node_at(g, n)->kind != NODE_op && graph_node_at(g, n)->kind != NODE_update;
    if (!rewrite(r, n)) {
      if (construct && !compile_stopped(c)) compile_unsupported(c, "a construct whose body does not end by its values");
      continue;
    }
    *more |= construct || r->again;
    if (!vec_push(c->alloc, &r->gone, n)) compile_no_memory(c);
    r->dead[n] = construct;
  }
  vec_free(c->alloc, &found);
}

/* What was replaced goes, also where it gives nothing: a body may hold checks alone. */
static void put_in_place(Rewrite *r) {
  Graph *g = r->g;
  Compiler *c = r->c;
  if (r->from.count) {
    u32 values = g->values.count;
    ValueId *map = mem_alloc_zero(c->alloc, sizeof *map * values);
    for (u32 i = 0; map && i < r->from.count; i++) map[r->from.data[i]] = r->to.data[i];
    if (!map || !graph_replace(g, map, values)) compile_no_memory(c);
    mem_free(c->alloc, map, sizeof *map * values);
  }
  for (u32 i = 0; i < r->gone.count && !c->failed; i++) graph_unlink(g, r->gone.data[i]);
}

bool decompose(Compiler *c) {
  Graph *g = c->g;
  Rewrite r = {.c = c, .g = g};
  bool more = true, endless = toil_pass(c->toil);
  for (u32 passes = 0; more && compile_goes_on(c, 1 + r.gone.count); passes++) {
    if (passes > PASSES && !endless) {
      compile_unsupported(c, "constructs inside of each other that are not taken apart");
      break;
    }
    one_pass(&r, &more);
    more |= endless;
    if (g->failed) compile_no_memory(c);
    if (compile_stopped(c)) break;
    put_in_place(&r);
  }
  vec_free(c->alloc, &r.from);
  vec_free(c->alloc, &r.to);
  vec_free(c->alloc, &r.gone);
  graph_at_end(g, 1);
  return !c->failed;
}

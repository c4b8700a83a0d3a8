/* native.c — scalar control flow as one native function: cond and while whose values are numbers, and arrays that are
 * only indexed and updated by element.
 *
 * Arrays. The graph's arrays are values; here they are buffers, written in place. Each update gives a buffer a new
 * version; a value of the graph names a buffer at one version. A use of a version that is not the present one cannot
 * be had: the function is given up and the construct becomes steps of the plan. (Of an array that a function which
 * calls itself has by value it can: native_undo.c.) A loop carries an array in the buffer that it came in.
 *
 * Exits want the state of their program point, arrays included. So before the first update of a straight piece of code
 * the checks behind it are made, as far as they do not depend on it: what lies between is pure. */
#include "jit/native/native_rows.h"

#include <stdio.h>
#include <string.h>

bool native_bail(Native *n, const char *why) {
  if (!n->why) n->why = why;
  return false;
}

bool native_no_memory(Native *n) {
  compile_no_memory(n->c);
  return native_bail(n, "memory");
}

NValue *native_value(Native *n, ValueId v) {
  NValue *x = &n->values[v];
  if (x->stamp != n->stamp) *x = (NValue){.stamp = n->stamp};
  return x;
}

/* ---- parameters -------------------------------------------------------------------------------------- */

static u32 add_param(Native *n, NArg a, LoopType type, u32 dir) {
  char name[NUMBERED_MAX];
  name_numbered(name, a.kind == NARG_number ? "s" : a.kind == NARG_dim ? "n" : "x", n->args.count);
  a.ir = dir ? loop_param_buffer(n->fn, name, type, (LoopDir)dir) : loop_param(n->fn, name, type);
  if (!vec_push(n->c->alloc, &n->args, a)) native_no_memory(n);
  return a.ir;
}

typedef struct Carried {
  Native *n;
  bool *inside;
} Carried;

static void carried_inside(void *ctx, u32 sym) {
  const Carried *c = ctx;
  const SizeSym *s = &c->n->g->sizes.syms.data[sym];
  if (s->unbacked && s->source && !native_outside(c->n, s->source)) *c->inside = true;
}

u32 native_dim_ir(Native *n, Dim d) {
  i64 k;
  if (d == DIM_NONE) {
    native_bail(n, "a size expression that gets too large");
    return 0;
  }
  if (dim_is_const(n->c, d, &k) || (n->small && native_dim_known(n, d, &k))) return loop_const_i(n->fn, LT_I64, k);
  bool inner = false;
  if (size_is_unbacked(&n->g->sizes, size_resolve(&n->g->sizes, d)))
    size_symbols(&n->g->sizes, size_resolve(&n->g->sizes, d), carried_inside, &(Carried){n, &inner});
  if (inner) return native_size_ir(n, size_resolve(&n->g->sizes, d));
  for (u32 i = 0; i < n->args.count; i++)
    if (n->args.data[i].kind == NARG_dim && n->args.data[i].dim == d) return n->args.data[i].ir;
  return add_param(n, (NArg){.kind = NARG_dim, .dim = d}, LT_I64, 0);
}

LoopType native_type(Native *n, ValueId v) { return loop_type_of_dtype(value_type(n->g, v)->dtype); }
static bool is_number(Native *n, ValueId v) { return value_type(n->g, v)->rank == 0; }

/* The number v as it is now; 0: it cannot be had here. */
u32 native_number(Native *n, ValueId v) {
  const GraphValue *gv = &n->g->values.data[v];
  LoopType type = native_type(n, v);
  if (type == LT_VOID) return native_bail(n, "a dtype outside the loop IR"), 0;
  if (gv->origin == GV_const) return loop_const(n->fn, type, gv->bits);
  if (gv->origin == GV_size) return element_convert(n->fn, native_dim_ir(n, gv->dim), LT_I64, type);
  const NValue *x = native_value(n, v);
  if (x->ir) return x->ir;
  const ValueInfo *info = value_info(n->c, v);
  if (info->slot == NO_SLOT) return native_bail(n, "a number that is not there"), 0;
  u32 ir = add_param(n, (NArg){.kind = NARG_number, .value = v}, type, 0);
  native_value(n, v)->ir = ir;
  native_value(n, v)->outside = true;
  return ir;
}

u32 native_buffer_param(Native *n, LoopType elem, LoopDir dir) {
  return add_param(n, (NArg){.kind = NARG_buffer, .buffer = n->buffers.count}, elem, dir);
}

/* The buffer of an array, at the version that v means; UINT32_MAX: none, or another version is there now. */
u32 native_buffer(Native *n, ValueId v) {
  NValue *x = native_value(n, v);
  if (x->row && !x->buffer && !native_fill(n, v)) return UINT32_MAX;
  if (!x->buffer) {
    const ValueInfo *info = value_info(n->c, v);
    const ArrayType *t = value_type(n->g, v);
    if (info->slot == NO_SLOT || !dtype_in_loops(t->dtype) || info->strides || info->raw) {
      native_bail(n, "an array that is not there");
      return UINT32_MAX;
    }
    NBuffer b = {.value = v, .slot = info->slot, .elem = loop_memory_of_dtype(t->dtype), .type = *t};
    b.ir = add_param(n, (NArg){.kind = NARG_buffer, .buffer = n->buffers.count}, b.elem, LOOP_IN);
    if (!vec_push(n->c->alloc, &n->buffers, b)) native_no_memory(n);
    x = native_value(n, v);
    x->buffer = n->buffers.count;
    x->outside = true;
  }
  u32 at = x->buffer - 1;
  const bool there = at < n->buffers.count && (n->buffers.data[at].version == x->version ||
                                               (n->buffers.data[at].mark && native_go_back(n, at, x->version)));
  if (!there) {
    native_bail(n, "an old version of an array is used");
    return UINT32_MAX;
  }
  return at;
}

static void alias(Native *n, ValueId inner, ValueId outer) {
  u8 origin = n->g->values.data[outer].origin;
  if (is_number(n, outer)) {
    NValue x = {.stamp = n->stamp, .ir = native_number(n, outer)};
    x.outside = origin == GV_const || origin == GV_size || native_value(n, outer)->outside;
    x.same_as = native_value(n, outer)->same_as ? native_value(n, outer)->same_as : outer;
    *native_value(n, inner) = x;
  } else if (native_value(n, outer)->split || native_value(n, outer)->row || native_buffer(n, outer) != UINT32_MAX) {
    NValue x = *native_value(n, outer);
    x.loads = NULL;
    x.same_as = x.same_as ? x.same_as : outer;
    *native_value(n, inner) = x;
  }
}

static ValueId native_origin_of(Native *n, ValueId v) {
  ValueId s = native_value(n, v)->same_as;
  return s ? s : v;
}

/* ---- elements ------------------------------------------------------------------------------------------- */

static bool plain_index(Native *n, ValueId v, u32 depth);

/* The least that an index is, as far as plain_index knows: of `i - 1`, where i is 1 at least, 0. */
static bool index_least(Native *n, ValueId v, u32 depth, i64 *out) {
  enum { FAR = 1 << 30 };
  v = native_origin_of(n, v);
  const GraphValue *gv = &n->g->values.data[v];
  *out = 0;
  if (gv->origin == GV_const) *out = (i64)gv->bits;
  if (gv->origin == GV_size) *out = size_range(&n->g->sizes, gv->dim).lo;
  if (gv->origin == GV_const || gv->origin == GV_size) return *out > -FAR && *out < FAR;
  NodeId d = gv->origin == GV_param || native_value(n, v)->outside || depth > 12 ? 0 : value_node(n->g, v);
  const GraphNode *x = d ? graph_node_at(n->g, d) : NULL;
  if (!x || x->kind != NODE_op || (x->op != OP_add && x->op != OP_subtract)) return plain_index(n, v, depth);
  const u32 op = x->op;
  ValueId a = node_operand(n->g, d, 0), b = native_origin_of(n, node_operand(n->g, d, 1));
  i64 first, second;
  if (op == OP_subtract && n->g->values.data[b].origin != GV_const) return false;
  if (!index_least(n, a, depth + 1, &first) || !index_least(n, b, depth + 1, &second)) return false;
  *out = op == OP_add ? first + second : first - second;
  return *out > -FAR && *out < FAR;
}

/* An index that is certainly not negative, or (inside) one whose check says so: checked as it is, without counting from
 * the end. A negative index then leaves by the check, and the interpreter finds that all is well. */
static bool plain_index(Native *n, ValueId v, u32 depth) {
  v = native_origin_of(n, v);
  const GraphValue *gv = &n->g->values.data[v];
  if (gv->origin == GV_const) return (i64)gv->bits >= 0;
  if (gv->origin == GV_size) return size_range(&n->g->sizes, gv->dim).lo >= 0;
  NValue *x = native_value(n, v);
  if (x->outside || depth > 12) return false;
  if (x->plain) return x->plain == 1;
  if (gv->origin == GV_param) return x->plain == 1;
  NodeId d = value_node(n->g, v);
  const GraphNode *node = graph_node_at(n->g, d);
  bool plain = false;
  if (node->kind == NODE_op &&
      (node->op == OP_multiply || node->op == OP_floor_divide || node->op == OP_remainder))
    plain = plain_index(n, node_operand(n->g, d, 0), depth + 1) && plain_index(n, node_operand(n->g, d, 1), depth + 1);
  i64 least;
  if (node->kind == NODE_op && (node->op == OP_add || node->op == OP_subtract))
    plain = index_least(n, v, depth, &least) && least >= 0;
  native_value(n, v)->plain = plain ? 1 : 2;
  return plain;
}

bool native_plain(Native *n, ValueId v) { return plain_index(n, v, 0); }

typedef struct Place {
  u32 buffer;
  i64 constant;
  LoopTerm terms[2 * TYPE_MAX_RANK];
  u32 count;
} Place;

u32 native_index(Native *n, ValueId v, u32 size) {
  u32 i = element_convert(n->fn, native_number(n, v), native_type(n, v), LT_I64);
  return plain_index(n, v, 0) ? i : element_wrap_index(n->fn, i, size);
}

static u32 index_ir(Native *n, ValueId v, Dim size) {
  return native_index(n, v, plain_index(n, v, 0) ? 0 : native_dim_ir(n, size));
}

/* Which element an index node or update names; every axis by an integer. */
static bool place_of(Native *n, NodeId node, Place *p) {
  Graph *g = n->g;
  ValueId x = node_operand(g, node, 0);
  IndexMap m;
  const ArrayType t = *value_type(g, x);
  Dim strides[TYPE_MAX_RANK];
  if (!index_map(g, node, &t, &m) || m.count != t.rank) return native_bail(n, "an index that is no element");
  p->buffer = native_buffer(n, x);
  if (p->buffer == UINT32_MAX) return false;
  p->constant = 0;
  p->count = 0;
  dims_strides(n->c, t.rank, t.dims, strides);
  for (u32 i = 0; i < m.count; i++) {
    const IndexAxis *a = &m.axes[i];
    if (a->kind != INDEX_int) return native_bail(n, "an index that is no element");
    i64 stride = 0;
    Dim by = strides[a->axis];
    if (a->part == PART_dim) {
      Dim at = size_mul(&g->sizes, a->at, by);
      if (dim_is_const(n->c, at, &stride)) p->constant += stride;
      else p->terms[p->count++] = (LoopTerm){.coef = 1, .var = native_dim_ir(n, at)};
      continue;
    }
    LoopTerm *term = &p->terms[p->count++];
    *term = (LoopTerm){.coef = 1, .var = index_ir(n, a->operand, t.dims[a->axis])};
    if (!dim_is_const(n->c, by, &term->coef) && !(n->small && native_dim_known(n, by, &term->coef)))
      term->stride[0] = native_dim_ir(n, by);
  }
  return !n->why;
}

static bool emit_index(Native *n, NodeId node) {
  Place p;
  ValueId x = node_operand(n->g, node, 0);
  if (n->small && (!is_number(n, node_result(n->g, node, 0)) || native_value(n, x)->split))
    return native_small_index(n, node);
  if (n->rows &&
      (!is_number(n, node_result(n->g, node, 0)) || (native_value(n, x)->row && !native_value(n, x)->buffer)))
    return native_rows_node(n, node);
  if (!place_of(n, node, &p)) return false;
  u32 ir = loop_load(n->fn, n->buffers.data[p.buffer].ir, p.constant, p.terms, p.count);
  native_value(n, node_result(n->g, node, 0))->ir = ir;
  return true;
}

u32 native_stored(Native *n, NodeId node, const ArrayType *array, u32 old, u32 value) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, node);
  ValueId v = node_operand(g, node, x->operand_count - 1);
  const ArrayType element = {.dtype = array->dtype}, *vt = value_type(g, v);
  LoopType elem = loop_type_of_dtype(array->dtype);
  if (x->op != OP_none) {
    ArrayType part = *vt;
    part.rank = 0;
    const ArrayType *types[2] = {&element, &part};
    DTypeResult r;
    RuleError err;
    if (!rule_dtype(x->op, 2, types, &r, &err) || !dtype_in_loops(r.compute) || !dtype_in_loops(r.result))
      return native_bail(n, "a compound update that does not lower"), 0;
    if (op_refuses_integers(x->op) && dtype_kind(r.compute) != DK_FLOAT)
      return native_bail(n, "a compound update that may fail"), 0;
    if (!element_weak_fits(n->c, v, r.compute) || dtype_kind(r.result) > dtype_kind(array->dtype))
      return native_bail(n, "a compound update that may fail"), 0;
    if (!element_op_lowers(n->c, x->op, r.compute)) return native_bail(n, "a compound update that does not lower"), 0;
    LoopType compute = loop_type_of_dtype(r.compute);
    u32 operands[3] = {element_convert(n->fn, old, elem, compute), value, 0};
    if (vt->dtype != r.compute) operands[1] = element_as(n->fn, value, r.compute);
    value = element_emit(n->fn, x->op, compute, r.result, operands);
  } else if (!element_weak_fits(n->c, v, array->dtype) || dtype_kind(vt->dtype) > dtype_kind(array->dtype)) {
    return native_bail(n, "a store that may fail"), 0;
  }
  return element_as(n->fn, value, array->dtype);
}

static bool names_element(Native *n, NodeId node) {
  const ArrayType t = *value_type(n->g, node_operand(n->g, node, 0));
  IndexMap m;
  bool all = index_map(n->g, node, &t, &m) && m.count == t.rank;
  for (u32 i = 0; i < m.count && all; i++) all = m.axes[i].kind == INDEX_int;
  return all;
}

static bool emit_update(Native *n, NodeId node) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, node);
  ValueId v = node_operand(g, node, x->operand_count - 1), result = node_result(g, node, 0);
  Place p;
  if (n->small && native_is_small(n, node_operand(g, node, 0))) return native_small_update(n, node);
  if (n->small && !is_number(n, v)) return native_small_store(n, node);
  if (n->rows && !names_element(n, node)) return native_rows_store(n, node);
  u32 own = n->rows ? native_own(n, node, node_operand(g, node, 0)) : 0;
  if (own == UINT32_MAX || !place_of(n, node, &p)) return false;
  if (n->rows) p.buffer = own;
  NBuffer *b = &n->buffers.data[p.buffer];
  if (!b->written) return native_bail(n, "an array that is not the loop's own is updated");
  if (!is_number(n, v)) return native_bail(n, "an array is stored");
  u32 value = native_number(n, v), old = x->op == OP_none ? 0 : loop_load(n->fn, b->ir, p.constant, p.terms, p.count);
  value = native_stored(n, node, &b->type, old, value);
  if (!value) return false;
  if (n->self && n->buffers.data[p.buffer].log && !native_log(n, p.buffer, p.constant, p.terms, p.count)) return false;
  b = &n->buffers.data[p.buffer];
  loop_store(n->fn, b->ir, p.constant, p.terms, p.count, value);
  b->version = ++n->versions;
  *native_value(n, result) = (NValue){.stamp = n->stamp, .buffer = p.buffer + 1, .version = b->version};
  return !b->mark || native_mark(n, p.buffer, b->noted);
}

/* An operation that has to do with arrays, or draws. */
static bool takes_arrays(Native *n, NodeId node) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, node);
  bool arrays = value_is_token(g, node_result(g, node, 0)) || !is_number(n, node_result(g, node, 0)) ||
                op_info(x->op)->family == FAM_random;
  for (u32 i = 0; i < x->operand_count && !arrays; i++)
    arrays = value_is_token(g, node_operand(g, node, i)) || !is_number(n, node_operand(g, node, i));
  return arrays;
}

static bool emit_op(Native *n, NodeId node) {
  Graph *g = n->g;
  ValueId operands[3], v = node_result(g, node, 0);
  u32 compute, x[3] = {0};
  if (n->small && graph_node_at(g, node)->result_count == 1 && takes_arrays(n, node)) return native_small_op(n, node);
  if (n->rows && graph_node_at(g, node)->result_count == 1 && takes_arrays(n, node)) return native_rows_node(n, node);
  if (!is_number(n, v)) return native_bail(n, "an operation on arrays");
  if (graph_node_at(g, node)->op == OP_complex) return true; /* what needs it names its parts, or bails */
  u32 count = element_operands(g, node, operands), op = graph_node_at(g, node)->op;
  for (u32 i = 0; i < count; i++)
    if (operands[i] && !is_number(n, operands[i])) return native_bail(n, "an operation on arrays");
  if (node_is_eager(n->c, node) || !element_lowers(n->c, node, &compute))
    return native_bail(n, "an operation that does not lower");
  LoopType t = loop_type_of_dtype(compute);
  for (u32 i = 0; i < count; i++) {
    if (!operands[i]) continue;
    u32 ir = native_number(n, operands[i]);
    if (!ir) return false;
    x[i] = element_convert(n->fn, ir, native_type(n, operands[i]),
                           element_operand_type(op, i, compute, value_type(g, operands[i])->dtype));
  }
  u32 ir = element_emit(n->fn, op, t, value_type(g, v)->dtype, x);
  native_value(n, v)->ir = ir;
  return ir != 0 || native_bail(n, "an operation that does not lower");
}

/* ---- checks ------------------------------------------------------------------------------------------------ */

static bool emit_check(Native *n, NodeId node) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, node);
  ValueId a = node_operand(g, node, 0), b = x->operand_count > 1 ? node_operand(g, node, 1) : 0;
  u32 *values, count;
  bool arrays = !is_number(n, a) || (b && x->op != CHECK_cast_range && !is_number(n, b));
  /* one by one: divisors are checked faster by a kernel of the plan */
  if (arrays && !n->small && (!n->rows || x->op != CHECK_index)) return native_bail(n, "a check of an array");
  if (!arrays && x->op == CHECK_index && native_index_proved(n, a, b)) return true;
  u32 exit = x->exit == NO_EXIT ? n->c->exit : x->exit, number = native_exit(n, exit, &values, &count);
  if (!number) return false;
  if (arrays && !n->small) return native_rows_check(n, node, number, count, values);
  if (arrays) return native_small_check(n, node, number, count, values);
  u32 p = native_number(n, a), q = b && x->op != CHECK_cast_range ? native_number(n, b) : 0;
  if (!p) return false;
  LoopType type = native_type(n, a);
  if (x->op == CHECK_index) {
    p = element_convert(n->fn, p, type, LT_I64);
    q = element_convert(n->fn, q, native_type(n, b), LT_I64);
    if (plain_index(n, a, 0)) {
      loop_check(n->fn, LOOP_CHECK_INDEX, number, p, q, count, values);
      return true;
    }
  }
  u32 dtype = x->op == CHECK_cast_range && b ? value_type(g, b)->dtype : DT_NONE;
  return element_check(n->fn, (CheckKind)x->op, type, dtype, p, q, number, count, values) ||
         native_bail(n, "an unknown check");
}

/* ---- straight code --------------------------------------------------------------------------- */

static bool emitted(Native *n, NodeId node) {
  const GraphNode *x = graph_node_at(n->g, node);
  if (x->kind == NODE_check) return n->done[node] == n->stamp;
  if (x->result_count == 0) return false;
  const NValue *v = native_value(n, node_result(n->g, node, 0));
  return v->ir || v->buffer || v->split || v->row;
}

/* Computes v now, ahead of its place, from what is there: pure numbers of the present block alone. */
static bool force_value(Native *n, ValueId v, u32 depth) {
  u8 origin = n->g->values.data[v].origin;
  if (origin == GV_const || origin == GV_size) return true;
  NValue *x = native_value(n, v);
  if (x->ir || x->split) return true;
  if (x->row) return native_rows_ready(n, v);
  if (x->buffer) return n->buffers.data[x->buffer - 1].version == x->version;
  NodeId d = value_node(n->g, v);
  if (!d || depth > 40) return native_outside(n, v);
  const GraphNode *node = graph_node_at(n->g, d);
  if (native_outside(n, v)) return true;
  if (node->block != n->block) return false;
  bool load = node->kind == NODE_index;
  if (!load && node->kind != NODE_op) return false;
  if (load && !n->loads_ahead) return false;
  if (n->rows && (load ? !is_number(n, v) : takes_arrays(n, d))) return false;
  for (u32 i = 0; i < node->operand_count; i++)
    if (!force_value(n, node_operand(n->g, d, i), depth + 1)) return false;
  return load ? emit_index(n, d) : emit_op(n, d);
}

bool native_force(Native *n, ValueId v) {
  if (native_outside(n, v)) return false;
  return force_value(n, v, 0) && (native_value(n, v)->ir || native_value(n, v)->split);
}

/* The checks behind an update, in order, as long as they can be made before it. */
static void hoist_checks(Native *n, NodeId from) {
  n->loads_ahead = true;
  for (NodeId k = from; k && !n->why; k = node_next(n->g, k)) {
    const GraphNode *x = graph_node_at(n->g, k);
    if (x->kind != NODE_op && x->kind != NODE_index && x->kind != NODE_update && x->kind != NODE_check) break;
    if (x->kind != NODE_check || emitted(n, k)) continue;
    bool ready = native_exit_ready(n, x->exit);
    for (u32 i = 0; i < x->operand_count && ready; i++) ready = force_value(n, node_operand(n->g, k, i), 0);
    if (!ready || !emit_check(n, k)) break;
    n->done[k] = n->stamp;
  }
  n->loads_ahead = false;
}

/* ---- constructs ------------------------------------------------------------------------------ */

void native_captures(Native *n, NodeId node, BlockId b) {
  u32 first, count = node_captures(n->g, node, &first);
  for (u32 i = 0; i < count && i < n->g->blocks.data[b].captures.count && !n->why; i++)
    alias(n, n->g->blocks.data[b].captures.data[i].inner, node_operand(n->g, node, first + i));
}

/* A number, or the elements of an array that must have the shape `like`. */
static bool split_words(Native *n, ValueId v, const NSplit *like, u32 *out, u32 *count) {
  if (!like) {
    out[(*count)++] = native_number(n, v);
    return true;
  }
  const NSplit *s = native_split(n, v);
  if (!s) return false;
  if (s->rank != like->rank || memcmp(s->dims, like->dims, sizeof *s->dims * s->rank) != 0)
    return native_bail(n, "an array of another size in each trip, or arm");
  for (u32 i = 0; i < s->count; i++) out[(*count)++] = s->ir[i];
  return true;
}

/* next, break: the numbers it gives; arrays must lie where the loop has them. */
static bool loop_values(Native *n, BlockId b, u32 *out, u32 *count) {
  const NLoop *l = n->loop;
  const GraphBlock *block = &n->g->blocks.data[b];
  *count = 0;
  if (!l) return native_bail(n, "next or break outside a loop");
  if (n->rows && !native_rows_carry(n, b)) return false;
  for (u32 i = 0; i < block->term_count; i++) {
    ValueId v = block_result(n->g, b, i);
    if (l->buffer[i]) {
      if (native_buffer(n, v) != l->buffer[i] - 1u) return native_bail(n, "a loop that exchanges arrays");
      continue;
    }
    if (!split_words(n, v, l->split[i], out, count)) return false;
  }
  for (u32 i = 0; i < l->buffers; i++) { /* what is only captured must not have changed */
    bool carried = false;
    for (u32 k = 0; k < block->term_count && !carried; k++) carried = l->buffer[k] == i + 1;
    if (!carried && n->buffers.data[i].version != l->versions[i] &&
        !(n->buffers.data[i].mark && native_go_back(n, i, l->versions[i])))
      return native_bail(n, "a loop that changes an array which it does not carry");
    if (carried && native_marks_meet(n->buffers.data[i].mark, l->marks[i]) != l->marks[i])
      return native_bail(n, "a loop that goes on with an array of before it");
  }
  return !n->why;
}

/* `split`: of a yield, by result: what its elements look like, NULL for what stays as it is. */
bool native_terminator(Native *n, BlockId b, u32 results, const NSplit **split) {
  const GraphBlock *block = &n->g->blocks.data[b];
  u32 words = 1, count = 0;
  const NSplit **like = block->term == TERM_yield ? split : n->loop ? n->loop->split : NULL;
  for (u32 i = 0; i < block->term_count && block->term != TERM_exit; i++) words += like && like[i] ? like[i]->count : 1;
  u32 *out = arena_alloc(&n->c->arena, sizeof *out * words);
  if (!out) return native_no_memory(n);
  switch ((TermKind)block->term) {
    case TERM_yield:
      for (u32 i = 0; i < block->term_count; i++) {
        ValueId v = block_result(n->g, b, i);
        if (is_number(n, v)) out[count++] = native_number(n, v);
        else if (split && split[i] ? !split_words(n, v, split[i], out, &count) : native_buffer(n, v) == UINT32_MAX)
          return false;
      }
      if (count != results) return native_bail(n, "an arm of another size");
      if (count) loop_yield(n->fn, count, out);
      return !n->why;
    case TERM_next:
      if (!loop_values(n, b, out, &count)) return false;
      loop_next(n->fn, count, out);
      return true;
    case TERM_break:
      if (!loop_values(n, b, out, &count)) return false;
      loop_break(n->fn, count, out);
      return true;
    case TERM_exit: {
      u32 *values, number = native_exit(n, block->exit, &values, &count);
      if (!number) return false;
      loop_exit(n->fn, number, count, values);
      return true;
    }
    default: return native_bail(n, "a block without an end");
  }
}

/* The elements of an array that a loop begins with and carries as numbers. NULL: as a buffer, or `why`. */
static const NSplit *carried_split(Native *n, ValueId v) {
  if (!n->small || !native_is_small(n, v)) return NULL;
  const NSplit *s = native_split(n, v);
  return s && s->count <= SMALL_CARRIED ? s : NULL;
}

/* A loop that counts is one of so many trips, so that addresses can step along with its index; what it carries, the
 * counter included, stays. *head 0: it does not. */
static bool begin_counted(Native *n, NodeId node, u32 numbers, const u32 *init, u32 *counter, u32 *head, u32 *index) {
  ValueId bound;
  if (!native_counts(n, node, counter, &bound)) return true;
  u32 end = native_number(n, bound), first = native_number(n, node_operand(n->g, node, *counter)),
      zero = loop_const_i(n->fn, LT_I64, 0);
  if (!end || !first) return false;
  u32 some = loop_emit(n->fn, LOOP_LT, LT_VOID, first, end, 0),
      trips = loop_emit(n->fn, LOOP_SUB, LT_VOID, end, first, 0);
  trips = loop_emit(n->fn, LOOP_SELECT, LT_VOID, some, trips, zero);
  *head = loop_begin_for(n->fn, NULL, trips, numbers, init);
  if (!*head) return native_bail(n, n->fn->failed ? n->fn->failed : "a malformed loop");
  *index = loop_emit(n->fn, LOOP_ADD, LT_VOID, loop_index_of(*head, 0), first, 0);
  return true;
}

static bool end_while(Native *n, NodeId node, const NLoop *loop, u32 head, BlockId around) {
  u32 at = 0, carried = graph_node_at(n->g, node)->carried;
  loop_end(n->fn);
  if (n->fn->failed) return native_bail(n, n->fn->failed);
  n->loop = loop->outer;
  n->block = around;
  for (u32 i = 0; i < loop->buffers; i++) {
    n->buffers.data[i].version = loop->versions[i];
    n->buffers.data[i].mark = loop->marks[i];
  }
  for (u32 i = 0; i < carried; i++) {
    NValue v = {.stamp = n->stamp};
    if (loop->buffer[i]) {
      v.buffer = loop->buffer[i];
      v.version = n->buffers.data[loop->buffer[i] - 1].version = ++n->versions;
      if (loop->marks[v.buffer - 1] && !native_mark(n, v.buffer - 1, 0)) return false;
    } else if (loop->split[i]) {
      NSplit *s = native_split_new(n, loop->split[i]->rank, loop->split[i]->dims);
      if (!s) return false;
      for (u32 k = 0; k < s->count; k++) s->ir[k] = loop_result_of(n->fn, head, at++);
      v.split = s;
    } else {
      v.ir = loop_result_of(n->fn, head, at++);
    }
    *native_value(n, node_result(n->g, node, i)) = v;
  }
  return true;
}

static bool emit_while(Native *n, NodeId node) {
  Graph *g = n->g;
  GraphNode x = *graph_node_at(g, node);
  Arena *arena = &n->c->arena;
  NLoop loop = {.outer = n->loop};
  u32 *init = arena_alloc(arena, sizeof *init * (x.carried * SMALL_CARRIED + 1)), numbers = 0;
  loop.buffer = arena_alloc(arena, sizeof *loop.buffer * (x.carried + 1));
  loop.split = arena_alloc(arena, sizeof *loop.split * (x.carried + 1));
  if (!init || !loop.buffer || !loop.split) return native_no_memory(n);
  BlockId cond = x.sub[0], body = x.sub[1], around = n->block;
  for (u32 i = 0; i < x.carried; i++) {
    ValueId v = node_operand(g, node, i);
    if (value_is_token(g, v)) return native_bail(n, "output");
    if (is_number(n, v)) {
      LoopType want = native_type(n, g->blocks.data[body].params.data[i]);
      u32 ir = native_number(n, v);
      if (!ir || want == LT_VOID) return native_bail(n, "a number that is not there");
      init[numbers++] = element_convert(n->fn, ir, native_type(n, v), want);
      continue;
    }
    u32 first = node == n->node ? n->own[i] : 0;
    const NSplit *s = first ? NULL : carried_split(n, v);
    if (s) {
      NSplit *own = native_split_new(n, s->rank, s->dims); /* its numbers are known when the loop is open */
      if (!own) return false;
      loop.split[i] = own;
      for (u32 k = 0; k < s->count; k++) init[numbers++] = s->ir[k];
      continue;
    }
    if (n->why) return false;
    u32 at = first ? first - 1 : n->rows ? native_own(n, node, v) : native_buffer(n, v);
    if (at == UINT32_MAX) return false;
    if (!n->buffers.data[at].written) return native_bail(n, "an inner loop carries an array that the outer does not");
    for (u32 k = 0; k < i; k++)
      if (loop.buffer[k] == at + 1) return native_bail(n, "a loop that carries one array twice");
    loop.buffer[i] = at + 1;
  }
  native_captures(n, node, cond); /* parameters, before the loop begins */
  native_captures(n, node, body);
  if (n->why) return false;
  loop.buffers = n->buffers.count;
  u32 counter = UINT32_MAX, index = 0, head = 0;
  if (!begin_counted(n, node, numbers, init, &counter, &head, &index)) return false;
  bool counts = head != 0;
  if (!counts) head = loop_begin_while(n->fn, numbers, init);
  if (!head) return native_bail(n, n->fn->failed ? n->fn->failed : "a malformed loop");
  loop.marks = arena_alloc(arena, sizeof(NMark *) * (loop.buffers + 1));
  if (!loop.marks) return native_no_memory(n);
  for (u32 i = 0; i < loop.buffers; i++) loop.marks[i] = n->buffers.data[i].mark;
  u32 at = 0;
  for (u32 i = 0; i < x.carried; i++) {
    NValue v = {.stamp = n->stamp};
    if (loop.buffer[i]) {
      v.buffer = loop.buffer[i];
      v.version = n->buffers.data[loop.buffer[i] - 1].version = ++n->versions;
      if (loop.marks[v.buffer - 1] && !native_mark(n, v.buffer - 1, 0)) return false;
    } else if (loop.split[i]) {
      NSplit *s = (NSplit *)loop.split[i];
      for (u32 k = 0; k < s->count; k++) s->ir[k] = loop_carry_of(n->fn, head, at++);
      v.split = s;
    } else {
      v.ir = loop_carry_of(n->fn, head, at++);
      if (counts && i == counter) v.ir = index;
    }
    *native_value(n, g->blocks.data[cond].params.data[i]) = v;
    *native_value(n, g->blocks.data[body].params.data[i]) = v;
  }
  native_find_counters(n, node);
  loop.versions = arena_alloc(arena, sizeof *loop.versions * (loop.buffers + 1));
  if (!loop.versions) return native_no_memory(n);
  for (u32 i = 0; i < loop.buffers; i++) loop.versions[i] = n->buffers.data[i].version;
  n->loop = &loop;
  u32 *values, count, number = native_exit(n, x.exit == NO_EXIT ? n->c->exit : x.exit, &values, &count);
  if (!number) return false;
  loop_poll(n->fn, number, count, values);
  n->now = x.exit;
  Flow f = FLOW_ON;
  if (counts) {
    f = native_block(n, body);
    if (f == FLOW_BAIL || (f == FLOW_ON && !native_terminator(n, body, 0, NULL))) return false;
    return end_while(n, node, &loop, head, around);
  }
  f = native_block(n, cond);
  if (f != FLOW_ON || g->blocks.data[cond].term != TERM_yield) return native_bail(n, "a loop's condition that leaves");
  ValueId more = block_result(g, cond, 0);
  u32 c = native_number(n, more);
  if (!c) return false;
  c = element_convert(n->fn, c, native_type(n, more), LT_I1);
  for (u32 i = 0; i < loop.buffers; i++)
    if (n->buffers.data[i].version != loop.versions[i])
      return native_bail(n, "a loop's condition that changes an array");
  if (!loop_begin_if(n->fn, c, 0, NULL)) return native_bail(n, "a malformed if");
  f = native_block(n, body);
  if (f == FLOW_BAIL || (f == FLOW_ON && !native_terminator(n, body, 0, NULL))) return false;
  loop_end(n->fn);
  u32 *last = arena_alloc(arena, sizeof *last * (numbers + 1));
  if (!last) return native_no_memory(n);
  for (u32 i = 0; i < numbers; i++) last[i] = loop_carry_of(n->fn, head, i);
  loop_break(n->fn, numbers, last);
  return end_while(n, node, &loop, head, around);
}

/* FLOW_ON: control reaches the terminator, which the caller writes. */
Flow native_block(Native *n, BlockId b) {
  Graph *g = n->g;
  BlockId around = n->block;
  n->block = b;
  for (NodeId k = block_first(g, b); k && !n->why; k = node_next(g, k)) {
    const GraphNode *x = graph_node_at(g, k);
    bool ok = true, goes_on = true;
    if (emitted(n, k)) continue;
    switch ((NodeKind)x->kind) {
      case NODE_op: ok = emit_op(n, k); break;
      case NODE_index: ok = emit_index(n, k); break;
      case NODE_check:
        ok = emit_check(n, k);
        n->done[k] = n->stamp;
        break;
      case NODE_update:
        hoist_checks(n, k);
        ok = !n->why && emit_update(n, k);
        n->now = graph_node_at(g, k)->exit;
        break;
      case NODE_cond:
        ok = native_cond(n, k, &goes_on);
        n->now = NO_EXIT;
        break;
      case NODE_while:
        ok = emit_while(n, k);
        n->now = NO_EXIT;
        break;
      case NODE_recur: ok = native_recur(n, k); break;
      case NODE_self: ok = native_self(n, k); break;
      case NODE_hook: alias(n, node_result(g, k, 0), node_operand(g, k, 0)); break;
      default: ok = native_bail(n, "a construct that does not lower"); break;
    }
    n->block = b;
    if (!ok) return FLOW_BAIL;
    if (!goes_on) {
      n->block = around;
      return FLOW_GONE;
    }
  }
  if (!n->why) return FLOW_ON; /* the block stays the present one for its terminator */
  n->block = around;
  return FLOW_BAIL;
}

/* ---- the function ---------------------------------------------------------------------------- */

/* The elements of a result go to memory that the plan makes before the call. */
static bool give_elements(Native *n, ValueId v) {
  const ArrayType *t = value_type(n->g, v);
  const NSplit *s = native_value(n, v)->split;
  NBuffer b = {.value = v, .result = true, .shape = s, .elem = loop_memory_of_dtype(t->dtype), .type = *t};
  b.slot = plan_slot_for(n->c->plan, v);
  b.ir = add_param(n, (NArg){.kind = NARG_buffer, .buffer = n->buffers.count}, b.elem, LOOP_OUT);
  if (!vec_push(n->c->alloc, &n->buffers, b)) return native_no_memory(n);
  for (u32 i = 0; i < s->count; i++) loop_store(n->fn, b.ir, i, NULL, 0, s->ir[i]);
  return true;
}

/* Is what the construct begins with as carried value i one of its other operands, too? */
static bool is_shared(Native *n, u32 i) {
  const GraphNode *x = graph_node_at(n->g, n->node);
  for (u32 k = 0; k < x->operand_count; k++)
    if (k != i && node_operand(n->g, n->node, k) == node_operand(n->g, n->node, i)) return true;
  return false;
}

/* An array that the function writes to, which begins as another one. NULL: memory was refused. */
static NBuffer *own_buffer(Native *n, ValueId v, ValueId from, ArrayType t) {
  NBuffer b = {.value = v, .from = from, .written = true, .elem = loop_memory_of_dtype(t.dtype), .type = t};
  b.slot = plan_slot_for(n->c->plan, v);
  b.version = ++n->versions;
  b.ir = add_param(n, (NArg){.kind = NARG_buffer, .buffer = n->buffers.count}, b.elem, LOOP_INOUT);
  if (vec_push(n->c->alloc, &n->buffers, b)) return &n->buffers.data[n->buffers.count - 1];
  native_no_memory(n);
  return NULL;
}

/* The region's own block, up to the exit that ends it. */
static bool native_whole(Native *n, bool *goes_on) {
  Graph *g = n->g;
  for (NodeId k = block_first(g, 1); k; k = node_next(g, k)) { /* arrays that come in and are written are its own */
    const GraphNode *x = graph_node_at(g, k);
    const u32 written = x->kind == NODE_while ? x->carried : x->kind == NODE_recur ? x->xs : x->kind == NODE_update;
    for (u32 i = 0; i < written; i++) {
      ValueId v = node_operand(g, k, i);
      if (g->values.data[v].origin != GV_param || is_number(n, v) || native_value(n, v)->buffer) continue;
      const ArrayType *t = value_type(g, v);
      if (!dtype_in_loops(t->dtype)) return native_bail(n, "a dtype outside the loop IR");
      if (!own_buffer(n, v, v, *t)) return false;
      *native_value(n, v) = (NValue){.stamp = n->stamp, .buffer = n->buffers.count, .version = n->versions};
    }
  }
  Flow f = native_block(n, 1);
  *goes_on = false;
  return f == FLOW_GONE || (f == FLOW_ON && native_terminator(n, 1, 0, NULL));
}

/* Arrays that a function which calls itself changes, in the order of its results; those by value are none of these. */
static bool recur_arrays(Native *n) {
  const GraphNode x = *graph_node_at(n->g, n->node);
  for (u32 i = 0, at = 0; i < x.xs; i++) {
    ValueId v = node_operand(n->g, n->node, i);
    if (is_number(n, v)) continue;
    const bool by_value = !native_recur_gives(n->g, n->node, i);
    while (!by_value && is_number(n, node_result(n->g, n->node, at))) at++;
    if (!dtype_in_loops(value_type(n->g, v)->dtype)) return native_bail(n, "a dtype outside the loop IR");
    NBuffer *b = own_buffer(n, by_value ? v : node_result(n->g, n->node, at++), v, *value_type(n->g, v));
    if (!b) return false;
    b->from_stays = is_shared(n, i);
    n->own[i] = n->buffers.count;
    if (!b->from_stays)
      *native_value(n, v) = (NValue){.stamp = n->stamp, .buffer = n->buffers.count, .version = b->version};
  }
  return true;
}

bool native_function(Native *n) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, n->node);
  u32 *out = arena_alloc(&n->c->arena, sizeof *out * (x->result_count + 1)), count = 0;
  bool goes_on = true;
  n->own = arena_alloc(&n->c->arena, sizeof *n->own * (x->carried + x->xs + 1));
  if (!out || !n->own) return native_no_memory(n);
  if (x->kind == NODE_recur && !recur_arrays(n)) return false;
  for (u32 i = 0; x->kind == NODE_while && i < x->carried; i++) { /* arrays that the loop carries are its own */
    ValueId v = node_operand(g, n->node, i);
    if (value_is_token(g, v)) return native_bail(n, "output");
    if (is_number(n, v)) continue;
    const ArrayType *t = value_type(g, v);
    if (!dtype_in_loops(t->dtype)) return native_bail(n, "a dtype outside the loop IR");
    bool few = n->small && native_is_small(n, v);
    n->carries_few |= few;
    if (few && !(n->in_memory && native_carried_stays(n, n->node, i))) continue;
    NBuffer *b = own_buffer(n, node_result(g, n->node, i), v, *t);
    if (!b) return false;
    b->from_stays = is_shared(n, i); /* it is read as it was: the loop has a copy */
    n->own[i] = n->buffers.count;
    if (!b->from_stays)
      *native_value(n, v) = (NValue){.stamp = n->stamp, .buffer = n->buffers.count, .version = b->version};
  }
  bool ok = false;
  if (!n->node) ok = native_whole(n, &goes_on);
  else if (x->kind == NODE_while) ok = emit_while(n, n->node);
  else ok = x->kind == NODE_recur ? native_recur(n, n->node) : native_cond(n, n->node, &goes_on);
  if (!ok || n->why) return false;
  x = graph_node_at(g, n->node);
  for (u32 i = 0; i < x->result_count; i++) {
    ValueId v = node_result(g, n->node, i);
    if (!is_number(n, v)) {
      if (native_value(n, v)->split ? !give_elements(n, v) : x->kind == NODE_cond)
        return native_bail(n, "arms that give arrays");
      continue;
    }
    LoopType t = native_type(n, v);
    loop_result(n->fn, t);
    const ValueInfo *info = value_info(n->c, v);
    /* what only a value needs that nobody reads, not as a size either, is not computed */
    out[count++] = info->use.last || info->use.forced ? native_value(n, v)->ir : loop_const(n->fn, t, 0);
  }
  if (goes_on) loop_return(n->fn, count, out);
  Buf why;
  buf_init(&why, n->c->alloc);
  ok = loop_fn_finish(n->fn, &why) == WEFT_OK && native_hoist(n) && native_carry(n) && native_raise(n) &&
       loops_verify(n->fn, &why) == WEFT_OK;
  if (!ok) native_bail(n, why.len ? arena_copy(&n->c->arena, why.data, why.len) : "a malformed function");
  buf_free(&why);
  return ok;
}

bool native_body(Native *n, BlockId b) {
  if (native_block(n, b) == FLOW_ON && n->g->blocks.data[b].term == TERM_yield) return true;
  return native_bail(n, "a function that does not return");
}

void native_release(Native *n) {
  Allocator *alloc = n->c->alloc;
  vec_free(alloc, &n->args);
  vec_free(alloc, &n->buffers);
  vec_free(alloc, &n->kept);
  vec_free(alloc, &n->assumed);
  vec_free(alloc, &n->callees);
  vec_free(alloc, &n->kernels);
  for (u32 i = 0; i < n->exits.count; i++) {
    vec_free(alloc, &n->exits.data[i].binds);
    vec_free(alloc, &n->exits.data[i].slots);
    vec_free(alloc, &n->exits.data[i].passed);
    vec_free(alloc, &n->exits.data[i].outer);
  }
  vec_free(alloc, &n->exits);
}

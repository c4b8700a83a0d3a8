/* partition.c — which values of a block get memory and which are computed where they are used; which loop nests,
 * calls and constructs run, in which order.
 *
 * 1. Backwards: a value is used by kernels (told apart by the root they store), through the same index or another one,
 *    or by something that needs it in memory. Used by one kernel in one way it is computed there; else where that is
 *    cheap. A reduction of rows that is broadcast over them again is computed before each row; views of what lies in
 *    memory are views.
 * 2. Forwards: what got memory joins a kernel over the same shape that runs late enough, or becomes a unit of its own.
 * Both passes look at each node and operand once. */
#include "jit/lower/kernel.h"

#include <string.h>

/* Making code takes time with the square of a kernel's length: UNIT_NODES results are enough for one. */
enum { UNIT_NODES = 12 };
enum { CHEAP_TWICE = 4, CHEAP_SPREAD = 8, CHEAP_ON_DEVICE = 64, ROW_READS = 3, MERGE_TRIES = 8, COST_MAX = 1 << 20 };
enum { USED_NONE = 0, USED_MANY = UINT32_MAX };

typedef enum NodeClass { CLASS_none, CLASS_point, CLASS_reduce, CLASS_check, CLASS_scan, CLASS_join, CLASS_index,
                         CLASS_update, CLASS_extern, CLASS_control, CLASS_effect } NodeClass;
/* Read at the same index; at another one; by several elements; by a reduction of rows, in the nest over rows; one
 * for each row, by all of the row. */
typedef enum Edge { EDGE_same, EDGE_moved, EDGE_spread, EDGE_rows, EDGE_row } Edge;

typedef struct Work {
  Compiler *c;
  Graph *g;
  BlockId block;
  Partition *out;
  u8 *classes; /* by NodeId */
  u32 *ready;  /* by symbol: the unit that makes its number, or checks it; NULL: no value carries one */
  u32 roots;
} Work;

static ValueUse *use_of(const Work *w, ValueId v) { return &value_info(w->c, v)->use; }

/* ---- classes -------------------------------------------------------------------------------------------- */

/* Elements of complex arrays are read and stored by their parts, by what only moves them, takes them apart or puts them
 * together. Numbers are no arrays of two. */
static bool is_pairs(Compiler *c, NodeId n, const ArrayType *t) {
  const GraphNode *x = graph_node_at(c->g, n);
  bool moves = x->kind == NODE_index || node_parts(c->g, n) ||
               (x->kind == NODE_op && (op_info(x->op)->lower == LOWER_view || op_info(x->op)->lower == LOWER_move));
  return moves && dtype_is_pair(t->dtype) && t->rank && t->device == DEV_CPU && !c->device;
}

static bool loop_dtypes(Compiler *c, NodeId n) {
  const GraphNode *x = graph_node_at(c->g, n);
  for (u32 i = 0; i < x->operand_count + x->result_count; i++) {
    ValueId v = i < x->operand_count ? node_operand(c->g, n, i) : node_result(c->g, n, i - x->operand_count);
    if (value_is_token(c->g, v)) return false;
    if (!type_in_loops(c, value_type(c->g, v)) && !is_pairs(c, n, value_type(c->g, v))) return false;
  }
  return true;
}

static bool reduce_lowers(Compiler *c, NodeId n) {
  GraphArg args[OP_MAX_PARAMS];
  u32 op = graph_node_at(c->g, n)->op, mask;
  node_args(c->g, n, args);
  return args[0].kind == ARG_value &&
         arg_axes(&args[op_param(op, "axis")], value_type(c->g, args[0].value)->rank, &mask);
}

bool unit_of_scan(Compiler *c, NodeId n, Unit *u) {
  Graph *g = c->g;
  u32 op = graph_node_at(g, n)->op;
  GraphArg args[OP_MAX_PARAMS];
  RuleError err;
  i64 axis;
  if (op_info(op)->lower != LOWER_scan) return false;
  node_args(g, n, args);
  if (args[0].kind != ARG_value) return false;
  const ArrayType *x = value_type(g, args[0].value);
  u->flat = args[1].kind == ARG_hole || (args[1].kind == ARG_attr && args[1].attr->kind == ATTR_nil);
  u->reverse = arg_bool(&args[2], false);
  u->initial = arg_bool(&args[3], false);
  u->axis = 0;
  if (u->flat) {
    u->rank = 1;
    u->dims[0] = dims_total(c, x);
    return u->dims[0] != DIM_NONE;
  }
  u->rank = x->rank;
  memcpy(u->dims, x->dims, x->rank * sizeof *u->dims);
  return arg_int(&args[1], 0, &axis) && rule_axis(axis, x->rank, &u->axis, &err);
}

enum { SCAN_LONG = 256 };

/* A long sum along the last axis: the eager kernel takes whole segments at a time, a loop of scalars waits for each
 * element. */
static bool scan_is_eager(Compiler *c, NodeId n, const Unit *u) {
  const GraphNode *x = graph_node_at(c->g, n);
  const ArrayType *t = value_type(c->g, node_result(c->g, n, 0));
  i64 trips;
  if (!c->code->target->eager_scans || (x->op != OP_cumsum && x->op != OP_cumprod) || dtype_kind(t->dtype) != DK_FLOAT)
    return false;
  return u->axis + 1 == u->rank && !u->reverse && size_hint(&c->g->sizes, u->dims[u->axis], &trips) &&
         trips >= SCAN_LONG;
}

enum { ROLL_LARGE = 512 };

/* Rolled over all of its axes at once, an array is read at places that no vector load reaches: the eager kernel
 * copies rows. Along one axis it rolls within a kernel (kernel_index_split.c). */
static bool roll_is_eager(Compiler *c, NodeId n) {
  Graph *g = c->g;
  GraphArg args[OP_MAX_PARAMS];
  const ArrayType *t = value_type(g, node_result(g, n, 0));
  i64 size;
  if (graph_node_at(g, n)->op != OP_roll || !c->code->target->eager_moves || t->rank < 2) return false;
  if (!size_hint(&g->sizes, dims_total(c, t), &size) || size < ROLL_LARGE) return false;
  node_args(g, n, args);
  return args[2].kind == ARG_hole || (args[2].kind == ARG_attr && args[2].attr->kind == ATTR_nil);
}

enum { TRANSPOSE_LARGE = 1 << 16 };

/* Large, its rows across those of the operand, and read by elementwise operations alone: copied in tiles that suit
 * the caches, which the loops of a kernel do not. */
static bool transpose_is_eager(Compiler *c, NodeId n) {
  Graph *g = c->g;
  const GraphNode *x = graph_node_at(g, n);
  ValueId v = node_result(g, n, 0);
  const ArrayType *t = value_type(g, v);
  i64 size;
  if (x->op != OP_transpose || t->rank != 2 || !c->code->target->eager_moves || dtype_bytes(t->dtype) < 4)
    return false;
  if (!size_hint(&g->sizes, dims_total(c, t), &size) || size < TRANSPOSE_LARGE) return false;
  for (NodeId u = node_next(g, n); u; u = node_next(g, u)) {
    const GraphNode *y = graph_node_at(g, u);
    for (u32 i = 0; i < y->operand_count; i++)
      if (node_operand(g, u, i) == v && (y->kind != NODE_op || op_info(y->op)->family != FAM_elementwise)) return false;
  }
  return true;
}

enum { JOINED_LARGE = 1 << 20, JOINED_RUN = 512 };

/* Arrays that are there already, put into a large one in long runs: copied one after another by non-temporal
 * stores. A kernel is faster with short rows. */
static bool join_is_eager(Compiler *c, NodeId n) {
  Graph *g = c->g;
  const GraphNode *x = graph_node_at(g, n);
  const ArrayType *t = value_type(g, node_result(g, n, 0));
  GraphArg args[OP_MAX_PARAMS];
  i64 size, axis;
  if (x->op != OP_concat || !c->code->target->eager_moves ||
      !size_hint(&g->sizes, dims_total(c, t), &size) || size < JOINED_LARGE)
    return false;
  node_args(g, n, args);
  if (!arg_int(&args[1], 0, &axis)) return false;
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId v = node_operand(g, n, i);
    const ArrayType *of = value_type(g, v);
    i64 run = 1, dim;
    for (i64 d = axis < 0 ? axis + of->rank : axis; d < of->rank; d++)
      run = size_hint(&g->sizes, of->dims[d], &dim) ? run * dim : 0;
    if (value_node(g, v) || of->dtype != t->dtype || run < JOINED_RUN) return false;
  }
  return true;
}

static bool index_lowers(Compiler *c, NodeId n) {
  IndexMap m;
  Graph *g = c->g;
  const ArrayType x = *value_type(g, node_operand(g, n, 0));
  if (!index_map(g, n, &x, &m)) return false;
  for (u32 i = 0; i < m.count; i++)
    if (m.axes[i].operand && dtype_kind(value_type(g, m.axes[i].operand)->dtype) != DK_INT) return false;
  return true;
}

static NodeClass classify(Compiler *c, NodeId n) {
  Graph *g = c->g;
  const GraphNode *x = graph_node_at(g, n);
  u32 compute;
  Unit scan;
  switch ((NodeKind)x->kind) {
    case NODE_check: return CLASS_check;
    case NODE_index: return loop_dtypes(c, n) && !node_is_eager(c, n) && index_lowers(c, n) ? CLASS_point : CLASS_index;
    case NODE_update: return CLASS_update;
    case NODE_hook: return CLASS_point;
    case NODE_host: return CLASS_effect;
    case NODE_op: break;
    default: return CLASS_control;
  }
  if (node_is_eager(c, n) || x->result_count != 1 || roll_is_eager(c, n) || transpose_is_eager(c, n) ||
      join_is_eager(c, n))
    return CLASS_extern;
  bool maker = view_maps(g, n);
  if (!loop_dtypes(c, n)) return CLASS_extern;
  if (maker) return CLASS_point;
  switch ((OpLower)op_info(x->op)->lower) {
    case LOWER_join: return CLASS_join;
    case LOWER_reduce: return reduce_lowers(c, n) ? CLASS_reduce : CLASS_extern;
    case LOWER_scan: return unit_of_scan(c, n, &scan) && !scan_is_eager(c, n, &scan) ? CLASS_scan : CLASS_extern;
    default: return element_lowers(c, n, &compute) ? CLASS_point : CLASS_extern;
  }
}

/* ---- backwards: uses --------------------------------------------------------------------------------------- */

static bool in_block(const Work *w, ValueId v) {
  NodeId n = value_node(w->g, v);
  return n && graph_node_at(w->g, n)->block == w->block;
}

static void force(Work *w, ValueId v) {
  if (!in_block(w, v)) {
    value_info(w->c, v)->wanted = true;
    return;
  }
  use_of(w, v)->forced = true;
}

static void force_exit_value(void *ctx, u32 v) { force(ctx, v); }

static void use(Work *w, ValueId v, u32 kernel, Edge edge) {
  if (!in_block(w, v)) return;
  ValueUse *u = use_of(w, v);
  u->strange |= edge == EDGE_moved || edge == EDGE_spread;
  if (u->kernel == USED_NONE) u->kernel = kernel;
  else if (u->kernel != kernel) u->kernel = USED_MANY;
  if (edge == EDGE_same) u->same = true;
  else if (u->moved < 255) u->moved++;
  u->spread |= edge == EDGE_spread || edge == EDGE_row;
}

/* The axes that are reduced: the last ones, and some is kept. */
static bool reduces_rows(Work *w, NodeId n) {
  GraphArg args[OP_MAX_PARAMS];
  u32 op = graph_node_at(w->g, n)->op, mask, kept = 0;
  node_args(w->g, n, args);
  const ArrayType *x = value_type(w->g, args[0].value);
  if (!arg_axes(&args[op_param(op, "axis")], x->rank, &mask)) return false;
  while (kept < x->rank && !(mask >> kept & 1)) kept++;
  if (mask != ((1u << x->rank) - 1u) - ((1u << kept) - 1u)) return false;
  for (u32 d = 0; d < kept; d++)
    if (!dim_is(w->c, x->dims[d], 1)) return true; /* else every trip would reduce anew */
  return false;
}

/* Its last axes have size 1 where those of the result have not, and nothing else is broadcast. */
static bool gives_row(Work *w, const ArrayType *t, const ArrayType *r) {
  if (t->rank != r->rank) return false;
  u32 same = 0;
  while (same < t->rank && dims_same(w->c, 1, &t->dims[same], &r->dims[same])) same++;
  for (u32 d = same; d < t->rank; d++)
    if (!dim_is(w->c, t->dims[d], 1)) return false;
  return same > 0;
}

/* How a node reads operand i. */
static Edge edge_of(Work *w, NodeId n, u32 i) {
  Graph *g = w->g;
  const GraphNode *x = graph_node_at(g, n);
  ValueId v = node_operand(g, n, i);
  const ArrayType *t = value_type(g, v), *r = value_type(g, node_result(g, n, 0));
  if (t->rank == 0) return EDGE_same;
  if (x->kind == NODE_hook) return EDGE_same;
  if (x->kind == NODE_index) return i ? EDGE_spread : x->operand_count > 1 ? EDGE_spread : EDGE_moved;
  bool shape = t->rank == r->rank && dims_same(w->c, t->rank, t->dims, r->dims);
  if (w->classes[n] == CLASS_reduce) return reduces_rows(w, n) ? EDGE_rows : EDGE_moved;
  if (view_maps(g, n) && !node_parts(g, n)) {
    u8 reads = op_info(x->op)->reads;
    return reads == READS_same ? EDGE_same : reads == READS_spread ? EDGE_spread : EDGE_moved;
  }
  return shape ? EDGE_same : gives_row(w, t, r) ? EDGE_row : EDGE_spread;
}

static u32 own_cost(Work *w, NodeId n) {
  if (view_maps(w->g, n))
    return graph_node_at(w->g, n)->kind == NODE_index && graph_node_at(w->g, n)->operand_count > 1 ? 2 : 0;
  return element_flops(w->g, n);
}

/* A number, or one for each row, is computed before the innermost loop. */
static bool is_outside(Work *w, ValueId v, ValueId result) {
  const ArrayType *t = value_type(w->g, v), *r = value_type(w->g, result);
  if (!t->rank || !r->rank) return !t->rank && r->rank;
  return dim_is(w->c, t->dims[t->rank - 1], 1) && !dim_is(w->c, r->dims[r->rank - 1], 1);
}

static void add_costs(Work *w) {
  for (NodeId n = block_first(w->g, w->block); n; n = node_next(w->g, n)) {
    if (w->classes[n] != CLASS_point) continue;
    u32 cost = own_cost(w, n);
    for (u32 i = 0; i < graph_node_at(w->g, n)->operand_count; i++) {
      ValueId v = node_operand(w->g, n, i);
      if (in_block(w, v) && !is_outside(w, v, node_result(w->g, n, 0))) cost += use_of(w, v)->cost;
    }
    use_of(w, node_result(w->g, n, 0))->cost = cost < COST_MAX ? cost : COST_MAX;
  }
}

/* On a device memory is what costs: what one kernel needs twice, by rows, is not stored and read again. */
static bool computed_where_used(const Work *w, const ValueUse *u) {
  if (u->forced) return false;
  if (w->c->device && u->kernel != USED_MANY && !u->strange && !u->spread && !u->across && u->moved < ROW_READS &&
      u->cost <= CHEAP_ON_DEVICE)
    return true;
  bool by_row = u->spread && !u->strange && !u->across && !u->same;
  if (by_row && u->kernel != USED_MANY) return true; /* once for each row, before its elements */
  bool twice = u->moved > 1 || (u->moved && u->same);
  if (u->kernel == USED_MANY && u->cost > CHEAP_TWICE) return false;
  if (twice && u->cost > CHEAP_TWICE) return false;
  return !u->spread || u->cost <= CHEAP_SPREAD;
}

/* max(x, axis=-1, keepdims=true) in exp(x - …): before each row of the kernel that it is used in. */
static bool computed_by_row(Work *w, NodeId n, const ValueUse *u) {
  Graph *g = w->g;
  GraphArg args[OP_MAX_PARAMS];
  u32 op = graph_node_at(g, n)->op;
  if (u->forced || u->strange || u->across || u->same || !u->spread || u->kernel == USED_NONE || u->kernel == USED_MANY)
    return false;
  node_args(g, n, args);
  return arg_bool(&args[op_param(op, "keepdims")], false) && reduces_rows(w, n);
}

/* Its result can be a pattern of strides over what its first operand is. */
static bool view_by_kind(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  if (value_type(g, node_result(g, n, 0))->rank == 0 || x->operand_count == 0) return false;
  ValueId base = node_operand(g, n, 0);
  u8 origin = g->values.data[base].origin;
  if (origin == GV_const || origin == GV_size || value_type(g, base)->rank == 0) return false;
  if (x->kind == NODE_index) return x->operand_count == 1;
  return x->kind == NODE_op && op_info(x->op)->lower == LOWER_view;
}
static bool renumbers(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  return x->kind == NODE_op && op_info(x->op)->reads == READS_renumbered;
}

/* Views all the way down to what lies in memory when the block begins. */
static bool view_of_old(const Work *w, NodeId n) {
  for (;;) {
    if (w->classes[n] != CLASS_point || !view_by_kind(w->g, n)) return false;
    ValueId base = node_operand(w->g, n, 0);
    if (!in_block(w, base)) return true;
    if (renumbers(w->g, n)) return false; /* what it numbers need not be dense */
    n = value_node(w->g, base);
  }
}

static void look_back(Work *w, NodeId n) {
  Graph *g = w->g;
  const GraphNode *x = graph_node_at(g, n);
  NodeClass class = (NodeClass)w->classes[n];
  switch (class) {
    case CLASS_check: {
      u32 kernel = ++w->roots;
      for (u32 i = 0; i < x->operand_count; i++) use(w, node_operand(g, n, i), kernel, EDGE_same);
      return;
    }
    case CLASS_point:
    case CLASS_reduce: {
      ValueId v = node_result(g, n, 0);
      ValueUse *u = use_of(w, v);
      ValueInfo *info = value_info(w->c, v);
      if (!u->forced && u->kernel == USED_NONE) {
        info->where = AT_NOWHERE;
        return;
      }
      /* an index that is itself gathered gets memory, so that gathers do not nest */
      bool inside = class == CLASS_point ? computed_where_used(w, u) : computed_by_row(w, n, u);
      bool view = !inside && class == CLASS_point && view_of_old(w, n);
      info->where = inside ? AT_USE : AT_SLOT;
      info->wanted = u->forced;
      u32 kernel = inside ? u->kernel : ++w->roots;
      for (u32 i = 0; i < x->operand_count; i++) {
        ValueId o = node_operand(g, n, i);
        Edge e = edge_of(w, n, i);
        if (inside && e == EDGE_same && u->moved)
          e = !u->strange ? (u->spread ? EDGE_row : EDGE_rows) : u->spread ? EDGE_spread : EDGE_moved;
        use(w, o, kernel, e);
        if (in_block(w, o))
          use_of(w, o)->across |= inside ? u->strange || u->across : class == CLASS_reduce && !reduces_rows(w, n);
        if (view && i == 0) force(w, o);
        NodeId d = value_node(g, o);
        bool gathers = d && x->kind == NODE_index && i && graph_node_at(g, d)->kind == NODE_index;
        if (gathers) force(w, o);
      }
      return;
    }
    case CLASS_scan:
      use(w, node_operand(g, n, 0), ++w->roots, EDGE_moved);
      break;
    case CLASS_join:
      for (u32 i = 0; i < x->operand_count; i++) use(w, node_operand(g, n, i), ++w->roots, EDGE_moved);
      break;
    default:
      for (u32 i = 0; i < x->operand_count; i++) {
        ValueId o = node_operand(g, n, i);
        force(w, o);
        if (in_block(w, o)) use_of(w, o)->by_unit = true;
      }
  }
  for (u32 i = 0; i < x->result_count; i++) {
    ValueInfo *info = value_info(w->c, node_result(g, n, i));
    info->where = AT_SLOT;
    info->wanted = true;
  }
}

/* ---- forwards: units -------------------------------------------------------------------------------------------- */

static u32 new_unit(Work *w, UnitKind kind, NodeId n) {
  u32 id = w->out->units.count;
  if (!vec_push(w->c->alloc, &w->out->units, (Unit){.kind = (u8)kind, .node = n})) {
    compile_no_memory(w->c);
    return 0;
  }
  return id;
}

bool check_shape(Compiler *c, NodeId n, ArrayType *out) {
  const GraphNode *x = graph_node_at(c->g, n);
  const ArrayType *types[2];
  RuleError err;
  GuardDims dims;
  u32 count = x->operand_count < 2 ? x->operand_count : 2;
  for (u32 i = 0; i < count; i++) types[i] = value_type(c->g, node_operand(c->g, n, i));
  guard_dims_init(&dims, NULL, &c->g->sizes, "check", (Span){0});
  *out = (ArrayType){0};
  return rule_broadcast(&dims.base, count, types, out, &err);
}

static bool same_nest(Compiler *c, const Unit *u, u32 rank, const Dim *dims) {
  return u->kind == UNIT_kernel && u->rank == rank && dims_same(c, rank, u->dims, dims);
}

/* A kernel over the shape (axes of size 1 apart) that runs at `need` or later, where everything that is read at another
 * index lies before. */
static u32 kernel_for(Work *w, NodeId n, const ArrayType *shape, u32 need, u32 moved_need) {
  u32 rank = 0;
  Dim dims[TYPE_MAX_RANK];
  for (u32 d = 0; d < shape->rank; d++)
    if (!dim_is(w->c, shape->dims[d], 1)) dims[rank++] = shape->dims[d];
  u32 count = w->out->units.count, tries = 0, unit = 0;
  for (u32 u = count; u-- > 1 && u >= need && u > moved_need && tries < MERGE_TRIES && !unit; tries++)
    if (w->out->units.data[u].nodes.count < UNIT_NODES && same_nest(w->c, &w->out->units.data[u], rank, dims)) unit = u;
  if (!unit) {
    unit = new_unit(w, UNIT_kernel, n);
    if (!unit) return 0;
    Unit *u = &w->out->units.data[unit];
    u->rank = (u8)rank;
    memcpy(u->dims, dims, rank * sizeof *dims);
  }
  if (!vec_push(w->c->alloc, &w->out->units.data[unit].nodes, n)) compile_no_memory(w->c);
  return unit;
}

typedef struct SizeNeed {
  Work *w;
  u32 unit;
} SizeNeed;

static void need_symbol(void *ctx, u32 sym) {
  SizeNeed *s = ctx;
  if (sym < s->w->c->sym_count && s->w->ready[sym] > s->unit) s->unit = s->w->ready[sym];
}

static void need_carrier(void *ctx, u32 v) {
  SizeNeed *s = ctx;
  for (u32 i = 0; i < s->w->c->sym_count; i++)
    if (s->w->g->sizes.syms.data[i].unbacked && s->w->g->sizes.syms.data[i].source == v) need_symbol(ctx, i);
}

/* Its sizes are known behind this unit only. */
static u32 size_need(Work *w, NodeId n) {
  SizeNeed s = {w, 0};
  if (!w->ready) return 0;
  node_size_values(w->g, n, need_carrier, &s);
  for (u32 i = 0; i < graph_node_at(w->g, n)->operand_count; i++) { /* what it reads has a size by then */
    const ArrayType *t = value_type(w->g, node_operand(w->g, n, i));
    for (u32 d = 0; t && d < t->rank; d++)
      if (size_is_unbacked(&w->g->sizes, t->dims[d])) size_symbols(&w->g->sizes, t->dims[d], need_symbol, &s);
  }
  return s.unit;
}

static void mark_ready(Work *w, NodeId n, u32 unit) {
  const GraphNode *x = graph_node_at(w->g, n);
  for (u32 i = 0; w->ready && i < w->c->sym_count; i++) {
    const SizeSym *s = &w->g->sizes.syms.data[i];
    if (s->unbacked && s->source - x->result_first < x->result_count && w->ready[i] < unit) w->ready[i] = unit;
  }
  if (!w->ready || x->kind != NODE_check || x->op != CHECK_size) return;
  for (u32 i = 0; i < 2; i++) {
    u32 sym;
    const GraphValue *v = &w->g->values.data[node_operand(w->g, n, i)];
    if (v->origin == GV_size && size_last_unbacked(&w->g->sizes, v->dim, &sym))
      for (u32 k = sym; k < w->c->sym_count; k++)
        if (size_first_symbol(&w->g->sizes, k) == sym && w->ready[k] < unit) w->ready[k] = unit;
  }
}

/* What must have run before the node's value can be had. */
static void needs_of(Work *w, NodeId n, u32 *need, u32 *moved) {
  Graph *g = w->g;
  const GraphNode *x = graph_node_at(g, n);
  bool typed = x->result_count && !value_is_token(g, node_result(g, n, 0)) &&
               (w->classes[n] == CLASS_point || w->classes[n] == CLASS_reduce);
  *need = *moved = size_need(w, n);
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId v = node_operand(g, n, i);
    const ValueUse *u = use_of(w, v);
    if (x->kind == NODE_index && i && u->check_block == w->block && u->check_unit > *need) *need = u->check_unit;
    if (!in_block(w, v)) continue;
    const ValueInfo *info = value_info(w->c, v);
    bool stored = info->where == AT_SLOT;
    u32 own = stored ? info->unit : use_of(w, v)->need, away = stored ? 0 : use_of(w, v)->moved_need;
    bool moved_edge = typed && edge_of(w, n, i) != EDGE_same;
    if (own > *need) *need = own;
    if (moved_edge && own > away) away = own;
    if (away > *moved) *moved = away;
  }
}

/* A view that is only a stride pattern, of something that is stored before. */
static bool is_stride_view(const Work *w, NodeId n) {
  if (!view_by_kind(w->g, n)) return false;
  ValueId base = node_operand(w->g, n, 0);
  const ValueInfo *info = value_info(w->c, base);
  return (!in_block(w, base) || info->where == AT_SLOT) && !(renumbers(w->g, n) && info->view);
}

/* A count or a comparison of counts, of what is stored: the plan does it itself, for less than a kernel's call. */
static bool is_number_step(const Work *w, NodeId n) {
  const GraphNode *x = graph_node_at(w->g, n);
  if (x->kind != NODE_op || w->c->device || !plan_number_op(x->op) || x->operand_count != 2) return false;
  for (u32 i = 0; i < 2; i++) {
    ValueId v = node_operand(w->g, n, i);
    const ArrayType *t = value_type(w->g, v);
    if (t->rank || t->dtype != DT_i64 || (in_block(w, v) && value_info(w->c, v)->where != AT_SLOT)) return false;
  }
  return true;
}

static void look_forward(Work *w, NodeId n) {
  Graph *g = w->g;
  const GraphNode *x = graph_node_at(g, n);
  NodeClass class = (NodeClass)w->classes[n];
  u32 need, moved, unit = 0;
  if ((class == CLASS_point || class == CLASS_reduce) && value_info(w->c, node_result(g, n, 0))->where == AT_NOWHERE)
    return;
  needs_of(w, n, &need, &moved);
  switch (class) {
    case CLASS_point:
    case CLASS_reduce: {
      ValueId v = node_result(g, n, 0);
      ValueInfo *info = value_info(w->c, v);
      if (info->where == AT_USE) {
        use_of(w, v)->need = need;
        use_of(w, v)->moved_need = moved;
        mark_ready(w, n, need);
        return;
      }
      const ArrayType t = *value_type(g, v);
      if (class == CLASS_point && is_stride_view(w, n)) {
        unit = new_unit(w, UNIT_view, n);
        info->view = true;
        value_info(w->c, node_operand(g, n, 0))->wanted = true;
      } else if (class == CLASS_point && is_number_step(w, n)) {
        unit = new_unit(w, UNIT_number, n);
        for (u32 i = 0; i < 2; i++) value_info(w->c, node_operand(g, n, i))->wanted = true;
      } else {
        unit = kernel_for(w, n, &t, need, moved);
      }
      info->unit = unit;
      mark_ready(w, n, unit);
      return;
    }
    case CLASS_check: {
      ArrayType shape;
      if (!check_shape(w->c, n, &shape)) {
        compile_unsupported(w->c, "a check of arrays whose shapes are not known to fit");
        return;
      }
      /* its exit is bound to what has run here: it joins only the last unit */
      u32 last = w->out->units.count - 1;
      unit = kernel_for(w, n, &shape, need > last ? need : last, moved);
      if (x->op == CHECK_index) {
        use_of(w, node_operand(g, n, 0))->check_block = w->block;
        use_of(w, node_operand(g, n, 0))->check_unit = unit;
      }
      mark_ready(w, n, unit);
      return;
    }
    case CLASS_scan:
      unit = new_unit(w, UNIT_scan, n);
      if (unit) {
        (void)unit_of_scan(w->c, n, &w->out->units.data[unit]);
        if (!vec_push(w->c->alloc, &w->out->units.data[unit].nodes, n)) compile_no_memory(w->c);
      }
      break;
    case CLASS_join: {
      unit = new_unit(w, UNIT_join, n);
      GraphArg args[OP_MAX_PARAMS];
      node_args(g, n, args);
      i64 axis;
      const ArrayType *r = value_type(g, node_result(g, n, 0));
      RuleError err;
      u32 own = 0;
      if (unit && arg_int(&args[1], 0, &axis) && rule_axis(axis, r->rank, &own, &err))
        w->out->units.data[unit].axis = own;
      else compile_unsupported(w->c, "an axis known only at run time");
      if (unit && !vec_push(w->c->alloc, &w->out->units.data[unit].nodes, n)) compile_no_memory(w->c);
      break;
    }
    case CLASS_index: unit = new_unit(w, UNIT_index, n); break;
    case CLASS_update: unit = new_unit(w, UNIT_update, n); break;
    case CLASS_extern: unit = new_unit(w, UNIT_extern, n); break;
    case CLASS_control: unit = new_unit(w, UNIT_control, n); break;
    case CLASS_effect: unit = new_unit(w, UNIT_effect, n); break;
    default: break;
  }
  for (u32 i = 0; i < x->result_count; i++) value_info(w->c, node_result(g, n, i))->unit = unit;
  mark_ready(w, n, unit);
}

/* An update in place destroys what exits of later steps want back, so updates that no other unit reads come last. */
static void updates_last(Work *w) {
  u32 count = w->out->units.count, late = 0;
  Graph *g = w->g;
  for (u32 i = 1; i < count; i++) {
    Unit *u = &w->out->units.data[i];
    if (u->kind != UNIT_update) continue;
    const ValueUse *use = use_of(w, node_result(g, u->node, 0));
    u->late = use->kernel == USED_NONE && !use->by_unit;
    late += u->late;
  }
  if (!late || late + 1 == count) return;
  VEC(Unit) sorted = {0};
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 i = 0; i < count; i++)
      if (w->out->units.data[i].late == pass && !vec_push(w->c->alloc, &sorted, w->out->units.data[i])) {
        vec_free(w->c->alloc, &sorted);
        return; /* as it was: right, too */
      }
  memcpy(w->out->units.data, sorted.data, sizeof *sorted.data * count);
  vec_free(w->c->alloc, &sorted);
  for (u32 i = 1; i < count; i++) {
    const Unit *u = &w->out->units.data[i];
    for (u32 k = 0; k < (u->nodes.count ? u->nodes.count : 1); k++) {
      NodeId n = u->nodes.count ? u->nodes.data[k] : u->node;
      for (u32 r = 0; r < graph_node_at(g, n)->result_count; r++) {
        ValueInfo *info = value_info(w->c, node_result(g, n, r));
        if (info->where == AT_SLOT) info->unit = i;
      }
    }
  }
}

/* ---- the block ------------------------------------------------------------------------------------------------- */

static void force_unbacked(Work *w) {
  for (u32 i = 0; i < w->g->sizes.syms.count; i++) {
    const SizeSym *s = &w->g->sizes.syms.data[i];
    if (s->unbacked && s->source && s->source < w->c->values.count && in_block(w, s->source))
      use_of(w, s->source)->forced = true;
  }
}

bool partition_block(Compiler *c, BlockId b, Partition *out) {
  Graph *g = c->g;
  Work w = {.c = c, .g = g, .block = b, .out = out, .classes = c->classes};
  const GraphBlock *block = &g->blocks.data[b];
  memset(out, 0, sizeof *out);
  if (!vec_push(c->alloc, &out->units, (Unit){0})) {
    compile_no_memory(c);
    return false;
  }
  for (NodeId n = block->first; n; n = node_next(g, n)) {
    const GraphNode *x = graph_node_at(g, n);
    w.classes[n] = (u8)classify(c, n);
    for (u32 i = 0; i < x->result_count; i++) {
      ValueInfo *info = value_info(c, node_result(g, n, i));
      *info = (ValueInfo){.slot = NO_SLOT};
    }
  }
  if (c->carriers) {
    w.ready = arena_alloc(&c->arena, sizeof *w.ready * (c->sym_count + 1));
    if (!w.ready) {
      compile_no_memory(c);
      return false;
    }
    memset(w.ready, 0, sizeof *w.ready * (c->sym_count + 1));
  }
  add_costs(&w);
  for (u32 i = 0; i < block->term_count; i++) force(&w, block_result(g, b, i));
  if (block->term == TERM_exit && block->exit != NO_EXIT) graph_exit_values(g, block->exit, force_exit_value, &w);
  force_unbacked(&w);
  for (NodeId n = block->last; n; n = graph_node_at(g, n)->prev) look_back(&w, n);
  for (NodeId n = block->first; n && !compile_stopped(c); n = node_next(g, n)) look_forward(&w, n);
  if (!compile_stopped(c)) updates_last(&w);
  return !compile_stopped(c);
}

void partition_free(Compiler *c, Partition *p) {
  for (u32 i = 0; i < p->units.count; i++) vec_free(c->alloc, &p->units.data[i].nodes);
  vec_free(c->alloc, &p->units);
}

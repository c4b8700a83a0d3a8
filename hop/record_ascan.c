/* record_ascan.c — associative_scan in a trace, combined in the order of vmap.c: segments of 16 in order, their
 * totals by the same rule, then total before with local. Each step is a scan of the graph; how many there are is
 * the logarithm of the length, which a guard keeps. */
#include <string.h>

#include "hop/control.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_tree.h"

enum { SEGMENT = 16, ASCAN_LEAVES = 32, ASCAN_LEVELS = 8 };

typedef struct AScan {
  Recorder *r;
  Av f, tree; /* tree: of an item */
  u32 count;  /* leaves */
  TypeId items[ASCAN_LEAVES];
} AScan;

static Av ascan_with_values(AScan *s, const ValueId *values) {
  Av leaves[ASCAN_LEAVES];
  u32 next = 0;
  for (u32 i = 0; i < s->count; i++)
    if (!(leaves[i] = av_num(s->r, values[i]))) return 0;
  return rec_tree_rebuild(s->r, s->tree, leaves, &next);
}

/* first ? b : f(a, b), which must be as an item is. */
static Outcome combine(AScan *s, ValueId first, const ValueId *a, const ValueId *b, ValueId *out) {
  Recorder *r = s->r;
  Graph *g = r->g;
  BlockId parent = g->at, keep = graph_open(g), join = 0;
  Av args[2], result = 0;
  AvVec leaves = {0};
  Outcome o = keep && graph_close(g, TERM_yield, b, s->count, 0) ? OUT_GO : OUT_FAIL;
  if (o == OUT_GO) graph_at_end(g, parent);
  if (o == OUT_GO && !(join = graph_open(g))) o = OUT_FAIL;
  if (o == OUT_GO && (!(args[0] = ascan_with_values(s, a)) || !(args[1] = ascan_with_values(s, b)))) o = OUT_FAIL;
  RecCellSet cells = {0};
  if (o == OUT_GO && !rec_cells_save(r, &cells)) o = OUT_FAIL;
  if (o == OUT_GO) o = rec_call(r, s->f, args, NULL, 2, &result);
  if (o == OUT_GO) o = rec_cells_none(r, &cells, "associative_scan");
  rec_cells_free(r, &cells);
  if (o == OUT_GO) o = rec_tree(r, result, &result);
  if (o == OUT_GO) o = rec_tree_leaves(r, result, &leaves);
  if (o == OUT_GO && (!rec_tree_same(r, s->tree, result) || leaves.count != s->count))
    o = rec_stuck(r, REASON_raises, "associative_scan: f gives %s of another structure than the items",
                  av_kind_text(r, result));
  for (u32 i = 0; i < s->count && o == OUT_GO; i++) {
    out[i] = av_value(r, leaves.data[i]);
    if (!type_same(g, g->values.data[out[i]].type, s->items[i]))
      o = rec_stuck(r, REASON_no_rule, "associative_scan: f gives another type than that of the items");
  }
  if (o == OUT_GO && !graph_close(g, TERM_yield, out, s->count, 0)) o = OUT_FAIL;
  if (o == OUT_GO) graph_at_end(g, parent);
  NodeId node = o == OUT_GO ? graph_cond(g, first, keep, join) : 0;
  if (o == OUT_GO && !node) o = OUT_FAIL;
  for (u32 i = 0; i < s->count && node; i++) out[i] = node_result(g, node, i);
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

static ValueId ascan_number(Graph *g, i64 v) { return graph_const(g, value_weak_i64(v)); }

/* A scan over xs. Without totals: within segments, from the item before; else from the total of the segment before. */
static Outcome pass(AScan *s, const ValueId *xs, const ValueId *totals, Dim n, ValueId *out) {
  Recorder *r = s->r;
  Graph *g = r->g;
  BlockId parent = g->at;
  ValueId init[ASCAN_LEAVES], before[ASCAN_LEAVES], item[ASCAN_LEAVES], next[2 * ASCAN_LEAVES];
  u32 carried = totals ? 0 : s->count;
  for (u32 i = 0; i < carried; i++) { /* never read */
    const ArrayType t = *type_of(g, s->items[i]);
    if (!(init[i] = graph_full_as(g, &t, 0))) return OUT_FAIL;
    if (!type_same(g, g->values.data[init[i]].type, s->items[i]))
      return rec_stuck(r, REASON_no_rule, "associative_scan of such items");
  }
  BlockId body = graph_open(g);
  if (!body) return OUT_FAIL;
  for (u32 i = 0; i < carried; i++)
    if (!(before[i] = graph_param(g, body, s->items[i]))) return OUT_FAIL;
  for (u32 i = 0; i < s->count; i++)
    if (!(item[i] = graph_param(g, body, s->items[i]))) return OUT_FAIL;
  ValueId at = graph_param(g, body, graph_scalar_type(g, DT_i64, false));
  ValueId first = totals ? graph_op2(g, OP_less, at, ascan_number(g, SEGMENT))
                         : graph_op2(g, OP_equal, graph_op2(g, OP_remainder, at, ascan_number(g, SEGMENT)),
                                     ascan_number(g, 0));
  if (!at || !first) return OUT_FAIL;
  if (totals) { /* at 0 … 15 the first total stands in for one that is not there */
    ValueId segment = graph_op2(g, OP_subtract, graph_op2(g, OP_floor_divide, at, ascan_number(g, SEGMENT)),
                                ascan_number(g, 1));
    segment = segment ? graph_op2(g, OP_maximum, segment, ascan_number(g, 0)) : 0;
    IndexItem it = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
    if (!segment) return OUT_FAIL;
    for (u32 i = 0; i < s->count; i++)
      if (!(before[i] = graph_index(g, totals[i], &segment, 1, &it, 1, s->items[i]))) return OUT_FAIL;
  }
  Outcome o = combine(s, first, before, item, next);
  if (o != OUT_GO) return o;
  for (u32 i = 0; i < carried; i++) next[s->count + i] = next[i];
  if (!graph_close(g, TERM_next, next, s->count + carried, 0)) return OUT_FAIL;
  graph_at_end(g, parent);
  NodeId node = graph_scan(g, init, carried, xs, s->count, n, false, true, body);
  for (u32 i = 0; i < s->count && node; i++) out[i] = node_result(g, node, carried + i);
  return node ? OUT_GO : OUT_FAIL;
}

static Outcome ascan_running(AScan *s, ValueId *xs, Dim n, u32 levels) {
  Graph *g = s->r->g;
  ValueId local[ASCAN_LEAVES], totals[ASCAN_LEAVES];
  Outcome o = pass(s, xs, NULL, n, local);
  if (o != OUT_GO || levels == 1) {
    if (o == OUT_GO) memcpy(xs, local, sizeof *xs * s->count);
    return o;
  }
  Dim segments = size_floordiv(&g->sizes, size_sub(&g->sizes, n, 1), SEGMENT); /* those with one behind them */
  if (segments == DIM_NONE) return rec_stuck(s->r, REASON_size_expression, "associative_scan");
  GraphAttr stop = attr_dim(0, segments);
  ValueId ends = graph_op(g, OP_arange, NULL, 0, &stop, 1, NULL);
  ends = ends ? graph_op2(g, OP_multiply, ends, ascan_number(g, SEGMENT)) : 0;
  ends = ends ? graph_op2(g, OP_add, ends, ascan_number(g, SEGMENT - 1)) : 0;
  if (!ends) return OUT_FAIL;
  IndexItem it = {.kind = INDEX_array, .part = {PART_operand}, .at = {1}};
  for (u32 i = 0; i < s->count; i++) {
    ArrayType t = *value_type(g, local[i]);
    t.dims[0] = value_type(g, ends)->dims[0];
    if (!(totals[i] = graph_index(g, local[i], &ends, 1, &it, 1, graph_type(g, &t)))) return OUT_FAIL;
  }
  o = ascan_running(s, totals, value_type(g, ends)->dims[0], levels - 1);
  return o == OUT_GO ? pass(s, local, totals, n, xs) : o;
}

static ValueId ascan_moved(Graph *g, ValueId x, i64 from, i64 to) {
  if (!x || from == to) return x;
  GraphAttr attrs[2] = {attr_int(1, from), attr_int(2, to)};
  return graph_op(g, OP_moveaxis, &x, 1, attrs, 2, NULL);
}

static ValueId turned(Graph *g, ValueId x, bool reverse) {
  if (!x || !reverse) return x;
  GraphAttr axis = attr_int(1, 0);
  return graph_op(g, OP_flip, &x, 1, &axis, 1, NULL);
}

/* How many steps there are: a guard keeps the length in their range. 0: it cannot be said. */
static u32 levels_of(Recorder *r, Dim n) {
  Graph *g = r->g;
  const RecFrame *f = rec_top(r);
  Span at = f->code->proto->spans[f->pc];
  i64 now, most = SEGMENT;
  u32 levels = 1;
  if (size_is_unbacked(&g->sizes, n) || !size_hint(&g->sizes, n, &now) || now < 1) return 0;
  i64 least = 0;
  /* (n - 1) / 16 totals are at most as many as the steps before take */
  for (; now > most && levels < ASCAN_LEVELS; levels++) {
    least = most;
    most = SEGMENT * most + SEGMENT;
  }
  if (now > most) return 0;
  return guard_relation(&g->guards, &g->sizes, REL_lt, least, n, "associative_scan", at) &&
                 guard_relation(&g->guards, &g->sizes, REL_le, n, most, "associative_scan", at) ? levels : 0;
}

Outcome record_associative_scan(Recorder *r, u32 op, const Av *params, Av *out) {
  Graph *g = r->g;
  AScan s = {.r = r, .f = params[0]};
  AvVec leaves = {0};
  ValueId xs[ASCAN_LEAVES];
  i64 axis = 0;
  u32 own[ASCAN_LEAVES];
  Value flag;
  bool reverse = false;
  Dim n = DIM_NONE;
  (void)op;
  Av tree = av_force(r, params[1]), at = params[2] ? av_force(r, params[2]) : 0,
      back = params[3] ? av_force(r, params[3]) : 0;
  if (!tree) return OUT_FAIL;
  if (r->abstract) { /* the types stay; that they do is checked when it runs */
    *out = tree;
    return OUT_GO;
  }
  if (at && !av_is_hole(r, at) && !rec_literal(r, at, "associative_scan", &axis))
    return rec_stuck(r, REASON_literal_needed, "associative_scan: `axis` must be known");
  if (back && !av_is_hole(r, back)) {
    if (!av_const_value(r, back, &flag) || flag.kind != V_NUM)
      return rec_stuck(r, REASON_literal_needed, "associative_scan: `reverse` must be known");
    reverse = flag.i != 0;
  }
  RecMark mark = rec_mark(r);
  RecState state;
  if (!rec_save(r, &state)) return OUT_FAIL;
  Outcome o = rec_tree(r, tree, &tree);
  if (o == OUT_GO) o = rec_tree_leaves(r, tree, &leaves);
  s.tree = tree;
  s.count = leaves.count;
  if (o == OUT_GO && (s.count == 0 || s.count > ASCAN_LEAVES))
    o = rec_stuck(r, REASON_raises, "associative_scan of %s", av_kind_text(r, tree));
  GuardDims dims;
  RuleError err = {.text = "lengths differ"};
  rec_dims_init(r, &dims, "associative_scan");
  for (u32 i = 0; i < s.count && o == OUT_GO; i++) {
    ValueId v = av_value(r, leaves.data[i]);
    ArrayType t = *value_type(g, v);
    if (!rule_axis(axis, t.rank, &own[i], &err)) {
      o = rec_stuck(r, REASON_raises, "associative_scan: %s", err.text);
      break;
    }
    xs[i] = turned(g, ascan_moved(g, v, own[i], 0), reverse);
    if (!xs[i]) o = OUT_FAIL;
    if (i && o == OUT_GO && !dim_equal(&dims.base, n, t.dims[own[i]]))
      o = rec_dims_no(r, &dims, "associative_scan", &err);
    n = i ? n : t.dims[own[i]];
    memmove(t.dims + own[i], t.dims + own[i] + 1, sizeof t.dims[0] * (t.rank - own[i] - 1u));
    t.rank--;
    if (t.rank == 0) t.device = 0;
    s.items[i] = graph_type(g, &t);
  }
  u32 levels = o == OUT_GO ? levels_of(r, n) : 0;
  if (o == OUT_GO && !levels)
    o = rec_stuck(r, REASON_data_dependent_shape, "associative_scan of a length that is not known");
  if (o == OUT_GO) o = ascan_running(&s, xs, n, levels);
  for (u32 i = 0; i < s.count && o == OUT_GO; i++) {
    const u32 device = value_type(g, av_value(r, leaves.data[i]))->device;
    ValueId v = graph_moved(g, ascan_moved(g, turned(g, xs[i], reverse), 0, own[i]), device);
    if (!v || !(leaves.data[i] = av_num(r, v))) o = OUT_FAIL;
  }
  u32 next = 0;
  if (o == OUT_GO && !(*out = rec_tree_rebuild(r, tree, leaves.data, &next))) o = OUT_FAIL;
  if (o == OUT_GO) r->vm->counters.at[STAT_constructs]++;
  rec_end_try(r, &mark, &state, o);
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

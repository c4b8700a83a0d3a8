/* record_vmap.c — vmap in a trace: the function is recorded for one lane, then its block is batched. A function
 * that cannot be captured whole, or batched, leaves the trace as it was, and vmap runs it lane by lane. */
#include <string.h>

#include "hop/batch.h"
#include "hop/vmap.h"
#include "hop/walk.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/record_weak.h"

enum { NOT_MAPPED = INT32_MIN };

typedef VEC(i32) AxisVec;

/* Of a function that was made outside of the trace the axis stands in its settings, and becomes a guard. */
static bool axis_of(Recorder *r, Av spec, i64 *axis) {
  Value v;
  if (av_const_value(r, spec, &v) && v.kind == V_NIL) return true;
  return av_is_number(r, spec) && rec_literal(r, spec, "an axis of vmap", axis);
}

/* An axis for each leaf of an opened tree, as in vmap.c. */
static Outcome spread(Recorder *r, Av spec, Av tree, u32 depth, AxisVec *out) {
  spec = av_force(r, spec);
  tree = av_force(r, tree);
  if (!spec || !tree) return OUT_FAIL;
  if (depth > (u32)r->vm->tunables.trace_nest) return rec_over(r, trace_nest, REASON_graph_size, "a tree");
  i64 axis = NOT_MAPPED;
  if (axis_of(r, spec, &axis)) {
    AvVec leaves = {0};
    Outcome o = rec_tree_leaves(r, tree, &leaves);
    for (u32 i = 0; i < leaves.count && o == OUT_GO; i++)
      if (!vec_push(&r->vm->alloc, out, (i32)axis)) o = OUT_FAIL;
    vec_free(&r->vm->alloc, &leaves);
    return o;
  }
  u8 kind = av_at(r, spec)->kind;
  u32 n = av_at(r, spec)->count;
  if ((!kind_is_open(kind)) || av_at(r, tree)->kind != kind || av_at(r, tree)->count != n)
    return rec_stuck(r, REASON_literal_needed, "the axes of vmap must be known and fit");
  Outcome o = OUT_GO;
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    i32 at = kind_is_record(kind) ? av_field(r, spec, av_at(r, tree)->shape->keys[i]) : (i32)i;
    o = at < 0 ? rec_stuck(r, REASON_raises, "the axes of vmap do not fit")
               : spread(r, av_item(r, spec, (u32)at), av_item(r, tree, i), depth + 1, out);
  }
  return o;
}

static ValueId moved(Graph *g, ValueId x, i64 from, i64 to) {
  if (!x || from == to) return x;
  GraphAttr attrs[2] = {attr_int(1, from), attr_int(2, to)};
  return graph_op(g, OP_moveaxis, &x, 1, attrs, 2, NULL);
}

/* Lanes are items of what is mapped over: on the way back their cotangents are added to zeros, or to the sum that is
 * there, as those of items are. */
static ValueId as_items(Recorder *r, ValueId v) {
  Graph *g = r->g;
  if (!v || !r->differentiating || dtype_kind(value_type(g, v)->dtype) < DK_FLOAT) return v;
  IndexItem all = {.kind = INDEX_slice};
  return graph_index(g, v, NULL, 0, &all, 1, g->values.data[v].type);
}

/* Results of lanes are stacked: on the way back each lane takes its item of their cotangent, of which a second way
 * back is that of items. */
static ValueId as_stacked(Recorder *r, ValueId v) {
  Graph *g = r->g;
  if (!v || !r->differentiating || dtype_kind(value_type(g, v)->dtype) < DK_FLOAT) return v;
  IndexItem all = {.kind = INDEX_slice};
  return graph_update(g, OP_none, pull_zeros(g, value_type(g, v)), NULL, 0, &all, 1, v);
}

typedef struct Lane {
  AvVec leaves;    /* of all arguments */
  ValueVec values; /* of these: mapped ones with the lanes first */
  AxisVec axes;
  Av *trees;       /* the arguments, opened; 0: that one is passed as it is */
  Dim lanes;
  u32 device; /* of what is mapped over: numbers of the lanes lie there when they are stacked */
} Lane;

/* Is nothing of the argument mapped over? */
static bool is_whole(Recorder *r, Av spec) {
  Value v;
  return av_const_value(r, spec, &v) && v.kind == V_NIL;
}

static Outcome map_args(Recorder *r, Av spec, const Av *args, u32 nargs, Lane *l) {
  Graph *g = r->g;
  spec = av_force(r, spec);
  if (!spec) return OUT_FAIL;
  bool list = av_is_list(r, spec);
  l->lanes = DIM_NONE;
  if (list && av_at(r, spec)->count != nargs)
    return rec_stuck(r, REASON_raises, "vmap: in_axes names another number of arguments");
  for (u32 a = 0; a < nargs; a++) {
    u32 from = l->leaves.count;
    Av axes = list ? av_item(r, spec, a) : spec;
    if (is_whole(r, axes)) { /* as it is, whatever it is */
      l->trees[a] = 0;
      continue;
    }
    Outcome o = rec_tree(r, args[a], &l->trees[a]);
    if (o == OUT_GO) o = rec_tree_leaves(r, l->trees[a], &l->leaves);
    if (o == OUT_GO) o = spread(r, axes, l->trees[a], 0, &l->axes);
    if (o != OUT_GO) return o;
    for (u32 i = from; i < l->leaves.count; i++) {
      ValueId v = av_value(r, l->leaves.data[i]);
      if (!v) return OUT_FAIL;
      if (l->axes.data[i] != NOT_MAPPED) {
        const ArrayType *t = value_type(g, v);
        i64 axis = l->axes.data[i] < 0 ? l->axes.data[i] + (i64)t->rank : l->axes.data[i], x, y;
        if (axis < 0 || axis >= t->rank) return rec_stuck(r, REASON_raises, "vmap: an axis is out of range");
        Dim n = t->dims[axis];
        if (l->lanes == DIM_NONE) l->lanes = n;
        else if (!size_same(&g->sizes, l->lanes, n)) {
          Span at = rec_here(r);
          if (!size_hint(&g->sizes, l->lanes, &x) || !size_hint(&g->sizes, n, &y) || x != y)
            return rec_stuck(r, REASON_raises, "vmap: lanes differ");
          if (!guard_relation(&g->guards, &g->sizes, REL_eq, l->lanes, n, "vmap", at)) return OUT_FAIL;
        }
        if (!l->device) l->device = t->device;
        if (!(v = as_items(r, moved(g, v, axis, 0)))) return OUT_FAIL;
      }
      if (!vec_push(&r->vm->alloc, &l->values, v)) return OUT_FAIL;
    }
  }
  return l->lanes == DIM_NONE ? rec_stuck(r, REASON_raises, "vmap: nothing is mapped over") : OUT_GO;
}

/* The same, where what is mapped over lies, when the lanes give numbers. */
static ValueId stacked(Recorder *r, ValueId v, u32 device) {
  v = as_stacked(r, v);
  return v && value_type(r->g, v)->rank == 1 ? graph_moved(r->g, v, device) : v;
}

/* What texts and ranges of the lane are made of is the same number for all lanes, or they differ. */
static ValueId common(const void *batch, ValueId lane) {
  const Batch *b = batch;
  return batch_is_mapped(b, lane) ? 0 : batch_get(b, lane);
}

/* The results of the lane as those of all lanes, axes as out_axes says. */
static Outcome join(Recorder *r, Batch *b, Av spec, Av tree, u32 device, Av *out) {
  Graph *g = r->g;
  AvVec leaves = {0};
  AxisVec axes = {0};
  Outcome o = rec_tree_leaves(r, tree, &leaves);
  if (o == OUT_GO) o = spread(r, spec, tree, 0, &axes);
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++) {
    ValueId lane = av_value(r, leaves.data[i]), v = 0;
    if (axes.data[i] == NOT_MAPPED) {
      if (rec_weak_flag(r, lane))
        o = rec_stuck(r, REASON_no_rule, "vmap: a result without axis that is weak on one way only");
      else if (batch_is_mapped(b, lane))
        o = rec_stuck(r, REASON_no_rule, "vmap: a result without axis that differs between lanes");
      else v = batch_get(b, lane);
    } else {
      i64 rank = value_type(g, lane)->rank + 1, axis = axes.data[i] < 0 ? axes.data[i] + rank : axes.data[i];
      if (rank > TYPE_MAX_RANK || axis < 0 || axis >= rank)
        o = rec_stuck(r, REASON_raises, "vmap: an axis is out of range");
      else v = moved(g, stacked(r, batch_full(b, lane), device), 0, axis);
    }
    if (o == OUT_GO && (!v || !(leaves.data[i] = av_num(r, v)))) o = OUT_FAIL;
  }
  u32 next = 0;
  if (o == OUT_GO) o = rec_made(r, rec_tree_rebuild(r, tree, leaves.data, &next), out);
  vec_free(&r->vm->alloc, &leaves);
  vec_free(&r->vm->alloc, &axes);
  return o;
}

/* The lane's block, open at the cursor, as the body of a scan over the lanes. A derivative goes back through one
 * lane after the other then, and passes by what a lane left out; of a choice between both arms it would take the
 * zeros of the one that was not taken for cotangents, and zero times an infinite slope is no zero. */
static Outcome one_by_one(Recorder *r, const Lane *l, const ValueVec *own, BlockId block, BlockId parent, Av spec,
                          Av tree, Av *out) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  AvVec leaves = {0};
  AxisVec axes = {0};
  ValueVec xs = {0}, items = {0};
  NodeId node = 0;
  Outcome o = rec_tree_leaves(r, tree, &leaves);
  if (o == OUT_GO) o = spread(r, spec, tree, 0, &axes);
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++) {
    ValueId v = av_value(r, leaves.data[i]);
    if (v) v = graph_convert(g, v, value_type(g, v)->dtype); /* stacked arrays are strong */
    if (!v || !vec_push(alloc, &items, v)) o = OUT_FAIL;
    else if (rec_inner_size(r, v)) o = rec_stuck(r, REASON_data_dependent_shape, "sizes that differ between lanes");
    else if (value_type(g, v)->rank == TYPE_MAX_RANK) o = rec_stuck(r, REASON_raises, "vmap: an axis is out of range");
  }
  for (u32 i = 0; i < own->count && o == OUT_GO; i++)
    if (own->data[i] && !vec_push(alloc, &xs, l->values.data[i])) o = OUT_FAIL;
  if (o == OUT_GO && !graph_close(g, TERM_next, items.data, items.count, 0)) o = OUT_FAIL;
  if (o == OUT_GO) {
    graph_at_end(g, parent);
    node = graph_scan(g, NULL, 0, xs.data, xs.count, l->lanes, false, false, block);
    if (node) r->lanes = g->nodes.data[node].lanes = true;
    else o = OUT_FAIL;
  }
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++) {
    ValueId v = node_result(g, node, i);
    i64 rank = value_type(g, v)->rank, axis = axes.data[i] < 0 ? axes.data[i] + rank : axes.data[i];
    if (axis < 0 || axis >= rank) o = rec_stuck(r, REASON_raises, "vmap: an axis is out of range");
    else if (!(v = moved(g, stacked(r, v, l->device), 0, axis)) || !(leaves.data[i] = av_num(r, v))) o = OUT_FAIL;
  }
  u32 next = 0;
  if (o == OUT_GO) o = rec_made(r, rec_tree_rebuild(r, tree, leaves.data, &next), out);
  vec_free(alloc, &leaves);
  vec_free(alloc, &axes);
  vec_free(alloc, &xs);
  vec_free(alloc, &items);
  return o;
}

/* Has every result an axis for the lanes? */
static bool all_spread(Recorder *r, Av spec, Av tree) {
  AxisVec axes = {0};
  bool all = spread(r, spec, tree, 0, &axes) == OUT_GO;
  for (u32 i = 0; i < axes.count; i++) all &= axes.data[i] != NOT_MAPPED;
  vec_free(&r->vm->alloc, &axes);
  return all;
}

static Outcome batched(Recorder *r, const RecState *base, Av transform, const Av *args, u32 nargs, Av *out) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  Lane l = {.trees = rec_avs(r, nargs)};
  AvVec params = {0};
  Av settings = av_force(r, av_item(r, transform, 1)), *passed = rec_avs(r, nargs), result = 0;
  ValueVec own = {0};
  BlockId parent = g->at, block = 0;
  Batch b = {.r = r};
  if (!settings || !passed || !l.trees) return OUT_FAIL;
  Outcome o = map_args(r, av_item(r, settings, 0), args, nargs, &l);
  if (o == OUT_GO && !(block = graph_open(g))) o = OUT_FAIL;
  for (u32 i = 0; i < l.values.count && o == OUT_GO; i++) {
    ValueId p = 0;
    Av a = l.leaves.data[i];
    if (l.axes.data[i] != NOT_MAPPED) {
      ArrayType t = *value_type(g, l.values.data[i]);
      t.rank--;
      memmove(t.dims, t.dims + 1, sizeof t.dims[0] * t.rank);
      p = graph_param(g, block, graph_type(g, &t));
      a = p ? av_num(r, p) : 0;
    }
    if (!a || !vec_push(alloc, &params, a) || !vec_push(alloc, &own, p)) o = OUT_FAIL;
  }
  for (u32 i = 0, next = 0; i < nargs && o == OUT_GO; i++)
    if (!(passed[i] = l.trees[i] ? rec_tree_rebuild(r, l.trees[i], params.data, &next) : args[i])) o = OUT_FAIL;
  const u32 since = r->avs.count;
  r->lane_deep++;
  if (o == OUT_GO) o = rec_call(r, av_item(r, transform, 0), passed, NULL, nargs, &result);
  r->lane_deep--;
  if (o == OUT_GO) o = rec_tree(r, result, &result);
  if (o == OUT_GO && g->at != block) o = rec_stuck(r, REASON_construct_body, "a function of vmap that ends elsewhere");
  for (u32 i = 0; i < r->cells.count && o == OUT_GO; i++)
    if (r->cells.data[i].dirty && r->cells.data[i].source &&
        !(i < base->ncells && base->cells[i].dirty && base->cells[i].value == r->cells.data[i].value))
      o = rec_stuck(r, REASON_construct_body, "a function of vmap writes a variable");
  if (o == OUT_GO && !batch_init(&b, r, l.lanes)) o = OUT_FAIL;
  b.each = !r->differentiating;
  for (u32 i = 0; i < own.count && o == OUT_GO; i++)
    if (own.data[i]) batch_set(&b, own.data[i], l.values.data[i], true);
  if (o == OUT_GO) {
    const GraphBlock *x = &g->blocks.data[block];
    for (u32 i = 0; i < x->captures.count; i++)
      batch_set(&b, x->captures.data[i].inner, x->captures.data[i].outer, false);
    batch_mark(&b, block);
  }
  if (o == OUT_GO && r->differentiating && batch_parts(&b, block) && all_spread(r, av_item(r, settings, 1), result)) {
    o = rec_tree_leave(r, result, block, since, NULL, NULL, &result);
    if (o == OUT_GO) o = one_by_one(r, &l, &own, block, parent, av_item(r, settings, 1), result, out);
  } else if (o == OUT_GO) {
    if (!graph_close(g, TERM_yield, NULL, 0, 0)) o = OUT_FAIL;
    graph_at_end(g, parent); /* the lane's block is held by nothing */
    if (o == OUT_GO) o = batch_block(&b, block);
    if (o == OUT_GO) o = rec_tree_leave(r, result, block, since, common, &b, &result);
    if (o == OUT_GO) o = join(r, &b, av_item(r, settings, 1), result, l.device, out);
  }
  if (o == OUT_GO) {
    r->vm->counters.at[STAT_constructs]++;
    r->batched++;
  }
  batch_free(&b);
  vec_free(alloc, &l.leaves);
  vec_free(alloc, &l.values);
  vec_free(alloc, &l.axes);
  vec_free(alloc, &params);
  vec_free(alloc, &own);
  return o;
}

Outcome record_vmap(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out) {
  RecState state;
  RecMark mark = rec_mark(r);
  if (!rec_save(r, &state)) return OUT_FAIL;
  Outcome o = batched(r, &state, transform, args, nargs, out);
  rec_end_try(r, &mark, &state, o);
  return o;
}

/* Axes are known integers, nil, or trees of these, else the call that makes the function says what is wrong. */
static bool are_axes(Recorder *r, Av spec, u32 depth) {
  i64 axis = 0;
  spec = av_force(r, spec);
  if (!spec || depth > (u32)r->vm->tunables.trace_nest) return false;
  if (axis_of(r, spec, &axis)) return axis > -64 && axis < 64;
  u8 kind = av_at(r, spec)->kind;
  bool good = kind_is_open(kind);
  for (u32 i = 0; good && i < av_at(r, spec)->count; i++) good = are_axes(r, av_item(r, spec, i), depth + 1);
  return good;
}

Outcome record_make_vmap(Recorder *r, u32 op, const Av *params, Av *out) {
  (void)op;
  Av parts[2] = {av_force(r, params[0]), 0}, axes[2];
  for (u32 i = 0; i < 2; i++) {
    axes[i] = params[i + 1] ? av_force(r, params[i + 1]) : 0;
    if (!axes[i] || av_is_hole(r, axes[i])) axes[i] = av_const(r, value_weak_i64(0));
  }
  if (!parts[0] || !axes[0] || !axes[1] || !(parts[1] = av_list(r, axes, 2))) return OUT_FAIL;
  Value to;
  bool none = av_const_value(r, axes[1], &to) && to.kind == V_NIL;
  if (none || !are_axes(r, axes[0], 0) || !are_axes(r, axes[1], 0))
    return rec_stuck(r, REASON_literal_needed, "the axes of vmap must be known and fit");
  Value f;
  bool callable = av_is_callable(r, parts[0]) || (av_const_value(r, parts[0], &f) && f.kind == V_DTYPE);
  if (!callable) return rec_stuck(r, REASON_raises, "vmap of %s", av_kind_text(r, parts[0]));
  return rec_made(r, av_transform(r, TF_vmap, parts[0], parts[1]), out);
}

/* record_parts.c — operations that give a list of arrays: unstack, split, meshgrid, broadcast_arrays. In a trace
 * they are the views that they stand for, one by one; how many there are must be known. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_parts.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"

#include <string.h>

static bool parts_is_given(Recorder *r, Av a) {
  Value v;
  a = a ? av_force(r, a) : 0;
  return a && !av_is_hole(r, a) && !(av_const_value(r, a, &v) && v.kind == V_NIL);
}

/* x[:, …, item] along an axis. */
static Outcome at_axis(Recorder *r, Av x, u32 axis, u8 kind, const Av *item, Av *out) {
  u8 kinds[TYPE_MAX_RANK];
  Av regs[3 * TYPE_MAX_RANK], nil = av_const(r, value_nil());
  u32 n = 0;
  if (!nil) return OUT_FAIL;
  for (u32 d = 0; d < axis; d++) {
    kinds[d] = IX_SLICE;
    for (u32 k = 0; k < 3; k++) regs[n++] = nil;
  }
  kinds[axis] = kind;
  regs[n++] = item[0];
  if (kind == IX_SLICE) {
    regs[n++] = item[1];
    regs[n++] = nil;
  }
  return rec_index(r, x, kinds, axis + 1, regs, out);
}

static Outcome axis_of(Recorder *r, u32 op, Av axis, u32 rank, u32 *out) {
  i64 given = 0;
  RuleError err = {0};
  if (parts_is_given(r, axis) && !rec_literal(r, axis, "axis", &given))
    return rec_stuck(r, REASON_literal_needed, "%s: `axis` must be known", op_name(op));
  return rule_axis(given, rank, out, &err) ? OUT_GO : rec_stuck(r, REASON_raises, "%s: %s", op_name(op), err.text);
}

static Outcome each_at(Recorder *r, Av x, u32 axis, u32 count, Av *out) {
  Av *items = rec_avs(r, count + 1);
  if (!items) return OUT_FAIL;
  for (u32 i = 0; i < count; i++) {
    Av at = av_const(r, value_weak_i64(i));
    Outcome o = at ? at_axis(r, x, axis, IX_VALUE, &at, &items[i]) : OUT_FAIL;
    if (o != OUT_GO) return o;
  }
  return rec_made(r, av_list(r, items, count), out);
}

static Outcome unstack(Recorder *r, Av x, Av axis_given, Av *out) {
  const ArrayType t = *value_type(r->g, av_value(r, x));
  u32 axis;
  i64 count;
  Outcome o = axis_of(r, OP_unstack, axis_given, t.rank, &axis);
  if (o != OUT_GO) return o;
  Av n = av_num(r, graph_size(r->g, t.dims[axis]));
  if (!n) return OUT_FAIL;
  if (size_hint(&r->g->sizes, t.dims[axis], &count) && count > r->vm->tunables.array_parts)
    return rec_over(r, array_parts, REASON_graph_size, "unstack");
  if (!rec_literal(r, n, "unstack", &count))
    return rec_stuck(r, REASON_literal_needed, "unstack: the number of parts must be known");
  return each_at(r, x, axis, (u32)count, out);
}

/* Is the axis `count` parts of the size `one`? Where another size may be 0 the number of elements, which reshape
 * compares, does not tell. */
static bool divides(Recorder *r, const ArrayType *t, u32 axis, Dim one, i64 count) {
  SizePool *sizes = &r->g->sizes;
  bool counted = true;
  i64 whole, parts;
  for (u32 d = 0; d < t->rank; d++)
    counted = counted && (d == axis || size_prove(sizes, REL_lt, 0, t->dims[d]) == TRUTH_always);
  if (counted) return true;
  Dim all = size_mul(sizes, one, count);
  if (all == DIM_NONE || size_is_unbacked(sizes, t->dims[axis]) || !size_hint(sizes, t->dims[axis], &whole))
    return false;
  if (!size_hint(sizes, all, &parts) || parts != whole) return false;
  return guard_relation(&r->g->guards, sizes, REL_eq, all, t->dims[axis], "split", rec_here(r));
}

/* Equal parts: x with the axis in two, one item of the first of them each. */
static Outcome equal_parts(Recorder *r, Av x, u32 axis, i64 count, Av *out) {
  const ArrayType t = *value_type(r->g, av_value(r, x));
  Av dims[TYPE_MAX_RANK + 1];
  if (count <= 0) return rec_stuck(r, REASON_raises, "split: parts is %lld", (long long)count);
  if (count > r->vm->tunables.array_parts) return rec_over(r, array_parts, REASON_graph_size, "split");
  if (t.rank == TYPE_MAX_RANK) return rec_stuck(r, REASON_no_rule, "split: an array of %d axes", TYPE_MAX_RANK);
  Dim one = size_floordiv(&r->g->sizes, t.dims[axis], count);
  if (one == DIM_NONE) return rec_stuck(r, REASON_size_expression, "split");
  if (!divides(r, &t, axis, one, count)) return rec_stuck(r, REASON_raises, "split: equal parts");
  for (u32 d = 0, k = 0; d < t.rank; d++) {
    if (d == axis) dims[k++] = av_const(r, value_weak_i64(count));
    dims[k++] = av_num(r, graph_size(r->g, d == axis ? one : t.dims[d]));
    if (!dims[k - 1]) return OUT_FAIL;
  }
  Av params[OP_MAX_PARAMS] = {x, av_list(r, dims, t.rank + 1u)}, split;
  Outcome o = params[1] ? rec_op(r, OP_reshape, params, &split) : OUT_FAIL;
  return o == OUT_GO ? each_at(r, split, axis, (u32)count, out) : o;
}

static Outcome split(Recorder *r, Av x, Av parts, Av axis_given, Av *out) {
  const ArrayType t = *value_type(r->g, av_value(r, x));
  u32 axis;
  i64 count;
  Outcome o = axis_of(r, OP_split, axis_given, t.rank, &axis);
  if (o != OUT_GO) return o;
  parts = parts ? av_force(r, parts) : 0;
  if (!parts) return rec_stuck(r, REASON_raises, "split: parts is missing");
  if (rec_literal(r, parts, "split", &count)) return equal_parts(r, x, axis, count, out);
  if (!(parts = rec_listed(r, parts))) return OUT_FAIL;
  const AbsVal cuts = *av_at(r, parts);
  if (!kind_is_list(cuts.kind)) return rec_stuck(r, REASON_literal_needed, "split: the parts must be known");
  if (cuts.count >= (u32)r->vm->tunables.array_parts) return rec_over(r, array_parts, REASON_graph_size, "split");
  Av *items = rec_avs(r, cuts.count + 1), ends[2] = {av_const(r, value_nil()), 0};
  if (!items) return OUT_FAIL;
  for (u32 i = 0; i <= cuts.count; i++) { /* as slices clamp */
    ends[1] = i < cuts.count ? av_force(r, av_item(r, parts, i)) : av_const(r, value_nil());
    const ArrayType *at = i < cuts.count && ends[1] &&
                          av_is_number(r, ends[1]) ? value_type(r->g, av_value(r, ends[1])) : NULL;
    if (i < cuts.count && (!at || at->rank || dtype_kind(at->dtype) != DK_INT))
      return rec_stuck(r, REASON_raises, "split: a position is no integer");
    if (!ends[0] || !ends[1]) return OUT_FAIL;
    if ((o = at_axis(r, x, axis, IX_SLICE, ends, &items[i])) != OUT_GO) return o;
    ends[0] = ends[1];
  }
  return rec_made(r, av_list(r, items, cuts.count + 1), out);
}

static Outcome stretch(Recorder *r, Av x, const ArrayType *shape, Av *out) {
  Av dims[TYPE_MAX_RANK];
  for (u32 d = 0; d < shape->rank; d++)
    if (!(dims[d] = av_num(r, graph_size(r->g, shape->dims[d])))) return OUT_FAIL;
  Av params[OP_MAX_PARAMS] = {x, av_list(r, dims, shape->rank)};
  return params[1] ? rec_op(r, OP_broadcast_to, params, out) : OUT_FAIL;
}

static Outcome broadcast_arrays(Recorder *r, Av xs, Av *out) {
  ArrayType shape = {0};
  const u32 n = av_at(r, xs)->count;
  RuleError err = {0};
  GuardDims dims;
  if (n > (u32)r->vm->tunables.array_parts) return rec_over(r, array_parts, REASON_graph_size, "broadcast_arrays");
  Av *items = rec_avs(r, n + 1);
  ArrayType *copies = arena_alloc(&r->g->arena, sizeof *copies * (n + 1));
  const ArrayType **types = arena_alloc(&r->g->arena, sizeof *types * (n + 1));
  if (!items || !copies || !types) return OUT_FAIL;
  for (u32 i = 0; i < n; i++) {
    ValueId v = av_value(r, av_item(r, xs, i));
    if (!v) return rec_stuck(r, REASON_raises, "broadcast_arrays of %s", av_kind_text(r, av_item(r, xs, i)));
    copies[i] = *value_type(r->g, v);
    types[i] = &copies[i];
  }
  rec_dims_init(r, &dims, "broadcast_arrays");
  if (!rule_broadcast(&dims.base, n, types, &shape, &err) || dims.unknown)
    return rec_dims_no(r, &dims, "broadcast_arrays", &err);
  for (u32 i = 0; i < n; i++) {
    Outcome o = stretch(r, av_item(r, xs, i), &shape, &items[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, av_list(r, items, n), out);
}

static Outcome meshgrid(Recorder *r, Av xs, Av indexing, Av *out) {
  u32 n = av_at(r, xs)->count;
  Value word;
  bool swap = true;
  ArrayType shape = {.rank = (u8)n};
  Av items[TYPE_MAX_RANK];
  if (n > TYPE_MAX_RANK) return rec_stuck(r, REASON_raises, "meshgrid: %u arrays", n);
  if (parts_is_given(r, indexing)) {
    if (!av_const_value(r, indexing, &word) || word.kind != V_TEXT)
      return rec_stuck(r, REASON_literal_needed, "meshgrid: `indexing` must be known");
    swap = strcmp(word.text->data, "xy") == 0;
    if (!swap && strcmp(word.text->data, "ij") != 0) return rec_stuck(r, REASON_raises, "meshgrid: `indexing`");
  }
  swap &= n >= 2;
  for (u32 i = 0; i < n; i++) {
    ValueId v = av_value(r, av_item(r, xs, i));
    const ArrayType *t = v ? value_type(r->g, v) : NULL;
    if (!t || t->rank > 1) return rec_stuck(r, REASON_raises, "meshgrid of %s", av_kind_text(r, av_item(r, xs, i)));
    shape.dims[swap && i < 2 ? 1 - i : i] = t->rank ? t->dims[0] : 1;
  }
  for (u32 i = 0; i < n; i++) { /* each along its own axis */
    u32 axis = swap && i < 2 ? 1 - i : i;
    Av dims[TYPE_MAX_RANK], along;
    for (u32 d = 0; d < n; d++)
      if (!(dims[d] = av_num(r, graph_size(r->g, d == axis ? shape.dims[d] : 1)))) return OUT_FAIL;
    Av params[OP_MAX_PARAMS] = {av_item(r, xs, i), av_list(r, dims, n)};
    Outcome o = params[1] ? rec_op(r, OP_reshape, params, &along) : OUT_FAIL;
    if (o == OUT_GO) o = stretch(r, along, &shape, &items[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, av_list(r, items, n), out);
}

Outcome rec_parts(Recorder *r, u32 op, const Av *params, Av *out) {
  Av x = params[0] ? av_force(r, params[0]) : 0;
  if (!x) return r->failed ? OUT_FAIL : rec_stuck(r, REASON_raises, "%s of nothing", op_name(op));
  const bool list = op_info(op)->params[0].rest;
  if (list ? !av_is_list(r, x) : !av_is_number(r, x))
    return rec_stuck(r, REASON_no_rule, "%s of %s", op_name(op), av_kind_text(r, x));
  if (!list && value_type(r->g, av_value(r, x))->rank == 0)
    return rec_stuck(r, REASON_raises, "%s of a number", op_name(op));
  switch (op) {
    case OP_unstack: return unstack(r, x, params[1], out);
    case OP_split:
      if (params[3] && !av_is_hole(r, params[3])) return rec_stuck(r, REASON_no_rule, "split with sep=");
      return split(r, x, params[1], params[2], out);
    case OP_meshgrid: return meshgrid(r, x, params[1], out);
    default: return broadcast_arrays(r, x, out);
  }
}

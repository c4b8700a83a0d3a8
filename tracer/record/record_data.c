/* record_data.c — parts of values in the trace: fields, indices, update paths, unpacking, cells. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_places.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_option.h"
#include "tracer/record/repr_ragged.h"
#include "tracer/record/repr_range.h"
#include "tracer/tracer.h"

#include <string.h>

/* ---- fields ----------------------------------------------------------------------------------------- */

Outcome rec_field(Recorder *r, Av obj, Name name, Av *out, bool *found) {
  obj = av_force(r, obj);
  Outcome there = rec_there(r, &obj);
  if (!obj || there != OUT_GO) return there == OUT_GO ? OUT_FAIL : there;
  if (found) *found = false;
  const Repr *p = av_repr(r, obj);
  if (p->field) return p->field(r, obj, name, out, found);
  return found ? OUT_GO : repr_no(r, obj, ROP_field);
}

/* ---- indexing arrays ---------------------------------------------------------------------------------- */

enum { INDEX_ITEMS_MAX = 2 * TYPE_MAX_RANK };

typedef struct Indexing {
  IndexItem items[INDEX_ITEMS_MAX];
  u32 nitems;
  ValueId operands[INDEX_ITEMS_MAX * 3];
  u32 count;
  bool arrays; /* holds an integer array or mask */
} Indexing;

static Outcome item_int(Recorder *r, Indexing *ix, IndexItem *it, Av a, Dim n) {
  Graph *g = r->g;
  Dim d;
  ValueId v = av_value(r, a);
  it->kind = INDEX_int;
  if (v && value_dim(g, v, &d) && d != DIM_NONE && !size_is_unbacked(&g->sizes, n) && !size_is_unbacked(&g->sizes, d)) {
    i64 at, size;
    if (!size_hint(&g->sizes, d, &at) || !size_hint(&g->sizes, n, &size)) return OUT_FAIL;
    if (at < -size || at >= size) return rec_stuck(r, REASON_raises, "index %lld is out of range", (long long)at);
    if (size_is_const(&g->sizes, d, &at) && at < 0) d = size_add(&g->sizes, d, n);
    i64 hint;
    if (d != DIM_NONE && size_hint(&g->sizes, d, &hint) && hint >= 0) {
      if (!guard_relation(&g->guards, &g->sizes, REL_le, 0, d, "index", rec_here(r)) ||
          !guard_relation(&g->guards, &g->sizes, REL_lt, d, n, "index", rec_here(r)))
        return OUT_FAIL;
      it->part[0] = PART_dim;
      it->at[0] = d;
      return OUT_GO;
    }
  }
  it->part[0] = PART_operand;
  it->at[0] = 1 + ix->count;
  ix->operands[ix->count++] = v;
  ValueId checked[2] = {v, graph_size(g, n)};
  return rec_check(r, CHECK_index, checked, 2);
}

/* An end that is a sum of numbers of the trip and others, and not negative: lengths that do not depend on the trip
 * show. */
static bool end_of_trip(Recorder *r, ValueId n, Dim *out) {
  const ArrayType *t = value_type(r->g, n);
  if (t->rank || t->dtype != DT_i64 || !av_sum_dim(r, n, out)) return false;
  return size_prove(&r->g->sizes, REL_le, 0, *out) == TRUTH_always;
}

static Outcome slice_part(Recorder *r, IndexItem *it, u32 part, Av a, Dim axis, bool forward) {
  Value v;
  a = av_force(r, a);
  if (!a) return OUT_FAIL;
  if (av_const_value(r, a, &v) && v.kind == V_NIL) return OUT_GO;
  ValueId n = av_value(r, a);
  Dim d;
  i64 now;
  SizePool *p = &r->g->sizes;
  bool known = n && value_dim(r->g, n, &d) && d != DIM_NONE;
  if (known && part < 2 && size_prove(p, REL_lt, d, 0) == TRUTH_unknown && !rec_like_sizes(r, d)) return OUT_FAIL;
  bool sign = known && (!size_is_unbacked(p, d) || size_prove(p, REL_lt, d, 0) != TRUTH_unknown);
  if (!known && n && part < 2 && forward && end_of_trip(r, n, &d)) known = sign = true;
  if (r->failed) return OUT_FAIL;
  if (!known || !sign) {
    if (!n || part == 2 || !forward)
      return rec_stuck(r, REASON_data_dependent_shape, "a slice with bounds known only at run time");
    Outcome o = rec_bound(r, a, axis, &d);
    if (o != OUT_GO) return o;
  }
  /* the length's formula needs the step itself, and the signs of the ends */
  if (part == 2 && !size_is_const(p, d, &now)) {
    if (!rec_literal(r, a, "slice step", &now))
      return rec_stuck(r, REASON_literal_needed, "the step of a slice must be known");
    if ((d = size_const(p, now)) == DIM_NONE) return OUT_FAIL;
  } else if (part < 2 && size_prove(p, REL_lt, d, 0) == TRUTH_unknown && !size_is_unbacked(p, d) &&
             size_hint(p, d, &now)) {
    bool ok = now < 0 ? guard_relation(&r->g->guards, p, REL_lt, d, 0, "slice", rec_here(r))
                      : guard_relation(&r->g->guards, p, REL_le, 0, d, "slice", rec_here(r));
    if (!ok) return OUT_FAIL;
    /* what may leave the integers on the way has no sign */
    if (n && forward && size_prove(p, REL_lt, d, 0) == TRUTH_unknown) {
      Outcome o = rec_bound(r, a, axis, &d);
      if (o != OUT_GO) return o;
    }
  }
  it->part[part] = PART_dim;
  it->at[part] = d;
  return part == 2 || rec_in_axis(r, d, axis) ? OUT_GO : OUT_FAIL;
}

static bool is_nil(Recorder *r, Av a) {
  Value v;
  return av_const_value(r, a, &v) && v.kind == V_NIL;
}

/* Places of a mask are in bounds. */
static bool is_mask_place(const Recorder *r, ValueId v) {
  for (u32 i = 0; i < r->masks.count; i++)
    if (v - graph_node_at(r->g, r->masks.data[i].node)->result_first <
        graph_node_at(r->g, r->masks.data[i].node)->result_count)
      return true;
  return false;
}

static Outcome build_index(Recorder *r, ValueId x, const u8 *kinds, u32 count, const Av *regs, Indexing *ix) {
  Graph *g = r->g;
  ArrayType t = *value_type(g, x);
  memset(ix, 0, sizeof *ix);
  if (count > INDEX_ITEMS_MAX) return rec_stuck(r, REASON_raises, "too many index items");
  u32 used = 0, at = 0;
  bool ellipsis = false;
  for (u32 i = 0, k = 0; i < count; i++) { /* axes that the items take */
    if (kinds[i] == IX_SLICE) used++, k += 3;
    else if (kinds[i] == IX_ELLIPSIS) ellipsis = true;
    else if (kinds[i] == IX_VALUE) {
      ValueId v = av_value(r, regs[k++]);
      bool mask = v && value_type(g, v)->dtype == DT_bool && value_type(g, v)->rank > 0;
      used += mask ? value_type(g, v)->rank : 1;
    }
  }
  if (used > t.rank) return rec_stuck(r, REASON_raises, "too many indices for rank %u", t.rank);
  u32 axis = 0;
  for (u32 i = 0; i < count; i++) {
    IndexItem *it = &ix->items[ix->nitems++];
    switch (kinds[i]) {
      case IX_NEWAXIS: it->kind = INDEX_newaxis; break;
      case IX_ELLIPSIS:
        it->kind = INDEX_ellipsis;
        axis += t.rank - used;
        break;
      case IX_SLICE: {
        i64 step = 1;
        bool forward = is_nil(r, regs[at + 2]) || (av_known_int(r, regs[at + 2], &step) && step > 0);
        it->kind = INDEX_slice;
        for (u32 p = 0; p < 3; p++) {
          Outcome o = slice_part(r, it, p, regs[at++], t.dims[axis], forward);
          if (o != OUT_GO) return o;
        }
        axis++;
        break;
      }
      default: {
        Av a = av_force(r, regs[at++]);
        if (a && av_is_range(r, a)) {
          Av parts[3];
          Outcome o = rec_range_slice(r, a, parts);
          i64 step = 1;
          bool forward = o == OUT_GO && (is_nil(r, parts[2]) || (av_known_int(r, parts[2], &step) && step > 0));
          it->kind = INDEX_slice;
          for (u32 p = 0; p < 3 && o == OUT_GO; p++) o = slice_part(r, it, p, parts[p], t.dims[axis], forward);
          if (o != OUT_GO) return o;
          axis++;
          break;
        }
        ValueId v = a ? av_value(r, a) : 0;
        if (!v) return rec_stuck(r, REASON_no_rule, "an array indexed by %s", av_kind_text(r, a));
        const ArrayType *vt = value_type(g, v);
        if (vt->rank == 0 && dtype_kind(vt->dtype) == DK_INT) {
          Outcome o = item_int(r, ix, it, a, t.dims[axis]);
          if (o != OUT_GO) return o;
          axis++;
          break;
        }
        if (vt->dtype == DT_bool && vt->rank > 0) {
          it->kind = INDEX_mask;
          axis += vt->rank;
        } else if (dtype_kind(vt->dtype) == DK_INT) {
          it->kind = INDEX_array;
          ValueId checked[2] = {v, graph_size(g, t.dims[axis])};
          Outcome o = is_mask_place(r, v) ? OUT_GO : rec_check(r, CHECK_index, checked, 2);
          if (o != OUT_GO) return o;
          axis++;
        } else {
          return rec_stuck(r, REASON_raises, "an index of dtype %s", dtype_name(vt->dtype));
        }
        ix->arrays = true;
        it->part[0] = PART_operand;
        it->at[0] = 1 + ix->count;
        ix->operands[ix->count++] = v;
      }
    }
  }
  (void)ellipsis;
  return OUT_GO;
}

static bool has_mask(const Indexing *ix) {
  for (u32 i = 0; i < ix->nitems; i++)
    if (ix->items[i].kind == INDEX_mask) return true;
  return false;
}

/* Those that select together: arrays and masks. */
static u32 index_arrays(const Indexing *ix) {
  u32 n = 0;
  for (u32 i = 0; i < ix->nitems; i++) n += ix->items[i].kind == INDEX_array || ix->items[i].kind == INDEX_mask;
  return n;
}

/* Each mask becomes the places where it is true, an index array for each of its axes: in bounds by construction. */
static Outcome expand_masks(Recorder *r, ValueId x, Indexing *ix) {
  const Indexing old = *ix;
  const ArrayType t = *value_type(r->g, x);
  u32 axis = 0, used = 0;
  for (u32 i = 0; i < old.nitems; i++) {
    u8 kind = old.items[i].kind;
    if (kind == INDEX_mask) used += value_type(r->g, old.operands[old.items[i].at[0] - 1])->rank;
    else used += kind == INDEX_int || kind == INDEX_slice || kind == INDEX_array;
  }
  ix->nitems = ix->count = 0;
  for (u32 i = 0; i < old.nitems; i++) {
    IndexItem it = old.items[i];
    if (it.kind != INDEX_mask) {
      for (u32 k = 0; k < 3; k++) {
        if (it.part[k] != PART_operand) continue;
        ix->operands[ix->count++] = old.operands[it.at[k] - 1];
        it.at[k] = ix->count;
      }
      ix->items[ix->nitems++] = it;
      axis += it.kind == INDEX_ellipsis ? t.rank - used : it.kind != INDEX_newaxis;
      continue;
    }
    ValueId mask = old.operands[it.at[0] - 1], places[TYPE_MAX_RANK];
    const ArrayType m = *value_type(r->g, mask);
    GuardDims dims;
    RuleError err = {.text = "a mask does not fit"};
    rec_dims_init(r, &dims, "mask");
    for (u32 d = 0; d < m.rank; d++, axis++)
      if (axis >= t.rank || !dim_equal(&dims.base, m.dims[d], t.dims[axis]))
        return rec_dims_no(r, &dims, "index", &err);
    Outcome o = rec_mask_places(r, mask, places);
    if (o != OUT_GO) return o;
    if (ix->nitems + m.rank > INDEX_ITEMS_MAX - (old.nitems - i))
      return rec_stuck(r, REASON_graph_size, "a long index");
    for (u32 d = 0; d < m.rank; d++) {
      ix->operands[ix->count++] = places[d];
      ix->items[ix->nitems++] = (IndexItem){.kind = INDEX_array, .part = {PART_operand}, .at = {ix->count}};
    }
  }
  return OUT_GO;
}

Outcome rec_index_array(Recorder *r, Av obj, const u8 *kinds, u32 count, const Av *regs, Av *out) {
  Indexing ix;
  ValueId x = av_value(r, obj);
  Outcome o = build_index(r, x, kinds, count, regs, &ix);
  if (o != OUT_GO) return o;
  if (has_mask(&ix) && (o = expand_masks(r, x, &ix)) != OUT_GO) return o;
  GuardDims dims;
  rec_dims_init(r, &dims, "index");
  ArrayType result;
  RuleError err = {0};
  if (!graph_infer_index(r->g, &dims.base, x, ix.operands, ix.count, ix.items, ix.nitems, &result, &err) ||
      dims.unknown)
    return rec_dims_no(r, &dims, "index", &err);
  return rec_made(r, av_num(r, graph_index(r->g, x, ix.operands, ix.count, ix.items, ix.nitems,
                                           graph_type(r->g, &result))), out);
}

/* ---- indexing ---------------------------------------------------------------------------------------- */

typedef struct OpenSyms {
  Recorder *r;
  bool any;
} OpenSyms;

static void look_open(void *ctx, u32 sym) {
  OpenSyms *o = ctx;
  const SizeSym *s = &o->r->g->sizes.syms.data[sym];
  if (!o->any && !s->unbacked) o->any = source_is_open(o->r->tracer, &o->r->g->guards, s->source);
}

bool rec_literal(Recorder *r, Av a, const char *what, i64 *out) {
  if (av_known_int(r, a, out)) return true;
  ValueId v = av_value(r, a);
  Dim d;
  return v && value_dim(r->g, v, &d) && rec_pin(r, d, what, out);
}

bool rec_pin(Recorder *r, Dim d, const char *what, i64 *out) {
  OpenSyms open = {r, false};
  if (d != DIM_NONE && size_is_const(&r->g->sizes, d, out)) return true;
  if (d == DIM_NONE || size_is_unbacked(&r->g->sizes, d) || !size_hint(&r->g->sizes, d, out)) return false;
  if (!r->abstract) size_symbols(&r->g->sizes, d, look_open, &open);
  if (open.any) return false; /* it was another number too often */
  Dim k = size_const(&r->g->sizes, *out);
  return k != DIM_NONE && guard_relation(&r->g->guards, &r->g->sizes, REL_eq, d, k, what, rec_here(r));
}

/* Does a loop around the region write the register that the number comes from? Then it is another one in each trip. */
bool rec_written_around(const Recorder *r, SourceId s) {
  const Source *from = &r->g->guards.sources.items.data[s];
  const RecFrame *f = &r->frames.data[0];
  const Proto *p = f->code->proto;
  bool any = false;
  if (from->kind != SRC_reg) return false;
  for (u32 e = 1; e < p->nextents; e++) {
    const Extent *x = &p->extents[e];
    if ((x->kind != EXT_FOR && x->kind != EXT_WHILE) || f->pc < x->begin || f->pc >= x->end) continue;
    for (u32 i = 0; i < x->write_count; i++) any |= p->writes[x->write_first + i] == from->index;
  }
  return any;
}

static void look_changing(void *ctx, u32 sym) {
  OpenSyms *o = ctx;
  const SizeSym *s = &o->r->g->sizes.syms.data[sym];
  if (!s->unbacked) o->any |= rec_written_around(o->r, s->source);
}

bool rec_list_position(Recorder *r, Av list, Av at, u32 *out) {
  i64 i, n = av_at(r, list)->count;
  OpenSyms changing = {r, false};
  ValueId v = av_is_number(r, at) ? av_value(r, at) : 0;
  Dim d;
  if (v && value_dim(r->g, v, &d) && d != DIM_NONE) size_symbols(&r->g->sizes, d, look_changing, &changing);
  bool long_list = n > 2 * (i64)r->vm->tunables.unroll_trips && !r->abstract; /* data, of which any item may be meant */
  if (changing.any || (long_list && !av_known_int(r, at, &i)) || !rec_literal(r, at, "list position", &i)) return false;
  if (i < 0) i += n;
  *out = (u32)i;
  return i >= 0 && i < n;
}

Outcome rec_index(Recorder *r, Av obj, const u8 *items, u32 count, const Av *regs, Av *out) {
  if (count == 1 && items[0] == IX_VALUE) return rec_item(r, obj, regs[0], out);
  if (count == 1 && items[0] == IX_SLICE) return rec_slice(r, obj, regs, out);
  obj = av_force(r, obj);
  Outcome there = rec_there(r, &obj);
  if (!obj || there != OUT_GO) return there == OUT_GO ? OUT_FAIL : there;
  if (av_is_number(r, obj)) return rec_index_array(r, obj, items, count, regs, out);
  return rec_stuck(r, REASON_raises, "%s indexed by several places", av_kind_text(r, obj));
}

/* ---- updates ------------------------------------------------------------------------------------------- */

/* The value as a store into an array of `dtype` takes it: never of a higher kind. */
static Outcome store_value(Recorder *r, Av a, u32 dtype, ValueId *out) {
  ValueId v = av_value(r, a);
  if (!v) return rec_stuck(r, REASON_no_rule, "%s stored into an array", av_kind_text(r, a));
  const ArrayType *t = value_type(r->g, v);
  if (t->dtype != dtype && rec_weak_flag(r, v)) {
    Outcome strong = rec_strong_or_fits(r, v, dtype);
    if (strong != OUT_GO) return strong;
    t = value_type(r->g, v);
  }
  if (dtype_kind(t->dtype) > dtype_kind(dtype))
    return rec_stuck(r, REASON_raises, "a store of %s into %s", dtype_name(t->dtype), dtype_name(dtype));
  bool weak = t->weak && dtype_kind(dtype) == DK_INT && dtype != DT_i64;
  if (weak && r->safe_exit == UINT32_MAX)
    return rec_stuck(r, REASON_no_rule, "a number stored into %s", dtype_name(dtype));
  Outcome o = rec_fit_weak(r, &v, dtype);
  if (o != OUT_GO) return o;
  *out = graph_convert(r->g, v, dtype);
  return *out ? OUT_GO : OUT_FAIL;
}

/* Two sizes that are equal by what is known, or by a guard, since they are equal now. */
static bool same_size_now(Recorder *r, Dim a, Dim b) {
  SizePool *p = &r->g->sizes;
  i64 x, y;
  if (size_same(p, a, b)) return true;
  return !size_is_unbacked(p, a) && !size_is_unbacked(p, b) && size_hint(p, a, &x) && size_hint(p, b, &y) && x == y &&
         guard_relation(&r->g->guards, p, REL_eq, a, b, "store", rec_here(r));
}

Outcome rec_update_array(Recorder *r, Av obj, const u8 *kinds, u32 count, const Av *regs, u32 op,
                            Av value, Av *out) {
  Indexing ix;
  ValueId x = av_value(r, obj), v = 0;
  u32 dtype = value_type(r->g, x)->dtype;
  Outcome o = build_index(r, x, kinds, count, regs, &ix);
  if (o != OUT_GO) return o;
  u32 combine = OP_none;
  bool each = op != BC_move && op != BC_add && op != BC_sub && op != BC_mul; /* an update node adds and multiplies */
  if (op != BC_move && !ix.arrays) {
    Av old, next;
    if ((o = rec_index_array(r, obj, kinds, count, regs, &old)) != OUT_GO) return o;
    if ((o = rec_binary(r, op, old, value, &next)) != OUT_GO) return o;
    value = next;
  } else if (op != BC_move) {
    combine = rec_operation_of(op);
    if (!combine || op_info(combine)->family != FAM_elementwise)
      return rec_stuck(r, REASON_no_rule, "`%s=` through an index array", bc_info[op].name);
  }
  ValueId given = av_value(r, value);
  if (combine && given) { /* computed by the rules of the operation, then stored: an update node takes one dtype */
    const ArrayType element = {.dtype = (u8)dtype}, *pair[2] = {&element, value_type(r->g, given)};
    DTypeResult d;
    RuleError err;
    if (!rule_dtype(combine, 2, pair, &d, &err) || dtype_kind(d.result) > dtype_kind(dtype))
      return rec_stuck(r, REASON_raises, "`%s=` of %s into %s", bc_info[op].name, dtype_name(pair[1]->dtype),
                       dtype_name(dtype));
    bool other = d.compute != dtype || d.result != dtype;
    each |= other;
    if (other && !pair[1]->weak) v = given;
  }
  if (!v && (o = store_value(r, value, dtype, &v)) != OUT_GO) return o;
  /* else one value, wherever the mask is true */
  bool spread = has_mask(&ix) && (value_type(r->g, v)->rank > 0 || combine || index_arrays(&ix) > 1);
  if (spread && (o = expand_masks(r, x, &ix)) != OUT_GO) return o;
  /* index arrays must broadcast to each other, and the value to what the index selects */
  GuardDims dims;
  rec_dims_init(r, &dims, "index");
  ArrayType part;
  each &= ix.arrays;
  if (each || value_type(r->g, v)->rank > 0 || index_arrays(&ix) > 1) {
    ArrayType both;
    RuleError err = {0};
    if (!graph_infer_index(r->g, &dims.base, x, ix.operands, ix.count, ix.items, ix.nitems, &part, &err) ||
        dims.unknown)
      return rec_dims_no(r, &dims, "index", &err);
    const ArrayType *pair[2] = {&part, value_type(r->g, v)};
    if (!rule_broadcast(&dims.base, 2, pair, &both, &err) || dims.unknown) return rec_dims_no(r, &dims, "store", &err);
    bool fits = both.rank == part.rank;
    for (u32 d = 0; d < both.rank && fits; d++) fits = same_size_now(r, both.dims[d], part.dims[d]);
    if (!fits) return rec_stuck(r, REASON_raises, "a store of a larger array");
  }
  ValueId after = 0;
  if (each) {
    const GraphArg both[2] = {{.kind = ARG_value, .value = x}, {.kind = ARG_value, .value = v}};
    if ((o = rec_integer_check(r, combine, both)) != OUT_GO) return o;
    o = rec_each_place(r, x, ix.operands, ix.count, ix.items, ix.nitems, &part, combine, v, &after);
    r->updated = true;
    r->written = 0;
    return o == OUT_GO ? rec_made(r, av_num(r, after), out) : o;
  }
  after = graph_update(r->g, combine, x, ix.operands, ix.count, ix.items, ix.nitems, v);
  if (value_type(r->g, x)->rank > 0) {
    r->updated = true;
    r->written = after ? value_node(r->g, after) : 0;
  }
  return rec_made(r, av_num(r, after), out);
}

static Outcome path_step(Recorder *r, const Desc *d, u32 step, Av obj, const Av **regs, Av value, Av *out);

/* An item of one of several lists: step says which list, the one behind it which item. */
static Outcome path_in_row(Recorder *r, const Desc *d, u32 step, Av rows, const Av *mine, const Av **regs,
                           Av value, Av *out) {
  const PathStep *s = &d->steps[step], *t = s + 1;
  bool one = s->item_count == 1 && d->items[s->item_first] == IX_VALUE && t->kind == STEP_INDEX && t->item_count == 1 &&
             d->items[t->item_first] == IX_VALUE;
  if (!one) return rec_stuck(r, REASON_no_rule, "a list in a list updated by index");
  Av row, old, next = value;
  Outcome o = rec_rows_get(r, rows, mine[0], &row);
  mine = (*regs)++;
  ValueId at;
  if (o == OUT_GO) o = rec_row_place(r, row, mine[0], &at, &old);
  if (o == OUT_GO && step + 2 < d->step_count) o = path_step(r, d, step + 2, old, regs, value, &next);
  else if (o == OUT_GO && d->op != BC_move) o = rec_binary(r, d->op, old, value, &next);
  return o == OUT_GO ? rec_row_put(r, rows, at, old, next, out) : o;
}

/* A field: what was there is read where something is done with it. */
static Outcome field_step(Recorder *r, const Desc *d, u32 step, Av obj, const Av **regs, Av value, Av *out) {
  const Name name = d->steps[step].field;
  const bool last = step + 1 == d->step_count;
  const Repr *p = av_repr(r, obj);
  Av old, next = value;
  if (!p->put_field) return repr_no(r, obj, ROP_put_field);
  if (!last || d->op != BC_move) {
    Outcome o = rec_field(r, obj, name, &old, NULL);
    if (o == OUT_GO)
      o = last ? rec_binary(r, d->op, old, value, &next) : path_step(r, d, step + 1, old, regs, value, &next);
    if (o != OUT_GO) return o;
  }
  return p->put_field(r, obj, name, next, out);
}

static Outcome path_step(Recorder *r, const Desc *d, u32 step, Av obj, const Av **regs, Av value, Av *out) {
  if (r->nest > (u32)r->vm->tunables.tree_nest) return rec_over(r, tree_nest, REASON_graph_size, "a path");
  obj = av_force(r, obj);
  Outcome o = rec_there(r, &obj);
  if (!obj || o != OUT_GO) return o == OUT_GO ? OUT_FAIL : o;
  const PathStep *s = &d->steps[step];
  if (s->kind == STEP_FIELD) return field_step(r, d, step, obj, regs, value, out);
  const bool last = step + 1 == d->step_count;
  const u8 *kinds = d->items + s->item_first;
  const Av *mine = *regs;
  const Repr *p = av_repr(r, obj);
  Av old, next = value;
  for (u32 i = 0; i < s->item_count; i++) *regs += kinds[i] == IX_VALUE ? 1 : kinds[i] == IX_SLICE ? 3 : 0;
  if (p->update)
    return last ? p->update(r, obj, kinds, s->item_count, mine, d->op, value, out)
                : rec_stuck(r, REASON_no_rule, "a path through an array's element");
  if (!last && av_is_ragged(r, obj)) return path_in_row(r, d, step, obj, mine, regs, value, out);
  if (s->item_count != 1 || kinds[0] != IX_VALUE) return repr_no(r, obj, ROP_update);
  if (last && p->before_store && (o = p->before_store(r, obj, mine[0], d->op == BC_move ? value : 0)) != OUT_GO)
    return o;
  if (last && d->op == BC_move && p->assign) {
    bool done;
    o = p->assign(r, obj, mine[0], value, out, &done);
    if (o != OUT_GO || done) return o;
  }
  if ((o = rec_item(r, obj, mine[0], &old)) != OUT_GO) return o;
  if (!last) o = path_step(r, d, step + 1, old, regs, value, &next);
  else if (d->op != BC_move) o = rec_binary(r, d->op, old, value, &next);
  if (o != OUT_GO) return o;
  return p->store ? p->store(r, obj, mine[0], old, next, out) : repr_no(r, obj, ROP_store);
}

Outcome rec_path(Recorder *r, const Desc *d, Av root, const Av *regs, Av *out) {
  u32 n = 0;
  for (u32 s = 0; s < d->step_count; s++)
    for (u32 i = 0; d->steps[s].kind == STEP_INDEX && i < d->steps[s].item_count; i++) {
      u8 kind = d->items[d->steps[s].item_first + i];
      n += kind == IX_VALUE ? 1 : kind == IX_SLICE ? 3 : 0;
    }
  Av value = regs[n];
  if (d->step_count == 0) return d->op == BC_move ? rec_made(r, value, out) : rec_binary(r, d->op, root, value, out);
  const Av *cursor = regs;
  r->nest++;
  Outcome o = path_step(r, d, 0, root, &cursor, value, out);
  r->nest--;
  return o;
}

/* ---- unpacking ------------------------------------------------------------------------------------------ */

Outcome rec_unpack(Recorder *r, Av v, const Desc *d, Av *out) {
  v = av_force(r, v);
  Outcome there = rec_there(r, &v);
  if (!v || there != OUT_GO) return there == OUT_GO ? OUT_FAIL : there;
  const Repr *p = av_repr(r, v);
  return p->unpack ? p->unpack(r, v, d, out) : repr_no(r, v, ROP_unpack);
}

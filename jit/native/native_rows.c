/* native_rows.c — arrays of any size within a native function (see native_rows.h). A part of a buffer, and what
 * operations on elements make of such, is not computed where it stands: kernels that store or reduce it ask for its
 * elements. So it reads its buffers later than the program does: what somebody still needs behind an update of one
 * of them is computed at once, into memory of its own. */
#include "jit/native/native_rows.h"

#include <string.h>

#include "lang/mechanisms.h"

bool native_row_type(Native *n, const ArrayType *t) {
  if (t->device == DEV_CPU && dtype_in_loops(t->dtype) &&
      loop_value_type(loop_type_of_dtype(t->dtype)) == loop_type_of_dtype(t->dtype))
    return true;
  return native_bail(n, "an array outside the loop IR");
}

static NRow *row_new(Native *n, const ArrayType *t) {
  NRow *r = native_row_type(n, t) ? arena_alloc(&n->c->arena, sizeof *r) : NULL;
  if (!r) {
    if (!n->why) native_no_memory(n);
    return NULL;
  }
  *r = (NRow){.rank = t->rank};
  memcpy(r->dims, t->dims, sizeof *r->dims * t->rank);
  return r;
}

static const NRow *rows_whole(Native *n, ValueId v) {
  u32 at = native_buffer(n, v);
  if (at == UINT32_MAX) return NULL;
  const ArrayType t = n->buffers.data[at].type, own = *value_type(n->g, v);
  NRow *r = row_new(n, &own);
  if (!r) return NULL;
  r->buffer = at;
  r->version = n->buffers.data[at].version;
  r->axes = t.rank;
  memcpy(r->bound, t.dims, sizeof *r->bound * t.rank);
  for (u32 d = 0; d < t.rank; d++) r->axis[d] = (NAxis){.slice = true, .to = d, .step = 1};
  return r;
}

const NRow *native_row(Native *n, ValueId v) {
  const NValue *x = native_value(n, v);
  if (x->row) return x->row;
  if (!value_type(n->g, v)->rank || x->split) return native_bail(n, "an array that is no row"), NULL;
  const NRow *r = rows_whole(n, v);
  if (r) native_value(n, v)->row = r;
  return r;
}

/* ---- parts ------------------------------------------------------------------------------------------------ */

/* An axis of what is indexed begins further on. */
static bool move_axis(Native *n, NAxis *x, const IndexAxis *a, Dim size) {
  SizePool *p = &n->g->sizes;
  if (a->kind == INDEX_int && a->part == PART_operand) {
    if (x->by || x->step != 1) return native_bail(n, "a part of a part");
    x->by = a->operand;
    x->by_ir = native_index(n, a->operand, native_plain(n, a->operand) ? 0 : native_dim_ir(n, size));
  } else {
    Dim at = a->kind == INDEX_int && size_prove(p, REL_lt, a->at, 0) == TRUTH_always ? size_add(p, a->at, size) : a->at;
    if (a->kind == INDEX_int && size_prove(p, REL_le, 0, at) != TRUTH_always)
      return native_bail(n, "an index that may be negative");
    x->at = size_add(p, x->at, size_mul(p, at, size_const(p, x->step)));
    if (x->at == DIM_NONE) return native_bail(n, "a size expression that gets too large");
  }
  x->slice = a->kind == INDEX_slice;
  x->to = a->result;
  x->step = x->slice ? x->step * a->step : 1;
  return !n->why;
}

ValueId native_places(Native *n, NodeId node) {
  const ArrayType t = *value_type(n->g, node_operand(n->g, node, 0));
  IndexMap m;
  if (t.rank != 1 || !MECHANISM(n->c->vm, gathered_rows) || !index_map(n->g, node, &t, &m)) return 0;
  if (m.count != 1 || m.axes[0].kind != INDEX_array) return 0;
  ValueId v = m.axes[0].part == PART_operand ? m.axes[0].operand : 0;
  return v && value_type(n->g, v)->rank && dtype_kind(value_type(n->g, v)->dtype) == DK_INT ? v : 0;
}

bool native_row_part(Native *n, NodeId node, ValueId v, NRow *out) {
  const NRow *from = native_row(n, v);
  const ArrayType t = *value_type(n->g, v);
  IndexMap m;
  if (!from) return false;
  if (from->node) return native_bail(n, "a part of what is computed");
  if (!index_map(n->g, node, &t, &m)) return native_bail(n, "an index with bounds known only at run time");
  NRow r = *from;
  for (u32 i = 0; i < m.count; i++) {
    const IndexAxis *a = &m.axes[i];
    u32 k = 0;
    while (k < from->axes && !(from->axis[k].slice && from->axis[k].to == a->axis)) k++;
    if (a->kind == INDEX_array || k == from->axes) return native_bail(n, "an index by an array");
    if (!move_axis(n, &r.axis[k], a, t.dims[a->axis])) return false;
    if (a->kind == INDEX_slice) r.bound[a->result] = from->bound[a->axis];
  }
  const GraphAttr *items = NULL;
  for (u32 i = 0; i < graph_node_at(n->g, node)->attr_count && !items; i++)
    if (node_attr(n->g, node, i)->kind == ATTR_index) items = node_attr(n->g, node, i);
  ArrayType part;
  if (!graph_infer_index(n->g, NULL, v, NULL, 0, items->items, items->count, &part, NULL))
    return native_bail(n, "an index by an array");
  r.rank = part.rank;
  memcpy(r.dims, part.dims, sizeof *r.dims * part.rank);
  for (u32 d = 0; d < r.rank; d++) { /* new axes */
    bool found = false;
    for (u32 k = 0; k < r.axes && !found; k++) found = r.axis[k].slice && r.axis[k].to == d;
    if (!found) r.bound[d] = 1;
  }
  *out = r;
  return true;
}

/* ---- who needs it later ------------------------------------------------------------------------------------ */

enum { READS = 12, MADE_OF = 24 };
typedef struct Later {
  Native *n;
  u32 reads[READS], count;
  ValueId made[MADE_OF]; /* the value, and what is computed from it later */
  u32 values;
  u64 bits; /* of made, by their last digits: most values are none */
  bool dirty, need, named, more; /* more: values are made of it that `made` has no room for */
} Later;

static bool reads(const Later *l, u32 buffer) {
  for (u32 i = 0; i < l->count; i++)
    if (l->reads[i] == buffer) return true;
  return false;
}

static void gather(Later *l, ValueId v, u32 depth) {
  const NRow *r = native_value(l->n, v)->row;
  const NValue *x = native_value(l->n, v);
  if (!r && x->buffer && l->count < READS) l->reads[l->count++] = x->buffer - 1;
  if (!r || l->need) return;
  if (!r->node) {
    if (reads(l, r->buffer)) return;
    l->need = l->count == READS;
    if (!l->need) l->reads[l->count++] = r->buffer;
    return;
  }
  l->need = depth >= ROW_DEPTH - 1;
  for (u32 i = 0; i < graph_node_at(l->n->g, r->node)->operand_count && !l->need; i++)
    gather(l, node_operand(l->n->g, r->node, i), depth + 1);
}

/* The array that a chain of updates and loops began with. */
static ValueId root_of(Native *n, ValueId v) {
  for (u32 steps = 0; steps < 1000; steps++) {
    NodeId d = value_node(n->g, v);
    if (!d || native_value(n, v)->buffer) break;
    const GraphNode *x = graph_node_at(n->g, d);
    if (x->kind == NODE_update || x->kind == NODE_hook) v = node_operand(n->g, d, 0);
    else if (x->kind == NODE_while && v - x->result_first < x->carried) v = node_operand(n->g, d, v - x->result_first);
    else break;
  }
  return v;
}

static bool touches(const Later *l, ValueId v) {
  if (value_is_token(l->n->g, v) || !value_type(l->n->g, v)->rank) return false;
  const NValue *x = native_value(l->n, root_of(l->n, v));
  return x->buffer ? reads(l, x->buffer - 1) : !x->row;
}

static void make(Later *l, ValueId v) {
  l->made[l->values++] = v;
  l->bits |= (u64)1 << (v & 63);
}

static bool is_made(const Later *l, ValueId v) {
  if (!(l->bits >> (v & 63) & 1)) return false;
  for (u32 i = 0; i < l->values; i++)
    if (l->made[i] == v) return true;
  return false;
}

static void names(void *ctx, u32 v) {
  Later *l = ctx;
  l->named |= is_made(l, v);
}

static void look(Later *l, NodeId k) {
  Native *n = l->n;
  const GraphNode *x = graph_node_at(n->g, k);
  bool control = node_subs(n->g, k) > 0, uses = false;
  for (u32 i = 0; i < x->operand_count; i++) uses |= is_made(l, node_operand(n->g, k, i));
  if (control && uses) {
    const NRow *r = native_value(n, l->made[0])->row;
    if (x->kind == NODE_while && r && r->node) l->need = true; /* not again for every trip */
    for (u32 i = 0; i < x->operand_count; i++)
      l->need |= !is_made(l, node_operand(n->g, k, i)) && touches(l, node_operand(n->g, k, i));
  }
  l->need |= uses && l->dirty;
  if (x->kind == NODE_update || control)
    for (u32 i = 0; i < (control ? x->operand_count : 1); i++) l->dirty |= touches(l, node_operand(n->g, k, i));
  if ((x->kind == NODE_op || x->kind == NODE_index) && uses)
    for (u32 i = 0; i < x->result_count; i++) {
      ValueId v = node_result(n->g, k, i);
      if (value_is_token(n->g, v) || !value_type(n->g, v)->rank) continue;
      if (l->values == MADE_OF) l->more = true;
      else make(l, v);
    }
  l->need |= l->dirty && l->more;
  if (l->dirty && x->exit != NO_EXIT) {
    graph_exit_values(n->g, x->exit, names, l);
    l->need |= l->named;
  }
}

/* Row v, of this node, stays what is computed later, or is computed now. */
static bool decide(Native *n, NodeId node, ValueId v) {
  Later l = {.n = n};
  make(&l, v);
  l.need = native_value(n, v)->row->steps > ROW_STEPS;
  gather(&l, v, 0);
  for (NodeId k = node_next(n->g, node); k && !l.need; k = node_next(n->g, k)) look(&l, k);
  const GraphBlock *b = &n->g->blocks.data[graph_node_at(n->g, node)->block];
  for (u32 i = 0; i < b->term_count && !l.need; i++)
    l.need = l.dirty && is_made(&l, n->g->operands.data[b->term_first + i]);
  return !l.need || native_fill(n, v);
}

static bool row_ready(Native *n, ValueId v, u32 depth) {
  const NValue *x = native_value(n, v);
  const NRow *r = x->row;
  if (!r) return !x->buffer || n->buffers.data[x->buffer - 1].version == x->version;
  if (!r->node) return n->buffers.data[r->buffer].version == r->version;
  if (depth > ROW_DEPTH) return false;
  for (u32 i = 0; i < graph_node_at(n->g, r->node)->operand_count; i++)
    if (!row_ready(n, node_operand(n->g, r->node, i), depth + 1)) return false;
  return true;
}

bool native_rows_ready(Native *n, ValueId v) { return row_ready(n, v, 0); }

/* ---- nodes --------------------------------------------------------------------------------------------------- */

static bool set_row(Native *n, NodeId node, ValueId v, const NRow *r) {
  *native_value(n, v) = (NValue){.stamp = n->stamp, .row = r};
  return decide(n, node, v);
}

/* Elements of an array of rank 1 at the places that a row gives, which were checked before. */
static bool gathered_row(Native *n, NodeId node, ValueId places) {
  ValueId v = node_result(n->g, node, 0);
  const ArrayType t = *value_type(n->g, v);
  const NRow *at = native_row(n, places);
  NRow *r = at ? row_new(n, &t) : NULL;
  if (!r) return false;
  r->node = node;
  r->steps = at->steps + 2;
  memcpy(r->bound, at->bound, sizeof r->bound);
  return set_row(n, node, v, r);
}

static bool part_row(Native *n, NodeId node) {
  ValueId v = node_result(n->g, node, 0), x = node_operand(n->g, node, 0), places = native_places(n, node);
  const ArrayType t = *value_type(n->g, v);
  const NRow *from = native_row(n, x);
  if (from && from->node && !native_fill(n, x)) return false;
  if (from && places) return gathered_row(n, node, places);
  NRow *r = row_new(n, &t);
  return r && native_row_part(n, node, x, r) && set_row(n, node, v, r);
}

static bool flip_row(Native *n, NodeId node, const GraphArg *args) {
  ValueId v = node_result(n->g, node, 0);
  const NRow *from = native_row(n, args[0].value);
  const ArrayType t = *value_type(n->g, v);
  u32 mask;
  NRow *r = from && !from->node && arg_axes(&args[1], t.rank, &mask) ? row_new(n, &t) : NULL;
  if (!r) return native_bail(n, "a view that does not lower");
  SizePool *p = &n->g->sizes;
  *r = *from;
  for (u32 k = 0; k < r->axes; k++) {
    NAxis *a = &r->axis[k];
    if (!a->slice || !(mask >> a->to & 1)) continue;
    a->at = size_add(p, a->at, size_mul(p, size_sub(p, t.dims[a->to], 1), size_const(p, a->step)));
    a->step = -a->step;
    if (a->at == DIM_NONE) return native_bail(n, "a size expression that gets too large");
  }
  return set_row(n, node, v, r);
}

static bool turned_row(Native *n, NodeId node, const GraphArg *args) {
  ValueId v = node_result(n->g, node, 0);
  const NRow *from = native_row(n, args[0].value);
  const ArrayType t = *value_type(n->g, v);
  NRow *r = from && !from->node && args[1].kind == ARG_hole ? row_new(n, &t) : NULL;
  if (!r) return native_bail(n, "a view that does not lower");
  Dim dims[TYPE_MAX_RANK];
  memcpy(dims, r->dims, sizeof dims);
  *r = *from;
  memcpy(r->dims, dims, sizeof dims);
  for (u32 d = 0; d < t.rank; d++) r->bound[d] = from->bound[t.rank - 1 - d];
  for (u32 k = 0; k < r->axes; k++) r->axis[k].to = t.rank - 1 - r->axis[k].to;
  return set_row(n, node, v, r);
}

/* The sizes of what an operation gives are those of its operands, as far as they are not stretched. */
static bool bounds(Native *n, NodeId node, NRow *r) {
  const GraphNode *x = graph_node_at(n->g, node);
  for (u32 d = 0; d < r->rank; d++) r->bound[d] = r->dims[d];
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId v = node_operand(n->g, node, i);
    if (!value_type(n->g, v)->rank) {
      if (!native_number(n, v)) return false;
      continue;
    }
    const NRow *o = native_row(n, v);
    if (!o) return false;
    r->steps += 1 + o->steps;
    for (u32 d = 0; d < o->rank; d++)
      if (!dim_is(n->c, o->dims[d], 1)) r->bound[r->rank - o->rank + d] = o->bound[d];
  }
  return true;
}

static bool made_row(Native *n, NodeId node) {
  ValueId v = node_result(n->g, node, 0);
  const ArrayType t = *value_type(n->g, v);
  u32 compute, op = graph_node_at(n->g, node)->op;
  bool fill = op_fills(op);
  if (!fill && !element_lowers(n->c, node, &compute)) return native_bail(n, "an operation that does not lower");
  NRow *r = row_new(n, &t);
  if (!r) return false;
  r->node = node;
  if (fill) memcpy(r->bound, r->dims, sizeof r->bound);
  else if (!bounds(n, node, r)) return false;
  return set_row(n, node, v, r);
}

bool native_rows_node(Native *n, NodeId node) {
  const GraphNode *x = graph_node_at(n->g, node);
  GraphArg args[OP_MAX_PARAMS];
  if (x->kind == NODE_index)
    return value_type(n->g, node_result(n->g, node, 0))->rank ? part_row(n, node) : native_row_element(n, node);
  for (u32 i = 0; i < x->operand_count; i++)
    if (value_is_token(n->g, node_operand(n->g, node, i)) ||
        !native_row_type(n, value_type(n->g, node_operand(n->g, node, i))))
      return native_bail(n, "an operand outside the loop IR");
  if (x->result_count != 1 || value_is_token(n->g, node_result(n->g, node, 0)) ||
      !native_row_type(n, value_type(n->g, node_result(n->g, node, 0))))
    return native_bail(n, "a result outside the loop IR");
  if (node_is_eager(n->c, node)) return native_bail(n, "an operation that does not lower");
  node_args(n->g, node, args);
  if (op_info(x->op)->family == FAM_reduce) return native_reduce(n, node);
  if (x->op == OP_flip && args[0].kind == ARG_value) return flip_row(n, node, args);
  if ((x->op == OP_transpose || x->op == OP_permute_dims) && args[0].kind == ARG_value)
    return turned_row(n, node, args);
  return made_row(n, node);
}

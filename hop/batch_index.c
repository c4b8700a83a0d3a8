/* batch_index.c — batching rules of indices and updates (see batch.h): with one more axis, or with arrays of the places
 * of all lanes. */
#include "hop/batch.h"

#include <string.h>

/* Where the items put their axes. Arrays, and integers beside them, name elements together: their axes stand where the
 * first of them stands, or first of all when something stands between them. */
typedef struct IndexLayout {
  u32 joint;       /* axes that the arrays have together */
  u32 at;          /* the axes of the result before these */
  bool array, apart;
} IndexLayout;

static IndexLayout places_of(const Graph *g, const IndexItem *items, u32 n, const ValueId *operands, u32 rank,
                             bool ints) {
  IndexLayout l = {0};
  u32 used = 0, result = 0, last = 0;
  bool found = false;
  for (u32 i = 0; i < n; i++) {
    used += items[i].kind != INDEX_newaxis && items[i].kind != INDEX_ellipsis;
    l.array |= items[i].kind == INDEX_array;
  }
  for (u32 i = 0; i < n; i++) {
    if (items[i].kind == INDEX_ellipsis) result += rank - used;
    if (items[i].kind == INDEX_newaxis || items[i].kind == INDEX_slice) result++;
    if (items[i].kind == INDEX_array) {
      u32 own = value_type(g, operands[items[i].at[0] - 1])->rank;
      if (own > l.joint) l.joint = own;
    }
    if (items[i].kind != INDEX_array && (items[i].kind != INDEX_int || !(l.array || ints))) continue;
    if (!found) l.at = result;
    l.apart |= found && last != i;
    found = true;
    last = i + 1;
  }
  if (l.apart) l.at = 0;
  return l;
}

/* The lanes' axis from `lanes` and, behind it, the joint ones to where a lane has them; back: the other way. */
static ValueId lanes_first(Graph *g, ValueId v, u32 lanes, u32 from, const IndexLayout *l, bool back) {
  u32 perm[TYPE_MAX_RANK], turned[TYPE_MAX_RANK], n = value_type(g, v)->rank, next = 0;
  bool same = true;
  perm[0] = lanes;
  for (u32 i = 1; i < n; i++) {
    bool joint = i > l->at && i <= l->at + l->joint;
    while (next == lanes || (next >= from && next < from + l->joint)) next++;
    perm[i] = joint ? from + i - l->at - 1 : next++;
  }
  for (u32 i = 0; i < n; i++) {
    same &= perm[i] == i;
    turned[perm[i]] = i;
  }
  return same ? v : graph_transpose(g, v, back ? turned : perm);
}

ValueId batch_numbers(Batch *b, u32 axes) {
  Dim dims[TYPE_MAX_RANK] = {b->lanes};
  GraphAttr stop[4] = {attr_dim(0, b->lanes), attr_hole(1), attr_hole(2), attr_hole(3)};
  ValueId v = graph_op(b->g, OP_arange, NULL, 0, stop, 4, NULL);
  for (u32 i = 1; i <= axes; i++) dims[i] = 1;
  return v ? graph_reshape(b->g, v, axes + 1u, dims) : 0;
}

/* x[items], x[items] = v: with a whole axis in front; or, where places differ between lanes, with arrays of all lanes'
 * places, and the lanes' numbers beside them when x differs too. */
ValueId batch_index(Batch *b, NodeId node) {
  Graph *g = b->g;
  const GraphNode x = *graph_node_at(g, node);
  bool update = x.kind == NODE_update, differs = false;
  u32 count = x.operand_count - (update ? 2 : 1), nitems;
  ValueId operands[3 * TYPE_MAX_RANK + 2], own[3 * TYPE_MAX_RANK + 2];
  IndexItem items[TYPE_MAX_RANK + 1];
  if (x.attr_count == 0 || node_attr(g, node, 0)->kind != ATTR_index || count > 3 * TYPE_MAX_RANK) return 0;
  nitems = node_attr(g, node, 0)->count;
  if (nitems > TYPE_MAX_RANK) return 0;
  memcpy(items + 1, node_attr(g, node, 0)->items, sizeof *items * nitems);
  for (u32 i = 0; i < count; i++) {
    own[i] = node_operand(g, node, i + 1);
    operands[i] = batch_get(b, own[i]);
    differs |= batch_is_mapped(b, own[i]);
  }
  ValueId old = node_operand(g, node, 0), v = update ? node_operand(g, node, x.operand_count - 1) : 0;
  u32 rank = value_type(g, old)->rank;
  for (u32 i = 1; i <= nitems; i++)
    if (items[i].kind == INDEX_mask) return 0;
  IndexLayout lane = places_of(g, items + 1, nitems, own, rank, false), all = lane;
  bool both = differs && (update || batch_is_mapped(b, old));
  u32 region = 0;
  if (update) { /* the rank of what is written to */
    ArrayType part;
    GuardDims dims;
    guard_dims_init(&dims, NULL, &g->sizes, "index", (Span){0});
    if (!graph_infer_index(g, &dims.base, old, own, count, items + 1, nitems, &part, NULL)) return 0;
    region = part.rank;
  }
  ValueId base = update || !differs ? batch_full(b, old) : batch_get(b, old);
  if (!base) return 0;
  if (!differs) {
    items[0] = (IndexItem){.kind = INDEX_slice};
  } else {
    all = places_of(g, items + 1, nitems, own, rank, true);
    for (u32 i = 1; i <= nitems; i++)
      for (u32 k = 0; k < 3; k++) {
        if (items[i].part[k] != PART_operand || !batch_is_mapped(b, own[items[i].at[k] - 1])) continue;
        if (items[i].kind != INDEX_int && items[i].kind != INDEX_array) return 0; /* parts at places of their own */
        u32 at = (u32)items[i].at[k] - 1;
        operands[at] = batch_aligned(b, operands[at], value_type(g, own[at])->rank, lane.joint);
        items[i].kind = INDEX_array;
        if (!operands[at]) return 0;
      }
    if (both) { /* operands stand in the order of the items */
      memmove(operands + 1, operands, sizeof *operands * count);
      if (!(operands[0] = batch_numbers(b, lane.joint))) return 0;
      count++;
      for (u32 i = 1; i <= nitems; i++)
        for (u32 k = 0; k < 3; k++)
          if (items[i].part[k] == PART_operand) items[i].at[k]++;
      items[0] = (IndexItem){.kind = INDEX_array, .part = {PART_operand}, .at = {1}};
    }
  }
  const IndexItem *from = differs && !both ? items + 1 : items;
  u32 n = nitems + (from == items), lanes = 0, joint = lane.at + 1;
  if (both) joint = 1;                             /* lanes, joint, rest */
  else if (differs) lanes = all.at, joint = all.at + 1; /* rest, lanes, joint, rest */
  else if (lane.apart) lanes = lane.joint, joint = 0;   /* joint, lanes, rest */
  if (update) {
    ArrayType tv = *value_type(g, v);
    ValueId value = batch_get(b, v);
    if (tv.rank > region) return 0;
    if (batch_is_mapped(b, v) || tv.rank) {
      value = batch_full(b, v);
      value = value ? batch_aligned(b, value, tv.rank, region) : 0;
      if (value) value = lanes_first(g, value, lanes, joint, &lane, true);
    }
    return value ? graph_update(g, x.op, base, operands, count, from, n, value) : 0;
  }
  ArrayType made;
  GuardDims dims;
  guard_dims_init(&dims, NULL, &g->sizes, "index", (Span){0});
  if (!graph_infer_index(g, &dims.base, base, operands, count, from, n, &made, NULL)) return 0;
  ValueId part = graph_index(g, base, operands, count, from, n, graph_type(g, &made));
  return part ? lanes_first(g, part, lanes, joint, &lane, false) : 0;
}

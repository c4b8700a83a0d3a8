/* masks.c — updates of the places where a mask is true become `where`.
 *
 * `x[m] = -y[m]` finds the places that are true, gathers there, computes, and scatters. As `where(m, -y, x)` it is one
 * loop with what is around it. So it is done where what is stored is made, by operations that cost little and cannot
 * fail, of numbers and of elements at the same places; what other places have is computed for nothing
 * (docs/notes/057-updates-by-masks.md). */
#include "jit/lower/compile.h"

enum { MASK_OPS = 8, MASK_DEPTH = 5 };

typedef struct Masked {
  Compiler *c;
  Graph *g;
  const ArrayType *type; /* of the array */
  ValueId places;        /* where the mask is true; 0: the mask itself was the index */
  ValueId mask;
  u32 ops;
} Masked;

static bool mask_cheap(u32 op, u32 dtype) {
  static const u16 ops[] = {OP_add, OP_subtract, OP_multiply, OP_negative, OP_abs, OP_minimum, OP_maximum,
                            OP_positive, OP_square, OP_bitwise_and, OP_bitwise_or, OP_bitwise_xor};
  for (u32 i = 0; i < COUNT_OF(ops); i++)
    if (ops[i] == op) return true;
  return op == OP_divide && dtype_kind(dtype) == DK_FLOAT;
}

/* What loops take, of a dtype that they compute in. */
static bool mask_takes(const Compiler *c, const ArrayType *t) {
  return type_in_loops(c, t) && dtype_compute(t->dtype) == t->dtype && dtype_kind(t->dtype) <= DK_FLOAT;
}

static bool mask_covers(const Masked *m, ValueId v) {
  const ArrayType *t = value_is_token(m->g, v) ? NULL : value_type(m->g, v);
  bool same = t && mask_takes(m->c, t) && t->rank == m->type->rank;
  for (u32 d = 0; same && d < t->rank; d++) same = size_same(&m->g->sizes, t->dims[d], m->type->dims[d]);
  return same;
}

static const IndexItem *mask_item(const Graph *g, const GraphNode *x) {
  const GraphAttr *a = x->attr_count == 1 ? node_attr(g, (NodeId)(x - g->nodes.data), 0) : NULL;
  return a && a->kind == ATTR_index && a->count == 1 && a->items[0].part[0] == PART_operand ? &a->items[0] : NULL;
}

/* Does the index take the places of the mask, or the mask itself, and nothing else? */
static bool mask_same_places(const Masked *m, const GraphNode *x, ValueId index) {
  const IndexItem *it = mask_item(m->g, x);
  return it && index == (m->places ? m->places : m->mask) && it->kind == (m->places ? INDEX_array : INDEX_mask);
}

/* What was computed of the elements at the places, of all elements; a number is what it is. 0: it cannot be. */
static ValueId mask_whole(Masked *m, ValueId v, u32 depth) {
  Graph *g = m->g;
  const ArrayType *t = value_is_token(g, v) ? NULL : value_type(g, v);
  NodeId n = value_node(g, v);
  if (!t || !mask_takes(m->c, t)) return 0;
  if (!t->rank) return v;
  if (!n || !depth || ++m->ops > MASK_OPS) return 0;
  const GraphNode *x = graph_node_at(g, n);
  if (x->kind == NODE_index && x->operand_count == 2 && mask_same_places(m, x, node_operand(g, n, 1))) {
    ValueId all = node_operand(g, n, 0);
    return mask_covers(m, all) ? all : 0;
  }
  const u32 op = x->op, dtype = t->dtype;
  if (x->kind != NODE_op || x->attr_count || x->operand_count < 1 || x->operand_count > 2 || !mask_cheap(op, dtype))
    return 0;
  bool both = x->operand_count == 2;
  ValueId second = both ? node_operand(g, n, 1) : 0, a = mask_whole(m, node_operand(g, n, 0), depth - 1),
          b = both && a ? mask_whole(m, second, depth - 1) : 0;
  if (!a || (both && !b)) return 0;
  ValueId out = both ? graph_op2(g, op, a, b) : graph_op1(g, op, a);
  return out && value_type(g, out)->dtype == dtype ? out : 0;
}

/* x[m] = v, x[m] op= v */
ValueId mask_update(Compiler *c, NodeId n) {
  Graph *g = c->g;
  const GraphNode node = *graph_node_at(g, n);
  const IndexItem *it = node.operand_count == 3 && c->device == DEV_CPU ? mask_item(g, &g->nodes.data[n]) : NULL;
  ValueId x = node_operand(g, n, 0);
  Masked m = {.c = c, .g = g, .type = value_type(g, x)};
  if (!it || !mask_takes(c, m.type) || !m.type->rank) return 0;
  m.mask = node_operand(g, n, 1);
  NodeId found = value_node(g, m.mask);
  if (it->kind == INDEX_array) {
    const GraphNode *k = found ? graph_node_at(g, found) : NULL;
    if (!k || k->kind != NODE_op || k->op != OP_nonzero || k->operand_count != 1 || m.type->rank != 1) return 0;
    m.places = m.mask;
    m.mask = node_operand(g, found, 0);
  } else if (it->kind != INDEX_mask || (!found && !value_node(g, x))) { /* both come from outside: few may be true */
    return 0;
  }
  const ArrayType *mask = value_type(g, m.mask);
  if (mask->dtype != DT_bool || !mask_covers(&m, m.mask)) return 0;
  ValueId v = mask_whole(&m, node_operand(g, n, 2), MASK_DEPTH);
  if (!v || value_type(g, v)->dtype != m.type->dtype) return 0;
  if (node.op != OP_none) v = mask_cheap(node.op, m.type->dtype) ? graph_op2(g, node.op, x, v) : 0;
  if (!v || value_type(g, v)->dtype != m.type->dtype) return 0;
  ValueId out = graph_op3(g, OP_where, m.mask, v, x);
  return out && value_type(g, out)->dtype == m.type->dtype ? out : 0;
}

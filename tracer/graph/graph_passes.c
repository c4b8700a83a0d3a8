/* graph_passes.c — rewrites of a graph that need no lowering, one driver for all.
 *
 *   fold      operations on constants; x * 1, reshapes to the same shape …; cond on a constant is inlined
 *   cse       the same pure operation on the same operands once per block; a check that was made before goes
 *   dce       nodes whose results nobody needs
 *   hoist     what stays the same in a loop moves before it (graph_hoist.c)
 *   captures  captured values that no block of a node uses
 *   asserts   what is asked of sizes known at run time is asked as soon as they are (graph_asserts.c)
 *
 * Each pass only removes nodes, moves them outwards or replaces a value by one that stands before it, so the rounds
 * end; the number of rounds is bounded besides. In debug builds the verifier runs between passes. */
#include <stdio.h>
#include <string.h>

#include "lang/halves.h"
#include "lang/mechanisms.h"
#include "tracer/graph/graph.h"

enum { ROUNDS = 6 };

typedef struct Pass {
  Graph *g;
  ValueMap to;    /* replacements of this pass */
  u32 *blocks, count;
  bool changed, failed;
} Pass;

/* A loop of the pass goes on, that many steps later. */
static bool passes_goes_on(Pass *p, u64 steps) {
  if (!toil(p->g->toil, steps)) p->failed = true;
  return !p->failed;
}

static ValueId find(const Pass *p, ValueId v) {
  for (ValueId next; (next = map_get(&p->to, v)) != v && toil(p->g->toil, 1);) v = next;
  return v;
}

bool graph_carries_size(const Graph *g, ValueId v) {
  for (u32 i = 0; i < g->sizes.syms.count; i++)
    if (g->sizes.syms.data[i].unbacked && g->sizes.syms.data[i].source == v) return true;
  return false;
}

static void replace(Pass *p, ValueId from, ValueId to) {
  to = find(p, to);
  if (from == to) return;
  u8 origin = p->g->values.data[to].origin;
  if (origin == GV_const || origin == GV_size) { /* a size is found where a value lies */
    if (!passes_goes_on(p, p->g->sizes.syms.count / 8) || graph_carries_size(p->g, from)) return;
  }
  if (!map_set(&p->to, from, to)) p->failed = true;
  p->changed = true;
}

static ValueId operand(const Pass *p, NodeId n, u32 i) { return find(p, node_operand(p->g, n, i)); }

/* ---- fold: numbers ---------------------------------------------------------------------------------- */

static bool int_op(u32 op, i64 a, i64 b, i64 *out) {
  switch (op) {
    case OP_add: *out = (i64)((u64)a + (u64)b); return true;
    case OP_subtract: *out = (i64)((u64)a - (u64)b); return true;
    case OP_multiply: *out = (i64)((u64)a * (u64)b); return true;
    case OP_negative: *out = (i64)(0 - (u64)a); return true;
    case OP_minimum: *out = a < b ? a : b; return true;
    case OP_maximum: *out = a > b ? a : b; return true;
    case OP_abs: *out = a < 0 ? (i64)(0 - (u64)a) : a; return true;
    default: return false;
  }
}

static bool compare_op(u32 op, bool less, bool equal, bool unordered, bool *out) {
  switch (op) {
    case OP_equal: *out = equal; return true;
    case OP_not_equal: *out = !equal; return true;
    case OP_less: *out = less; return true;
    case OP_less_equal: *out = less || equal; return true;
    case OP_greater: *out = !less && !equal && !unordered; return true;
    case OP_greater_equal: *out = !less && !unordered; return true;
    default: return false;
  }
}

#define FLOAT_OP(T, name)                                     \
  static bool name(u32 op, T a, T b, T *out) {                \
    switch (op) {                                             \
      case OP_add: *out = a + b; return true;                 \
      case OP_subtract: *out = a - b; return true;            \
      case OP_multiply: *out = a * b; return true;            \
      case OP_divide: *out = a / b; return true;              \
      case OP_negative: *out = -a; return true;               \
      default: return false;                                  \
    }                                                         \
  }
FLOAT_OP(f64, f64_op)
FLOAT_OP(f32, f32_op)

/* The result of an elementwise operation on numbers, where C's arithmetic has the language's bits. */
static bool fold_numbers(u32 op, u32 n, Value a, Value b, const ArrayType *t, Value *out) {
  bool weak, flag;
  u32 d = n == 2 ? dtype_promote_weak(a.dtype, a.flags & VF_WEAK, b.dtype, b.flags & VF_WEAK, &weak) : a.dtype;
  *out = (Value){.kind = V_NUM, .dtype = t->dtype, .flags = t->weak ? VF_WEAK : 0};
  if (op == OP_logical_not || op == OP_logical_and || op == OP_logical_or) {
    if (a.dtype != DT_bool || (n == 2 && b.dtype != DT_bool)) return false;
    out->i = op == OP_logical_not ? !a.i : op == OP_logical_and ? a.i && b.i : a.i || b.i;
    return true;
  }
  if (op == OP_divide) d = dtype_float_of(d);
  bool compares = compare_op(op, false, false, false, &flag);
  if (d == DT_bool && !compares) d = DT_i64;
  if ((d != DT_i64 && d != DT_f64 && dtype_compute(d) != DT_f32) || (!compares && d != t->dtype)) return false;
  a = num_convert_unchecked(a, d);
  if (n == 2) b = num_convert_unchecked(b, d);
  if (d == DT_i64) {
    if (compares) compare_op(op, a.i < b.i, a.i == b.i, false, &flag);
    else return int_op(op, a.i, b.i, &out->i);
  } else if (d == DT_f64) {
    if (compares) compare_op(op, a.f < b.f, a.f == b.f, a.f != a.f || b.f != b.f, &flag);
    else if (!f64_op(op, a.f, b.f, &out->f)) return false;
  } else {
    if (compares) compare_op(op, a.s < b.s, a.s == b.s, a.s != a.s || b.s != b.s, &flag);
    else if (!f32_op(op, a.s, b.s, &out->s)) return false;
    else if (d != DT_f32) out->s = half_round(d, out->s);
  }
  if (compares) out->i = flag;
  else if (d != DT_i64 && (d == DT_f64 ? out->f != out->f : out->s != out->s)) return false; /* NaN: left alone */
  return true;
}

/* ---- fold: operations ------------------------------------------------------------------------------- */

static bool passes_is_number(const Pass *p, ValueId v, f64 want, bool positive_zero) {
  Value x;
  if (!value_const(p->g, v, &x)) return false;
  return num_as_f64(x) == want && (!positive_zero || x.bits == 0);
}

/* The value that the node's only result is equal to, 0 when it has to be computed. */
static ValueId simpler(Pass *p, NodeId n) {
  Graph *g = p->g;
  const GraphNode *x = &g->nodes.data[n];
  const OpInfo *info = op_info(x->op);
  GraphArg args[OP_MAX_PARAMS];
  if (x->result_count != 1) return 0;
  ValueId r = x->result_first;
  TypeId type = g->values.data[r].type;
  const ArrayType *t = type_of(g, type);
  node_args(g, n, args);
  if (args[0].kind != ARG_value) return 0;
  ValueId a = find(p, args[0].value), b = args[1].kind == ARG_value ? find(p, args[1].value) : 0;
  bool same_a = type_same(g, g->values.data[a].type, type), same_b = b && type_same(g, g->values.data[b].type, type);
  bool floats = t && dtype_kind(t->dtype) >= DK_FLOAT, pairs = t && dtype_kind(t->dtype) == DK_COMPLEX;
  Value ca, cb = {0}, out;
  if (info->family == FAM_elementwise && x->attr_count == 0 && t && t->rank == 0 && !t->device &&
      value_const(g, a, &ca) && (x->operand_count == 1 || (x->operand_count == 2 && b && value_const(g, b, &cb))) &&
      fold_numbers(x->op, x->operand_count, ca, cb, t, &out))
    return graph_const(g, out);
  switch (x->op) {
    case OP_multiply:
      if (pairs) return 0; /* the other part of 1 is 0, by which an infinity is multiplied */
      if (same_a && passes_is_number(p, b, 1, false)) return a;
      return same_b && passes_is_number(p, a, 1, false) ? b : 0;
    case OP_divide:
      if (pairs) return 0; /* fallthrough */
    case OP_power: /* exact by definition (lang/math.loops); from derivatives of squares */
    case OP_pow: return same_a && passes_is_number(p, b, 1, false) ? a : 0;
    case OP_subtract: return same_a && passes_is_number(p, b, 0, true) ? a : 0;
    case OP_add:
      if (floats) return 0; /* -0.0 + 0.0 is 0.0 */
      if (same_a && passes_is_number(p, b, 0, false)) return a;
      return same_b && passes_is_number(p, a, 0, false) ? b : 0;
    case OP_positive:
    case OP_astype:
    case OP_reshape:
    case OP_ravel:
    case OP_broadcast_to:
    case OP_array: return same_a ? a : 0;
    case OP_transpose:
    case OP_permute_dims: {
      if (!t || !same_a || args[1].kind != ARG_attr || args[1].attr->kind != ATTR_ints)
        return t && t->rank < 2 && same_a ? a : 0;
      for (u32 d = 0; d < args[1].attr->count; d++)
        if (args[1].attr->ints[d] != d) return 0;
      return a;
    }
    case OP_logical_not: {
      NodeId inner = value_node(g, a);
      if (!inner || g->nodes.data[inner].kind != NODE_op || g->nodes.data[inner].op != OP_logical_not) return 0;
      ValueId y = operand(p, inner, 0);
      return type_same(g, g->values.data[y].type, type) ? y : 0;
    }
    case OP_where: {
      ValueId c = args[2].kind == ARG_value ? find(p, args[2].value) : 0;
      if (!c || !b || !value_const(g, a, &ca)) return 0;
      ValueId taken = ca.bits ? b : c;
      return type_same(g, g->values.data[taken].type, type) ? taken : 0;
    }
    default: return 0;
  }
}

/* a[:] = v of a's own type is v, where v is computed for it: two variables of a loop that are one array would have
 * to be told apart by copies. 0: it is another update. */
static ValueId whole_update(Pass *p, NodeId n) {
  Graph *g = p->g;
  const GraphNode *x = &g->nodes.data[n];
  const GraphAttr *a = &g->attrs.data[x->attr_first];
  if (x->op || x->operand_count != 2) return 0;
  for (u32 i = 0; i < a->count; i++) {
    const IndexItem *it = &a->items[i];
    if (it->kind != INDEX_ellipsis && (it->kind != INDEX_slice || it->part[0] | it->part[1] | it->part[2])) return 0;
  }
  ValueId v = operand(p, n, 1);
  NodeId made = value_node(g, v);
  bool own = made && g->nodes.data[made].kind == NODE_op &&
             op_info(g->nodes.data[made].op)->family == FAM_elementwise && g->nodes.data[made].block == x->block;
  return own && type_same(g, g->values.data[v].type, g->values.data[x->result_first].type) ? v : 0;
}

/* reshape(reshape(x)) and broadcast_to(broadcast_to(x)) read x. */
static void shorten_chain(Pass *p, NodeId n) {
  Graph *g = p->g;
  const GraphNode *x = &g->nodes.data[n];
  if (x->op != OP_reshape && x->op != OP_broadcast_to) return;
  NodeId inner = value_node(g, operand(p, n, 0));
  if (!inner || g->nodes.data[inner].kind != NODE_op) return;
  u32 op = g->nodes.data[inner].op;
  if (op != x->op && !(x->op == OP_reshape && op == OP_ravel)) return;
  graph_set_operand(g, n, 0, operand(p, inner, 0));
  p->changed = true;
}

/* ---- fold: control ----------------------------------------------------------------------------------- */

/* A cond on a constant becomes the taken block, if that block ends by giving its results. */
static bool inline_cond(Pass *p, NodeId n) {
  Graph *g = p->g;
  Value c;
  if (!value_const(g, operand(p, n, 0), &c) || g->nodes.data[n].mask) return false;
  BlockId taken = g->nodes.data[n].sub[c.bits ? 0 : 1];
  if (g->blocks.data[taken].term != TERM_yield) return false;
  ValueMap map;
  u32 first, captures = node_captures(g, n, &first), results = g->nodes.data[n].result_count;
  /* a weak result beside a strong one stays, and a known number that is found as a size (replace) */
  for (u32 i = 0; i < results; i++) {
    ValueId r = g->nodes.data[n].result_first + i, v = block_result(g, taken, i), gives = v;
    for (u32 k = 0; k < captures; k++)
      if (g->blocks.data[taken].captures.data[k].inner == v) gives = operand(p, n, first + k);
    u8 origin = g->values.data[gives].origin;
    if (!type_same(g, g->values.data[r].type, g->values.data[v].type)) return false;
    if ((origin == GV_const || origin == GV_size) && graph_carries_size(g, r)) return false;
  }
  map_init(&map, g->alloc);
  bool ok = true;
  for (u32 i = 0; i < captures && ok; i++)
    ok = map_set(&map, g->blocks.data[taken].captures.data[i].inner, operand(p, n, first + i));
  OriginId origin = g->origin;
  graph_at(g, n);
  ok = ok && graph_inline(g, taken, &map);
  g->origin = origin;
  for (u32 i = 0; i < results && ok; i++)
    replace(p, g->nodes.data[n].result_first + i, map_get(&map, block_result(g, taken, i)));
  map_free(&map);
  p->failed |= g->failed || !ok;
  if (ok) graph_unlink(g, n);
  return ok;
}

/* A result for which both blocks give the same captured value is that value. */
static void equal_arms(Pass *p, NodeId n) {
  Graph *g = p->g;
  const GraphNode *x = &g->nodes.data[n];
  const GraphBlock *a = &g->blocks.data[x->sub[0]], *b = &g->blocks.data[x->sub[1]];
  u32 first, captures = node_captures(g, n, &first);
  if (a->term != TERM_yield || b->term != TERM_yield) return;
  for (u32 i = 0; i < x->result_count; i++) {
    ValueId va = find(p, block_result(g, x->sub[0], i)), vb = find(p, block_result(g, x->sub[1], i)),
        r = x->result_first + i;
    ValueId same = va == vb ? va : 0; /* a constant */
    for (u32 k = 0; k < captures && !same; k++)
      if (a->captures.data[k].inner == va && b->captures.data[k].inner == vb) same = operand(p, n, first + k);
    if (same && same != r && type_same(g, g->values.data[same].type, g->values.data[r].type)) replace(p, r, same);
  }
}

static void fold(Pass *p) {
  Graph *g = p->g;
  for (u32 i = 0; i < p->count && !p->failed; i++) {
    BlockId b = p->blocks[i];
    for (NodeId n = g->blocks.data[b].first, next;
         n && passes_goes_on(p, 1 + g->nodes.data[n].operand_count); n = next) {
      next = g->nodes.data[n].next;
      u8 kind = g->nodes.data[n].kind;
      if (kind == NODE_op || kind == NODE_update) {
        if (kind == NODE_op) shorten_chain(p, n);
        ValueId v = kind == NODE_op ? simpler(p, n) : whole_update(p, n), r = g->nodes.data[n].result_first;
        if (v && find(p, v) != r) replace(p, r, v);
      } else if (g->nodes.data[n].kind == NODE_cond) {
        if (!inline_cond(p, n)) equal_arms(p, n);
      }
    }
  }
}

/* ---- cse --------------------------------------------------------------------------------------------- */

static bool is_pure(const Graph *g, NodeId n) {
  const GraphNode *x = &g->nodes.data[n];
  if (x->kind == NODE_index || x->kind == NODE_update) return true;
  return x->kind == NODE_op && op_is_pure(x->op) && !node_is_effect(g, n);
}

static bool same_attr(const GraphAttr *a, const GraphAttr *b) {
  if (a->kind != b->kind || a->param != b->param || a->count != b->count || a->pairs != b->pairs) return false;
  switch (a->kind) {
    case ATTR_text: return memcmp(a->text, b->text, a->count) == 0;
    case ATTR_ints:
    case ATTR_dims: return a->count == 0 || memcmp(a->ints, b->ints, sizeof *a->ints * a->count) == 0;
    case ATTR_index:
      for (u32 i = 0; i < a->count; i++) {
        const IndexItem *x = &a->items[i], *y = &b->items[i];
        if (x->kind != y->kind) return false;
        for (u32 k = 0; k < 3; k++)
          if (x->part[k] != y->part[k] || (x->part[k] != PART_none && x->at[k] != y->at[k])) return false;
      }
      return true;
    case ATTR_hole:
    case ATTR_nil:
    case ATTR_list: return true;
    default: return a->i == b->i;
  }
}

static bool same_node(const Pass *p, NodeId a, NodeId b) {
  const Graph *g = p->g;
  const GraphNode *x = &g->nodes.data[a], *y = &g->nodes.data[b];
  if (x->kind != y->kind || x->op != y->op || x->operand_count != y->operand_count || x->attr_count != y->attr_count ||
      x->result_count != y->result_count)
    return false;
  for (u32 i = 0; i < x->operand_count; i++)
    if (operand(p, a, i) != operand(p, b, i)) return false;
  for (u32 i = 0; i < x->attr_count; i++)
    if (!same_attr(node_attr(g, a, i), node_attr(g, b, i))) return false;
  for (u32 i = 0; i < x->result_count; i++)
    if (g->values.data[x->result_first + i].type != g->values.data[y->result_first + i].type) return false;
  return true;
}

static u32 hash_node(const Pass *p, NodeId n) {
  const GraphNode *x = &p->g->nodes.data[n];
  u32 h = 2166136261u ^ x->kind ^ (u32)x->op << 8;
  for (u32 i = 0; i < x->operand_count; i++) h = (h ^ operand(p, n, i)) * 16777619u;
  for (u32 i = 0; i < x->attr_count; i++)
    h = (h ^ node_attr(p->g, n, i)->kind ^ node_attr(p->g, n, i)->param << 4) * 16777619u;
  return h ^ h >> 15;
}

static void cse(Pass *p) {
  Graph *g = p->g;
  u32 cap = 64;
  while (cap < g->nodes.count * 2) cap *= 2;
  u32 *slots = mem_alloc(g->alloc, sizeof *slots * cap),
      *used = mem_alloc(g->alloc, sizeof *used * (g->nodes.count + 1));
  for (u32 i = 0; i < p->count && slots && used; i++) {
    u32 nused = 0;
    if (i == 0) memset(slots, 0, sizeof *slots * cap);
    for (NodeId n = g->blocks.data[p->blocks[i]].first, next;
         n && passes_goes_on(p, 1 + g->nodes.data[n].operand_count); n = next) {
      next = g->nodes.data[n].next;
      bool check = g->nodes.data[n].kind == NODE_check;
      if (!check && !is_pure(g, n)) continue;
      u32 at = hash_node(p, n) & (cap - 1);
      while (slots[at] && !same_node(p, slots[at], n) && passes_goes_on(p, 1)) at = (at + 1) & (cap - 1);
      if (p->failed) break;
      if (!slots[at]) {
        slots[at] = n;
        used[nused++] = at;
      } else if (check) {
        graph_unlink(g, n);
        p->changed = true;
      } else {
        g->nodes.data[slots[at]].total &= g->nodes.data[n].total;
        for (u32 k = 0; k < g->nodes.data[n].result_count; k++)
          replace(p, g->nodes.data[n].result_first + k, g->nodes.data[slots[at]].result_first + k);
        graph_unlink(g, n);
      }
    }
    while (nused > 0) slots[used[--nused]] = 0; /* each block by itself */
  }
  p->failed |= !slots || !used;
  mem_free(g->alloc, slots, sizeof *slots * cap);
  mem_free(g->alloc, used, sizeof *used * (g->nodes.count + 1));
}

/* ---- dce --------------------------------------------------------------------------------------------- */

/* May its kernel refuse numbers that nothing else looks at, sizes too? How often `repeat` repeats is known unless it is
 * an operand. */
static bool may_raise(Graph *g, NodeId n) {
  const GraphNode *x = &g->nodes.data[n];
  for (u32 k = 0; k < x->result_count; k++) {
    const ArrayType *t = value_type(g, x->result_first + k);
    for (u32 d = 0; d < t->rank; d++)
      if (size_is_unbacked(&g->sizes, t->dims[d]) && size_prove(&g->sizes, REL_le, 0, t->dims[d]) != TRUTH_always)
        return true;
  }
  return op_info(x->op)->effect == EFF_raises && (x->op != OP_repeat || x->operand_count > 1);
}

/* Nothing in it can leave, fail a check, do something, or go on for ever. */
static bool removable(Graph *g, NodeId n) {
  const GraphNode *x = &g->nodes.data[n];
  if (node_is_effect(g, n)) return false;
  switch (x->kind) {
    case NODE_op: return is_pure(g, n) && !may_raise(g, n);
    case NODE_index:
    case NODE_update: return is_pure(g, n);
    case NODE_hook: return true;
    case NODE_cond:
    case NODE_scan:
    case NODE_ascan:
    case NODE_custom:
    case NODE_checkpoint:
      for (u32 s = 0; s < node_subs(g, n); s++) {
        const GraphBlock *b = &g->blocks.data[x->sub[s]];
        if (b->term == TERM_exit || b->term == TERM_break || (b->term == TERM_next && x->kind == NODE_cond))
          return false;
        for (NodeId k = b->first; k; k = g->nodes.data[k].next)
          if (!removable(g, k)) return false; /* depth: GRAPH_MAX_DEPTH */
      }
      return true;
    default: return false;
  }
}

static void release(void *ctx, u32 v) {
  GraphUses *u = ctx;
  if (v < u->values && u->count[v]) u->count[v]--;
}

static void dce(Pass *p) {
  Graph *g = p->g;
  GraphUses u;
  if (!MECHANISM(&g->guards, dead_code)) return;
  if (!graph_uses(g, g->alloc, &u)) {
    p->failed = true;
    return;
  }
  for (u32 i = p->count; i-- > 0;) /* inner blocks first, each from its end */
    for (NodeId n = g->blocks.data[p->blocks[i]].last, prev;
         n && passes_goes_on(p, 1 + g->nodes.data[n].operand_count); n = prev) {
      const GraphNode *x = &g->nodes.data[n];
      prev = x->prev;
      bool used = x->result_count == 0;
      for (u32 k = 0; k < x->result_count; k++) used |= use_count(&u, x->result_first + k) > 0;
      if (used || !removable(g, n)) continue;
      for (u32 k = 0; k < x->operand_count; k++) release(&u, g->operands.data[x->operand_first + k]);
      node_size_values(g, n, release, &u);
      graph_unlink(g, n);
      p->changed = true;
    }
  graph_uses_free(&u);
}

/* ---- captures ---------------------------------------------------------------------------------------- */

static void captures(Pass *p) {
  Graph *g = p->g;
  GraphUses u;
  if (p->count == 1) return; /* nothing has blocks */
  if (!graph_uses(g, g->alloc, &u)) {
    p->failed = true;
    return;
  }
  for (u32 i = p->count; i-- > 0;)
    for (NodeId n = g->blocks.data[p->blocks[i]].first; n && passes_goes_on(p, 1); n = g->nodes.data[n].next) {
      u32 first, count = node_captures(g, n, &first);
      for (u32 c = count; c-- > 0;) {
        u32 uses = 0;
        for (u32 s = 0; s < node_subs(g, n) && passes_goes_on(p, 1 + g->nodes.data[n].operand_count / 8); s++)
          uses += use_count(&u, g->blocks.data[g->nodes.data[n].sub[s]].captures.data[c].inner);
        if (uses) continue;
        graph_drop_capture(g, n, c);
        p->changed = true;
      }
    }
  graph_uses_free(&u);
}

static void hoist(Pass *p) {
  if (!graph_hoist(p->g, p->blocks, p->count, &p->changed)) p->failed = true;
}

static void asserts(Pass *p) {
  if (!graph_asserts(p->g, p->blocks, p->count, &p->changed)) p->failed = true;
}

/* ---- the driver -------------------------------------------------------------------------------------- */

/* what no longer stands there, or is no longer captured, hides nothing from fold and cse */
enum { ALL_PASSES = 63, LATER_PASSES = ALL_PASSES & ~3 };

static const struct {
  const char *name;
  void (*run)(Pass *p);
  u32 wakes; /* which may find more once it found something */
} passes[] = {{"fold", fold, ALL_PASSES}, {"cse", cse, ALL_PASSES}, {"dce", dce, LATER_PASSES},
              {"hoist", hoist, ALL_PASSES},
              {"captures", captures, LATER_PASSES}, {"asserts", asserts, ALL_PASSES}};
_Static_assert(COUNT_OF(passes) == 6, "a bit each");

#if defined(__SANITIZE_ADDRESS__) || defined(WEFT_DEBUG)
static bool still_valid(Graph *g, const char *pass) {
  Buf b;
  buf_init(&b, g->alloc);
  bool ok = graph_verify(g, &b);
  if (!ok) g->defect = arena_printf(&g->arena, "after %s: %s", pass, buf_text(&b));
  buf_free(&b);
  return ok;
}
#else
static bool still_valid(Graph *g, const char *pass) {
  (void)g;
  (void)pass;
  return true;
}
#endif

static bool run_pass(Graph *g, u32 i, bool *changed) {
  Pass p = {.g = g};
  map_init(&p.to, g->alloc);
  bool ok = graph_blocks(g, g->alloc, &p.blocks, &p.count), endless = toil_pass(g->toil);
  if (endless) toil_forever(g->toil);
  if (ok) {
    passes[i].run(&p);
    if (p.to.count && !p.failed) p.failed = !graph_replace(g, p.to.to, p.to.count);
    mem_free(g->alloc, p.blocks, sizeof *p.blocks * p.count);
  }
  map_free(&p.to);
  *changed |= p.changed;
  return ok && !p.failed && !g->failed && still_valid(g, passes[i].name);
}

/* By turns, until none of them may find anything since the last one that did; at most ROUNDS times each. */
bool graph_simplify(Graph *g) {
  BlockId at = g->at;
  NodeId before = g->before;
  bool ok = g->simple || still_valid(g, "recording");
  for (u32 i = 0, due = ALL_PASSES; ok && !g->simple; i++) {
    u32 k = i % COUNT_OF(passes);
    bool changed = false;
    if (due >> k & 1) ok = run_pass(g, k, &changed);
    due &= ~(1u << k);
    if (changed) due |= passes[k].wakes;
    g->simple = !due || i + 1 == ROUNDS * COUNT_OF(passes);
  }
  g->at = at;
  g->before = before;
  return ok;
}

/* ---- inputs ------------------------------------------------------------------------------------------- */

typedef struct Needed {
  const Graph *g;
  u8 *syms;
} Needed;

static void need_sym(void *ctx, u32 sym) { ((Needed *)ctx)->syms[sym] = 1; }
static void need_dim(void *ctx, Dim d) { size_symbols(&((Needed *)ctx)->g->sizes, d, need_sym, ctx); }

static void need_type(Needed *n, ValueId v) {
  const ArrayType *t = value_type(n->g, v);
  for (u32 d = 0; t && d < t->rank; d++) need_dim(n, t->dims[d]);
}

static void need_node(Needed *n, NodeId id) {
  const Graph *g = n->g;
  const GraphNode *x = &g->nodes.data[id];
  for (u32 i = 0; i < x->operand_count; i++) {
    const GraphValue *v = &g->values.data[g->operands.data[x->operand_first + i]];
    if (v->origin == GV_size) need_dim(n, v->dim);
    need_type(n, g->operands.data[x->operand_first + i]);
  }
  for (u32 i = 0; i < x->result_count; i++) need_type(n, x->result_first + i);
  for (u32 i = 0; i < x->attr_count; i++) {
    const GraphAttr *a = &g->attrs.data[x->attr_first + i];
    if (a->kind == ATTR_dim) need_dim(n, a->dim);
    for (u32 k = 0; a->kind == ATTR_dims && k < a->count; k++)
      if (a->ints[k] != DIM_INFER) need_dim(n, a->ints[k]);
    for (u32 k = 0; a->kind == ATTR_index && k < a->count; k++)
      for (u32 part = 0; part < 3; part++)
        if (a->items[k].part[part] == PART_dim) need_dim(n, a->items[k].at[part]);
  }
  if (x->kind == NODE_scan) need_dim(n, x->length);
}


static void need_value(void *ctx, u32 v) {
  Needed *n = ctx;
  if (n->g->values.data[v].origin == GV_size) need_dim(n, n->g->values.data[v].dim);
}

/* Takes unused ones out of the root's parameters, the graph's inputs and GuardSet.inputs. */
static bool drop_inputs(Graph *g) {
  GraphUses u;
  u32 nguards = g->guards.inputs.count, *blocks, count;
  u8 *used = mem_alloc_zero(g->alloc, g->exits.exits.count + 1), *keep = mem_alloc_zero(g->alloc, nguards + 1);
  Needed n = {g, mem_alloc_zero(g->alloc, g->sizes.syms.count + 1)};
  bool ok = used && keep && n.syms && graph_used_exits(g, used) && graph_uses(g, g->alloc, &u);
  if (ok && !graph_blocks(g, g->alloc, &blocks, &count)) {
    graph_uses_free(&u);
    ok = false;
  }
  if (!ok) goto done;
  for (u32 i = 0; i < count; i++) {
    const GraphBlock *b = &g->blocks.data[blocks[i]];
    for (NodeId k = b->first; k; k = g->nodes.data[k].next) need_node(&n, k);
    for (u32 k = 0; k < b->term_count; k++) need_value(&n, g->operands.data[b->term_first + k]);
  }
  for (u32 e = 0; e < g->exits.exits.count; e++) {
    if (!used[e]) continue;
    exit_values(&g->exits, e, need_value, &n);
    exit_sizes(&g->exits, e, need_dim, &n);
  }
  GraphBlock *root = &g->blocks.data[1];
  u32 kept = 0;
  for (u32 i = 0; i < g->inputs.count; i++) {
    GraphInput in = g->inputs.data[i];
    if (use_count(&u, in.value) == 0 && !in.explicit_arg && in.input != UINT32_MAX) continue;
    if (in.input != UINT32_MAX) keep[in.input] = 1;
    root->params.data[kept] = in.value;
    g->inputs.data[kept++] = in;
  }
  root->params.count = g->inputs.count = kept;
  u32 to = 0;
  for (u32 i = 0; i < nguards; i++) {
    GuardInput in = g->guards.inputs.data[i];
    if (!keep[i] && !(in.form == IN_size && in.sym < g->sizes.syms.count && n.syms[in.sym])) continue;
    for (u32 k = 0; k < kept; k++)
      if (g->inputs.data[k].input == i) g->inputs.data[k].input = to;
    g->guards.inputs.data[to++] = in;
  }
  g->guards.inputs.count = to;
  graph_uses_free(&u);
  mem_free(g->alloc, blocks, sizeof *blocks * count);
done:
  mem_free(g->alloc, used, g->exits.exits.count + 1);
  mem_free(g->alloc, keep, nguards + 1);
  mem_free(g->alloc, n.syms, g->sizes.syms.count + 1);
  return ok;
}

bool graph_prune(Graph *g) { return graph_simplify(g) && drop_inputs(g); }

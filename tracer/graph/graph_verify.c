/* graph_verify.c — the rules a graph obeys, stated apart from the builder: scopes and order of definitions, types
 * by the rules of lang/ops, blocks and terminators of control nodes, the token, what exits may name (see graph.h). */
#include <string.h>

#include "lang/mechanisms.h"
#include "tracer/graph/graph.h"

typedef struct Verifier {
  Graph *g;
  Buf *out;
  u32 errors;
  u8 *defined; /* by ValueId: its definition has been passed */
  u8 *spent;   /* tokens that were used */
  BlockId block; /* being checked */
  NodeId node;
} Verifier;

static void wrong(Verifier *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void wrong(Verifier *v, const char *fmt, ...) {
  va_list ap;
  if (v->errors++ >= 50) return; /* enough to see what is wrong */
  if (v->node) {
    node_print(v->g, v->node, v->out);
    buf_puts(v->out, ": ");
  } else if (v->block) {
    buf_printf(v->out, "block %u: ", v->block);
  }
  va_start(ap, fmt);
  buf_vprintf(v->out, fmt, ap);
  va_end(ap);
  buf_putc(v->out, '\n');
}

static bool known_value(Verifier *v, ValueId x) { return x && x < v->g->values.count && v->g->values.data[x].type; }

/* Operands and terminators: of this block, and defined before. */
static bool usable(Verifier *v, ValueId x, BlockId b) {
  if (!known_value(v, x)) {
    wrong(v, "value %u does not exist", x);
    return false;
  }
  BlockId home = value_block(v->g, x);
  u8 origin = v->g->values.data[x].origin;
  if (origin == GV_const || origin == GV_size) return true;
  if (home != b) {
    if (MECHANISM(&v->g->guards, verifier_blocks)) wrong(v, "%%%u belongs to another block and is not lifted", x);
    return false;
  }
  if (!v->defined[x]) {
    wrong(v, "%%%u is used before it is defined", x);
    return false;
  }
  if (value_is_token(v->g, x)) {
    if (v->spent[x]) wrong(v, "the token !%u is used twice", x);
    v->spent[x] = 1;
  }
  return true;
}

static TypeId type_at(Verifier *v, ValueId x) { return v->g->values.data[x].type; }

static void same_type(Verifier *v, TypeId have, TypeId want, const char *what, u32 i) {
  if (type_fits(v->g, have, want)) return;
  wrong(v, "%s %u has another type", what, i);
}

static bool carries_axis(const Graph *g, ValueId x, u32 axis) {
  u32 sym;
  if (!size_is_sym(&g->sizes, value_type(g, x)->dims[axis], &sym)) return false;
  return g->sizes.syms.data[sym].unbacked && g->sizes.syms.data[sym].source == x &&
         g->sizes.syms.data[sym].axis == axis;
}

/* What flows from one value to the other: sizes that either carries itself may differ. */
static void same_flow(Verifier *v, ValueId from, ValueId to, const char *what, u32 i) {
  const Graph *g = v->g;
  if (type_fits(v->g, type_at(v, from), type_at(v, to))) return;
  const ArrayType *a = type_of(g, type_at(v, from)), *b = type_of(g, type_at(v, to));
  bool fits = a && b && a->dtype == b->dtype && a->rank == b->rank && a->device == b->device;
  for (u32 d = 0; fits && d < a->rank; d++)
    fits = size_same(&v->g->sizes, a->dims[d], b->dims[d]) || carries_axis(g, from, d) || carries_axis(g, to, d);
  if (!fits) wrong(v, "%s %u has another type", what, i);
}

static bool is_scalar(Verifier *v, ValueId x, DTypeKind kind) {
  const ArrayType *t = type_of(v->g, type_at(v, x));
  return t && t->rank == 0 && dtype_kind(t->dtype) == kind;
}

/* ---- exits ----------------------------------------------------------------------------------------- */

typedef struct ExitCheck {
  Verifier *v;
  BlockId block; /* where it is taken; its parameters and what is defined around it are visible */
  u32 exit;
} ExitCheck;

static void check_exit_value(void *ctx, u32 x) {
  ExitCheck *c = ctx;
  Verifier *v = c->v;
  if (!known_value(v, x)) {
    wrong(v, "exit %u names value %u, which does not exist", c->exit, x);
    return;
  }
  BlockId home = value_block(v->g, x);
  if (!home) return;
  BlockId b = c->block;
  while (b && b != home) b = v->g->blocks.data[b].parent;
  if (!b || !v->defined[x]) wrong(v, "exit %u names %%%u, which is not there when it is taken", c->exit, x);
}

static void check_exit(Verifier *v, u32 exit, BlockId at) {
  const ExitTable *t = &v->g->exits;
  if (exit >= t->exits.count) {
    wrong(v, "exit %u does not exist", exit);
    return;
  }
  ExitCheck c = {v, at, exit};
  exit_values(t, exit, check_exit_value, &c);
  const Exit *e = &t->exits.data[exit];
  if (e->frame_count == 0) wrong(v, "exit %u has no frame", exit);
  for (u32 i = 0; i < e->frame_count; i++)
    if (t->frames.data[e->frame_first + i].frame >= v->g->frames.count)
      wrong(v, "exit %u names a frame that does not exist", exit);
}

/* ---- terminators ------------------------------------------------------------------------------------ */

/* The loop that `next` and `break` of this block belong to. */
static NodeId nearest_loop(Verifier *v, BlockId b) {
  for (; b; b = v->g->blocks.data[b].parent) {
    NodeId n = v->g->blocks.data[b].node;
    if (!n) return 0;
    const GraphNode *x = &v->g->nodes.data[n];
    if ((x->kind == NODE_while && x->sub[1] == b) || (x->kind == NODE_scan && x->sub[0] == b)) return n;
    if (x->kind != NODE_cond) return 0;
  }
  return 0;
}

static void check_term(Verifier *v, BlockId id) {
  Graph *g = v->g;
  const GraphBlock *b = &g->blocks.data[id];
  NodeId n = b->node;
  NodeKind kind = n ? g->nodes.data[n].kind : NODE_none;
  for (u32 i = 0; i < b->term_count; i++)
    if (!usable(v, g->operands.data[b->term_first + i], id)) return;
  switch (b->term) {
    case TERM_none: wrong(v, "the block does not end"); return;
    case TERM_exit:
      if (b->term_count) wrong(v, "an exit has values of its own");
      check_exit(v, b->exit, id);
      return;
    case TERM_yield: {
      if (id == 1) {
        wrong(v, "the root ends by an exit");
        return;
      }
      if (kind == NODE_scan || (kind == NODE_while && g->nodes.data[n].sub[1] == id)) {
        wrong(v, "the body of a loop ends by next, break or exit");
        return;
      }
      if (kind == NODE_while) {
        if (b->term_count != 1 || !is_scalar(v, g->operands.data[b->term_first], DK_BOOL))
          wrong(v, "a loop's condition is one bool of rank 0");
        return;
      }
      /* shared: checked at its calls */
      if (b->shared || (kind == NODE_custom && g->nodes.data[n].sub[0] != id)) return;
      u32 results = g->nodes.data[n].result_count;
      if (b->term_count != results) {
        wrong(v, "yields %u values for %u results", b->term_count, results);
        return;
      }
      for (u32 i = 0; i < results; i++) /* an associative scan's body gives what its left parameters are */
        same_flow(v, g->operands.data[b->term_first + i],
                  kind == NODE_ascan && i < b->params.count ? b->params.data[i] : g->nodes.data[n].result_first + i,
                  "yielded value", i);
      return;
    }
    default: {
      NodeId loop = nearest_loop(v, id);
      if (!loop) {
        wrong(v, "next or break outside a loop");
        return;
      }
      const GraphNode *x = &g->nodes.data[loop];
      u32 stacked = x->kind == NODE_scan && b->term == TERM_next ? x->result_count - x->carried : 0;
      if (x->kind == NODE_scan && b->term == TERM_break && x->result_count > x->carried)
        wrong(v, "break in a scan with stacked results");
      if (b->term_count != x->carried + stacked) {
        wrong(v, "%u values for a loop that carries %u and stacks %u", b->term_count, x->carried, stacked);
        return;
      }
      for (u32 i = 0; i < x->carried; i++)
        same_flow(v, g->operands.data[b->term_first + i], x->result_first + i, "carried value", i);
      for (u32 i = 0; i < stacked; i++) {
        const ArrayType *item = type_of(g, type_at(v, g->operands.data[b->term_first + x->carried + i]));
        const ArrayType *all = type_of(g, type_at(v, x->result_first + x->carried + i));
        bool ok = item && all && all->rank == item->rank + 1 && all->dtype == item->dtype &&
                  size_same(&g->sizes, all->dims[0], x->length);
        for (u32 d = 0; ok && d < item->rank; d++) ok = size_same(&g->sizes, all->dims[d + 1], item->dims[d]);
        if (!ok) wrong(v, "stacked item %u has another type", i);
      }
    }
  }
}

/* ---- nodes ------------------------------------------------------------------------------------------ */

static void check_types(Verifier *v, const GraphNode *x, const ArrayType *types, u32 count) {
  if (count != x->result_count) {
    wrong(v, "has %u results, its rule gives %u", x->result_count, count);
    return;
  }
  for (u32 i = 0; i < count; i++) {
    ArrayType want_type = types[i];
    const ArrayType *is = type_of(v->g, type_at(v, x->result_first + i));
    for (u32 d = 0; is && d < want_type.rank && d < is->rank; d++)
      /* its symbol, or what that was found equal to */
      if (want_type.dims[d] == DIM_FRESH) want_type.dims[d] = is->dims[d];
    TypeId t = graph_type(v->g, &want_type);
    /* a saved number may be weak, as what was saved was; `positive` makes a number weak where the language says so */
    bool item = (x->kind == NODE_index || (x->kind == NODE_op && x->op == OP_positive)) && types[i].rank == 0;
    if (t && !type_same(v->g, t, type_at(v, x->result_first + i)) &&
        !(item && type_fits(v->g, t, type_at(v, x->result_first + i)))) {
      Buf want;
      buf_init(&want, v->g->alloc);
      type_print(v->g, t, &want);
      wrong(v, "result %u should have type %s", i, buf_text(&want));
      buf_free(&want);
    }
  }
}

static void check_op(Verifier *v, const GraphNode *x) {
  Graph *g = v->g;
  if (x->op == OP_none || x->op >= OP_COUNT) {
    wrong(v, "no such operation");
    return;
  }
  const OpInfo *info = op_info(x->op);
  GraphArg args[OP_MAX_PARAMS];
  u32 bound = 0;
  bind_args(x->op, g->operands.data + x->operand_first, x->operand_count, g->attrs.data + x->attr_first,
            x->attr_count, args);
  for (u32 p = 0; p < info->nparams; p++) {
    bound += args[p].kind == ARG_value ? 1 : args[p].kind == ARG_list ? args[p].count : 0;
    if (args[p].kind == ARG_hole && !info->params[p].has_default && !info->params[p].rest)
      wrong(v, "parameter %u is not given", p);
    if (args[p].kind == ARG_list && args[p].attr && args[p].attr->count != args[p].count)
      wrong(v, "a list is shorter than it says");
  }
  for (u32 i = 0; i < x->attr_count; i++) {
    const GraphAttr *a = &g->attrs.data[x->attr_first + i];
    if (a->param >= info->nparams || a->kind == ATTR_index || a->kind >= ATTR_COUNT)
      wrong(v, "an attribute names no parameter");
    for (u32 k = 0; k < i; k++)
      if (g->attrs.data[x->attr_first + k].param == a->param) wrong(v, "a parameter has two attributes");
  }
  if (bound != x->operand_count) {
    wrong(v, "%u operands are bound to no parameter", x->operand_count - bound);
    return;
  }
  ArrayType types[16];
  u32 count = COUNT_OF(types);
  RuleError err;
  GuardDims dims;
  guard_dims_init(&dims, NULL, &g->sizes, NULL, (Span){0});
  if (graph_infer(g, &dims.base, x->op, g->operands.data + x->operand_first, x->operand_count,
                  g->attrs.data + x->attr_first, x->attr_count, types, &count, &err))
    check_types(v, x, types, count);
  else if (err.kind != EK_unsupported)
    wrong(v, "%s", err.text);
}

static void check_index(Verifier *v, const GraphNode *x) {
  Graph *g = v->g;
  const GraphAttr *a = x->attr_count == 1 ? &g->attrs.data[x->attr_first] : NULL;
  u32 next = 1, last = x->operand_count - (x->kind == NODE_update);
  if (!a || a->kind != ATTR_index || x->operand_count < 1u + (x->kind == NODE_update) || x->result_count != 1) {
    wrong(v, "needs an index, an array and one result");
    return;
  }
  bool ellipsis = false;
  for (u32 i = 0; i < a->count; i++) {
    const IndexItem *it = &a->items[i];
    u32 parts = it->kind == INDEX_slice ? 3 : it->kind == INDEX_newaxis || it->kind == INDEX_ellipsis ? 0 : 1;
    if (it->kind == INDEX_ellipsis && ellipsis) wrong(v, "two ellipses");
    ellipsis |= it->kind == INDEX_ellipsis;
    for (u32 k = 0; k < parts; k++) {
      if (it->part[k] != PART_operand) {
        if (it->kind != INDEX_slice && it->part[k] == PART_none) wrong(v, "an index item is empty");
        if (it->part[k] == PART_dim && (it->kind == INDEX_array || it->kind == INDEX_mask))
          wrong(v, "an index array is no operand");
        continue;
      }
      if (it->at[k] != next++ || it->at[k] >= last) {
        wrong(v, "the operands of index items are not in order");
        return;
      }
      const ArrayType *t = type_of(g, type_at(v, g->operands.data[x->operand_first + it->at[k]]));
      if (it->kind == INDEX_mask) {
        if (t->dtype != DT_bool) wrong(v, "a mask is not bool");
      } else if ((it->kind != INDEX_array && t->rank) || (dtype_kind(t->dtype) != DK_INT && t->dtype != DT_bool)) {
        wrong(v, "an index is no integer");
      }
    }
  }
  if (next != last) {
    wrong(v, "an operand belongs to no index item");
    return;
  }
  ValueId base = g->operands.data[x->operand_first];
  ArrayType t;
  RuleError err;
  GuardDims dims;
  guard_dims_init(&dims, NULL, &g->sizes, NULL, (Span){0});
  if (x->kind == NODE_update) {
    same_type(v, type_at(v, base), type_at(v, x->result_first), "result", 0);
    if (!graph_infer_index(g, &dims.base, base, g->operands.data + x->operand_first + 1, x->operand_count - 2, a->items,
                           a->count, &t, &err)) {
      if (err.kind != EK_unsupported) wrong(v, "%s", err.text);
      return;
    }
    ArrayType joint;
    const ArrayType *both[2] = {&t, value_type(g, g->operands.data[x->operand_first + x->operand_count - 1])};
    bool fits = both[1] && rule_broadcast(&dims.base, 2, both, &joint, &err) && joint.rank == t.rank;
    for (u32 d = 0; fits && d < t.rank; d++) fits = size_same(&g->sizes, joint.dims[d], t.dims[d]);
    if (!fits) wrong(v, "the value does not fit the place");
    return;
  }
  if (graph_infer_index(g, &dims.base, base, g->operands.data + x->operand_first + 1, x->operand_count - 1, a->items,
                        a->count, &t, &err))
    check_types(v, x, &t, 1);
  else if (err.kind != EK_unsupported)
    wrong(v, "%s", err.text);
}

static void check_check(Verifier *v, const GraphNode *x) {
  static const u8 operands[CHECK_COUNT] = {[CHECK_index] = 2, [CHECK_zero_div] = 1, [CHECK_cast_range] = 2,
                                           [CHECK_neg_power] = 1, [CHECK_size] = 2, [CHECK_nonneg] = 1,
                                           [CHECK_empty] = 1, [CHECK_assertion] = 1, [CHECK_truth] = 1};
  if (x->op == 0 || x->op >= CHECK_COUNT) wrong(v, "no such check");
  else if (x->operand_count != operands[x->op])
    wrong(v, "takes %u operands", operands[x->op]);
  if (x->result_count) wrong(v, "a check has no result");
  if (x->exit == NO_EXIT) wrong(v, "a check needs an exit");
}

static void check_control(Verifier *v, NodeId n, const GraphNode *x) {
  Graph *g = v->g;
  u32 subs = node_subs(g, n), first;
  if (x->kind == NODE_call) {
    const GraphBlock *b = &g->blocks.data[x->sub[0]];
    if (!b->shared || b->params.count != x->operand_count || b->captures.count || b->term_count != x->result_count) {
      wrong(v, "does not fit the shared block it calls");
      return;
    }
    for (u32 i = 0; i < x->operand_count; i++)
      same_type(v, type_at(v, g->operands.data[x->operand_first + i]), type_at(v, b->params.data[i]), "argument", i);
    for (u32 i = 0; i < x->result_count; i++)
      same_type(v, type_at(v, g->operands.data[b->term_first + i]), type_at(v, x->result_first + i), "result", i);
    return;
  }
  u32 captures = node_captures(g, n, &first), lead = 0;
  for (u32 s = 0; s < subs; s++) {
    const GraphBlock *b = &g->blocks.data[x->sub[s]];
    if (b->node != n || b->parent != x->block) wrong(v, "block %u is not its own", x->sub[s]);
    if (b->captures.count != captures) {
      wrong(v, "its blocks capture different values");
      return;
    }
    if (captures > x->operand_count) {
      wrong(v, "has fewer operands than captures");
      return;
    }
    for (u32 i = 0; i < captures; i++)
      same_type(v, type_at(v, b->captures.data[i].inner), type_at(v, g->operands.data[x->operand_first + first + i]),
                "capture", i);
  }
  const GraphBlock *b0 = &g->blocks.data[x->sub[0]];
  switch (x->kind) {
    case NODE_cond:
      lead = 1;
      if (x->operand_count < 1 || !is_scalar(v, g->operands.data[x->operand_first], DK_BOOL))
        wrong(v, "the predicate is a bool of rank 0");
      if (b0->params.count || g->blocks.data[x->sub[1]].params.count)
        wrong(v, "the blocks of cond have no parameters of their own");
      break;
    case NODE_while:
    case NODE_scan: {
      lead = x->carried + x->xs;
      if (x->operand_count < lead || x->result_count < x->carried ||
          (x->kind == NODE_while && x->result_count != x->carried)) {
        wrong(v, "carries more than it has");
        return;
      }
      for (u32 s = 0; s < subs; s++) {
        const GraphBlock *b = &g->blocks.data[x->sub[s]];
        if (b->params.count != lead + x->index) {
          wrong(v, "block %u has %u parameters", x->sub[s], b->params.count);
          return;
        }
        for (u32 i = 0; i < x->carried; i++) {
          same_flow(v, b->params.data[i], x->result_first + i, "carried parameter", i);
          same_flow(v, g->operands.data[x->operand_first + i], b->params.data[i], "initial value", i);
        }
        for (u32 i = 0; i < x->xs; i++) {
          const ArrayType *all = type_of(g, type_at(v, g->operands.data[x->operand_first + x->carried + i]));
          const ArrayType *item = type_of(g, type_at(v, b->params.data[x->carried + i]));
          bool ok = all && item && all->rank == item->rank + 1 && all->dtype == item->dtype &&
                    size_same(&g->sizes, all->dims[0], x->length);
          for (u32 d = 0; ok && d < item->rank; d++) ok = size_same(&g->sizes, all->dims[d + 1], item->dims[d]);
          if (!ok) wrong(v, "item parameter %u does not fit what is scanned", i);
        }
        if (x->index && !is_scalar(v, b->params.data[lead], DK_INT)) wrong(v, "the trip number is no integer");
      }
      break;
    }
    case NODE_ascan:
      lead = x->xs;
      if (x->result_count != x->xs || b0->params.count != 2 * x->xs)
        wrong(v, "combines another number of values than it scans");
      break;
    default:
      lead = x->xs;
      if (b0->params.count != x->xs) wrong(v, "has another number of arguments than its body");
  }
  if (x->operand_count != lead + captures) wrong(v, "has %u operands, not %u", x->operand_count, lead + captures);
}

static void check_self(Verifier *v, NodeId n, const GraphNode *x) {
  const Graph *g = v->g;
  NodeId around = node_recur_around(g, n);
  const GraphNode *r = around ? &g->nodes.data[around] : NULL;
  if (!r || x->operand_count != r->xs || x->result_count != r->result_count) {
    wrong(v, "calls no function around it, or another number of values");
    return;
  }
  for (u32 i = 0; i < r->xs; i++)
    same_type(v, type_at(v, g->operands.data[x->operand_first + i]),
              type_at(v, g->blocks.data[r->sub[0]].params.data[i]), "argument", i);
  for (u32 i = 0; i < r->result_count; i++)
    same_type(v, type_at(v, r->result_first + i), type_at(v, x->result_first + i), "result", i);
}

/* Does what stands behind a control node run? Not where both arms of a branch leave. */
static bool verify_goes_on(const Graph *g, const GraphNode *x) {
  return x->kind != NODE_cond || g->blocks.data[x->sub[0]].term == TERM_yield ||
         g->blocks.data[x->sub[1]].term == TERM_yield;
}

/* A node that takes the token gives the next one: on each way through it, or another node would take the same. */
static void check_token(Verifier *v, NodeId n, const GraphNode *x) {
  u32 given = 0;
  if (!node_subs(v->g, n)) wrong(v, "uses the token without an effect");
  for (u32 i = 0; i < x->result_count; i++) given += value_is_token(v->g, x->result_first + i);
  if (node_subs(v->g, n) && !given && verify_goes_on(v->g, x)) wrong(v, "takes the token and does not give the next");
}

static void check_node(Verifier *v, NodeId n) {
  Graph *g = v->g;
  const GraphNode *x = &g->nodes.data[n];
  BlockId b = v->block;
  if (x->block != b) wrong(v, "stands in block %u and says block %u", b, x->block);
  bool ok = true;
  u32 tokens = 0;
  for (u32 i = 0; i < x->operand_count; i++) {
    ok &= usable(v, g->operands.data[x->operand_first + i], b);
    tokens += ok && value_is_token(g, g->operands.data[x->operand_first + i]);
  }
  for (u32 i = 0; i < x->result_count; i++) {
    const GraphValue *r = &g->values.data[x->result_first + i];
    if (r->origin != GV_result || r->def != n || r->index != i) wrong(v, "result %u is not its own", i);
  }
  if (!ok) return;
  switch (x->kind) {
    case NODE_op: check_op(v, x); break;
    case NODE_index:
    case NODE_update: check_index(v, x); break;
    case NODE_check: check_check(v, x); break;
    case NODE_self: check_self(v, n, x); break;
    case NODE_hook:
      if (x->operand_count != 1 || x->result_count != 1) wrong(v, "takes one value and gives it");
      break;
    case NODE_host:
      if (x->operand_count < 1 || x->result_count < 1 || !value_is_token(g, g->operands.data[x->operand_first]) ||
          !value_is_token(g, x->result_first))
        wrong(v, "takes the token first and gives the next");
      if (x->host == 0 || x->host >= g->hosts.count) wrong(v, "calls nothing");
      break;
    default: check_control(v, n, x);
  }
  if (tokens && x->kind != NODE_host) check_token(v, n, x);
}

/* ---- the whole -------------------------------------------------------------------------------------- */

/* A block with everything in it; depth is bounded by GRAPH_MAX_DEPTH. What its parameters and nodes define is
 * visible to exits inside, not behind it. */
static void check_block(Verifier *v, BlockId id) {
  Graph *g = v->g;
  BlockId block = v->block;
  v->block = id;
  v->node = 0;
  const GraphBlock *b = &g->blocks.data[id];
  for (u32 i = 0; i < b->captures.count; i++) v->defined[b->captures.data[i].inner] = 1;
  for (u32 i = 0; i < b->params.count; i++) {
    const GraphValue *p = &g->values.data[b->params.data[i]];
    if (p->origin != GV_param || p->def != id) wrong(v, "parameter %u is not its own", i);
    v->defined[b->params.data[i]] = 1;
  }
  NodeId prev = 0;
  for (NodeId n = b->first; n; n = g->nodes.data[n].next) {
    if (g->nodes.data[n].prev != prev) wrong(v, "the list of nodes is broken at %u", n);
    prev = n;
    v->node = n;
    check_node(v, n);
    const GraphNode *x = &g->nodes.data[n];
    for (u32 s = 0; x->kind != NODE_call && s < node_subs(g, n); s++) {
      if (!x->sub[s] || x->sub[s] >= g->blocks.count || g->blocks.data[x->sub[s]].depth <= g->blocks.data[id].depth)
        wrong(v, "a block is missing");
      else check_block(v, x->sub[s]);
      v->node = n;
      v->block = id;
    }
    if (x->exit != NO_EXIT) { /* a loop's exit sees the parameters of its body, which are still marked */
      BlockId at = x->kind == NODE_while ? x->sub[1] : x->kind == NODE_scan ? x->sub[0] : id;
      if (x->kind == NODE_host || x->kind == NODE_update || x->kind == NODE_cond)
        for (u32 i = 0; i < x->result_count; i++) v->defined[x->result_first + i] = 1;
      check_exit(v, x->exit, at);
    }
    for (u32 i = 0; i < x->result_count; i++) v->defined[x->result_first + i] = 1;
  }
  v->node = 0;
  if (b->last != prev) wrong(v, "the list of nodes does not end with its last");
  check_term(v, id);
  v->block = block;
}

bool graph_verify(Graph *g, Buf *out) {
  Verifier v = {.g = g, .out = out};
  u32 *blocks, count;
  graph_infer_anew(g); /* nothing is taken from when the graph was built */
  v.defined = mem_alloc_zero(g->alloc, g->values.count);
  v.spent = mem_alloc_zero(g->alloc, g->values.count);
  bool ok = v.defined && v.spent && graph_blocks(g, g->alloc, &blocks, &count);
  if (ok) {
    for (u32 i = count; i-- > 0;)
      if (g->blocks.data[blocks[i]].shared) check_block(&v, blocks[i]);
    check_block(&v, 1);
    v.block = 0;
    v.node = 0;
    for (u32 i = 0; i < g->inputs.count; i++) {
      const GraphInput *in = &g->inputs.data[i];
      if (i >= g->blocks.data[1].params.count || g->blocks.data[1].params.data[i] != in->value)
        wrong(&v, "input %u is no parameter of the root", i);
      if (in->input != UINT32_MAX && in->input >= g->guards.inputs.count) wrong(&v, "input %u has no source", i);
    }
    if (g->entry_exit != NO_EXIT && g->entry_exit >= g->exits.exits.count) wrong(&v, "the entry exit does not exist");
    mem_free(g->alloc, blocks, sizeof *blocks * count);
  } else {
    buf_puts(out, "memory was refused\n");
    g->failed = true;
  }
  mem_free(g->alloc, v.defined, g->values.count);
  mem_free(g->alloc, v.spent, g->values.count);
  return ok && v.errors == 0;
}

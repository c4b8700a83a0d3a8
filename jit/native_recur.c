/* native_recur.c — functions that call themselves: `recur` is a native function of its own, `self` a direct call of it.
 *
 * Parameters: the numbers that each call gives, then what is captured, then sizes. Captures and sizes are handed on by every call as
 * they came. Which sizes the body speaks of is known when it has been made: so it is made twice, the first time without calls.
 * It has one exit, without values: it writes nothing, so the outermost call leaves, and what calls that says for where.
 * Calls in a small body are the body once more, to some depth (NATIVE_LEVELS): a call that stands in it is for several of the program's.
 * Where the body is an `if` of which one arm is simple and only the other calls, that question and the simple arm stand before such a
 * call: the last calls of a chain, which are most, are none. */
#include <stdio.h>
#include <string.h>

#include "jit/native.h"

enum { EXIT_ONLY = 1, INLINE_NODES = 120 /* at most, of all copies of a body */, GUARD_NODES = 6 /* before the arm that calls */ };

typedef struct NSelf {
  bool dry;      /* only to see what it needs */
  u32 levels;    /* of calls that are the body once more inside each other; present one */
  u32 level;
  BlockId calls; /* the arm that alone calls; 0: there is no such */
  bool guards;   /* that arm is a call now */
  VEC(u32) same; /* parameters that are handed on */
} NSelf;

static bool add_same(Native *n, u32 param) { return vec_push(n->c->alloc, &n->self->same, param) || native_no_memory(n); }

static u32 add_number(Native *n, ValueId v) {
  char name[24];
  snprintf(name, sizeof name, "s%u", n->fn->params.count);
  LoopType t = loop_type_of_dtype(value_type(n->g, v)->dtype);
  if (t == LT_VOID) {
    native_bail(n, "a dtype outside the loop IR");
    return 0;
  }
  u32 ir = loop_param(n->fn, name, t);
  *native_value(n, v) = (NValue){.stamp = n->stamp, .ir = ir};
  return ir;
}

static void add_array(Native *n, ValueId v) {
  char name[24];
  const ArrayType *t = value_type(n->g, v);
  snprintf(name, sizeof name, "x%u", n->fn->params.count);
  NBuffer b = {.value = v, .slot = NO_SLOT, .elem = loop_type_of_dtype(t->dtype), .type = *t};
  b.ir = loop_param_buffer(n->fn, name, b.elem, LOOP_IN);
  if (!vec_push(n->c->alloc, &n->buffers, b)) native_no_memory(n);
  *native_value(n, v) = (NValue){.stamp = n->stamp, .buffer = n->buffers.count};
  add_same(n, b.ir);
}

/* The body as a function; `sizes` (may be NULL): those that it is known to speak of. */
static bool make_body(Native *n, const Native *sizes) {
  Graph *g = n->g;
  const GraphNode x = *graph_node_at(g, n->node);
  const GraphBlock *b = &g->blocks.data[x.sub[0]];
  u32 first, captures = node_captures(g, n->node, &first), results[4];
  if (x.result_count > 4) return native_bail(n, "a function of many results");
  for (u32 i = 0; i < x.xs; i++) add_number(n, b->params.data[i]);
  for (u32 i = 0; i < captures && !n->why; i++) {
    ValueId v = b->captures.data[i].inner;
    if (value_is_token(g, v)) return native_bail(n, "output");
    if (value_type(g, v)->rank) add_array(n, v);
    else add_same(n, add_number(n, v));
  }
  for (u32 i = 0; sizes && i < sizes->args.count; i++) add_same(n, native_dim_ir(n, sizes->args.data[i].dim));
  u32 known = n->args.count;
  for (u32 i = 0; i < x.result_count; i++) loop_result(n->fn, loop_type_of_dtype(value_type(g, node_result(g, n->node, i))->dtype));
  loop_poll(n->fn, EXIT_ONLY, 0, NULL);
  if (n->why || !native_body(n, x.sub[0])) return false;
  for (u32 i = 0; i < x.result_count; i++) {
    ValueId v = block_result(g, x.sub[0], i);
    results[i] = element_convert(n->fn, native_number(n, v), loop_type_of_dtype(value_type(g, v)->dtype), (LoopType)n->fn->results.data[i]);
  }
  if (n->why) return false;
  loop_return(n->fn, x.result_count, results);
  if (sizes && n->args.count != known) return native_bail(n, "sizes that are not known before");
  Buf why;
  buf_init(&why, n->c->alloc);
  bool ok = loop_fn_finish(n->fn, &why) == WEFT_OK && native_hoist(n) && loops_verify(n->fn, &why) == WEFT_OK;
  if (!ok) native_bail(n, why.len ? arena_copy(&n->c->arena, why.data, why.len) : "a malformed function");
  buf_free(&why);
  return ok;
}

static bool begin(Native *in, const Native *n, NodeId node, NSelf *self) {
  Compiler *c = n->c;
  char name[24];
  *in = (Native){.c = c, .g = n->g, .node = node, .self = self, .stamp = ++c->native_stamp};
  in->values = arena_alloc(&c->arena, sizeof *in->values * (c->g->values.count + 1)); /* its own: those of the caller stay */
  in->done = arena_alloc(&c->arena, sizeof *in->done * (c->g->nodes.count + 1));
  in->home = in->block = graph_node_at(n->g, node)->block;
  snprintf(name, sizeof name, "r%u", ++c->names);
  in->fn = in->values && in->done ? loop_fn_new(&c->code->module, LOOP_NATIVE, name) : NULL;
  if (!in->fn) return native_no_memory(in);
  in->fn->tag = c->names;
  return true;
}

static void end(Native *in) {
  vec_free(in->c->alloc, &in->self->same);
  native_release(in);
}

/* The call of what was made, from the function around. */
static bool call(Native *n, NodeId node, const Native *in) {
  Graph *g = n->g;
  const GraphNode x = *graph_node_at(g, node);
  const GraphBlock *b = &g->blocks.data[x.sub[0]];
  u32 *values, count, nargs = 0, *args = arena_alloc(&n->c->arena, sizeof *args * (in->fn->params.count + 1));
  u32 first, captures = node_captures(g, node, &first), number = native_exit(n, x.exit == NO_EXIT ? n->c->exit : x.exit, &values, &count);
  if (!args) return native_no_memory(n);
  if (!number) return false;
  for (u32 i = 0; i < x.xs + captures; i++) {
    ValueId v = node_operand(g, node, i), inner = i < x.xs ? b->params.data[i] : b->captures.data[i - x.xs].inner;
    if (value_type(g, v)->rank) {
      u32 at = native_buffer(n, v);
      if (at == UINT32_MAX) return false;
      args[nargs++] = n->buffers.data[at].ir;
    } else {
      args[nargs++] = element_convert(n->fn, native_number(n, v), loop_type_of_dtype(value_type(g, v)->dtype), loop_type_of_dtype(value_type(g, inner)->dtype));
    }
  }
  for (u32 i = 0; i < in->args.count; i++) args[nargs++] = native_dim_ir(n, in->args.data[i].dim);
  if (n->why) return false;
  u32 made = loop_call(n->fn, in->fn, nargs, args, number, count, values);
  if (!made) return native_bail(n, "a malformed call");
  for (u32 i = 0; i < x.result_count; i++)
    *native_value(n, node_result(g, node, i)) = (NValue){.stamp = n->stamp, .ir = loop_result_of(n->fn, made, i)};
  return true;
}

/* Nodes of a block and those inside; *selves: calls among them. */
static u32 count_nodes(const Graph *g, BlockId b, u32 *selves) {
  u32 count = 0;
  for (NodeId k = block_first(g, b); k; k = node_next(g, k)) {
    const GraphNode *x = graph_node_at(g, k);
    count++;
    *selves += x->kind == NODE_self;
    if (x->kind == NODE_recur || x->kind == NODE_while) *selves += 64; /* a function of its own in each copy; loops want the registers */
    if (x->kind == NODE_cond || x->kind == NODE_while) count += count_nodes(g, x->sub[0], selves) + count_nodes(g, x->sub[1], selves); /* nesting is bounded */
  }
  return count;
}

/* How deep calls are the body once more. */
static u32 levels_of(const Graph *g, BlockId body) {
  u32 selves = 0, nodes = count_nodes(g, body, &selves), copies = 1, all = 1, levels = 0;
  while (levels + 1 < NATIVE_LEVELS && selves < 64) {
    copies *= selves;
    all += copies;
    if (all * nodes > INLINE_NODES) break;
    levels++;
  }
  return selves ? levels : 0;
}

/* Operations alone, few, and what they give. */
static bool is_simple(const Graph *g, BlockId b, NodeId end, u32 *nodes) {
  for (NodeId k = block_first(g, b); k && k != end; k = node_next(g, k))
    if (++*nodes > GUARD_NODES || graph_node_at(g, k)->kind != NODE_op) return false;
  return g->blocks.data[b].term == TERM_yield;
}

/* The arm of a body's last `if` that alone calls, where what is before and the other arm are simple. */
static BlockId find_calls(const Graph *g, BlockId body) {
  NodeId last = 0;
  u32 nodes = 0, selves = 0;
  for (NodeId k = block_first(g, body); k; k = node_next(g, k)) last = k;
  const GraphNode *x = last ? graph_node_at(g, last) : NULL;
  if (!x || x->kind != NODE_cond || !is_simple(g, body, last, &nodes) || g->blocks.data[body].term_count != x->result_count) return 0;
  for (u32 arm = 0; arm < 2; arm++) {
    BlockId calls = x->sub[arm];
    (void)count_nodes(g, calls, &selves);
    bool ok = selves && is_simple(g, x->sub[1 - arm], 0, &nodes) && g->blocks.data[calls].term == TERM_yield;
    for (u32 i = 0; ok && i < x->result_count; i++) {
      ValueId made = block_result(g, calls, i);
      NodeId by = value_node(g, made);
      ok = block_result(g, body, i) == node_result(g, last, i) && by && graph_node_at(g, by)->block == calls && value_type(g, made)->dtype == value_type(g, node_result(g, last, i))->dtype;
    }
    if (ok) return calls;
    if (selves) return 0;
  }
  return 0;
}

bool native_recur(Native *n, NodeId node) {
  Compiler *c = n->c;
  u32 fns = c->code->module.fns.count;
  Native dry, in;
  NSelf first = {.dry = true}, second = {0};
  if (c->names > 4000) return native_bail(n, "too many functions that call themselves");
  bool ok = begin(&dry, n, node, &first) && make_body(&dry, NULL);
  loop_module_truncate(&c->code->module, fns, c->code->module.tables.count);
  if (!ok) {
    native_bail(n, dry.why);
    end(&dry);
    return false;
  }
  second.levels = levels_of(n->g, graph_node_at(n->g, node)->sub[0]);
  if (second.levels) second.calls = find_calls(n->g, graph_node_at(n->g, node)->sub[0]);
  ok = begin(&in, n, node, &second) && make_body(&in, &dry);
  if (!ok) native_bail(n, in.why);
  ok = ok && call(n, node, &in);
  if (ok && !vec_push(c->alloc, &n->callees, in.fn)) ok = native_no_memory(n);
  for (u32 i = 0; ok && i < in.callees.count; i++)
    if (!vec_push(c->alloc, &n->callees, in.callees.data[i])) ok = native_no_memory(n);
  end(&dry);
  end(&in);
  return ok;
}

/* The body once more, in place of a call. What its values are to the call around is put back behind it. */
static bool expand(Native *n, NodeId node) {
  Graph *g = n->g;
  Compiler *c = n->c;
  const GraphNode x = *graph_node_at(g, node), recur = *graph_node_at(g, n->node);
  const GraphBlock *b = &g->blocks.data[recur.sub[0]];
  size_t values = sizeof *n->values * (g->values.count + 1), done = sizeof *n->done * (g->nodes.count + 1);
  NValue *values_before = arena_alloc(&c->arena, values), *numbers = arena_alloc(&c->arena, sizeof *numbers * (x.operand_count + 1));
  u32 *done_before = arena_alloc(&c->arena, done), stamp = n->stamp, irs[4];
  BlockId block = n->block;
  NLoop *loop = n->loop;
  if (!values_before || !numbers || !done_before) return native_no_memory(n);
  u32 fresh = ++c->native_stamp;
  for (u32 i = 0; i < x.operand_count; i++) numbers[i] = (NValue){.stamp = fresh, .ir = native_number(n, node_operand(g, node, i))};
  if (n->why) return false;
  memcpy(values_before, n->values, values);
  memcpy(done_before, n->done, done);
  n->stamp = fresh;
  n->loop = NULL;
  n->self->level++;
  for (u32 i = 0; i < x.operand_count; i++) n->values[b->params.data[i]] = numbers[i];
  for (u32 i = 0; i < b->captures.count; i++) n->values[b->captures.data[i].inner].stamp = fresh; /* the same in every call */
  if (!native_body(n, recur.sub[0])) return false;
  for (u32 i = 0; i < x.result_count; i++) {
    ValueId v = block_result(g, recur.sub[0], i);
    irs[i] = element_convert(n->fn, native_number(n, v), loop_type_of_dtype(value_type(g, v)->dtype), (LoopType)n->fn->results.data[i]);
  }
  if (n->why) return false;
  n->self->level--;
  n->loop = loop;
  n->block = block;
  n->stamp = stamp;
  memcpy(n->values, values_before, values);
  memcpy(n->done, done_before, done);
  for (u32 i = 0; i < x.result_count; i++) *native_value(n, node_result(g, node, i)) = (NValue){.stamp = stamp, .ir = irs[i]};
  return true;
}

/* The call of the function by itself; its results at `out`. */
static bool call_self(Native *n, u32 given, const ValueId *values, u32 results, u32 *out) {
  u32 same = n->self->same.count, *args = arena_alloc(&n->c->arena, sizeof *args * (given + same + 1));
  if (!args) return native_no_memory(n);
  for (u32 i = 0; i < given; i++) args[i] = native_number(n, values[i]);
  for (u32 i = 0; i < same; i++) args[given + i] = n->self->same.data[i];
  if (n->why) return false;
  u32 made = n->self->dry ? 0 : loop_call(n->fn, n->fn, given + same, args, EXIT_ONLY, 0, NULL);
  if (!n->self->dry && !made) return native_bail(n, n->fn->failed ? n->fn->failed : "a malformed call");
  for (u32 i = 0; i < results; i++) out[i] = made ? loop_result_of(n->fn, made, i) : loop_const_i(n->fn, (LoopType)n->fn->results.data[i], 0);
  return true;
}

bool native_calls_arm(const Native *n, BlockId b) { return n->self && n->self->guards && n->self->calls == b; }

bool native_call_arm(Native *n, BlockId b) {
  Graph *g = n->g;
  const GraphBlock *body = &g->blocks.data[graph_node_at(g, n->node)->sub[0]];
  u32 count = g->blocks.data[b].term_count, out[4];
  n->self->guards = false;
  if (!call_self(n, body->params.count, body->params.data, count, out)) return false;
  for (u32 i = 0; i < count; i++) *native_value(n, block_result(g, b, i)) = (NValue){.stamp = n->stamp, .ir = out[i]};
  return true;
}

bool native_self(Native *n, NodeId node) {
  Graph *g = n->g;
  const GraphNode x = *graph_node_at(g, node);
  u32 out[4];
  ValueId *operands = arena_alloc(&n->c->arena, sizeof *operands * (x.operand_count + 1));
  if (!n->self) return native_bail(n, "a call of a function that is not there");
  if (!operands) return native_no_memory(n);
  if (!n->self->dry && (n->self->level < n->self->levels || n->self->calls)) {
    n->self->guards = n->self->level == n->self->levels;
    return expand(n, node);
  }
  for (u32 i = 0; i < x.operand_count; i++) operands[i] = node_operand(g, node, i);
  if (!call_self(n, x.operand_count, operands, x.result_count, out)) return false;
  for (u32 i = 0; i < x.result_count; i++) *native_value(n, node_result(g, node, i)) = (NValue){.stamp = n->stamp, .ir = out[i]};
  return true;
}

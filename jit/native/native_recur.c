/* native_recur.c — functions that call themselves: `recur` is a native function of its own, `self` a direct call of
 * it.
 *
 * Parameters: the numbers that each call gives, then what is captured, then sizes. Captures and sizes are handed on
 * by every call as they came. Which sizes the body speaks of is known when it has been made: so it is made twice,
 * the first time without calls. It has one exit, without values: it writes nothing, so the outermost call leaves,
 * and what calls that says for where. Calls in a small body are the body once more, to some depth (NATIVE_LEVELS): a
 * call that stands in it is for several of the program's. Where the body is an `if` of which one arm is simple and
 * only the other calls, that question and the simple arm stand before such a call: the last calls of a chain, which
 * are most, are none.
 * An array among what each call gives is one that all calls change in place: a buffer that is handed on, with what it
 * takes to put back what was changed (native_undo.c). Its calls stand as they are, no body in place of one.
 * An array that calls are given and do not give, a parameter by value, is such a buffer, too: each call puts back what
 * it changed when it is over, so that a call costs by what is written, not by how large the array is.
 * The function is pure. So where the body that stands in place of a call makes itself a call which is made anyway
 * behind it, with the same numbers (n - 1 - 1 and n - 2), that one is made once: inside, or, in the arms that make
 * no calls, ahead of its place. */
#include <stdio.h>
#include <string.h>

#include "jit/native/native.h"

enum { EXIT_ONLY = 1, INLINE_NODES = 120 /* at most, of all copies of a body */,
       GUARD_NODES = 6 /* before the arm that calls */, TWINS_MOST = 4, GIVES_MOST = 28 };

/* A call that stands behind another, and is made inside of that one's body too. */
typedef struct NTwin {
  NodeId node, inner; /* `inner`: of the body's `arm` */
  u32 *args, out[GIVES_MOST];
} NTwin;

typedef struct NTwins {
  NTwin at[TWINS_MOST];
  u32 count;
} NTwins;

typedef struct NSelf {
  bool dry;      /* only to see what it needs */
  u32 levels;    /* of calls that are the body once more inside each other; present one */
  u32 level;
  BlockId calls; /* the arm that alone calls; 0: there is no such */
  bool guards;   /* that arm is a call now */
  BlockId arm;   /* the innermost block that has all that calls; 0: there is no such, or it is the body */
  NTwins *twins; /* of the call that the present body stands for; NULL: none */
  VEC(u32) same; /* parameters that are handed on */
} NSelf;

static bool add_same(Native *n, u32 param) {
  return vec_push(n->c->alloc, &n->self->same, param) || native_no_memory(n);
}

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
  NBuffer b = {.value = v, .slot = NO_SLOT, .elem = loop_memory_of_dtype(t->dtype), .type = *t};
  b.ir = loop_param_buffer(n->fn, name, b.elem, LOOP_IN);
  if (!vec_push(n->c->alloc, &n->buffers, b)) native_no_memory(n);
  *native_value(n, v) = (NValue){.stamp = n->stamp, .buffer = n->buffers.count};
  add_same(n, b.ir);
}

/* An array that the calls change: the k-th of those is the k-th array of the results. */
static void add_state(Native *n, ValueId v, bool by_value) {
  char name[24];
  const ArrayType *t = value_type(n->g, v);
  snprintf(name, sizeof name, "x%u", n->fn->params.count);
  if (!dtype_in_loops(t->dtype)) {
    native_bail(n, "a dtype outside the loop IR");
    return;
  }
  NBuffer b = {.value = v, .from = v, .slot = NO_SLOT, .written = true, .by_value = by_value,
               .elem = loop_memory_of_dtype(t->dtype), .type = *t, .version = ++n->versions};
  b.ir = loop_param_buffer(n->fn, name, b.elem, LOOP_INOUT);
  if (!vec_push(n->c->alloc, &n->buffers, b)) native_no_memory(n);
  *native_value(n, v) = (NValue){.stamp = n->stamp, .buffer = n->buffers.count, .version = b.version};
}

/* The arrays that a function gives come first among the arrays that it is given, in the same order. */
bool native_recur_gives(const Graph *g, NodeId recur, u32 operand) {
  u32 arrays = 0, given = 0;
  for (u32 i = 0; i < operand; i++) arrays += value_type(g, node_operand(g, recur, i))->rank > 0;
  for (u32 i = 0; i < graph_node_at(g, recur)->result_count; i++)
    given += value_type(g, node_result(g, recur, i))->rank > 0;
  return arrays < given;
}

/* Are the arrays among some values the ones that the calls change, in order, as they are now? These are the first
 * buffers of the body. */
static bool hands_on(Native *n, u32 count, const ValueId *values) {
  for (u32 i = 0, at = 0; i < count; i++) {
    if (!value_type(n->g, values[i])->rank) continue;
    u32 b = native_buffer(n, values[i]);
    if (b == UINT32_MAX) return false;
    if (b != at++) return native_bail(n, "a function that calls itself with another array");
  }
  return true;
}

/* The body as a function; `sizes` (may be NULL): those that it is known to speak of. */
static bool make_body(Native *n, const Native *sizes) {
  Graph *g = n->g;
  const GraphNode x = *graph_node_at(g, n->node);
  const GraphBlock *b = &g->blocks.data[x.sub[0]];
  u32 first, captures = node_captures(g, n->node, &first), results[GIVES_MOST];
  if (x.result_count > GIVES_MOST) return native_bail(n, "a function of many results");
  for (u32 i = 0; i < x.xs && !n->why; i++) {
    ValueId v = b->params.data[i];
    if (value_type(g, v)->rank) add_state(n, v, !native_recur_gives(g, n->node, i));
    else add_number(n, v);
  }
  for (u32 i = 0, all = n->buffers.count; i < all && !n->why; i++) { /* so far there are the arrays that change alone */
    if (!native_log_params(n, i)) return false;
    for (u32 k = 0; k < NLOGS; k++) add_same(n, n->buffers.data[n->buffers.data[i].log - 1 + k].ir);
  }
  for (u32 i = 0; i < captures && !n->why; i++) {
    ValueId v = b->captures.data[i].inner;
    if (value_is_token(g, v)) return native_bail(n, "output");
    if (value_type(g, v)->rank) add_array(n, v);
    else add_same(n, add_number(n, v));
  }
  for (u32 i = 0; sizes && i < sizes->args.count; i++) add_same(n, native_dim_ir(n, sizes->args.data[i].dim));
  u32 known = n->args.count;
  for (u32 i = 0; i < x.result_count; i++)
    if (!value_type(g, node_result(g, n->node, i))->rank)
      loop_result(n->fn, loop_type_of_dtype(value_type(g, node_result(g, n->node, i))->dtype));
  loop_poll(n->fn, EXIT_ONLY, 0, NULL);
  for (u32 i = 0; i < n->buffers.count && !n->why; i++)
    if (n->buffers.data[i].by_value && !native_mark(n, i, 0)) return false;
  if (n->why || !native_body(n, x.sub[0])) return false;
  u32 numbers = 0;
  if (!hands_on(n, x.result_count, &g->operands.data[g->blocks.data[x.sub[0]].term_first])) return false;
  for (u32 i = 0; i < n->buffers.count; i++) {
    const NMark *first_mark = n->buffers.data[i].mark;
    while (first_mark && first_mark->older) first_mark = first_mark->older;
    if (first_mark && !native_go_back(n, i, first_mark->version)) return false;
  }
  for (u32 i = 0; i < x.result_count; i++) {
    ValueId v = block_result(g, x.sub[0], i);
    if (value_type(g, v)->rank) continue;
    results[numbers] = element_convert(n->fn, native_number(n, v), loop_type_of_dtype(value_type(g, v)->dtype),
                                       (LoopType)n->fn->results.data[numbers]);
    numbers++;
  }
  if (n->why) return false;
  loop_return(n->fn, numbers, results);
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
  /* its own: those of the caller stay */
  in->values = arena_alloc(&c->arena, sizeof *in->values * (c->g->values.count + 1));
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

/* What a call gives: numbers, and arrays, in those buffers, as they are from here on. made 0: zeros, to see what it
 * needs. */
static void changed(Native *n, NodeId node, u32 made, const u32 *buffers) {
  u32 at = 0, numbers = 0;
  for (u32 i = 0; i < graph_node_at(n->g, node)->result_count; i++) {
    ValueId v = node_result(n->g, node, i);
    NValue x = {.stamp = n->stamp};
    if (!value_type(n->g, v)->rank) {
      x.ir = made ? loop_result_of(n->fn, made, numbers)
                  : loop_const_i(n->fn, (LoopType)n->fn->results.data[numbers], 0);
      numbers++;
    } else {
      u32 b = buffers[at++];
      x.version = n->buffers.data[b].version = ++n->versions;
      x.buffer = b + 1;
    }
    *native_value(n, v) = x;
  }
}

static u32 give_log(const Native *n, u32 buffer, u32 *args, u32 nargs) {
  for (u32 k = 0; k < NLOGS; k++) args[nargs++] = n->buffers.data[n->buffers.data[buffer].log - 1 + k].ir;
  return nargs;
}

/* The call of what was made, from the function around. */
static bool recur_call(Native *n, NodeId node, const Native *in) {
  Graph *g = n->g;
  const GraphNode x = *graph_node_at(g, node);
  const GraphBlock *b = &g->blocks.data[x.sub[0]];
  u32 *values, count, nargs = 0, *args = arena_alloc(&n->c->arena, sizeof *args * (in->fn->params.count + 1));
  u32 *states = arena_alloc(&n->c->arena, sizeof *states * (x.xs + 1)), nstates = 0;
  u32 first, captures = node_captures(g, node, &first),
      number = native_exit(n, x.exit == NO_EXIT ? n->c->exit : x.exit, &values, &count);
  if (!args || !states) return native_no_memory(n);
  if (!number) return false;
  for (u32 i = 0; i < x.xs + captures; i++) {
    for (u32 s = 0; i == x.xs && s < nstates; s++) nargs = give_log(n, states[s], args, nargs);
    ValueId v = node_operand(g, node, i), inner = i < x.xs ? b->params.data[i] : b->captures.data[i - x.xs].inner;
    if (value_type(g, v)->rank) {
      u32 at = i < x.xs && node == n->node ? n->own[i] - 1 : native_buffer(n, v);
      if (at == UINT32_MAX) return false;
      if (i < x.xs) {
        if (!n->buffers.data[at].written || n->buffers.data[at].temp || n->self)
          return native_bail(n, "an array that is not the function's own is changed");
        for (u32 s = 0; s < nstates; s++)
          if (states[s] == at) return native_bail(n, "a function that calls itself with one array twice");
        states[nstates++] = at;
        if (!native_log_make(n, at, !native_recur_gives(g, node, i))) return false;
      } else {
        for (u32 s = 0; s < nstates; s++)
          if (states[s] == at) return native_bail(n, "a function that calls itself reads the array that it changes");
      }
      args[nargs++] = n->buffers.data[at].ir;
    } else {
      args[nargs++] = element_convert(n->fn, native_number(n, v), loop_type_of_dtype(value_type(g, v)->dtype),
                                      loop_type_of_dtype(value_type(g, inner)->dtype));
    }
  }
  for (u32 s = 0; !captures && s < nstates; s++) nargs = give_log(n, states[s], args, nargs);
  for (u32 i = 0; i < in->args.count; i++) args[nargs++] = native_dim_ir(n, in->args.data[i].dim);
  if (n->why) return false;
  u32 made = loop_call(n->fn, in->fn, nargs, args, number, count, values);
  if (!made) return native_bail(n, "a malformed call");
  for (u32 s = 0; s < nstates; s++) native_log_forget(n, states[s]);
  changed(n, node, made, states);
  return true;
}

/* Nodes of a block and those inside; *selves: calls among them. */
static u32 count_nodes(const Graph *g, BlockId b, u32 *selves) {
  u32 count = 0;
  for (NodeId k = block_first(g, b); k; k = node_next(g, k)) {
    const GraphNode *x = graph_node_at(g, k);
    count++;
    *selves += x->kind == NODE_self;
    /* a function of its own in each copy; loops want the registers */
    if (x->kind == NODE_recur || x->kind == NODE_while) *selves += 64;
    /* nesting is bounded */
    if (x->kind == NODE_cond || x->kind == NODE_while)
      count += count_nodes(g, x->sub[0], selves) + count_nodes(g, x->sub[1], selves);
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
  if (!x || x->kind != NODE_cond || !is_simple(g, body, last, &nodes) ||
      g->blocks.data[body].term_count != x->result_count)
    return 0;
  for (u32 arm = 0; arm < 2; arm++) {
    BlockId calls = x->sub[arm];
    (void)count_nodes(g, calls, &selves);
    bool ok = selves && is_simple(g, x->sub[1 - arm], 0, &nodes) && g->blocks.data[calls].term == TERM_yield;
    for (u32 i = 0; ok && i < x->result_count; i++) {
      ValueId made = block_result(g, calls, i);
      NodeId by = value_node(g, made);
      ok = block_result(g, body, i) == node_result(g, last, i) && by && graph_node_at(g, by)->block == calls &&
           value_type(g, made)->dtype == value_type(g, node_result(g, last, i))->dtype;
    }
    if (ok) return calls;
    if (selves) return 0;
  }
  return 0;
}

static BlockId find_arm(const Graph *g, BlockId body) {
  for (BlockId b = body;;) {
    bool calls = false;
    NodeId next = 0;
    BlockId arm = 0;
    for (NodeId k = block_first(g, b); k; k = node_next(g, k)) {
      const GraphNode *x = graph_node_at(g, k);
      calls |= x->kind == NODE_self;
      for (u32 i = 0; x->kind == NODE_cond && i < 2; i++) {
        u32 selves = 0;
        (void)count_nodes(g, x->sub[i], &selves);
        if (selves && next) return 0;
        if (selves) next = k, arm = x->sub[i];
      }
    }
    if (calls) return b == body ? 0 : b;
    if (!next) return 0;
    for (u32 i = 0; i < 2; i++)
      if (g->blocks.data[graph_node_at(g, next)->sub[i]].term != TERM_yield) return 0;
    b = arm;
  }
}

/* Is it the body of a function that changes arrays? */
static bool changes_arrays(const Native *n) {
  for (u32 i = 0; i < n->buffers.count; i++)
    if (n->buffers.data[i].written) return true;
  return false;
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
  second.levels = changes_arrays(&dry) ? 0 : levels_of(n->g, graph_node_at(n->g, node)->sub[0]);
  if (second.levels) second.calls = find_calls(n->g, graph_node_at(n->g, node)->sub[0]);
  if (second.levels) second.arm = find_arm(n->g, graph_node_at(n->g, node)->sub[0]);
  ok = begin(&in, n, node, &second) && make_body(&in, &dry);
  if (!ok) native_bail(n, in.why);
  ok = ok && recur_call(n, node, &in);
  if (ok && !vec_push(c->alloc, &n->callees, in.fn)) ok = native_no_memory(n);
  for (u32 i = 0; ok && i < in.callees.count; i++)
    if (!vec_push(c->alloc, &n->callees, in.callees.data[i])) ok = native_no_memory(n);
  n->recursions += 1 + in.recursions;
  if (in.levels > n->levels) n->levels = in.levels;
  if (second.levels + 1 > n->levels) n->levels = second.levels + 1;
  end(&dry);
  end(&in);
  return ok;
}

/* The body once more, in place of a call with these arguments; its results at `out`. What its values are to the
 * call around is put back behind it. */
static bool expand(Native *n, const u32 *args, NTwins *twins, u32 *out) {
  Graph *g = n->g;
  Compiler *c = n->c;
  NSelf *self = n->self;
  const GraphNode recur = *graph_node_at(g, n->node);
  const GraphBlock *b = &g->blocks.data[recur.sub[0]];
  size_t values = sizeof *n->values * (g->values.count + 1), done = sizeof *n->done * (g->nodes.count + 1);
  NValue *values_before = arena_alloc(&c->arena, values);
  u32 *done_before = arena_alloc(&c->arena, done), stamp = n->stamp;
  BlockId block = n->block;
  NLoop *loop = n->loop;
  NTwins *around = self->twins;
  if (!values_before || !done_before) return native_no_memory(n);
  memcpy(values_before, n->values, values);
  memcpy(done_before, n->done, done);
  u32 fresh = n->stamp = ++c->native_stamp;
  n->loop = NULL;
  self->level++;
  self->twins = twins;
  for (u32 i = 0; i < b->params.count; i++) n->values[b->params.data[i]] = (NValue){.stamp = fresh, .ir = args[i]};
  /* the same in every call */
  for (u32 i = 0; i < b->captures.count; i++) n->values[b->captures.data[i].inner].stamp = fresh;
  if (!native_body(n, recur.sub[0])) return false;
  for (u32 i = 0; i < recur.result_count; i++) {
    ValueId v = block_result(g, recur.sub[0], i);
    out[i] = element_convert(n->fn, native_number(n, v), loop_type_of_dtype(value_type(g, v)->dtype),
                             (LoopType)n->fn->results.data[i]);
  }
  if (n->why) return false;
  self->twins = around;
  self->level--;
  n->loop = loop;
  n->block = block;
  n->stamp = stamp;
  memcpy(n->values, values_before, values);
  memcpy(n->done, done_before, done);
  return true;
}

/* The call of the function by itself; its results at `out`. */
static bool call_self(Native *n, u32 given, const u32 *numbers, u32 results, u32 *out) {
  u32 same = n->self->same.count, *args = arena_alloc(&n->c->arena, sizeof *args * (given + same + 1));
  if (!args) return native_no_memory(n);
  memcpy(args, numbers, sizeof *args * given);
  for (u32 i = 0; i < same; i++) args[given + i] = n->self->same.data[i];
  u32 made = n->self->dry ? 0 : loop_call(n->fn, n->fn, given + same, args, EXIT_ONLY, 0, NULL);
  if (!n->self->dry && !made) return native_bail(n, n->fn->failed ? n->fn->failed : "a malformed call");
  for (u32 i = 0; i < results; i++)
    out[i] = made ? loop_result_of(n->fn, made, i) : loop_const_i(n->fn, (LoopType)n->fn->results.data[i], 0);
  return true;
}

/* The numbers that some values are now; NULL: `why`. */
static u32 *numbers_of(Native *n, u32 count, const ValueId *values) {
  u32 *out = arena_alloc(&n->c->arena, sizeof *out * (count + 1));
  if (!out) native_no_memory(n);
  for (u32 i = 0; out && i < count; i++) out[i] = native_number(n, values[i]);
  return n->why ? NULL : out;
}

static void set_results(Native *n, NodeId node, const u32 *irs) {
  for (u32 i = 0; i < graph_node_at(n->g, node)->result_count; i++)
    *native_value(n, node_result(n->g, node, i)) = (NValue){.stamp = n->stamp, .ir = irs[i]};
}

/* ---- calls made once -------------------------------------------------------------------------------- */

typedef struct Sum { /* base + more; base 0: a constant, else a value of the body around its `if`s */
  ValueId base;
  u64 more;
} Sum;

/* What stands outside of an arm for a value that it captures; 0: a parameter of another kind. */
static ValueId captured(const Graph *g, ValueId v) {
  const GraphBlock *b = &g->blocks.data[g->values.data[v].def];
  u32 first, count = graph_node_at(g, b->node)->kind == NODE_cond ? node_captures(g, b->node, &first) : 0;
  for (u32 i = 0; i < count; i++)
    if (b->captures.data[i].inner == v) return node_operand(g, b->node, first + i);
  return 0;
}

static bool sum_of(const Graph *g, BlockId body, ValueId v, Sum *out) {
  Value k;
  out->more = 0;
  for (u32 steps = 0; v && steps < 3 * GRAPH_MAX_DEPTH; steps++) {
    const GraphValue *x = &g->values.data[v];
    if (value_const(g, v, &k) || x->origin == GV_size || (x->origin == GV_param && x->def == body)) {
      bool constant = value_const(g, v, &k);
      out->base = constant ? 0 : v;
      out->more += constant ? k.bits : 0;
      return true;
    }
    if (x->origin == GV_param) {
      v = captured(g, v);
      continue;
    }
    const GraphNode *node = graph_node_at(g, value_node(g, v));
    if (node->kind != NODE_op || (node->op != OP_add && node->op != OP_subtract) || value_type(g, v)->dtype != DT_i64)
      return false;
    ValueId p = node_operand(g, value_node(g, v), 0), q = node_operand(g, value_node(g, v), 1);
    if (!value_const(g, q, &k) || value_type(g, q)->dtype != DT_i64 || value_type(g, p)->dtype != DT_i64) return false;
    out->more += node->op == OP_add ? (u64)k.i : -(u64)k.i;
    v = p;
  }
  return false;
}

/* Does call `inner` of the body that stands for call `a` get what call `b`, beside a, gets? */
static bool same_call(const Graph *g, BlockId body, NodeId a, NodeId inner, NodeId b) {
  const GraphBlock *x = &g->blocks.data[body];
  for (u32 i = 0; i < x->params.count; i++) {
    Sum p, q, given;
    if (!sum_of(g, body, node_operand(g, inner, i), &p) || !sum_of(g, body, node_operand(g, b, i), &q)) return false;
    for (u32 k = 0; k < x->params.count; k++) {
      if (p.base != x->params.data[k]) continue;
      if (!sum_of(g, body, node_operand(g, a, k), &given)) return false;
      p = (Sum){given.base, given.more + p.more};
      break;
    }
    if (p.base != q.base || p.more != q.more) return false;
  }
  return true;
}

/* Its numbers, ahead of its place: sums of what is there. NULL: not to be had, or `why`. */
static u32 *ahead(Native *n, NodeId call) {
  const GraphNode *x = graph_node_at(n->g, call);
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId v = node_operand(n->g, call, i);
    if (value_node(n->g, v) && !native_value(n, v)->ir && !native_force(n, v)) return NULL;
  }
  return numbers_of(n, x->operand_count, &n->g->operands.data[x->operand_first]);
}

/* Calls behind `a` that its body makes too; with nothing between that may stop. */
static bool find_twins(Native *n, NodeId a, NTwins *out) {
  Graph *g = n->g;
  BlockId body = graph_node_at(g, n->node)->sub[0], arm = n->self->arm;
  out->count = 0;
  for (NodeId b = node_next(g, a); arm && b && out->count < TWINS_MOST; b = node_next(g, b)) {
    u8 kind = graph_node_at(g, b)->kind;
    if (kind == NODE_op) continue;
    if (kind != NODE_self) break;
    for (NodeId k = block_first(g, arm); k; k = node_next(g, k)) {
      if (graph_node_at(g, k)->kind != NODE_self || native_value(n, node_result(g, b, 0))->ir ||
          !same_call(g, body, a, k, b))
        continue;
      u32 *args = ahead(n, b);
      if (args) out->at[out->count++] = (NTwin){.node = b, .inner = k, .args = args};
      break;
    }
  }
  return !n->why;
}

/* The call, with what a body asks first before it where that is known. */
static bool guarded_call(Native *n, const u32 *args, u32 *out) {
  u32 given = n->g->blocks.data[graph_node_at(n->g, n->node)->sub[0]].params.count,
      results = graph_node_at(n->g, n->node)->result_count;
  if (!n->self->calls) return call_self(n, given, args, results, out);
  n->self->guards = true;
  return expand(n, args, NULL, out);
}

bool native_shares(const Native *n, NodeId node) {
  if (!n->self || !n->self->twins) return false;
  for (BlockId b = n->self->arm; b; b = n->g->blocks.data[b].parent)
    if (n->g->blocks.data[b].node == node) return true;
  return false;
}

/* An `if` of the body whose one arm has the calls: each arm gives those that are made once, too. */
bool native_share(Native *n, NodeId node) {
  Graph *g = n->g;
  NTwins *twins = n->self->twins;
  const GraphNode x = *graph_node_at(g, node);
  u32 each = n->fn->results.count, count = x.result_count + twins->count * each;
  LoopType *types = arena_alloc(&n->c->arena, sizeof *types * count);
  u32 *out = arena_alloc(&n->c->arena, sizeof *out * count);
  ValueId p = node_operand(g, node, 0);
  BlockId around = n->block;
  if (!types || !out) return native_no_memory(n);
  for (u32 i = 0; i < count; i++)
    types[i] = i < x.result_count ? native_type(n, node_result(g, node, i))
                                  : (LoopType)n->fn->results.data[(i - x.result_count) % each];
  u32 c = native_number(n, p);
  for (u32 arm = 0; arm < 2; arm++) native_captures(n, node, x.sub[arm]);
  u32 head = n->why ? 0 : loop_begin_if(n->fn, element_convert(n->fn, c, native_type(n, p), LT_I1), count, types);
  if (!head) return native_bail(n, "a malformed if");
  for (u32 arm = 0; arm < 2; arm++) {
    BlockId b = x.sub[arm];
    u32 selves = 0;
    if (arm) loop_else(n->fn);
    if (native_block(n, b) != FLOW_ON) return native_bail(n, "an arm that leaves");
    (void)count_nodes(g, b, &selves);
    for (u32 i = 0; i < twins->count; i++) {
      NTwin *t = &twins->at[i];
      if (!selves && !guarded_call(n, t->args, t->out)) return false;
      for (u32 k = 0; k < each; k++)
        out[x.result_count + i * each + k] = b == n->self->arm ? native_number(n, node_result(g, t->inner, k))
                                                               : t->out[k];
    }
    for (u32 i = 0; i < x.result_count; i++) out[i] = native_number(n, block_result(g, b, i));
    if (n->why) return false;
    loop_yield(n->fn, count, out);
  }
  n->block = around;
  loop_end(n->fn);
  if (n->fn->failed) return native_bail(n, n->fn->failed);
  for (u32 i = 0; i < count; i++) {
    u32 ir = loop_result_of(n->fn, head, i), k = i - x.result_count;
    if (i < x.result_count) *native_value(n, node_result(g, node, i)) = (NValue){.stamp = n->stamp, .ir = ir};
    else twins->at[k / each].out[k % each] = ir;
  }
  return true;
}

/* ---- the calls --------------------------------------------------------------------------------------- */

bool native_calls_arm(const Native *n, BlockId b) { return n->self && n->self->guards && n->self->calls == b; }

bool native_call_arm(Native *n, BlockId b) {
  Graph *g = n->g;
  const GraphBlock *body = &g->blocks.data[graph_node_at(g, n->node)->sub[0]];
  u32 count = g->blocks.data[b].term_count, out[GIVES_MOST];
  u32 *args = numbers_of(n, body->params.count, body->params.data);
  n->self->guards = false;
  if (!args || !call_self(n, body->params.count, args, count, out)) return false;
  for (u32 i = 0; i < count; i++) *native_value(n, block_result(g, b, i)) = (NValue){.stamp = n->stamp, .ir = out[i]};
  return true;
}

/* The call of a function that changes arrays. */
static bool self_in_place(Native *n, NodeId node) {
  const GraphNode x = *graph_node_at(n->g, node);
  const ValueId *given = &n->g->operands.data[x.operand_first];
  u32 same = n->self->same.count, made = 0;
  u32 *args = arena_alloc(&n->c->arena, sizeof *args * (x.operand_count + same + 1));
  if (!args) return native_no_memory(n);
  u32 *states = arena_alloc(&n->c->arena, sizeof *states * (x.operand_count + 1)), nstates = 0;
  if (!states) return native_no_memory(n);
  if (!hands_on(n, x.operand_count, given)) return false;
  for (u32 i = 0; i < x.operand_count; i++) {
    bool array = value_type(n->g, given[i])->rank;
    args[i] = array ? n->buffers.data[nstates].ir : native_number(n, given[i]);
    if (array) states[nstates] = nstates, nstates++;
  }
  if (n->why) return false;
  for (u32 i = 0; i < same; i++) args[x.operand_count + i] = n->self->same.data[i];
  if (!n->self->dry && !(made = loop_call(n->fn, n->fn, x.operand_count + same, args, EXIT_ONLY, 0, NULL)))
    return native_bail(n, n->fn->failed ? n->fn->failed : "a malformed call");
  changed(n, node, made, states);
  return true;
}

bool native_self(Native *n, NodeId node) {
  NSelf *self = n->self;
  const GraphNode x = *graph_node_at(n->g, node);
  NTwins twins = {.count = 0};
  u32 out[GIVES_MOST];
  if (!self) return native_bail(n, "a call of a function that is not there");
  if (changes_arrays(n)) return self_in_place(n, node);
  u32 *args = numbers_of(n, x.operand_count, &n->g->operands.data[x.operand_first]);
  if (!args) return false;
  if (!self->dry && self->level < self->levels) {
    if (!find_twins(n, node, &twins) || !expand(n, args, twins.count ? &twins : NULL, out)) return false;
  } else if (!(self->dry ? call_self(n, x.operand_count, args, x.result_count, out) : guarded_call(n, args, out))) {
    return false;
  }
  set_results(n, node, out);
  for (u32 i = 0; i < twins.count; i++) set_results(n, twins.at[i].node, twins.at[i].out);
  return true;
}

/* native_make.c — which native function is made: for a construct, in several ways, or for a region as a whole (see
 * native.h). */
#include "jit/native/native.h"

#include <stdio.h>

/* Arrays whose sizes change from trip to trip, or depend on the arm. */
static bool sizes_change(Compiler *c, NodeId node) {
  const GraphNode *x = graph_node_at(c->g, node);
  for (u32 i = 0; c->carriers && i < c->sym_count; i++) {
    const SizeSym *s = &c->g->sizes.syms.data[i];
    if (s->unbacked && s->source && s->source - x->result_first < x->result_count && value_type(c->g, s->source)->rank)
      return true;
  }
  return false;
}

typedef enum Made { MADE_not, MADE_not_few, MADE } Made; /* not_few: with carried arrays as numbers it does not fit */

typedef struct Making {
  bool small, in_memory, rows;
  u32 picks;    /* at most */
  bool crowded; /* out: it took more */
} Making;

static Made native_make(Compiler *c, NodeId node, Making *how) {
  Native n = {.c = c, .g = c->g, .node = node, .values = c->native_values, .done = c->native_done,
              .stamp = ++c->native_stamp, .small = how->small, .in_memory = how->in_memory, .rows = how->rows,
              .picks_most = how->picks, .now = NO_EXIT};
  n.block = n.home = node ? graph_node_at(c->g, node)->block : 0;
  u32 fns = c->code->module.fns.count;
  char name[32];
  snprintf(name, sizeof name, "w%u", ++c->names);
  n.fn = loop_fn_new(&c->code->module, LOOP_NATIVE, name);
  bool ok = n.fn != NULL;
  if (!ok) compile_no_memory(c);
  if (ok) {
    n.fn->tag = c->names;
    ok = native_function(&n);
  }
  if (ok && !compile_stopped(c)) native_steps(&n);
  if (!ok) {
    loop_module_truncate(&c->code->module, fns, c->code->module.tables.count);
    c->names--;
  }
  native_release(&n);
  how->crowded |= n.picks > n.picks_most;
  return ok ? MADE : n.carries_few && !how->in_memory ? MADE_not_few : MADE_not;
}

/* With arrays of few elements as numbers, those that the loop carries too, or in memory. */
static Made make_small(Compiler *c, NodeId node, Making *how) {
  *how = (Making){.small = true, .picks = how->picks};
  Made made = native_make(c, node, how);
  how->in_memory = true;
  return made == MADE_not_few && !compile_stopped(c) ? native_make(c, node, how) : made;
}

bool native_make_rows(Compiler *c, NodeId node) {
  return c->device == DEV_CPU && !sizes_change(c, node) &&
         native_make(c, node, &(Making){.rows = true, .picks = UINT32_MAX}) == MADE;
}

static bool has_tables(Compiler *c) {
  if (!c->native_values) {
    c->native_values = arena_alloc(&c->arena, sizeof *c->native_values * (c->g->values.count + 1));
    c->native_done = arena_alloc(&c->arena, sizeof *c->native_done * (c->g->nodes.count + 1));
    if (!c->native_values || !c->native_done) compile_no_memory(c);
  }
  return !compile_stopped(c);
}

/* that follow each other stay functions of their own, since those that are the same share a body */
enum { LOOPS_APART = 3 };

static bool leaves(const Graph *g, const GraphNode *cond) {
  return g->blocks.data[cond->sub[0]].term == TERM_exit || g->blocks.data[cond->sub[1]].term == TERM_exit;
}

/* A number, or (of what writes) an array. */
static bool is_plain(const Graph *g, ValueId v, bool array) {
  return !value_is_token(g, v) && (!value_type(g, v)->rank || array);
}

/* Constructs on numbers, and what stands around them: operations, elements of arrays that are read and written.
 * More than one step in a plan. Where it may return before it writes, an array that others hold would be copied for
 * nothing. */
static bool is_scalar(const Graph *g, BlockId b) {
  u32 constructs = 0, others = 0, loops = 0, leaving = 0, writes = 0;
  for (NodeId k = block_first(g, b); k; k = node_next(g, k)) {
    const GraphNode *x = graph_node_at(g, k);
    bool construct = x->kind == NODE_cond || x->kind == NODE_while || x->kind == NODE_recur;
    if (!construct && x->kind != NODE_op && x->kind != NODE_index && x->kind != NODE_check && x->kind != NODE_update)
      return false;
    bool wrote = x->kind == NODE_update;
    for (u32 i = 0; i < x->result_count; i++) {
      ValueId v = node_result(g, k, i);
      if (!is_plain(g, v, x->kind == NODE_update || x->kind == NODE_while)) return false;
      wrote |= value_type(g, v)->rank > 0;
    }
    for (u32 i = 0; i < x->operand_count; i++) {
      ValueId v = node_operand(g, k, i);
      if (!v && x->kind == NODE_op) continue;
      if (!is_plain(g, v, construct || (!i && (x->kind == NODE_index || x->kind == NODE_update)))) return false;
    }
    *(construct ? &constructs : &others) += 1;
    loops += x->kind == NODE_while;
    leaving += x->kind == NODE_cond && leaves(g, x);
    writes += wrote;
  }
  return (constructs || writes) && constructs + others > 1 && (leaving ? !writes : loops < LOOPS_APART);
}

/* A region of constructs on numbers: one function, not a step of the plan for each. */
bool native_region(Compiler *c) {
  Graph *g = c->g;
  if (c->device || g->blocks.data[1].term != TERM_exit || !is_scalar(g, 1) || !has_tables(c)) return false;
  for (NodeId k = block_first(g, 1); k; k = node_next(g, k))
    for (u32 i = 0; i < graph_node_at(g, k)->operand_count; i++) {
      ValueId v = node_operand(g, k, i);
      if (!v || !value_type(g, v)->rank || value_info(c, v)->slot == NO_SLOT) continue; /* an input */
      (void)schedule_dense(c, v);
      value_info(c, v)->use.dies = true;
      value_info(c, v)->use.variable = schedule_variable(c, v);
    }
  return !compile_stopped(c) && native_make(c, 0, &(Making){.picks = UINT32_MAX}) == MADE;
}

enum { LANES = 8, LANES_ENOUGH = 16, LANES_MOST = 128 };

/* How many numbers a trip would make of arrays of LANES elements or more; 0 where it does anything with small
 * arrays but go by their elements, or goes on with several: each is a kernel of its own, which takes as long as
 * some numbers. */
static u32 lanes_of(Compiler *c, NodeId loop) {
  const Graph *g = c->g;
  u32 lanes = 0, carried = 0, compute;
  for (u32 i = 0; i < graph_node_at(g, loop)->carried; i++) {
    ValueId v = node_operand(g, loop, i);
    carried += !value_is_token(g, v) && value_type(g, v)->rank;
  }
  if (carried != 1) return 0;
  for (NodeId k = block_first(g, graph_node_at(g, loop)->sub[1]); k; k = node_next(g, k)) {
    const GraphNode *x = graph_node_at(g, k);
    ValueId v = x->result_first;
    if (x->result_count != 1 || value_is_token(g, v) || !value_type(g, v)->rank) {
      for (u32 i = 0; i < x->operand_count; i++) {
        ValueId a = node_operand(g, k, i);
        if (a && !value_is_token(g, a) && value_type(g, a)->rank) return 0;
      }
      if (x->sub[0]) return 0;
      continue;
    }
    i64 count = 1, dim;
    for (u32 d = 0; d < value_type(g, v)->rank; d++)
      count *= size_hint(&g->sizes, value_type(g, v)->dims[d], &dim) && dim <= LANES_MOST ? dim : 0;
    if (x->kind != NODE_op || !count || !element_lowers(c, k, &compute)) return 0;
    if (count >= LANES) lanes += (u32)count;
  }
  return lanes;
}

/* Does it read arrays that lie on a device? Native code is the processor's. */
static bool reads_device(const Compiler *c, NodeId node) {
  for (u32 i = 0; c->device && i < graph_node_at(c->g, node)->operand_count; i++) {
    ValueId v = node_operand(c->g, node, i);
    if (v && !value_is_token(c->g, v) && value_type(c->g, v)->device != DEV_CPU) return true;
  }
  return false;
}

bool native_control(Compiler *c, NodeId node) {
  u8 kind = graph_node_at(c->g, node)->kind;
  if (reads_device(c, node)) return false;
  if ((kind != NODE_while && kind != NODE_cond && kind != NODE_recur) || !has_tables(c)) return false;
  bool change = sizes_change(c, node);
  if (!change && native_make(c, node, &(Making){.picks = UINT32_MAX}) == MADE) return true;
  if (kind != NODE_while || compile_stopped(c)) return false;
  bool rows = c->device == DEV_CPU && !change;
  /* numbers would not stay in registers */
  if (rows && lanes_of(c, node) >= LANES_ENOUGH && native_make_rows(c, node)) return true;
  if (compile_stopped(c)) return false;
  Making few = {.picks = rows ? PICKS_MOST : UINT32_MAX};
  Made made = make_small(c, node, &few);
  if (made != MADE && !compile_stopped(c) && native_make_rows(c, node)) made = MADE;
  if (made != MADE && !compile_stopped(c) && few.crowded) {
    few.picks = UINT32_MAX;
    made = make_small(c, node, &few);
  }
  return made == MADE;
}

/* control.c — cond and while as steps of the plan: for bodies that need kernels, allocation or the eager code. */
#include "jit/lower/compile.h"

#include <string.h>

/* A parameter lies where its operand does. */
static void place_param(Compiler *c, ValueId param, u32 slot, ValueId like) {
  if (param >= c->values.count) return;
  const ValueInfo *from = like ? value_info(c, like) : NULL;
  *value_info(c, param) = (ValueInfo){.where = AT_SLOT, .slot = slot, .wanted = true,
                                      .strides = from ? from->strides : 0};
}

static void place_captures(Compiler *c, NodeId n, BlockId b) {
  u32 first, count = node_captures(c->g, n, &first);
  for (u32 i = 0; i < count && i < c->g->blocks.data[b].captures.count; i++) {
    ValueId outer = node_operand(c->g, n, first + i), inner = c->g->blocks.data[b].captures.data[i].inner;
    if (value_is_token(c->g, outer)) continue;
    place_param(c, inner, schedule_slot(c, outer), outer);
    if (inner < c->values.count) value_info(c, inner)->owned = value_info(c, outer)->use.donated;
  }
}

/* Is the value made by this block, or donated to it, and given on once: then its array moves. */
static bool may_take(Compiler *c, BlockId b, u32 i) {
  const GraphBlock *block = &c->g->blocks.data[b];
  ValueId v = block_result(c->g, b, i);
  NodeId n = value_node(c->g, v);
  if (n ? graph_node_at(c->g, n)->block != b : c->g->values.data[v].def != b || !value_info(c, v)->owned) return false;
  for (u32 k = 0; k < block->term_count; k++)
    if (k != i && value_info(c, block_result(c->g, b, k))->slot == value_info(c, v)->slot) return false;
  return true;
}

/* Gives the block's values to `slots`; those that lie in other ones of `slots` go through temporaries. */
static void give(Compiler *c, BlockId b, const u32 *slots, u32 count) {
  u32 *temps = arena_alloc(&c->arena, sizeof *temps * (count + 1));
  if (!temps) {
    compile_no_memory(c);
    return;
  }
  for (u32 i = 0; i < count && !compile_stopped(c); i++) {
    ValueId v = block_result(c->g, b, i);
    if (value_is_token(c->g, v)) continue;
    u8 origin = c->g->values.data[v].origin;
    bool number = type_is_number(value_type(c->g, v)), among = false;
    if (number && origin == GV_const) continue;
    u32 from = number ? schedule_slot(c, v) : schedule_dense(c, v);
    for (u32 k = 0; k < count; k++) among |= k != i && slots[k] == from;
    if (!among) continue;
    temps[i] = plan_slot_for(c->plan, v) + 1; /* 0: none */
    schedule_move(c, temps[i] - 1, v, false);
  }
  for (u32 i = 0; i < count && !compile_stopped(c); i++) {
    ValueId v = block_result(c->g, b, i);
    if (value_is_token(c->g, v)) continue;
    if (!temps[i]) {
      schedule_move(c, slots[i], v, may_take(c, b, i));
      continue;
    }
    PlanStep *s = schedule_step(c, type_is_number(value_type(c->g, v)) ? STEP_copy : STEP_move, NO_EXIT);
    s->dst = slots[i];
    s->src = temps[i] - 1;
  }
}

static void end_block(Compiler *c, BlockId b, const u32 *results, u32 count) {
  const GraphBlock *block = &c->g->blocks.data[b];
  if (compile_stopped(c)) return;
  switch ((TermKind)block->term) {
    case TERM_yield: give(c, b, results, count); return;
    case TERM_next:
      give(c, b, c->loop_slots, block->term_count);
      schedule_step(c, STEP_again, c->loop_exit);
      return;
    case TERM_break: {
      give(c, b, c->loop_slots, block->term_count);
      PlanSlot one = {.dtype = DT_bool};
      u32 slot = plan_slot(c->plan, &one);
      PlanStep *s = schedule_step(c, STEP_const, NO_EXIT);
      s->dst = slot;
      s->bits = 1;
      schedule_step(c, STEP_until, NO_EXIT)->src = slot;
      return;
    }
    case TERM_exit:
      schedule_bind(c, block->exit);
      schedule_step(c, STEP_exit, block->exit);
      return;
    default: compile_unsupported(c, "a block without an end");
  }
}

static void cond_steps(Compiler *c, NodeId n) {
  Graph *g = c->g;
  const GraphNode *x = graph_node_at(g, n);
  u32 count = x->result_count, *slots = arena_alloc(&c->arena, sizeof *slots * (count + 1));
  if (!slots) {
    compile_no_memory(c);
    return;
  }
  u32 p = schedule_slot(c, node_operand(g, n, 0));
  for (u32 i = 0; i < count; i++) {
    ValueId v = node_result(g, n, i);
    slots[i] = value_is_token(g, v) ? 0 : schedule_new_slot(c, v);
  }
  schedule_step(c, STEP_if, NO_EXIT)->src = p;
  u32 exit = c->exit;
  for (u32 arm = 0; arm < 2 && !compile_stopped(c); arm++) {
    ScheduleMark mark = schedule_mark(c);
    BlockId b = graph_node_at(g, n)->sub[arm];
    if (arm) schedule_step(c, STEP_else, NO_EXIT);
    place_captures(c, n, b);
    schedule_block(c, b);
    end_block(c, b, slots, count);
    schedule_forget(c, mark);
    c->exit = exit; /* an effect in the arm has one of its own */
  }
  schedule_step(c, STEP_end, NO_EXIT);
}

static void while_steps(Compiler *c, NodeId n) {
  Graph *g = c->g;
  GraphNode x = *graph_node_at(g, n);
  u32 count = x.carried, *slots = arena_alloc(&c->arena, sizeof *slots * (count + 1)), *outer = c->loop_slots,
      exit = c->exit, outer_exit = c->loop_exit;
  if (!slots) {
    compile_no_memory(c);
    return;
  }
  BlockId cond = x.sub[0], body = x.sub[1];
  for (u32 i = 0; i < count && !compile_stopped(c); i++) {
    ValueId init = node_operand(g, n, i), v = node_result(g, n, i);
    if (value_is_token(g, v)) {
      slots[i] = NO_SLOT;
      continue;
    }
    slots[i] = schedule_new_slot(c, v);
    const ValueInfo *info = value_info(c, init);
    bool again = false;
    for (u32 k = 0; k < x.operand_count; k++) again |= k != i && node_operand(g, n, k) == init;
    u8 origin = g->values.data[init].origin;
    bool constant = origin == GV_const || origin == GV_size;
    schedule_move(c, slots[i], init, !constant && !again && info->owned && info->use.dies);
    place_param(c, g->blocks.data[cond].params.data[i], slots[i], 0);
    place_param(c, g->blocks.data[body].params.data[i], slots[i], 0);
    value_info(c, g->blocks.data[body].params.data[i])->owned = true; /* the next trip gives it anew */
  }
  place_captures(c, n, cond);
  place_captures(c, n, body);
  ScheduleMark mark = schedule_mark(c);
  if (x.exit != NO_EXIT) {
    schedule_bind(c, x.exit);
    c->exit = x.exit;
  }
  c->loop_exit = c->exit;
  schedule_step(c, STEP_loop, NO_EXIT);
  schedule_block(c, cond);
  if (!compile_stopped(c)) {
    u32 more = schedule_slot(c, block_result(g, cond, 0));
    schedule_step(c, STEP_while, NO_EXIT)->src = more;
  }
  schedule_forget(c, mark);
  c->loop_slots = slots;
  if (!compile_stopped(c)) schedule_block(c, body);
  if (!compile_stopped(c)) end_block(c, body, NULL, 0);
  schedule_step(c, STEP_end, NO_EXIT);
  schedule_forget(c, mark);
  c->loop_slots = outer;
  c->loop_exit = outer_exit;
  c->exit = exit;
}

void control_steps(Compiler *c, NodeId n) {
  switch (graph_node_at(c->g, n)->kind) {
    case NODE_cond: cond_steps(c, n); return;
    case NODE_while: while_steps(c, n); return;
    case NODE_recur:
      c->restart = true;
      compile_unsupported(c, "a function that calls itself and does not lower");
      return;
    default: compile_unsupported(c, "a construct that does not lower"); return;
  }
}

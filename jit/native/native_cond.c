/* native_cond.c — `cond` in a native function: as arithmetic where both arms cost less than a branch, else as an `if`
 * (see native.h). */
#include "jit/native/native.h"

#include <string.h>

enum { LOGIC_NODES = 6 }; /* that are computed though the outcome is known */

static bool number(Native *n, ValueId v) { return value_type(n->g, v)->rank == 0; }

static ValueId cond_origin_of(Native *n, ValueId v) {
  ValueId s = native_value(n, v)->same_as;
  return s ? s : v;
}

static bool is_truth(Native *n, ValueId v) {
  return !value_is_token(n->g, v) && number(n, v) && value_type(n->g, v)->dtype == DT_bool;
}

/* Does the arm do nothing and give `what` or the constant `as`? */
static bool gives(Native *n, BlockId b, ValueId what, bool as) {
  Value k;
  if (n->g->blocks.data[b].term != TERM_yield || block_first(n->g, b)) return false;
  ValueId v = block_result(n->g, b, 0);
  if (value_const(n->g, v, &k)) return (k.bits != 0) == as;
  return cond_origin_of(n, v) == cond_origin_of(n, what);
}

static bool cheap(u32 op) {
  static const u8 ops[] = {OP_less, OP_less_equal, OP_greater, OP_greater_equal, OP_equal, OP_not_equal, OP_add,
                           OP_subtract, OP_multiply, OP_negative, OP_bitwise_and, OP_bitwise_or, OP_bitwise_xor,
                           OP_logical_and, OP_logical_or, OP_logical_not};
  for (u32 i = 0; i < COUNT_OF(ops); i++)
    if (ops[i] == op) return true;
  return false;
}

/* A few operations on numbers that cannot fail, and a truth value. */
static bool harmless(Native *n, BlockId b) {
  u32 count = 0;
  if (n->g->blocks.data[b].term != TERM_yield) return false;
  for (NodeId k = block_first(n->g, b); k; k = node_next(n->g, k)) {
    const GraphNode *x = graph_node_at(n->g, k);
    if (++count > LOGIC_NODES || x->kind != NODE_op || x->result_count != 1) return false;
    ValueId made = node_result(n->g, k, 0);
    if (!(cheap(x->op) || (x->op == OP_astype && is_truth(n, made))) || !number(n, made)) return false;
    for (u32 i = 0; i < x->operand_count; i++) {
      ValueId v = node_operand(n->g, k, i);
      if (!v || value_is_token(n->g, v) || !number(n, v)) return false;
    }
  }
  return is_truth(n, block_result(n->g, b, 0));
}

/* `p and q`, `p or q`, where q is harmless: both are computed, and what branches on the outcome branches twice. */
static bool emit_logic(Native *n, NodeId node, u32 p, bool *done) {
  const GraphNode x = *graph_node_at(n->g, node);
  ValueId c = node_operand(n->g, node, 0);
  *done = false;
  if (x.result_count != 1 || !is_truth(n, node_result(n->g, node, 0)) || !is_truth(n, c)) return true;
  bool both = gives(n, x.sub[1], c, false) && harmless(n, x.sub[0]),
      either = !both && gives(n, x.sub[0], c, true) && harmless(n, x.sub[1]);
  if (!both && !either) return true;
  BlockId arm = x.sub[both ? 0 : 1], around = n->block;
  if (native_block(n, arm) != FLOW_ON) return false;
  u32 q = native_number(n, block_result(n->g, arm, 0));
  n->block = around;
  if (!q || n->why) return false;
  u32 ir = loop_emit(n->fn, both ? LOOP_AND : LOOP_OR, LT_VOID, p, q, 0);
  *native_value(n, node_result(n->g, node, 0)) = (NValue){.stamp = n->stamp, .ir = ir};
  *done = true;
  return ir != 0 || native_bail(n, "an operation that does not lower");
}

/* `if p { k += v }` of integers: k + v or k + 0 without a branch, which data would make hard to foresee. Of what a
 * loop carries alone: a position made on the spot leads to loads, which a foreseen branch lets begin before the
 * outcome is known. */
static bool emit_count(Native *n, NodeId node, u32 c) {
  const GraphNode *x = graph_node_at(n->g, node);
  if (x->result_count != 1 || native_type(n, node_result(n->g, node, 0)) != LT_I64) return false;
  for (u32 arm = 0; arm < 2; arm++) {
    BlockId b = x->sub[arm], other = x->sub[1 - arm];
    NodeId k = block_first(n->g, b);
    const GraphNode *add = k ? graph_node_at(n->g, k) : NULL;
    if (!add || node_next(n->g, k) || add->kind != NODE_op || add->op != OP_add || block_first(n->g, other)) continue;
    if (n->g->blocks.data[b].term != TERM_yield || n->g->blocks.data[other].term != TERM_yield) continue;
    ValueId was = block_result(n->g, other, 0), more = block_result(n->g, b, 0), p = node_operand(n->g, k, 0),
        q = node_operand(n->g, k, 1);
    if (more != node_result(n->g, k, 0)) continue;
    if (cond_origin_of(n, p) != cond_origin_of(n, was)) {
      ValueId t = p;
      p = q;
      q = t;
    }
    if (cond_origin_of(n, p) != cond_origin_of(n, was) || n->g->values.data[cond_origin_of(n, p)].origin != GV_param)
      continue;
    if (native_type(n, p) != LT_I64 || native_type(n, q) != LT_I64 || native_type(n, was) != LT_I64) continue;
    u32 left = native_number(n, p), right = native_number(n, q), zero = loop_const_i(n->fn, LT_I64, 0);
    if (arm) c = loop_emit(n->fn, LOOP_XOR, LT_VOID, c, loop_const_i(n->fn, LT_I1, 1), 0);
    u32 bit = element_convert(n->fn, c, LT_I1, LT_I64);
    Value one;
    if (!value_const(n->g, q, &one) || one.i != 1)
      bit = loop_emit(n->fn, LOOP_AND, LT_VOID, loop_emit(n->fn, LOOP_SUB, LT_VOID, zero, bit, 0), right, 0);
    *native_value(n, node_result(n->g, node, 0)) = (NValue){.stamp = n->stamp,
                                                            .ir = loop_emit(n->fn, LOOP_ADD, LT_VOID, left, bit, 0)};
    return true;
  }
  return false;
}

/* The shape of an array that a cond gives as elements; NULL: it stays one. */
static const NSplit *cond_shape(Native *n, NodeId node, u32 i) {
  const GraphNode *x = graph_node_at(n->g, node);
  const ArrayType t = *value_type(n->g, node_result(n->g, node, i));
  if (!n->small || !t.rank || native_stays(n, node_result(n->g, node, i), 0)) return NULL;
  for (u32 arm = 0; arm < 2; arm++) { /* one that was there before */
    const GraphBlock *b = &n->g->blocks.data[x->sub[arm]];
    const NSplit *s = b->term == TERM_yield ? native_value(n, block_result(n->g, x->sub[arm], i))->split : NULL;
    if (s) return s->count <= SMALL_CARRIED ? s : NULL;
  }
  u32 mark = n->assumed.count;
  i64 dims[TYPE_MAX_RANK], total = 1;
  for (u32 d = 0; d < t.rank; d++) {
    if (native_dim(n, t.dims[d], &dims[d]) && dims[d] <= SMALL_CARRIED && (total *= dims[d]) <= SMALL_CARRIED) continue;
    n->assumed.count = mark; /* nothing was gained by it */
    return NULL;
  }
  return native_split_new(n, t.rank, dims);
}

/* An array by value that an arm changed and does not give is as it was behind it. */
static bool arm_goes_back(Native *n, BlockId b, u32 count, const u32 *before) {
  const GraphBlock *block = &n->g->blocks.data[b];
  for (u32 i = 0; i < count && block->term == TERM_yield; i++) {
    if (!n->buffers.data[i].mark || n->buffers.data[i].version == before[i]) continue;
    bool given = false;
    for (u32 k = 0; k < block->term_count; k++) given |= native_value(n, block_result(n->g, b, k))->buffer == i + 1;
    if (!given && !native_go_back(n, i, before[i]))
      return native_bail(n, "an arm changes an array of before, which is used again");
  }
  return true;
}

bool native_cond(Native *n, NodeId node, bool *goes_on) {
  Graph *g = n->g;
  if (native_shares(n, node)) return native_share(n, node);
  GraphNode x = *graph_node_at(g, node);
  LoopType *types = arena_alloc(&n->c->arena, sizeof *types * (x.result_count * SMALL_CARRIED + 1));
  const NSplit **split = arena_alloc(&n->c->arena, sizeof *split * (x.result_count + 1));
  u32 *arrays = arena_alloc(&n->c->arena, sizeof *arrays * (x.result_count + 1)), numbers = 0,
      nbuffers = n->buffers.count;
  if (!types || !arrays || !split) return native_no_memory(n);
  ValueId p = node_operand(g, node, 0);
  u32 c = native_number(n, p);
  if (!c) return false;
  c = element_convert(n->fn, c, native_type(n, p), LT_I1);
  for (u32 arm = 0; arm < 2; arm++) { /* parameters for what is captured, before the arms part */
    native_captures(n, node, x.sub[arm]);
    nbuffers = n->buffers.count;
  }
  if (n->why) return false;
  if (emit_count(n, node, c)) return !n->why;
  bool done;
  if (!emit_logic(n, node, c, &done) || done) return !n->why;
  for (u32 i = 0; i < x.result_count; i++) {
    ValueId v = node_result(g, node, i);
    if (value_is_token(g, v)) return native_bail(n, "output");
    split[i] = cond_shape(n, node, i);
    LoopType type = number(n, v) || split[i] ? native_type(n, v) : LT_I1;
    if (type == LT_VOID) return native_bail(n, "a dtype outside the loop IR");
    for (u32 k = split[i] ? split[i]->count : number(n, v); k > 0; k--) types[numbers++] = type;
  }
  if (n->why) return false;
  u32 *before = arena_alloc(&n->c->arena, sizeof *before * (nbuffers + 1)),
      *changed = arena_alloc(&n->c->arena, sizeof *changed * (nbuffers + 1));
  const NMark **marks = arena_alloc(&n->c->arena, sizeof(NMark *) * (nbuffers + 1)),
              **meet = arena_alloc(&n->c->arena, sizeof(NMark *) * (nbuffers + 1));
  if (!before || !changed || !marks || !meet) return native_no_memory(n);
  for (u32 i = 0; i < nbuffers; i++) {
    before[i] = n->buffers.data[i].version;
    meet[i] = marks[i] = n->buffers.data[i].mark;
  }
  u32 head = loop_begin_if(n->fn, c, numbers, types);
  if (!head) return native_bail(n, "a malformed if");
  *goes_on = false;
  BlockId around = n->block;
  for (u32 arm = 0; arm < 2; arm++) {
    BlockId b = x.sub[arm];
    if (arm) loop_else(n->fn);
    bool call = native_calls_arm(n, b);
    Flow f = call ? FLOW_ON : native_block(n, b);
    if (f == FLOW_BAIL || (call && !native_call_arm(n, b))) return false;
    if (f == FLOW_ON) {
      if (!arm_goes_back(n, b, nbuffers, before) || !native_terminator(n, b, numbers, split)) return false;
      if (g->blocks.data[b].term == TERM_yield) {
        *goes_on = true;
        for (u32 i = 0; i < nbuffers; i++) {
          changed[i] |= n->buffers.data[i].version != before[i];
          meet[i] = native_marks_meet(meet[i], n->buffers.data[i].mark);
        }
        for (u32 i = 0; i < x.result_count; i++) {
          ValueId v = block_result(g, b, i);
          if (number(n, v) || split[i]) continue;
          u32 at = native_value(n, v)->buffer;
          if (arrays[i] && arrays[i] != at) return native_bail(n, "arms that give different arrays");
          arrays[i] = at;
        }
      }
    }
    for (u32 i = 0; i < nbuffers; i++) {
      n->buffers.data[i].version = before[i];
      n->buffers.data[i].mark = marks[i];
    }
  }
  n->block = around;
  loop_end(n->fn);
  if (n->fn->failed) return native_bail(n, n->fn->failed);
  for (u32 i = 0; i < nbuffers; i++) {
    if (!changed[i]) continue;
    n->buffers.data[i].version = ++n->versions;
    n->buffers.data[i].mark = meet[i];
    if (marks[i] && *goes_on && !native_mark(n, i, 0)) return false;
  }
  u32 at = 0;
  for (u32 i = 0; i < x.result_count; i++) {
    ValueId v = node_result(g, node, i);
    NValue made = {.stamp = n->stamp};
    if (number(n, v)) {
      made.ir = loop_result_of(n->fn, head, at++);
    } else if (split[i]) {
      NSplit *s = native_split_new(n, split[i]->rank, split[i]->dims);
      if (!s) return false;
      for (u32 k = 0; k < s->count; k++) s->ir[k] = loop_result_of(n->fn, head, at++);
      made.split = s;
    } else if (*goes_on) {
      made.buffer = arrays[i];
      made.version = n->buffers.data[arrays[i] - 1].version;
    }
    *native_value(n, v) = made;
  }
  return true;
}

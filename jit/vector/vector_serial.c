/* vector_serial.c — loops around vector loops, one trip at a time; a transposed operand makes blocks of the loop inside
 * (vector_emitter.h). */
#include "jit/vector/vector_emitter.h"

enum { SHORT_TRIPS = 4 };

/* A few trips that store to one place: results that are single numbers. */
bool is_short(const VecFn *f, u32 head, u32 first, u32 last) {
  u32 trips = loop_trips_of(f->fn, head, 0);
  if (vnode(f, trips)->op != LOOP_CONST || vnode(f, trips)->imm > SHORT_TRIPS) return false;
  for (u32 pos = first; pos <= last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    if (n->op == LOOP_STORE && access_kind(f, n, head, first, last) != VA_UNIT) return true;
  }
  return vnode(f, trips)->imm == 1;
}

/* A transposed operand: the one loop inside runs across its rows, this one along them. The lines that some trips of
 * the inner loop touch hold what the next trips of this one need, so all of those come before more of the inner
 * loop. No checks: they would fail in another order. */
static bool runs_in_blocks(const VecFn *f, u32 head, u32 first, u32 last) {
  u32 inner = 0, from = first;
  bool across = false;
  for (u32 pos = first; pos <= last; pos++) {
    u32 id = body_node(f, pos);
    const LoopNode *n = vnode(f, id);
    if (loop_is_head(n)) {
      u32 trips = loop_trips_of(f->fn, id, 0);
      if (vnode(f, trips)->op != LOOP_PARAM && vnode(f, trips)->op != LOOP_CONST) return false;
      if (inner || n->op != LOOP_FOR || n->a != 1 || n->b || f->end[pos] != last || !is_straight(f, pos + 1, last - 1))
        return false;
      inner = id;
      from = pos + 1;
    }
    if (n->op == LOOP_CHECK || (n->op == LOOP_STORE && !inner)) return false;
    if ((n->op != LOOP_LOAD && n->op != LOOP_STORE) || !inner || access_kind(f, n, inner, from, last - 1) != VA_STRIDED)
      continue;
    for (u32 i = 0; i < n->count; i++) {
      const LoopTerm *t = &loop_terms(f->fn, n)[i];
      across |= t->var == loop_index_of(head, 0) && t->coef == 1 && !t->stride[0];
    }
  }
  return across;
}

void serial_loop(VecFn *f, u32 head, u32 first, u32 last) {
  const LoopNode *n = vnode(f, head);
  u32 blocks = runs_in_blocks(f, head, first, last) ? (u32)frame_room(f, 8, 8) : 0, inner = first, again = g_label(f),
      begun = f->ins.count;
  if ((n->op != LOOP_PAR && n->op != LOOP_FOR) || n->a != 1 || n->b) {
    refuse(f, "a loop that carries values");
    return;
  }
  u32 top = g_label(f), done = g_label(f), slot = (u32)frame_room(f, 8, 8), limit = (u32)frame_room(f, 8, 8);
  f->index_slot[loop_index_of(head, 0)] = slot;
  if (blocks) {
    while (!loop_is_head(vnode(f, body_node(f, inner)))) inner++;
    g_imm(f, RAX, 0);
    g_save(f, RSP, (i32)blocks, RAX);
    begun = f->ins.count;
    g_put(f, again);
    f->block_slot = blocks;
  }
  if (n->op == LOOP_PAR) {
    g_load(f, RAX, RSP, (i32)f->lo_slot);
    g_load(f, RCX, RSP, (i32)f->hi_slot);
  } else {
    word_to(f, RCX, loop_trips_of(f->fn, head, 0));
    g_imm(f, RAX, 0);
  }
  g_save(f, RSP, (i32)slot, RAX);
  g_save(f, RSP, (i32)limit, RCX);
  g_alu(f, ALU_CMP, RAX, RCX);
  g_jcc(f, CC_GE, done);
  u32 begin = f->ins.count;
  g_put(f, top);
  if (f->head_count == HEADS_MOST) refuse(f, "loops that nest too deeply");
  else f->heads[f->head_count++] = head;
  emit_body(f, first, last);
  if (!f->failed) f->head_count--;
  g_load(f, RAX, RSP, (i32)slot);
  g_alu_imm(f, ALU_ADD, RAX, 1);
  g_save(f, RSP, (i32)slot, RAX);
  g_alu_load(f, ALU_CMP, RAX, RSP, (i32)limit);
  g_jcc(f, CC_L, top);
  end_span(f, begin);
  if (blocks) {
    f->block_slot = 0;
    g_load(f, RAX, RSP, (i32)blocks);
    g_alu_imm(f, ALU_ADD, RAX, SERIAL_BLOCK);
    g_save(f, RSP, (i32)blocks, RAX);
    word_to(f, RCX, loop_trips_of(f->fn, body_node(f, inner), 0));
    g_alu(f, ALU_CMP, RAX, RCX);
    g_jcc(f, CC_L, again);
    end_span(f, begun);
  }
  g_put(f, done);
}

/* loops_dead.c — loop IR without what nothing needs.
 *
 * What is needed is marked from statements with an effect on: through a loop's carried values and results one by
 * one, so that a value that only feeds itself goes. What a head lists for a value nobody needs becomes 0. */
#include "jit/loops/loops.h"

typedef struct Dead {
  LoopFn *fn;
  Allocator *alloc;
  bool failed;
  u8 *used;      /* per node; of heads: kept */
  u32 *first;    /* per head: its terminators (of a scan its prefix), linked by `next` */
  u32 *next;
  VEC(u32) work;
} Dead;

static void need(void *ctx, u32 id) {
  Dead *d = ctx;
  if (d->used[id]) return;
  d->used[id] = 1;
  if (!vec_push(d->alloc, &d->work, id)) d->failed = true;
}

static void need_head(Dead *d, u32 head) {
  const LoopNode *n = loop_node(d->fn, head);
  if (d->used[head]) return;
  d->used[head] = 1;
  for (u32 i = 0; i < n->count - n->b; i++) need(d, loop_list(d->fn, n)[i]);
  if (n->op == LOOP_SCAN) need(d, d->first[head]);
}

static void need_leaf(Dead *d, const LoopNode *leaf) {
  u32 head = leaf->a;
  const LoopNode *h = loop_node(d->fn, head);
  if (!loop_is_head(h)) return; /* of a call, which is kept */
  need_head(d, head);
  bool loop = h->op == LOOP_FOR || h->op == LOOP_WHILE;
  if (leaf->op == LOOP_INDEX || h->op == LOOP_SCAN) return;
  if (leaf->op == LOOP_CARRY) need(d, loop_init_of(d->fn, head, leaf->b));
  if (leaf->op == LOOP_RESULT && loop) need(d, loop_carry_of(d->fn, head, leaf->b));
  for (u32 t = d->first[head]; t; t = d->next[t])
    if ((loop_node(d->fn, t)->op == LOOP_NEXT) == (leaf->op == LOOP_CARRY))
      need(d, loop_list(d->fn, loop_node(d->fn, t))[leaf->b]);
}

/* Heads that hold an effect are kept; a `next`, `break` or `return` is one for the heads it leaves. */
static void find_effects(Dead *d) {
  const LoopFn *fn = d->fn;
  VEC(u32) open = {0};
  for (u32 i = 0; i < fn->body.count && !d->failed; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (n->op == LOOP_END) open.count--;
    if (loop_op_form((LoopOp)n->op) == LOOP_FORM_TERM && n->a) d->next[id] = d->first[n->a], d->first[n->a] = id;
    if (n->op == LOOP_PREFIX) d->first[open.data[open.count - 1]] = id;
    if (loop_is_head(n) && !vec_push(d->alloc, &open, id)) d->failed = true;
  }
  open.count = 0;
  for (u32 i = 0; i < fn->body.count && !d->failed; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    LoopForm form = loop_op_form((LoopOp)n->op);
    if (n->op == LOOP_END) open.count--;
    bool pure = form <= LOOP_FORM_MATH || n->op == LOOP_LOAD || form == LOOP_FORM_PREFIX || form == LOOP_FORM_MARK ||
                loop_is_head(n);
    bool leaves = form == LOOP_FORM_TERM && n->op != LOOP_YIELD;
    if ((!pure && form != LOOP_FORM_TERM) || n->op == LOOP_RETURN) loop_each_operand(fn, n, need, d);
    for (u32 k = open.count; k-- > 0 && ((!pure && form != LOOP_FORM_TERM) || leaves);) {
      if (leaves && open.data[k] == n->a) break;
      need_head(d, open.data[k]);
    }
    if (!loop_is_head(n)) continue;
    if (n->op == LOOP_WHILE || (fn->kind == LOOP_KERNEL && !open.count)) need_head(d, id);
    if (!vec_push(d->alloc, &open, id)) d->failed = true;
  }
  vec_free(d->alloc, &open);
}

static void clear_unneeded(Dead *d, u32 id) {
  LoopNode *n = &d->fn->nodes.data[id];
  bool loop_head = n->op == LOOP_FOR || n->op == LOOP_WHILE;
  if (!loop_head && n->op != LOOP_YIELD && n->op != LOOP_NEXT && n->op != LOOP_BREAK) return;
  u32 head = loop_head ? id : n->a, skip = loop_head ? n->a : 0, list = n->list, count = n->count;
  bool carried = loop_head || n->op == LOOP_NEXT;
  for (u32 i = skip; i < count; i++) {
    u32 for_what = carried ? loop_carry_of(d->fn, head, i - skip) : loop_result_of(d->fn, head, i);
    if (d->used[for_what]) continue;
    u32 zero = loop_const(d->fn, loop_type_of(d->fn, for_what), 0);
    if (!zero) d->failed = true;
    d->fn->list.data[list + i] = zero;
  }
}

bool loops_drop_dead(LoopFn *fn) {
  Allocator *alloc = fn->module->alloc;
  Dead d = {.fn = fn, .alloc = alloc};
  u32 nodes = fn->nodes.count, kept = 0;
  d.used = mem_alloc_zero(alloc, nodes);
  d.first = mem_alloc_zero(alloc, sizeof(u32) * nodes);
  d.next = mem_alloc_zero(alloc, sizeof(u32) * nodes);
  if (!d.used || !d.first || !d.next) d.failed = true;
  else find_effects(&d);
  while (d.work.count && !d.failed) {
    const LoopNode *n = loop_node(fn, d.work.data[--d.work.count]);
    if (n->op == LOOP_INDEX || n->op == LOOP_CARRY || n->op == LOOP_RESULT) need_leaf(&d, n);
    else loop_each_operand(fn, n, need, &d);
  }
  u32 dropped = 0; /* the head whose body is being dropped */
  for (u32 i = 0; i < fn->body.count && !d.failed; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (dropped) {
      if (n->op == LOOP_END && n->a == dropped) dropped = 0;
      continue;
    }
    LoopForm form = loop_op_form((LoopOp)n->op);
    bool pure = form <= LOOP_FORM_MATH || n->op == LOOP_LOAD;
    if (loop_is_head(n) && !d.used[id]) dropped = id;
    if (dropped || (pure && !d.used[id])) continue;
    clear_unneeded(&d, id);
    fn->body.data[kept++] = id;
  }
  if (!d.failed) fn->body.count = kept;
  mem_free(alloc, d.used, nodes);
  mem_free(alloc, d.first, sizeof(u32) * nodes);
  mem_free(alloc, d.next, sizeof(u32) * nodes);
  vec_free(alloc, &d.work);
  return !d.failed;
}

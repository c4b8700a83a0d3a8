/* mir_lives.c — live spans over body positions, and registers shared along loop-carried values and results.
 *
 * MIR at level 1 does not coalesce moves. So a value that becomes the next value of a carried one, the result of an
 * arm, or what a loop breaks with is computed in the carried value's register where their spans do not collide.
 * Spans are linear in the body: two arms of an `if` never collide, and a value read inside a loop that it was
 * defined before lives to the loop's end. */
#include "jit/scalar/mir_lives.h"

#include <string.h>

static const LoopNode *node(const Lives *l, u32 id) { return loop_node(l->fn, id); }

static bool is_leaf_without_place(const LoopNode *n) {
  return n->op == LOOP_PARAM || n->op == LOOP_CONST || n->op == LOOP_TABLE;
}

static size_t nodes_bytes(const Lives *l) { return sizeof(u32) * (l->fn->nodes.count + 1); }
static size_t body_bytes(const Lives *l) { return sizeof(u32) * (l->fn->body.count + 1); }

/* ---- positions ----------------------------------------------------------------------------- */

static bool find_calls(Lives *l) {
  const LoopFn *fn = l->fn;
  for (u32 pos = fn->body.count, next = UINT32_MAX; pos-- > 0;) {
    u8 op = node(l, fn->body.data[pos])->op;
    if (op == LOOP_CALL || op == LOOP_MATH) {
      if (!l->call && !(l->call = mem_alloc(l->alloc, body_bytes(l)))) return false;
      if (next == UINT32_MAX) memset(l->call, 0xFF, body_bytes(l));
      next = pos;
    }
    if (l->call) l->call[pos] = next;
  }
  return true;
}

static bool find_places(Lives *l) {
  const LoopFn *fn = l->fn;
  VEC(u32) open = {0};
  VEC(u32) loops = {0};
  bool ok = true;
  for (u32 pos = 0; ok && pos < fn->body.count; pos++) {
    u32 id = fn->body.data[pos];
    const LoopNode *n = node(l, id);
    if (n->op == LOOP_END) {
      u32 head = open.data[--open.count];
      l->end[head] = pos;
      if (node(l, head)->op != LOOP_IF) loops.count--;
      else if (!l->other[head]) l->other[head] = pos;
    }
    if (n->op == LOOP_ELSE) l->other[open.data[open.count - 1]] = pos;
    l->loop[pos] = loops.count ? loops.data[loops.count - 1] : 0;
    l->where[id] = pos;
    if (loop_is_head(n)) {
      for (u32 i = 1; i <= n->a + n->b + n->c; i++) l->where[id + i] = pos;
      ok = vec_push(l->alloc, &open, id) && (n->op == LOOP_IF || vec_push(l->alloc, &loops, id));
    }
    if (n->op == LOOP_CALL)
      for (u32 i = 1; i <= n->b; i++) l->where[id + i] = pos;
  }
  vec_free(l->alloc, &open);
  vec_free(l->alloc, &loops);
  return ok;
}

/* The loop head that the loop at `head` stands in. */
static u32 outer_loop(const Lives *l, u32 head) { return l->loop[l->where[head]]; }

/* The innermost loop whose body holds the definition of a value. */
static u32 home_loop(const Lives *l, u32 id) {
  const LoopNode *n = node(l, id);
  if (is_leaf_without_place(n)) return 0;
  if (n->op == LOOP_INDEX || n->op == LOOP_CARRY) return n->a;
  return l->loop[l->where[id]];
}

/* ---- uses ---------------------------------------------------------------------------------- */

typedef struct Reader {
  Lives *l;
  u32 at;
} Reader;

static void count_use(void *ctx, u32 id) { ((Reader *)ctx)->l->uses[id]++; }

/* Reads `id` at a position: to the end of the outermost loop that holds the position but not the definition. */
static void read_at(void *ctx, u32 id) {
  Reader *r = ctx;
  Lives *l = r->l;
  u32 home = home_loop(l, id), last = r->at;
  for (u32 loop = l->loop[r->at]; loop && loop != home; loop = outer_loop(l, loop)) last = l->end[loop];
  if (node(l, id)->op == LOOP_CONST && l->loop[r->at]) l->in_loop[id] = 1;
  if (last > l->last[id]) l->last[id] = last;
}

/* What a call passes when it leaves is read behind it, where its results lie in their registers already. */
static void read_exit_values(Lives *l, u32 at, const LoopNode *n) {
  Reader r = {l, at + 1};
  for (u32 i = n->op == LOOP_CALL ? n->a : n->count; i < n->count; i++) read_at(&r, loop_list(l->fn, n)[i]);
}

/* A deferred value is read where it is branched on: so are its operands. Chains are walked with a small stack. */
static void read_operands(Lives *l, u32 at, const LoopNode *n) {
  Reader r = {l, at};
  if (!l->deferred[l->fn->body.data[at]]) loop_each_operand(l->fn, n, read_at, &r);
}

static void read_deferred(Lives *l, u32 at, u32 id) {
  u32 stack[32], depth = 0;
  Reader r = {l, at};
  stack[depth++] = id;
  while (depth) {
    const LoopNode *n = node(l, stack[--depth]);
    u32 operands[2] = {n->a, n->op == LOOP_NOT ? 0 : n->b};
    for (u32 i = 0; i < 2; i++) {
      if (!operands[i]) continue;
      if (l->deferred[operands[i]]) stack[depth++] = operands[i];
      else read_at(&r, operands[i]);
    }
  }
}

bool lives_masks(const Lives *l, const LoopNode *select) {
  return l->fn->kind == LOOP_NATIVE && (select->type == LT_I64 || select->type == LT_I1);
}

bool lives_excludes(const Lives *l, u32 id) {
  const LoopNode *n = node(l, id);
  bool excludes = l->fn->kind == LOOP_NATIVE && n->op == LOOP_AND && n->type == LT_I1 &&
                  node(l, n->b)->op == LOOP_NOT && l->uses[n->b] == 1;
  return excludes && l->loop[l->where[n->b]] == l->loop[l->where[id]];
}

u32 lives_threads(const Lives *l, u32 head) {
  const LoopFn *fn = l->fn;
  const LoopNode *n = node(l, head);
  if (n->op != LOOP_IF || n->c == 0 || l->end[head] + 1 >= fn->body.count) return 0;
  u32 result = loop_result_of(fn, head, 0), next = fn->body.data[l->end[head] + 1];
  bool asked = node(l, result)->type == LT_I1 && l->uses[result] == 1 && node(l, next)->op == LOOP_IF &&
               loop_cond_of(fn, next) == result;
  for (u32 i = 1; i < n->c; i++) asked = asked && !l->uses[result + i];
  return asked ? next : 0;
}

/* The conditions a statement branches on. */
static u32 branched_on(const Lives *l, u32 id) {
  const LoopNode *n = node(l, id);
  if (n->op == LOOP_IF) return loop_cond_of(l->fn, id);
  if (n->op == LOOP_SELECT) return lives_masks(l, n) && !lives_wraps(l, l->where[id]) ? 0 : n->a;
  if (n->op == LOOP_YIELD && lives_threads(l, n->a)) return loop_list(l->fn, n)[0];
  if (n->op == LOOP_CHECK && n->aux == LOOP_CHECK_ASSERT) return n->a;
  return 0;
}

/* May an i1 be computed at its only reader, a branch in the same loop? `nodes` bounds the size of such a tree. */
static void defer(Lives *l, u32 cond, u32 at, u32 *room) {
  u32 stack[32], depth = 0;
  stack[depth++] = cond;
  while (depth && *room) {
    u32 id = stack[--depth];
    const LoopNode *n = node(l, id);
    bool compare = loop_op_form((LoopOp)n->op) == LOOP_FORM_COMPARE;
    bool logic = (n->op == LOOP_AND || n->op == LOOP_OR || n->op == LOOP_NOT) && n->type == LT_I1;
    if ((!compare && !logic) || l->uses[id] != 1 || l->loop[l->where[id]] != l->loop[at]) continue;
    l->deferred[id] = 1;
    (*room)--;
    if (logic && depth + 2 <= COUNT_OF(stack)) {
      stack[depth++] = n->a;
      if (n->op != LOOP_NOT) stack[depth++] = n->b;
    }
  }
}

static bool adds(const LoopNode *n, u32 x, u32 y) {
  return n->op == LOOP_ADD && ((n->a == x && n->b == y) || (n->a == y && n->b == x));
}

bool lives_wraps(const Lives *l, u32 at) {
  const LoopFn *fn = l->fn;
  if (fn->kind != LOOP_NATIVE || at + 1 >= fn->body.count) return false;
  u32 id = fn->body.data[at];
  const LoopNode *n = node(l, id), *check = node(l, fn->body.data[at + 1]);
  if (n->op != LOOP_SELECT || n->type != LT_I64 || check->op != LOOP_CHECK || check->aux != LOOP_CHECK_INDEX ||
      check->a != id)
    return false;
  const LoopNode *less = node(l, n->a), *zero = node(l, less->b);
  return less->op == LOOP_LT && less->a == n->c && zero->op == LOOP_CONST && zero->imm == 0 &&
         adds(node(l, n->b), n->c, check->b);
}

/* The sum of such a select is made behind the function's end, from its operands. */
static void defer_sum(Lives *l, u32 at) {
  const LoopNode *n = node(l, l->fn->body.data[at]), *sum = node(l, n->b);
  Reader r = {l, at + 1};
  read_at(&r, sum->a);
  read_at(&r, sum->b);
  if (l->uses[n->b] == 1 && l->loop[l->where[n->b]] == l->loop[at]) l->deferred[n->b] = 1;
}

static void find_uses(Lives *l) {
  const LoopFn *fn = l->fn;
  Reader r = {l, 0};
  for (u32 pos = 0; pos < fn->body.count; pos++) loop_each_operand(fn, node(l, fn->body.data[pos]), count_use, &r);
  for (u32 pos = 0; pos < fn->body.count; pos++) {
    u32 cond = branched_on(l, fn->body.data[pos]), room = 12;
    if (cond) defer(l, cond, pos, &room);
    if (lives_wraps(l, pos)) defer_sum(l, pos);
    if (!lives_excludes(l, fn->body.data[pos])) continue;
    u32 not = node(l, fn->body.data[pos])->b;
    r.at = pos;
    read_at(&r, node(l, not)->a);
    l->deferred[not] = 1;
  }
  for (u32 pos = 0; pos < fn->body.count; pos++) {
    u32 id = fn->body.data[pos], cond = branched_on(l, id);
    const LoopNode *n = node(l, id);
    read_operands(l, pos, n);
    read_exit_values(l, pos, n);
    if (loop_is_head(n)) { /* a trip ends by comparing its index with the count */
      r.at = l->end[id];
      for (u32 axis = 0; axis < n->a; axis++) read_at(&r, loop_trips_of(fn, id, axis));
    }
    if (cond && l->deferred[cond]) read_deferred(l, pos, cond);
    if (n->op != LOOP_CHECK || fn->kind != LOOP_KERNEL) continue;
    u32 loop = l->loop[pos]; /* a failed check goes on with the carried values as they are */
    r.at = pos;
    for (u32 i = 0; i < node(l, loop)->b; i++) read_at(&r, loop_carry_of(fn, loop, i));
  }
}

/* ---- spans and classes --------------------------------------------------------------------- */

static bool add_span(Lives *l, u32 id, u32 from, u32 to) {
  if (!vec_push(l->alloc, &l->span, (LiveSpan){from, to, l->spans[id]})) return false;
  l->spans[id] = l->span.count - 1;
  return true;
}

static bool find_spans(Lives *l) {
  for (u32 id = 1; id < l->fn->nodes.count; id++) {
    const LoopNode *n = node(l, id);
    l->class_of[id] = id;
    if (n->type == LT_VOID || is_leaf_without_place(n)) continue;
    u32 from = l->where[id], to = l->last[id];
    if (n->op == LOOP_RESULT && loop_is_head(node(l, n->a))) from = l->end[n->a];
    if (n->op == LOOP_CARRY && to <= from) to = from + 1;
    if (n->op == LOOP_INDEX && to < l->end[n->a]) to = l->end[n->a];
    if (to < from) to = from;
    if (!add_span(l, id, from, to)) return false;
  }
  return true;
}

static bool collide(const Lives *l, u32 a, u32 b) {
  for (u32 x = l->spans[a]; x; x = l->span.data[x].next)
    for (u32 y = l->spans[b]; y; y = l->span.data[y].next) {
      if (!toil(l->fn->module->toil, 1)) return true;
      const LiveSpan *s = &l->span.data[x], *t = &l->span.data[y];
      if ((s->from < t->to && t->from < s->to) || (s->from == t->from && s->to == t->to)) return true;
    }
  return false;
}

/* A float that lives across a call lies in memory all its life. */
static bool crosses(const Lives *l, u32 class) {
  for (u32 s = l->spans[class]; l->call && s; s = l->span.data[s].next)
    if (l->call[l->span.data[s].from + 1] < l->span.data[s].to) return true;
  return false;
}

static u32 class_of(const Lives *l, u32 id) {
  while (l->class_of[id] != id) id = l->class_of[id];
  return id;
}

static void merge(Lives *l, u32 a, u32 b) { /* class b joins class a */
  u32 last = l->spans[b];
  while (last && l->span.data[last].next && toil(l->fn->module->toil, 1)) last = l->span.data[last].next;
  if (last) l->span.data[last].next = l->spans[a], l->spans[a] = l->spans[b];
  l->class_of[b] = a;
  l->shared[a] = l->shared[b] = 1;
}

/* Lets `value`, which is moved to `target`, be computed in target's register. It must be defined inside `within`:
 * what is defined before is read again by the next trip or the other arm. */
static void share(Lives *l, u32 target, u32 value, u32 within) {
  const LoopNode *n = node(l, value);
  if (is_leaf_without_place(n) || n->op == LOOP_INDEX || n->type != node(l, target)->type || l->deferred[value]) return;
  if (l->where[value] <= l->where[within] || l->where[value] >= l->end[within]) return;
  u32 a = class_of(l, target), b = class_of(l, value);
  if (a != b && !collide(l, a, b)) merge(l, a, b);
}

/* Operations that the processor does in the register of their first operand, or of either. */
static bool computes_in_place(const Lives *l, u32 id, bool *either) {
  const LoopNode *n = node(l, id);
  *either = n->op == LOOP_ADD || n->op == LOOP_MUL || n->op == LOOP_AND || n->op == LOOP_OR || n->op == LOOP_XOR;
  bool in_place = *either || n->op == LOOP_SUB || n->op == LOOP_NEG ||
                  (n->op == LOOP_DIV && loop_is_float((LoopType)n->type));
  return in_place && !l->deferred[id];
}

/* A value that ends where another begins hands its register on. */
static void take_over(Lives *l, u32 id, u32 operand) {
  const LoopNode *n = node(l, operand);
  if (is_leaf_without_place(n) || n->op == LOOP_INDEX || n->type != node(l, id)->type || l->deferred[operand]) return;
  if (l->last[operand] != l->where[id]) return;
  u32 a = class_of(l, operand), b = class_of(l, id);
  /* a chain of sums is added up in registers */
  if (loop_is_float((LoopType)n->type) && crosses(l, a) != crosses(l, b)) return;
  if (a != b && !collide(l, a, b)) merge(l, a, b);
}

static void find_classes(Lives *l) {
  const LoopFn *fn = l->fn;
  for (u32 pos = 0; pos < fn->body.count; pos++) { /* results of loops are their carried values at the end */
    u32 id = fn->body.data[pos];
    const LoopNode *n = node(l, id);
    if (n->op != LOOP_FOR && n->op != LOOP_WHILE) continue;
    for (u32 i = 0; i < n->b; i++)
      merge(l, class_of(l, loop_carry_of(fn, id, i)), class_of(l, loop_result_of(fn, id, i)));
  }
  for (u32 pos = fn->body.count; pos-- > 0;) {
    const LoopNode *n = node(l, fn->body.data[pos]);
    if (n->op != LOOP_NEXT && n->op != LOOP_BREAK && n->op != LOOP_YIELD) continue;
    u32 head = n->a;
    if (n->op == LOOP_YIELD && node(l, head)->op != LOOP_IF) continue;
    for (u32 i = 0; i < n->count; i++)
      share(l, n->op == LOOP_YIELD ? loop_result_of(fn, head, i) : loop_carry_of(fn, head, i),
            loop_list(fn, n)[i], head);
  }
  for (u32 pos = 0; pos < fn->body.count; pos++) {
    u32 id = fn->body.data[pos];
    bool either;
    if (!computes_in_place(l, id, &either)) continue;
    u32 before = l->spans[class_of(l, id)];
    take_over(l, id, node(l, id)->a);
    if (either && l->spans[class_of(l, id)] == before) take_over(l, id, node(l, id)->b);
  }
  for (u32 id = 1; id < fn->nodes.count; id++) l->class_of[id] = class_of(l, id);
}

/* there are sixteen registers: the more of them lie in memory, each with a life of the whole function */
enum { CONSTANTS_KEPT = 64 };

static void forget_constants(Lives *l) {
  u32 count = 0;
  for (u32 id = 1; id < l->fn->nodes.count; id++) count += l->in_loop[id];
  if (count > CONSTANTS_KEPT) memset(l->in_loop, 0, l->fn->nodes.count);
}

enum { POINT_NS = 4, BLOCK_NS = 1000 }; /* of a live value, for each statement and for each straight piece of code */

u64 lives_cost(const Lives *l) {
  u64 live = 0, blocks = 1, n = l->fn->body.count;
  for (u32 id = 1; id < l->fn->nodes.count; id++) {
    if (l->in_loop[id]) live += n;
    else if (node(l, id)->op == LOOP_PARAM) live += l->last[id];
  }
  for (u32 i = 1; i < l->span.count; i++) live += l->span.data[i].to - l->span.data[i].from;
  for (u32 pos = 0; pos < n; pos++) {
    const LoopNode *x = node(l, l->fn->body.data[pos]);
    blocks += loop_is_head(x) ? 3 : x->op == LOOP_CHECK || x->op == LOOP_CALL || x->op == LOOP_POLL;
  }
  return POINT_NS * live + BLOCK_NS * blocks * (live / (n + 1) + 1);
}

bool lives_across(const Lives *l, u32 class_node, u32 p) {
  for (u32 s = l->spans[class_node]; s; s = l->span.data[s].next)
    if (l->span.data[s].from < p && l->span.data[s].to >= p) return true;
  return false;
}

WeftStatus lives_init(Lives *l, const LoopFn *fn, Allocator *alloc) {
  *l = (Lives){.fn = fn, .alloc = alloc};
  u32 **arrays[] = {&l->where, &l->end, &l->other, &l->last, &l->uses, &l->class_of, &l->spans};
  bool ok = (l->loop = mem_alloc_zero(l->alloc, body_bytes(l))) != NULL;
  for (u32 i = 0; i < COUNT_OF(arrays); i++) ok = (*arrays[i] = mem_alloc_zero(l->alloc, nodes_bytes(l))) && ok;
  l->deferred = mem_alloc_zero(l->alloc, fn->nodes.count + 1);
  l->in_loop = mem_alloc_zero(l->alloc, fn->nodes.count + 1);
  l->shared = mem_alloc_zero(l->alloc, fn->nodes.count + 1);
  ok = ok && l->deferred && l->in_loop && l->shared && vec_push(l->alloc, &l->span, (LiveSpan){0}) && find_places(l) &&
       find_calls(l);
  if (ok) {
    find_uses(l);
    forget_constants(l);
    ok = find_spans(l) && !toil_ended(fn->module->toil);
  }
  if (ok) {
    find_classes(l);
    return WEFT_OK;
  }
  lives_free(l);
  return WEFT_ERROR;
}

void lives_free(Lives *l) {
  u32 *arrays[] = {l->where, l->end, l->other, l->last, l->uses, l->class_of, l->spans};
  for (u32 i = 0; i < COUNT_OF(arrays); i++) mem_free(l->alloc, arrays[i], nodes_bytes(l));
  mem_free(l->alloc, l->loop, body_bytes(l));
  mem_free(l->alloc, l->call, body_bytes(l));
  mem_free(l->alloc, l->deferred, l->fn->nodes.count + 1);
  mem_free(l->alloc, l->in_loop, l->fn->nodes.count + 1);
  mem_free(l->alloc, l->shared, l->fn->nodes.count + 1);
  vec_free(l->alloc, &l->span);
}

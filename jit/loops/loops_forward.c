/* loops_forward.c — loads of what the trip before stored: a value that the loop carries is there sooner than one
 * that goes through memory. And loads that are the same in every trip, from buffers that are only read: a native
 * function's others do not overlap them. */
#include "jit/loops/loops_forward.h"

typedef struct Place { /* an access's index: `constant` and what is added to it */
  i64 constant;
  u32 count;
  LoopTerm terms[FORWARD_TERMS];
} Place;

static bool forward_is_const(const LoopFn *fn, u32 id) { return loop_node(fn, id)->op == LOOP_CONST; }

static bool add_term(Place *p, LoopTerm t) {
  for (u32 i = 0; i < p->count; i++) {
    LoopTerm *x = &p->terms[i];
    if (x->var != t.var || x->stride[0] != t.stride[0] || x->stride[1] != t.stride[1]) continue;
    x->coef += t.coef;
    return true;
  }
  if (p->count == FORWARD_TERMS) return false;
  p->terms[p->count++] = t;
  return true;
}

/* Sums and differences with constants are taken apart. */
static bool place_of(const LoopFn *fn, const LoopNode *access, Place *p) {
  *p = (Place){.constant = (i64)access->imm};
  for (u32 i = 0; i < access->count; i++) {
    LoopTerm t = loop_terms(fn, access)[i];
    while (t.var && !t.stride[0]) {
      const LoopNode *n = loop_node(fn, t.var);
      if (n->op == LOOP_ADD && forward_is_const(fn, n->a))
        p->constant += t.coef * (i64)loop_node(fn, n->a)->imm, t.var = n->b;
      else if ((n->op == LOOP_ADD || n->op == LOOP_SUB) && forward_is_const(fn, n->b))
        p->constant += (n->op == LOOP_ADD ? t.coef : -t.coef) * (i64)loop_node(fn, n->b)->imm, t.var = n->a;
      else break;
    }
    if (!add_term(p, t)) return false;
  }
  return true;
}

/* Does it change from trip to trip of the loop that lies at from .. to in the body? */
static bool changes(const LoopFn *fn, u32 from, u32 to, u32 id) {
  const LoopNode *n = loop_node(fn, id);
  u32 what = n->op == LOOP_INDEX || n->op == LOOP_CARRY || n->op == LOOP_RESULT ? n->a : id;
  for (u32 pos = from; pos < to; pos++)
    if (fn->body.data[pos] == what) return true;
  return false;
}

/* Is the load where the store was a trip before? Of the load itself: is it where it was? */
static bool follows(const LoopFn *fn, u32 from, u32 to, const LoopNode *store, const LoopNode *load, Forward *out) {
  Place s, l;
  i64 step = 0;
  u32 index = loop_index_of(fn->body.data[from], 0);
  if (!place_of(fn, store, &s) || !place_of(fn, load, &l) || s.count != l.count) return false;
  for (u32 i = 0; i < s.count; i++) {
    LoopTerm t = s.terms[i];
    bool found = false;
    for (u32 k = 0; k < l.count; k++) found |= loop_terms_equal(&t, &l.terms[k]);
    if (!found) return false;
    if (t.var == index && !t.stride[0]) step = t.coef;
    else if (t.var && changes(fn, from, to, t.var)) return false;
    else out->terms[out->count++] = t;
  }
  out->constant = l.constant;
  return (step != 0) == (store != load) && s.constant - step == l.constant;
}

/* Does control go on behind the statement? */
static bool goes_on(const LoopFn *fn, u32 pos) {
  const LoopNode *n = loop_node(fn, fn->body.data[pos]), *last;
  if (n->op != LOOP_END || loop_node(fn, n->a)->op != LOOP_IF)
    return n->op != LOOP_EXIT && n->op != LOOP_RETURN && n->op != LOOP_BREAK && n->op != LOOP_NEXT;
  if (goes_on(fn, pos - 1)) return true;
  while (last = loop_node(fn, fn->body.data[--pos]), last->op != LOOP_ELSE || last->a != n->a)
    if (fn->body.data[pos] == n->a) return true;
  return goes_on(fn, pos - 1);
}

/* The position of the END of a loop whose trips all come to it, and its store, when it has only that; else 0. */
static u32 straight(const LoopFn *fn, u32 at, u32 *store) {
  u32 head = fn->body.data[at], depth = 0, stores = 0;
  for (u32 pos = at + 1;; pos++) {
    u32 id = fn->body.data[pos];
    const LoopNode *n = loop_node(fn, id);
    if (loop_is_head(n)) depth++;
    if (n->op == LOOP_STORE) *store = stores++ || depth ? 0 : id;
    if (n->op == LOOP_CALL ||
        ((n->op == LOOP_NEXT || n->op == LOOP_BREAK) && n->a == head && (depth || n->op == LOOP_BREAK)))
      return 0;
    if (n->op == LOOP_END && depth-- == 0)
      return loop_node(fn, fn->body.data[pos - 1])->op == LOOP_NEXT ||
             (!loop_node(fn, head)->b && goes_on(fn, pos - 1)) ? pos : 0;
  }
}

u32 loops_forwards(const LoopFn *fn, Forward *out) {
  u32 count = 0;
  for (u32 at = 0; at < fn->body.count && toil(fn->module->toil, 1); at++) {
    u32 head = fn->body.data[at], store = 0, depth = 0, end;
    const LoopNode *h = loop_node(fn, head);
    if (h->op != LOOP_FOR || h->a != 1 || !(end = straight(fn, at, &store))) continue;
    for (u32 pos = at + 1; pos < end && count < FORWARDS; pos++) {
      u32 id = fn->body.data[pos];
      const LoopNode *n = loop_node(fn, id), *s = loop_node(fn, store);
      Forward f = {.head = head, .load = id};
      if (loop_is_head(n)) depth++;
      if (n->op == LOOP_END) depth--;
      if (n->op == LOOP_CHECK) break;
      if (n->op != LOOP_LOAD || depth || n->mem == LT_F16 || n->mem == LT_BF16) continue;
      bool same = loop_node(fn, n->a)->aux == LOOP_IN && loop_node(fn, n->a)->op == LOOP_PARAM;
      if (!same && (!store || n->a != s->a)) continue;
      f.store = same ? 0 : store;
      if (follows(fn, at, end, same ? n : s, n, &f)) out[count++] = f;
      if (f.store && count && out[count - 1].load == id) store = 0;
    }
  }
  return count;
}

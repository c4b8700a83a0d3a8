/* loops_forward.c — loads of what the trip before stored, there or at the same place: a value that the loop carries is
 * there sooner than one that goes through memory. And loads that are the same in every trip, from buffers that are only
 * read. Buffers of a native function do not overlap where one of them is written. What is stored stays a store in each
 * trip, so that the loop can be left anywhere. */
#include "jit/loops/loops_forward.h"

typedef struct Place { /* an access's index: `constant` and what is added to it */
  i64 constant;
  u32 count;
  LoopTerm terms[FORWARD_TERMS];
} Place;

static bool add_term(Place *p, LoopTerm t) {
  for (u32 i = 0; i < p->count; i++) {
    LoopTerm *x = &p->terms[i];
    if (x->var != t.var || x->stride[0] != t.stride[0] || x->stride[1] != t.stride[1]) continue;
    x->coef += t.coef;
    if (!x->coef) *x = p->terms[--p->count];
    return true;
  }
  if (p->count == FORWARD_TERMS) return false;
  p->terms[p->count++] = t;
  return true;
}

enum { PLACE_DEPTH = 6 };

/* Sums and differences are taken apart. */
static bool add_place(const LoopFn *fn, Place *p, LoopTerm t, u32 depth) {
  const LoopNode *n = t.var && !t.stride[0] ? loop_node(fn, t.var) : NULL;
  if (n && n->op == LOOP_CONST) {
    p->constant = (i64)((u64)p->constant + (u64)t.coef * n->imm);
    return true;
  }
  if (!n || !depth || (n->op != LOOP_ADD && n->op != LOOP_SUB)) return add_term(p, t);
  LoopTerm other = t;
  t.var = n->a;
  other.var = n->b;
  if (n->op == LOOP_SUB) other.coef = (i64)(0 - (u64)t.coef);
  return add_place(fn, p, t, depth - 1) && add_place(fn, p, other, depth - 1);
}

static bool place_of(const LoopFn *fn, const LoopNode *access, Place *p) {
  *p = (Place){.constant = (i64)access->imm};
  for (u32 i = 0; i < access->count; i++)
    if (!add_place(fn, p, loop_terms(fn, access)[i], PLACE_DEPTH)) return false;
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

/* Is the load where the store was a trip before? `there`: also where it is in this trip. Of the load itself: is it
 * where it was? */
static bool follows(const LoopFn *fn, u32 from, u32 to, const LoopNode *store, const LoopNode *load, bool there,
                    Forward *out) {
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
  return (step == 0 ? there : store != load) && s.constant - step == l.constant;
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

/* The position of the END of a loop whose trips all come to it, else 0. */
static u32 straight(const LoopFn *fn, u32 at) {
  u32 head = fn->body.data[at], depth = 0;
  for (u32 pos = at + 1;; pos++) {
    const LoopNode *n = loop_node(fn, fn->body.data[pos]);
    if (loop_is_head(n)) depth++;
    if (n->op == LOOP_CALL ||
        ((n->op == LOOP_NEXT || n->op == LOOP_BREAK) && n->a == head && (depth || n->op == LOOP_BREAK)))
      return 0;
    if (n->op == LOOP_END && depth-- == 0)
      return loop_node(fn, fn->body.data[pos - 1])->op == LOOP_NEXT ||
             (!loop_node(fn, head)->b && goes_on(fn, pos - 1)) ? pos : 0;
  }
}

/* The position of the only store to a buffer in the loop at from .. to, which each trip makes; else 0. */
static u32 only_store(const LoopFn *fn, u32 from, u32 to, u32 buffer) {
  u32 depth = 0, found = 0;
  for (u32 pos = from + 1; pos < to; pos++) {
    const LoopNode *n = loop_node(fn, fn->body.data[pos]);
    if (loop_is_head(n)) depth++;
    if (n->op == LOOP_END) depth--;
    if (n->op != LOOP_STORE || n->a != buffer) continue;
    if (found || depth) return 0;
    found = pos;
  }
  return found;
}

/* Has the loop one value for the store already? */
static bool is_carried(const Forward *out, u32 count, u32 store) {
  for (u32 i = 0; i < count; i++)
    if (out[i].store == store) return true;
  return false;
}

u32 loops_forwards(const LoopFn *fn, Forward *out) {
  u32 count = 0;
  for (u32 at = 0; at < fn->body.count && toil(fn->module->toil, 1); at++) {
    u32 head = fn->body.data[at], depth = 0, end;
    const LoopNode *h = loop_node(fn, head);
    if (h->op != LOOP_FOR || h->a != 1 || !(end = straight(fn, at))) continue;
    for (u32 pos = at + 1; pos < end && count < FORWARDS; pos++) {
      u32 id = fn->body.data[pos];
      const LoopNode *n = loop_node(fn, id);
      Forward f = {.head = head, .load = id};
      if (loop_is_head(n)) depth++;
      if (n->op == LOOP_END) depth--;
      if (n->op == LOOP_CHECK) break;
      if (n->op != LOOP_LOAD || depth || n->mem == LT_F16 || n->mem == LT_BF16) continue;
      bool same = loop_node(fn, n->a)->aux == LOOP_IN && loop_node(fn, n->a)->op == LOOP_PARAM;
      u32 store = same || !toil(fn->module->toil, 1) ? 0 : only_store(fn, at, end, n->a);
      if (!same && !store) continue;
      f.store = same ? 0 : fn->body.data[store];
      if (f.store && is_carried(out, count, f.store)) continue;
      if (follows(fn, at, end, loop_node(fn, same ? id : f.store), n, same || pos < store, &f)) out[count++] = f;
    }
  }
  return count;
}

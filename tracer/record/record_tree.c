/* record_tree.c — trees of the program: lists and records of numbers, with texts, functions, ranges and the like as
 * static parts.
 *
 * The recorder knows lists in other ways than item by item: in columns, cut off at the head (a queue), one of
 * many (a row), or not taken apart. What these are made of is no part of the tree that a program
 * sees. So a tree is opened before anybody walks over it: a list whose length is known, or may be guarded, becomes
 * one that is known item by item; any other one ends the graph there, and the interpreter goes on. Walkers refuse
 * what was not opened. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_option.h"

/* A text is static: nothing needs to be known of it but that it is one. */
static bool is_unread_text(const Recorder *r, Av a) {
  return av_is_lazy(r, a) && av_at(r, a)->konst.kind == V_TEXT;
}

static bool is_beside_cells(const AbsVal *v) { return kind_is_list(v->kind) && v->op == BESIDE_CELLS; }

/* ---- opened ------------------------------------------------------------------------------------------------ */

/* A list in columns, item by item. */
Outcome rec_open_columns(Recorder *r, Av list, Av *out) {
  i64 n = 0;
  Av count;
  Outcome o = rec_length(r, list, &count);
  if (o != OUT_GO) return o;
  if (!rec_literal(r, count, "the length of a list in a tree", &n))
    return rec_stuck(r, REASON_data_dependent_shape, "a list of no known length in a tree");
  if (n < 0 || n > r->vm->tunables.tree_items) return rec_over(r, tree_items, REASON_graph_size, "a list in a tree");
  AvVec items = {0};
  for (i64 i = 0; i < n && o == OUT_GO; i++) {
    Av item, at = av_const(r, value_weak_i64(i));
    const Repr *p = av_repr(r, list); /* a queue is read where it begins */
    o = !at ? OUT_FAIL : p->at ? p->at(r, list, at, &item) : rec_item(r, list, at, &item);
    if (o == OUT_STUCK && !r->why[0]) (void)rec_stuck(r, REASON_loop_list, "an item of a list in a tree");
    if (o == OUT_GO && !vec_push(&r->vm->alloc, &items, item)) o = OUT_FAIL;
  }
  if (o == OUT_GO) o = rec_made(r, av_list(r, items.data, items.count), out);
  vec_free(&r->vm->alloc, &items);
  return o;
}

typedef struct Opening {
  u32 depth, parts; /* parts met so far: a list that holds one list twice, thirty times over, has 2^30 */
} Opening;

static Outcome open_tree(Recorder *r, Av a, Opening *w, Av *out) {
  if (!a) return OUT_FAIL;
  if (w->depth > (u32)r->vm->tunables.tree_nest) return rec_over(r, tree_nest, REASON_graph_size, "a tree");
  if (++w->parts > (u32)r->vm->tunables.value_parts) return rec_over(r, value_parts, REASON_graph_size, "a tree");
  if (is_unread_text(r, a)) /* another time a number may stand there */
    return guard_tag(&r->g->guards, av_at(r, a)->source, av_at(r, a)->konst, false,
                     rec_here(r)) ? rec_made(r, a, out) : OUT_FAIL;
  Av sure = rec_sure(r, a);
  if (!sure) return OUT_FAIL;
  if (av_is_option(r, sure)) return rec_stuck(r, REASON_no_rule, "a part of a tree may be nil");
  Outcome o = rec_open_list(r, sure, &a);
  if (o != OUT_GO) return o;
  const AbsVal v = *av_at(r, a);
  if (!kind_is_open(v.kind)) return rec_made(r, a, out);
  AvVec items = {0};
  bool same = true;
  w->depth++;
  for (u32 i = 0; i < v.count && o == OUT_GO; i++) {
    Av old = av_item(r, a, i), item = old;
    if (i == 0 || !is_beside_cells(&v)) o = open_tree(r, old, w, &item);
    same &= item == old;
    if (o == OUT_GO && !vec_push(&r->vm->alloc, &items, item)) o = OUT_FAIL;
  }
  w->depth--;
  *out = a;
  if (o == OUT_GO && !same) o = rec_made(r, rec_with_parts(r, a, items.data, items.count), out);
  vec_free(&r->vm->alloc, &items);
  return o;
}

Outcome rec_tree(Recorder *r, Av a, Av *out) {
  Opening w = {0};
  return open_tree(r, a, &w, out);
}

/* ---- walked over ---------------------------------------------------------------------------------------------- */

/* What was not opened must not come here: its numbers are not what the program means. */
static bool is_closed(const Recorder *r, Av a) { return av_has(r, a, IS_CLOSED); }

static Outcome refuse(Recorder *r, Av a) {
  r->vm->counters.at[STAT_unverified]++;
  return rec_stuck(r, REASON_not_verified, "a %s that was not opened is walked over", av_kind_text(r, a));
}

Outcome rec_tree_leaves(Recorder *r, Av a, AvVec *out) {
  if (a && is_unread_text(r, a)) return OUT_GO;
  if (!(a = av_force(r, a))) return OUT_FAIL;
  if (is_closed(r, a)) return refuse(r, a);
  if (av_is_number(r, a)) {
    if (!vec_push(&r->vm->alloc, out, a)) r->failed = true;
    return r->failed ? OUT_FAIL : OUT_GO;
  }
  const AbsVal v = *av_at(r, a);
  Outcome o = OUT_GO;
  for (u32 i = 0; (kind_is_open(v.kind)) && i < v.count && o == OUT_GO; i++) {
    if (i == 0 || !is_beside_cells(&v)) o = rec_tree_leaves(r, av_item(r, a, i), out);
    else if (!carry_leaves(r, av_item(r, a, i), out)) o = OUT_FAIL;
  }
  return o;
}

Av rec_tree_rebuild(Recorder *r, Av a, const Av *leaves, u32 *next) {
  if (!a || is_unread_text(r, a)) return a;
  if (!(a = av_force(r, a))) return 0;
  if (av_is_number(r, a)) return leaves[(*next)++];
  const AbsVal v = *av_at(r, a);
  if (!kind_is_open(v.kind)) return a;
  AvVec items = {0};
  bool same = true, ok = true;
  for (u32 i = 0; i < v.count && ok; i++) {
    Av old = av_item(r, a, i), item = i == 0 || !is_beside_cells(&v) ? rec_tree_rebuild(r, old, leaves, next)
                                                                     : carry_rebuild(r, old, leaves, next);
    same &= item == old || item == av_force(r, old);
    ok = item && vec_push(&r->vm->alloc, &items, item);
  }
  Av made = !ok ? 0 : same ? a : rec_with_parts(r, a, items.data, items.count);
  vec_free(&r->vm->alloc, &items);
  if (!made) r->failed = true;
  return made;
}

/* Static parts are the same where they are one value, or known and equal. Where that is not certain the interpreter
 * asks. */
static bool tree_same_static(Recorder *r, Av a, Av b) {
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  i64 p = 0, q = 0;
  if (kind_is_made_text(x->kind) || kind_in_columns(x->kind) || x->kind != y->kind) return false;
  if (!kind_is_range(x->kind)) return carry_same(r, a, b);
  for (u32 i = 0; i < x->count; i++) {
    Av m = av_item(r, a, i), n = av_item(r, b, i);
    if (m != n && (!av_known_int(r, m, &p) || !av_known_int(r, n, &q) || p != q)) return false;
  }
  return true;
}

bool rec_tree_same(Recorder *r, Av a, Av b) {
  if (!a || !b) return false;
  if (a == b || (is_unread_text(r, a) && is_unread_text(r, b) && av_at(r, a)->source == av_at(r, b)->source))
    return true;
  a = av_force(r, a);
  b = av_force(r, b);
  if (!a || !b) return false;
  if (a == b) return true;
  bool na = av_is_number(r, a), nb = av_is_number(r, b);
  if (na || nb) return na && nb;
  const AbsVal x = *av_at(r, a), y = *av_at(r, b);
  if (!kind_is_open(x.kind)) return tree_same_static(r, a, b);
  if (x.kind != y.kind || x.count != y.count || x.op != y.op || is_closed(r, b)) return false;
  for (u32 i = 0; i < x.count; i++) {
    if (kind_is_record(x.kind) && x.shape->keys[i] != y.shape->keys[i]) return false;
    Av p = av_item(r, a, i), q = av_item(r, b, i);
    if (!(i == 0 || !is_beside_cells(&x) ? rec_tree_same(r, p, q) : carry_same(r, p, q))) return false;
  }
  return true;
}

/* ---- out of the body of a construct ---------------------------------------------------------------------------- */

typedef struct Leaving {
  BlockId body;
  u32 since; /* abstract values from here on are the body's */
  RecOuter outer;
  const void *with;
  u32 depth;
} Leaving;

/* Is it made in the body, or of a size that is? */
static bool is_in_body(const Graph *g, ValueId v, BlockId body) {
  const GraphValue *x = &g->values.data[v];
  u32 sym;
  if (x->origin == GV_size && size_last_unbacked(&g->sizes, x->dim, &sym)) v = g->sizes.syms.data[sym].source;
  BlockId home = value_block(g, v);
  while (home && home != body) home = g->blocks.data[home].parent;
  return home != 0;
}

static Outcome leave_number(Recorder *r, Av a, const Leaving *w, Av *out) {
  const ValueId v = av_at(r, a)->value;
  if (!is_in_body(r->g, v, w->body)) return rec_made(r, a, out);
  bool maps = w->outer && r->g->values.data[v].origin != GV_size && !rec_weak_flag(r, v);
  ValueId to = maps ? w->outer(w->with, v) : 0;
  return to ? rec_made(r, av_num(r, to), out)
            : rec_stuck(r, REASON_construct_body, "a body gives a text or range that is made of its own numbers");
}

static Outcome leave_part(Recorder *r, Av a, Leaving *w, bool leaf, Av *out) {
  if (!a) return rec_made(r, a, out);
  const AbsVal v = *av_at(r, a);
  if (w->depth > (u32)r->vm->tunables.tree_nest) return rec_over(r, tree_nest, REASON_graph_size, "a tree");
  if (kind_is_value(v.kind)) return leaf ? rec_made(r, a, out) : leave_number(r, a, w, out);
  /* one for each lane or trip */
  if (kind_has(v.kind, IS_FUNCTION | IS_OBJECT)) {
    bool made = a >= w->since && !v.source && (v.count || kind_has(v.kind, IS_OBJECT));
    return made ? rec_stuck(r, REASON_construct_body, "a body gives a function or ref that it makes")
                : rec_made(r, a, out);
  }
  AvVec items = {0};
  Outcome o = OUT_GO;
  bool same = true;
  leaf &= kind_is_open(v.kind);
  w->depth++;
  for (u32 i = 0; i < v.count && o == OUT_GO; i++) {
    Av old = av_item(r, a, i), item = old;
    if (old) o = leave_part(r, old, w, leaf, &item);
    same &= item == old;
    if (o == OUT_GO && !vec_push(&r->vm->alloc, &items, item)) o = OUT_FAIL;
  }
  w->depth--;
  if (o == OUT_GO) o = rec_made(r, same ? a : rec_with_parts(r, a, items.data, items.count), out);
  vec_free(&r->vm->alloc, &items);
  return o;
}

Outcome rec_tree_leave(Recorder *r, Av tree, BlockId body, u32 since, RecOuter outer, const void *with, Av *out) {
  Leaving w = {.body = body, .since = since, .outer = outer, .with = with};
  return leave_part(r, tree, &w, true, out);
}

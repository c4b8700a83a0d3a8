/* record_inner.c — lists inside of a record or list that a loop carries: `state.xs += (v,)` in each trip. The loop
 * notes where such a list stands, the items on the way, and carries it as rows, as it does a variable that is a
 * list itself (repr_columns.c). */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_inner.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"

#include <string.h>

/* not a threshold: room; lists that lie deeper, or among more items, stay in their records */
enum { INNER_DEPTH = COUNT_OF(((RecLoc *)0)->path), INNER_ITEMS = 24 };

static bool is_tree(const Recorder *r, Av a) { return av_is_open(r, a); }

/* What is known of a value, which is not looked into for this. */
static Av known(const Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  Av found = kind_is_lazy(v->kind) && v->source < r->source_av.count ? r->source_av.data[v->source] : 0;
  return found ? found : a;
}

static RecLoc *note(RecLoop *l, const RecLoc *root, const u8 *path, u32 depth) {
  for (u32 i = 0; i < l->inner_count; i++) {
    RecLoc *x = &l->inner[i];
    if (x->cell == root->cell && x->index == root->index && x->depth == depth && memcmp(x->path, path, depth) == 0)
      return x;
  }
  if (l->inner_count == COUNT_OF(l->inner)) return NULL;
  RecLoc *x = &l->inner[l->inner_count++];
  *x = (RecLoc){.cell = root->cell, .index = root->index, .depth = (u8)depth, .entered = root->entered};
  memcpy(x->path, path, depth);
  return x;
}

void rec_inner_note(RecLoop *l, const RecLoc *root, const RecLoc *prior) {
  RecLoc *x = note(l, root, prior->path, prior->depth);
  if (!x) return;
  x->rows = prior->rows;
  x->kind_known = prior->kind_known;
  x->kind = prior->kind;
}

/* Where in a tree something stands: the items on the way to it. */
static u32 way_to(const Recorder *r, Av tree, Av want, u8 *path, u32 depth) {
  tree = known(r, tree);
  if (depth == INNER_DEPTH || !is_tree(r, tree) || av_at(r, tree)->count > INNER_ITEMS) return 0;
  for (u32 i = 0; i < av_at(r, tree)->count; i++) {
    Av item = av_item(r, tree, i);
    path[depth] = (u8)i;
    if (item == want || known(r, item) == known(r, want)) return depth + 1;
    u32 n = way_to(r, item, want, path, depth + 1);
    if (n) return n;
  }
  return 0;
}

RecLoc *rec_inner_of(Recorder *r, Av list, RecLoop **loop) {
  u8 path[INNER_DEPTH];
  for (RecLoop *l = r->loop; l; l = l->outer)
    for (u32 i = 0; i < l->locs.count; i++) {
      const RecLoc *loc = &l->locs.data[i];
      Av now = loc->cell ? r->cells.data[loc->index].value : r->frames.data[l->depth].regs[loc->index];
      u32 n = now ? way_to(r, now, list, path, 0) : 0;
      if (!n) continue;
      RecLoc *x = note(l, loc, path, n);
      if (x) x->before = list;
      *loop = l;
      return x;
    }
  return NULL;
}

/* Into the first items in which two trees of one form differ. *depth: of these. */
static bool part(Recorder *r, Av *a, Av *b, Av *base, u8 *path, u32 *depth) {
  Av x = av_force(r, *a), y = av_force(r, *b), was = base ? av_force(r, *base) : x;
  if (!x || !y || !was || *depth == INNER_DEPTH || !is_tree(r, x)) return false;
  const AbsVal *p = av_at(r, x), *q = av_at(r, y), *o = av_at(r, was);
  if (p->kind != q->kind || p->count != q->count || p->kind != o->kind || p->count != o->count ||
      p->count > INNER_ITEMS)
    return false;
  if (kind_is_record(p->kind) && (memcmp(p->shape->keys, q->shape->keys, sizeof(Name) * p->count) != 0 ||
                               memcmp(p->shape->keys, o->shape->keys, sizeof(Name) * p->count) != 0))
    return false;
  for (u32 i = 0; i < av_at(r, x)->count; i++) {
    if (carry_same(r, av_item(r, x, i), av_item(r, y, i))) continue;
    path[(*depth)++] = (u8)i;
    *a = av_item(r, x, i);
    *b = av_item(r, y, i);
    if (base) *base = av_item(r, was, i);
    return true;
  }
  return false;
}

bool rec_inner_part(Recorder *r, Av *base, Av *a, Av *b) {
  u8 path[INNER_DEPTH];
  u32 depth = 0;
  while (part(r, a, b, base, path, &depth)) continue;
  return depth > 0;
}

bool rec_want_inner(Recorder *r, RecLoop *l, const RecLoc *loc, Av now) {
  u8 path[INNER_DEPTH];
  u32 depth = 0;
  Av before = loc->before;
  while (before && now && part(r, &before, &now, NULL, path, &depth)) {
    RecLoc *inner = note(l, loc, path, depth);
    if (!inner) return false;
    inner->before = before;
    if (rec_want_rows(r, l, inner, av_force(r, now))) return true;
  }
  return false;
}

/* The tree with another item at the end of the way. */
static Outcome put_inside(Recorder *r, Av tree, const RecLoc *x, u32 depth, Av *out) {
  Av parts[INNER_ITEMS];
  if (!(tree = av_force(r, tree))) return OUT_FAIL;
  if (!is_tree(r, tree) || av_at(r, tree)->count > INNER_ITEMS || x->path[depth] >= av_at(r, tree)->count)
    return OUT_STUCK;
  u32 n = av_at(r, tree)->count;
  for (u32 i = 0; i < n; i++) parts[i] = av_item(r, tree, i);
  Av *item = &parts[x->path[depth]];
  Outcome o = depth + 1 < x->depth ? put_inside(r, *item, x, depth + 1, item)
                                   : rec_rows_of(r, *item, x->kind_known ? &x->kind : NULL, item);
  return o == OUT_GO ? rec_made(r, rec_with_parts(r, tree, parts, n), out) : o;
}

Outcome rec_make_inner(Recorder *r, RecLoop *l) {
  for (u32 i = 0; i < l->inner_count; i++) {
    RecLoc *x = &l->inner[i];
    if (x->rows != 1) continue;
    Outcome o = put_inside(r, *rec_loc_at(r, x), x, 0, rec_loc_at(r, x));
    if (o == OUT_STUCK) { /* as it is, then */
      r->lacks = l;
      r->lacks_rows = x;
      return rec_stuck(r, REASON_loop_list, "a list whose items are not numbers, small arrays of one shape or "
                                            "short texts, all of one kind, or trees of such");
    }
    if (o != OUT_GO) return o;
  }
  return OUT_GO;
}

/* Short lists that took the place of rows inside of a tree: into the columns that stood there. */
Outcome rec_inner_back(Recorder *r, Av head, bool empty, Av *now) {
  Av parts[INNER_ITEMS];
  bool changed = false;
  Av a = av_force(r, *now);
  if (!a) return OUT_FAIL;
  u32 n = av_at(r, head)->count;
  if (!is_tree(r, head) || av_at(r, a)->kind != av_at(r, head)->kind || av_at(r, a)->count != n || n > INNER_ITEMS)
    return OUT_GO;
  for (u32 i = 0; i < n; i++) {
    Av item = parts[i] = av_item(r, a, i), was = known(r, av_item(r, head, i));
    const Repr *p = av_repr(r, was);
    Outcome o = item != was && p->take_back ? p->take_back(r, was, empty, &parts[i]) : OUT_GO;
    if (o == OUT_FAIL) return o;
    changed |= parts[i] != item;
  }
  return changed ? rec_made(r, rec_with_parts(r, a, parts, n), now) : OUT_GO;
}

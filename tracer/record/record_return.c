/* record_return.c — a return out of a loop that is lifted: the loop carries a flag and what is returned, the arm that
 * returns sets both and leaves the loop, and behind it a branch on the flag returns from the function.
 *
 * What is returned is known only when the body is recorded: the first try of the loop ends there, and the next one
 * carries it (r->lacks). Its tree is kept as a few plain facts, since a rollback takes abstract values away. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_return.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"

static bool same_leaf(const Recorder *r, const ArrayType *a, const ArrayType *b, bool weakness) {
  if (a->dtype != b->dtype || (weakness && a->weak != b->weak) || a->rank != b->rank || a->device != b->device)
    return false;
  for (u32 d = 0; d < a->rank; d++)
    if (!size_same(&r->g->sizes, a->dims[d], b->dims[d])) return false;
  return true;
}

/* The leaf of a variable that the loop carries, as it is now; 0: it has another tree, or type. */
static ValueId carried_now(Recorder *r, const RecLoop *l, u32 loc, u32 leaf) {
  const RecLoc *x = &l->locs.data[loc];
  Av now = *rec_loc_at(r, x);
  AvVec leaves = {0};
  ValueId v = 0;
  if (now && x->before && leaf < x->count && x->first + x->count <= l->types.count && carry_same(r, x->before, now) &&
      carry_leaves(r, now, &leaves) && leaves.count == x->count)
    v = av_value(r, leaves.data[leaf]);
  vec_free(&r->vm->alloc, &leaves);
  return v && r->g->values.data[v].type == l->types.data[x->first + leaf] ? v : 0;
}

/* An array that is returned as the loop carries it: a second one besides would be made, and copied, at each run of the
 * loop. */
static void find_carried(Recorder *r, const RecLoop *l, ValueId v, u32 i, RecReturn *out) {
  for (u32 k = 0; k < l->locs.count && value_type(r->g, v)->rank; k++)
    for (u32 leaf = 0; leaf < l->locs.data[k].count; leaf++) {
      if (carried_now(r, l, k, leaf) != v) continue;
      out->loc[i] = k + 1;
      out->leaf[i] = leaf;
      return;
    }
}

bool rec_form_of(Recorder *r, Av a, RecReturn *out) {
  if (!(a = av_force(r, a))) return false;
  const AbsVal *v = av_at(r, a);
  const bool number = av_is_number(r, a), constant = kind_is_constant(v->kind);
  u32 n = number ? 1 : kind_is_open(v->kind) ? v->count : 0;
  if ((!n && !constant) || n > COUNT_OF(out->types)) return false;
  *out = (RecReturn){.kind = number ? 0 : v->kind, .count = n, .shape = v->shape};
  if (!n) out->konst = v->konst;
  for (u32 i = 0; i < n; i++) {
    Av leaf = rec_form_item(r, out, a, i);
    ValueId x = av_is_number(r, leaf) ? av_value(r, leaf) : 0;
    if (!x) return false;
    out->types[i] = *value_type(r->g, x);
  }
  return true;
}

Av rec_form_item(Recorder *r, const RecReturn *f, Av a, u32 i) { return f->kind ? av_item(r, a, i) : a; }

bool rec_form_same(Recorder *r, const RecReturn *a, const RecReturn *b) {
  bool equal = true;
  if (a->kind != b->kind || a->count != b->count) return false;
  if (!a->count && (a->konst.kind != b->konst.kind || value_equal(r->vm, a->konst, b->konst, &equal) != WEFT_OK)) {
    vm_error_forget(r->vm);
    return false;
  }
  for (u32 i = 0; i < a->count && a->shape && equal; i++) equal = a->shape->keys[i] == b->shape->keys[i];
  return equal;
}

Av rec_form_make(Recorder *r, const RecReturn *f, const Av *leaves) {
  if (!f->kind) return leaves[0];
  if (!f->count) return av_const(r, f->konst);
  return f->shape ? av_record(r, f->shape->keys, leaves, f->count) : av_list(r, leaves, f->count);
}

/* False: a tree that is not carried, or with a size of the loop's inside, which is not there before it. */
static bool describe(Recorder *r, const RecLoop *l, Av ret, RecReturn *out) {
  if (!(ret = av_force(r, ret)) || !rec_form_of(r, ret, out)) return false;
  out->asked = true;
  out->besides = l->ret.besides;
  for (u32 i = 0; i < out->count; i++) {
    if (!(out->besides >> i & 1)) find_carried(r, l, av_value(r, rec_form_item(r, out, ret, i)), i, out);
    for (u32 d = 0; d < out->types[i].rank; d++)
      if (out->types[i].dims[d] < 0 && (u32)-out->types[i].dims[d] >= l->sizes_before) return false;
  }
  return true;
}

static bool same_return(Recorder *r, const RecReturn *a, const RecReturn *b, bool weakness) {
  bool same = rec_form_same(r, a, b);
  for (u32 i = 0; i < a->count && same; i++)
    same = same_leaf(r, &a->types[i], &b->types[i], weakness) && a->loc[i] == b->loc[i] && a->leaf[i] == b->leaf[i];
  return same;
}

/* A number that was weak in the first try, as the loop's head had it, and now has a flag beside it. It is carried
 * strong. */
static bool grows_strong(Recorder *r, const RecReturn *a, const RecReturn *b) {
  bool never_back = true;
  for (u32 i = 0; i < a->count && i < b->count; i++) never_back &= a->types[i].weak || !b->types[i].weak;
  return never_back && same_return(r, a, b, false);
}

/* Returns that do not agree on which variable it is: it is carried besides. */
static bool return_part(RecReturn *now, RecReturn *was) {
  bool parted = false;
  for (u32 i = 0; was->asked && i < now->count && now->count == was->count; i++) {
    if (now->loc[i] == was->loc[i] && now->leaf[i] == was->leaf[i]) continue;
    parted = true;
    now->besides |= 1u << i;
    now->loc[i] = now->leaf[i] = was->loc[i] = was->leaf[i] = 0;
  }
  return parted;
}

Outcome rec_return_ask(Recorder *r, RecLoop *l, Av ret) {
  RecReturn now, was = l->ret;
  if (!describe(r, l, ret, &now))
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_return, "a loop returns from the function");
  if (!return_part(&now, &was) && was.asked && same_return(r, &was, &now, true)) return OUT_GO;
  /* nil, or a value: the loop carries the value */
  bool was_nil = was.asked && !was.count && now.count;
  if (was.asked && !was_nil && !grows_strong(r, &was, &now)) {
    r->noted_types = !l->peeled && same_return(r, &was, &now, false); /* the first trip may settle it */
    return rec_stuck(r, REASON_loop_return, "a loop returns values of several types");
  }
  l->ret = now;
  r->lacks = l;
  r->lacks_return = true;
  return rec_stuck(r, REASON_loop_return, "a loop returns from the function");
}

Outcome rec_return_carry(Recorder *r, RecLoop *l, ValueVec *init) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  l->ret_at = l->types.count;
  ValueId flag = graph_const(g, value_bool(false));
  if (!flag || !vec_push(alloc, init, flag) || !vec_push(alloc, &l->types, g->values.data[flag].type)) return OUT_FAIL;
  for (u32 i = 0; i < l->ret.count; i++) {
    const ArrayType *t = &l->ret.types[i];
    if (l->ret.loc[i]) continue;
    ValueId zero = t->rank ? graph_full_as(g, t, 0)
                           : graph_const(g, (Value){.kind = V_NUM, .dtype = t->dtype, .flags = t->weak ? VF_WEAK : 0});
    if (!zero || !same_leaf(r, value_type(g, zero), t, true))
      return g->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_return, "a loop returns from the function");
    if (!vec_push(alloc, init, zero) || !vec_push(alloc, &l->types, g->values.data[zero].type)) return OUT_FAIL;
  }
  return OUT_GO;
}

Outcome rec_return_values(Recorder *r, const RecLoop *l, Av ret, ValueVec *out) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  u32 at = 0;
  if (!l->ret.asked) return OUT_GO;
  if (!ret) { /* as at the loop's head: not set */
    for (u32 i = 0; i <= l->ret.count; i++)
      if ((!i || !l->ret.loc[i - 1]) && !vec_push(alloc, out, g->blocks.data[l->body].params.data[l->ret_at + at++]))
        return OUT_FAIL;
    return OUT_GO;
  }
  ret = av_force(r, ret);
  if (!ret || !vec_push(alloc, out, graph_const(g, value_bool(true)))) return OUT_FAIL;
  for (u32 i = 0; i < l->ret.count; i++) {
    ValueId v = av_value(r, rec_form_item(r, &l->ret, ret, i));
    if (!v) return OUT_FAIL;
    if (l->ret.loc[i]) continue; /* among what is carried */
    Outcome o = rec_strong(r, v);
    if (o == OUT_GO && !vec_push(alloc, out, v)) o = OUT_FAIL;
    if (o != OUT_GO) return o;
  }
  return OUT_GO;
}

Av rec_return_result(Recorder *r, const RecLoop *l, NodeId loop, ValueId *flag) {
  Av leaves[COUNT_OF(l->ret.types)];
  u32 at = l->ret_at;
  *flag = node_result(r->g, loop, at);
  for (u32 i = 0; i < l->ret.count; i++) {
    u32 loc = l->ret.loc[i], k = loc ? l->locs.data[loc - 1].first + l->ret.leaf[i] : ++at;
    if (!(leaves[i] = av_num(r, node_result(r->g, loop, k)))) return 0;
  }
  return rec_form_make(r, &l->ret, leaves);
}

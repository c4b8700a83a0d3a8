/* absval.c — abstract values: made, read from their sources, taken apart (see absval.h, record.h). */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_sizes.h"
#include "tracer/tracer.h"

#include <string.h>

Av av_new(Recorder *r, AbsVal v) {
  if (r->avs.count == 0 && !vec_push(&r->vm->alloc, &r->avs, (AbsVal){0})) goto refused;
  const u32 most = (u32)r->vm->tunables.value_parts;
  v.parts = 1;
  if (kind_has(v.kind, IS_FUNCTION)) v.value = 0;
  if (kind_has(v.kind, IS_TREE))
    for (u32 i = 0; i < v.count && v.parts <= most; i++) v.parts += r->avs.data[r->items.data[v.first + i]].parts;
  if (v.parts > most) v.parts = most + 1;
  if (!vec_push(&r->vm->alloc, &r->avs, v)) goto refused;
  return r->avs.count - 1;
refused:
  r->failed = true;
  return 0;
}

bool av_keep(Recorder *r, Value v) {
  if (!(v.flags & VF_COUNTED)) return true;
  if (!vec_push(&r->vm->alloc, &r->kept, v)) {
    r->failed = true;
    return false;
  }
  value_keep(v);
  return true;
}

Av av_const(Recorder *r, Value v) {
  if (value_is_scalar(v) && dtype_kind(v.dtype) == DK_COMPLEX) { /* made of its parts */
    Value parts[2] = {value_f32(v.z[0]), value_f32(v.z[1])};
    if (v.dtype == DT_c128) {
      parts[0] = parts[1] = value_f64(0);
      num_parts(v, &parts[0].f, &parts[1].f);
      parts[0].flags = parts[1].flags = v.flags & VF_WEAK;
    }
    return av_num(r, graph_op2(r->g, OP_complex, graph_const(r->g, parts[0]), graph_const(r->g, parts[1])));
  }
  if (v.kind == V_NUM) return av_new(r, (AbsVal){.kind = AV_constant, .konst = v});
  if (v.kind == V_HOLE) return av_hole(r);
  const u8 kind = v.kind == V_TEXT ? AV_known_text : v.kind == V_FN ? AV_builtin : v.kind == V_MODULE ? AV_module
                                                                                                      : AV_known;
  return av_keep(r, v) ? av_new(r, (AbsVal){.kind = kind, .konst = v}) : 0;
}

Av av_hole(Recorder *r) { return av_new(r, (AbsVal){.kind = AV_hole}); }

Av av_num(Recorder *r, ValueId v) {
  if (!v) {
    r->failed |= r->g->failed;
    return 0;
  }
  return av_new(r, (AbsVal){.kind = AV_number, .value = v});
}

static bool push_items(Recorder *r, const Av *items, u32 count, u32 *first) {
  *first = r->items.count;
  for (u32 i = 0; i < count; i++)
    if (!vec_push(&r->vm->alloc, &r->items, items[i])) {
      r->failed = true;
      return false;
    }
  return true;
}

Av *rec_avs(Recorder *r, u32 n) {
  Av *all = arena_alloc(&r->g->arena, sizeof *all * (n + 1));
  r->failed |= !all;
  return all;
}

Av av_items(Recorder *r, AvKind kind, const Av *items, u32 count) {
  u32 first;
  if (!push_items(r, items, count, &first)) return 0;
  return av_new(r, (AbsVal){.kind = (u8)kind, .first = first, .count = count});
}

Av av_list(Recorder *r, const Av *items, u32 count) { return av_items(r, AV_list, items, count); }

Av av_list_of(Recorder *r, u32 first, u32 count) {
  return av_new(r, (AbsVal){.kind = AV_list, .first = first, .count = count});
}

Av av_record(Recorder *r, const Name *keys, const Av *items, u32 count) {
  /* the shape is counted by an empty record that the recorder keeps */
  Value holder;
  if (!record_new_keys(r->vm, keys, count, &holder)) {
    vm_error_forget(r->vm);
    r->failed = true;
    return 0;
  }
  Shape *shape = holder.record->shape;
  bool ok = av_keep(r, holder);
  value_drop(r->vm, holder);
  u32 first;
  if (!ok || !push_items(r, items, count, &first)) return 0;
  return av_new(r, (AbsVal){.kind = AV_record, .first = first, .count = count, .shape = shape});
}

/* What was read already, mostly. */
static inline __attribute__((always_inline)) Av forced(Recorder *r, Av a) {
  return !a || !av_is_lazy(r, a) ? a : av_force(r, a);
}

/* ---- looking at them ----------------------------------------------------------------------------- */

bool av_is_number(Recorder *r, Av a) { return av_has(r, forced(r, a), IS_NUMBER); }

ValueId av_value(Recorder *r, Av a) {
  const AbsVal *v = av_at(r, forced(r, a));
  if (kind_is_value(v->kind)) return v->value;
  return kind_has(v->kind, IS_NUMBER) ? graph_const(r->g, v->konst) : 0;
}

bool av_const_value(Recorder *r, Av a, Value *out) {
  a = forced(r, a);
  const AbsVal *v = av_at(r, a);
  if (kind_is_constant(v->kind)) {
    *out = v->konst;
    return true;
  }
  return kind_is_value(v->kind) && value_const(r->g, v->value, out);
}

bool av_known_int(Recorder *r, Av a, i64 *out) {
  Value v;
  return av_const_value(r, a, &v) && v.kind == V_NUM && v.dtype != DT_bool && num_as_index(v, out);
}

bool av_value_dim(Recorder *r, ValueId v, Dim *out) {
  SizePool *p = &r->g->sizes;
  const ArrayType *t = value_type(r->g, v);
  if (t->rank != 0 || dtype_kind(t->dtype) != DK_INT) return false;
  if (value_dim(r->g, v, out)) return *out != DIM_NONE;
  for (u32 i = 0; i < p->syms.count; i++) {
    const SizeSym *s = &p->syms.data[i];
    if (s->unbacked && s->source == v && rec_spoken_of(r, i)) return (*out = size_resolve(p, s->dim)) != DIM_NONE;
  }
  IntRange range = rec_range(r, v);
  *out = size_unbacked(p, NULL, v, range.lo, range.hi);
  for (u32 k = 0; k < r->positions.count && *out != DIM_NONE; k++)
    if (r->positions.data[k].value == v && r->positions.data[k].bound != DIM_NONE &&
        !size_assume(p, REL_lt, *out, r->positions.data[k].bound) && p->failed)
      return false;
  return *out != DIM_NONE && rec_anchor(r, *out) == OUT_GO;
}

enum { SUM_DEPTH = 6 }; /* not a threshold: sums in each other that are seen through */

/* What a value that open blocks have captured is outside. */
static ValueId outermost(const Graph *g, ValueId v) {
  for (bool more = true; more;) {
    more = false;
    const GraphValue *x = &g->values.data[v];
    if (x->origin != GV_param) break;
    const GraphBlock *b = &g->blocks.data[x->def];
    for (u32 k = 0; k < b->captures.count && !more && !b->node; k++)
      if (b->captures.data[k].inner == v) v = b->captures.data[k].outer, more = true;
  }
  return v;
}

static bool sum_dim(Recorder *r, ValueId v, u32 depth, Dim *out) {
  const Graph *g = r->g;
  v = outermost(g, v);
  NodeId n = value_node(g, v);
  const GraphNode *x = n ? graph_node_at(g, n) : NULL;
  Dim a, b;
  if (depth && x && x->kind == NODE_op && (x->op == OP_add || x->op == OP_subtract) &&
      value_type(g, v)->dtype == DT_i64) {
    bool add = x->op == OP_add;
    ValueId y[2] = {node_operand(g, n, 0), node_operand(g, n, 1)};
    bool ints = value_type(g, y[0])->dtype == DT_i64 && value_type(g, y[1])->dtype == DT_i64;
    if (ints && sum_dim(r, y[0], depth - 1, &a) && sum_dim(r, y[1], depth - 1, &b)) {
      *out = add ? size_add(&r->g->sizes, a, b) : size_sub(&r->g->sizes, a, b);
      if (*out != DIM_NONE && size_range(&r->g->sizes, *out).fits) return true;
    }
    if (r->failed) return false;
  }
  if (!av_value_dim(r, v, out)) return false;
  if (!size_is_unbacked(&r->g->sizes, *out) && !rec_like_sizes(r, *out)) r->failed = true;
  return !r->failed;
}

bool av_sum_dim(Recorder *r, ValueId v, Dim *out) { return sum_dim(r, v, SUM_DEPTH, out); }

bool av_dim(Recorder *r, Av a, Dim *out) {
  i64 known;
  if (av_known_int(r, a, &known)) {
    *out = known >= 0 ? known : size_const(&r->g->sizes, known);
    return *out != DIM_NONE;
  }
  a = forced(r, a);
  return av_is_value(r, a) && av_value_dim(r, av_at(r, a)->value, out);
}

const char *av_kind_text(Recorder *r, Av a) {
  a = forced(r, a);
  const char *type = av_repr(r, a)->type;
  return type ? type : value_type_name(av_at(r, a)->konst);
}

i32 av_field(const Recorder *r, Av record, Name key) {
  return (i32)shape_find(av_at(r, record)->shape, key);
}

/* ---- what is carried ---------------------------------------------------------------------------------------- */

/* A text has no leaves: that it is carried is no reason to look at it. */
static bool unread_text(const Recorder *r, Av a) {
  return av_is_lazy(r, a) && av_at(r, a)->konst.kind == V_TEXT;
}

bool carry_leaves(Recorder *r, Av a, AvVec *out) {
  if (!a || unread_text(r, a)) return true;
  a = forced(r, a);
  if (!a) return false;
  if (av_is_number(r, a)) {
    if (!vec_push(&r->vm->alloc, out, a)) r->failed = true;
    return !r->failed;
  }
  if (!av_has(r, a, HAS_PARTS)) return true;
  u32 n = av_at(r, a)->count;
  for (u32 i = av_repr(r, a)->first_part; i < n; i++)
    if (!carry_leaves(r, av_item(r, a, i), out)) return false;
  return true;
}

/* Numbers and containers in a value that was not read yet; `most` is enough. */
static u32 parts_in(const Recorder *r, Value v, u32 most) {
  u32 n = 1, count = v.kind == V_LIST ? v.list->count : v.kind == V_RECORD ? v.record->shape->count : 0;
  const Value *items = v.kind == V_LIST ? v.list->items : v.kind == V_RECORD ? v.record->items : NULL;
  if (count > (u32)r->vm->tunables.input_items || (v.kind == V_LIST && list_is_packed(v.list))) return n;
  for (u32 i = 0; i < count && n < most; i++) n += parts_in(r, items[i], most - n);
  return n;
}

u32 av_parts(const Recorder *r, Av a, u32 most) {
  const AbsVal *v = av_at(r, a);
  if (!a || kind_is_lazy(v->kind)) return a ? parts_in(r, v->konst, most) : 0;
  u32 n = 1;
  if (!kind_has(v->kind, HAS_PARTS)) return n;
  for (u32 i = 0; i < v->count && n < most; i++) n += av_parts(r, av_item(r, a, i), most - n);
  return n;
}

Av carry_rebuild(Recorder *r, Av a, const Av *leaves, u32 *next) {
  if (!a) return 0;
  if (unread_text(r, a)) return a;
  a = forced(r, a);
  if (av_is_number(r, a)) return leaves[(*next)++];
  if (!av_has(r, a, HAS_PARTS)) return a;
  u32 n = av_at(r, a)->count;
  u32 first = r->items.count;
  for (u32 i = 0; i < n; i++)
    if (!vec_push(&r->vm->alloc, &r->items, 0)) {
      r->failed = true;
      return 0;
    }
  bool same = true;
  for (u32 i = 0; i < n; i++) {
    Av old = av_item(r, a, i);
    Av item = i < av_repr(r, a)->first_part ? old : carry_rebuild(r, old, leaves, next);
    same &= item == old || item == av_force(r, old);
    r->items.data[first + i] = item;
  }
  if (same) return a;
  AbsVal v = *av_at(r, a);
  v.first = first;
  v.source = 0;
  return av_new(r, v);
}

bool carry_same(Recorder *r, Av a, Av b) {
  if (a == b) return true;
  if (!a || !b) return false;
  a = forced(r, a);
  b = av_force(r, b);
  if (a == b) return true;
  if (av_has(r, a, IS_NUMBER) || av_has(r, b, IS_NUMBER)) return av_has(r, a, IS_NUMBER) && av_has(r, b, IS_NUMBER);
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  if (x->kind != y->kind || x->count != y->count || x->op != y->op) return false;
  const Repr *p = reprs[x->kind];
  return p->same && p->same(r, a, b);
}

/* absval.c — abstract values: made, read from their sources, taken apart (see absval.h, record.h). */
#include "lang/mechanisms.h"
#include "tracer/record/record_carry.h"
#include "tracer/tracer.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"

#include <string.h>

Av av_new(Recorder *r, AbsVal v) {
  if (r->avs.count == 0 && !vec_push(&r->vm->alloc, &r->avs, (AbsVal){0})) goto refused;
  v.parts = 1;
  if (v.kind == AV_CLOSURE || v.kind == AV_TRANSFORM) v.value = 0;
  if (v.kind == AV_LIST || v.kind == AV_RECORD || v.kind == AV_CLOSURE)
    for (u32 i = 0; i < v.count && v.parts <= PARTS_MAX; i++) v.parts += r->avs.data[r->items.data[v.first + i]].parts;
  if (v.parts > PARTS_MAX) v.parts = PARTS_MAX + 1;
  if (!vec_push(&r->vm->alloc, &r->avs, v)) goto refused;
  return r->avs.count - 1;
refused:
  r->failed = true;
  return 0;
}

static bool keep(Recorder *r, Value v) {
  if (!(v.flags & VF_COUNTED)) return true;
  if (!vec_push(&r->vm->alloc, &r->kept, v)) {
    r->failed = true;
    return false;
  }
  value_keep(v);
  return true;
}

Av av_const(Recorder *r, Value v) {
  if (v.kind == V_HOLE) return av_new(r, (AbsVal){.kind = AV_HOLE});
  return keep(r, v) ? av_new(r, (AbsVal){.kind = AV_CONST, .konst = v}) : 0;
}

Av av_num(Recorder *r, ValueId v) {
  if (!v) {
    r->failed |= r->g->failed;
    return 0;
  }
  return av_new(r, (AbsVal){.kind = AV_NUM, .value = v});
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

Av av_record(Recorder *r, const Name *keys, const Av *items, u32 count) {
  /* the shape is counted by an empty record that the recorder keeps */
  Value holder;
  if (!record_new_keys(r->vm, keys, count, &holder)) {
    vm_error_clear(r->vm);
    r->failed = true;
    return 0;
  }
  Shape *shape = holder.record->shape;
  bool ok = keep(r, holder);
  value_drop(r->vm, holder);
  u32 first;
  if (!ok || !push_items(r, items, count, &first)) return 0;
  return av_new(r, (AbsVal){.kind = AV_RECORD, .first = first, .count = count, .shape = shape});
}

Av av_lazy(Recorder *r, SourceId s, Value now) {
  if (!s) {
    r->failed = true;
    return 0;
  }
  while (r->source_av.count <= s)
    if (!vec_push(&r->vm->alloc, &r->source_av, 0)) {
      r->failed = true;
      return 0;
    }
  if (r->source_av.data[s]) return r->source_av.data[s];
  return av_new(r, (AbsVal){.kind = AV_LAZY, .source = s, .konst = now});
}

static Dim size_symbol(Recorder *r, SourceId s, i64 lo, i64 hi, i64 hint) {
  Graph *g = r->g;
  u32 in = guard_input(&g->guards, s, IN_size);
  if (in == UINT32_MAX) return DIM_NONE;
  GuardInput *input = &g->guards.inputs.data[in];
  if (input->sym != UINT32_MAX) return g->sizes.syms.data[input->sym].dim;
  Dim d = size_sym(&g->sizes, NULL, s, lo, hi, hint);
  if (d == DIM_NONE) return d;
  u32 sym;
  if (size_is_sym(&g->sizes, d, &sym)) g->guards.inputs.data[in].sym = sym;
  return d;
}

static Av length_of(Recorder *r, SourceId s, SourceKind kind, i64 now) {
  SourceId len = source_step(&r->g->guards, s, kind, 0, NULL);
  Dim d = len ? size_symbol(r, len, 0, ROWS_MOST, now) : DIM_NONE;
  return d == DIM_NONE ? 0 : av_num(r, graph_size(r->g, d));
}

Av av_length(Recorder *r, SourceId s, i64 now) { return length_of(r, s, SRC_len, now); }
Av av_total(Recorder *r, SourceId s, i64 now) { return length_of(r, s, SRC_total, now); }

static Av read_number(Recorder *r, SourceId s, Value v) {
  Graph *g = r->g;
  Span why = r->frames.count ? rec_here(r) : (Span){0};
  if (v.kind == V_NUM && g->guards.sources.items.data[s].kind == SRC_global && !MECHANISM(r->vm, globals_are_read))
    return av_const(r, v);
  if (!guard_tag(&g->guards, s, v, false, why)) return 0;
  if (v.kind == V_NUM && v.dtype == DT_i64 && !MECHANISM(r->vm, integers_are_symbols))
    return guard_const(&g->guards, s, v, why) ? av_const(r, v) : 0;
  if (v.kind == V_NUM && v.dtype == DT_f64 && !MECHANISM(r->vm, floats_are_inputs))
    return guard_const(&g->guards, s, v, why) ? av_const(r, v) : 0;
  if (v.kind == V_NUM && v.dtype == DT_i64) {
    Dim d = size_symbol(r, s, INT64_MIN, INT64_MAX, v.i);
    return d == DIM_NONE ? 0 : av_num(r, graph_size_typed(g, d, DT_i64, v.flags & VF_WEAK));
  }
  ArrayType t = {.dtype = v.dtype, .weak = v.kind == V_NUM && (v.flags & VF_WEAK)};
  if (v.kind == V_ARRAY) {
    Array *a = v.array;
    t.dtype = (u8)array_dtype(a);
    t.rank = (u8)array_rank(a);
    t.device = (u8)array_device(a);
    for (u32 d = 0; d < t.rank; d++) {
      i64 n = array_dims(a)[d];
      SourceId at = source_step(&g->guards, s, SRC_size, d, NULL);
      t.dims[d] = at ? size_symbol(r, at, 0, SIZE_LIMIT - 1, n) : DIM_NONE;
      if (t.dims[d] == DIM_NONE) return 0;
      if (!MECHANISM(r->vm, sizes_are_symbols))
        (void)guard_relation(&g->guards, &g->sizes, REL_eq, t.dims[d], size_const(&g->sizes, n), NULL, why);
    }
  }
  u32 in = guard_input(&g->guards, s, v.kind == V_ARRAY ? IN_array : IN_scalar);
  if (in == UINT32_MAX) return 0;
  return av_num(r, graph_input(g, graph_type(g, &t), in));
}

/* Longer lists and records are not taken apart, nor more of them; those that a tree function or a construct opens may
 * be longer. */
enum { LIST_ITEMS_MAX = 64, OPEN_ITEMS_MAX = 512, SOURCES_MAX = 4096 };
/* nor more than so many, where one stands so deep in others like it: a tree, or a linked list, which is seldom the same
 * again */
enum { TREE_DEPTH = 4, TREE_SOURCES = 64 };

static bool in_tree(const Recorder *r, SourceId s, AvKind kind, u32 count, const Shape *shape) {
  const Source *items = r->g->guards.sources.items.data;
  u32 depth = 0;
  while ((s = items[s].parent) && depth < TREE_DEPTH) {
    const AbsVal *up = s < r->source_av.count ? av_at(r, r->source_av.data[s]) : NULL;
    depth += up && up->kind == kind && up->count == count && up->shape == shape;
  }
  return depth == TREE_DEPTH;
}

static bool many(const Recorder *r, SourceId s, AvKind kind, u32 items, const Shape *shape) {
  u32 sources = r->g->guards.sources.items.count;
  return items > LIST_ITEMS_MAX || sources > SOURCES_MAX ||
         (sources > TREE_SOURCES && in_tree(r, s, kind, items, shape));
}

static Av opaque(Recorder *r, SourceId s, Value v, Span why) {
  if (!guard_tag(&r->g->guards, s, v, false, why)) return 0;
  return av_new(r, (AbsVal){.kind = AV_OBJECT, .op = v.kind == V_FN, .source = s, .konst = v});
}

bool rec_look_into(Recorder *r, List *l) {
  bool raised = r->vm->error.raised;
  if (list_boxed(r->vm, l)) return true;
  if (!raised) vm_error_clear(r->vm);
  r->failed = true;
  return false;
}

static bool lazy_item(Recorder *r, u32 at, SourceId s, Value now) {
  Av item = av_lazy(r, s, now);
  if (item && !MECHANISM(r->vm, items_are_lazy)) item = av_force(r, item);
  if (item) r->items.data[at] = item;
  return item != 0;
}

static bool empty_items(Recorder *r, u32 n, u32 *first) {
  *first = r->items.count;
  for (u32 i = 0; i < n; i++)
    if (!vec_push(&r->vm->alloc, &r->items, 0)) return false;
  return true;
}

static Av read_list(Recorder *r, SourceId s, Value v, Span why) {
  GuardSet *gs = &r->g->guards;
  List *l = v.list;
  u32 first;
  if (!rec_look_into(r, l) || !guard_len(gs, s, REL_eq, l->count, why) || !empty_items(r, l->count, &first)) return 0;
  for (u32 i = 0; i < l->count; i++)
    if (!lazy_item(r, first + i, source_step(gs, s, SRC_item, i, NULL), l->items[i])) return 0;
  return av_new(r, (AbsVal){.kind = AV_LIST, .first = first, .count = l->count, .source = s, .konst = v});
}

static Av read_record(Recorder *r, SourceId s, Value v, Span why) {
  GuardSet *gs = &r->g->guards;
  Record *rec = v.record;
  u32 first, n = rec->shape->count;
  if (!guard_shape(gs, s, rec, true, 0, why) || !empty_items(r, n, &first)) return 0;
  for (u32 i = 0; i < n; i++) {
    Name key = rec->shape->keys[i];
    Av item = av_lazy(r, source_step(gs, s, SRC_field, key, name_text(&r->vm->names, key)), rec->items[i]);
    if (!item) return 0;
    r->items.data[first + i] = item;
  }
  if (!keep(r, v)) return 0;
  return av_new(r,
                (AbsVal){.kind = AV_RECORD, .first = first, .count = n, .shape = rec->shape, .source = s, .konst = v});
}

bool av_is_opaque(const Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  return v->kind == AV_OBJECT && (v->konst.kind == V_LIST || v->konst.kind == V_RECORD);
}

Outcome av_take_apart(Recorder *r, Av a, Av *out) {
  const AbsVal v = *av_at(r, a);
  const u32 n = v.konst.kind == V_LIST ? v.konst.list->count : v.konst.record->shape->count;
  if (!r->abstract && source_is_open(r->tracer, &r->g->guards, v.source))
    return rec_stuck(r, REASON_data_dependent_shape, "a %s of another length or with other keys again and again",
                     value_type_name(v.konst));
  if (n > OPEN_ITEMS_MAX || r->g->guards.sources.items.count > SOURCES_MAX)
    return rec_stuck(r, REASON_graph_size, "a %s of %u items in a tree", value_type_name(v.konst), n);
  return rec_made(r, v.konst.kind == V_LIST ? read_list(r, v.source, v.konst, rec_here(r))
                                            : read_record(r, v.source, v.konst, rec_here(r)), out);
}

static Av read_source(Recorder *r, SourceId s, Value v) {
  Graph *g = r->g;
  GuardSet *gs = &g->guards;
  Span why = r->frames.count ? rec_here(r) : (Span){0};
  if (!r->abstract && (v.kind == V_TEXT || v.kind == V_LIST || v.kind == V_RECORD || v.kind == V_FN) &&
      source_is_open(r->tracer, gs, s))
    return opaque(r, s, v, why);
  switch (v.kind) {
    case V_NUM:
    case V_ARRAY: {
      Av a = read_number(r, s, v);
      if (a) av_at(r, a)->source = s;
      return a;
    }
    case V_NIL:
    case V_TEXT:
    case V_DTYPE:
    case V_HOLE: {
      if (!guard_const(gs, s, v, why)) return 0;
      Av a = av_const(r, v);
      if (a) av_at(r, a)->source = s;
      return a;
    }
    case V_LIST:
      if (many(r, s, AV_LIST, v.list->count, NULL) || !MECHANISM(r->vm, containers_taken_apart))
        return opaque(r, s, v, why);
      return read_list(r, s, v, why);
    case V_RECORD:
      if (many(r, s, AV_RECORD, v.record->shape->count, v.record->shape) || !MECHANISM(r->vm, containers_taken_apart))
        return opaque(r, s, v, why);
      return read_record(r, s, v, why);
    case V_RANGE: {
      if (!guard_tag(gs, s, v, false, why)) return 0;
      const SourceKind parts[3] = {SRC_start, SRC_stop, SRC_step};
      const i64 now[3] = {v.range->start, v.range->stop, v.range->step};
      Av items[3];
      for (u32 i = 0; i < 3; i++) {
        SourceId at = source_step(gs, s, parts[i], 0, NULL);
        Dim d = at ? size_symbol(r, at, INT64_MIN, INT64_MAX, now[i]) : DIM_NONE;
        /* loops rely on both: few ranges ever change their step or begin below 0 */
        bool known = d != DIM_NONE;
        if (known && i == 2) known = now[i] && range_step_sign(gs, &g->sizes, d, now[i], why);
        if (known && i == 0 && now[i] >= 0)
          known = guard_relation(gs, &g->sizes, REL_le, 0, d, "start of a range", why);
        items[i] = known ? av_num(r, graph_size(g, size_resolve(&g->sizes, d))) : 0;
        if (!items[i]) return 0;
      }
      Av a = av_items(r, AV_RANGE, items, 3);
      if (a) av_at(r, a)->source = s;
      return a;
    }
    case V_FN: {
      Fn *fn = v.fn;
      if (!guard_code(gs, s, fn, why)) return 0;
      if (fn->kind == FN_BUILTIN) {
        Av a = av_const(r, v);
        if (a) av_at(r, a)->source = s;
        return a;
      }
      if (fn->kind == FN_CLOSURE)
        return av_new(r, (AbsVal){.kind = AV_CLOSURE, .env = ENV_SOURCE, .env_source = s, .code = fn->code, .source = s,
                                  .konst = v});
      if (fn->kind == FN_TRANSFORM) {
        Av parts[2] = {av_lazy(r, source_step(gs, s, SRC_inner, 0, NULL), fn->inner),
                       av_lazy(r, source_step(gs, s, SRC_settings, 0, NULL), fn->settings)};
        if (!parts[0] || !parts[1]) return 0;
        Av a = av_items(r, AV_TRANSFORM, parts, 2);
        if (a) {
          av_at(r, a)->op = fn->transform;
          av_at(r, a)->source = s;
        }
        return a;
      }
      return av_new(r, (AbsVal){.kind = AV_OBJECT, .source = s, .konst = v});
    }
    case V_MODULE:
      if (!guard_const(gs, s, v, why)) return 0;
      return av_new(r, (AbsVal){.kind = AV_OBJECT, .source = s, .konst = v});
    default: return opaque(r, s, v, why); /* refs, handles, tracked values */
  }
}

enum { FORCED_TIMED = 128 };

/* What was read already, mostly. */
static inline __attribute__((always_inline)) Av forced(Recorder *r, Av a) {
  return !a || av_at(r, a)->kind != AV_LAZY ? a : av_force(r, a);
}

Av av_force(Recorder *r, Av a) {
  if (!a || av_at(r, a)->kind != AV_LAZY) return a;
  SourceId s = av_at(r, a)->source;
  Value now = av_at(r, a)->konst;
  if (r->abstract) now = value_untracked(now);
  while (r->source_av.count <= s)
    if (!vec_push(&r->vm->alloc, &r->source_av, 0)) {
      r->failed = true;
      return 0;
    }
  if (r->source_av.data[s] && MECHANISM(r->vm, input_dedup)) return r->source_av.data[s];
  if (r->trail.count % FORCED_TIMED == FORCED_TIMED - 1 && rec_is_late(r)) return 0;
  Av read = read_source(r, s, now);
  if (!read || !vec_push(&r->vm->alloc, &r->trail, s)) {
    r->failed = true;
    return 0;
  }
  r->source_av.data[s] = read;
  return read;
}

/* ---- looking at them ----------------------------------------------------------------------------- */

bool av_is_number(Recorder *r, Av a) {
  a = forced(r, a);
  const AbsVal *v = av_at(r, a);
  return v->kind == AV_NUM || (v->kind == AV_CONST && v->konst.kind == V_NUM);
}

ValueId av_value(Recorder *r, Av a) {
  a = forced(r, a);
  const AbsVal *v = av_at(r, a);
  if (v->kind == AV_NUM) return v->value;
  if (v->kind == AV_CONST && v->konst.kind == V_NUM) return graph_const(r->g, v->konst);
  return 0;
}

bool av_const_value(Recorder *r, Av a, Value *out) {
  a = forced(r, a);
  const AbsVal *v = av_at(r, a);
  if (v->kind == AV_CONST) {
    *out = v->konst;
    return true;
  }
  return v->kind == AV_NUM && value_const(r->g, v->value, out);
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
  SizeRange range = rec_range(r, v);
  *out = size_unbacked(p, NULL, v, range.lo, range.hi);
  for (u32 k = 0; k < r->positions.count && *out != DIM_NONE; k++)
    if (r->positions.data[k].value == v && r->positions.data[k].bound != DIM_NONE &&
        !size_assume(p, REL_lt, *out, r->positions.data[k].bound) && p->failed)
      return false;
  return *out != DIM_NONE && rec_anchor(r, *out) == OUT_GO;
}

enum { SUM_DEPTH = 6 };

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
  return av_at(r, a)->kind == AV_NUM && av_value_dim(r, av_at(r, a)->value, out);
}

const char *av_kind_text(Recorder *r, Av a) {
  a = forced(r, a);
  const AbsVal *v = av_at(r, a);
  switch (v->kind) {
    case AV_CONST: return value_type_name(v->konst);
    case AV_NUM: return "array";
    case AV_ROWS: return v->konst.kind == V_TEXT ? "text" : rows_keyed(v->konst) ? "record" : "list";
    case AV_ROW:
    case AV_QUEUE:
    case AV_LIST: return "list";
    case AV_RECORD: return "record";
    case AV_RANGE: return "range";
    case AV_TEXT: return "text";
    case AV_CLOSURE:
    case AV_TRANSFORM: return "fn";
    case AV_REF: return "ref";
    case AV_OPTION: return "a value or nil";
    case AV_OBJECT: return value_type_name(v->konst);
    default: return "nothing";
  }
}

i32 av_field(const Recorder *r, Av record, Name key) {
  return (i32)shape_find(av_at(r, record)->shape, key);
}

/* ---- what is carried ---------------------------------------------------------------------------------------- */

static bool is_tree(const AbsVal *v) {
  return v->kind == AV_LIST || v->kind == AV_OPTION || v->kind == AV_ROWS || v->kind == AV_QUEUE || v->kind == AV_ROW ||
         v->kind == AV_RECORD || v->kind == AV_RANGE || v->kind == AV_TEXT;
}

/* The list that a row is of is no part of it: it is the same as long as the region runs. */
static u32 first_part(const AbsVal *v) { return v->kind == AV_ROW; }

/* A text has no leaves: that it is carried is no reason to look at it. */
static bool unread_text(const Recorder *r, Av a) {
  return av_at(r, a)->kind == AV_LAZY && av_at(r, a)->konst.kind == V_TEXT;
}

bool carry_leaves(Recorder *r, Av a, AvVec *out) {
  if (!a || unread_text(r, a)) return true;
  a = forced(r, a);
  if (!a) return false;
  if (av_is_number(r, a)) {
    if (!vec_push(&r->vm->alloc, out, a)) r->failed = true;
    return !r->failed;
  }
  if (is_tree(av_at(r, a))) {
    u32 n = av_at(r, a)->count;
    for (u32 i = first_part(av_at(r, a)); i < n; i++)
      if (!carry_leaves(r, av_item(r, a, i), out)) return false;
  }
  return true;
}

/* Numbers and containers in a value that was not read yet; `most` is enough. */
static u32 parts_in(Value v, u32 most) {
  u32 n = 1, count = v.kind == V_LIST ? v.list->count : v.kind == V_RECORD ? v.record->shape->count : 0;
  const Value *items = v.kind == V_LIST ? v.list->items : v.kind == V_RECORD ? v.record->items : NULL;
  if (count > LIST_ITEMS_MAX || (v.kind == V_LIST && list_is_packed(v.list))) return n;
  for (u32 i = 0; i < count && n < most; i++) n += parts_in(items[i], most - n);
  return n;
}

u32 av_parts(const Recorder *r, Av a, u32 most) {
  const AbsVal *v = av_at(r, a);
  if (!a || v->kind == AV_LAZY) return a ? parts_in(v->konst, most) : 0;
  u32 n = 1;
  for (u32 i = 0; is_tree(v) && i < v->count && n < most; i++) n += av_parts(r, av_item(r, a, i), most - n);
  return n;
}

Av carry_rebuild(Recorder *r, Av a, const Av *leaves, u32 *next) {
  if (!a) return 0;
  if (unread_text(r, a)) return a;
  a = forced(r, a);
  if (av_is_number(r, a)) return leaves[(*next)++];
  if (!is_tree(av_at(r, a))) return a;
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
    Av item = i < first_part(av_at(r, a)) ? old : carry_rebuild(r, old, leaves, next);
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
  bool na = av_is_number(r, a), nb = av_is_number(r, b);
  if (na || nb) return na && nb;
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  if (x->kind != y->kind || x->count != y->count || x->op != y->op) return false;
  switch (x->kind) {
    case AV_RECORD:
      if (x->shape != y->shape)
        for (u32 i = 0; i < x->count; i++)
          if (x->shape->keys[i] != y->shape->keys[i]) return false;
      break;
    case AV_CONST: {
      if (x->konst.kind != y->konst.kind) return false;
      bool equal = false;
      if (x->konst.kind == V_FN) return x->konst.fn->op == y->konst.fn->op;
      if (value_equal(r->vm, x->konst, y->konst, &equal) != WEFT_OK) {
        vm_error_clear(r->vm);
        return false;
      }
      return equal;
    }
    case AV_TRANSFORM:
    case AV_CLOSURE: /* a function is the same where it is itself: its captures are no leaves */
    case AV_OBJECT: return x->source && x->source == y->source;
    case AV_REF: return x->value == y->value;
    case AV_HOLE: return true;
    case AV_ROWS:
      if (x->konst.kind != y->konst.kind || (x->konst.kind != V_TEXT && !rows_alike(x->konst, y->konst))) return false;
      break;
    case AV_ROW: {
      SourceId list = av_at(r, av_item(r, a, 0))->source;
      if (!list || list != av_at(r, av_item(r, b, 0))->source) return false;
      break;
    }
    case AV_LIST:
    case AV_QUEUE:
    case AV_OPTION:
    case AV_RANGE:
    case AV_TEXT: break;
    default: return false;
  }
  u32 n = x->count;
  for (u32 i = first_part(x); i < n; i++)
    if (!carry_same(r, av_item(r, a, i), av_item(r, b, i))) return false;
  return true;
}

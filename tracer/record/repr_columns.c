/* repr_columns.c — lists that a loop grows or indexes, and texts: columns with room, and how many of their elements
 * count.
 *
 * A list in columns has two items: its columns, and the count, a weak integer. `konst` is what the items look like: a
 * number (one column), an array of which the shape counts (one column, with the array's axes behind the first), a
 * list or record of such (a tree of columns), or a text (one column of code points; the rows are a text then, else a
 * list). Elements behind the count are never looked at, so that popping changes the count alone. When the room is
 * used up the region is left before the instruction that appends; the interpreter appends, and the loop is entered
 * again with twice the room. What is read from them and written stands in repr_columns_use.c. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_inner.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_option.h"
#include "tracer/record/repr_queue.h"
#include "tracer/record/repr_slice.h"
#include "tracer/record/repr_stacked.h"

#include <string.h>

Av rec_new_rows(Recorder *r, Av columns, Av count, Value kind) {
  Av parts[2] = {columns, count};
  const AvKind as = kind.kind == V_TEXT ? AV_packed_text : rows_keyed(kind) ? AV_keyed : rows_ragged(kind) ? AV_ragged
                                                                                                          : AV_columns;
  Av a = columns && count ? av_items(r, as, parts, 2) : 0;
  if (a) av_at(r, a)->konst = kind;
  return a;
}

bool rec_is_text(Recorder *r, Av a) {
  return av_has(r, a, IS_TEXT) || (av_is_lazy(r, a) && av_at(r, a)->konst.kind == V_TEXT);
}

/* ---- what items look like ------------------------------------------------------------------------------- */

enum { ITEM_DEPTH = 4 }; /* not a threshold: items in items; deeper ones are of no kind that columns have */

static bool same_kind(Value a, Value b) { return a.kind == V_TEXT ? b.kind == V_TEXT : rows_alike(a, b); }

/* At least one number or array and at most ZIP_LEAVES, no empty parts. */
static bool leaves_of(Value kind, u32 depth, u32 *leaves) {
  if (rec_is_name(kind) || kind.kind == V_ARRAY) return ++*leaves <= ZIP_LEAVES;
  if (kind.kind == V_NUM) return kind.dtype != DT_c128 && (*leaves += 1 + rows_mixed(kind)) <= ZIP_LEAVES;
  if ((kind.kind != V_LIST && kind.kind != V_RECORD) || depth == ITEM_DEPTH) return false;
  u32 n = kind.kind == V_LIST ? kind.list->count : kind.record->shape->count;
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  for (u32 i = 0; i < n; i++)
    if (!leaves_of(items[i], depth + 1, leaves)) return false;
  return n > 0;
}

bool rec_leaves_few(Value kind) {
  u32 leaves = 0;
  return leaves_of(kind, 0, &leaves);
}

/* A small array of a known shape: zeros like it. */
static bool look_at_array(Recorder *r, const ArrayType *t, Value *out) {
  i64 dims[ROW_RANK], size = 1;
  if (t->rank > ROW_RANK || t->device || t->dtype == DT_c128) return false;
  for (u32 d = 0; d < t->rank; d++, size *= dims[d - 1])
    if (!rec_pin(r, t->dims[d], "an array in a list", &dims[d]) || dims[d] < 1 || dims[d] > ROW_ARRAY ||
        size > ROW_ARRAY)
      return false;
  if (size > ROW_ARRAY) return false;
  bool raised = r->vm->error.raised;
  if (array_new_zero(r->vm, t->dtype, t->rank, dims, out) == WEFT_OK) return true;
  if (!raised) vm_error_forget(r->vm);
  return !(r->failed = true);
}

static bool look_at_item(Recorder *r, Av a, u32 depth, Value *out) {
  a = rec_sure(r, a);
  if (!a || depth > ITEM_DEPTH) return false;
  const Repr *p = av_repr(r, a);
  return p->layout && p->layout(r, a, depth, out);
}

bool rec_number_layout(Recorder *r, Av a, u32 depth, Value *out) {
  const ArrayType *t = value_type(r->g, av_value(r, a));
  (void)depth;
  if (t->rank) return look_at_array(r, t, out);
  *out = (Value){.kind = V_NUM, .dtype = t->dtype, .flags = t->weak ? VF_WEAK : 0,
                 .aux = rec_weak_flag(r, av_value(r, a)) != 0};
  return !t->device;
}

bool rec_name_layout(Recorder *r, Av a, u32 depth, Value *out) {
  (void)depth;
  *out = value_hole();
  return rec_name_of(r, a) != 0;
}

/* Of a list or record that is known item by item. */
bool rec_tree_layout(Recorder *r, Av a, u32 depth, Value *out) {
  Vm *vm = r->vm;
  const AbsVal v = *av_at(r, a);
  const bool list = kind_is_list(v.kind);
  if (v.count > ZIP_LEAVES) return false;
  if (!(list ? list_new(vm, v.count, out) : record_new_shape(vm, v.shape, out))) goto refused;
  for (u32 i = 0; i < v.count; i++) {
    Value part;
    bool ok = look_at_item(r, av_item(r, a, i), depth + 1, &part);
    if (ok && !list) out->record->items[i] = part;
    else if (ok && !list_push(vm, out, part)) goto refused_made;
    if (ok) continue;
    value_drop(vm, *out);
    return false;
  }
  return true;
refused_made:
  value_drop(vm, *out);
refused:
  vm_error_forget(vm);
  r->failed = true;
  return false;
}

bool rec_kind_of(Recorder *r, Av a, Value *out) {
  if (!look_at_item(r, a, 0, out)) return false;
  bool ok = rec_leaves_few(*out) && av_const(r, *out);
  value_drop(r->vm, *out);
  return ok;
}

bool rec_item_fits(Recorder *r, Av a, Value kind) {
  a = rec_sure(r, a);
  if (!a || rows_ragged(kind)) return false;
  if (kind.kind == V_NUM) {
    const ArrayType *t = av_is_number(r, a) ? value_type(r->g, av_value(r, a)) : NULL;
    bool same = t && !t->rank && !t->device && t->dtype == kind.dtype;
    return same && (rows_mixed(kind) || t->weak == ((kind.flags & VF_WEAK) != 0));
  }
  if (kind.kind == V_ARRAY) {
    const ArrayType *t = av_is_number(r, a) ? value_type(r->g, av_value(r, a)) : NULL;
    bool same = t && !t->device && t->dtype == array_dtype(kind.array) && t->rank == array_rank(kind.array);
    for (u32 d = 0; same && d < t->rank; d++) {
      i64 n = 0, want = array_dims(kind.array)[d];
      same = size_same(&r->g->sizes, t->dims[d], want) ||
             (rec_pin(r, t->dims[d], "an array in a list", &n) && n == want);
    }
    return same;
  }
  if (rec_is_name(kind)) return rec_has_name(r, a);
  const AbsVal v = *av_at(r, a);
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  if (!(kind.kind == V_LIST ? kind_is_list(v.kind) : kind_is_record(v.kind)) ||
      v.count != (kind.kind == V_LIST ? kind.list->count : kind.record->shape->count))
    return false;
  if (kind.kind == V_RECORD && memcmp(v.shape->keys, kind.record->shape->keys, sizeof(Name) * v.count) != 0)
    return false;
  for (u32 i = 0; i < v.count; i++)
    if (!rec_item_fits(r, av_item(r, a, i), items[i])) return false;
  return true;
}

/* Depth is bounded: it is what an item looks like. */
static bool has_arrays(Value kind) {
  u32 n = kind.kind == V_LIST ? kind.list->count : kind.kind == V_RECORD ? kind.record->shape->count : 0;
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.kind == V_RECORD ? kind.record->items : NULL;
  bool any = kind.kind == V_ARRAY;
  for (u32 i = 0; i < n && !any; i++) any = has_arrays(items[i]);
  return any;
}

static bool text_kind(Recorder *r, Value *kind) {
  if (!text_new(r->vm, "", 0, kind)) {
    vm_error_forget(r->vm);
    return !(r->failed = true);
  }
  bool kept = av_const(r, *kind);
  value_drop(r->vm, *kind);
  return kept;
}

Outcome rec_columns_text(Recorder *r, Av rows, Av *out) {
  Value kind;
  if (!text_kind(r, &kind)) return OUT_FAIL;
  return rec_made(r, rec_new_rows(r, av_item(r, rows, 0), av_item(r, rows, 1), kind), out);
}

/* Of a list: what all its items look like. Of a text: characters, when it is known which. *kind is kept by the
 * recorder. */
bool rec_items_kind(Recorder *r, Av list, Value *kind) {
  const AbsVal v = *av_at(r, list);
  u32 leaves = 0;
  if (kind_in_columns(v.kind)) {
    *kind = v.konst;
    return true;
  }
  if (rec_is_text(r, list)) return text_kind(r, kind);
  if (!kind_is_list(v.kind) || v.count == 0 || !look_at_item(r, av_item(r, list, 0), 0, kind)) return false;
  bool ok = true;
  for (u32 i = 1; i < v.count && ok; i++) {
    Value other;
    if (rec_item_fits(r, av_item(r, list, i), *kind)) continue;
    if (!(ok = look_at_item(r, av_item(r, list, i), 0, &other))) break;
    ok = rows_widen(kind, other);
    value_drop(r->vm, other);
  }
  ok = ok && leaves_of(*kind, 0, &leaves) && av_const(r, *kind);
  value_drop(r->vm, *kind);
  return ok;
}

bool rec_is_column(Value kind) { return kind.kind == V_NUM || kind.kind == V_ARRAY || rec_is_name(kind); }

ArrayType rec_column_type(Value kind, Dim room) {
  ArrayType t = {.dtype = rec_is_name(kind) ? DT_i64 : kind.dtype, .rank = 1, .dims = {room}};
  if (kind.kind != V_ARRAY) return t;
  t.dtype = (u8)array_dtype(kind.array);
  for (u32 d = 0; d < array_rank(kind.array); d++) t.dims[t.rank++] = array_dims(kind.array)[d];
  return t;
}

/* A tree like `kind` whose leaves are made one by one. */
typedef Av (*LeafMaker)(Recorder *r, void *ctx, u32 leaf, Value kind);
static Av tree_like(Recorder *r, Value kind, u32 *leaf, LeafMaker make, void *ctx) {
  if (rows_mixed(kind)) {
    const Value strong = {.kind = V_NUM, .dtype = kind.dtype}, flag = value_bool(false);
    Av both[2] = {make(r, ctx, *leaf, strong), make(r, ctx, *leaf + 1, flag)};
    *leaf += 2;
    return both[0] && both[1] ? av_list(r, both, 2) : 0;
  }
  if (rec_is_column(kind)) return make(r, ctx, (*leaf)++, kind);
  u32 n = kind.kind == V_LIST ? kind.list->count : kind.record->shape->count;
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  Av parts[ZIP_LEAVES];
  for (u32 i = 0; i < n && i < ZIP_LEAVES; i++)
    if (!(parts[i] = tree_like(r, items[i], leaf, make, ctx))) return 0;
  return kind.kind == V_LIST ? av_list(r, parts, n) : av_record(r, kind.record->shape->keys, parts, n);
}

/* ---- which loop has to have them --------------------------------------------------------------------------- */

/* What is known of a value so far, which is not looked into for this. */
static Av as_known(const Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  Av known = kind_is_lazy(v->kind) && v->source < r->source_av.count ? r->source_av.data[v->source] : 0;
  return known ? known : a;
}

/* The place of an enclosing loop that holds `list` now. */
static RecLoc *loc_of(Recorder *r, Av list, RecLoop **loop) {
  for (RecLoop *l = r->loop; l; l = l->outer)
    for (u32 i = 0; i < l->locs.count; i++) {
      RecLoc *loc = &l->locs.data[i];
      Av now = loc->cell ? r->cells.data[loc->index].value : r->frames.data[l->depth].regs[loc->index];
      if (!now || (now != list && as_known(r, now) != as_known(r, list))) continue;
      *loop = l;
      return loc;
    }
  return rec_inner_of(r, list, loop);
}

bool rec_is_carried(Recorder *r, Av list) {
  RecLoop *l;
  return r->loop && loc_of(r, list, &l);
}

/* The loop is lifted again with wider rows there. */
static bool widen_loc(Recorder *r, RecLoop *l, RecLoc *loc, Value kind) {
  u32 leaves = 0;
  Value was = av_in_columns(r, *rec_loc_at(r, loc)) ? av_at(r, *rec_loc_at(r, loc))->konst : kind;
  if (kind.kind == V_TEXT || was.kind == V_TEXT || !leaves_of(kind, 0, &leaves)) return false;
  if (loc->kind_known && loc->rows && rows_alike(loc->kind, kind)) return false;
  loc->kind = kind;
  loc->kind_known = true;
  loc->names = false;
  loc->rows = 0;
  r->lacks = l;
  r->lacks_rows = loc;
  return true;
}

static Av widened_columns(Recorder *r, Av columns, Value was, Value kind);

/* What items of both kinds look like; *kind is kept by the recorder. */
static bool widest_kind(Recorder *r, Value a, Value b, Value *kind) {
  if (!rows_kind(r->vm, &a, 1, kind)) return false;
  bool ok = rows_widen(kind, b) && av_const(r, *kind);
  value_drop(r->vm, *kind);
  return ok;
}

bool rec_want_wider(Recorder *r, Av *rows, Av item) {
  RecLoop *l;
  RecLoc *loc = r->loop ? loc_of(r, *rows, &l) : NULL;
  Value kind, other, was = av_at(r, *rows)->konst;
  if (was.kind == V_TEXT || rows_ragged(was) || !look_at_item(r, item, 0, &other)) return false;
  bool ok = widest_kind(r, was, other, &kind) && !rows_alike(kind, was);
  value_drop(r->vm, other);
  if (ok && loc) (void)widen_loc(r, l, loc, kind);
  Av wide = ok &&
            !loc ? rec_new_rows(r, widened_columns(r, av_item(r, *rows, 0), was, kind), av_item(r, *rows, 1), kind) : 0;
  if (wide) *rows = wide;
  return wide != 0;
}

/* Depth is bounded: the item fits. */
bool rec_item_mixed(Recorder *r, Av a, Value kind) {
  a = rec_sure(r, a);
  if (!a) return false;
  if (kind.kind == V_NUM) return !rows_mixed(kind) && rec_weak_flag(r, av_value(r, a));
  if (kind.kind != V_LIST && kind.kind != V_RECORD) return false;
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  bool mixed = false;
  for (u32 i = 0, n = av_at(r, a)->count; i < n && !mixed; i++) mixed = rec_item_mixed(r, av_item(r, a, i), items[i]);
  return mixed;
}

bool rec_rows_meet(Recorder *r, Av a, Av b, Value *kind) {
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  if (!kind_in_columns(x->kind) || !kind_in_columns(y->kind)) return false;
  const Value p = x->konst, q = y->konst;
  if (p.kind == V_TEXT || q.kind == V_TEXT || rows_ragged(p) || rows_ragged(q) || rows_keyed(p) || rows_keyed(q) ||
      rows_alike(p, q))
    return false;
  return widest_kind(r, p, q, kind) && rec_leaves_few(*kind);
}

bool rec_want_names(Recorder *r, RecLoop *l, RecLoc *loc) {
  if (loc->rows) return false;
  loc->names = true;
  r->lacks = l;
  r->lacks_rows = loc;
  return true;
}

/* not a threshold: a loop of so few trips makes a list longer one by one */
enum { UNROLLED_MOST = 4 };

bool rec_want_rows(Recorder *r, RecLoop *l, RecLoc *loc, Av now) {
  if (loc->names && rec_is_text(r, loc->before) && rec_is_text(r, now)) { /* one that grows as well */
    loc->names = loc->kind_known = false;
    loc->rows = 0;
    r->lacks = l;
    r->lacks_rows = loc;
    return true;
  }
  Av before = loc->before ? av_force(r, loc->before) : 0;
  const Repr *p = now ? av_repr(r, now) : NULL;
  return before && p && p->widen && p->widen(r, l, loc, before, now);
}

/* A list or text that the loop makes longer, shorter or another one: into columns. */
bool rec_into_columns(Recorder *r, RecLoop *l, RecLoc *loc, Av before, Av now) {
  Value kind;
  if (loc->rows || strcmp(av_kind_text(r, before), av_kind_text(r, now)) != 0 || av_in_columns(r, before)) return false;
  const bool known = av_is_list(r, before), text = rec_is_text(r, now);
  if (text ? !rec_text_parts(r, now) : !known && !av_is_outer_list(r, before)) return false;
  bool emptied = av_is_list(r, now) && !av_at(r, now)->count;
  bool unrolls = l->few && l->few - 1 <= UNROLLED_MOST && known && !emptied && !text;
  if (!rec_items_kind(r, emptied ? before : now, &kind) || unrolls || (l->few && has_arrays(kind))) return false;
  loc->kind = kind;
  loc->kind_known = true;
  r->lacks = l;
  r->lacks_rows = loc;
  return true;
}

/* A list in columns, of which the loop makes one of another kind. */
bool rec_columns_widen(Recorder *r, RecLoop *l, RecLoc *loc, Av before, Av now) {
  return av_in_columns(r, before) ? widen_loc(r, l, loc, av_at(r, now)->konst)
                                  : rec_into_columns(r, l, loc, before, now);
}

/* A short list or text goes into the columns of the one whose place it took. */
Outcome rec_columns_take_back(Recorder *r, Av a, bool empty, Av *now) {
  return av_in_columns(r, *now) ? OUT_GO : rec_rows_like(r, a, *now, empty, now);
}

/* The place of an enclosing loop that held `list` at its head: the arm recorded last may have another there. */
static RecLoc *head_of(const Recorder *r, Av list, RecLoop **loop) {
  for (RecLoop *l = r->loop; l; l = l->outer)
    for (u32 i = 0; i < l->locs.count; i++) {
      if (l->locs.data[i].cell || l->locs.data[i].head != list) continue;
      *loop = l;
      return &l->locs.data[i];
    }
  return NULL;
}

bool rec_merge_rows(Recorder *r, Av base, Av a, Av b) {
  RecLoop *l;
  if (!base || !a || !b || !r->loop) return false;
  base = av_force(r, base);
  RecLoc *loc = loc_of(r, base, &l);
  if (!loc) loc = head_of(r, base, &l);
  if (!loc) return false;
  a = av_force(r, a);
  b = av_force(r, b);
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  bool first = kind_in_columns(x->kind) ||
               (!kind_in_columns(y->kind) && (rec_is_text(r, a) ? kind_is_made_text(x->kind) : x->count > y->count));
  return rec_want_rows(r, l, loc, rec_is_queue(r, a) || (first && !rec_is_queue(r, b)) ? a : b);
}

/* ---- made --------------------------------------------------------------------------------------------------- */

typedef struct PackedInput {
  SourceId source;
  Dim room;
  bool tree, given, keeps;
} PackedInput;

static Av columns_input_column(Recorder *r, void *ctx, u32 leaf, Value kind) {
  const PackedInput *p = ctx;
  Graph *g = r->g;
  SourceId s = p->tree ? source_step(&g->guards, p->source, SRC_column, leaf, NULL) : p->source;
  u32 in = s ? guard_input(&g->guards, s, IN_rows) : UINT32_MAX;
  if (in == UINT32_MAX) return 0;
  g->guards.inputs.data[in].donate = true;
  g->guards.inputs.data[in].given = p->given;
  g->guards.inputs.data[in].keeps = p->keeps;
  for (u32 i = 0; i < g->inputs.count; i++)
    if (g->inputs.data[i].input == in) return av_num(r, g->inputs.data[i].value);
  ArrayType t = rec_column_type(kind, p->room);
  return av_num(r, graph_input(g, graph_type(g, &t), in));
}

static bool are_made(const Packed *given) { return given && given->column[0].kind == V_ARRAY; }

/* The inputs that pack what a source names, a list or text of so many items. */
static Outcome packed_source(Recorder *r, SourceId s, u32 now, Value kind, const Packed *given, Av *out) {
  Graph *g = r->g;
  Av count = av_length(r, s, now);
  Dim n;
  u32 leaf = 0;
  if (!count || !av_dim(r, count, &n)) return OUT_FAIL;
  bool tree = kind.kind == V_LIST || kind.kind == V_RECORD || kind.kind == V_ARRAY || rows_mixed(kind);
  PackedInput p = {s, size_add(&g->sizes, size_mul(&g->sizes, n, 2), ROWS_ROOM), tree, are_made(given), given != NULL};
  if (p.room == DIM_NONE) return rec_stuck(r, REASON_size_expression, "the length of a list");
  Outcome o = rec_made(r, rec_new_rows(r, tree_like(r, kind, &leaf, columns_input_column, &p), count, kind), out);
  if (o == OUT_GO) av_at(r, *out)->source = s;
  return o;
}

/* Lists of any length: where each begins, how many items it has, and their items, as rows. */
static Outcome ragged_source(Recorder *r, SourceId s, List *list, Av *out) {
  Value kind;
  u32 leaves = 0, leaf = 0;
  u64 now;
  Graph *g = r->g;
  if (!rec_look_into(r, list)) return OUT_FAIL;
  const Packed *given = rows_known(r->vm, list, true);
  if (given) kind = value_keep(given->kind);
  else if (!rows_ragged_kind(r->vm, list->items, list->count, &kind)) return OUT_STUCK;
  bool kept = leaves_of(kind.list->items[1], 0, &leaves) && av_const(r, kind);
  value_drop(r->vm, kind);
  if (!kept || !rows_total(list->items, list->count, &now)) return r->failed ? OUT_FAIL : OUT_STUCK;
  if (!guard_rows(&g->guards, s, kind, rec_here(r))) return OUT_FAIL;
  const Value item = kind.list->items[1], number = value_weak_i64(0);
  Av count = av_length(r, s, list->count), total = av_total(r, s, (i64)now), parts[3];
  Dim n, all;
  if (!count || !total || !av_dim(r, count, &n) || !av_dim(r, total, &all)) return OUT_FAIL;
  PackedInput starts = {s, size_add(&g->sizes, size_mul(&g->sizes, n, 2), ROWS_ROOM), true, are_made(given),
                        given != NULL};
  PackedInput flat = {s, size_add(&g->sizes, size_mul(&g->sizes, all, 2), ROWS_ROOM), true, are_made(given),
                      given != NULL};
  if (starts.room == DIM_NONE || flat.room == DIM_NONE)
    return rec_stuck(r, REASON_size_expression, "the length of a list");
  parts[0] = rec_new_rows(r, tree_like(r, number, &leaf, columns_input_column, &starts), count, number);
  parts[1] = rec_new_rows(r, tree_like(r, number, &leaf, columns_input_column, &starts), count, number);
  parts[2] = rec_new_rows(r, tree_like(r, item, &leaf, columns_input_column, &flat), total, item);
  bool made = parts[0] && parts[1] && parts[2];
  Outcome o = rec_made(r, made ? rec_new_rows(r, av_list(r, parts, 3), count, kind) : 0, out);
  if (o == OUT_GO) av_at(r, *out)->source = s;
  return o;
}

static Outcome rows_of_source(Recorder *r, SourceId s, List *list, const Value *want, Av *out) {
  Value kind;
  u32 leaves = 0;
  bool empty = !list->count && want;
  const Packed *given = rows_known(r->vm, list, false);
  bool found = empty ? rows_kind(r->vm, want, 1, &kind) : given ? rows_kind(r->vm, &given->kind, 1, &kind)
                     : rows_kind(r->vm, list->items, list->count, &kind);
  bool kept = found && (!want || empty || rows_widen(&kind, *want)) && leaves_of(kind, 0, &leaves) && av_const(r, kind);
  if (found) value_drop(r->vm, kind);
  if (!kept && !want && !r->failed) {
    Outcome o = ragged_source(r, s, list, out);
    if (o != OUT_STUCK) return o;
  }
  if (!kept)
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list,
                                            "a list whose items are not numbers, small arrays of one shape or "
                                            "short texts, all of one kind, or trees of such");
  if (!guard_rows(&r->g->guards, s, kind, rec_here(r))) return OUT_FAIL;
  return packed_source(r, s, list->count, kind, given, out);
}

Outcome rec_rows_of_text(Recorder *r, SourceId s, const Value text, Av *out) {
  Value kind;
  if (!text_kind(r, &kind) || !guard_tag(&r->g->guards, s, text, false, rec_here(r))) return OUT_FAIL;
  return packed_source(r, s, text.text->count, kind, NULL, out);
}

bool rec_is_list_source(const AbsVal *v) {
  return v->source && (kind_is_lazy(v->kind) || kind_is_outer_list(v->kind) || kind_is_list(v->kind)) &&
         v->konst.kind == V_LIST;
}

/* The leaves of an item, as they go into columns. */
static bool item_leaves(Recorder *r, Av item, Value kind, AvVec *out) {
  if (!(item = rec_sure(r, item))) return false;
  if (rec_is_name(kind)) return vec_push(&r->vm->alloc, out, rec_name_of(r, item));
  if (kind.kind == V_ARRAY) return vec_push(&r->vm->alloc, out, item);
  if (kind.kind == V_NUM) {
    ValueId v = av_value(r, item), flag = rec_weak_flag(r, v);
    if (!rows_mixed(kind)) return vec_push(&r->vm->alloc, out, item);
    if (!flag) flag = graph_const(r->g, value_bool(value_type(r->g, v)->weak));
    v = graph_convert(r->g, v, kind.dtype);
    return v && flag && vec_push(&r->vm->alloc, out, av_num(r, v)) && vec_push(&r->vm->alloc, out, av_num(r, flag));
  }
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  for (u32 i = 0; i < av_at(r, item)->count; i++)
    if (!item_leaves(r, av_item(r, item, i), items[i], out)) return false;
  return true;
}

typedef struct Stacked {
  Av list;
  Value kind;
} Stacked;

static Av stacked_column(Recorder *r, void *ctx, u32 leaf, Value kind) {
  const Stacked *s = ctx;
  Av list = s->list, joined;
  AvVec leaves = {0}, column = {0};
  (void)kind;
  bool ok = true;
  for (u32 i = 0; i < av_at(r, list)->count && ok; i++) {
    leaves.count = 0;
    ok = item_leaves(r, av_item(r, list, i), s->kind, &leaves) && leaf < leaves.count &&
         vec_push(&r->vm->alloc, &column, leaves.data[leaf]);
  }
  Av params[OP_MAX_PARAMS] = {ok ? av_list(r, column.data, column.count) : 0, av_const(r, value_weak_i64(0))};
  vec_free(&r->vm->alloc, &leaves);
  vec_free(&r->vm->alloc, &column);
  return params[0] && params[1] && rec_op(r, OP_stack, params, &joined) == OUT_GO ? joined : 0;
}

/* The items in arrays without room, for a list that the loop only reads: made before it (graph_hoist.c). */
static Outcome items_stacked(Recorder *r, Av list, Av *out) {
  Value kind;
  u32 leaf = 0;
  if (!rec_items_kind(r, list, &kind))
    return rec_stuck(r, REASON_loop_list, "a list whose items are not numbers, small arrays of one shape or "
                                          "short texts, all of one kind, or trees of such");
  Stacked s = {list, kind};
  Av columns = tree_like(r, kind, &leaf, stacked_column, &s);
  if (!columns) return r->failed || r->g->failed ? OUT_FAIL : OUT_STUCK;
  return rec_made(r, rec_new_rows(r, columns, av_const(r, value_weak_i64(av_at(r, list)->count)), kind), out);
}

static Av zeros_column(Recorder *r, void *ctx, u32 leaf, Value kind) {
  (void)leaf;
  ArrayType t = rec_column_type(kind, *(const Dim *)ctx);
  return av_num(r, graph_full(r->g, t.dtype, t.rank, t.dims, 0));
}

Av rec_columns_new(Recorder *r, Value kind, Dim room) {
  u32 leaf = 0;
  return tree_like(r, kind, &leaf, zeros_column, &room);
}

/* Items put one by one into new columns. */
static Outcome rows_of_items(Recorder *r, const Av *items, u32 n, Value kind, Av *out) {
  Av columns = rec_columns_new(r, kind, n + ROWS_ROOM);
  for (u32 i = 0; i < n && columns; i++) {
    Outcome o = rec_rows_put(r, columns, kind, graph_const(r->g, value_weak_i64(i)), items[i], 0, &columns);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, rec_new_rows(r, columns, av_const(r, value_weak_i64(n)), kind), out);
}

enum { POINTS_MOST = 64 }; /* not a threshold: room for characters; a longer text is no row */

static Outcome rows_of_text(Recorder *r, Av text, Av *out) {
  Value kind;
  Av points[POINTS_MOST];
  u32 n = 0;
  const AbsVal v = *av_at(r, text);
  if (v.source && v.konst.kind == V_TEXT) return rec_rows_of_text(r, v.source, v.konst, out);
  if (rec_is_of_digits(r, text)) {
    Av at = av_const(r, value_weak_i64(0)), column = text_kind(r, &kind) ? rec_columns_new(r, kind, ROWS_ROOM) : 0;
    Outcome o = at && column ? rec_text_put(r, text, &column, &at) : OUT_FAIL;
    return o == OUT_GO ? rec_made(r, rec_new_rows(r, column, at, kind), out) : o;
  }
  if (!rec_points(r, text, points, &n)) return rec_stuck(r, REASON_loop_list, "a text that is not made of characters");
  return text_kind(r, &kind) ? rows_of_items(r, points, n, kind, out) : OUT_FAIL;
}

/* Do items of one kind fit where those of another one are wanted? They take that. */
static bool fits_in(Value *kind, Value want) {
  bool ok = same_kind(*kind, want) ||
            (!rows_ragged(want) && kind->kind != V_TEXT && want.kind != V_TEXT && rows_take(want, *kind));
  if (ok) *kind = want;
  return ok;
}

/* The columns of a kind with flags where there were none. */
static Av widened_columns(Recorder *r, Av columns, Value was, Value kind) {
  if (rec_is_column(was)) {
    if (!rows_mixed(kind) || rows_mixed(was)) return columns;
    ValueId x = av_value(r, columns);
    ValueId flags = graph_full(r->g, DT_bool, 1, &value_type(r->g, x)->dims[0], (was.flags & VF_WEAK) != 0);
    Av both[2] = {columns, flags ? av_num(r, flags) : 0};
    return both[1] ? av_list(r, both, 2) : 0;
  }
  const Value *a = was.kind == V_LIST ? was.list->items : was.record->items,
      *b = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  AbsVal v = *av_at(r, columns);
  Av parts[ZIP_LEAVES];
  for (u32 i = 0; i < v.count && i < ZIP_LEAVES; i++)
    if (!(parts[i] = widened_columns(r, av_item(r, columns, i), a[i], b[i]))) return 0;
  return kind_is_list(v.kind) ? av_list(r, parts, v.count) : av_record(r, v.shape->keys, parts, v.count);
}

static Outcome widened(Recorder *r, Av rows, Value want, Av *out) {
  Value kind = av_at(r, rows)->konst;
  const Value was = kind;
  if (!fits_in(&kind, want)) return rec_stuck(r, REASON_loop_list, "items of different kinds");
  return rec_made(r,
                  rec_new_rows(r, widened_columns(r, av_item(r, rows, 0), was, want), av_item(r, rows, 1), want), out);
}

Outcome rec_rows_of(Recorder *r, Av list, const Value *want, Av *out) {
  const AbsVal *v = av_at(r, list);
  if (kind_is_queue(v->kind)) {
    Outcome o = rec_queue_rows(r, list, out);
    return o == OUT_GO && want ? rec_rows_of(r, *out, want, out) : o;
  }
  if (kind_in_columns(v->kind))
    return want && !same_kind(v->konst, *want) ? widened(r, list, *want, out) : rec_made(r, list, out);
  if (rec_is_text(r, list)) return rows_of_text(r, list, out);
  if (want && rows_keyed(*want)) return rec_keyed_of(r, list, *want, out);
  if (want && rows_ragged(*want)) { /* as it comes, or not at all */
    bool outside = rec_is_list_source(v) && v->konst.list->count;
    Outcome o = outside ? ragged_source(r, v->source, v->konst.list, out) : OUT_STUCK;
    bool fits = o == OUT_GO && rows_alike(av_at(r, *out)->konst, *want);
    return fits || o == OUT_FAIL ? o : rec_stuck(r, REASON_loop_list, "lists of several lengths");
  }
  Value kind;
  /* an empty one: what the loop appends tells what it holds when it comes again */
  if (rec_is_list_source(v) && (v->konst.list->count || want)) {
    return rows_of_source(r, v->source, v->konst.list, want, out);
  }
  if (!(list = av_force(r, list))) return OUT_FAIL;
  v = av_at(r, list);
  if (!kind_is_list(v->kind)) return rec_stuck(r, REASON_loop_list, "%s in a loop", av_kind_text(r, list));
  u32 n = v->count;
  if (n == 0 && want) kind = *want;
  else if (!rec_items_kind(r, list, &kind) || (want && !fits_in(&kind, *want)))
    return rec_stuck(r, REASON_loop_list, "a list whose items are not numbers, small arrays of one shape or "
                                          "short texts, all of one kind, or trees of such");
  Av *items = arena_alloc(&r->g->arena, sizeof *items * (n + 1));
  if (!items) return OUT_FAIL;
  for (u32 i = 0; i < n; i++) items[i] = av_item(r, list, i);
  return rows_of_items(r, items, n, kind, out);
}

/* A text that is known, for an item at a computed position: made before the loop, as items_stacked. */
Outcome rec_text_stacked(Recorder *r, Av text, Av *out) {
  Value kind;
  Av points[POINTS_MOST], joined;
  u32 n = 0;
  if (!rec_points(r, text, points, &n) || !n) return rec_stuck(r, REASON_no_rule, "text indexed");
  if (!text_kind(r, &kind)) return OUT_FAIL;
  Av params[OP_MAX_PARAMS] = {av_list(r, points, n), av_const(r, value_weak_i64(0))};
  Outcome o = params[0] && params[1] ? rec_op(r, OP_stack, params, &joined) : OUT_FAIL;
  return o == OUT_GO ? rec_made(r, rec_new_rows(r, joined, av_const(r, value_weak_i64(n)), kind), out) : o;
}

bool rec_text_grows(Recorder *r, Av a) {
  RecLoop *l;
  const AbsVal *v = a ? av_at(r, a) : NULL;
  if (!v || !r->loop || !v->source || v->konst.kind != V_TEXT ||
      (!kind_is_lazy(v->kind) && !kind_is_outer_text(v->kind) && !kind_is_constant(v->kind)))
    return false;
  RecLoc *loc = loc_of(r, a, &l);
  if (!loc || loc->rows) return false;
  loc->kind_known = false;
  r->lacks = l;
  r->lacks_rows = loc;
  (void)rec_stuck(r, REASON_loop_list, "a text of the loop grows");
  return true;
}

bool rec_rows_ask(Recorder *r, Av now, const Value *kind) {
  RecLoop *l;
  RecLoc *loc = r->loop ? loc_of(r, now, &l) : NULL;
  if (!loc || (kind && loc->rows)) return false;
  if (kind) loc->kind = *kind;
  loc->kind_known = kind != NULL;
  loc->names = false;
  r->lacks = l;
  r->lacks_rows = loc;
  return true;
}

/* A list from outside that nobody has looked into yet: better packed than taken apart where its items are asked for by
 * computed positions. */
bool rec_rows_suit(const Recorder *r, Av list) {
  const AbsVal *v = list ? av_at(r, list) : NULL;
  return v && kind_is_lazy(v->kind) && rec_is_list_source(v) && v->konst.list->count && as_known(r, list) == list;
}

bool rec_lists_suit(const Recorder *r, Av list) {
  const AbsVal *v = av_at(r, list);
  u64 total;
  return kind_is_lazy(v->kind) && rec_is_list_source(v) && v->konst.list->count && !list_is_packed(v->konst.list) &&
         rows_total(v->konst.list->items, v->konst.list->count, &total);
}

/* A list inside a loop, or a body that runs again and again, where its items are asked for by a computed position. */
Outcome rec_rows_here(Recorder *r, Av list, Av *out) {
  RecLoop *l;
  if (!r->loop && !r->repeats)
    return rec_stuck(r, REASON_literal_needed, "a list position must be known while tracing");
  RecLoc *loc = loc_of(r, list, &l);
  const AbsVal *v = av_at(r, list);
  if (!loc || (loc->depth && rec_is_list_source(v))) { /* or inside of a variable, which is told when it changed */
    Outcome o = kind_is_list(v->kind) && !rec_is_list_source(v) ? items_stacked(r, list, out) : OUT_STUCK;
    if (o == OUT_STUCK) o = rec_rows_of(r, list, NULL, out);
    if (o == OUT_STUCK) r->reason = REASON_literal_needed;
    return o;
  }
  if (!loc->rows) {
    loc->kind_known = false;
    r->lacks = l;
    r->lacks_rows = loc;
  }
  return rec_stuck(r, REASON_literal_needed, "a list position must be known while tracing");
}

/* Lists that the loop grows or indexes become rows before it. One that cannot is tried once more as it is. */
Outcome rec_make_rows(Recorder *r, RecLoop *l) {
  for (u32 i = 0; i < l->locs.count; i++) {
    RecLoc *loc = &l->locs.data[i];
    if (loc->rows != 1) continue;
    Av rows;
    if (loc->option) {
      Outcome o = rec_make_option(r, loc, rec_loc_at(r, loc));
      if (o != OUT_GO) return o;
      continue;
    }
    if (loc->names) {
      if (!(rows = rec_names_open(r, *rec_loc_at(r, loc), 0))) return OUT_FAIL;
      *rec_loc_at(r, loc) = rows;
      continue;
    }
    Outcome o = OUT_GO;
    if (!loc->queue && rec_stack_suits(r, *rec_loc_at(r, loc), loc->kind_known ? &loc->kind : NULL)) {
      if ((o = rec_stack_put(r, rec_loc_at(r, loc))) != OUT_GO) return o;
      continue;
    }
    o = rec_rows_of(r, *rec_loc_at(r, loc), loc->kind_known ? &loc->kind : NULL, &rows);
    if (o == OUT_STUCK) {
      r->lacks = l;
      r->lacks_rows = loc;
    }
    if (o == OUT_GO && loc->queue) o = rec_queue_new(r, rows, &rows);
    if (o != OUT_GO) return o;
    *rec_loc_at(r, loc) = rows;
  }
  return rec_make_inner(r, l);
}

/* ---- its table --------------------------------------------------------------------------------------------------- */

bool rec_columns_same(Recorder *r, Av a, Av b) {
  const Value x = av_at(r, a)->konst, y = av_at(r, b)->konst;
  return x.kind == y.kind && rows_alike(x, y) && repr_same_parts(r, a, b);
}

/* Of columns, each as the list of as many of its elements as count. */
static RecipeId columns_tree_recipe(Recorder *r, Av columns, Value kind, RecipeId count) {
  ExitTable *t = &r->g->exits;
  if (av_is_range(r, columns)) return rec_recipe(r, columns);
  if (rows_mixed(kind)) {
    RecipeId numbers = recipe_items(t, av_value(r, av_item(r, columns, 0)), 0, count, ITEMS_strong),
             flags = numbers ? recipe_items(t, av_value(r, av_item(r, columns, 1)), 0, count, ITEMS_strong) : 0;
    return numbers ? recipe_weak(t, numbers, flags) : 0;
  }
  if (rec_is_column(kind)) {
    bool weak = kind.kind == V_NUM && (kind.flags & VF_WEAK);
    return recipe_items(t, av_value(r, columns), 0, count,
                        rec_is_name(kind) ? ITEMS_texts : weak ? ITEMS_weak : ITEMS_strong);
  }
  u32 n = kind.kind == V_LIST ? kind.list->count : kind.record->shape->count;
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  RecipeId ids[ZIP_LEAVES];
  for (u32 i = 0; i < n && i < ZIP_LEAVES; i++)
    if (!(ids[i] = columns_tree_recipe(r, av_item(r, columns, i), items[i], count))) return 0;
  return kind.kind == V_LIST ? recipe_list(t, ids, n) : recipe_record(t, kind.record->shape->keys, ids, n);
}

static RecipeId columns_recipe(Recorder *r, Av a) {
  const Value kind = av_at(r, a)->konst;
  RecipeId there = repr_source_recipe(r, a);
  if (there) return there;
  RecipeId count = rec_recipe(r, av_item(r, a, 1));
  RecipeId columns = count ? columns_tree_recipe(r, av_item(r, a, 0), kind, count) : 0;
  return !columns || rec_is_column(kind) ? columns : recipe_zip(&r->g->exits, columns);
}

static Outcome columns_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  return rec_queue_cuts(r, a, parts) ? rec_queue_cut(r, a, parts, out) : rec_rows_slice(r, a, parts, out);
}

/* A number or a text among those of a list that is packed. */
Outcome rec_columns_contain(Recorder *r, Av rows, Av a, Av *out) {
  Value kind = av_at(r, rows)->konst;
  bool texts = kind.kind == V_HOLE;
  Av x = texts ? rec_text_number(r, a) : a, column = av_item(r, rows, 0), nil = av_const(r, value_nil());
  ValueId v = x ? av_value(r, x) : 0;
  const ArrayType *t = v ? value_type(r->g, v) : NULL;
  bool plain = t && !t->rank && (t->dtype == DT_i64 || t->dtype == DT_f64) &&
               (texts || (kind.kind == V_NUM && (kind.dtype == DT_i64 || kind.dtype == DT_f64)));
  if (!plain) return r->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "`in` of %s and list", av_kind_text(r, a));
  const u8 slice = IX_SLICE;
  Av ends[3] = {nil, av_item(r, rows, 1), nil}, all, same = 0, params[OP_MAX_PARAMS] = {0};
  Outcome o = rec_index(r, rows_mixed(kind) ? av_item(r, column, 0) : column, &slice, 1, ends, &all);
  if (o == OUT_GO) o = rec_binary(r, BC_eq, all, x, &same);
  params[0] = same;
  return o == OUT_GO ? rec_op(r, OP_any, params, out) : o;
}

/* Items of a list that is known item by item go behind those in the columns. */
static Outcome columns_add(Recorder *r, Av a, Av b, Av *out) {
  if (av_is_list(r, b)) return rec_rows_join(r, a, b, out);
  return av_in_columns(r, b) && !rec_is_text(r, b) ? rec_rows_concat(r, a, b, out) : repr_no(r, b, ROP_add);
}

static Outcome columns_store(Recorder *r, Av a, Av at, Av old, Av item, Av *out) {
  return rec_rows_set(r, a, at, old, item, out);
}

const Repr repr_columns = {
    .name = "columns",
    .type = "list",
    .same = rec_columns_same,
    .recipe = columns_recipe,
    NO(hand, effect_host, "its columns stay in the region"),
    NO(example, no_rule, "a list of no known length"),
    NO(input, no_rule, "a loop asks for it"),
    .length = repr_count_length,
    .item = rec_rows_get,
    .slice = columns_slice,
    .store = columns_store,
    .add = columns_add,
    .equal = rec_columns_equal,
    .contains = rec_columns_contain,
    NO(field, raises, "a list has no fields"),
    NO(put_field, raises, "a list has no fields"),
    NO(update, no_rule, "it takes one place"),
    NO(assign, no_rule, "its place is looked at first"),
    NO(before_store, no_rule, "a store makes its columns wider itself"),
    .walk = repr_itself,
    .at = rec_rows_item,
    .array = rec_rows_array,
    .open = rec_open_columns,
    NO(items, no_rule, "how many it has is computed"),
    NO(call, raises, "a list is no function"),
    NO(truth, raises, "a list is no condition"),
    NO(format, text_value, "the texts of lists are made by the interpreter"),
    NO(layout, loop_list, "a list of any length in a list"),
    NO(name_of, no_rule, "it is no text"),
    .widen = rec_columns_widen,
    .take_back = rec_columns_take_back,
    NO(unpack, no_rule, "how many it has is computed"),
};

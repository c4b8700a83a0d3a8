/* record_tree.c — tree_map, tree_leaves, tree_reduce in a trace. A tree that is known item by item is walked over
 * while tracing. A list of which only running tells how long it is, or a long one, is a loop over its columns;
 * where its items do not fit into such, it is taken apart, as constructs take their operands apart, and where that
 * cannot be the interpreter does it. */
#include "hop/control.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"

enum { FEW = 64 /* items of a list in columns that are taken one by one where their number is known */ };

static bool is_list(const Recorder *r, Av a) { return av_has(r, a, IS_LIST); }
static bool is_open(const Recorder *r, Av a) { return av_is_open(r, a); }
/* Taken item by item at once: its length is known here. */
static bool is_short(Recorder *r, Av a) {
  i64 n = FEW;
  return av_in_columns(r, a) && av_known_int(r, av_item(r, a, 1), &n) && n < FEW;
}

/* ---- tree_map ---------------------------------------------------------------------------------------------- */

static Outcome map_opened(Recorder *r, Av f, const Av *trees, u32 n, Av *out) {
  const AbsVal t = *av_at(r, trees[0]);
  for (u32 i = 1; i < n; i++)
    if (av_at(r, trees[i])->kind != t.kind || av_at(r, trees[i])->count != t.count)
      return rec_stuck(r, REASON_raises, "tree_map of trees that differ");
  AvVec items = {0}, parts = {0};
  Outcome o = OUT_GO;
  for (u32 k = 0; k < t.count && o == OUT_GO; k++) {
    Av y = 0;
    parts.count = 0;
    for (u32 i = 0; i < n && o == OUT_GO; i++) {
      i32 at = kind_is_list(t.kind) ? (i32)k : av_field(r, trees[i], t.shape->keys[k]);
      if (at < 0) o = rec_stuck(r, REASON_raises, "tree_map of records that differ");
      else if (!vec_push(&r->vm->alloc, &parts, av_item(r, trees[i], (u32)at))) o = OUT_FAIL;
    }
    if (o == OUT_GO) o = record_map_trees(r, f, parts.data, n, &y);
    if (o == OUT_GO && !vec_push(&r->vm->alloc, &items, y)) o = OUT_FAIL;
  }
  if (o == OUT_GO)
    o = rec_made(r, kind_is_list(t.kind) ? av_list(r, items.data, items.count)
                                      : av_record(r, t.shape->keys, items.data, items.count), out);
  vec_free(&r->vm->alloc, &items);
  vec_free(&r->vm->alloc, &parts);
  return o;
}

/* Lists as one list in columns, its items lists of one item of each; they must be of one length. */
static Outcome zipped(Recorder *r, const Av *trees, u32 n, Av *out) {
  AvVec rows = {0};
  Outcome o = OUT_GO;
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    Av x = 0;
    o = is_list(r, trees[i]) ? rec_rows_of(r, trees[i], NULL, &x)
                             : rec_stuck(r, REASON_raises, "tree_map of trees that differ");
    if (o == OUT_GO && !rec_is_plain_columns(r, x))
      o = rec_stuck(r, REASON_no_rule, "tree_map of lists of lists of any length");
    if (o == OUT_GO && !vec_push(&r->vm->alloc, &rows, x)) o = OUT_FAIL;
  }
  for (u32 i = 1; i < n && o == OUT_GO; i++) {
    Av same;
    o = rec_binary(r, BC_eq, av_item(r, rows.data[0], 1), av_item(r, rows.data[i], 1), &same);
    Value known;
    if (o == OUT_GO && av_const_value(r, same, &known)) {
      if (!known.i) o = rec_stuck(r, REASON_raises, "tree_map of trees that differ");
      continue;
    }
    ValueId is = o == OUT_GO ? rec_strengthen(r, av_value(r, same), DT_bool) : 0;
    if (o == OUT_GO) o = is ? rec_check(r, CHECK_assertion, &is, 1) : OUT_FAIL;
  }
  if (o == OUT_GO) o = n == 1 ? rec_made(r, rows.data[0], out) : rec_rows_zip(r, rows.data, n, false, out);
  vec_free(&r->vm->alloc, &rows);
  return o;
}

static Outcome map_columns(Recorder *r, Av f, const Av *trees, u32 n, Av *out) {
  RecState state;
  RecMark mark = rec_mark(r);
  Av rows;
  if (!rec_save(r, &state)) return OUT_FAIL;
  Outcome o = zipped(r, trees, n, &rows);
  if (o == OUT_GO) o = record_map_rows(r, f, rows, n, out);
  rec_end_try(r, &mark, &state, o);
  return o;
}

Outcome record_map_trees(Recorder *r, Av f, const Av *given, u32 n, Av *out) {
  if (r->nest > (u32)r->vm->tunables.trace_nest) return rec_over(r, trace_nest, REASON_graph_size, "a tree");
  AvVec trees = {0};
  Outcome o = OUT_GO;
  bool open = true;
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    Av x = av_force(r, given[i]);
    if (x && is_short(r, x)) o = rec_open_list(r, x, &x);
    if (o == OUT_GO && (!x || !vec_push(&r->vm->alloc, &trees, x))) o = OUT_FAIL;
    if (o == OUT_GO) open &= is_open(r, x);
  }
  r->nest++;
  Av t = o == OUT_GO ? trees.data[0] : 0;
  if (o != OUT_GO) goto done;
  if (av_is_number(r, t)) o = rec_call(r, f, trees.data, NULL, n, out);
  else if (open) o = map_opened(r, f, trees.data, n, out);
  else if (!is_list(r, t) && !is_open(r, t) && !av_has(r, t, IS_CLOSED))
    o = rec_made(r, t, out);
  else {
    o = is_list(r, t) ? map_columns(r, f, trees.data, n, out) : OUT_STUCK;
    if (o == OUT_STUCK && !r->lacks) {
      o = OUT_GO;
      for (u32 i = 0; i < n && o == OUT_GO; i++) {
        o = rec_open_list(r, trees.data[i], &trees.data[i]);
        if (o == OUT_GO && !is_open(r, trees.data[i])) o = rec_stuck(r, REASON_raises, "tree_map of trees that differ");
      }
      if (o == OUT_GO) o = map_opened(r, f, trees.data, n, out);
    }
  }
done:
  r->nest--;
  vec_free(&r->vm->alloc, &trees);
  return o;
}

Outcome record_tree_map(Recorder *r, u32 op, const Av *params, Av *out) {
  (void)op;
  const AbsVal trees = *av_at(r, params[1]);
  AvVec given = {0};
  Outcome o = trees.count ? OUT_GO : rec_stuck(r, REASON_raises, "tree_map of no tree");
  for (u32 i = 0; i < trees.count && o == OUT_GO; i++)
    if (!vec_push(&r->vm->alloc, &given, av_item(r, params[1], i))) o = OUT_FAIL;
  if (o == OUT_GO) o = record_map_trees(r, params[0], given.data, given.count, out);
  vec_free(&r->vm->alloc, &given);
  return o;
}

/* ---- tree_leaves, tree_reduce --------------------------------------------------------------------------------- */

/* Is a list in columns of numbers and arrays alone: the list of its leaves? */
static bool is_flat(Recorder *r, Av rows) {
  const Value kind = av_at(r, rows)->konst;
  return av_in_columns(r, rows) && (kind.kind == V_NUM || kind.kind == V_ARRAY);
}

/* *rows: a list in columns; 0: it is something else, or had better be taken apart. */
static Outcome in_columns(Recorder *r, Av tree, Av *rows) {
  *rows = 0;
  if (is_open(r, tree) || !is_list(r, tree) || is_short(r, tree) || av_is_row(r, tree)) return OUT_GO;
  Outcome o = rec_rows_of(r, tree, NULL, rows);
  if (o == OUT_STUCK) *rows = 0;
  return o == OUT_STUCK && !r->lacks ? OUT_GO : o;
}

Outcome record_tree_leaves(Recorder *r, u32 op, const Av *params, Av *out) {
  AvVec leaves = {0};
  Av tree = av_force(r, params[0]), rows;
  (void)op;
  if (!tree) return OUT_FAIL;
  Outcome o = in_columns(r, tree, &rows);
  if (o == OUT_GO && rows && is_flat(r, rows)) return rec_made(r, rows, out);
  if (o == OUT_GO) o = rec_tree(r, tree, &tree);
  if (o == OUT_GO) o = rec_tree_leaves(r, tree, &leaves);
  if (o == OUT_GO) o = rec_made(r, av_list(r, leaves.data, leaves.count), out);
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

/* *acc = f(*acc, leaf) for the leaves of a tree, in order; *acc 0: the first leaf begins. */
Outcome record_fold_tree(Recorder *r, Av f, Av tree, Av *acc) {
  AvVec leaves = {0};
  Outcome o = rec_tree(r, tree, &tree);
  if (o == OUT_GO) o = rec_tree_leaves(r, tree, &leaves);
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++) {
    Av args[2] = {*acc, leaves.data[i]};
    if (!*acc) *acc = leaves.data[i];
    else o = rec_call(r, f, args, NULL, 2, acc);
  }
  vec_free(&r->vm->alloc, &leaves);
  if (o == OUT_GO && !*acc) return rec_stuck(r, REASON_raises, "tree_reduce: no leaves, and no init");
  return o;
}

static Outcome fold_columns(Recorder *r, Av f, Av tree, Av init, Av *out) {
  RecState state;
  RecMark mark = rec_mark(r);
  Av rows;
  if (!rec_save(r, &state)) return OUT_FAIL;
  Outcome o = in_columns(r, tree, &rows);
  if (o == OUT_GO) o = rows ? record_fold_rows(r, f, rows, init, out) : OUT_STUCK;
  rec_end_try(r, &mark, &state, o);
  return o;
}

Outcome record_tree_reduce(Recorder *r, u32 op, const Av *params, Av *out) {
  Av tree = av_force(r, params[1]);
  (void)op;
  Av init = params[2] ? av_force(r, params[2]) : 0;
  Value v;
  if (!tree || (params[2] && !init)) return OUT_FAIL;
  if (init && (av_is_hole(r, init) || (av_const_value(r, init, &v) && v.kind == V_NIL))) init = 0;
  Outcome o = init ? fold_columns(r, params[0], tree, init, out) : OUT_STUCK;
  if (o != OUT_STUCK || r->lacks) return o;
  *out = init;
  return record_fold_tree(r, params[0], tree, out);
}

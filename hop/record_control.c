/* record_control.c — cond, while_loop, fori_loop, scan, call in a trace: one node each, bodies as blocks.
 * A body that cannot be captured whole leaves the trace as it was, and the construct runs eagerly there. */
#include <string.h>

#include "hop/flow.h"
#include "hop/control.h"
#include "hop/deriv.h"
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_columns_use.h"

static bool is_given(Recorder *r, Av a) {
  Value v;
  if (!a || av_is_hole(r, av_force(r, a))) return false;
  return !(av_const_value(r, a, &v) && v.kind == V_NIL);
}

/* ---- leaves ------------------------------------------------------------------------------------------------ */

static Outcome values_of(Recorder *r, const AvVec *leaves, ValueVec *out) {
  Outcome o = OUT_GO;
  for (u32 i = 0; i < leaves->count && o == OUT_GO; i++) {
    ValueId v = av_value(r, leaves->data[i]);
    o = rec_strong(r, v);
    if (o == OUT_GO && !vec_push(&r->vm->alloc, out, v)) o = OUT_FAIL;
  }
  return o;
}

/* Of an opened tree. */
static Outcome leaf_values(Recorder *r, Av tree, ValueVec *out) {
  AvVec leaves = {0};
  Outcome o = rec_tree_leaves(r, tree, &leaves);
  if (o == OUT_GO) o = values_of(r, &leaves, out);
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

static Av with_values(Recorder *r, Av tree, const ValueId *values, u32 count) {
  AvVec leaves = {0};
  for (u32 i = 0; i < count; i++) {
    Av a = av_num(r, values[i]);
    if (!a || !vec_push(&r->vm->alloc, &leaves, a)) r->failed = true;
  }
  u32 next = 0;
  Av out = r->failed ? 0 : rec_tree_rebuild(r, tree, leaves.data, &next);
  vec_free(&r->vm->alloc, &leaves);
  return out;
}

/* Sizes that only happen to be equal are guarded to be so: the construct demands it. */
static bool same_shape(Recorder *r, const ArrayType *a, const ArrayType *b) {
  Graph *g = r->g;
  bool same = a->rank == b->rank && a->device == b->device;
  for (u32 d = 0; d < a->rank && same; d++) {
    i64 x, y;
    if (size_same(&g->sizes, a->dims[d], b->dims[d])) continue;
    same = size_hint(&g->sizes, a->dims[d], &x) && size_hint(&g->sizes, b->dims[d], &y) && x == y;
    if (same && !r->abstract)
      same = guard_relation(&g->guards, &g->sizes, REL_eq, a->dims[d], b->dims[d], "a construct", rec_here(r));
  }
  return same;
}

static Outcome differ(Recorder *r, const char *who, const ArrayType *a, const ArrayType *b) {
  char x[80], y[80];
  rule_shape_text(a, x, sizeof x);
  rule_shape_text(b, y, sizeof y);
  return rec_stuck(r, REASON_raises, "%s: %s%s and %s%s", who, dtype_name(a->dtype), x, dtype_name(b->dtype), y);
}

enum { STAYS_WEAK = 0x80 }; /* beside the dtype: the body gives a weak number */

/* A weak number that takes a dtype, at the end of the block it is needed in: an integer must fit it. */
static Outcome take_dtype(Recorder *r, ValueId *v, u32 dtype) {
  Value known;
  const ArrayType t = *value_type(r->g, *v);
  const bool may_not = t.weak && t.dtype == DT_i64 && dtype_kind(dtype) == DK_INT && dtype != DT_i64 &&
                       !value_const(r->g, *v, &known);
  if (may_not && r->safe_exit == UINT32_MAX)
    return rec_stuck(r, REASON_construct_body, "a check inside the body of a construct");
  Outcome o = rec_fit_weak(r, v, dtype);
  if (o == OUT_GO && !(*v = graph_convert(r->g, *v, dtype))) o = OUT_FAIL;
  return o;
}

static ValueId weak_still(Recorder *r, ValueId v, u8 dtype) {
  const bool integer = dtype_kind(dtype & ~(u32)STAYS_WEAK) <= DK_INT; /* of a weak bool */
  /* exact for what a weak integer holds below 2^53 */
  return graph_op2(r->g, OP_multiply, v, graph_const(r->g, integer ? value_weak_i64(1) : value_weak_f64(1.0)));
}

static Outcome weak_as(Recorder *r, ValueId *v, u8 dtype) {
  if (!(dtype & STAYS_WEAK)) return take_dtype(r, v, dtype);
  return (*v = weak_still(r, *v, dtype)) ? OUT_GO : OUT_FAIL;
}

/* ---- cond ---------------------------------------------------------------------------------------------------- */

Outcome record_construct_call(Recorder *r, u32 op, const Av *params, Av *out) {
  (void)op;
  const AbsVal *xs = av_at(r, params[1]);
  u32 n = xs->count;
  Av *args = rec_avs(r, n);
  if (!args) return OUT_FAIL;
  for (u32 i = 0; i < n; i++) args[i] = av_item(r, params[1], i);
  return rec_call(r, params[0], args, NULL, n, out);
}

/* An arm that is never taken, in place of a function: nothing of the types that the other gives. */
static Outcome cond_nothing(Recorder *r, const ValueVec *like, ValueVec *out) {
  Graph *g = r->g;
  for (u32 i = 0; i < like->count; i++) {
    const ArrayType t = *value_type(g, like->data[i]);
    for (u32 d = 0; d < t.rank; d++)
      if (size_is_unbacked(&g->sizes, t.dims[d]))
        return rec_stuck(r, REASON_data_dependent_shape, "an arm whose size is known only where it runs");
    ValueId v = flow_nothing(g, &t);
    if (!v || !vec_push(&r->vm->alloc, out, v)) return OUT_FAIL;
  }
  return OUT_GO;
}

/* Both functions into blocks of their own. `*again`: they write variables that were not in the set. Without a second
 * one the first is always called. */
static Outcome cond_once(Recorder *r, const Av *params, const Av *args, u32 n, ValueId cond, RecCellSet *cells,
                         bool *again, Av *out) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  Av results[2] = {0, 0};
  BlockId parent = g->at, blocks[2];
  ValueVec values[2] = {{0}, {0}};
  RecState base;
  if (!rec_save(r, &base)) return OUT_FAIL;
  Outcome o = rec_cells_save(r, cells) ? OUT_GO : OUT_FAIL;
  for (u32 k = 0; k < 2 && o == OUT_GO; k++) {
    rec_restore(r, &base);
    if (!(blocks[k] = graph_open(g))) o = OUT_FAIL;
    if (k && !params[2]) {
      results[1] = results[0];
      if (o == OUT_GO && !*again) o = cond_nothing(r, &values[0], &values[1]);
      graph_at_end(g, parent);
      break;
    }
    if (o == OUT_GO) o = rec_call(r, params[1 + k], args, NULL, n, &results[k]);
    if (o == OUT_GO) o = rec_tree(r, results[k], &results[k]);
    if (o == OUT_GO) o = rec_cells_grow(r, cells, again);
    if (o == OUT_GO && !*again && !(results[k] = rec_cells_with(r, cells, results[k]))) o = OUT_FAIL;
    if (o == OUT_GO) o = leaf_values(r, results[k], &values[k]);
    if (o == OUT_GO) graph_at_end(g, parent);
  }
  if (o == OUT_GO && *again) goto done;
  if (o == OUT_GO && !rec_tree_same(r, results[0], results[1]))
    o = rec_stuck(r, REASON_raises, "cond: the functions give %s and %s", av_kind_text(r, results[0]),
                  av_kind_text(r, results[1]));
  for (u32 i = 0; i < values[0].count && o == OUT_GO; i++) { /* a weak result takes the other's dtype */
    const ArrayType a = *value_type(g, values[0].data[i]), b = *value_type(g, values[1].data[i]);
    ValueId of_a = rec_weak_flag(r, values[0].data[i]), of_b = rec_weak_flag(r, values[1].data[i]);
    if (!same_shape(r, &a, &b)) o = differ(r, "cond", &a, &b);
    else if ((of_a && (b.weak || of_b)) || (of_b && a.weak))
      o = rec_stuck(r, REASON_branch_merge, "a number is weak on one way only");
    else if (a.dtype == b.dtype && a.weak == b.weak) continue;
    else if (a.weak && dtype_kind(a.dtype) <= dtype_kind(b.dtype)) {
      graph_at_end(g, blocks[0]);
      o = weak_as(r, &values[0].data[i], (u8)(b.dtype | (b.weak ? STAYS_WEAK : 0)));
    } else if (b.weak && dtype_kind(b.dtype) <= dtype_kind(a.dtype)) {
      graph_at_end(g, blocks[1]);
      o = weak_as(r, &values[1].data[i], (u8)(a.dtype | (a.weak ? STAYS_WEAK : 0)));
    } else {
      o = differ(r, "cond", &a, &b);
    }
  }
  for (u32 k = 0; k < 2 && o == OUT_GO; k++) {
    graph_at_end(g, blocks[k]);
    if (!graph_close(g, TERM_yield, values[k].data, values[k].count, 0)) o = OUT_FAIL;
    graph_at_end(g, parent);
  }
  if (o == OUT_GO) {
    rec_restore(r, &base);
    NodeId node = graph_cond(g, cond, blocks[0], blocks[1]);
    for (u32 i = 0; node && i < values[0].count; i++) values[0].data[i] = node_result(g, node, i);
    Av both = node ? with_values(r, results[0], values[0].data, values[0].count) : 0;
    o = both ? rec_cells_take(r, cells, both, out) : OUT_FAIL;
    r->vm->counters.at[STAT_constructs]++;
  }
done:
  rec_state_free(r, &base);
  vec_free(alloc, &values[0]);
  vec_free(alloc, &values[1]);
  return o;
}

enum { BODY_TRIES = 6 };

Outcome record_cond(Recorder *r, u32 op, const Av *params, Av *out) {
  (void)op;
  Graph *g = r->g;
  u32 n = av_at(r, params[3])->count;
  Av *args = rec_avs(r, n), p = av_force(r, params[0]);
  if (!p || !args) return OUT_FAIL;
  for (u32 i = 0; i < n; i++) args[i] = av_item(r, params[3], i);
  ValueId cond = av_value(r, p);
  if (!cond || value_type(g, cond)->rank || value_type(g, cond)->dtype != DT_bool)
    return rec_stuck(r, REASON_raises, "cond: p must be a bool of rank 0");
  /* A known predicate is no other case: what the functions give must agree, and graph_simplify takes the arm that is
   * not taken out. */
  RecCellSet cells = {0};
  Outcome o = OUT_GO;
  for (u32 try = 0; o == OUT_GO; try++) {
    if (try == BODY_TRIES) o = rec_stuck(r, REASON_construct_body, "functions of cond that write many variables");
    if (o == OUT_GO) o = rec_cells_find(r, &cells);
    if (o != OUT_GO) break;
    RecMark mark = rec_mark(r);
    RecState state;
    bool again = false;
    if (!rec_save(r, &state)) {
      o = OUT_FAIL;
      break;
    }
    o = cond_once(r, params, args, n, cond, &cells, &again, out);
    if (o == OUT_GO && again) {
      rec_rollback(r, &mark);
      rec_restore(r, &state);
    }
    rec_state_free(r, &state);
    if (!again) break;
  }
  rec_cells_free(r, &cells);
  return o;
}

/* ---- loops ---------------------------------------------------------------------------------------------------- */

typedef VEC(u8) DTypeVec;

typedef struct Carry {
  ValueVec init;
  VEC(TypeId) types;
} Carry;

static Outcome carry_types(Recorder *r, Carry *c) {
  c->types.count = 0;
  for (u32 i = 0; i < c->init.count; i++)
    if (!vec_push(&r->vm->alloc, &c->types, r->g->values.data[c->init.data[i]].type)) return OUT_FAIL;
  return OUT_GO;
}

static Av carry_params(Recorder *r, BlockId b, Av tree, const Carry *c) {
  ValueVec params = {0};
  for (u32 i = 0; i < c->types.count; i++)
    if (!vec_push(&r->vm->alloc, &params, graph_param(r->g, b, c->types.data[i]))) r->failed = true;
  Av a = r->failed ? 0 : with_values(r, tree, params.data, params.count);
  vec_free(&r->vm->alloc, &params);
  return a;
}

/* The state that the body gave, against the one it got. `*again`: weak initial numbers were given the body's dtype,
 * record the body once more. */
static Outcome carry_next(Recorder *r, const char *who, Av before, Av after, Carry *c, ValueVec *next, bool *again) {
  if (!rec_tree_same(r, before, after))
    return rec_stuck(r, REASON_raises, "%s: the body gives %s of another structure than the state", who,
                     av_kind_text(r, after));
  Outcome o = leaf_values(r, after, next);
  for (u32 i = 0; i < next->count && o == OUT_GO; i++) {
    const ArrayType a = *type_of(r->g, c->types.data[i]), b = *value_type(r->g, next->data[i]);
    if (!same_shape(r, &a, &b)) return differ(r, who, &a, &b);
    if (a.dtype == b.dtype && a.weak == b.weak) continue;
    if (a.weak && dtype_kind(a.dtype) <= dtype_kind(b.dtype)) {
      *again = true;
      continue;
    }
    if (!b.weak || dtype_kind(b.dtype) > dtype_kind(a.dtype)) return differ(r, who, &a, &b);
    o = take_dtype(r, &next->data[i], a.dtype);
    if (o == OUT_GO && a.weak) next->data[i] = graph_weaken(r->g, next->data[i]);
  }
  return o;
}

static void carry_free(Recorder *r, Carry *c) {
  vec_free(&r->vm->alloc, &c->init);
  vec_free(&r->vm->alloc, &c->types);
}

/* Weak leaves of the initial state as the dtype that the body gave. */
static Outcome strengthen(Recorder *r, Carry *c, const DTypeVec *dtypes) {
  Outcome o = OUT_GO;
  for (u32 i = 0; i < c->init.count && i < dtypes->count && o == OUT_GO; i++)
    if (dtypes->data[i] && value_type(r->g, c->init.data[i])->weak) o = weak_as(r, &c->init.data[i], dtypes->data[i]);
  return o;
}

typedef struct MapSpec {
  Av f, seq;  /* a range, or rows */
  /* not 0: f is for the leaves of an item, tree_map of so many trees; of several, an item is a list of one of each */
  u32 trees;
  Value kind; /* of what f gives */
  bool *characters; /* is it single characters alone? */
} MapSpec;

typedef struct FoldSpec { /* state = f(state, leaf) for the leaves of each item, in order */
  Av f, rows;
} FoldSpec;

typedef struct LoopSpec {
  const char *who;
  Av test, body;  /* functions; test 0: counts */
  const MapSpec *map; /* in place of a body; the state is columns */
  const FoldSpec *fold; /* in place of a body; the state keeps its types as they are */
  Av tree;        /* state; counted and bounded loops: the list (i, state) */
  ValueId bound;  /* counted: hi; bounded: max_steps */
  bool counted;   /* by the number in front of the state alone */
  bool bounded;   /* by that number as well as by the test */
  RecCellSet *cells; /* carried behind the state */
} LoopSpec;

/* A call that is made at each trip. */
static Outcome call_again(Recorder *r, Av f, const Av *args, u32 n, Av *out) {
  r->repeats++;
  Outcome o = rec_call(r, f, args, NULL, n, out);
  r->repeats--;
  return o;
}

static Outcome map_item(Recorder *r, const MapSpec *m, Av at, Av *out) {
  Av item;
  Outcome o = rec_at(r, m->seq, at, &item);
  if (o != OUT_GO || !m->trees) return o == OUT_GO ? call_again(r, m->f, &item, 1, out) : o;
  AvVec trees = {0};
  if (m->trees > 1 && (!av_is_list(r, item) || av_at(r, item)->count != m->trees)) return OUT_FAIL;
  for (u32 i = 0; i < m->trees; i++)
    if (!vec_push(&r->vm->alloc, &trees, m->trees == 1 ? item : av_item(r, item, i))) o = OUT_FAIL;
  r->repeats++;
  if (o == OUT_GO) o = record_map_trees(r, m->f, trees.data, m->trees, out);
  r->repeats--;
  vec_free(&r->vm->alloc, &trees);
  return o;
}

/* args: the number of the item, the state. */
static Outcome fold_step(Recorder *r, const FoldSpec *s, const Av *args, Av *out) {
  Av item, acc = args[1];
  Outcome o = rec_rows_item(r, s->rows, args[0], &item);
  r->repeats++;
  if (o == OUT_GO) o = record_fold_tree(r, s->f, item, &acc);
  r->repeats--;
  return o == OUT_GO ? rec_tree(r, acc, out) : o;
}

/* args: the number of the item, the columns. */
static Outcome map_step(Recorder *r, const MapSpec *m, const Av *args, Av *out) {
  Av y;
  Outcome o = map_item(r, m, args[0], &y);
  *m->characters = o == OUT_GO && rec_is_one(r, y);
  return o == OUT_GO ? rec_rows_put(r, args[1], m->kind, av_value(r, args[0]), y, 0, out) : o;
}

static Outcome record_loop_once(Recorder *r, const LoopSpec *s, Carry *c, DTypeVec *dtypes, bool *again, Av *out) {
  Graph *g = r->g;
  ValueVec next = {0};
  Av state, result = 0;
  ValueId more = 0;
  Outcome o = carry_types(r, c);
  BlockId cond = o == OUT_GO ? graph_open(g) : 0;
  if (!cond || !(state = carry_params(r, cond, s->tree, c))) return OUT_FAIL;
  state = rec_cells_enter(r, s->cells, state);
  if (!rec_cells_save(r, s->cells)) return OUT_FAIL;
  if (s->counted) {
    Av less, hi = av_num(r, s->bound);
    o = rec_binary(r, BC_lt, av_item(r, state, 0), hi, &less);
    more = o == OUT_GO ? av_value(r, less) : 0;
  } else {
    Av inner = s->bounded ? av_item(r, state, 1) : state;
    o = call_again(r, s->test, &inner, 1, &result);
    more = o == OUT_GO ? av_value(r, result) : 0;
    if (o == OUT_GO && (!more || value_type(g, more)->rank || value_type(g, more)->dtype != DT_bool))
      o = rec_stuck(r, REASON_raises, "%s: the condition must be a bool of rank 0", s->who);
  }
  if (o == OUT_GO && s->bounded) {
    Av less, hi = av_num(r, s->bound);
    o = rec_binary(r, BC_lt, av_item(r, state, 0), hi, &less);
    if (o == OUT_GO && !(more = graph_op2(g, OP_logical_and, more, av_value(r, less)))) o = OUT_FAIL;
  }
  if (o == OUT_GO) o = rec_cells_none(r, s->cells, s->who);
  if (o == OUT_GO && !graph_close(g, TERM_yield, &more, 1, 0)) o = OUT_FAIL;
  BlockId body = o == OUT_GO ? graph_open(g) : 0;
  if (o != OUT_GO) return o;
  if (!body || !(state = carry_params(r, body, s->tree, c))) return OUT_FAIL;
  state = rec_cells_enter(r, s->cells, state);
  if (!rec_cells_save(r, s->cells)) return OUT_FAIL;
  if (s->counted || s->bounded) {
    Av args[2] = {av_item(r, state, 0), av_item(r, state, 1)}, step = 0, one = av_const(r, value_weak_i64(1));
    if (s->map) o = map_step(r, s->map, args, &result);
    else if (s->fold) o = fold_step(r, s->fold, args, &result);
    else o = s->counted ? call_again(r, s->body, args, 2, &result) : call_again(r, s->body, &args[1], 1, &result);
    if (o == OUT_GO) o = rec_binary(r, BC_add, args[0], one, &step);
    if (o == OUT_GO && !s->map) o = rec_tree(r, result, &result);
    Av pair[2] = {step, result};
    if (o == OUT_GO && !(result = av_list(r, pair, 2))) o = OUT_FAIL;
  } else {
    o = call_again(r, s->body, &state, 1, &result);
    if (o == OUT_GO) o = rec_tree(r, result, &result);
  }
  bool grown = false;
  if (o == OUT_GO) o = rec_cells_grow(r, s->cells, &grown);
  if (o == OUT_GO && grown) {
    *again = true;
    return OUT_GO;
  }
  if (o == OUT_GO && !(result = rec_cells_with(r, s->cells, result))) o = OUT_FAIL;
  if (o == OUT_GO) o = carry_next(r, s->who, s->tree, result, c, &next, again);
  if (o == OUT_GO && *again) {
    dtypes->count = 0;
    for (u32 i = 0; i < next.count && o == OUT_GO; i++) {
      const ArrayType *a = type_of(g, c->types.data[i]), *b = value_type(g, next.data[i]);
      bool changes = a->weak && (a->dtype != b->dtype || !b->weak);
      u8 dtype = (u8)(b->dtype | (b->weak ? STAYS_WEAK : 0));
      if (!vec_push(&r->vm->alloc, dtypes, changes ? dtype : 0)) o = OUT_FAIL;
    }
  } else if (o == OUT_GO) {
    if (!graph_close(g, TERM_next, next.data, next.count, 0)) o = OUT_FAIL;
    NodeId node = o == OUT_GO ? graph_while(g, c->init.data, c->init.count, cond, body) : 0;
    for (u32 i = 0; node && i < next.count; i++) next.data[i] = node_result(g, node, i);
    o = node ? rec_made(r, with_values(r, s->tree, next.data, next.count), out) : OUT_FAIL;
  }
  vec_free(&r->vm->alloc, &next);
  return o;
}

/* The cells of the set that are new since the last try go behind the state: their values are leaves of it. */
static Outcome carry_cells(Recorder *r, RecCellSet *cells, u32 *known, Av tree, Av *both, Carry *c) {
  AvVec leaves = {0};
  Outcome o = rec_cells_find(r, cells);
  for (; *known < cells->count && o == OUT_GO; ++*known)
    if (!rec_cell_leaves(r, cells->cells[*known], &leaves)) o = OUT_FAIL;
  if (o == OUT_GO) o = values_of(r, &leaves, &c->init);
  vec_free(&r->vm->alloc, &leaves);
  if (o == OUT_GO && !(*both = rec_cells_with(r, cells, tree))) o = OUT_FAIL;
  return o;
}

static Outcome record_loop(Recorder *r, const LoopSpec *given, Av *out) {
  if (r->g->at != 1 && !MECHANISM(r->vm, nested_bodies))
    return rec_stuck(r, REASON_construct_body, "a construct inside another");
  Carry c = {0};
  DTypeVec dtypes = {0};
  RecCellSet cells = {0};
  LoopSpec s = *given;
  u32 known = 0;
  s.cells = &cells;
  Outcome o = leaf_values(r, given->tree, &c.init);
  for (u32 try = 0; try < BODY_TRIES && o == OUT_GO; try++) {
    if ((o = carry_cells(r, &cells, &known, given->tree, &s.tree, &c)) != OUT_GO) break;
    RecMark mark = rec_mark(r);
    RecState state;
    bool again = false;
    if (!rec_save(r, &state)) {
      o = OUT_FAIL;
      break;
    }
    Av both = 0;
    dtypes.count = 0;
    o = record_loop_once(r, &s, &c, &dtypes, &again, &both);
    u16 reason = r->reason;
    if (o == OUT_STUCK || (o == OUT_GO && again)) rec_rollback(r, &mark);
    if (o != OUT_FAIL) rec_restore(r, &state);
    r->reason = reason;
    rec_state_free(r, &state);
    if (o == OUT_GO && !again) {
      o = rec_cells_take(r, &cells, both, out);
      r->vm->counters.at[STAT_constructs]++;
      break;
    }
    if (o == OUT_GO && dtypes.count && s.fold)
      o = rec_stuck(r, REASON_loop_types, "tree_reduce whose result does not keep its type");
    if (o == OUT_GO) o = strengthen(r, &c, &dtypes);
    if (o == OUT_GO && try + 1 == BODY_TRIES)
      o = rec_stuck(r, REASON_raises, "%s: the state does not keep its types", s.who);
  }
  rec_cells_free(r, &cells);
  vec_free(&r->vm->alloc, &dtypes);
  carry_free(r, &c);
  return o;
}

Outcome record_while_loop(Recorder *r, u32 op, const Av *params, Av *out) {
  (void)op;
  LoopSpec s = {.who = "while_loop", .test = params[0], .body = params[1]};
  Outcome opened = rec_tree(r, params[2], &s.tree);
  if (opened != OUT_GO) return opened;
  if (!is_given(r, params[3])) return record_loop(r, &s, out);
  const ArrayType *t = (s.bound = av_value(r, params[3])) ? value_type(r->g, s.bound) : NULL;
  if (!t || t->rank || dtype_kind(t->dtype) != DK_INT)
    return rec_stuck(r, REASON_raises, "while_loop: max_steps must be an integer");
  i64 known;
  if (av_known_int(r, params[3], &known)) {
    if (known < 0) return rec_stuck(r, REASON_raises, "while_loop: max_steps is negative");
  } else {
    Outcome o = rec_check(r, CHECK_nonneg, &s.bound, 1);
    if (o != OUT_GO) return o;
  }
  Av both, pair[2] = {av_const(r, value_weak_i64(0)), s.tree};
  s.bounded = true;
  if (!pair[0] || !(s.tree = av_list(r, pair, 2))) return OUT_FAIL;
  Outcome o = record_loop(r, &s, &both);
  return o == OUT_GO ? rec_made(r, av_item(r, both, 1), out) : o;
}

Outcome record_fori_loop(Recorder *r, u32 op, const Av *params, Av *out) {
  (void)op;
  for (u32 i = 0; i < 2; i++) {
    ValueId v = av_value(r, params[i]);
    if (!v || value_type(r->g, v)->rank || dtype_kind(value_type(r->g, v)->dtype) != DK_INT)
      return rec_stuck(r, REASON_raises, "fori_loop: the bounds must be integers");
  }
  /* the index is a weak i64, whatever lo was */
  ValueId lo = av_value(r, params[0]);
  Dim d;
  Value known;
  Av first;
  if (av_const_value(r, params[0], &known)) first = av_const(r, value_weak_i64(known.i));
  else if (value_dim(r->g, lo, &d) && d != DIM_NONE) first = av_num(r, graph_size(r->g, d));
  else if (value_type(r->g, lo)->weak && value_type(r->g, lo)->dtype == DT_i64) first = params[0];
  else return rec_stuck(r, REASON_no_rule, "fori_loop with a computed lower bound");
  Av pair[2] = {first, 0};
  Outcome o = rec_tree(r, params[3], &pair[1]);
  if (o != OUT_GO) return o;
  LoopSpec s = {.who = "fori_loop", .body = params[2], .tree = av_list(r, pair, 2),
                .bound = av_value(r, params[1]), .counted = true};
  Av both;
  if (!s.tree) return OUT_FAIL;
  o = record_loop(r, &s, &both);
  return o == OUT_GO ? rec_made(r, av_item(r, both, 1), out) : o;
}

/* What f gives for an item, found by recording a call of it that is taken back; *kind is kept by the recorder. */
static Outcome map_kind(Recorder *r, MapSpec *m) {
  Graph *g = r->g;
  RecMark mark = rec_mark(r);
  RecState state;
  Value kind;
  Av y;
  if (!rec_save(r, &state)) return OUT_FAIL;
  const ArrayType index = {.dtype = DT_i64, .weak = true};
  BlockId b = graph_open(g);
  ValueId at = b ? graph_param(g, b, graph_type(g, &index)) : 0;
  Outcome o = at ? map_item(r, m, av_num(r, at), &y) : OUT_FAIL;
  bool found = o == OUT_GO && rec_kind_of(r, y, &kind);
  if (o == OUT_GO && !found)
    o = r->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "map of a function that gives %s", av_kind_text(r, y));
  if (found) (void)value_keep(kind);
  u16 reason = r->reason;
  if (o != OUT_FAIL) {
    rec_rollback(r, &mark);
    rec_restore(r, &state);
  }
  r->reason = reason;
  rec_state_free(r, &state);
  if (!found) return o;
  if (!av_const(r, m->kind = kind)) o = OUT_FAIL;
  value_drop(r->vm, kind);
  return o;
}

/* A loop over a sequence of `count` items that puts what f gives into columns. */
static Outcome map_into_columns(Recorder *r, MapSpec *m, Av count, Av *out) {
  Av both, pair[2] = {av_const(r, value_weak_i64(0)), 0};
  Dim n, room;
  bool characters = false;
  m->characters = &characters;
  Outcome o = rec_size(r, count, &n);
  if (o == OUT_GO) o = map_kind(r, m);
  if (o != OUT_GO) return o;
  if ((room = size_add(&r->g->sizes, size_mul(&r->g->sizes, n, 2), ROWS_ROOM)) == DIM_NONE)
    return rec_stuck(r, REASON_size_expression, "the length of a list");
  pair[1] = rec_columns_new(r, m->kind, room);
  LoopSpec s = {.who = m->trees ? "tree_map" : "map", .map = m, .bound = av_value(r, count), .counted = true};
  if (!pair[0] || !pair[1] || !(s.tree = av_list(r, pair, 2))) return OUT_FAIL;
  o = record_loop(r, &s, &both);
  if (o == OUT_GO) o = rec_made(r, rec_new_rows(r, av_item(r, both, 1), count, m->kind), out);
  if (o == OUT_GO && rec_is_name(m->kind) && characters) av_at(r, *out)->op = ROWS_CHARACTERS;
  return o;
}

/* Over a sequence that is long, or of no known length. */
Outcome record_map(Recorder *r, u32 op, const Av *params, Av *out) {
  (void)op;
  if (r->abstract || r->differentiating) return OUT_STUCK;
  MapSpec m = {.f = params[0], .seq = params[1]};
  Av count;
  Outcome o = OUT_GO;
  if (av_is_range(r, m.seq)) o = rec_length(r, m.seq, &count);
  else if ((o = rec_rows_of(r, params[1], NULL, &m.seq)) == OUT_GO) count = av_item(r, m.seq, 1);
  if (o == OUT_GO && rec_is_text(r, m.seq) && !MECHANISM(r->vm, texts_mapped)) o = OUT_STUCK;
  return o == OUT_GO ? map_into_columns(r, &m, count, out) : o;
}

Outcome record_map_rows(Recorder *r, Av f, Av rows, u32 trees, Av *out) {
  if (r->abstract || r->differentiating)
    return rec_stuck(r, REASON_data_dependent_shape, "the derivative of tree_map over a list of no known length");
  MapSpec m = {.f = f, .seq = rows, .trees = trees};
  return map_into_columns(r, &m, av_item(r, rows, 1), out);
}

/* The first item is folded in before the loop, so that the state has the type that it keeps. An empty list is left to
 * the interpreter. */
Outcome record_fold_rows(Recorder *r, Av f, Av rows, Av init, Av *out) {
  if (r->abstract || r->differentiating)
    return rec_stuck(r, REASON_data_dependent_shape, "the derivative of tree_reduce over a list of no known length");
  FoldSpec fold = {f, rows};
  Av count = av_item(r, rows, 1), zero = av_const(r, value_weak_i64(0)), one = av_const(r, value_weak_i64(1)), some,
      both, first[2] = {zero, init}, pair[2] = {one, 0};
  Dim n;
  if (!zero || !one) return OUT_FAIL;
  Outcome o = rec_size(r, count, &n);
  if (o == OUT_GO) o = rec_binary(r, BC_gt, count, zero, &some);
  if (o != OUT_GO) return o;
  ValueId is = rec_strengthen(r, av_value(r, some), DT_bool);
  if (!is || (o = rec_check(r, CHECK_assertion, &is, 1)) != OUT_GO) return is ? o : OUT_FAIL;
  if ((o = fold_step(r, &fold, first, &pair[1])) != OUT_GO) return o;
  LoopSpec s = {.who = "tree_reduce", .fold = &fold, .tree = av_list(r, pair, 2), .bound = av_value(r, count),
                .counted = true};
  if (!s.tree) return OUT_FAIL;
  o = record_loop(r, &s, &both);
  return o == OUT_GO ? rec_made(r, av_item(r, both, 1), out) : o;
}

/* ---- scan -------------------------------------------------------------------------------------------------------- */

static bool flag_of(Recorder *r, Av a, bool *out) {
  Value v;
  *out = false;
  if (!a || av_is_hole(r, av_force(r, a))) return true;
  if (!av_const_value(r, a, &v) || v.kind != V_NUM || v.dtype != DT_bool) return false;
  *out = v.i != 0;
  return true;
}

/* Under a derivative, floats as values of their own (see tape_fresh). */
static bool fresh(Recorder *r, ValueId *values, u32 n) {
  for (u32 i = 0; i < n && r->differentiating; i++) {
    if (!deriv_dtype(value_type(r->g, values[i])->dtype)) continue;
    ValueId flag = rec_weak_flag(r, values[i]);
    if (!(values[i] = graph_op1(r->g, OP_positive, values[i])) || (flag && !rec_weak_note(r, values[i], flag)))
      return false;
  }
  return true;
}

/* Where numbers lie that are stacked: where xs do, or the state. */
static u32 scan_device(const Graph *g, const ValueVec *xs, const ValueVec *state) {
  for (u32 i = 0; i < xs->count; i++)
    if (value_type(g, xs->data[i])->device) return value_type(g, xs->data[i])->device;
  for (u32 i = 0; i < state->count; i++)
    if (value_type(g, state->data[i])->device) return value_type(g, state->data[i])->device;
  return DEV_CPU;
}

Outcome record_scan(Recorder *r, u32 op, const Av *params, Av *out) {
  (void)op;
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  bool reverse;
  i64 axis = 0;
  if (!flag_of(r, params[4], &reverse)) return rec_stuck(r, REASON_literal_needed, "scan: `reverse` must be known");
  if (is_given(r, params[5]) && !rec_literal(r, params[5], "scan", &axis))
    return rec_stuck(r, REASON_literal_needed, "scan: `axis` must be known");
  Av tree = 0, xs = 0;
  Carry c = {0};
  ValueVec items = {0};
  Dim length = DIM_NONE;
  Outcome o = rec_tree(r, params[1], &tree);
  if (o == OUT_GO && is_given(r, params[2])) o = rec_tree(r, params[2], &xs);
  if (o == OUT_GO) o = leaf_values(r, tree, &c.init);
  const u32 own = c.init.count; /* of the state, before variables that the body writes */
  if (o == OUT_GO && xs) o = leaf_values(r, xs, &items);
  if (o == OUT_GO && is_given(r, params[3])) o = rec_size(r, params[3], &length);
  for (u32 i = 0; i < items.count && o == OUT_GO; i++) {
    const ArrayType *t = value_type(g, items.data[i]);
    i64 at = axis < 0 ? axis + t->rank : axis;
    if (at < 0 || at >= t->rank) {
      o = rec_stuck(r, REASON_raises, "scan: axis out of range");
      break;
    }
    if (at != 0) {
      GraphAttr attrs[2] = {attr_int(1, at), attr_int(2, 0)};
      RuleError err;
      items.data[i] = graph_op(g, OP_moveaxis, &items.data[i], 1, attrs, 2, &err);
      if (!items.data[i]) {
        o = OUT_FAIL;
        break;
      }
    }
    Dim n = value_type(g, items.data[i])->dims[0];
    if (length == DIM_NONE) length = n;
    else if (!size_same(&g->sizes, length, n)) {
      i64 x, y;
      Span at_span = rec_here(r);
      if (!size_hint(&g->sizes, length, &x) || !size_hint(&g->sizes, n, &y) || x != y)
        o = rec_stuck(r, REASON_raises, "scan: lengths differ");
      else if (!guard_relation(&g->guards, &g->sizes, REL_eq, length, n, "scan", at_span)) o = OUT_FAIL;
    }
  }
  if (o == OUT_GO && length == DIM_NONE)
    o = rec_stuck(r, REASON_raises, "scan: without xs it needs a length");
  RecCellSet cells = {0};
  u32 known = 0;
  const Av given = tree;
  for (u32 try = 0; try < BODY_TRIES && o == OUT_GO; try++) {
    if ((o = carry_cells(r, &cells, &known, given, &tree, &c)) != OUT_GO) break;
    RecMark mark = rec_mark(r);
    RecState state;
    bool again = false, grown = false;
    if (!rec_save(r, &state)) {
      o = OUT_FAIL;
      break;
    }
    ValueVec params_x = {0}, next = {0};
    DTypeVec dtypes = {0};
    Av carry = 0, item = 0, result = 0;
    o = carry_types(r, &c);
    BlockId body = o == OUT_GO ? graph_open(g) : 0;
    if (!body || !(carry = carry_params(r, body, tree, &c))) o = OUT_FAIL;
    if (o == OUT_GO) carry = rec_cells_enter(r, &cells, carry);
    if (o == OUT_GO && !rec_cells_save(r, &cells)) o = OUT_FAIL;
    for (u32 i = 0; i < items.count && o == OUT_GO; i++) {
      ArrayType t = *value_type(g, items.data[i]);
      t.rank--;
      t.weak = false;
      memmove(t.dims, t.dims + 1, t.rank * sizeof t.dims[0]);
      if (!vec_push(alloc, &params_x, graph_param(g, body, graph_type(g, &t)))) o = OUT_FAIL;
    }
    if (o == OUT_GO) item = xs ? with_values(r, xs, params_x.data, params_x.count) : av_const(r, value_nil());
    Av args[2] = {carry, item};
    const u32 since = r->avs.count;
    if (o == OUT_GO) o = item ? rec_call(r, params[0], args, NULL, 2, &result) : OUT_FAIL;
    if (o == OUT_GO) o = rec_tree(r, result, &result);
    if (o == OUT_GO) {
      if (!av_is_list(r, result) || av_at(r, result)->count != 2)
        o = rec_stuck(r, REASON_raises, "scan: f must give a list (carry, y)");
    }
    if (o == OUT_GO) o = rec_cells_grow(r, &cells, &grown);
    Av after = o == OUT_GO && !grown ? rec_cells_with(r, &cells, av_item(r, result, 0)) : 0;
    if (o == OUT_GO && !grown) o = after ? carry_next(r, "scan", tree, after, &c, &next, &again) : OUT_FAIL;
    again |= grown;
    if (o == OUT_GO && again) {
      for (u32 i = 0; i < next.count && o == OUT_GO; i++) {
        const ArrayType *a = type_of(g, c.types.data[i]), *b = value_type(g, next.data[i]);
        u8 dtype = a->weak && (a->dtype != b->dtype || !b->weak) ? (u8)(b->dtype | (b->weak ? STAYS_WEAK : 0)) : 0;
        if (!vec_push(alloc, &dtypes, dtype)) o = OUT_FAIL;
      }
    } else if (o == OUT_GO) {
      u32 carried = next.count;
      Av y = av_force(r, av_item(r, result, 1));
      o = y ? rec_tree_leave(r, y, body, since, NULL, NULL, &y) : OUT_FAIL;
      if (o == OUT_GO) o = leaf_values(r, y, &next);
      for (u32 i = carried; i < next.count; i++) { /* stacked arrays are strong */
        const ArrayType *t = value_type(g, next.data[i]);
        if (t->weak) next.data[i] = graph_convert(g, next.data[i], t->dtype);
      }
      if (o == OUT_GO && !(fresh(r, next.data, own) && graph_close(g, TERM_next, next.data, next.count, 0) &&
                           fresh(r, c.init.data, own)))
        o = OUT_FAIL;
      NodeId node = o == OUT_GO ? graph_scan(g, c.init.data, c.init.count, items.data, items.count, length, reverse,
                                             false, body) : 0;
      for (u32 i = 0; node && i < next.count && o == OUT_GO; i++) {
        next.data[i] = node_result(g, node, i);
        if (rec_inner_size(r, next.data[i]))
          o = rec_stuck(r, REASON_data_dependent_shape, "scan: items whose sizes may differ");
      }
      Av pair[2] = {0, 0};
      if (node && o == OUT_GO) {
        const u32 device = scan_device(g, &items, &c.init);
        for (u32 i = carried; i < next.count && o == OUT_GO; i++)
          if (value_type(g, next.data[i])->rank == 1 && !(next.data[i] = graph_moved(g, next.data[i], device)))
            o = OUT_FAIL;
      }
      if (node && o == OUT_GO) {
        pair[0] = with_values(r, tree, next.data, carried);
        pair[1] = with_values(r, y, next.data + carried, next.count - carried);
      }
      if (o == OUT_GO && (!pair[0] || !pair[1])) o = OUT_FAIL;
      if (o == OUT_GO) {
        rec_restore(r, &state);
        o = rec_cells_take(r, &cells, pair[0], &pair[0]);
      }
      if (o == OUT_GO) o = rec_made(r, av_list(r, pair, 2), out);
      r->vm->counters.at[STAT_constructs]++;
    }
    vec_free(alloc, &params_x);
    vec_free(alloc, &next);
    if (o == OUT_FAIL || (o == OUT_GO && !again)) {
      vec_free(alloc, &dtypes);
      rec_state_free(r, &state);
      break;
    }
    u16 reason = r->reason;
    rec_rollback(r, &mark);
    rec_restore(r, &state);
    rec_state_free(r, &state);
    r->reason = reason;
    if (o == OUT_GO) o = strengthen(r, &c, &dtypes);
    vec_free(alloc, &dtypes);
    if (o == OUT_GO && try + 1 == BODY_TRIES)
      o = rec_stuck(r, REASON_raises, "scan: the carry does not keep its types");
  }
  rec_cells_free(r, &cells);
  carry_free(r, &c);
  vec_free(alloc, &items);
  return o;
}

/* record_weak.c — numbers that are weak on one way and strong on another: a branch may give 0.0 here and x[i] there.
 *
 * In the graph such a value is strong, and a bool says whether it is weak. Operations in which that makes no
 * difference take it as it is, and what they give is weak when all they took was; an exit hands it on as what it is.
 * Where it does make a difference, a check asks that it be strong. */
#include "lang/mechanisms.h"
#include "tracer/record/record.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"

ValueId rec_weak_flag(const Recorder *r, ValueId v) {
  for (u32 i = r->weaks.count; i-- > 0;)
    if (r->weaks.data[i].value == v) return r->weaks.data[i].flag;
  return 0;
}

/* What is known of a flag; NULL: it is a bool like others. */
static const RecWeak *of_first_trip(const Recorder *r, ValueId flag) {
  for (u32 i = r->weaks.count; flag && i-- > 0;)
    if (r->weaks.data[i].flag == flag && r->weaks.data[i].position) return &r->weaks.data[i];
  return NULL;
}

bool rec_weak_note(Recorder *r, ValueId v, ValueId flag) {
  const RecWeak *same = of_first_trip(r, flag);
  RecWeak x = same ? *same : (RecWeak){.flag = flag};
  x.value = v;
  if (!v || !flag || !vec_push(&r->vm->alloc, &r->weaks, x)) r->failed = true;
  return !r->failed;
}

bool rec_weak_first(Recorder *r, RecLoop *l, ValueId v, ValueId position, ValueId before) {
  ValueId flag = 0;
  for (u32 i = r->weaks.count; i-- > 0 && !flag;) /* one flag for all that are so */
    if (r->weaks.data[i].position == position && r->weaks.data[i].before == before) flag = r->weaks.data[i].flag;
  if (flag) return rec_weak_note(r, v, flag);
  /* a bool as other flags are: of two weak ones it would be weak */
  flag = graph_op2(r->g, OP_equal, position, graph_const(r->g, value_i64(0)));
  if (before && flag) flag = graph_op2(r->g, OP_logical_and, flag, before);
  if (!flag || !vec_push(&r->vm->alloc, &r->weaks, (RecWeak){v, flag, position, before, l})) r->failed = true;
  return !r->failed;
}

bool rec_weak_peel(Recorder *r, ValueId flag) {
  const RecWeak *x = of_first_trip(r, flag);
  RecLoop *l = x ? r->loop : NULL;
  while (l && l != x->loop) l = l->outer;
  if (!l) return false;
  for (u32 i = 0; i < l->weak.count; i++)
    if (l->weak.data[i] == CARRY_first) l->weak.data[i] = CARRY_not_first;
  r->widens = l;
  return true;
}

enum { WEAK_DEPTH = 8 }; /* not a threshold: loops in each other; more are told by their flag */

RecipeId rec_weak_recipe(Recorder *r, ValueId v) {
  ExitTable *t = &r->g->exits;
  RecipeId ids[WEAK_DEPTH + 2];
  u32 n = 0;
  ids[n++] = recipe_value(t, v);
  if (!r->weaks.count) return ids[0];
  ValueId flag = rec_weak_flag(r, v);
  for (const RecWeak *x; n <= WEAK_DEPTH && (x = of_first_trip(r, flag)) != NULL; flag = x->before)
    ids[n++] = recipe_value(t, x->position);
  if (flag) ids[n++] = recipe_value(t, flag);
  return n == 1 ? ids[0] : recipe_weak_all(t, ids, n);
}

/* Leaves here where the bool is false. */
static Outcome leave_unless(Recorder *r, ValueId holds) {
  if (!holds) return OUT_FAIL;
  if (r->safe_exit == UINT32_MAX) return rec_stuck(r, REASON_branch_merge, "a number is weak on one way only");
  u32 exit = UINT32_MAX;
  if (!r->no_exits && !r->abstract && r->ins_depth == rec_depth(r) && r->ins_effects == r->effects)
    exit = rec_exit(r, EXIT_check, CHECK_none, rec_here(r));
  if (r->failed) return OUT_FAIL;
  return graph_check(r->g, CHECK_assertion, &holds, 1, exit != UINT32_MAX ? exit : r->safe_exit) ? OUT_GO : OUT_FAIL;
}

Outcome rec_strong(Recorder *r, ValueId v) {
  ValueId flag = rec_weak_flag(r, v);
  if (!flag) return OUT_GO;
  ValueId strong = graph_op1(r->g, OP_logical_not, flag);
  if (rec_weak_peel(r, flag)) return rec_stuck(r, REASON_loop_types, "a number is weak in the first trip alone");
  return leave_unless(r, strong);
}

Outcome rec_strong_or_fits(Recorder *r, ValueId v, u32 dtype) {
  Graph *g = r->g;
  ValueId flag = rec_weak_flag(r, v);
  if (!flag || value_type(g, v)->dtype != DT_i64 || dtype_kind(dtype) != DK_INT || dtype == DT_i64) return OUT_GO;
  if (!MECHANISM(r->vm, weak_that_fits)) return rec_strong(r, v);
  ValueId strong = graph_op1(g, OP_logical_not, flag), there = graph_convert(g, v, dtype), fits = 0;
  if (dtype == DT_u64) fits = graph_op2(g, OP_greater_equal, v, graph_const(g, value_i64(0)));
  else if (there && (there = graph_convert(g, there, DT_i64))) fits = graph_op2(g, OP_equal, there, v);
  return leave_unless(r, strong && fits ? graph_op2(g, OP_logical_or, strong, fits) : 0);
}

ValueId rec_strengthen(Recorder *r, ValueId v, u32 dtype) {
  ValueId strong = graph_convert(r->g, v, dtype);
  if (strong != v || !rec_weak_flag(r, v)) return strong;
  GraphAttr a = attr_dtype(1, dtype); /* another value, which has no flag */
  return graph_op(r->g, OP_astype, &v, 1, &a, 1, NULL);
}

/* With all of them strong, or all weak. */
static bool dtype_of(Recorder *r, u32 op, const ValueId *operands, u32 n, bool weak, DTypeResult *out) {
  ArrayType types[4];
  const ArrayType *ptrs[4];
  RuleError err;
  for (u32 i = 0; i < n; i++) {
    types[i] = *value_type(r->g, operands[i]);
    if (rec_weak_flag(r, operands[i])) types[i].weak = weak;
    ptrs[i] = &types[i];
  }
  return rule_dtype(op, n, ptrs, out, &err);
}

Outcome rec_weak_operands(Recorder *r, u32 op, const ValueId *operands, u32 n, ValueId *flag) {
  u32 count = 0;
  *flag = 0;
  if (!r->weaks.count) return OUT_GO;
  for (u32 i = 0; i < n; i++) count += rec_weak_flag(r, operands[i]) != 0;
  if (!count) return OUT_GO;
  DTypeResult a, b;
  /* not a threshold: operands that dtype_of has room for */
  bool elementwise = op_info(op)->family == FAM_elementwise && n <= 4, same = true;
  if (elementwise) {
    same = dtype_of(r, op, operands, n, false, &a) && dtype_of(r, op, operands, n, true, &b) &&
           a.compute == b.compute && a.result == b.result;
  } else { /* of one dtype: whether they are weak changes nothing */
    for (u32 i = 1; i < n; i++) same &= value_type(r->g, operands[i])->dtype == value_type(r->g, operands[0])->dtype;
    same &= op_param_of(op, PARAM_stored) == UINT32_MAX;
  }
  for (u32 i = 0; i < n && !same; i++) {
    Outcome o = rec_strong(r, operands[i]);
    if (o != OUT_GO) return o;
  }
  if (!same || !elementwise || a.weak == b.weak) return OUT_GO;
  for (u32 i = 0; i < n; i++) {
    ValueId f = rec_weak_flag(r, operands[i]);
    if (f && *flag && *flag != f && (rec_weak_peel(r, f) || rec_weak_peel(r, *flag)))
      return rec_stuck(r, REASON_loop_types, "numbers are weak in the first trip alone");
    if (f) *flag = *flag && *flag != f ? graph_op2(r->g, OP_logical_and, *flag, f) : f;
    if (f && !*flag) return OUT_FAIL;
  }
  return OUT_GO;
}

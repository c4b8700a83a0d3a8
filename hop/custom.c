/* custom.c — functions with derivatives of their own, on the tape: one entry each, with the leaves of the arguments
 * and of the results as they were below the tape as parents. What a function captured may be tracked as well: its
 * operations are on the tape by themselves, and the entry hands their results' cotangents through. */
#include "hop/custom.h"

#include <string.h>

#include "hop/control.h"
#include "hop/deriv.h"
#include "hop/lanes.h"
#include "hop/pullback.h"
#include "hop/tree.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"

enum { SAVED_rule, SAVED_given, SAVED_args, SAVED_result, SAVED_COUNT };

static WeftStatus custom_need_fn(Vm *vm, const char *who, const char *what, Value f) {
  if (f.kind == V_FN || f.kind == V_DTYPE) return WEFT_OK;
  return vm_error(vm, EK_type, "%s: %s must be a function, got %s", who, what, value_type_name(f));
}

WeftStatus eager_custom_vjp(Vm *vm, Value *args, Value *out) {
  Value settings;
  if (custom_need_fn(vm, "custom_vjp", "f", args[0]) != WEFT_OK || custom_need_fn(vm, "custom_vjp", "fwd", args[1]) !=
      WEFT_OK || custom_need_fn(vm, "custom_vjp", "bwd", args[2]) != WEFT_OK || !list_from(vm, args + 1, 2, &settings))
    return WEFT_ERROR;
  return fn_transform(vm, TF_custom_vjp, value_keep(args[0]), settings, out) ? WEFT_OK : WEFT_ERROR;
}

WeftStatus eager_checkpoint(Vm *vm, Value *args, Value *out) {
  if (custom_need_fn(vm, "checkpoint", "f", args[0]) != WEFT_OK) return WEFT_ERROR;
  return fn_transform(vm, TF_checkpoint, value_keep(args[0]), value_nil(), out) ? WEFT_OK : WEFT_ERROR;
}

/* ---- on the way forward ---------------------------------------------------------------------- */

typedef VEC(u32) Nodes;

/* The tree without tape t, *out owned, and the nodes of its leaves. */
static WeftStatus split(Vm *vm, Tape *t, Value tree, Value *out, Nodes *nodes) {
  Leaves leaves = {0};
  Lanes plain = {0};
  u32 next = 0;
  WeftStatus status = tree_leaves_of(vm, tree, &leaves);
  for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
    Value v;
    u32 node;
    tape_split(t, leaves.data[i], &v, &node);
    if (!lanes_push(vm, &plain, v)) status = WEFT_ERROR;
    else if (!vec_push(&vm->alloc, nodes, node)) status = vm_error_memory(vm);
  }
  if (status == WEFT_OK) status = tree_with(vm, tree, plain.data, &next, out);
  lanes_free(vm, &plain);
  leaves_free(vm, &leaves);
  return status;
}

/* v without tape t, functions in it included: what an entry saves must not hold its own tape. *out owned. */
static WeftStatus without(Vm *vm, Tape *t, Value v, u32 depth, Value *out) {
  u32 node;
  if (v.kind == V_TRACKED) {
    tape_split(t, v, out, &node);
    return WEFT_OK;
  }
  bool closure = v.kind == V_FN && v.fn->kind == FN_CLOSURE && v.fn->env, list = v.kind == V_LIST,
      record = v.kind == V_RECORD;
  bool transform = v.kind == V_FN && v.fn->kind == FN_TRANSFORM;
  if (depth > TREE_DEPTH || !(closure || list || record || transform)) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
  u32 n = closure ? v.fn->env->count : list ? v.list->count : record ? v.record->shape->count : 2;
  Value made = value_nil();
  Lanes items = {0};
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < n && status == WEFT_OK; i++) {
    Value item;
    status = without(vm, t, closure ? v.fn->env->slots[i] : list ? v.list->items[i] : record ? v.record->items[i]
                                    : i ? v.fn->settings : v.fn->inner, depth + 1, &item);
    if (status == WEFT_OK && !lanes_push(vm, &items, item)) status = WEFT_ERROR;
  }
  bool ok = status == WEFT_OK;
  if (ok && closure) {
    Env *env = env_new(vm, n);
    for (u32 i = 0; env && i < n; i++) env->slots[i] = value_keep(items.data[i]);
    ok = env && fn_closure(vm, v.fn->code, env, &made);
  } else if (ok && list) {
    ok = list_from(vm, items.data, n, &made);
  } else if (ok && transform) {
    ok = fn_transform(vm, v.fn->transform, value_keep(items.data[0]), value_keep(items.data[1]), &made);
  } else if (ok) {
    ok = record_new(vm, &made);
    for (u32 i = 0; i < n && ok; i++)
      if (!(ok = record_set(vm, &made, v.record->shape->keys[i], value_keep(items.data[i])))) value_drop(vm, made);
  }
  lanes_free(vm, &items);
  if (ok) *out = made;
  return ok ? WEFT_OK : WEFT_ERROR;
}

/* The result y (consumed) of a function, its leaves as results of an entry: *out owned. `nodes` holds those of the
 * arguments. */
static WeftStatus enter(Vm *vm, Tape *t, EntryKind kind, Value rule, Value given, Value args, Nodes *nodes, Value y,
                        Value *out) {
  Leaves leaves = {0};
  Value plain = value_hole(), list = value_hole();
  u32 next = 0;
  WeftStatus status = split(vm, t, y, &plain, nodes);
  if (status == WEFT_OK) status = tree_leaves_of(vm, plain, &leaves);
  if (status == WEFT_OK && leaves.count == 0) {
    *out = value_keep(y);
  } else if (status == WEFT_OK) {
    Value saved[SAVED_COUNT] = {value_hole(), value_hole(), args, plain};
    status = without(vm, t, rule, 0, &saved[SAVED_rule]);
    if (status == WEFT_OK) status = without(vm, t, given, 0, &saved[SAVED_given]);
    if (status == WEFT_OK && !list_from(vm, leaves.data, leaves.count, &list)) status = WEFT_ERROR;
    if (status == WEFT_OK) {
      status = tape_entry(vm, t, kind, saved, SAVED_COUNT, nodes->data, nodes->count, &list);
      if (status != WEFT_OK) list = value_hole();
    }
    if (status == WEFT_OK) status = tree_with(vm, y, list.list->items, &next, out);
    value_drop(vm, saved[SAVED_rule]);
    value_drop(vm, saved[SAVED_given]);
  }
  leaves_free(vm, &leaves);
  value_drop(vm, plain);
  value_drop(vm, list);
  value_drop(vm, y);
  return status;
}

/* Calls f on the items of a list: *out owned. */
static WeftStatus custom_call_list(Vm *vm, Value f, Value list, Value *out) {
  return vm_call_kept(vm, f, list.list->items, NULL, list.list->count, out);
}

WeftStatus call_custom(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out) {
  bool custom = fn->transform == TF_custom_vjp;
  const char *who = custom ? "custom_vjp" : "checkpoint";
  Tape *t = NULL;
  Value all, plain = value_hole(), y = value_hole(), given = value_nil();
  Nodes nodes = {0};
  for (u32 i = 0; i < nargs; i++)
    if (tape_highest(vm, &t, args[i]) != WEFT_OK) return WEFT_ERROR;
  if (!t) return vm_call_kept(vm, fn->inner, args, names, nargs, out);
  for (u32 i = 0; names && i < nargs; i++)
    if (names[i]) return vm_error(vm, EK_type, "%s: under a derivative arguments are given by position", who);
  if (!list_from(vm, args, nargs, &all)) return WEFT_ERROR;
  WeftStatus status = split(vm, t, all, &plain, &nodes);
  Value rule = custom ? fn->settings.list->items[1] : fn->inner, got;
  if (status == WEFT_OK) status = custom_call_list(vm, custom ? fn->settings.list->items[0] : fn->inner, plain, &got);
  if (status == WEFT_OK && custom) {
    if (got.kind != V_LIST || got.list->count != 2) {
      status = vm_error(vm, EK_type, "custom_vjp: fwd must give a list (y, saved), got %s", value_type_name(got));
    } else {
      y = value_keep(got.list->items[0]);
      given = value_keep(got.list->items[1]);
    }
    value_drop(vm, got);
  } else if (status == WEFT_OK) {
    y = got;
  }
  if (status == WEFT_OK)
    status = enter(vm, t, custom ? ENTRY_custom : ENTRY_checkpoint, rule, given, plain, &nodes, y, out);
  value_drop(vm, given);
  value_drop(vm, plain);
  value_drop(vm, all);
  vec_free(&vm->alloc, &nodes);
  return status;
}

WeftStatus eager_with_hook(Vm *vm, Value *args, Value *out) {
  Tape *t = NULL;
  Nodes nodes = {0};
  Value plain = value_hole();
  if (custom_need_fn(vm, "with_hook", "h", args[1]) != WEFT_OK) return WEFT_ERROR;
  if (tape_highest(vm, &t, args[0]) != WEFT_OK) return WEFT_ERROR;
  if (!t) {
    *out = value_keep(args[0]);
    return WEFT_OK;
  }
  WeftStatus status = split(vm, t, args[0], &plain, &nodes);
  if (status == WEFT_OK) {
    Value list;
    status = list_from(vm, &plain, 1, &list) ? WEFT_OK : WEFT_ERROR;
    if (status == WEFT_OK) {
      status = enter(vm, t, ENTRY_hook, args[1], value_nil(), list, &nodes, value_keep(plain), out);
      value_drop(vm, list);
    }
  }
  value_drop(vm, plain);
  vec_free(&vm->alloc, &nodes);
  return status;
}

/* ---- on the way back ------------------------------------------------------------------------- */

/* The cotangents of the entry's results as the tree that they are in: zeros where there are none. */
static WeftStatus cotangents(Vm *vm, const TapeEntry *e, Value tree, Value *grads, Value *out) {
  Leaves leaves = {0};
  Lanes made = {0};
  u32 next = 0;
  WeftStatus status = tree_leaves_of(vm, tree, &leaves);
  for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
    Value g = grads[e->result + i];
    grads[e->result + i] = value_hole();
    if (g.kind == V_HOLE) {
      ArrayType t;
      tree_leaf_type(leaves.data[i], &t);
      if (dtype_kind(t.dtype) < DK_FLOAT) t.dtype = DT_f64;
      status = tape_zeros(vm, &t, &g);
    }
    if (status == WEFT_OK && !lanes_push(vm, &made, g)) status = WEFT_ERROR;
  }
  if (status == WEFT_OK) status = tree_with(vm, tree, made.data, &next, out);
  lanes_free(vm, &made);
  leaves_free(vm, &leaves);
  return status;
}

/* What a rule gave for one argument, to the nodes of its leaves. */
static WeftStatus custom_give(Vm *vm, const char *what, u32 arg, Value like, Value got, const u32 *nodes,
                              Value *grads) {
  Leaves want = {0}, have = {0};
  WeftStatus status = tree_leaves_of(vm, like, &want);
  if (status == WEFT_OK && got.kind == V_NIL) goto done; /* nothing */
  if (status == WEFT_OK) status = tree_leaves_of(vm, got, &have);
  if (status == WEFT_OK && (want.count != have.count || !tree_same(vm, like, got)))
    status = tree_error(vm, "%s: the cotangent of argument %u must have its structure, got %s", what, arg,
                        value_type_name(got));
  for (u32 i = 0; i < want.count && status == WEFT_OK; i++) {
    ArrayType a, b;
    Value g, sum, args[2];
    if (!nodes[i]) continue;
    tree_leaf_type(want.data[i], &a);
    tree_leaf_type(have.data[i], &b);
    if (a.rank != b.rank || memcmp(a.dims, b.dims, a.rank * sizeof a.dims[0]) != 0) {
      char x[80], y[80];
      rule_shape_text(&a, x, sizeof x);
      rule_shape_text(&b, y, sizeof y);
      status = vm_error(vm, EK_shape, "%s: the cotangent of argument %u has shape %s, the argument %s",
                        what, arg, y, x);
      break;
    }
    args[0] = value_keep(have.data[i]);
    args[1] = value_dtype(a.dtype);
    status = vm_op(vm, OP_astype, args, &g);
    value_drop(vm, args[0]);
    if (status != WEFT_OK) break;
    Value before = grads[nodes[i]];
    grads[nodes[i]] = value_hole();
    status = tape_sum(vm, before, g, &sum);
    if (status == WEFT_OK) grads[nodes[i]] = sum;
  }
done:
  leaves_free(vm, &want);
  leaves_free(vm, &have);
  return status;
}

/* The rule's cotangents: a list, one for each argument. */
static WeftStatus apply(Vm *vm, u32 kind, const Value *saved, Value ct, Value *out) {
  if (kind == ENTRY_checkpoint) { /* runs once more, now on a tape */
    Pullback *p = pullback_mixed(vm, "checkpoint", saved[SAVED_rule], saved[SAVED_args]);
    if (!p) return WEFT_ERROR;
    WeftStatus status = pullback_pull(vm, p, "checkpoint", ct, PULL_ALL, out);
    pullback_free(p);
    return status;
  }
  Value args[2] = {value_keep(kind == ENTRY_hook ? ct : saved[SAVED_given]), value_keep(ct)}, got;
  if (kind == ENTRY_hook) {
    value_drop(vm, args[1]);
    if (vm_call(vm, saved[SAVED_rule], args, 1, &got) != WEFT_OK) return WEFT_ERROR;
    bool ok = list_from(vm, &got, 1, out);
    value_drop(vm, got);
    return ok ? WEFT_OK : WEFT_ERROR;
  }
  if (vm_call(vm, saved[SAVED_rule], args, 2, &got) != WEFT_OK) return WEFT_ERROR;
  u32 n = saved[SAVED_args].list->count;
  if (got.kind == V_LIST && got.list->count == n) {
    *out = got;
    return WEFT_OK;
  }
  WeftStatus status = vm_error(vm, EK_type, "custom_vjp: bwd must give a list of %u cotangents, got %s", n,
                               value_type_name(got));
  value_drop(vm, got);
  return status;
}

WeftStatus custom_pull(Vm *vm, const Tape *t, const TapeEntry *e, const char *who, Value *grads) {
  Value saved[SAVED_COUNT], ct = value_hole(), got = value_hole();
  const u32 *nodes = t->parents.data + e->parents;
  const char *what = e->kind == ENTRY_hook ? "with_hook" : e->kind == ENTRY_custom ? "custom_vjp" : "checkpoint";
  (void)who;
  memcpy(saved, t->values.data + e->first, sizeof saved);
  u32 at = 0, own = 0;
  WeftStatus status = cotangents(vm, e, saved[SAVED_result], grads, &ct);
  Leaves leaves = {0};
  if (status == WEFT_OK) status = tree_leaves_of(vm, saved[SAVED_args], &leaves);
  own = leaves.count;
  leaves.count = 0;
  bool any = false;
  for (u32 i = 0; i < own; i++) any |= nodes[i] != 0;
  if (status == WEFT_OK && any) status = apply(vm, e->kind, saved, ct, &got);
  for (u32 i = 0; any && i < saved[SAVED_args].list->count && status == WEFT_OK; i++) {
    Value arg = saved[SAVED_args].list->items[i];
    status = custom_give(vm, what, i, arg, got.list->items[i], nodes + at, grads);
    leaves.count = 0;
    if (status == WEFT_OK) status = tree_leaves_of(vm, arg, &leaves);
    at += leaves.count;
  }
  if (status == WEFT_OK && e->kind != ENTRY_hook)
    status = custom_give(vm, what, 0, saved[SAVED_result], ct, nodes + own, grads);
  leaves_free(vm, &leaves);
  value_drop(vm, ct);
  value_drop(vm, got);
  return status;
}

/* ---- in a trace: where nothing is differentiated they are the functions they stand for ------- */

Outcome record_make_custom(Recorder *r, u32 op, const Av *params, Av *out) {
  Av parts[2] = {av_force(r, params[0]), 0};
  for (u32 i = 0; i < (op == OP_custom_vjp ? 3u : 1u); i++) {
    Av fn = av_force(r, params[i]);
    Value v;
    if (!fn) return OUT_FAIL;
    bool callable = av_is_callable(r, fn) || (av_const_value(r, fn, &v) && v.kind == V_DTYPE);
    if (!callable) return rec_stuck(r, REASON_raises, "%s of %s", op_name(op), av_kind_text(r, fn));
  }
  parts[1] = op == OP_custom_vjp ? av_list(r, params + 1, 2) : av_const(r, value_nil());
  return rec_made(r, av_transform(r, op == OP_custom_vjp ? TF_custom_vjp : TF_checkpoint, parts[0], parts[1]), out);
}

/* All that a checkpoint gives has a derivative: what is known while tracing would be known no more. *node: the
 * branch. */
static Outcome is_recomputed(Recorder *r, Av tree, NodeId *node) {
  AvVec leaves = {0};
  Outcome o = rec_tree(r, tree, &tree);
  if (o == OUT_GO) o = rec_tree_leaves(r, tree, &leaves);
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++) {
    ValueId v = av_value(r, leaves.data[i]);
    *node = v ? value_node(r->g, v) : 0;
    if (!*node || graph_node_at(r->g, *node)->kind != NODE_cond || !deriv_dtype(value_type(r->g, v)->dtype))
      o = OUT_STUCK;
  }
  if (!leaves.count && o == OUT_GO) o = OUT_STUCK;
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

/* A branch that is always taken: its derivative runs the arm once more, from what goes into it, so that nothing that
 * the arm computes is kept. GraphNode.mask says that it stays a branch. */
static Outcome record_recomputed(Recorder *r, Av f, const Av *args, u32 nargs, Av *out) {
  RecMark mark = rec_mark(r);
  RecState state;
  NodeId node = 0;
  Av params[4] = {av_const(r, value_bool(true)), f, 0, av_list(r, args, nargs)};
  if (!params[0] || !params[3] || !rec_save(r, &state)) return OUT_FAIL;
  Outcome o = record_cond(r, OP_cond, params, out);
  if (o == OUT_GO) o = is_recomputed(r, *out, &node);
  if (o == OUT_GO) r->g->nodes.data[node].mask = true;
  if (o == OUT_STUCK) {
    rec_rollback(r, &mark);
    rec_restore(r, &state);
  }
  rec_state_free(r, &state);
  return o;
}

/* Recomputing is a matter of memory, not of values: what cannot be is kept. */
Outcome record_custom(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out) {
  if (r->differentiating && av_at(r, transform)->op == TF_custom_vjp)
    return rec_stuck(r, REASON_no_rule, "a derivative rule of the program's own");
  if (r->differentiating && av_at(r, transform)->op == TF_checkpoint) {
    Outcome o = record_recomputed(r, av_item(r, transform, 0), args, nargs, out);
    if (o != OUT_STUCK) return o;
  }
  return rec_call(r, av_item(r, transform, 0), args, NULL, nargs, out);
}

Outcome record_with_hook(Recorder *r, u32 op, const Av *params, Av *out) {
  if (r->differentiating) return rec_stuck(r, REASON_no_rule, "a hook on a gradient");
  if (!av_is_callable(r, av_force(r, params[1])))
    return rec_stuck(r, REASON_raises, "%s of %s", op_name(op), av_kind_text(r, params[1]));
  *out = av_force(r, params[0]);
  return *out ? OUT_GO : OUT_FAIL;
}

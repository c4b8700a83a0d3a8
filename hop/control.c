/* control.c — cond, while_loop, fori_loop, scan, call run eagerly: as ordinary calls, with the checks of
 * language.md section 5 made on what the functions return. */
#include "hop/control.h"

#include <stdio.h>
#include <string.h>

#include "hop/tree.h"

static WeftStatus need_fn(Vm *vm, const char *who, const char *what, Value f) {
  if (f.kind == V_FN || f.kind == V_DTYPE) return WEFT_OK;
  return vm_error(vm, EK_type, "%s: %s must be a function, got %s", who, what, value_type_name(f));
}

/* A rank-0 bool, also one that a tape tracks. */
static WeftStatus truth_of(Vm *vm, const char *who, const char *what, Value v, bool *out) {
  v = value_untracked(v);
  if (v.kind == V_NUM && v.dtype == DT_bool) {
    *out = v.i != 0;
    return WEFT_OK;
  }
  if (v.kind == V_NUM || v.kind == V_ARRAY)
    return vm_error(vm, EK_type, "%s: %s must be a bool of rank 0, got %s of rank %u", who, what, dtype_name(v.kind == V_NUM ? v.dtype : array_dtype(v.array)),
                    v.kind == V_NUM ? 0 : array_rank(v.array));
  return vm_error(vm, EK_type, "%s: %s must be a bool of rank 0, got %s", who, what, value_type_name(v));
}

static WeftStatus call_list(Vm *vm, Value f, const List *xs, Value *out) {
  Value args[64];
  if (xs->count > COUNT_OF(args)) return vm_error(vm, EK_value, "more than %u operands", (u32)COUNT_OF(args));
  for (u32 i = 0; i < xs->count; i++) args[i] = value_keep(xs->items[i]);
  return vm_call(vm, f, args, xs->count, out);
}

WeftStatus eager_cond(Vm *vm, Value *args, Value *out) {
  bool p = false;
  if (need_fn(vm, "cond", "f", args[1]) != WEFT_OK || need_fn(vm, "cond", "g", args[2]) != WEFT_OK) return WEFT_ERROR;
  if (truth_of(vm, "cond", "the predicate", args[0], &p) != WEFT_OK) return WEFT_ERROR;
  return call_list(vm, p ? args[1] : args[2], args[3].list, out);
}

WeftStatus eager_call(Vm *vm, Value *args, Value *out) {
  if (need_fn(vm, "call", "f", args[0]) != WEFT_OK) return WEFT_ERROR;
  return call_list(vm, args[0], args[1].list, out);
}

/* ---- carried state ---------------------------------------------------------------------------------------- */

static void leaf_type(Value v, ArrayType *t) {
  *t = (ArrayType){0};
  if (v.kind == V_NUM) {
    t->dtype = v.dtype;
    t->weak = value_is_weak(v);
  } else if (v.kind == V_ARRAY) {
    t->dtype = (u8)array_dtype(v.array);
    t->rank = (u8)array_rank(v.array);
    memcpy(t->dims, array_dims(v.array), t->rank * sizeof(i64));
  }
}

/* The state after a trip must be of the types before it; weak numbers take the dtype that the body gives. */
static WeftStatus same_state(Vm *vm, const char *who, Value before, Value after, bool first) {
  if (!tree_same(vm, before, after))
    return vm_error(vm, EK_type, "%s: the body gives a %s of another structure than the state", who, value_type_name(after));
  Leaves a = {0}, b = {0};
  WeftStatus status = tree_leaves_of(vm, before, &a);
  if (status == WEFT_OK) status = tree_leaves_of(vm, after, &b);
  for (u32 i = 0; i < a.count && status == WEFT_OK; i++) {
    ArrayType x, y;
    leaf_type(value_untracked(a.data[i]), &x);
    leaf_type(value_untracked(b.data[i]), &y);
    bool dtype = x.dtype == y.dtype || (first && x.weak && dtype_kind(x.dtype) <= dtype_kind(y.dtype));
    bool shape = x.rank == y.rank && memcmp(x.dims, y.dims, x.rank * sizeof(Dim)) == 0;
    if (dtype && shape) continue;
    char sx[80], sy[80];
    rule_shape_text(&x, sx, sizeof sx);
    rule_shape_text(&y, sy, sizeof sy);
    status = vm_error(vm, shape ? EK_dtype : EK_shape, "%s: the state's value %u is %s%s, the body gives %s%s", who, i, dtype_name(x.dtype), sx, dtype_name(y.dtype), sy);
  }
  leaves_free(vm, &a);
  leaves_free(vm, &b);
  return status;
}

WeftStatus eager_while_loop(Vm *vm, Value *args, Value *out) {
  if (need_fn(vm, "while_loop", "c", args[0]) != WEFT_OK || need_fn(vm, "while_loop", "b", args[1]) != WEFT_OK) return WEFT_ERROR;
  i64 limit = INT64_MAX;
  if (args[3].kind != V_HOLE && args[3].kind != V_NIL && (args[3].kind != V_NUM || !num_as_index(args[3], &limit) || limit < 0))
    return vm_error(vm, EK_type, "while_loop: max_steps must be a non-negative integer");
  Value state = value_keep(args[2]);
  for (i64 step = 0; step < limit; step++) {
    Value p, next, arg = value_keep(state);
    bool more = false;
    WeftStatus status = vm_call(vm, args[0], &arg, 1, &p);
    if (status == WEFT_OK) {
      status = truth_of(vm, "while_loop", "the condition", p, &more);
      value_drop(vm, p);
    }
    if (status == WEFT_OK && !more) break;
    if (status == WEFT_OK) status = vm_poll(vm, 1);
    if (status == WEFT_OK) {
      arg = value_keep(state);
      status = vm_call(vm, args[1], &arg, 1, &next);
    }
    if (status == WEFT_OK) {
      status = same_state(vm, "while_loop", state, next, step == 0);
      if (status != WEFT_OK) value_drop(vm, next);
    }
    value_drop(vm, state);
    if (status != WEFT_OK) return status;
    state = next;
  }
  *out = state;
  return WEFT_OK;
}

static WeftStatus trip_bound(Vm *vm, const char *what, Value v, i64 *out) {
  if (v.kind == V_NUM && num_as_index(v, out)) return WEFT_OK;
  return vm_error(vm, EK_type, "fori_loop: %s must be an integer of rank 0, got %s", what, value_type_name(v));
}

WeftStatus eager_fori_loop(Vm *vm, Value *args, Value *out) {
  i64 lo = 0, hi = 0;
  if (trip_bound(vm, "lo", args[0], &lo) != WEFT_OK || trip_bound(vm, "hi", args[1], &hi) != WEFT_OK) return WEFT_ERROR;
  if (need_fn(vm, "fori_loop", "b", args[2]) != WEFT_OK) return WEFT_ERROR;
  Value state = value_keep(args[3]);
  for (i64 i = lo; i < hi; i++) {
    Value pair[2] = {value_weak_i64(i), value_keep(state)}, next;
    WeftStatus status = vm_call(vm, args[2], pair, 2, &next);
    if (status == WEFT_OK) {
      status = same_state(vm, "fori_loop", state, next, i == lo);
      if (status != WEFT_OK) value_drop(vm, next);
    }
    value_drop(vm, state);
    if (status != WEFT_OK) return status;
    state = next;
  }
  *out = state;
  return WEFT_OK;
}

/* ---- scan ---------------------------------------------------------------------------------------------------- */

typedef VEC(Value) Owned;

static void owned_free(Vm *vm, Owned *o) {
  for (u32 i = 0; i < o->count; i++) value_drop(vm, o->data[i]);
  vec_free(&vm->alloc, o);
}

static WeftStatus slice_of(Vm *vm, Value x, i64 axis, i64 at, Value *out) {
  if (x.kind == V_TRACKED) {
    Value params[OP_MAX_PARAMS];
    for (u32 i = 0; i < OP_MAX_PARAMS; i++) params[i] = value_hole();
    params[0] = value_keep(x);
    params[1] = value_i64(at);
    params[2] = value_i64(axis);
    WeftStatus status = vm_op(vm, OP_take, params, out);
    for (u32 i = 0; i < OP_MAX_PARAMS; i++) value_drop(vm, params[i]);
    return status;
  }
  Array *a = x.array;
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
  u32 n = 0;
  for (u32 d = 0; d < array_rank(a); d++) {
    if ((i64)d == axis) continue;
    dims[n] = array_dims(a)[d];
    strides[n++] = array_strides(a)[d];
  }
  if (array_view(vm, a, at * array_strides(a)[axis], n, dims, strides, out) != WEFT_OK) return WEFT_ERROR;
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

/* The common length of all leaves along the axis. */
static WeftStatus scan_length(Vm *vm, const Leaves *xs, i64 axis, i64 *length) {
  for (u32 i = 0; i < xs->count; i++) {
    Value v = xs->data[i];
    v = value_untracked(v);
    i64 rank = v.kind == V_ARRAY ? array_rank(v.array) : 0, at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) return vm_error(vm, EK_index, "scan: axis %lld is out of range for xs of rank %lld", (long long)axis, (long long)rank);
    i64 n = array_dims(v.array)[at];
    if (*length >= 0 && n != *length) return vm_error(vm, EK_shape, "scan: lengths differ: %lld and %lld", (long long)*length, (long long)n);
    *length = n;
  }
  return WEFT_OK;
}

static WeftStatus stack_leaves(Vm *vm, Owned *items, i64 trips, u32 width, u32 leaf, bool reverse, Value *out) {
  Value list, params[OP_MAX_PARAMS];
  if (!list_new(vm, (u32)trips, &list)) return WEFT_ERROR;
  for (i64 t = 0; t < trips; t++) {
    i64 at = reverse ? trips - 1 - t : t;
    if (!list_push(vm, &list, value_keep(items->data[at * width + leaf]))) {
      value_drop(vm, list);
      return WEFT_ERROR;
    }
  }
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) params[i] = value_hole();
  params[0] = list;
  WeftStatus status = vm_op(vm, OP_stack, params, out);
  value_drop(vm, params[0]);
  return status;
}

WeftStatus eager_scan(Vm *vm, Value *args, Value *out) {
  i64 length = -1, axis = 0;
  bool reverse = args[4].kind == V_NUM && args[4].i;
  if (need_fn(vm, "scan", "f", args[0]) != WEFT_OK) return WEFT_ERROR;
  if (args[3].kind == V_NUM && (!num_as_index(args[3], &length) || length < 0)) return vm_error(vm, EK_type, "scan: length must be a non-negative integer");
  if (args[5].kind == V_NUM && !num_as_index(args[5], &axis)) return vm_error(vm, EK_type, "scan: axis must be an integer");
  Value xs = args[2].kind == V_HOLE ? value_nil() : args[2];
  Leaves leaves = {0}, parts = {0};
  Owned slices = {0}, results = {0};
  Value carry = value_keep(args[1]), ys = value_nil(), tree = value_nil();
  u32 width = 0;
  WeftStatus status = tree_leaves_of(vm, xs, &leaves);
  if (status == WEFT_OK) status = scan_length(vm, &leaves, axis, &length);
  if (status == WEFT_OK && length < 0) status = vm_error(vm, EK_type, "scan: without xs it needs a length");
  if (status == WEFT_OK && length == 0)
    status = vm_error(vm, EK_unsupported, "scan: zero trips are not supported outside compiled code: what f gives cannot be known");
  for (i64 t = 0; t < length && status == WEFT_OK; t++) {
    i64 at = reverse ? length - 1 - t : t;
    Value pair[2] = {value_keep(carry), value_nil()}, got = value_nil();
    for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
      Value v = leaves.data[i], part;
      Value plain = value_untracked(v);
      i64 ax = axis < 0 ? axis + (i64)array_rank(plain.array) : axis;
      status = slice_of(vm, v, ax, at, &part);
      if (status == WEFT_OK && !vec_push(&vm->alloc, &slices, part)) {
        value_drop(vm, part);
        status = vm_error_memory(vm);
      }
    }
    u32 next = 0;
    if (status == WEFT_OK) status = tree_with(vm, xs, slices.data, &next, &pair[1]);
    for (u32 i = 0; i < slices.count; i++) value_drop(vm, slices.data[i]);
    slices.count = 0;
    if (status != WEFT_OK) {
      value_drop(vm, pair[0]);
      break;
    }
    status = vm_call(vm, args[0], pair, 2, &got);
    if (status != WEFT_OK) break;
    if (got.kind != V_LIST || got.list->count != 2) {
      status = vm_error(vm, EK_type, "scan: f must give a list (carry, y), got %s", value_type_name(got));
    } else {
      status = same_state(vm, "scan", carry, got.list->items[0], t == 0);
    }
    if (status == WEFT_OK && t > 0 && !tree_same(vm, tree, got.list->items[1])) status = vm_error(vm, EK_type, "scan: y changes its structure");
    if (status == WEFT_OK) {
      value_drop(vm, carry);
      carry = value_keep(got.list->items[0]);
      if (t == 0) tree = value_keep(got.list->items[1]);
      parts.count = 0;
      status = tree_leaves_of(vm, got.list->items[1], &parts);
      width = parts.count;
      for (u32 i = 0; i < parts.count && status == WEFT_OK; i++) {
        if (vec_push(&vm->alloc, &results, value_keep(parts.data[i]))) continue;
        value_drop(vm, parts.data[i]);
        status = vm_error_memory(vm);
      }
    }
    value_drop(vm, got);
  }
  if (status == WEFT_OK) {
    for (u32 i = 0; i < width && status == WEFT_OK; i++) {
      Value stacked;
      status = stack_leaves(vm, &results, length, width, i, reverse, &stacked);
      if (status == WEFT_OK && !vec_push(&vm->alloc, &slices, stacked)) {
        value_drop(vm, stacked);
        status = vm_error_memory(vm);
      }
    }
    u32 next = 0;
    if (status == WEFT_OK) status = tree_with(vm, tree, slices.data, &next, &ys);
  }
  if (status == WEFT_OK) {
    if (!list_new(vm, 2, out)) status = WEFT_ERROR;
    else if (!list_push(vm, out, value_keep(carry)) || !list_push(vm, out, value_keep(ys))) {
      value_drop(vm, *out);
      status = WEFT_ERROR;
    }
  }
  value_drop(vm, carry);
  value_drop(vm, ys);
  value_drop(vm, tree);
  owned_free(vm, &slices);
  owned_free(vm, &results);
  leaves_free(vm, &leaves);
  leaves_free(vm, &parts);
  return status;
}

/* control.c — cond, while_loop, fori_loop, scan, call run eagerly: as ordinary calls, with the checks of
 * language.md section 5 made on what the functions return. */
#include "hop/control.h"

#include <stdio.h>
#include <string.h>

#include "hop/checked.h"
#include "hop/lanes.h"
#include "hop/tape.h"
#include "hop/tree.h"
#include "tracer/record/abstract.h"

static WeftStatus eager_need_fn(Vm *vm, const char *who, const char *what, Value f) {
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
    return vm_error(vm, EK_type, "%s: %s must be a bool of rank 0, got %s of rank %u", who,
                    what, dtype_name(v.kind == V_NUM ? v.dtype : array_dtype(v.array)),
                    v.kind == V_NUM ? 0 : array_rank(v.array));
  return vm_error(vm, EK_type, "%s: %s must be a bool of rank 0, got %s", who, what, value_type_name(v));
}

static WeftStatus eager_call_list(Vm *vm, Value f, const List *xs, Value *out) {
  return vm_call_kept(vm, f, xs->items, NULL, xs->count, out);
}

/* ---- cond ---------------------------------------------------------------------------------------------------- */

enum { DIFFERENCES = 3 };

/* The trees that the two functions of cond give, against each other: *types (owned) is a tree of what both shall give.
 * Error: all that differs, in one message. */
static WeftStatus agree(Vm *vm, Value f, Value g, Value *types) {
  if (!tree_same(vm, f, g))
    return tree_error(vm, "cond: f gives %s and g %s of another structure", value_type_phrase(f),
                      value_type_phrase(g));
  Leaves a = {0}, b = {0};
  char text[400] = "";
  u32 found = 0, kind = EK_dtype, next = 0;
  WeftStatus status = tree_leaves_of(vm, f, &a);
  if (status == WEFT_OK) status = tree_leaves_of(vm, g, &b);
  for (u32 i = 0; i < a.count && status == WEFT_OK; i++) {
    ArrayType x, y;
    tree_leaf_type(a.data[i], &x);
    tree_leaf_type(b.data[i], &y);
    bool shape = x.rank == y.rank && memcmp(x.dims, y.dims, x.rank * sizeof(Dim)) == 0;
    bool takes = y.weak && dtype_kind(y.dtype) <= dtype_kind(x.dtype);
    bool gives = x.weak && dtype_kind(x.dtype) <= dtype_kind(y.dtype);
    if (shape && (takes || gives || x.dtype == y.dtype)) {
      if (gives) a.data[i] = b.data[i];
      continue;
    }
    if (!shape) kind = EK_shape;
    if (found++ >= DIFFERENCES) continue;
    char sx[80], sy[80];
    rule_shape_text(&x, sx, sizeof sx);
    rule_shape_text(&y, sy, sizeof sy);
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "%sf gives %s%s, g gives %s%s", at ? "; " : "", dtype_name(x.dtype), sx,
             dtype_name(y.dtype), sy);
  }
  if (status == WEFT_OK && found > DIFFERENCES)
    status = vm_error(vm, (ErrorKind)kind, "cond: %s; and %u more", text, found - DIFFERENCES);
  else if (status == WEFT_OK && found) status = vm_error(vm, (ErrorKind)kind, "cond: %s", text);
  if (status == WEFT_OK) status = tree_with(vm, f, a.data, &next, types);
  leaves_free(vm, &a);
  leaves_free(vm, &b);
  return status;
}

WeftStatus eager_cond(Vm *vm, Value *args, Value *out) {
  bool p = false;
  const List *xs = args[3].list;
  if (eager_need_fn(vm, "cond", "f", args[1]) != WEFT_OK || eager_need_fn(vm, "cond", "g", args[2]) != WEFT_OK)
    return WEFT_ERROR;
  if (truth_of(vm, "cond", "p", args[0], &p) != WEFT_OK) return WEFT_ERROR;
  u64 key = checked_key(OP_cond + (u64)p * OP_COUNT, args + 1, 3);
  if (checked_before(vm, key)) return eager_call_list(vm, args[p ? 1 : 2], xs, out);
  AbstractCall arm[2] = {{.result = value_hole()}, {.result = value_hole()}};
  Value types = value_hole(), got = value_hole();
  u32 taken = p ? 0 : 1;
  WeftStatus status = WEFT_OK;
  for (u32 k = 0; k < 2 && status == WEFT_OK; k++)
    status = record_abstract(vm, args[1 + k], xs->items, xs->count, &arm[k]);
  bool both = arm[0].known && arm[1].known;
  if (status == WEFT_OK && both) status = agree(vm, arm[0].result, arm[1].result, &types);
  if (status == WEFT_OK) status = eager_call_list(vm, args[1 + taken], xs, &got);
  if (status != WEFT_OK) got = value_hole();
  if (status == WEFT_OK && !both && arm[!taken].known)
    status = taken ? agree(vm, arm[0].result, got, &types) : agree(vm, got, arm[1].result, &types);
  bool changed = false;
  if (status == WEFT_OK && types.kind != V_HOLE) status = tree_take_types(vm, "cond", types, &got, &changed);
  if (status == WEFT_OK) {
    *out = value_keep(got);
    if (!changed && (both || !arm[!taken].known)) checked_now(vm, key);
  }
  value_drop(vm, got);
  value_drop(vm, types);
  value_drop(vm, arm[0].result);
  value_drop(vm, arm[1].result);
  return status;
}

WeftStatus eager_call(Vm *vm, Value *args, Value *out) {
  if (eager_need_fn(vm, "call", "f", args[0]) != WEFT_OK) return WEFT_ERROR;
  return eager_call_list(vm, args[0], args[1].list, out);
}

/* ---- carried state ---------------------------------------------------------------------------------------- */

static WeftStatus state_differs(Vm *vm, const char *who, u32 leaf, const ArrayType *x, const ArrayType *y) {
  char sx[80], sy[80];
  bool shape = x->rank == y->rank && memcmp(x->dims, y->dims, x->rank * sizeof(Dim)) == 0;
  rule_shape_text(x, sx, sizeof sx);
  rule_shape_text(y, sy, sizeof sy);
  return vm_error(vm, shape ? EK_dtype : EK_shape, "%s: the state's value %u is %s%s, the body gives %s%s", who, leaf,
                  dtype_name(x->dtype), sx, dtype_name(y->dtype), sy);
}

/* The state after a trip (owned) must be of the types before it; weak numbers take the dtype of the state. With
 * `settling`, weak numbers of the state may take the dtype that the body gives: *settled says that one would. In a
 * later trip (the first may have given the weak number back) they may still become strong in the dtype they have. */
static WeftStatus same_state(Vm *vm, const char *who, Value before, Value *after, bool settling, bool *settled) {
  if (before.kind == V_NUM && after->kind == V_NUM && before.dtype == after->dtype &&
      value_is_weak(before) == value_is_weak(*after))
    return WEFT_OK;
  if (!tree_same(vm, before, *after))
    return tree_error(vm, "%s: the body gives %s of another structure than the state", who,
                      value_type_phrase(*after));
  Leaves a = {0}, b = {0};
  bool changed = false, takes = false;
  u32 next = 0;
  Value types = value_hole();
  WeftStatus status = tree_leaves_of(vm, before, &a);
  if (status == WEFT_OK) status = tree_leaves_of(vm, *after, &b);
  for (u32 i = 0; i < a.count && status == WEFT_OK; i++) {
    ArrayType x, y;
    tree_leaf_type(a.data[i], &x);
    tree_leaf_type(b.data[i], &y);
    bool shape = x.rank == y.rank && memcmp(x.dims, y.dims, x.rank * sizeof(Dim)) == 0;
    if (shape && x.dtype == y.dtype && x.weak == y.weak) continue;
    if (shape && x.weak && (settling ? dtype_kind(x.dtype) <= dtype_kind(y.dtype) : x.dtype == y.dtype)) {
      a.data[i] = b.data[i];
      changed = true;
    } else if (shape && y.weak && dtype_kind(y.dtype) <= dtype_kind(x.dtype)) {
      takes = true;
    } else {
      status = state_differs(vm, who, i, &x, &y);
    }
  }
  if (status == WEFT_OK && (changed || takes)) status = tree_with(vm, before, a.data, &next, &types);
  if (status == WEFT_OK && takes) status = tree_take_types(vm, who, types, after, &takes);
  if (settled) *settled = changed;
  value_drop(vm, types);
  leaves_free(vm, &a);
  leaves_free(vm, &b);
  return status;
}

/* What the constructs learn of their body before they run it. */
typedef struct Settle {
  const char *who;
  u32 op;
  /* args[state] is the state, owned by the caller: weak numbers in it are given the dtype that f gives */
  Value f, *args;
  u32 nargs, state;
  bool pair;      /* f gives (state, y) */
  bool need;      /* what f gives is wanted, whatever was checked before */
} Settle;

static WeftStatus settle(Vm *vm, const Settle *s, AbstractCall *call) {
  *call = (AbstractCall){.result = value_hole()};
  Value keyed[3] = {s->f, s->args[0], s->nargs > 1 ? s->args[1] : value_nil()};
  u64 key = checked_key(s->op, keyed, 3);
  if (!s->need && checked_before(vm, key)) return WEFT_OK;
  for (u32 try = 0; try < 4; try++) {
    value_drop(vm, call->result);
    if (record_abstract(vm, s->f, s->args, s->nargs, call) != WEFT_OK) return WEFT_ERROR;
    if (!call->known) break;
    Value got = call->result;
    if (s->pair && (got.kind != V_LIST || got.list->count != 2))
      return vm_error(vm, EK_type, "%s: f must give a list (carry, y), got %s", s->who, value_type_name(got));
    Value next = value_keep(s->pair ? got.list->items[0] : got);
    bool again = false, changed;
    WeftStatus status = same_state(vm, s->who, s->args[s->state], &next, true, &again);
    if (status == WEFT_OK && again) {
      if (try == 3) status = vm_error(vm, EK_dtype, "%s: the state does not keep its dtypes", s->who);
      else status = tree_take_types(vm, s->who, next, &s->args[s->state], &changed);
    }
    value_drop(vm, next);
    if (status != WEFT_OK) return WEFT_ERROR;
    if (!again) {
      if (try == 0) checked_now(vm, key);
      return WEFT_OK;
    }
  }
  return WEFT_OK;
}

/* Zero trips of a body that could not be run on types: a weak number's dtype is not known then. */
static WeftStatus zero_trips(Vm *vm, const char *who, Value state, const AbstractCall *call) {
  if (call->known || !call->why[0]) return WEFT_OK;
  Leaves leaves = {0};
  WeftStatus status = tree_leaves_of(vm, state, &leaves);
  bool weak = false;
  for (u32 i = 0; i < leaves.count; i++) {
    ArrayType t;
    tree_leaf_type(leaves.data[i], &t);
    weak |= t.weak;
  }
  leaves_free(vm, &leaves);
  if (status == WEFT_OK && weak)
    return vm_error(vm, EK_unsupported, "%s: zero trips, and the dtype that the body gives cannot be known: %s",
                    who, call->why);
  return status;
}

WeftStatus eager_while_loop(Vm *vm, Value *args, Value *out) {
  if (eager_need_fn(vm, "while_loop", "c", args[0]) != WEFT_OK ||
      eager_need_fn(vm, "while_loop", "b", args[1]) != WEFT_OK)
    return WEFT_ERROR;
  i64 limit = INT64_MAX, step = 0;
  if (args[3].kind != V_HOLE && args[3].kind != V_NIL &&
      (args[3].kind != V_NUM || !num_as_index(args[3], &limit) || limit < 0))
    return vm_error(vm, EK_type, "while_loop: max_steps must be a non-negative integer");
  Value state = value_keep(args[2]);
  AbstractCall call;
  WeftStatus status = settle(vm, &(Settle){.who = "while_loop", .op = OP_while_loop, .f = args[1], .args = &state,
                                           .nargs = 1}, &call);
  for (; step < limit && status == WEFT_OK; step++) {
    Value p, next, arg = value_keep(state);
    bool more = false;
    status = vm_call(vm, args[0], &arg, 1, &p);
    if (status == WEFT_OK) {
      status = truth_of(vm, "while_loop", "the condition", p, &more);
      value_drop(vm, p);
    }
    if (status == WEFT_OK && !more) break;
    if (status == WEFT_OK) status = vm_poll(vm, 1);
    if (status != WEFT_OK) break;
    arg = value_keep(state);
    status = vm_call(vm, args[1], &arg, 1, &next);
    if (status != WEFT_OK) break;
    status = same_state(vm, "while_loop", state, &next, step == 0, NULL);
    value_drop(vm, status == WEFT_OK ? state : next);
    if (status == WEFT_OK) state = next;
  }
  if (status == WEFT_OK && step == 0) status = zero_trips(vm, "while_loop", state, &call);
  value_drop(vm, call.result);
  if (status == WEFT_OK) *out = state;
  else value_drop(vm, state);
  return status;
}

static WeftStatus trip_bound(Vm *vm, const char *what, Value v, i64 *out) {
  v = value_untracked(v);
  if (v.kind == V_NUM && num_as_index(v, out)) return WEFT_OK;
  if (v.kind != V_NUM && v.kind != V_ARRAY)
    return vm_error(vm, EK_type, "fori_loop: %s must be an integer of rank 0, got %s", what, value_type_name(v));
  ArrayType t;
  char shape[80];
  tree_leaf_type(v, &t);
  rule_shape_text(&t, shape, sizeof shape);
  return vm_error(vm, EK_type, "fori_loop: %s must be an integer of rank 0, got %s%s", what,
                  dtype_name(t.dtype), shape);
}

WeftStatus eager_fori_loop(Vm *vm, Value *args, Value *out) {
  i64 lo = 0, hi = 0;
  if (trip_bound(vm, "lo", args[0], &lo) != WEFT_OK || trip_bound(vm, "hi", args[1], &hi) != WEFT_OK) return WEFT_ERROR;
  if (eager_need_fn(vm, "fori_loop", "b", args[2]) != WEFT_OK) return WEFT_ERROR;
  Value first[2] = {value_weak_i64(lo), value_keep(args[3])};
  AbstractCall call;
  WeftStatus status = settle(vm, &(Settle){.who = "fori_loop", .op = OP_fori_loop, .f = args[2], .args = first,
                                           .nargs = 2, .state = 1}, &call);
  Value state = first[1];
  for (i64 i = lo; i < hi && status == WEFT_OK; i++) {
    Value pair[2] = {value_weak_i64(i), value_keep(state)}, next;
    status = vm_call(vm, args[2], pair, 2, &next);
    if (status != WEFT_OK) break;
    status = same_state(vm, "fori_loop", state, &next, i == lo, NULL);
    value_drop(vm, status == WEFT_OK ? state : next);
    if (status == WEFT_OK) state = next;
  }
  if (status == WEFT_OK && lo >= hi) status = zero_trips(vm, "fori_loop", state, &call);
  value_drop(vm, call.result);
  if (status == WEFT_OK) *out = state;
  else value_drop(vm, state);
  return status;
}

/* ---- scan ---------------------------------------------------------------------------------------------------- */

/* The common length of all leaves along the axis. */
static WeftStatus scan_length(Vm *vm, const Leaves *xs, i64 axis, i64 *length) {
  for (u32 i = 0; i < xs->count; i++) {
    Value v = xs->data[i];
    v = value_untracked(v);
    i64 rank = v.kind == V_ARRAY ? array_rank(v.array) : 0, at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
      return vm_error(vm, EK_index, "scan: axis %lld is out of range for xs of rank %lld", (long long)axis,
                      (long long)rank);
    i64 n = array_dims(v.array)[at];
    if (*length >= 0 && n != *length)
      return vm_error(vm, EK_shape, "scan: lengths differ: %lld and %lld", (long long)*length, (long long)n);
    *length = n;
  }
  return WEFT_OK;
}

/* What f gives, found out on types: weak numbers of the carry are given the dtype that it gives. */
static WeftStatus settle_scan(Vm *vm, Value f, Value xs, const Leaves *leaves, i64 axis, bool need, Value *carry,
                              AbstractCall *call) {
  Lanes items = {0};
  Value args[2] = {*carry, value_nil()};
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < leaves->count && status == WEFT_OK; i++) {
    ArrayType t;
    Value item;
    tree_leaf_type(leaves->data[i], &t);
    u32 at = (u32)(axis < 0 ? axis + t.rank : axis);
    t.rank--;
    memmove(t.dims + at, t.dims + at + 1, sizeof t.dims[0] * (t.rank - at));
    status = tree_zero(vm, &t, &item);
    if (status == WEFT_OK && !vec_push(&vm->alloc, &items, item)) {
      value_drop(vm, item);
      status = vm_error_memory(vm);
    }
  }
  u32 next = 0;
  if (status == WEFT_OK) status = tree_with(vm, xs, items.data, &next, &args[1]);
  if (status == WEFT_OK)
    status = settle(vm, &(Settle){.who = "scan", .op = OP_scan, .f = f, .args = args, .nargs = 2, .pair = true,
                                  .need = need}, call);
  *carry = args[0];
  value_drop(vm, args[1]);
  lanes_free(vm, &items);
  return status;
}

/* The stacked results of no trips: arrays of shape (0, …). */
static WeftStatus empty_leaves(Vm *vm, Value y, u32 device, Lanes *out, Value *tree) {
  Leaves leaves = {0};
  WeftStatus status = tree_leaves_of(vm, y, &leaves);
  *tree = value_keep(y);
  for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
    ArrayType t;
    Value v;
    tree_leaf_type(leaves.data[i], &t);
    if (t.rank == TYPE_MAX_RANK) {
      status = vm_error(vm, EK_shape, "scan: y has too many axes to be stacked");
      break;
    }
    memmove(t.dims + 1, t.dims, sizeof t.dims[0] * t.rank);
    t.dims[0] = 0;
    t.rank++;
    if (status == WEFT_OK) status = array_new_zero(vm, t.dtype, t.rank, t.dims, &v);
    if (status == WEFT_OK) status = lanes_taken(vm, t.rank > 1 ? t.device : device, &v);
    if (status == WEFT_OK && !vec_push(&vm->alloc, out, v)) {
      value_drop(vm, v);
      status = vm_error_memory(vm);
    }
  }
  leaves_free(vm, &leaves);
  return status;
}

/* Leaves *out alone when the argument was not given. */
static bool whole_number(Value v, i64 *out) {
  if (v.kind == V_HOLE || v.kind == V_NIL) return true;
  return v.kind == V_NUM && v.dtype != DT_bool && num_as_index(v, out);
}

WeftStatus eager_scan(Vm *vm, Value *args, Value *out) {
  i64 length = -1, axis = 0;
  bool flag = args[4].kind == V_NUM && args[4].dtype == DT_bool, reverse = flag && args[4].i;
  if (eager_need_fn(vm, "scan", "f", args[0]) != WEFT_OK) return WEFT_ERROR;
  bool lasts = args[3].kind == V_HOLE || args[3].kind == V_NIL || (whole_number(args[3], &length) && length >= 0);
  if (!lasts) return vm_error(vm, EK_type, "scan: length must be a non-negative integer");
  if (!flag && args[4].kind != V_HOLE && args[4].kind != V_NIL)
    return vm_error(vm, EK_type, "scan: reverse must be true or false");
  if (!whole_number(args[5], &axis)) return vm_error(vm, EK_type, "scan: axis must be an integer");
  Value xs = args[2].kind == V_HOLE ? value_nil() : args[2];
  Leaves leaves = {0}, parts = {0};
  Lanes slices = {0}, results = {0};
  Value carry = value_keep(args[1]), ys = value_nil(), tree = value_nil();
  u32 width = 0;
  u32 device = DEV_CPU; /* of numbers that are stacked: where xs lie, or the state */
  WeftStatus status = tree_leaves_of(vm, xs, &leaves);
  if (status == WEFT_OK) device = lanes_device(leaves.data, leaves.count);
  if (status == WEFT_OK && device == DEV_CPU) status = tree_leaves_of(vm, carry, &parts);
  if (parts.count) device = lanes_device(parts.data, parts.count);
  if (status == WEFT_OK) status = scan_length(vm, &leaves, axis, &length);
  if (status == WEFT_OK && length < 0) status = vm_error(vm, EK_type, "scan: without xs it needs a length");
  AbstractCall call = {.result = value_hole()};
  if (status == WEFT_OK) status = settle_scan(vm, args[0], xs, &leaves, axis, length == 0, &carry, &call);
  if (status == WEFT_OK && length == 0)
    status = call.known ? empty_leaves(vm, call.result.list->items[1], device, &slices, &tree)
                        : vm_error(vm, EK_unsupported,
                                   "scan: zero trips, and what f gives cannot be known: %s", call.why);
  value_drop(vm, call.result);
  /* so that a carry that is stacked as well has two uses, as it has in a graph */
  if (status == WEFT_OK) status = tape_fresh(vm, &carry);
  for (i64 t = 0; t < length && status == WEFT_OK; t++) {
    i64 at = reverse ? length - 1 - t : t;
    Value pair[2] = {value_keep(carry), value_nil()}, got = value_nil();
    for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
      Value v = leaves.data[i], part;
      Value plain = value_untracked(v);
      i64 ax = axis < 0 ? axis + (i64)array_rank(plain.array) : axis;
      status = lane_slice(vm, v, ax, at, &part);
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
    Value next_carry = value_hole();
    if (got.kind != V_LIST || got.list->count != 2) {
      status = vm_error(vm, EK_type, "scan: f must give a list (carry, y), got %s", value_type_name(got));
    } else {
      next_carry = value_keep(got.list->items[0]);
      status = same_state(vm, "scan", carry, &next_carry, t == 0, NULL);
      if (status == WEFT_OK) status = tape_fresh(vm, &next_carry);
    }
    if (status == WEFT_OK && t > 0 && !tree_same(vm, tree, got.list->items[1]))
      status = tree_error(vm, "scan: y changes its structure");
    if (status == WEFT_OK) {
      value_drop(vm, carry);
      carry = next_carry;
      next_carry = value_hole();
      if (t == 0) tree = value_keep(got.list->items[1]);
      parts.count = 0;
      status = tree_leaves_of(vm, got.list->items[1], &parts);
      width = parts.count;
      for (u32 i = 0; i < parts.count && status == WEFT_OK; i++)
        if (!lanes_push(vm, &results, value_keep(parts.data[i]))) status = WEFT_ERROR;
    }
    value_drop(vm, next_carry);
    value_drop(vm, got);
  }
  if (status == WEFT_OK) {
    for (u32 i = 0; i < width && status == WEFT_OK; i++) {
      Value stacked;
      status = lanes_stack(vm, results.data + i, (u32)length, width, reverse, 0, device, &stacked);
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
  lanes_free(vm, &slices);
  lanes_free(vm, &results);
  leaves_free(vm, &leaves);
  leaves_free(vm, &parts);
  return status;
}

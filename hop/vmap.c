/* vmap.c — vmap run eagerly: lane by lane, results stacked, so that whatever a function does it does for each lane, and
 * random numbers of the global stream are drawn lane after lane. Compiled code batches instead (record_vmap.c). And
 * associative_scan, in the order that ir.md gives scans. */
#include "hop/vmap.h"

#include "hop/lanes.h"
#include "hop/tree.h"
#include "tracer/record/abstract.h"

enum { NOT_MAPPED = INT32_MIN };

typedef VEC(i32) AxisVec;

/* ---- axes ------------------------------------------------------------------------------------ */

static WeftStatus check_spec(Vm *vm, const char *what, Value spec, u32 depth) {
  i64 axis;
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(vm);
  if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
  if (depth > TREE_DEPTH) return vm_error(vm, EK_limit, "a tree is nested deeper than %d", TREE_DEPTH);
  if (spec.kind == V_NIL || (spec.kind == V_NUM && num_as_index(spec, &axis) && axis > -64 && axis < 64))
    return WEFT_OK;
  if (spec.kind != V_LIST && spec.kind != V_RECORD)
    return vm_error(vm, EK_type, "vmap: %s must be an axis, nil, or a tree of these, got %s", what,
                    value_type_name(spec));
  u32 n = spec.kind == V_LIST ? spec.list->count : spec.record->shape->count;
  for (u32 i = 0; i < n; i++)
    if (check_spec(vm, what, spec.kind == V_LIST ? spec.list->items[i] : spec.record->items[i], depth + 1) != WEFT_OK)
      return WEFT_ERROR;
  return WEFT_OK;
}

/* An axis for each leaf of the tree, as the specification says; a single one counts for all leaves below. */
static WeftStatus lanes_spread(Vm *vm, const char *what, Value spec, Value tree, AxisVec *out) {
  if (spec.kind == V_NIL || spec.kind == V_NUM) {
    Leaves leaves = {0};
    i64 axis = 0;
    bool ok = tree_leaves_of(vm, tree, &leaves) == WEFT_OK;
    if (spec.kind == V_NUM) (void)num_as_index(spec, &axis);
    for (u32 i = 0; i < leaves.count && ok; i++)
      ok = vec_push(&vm->alloc, out, spec.kind == V_NIL ? NOT_MAPPED : (i32)axis) || vm_error_memory(vm) == WEFT_OK;
    leaves_free(vm, &leaves);
    return ok ? WEFT_OK : WEFT_ERROR;
  }
  if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
  u32 n = spec.kind == V_LIST ? spec.list->count : spec.record->shape->count;
  bool fits = tree.kind == spec.kind && (spec.kind == V_LIST ? tree.list->count : tree.record->shape->count) == n;
  for (u32 i = 0; i < n && fits; i++) {
    Name key = spec.kind == V_RECORD ? tree.record->shape->keys[i] : 0;
    Value *part = spec.kind == V_RECORD ? record_find(spec.record, key) : &spec.list->items[i];
    if (!part) fits = false;
    else if (lanes_spread(vm, what, *part, spec.kind == V_RECORD ? tree.record->items[i] : tree.list->items[i],
                          out) != WEFT_OK)
      return WEFT_ERROR;
  }
  return fits ? WEFT_OK : vm_error(vm, EK_type, "vmap: %s has another structure than the values", what);
}

/* The axis of a value with `rank` axes, counted from 0. */
static WeftStatus real_axis(Vm *vm, const char *what, i32 axis, u32 rank, i64 *out) {
  *out = axis < 0 ? axis + (i64)rank : axis;
  if (*out >= 0 && *out < (i64)rank) return WEFT_OK;
  return vm_error(vm, EK_index, "vmap: axis %d of %s is out of range for rank %u", axis, what, rank);
}

WeftStatus eager_vmap(Vm *vm, Value *args, Value *out) {
  Value in = args[1].kind == V_HOLE ? value_weak_i64(0) : args[1],
      to = args[2].kind == V_HOLE ? value_weak_i64(0) : args[2], settings;
  if (args[0].kind != V_FN && args[0].kind != V_DTYPE)
    return vm_error(vm, EK_type, "vmap: f must be a function, got %s", value_type_name(args[0]));
  if (check_spec(vm, "in_axes", in, 0) != WEFT_OK || check_spec(vm, "out_axes", to, 0) != WEFT_OK) return WEFT_ERROR;
  if (to.kind == V_NIL) return vm_error(vm, EK_type, "vmap: out_axes must be an axis, or a tree of axes and nil");
  if (!list_from(vm, (Value[]){in, to}, 2, &settings)) return WEFT_ERROR;
  return fn_transform(vm, TF_vmap, value_keep(args[0]), settings, out) ? WEFT_OK : WEFT_ERROR;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* The arguments of a lane, or their types' zeros: made[nargs] owned. */
static WeftStatus lane_args(Vm *vm, const Value *args, u32 nargs, const Leaves *leaves, const AxisVec *axes, i64 lane,
                            Value *made) {
  Lanes parts = {0};
  u32 count = 0, next = 0;
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < leaves->count && status == WEFT_OK; i++) {
    Value v = leaves->data[i], part = value_hole();
    if (axes->data[i] == NOT_MAPPED) {
      part = value_keep(v);
    } else if (lane >= 0) {
      status = lane_slice(vm, v, axes->data[i], lane, &part);
    } else {
      ArrayType t;
      tree_leaf_type(v, &t);
      t.rank--;
      for (u32 d = (u32)axes->data[i]; d < t.rank; d++) t.dims[d] = t.dims[d + 1];
      status = tree_zero(vm, &t, &part);
    }
    if (status == WEFT_OK && !lanes_push(vm, &parts, part)) status = WEFT_ERROR;
  }
  for (; count < nargs && status == WEFT_OK; count++) {
    made[count] = value_hole();
    status = tree_with(vm, args[count], parts.data, &next, &made[count]);
  }
  if (status != WEFT_OK)
    while (count) value_drop(vm, made[--count]);
  lanes_free(vm, &parts);
  return status;
}

/* Results of all lanes, width leaves each, as one tree like `tree`; lanes 0: arrays without elements. */
static WeftStatus lanes_join(Vm *vm, Value spec, Value tree, const Lanes *results, u32 width, u32 lanes, u32 device,
                             Value *out) {
  AxisVec axes = {0};
  Lanes made = {0};
  Leaves leaves = {0};
  u32 next = 0;
  WeftStatus status = lanes_spread(vm, "out_axes", spec, tree, &axes);
  if (status == WEFT_OK) status = tree_leaves_of(vm, tree, &leaves);
  for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
    ArrayType t;
    i64 axis = 0;
    Value v = value_hole();
    tree_leaf_type(leaves.data[i], &t);
    if (axes.data[i] == NOT_MAPPED) {
      v = value_keep(leaves.data[i]);
    } else if (t.rank == TYPE_MAX_RANK) {
      status = vm_error(vm, EK_shape, "vmap: a result has too many axes");
    } else if ((status = real_axis(vm, "a result", axes.data[i], t.rank + 1u, &axis)) == WEFT_OK && lanes) {
      status = lanes_stack(vm, results->data + i, lanes, width, false, axis, device, &v);
    } else if (status == WEFT_OK) {
      for (u32 d = t.rank; d > (u32)axis; d--) t.dims[d] = t.dims[d - 1];
      t.dims[axis] = 0;
      status = array_new_zero(vm, t.dtype, t.rank + 1u, t.dims, &v);
      if (status == WEFT_OK) status = lanes_taken(vm, t.rank ? t.device : device, &v);
    }
    if (status == WEFT_OK && !lanes_push(vm, &made, v)) status = WEFT_ERROR;
  }
  if (status == WEFT_OK) status = tree_with(vm, tree, made.data, &next, out);
  lanes_free(vm, &made);
  leaves_free(vm, &leaves);
  vec_free(&vm->alloc, &axes);
  return status;
}

/* Which leaves are mapped, along which axis, and how many lanes there are. */
static WeftStatus lanes_map_args(Vm *vm, Value spec, Value *args, const Name *names, u32 nargs, Leaves *leaves,
                                 AxisVec *axes, i64 *lanes) {
  u32 positional = 0;
  for (u32 a = 0; a < nargs; a++) positional += !(names && names[a]);
  if (spec.kind == V_LIST && spec.list->count != positional)
    return vm_error(vm, EK_type, "vmap: in_axes names %u arguments, %u are given by position", spec.list->count,
                    positional);
  *lanes = -1;
  for (u32 a = 0, k = 0; a < nargs; a++) {
    bool named = names && names[a];
    Value own = spec.kind == V_LIST ? named ? value_weak_i64(0) : spec.list->items[k] : spec;
    k += !named;
    u32 from = leaves->count;
    if (tree_leaves_of(vm, args[a], leaves) != WEFT_OK || lanes_spread(vm, "in_axes", own, args[a], axes) != WEFT_OK)
      return WEFT_ERROR;
    for (u32 i = from; i < leaves->count; i++) {
      ArrayType t;
      i64 axis;
      if (axes->data[i] == NOT_MAPPED) continue;
      tree_leaf_type(leaves->data[i], &t);
      if (t.rank == 0)
        return vm_error(vm, EK_shape, "vmap: argument %u is a number of rank 0: it has no axis to map over; "
                                      "in_axes may be nil for it", a);
      if (real_axis(vm, "an argument", axes->data[i], t.rank, &axis) != WEFT_OK) return WEFT_ERROR;
      axes->data[i] = (i32)axis;
      if (*lanes >= 0 && t.dims[axis] != *lanes)
        return vm_error(vm, EK_shape, "vmap: argument %u has %lld lanes along axis %lld, others have %lld", a,
                        (long long)t.dims[axis], (long long)axis, (long long)*lanes);
      *lanes = t.dims[axis];
    }
  }
  if (*lanes < 0) return vm_error(vm, EK_type, "vmap: no argument is mapped over");
  if (*lanes > UINT32_MAX / 2) return vm_error(vm, EK_limit, "vmap: %lld lanes", (long long)*lanes);
  return WEFT_OK;
}

WeftStatus call_vmap(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out) {
  Leaves leaves = {0}, parts = {0};
  AxisVec axes = {0};
  Lanes results = {0};
  Value tree = value_hole(), *made = mem_alloc(&vm->alloc, sizeof *made * (nargs + 1));
  i64 lanes = 0;
  u32 width = 0;
  if (!made) return vm_error_memory(vm);
  WeftStatus status = lanes_map_args(vm, fn->settings.list->items[0], args, names, nargs, &leaves, &axes, &lanes);
  for (i64 i = 0; i < lanes && status == WEFT_OK; i++) {
    Value got;
    status = vm_poll(vm, 1);
    if (status == WEFT_OK) status = lane_args(vm, args, nargs, &leaves, &axes, i, made);
    if (status == WEFT_OK) status = vm_call_named(vm, fn->inner, made, names, nargs, &got);
    if (status != WEFT_OK) break;
    if (i == 0) tree = value_keep(got);
    else if (!tree_same(vm, tree, got))
      status = tree_error(vm, "vmap: f gives %s of another structure for lane %lld than for lane 0",
                          value_type_phrase(got), (long long)i);
    parts.count = 0;
    if (status == WEFT_OK) status = tree_leaves_of(vm, got, &parts);
    width = parts.count;
    for (u32 k = 0; k < width && status == WEFT_OK; k++)
      if (!lanes_push(vm, &results, value_keep(parts.data[k]))) status = WEFT_ERROR;
    value_drop(vm, got);
  }
  if (status == WEFT_OK && lanes == 0) {
    AbstractCall call;
    status = lane_args(vm, args, nargs, &leaves, &axes, -1, made);
    if (status == WEFT_OK) {
      status = record_abstract(vm, fn->inner, made, nargs, &call);
      for (u32 a = 0; a < nargs; a++) value_drop(vm, made[a]);
      if (status == WEFT_OK && !call.known)
        status = vm_error(vm, EK_unsupported, "vmap: no lanes, and what f gives cannot be known: %s", call.why);
      tree = call.result;
    }
  }
  u32 device = DEV_CPU;
  for (u32 i = 0; i < leaves.count && i < axes.count && device == DEV_CPU; i++)
    if (axes.data[i] != NOT_MAPPED) device = lanes_device(&leaves.data[i], 1);
  if (status == WEFT_OK)
    status = lanes_join(vm, fn->settings.list->items[1], tree, &results, width, (u32)lanes, device, out);
  mem_free(&vm->alloc, made, sizeof *made * (nargs + 1));
  value_drop(vm, tree);
  lanes_free(vm, &results);
  leaves_free(vm, &leaves);
  leaves_free(vm, &parts);
  vec_free(&vm->alloc, &axes);
  return status;
}

/* ---- associative_scan ------------------------------------------------------------------------ */

enum { SEGMENT = 16 };

static WeftStatus lanes_combine(Vm *vm, Value f, Value a, Value b, Value *out) {
  Value pair[2] = {value_keep(a), value_keep(b)};
  if (vm_poll(vm, 1) != WEFT_OK) {
    value_drop(vm, pair[0]);
    value_drop(vm, pair[1]);
    return WEFT_ERROR;
  }
  if (vm_call(vm, f, pair, 2, out) != WEFT_OK) return WEFT_ERROR;
  if (tree_same(vm, a, *out)) return WEFT_OK;
  WeftStatus status = tree_error(vm, "associative_scan: f gives %s of another structure than the items",
                                 value_type_phrase(*out));
  value_drop(vm, *out);
  return status;
}

/* The running combinations of items in place: segments in order, their totals by the same rule, then total before with
 * local. The depth is the logarithm of n. */
static WeftStatus lanes_running(Vm *vm, Value f, Value *items, u32 n) {
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < n && status == WEFT_OK; i++) {
    Value next;
    if (i % SEGMENT == 0) continue;
    status = lanes_combine(vm, f, items[i - 1], items[i], &next);
    if (status != WEFT_OK) break;
    value_drop(vm, items[i]);
    items[i] = next;
  }
  if (n <= SEGMENT || status != WEFT_OK) return status;
  Lanes totals = {0};
  u32 segments = (n - 1) / SEGMENT; /* those with one behind them */
  for (u32 k = 0; k < segments && status == WEFT_OK; k++)
    if (!lanes_push(vm, &totals, value_keep(items[k * SEGMENT + SEGMENT - 1]))) status = WEFT_ERROR;
  if (status == WEFT_OK) status = lanes_running(vm, f, totals.data, segments);
  for (u32 i = SEGMENT; i < n && status == WEFT_OK; i++) {
    Value next;
    status = lanes_combine(vm, f, totals.data[i / SEGMENT - 1], items[i], &next);
    if (status != WEFT_OK) break;
    value_drop(vm, items[i]);
    items[i] = next;
  }
  lanes_free(vm, &totals);
  return status;
}

WeftStatus eager_associative_scan(Vm *vm, Value *args, Value *out) {
  i64 axis = 0, n = -1;
  bool reverse = args[3].kind == V_NUM && args[3].i;
  Leaves leaves = {0}, parts = {0};
  Lanes items = {0}, all = {0};
  if (args[0].kind != V_FN)
    return vm_error(vm, EK_type, "associative_scan: f must be a function, got %s", value_type_name(args[0]));
  if (args[2].kind != V_HOLE && !num_as_index(args[2], &axis))
    return vm_error(vm, EK_type, "associative_scan: axis must be an integer");
  AxisVec axes = {0};
  WeftStatus status = tree_leaves_of(vm, args[1], &leaves);
  if (status == WEFT_OK && leaves.count == 0)
    status = vm_error(vm, EK_type, "associative_scan: xs must be an array, or a tree of arrays, got %s",
                      value_type_name(args[1]));
  for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
    ArrayType t;
    tree_leaf_type(leaves.data[i], &t);
    i64 at = axis < 0 ? axis + t.rank : axis;
    if (at < 0 || at >= t.rank)
      status = vm_error(vm, EK_index, "associative_scan: axis %lld is out of range for xs of rank %u",
                        (long long)axis, t.rank);
    else if (n >= 0 && t.dims[at] != n)
      status = vm_error(vm, EK_shape, "associative_scan: lengths differ: %lld and %lld", (long long)n,
                        (long long)t.dims[at]);
    else if (!vec_push(&vm->alloc, &axes, (i32)at)) status = vm_error_memory(vm);
    else n = t.dims[at];
  }
  if (status == WEFT_OK && n == 0) {
    *out = value_keep(args[1]);
    goto done;
  }
  for (i64 i = 0; i < n && status == WEFT_OK; i++) {
    Value item;
    status = lane_args(vm, &args[1], 1, &leaves, &axes, reverse ? n - 1 - i : i, &item);
    if (status == WEFT_OK && !lanes_push(vm, &items, item)) status = WEFT_ERROR;
  }
  if (status == WEFT_OK) status = lanes_running(vm, args[0], items.data, items.count);
  for (u32 i = 0; i < items.count && status == WEFT_OK; i++) {
    parts.count = 0;
    status = tree_leaves_of(vm, items.data[reverse ? items.count - 1 - i : i], &parts);
    for (u32 k = 0; k < parts.count && status == WEFT_OK; k++)
      if (!lanes_push(vm, &all, value_keep(parts.data[k]))) status = WEFT_ERROR;
  }
  if (status == WEFT_OK)
    status = lanes_join(vm, value_weak_i64(axis), items.data[0], &all, leaves.count, items.count,
                        lanes_device(leaves.data, leaves.count), out);
done:
  lanes_free(vm, &items);
  lanes_free(vm, &all);
  leaves_free(vm, &leaves);
  leaves_free(vm, &parts);
  vec_free(&vm->alloc, &axes);
  return status;
}

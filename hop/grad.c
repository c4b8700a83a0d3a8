/* grad.c — derivatives on the eager tape: grad, value_and_grad, vjp, jvp, stop_gradient. */
#include "hop/grad.h"

#include <string.h>

#include "hop/pullback.h"
#include "hop/tree.h"


static const char *eager_grad_who_of(u32 transform) {
  return transform == TF_grad ? "grad" : transform == TF_value_and_grad ? "value_and_grad" : "vjp";
}

static WeftStatus eager_grad_need_fn(Vm *vm, const char *who, Value f) {
  if (f.kind == V_FN) return WEFT_OK;
  return vm_error(vm, EK_type, "%s: f must be a function, got %s", who, value_type_name(f));
}

/* ---- variables --------------------------------------------------------------------------------------------- */

/* A leaf of an argument as a variable: *out owned. Weak integers count as f64. */
static WeftStatus eager_grad_variable(Vm *vm, Tape *t, const char *who, u32 arg, bool mixed, Value leaf, Value *out) {
  Value v = value_untracked(leaf), x = value_keep(leaf);
  if (mixed && dtype_kind(v.kind == V_ARRAY ? array_dtype(v.array) : v.dtype) < DK_FLOAT) {
    t->nodes++; /* one that nothing reaches */
    *out = x;
    return WEFT_OK;
  }
  if (v.kind == V_NUM && value_is_weak(v) && dtype_kind(v.dtype) == DK_INT) x = value_weak_f64(num_as_f64(v));
  else if (dtype_kind(v.dtype) < DK_FLOAT) {
    value_drop(vm, x);
    return vm_error(vm, EK_dtype, "%s: argument %u is %s; a derivative is taken of floats, f64(x) makes one", who, arg,
                    dtype_name(v.dtype));
  }
  return tape_variable(vm, t, x, out);
}

/* The tree with its leaves as variables of the tape, numbered on from t->nodes: *out owned. */
static WeftStatus variables(Vm *vm, Tape *t, const char *who, u32 arg, bool mixed, Value tree, Value *out) {
  Leaves leaves = {0}, made = {0};
  WeftStatus status = tree_leaves_of(vm, tree, &leaves);
  if (status == WEFT_OK && leaves.count == 0 && !mixed)
    status = vm_error(vm, EK_type, "%s: argument %u must be a number, an array, or a list or record of them, got %s%s",
                      who, arg, value_type_name(tree),
                      tree.kind == V_LIST || tree.kind == V_RECORD ? " that holds none" : "");
  for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
    Value v;
    status = eager_grad_variable(vm, t, who, arg, mixed, leaves.data[i], &v);
    if (status == WEFT_OK && !vec_push(&vm->alloc, &made, v)) {
      value_drop(vm, v);
      status = vm_error_memory(vm);
    }
  }
  u32 next = 0;
  if (status == WEFT_OK) status = tree_with(vm, tree, made.data, &next, out);
  for (u32 i = 0; i < made.count; i++) value_drop(vm, made.data[i]);
  leaves_free(vm, &made);
  leaves_free(vm, &leaves);
  return status;
}

/* Runs f, interpreted with all that it calls: compiled regions know nothing of tapes. args are consumed. */
static WeftStatus call_under(Vm *vm, Value f, Value *args, const Name *names, u32 nargs, Value *out) {
  Value interpreted;
  if (!fn_transform(vm, TF_eager, value_keep(f), value_nil(), &interpreted)) {
    for (u32 i = 0; i < nargs; i++) value_drop(vm, args[i]);
    return WEFT_ERROR;
  }
  WeftStatus status = vm_call_named(vm, interpreted, args, names, nargs, out);
  value_drop(vm, interpreted);
  return status;
}

/* The gradient of the variables from *node on in the shape of the tree: *out owned. Zeros where nothing came. */
static WeftStatus gather(Vm *vm, Value tree, const Value *grads, u32 *node, Value *out) {
  Leaves leaves = {0}, made = {0};
  WeftStatus status = tree_leaves_of(vm, tree, &leaves);
  for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
    Value g = grads[(*node)++], v = value_hole();
    if (g.kind == V_HOLE) {
      ArrayType t;
      tape_type(leaves.data[i], &t);
      if (dtype_kind(t.dtype) < DK_FLOAT) t.dtype = DT_f64;
      status = tape_zeros(vm, &t, &v);
    } else {
      v = value_keep(g);
    }
    if (status == WEFT_OK && !vec_push(&vm->alloc, &made, v)) {
      value_drop(vm, v);
      status = vm_error_memory(vm);
    }
  }
  u32 next = 0;
  if (status == WEFT_OK) status = tree_with(vm, tree, made.data, &next, out);
  for (u32 i = 0; i < made.count; i++) value_drop(vm, made.data[i]);
  leaves_free(vm, &made);
  leaves_free(vm, &leaves);
  return status;
}

static Value *grads_new(Vm *vm, const Tape *t) {
  Value *grads = mem_alloc(&vm->alloc, sizeof *grads * (t->nodes + 1));
  if (!grads) (void)vm_error_memory(vm);
  for (u32 i = 0; grads && i <= t->nodes; i++) grads[i] = value_hole();
  return grads;
}

static void grads_free(Vm *vm, const Tape *t, Value *grads) {
  for (u32 i = 0; grads && i <= t->nodes; i++) value_drop(vm, grads[i]);
  if (grads) mem_free(&vm->alloc, grads, sizeof *grads * (t->nodes + 1));
}

/* ---- grad ----------------------------------------------------------------------------------------------------- */

/* Positions of arguments, counted from the last where they are negative. *out owned: an integer, or a list of its
 * own. */
static WeftStatus read_argnum(Vm *vm, const char *who, Value v, Value *out) {
  i64 n;
  bool list = v.kind == V_LIST;
  if (list && v.list->count == 0) return vm_error(vm, EK_value, "%s: argnum names no argument", who);
  if (list && !list_new(vm, v.list->count, out)) return WEFT_ERROR;
  for (u32 i = 0; i < (list ? v.list->count : 1); i++) {
    if (!num_as_index(list ? v.list->items[i] : v, &n)) {
      if (list) value_drop(vm, *out);
      return vm_error(vm, EK_type, "%s: argnum must be the position of an argument, or a list of positions", who);
    }
    if (!list) *out = value_weak_i64(n);
    else if (!list_push(vm, out, value_weak_i64(n))) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

static WeftStatus eager_grad_make(Vm *vm, u32 transform, Value *args, Value *out) {
  Value argnum = args[1].kind == V_HOLE ? value_weak_i64(0) : args[1];
  if (eager_grad_need_fn(vm, eager_grad_who_of(transform), args[0]) != WEFT_OK ||
      read_argnum(vm, eager_grad_who_of(transform), argnum, &argnum) != WEFT_OK)
    return WEFT_ERROR;
  return fn_transform(vm, transform, value_keep(args[0]), argnum, out) ? WEFT_OK : WEFT_ERROR;
}

WeftStatus eager_grad(Vm *vm, Value *args, Value *out) { return eager_grad_make(vm, TF_grad, args, out); }
WeftStatus eager_value_and_grad(Vm *vm, Value *args, Value *out) {
  return eager_grad_make(vm, TF_value_and_grad, args, out);
}

/* The result must be a float of rank 0; *seed: 1 in its dtype. */
static WeftStatus check_result(Vm *vm, const char *who, Value y, Value *seed) {
  ArrayType t;
  Value plain = value_untracked(y);
  if (!value_is_numeric(plain))
    return vm_error(vm, EK_type, "%s: f must give a number of rank 0, got %s", who, value_type_name(y));
  tape_type(plain, &t);
  if (t.rank) {
    char shape[80];
    rule_shape_text(&t, shape, sizeof shape);
    return vm_error(vm, EK_shape, "%s: f must give a number of rank 0, got an array of shape %s", who, shape);
  }
  if (t.weak && dtype_kind(t.dtype) == DK_INT) t.dtype = DT_f64;
  if (dtype_kind(t.dtype) != DK_FLOAT)
    return vm_error(vm, EK_dtype, "%s: f must give a float, got %s", who, dtype_name(t.dtype));
  *seed = num_convert_unchecked(value_f64(1), t.dtype);
  seed->flags = 0;
  return WEFT_OK;
}

/* The arguments that argnum names, by position among those without a name: at[i], one for each of *count. `place`
 * has room for as many numbers as there are arguments. */
static WeftStatus find_args(Vm *vm, const char *who, Value argnum, const Name *names, u32 nargs, u32 *place, u32 *at) {
  u32 count = argnum.kind == V_LIST ? argnum.list->count : 1, positional = 0;
  for (u32 a = 0; a < nargs; a++)
    if (!(names && names[a])) place[positional++] = a;
  for (u32 i = 0; i < count; i++) {
    i64 n = 0;
    (void)num_as_index(argnum.kind == V_LIST ? argnum.list->items[i] : argnum, &n);
    i64 k = n < 0 ? n + positional : n;
    if (k < 0 || k >= positional)
      return vm_error(vm, EK_type, "%s: argument %lld is not given%s", who, (long long)n,
                      positional < nargs ? " by position" : "");
    if (place[k] == nargs) return vm_error(vm, EK_value, "%s: argnum names argument %lld twice", who, (long long)n);
    at[i] = place[k];
    place[k] = nargs;
  }
  return WEFT_OK;
}

/* grad of f at args, of which `passed` is a copy (consumed) and at[count] the chosen ones. */
static WeftStatus grad_at(Vm *vm, Fn *fn, const Value *args, Value *passed, const Name *names, u32 nargs, const u32 *at,
                          u32 count, Value *out) {
  const char *who = eager_grad_who_of(fn->transform);
  u32 y_node = 0, node = 1;
  Value y = value_hole(), plain = value_hole(), seed = value_hole(), result = value_hole(), *grads = NULL;
  Tape *t = tape_open(vm);
  WeftStatus status = t ? WEFT_OK : WEFT_ERROR;
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    Value tree;
    status = variables(vm, t, who, at[i], false, args[at[i]], &tree);
    if (status != WEFT_OK) break;
    value_drop(vm, passed[at[i]]);
    passed[at[i]] = tree;
  }
  if (status != WEFT_OK) {
    for (u32 a = 0; a < nargs; a++) value_drop(vm, passed[a]);
    if (!t) return status;
  } else if ((status = call_under(vm, fn->inner, passed, names, nargs, &y)) != WEFT_OK) {
    y = value_hole();
  }
  tape_close(vm, t);
  if (status == WEFT_OK) status = check_result(vm, who, y, &seed);
  if (status == WEFT_OK) {
    tape_split(t, y, &plain, &y_node);
    grads = grads_new(vm, t);
    status = grads ? WEFT_OK : WEFT_ERROR;
  }
  if (status == WEFT_OK && y_node) {
    grads[y_node] = seed;
    status = tape_pull(vm, t, who, grads);
  }
  bool list = fn->settings.kind == V_LIST;
  if (status == WEFT_OK && list && !list_new(vm, count, &result)) status = WEFT_ERROR;
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    Value g;
    status = gather(vm, args[at[i]], grads, &node, &g);
    if (status == WEFT_OK && !list) result = g;
    else if (status == WEFT_OK && !list_push(vm, &result, g)) status = WEFT_ERROR;
  }
  if (status == WEFT_OK && fn->transform == TF_value_and_grad) {
    Value pair[2] = {plain, result};
    status = list_from(vm, pair, 2, out) ? WEFT_OK : WEFT_ERROR;
  } else if (status == WEFT_OK) {
    *out = value_keep(result);
  }
  grads_free(vm, t, grads);
  value_drop(vm, result);
  value_drop(vm, plain);
  value_drop(vm, y);
  tape_drop(vm, t);
  return status;
}

WeftStatus call_grad(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out) {
  u32 count = fn->settings.kind == V_LIST ? fn->settings.list->count : 1;
  size_t size = sizeof(Value) * nargs + sizeof(u32) * (nargs + count);
  Value *passed = mem_alloc(&vm->alloc, size);
  if (!passed) return vm_error_memory(vm);
  u32 *place = (u32 *)(passed + nargs), *at = place + nargs;
  WeftStatus status = find_args(vm, eager_grad_who_of(fn->transform), fn->settings, names, nargs, place, at);
  for (u32 a = 0; a < nargs && status == WEFT_OK; a++) passed[a] = value_keep(args[a]);
  if (status == WEFT_OK) status = grad_at(vm, fn, args, passed, names, nargs, at, count, out);
  mem_free(&vm->alloc, passed, size);
  return status;
}

/* ---- vjp ------------------------------------------------------------------------------------- */

void pullback_free(void *object) {
  Pullback *p = object;
  Vm *vm = p->vm;
  if (p->tape) {
    tape_close(vm, p->tape);
    tape_drop(vm, p->tape);
  }
  value_drop(vm, p->xs);
  value_drop(vm, p->y);
  if (p->nodes) mem_free(&vm->alloc, p->nodes, sizeof *p->nodes * p->count);
  mem_free(&vm->alloc, p, sizeof *p);
}

static const HandleType pullback_type = {.size = sizeof pullback_type, .name = "pullback", .release = pullback_free};

static Pullback *run_on_tape(Vm *vm, const char *who, Value f, Value xs, bool mixed) {
  Pullback *p = mem_alloc_zero(&vm->alloc, sizeof *p);
  u32 n = xs.list->count, made = 0, k = 0;
  Value y = value_hole(), *args = mem_alloc(&vm->alloc, sizeof *args * (n + 1));
  Leaves leaves = {0}, plain = {0};
  if (!p || !args) {
    (void)vm_error_memory(vm);
    if (p) mem_free(&vm->alloc, p, sizeof *p);
    p = NULL;
    goto done;
  }
  *p = (Pullback){.vm = vm, .xs = value_keep(xs), .y = value_hole()};
  if (!(p->tape = tape_open(vm))) goto fail;
  for (; made < n; made++) {
    if (variables(vm, p->tape, who, made, mixed, xs.list->items[made], &args[made]) == WEFT_OK) continue;
    while (made) value_drop(vm, args[--made]);
    goto fail;
  }
  WeftStatus status = call_under(vm, f, args, NULL, n, &y);
  tape_close(vm, p->tape);
  if (status != WEFT_OK) {
    y = value_hole();
    goto fail;
  }
  if (tree_leaves_of(vm, y, &leaves) != WEFT_OK) goto fail;
  if (leaves.count == 0) {
    (void)vm_error(vm, EK_type, "%s: f must give a number, an array, or a list or record of them, got %s", who,
                   value_type_name(y));
    goto fail;
  }
  p->count = leaves.count;
  p->nodes = mem_alloc_zero(&vm->alloc, sizeof *p->nodes * p->count);
  if (!p->nodes) {
    (void)vm_error_memory(vm);
    goto fail;
  }
  for (u32 i = 0; i < leaves.count; i++) {
    Value v;
    tape_split(p->tape, leaves.data[i], &v, &p->nodes[i]);
    if (!vec_push(&vm->alloc, &plain, v)) {
      value_drop(vm, v);
      (void)vm_error_memory(vm);
      goto fail;
    }
  }
  if (tree_with(vm, y, plain.data, &k, &p->y) != WEFT_OK) goto fail;
  goto done;
fail:
  pullback_free(p);
  p = NULL;
done:
  mem_free(&vm->alloc, args, sizeof *args * (n + 1));
  for (u32 i = 0; i < plain.count; i++) value_drop(vm, plain.data[i]);
  leaves_free(vm, &plain);
  leaves_free(vm, &leaves);
  value_drop(vm, y);
  return p;
}

Pullback *pullback_new(Vm *vm, const char *who, Value f, Value xs) { return run_on_tape(vm, who, f, xs, false); }
Pullback *pullback_mixed(Vm *vm, const char *who, Value f, Value xs) { return run_on_tape(vm, who, f, xs, true); }

/* A cotangent or a tangent in the dtype, and on the device, of what it belongs to: *out owned. */
static WeftStatus taken_as(Vm *vm, Value v, const ArrayType *t, Value *out) {
  Value args[2] = {value_hole(), value_dtype(t->dtype)};
  if (value_moved(vm, v, t->device, &args[0]) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = vm_op(vm, OP_astype, args, out);
  value_drop(vm, args[0]);
  return status;
}

WeftStatus pullback_pull(Vm *vm, const Pullback *p, const char *who, Value ct, u32 only, Value *out) {
  Leaves y = {0}, c = {0};
  Value *grads = NULL;
  WeftStatus status = tree_leaves_of(vm, p->y, &y);
  if (status == WEFT_OK) status = tree_leaves_of(vm, ct, &c);
  if (status == WEFT_OK && (y.count != c.count || !tree_same(vm, p->y, ct)))
    status = tree_error(vm, "%s: the cotangent must have the structure of the result", who);
  if (status == WEFT_OK) status = (grads = grads_new(vm, p->tape)) ? WEFT_OK : WEFT_ERROR;
  for (u32 i = 0; i < y.count && status == WEFT_OK; i++) {
    ArrayType ty, tc;
    tape_type(y.data[i], &ty);
    tape_type(c.data[i], &tc);
    if (ty.rank != tc.rank || memcmp(ty.dims, tc.dims, ty.rank * sizeof ty.dims[0]) != 0) {
      char a[80], b[80];
      rule_shape_text(&ty, a, sizeof a);
      rule_shape_text(&tc, b, sizeof b);
      status = vm_error(vm, EK_shape, "%s: the cotangent has shape %s, the result %s", who, b, a);
    } else if (p->nodes[i] && (only == PULL_ALL || only == i)) {
      Value g = value_hole(), sum;
      status = taken_as(vm, c.data[i], &ty, &g);
      Value before = grads[p->nodes[i]];
      grads[p->nodes[i]] = value_hole();
      if (status == WEFT_OK) status = tape_sum(vm, before, g, &sum);
      if (status == WEFT_OK) grads[p->nodes[i]] = sum;
    }
  }
  if (status == WEFT_OK) status = tape_pull(vm, p->tape, who, grads);
  u32 node = 1;
  if (status == WEFT_OK) status = gather(vm, p->xs, grads, &node, out);
  grads_free(vm, p->tape, grads);
  leaves_free(vm, &y);
  leaves_free(vm, &c);
  return status;
}

WeftStatus eager_vjp(Vm *vm, Value *args, Value *out) {
  if (eager_grad_need_fn(vm, "vjp", args[0]) != WEFT_OK) return WEFT_ERROR;
  if (args[1].list->count == 0) return vm_error(vm, EK_type, "vjp: f needs an argument");
  Pullback *p = pullback_new(vm, "vjp", args[0], args[1]);
  Value handle, fn = value_hole();
  if (!p) return WEFT_ERROR;
  Value y = value_keep(p->y);
  if (!handle_new(vm, &pullback_type, p, value_nil(), &handle)) {
    pullback_free(p);
    value_drop(vm, y);
    return WEFT_ERROR;
  }
  bool ok = fn_transform(vm, TF_pullback, value_keep(args[0]), handle, &fn);
  if (ok) {
    Value pair[2] = {y, fn};
    ok = list_from(vm, pair, 2, out);
    value_drop(vm, fn);
  }
  value_drop(vm, y);
  return ok ? WEFT_OK : WEFT_ERROR;
}

WeftStatus call_pullback(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out) {
  if (nargs != 1 || (names && names[0]))
    return vm_error(vm, EK_type, "vjp: the pullback takes 1 argument, got %u", nargs);
  return pullback_pull(vm, fn->settings.handle->object, "vjp", args[0], PULL_ALL, out);
}

/* ---- jvp ------------------------------------------------------------------------------------- */

/* A pullback is linear in its cotangent: its own derivative is the forward one, at any cotangent. */
void pushforward_free(Vm *vm, Pushforward *f) {
  if (f->outer) {
    tape_close(vm, f->outer);
    if (f->p) pullback_free(f->p);
    tape_drop(vm, f->outer);
  }
  value_drop(vm, f->zero);
  value_drop(vm, f->back);
  *f = (Pushforward){.zero = value_hole(), .back = value_hole()};
}

WeftStatus pushforward_new(Vm *vm, const char *who, Value f, Value xs, Pushforward *out) {
  Leaves y = {0}, z = {0};
  Value us = value_hole();
  *out = (Pushforward){.zero = value_hole(), .back = value_hole()};
  if (!(out->outer = tape_open(vm))) return WEFT_ERROR;
  WeftStatus status = (out->p = pullback_new(vm, who, f, xs)) ? WEFT_OK : WEFT_ERROR;
  if (status == WEFT_OK) status = tree_leaves_of(vm, out->p->y, &y);
  for (u32 i = 0; i < y.count && status == WEFT_OK; i++) {
    ArrayType type;
    Value v;
    tape_type(y.data[i], &type);
    if (dtype_kind(type.dtype) < DK_FLOAT) type.dtype = DT_f64;
    status = tape_zeros(vm, &type, &v);
    if (status == WEFT_OK && !vec_push(&vm->alloc, &z, v)) {
      value_drop(vm, v);
      status = vm_error_memory(vm);
    }
  }
  u32 k = 0;
  if (status == WEFT_OK) status = tree_with(vm, out->p->y, z.data, &k, &out->zero);
  if (status == WEFT_OK) status = variables(vm, out->outer, who, 0, false, out->zero, &us);
  if (status == WEFT_OK) status = pullback_pull(vm, out->p, who, us, PULL_ALL, &out->back);
  tape_close(vm, out->outer);
  for (u32 i = 0; i < z.count; i++) value_drop(vm, z.data[i]);
  leaves_free(vm, &z);
  leaves_free(vm, &y);
  value_drop(vm, us);
  if (status != WEFT_OK) pushforward_free(vm, out);
  return status;
}

WeftStatus pushforward_push(Vm *vm, const Pushforward *f, const char *who, Value ts, u32 only, Value *out) {
  Leaves t = {0}, b = {0};
  u32 node = 1;
  Value *grads = grads_new(vm, f->outer);
  WeftStatus status = grads ? WEFT_OK : WEFT_ERROR;
  if (status == WEFT_OK) status = tree_leaves_of(vm, f->back, &b);
  if (status == WEFT_OK) status = tree_leaves_of(vm, ts, &t);
  if (status == WEFT_OK && (t.count != b.count || !tree_same(vm, f->p->xs, ts)))
    status = tree_error(vm, "%s: ts must have the structure of xs", who);
  for (u32 i = b.count; i-- > 0 && status == WEFT_OK;) { /* in reverse: each is a use of what it stands for */
    ArrayType tx, tt;
    Value plain, sum;
    u32 at;
    tape_type(b.data[i], &tx);
    tape_type(t.data[i], &tt);
    if (tx.rank != tt.rank || memcmp(tx.dims, tt.dims, tx.rank * sizeof tx.dims[0]) != 0) {
      status = vm_error(vm, EK_shape, "%s: a tangent has not the shape of its argument", who);
      break;
    }
    tape_split(f->outer, b.data[i], &plain, &at);
    value_drop(vm, plain);
    if (!at || (only != PULL_ALL && only != i)) continue;
    Value g;
    status = taken_as(vm, t.data[i], &tx, &g);
    if (status != WEFT_OK) break;
    Value before = grads[at];
    grads[at] = value_hole();
    status = tape_sum(vm, before, g, &sum);
    if (status == WEFT_OK) grads[at] = sum;
  }
  if (status == WEFT_OK) status = tape_pull(vm, f->outer, who, grads);
  if (status == WEFT_OK) status = gather(vm, f->zero, grads, &node, out);
  grads_free(vm, f->outer, grads);
  leaves_free(vm, &t);
  leaves_free(vm, &b);
  return status;
}

WeftStatus eager_jvp(Vm *vm, Value *args, Value *out) {
  Value xs = args[1], ts = args[2], dy;
  Pushforward f;
  u32 none;
  if (eager_grad_need_fn(vm, "jvp", args[0]) != WEFT_OK) return WEFT_ERROR;
  if (xs.kind != V_LIST || ts.kind != V_LIST || xs.list->count != ts.list->count || xs.list->count == 0)
    return vm_error(vm, EK_type, "jvp: xs and ts must be lists of as many arguments and tangents");
  if (pushforward_new(vm, "jvp", args[0], xs, &f) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = pushforward_push(vm, &f, "jvp", ts, PULL_ALL, &dy);
  if (status == WEFT_OK) {
    Value pair[2];
    tape_split(f.outer, f.p->y, &pair[0], &none);
    pair[1] = dy;
    status = list_from(vm, pair, 2, out) ? WEFT_OK : WEFT_ERROR;
    value_drop(vm, pair[0]);
    value_drop(vm, dy);
  }
  pushforward_free(vm, &f);
  return status;
}

WeftStatus eager_stop_gradient(Vm *vm, Value *args, Value *out) { return tape_strip(vm, args[0], out); }

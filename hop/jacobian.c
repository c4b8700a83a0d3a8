/* jacobian.c — Jacobians on the tape: the function runs once, then one pull for each element of its result (jacrev), or
 * one push for each element of its argument (jacfwd). hessian is jacfwd of jacrev, the upper half in both halves. */
#include "hop/jacobian.h"

#include <string.h>

#include "hop/lanes.h"
#include "hop/pullback.h"
#include "hop/symmetric.h"
#include "hop/tree.h"

static const char *eager_jac_who_of(u32 transform) {
  return transform == TF_jacrev ? "jacrev" : transform == TF_jacfwd ? "jacfwd" : "hessian";
}

static WeftStatus eager_jac_make(Vm *vm, u32 transform, Value *args, Value *out) {
  Value argnum = args[1].kind == V_HOLE ? value_weak_i64(0) : args[1];
  i64 n;
  if (args[0].kind != V_FN)
    return vm_error(vm, EK_type, "%s: f must be a function, got %s", eager_jac_who_of(transform),
                    value_type_name(args[0]));
  if (!num_as_index(argnum, &n))
    return vm_error(vm, EK_type, "%s: argnum must be the position of an argument", eager_jac_who_of(transform));
  return fn_transform(vm, transform, value_keep(args[0]), value_keep(argnum), out) ? WEFT_OK : WEFT_ERROR;
}

WeftStatus eager_jacfwd(Vm *vm, Value *args, Value *out) { return eager_jac_make(vm, TF_jacfwd, args, out); }
WeftStatus eager_jacrev(Vm *vm, Value *args, Value *out) { return eager_jac_make(vm, TF_jacrev, args, out); }
WeftStatus eager_hessian(Vm *vm, Value *args, Value *out) { return eager_jac_make(vm, TF_hessian, args, out); }

/* f as a function of one argument, the others held: a transform's inner function is called with all, so the tape sees
 * only the chosen one as a variable. */
typedef struct Held {
  Value f, *args;
  u32 nargs, at;
} Held;

static void held_free(void *object) { (void)object; }

static WeftStatus call_held(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out) {
  Held *h = ctx;
  Value all, f;
  (void)nargs;
  if (!list_from(vm, h->args, h->nargs, &all)) return WEFT_ERROR;
  value_drop(vm, all.list->items[h->at]);
  all.list->items[h->at] = value_keep(args[0]);
  WeftStatus status = fn_transform(vm, TF_eager, value_keep(h->f), value_nil(), &f) ? WEFT_OK : WEFT_ERROR;
  if (status == WEFT_OK) {
    status = vm_call_kept(vm, f, all.list->items, NULL, h->nargs, out);
    value_drop(vm, f);
  }
  value_drop(vm, all);
  return status;
}

static i64 elements(const ArrayType *t) {
  i64 n = 1;
  for (u32 i = 0; i < t->rank; i++) n *= t->dims[i];
  return n;
}

/* Zeros but for a 1 at element `at`. */
static WeftStatus unit(Vm *vm, const ArrayType *t, i64 at, Value *out) {
  Value flat, one = value_weak_f64(1), index = value_weak_i64(at);
  i64 n = elements(t);
  u8 item = IX_VALUE;
  PathStep step = {.kind = STEP_INDEX, .item_count = 1};
  Desc path = {.kind = DESC_PATH, .items = &item, .item_count = 1, .step_count = 1, .steps = &step, .op = BC_move,
               .root = ROOT_REGISTER};
  if (array_new_zero(vm, t->dtype, 1, &n, &flat) != WEFT_OK) return WEFT_ERROR;
  if (at >= 0 && vm_update(vm, &flat, &path, &index, one) != WEFT_OK) {
    value_drop(vm, flat);
    return WEFT_ERROR;
  }
  Value args[OP_MAX_PARAMS];
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[0] = flat;
  WeftStatus status = list_new(vm, t->rank, &args[1]) ? WEFT_OK : WEFT_ERROR;
  for (u32 i = 0; i < t->rank && status == WEFT_OK; i++)
    if (!list_push(vm, &args[1], value_weak_i64(t->dims[i]))) status = WEFT_ERROR;
  if (status == WEFT_OK) status = vm_op(vm, OP_reshape, args, out);
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  if (status != WEFT_OK || !t->device) return status;
  Value here = *out;
  status = value_moved(vm, here, t->device, out);
  value_drop(vm, here);
  return status;
}

/* The tree with a unit in leaf `leaf`, zeros elsewhere, floats all. */
static WeftStatus unit_tree(Vm *vm, Value tree, const Leaves *leaves, u32 leaf, i64 at, Value *out) {
  Lanes made = {0};
  u32 next = 0;
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < leaves->count && status == WEFT_OK; i++) {
    ArrayType t;
    Value v;
    tree_leaf_type(leaves->data[i], &t);
    if (dtype_kind(t.dtype) < DK_FLOAT) t.dtype = DT_f64;
    status = unit(vm, &t, i == leaf ? at : -1, &v);
    if (status == WEFT_OK && !lanes_push(vm, &made, v)) status = WEFT_ERROR;
  }
  if (status == WEFT_OK) status = tree_with(vm, tree, made.data, &next, out);
  lanes_free(vm, &made);
  return status;
}

/* `count` rows (borrowed, every step-th) of row type t, as shape whole + t (or t + whole). */
static WeftStatus eager_jac_assemble(Vm *vm, const Value *rows, i64 count, u32 step, const ArrayType *t,
                                     const ArrayType *whole, bool behind, Value *out) {
  Value args[OP_MAX_PARAMS], all = value_hole();
  if (t->rank + whole->rank > ARRAY_MAX_RANK)
    return vm_error(vm, EK_shape, "a Jacobian of more than %d axes", ARRAY_MAX_RANK);
  WeftStatus status;
  const u32 device = whole->device ? whole->device : t->device; /* of numbers that are stacked */
  if (whole->rank == 0) { /* one row */
    *out = value_keep(rows[0]);
    return WEFT_OK;
  }
  if (count == 0) {
    ArrayType none = {.dtype = t->dtype, .rank = 1};
    i64 zero = 0;
    status = array_new_zero(vm, none.dtype, 1, &zero, &all);
    if (status == WEFT_OK) status = lanes_taken(vm, device, &all);
  } else {
    status = lanes_stack(vm, rows, (u32)count, step, false, behind ? t->rank : 0, device, &all);
  }
  if (status != WEFT_OK) return status;
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[0] = all;
  status = list_new(vm, 8, &args[1]) ? WEFT_OK : WEFT_ERROR;
  for (u32 part = 0; part < 2; part++) {
    const ArrayType *x = (part == 0) != behind ? whole : t;
    for (u32 i = 0; i < x->rank && status == WEFT_OK; i++)
      if (!list_push(vm, &args[1], value_weak_i64(x->dims[i]))) status = WEFT_ERROR;
  }
  if (status == WEFT_OK) status = vm_op(vm, OP_reshape, args, out);
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  return status;
}

/* A matrix of derivatives by complex numbers would hold two for each element. */
static WeftStatus all_real(Vm *vm, const char *who, const Leaves *leaves) {
  for (u32 i = 0; i < leaves->count; i++) {
    ArrayType t;
    tree_leaf_type(leaves->data[i], &t);
    if (dtype_kind(t.dtype) == DK_COMPLEX)
      return vm_error(vm, EK_unsupported, "%s: not supported for %s", who, dtype_name(t.dtype));
  }
  return WEFT_OK;
}

/* cells: of a gradient's leaves by the argument's; the gradient of each leaf of a result has a leaf for each of x. */
static WeftStatus both_halves(Vm *vm, Value *cells, u32 ny, const Leaves *xl) {
  u32 n = xl->count, *ranks = mem_alloc(&vm->alloc, sizeof *ranks * (n + 1));
  if (!ranks) return vm_error_memory(vm);
  for (u32 i = 0; i < n; i++) {
    ArrayType t;
    tree_leaf_type(xl->data[i], &t);
    ranks[i] = t.rank;
  }
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i + n <= ny && n && status == WEFT_OK; i += n)
    status = symmetric_cells(vm, cells + i * n, n, ranks);
  mem_free(&vm->alloc, ranks, sizeof *ranks * (n + 1));
  return status;
}

/* Row after row: what a unit in each element of `from` gives in `to` (a list in the one direction holds the argument).
 * jacrev: from the result to the argument. jacfwd: from the argument to the result. The Jacobian is the result's
 * tree, in each leaf the argument's tree. hessian: f is a gradient. */
static WeftStatus eager_jacobian_of(Vm *vm, u32 transform, const char *who, Value f, Value x, Value *out) {
  bool reverse = transform == TF_jacrev;
  Value xs = value_hole(), y = value_hole(), *cells = NULL;
  Pullback *p = NULL;
  Pushforward push = {.zero = value_hole(), .back = value_hole()};
  Leaves xl = {0}, yl = {0};
  Lanes parts = {0};
  u32 none, ncells = 0;
  WeftStatus status = list_from(vm, &x, 1, &xs) ? WEFT_OK : WEFT_ERROR;
  if (status == WEFT_OK && reverse) status = (p = pullback_new(vm, who, f, xs)) ? WEFT_OK : WEFT_ERROR;
  if (status == WEFT_OK && !reverse) status = pushforward_new(vm, who, f, xs, &push);
  if (status == WEFT_OK && reverse) y = value_keep(p->y);
  else if (status == WEFT_OK) tape_split(push.outer, push.p->y, &y, &none);
  if (status == WEFT_OK) status = tree_leaves_of(vm, x, &xl);
  if (status == WEFT_OK) status = tree_leaves_of(vm, y, &yl);
  if (status == WEFT_OK) status = all_real(vm, who, &xl);
  if (status == WEFT_OK) status = all_real(vm, who, &yl);
  ncells = xl.count * yl.count;
  if (status == WEFT_OK) {
    cells = mem_alloc(&vm->alloc, sizeof *cells * (ncells + 1));
    if (!cells) status = vm_error_memory(vm);
  }
  for (u32 i = 0; cells && i < ncells; i++) cells[i] = value_hole();
  const Leaves *from = reverse ? &yl : &xl, *to = reverse ? &xl : &yl;
  for (u32 i = 0; i < from->count && status == WEFT_OK; i++) {
    Lanes rows = {0};
    ArrayType whole;
    tree_leaf_type(from->data[i], &whole);
    i64 n = elements(&whole);
    if (n > UINT32_MAX / 4) status = vm_error(vm, EK_limit, "%s: %lld rows", who, (long long)n);
    for (i64 k = 0; k < n && status == WEFT_OK; k++) {
      Value seed, got = value_hole();
      Leaves leaves = {0};
      status = vm_poll(vm, 1);
      if (status == WEFT_OK) status = unit_tree(vm, reverse ? y : xs, from, i, k, &seed);
      if (status != WEFT_OK) break;
      status = reverse ? pullback_pull(vm, p, who, seed, i, &got) : pushforward_push(vm, &push, who, seed, i, &got);
      if (status != WEFT_OK) got = value_hole();
      value_drop(vm, seed);
      if (status == WEFT_OK) status = tree_leaves_of(vm, got, &leaves);
      for (u32 j = 0; j < leaves.count && status == WEFT_OK; j++)
        if (!lanes_push(vm, &rows, value_keep(leaves.data[j]))) status = WEFT_ERROR;
      leaves_free(vm, &leaves);
      value_drop(vm, got);
    }
    for (u32 j = 0; j < to->count && status == WEFT_OK; j++) {
      ArrayType t;
      tree_leaf_type(to->data[j], &t);
      if (dtype_kind(t.dtype) < DK_FLOAT) t.dtype = DT_f64;
      Value *cell = &cells[reverse ? i * xl.count + j : j * xl.count + i];
      Value made;
      status = eager_jac_assemble(vm, rows.data + j, n, to->count, &t, &whole, !reverse, &made);
      if (status == WEFT_OK) *cell = made;
    }
    lanes_free(vm, &rows);
  }
  if (status == WEFT_OK && transform == TF_hessian) status = both_halves(vm, cells, yl.count, &xl);
  /* leaves of the result become trees like the argument */
  for (u32 i = 0, next = 0; i < yl.count && status == WEFT_OK; i++) {
    Value part;
    next = 0;
    status = tree_with(vm, x, cells + i * xl.count, &next, &part);
    if (status == WEFT_OK && !lanes_push(vm, &parts, part)) status = WEFT_ERROR;
  }
  u32 at = 0;
  if (status == WEFT_OK) status = tree_with(vm, y, parts.data, &at, out);
  for (u32 i = 0; cells && i < ncells; i++) value_drop(vm, cells[i]);
  if (cells) mem_free(&vm->alloc, cells, sizeof *cells * (ncells + 1));
  lanes_free(vm, &parts);
  leaves_free(vm, &xl);
  leaves_free(vm, &yl);
  if (p) pullback_free(p);
  if (push.outer) pushforward_free(vm, &push);
  value_drop(vm, y);
  value_drop(vm, xs);
  return status;
}

WeftStatus call_jacobian(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out) {
  const char *who = eager_jac_who_of(fn->transform);
  i64 at = 0;
  Value f = value_keep(fn->inner), held_fn;
  u32 transform = fn->transform;
  (void)num_as_index(fn->settings, &at);
  for (u32 i = 0; names && i < nargs; i++)
    if (names[i]) {
      value_drop(vm, f);
      return vm_error(vm, EK_type, "%s: arguments are given by position", who);
    }
  if (at < -(i64)nargs || at >= nargs) {
    value_drop(vm, f);
    return vm_error(vm, EK_type, "%s: argument %lld is not given", who, (long long)at);
  }
  if (at < 0) at += nargs;
  if (transform == TF_hessian) {
    Value inner;
    if (!fn_transform(vm, TF_jacrev, f, value_keep(fn->settings), &inner)) return WEFT_ERROR;
    f = inner;
  }
  Held h = {f, args, nargs, (u32)at};
  HostFn host = {.name = who, .call = call_held, .ctx = &h, .release = held_free};
  if (!fn_host(vm, &host, &held_fn)) {
    value_drop(vm, f);
    return WEFT_ERROR;
  }
  WeftStatus status = eager_jacobian_of(vm, transform, who, held_fn, args[at], out);
  value_drop(vm, held_fn);
  value_drop(vm, f);
  return status;
}

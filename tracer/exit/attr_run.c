/* attr_run.c — what runners of graphs share: attributes as values, indexed reads and updates, checks, host calls (see
 * graph.h). */
#include <math.h>
#include <string.h>

#include "lang/mechanisms.h"
#include "tracer/graph/graph.h"

/* ---- attributes ------------------------------------------------------------------------------------- */

static WeftStatus ints_value(Vm *vm, const GraphAttr *a, Value *out) {
  if (!list_new(vm, a->count, out)) return WEFT_ERROR;
  for (u32 i = 0; i < a->count; i++) {
    Value item = value_weak_i64(a->ints[i]);
    if (a->pairs) {
      if (i % 2) continue;
      Value two[2] = {item, value_weak_i64(a->ints[i + 1])};
      if (!list_from(vm, two, 2, &item)) goto fail;
    }
    if (!list_push(vm, out, item)) goto fail;
  }
  return WEFT_OK;
fail:
  value_drop(vm, *out);
  *out = value_hole();
  return WEFT_ERROR;
}

WeftStatus attr_value(const AttrSource *s, const GraphAttr *a, Value *out) {
  Vm *vm = s->vm;
  i64 n;
  switch (a->kind) {
    case ATTR_hole: *out = value_hole(); return WEFT_OK;
    case ATTR_nil: *out = value_nil(); return WEFT_OK;
    case ATTR_bool: *out = value_weak_bool(a->i != 0); return WEFT_OK;
    case ATTR_int: *out = value_weak_i64(a->i); return WEFT_OK;
    case ATTR_float: *out = value_weak_f64(a->f); return WEFT_OK;
    case ATTR_dtype: *out = value_dtype((u32)a->i); return WEFT_OK;
    case ATTR_text: return text_new(vm, a->text, a->count, out) ? WEFT_OK : WEFT_ERROR;
    case ATTR_ints: return ints_value(vm, a, out);
    case ATTR_dim:
      if (s->size(s->ctx, a->dim, 0, &n) != WEFT_OK) return WEFT_ERROR;
      *out = value_weak_i64(n);
      return WEFT_OK;
    case ATTR_dims:
      if (!list_new(vm, a->count, out)) return WEFT_ERROR;
      for (u32 i = 0; i < a->count; i++) {
        if (a->ints[i] == DIM_INFER) n = -1;
        else if (s->size(s->ctx, a->ints[i], i, &n) != WEFT_OK) goto fail;
        if (!list_push(vm, out, value_weak_i64(n))) goto fail;
      }
      return WEFT_OK;
    default: return vm_error(vm, EK_unsupported, "an attribute has no value");
  }
fail:
  value_drop(vm, *out);
  *out = value_hole();
  return WEFT_ERROR;
}

/* ---- indexing --------------------------------------------------------------------------------------- */

WeftStatus attr_index(const AttrSource *s, const GraphAttr *a, u8 items[INDEX_MAX_ITEMS], Value regs[INDEX_MAX_REGS]) {
  u32 at = 0;
  if (a->kind != ATTR_index || a->count > INDEX_MAX_ITEMS)
    return vm_error(s->vm, EK_unsupported, "an index has too many items");
  for (u32 i = 0; i < a->count; i++) {
    const IndexItem *it = &a->items[i];
    u32 parts = it->kind == INDEX_slice ? 3 : it->kind == INDEX_newaxis || it->kind == INDEX_ellipsis ? 0 : 1;
    items[i] = it->kind == INDEX_slice      ? IX_SLICE
               : it->kind == INDEX_newaxis  ? IX_NEWAXIS
               : it->kind == INDEX_ellipsis ? IX_ELLIPSIS
                                            : IX_VALUE;
    for (u32 k = 0; k < parts; k++) {
      Value v = value_nil();
      i64 n;
      if (it->part[k] == PART_operand) {
        if (s->operand(s->ctx, (u32)it->at[k], &v) != WEFT_OK) return WEFT_ERROR;
      } else if (it->part[k] == PART_dim) {
        if (s->size(s->ctx, it->at[k], 3 * i + k, &n) != WEFT_OK) return WEFT_ERROR;
        v = value_weak_i64(n);
      }
      regs[at++] = v;
    }
  }
  return WEFT_OK;
}

static const u8 compound[OP_COUNT] = {
    [OP_add] = BC_add,         [OP_subtract] = BC_sub,     [OP_multiply] = BC_mul,   [OP_divide] = BC_div,
    [OP_floor_divide] = BC_floordiv, [OP_remainder] = BC_mod, [OP_power] = BC_pow,   [OP_bitwise_and] = BC_band,
    [OP_bitwise_or] = BC_bor,  [OP_bitwise_xor] = BC_bxor, [OP_left_shift] = BC_shl, [OP_right_shift] = BC_shr,
    [OP_matmul] = BC_matmul,
};

WeftStatus attr_update(Vm *vm, u32 combine, Value x, const u8 *items, u32 count, const Value *regs, Value v,
                       Value *out) {
  *out = x;
  if (combine && !compound[combine]) {
    value_drop(vm, v);
    return vm_error(vm, EK_unsupported, "an update by %s", op_name(combine));
  }
  PathStep step = {.kind = STEP_INDEX, .item_count = count};
  Desc d = {.kind = DESC_PATH, .item_count = count, .items = items, .step_count = 1, .steps = &step,
            .op = combine ? compound[combine] : BC_move, .root = ROOT_REGISTER};
  return vm_update(vm, out, &d, regs, v);
}

/* ---- checks ----------------------------------------------------------------------------------------- */

static bool fits_dtype(f64 x, u32 dtype) {
  if (dtype_kind(dtype) != DK_INT) return true;
  if (x != x) return false;
  f64 t = trunc(x);
  if (dtype == DT_u64) return t >= 0 && t < 0x1p64;
  if (dtype == DT_i64) return t >= -0x1p63 && t < 0x1p63;
  return t >= (f64)dtype_int_min(dtype) && t <= (f64)dtype_int_max(dtype);
}

bool check_holds(u32 check, Value a, Value b) {
  switch (check) {
    case CHECK_index: return a.i >= -b.i && a.i < b.i;
    case CHECK_zero_div:
    case CHECK_assertion:
    case CHECK_truth: return dtype_kind(a.dtype) == DK_FLOAT ? num_as_f64(a) != 0 : a.bits != 0;
    case CHECK_neg_power:
    case CHECK_nonneg: return a.dtype == DT_u64 || (dtype_kind(a.dtype) == DK_FLOAT ? num_as_f64(a) >= 0 : a.i >= 0);
    case CHECK_cast_range: return fits_dtype(num_as_f64(a), b.dtype);
    case CHECK_size: return a.i == b.i;
    case CHECK_empty: return a.i > 0;
    default: return false;
  }
}

/* ---- effects ------------------------------------------------------------------------------------- */

typedef struct HostBuild {
  Vm *vm;
  const Value *args;
  u32 count;
} HostBuild;

static WeftStatus host_operand(void *ctx, u32 number, Value *out) {
  const HostBuild *h = ctx;
  *out = value_hole();
  if (number >= h->count) return vm_error(h->vm, EK_unsupported, "a host call has no operand %u", number);
  *out = value_keep(h->args[number]);
  return WEFT_OK;
}

static WeftStatus host_size(void *ctx, Dim d, i64 *out) {
  const HostBuild *h = ctx;
  (void)d;
  *out = 0;
  return vm_error(h->vm, EK_unsupported, "a size in a host call is no operand");
}

enum { HOST_FEW = 16 };

typedef struct HostGiven { /* what is called, and what it is given; all owned */
  Value fn, few[HOST_FEW], *args;
  u32 count;
} HostGiven;

static void given_free(Vm *vm, HostGiven *x) {
  value_drop(vm, x->fn);
  for (u32 i = 0; i < x->count; i++) value_drop(vm, x->args[i]);
  if (x->args != x->few) mem_free(&vm->alloc, x->args, sizeof *x->args * x->count);
}

/* The items of the recipe of the arguments, which is a list, are made where the call wants them: no list is. */
static WeftStatus host_build(HostBuild *h, const Graph *g, const GraphHost *host, HostGiven *x) {
  RecipeBuild b;
  const Recipe *with = host->args ? &g->exits.recipes.data[host->args] : NULL;
  x->fn = value_nil();
  x->args = x->few;
  x->count = with ? with->count : h->count;
  if (with && with->kind != RCP_list)
    return x->count = 0, vm_error(h->vm, EK_unsupported, "the arguments of a host call are no list");
  if (x->count > HOST_FEW && !(x->args = mem_alloc(&h->vm->alloc, sizeof *x->args * x->count))) {
    x->args = x->few;
    x->count = 0;
    return vm_error_memory(h->vm);
  }
  for (u32 i = 0; i < x->count; i++) x->args[i] = value_nil();
  if (build_init(&b, h->vm, g, h->vm->frame_count ? &h->vm->frames[h->vm->frame_count - 1] : NULL) != WEFT_OK)
    return WEFT_ERROR;
  b.value = host_operand;
  b.size = host_size;
  b.ctx = h;
  WeftStatus status = host->fn ? build_recipe(&b, host->fn, &x->fn) : WEFT_OK;
  for (u32 i = 0; i < x->count && status == WEFT_OK; i++) {
    if (!with) x->args[i] = value_keep(h->args[i]);
    else if ((status = build_recipe(&b, g->exits.ids.data[with->first + i], &x->args[i])) != WEFT_OK)
      x->args[i] = value_nil();
    else if (!value_boxed(h->vm, x->args[i])) status = WEFT_ERROR;
  }
  build_free(&b);
  return status;
}

WeftStatus host_call(Vm *vm, const Graph *g, u32 host, const Value *args, u32 nargs, Value *out) {
  const GraphHost *x = &g->hosts.data[host];
  HostBuild h = {vm, args, nargs};
  HostGiven given;
  *out = value_nil();
  if (x->kind == HOST_settle) {
    if (MECHANISM(vm, output_settles)) vm->printed = 0;
    return WEFT_OK;
  }
  if (x->kind == HOST_function && !x->fn)
    return vm_error(vm, EK_unsupported, "%s: nothing is there to be called", x->name);
  WeftStatus status = host_build(&h, g, x, &given);
  if (status == WEFT_OK && x->kind == HOST_print) {
    status = vm_op(vm, OP_print, given.args, out);
    vm->printed += status == WEFT_OK;
  } else if (status == WEFT_OK) {
    status = vm_call_native(vm, given.fn, given.args, given.count, out);
    for (u32 i = 0; i < given.count; i++) given.args[i] = value_nil(); /* used up */
  }
  given_free(vm, &given);
  return status;
}

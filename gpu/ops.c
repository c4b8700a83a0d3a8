/* ops.c — an operation on arrays of the device that the interpreter runs: the same way as compiled code.
 *
 * For each operation, and the axes, shapes and flags it is given, there is a function `(a, b) => op(a, b)`, wrapped
 * in jit, in a module of its own; calling it captures and compiles the operation for the types at hand, and finds it
 * again by its guards. So there is one lowering of each operation, and eager and compiled code run the same kernels.
 *
 * What has no kernel comes back here from inside of the compiled function, and is done by the processor: arrays go
 * there and results come back, which the counter `transfers` tells. So does an operation that a check has refused:
 * the processor's code raises its error. */
#include "gpu/ops.h"

#include "gpu/matmul.h"
#include "gpu/nonzero.h"
#include "jit/jit.h"

#include <stdio.h>
#include <string.h>

enum { SHAPE_MOST = 64 }; /* numbers of a shape or of axes that are written out */

static void put_integer(Value v, Buf *out) {
  if (v.dtype == DT_bool) buf_puts(out, v.bits ? "true" : "false");
  else buf_printf(out, "%lld", (long long)v.i);
}

/* What is known when the operation is captured stands in the text: axes, shapes, flags, dtypes. False: it is an
 * argument. */
static bool put_literal(u32 op, u32 param, Value v, Buf *out) {
  const OpParam *p = &op_info(op)->params[param];
  switch (v.kind) {
    case V_NIL: buf_puts(out, "nil"); return true;
    case V_DTYPE: buf_puts(out, dtype_name(v.dtype)); return true;
    case V_TEXT:
      if (strpbrk(v.text->data, "\"\\\n{}")) return false;
      buf_printf(out, "\"%s\"", v.text->data);
      return true;
    case V_NUM:
      if (!param_is_setting(p) || dtype_kind(v.dtype) == DK_FLOAT) return false;
      if (!value_is_weak(v) && v.dtype != DT_bool && v.dtype != DT_i64) return false; /* its dtype may count */
      put_integer(v, out);
      return true;
    case V_LIST:
      for (u32 i = 0; i < v.list->count; i++)
        if (v.list->items[i].kind != V_NUM || dtype_kind(v.list->items[i].dtype) == DK_FLOAT) return false;
      buf_puts(out, "(");
      for (u32 i = 0; i < v.list->count; i++) {
        put_integer(v.list->items[i], out);
        buf_puts(out, ", ");
      }
      buf_puts(out, ")");
      return true;
    case V_ARRAY: { /* [2, -1] is an array */
      Array *a = v.array;
      if (!param_keeps_arrays(p) || array_device(a) != DEV_CPU || array_rank(a) != 1 ||
          a->size > SHAPE_MOST || array_dtype(a) != DT_i64)
        return false;
      buf_puts(out, "(");
      for (i64 i = 0; i < a->size; i++)
        buf_printf(out, "%lld, ", (long long)((const i64 *)a->data)[i * array_strides(a)[0]]);
      buf_puts(out, ")");
      return true;
    }
    default: return false;
  }
}

/* A matrix whose columns lie one behind the other, as `x.T` gives it. Its operation is compiled for the matrix that
 * lies there, `(a0) => exp(transpose(a0))`: a kernel reads across, and nothing goes by way of the processor. */
static bool is_across(u32 op, Value v) {
  u32 family = op_info(op)->family;
  if (v.kind != V_ARRAY || (family != FAM_elementwise && family != FAM_reduce && family != FAM_scan)) return false;
  Array *a = v.array;
  return array_device(a) == DEV_GPU && array_rank(a) == 2 && !array_dense(a) && a->size > 0 &&
         array_strides(a)[0] == 1 && array_strides(a)[1] == array_dims(a)[0];
}

/* *out owned */
static WeftStatus turned(Vm *vm, Array *a, Value *out) {
  i64 dims[2] = {array_dims(a)[1], array_dims(a)[0]}, strides[2] = {dims[1], 1};
  return array_view(vm, a, 0, 2, dims, strides, out);
}

/* `(a0, a2, ) => sum(a0, keepdims=a2)`; one bit of *taken for each parameter that is an argument. */
static void put_fn(Vm *vm, u32 op, const Value *args, u32 *taken, Buf *out) {
  const OpInfo *info = op_info(op);
  Buf call;
  bool in_order = true, first = true;
  buf_init(&call, &vm->alloc);
  buf_puts(out, "(");
  *taken = 0;
  for (u32 i = 0; i < info->nparams; i++) {
    const OpParam *p = &info->params[i];
    bool given = args[i].kind != V_HOLE;
    in_order = in_order && given && !p->keyword_only;
    if (!given) continue;
    if (!first) buf_puts(&call, ", ");
    first = false;
    if (p->rest) buf_puts(&call, "...");
    else if (!in_order) buf_printf(&call, "%.*s=", (int)p->len, p->name);
    if (!p->rest && put_literal(op, i, args[i], &call)) continue;
    *taken |= 1u << i;
    buf_printf(&call, !p->rest && is_across(op, args[i]) ? "transpose(a%u)" : "a%u", i);
    buf_printf(out, "a%u, ", i);
  }
  buf_printf(out, ") => %s(%s)", info->name, buf_text(&call));
  if (call.failed) out->failed = true;
  buf_free(&call);
}

/* Which operands of a product are of another dtype than it computes in, and so are converted; *dtype: that of the
 * result, where it is another one. False: it is no product of real arrays on the device that is made there so. */
static bool product_types(const Value *args, bool *converts, u32 *compute, u32 *result) {
  ArrayType t[2], shape;
  const ArrayType *types[2] = {&t[0], &t[1]};
  DTypeResult r;
  RuleError err;
  for (u32 i = 0; i < 2; i++) {
    if (args[i].kind != V_ARRAY || array_device(args[i].array) != DEV_GPU || !array_rank(args[i].array) ||
        dtype_kind(array_dtype(args[i].array)) == DK_COMPLEX)
      return false;
    t[i] = (ArrayType){.dtype = (u8)array_dtype(args[i].array), .rank = (u8)array_rank(args[i].array)};
    memcpy(t[i].dims, array_dims(args[i].array), t[i].rank * sizeof *t[i].dims);
  }
  if (!shape_matmul(NULL, &t[0], &t[1], &shape, &err)) return false;
  if (!rule_dtype(OP_matmul, 2, types, &r, &err)) return false;
  *result = r.result;
  *compute = dtype_compute(r.compute);
  for (u32 i = 0; i < 2; i++) converts[i] = t[i].dtype != *compute;
  u32 ranks[2] = {array_rank(args[0].array), array_rank(args[1].array)};
  if (ranks[0] == 1 && ranks[1] == 1 && dtype_kind(*compute) == DK_FLOAT)
    return false; /* a sum in order, as its formula says */
  return converts[0] || converts[1] || ranks[0] == 1 || ranks[1] == 1;
}

/* A product by other operations: of operands that are converted first, or with a vector, which is a sum of products:
 * `(a0, a1, ) => sum(a0 * a1, axis=-1)`. False: it is none. */
static bool put_product_fn(const Value *args, u32 *taken, Buf *out) {
  u32 compute, result;
  bool converts[2];
  char text[2][32];
  if (!product_types(args, converts, &compute, &result)) return false;
  const char *type = dtype_name(compute), *last = dtype_name(result);
  u32 made = compute; /* a sum of narrow integers is of wider ones, which wrap to the same */
  if (array_rank(args[0].array) == 1 || array_rank(args[1].array) == 1) made = dtype_accum(compute);
  for (u32 i = 0; i < 2; i++)
    if (converts[i]) snprintf(text[i], sizeof text[i], "%s(a%u)", type, i);
    else snprintf(text[i], sizeof text[i], "a%u", i);
  *taken = 3;
  buf_puts(out, "(a0, a1, ) => ");
  if (result != made) buf_printf(out, "%s(", last);
  if (array_rank(args[1].array) == 1) buf_printf(out, "sum(%s * %s, axis=-1)", text[0], text[1]);
  else if (array_rank(args[0].array) == 1) buf_printf(out, "sum(expand_dims(%s, 1) * %s, axis=-2)", text[0], text[1]);
  else buf_printf(out, "matmul(%s, %s)", text[0], text[1]);
  if (result != made) buf_puts(out, ")");
  return true;
}

static WeftStatus make_fn(Device *d, const char *text, Value *out) {
  Vm *vm = d->vm;
  Buf code;
  char name[32];
  if (!d->op_texts.alloc && names_init(&d->op_texts, &vm->alloc) != WEFT_OK) {
    d->op_texts = (Names){0};
    return vm_error_memory(vm);
  }
  if (!d->module) d->module = module_new(vm, "gpu", "");
  if (!d->module) return WEFT_ERROR;
  snprintf(name, sizeof name, "op%u", d->op_fns.count);
  buf_init(&code, &vm->alloc);
  buf_printf(&code, "let %s = jit(%s)\n", name, text);
  Value ran = value_nil();
  WeftStatus status = code.failed ? vm_error_memory(vm)
                                  : vm_eval(vm, d->module, "<gpu>", buf_text(&code), code.len, false, &ran);
  if (status == WEFT_OK) value_drop(vm, ran);
  buf_free(&code);
  if (status != WEFT_OK) return WEFT_ERROR;
  Name id = name_find(&vm->names, name, strlen(name));
  Value *made = id ? module_var(vm, d->module, id) : NULL;
  if (!made || !vec_push(&vm->alloc, &d->op_fns, *made)) return vm_error_memory(vm);
  if (!name_cstr(&d->op_texts, text)) {
    d->op_fns.count--;
    return vm_error_memory(vm);
  }
  *out = *made;
  return WEFT_OK;
}

static WeftStatus find_fn(Device *d, const char *text, Value *out) {
  Name known = !d->op_texts.alloc ? 0 : name_find(&d->op_texts, text, strlen(text));
  if (!known) return make_fn(d, text, out);
  *out = d->op_fns.data[known - 1];
  return WEFT_OK;
}

/* Compiled whatever backend the VM uses; an error stands where the operation does, not in the text made here. */
static WeftStatus call_fn(Device *d, Value fn, Value *args, u32 count, Value *out) {
  Vm *vm = d->vm;
  Tracer *t = tracer_of(vm);
  const Backend *own = t->backend;
  (void)tracer_use_backend(vm, "ptx");
  d->op_depth++;
  WeftStatus status = vm_call(vm, fn, args, count, out);
  d->op_depth--;
  t->backend = own;
  if (status == WEFT_OK || !vm_error_own(vm)) return status;
  size_t len;
  u32 kind = vm->error.kind;
  const char *message = vm_error_message(vm, &len);
  char *copy = mem_alloc(&vm->alloc, len + 1);
  if (!copy) return vm_error_memory(vm);
  memcpy(copy, message, len);
  copy[len] = 0;
  vm_error_forget(vm);
  (void)vm_error(vm, kind, "%s", copy);
  mem_free(&vm->alloc, copy, len + 1);
  return WEFT_ERROR;
}

/* A number that lies on the device comes to the processor, where numbers live. *out owned. */
static WeftStatus number_here(Vm *vm, Value v, Value *out) {
  u64 word[2] = {0, 0};
  Array *a = v.array;
  if (device_to_host(vm, a->data, word, dtype_bytes(array_dtype(a))) != WEFT_OK) return WEFT_ERROR;
  *out = num_load(word, array_dtype(a));
  return WEFT_OK;
}

WeftStatus device_op(Vm *vm, u32 op, Value *args, Value *out) {
  const OpInfo *info = op_info(op);
  Device *d = device_of(vm);
  if (!d) return WEFT_ERROR;
  WeftStatus made;
  if (product_flush(d) != WEFT_OK) return WEFT_ERROR;
  if (op == OP_matmul && device_product(d, args, &made, out)) return made;
  if (!d->op_depth && ((op == OP_nonzero && device_takes_nonzero(args)) ||
                       (op == OP_compress && device_takes_compress(args))))
    return op == OP_nonzero ? device_nonzero(d, args, out) : device_compress(d, args, out);
  /* what has no kernel, and what a check has refused */
  if (d->op_depth) return op_by_processor(vm, op, args, DEV_GPU, out);
  Value held[OP_MAX_PARAMS], fn;
  u32 taken = 0, count = 0;
  WeftStatus status = WEFT_OK;
  if (op_one_device(vm, op, args, DEV_GPU) != WEFT_OK) return WEFT_ERROR;
  Buf text;
  buf_init(&text, &vm->alloc);
  if (op != OP_matmul || !put_product_fn(args, &taken, &text)) put_fn(vm, op, args, &taken, &text);
  status = text.failed ? vm_error_memory(vm) : find_fn(d, buf_text(&text), &fn);
  buf_free(&text);
  for (u32 i = 0; i < info->nparams && status == WEFT_OK; i++) {
    if (!(taken >> i & 1)) continue;
    if (info->params[i].kind == PARAM_places) {
      if ((status = value_moved(vm, args[i], DEV_GPU, &held[count])) != WEFT_OK) break;
      count++;
      continue;
    }
    bool number = args[i].kind == V_ARRAY && array_device(args[i].array) == DEV_GPU && array_rank(args[i].array) == 0;
    if (!info->params[i].rest && is_across(op, args[i])) {
      if ((status = turned(vm, args[i].array, &held[count])) != WEFT_OK) break;
    } else if (!number) held[count] = value_keep(args[i]);
    else if ((status = number_here(vm, args[i], &held[count])) != WEFT_OK) break;
    count++;
  }
  if (status == WEFT_OK) return call_fn(d, fn, held, count, out); /* consumes them */
  for (u32 i = 0; i < count; i++) value_drop(vm, held[i]);
  return WEFT_ERROR;
}

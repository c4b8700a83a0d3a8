/* ops.c — an operation on arrays of the device that the interpreter runs: the same way as compiled code.
 *
 * For each operation and set of given parameters there is a function `(a, b) => op(a, b)`, wrapped in jit, in a module of
 * its own; calling it captures and compiles the operation for the types at hand, and finds it again by its guards. So there is
 * one lowering of each operation, and eager and compiled code run the same kernels.
 *
 * Views, and `to`, need no kernel: their eager code does not look at elements. What has no kernel on a device comes back here from
 * inside of the compiled function, and is refused. */
#include "gpu/ops.h"

#include <stdio.h>
#include <string.h>

/* The text `let NAME = jit((a0, a2) => sum(a0, keepdims=a2), whole=true)`, run. */
static WeftStatus make_fn(Device *d, u32 op, u32 given, Value *out) {
  Vm *vm = d->vm;
  const OpInfo *info = op_info(op);
  Buf text;
  char name[64];
  bool in_order = true, first = true;
  if (!d->module) d->module = module_new(vm, "gpu", "");
  if (!d->module) return WEFT_ERROR;
  snprintf(name, sizeof name, "op%u_%x", op, given);
  buf_init(&text, &vm->alloc);
  buf_printf(&text, "let %s = jit((", name);
  for (u32 i = 0; i < info->nparams; i++)
    if (given >> i & 1) buf_printf(&text, "a%u, ", i);
  buf_printf(&text, ") => %s(", info->name);
  for (u32 i = 0; i < info->nparams; i++) {
    const OpParam *p = &info->params[i];
    in_order = in_order && (given >> i & 1) && !p->keyword_only;
    if (!(given >> i & 1)) continue;
    if (!first) buf_puts(&text, ", ");
    first = false;
    if (p->rest) buf_printf(&text, "...a%u", i);
    else if (in_order) buf_printf(&text, "a%u", i);
    else buf_printf(&text, "%.*s=a%u", (int)p->len, p->name, i);
  }
  buf_puts(&text, "))\n");
  Value ran = value_nil();
  WeftStatus status = text.failed ? vm_error_memory(vm) : vm_eval(vm, d->module, "<gpu>", buf_text(&text), text.len, false, &ran);
  if (status == WEFT_OK) value_drop(vm, ran);
  buf_free(&text);
  if (status != WEFT_OK) return WEFT_ERROR;
  Name id = name_find(&vm->names, name, strlen(name));
  Value *made = id ? module_var(vm, d->module, id) : NULL;
  if (!made) return vm_error_memory(vm);
  if (!vec_push(&vm->alloc, &d->op_fns, ((OpFn){op, given, *made}))) return vm_error_memory(vm);
  *out = *made;
  return WEFT_OK;
}

static WeftStatus find_fn(Device *d, u32 op, u32 given, Value *out) {
  for (u32 i = 0; i < d->op_fns.count; i++) {
    if (d->op_fns.data[i].op != op || d->op_fns.data[i].given != given) continue;
    *out = d->op_fns.data[i].fn;
    return WEFT_OK;
  }
  return make_fn(d, op, given, out);
}

/* A number that lies on the device comes to the processor, where numbers live. *out owned. */
static WeftStatus number_here(Vm *vm, Value v, Value *out) {
  u64 word[2] = {0, 0};
  Array *a = v.array;
  if (device_to_host(vm, a->data, word, dtype_bytes(array_dtype(a))) != WEFT_OK) return WEFT_ERROR;
  *out = num_load(word, array_dtype(a));
  return WEFT_OK;
}

static bool lies_here(Value v) { return v.kind == V_ARRAY && array_device(v.array) == DEV_CPU && array_rank(v.array) > 0; }

WeftStatus device_op(Vm *vm, u32 op, Value *args, Value *out) {
  const OpInfo *info = op_info(op);
  Device *d = device_of(vm);
  if (!d) return WEFT_ERROR;
  if (op == OP_to || (d->op_depth && info->family == FAM_view)) return vm->ops[op].eager(vm, args, out);
  if (d->op_depth || info->family == FAM_control)
    return vm_error(vm, EK_unsupported, "%s: not supported on a GPU; to(x, \"cpu\") brings an array back", info->name);
  Value held[OP_MAX_PARAMS], fn;
  u32 given = 0, count = 0;
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < info->nparams && status == WEFT_OK; i++) {
    if (args[i].kind == V_HOLE) continue;
    if (lies_here(args[i])) {
      status = vm_error(vm, EK_value, "%s: the operands lie on different devices: %.*s is on the cpu, another on the gpu; to(x, device) moves one", info->name,
                        (int)info->params[i].len, info->params[i].name);
      break;
    }
    given |= 1u << i;
    bool number = args[i].kind == V_ARRAY && array_device(args[i].array) == DEV_GPU && array_rank(args[i].array) == 0;
    if (!number) held[count] = value_keep(args[i]);
    else if (number_here(vm, args[i], &held[count]) != WEFT_OK) {
      status = WEFT_ERROR;
      break;
    }
    count++;
  }
  if (status == WEFT_OK) status = find_fn(d, op, given, &fn);
  if (status == WEFT_OK) {
    d->op_depth++;
    status = vm_call(vm, fn, held, count, out); /* consumes them */
    d->op_depth--;
    return status;
  }
  for (u32 i = 0; i < count; i++) value_drop(vm, held[i]);
  return WEFT_ERROR;
}

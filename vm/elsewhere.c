/* elsewhere.c — devices by name, and operations on their arrays that the processor does (see elsewhere.h). */
#include "vm/elsewhere.h"

#include <string.h>

u32 device_by_name(const Vm *vm, const char *name) {
  u32 d = 0;
  while (d < DEVICE_MAX && !(vm->device_names[d] && strcmp(vm->device_names[d], name) == 0)) d++;
  return d;
}

u32 op_device_param(const Vm *vm, u32 op) {
  const OpInfo *info = &vm->op_table[op];
  if (info->family != FAM_make) return UINT32_MAX;
  for (u32 i = info->nparams; i-- > 0;) /* one that must be given is what the kernel is about: to(x, device) */
    if (info->params[i].kind == PARAM_device) return info->params[i].has_default ? i : UINT32_MAX;
  return UINT32_MAX;
}

WeftStatus value_moved(Vm *vm, Value v, u32 device, Value *out) {
  *out = value_hole();
  if (v.kind == V_LIST) {
    if (!cstack_has(CSTACK_CALL)) return vm_error_stack(vm);
    if (!list_new(vm, v.list->count, out)) return WEFT_ERROR;
    for (u32 i = 0; i < v.list->count; i++) {
      Value item;
      /* lists in arguments of operations are flat */
      if (value_moved(vm, v.list->items[i], device, &item) != WEFT_OK) goto fail;
      if (!list_push(vm, out, item)) goto fail; /* consumes the item */
    }
    return WEFT_OK;
  }
  const Value plain = value_untracked(v);
  if (plain.kind != V_ARRAY || array_device(plain.array) == device ||
      (device != DEV_CPU && array_rank(plain.array) == 0)) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  Value args[2] = {v, value_hole()};
  const char *name = vm->device_names[device];
  if (!text_new(vm, name, strlen(name), &args[1])) return WEFT_ERROR;
  WeftStatus status = vm_op(vm, OP_to, args, out); /* a tape writes it down */
  value_drop(vm, args[1]);
  return status;
fail:
  value_drop(vm, *out);
  *out = value_hole();
  return WEFT_ERROR;
}

bool op_is_of_values(const Vm *vm, u32 op) {
  const OpInfo *info = &vm->op_table[op];
  return op == OP_to || op == OP_len || op == OP_type || info->family == FAM_control || info->family == FAM_tree ||
         info->lower == LOWER_calls;
}

bool op_shows(const Vm *vm, u32 op) {
  const u32 family = vm->op_table[op].family;
  return family == FAM_text || family == FAM_io || family == FAM_data;
}

/* A draw, or a key, of numbers alone; else what it makes lies where the key does, or the array. */
static bool draws_of_numbers(const Vm *vm, u32 op, const Value *args) {
  const OpInfo *info = &vm->op_table[op];
  if (info->family != FAM_random) return false;
  for (u32 i = 0; i < info->nparams; i++) {
    const Value v = value_untracked(args[i]);
    if (v.kind == V_ARRAY && array_rank(v.array) && !param_keeps_arrays(&info->params[i])) return false;
  }
  return true;
}

WeftStatus op_called(Vm *vm, u32 op, Value *args, Value *out) {
  WeftStatus status = vm_op(vm, op, args, out);
  const u32 family = vm->op_table[op].family;
  if (LIKELY(family != FAM_make && family != FAM_random) || status != WEFT_OK) return status;
  const Value plain = value_untracked(*out);
  if (plain.kind != V_ARRAY) return status;
  u32 param = op_device_param(vm, op), device = device_default(vm);
  if (param == UINT32_MAX && !draws_of_numbers(vm, op, args)) return WEFT_OK;
  if (param != UINT32_MAX && args[param].kind == V_TEXT) device = device_by_name(vm, args[param].text->data);
  else if (op_follows(op)) return WEFT_OK;
  if (LIKELY(device == array_device(plain.array))) return WEFT_OK;
  Value made = *out;
  status = value_moved(vm, made, device, out);
  value_drop(vm, made);
  return status;
}

WeftStatus op_of_graph(Vm *vm, u32 op, Value *args, Value *out) {
  u32 param = op_device_param(vm, op);
  i64 device = DEV_CPU;
  if (UNLIKELY(op == OP_to) && args[1].kind == V_NUM && num_as_index(args[1], &device))
    return value_moved(vm, args[0], (u32)device, out);
  if (LIKELY(param == UINT32_MAX || args[param].kind != V_NUM || !num_as_index(args[param], &device)))
    return vm_op(vm, op, args, out);
  const Value given = args[param];
  args[param] = value_hole();
  WeftStatus status = vm_op(vm, op, args, out);
  args[param] = given;
  if (status != WEFT_OK) return status;
  Value made = *out;
  status = value_moved(vm, made, (u32)device, out);
  value_drop(vm, made);
  return status;
}

WeftStatus op_by_processor(Vm *vm, u32 op, Value *args, u32 device, Value *out) {
  const OpInfo *info = &vm->op_table[op];
  Value here[OP_MAX_PARAMS], result = value_hole();
  u32 made = 0, param = op_device_param(vm, op);
  WeftStatus status = WEFT_OK;
  for (; made < info->nparams && status == WEFT_OK; made++) status = value_moved(vm, args[made], DEV_CPU, &here[made]);
  if (status == WEFT_OK && !vm->ops[op].eager) status = vm_error(vm, EK_unsupported, "%s: not supported", info->name);
  if (status == WEFT_OK) status = vm->ops[op].eager(vm, here, &result);
  for (u32 i = 0; i < made; i++) value_drop(vm, here[i]);
  if (status != WEFT_OK) return WEFT_ERROR;
  if (param != UINT32_MAX && args[param].kind == V_TEXT) { /* whoever called says where it goes */
    *out = result;
    return WEFT_OK;
  }
  status = value_moved(vm, result, device, out);
  value_drop(vm, result);
  return status;
}

/* The device of an array in v that lies neither there nor everywhere; DEVICE_MAX: there is none. */
static u32 stranger(Value v, u32 device, u32 depth) {
  if (v.kind == V_ARRAY)
    return array_device(v.array) != device && array_rank(v.array) > 0 ? array_device(v.array) : DEVICE_MAX;
  for (u32 i = 0; v.kind == V_LIST && depth < ARRAY_MAX_RANK && i < v.list->count; i++) {
    u32 other = stranger(v.list->items[i], device, depth + 1);
    if (other < DEVICE_MAX) return other;
  }
  return DEVICE_MAX;
}

WeftStatus op_one_device(Vm *vm, u32 op, const Value *args, u32 device) {
  const OpInfo *info = &vm->op_table[op];
  for (u32 i = 0; i < info->nparams; i++) {
    const OpParam *p = &info->params[i];
    u32 other = param_keeps_arrays(p) || p->kind == PARAM_places ? DEVICE_MAX : stranger(args[i], device, 0);
    if (other < DEVICE_MAX)
      return vm_error(vm, EK_value, "%s: the operands lie on different devices: %.*s is on the %s, "
                                    "another on the %s; to(x, device) moves one", info->name, (int)info->params[i].len,
                      info->params[i].name, vm->device_names[other], vm->device_names[device]);
  }
  return WEFT_OK;
}

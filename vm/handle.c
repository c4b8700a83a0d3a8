/* handle.c — objects of the host: their fields, and when the object is asked for them anew.
 *
 * Only the host changes its objects, and it runs between two calls from the host and in host functions: each such
 * time is an epoch (Vm.host_epoch), and within one a type's `flatten` is called once per object. So what is read
 * from the fields stays alive until the host runs again, without a count. */
#include "vm/alloc.h"
#include "vm/vm.h"

bool handle_new(Vm *vm, const HandleType *type, void *object, Value fields, Value *out) {
  Handle *h = obj_alloc(vm, sizeof *h);
  if (!h) {
    value_drop(vm, fields);
    return (void)vm_error_memory(vm), false;
  }
  *h = (Handle){{1, 0}, type, object, fields, UINT64_MAX, NULL};
  *out = value_obj(V_HANDLE, h);
  return true;
}

Value *value_field(Value v, Name key) {
  if (v.kind == V_HANDLE) v = v.handle->fields;
  return v.kind == V_RECORD ? record_find(v.record, key) : NULL;
}

WeftStatus handle_flatten(Vm *vm, const Handle *h, Value *out) {
  *out = value_nil();
  vm->flattening++;
  WeftStatus status = vm->flatten(vm->flatten_ctx, h, out);
  vm->flattening--;
  return status;
}

WeftStatus handle_refresh(Vm *vm, Handle *h) {
  Value now, old = h->fields;
  if (!h->type->flatten || h->epoch == vm->host_epoch) return WEFT_OK;
  if (handle_flatten(vm, h, &now) != WEFT_OK) return WEFT_ERROR;
  h->fields = now;
  h->epoch = vm->host_epoch;
  value_drop(vm, old);
  return WEFT_OK;
}

WeftStatus vm_catch_up(Vm *vm) {
  if (vm->flattening)
    return vm_error(vm, EK_host,
                    "the fields of an object are asked for: the program cannot be run or changed meanwhile");
  WeftStatus status = vm->pending && !vm->pending->left ? vm->pending->leave(vm->pending) : WEFT_OK;
  vm->host_epoch++; /* what the host did before it came here */
  return status;
}

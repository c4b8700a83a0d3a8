/* devices.c — a device that the host registers (see weft.h, WeftDevice): memory and copies; the processor computes. */
#include "api/backends.h"

static const WeftDevice *device_of_host(const Vm *vm) { return vm->device_state[DEV_HOST]; }

static WeftStatus host_alloc(Vm *vm, size_t bytes, void **out) {
  const WeftDevice *d = device_of_host(vm);
  *out = d->alloc(d->context, bytes ? bytes : 1);
  return *out ? WEFT_OK : vm_error(vm, EK_limit, "the device %s has no memory for %zu bytes", d->name, bytes);
}

static void host_free(Vm *vm, void *data, size_t bytes) {
  const WeftDevice *d = device_of_host(vm);
  d->free(d->context, data, bytes ? bytes : 1);
}

static WeftStatus copied(Vm *vm, bool done) {
  vm->counters.at[STAT_transfers]++;
  return done ? WEFT_OK : vm_error(vm, EK_host, "the device %s failed: a copy", device_of_host(vm)->name);
}

static WeftStatus host_read(Vm *vm, const void *data, void *to, size_t bytes) {
  const WeftDevice *d = device_of_host(vm);
  return copied(vm, d->to_host(d->context, data, to, bytes));
}

static WeftStatus host_write(Vm *vm, const void *from, void *data, size_t bytes) {
  const WeftDevice *d = device_of_host(vm);
  return copied(vm, d->from_host(d->context, from, data, bytes));
}

static WeftStatus host_op(Vm *vm, u32 op, Value *args, Value *out) {
  if (op_one_device(vm, op, args, DEV_HOST) != WEFT_OK) return WEFT_ERROR;
  return op_by_processor(vm, op, args, DEV_HOST, out);
}

bool device_add(WeftVM *w, const WeftDevice *d) {
  static const DeviceHooks hooks = {.alloc = host_alloc, .free = host_free, .to_host = host_read,
                                    .from_host = host_write, .op = host_op};
  if (!d) return true;
  if (d->size != sizeof *d || !api_is_name(d->name) || device_by_name(w->vm, d->name) != DEVICE_MAX) return false;
  if (!d->alloc || !d->free || !d->to_host || !d->from_host) return false;
  w->vm->device_state[DEV_HOST] = (void *)(uintptr_t)d;
  w->vm->device_names[DEV_HOST] = d->name;
  w->vm->devices[DEV_HOST] = &hooks;
  return true;
}

WeftStatus weft_set_device(WeftVM *w, const char *name) {
  if (!w || !name || w->vm->frame_count || w->compiling) return WEFT_MISUSE;
  u32 device = device_by_name(w->vm, name);
  if (device == DEVICE_MAX || (device != DEV_CPU && !w->vm->devices[device])) return WEFT_MISUSE;
  w->vm->ambient = (w->vm->ambient & ~((u64)0xff << AMBIENT_DEVICE)) | (u64)device << AMBIENT_DEVICE;
  return WEFT_OK;
}

/* code_device.c — the code of a plan on a device: kernels by the device's own compiler, natives by MIR (see jit.h). */
#include "jit/lower/code.h"

static bool link_device(Vm *vm, JitCode *code, Plan *plan, Buf *why) {
  const JitDevice *device = code->state->device;
  return target_mir.link(vm, code, plan, why) &&
         device->link(vm, plan->kernels.data, plan->kernels.count, &code->on_device, why);
}

static void unlink_device(Vm *vm, JitCode *code) {
  code->state->device->unlink(vm, code->on_device);
  target_mir.unlink(vm, code);
}

const JitTarget target_device = {.name = "device", .on_device = true, .link = link_device, .unlink = unlink_device};

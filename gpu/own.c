/* own.c — kernels that no program gives: each is rendered and loaded when it is first asked for. */
#include "gpu/device.h"
#include "gpu/matmul.h"
#include "gpu/nonzero.h"

static WeftStatus make_matmul_f32(Buf *out) { return matmul_ptx(false, out); }
static WeftStatus make_matmul_f64(Buf *out) { return matmul_ptx(true, out); }

static const struct {
  const char *entry, *op;
  WeftStatus (*make)(Buf *out);
} own_kernels[DEVICE_OWN_KERNELS] = {
  [DEVICE_MATMUL_F32] = {"matmul_f32", "matmul", make_matmul_f32},
  [DEVICE_MATMUL_F64] = {"matmul_f64", "matmul", make_matmul_f64},
  [DEVICE_NONZERO] = {"nonzero", "nonzero", nonzero_ptx},
};

CuFunction device_own_kernel(Device *d, DeviceOwnKernel which) {
  DeviceOwn *p = &d->own[which];
  const char *op = own_kernels[which].op;
  if (p->function) return p->function;
  Buf text, why;
  buf_init(&text, &d->vm->alloc);
  buf_init(&why, &d->vm->alloc);
  if (own_kernels[which].make(&text) != WEFT_OK) {
    (void)vm_error_memory(d->vm);
  } else if (device_load(d, buf_text(&text), &p->module, &why) != WEFT_OK) {
    (void)vm_error(d->vm, EK_host, "the GPU failed: %s: %s", op, why.failed ? "out of memory" : buf_text(&why));
  } else if (device_enter(d)) {
    CuResult error = d->driver.ModuleGetFunction(&p->function, p->module, own_kernels[which].entry);
    if (error) {
      p->function = NULL;
      (void)d->driver.ModuleUnload(p->module);
      (void)device_failed(d, op, error);
    }
    device_leave(d);
  }
  buf_free(&text);
  buf_free(&why);
  return p->function;
}

void device_end_own_kernels(Device *d) {
  for (u32 i = 0; i < COUNT_OF(d->own); i++)
    if (d->own[i].function) (void)d->driver.ModuleUnload(d->own[i].module);
}

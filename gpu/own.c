/* own.c — kernels that no program gives: each is rendered and loaded when it is first asked for. */
#include "gpu/device.h"
#include "gpu/matmul.h"
#include "gpu/nonzero.h"

enum { STATIC_MOST = 48 << 10 /* bytes of shared memory that a launch may have without asking */ };

static WeftStatus render_own(u32 which, Buf *out) {
  switch (which) {
    case DEVICE_NONZERO: return nonzero_ptx(out);
    case DEVICE_MMA_PACK: return mma_pack_ptx(out);
    default:
      if (which < DEVICE_NONZERO) return matmul_ptx(matmul_type(which - DEVICE_MATMUL), out);
      return mma_ptx(mma_kind(which - DEVICE_MMA), out);
  }
}
_Static_assert(DEVICE_OWN_KERNELS - DEVICE_MMA == MMA_KINDS, "a kernel for each kind");
_Static_assert(DEVICE_NONZERO - DEVICE_MATMUL == MATMUL_TYPES, "a kernel for each type");

static const char *entry_of(u32 which) {
  if (which < DEVICE_NONZERO) return matmul_entry(matmul_type(which - DEVICE_MATMUL));
  return which == DEVICE_NONZERO ? "nonzero" : which == DEVICE_MMA_PACK ? "mma_pack" : "mma";
}

CuFunction device_own_kernel(Device *d, DeviceOwnKernel which) {
  DeviceOwn *p = &d->own[which];
  const char *op = which == DEVICE_NONZERO ? "nonzero" : "matmul";
  if (p->function) return p->function;
  Buf text, why;
  buf_init(&text, &d->vm->alloc);
  buf_init(&why, &d->vm->alloc);
  if (render_own(which, &text) != WEFT_OK) {
    (void)vm_error_memory(d->vm);
  } else if (device_load(d, buf_text(&text), &p->module, &why) != WEFT_OK) {
    (void)vm_error(d->vm, EK_host, "the GPU failed: %s: %s", op, why.failed ? "out of memory" : buf_text(&why));
  } else if (device_enter(d)) {
    u32 shared = which >= DEVICE_MMA ? mma_shared(mma_kind(which - DEVICE_MMA)) : 0;
    CuResult error = d->driver.ModuleGetFunction(&p->function, p->module, entry_of(which));
    if (!error && shared > STATIC_MOST)
      error = d->driver.FuncSetAttribute(p->function, CU_FUNCTION_SHARED, (int)shared);
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

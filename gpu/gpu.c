/* gpu.c — the facade of the GPU layer (see gpu.h). */
#include "gpu/gpu.h"

#include "gpu/launch.h"
#include "gpu/matmul.h"
#include "gpu/ops.h"
#include "gpu/ptx.h"
#include "jit/plan/plan.h"

void gpu_print_ptx(const Region *r, Buf *out) {
  const Plan *p = plan_of(r);
  if (!p) {
    buf_puts(out, "no kernels\n");
    return;
  }
  for (u32 i = 0; i < p->kernels.count; i++) {
    const LoopFn *fn = p->kernels.data[i].self;
    Buf text, why;
    buf_init(&text, out->alloc);
    buf_init(&why, out->alloc);
    PtxEpilogue e;
    u32 word = p->kernels.data[i].product;
    if (ptx_module(&fn, NULL, 1, &text, &why) == WEFT_OK) buf_put(out, text.data, text.len);
    else buf_printf(out, "// %s\n", why.len ? buf_text(&why) : "out of memory");
    buf_free(&text);
    buf_init(&text, out->alloc);
    if (word && ptx_epilogue(fn, word - 1, &e) &&
        ptx_product_module(fn, NULL, &e, mma_number((MmaKind){.brain = e.type == LT_BF16}), &text, NULL) == WEFT_OK) {
      buf_puts(out, "\n// with the product in front of it\n");
      buf_put(out, text.data, text.len);
    }
    buf_free(&text);
    buf_free(&why);
  }
  for (u32 i = 0; i < p->natives.count; i++)
    buf_printf(out, "// %s: a loop that the program wrote stays on the processor\n", p->natives.data[i].name);
}

static const DeviceHooks hooks = {.alloc = device_alloc, .free = device_free, .to_host = device_to_host,
                                  .from_host = device_from_host, .op = device_op};

WeftStatus gpu_install(Vm *vm, const char *driver, const char *cache) {
  Device *d = mem_alloc_zero(&vm->alloc, sizeof *d);
  if (!d) return vm_error_memory(vm);
  d->vm = vm;
  d->path = driver;
  code_cache_init(&d->cache, cache, CODE_CACHE_MOST);
  vm->device_state[DEV_GPU] = d;
  vm->devices[DEV_GPU] = &hooks;
  return WEFT_OK;
}

WeftStatus gpu_open(Vm *vm) { return device_of(vm) ? WEFT_OK : WEFT_ERROR; }

/* launch.c — kernels of plans on the device: rendered, loaded and launched (the JitDevice of jit/jit.h).
 *
 * An argument that is an array on the device is passed as it is. One that lies on the processor is copied there for
 * the launch, and back when the kernel writes it, so that a plan runs wherever its arrays are; a number that a
 * kernel reads or writes lies in a cell. Launches are not waited for, but for checks and for what is copied back. */
#include "gpu/launch.h"

#include "gpu/ptx.h"

typedef struct Loaded {
  CuModule module;
  u32 count;
  struct LoadedKernel {
    CuFunction function;
    bool checks, warps;
  } kernels[];
} Loaded;

static bool has_checks(const LoopFn *fn) {
  for (u32 i = 0; i < fn->body.count; i++)
    if (loop_node(fn, fn->body.data[i])->op == LOOP_CHECK) return true;
  return false;
}

/* ---- arguments ------------------------------------------------------------------------------------------ */

typedef struct Copied {
  char *host;      /* first byte of what was copied */
  CuPointer at;
  size_t bytes;
  bool back, owned;
} Copied;

typedef struct Launch {
  Device *d;
  Copied *copies;
  u32 count;
  u32 cells;       /* used, the key's included */
  CuResult error;
} Launch;

/* The bytes that an array of any strides reaches, relative to its element 0. */
static void reach(Array *a, i64 *low, i64 *high) {
  i64 bytes = dtype_bytes(array_dtype(a));
  *low = 0;
  *high = bytes;
  for (u32 d = 0; d < array_rank(a); d++) {
    i64 last = (array_dims(a)[d] - 1) * array_strides(a)[d] * bytes;
    if (last < 0) *low += last;
    else *high += last;
  }
}

/* The device address of an array on the processor; what two arguments share is copied once. */
static WeftStatus copy_there(Launch *l, Array *a, bool back, u64 *word) {
  Device *d = l->d;
  i64 low, high;
  if (a->size == 0) {
    *word = 0;
    return WEFT_OK;
  }
  reach(a, &low, &high);
  Copied c = {.host = (char *)a->data + low, .bytes = (size_t)(high - low), .back = back, .owned = true};
  for (u32 i = 0; i < l->count; i++) {
    if (l->copies[i].host != c.host || l->copies[i].bytes != c.bytes) continue;
    l->copies[i].back |= back;
    *word = l->copies[i].at - (u64)low;
    return WEFT_OK;
  }
  void *at;
  if (device_alloc(d->vm, c.bytes, &at) != WEFT_OK) return WEFT_ERROR;
  c.at = (CuPointer)(uintptr_t)at;
  l->copies[l->count++] = c;
  *word = c.at - (u64)low;
  return device_from_host(d->vm, c.host, at, c.bytes);
}

static WeftStatus copy_cell(Launch *l, u64 *cell, bool back, u64 *word) {
  Device *d = l->d;
  if (l->cells == DEVICE_CELLS)
    return vm_error(d->vm, EK_unsupported, "a kernel with too many numbers is not supported on a GPU");
  CuPointer at = d->cells + 8 * (u64)l->cells++;
  l->copies[l->count++] = (Copied){.host = (char *)cell, .at = at, .bytes = 8, .back = back};
  *word = at;
  return device_from_host(d->vm, cell, (void *)(uintptr_t)at, 8);
}

static WeftStatus finish(Launch *l, WeftStatus status) {
  Device *d = l->d;
  for (u32 i = 0; i < l->count; i++) {
    Copied *c = &l->copies[i];
    if (c->back && status == WEFT_OK) status = device_to_host(d->vm, (void *)(uintptr_t)c->at, c->host, c->bytes);
    if (c->owned) device_free(d->vm, (void *)(uintptr_t)c->at, c->bytes);
  }
  return status;
}

/* ---- launching --------------------------------------------------------------------------------------------- */

static WeftStatus launch(const PlanKernel *k, Vm *vm, const u64 *given, Array *const *arrays, u32 count, i64 lo,
                         i64 hi, u64 *key) {
  const struct LoadedKernel *loaded = k->launched;
  const LoopFn *fn = k->self;
  Device *d = device_of(vm);
  *key = LOOP_KEY_NONE;
  if (!d) return WEFT_ERROR;
  if (lo >= hi) return WEFT_OK;
  if (!d->cells) {
    void *cells;
    if (device_alloc(vm, 8 * DEVICE_CELLS, &cells) != WEFT_OK) return WEFT_ERROR;
    d->cells = (CuPointer)(uintptr_t)cells;
  }
  u64 words[count + 3];
  void *params[count + 3];
  Copied copies[count + 1];
  Launch l = {.d = d, .copies = copies, .cells = 1};
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    const LoopNode *p = loop_node(fn, fn->params.data[i]);
    words[i] = given[i];
    if (p->type != LT_PTR) continue;
    bool back = p->aux != LOOP_IN;
    if (!arrays[i]) status = copy_cell(&l, (u64 *)(uintptr_t)given[i], back, &words[i]);
    else if (array_device(arrays[i]) != DEV_GPU) status = copy_there(&l, arrays[i], back, &words[i]);
  }
  words[count] = (u64)lo;
  words[count + 1] = (u64)hi;
  words[count + 2] = d->cells;
  for (u32 i = 0; i < count + 3; i++) params[i] = &words[i];
  if (status == WEFT_OK && loaded->checks) status = device_from_host(vm, key, (void *)(uintptr_t)d->cells, 8);
  if (status == WEFT_OK && !device_enter(d))
    status = vm_error(vm, EK_host, "the GPU failed: its context cannot be entered");
  else if (status == WEFT_OK) {
    u64 threads = (u64)(hi - lo) * (loaded->warps ? 32 : 1), blocks = (threads + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
    u64 most = (u64)(d->sms > 0 ? d->sms : 1) * DEVICE_BLOCKS_PER_SM;
    if (blocks > most) blocks = most;
    CuResult error = d->driver.LaunchKernel(loaded->function, (unsigned)blocks, 1, 1, DEVICE_BLOCK, 1, 1, 0, NULL,
                                            params, NULL);
    device_leave(d);
    vm->counters.at[STAT_launches]++;
    if (error) status = device_failed(d, k->name, error);
  }
  if (status == WEFT_OK && loaded->checks) status = device_to_host(vm, (void *)(uintptr_t)d->cells, key, 8);
  return finish(&l, status);
}

/* ---- linking --------------------------------------------------------------------------------------------------- */

static void unlink_kernels(Vm *vm, void *linked) {
  Loaded *l = linked;
  Device *d = vm->device_state[DEV_GPU];
  if (!l) return;
  if (d && d->open && l->module && device_enter(d)) {
    (void)d->driver.ModuleUnload(l->module);
    device_leave(d);
  }
  mem_free(&vm->alloc, l, sizeof *l + sizeof *l->kernels * l->count);
}

/* The error of the VM as a reason. */
static void move_error(Vm *vm, Buf *why) {
  size_t len;
  const char *text = vm_error_message(vm, &len);
  buf_put(why, text, len);
  vm_error_clear(vm);
}

static bool link_kernels(Vm *vm, PlanKernel *kernels, u32 count, void **linked, Buf *why) {
  *linked = NULL;
  if (!count) return true;
  Device *d = device_of(vm);
  if (!d) {
    move_error(vm, why);
    return false;
  }
  Loaded *l = mem_alloc_zero(&vm->alloc, sizeof *l + sizeof *l->kernels * count);
  const LoopFn **fns = mem_alloc(&vm->alloc, sizeof *fns * count);
  Buf text;
  buf_init(&text, &vm->alloc);
  bool ok = l && fns;
  if (!ok) buf_puts(why, "out of memory");
  if (l) l->count = count;
  for (u32 i = 0; ok && i < count; i++) fns[i] = kernels[i].self;
  ok = ok && ptx_module(fns, NULL, count, &text, why) == WEFT_OK &&
       device_load(d, buf_text(&text), &l->module, why) == WEFT_OK;
  for (u32 i = 0; ok && i < count; i++) {
    const char *name = name_text(&fns[i]->module->names, fns[i]->name);
    ok = device_enter(d);
    if (!ok) buf_puts(why, "the GPU failed: its context cannot be entered");
    CuResult error = ok ? d->driver.ModuleGetFunction(&l->kernels[i].function, l->module, name) : 0;
    if (ok) device_leave(d);
    if (error) buf_printf(why, "the CUDA driver does not find %s: %s", name, driver_error(&d->driver, error));
    ok = ok && !error;
    l->kernels[i].checks = has_checks(fns[i]);
    l->kernels[i].warps = ptx_spread(fns[i]) == PTX_WARPS;
  }
  for (u32 i = 0; ok && i < count; i++) {
    kernels[i].launch = launch;
    kernels[i].launched = &l->kernels[i];
  }
  buf_free(&text);
  if (fns) mem_free(&vm->alloc, fns, sizeof *fns * count);
  if (ok) *linked = l;
  else unlink_kernels(vm, l);
  return ok;
}

static void remove_device(Vm *vm) {
  Device *d = vm->device_state[DEV_GPU];
  if (!d) return;
  if (d->open) {
    if (device_enter(d)) {
      for (u32 i = 0; i < d->kept.count; i++) (void)d->driver.MemFree(d->kept.data[i].at);
      if (d->cells) (void)d->driver.MemFree(d->cells);
      device_leave(d);
    }
    (void)d->driver.DevicePrimaryCtxRelease(d->id);
    driver_close(&d->driver);
  }
  vec_free(&vm->alloc, &d->kept);
  vec_free(&vm->alloc, &d->op_fns);
  if (d->op_texts.alloc) names_free(&d->op_texts);
  vm->device_state[DEV_GPU] = NULL;
  mem_free(&vm->alloc, d, sizeof *d);
}

const JitDevice gpu_device = {.name = "ptx", .device = DEV_GPU, .link = link_kernels, .unlink = unlink_kernels,
                              .remove = remove_device};

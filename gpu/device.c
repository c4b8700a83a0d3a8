/* device.c — context, memory, copies and modules of a VM's device (see device.h). */
#define _GNU_SOURCE /* dladdr */
#include "gpu/device.h"
#include "gpu/matmul.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>

WeftStatus device_failed(Device *d, const char *what, CuResult error) {
  return vm_error(d->vm, EK_host, "the GPU failed: %s: %s", what, driver_error(&d->driver, error));
}

bool device_enter(Device *d) { return d->driver.CtxPushCurrent(d->context) == 0; }

void device_leave(Device *d) {
  CuContext own;
  (void)d->driver.CtxPopCurrent(&own);
}

static WeftStatus open_device(Device *d) {
  Buf why;
  Vm *vm = d->vm;
  if (!vm->limits.allow_gpu) return vm_limit(vm, LIMIT_gpu, "the host does not allow using the GPU");
  buf_init(&why, &vm->alloc);
  if (!driver_open(&d->driver, d->path, &why)) {
    WeftStatus status = why.failed ? vm_error_memory(vm)
                                   : vm_error(vm, EK_unsupported, "the GPU cannot be used: %s", buf_text(&why));
    buf_free(&why);
    return status;
  }
  buf_free(&why);
  Driver *c = &d->driver;
  CuResult error = c->DeviceGet(&d->id, 0);
  if (!error) error = c->DeviceGetName(d->name, sizeof d->name, d->id);
  if (!error) error = c->DeviceGetAttribute(&d->sms, CU_ATTRIBUTE_SM_COUNT, d->id);
  if (!error) error = c->DeviceGetAttribute(&d->major, CU_ATTRIBUTE_MAJOR, d->id);
  if (!error) error = c->DeviceGetAttribute(&d->minor, CU_ATTRIBUTE_MINOR, d->id);
  if (!error && d->major * 10 + d->minor < 70) {
    WeftStatus status = vm_error(vm, EK_unsupported,
                                 "the GPU cannot be used: %s has compute capability %d.%d; 7.0 is needed", d->name,
                                 d->major, d->minor);
    driver_close(c);
    return status;
  }
  if (!error) error = c->DevicePrimaryCtxRetain(&d->context, d->id);
  if (error) {
    WeftStatus status = device_failed(d, "it does not start", error);
    driver_close(c);
    return status;
  }
  d->open = true;
  return WEFT_OK;
}

Device *device_of(Vm *vm) {
  Device *d = vm->device_state[DEV_GPU];
  if (!d) {
    (void)vm_error(vm, EK_unsupported, "not supported: there is no GPU layer in this VM");
    return NULL;
  }
  return d->open || open_device(d) == WEFT_OK ? d : NULL;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static size_t rounded(size_t bytes) {
  size_t size = DEVICE_LEAST;
  if (bytes > (size_t)DEVICE_LEAST << (DEVICE_CLASSES - 1)) return (bytes + 255) & ~(size_t)255;
  while (size < bytes) size *= 2;
  return size;
}

static void give_back(Device *d) {
  for (u32 i = 0; i < d->kept.count; i++) (void)d->driver.MemFree(d->kept.data[i].at);
  d->kept.count = 0;
  d->kept_bytes = 0;
}

static WeftStatus refused(Device *d, size_t bytes) {
  size_t left = 0, total = 0;
  (void)d->driver.MemGetInfo(&left, &total);
  return vm_error(d->vm, EK_limit, "the GPU has no memory for %zu bytes: arrays hold %llu, %zu of %zu are free", bytes,
                  (unsigned long long)d->live, left, total);
}

WeftStatus device_alloc(Vm *vm, size_t bytes, void **out) {
  Device *d = device_of(vm);
  size_t size = rounded(bytes);
  *out = NULL;
  if (!d) return WEFT_ERROR;
  CuPointer at = 0;
  for (u32 i = d->kept.count; i-- > 0 && !at;) {
    if (d->kept.data[i].bytes != size) continue;
    at = d->kept.data[i].at;
    d->kept.data[i] = d->kept.data[--d->kept.count];
    d->kept_bytes -= size;
  }
  if (!at) {
    if (!device_enter(d)) return vm_error(vm, EK_host, "the GPU failed: its context cannot be entered");
    CuResult error = d->driver.MemAlloc(&at, size);
    if (error == CU_OUT_OF_MEMORY && d->kept.count) {
      give_back(d);
      error = d->driver.MemAlloc(&at, size);
    }
    WeftStatus status = !error ? WEFT_OK : error == CU_OUT_OF_MEMORY ? refused(d, size)
                               : device_failed(d, "memory", error);
    device_leave(d);
    if (status != WEFT_OK) return status;
  }
  d->live += size;
  *out = (void *)(uintptr_t)at;
  return WEFT_OK;
}

void device_free(Vm *vm, void *data, size_t bytes) {
  Device *d = vm->device_state[DEV_GPU];
  size_t size = rounded(bytes);
  if (!d || !d->open || !data) return;
  product_forget(d, data);
  d->live -= size;
  FreeBlock b = {(CuPointer)(uintptr_t)data, size};
  if (vec_push(&vm->alloc, &d->kept, b)) {
    d->kept_bytes += size;
    return;
  }
  if (!device_enter(d)) return;
  (void)d->driver.MemFree(b.at);
  device_leave(d);
}

void device_reach(Array *a, i64 *low, i64 *high) {
  i64 bytes = dtype_bytes(array_dtype(a));
  *low = 0;
  *high = bytes;
  for (u32 d = 0; d < array_rank(a); d++) {
    i64 last = (array_dims(a)[d] - 1) * array_strides(a)[d] * bytes;
    if (last < 0) *low += last;
    else *high += last;
  }
}

/* ---- copies: they wait for the kernels before them ------------------------------------------------------- */

WeftStatus device_to_host(Vm *vm, const void *device, void *host, size_t bytes) {
  Device *d = device_of(vm);
  if (!d || product_flush(d) != WEFT_OK) return WEFT_ERROR;
  if (!device_enter(d)) return vm_error(vm, EK_host, "the GPU failed: its context cannot be entered");
  CuResult error = d->driver.MemcpyDtoH(host, (CuPointer)(uintptr_t)device, bytes);
  device_leave(d);
  vm->counters.at[STAT_transfers]++;
  vm->counters.at[STAT_syncs]++;
  return error ? device_failed(d, "copying from it", error) : WEFT_OK;
}

WeftStatus device_from_host(Vm *vm, const void *host, void *device, size_t bytes) {
  Device *d = device_of(vm);
  if (!d || product_flush(d) != WEFT_OK) return WEFT_ERROR;
  if (!device_enter(d)) return vm_error(vm, EK_host, "the GPU failed: its context cannot be entered");
  CuResult error = d->driver.MemcpyHtoD((CuPointer)(uintptr_t)device, host, bytes);
  device_leave(d);
  vm->counters.at[STAT_transfers]++;
  return error ? device_failed(d, "copying to it", error) : WEFT_OK;
}

/* ---- modules -------------------------------------------------------------------------------------------------- */

/* What the code of a kernel depends on: the card, the driver (its version, and its file, since versions have several
 * builds), and the text. */
static void put_identity(const Device *d, const char *ptx, Buf *out) {
  int version = 0;
  Dl_info where;
  struct stat file = {0};
  void *start;
  memcpy(&start, &d->driver.Init, sizeof start);
  (void)d->driver.DriverGetVersion(&version);
  if (dladdr(start, &where) && where.dli_fname) (void)stat(where.dli_fname, &file);
  buf_printf(out, "// sm_%d%d, driver %d, %lld bytes, %lld.%09ld\n%s", d->major, d->minor, version,
             (long long)file.st_size, (long long)file.st_mtim.tv_sec, (long)file.st_mtim.tv_nsec, ptx);
}

/* The driver's link makes code of the text that can be kept; loading the text itself would not give it out. */
static CuResult link_and_keep(Device *d, const Buf *identity, const char *ptx, CuModule *out) {
  Driver *c = &d->driver;
  CuLink link;
  void *code;
  size_t bytes;
  CuResult error = c->LinkCreate(0, NULL, NULL, &link);
  if (error) return error;
  error = c->LinkAddData(link, CU_JIT_PTX, (void *)(uintptr_t)ptx, strlen(ptx) + 1, "weft", 0, NULL, NULL);
  if (!error) error = c->LinkComplete(link, &code, &bytes);
  if (!error) error = c->ModuleLoadDataEx(out, code, 0, NULL, NULL);
  if (!error) code_cache_keep(&d->cache, &d->vm->alloc, identity->data, identity->len, code, bytes);
  (void)c->LinkDestroy(link);
  return error;
}

/* The module as the cache has it, or made for the cache. False: there is none, and the text is loaded as it is. */
static bool load_by_cache(Device *d, const char *ptx, CuModule *out) {
  Buf identity;
  void *code;
  size_t bytes;
  if (!d->cache.folder) return false;
  buf_init(&identity, &d->vm->alloc);
  put_identity(d, ptx, &identity);
  bool loaded = false;
  if (!identity.failed && code_cache_find(&d->cache, &d->vm->alloc, identity.data, identity.len, &code, &bytes)) {
    loaded = d->driver.ModuleLoadDataEx(out, code, 0, NULL, NULL) == 0;
    mem_free(&d->vm->alloc, code, bytes);
    if (!loaded) code_cache_drop(&d->cache, identity.data, identity.len);
  }
  if (!identity.failed && !loaded && d->cache.folder) loaded = link_and_keep(d, &identity, ptx, out) == 0;
  buf_free(&identity);
  return loaded;
}

WeftStatus device_load(Device *d, const char *ptx, CuModule *out, Buf *why) {
  char log[4096] = "";
  int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  if (!device_enter(d)) {
    buf_puts(why, "the context of the GPU cannot be entered");
    return WEFT_ERROR;
  }
  CuResult error = 0;
  if (!load_by_cache(d, ptx, out))
    error = d->driver.ModuleLoadDataEx(out, ptx, COUNT_OF(options), options, values);
  device_leave(d);
  if (!error) return WEFT_OK;
  log[sizeof log - 1] = 0;
  buf_printf(why, "the CUDA driver refuses a kernel: %s %s", driver_error(&d->driver, error), log);
  return WEFT_ERROR;
}

/* driver.c — finds the CUDA driver and its functions (see driver.h). */
#include "gpu/driver.h"

#include <dlfcn.h>
#include <string.h>

typedef CuResult (*GetProcAddress)(const char *name, void **function, int version, unsigned long long flags,
                                   int *found);

bool driver_open(Driver *d, const char *path, Buf *why) {
  static const char *const names[] = {
#define CU(name, params) "cu" #name,
    CU_FUNCTIONS(CU)
#undef CU
  };
  if (!path) path = "libcuda.so.1";
  *d = (Driver){.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  if (!d->library) {
    const char *said = dlerror();
    buf_printf(why, "no CUDA driver was found: %s", said ? said : path);
    return false;
  }
  GetProcAddress get;
  void *symbol = dlsym(d->library, "cuGetProcAddress_v2");
  memcpy(&get, &symbol, sizeof get);
  if (!get) {
    buf_printf(why, "the CUDA driver %s is too old: CUDA 12 or newer is needed", path);
    driver_close(d);
    return false;
  }
  void **at = (void **)((char *)d + sizeof d->library);
  _Static_assert(sizeof(Driver) == sizeof(void *) * (1 + COUNT_OF(names)), "one pointer for each function");
  for (u32 i = 0; i < COUNT_OF(names); i++) {
    if (get(names[i], &at[i], CU_INTERFACE, 0, NULL) == 0 && at[i]) continue;
    buf_printf(why, "the CUDA driver %s has no %s", path, names[i]);
    driver_close(d);
    return false;
  }
  CuResult error = d->Init(0);
  int count = 0;
  if (!error) error = d->DeviceGetCount(&count);
  if (!error && !count) error = CU_NO_DEVICE;
  if (!error) return true;
  buf_printf(why, "the CUDA driver does not start: %s", driver_error(d, error));
  driver_close(d);
  return false;
}

void driver_close(Driver *d) {
  if (d->library) dlclose(d->library);
  *d = (Driver){0};
}

const char *driver_error(const Driver *d, CuResult error) {
  const char *text = NULL;
  return d->GetErrorString && d->GetErrorString(error, &text) == 0 && text ? text : "an unknown error";
}

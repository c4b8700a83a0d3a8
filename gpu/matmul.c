/* matmul.c — products of two matrices on the device (see matmul.h). */
#include "gpu/matmul.h"

bool device_takes_product(const Value *args) {
  if (args[0].kind != V_ARRAY || args[1].kind != V_ARRAY) return false;
  const Array *x = args[0].array, *y = args[1].array;
  u32 dtype = array_dtype(x);
  if (array_device(x) != DEV_GPU || array_device(y) != DEV_GPU || array_rank(x) != 2 || array_rank(y) != 2 ||
      (dtype != DT_f32 && dtype != DT_f64) || array_dtype(y) != dtype)
    return false;
  i64 m = array_dims((Array *)x)[0], k = array_dims((Array *)x)[1], n = array_dims((Array *)y)[1];
  return array_dims((Array *)y)[0] == k && m > 0 && n > 0 && m <= INT32_MAX && n <= INT32_MAX && k <= INT32_MAX;
}

WeftStatus device_product(Device *d, const Value *args, Value *out) {
  Array *x = args[0].array, *y = args[1].array;
  bool wide = array_dtype(x) == DT_f64;
  u64 m = (u64)array_dims(x)[0], k = (u64)array_dims(x)[1], n = (u64)array_dims(y)[1],
      side = MATMUL_SIDE, tiles = ((m + side - 1) / side) * ((n + side - 1) / side);
  CuFunction f = device_own_kernel(d, wide ? DEVICE_MATMUL_F64 : DEVICE_MATMUL_F32);
  if (!f) return WEFT_ERROR;
  if (array_new_on(d->vm, DEV_GPU, array_dtype(x), 2, (i64[2]){(i64)m, (i64)n}, out) != WEFT_OK) return WEFT_ERROR;
  u64 words[MATMUL_PARAMS] = {(u64)(uintptr_t)x->data, (u64)(uintptr_t)y->data, (u64)(uintptr_t)out->array->data, m, n,
                              k, (u64)array_strides(x)[0], (u64)array_strides(x)[1], (u64)array_strides(y)[1],
                              (u64)array_strides(y)[0]};
  void *params[MATMUL_PARAMS];
  for (u32 i = 0; i < MATMUL_PARAMS; i++) params[i] = &words[i];
  bool entered = tiles <= INT32_MAX && device_enter(d);
  CuResult error = 0;
  if (entered) {
    error = d->driver.LaunchKernel(f, (unsigned)tiles, 1, 1, DEVICE_BLOCK, 1, 1, 0, NULL, params, NULL);
    device_leave(d);
    d->vm->counters.at[STAT_launches]++;
  }
  if (entered && !error) return WEFT_OK;
  value_drop(d->vm, *out);
  *out = value_hole();
  if (error) return device_failed(d, "matmul", error);
  return vm_error(d->vm, EK_host, "the GPU failed: its context cannot be entered");
}

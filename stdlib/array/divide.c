/* divide.c — integers divided by a number that is known for many of them (see divide.h). */
#include "stdlib/array/divide.h"

Divisor divisor_of(u32 op, u32 dtype, Value num) {
  Divisor d = {.rest = op == OP_remainder};
  if ((op != OP_floor_divide && op != OP_remainder) || (dtype != DT_i32 && dtype != DT_i64) ||
      num.kind != V_NUM || num.i < 2)
    return d;
  u32 bits = 64 - (u32)__builtin_clzll((u64)num.i - 1); /* 2**bits is not below the divisor */
  unsigned __int128 power = (unsigned __int128)1 << (63 + bits);
  d.by = num.i;
  d.times = (u64)((power - 1) / (u64)num.i + 1);
  d.shift = bits - 1;
  return d;
}

/* floor(x / d) of a negative x is ~floor(~x / d). */
#define DIVIDE(T, U)                                                                \
  {                                                                                 \
    const T *p = x;                                                                 \
    T *o = out;                                                                     \
    for (i64 i = 0; i < n; i++) {                                                   \
      i64 v = p[i], sign = v >> 63;                                                 \
      u64 high = (u64)((unsigned __int128)(u64)(v ^ sign) * d->times >> 64);        \
      i64 q = (i64)(high >> d->shift) ^ sign;                                       \
      o[i] = (T)(d->rest ? (U)v - (U)q * (U)d->by : (U)q);                          \
    }                                                                               \
  }

void divisor_run(const Divisor *by, u32 bytes, void *out, const void *x, i64 n) {
  const Divisor own = *by, *d = &own; /* nothing that is written through `out` */
  if (bytes == 4) DIVIDE(i32, u32)
  else DIVIDE(i64, u64)
}

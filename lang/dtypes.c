/* dtypes.c — promotion and properties of data types (see dtypes.h). */
#include "lang/dtypes.h"

#include <string.h>

#define KIND_BOOL DK_BOOL, false
#define KIND_SINT DK_INT, true
#define KIND_UINT DK_INT, false
#define KIND_FLOAT DK_FLOAT, false
#define KIND_COMPLEX DK_COMPLEX, false

const DTypeInfo dtype_info[DT_COUNT] = {
    [DT_NONE] = {.name = "none", .doc = ""},
#define DTYPE(name, bytes, kind, computes, sums, loops, doc) \
  [DT_##name] = {#name, bytes, KIND_##kind, DT_##computes, DT_##sums, doc},
#include "lang/dtypes.def"
};

const u8 dtype_cans[DT_COUNT][NEED_COUNT] = {
#define DTYPE_CAN(name, store, convert, compute, reduce, order, product, factor, random, print)                \
  [DT_##name] = {CAN_own,         CAN_##store,   CAN_##convert, CAN_##compute, CAN_##reduce, CAN_##order, \
                 CAN_##product, CAN_##factor,  CAN_##random,  CAN_##print},
#include "lang/dtypes.def"
};

DType dtype_by_name(const char *s, size_t len) {
  for (int d = 1; d < DT_COUNT; d++)
    if (strlen(dtype_info[d].name) == len && memcmp(dtype_info[d].name, s, len) == 0) return (DType)d;
  return DT_NONE;
}

static DType promote_ints(u32 a, u32 b) {
  bool sa = dtype_is_signed(a), sb = dtype_is_signed(b);
  u32 na = dtype_bytes(a), nb = dtype_bytes(b);
  if (sa == sb) return (DType)(na >= nb ? a : b);
  u32 s = sa ? a : b, u = sa ? b : a;
  if (dtype_bytes(u) < dtype_bytes(s)) return (DType)s;
  return dtype_bytes(u) == 4 ? DT_i64 : DT_f64; /* u64 with a signed integer has no integer home */
}

DType dtype_promote(u32 a, u32 b) {
  if (a == b) return (DType)a;
  DTypeKind ka = dtype_kind(a), kb = dtype_kind(b);
  if (ka == DK_NONE || kb == DK_NONE) return DT_NONE;
  if (ka < kb) {
    u32 t = a;
    a = b;
    b = t;
    DTypeKind k = ka;
    ka = kb;
    kb = k;
  }
  if (ka != kb) {
    if (ka == DK_COMPLEX && kb == DK_FLOAT && b == DT_f64) return DT_c128;
    return (DType)a;
  }
  if (ka == DK_INT) return promote_ints(a, b);
  if (ka == DK_FLOAT && dtype_bytes(a) == dtype_bytes(b)) return DT_f32; /* f16 with bf16 */
  return (DType)(dtype_bytes(a) >= dtype_bytes(b) ? a : b);
}

DType dtype_promote_weak(u32 a, bool a_weak, u32 b, bool b_weak, bool *weak) {
  *weak = a_weak && b_weak;
  if (a_weak == b_weak) return dtype_promote(a, b);
  u32 w = a_weak ? a : b, s = a_weak ? b : a;
  if (dtype_kind(w) <= dtype_kind(s)) return (DType)s;
  switch (dtype_kind(w)) {
    case DK_INT: return DT_i64;
    case DK_FLOAT: return DT_f64;
    case DK_COMPLEX: return dtype_complex_of(s);
    default: return (DType)w;
  }
}

DType dtype_float_of(u32 d) { return dtype_kind(d) >= DK_FLOAT ? (DType)d : DT_f64; }

DType dtype_real_of(u32 d) { return d == DT_c64 ? DT_f32 : d == DT_c128 ? DT_f64 : (DType)d; }

DType dtype_complex_of(u32 d) {
  return dtype_kind(d) == DK_COMPLEX ? (DType)d : dtype_compute(d) == DT_f32 ? DT_c64 : DT_c128;
}

i64 dtype_int_min(u32 d) { return dtype_is_signed(d) ? INT64_MIN >> (64 - 8 * dtype_bytes(d)) : 0; }

u64 dtype_int_max(u32 d) {
  if (dtype_kind(d) != DK_INT) return UINT64_MAX;
  return UINT64_MAX >> (64 - 8 * dtype_bytes(d) + dtype_is_signed(d));
}

/* dtypes.h — data types as numbers, with their names, sizes, kinds and promotion (table: dtypes.def). */
#ifndef WEFT_LANG_DTYPES_H
#define WEFT_LANG_DTYPES_H

#include "parser/base.h"

typedef enum DType {
  DT_NONE = 0, /* "no dtype given" in arguments; never the dtype of an array */
#define DTYPE(name, bytes, kind, doc) DT_##name,
#include "lang/dtypes.def"
#undef DTYPE
  DT_COUNT
} DType;

typedef enum DTypeKind { DK_NONE = 0, DK_BOOL, DK_INT, DK_FLOAT, DK_COMPLEX } DTypeKind;

typedef struct DTypeInfo {
  const char *name;
  u8 bytes;
  u8 kind; /* DTypeKind */
  const char *doc;
} DTypeInfo;

extern const DTypeInfo dtype_info[DT_COUNT];

static inline u32 dtype_bytes(u32 d) { return dtype_info[d].bytes; }
static inline DTypeKind dtype_kind(u32 d) { return (DTypeKind)dtype_info[d].kind; }
/* Arrays of the other dtypes are not supported; numbers of them are computed one by one. */
static inline bool dtype_has_kernels(u32 d) {
  return d == DT_bool || d == DT_u8 || d == DT_i32 || d == DT_i64 || d == DT_f32 || d == DT_f64;
}
static inline const char *dtype_name(u32 d) { return dtype_info[d].name; }
DType dtype_by_name(const char *s, size_t len); /* DT_NONE when there is none */

/* Two strong dtypes, by the array API standard; mixed int/float give the float. DT_NONE: no promotion
 * exists (never happens among the listed dtypes: u64 with a signed integer gives f64). */
DType dtype_promote(u32 a, u32 b);
/* The same with weak operands: a weak operand takes the other's dtype when its kind is not higher; a
 * weak operand of a higher kind brings that kind's default (i64, f64, c128; f32's partner is c64).
 * `*weak` is set when both are weak. */
DType dtype_promote_weak(u32 a, bool a_weak, u32 b, bool b_weak, bool *weak);
DType dtype_float_of(u32 d);  /* f64 for bool and integers, else d: results of sqrt, exp, division */
DType dtype_accum(u32 d);     /* result of sum, prod, cumsum: i64 for bool, u8, i32; u64 for u32; else d */
DType dtype_real_of(u32 d);   /* f32 for c64, f64 for c128, else d */
bool dtype_is_signed(u32 d);
/* Bounds of an integer dtype as i64 / u64 (INT kinds only). */
i64 dtype_int_min(u32 d);
u64 dtype_int_max(u32 d);

#endif

/* dtypes.h — data types as numbers, with their names, sizes, kinds and promotion (table: dtypes.def). */
#ifndef WEFT_LANG_DTYPES_H
#define WEFT_LANG_DTYPES_H

#include "parser/base.h"

typedef enum DType {
  DT_NONE = 0, /* "no dtype given" in arguments; never the dtype of an array */
#define DTYPE(name, ...) DT_##name,
#include "lang/dtypes.def"
  DT_COUNT
} DType;

typedef enum DTypeKind { DK_NONE = 0, DK_BOOL, DK_INT, DK_FLOAT, DK_COMPLEX } DTypeKind;

/* What an operation needs of a dtype: the columns of DTYPE_CAN. */
typedef enum DTypeNeed {
  NEED_none, /* it looks at no numbers, or says itself what it takes */
  NEED_store,
  NEED_convert,
  NEED_compute,
  NEED_reduce,
  NEED_order,
  NEED_product,
  NEED_factor,
  NEED_random,
  NEED_print,
  NEED_COUNT
} DTypeNeed;

/* How a dtype does it. */
typedef enum DTypeCan { CAN_none = 0, CAN_wide, CAN_parts, CAN_own } DTypeCan;

typedef struct DTypeInfo {
  const char *name;
  u8 bytes;
  u8 kind; /* DTypeKind */
  bool is_signed; /* an integer below 0 */
  u8 compute; /* DType: what an element is computed in */
  u8 accum;   /* DType: of sum, prod, cumsum, cumprod */
  const char *doc;
} DTypeInfo;

extern const DTypeInfo dtype_info[DT_COUNT];
extern const u8 dtype_cans[DT_COUNT][NEED_COUNT]; /* DTypeCan */

static inline u32 dtype_bytes(u32 d) { return dtype_info[d].bytes; }
static inline DTypeKind dtype_kind(u32 d) { return (DTypeKind)dtype_info[d].kind; }
static inline const char *dtype_name(u32 d) { return dtype_info[d].name; }
static inline bool dtype_is_signed(u32 d) { return dtype_info[d].is_signed; }
/* f32 for f16 and bf16, i64 for u32, else d: what numbers of d are kept as, and computed in */
static inline DType dtype_compute(u32 d) { return (DType)dtype_info[d].compute; }
static inline bool dtype_is_half(u32 d) { return dtype_bytes(d) == 2; } /* see lang/halves.h */
static inline DType dtype_accum(u32 d) { return (DType)dtype_info[d].accum; }
static inline DTypeCan dtype_can(u32 d, DTypeNeed need) { return (DTypeCan)dtype_cans[d][need]; }
DType dtype_by_name(const char *s, size_t len); /* DT_NONE when there is none */

/* Two strong dtypes, by the array API standard; mixed int/float give the float. DT_NONE: no promotion
 * exists (never happens among the listed dtypes: u64 with a signed integer gives f64). */
DType dtype_promote(u32 a, u32 b);
/* The same with weak operands: a weak operand takes the other's dtype when its kind is not higher; a
 * weak operand of a higher kind brings that kind's default (i64, f64, c128; f32's partner is c64).
 * `*weak` is set when both are weak. */
DType dtype_promote_weak(u32 a, bool a_weak, u32 b, bool b_weak, bool *weak);
DType dtype_float_of(u32 d);  /* f64 for bool and integers, else d: results of sqrt, exp, division */
DType dtype_real_of(u32 d);   /* f32 for c64, f64 for c128, else d */
DType dtype_complex_of(u32 d); /* c64 for f32 and what computes in it, c128 for other real ones, else d */
/* Bounds of an integer dtype as i64 / u64 (INT kinds only). */
i64 dtype_int_min(u32 d);
u64 dtype_int_max(u32 d);

#endif

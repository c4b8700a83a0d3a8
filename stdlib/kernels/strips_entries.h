/* strips_entries.h — the kernels of kernel_strips_template.c and their members of StripTable, as ENTRY(member, kernel),
 * which the includer defines. No guard. */
#define STRIP(op, dt, r, check, ...) ENTRY(ops[OP_##op][DT_##dt], HERE(strip_##op##_##dt))
#include "stdlib/kernels/strips.def"
#undef STRIP
#define MATH_ROW(name, dt, level) ENTRY(ops[OP_##name][DT_##dt], wm_strip_##name##_##dt##_##level)
#define MATH_ROW_OF(name, dt, level) MATH_ROW(name, dt, level)
#define MATH(name, dt, arity) MATH_ROW_OF(name, dt, STRIPS_NAME)
#define MATH_HELPER(name, dt, arity)
#include "math_list.h"
#undef MATH_ROW
#undef MATH_ROW_OF

#define COMPLEX_STRIP(op, dt, r, ...) ENTRY(ops[OP_##op][DT_##dt], complex_##op##_##dt)
#define COMPLEX_CONVERT(from, to, ...) ENTRY(convert[DT_##from][DT_##to], complex_##from##_to_##to)
#include "stdlib/kernels/complex_strips.def"
#undef COMPLEX_STRIP
#undef COMPLEX_CONVERT

#define CONVERT_HERE(from, to, check, expr) ENTRY(convert[DT_##from][DT_##to], HERE(strip_##from##_to_##to))
WIDE(CONVERT_HERE)
NARROW(CONVERT_HERE)
UNSIGNED(CONVERT_HERE)
HALVES(CONVERT_HERE)
#undef CONVERT_HERE

ENTRY(limit[DT_f32], HERE(strip_limit_f32))
ENTRY(limit[DT_f64], HERE(strip_limit_f64))
ENTRY(within[DT_f32], HERE(strip_within_f32))
ENTRY(within[DT_f64], HERE(strip_within_f64))
ENTRY(select[1], HERE(strip_select_u8))
ENTRY(select[2], HERE(strip_select_any16))
ENTRY(select[4], HERE(strip_select_any32))
ENTRY(select[8], HERE(strip_select_any64))
ENTRY(select[16], complex_select)
ENTRY(select_past, SELECT_PAST)

#define REDUCTION_OF(which, KIND, dt, kernel) ENTRY(which[REDUCE_##KIND][DT_##dt], kernel)
#define ROWS_OF_EXTREMES(KIND, kind)                               \
  REDUCTION_OF(rows, KIND, bool, HERE(strip_rows_##kind##_u8))     \
  REDUCTION_OF(rows, KIND, u8, HERE(strip_rows_##kind##_u8))       \
  REDUCTION_OF(rows, KIND, i32, HERE(strip_rows_##kind##_i32))     \
  REDUCTION_OF(rows, KIND, i64, HERE(strip_rows_##kind##_i64))     \
  REDUCTION_OF(rows, KIND, u64, HERE(strip_rows_##kind##_u64))     \
  REDUCTION_OF(rows, KIND, f32, REST(strip_rows_##kind##_f32))     \
  REDUCTION_OF(rows, KIND, f64, REST(strip_rows_##kind##_f64))
REDUCTION_OF(rows, ADD, f32, HERE(strip_rows_add_f32))
REDUCTION_OF(rows, ADD, f64, HERE(strip_rows_add_f64))
REDUCTION_OF(rows, MUL, f32, HERE(strip_rows_mul_f32))
REDUCTION_OF(rows, MUL, f64, HERE(strip_rows_mul_f64))
REDUCTION_OF(columns, ADD, f32, HERE(strip_columns_add_f32))
REDUCTION_OF(columns, ADD, f64, HERE(strip_columns_add_f64))
REDUCTION_OF(rows, ADD, i64, HERE(strip_rows_add_i64))
REDUCTION_OF(rows, MUL, i64, HERE(strip_rows_multiply_i64))
/* the same bits */
REDUCTION_OF(rows, ADD, u64, HERE(strip_rows_add_i64))
REDUCTION_OF(rows, MUL, u64, HERE(strip_rows_multiply_i64))
ROWS_OF_EXTREMES(MIN, minimum)
ROWS_OF_EXTREMES(MAX, maximum)
REDUCTION_OF(rows, ADD, bool, HERE(strip_rows_count_bool))
#undef REDUCTION_OF
#undef ROWS_OF_EXTREMES

ENTRY(product[DT_f32], HERE(strip_product_f32))
ENTRY(product[DT_f64], HERE(strip_product_f64))
ENTRY(matrix[DT_f32], HERE(strip_matrix_f32))
ENTRY(matrix[DT_f64], HERE(strip_matrix_f64))
ENTRY(uniform, HERE(strip_uniform))
ENTRY(normal, HERE(strip_normal))
ENTRY(ramp[DT_i64], HERE(strip_ramp_i64))
ENTRY(ramp[DT_f64], HERE(strip_ramp_f64))
#undef ENTRY

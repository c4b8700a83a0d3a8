/* ranges.h — what is known of an integer result, given what is known of the operands. */
#ifndef WEFT_LANG_RANGES_H
#define WEFT_LANG_RANGES_H

#include "lang/ops.h"

/* From lo to hi, both included. */
typedef struct IntRange {
  i64 lo, hi;
} IntRange;

IntRange int_range_of(u32 dtype); /* all numbers of a bool or integer dtype; those of i64 for others */
/* Elements that the operation gives in this dtype, a bool or an integer, when those of its operands lie in xs. Any
 * number of the dtype where nothing more is known; of operands that are no integers all of i64. */
IntRange rule_range(u32 op, u32 dtype, const IntRange *xs, u32 n);

#endif

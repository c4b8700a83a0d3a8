/* accuracy.h — one function of lang/math.loops in both dtypes, and what the two halves of the test measure of it. */
#ifndef WEFT_TESTS_MATH_ACCURACY_H
#define WEFT_TESTS_MATH_ACCURACY_H

#include "jit/loops/loops.h"

typedef u32 (*Strip)(void *, const void *, const void *, i64);
typedef struct Function {
  const char *name;
  u32 arity;
  Strip narrow, wide; /* of f32 and f64, the best that runs here */
  f64 stated[2];      /* lang/math.loops: f64, f32 */
} Function;

typedef struct Worst {
  f64 ulp;
  f64 x, y;
  bool skipped;
} Worst;

/* sweep.c: f32 against the f64 function: every `stride`th argument; of two arguments as many pairs, drawn. */
Worst sweep_narrow(const Function *f, u32 stride);

/* precise.c: f64 against MPFR, on `count` samples of each range, then ever closer around the worst of them, and on hard
 * cases. */
bool precise_is_there(void);
Worst precise_wide(const Function *f, u32 count);
void precise_end(void); /* of a thread */

#endif

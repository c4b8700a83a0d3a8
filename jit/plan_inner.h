/* plan_inner.h — what the files of the plan share. */
#ifndef WEFT_JIT_PLAN_INNER_H
#define WEFT_JIT_PLAN_INNER_H

#include "jit/plan.h"

enum { PLAN_MAX_WORDS = 1024 }; /* arguments or results of one step: they lie on the C stack while it runs */

const char *plan_step_name(u32 op);
bool plan_step_has(u32 op, char field); /* a letter of the step's form in plan.def */

#endif

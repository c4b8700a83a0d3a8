/* record_branch.h — if becomes cond: both arms are recorded into blocks of their own and merged where they meet. */
#ifndef WEFT_TRACER_RECORD_BRANCH_H
#define WEFT_TRACER_RECORD_BRANCH_H

#include "tracer/record/record.h"

Outcome rec_branch(Recorder *r, const Scope *s, Av cond, u32 fall, u32 jump, u32 join);
/* ret: the first arm returns that, else it begins at pc[0]. force_cold: the arm that is not recorded, or -1. */
Outcome rec_branch_once(Recorder *r, const Scope *s, ValueId cond, const u32 pc[2], u32 join, int force_cold,
                        const RecState *base, Av ret);

#endif

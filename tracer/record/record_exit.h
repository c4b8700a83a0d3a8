/* record_exit.h — exits of a trace: recipes of abstract values, the journal, frames with what is live. */
#ifndef WEFT_TRACER_RECORD_EXIT_H
#define WEFT_TRACER_RECORD_EXIT_H

#include "tracer/record/record.h"

/* A place given as u64 becomes an i64. One beyond i64, which would count from the end, is left to the interpreter. */
Outcome rec_place(Recorder *r, ValueId *v);
Outcome rec_check(Recorder *r, CheckKind kind, const ValueId *operands, u32 count); /* leaves by the safe exit */
RecipeId rec_recipe(Recorder *r, Av a);
/* An exit at the top frame's pc with everything that is live. UINT32_MAX: memory refused or not expressible. */
u32 rec_exit(Recorder *r, ExitKind kind, u32 reason, Span span);
u32 rec_exit_return(Recorder *r, Av value);
u32 rec_safe_exit(Recorder *r);
void rec_behind_update(Recorder *r);
void rec_was_written(Recorder *r, NodeId cond);
u32 rec_present_exit(Recorder *r); /* where a check that fails here leaves; UINT32_MAX: nowhere */
/* Registers live before pc, as proto_live gives them. False: memory was refused. */
bool rec_live(Recorder *r, const Proto *p, u32 pc, u64 *bits);

#endif

/* record_effects.h — what a trace does and cannot take back: output inside explicit constructs, calls of host
 * functions. */
#ifndef WEFT_TRACER_RECORD_EFFECTS_H
#define WEFT_TRACER_RECORD_EFFECTS_H

#include "tracer/record/repr.h"

RecipeId rec_hand(Handing *h, Av a, u32 depth); /* 0: it cannot be handed out */
RecipeId rec_hand_number(Handing *h, ValueId v);

bool rec_tokens_begin(Recorder *r);
Outcome rec_past_effects(Recorder *r); /* where something was done since safe_exit: a new one, behind it */
Outcome rec_print(Recorder *r, const Av *params, Av *out);
Outcome rec_host(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, Av *out);

#endif

/* compile.h — traces and compiles for a frame as it stands (compile.c). */
#ifndef WEFT_TRACER_COMPILE_H
#define WEFT_TRACER_COMPILE_H

#include "tracer/tracer.h"

/* Traces and compiles for the frame as it stands; the new entry stands first in the place's cache. NULL: not now. */
GuardEntry *tier_compile(Tracer *t, Frame *frame, Place *p, u32 reason);
GuardEntry *tier_compile_timed(Tracer *t, Frame *frame, Place *p, u32 reason); /* the same, accounted for */

#endif

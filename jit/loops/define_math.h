/* define_math.h — definitions of lang/math.loops for the emitters that expand `math NAME` instead of calling C. */
#ifndef WEFT_JIT_DEFINE_MATH_H
#define WEFT_JIT_DEFINE_MATH_H

#include "jit/loops/loops.h"

/* One function or table of lang/math.loops; made by the build (jit/host/gen_math.c), in the file's order. */
typedef struct MathText {
  const char *name;
  const char *text; /* loop IR */
  const u16 *uses;  /* everything that must be defined before, in order */
  u8 type;          /* LoopType; tables: VOID */
  u8 use_count;
} MathText;

extern const MathText math_texts[];
extern const u32 math_text_count;

/* Defines NAME of `type` in the module, with what it uses, unless it is there already. `why` (may be NULL) says
 * what went wrong: no such function, or memory was refused. */
WeftStatus define_math(LoopModule *m, const char *name, LoopType type, Buf *why) MUST_USE;

#endif

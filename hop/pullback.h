/* pullback.h — functions run once on a tape, to be pulled back or pushed forward through as often as wanted. */
#ifndef WEFT_HOP_PULLBACK_H
#define WEFT_HOP_PULLBACK_H

#include "hop/tape.h"

typedef struct Pullback {
  Vm *vm;
  Tape *tape;
  Value xs;   /* the list of arguments: variables 1 … */
  Value y;    /* the result without this tape */
  u32 *nodes; /* of the leaves of y */
  u32 count;
} Pullback;

/* Runs f on the list xs under a new tape, which is closed afterwards. NULL: an error stands in the VM. */
Pullback *pullback_new(Vm *vm, const char *who, Value f, Value xs);
/* The same, but what is no float among xs is constant. */
Pullback *pullback_mixed(Vm *vm, const char *who, Value f, Value xs);
void pullback_free(void *pullback);
/* The cotangent of f's result (borrowed) to the list of those of its arguments: *out owned. `only`: that of one
 * leaf alone, others have none. */
enum { PULL_ALL = UINT32_MAX };
WeftStatus pullback_pull(Vm *vm, const Pullback *p, const char *who, Value ct, u32 only, Value *out) MUST_USE;

/* The derivative of a pullback by its cotangent. */
typedef struct Pushforward {
  Tape *outer;
  Pullback *p;
  Value zero; /* a cotangent of 0 */
  Value back; /* what it is pulled back to, on the outer tape */
} Pushforward;
WeftStatus pushforward_new(Vm *vm, const char *who, Value f, Value xs, Pushforward *out) MUST_USE;
void pushforward_free(Vm *vm, Pushforward *f);
/* Tangents of the arguments (a list, borrowed) to that of the result: *out owned. */
WeftStatus pushforward_push(Vm *vm, const Pushforward *f, const char *who, Value ts, u32 only, Value *out) MUST_USE;

#endif

/* mechanisms.h — switches that take one mechanism out (table: mechanisms.def), in builds made to show that its
 * tests notice (`make mutation`). In every other build MECHANISM is the constant true. */
#ifndef WEFT_LANG_MECHANISMS_H
#define WEFT_LANG_MECHANISMS_H

#include "lang/switches.h"

typedef enum SwitchId {
#define SWITCH(row, name, doc) SWITCH_##name,
#include "lang/mechanisms.def"
  SWITCH_COUNT
} SwitchId;
_Static_assert(SWITCH_COUNT <= SWITCH_WORDS * 64, "a bit for each");

/* Is the mechanism in place? `holder`: a pointer to a struct with a member `switches`, which is the VM's. */
#ifdef WEFT_MUTATION
#define MECHANISM(holder, name) (!((holder)->switches.off[SWITCH_##name / 64] >> SWITCH_##name % 64 & 1))
#else
#define MECHANISM(holder, name) ((void)(holder), true)
#endif

#endif

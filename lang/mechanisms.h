/* mechanisms.h — switches that take one mechanism out (table: mechanisms.def), in builds made to show that its tests notice
 * (`make mutation`). In every other build MECHANISM is the constant true. */
#ifndef WEFT_LANG_MECHANISMS_H
#define WEFT_LANG_MECHANISMS_H

#include "parser/base.h"

typedef enum SwitchId {
#define SWITCH(row, name, doc) SWITCH_##name,
#include "lang/mechanisms.def"
  SWITCH_COUNT
} SwitchId;

/* What is switched off. Lies in the VM; what has no VM at hand holds a copy. */
typedef struct Switches {
  u64 off[(SWITCH_COUNT + 63) / 64];
} Switches;

/* Is the mechanism in place? `holder`: a pointer to a struct with a member `switches`. */
#ifdef WEFT_MUTATION
#define MECHANISM(holder, name) (!((holder)->switches.off[SWITCH_##name / 64] >> SWITCH_##name % 64 & 1))
#else
#define MECHANISM(holder, name) ((void)(holder), true)
#endif

/* Switches off what `names` lists, parted by commas. False when there is no switch of a name. */
bool switches_off(Switches *s, const char *names) MUST_USE;

#endif

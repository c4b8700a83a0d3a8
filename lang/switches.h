/* switches.h — which mechanisms are taken out of a VM (see mechanisms.h, which knows them by name). */
#ifndef WEFT_LANG_SWITCHES_H
#define WEFT_LANG_SWITCHES_H

#include "parser/base.h"

enum { SWITCH_WORDS = 4 };

/* Lies in the VM; what has no VM at hand holds a copy. All zero but in a build that is made for it. */
typedef struct Switches {
  u64 off[SWITCH_WORDS];
} Switches;

/* Takes out what `names` lists, parted by commas. False when there is no mechanism of a name. */
bool switches_off(Switches *s, const char *names) MUST_USE;

#endif

/* regex.h — what patterns keep in a VM (regex.c). */
#ifndef WEFT_STDLIB_TEXT_REGEX_H
#define WEFT_STDLIB_TEXT_REGEX_H

#include "stdlib/stdlib.h"

typedef struct RegexState RegexState; /* compiled patterns; in Stdlib.regex, NULL before the first one */
void regex_remove(Vm *vm);            /* frees it */

#endif

/* tunables.h — thresholds as one struct per VM (table: tunables.def). */
#ifndef WEFT_LANG_TUNABLES_H
#define WEFT_LANG_TUNABLES_H

#include "parser/base.h"

typedef struct Tunables {
#define TUNABLE(name, value, env, why) i64 name;
#include "lang/tunables.def"
} Tunables;

/* A row of the table. */
typedef struct TunableInfo {
  const char *name, *environment, *why; /* environment: the variable that sets it, or "" */
  i64 value;                            /* where nothing sets it */
} TunableInfo;

const TunableInfo *tunable_by_name(const char *s, size_t len); /* NULL when there is none */

void tunables_default(Tunables *t);
/* Sets those that the environment names (a non-negative decimal number; anything else is ignored). */
void tunables_environment(Tunables *t, const char *(*get)(const char *name));

#endif

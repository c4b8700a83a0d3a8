/* tunables.h — thresholds as one struct per VM (table: tunables.def). */
#ifndef WEFT_LANG_TUNABLES_H
#define WEFT_LANG_TUNABLES_H

#include "parser/base.h"

typedef struct Tunables {
#define TUNABLE(name, value, unit, env, why) i64 name;
#include "lang/tunables.def"
} Tunables;

/* Of rows in percent. */
enum { PERCENT = 100 };
static inline u64 percent_of(u64 x, i64 percent) { return x * (u64)percent / PERCENT; }
/* Of rows in doublings: x doubled so often, at most as often as the row says. */
static inline u64 doubled(u64 x, u64 times, i64 most) { return x << (times < (u64)most ? times : (u64)most); }

/* A row of the table. */
typedef struct TunableInfo {
  const char *name, *unit, *environment, *why; /* environment: the variable that sets it, or "" */
  i64 value;                            /* where nothing sets it */
} TunableInfo;

const TunableInfo *tunable_by_name(const char *s, size_t len); /* NULL when there is none */

void tunables_default(Tunables *t);
/* Sets those that the environment names (a non-negative decimal number; anything else is ignored). */
void tunables_environment(Tunables *t, const char *(*get)(const char *name));

#endif

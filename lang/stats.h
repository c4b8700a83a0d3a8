/* stats.h — the counters of a VM (table: stats.def). */
#ifndef WEFT_LANG_STATS_H
#define WEFT_LANG_STATS_H

#include "parser/base.h"

typedef enum StatId {
#define STAT(name, unit, doc) STAT_##name,
#include "lang/stats.def"
  STAT_COUNT
} StatId;

typedef struct Stats {
  u64 at[STAT_COUNT];
} Stats;

/* A row of the table. "?" when there is none. */
const char *stat_name(u32 s);
const char *stat_unit(u32 s); /* "count" "ns" "bytes" */
const char *stat_doc(u32 s);
int stat_by_name(const char *s, size_t len); /* -1 when there is none */

#endif

/* reasons.h — reasons of breaks, misses and demotions as numbers (table: reasons.def). */
#ifndef WEFT_LANG_REASONS_H
#define WEFT_LANG_REASONS_H

#include "parser/base.h"

typedef enum ReasonGroup { REASON_GROUP_brk, REASON_GROUP_cold, REASON_GROUP_loop, REASON_GROUP_miss,
                           REASON_GROUP_demote, REASON_GROUP_limit } ReasonGroup;

typedef enum Reason {
#define REASON(name, group, text) REASON_##name,
#include "lang/reasons.def"
  REASON_COUNT
} Reason;

const char *reason_name(u32 r);
const char *reason_text(u32 r);
ReasonGroup reason_group(u32 r);
int reason_by_name(const char *s, size_t len); /* -1 when there is none */

#endif

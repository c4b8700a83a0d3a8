/* tables.c — names and texts of reasons, counters and tunables (reasons.def, stats.def, tunables.def). */
#include <stdlib.h>
#include <string.h>

#include "lang/reasons.h"
#include "lang/stats.h"
#include "lang/tunables.h"

/* ---- reasons -------------------------------------------------------------------------------------- */

static const struct {
  const char *name, *text;
  u8 group;
} reasons[REASON_COUNT] = {
#define REASON(name, group, text) {#name, text, REASON_GROUP_##group},
#include "lang/reasons.def"
};

const char *reason_name(u32 r) { return r < REASON_COUNT ? reasons[r].name : "?"; }
const char *reason_text(u32 r) { return r < REASON_COUNT ? reasons[r].text : "?"; }
ReasonGroup reason_group(u32 r) { return r < REASON_COUNT ? (ReasonGroup)reasons[r].group : REASON_GROUP_brk; }

int reason_by_name(const char *s, size_t len) {
  for (u32 i = 0; i < REASON_COUNT; i++)
    if (strlen(reasons[i].name) == len && memcmp(reasons[i].name, s, len) == 0) return (int)i;
  return -1;
}

/* ---- counters ------------------------------------------------------------------------------------- */

static const struct {
  const char *name, *unit, *doc;
} stats[STAT_COUNT] = {
#define STAT(name, unit, doc) {#name, #unit, doc},
#include "lang/stats.def"
};

const char *stat_name(u32 s) { return s < STAT_COUNT ? stats[s].name : "?"; }
const char *stat_unit(u32 s) { return s < STAT_COUNT ? stats[s].unit : "?"; }
const char *stat_doc(u32 s) { return s < STAT_COUNT ? stats[s].doc : "?"; }

int stat_by_name(const char *s, size_t len) {
  for (u32 i = 0; i < STAT_COUNT; i++)
    if (strlen(stats[i].name) == len && memcmp(stats[i].name, s, len) == 0) return (int)i;
  return -1;
}

/* ---- tunables ------------------------------------------------------------------------------------- */

static const Tunables defaults = {
#define TUNABLE(name, value, unit, env, why) .name = value,
#include "lang/tunables.def"
};

static const TunableInfo tunables[] = {
#define TUNABLE(name, value, unit, env, why) {#name, unit, env, why, value},
#include "lang/tunables.def"
};

const TunableInfo *tunable_by_name(const char *s, size_t len) {
  for (u32 i = 0; i < COUNT_OF(tunables); i++)
    if (strlen(tunables[i].name) == len && memcmp(tunables[i].name, s, len) == 0) return &tunables[i];
  return NULL;
}

void tunables_default(Tunables *t) { *t = defaults; }

static void take(i64 *to, const char *text) {
  if (!text || *text < '0' || *text > '9') return;
  char *end;
  long long v = strtoll(text, &end, 10);
  if (*end == 0 && v >= 0 && v < INT64_MAX) *to = v;
}

void tunables_environment(Tunables *t, const char *(*get)(const char *name)) {
#define TUNABLE(name, value, unit, env, why) if (env[0]) take(&t->name, get(env));
#include "lang/tunables.def"
}

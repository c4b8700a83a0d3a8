/* mechanisms.c — switches by their names (mechanisms.def). */
#include "lang/mechanisms.h"

#include <string.h>

static const char *const switch_names[] = {
#define SWITCH(row, name, doc) #name,
#include "lang/mechanisms.def"
};

static int switch_by_name(const char *s, size_t len) {
  for (u32 i = 0; i < SWITCH_COUNT; i++)
    if (strlen(switch_names[i]) == len && memcmp(switch_names[i], s, len) == 0) return (int)i;
  return -1;
}

bool switches_off(Switches *s, const char *names) {
  while (*names) {
    size_t len = strcspn(names, ",");
    int i = switch_by_name(names, len);
    if (i < 0) return false;
    s->off[i / 64] |= (u64)1 << i % 64;
    names += len + (names[len] == ',');
  }
  return true;
}

/* errors.c — names of error kinds and checks (see errors.h). */
#include "lang/errors.h"

#include <string.h>

_Static_assert(EK_syntax == (ErrorKind)DIAG_SYNTAX && EK_name == (ErrorKind)DIAG_NAME &&
               EK_limit == (ErrorKind)DIAG_LIMIT, "base.h numbers the kinds of Diag as errors.def does");

static const char *const kind_names[EK_COUNT] = {
#define ERROR_KIND(name) #name,
#define CHECK(name, kind, meaning)
#include "lang/errors.def"
#undef ERROR_KIND
#undef CHECK
};

static const struct {
  const char *name;
  u8 kind;
} checks[CHECK_COUNT] = {
    {"none", 0},
#define ERROR_KIND(name)
#define CHECK(name, kind, meaning) {#name, EK_##kind},
#include "lang/errors.def"
#undef ERROR_KIND
#undef CHECK
};

const char *error_kind_name(u32 kind) { return kind < EK_COUNT ? kind_names[kind] : "unknown"; }
const char *check_name(u32 check) { return check < CHECK_COUNT ? checks[check].name : "unknown"; }
ErrorKind check_error_kind(u32 check) { return (ErrorKind)(check < CHECK_COUNT ? checks[check].kind : 0); }

int error_kind_by_name(const char *s, size_t len) {
  for (int k = 0; k < EK_COUNT; k++)
    if (strlen(kind_names[k]) == len && memcmp(kind_names[k], s, len) == 0) return k;
  return -1;
}

int check_by_name(const char *s, size_t len) {
  for (int k = 1; k < CHECK_COUNT; k++)
    if (strlen(checks[k].name) == len && memcmp(checks[k].name, s, len) == 0) return k;
  return -1;
}

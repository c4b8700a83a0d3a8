/* errors.h — kinds of errors and of checks (table: errors.def).
 * Described in docs/formats/errors.md. */
#ifndef WEFT_LANG_ERRORS_H
#define WEFT_LANG_ERRORS_H

#include "parser/base.h"

typedef enum ErrorKind {
#define ERROR_KIND(name) EK_##name,
#define CHECK(name, kind, meaning)
#include "lang/errors.def"
#undef ERROR_KIND
#undef CHECK
  EK_COUNT
} ErrorKind;

typedef enum CheckKind {
  CHECK_none = 0,
#define ERROR_KIND(name)
#define CHECK(name, kind, meaning) CHECK_##name,
#include "lang/errors.def"
#undef ERROR_KIND
#undef CHECK
  CHECK_COUNT
} CheckKind;

const char *error_kind_name(u32 kind);
int error_kind_by_name(const char *s, size_t len); /* -1 when there is none */
const char *check_name(u32 check);
ErrorKind check_error_kind(u32 check);
int check_by_name(const char *s, size_t len); /* -1 when there is none */

#endif

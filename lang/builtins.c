/* builtins.c — the names that every module sees unless it shadows them (see bytecode.h). */
#include "lang/bytecode.h"
#include "lang/ops.h"

#include <string.h>

enum { CONSTANTS = 3 };
static const char *const constants[CONSTANTS] = {"pi", "inf", "nan"};

static bool same(const char *name, const char *s, size_t len) {
  return strlen(name) == len && memcmp(name, s, len) == 0;
}

Builtin builtin_find(const char *s, size_t len) {
  DType d = dtype_by_name(s, len);
  if (d) return (Builtin){BUILTIN_DTYPE, (u16)d, dtype_name(d)};
  OpId op = memchr(s, '.', len) ? OP_none : op_by_name(s, len);
  if (op) return (Builtin){BUILTIN_OP, (u16)op, op_name(op)};
  for (u16 i = 0; i < CONSTANTS; i++)
    if (same(constants[i], s, len)) return (Builtin){BUILTIN_CONST, i, constants[i]};
  for (u16 i = 0; i < OP_MODULE_COUNT; i++)
    if (same(op_modules[i], s, len)) return (Builtin){BUILTIN_MODULE, i, op_modules[i]};
  return (Builtin){0};
}

/* In order: operations (those in modules are BUILTIN_NONE), dtypes, constants, modules. */
u32 builtin_count(void) { return OP_COUNT + DT_COUNT + CONSTANTS + OP_MODULE_COUNT; }

Builtin builtin_at(u32 i) {
  if (i < OP_COUNT) {
    bool global = i && !strchr(op_name(i), '.');
    return global ? (Builtin){BUILTIN_OP, (u16)i, op_name(i)} : (Builtin){0};
  }
  i -= OP_COUNT;
  if (i < DT_COUNT) return i ? (Builtin){BUILTIN_DTYPE, (u16)i, dtype_name(i)} : (Builtin){0};
  i -= DT_COUNT;
  if (i < CONSTANTS) return (Builtin){BUILTIN_CONST, (u16)i, constants[i]};
  i -= CONSTANTS;
  return i < OP_MODULE_COUNT ? (Builtin){BUILTIN_MODULE, (u16)i, op_modules[i]} : (Builtin){0};
}

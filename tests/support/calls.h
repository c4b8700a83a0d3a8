/* calls.h — calls of every operation on arrays, made from the table of operations and calls.def. */
#ifndef WEFT_TESTS_CALLS_H
#define WEFT_TESTS_CALLS_H

#include <stdio.h>
#include <string.h>

#include "lang/ops.h"

static const char *const call_ids[] = {
    "",
#define OP(name, ...) #name,
#include "lang/ops.def"
#undef OP
};

/* The required arguments of an operation, where x, y, a and b being matrices of floats are not what it takes. */
typedef struct Call {
  const char *op, *args; /* one behind the other, `|` between */
} Call;

static const Call calls[] = {
#define CALL(op, args) {#op, args},
#define EXTRA(op, text)
#include "tests/support/calls.def"
#undef CALL
#undef EXTRA
};

/* The text of argument `at` of the operation in `out`. False: calls.def does not say, and it is a matrix. */
static inline bool call_argument(u32 op, u32 at, char *out, size_t cap) {
  snprintf(out, cap, "%s", "q");
  for (u32 i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    if (strcmp(calls[i].op, call_ids[op]) != 0) continue;
    const char *from = calls[i].args;
    for (; at && from; at--) from = (from = strchr(from, '|')) ? from + 1 : NULL;
    if (!from) return false;
    const char *end = strchr(from, '|');
    snprintf(out, cap, "%.*s", end ? (int)(end - from) : (int)strlen(from), from);
    return true;
  }
  return false;
}

/* The call with parameter `by` in terms of c; by -1: as it stands. */
static inline void call_text(u32 op, int by, const char *value, char *out, size_t cap) {
  const OpInfo *info = op_info(op);
  size_t n = (size_t)snprintf(out, cap, "%s(", info->name);
  bool more = false;
  for (u32 p = 0; p < info->nparams; p++) {
    const OpParam *param = &info->params[p];
    char text[200];
    if ((int)p == by) snprintf(text, sizeof text, param->has_default ? "%s" : "(%s)", value);
    else if (!call_argument(op, p, text, sizeof text) && param->has_default) continue;
    if (param->has_default)
      n += (size_t)snprintf(out + n, cap - n, "%s%.*s=%s", more ? ", " : "", (int)param->len, param->name, text);
    else n += (size_t)snprintf(out + n, cap - n, "%s%s%s", more ? ", " : "", param->rest ? "..." : "", text);
    more = true;
  }
  snprintf(out + n, cap - n, ")");
}

/* Is it an operation on arrays, of the sort that the table speaks of? */
static inline bool call_is_on_arrays(const OpInfo *info) {
  switch (info->family) {
    case FAM_elementwise:
    case FAM_reduce:
    case FAM_scan:
    case FAM_make:
    case FAM_view:
    case FAM_index:
    case FAM_sort:
    case FAM_linalg:
    case FAM_random: return true;
    default: return false;
  }
}

#endif

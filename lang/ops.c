/* ops.c — the operation table made readable (see ops.h and ops.def). */
#include "lang/ops.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static OpInfo infos[OP_COUNT];
static pthread_once_t infos_once = PTHREAD_ONCE_INIT;
static _Atomic bool infos_filled; /* asked at each operation that is recorded */
static char shown_names[OP_COUNT][32];

static const struct {
  u16 flops;
  u8 family, effect, agree;
} rows[OP_COUNT] = {
    {0},
#define OP(name, signature, family, dtype, shape, checks, effect, agree, lower, deriv, batch, flops, doc) \
  {flops, FAM_##family, EFF_##effect, AGREE_##agree},
#include "lang/ops.def"
#undef OP
};

const char *const op_modules[OP_MODULE_COUNT] = {"linalg", "nn", "fft", "random", "optim", "plot", "trace"};

/* No module has a _ in its name. */
static void shown_name(char *out, const char *name) {
  strcpy(out, name);
  char *end = strchr(out, '_');
  size_t n = end ? (size_t)(end - out) : 0;
  for (u32 m = 0; n && m < OP_MODULE_COUNT; m++)
    if (*op_modules[m] == *name && strncmp(name, op_modules[m], n) == 0 && !op_modules[m][n]) *end = '.';
}

static OpLower lower_of(const char *s) {
  static const char *const names[] = {"none", "compose", "math", "loop", "view", "extern"};
  for (u32 i = 1; i < COUNT_OF(names); i++)
    if (strcmp(s, names[i]) == 0) return (OpLower)i;
  return LOWER_none;
}

static void parse_signature(OpInfo *info) {
  const char *s = info->signature + 1;
  bool keyword_only = false;
  while (*s && *s != ')') {
    while (*s == ' ' || *s == ',') s++;
    if (*s == ')') break;
    OpParam *p = &info->params[info->nparams++];
    if (strncmp(s, "...", 3) == 0) {
      p->rest = true;
      s += 3;
    }
    p->name = s;
    while (*s != ',' && *s != ')' && *s != '=') s++;
    p->len = (u32)(s - p->name);
    p->keyword_only = keyword_only;
    keyword_only |= p->rest;
    if (*s == '=') {
      p->has_default = true;
      p->nil_default = strncmp(s, "=nil", 4) == 0;
      int depth = 0;
      for (s++; depth > 0 || (*s != ',' && *s != ')'); s++) {
        if (*s == '\'') {
          do s++;
          while (*s != '\'');
        } else if (*s == '(') depth++;
        else if (*s == ')') depth--;
      }
    }
  }
}

/* What stands before the next OP_END, which becomes its end. */
static const char *take(char **left) {
  char *s = *left, *end = strchr(s, OP_END[0]);
  *end = 0;
  *left = end + 1;
  return s;
}

static void fill_infos(void) {
  char *left = op_unpacked;
  struct { u32 at, len; } known[256] = {0}; /* where a byte was unpacked before */
  for (const char *c = op_texts; *c; c++) {
    u32 at = known[(u8)*c].at, len = known[(u8)*c].len;
    if (len) memcpy(left, op_unpacked + at, len);
    else len = known[(u8)*c].len = text_unpack(op_pairs, (u8)*c, left), known[(u8)*c].at = (u32)(left - op_unpacked);
    left += len;
  }
  left = op_unpacked;
  const char *doc = op_docs;
  for (u32 i = 0; i < OP_COUNT; i++) {
    OpInfo *info = &infos[i];
    *info = (OpInfo){.name = shown_names[i], .doc = doc, .family = rows[i].family, .effect = rows[i].effect, .agree = rows[i].agree, .flops = rows[i].flops};
    doc += strlen(doc) + 1;
    shown_name(shown_names[i], take(&left));
    info->signature = take(&left);
    info->lower = (u8)lower_of(take(&left));
    info->dtype_rule = take(&left);
    info->shape_rule = take(&left);
    info->checks = take(&left);
    info->deriv = take(&left);
    info->batch = take(&left);
    parse_signature(info);
  }
  atomic_store_explicit(&infos_filled, true, memory_order_release);
}

const OpInfo *op_info(u32 op) {
  if (!atomic_load_explicit(&infos_filled, memory_order_acquire)) pthread_once(&infos_once, fill_infos);
  return &infos[op < OP_COUNT ? op : 0];
}

bool op_takes_shape(u32 op) {
  const OpInfo *info = op_info(op);
  for (u32 p = 0; p < info->nparams; p++)
    if (info->params[p].len == 5 && memcmp(info->params[p].name, "shape", 5) == 0) return true;
  return false;
}

OpId op_by_name(const char *s, size_t len) {
  for (u32 i = 1; i < OP_COUNT; i++) {
    const char *name = op_info(i)->name;
    if (strlen(name) == len && memcmp(name, s, len) == 0) return (OpId)i;
  }
  return OP_none;
}

/* define_math.c — definitions of lang/math.loops, one by one (see define_math.h): an emitter that needs `exp` reads that alone. */
#include "jit/define_math.h"

#include <string.h>

static bool is_defined(const LoopModule *m, const MathText *t) {
  if (t->type != LT_VOID) return loop_module_find_math(m, t->name, (LoopType)t->type) != NULL;
  for (u32 i = 1; i < m->tables.count; i++)
    if (strcmp(name_text(&m->names, m->tables.data[i].name), t->name) == 0) return true;
  return false;
}

/* Pairs are made of what was there before them, so this ends. */
static void unpack(u8 byte, Buf *out) {
  u8 stack[256 + 1];
  u32 n = 0;
  stack[n++] = byte;
  while (n) {
    u8 b = stack[--n];
    if (!math_pairs[b][0]) {
      buf_put(out, (const char *)&b, 1);
      continue;
    }
    stack[n++] = math_pairs[b][1];
    stack[n++] = math_pairs[b][0];
  }
}

static WeftStatus define(LoopModule *m, const MathText *t, Buf *why) {
  if (is_defined(m, t)) return WEFT_OK;
  Buf text;
  buf_init(&text, m->alloc);
  for (const char *c = t->text; *c; c++) unpack((u8)*c, &text);
  WeftStatus status = WEFT_ERROR;
  if (!text.failed) status = loops_parse(m, text.data, text.len, why);
  else if (why) buf_puts(why, "out of memory");
  buf_free(&text);
  return status;
}

WeftStatus define_math(LoopModule *m, const char *name, LoopType type, Buf *why) {
  for (u32 i = 0; i < math_text_count; i++) {
    const MathText *t = &math_texts[i];
    if (t->type != type || strcmp(t->name, name) != 0) continue;
    if (is_defined(m, t)) return WEFT_OK;
    for (u32 k = 0; k < t->use_count; k++)
      if (define(m, &math_texts[t->uses[k]], why) != WEFT_OK) return WEFT_ERROR;
    return define(m, t, why);
  }
  if (why) buf_printf(why, "no math function %s of %s", name, loop_type_text(type));
  return WEFT_ERROR;
}

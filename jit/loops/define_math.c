/* define_math.c — definitions of lang/math.loops, one by one (see define_math.h): an emitter that needs `exp` reads
 * that alone. */
#include "jit/loops/define_math.h"

#include <string.h>

static bool is_defined(const LoopModule *m, const MathText *t) {
  if (t->type != LT_VOID) return loop_module_find_math(m, t->name, (LoopType)t->type) != NULL;
  for (u32 i = 1; i < m->tables.count; i++)
    if (strcmp(name_text(&m->names, m->tables.data[i].name), t->name) == 0) return true;
  return false;
}

static WeftStatus math_define(LoopModule *m, const MathText *t, Buf *why) {
  return is_defined(m, t) ? WEFT_OK : loops_parse(m, t->text, strlen(t->text), why);
}

WeftStatus define_math(LoopModule *m, const char *name, LoopType type, Buf *why) {
  for (u32 i = 0; i < math_text_count; i++) {
    const MathText *t = &math_texts[i];
    if (t->type != type || strcmp(t->name, name) != 0) continue;
    if (is_defined(m, t)) return WEFT_OK;
    for (u32 k = 0; k < t->use_count; k++)
      if (math_define(m, &math_texts[t->uses[k]], why) != WEFT_OK) return WEFT_ERROR;
    return math_define(m, t, why);
  }
  if (why) buf_printf(why, "no math function %s of %s", name, loop_type_text(type));
  return WEFT_ERROR;
}

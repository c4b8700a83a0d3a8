/* define_math.c — definitions of lang/math.loops, one by one (see define_math.h): an emitter that needs `exp` reads that alone. */
#include "jit/loops/define_math.h"

#include <string.h>

static bool is_defined(const LoopModule *m, const MathText *t) {
  if (t->type != LT_VOID) return loop_module_find_math(m, t->name, (LoopType)t->type) != NULL;
  for (u32 i = 1; i < m->tables.count; i++)
    if (strcmp(name_text(&m->names, m->tables.data[i].name), t->name) == 0) return true;
  return false;
}

/* Values get their names back, by number: see relative_names in jit/host/gen_math.c. */
static void number_values(const char *packed, Buf *out) {
  u32 defined = 0;
  for (const char *s = packed; *s; s++)
    if (*s == '@') {
      buf_printf(out, "\n%%%u = ", defined++);
    } else if (*s == '%') {
      u32 back = 0;
      for (; s[1] >= 'a' && s[1] <= 'z'; s++) back = back * 26 + (u32)(s[1] - 'a');
      buf_printf(out, "%%%u", defined - 1 - back);
    } else {
      buf_putc(out, *s == '$' ? '%' : *s);
    }
}

static WeftStatus define(LoopModule *m, const MathText *t, Buf *why) {
  if (is_defined(m, t)) return WEFT_OK;
  Buf packed, text;
  buf_init(&packed, m->alloc);
  buf_init(&text, m->alloc);
  buf_unpack(&packed, math_pairs, t->text);
  if (!packed.failed) number_values(buf_text(&packed), &text);
  text.failed |= packed.failed;
  WeftStatus status = WEFT_ERROR;
  if (!text.failed) status = loops_parse(m, text.data, text.len, why);
  else if (why) buf_puts(why, "out of memory");
  buf_free(&packed);
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

/* gen_math.c — build tool: the transcendental functions of lang/math.loops as C.
 *
 *   gen_math lang/math.loops DIR
 *
 * writes into DIR
 *   math_list.h                 MATH(name, type, arity) for every function of the language, MATH_HELPER for the others
 *                               (their names begin with `_`)
 *   math_body.h                 every definition as C, and a strip kernel for each MATH
 *   math_errors.h               MATH_ERROR(name, f64, f32) for each line `; | name | f64 | f32 |`: largest errors in
 *                               ulp
 *   math_text.c                 the text itself, for the emitters that expand definitions
 *   math_base.c math_avx2.c math_avx512.c   math_body.h once for each instruction set; math_base.c holds the scalars
 *                               wm_NAME_TYPE, math_avx2.c wm_NAME_TYPE_fma
 * stdlib/kernels/wm.h declares what they export. The bits are the same from all three: `fma` is explicit, nothing is
 * contracted. */
#include "jit/loops/define_math.h"
#include "jit/loops/loops.h"
#include "jit/loops/loops_straight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Gen {
  LoopModule m;
  const char *dir;
  u32 count; /* functions of the source; what follows in the module are their straight copies */
} Gen;

static void die(const char *what, const char *detail) {
  fprintf(stderr, "gen_math: %s: %s\n", what, detail);
  exit(1);
}

static void read_file(const char *path, Buf *out) {
  FILE *f = fopen(path, "rb");
  if (!f) die(path, strerror(errno));
  char block[65536];
  for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) buf_put(out, block, n);
  if (ferror(f)) die(path, "cannot be read");
  fclose(f);
}

static void write_file(const Gen *g, const char *name, Buf *text) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", g->dir, name) >= (int)sizeof path) die(name, "the path is too long");
  FILE *f = fopen(path, "wb");
  if (!f) die(path, strerror(errno));
  if (text->failed || fwrite(text->data, 1, text->len, f) != text->len || fclose(f) != 0)
    die(path, "cannot be written");
  buf_free(text);
}

static const char *name_of(const LoopFn *fn) { return name_text(&fn->module->names, fn->name); }
static const char *type_of(const LoopFn *fn) { return loop_type_text(fn->math_type); }
static bool is_helper(const LoopFn *fn) { return name_of(fn)[0] == '_'; }

static LoopFn *twin(Gen *g, const LoopFn *fn, const char *tail) {
  char text[128];
  snprintf(text, sizeof text, "%s%s", name_of(fn), tail);
  return loop_module_find_math(&g->m, text, fn->math_type);
}

/* ---- math_list.h --------------------------------------------------------------------------- */

static void write_list(Gen *g) {
  Buf b;
  buf_init(&b, g->m.alloc);
  buf_puts(&b,
           "/* math_list.h — the functions of lang/math.loops: MATH(name, type, arity), MATH_HELPER likewise. */\n");
  for (u32 i = 0; i < g->count; i++) {
    const LoopFn *fn = g->m.fns.data[i];
    buf_printf(&b, "%s(%s, %s, %u)\n", is_helper(fn) ? "MATH_HELPER" : "MATH", name_of(fn), type_of(fn),
               fn->params.count);
  }
  buf_puts(&b, "#undef MATH\n#undef MATH_HELPER\n");
  write_file(g, "math_list.h", &b);
}

/* ---- math_errors.h, math_text.c ------------------------------------------------------------ */

static void write_errors(Gen *g, const char *text) {
  Buf b;
  buf_init(&b, g->m.alloc);
  buf_puts(&b, "/* math_errors.h — largest errors in ulp, as lang/math.loops states them: MATH_ERROR(name, f64, "
               "f32). */\n");
  for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
    char name[64];
    double wide, narrow;
    if (sscanf(line, "; | %63[a-z0-9_] | %lf | %lf |", name, &wide, &narrow) == 3)
      buf_printf(&b, "MATH_ERROR(%s, %g, %g)\n", name, wide, narrow);
  }
  buf_puts(&b, "#undef MATH_ERROR\n");
  write_file(g, "math_errors.h", &b);
}

/* One paragraph of the source: a function or a table. */
typedef struct Part {
  const char *text;
  size_t len;
  const LoopFn *fn; /* NULL: a table */
  char table[64];
  bool uses[256];
} Part;

/* A line without its indentation; comments and blank lines end a paragraph. */
static const char *next_line(const char *text, const char **line, size_t *len) {
  text += strspn(text, " ");
  *line = text;
  *len = strcspn(text, "\n");
  return text + *len + (text[*len] == '\n');
}

static u32 find_parts(Gen *g, const char *text, Part *parts, u32 most) {
  u32 count = 0, fns = 0;
  bool inside = false;
  while (*text) {
    const char *line, *start = text;
    size_t len;
    text = next_line(text, &line, &len);
    if (!len || *line == ';') inside = false;
    else if (!inside) {
      inside = true;
      if (count == most) die("math_text.c", "too many definitions");
      Part *p = &parts[count++];
      *p = (Part){.text = start};
      if (strncmp(line, "math ", 5) == 0) p->fn = g->m.fns.data[fns++];
      else if (sscanf(line, "table %63s", p->table) != 1) die("a paragraph is neither a function nor a table", p->text);
    }
    if (inside) parts[count - 1].len = (size_t)(text - parts[count - 1].text);
  }
  if (fns != g->count) die("math_text.c", "a function does not begin its paragraph");
  return count;
}

/* What the function uses, and what those use: they stand before it. */
static void scan_uses(Gen *g, Part *parts, u32 self) {
  const LoopFn *fn = parts[self].fn;
  for (u32 i = 1; i < fn->nodes.count; i++) {
    const LoopNode *n = loop_node(fn, i);
    for (u32 k = 0; k < self; k++) {
      bool uses = n->op == LOOP_MATH ? parts[k].fn &&
                  parts[k].fn == loop_module_find_math(&g->m, name_text(&g->m.names, (Name)n->imm), (LoopType)n->type)
                                     : n->op == LOOP_TABLE ? !parts[k].fn &&
                  strcmp(parts[k].table, name_text(&g->m.names, g->m.tables.data[n->a].name)) == 0 : false;
      if (!uses) continue;
      parts[self].uses[k] = true;
      for (u32 j = 0; j < k; j++) parts[self].uses[j] |= parts[k].uses[j];
    }
  }
}

static void put_quoted(const char *text, size_t len, Buf *b) {
  for (size_t i = 0; i < len; i++) buf_printf(b, text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
}

static void write_text(Gen *g, const char *text) {
  static Part parts[256];
  u32 count = find_parts(g, text, parts, (u32)COUNT_OF(parts));
  Buf b;
  buf_init(&b, g->m.alloc);
  buf_puts(&b,
           "/* math_text.c — lang/math.loops, definition by definition. */\n#include \"jit/loops/define_math.h\"\n\n");
  for (u32 i = 0; i < count; i++) {
    if (parts[i].fn) scan_uses(g, parts, i);
    buf_printf(&b, "static const u16 uses_%u[] = {", i);
    for (u32 k = 0; k < i; k++)
      if (parts[i].uses[k]) buf_printf(&b, "%u, ", k);
    buf_puts(&b, "0};\n");
  }
  buf_puts(&b, "\nconst MathText math_texts[] = {\n");
  for (u32 i = 0; i < count; i++) {
    const Part *p = &parts[i];
    u32 uses = 0;
    for (u32 k = 0; k < i; k++) uses += p->uses[k];
    buf_printf(&b, "  {\"%s\",\n", p->fn ? name_of(p->fn) : p->table);
    for (const char *s = p->text; s < p->text + p->len;) {
      const char *line;
      size_t n;
      s = next_line(s, &line, &n);
      buf_puts(&b, "    \"");
      put_quoted(line, n, &b);
      buf_puts(&b, "\\n\"\n");
    }
    buf_printf(&b, "    , uses_%u, LT_%s, %u},\n", i,
               !p->fn ? "VOID" : p->fn->math_type == LT_F64 ? "F64" : "F32", uses);
  }
  buf_puts(&b, "};\nconst u32 math_text_count = COUNT_OF(math_texts);\n");
  write_file(g, "math_text.c", &b);
}

/* ---- math_body.h --------------------------------------------------------------------------- */

/* The one vector loop of a function. It takes whole vectors only: strip_run pads the rest. */
static void put_core(Gen *g, const LoopFn *fn, Buf *b) {
  const char *name = name_of(fn), *type = type_of(fn);
  const char *args = fn->params.count == 1 ? "x[i]" : "x[i], y[i]";
  bool rare = twin(g, fn, "_rare") != NULL;
  buf_printf(b, "static __attribute__((flatten)) u64 core_%s_%s(void *out, const void *xv, const void *yv, i64 n) {\n",
             name, type);
  buf_printf(b, "  const lw_%s *x = xv, *y = yv;\n  lw_%s *o = out;\n  %s rare = 0;\n  (void)y;\n", type, type,
             fn->math_type == LT_F64 ? "u64" : "u32");
  buf_puts(b, "  INDEPENDENT for (i64 i = 0; i < (n & -STRIP_PAD); i++) {\n");
  if (rare) buf_printf(b, "    rare |= in_%s_rare_%s(%s) != 0;\n", name, type, args);
  buf_printf(b, "    o[i] = in_%s%s_%s(%s);\n  }\n  return rare;\n}\n", name, rare ? "_usual" : "", type, args);
}

/* A strip hands its loop and its scalar to the driver of its type and number of operands. */
static void put_strip(Gen *g, const LoopFn *fn, Buf *b) {
  const char *name = name_of(fn), *type = type_of(fn);
  buf_printf(b, "WM_STRIP(%s, %s) { return strip_%s%s_%u(out, xv, yv, n, core_%s_%s, WM_SYMBOL(%s, %s)); }\n", name,
             type, twin(g, fn, "_rare") ? "rare_" : "", type, fn->params.count, name, type, name, type);
}

/* Without fma in hardware nothing vectorises: the scalar, element by element. */
static void put_plain_strip(const LoopFn *fn, Buf *b) {
  const char *name = name_of(fn), *type = type_of(fn);
  buf_printf(b, "WM_STRIP(%s, %s) { return one_by_one_%s_%u(out, xv, yv, n, WM_SYMBOL(%s, %s)); }\n", name, type, type,
             fn->params.count, name, type);
}

/* The functions of a build, as stdlib/kernels/wm.c chooses among them. */
static void write_table(Gen *g, Buf *b) {
  buf_puts(b, "static const LoopMath functions[] = {\n");
  for (u32 i = 0; i < g->count; i++) {
    const LoopFn *fn = g->m.fns.data[i];
    buf_printf(b, "  {\"%s\", \"wm_%s_%s\", LT_%s, %u, (void (*)(void))WM_SYMBOL(%s, %s), ", name_of(fn), name_of(fn),
               type_of(fn), fn->math_type == LT_F64 ? "F64" : "F32", fn->params.count, name_of(fn), type_of(fn));
    if (is_helper(fn)) buf_puts(b, "NULL},\n");
    else buf_printf(b, "WM_STRIP_OR_NULL(%s, %s)},\n", name_of(fn), type_of(fn));
  }
  buf_puts(b, "};\nconst WmLevel WM_LEVEL = {functions, sizeof functions / sizeof functions[0]};\n");
}

static void write_body(Gen *g) {
  Buf b;
  buf_init(&b, g->m.alloc);
  buf_puts(&b, "/* math_body.h — made from lang/math.loops by jit/host/gen_math.c; "
               "included once for each instruction set. */\n");
  loops_c_prelude(&b);
  buf_puts(&b, "#pragma GCC diagnostic ignored \"-Wconversion\"\n#pragma GCC diagnostic ignored \"-Wshadow\"\n");
  loops_c_tables(&g->m, &b);
  /* Vector loops inline every definition they use; the scalars share them. wm_NAME_TYPE is the symbol of the scalar
   * function. */
  for (u32 i = 0; i < g->m.fns.count; i++) {
    const LoopFn *fn = g->m.fns.data[i];
    buf_printf(&b, "#define wm_%s_%s in_%s_%s\n", name_of(fn), type_of(fn), name_of(fn), type_of(fn));
  }
  for (u32 i = 0; i < g->m.fns.count; i++)
    if (loops_c(g->m.fns.data[i], NULL, "static inline ", &b) != WEFT_OK)
      die(name_of(g->m.fns.data[i]), "cannot be written as C");
  for (u32 i = 0; i < g->m.fns.count; i++)
    buf_printf(&b, "#undef wm_%s_%s\n", name_of(g->m.fns.data[i]), type_of(g->m.fns.data[i]));
  buf_puts(&b, "#ifdef WM_SCALAR\n");
  for (u32 i = 0; i < g->count; i++) {
    const LoopFn *fn = g->m.fns.data[i];
    static const char *const params[] = {"lw_%s a", ", lw_%s b", ", lw_%s c"}, *const args[] = {"a", ", b", ", c"};
    buf_printf(&b, "__attribute__((noinline)) lw_%s WM_SYMBOL(%s, %s)(", type_of(fn), name_of(fn), type_of(fn));
    for (u32 k = 0; k < fn->params.count; k++) buf_printf(&b, params[k], type_of(fn));
    buf_printf(&b, ") { return in_%s_%s(", name_of(fn), type_of(fn));
    for (u32 k = 0; k < fn->params.count; k++) buf_puts(&b, args[k]);
    buf_puts(&b, "); }\n");
  }
  buf_puts(&b, "#endif\n");
  write_table(g, &b);
  buf_puts(&b, "#include \"stdlib/kernels/wm_strips.h\"\n#ifdef WM_VECTOR\n");
  for (u32 i = 0; i < g->count; i++)
    if (!is_helper(g->m.fns.data[i])) {
      put_core(g, g->m.fns.data[i], &b);
      put_strip(g, g->m.fns.data[i], &b);
    }
  buf_puts(&b, "#else\n");
  for (u32 i = 0; i < g->count; i++)
    if (!is_helper(g->m.fns.data[i])) put_plain_strip(g->m.fns.data[i], &b);
  buf_puts(&b, "#endif\n");
  write_file(g, "math_body.h", &b);
}

/* ---- math_LEVEL.c -------------------------------------------------------------------------- */

/* Scalars of the AVX-512 build would be those of the AVX2 build again: its table has those. The base build's strips
 * go element by element: a caller that has the scalar needs none. */
static void write_level(Gen *g, const char *level, bool scalars, bool vectors) {
  Buf b;
  char file[64];
  snprintf(file, sizeof file, "math_%s.c", level);
  buf_init(&b, g->m.alloc);
  buf_printf(&b, "/* %s — the functions of lang/math.loops, %s build. */\n", file, level);
  if (vectors) buf_puts(&b, "#ifdef __x86_64__\n#define WM_VECTOR\n");
  buf_puts(&b, "#include \"stdlib/kernels/wm.h\"\n");
  buf_printf(&b, "#define WM_LEVEL wm_%s\n%s", level, scalars ? "#define WM_SCALAR\n" : "");
  buf_printf(&b, "#define WM_SYMBOL(name, type) wm_##name##_##type%s\n", vectors ? "##_fma" : "");
  buf_printf(&b, "#define WM_STRIP_NAME(name, type) wm_strip_##name##_##type##_%s\n", level);
  buf_printf(&b, "#define WM_STRIP_OR_NULL(name, type) %s\n", vectors ? "WM_STRIP_NAME(name, type)" : "NULL");
  buf_printf(&b, "#define WM_STRIP(name, type) u32 wm_strip_##name##_##type##_%s(void *out, const void *xv, "
                 "const void *yv, i64 n)\n", level);
  buf_puts(&b, "#include \"math_body.h\"\n");
  if (vectors) buf_puts(&b, "#endif\n");
  write_file(g, file, &b);
}

int main(int argc, char **argv) {
  if (argc != 3) die("usage", "gen_math lang/math.loops DIR");
  Gen g = {.dir = argv[2]};
  Buf text, why;
  if (loop_module_init(&g.m, allocator_system()) != WEFT_OK) die("module", "out of memory");
  buf_init(&text, g.m.alloc);
  buf_init(&why, g.m.alloc);
  read_file(argv[1], &text);
  if (loops_parse(&g.m, buf_text(&text), text.len, &why) != WEFT_OK) die(argv[1], buf_text(&why));
  g.count = g.m.fns.count;
  for (u32 i = 0; i < g.count; i++) {
    bool made;
    if (g.m.fns.data[i]->kind != LOOP_MATH_FN) die(name_of(g.m.fns.data[i]), "is no math function");
    if (loops_straighten(&g.m, g.m.fns.data[i], &made, &why) != WEFT_OK) die(name_of(g.m.fns.data[i]), buf_text(&why));
  }
  write_list(&g);
  write_errors(&g, buf_text(&text));
  write_text(&g, buf_text(&text));
  write_body(&g);
  write_level(&g, "base", true, false);
  write_level(&g, "avx2", true, true);
  write_level(&g, "avx512", false, true);
  buf_free(&text);
  buf_free(&why);
  loop_module_free(&g.m);
  return 0;
}

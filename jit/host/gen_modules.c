/* gen_modules.c — build tool: the modules of the library that are written in Weft, as bytecode in a C file.
 *
 *   gen_modules FILE.c stdlib/modules/nn.weft …
 *
 * A module holds declarations of functions alone. Function `f` of nn.weft or nn_layers.weft is the body of the
 * operation `nn.f`, or else of `f`, whose row of lang/ops.def says `weft` and has the same parameters; so is `nn_f`,
 * whose short name would hide a built-in of that name from the module. One whose name begins with _ is a helper of its
 * module. What is written is the table `library_modules` of stdlib/modules/modules.h. */
#include "lang/compile.h"
#include "lang/ops.h"
#include "parser/parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *where, const char *what) {
  fprintf(stderr, "gen_modules: %s: %s\n", where, what);
  exit(1);
}

typedef struct World {
  Allocator *alloc;
  Arena arena;
  Names names;
  Sources sources;
} World;

static u32 module_of[OP_COUNT]; /* 1 + module */

/* Shows the place and ends. */
static void refuse(World *w, Span at, const char *what) {
  Buf b;
  buf_init(&b, w->alloc);
  sources_show(&w->sources, at, &b);
  fprintf(stderr, "error: %s\n%s", what, buf_text(&b));
  exit(1);
}

static char *read_all(const char *path, size_t *len) {
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  size_t cap = 0;
  *len = 0;
  if (!f) die(path, "cannot be read");
  do {
    cap = cap ? 2 * cap : 1 << 14;
    text = realloc(text, cap);
    if (!text) die(path, "no memory");
    *len += fread(text + *len, 1, cap - *len, f);
  } while (*len == cap);
  if (ferror(f)) die(path, "cannot be read");
  fclose(f);
  return text;
}

/* The operation whose body function `name` of `module` is: 0 for a helper. */
static u32 op_of(World *w, const char *module, size_t module_len, const char *name, Span at) {
  if (*name == '_') return 0;
  const bool whole = strncmp(name, module, module_len) == 0 && name[module_len] == '_'; /* table_where: table.where */
  char *full = arena_printf(&w->arena, "%.*s.%s", (int)module_len, module, name + (whole ? module_len + 1 : 0));
  if (!full) die(name, "no memory");
  OpId op = op_by_name(full, strlen(full));
  if (!op) op = op_by_name(name, strlen(name));
  if (op && op_info(op)->lower == LOWER_weft) return op;
  refuse(w, at, arena_printf(&w->arena, "%s: no row of lang/ops.def of this name says `weft`; "
                                        "the name of a helper begins with _", name));
  return 0;
}

static void same_parameters(World *w, u32 op, const Proto *p) {
  const OpInfo *info = op_info(op);
  bool same = p->nparams == info->nparams;
  for (u32 i = 0; same && i < p->nparams; i++) {
    const OpParam *q = &info->params[i];
    const char *name = name_text(&w->names, p->params[i].name);
    same = strlen(name) == q->len && strncmp(name, q->name, q->len) == 0 && p->params[i].has_default ==
           q->has_default && p->params[i].keyword_only == q->keyword_only && ((i32)i == p->rest_index) == q->rest;
  }
  if (!same)
    refuse(w, p->span, arena_printf(&w->arena, "%s: its parameters are not those of its row in lang/ops.def: %s",
                                    info->name, info->signature));
}

static void put_bytes(FILE *f, const char *kind, u32 module, const char *data, size_t len) {
  fprintf(f, "static const unsigned char %s%u[] = {", kind, module);
  for (size_t i = 0; i < len; i++) fprintf(f, "%s%u,", i % 32 ? "" : "\n  ", (u8)data[i]);
  fprintf(f, "\n  0};\n");
}

/* Compiles, reads what it wrote back (which proves it), and writes it as `codeN`, `textN`. */
static void module(FILE *out, const char *path, u32 number) {
  World w = {.alloc = allocator_system()};
  arena_init(&w.arena, w.alloc);
  if (names_init(&w.names, w.alloc) != WEFT_OK || sources_init(&w.sources, w.alloc) != WEFT_OK) die(path, "no memory");
  size_t len;
  char *text = read_all(path, &len);
  u32 file = sources_add(&w.sources, path, text, len);
  Ast ast;
  Diag diag = {0};
  Proto *p, *again;
  ModuleScope scope = {.alloc = w.alloc}, fresh = {.alloc = w.alloc};
  if (!file) die(path, "no memory");
  if (parser_parse(&ast, &w.arena, &w.names, &w.sources, file, &diag, NULL) != WEFT_OK)
    refuse(&w, diag.span, diag.message);
  const AstNode *root = ast_node(&ast, ast.root);
  for (u32 i = 0; i < root->count; i++) {
    const AstNode *n = ast_node(&ast, ast_kid(&ast, root, i));
    if (n->kind != AST_FN || !n->ref)
      refuse(&w, n->span,
             "a module of the library holds declarations of functions alone: nothing runs when it is loaded");
  }
  CompileOptions options = {.alloc = w.alloc, .names = &w.names, .sources = &w.sources, .scope = &scope,
                            .library = true, .diag_arena = &w.arena};
  if (lang_compile(&ast, &options, &p, &diag) != WEFT_OK)
    refuse(&w, diag.span, diag.message ? diag.message : "no memory");
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  for (u32 i = 0; i < p->nprotos; i++) {
    const Proto *f = p->protos[i];
    u32 op = op_of(&w, name, strcspn(name, "._"), name_text(&w.names, f->name), f->span);
    if (!op) continue;
    if (module_of[op]) refuse(&w, f->span, arena_printf(&w.arena, "%s: is declared twice", op_name(op)));
    same_parameters(&w, op, f);
    module_of[op] = number + 1;
  }
  Buf code, why;
  buf_init(&code, w.alloc);
  buf_init(&why, w.alloc);
  proto_save(p, &w.names, &scope, &code);
  if (code.failed) die(path, "no memory");
  if (proto_load(code.data, code.len, file, w.alloc, &w.names, &fresh, &again, &why) != WEFT_OK)
    die(path, buf_text(&why));
  put_bytes(out, "code", number, code.data, code.len);
  put_bytes(out, "text", number, text, len);
  proto_drop(p);
  proto_drop(again);
  scope_free(&scope);
  scope_free(&fresh);
  buf_free(&code);
  buf_free(&why);
  arena_free(&w.arena);
  sources_free(&w.sources);
  names_free(&w.names);
  free(text);
}

int main(int argc, char **argv) {
  FILE *f = argc > 1 ? fopen(argv[1], "wb") : NULL;
  if (!f) die(argc > 1 ? argv[1] : "FILE.c", "cannot be written");
  fprintf(f,
          "/* modules.c — the modules of the library that are written in Weft, made by jit/host/gen_modules.c. */\n");
  fprintf(f, "#include \"stdlib/modules/modules.h\"\n\n");
  for (int i = 2; i < argc; i++) module(f, argv[i], (u32)i - 2);
  for (u32 op = 1; op < OP_COUNT; op++)
    if (op_info(op)->lower == LOWER_weft && !module_of[op])
      die(op_name(op), "its row of lang/ops.def says `weft`, and no module in stdlib/modules/ has it");
  fprintf(f, "\nstatic const LibraryModule modules[] = {\n");
  for (int i = 2; i < argc; i++)
    fprintf(f, "  {\"%s\", (const char *)text%d, sizeof text%d - 1, (const char *)code%d, sizeof code%d - 1},\n",
            argv[i], i - 2, i - 2, i - 2, i - 2);
  fprintf(f, "};\n\nstatic const u8 module_of[OP_COUNT] = {\n");
  for (u32 op = 1; op < OP_COUNT; op++)
    if (module_of[op]) fprintf(f, "  [%u] = %u, /* %s */\n", op, module_of[op], op_name(op));
  fprintf(f, "};\n\nconst Library library_modules = {modules, module_of};\n");
  if (ferror(f) || fclose(f) != 0) die(argv[1], "cannot be written");
  return 0;
}

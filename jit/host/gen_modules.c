/* gen_modules.c — build tool: the modules of the library that are written in Weft, as bytecode in a C file.
 *
 *   gen_modules FILE.c stdlib/modules/nn.weft …
 *
 * A module holds declarations of functions alone. Function `f` of nn.weft or nn_layers.weft is the body of the
 * operation `nn.f`, or else of `f`, whose row of lang/ops.def says `weft` and has the same parameters; so is `nn_f`,
 * whose short name would hide a built-in of that name from the module. One whose name begins with _ is a helper of its
 * module. What is written is the table `library_modules` of stdlib/modules/modules.h.
 *
 * What lang/takes.def says of a function becomes statements in front of its body. Their text, and the helpers that they
 * call, stand before the first line of the module and on that line, so that lines keep their numbers; the tree of each
 * statement is moved to its function, and takes its place there. */
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

/* ---- lang/takes.def ---------------------------------------------------------------------- */

static const struct { const char *name, *condition, *what; } kinds[] = {
#define KIND(name, condition, what) {#name, condition, what},
#define HELPER(name, declaration)
#define TAKES(op, param, kind)
#define HALVES(...)
#include "lang/takes.def"
};
static const struct { const char *name, *text; } helpers[] = {
#undef KIND
#undef HELPER
#define KIND(name, condition, what) {"_is_" #name, condition},
#define HELPER(name, declaration) {#name, declaration},
#include "lang/takes.def"
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0], HELPER_COUNT = sizeof helpers / sizeof helpers[0] };
static const struct { u32 op; const char *param, *kind; } takes[] = {
#undef KIND
#undef HELPER
#undef TAKES
#define KIND(name, condition, what)
#define HELPER(name, declaration)
#define TAKES(op, param, kind) {OP_##op, #param, #kind},
#include "lang/takes.def"
};
static const struct { u32 op; const char *params; } halves[] = {
#undef TAKES
#undef HALVES
#define TAKES(op, param, kind)
#define HALVES(op, ...) {OP_##op, #__VA_ARGS__},
#include "lang/takes.def"
#undef KIND
#undef HELPER
#undef TAKES
#undef HALVES
};

static const OpParam *param_named(const OpInfo *info, const char *name, size_t len) {
  for (u32 i = 0; i < info->nparams; i++)
    if (info->params[i].len == len && memcmp(info->params[i].name, name, len) == 0) return &info->params[i];
  die(info->name, "a row of lang/takes.def names a parameter that the function does not have");
  return NULL;
}

/* The condition of a kind on the argument of that name. */
static void put_condition(const char *condition, const char *param, Buf *b) {
  for (const char *s = condition; *s; s++) {
    if (*s == '$') buf_puts(b, param);
    else buf_putc(b, *s);
  }
}

/* Does a parameter of the function hide `type`, which conditions call? */
static bool hides_type(const OpInfo *info) {
  for (u32 i = 0; i < info->nparams; i++)
    if (info->params[i].len == 4 && memcmp(info->params[i].name, "type", 4) == 0) return true;
  return false;
}

/* `if not (n >= 1) { error(…) }` */
static void put_check(const OpInfo *info, const char *param, const char *kind, Buf *b) {
  const OpParam *p = param_named(info, param, strlen(param));
  u32 k = 0;
  while (k < KIND_COUNT && strcmp(kinds[k].name, kind) != 0) k++;
  if (k == KIND_COUNT) die(kind, "a row of lang/takes.def names a kind that is not there");
  if (p->nil_default) buf_printf(b, "if %s != nil and not (", param);
  else buf_puts(b, "if not (");
  if (hides_type(info)) buf_printf(b, "_is_%s(%s)", kind, param);
  else put_condition(kinds[k].condition, param, b);
  buf_printf(b, ") { error(_entry_said(\"%s: %s\", %s, \"", info->name, param, param);
  for (const char *s = kinds[k].what; *s; s++) {
    if (*s == '"') buf_putc(b, '\\');
    buf_putc(b, *s);
  }
  buf_printf(b, "\"), kind=_entry_kind(%s)) }; ", param);
}

/* `if x.dtype == c64 or … { error(…) }`: complex.def does not have the function. */
static void put_real(const OpInfo *info, const char *params, Buf *b) {
  static const char *const dtypes[] = {"c64", "c128"};
  for (const char *s = params; *s; s += strspn(s, ", ")) {
    const int len = (int)strcspn(s, ", ");
    buf_printf(b, "if type(%.*s) == \"array\" { ", len, s);
    for (u32 i = 0; i < 2; i++)
      buf_printf(b, "if %.*s.dtype == %s { error(\"%s: not supported for %s\", kind=\"unsupported\") }; ", len, s,
                 dtypes[i], info->name, dtypes[i]);
    buf_puts(b, "}; ");
    s += len;
  }
}

/* `if _is_half(x) { return _half_rounded(_half_joined(_half_of(…), …), f(_half_widened(x), …)) }` */
static void put_halves(const OpInfo *info, const char *fn, const char *params, Buf *b) {
  const char *looks[OP_MAX_PARAMS];
  size_t lens[OP_MAX_PARAMS];
  u32 n = 0;
  for (const char *s = params; *s; s += strspn(s, ", ")) {
    looks[n] = s;
    lens[n] = strcspn(s, ", ");
    param_named(info, s, lens[n]);
    s += lens[n++];
  }
  buf_puts(b, "if ");
  for (u32 i = 0; i < n; i++)
    buf_printf(b, "%s(type(%.*s) == \"array\" and (%.*s.dtype == f16 or %.*s.dtype == bf16))", i ? " or " : "",
               (int)lens[i], looks[i], (int)lens[i], looks[i], (int)lens[i], looks[i]);
  buf_puts(b, " { return _half_rounded(_half_joined((");
  for (u32 i = 0; i < n; i++) buf_printf(b, "%.*s, ", (int)lens[i], looks[i]);
  buf_printf(b, ")), %s(", fn);
  for (u32 i = 0; i < info->nparams; i++) {
    const OpParam *p = &info->params[i];
    buf_printf(b, "%s_half_widened(%.*s)", i ? ", " : "", (int)p->len, p->name);
  }
  buf_puts(b, ")) }; ");
}

/* Are the parameters of the function called as its row says? What else is wrong with them is found later. */
static bool has_parameters(World *w, const Ast *ast, const AstNode *fn, const OpInfo *info) {
  if (ast_fn_arity(fn) != info->nparams) return false;
  for (u32 i = 0; i < info->nparams; i++) {
    const AstNode *p = ast_node(ast, ast_fn_param(ast, fn, i));
    const char *name = p->ref ? name_text(&w->names, p->ref) : "";
    if (strlen(name) != info->params[i].len || memcmp(name, info->params[i].name, strlen(name)) != 0) return false;
  }
  return true;
}

/* Puts the text into b, behind the helpers that it names and those that they name. */
static void put_helpers(World *w, const char *text, Buf *b) {
  bool there[HELPER_COUNT] = {0};
  const char *all = text;
  for (u32 i = 0; i < HELPER_COUNT; i++) {
    const char *call = arena_printf(&w->arena, "%s(", helpers[i].name);
    if (!call) die("helpers", "no memory");
    if (there[i] || !strstr(all, call)) continue;
    Buf one;
    buf_init(&one, w->alloc);
    if (strncmp(helpers[i].name, "_is_", 4) == 0) {
      buf_puts(&one, "(x) { ");
      put_condition(helpers[i].text, "x", &one);
      buf_puts(&one, " }");
    } else {
      buf_puts(&one, helpers[i].text);
    }
    all = arena_printf(&w->arena, "fn %s%s; %s", helpers[i].name, buf_text(&one), all);
    if (!all || one.failed) die("helpers", "no memory");
    buf_free(&one);
    there[i] = true;
    i = (u32)-1; /* from the start again: this one may name others */
  }
  buf_puts(b, all);
}

/* What lang/takes.def says of the functions of a module, as text: `fn _entry_NAME() { … }` for each, and helpers. */
static void put_entries(World *w, const Ast *ast, const char *module, Buf *b) {
  const AstNode *root = ast_node(ast, ast->root);
  Buf all;
  buf_init(&all, w->alloc);
  for (u32 i = 0; i < root->count; i++) {
    const AstNode *n = ast_node(ast, ast_kid(ast, root, i));
    const char *name = name_text(&w->names, n->ref);
    u32 op = op_of(w, module, strcspn(module, "._"), name, n->span);
    for (u32 k = 0; k < HELPER_COUNT; k++)
      if (strcmp(helpers[k].name, name) == 0)
        refuse(w, n->span, arena_printf(&w->arena, "%s: a helper of lang/takes.def has this name", name));
    if (!op || !has_parameters(w, ast, n, op_info(op))) continue;
    Buf one;
    buf_init(&one, w->alloc);
    for (u32 k = 0; k < sizeof halves / sizeof halves[0]; k++)
      if (halves[k].op == op) {
        if (!op_takes(op, DT_c128)) put_real(op_info(op), halves[k].params, &one);
        put_halves(op_info(op), name, halves[k].params, &one);
      }
    for (u32 k = 0; k < sizeof takes / sizeof takes[0]; k++)
      if (takes[k].op == op) put_check(op_info(op), takes[k].param, takes[k].kind, &one);
    if (one.len) buf_printf(&all, "fn _entry_%s() { %snil }; ", name, buf_text(&one));
    buf_free(&one);
  }
  put_helpers(w, buf_text(&all), b);
  if (all.failed || b->failed) die(module, "no memory");
  buf_free(&all);
}

static void place_at(const Ast *ast, AstNode *nodes, u32 id, Span at) {
  nodes[id].span = at;
  for (u32 i = 0; i < nodes[id].count; i++)
    if (ast_kid(ast, &nodes[id], i)) place_at(ast, nodes, ast_kid(ast, &nodes[id], i), at);
}

/* Moves the statements of `_entry_NAME` into the body of NAME. A body that is an expression becomes a block. */
static void move_entries(World *w, Ast *ast) {
  const AstNode *root = ast_node(ast, ast->root);
  u32 most = root->count, nkids = ast->kid_count, nnodes = ast->node_count;
  u32 *kids = arena_alloc(&w->arena, (2 * (size_t)ast->kid_count + 2 * most) * sizeof *kids);
  AstNode *nodes = arena_alloc(&w->arena, ((size_t)nnodes + most) * sizeof *nodes);
  if (!kids || !nodes) die("entries", "no memory");
  memcpy(kids, ast->kids, nkids * sizeof *kids);
  memcpy(nodes, ast->nodes, nnodes * sizeof *nodes);
  ast->kids = kids;
  ast->nodes = nodes;
  AstNode *top = &nodes[ast->root];
  u32 kept = 0;
  for (u32 i = 0; i < most; i++) {
    u32 entry = kids[top->first + i];
    const char *name = nodes[entry].kind == AST_FN && nodes[entry].ref ? name_text(&w->names, nodes[entry].ref) : "";
    u32 fn = 0;
    if (strncmp(name, "_entry_", 7) == 0)
      for (u32 k = 0; k < most && !fn; k++) {
        const AstNode *n = &nodes[kids[top->first + k]];
        if (n->kind == AST_FN && n->ref && strcmp(name_text(&w->names, n->ref), name + 7) == 0)
          fn = kids[top->first + k];
      }
    if (!fn) {
      kids[top->first + kept++] = entry;
      continue;
    }
    const AstNode *from = &nodes[ast_fn_body(ast, &nodes[entry])];
    u32 body = ast_fn_body(ast, &nodes[fn]), first = nkids;
    Span at = nodes[fn].span;
    at.len = nodes[body].span.start - at.start;
    for (u32 k = 0; k + 1 < from->count; k++) { /* the last one is nil */
      u32 id = ast_kid(ast, from, k);
      place_at(ast, nodes, id, at);
      kids[nkids++] = id;
    }
    if (nodes[body].kind == AST_BLOCK) {
      for (u32 k = 0; k < nodes[body].count; k++) kids[nkids++] = kids[nodes[body].first + k];
    } else {
      kids[nkids++] = body;
      nodes[nnodes] = (AstNode){.kind = AST_BLOCK, .span = nodes[body].span};
      body = kids[nodes[fn].first] = nnodes++;
    }
    nodes[body].first = first;
    nodes[body].count = nkids - first;
  }
  top->count = kept;
  ast->kid_count = nkids;
  ast->node_count = nnodes;
}

/* Parses the module with what lang/takes.def says; the text that was parsed. */
static char *parse_module(World *w, const char *path, size_t *len, u32 *file, Ast *ast) {
  Diag diag = {0};
  Ast plain;
  Buf entries;
  char *text = read_all(path, len);
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  *file = sources_add(&w->sources, path, text, *len);
  if (!*file) die(path, "no memory");
  if (parser_parse(&plain, &w->arena, &w->names, &w->sources, *file, &diag, NULL) != WEFT_OK)
    refuse(w, diag.span, diag.message);
  const AstNode *root = ast_node(&plain, plain.root);
  for (u32 i = 0; i < root->count; i++) {
    const AstNode *n = ast_node(&plain, ast_kid(&plain, root, i));
    if (n->kind != AST_FN || !n->ref)
      refuse(w, n->span,
             "a module of the library holds declarations of functions alone: nothing runs when it is loaded");
  }
  buf_init(&entries, w->alloc);
  put_entries(w, &plain, name, &entries);
  char *all = malloc(entries.len + *len + 1);
  if (!all) die(path, "no memory");
  if (entries.len) memcpy(all, entries.data, entries.len);
  memcpy(all + entries.len, text, *len);
  *len += entries.len;
  buf_free(&entries);
  free(text);
  *file = sources_add(&w->sources, path, all, *len);
  if (!*file) die(path, "no memory");
  if (parser_parse(ast, &w->arena, &w->names, &w->sources, *file, &diag, NULL) != WEFT_OK)
    refuse(w, diag.span, diag.message);
  move_entries(w, ast);
  return all;
}

/* Compiles, reads what it wrote back (which proves it), and writes it as `codeN`, `textN`. */
static void module(FILE *out, const char *path, u32 number) {
  World w = {.alloc = allocator_system()};
  arena_init(&w.arena, w.alloc);
  if (names_init(&w.names, w.alloc) != WEFT_OK || sources_init(&w.sources, w.alloc) != WEFT_OK) die(path, "no memory");
  size_t len;
  u32 file;
  Ast ast;
  char *text = parse_module(&w, path, &len, &file, &ast);
  Diag diag = {0};
  Proto *p, *again;
  ModuleScope scope = {.alloc = w.alloc}, fresh = {.alloc = w.alloc};
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
  Name missing;
  buf_init(&code, w.alloc);
  buf_init(&why, w.alloc);
  proto_save(p, &w.names, &scope, false, &code);
  if (code.failed) die(path, "no memory");
  if (proto_load(code.data, code.len, false, file, w.alloc, &w.names, &fresh, &again, &missing, &why, NULL) != WEFT_OK)
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

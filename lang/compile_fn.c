/* compile_fn.c — functions: parameters, defaults, annotations, closures and groups; and the whole compilation. */
#include "lang/compiler.h"

#include <string.h>

/* ---- annotations --------------------------------------------------------------------------------------------- */

static bool is_type_name(const char *s, u32 len) {
  static const char *const types[] = {"array", "text", "list", "record", "range", "fn", "ref", "module", "dtype",
                                      "handle", "nil"};
  for (u32 i = 0; i < COUNT_OF(types); i++)
    if (strlen(types[i]) == len && memcmp(types[i], s, len) == 0) return true;
  return false;
}

static bool own_local(const FnState *fs, Name name, u32 *reg) {
  for (u32 i = fs->locals.count; i-- > 0;)
    if (fs->locals.data[i].name == name) {
      *reg = fs->locals.data[i].reg;
      return true;
    }
  return false;
}

static bool is_later_parameter(const FnState *fs, const AstNode *fn, u32 i, Name name) {
  for (u32 j = i + 1; j < ast_fn_arity(fn); j++)
    if (ast_node(fs->c->ast, ast_fn_param(fs->c->ast, fn, j))->ref == name) return true;
  return false;
}

typedef struct Dims {
  i64 *consts;
  Name *names;
  u16 *regs;
  u8 *binds;
  u32 rank, bound, base;
} Dims;

static void dimension(FnState *fs, const AstNode *fn, u32 i, const AstNode *size, Dims *d) {
  const Ast *ast = fs->c->ast;
  u32 at = d->rank++, reg = 0;
  d->consts[at] = size->kind == AST_INT ? ast->ints[size->ref] : size->kind == AST_NAME ? -1 : -2;
  if (size->kind == AST_INT && d->consts[at] < 0) compile_error(fs->c, EK_syntax, size->span, "a size is not negative");
  if (size->kind != AST_NAME) return;
  const char *text = name_text(fs->c->o->names, size->ref);
  if (is_later_parameter(fs, fn, i, size->ref))
    compile_error(fs->c, EK_name, size->span,
                  "%s is a parameter further right: put that one first, or rename the size", text);
  d->names[at] = size->ref;
  scope_mention(fs, size->ref, size->span, SCOPE_reads);
  if (!own_local(fs, size->ref, &reg)) {
    reg = reg_take(fs, 1);
    if (!d->bound++) d->base = reg;
    d->binds[at] = 1;
    scope_local(fs, size->ref, reg, size->span);
  }
  d->regs[at] = (u16)reg;
}

static void annotation(FnState *fs, const AstNode *fn, u32 i, const AstNode *a, Name param) {
  const Ast *ast = fs->c->ast;
  const Names *names = fs->c->o->names;
  const char *type = name_text(names, a->ref);
  u32 len = name_len(names, a->ref), dtype = dtype_by_name(type, len);
  bool has_dims = a->flags & AF_DIMS;
  if (!dtype && !is_type_name(type, len))
    compile_error(fs->c, EK_name, a->span,
                  "there is no type %s: write a dtype such as f64, f64[n], or array text list record range fn ref",
                  type);
  else if (has_dims && !dtype && strcmp(type, "array") != 0)
    compile_error(fs->c, EK_type, a->span, "only a dtype or array can have sizes, not %s", type);
  Dims d = {.consts = proto_room(fs, sizeof(i64) * a->count), .names = proto_room(fs, sizeof(Name) * a->count),
            .regs = proto_room(fs, sizeof(u16) * a->count), .binds = proto_room(fs, a->count)};
  for (u32 k = 0; k < a->count && !fs->c->failed; k++) dimension(fs, fn, i, ast_node(ast, ast_kid(ast, a, k)), &d);
  Desc desc = {.kind = DESC_ANNOT, .type_name = a->ref, .dtype = (u8)dtype, .has_dims = has_dims, .rank = d.rank,
               .dim_consts = d.consts, .dim_names = d.names, .dim_regs = d.regs, .dim_binds = d.binds, .param = param};
  emit(fs, ins_make(BC_checkarg, 0, d.base, i, desc_add(fs, desc)), a->span);
}

/* ---- parameters ------------------------------------------------------------------------------------------------ */

static void default_value(FnState *fs, u32 reg, u32 value) {
  Span at = ast_node(fs->c->ast, value)->span;
  u32 extent = extent_open(fs, EXT_IF);
  u32 jump = emit_jump(fs, BC_jgiven, 0, reg, NO_JUMP, at);
  if (!fs->c->failed) fs->extents.data[extent].head = here(fs);
  u32 save = fs->top;
  expr(fs, value, reg);
  fs->top = save;
  patch(fs, jump, here(fs));
  extent_close(fs, extent);
}

/* A default as it is written, to be shown in one line; NULL: it is too long. */
static const char *initial_text(FnState *fs, Span at) {
  enum { MOST = 24 };
  const SourceFile *f = fs->c->o->sources ? sources_get(fs->c->o->sources, at.file) : NULL;
  if (!f || at.len > MOST || memchr(f->text + at.start, '\n', at.len)) return NULL;
  const char *text = arena_copy(&fs->proto->arena, f->text + at.start, at.len);
  if (!text) compile_refused(fs->c);
  return text;
}

/* One after the other, so that defaults see the parameters and sizes before them. */
static void parameters(FnState *fs, const AstNode *fn) {
  const Ast *ast = fs->c->ast;
  Proto *p = fs->proto;
  u32 count = ast_fn_arity(fn);
  p->params = proto_room(fs, sizeof *p->params * count);
  p->nparams = count;
  p->npositional = count;
  reg_take(fs, count);
  for (u32 i = 0; i < count && !fs->c->failed; i++) {
    const AstNode *param = ast_node(ast, ast_fn_param(ast, fn, i));
    u32 pattern = ast_kid(ast, param, 0), annot = ast_kid(ast, param, 1), value = ast_kid(ast, param, 2);
    p->params[i] = (Param){.name = param->ref, .has_default = value, .keyword_only = param->flags & AF_KEYWORD};
    if (value) p->params[i].initial = initial_text(fs, ast_node(ast, value)->span);
    if (param->flags & AF_REST) {
      p->rest_index = (i32)i;
      p->npositional = i;
    }
    if (value) default_value(fs, i, value);
    if (annot) annotation(fs, fn, i, ast_node(ast, annot), param->ref);
    if (param->ref) scope_local(fs, param->ref, i, param->span);
    else if (pattern) bind_pattern(fs, pattern, i);
  }
}

static Proto *function(FnState *parent, u32 id, FnGroup *group) {
  Compiler *c = parent->c;
  const Ast *ast = c->ast;
  const AstNode *n = ast_node(ast, id);
  FnState fs;
  fn_open(&fs, c, parent, group, n->ref, n->span);
  u32 doc = ast_fn_doc(ast, n);
  if (doc && !c->failed) {
    const AstText *text = &ast->texts[ast_node(ast, doc)->ref];
    fs.proto->doc = arena_copy(&fs.proto->arena, text->text, text->len);
    if (!fs.proto->doc) compile_refused(c);
  }
  if (!c->failed) parameters(&fs, n);
  if (!c->failed) tail(&fs, ast_fn_body(ast, n));
  return fn_close(&fs);
}

/* Into the functions made by `fs`; its index. */
static u32 add_proto(FnState *fs, Proto *p) {
  if (!p) return 0;
  if (!vec_push(fs->c->o->alloc, &fs->protos, p)) {
    compile_refused(fs->c);
    proto_drop(p);
    return 0;
  }
  return fs->protos.count - 1;
}

static void *copy_into(Compiler *c, Proto *p, const void *data, size_t n) {
  if (c->failed || !n) return NULL;
  void *copy = arena_alloc(&p->arena, n);
  if (copy) memcpy(copy, data, n);
  else compile_refused(c);
  return copy;
}

/* Captures are known when all members are compiled. */
static void close_group(FnState *fs, FnGroup *group, u32 first, u32 count) {
  Compiler *c = fs->c;
  Proto **members = fs->protos.data + first;
  for (u32 i = 0; i < count && !c->failed; i++) {
    Proto *p = members[i];
    p->captures = copy_into(c, p, group->captures.data, sizeof(Capture) * group->captures.count);
    p->ncaptures = group->captures.count;
    p->group = copy_into(c, p, members, sizeof *members * count);
    p->group_size = count;
    p->group_index = i;
  }
  if (group->captures.count > 0xffff)
    compile_limit(c, EK_syntax, fs->proto->span, "a function captures more than 65535 values");
  vec_free(c->o->alloc, &group->captures);
}

void lambda(FnState *fs, u32 id, u32 want) {
  FnGroup group = {0};
  u32 index = add_proto(fs, function(fs, id, &group));
  close_group(fs, &group, index, 1);
  emit(fs, ins_make(BC_closure, 0, want, index, 0), ast_node(fs->c->ast, id)->span);
}

/* On the top level functions find each other as module variables. */
static u32 declare_at_top(FnState *fs, const u32 *ids, u32 count) {
  for (u32 i = 0; i < count; i++) {
    const AstNode *n = ast_node(fs->c->ast, ids[i]);
    scope_declare(fs, n->ref, n->span);
  }
  u32 reg = reg_take(fs, 1);
  for (u32 i = 0; i < count; i++) {
    const AstNode *n = ast_node(fs->c->ast, ids[i]);
    fs->top_level = false;
    lambda(fs, ids[i], reg);
    fs->top_level = true;
    emit(fs, ins_make_x(BC_setmod, 0, reg, scope_declare(fs, n->ref, n->span)), n->span);
  }
  return reg;
}

u32 declare_functions(FnState *fs, const u32 *ids, u32 count) {
  Compiler *c = fs->c;
  if (c->failed) return 0;
  if (fs->top_level) return declare_at_top(fs, ids, count);
  Name *names = proto_room(fs, sizeof *names * count);
  u32 *told = c->o->hook ? proto_room(fs, sizeof *told * count) : NULL;
  if (!names || (c->o->hook && !told)) return 0;
  for (u32 i = 0; i < count; i++) {
    names[i] = ast_node(c->ast, ids[i])->ref;
    if (told) told[i] = scope_new_id(fs, names[i], ast_node(c->ast, ids[i])->span);
    for (u32 j = 0; j < i; j++)
      if (names[j] == names[i])
        compile_error(c, EK_name, ast_node(c->ast, ids[i])->span, "%s is declared twice in one group of functions",
                      name_text(c->o->names, names[i]));
  }
  FnGroup group = {.names = names, .ids = told, .count = count};
  u32 first = fs->protos.count, base = reg_take(fs, count);
  for (u32 i = 0; i < count && !c->failed; i++) add_proto(fs, function(fs, ids[i], &group));
  close_group(fs, &group, first, count);
  Span at = ast_node(c->ast, ids[0])->span;
  if (count == 1) emit(fs, ins_make(BC_closure, 0, base, first, 0), at);
  else emit(fs, ins_make(BC_group, 0, base, first, count), at);
  if (first + count > 0xffff)
    compile_limit(c, EK_syntax, at, "this function is too large: more than 65535 functions inside");
  for (u32 i = 0; i < count; i++) scope_member(fs, &group, i, base + i);
  return base + count - 1;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static void find_assigns(Compiler *c) {
  const Ast *ast = c->ast;
  c->assigns = mem_alloc_zero(c->o->alloc, ast->node_count);
  if (!c->assigns) compile_refused(c);
  for (u32 id = 1; c->assigns && id < ast->node_count; id++) {
    const AstNode *n = ast_node(ast, id);
    bool assigns = n->kind == AST_ASSIGN;
    for (u32 i = 0; i < n->count && !assigns && n->kind != AST_FN; i++) assigns = c->assigns[ast_kid(ast, n, i)];
    c->assigns[id] = assigns;
  }
}

static void check_result(Compiler *c, const Proto *p) {
#if defined(__SANITIZE_ADDRESS__) || defined(WEFT_DEBUG)
  Buf why;
  buf_init(&why, c->o->alloc);
  if (!proto_verify(p, c->o->scope->slots.count, c->o->names->count, c->o->alloc, &why, c->o->toil)) {
    if (why.len) compile_limit(c, EK_syntax, p->span, "the compiler made wrong code: %s", buf_text(&why));
    else compile_refused(c);
  }
  buf_free(&why);
#else
  (void)c, (void)p;
#endif
}

WeftStatus lang_compile(const Ast *ast, const CompileOptions *options, Proto **out, Diag *diag) {
  Compiler c = {.ast = ast, .o = options, .diag = diag};
  FnGroup group = {0};
  FnState fs;
  *out = NULL;
  c.assert_name = name_cstr(options->names, "assert");
  c.value_name = name_cstr(options->names, "value");
  if (!c.assert_name || !c.value_name) compile_refused(&c);
  find_assigns(&c);
  fn_open(&fs, &c, NULL, &group, 0, ast_node(ast, ast->root)->span);
  if (!c.failed) module_body(&fs);
  Proto *p = fn_close(&fs);
  if (p && !c.faulty) check_result(&c, p);
  c.failed |= c.faulty;
  if (c.failed) proto_drop(p);
  else *out = p;
  scope_settle(&c);
  vec_free(options->alloc, &group.captures);
  mem_free(options->alloc, c.assigns, ast->node_count);
  return c.failed ? WEFT_ERROR : WEFT_OK;
}

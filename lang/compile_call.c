/* compile_call.c — calls: plain, by method, through a pipe; names, spreads and holes. */
#include "lang/compiler.h"
#include "lang/ops.h"

#include <stdio.h>
#include <string.h>

/* A call as it will be emitted: function in `base`, arguments behind it. */
typedef struct CallShape {
  u32 callee;      /* node; the field node of a method call */
  bool is_method;  /* a.f(x): argument 0 is the object */
  u32 piped;       /* node of the piped value, or 0 */
  bool piped_first;
  const AstNode *n; /* call node; NULL: a pipe into a plain value */
  u32 argc;
  Name *names;     /* parallel to the arguments; NULL: all positional, no spread */
  u8 *spread;
  bool add_text;   /* assert(c): the text of the condition is its message */
} CallShape;

static bool is_method_callee(const AstNode *callee) {
  return callee->kind == AST_FIELD && !(callee->flags & AF_PARENS);
}

/* `assert` that nobody has declared, with just a condition. */
static bool is_bare_assert(FnState *fs, const CallShape *s) {
  const Compiler *c = fs->c;
  const AstNode *callee = ast_node(c->ast, s->callee);
  if (s->is_method || s->piped || s->argc != 1 || s->names || callee->kind != AST_NAME || callee->ref != c->assert_name)
    return false;
  NameRef ref = scope_read(fs, callee->ref);
  return ref.kind == REF_MODULE && !(c->o->scope->flags.data[ref.index] & MODVAR_DECLARED);
}

static void shape_arguments(FnState *fs, CallShape *s) {
  const Ast *ast = fs->c->ast;
  const AstNode *n = s->n;
  u32 before = s->is_method + s->piped_first, given = n ? n->count - 1 : 0;
  bool plain = true;
  for (u32 i = 0; i < given; i++) {
    u32 kind = ast_kind(ast, ast_kid(ast, n, 1 + i));
    plain &= kind != AST_NAMED && kind != AST_SPREAD;
  }
  s->argc = before + given;
  if (plain) return;
  s->names = proto_room(fs, sizeof *s->names * s->argc);
  s->spread = proto_room(fs, s->argc);
  for (u32 i = 0; s->names && s->spread && i < given; i++) {
    const AstNode *arg = ast_node(ast, ast_kid(ast, n, 1 + i));
    if (arg->kind == AST_NAMED) s->names[before + i] = arg->ref;
    if (arg->kind == AST_SPREAD) s->spread[before + i] = 1;
  }
}

static bool is_hole(const Ast *ast, const AstNode *arg) {
  return arg->kind == AST_HOLE || (arg->kind == AST_NAMED && ast_kind(ast, ast_kid(ast, arg, 0)) == AST_HOLE);
}

/* The register for the piped value: the first hole's, or the first argument's. */
static u32 piped_position(FnState *fs, const CallShape *s) {
  const Ast *ast = fs->c->ast;
  for (u32 i = 1; !s->piped_first && i < s->n->count; i++)
    if (is_hole(ast, ast_node(ast, ast_kid(ast, s->n, i)))) return s->is_method + i - 1;
  return s->is_method;
}

/* What a.f means when `a` has no field f: whatever f is here, or nil. */
static void fallback(FnState *fs, Name name, u32 reg, Span at) {
  NameRef ref = scope_read(fs, name);
  switch (ref.kind) {
  case REF_LOCAL: emit_move(fs, reg, ref.index, at); break;
  case REF_CAPTURE: emit(fs, ins_make(BC_getcap, 0, reg, ref.index, 0), at); break;
  case REF_GROUP: emit(fs, ins_make(BC_groupfn, 0, reg, ref.index, 0), at); break;
  case REF_MODULE: emit(fs, ins_make_x(BC_getmod, INS_METHOD, reg, ref.index), at); break;
  default: emit_nil(fs, reg, at);
  }
}

/* The name behind the dot. */
static Span field_name_span(const Compiler *c, const AstNode *field) {
  u32 len = name_len(c->o->names, field->ref);
  if (field->span.len < len) return field->span;
  return (Span){field->span.file, field->span.start + field->span.len - len, len};
}

static void callee_value(FnState *fs, const CallShape *s, u32 base) {
  const Ast *ast = fs->c->ast;
  if (!s->is_method) {
    expr(fs, s->callee, base);
    return;
  }
  const AstNode *field = ast_node(ast, s->callee);
  expr(fs, ast_kid(ast, field, 0), base + 1);
  Span at = field_name_span(fs->c, field);
  fallback(fs, field->ref, base, at);
  scope_mention(fs, field->ref, at, SCOPE_calls);
  emit(fs, ins_make(BC_method, 0, base, desc_name(fs, field->ref), 0), at);
}

static void argument_values(FnState *fs, const CallShape *s, u32 first, u32 piped_reg) {
  const Ast *ast = fs->c->ast;
  for (u32 i = 1; s->n && i < s->n->count; i++) {
    u32 id = ast_kid(ast, s->n, i), reg = first + s->is_method + s->piped_first + i - 1;
    const AstNode *arg = ast_node(ast, id);
    if (is_hole(ast, arg)) emit_move(fs, reg, piped_reg, arg->span);
    else expr(fs, arg->kind == AST_NAMED || arg->kind == AST_SPREAD ? ast_kid(ast, arg, 0) : id, reg);
  }
}

static void add_condition_text(FnState *fs, const CallShape *s, u32 reg) {
  Span at = ast_node(fs->c->ast, ast_kid(fs->c->ast, s->n, 1))->span;
  const SourceFile *f = sources_get(fs->c->o->sources, at.file);
  const char *text = f && at.start + at.len <= f->len ? arena_printf(&fs->proto->arena, "assertion failed: %.*s",
                                                                     (int)at.len, f->text + at.start) : NULL;
  if (text) emit_const(fs, reg, const_text(text, (u32)strlen(text)), at);
  else emit_nil(fs, reg, at);
}

static u32 emit_call(FnState *fs, const CallShape *s, Span at, u32 save, u32 base, u32 want, bool is_tail) {
  u32 flags = s->is_method ? INS_METHOD : 0, last = s->argc, op = is_tail ? BC_tail : BC_call;
  if (s->names) {
    last = desc_add(fs, (Desc){.kind = DESC_CALL, .argc = s->argc, .names = s->names, .name_count = s->argc,
                               .spread = s->spread});
    op = is_tail ? BC_tailx : BC_callx;
  }
  u32 dst = is_tail ? 0 : result_register(fs, save, want);
  emit(fs, ins_make(op, flags, dst, base, last), at);
  fs->top = is_tail ? save : fs->top;
  return dst;
}

static u32 call_shape(FnState *fs, CallShape *s, Span at, u32 want, bool is_tail) {
  u32 save = fs->top;
  shape_arguments(fs, s);
  s->add_text = is_bare_assert(fs, s);
  s->argc += s->add_text;
  u32 base = reg_take(fs, 1 + s->argc);
  u32 piped_reg = 0;
  if (s->piped) {
    piped_reg = base + 1 + (s->n ? piped_position(fs, s) : 0);
    expr(fs, s->piped, piped_reg);
  }
  callee_value(fs, s, base);
  argument_values(fs, s, base + 1, piped_reg);
  if (s->add_text) add_condition_text(fs, s, base + s->argc);
  return emit_call(fs, s, at, save, base, want, is_tail);
}

static OpId op_of(const FnState *fs, const char *module, Name name) {
  char full[64];
  snprintf(full, sizeof full, "%s%s%s", module, *module ? "." : "", name_text(fs->c->o->names, name));
  return op_by_name(full, strlen(full));
}

static bool is_undeclared(FnState *fs, Name name) {
  NameRef ref = scope_read(fs, name);
  return ref.kind == REF_MODULE && !(fs->c->o->scope->flags.data[ref.index] & MODVAR_DECLARED);
}

bool is_library(FnState *fs, u32 callee) {
  const Ast *ast = fs->c->ast;
  const AstNode *n = ast_node(ast, callee);
  OpId op = OP_none;
  if (n->kind == AST_FIELD) {
    const AstNode *of = ast_node(ast, ast_kid(ast, n, 0));
    if (of->kind == AST_NAME && is_undeclared(fs, of->ref)) op = op_of(fs, name_text(fs->c->o->names, of->ref), n->ref);
  }
  if (!op && (n->kind == AST_NAME || n->kind == AST_FIELD) && is_undeclared(fs, n->ref)) op = op_of(fs, "", n->ref);
  return op_info(op)->lower == LOWER_weft;
}

static u32 pipe(FnState *fs, u32 id, u32 want, bool is_tail) {
  Compiler *c = fs->c;
  const AstNode *n = ast_node(c->ast, id);
  u32 value = ast_kid(c->ast, n, 0), right = ast_kid(c->ast, n, 1), target = ast_pipe_call(c->ast, n);
  if (!target) {
    CallShape s = {.callee = right, .piped = value, .piped_first = true};
    if (!is_tail || !is_library(fs, right)) return call_shape(fs, &s, n->span, want, is_tail);
    u32 v = call_shape(fs, &s, n->span, want, false);
    emit(fs, ins_make(BC_ret, 0, v, 0, 0), n->span);
    return 0;
  }
  u32 outer_call = c->piped_call, outer_value = c->piped_value;
  c->piped_call = target;
  c->piped_value = value;
  u32 result = 0;
  if (is_tail) tail(fs, right);
  else result = expr(fs, right, want);
  c->piped_call = outer_call;
  c->piped_value = outer_value;
  return result;
}

u32 call(FnState *fs, u32 id, u32 want, bool is_tail) {
  Compiler *c = fs->c;
  const AstNode *n = ast_node(c->ast, id);
  if (n->kind == AST_PIPE) return pipe(fs, id, want, is_tail);
  CallShape s = {.callee = ast_kid(c->ast, n, 0), .n = n};
  s.is_method = is_method_callee(ast_node(c->ast, s.callee));
  if (id == c->piped_call) {
    s.piped = c->piped_value;
    s.piped_first = !(n->flags & AF_HOLES);
    c->piped_call = 0;
  }
  return call_shape(fs, &s, n->span, want, is_tail);
}

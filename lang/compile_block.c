/* compile_block.c — sequences of statements: blocks with their scopes, and the body of a module. */
#include "lang/compiler.h"

static bool is_declaration(const Ast *ast, u32 id) {
  const AstNode *n = ast_node(ast, id);
  return n->kind == AST_FN && n->ref;
}

static void check_unused(FnState *fs, u32 id) {
  const AstNode *n = ast_node(fs->c->ast, id);
  if (!(n->flags & AF_SIGNED)) return;
  compile_error(fs->c, EK_syntax, n->span,
                "the value of this statement is unused: end the previous line with the operator to continue it");
}

/* fn declarations from statement i on that stand next to each other. */
static u32 functions_at(const Ast *ast, const AstNode *block, u32 i) {
  u32 count = 0;
  while (i + count < block->count && is_declaration(ast, ast_kid(ast, block, i + count))) count++;
  return count;
}

/* All but the last statement; a group of functions at the end is declared, and true. */
static bool leading_statements(FnState *fs, const AstNode *block) {
  const Ast *ast = fs->c->ast;
  for (u32 i = 0; i < block->count;) {
    u32 functions = functions_at(ast, block, i);
    if (functions) {
      declare_functions(fs, ast->kids + block->first + i, functions);
      i += functions;
      if (i == block->count) return true;
    } else if (i + 1 == block->count) {
      return false;
    } else {
      check_unused(fs, ast_kid(ast, block, i));
      effect(fs, ast_kid(ast, block, i++));
    }
  }
  return false;
}

typedef struct Scope {
  u32 locals, top;
  bool top_level;
} Scope;

static Scope enter(FnState *fs) {
  Scope s = {fs->locals.count, fs->top, fs->top_level};
  fs->top_level = false;
  return s;
}

static void leave(FnState *fs, Scope s, bool kill, Span at) {
  if (kill) scope_kill(fs, s.locals, at);
  scope_forget(fs, s.locals, at);
  fs->top = s.top;
  fs->top_level = s.top_level;
}

void block_value(FnState *fs, u32 id, u32 want) {
  const Ast *ast = fs->c->ast;
  const AstNode *block = ast_node(ast, id);
  Scope s = enter(fs);
  bool ends_in_function = leading_statements(fs, block);
  u32 last = block->count ? ast_kid(ast, block, block->count - 1) : 0;
  if (ends_in_function || !last) { /* the value of a declaration is the function */
    u32 v = last && fs->locals.count ? fs->locals.data[fs->locals.count - 1].reg
                                     : const_operand(fs, const_nil(), block->span);
    Span end = block->span.len ? (Span){block->span.file, block->span.start + block->span.len - 1, 0} : block->span;
    if (want == ANY) emit(fs, ins_make(BC_ret, 0, v, 0, 0), end);
    else emit_move(fs, want, v, end);
  } else if (want == ANY) {
    tail(fs, last);
  } else {
    expr(fs, last, want);
  }
  leave(fs, s, want != ANY, block->span);
}

void block_effect(FnState *fs, u32 id) {
  const Ast *ast = fs->c->ast;
  const AstNode *block = ast_node(ast, id);
  Scope s = enter(fs);
  if (!leading_statements(fs, block) && block->count) {
    u32 last = ast_kid(ast, block, block->count - 1);
    check_unused(fs, last);
    effect(fs, last);
  }
  leave(fs, s, true, block->span);
}

/* ---- the body of a module ---------------------------------------------------------------------------------- */

static void expect_name(FnState *fs, Name name, Span at) {
  (void)at;
  scope_expect(fs, name);
}

static void expect_names(FnState *fs, const AstNode *block) {
  const Ast *ast = fs->c->ast;
  for (u32 i = 0; i < block->count; i++) {
    u32 id = ast_kid(ast, block, i);
    const AstNode *n = ast_node(ast, id);
    if (n->kind == AST_LET || (n->kind == AST_ASSIGN && fs->c->o->repl && !n->op))
      each_name(fs, ast_kid(ast, n, 0), expect_name);
    if (is_declaration(ast, id) || n->kind == AST_IMPORT) scope_expect(fs, n->ref);
  }
}

static void import(FnState *fs, const AstNode *n) {
  const Compiler *c = fs->c;
  const AstNode *what = ast_node(c->ast, ast_kid(c->ast, n, 0));
  const Names *names = c->o->names;
  u32 save = fs->top, v = 0;
  if (what->kind == AST_TEXT) {
    const AstText *path = &c->ast->texts[what->ref];
    u32 p = const_operand(fs, const_text(path->text, path->len), what->span);
    u32 name = const_operand(fs, const_text(name_text(names, n->ref), name_len(names, n->ref)), n->span);
    v = reg_take(fs, 1);
    emit(fs, ins_make(BC_import, 0, v, p, name), n->span);
  } else {
    Builtin b = builtin_find(name_text(names, what->ref), name_len(names, what->ref));
    if (b.kind != BUILTIN_MODULE)
      compile_error(fs->c, EK_name, what->span, "there is no standard module %s; a file is imported as \"%s.weft\"",
                    name_text(names, what->ref), name_text(names, what->ref));
    v = const_operand(fs, (Const){.kind = CK_MODULE, .i = b.id}, what->span);
  }
  emit(fs, ins_make_x(BC_setmod, 0, v, scope_declare(fs, n->ref, n->span)), n->span);
  fs->top = save;
}

static void top_statement(FnState *fs, u32 id) {
  const AstNode *n = ast_node(fs->c->ast, id);
  if (n->kind == AST_IMPORT) import(fs, n);
  else effect(fs, id);
}

void module_body(FnState *fs) {
  const Ast *ast = fs->c->ast;
  const AstNode *root = ast_node(ast, ast->root);
  fs->top_level = true;
  expect_names(fs, root);
  u32 value = ANY, last = root->count ? ast_kid(ast, root, root->count - 1) : 0;
  for (u32 i = 0; i < root->count && !fs->c->failed;) {
    u32 id = ast_kid(ast, root, i), functions = functions_at(ast, root, i);
    const AstNode *n = ast_node(ast, id);
    bool is_value = id == last && n->kind != AST_IMPORT && n->kind != AST_LET && n->kind != AST_ASSIGN;
    if (functions) {
      u32 save = fs->top, v = declare_functions(fs, ast->kids + root->first + i, functions);
      i += functions;
      if (i == root->count) value = v;
      else fs->top = save;
    } else {
      i++;
      if (id != last) check_unused(fs, id);
      if (is_value) value = expr(fs, id, ANY);
      else top_statement(fs, id);
    }
  }
  if (value == ANY) value = const_operand(fs, const_nil(), root->span);
  emit(fs, ins_make(BC_ret, 0, value, 0, 0), last ? ast_node(ast, last)->span : root->span);
}

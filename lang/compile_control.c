/* compile_control.c — branches and loops: every one an extent, so that the tracer can lift it. */
#include "lang/compiler.h"

/* How a branch is wanted: into a register, for its effect, or returning. */
typedef struct Want {
  enum { TO_REGISTER, FOR_EFFECT, RETURNING } mode;
  u32 reg;
} Want;

static void arm(FnState *fs, u32 id, Want w, Span at) {
  if (w.mode == FOR_EFFECT && id) block_effect(fs, id);
  if (w.mode == TO_REGISTER && id) block_value(fs, id, w.reg);
  if (w.mode == TO_REGISTER && !id) emit_nil(fs, w.reg, at);
  if (w.mode == RETURNING && id) tail(fs, id);
  if (w.mode == RETURNING && !id) emit(fs, ins_make(BC_ret, 0, const_operand(fs, const_nil(), at), 0, 0), at);
}

/* jnot or jif over the condition in `v`; opens the IF extent. */
static u32 open_branch(FnState *fs, u32 op, u32 v, u32 *jump, Span at) {
  u32 extent = extent_open(fs, EXT_IF);
  *jump = emit_jump(fs, op, 0, v, NO_JUMP, at);
  if (!fs->c->failed) fs->extents.data[extent].head = here(fs);
  return extent;
}

/* ---- if ------------------------------------------------------------------------------------------------ */

/* Each further arm lies in the other arm of the one before: extents nest, and all end at the same pc. */
static void branches(FnState *fs, const AstNode *n, Want w) {
  const Ast *ast = fs->c->ast;
  u32 arms = ast_if_arms(n), otherwise = ast_if_else(ast, n), outermost = 0, ends = NO_JUMP;
  bool open_else = false; /* the last arm falls to the end when its condition fails */
  for (u32 i = 0; i < arms && !fs->c->failed; i++) {
    u32 condition = ast_kid(ast, n, 2 * i), save = fs->top, jump;
    u32 v = expr(fs, condition, ANY);
    u32 extent = open_branch(fs, BC_jnot, v, &jump, ast_node(ast, condition)->span);
    if (!i) outermost = extent;
    fs->top = save;
    arm(fs, ast_kid(ast, n, 2 * i + 1), w, n->span);
    bool last = i + 1 == arms;
    open_else = last && !otherwise && w.mode == FOR_EFFECT;
    if (open_else) {
      patch(fs, jump, here(fs));
      break;
    }
    if (w.mode != RETURNING) ends = emit_jump(fs, BC_jump, 0, 0, ends, n->span);
    patch(fs, jump, here(fs));
    if (!fs->c->failed) fs->extents.data[extent].els = here(fs);
    if (last) arm(fs, otherwise, w, n->span);
  }
  patch(fs, ends, here(fs));
  while (!fs->c->failed && fs->extent >= outermost) extent_close(fs, fs->extent);
}

/* ---- and, or, chained comparisons ------------------------------------------------------------------------ */

static bool gives_bool(const Ast *ast, u32 id) {
  const AstNode *n = ast_node(ast, id);
  return n->kind == AST_AND || n->kind == AST_OR || n->kind == AST_BOOL ||
         (n->kind == AST_UNARY && n->op == AST_OP_logical_not);
}

static void truth_of(FnState *fs, u32 id, u32 reg) {
  const Ast *ast = fs->c->ast;
  if (gives_bool(ast, id)) {
    expr(fs, id, reg);
    return;
  }
  u32 save = fs->top;
  u32 v = expr(fs, id, ANY);
  emit(fs, ins_make(BC_truth, 0, reg, v, 0), ast_node(ast, id)->span);
  fs->top = save;
}

static void short_circuit(FnState *fs, const AstNode *n, u32 reg) {
  const Ast *ast = fs->c->ast;
  u32 left = ast_kid(ast, n, 0), jump;
  truth_of(fs, left, reg);
  u32 extent = open_branch(fs, n->kind == AST_AND ? BC_jnot : BC_jif, reg, &jump, ast_node(ast, left)->span);
  truth_of(fs, ast_kid(ast, n, 1), reg);
  patch(fs, jump, here(fs));
  extent_close(fs, extent);
}

static void chain(FnState *fs, const AstNode *n, u32 reg) {
  const Ast *ast = fs->c->ast;
  u32 save = fs->top, jumps = NO_JUMP, outermost = UINT32_MAX;
  u32 left = expr_kept(fs, ast_kid(ast, n, 0), fs->c->assigns[ast_kid(ast, n, 1)]);
  for (u32 i = 1; i < n->count && !fs->c->failed; i++) {
    const AstNode *operand = ast_node(ast, ast_kid(ast, n, i));
    u32 right = expr_kept(fs, ast_kid(ast, n, i), i + 1 < n->count && fs->c->assigns[ast_kid(ast, n, i + 1)]);
    Span at = span_join(ast_node(ast, ast_kid(ast, n, i - 1))->span, operand->span);
    emit(fs, ins_make(binary_op(ast->ops[n->ref + i - 1]), 0, reg, left, right), at);
    left = right;
    if (i + 1 == n->count) {
      emit(fs, ins_make(BC_truth, 0, reg, reg, 0), at);
      break;
    }
    u32 jump, extent = open_branch(fs, BC_jnot, reg, &jump, at);
    if (outermost == UINT32_MAX) outermost = extent;
    if (!fs->c->failed) fs->code.data[jump] = ins_make_x(BC_jnot, 0, reg, jumps);
    jumps = jump;
  }
  patch(fs, jumps, here(fs));
  while (!fs->c->failed && outermost != UINT32_MAX && fs->extent >= outermost) extent_close(fs, fs->extent);
  fs->top = save;
}

/* ---- loops ------------------------------------------------------------------------------------------------ */

static void loop_end(FnState *fs, u32 extent, LoopState *loop, Span at) {
  fs->loop = loop->outer;
  if (fs->c->failed) return;
  Extent *e = &fs->extents.data[extent];
  e->els = here(fs);
  patch(fs, loop->continues, here(fs));
  emit_jump(fs, BC_loop, 0, 0, e->head, at);
  patch(fs, loop->breaks, here(fs));
  extent_close(fs, extent);
}

static void while_loop(FnState *fs, const AstNode *n) {
  const Ast *ast = fs->c->ast;
  u32 condition = ast_kid(ast, n, 0), save = fs->top;
  u32 extent = extent_open(fs, EXT_WHILE);
  u32 v = expr(fs, condition, ANY);
  LoopState loop = {.outer = fs->loop, .continues = NO_JUMP, .locals = fs->locals.count};
  loop.breaks = emit_jump(fs, BC_jnot, 0, v, NO_JUMP, ast_node(ast, condition)->span);
  fs->loop = &loop;
  fs->top = save;
  block_effect(fs, ast_kid(ast, n, 1));
  loop_end(fs, extent, &loop, n->span);
}

static void for_loop(FnState *fs, const AstNode *n) {
  const Ast *ast = fs->c->ast;
  u32 pattern = ast_kid(ast, n, 0), sequence = ast_kid(ast, n, 1), save = fs->top, locals = fs->locals.count;
  u32 hidden = reg_take(fs, 4), mark = fs->top;
  u32 v = expr(fs, sequence, ANY);
  Span at = ast_node(ast, sequence)->span;
  u32 extent = extent_open(fs, EXT_FOR);
  emit(fs, ins_make(BC_forprep, 0, hidden, v, 0), at);
  fs->top = mark;
  if (!fs->c->failed) fs->extents.data[extent].head = here(fs);
  LoopState loop = {.outer = fs->loop, .continues = NO_JUMP};
  loop.breaks = emit_jump(fs, BC_fornext, 0, hidden, NO_JUMP, at);
  fs->loop = &loop;
  if (ast_kind(ast, pattern) != AST_HOLE) bind_pattern(fs, pattern, hidden + 3);
  loop.locals = fs->locals.count;
  block_effect(fs, ast_kid(ast, n, 2));
  loop_end(fs, extent, &loop, n->span);
  /* The loop's own hold on the sequence ends here, so that the program's is the only one again. */
  bool counted = ast_kind(ast, sequence) != AST_RANGE;
  if (counted) emit_kill(fs, hidden, n->span);
  if (counted) emit_kill(fs, hidden + 3, n->span);
  if (counted) scope_kill(fs, locals, n->span);
  scope_forget(fs, locals, n->span);
  fs->top = save;
}

static void leave_loop(FnState *fs, const AstNode *n) {
  if (!fs->loop) return;
  scope_kill(fs, fs->loop->locals, n->span);
  u32 *jumps = n->kind == AST_BREAK ? &fs->loop->breaks : &fs->loop->continues;
  *jumps = emit_jump(fs, BC_jump, 0, 0, *jumps, n->span);
}

/* ---- try, return -------------------------------------------------------------------------------------------- */

static void try_catch(FnState *fs, const AstNode *n, Want w) {
  const Ast *ast = fs->c->ast;
  u32 save = fs->top, locals = fs->locals.count;
  u32 extent = extent_open(fs, EXT_TRY);
  fs->try_depth++;
  arm(fs, ast_kid(ast, n, 0), w, n->span);
  u32 jump = emit_jump(fs, BC_jump, 0, 0, NO_JUMP, n->span);
  fs->try_depth--;
  if (!fs->c->failed) fs->extents.data[extent].head = here(fs);
  u32 reg = reg_take(fs, 1), pattern = ast_kid(ast, n, 1);
  emit(fs, ins_make(BC_catch, 0, reg, 0, 0), pattern ? ast_node(ast, pattern)->span : n->span);
  if (pattern) bind_pattern(fs, pattern, reg);
  arm(fs, ast_kid(ast, n, 2), w, n->span);
  scope_close(fs, locals, n->span);
  patch(fs, jump, here(fs));
  extent_close(fs, extent);
  fs->top = save;
}

static void return_value(FnState *fs, const AstNode *n) {
  u32 value = n->count ? ast_kid(fs->c->ast, n, 0) : 0;
  if (value) tail(fs, value);
  else emit(fs, ins_make(BC_ret, 0, const_operand(fs, const_nil(), n->span), 0, 0), n->span);
}

/* ---- all ------------------------------------------------------------------------------------------------------ */

u32 control(FnState *fs, u32 id, u32 want) {
  const AstNode *n = ast_node(fs->c->ast, id);
  u32 dst = result_register(fs, fs->top, want), save = fs->top;
  switch (n->kind) {
  case AST_IF: branches(fs, n, (Want){TO_REGISTER, dst}); break;
  case AST_TRY: try_catch(fs, n, (Want){TO_REGISTER, dst}); break;
  case AST_AND: case AST_OR: short_circuit(fs, n, dst); break;
  case AST_COMPARE: chain(fs, n, dst); break;
  default:
    control_effect(fs, id);
    emit_nil(fs, dst, n->span);
  }
  fs->top = save;
  return dst;
}

void control_effect(FnState *fs, u32 id) {
  const AstNode *n = ast_node(fs->c->ast, id);
  switch (n->kind) {
  case AST_IF: branches(fs, n, (Want){FOR_EFFECT, 0}); break;
  case AST_TRY: try_catch(fs, n, (Want){FOR_EFFECT, 0}); break;
  case AST_WHILE: while_loop(fs, n); break;
  case AST_FOR: for_loop(fs, n); break;
  case AST_BREAK: case AST_CONTINUE: leave_loop(fs, n); break;
  case AST_RETURN: return_value(fs, n); break;
  default: break;
  }
}

void control_tail(FnState *fs, u32 id) { branches(fs, ast_node(fs->c->ast, id), (Want){RETURNING, 0}); }

/* compile_expr.c — expressions: literals, names, operators, containers, access. */
#include "lang/compiler.h"

#include <string.h>

/* Literals with more items are built in pieces: registers are for variables. */
enum { RUN_MAX = 256 };

u32 result_register(FnState *fs, u32 save, u32 want) {
  fs->top = save;
  return want == ANY ? reg_take(fs, 1) : want;
}

u32 expr_register(FnState *fs, u32 id) {
  u32 v = expr(fs, id, ANY);
  if (!(v & INS_CONST)) return v;
  u32 r = reg_take(fs, 1);
  emit_move(fs, r, v, ast_node(fs->c->ast, id)->span);
  return r;
}

u32 expr_kept(FnState *fs, u32 id, bool assigned) {
  u32 save = fs->top;
  u32 v = expr(fs, id, ANY);
  if (!assigned || (v & INS_CONST) || v >= save) return v;
  u32 r = reg_take(fs, 1);
  emit_move(fs, r, v, ast_node(fs->c->ast, id)->span);
  return r;
}

/* ---- literals and names ----------------------------------------------------------------------------- */

static u32 constant(FnState *fs, Const k, Span at, u32 want) {
  if (want == ANY) return const_operand(fs, k, at);
  emit_const(fs, want, k, at);
  return want;
}

static bool literal(const Ast *ast, const AstNode *n, Const *k) {
  switch (n->kind) {
  case AST_NIL: *k = const_nil(); return true;
  case AST_BOOL: *k = (Const){.kind = CK_BOOL, .i = n->flags & AF_TRUE}; return true;
  case AST_INT: *k = (Const){.kind = n->flags & AF_BIG ? CK_U64 : CK_INT, .i = ast->ints[n->ref]}; return true;
  case AST_FLOAT: *k = (Const){.kind = CK_FLOAT, .f = ast->floats[n->ref]}; return true;
  case AST_IMAG: *k = (Const){.kind = CK_IMAG, .f = ast->floats[n->ref]}; return true;
  case AST_TEXT: *k = const_text(ast->texts[n->ref].text, ast->texts[n->ref].len); return true;
  default: return false;
  }
}

static u32 name(FnState *fs, const AstNode *n, u32 want) {
  NameRef ref = scope_read(fs, n->ref);
  scope_mention(fs, n->ref, n->span, SCOPE_reads);
  if (ref.kind == REF_NONE) scope_not_declared(fs, n->ref, n->span, false);
  if (ref.kind == REF_LOCAL) {
    if (want == ANY) return ref.index;
    emit_move(fs, want, ref.index, n->span);
    return want;
  }
  u32 dst = result_register(fs, fs->top, want);
  if (ref.kind == REF_CAPTURE) emit(fs, ins_make(BC_getcap, 0, dst, ref.index, 0), n->span);
  if (ref.kind == REF_GROUP) emit(fs, ins_make(BC_groupfn, 0, dst, ref.index, 0), n->span);
  if (ref.kind == REF_MODULE) emit(fs, ins_make_x(BC_getmod, 0, dst, ref.index), n->span);
  if (ref.kind == REF_NONE) emit_nil(fs, dst, n->span); /* where a hook has compiling go on */
  return dst;
}

static u32 fstring(FnState *fs, const AstNode *n, u32 want) {
  const Ast *ast = fs->c->ast;
  if (!n->count) return constant(fs, const_text("", 0), n->span, want);
  u32 save = fs->top;
  u32 base = n->count == 1 && want != ANY ? want : reg_take(fs, n->count);
  for (u32 i = 0; i < n->count; i++) {
    const AstNode *part = ast_node(ast, ast_kid(ast, n, i));
    if (part->kind == AST_TEXT) {
      expr(fs, ast_kid(ast, n, i), base + i);
      continue;
    }
    u32 mark = fs->top;
    u32 spec_id = part->count > 1 ? ast_kid(ast, part, 1) : 0;
    u32 v = expr_kept(fs, ast_kid(ast, part, 0), spec_id && fs->c->assigns[spec_id]);
    u32 spec = spec_id ? expr(fs, spec_id, ANY) : const_operand(fs, const_nil(), part->span);
    emit(fs, ins_make(BC_fmt, 0, base + i, v, spec), part->span);
    fs->top = mark;
  }
  if (n->count == 1) return base;
  u32 dst = result_register(fs, save, want);
  emit(fs, ins_make(BC_join, 0, dst, base, n->count), n->span);
  return dst;
}

/* ---- operators -------------------------------------------------------------------------------------- */

u32 binary_op(u32 op) {
  static const u8 table[AST_OP_COUNT] = {
      [AST_OP_add] = BC_add, [AST_OP_subtract] = BC_sub, [AST_OP_multiply] = BC_mul, [AST_OP_divide] = BC_div,
      [AST_OP_floor_divide] = BC_floordiv, [AST_OP_remainder] = BC_mod, [AST_OP_matmul] = BC_matmul,
      [AST_OP_power] = BC_pow, [AST_OP_bitwise_and] = BC_band, [AST_OP_bitwise_or] = BC_bor,
      [AST_OP_bitwise_xor] = BC_bxor, [AST_OP_left_shift] = BC_shl, [AST_OP_right_shift] = BC_shr,
      [AST_OP_equal] = BC_eq, [AST_OP_not_equal] = BC_ne, [AST_OP_less] = BC_lt, [AST_OP_less_equal] = BC_le,
      [AST_OP_greater] = BC_gt, [AST_OP_greater_equal] = BC_ge, [AST_OP_in] = BC_in,
      [AST_OP_positive] = BC_pos, [AST_OP_negative] = BC_neg, [AST_OP_bitwise_not] = BC_bnot,
      [AST_OP_logical_not] = BC_not};
  return table[op];
}

static u32 binary(FnState *fs, const AstNode *n, u32 op, u32 want) {
  const Ast *ast = fs->c->ast;
  u32 save = fs->top, left = ast_kid(ast, n, 0), right = ast_kid(ast, n, 1);
  u32 l = expr_kept(fs, left, fs->c->assigns[right]);
  u32 r = expr(fs, right, ANY);
  u32 dst = result_register(fs, save, want);
  emit(fs, ins_make(op, 0, dst, l, r), n->span);
  return dst;
}

static u32 unary(FnState *fs, const AstNode *n, u32 want) {
  const Ast *ast = fs->c->ast;
  u32 operand = ast_kid(ast, n, 0);
  Const k;
  if (n->op == AST_OP_negative && literal(ast, ast_node(ast, operand), &k)) {
    if (k.kind == CK_INT) return constant(fs, (Const){.kind = CK_INT, .i = (i64)(0 - (u64)k.i)}, n->span, want);
    if (k.kind == CK_FLOAT) return constant(fs, (Const){.kind = CK_FLOAT, .f = -k.f}, n->span, want);
  }
  u32 save = fs->top;
  u32 v = expr(fs, operand, ANY);
  u32 dst = result_register(fs, save, want);
  emit(fs, ins_make(binary_op(n->op), 0, dst, v, 0), n->span);
  return dst;
}

/* ---- containers --------------------------------------------------------------------------------------- */

static bool has_spread(const Ast *ast, const AstNode *n) {
  for (u32 i = 0; i < n->count; i++)
    if (ast_kind(ast, ast_kid(ast, n, i)) == AST_SPREAD) return true;
  return false;
}

static u32 run_of(FnState *fs, const AstNode *n, u32 first, u32 count) {
  const Ast *ast = fs->c->ast;
  u32 base = reg_take(fs, count);
  for (u32 i = 0; i < count; i++) expr(fs, ast_kid(ast, n, first + i), base + i);
  return base;
}

/* Items up to the next spread, at most RUN_MAX. */
static u32 run_length(const Ast *ast, const AstNode *n, u32 first) {
  u32 count = 0;
  while (first + count < n->count && count < RUN_MAX && ast_kind(ast, ast_kid(ast, n, first + count)) != AST_SPREAD)
    count++;
  return count;
}

static u32 sequence(FnState *fs, const AstNode *n, u32 want) {
  const Ast *ast = fs->c->ast;
  u32 save = fs->top;
  bool is_array = n->kind == AST_ARRAY;
  if (n->count <= RUN_MAX && !has_spread(ast, n)) {
    u32 base = run_of(fs, n, 0, n->count);
    u32 dst = result_register(fs, save, want);
    emit(fs, ins_make(is_array ? BC_array : BC_list, 0, dst, base, n->count), n->span);
    return dst;
  }
  u32 dst = result_register(fs, save, want);
  u32 mark = fs->top;
  for (u32 i = 0; i < n->count || i == 0;) {
    u32 count = run_length(ast, n, i);
    fs->top = mark;
    if (i == 0) {
      u32 base = run_of(fs, n, 0, count);
      emit(fs, ins_make(BC_list, 0, dst, base, count), n->span);
      i += count;
    }
    count = run_length(ast, n, i);
    fs->top = mark;
    if (i < n->count && count == 0) {
      const AstNode *spread = ast_node(ast, ast_kid(ast, n, i++));
      u32 v = expr(fs, ast_kid(ast, spread, 0), ANY);
      emit(fs, ins_make(BC_extend, 0, dst, v, 0), spread->span);
    } else if (count == 1) {
      u32 v = expr(fs, ast_kid(ast, n, i++), ANY);
      emit(fs, ins_make(BC_append, 0, dst, v, 0), n->span);
    } else if (count) {
      u32 base = run_of(fs, n, i, count);
      emit(fs, ins_make(BC_list, 0, base, base, count), n->span);
      emit(fs, ins_make(BC_extend, 0, dst, base, 0), n->span);
      i += count;
    }
  }
  fs->top = mark;
  if (is_array) emit(fs, ins_make(BC_toarray, 0, dst, 0, 0), n->span);
  return dst;
}

static bool repeats_key(const Ast *ast, const AstNode *n, u32 i) {
  for (u32 j = 0; j < i; j++)
    if (ast_node(ast, ast_kid(ast, n, j))->ref == ast_node(ast, ast_kid(ast, n, i))->ref) return true;
  return false;
}

/* The entries at the front that one instruction can take. */
static u32 plain_entries(const Ast *ast, const AstNode *n) {
  u32 count = 0;
  while (count < n->count && count < RUN_MAX && ast_kind(ast, ast_kid(ast, n, count)) == AST_NAMED &&
         !repeats_key(ast, n, count))
    count++;
  return count;
}

static u32 record(FnState *fs, const AstNode *n, u32 want) {
  const Ast *ast = fs->c->ast;
  u32 save = fs->top, count = plain_entries(ast, n);
  u32 dst = count < n->count ? result_register(fs, save, want) : ANY;
  u32 mark = fs->top;
  u32 base = reg_take(fs, count);
  Name *keys = proto_room(fs, sizeof *keys * count);
  for (u32 i = 0; i < count; i++) {
    const AstNode *entry = ast_node(ast, ast_kid(ast, n, i));
    if (keys) keys[i] = entry->ref;
    expr(fs, ast_kid(ast, entry, 0), base + i);
  }
  u32 desc = desc_add(fs, (Desc){.kind = DESC_KEYS, .names = keys, .name_count = count});
  if (dst == ANY) dst = result_register(fs, save, want);
  emit(fs, ins_make(BC_record, 0, dst, base, desc), n->span);
  if (count == n->count) return dst;
  for (u32 i = count; i < n->count; i++) {
    const AstNode *entry = ast_node(ast, ast_kid(ast, n, i));
    fs->top = mark;
    u32 v = expr(fs, ast_kid(ast, entry, 0), ANY);
    if (entry->kind == AST_SPREAD) {
      emit(fs, ins_make(BC_recspread, 0, dst, v, 0), entry->span);
    } else {
      const Names *names = fs->c->o->names;
      u32 key = const_operand(fs, const_text(name_text(names, entry->ref), name_len(names, entry->ref)), entry->span);
      emit(fs, ins_make(BC_recput, 0, dst, v, key), entry->span);
    }
  }
  fs->top = mark;
  return dst;
}

static u32 range(FnState *fs, const AstNode *n, u32 want) {
  const Ast *ast = fs->c->ast;
  u32 save = fs->top;
  u32 count = n->count > 2 && ast_kid(ast, n, 2) ? 3 : 2;
  u32 base = run_of(fs, n, 0, count);
  u32 dst = result_register(fs, save, want);
  emit(fs, ins_make(BC_range, 0, dst, base, count), n->span);
  return dst;
}

/* ---- access ------------------------------------------------------------------------------------------- */

static u8 item_kind(const AstNode *item) {
  if (item->kind == AST_SLICE) return IX_SLICE;
  if (item->kind == AST_ELLIPSIS) return IX_ELLIPSIS;
  return item->kind == AST_NIL && !(item->flags & AF_PARENS) ? IX_NEWAXIS : IX_VALUE;
}

u32 index_items(FnState *fs, const AstNode *n, u8 *kinds) {
  const Ast *ast = fs->c->ast;
  u32 registers = 0;
  for (u32 i = 1; i < n->count; i++) {
    u8 kind = item_kind(ast_node(ast, ast_kid(ast, n, i)));
    kinds[i - 1] = kind;
    registers += kind == IX_VALUE ? 1 : kind == IX_SLICE ? 3 : 0;
  }
  return registers;
}

void index_values(FnState *fs, const AstNode *n, u32 base) {
  const Ast *ast = fs->c->ast;
  for (u32 i = 1; i < n->count; i++) {
    u32 id = ast_kid(ast, n, i);
    const AstNode *item = ast_node(ast, id);
    u8 kind = item_kind(item);
    if (kind == IX_VALUE) expr(fs, id, base++);
    for (u32 k = 0; kind == IX_SLICE && k < 3; k++, base++) {
      u32 part = k < item->count ? ast_kid(ast, item, k) : 0;
      if (part) expr(fs, part, base);
      else emit_nil(fs, base, item->span);
    }
  }
}

static u32 index_expr(FnState *fs, const AstNode *n, u32 want) {
  const Ast *ast = fs->c->ast;
  u32 save = fs->top, object = ast_kid(ast, n, 0), count = n->count - 1;
  u8 *kinds = proto_room(fs, count);
  if (!kinds) return result_register(fs, save, want);
  u32 registers = index_items(fs, n, kinds);
  if (count == 1 && kinds[0] == IX_VALUE) {
    u32 key = ast_kid(ast, n, 1);
    u32 o = expr_kept(fs, object, fs->c->assigns[key]);
    u32 k = expr(fs, key, ANY);
    u32 dst = result_register(fs, save, want);
    emit(fs, ins_make(BC_index, 0, dst, o, k), n->span);
    return dst;
  }
  u32 base = reg_take(fs, 1 + registers);
  expr(fs, object, base);
  index_values(fs, n, base + 1);
  u32 desc = desc_add(fs, (Desc){.kind = DESC_INDEX, .item_count = count, .items = kinds});
  u32 dst = result_register(fs, save, want);
  emit(fs, ins_make(BC_indexn, 0, dst, base, desc), n->span);
  return dst;
}

static u32 field(FnState *fs, const AstNode *n, u32 want) {
  u32 save = fs->top;
  u32 v = expr(fs, ast_kid(fs->c->ast, n, 0), ANY);
  u32 dst = result_register(fs, save, want);
  emit(fs, ins_make(BC_field, 0, dst, v, desc_name(fs, n->ref)), n->span);
  return dst;
}

/* ---- all ---------------------------------------------------------------------------------------------- */

static bool is_statement(u32 kind) {
  return kind == AST_LET || kind == AST_ASSIGN || kind == AST_RETURN || kind == AST_BREAK || kind == AST_CONTINUE ||
         kind == AST_IMPORT;
}

/* Expressions are up to AST_MAX_DEPTH deep, which a small stack does not hold. */
static bool too_deep(FnState *fs, const AstNode *n) {
  if (!cstack_has(CSTACK_CALL)) compile_limit(fs->c, EK_limit, n->span, "nested too deeply: the C stack is used up");
  return fs->c->failed;
}

u32 expr(FnState *fs, u32 id, u32 want) {
  const Ast *ast = fs->c->ast;
  const AstNode *n = ast_node(ast, id);
  if (too_deep(fs, n)) return want == ANY ? 0 : want;
  Const k;
  if (literal(ast, n, &k)) return constant(fs, k, n->span, want);
  if (is_statement(n->kind)) {
    effect(fs, id);
    return constant(fs, const_nil(), n->span, want);
  }
  switch (n->kind) {
  case AST_NAME: return name(fs, n, want);
  case AST_FSTRING: return fstring(fs, n, want);
  case AST_ARRAY: case AST_LIST: return sequence(fs, n, want);
  case AST_RECORD: return record(fs, n, want);
  case AST_RANGE: return range(fs, n, want);
  case AST_UNARY: return unary(fs, n, want);
  case AST_BINARY: return binary(fs, n, binary_op(n->op), want);
  case AST_INDEX: return index_expr(fs, n, want);
  case AST_FIELD: return field(fs, n, want);
  case AST_CALL: case AST_PIPE: return call(fs, id, want, false);
  case AST_COMPARE:
    if (n->count == 2) return binary(fs, n, binary_op(ast->ops[n->ref]), want);
    return control(fs, id, want);
  case AST_FN: {
    u32 dst = result_register(fs, fs->top, want);
    lambda(fs, id, dst);
    return dst;
  }
  case AST_BLOCK: {
    u32 dst = result_register(fs, fs->top, want);
    block_value(fs, id, dst);
    return dst;
  }
  default: return control(fs, id, want);
  }
}

void effect(FnState *fs, u32 id) {
  const AstNode *n = ast_node(fs->c->ast, id);
  u32 save = fs->top;
  if (too_deep(fs, n)) return;
  switch (n->kind) {
  case AST_BLOCK: block_effect(fs, id); break;
  case AST_LET: let_statement(fs, n); return; /* its variables stay */
  case AST_ASSIGN: assign_statement(fs, n); break;
  case AST_IF: case AST_WHILE: case AST_FOR: case AST_TRY: case AST_RETURN: case AST_BREAK: case AST_CONTINUE:
    control_effect(fs, id);
    break;
  default: expr(fs, id, ANY);
  }
  fs->top = save;
}

void tail(FnState *fs, u32 id) {
  const AstNode *n = ast_node(fs->c->ast, id);
  if (fs->parent && !fs->try_depth && !fs->c->o->library) {
    if (n->kind == AST_PIPE || (n->kind == AST_CALL && !is_library(fs, ast_kid(fs->c->ast, n, 0)))) {
      call(fs, id, ANY, true);
      return;
    }
    if (n->kind == AST_IF) {
      control_tail(fs, id);
      return;
    }
    if (n->kind == AST_BLOCK) {
      block_value(fs, id, ANY);
      return;
    }
  }
  u32 v = expr(fs, id, ANY);
  emit(fs, ins_make(BC_ret, 0, v, 0, 0), n->span);
}

/* compile_stmt.c — blocks, declarations, patterns, assignment to variables and paths, import. */
#include "lang/compiler.h"

/* ---- patterns ------------------------------------------------------------------------------------------ */

/* A list pattern: parts before the rest, the rest, parts behind it. */
static Desc list_desc(const Ast *ast, const AstNode *p) {
  Desc d = {.kind = DESC_UNPACK};
  for (u32 i = 0; i < p->count; i++) {
    if (ast_kind(ast, ast_kid(ast, p, i)) == AST_SPREAD) d.has_rest = true;
    else if (d.has_rest) d.after++;
    else d.before++;
  }
  return d;
}

static Desc record_desc(FnState *fs, const AstNode *p) {
  const Ast *ast = fs->c->ast;
  Desc d = {.kind = DESC_UNPACK};
  d.has_rest = p->count && ast_kind(ast, ast_kid(ast, p, p->count - 1)) == AST_SPREAD;
  d.name_count = p->count - d.has_rest;
  Name *names = proto_room(fs, sizeof *names * d.name_count);
  for (u32 i = 0; names && i < d.name_count; i++) names[i] = ast_node(ast, ast_kid(ast, p, i))->ref;
  d.names = names;
  return d;
}

/* What a part of a pattern is matched against. */
static u32 part_target(const Ast *ast, u32 part) {
  const AstNode *n = ast_node(ast, part);
  return n->kind == AST_NAMED || n->kind == AST_SPREAD ? ast_kid(ast, n, 0) : part;
}

/* Registers of the parts of the value in operand `v`, one for each part of the pattern. */
static u32 unpack(FnState *fs, const AstNode *p, u32 v, u32 base) {
  bool is_record = p->flags & AF_RECORD;
  u32 desc = desc_add(fs, is_record ? record_desc(fs, p) : list_desc(fs->c->ast, p));
  emit(fs, ins_make(is_record ? BC_unpackrec : BC_unpack, 0, base, v, desc), p->span);
  return base;
}

static void bind_parts(FnState *fs, const AstNode *p, u32 base) {
  const Ast *ast = fs->c->ast;
  for (u32 i = 0; i < p->count; i++) bind_pattern(fs, part_target(ast, ast_kid(ast, p, i)), base + i);
}

void bind_pattern(FnState *fs, u32 pattern, u32 reg) {
  const AstNode *p = ast_node(fs->c->ast, pattern);
  if (p->kind == AST_NAME) scope_local(fs, p->ref, reg, p->span);
  if (p->kind == AST_HOLE) emit_kill(fs, reg, p->span);
  if (p->kind == AST_PATTERN) bind_parts(fs, p, unpack(fs, p, reg, reg_take(fs, p->count)));
}

/* `(a, b) = (x, y)`: the parts are evaluated without a list between them. */
static bool fits_parts(const Ast *ast, const AstNode *p, const AstNode *value) {
  if (p->kind != AST_PATTERN || (p->flags & AF_RECORD) || value->kind != AST_LIST || p->count != value->count)
    return false;
  for (u32 i = 0; i < p->count; i++)
    if (ast_kind(ast, ast_kid(ast, p, i)) == AST_SPREAD || ast_kind(ast, ast_kid(ast, value, i)) == AST_SPREAD)
      return false;
  return true;
}

static void parts_of_value(FnState *fs, const AstNode *p, u32 value, u32 base) {
  const Ast *ast = fs->c->ast;
  const AstNode *v = ast_node(ast, value);
  u32 save = fs->top;
  if (fits_parts(ast, p, v)) {
    for (u32 i = 0; i < p->count; i++) expr(fs, ast_kid(ast, v, i), base + i);
  } else {
    unpack(fs, p, expr(fs, value, ANY), base);
  }
  fs->top = save;
}

void each_name(FnState *fs, u32 pattern, void (*visit)(FnState *, Name, Span)) {
  const Ast *ast = fs->c->ast;
  const AstNode *p = ast_node(ast, pattern);
  if (p->kind == AST_NAME) visit(fs, p->ref, p->span);
  for (u32 i = 0; p->kind == AST_PATTERN && i < p->count; i++)
    each_name(fs, part_target(ast, ast_kid(ast, p, i)), visit);
}

/* ---- let ------------------------------------------------------------------------------------------------- */

static void set_module(FnState *fs, u32 slot, u32 v, Span at) { emit(fs, ins_make_x(BC_setmod, 0, v, slot), at); }

/* Declares the names of a pattern as module variables; the parts lie in registers. */
static void declare_parts(FnState *fs, u32 pattern, u32 reg) {
  const Ast *ast = fs->c->ast;
  const AstNode *p = ast_node(ast, pattern);
  if (p->kind == AST_NAME) set_module(fs, scope_declare(fs, p->ref, p->span), reg, p->span);
  if (p->kind != AST_PATTERN) return;
  u32 save = fs->top, base = unpack(fs, p, reg, reg_take(fs, p->count));
  for (u32 i = 0; i < p->count; i++) declare_parts(fs, part_target(ast, ast_kid(ast, p, i)), base + i);
  fs->top = save;
}

static void let_module(FnState *fs, u32 pattern, u32 value) {
  const Ast *ast = fs->c->ast;
  const AstNode *p = ast_node(ast, pattern);
  u32 save = fs->top;
  if (p->kind == AST_PATTERN) {
    u32 base = reg_take(fs, p->count);
    parts_of_value(fs, p, value, base);
    for (u32 i = 0; i < p->count; i++) declare_parts(fs, part_target(ast, ast_kid(ast, p, i)), base + i);
  } else {
    u32 v = expr(fs, value, ANY);
    if (p->kind == AST_NAME) set_module(fs, scope_declare(fs, p->ref, p->span), v, p->span);
  }
  fs->top = save;
}

void let_statement(FnState *fs, const AstNode *n) {
  const Ast *ast = fs->c->ast;
  u32 pattern = ast_kid(ast, n, 0), value = ast_kid(ast, n, 1), save = fs->top;
  const AstNode *p = ast_node(ast, pattern);
  if (fs->top_level) {
    let_module(fs, pattern, value);
  } else if (p->kind == AST_NAME) {
    u32 reg = reg_take(fs, 1);
    expr(fs, value, reg);
    fs->top = reg + 1;
    scope_local(fs, p->ref, reg, p->span);
  } else if (p->kind == AST_PATTERN) {
    u32 base = reg_take(fs, p->count);
    parts_of_value(fs, p, value, base);
    bind_parts(fs, p, base);
  } else {
    effect(fs, value);
    fs->top = save;
  }
}

/* ---- assignment --------------------------------------------------------------------------------------------- */

/* Does the code of this value write its register once, as the last thing? Then it may be that of a variable which
 * the value reads, and which keeps its old value when an error comes before. */
static bool writes_once(const Ast *ast, u32 id) {
  const AstNode *n = ast_node(ast, id);
  switch (n->kind) {
  case AST_AND: case AST_OR: case AST_TRY: case AST_RECORD: return false;
  case AST_COMPARE: return n->count == 2;
  case AST_LIST: case AST_ARRAY:
    for (u32 i = 0; i < n->count; i++)
      if (ast_node(ast, ast_kid(ast, n, i))->kind == AST_SPREAD) return false;
    return n->count < 64;
  case AST_BLOCK: return n->count == 0;
  case AST_IF:
    for (u32 i = 0; i < n->count; i++) {
      u32 kid = ast_kid(ast, n, i);
      if ((i & 1 || i + 1 == n->count) &&
          !(ast_node(ast, kid)->count == 1 && writes_once(ast, ast_kid(ast, ast_node(ast, kid), 0))))
        return false;
    }
    return true;
  default: return true;
  }
}

static bool assignable(FnState *fs, const AstNode *target, NameRef *ref) {
  *ref = scope_assign(fs, target->ref);
  scope_mention(fs, target->ref, target->span, SCOPE_updates);
  if (ref->kind == REF_NONE) scope_not_declared(fs, target->ref, target->span, true);
  if (ref->kind == REF_CAPTURE || ref->kind == REF_GROUP) scope_captured(fs, target->ref, target->span);
  return ref->kind == REF_LOCAL || ref->kind == REF_MODULE;
}

/* An operand becomes the value of a variable. */
static void store(FnState *fs, const AstNode *target, u32 v, Span at) {
  NameRef ref;
  if (!assignable(fs, target, &ref)) return;
  if (ref.kind == REF_LOCAL) emit_move(fs, ref.index, v, at);
  else set_module(fs, ref.index, v, at);
}

/* No call, block or inner assignment: when it is evaluated does not matter. */
static bool is_simple(const Ast *ast, u32 id, u32 depth) {
  const AstNode *n = ast_node(ast, id);
  switch (n->kind) {
  case AST_NIL: case AST_BOOL: case AST_INT: case AST_FLOAT: case AST_IMAG: case AST_TEXT: case AST_NAME: case AST_HOLE:
    return true;
  case AST_UNARY: case AST_BINARY: case AST_INDEX: case AST_FIELD: case AST_LIST: case AST_ARRAY: case AST_SLICE:
    for (u32 i = 0; i < n->count; i++) {
      u32 kid = ast_kid(ast, n, i);
      if (kid && (depth > 8 || !is_simple(ast, kid, depth + 1))) return false;
    }
    return true;
  default: return false;
  }
}

/* A whole variable and an operator. A module variable is updated where it lies, else it would always be shared. */
static void compound_name(FnState *fs, const AstNode *target, u32 op, u32 value, Span at) {
  NameRef ref;
  if (!assignable(fs, target, &ref)) return;
  u32 save = fs->top;
  if (ref.kind == REF_LOCAL) {
    u32 left = ref.index;
    if (fs->c->assigns[value]) emit_move(fs, left = reg_take(fs, 1), ref.index, target->span);
    u32 v = expr(fs, value, ANY);
    emit(fs, ins_make(op, 0, ref.index, left, v), at);
  } else {
    u32 base = reg_take(fs, 1);
    expr(fs, value, base);
    u32 desc = desc_add(fs, (Desc){.kind = DESC_PATH, .op = (u8)op, .root = ROOT_MODULE, .root_slot = ref.index});
    emit(fs, ins_make(BC_setpath, 0, 0, base, desc), at);
  }
  fs->top = save;
}

/* ---- paths ---------------------------------------------------------------------------------------------------- */

typedef struct Path {
  u32 root;      /* node */
  u32 steps, items, registers;
  bool has_value; /* some step is `.value` */
  Desc desc;
} Path;

static void measure_path(const Compiler *c, u32 target, Path *path) {
  const Ast *ast = c->ast;
  u32 id = target;
  for (;; id = ast_kid(ast, ast_node(ast, id), 0)) {
    const AstNode *n = ast_node(ast, id);
    bool is_step = n->kind == AST_INDEX || n->kind == AST_FIELD;
    if (!is_step || (id != target && (n->flags & AF_PARENS))) break;
    path->steps++;
    if (n->kind == AST_INDEX) path->items += n->count - 1;
    else path->has_value |= n->ref == c->value_name;
  }
  path->root = id;
}

/* Steps from the root outwards, their items one after the other. */
static void describe_path(FnState *fs, u32 target, Path *path) {
  const Ast *ast = fs->c->ast;
  PathStep *steps = proto_room(fs, sizeof *steps * path->steps);
  u8 *items = proto_room(fs, path->items);
  u32 id = target, item = path->items;
  for (u32 s = path->steps; steps && (items || !path->items) && s-- > 0; id = ast_kid(ast, ast_node(ast, id), 0)) {
    const AstNode *n = ast_node(ast, id);
    if (n->kind == AST_FIELD) {
      steps[s] = (PathStep){.kind = STEP_FIELD, .field = n->ref, .item_first = item};
      continue;
    }
    item -= n->count - 1;
    steps[s] = (PathStep){.kind = STEP_INDEX, .item_first = item, .item_count = n->count - 1};
    path->registers += index_items(fs, n, items + item);
  }
  path->desc.kind = DESC_PATH;
  path->desc.step_count = path->steps;
  path->desc.steps = steps;
  path->desc.item_count = path->items;
  path->desc.items = items;
}

/* The items of every index step, root first; the tree has the last step on top. */
static void path_values(FnState *fs, u32 target, const Path *path, u32 base) {
  const Ast *ast = fs->c->ast;
  u32 reg = base + path->registers, id = target;
  const u8 *items = path->desc.items;
  u32 *nodes = proto_room(fs, sizeof *nodes * path->steps);
  for (u32 s = path->steps; nodes && s-- > 0; id = ast_kid(ast, ast_node(ast, id), 0)) nodes[s] = id;
  reg = base;
  for (u32 s = 0; nodes && s < path->steps; s++) {
    const AstNode *n = ast_node(ast, nodes[s]);
    if (n->kind != AST_INDEX) continue;
    index_values(fs, n, reg);
    for (u32 i = 1; items && i < n->count; i++, items++) reg += *items == IX_VALUE ? 1 : *items == IX_SLICE ? 3 : 0;
  }
}

/* Where the path begins: a variable, a module variable, or a value that only a ref in the path can make useful. */
static u32 path_root(FnState *fs, Path *path) {
  const AstNode *root = ast_node(fs->c->ast, path->root);
  if (root->kind == AST_NAME) {
    NameRef ref = scope_assign(fs, root->ref);
    scope_mention(fs, root->ref, root->span, SCOPE_updates);
    if (ref.kind == REF_LOCAL) {
      path->desc.root = ROOT_REGISTER;
      return ref.index;
    }
    if (ref.kind == REF_MODULE) {
      path->desc.root = ROOT_MODULE;
      path->desc.root_slot = ref.index;
      return 0;
    }
    if (ref.kind == REF_NONE) scope_not_declared(fs, root->ref, root->span, true);
    else if (!path->has_value) scope_captured(fs, root->ref, root->span);
  }
  path->desc.root = ROOT_FIXED;
  return expr(fs, path->root, reg_take(fs, 1));
}

/* `ready`: operand of the value when it was evaluated before, else ANY. */
static void assign_path(FnState *fs, u32 target, u32 op, u32 value, u32 ready, Span at) {
  const AstNode *t = ast_node(fs->c->ast, target);
  u32 save = fs->top;
  Path path = {0};
  measure_path(fs->c, target, &path);
  describe_path(fs, target, &path);
  path.desc.op = (u8)op;
  u32 root = path_root(fs, &path);
  u32 base = reg_take(fs, path.registers + 1);
  path_values(fs, target, &path, base);
  if (ready == ANY) expr(fs, value, base + path.registers);
  else emit_move(fs, base + path.registers, ready, at);
  emit(fs, ins_make(BC_setpath, 0, root, base, desc_add(fs, path.desc)), op == BC_move ? t->span : at);
  fs->top = save;
}

/* ---- all assignments --------------------------------------------------------------------------------------------- */

static void assign_parts(FnState *fs, const AstNode *p, u32 base, Span at);

static void assign_part(FnState *fs, u32 target, u32 reg, Span at) {
  const AstNode *t = ast_node(fs->c->ast, target);
  u32 save = fs->top;
  switch (t->kind) {
  case AST_NAME: store(fs, t, reg, at); break;
  case AST_HOLE: emit_kill(fs, reg, at); break;
  case AST_PATTERN: assign_parts(fs, t, unpack(fs, t, reg, reg_take(fs, t->count)), at); break;
  default: assign_path(fs, target, BC_move, 0, reg, at);
  }
  fs->top = save;
}

static void assign_parts(FnState *fs, const AstNode *p, u32 base, Span at) {
  const Ast *ast = fs->c->ast;
  for (u32 i = 0; i < p->count; i++) assign_part(fs, part_target(ast, ast_kid(ast, p, i)), base + i, at);
}

/* `x = x + e` on a module variable is `x += e` when nothing can come between. */
static bool is_own_update(FnState *fs, const AstNode *target, const AstNode *value) {
  const Ast *ast = fs->c->ast;
  if (value->kind != AST_BINARY) return false;
  const AstNode *left = ast_node(ast, ast_kid(ast, value, 0));
  return left->kind == AST_NAME && left->ref == target->ref && is_simple(ast, ast_kid(ast, value, 1), 0) &&
         scope_assign(fs, target->ref).kind == REF_MODULE;
}

static void assign_name(FnState *fs, const AstNode *n, const AstNode *target, u32 value) {
  const Ast *ast = fs->c->ast;
  const AstNode *v = ast_node(ast, value);
  if (is_own_update(fs, target, v)) {
    scope_mention(fs, target->ref, ast_node(ast, ast_kid(ast, v, 0))->span, SCOPE_reads);
    compound_name(fs, target, binary_op(v->op), ast_kid(ast, v, 1), v->span);
    return;
  }
  NameRef ref;
  if (!assignable(fs, target, &ref)) return;
  if (ref.kind == REF_LOCAL && writes_once(ast, value)) expr(fs, value, ref.index);
  else store(fs, target, expr(fs, value, ANY), n->span);
}

static void declare_name(FnState *fs, Name name, Span at) { scope_declare(fs, name, at); }

/* `x = e` at the prompt: declares what it names. */
static void assign_at_prompt(FnState *fs, const AstNode *n) {
  const Ast *ast = fs->c->ast;
  u32 target = ast_kid(ast, n, 0), value = ast_kid(ast, n, 1);
  const AstNode *t = ast_node(ast, target), *v = ast_node(ast, value);
  if (t->kind == AST_NAME && is_own_update(fs, t, v)) {
    assign_name(fs, n, t, value);
  } else if (t->kind == AST_NAME) {
    u32 operand = expr(fs, value, ANY);
    set_module(fs, scope_declare(fs, t->ref, t->span), operand, n->span);
  } else {
    u32 base = reg_take(fs, t->count);
    parts_of_value(fs, t, value, base);
    each_name(fs, target, declare_name);
    assign_parts(fs, t, base, n->span);
  }
}

void assign_statement(FnState *fs, const AstNode *n) {
  const Ast *ast = fs->c->ast;
  u32 target = ast_kid(ast, n, 0), value = ast_kid(ast, n, 1), op = n->op ? binary_op(n->op) : BC_move;
  const AstNode *t = ast_node(ast, target);
  if (t->kind == AST_HOLE) {
    effect(fs, value);
  } else if (fs->top_level && fs->c->o->repl && op == BC_move && (t->kind == AST_NAME || t->kind == AST_PATTERN)) {
    assign_at_prompt(fs, n);
  } else if (t->kind == AST_NAME) {
    if (op == BC_move) assign_name(fs, n, t, value);
    else compound_name(fs, t, op, value, n->span);
  } else if (t->kind == AST_PATTERN) {
    u32 base = reg_take(fs, t->count);
    parts_of_value(fs, t, value, base);
    assign_parts(fs, t, base, n->span);
  } else {
    assign_path(fs, target, op, value, ANY, n->span);
  }
}

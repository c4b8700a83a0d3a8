/* ast.c — names, printer and verifier of the AST (see ast.h). */
#include "parser/ast.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REF_none, REF_name, REF_int, REF_float, REF_text, REF_ops };
enum { OPS_none, OPS_arith, OPS_compare, OPS_unary };

static const struct {
  const char *text, *kids;
  u8 ref;
} kinds[AST_KIND_COUNT] = {
#define AST_KIND(name, text, ref, kids, meaning) {text, kids, REF_##ref},
#define AST_OP(name, text, class)
#include "parser/ast.def"
#undef AST_KIND
#undef AST_OP
};

static const struct {
  const char *name, *text;
  u8 class;
} ops[AST_OP_COUNT] = {
#define AST_KIND(name, text, ref, kids, meaning)
#define AST_OP(name, text, class) {#name, text, OPS_##class},
#include "parser/ast.def"
#undef AST_KIND
#undef AST_OP
};

const char *ast_kind_name(u32 kind) { return kind < AST_KIND_COUNT ? kinds[kind].text : "?"; }
const char *ast_op_text(u32 op) { return op < AST_OP_COUNT ? ops[op].text : "?"; }
const char *ast_op_name(u32 op) { return op < AST_OP_COUNT ? ops[op].name : "?"; }

/* The leftmost call of a chain such as f(a).g(b); parentheses hide what is in them. */
u32 ast_pipe_call(const Ast *a, const AstNode *pipe) {
  u32 found = 0, id = ast_kid(a, pipe, 1);
  for (;;) {
    const AstNode *n = ast_node(a, id);
    if (n->flags & AF_PARENS) return found;
    if (n->kind == AST_CALL) found = id;
    else if (n->kind != AST_FIELD && n->kind != AST_INDEX) return found;
    id = ast_kid(a, n, 0);
  }
}

/* ---- printer ------------------------------------------------------------------------------ */

static void print_text(const char *s, u32 len, Buf *out) {
  buf_putc(out, '"');
  for (u32 i = 0; i < len; i++) {
    u8 c = (u8)s[i];
    if (c == '\n') buf_puts(out, "\\n");
    else if (c == '"' || c == '\\') buf_printf(out, "\\%c", c);
    else if (c < 32 || c == 127) buf_printf(out, "\\x%02x", c);
    else buf_putc(out, (char)c);
  }
  buf_putc(out, '"');
}

/* The shortest digits that read back, always with a point or an exponent. */
static void print_float(f64 x, Buf *out) {
  char s[40];
  for (int digits = 1; digits <= 17; digits++) {
    f64 again;
    snprintf(s, sizeof s, "%.*g", digits, x);
    number_point(s);
    if (number_parse_f64(s, strlen(s), &again) && again == x) break;
  }
  buf_puts(out, s);
  if (!strpbrk(s, ".e")) buf_puts(out, ".0");
}

static void print(const Ast *a, u32 id, const AstPrint *how, Buf *out);

static void print_statement(const Ast *a, u32 id, const AstPrint *how, Buf *out) {
  print(a, id, how, out);
  if (id && a->nodes[id].flags & AF_SIGNED) buf_puts(out, "!signed");
}

static void print_kids(const Ast *a, const AstNode *n, u32 from, const AstPrint *how, Buf *out) {
  u32 count = n->count;
  while (count > from && !ast_kid(a, n, count - 1)) count--; /* absent ones at the end are not shown */
  for (u32 i = from; i < count; i++) {
    buf_putc(out, ' ');
    print_statement(a, ast_kid(a, n, i), how, out);
  }
}

static void print_name(const AstPrint *how, Name name, Buf *out) {
  const char *s = name_text(how->names, name);
  bool plain = *s && !(*s >= '0' && *s <= '9');
  for (const char *c = s; *c; c++)
    plain &= (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_' ||
             (u8)*c >= 0x80;
  if (plain) buf_puts(out, s);
  else print_text(s, name_len(how->names, name), out);
}

/* `x`, or `(x : f64[n] = 2)`, `(... rest)`, `((pattern a b) = c)` */
static void print_param(const Ast *a, const AstNode *n, const AstPrint *how, Buf *out) {
  bool plain = n->ref && !(n->flags & AF_REST) && !ast_kid(a, n, 1) && !ast_kid(a, n, 2);
  if (!plain) buf_puts(out, n->flags & AF_REST ? "(... " : "(");
  if (n->ref) print_name(how, n->ref, out);
  else print(a, ast_kid(a, n, 0), how, out);
  if (ast_kid(a, n, 1)) {
    buf_puts(out, " : ");
    print(a, ast_kid(a, n, 1), how, out);
  }
  if (ast_kid(a, n, 2)) {
    buf_puts(out, " = ");
    print(a, ast_kid(a, n, 2), how, out);
  }
  if (!plain) buf_putc(out, ')');
}

static void print_fn(const Ast *a, const AstNode *n, const AstPrint *how, Buf *out) {
  buf_puts(out, "(fn ");
  if (n->ref) {
    print_name(how, n->ref, out);
    buf_putc(out, ' ');
  }
  if (ast_fn_doc(a, n)) {
    print(a, ast_fn_doc(a, n), how, out);
    buf_putc(out, ' ');
  }
  buf_putc(out, '(');
  for (u32 i = 0; i < ast_fn_arity(n); i++) {
    if (i) buf_putc(out, ' ');
    print(a, ast_fn_param(a, n, i), how, out);
  }
  buf_puts(out, ") ");
  print(a, ast_fn_body(a, n), how, out);
  buf_putc(out, ')');
}

/* Depth is bounded by AST_MAX_DEPTH. */
static void print(const Ast *a, u32 id, const AstPrint *how, Buf *out) {
  if (!id) {
    buf_putc(out, '-');
    return;
  }
  const AstNode *n = ast_node(a, id);
  switch (n->kind) {
  case AST_NIL: buf_puts(out, "nil"); return;
  case AST_BOOL: buf_puts(out, n->flags & AF_TRUE ? "true" : "false"); return;
  case AST_INT:
    if (n->flags & AF_BIG) buf_printf(out, "%llu", (unsigned long long)a->ints[n->ref]);
    else buf_printf(out, "%lld", (long long)a->ints[n->ref]);
    return;
  case AST_FLOAT: print_float(a->floats[n->ref], out); return;
  case AST_IMAG:
    print_float(a->floats[n->ref], out);
    buf_putc(out, 'j');
    return;
  case AST_TEXT: print_text(a->texts[n->ref].text, a->texts[n->ref].len, out); return;
  case AST_NAME: print_name(how, n->ref, out); return;
  case AST_HOLE: buf_putc(out, '_'); return;
  case AST_ELLIPSIS: buf_puts(out, "..."); return;
  case AST_FN: print_fn(a, n, how, out); return;
  case AST_PARAM: print_param(a, n, how, out); return;
  case AST_ANNOT:
    print_name(how, n->ref, out);
    if (!(n->flags & AF_DIMS)) return;
    buf_putc(out, '[');
    for (u32 i = 0; i < n->count; i++) {
      if (i) buf_putc(out, ' ');
      print(a, ast_kid(a, n, i), how, out);
    }
    buf_putc(out, ']');
    return;
  case AST_SLICE:
    if (!ast_kid(a, n, 0) && !ast_kid(a, n, 1) && !ast_kid(a, n, 2)) {
      buf_putc(out, ':');
      return;
    }
    break;
  case AST_COMPARE:
    buf_puts(out, "(compare ");
    print(a, ast_kid(a, n, 0), how, out);
    for (u32 i = 1; i < n->count; i++) {
      buf_printf(out, " %s ", ast_op_text(a->ops[n->ref + i - 1]));
      print(a, ast_kid(a, n, i), how, out);
    }
    buf_putc(out, ')');
    return;
  default: break;
  }
  buf_putc(out, '(');
  if (n->kind == AST_UNARY || n->kind == AST_BINARY) buf_puts(out, ast_op_text(n->op));
  else buf_puts(out, ast_kind_name(n->kind));
  if (n->kind == AST_CALL && n->flags & AF_PIPED) buf_putc(out, '|'); /* takes the piped value */
  if (n->kind == AST_PATTERN && n->flags & AF_RECORD) buf_puts(out, "{}");
  if (n->kind == AST_ASSIGN && n->op) buf_printf(out, " %s=", ast_op_text(n->op));
  if (n->kind == AST_NAMED || n->kind == AST_IMPORT) {
    buf_putc(out, ' ');
    print_name(how, n->ref, out);
  }
  print_kids(a, n, 0, how, out);
  if (n->kind == AST_FIELD) {
    buf_putc(out, ' ');
    print_name(how, n->ref, out);
  }
  buf_putc(out, ')');
}

void ast_print(const Ast *a, u32 id, const AstPrint *how, Buf *out) {
  const AstNode *n = ast_node(a, id);
  u32 count = id == a->root ? n->count : 1;
  for (u32 i = 0; i < count; i++) {
    u32 statement = id == a->root ? ast_kid(a, n, i) : id;
    if (i) buf_putc(out, '\n');
    print_statement(a, statement, how, out);
    if (how->where) {
      u32 line, col;
      sources_locate(how->where, a->nodes[statement].span, &line, &col);
      buf_printf(out, "@%u:%u", line, col);
    }
  }
}

/* ---- verifier ----------------------------------------------------------------------------- */

static bool is_expression(u32 kind) {
  switch (kind) {
  case AST_NIL: case AST_BOOL: case AST_INT: case AST_FLOAT: case AST_IMAG: case AST_TEXT: case AST_FSTRING:
  case AST_NAME:
  case AST_ARRAY:
  case AST_LIST: case AST_RECORD: case AST_RANGE: case AST_FN: case AST_CALL: case AST_INDEX: case AST_FIELD:
  case AST_UNARY:
  case AST_BINARY: case AST_COMPARE: case AST_AND: case AST_OR: case AST_PIPE: case AST_BLOCK: case AST_IF:
  case AST_WHILE:
  case AST_FOR: case AST_TRY: return true;
  default: return false;
  }
}

static bool is_pattern(u32 k) { return k == AST_NAME || k == AST_HOLE || k == AST_PATTERN; }

/* Does a child of this kind fit the class that ast.def gives? */
static bool fits(char class, u32 k) {
  switch (class) {
  case 'e': return is_expression(k);
  case 's':
    return is_expression(k) || k == AST_LET || k == AST_ASSIGN || k == AST_BREAK || k == AST_CONTINUE ||
           k == AST_RETURN || k == AST_IMPORT;
  case 'b': return k == AST_BLOCK;
  case 't': return k == AST_TEXT || k == AST_FSTRING;
  case 'p': return is_pattern(k);
  case 'a': return is_expression(k) || k == AST_NAMED || k == AST_SPREAD || k == AST_HOLE;
  case 'i': return is_expression(k) || k == AST_SPREAD;
  case 'r': return k == AST_NAMED || k == AST_SPREAD;
  case 'x': return is_expression(k) || k == AST_SLICE || k == AST_ELLIPSIS;
  case 'f': return k == AST_TEXT || k == AST_PART;
  case 'q': return is_pattern(k) || k == AST_NAMED || k == AST_SPREAD || k == AST_FIELD || k == AST_INDEX;
  case 'n': return is_expression(k) || is_pattern(k);
  case 'P': return k == AST_PARAM;
  case 'A': return k == AST_ANNOT;
  case 'd': return k == AST_NAME || k == AST_INT || k == AST_HOLE;
  case 'g': return is_pattern(k) || k == AST_FIELD || k == AST_INDEX;
  case 'm': return k == AST_TEXT || k == AST_NAME;
  default: return false;
  }
}

static bool check_kids(const Ast *a, const AstNode *n) {
  if (n->kind == AST_IF) { /* (condition block)+ block? */
    if (n->count < 2) return false;
    for (u32 i = 0; i < n->count; i++) {
      u32 kid = ast_kid(a, n, i);
      bool block = i % 2 == 1 || i + 1 == n->count;
      if (!fits(block ? 'b' : 'e', ast_kind(a, kid))) return false;
    }
    return true;
  }
  const char *c = kinds[n->kind].kids;
  u32 i = 0;
  if (*c == '-') return n->count == 0;
  while (*c) {
    char class = *c++, how = 0;
    if (*c && strchr("?*+", *c)) how = *c++;
    if (how == '+' && i >= n->count) return false;
    if (how == '*' || how == '+') {
      for (; i < n->count; i++)
        if (!fits(class, ast_kind(a, ast_kid(a, n, i)))) return false;
    } else {
      if (i >= n->count) return false;
      u32 kid = ast_kid(a, n, i++);
      if (!kid ? how != '?' : !fits(class, ast_kind(a, kid))) return false;
    }
  }
  return i == n->count;
}

static bool check_ref(const Ast *a, const AstNode *n, const Names *names) {
  switch (kinds[n->kind].ref) {
  case REF_int: return n->ref < a->int_count;
  case REF_float: return n->ref < a->float_count && isfinite(a->floats[n->ref]);
  case REF_text: return n->ref < a->text_count;
  case REF_ops:
    if (n->count < 2 || n->ref > a->op_count || a->op_count - n->ref < n->count - 1) return false;
    for (u32 i = 0; i + 1 < n->count; i++)
      if (a->ops[n->ref + i] >= AST_OP_COUNT || ops[a->ops[n->ref + i]].class != OPS_compare) return false;
    return true;
  case REF_name:
    if (n->ref >= names->count) return false;
    if (n->kind == AST_PARAM) return (n->ref == 0) == (ast_kid(a, n, 0) != 0);
    return n->ref != 0 || n->kind == AST_FN || n->kind == AST_NAMED;
  default: return n->ref == 0;
  }
}

static bool check_flags(const AstNode *n) {
  bool one = n->kind == AST_BOOL || n->kind == AST_INT || n->kind == AST_PATTERN || n->kind == AST_ANNOT;
  u32 own = one ? 1 : n->kind == AST_PARAM || n->kind == AST_CALL ? 3 : 0;
  u32 any = is_expression(n->kind) ? AF_PARENS | AF_SIGNED : 0;
  if (n->kind == AST_CALL && (n->flags & AF_HOLES) && !(n->flags & AF_PIPED)) return false;
  if (n->kind == AST_PARAM && (n->flags & 3) == 3) return false;
  return !(n->flags & ~(own | any));
}

static bool check_op(const AstNode *n) {
  if (n->op >= AST_OP_COUNT) return false;
  switch (n->kind) {
  case AST_UNARY: return ops[n->op].class == OPS_unary;
  case AST_BINARY: return ops[n->op].class == OPS_arith;
  case AST_ASSIGN: return ops[n->op].class == OPS_arith || n->op == AST_OP_none;
  default: return n->op == AST_OP_none;
  }
}

const char *ast_verify(const Ast *a, const Names *names, Allocator *alloc, Buf *out) {
  if (!a->root || a->root >= a->node_count || a->nodes[a->root].kind != AST_BLOCK) return "the root is no block";
  u16 *depth = mem_alloc_zero(alloc, sizeof *depth * a->node_count);
  u8 *parents = mem_alloc_zero(alloc, a->node_count);
  const char *wrong = depth && parents ? NULL : "out of memory";
  u32 id = 1;
  for (; id < a->node_count && !wrong; id++) {
    const AstNode *n = ast_node(a, id);
    if (n->kind == AST_NONE || n->kind >= AST_KIND_COUNT) wrong = "unknown kind";
    else if (n->first > a->kid_count || a->kid_count - n->first < n->count) wrong = "children out of range";
    u32 deepest = 0;
    for (u32 i = 0; i < n->count && !wrong; i++) {
      u32 kid = ast_kid(a, n, i);
      if (!kid) continue;
      if (kid >= id) {
        wrong = "a child does not come before its parent";
        break;
      }
      const Span in = ast_node(a, kid)->span;
      if (parents[kid]++) wrong = "a child has two parents";
      bool doc = n->kind == AST_FN && i == 1; /* stands above */
      if (!doc && (in.start < n->span.start || in.start + in.len > n->span.start + n->span.len))
        wrong = "a child's span leaves its parent's";
      if (depth[kid] > deepest) deepest = depth[kid];
    }
    if (wrong) break;
    depth[id] = (u16)(deepest + 1);
    if (depth[id] > AST_MAX_DEPTH) wrong = "too deep";
    else if (n->span.file != a->file) wrong = "span of another file";
    else if (!check_kids(a, n)) wrong = "children do not fit the kind";
    else if (!check_ref(a, n, names)) wrong = "reference out of range";
    else if (!check_flags(n)) wrong = "flags do not fit the kind";
    else if (!check_op(n)) wrong = "operator does not fit the kind";
    if (wrong) break;
  }
  if (!wrong)
    for (id = 1; id < a->node_count && !wrong; id++)
      if (parents[id] != (id != a->root)) wrong = id == a->root ? "the root has a parent" : "a node has no parent";
  if (wrong) {
    size_t start = out->len;
    buf_printf(out, "node %u (%s): %s", id, id < a->node_count ? ast_kind_name(a->nodes[id].kind) : "?", wrong);
    if (!out->failed) wrong = buf_text(out) + start;
  }
  mem_free(alloc, depth, sizeof *depth * a->node_count);
  mem_free(alloc, parents, a->node_count);
  return wrong;
}

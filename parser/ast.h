/* ast.h — hand-off format: the syntax tree of one source text (tables: ast.def).
 * Described in docs/formats/ast.md.
 *
 * Nodes are numbered; 0 is no node. A child's id is always smaller than its parent's, so one pass over
 * 1 .. node_count-1 meets children before parents and needs no stack; every node but the root has exactly
 * one parent. No path from the root is longer than AST_MAX_DEPTH, so a recursive walk is bounded too.
 * Everything is as written: names are unresolved, `a |> f(x)` is a pipe, `a.f(x)` a call of a field.
 * What the parser has checked already, so that readers need not: targets of assignments, places of holes,
 * break/continue/return/import in places where they may stand, order of parameters and of arguments,
 * names given twice in one parameter list, pattern or call. */
#ifndef WEFT_PARSER_AST_H
#define WEFT_PARSER_AST_H

#include "parser/base.h"

typedef enum AstKind {
#define AST_KIND(name, text, ref, kids, meaning) AST_##name,
#define AST_OP(name, text, class)
#include "parser/ast.def"
#undef AST_KIND
#undef AST_OP
  AST_KIND_COUNT
} AstKind;

typedef enum AstOp {
#define AST_KIND(name, text, ref, kids, meaning)
#define AST_OP(name, text, class) AST_OP_##name,
#include "parser/ast.def"
#undef AST_KIND
#undef AST_OP
  AST_OP_COUNT
} AstOp;

/* Low bits depend on the kind; the two high ones may stand on any expression. */
enum {
  AF_TRUE = 1,    /* bool */
  AF_BIG = 1,     /* int: beyond i64, a u64 */
  AF_RECORD = 1,  /* pattern: of a record, else of a list */
  AF_DIMS = 1,    /* annot: has brackets */
  AF_REST = 1,    /* param: takes the remaining positional arguments as a list */
  AF_KEYWORD = 2, /* param: stands after the rest parameter, given by name only */
  AF_PIPED = 1,   /* call: takes the value of a pipe, in place of its holes or as first argument */
  AF_HOLES = 2,   /* call: some direct argument is a hole; implies AF_PIPED */
  AF_SIGNED = 0x40, /* statement that begins with unary + - ~: an error when its value is unused */
  AF_PARENS = 0x80, /* stood in parentheses, which the span then includes */
};

enum { AST_MAX_DEPTH = 1000 };

typedef struct AstNode {
  u8 kind;  /* AstKind */
  u8 flags;
  u8 op;    /* AstOp: unary, binary, assign */
  Span span;
  u32 ref;  /* by kind: Name, index of a literal, or of the first operator; else 0 */
  u32 first, count; /* children: kids[first .. first + count) */
} AstNode;

typedef struct AstText {
  const char *text; /* NUL-terminated */
  u32 len;
} AstText;

/* All arrays lie in the arena given to the parser. */
typedef struct Ast {
  u32 file;
  u32 root; /* a block: the statements of the text */
  const AstNode *nodes;
  u32 node_count; /* nodes[0] is the empty node */
  const u32 *kids;
  u32 kid_count;
  const i64 *ints;
  u32 int_count;
  const f64 *floats;
  u32 float_count;
  const AstText *texts;
  u32 text_count;
  const u8 *ops; /* AstOp, of compare */
  u32 op_count;
} Ast;

static inline const AstNode *ast_node(const Ast *a, u32 id) { return &a->nodes[id]; }
/* The i-th child's id; 0 when absent. i must be below count. */
static inline u32 ast_kid(const Ast *a, const AstNode *n, u32 i) { return a->kids[n->first + i]; }
static inline u32 ast_kind(const Ast *a, u32 id) { return a->nodes[id].kind; }

/* if: the number of (condition, block) pairs, and the block of `else` (0 when absent) */
static inline u32 ast_if_arms(const AstNode *n) { return n->count / 2; }
static inline u32 ast_if_else(const Ast *a, const AstNode *n) {
  return n->count & 1 ? ast_kid(a, n, n->count - 1) : 0;
}
/* fn: children */
static inline u32 ast_fn_body(const Ast *a, const AstNode *n) { return ast_kid(a, n, 0); }
static inline u32 ast_fn_doc(const Ast *a, const AstNode *n) { return ast_kid(a, n, 1); }
static inline u32 ast_fn_arity(const AstNode *n) { return n->count - 2; }
static inline u32 ast_fn_param(const Ast *a, const AstNode *n, u32 i) { return ast_kid(a, n, 2 + i); }

/* The call on the right side of a pipe that takes the piped value (its leftmost, flagged AF_PIPED);
 * 0 when there is none: then the right side's value is itself called with the piped value. */
u32 ast_pipe_call(const Ast *a, const AstNode *pipe);

const char *ast_kind_name(u32 kind);
const char *ast_op_text(u32 op); /* "+", "not" */
const char *ast_op_name(u32 op); /* "add", "logical_not": the built-in of that name does the same */

/* Appends `(assign += (index (field r w) 2 :) v)`; with `where`, `@line:col` after each statement. */
typedef struct AstPrint {
  const Names *names;
  const Sources *where; /* NULL: no positions */
} AstPrint;
void ast_print(const Ast *a, u32 id, const AstPrint *how, Buf *out);

/* Proves what ast.def and the comments above promise. NULL, or what is wrong, in the buffer. */
const char *ast_verify(const Ast *a, const Names *names, Allocator *alloc, Buf *out);

#endif

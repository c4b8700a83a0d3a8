/* parse.h — inside of the parser: its state, and what its files offer each other.
 *
 * A Pratt parser over an array of tokens. Functions that parse give a node id, or 0 when p->status is set;
 * the first failure stays. Nodes are made after their children, which gives the order that ast.h promises. */
#ifndef WEFT_PARSER_PARSE_H
#define WEFT_PARSER_PARSE_H

#include "parser/ast.h"
#include "parser/lexer.h"
#include "parser/parser.h"

/* Binding powers, loosest first. Left-associative operators parse their right side one tighter. */
enum {
  POWER_0 = 0, /* tokens.def: no infix operator */
  POWER_LOWEST = 0,
  POWER_PIPE = 10,
  POWER_OR = 20,
  POWER_AND = 30,
  POWER_NOT = 40,
  POWER_COMPARE = 50,
  POWER_BITS_OR = 60,
  POWER_BITS_XOR = 70,
  POWER_BITS_AND = 80,
  POWER_SHIFT = 90,
  POWER_RANGE = 100,
  POWER_ADD = 110,
  POWER_MULTIPLY = 120,
  POWER_UNARY = 130,
  POWER_POWER = 140, /* right-associative; its right side may be unary */
};

/* Levels of brackets, blocks and prefix operators: bounds the C stack of the parser (about 100 KiB). */
enum { PARSE_MAX_DEPTH = 256 };

typedef struct Parser {
  Allocator *alloc;
  Arena *arena;
  Names *names;
  const Sources *sources;
  const SourceFile *source;
  u32 file;
  Diag *diag;
  Toil *toil;
  bool repl;
  const ParseOptions *recover; /* has a `problem`; NULL: errors end it */
  u32 problems;
  bool end_told; /* of an error at the end of the text */
  WeftStatus status;

  VEC(Token) tokens;  /* ends with EOF */
  const Token *tok;   /* the current one */
  bool lex_incomplete;
  /* of ERROR tokens, whose `match` counts from 1 on; without `recover` the first is the last before EOF */
  VEC(const char *) lex_messages;

  VEC(AstNode) nodes;
  VEC(u32) kids;
  VEC(i64) ints;
  VEC(f64) floats;
  VEC(AstText) texts;
  VEC(u8) ops;
  VEC(u32) stack;   /* children of nodes being parsed */
  VEC(u8) op_stack; /* operators of comparisons being parsed */

  bool newlines; /* the innermost bracket is a block: newlines end statements */
  u32 depth;
  u32 block_depth, fn_depth, loop_depth; /* loop_depth counts inside the innermost function */
  u32 loose_holes;  /* holes that no pattern or pipe has taken yet */
  bool after_brace; /* the statement before this one ended at its closing brace */
} Parser;

/* Flags that never leave the parser: holes that have found their place; an int of 2^63, which only a `-`
 * right before it can save. */
enum { HOLE_PLACED = 1 };

/* ---- parser.c: tokens, nodes, errors ---- */

u32 fail_memory(Parser *p);
/* An error at a span. Always gives 0. */
u32 fail_at(Parser *p, Span at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "expected WHAT, found …" at the current token; `hint` may be NULL. Reports a broken token as such. Gives 0. */
u32 fail_expected(Parser *p, const char *what, const char *hint);
/* The same where a bracket opened at `open` should have been closed or continued. */
u32 fail_unclosed(Parser *p, const char *what, const Token *open, const char *hint);

static inline Span token_span(const Parser *p, const Token *t) { return (Span){p->file, t->start, t->len}; }
static inline bool at(const Parser *p, u32 kind) { return p->tok->kind == kind; }
static inline const Token *peek_token(const Parser *p, u32 n) {
  const Token *last = &p->tokens.data[p->tokens.count - 1];
  return p->tok + n < last ? p->tok + n : last;
}
static inline void advance(Parser *p) {
  if (p->tok->kind != TOK_EOF) p->tok++;
}
static inline bool accept(Parser *p, u32 kind) {
  if (p->tok->kind != kind) return false;
  p->tok++;
  return true;
}
/* A newline stands before the current token and counts. */
static inline bool at_line_end(const Parser *p) { return p->newlines && (p->tok->flags & TOKEN_NEWLINE); }
static inline u32 last_end(const Parser *p) { /* end of the token before the current one */
  return p->tok > p->tokens.data ? p->tok[-1].start + p->tok[-1].len : 0;
}
static inline Span span_from(const Parser *p, u32 start) { return (Span){p->file, start, last_end(p) - start}; }
static inline AstNode *node(Parser *p, u32 id) { return &p->nodes.data[id]; }
static inline const char *token_start(const Parser *p, const Token *t) { return p->source->text + t->start; }
bool token_is(const Parser *p, const Token *t, const char *name); /* a NAME of that text */

u32 new_node(Parser *p, AstNode n, u32 count, const u32 *kids);
bool push_kid(Parser *p, u32 id); /* onto p->stack; false also for id 0, so that calls chain */
/* Takes all that stands above `mark` off p->stack as children. */
u32 new_node_from_stack(Parser *p, AstNode n, u32 mark);
u32 new_name(Parser *p, const Token *t); /* NAME node */
u32 new_text(Parser *p, Span span, const char *text, u32 len);
u32 decode_text(Parser *p, const Token *t, u32 skip, u32 drop, bool braces); /* TEXT node of a token's inside */
Name intern_token(Parser *p, const Token *t);                               /* 0: refused, or a failure is set */
bool enter(Parser *p); /* one level deeper; false: too deep. leave() on every way out where it was true */
static inline void leave(Parser *p) { p->depth--; }

/* ---- parse_expr.c ---- */

u32 parse_expr(Parser *p, u32 power);
bool at_record(const Parser *p); /* `{` here begins a record, not a block */

/* ---- parse_pattern.c ---- */

u32 parse_pattern(Parser *p);
/* Parameters up to the closing parenthesis, which is taken; they are left on p->stack. */
bool parse_params(Parser *p, const Token *open);
bool push_simple_param(Parser *p); /* the x or _ of `x => …` */
/* IndexSplit the expression before `=` into the target of an assignment, in place. */
bool make_target(Parser *p, u32 id, bool compound);
/* Names given twice among the names that nodes stack[mark ..] bind: an error, false. */
bool check_bound_once(Parser *p, u32 mark, const char *where);

/* ---- parse_stmt.c ---- */

u32 parse_program(Parser *p);
u32 parse_block(Parser *p, const char *of); /* `of`: "the body of if", for messages */
u32 parse_if(Parser *p);
u32 parse_while(Parser *p);
u32 parse_for(Parser *p);
u32 parse_try(Parser *p);
u32 parse_fn(Parser *p, bool declaration); /* at `fn` */
/* Parses the body after the parameters that stand above `mark`, and makes the FN node. */
u32 finish_fn(Parser *p, u32 start, Name name, u32 doc, u32 mark, bool block);

/* ---- foreign.c ---- */

/* Advice from the current token and the one before it alone; NULL for none, as for all of these. */
const char *advise_token(const Parser *p);
/* What to write instead of the word of another language that begins a broken statement. */
const char *foreign_start(const Parser *p, const Token *first);
/* Advice for a statement that did not end where it should: `first` is its first token. */
const char *advise_statement(const Parser *p, const Token *first);
/* Advice for the current token standing where a closing bracket or comma should. */
const char *advise_item(const Parser *p);

#endif

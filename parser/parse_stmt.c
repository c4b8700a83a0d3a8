/* parse_stmt.c — statements, blocks, control flow and function declarations. */
#include "parser/parse.h"

#include <string.h>

#define NODE(...) ((AstNode){__VA_ARGS__})

/* ---- blocks ------------------------------------------------------------------------------- */

static u32 parse_statement(Parser *p);

/* What may follow a statement: `;`, a newline, the end. After a closing brace the next statement may follow at
 * once, unless it could be meant as a continuation. */
static bool end_statement(Parser *p, u32 close, const Token *first, const Token *open) {
  if (at(p, TOK_SEMI) || at(p, close) || at(p, TOK_EOF) || at_line_end(p)) return true;
  if (p->after_brace) {
    if (at(p, TOK_LPAREN) || at(p, TOK_LBRACKET) || at(p, TOK_PLUS) || at(p, TOK_MINUS)) {
      return fail_at(p, token_span(p, p->tok), "this statement ended at its '}'; to go on with '%s' put it in "
                                               "parentheses, to begin another write ';'", token_text(p->tok->kind));
    }
    return true;
  }
  const char *code = p->tok->kind == TOK_ERROR ? NULL : foreign_start(p, first);
  if (code)
    return fail_at(p, token_span(p, first), "'%.*s' is no word of Weft; write %s", (int)first->len,
                   token_start(p, first), code);
  const char *hint = advise_statement(p, first);
  if (!hint && (at(p, TOK_RPAREN) || at(p, TOK_RBRACKET)))
    return fail_at(p, token_span(p, p->tok), "'%s' closes nothing that is open%s", token_text(p->tok->kind),
                   open ? " in this block" : "");
  return fail_expected(p, "';' or a new line after the statement", hint);
}

/* An operator at the beginning of a statement, although lines may begin with it: the statement before ended
 * at its closing brace. */
static bool check_start(Parser *p) {
  u32 kind = p->tok->kind;
  bool goes_on = kind == TOK_DOT || kind == TOK_PIPE || kind == TOK_AND || kind == TOK_OR || kind == TOK_IN ||
                 kind == TOK_STAR || kind == TOK_SLASH || kind == TOK_AT || kind == TOK_PERCENT || kind == TOK_EQ ||
                 kind == TOK_NE || kind == TOK_LT || kind == TOK_GT || kind == TOK_LE || kind == TOK_GE ||
                 kind == TOK_POWER;
  if (!p->after_brace || !goes_on) return true;
  return fail_at(p, token_span(p, p->tok),
                 "'%s' cannot begin a statement, and the one before ended at its '}'; put that in parentheses",
                 token_text(kind));
}

/* A hole that neither a pattern nor a pipe has taken, among the nodes from `first` on. */
static bool fail_hole(Parser *p, u32 first) {
  for (u32 id = first; id < p->nodes.count; id++)
    if (node(p, id)->kind == AST_HOLE && !(node(p, id)->flags & HOLE_PLACED))
      return fail_at(p, node(p, id)->span, "'_' is no value: it stands in patterns, and "
                                           "for the piped value as a direct argument, as in x |> f(1, _)");
  return true;
}

/* Where a broken statement ends: at a newline or `;` behind its error, outside of brackets that are closed, or in front
 * of the end of its block. */
static const Token *end_of_broken(const Parser *p, const Token *first, const Token *open) {
  const Token *all = p->tokens.data, *t = first;
  u32 end = open && open->match ? open->match : p->tokens.count - 1;
  for (;;) {
    u32 at = (u32)(t - all);
    if (at >= end) return all + end;
    if (t > first && t >= p->tok && (t->flags & TOKEN_NEWLINE)) return t;
    if (t->kind == TOK_SEMI && t >= p->tok) return t;
    bool opens = t->kind == TOK_LPAREN || t->kind == TOK_LBRACKET || t->kind == TOK_LBRACE;
    t = opens && t->match > at && t->match < end ? all + t->match + 1 : t + 1;
  }
}

/* What the parser holds in front of a statement. */
typedef struct Ahead {
  u32 nodes, kids, stack, ops, depth, block_depth, fn_depth, loop_depth, holes;
  bool newlines;
} Ahead;

static Ahead look_ahead(const Parser *p) {
  return (Ahead){p->nodes.count, p->kids.count, p->stack.count, p->op_stack.count, p->depth, p->block_depth,
                 p->fn_depth, p->loop_depth, p->loose_holes, p->newlines};
}

/* Goes on behind a statement with an error, which is told. False: this is not wanted, or memory was refused. `parsed`:
 * the statement itself is whole. */
static bool recover(Parser *p, const Ahead *a, const Token *first, const Token *open, bool parsed) {
  enum { MOST = 100 };
  if (!p->recover || p->status != WEFT_ERROR || p->diag->kind != DIAG_SYNTAX || p->problems++ >= MOST) return false;
  if (!parsed) {
    p->nodes.count = a->nodes;
    p->kids.count = a->kids;
    p->stack.count = a->stack;
  }
  p->op_stack.count = a->ops;
  p->depth = a->depth;
  p->block_depth = a->block_depth;
  p->fn_depth = a->fn_depth;
  p->loop_depth = a->loop_depth;
  p->loose_holes = a->holes;
  p->newlines = a->newlines;
  p->after_brace = false;
  const Token *from = parsed ? p->tok : first, *end = end_of_broken(p, first, open);
  bool at_end = p->tok->kind == TOK_EOF; /* all blocks that are open there are broken too */
  if (!at_end || !p->end_told) {
    u32 stop = end > from ? end[-1].start + end[-1].len : from->start;
    p->recover->problem(p->recover->context, p->diag, (Span){p->file, from->start, stop - from->start});
  }
  p->end_told |= at_end;
  p->status = WEFT_OK;
  *p->diag = (Diag){0};
  p->tok = end;
  return true;
}

/* Statements up to `close`, which is not taken; pushed onto the stack. */
static bool parse_statements(Parser *p, u32 close, const Token *open) {
  p->after_brace = false;
  for (;;) {
    while (accept(p, TOK_SEMI)) p->after_brace = false;
    const Token *first = p->tok;
    const Ahead ahead = look_ahead(p);
    if (at(p, close)) return true;
    if (at(p, TOK_EOF)) {
      (void)fail_unclosed(p, "'}'", open, NULL);
      return recover(p, &ahead, first, open, true);
    }
    bool parsed = check_start(p) && push_kid(p, parse_statement(p)) &&
                  (p->loose_holes <= ahead.holes || fail_hole(p, ahead.nodes));
    if ((!parsed || !end_statement(p, close, first, open)) && !recover(p, &ahead, first, open, parsed)) return false;
  }
}

static const char *body_hint(const Parser *p, const char *of) {
  switch (p->tok->kind) {
  case TOK_COLON:
    return strcmp(of, "the body of for") == 0 && p->tok[-1].kind == TOK_INT &&
           p->tok[-2].kind != TOK_DOTS ? "a range is written a..b" : "a body stands in braces: { … }";
  case TOK_ASSIGN: return "'=' assigns; '==' compares";
  case TOK_ARROW: return "a body stands in braces, without '=>'";
  default:
    return token_is(p, p->tok, "then") ||
           token_is(p, p->tok, "do") ? "a body stands in braces: { … }" : advise_token(p);
  }
}

u32 parse_block(Parser *p, const char *of) {
  char what[64];
  const Token *open = p->tok;
  if (!at(p, TOK_LBRACE)) {
    strcpy(what, "'{' before ");
    strncat(what, of, sizeof what - strlen(what) - 1);
    return fail_expected(p, what, body_hint(p, of));
  }
  if (!enter(p)) return 0;
  u32 mark = p->stack.count;
  bool newlines = p->newlines;
  p->newlines = true;
  p->block_depth++;
  advance(p);
  if (!parse_statements(p, TOK_RBRACE, open)) return 0;
  advance(p);
  p->block_depth--;
  p->newlines = newlines;
  leave(p);
  return new_node_from_stack(p, NODE(.kind = AST_BLOCK, .span = span_from(p, open->start)), mark);
}

u32 parse_program(Parser *p) {
  p->newlines = true;
  if (!parse_statements(p, TOK_EOF, NULL)) return 0;
  if (p->repl && p->tok->doc) /* documentation waits for its function */
    return fail_expected(p, "a function below its documentation", NULL);
  return new_node_from_stack(p, NODE(.kind = AST_BLOCK, .span = {p->file, 0, p->source->len}), 0);
}

/* ---- control flow ------------------------------------------------------------------------- */

u32 parse_if(Parser *p) {
  u32 start = p->tok->start, mark = p->stack.count;
  for (;;) {
    advance(p); /* if */
    if (!push_kid(p, parse_expr(p, POWER_LOWEST)) || !push_kid(p, parse_block(p, "the body of if"))) return 0;
    if (!accept(p, TOK_ELSE)) break;
    if (at(p, TOK_IF)) continue;
    if (!push_kid(p, parse_block(p, "the body of else"))) return 0;
    break;
  }
  return new_node_from_stack(p, NODE(.kind = AST_IF, .span = span_from(p, start)), mark);
}

static u32 parse_loop_body(Parser *p, const char *of) {
  p->loop_depth++;
  u32 body = parse_block(p, of);
  p->loop_depth--;
  return body;
}

u32 parse_while(Parser *p) {
  u32 start = p->tok->start;
  advance(p);
  u32 condition = parse_expr(p, POWER_LOWEST);
  u32 body = condition ? parse_loop_body(p, "the body of while") : 0;
  if (!body) return 0;
  return new_node(p, NODE(.kind = AST_WHILE, .span = span_from(p, start)), 2, (u32[]){condition, body});
}

u32 parse_for(Parser *p) {
  u32 start = p->tok->start, mark = p->stack.count;
  advance(p);
  const Token *inner = at(p, TOK_LPAREN) ? peek_token(p, 1) : p->tok;
  if (inner->kind == TOK_LET)
    return fail_at(p, token_span(p, inner), "the variable of a loop needs no let: for i in 0..n { … }");
  u32 pattern = parse_pattern(p);
  if (!pattern || !push_kid(p, pattern) || !check_bound_once(p, mark, "the pattern")) return 0;
  p->stack.count = mark;
  if (!accept(p, TOK_IN))
    return fail_expected(p, "'in' after the variable of the loop",
                         at(p, TOK_COMMA)    ? "several stand in parentheses: for (a, b) in xs"
                         : at(p, TOK_ASSIGN) ? "a loop over numbers is written for i in 0..n"
                                             : NULL);
  u32 sequence = parse_expr(p, POWER_LOWEST);
  u32 body = sequence ? parse_loop_body(p, "the body of for") : 0;
  if (!body) return 0;
  return new_node(p, NODE(.kind = AST_FOR, .span = span_from(p, start)), 3, (u32[]){pattern, sequence, body});
}

u32 parse_try(Parser *p) {
  u32 start = p->tok->start, mark = p->stack.count, pattern = 0;
  advance(p);
  u32 body = parse_block(p, "the body of try");
  if (!body) return 0;
  if (!accept(p, TOK_CATCH))
    return fail_expected(p, "'catch' after the block of try",
                         token_is(p, p->tok, "except") ? "in Weft: catch e { … }" : NULL);
  bool record = false; /* `catch {kind} { … }`, both on one line */
  if (at(p, TOK_LBRACE) && p->tok->match) {
    const Token *after = &p->tokens.data[p->tok->match + 1];
    record = after->kind == TOK_LBRACE && !(after->flags & TOKEN_NEWLINE);
  }
  if (!at(p, TOK_LBRACE) || record) {
    pattern = parse_pattern(p);
    if (!pattern || !push_kid(p, pattern) || !check_bound_once(p, mark, "the pattern")) return 0;
    p->stack.count = mark;
  }
  u32 handler = parse_block(p, "the body of catch");
  if (!handler) return 0;
  return new_node(p, NODE(.kind = AST_TRY, .span = span_from(p, start)), 3, (u32[]){body, pattern, handler});
}

/* ---- functions ---------------------------------------------------------------------------- */

u32 finish_fn(Parser *p, u32 start, Name name, u32 doc, u32 mark, bool block) {
  u32 loops = p->loop_depth;
  p->loop_depth = 0;
  p->fn_depth++;
  u32 body = block ? parse_block(p, "the body of fn") : parse_expr(p, POWER_LOWEST);
  p->fn_depth--;
  p->loop_depth = loops;
  if (!body) return 0;
  /* children: body, documentation, parameters */
  u32 params = p->stack.count - mark;
  if (!push_kid(p, 0) || !push_kid(p, 0)) return 0;
  u32 *kids = p->stack.data + mark;
  memmove(kids + 2, kids, params * sizeof *kids);
  kids[0] = body;
  kids[1] = doc;
  return new_node_from_stack(p, NODE(.kind = AST_FN, .ref = name, .span = span_from(p, start)), mark);
}

/* The lines of documentation that end above token t, without their ##. */
static u32 parse_doc(Parser *p, const Token *t) {
  const char *s = p->source->text;
  u32 from = t->doc - 1, end = t->start, n = 0;
  char *text = arena_alloc(p->arena, end - from + 1);
  if (!text) return fail_memory(p);
  u32 last = from;
  for (u32 i = from; i < end;) {
    while (i < end && s[i] != '#' && s[i] != '\n') i++; /* indentation */
    if (i >= end || s[i] == '\n') break;
    i += 2;
    if (i < end && s[i] == ' ') i++;
    if (n) text[n++] = '\n';
    u32 stop = i;
    while (stop < end && s[stop] != '\n') stop++;
    last = stop;
    u32 trimmed = stop;
    while (trimmed > i && (s[trimmed - 1] == '\r' || s[trimmed - 1] == ' ')) trimmed--;
    memcpy(text + n, s + i, trimmed - i);
    n += trimmed - i;
    i = stop + 1;
  }
  return new_text(p, (Span){p->file, from, last - from}, text, n);
}

u32 parse_fn(Parser *p, bool declaration) {
  const Token *t = p->tok;
  u32 mark = p->stack.count, doc = 0;
  Name name = 0;
  advance(p);
  if (at(p, TOK_NAME)) {
    if (!declaration)
      return fail_at(p, token_span(p, p->tok),
                     "a named fn is a declaration and stands as a statement; a value is written fn(x) { … } or x => …");
    if (token_is(p, p->tok, "_")) return fail_at(p, token_span(p, p->tok), "'_' cannot be the name of a function");
    name = intern_token(p, p->tok);
    if (!name) return 0;
    if (t->doc && !(doc = parse_doc(p, t))) return 0;
    advance(p);
  } else if (token_is_word(p->tok->kind)) {
    return fail_at(p, token_span(p, p->tok), "'%s' is a reserved word and cannot be a name", token_text(p->tok->kind));
  }
  const Token *open = p->tok;
  if (!accept(p, TOK_LPAREN)) return fail_expected(p, "'(' before the parameters of fn", NULL);
  if (!parse_params(p, open)) return 0;
  if (accept(p, TOK_ASSIGN)) return finish_fn(p, t->start, name, doc, mark, false);
  if (!at(p, TOK_LBRACE)) {
    const char *hint = at(p, TOK_ARROW) ? "after fn it is '=': fn f(x) = …" : at(p, TOK_COLON)
                           ? "a body stands in braces, and results take no annotation" : NULL;
    return fail_expected(p, "'{' or '=' before the body of fn", hint);
  }
  return finish_fn(p, t->start, name, doc, mark, true);
}

/* ---- simple statements -------------------------------------------------------------------- */

static u32 parse_let(Parser *p) {
  const Token *t = p->tok;
  u32 mark = p->stack.count;
  advance(p);
  u32 pattern = parse_pattern(p);
  if (!pattern || !push_kid(p, pattern) || !check_bound_once(p, mark, "the pattern")) return 0;
  p->stack.count = mark;
  if (!at(p, TOK_ASSIGN)) {
    const char *hint = NULL;
    if (at_line_end(p) || at(p, TOK_SEMI) || at(p, TOK_RBRACE) || at(p, TOK_EOF))
      hint = "a variable is declared with its value: let x = …";
    else if (at(p, TOK_LPAREN)) hint = "a function is written fn f(x) = …";
    else if (at(p, TOK_COLON)) hint = "only parameters take annotations";
    else if (at(p, TOK_COMMA)) hint = "several stand in parentheses: let (a, b) = …";
    else if (at(p, TOK_DOT) || at(p, TOK_LBRACKET)) hint = "an item or field is assigned without let: a[i] = …";
    else if (at(p, TOK_NAME) && token_is(p, p->tok - 1, "mut")) hint = "every variable may change: let x = …";
    return fail_expected(p, "'=' after what let declares", hint);
  }
  advance(p);
  u32 value = parse_expr(p, POWER_LOWEST);
  if (!value) return 0;
  if (at(p, TOK_ASSIGN) && !at_line_end(p))
    return fail_at(p, token_span(p, p->tok), "an assignment is a statement and has no value");
  return new_node(p, NODE(.kind = AST_LET, .span = span_from(p, t->start)), 2, (u32[]){pattern, value});
}

/* AstOp of a compound assignment, AST_OP_none for `=`; false for other tokens. */
static bool is_assignment(u32 kind, u8 *op) {
  static const struct {
    u8 is, op;
  } assign[TOK_COUNT] = {
#define IS_special 0
#define IS_word 0
#define IS_mark 0
#define IS_infix 0
#define IS_assign 1
#define TOKEN(name, text, class, power, op) {IS_##class, AST_OP_##op},
#include "parser/tokens.def"
#undef TOKEN
  };
  *op = assign[kind].op;
  if (kind == TOK_ASSIGN) *op = AST_OP_none;
  return kind == TOK_ASSIGN || assign[kind].is;
}

static u32 parse_expr_statement(Parser *p) {
  u32 kind = p->tok->kind, start = p->tok->start;
  bool is_signed = kind == TOK_PLUS || kind == TOK_MINUS || kind == TOK_TILDE;
  u32 id = parse_expr(p, POWER_LOWEST);
  u8 op;
  if (!id) return 0;
  if (!is_assignment(p->tok->kind, &op)) {
    if (is_signed) node(p, id)->flags |= AF_SIGNED;
    return id;
  }
  if (!make_target(p, id, op != AST_OP_none)) return 0;
  advance(p);
  u32 value = parse_expr(p, POWER_LOWEST);
  if (!value) return 0;
  u8 again;
  if (is_assignment(p->tok->kind, &again) && !at_line_end(p))
    return fail_at(p, token_span(p, p->tok), "an assignment is a statement and has no value");
  return new_node(p, NODE(.kind = AST_ASSIGN, .op = op, .span = span_from(p, start)), 2, (u32[]){id, value});
}

static u32 parse_return(Parser *p) {
  const Token *t = p->tok;
  if (!p->fn_depth) return fail_at(p, token_span(p, t), "'return' stands outside of a function");
  advance(p);
  u32 value = 0;
  if (!at(p, TOK_SEMI) && !at(p, TOK_RBRACE) && !at(p, TOK_EOF) && !at_line_end(p)) {
    value = parse_expr(p, POWER_LOWEST);
    if (!value) return 0;
  }
  return new_node(p, NODE(.kind = AST_RETURN, .span = span_from(p, t->start)), 1, &value);
}

static u32 parse_jump(Parser *p, u32 kind) {
  const Token *t = p->tok;
  if (!p->loop_depth)
    return fail_at(p, token_span(p, t), "'%s' stands outside of a loop", token_text(t->kind));
  advance(p);
  return new_node(p, NODE(.kind = (u8)kind, .span = token_span(p, t)), 0, NULL);
}

static u32 parse_import(Parser *p) {
  const Token *t = p->tok;
  if (p->block_depth || p->fn_depth) return fail_at(p, token_span(p, t), "import stands at top level only");
  advance(p);
  const Token *what = p->tok;
  if (at_line_end(p) || (!at(p, TOK_TEXT) && !at(p, TOK_NAME)))
    return fail_expected(p, "a path in quotes or the name of a module after import", NULL);
  bool path = at(p, TOK_TEXT);
  u32 from;
  if (path) {
    from = parse_expr(p, POWER_POWER + 1);
    if (from && node(p, from)->kind != AST_TEXT)
      return fail_at(p, node(p, from)->span, "import takes a path as a plain text");
  } else {
    advance(p);
    from = new_name(p, what);
  }
  if (!from) return 0;
  Name name = node(p, from)->ref;
  if (token_is(p, p->tok, "as") && !at_line_end(p)) {
    advance(p);
    if (!at(p, TOK_NAME) || at_line_end(p)) return fail_expected(p, "a name after 'as'", NULL);
    if (token_is(p, p->tok, "_")) return fail_at(p, token_span(p, p->tok), "'_' cannot be the name of a module");
    name = intern_token(p, p->tok);
    if (!name) return 0;
    advance(p);
  } else if (path) {
    return fail_expected(p, "'as' and a name after the path", "such as import \"path.weft\" as m");
  } else if (at(p, TOK_DOT)) {
    return fail_expected(p, "the end of the statement", "import the module and write m.name");
  }
  return new_node(p, NODE(.kind = AST_IMPORT, .ref = name, .span = span_from(p, t->start)), 1, &from);
}

static u32 parse_statement(Parser *p) {
  u32 id;
  bool brace = false;
  switch (p->tok->kind) {
  case TOK_LET: id = parse_let(p); break;
  case TOK_RETURN: id = parse_return(p); break;
  case TOK_BREAK: id = parse_jump(p, AST_BREAK); break;
  case TOK_CONTINUE: id = parse_jump(p, AST_CONTINUE); break;
  case TOK_IMPORT: id = parse_import(p); break;
  case TOK_IF: id = parse_if(p), brace = true; break;
  case TOK_WHILE: id = parse_while(p), brace = true; break;
  case TOK_FOR: id = parse_for(p), brace = true; break;
  case TOK_TRY: id = parse_try(p), brace = true; break;
  case TOK_FN:
    if (peek_token(p, 1)->kind == TOK_NAME || token_is_word(peek_token(p, 1)->kind)) {
      id = parse_fn(p, true);
      brace = id && node(p, p->kids.data[node(p, id)->first])->kind == AST_BLOCK;
      break;
    }
    id = parse_expr_statement(p);
    break;
  case TOK_LBRACE:
    if (!at_record(p)) {
      id = parse_block(p, "the block");
      brace = true;
      break;
    }
    id = parse_expr_statement(p);
    break;
  default: id = parse_expr_statement(p); break;
  }
  p->after_brace = brace;
  return id;
}

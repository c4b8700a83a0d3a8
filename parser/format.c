/* format.c — the layout of a program: indentation, blanks, empty lines. Line breaks, comments and what texts hold
 * stay. The tokens of the result are compared with those of the source: a layout that changed them is refused. */
#include "parser/parse.h"

#include <string.h>

enum { STEP = 2, MOST_EMPTY_LINES = 2 };

/* How far a line is indented, in the source and in the layout. */
typedef struct Indent {
  u32 source, layout;
} Indent;

typedef struct Bracket {
  u8 kind;          /* TOK_LPAREN, TOK_LBRACKET, TOK_LBRACE */
  bool block;       /* of statements */
  Indent line;      /* of the line that opened it; of a block, of the one that its lines stand below */
  Indent content;   /* where the place behind the bracket is in that line */
  Indent statement; /* of a block: of the statement at hand */
} Bracket;

typedef struct Layout {
  const char *text;
  u32 len;
  Buf *out;
  Allocator *alloc;
  VEC(Bracket) open; /* the first one is the program, a block */
  Indent line;       /* of the line at hand */
  Indent base;       /* the same, or that of the line which it goes on from: blocks that it opens stand below that */
  Token before;      /* the last one that is no comment; EOF before the first */
  bool unary;        /* `before` is a sign in front of its operand */
  u32 strings;       /* f-strings open: blanks inside of them stay */
} Layout;

static bool ends_operand(u32 kind) {
  switch (kind) {
  case TOK_NAME:
  case TOK_INT:
  case TOK_FLOAT:
  case TOK_TEXT:
  case TOK_FSTR_CLOSE:
  case TOK_RPAREN:
  case TOK_RBRACKET:
  case TOK_RBRACE:
  case TOK_TRUE:
  case TOK_FALSE:
  case TOK_NIL: return true;
  default: return false;
  }
}

static bool opens_bracket(u32 kind) { return kind == TOK_LPAREN || kind == TOK_LBRACKET || kind == TOK_LBRACE; }
static bool closes_bracket(u32 kind) { return kind == TOK_RPAREN || kind == TOK_RBRACKET || kind == TOK_RBRACE; }
static bool is_sign(u32 kind) { return kind == TOK_MINUS || kind == TOK_PLUS || kind == TOK_TILDE; }

static Bracket *innermost(const Layout *l) { return &l->open.data[l->open.count - 1]; }

/* Newlines end statements here. */
static bool in_block(const Layout *l) { return innermost(l)->block; }

/* As the parser tells a record from a block (at_record), from the text behind the brace. */
static bool begins_record(const Layout *l, const Token *brace) {
  if (ends_operand(l->before.kind) && !((brace->flags & TOKEN_NEWLINE) && in_block(l))) return false;
  if (l->before.kind == TOK_ELSE || l->before.kind == TOK_TRY) return false;
  if (l->before.kind == TOK_LET) return true;
  Lexer ahead;
  Token next, after;
  lexer_init(&ahead, l->text, l->len);
  ahead.pos = brace->start + 1;
  lexer_next(&ahead, &next);
  lexer_next(&ahead, &after);
  return next.kind == TOK_RBRACE || next.kind == TOK_ELLIPSIS ||
         ((next.kind == TOK_NAME || next.kind == TOK_TEXT) && after.kind == TOK_COLON) ||
         (next.kind == TOK_NAME && after.kind == TOK_COMMA);
}

/* ---- blanks inside of a line ----------------------------------------------------------------------------- */

/* A block has blanks inside of its braces, `{ x }`, a record has none: `{a: 1}`. */
static bool blank_between(const Layout *l, const Token *t) {
  u32 a = l->before.kind, b = t->kind;
  const Bracket *in = innermost(l);
  if (a == TOK_EOF || l->unary || a == TOK_ELLIPSIS) return false;
  if (b == TOK_COMMA || b == TOK_SEMI || b == TOK_DOT || a == TOK_DOT || a == TOK_DOTS || b == TOK_DOTS) return false;
  if (closes_bracket(b)) return b == TOK_RBRACE && in->block;
  if (opens_bracket(a)) return a == TOK_LBRACE && in->block;
  if (a == TOK_COMMA || a == TOK_SEMI) return true;
  if (a == TOK_COLON || b == TOK_COLON) return a == TOK_COLON && in->kind != TOK_LBRACKET;
  if (a == TOK_ASSIGN || b == TOK_ASSIGN) return in->kind != TOK_LPAREN;
  if (b == TOK_LPAREN || b == TOK_LBRACKET) return a != TOK_FN && !ends_operand(a);
  return true;
}

static void blanks(Layout *l, u32 count) {
  while (count--) buf_puts(l->out, " ");
}

/* ---- lines ------------------------------------------------------------------------------------------------ */

static u32 newlines(const Layout *l, u32 from, u32 to) {
  u32 n = 0;
  for (u32 i = from; i < to; i++) n += l->text[i] == '\n';
  return n;
}

/* The column of a byte of the source, and the one where the layout stands. */
static u32 source_column(const Layout *l, u32 at) {
  u32 from = at;
  while (from && l->text[from - 1] != '\n') from--;
  return at - from;
}

static u32 layout_column(const Layout *l) {
  size_t from = l->out->len;
  while (from && l->out->data[from - 1] != '\n') from--;
  return (u32)(l->out->len - from);
}

/* Begins no statement: what stands in the line before goes on. */
static bool is_infix(u32 kind) {
  static const u8 power[] = {
#define TOKEN(name, text, class, power, op) POWER_##power,
#include "parser/tokens.def"
#undef TOKEN
  };
  return (power[kind] && !is_sign(kind)) || kind == TOK_DOT || kind == TOK_COMMA || kind == TOK_BY;
}

/* The statement of the line before goes on in this one: an operator stands between. */
static bool goes_on(const Layout *l, const Token *t) {
  u32 a = l->before.kind;
  if (t->kind == TOK_COMMENT || a == TOK_EOF || a == TOK_SEMI || opens_bracket(a)) return false;
  if (is_infix(t->kind)) return true;
  return !ends_operand(a) && a != TOK_BREAK && a != TOK_CONTINUE && a != TOK_RETURN;
}

/* As far behind another line as in the source, where it is behind it there. */
static u32 follow(Indent first, u32 source, u32 otherwise) {
  return source > first.source ? first.layout + source - first.source : otherwise;
}

/* Of a line inside of brackets: from the nearest line around that it is behind. */
static u32 inside_bracket(const Layout *l, u32 source) {
  for (const Bracket *b = innermost(l);; b--) {
    Indent first = b->block ? b->statement : b->line;
    if (source > first.source) return first.layout + source - first.source;
    if (b->block) return innermost(l)->line.layout + STEP;
  }
}

/* Statements of a block are indented by two blanks more than the line that opened it. What goes on in further lines
 * keeps its distance from its first line, and its place below the first item of its bracket. */
static u32 indentation(Layout *l, const Token *t, u32 source) {
  Bracket *in = innermost(l);
  bool aligned = !in->block && source == in->content.source;
  l->base = aligned ? in->line : in->statement;
  if (closes_bracket(t->kind)) {
    l->base = in->line;
    return in->line.layout;
  }
  if (aligned) return in->content.layout;
  if (!in->block) {
    l->base = (Indent){source, inside_bracket(l, source)};
    return l->base.layout;
  }
  if (goes_on(l, t)) {
    u32 column = follow(in->statement, source, in->statement.layout + STEP);
    if (l->before.kind == TOK_ASSIGN || l->before.kind == TOK_ARROW) l->base = (Indent){source, column};
    return column;
  }
  if (t->kind == TOK_ELSE || t->kind == TOK_CATCH) {
    l->base = (Indent){source, follow(in->statement, source, in->statement.layout)};
    return l->base.layout;
  }
  in->statement = l->base = (Indent){source, l->open.count == 1 ? 0 : in->line.layout + STEP};
  return in->statement.layout;
}

static void new_line(Layout *l, const Token *t, u32 breaks) {
  u32 most = l->out->len ? MOST_EMPTY_LINES + 1 : 0;
  for (u32 i = 0; i < breaks && i < most; i++) buf_puts(l->out, "\n");
  l->line.source = source_column(l, t->start);
  l->line.layout = indentation(l, t, l->line.source);
  blanks(l, l->line.layout);
}

/* ---- tokens ----------------------------------------------------------------------------------------------- */

static bool put_token(Layout *l, const Token *t) {
  bool block = t->kind == TOK_LBRACE && !begins_record(l, t);
  bool unary = is_sign(t->kind) && (!ends_operand(l->before.kind) || ((t->flags & TOKEN_NEWLINE) && in_block(l)));
  if (closes_bracket(t->kind) && l->open.count > 1) l->open.count--;
  buf_put(l->out, l->text + t->start, t->len);
  l->unary = unary;
  l->before = *t;
  Indent content = {source_column(l, t->start) + 1, layout_column(l)};
  Bracket b = {t->kind, block, .line = block ? l->base : l->line, .content = content};
  return !opens_bracket(t->kind) || vec_push(l->alloc, &l->open, b);
}

/* What stands between the token before and `t`, in the layout. */
static void put_gap(Layout *l, const Token *t, u32 from) {
  u32 breaks = newlines(l, from, t->start);
  if (l->strings) buf_put(l->out, l->text + from, t->start - from);
  else if (breaks || !l->out->len) new_line(l, t, breaks);
  else if (t->kind == TOK_COMMENT) blanks(l, t->start > from ? t->start - from : 1);
  else if (blank_between(l, t)) blanks(l, 1);
}

static bool put_all(Layout *l, const char **message, u32 *at) {
  Lexer lexer;
  Token t;
  u32 end = 0;
  lexer_init(&lexer, l->text, l->len);
  lexer.comments = true;
  for (;; end = t.start + t.len) {
    lexer_next(&lexer, &t);
    if (t.kind == TOK_EOF) return true;
    if (t.kind == TOK_ERROR) return *message = "a broken token", *at = t.start, false;
    put_gap(l, &t, end);
    if (t.kind == TOK_COMMENT) {
      u32 len = t.len;
      while (len && strchr(" \t\r", l->text[t.start + len - 1])) len--;
      buf_put(l->out, l->text + t.start, len);
    } else if (!put_token(l, &t)) {
      return *message = "out of memory", *at = t.start, false;
    }
    l->strings += t.kind == TOK_FSTR_OPEN;
    l->strings -= t.kind == TOK_FSTR_CLOSE;
  }
}

/* ---- the check -------------------------------------------------------------------------------------------- */

static void next_of(Lexer *lexer, Token *t) {
  do lexer_next(lexer, t);
  while (t->kind == TOK_COMMENT);
}

static bool same_tokens(const char *a, u32 alen, const char *b, u32 blen) {
  Lexer la, lb;
  Token ta, tb;
  lexer_init(&la, a, alen);
  lexer_init(&lb, b, blen);
  do {
    next_of(&la, &ta);
    next_of(&lb, &tb);
    bool line = ta.kind != TOK_EOF && ((ta.flags ^ tb.flags) & TOKEN_NEWLINE) && ta.start && tb.start;
    if (ta.kind != tb.kind || ta.len != tb.len || line || memcmp(a + ta.start, b + tb.start, ta.len) != 0) return false;
  } while (ta.kind != TOK_EOF);
  return true;
}

WeftStatus parser_format(Buf *out, const char *text, u32 len, const char **message, u32 *at) {
  Layout l = {.text = text, .len = len, .out = out, .alloc = out->alloc, .before.kind = TOK_EOF};
  *message = "out of memory";
  bool ok = vec_push(l.alloc, &l.open, (Bracket){.block = true}) && put_all(&l, message, at);
  vec_free(out->alloc, &l.open);
  if (!ok) return WEFT_ERROR;
  if (out->len) buf_puts(out, "\n");
  *at = 0;
  *message = out->failed ? "out of memory" : "the layout would change the program";
  return !out->failed && same_tokens(text, len, out->data, (u32)out->len) ? WEFT_OK : WEFT_ERROR;
}

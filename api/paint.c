/* paint.c — what each byte of a program's text is, for whoever shows it in colours (see weft.h). */
#include <string.h>

#include "api/inner.h"
#include "parser/parser.h"

static unsigned char paint_of(const Lexer *l, const Token *t) {
  if (t->len == 0) return WEFT_PAINT_PLAIN;
  switch (t->kind) {
    case TOK_COMMENT: return WEFT_PAINT_COMMENT;
    case TOK_INT:
    case TOK_FLOAT: return WEFT_PAINT_NUMBER;
    case TOK_TEXT:
    case TOK_FSTR_OPEN:
    case TOK_FSTR_TEXT:
    case TOK_FSTR_COLON:
    case TOK_FSTR_CLOSE: return WEFT_PAINT_TEXT;
    case TOK_ERROR: return l->text[t->start] == '"' ? WEFT_PAINT_TEXT : WEFT_PAINT_WRONG; /* it is not closed yet */
    case TOK_NAME: {
      u32 behind = t->start + t->len;
      Builtin b = builtin_find(l->text + t->start, t->len);
      bool called = behind < l->len && l->text[behind] == '(';
      return called || b.kind == BUILTIN_OP ? WEFT_PAINT_FUNCTION : WEFT_PAINT_PLAIN;
    }
    case TOK_TRUE:
    case TOK_FALSE:
    case TOK_NIL: return WEFT_PAINT_NUMBER;
    case TOK_LPAREN:
    case TOK_RPAREN:
    case TOK_LBRACKET:
    case TOK_RBRACKET:
    case TOK_LBRACE:
    case TOK_RBRACE:
    case TOK_FSTR_LBRACE:
    case TOK_FSTR_RBRACE: return WEFT_PAINT_BRACKET;
    default: return token_is_word(t->kind) ? WEFT_PAINT_WORD : WEFT_PAINT_PLAIN;
  }
}

bool weft_paint(const char *text, size_t length, unsigned char *paint) {
  enum { MOST = 1 << 24 };
  Lexer l;
  Token t;
  bool open = false;
  if (!text || !paint || length > MOST) return false;
  memset(paint, WEFT_PAINT_PLAIN, length);
  size_t blanks = strspn(text, " \t");
  if (blanks < length && (text[blanks] == ':' || text[blanks] == '?')) {
    for (size_t i = blanks; i < length && !strchr(" \t\n", text[i]); i++) paint[i] = WEFT_PAINT_WORD;
    return false;
  }
  lexer_init(&l, text, (u32)length);
  l.comments = true;
  for (;;) {
    u32 before = l.pos;
    l.incomplete = false;
    lexer_next(&l, &t);
    if (t.kind == TOK_EOF) break;
    open = t.kind == TOK_ERROR && l.incomplete;
    size_t end = (size_t)t.start + t.len;
    for (size_t i = t.start; i < end && i < length; i++) paint[i] = paint_of(&l, &t);
    if (l.pos <= before) break;
  }
  return open || l.frame_count > 0;
}

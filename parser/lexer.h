/* lexer.h — source text to tokens (table: tokens.def), one at a time and without allocation.
 *
 * F-strings come as FSTR_OPEN, then FSTR_TEXT and FSTR_LBRACE … [FSTR_COLON spec] FSTR_RBRACE in any number,
 * then FSTR_CLOSE; what stands in braces is lexed as ordinary tokens, f-strings included, and a spec as
 * FSTR_TEXT and braces again. Literals are found but not decoded (literal.h does that).
 * A broken piece of text is one ERROR token with `message` set; lexing goes on behind it, so a highlighter
 * can colour what follows. */
#ifndef WEFT_PARSER_LEXER_H
#define WEFT_PARSER_LEXER_H

#include "parser/base.h"

typedef enum TokenKind {
#define TOKEN(name, text, class, power, op) TOK_##name,
#include "parser/tokens.def"
#undef TOKEN
  TOK_COUNT
} TokenKind;

enum {
  TOKEN_NEWLINE = 1, /* a newline stands between the token before and this one */
  TOKEN_SPACED = 2,  /* anything at all stands between */
};

typedef struct Token {
  u8 kind;
  u8 flags;
  u32 start, len; /* bytes */
  u32 match;      /* brackets: index of the partner, 0 when there is none; filled by the parser */
  u32 doc;        /* 1 + offset of the `##` lines that end right above, 0 when there are none */
} Token;

enum { LEX_MAX_FRAMES = 96 };

typedef struct LexFrame {
  u8 kind; /* string, expression in braces, spec */
  bool triple;
  u32 depth; /* of brackets open inside an expression */
  u32 start; /* where its string begins */
} LexFrame;

typedef struct Lexer {
  const char *text;
  u32 len, pos;
  u32 look;           /* the position where `toil` is asked next; 0: not yet */
  Toil *toil;         /* NULL, or who may end it: the text ends there then */
  bool comments;      /* give comments as tokens too */
  bool incomplete;    /* set with an ERROR that more text could mend */
  char message[200];  /* of the last ERROR */
  u32 frame_count;
  LexFrame frames[LEX_MAX_FRAMES];
} Lexer;

void lexer_init(Lexer *l, const char *text, u32 len);
/* The next token; at the end TOK_EOF, again and again. */
void lexer_next(Lexer *l, Token *t);

const char *token_text(u32 kind); /* as in tokens.def */
bool token_is_word(u32 kind);     /* reserved */

/* Decodes one code point at s[at]; its length in bytes, 0 when this is no valid UTF-8. */
u32 utf8_decode(const char *s, u32 len, u32 at, u32 *code);
/* Appends a code point to out (room for 4); the number of bytes. */
u32 utf8_encode(u32 code, char *out);

#endif

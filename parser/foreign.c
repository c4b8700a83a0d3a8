/* foreign.c — advice to those who come from other languages, given with a syntax error (table: foreign.def). */
#include "parser/parse.h"

#include <string.h>

enum { WHERE_name, WHERE_start, WHERE_infix, WHERE_call, WHERE_prefix, WHERE_member, WHERE_keyword };

static const struct {
  const char *word, *code, *advice;
  u8 where;
} words[] = {
#define FOREIGN(word, where, code) {#word, code, "in Weft: " code, WHERE_##where},
#include "parser/foreign.def"
#undef FOREIGN
};

static const char *const reserved[] = {
#define CLASS_OF_special(text)
#define CLASS_OF_mark(text)
#define CLASS_OF_assign(text)
#define CLASS_OF_infix(text)
#define CLASS_OF_word(text) text,
#define TOKEN(name, text, class, power, op) CLASS_OF_##class(text)
#include "parser/tokens.def"
#undef TOKEN
    NULL};

const char *const *parser_reserved_words(void) { return reserved; }

static const char *code_of(u8 where, const char *name, size_t len) {
  for (u32 i = 0; i < COUNT_OF(words); i++)
    if (words[i].where == where && strlen(words[i].word) == len && memcmp(words[i].word, name, len) == 0)
      return words[i].code;
  return NULL;
}

const char *parser_foreign_word(const char *name, size_t len) {
  const char *code = code_of(WHERE_name, name, len);
  return code ? code : code_of(WHERE_start, name, len);
}

bool parser_foreign_prefix(const char *name, size_t len) { return code_of(WHERE_prefix, name, len) != NULL; }

const char *parser_foreign_member(const char *module, const char *name) {
  size_t n = strlen(module);
  for (u32 i = 0; i < COUNT_OF(words); i++)
    if (words[i].where == WHERE_member && strncmp(words[i].word, module, n) == 0 && words[i].word[n] == '.' &&
        strcmp(words[i].word + n + 1, name) == 0)
      return words[i].code;
  return NULL;
}

const char *parser_foreign_keyword(const char *name, size_t len) { return code_of(WHERE_keyword, name, len); }

static const char *advice_for(const Parser *p, const Token *t, u32 where) {
  if (t->kind == TOK_NAME)
    for (u32 i = 0; i < COUNT_OF(words); i++)
      if (words[i].where == where && token_is(p, t, words[i].word)) return words[i].advice;
  return NULL;
}

static bool is_text(u32 kind) { return kind == TOK_TEXT || kind == TOK_FSTR_OPEN; }

static bool is_operand(u32 kind) {
  return kind == TOK_NAME || kind == TOK_INT || kind == TOK_FLOAT || is_text(kind) || kind == TOK_TRUE ||
         kind == TOK_FALSE || kind == TOK_NIL;
}

const char *advise_token(const Parser *p) {
  const Token *t = p->tok, *before = t > p->tokens.data ? t - 1 : t;
  const char *word = advice_for(p, t, WHERE_infix);
  if (word) return word;
  if (token_is(p, before, "lambda")) return "in Weft: x => …";
  word = advice_for(p, before, WHERE_call);
  if (word) return word;
  switch (t->kind) {
  case TOK_NOT: return peek_token(p, 1)->kind == TOK_IN ? "write not (a in b)" : NULL;
  case TOK_IF: return "a choice is written if c { a } else { b }";
  case TOK_ASSIGN: return "'=' assigns and is a statement; '==' compares";
  case TOK_ARROW: return "parameters stand before '=>': x => …, (x, y) => …";
  case TOK_DOTS: return "a range has two ends; its step is written a..b by c";
  case TOK_TEXT:
  case TOK_FSTR_OPEN:
    if (is_text(before->kind) || before->kind == TOK_FSTR_CLOSE) return "texts are joined by '+'";
    if (before->kind == TOK_NAME && before->len <= 2 && !(t->flags & TOKEN_SPACED))
      return token_is(p, before, "r") ? "texts have no raw form: a backslash in them is \\\\"
                                                       : "only f\"…\" has a letter before the quote";
    break;
  default: break;
  }
  return NULL;
}

const char *foreign_start(const Parser *p, const Token *first) {
  if (first->kind != TOK_NAME || first == p->tok) return NULL;
  for (u32 i = 0; i < COUNT_OF(words); i++)
    if (words[i].where == WHERE_start && token_is(p, first, words[i].word)) return words[i].code;
  return NULL;
}

const char *advise_statement(const Parser *p, const Token *first) {
  const Token *t = p->tok;
  if (t->kind == TOK_COLON) {
    const Token *before = t - 1;
    bool number = before->kind == TOK_INT || before->kind == TOK_FLOAT;
    if (before == first && t > p->tokens.data + 1 && t[-2].kind == TOK_LBRACE)
      return number ? "the keys of a record are names or texts"
                    : "a record inside a body has braces of its own: { {name: …} }";
    if (before == first && before->kind == TOK_NAME)
      return "a variable is declared by let x = …, keys of a record stand in { }";
    if (number) return "a range is written a..b";
    return "a body stands in braces: { … }";
  }
  if (t->kind == TOK_COMMA) return "several values at once stand in parentheses: (a, b)";
  if (t->kind == TOK_ELSE) return "the statement before it is no if";
  return advise_token(p);
}

const char *advise_item(const Parser *p) {
  const Token *t = p->tok;
  if (t->kind == TOK_FOR) return "there are no comprehensions; write map(x => …, xs)";
  const char *here = advise_token(p);
  if (here) return here;
  if (is_operand(t->kind) && !(t->flags & TOKEN_NEWLINE) && t > p->tokens.data &&
      (is_operand(t[-1].kind) || t[-1].kind == TOK_FSTR_CLOSE))
    return "items are separated by ','";
  return NULL;
}

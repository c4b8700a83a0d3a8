/* parser.h — facade of parser/: source text to AST (ast.h), and tokens for highlighting (lexer.h).
 *
 *   sources_add → lexer (tokens.def) → Pratt parser → Ast
 *
 * This folder includes nothing but the C library. */
#ifndef WEFT_PARSER_PARSER_H
#define WEFT_PARSER_PARSER_H

#include "parser/ast.h"
#include "parser/base.h"
#include "parser/lexer.h"

typedef struct ParseOptions {
  bool repl; /* text that ends inside a construct gives WEFT_INCOMPLETE instead of an error */
  /* For editors: gets each error of syntax, and the text that is left out for it. Parsing goes on with the next
   * statement; a block that is not closed ends with the text. The tree then lacks the broken statements, and
   * parser_parse gives WEFT_OK. NULL: the first error ends it. */
  void (*problem)(void *context, const Diag *diag, Span skipped);
  void *context;
  Toil *toil; /* may be NULL; when it ends, so does parsing, as if memory were refused */
} ParseOptions;

/* Parses one file. `options` may be NULL.
 * WEFT_OK: *out is whole, its arrays lie in `arena`.
 * WEFT_ERROR: *diag says why (kind DIAG_SYNTAX, or DIAG_LIMIT when memory was refused); the message lies in
 * `arena` or is static. WEFT_INCOMPLETE: likewise, the message being the error it would have been. */
WeftStatus parser_parse(Ast *out, Arena *arena, Names *names, const Sources *sources, u32 file, Diag *diag,
                        const ParseOptions *options) MUST_USE;

/* What to write in Weft instead of a word of other languages ("None" → "nil", "elif" → "else if"), for the
 * error on a name that is not declared; NULL when there is nothing to say. */
const char *parser_foreign_word(const char *name, size_t len);
/* Whether other languages write it in front of functions that are built into Weft ("np"). */
bool parser_foreign_prefix(const char *name, size_t len);
/* What to write for a function that a standard module lacks, before a global one of that name ("table", "filter"). */
const char *parser_foreign_member(const char *module, const char *name);
/* What a parameter of that name is called here ("ddof" → "correction"), or NULL. */
const char *parser_foreign_keyword(const char *name, size_t len);

/* Appends the program in the layout of docs/prompt.md: indentation, blanks and empty lines change, line breaks,
 * comments and tokens stay. WEFT_ERROR: *message says why and *at where (a byte of the text); what `out` got is to
 * be dropped. */
WeftStatus parser_format(Buf *out, const char *text, u32 len, const char **message, u32 *at) MUST_USE;

/* Reserved words in the order of language.md, NULL behind the last (completion). */
const char *const *parser_reserved_words(void);

#endif

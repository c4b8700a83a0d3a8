/* literal.h — what number and text tokens mean. */
#ifndef WEFT_PARSER_LITERAL_H
#define WEFT_PARSER_LITERAL_H

#include "parser/base.h"

/* A fault inside a literal: bytes [at, at + len) of what was given, and why. */
typedef struct LiteralFault {
  u32 at, len;
  char message[160];
} LiteralFault;

/* An INT token in any base. False when it exceeds u64. */
bool literal_int(const char *s, u32 len, u64 *out) MUST_USE;

/* What stands between the quotes: resolves escapes, with `braces` also {{ and }}, and takes CRLF as a newline.
 * WEFT_ERROR with an empty message: memory was refused, or `t` has ended. The text is NUL-terminated, in the arena. */
WeftStatus literal_text(Arena *arena, const char *s, u32 len, bool braces, const char **out, u32 *out_len,
                        LiteralFault *fault, Toil *t) MUST_USE;

#endif

/* literal.c — what number and text tokens mean (see literal.h). */
#include "parser/literal.h"

#include "parser/lexer.h"

#include <stdio.h>
#include <string.h>

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool literal_int(const char *s, u32 len, u64 *out) {
  u64 base = 10, x = 0;
  u32 i = 0;
  bool hex = len > 2 && (s[1] == 'x' || s[1] == 'X'), binary = len > 2 && (s[1] == 'b' || s[1] == 'B');
  if (hex || binary) {
    base = hex ? 16 : 2;
    i = 2;
  }
  for (; i < len; i++) {
    if (s[i] == '_') continue;
    if (__builtin_mul_overflow(x, base, &x) || __builtin_add_overflow(x, (u64)digit_value(s[i]), &x)) return false;
  }
  *out = x;
  return true;
}

static WeftStatus PRINTF_LIKE(4, 5) fail(LiteralFault *f, u32 at, u32 len, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  f->at = at;
  f->len = len;
  vsnprintf(f->message, sizeof f->message, fmt, ap);
  va_end(ap);
  return WEFT_ERROR;
}

/* The escape at s[i] == '\\'. Writes to out, moves both positions. */
static WeftStatus escape(const char *s, u32 len, bool braces, u32 *at, char *out, u32 *n, LiteralFault *fault) {
  u32 i = *at + 1;
  char c = i < len ? s[i] : 0;
  *at = i + 1;
  switch (c) {
  case 'n': out[(*n)++] = '\n'; return WEFT_OK;
  case 't': out[(*n)++] = '\t'; return WEFT_OK;
  case 'r': out[(*n)++] = '\r'; return WEFT_OK;
  case '0': out[(*n)++] = 0; return WEFT_OK;
  case '\\': out[(*n)++] = '\\'; return WEFT_OK;
  case '"': out[(*n)++] = '"'; return WEFT_OK;
  case 'x': {
    int hi = i + 1 < len ? digit_value(s[i + 1]) : -1, lo = i + 2 < len ? digit_value(s[i + 2]) : -1;
    if (hi < 0 || lo < 0) return fail(fault, i - 1, 2, "'\\x' takes two hexadecimal digits, such as \\x41");
    *n += utf8_encode((u32)(hi * 16 + lo), out + *n);
    *at = i + 3;
    return WEFT_OK;
  }
  case 'u': {
    if (i + 1 >= len || s[i + 1] != '{')
      return fail(fault, i - 1, 2, "'\\u' takes a code point in braces, such as \\u{e9}");
    u32 code = 0, k = i + 2;
    for (; k < len && digit_value(s[k]) >= 0 && k < i + 9; k++) code = code * 16 + (u32)digit_value(s[k]);
    if (k >= len || s[k] != '}' || k == i + 2)
      return fail(fault, i - 1, k - i + 1, "'\\u{' takes one to six hexadecimal digits and '}'");
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
      return fail(fault, i - 1, k - i + 2, "U+%04X is no code point", code);
    *n += utf8_encode(code, out + *n);
    *at = k + 1;
    return WEFT_OK;
  }
  case '\'': return fail(fault, i - 1, 2, "\"'\" needs no '\\'");
  case '\n': case '\r':
    return fail(fault, i - 1, 1, "'\\' at the end of a line; text between \"\"\" may span lines as it is");
  default: {
    if (braces && (c == '{' || c == '}'))
      return fail(fault, i - 1, 2, "a brace in an f-string is written '%c%c'", c, c);
    u32 code, bytes = utf8_decode(s, len, i, &code);
    return fail(fault, i - 1, 1 + bytes, "'\\%.*s' is no escape; there are \\n \\t \\r \\0 \\\\ \\\" \\xNN \\u{…}",
                (int)bytes, s + i);
  }
  }
}

WeftStatus literal_text(Arena *arena, const char *s, u32 len, bool braces, const char **out, u32 *out_len,
                        LiteralFault *fault, Toil *t) {
  u32 look = TOIL_BYTES;
  fault->message[0] = 0;
  char *p = arena_room(arena, (size_t)len + 1); /* no escape grows: \xNN gives at most 2 bytes, \u{N} at most 4 */
  if (!p) return WEFT_ERROR;
  u32 n = 0;
  for (u32 i = 0; i < len;) {
    char c = s[i];
    if (i >= look) {
      if (!toil(t, TOIL_BYTE_STEPS)) return WEFT_ERROR;
      look = i + TOIL_BYTES;
    }
    if (c == '\\') {
      WeftStatus st = escape(s, len, braces, &i, p, &n, fault);
      if (st) return st;
      continue;
    }
    if (c == '\r' && i + 1 < len && s[i + 1] == '\n') i++, c = '\n';
    if (braces && (c == '{' || c == '}')) i++; /* the lexer saw to it that it is doubled */
    p[n++] = c;
    i++;
  }
  p[n] = 0;
  *out = p;
  *out_len = n;
  return WEFT_OK;
}

/* lsp_json.c — JSON of the language server: read by json.parse of the library, written as text. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/lsp.h"

/* ---- text that grows ------------------------------------------------------------------------- */

void *grow(void *p, size_t bytes) {
  void *more = realloc(p, bytes ? bytes : 1);
  if (more) return more;
  fputs("weft lsp: out of memory\n", stderr);
  exit(1);
}

char *copy_bytes(const char *s, size_t n) {
  char *copy = grow(NULL, n + 1);
  memcpy(copy, s, n);
  copy[n] = 0;
  return copy;
}

void put_bytes(Out *o, const char *s, size_t n) {
  if (o->cap - o->len < n + 1) {
    o->cap = 2 * o->cap + n + 64;
    o->text = grow(o->text, o->cap);
  }
  memcpy(o->text + o->len, s, n);
  o->len += n;
  o->text[o->len] = 0;
}

void put_text(Out *o, const char *s) { put_bytes(o, s, strlen(s)); }

void put_format(Out *o, const char *fmt, ...) {
  char small[256];
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(small, sizeof small, fmt, ap);
  va_end(ap);
  if (n >= 0 && (size_t)n < sizeof small) {
    put_bytes(o, small, (size_t)n);
  } else if (n >= 0) {
    char *large = grow(NULL, (size_t)n + 1);
    vsnprintf(large, (size_t)n + 1, fmt, again);
    put_bytes(o, large, (size_t)n);
    free(large);
  }
  va_end(again);
}

/* Bytes of the code point at s, 0: it is no UTF-8. */
static size_t code_point(const unsigned char *s, size_t left) {
  size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : 4;
  if (n == 4 && (s[0] < 0xF0 || s[0] > 0xF4)) return 0;
  if (!n || n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xC0) != 0x80) return 0;
  if (s[0] == 0xE0 && s[1] < 0xA0) return 0;
  if (s[0] == 0xED && s[1] >= 0xA0) return 0;
  if (s[0] == 0xF0 && s[1] < 0x90) return 0;
  if (s[0] == 0xF4 && s[1] >= 0x90) return 0;
  return n;
}

void put_json(Out *o, const char *s, size_t n) {
  static const char plain[] = "\b\f\n\r\t", letters[] = "bfnrt";
  put_bytes(o, "\"", 1);
  for (size_t i = 0; i < n;) {
    unsigned char c = (unsigned char)s[i];
    size_t bytes = code_point((const unsigned char *)s + i, n - i);
    const char *sign = c && c < 0x20 ? strchr(plain, c) : NULL;
    if (c == '"' || c == '\\') put_format(o, "\\%c", c);
    else if (sign) put_format(o, "\\%c", letters[sign - plain]);
    else if (c < 0x20) put_format(o, "\\u%04x", c);
    else if (bytes) put_bytes(o, s + i, bytes);
    else put_text(o, "\xEF\xBF\xBD");
    i += bytes ? bytes : 1;
  }
  put_bytes(o, "\"", 1);
}

void put_json_text(Out *o, const char *s) { put_json(o, s, strlen(s)); }

void out_clear(Out *o) {
  o->len = 0;
  if (o->text) o->text[0] = 0;
}

void out_free(Out *o) {
  free(o->text);
  *o = (Out){0};
}

/* ---- reading --------------------------------------------------------------------------------- */

static WeftValue *hold(Lsp *s, WeftValue *v) {
  if (s->held_count == s->held_cap) {
    s->held_cap = 2 * s->held_cap + 64;
    s->held = grow(s->held, sizeof(WeftValue *) * s->held_cap);
  }
  return s->held[s->held_count++] = v;
}

void json_release(Lsp *s) {
  while (s->held_count) weft_release(s->vm, s->held[--s->held_count]);
}

WeftValue *json_read(Lsp *s, const char *text, size_t len) {
  WeftValue *arg = NULL, *value = NULL;
  if (weft_text(s->vm, text, len, &arg) != WEFT_OK) return NULL;
  WeftStatus status = weft_call(s->vm, s->parse, &arg, 1, &value);
  weft_release(s->vm, arg);
  return status == WEFT_OK ? value : NULL;
}

WeftValue *json_get(Lsp *s, WeftValue *v, const char *key) {
  WeftValue *field = NULL;
  if (!json_is(s, v, "record") || weft_field(s->vm, v, key, &field) != WEFT_OK) return NULL;
  return hold(s, field);
}

WeftValue *json_at(Lsp *s, WeftValue *v, size_t i) {
  WeftValue *item = NULL;
  size_t n = 0;
  if (!json_is(s, v, "list") || weft_length(s->vm, v, &n) != WEFT_OK || i >= n) return NULL;
  if (weft_item(s->vm, v, i, &item) != WEFT_OK) return NULL;
  return hold(s, item);
}

bool json_is(Lsp *s, WeftValue *v, const char *type) { return v && strcmp(weft_type(s->vm, v), type) == 0; }

const char *json_text(Lsp *s, WeftValue *v, size_t *len) {
  const char *text = NULL;
  size_t n = 0;
  if (!v || weft_as_text(s->vm, v, &text, &n) != WEFT_OK) return NULL;
  if (len) *len = n;
  else if (strlen(text) != n) return NULL; /* a NUL inside */
  return text;
}

/* Numbers and booleans are arrays of rank 0. */
static bool is_bool(Lsp *s, WeftValue *v) {
  WeftArray a;
  return json_is(s, v, "array") && weft_array_view(s->vm, v, &a) == WEFT_OK && a.dtype == WEFT_BOOL;
}

bool json_int(Lsp *s, WeftValue *v, int64_t *out) {
  return v && !is_bool(s, v) && weft_as_int(s->vm, v, out) == WEFT_OK;
}

bool json_true(Lsp *s, WeftValue *v) {
  int64_t one = 0;
  return v && is_bool(s, v) && weft_as_int(s->vm, v, &one) == WEFT_OK && one;
}

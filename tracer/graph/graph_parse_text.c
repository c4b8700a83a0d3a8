/* graph_parse_text.c — words, numbers, sizes and types in the text of a graph (see graph_parse.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/graph/graph_parse.h"

/* ---- scanning -------------------------------------------------------------------------------------- */

bool read_fail(Parser *p, const char *what) {
  if (p->bad) return false;
  p->bad = true;
  u32 line = 1;
  for (const char *c = p->text; c < p->at && c < p->end; c++) line += *c == '\n';
  if (p->err && !p->g->failed) snprintf(p->err, p->err_cap, "line %u: %s", line, what);
  return false;
}

void read_skip(Parser *p) {
  while (p->at < p->end) {
    if (*p->at == ';')
      while (p->at < p->end && *p->at != '\n') p->at++;
    else if (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
    else return;
  }
}

char read_peek(Parser *p) {
  read_skip(p);
  return p->at < p->end ? *p->at : 0;
}

bool read_take(Parser *p, const char *s) {
  size_t n = strlen(s);
  read_skip(p);
  if ((size_t)(p->end - p->at) < n || memcmp(p->at, s, n) != 0) return false;
  p->at += n;
  return true;
}

bool read_expect(Parser *p, const char *s) {
  char text[64];
  if (p->bad) return false;
  if (read_take(p, s)) return true;
  snprintf(text, sizeof text, "expected '%s'", s);
  return read_fail(p, text);
}

bool read_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool read_digit(char c) { return c >= '0' && c <= '9'; }
bool read_wordish(char c) { return read_letter(c) || read_digit(c); }

/* The word at the cursor without taking it; 0 when there is none. */
u32 read_word_at(Parser *p, const char **start) {
  read_skip(p);
  const char *c = *start = p->at;
  if (c < p->end && read_letter(*c))
    while (c < p->end && read_wordish(*c)) c++;
  return (u32)(c - *start);
}

bool read_is(const char *s, u32 len, const char *word) { return strlen(word) == len && memcmp(s, word, len) == 0; }

bool read_take_word(Parser *p, const char *word) {
  const char *s;
  u32 n = read_word_at(p, &s);
  if (!n || !read_is(s, n, word)) return false;
  p->at = s + n;
  return true;
}

u32 read_any_word(Parser *p, const char **start) {
  u32 n = read_word_at(p, start);
  if (!n) read_fail(p, "expected a word");
  p->at = *start + n;
  return n;
}

i64 read_integer(Parser *p) {
  read_skip(p);
  char text[32], *end;
  u32 n = 0;
  const char *c = p->at;
  if (c < p->end && *c == '-') text[n++] = *c++;
  while (c < p->end && read_digit(*c) && n < sizeof text - 1) text[n++] = *c++;
  text[n] = 0;
  long long v = strtoll(text, &end, 10);
  if (n == 0 || *end || end == text) {
    read_fail(p, "expected an integer");
    return 0;
  }
  p->at = c;
  return v;
}

u32 read_number(Parser *p) {
  i64 v = read_integer(p);
  if (v < 0 || v > UINT32_MAX) read_fail(p, "number out of range");
  return (u32)v;
}

/* A quoted text, unescaped into the parser's temporary memory. */
char *read_quoted(Parser *p, u32 *len) {
  *len = 0;
  if (!read_expect(p, "\"")) return NULL;
  char *out = arena_alloc(&p->temp, (size_t)(p->end - p->at) + 1);
  if (!out) {
    p->g->failed = true;
    read_fail(p, "out of memory");
    return NULL;
  }
  while (p->at < p->end && *p->at != '"') {
    char c = *p->at++;
    if (c == '\\' && p->at < p->end) {
      c = *p->at++;
      if (c == 'n') c = '\n';
      else if (c == 'x' && p->end - p->at >= 2) {
        char hex[3] = {p->at[0], p->at[1], 0};
        c = (char)strtoul(hex, NULL, 16);
        p->at += 2;
      }
    }
    out[(*len)++] = c;
  }
  out[*len] = 0;
  read_expect(p, "\"");
  return out;
}

char *read_temp_copy(Parser *p, const char *s, u32 n) {
  char *t = arena_copy(&p->temp, s, n);
  if (!t) {
    p->g->failed = true;
    read_fail(p, "out of memory");
  }
  return t;
}

bool read_checked(Parser *p, bool ok, const char *what) {
  if (ok && !p->g->failed && !p->g->exits.failed && !p->g->guards.failed && !p->g->sizes.failed) return true;
  if (!ok) return read_fail(p, what);
  p->g->failed = true;
  return read_fail(p, "out of memory");
}

/* ---- sizes, types --------------------------------------------------------------------------- */

static Dim size(Parser *p, char close) {
  Dim d = DIM_NONE;
  const char *stop = p->at;
  while (stop < p->end && *stop != '\n' && *stop != close) stop++;
  const char *after = p->bad ? NULL : size_parse(&p->g->sizes, p->at, stop, &d);
  if (!after) {
    read_fail(p, "expected a size expression");
    return 0;
  }
  p->at = after;
  return d;
}

bool read_symbol(Parser *p, Dim *out) {
  const char *s;
  u32 n = read_word_at(p, &s);
  for (u32 i = 0; n && i < p->g->sizes.syms.count; i++)
    if (read_is(s, n, p->g->sizes.syms.data[i].name)) {
      *out = p->g->sizes.syms.data[i].dim;
      p->at = s + n;
      return true;
    }
  return false;
}

bool read_symbol_at(Parser *p) {
  const char *at = p->at;
  Dim d;
  bool found = read_symbol(p, &d);
  p->at = at;
  return found;
}

Dim read_dim(Parser *p) {
  Dim d = 0;
  if (read_take(p, "<")) {
    d = size(p, '>');
    read_expect(p, ">");
  } else if (!read_symbol(p, &d)) {
    d = size_const(&p->g->sizes, read_integer(p));
  }
  if (d == DIM_NONE) read_fail(p, "the size expression is too large");
  return d;
}

u32 read_dtype_at(Parser *p) {
  const char *s;
  u32 n = read_word_at(p, &s), d = n ? dtype_by_name(s, n) : DT_NONE;
  if (d != DT_NONE) p->at = s + n;
  return d;
}

bool read_type_starts(Parser *p) {
  const char *s;
  char c = read_peek(p);
  u32 n = read_word_at(p, &s);
  if (c == '!') return p->end - p->at < 2 || !read_wordish(p->at[1]);
  return n && (read_is(s, n, "weak") || dtype_by_name(s, n) != DT_NONE);
}

TypeId read_type(Parser *p) {
  if (read_take(p, "!")) return TYPE_TOKEN;
  ArrayType t = {0};
  t.weak = read_take_word(p, "weak");
  t.dtype = (u8)read_dtype_at(p);
  if (!t.dtype) read_fail(p, "expected a type");
  read_expect(p, "[");
  while (!p->bad && !read_take(p, "]")) {
    if (t.rank == TYPE_MAX_RANK) {
      read_fail(p, "the rank is too large");
      break;
    }
    if (t.rank) read_expect(p, ",");
    t.dims[t.rank++] = read_dim(p);
  }
  if (read_take_word(p, "on")) t.device = (u8)read_number(p);
  TypeId id = p->bad ? 0 : graph_type(p->g, &t);
  if (!p->bad && !id) read_checked(p, true, "");
  return id;
}

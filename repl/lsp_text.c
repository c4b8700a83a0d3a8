/* lsp_text.c — documents of the language server: texts, places in them, names of files. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "repl/lsp.h"
#include "repl/program.h"

/* ---- names of files ---------------------------------------------------------------------------- */

static int hex_digit(char c) {
  const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
  return at ? (int)(at - digits) : -1;
}

char *path_of_uri(const char *uri) {
  if (strncmp(uri, "file://", 7) != 0) return NULL;
  const char *s = uri + 7;
  if (strncmp(s, "localhost/", 10) == 0) s += 9;
  if (*s != '/') return NULL;
  char *path = grow(NULL, strlen(s) + 1), *to = path;
  for (; *s && *s != '?' && *s != '#'; s++) {
    int high = *s == '%' ? hex_digit(s[1]) : -1, low = high >= 0 ? hex_digit(s[2]) : -1;
    if (low >= 0) *to++ = (char)(high << 4 | low), s += 2;
    else *to++ = *s;
  }
  *to = 0;
  return path;
}

char *uri_of_path(const char *path) {
  Out o = {0};
  put_text(&o, "file://");
  for (const unsigned char *s = (const unsigned char *)path; *s; s++) {
    bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'), plain = letter || strchr("0123456789-._~/", *s);
    if (plain) put_bytes(&o, (const char *)s, 1);
    else put_format(&o, "%%%02X", *s);
  }
  return o.text;
}

/* Without `.` and `..`, as far as that goes without looking at links. */
static void tidy_path(char *path) {
  char *to = path;
  for (const char *s = path; *s;) {
    size_t n = strcspn(s + 1, "/") + 1; /* "/name" */
    if (n == 3 && memcmp(s, "/..", 3) == 0) {
      while (to > path && *--to != '/') {}
    } else if (n > 1 && !(n == 2 && s[1] == '.')) {
      memmove(to, s, n);
      to += n;
    }
    s += n;
  }
  if (to == path) *to++ = '/';
  *to = 0;
}

char *path_beside(const char *file, const char *path) {
  const char *slash = strrchr(file, '/');
  Out o = {0};
  if (*path != '/' && slash) put_bytes(&o, file, (size_t)(slash - file) + 1);
  put_text(&o, path);
  if (*o.text == '/') tidy_path(o.text);
  return o.text;
}

/* ---- documents --------------------------------------------------------------------------------- */

static void forget_outline(Lsp *s, Doc *d) {
  weft_outline_free(s->vm, d->outline);
  free(d->problems);
  free(d->symbols);
  free(d->mentions);
  free(d->paint);
  d->outline = NULL;
  d->problems = NULL;
  d->symbols = NULL;
  d->mentions = NULL;
  d->paint = NULL;
  d->problem_count = d->symbol_count = d->mention_count = 0;
}

/* Lines end at a newline, a carriage return, or both. */
static void find_lines(Doc *d) {
  size_t cap = 16, n = 0;
  size_t *lines = grow(NULL, sizeof *lines * cap);
  lines[n++] = 0;
  for (size_t i = 0; i < d->len; i++) {
    if (d->text[i] != '\n' && (d->text[i] != '\r' || d->text[i + 1] == '\n')) continue;
    if (n == cap) lines = grow(lines, sizeof *lines * (cap *= 2));
    lines[n++] = i + 1;
  }
  free(d->lines);
  d->lines = lines;
  d->line_count = n;
}

void doc_read(Lsp *s, Doc *d) {
  if (d->outline || d->problems) return;
  if (weft_outline(s->vm, d->text, d->len, &d->outline) != WEFT_OK) {
    d->problems = grow(NULL, sizeof *d->problems); /* said where the text begins */
    d->problems[0] = (WeftProblem){.kind = "limit", .message = "this text is too large to be read"};
    d->problem_count = 1;
    return;
  }
  WeftProblem p = {.size = sizeof p};
  WeftSymbol y = {.size = sizeof y};
  WeftMention m = {.size = sizeof m};
  size_t cap = 0;
  for (size_t i = 0; weft_outline_problem(d->outline, i, &p); i++) {
    if (i == cap) d->problems = grow(d->problems, sizeof p * (cap = 2 * cap + 8));
    d->problems[d->problem_count++] = p;
  }
  cap = 0;
  for (size_t i = 0; weft_outline_symbol(d->outline, i, &y); i++) {
    if (i == cap) d->symbols = grow(d->symbols, sizeof y * (cap = 2 * cap + 8));
    d->symbols[d->symbol_count++] = y;
  }
  cap = 0;
  for (size_t i = 0; weft_outline_mention(d->outline, i, &m); i++) {
    if (i == cap) d->mentions = grow(d->mentions, sizeof m * (cap = 2 * cap + 8));
    d->mentions[d->mention_count++] = m;
  }
}

const unsigned char *doc_paint(Doc *d) {
  if (d->paint) return d->paint;
  d->paint = grow(NULL, d->len + 1);
  memset(d->paint, WEFT_PAINT_PLAIN, d->len + 1);
  (void)weft_paint(d->text, d->len, d->paint);
  return d->paint;
}

void doc_set(Lsp *s, Doc *d, const char *text, size_t len) {
  forget_outline(s, d);
  char *copy = copy_bytes(text, len);
  free(d->text);
  d->text = copy;
  d->len = len;
  d->told = false;
  find_lines(d);
}

void doc_splice(Doc *d, size_t from, size_t to, const char *text, size_t len) {
  char *now = grow(NULL, d->len - (to - from) + len + 1);
  memcpy(now, d->text, from);
  memcpy(now + from, text, len);
  memcpy(now + from + len, d->text + to, d->len - to);
  d->len = d->len - (to - from) + len;
  now[d->len] = 0;
  free(d->text);
  d->text = now;
  find_lines(d);
}

Doc *doc_find(Lsp *s, const char *uri) {
  for (size_t i = 0; i < s->doc_count; i++)
    if (strcmp(s->docs[i]->uri, uri) == 0) return s->docs[i];
  return NULL;
}

Doc *doc_new(Lsp *s, const char *uri) {
  Doc *d = grow(NULL, sizeof *d);
  *d = (Doc){.uri = copy_bytes(uri, strlen(uri)), .path = path_of_uri(uri)};
  if (d->path) tidy_path(d->path);
  doc_set(s, d, "", 0);
  s->docs = grow(s->docs, sizeof(Doc *) * (s->doc_count + 1));
  return s->docs[s->doc_count++] = d;
}

void doc_close(Lsp *s, Doc *d) {
  size_t at = 0;
  while (s->docs[at] != d) at++;
  memmove(s->docs + at, s->docs + at + 1, sizeof(Doc *) * (--s->doc_count - at));
  forget_outline(s, d);
  for (size_t i = 0; i < d->note_count; i++) free(d->notes[i]);
  free(d->notes);
  free(d->uri);
  free(d->path);
  free(d->text);
  free(d->lines);
  free(d);
}

void doc_drop_unused(Lsp *s) {
  enum { KEPT = 200 };
  for (size_t i = s->doc_count; i-- > 0;)
    if (!s->docs[i]->open && !s->docs[i]->used && s->doc_count > KEPT) doc_close(s, s->docs[i]);
  for (size_t i = 0; i < s->doc_count; i++) s->docs[i]->used = false;
}

Doc *doc_of_path(Lsp *s, const char *path) {
  enum { FILE_MOST = 1 << 24 };
  Doc *d = NULL;
  for (size_t i = 0; i < s->doc_count && !d; i++)
    if (s->docs[i]->path && strcmp(s->docs[i]->path, path) == 0) d = s->docs[i];
  if (d && (d->open || d->used)) return doc_read(s, d), d; /* a file stays as it is while a message is answered */
  struct stat now;
  bool there = stat(path, &now) == 0 && S_ISREG(now.st_mode) && now.st_size <= FILE_MOST;
  if (!there) {
    if (d) doc_close(s, d);
    return NULL;
  }
  if (d && d->changed.tv_sec == now.st_mtim.tv_sec && d->changed.tv_nsec == now.st_mtim.tv_nsec &&
      d->len == (size_t)now.st_size)
    return d->used = true, doc_read(s, d), d;
  Program p = {.name = path};
  int fd = open(path, O_RDONLY | O_CLOEXEC), code = read_program(fd, &p);
  if (fd >= 0) close(fd);
  if (!code && !d) {
    char *uri = uri_of_path(path);
    d = doc_new(s, uri);
    free(uri);
  }
  if (!code) {
    doc_set(s, d, p.text, p.len);
    d->changed = now.st_mtim;
    d->used = true;
    doc_read(s, d);
  }
  free(p.text);
  return code ? NULL : d;
}

/* ---- places ------------------------------------------------------------------------------------ */

/* Bytes of the character at `at`, and its UTF-16 code units; a byte that is no UTF-8 counts as one of each. */
static size_t step(const Doc *d, size_t at, size_t end, size_t *units) {
  unsigned char c = (unsigned char)d->text[at];
  size_t n = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
  *units = n == 4 ? 2 : 1;
  if (at + n > end) n = 1;
  for (size_t i = 1; i < n; i++)
    if (((unsigned char)d->text[at + i] & 0xC0) != 0x80) return *units = 1, 1;
  return n;
}

size_t doc_offset(const Lsp *s, const Doc *d, size_t line, size_t character) {
  if (line >= d->line_count) return d->len;
  size_t i = d->lines[line], end = line + 1 < d->line_count ? d->lines[line + 1] : d->len;
  while (end > i && (d->text[end - 1] == '\n' || d->text[end - 1] == '\r')) end--;
  for (size_t n, units; i < end; i += n, character -= units) {
    n = step(d, i, end, &units);
    if (s->utf8) units = n;
    if (character < units) break; /* or within the character: where it begins */
  }
  return i;
}

size_t doc_line(const Doc *d, size_t at) {
  size_t low = 0, high = d->line_count;
  while (high - low > 1) {
    size_t mid = low + (high - low) / 2;
    if (d->lines[mid] <= at) low = mid;
    else high = mid;
  }
  return low;
}

void put_position(const Lsp *s, const Doc *d, Out *o, size_t at) {
  if (at > d->len) at = d->len;
  size_t line = doc_line(d, at), character = 0;
  for (size_t i = d->lines[line], n, units; i < at; i += n, character += s->utf8 ? n : units)
    n = step(d, i, d->len, &units);
  put_format(o, "{\"line\":%zu,\"character\":%zu}", line, character);
}

void put_range(const Lsp *s, const Doc *d, Out *o, size_t from, size_t to) {
  put_text(o, "{\"start\":");
  put_position(s, d, o, from);
  put_text(o, ",\"end\":");
  put_position(s, d, o, to);
  put_text(o, "}");
}

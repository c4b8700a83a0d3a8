/* sources.c — texts of programs, and the places in them that messages show (base.h). */
#include "parser/base.h"

#include <stdio.h>
#include <string.h>

WeftStatus sources_init(Sources *s, Allocator *alloc) {
  *s = (Sources){.alloc = alloc};
  arena_init(&s->arena, alloc);
  return vec_push(alloc, &s->files, (SourceFile){0}) ? WEFT_OK : WEFT_ERROR;
}

void sources_free(Sources *s) {
  vec_free(s->alloc, &s->files);
  arena_free(&s->arena);
}

u32 sources_add(Sources *s, const char *path, const char *text, size_t len) {
  if (len > (1u << 30)) return 0;
  u32 lines = 1;
  for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
  SourceFile f = {.len = (u32)len, .line_count = lines};
  f.path = arena_copy(&s->arena, path, strlen(path));
  f.text = arena_copy(&s->arena, text, len);
  f.line_starts = arena_alloc(&s->arena, sizeof(u32) * lines);
  if (!f.path || !f.text || !f.line_starts) return 0;
  u32 line = 1;
  for (u32 i = 0; i < len; i++)
    if (text[i] == '\n') f.line_starts[line++] = i + 1;
  return vec_push(s->alloc, &s->files, f) ? s->files.count - 1 : 0;
}

const SourceFile *sources_get(const Sources *s, u32 file) {
  return file && file < s->files.count ? &s->files.data[file] : NULL;
}

static u32 line_of(const SourceFile *f, u32 offset) { /* 0-based */
  u32 lo = 0, hi = f->line_count;
  while (hi - lo > 1) {
    u32 mid = lo + (hi - lo) / 2;
    if (f->line_starts[mid] <= offset) lo = mid;
    else hi = mid;
  }
  return lo;
}

static u32 code_points(const char *s, u32 n) {
  u32 c = 0;
  for (u32 i = 0; i < n; i++) c += ((u8)s[i] & 0xC0) != 0x80;
  return c;
}

void sources_locate(const Sources *s, Span at, u32 *line, u32 *col) {
  *line = *col = 0;
  const SourceFile *f = sources_get(s, at.file);
  if (!f) return;
  u32 start = at.start > f->len ? f->len : at.start;
  u32 l = line_of(f, start);
  *line = l + 1;
  *col = code_points(f->text + f->line_starts[l], start - f->line_starts[l]) + 1;
}

/* Of a line of more than so many bytes only what is near the place is shown. */
enum { LINE_MOST = 200, LINE_BEFORE = 80 };
static bool is_inside_of_code_point(const SourceFile *f, u32 i) { return ((u8)f->text[i] & 0xC0) == 0x80; }

void sources_show(const Sources *s, Span at, Buf *out) {
  static const char cut[] = "…";
  const SourceFile *f = sources_get(s, at.file);
  if (!f) return;
  u32 line, col;
  sources_locate(s, at, &line, &col);
  u32 begin = f->line_starts[line - 1];
  u32 end = line < f->line_count ? f->line_starts[line] - 1 : f->len;
  if (end > begin && f->text[end - 1] == '\r') end--;
  u32 start = at.start > end ? end : at.start;
  u32 stop = at.start + at.len > end ? end : at.start + at.len;
  u32 from = end - begin > LINE_MOST && start - begin > LINE_BEFORE ? start - LINE_BEFORE : begin, to = end - from > LINE_MOST ? from + LINE_MOST : end;
  while (from > begin && is_inside_of_code_point(f, from)) from--;
  while (to < end && is_inside_of_code_point(f, to)) to++;
  if (stop > to) stop = to;
  char number[16];
  int width = snprintf(number, sizeof number, "%u", line);
  buf_printf(out, "  --> %s:%u:%u\n%*s |\n%s | %s", f->path, line, col, width, "", number, from > begin ? cut : "");
  for (u32 i = from; i < to; i++) buf_putc(out, (u8)f->text[i] < 32 ? ' ' : f->text[i]);
  buf_printf(out, "%s\n%*s | %*s", to < end ? cut : "", width, "", (int)(code_points(f->text + from, start - from) + (from > begin)), "");
  u32 carets = stop > start ? code_points(f->text + start, stop - start) : 1;
  for (u32 i = 0; i < carets; i++) buf_putc(out, '^');
  buf_putc(out, '\n');
}

/* screen.c — the escape sequences that readline sends to an xterm, and what they do to rows of cells (see screen.h). */
#include "tests/prompt/screen.h"

#include <stdlib.h>
#include <string.h>

#include "parser/base.h"

static void need_row(Screen *s, int y) {
  while (s->row_count <= y) {
    s->rows = realloc(s->rows, sizeof *s->rows * (size_t)(s->row_count + 1));
    s->rows[s->row_count++] = (Row){calloc((size_t)s->width, sizeof(Cell)), s->width};
  }
}

void screen_open(Screen *s, int width, int height) {
  *s = (Screen){.width = width, .height = height};
  need_row(s, 0);
}

void screen_close(Screen *s) {
  for (int i = 0; i < s->row_count; i++) free(s->rows[i].cells);
  free(s->rows);
}

static int top(const Screen *s) { return s->row_count > s->height ? s->row_count - s->height : 0; }

static Cell *cell(Screen *s, int x, int y) {
  need_row(s, y);
  Row *r = &s->rows[y];
  if (x >= r->count) { /* the window became wider */
    r->cells = realloc(r->cells, sizeof *r->cells * (size_t)(x + 1));
    memset(r->cells + r->count, 0, sizeof *r->cells * (size_t)(x + 1 - r->count));
    r->count = x + 1;
  }
  return &r->cells[x];
}

static void clear_row(Screen *s, int y, int from) {
  need_row(s, y);
  for (int x = from; x < s->rows[y].count; x++) s->rows[y].cells[x] = (Cell){.colour = 0};
}

int screen_colour(const Screen *s, int y, int x) {
  return y >= 0 && y < s->row_count && x < s->rows[y].count ? s->rows[y].cells[x].colour : 0;
}

static void next_row(Screen *s) {
  s->y++;
  need_row(s, s->y);
  s->wrap = false;
}

static void put_character(Screen *s, const char *c, size_t n) {
  u32 columns = text_columns(c, (u32)n);
  if (columns == 0) {
    Cell *before = cell(s, s->x > 0 && !s->wrap ? s->x - 1 : s->x, s->y);
    size_t have = strlen(before->text);
    if (have + n < sizeof before->text) {
      memcpy(before->text + have, c, n);
      before->text[have + n] = 0;
    }
    return;
  }
  if (s->wrap || s->x + (int)columns > s->width) {
    s->x = 0;
    next_row(s);
  }
  Cell *at = cell(s, s->x, s->y);
  memcpy(at->text, c, n);
  at->text[n] = 0;
  at->colour = s->colour;
  if (columns == 2) strcpy(cell(s, s->x + 1, s->y)->text, "\1"); /* the right half */
  s->x += (int)columns;
  if (s->x >= s->width) {
    s->x = s->width - 1;
    s->wrap = true;
  }
}

static void shift(Screen *s, int by) { /* > 0: cells are inserted at the cursor */
  (void)cell(s, s->width - 1, s->y);
  Row *r = &s->rows[s->y];
  int n = r->count - s->x, d = by < 0 ? -by : by;
  if (d > n) d = n;
  Cell *at = r->cells + s->x;
  if (by > 0) memmove(at + d, at, sizeof *at * (size_t)(n - d));
  else memmove(at, at + d, sizeof *at * (size_t)(n - d));
  for (int i = 0; i < d; i++) (by > 0 ? at + i : at + n - d + i)->text[0] = 0;
}

static void sequence(Screen *s, const char *body, size_t n) { /* behind ESC [ */
  int p[4] = {0}, count = 0;
  char final = body[n - 1];
  if (body[0] == '?' || body[0] == '>') return;
  for (size_t i = 0; i + 1 < n && count < 4; i++) {
    if (body[i] >= '0' && body[i] <= '9') p[count] = p[count] * 10 + (body[i] - '0');
    else if (body[i] == ';') count++;
  }
  int by = p[0] ? p[0] : 1;
  if (final != 'm') s->wrap = false;
  switch (final) {
  case 'A': s->y = s->y - by < top(s) ? top(s) : s->y - by; break;
  case 'B': s->y = s->y + by >= s->row_count ? s->row_count - 1 : s->y + by; break;
  case 'C': s->x = s->x + by >= s->width ? s->width - 1 : s->x + by; break;
  case 'D': s->x = s->x - by < 0 ? 0 : s->x - by; break;
  case 'G': s->x = by - 1; break;
  case 'H':
    s->y = top(s) + (p[0] ? p[0] - 1 : 0);
    s->x = p[1] ? p[1] - 1 : 0;
    need_row(s, s->y);
    break;
  case 'K': clear_row(s, s->y, p[0] ? 0 : s->x); break;
  case 'J':
    if (p[0] == 0) clear_row(s, s->y, s->x);
    for (int y = p[0] ? top(s) : s->y + 1; y < s->row_count; y++) clear_row(s, y, 0);
    break;
  case 'm': s->colour = p[count < 3 ? count : 3]; break;
  case 'P': shift(s, -by); break;
  case '@': shift(s, by); break;
  default: break;
  }
}

/* How many bytes were taken; 0: more must come. */
static size_t take(Screen *s, const char *b, size_t n) {
  unsigned char c = (unsigned char)b[0];
  if (c == 27) {
    if (n < 2) return 0;
    if (b[1] == ']') { /* a title */
      for (size_t i = 2; i < n; i++)
        if (b[i] == 7) return i + 1;
      return 0;
    }
    if (b[1] == 'P' || b[1] == '_') return s->picture = b[1], s->picture_last = 0, 2;
    if (b[1] != '[') return 2;
    for (size_t i = 2; i < n; i++)
      if (b[i] >= 0x40 && b[i] <= 0x7e) return sequence(s, b + 2, i - 1), i + 1;
    return 0;
  }
  size_t len = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
  if (n < len) return 0;
  if (c >= 32 && c != 127) return put_character(s, b, len), len;
  if (c == '\n') next_row(s);
  if (c == '\r') s->x = 0;
  if (c == '\b' && s->x > 0) s->x--;
  if (c == '\t') s->x = s->x / 8 * 8 + 8 < s->width ? s->x / 8 * 8 + 8 : s->width - 1;
  if (c == 7) s->bells++;
  if (c == '\r' || c == '\b') s->wrap = false;
  return 1;
}

void screen_put(Screen *s, const char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (s->picture) { /* until ESC \ */
      bool over = s->picture_last == 27 && bytes[i] == '\\';
      s->picture_last = bytes[i];
      if (!over) continue;
      if (s->picture == 'P') s->sixels++;
      else s->kitties++;
      s->picture = 0;
      continue;
    }
    s->held[s->held_len++] = bytes[i];
    if (take(s, s->held, s->held_len) || s->held_len == sizeof s->held) s->held_len = 0;
  }
}

char *screen_row(const Screen *s, int y) {
  Row none = {0};
  const Row *r = y >= 0 && y < s->row_count ? &s->rows[y] : &none;
  char *text = malloc(sizeof(Cell) * (size_t)(r->count + 1));
  size_t n = 0, end = 0;
  for (int x = 0; x < r->count; x++) {
    const char *t = r->cells[x].text;
    if (*t == 1) continue;
    size_t len = *t ? strlen(t) : 1;
    memcpy(text + n, *t ? t : " ", len);
    n += len;
    if (*t && strcmp(t, " ") != 0) end = n;
  }
  text[end] = 0;
  return text;
}

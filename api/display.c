/* display.c — a value as a prompt shows it: aligned columns, as many digits as one reads, cut to the screen, with dtype
 * and shape. `print` and `str` give whole literals (format.c); this is for who looks. */
#include "api/prompt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "stdlib/stdlib.h"

typedef struct View {
  Vm *vm;
  u32 width;  /* columns of a line */
  u32 rows;   /* lines of an array, a list or a record */
  int digits; /* significant ones of a float; DIGITS_ALL: as many as read back */
  bool cut;   /* something was left out */
} View;

enum { DEPTH_SHOWN = 12, CELLS_MOST = 4096 };

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* Takes zeros at the end of a fraction away, but one behind the point. `end`: where the fraction ends. */
static size_t without_zeros(char *s, size_t end) {
  size_t point = 0, n = end;
  while (point < end && s[point] != '.') point++;
  if (point == end) return end;
  while (n > point + 2 && s[n - 1] == '0') n--;
  memmove(s + n, s + end, strlen(s + end) + 1);
  return n;
}

static void put_float(const View *w, f64 x, u32 dtype, Buf *out) {
  enum { FIXED_MOST = 10 }; /* digits before the point: times of today, in seconds, have as many */
  const int most = dtype == DT_f64 || dtype == DT_c128 ? 16 : dtype == DT_f32 || dtype == DT_c64 ? 8 :
                   dtype == DT_f16 ? 4 : 3;
  char s[400];
  if (!isfinite(x)) return buf_puts(out, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
  if (w->digits > most) { /* all that there are */
    Value v = dtype == DT_f32 || dtype == DT_c64 ? value_f32((f32)x) : value_f64(x);
    if (dtype == DT_f16 || dtype == DT_bf16) v = (Value){.kind = V_NUM, .dtype = (u8)dtype, .f = x};
    if (dtype != DT_f16 && dtype != DT_bf16) return format_value(w->vm, v, false, out);
  }
  f64 size = fabs(x);
  int exponent = size == 0 ? 0 : (int)floor(log10(size));
  if (size != 0 && (exponent < -4 || exponent >= FIXED_MOST)) {
    snprintf(s, sizeof s, "%.*e", w->digits - 1, x);
    char *e = strchr(s, 'e');
    int power = atoi(e + 1);
    size_t n = (size_t)(e - s);
    while (n > 1 && strchr(s, '.') && s[n - 1] == '0') n--;
    if (s[n - 1] == '.') n--;
    buf_put(out, s, n);
    buf_printf(out, "e%d", power);
    return;
  }
  int decimals = w->digits - 1 - exponent;
  snprintf(s, sizeof s, "%.*f", decimals < 1 || x == trunc(x) ? 1 : decimals, x);
  (void)without_zeros(s, strlen(s));
  buf_puts(out, s);
}

/* A number, without its dtype. */
static void put_number(const View *w, Value v, Buf *out) {
  u32 dtype = v.kind == V_ARRAY ? array_dtype(v.array) : v.dtype; /* of rank 0, of c128 */
  DTypeKind kind = dtype_kind(dtype);
  if (v.kind == V_NUM && kind == DK_FLOAT) return put_float(w, num_as_f64(v), v.dtype, out);
  if (kind == DK_COMPLEX) {
    f64 re, im;
    num_parts(v, &re, &im);
    put_float(w, re, dtype, out);
    if (isnan(im) || !signbit(im)) buf_putc(out, '+');
    put_float(w, im, dtype, out);
    return buf_putc(out, 'j');
  }
  format_value(w->vm, v, false, out);
}

static bool is_plain_dtype(u32 dtype) { return dtype == DT_f64 || dtype == DT_i64 || dtype == DT_bool; }

static void put_shape(Array *a, Buf *out) {
  buf_printf(out, "%s (", dtype_name(array_dtype(a)));
  for (u32 d = 0; d < array_rank(a); d++)
    buf_printf(out, d ? ", %lld" : "%lld", (long long)array_dims(a)[d]);
  buf_puts(out, array_rank(a) == 1 ? ",)" : ")");
}

/* ---- what fits a line ------------------------------------------------------------------------------------ */

static u32 columns_of(const Buf *b, size_t from) { return text_columns(b->data + from, (u32)(b->len - from)); }

static void put_blanks(Buf *out, u32 n) {
  while (n--) buf_putc(out, ' ');
}

static void put_count(Buf *out, u64 n) { /* 12,345 */
  char s[32];
  int len = snprintf(s, sizeof s, "%llu", (unsigned long long)n);
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) buf_putc(out, ',');
    buf_putc(out, s[i]);
  }
}

/* A text as its literal, of `room` columns at most. */
static void put_text(View *w, const Text *t, u32 room, Buf *out) {
  size_t from = out->len;
  u32 n = t->len > 4 * room + 8 ? 4 * room + 8 : t->len;
  while (n < t->len && n && ((u8)t->data[n] & 0xC0) == 0x80) n--;
  for (;;) {
    Value part;
    out->len = from;
    if (!text_new(w->vm, t->data, n, &part)) return vm_error_clear(w->vm);
    format_value(w->vm, part, false, out);
    value_drop(w->vm, part);
    u32 have = columns_of(out, from) + (n < t->len);
    if (have <= room || n == 0) break;
    u32 less = have - room;
    n = less < n ? n - (less + 3) / 4 : 0;
    while (n && ((u8)t->data[n] & 0xC0) == 0x80) n--;
  }
  if (n == t->len || !out->len) return;
  out->len--; /* its quote */
  buf_puts(out, "…\"");
  w->cut = true;
}

static void put_key(View *w, Name key, Buf *out) {
  const char *s = name_text(&w->vm->names, key);
  u32 n = name_len(&w->vm->names, key);
  bool plain = n && !(*s >= '0' && *s <= '9');
  for (u32 i = 0; i < n; i++) plain &= is_name_byte(s[i]);
  Value text;
  if (plain) return buf_put(out, s, n);
  if (!text_new(w->vm, s, n, &text)) return vm_error_clear(w->vm);
  put_text(w, text.text, w->width, out);
  value_drop(w->vm, text);
}

static void put_inline(View *w, Value v, size_t line, u32 end, u32 depth, Buf *out);

/* "… 12 more", where the items from `i` on do not fit. */
static void put_rest(View *w, u64 rest, Buf *out) {
  buf_puts(out, "… ");
  put_count(out, rest);
  buf_puts(out, " more");
  w->cut = true;
}

static bool is_full(const Buf *out, size_t line, u32 end) {
  enum { FOR_REST = 14 };
  return out->failed || columns_of(out, line) + FOR_REST > end;
}

static void inline_array(View *w, Array *a, size_t line, u32 end, Buf *out) {
  enum { ITEMS_MOST = 24 };
  size_t from = out->len;
  if (array_rank(a) == 1 && a->size && a->size <= ITEMS_MOST && array_device(a) == DEV_CPU) {
    if (!is_plain_dtype(array_dtype(a))) buf_puts(out, dtype_name(array_dtype(a))), buf_putc(out, '(');
    buf_putc(out, '[');
    for (i64 i = 0; i < a->size; i++) {
      NumBox box;
      if (i) buf_puts(out, ", ");
      put_number(w, array_borrow(a, i * array_strides(a)[0], &box), out);
    }
    buf_puts(out, is_plain_dtype(array_dtype(a)) ? "]" : "])");
    if (columns_of(out, line) <= end) return;
    out->len = from;
  }
  w->cut = true;
  buf_putc(out, '<');
  put_shape(a, out);
  buf_putc(out, '>');
}

/* In one line, whose text begins at `line` of out, up to its column `end`. */
static void put_inline(View *w, Value v, size_t line, u32 end, u32 depth, Buf *out) {
  u32 have = columns_of(out, line), room = have < end ? end - have : 1;
  if (depth > DEPTH_SHOWN) {
    w->cut = true;
    return buf_puts(out, "…");
  }
  switch (v.kind) {
    case V_NUM:
      if (is_plain_dtype(v.dtype)) return put_number(w, v, out);
      buf_printf(out, "%s(", dtype_name(v.dtype));
      put_number(w, v, out);
      return buf_putc(out, ')');
    case V_TEXT: return put_text(w, v.text, room < 6 ? 6 : room, out);
    case V_ARRAY: return inline_array(w, v.array, line, end, out);
    case V_LIST:
      buf_putc(out, '(');
      if (!list_boxed(w->vm, v.list)) return vm_error_clear(w->vm);
      for (u32 i = 0; i < v.list->count; i++) {
        if (i) buf_puts(out, ", ");
        if (is_full(out, line, end) && (i || depth)) {
          put_rest(w, v.list->count - i, out);
          break;
        }
        put_inline(w, v.list->items[i], line, end, depth + 1, out);
      }
      return buf_puts(out, v.list->count == 1 ? ",)" : ")");
    case V_RECORD:
      buf_putc(out, '{');
      for (u32 i = 0; i < v.record->shape->count; i++) {
        if (i) buf_puts(out, ", ");
        if (is_full(out, line, end) && (i || depth)) {
          put_rest(w, v.record->shape->count - i, out);
          break;
        }
        put_key(w, v.record->shape->keys[i], out);
        buf_puts(out, ": ");
        put_inline(w, v.record->items[i], line, end, depth + 1, out);
      }
      return buf_putc(out, '}');
    case V_REF:
      buf_puts(out, "<ref ");
      put_inline(w, v.ref->value, line, end, depth + 1, out);
      return buf_putc(out, '>');
    default: format_value(w->vm, v, false, out);
  }
}

/* ---- arrays ---------------------------------------------------------------------------------------------- */

/* Which items of an axis are shown: `head` from the front, `tail` from the end, all when both make n. */
typedef struct Edges {
  i64 n, head, tail;
} Edges;

static Edges edges(i64 n, i64 shown) {
  if (n <= shown) return (Edges){n, n, 0};
  return (Edges){n, (shown + 1) / 2, shown / 2};
}
static i64 shown(Edges e) { return e.head + e.tail; }
static i64 item(Edges e, i64 i) { return i < e.head ? i : e.n - e.tail + (i - e.head); }
static bool gap_before(Edges e, i64 i) { return i == e.head && e.head + e.tail < e.n; }

/* A column of texts that stand under each other by their points; words (nan, inf, true) end where the longest ends. */
typedef struct Column {
  u32 before, behind, word;
} Column;

static u32 column_width(Column c) { return c.before + c.behind > c.word ? c.before + c.behind : c.word; }

static bool is_a_word(const char *s, size_t n) { return n && s[n - 1] >= 'a' && s[n - 1] <= 'z' && s[n - 1] != 'j'; }

static void split_at_point(const char *s, size_t n, u32 *before, u32 *behind) {
  size_t at = 0;
  while (at < n && s[at] != '.' && s[at] != 'e') at++;
  if (at == n) *before = (u32)n, *behind = 0;
  else if (memchr(s, 'j', n)) *before = (u32)n, *behind = 0;
  else *before = (u32)at, *behind = (u32)(n - at);
}

static void widen(Column *c, const Buf *cell, size_t from) {
  u32 before, behind;
  if (is_a_word(cell->data + from, cell->len - from)) {
    if (cell->len - from > c->word) c->word = (u32)(cell->len - from);
    return;
  }
  split_at_point(cell->data + from, cell->len - from, &before, &behind);
  if (before > c->before) c->before = before;
  if (behind > c->behind) c->behind = behind;
}

/* The number at `at`, under its column; `mark` stands right behind it. */
static void put_cell(View *w, Array *a, i64 at, Column c, const char *mark, bool last, Buf *out) {
  NumBox box;
  size_t from = out->len;
  u32 before, behind;
  put_number(w, array_borrow(a, at, &box), out);
  if (out->failed) return;
  if (is_a_word(out->data + from, out->len - from)) {
    c = (Column){column_width(c), 0, 0};
    before = (u32)(out->len - from), behind = 0;
  } else {
    split_at_point(out->data + from, out->len - from, &before, &behind);
  }
  Buf cell;
  buf_init(&cell, &w->vm->alloc);
  buf_put(&cell, out->data + from, out->len - from);
  out->len = from;
  u32 ahead = column_width(c) - c.behind;
  put_blanks(out, ahead > before ? ahead - before : 0);
  if (!cell.failed) buf_put(out, cell.data, cell.len);
  buf_puts(out, mark);
  if (!last) put_blanks(out, c.behind > behind ? c.behind - behind : 0);
  buf_free(&cell);
}

enum { SIDE_MOST = 64 }; /* columns that are looked at from each side */

typedef struct Page {
  Edges axis[WEFT_MAX_RANK]; /* the last: columns */
  Column left[SIDE_MOST], right[SIDE_MOST];
} Page;

static Column *column(Page *p, i64 i, u32 rank) {
  const Edges *e = &p->axis[rank - 1];
  return i < e->head ? &p->left[i] : &p->right[e->tail - 1 - (i - e->head)];
}

/* Widths of the columns, over all rows that are shown. */
static void measure(View *w, Array *a, Page *p, u32 axis, i64 at) {
  u32 rank = array_rank(a);
  for (i64 i = 0; i < shown(p->axis[axis]); i++) {
    i64 there = at + item(p->axis[axis], i) * array_strides(a)[axis];
    if (axis + 1 < rank) {
      measure(w, a, p, axis + 1, there);
      continue;
    }
    NumBox box;
    Buf cell;
    buf_init(&cell, &w->vm->alloc);
    put_number(w, array_borrow(a, there, &box), &cell);
    if (!cell.failed && cell.data) widen(column(p, i, rank), &cell, 0);
    buf_free(&cell);
  }
}

/* As many columns as fit, from both sides in turn. */
static void fit_columns(const View *w, Page *p, u32 rank) {
  enum { GAP = 3, AROUND = 2 };
  Edges *e = &p->axis[rank - 1], all = *e;
  u32 room = w->width > rank + AROUND ? w->width - rank - AROUND : 1, used = 0;
  for (i64 i = 0; i < all.head; i++) used += column_width(p->left[i]) + 2;
  for (i64 i = 0; i < all.tail; i++) used += column_width(p->right[i]) + 2;
  if (shown(all) == all.n && used <= room) return;
  if (shown(all) == all.n) { /* all were measured from the left */
    for (i64 i = 0; i < all.n && i < SIDE_MOST; i++) p->right[i] = p->left[all.n - 1 - i];
    all.tail = all.n / 2;
    all.head = all.n - all.tail;
  }
  *e = (Edges){all.n, 0, 0};
  used = GAP;
  for (bool left = true; e->head + e->tail < all.n; left = !left) {
    if (left ? e->head >= all.head : e->tail >= all.tail) break;
    Column c = left ? p->left[e->head] : p->right[e->tail];
    used += column_width(c) + 2;
    if (used > room && e->head) break;
    if (left) e->head++;
    else e->tail++;
  }
}

static void put_rows(View *w, Array *a, Page *p, u32 axis, i64 at, Buf *out) {
  u32 rank = array_rank(a);
  Edges e = p->axis[axis];
  bool inner = axis + 1 == rank;
  buf_putc(out, '[');
  for (i64 i = 0; i < shown(e); i++) {
    i64 there = at + item(e, i) * array_strides(a)[axis];
    if (gap_before(e, i)) {
      w->cut = true;
      if (inner) buf_puts(out, "…, ");
      else {
        buf_puts(out, "…");
        buf_putc(out, '\n');
        put_blanks(out, axis + 1);
      }
    }
    bool last = i + 1 == shown(e), ends = last && e.tail == 0 && e.head < e.n;
    if (inner) {
      put_cell(w, a, there, *column(p, i, rank), last && !ends ? "" : ",", last, out);
      if (!last) buf_putc(out, ' ');
    } else {
      put_rows(w, a, p, axis + 1, there, out);
      if (!last) {
        buf_puts(out, ",\n");
        put_blanks(out, axis + 1);
      }
    }
    if (ends) buf_puts(out, inner ? " …" : ",\n …");
  }
  buf_putc(out, ']');
}

/* Rank 1 and longer than a line: a paragraph of columns. */
static void put_paragraph(View *w, Array *a, Buf *out) {
  i64 n = a->size, stride = array_strides(a)[0];
  Column c = {0, 0, 0};
  i64 looked = n < CELLS_MOST / 4 ? n : CELLS_MOST / 4;
  Edges some = edges(n, looked);
  for (i64 i = 0; i < looked; i++) {
    NumBox box;
    Buf cell;
    buf_init(&cell, &w->vm->alloc);
    put_number(w, array_borrow(a, item(some, i) * stride, &box), &cell);
    if (!cell.failed && cell.data) widen(&c, &cell, 0);
    buf_free(&cell);
  }
  u32 each = column_width(c) + 2, room = w->width > 3 ? w->width - 2 : 1;
  i64 per = room / each < 1 ? 1 : room / each, lines = (n + per - 1) / per;
  i64 most = w->rows / 3 < 4 ? 4 : w->rows / 3;
  bool cut = lines > most;
  i64 head = cut ? (most + 1) / 2 : lines, tail = cut ? most / 2 : 0;
  buf_putc(out, '[');
  for (i64 line = 0; line < head + tail; line++) {
    i64 row = line < head ? line : lines - tail + (line - head);
    if (line) buf_puts(out, "\n ");
    if (cut && line == head) {
      buf_puts(out, "…\n ");
      w->cut = true;
    }
    for (i64 i = row * per; i < (row + 1) * per && i < n; i++) {
      bool ends = i + 1 == n || i + 1 == (row + 1) * per;
      put_cell(w, a, i * stride, c, i + 1 < n ? "," : "", ends, out);
      if (!ends) buf_putc(out, ' ');
    }
  }
  buf_putc(out, ']');
}

static void show_array(View *w, Array *a, Buf *out) {
  u32 rank = array_rank(a);
  if (array_device(a) != DEV_CPU) {
    Value here;
    put_shape(a, out);
    if (array_from_device(w->vm, a, &here) != WEFT_OK) {
      vm_error_clear(w->vm);
      return buf_puts(out, " on a device that failed");
    }
    out->len = 0;
    if (here.kind == V_ARRAY) show_array(w, here.array, out);
    else put_inline(w, here, 0, w->width, 0, out);
    return value_drop(w->vm, here);
  }
  if (rank == 0) {
    if (!is_plain_dtype(array_dtype(a))) buf_printf(out, "%s(", dtype_name(array_dtype(a)));
    NumBox box;
    put_number(w, array_borrow(a, 0, &box), out);
    if (!is_plain_dtype(array_dtype(a))) buf_putc(out, ')');
    return;
  }
  put_shape(a, out);
  if (a->size == 0) return buf_puts(out, "  []");
  u32 head = columns_of(out, 0);
  if (rank == 1) {
    size_t from = out->len;
    buf_puts(out, "  [");
    for (i64 i = 0; i < a->size && columns_of(out, from) + head <= w->width; i++) {
      NumBox box;
      if (i) buf_puts(out, ", ");
      put_number(w, array_borrow(a, i * array_strides(a)[0], &box), out);
    }
    buf_putc(out, ']');
    if (columns_of(out, from) + head <= w->width) return;
    out->len = from;
    buf_putc(out, '\n');
    return put_paragraph(w, a, out);
  }
  buf_putc(out, '\n');
  Page p = {.axis = {{0, 0, 0}}};
  i64 left = w->rows;
  for (u32 d = rank - 1; d-- > 0;) {
    i64 most = d + 2 == rank && rank > 2 ? (left / 3 > 3 ? left / 3 : 3) : left > 2 ? left : 2;
    p.axis[d] = edges(array_dims(a)[d], most);
    left /= shown(p.axis[d]);
  }
  p.axis[rank - 1] = edges(array_dims(a)[rank - 1], SIDE_MOST);
  measure(w, a, &p, 0, 0);
  fit_columns(w, &p, rank);
  put_rows(w, a, &p, 0, 0, out);
}

/* ---- records and lists -------------------------------------------------------------------------------------- */

static i64 length_of(Vm *vm, Value v) { /* of a column; -1: it is none */
  if (v.kind == V_ARRAY) return array_rank(v.array) == 1 && array_device(v.array) == DEV_CPU ? v.array->size : -1;
  if (v.kind != V_LIST || !list_boxed(vm, v.list)) return -1;
  for (u32 i = 0; i < v.list->count; i++)
    if (v.list->items[i].kind != V_NUM && v.list->items[i].kind != V_TEXT && v.list->items[i].kind != V_NIL) return -1;
  return v.list->count;
}

/* Columns of the same length, two rows or more? */
static bool is_table(Vm *vm, Value v, i64 *rows) {
  if (v.kind != V_RECORD || v.record->shape->count < 2) return false;
  for (u32 i = 0; i < v.record->shape->count; i++) {
    i64 n = length_of(vm, v.record->items[i]);
    if (i == 0) *rows = n;
    if (n < 2 || n != *rows) return false;
  }
  return true;
}

/* Texts stand without quotes, cut where they are long; a line in them is shown as its escape. */
static void put_entry(View *w, Value column, i64 row, Buf *out) {
  enum { TEXT_MOST = 24 };
  if (column.kind == V_ARRAY) {
    NumBox box;
    return put_number(w, array_borrow(column.array, row * array_strides(column.array)[0], &box), out);
  }
  Value v = column.list->items[row];
  if (v.kind == V_NUM) return put_number(w, v, out);
  size_t from = out->len;
  if (v.kind != V_TEXT) return put_inline(w, v, from, TEXT_MOST, 1, out);
  put_text(w, v.text, TEXT_MOST, out);
  if (out->failed || out->len < from + 2) return;
  memmove(out->data + from, out->data + from + 1, out->len - from - 2);
  out->len -= 2;
}

typedef struct TableColumn {
  Column numbers;
  u32 width;
  bool text;
} TableColumn;

static void put_padded(TableColumn c, const Buf *cell, size_t from, bool heading, Buf *out) {
  u32 have = text_columns(cell->data + from, (u32)(cell->len - from)), before, behind;
  if (c.text) {
    buf_put(out, cell->data + from, cell->len - from);
    return put_blanks(out, c.width > have ? c.width - have : 0);
  }
  u32 ahead = c.width > have ? c.width - have : 0, after = 0;
  split_at_point(cell->data + from, cell->len - from, &before, &behind);
  if (!heading && c.numbers.behind > behind && !is_a_word(cell->data + from, cell->len - from)) {
    after = c.numbers.behind - behind;
    ahead = ahead > after ? ahead - after : 0;
  }
  put_blanks(out, ahead);
  buf_put(out, cell->data + from, cell->len - from);
  put_blanks(out, after);
}

static void trim_line(Buf *out) {
  while (out->len && out->data[out->len - 1] == ' ') out->len--;
}

/* Gives how many of the columns there was room for. */
static u32 put_table(View *w, Record *r, i64 rows, Buf *out) {
  enum { COLUMNS_MOST = 64, BETWEEN = 2 };
  TableColumn columns[COLUMNS_MOST];
  u32 n = r->shape->count, used = 0, fit = 0;
  Edges e = edges(rows, w->rows);
  Buf cell;
  buf_init(&cell, &w->vm->alloc);
  for (; fit < n && fit < COLUMNS_MOST; fit++) {
    TableColumn *c = &columns[fit];
    *c = (TableColumn){.text = false};
    cell.len = 0;
    put_key(w, r->shape->keys[fit], &cell);
    u32 name = columns_of(&cell, 0);
    for (i64 i = 0; i < shown(e); i++) {
      Value v = r->items[fit];
      cell.len = 0;
      put_entry(w, v, item(e, i), &cell);
      if (cell.failed) break;
      c->text |= v.kind == V_LIST && v.list->items[item(e, i)].kind == V_TEXT;
      u32 have = columns_of(&cell, 0);
      if (have > c->width) c->width = have;
      widen(&c->numbers, &cell, 0);
    }
    if (!c->text && column_width(c->numbers) > c->width) c->width = column_width(c->numbers);
    if (name > c->width) c->width = name;
    u32 more = fit + 1 < n ? 3 : 0;
    if (fit && used + BETWEEN + c->width + more > w->width) break;
    used += BETWEEN + c->width;
  }
  for (i64 i = -1; i < shown(e) && !cell.failed; i++) {
    if (i >= 0 && gap_before(e, i)) {
      w->cut = true;
      put_blanks(out, BETWEEN);
      buf_puts(out, "…\n");
    }
    for (u32 k = 0; k < fit; k++) {
      put_blanks(out, BETWEEN);
      cell.len = 0;
      if (i < 0) put_key(w, r->shape->keys[k], &cell);
      else put_entry(w, r->items[k], item(e, i), &cell);
      if (!cell.failed) put_padded(columns[k], &cell, 0, i < 0, out);
    }
    if (fit < n) buf_puts(out, " …");
    trim_line(out);
    if (i + 1 < shown(e)) buf_putc(out, '\n');
  }
  out->failed |= cell.failed;
  buf_free(&cell);
  return fit;
}

/* The columns that had no room, by name, in one line. */
static void put_others(View *w, Record *r, u32 from, Buf *out) {
  enum { MARK = 2 }; /* columns of " …" */
  buf_puts(out, "\n  … ");
  put_count(out, r->shape->count - from);
  buf_puts(out, " more:");
  size_t line = out->len;
  while (line && out->data[line - 1] != '\n') line--;
  for (u32 k = from; k < r->shape->count && !out->failed; k++) {
    const size_t before = out->len;
    buf_putc(out, ' ');
    put_key(w, r->shape->keys[k], out);
    const u32 room = k + 1 < r->shape->count ? w->width - MARK : w->width;
    if (out->failed || columns_of(out, line) <= room) continue;
    out->len = before;
    return buf_puts(out, " …");
  }
}

static void show_table(View *w, Record *r, i64 rows, Buf *out) {
  buf_puts(out, "record of ");
  put_count(out, r->shape->count);
  buf_puts(out, " columns, ");
  put_count(out, (u64)rows);
  buf_puts(out, " rows\n");
  const u32 fit = put_table(w, r, rows, out);
  if (fit < r->shape->count) put_others(w, r, fit, out);
}

void display_table(Vm *vm, Record *table, i64 rows, u32 shown, u32 width, Buf *out) {
  View w = {.vm = vm, .width = width, .rows = shown, .digits = DIGITS_USUAL};
  (void)put_table(&w, table, rows, out);
}

/* One item a line, `key: ` in front of it in a record. */
static void show_items(View *w, Value v, Buf *out) {
  bool record = v.kind == V_RECORD;
  i64 n = record ? v.record->shape->count : v.list->count;
  Edges e = edges(n, w->rows);
  u32 keys = 0;
  Buf key;
  buf_init(&key, &w->vm->alloc);
  for (i64 i = 0; record && i < shown(e); i++) {
    key.len = 0;
    put_key(w, v.record->shape->keys[item(e, i)], &key);
    u32 have = key.failed ? 0 : columns_of(&key, 0) + 2;
    if (have > keys && have <= w->width / 3) keys = have;
  }
  buf_putc(out, record ? '{' : '(');
  for (i64 i = 0; i < shown(e); i++) {
    if (gap_before(e, i)) {
      put_rest(w, (u64)(n - shown(e)), out);
      buf_puts(out, "\n ");
    }
    size_t line = out->len;
    if (record) {
      put_key(w, v.record->shape->keys[item(e, i)], out);
      buf_puts(out, ": ");
      u32 have = columns_of(out, line);
      put_blanks(out, keys > have ? keys - have : 0);
    }
    Value one = record ? v.record->items[item(e, i)] : v.list->items[item(e, i)];
    put_inline(w, one, line, w->width > 3 ? w->width - 3 : 1, 1, out);
    if (i + 1 < shown(e)) buf_puts(out, ",\n ");
  }
  buf_puts(out, record ? "}" : n == 1 ? ",)" : ")");
  buf_free(&key);
}

/* Numbers and short texts: a paragraph. */
static bool show_words(View *w, List *l, Buf *out) {
  enum { LOOKED = 64, WORD_MOST = 20 };
  for (u32 i = 0; i < l->count && i < LOOKED; i++) {
    Value v = l->items[i];
    if (v.kind != V_NUM && v.kind != V_NIL && !(v.kind == V_TEXT && v.text->count <= WORD_MOST)) return false;
  }
  u32 lines = 1, most = w->rows / 3 < 4 ? 4 : w->rows / 3;
  size_t line = 0;
  buf_putc(out, '(');
  for (u32 i = 0; i < l->count && !out->failed; i++) {
    size_t from = out->len;
    put_inline(w, l->items[i], from, w->width, 1, out);
    buf_puts(out, i + 1 < l->count ? "," : ")");
    if (columns_of(out, line) > w->width && from > line + 1) {
      out->len = from;
      if (lines++ >= most) {
        trim_line(out);
        buf_puts(out, "\n ");
        put_rest(w, l->count - i, out);
        buf_putc(out, ')');
        return true;
      }
      trim_line(out);
      buf_puts(out, "\n ");
      line = out->len - 1;
      put_inline(w, l->items[i], out->len, w->width, 1, out);
      buf_puts(out, i + 1 < l->count ? "," : ")");
    }
    if (i + 1 < l->count) buf_putc(out, ' ');
  }
  return true;
}

static void show_text(View *w, const Text *t, Buf *out) {
  enum { FOR_COUNT = 28 };
  u32 most = w->width * (w->rows / 2), room = most > 2 * FOR_COUNT ? most - FOR_COUNT : most;
  bool cut = w->cut;
  w->cut = false;
  put_text(w, t, text_columns(t->data, t->len) <= w->width ? most : room, out);
  if (w->cut) {
    buf_puts(out, "  (");
    put_count(out, t->count);
    buf_puts(out, " characters)");
  }
  w->cut |= cut;
}

/* ---- */

static View view_of(const WeftVM *w) {
  enum { WIDE = 80, NARROW = 20, HIGH = 20, LOW = 6, AROUND = 6 };
  struct winsize window = {0};
  View v = {.vm = w->vm, .width = WIDE, .rows = HIGH, .digits = w->digits ? w->digits : DIGITS_USUAL};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
    if (window.ws_col) v.width = window.ws_col < NARROW ? NARROW : window.ws_col;
    if (window.ws_row) v.rows = window.ws_row < LOW + AROUND ? LOW : window.ws_row - AROUND;
  }
  if (w->rows) v.rows = (u32)w->rows;
  return v;
}

u32 display_width(const WeftVM *w) { return view_of(w).width; }

void display_value(WeftVM *w, Value v, Buf *out) {
  View view = view_of(w);
  i64 rows;
  if (v.kind == V_ARRAY) return show_array(&view, v.array, out);
  if (v.kind == V_TEXT) return show_text(&view, v.text, out);
  if (is_table(w->vm, v, &rows)) return show_table(&view, v.record, rows, out);
  put_inline(&view, v, 0, view.width, 0, out);
  if (!view.cut || (v.kind != V_LIST && v.kind != V_RECORD)) return;
  out->len = 0;
  view.cut = false;
  if (v.kind == V_LIST && show_words(&view, v.list, out)) return;
  out->len = 0;
  show_items(&view, v, out);
}

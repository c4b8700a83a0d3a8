/* csv_numbers.c — tables of plain numbers, read block by block into their columns.
 *
 * Most large tables hold nothing but numbers below a line of names. They need neither the whole text in memory nor a
 * list of their fields: one pass counts the rows, a second one reads numbers where they stand. What is anything else
 * is left to csv.c, which reads the file from its start. */
#include "stdlib/files/csv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 18 }; /* bytes; a line is no longer */

typedef struct Column {
  i64 *ints; /* the array's numbers: one of the two */
  f64 *floats;
} Column;

typedef struct Reading {
  Vm *vm;
  int fd;
  u64 at; /* in the file, of the next block */
  char sep;
  u32 columns;
  i64 rows, row;
  char *block; /* BLOCK bytes and one more */
  Column *to;
  Value *arrays;
} Reading;

/* Up to n bytes; fewer at the end of the file, or when it cannot be read. */
static size_t read_block(Reading *r, char *to, size_t n) {
  size_t have = 0;
  while (have < n) {
    ssize_t got = pread(r->fd, to + have, n - have, (off_t)r->at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += (size_t)got;
    r->at += (u64)got;
  }
  return have;
}

/* Lines that are not empty. False: a quote stands somewhere. */
static WeftStatus count_rows(Reading *r, bool *plain) {
  char before = '\n';
  *plain = true;
  for (size_t n; *plain && (n = read_block(r, r->block, BLOCK)) > 0;) {
    const char *const end = r->block + n, *p = r->block;
    *plain = !memchr(p, '"', n);
    i64 lines = r->rows;
    for (; (p = memchr(p, '\n', (size_t)(end - p))); p++) r->rows += (p > r->block ? p[-1] : before) != '\n';
    before = end[-1];
    TRY(vm_poll(r->vm, 1 + (u64)(r->rows - lines) / 1024));
  }
  r->rows += before != '\n';
  return WEFT_OK;
}

/* Column c has a number that is no integer, or none: its integers so far become floats. */
static WeftStatus become_floats(Reading *r, u32 c) {
  Value floats;
  TRY(array_new(r->vm, DT_f64, 1, &r->rows, &floats));
  f64 *to = (f64 *)floats.array->data;
  for (i64 i = 0; i < r->row; i++) to[i] = (f64)r->to[c].ints[i];
  value_drop(r->vm, r->arrays[c]);
  r->arrays[c] = floats;
  r->to[c] = (Column){.floats = to};
  return WEFT_OK;
}

/* What stands at s is no number that number_read takes alone: some other one, nothing, or *done becomes false. */
static const char *other_field(const Reading *r, const char *s, const char *end, FieldKind *kind, FieldValue *v) {
  const char *stop = s;
  while (stop < end && *stop != r->sep && *stop != '\n' && *stop != '\r') stop++;
  *kind = csv_kind(s, (size_t)(stop - s), '.', v);
  return stop;
}

/* The row at *s, which a line's end follows before `end`. *done false: it is none of `columns` numbers. */
static WeftStatus read_row(Reading *r, const char **s, const char *end, bool *done) {
  const char *p = *s;
  for (u32 c = 0; c < r->columns; c++) {
    const char *first = p;
    FieldValue v = {0};
    f64 x = 0.0;
    bool whole = false;
    while ((*p == ' ' || *p == '\t') && *p != r->sep) p++;
    p = number_read(p, end, &whole, &v.i, &x);
    while (p && (*p == ' ' || *p == '\t') && *p != r->sep) p++;
    FieldKind kind = whole ? FIELD_INT : FIELD_FLOAT;
    if (!p || (*p != r->sep && *p != '\n' && *p != '\r')) {
      p = other_field(r, first, end, &kind, &v);
      x = v.f;
    }
    const bool last = c + 1 == r->columns;
    *done = kind <= FIELD_FLOAT && (last ? *p != r->sep : *p == r->sep);
    if (!*done) return WEFT_OK;
    if (UNLIKELY(r->to[c].ints && kind != FIELD_INT)) TRY(become_floats(r, c));
    if (r->to[c].ints) r->to[c].ints[r->row] = v.i;
    else r->to[c].floats[r->row] = kind == FIELD_FLOAT ? x : kind == FIELD_INT ? (f64)v.i : __builtin_nan("");
    p += !last;
  }
  *s = p;
  return WEFT_OK;
}

/* The end of a line at *s. False: a carriage return stands alone. */
static bool end_line(const char **s) {
  *s += **s == '\r';
  return *(*s)++ == '\n';
}

static WeftStatus read_rows(Reading *r, bool *done) {
  size_t left = 0; /* of the last line of a block */
  *done = true;
  for (bool more = true; *done && more;) {
    size_t n = read_block(r, r->block + left, BLOCK - left);
    more = n == BLOCK - left;
    char *end = r->block + left + n;
    const char *p = r->block;
    if (!more && end > r->block && end[-1] != '\n') *end++ = '\n';
    while (end > r->block && end[-1] != '\n') end--; /* behind the last line that is whole */
    left = (size_t)(r->block + left + n - end) * more;
    *done = end > r->block || !more;
    i64 first = r->row;
    while (*done && p < end) {
      if (*p == '\n' || *p == '\r') {
        *done = end_line(&p);
        continue;
      }
      *done = r->row < r->rows;
      if (*done) TRY(read_row(r, &p, end, done));
      if (*done) *done = end_line(&p);
      r->row++;
    }
    if (left) memmove(r->block, end, left);
    TRY(vm_poll(r->vm, 1 + (u64)(r->row - first) / 1024));
  }
  *done &= r->row == r->rows;
  return WEFT_OK;
}

WeftStatus csv_number_columns(Vm *vm, int fd, u64 begin, char sep, u32 columns, Value *out, bool *done) {
  Reading r = {.vm = vm, .fd = fd, .at = begin, .sep = sep, .columns = columns, .arrays = out};
  *done = false;
  u32 made = 0;
  WeftStatus status = WEFT_OK;
  r.block = mem_alloc(&vm->alloc, BLOCK + 1);
  r.to = mem_alloc(&vm->alloc, sizeof *r.to * columns);
  if (!r.block || !r.to) status = vm_error_memory(vm);
  bool plain = false;
  if (status == WEFT_OK) status = count_rows(&r, &plain);
  plain &= r.rows > 0;
  for (; status == WEFT_OK && plain && made < columns; made += status == WEFT_OK) {
    status = array_new(vm, DT_i64, 1, &r.rows, &out[made]);
    if (status == WEFT_OK) r.to[made] = (Column){.ints = (i64 *)out[made].array->data};
  }
  r.at = begin;
  if (status == WEFT_OK && plain) status = read_rows(&r, done);
  if (status != WEFT_OK) *done = false;
  while (!*done && made) value_drop(vm, out[--made]);
  mem_free(&vm->alloc, r.block, BLOCK + 1);
  mem_free(&vm->alloc, r.to, sizeof *r.to * columns);
  return status;
}

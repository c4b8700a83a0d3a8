/* csv.c — tables of text as records of columns (RFC 4180, any one-byte separator).
 *
 * What save_csv writes, load_csv reads back: texts that would be taken for something else, as "1" or "", are quoted,
 * and a quoted field is text. */
#include "stdlib/files/csv.h"
#include "stdlib/text/text.h"
#include "stdlib/text/format.h"
#include "stdlib/array/make.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Field {
  u32 at, len; /* in Table.text, unquoted; the byte before a quoted one is its quote */
} Field;

typedef struct Form { /* how numbers, comments and missing values are written */
  char sep, decimal;
  const Text *comment; /* lines that begin so are no rows; NULL: none */
  const List *na;      /* texts of missing values beside the empty field; NULL: none */
  const Record *dtype; /* of columns by name: a dtype, or "text"; NULL: what the fields look like */
} Form;

typedef struct Table {
  Allocator *alloc;
  Form form;
  char *text; /* fields are unquoted in place */
  VEC(Field) fields;
  u32 columns, rows;
  Value *made; /* the columns, where they are there already; they go into the record */
} Table;

static WeftStatus bad(Vm *vm, const char *path, u64 line, const char *what) {
  return vm_error(vm, EK_io, "load_csv: \"%s\" line %llu: %s", path, (unsigned long long)line, what);
}

/* byte order mark */
static bool is_mark(const char *s, size_t n) { return n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0; }

/* ---- fields ------------------------------------------------------------------------------------------------ */

/* Behind a line's end at i: LF, CR, or CR LF. */
static size_t next_line(const char *text, size_t len, size_t i) {
  return i + 1 + (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n');
}

/* Of the field at *i, whose quote stands there; *i: behind the closing one. *line counts the lines. */
static bool quoted_field(Table *t, size_t len, size_t *i, u64 *line, Field *f) {
  char *s = t->text;
  size_t at = *i + 1, to = at;
  f->at = (u32)at;
  for (;; at++) {
    if (at == len) return false;
    if (s[at] == '"') {
      if (at + 1 == len || s[at + 1] != '"') break;
      at++;
    }
    *line += s[at] == '\r' || (s[at] == '\n' && s[at - 1] != '\r');
    s[to++] = s[at];
  }
  f->len = (u32)(to - f->at);
  *i = at + 1;
  return true;
}

static bool is_comment(const Table *t, size_t len, size_t i) {
  const Text *c = t->form.comment;
  return c && len - i >= c->len && memcmp(t->text + i, c->data, c->len) == 0;
}

static WeftStatus split_table(Vm *vm, Table *t, size_t len, const char *path) {
  const char sep = t->form.sep;
  bool stops[256] = {['\n'] = true, ['\r'] = true};
  size_t i = is_mark(t->text, len) ? 3 : 0;
  u64 line = 1;
  stops[(u8)sep] = true;
  while (i < len) {
    u64 first_line = line;
    u32 in_row = 0;
    if (t->text[i] == '\n' || t->text[i] == '\r') { /* an empty line */
      i = next_line(t->text, len, i);
      line++;
      continue;
    }
    if ((line & 1023) == 0) TRY(vm_poll(vm, 1));
    if (is_comment(t, len, i)) {
      while (i < len && t->text[i] != '\n' && t->text[i] != '\r') i++;
      continue;
    }
    for (bool more = true; more; i += more) {
      Field f = {.at = (u32)i};
      if (i < len && t->text[i] == '"') {
        if (!quoted_field(t, len, &i, &line, &f)) return bad(vm, path, first_line, "a quoted field does not end");
        if (i < len && !stops[(u8)t->text[i]]) return bad(vm, path, line, "text follows a quoted field");
      } else {
        while (i < len && !stops[(u8)t->text[i]]) i++;
        f.len = (u32)(i - f.at);
      }
      if (!vec_push(t->alloc, &t->fields, f)) return vm_error_memory(vm);
      in_row++;
      more = i < len && t->text[i] == sep;
    }
    if (i < len) i = next_line(t->text, len, i);
    line++;
    if (t->rows == 0) t->columns = in_row;
    if (in_row != t->columns) {
      char why[80];
      snprintf(why, sizeof why, "has %u fields where the first row has %u", in_row, t->columns);
      return bad(vm, path, first_line, why);
    }
    t->rows++;
  }
  return WEFT_OK;
}

static Field field_of(const Table *t, u32 row, u32 column) { return t->fields.data[(size_t)row * t->columns + column]; }
static bool is_quoted(const Table *t, Field f) { return f.at && t->text[f.at - 1] == '"'; }

/* ---- what a field is ---------------------------------------------------------------------------------------- */

static void trim(const char **s, size_t *n) {
  while (*n && (**s == ' ' || **s == '\t')) ++*s, --*n;
  while (*n && ((*s)[*n - 1] == ' ' || (*s)[*n - 1] == '\t')) --*n;
}

static bool as_int(const char *s, size_t n, i64 *out) {
  size_t i = n && (*s == '-' || *s == '+') ? 1 : 0;
  if (i == n || n > 20) return false;
  i64 v = 0;
  for (; i < n; i++) {
    if (s[i] < '0' || s[i] > '9') return false;
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s[i] - '0', &v)) return false;
  }
  if (*s != '-' && v == INT64_MIN) return false;
  *out = *s == '-' ? v : -v;
  return true;
}

static bool as_natural(const char *s, size_t n, u64 *out) {
  size_t i = n && *s == '+' ? 1 : 0;
  if (i == n) return false;
  for (*out = 0; i < n; i++)
    if (s[i] < '0' || s[i] > '9' || __builtin_mul_overflow(*out, 10, out) ||
        __builtin_add_overflow(*out, (u64)(s[i] - '0'), out))
      return false;
  return true;
}

/* true, True or TRUE; false in the same ways. */
static bool as_bool(const char *s, size_t n, bool *out) {
  static const char *const words[] = {"false", "true", "False", "True", "FALSE", "TRUE"};
  for (u32 i = 0; i < COUNT_OF(words); i++)
    if (strlen(words[i]) == n && memcmp(words[i], s, n) == 0) {
      *out = i & 1;
      return true;
    }
  return false;
}

/* A number whose fraction stands behind a comma. */
static bool with_comma(const char *s, size_t n, f64 *out) {
  char plain[64];
  if (n >= sizeof plain || memchr(s, '.', n)) return false;
  for (size_t i = 0; i < n; i++) plain[i] = s[i] == ',' ? '.' : s[i];
  return text_parse_f64(plain, n, out);
}

FieldKind csv_kind(const char *s, size_t n, char decimal, FieldValue *out) {
  trim(&s, &n);
  if (n == 0) return FIELD_EMPTY;
  if (as_int(s, n, &out->i)) return FIELD_INT;
  if (decimal == '.' ? text_parse_f64(s, n, &out->f) : with_comma(s, n, &out->f)) return FIELD_FLOAT;
  return as_bool(s, n, &out->b) ? FIELD_BOOL : FIELD_TEXT;
}

static bool is_missing(const Table *t, const char *s, size_t n) {
  const List *na = t->form.na;
  trim(&s, &n);
  for (u32 i = 0; na && i < na->count; i++)
    if (na->items[i].text->len == n && memcmp(na->items[i].text->data, s, n) == 0) return true;
  return false;
}

static FieldKind field_kind(const Table *t, Field f, FieldValue *out) {
  if (is_quoted(t, f)) return FIELD_TEXT;
  return is_missing(t, t->text + f.at, f.len) ? FIELD_EMPTY : csv_kind(t->text + f.at, f.len, t->form.decimal, out);
}

/* ---- columns ------------------------------------------------------------------------------------------------- */

static WeftStatus text_column(Vm *vm, const Table *t, u32 column, u32 first, Value *out) {
  if (!list_new(vm, t->rows - first, out)) return WEFT_ERROR;
  for (u32 r = first; r < t->rows; r++) {
    Field f = field_of(t, r, column);
    Value text;
    if (!text_new(vm, t->text + f.at, f.len, &text)) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
    TRY(list_add(vm, out, text));
  }
  return WEFT_OK;
}

/* *all: each field is a bool; *out is the column then. */
static WeftStatus bool_column(Vm *vm, const Table *t, u32 column, u32 first, Value *out, bool *all) {
  i64 n = t->rows - first;
  FieldValue v;
  TRY(array_new(vm, DT_bool, 1, &n, out));
  *all = true;
  for (u32 r = first; r < t->rows && *all; r++) {
    *all = field_kind(t, field_of(t, r, column), &v) == FIELD_BOOL;
    if (*all) ((u8 *)out->array->data)[r - first] = v.b;
  }
  if (!*all) value_drop(vm, *out);
  return WEFT_OK;
}

/* *all: each field is an integer of u64, which i64 need not hold; *out is the column then. */
static WeftStatus natural_column(Vm *vm, const Table *t, u32 column, u32 first, Value *out, bool *all) {
  i64 n = t->rows - first;
  TRY(array_new(vm, DT_u64, 1, &n, out));
  *all = true;
  for (u32 r = first; r < t->rows && *all; r++) {
    const Field f = field_of(t, r, column);
    const char *s = t->text + f.at;
    size_t length = f.len;
    trim(&s, &length);
    *all = !is_quoted(t, f) && as_natural(s, length, &((u64 *)out->array->data)[r - first]);
  }
  if (!*all) value_drop(vm, *out);
  return WEFT_OK;
}

/* *all: each field is a number or empty; *out is the column then: i64 when all are integers that fit, else f64, nan for
 * an empty field. */
static WeftStatus number_column(Vm *vm, const Table *t, u32 column, u32 first, Value *out, bool *all) {
  i64 n = t->rows - first;
  bool ints = n > 0;
  FieldValue v;
  TRY(array_new(vm, ints ? DT_i64 : DT_f64, 1, &n, out));
  *all = true;
  for (u32 r = first; r < t->rows; r++) {
    FieldKind kind = field_kind(t, field_of(t, r, column), &v);
    if (kind > FIELD_FLOAT) {
      *all = false;
      value_drop(vm, *out);
      return WEFT_OK;
    }
    if (ints && kind != FIELD_INT) {
      Value floats;
      if (array_new(vm, DT_f64, 1, &n, &floats) != WEFT_OK) {
        value_drop(vm, *out);
        return WEFT_ERROR;
      }
      for (u32 k = 0; k < r - first; k++) ((f64 *)floats.array->data)[k] = (f64)((const i64 *)out->array->data)[k];
      value_drop(vm, *out);
      *out = floats;
      ints = false;
    }
    if (ints) ((i64 *)out->array->data)[r - first] = v.i;
    else
      ((f64 *)out->array->data)[r - first] = kind == FIELD_EMPTY ? __builtin_nan("")
                                                                 : kind == FIELD_INT ? (f64)v.i : v.f;
  }
  return WEFT_OK;
}

static WeftStatus column_value(Vm *vm, const Table *t, u32 column, u32 first, Value *out) {
  FieldValue v;
  FieldKind kind = first < t->rows ? field_kind(t, field_of(t, first, column), &v) : FIELD_EMPTY;
  bool all = false;
  TRY(vm_poll(vm, 1 + (t->rows >> 10)));
  if (kind == FIELD_BOOL) TRY(bool_column(vm, t, column, first, out, &all));
  else if (kind != FIELD_TEXT) TRY(number_column(vm, t, column, first, out, &all));
  return all ? WEFT_OK : text_column(vm, t, column, first, out);
}

/* Is element `at` of the column a value of the dtype? Of an integer dtype: a whole number in its range. */
static bool is_of_dtype(const Array *plain, u32 at, u32 dtype) {
  if (dtype_kind(dtype) != DK_INT) return true;
  const bool ints = array_dtype(plain) == DT_i64;
  const i64 i = ints ? ((const i64 *)plain->data)[at] : 0;
  if (ints) return i >= dtype_int_min(dtype) && (i < 0 || (u64)i <= dtype_int_max(dtype));
  const f64 x = ((const f64 *)plain->data)[at];
  return x == __builtin_floor(x) && x >= (f64)dtype_int_min(dtype) && x < (f64)dtype_int_max(dtype) + 1.0;
}

static WeftStatus is_no(Vm *vm, const Table *t, u32 column, u32 first, const char *name, u32 row, u32 dtype) {
  const Field f = field_of(t, row, column);
  return vm_error(vm, EK_value, "load_csv: column \"%.60s\", row %u: \"%.*s\" is no %s", name, row - first,
                  (int)(f.len < 40 ? f.len : 40), t->text + f.at, dtype_name(dtype));
}

/* A column of the dtype that was asked for. */
static WeftStatus column_as(Vm *vm, const Table *t, u32 column, u32 first, const char *name, u32 dtype, Value *out) {
  FieldValue v;
  Value plain;
  bool all = false;
  if (dtype == DT_bool) TRY(bool_column(vm, t, column, first, out, &all));
  if (dtype == DT_u64) TRY(natural_column(vm, t, column, first, out, &all));
  if (all) return WEFT_OK;
  TRY(number_column(vm, t, column, first, &plain, &all));
  if (all) {
    WeftStatus status = WEFT_OK;
    for (u32 r = first; r < t->rows && status == WEFT_OK; r++)
      if (!is_of_dtype(plain.array, r - first, dtype)) status = is_no(vm, t, column, first, name, r, dtype);
    if (status == WEFT_OK) status = convert_value(vm, OP_load_csv, plain, dtype, out);
    value_drop(vm, plain);
    return status;
  }
  for (u32 r = first; r < t->rows; r++) {
    if (field_kind(t, field_of(t, r, column), &v) > FIELD_FLOAT) return is_no(vm, t, column, first, name, r, dtype);
  }
  return WEFT_ERROR;
}

/* As `dtype` asks for it by the column's name, else as its fields look. */
static WeftStatus named_column(Vm *vm, const Table *t, u32 column, u32 first, Name key, Value *out) {
  const Value *wanted = t->form.dtype ? record_find(t->form.dtype, key) : NULL;
  const char *name = name_text(&vm->names, key);
  if (!wanted) return column_value(vm, t, column, first, out);
  if (wanted->kind == V_DTYPE) return column_as(vm, t, column, first, name, wanted->dtype, out);
  if (wanted->kind == V_TEXT && strcmp(wanted->text->data, "text") == 0)
    return text_column(vm, t, column, first, out);
  return vm_error(vm, EK_type, "load_csv: dtype of column \"%.60s\" must be a dtype or \"text\", got %s", name,
                  value_type_name(*wanted));
}

/* The name of a column, counted; without one it is `c` and its number. */
static bool column_name(Vm *vm, const Table *t, u32 column, bool header, Name *out) {
  char made[24];
  const char *s = made;
  size_t n = 0;
  bool named = false;
  if (header) {
    Field f = field_of(t, 0, column);
    s = t->text + f.at;
    n = f.len;
    named = is_quoted(t, f);
    if (!named) trim(&s, &n);
    named |= n > 0;
  }
  if (!named) {
    s = made;
    n = (size_t)snprintf(made, sizeof made, "c%u", column);
  }
  *out = n ? name_counted(&vm->names, s, n) : 0;
  return *out || !n;
}

static WeftStatus table_record(Vm *vm, const Table *t, bool header, const char *path, Value *out) {
  u32 first = header && t->rows ? 1 : 0;
  if (!record_new(vm, out)) return WEFT_ERROR;
  for (u32 c = 0; c < t->columns; c++) {
    Value column;
    Name key;
    WeftStatus status = column_name(vm, t, c, header, &key) ? WEFT_OK : vm_error_memory(vm);
    const bool named = status == WEFT_OK;
    if (status == WEFT_OK && record_find(out->record, key)) status = bad(vm, path, 1, "names a column twice");
    if (status == WEFT_OK && t->made) {
      column = t->made[c];
      t->made[c] = value_nil();
    } else if (status == WEFT_OK) {
      status = named_column(vm, t, c, first, key, &column);
    }
    if (status == WEFT_OK && !record_set(vm, out, key, column)) status = WEFT_ERROR;
    if (named) name_drop(&vm->names, key);
    if (status != WEFT_OK) {
      value_drop(vm, *out);
      return status;
    }
  }
  return WEFT_OK;
}

/* The first row names the columns when one of its fields is text. */
static bool has_header(const Table *t) {
  FieldValue v;
  for (u32 c = 0; c < t->columns; c++)
    if (field_kind(t, t->fields.data[c], &v) == FIELD_TEXT) return true;
  return false;
}

/* Columns that `dtype` names and the table has not. */
static WeftStatus check_dtypes(Vm *vm, const Record *dtype, Value *table) {
  for (u32 i = 0; dtype && i < dtype->shape->count; i++) {
    const Name key = dtype->shape->keys[i];
    if (record_find(table->record, key)) continue;
    value_drop(vm, *table);
    return vm_error(vm, EK_key, "load_csv: dtype names a column \"%.60s\" that is not there",
                    name_text(&vm->names, key));
  }
  return WEFT_OK;
}

static WeftStatus csv_decode(Vm *vm, const char *path, char *data, size_t len, const Form *form, int header,
                             Value *out) {
  Table t = {.alloc = &vm->alloc, .form = *form, .text = data};
  u64 line = utf8_bad_line(data, len);
  if (line) return bad(vm, path, line, "is not UTF-8");
  WeftStatus status = split_table(vm, &t, len, path);
  if (status == WEFT_OK && t.rows == 0) status = vm_error(vm, EK_io, "load_csv: \"%s\" holds no rows", path);
  if (status == WEFT_OK) status = table_record(vm, &t, header < 0 ? has_header(&t) : header, path, out);
  if (status == WEFT_OK) status = check_dtypes(vm, form->dtype, out);
  vec_free(&vm->alloc, &t.fields);
  return status;
}

/* ---- large tables of numbers ------------------------------------------------------------------------------- */

/* A character that stands in no number. */
static bool separates_numbers(char sep) {
  return !((sep >= '0' && sep <= '9') || ((sep | 0x20) >= 'a' && (sep | 0x20) <= 'z') || strchr("+-.", sep));
}

/* The first line of a file, with its end, at most `size` bytes; 0: it is empty, longer, or holds a quote. *begin: where
 * it stands. */
static size_t first_line(int fd, char *line, size_t size, u64 *begin) {
  ssize_t n = pread(fd, line, size, 0);
  if (n <= 0) return 0;
  *begin = is_mark(line, (size_t)n) ? 3 : 0;
  memmove(line, line + *begin, (size_t)n - *begin);
  const char *end = memchr(line, '\n', (size_t)n - *begin);
  size_t len = end ? (size_t)(end + 1 - line) : 0;
  return len && line[0] != '\n' && line[0] != '\r' && !memchr(line, '"', len) ? len : 0;
}

/* A large file of numbers, without options that change what they are. *done false: it is something else. */
static WeftStatus numbers_of_file(Vm *vm, int fd, const char *path, const Form *form, int header, Value *out,
                                  bool *done) {
  enum { LINE = 1 << 16 };
  Table t = {.alloc = &vm->alloc, .form = *form};
  u64 begin = 0;
  *done = false;
  t.text = mem_alloc(&vm->alloc, LINE);
  if (!t.text) return vm_error_memory(vm);
  WeftStatus status = WEFT_OK;
  size_t len = first_line(fd, t.text, LINE, &begin);
  const bool cr = len && memchr(t.text, '\r', len) != NULL, at_end = len > 1 && t.text[len - 2] == '\r';
  if (len && !utf8_bad_line(t.text, len) && (!cr || at_end)) {
    status = split_table(vm, &t, len, path);
    const bool named = status == WEFT_OK && t.rows == 1 && (header < 0 ? has_header(&t) : header);
    size_t size = sizeof *t.made * t.columns;
    if (status == WEFT_OK && t.rows == 1 && !(t.made = mem_alloc(&vm->alloc, size))) status = vm_error_memory(vm);
    if (status == WEFT_OK && t.made)
      status = csv_number_columns(vm, fd, begin + (named ? len : 0), form->sep, t.columns, t.made, done);
    if (status == WEFT_OK && *done) {
      status = table_record(vm, &t, named, path, out);
      for (u32 c = 0; c < t.columns; c++) value_drop(vm, t.made[c]);
    }
    mem_free(&vm->alloc, t.made, size);
  }
  vec_free(&vm->alloc, &t.fields);
  mem_free(&vm->alloc, t.text, LINE);
  return status;
}

static WeftStatus try_numbers(Vm *vm, const char *path, const Form *form, int header, Value *out, bool *done) {
  enum { LEAST = 1 << 16 }; /* bytes: shorter files are read at once */
  *done = false;
  if (form->decimal != '.' || form->comment || form->na || form->dtype || !separates_numbers(form->sep))
    return WEFT_OK;
  if (vm->files) return WEFT_OK;
  struct stat about; /* a pipe must not be opened twice: who writes to it would be gone */
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size < LEAST) return WEFT_OK;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return WEFT_OK;
  bool large = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size >= LEAST &&
               (u64)about.st_size <= TEXT_FILE_MOST;
  WeftStatus status = large ? numbers_of_file(vm, fd, path, form, header, out, done) : WEFT_OK;
  close(fd);
  return status;
}

static WeftStatus separator(Vm *vm, u32 op, u32 param, Value v, char *out) {
  if (!args_given(v)) return WEFT_OK;
  if (v.kind != V_TEXT || v.text->len != 1 || strchr("\"\n\r", v.text->data[0]))
    return args_error(vm, op, param, v, "a text of one ASCII character, no quote and no end of a line");
  *out = v.text->data[0];
  return WEFT_OK;
}

/* decimal, comment, na, dtype. */
static WeftStatus form_of(Vm *vm, const Value *args, Form *out) {
  static const char *const points[] = {".", ",", NULL};
  const u32 op = OP_load_csv;
  u32 comma = 0;
  TRY(args_choice(vm, op, 3, args[3], points, &comma));
  out->decimal = *points[comma];
  if (out->decimal == out->sep)
    return vm_error(vm, EK_value, "load_csv: sep and decimal are both \"%c\"; sep=\";\" is usual then", out->sep);
  if (args_given(args[4])) {
    if (args[4].kind != V_TEXT || !args[4].text->len || strpbrk(args[4].text->data, "\"\r\n"))
      return args_error(vm, op, 4, args[4], "a text without quotes and ends of lines");
    out->comment = args[4].text;
  }
  if (args_given(args[5])) {
    if (args[5].kind != V_LIST || !list_boxed(vm, args[5].list))
      return vm->error.raised ? WEFT_ERROR : args_error(vm, op, 5, args[5], "a list of texts");
    for (u32 i = 0; i < args[5].list->count; i++)
      if (args[5].list->items[i].kind != V_TEXT)
        return args_error(vm, op, 5, args[5].list->items[i], "a list of texts");
    out->na = args[5].list;
  }
  if (args_given(args[6])) {
    if (args[6].kind != V_RECORD) return args_error(vm, op, 6, args[6], "a record of dtypes by column");
    out->dtype = args[6].record;
  }
  return WEFT_OK;
}

WeftStatus eager_load_csv(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char *data;
  Form form = {.sep = ','};
  size_t len, cap;
  bool header = false;
  TRY(file_path(vm, OP_load_csv, args[0], &path));
  TRY(args_bool(vm, OP_load_csv, 1, args[1], &header));
  TRY(separator(vm, OP_load_csv, 2, args[2], &form.sep));
  TRY(form_of(vm, args, &form));
  bool done;
  TRY(try_numbers(vm, path, &form, args_given(args[1]) ? header : -1, out, &done));
  if (done) return WEFT_OK;
  TRY(file_read(vm, OP_load_csv, path, TEXT_FILE_MOST, &data, &len, &cap));
  WeftStatus status = csv_decode(vm, path, data, len, &form, args_given(args[1]) ? header : -1, out);
  mem_free(&vm->alloc, data, cap);
  return status;
}

/* ---- saving -------------------------------------------------------------------------------------------------- */

/* Would it be read as what it is without quotes? A name of a column loses blanks at its ends. */
static bool needs_quotes(const char *s, size_t n, char sep, bool name) {
  FieldValue v;
  if (csv_kind(s, n, '.', &v) != FIELD_TEXT || is_mark(s, n)) return true;
  if (name && (strchr(" \t", s[0]) || strchr(" \t", s[n - 1]))) return true;
  for (size_t i = 0; i < n; i++)
    if (s[i] == sep || s[i] == '"' || s[i] == '\n' || s[i] == '\r') return true;
  return false;
}

static void put_field(const char *s, size_t n, char sep, bool name, Buf *b) {
  if (!needs_quotes(s, n, sep, name)) {
    buf_put(b, s, n);
    return;
  }
  buf_putc(b, '"');
  for (size_t i = 0; i < n && !b->failed; i++) {
    if (s[i] == '"') buf_putc(b, '"');
    buf_putc(b, s[i]);
  }
  buf_putc(b, '"');
}

static void put_value(Vm *vm, Value v, char sep, Buf *b) {
  if (v.kind == V_NUM) format_number(v, b);
  else if (v.kind == V_TEXT) put_field(v.text->data, v.text->len, sep, false, b);
  else {
    Buf text;
    buf_init_like(&text, b);
    format_value(vm, v, true, &text);
    put_field(buf_text(&text), text.len, sep, false, b);
    b->failed |= text.failed;
    buf_free(&text);
  }
}

/* *rows: of all columns. */
static WeftStatus check_columns(Vm *vm, const Record *r, i64 *rows) {
  *rows = -1;
  if (!r->shape->count) return vm_error(vm, EK_value, "save_csv: the record has no columns");
  for (u32 c = 0; c < r->shape->count; c++) {
    Value v = value_untracked(r->items[c]);
    i64 n = v.kind == V_LIST ? (i64)v.list->count : v.kind == V_ARRAY && array_rank(v.array) == 1 ? v.array->size : -1;
    const char *name = name_text(&vm->names, r->shape->keys[c]);
    if (n < 0) {
      char what[DESCRIBED];
      args_describe(v, what, sizeof what);
      return vm_error(vm, EK_type, "save_csv: column \"%s\" must be an array of rank 1 or a list, got %s", name, what);
    }
    if (v.kind == V_LIST && !list_boxed(vm, v.list)) return WEFT_ERROR;
    if (v.kind == V_ARRAY && array_device(v.array) != DEV_CPU)
      return vm_error(vm, EK_unsupported, "save_csv: not supported: column \"%s\" lies on another device", name);
    if (*rows >= 0 && n != *rows)
      return vm_error(vm, EK_value, "save_csv: column \"%s\" has %lld rows, the first has %lld", name, (long long)n,
                      (long long)*rows);
    *rows = n;
  }
  return WEFT_OK;
}

WeftStatus eager_save_csv(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char sep = ',';
  i64 rows;
  TRY(file_path(vm, OP_save_csv, args[0], &path));
  if (args[1].kind != V_RECORD) return args_error(vm, OP_save_csv, 1, args[1], "a record of columns");
  TRY(separator(vm, OP_save_csv, 2, args[2], &sep));
  if (!separates_numbers(sep))
    return args_error(vm, OP_save_csv, 2, args[2],
                      "a character that stands in no number: no digit, letter, point or sign");
  const Record *r = args[1].record;
  TRY(check_columns(vm, r, &rows));
  Buf b;
  vm_buf_init(vm, &b);
  for (u32 c = 0; c < r->shape->count; c++) {
    if (c) buf_putc(&b, sep);
    put_field(name_text(&vm->names, r->shape->keys[c]), name_len(&vm->names, r->shape->keys[c]), sep, true, &b);
  }
  buf_putc(&b, '\n');
  WeftStatus status = WEFT_OK;
  for (i64 i = 0; i < rows && !b.failed && status == WEFT_OK; i++) {
    for (u32 c = 0; c < r->shape->count; c++) {
      Value v = value_untracked(r->items[c]);
      if (c) buf_putc(&b, sep);
      NumBox box;
      if (v.kind == V_ARRAY) format_number(array_borrow(v.array, i * array_strides(v.array)[0], &box), &b);
      else put_value(vm, value_untracked(v.list->items[i]), sep, &b);
    }
    buf_putc(&b, '\n');
    if ((i & 1023) == 1023) status = vm_poll(vm, 1);
  }
  if (status == WEFT_OK)
    status = b.failed ? vm_error_buf(vm) : file_write(vm, OP_save_csv, path, buf_text(&b), b.len);
  buf_free(&b);
  *out = value_nil();
  return status;
}

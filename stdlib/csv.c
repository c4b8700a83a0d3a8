/* csv.c — tables of text as records of columns (RFC 4180, any one-byte separator). */
#include "stdlib/files.h"
#include "stdlib/format.h"
#include "stdlib/make.h"

#include <stdio.h>
#include <string.h>

typedef struct Field {
  u32 at, len; /* in Table.text, unquoted */
} Field;

typedef struct Table {
  Allocator *alloc;
  char *text; /* fields are unquoted in place */
  VEC(Field) fields;
  u32 columns, rows;
} Table;

static WeftStatus bad(Vm *vm, const char *path, u32 line, const char *what) {
  return vm_error(vm, EK_io, "load_csv: \"%s\" line %u: %s", path, line, what);
}

static WeftStatus split_table(Vm *vm, Table *t, size_t len, char sep, const char *path) {
  size_t i = 0;
  u32 line = 1;
  if (len >= 3 && memcmp(t->text, "\xEF\xBB\xBF", 3) == 0) i = 3; /* byte order mark */
  while (i < len) {
    u32 in_row = 0, first_line = line;
    if (t->text[i] == '\n' || (t->text[i] == '\r' && i + 1 < len && t->text[i + 1] == '\n')) { /* an empty line */
      i += t->text[i] == '\r' ? 2 : 1;
      line++;
      continue;
    }
    for (bool more = true; more;) {
      Field f = {.at = (u32)i};
      size_t to = i;
      if (i < len && t->text[i] == '"') {
        i++;
        for (;; i++) {
          if (i == len) return bad(vm, path, first_line, "a quoted field does not end");
          if (t->text[i] == '"') {
            if (i + 1 < len && t->text[i + 1] == '"') i++;
            else break;
          }
          line += t->text[i] == '\n';
          t->text[to++] = t->text[i];
        }
        i++;
        if (i < len && t->text[i] != sep && t->text[i] != '\n' && t->text[i] != '\r') return bad(vm, path, line, "text follows a quoted field");
      } else {
        while (i < len && t->text[i] != sep && t->text[i] != '\n') i++;
        to = i;
        if (to > f.at && t->text[to - 1] == '\r' && (i == len || t->text[i] == '\n')) to--;
      }
      f.len = (u32)(to - f.at);
      if (!vec_push(t->alloc, &t->fields, f)) return vm_error_memory(vm);
      in_row++;
      if (i < len && t->text[i] == '\r') i++;
      more = i < len && t->text[i] == sep;
      if (more) i++;
    }
    if (i < len && t->text[i] == '\n') i++;
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

static void trimmed(const Table *t, Field f, const char **s, size_t *n) {
  const char *at = t->text + f.at, *end = at + f.len;
  while (at < end && (*at == ' ' || *at == '\t')) at++;
  while (end > at && (end[-1] == ' ' || end[-1] == '\t')) end--;
  *s = at;
  *n = (size_t)(end - at);
}

static bool field_int(const char *s, size_t n, i64 *out) {
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

static bool field_number(const Table *t, Field f, f64 *out) {
  const char *s;
  size_t n;
  trimmed(t, f, &s, &n);
  return text_parse_f64(s, n, out);
}

enum { COL_INT, COL_FLOAT, COL_TEXT };

/* i64 when all are integers, f64 when all are numbers (an empty field is nan), else text. */
static u32 column_kind(const Table *t, u32 column, u32 first_row) {
  u32 kind = COL_INT;
  bool number = false;
  for (u32 r = first_row; r < t->rows; r++) {
    Field f = t->fields.data[r * t->columns + column];
    const char *s;
    size_t n;
    i64 i;
    f64 x;
    trimmed(t, f, &s, &n);
    if (n == 0) {
      kind = COL_FLOAT;
      continue;
    }
    number = true;
    if (kind == COL_INT && field_int(s, n, &i)) continue;
    if (!text_parse_f64(s, n, &x)) return COL_TEXT;
    kind = COL_FLOAT;
  }
  return number || t->rows == first_row ? kind : COL_TEXT;
}

static WeftStatus column_value(Vm *vm, const Table *t, u32 column, u32 first_row, const char *path, Value *out) {
  u32 kind = column_kind(t, column, first_row);
  i64 n = t->rows - first_row;
  if (kind == COL_TEXT) {
    if (!list_new(vm, (u32)n, out)) return WEFT_ERROR;
    for (u32 r = first_row; r < t->rows; r++) {
      Field f = t->fields.data[r * t->columns + column];
      Value text;
      if (!utf8_valid(t->text + f.at, f.len)) {
        value_drop(vm, *out);
        return bad(vm, path, r + 1, "is not UTF-8");
      }
      if (!text_new(vm, t->text + f.at, f.len, &text)) {
        value_drop(vm, *out);
        return WEFT_ERROR;
      }
      TRY(list_add(vm, out, text));
    }
    return WEFT_OK;
  }
  TRY(array_new(vm, kind == COL_INT ? DT_i64 : DT_f64, 1, &n, out));
  for (i64 i = 0; i < n; i++) {
    Field f = t->fields.data[(first_row + (u32)i) * t->columns + column];
    const char *s;
    size_t len;
    trimmed(t, f, &s, &len);
    if (kind == COL_INT) (void)field_int(s, len, (i64 *)out->array->data + i);
    else if (len == 0) ((f64 *)out->array->data)[i] = __builtin_nan("");
    else (void)text_parse_f64(s, len, (f64 *)out->array->data + i);
  }
  return WEFT_OK;
}

static WeftStatus table_record(Vm *vm, const Table *t, bool header, const char *path, Value *out) {
  u32 first = header && t->rows ? 1 : 0;
  if (!record_new(vm, out)) return WEFT_ERROR;
  for (u32 c = 0; c < t->columns; c++) {
    Value column;
    Name key;
    char made[24];
    if (header) {
      const char *s;
      size_t n;
      trimmed(t, t->fields.data[c], &s, &n);
      if (!utf8_valid(s, n)) {
        value_drop(vm, *out);
        return bad(vm, path, 1, "is not UTF-8");
      }
      key = n ? name_intern(&vm->names, s, n) : 0;
    } else {
      key = 0;
    }
    if (!key) {
      snprintf(made, sizeof made, "c%u", c);
      key = name_cstr(&vm->names, made);
    }
    bool twice = key && record_find(out->record, key);
    if (!key || twice || column_value(vm, t, c, first, path, &column) != WEFT_OK) {
      value_drop(vm, *out);
      return twice ? bad(vm, path, 1, "names a column twice") : key ? WEFT_ERROR : vm_error_memory(vm);
    }
    if (!record_set(vm, out, key, column)) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

WeftStatus csv_decode(Vm *vm, const char *path, char *data, size_t len, char sep, int header, Value *out) {
  if (len > UINT32_MAX - 1) return vm_error(vm, EK_limit, "load_csv: \"%s\" is too large", path);
  Table t = {.alloc = &vm->alloc, .text = data};
  WeftStatus status = split_table(vm, &t, len, sep, path);
  if (status == WEFT_OK && t.rows == 0) status = vm_error(vm, EK_io, "load_csv: \"%s\" holds no rows", path);
  if (status == WEFT_OK) {
    bool head = header == 1;
    f64 x;
    for (u32 c = 0; c < t.columns && header < 0 && !head; c++) head = !field_number(&t, t.fields.data[c], &x);
    status = table_record(vm, &t, head, path, out);
  }
  vec_free(&vm->alloc, &t.fields);
  return status;
}

static WeftStatus separator(Vm *vm, u32 op, u32 param, Value v, char *out) {
  if (!args_given(v)) return WEFT_OK;
  if (v.kind != V_TEXT || v.text->len != 1 || v.text->data[0] == '"' || v.text->data[0] == '\n' || v.text->data[0] == '\r') return args_error(vm, op, param, v, "a text of one character");
  *out = v.text->data[0];
  return WEFT_OK;
}

WeftStatus eager_load_csv(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char *data, sep = ',';
  size_t len, cap;
  bool header = false;
  TRY(file_path(vm, OP_load_csv, args[0], &path));
  TRY(args_bool(vm, OP_load_csv, 1, args[1], &header));
  TRY(separator(vm, OP_load_csv, 2, args[2], &sep));
  TRY(file_read(vm, OP_load_csv, path, TEXT_FILE_MOST, &data, &len, &cap));
  WeftStatus status = csv_decode(vm, path, data, len, sep, args_given(args[1]) ? header : -1, out);
  mem_free(&vm->alloc, data, cap);
  return status;
}

static void write_field(const char *s, size_t n, char sep, Buf *b) {
  bool quote = false;
  for (size_t i = 0; i < n; i++) quote |= s[i] == sep || s[i] == '"' || s[i] == '\n' || s[i] == '\r';
  if (!quote) {
    buf_put(b, s, n);
    return;
  }
  buf_putc(b, '"');
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '"') buf_putc(b, '"');
    buf_putc(b, s[i]);
  }
  buf_putc(b, '"');
}

WeftStatus eager_save_csv(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char sep = ',';
  TRY(file_path(vm, OP_save_csv, args[0], &path));
  if (args[1].kind != V_RECORD) return args_error(vm, OP_save_csv, 1, args[1], "a record of columns");
  TRY(separator(vm, OP_save_csv, 2, args[2], &sep));
  const Record *r = args[1].record;
  i64 rows = -1;
  for (u32 c = 0; c < r->shape->count; c++) {
    Value v = r->items[c];
    i64 n = v.kind == V_LIST ? (i64)v.list->count : v.kind == V_ARRAY && array_rank(v.array) == 1 ? v.array->size : -1;
    const char *name = name_text(&vm->names, r->shape->keys[c]);
    if (n < 0) return vm_error(vm, EK_type, "save_csv: column \"%s\" must be an array of rank 1 or a list, got %s", name, value_type_name(v));
    if (v.kind == V_ARRAY && array_device(v.array) != DEV_CPU) return vm_error(vm, EK_unsupported, "save_csv: not supported: column \"%s\" lies on another device", name);
    if (rows >= 0 && n != rows) return vm_error(vm, EK_value, "save_csv: column \"%s\" has %lld rows, the first has %lld", name, (long long)n, (long long)rows);
    rows = n;
  }
  Buf b;
  buf_init(&b, &vm->alloc);
  for (u32 c = 0; c < r->shape->count; c++) {
    if (c) buf_putc(&b, sep);
    write_field(name_text(&vm->names, r->shape->keys[c]), name_len(&vm->names, r->shape->keys[c]), sep, &b);
  }
  buf_putc(&b, '\n');
  for (i64 i = 0; i < rows && !b.failed; i++) {
    for (u32 c = 0; c < r->shape->count; c++) {
      if (c) buf_putc(&b, sep);
      Value v = r->items[c];
      if (v.kind == V_ARRAY) {
        format_number(array_load(v.array, i * array_strides(v.array)[0]), &b);
        continue;
      }
      Buf field;
      buf_init(&field, &vm->alloc);
      format_value(vm, v.list->items[i], true, &field);
      write_field(buf_text(&field), field.len, sep, &b);
      b.failed |= field.failed;
      buf_free(&field);
    }
    buf_putc(&b, '\n');
  }
  WeftStatus status = b.failed ? vm_error_memory(vm) : file_write(vm, OP_save_csv, path, buf_text(&b), b.len);
  buf_free(&b);
  *out = value_nil();
  return status;
}

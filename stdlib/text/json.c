/* json.c — JSON (RFC 8259) as values, and back: objects are records, arrays lists, null is nil. Integers are exact. */
#include "stdlib/array/make.h"
#include "stdlib/text/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { JSON_DEPTH = 500 };

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct Json {
  Vm *vm;
  const char *begin, *at, *end;
  const char *looks; /* the place where the clock is looked at next */
  bool ended;        /* the program is to end; the error stands */
  u32 depth, polled;
} Json;

/* Inside of what is read in one go: may it go on at s? */
static bool json_goes_on(Json *j, const char *s) {
  enum { EACH = 1 << 20 };
  if (LIKELY(s < j->looks)) return true;
  j->looks = j->end - s > EACH ? s + EACH : j->end + 1;
  j->ended |= vm_look(j->vm) != WEFT_OK;
  return !j->ended;
}

static WeftStatus json_error(const Json *j, const char *at, const char *what) {
  u32 line = 1, column = 1;
  if (j->ended) return WEFT_ERROR;
  for (const char *s = j->begin; s < at; s++) {
    if (*s == '\n') line++, column = 1;
    else column += ((u8)*s & 0xC0) != 0x80;
  }
  return vm_error(j->vm, EK_value, "json.parse: line %u, column %u: %s", line, column, what);
}

static __attribute__((noinline)) void json_blanks_slow(Json *j) {
  while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
    if (!json_goes_on(j, ++j->at)) j->at = j->end;
}

static inline void json_blanks(Json *j) {
  if (LIKELY(j->at < j->end && (u8)*j->at > ' ')) return;
  json_blanks_slow(j);
}

static bool json_take(Json *j, char c) {
  json_blanks(j);
  if (j->at == j->end || *j->at != c) return false;
  j->at++;
  return true;
}

static bool json_is_digit(const Json *j, const char *s) { return s < j->end && *s >= '0' && *s <= '9'; }

static WeftStatus json_number(Json *j, Value *out) {
  const char *begin = j->at, *s = begin + (*begin == '-');
  static const char broken[] = "a number is broken";
  bool whole = true, fits = true;
  u64 m = 0;
  if (!json_is_digit(j, s)) return json_error(j, begin, broken);
  if (*s == '0' && json_is_digit(j, s + 1)) return json_error(j, begin, "a number begins with 0");
  for (; json_is_digit(j, s) && json_goes_on(j, s); s++)
    fits &= !__builtin_mul_overflow(m, 10u, &m) && !__builtin_add_overflow(m, (u64)(*s - '0'), &m);
  if (s < j->end && *s == '.') {
    whole = false;
    if (!json_is_digit(j, ++s)) return json_error(j, begin, broken);
    while (json_is_digit(j, s) && json_goes_on(j, s)) s++;
  }
  if (s < j->end && (*s == 'e' || *s == 'E')) {
    whole = false;
    s++;
    if (s < j->end && (*s == '+' || *s == '-')) s++;
    if (!json_is_digit(j, s)) return json_error(j, begin, broken);
    while (json_is_digit(j, s) && json_goes_on(j, s)) s++;
  }
  if (j->ended) return WEFT_ERROR;
  j->at = s;
  if (whole) {
    const bool negative = *begin == '-';
    if (!fits || m > (u64)INT64_MAX + negative) return json_error(j, begin, "an integer does not fit i64");
    *out = value_i64((i64)(negative ? 0 - m : m));
    return WEFT_OK;
  }
  f64 x;
  if (!number_parse_f64(begin, (size_t)(s - begin), &x)) return json_error(j, begin, broken);
  if (!isfinite(x)) return json_error(j, begin, "a number is too large");
  *out = value_f64(x);
  return WEFT_OK;
}

/* The four digits behind \u. */
static bool json_hex(const Json *j, const char *s, u32 *out) {
  *out = 0;
  if (j->end - s < 4) return false;
  for (u32 i = 0; i < 4; i++) {
    const char c = s[i];
    const u32 d = c >= '0' && c <= '9' ? (u32)(c - '0') : (c | 0x20) >= 'a' && (c | 0x20) <= 'f'
                                                              ? (u32)((c | 0x20) - 'a') + 10 : 16;
    if (d == 16) return false;
    *out = *out << 4 | d;
  }
  return true;
}

static void put_code_point(Buf *b, u32 c) {
  if (c < 0x80) {
    buf_putc(b, (char)c);
    return;
  }
  const u32 n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  buf_putc(b, (char)((n == 2 ? 0xC0u : n == 3 ? 0xE0u : 0xF0u) | c >> (6 * (n - 1))));
  for (u32 i = n - 1; i-- > 0;) buf_putc(b, (char)(0x80 | (c >> (6 * i) & 0x3F)));
}

static WeftStatus json_escape(Json *j, Buf *b) {
  static const char signs[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  const char *begin = j->at++;
  const char *sign = j->at < j->end && *j->at ? strchr(signs, *j->at) : NULL;
  if (sign) {
    buf_putc(b, meant[sign - signs]);
    j->at++;
    return WEFT_OK;
  }
  u32 c, low;
  if (j->at == j->end || *j->at != 'u' || !json_hex(j, j->at + 1, &c))
    return json_error(j, begin, "an escape is unknown");
  j->at += 5;
  if (c >= 0xD800 && c < 0xE000) {
    if (c >= 0xDC00 || j->end - j->at < 6 || j->at[0] != '\\' || j->at[1] != 'u' || !json_hex(j, j->at + 2, &low) ||
        low < 0xDC00 || low > 0xDFFF)
      return json_error(j, begin, "half of a surrogate pair stands alone");
    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    j->at += 6;
  }
  put_code_point(b, c);
  return WEFT_OK;
}

/* The text in quotes, the first of which is next; NULL: it is what lies between *s and *n. */
static WeftStatus json_text(Json *j, Buf *b, const char **s, size_t *n) {
  const char *begin = j->at++, *from = j->at;
  b->len = 0;
  for (;; j->at++) {
    if (!json_goes_on(j, j->at)) return WEFT_ERROR;
    if (j->at == j->end) return json_error(j, begin, "a text does not end");
    if ((u8)*j->at < ' ') return json_error(j, j->at, "a text holds a control character");
    if (*j->at == '"' || *j->at == '\\') break;
  }
  if (*j->at == '"') {
    *s = from;
    *n = (size_t)(j->at++ - from);
    return WEFT_OK;
  }
  buf_put(b, from, (size_t)(j->at - from));
  while (j->at < j->end && *j->at != '"' && !b->failed) {
    if ((u8)*j->at < ' ') return json_error(j, j->at, "a text holds a control character");
    if (*j->at != '\\') buf_putc(b, *j->at++);
    else TRY(json_escape(j, b));
  }
  if (b->failed) return vm_error_buf(j->vm);
  if (j->at == j->end) return json_error(j, begin, "a text does not end");
  j->at++;
  *s = buf_text(b);
  *n = b->len;
  return WEFT_OK;
}

static WeftStatus json_value(Json *j, Buf *b, Value *out);

static WeftStatus json_items(Json *j, Buf *b, Value *list) {
  j->at++;
  for (bool first = true; !(first && json_take(j, ']')); first = false) {
    Value item;
    TRY(json_value(j, b, &item));
    if (!list_push(j->vm, list, item)) return WEFT_ERROR;
    if (json_take(j, ']')) break;
    if (!json_take(j, ',')) return json_error(j, j->at, "expected ',' or ']' in an array");
  }
  return WEFT_OK;
}

static WeftStatus json_fields(Json *j, Buf *b, Value *record) {
  Vm *vm = j->vm;
  j->at++;
  for (bool first = true; !(first && json_take(j, '}')); first = false) {
    Value item;
    const char *s;
    size_t n;
    json_blanks(j);
    if (j->at == j->end || *j->at != '"') return json_error(j, j->at, "expected a key in quotes in an object");
    TRY(json_text(j, b, &s, &n));
    Name key = n ? name_counted(&vm->names, s, n) : 0;
    if (n && !key) return vm_error_memory(vm);
    WeftStatus status = WEFT_OK;
    if (!json_take(j, ':')) status = json_error(j, j->at, "expected ':' behind a key");
    if (status == WEFT_OK) status = json_value(j, b, &item);
    if (status == WEFT_OK && !record_set(vm, record, key, item)) status = WEFT_ERROR;
    if (n) name_drop(&vm->names, key);
    if (status != WEFT_OK) return status;
    if (json_take(j, '}')) break;
    if (!json_take(j, ',')) return json_error(j, j->at, "expected ',' or '}' in an object");
  }
  return WEFT_OK;
}

static bool json_word(Json *j, const char *word) {
  const size_t n = strlen(word);
  if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0) return false;
  j->at += n;
  return true;
}

/* Lists and records. */
static WeftStatus json_nested(Json *j, Buf *b, bool list, Value *out) {
  if (j->depth == JSON_DEPTH)
    return vm_error(j->vm, EK_limit, "json.parse: the text is nested deeper than %d", JSON_DEPTH);
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(j->vm);
  if (list ? !list_new(j->vm, 0, out) : !record_new(j->vm, out)) return WEFT_ERROR;
  j->depth++;
  const WeftStatus status = list ? json_items(j, b, out) : json_fields(j, b, out);
  j->depth--;
  if (status != WEFT_OK) value_drop(j->vm, *out);
  return status;
}

static WeftStatus json_value(Json *j, Buf *b, Value *out) {
  json_blanks(j);
  if ((++j->polled & 1023) == 0) TRY(vm_poll(j->vm, 1));
  if (j->at == j->end) return json_error(j, j->at, "the text ends where a value is expected");
  const char c = *j->at;
  if (c == '[' || c == '{') return json_nested(j, b, c == '[', out);
  if (c == '-' || (c >= '0' && c <= '9')) return json_number(j, out);
  if (c == '"') {
    const char *s;
    size_t n;
    TRY(json_text(j, b, &s, &n));
    return text_of_program(j->vm, s, n, out) ? WEFT_OK : WEFT_ERROR;
  }
  if (json_word(j, "true")) *out = value_bool(true);
  else if (json_word(j, "false")) *out = value_bool(false);
  else if (json_word(j, "null")) *out = value_nil();
  else return json_error(j, j->at, "expected a value");
  return WEFT_OK;
}

WeftStatus eager_json_parse(Vm *vm, Value *args, Value *out) {
  if (args[0].kind != V_TEXT) return args_error(vm, OP_json_parse, 0, args[0], "a text");
  const Text *t = args[0].text;
  Json j = {.vm = vm, .begin = t->data, .at = t->data, .end = t->data + t->len, .looks = t->data};
  Buf b;
  vm_buf_init(vm, &b);
  WeftStatus status = json_value(&j, &b, out);
  json_blanks(&j);
  if (status == WEFT_OK && (j.at < j.end || j.ended)) {
    value_drop(vm, *out);
    status = json_error(&j, j.at, "something follows the value");
  }
  buf_free(&b);
  return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct JsonStep { /* where the value at hand stands: in a record, or an item */
  const char *key;        /* NULL: an item */
  i64 item;
} JsonStep;

typedef struct JsonOut {
  Vm *vm;
  Buf *b;
  i64 indent; /* below 0: all in one line */
  u32 depth, polled;
  JsonStep steps[JSON_DEPTH];
} JsonOut;

/* "json.text: WHAT, at .a[3]" */
static WeftStatus json_refuse(const JsonOut *o, ErrorKind kind, const char *what) {
  Buf path;
  vm_buf_init(o->vm, &path);
  for (u32 i = 0; i < o->depth && path.len < 200; i++) {
    if (o->steps[i].key) buf_printf(&path, ".%.60s", o->steps[i].key);
    else buf_printf(&path, "[%lld]", (long long)o->steps[i].item);
  }
  const WeftStatus status = path.failed ? vm_error_buf(o->vm)
                                        : vm_error(o->vm, kind, "json.text: %s%s%s", what, path.len ? ", at " : "",
                                                   buf_text(&path));
  buf_free(&path);
  return status;
}

static void put_quoted(const char *s, size_t n, Buf *b) {
  buf_putc(b, '"');
  for (const char *end = s + n; s < end && !b->failed; s++) {
    static const char escaped[] = "\"\\\b\f\n\r\t", signs[] = "\"\\bfnrt";
    const char *sign = *s ? strchr(escaped, *s) : NULL;
    if (sign) buf_putc(b, '\\'), buf_putc(b, signs[sign - escaped]);
    else if ((u8)*s < ' ' || *s == 0x7F) buf_printf(b, "\\u%04x", (u8)*s);
    else buf_putc(b, *s);
  }
  buf_putc(b, '"');
}

static void new_line(const JsonOut *o, u32 depth) {
  if (o->indent < 0) return;
  buf_putc(o->b, '\n');
  for (i64 i = 0; i < o->indent * depth && !o->b->failed; i++) buf_putc(o->b, ' ');
}

static WeftStatus put_number(const JsonOut *o, Value v) {
  if (dtype_kind(v.dtype) == DK_COMPLEX) return json_refuse(o, EK_unsupported, "JSON has no complex numbers");
  if (dtype_kind(v.dtype) == DK_FLOAT && !isfinite(num_as_f64(v)))
    return json_refuse(o, EK_value, "JSON has no nan and no inf");
  if (v.dtype == DT_bool) buf_puts(o->b, v.i ? "true" : "false");
  else format_number(v, o->b);
  return WEFT_OK;
}

static WeftStatus put_json(JsonOut *o, Value v);

/* Opens a list, a record or an axis; its parts stand one step further in. */
static WeftStatus json_open(JsonOut *o, char sign) {
  if (o->depth == JSON_DEPTH) return json_refuse(o, EK_limit, "the value is nested too deep");
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(o->vm);
  buf_putc(o->b, sign);
  o->depth++;
  return WEFT_OK;
}

static void json_part(JsonOut *o, const char *key, i64 item, bool first) {
  o->steps[o->depth - 1] = (JsonStep){key, item};
  if (!first) buf_putc(o->b, ',');
  new_line(o, o->depth);
}

static void json_close(JsonOut *o, char sign, bool empty) {
  o->depth--;
  if (!empty) new_line(o, o->depth);
  buf_putc(o->b, sign);
}

static WeftStatus put_axis(JsonOut *o, Array *a, u32 axis, i64 at) {
  const i64 n = array_dims(a)[axis];
  TRY(json_open(o, '['));
  for (i64 i = 0; i < n; i++) {
    const i64 there = at + i * array_strides(a)[axis];
    json_part(o, NULL, i, i == 0);
    if (axis + 1 < array_rank(a)) TRY(put_axis(o, a, axis + 1, there));
    else TRY(put_number(o, array_load(a, there)));
    if ((++o->polled & 1023) == 0) TRY(vm_poll(o->vm, 1));
  }
  json_close(o, ']', n == 0);
  return WEFT_OK;
}

static WeftStatus put_sequence(JsonOut *o, Value v) {
  u64 count, pos = 0;
  TRY(vm_seq_open(o->vm, v, &count));
  TRY(json_open(o, '['));
  for (i64 i = 0; pos < count; i++) {
    Value item;
    TRY(vm_seq_next(o->vm, v, &pos, &item));
    json_part(o, NULL, i, i == 0);
    const WeftStatus status = put_json(o, item);
    value_drop(o->vm, item);
    if (status != WEFT_OK) return status;
  }
  json_close(o, ']', count == 0);
  return WEFT_OK;
}

static WeftStatus put_record(JsonOut *o, const Record *r) {
  Names *names = &o->vm->names;
  TRY(json_open(o, '{'));
  for (u32 i = 0; i < r->shape->count; i++) {
    const Name key = r->shape->keys[i];
    json_part(o, name_text(names, key), 0, i == 0);
    put_quoted(name_text(names, key), name_len(names, key), o->b);
    buf_puts(o->b, o->indent < 0 ? ":" : ": ");
    TRY(put_json(o, r->items[i]));
  }
  json_close(o, '}', r->shape->count == 0);
  return WEFT_OK;
}

static WeftStatus put_json(JsonOut *o, Value v) {
  v = value_untracked(v);
  if ((++o->polled & 1023) == 0) TRY(vm_poll(o->vm, 1));
  switch (v.kind) {
    case V_NIL: buf_puts(o->b, "null"); return WEFT_OK;
    case V_NUM: return put_number(o, v);
    case V_TEXT: put_quoted(v.text->data, v.text->len, o->b); return WEFT_OK;
    case V_RECORD: return put_record(o, v.record);
    case V_LIST:
    case V_RANGE: return put_sequence(o, v);
    case V_ARRAY: {
      if (array_device(v.array) != DEV_CPU)
        return json_refuse(o, EK_unsupported, "an array on another device is not supported");
      if (dtype_kind(v.dtype) == DK_COMPLEX) return json_refuse(o, EK_unsupported, "JSON has no complex numbers");
      return array_rank(v.array) ? put_axis(o, v.array, 0, 0) : put_number(o, array_load(v.array, 0));
    }
    default: {
      char what[80];
      snprintf(what, sizeof what, "a value of type %s has no JSON", value_type_name(v));
      return json_refuse(o, EK_type, what);
    }
  }
}

WeftStatus eager_json_text(Vm *vm, Value *args, Value *out) {
  i64 indent = -1;
  enum { INDENT_MOST = 16 };
  if (args_given(args[1])) {
    TRY(args_int(vm, OP_json_text, 1, args[1], &indent));
    if (indent < 0 || indent > INDENT_MOST)
      return vm_error(vm, EK_value, "json.text: indent must be 0 to %d, got %lld", INDENT_MOST, (long long)indent);
  }
  Buf b;
  JsonOut *o = mem_alloc_zero(&vm->alloc, sizeof *o);
  if (!o) return vm_error_memory(vm);
  vm_buf_init(vm, &b);
  o->vm = vm;
  o->b = &b;
  o->indent = indent;
  WeftStatus status = put_json(o, args[0]);
  if (status == WEFT_OK)
    status = b.failed ? vm_error_buf(vm) : text_of_program(vm, buf_text(&b), b.len, out) ? WEFT_OK : WEFT_ERROR;
  buf_free(&b);
  mem_free(&vm->alloc, o, sizeof *o);
  return status;
}

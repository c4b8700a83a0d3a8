/* text.c — operations on text: conversion, parsing, searching, code points. */
#include "stdlib/text/text.h"
#include "stdlib/text/letters.h"
#include "stdlib/text/format.h"
#include "stdlib/array/make.h"

#include <stdlib.h>
#include <string.h>

static WeftStatus need_text(Vm *vm, u32 op, u32 param, Value v, const Text **out) {
  if (v.kind != V_TEXT) return args_error(vm, op, param, v, "a text");
  *out = v.text;
  return WEFT_OK;
}

static WeftStatus made(bool ok) { return ok ? WEFT_OK : WEFT_ERROR; }

static WeftStatus text_of_buf(Vm *vm, Buf *b, Value *out) { /* consumes b */
  WeftStatus status = b->failed ? vm_error_buf(vm) : made(text_of_program(vm, buf_text(b), b->len, out));
  buf_free(b);
  return status;
}

WeftStatus eager_str(Vm *vm, Value *args, Value *out) {
  if (args[0].kind == V_TEXT) {
    *out = value_keep(args[0]);
    return WEFT_OK;
  }
  Buf b;
  vm_buf_init(vm, &b);
  format_value(vm, args[0], true, &b);
  return text_of_buf(vm, &b, out);
}

/* ---- numbers from text --------------------------------------------------------------------------------- */

enum { PART_TEXTS = PART_ELEMENTS / 16 }; /* that are made or read between two looks at the clock */

static bool ascii_blank(u8 c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Moves over blanks, or over what is none. */
static WeftStatus skip(Vm *vm, bool blanks, const char *end, const char **at) {
  for (const char *s = *at;;) {
    const char *stop = end - s > PART_ELEMENTS ? s + PART_ELEMENTS : end;
    while (s < stop) {
      const u8 c = (u8)*s;
      const size_t len = c < 0x80 ? ascii_blank(c) : letters_blank(s, end);
      if ((len != 0) != blanks) {
        *at = s;
        return WEFT_OK;
      }
      if (c < 0x80) s++;
      else if (len) s += len;
      else (void)letters_next(&s);
    }
    *at = s;
    if (s == end) return WEFT_OK;
    TRY(vm_look(vm));
  }
}

static WeftStatus stripped(Vm *vm, const Text *t, const char **at, size_t *n) {
  const char *s = t->data, *end = s + t->len;
  TRY(skip(vm, true, end, &s));
  u32 steps = 1;
  for (const char *last = end; s < end; end = last, steps++) {
    do last--;
    while (((u8)*last & 0xC0) == 0x80);
    if (!letters_blank(last, end)) break;
    if (steps % PART_ELEMENTS == 0) TRY(vm_look(vm));
  }
  *at = s;
  *n = (size_t)(end - s);
  return WEFT_OK;
}

WeftStatus eager_parse_int(Vm *vm, Value *args, Value *out) {
  const Text *t = NULL;
  i64 base = 10;
  TRY(need_text(vm, OP_parse_int, 0, args[0], &t));
  TRY(args_int(vm, OP_parse_int, 1, args[1], &base));
  if (base < 2 || base > 36)
    return vm_error(vm, EK_value, "parse_int: base must be 2 to 36, got %lld", (long long)base);
  const char *s;
  size_t n;
  TRY(stripped(vm, t, &s, &n));
  bool negative = n && *s == '-';
  size_t i = n && (*s == '-' || *s == '+') ? 1 : 0;
  u64 m = 0;
  bool digits = false, fits = true, ok = true;
  for (; i < n && ok; i++) {
    char c = s[i];
    if (c == '_' && digits && i + 1 < n) continue;
    u64 d = c >= '0' && c <= '9' ? (u64)(c - '0') : c >= 'a' && c <= 'z' ? (u64)(c - 'a') + 10
                                 : c >= 'A' && c <= 'Z' ? (u64)(c - 'A') + 10 : 99;
    ok = d < (u64)base;
    fits &= ok && !__builtin_mul_overflow(m, (u64)base, &m) && !__builtin_add_overflow(m, d, &m);
    digits = true;
    if (i % PART_ELEMENTS == 0) TRY(vm_look(vm));
  }
  fits &= m <= (u64)INT64_MAX + negative;
  if (!ok || !digits)
    return vm_error(vm, EK_value, "parse_int: \"%.*s\" is no integer in base %lld", (int)(t->len > 60 ? 60 : t->len),
                    t->data, (long long)base);
  if (!fits)
    return vm_error(vm, EK_value, "parse_int: \"%.*s\" does not fit i64", (int)(t->len > 60 ? 60 : t->len), t->data);
  *out = value_i64((i64)(negative ? 0 - m : m));
  return WEFT_OK;
}

static bool is_word(const char *s, size_t n, const char *word) {
  if (n != strlen(word)) return false;
  for (size_t i = 0; i < n; i++)
    if ((s[i] | 0x20) != word[i]) return false;
  return true;
}

/* Decimal number, inf or nan, in whole; whatever the locale. */
bool text_parse_f64(const char *s, size_t n, f64 *out) {
  if (n == 0 || n > 4000) return false;
  bool sign = *s == '-' || *s == '+';
  if (is_word(s + sign, n - sign, "inf") || is_word(s + sign, n - sign, "infinity"))
    *out = *s == '-' ? -__builtin_inf() : __builtin_inf();
  else if (is_word(s + sign, n - sign, "nan")) *out = __builtin_nan("");
  else return number_parse_f64(s, n, out);
  return true;
}

WeftStatus eager_parse_float(Vm *vm, Value *args, Value *out) {
  const Text *t = NULL;
  TRY(need_text(vm, OP_parse_float, 0, args[0], &t));
  const char *s;
  size_t n;
  f64 x;
  TRY(stripped(vm, t, &s, &n));
  if (!text_parse_f64(s, n, &x))
    return vm_error(vm, EK_value, "parse_float: \"%.*s\" is no number", (int)(t->len > 60 ? 60 : t->len), t->data);
  *out = value_f64(x);
  return WEFT_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------------ */

WeftStatus split_text(Vm *vm, Value text, Value sep, Value *out) {
  const Text *t = text.text, *by = NULL;
  if (args_given(sep)) TRY(need_text(vm, OP_split, 3, sep, &by));
  if (by && by->len == 0) return vm_error(vm, EK_value, "split: the separator is empty");
  if (!list_new(vm, 8, out)) return WEFT_ERROR;
  const char *s = t->data, *end = s + t->len;
  WeftStatus status = WEFT_OK;
  for (u32 parts = 1; status == WEFT_OK; parts++) {
    const char *next = s;
    if (parts % PART_TEXTS == 0 && (status = vm_poll(vm, 0)) != WEFT_OK) break;
    if (by) {
      status = text_find(vm, s, (size_t)(end - s), by->data, by->len, &next);
    } else { /* runs of blanks */
      status = skip(vm, true, end, &s);
      if (s == end) break;
      next = s;
      if (status == WEFT_OK) status = skip(vm, false, end, &next);
    }
    if (status != WEFT_OK) break;
    Value part;
    const char *stop = next ? next : end;
    if (!text_of_program(vm, s, (size_t)(stop - s), &part) || !list_push(vm, out, part)) status = WEFT_ERROR;
    if (!next) break;
    s = by ? next + by->len : next;
  }
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

/* Of a list in columns whose texts are single characters, with nothing between them. *done: it was such a list. */
static WeftStatus join_column(Vm *vm, const List *l, Value *out, bool *done) {
  const Packed *p = l->packed;
  const i64 *numbers = p->kind.kind == V_HOLE ? (const i64 *)(const void *)p->column[0].array->data : NULL;
  i64 all = 0;
  Polled part = parts_in(vm, numbers ? l->count : 0, PART_ELEMENTS);
  while (parts_next(&part))
    for (i64 i = part.from; i < part.to; i++) all |= numbers[i];
  *done = (numbers && all >= 0) || part.status != WEFT_OK;
  if (part.status != WEFT_OK) return part.status;
  return *done ? made(text_of_points(vm, numbers, l->count, out)) : WEFT_OK;
}

WeftStatus eager_join(Vm *vm, Value *args, Value *out) {
  if (args[0].kind == V_TEXT && args_given(args[1]) && args[1].kind == V_LIST)
    return vm_error(vm, EK_type, "join: xs must be a list of texts, got text; the separator comes second: "
                                 "join(xs, \", \")");
  if (args[0].kind == V_ARRAY) return args_error(vm, OP_join, 0, args[0], "a list of texts, as map(str, xs) gives");
  if (args[0].kind != V_LIST) return args_error(vm, OP_join, 0, args[0], "a list of texts");
  const Text *sep = NULL;
  bool done = false;
  if (args_given(args[1])) TRY(need_text(vm, OP_join, 1, args[1], &sep));
  List *l = args[0].list;
  if (list_is_packed(l) && (!sep || !sep->len)) {
    WeftStatus status = join_column(vm, l, out, &done);
    if (done) return status;
  }
  if (!list_boxed(vm, l)) return WEFT_ERROR;
  Buf b;
  vm_buf_init(vm, &b);
  Polled p = parts_in(vm, l->count, PART_TEXTS);
  while (parts_next(&p))
    for (i64 i = p.from; i < p.to; i++) {
      if (l->items[i].kind != V_TEXT) {
        buf_free(&b);
        return vm_error(vm, EK_type, "join: item %u must be a text, got %s; map(str, xs) makes texts", (u32)i,
                        value_type_name(l->items[i]));
      }
      if (i && sep) buf_put(&b, sep->data, sep->len);
      buf_put(&b, l->items[i].text->data, l->items[i].text->len);
    }
  if (p.status == WEFT_OK) return text_of_buf(vm, &b, out);
  buf_free(&b);
  return WEFT_ERROR;
}

WeftStatus eager_trim(Vm *vm, Value *args, Value *out) {
  const Text *t = NULL;
  TRY(need_text(vm, OP_trim, 0, args[0], &t));
  const char *s;
  size_t n;
  TRY(stripped(vm, t, &s, &n));
  return made(text_of_program(vm, s, n, out));
}

static WeftStatus padded(Vm *vm, u32 op, bool left, Value *args, Value *out) {
  const Text *t = NULL, *fill = NULL;
  i64 width = 0;
  TRY(need_text(vm, op, 0, args[0], &t));
  TRY(args_int(vm, op, 1, args[1], &width));
  if (args_given(args[2])) TRY(need_text(vm, op, 2, args[2], &fill));
  if (fill && fill->count != 1) return args_error(vm, op, 2, args[2], "one character");
  i64 room = width - t->count;
  if (room <= 0) {
    *out = value_keep(args[0]);
    return WEFT_OK;
  }
  Value blank, made[2];
  if (!text_new(vm, fill ? fill->data : " ", fill ? fill->len : 1, &blank)) return WEFT_ERROR;
  bool ok = text_repeat(vm, blank.text, (u64)room, &made[left ? 0 : 1]);
  value_drop(vm, blank);
  if (!ok) return WEFT_ERROR;
  made[left ? 1 : 0] = args[0];
  ok = text_concat(vm, made, 2, out);
  value_drop(vm, made[left ? 0 : 1]);
  return ok ? WEFT_OK : WEFT_ERROR;
}

WeftStatus eager_pad_left(Vm *vm, Value *args, Value *out) { return padded(vm, OP_pad_left, true, args, out); }
WeftStatus eager_pad_right(Vm *vm, Value *args, Value *out) { return padded(vm, OP_pad_right, false, args, out); }

static WeftStatus in_case(Vm *vm, u32 op, bool upper, Value *args, Value *out) {
  const Text *t = NULL;
  TRY(need_text(vm, op, 0, args[0], &t));
  if (t->len == t->count && t->len > 1) { /* ASCII alone; single letters are shared */
    if (!text_of_program(vm, t->data, t->len, out)) return WEFT_ERROR;
    const u8 first = upper ? 'a' : 'A';
    Polled p = parts_in(vm, t->len, 16 * PART_ELEMENTS);
    while (parts_next(&p))
      for (i64 i = p.from; i < p.to; i++) {
        u8 c = (u8)t->data[i];
        out->text->data[i] = (char)((u8)(c - first) < 26 ? c ^ 32 : c);
      }
    if (p.status != WEFT_OK) value_drop(vm, *out);
    return p.status;
  }
  Buf b;
  vm_buf_init(vm, &b);
  for (const char *s = t->data, *end = s + t->len; s < end && !b.failed;)
    letters_put(letters_case(letters_next(&s), upper), &b);
  return text_of_buf(vm, &b, out);
}

WeftStatus eager_upper(Vm *vm, Value *args, Value *out) { return in_case(vm, OP_upper, true, args, out); }
WeftStatus eager_lower(Vm *vm, Value *args, Value *out) { return in_case(vm, OP_lower, false, args, out); }

WeftStatus eager_replace(Vm *vm, Value *args, Value *out) {
  const Text *t[3] = {NULL, NULL, NULL};
  for (u32 i = 0; i < 3; i++) TRY(need_text(vm, OP_replace, i, args[i], &t[i]));
  if (t[1]->len == 0) return vm_error(vm, EK_value, "replace: the text to be replaced is empty");
  Buf b;
  vm_buf_init(vm, &b);
  const char *s = t[0]->data, *end = s + t[0]->len, *hit = s;
  WeftStatus status = WEFT_OK;
  while (hit && !b.failed && status == WEFT_OK) {
    status = text_find(vm, s, (size_t)(end - s), t[1]->data, t[1]->len, &hit);
    if (status != WEFT_OK) break;
    buf_put(&b, s, (size_t)((hit ? hit : end) - s));
    if (hit) buf_put(&b, t[2]->data, t[2]->len);
    s = hit ? hit + t[1]->len : end;
  }
  if (status == WEFT_OK) return text_of_buf(vm, &b, out);
  buf_free(&b);
  return status;
}

WeftStatus eager_find(Vm *vm, Value *args, Value *out) {
  const Text *t = NULL, *part = NULL;
  TRY(need_text(vm, OP_find, 0, args[0], &t));
  TRY(need_text(vm, OP_find, 1, args[1], &part));
  const char *hit = NULL;
  TRY(text_find(vm, t->data, t->len, part->data, part->len, &hit));
  i64 at = -1;
  if (hit) {
    u32 points = 0;
    if (t->len != t->count) TRY(text_count_long(vm, t->data, (size_t)(hit - t->data), &points));
    at = t->len == t->count ? hit - t->data : points;
  }
  *out = value_weak_i64(at);
  return WEFT_OK;
}

static WeftStatus at_edge(Vm *vm, u32 op, bool front, Value *args, Value *out) {
  const Text *t = NULL, *part = NULL;
  TRY(need_text(vm, op, 0, args[0], &t));
  TRY(need_text(vm, op, 1, args[1], &part));
  int order = 1;
  if (part->len <= t->len)
    TRY(text_compare(vm, front ? t->data : t->data + t->len - part->len, part->data, part->len, &order));
  *out = value_bool(order == 0);
  return WEFT_OK;
}

WeftStatus eager_starts_with(Vm *vm, Value *args, Value *out) { return at_edge(vm, OP_starts_with, true, args, out); }
WeftStatus eager_ends_with(Vm *vm, Value *args, Value *out) { return at_edge(vm, OP_ends_with, false, args, out); }

WeftStatus eager_codes(Vm *vm, Value *args, Value *out) {
  const Text *t = NULL;
  TRY(need_text(vm, OP_codes, 0, args[0], &t));
  i64 n = t->count;
  TRY(array_new(vm, DT_i64, 1, &n, out));
  if (n <= PART_ELEMENTS) {
    text_points(t, out->array->data);
    return WEFT_OK;
  }
  const bool ascii = t->len == t->count;
  const char *s = t->data;
  i64 *to = out->array->data;
  Polled p = parts_in(vm, n, PART_ELEMENTS);
  while (parts_next(&p))
    for (i64 i = p.from; i < p.to; i++) to[i] = ascii ? (u8)*s++ : (i64)letters_next(&s);
  if (p.status != WEFT_OK) value_drop(vm, *out);
  return p.status;
}

/* Are they all of ASCII, one behind the other? */
static WeftStatus are_ascii(Vm *vm, const Array *a, i64 stride, bool *yes) {
  *yes = array_dtype(a) == DT_i64 && stride == 1 && a->size >= 2 && a->size < UINT32_MAX;
  const u64 *points = a->data;
  u64 all = 0;
  Polled p = parts_in(vm, *yes ? a->size : 0, PART_ELEMENTS);
  while (all < 0x80 && parts_next(&p))
    for (i64 i = p.from; i < p.to; i++) all |= points[i];
  *yes &= all < 0x80;
  return p.status;
}

WeftStatus eager_text(Vm *vm, Value *args, Value *out) {
  TRY(args_array(vm, OP_text, 0, args[0]));
  NumBox box;
  Array *a = array_of(args[0], &box);
  if (array_rank(a) > 1 || (dtype_kind(array_dtype(a)) != DK_INT && a->size))
    return args_error(vm, OP_text, 0, args[0], "integers of rank 1");
  i64 stride = array_rank(a) ? array_strides(a)[0] : 0;
  bool ascii;
  TRY(are_ascii(vm, a, stride, &ascii));
  if (ascii) return text_of_points(vm, a->data, (u32)a->size, out) ? WEFT_OK : WEFT_ERROR;
  Buf b;
  vm_buf_init(vm, &b);
  for (i64 i = 0; i < a->size && !b.failed; i++) {
    i64 c = array_load(a, i * stride).i;
    if (c < 0 || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
      buf_free(&b);
      return vm_error(vm, EK_value, "text: %lld is no code point", (long long)c);
    }
    letters_put((u32)c, &b);
  }
  return text_of_buf(vm, &b, out);
}

/* format.c — values as literals (see format.h). */
#include "stdlib/text/format.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* ---- numbers ------------------------------------------------------------------------------------------ */

/* Digits that read back, fewest first: 15 and 17 decide for f64, 6 and 9 for f32 (IEEE 754, 5.12.2), 5 for
 * halves; subnormal numbers hold fewer. */
static int shortest(f64 x, u32 dtype, char *digits, size_t cap) {
  bool single = dtype == DT_f32, half = dtype_bytes(dtype) == 2;
  bool subnormal = fabs(x) < (single ? (f64)FLT_MIN : DBL_MIN);
  int least = subnormal || half ? 1 : single ? 6 : 15, most = half ? 5 : single ? 9 : 17;
  for (int p = least; p <= most; p++) {
    int n = snprintf(digits, cap, "%.*e", p - 1, x);
    f64 back = single ? (f64)strtof(digits, NULL) : strtod(digits, NULL);
    if (half) back = num_as_f64(num_convert_unchecked(value_f64(back), dtype));
    if (back == x) return n;
  }
  return snprintf(digits, cap, "%.*e", most - 1, x);
}

u32 format_digits(char *text, int *point) {
  u32 n = 0;
  char *s = text;
  for (; *s && *s != 'e'; s++)
    if (*s >= '0' && *s <= '9') text[n++] = *s; /* the point is as the host's locale has it */
  *point = atoi(s + (*s == 'e')) + 1;
  return n;
}

u32 format_shortest(f64 x, u32 dtype, char *digits, int *point) {
  shortest(x, dtype, digits, SHORTEST_ROOM);
  u32 n = format_digits(digits, point);
  while (n > 1 && digits[n - 1] == '0') n--;
  return n;
}

/* A number of at most fifteen digits is the only such one that reads back, and m / 10^k, rounded once, is what it reads
 * as. */
static bool few_digits(f64 x, Buf *out) {
  f64 a = fabs(x), scale = 1, m;
  u32 places = 0;
  if (!(a >= 1e-3 && a < 1e9)) return false;
  while ((m = rint(a * scale)) / scale != a) {
    if (++places > 6) return false;
    scale *= 10;
  }
  char digits[NUMBER_DIGITS];
  if (x < 0) buf_putc(out, '-');
  buf_put(out, digits, number_digits(value_i64((i64)(m / scale)), digits));
  u32 n = number_digits(value_i64((i64)m % (i64)scale + (i64)scale), digits); /* a 1 before them keeps their zeros */
  buf_putc(out, '.');
  if (places) buf_put(out, digits + 1, n - 1);
  else buf_putc(out, '0');
  return true;
}

void format_float(f64 x, u32 dtype, Buf *out) {
  if (isnan(x)) {
    buf_puts(out, "nan");
    return;
  }
  if (isinf(x)) {
    buf_puts(out, x < 0 ? "-inf" : "inf");
    return;
  }
  if (dtype == DT_f64 && few_digits(x, out)) return;
  char digits[SHORTEST_ROOM];
  int point;
  u32 n = format_shortest(fabs(x), dtype, digits, &point);
  int exponent = point - 1;
  if (signbit(x)) buf_putc(out, '-');
  if (exponent < -4 || exponent >= 16) {
    buf_putc(out, digits[0]);
    if (n > 1) {
      buf_putc(out, '.');
      buf_put(out, digits + 1, n - 1);
    }
    buf_printf(out, "e%d", exponent);
    return;
  }
  if (exponent < 0) {
    buf_puts(out, "0.");
    for (int i = -1; i > exponent; i--) buf_putc(out, '0');
    buf_put(out, digits, n);
    return;
  }
  for (int i = 0; i <= exponent; i++) buf_putc(out, (u32)i < n ? digits[i] : '0');
  buf_putc(out, '.');
  if (n > (u32)exponent + 1) buf_put(out, digits + exponent + 1, n - (u32)exponent - 1);
  else buf_putc(out, '0');
}

/* Both parts as floats, the second with its sign: 1.0-0.5j. */
static void format_complex(Value v, Buf *out) {
  f64 re, im;
  const u32 part = dtype_real_of(v.dtype);
  num_parts(v, &re, &im);
  format_float(re, part, out);
  if (isnan(im) || !signbit(im)) buf_putc(out, '+');
  format_float(im, part, out);
  buf_putc(out, 'j');
}

void format_number(Value v, Buf *out) {
  switch (dtype_kind(v.dtype)) {
    case DK_BOOL: buf_puts(out, v.i ? "true" : "false"); break;
    case DK_FLOAT: format_float(num_as_f64(v), v.dtype, out); break;
    case DK_COMPLEX: format_complex(v, out); break;
    default: {
      char digits[NUMBER_DIGITS];
      buf_put(out, digits, number_digits(v, digits));
    }
  }
}

/* ---- containers ----------------------------------------------------------------------------------------- */

/* Control and format characters beyond ASCII, and separators of lines: nobody sees them, or what they turn round.
 * Joiners stay. */
static bool is_unseen(u32 c) {
  static const struct {
    u32 first, last;
  } ranges[] = {{0x80, 0x9F}, {0xAD, 0xAD}, {0x61C, 0x61C}, {0x180E, 0x180E}, {0x200B, 0x200B}, {0x200E, 0x200F},
                {0x2028, 0x202E},
                {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};
  for (u32 i = 0; i < COUNT_OF(ranges); i++)
    if (c >= ranges[i].first && c <= ranges[i].last) return true;
  return false;
}

/* A text, or a key that is no name, as its literal. */
static void quoted(const char *s, u32 n, Buf *out) {
  buf_putc(out, '"');
  for (u32 i = 0; i < n && !out->failed; i++) {
    u8 c = (u8)s[i];
    switch (c) {
      case '\n': buf_puts(out, "\\n"); continue;
      case '\t': buf_puts(out, "\\t"); continue;
      case '\r': buf_puts(out, "\\r"); continue;
      case '\0': buf_puts(out, "\\0"); continue;
      case '"': buf_puts(out, "\\\""); continue;
      case '\\': buf_puts(out, "\\\\"); continue;
      default: break;
    }
    if (c < 32 || c == 127) {
      buf_printf(out, "\\x%02x", c);
      continue;
    }
    u32 more = c < 0xC0 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3, point = more ? c & (0x3Fu >> more) : c;
    for (u32 k = 1; k <= more && i + k < n; k++) point = point << 6 | ((u8)s[i + k] & 0x3F);
    if (c >= 0xC0 && is_unseen(point)) buf_printf(out, "\\u{%x}", point);
    else buf_put(out, s + i, more < n - i ? more + 1 : n - i);
    i += more;
  }
  buf_putc(out, '"');
}

static bool plain_key(const char *s, u32 n) {
  static const char *const reserved[] = {"let", "fn", "if", "else", "for", "while", "in", "by", "break", "continue",
                                         "return", "try", "catch", "import", "and", "or", "not", "true",
                                         "false", "nil"};
  if (!n || !((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_')) return false;
  for (u32 i = 1; i < n; i++)
    if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_' || (s[i] >= '0' && s[i] <= '9')))
      return false;
  for (u32 i = 0; i < COUNT_OF(reserved); i++)
    if (strlen(reserved[i]) == n && memcmp(reserved[i], s, n) == 0) return false;
  return true;
}

/* Recursion is bounded by the rank. */
static void array_axis(Vm *vm, Array *a, u32 axis, i64 at, bool short_form, ElementFn element, void *ctx, Buf *out) {
  u32 rank = array_rank(a);
  if (axis == rank) {
    NumBox box;
    element(ctx, array_borrow(a, at, &box), out);
    return;
  }
  i64 n = array_dims(a)[axis], stride = array_strides(a)[axis];
  bool inner = axis + 1 == rank;
  buf_putc(out, '[');
  for (i64 i = 0; i < n && !out->failed; i++) {
    if (i) {
      buf_putc(out, ',');
      if (inner) buf_putc(out, ' ');
      else {
        buf_putc(out, '\n');
        for (u32 k = 0; k <= axis; k++) buf_putc(out, ' ');
      }
    }
    if (short_form && n > 2 * FORMAT_EDGE && i == FORMAT_EDGE) {
      buf_puts(out, "…");
      i = n - FORMAT_EDGE - 1;
      continue;
    }
    array_axis(vm, a, axis + 1, at + i * stride, short_form, element, ctx, out);
  }
  buf_putc(out, ']');
}

static void plain_element(void *ctx, Value v, Buf *out) {
  (void)ctx;
  format_number(v, out);
}

static void format_array(Vm *vm, Value v, ElementFn element, void *ctx, Buf *out) {
  Array *a = v.array;
  if (array_device(a) != DEV_CPU) { /* shown like any other: its elements are brought here */
    Value here;
    if (array_from_device(vm, a, &here) != WEFT_OK) {
      vm_error_forget(vm);
      buf_printf(out, "<array %s on a device that failed>", dtype_name(array_dtype(a)));
      return;
    }
    if (here.kind == V_ARRAY) format_array(vm, here, element, ctx, out);
    value_drop(vm, here);
    return;
  }
  if (a->size == 0) {
    buf_puts(out, "[]");
    return;
  }
  array_axis(vm, a, 0, 0, a->size > FORMAT_ELEMENTS, element, ctx, out);
}

/* The refs whose content is being written: one that holds itself is written once. */
typedef struct Open {
  const Ref *ref;
  const struct Open *outer;
} Open;

static void format_at(Vm *vm, Value v, bool bare, u32 depth, const Open *open, Buf *out) {
  if (depth > FORMAT_DEPTH) {
    buf_puts(out, "…");
    return;
  }
  switch (v.kind) {
    case V_NIL:
    case V_HOLE: buf_puts(out, "nil"); break;
    case V_NUM: format_number(v, out); break;
    case V_ARRAY: format_array(vm, v, plain_element, NULL, out); break;
    case V_TEXT:
      if (bare) buf_put(out, v.text->data, v.text->len);
      else quoted(v.text->data, v.text->len, out);
      break;
    case V_LIST:
      buf_putc(out, '(');
      for (u32 i = 0; i < v.list->count && !out->failed; i++) {
        if (i) buf_puts(out, ", ");
        format_at(vm, v.list->items[i], false, depth + 1, open, out);
      }
      buf_puts(out, v.list->count == 1 ? ",)" : ")");
      break;
    case V_RECORD: {
      const Shape *s = v.record->shape;
      buf_putc(out, '{');
      for (u32 i = 0; i < s->count && !out->failed; i++) {
        const char *key = name_text(&vm->names, s->keys[i]);
        u32 n = name_len(&vm->names, s->keys[i]);
        if (i) buf_puts(out, ", ");
        if (plain_key(key, n)) buf_put(out, key, n);
        else quoted(key, n, out);
        buf_puts(out, ": ");
        format_at(vm, v.record->items[i], false, depth + 1, open, out);
      }
      buf_putc(out, '}');
      break;
    }
    case V_RANGE:
      buf_printf(out, "%lld..%lld", (long long)v.range->start, (long long)v.range->stop);
      if (v.range->step != 1) buf_printf(out, " by %lld", (long long)v.range->step);
      break;
    case V_FN: {
      const char *name = "";
      if (v.fn->kind == FN_BUILTIN) name = op_name(v.fn->op);
      else if (v.fn->kind == FN_CLOSURE && v.fn->code->proto->name)
        name = name_text(&vm->names, v.fn->code->proto->name);
      else if (v.fn->kind == FN_HOST && v.fn->host->name) name = v.fn->host->name;
      buf_printf(out, "<fn%s%s>", *name ? " " : "", name);
      break;
    }
    case V_REF: {
      Open inner = {v.ref, open};
      bool again = false;
      for (const Open *o = open; o && !again; o = o->outer) again = o->ref == v.ref;
      buf_puts(out, "<ref ");
      if (again) buf_puts(out, "…");
      else format_at(vm, v.ref->value, false, depth + 1, &inner, out);
      buf_putc(out, '>');
      break;
    }
    case V_MODULE: buf_printf(out, "<module %s>", name_text(&vm->names, v.module->name)); break;
    case V_DTYPE: buf_puts(out, dtype_name(v.dtype)); break;
    case V_HANDLE: buf_printf(out, "<%s>", v.handle->type->name); break;
    case V_TRACKED: format_at(vm, value_untracked(v), bare, depth, open, out); break;
    default: buf_puts(out, "<value>");
  }
}

void format_value(Vm *vm, Value v, bool bare, Buf *out) { format_at(vm, v, bare, 0, NULL, out); }

void format_elements(Vm *vm, Value v, ElementFn element, void *ctx, Buf *out) {
  format_array(vm, v, element, ctx, out);
}

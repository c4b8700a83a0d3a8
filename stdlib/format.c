/* format.c — values as literals (see format.h). */
#include "stdlib/format.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* ---- numbers ------------------------------------------------------------------------------------------ */

/* Digits that read back, fewest first: 15 and 17 decide for f64, 6 and 9 for f32 (IEEE 754, 5.12.2); subnormal
 * numbers hold fewer. */
static int shortest(f64 x, bool single, char *digits, size_t cap) {
  bool subnormal = fabs(x) < (single ? (f64)FLT_MIN : DBL_MIN);
  int least = subnormal ? 1 : single ? 6 : 15, most = single ? 9 : 17;
  for (int p = least; p <= most; p++) {
    int n = snprintf(digits, cap, "%.*e", p - 1, x);
    f64 back = single ? (f64)strtof(digits, NULL) : strtod(digits, NULL);
    if (back == x) return n;
  }
  return snprintf(digits, cap, "%.*e", most - 1, x);
}

/* A number of at most fifteen digits is the only such one that reads back, and m / 10^k, rounded once, is what it reads as. */
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

void format_f64(f64 x, bool single, Buf *out) {
  if (isnan(x)) {
    buf_puts(out, "nan");
    return;
  }
  if (isinf(x)) {
    buf_puts(out, x < 0 ? "-inf" : "inf");
    return;
  }
  if (!single && few_digits(x, out)) return;
  char text[48], digits[32];
  shortest(x, single, text, sizeof text);
  number_point(text);
  const char *s = text;
  if (*s == '-') {
    buf_putc(out, '-');
    s++;
  }
  u32 n = 0;
  for (; *s && *s != 'e'; s++)
    if (*s >= '0' && *s <= '9') digits[n++] = *s; /* the point is as the host's locale has it */
  int exponent = atoi(s + 1);
  while (n > 1 && digits[n - 1] == '0') n--;
  if (exponent < -5 || exponent >= 16) {
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

void format_number(Value v, Buf *out) {
  switch (v.dtype) {
    case DT_bool: buf_puts(out, v.i ? "true" : "false"); break;
    case DT_f32: format_f64((f64)v.s, true, out); break;
    case DT_f64: format_f64(v.f, false, out); break;
    default: {
      char digits[NUMBER_DIGITS];
      buf_put(out, digits, number_digits(v, digits));
    }
  }
}

/* ---- containers ----------------------------------------------------------------------------------------- */

static void quoted(const Text *t, Buf *out) {
  buf_putc(out, '"');
  for (u32 i = 0; i < t->len; i++) {
    char c = t->data[i];
    switch (c) {
      case '\n': buf_puts(out, "\\n"); break;
      case '\t': buf_puts(out, "\\t"); break;
      case '\r': buf_puts(out, "\\r"); break;
      case '\0': buf_puts(out, "\\0"); break;
      case '"': buf_puts(out, "\\\""); break;
      case '\\': buf_puts(out, "\\\\"); break;
      default:
        if ((u8)c < 32 || c == 127) buf_printf(out, "\\x%02x", (u8)c);
        else buf_putc(out, c);
    }
  }
  buf_putc(out, '"');
}

static bool plain_key(const char *s, u32 n) {
  static const char *const reserved[] = {"let", "fn", "if", "else", "for", "while", "in", "by", "break", "continue", "return",
                                         "try", "catch", "import", "and", "or", "not", "true", "false", "nil"};
  if (!n || !((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_')) return false;
  for (u32 i = 1; i < n; i++)
    if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_' || (s[i] >= '0' && s[i] <= '9'))) return false;
  for (u32 i = 0; i < COUNT_OF(reserved); i++)
    if (strlen(reserved[i]) == n && memcmp(reserved[i], s, n) == 0) return false;
  return true;
}

typedef void (*ElementFn)(void *ctx, Value v, Buf *out);

/* Recursion is bounded by the rank. */
static void array_axis(Vm *vm, Array *a, u32 axis, i64 at, bool short_form, ElementFn element, void *ctx, Buf *out) {
  u32 rank = array_rank(a);
  if (axis == rank) {
    Value v = array_load(a, at);
    element(ctx, v, out);
    value_drop(vm, v);
    return;
  }
  i64 n = array_dims(a)[axis], stride = array_strides(a)[axis];
  bool inner = axis + 1 == rank;
  buf_putc(out, '[');
  for (i64 i = 0; i < n; i++) {
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
      vm_error_clear(vm);
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
      else quoted(v.text, out);
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
        else {
          buf_putc(out, '"');
          for (u32 k = 0; k < n; k++) {
            if (key[k] == '"' || key[k] == '\\') buf_putc(out, '\\');
            if (key[k] == '\n') buf_puts(out, "\\n");
            else buf_putc(out, key[k]);
          }
          buf_putc(out, '"');
        }
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
      else if (v.fn->kind == FN_CLOSURE && v.fn->code->proto->name) name = name_text(&vm->names, v.fn->code->proto->name);
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

/* ---- specs ------------------------------------------------------------------------------------------------ */

typedef struct Spec {
  char fill[5];   /* one code point */
  char align;     /* < > ^ = or 0 */
  char sign;      /* + - blank */
  bool alternate, zero, comma;
  u32 width;
  i32 precision;  /* -1: none */
  char type;      /* or 0 */
} Spec;

static u32 code_point_bytes(const char *s, const char *end) {
  u8 c = (u8)*s;
  u32 n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
  return s + n <= end ? n : (u32)(end - s);
}

static bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

enum { SPEC_LIMIT = 100000 };

static bool spec_number(const char **at, const char *end, u32 *out) {
  u32 n = 0;
  while (*at < end && **at >= '0' && **at <= '9') {
    n = n * 10 + (u32)(*(*at)++ - '0');
    if (n > SPEC_LIMIT) return false;
  }
  *out = n;
  return true;
}

static WeftStatus spec_parse(Vm *vm, const char *s, size_t len, Spec *out) {
  const char *at = s, *end = s + len;
  *out = (Spec){.fill = " ", .precision = -1};
  if (at < end) {
    u32 n = code_point_bytes(at, end);
    if (at + n < end && is_align(at[n])) {
      memcpy(out->fill, at, n);
      out->fill[n] = 0;
      out->align = at[n];
      at += n + 1;
    } else if (is_align(*at)) {
      out->align = *at++;
    }
  }
  if (at < end && (*at == '+' || *at == '-' || *at == ' ')) out->sign = *at++;
  if (at < end && *at == '#') out->alternate = true, at++;
  if (at < end && *at == '0') out->zero = true, at++;
  bool ok = spec_number(&at, end, &out->width);
  if (at < end && (*at == ',' || *at == '_')) out->comma = true, at++;
  if (ok && at < end && *at == '.') {
    u32 p;
    at++;
    ok = at < end && *at >= '0' && *at <= '9' && spec_number(&at, end, &p) && p <= 400;
    if (ok) out->precision = (i32)p;
  }
  if (at < end) out->type = *at++;
  if (ok && at == end && (!out->type || strchr("bcdeEfFgGnosxX%", out->type))) return WEFT_OK;
  return vm_error(vm, EK_value, "format: bad spec \"%.*s\"", (int)(len > 60 ? 60 : len), s);
}

static void padded(const Spec *sp, const char *prefix, const char *body, size_t n, char align, Buf *out) {
  size_t points = 0, lead = strlen(prefix);
  for (size_t i = 0; i < n; i++) points += ((u8)body[i] & 0xC0) != 0x80;
  size_t have = points + lead, pad = sp->width > have ? sp->width - have : 0;
  size_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0, middle = align == '=' ? pad : 0;
  size_t right = pad - left - middle;
  const char *fill = sp->zero && !sp->align ? "0" : sp->fill;
  for (size_t i = 0; i < left; i++) buf_puts(out, fill);
  buf_puts(out, prefix);
  for (size_t i = 0; i < middle; i++) buf_puts(out, fill);
  buf_put(out, body, n);
  for (size_t i = 0; i < right; i++) buf_puts(out, fill);
}

/* What printf made, with the point that the language has. */
static void point_of(Buf *digits) {
  if (digits->failed || !digits->len) return;
  (void)buf_text(digits); /* ends it */
  number_point(digits->data);
  digits->len = strlen(digits->data);
}

static void with_commas(const char *digits, Buf *out) {
  size_t n = strcspn(digits, ".e");
  for (size_t i = 0; i < n; i++) {
    if (i && (n - i) % 3 == 0) buf_putc(out, ',');
    buf_putc(out, digits[i]);
  }
  buf_puts(out, digits + n);
}

static void in_base(u64 m, u32 base, bool upper, char *out) {
  char rev[72];
  u32 n = 0;
  do {
    rev[n++] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[m % base];
    m /= base;
  } while (m);
  for (u32 i = 0; i < n; i++) out[i] = rev[n - 1 - i];
  out[n] = 0;
}

static WeftStatus number_by_spec(Vm *vm, Value v, const Spec *sp, Buf *out) {
  bool integer = dtype_kind(v.dtype) == DK_INT, boolean = v.dtype == DT_bool;
  char type = sp->type;
  char prefix[8] = "";
  Buf body;
  buf_init(&body, out->alloc);
  if (boolean && (!type || type == 's')) {
    padded(sp, "", v.i ? "true" : "false", v.i ? 4 : 5, sp->align ? sp->align : '<', out);
    return WEFT_OK;
  }
  if (type == 's') return vm_error(vm, EK_type, "format: type 's' is for text, got a number");
  bool as_integer = (integer || boolean) && (!type || strchr("bcdnoxX", type));
  if (as_integer) {
    bool negative = v.dtype != DT_u64 && v.i < 0;
    u64 m = negative ? 0 - (u64)v.i : v.u;
    char digits[80];
    if (type == 'c') return vm_error(vm, EK_unsupported, "format: type 'c' is not supported");
    if (sp->precision >= 0) return vm_error(vm, EK_value, "format: a precision does not fit an integer");
    in_base(m, type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10, type == 'X', digits);
    snprintf(prefix, sizeof prefix, "%s%s", negative ? "-" : sp->sign == '+' ? "+" : sp->sign == ' ' ? " " : "",
             !sp->alternate ? "" : type == 'b' ? "0b" : type == 'o' ? "0o" : type == 'x' ? "0x" : type == 'X' ? "0X" : "");
    if (sp->comma) with_commas(digits, &body);
    else buf_puts(&body, digits);
  } else {
    if (type && strchr("bcdoxXn", type)) {
      return vm_error(vm, EK_type, "format: type '%c' is for integers, got %s", type, dtype_name(v.dtype));
    }
    f64 x = num_as_f64(v);
    bool negative = signbit(x) && !isnan(x);
    f64 m = fabs(x);
    snprintf(prefix, sizeof prefix, "%s", negative ? "-" : sp->sign == '+' ? "+" : sp->sign == ' ' ? " " : "");
    Buf digits;
    buf_init(&digits, out->alloc);
    bool upper = type == 'E' || type == 'F' || type == 'G';
    if (isnan(m) || isinf(m)) buf_puts(&digits, isnan(m) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf"));
    else if (!type && sp->precision < 0) format_f64(m, v.dtype == DT_f32, &digits);
    else if (type == '%') {
      buf_printf(&digits, "%.*f%%", sp->precision < 0 ? 6 : sp->precision, m * 100);
      point_of(&digits);
    } else {
      char how[8] = {'%', '.', '*', type ? type : 'g', 0};
      int p = sp->precision < 0 ? 6 : sp->precision;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      buf_printf(&digits, how, p, m);
#pragma GCC diagnostic pop
      point_of(&digits);
      if (!type && !strpbrk(buf_text(&digits), ".en")) buf_puts(&digits, ".0");
    }
    if (sp->comma) with_commas(buf_text(&digits), &body);
    else buf_puts(&body, buf_text(&digits));
    if (digits.failed) body.failed = true;
    buf_free(&digits);
  }
  char align = sp->align ? sp->align : sp->zero ? '=' : '>';
  padded(sp, prefix, buf_text(&body), body.len, align, out);
  bool failed = body.failed;
  buf_free(&body);
  return failed ? vm_error_memory(vm) : WEFT_OK;
}

typedef struct SpecElement {
  Vm *vm;
  const Spec *spec;
  WeftStatus status;
} SpecElement;

static void spec_element(void *ctx, Value v, Buf *out) {
  SpecElement *e = ctx;
  if (e->status == WEFT_OK) e->status = number_by_spec(e->vm, v, e->spec, out);
}

WeftStatus format_spec(Vm *vm, Value v, const char *spec, size_t len, Buf *out) {
  Spec sp;
  if (len == 0) {
    format_value(vm, v, true, out);
    return out->failed ? vm_error_memory(vm) : WEFT_OK;
  }
  if (spec_parse(vm, spec, len, &sp) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = WEFT_OK;
  v = value_untracked(v);
  if (v.kind == V_NUM) status = number_by_spec(vm, v, &sp, out);
  else if (v.kind == V_ARRAY) {
    SpecElement e = {vm, &sp, WEFT_OK};
    format_array(vm, v, spec_element, &e, out);
    status = e.status;
  } else {
    if (sp.type && sp.type != 's') return vm_error(vm, EK_type, "format: type '%c' is for numbers, got %s", sp.type, value_type_name(v));
    Buf body;
    buf_init(&body, out->alloc);
    format_value(vm, v, true, &body);
    size_t n = body.len;
    if (sp.precision >= 0) { /* at most that many code points */
      i32 points = 0;
      size_t i = 0;
      while (i < n && (points < sp.precision || ((u8)body.data[i] & 0xC0) == 0x80)) {
        points += ((u8)body.data[i] & 0xC0) != 0x80;
        i++;
      }
      n = i;
    }
    padded(&sp, "", buf_text(&body), n, sp.align && sp.align != '=' ? sp.align : '<', out);
    if (body.failed) out->failed = true;
    buf_free(&body);
  }
  if (status == WEFT_OK && out->failed) status = vm_error_memory(vm);
  return status;
}

WeftStatus format_hook(Vm *vm, Value v, const char *spec, size_t len, Value *out) {
  Buf b;
  buf_init(&b, &vm->alloc);
  WeftStatus status = format_spec(vm, v, spec, len, &b);
  if (status == WEFT_OK && !text_new(vm, buf_text(&b), b.len, out)) status = WEFT_ERROR;
  buf_free(&b);
  return status;
}

/* spec.c — format specs of f-strings: the mini-language of Python's format(), by element on arrays.
 *
 *   [[fill]align][sign]["z"]["#"]["0"][width][grouping]["." precision][type]
 *
 * What Python refuses is an error of kind value, and so is type n, which goes by a locale. Differences: a value that
 * is neither number nor text is formatted as the text that str() gives, and a code point of type c must be one that
 * text can hold. */
#include "stdlib/text/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Spec {
  char fill[5];   /* one code point */
  char align;     /* < > ^ = or 0 */
  char sign;      /* + - blank or 0 */
  bool no_minus;  /* z: a zero has no minus */
  bool alternate; /* # */
  bool zero;      /* the fill is 0, and behind the sign where no align stands */
  char group;     /* , _ or 0 */
  char type;      /* or 0 */
  u32 width;
  i32 precision;  /* -1: none */
} Spec;

enum { SPEC_LIMIT = 100000 };

/* ---- reading --------------------------------------------------------------------------------------------- */

static u32 code_point_bytes(const char *s, const char *end) {
  u8 c = (u8)*s;
  u32 n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
  return s + n <= end ? n : (u32)(end - s);
}

static bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }
static bool spec_is_digit(const char *at, const char *end) { return at < end && *at >= '0' && *at <= '9'; }

/* false: beyond SPEC_LIMIT. */
static bool spec_number(const char **at, const char *end, u32 *out) {
  u32 n = 0;
  for (; spec_is_digit(*at, end); (*at)++)
    if ((n = n * 10 + (u32)(**at - '0')) > SPEC_LIMIT) return false;
  *out = n;
  return true;
}

/* NULL, or what is wrong. */
static const char *spec_read(const char *at, const char *end, Spec *out) {
  static const char beyond[] = "a width and a precision are at most 100000";
  bool filled = false;
  u32 n;
  *out = (Spec){.fill = " ", .precision = -1};
  if (at < end) {
    n = code_point_bytes(at, end);
    if (at + n < end && is_align(at[n])) {
      memcpy(out->fill, at, n);
      out->fill[n] = 0;
      out->align = at[n];
      filled = true;
      at += n + 1;
    } else if (is_align(*at)) {
      out->align = *at++;
    }
  }
  if (at < end && (*at == '+' || *at == '-' || *at == ' ')) out->sign = *at++;
  if (at < end && *at == 'z') out->no_minus = true, at++;
  if (at < end && *at == '#') out->alternate = true, at++;
  if (!filled && at < end && *at == '0') out->zero = true, at++;
  if (out->zero) out->fill[0] = '0';
  if (!spec_number(&at, end, &out->width)) return beyond;
  if (at < end && (*at == ',' || *at == '_')) out->group = *at++;
  if (out->group && at < end && (*at == ',' || *at == '_')) return "digits are grouped by one of ',' and '_', once";
  if (at < end && *at == '.') {
    at++;
    if (!spec_is_digit(at, end)) return "a precision is missing behind the point";
    if (!spec_number(&at, end, &n)) return beyond;
    out->precision = (i32)n;
  }
  if (at < end && code_point_bytes(at, end) == 1) out->type = *at++;
  if (at < end) return "it is [[fill]align][sign][z][#][0][width][, or _][.precision][type], in this order";
  if (out->type && !strchr("bcdeEfFgGnosxX%", out->type)) return "the type is none of b c d e E f F g G o s x X %";
  if (out->type == 'n') return "type 'n' goes by a locale, and there is none; write d or g";
  return NULL;
}

static WeftStatus bad_spec(Vm *vm, const char *spec, size_t len, const char *why) {
  size_t n = len;
  if (n > 60) n = 60;
  while (n < len && n && ((u8)spec[n] & 0xC0) == 0x80) n--;
  return vm_error(vm, EK_value, "format: bad spec \"%.*s\": %s", (int)n, spec, why);
}

/* ---- layout ----------------------------------------------------------------------------------------------- */

/* A number or a text in parts. */
typedef struct Parts {
  char sign, prefix[3];
  const char *body;
  size_t bytes, digits; /* of the body; how many digits it begins with, which are grouped */
  u32 every;            /* digits of a group */
} Parts;

/* No more than `most` + 1 are counted. */
static size_t points_of(const char *s, size_t n, size_t most) {
  size_t points = 0;
  for (size_t i = 0; i < n && points <= most; i++) points += ((u8)s[i] & 0xC0) != 0x80;
  return points;
}

/* Zeros that make the digits as long as `least`, separators included; one never begins with a separator. */
static size_t leading_zeros(size_t digits, size_t least, bool grouped, u32 every) {
  size_t zeros = 0, length = digits + (grouped ? (digits - 1) / every : 0);
  while (length < least) {
    length += 1 + (grouped && (digits + zeros) % every == 0);
    zeros++;
  }
  return zeros;
}

static void repeated(const char *fill, size_t n, Buf *out) {
  for (size_t i = 0; i < n && !out->failed; i++) buf_puts(out, fill);
}

static void laid_out(const Spec *sp, const Parts *p, char align, Buf *out) {
  size_t rest = points_of(p->body + p->digits, p->bytes - p->digits, sp->width);
  size_t lead = (p->sign != 0) + strlen(p->prefix);
  bool grouped = sp->group && p->digits;
  bool zeros = align == '=' && strcmp(sp->fill, "0") == 0 && p->digits;
  size_t least = zeros && sp->width > lead + rest ? sp->width - lead - rest : 0;
  size_t more = p->digits ? leading_zeros(p->digits, least, grouped, p->every) : 0;
  size_t digits = p->digits + more, length = lead + digits + (grouped ? (digits - 1) / p->every : 0) + rest;
  size_t pad = sp->width > length ? sp->width - length : 0;
  size_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0, middle = align == '=' ? pad : 0;
  repeated(sp->fill, left, out);
  if (p->sign) buf_putc(out, p->sign);
  buf_puts(out, p->prefix);
  repeated(sp->fill, middle, out);
  for (size_t i = 0; grouped && i < digits; i++) {
    if (i && (digits - i) % p->every == 0) buf_putc(out, sp->group);
    buf_putc(out, i < more ? '0' : p->body[i - more]);
  }
  if (!grouped) repeated("0", more, out);
  buf_put(out, p->body + (grouped ? p->digits : 0), p->bytes - (grouped ? p->digits : 0));
  repeated(sp->fill, pad - left - middle, out);
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

static u32 in_base(u64 m, u32 base, bool upper, char *out) {
  char rev[72];
  u32 n = 0;
  do {
    rev[n++] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[m % base];
    m /= base;
  } while (m);
  for (u32 i = 0; i < n; i++) out[i] = rev[n - 1 - i];
  return n;
}

static char sign_of(const Spec *sp, bool negative) { return negative ? '-' : sp->sign == '-' ? 0 : sp->sign; }

static const char *code_point(const Spec *sp, u64 c, char align, Buf *out) {
  char s[4];
  if (sp->sign) return "type 'c' takes no sign";
  if (sp->alternate) return "type 'c' takes no '#'";
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
    return "type 'c' takes a code point, 0 to 0x10ffff without surrogates";
  u32 n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (u32 i = n; i-- > 1; c >>= 6) s[i] = (char)(0x80 | (c & 0x3F));
  s[0] = (char)(n == 1 ? c : (0xF00u >> n & 0xF0) | c);
  laid_out(sp, &(Parts){.body = s, .bytes = n}, align, out);
  return NULL;
}

static const char *integer(const Spec *sp, Value v, char align, Buf *out) {
  bool negative = v.dtype != DT_u64 && v.i < 0;
  u64 m = negative ? 0 - (u64)v.i : v.u;
  char digits[80], type = sp->type;
  if (sp->precision >= 0) return "an integer takes a precision by the types e f g % alone";
  if (sp->no_minus) return "an integer takes 'z' by the types e f g % alone";
  if (sp->group && type == 'c') return "type 'c' takes no grouping";
  if (sp->group == ',' && type && type != 'd') return "digits of the types b o x are grouped by '_'";
  if (type == 'c') return code_point(sp, negative ? UINT64_MAX : m, align, out);
  Parts p = {.sign = sign_of(sp, negative), .body = digits, .every = type && type != 'd' ? 4 : 3};
  if (sp->alternate && type && type != 'd') p.prefix[0] = '0', p.prefix[1] = type;
  p.bytes = p.digits = in_base(m, type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10,
                               type == 'X', digits);
  laid_out(sp, &p, align, out);
  return NULL;
}

/* What printf makes, with the point that the language has. */
static void printed(f64 m, char type, bool alternate, i32 precision, Buf *out) {
  size_t at = out->len;
  if (type == 'e') buf_printf(out, alternate ? "%#.*e" : "%.*e", precision, m);
  else buf_printf(out, alternate ? "%#.*f" : "%.*f", precision, m);
  if (out->failed) return;
  number_point(out->data + at);
  out->len = at + strlen(out->data + at);
}

static void zeros(i64 n, Buf *out) {
  if (n > 0) repeated("0", (size_t)n, out);
}

/* n digits, `point` of them before the point, at least `end` digits with zeros. A float without a type shows a point
 * without an exponent. */
static void with_point(const char *digits, i64 n, i64 point, bool exponent, i64 end, bool typeless,
                       bool alternate, Buf *out) {
  i64 power = point - 1;
  if (exponent) point = 1;
  if (end < point + (!exponent && typeless)) end = point + (!exponent && typeless);
  if (end < n) end = n;
  if (point <= 0) buf_putc(out, '0');
  buf_put(out, digits, (size_t)(point <= 0 ? 0 : point < n ? point : n));
  zeros(point - n, out);
  if (end > point || alternate) buf_putc(out, '.');
  zeros(-point, out);
  if (point < n) buf_put(out, digits + (point > 0 ? point : 0), (size_t)(n - (point > 0 ? point : 0)));
  zeros(end - (n > point ? n : point), out);
  if (exponent) buf_printf(out, "e%+.2d", (int)power);
}

/* |x| of a finite float. */
static void magnitude(const Spec *sp, f64 m, u32 dtype, Buf *out) {
  char type = sp->type | 0x20;
  i32 p = sp->precision < 0 ? 6 : sp->precision;
  int point;
  if (sp->type == '%') {
    printed(m, 'f', sp->alternate, p, out);
  } else if (sp->type && type != 'g') {
    printed(m, type, sp->alternate, p, out);
  } else if (!sp->type && sp->precision < 0) {
    char digits[SHORTEST_ROOM];
    u32 n = format_shortest(m, dtype, digits, &point);
    with_point(digits, n, point, point <= -4 || point > 16, n, true, sp->alternate, out);
  } else {
    Buf digits;
    buf_init_like(&digits, out);
    if (p == 0) p = 1;
    printed(m, 'e', false, p - 1, &digits);
    if (!digits.failed) {
      i64 n = format_digits(digits.data, &point);
      while (!sp->alternate && n > 1 && digits.data[n - 1] == '0') n--;
      with_point(digits.data, n, point, point <= -4 || point > p - !sp->type, n, !sp->type, sp->alternate, out);
    }
    if (digits.failed) out->failed = true;
    buf_free(&digits);
  }
}

static bool shows_zero(const char *s) {
  while (*s == '0' || *s == '.') s++;
  return *s == 0 || *s == 'e' || *s == '%';
}

static void real(const Spec *sp, Value v, char align, Buf *out) {
  f64 x = num_as_f64(v), m = fabs(x);
  bool negative = signbit(x) && !isnan(x);
  Buf body;
  buf_init_like(&body, out);
  if (sp->type == '%') m *= 100;
  if (isnan(m) || isinf(m)) buf_puts(&body, isnan(m) ? "nan" : "inf");
  else magnitude(sp, m, v.dtype, &body);
  if (sp->no_minus && shows_zero(buf_text(&body))) negative = false;
  if (sp->type == '%') buf_putc(&body, '%');
  if (sp->type && strchr("EFG", sp->type))
    for (size_t i = 0; i < body.len; i++)
      if (body.data[i] >= 'a' && body.data[i] <= 'z') body.data[i] = (char)(body.data[i] - 'a' + 'A');
  Parts p = {.sign = sign_of(sp, negative), .body = buf_text(&body), .bytes = body.len, .every = 3};
  while (p.digits < p.bytes && p.body[p.digits] >= '0' && p.body[p.digits] <= '9') p.digits++;
  if (!body.failed) laid_out(sp, &p, align, out);
  if (body.failed) out->failed = true;
  buf_free(&body);
}

/* Both parts with the type and the precision, the second with its sign, and the whole in the width. */
static const char *complex_number(const Spec *sp, Value v, Buf *out) {
  if (sp->type && strchr("bcdoxX%", sp->type)) return "the types of complex numbers are e f g";
  if (sp->zero || sp->align == '=') return "a complex number is not filled behind its sign";
  f64 parts[2];
  Spec part = *sp;
  Buf body;
  buf_init_like(&body, out);
  num_parts(v, &parts[0], &parts[1]);
  part.width = 0;
  for (u32 i = 0; i < 2; i++) {
    real(&part, num_convert_unchecked(value_f64(parts[i]), dtype_real_of(v.dtype)), '>', &body);
    part.sign = '+';
  }
  buf_putc(&body, 'j');
  const Parts all = {.body = buf_text(&body), .bytes = body.len};
  if (!body.failed) laid_out(sp, &all, sp->align ? sp->align : '>', out);
  if (body.failed) out->failed = true;
  buf_free(&body);
  return NULL;
}

/* NULL, or what is wrong: that goes by the dtype, but for type c. Bools are 0 and 1. */
static const char *number(const Spec *sp, Value v, Buf *out) {
  char align = sp->align ? sp->align : sp->zero ? '=' : '>';
  bool whole = v.dtype == DT_bool || dtype_kind(v.dtype) == DK_INT;
  if (sp->type == 's') return "type 's' is for text, got a number";
  if (dtype_kind(v.dtype) == DK_COMPLEX) return complex_number(sp, v, out);
  if (whole && (!sp->type || strchr("bcdoxX", sp->type))) return integer(sp, v, align, out);
  if (sp->type && strchr("bcdoxX", sp->type)) return "the types b c d o x are for integers, got a float";
  real(sp, v, align, out);
  return NULL;
}

/* ---- the rest ------------------------------------------------------------------------------------------------- */

enum { LOOK_BYTES = 1 << 20 }; /* of a text, between two looks at the clock */

static const char *text(Vm *vm, const Spec *sp, Value v, Buf *out) {
  if (sp->type && sp->type != 's') return "the type is one for numbers, got no number";
  if (sp->sign) return "text takes no sign";
  if (sp->no_minus) return "text takes no 'z'";
  if (sp->alternate) return "text takes no '#'";
  if (sp->group) return "text takes no grouping";
  if (sp->align == '=') return "text has no sign for '=' to fill behind";
  Buf body;
  buf_init_like(&body, out);
  format_value(vm, v, true, &body);
  size_t n = 0;
  for (i32 points = 0; !body.failed && n < body.len; n++) { /* at most so many code points as the precision */
    if (n % LOOK_BYTES == LOOK_BYTES - 1 && vm_ends(vm)) out->failed = true;
    if (out->failed) break;
    if (((u8)body.data[n] & 0xC0) == 0x80) continue;
    if (sp->precision >= 0 && points++ == sp->precision) break;
  }
  if (!body.failed) laid_out(sp, &(Parts){.body = buf_text(&body), .bytes = n}, sp->align ? sp->align : '<', out);
  if (body.failed) out->failed = true;
  buf_free(&body);
  return NULL;
}

typedef struct Element {
  const Spec *spec;
  const char *why;
} Element;

static void one_element(void *ctx, Value v, Buf *out) {
  Element *e = ctx;
  if (!e->why) e->why = number(e->spec, v, out);
}

/* What does not fit the dtype is refused where there is no element, too. */
static void elements(Vm *vm, Value v, Element *e, Buf *out) {
  Buf none;
  buf_init_like(&none, out);
  const u64 zero[2] = {0, 0};
  NumBox box;
  const Array one = {.tag = v.array->tag, .data = (void *)(uintptr_t)zero};
  if (!v.array->size) one_element(e, array_borrow(&one, 0, &box), &none);
  buf_free(&none);
  format_elements(vm, v, one_element, e, out);
}

WeftStatus format_hook(Vm *vm, Value v, const char *spec, size_t len, Value *out) {
  Spec sp;
  Element e = {&sp, spec_read(spec, spec + len, &sp)};
  Buf b;
  vm_buf_init(vm, &b);
  v = value_untracked(v);
  if (!e.why) {
    if (v.kind == V_NUM) e.why = number(&sp, v, &b);
    else if (v.kind == V_ARRAY) elements(vm, v, &e, &b);
    else e.why = text(vm, &sp, v, &b);
  }
  WeftStatus status = e.why ? bad_spec(vm, spec, len, e.why) : b.failed ? vm_error_buf(vm) : WEFT_OK;
  if (status == WEFT_OK && !text_of_program(vm, buf_text(&b), b.len, out)) status = WEFT_ERROR;
  buf_free(&b);
  return status;
}

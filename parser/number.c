/* number.c — decimal text to f64, correctly rounded (declared in base.h).
 *
 * Short numbers take one exact multiplication or division. Nearly all others take a product with 128 bits of the power
 * of ten: that of their first 19 digits, and where more follow that of the next number of 19 digits as well, must round
 * to the same f64. The rest is done with big integers: the value D * 10^e becomes a 64-bit quotient and a sticky bit,
 * which then is rounded once. */
#include "parser/base.h"

#include <string.h>

enum {
  LIMBS = 288,     /* 9,216 bits: 800 digits (2,658 bits) below 10^1,150 (3,821 bits), shifted by 64 and more */
  MAX_DIGITS = 800 /* the halfway point of two doubles has at most 767 digits: later ones only break ties */
};

typedef struct Big {
  u32 count; /* limbs in use; the top one is not zero */
  u32 limb[LIMBS];
} Big;

static void mul_add(Big *b, u32 factor, u32 add) {
  u64 carry = add;
  for (u32 i = 0; i < b->count; i++) {
    u64 x = (u64)b->limb[i] * factor + carry;
    b->limb[i] = (u32)x;
    carry = x >> 32;
  }
  if (carry) b->limb[b->count++] = (u32)carry;
}

static void mul_pow10(Big *b, u32 e) {
  for (; e >= 9; e -= 9) mul_add(b, 1000000000u, 0);
  for (; e > 0; e--) mul_add(b, 10, 0);
}

static u32 bit_count(const Big *b) {
  return b->count ? b->count * 32 - (u32)__builtin_clz(b->limb[b->count - 1]) : 0;
}

static void shift_left(Big *b, u32 n) {
  if (!b->count || !n) return;
  u32 words = n / 32, bits = n % 32;
  memmove(b->limb + words, b->limb, b->count * sizeof *b->limb);
  memset(b->limb, 0, words * sizeof *b->limb);
  b->count += words;
  if (!bits) return;
  u32 carry = 0;
  for (u32 i = words; i < b->count; i++) {
    u32 x = b->limb[i];
    b->limb[i] = x << bits | carry;
    carry = x >> (32 - bits);
  }
  if (carry) b->limb[b->count++] = carry;
}

static void halve(Big *b) {
  for (u32 i = 0; i < b->count; i++) b->limb[i] = b->limb[i] >> 1 | (i + 1 < b->count ? b->limb[i + 1] << 31 : 0);
  if (b->count && !b->limb[b->count - 1]) b->count--;
}

static bool not_less(const Big *a, const Big *b) {
  if (a->count != b->count) return a->count > b->count;
  for (u32 i = a->count; i-- > 0;)
    if (a->limb[i] != b->limb[i]) return a->limb[i] > b->limb[i];
  return true;
}

static void subtract(Big *a, const Big *b) { /* a >= b */
  u64 borrow = 0;
  for (u32 i = 0; i < a->count; i++) {
    u64 x = (u64)a->limb[i] - (i < b->count ? b->limb[i] : 0) - borrow;
    a->limb[i] = (u32)x;
    borrow = x >> 63;
  }
  while (a->count && !a->limb[a->count - 1]) a->count--;
}

/* (m + a little more when sticky) * 2^e, m with its top bit set, to the nearest double. */
static f64 assemble(u64 m, i32 e, bool sticky) {
  i32 top = e + 63; /* exponent of the leading bit */
  if (top > 1023) return __builtin_inf();
  u32 drop = 11;
  if (top < -1022) {
    if (top < -1075) return 0.0;
    drop += (u32)(-1022 - top);
  }
  u64 kept = drop >= 64 ? 0 : m >> drop;
  u64 rest = drop >= 64 ? m : m << (64 - drop);
  if (drop == 65) rest = 0, sticky = true; /* below half of the least subnormal */
  u64 half = 1ull << 63;
  if (rest > half || (rest == half && (sticky || (kept & 1)))) kept++;
  /* A kept bit 52 of a subnormal, or a carry into bit 53, moves into the exponent by itself. */
  u64 exponent = top < -1022 ? 0 : (u64)(top + 1022);
  u64 bits = (exponent << 52) + kept;
  f64 x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static f64 convert(const char *digits, u32 count, i32 e10, bool more) {
  if (count == 0) return 0.0;
  if (e10 + (i32)count > 310) return __builtin_inf();
  if (e10 + (i32)count < -330) return 0.0;
  Big n = {0}, d = {0};
  for (u32 i = 0; i < count; i++) mul_add(&n, 10, (u32)(digits[i] - '0'));
  if (e10 > 0) mul_pow10(&n, (u32)e10);
  d.limb[d.count++] = 1;
  if (e10 < 0) mul_pow10(&d, (u32)-e10);
  /* Scale so that the quotient has 64 bits or one more, then divide bit by bit. */
  i32 shift = (i32)bit_count(&d) + 64 - (i32)bit_count(&n);
  if (shift > 0) shift_left(&n, (u32)shift);
  else shift_left(&d, (u32)-shift);
  shift_left(&d, 64);
  u64 q = 0;
  i32 e = -shift;
  bool sticky = more;
  for (i32 bit = 64; bit >= 0; bit--) {
    bool one = not_less(&n, &d);
    if (one) subtract(&n, &d);
    halve(&d);
    if (q >> 63) { /* a 65th bit */
      sticky |= one;
      e++;
      continue;
    }
    q = q << 1 | one;
  }
  sticky |= n.count != 0;
  return assemble(q, e, sticky);
}

/* ---- by 128 bits of the power of ten ------------------------------------------------------------------ */

__extension__ typedef unsigned __int128 u128;

enum { BLOCK = 16, LEAST_BLOCK = -22, BLOCKS = 42, EXACT_BLOCKS = 3, KEPT_DIGITS = 19 };

/* 10^(16 * (i + LEAST_BLOCK)) without its exponent: the top 128 bits, rounded down. Exact from 10^0 to 10^48. */
static const struct PowerOfTen {
  u64 high, low;
} blocks[BLOCKS] = {
    {0xCD42A11346F34F7D, 0x0092757BF2623727}, {0xE3E27A444D8D98B7, 0xFD1B1B2308169B25},
    {0xFD00B897478238D0, 0x8920B098955522B4}, {0x8C71DCD9BA0B4925, 0x9FF0C08B7F1D0B14},
    {0x9BECCE62836AC577, 0x4EE367F9430AEC32}, {0xAD1C8EAB5EE43B66, 0xDA3243650005EECF},
    {0xC0314325637A1939, 0xFA911155FEFB5308}, {0xD5605FCDCF32E1D6, 0xFB1E4A9A90880A64},
    {0xECE53CEC4A314EBD, 0xA4F8BF5635246428}, {0x8380DEA93DA4BC60, 0x4247CB9E59F71E6D},
    {0x91FF83775423CC06, 0x7B6306A34627DDCF}, {0xA21727DB38CB002F, 0xB8ADA00E5A506A7C},
    {0xB3F4E093DB73A093, 0x59ED216765690F56}, {0xC7CABA6E7C5382C8, 0xFE64A52EE96B8FC0},
    {0xDDD0467C64BCE4A0, 0xAC7CB3F6D05DDBDE}, {0xF64335BCF065D37D, 0x4D4617B5FF4A16D5},
    {0x88B402F7FD75539B, 0x11DBCB0218EBB414}, {0x97C560BA6B0919A5, 0xDCCD879FC967D41A},
    {0xA87FEA27A539E9A5, 0x3F2398D747B36224}, {0xBB127C53B17EC159, 0x5560C018580D5D52},
    {0xCFB11EAD453994BA, 0x67DE18EDA5814AF2}, {0xE69594BEC44DE15B, 0x4C2EBE687989A9B3},
    {0x8000000000000000, 0x0000000000000000}, {0x8E1BC9BF04000000, 0x0000000000000000},
    {0x9DC5ADA82B70B59D, 0xF020000000000000}, {0xAF298D050E4395D6, 0x9670B12B7F410000},
    {0xC2781F49FFCFA6D5, 0x3CBF6B71C76B25FB}, {0xD7E77A8F87DAF7FB, 0xDC33745EC97BE906},
    {0xEFB3AB16C59B14A2, 0xC5CFE94EF3EA101E}, {0x850FADC09923329E, 0x03E2CF6BC604DDB0},
    {0x93BA47C980E98CDF, 0xC66F336C36B10137}, {0xA402B9C5A8D3A6E7, 0x5F16206C9C6209A6},
    {0xB616A12B7FE617AA, 0x577B986B314D6009}, {0xCA28A291859BBF93, 0x7D7B8F7503CFDCFE},
    {0xE070F78D3927556A, 0x85BBE253F47B1417}, {0xF92E0C3537826145, 0xA7709A56CCDF8A82},
    {0x8A5296FFE33CC92F, 0x82BD6B70D99AAA6F}, {0x9991A6F3D6BF1765, 0xACCA6DA1E0A8EF29},
    {0xAA7EEBFB9DF9DE8D, 0xDDBB901B98FEEAB7}, {0xBD49D14AA79DBC82, 0x4B2D8644D8A74E18},
    {0xD226FC195C6A2F8C, 0x73832EEC6FFF3111}, {0xE950DF20247C83FD, 0x47C6B82EF32A2069}};

/* floor(log2(10^e)) for |e| <= 400 */
static i32 log2_of_ten_to(i32 e) { return (e * 217706) >> 16; }

/* m * 10^e10, m > 0. False: these bits do not tell to which of two neighbours it rounds. */
static bool quick(u64 m, i64 e10, f64 *out) {
  static const u64 tens[BLOCK] = {1,          10,          100,          1000,          10000,          100000,
                                  1000000,    10000000,    100000000,    1000000000,    10000000000,    100000000000,
                                  1000000000000, 10000000000000, 100000000000000, 1000000000000000};
  if (e10 < LEAST_BLOCK * BLOCK || e10 >= (LEAST_BLOCK + BLOCKS) * BLOCK) return false;
  u32 at = (u32)(e10 - LEAST_BLOCK * BLOCK) / BLOCK;
  i32 block = (i32)at + LEAST_BLOCK;
  u128 a = (u128)m * tens[e10 - block * BLOCK];
  u64 top = (u64)(a >> 64);
  i32 shift = top ? __builtin_clzll(top) : 64 + __builtin_clzll((u64)a);
  a <<= shift;
  u64 a1 = (u64)(a >> 64), a0 = (u64)a;
  const struct PowerOfTen c = blocks[at];
  u128 low = (u128)a0 * c.low, cross = (u128)a1 * c.low, other = (u128)a0 * c.high;
  u128 middle = (u128)(u64)cross + (u64)other + (u64)(low >> 64);
  u128 high = (u128)a1 * c.high + (u64)(cross >> 64) + (u64)(other >> 64) + (u64)(middle >> 64);
  i32 e = 1 - shift + log2_of_ten_to(block * BLOCK); /* of the last bit of `high` */
  if (!(high >> 127)) {
    high = high << 1 | (u64)middle >> 63;
    middle <<= 1;
    e--;
  }
  bool exact = block >= 0 && block <= EXACT_BLOCKS, sticky = (u64)high || (u64)middle || (u64)low;
  /* The power was rounded down by less than a bit, and so is the product by less than two, or four after the shift. */
  if (!exact && ((u64)high == 0 || (u64)high > UINT64_MAX - 4)) return false;
  *out = assemble((u64)(high >> 64), e + 64, sticky);
  return true;
}

/* ---- reading --------------------------------------------------------------------------------------------- */

typedef struct Decimal {
  u64 m;      /* the first digits that count, at most KEPT_DIGITS */
  u32 count;  /* how many */
  bool more;  /* digits that are not 0 follow */
  bool negative;
  i64 e10;    /* the value is m * 10^e10, or more */
} Decimal;

static bool is_decimal_digit(char c) { return (u8)(c - '0') < 10; }

/* Eight digits at s as a number; false: they are not all digits. */
static inline bool eight_digits(const char *s, u64 *out) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  u64 x;
  memcpy(&x, s, sizeof x);
  u64 bad = (x + 0x4646464646464646) | (x - 0x3030303030303030);
  if (bad & 0x8080808080808080) return false;
  x -= 0x3030303030303030;
  x = x * 10 + (x >> 8); /* pairs, in every second byte */
  u64 pairs = 0x000000FF000000FF;
  *out = (u32)(((x & pairs) * 0x000F424000000064 + (x >> 16 & pairs) * 0x0000271000000001) >> 32);
  return true;
#else
  return (void)s, (void)out, false;
#endif
}

/* The digits at s, behind the point or before it. */
static inline const char *read_digits(const char *s, const char *end, bool point, Decimal *d) {
  const char *first = s;
  u64 m = d->m, eight;
  u32 count = d->count;
  if (!count)
    while (s < end && *s == '0') s++;
  for (; end - s >= 8 && count <= KEPT_DIGITS - 8 && eight_digits(s, &eight); s += 8, count += 8)
    m = m * 100000000 + eight;
  for (; s < end && is_decimal_digit(*s) && count < KEPT_DIGITS; s++, count++) m = m * 10 + (u64)(*s - '0');
  d->m = m;
  d->count = count;
  d->e10 -= point ? s - first : 0;
  for (first = s; s < end && is_decimal_digit(*s); s++) d->more |= *s != '0';
  d->e10 += point ? 0 : s - first;
  return s;
}

/* The exact value of text that is a decimal number, whose value without its other digits is d. */
static f64 by_big_integers(const char *s, size_t len, const Decimal *d) {
  char digits[MAX_DIGITS];
  u32 count = 0;
  i64 e10 = d->e10 + d->count; /* of a digit before the first one */
  bool more = false;
  for (size_t i = 0; i < len && s[i] != 'e' && s[i] != 'E'; i++) {
    if (!is_decimal_digit(s[i]) || (!count && s[i] == '0')) continue;
    if (count < MAX_DIGITS) digits[count++] = s[i];
    else more |= s[i] != '0';
  }
  while (count && !more && digits[count - 1] == '0') count--;
  e10 -= count;
  if (e10 > 2000000000 || e10 < -2000000000) return e10 > 0 ? __builtin_inf() : 0.0;
  return convert(digits, count, (i32)e10, more);
}

/* Behind the decimal number at s; NULL: there is none. *whole: it has neither point nor exponent. */
static inline const char *read_decimal(const char *s, const char *end, Decimal *d, bool *whole) {
  *d = (Decimal){0};
  if (s < end && (*s == '+' || *s == '-')) d->negative = *s++ == '-';
  const char *first = s;
  s = read_digits(s, end, false, d);
  bool any = s != first;
  *whole = true;
  if (s < end && *s == '.') {
    first = ++s;
    s = read_digits(s, end, true, d);
    any |= s != first;
    *whole = false;
  }
  if (!any) return NULL;
  if (s < end && (*s == 'e' || *s == 'E')) {
    s++;
    bool minus = false;
    if (s < end && (*s == '+' || *s == '-')) minus = *s++ == '-';
    if (s == end || !is_decimal_digit(*s)) return NULL;
    i64 e = 0;
    for (; s < end && is_decimal_digit(*s); s++)
      if (e < 1000000000) e = e * 10 + (*s - '0');
    d->e10 += minus ? -e : e;
    *whole = false;
  }
  return s;
}

/* The value of the text that d was read from. */
static inline f64 decimal_value(const char *s, size_t len, const Decimal *d) {
  static const f64 powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  f64 x = 0.0, next;
  bool exact = !d->more && d->m <= 1ull << 53;
  if (exact && d->e10 >= 0 && d->e10 <= 22) x = (f64)d->m * powers[d->e10]; /* both exact, rounded once */
  else if (exact && d->e10 < 0 && d->e10 >= -22) x = (f64)d->m / powers[-d->e10];
  else if (d->m && (!quick(d->m, d->e10, &x) || (d->more && (!quick(d->m + 1, d->e10, &next) || next != x))))
    x = by_big_integers(s, len, d);
  return d->negative ? -x : x;
}

bool number_parse_f64(const char *s, size_t len, f64 *out) {
  Decimal d;
  bool whole;
  if (read_decimal(s, s + len, &d, &whole) != s + len) return false;
  *out = decimal_value(s, len, &d);
  return true;
}

const char *number_read(const char *s, const char *end, bool *whole, i64 *i, f64 *x) {
  enum { DIGITS_OF_I64 = 18 };
  Decimal d;
  const char *stop = read_decimal(s, end, &d, whole);
  if (!stop) return NULL;
  if (!*whole) *x = decimal_value(s, (size_t)(stop - s), &d);
  else if (stop - s <= DIGITS_OF_I64) *i = d.negative ? -(i64)d.m : (i64)d.m;
  else return NULL;
  return stop;
}

void number_point(char *text) {
  char *to = text;
  bool inside = false; /* a point of several bytes */
  for (const char *s = text; *s; s++) {
    char c = *s;
    bool own = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
               c == '%' || c == ' ';
    if (own || !inside) *to++ = own ? c : '.';
    inside = !own;
  }
  *to = 0;
}

/* number.c — decimal text to f64, correctly rounded (declared in base.h).
 *
 * Short numbers take one exact multiplication or division. The rest is done with big integers: the value
 * D * 10^e becomes a 64-bit quotient and a sticky bit, which then is rounded once. */
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

bool number_parse_f64(const char *s, size_t len, f64 *out) {
  static const f64 powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  size_t i = 0;
  bool negative = false, any = false, point = false, more = false;
  if (i < len && (s[i] == '+' || s[i] == '-')) negative = s[i++] == '-';
  char digits[MAX_DIGITS];
  u32 count = 0;
  i64 e10 = 0;
  for (; i < len; i++) {
    if (s[i] == '.' && !point) {
      point = true;
      continue;
    }
    if (s[i] < '0' || s[i] > '9') break;
    any = true;
    e10 -= point;
    if (count == 0 && s[i] == '0') continue;
    if (count < MAX_DIGITS) {
      digits[count++] = s[i];
    } else {
      more |= s[i] != '0';
      e10++;
    }
  }
  if (!any) return false;
  if (i < len && (s[i] == 'e' || s[i] == 'E')) {
    i++;
    bool minus = false;
    if (i < len && (s[i] == '+' || s[i] == '-')) minus = s[i++] == '-';
    if (i >= len) return false;
    i64 e = 0;
    for (; i < len && s[i] >= '0' && s[i] <= '9'; i++)
      if (e < 1000000000) e = e * 10 + (s[i] - '0');
    e10 += minus ? -e : e;
  }
  if (i != len) return false;
  while (count && !more && digits[count - 1] == '0') count--, e10++;
  u64 m = 0;
  for (u32 k = 0; k < count && k < 19; k++) m = m * 10 + (u64)(digits[k] - '0');
  f64 x;
  if (count == 0) x = 0.0;
  else if (count <= 15 && e10 >= 0 && e10 <= 22) x = (f64)m * powers[e10]; /* both exact, one rounding */
  else if (count <= 15 && e10 < 0 && e10 >= -22) x = (f64)m / powers[-e10];
  else if (e10 > 2000000000 || e10 < -2000000000) x = e10 > 0 ? __builtin_inf() : 0.0;
  else x = convert(digits, count, (i32)e10, more);
  *out = negative ? -x : x;
  return true;
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

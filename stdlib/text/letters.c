/* letters.c — code points of UTF-8 texts. */
#include "stdlib/text/letters.h"

u32 letters_next(const char **at) {
  const u8 *s = (const u8 *)*at;
  u32 c = *s, n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
  if (n > 1) c &= 0xFFu >> (n + 1);
  for (u32 i = 1; i < n; i++) c = c << 6 | (s[i] & 0x3F);
  *at += n;
  return c;
}

void letters_put(u32 c, Buf *b) {
  if (c < 0x80) buf_putc(b, (char)c);
  else {
    u32 n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    buf_putc(b, (char)((n == 2 ? 0xC0u : n == 3 ? 0xE0u : 0xF0u) | c >> (6 * (n - 1))));
    for (u32 i = n - 1; i-- > 0;) buf_putc(b, (char)(0x80 | (c >> (6 * i) & 0x3F)));
  }
}

/* Those beyond ASCII are the code points with the property White_Space (PropList.txt, Unicode Character Database
 * 14.0). */
size_t letters_blank(const char *s, const char *end) {
  if (s == end) return 0;
  const u8 first = (u8)*s;
  if (first < 0x80) return first == ' ' || (first >= '\t' && first <= '\r');
  const char *next = s;
  const u32 c = letters_next(&next);
  const bool is = c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
                  c == 0x202F || c == 0x205F || c == 0x3000;
  return is ? (size_t)(next - s) : 0;
}

/* Code points of which each step-th has its other case add away. */
typedef struct Letters {
  u32 first, last;
  i32 step, add;
} Letters;

#define R(first, last, step, add) {first, last, step, add},
#define LETTERS_UPPER
static const Letters to_upper[] = {
#include "stdlib/text/letter_case.def"
};
#undef LETTERS_UPPER
#define LETTERS_LOWER
static const Letters to_lower[] = {
#include "stdlib/text/letter_case.def"
};
#undef LETTERS_LOWER
#undef R

u32 letters_case(u32 c, bool upper) {
  if (c < 0x80) return c - (upper ? 'a' : 'A') < 26 ? c ^ 32 : c;
  const Letters *rows = upper ? to_upper : to_lower;
  const u32 count = (u32)(upper ? COUNT_OF(to_upper) : COUNT_OF(to_lower));
  u32 from = 0, to = count;
  while (from < to) { /* the first row that does not end before c */
    const u32 middle = (from + to) / 2;
    if (rows[middle].last < c) from = middle + 1;
    else to = middle;
  }
  if (from == count) return c;
  const Letters *row = &rows[from];
  return c >= row->first && (c - row->first) % (u32)row->step == 0 ? (u32)((i32)c + row->add) : c;
}

/* mutate.c — random changes of an input, and the words that each format is made of. */
#include "tests/fuzz/mutate.h"

#include <string.h>

const char *const mutate_source_words[] = {
    "let ", "fn ", "if ", "else ", "for ", "while ", " in ", " by ", "break", "continue", "return ", "try ",
    "catch e ", "import ",
    " and ", " or ", "not ", "true", "false", "nil", "(", ")", "[", "]", "{", "}", ",", ";", ":", "=", "=>", "==", "!=",
    "<=", "|>", "..",
    "...", "+", "-", "*", "/", "//", "%", "@", "**", "&", "|", "^", "~", "<<", ">>", "+=", ".", "_", "\n", " ", "#",
    "\"", "\"\"\"", "f\"{",
    "}\"", "\\", "0x", "1e308", "9223372036854775807", "0.5", "1", "0", "-1", "x", "y", "f", "a[", "a.b", "sum(",
    "zeros(", "arange(",
    "print(", "len(", "map(", "grad(", "scan(", "cond(", "f32(", "i32(", "ref(", "error(", "x => ", "(a, b) => ",
    "{a: 1}", "[1, 2]",
    "(1,)", "0..3", ".shape", ".T", ".value", "reshape(", "axis=", "sort(", "\xff", "\xc3\xa9", NULL};

const char *const mutate_npy_words[] = {
    "\x93NUMPY\x01", "\x93NUMPY\x02", "{'descr': '<f8', ", "'fortran_order': False, ", "'fortran_order': True, ",
    "'shape': (2, 3), }",
    "'shape': (), }", "(3,)", "(0,)", "(-1,)", "(99999999999,)", "<f8", "<f4", "<i8", "<i4", "|u1", "|b1", ">f8",
    "<c16", "|O", "'", "{", "}", "(",
    ")", ",", "\n", " ", "False", "True", "9223372036854775807", NULL};

const char *const mutate_csv_words[] = {",", "\n", "\r\n", "\"", "\"\"", "\"a,b\"", "1", "-1", "2.5", "1e999", "nan",
                                        "inf", ";", " ", "a", "\xef\xbb\xbf", "99999999999999999999", "0x10", "\xc3",
                                        ",,", "\n\n", "true", NULL};

const char *const mutate_npz_words[] = {"PK\x03\x04", "PK\x01\x02", "PK\x05\x06", "PK\x06\x06", "PK\x06\x07",
                                        ".npy", "\xff\xff\xff\xff", "\xff\xff", "\x01", "\x08", "\x93NUMPY\x01", "a",
                                        NULL};

const char *const mutate_image_words[] = {"\x89PNG\r\n\x1a\n", "IHDR", "IDAT", "PLTE", "tRNS", "IEND", "P2 ", "P3 ",
                                          "P5 ", "P6 ", " 255 ", " 65535\n", "\x78\x9c", "\x10", "\x08", "\x03",
                                          "\x06", "# x\n", "\xff\xff\xff\xff", "1", NULL};

const char *const mutate_json_words[] = {"{", "}", "[", "]", ",", ":", "\"", "\"a\"", "{\"a\":1}", "true", "null", "-",
                                         "0", "1.5", "e", "1e999", "9223372036854775808", "\\u", "\\ud83d\\ude00",
                                         "\\n", " ", "\n", "\xc3\xa9", NULL};

const char *const mutate_regex_words[] = {"(", ")", "[", "]", "a", "b", ".", "*", "+", "?", "{1,2}", "|", "^", "$",
                                          "\\b", "\\w", "\\1", "(?:", "(?=", "(?<=", "(?<n>", "\\K", "(?i)", "\n",
                                          "\xc3\xa9", "(*ACCEPT)", "(?R)", "aaa", NULL};

uint64_t random_next(Random *r) { /* SplitMix64 */
  uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t random_below(Random *r, uint64_t n) { return n ? random_next(r) % n : 0; }

/* Replaces out[at … at+cut) by a piece; returns the new length, or the old one when it would not fit. */
static size_t splice(char *out, size_t length, size_t cap, size_t at, size_t cut, const char *piece,
                     size_t piece_length) {
  if (length - cut + piece_length > cap) return length;
  memmove(out + at + piece_length, out + at + cut, length - at - cut);
  memcpy(out + at, piece, piece_length);
  return length - cut + piece_length;
}

static size_t change_once(Random *r, char *out, size_t length, size_t cap, const char *other, size_t other_length,
                          const char *const *words) {
  size_t at = (size_t)random_below(r, length + 1), left = length - at;
  switch (random_below(r, 9)) {
  case 0: /* flip a bit */
    if (left) out[at] = (char)(out[at] ^ (1 << random_below(r, 8)));
    return length;
  case 1: /* another byte */
    if (left) out[at] = (char)random_below(r, 256);
    return length;
  case 2: /* cut */
    return splice(out, length, cap, at, (size_t)random_below(r, (left < 32 ? left : 32) + 1), "", 0);
  case 3:
  case 4: { /* a word, over what is there or between */
    size_t count = 0;
    while (words[count]) count++;
    const char *word = words[random_below(r, count)];
    size_t n = strlen(word), cut = random_below(r, 2) ? (n < left ? n : left) : 0;
    return splice(out, length, cap, at, cut, word, n);
  }
  case 5: { /* a piece of itself again */
    char piece[64];
    size_t from = (size_t)random_below(r, length + 1), n = (size_t)random_below(r, 64);
    if (n > length - from) n = length - from;
    memcpy(piece, out + from, n);
    return splice(out, length, cap, at, 0, piece, n);
  }
  case 6: { /* a piece of another input */
    size_t from = (size_t)random_below(r, other_length + 1), n = (size_t)random_below(r, 128);
    if (n > other_length - from) n = other_length - from;
    return splice(out, length, cap, at, (size_t)random_below(r, left + 1) / 2, other + from, n);
  }
  case 7: { /* a number made larger or smaller */
    for (size_t i = at; i < length; i++)
      if (out[i] >= '0' && out[i] <= '9') {
        out[i] = (char)('0' + random_below(r, 10));
        break;
      }
    return length;
  }
  default: /* the head of this, the tail of another */
    if (random_below(r, 4) == 0) {
      size_t from = (size_t)random_below(r, other_length + 1);
      return splice(out, length, cap, at, left, other + from, other_length - from);
    }
    return length;
  }
}

size_t mutate(Random *r, char *out, size_t cap, const char *from, size_t from_length, const char *other,
              size_t other_length, const char *const *words) {
  size_t length = from_length < cap ? from_length : cap;
  memcpy(out, from, length);
  uint64_t changes = 1 + random_below(r, 1 + random_below(r, 8));
  while (changes--) length = change_once(r, out, length, cap, other, other_length, words);
  return length;
}

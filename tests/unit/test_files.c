/* test_files.c — archives and pictures made here byte by byte: what is well formed is read, and any other file is one
 * error that names it. Each format is cut at every byte, and each byte is changed in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "parser/base.h"
#include "tests/support/host.h"

#define FOLDER "build/check/test_files"
enum { BYTES_MOST = 1 << 16 };

typedef struct Bytes {
  u8 at[BYTES_MOST];
  size_t len;
} Bytes;

static void add(Bytes *b, const void *s, size_t n) {
  assert_true(b->len + n <= sizeof b->at);
  memcpy(b->at + b->len, s, n);
  b->len += n;
}

static void big(Bytes *b, u32 x) { add(b, (u8[]){(u8)(x >> 24), (u8)(x >> 16), (u8)(x >> 8), (u8)x}, 4); }
static void little(Bytes *b, u64 x, u32 bytes) {
  for (u32 i = 0; i < bytes; i++) add(b, (u8[]){i < 8 ? (u8)(x >> (8 * i)) : 0}, 1);
}

/* By definition, bit for bit: not as the library does it. */
static u32 crc_of(const u8 *s, size_t n) {
  u32 c = 0xFFFFFFFFu;
  for (size_t i = 0; i < n; i++)
    for (u32 k = 0; k < 8; k++) {
      const u32 bit = (s[i] >> k & 1) ^ (c & 1);
      c = c >> 1 ^ (bit ? 0xEDB88320u : 0);
    }
  return ~c;
}

/* Runs a program that reads FOLDER/name, which holds the bytes. */
static HostRun read_with(const char *program, const char *name, const void *data, size_t len) {
  char path[128];
  snprintf(path, sizeof path, FOLDER "/%s", name);
  (void)mkdir("build", 0777), (void)mkdir("build/check", 0777), (void)mkdir(FOLDER, 0777);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, len, f), len);
  assert_int_equal(fclose(f), 0);
  const HostSetup setup = {.backend = "eager", .hot = -1, .files = true, .memory = 64 << 20, .fuel = 1000000};
  HostRun r = host_run(&setup, "test", program);
  if (r.leaked) fail_msg("%s: %zu bytes were not given back", name, r.leaked);
  return r;
}

static void gives(const char *program, const char *name, const Bytes *b, const char *want) {
  HostRun r = read_with(program, name, b->at, b->len);
  if (r.end != HOST_VALUE) fail_msg("%s: %s: %s", name, r.kind, r.message);
  assert_string_equal(r.value, want);
  host_run_free(&r);
}

static void refuses(const char *program, const char *name, const void *data, size_t len, const char *why) {
  HostRun r = read_with(program, name, data, len);
  if (r.end != HOST_ERROR) fail_msg("%s was read, wanted an error: %s", name, why);
  if (strcmp(r.kind, "io") != 0 && strcmp(r.kind, "limit") != 0 && strcmp(r.kind, "unsupported") != 0)
    fail_msg("%s: an error of kind %s: %s", name, r.kind, r.message);
  if (!strstr(r.message, name) || !strstr(r.message, why))
    fail_msg("%s: wanted \"%s\", got \"%s\"", name, why, r.message);
  host_run_free(&r);
}

/* Every cut is an error. *same: what a change of a byte may leave unnoticed (dates, say) must still give this. */
static void spoil(const char *program, const char *name, const Bytes *b, const char *same) {
  Bytes *c = malloc(sizeof *c);
  assert_non_null(c);
  for (size_t n = 0; n < b->len; n++) refuses(program, name, b->at, n, "");
  for (size_t i = 0; i < b->len; i++) {
    *c = *b;
    c->at[i] ^= 0x41;
    HostRun r = read_with(program, name, c->at, c->len);
    if (r.end == HOST_VALUE && (!same || strcmp(r.value, same) != 0)) fail_msg("%s: byte %zu: %s", name, i, r.value);
    if (r.end == HOST_ERROR && !strstr(r.message, name)) fail_msg("%s: byte %zu: \"%s\"", name, i, r.message);
    host_run_free(&r);
  }
  free(c);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

#define LOAD_PNG "load_image(\"" FOLDER "/t.png\")"

static void chunk(Bytes *b, const char *type, const void *body, size_t n) {
  big(b, (u32)n);
  const size_t at = b->len;
  add(b, type, 4);
  add(b, body, n);
  big(b, crc_of(b->at + at, n + 4));
}

/* zlib's format without compression. */
static void stored(Bytes *b, const u8 *s, size_t n) {
  u32 low = 1, high = 0;
  for (size_t i = 0; i < n; i++) low = (low + s[i]) % 65521, high = (high + low) % 65521;
  add(b, "\x78\x01\x01", 3);
  little(b, n, 2);
  little(b, ~n & 0xFFFF, 2);
  add(b, s, n);
  big(b, high << 16 | low);
}

typedef struct PngHead {
  u32 width, height;
  u8 depth, colour, compression, filter, interlace;
} PngHead;

static void png_begin(Bytes *b, PngHead h) {
  Bytes *head = calloc(1, sizeof *head);
  assert_non_null(head);
  b->len = 0;
  add(b, "\x89PNG\r\n\x1a\n", 8);
  big(head, h.width);
  big(head, h.height);
  add(head, (u8[]){h.depth, h.colour, h.compression, h.filter, h.interlace}, 5);
  chunk(b, "IHDR", head->at, head->len);
  free(head);
}

static void png_pixels(Bytes *b, const void *rows, size_t n) {
  Bytes *data = calloc(1, sizeof *data);
  assert_non_null(data);
  stored(data, rows, n);
  chunk(b, "IDAT", data->at, data->len);
  free(data);
}

static void png(Bytes *b, PngHead h, const void *rows, size_t n) {
  png_begin(b, h);
  png_pixels(b, rows, n);
  chunk(b, "IEND", "", 0);
}

static void png_kinds_of_pixels(void **state) {
  (void)state;
  static Bytes b;
  png(&b, (PngHead){2, 2, 8, 0, 0, 0, 0}, "\0\1\2\0\3\4", 6);
  gives(LOAD_PNG, "t.png", &b, "[[1, 2],\n [3, 4]]");
  png(&b, (PngHead){2, 1, 16, 0, 0, 0, 0}, "\0\1\2\xff\xff", 5);
  gives(LOAD_PNG, "t.png", &b, "[[258, 65535]]");
  png(&b, (PngHead){1, 1, 8, 2, 0, 0, 0}, "\0\1\2\3", 4);
  gives(LOAD_PNG, "t.png", &b, "[[[1, 2, 3]]]");
  png(&b, (PngHead){1, 1, 16, 6, 0, 0, 0}, "\0\0\1\0\2\0\3\0\4", 9);
  gives(LOAD_PNG, "t.png", &b, "[[[1, 2, 3, 4]]]");
  png(&b, (PngHead){1, 1, 8, 4, 0, 0, 0}, "\0\7\x08", 3);
  gives(LOAD_PNG, "t.png", &b, "[[[7, 8]]]");
  png(&b, (PngHead){9, 1, 1, 0, 0, 0, 0}, "\0\xa5\x80", 3); /* 1010 0101 1 */
  gives(LOAD_PNG, "t.png", &b, "[[255, 0, 255, 0, 0, 255, 0, 255, 255]]");
  png(&b, (PngHead){5, 1, 2, 0, 0, 0, 0}, "\0\x1b\x40", 3); /* 0 1 2 3 1 */
  gives(LOAD_PNG, "t.png", &b, "[[0, 85, 170, 255, 85]]");
  png(&b, (PngHead){3, 1, 4, 0, 0, 0, 0}, "\0\x0f\x80", 3);
  gives(LOAD_PNG, "t.png", &b, "[[0, 255, 136]]");
  /* all five filters, each row 10 20 30 40 */
  png(&b, (PngHead){4, 5, 8, 0, 0, 0, 0}, "\0\n\24\36\50" "\1\n\n\n\n" "\2\0\0\0\0" "\3\5\5\5\5" "\4\0\0\0\0", 25);
  gives(LOAD_PNG "[:, 0]", "t.png", &b, "[10, 10, 10, 10, 10]");
  gives(LOAD_PNG "[0:3] == [[10, 20, 30, 40], [10, 20, 30, 40], [10, 20, 30, 40]]", "t.png", &b,
        "[[true, true, true, true],\n [true, true, true, true],\n [true, true, true, true]]");
  gives(LOAD_PNG "[3:]", "t.png", &b, "[[10, 20, 30, 40],\n [10, 20, 30, 40]]");
}

static void png_palettes(void **state) {
  (void)state;
  static Bytes b;
  png_begin(&b, (PngHead){4, 1, 2, 3, 0, 0, 0});
  chunk(&b, "PLTE", "\1\2\3\4\5\6\7\x08\x09", 9);
  png_pixels(&b, "\0\x18", 2); /* 0 1 2 0 */
  chunk(&b, "IEND", "", 0);
  gives(LOAD_PNG, "t.png", &b, "[[[1, 2, 3],\n  [4, 5, 6],\n  [7, 8, 9],\n  [1, 2, 3]]]");
  png_begin(&b, (PngHead){2, 1, 8, 3, 0, 0, 0});
  chunk(&b, "PLTE", "\1\2\3\4\5\6", 6);
  chunk(&b, "tRNS", "\x80", 1);
  png_pixels(&b, "\0\0\1", 3);
  chunk(&b, "IEND", "", 0);
  gives(LOAD_PNG, "t.png", &b, "[[[1, 2, 3, 128],\n  [4, 5, 6, 255]]]");
}

/* Adam7: the pixel at (x, y) of each picture holds its own number. */
static void png_interlaced(void **state) {
  (void)state;
  static Bytes b;
  static const u8 pattern[8][9] = {"16462646", "77777777", "56565656", "77777777",
                                   "36463646", "77777777", "56565656", "77777777"};
  for (u32 width = 1; width <= 10; width++)
    for (u32 height = 1; height <= 10; height++) {
      u8 rows[400];
      size_t n = 0;
      for (u8 pass = '1'; pass <= '7'; pass++)
        for (u32 y = 0; y < height; y++) {
          bool any = false;
          for (u32 x = 0; x < width; x++) {
            if (pattern[y % 8][x % 8] != pass) continue;
            if (!any) rows[n++] = 0;
            any = true;
            rows[n++] = (u8)(y * width + x);
          }
        }
      char want[200];
      png(&b, (PngHead){width, height, 8, 0, 0, 0, 1}, rows, n);
      snprintf(want, sizeof want, "let x = " LOAD_PNG "; all(ravel(x) == arange(%u)) and x.shape == (%u, %u)",
               width * height, height, width);
      gives(want, "t.png", &b, "true");
    }
}

static void png_malformed(void **state) {
  (void)state;
  static Bytes b, c;
  const PngHead grey = {2, 2, 8, 0, 0, 0, 0};
  static const char rows[] = "\0\1\2\0\3\4";
#define REFUSES(why) refuses(LOAD_PNG, "t.png", b.at, b.len, why)
  png(&b, grey, rows, 6);
  spoil(LOAD_PNG, "t.png", &b, NULL);
  static const u8 wrong[][2] = {{3, 0}, {0, 0}, {32, 0}, {4, 2}, {16, 3}, {1, 4}, {2, 6}, {8, 1}, {8, 5}, {8, 7}};
  for (u32 i = 0; i < COUNT_OF(wrong); i++) {
    png(&b, (PngHead){2, 2, wrong[i][0], wrong[i][1], 0, 0, 0}, rows, 6);
    REFUSES("its colour type and bit depth do not go together");
  }
  for (u32 i = 0; i < 3; i++) {
    png(&b, (PngHead){2, 2, 8, 0, i == 0, i == 1, i == 2 ? 2 : 0}, rows, 6);
    REFUSES("method is unknown");
  }
  png(&b, (PngHead){0, 2, 8, 0, 0, 0, 0}, rows, 6), REFUSES("it has no pixels");
  png(&b, (PngHead){2, 0, 8, 0, 0, 0, 0}, rows, 6), REFUSES("it has no pixels");
  png(&b, (PngHead){0x80000000u, 2, 8, 0, 0, 0, 0}, rows, 6), REFUSES("it is too large");
  png(&b, (PngHead){1 << 20, 1 << 20, 8, 6, 0, 0, 0}, rows, 6), REFUSES("holds less than it should");
  png(&b, (PngHead){3, 2, 8, 0, 0, 0, 0}, rows, 6), REFUSES("holds less than it should");
  png(&b, (PngHead){1, 2, 8, 0, 0, 0, 0}, rows, 6), REFUSES("holds more than it should");
  png(&b, grey, "\5\1\2\0\3\4", 6), REFUSES("the filter of a row is unknown");
  png(&b, grey, "\0\1\2\xff\3\4", 6), REFUSES("the filter of a row is unknown");
  png_begin(&b, grey), chunk(&b, "IEND", "", 0), REFUSES("it has no pixels");
  png_begin(&b, grey), chunk(&b, "IDAT", "", 0), chunk(&b, "IEND", "", 0), REFUSES("its compressed data is broken");
  png_begin(&b, grey), chunk(&b, "IDAT", "junk", 4), chunk(&b, "IEND", "", 0), REFUSES("compressed data is broken");
  png_begin(&b, grey), png_pixels(&b, rows, 6), REFUSES("it ends too early");
  png_begin(&b, grey), png_begin(&c, grey), add(&b, c.at + 8, c.len - 8), png_pixels(&b, rows, 6);
  REFUSES("its IHDR is not its first chunk alone");
  b.len = 0, add(&b, "\x89PNG\r\n\x1a\n", 8), png_pixels(&b, rows, 6);
  REFUSES("its IHDR is not its first chunk alone");
  b.len = 0, add(&b, "\x89PNG\r\n\x1a\n", 8), chunk(&b, "IHDR", "short", 5), REFUSES("its IHDR is broken");
  png_begin(&b, grey), chunk(&b, "ABCD", "", 0), png_pixels(&b, rows, 6), chunk(&b, "IEND", "", 0);
  REFUSES("a critical chunk that is unknown");
  png_begin(&b, grey), png_pixels(&b, rows, 6), chunk(&b, "tEXt", "a", 1), png_pixels(&b, rows, 6);
  chunk(&b, "IEND", "", 0), REFUSES("its IDAT chunks do not stand together");
  const PngHead palette = {2, 1, 8, 3, 0, 0, 0};
  png(&b, palette, "\0\0\1", 3), REFUSES("it has no palette");
  static const u8 lengths[] = {0, 1, 4};
  for (u32 i = 0; i < COUNT_OF(lengths); i++)
    png_begin(&b, palette), chunk(&b, "PLTE", "\1\2\3\4", lengths[i]), REFUSES("its PLTE is broken");
  png_begin(&b, palette), chunk(&b, "PLTE", "\1\2\3", 3), chunk(&b, "PLTE", "\1\2\3", 3), REFUSES("its PLTE is broken");
  png_begin(&b, palette), chunk(&b, "PLTE", "\1\2\3", 3), chunk(&b, "tRNS", "\1\2", 2), REFUSES("its tRNS is broken");
  png_begin(&b, palette), chunk(&b, "PLTE", "\1\2\3", 3), png_pixels(&b, "\0\0\1", 3), chunk(&b, "IEND", "", 0);
  REFUSES("a colour that its palette does not have");
  png_begin(&b, palette), png_pixels(&b, "\0\0\1", 3), chunk(&b, "PLTE", "\1\2\3", 3);
  REFUSES("its PLTE stands behind its pixels");
  png_begin(&b, palette), chunk(&b, "PLTE", "\1\2\3", 3), png_pixels(&b, "\0\0\0", 3), chunk(&b, "tRNS", "\1", 1);
  REFUSES("its tRNS stands behind its pixels");
  /* what is not critical is passed over */
  png_begin(&b, grey), chunk(&b, "tEXt", "a", 1), png_pixels(&b, rows, 6), chunk(&b, "IEND", "", 0);
  gives(LOAD_PNG, "t.png", &b, "[[1, 2],\n [3, 4]]");
#undef REFUSES
}

/* ---- PNM ------------------------------------------------------------------------------------- */

static void pnm(void **state) {
  (void)state;
#define LOAD_PNM "load_image(\"" FOLDER "/t.ppm\")"
  static const struct {
    const char *text;
    size_t len;
    const char *want;
  } good[] = {
      {"P2 2 1 255 7 8", 14, "[[7, 8]]"},
      {"P2\n# a comment\n2 # another\n1\n255\n7 8\n", 37, "[[7, 8]]"},
      {"P2 2 1 5 5 0", 12, "[[255, 0]]"},
      {"P2 1 1 65535 1000", 17, "[[1000]]"},
      {"P3 1 1 255 1 2 3", 16, "[[[1, 2, 3]]]"},
      {"P5 2 1 255 \1\2", 13, "[[1, 2]]"},
      {"P5 1 1 65535 \1\2", 15, "[[258]]"},
      {"P6\n1 1\n255\n\1\2\3", 14, "[[[1, 2, 3]]]"},
      {"P5 1 1 255 #", 12, "[[35]]"},
  };
  static Bytes b;
  for (u32 i = 0; i < COUNT_OF(good); i++) {
    b.len = 0;
    add(&b, good[i].text, good[i].len);
    gives(LOAD_PNM, "t.ppm", &b, good[i].want);
  }
  static const struct {
    const char *text, *why;
  } bad[] = {
      {"", ""}, {"P", ""}, {"P9 1 1 255 1", "it is no PNG, PPM or PGM"}, {"PK", "it is no PNG, PPM or PGM"},
      {"P1 1 1 1", "bitmaps"}, {"P4 1 1 1", "bitmaps"}, {"P2", "its size"}, {"P2 1", "its size"},
      {"P2 x 1 255 1", "its size"}, {"P2 1 -1 255 1", "its size"}, {"P2 99999999999 1 255 1", "its size"},
      {"P2 1 1", "its largest value"}, {"P2 1 1 0 1", "its largest value"}, {"P2 1 1 65536 1", "its largest value"},
      {"P2 1 1 255", "it ends too early"}, {"P2 1 1 255 ", "it ends too early"}, {"P2 0 1 255 1", "it has no pixels"},
      {"P2 1 0 255 1", "it has no pixels"}, {"P2 1 1 255 256", "larger than the largest"},
      {"P2 1 1 255 x", "a value is broken"}, {"P2 1 1 255 -1", "a value is broken"},
      {"P2 2 1 255 1 ", "a value is broken"},
      {"P3 1 1 255 1 2 ", "a value is broken"}, {"P5 2 1 255 1", "it ends too early"},
      {"P6 1 1 255 12", "it ends too early"},
      {"P5 1 1 65535 1", "it ends too early"}, {"P5 1000000 1000000 255 1", "it ends too early"},
      {"P5 4294967294 4294967294 255 1", "ends too early"}, {"P6 4294967294 4294967294 65535 1", "too"},
      {"P5 1 1 255x1", "it ends too early"}, {"P2 1048577 1 255 1", "it ends too early"}, {"P5 # no end", "its size"},
      {"P2 1 1 255 # 7", "a value is broken"}, {"P2 1 1 4294967296 7", "its largest value"},
      {"P3 1 1 255 1 2 300", "larger than the largest"}, {"P2 1 1 255 7777777777777", "broken"},
      {"P6 1 1", "its largest"},
      {"P6 1 1 255", "it ends too early"}, {"Pp 1 1 255 1", "it is no PNG"}, {"P2\t1\t1\t256\t257", "larger"},
  };
  for (u32 i = 0; i < COUNT_OF(bad); i++) refuses(LOAD_PNM, "t.ppm", bad[i].text, strlen(bad[i].text), bad[i].why);
  assert_true(COUNT_OF(bad) >= 40);
}

/* ---- .npz ------------------------------------------------------------------------------------ */

#define LOAD_NPZ "load_npz(\"" FOLDER "/t.npz\")"

typedef struct Zip {
  const char *name;
  u32 method, flags;
  bool wide;          /* sizes in extra fields, as NumPy writes them */
  i64 wrong_crc, wrong_size, wrong_packed, wrong_local; /* what is added */
} Zip;

static size_t npy_file(u8 *out, u8 value) {
  static const char head[] = "\x93NUMPY\x01\0\x46\0{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }\n";
  const size_t n = 10 + 0x46;
  memset(out, ' ', n);
  memcpy(out, head, sizeof head - 2);
  out[n - 1] = '\n';
  out[n] = value;
  return n + 1;
}

/* Deflate's format without compression. */
static void zip(Bytes *b, const Zip *members, u32 count, u32 claimed) {
  Bytes *directory = calloc(1, sizeof *directory), *data = calloc(1, sizeof *data);
  assert_true(directory && data);
  b->len = 0;
  for (u32 i = 0; i < count; i++) {
    const Zip *m = &members[i];
    u8 file[128];
    const size_t n = npy_file(file, (u8)(i + 5));
    data->len = 0;
    if (m->method == 8) add(data, "\x01", 1), little(data, n, 2), little(data, ~n & 0xFFFF, 2);
    add(data, file, n);
    const u64 crc = crc_of(file, n) + (u64)m->wrong_crc, size = n + (u64)m->wrong_size,
              packed = data->len + (u64)m->wrong_packed, local = b->len + (u64)m->wrong_local;
    const u64 full = 0xFFFFFFFFu;
    const size_t name = strlen(m->name);
    add(b, "PK\3\4", 4);
    little(b, 20, 2), little(b, m->flags, 2), little(b, m->method, 2), little(b, 0, 4), little(b, crc, 4);
    little(b, m->wide ? full : packed, 4), little(b, m->wide ? full : size, 4);
    little(b, name, 2), little(b, m->wide ? 20 : 0, 2), add(b, m->name, name);
    if (m->wide) little(b, 1, 2), little(b, 16, 2), little(b, size, 8), little(b, packed, 8);
    add(b, data->at, data->len);
    add(directory, "PK\1\2", 4);
    little(directory, 20, 2), little(directory, 20, 2), little(directory, m->flags, 2), little(directory, m->method, 2);
    little(directory, 0, 4), little(directory, crc, 4);
    little(directory, m->wide ? full : packed, 4), little(directory, m->wide ? full : size, 4);
    little(directory, name, 2), little(directory, m->wide ? 28 : 0, 2), little(directory, 0, 10);
    little(directory, m->wide ? full : local, 4), add(directory, m->name, name);
    if (m->wide)
      little(directory, 1, 2), little(directory, 24, 2), little(directory, size, 8), little(directory, packed, 8),
          little(directory, local, 8);
  }
  const size_t at = b->len;
  add(b, directory->at, directory->len);
  add(b, "PK\5\6\0\0\0\0", 8);
  little(b, claimed, 2), little(b, claimed, 2), little(b, directory->len, 4), little(b, at, 4), little(b, 0, 2);
  free(directory);
  free(data);
}

static void npz(void **state) {
  (void)state;
  static Bytes b;
  const Zip two[] = {{.name = "a.npy"}, {.name = "b c.npy", .method = 8}};
  zip(&b, two, 2, 2);
  gives(LOAD_NPZ, "t.npz", &b, "{a: [5], \"b c\": [6]}");
  const Zip wide[] = {{.name = "a.npy", .wide = true}, {.name = "b.npy", .wide = true, .method = 8}};
  zip(&b, wide, 2, 2);
  gives(LOAD_NPZ, "t.npz", &b, "{a: [5], b: [6]}");
  zip(&b, two, 0, 0);
  gives(LOAD_NPZ, "t.npz", &b, "{}");
  zip(&b, two, 2, 2);
  b.at[b.len - 2] = 3, add(&b, "abc", 3); /* a comment */
  gives(LOAD_NPZ, "t.npz", &b, "{a: [5], \"b c\": [6]}");
}

static void npz_malformed(void **state) {
  (void)state;
  static Bytes b;
  const Zip one[] = {{.name = "a.npy"}, {.name = "b.npy", .method = 8}};
#define REFUSES(why) refuses(LOAD_NPZ, "t.npz", b.at, b.len, why)
  zip(&b, one, 2, 2);
  for (size_t n = 0; n < b.len; n++) refuses(LOAD_NPZ, "t.npz", b.at, n, "");
  static const struct {
    Zip m;
    const char *why;
  } bad[] = {
      {{.name = "a.npy", .wrong_crc = 1}, "its check does not fit its data"},
      {{.name = "a.npy", .wrong_size = 1}, "its two sizes differ"},
      {{.name = "a.npy", .wrong_packed = -1}, "its two sizes differ"},
      {{.name = "a.npy", .wrong_size = 100000, .wrong_packed = 100000}, "beyond the end of the archive"},
      {{.name = "a.npy", .wrong_local = 1}, "its place in the archive is broken"},
      {{.name = "a.npy", .wrong_local = 1000000}, "its place in the archive is broken"},
      {{.name = "a.npy", .wrong_local = -1}, "its directory is broken"},
      {{.name = "a.npy", .method = 8, .wrong_size = 1}, "holds less than it should"},
      {{.name = "a.npy", .method = 8, .wrong_size = -1}, "holds more than it should"},
      {{.name = "a.npy", .method = 8, .wrong_packed = -2}, "compressed data is broken"},
      {{.name = "a.npy", .method = 8, .wrong_crc = 7}, "its check does not fit its data"},
      {{.name = "a.npy", .method = 12}, "its compression is not supported"},
      {{.name = "a.npy", .method = 1}, "its compression is not supported"},
      {{.name = "a.npy", .flags = 1}, "it is encrypted"},
      {{.name = "a.txt"}, "it is no .npy file"},
      {{.name = "npy"}, "it is no .npy file"},
      {{.name = ""}, "it is no .npy file"},
      {{.name = "folder/"}, "it is no .npy file"},
      {{.name = ".npy"}, "it has no name"},
      {{.name = "\xff.npy"}, "is not UTF-8"},
      {{.name = "a.npy", .wide = true, .wrong_local = 5}, "its place in the archive is broken"},
      {{.name = "a.npy", .wide = true, .wrong_size = (i64)1 << 40, .wrong_packed = (i64)1 << 40}, "beyond the end"},
      {{.name = "a.npy", .wide = true, .method = 8, .wrong_size = (i64)1 << 60}, "too large"},
      {{.name = "a.npy", .wide = true, .wrong_local = -((i64)1 << 40)}, "its place in the archive is broken"},
  };
  for (u32 i = 0; i < COUNT_OF(bad); i++) zip(&b, &bad[i].m, 1, 1), REFUSES(bad[i].why);
  const Zip twice[] = {{.name = "a.npy"}, {.name = "a.npy"}};
  zip(&b, twice, 2, 2), REFUSES("its name stands twice");
  zip(&b, one, 2, 3), REFUSES("its directory is broken");
  zip(&b, one, 1, 60000), REFUSES("its directory is broken");
  zip(&b, one, 1, 0xFFFF), REFUSES("its directory is broken");
  for (u32 i = 0; i < 8; i++) { /* sizes and places of the directory */
    zip(&b, one, 2, 2);
    b.at[b.len - 10 + i] ^= 0xFF;
    REFUSES("");
  }
  zip(&b, one, 1, 1), b.at[b.len - 18] = 1, REFUSES("several files");
  zip(&b, one, 1, 1), b.at[b.len - 22 - 51] = 'X', REFUSES("its directory is broken");
  b.len = 0, add(&b, "\x93NUMPY", 6), REFUSES("it is no .npz file");
  memset(b.at, 'x', 5000), b.len = 5000, REFUSES("it is no .npz file");
  /* a byte that is changed: an error, or it does not matter (a date, a version) */
  zip(&b, one, 2, 2);
  for (size_t i = 0; i < b.len; i++) {
    static Bytes c;
    c = b;
    c.at[i] ^= 0x41;
    HostRun r = read_with(LOAD_NPZ, "t.npz", c.at, c.len);
    if (r.end == HOST_ERROR && !strstr(r.message, "t.npz")) fail_msg("byte %zu: %s", i, r.message);
    if (r.end == HOST_VALUE && (!strstr(r.value, "[5]") || !strstr(r.value, "[6]")))
      fail_msg("byte %zu: %s", i, r.value);
    host_run_free(&r);
  }
#undef REFUSES
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(png_kinds_of_pixels), cmocka_unit_test(png_palettes), cmocka_unit_test(png_interlaced),
      cmocka_unit_test(png_malformed),       cmocka_unit_test(pnm),          cmocka_unit_test(npz),
      cmocka_unit_test(npz_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

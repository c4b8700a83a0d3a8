/* png.c — PNG (ISO/IEC 15948): chunks, filters, interlacing and palettes here, the compression is zlib's. */
#include "stdlib/files/image.h"
#include "stdlib/files/zlib.h"

#include <stdlib.h>
#include <string.h>

static const char signature[8] = "\x89PNG\r\n\x1a\n";

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6 };
enum { CHUNK_HEAD = 8, CHUNK_CHECK = 4, HEADER_BYTES = 13 };

static u32 png_get32(const char *p) {
  return (u32)(u8)p[0] << 24 | (u32)(u8)p[1] << 16 | (u32)(u8)p[2] << 8 | (u8)p[3];
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct Png {
  u32 width, height, depth, colour;
  bool interlaced;
  u8 palette[256][4];
  u32 colours; /* in it */
  bool clear;  /* some have alpha */
  Buf packed;  /* compressed data of all chunks */
} Png;

static u32 channels_of(u32 colour) {
  return colour == GREY || colour == PALETTE ? 1 : colour == GREY_ALPHA ? 2 : colour == RGB ? 3 : 4;
}

static const char *png_header(const char *p, size_t n, Png *g) {
  if (n != HEADER_BYTES) return "its IHDR is broken";
  g->width = png_get32(p);
  g->height = png_get32(p + 4);
  g->depth = (u8)p[8];
  g->colour = (u8)p[9];
  g->interlaced = p[12] == 1;
  const bool deep = g->depth == 8 || g->depth == 16, shallow = g->depth == 1 || g->depth == 2 || g->depth == 4;
  const bool known = g->colour == GREY ? deep || shallow : g->colour == PALETTE ? shallow || g->depth == 8
                     : g->colour == RGB || g->colour == GREY_ALPHA || g->colour == RGBA ? deep : false;
  if (!known) return "its colour type and bit depth do not go together";
  if (p[10] || p[11] || (u8)p[12] > 1) return "its compression, filter or interlace method is unknown";
  if (!g->width || !g->height) return "it has no pixels";
  if (g->width > IMAGE_SIDE_MOST || g->height > IMAGE_SIDE_MOST) return "it is too large";
  return NULL;
}

static const char *png_palette(const char *p, size_t n, Png *g) {
  if (n == 0 || n % 3 || n > 3 * 256 || g->colours) return "its PLTE is broken";
  g->colours = (u32)(n / 3);
  for (u32 i = 0; i < g->colours; i++) {
    memcpy(g->palette[i], p + 3 * (size_t)i, 3);
    g->palette[i][3] = 255;
  }
  return NULL;
}

static const char *png_transparent(const char *p, size_t n, Png *g) {
  if (g->colour != PALETTE) return NULL; /* one colour stands for nothing there: it stays what it is */
  if (n > g->colours) return "its tRNS is broken";
  for (size_t i = 0; i < n; i++) g->palette[i][3] = (u8)p[i];
  g->clear = n > 0;
  return NULL;
}

/* All chunks up to the end. NULL, or what is wrong; g->packed has failed where the program is to end. */
static const char *png_chunks(const Vm *vm, const char *data, size_t len, Png *g) {
  size_t at = sizeof signature;
  if (len < at || memcmp(data, signature, sizeof signature) != 0) return "it is no PNG image";
  bool data_begun = false, data_ended = false;
  for (bool first = true;; first = false) {
    if (len - at < CHUNK_HEAD + CHUNK_CHECK) return "it ends too early";
    const u32 n = png_get32(data + at);
    const char *type = data + at + 4, *body = data + at + CHUNK_HEAD, *why = NULL;
    if (n > len - at - CHUNK_HEAD - CHUNK_CHECK) return "it ends too early";
    u32 crc = 0;
    if (!crc32_of(vm, &crc, type, n + 4)) return (void)(g->packed.failed = true), NULL;
    if (crc != png_get32(body + n)) return "the check of a chunk does not fit its data";
    const bool header = memcmp(type, "IHDR", 4) == 0, pixels = memcmp(type, "IDAT", 4) == 0;
    if (header != first) return "its IHDR is not its first chunk alone";
    data_ended |= data_begun && !pixels;
    if (header) why = png_header(body, n, g);
    else if (memcmp(type, "PLTE", 4) == 0)
      why = data_begun ? "its PLTE stands behind its pixels" : png_palette(body, n, g);
    else if (memcmp(type, "tRNS", 4) == 0)
      why = data_begun ? "its tRNS stands behind its pixels" : png_transparent(body, n, g);
    else if (pixels && data_ended) why = "its IDAT chunks do not stand together";
    else if (pixels) buf_put(&g->packed, body, n), data_begun = true;
    else if (memcmp(type, "IEND", 4) == 0) return data_begun ? NULL : "it has no pixels";
    else if (!(type[0] & 0x20)) why = "it has a critical chunk that is unknown";
    if (why) return why;
    at += CHUNK_HEAD + n + CHUNK_CHECK;
  }
}

static u8 paeth(int a, int b, int c) {
  const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
  return (u8)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* Filters undone: rows of `bytes` behind a byte that says which; step: bytes of a pixel, at least 1. *why: what is
 * wrong. */
static WeftStatus unfilter(Vm *vm, u8 *rows, size_t bytes, u32 count, size_t step, const char **why) {
  u8 *above = NULL;
  for (u32 r = 0; r < count; r++, rows += bytes + 1) {
    TRY(vm_poll(vm, 1 + bytes / 1024));
    u8 *row = rows + 1;
    switch (rows[0]) {
      case 0: break;
      case 1:
        for (size_t i = step; i < bytes; i++) row[i] = (u8)(row[i] + row[i - step]);
        break;
      case 2:
        for (size_t i = 0; i < bytes && above; i++) row[i] = (u8)(row[i] + above[i]);
        break;
      case 3:
        for (size_t i = 0; i < bytes; i++)
          row[i] = (u8)(row[i] + ((i >= step ? row[i - step] : 0) + (above ? above[i] : 0)) / 2);
        break;
      case 4:
        for (size_t i = 0; i < bytes; i++)
          row[i] = (u8)(row[i] + paeth(i >= step ? row[i - step] : 0, above ? above[i] : 0,
                                       i >= step && above ? above[i - step] : 0));
        break;
      default: *why = "the filter of a row is unknown"; return WEFT_OK;
    }
    above = row;
  }
  return WEFT_OK;
}

/* Pixel x of a row of the file as samples of the picture. NULL, or what is wrong. */
static const char *put_pixel(const Png *g, const Image *m, const u8 *row, u32 x, u8 *to) {
  const size_t bytes = (size_t)m->channels * (m->bits / 8);
  if (g->depth >= 8 && g->colour != PALETTE) {
    memcpy(to, row + x * bytes, bytes);
    return NULL;
  }
  const u32 per = 8 / g->depth, value = row[x / per] >> (8 - g->depth * (x % per + 1)) & ((1u << g->depth) - 1);
  if (g->colour == PALETTE) {
    if (value >= g->colours) return "a pixel is of a colour that its palette does not have";
    memcpy(to, g->palette[value], bytes);
  } else {
    *to = (u8)(value * 255 / ((1u << g->depth) - 1));
  }
  return NULL;
}

typedef struct Pass { /* pixels of an interlaced picture that come together */
  u32 x, y, dx, dy;
} Pass;

static u32 along(u32 size, u32 from, u32 step) { return size > from ? (size - from - 1) / step + 1 : 0; }

static size_t row_bytes(const Png *g, u32 width) {
  return ((size_t)width * channels_of(g->colour) * g->depth + 7) / 8;
}

static WeftStatus png_pixels(Vm *vm, const Png *g, Image *m, const char **why) {
  static const Pass whole[] = {{0, 0, 1, 1}},
                    adam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                               {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  const Pass *passes = g->interlaced ? adam7 : whole;
  const u32 count = g->interlaced ? COUNT_OF(adam7) : 1;
  u64 size = 0;
  for (u32 p = 0; p < count; p++) {
    const u32 w = along(g->width, passes[p].x, passes[p].dx), h = along(g->height, passes[p].y, passes[p].dy);
    if (w) size += (row_bytes(g, w) + 1) * (u64)h;
  }
  m->width = g->width;
  m->height = g->height;
  m->bits = g->depth == 16 ? 16 : 8;
  m->channels = g->colour != PALETTE ? channels_of(g->colour) : g->clear ? 4 : 3;
  if (size / DEFLATE_MOST > g->packed.len) {
    *why = "its compressed data holds less than it should";
    return WEFT_OK;
  }
  TRY(image_room(vm, m, why));
  if (*why) return WEFT_OK;
  TRY(zlib_need(vm, OP_load_image));
  u8 *rows = mem_alloc(&vm->alloc, size + 1), *at = rows;
  if (!rows) return vm_error_memory(vm);
  bool stopped;
  *why = zlib_inflate(vm, ZLIB_WRAPPED, g->packed.data, g->packed.len, (char *)rows, size, &stopped);
  const size_t bits = (size_t)channels_of(g->colour) * g->depth, step = bits < 8 ? 1 : bits / 8;
  const size_t pixel = (size_t)m->channels * (m->bits / 8);
  WeftStatus status = stopped ? WEFT_ERROR : WEFT_OK;
  for (u32 p = 0; p < count && !*why && status == WEFT_OK; p++) {
    const u32 w = along(g->width, passes[p].x, passes[p].dx), h = along(g->height, passes[p].y, passes[p].dy);
    if (!w || !h) continue;
    const size_t bytes = row_bytes(g, w);
    status = unfilter(vm, at, bytes, h, step, why);
    for (u32 y = 0; y < h && !*why && status == WEFT_OK; y++, at += bytes + 1) {
      u8 *to = m->samples + (passes[p].y + (u64)y * passes[p].dy) * image_row(m) + passes[p].x * pixel;
      for (u32 x = 0; x < w && !*why; x++, to += passes[p].dx * pixel) *why = put_pixel(g, m, at + 1, x, to);
      status = vm_look(vm);
    }
  }
  mem_free(&vm->alloc, rows, size + 1);
  return status;
}

WeftStatus png_decode(Vm *vm, const char *data, size_t len, Image *m, const char **why) {
  Png g = {0};
  WeftStatus status = WEFT_OK;
  vm_buf_init(vm, &g.packed);
  *why = png_chunks(vm, data, len, &g);
  if (!*why && g.colour == PALETTE && !g.colours) *why = "it has no palette";
  if (g.packed.failed) *why = NULL, status = vm_error_buf(vm);
  else if (!*why) status = png_pixels(vm, &g, m, why);
  buf_free(&g.packed);
  return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void png_put32(Buf *b, u32 x) {
  buf_put(b, (char[]){(char)(x >> 24), (char)(x >> 16), (char)(x >> 8), (char)x}, 4);
}

static void put_chunk(const Vm *vm, Buf *b, const char *type, const char *body, size_t n) {
  u32 crc = 0;
  png_put32(b, (u32)n);
  buf_put(b, type, 4);
  buf_put(b, body, n);
  if (!crc32_of(vm, &crc, type, 4) || !crc32_of(vm, &crc, body, n)) b->failed = true;
  png_put32(b, crc);
}

/* The filter of a row whose results, as distances from 0, are least in sum: the usual guess. */
static void put_row(const u8 *row, const u8 *above, size_t bytes, size_t step, u8 *tries, Buf *out) {
  u64 least = UINT64_MAX;
  u32 best = 0;
  for (u32 f = 0; f < 5; f++) {
    u64 sum = 0;
    u8 *to = tries + f * bytes;
    for (size_t i = 0; i < bytes; i++) {
      const int a = i >= step ? row[i - step] : 0, b = above ? above[i] : 0,
                c = i >= step && above ? above[i - step] : 0;
      to[i] = (u8)(row[i] - (f == 0 ? 0 : f == 1 ? a : f == 2 ? b : f == 3 ? (a + b) / 2 : paeth(a, b, c)));
      sum += to[i] < 128 ? to[i] : 256u - to[i];
    }
    if (sum < least) least = sum, best = f;
  }
  buf_putc(out, (char)best);
  buf_put(out, (const char *)tries + best * bytes, bytes);
}

WeftStatus png_encode(Vm *vm, const Image *m, Buf *out) {
  static const u8 colours[] = {0, GREY, GREY_ALPHA, RGB, RGBA};
  enum { PART = 1 << 30 };
  TRY(zlib_need(vm, OP_save_image));
  const size_t bytes = image_row(m), step = (size_t)m->channels * (m->bits / 8);
  u8 *tries = mem_alloc(&vm->alloc, 5 * bytes);
  if (!tries) return vm_error_memory(vm);
  Buf rows, packed, header;
  vm_buf_init(vm, &rows);
  vm_buf_init(vm, &packed);
  vm_buf_init(vm, &header);
  WeftStatus status = WEFT_OK;
  for (u32 y = 0; y < m->height && status == WEFT_OK; y++) {
    const u8 *row = m->samples + y * bytes;
    put_row(row, y ? row - bytes : NULL, bytes, step, tries, &rows);
    status = vm_poll(vm, 1 + bytes / 256);
  }
  mem_free(&vm->alloc, tries, 5 * bytes);
  if (status == WEFT_OK)
    status = rows.failed ? vm_error_buf(vm) : zlib_deflate(vm, ZLIB_WRAPPED, rows.data, rows.len, &packed);
  if (status == WEFT_OK) {
    png_put32(&header, m->width);
    png_put32(&header, m->height);
    buf_put(&header, (char[]){(char)m->bits, (char)colours[m->channels], 0, 0, 0}, 5);
    buf_put(out, signature, sizeof signature);
    put_chunk(vm, out, "IHDR", header.data, header.failed ? 0 : header.len);
    for (size_t at = 0; at < packed.len; at += PART)
      put_chunk(vm, out, "IDAT", packed.data + at, packed.len - at < PART ? packed.len - at : PART);
    put_chunk(vm, out, "IEND", "", 0);
    if (out->failed || header.failed) status = vm_error_buf(vm);
  }
  buf_free(&rows);
  buf_free(&packed);
  buf_free(&header);
  return status;
}

/* image.c — pictures as arrays: (height, width) or (height, width, channels), u8, or i32 for 16 bits. PNG is in png.c,
 * PNM (PPM and PGM) here. */
#include "stdlib/files/image.h"
#include "stdlib/array/make.h"

#include <math.h>
#include <string.h>

WeftStatus image_room(Vm *vm, Image *m, const char **why) {
  *why = NULL;
  if (!m->width || !m->height) *why = "it has no pixels";
  else if (m->width > IMAGE_SIDE_MOST || m->height > IMAGE_SIDE_MOST || image_bytes(m) > IMAGE_MOST)
    *why = "it is too large";
  if (*why) return WEFT_OK;
  m->samples = mem_alloc(&vm->alloc, image_bytes(m));
  return m->samples ? WEFT_OK : vm_error_memory(vm);
}

/* ---- PNM ------------------------------------------------------------------------------------- */

typedef struct Pnm {
  const char *at, *end;
} Pnm;

/* The next number of the head, behind blanks and comments; false: there is none. */
static bool pnm_number(Pnm *p, u32 *out) {
  for (; p->at < p->end; p->at++) {
    if (*p->at == '#')
      while (p->at < p->end && *p->at != '\n' && *p->at != '\r') p->at++;
    else if (!strchr(" \t\n\r\v\f", *p->at) || !*p->at) break;
    if (p->at == p->end) return false;
  }
  u64 n = 0;
  const char *begin = p->at;
  while (p->at < p->end && *p->at >= '0' && *p->at <= '9' && n < UINT32_MAX) n = n * 10 + (u32)(*p->at++ - '0');
  *out = (u32)n;
  return p->at > begin && n < UINT32_MAX;
}

static void put_sample(Image *m, u64 i, u32 value, u32 most) {
  const u32 full = m->bits == 8 ? 255 : 65535;
  const u32 v = most == full ? value : (u32)(((u64)value * full + most / 2) / most);
  if (m->bits == 8) m->samples[i] = (u8)v;
  else m->samples[2 * i] = (u8)(v >> 8), m->samples[2 * i + 1] = (u8)v;
}

static WeftStatus pnm_decode(Vm *vm, const char *data, size_t len, Image *m, const char **why) {
  const char kind = data[1];
  Pnm p = {data + 2, data + len};
  u32 most;
  *why = NULL;
  if (kind < '1' || kind > '6') *why = "it is no PNG, PPM or PGM image";
  else if (kind == '1' || kind == '4') *why = "bitmaps (PBM) are not supported";
  else if (!pnm_number(&p, &m->width) || !pnm_number(&p, &m->height)) *why = "its size is broken";
  else if (!pnm_number(&p, &most) || most == 0 || most > 65535) *why = "its largest value is broken";
  if (*why) return WEFT_OK;
  m->channels = kind == '2' || kind == '5' ? 1 : 3;
  m->bits = most > 255 ? 16 : 8;
  const bool words = kind < '4';
  const u64 count = (u64)m->width * m->height * m->channels, step = m->bits / 8;
  if (p.at == p.end || !strchr(" \t\n\r\v\f", *p.at)) *why = "it ends too early";
  else if (m->width && m->height && count / m->width / m->height != m->channels) *why = "it is too large";
  else p.at++; /* one blank ends the head */
  if (!*why && (u64)(p.end - p.at) < (words ? count : count * step)) *why = "it ends too early";
  if (*why) return WEFT_OK;
  TRY(image_room(vm, m, why));
  for (u64 i = 0; i < count && !*why; i++) {
    u32 v;
    if (words) {
      if (!pnm_number(&p, &v)) *why = "a value is broken, or missing";
    } else {
      v = step == 1 ? (u8)p.at[i] : (u32)(u8)p.at[2 * i] << 8 | (u8)p.at[2 * i + 1];
    }
    if (!*why && v > most) *why = "a value is larger than the largest";
    if (!*why) put_sample(m, i, v, most);
    if (!vm_item(vm, i)) return WEFT_ERROR;
  }
  return vm_poll(vm, 1 + (count >> 10));
}

static void pnm_encode(const Image *m, Buf *b) {
  buf_printf(b, "P%c\n%u %u\n%u\n", m->channels == 1 ? '5' : '6', m->width, m->height, m->bits == 8 ? 255u : 65535u);
  buf_put(b, (const char *)m->samples, image_bytes(m));
}

/* ---- arrays ---------------------------------------------------------------------------------- */

WeftStatus eager_load_image(Vm *vm, Value *args, Value *out) {
  const char *path = NULL, *why = NULL;
  char *data;
  size_t len, cap;
  Image m = {0};
  TRY(file_path(vm, OP_load_image, args[0], &path));
  TRY(file_read(vm, OP_load_image, path, IMAGE_MOST, &data, &len, &cap));
  const bool pnm = len >= 2 && data[0] == 'P';
  WeftStatus status = pnm ? pnm_decode(vm, data, len, &m, &why) : png_decode(vm, data, len, &m, &why);
  mem_free(&vm->alloc, data, cap);
  if (status == WEFT_OK && why) status = vm_error(vm, EK_io, "load_image: \"%s\": %s", path, why);
  if (status == WEFT_OK) {
    const i64 dims[3] = {m.height, m.width, m.channels};
    status = array_new(vm, m.bits == 8 ? DT_u8 : DT_i32, m.channels == 1 ? 2 : 3, dims, out);
  }
  if (status == WEFT_OK && m.bits == 8) memcpy(out->array->data, m.samples, image_bytes(&m));
  if (status == WEFT_OK && m.bits == 16)
    for (i64 i = 0; i < out->array->size; i++)
      ((i32 *)out->array->data)[i] = m.samples[2 * i] << 8 | m.samples[2 * i + 1];
  if (m.samples) mem_free(&vm->alloc, m.samples, image_bytes(&m));
  return status;
}

/* One element as a sample; false: it does not fit. */
static bool sample_of(Value v, u32 full, u32 *out) {
  if (v.dtype == DT_bool) *out = v.i ? full : 0;
  else if (dtype_kind(v.dtype) == DK_INT) {
    if (v.i < 0 || v.i > full) return false;
    *out = (u32)v.i;
  } else {
    const f64 x = num_as_f64(v);
    if (!(x >= 0 && x <= 1)) return false;
    *out = (u32)(x * full + 0.5);
  }
  return true;
}

static bool ends_so(const char *path, const char *end) {
  const size_t n = strlen(path), m = strlen(end);
  if (n < m) return false;
  for (size_t i = 0; i < m; i++)
    if ((path[n - m + i] | 0x20) != end[i]) return false;
  return true;
}

static WeftStatus image_of(Vm *vm, Array *a, Image *m) {
  const u32 rank = array_rank(a), full = m->bits == 8 ? 255 : 65535;
  const i64 *dims = array_dims(a);
  const char *why;
  for (u32 d = 0; d < 2; d++)
    if (dims[d] > IMAGE_SIDE_MOST)
      return vm_error(vm, EK_value, "save_image: a picture has at most %d pixels in a row, got %lld", IMAGE_SIDE_MOST,
                      (long long)dims[d]);
  m->height = (u32)dims[0];
  m->width = (u32)dims[1];
  m->channels = rank == 3 ? (u32)dims[2] : 1;
  TRY(image_room(vm, m, &why));
  if (why) return vm_error(vm, EK_value, "save_image: x: %s", why);
  for (i64 i = 0; i < a->size; i++) {
    u32 v;
    const Value x = array_load(a, i);
    if (!sample_of(x, full, &v)) {
      if (dtype_kind(x.dtype) == DK_INT)
        return vm_error(vm, EK_value, "save_image: x holds %lld, a sample of %u bits is 0 to %u", (long long)x.i,
                        m->bits, full);
      return vm_error(vm, EK_value, "save_image: x holds %g, floats are 0 to 1", args_shown(num_as_f64(x)));
    }
    put_sample(m, (u64)i, v, full);
    if (!vm_item(vm, (u64)i)) return WEFT_ERROR;
  }
  return WEFT_OK;
}

WeftStatus eager_save_image(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  i64 bits = 8;
  *out = value_nil();
  TRY(file_path(vm, OP_save_image, args[0], &path));
  TRY(args_array(vm, OP_save_image, 1, args[1]));
  TRY(args_int(vm, OP_save_image, 2, args[2], &bits));
  if (bits != 8 && bits != 16)
    return vm_error(vm, EK_value, "save_image: bits must be 8 or 16, got %lld", (long long)bits);
  ArrayType type;
  type_of_value(args[1], &type);
  if (dtype_kind(type.dtype) == DK_COMPLEX)
    return vm_error(vm, EK_unsupported, "save_image: not supported for %s", dtype_name(type.dtype));
  if (type.rank < 2 || type.rank > 3 || (type.rank == 3 && (type.dims[2] < 1 || type.dims[2] > 4)))
    return args_error(vm, OP_save_image, 1, args[1],
                      "an array of shape (height, width) or (height, width, 1 to 4 channels)");
  const bool png = ends_so(path, ".png"),
             pnm = ends_so(path, ".ppm") || ends_so(path, ".pgm") || ends_so(path, ".pnm");
  if (!png && !pnm)
    return vm_error(vm, EK_value, "save_image: \"%s\": the name ends with .png, .ppm, .pgm or .pnm", path);
  if (pnm && type.rank == 3 && type.dims[2] % 2 == 0)
    return vm_error(vm, EK_value, "save_image: \"%s\": this format has no alpha; a .png has", path);
  Value dense;
  Buf b;
  Image m = {.bits = (u32)bits};
  vm_buf_init(vm, &b);
  TRY(array_make_dense(vm, args[1], &dense));
  WeftStatus status = image_of(vm, dense.array, &m);
  if (status == WEFT_OK && png) status = png_encode(vm, &m, &b);
  if (status == WEFT_OK && !png) pnm_encode(&m, &b);
  if (status == WEFT_OK)
    status = b.failed ? vm_error_buf(vm) : file_write(vm, OP_save_image, path, b.data, b.len);
  if (m.samples) mem_free(&vm->alloc, m.samples, image_bytes(&m));
  value_drop(vm, dense);
  buf_free(&b);
  return status;
}

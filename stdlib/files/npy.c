/* npy.c — arrays in NumPy's .npy files, format versions 1 to 3 (NumPy enhancement proposal 1).
 * The header is read as what it is, a Python literal of three known keys, and nothing in the file is trusted. */
#include "stdlib/files/npy.h"
#include "stdlib/array/make.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct NpyHeader {
  u32 dtype;  /* of the array */
  u32 narrow; /* bytes of an integer in the file, where the array's are wider; 0: they are the same */
  bool plain; /* and that integer has no sign */
  bool fortran, swapped;
  u32 rank;
  i64 dims[ARRAY_MAX_RANK];
  size_t data; /* offset of the first element */
  char why[160];
} NpyHeader;

/* What NumPy calls it, without the order of bytes: "f4". */
typedef struct Descr {
  char s[8];
} Descr;
static Descr descr_of(u32 dtype) {
  static const char letters[] = {[DK_BOOL] = 'b', [DK_INT] = 'i', [DK_FLOAT] = 'f', [DK_COMPLEX] = 'c'};
  Descr d;
  char letter = dtype_kind(dtype) == DK_INT && !dtype_is_signed(dtype) ? 'u' : letters[dtype_kind(dtype)];
  snprintf(d.s, sizeof d.s, "%c%u", letter, dtype_bytes(dtype));
  return d;
}

/* Integers that no dtype of the language is stored as: read into a wider one. */
static const struct {
  char name[3];
  u8 dtype, bytes;
  bool plain; /* without a sign */
} narrows[] = {{"i1", DT_i32, 1, false}, {"i2", DT_i32, 2, false}, {"u2", DT_i32, 2, true}};

/* Has NumPy this dtype? Of two that are called alike the first: it knows f16 alone. */
static bool has_descr(u32 dtype) {
  bool has = dtype_can(dtype, NEED_store) != CAN_none;
  for (u32 d = 1; d < dtype && has; d++) has = strcmp(descr_of(d).s, descr_of(dtype).s) != 0;
  return has;
}

/* What is left of the header. */
typedef struct Header {
  const char *at, *end;
} Header;

static void skip_blanks(Header *h) {
  while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n' || *h->at == '\r')) h->at++;
}

/* Is this character next? Then it is taken, with the blanks around. */
static bool take(Header *h, char c) {
  skip_blanks(h);
  if (h->at == h->end || *h->at != c) return false;
  h->at++;
  skip_blanks(h);
  return true;
}

static bool take_word(Header *h, const char *word) {
  size_t n = strlen(word);
  if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0) return false;
  h->at += n;
  return true;
}

/* A text in quotes, without escapes. */
static bool take_text(Header *h, const char **s, size_t *n) {
  if (h->at == h->end || (*h->at != '\'' && *h->at != '"')) return false;
  char quote = *h->at++;
  *s = h->at;
  while (h->at < h->end && *h->at != quote && *h->at != '\\' && *h->at != '\n') h->at++;
  *n = (size_t)(h->at - *s);
  return h->at < h->end && *h->at++ == quote;
}

static bool is_text(const char *s, size_t n, const char *text) { return strlen(text) == n && memcmp(s, text, n) == 0; }

static const char *parse_dtype(Header *at, NpyHeader *h) {
  const char *s;
  size_t n;
  if (!take_text(at, &s, &n))
    return at->at < at->end && *at->at == '[' ? "its elements are records, which are not supported"
                                              : "its 'descr' is malformed";
  const char *type = s;
  if (n && strchr("<>|=", *s)) type++;
  h->swapped = n && *s == '>';
  h->dtype = DT_NONE;
  for (u32 d = 1; d < DT_COUNT && !h->dtype; d++)
    if (has_descr(d) && is_text(type, n - (size_t)(type - s), descr_of(d).s)) h->dtype = d;
  for (u32 i = 0; i < COUNT_OF(narrows) && !h->dtype; i++)
    if (is_text(type, n - (size_t)(type - s), narrows[i].name)) {
      h->dtype = narrows[i].dtype;
      h->narrow = narrows[i].bytes;
      h->plain = narrows[i].plain;
    }
  if (h->dtype) return NULL;
  for (size_t i = 0; i < n; i++)
    if (s[i] < ' ' || s[i] > '~') return "its 'descr' is malformed";
  int used = snprintf(h->why, sizeof h->why, "its dtype '%.*s' is not supported; ", (int)(n < 20 ? n : 20), s);
  for (u32 i = 0; i < COUNT_OF(narrows); i++)
    used += snprintf(h->why + used, sizeof h->why - (size_t)used, "%s, ", narrows[i].name);
  for (u32 d = 1; d < DT_COUNT; d++)
    if (has_descr(d))
      used += snprintf(h->why + used, sizeof h->why - (size_t)used, "%s%s", descr_of(d).s,
                       d == DT_f64 ? " are" : d == DT_f32 ? " and " : ", ");
  return h->why;
}

static const char *parse_shape(Header *at, NpyHeader *h) {
  static const char malformed[] = "its shape is malformed";
  if (!take(at, '(')) return malformed;
  for (bool comma = true; !take(at, ')');) {
    i64 n = 0;
    if (!comma || at->at == at->end || *at->at < '0' || *at->at > '9') return malformed;
    for (; at->at < at->end && *at->at >= '0' && *at->at <= '9'; at->at++) {
      n = n * 10 + (*at->at - '0');
      if (n > (i64)1 << 48) return "its shape is too large";
    }
    (void)take(at, 'L'); /* of Python 2 */
    if (h->rank == ARRAY_MAX_RANK) return "its rank is too high";
    h->dims[h->rank++] = n;
    comma = take(at, ',');
    if (h->rank == 1 && !comma) return malformed; /* a number in parentheses */
  }
  return NULL;
}

/* A literal of a Python dictionary with three keys, each once. */
static const char *parse_header(const char *s, const char *end, NpyHeader *h) {
  static const char malformed[] = "its header is malformed";
  Header at = {s, end};
  bool order = false, shape = false;
  h->dtype = DT_NONE;
  h->rank = 0;
  h->narrow = 0;
  h->plain = h->fortran = h->swapped = false;
  if (!take(&at, '{')) return malformed;
  for (bool comma = true; !take(&at, '}');) {
    const char *key, *why = NULL;
    size_t n;
    if (!comma || !take_text(&at, &key, &n) || !take(&at, ':')) return malformed;
    if (is_text(key, n, "descr") && !h->dtype) why = parse_dtype(&at, h);
    else if (is_text(key, n, "shape") && !shape) why = parse_shape(&at, h), shape = true;
    else if (is_text(key, n, "fortran_order") && !order) {
      h->fortran = take_word(&at, "True");
      if (!h->fortran && !take_word(&at, "False")) return "its 'fortran_order' is malformed";
      order = true;
    } else return malformed;
    if (why) return why;
    comma = take(&at, ',');
  }
  return at.at == at.end && h->dtype && order && shape ? NULL : malformed;
}

/* NULL when the bytes are a whole .npy file; else what is wrong. */
static const char *check(const char *data, size_t len, NpyHeader *h) {
  if (len < 10 || memcmp(data, "\x93NUMPY", 6) != 0) return "it is no .npy file";
  u8 major = (u8)data[6];
  if (major < 1 || major > 3) return "its format version is not supported";
  size_t fixed = major == 1 ? 10 : 12, header = (u8)data[8] | (size_t)(u8)data[9] << 8;
  if (major > 1) {
    if (len < 12) return "it ends inside its header";
    header |= (size_t)(u8)data[10] << 16 | (size_t)(u8)data[11] << 24;
  }
  if (header > len - fixed) return "it ends inside its header";
  h->data = fixed + header;
  const char *why = parse_header(data + fixed, data + h->data, h);
  if (why) return why;
  i64 size = dims_size(h->rank, h->dims);
  if (size < 0 || (u64)size > (len - h->data) / (h->narrow ? h->narrow : dtype_bytes(h->dtype)))
    return "it holds fewer elements than its shape says";
  return NULL;
}

static WeftStatus copy_elements(Vm *vm, const char *from, const NpyHeader *h, i64 size, char *to) {
  const u32 wide = dtype_bytes(h->dtype), bytes = h->narrow ? h->narrow : wide;
  const u32 part = dtype_kind(h->dtype) == DK_COMPLEX ? bytes / 2 : bytes; /* whose bytes are in order, or reversed */
  i64 at[ARRAY_MAX_RANK] = {0}, strides[ARRAY_MAX_RANK], stride = 1;
  if (size == 0) return WEFT_OK; /* products of the other sizes may not fit */
  for (u32 d = 0; d < h->rank; d++) { /* of the file, in elements */
    strides[d] = stride;
    stride *= h->dims[d];
  }
  for (i64 i = 0; i < size; i++) {
    i64 offset = i;
    if (h->fortran) {
      offset = 0;
      for (u32 d = 0; d < h->rank; d++) offset += at[d] * strides[d];
      for (u32 d = h->rank; d-- > 0 && ++at[d] == h->dims[d];) at[d] = 0;
    }
    const char *src = from + offset * bytes;
    char *dst = to + i * wide;
    for (u32 b = 0; b < bytes; b++) dst[b] = src[h->swapped ? b / part * part + part - 1 - b % part : b];
    if (bytes < wide) memset(dst + bytes, !h->plain && (dst[bytes - 1] & 0x80) ? 0xFF : 0, wide - bytes);
    if (h->dtype == DT_bool) *dst = *dst != 0;
    if (!vm_item(vm, (u64)i)) return WEFT_ERROR;
  }
  return WEFT_OK;
}

WeftStatus npy_decode(Vm *vm, u32 op, const char *path, const char *data, size_t len, Value *out) {
  NpyHeader h;
  const char *why = check(data, len, &h);
  if (why) return vm_error(vm, EK_io, "%s: \"%s\": %s", op_name(op), path, why);
  TRY(array_new(vm, h.dtype, h.rank, h.dims, out));
  i64 size = out->array->size;
  if (!h.fortran && !h.swapped && !h.narrow && h.dtype != DT_bool) {
    if (size) memcpy(out->array->data, data + h.data, (size_t)size * dtype_bytes(h.dtype));
  } else if (copy_elements(vm, data + h.data, &h, size, out->array->data) != WEFT_OK) {
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

/* ---- mapped files ---------------------------------------------------------------------------- */

static void unmap(void *ctx, void *data, size_t bytes) {
  (void)data;
  (void)munmap(ctx, bytes);
}

/* The file's own pages as an array that is copied when it is written. *mapped: it could be, as its elements lie there
 * as an array's do. */
static WeftStatus map_file(Vm *vm, const char *path, Value *out, bool *mapped) {
  struct stat st;
  NpyHeader h;
  *mapped = false;
  if (vm->files) return WEFT_OK;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) { /* reading it says what is wrong */
    if (fd >= 0) (void)close(fd);
    return WEFT_OK;
  }
  const size_t len = (size_t)st.st_size;
  char *at = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
  (void)close(fd);
  if (at == MAP_FAILED) return WEFT_OK;
  const char *why = check(at, len, &h);
  if (why || h.fortran || h.swapped || h.narrow || h.dtype == DT_bool || h.rank == 0 ||
      h.data % dtype_bytes(h.dtype) != 0) {
    (void)munmap(at, len);
    return WEFT_OK;
  }
  if (array_external(vm, h.dtype, h.rank, h.dims, NULL, at + h.data, len, unmap, at, out) != WEFT_OK) {
    (void)munmap(at, len);
    return WEFT_ERROR;
  }
  *mapped = true;
  return WEFT_OK;
}

/* ---- the operations -------------------------------------------------------------------------- */

WeftStatus eager_load_npy(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char *data;
  size_t len, cap;
  bool map = false;
  TRY(file_path(vm, OP_load_npy, args[0], &path));
  TRY(args_bool(vm, OP_load_npy, 1, args[1], &map));
  if (map) TRY(map_file(vm, path, out, &map));
  if (map) return WEFT_OK;
  TRY(file_read(vm, OP_load_npy, path, NPY_FILE_MOST, &data, &len, &cap));
  WeftStatus status = npy_decode(vm, OP_load_npy, path, data, len, out);
  mem_free(&vm->alloc, data, cap);
  return status;
}

WeftStatus npy_encode(Vm *vm, u32 op, Value v, Buf *b) {
  if (!has_descr(v.dtype))
    return vm_error(vm, EK_unsupported, "%s: not supported for %s", op_name(op), dtype_name(v.dtype));
  Value dense;
  TRY(array_make_dense(vm, v, &dense));
  NumBox box;
  Array *a = array_of(dense, &box);
  const size_t begin = b->len;
  buf_put(b, "\x93NUMPY\x01\x00\x00\x00", 10);
  buf_printf(b, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
             dtype_bytes(array_dtype(a)) == 1 ? '|' : '<', descr_of(array_dtype(a)).s);
  for (u32 d = 0; d < array_rank(a); d++)
    buf_printf(b, "%lld,%s", (long long)array_dims(a)[d], d + 1 < array_rank(a) ? " " : "");
  buf_puts(b, "), }");
  while ((b->len - begin + 1) % 64 && !b->failed) buf_putc(b, ' ');
  buf_putc(b, '\n');
  if (!b->failed) {
    const size_t head = b->len - begin - 10;
    b->data[begin + 8] = (char)(head & 0xFF);
    b->data[begin + 9] = (char)(head >> 8);
    buf_put(b, a->data, (size_t)a->size * dtype_bytes(array_dtype(a)));
  }
  value_drop(vm, dense);
  return b->failed ? vm_error_buf(vm) : WEFT_OK;
}

WeftStatus eager_save_npy(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  TRY(file_path(vm, OP_save_npy, args[0], &path));
  TRY(args_array(vm, OP_save_npy, 1, args[1]));
  Buf b;
  vm_buf_init(vm, &b);
  WeftStatus status = npy_encode(vm, OP_save_npy, args[1], &b);
  if (status == WEFT_OK) status = file_write(vm, OP_save_npy, path, b.data, b.len);
  buf_free(&b);
  *out = value_nil();
  return status;
}

/* npy.c — arrays in NumPy's .npy files, format versions 1 to 3 (NumPy enhancement proposal 1).
 * The header is read as what it is, a Python literal of three known keys, and nothing in the file is trusted. */
#include "stdlib/files/files.h"
#include "stdlib/array/make.h"

#include <stdio.h>
#include <string.h>

typedef struct NpyHeader {
  u32 dtype;
  bool fortran, swapped;
  u32 rank;
  i64 dims[ARRAY_MAX_RANK];
  size_t data; /* offset of the first element */
  char why[96];
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
    if (dtype_can(d, NEED_store) && is_text(type, n - (size_t)(type - s), descr_of(d).s)) h->dtype = d;
  if (h->dtype) return NULL;
  for (size_t i = 0; i < n; i++)
    if (s[i] < ' ' || s[i] > '~') return "its 'descr' is malformed";
  int used = snprintf(h->why, sizeof h->why, "its dtype '%.*s' is not supported; ", (int)(n < 20 ? n : 20), s);
  for (u32 d = 1; d < DT_COUNT; d++)
    if (dtype_can(d, NEED_store))
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
  if (size < 0 || (u64)size > (len - h->data) / dtype_bytes(h->dtype))
    return "it holds fewer elements than its shape says";
  return NULL;
}

static void copy_elements(const char *from, const NpyHeader *h, i64 size, char *to) {
  u32 bytes = dtype_bytes(h->dtype);
  i64 at[ARRAY_MAX_RANK] = {0}, strides[ARRAY_MAX_RANK], stride = 1;
  if (size == 0) return; /* products of the other sizes may not fit */
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
    char *dst = to + i * bytes;
    for (u32 b = 0; b < bytes; b++) dst[b] = src[h->swapped ? bytes - 1 - b : b];
    if (h->dtype == DT_bool) *dst = *dst != 0;
  }
}

/* Also what fuzzing calls: bytes to an array. */
WeftStatus npy_decode(Vm *vm, u32 op, const char *path, const char *data, size_t len, Value *out) {
  NpyHeader h;
  const char *why = check(data, len, &h);
  if (why) return vm_error(vm, EK_io, "%s: \"%s\": %s", op_name(op), path, why);
  TRY(array_new(vm, h.dtype, h.rank, h.dims, out));
  i64 size = out->array->size;
  if (!h.fortran && !h.swapped && h.dtype != DT_bool) {
    if (size) memcpy(out->array->data, data + h.data, (size_t)size * dtype_bytes(h.dtype));
  } else {
    copy_elements(data + h.data, &h, size, out->array->data);
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

WeftStatus eager_load_npy(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char *data;
  size_t len, cap;
  TRY(file_path(vm, OP_load_npy, args[0], &path));
  TRY(file_read(vm, OP_load_npy, path, NPY_FILE_MOST, &data, &len, &cap));
  WeftStatus status = npy_decode(vm, OP_load_npy, path, data, len, out);
  mem_free(&vm->alloc, data, cap);
  return status;
}

WeftStatus eager_save_npy(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  TRY(file_path(vm, OP_save_npy, args[0], &path));
  TRY(args_array(vm, OP_save_npy, 1, args[1]));
  Value dense;
  TRY(array_make_dense(vm, args[1], &dense));
  NumBox box;
  Array *a = array_of(dense, &box);
  Buf b;
  buf_init(&b, &vm->alloc);
  buf_put(&b, "\x93NUMPY\x01\x00\x00\x00", 10);
  buf_printf(&b, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
             dtype_bytes(array_dtype(a)) == 1 ? '|' : '<', descr_of(array_dtype(a)).s);
  for (u32 d = 0; d < array_rank(a); d++)
    buf_printf(&b, "%lld,%s", (long long)array_dims(a)[d], d + 1 < array_rank(a) ? " " : "");
  buf_puts(&b, "), }");
  while ((b.len + 1) % 64 && !b.failed) buf_putc(&b, ' ');
  buf_putc(&b, '\n');
  WeftStatus status = WEFT_OK;
  if (!b.failed) {
    b.data[8] = (char)((b.len - 10) & 0xFF);
    b.data[9] = (char)((b.len - 10) >> 8);
    buf_put(&b, a->data, (size_t)a->size * dtype_bytes(array_dtype(a)));
  }
  status = b.failed ? vm_error_memory(vm) : file_write(vm, OP_save_npy, path, b.data, b.len);
  buf_free(&b);
  value_drop(vm, dense);
  *out = value_nil();
  return status;
}

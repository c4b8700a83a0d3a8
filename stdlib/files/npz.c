/* npz.c — records of arrays in NumPy's .npz files: zip archives of .npy files, stored or deflated. Nothing in the
 * archive is trusted. */
#include "stdlib/files/npy.h"
#include "stdlib/files/zlib.h"

#include <stdio.h>
#include <string.h>

enum {
  END_BYTES = 22, LOCATOR_BYTES = 20, END64_BYTES = 56, ENTRY_BYTES = 46, LOCAL_BYTES = 30, COMMENT_MOST = 0xFFFF,
  STORED = 0, DEFLATED = 8,
  FLAG_ENCRYPTED = 1, FLAG_UTF8 = 1 << 11,
  EXTRA_64 = 1, FULL16 = 0xFFFF,
  VERSION = 20, DAY_ONE = 0x21, /* of 1980 */
};
static const u64 full32 = 0xFFFFFFFFu;

static u32 get16(const char *p) { return (u8)p[0] | (u32)(u8)p[1] << 8; }
static u64 npz_get32(const char *p) { return get16(p) | (u64)get16(p + 2) << 16; }
static u64 get64(const char *p) { return npz_get32(p) | npz_get32(p + 4) << 32; }
static bool is_sign(const char *p, char a, char b) { return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b; }

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct Archive {
  const char *data;
  size_t len;
  u64 entries, at, bytes; /* of the central directory */
} Archive;

typedef struct Member {
  const char *name;
  size_t name_len;
  u32 flags, method, crc;
  u64 packed, size, local; /* bytes in the archive, of the file; where its local header lies */
} Member;

/* The end record lies at the end, before a comment. NULL, or what is wrong. */
static const char *find_end(Archive *a) {
  static const char none[] = "it is no .npz file", broken[] = "its directory is broken";
  if (a->len < END_BYTES) return none;
  size_t at = a->len - END_BYTES, least = at > COMMENT_MOST ? at - COMMENT_MOST : 0;
  while (!(is_sign(a->data + at, 5, 6) && get16(a->data + at + 20) == a->len - at - END_BYTES))
    if (at-- == least) return a->len >= 4 && is_sign(a->data, 3, 4) ? "it ends too early" : none;
  const char *end = a->data + at;
  if (get16(end + 4) || get16(end + 6)) return "it is part of an archive of several files, which is not supported";
  a->entries = get16(end + 10);
  a->bytes = npz_get32(end + 12);
  a->at = npz_get32(end + 16);
  if (a->entries == FULL16 || a->bytes == full32 || a->at == full32) {
    if (at < LOCATOR_BYTES || !is_sign(end - LOCATOR_BYTES, 6, 7)) return broken;
    u64 far = get64(end - LOCATOR_BYTES + 8);
    if (far > at || at - far < END64_BYTES || !is_sign(a->data + far, 6, 6)) return broken;
    a->entries = get64(a->data + far + 32);
    a->bytes = get64(a->data + far + 40);
    a->at = get64(a->data + far + 48);
  }
  if (a->at > at || a->bytes > at - a->at || a->entries > a->bytes / ENTRY_BYTES) return broken;
  return NULL;
}

/* Sizes that need 64 bits stand in an extra field, in this order, where the plain ones are full. */
static bool wide_sizes(const char *p, size_t n, Member *m) {
  u64 *const wide[] = {&m->size, &m->packed, &m->local};
  bool needed = m->size == full32 || m->packed == full32 || m->local == full32;
  while (n >= 4) {
    const size_t bytes = get16(p + 2);
    if (bytes > n - 4) return false;
    if (get16(p) == EXTRA_64 && needed) {
      size_t at = 0;
      for (u32 i = 0; i < 3; i++) {
        if (*wide[i] != full32) continue;
        if (bytes - at < 8) return false;
        *wide[i] = get64(p + 4 + at);
        at += 8;
      }
      needed = false;
    }
    p += 4 + bytes;
    n -= 4 + bytes;
  }
  return !needed;
}

/* The entry at *at of the directory, which goes on behind it. */
static const char *next_member(const Archive *a, u64 *at, Member *m) {
  static const char broken[] = "its directory is broken";
  const u64 end = a->at + a->bytes;
  const char *p = a->data + *at;
  if (end - *at < ENTRY_BYTES || !is_sign(p, 1, 2)) return broken;
  const u64 name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32);
  if (end - *at - ENTRY_BYTES < name + extra + comment) return broken;
  *m = (Member){.name = p + ENTRY_BYTES, .name_len = name, .flags = get16(p + 8), .method = get16(p + 10),
                .crc = (u32)npz_get32(p + 16), .packed = npz_get32(p + 20), .size = npz_get32(p + 24),
                .local = npz_get32(p + 42)};
  *at += ENTRY_BYTES + name + extra + comment;
  return wide_sizes(p + ENTRY_BYTES + name, extra, m) ? NULL : broken;
}

static const char *find_data(const Archive *a, const Member *m, const char **data) {
  if (m->local > a->len || a->len - m->local < LOCAL_BYTES || !is_sign(a->data + m->local, 3, 4))
    return "its place in the archive is broken";
  const char *p = a->data + m->local;
  const u64 head = LOCAL_BYTES + (u64)get16(p + 26) + get16(p + 28);
  if (a->len - m->local < head || a->len - m->local - head < m->packed) return "it goes beyond the end of the archive";
  *data = p + head;
  return NULL;
}

static WeftStatus bad_member(Vm *vm, const char *path, const Member *m, const char *why) {
  return vm_error(vm, EK_io, "load_npz: \"%s\", member \"%.*s\": %s", path, (int)(m->name_len < 80 ? m->name_len : 80),
                  m->name, why);
}

static WeftStatus load_member(Vm *vm, const Archive *a, const Member *m, const char *path, Value *out) {
  const char *data, *why = NULL;
  char *own = NULL, place[320];
  WeftStatus status = WEFT_OK;
  if (m->flags & FLAG_ENCRYPTED) return bad_member(vm, path, m, "it is encrypted, which is not supported");
  if (m->method != STORED && m->method != DEFLATED)
    return bad_member(vm, path, m, "its compression is not supported; stored and deflated members are");
  if ((why = find_data(a, m, &data))) return bad_member(vm, path, m, why);
  if (m->method == STORED && m->packed != m->size) return bad_member(vm, path, m, "its two sizes differ");
  if (m->size > NPY_FILE_MOST)
    return vm_error(vm, EK_limit, "load_npz: \"%s\": a member is too large: at most %llu bytes are read", path,
                    (unsigned long long)NPY_FILE_MOST);
  if (m->method == DEFLATED && m->size / DEFLATE_MOST > m->packed)
    return bad_member(vm, path, m, "its compressed data holds less than it should");
  if (m->method == DEFLATED) {
    bool stopped;
    TRY(zlib_need(vm, OP_load_npz));
    if (!(own = mem_alloc(&vm->alloc, m->size + 1))) return vm_error_memory(vm);
    why = zlib_inflate(vm, ZLIB_RAW, data, m->packed, own, m->size, &stopped);
    if (stopped) status = WEFT_ERROR;
    else if (why) status = bad_member(vm, path, m, why);
    data = own;
  }
  u32 crc = 0;
  if (status == WEFT_OK && !crc32_of(vm, &crc, data, m->size)) status = vm_error_buf(vm);
  if (status == WEFT_OK && crc != m->crc)
    status = bad_member(vm, path, m, "its check does not fit its data");
  snprintf(place, sizeof place, "%.200s: %.*s", path, (int)(m->name_len < 80 ? m->name_len : 80), m->name);
  if (status == WEFT_OK) status = npy_decode(vm, OP_load_npz, place, data, m->size, out);
  if (own) mem_free(&vm->alloc, own, m->size + 1);
  return status;
}

static WeftStatus load_members(Vm *vm, const Archive *a, const char *path, Value *record) {
  u64 at = a->at;
  for (u64 i = 0; i < a->entries; i++) {
    Member m;
    Value array;
    Name key;
    const char *why = next_member(a, &at, &m);
    if (why) return vm_error(vm, EK_io, "load_npz: \"%s\": %s", path, why);
    if (!utf8_valid(m.name, m.name_len) || memchr(m.name, 0, m.name_len))
      return vm_error(vm, EK_io, "load_npz: \"%s\": the name of member %llu is not UTF-8", path, (unsigned long long)i);
    if (m.name_len < 4 || memcmp(m.name + m.name_len - 4, ".npy", 4) != 0)
      return bad_member(vm, path, &m, "it is no .npy file");
    if (load_member(vm, a, &m, path, &array) != WEFT_OK) return WEFT_ERROR;
    if (!(key = name_counted(&vm->names, m.name, m.name_len - 4))) {
      value_drop(vm, array);
      return m.name_len > 4 ? vm_error_memory(vm) : bad_member(vm, path, &m, "it has no name");
    }
    WeftStatus status = WEFT_OK;
    if (record_find(record->record, key)) {
      value_drop(vm, array);
      status = bad_member(vm, path, &m, "its name stands twice");
    } else if (!record_set(vm, record, key, array)) {
      status = WEFT_ERROR;
    }
    name_drop(&vm->names, key);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

WeftStatus eager_load_npz(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char *data;
  size_t len, cap;
  TRY(file_path(vm, OP_load_npz, args[0], &path));
  TRY(file_read(vm, OP_load_npz, path, NPY_FILE_MOST, &data, &len, &cap));
  Archive a = {.data = data, .len = len};
  const char *why = find_end(&a);
  WeftStatus status = why ? vm_error(vm, EK_io, "load_npz: \"%s\": %s", path, why) : WEFT_OK;
  if (status == WEFT_OK && !record_new(vm, out)) status = WEFT_ERROR;
  else if (status == WEFT_OK && (status = load_members(vm, &a, path, out)) != WEFT_OK) value_drop(vm, *out);
  mem_free(&vm->alloc, data, cap);
  return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put16(Buf *b, u32 x) { buf_put(b, (char[]){(char)x, (char)(x >> 8)}, 2); }
static void npz_put32(Buf *b, u64 x) { put16(b, (u32)x & 0xFFFF), put16(b, (u32)(x >> 16) & 0xFFFF); }

/* What the local header and the directory say alike. */
static void put_head(Buf *b, u32 method, u32 crc, u64 packed, u64 size, size_t name) {
  put16(b, VERSION);
  put16(b, FLAG_UTF8);
  put16(b, method);
  put16(b, 0);
  put16(b, DAY_ONE);
  npz_put32(b, crc);
  npz_put32(b, packed);
  npz_put32(b, size);
  put16(b, (u32)name);
  put16(b, 0);
}

static void put_name(Buf *b, const char *name, size_t n) {
  buf_put(b, name, n);
  buf_puts(b, ".npy");
}

/* One array behind the others; its entry behind those of the directory. */
static WeftStatus put_member(Vm *vm, const char *name, size_t n, Value v, bool compress, Buf *b, Buf *directory) {
  Buf file, packed;
  vm_buf_init(vm, &file);
  vm_buf_init(vm, &packed);
  WeftStatus status = npy_encode(vm, OP_save_npz, v, &file);
  if (status == WEFT_OK && compress) status = zlib_deflate(vm, ZLIB_RAW, file.data, file.len, &packed);
  u32 crc = 0;
  if (status == WEFT_OK && !crc32_of(vm, &crc, file.data, file.len)) status = vm_error_buf(vm);
  if (status == WEFT_OK) {
    const Buf *data = compress ? &packed : &file;
    const u32 method = compress ? DEFLATED : STORED;
    const u64 at = b->len;
    if (at + data->len + file.len > full32)
      status = vm_error(vm, EK_unsupported, "save_npz: archives of 4 GiB and more are not supported; "
                                            "save_npy takes arrays of any size");
    buf_put(b, "PK\x03\x04", 4);
    put_head(b, method, crc, data->len, file.len, n + 4);
    put_name(b, name, n);
    buf_put(b, data->data, data->len);
    buf_put(directory, "PK\x01\x02", 4);
    put16(directory, VERSION);
    put_head(directory, method, crc, data->len, file.len, n + 4);
    for (u32 i = 0; i < 5; i++) put16(directory, 0); /* comment, disk, attributes */
    npz_put32(directory, at);
    put_name(directory, name, n);
  }
  buf_free(&file);
  buf_free(&packed);
  return status;
}

WeftStatus eager_save_npz(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  bool compress = false;
  TRY(file_path(vm, OP_save_npz, args[0], &path));
  if (args[1].kind != V_RECORD) return args_error(vm, OP_save_npz, 1, args[1], "a record of arrays");
  TRY(args_bool(vm, OP_save_npz, 2, args[2], &compress));
  if (compress) TRY(zlib_need(vm, OP_save_npz));
  const Record *r = args[1].record;
  const u32 count = r->shape->count;
  if (count >= FULL16)
    return vm_error(vm, EK_unsupported, "save_npz: more than %d arrays are not supported", FULL16 - 1);
  Buf b, directory;
  vm_buf_init(vm, &b);
  vm_buf_init(vm, &directory);
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    const Value v = value_untracked(r->items[i]);
    const char *name = name_text(&vm->names, r->shape->keys[i]);
    const size_t n = name_len(&vm->names, r->shape->keys[i]);
    char what[DESCRIBED];
    args_describe(v, what, sizeof what);
    if (!value_is_numeric(v))
      status = vm_error(vm, EK_type, "save_npz: field \"%.80s\" must be an array, got %s", name, what);
    else if (n == 0 || n > FULL16 - 4 || memchr(name, 0, n))
      status = vm_error(vm, EK_value, "save_npz: field %u has a name that no file can have", i);
    else if ((status = args_array(vm, OP_save_npz, 1, v)) == WEFT_OK)
      status = put_member(vm, name, n, v, compress, &b, &directory);
  }
  const u64 at = b.len;
  if (status == WEFT_OK && (b.failed || directory.failed)) status = vm_error_buf(vm);
  if (status == WEFT_OK) {
    buf_put(&b, directory.data, directory.len);
    buf_put(&b, "PK\x05\x06\0\0\0\0", 8);
    put16(&b, count);
    put16(&b, count);
    npz_put32(&b, directory.len);
    npz_put32(&b, at);
    put16(&b, 0);
    status = b.failed ? vm_error_buf(vm) : file_write(vm, OP_save_npz, path, b.data, b.len);
  }
  buf_free(&b);
  buf_free(&directory);
  *out = value_nil();
  return status;
}

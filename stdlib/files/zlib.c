/* zlib.c — deflate and inflate by zlib, loaded at first use (see zlib.h); the check of zip and PNG. */
#include "stdlib/files/zlib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* As zlib.h has it, whose package need not be there when the library is built. */
typedef struct ZStream {
  const u8 *next_in;
  unsigned avail_in;
  unsigned long total_in;
  u8 *next_out;
  unsigned avail_out;
  unsigned long total_out;
  const char *msg;
  void *state;
  void *(*zalloc)(void *, unsigned, unsigned);
  void (*zfree)(void *, void *);
  void *opaque;
  int data_type;
  unsigned long adler, reserved;
} ZStream;

enum { Z_NO_FLUSH_ = 0, Z_FINISH_ = 4, Z_OK_ = 0, Z_STREAM_END_ = 1, Z_BUF_ERROR_ = -5, Z_DEFLATED_ = 8 };
enum { PART = 1 << 20, LEVEL = 6, WINDOW = 15, MEMORY_LEVEL = 8 };

/* Library handles are the one kind of state a process has. */
static struct {
  pthread_once_t once;
  bool there;
  int (*inflate_init)(ZStream *, int bits, const char *version, int size);
  int (*inflate)(ZStream *, int flush);
  int (*inflate_end)(ZStream *);
  int (*deflate_init)(ZStream *, int level, int method, int bits, int memory, int strategy, const char *version,
                      int size);
  int (*deflate)(ZStream *, int flush);
  int (*deflate_end)(ZStream *);
} zlib = {.once = PTHREAD_ONCE_INIT};

static void zlib_load(void) {
  void *handle = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
  *(void **)&zlib.inflate_init = dlsym(handle, "inflateInit2_");
  *(void **)&zlib.inflate = dlsym(handle, "inflate");
  *(void **)&zlib.inflate_end = dlsym(handle, "inflateEnd");
  *(void **)&zlib.deflate_init = dlsym(handle, "deflateInit2_");
  *(void **)&zlib.deflate = dlsym(handle, "deflate");
  *(void **)&zlib.deflate_end = dlsym(handle, "deflateEnd");
  zlib.there = zlib.inflate_init && zlib.inflate && zlib.inflate_end && zlib.deflate_init && zlib.deflate &&
               zlib.deflate_end;
}

WeftStatus zlib_need(Vm *vm, u32 op) {
  pthread_once(&zlib.once, zlib_load);
  if (zlib.there) return WEFT_OK;
  return vm_error(vm, EK_unsupported, "%s: compressed data needs zlib (libz.so.1; Debian: zlib1g), which is not there",
                  op_name(op));
}

/* zlib's memory is the VM's; each block tells its size. */
static void *take_memory(void *opaque, unsigned count, unsigned size) {
  const size_t n = (size_t)count * size + 16;
  char *p = mem_alloc(opaque, n);
  if (!p) return NULL;
  memcpy(p, &n, sizeof n);
  return p + 16;
}

static void give_memory(void *opaque, void *p) {
  size_t n;
  if (!p) return;
  memcpy(&n, (char *)p - 16, sizeof n);
  mem_free(opaque, (char *)p - 16, n);
}

static ZStream stream_of(Vm *vm) {
  return (ZStream){.zalloc = take_memory, .zfree = give_memory, .opaque = &vm->alloc};
}

const char *zlib_inflate(Vm *vm, ZlibForm form, const char *from, size_t len, char *to, size_t size, bool *stopped) {
  static const char broken[] = "its compressed data is broken";
  ZStream z = stream_of(vm);
  *stopped = false;
  if (zlib.inflate_init(&z, form == ZLIB_RAW ? -WINDOW : WINDOW, "1.2.11", sizeof z) != Z_OK_) {
    *stopped = true;
    (void)vm_error_memory(vm);
    return "memory";
  }
  size_t in = 0, got = 0;
  const char *why = NULL;
  for (int code = Z_OK_; code != Z_STREAM_END_ && !why;) {
    u8 beyond; /* what is more than it should be is found here */
    z.next_in = (const u8 *)from + in;
    z.avail_in = (unsigned)(len - in < PART ? len - in : PART);
    z.next_out = got < size ? (u8 *)to + got : &beyond;
    z.avail_out = got < size ? (unsigned)(size - got < PART ? size - got : PART) : 1;
    const unsigned had = z.avail_out, given = z.avail_in;
    code = zlib.inflate(&z, Z_NO_FLUSH_);
    in += given - z.avail_in;
    if (had - z.avail_out && got == size) why = "its compressed data holds more than it should";
    else got += had - z.avail_out;
    if (!why && code != Z_OK_ && code != Z_STREAM_END_) why = broken;
    if (!why && code == Z_OK_ && given == z.avail_in && had == z.avail_out) why = broken;
    if (!why && vm_poll(vm, 1 + (had >> 10)) != WEFT_OK) {
      *stopped = true;
      why = "stopped";
    }
  }
  if (!why && got < size) why = "its compressed data holds less than it should";
  (void)zlib.inflate_end(&z);
  return why;
}

WeftStatus zlib_deflate(Vm *vm, ZlibForm form, const char *from, size_t len, Buf *out) {
  ZStream z = stream_of(vm);
  if (zlib.deflate_init(&z, LEVEL, Z_DEFLATED_, form == ZLIB_RAW ? -WINDOW : WINDOW, MEMORY_LEVEL, 0, "1.2.11",
                        sizeof z) != Z_OK_)
    return vm_error_memory(vm);
  u8 part[1 << 14];
  size_t in = 0;
  WeftStatus status = WEFT_OK;
  for (int code = Z_OK_; code != Z_STREAM_END_ && status == WEFT_OK && !out->failed;) {
    const unsigned given = (unsigned)(len - in < PART ? len - in : PART);
    z.next_in = (const u8 *)from + in;
    z.avail_in = given;
    z.next_out = part;
    z.avail_out = sizeof part;
    code = zlib.deflate(&z, in + given == len ? Z_FINISH_ : Z_NO_FLUSH_);
    in += given - z.avail_in;
    buf_put(out, (const char *)part, sizeof part - z.avail_out);
    if (code != Z_OK_ && code != Z_STREAM_END_ && code != Z_BUF_ERROR_) status = vm_error_memory(vm);
    if (status == WEFT_OK) status = vm_poll(vm, 16);
  }
  (void)zlib.deflate_end(&z);
  return status != WEFT_OK ? status : out->failed ? vm_error_buf(vm) : WEFT_OK;
}

/* ---- CRC-32 ---------------------------------------------------------------------------------- */

bool crc32_of(const Vm *vm, u32 *crc, const char *s, size_t n) {
  enum { POLYNOMIAL = (int)0xEDB88320u };
  u32 table[256], sum = ~*crc;
  for (u32 i = 0; i < 256; i++) {
    u32 c = i;
    for (u32 k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ (u32)POLYNOMIAL : c >> 1;
    table[i] = c;
  }
  for (size_t i = 0; i < n; i++) {
    sum = sum >> 8 ^ table[(sum ^ (u8)s[i]) & 0xFF];
    if (i % PART == PART - 1 && vm_ends(vm)) return false;
  }
  *crc = ~sum;
  return true;
}

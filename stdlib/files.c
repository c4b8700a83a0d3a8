/* files.c — reading and writing whole files; text files (see files.h). */
#include "stdlib/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_FIRST = 65536, READ_MOST = 1 << 22, READ_WAIT_MS = 20 };

WeftStatus file_path(Vm *vm, u32 op, Value v, const char **out) {
  if (v.kind != V_TEXT) return args_error(vm, op, 0, v, "a text");
  if (!vm->limits.allow_files) return vm_error(vm, EK_limit, "%s: the host does not allow files", op_name(op));
  if (v.text->len == 0 || memchr(v.text->data, 0, v.text->len)) return vm_error(vm, EK_value, "%s: the path is empty or holds a zero byte", op_name(op));
  *out = v.text->data;
  return WEFT_OK;
}

static WeftStatus io_error(Vm *vm, u32 op, const char *path, const char *what, int code) {
  char why[128] = "unknown error";
  if (strerror_r(code, why, sizeof why) != 0) why[sizeof why - 1] = 0;
  return vm_error(vm, EK_io, "%s: cannot %s \"%s\": %s", op_name(op), what, path, why);
}

/* More bytes, or 0 at the end; waits for a pipe without holding up an interrupt. Below 0: an error was told. */
static ssize_t read_some(Vm *vm, u32 op, const char *path, int fd, bool waits, char *to, size_t room) {
  for (;;) {
    if (vm_poll(vm, 0) != WEFT_OK) return -1;
    if (waits && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, READ_WAIT_MS) <= 0) continue;
    ssize_t n = read(fd, to, room < READ_MOST ? room : READ_MOST);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) (void)io_error(vm, op, path, "read", errno);
    return n;
  }
}

WeftStatus file_read(Vm *vm, u32 op, const char *path, u64 most, char **data, size_t *len, size_t *cap) {
  int fd;
  while ((fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) < 0) {
    if (errno != EINTR) return io_error(vm, op, path, "read", errno);
    TRY(vm_poll(vm, 0));
  }
  struct stat st;
  char *buf = NULL;
  size_t n = 0, room = 0;
  WeftStatus status = fstat(fd, &st) == 0 ? WEFT_OK : io_error(vm, op, path, "read", errno);
  const bool regular = status == WEFT_OK && S_ISREG(st.st_mode);
  while (status == WEFT_OK) {
    if (room - n < 2) {
      size_t want = room ? room * 2 : regular && st.st_size > READ_FIRST && (u64)st.st_size <= most ? (size_t)st.st_size + 2 : READ_FIRST;
      if (n > most || (regular && (u64)st.st_size > most)) {
        status = vm_error(vm, EK_limit, "%s: \"%s\" is too large: at most %llu bytes are read", op_name(op), path, (unsigned long long)most);
        break;
      }
      char *more = mem_resize(&vm->alloc, buf, room, want);
      if (!more) {
        status = vm_error_memory(vm);
        break;
      }
      buf = more;
      room = want;
    }
    ssize_t got = read_some(vm, op, path, fd, !regular, buf + n, room - n - 1);
    if (got < 0) status = WEFT_ERROR;
    if (got <= 0) break;
    n += (size_t)got;
  }
  close(fd);
  if (status != WEFT_OK) {
    mem_free(&vm->alloc, buf, room);
    return status;
  }
  buf[n] = 0;
  *data = buf;
  *len = n;
  *cap = room;
  return WEFT_OK;
}

WeftStatus file_write(Vm *vm, u32 op, const char *path, const char *data, size_t len) {
  int code = file_put(vm, path, data, len);
  return code == FILE_STOPPED ? WEFT_ERROR : code ? io_error(vm, op, path, "write", code) : WEFT_OK;
}

/* How many bytes are UTF-8 as RFC 3629: no overlong forms, no surrogates, at most U+10FFFF. */
static size_t valid_bytes(const char *text, size_t n) {
  const u8 *s = (const u8 *)text, *end = s + n;
  while (s < end) {
    u64 eight;
    while (end - s >= 8 && (memcpy(&eight, s, 8), !(eight & 0x8080808080808080u))) s += 8;
    if (s == end) break;
    const u8 *first = s;
    u32 c = *s++, more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : 9;
    if (more == 9 || (size_t)(end - s) < more) return (size_t)(first - (const u8 *)text);
    u32 v = more ? c & (0x3Fu >> more) : c;
    for (u32 i = 0; i < more; i++) {
      if ((s[i] & 0xC0) != 0x80) return (size_t)(first - (const u8 *)text);
      v = v << 6 | (s[i] & 0x3F);
    }
    if ((more == 2 && (v < 0x800 || (v >= 0xD800 && v < 0xE000))) || (more == 3 && (v < 0x10000 || v > 0x10FFFF))) return (size_t)(first - (const u8 *)text);
    s += more;
  }
  return n;
}

bool utf8_valid(const char *text, size_t n) { return valid_bytes(text, n) == n; }

u64 utf8_bad_line(const char *text, size_t n) {
  size_t at = valid_bytes(text, n);
  u64 line = 1;
  for (size_t i = 0; i < at; i++) line += text[i] == '\r' || (text[i] == '\n' && !(i && text[i - 1] == '\r'));
  return at < n ? line : 0;
}

WeftStatus eager_read_text(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char *data;
  size_t len, cap;
  TRY(file_path(vm, OP_read_text, args[0], &path));
  TRY(file_read(vm, OP_read_text, path, TEXT_FILE_MOST, &data, &len, &cap));
  WeftStatus status = WEFT_OK;
  u64 line = utf8_bad_line(data, len);
  if (line) status = vm_error(vm, EK_io, "read_text: \"%s\" is not UTF-8: line %llu", path, (unsigned long long)line);
  else if (!text_new(vm, data, len, out)) status = WEFT_ERROR;
  mem_free(&vm->alloc, data, cap);
  return status;
}

WeftStatus eager_write_text(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  TRY(file_path(vm, OP_write_text, args[0], &path));
  if (args[1].kind != V_TEXT) return args_error(vm, OP_write_text, 1, args[1], "a text");
  *out = value_nil();
  return file_write(vm, OP_write_text, path, args[1].text->data, args[1].text->len);
}

/* files.c — reading and writing whole files; text files (see files.h). */
#include "stdlib/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

WeftStatus file_read(Vm *vm, u32 op, const char *path, char **data, size_t *len, size_t *cap) {
  FILE *f = fopen(path, "rb");
  if (!f) return io_error(vm, op, path, "read", errno);
  char *buf = NULL;
  size_t n = 0, room = 0;
  WeftStatus status = WEFT_OK;
  for (;;) {
    if (room - n < 2) {
      size_t want = room ? room * 2 : 65536;
      if (want >> FILE_LIMIT_BITS) {
        status = vm_error(vm, EK_limit, "%s: \"%s\" is too large", op_name(op), path);
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
    errno = 0;
    size_t got = fread(buf + n, 1, room - n - 1, f);
    n += got;
    if (got == 0) {
      if (ferror(f)) status = io_error(vm, op, path, "read", errno);
      break;
    }
  }
  fclose(f);
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
  Buf name;
  buf_init(&name, &vm->alloc);
  buf_printf(&name, "%s.tmp%ld", path, (long)getpid());
  if (name.failed) {
    buf_free(&name);
    return vm_error_memory(vm);
  }
  const char *temporary = buf_text(&name);
  FILE *f = fopen(temporary, "wb");
  int code = f ? 0 : errno;
  if (f) {
    if (fwrite(data, 1, len, f) != len) code = errno ? errno : EIO;
    if (fclose(f) != 0 && !code) code = errno;
    if (!code && rename(temporary, path) != 0) code = errno;
    if (code) remove(temporary);
  }
  buf_free(&name);
  return code ? io_error(vm, op, path, "write", code) : WEFT_OK;
}

/* UTF-8 as RFC 3629: no overlong forms, no surrogates, at most U+10FFFF. */
bool utf8_valid(const char *text, size_t n) {
  const u8 *s = (const u8 *)text, *end = s + n;
  while (s < end) {
    u32 c = *s++, more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : 9;
    if (more == 9 || (size_t)(end - s) < more) return false;
    u32 v = more ? c & (0x3Fu >> more) : c;
    for (u32 i = 0; i < more; i++) {
      if ((s[i] & 0xC0) != 0x80) return false;
      v = v << 6 | (s[i] & 0x3F);
    }
    if ((more == 2 && (v < 0x800 || (v >= 0xD800 && v < 0xE000))) || (more == 3 && (v < 0x10000 || v > 0x10FFFF))) return false;
    s += more;
  }
  return true;
}

WeftStatus eager_read_text(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  char *data;
  size_t len, cap;
  TRY(file_path(vm, OP_read_text, args[0], &path));
  TRY(file_read(vm, OP_read_text, path, &data, &len, &cap));
  WeftStatus status = WEFT_OK;
  if (!utf8_valid(data, len)) status = vm_error(vm, EK_io, "read_text: \"%s\" is not UTF-8", path);
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

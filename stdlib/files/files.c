/* files.c — reading and writing whole files; text files (see files.h). */
#include "stdlib/files/files.h"

#include <errno.h>
#include <string.h>

WeftStatus file_path(Vm *vm, u32 op, Value v, const char **out) {
  if (v.kind != V_TEXT) return args_error(vm, op, 0, v, "a text");
  if (!vm->limits.allow_files && !vm->files)
    return vm_limit(vm, LIMIT_files, "%s: the host does not allow files", op_name(op));
  if (v.text->len == 0 || memchr(v.text->data, 0, v.text->len))
    return vm_error(vm, EK_value, "%s: the path is empty or holds a zero byte", op_name(op));
  *out = v.text->data;
  return WEFT_OK;
}

WeftStatus file_error(Vm *vm, u32 op, const char *path, const char *what, int code) {
  char why[128] = "unknown error";
  if (vm->error.raised) return WEFT_ERROR; /* by the host, whose files they are */
  if (strerror_r(code, why, sizeof why) != 0) why[sizeof why - 1] = 0;
  return vm_error(vm, EK_io, "%s: cannot %s \"%s\": %s", op_name(op), what, path, why);
}

WeftStatus file_read(Vm *vm, u32 op, const char *path, u64 most, char **data, size_t *len, size_t *cap) {
  int code = vm_read_visible(vm, path, most, data, len, cap);
  if (code == 0) return WEFT_OK;
  if (code < 0) return WEFT_ERROR;
  if (code == ENOMEM) return vm_error_memory(vm);
  if (code == EFBIG)
    return vm_error(vm, EK_limit, "%s: \"%s\" is too large: at most %llu bytes are read", op_name(op), path,
                    (unsigned long long)most);
  return file_error(vm, op, path, "read", code);
}

WeftStatus file_write(Vm *vm, u32 op, const char *path, const char *data, size_t len) {
  int code = vm->files ? vm_files_code(vm, vm->files->write(vm->files->context, path, data, len, false))
                       : file_put(vm, path, data, len);
  return code == FILE_STOPPED ? WEFT_ERROR : code ? file_error(vm, op, path, "write", code) : WEFT_OK;
}

/* How many bytes are UTF-8 as RFC 3629: no overlong forms, no surrogates, at most U+10FFFF. */
static size_t valid_bytes(const char *text, size_t n) {
  const u8 *s = (const u8 *)text, *end = s + n;
  while (s < end) {
    u64 eight;
    while (end - s >= 8 && (memcpy(&eight, s, 8), !(eight & 0x8080808080808080u))) s += 8;
    if (s == end) break;
    const u8 *first = s;
    u32 c = *s++,
        more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : 9;
    if (more == 9 || (size_t)(end - s) < more) return (size_t)(first - (const u8 *)text);
    u32 v = more ? c & (0x3Fu >> more) : c;
    for (u32 i = 0; i < more; i++) {
      if ((s[i] & 0xC0) != 0x80) return (size_t)(first - (const u8 *)text);
      v = v << 6 | (s[i] & 0x3F);
    }
    if ((more == 2 && (v < 0x800 || (v >= 0xD800 && v < 0xE000))) || (more == 3 && (v < 0x10000 || v > 0x10FFFF)))
      return (size_t)(first - (const u8 *)text);
    s += more;
  }
  return n;
}

bool utf8_valid(const char *text, size_t n) { return valid_bytes(text, n) == n; }

u64 utf8_bad_line(const char *text, size_t n) {
  size_t at = valid_bytes(text, n);
  u64 line = 1;
  if (at == n) return 0;
  for (size_t i = 0; i < at; i++) line += text[i] == '\r' || (text[i] == '\n' && !(i && text[i - 1] == '\r'));
  return line;
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

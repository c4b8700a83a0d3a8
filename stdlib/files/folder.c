/* folder.c — files and folders by name: is it there, what is in it, made, taken away. */
#include "stdlib/files/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

WeftStatus eager_append_text(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  TRY(file_path(vm, OP_append_text, args[0], &path));
  if (args[1].kind != V_TEXT) return args_error(vm, OP_append_text, 1, args[1], "a text");
  *out = value_nil();
  const Text *t = args[1].text;
  int fd, code = 0;
  if (vm->files) {
    code = vm_files_code(vm, vm->files->write(vm->files->context, path, t->data, t->len, true));
    return code ? file_error(vm, OP_append_text, path, "write", code) : WEFT_OK;
  }
  while ((fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666)) < 0 && errno == EINTR) continue;
  if (fd < 0) return file_error(vm, OP_append_text, path, "write", errno);
  for (size_t done = 0; done < t->len && !code;) { /* as one write where the system takes it */
    ssize_t n = write(fd, t->data + done, t->len - done);
    if (n > 0) done += (size_t)n;
    else if (n == 0) code = EIO;
    else if (errno != EINTR) code = errno;
    else if (vm_poll(vm, 0) != WEFT_OK) code = FILE_STOPPED;
  }
  if (close(fd) != 0 && errno != EINTR && !code) code = errno;
  return code == FILE_STOPPED ? WEFT_ERROR : code ? file_error(vm, OP_append_text, path, "write", code) : WEFT_OK;
}

/* 0, an errno, or -1: the host raised an error. */
static int look_at(Vm *vm, const char *path, u64 *bytes, bool *folder, bool *regular) {
  struct stat st;
  if (vm->files) {
    *bytes = 0;
    *folder = false;
    const int code = vm_files_code(vm, vm->files->about(vm->files->context, path, bytes, folder));
    *regular = !*folder;
    return code;
  }
  if (stat(path, &st) != 0) return errno;
  *bytes = (u64)st.st_size;
  *folder = S_ISDIR(st.st_mode);
  *regular = S_ISREG(st.st_mode);
  return 0;
}

WeftStatus eager_exists(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  u64 bytes;
  bool folder, regular;
  TRY(file_path(vm, OP_exists, args[0], &path));
  const int code = look_at(vm, path, &bytes, &folder, &regular);
  if (code && code != ENOENT && code != ENOTDIR) return file_error(vm, OP_exists, path, "look at", code);
  *out = value_bool(!code);
  return WEFT_OK;
}

WeftStatus eager_file_size(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  u64 bytes;
  bool folder, regular;
  TRY(file_path(vm, OP_file_size, args[0], &path));
  const int code = look_at(vm, path, &bytes, &folder, &regular);
  if (code) return file_error(vm, OP_file_size, path, "look at", code);
  if (!regular) return vm_error(vm, EK_io, "file_size: \"%s\" is no regular file", path);
  *out = value_i64((i64)bytes);
  return WEFT_OK;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int no_dots(const struct dirent *e) { return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0; }

/* Names that the host gives, each with a NUL behind it. */
static void take_name(void *to, const char *name) {
  if (name && *name) buf_put(to, name, strlen(name) + 1);
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static WeftStatus list_of(Vm *vm, const char *path, const char **names, u32 count, Value *out) {
  TRY(list_new(vm, count, out) ? WEFT_OK : WEFT_ERROR);
  for (u32 i = 0; i < count; i++) {
    Value name;
    const size_t n = strlen(names[i]);
    WeftStatus status = utf8_valid(names[i], n) ? WEFT_OK
                                                : vm_error(vm, EK_io, "list_dir: a name in \"%s\" is not UTF-8", path);
    if (status == WEFT_OK && text_new(vm, names[i], n, &name) && list_push(vm, out, name)) continue;
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

static WeftStatus list_files(Vm *vm, const char *path, Value *out) {
  Buf all;
  vm_buf_init(vm, &all);
  const int code = vm_files_code(vm, vm->files->list(vm->files->context, path, take_name, &all));
  WeftStatus status = code ? file_error(vm, OP_list_dir, path, "read", code)
                           : all.failed ? vm_error_buf(vm) : WEFT_OK;
  u32 count = 0, at = 0;
  for (size_t i = 0; i < all.len; i++) count += all.data[i] == 0;
  const char **names = status == WEFT_OK ? mem_alloc(&vm->alloc, sizeof *names * (count + 1)) : NULL;
  if (status == WEFT_OK && !names) status = vm_error_memory(vm);
  for (u32 i = 0; names && i < count; i++, at += (u32)strlen(all.data + at) + 1) names[i] = all.data + at;
  if (names) qsort(names, count, sizeof *names, by_text);
  if (status == WEFT_OK) status = list_of(vm, path, names, count, out);
  mem_free(&vm->alloc, names, sizeof *names * (count + 1));
  buf_free(&all);
  return status;
}

WeftStatus eager_list_dir(Vm *vm, Value *args, Value *out) {
  const char *path = ".";
  struct dirent **entries;
  if (args[0].kind != V_HOLE) TRY(file_path(vm, OP_list_dir, args[0], &path));
  else if (!vm->limits.allow_files && !vm->files)
    return vm_limit(vm, LIMIT_files, "list_dir: the host does not allow files");
  if (vm->files) return list_files(vm, path, out);
  int n = scandir(path, &entries, no_dots, by_bytes);
  if (n < 0) return file_error(vm, OP_list_dir, path, "read", errno);
  WeftStatus status = list_new(vm, (u32)n, out) ? WEFT_OK : WEFT_ERROR;
  const bool made = status == WEFT_OK;
  for (int i = 0; i < n; i++) {
    Value name;
    const char *s = entries[i]->d_name;
    if (status == WEFT_OK && !utf8_valid(s, strlen(s)))
      status = vm_error(vm, EK_io, "list_dir: a name in \"%s\" is not UTF-8", path);
    if (status == WEFT_OK && (!text_new(vm, s, strlen(s), &name) || !list_push(vm, out, name))) status = WEFT_ERROR;
    free(entries[i]);
  }
  free(entries);
  if (made && status != WEFT_OK) value_drop(vm, *out);
  return status;
}

WeftStatus eager_make_dir(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  TRY(file_path(vm, OP_make_dir, args[0], &path));
  *out = value_nil();
  size_t n = strlen(path);
  char *part = mem_alloc(&vm->alloc, n + 1);
  if (!part) return vm_error_memory(vm);
  memcpy(part, path, n + 1);
  int code = 0;
  for (size_t i = 1; i <= n && !code; i++) {
    u64 bytes;
    bool folder, regular;
    if (part[i] != '/' && part[i]) continue;
    char end = part[i];
    part[i] = 0;
    if (vm->files) code = vm_files_code(vm, vm->files->make_folder(vm->files->context, part));
    else if (mkdir(part, 0777) != 0) code = errno;
    const int seen = code > 0 ? look_at(vm, part, &bytes, &folder, &regular) : code;
    if (code > 0 && seen == 0) code = folder ? 0 : ENOTDIR; /* there, whoever made it */
    else if (code == EEXIST && vm->files) code = seen;      /* there, and not to be had */
    part[i] = end;
  }
  mem_free(&vm->alloc, part, n + 1);
  return code ? file_error(vm, OP_make_dir, path, "make", code) : WEFT_OK;
}

WeftStatus eager_remove_file(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  struct stat st;
  TRY(file_path(vm, OP_remove_file, args[0], &path));
  *out = value_nil();
  if (vm->files) {
    const int code = vm_files_code(vm, vm->files->remove(vm->files->context, path));
    return code ? file_error(vm, OP_remove_file, path, "remove", code) : WEFT_OK;
  }
  if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
    return vm_error(vm, EK_io, "remove_file: \"%s\" is a folder; not supported", path);
  return unlink(path) == 0 ? WEFT_OK : file_error(vm, OP_remove_file, path, "remove", errno);
}

/* Of the file that the host runs, wherever the call stands. */
WeftStatus eager_script_dir(Vm *vm, Value *args, Value *out) {
  (void)args;
  if (vm->files) return text_new(vm, ".", 1, out) ? WEFT_OK : WEFT_ERROR; /* of the files that it sees */
  if (!vm->limits.allow_files) return vm_limit(vm, LIMIT_files, "script_dir: the host does not allow files");
  const char *path = vm->module_count ? vm->modules[0]->path : "", *slash = strrchr(path, '/');
  char *here = slash ? NULL : getcwd(NULL, 0);
  if (!slash && !here) return file_error(vm, OP_script_dir, ".", "look at", errno);
  const char *s = slash ? path : here;
  size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : strlen(here);
  WeftStatus status = !utf8_valid(s, n) ? vm_error(vm, EK_io, "script_dir: the folder's name is not UTF-8")
                      : text_new(vm, s, n, out) ? WEFT_OK : WEFT_ERROR;
  free(here);
  return status;
}

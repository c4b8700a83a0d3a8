/* lines.c — sequences for `for` that are no list: the lines of a file, read as they are needed; progress. */
#include "stdlib/files/files.h"
#include "stdlib/text/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lines of a file ------------------------------------------------------------------------- */

enum { CHUNK = 1 << 16 };

/* A position is the byte of the file at which a line begins, so that each loop has its own, and a loop that compiled
 * code left goes on where it was. */
typedef struct Lines {
  Allocator *alloc;
  char *path;
  size_t path_bytes;
  int fd;          /* of a file of the system */
  void *file;      /* of the host's files, which `files` are */
  const VmFiles *files;
  bool seeks;      /* a regular file; a pipe is read once, in order */
  u64 begins;      /* of the file: of the first byte in buf */
  char *buf;
  size_t len, cap; /* bytes in buf; its size */
  bool ended;      /* nothing follows what is in buf */
} Lines;

static void lines_release(void *object) {
  Lines *l = object;
  if (l->fd >= 0) (void)close(l->fd);
  if (l->files) l->files->close(l->files->context, l->file);
  mem_free(l->alloc, l->buf, l->cap);
  mem_free(l->alloc, l->path, l->path_bytes);
  mem_free(l->alloc, l, sizeof *l);
}

static WeftStatus lines_error(Vm *vm, const Lines *l, int code) {
  char why[128] = "unknown error";
  if (vm->error.raised) return WEFT_ERROR;
  if (strerror_r(code, why, sizeof why) != 0) why[sizeof why - 1] = 0;
  return vm_error(vm, EK_io, "lines: cannot read \"%s\": %s", l->path, why);
}

/* More bytes behind those in buf. */
static WeftStatus lines_more(Vm *vm, Lines *l) {
  if (l->len == l->cap) {
    size_t cap = l->cap ? l->cap * 2 : CHUNK;
    if (l->len > TEXT_FILE_MOST) return vm_error(vm, EK_limit, "lines: a line of \"%s\" is too long", l->path);
    char *buf = mem_resize(l->alloc, l->buf, l->cap, cap);
    if (!buf) return vm_error_memory(vm);
    l->buf = buf;
    l->cap = cap;
  }
  if (l->files) {
    int code;
    const ptrdiff_t got = vm_files_read(vm, l->file, l->begins + l->len, l->buf + l->len, l->cap - l->len, &code);
    if (got < 0) return lines_error(vm, l, code);
    l->len += (size_t)got;
    l->ended = got == 0;
    return WEFT_OK;
  }
  for (;;) {
    int code = l->seeks ? (vm_poll(vm, 1) == WEFT_OK ? 0 : -1) : vm_wait_data(vm, l->fd);
    if (code < 0) return WEFT_ERROR;
    if (code > 0) return lines_error(vm, l, code);
    ssize_t got = l->seeks ? pread(l->fd, l->buf + l->len, l->cap - l->len, (off_t)(l->begins + l->len))
                           : read(l->fd, l->buf + l->len, l->cap - l->len);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return lines_error(vm, l, errno);
    l->len += (size_t)got;
    l->ended = got == 0;
    return WEFT_OK;
  }
}

/* buf begins with the byte at pos of the file, and holds at least one byte unless the file ends there. */
static WeftStatus lines_at(Vm *vm, Lines *l, u64 pos) {
  if (pos < l->begins || pos > l->begins + l->len) {
    if (!l->seeks) return vm_error(vm, EK_io, "lines: \"%s\" is no regular file: it is read once, in order", l->path);
    l->begins = pos;
    l->len = 0;
    l->ended = false;
  } else if (pos > l->begins && (pos - l->begins == l->len || l->len == l->cap)) {
    size_t gone = (size_t)(pos - l->begins);
    memmove(l->buf, l->buf + gone, l->len - gone);
    l->len -= gone;
    l->begins = pos;
  }
  while (pos == l->begins + l->len && !l->ended)
    if (lines_more(vm, l) != WEFT_OK) return WEFT_ERROR;
  return WEFT_OK;
}

static WeftStatus lines_open(Vm *vm, Handle *h, u64 *count) {
  Lines *l = h->object;
  struct stat st;
  if (l->seeks) l->begins = l->len = 0, l->ended = false; /* what it holds now */
  TRY(lines_at(vm, l, 0));
  *count = l->len == 0 && l->ended ? 0 : INT64_MAX;
  if (*count && l->fd >= 0 && l->seeks && fstat(l->fd, &st) == 0 && st.st_size > 0)
    *count = (u64)st.st_size; /* what is to come */
  return WEFT_OK;
}

static WeftStatus lines_next(Vm *vm, Handle *h, u64 *pos, Value *out) {
  Lines *l = h->object;
  u64 begin = *pos;
  TRY(lines_at(vm, l, begin));
  size_t from = (size_t)(begin - l->begins), looked = from;
  char *end;
  while (!(end = l->len > looked ? memchr(l->buf + looked, '\n', l->len - looked) : NULL) && !l->ended) {
    if (from && l->len == l->cap) { /* room for a line that goes on */
      memmove(l->buf, l->buf + from, l->len - from);
      l->len -= from;
      l->begins += from;
      from = 0;
    }
    looked = l->len;
    TRY(lines_more(vm, l));
  }
  size_t stop = end ? (size_t)(end - l->buf) : l->len, next = end ? stop + 1 : stop;
  if (end && stop > from && l->buf[stop - 1] == '\r') stop--;
  if (!utf8_valid(l->buf + from, stop - from))
    return vm_error(vm, EK_io, "lines: \"%s\" is not UTF-8: the line that begins at byte %llu", l->path,
                    (unsigned long long)begin);
  if (!text_new(vm, l->buf + from, stop - from, out)) return WEFT_ERROR;
  u64 behind = l->begins + next;
  if (behind == l->begins + l->len && !l->ended && lines_at(vm, l, behind) != WEFT_OK) { /* is there another line? */
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  *pos = behind == l->begins + l->len && l->ended ? INT64_MAX : behind;
  return WEFT_OK;
}

static const HandleType lines_type = {.size = sizeof(HandleType), .name = "lines", .release = lines_release};
static const Stream lines_stream = {lines_open, lines_next};

WeftStatus eager_lines(Vm *vm, Value *args, Value *out) {
  const char *path = NULL;
  TRY(file_path(vm, OP_lines, args[0], &path));
  Lines *l = mem_alloc_zero(&vm->alloc, sizeof *l);
  if (!l) return vm_error_memory(vm);
  l->alloc = &vm->alloc;
  l->fd = -1;
  l->path_bytes = strlen(path) + 1;
  if (!(l->path = mem_alloc(l->alloc, l->path_bytes))) {
    l->path_bytes = 0;
    lines_release(l);
    return vm_error_memory(vm);
  }
  memcpy(l->path, path, l->path_bytes);
  if (vm->files) {
    const int code = vm_files_code(vm, vm->files->open(vm->files->context, path, &l->file));
    if (!code) l->files = vm->files, l->seeks = true;
    WeftStatus status = code ? lines_error(vm, l, code) : WEFT_OK;
    if (status == WEFT_OK && handle_new(vm, &lines_type, l, value_nil(), out)) {
      out->handle->stream = &lines_stream;
      return WEFT_OK;
    }
    lines_release(l);
    return WEFT_ERROR;
  }
  while ((l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0 && errno == EINTR) continue;
  struct stat st;
  int code = l->fd < 0 || fstat(l->fd, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
  if (code) {
    WeftStatus status = lines_error(vm, l, code);
    lines_release(l);
    return status;
  }
  l->seeks = S_ISREG(st.st_mode);
  if (!handle_new(vm, &lines_type, l, value_nil(), out)) {
    lines_release(l);
    return WEFT_ERROR;
  }
  out->handle->stream = &lines_stream;
  return WEFT_OK;
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Draws on standard error how far a loop is. What is walked over lies in the handle's `fields`. */
typedef struct Progress {
  Allocator *alloc;
  char label[80];
  u64 count;         /* of what is walked over, as its positions are */
  f64 began, drawn;  /* by vm_clock */
  u64 done;          /* items */
  bool begun;        /* a bar stands there whose line goes on */
} Progress;

enum { BAR = 30 };

/* The line of a loop that was left early ends. */
static void end_bar(Progress *p) {
  if (p->begun) (void)fputc('\n', stderr);
  p->begun = false;
}

static void progress_release(void *object) {
  Progress *p = object;
  end_bar(p);
  mem_free(p->alloc, p, sizeof *p);
}

static void draw(Progress *p, u64 pos, bool last) {
  const f64 least = 0.1; /* seconds between two pictures */
  f64 now = vm_clock();
  if (!last && now - p->drawn < least) return;
  p->drawn = now;
  f64 share = p->count && p->count < INT64_MAX ? (f64)pos / (f64)p->count : 0, took = now - p->began;
  if (last) share = 1;
  u32 full = (u32)(share * BAR);
  char bar[BAR + 1];
  for (u32 i = 0; i < BAR; i++) bar[i] = i < full ? '#' : '.';
  bar[BAR] = 0;
  fprintf(stderr, "\r%s%s[%s] %3.0f%% %llu in %.1f s, %.1f/s%s", p->label, *p->label ? " " : "", bar, share * 100,
          (unsigned long long)p->done, took, took > 0 ? (f64)p->done / took : 0.0, last ? "\n" : "\033[K");
  (void)fflush(stderr);
  p->begun = !last;
}

static WeftStatus progress_open(Vm *vm, Handle *h, u64 *count) {
  Progress *p = h->object;
  end_bar(p);
  TRY(vm_seq_open(vm, h->fields, count));
  p->count = *count;
  p->began = p->drawn = vm_clock();
  p->done = 0;
  if (!*count) draw(p, 0, true);
  return WEFT_OK;
}

static WeftStatus progress_next(Vm *vm, Handle *h, u64 *pos, Value *out) {
  Progress *p = h->object;
  TRY(vm_seq_next(vm, h->fields, pos, out));
  p->done++;
  draw(p, *pos, *pos >= p->count);
  return WEFT_OK;
}

static const HandleType progress_type = {.size = sizeof(HandleType), .name = "progress", .release = progress_release};
static const Stream progress_stream = {progress_open, progress_next};

WeftStatus eager_progress(Vm *vm, Value *args, Value *out) {
  u64 count;
  if (args[1].kind != V_HOLE && args[1].kind != V_TEXT) return args_error(vm, OP_progress, 1, args[1], "a text");
  if (!vm->draws) { /* nobody would see it */
    if (args[0].kind != V_HANDLE) TRY(args_walked(vm, OP_progress, 0, args[0], &count));
    *out = value_keep(args[0]);
    return WEFT_OK;
  }
  TRY(args_walked(vm, OP_progress, 0, args[0], &count));
  Progress *p = mem_alloc_zero(&vm->alloc, sizeof *p);
  if (!p) return vm_error_memory(vm);
  p->alloc = &vm->alloc;
  if (args[1].kind == V_TEXT)
    for (size_t i = 0, n = args[1].text->len; i < n && i + 1 < sizeof p->label; i++)
      p->label[i] = (u8)args[1].text->data[i] < ' ' ? ' ' : args[1].text->data[i];
  if (!handle_new(vm, &progress_type, p, value_keep(args[0]), out)) {
    progress_release(p);
    return WEFT_ERROR;
  }
  out->handle->stream = &progress_stream;
  return WEFT_OK;
}

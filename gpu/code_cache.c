/* code_cache.c — machine code of kernels in files (see code_cache.h).
 *
 * An entry is written under another name and renamed when it is whole, so that processes side by side read whole ones.
 * A folder that others may write is not used: whoever writes there decides what runs. */
#define _GNU_SOURCE /* mkostemp */
#include "gpu/code_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "weftgpu1"
#define UNDER_WAY "weft-new-"

enum { PATH_MOST = 4096, NAME_DIGITS = 16, CODE_MOST = 256 << 20, CHUNK = 4096, HOUR = 3600,
       LOOK_AGAIN = 16 /* the share of `most` that may be written until the folder is looked through again */ };
static const char ending[] = ".cubin";

typedef struct EntryHead {
  char magic[8];
  u64 text_bytes, code_bytes, sum;
} EntryHead;
_Static_assert(sizeof(EntryHead) == 32, "the head of a file");

static u64 sum_of(u64 sum, const void *data, size_t bytes) { /* FNV-1a */
  const u8 *p = data;
  for (size_t i = 0; i < bytes; i++) sum = (sum ^ p[i]) * 0x100000001b3u;
  return sum;
}
static const u64 sum_start = 0xcbf29ce484222325u;

static bool path_of(const CodeCache *c, const char *text, size_t length, char *path) {
  int n = snprintf(path, PATH_MOST, "%s/%016llx%s", c->folder, (unsigned long long)sum_of(sum_start, text, length),
                   ending);
  return n > 0 && n < PATH_MOST;
}

void code_cache_init(CodeCache *c, const char *folder, u64 most) {
  *c = (CodeCache){.folder = folder && *folder ? folder : NULL, .most = most};
}

/* Makes the folder and those around it. */
static void make_folders(const char *folder) {
  char path[PATH_MOST];
  size_t length = strlen(folder);
  if (length >= sizeof path) return;
  memcpy(path, folder, length + 1);
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i]) continue;
    char was = path[i];
    path[i] = 0;
    (void)mkdir(path, 0700);
    path[i] = was;
  }
}

/* False: nothing is kept from now on. */
static bool is_ready(CodeCache *c) {
  struct stat s;
  if (!c->folder || c->ready) return c->folder != NULL;
  if (stat(c->folder, &s) != 0) {
    make_folders(c->folder);
    if (stat(c->folder, &s) != 0) s.st_mode = 0;
  }
  c->ready = S_ISDIR(s.st_mode) && s.st_uid == geteuid() && !(s.st_mode & (S_IWGRP | S_IWOTH)) &&
             access(c->folder, R_OK | W_OK | X_OK) == 0;
  if (!c->ready) c->folder = NULL;
  return c->ready;
}

static bool read_all(int fd, void *to, size_t bytes) {
  char *p = to;
  while (bytes) {
    ssize_t n = read(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    bytes -= (size_t)n;
  }
  return true;
}

static bool write_all(int fd, const void *from, size_t bytes) {
  const char *p = from;
  while (bytes) {
    ssize_t n = write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    bytes -= (size_t)n;
  }
  return true;
}

static bool is_next(int fd, const char *text, size_t length) {
  char chunk[CHUNK];
  while (length) {
    size_t n = length < sizeof chunk ? length : sizeof chunk;
    if (!read_all(fd, chunk, n) || memcmp(chunk, text, n) != 0) return false;
    text += n;
    length -= n;
  }
  return true;
}

static void *read_entry(int fd, Allocator *a, const char *text, size_t length, size_t *bytes) {
  struct stat s;
  EntryHead h;
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() || !read_all(fd, &h, sizeof h)) return NULL;
  if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0 || h.text_bytes != length || !h.code_bytes ||
      h.code_bytes > CODE_MOST || (u64)s.st_size != sizeof h + h.text_bytes + h.code_bytes ||
      !is_next(fd, text, length))
    return NULL;
  void *code = mem_alloc(a, (size_t)h.code_bytes);
  if (!code) return NULL;
  *bytes = (size_t)h.code_bytes;
  if (read_all(fd, code, *bytes) && sum_of(sum_of(sum_start, text, length), code, *bytes) == h.sum) return code;
  mem_free(a, code, *bytes);
  return NULL;
}

bool code_cache_find(CodeCache *c, Allocator *a, const char *text, size_t length, void **code, size_t *bytes) {
  char path[PATH_MOST];
  if (!is_ready(c) || !path_of(c, text, length, path)) return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  *code = read_entry(fd, a, text, length, bytes);
  if (*code) (void)futimens(fd, NULL); /* it was used now */
  close(fd);
  return *code != NULL;
}

void code_cache_drop(CodeCache *c, const char *text, size_t length) {
  char path[PATH_MOST];
  if (is_ready(c) && path_of(c, text, length, path)) (void)unlink(path);
}

/* ---- the bound --------------------------------------------------------------------------------------------- */

typedef struct Entry {
  u64 bytes;
  struct timespec used;
  char name[NAME_DIGITS + sizeof ending];
} Entry;
typedef VEC(Entry) Entries;

static int older_first(const void *a, const void *b) {
  const struct timespec *x = &((const Entry *)a)->used, *y = &((const Entry *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool is_entry(const char *name) {
  return strspn(name, "0123456789abcdef") == NAME_DIGITS && strcmp(name + NAME_DIGITS, ending) == 0;
}

/* The entries of the folder, and their bytes. What a process left half written, an hour ago and more, goes. */
static u64 list_entries(DIR *d, Allocator *a, Entries *out) {
  u64 all = 0;
  struct stat s;
  for (struct dirent *e; (e = readdir(d));) {
    bool whole = is_entry(e->d_name);
    if (!whole && strncmp(e->d_name, UNDER_WAY, sizeof UNDER_WAY - 1) != 0) continue;
    if (fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) continue;
    if (!whole) {
      if (s.st_mtime + HOUR < time(NULL)) (void)unlinkat(dirfd(d), e->d_name, 0);
      continue;
    }
    Entry entry = {.bytes = (u64)s.st_size, .used = s.st_mtim};
    memcpy(entry.name, e->d_name, sizeof entry.name);
    if (!vec_push(a, out, entry)) break;
    all += entry.bytes;
  }
  return all;
}

/* Down to three quarters of the bound, so that this is not done for every entry. */
static void keep_bound(CodeCache *c, Allocator *a) {
  if (c->looked && c->written <= c->most / LOOK_AGAIN) return;
  DIR *d = opendir(c->folder);
  Entries entries = {0};
  if (!d) return;
  u64 all = list_entries(d, a, &entries);
  if (all > c->most) {
    qsort(entries.data, entries.count, sizeof *entries.data, older_first);
    for (u32 i = 0; i < entries.count && all > c->most / 4 * 3; i++)
      if (unlinkat(dirfd(d), entries.data[i].name, 0) == 0) all -= entries.data[i].bytes;
  }
  closedir(d);
  vec_free(a, &entries);
  c->looked = true;
  c->written = 0;
}

void code_cache_keep(CodeCache *c, Allocator *a, const char *text, size_t length, const void *code, size_t bytes) {
  char path[PATH_MOST], made[PATH_MOST];
  u64 all = sizeof(EntryHead) + (u64)length + bytes;
  if (!bytes || bytes > CODE_MOST || all > c->most || !is_ready(c) || !path_of(c, text, length, path)) return;
  int n = snprintf(made, sizeof made, "%s/" UNDER_WAY "XXXXXX", c->folder);
  if (n < 0 || n >= (int)sizeof made) return;
  int fd = mkostemp(made, O_CLOEXEC);
  if (fd < 0) return;
  EntryHead h = {.magic = MAGIC, .text_bytes = length, .code_bytes = bytes,
                 .sum = sum_of(sum_of(sum_start, text, length), code, bytes)};
  bool ok = write_all(fd, &h, sizeof h) && write_all(fd, text, length) && write_all(fd, code, bytes);
  if (close(fd) != 0) ok = false;
  if (!ok || rename(made, path) != 0) {
    (void)unlink(made);
    return;
  }
  c->written += all;
  keep_bound(c, a);
}

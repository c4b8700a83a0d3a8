/* files.c — files of the host, and those below one folder of the system (weft.h).
 *
 * A path is walked name by name, each opened below the one before and never through a symbolic link, so that nobody who
 * changes the folder meanwhile can lead it elsewhere. */
#define _GNU_SOURCE /* O_PATH */
#include "api/inner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(WeftFiles) == sizeof(VmFiles) && offsetof(WeftFiles, remove) == offsetof(VmFiles, remove) &&
               offsetof(WeftFiles, read) == offsetof(VmFiles, read), "one struct under two names");

bool files_whole(const WeftFiles *f) {
  return f->size == sizeof *f && f->open && f->read && f->close && f->write && f->about && f->list && f->make_folder &&
         f->remove;
}

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

typedef struct Below {
  WeftFiles files; /* first */
  int root;
} Below;

enum { NAME_BYTES = 256 };
typedef struct Place { /* a name in a folder; "." is the folder */
  int folder;
  char name[NAME_BYTES];
} Place;

/* What is not to be had: a link, whatever the system says of it. */
static int refusal(const Place *p, int code) {
  struct stat st;
  return fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? EACCES : code;
}

static int next_name(const char **path, char name[NAME_BYTES]) {
  while (**path == '/') ++*path;
  const size_t n = strcspn(*path, "/");
  if (n >= NAME_BYTES) return ENAMETOOLONG;
  memcpy(name, *path, n);
  name[n] = 0;
  *path += n;
  while (**path == '/') ++*path;
  return strcmp(name, "..") == 0 ? EACCES : 0;
}

/* 0: place->folder is to be closed. */
static int find(const Below *b, const char *path, Place *place) {
  if (*path == '/') return EACCES;
  *place = (Place){.folder = openat(b->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), .name = "."};
  int code = place->folder < 0 ? errno : 0;
  while (!code && *path) {
    char name[NAME_BYTES];
    if ((code = next_name(&path, name))) break;
    if (strcmp(name, ".") == 0) continue;
    if (strcmp(place->name, ".") != 0) { /* the one before is a folder */
      const int in = openat(place->folder, place->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (in < 0) {
        code = refusal(place, errno);
        break;
      }
      (void)close(place->folder);
      place->folder = in;
    }
    memcpy(place->name, name, sizeof name);
  }
  if (code && place->folder >= 0) (void)close(place->folder);
  return code;
}

static int leave(const Place *p, int code) {
  (void)close(p->folder);
  return code;
}

/* A regular file; *fd is to be closed. */
static int open_regular(const Place *p, int how, int *fd) {
  struct stat st;
  if (fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
    return S_ISDIR(st.st_mode) ? EISDIR : EACCES; /* a device may do something when it is opened */
  do *fd = openat(p->folder, p->name, how | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  while (*fd < 0 && errno == EINTR);
  if (*fd < 0) return refusal(p, errno);
  if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode)) return 0;
  (void)close(*fd);
  return EACCES;
}

static int below_open(void *context, const char *path, void **file) {
  Place p;
  int fd = -1, code = find(context, path, &p);
  if (code) return code;
  code = leave(&p, open_regular(&p, O_RDONLY, &fd));
  *file = (void *)(intptr_t)fd;
  return code;
}

static ptrdiff_t below_read(void *context, void *file, uint64_t at, char *to, size_t room) {
  (void)context;
  ssize_t n;
  do n = pread((int)(intptr_t)file, to, room, (off_t)at);
  while (n < 0 && errno == EINTR);
  return n < 0 ? -errno : n;
}

static void below_close(void *context, void *file) {
  (void)context;
  (void)close((int)(intptr_t)file);
}

static int put_bytes(int fd, const char *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = write(fd, data + done, bytes - done);
    if (n > 0) done += (size_t)n;
    else if (n == 0) return EIO;
    else if (errno != EINTR) return errno;
  }
  return 0;
}

static int append_to(const Place *p, const char *data, size_t bytes) {
  int fd, code = open_regular(p, O_WRONLY | O_APPEND | O_CREAT, &fd);
  if (code) return code;
  code = put_bytes(fd, data, bytes);
  return close(fd) != 0 && errno != EINTR && !code ? errno : code;
}

/* A temporary beside it gets the bytes, then its name: a reader sees the old file or the new one. */
static int replace_file(const Place *p, const char *data, size_t bytes) {
  enum { TRIES = 1000 };
  struct stat old;
  char name[64];
  int fd = -1;
  const bool there = fstatat(p->folder, p->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && !S_ISREG(old.st_mode)) return S_ISDIR(old.st_mode) ? EISDIR : EACCES;
  if (there && faccessat(p->folder, p->name, W_OK, 0) != 0) return errno;
  for (int i = 0; i < TRIES && fd < 0; i++) {
    (void)snprintf(name, sizeof name, ".weft-%ld-%d.tmp", (long)getpid(), i);
    fd = openat(p->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST && errno != EINTR) return errno;
  }
  if (fd < 0) return EEXIST;
  int code = there && fchmod(fd, old.st_mode & 0777) != 0 ? errno : put_bytes(fd, data, bytes);
  if (close(fd) != 0 && errno != EINTR && !code) code = errno;
  if (!code && renameat(p->folder, name, p->folder, p->name) != 0) code = errno;
  if (code) (void)unlinkat(p->folder, name, 0);
  return code;
}

static int below_write(void *context, const char *path, const char *data, size_t bytes, bool append) {
  Place p;
  const int code = find(context, path, &p);
  if (code) return code;
  return leave(&p, append ? append_to(&p, data, bytes) : replace_file(&p, data, bytes));
}

static int below_about(void *context, const char *path, uint64_t *bytes, bool *folder) {
  Place p;
  struct stat st;
  int code = find(context, path, &p);
  if (code) return code;
  code = fstatat(p.folder, p.name, &st, AT_SYMLINK_NOFOLLOW) != 0 ? errno : 0;
  if (!code && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) code = EACCES;
  if (!code) {
    *bytes = (uint64_t)st.st_size;
    *folder = S_ISDIR(st.st_mode);
  }
  return leave(&p, code);
}

static int below_list(void *context, const char *path, void (*give)(void *to, const char *name), void *to) {
  Place p;
  int code = find(context, path, &p);
  if (code) return code;
  const int fd = openat(p.folder, p.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (!dir) {
    code = refusal(&p, errno);
    if (fd >= 0) (void)close(fd);
    return leave(&p, code);
  }
  errno = 0;
  for (const struct dirent *e; (e = readdir(dir)); errno = 0)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) give(to, e->d_name);
  code = errno;
  (void)closedir(dir);
  return leave(&p, code);
}

static int below_make_folder(void *context, const char *path) {
  Place p;
  const int code = find(context, path, &p);
  return code ? code : leave(&p, mkdirat(p.folder, p.name, 0777) != 0 ? errno : 0);
}

static int below_remove(void *context, const char *path) {
  Place p;
  struct stat st;
  const int code = find(context, path, &p);
  if (code) return code;
  if (fstatat(p.folder, p.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) return leave(&p, EISDIR);
  return leave(&p, unlinkat(p.folder, p.name, 0) != 0 ? errno : 0); /* of a link the link */
}

WeftStatus weft_files_below(const char *folder, const WeftFiles **out) {
  if (!folder || !out) return WEFT_MISUSE;
  *out = NULL;
  const int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return WEFT_ERROR;
  Below *b = malloc(sizeof *b);
  if (!b) {
    (void)close(root);
    errno = ENOMEM;
    return WEFT_ERROR;
  }
  *b = (Below){.files = {sizeof b->files, b, below_open, below_read, below_close, below_write, below_about, below_list,
                         below_make_folder, below_remove}, .root = root};
  *out = &b->files;
  return WEFT_OK;
}

void weft_files_free(const WeftFiles *below) {
  if (!below) return;
  Below *b = below->context;
  (void)close(b->root);
  free(b);
}

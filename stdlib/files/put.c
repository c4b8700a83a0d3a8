/* put.c — bytes put at a path, without harm to what stands there (see file_put in stdlib.h).
 *
 *   what stands at the path             what is done
 *   nothing, or a link to nothing       a temporary beside it gets the bytes, then its name
 *   a regular file of one name          the same; mode and owner are the old file's
 *   a file of several names, one with   written in place, after the room on the disk is reserved
 *   attributes, one that cannot be
 *   replaced (its folder is read-only)
 *   a pipe, a device                    the bytes are written to it
 *   where standard output or error go   the bytes go there, behind what was printed
 */
#define _GNU_SOURCE /* fallocate */
#include "stdlib/stdlib.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

enum { CANNOT = -2, LINKS_MOST = 40, NAMES_TRIED = 1000, WRITE_MOST = 1 << 22, WAIT_MS = 20 };

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* 0, or FILE_STOPPED with the error in the VM. */
static int go_on(Vm *vm) { return vm && vm_poll(vm, 0) != WEFT_OK ? FILE_STOPPED : 0; }

/* at: from there in a regular file; below 0: where the descriptor stands. *done counts what was written. */
static int write_all(Vm *vm, int fd, const char *data, size_t len, i64 at, size_t *done) {
  for (*done = 0; *done < len;) {
    size_t part = len - *done < WRITE_MOST ? len - *done : WRITE_MOST;
    ssize_t n = at < 0 ? write(fd, data + *done, part) : pwrite(fd, data + *done, part, at + (i64)*done);
    if (n > 0) {
      *done += (size_t)n;
      if (at < 0 && *done < len && go_on(vm)) return FILE_STOPPED;
      continue;
    }
    if (n < 0 && errno != EINTR && errno != EAGAIN) return errno;
    if (n == 0) return EIO;
    if (errno == EAGAIN) (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, WAIT_MS);
    if (at < 0 && go_on(vm)) return FILE_STOPPED; /* a file is not left half written */
  }
  return 0;
}

static int close_file(int fd, int code) { return close(fd) != 0 && errno != EINTR && !code ? errno : code; }

/* A file whose new contents may not fit the disk keeps the old ones. */
static int write_in_place(int fd, const char *data, size_t len) {
  size_t done;
  struct rlimit most;
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && len > most.rlim_cur) return EFBIG;
#ifdef __linux__
  struct stat st;
  int reserved = 0;
  if (len && fstat(fd, &st) == 0)
    do reserved = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)len);
    while (reserved != 0 && errno == EINTR);
  if (reserved != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    int code = errno;
    return ftruncate(fd, st.st_size) == 0 ? code : errno; /* gives back what was reserved in part */
  }
#endif
  int code = write_all(NULL, fd, data, len, 0, &done);
  return !code && ftruncate(fd, (off_t)len) != 0 ? errno : code;
}

/* ---- replacing ----------------------------------------------------------------------------------------------- */

/* Where a path leads once the links at its end are followed, to be freed; it need not be there. */
static int follow(const char *path, char **out) {
  char *at = strdup(path);
  struct stat st;
  for (u32 links = 0; at && lstat(at, &st) == 0 && S_ISLNK(st.st_mode); links++) {
    char to[4096];
    ssize_t n = links < LINKS_MOST ? readlink(at, to, sizeof to) : -1;
    if (n < 0 || n == sizeof to) {
      int code = links == LINKS_MOST ? ELOOP : n < 0 ? errno : ENAMETOOLONG;
      free(at);
      return code;
    }
    const char *slash = to[0] == '/' ? NULL : strrchr(at, '/');
    size_t folder = slash ? (size_t)(slash - at) + 1 : 0;
    char *next = malloc(folder + (size_t)n + 1);
    if (next) {
      memcpy(next, at, folder);
      memcpy(next + folder, to, (size_t)n);
      next[folder + (size_t)n] = 0;
    }
    free(at);
    at = next;
  }
  *out = at;
  return at ? 0 : ENOMEM;
}

/* A new file in the folder of `path`; *name is to be freed. Below 0: none can be made. */
static int open_temporary(const char *path, mode_t mode, char **name) {
  const char *slash = strrchr(path, '/');
  size_t folder = slash ? (size_t)(slash - path) + 1 : 0, room = folder + 48;
  int fd = -1;
  if (!(*name = malloc(room))) return -1;
  for (u32 i = 0; i < NAMES_TRIED; i++) {
    snprintf(*name, room, "%.*s.weft-%ld-%u.tmp", (int)folder, path, (long)getpid(), i);
    fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || (errno != EEXIST && errno != EINTR)) break;
  }
  if (fd < 0) free(*name);
  return fd;
}

/* old: of the file that is replaced; NULL: there is none. CANNOT: by no temporary; nothing has changed. */
static int replace(Vm *vm, const char *path, const struct stat *old, const char *data, size_t len) {
  char *name;
  size_t done;
  int fd = open_temporary(path, old ? 0600 : 0666, &name);
  if (fd < 0) return CANNOT;
  int code = 0;
  struct stat st;
  if (old && fstat(fd, &st) != 0) code = CANNOT;
  if (old && !code && (st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
      fchown(fd, old->st_uid, old->st_gid) != 0)
    code = CANNOT;
  if (old && !code && fchmod(fd, old->st_mode & 01777) != 0) code = CANNOT; /* a write takes set-user-id away, too */
  if (!code) code = write_all(vm, fd, data, len, -1, &done); /* ended: the old file stays */
  code = close_file(fd, code);
  if (!code && rename(name, path) != 0) code = CANNOT;
  if (code) (void)unlink(name);
  free(name);
  return code;
}

/* Access lists, labels: a new file would not have them. */
static bool has_attributes(int fd) {
#ifdef __linux__
  return flistxattr(fd, NULL, 0) > 0;
#else
  (void)fd;
  return false;
#endif
}

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int put_regular(Vm *vm, const char *path, const struct stat *st, const char *data, size_t len) {
  char *to;
  struct stat there;
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY); /* what may not be written is not replaced either */
  if (fd < 0) return errno;
  int code = CANNOT;
  if (st->st_nlink == 1 && !has_attributes(fd) && follow(path, &to) == 0) {
    if (lstat(to, &there) == 0 && same_file(st, &there)) code = replace(vm, to, st, data, len);
    free(to);
  }
  if (code == CANNOT) code = write_in_place(fd, data, len);
  return close_file(fd, code);
}

static int put_new(Vm *vm, const char *path, const char *data, size_t len) {
  char *to;
  int code = follow(path, &to);
  if (code) return code;
  code = replace(vm, to, NULL, data, len);
  if (code == CANNOT) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    code = fd < 0 ? errno : close_file(fd, write_in_place(fd, data, len));
    if (fd >= 0 && code) (void)unlink(to);
  }
  free(to);
  return code;
}

/* ---- what is no regular file --------------------------------------------------------------------------------- */

/* A pipe is waited for until somebody reads it. */
static int put_through(Vm *vm, const char *path, const struct stat *st, const char *data, size_t len) {
  size_t done;
  int fd;
  while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) < 0) {
    if (errno != EINTR && !(errno == ENXIO && S_ISFIFO(st->st_mode))) return errno;
    if (errno == ENXIO) (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (go_on(vm)) return FILE_STOPPED;
  }
  return close_file(fd, write_all(vm, fd, data, len, -1, &done));
}

/* The descriptor of the standard output or error that leads to this file; below 0: none. */
static int standard(const struct stat *st) {
  struct stat out;
  for (int fd = 1; fd <= 2; fd++) {
    int how = fcntl(fd, F_GETFL);
    if (how != -1 && (how & O_ACCMODE) != O_RDONLY && fstat(fd, &out) == 0 && same_file(st, &out)) return fd;
  }
  return -1;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static int put(Vm *vm, const char *path, const char *data, size_t len) {
  struct stat st;
  size_t done;
  if (stat(path, &st) != 0) return errno == ENOENT ? put_new(vm, path, data, len) : errno;
  if (S_ISDIR(st.st_mode)) return EISDIR;
  int fd = standard(&st);
  if (fd >= 0) {
    if (fd == 2 || !vm) (void)fflush(fd == 1 ? stdout : stderr);
    else if (vm_flush(vm) != WEFT_OK) return FILE_STOPPED; /* what was printed before comes before */
    return write_all(vm, fd, data, len, -1, &done);
  }
  return S_ISREG(st.st_mode) ? put_regular(vm, path, &st, data, len) : put_through(vm, path, &st, data, len);
}

/* A pipe that nobody reads any more, and a file beyond the limit of the process, are errors and no signals. */
int file_put(Vm *vm, const char *path, const char *data, size_t len) {
  sigset_t raised, before, pending;
  sigemptyset(&raised);
  sigemptyset(&pending);
  sigaddset(&raised, SIGPIPE);
  sigaddset(&raised, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &raised, &before);
  (void)sigpending(&pending);
  if (sigismember(&pending, SIGPIPE)) sigdelset(&raised, SIGPIPE);
  if (sigismember(&pending, SIGXFSZ)) sigdelset(&raised, SIGXFSZ);
  int code = put(vm, path, data, len);
  while (sigtimedwait(&raised, NULL, &(struct timespec){0}) > 0) continue;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}

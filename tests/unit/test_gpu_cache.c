/* test_gpu_cache.c — compiled kernels in files: what is broken, another's or too much is not there, and nothing else
 * happens. What processes do with one another's entries: tests/tools/cli.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/code_cache.h"

static char folder[256];

static int make_folder(void **state) {
  (void)state;
  const char *around = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/weft-cache-XXXXXX", around && *around ? around : "/tmp");
  return mkdtemp(folder) ? 0 : -1;
}

static int end_folder(void **state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static void keep(CodeCache *c, const char *text, const char *code) {
  code_cache_keep(c, allocator_system(), text, strlen(text), code, strlen(code));
}

/* The code of a text is this one; NULL: there is none. */
static bool has(CodeCache *c, const char *text, const char *code) {
  void *found;
  size_t bytes;
  if (!code_cache_find(c, allocator_system(), text, strlen(text), &found, &bytes)) return !code;
  bool same = code && bytes == strlen(code) && memcmp(found, code, bytes) == 0;
  mem_free(allocator_system(), found, bytes);
  return same;
}

/* The one file of the folder whose name ends so; how many there are. */
static int find_file(const char *ending, char *path, size_t room) {
  DIR *d = opendir(folder);
  int count = 0;
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d));) {
    size_t length = strlen(e->d_name), end = strlen(ending);
    if (e->d_name[0] == '.' || length < end || strcmp(e->d_name + length - end, ending) != 0) continue;
    snprintf(path, room, "%s/%s", folder, e->d_name);
    count++;
  }
  closedir(d);
  return count;
}

static size_t read_file(const char *path, char *to, size_t room) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  size_t n = fread(to, 1, room, f);
  fclose(f);
  return n;
}

static void write_file(const char *path, const char *from, size_t bytes) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(from, 1, bytes, f), bytes);
  fclose(f);
}

static void entries_come_back(void **state) {
  (void)state;
  CodeCache one, two;
  code_cache_init(&one, folder, CODE_CACHE_MOST);
  assert_true(has(&one, "text", NULL));
  keep(&one, "text", "code");
  keep(&one, "other", "else");
  code_cache_init(&two, folder, CODE_CACHE_MOST); /* as another process */
  assert_true(has(&two, "text", "code"));
  assert_true(has(&two, "other", "else"));
  assert_true(has(&two, "tex", NULL));
  keep(&two, "text", "newer");
  assert_true(has(&one, "text", "newer"));
  code_cache_drop(&one, "text", 4);
  assert_true(has(&two, "text", NULL));
}

/* Each byte of an entry changed, each length that is too short, and a byte too many. */
static void broken_entries_are_not_there(void **state) {
  (void)state;
  CodeCache c;
  char path[512], whole[256], broken[256];
  code_cache_init(&c, folder, CODE_CACHE_MOST);
  keep(&c, "a text", "some code");
  assert_int_equal(find_file(".cubin", path, sizeof path), 1);
  size_t length = read_file(path, whole, sizeof whole);
  assert_int_equal(length, 32 + 6 + 9);
  for (size_t i = 0; i < length; i++) {
    memcpy(broken, whole, length);
    broken[i] ^= 16;
    write_file(path, broken, length);
    assert_true(has(&c, "a text", NULL));
    write_file(path, whole, i);
    assert_true(has(&c, "a text", NULL));
  }
  memcpy(broken, whole, length);
  broken[length] = 0;
  write_file(path, broken, length + 1);
  assert_true(has(&c, "a text", NULL));
  keep(&c, "a text", "some code"); /* takes its place */
  assert_true(has(&c, "a text", "some code"));
}

/* What is no file of this user's; and the entry of another text, as if their checksums were the same. */
static void foreign_entries_are_not_there(void **state) {
  (void)state;
  CodeCache c;
  char path[512], other[512], whole[256];
  code_cache_init(&c, folder, CODE_CACHE_MOST);
  keep(&c, "other", "else");
  assert_int_equal(find_file(".cubin", other, sizeof other), 1);
  size_t length = read_file(other, whole, sizeof whole);
  unlink(other);
  keep(&c, "texts", "code");
  assert_int_equal(find_file(".cubin", path, sizeof path), 1);
  write_file(path, whole, length);
  assert_true(has(&c, "texts", NULL));
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_true(has(&c, "texts", NULL)); /* and does not wait for who writes */
  keep(&c, "texts", "code");
  assert_true(has(&c, "texts", "code"));
  length = read_file(path, whole, sizeof whole);
  snprintf(other, sizeof other, "%s/elsewhere", folder);
  write_file(other, whole, length);
  unlink(path);
  assert_int_equal(symlink(other, path), 0);
  assert_true(has(&c, "texts", NULL));
  unlink(path);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_true(has(&c, "texts", NULL));
  keep(&c, "texts", "code"); /* cannot take its place */
  assert_true(has(&c, "texts", NULL));
  assert_int_equal(find_file("", other, sizeof other), 2); /* nothing half written is left */
}

static void folders_are_made_or_left_alone(void **state) {
  (void)state;
  CodeCache c;
  char inner[300], file[512];
  snprintf(inner, sizeof inner, "%s/a/b", folder);
  code_cache_init(&c, inner, CODE_CACHE_MOST);
  keep(&c, "text", "code");
  assert_true(has(&c, "text", "code"));
  chmod(inner, 0777); /* others may write there */
  code_cache_init(&c, inner, CODE_CACHE_MOST);
  assert_true(has(&c, "text", NULL));
  chmod(inner, 0700);
  snprintf(file, sizeof file, "%s/file", folder);
  write_file(file, "x", 1);
  const char *const none[] = {NULL, "", file, "/proc/nowhere/weft"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    code_cache_init(&c, none[i], CODE_CACHE_MOST);
    keep(&c, "text", "code");
    assert_true(has(&c, "text", NULL));
    code_cache_drop(&c, "text", 4);
  }
  assert_int_equal(read_file(file, inner, sizeof inner), 1);
}

/* What was used last stays, and so does what is no entry. */
static void the_oldest_go(void **state) {
  (void)state;
  enum { MOST = 10000, EACH = 1000, COUNT = 30 };
  CodeCache c;
  char code[EACH + 1], text[COUNT][8], file[512], path[512];
  memset(code, 'x', EACH);
  code[EACH] = 0;
  snprintf(file, sizeof file, "%s/my.cubin", folder);
  write_file(file, code, EACH);
  snprintf(file, sizeof file, "%s/weft-new-abcdef", folder);
  write_file(file, code, EACH);
  struct timespec long_ago[2] = {{1000000, 0}, {1000000, 0}};
  assert_int_equal(utimensat(AT_FDCWD, file, long_ago, 0), 0);
  code_cache_init(&c, folder, MOST);
  for (int i = 0; i < COUNT; i++) {
    snprintf(text[i], sizeof text[i], "%d", i);
    keep(&c, text[i], code);
    assert_true(has(&c, text[i], code));
    assert_true(has(&c, text[0], code)); /* used again and again */
    usleep(5000); /* longer than the tick that dates files */
  }
  int count = find_file(".cubin", path, sizeof path) - 1;
  assert_in_range(count, MOST / 4 * 3 / (EACH + 100), MOST / EACH);
  assert_true(has(&c, text[COUNT - 1], code));
  assert_true(has(&c, text[0], code));
  assert_true(has(&c, text[1], NULL));
  assert_int_equal(access(file, F_OK), -1); /* half written, and long ago */
  snprintf(file, sizeof file, "%s/my.cubin", folder);
  assert_int_equal(access(file, F_OK), 0);
  char large[MOST + 1];
  memset(large, 'x', MOST);
  large[MOST] = 0;
  keep(&c, "large", large);
  assert_true(has(&c, "large", NULL));
}

static void *refuse(Allocator *self, void *p, size_t old_size, size_t new_size) {
  (void)self;
  (void)old_size;
  if (new_size) return NULL;
  free(p);
  return NULL;
}

static void refused_memory_is_no_entry(void **state) {
  (void)state;
  CodeCache c;
  Allocator none = {refuse};
  void *code;
  size_t bytes;
  code_cache_init(&c, folder, 100);
  for (int i = 0; i < 3; i++) code_cache_keep(&c, &none, i ? "text" : "more", 4, "code", 4);
  assert_false(code_cache_find(&c, &none, "text", 4, &code, &bytes));
  assert_true(has(&c, "text", "code"));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, end_folder)
  const struct CMUnitTest tests[] = {
    IN_FOLDER(entries_come_back), IN_FOLDER(broken_entries_are_not_there), IN_FOLDER(foreign_entries_are_not_there),
    IN_FOLDER(folders_are_made_or_left_alone), IN_FOLDER(the_oldest_go), IN_FOLDER(refused_memory_is_no_entry),
  };
  return cmocka_run_group_tests_name("gpu_cache", tests, NULL, NULL);
}

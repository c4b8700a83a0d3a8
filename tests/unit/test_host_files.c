/* test_host_files.c — files of the host in place of the system's: in memory, and below a folder that nothing leaves. */
#define _GNU_SOURCE /* mkdtemp, nftw */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/weft.h"

static void gives(WeftVM *vm, const char *program, const char *want) { /* programs.h has a `stat` of its own */
  WeftValue *v = NULL;
  if (weft_eval(vm, program, "test", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  assert_string_equal(weft_show(vm, v), want);
  weft_release(vm, v);
}

static void raises(WeftVM *vm, const char *program, const char *kind, const char *part) {
  assert_int_equal(weft_eval(vm, program, "test", NULL), WEFT_ERROR);
  if (strcmp(weft_error_kind(vm), kind) != 0 || !strstr(weft_error_message(vm), part))
    fail_msg("%s: %s", program, weft_error_text(vm));
}

/* ---- files in memory -------------------------------------------------------------------------------------------- */

enum { ENTRIES = 8, ENTRY_BYTES = 1 << 16 };
typedef struct Entry {
  char name[64], data[ENTRY_BYTES];
  size_t bytes;
  bool used, folder;
} Entry;
typedef struct Memory {
  Entry at[ENTRIES];
  int open, fails; /* descriptors; what every function gives, unless 0 */
  WeftVM *vm;      /* raises an error in it, unless NULL */
} Memory;
static Memory memory;

static Entry *entry_of(Memory *m, const char *path) {
  for (int i = 0; i < ENTRIES; i++)
    if (m->at[i].used && strcmp(m->at[i].name, path) == 0) return &m->at[i];
  return NULL;
}

static int failure(const Memory *m) {
  if (m->vm) (void)weft_fail(m->vm, "value", "the archive is damaged");
  return m->fails;
}

static int mem_open(void *context, const char *path, void **file) {
  Memory *m = context;
  if (failure(m)) return m->fails;
  if (!(*file = entry_of(m, path))) return ENOENT;
  m->open++;
  return 0;
}

static ptrdiff_t mem_read(void *context, void *file, uint64_t at, char *to, size_t room) {
  const Memory *m = context;
  const Entry *e = file;
  if (m->fails == -1) return (ptrdiff_t)room + 1; /* more than there is room for */
  if (at >= e->bytes) return 0;
  size_t n = e->bytes - (size_t)at < room ? e->bytes - (size_t)at : room;
  if (n > 7) n = 7; /* in small pieces */
  memcpy(to, e->data + at, n);
  return (ptrdiff_t)n;
}

static void mem_close(void *context, void *file) {
  (void)file;
  ((Memory *)context)->open--;
}

static Entry *new_entry(Memory *m, const char *path) {
  for (int i = 0; i < ENTRIES; i++)
    if (!m->at[i].used) {
      m->at[i] = (Entry){.used = true};
      snprintf(m->at[i].name, sizeof m->at[i].name, "%s", path);
      return &m->at[i];
    }
  return NULL;
}

static int mem_write(void *context, const char *path, const char *data, size_t bytes, bool append) {
  Memory *m = context;
  if (failure(m)) return m->fails;
  Entry *e = entry_of(m, path);
  if (!e) e = new_entry(m, path);
  if (!e) return ENOSPC;
  if (e->folder) return EISDIR;
  const size_t from = append ? e->bytes : 0;
  if (from + bytes > ENTRY_BYTES) return ENOSPC;
  memcpy(e->data + from, data, bytes);
  e->bytes = from + bytes;
  return 0;
}

static int mem_about(void *context, const char *path, uint64_t *bytes, bool *folder) {
  Memory *m = context;
  if (failure(m)) return m->fails;
  const Entry *e = entry_of(m, path);
  if (!e) return ENOENT;
  *bytes = e->bytes;
  *folder = e->folder;
  return 0;
}

static int mem_list(void *context, const char *path, void (*give)(void *to, const char *name), void *to) {
  Memory *m = context;
  if (failure(m)) return m->fails;
  if (strcmp(path, ".") != 0) return ENOENT;
  for (int i = ENTRIES; i-- > 0;)
    if (m->at[i].used) give(to, m->at[i].name);
  return 0;
}

static int mem_make_folder(void *context, const char *path) {
  Memory *m = context;
  if (failure(m)) return m->fails;
  if (entry_of(m, path)) return EEXIST;
  Entry *e = new_entry(m, path);
  if (!e) return ENOSPC;
  e->folder = true;
  return 0;
}

static int mem_remove(void *context, const char *path) {
  Memory *m = context;
  if (failure(m)) return m->fails;
  Entry *e = entry_of(m, path);
  if (!e) return ENOENT;
  e->used = false;
  return 0;
}

static const WeftFiles in_memory = {sizeof in_memory, &memory,   mem_open, mem_read,        mem_close,
                                    mem_write,        mem_about, mem_list, mem_make_folder, mem_remove};

static WeftVM *vm_with(const WeftFiles *files, bool imports) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.files = files;
  o.allow_imports = imports;
  o.hot = 1;
  memset(&memory, 0, sizeof memory);
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  return vm;
}

/* Everything that reads and writes files, whatever the files are. */
static void all_operations(WeftVM *vm) {
  gives(vm, "write_text(\"a.txt\", \"one\\ntwo\\n\"); append_text(\"a.txt\", \"three\"); read_text(\"a.txt\")",
        "\"one\\ntwo\\nthree\"");
  gives(vm, "let seen = (); for s in lines(\"a.txt\") { seen += (s,) }; seen", "(\"one\", \"two\", \"three\")");
  gives(vm, "(exists(\"a.txt\"), exists(\"b.txt\"), file_size(\"a.txt\"))", "(true, false, 13)");
  gives(vm, "save_npy(\"x.npy\", arange(2000.0)); sum(load_npy(\"x.npy\"))", "1999000.0");
  gives(vm, "sum(load_npy(\"x.npy\", map=true))", "1999000.0");
  gives(vm, "save_npz(\"x.npz\", {a: [1, 2], b: [3.5]}); load_npz(\"x.npz\").b", "[3.5]");
  gives(vm, "save_csv(\"t.csv\", {a: [1, 2], b: [3.5, 4.5]}); load_csv(\"t.csv\").b", "[3.5, 4.5]");
  gives(vm, "list_dir()", "(\"a.txt\", \"t.csv\", \"x.npy\", \"x.npz\")");
  gives(vm, "for n in (\"t.csv\", \"x.npy\", \"x.npz\") { remove_file(n) }; make_dir(\"d\"); make_dir(\"d\")", "nil");
  gives(vm, "list_dir(\".\")", "(\"a.txt\", \"d\")");
  gives(vm, "(exists(\"d\"), script_dir())", "(true, \".\")");
  raises(vm, "read_text(\"none\")", "io", "cannot read \"none\": No such file");
  raises(vm, "remove_file(\"none\")", "io", "No such file");
  raises(vm, "lines(\"none\")", "io", "No such file");
  raises(vm, "list_dir(\"none\")", "io", "No such file");
  raises(vm, "file_size(\"d\")", "io", "no regular file");
  raises(vm, "write_text(\"d\", \"\")", "io", "Is a directory");
  raises(vm, "make_dir(\"a.txt\")", "io", "Not a directory");
  raises(vm, "read_line()", "limit", "does not allow");
}

static const char *const each[] = {"read_text(\"a.txt\")", "write_text(\"a.txt\", \"\")", "lines(\"a.txt\")",
                                   "append_text(\"a.txt\", \"\")", "exists(\"a.txt\")", "file_size(\"a.txt\")",
                                   "list_dir()", "make_dir(\"q\")", "remove_file(\"a.txt\")", "load_csv(\"a.txt\")"};

static void files_in_memory(void **state) {
  (void)state;
  WeftVM *vm = vm_with(&in_memory, true);
  all_operations(vm);
  assert_int_equal(memory.open, 0);
  gives(vm, "write_text(\"m.weft\", \"fn two() = 2\"); 1", "1");
  gives(vm, "import \"m.weft\" as m\nm.two()", "2");
  raises(vm, "import \"none.weft\" as n", "io", "No such file");
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    memory.fails = EIO;
    raises(vm, each[i], "io", "Input/output error");
    memory.vm = vm;
    raises(vm, each[i], "value", "the archive is damaged");
    memory.vm = NULL;
    memory.fails = 0;
  }
  gives(vm, "read_text(\"a.txt\")", "\"one\\ntwo\\nthree\"");
  weft_free(vm);
  assert_int_equal(memory.open, 0);
}

static void a_host_that_reads_too_much(void **state) {
  (void)state;
  WeftVM *vm = vm_with(&in_memory, false);
  WeftFiles f = in_memory;
  gives(vm, "write_text(\"a\", \"text\"); let l = lines(\"a\"); 1", "1");
  raises(vm, "import \"a\" as a", "io", "may not read modules");
  assert_int_equal(memory.open, 1);
  weft_free(vm);
  assert_int_equal(memory.open, 0);
  char why[200];
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.files = &f;
  f.size--;
  assert_int_equal(weft_open(&o, &vm, why, sizeof why), WEFT_MISUSE);
  assert_string_equal(why, "files is incomplete");
  f = in_memory;
  f.list = NULL;
  assert_int_equal(weft_open(&o, &vm, why, sizeof why), WEFT_MISUSE);
}

/* ---- below a folder ----------------------------------------------------------------------------------- */

static char folder[64];

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at) {
  (void)st, (void)kind, (void)at;
  return remove(path);
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/weft-files-XXXXXX");
  if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("in", 0755) != 0) return -1;
  FILE *f = fopen("secret", "w");
  return !f || fputs("secret", f) < 0 || fclose(f) != 0;
}

static int drop_folder(void **state) {
  (void)state;
  return chdir("/") != 0 || nftw(folder, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static void files_below_a_folder(void **state) {
  (void)state;
  const WeftFiles *files = NULL;
  assert_int_equal(weft_files_below("in", &files), WEFT_OK);
  WeftVM *vm = vm_with(files, false);
  all_operations(vm);
  gives(vm, "make_dir(\"p/q/\"); write_text(\"p//q/./f\", \"deep\"); (read_text(\"./p/q/f\"), list_dir(\"p/q\"))",
        "(\"deep\", (\"f\",))");
  assert_int_equal(access("in/p/q/f", R_OK), 0);
  raises(vm, "list_dir(\"p/q/f\")", "io", "Not a directory");
  raises(vm, "read_text(\"p\")", "io", "Is a directory");
  raises(vm, "remove_file(\"p\")", "io", "Is a directory");
  weft_free(vm);
  weft_files_free(files);
}

static void nothing_leaves_the_folder(void **state) {
  (void)state;
  const WeftFiles *files = NULL;
  char program[300];
  assert_int_equal(symlink("../secret", "in/link"), 0);
  assert_int_equal(symlink("..", "in/up"), 0);
  assert_int_equal(symlink("nowhere", "in/dangling"), 0);
  assert_int_equal(symlink("p", "in/inner"), 0); /* within the folder: refused like any other */
  assert_int_equal(mkfifo("in/pipe", 0644), 0);
  assert_int_equal(weft_files_below("in", &files), WEFT_OK);
  WeftVM *vm = vm_with(files, false);
  static const char *const paths[] = {"../secret", "/etc/passwd", "/", "..", "up/secret", "p/../../secret", "link",
                                      "./link", "inner/q/f", "p/..", "pipe", "dangling", "up"};
  static const char *const programs[] = {"read_text(\"%s\")", "lines(\"%s\")", "write_text(\"%s\", \"x\")",
                                         "append_text(\"%s\", \"x\")", "load_csv(\"%s\")", "exists(\"%s\")",
                                         "file_size(\"%s\")", "list_dir(\"%s\")", "load_npy(\"%s\", map=true)"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
      if (strcmp(paths[i], "pipe") == 0 && strncmp(programs[k], "list", 4) == 0) continue; /* "Not a directory" */
      snprintf(program, sizeof program, programs[k], paths[i]);
      raises(vm, program, "io", "Permission denied");
    }
  raises(vm, "make_dir(\"up/new\")", "io", "Permission denied");
  raises(vm, "make_dir(\"../new\")", "io", "Permission denied");
  raises(vm, "remove_file(\"../secret\")", "io", "Permission denied");
  raises(vm, "remove_file(\"up/secret\")", "io", "Permission denied");
  gives(vm, "remove_file(\"link\"); list_dir()",
        "(\"a.txt\", \"d\", \"dangling\", \"inner\", \"p\", \"pipe\", \"up\")");
  assert_int_equal(access("secret", R_OK), 0);
  assert_int_equal(access("nowhere", F_OK), -1);
  assert_int_equal(access("in/nowhere", F_OK), -1);
  /* the folder is held by what it is, not by its name */
  assert_int_equal(rename("in", "moved"), 0);
  gives(vm, "read_text(\"p/q/f\")", "\"deep\"");
  assert_int_equal(rename("moved", "in"), 0);
  weft_free(vm);
  weft_files_free(files);
}

/* ---- refused memory ------------------------------------------------------------------------------------- */

static long refuse_at, allocations, held; /* the allocation that is refused (0: none), how many came, bytes */
static void *counted(void *context, void *p, size_t old_size, size_t new_size) {
  (void)context;
  if (new_size > old_size && ++allocations == refuse_at) return NULL;
  held += (long)new_size - (long)old_size;
  if (new_size) return realloc(p, new_size);
  free(p);
  return NULL;
}

/* Every third allocation of a program that reads and writes is refused once. It ends with its value, or with one error
 * of kind "limit"; files are what they were, or what they were to be; nothing stays open, no byte is lost. */
static void refused(const WeftFiles *files) {
  static const char before[] = "write_text(\"a.txt\", \"one\\ntwo\")",
                    program[] = "write_text(\"a.txt\", \"first\\nsecond\\nthird\")\nlet n = 0\n"
                                "for l in lines(\"a.txt\") { n += len(l) }\nappend_text(\"a.txt\", \"!\")\n"
                                "save_csv(\"t.csv\", {a: [1, 2]})\nsave_npy(\"x.npy\", arange(3.0))\nmake_dir(\"q\")\n"
                                "let r = (n, sum(load_csv(\"t.csv\").a), sum(load_npy(\"x.npy\")), len(list_dir()), "
                                "file_size(\"a.txt\"), exists(\"q\"), read_text(\"a.txt\"))\nremove_file(\"t.csv\")\nr",
                    *const texts[] = {"\"one\\ntwo\"", "\"first\\nsecond\\nthird\"", "\"first\\nsecond\\nthird!\""};
  long last = 0, failed = 0, done = 0;
  for (long n = 0; n <= last; n += n ? 3 : 1) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.files = files;
    o.resize = counted;
    refuse_at = held = 0;
    WeftVM *vm = weft_new(&o);
    assert_non_null(vm);
    gives(vm, before, "nil");
    gives(vm, "for f in list_dir() { if f == \"t.csv\" or f == \"x.npy\" { remove_file(f) } }", "nil");
    allocations = 0;
    refuse_at = n;
    WeftValue *v = NULL;
    WeftStatus status = weft_eval(vm, program, "test", &v);
    if (n == 0) last = allocations;
    refuse_at = 0;
    if (status == WEFT_OK) {
      const char *end = ", 19, true, \"first\\nsecond\\nthird!\")";
      assert_non_null(strstr(weft_show(vm, v), "(16, 3, 3.0, "));
      assert_non_null(strstr(weft_show(vm, v), end));
      weft_release(vm, v);
      done++;
    } else {
      if (strcmp(weft_error_kind(vm), "limit") != 0) fail_msg("allocation %ld: %s", n, weft_error_text(vm));
      failed++;
    }
    assert_int_equal(weft_eval(vm, "read_text(\"a.txt\")", "test", &v), WEFT_OK);
    const char *text = weft_show(vm, v);
    if (strcmp(text, texts[0]) != 0 && strcmp(text, texts[1]) != 0 && strcmp(text, texts[2]) != 0)
      fail_msg("allocation %ld left %s", n, text);
    weft_release(vm, v);
    weft_free(vm);
    assert_int_equal(memory.open, 0);
    assert_int_equal(held, 0);
  }
  assert_true(last > 30 && failed > 10 && done > 0);
}

static void refused_memory_loses_nothing(void **state) {
  (void)state;
  const WeftFiles *files = NULL;
  memset(&memory, 0, sizeof memory);
  refused(&in_memory);
  assert_int_equal(mkdir("refused", 0755), 0);
  assert_int_equal(weft_files_below("refused", &files), WEFT_OK);
  refused(files);
  weft_files_free(files);
}

static void a_folder_that_is_none(void **state) {
  (void)state;
  const WeftFiles *files = NULL;
  errno = 0;
  assert_int_equal(weft_files_below("none", &files), WEFT_ERROR);
  assert_int_equal(errno, ENOENT);
  assert_int_equal(weft_files_below("secret", &files), WEFT_ERROR);
  assert_int_equal(errno, ENOTDIR);
  assert_int_equal(weft_files_below(NULL, &files), WEFT_MISUSE);
  assert_int_equal(weft_files_below("in", NULL), WEFT_MISUSE);
  weft_files_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_in_memory),
      cmocka_unit_test(a_host_that_reads_too_much),
      cmocka_unit_test(files_below_a_folder),
      cmocka_unit_test(nothing_leaves_the_folder),
      cmocka_unit_test(refused_memory_loses_nothing),
      cmocka_unit_test(a_folder_that_is_none),
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

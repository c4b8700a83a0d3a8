/* archive.c — a host whose programs see files that lie in no folder, and functions with names, defaults and help.
 * Build it with: cc archive.c $(pkg-config --cflags --libs weft) -o archive */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

static int failed;

static void expect(int ok, const char *what) {
  printf("%s archive/%s\n", ok ? "ok" : "not ok", what);
  failed += !ok;
}

/* ---- files: a few entries with a name and bytes; there are no folders -------------------------------------- */

enum { ENTRIES = 8 };
typedef struct Entry {
  char name[32], *data;
  size_t bytes;
} Entry;
typedef struct Archive {
  Entry entries[ENTRIES];
  int open; /* files that programs read at present */
} Archive;

static Entry *find(Archive *a, const char *name) {
  for (int i = 0; i < ENTRIES; i++)
    if (a->entries[i].data && strcmp(a->entries[i].name, name) == 0) return &a->entries[i];
  return NULL;
}

static int open_entry(void *context, const char *path, void **file) {
  Archive *a = context;
  if (!(*file = find(a, path))) return ENOENT;
  a->open++;
  return 0;
}

static ptrdiff_t read_entry(void *context, void *file, uint64_t at, char *to, size_t room) {
  const Entry *e = file;
  (void)context;
  if (at >= e->bytes) return 0;
  const size_t left = e->bytes - (size_t)at, n = left < room ? left : room;
  memcpy(to, e->data + at, n);
  return (ptrdiff_t)n;
}

static void close_entry(void *context, void *file) {
  (void)file;
  ((Archive *)context)->open--;
}

/* The old bytes go when the new ones are there: what cannot be written loses nothing. */
static int write_entry(void *context, const char *path, const char *data, size_t bytes, bool append) {
  Archive *a = context;
  Entry *e = find(a, path);
  const size_t before = e && append ? e->bytes : 0;
  for (int i = 0; i < ENTRIES && !e; i++)
    if (!a->entries[i].data) e = &a->entries[i];
  if (!e) return ENOSPC;
  if (a->open) return EBUSY; /* it may be this one that is read */
  if (strlen(path) >= sizeof e->name) return ENAMETOOLONG;
  char *whole = malloc(before + bytes + 1);
  if (!whole) return ENOMEM;
  if (before) memcpy(whole, e->data, before);
  if (bytes) memcpy(whole + before, data, bytes);
  free(e->data);
  strcpy(e->name, path);
  e->data = whole;
  e->bytes = before + bytes;
  return 0;
}

static int about_entry(void *context, const char *path, uint64_t *bytes, bool *folder) {
  const Entry *e = find(context, path);
  *folder = strcmp(path, ".") == 0;
  *bytes = e ? e->bytes : 0;
  return e || *folder ? 0 : ENOENT;
}

static int list_entries(void *context, const char *path, void (*give)(void *to, const char *name), void *to) {
  Archive *a = context;
  if (strcmp(path, ".") != 0) return find(a, path) ? ENOTDIR : ENOENT;
  for (int i = 0; i < ENTRIES; i++)
    if (a->entries[i].data) give(to, a->entries[i].name);
  return 0;
}

static int no_folders(void *context, const char *path) {
  (void)context, (void)path;
  return EPERM;
}

static int remove_entry(void *context, const char *path) {
  Archive *a = context;
  Entry *e = find(a, path);
  if (!e) return ENOENT;
  if (a->open) return EBUSY;
  free(e->data);
  e->data = NULL;
  return 0;
}

/* ---- a function with a signature --------------------------------------------------------------------------- */

/* All arguments are there, in the order of the signature: (x, width, scale). */
static WeftStatus smooth(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  WeftArray x;
  int64_t width;
  double scale;
  (void)context, (void)count;
  if (weft_array_view(vm, args[0], &x) != WEFT_OK || weft_as_int(vm, args[1], &width) != WEFT_OK ||
      weft_as_float(vm, args[2], &scale) != WEFT_OK)
    return WEFT_ERROR;
  if (x.rank != 1 || x.dtype != WEFT_F64) return weft_fail(vm, "type", "smooth: x must be f64 of rank 1");
  if (width < 1) return weft_fail(vm, "value", "smooth: width must be 1 or more");
  double *y = malloc(sizeof *y * ((size_t)x.size + 1));
  if (!y) return weft_fail(vm, "limit", "smooth: out of memory");
  for (int64_t i = 0; i < x.size; i++) {
    const int64_t from = i + 1 < width ? 0 : i + 1 - width;
    y[i] = 0;
    for (int64_t k = from; k <= i; k++) y[i] += ((const double *)x.data)[k * x.strides[0]];
    y[i] *= scale / (double)(i + 1 - from);
  }
  WeftStatus status = weft_array(vm, WEFT_F64, 1, x.shape, y, result);
  free(y);
  return status;
}

/* ---- what programs see of it --------------------------------------------------------------------------------- */

static int gives(WeftVM *vm, const char *program, const char *want) {
  WeftValue *v = NULL;
  int same = weft_eval(vm, program, "host", &v) == WEFT_OK && strcmp(weft_show(vm, v), want) == 0;
  if (!same) printf("# %s: %s\n", program, v ? weft_show(vm, v) : weft_error_message(vm));
  weft_release(vm, v);
  return same;
}

static int raises(WeftVM *vm, const char *program, const char *part) {
  int same = weft_eval(vm, program, "host", NULL) == WEFT_ERROR && strstr(weft_error_message(vm), part);
  if (!same) printf("# %s: %s\n", program, weft_error_message(vm));
  return same;
}

static void print_nothing(void *context, const char *text, size_t length) {
  char *said = context;
  const size_t used = strlen(said);
  if (used + length < 512) memcpy(said + used, text, length), said[used + length] = 0;
}

int main(void) {
  Archive archive = {.open = 0};
  char said[512] = "";
  const WeftFiles files = {.size = sizeof files, .context = &archive, .open = open_entry, .read = read_entry,
                           .close = close_entry, .write = write_entry, .about = about_entry, .list = list_entries,
                           .make_folder = no_folders, .remove = remove_entry};
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.files = &files;
  options.output = print_nothing;
  options.output_context = said;
  WeftVM *vm = weft_new(&options);
  if (!vm) return 1;

  expect(gives(vm, "save_csv(\"t.csv\", {day: [1, 2, 3], heat: [4.0, 8.0, 6.0]})\nload_csv(\"t.csv\").heat",
               "[4.0, 8.0, 6.0]"), "tables-lie-in-it");
  expect(gives(vm, "let n = 0\nfor l in lines(\"t.csv\") { n += 1 }\n(n, list_dir())", "(4, (\"t.csv\",))"),
         "lines-are-read");
  expect(raises(vm, "read_text(\"/etc/passwd\")", "No such file"), "nothing-else-is-there");
  expect(raises(vm, "make_dir(\"d\")", "not permitted"), "its-errors-are-those-of-the-program");

  expect(weft_define_described(vm, "smooth(x, width=2, scale=1.0)", "Means of the last `width` items, times `scale`.",
                               smooth, NULL, NULL) == WEFT_OK, "a-function-with-a-signature");
  expect(gives(vm, "smooth(load_csv(\"t.csv\").heat)", "[4.0, 6.0, 7.0]"), "defaults");
  expect(gives(vm, "smooth([1.0, 3.0], scale=10)", "[10.0, 20.0]"), "arguments-by-name");
  expect(raises(vm, "smooth([1.0], widht=1)", "width"), "a-slip-is-told");
  expect(raises(vm, "smooth([1.0], 0)", "width must be 1 or more"), "the-function's-own-errors");
  expect(gives(vm, "help(smooth)", "nil") && strstr(said, "smooth(x, width=2, scale=1.0)") &&
         strstr(said, "Means of the last"), "help");
  weft_free(vm);
  expect(archive.open == 0, "nothing-stays-open");
  for (int i = 0; i < ENTRIES; i++) free(archive.entries[i].data);
  return failed != 0;
}

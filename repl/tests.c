/* tests.c — what a program says of itself: its tests, and its documentation (see tests.h, docs/prompt.md). */
#define _GNU_SOURCE /* asprintf */
#include "repl/tests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repl/colours.h"
#include "repl/output.h"
#include "repl/program.h"

enum { STATUS_USAGE = 2 };

/* False, said: it cannot be read. p->text is to be freed in any case. */
static bool load(const char *file, Program *p) {
  *p = (Program){.name = file};
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  int code = read_program(fd, p);
  if (fd >= 0) close(fd);
  if (code) fprintf(stderr, "weft: cannot read \"%s\": %s\n", file, strerror(code));
  return code == 0;
}

/* ---- examples ------------------------------------------------------------------------------------------ */

/* An example in `##` lines: `> code`, further lines of it `... `, then what it shows, up to an empty line, another
 * example or the end. */
typedef struct Example {
  char *code, *wanted;
  int line; /* of the file, from 1 */
} Example;

static bool add_line(char **text, const char *line, size_t n) {
  size_t have = *text ? strlen(*text) : 0;
  char *all = realloc(*text, have + n + 2);
  if (!all) return false;
  memcpy(all + have, line, n);
  all[have + n] = '\n';
  all[have + n + 1] = 0;
  *text = all;
  return true;
}

/* The text of a `##` line, without its mark and one blank; NULL: it is another line. */
static const char *doc_text(const char *line, size_t *n) {
  size_t blanks = strspn(line, " \t"), len = strcspn(line, "\r\n");
  if (strncmp(line + blanks, "##", 2) != 0) return NULL;
  const char *s = line + blanks + 2;
  if (*s == ' ') s++;
  *n = len - (size_t)(s - line);
  return s;
}

static const char *line_behind(const char *line) {
  line += strcspn(line, "\n");
  return *line ? line + 1 : line;
}

/* The next example from *at on; false: there is none. */
static bool next_example(const char **at, int *line, Example *e) {
  *e = (Example){0};
  for (; **at; *at = line_behind(*at), ++*line) {
    size_t n;
    const char *s = doc_text(*at, &n);
    bool begins = s && n >= 2 && s[0] == '>' && s[1] == ' ', goes_on = s && n >= 4 && strncmp(s, "... ", 4) == 0;
    if (!e->code) {
      if (!begins) continue;
      e->line = *line;
      if (!add_line(&e->code, s + 2, n - 2)) return false;
    } else if (goes_on && !e->wanted) {
      if (!add_line(&e->code, s + 4, n - 4)) return false;
    } else if (!s || !n || begins) {
      return true;
    } else if (!add_line(&e->wanted, s, n)) {
      return false;
    }
  }
  return e->code != NULL;
}

/* ---- running ------------------------------------------------------------------------------------------- */

typedef struct Run {
  WeftVM *vm;
  const char *file;
  int count, failed;
} Run;

static void tell_failed(Run *r, int line, const char *what) {
  const char *begin = colours_on(STDERR_FILENO) ? colour_code(COLOUR_ERROR) : "";
  out_flush();
  fprintf(stderr, "%sFAILED%s %s", begin, *begin ? colour_code(COLOUR_NONE) : "", r->file);
  if (line > 0) fprintf(stderr, ":%d", line);
  fprintf(stderr, ": %s\n", what);
  r->failed++;
}

static void tell_error(Run *r) { err_puts(weft_error_text(r->vm)); }

static void run_example(Run *r, const Example *e) {
  WeftValue *v = NULL;
  char *name = NULL;
  r->count++;
  if (asprintf(&name, "%s:%d", r->file, e->line) < 0) return;
  bool ran = weft_eval(r->vm, e->code, name, &v) == WEFT_OK;
  bool is_nil = !ran || !v || strcmp(weft_type(r->vm, v), "nil") == 0;
  const char *shown = ran && !is_nil ? weft_show(r->vm, v) : "";
  size_t n = e->wanted ? strlen(e->wanted) - 1 : 0;
  bool same = !e->wanted || (strlen(shown) == n && memcmp(shown, e->wanted, n) == 0);
  int code = (int)strcspn(e->code, "\n");
  char *what = NULL;
  if ((!ran || !same) && asprintf(&what, "example `%.*s`", code, e->code) > 0) {
    tell_failed(r, e->line, what);
    if (!ran) tell_error(r);
    else fprintf(stderr, "  wanted: %.*s\n  got:    %s\n", (int)n, e->wanted, shown);
  }
  free(what);
  free(name);
  weft_release(r->vm, v);
}

/* The line of the file where `fn name` stands; 0: it is not found. */
static int line_of(const Program *p, const char *name) {
  int line = 1;
  size_t n = strlen(name);
  for (const char *at = p->text; *at; at = line_behind(at), line++)
    if (strncmp(at, "fn ", 3) == 0 && strncmp(at + 3, name, n) == 0 && at[3 + n] == '(') return line;
  return 0;
}

static void run_test(Run *r, const Program *p, const char *name) {
  WeftValue *f = NULL, *v = NULL;
  char *what = NULL;
  bool is_function = weft_get_global(r->vm, name, &f) == WEFT_OK && strcmp(weft_type(r->vm, f), "fn") == 0;
  if (is_function) {
    r->count++;
    bool ran = weft_call(r->vm, f, NULL, 0, &v) == WEFT_OK;
    bool is_false = ran && strcmp(weft_show(r->vm, v), "false") == 0;
    if ((!ran || is_false) && asprintf(&what, "%s%s", name, is_false ? " gives false" : "") > 0) {
      tell_failed(r, line_of(p, name), what);
      if (!ran) tell_error(r);
    }
  }
  free(what);
  weft_release(r->vm, v);
  weft_release(r->vm, f);
}

/* The names of variables that begin with `test_`: a copy, since looking one up forgets what completion said. */
static char **test_names(WeftVM *vm, size_t *count) {
  WeftCompletion found = {.size = sizeof found};
  (void)weft_complete(vm, "test_", 5, &found);
  char **names = calloc(found.count + 1, sizeof *names);
  *count = 0;
  for (size_t i = 0; names && i < found.count; i++)
    if ((names[*count] = strdup(found.words[i]))) ++*count;
  return names;
}

/* False: a test of it failed, or it has none. */
static bool test_file(const char *file, MakeVm make, void *context, int *count, int *failed) {
  Program p;
  Run r = {.file = file};
  if (load(file, &p) && (r.vm = make(context))) {
    if (weft_load_text(r.vm, p.text, p.len, p.name, NULL) != WEFT_OK) {
      tell_failed(&r, 0, "does not run");
      tell_error(&r);
    } else {
      Example e;
      int line = 1;
      size_t n;
      for (const char *at = p.text; next_example(&at, &line, &e); free(e.code), free(e.wanted)) run_example(&r, &e);
      char **names = test_names(r.vm, &n);
      for (size_t i = 0; i < n; i++) run_test(&r, &p, names[i]);
      for (size_t i = 0; i < n; i++) free(names[i]);
      free(names);
      if (r.count == 0) {
        tell_failed(&r, 0, "nothing to test: no function test_…, and no example in ## lines");
      }
    }
  } else {
    r.failed = 1;
  }
  if (r.vm) weft_free(r.vm);
  free(p.text);
  *count += r.count;
  *failed += r.failed;
  return r.failed == 0;
}

int test_files(int argc, char **argv, MakeVm make, void *context) {
  int count = 0, failed = 0;
  if (argc > 0 && strcmp(argv[0], "--") == 0) argc--, argv++;
  else if (argc > 0 && argv[0][0] == '-')
    return fprintf(stderr, "weft test: unknown option: %s\ntry: weft --help\n", argv[0]), STATUS_USAGE;
  if (argc == 0) return fprintf(stderr, "weft test: a file is missing\ntry: weft --help\n"), STATUS_USAGE;
  for (int i = 0; i < argc; i++) (void)test_file(argv[i], make, context, &count, &failed);
  out_printf("%d test%s, %d failed\n", count, count == 1 ? "" : "s", failed);
  return failed != 0;
}

/* ---- weft doc ------------------------------------------------------------------------------------------ */

/* The comment at a file's head, then each function that stands at the left margin with the `##` lines above it. */
static void tell_file(const Program *p) {
  const char *at = p->text, *docs = NULL;
  while (*at == '#' && (at[1] == '!' || at[1] != '#')) {
    size_t n = strcspn(at, "\n"), mark = at[1] == ' ' ? 2 : 1;
    if (at[1] != '!') out_printf("%.*s\n", (int)(n > mark ? n - mark : 0), at + mark);
    at = line_behind(at);
  }
  for (; *at; at = line_behind(at)) {
    size_t n;
    if (*at == '#' && doc_text(at, &n)) {
      if (!docs) docs = at;
      continue;
    }
    if (strncmp(at, "fn ", 3) == 0) {
      const char *end = at + 3;
      int depth = 0;
      for (; *end && (*end != '\n' || depth > 0); end++) {
        depth += *end == '(';
        if (*end == ')' && --depth == 0) break;
      }
      out_printf("\n%.*s\n", (int)(end - at - 3 + (*end == ')')), at + 3);
      for (const char *d = docs; d && d < at; d = line_behind(d)) {
        const char *s = doc_text(d, &n);
        if (s) out_printf("  %.*s\n", (int)n, s);
      }
    }
    docs = NULL;
  }
}

int tell_docs(int argc, char **argv, MakeVm make, void *context) {
  int status = 0;
  if (argc > 0 && strcmp(argv[0], "--") == 0) argc--, argv++;
  else if (argc > 0 && argv[0][0] == '-')
    return fprintf(stderr, "weft doc: unknown option: %s\ntry: weft --help\n", argv[0]), STATUS_USAGE;
  if (argc == 0) return fprintf(stderr, "weft doc: a name or a file is missing\ntry: weft --help\n"), STATUS_USAGE;
  WeftVM *vm = make(context);
  if (!vm) return 1;
  for (int i = 0; i < argc; i++) {
    const char *name = argv[i], *text = "";
    size_t n = strlen(name);
    bool file = strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".weft") == 0);
    Program p;
    char *question = NULL;
    if (file && load(name, &p)) tell_file(&p);
    else if (file) status = STATUS_USAGE;
    if (file) {
      free(p.text);
      continue;
    }
    if (asprintf(&question, "?%s", name) < 0) status = 1;
    else if (!*name || weft_input(vm, question) != WEFT_INPUT_COMMAND)
      fprintf(stderr, "weft doc: \"%s\" is no name\n", name), status = 1;
    else if (weft_command(vm, question, &text) == WEFT_COMMAND_FAILED)
      fprintf(stderr, "weft doc: %s\n", weft_error_message(vm)), status = 1;
    else out_puts(text);
    free(question);
  }
  weft_free(vm);
  return status;
}

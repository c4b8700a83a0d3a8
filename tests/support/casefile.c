/* casefile.c — reads the files of tests/cases: programs, and what must come of them (see tests/README.md). */
#include "tests/support/casefile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p) {
  if (!p) {
    fprintf(stderr, "casefile: out of memory\n");
    exit(2);
  }
  return p;
}

static char *copy(const char *s, size_t n) {
  char *p = must(malloc(n + 1));
  memcpy(p, s, n);
  p[n] = 0;
  return p;
}

static char *copy_trimmed(const char *s, size_t n) {
  while (n && isspace((unsigned char)*s)) s++, n--;
  while (n && isspace((unsigned char)s[n - 1])) n--;
  return copy(s, n);
}

static void fail_at(const char *path, int line, const char *what) {
  fprintf(stderr, "%s:%d: %s\n", path, line, what);
  exit(2);
}

static char *read_all(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    fprintf(stderr, "%s: cannot be read\n", path);
    exit(2);
  }
  size_t n = 0, cap = 1 << 14;
  char *text = must(malloc(cap));
  for (size_t got; (got = fread(text + n, 1, cap - n - 1, f)) > 0;) {
    n += got;
    if (cap - n < 2) text = must(realloc(text, cap *= 2));
  }
  fclose(f);
  text[n] = 0;
  return text;
}

static bool is_mark(const char *s) { return s[0] == '#' && s[1] && strchr("=~>!?%", s[1]) && s[1] != 0; }

static void add_mark(Case *c, char kind, const char *s, size_t n) {
  c->marks = must(realloc(c->marks, sizeof *c->marks * (size_t)(c->mark_count + 1)));
  c->marks[c->mark_count++] = (Mark){kind, copy_trimmed(s, n)};
}

/* The last mark goes on: a blank and the n bytes at `s`. */
static void continue_mark(Case *c, const char *s, size_t n) {
  char **text = &c->marks[c->mark_count - 1].text, *more = copy_trimmed(s, n);
  size_t size = strlen(*text) + strlen(more) + 2;
  char *whole = must(malloc(size));
  snprintf(whole, size, "%s %s", *text, more);
  free(*text);
  free(more);
  *text = whole;
}

/* Splits `s` (marks only, up to its end) at each blank-preceded mark. */
static void add_marks(Case *c, const char *s, const char *end) {
  while (s < end) {
    const char *next = s + 2;
    while (next < end && !(isspace((unsigned char)next[-1]) && is_mark(next))) next++;
    add_mark(c, s[1], s + 2, (size_t)(next - s - 2));
    s = next;
  }
}

static bool says_result(const Case *c) {
  for (int i = 0; i < c->mark_count; i++)
    if (c->marks[i].kind != MARK_DIRECTIVE) return true;
  return false;
}

static Case *add_case(CaseFile *f, const Case *defaults, int line) {
  f->cases = must(realloc(f->cases, sizeof *f->cases * (size_t)(f->count + 1)));
  Case *c = &f->cases[f->count++];
  *c = (Case){.line = line};
  for (int i = 0; i < defaults->mark_count; i++)
    add_mark(c, defaults->marks[i].kind, defaults->marks[i].text, strlen(defaults->marks[i].text));
  return c;
}

static char *name_of(const char *stem, const char *own, size_t n, int line) {
  char tail[16];
  snprintf(tail, sizeof tail, ":%d", line);
  char *label = own ? copy_trimmed(own, n) : copy(tail, strlen(tail));
  for (char *p = label; *p; p++)
    if (isspace((unsigned char)*p)) *p = '-';
  size_t size = strlen(stem) + strlen(label) + 2;
  char *name = must(malloc(size));
  snprintf(name, size, own ? "%s/%s" : "%s%s", stem, label);
  free(label);
  return name;
}

/* The program of a case: the functions before it, then its own text. */
static void set_program(Case *c, const char *shared, char *own) {
  c->shared = strlen(shared);
  size_t size = c->shared + strlen(own) + 1;
  c->program = must(malloc(size));
  snprintf(c->program, size, "%s%s", shared, own);
  free(own);
}

CaseFile casefile_read(const char *path) {
  CaseFile f = {0};
  const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  f.stem = copy(base, strcspn(base, "."));
  char *text = read_all(path);
  Case defaults = {0}; /* directives that hold for the rest of the file */
  Case *block = NULL;  /* the open block, the last case of the file */
  const char *program = NULL;
  char *shared = copy("", 0); /* what stands between the last #[ and #] */
  bool sharing = false;
  int line = 0;
  for (const char *s = text, *next; *s; s = next) {
    const char *end = s + strcspn(s, "\n");
    next = *end ? end + 1 : end;
    line++;
    if (sharing) {
      if (s[0] != '#' || s[1] != ']') continue;
      free(shared);
      shared = copy(program, (size_t)(s - program));
      sharing = false;
      continue;
    }
    if (block) {
      if (s[0] == '#' && s[1] == '}') {
        if (!block->program) fail_at(path, line, "a block without marks");
        if (!says_result(block)) fail_at(path, line, "a block that does not say what comes of it");
        block = NULL;
      } else if (is_mark(s)) {
        if (!block->program) set_program(block, shared, copy(program, (size_t)(s - program)));
        add_mark(block, s[1], s + 2, (size_t)(end - s - 2));
      } else if (block->program && s[0] == '#' && s[1] == ' ' && s[2] == ' ') {
        continue_mark(block, s + 3, (size_t)(end - s - 3));
      } else if (block->program && end > s) {
        fail_at(path, line, "program text behind the marks of a block");
      }
      continue;
    }
    if (s[0] == '#' && s[1] == '{') {
      block = add_case(&f, &defaults, line + 1);
      block->name = name_of(f.stem, s + 2, (size_t)(end - s - 2), line);
      program = next;
      continue;
    }
    if (s[0] == '#' && s[1] == '[') {
      program = next;
      sharing = true;
      continue;
    }
    if (s[0] == '#' && s[1] == '%') {
      add_mark(&defaults, s[1], s + 2, (size_t)(end - s - 2));
      continue;
    }
    if (s[0] == '#' || end == s) continue;
    const char *m = s + 1;
    while (m < end && !(isspace((unsigned char)m[-1]) && is_mark(m))) m++;
    if (m == end) fail_at(path, line, "a case without a mark");
    Case *c = add_case(&f, &defaults, line);
    c->name = name_of(f.stem, NULL, 0, line);
    set_program(c, shared, copy_trimmed(s, (size_t)(m - s)));
    add_marks(c, m, end);
    if (!says_result(c)) fail_at(path, line, "a case that does not say what comes of it");
  }
  if (block) fail_at(path, line, "a block that is not closed");
  if (sharing) fail_at(path, line, "functions that no #] ends");
  free(shared);
  for (int i = 0; i < defaults.mark_count; i++) free(defaults.marks[i].text);
  free(defaults.marks);
  free(text);
  return f;
}

void casefile_free(CaseFile *f) {
  for (int i = 0; i < f->count; i++) {
    Case *c = &f->cases[i];
    for (int k = 0; k < c->mark_count; k++) free(c->marks[k].text);
    free(c->marks);
    free(c->name);
    free(c->program);
  }
  free(f->cases);
  free(f->stem);
  *f = (CaseFile){0};
}

const char *case_mark(const Case *c, MarkKind kind) {
  for (int i = 0; i < c->mark_count; i++)
    if (c->marks[i].kind == (char)kind) return c->marks[i].text;
  return NULL;
}

/* The case's own directives stand behind the file's, and the last one holds. */
const char *case_directive(const Case *c, const char *word) {
  size_t n = strlen(word);
  for (int i = c->mark_count - 1; i >= 0; i--) {
    const char *t = c->marks[i].text;
    if (c->marks[i].kind != MARK_DIRECTIVE || strncmp(t, word, n) != 0) continue;
    if (!t[n]) return t + n;
    if (t[n] == ' ') return t + n + 1;
  }
  return NULL;
}

/* ---- a case as a function ------------------------------------------------------------------ */

/* Behind the text literal that begins at `s` (at its first quote). */
static const char *skip_text(const char *s) {
  if (s[1] == '"' && s[2] == '"') {
    const char *e = strstr(s + 3, "\"\"\"");
    return e ? e + 3 : s + strlen(s);
  }
  for (s++; *s && *s != '"' && *s != '\n'; s++)
    if (*s == '\\' && s[1]) s++;
  return *s ? s + 1 : s;
}

static const char *skip_blanks(const char *s) {
  for (;;) {
    while (isspace((unsigned char)*s) || *s == ';') s++;
    if (*s != '#') return s;
    s += strcspn(s, "\n");
  }
}

static bool begins(const char *s, const char *word) {
  size_t n = strlen(word);
  return strncmp(s, word, n) == 0 && !isalnum((unsigned char)s[n]) && s[n] != '_';
}

/* True when the line that ends before `end` cannot end a statement there. */
static bool line_goes_on(const char *start, const char *end, const char *next) {
  while (end > start && isspace((unsigned char)end[-1])) end--;
  if (end > start && strchr("=,+-*/%@<>&|^", end[-1])) return true;
  while (*next == ' ' || *next == '\t') next++;
  static const char *const words[] = {"else", "catch", "and", "or", "in", "by"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (begins(next, words[i])) return true;
  return *next && strchr(".*/%@=!<>&|^", *next);
}

/* Behind the statement that begins at `s`: a newline or `;` outside all brackets ends it. */
static const char *statement_end(const char *s) {
  const char *start = s;
  int depth = 0;
  while (*s) {
    if (*s == '"') {
      s = skip_text(s);
      continue;
    }
    if (*s == '#') {
      s += strcspn(s, "\n");
      continue;
    }
    if (strchr("([{", *s)) depth++;
    if (strchr(")]}", *s)) depth--;
    if (depth == 0 && (*s == ';' || (*s == '\n' && !line_goes_on(start, s, s + 1)))) return s + 1;
    s++;
  }
  return s;
}

/* `fn f` and `fn (` differ: only a named function is a declaration. */
static bool is_declaration(const char *s, bool globals) {
  if (begins(s, "import")) return true;
  if (!globals) return false;
  if (begins(s, "let")) return true;
  if (!begins(s, "fn")) return false;
  s += 2;
  while (*s == ' ') s++;
  return isalpha((unsigned char)*s) || *s == '_';
}

static bool makes_functions(const char *s) {
  for (; *s; s++) {
    if (s[0] == '=' && s[1] == '>') return true;
    if (begins(s, "fn") && !isalnum((unsigned char)s[-1]) && s[-1] != '_') return true;
  }
  return false;
}

char *case_as_function(const Case *c, bool globals) {
  const char *s = skip_blanks(globals ? c->program : c->program + c->shared);
  if (!globals && (begins(s, "fn") || makes_functions(s + (*s != 0)))) return NULL;
  while (*s && is_declaration(s, globals)) s = skip_blanks(statement_end(s));
  size_t head = (size_t)(s - c->program), size = strlen(c->program) + 64;
  char *text = must(malloc(size));
  snprintf(text, size, "%.*s\nfn case() {\n%s\n}\ncase()\n", (int)head, c->program, s);
  return text;
}

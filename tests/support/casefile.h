/* casefile.h — reads the files of tests/cases: programs, and what must come of them (see tests/README.md). */
#ifndef WEFT_TESTS_CASEFILE_H
#define WEFT_TESTS_CASEFILE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum MarkKind {
  MARK_VALUE = '=',
  MARK_NEAR = '~',
  MARK_PRINT = '>',
  MARK_ERROR = '!',
  MARK_COUNT = '?',
  MARK_DIRECTIVE = '%',
} MarkKind;

typedef struct Mark {
  char kind;  /* a MarkKind */
  char *text; /* trimmed */
} Mark;

typedef struct Case {
  char *name;    /* "arith:12" or "closures/keeps-the-old-value" (blanks become '-') */
  char *program; /* as it stands, behind the functions that stand between #[ and #] above it */
  size_t shared; /* how long these are */
  int line;      /* where it begins */
  Mark *marks;   /* directives of the file come first */
  int mark_count;
} Case;

typedef struct CaseFile {
  char *stem; /* the file's name without folder and ending */
  Case *cases;
  int count;
} CaseFile;

/* Ends the program with a message when the file cannot be read or breaks the format. */
CaseFile casefile_read(const char *path);
void casefile_free(CaseFile *f);

/* The first mark of a kind, NULL when absent. */
const char *case_mark(const Case *c, MarkKind kind);
/* The text behind directive `word` ("" when it has none); NULL when the case does not have it. */
const char *case_directive(const Case *c, const char *word);

/* The case as a function: the leading declarations, then the rest wrapped into `fn case() { … }` and its
 * call. `let` and `fn` stay outside when `globals` is set, else only `import` and the shared functions; that is NULL
 * for a program that makes functions, since closures capture what functions at the top look up. malloc'ed. */
char *case_as_function(const Case *c, bool globals);

#endif

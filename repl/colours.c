/* colours.c — sequences of colours, and where they stand in errors and values (see colours.h). */
#include "repl/colours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/weft.h"

bool colours_on(int fd) {
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(fd) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

/* Each ends the one before. */
const char *colour_code(int colour) {
  static const char *const codes[] = {
    [COLOUR_NONE] = "\033[0m", [COLOUR_BOLD] = "\033[0;1m", [COLOUR_DIM] = "\033[0;90m", [COLOUR_MATCH] = "\033[0;1;4m",
    [COLOUR_PROMPT] = "\033[0;1;32m", [COLOUR_ERROR] = "\033[0;1;31m", [COLOUR_PAINT + WEFT_PAINT_PLAIN] = "\033[0m",
    [COLOUR_PAINT + WEFT_PAINT_WORD] = "\033[0;35m", [COLOUR_PAINT + WEFT_PAINT_NUMBER] = "\033[0;36m",
    [COLOUR_PAINT + WEFT_PAINT_TEXT] = "\033[0;32m", [COLOUR_PAINT + WEFT_PAINT_COMMENT] = "\033[0;90m",
    [COLOUR_PAINT + WEFT_PAINT_FUNCTION] = "\033[0;34m", [COLOUR_PAINT + WEFT_PAINT_BRACKET] = "\033[0m",
    [COLOUR_PAINT + WEFT_PAINT_WRONG] = "\033[0;31m",
  };
  return codes[colour];
}

/* ---- lines in colours ------------------------------------------------------------------------------------ */

typedef struct Out {
  char *data;
  size_t len, cap;
  bool failed;
} Out;

static void add(Out *o, const char *s, size_t n) {
  if (o->len + n + 1 > o->cap) {
    size_t cap = 2 * o->cap + n + 64;
    char *data = realloc(o->data, cap);
    if (!data) o->failed = true;
    if (!data) return;
    o->data = data;
    o->cap = cap;
  }
  memcpy(o->data + o->len, s, n);
  o->data[o->len += n] = 0;
}

static void add_in(Out *o, int colour, const char *s, size_t n) {
  if (!n) return;
  const char *code = colour_code(colour), *end = colour_code(COLOUR_NONE);
  add(o, code, strlen(code));
  add(o, s, n);
  add(o, end, strlen(end));
}

static char *text_of(Out *o) {
  if (o->failed) free(o->data);
  return o->failed ? NULL : o->data;
}

/* `  |    ^^^`: nothing but carets behind the bar? */
static bool is_caret_line(const char *line, size_t n) {
  size_t at = 0;
  while (at < n && line[at] == ' ') at++;
  if (at == n || line[at] != '|') return false;
  size_t blanks = strspn(line + at + 1, " ");
  size_t carets = strspn(line + at + 1 + blanks, "^");
  return carets && at + 1 + blanks + carets == n;
}

/* `  --> file:1:2` and `  in f, called at …` */
static bool is_place(const char *line) {
  line += strspn(line, " ");
  return strncmp(line, "--> ", 4) == 0 || strncmp(line, "in ", 3) == 0 || strncmp(line, "|", 1) == 0;
}

char *coloured_error(const char *text) {
  Out o = {0};
  bool first = true;
  for (const char *line = text; *line; first = false) {
    size_t n = strcspn(line, "\n");
    const char *colon = memchr(line, ':', n);
    if (first && colon) {
      add_in(&o, COLOUR_ERROR, line, (size_t)(colon - line) + 1);
      add_in(&o, COLOUR_BOLD, colon + 1, n - (size_t)(colon - line) - 1);
    } else if (is_caret_line(line, n)) {
      size_t bar = strcspn(line, "|") + 1;
      add_in(&o, COLOUR_DIM, line, bar);
      add_in(&o, COLOUR_ERROR, line + bar, n - bar);
    } else if (!first && is_place(line)) {
      add_in(&o, COLOUR_DIM, line, n);
    } else {
      add(&o, line, n);
    }
    line += n;
    if (*line) add(&o, line++, 1);
  }
  return text_of(&o);
}

/* `f64 (3, 4)`, `f64 (3,)`, `record of 3 columns, 10 rows`: how much of the line is such a heading. */
static size_t heading(const char *line) {
  static const char *const dtypes[] = {"bool ", "u8 ", "i32 ", "i64 ", "u32 ", "u64 ", "f16 ", "bf16 ", "f32 ", "f64 ",
                                       "c64 ", "c128 "};
  size_t all = strcspn(line, "\n");
  if (strncmp(line, "record of ", 10) == 0) return all;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    size_t n = strlen(dtypes[i]);
    if (strncmp(line, dtypes[i], n) == 0 && line[n] == '(')
      return n + 1 + strspn(line + n + 1, "0123456789, ") + 1;
  }
  return 0;
}

char *coloured_value(const char *text) {
  Out o = {0};
  size_t n = heading(text);
  add_in(&o, COLOUR_DIM, text, n);
  add(&o, text + n, strlen(text + n));
  return text_of(&o);
}

/* editors.c — the grammar for editors colours programs as the lexer of Weft takes them apart.
 *
 *   editors [--show] FILE…
 *   editors --accepted FOLDER FILE…     writes the cases that the parser accepts into FOLDER; names them and each FILE
 *                                       that it accepts
 *   editors --captures LIST OUTPUT      compares with what `tree-sitter query --captures` said of the programs in LIST
 *
 * Reads editors/vscode/syntaxes/weft.tmLanguage.json and applies its rules as editors do: line by line, the leftmost
 * match of the rules that are open wins, the end of the innermost rule first, then the rules in their order. Patterns
 * run by PCRE2. What a byte of a program is then (comment, text, number, reserved word, mark, anything else) must be
 * what the token of the lexer is in which it lies. Programs are the cases of tests/cases (FILE…: of these files), up
 * to the first token that is broken. Vim's and Emacs' files must name every reserved word, dtype and module. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/dtypes.h"
#include "lang/ops.h"
#include "parser/lexer.h"
#include "parser/parser.h"
#include "tests/support/casefile.h"

static void die(const char *what) {
  printf("not ok editors/start: %s\n", what);
  exit(1);
}

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  size_t room = 0;
  if (!f || getdelim(&text, &room, 0, f) < 0) die(path);
  fclose(f);
  return text;
}

/* ---- PCRE2 -------------------------------------------------------------------------------------- */

enum { UTF = 0x00080000, COMPLETE = 1 }; /* PCRE2_UTF, PCRE2_JIT_COMPLETE */

static void *(*compile)(const char *, size_t, uint32_t, int *, size_t *, void *);
static void *(*new_data)(void *, void *);
static int (*to_code)(void *, uint32_t);
static int (*match)(void *, const char *, size_t, size_t, uint32_t, void *, void *);
static size_t *(*spans)(void *);

static void open_pcre(void) {
  void *library = dlopen("libpcre2-8.so.0", RTLD_NOW);
  if (!library) {
    printf("skip editors/grammar: patterns need PCRE2 (libpcre2-8.so.0)\n");
    exit(0);
  }
  const struct { const char *name; void **at; } names[] = {
      {"pcre2_compile_8", (void **)&compile}, {"pcre2_match_data_create_from_pattern_8", (void **)&new_data},
      {"pcre2_jit_compile_8", (void **)&to_code}, {"pcre2_match_8", (void **)&match},
      {"pcre2_get_ovector_pointer_8", (void **)&spans}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!(*names[i].at = dlsym(library, names[i].name))) die(names[i].name);
}

typedef struct Pattern {
  void *code, *data;
} Pattern;

static Pattern pattern_new(const char *text) {
  int code;
  size_t at;
  Pattern p = {compile(text, strlen(text), UTF, &code, &at, NULL), NULL};
  if (!p.code) die(text);
  to_code(p.code, COMPLETE);
  p.data = new_data(p.code, NULL);
  return p;
}

/* ---- the grammar, as JSON has it ---------------------------------------------------------------- */

typedef struct Json {
  char *key, *text; /* in an object; a string */
  struct Json *kids, *next;
} Json;

static const char *at; /* in the text that is read */

static void skip_space(void) { at += strspn(at, " \t\r\n"); }

static char *read_string(void) {
  char *out = calloc(strlen(at), 1), *to = out;
  if (!out || *at++ != '"') die("the grammar: no string");
  for (; *at && *at != '"'; at++) {
    if (*at == '\\') at++;
    if (*at == 'n' && at[-1] == '\\') *to++ = '\n';
    else if (*at == 'u' && at[-1] == '\\') die("the grammar: \\u is not read");
    else *to++ = *at;
  }
  at++;
  return out;
}

static Json *read_json(void) {
  Json *j = calloc(1, sizeof *j);
  if (!j) die("no memory");
  skip_space();
  if (*at == '"') {
    j->text = read_string();
    return j;
  }
  if (*at != '{' && *at != '[') die("the grammar: objects, lists and strings are read");
  char close = *at++ == '{' ? '}' : ']';
  Json **last = &j->kids;
  for (skip_space(); *at != close; skip_space()) {
    char *key = NULL;
    if (close == '}') {
      key = read_string();
      skip_space();
      if (*at++ != ':') die("the grammar: no colon");
    }
    *last = read_json();
    (*last)->key = key;
    last = &(*last)->next;
    skip_space();
    if (*at == ',') at++;
    else if (*at != close) die("the grammar: no comma");
  }
  at++;
  return j;
}

static const Json *member(const Json *j, const char *key) {
  for (const Json *k = j ? j->kids : NULL; k; k = k->next)
    if (k->key && strcmp(k->key, key) == 0) return k;
  return NULL;
}

static const char *text_of(const Json *j, const char *key) {
  const Json *m = member(j, key);
  return m ? m->text : NULL;
}

/* ---- rules -------------------------------------------------------------------------------------- */

enum { RULES_MAX = 100, FLAT_MAX = 60, DEPTH_MAX = 60, GROUPS_MAX = 4 };

/* What a byte is. INSIDE: a rule that says nothing of its own. */
typedef enum Class { INSIDE, OTHER, COMMENT, TEXT, NUMBER, WORD, MARK, CLASS_COUNT } Class;
static const char *const class_names[] = {"", "a name", "a comment", "a text", "a number", "a reserved word", "a mark"};

typedef struct Rule {
  const Json *json;
  bool region;             /* begin and end; else match */
  Pattern begin, end;
  Class name, content, begin_groups[GROUPS_MAX], end_groups[GROUPS_MAX];
  int flat[FLAT_MAX], count; /* the rules inside, includes followed; -1: not made yet */
} Rule;

static Rule rules[RULES_MAX];
static int rule_count;
static const Json *grammar;

static Class class_of(const char *scope) {
  static const struct { const char *begins; Class class; } table[] = {
      {"comment.", COMMENT}, {"string.", TEXT}, {"constant.character.", TEXT}, {"constant.numeric.", NUMBER},
      {"constant.language.", WORD}, {"keyword.control.", WORD}, {"keyword.operator.word.", WORD}, {"storage.", WORD},
      {"keyword.operator.", MARK}, {"punctuation.", MARK}, {"support.", OTHER}, {"variable.", OTHER},
      {"entity.", OTHER}, {"meta.", OTHER}};
  if (!scope) return INSIDE;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strncmp(scope, table[i].begins, strlen(table[i].begins)) == 0) return table[i].class;
  die(scope);
  return INSIDE;
}

static void read_groups(const Json *rule, const char *key, Class *out) {
  for (const Json *g = member(rule, key) ? member(rule, key)->kids : NULL; g; g = g->next) {
    int n = atoi(g->key);
    if (n >= GROUPS_MAX) die("the grammar: too many groups");
    out[n] = class_of(text_of(g, "name"));
  }
}

/* The number of the rule that this is; each is made once. */
static int rule_of(const Json *json) {
  for (int i = 0; i < rule_count; i++)
    if (rules[i].json == json) return i;
  if (rule_count == RULES_MAX) die("the grammar: too many rules");
  Rule *r = &rules[rule_count++];
  const char *one = text_of(json, "match"), *begin = text_of(json, "begin"), *end = text_of(json, "end");
  r->json = json;
  r->count = -1;
  r->region = begin != NULL;
  r->name = json == grammar ? OTHER : class_of(text_of(json, "name")); /* the grammar has a name, not a scope */
  r->content = member(json, "contentName") ? class_of(text_of(json, "contentName")) : r->name;
  if (one || begin) r->begin = pattern_new(one ? one : begin);
  if (begin) r->end = pattern_new(end);
  read_groups(json, one ? "captures" : "beginCaptures", r->begin_groups);
  read_groups(json, "endCaptures", r->end_groups);
  return (int)(r - rules);
}

static void flatten(Rule *r, const Json *patterns) {
  for (const Json *p = patterns ? patterns->kids : NULL; p; p = p->next) {
    const char *include = text_of(p, "include");
    const Json *to = include ? member(member(grammar, "repository"), include + 1) : p;
    if (!to) die(include);
    if (text_of(to, "match") || text_of(to, "begin")) {
      if (r->count == FLAT_MAX) die("the grammar: too many rules inside of one");
      r->flat[r->count++] = rule_of(to);
    } else flatten(r, member(to, "patterns"));
  }
}

static Rule *ready(int number) {
  Rule *r = &rules[number];
  if (r->count < 0) {
    r->count = 0;
    flatten(r, member(r->json, "patterns"));
  }
  return r;
}

/* ---- what the grammar says ---------------------------------------------------------------------- */

static void fill(char *out, size_t from, size_t to, Class class) {
  if (class != INSIDE) memset(out + from, class, to - from);
}

/* The classes of all bytes. */
static void paint(const char *text, size_t length, char *out) {
  int stack[DEPTH_MAX], depth = 0;
  Class inside[DEPTH_MAX];
  stack[0] = rule_of(grammar);
  inside[0] = OTHER;
  for (size_t line = 0; line < length;) {
    const char *newline = memchr(text + line, '\n', length - line);
    size_t end = newline ? (size_t)(newline - text) : length, pos = line;
    const char *start = text + line;
    size_t size = end - line;
    while (pos <= end) {
      Rule *top = ready(stack[depth]);
      size_t best = SIZE_MAX;
      int chosen = -1; /* -2: the end of the rule */
      if (top->region && match(top->end.code, start, size, pos - line, 0, top->end.data, NULL) > 0) {
        best = spans(top->end.data)[0];
        chosen = -2;
      }
      for (int i = 0; i < top->count && best > pos - line; i++) {
        Rule *r = &rules[top->flat[i]];
        if (match(r->begin.code, start, size, pos - line, 0, r->begin.data, NULL) <= 0) continue;
        size_t found = spans(r->begin.data)[0];
        if (found < best) best = found, chosen = top->flat[i];
      }
      if (chosen == -1) {
        fill(out, pos, end, inside[depth]);
        break;
      }
      Rule *r = chosen == -2 ? top : &rules[chosen];
      Pattern *p = chosen == -2 ? &r->end : &r->begin;
      size_t *span = spans(p->data), from = line + span[0], to = line + span[1];
      fill(out, pos, from, inside[depth]);
      fill(out, from, to, r->name == INSIDE ? inside[depth - (chosen == -2)] : r->name);
      const Class *groups = chosen == -2 ? r->end_groups : r->begin_groups;
      for (int g = 0; g < GROUPS_MAX; g++)
        if (groups[g]) fill(out, line + span[2 * g], line + span[2 * g + 1], groups[g]);
      if (chosen == -2) depth--;
      else if (r->region) {
        if (depth + 1 == DEPTH_MAX) die("rules are open too deeply");
        Class around = inside[depth];
        stack[++depth] = chosen;
        inside[depth] = r->content == INSIDE ? around : r->content;
      } else if (to == from) {
        if (to < end) fill(out, to, to + 1, inside[depth]);
        to++;
      }
      pos = to;
      if (pos >= end && chosen >= 0 && !r->region) break;
      if (pos > end) break;
      if (pos == end && chosen == -2 && from == to && from == end) break;
    }
    if (end < length) fill(out, end, end + 1, inside[depth]);
    line = end + 1;
  }
}

/* ---- what the lexer says ------------------------------------------------------------------------ */

/* The classes of the bytes of tokens, INSIDE of what lies between; how many bytes count: up to a broken token. */
static size_t lex(const char *text, size_t length, char *out) {
  Lexer l;
  Token t = {0};
  lexer_init(&l, text, (u32)length);
  l.comments = true;
  memset(out, INSIDE, length);
  for (;;) {
    memset(&t, 0, sizeof t);
    lexer_next(&l, &t);
    if (t.kind == TOK_EOF) return length;
    if (t.kind == TOK_ERROR) return t.start;
    Class c = MARK;
    switch (t.kind) {
      case TOK_COMMENT: c = COMMENT; break;
      case TOK_NAME: c = OTHER; break;
      case TOK_INT:
      case TOK_FLOAT: c = NUMBER; break;
      case TOK_TEXT:
      case TOK_FSTR_OPEN:
      case TOK_FSTR_TEXT:
      case TOK_FSTR_CLOSE: c = TEXT; break;
      default: if (token_is_word(t.kind)) c = WORD;
    }
    fill(out, t.start, t.start + t.len, c);
  }
}

/* ---- comparing ---------------------------------------------------------------------------------- */

static long bytes[CLASS_COUNT];

/* What the lexer says against what `got` has. */
static bool agree(const char *name, const char *text, const char *got) {
  size_t length = strlen(text), counted;
  char *wanted = calloc(length + 2, 1);
  if (!wanted) die("no memory");
  counted = lex(text, length, wanted);
  bool ok = true;
  for (size_t i = 0; i < counted && ok; i++) {
    bytes[(int)wanted[i]]++;
    if (wanted[i] == INSIDE || text[i] == '\n' || wanted[i] == got[i]) continue;
    size_t from = i, line = 1;
    while (from && text[from - 1] != '\n') from--;
    for (size_t k = 0; k < i; k++) line += text[k] == '\n';
    printf("not ok editors/%s: line %zu, column %zu: %s, the grammar says %s: %.*s\n", name, line, i - from + 1,
           class_names[(int)wanted[i]], class_names[(int)got[i]], (int)strcspn(text + from, "\n"), text + from);
    ok = false;
  }
  free(wanted);
  return ok;
}

static bool compare(const char *name, const char *text, bool show) {
  size_t length = strlen(text);
  char *got = calloc(length + 2, 1);
  if (!got) die("no memory");
  paint(text, length, got);
  bool ok = agree(name, text, got);
  if (show)
    for (size_t i = 0; i < length; i++) putchar(text[i] == '\n' ? '\n' : "?nctdwm"[(int)got[i]]);
  free(got);
  return ok;
}

static bool has_word(const char *text, const char *word) {
  size_t n = strlen(word);
  for (const char *s = text; (s = strstr(s, word)); s += n)
    if ((s == text || !isalnum((unsigned char)s[-1])) && !isalnum((unsigned char)s[n]) && s[n] != '_') return true;
  return false;
}

static bool names_all(const char *path) {
  static const char *const modules[] = {
#define MODULE_NAME(name) #name,
      OP_MODULES(MODULE_NAME)
#undef MODULE_NAME
  };
  char *text = read_file(path);
  bool ok = true;
  for (const char *const *w = parser_reserved_words(); *w; w++)
    if (!has_word(text, *w)) printf("not ok editors/%s: does not name %s\n", path, *w), ok = false;
  for (u32 d = 0; d < DT_COUNT; d++)
    if (*dtype_name((DType)d) && d && !has_word(text, dtype_name((DType)d)))
      printf("not ok editors/%s: does not name %s\n", path, dtype_name((DType)d)), ok = false;
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
    if (!has_word(text, modules[i])) printf("not ok editors/%s: does not name %s\n", path, modules[i]), ok = false;
  free(text);
  if (ok) printf("ok editors/%s\n", path);
  return ok;
}

/* ---- the grammar of tree-sitter ----------------------------------------------------------------- */

static bool accepted(const char *text) {
  Allocator *a = allocator_system();
  Sources sources;
  Names names;
  Arena arena;
  Ast ast;
  Diag diag;
  arena_init(&arena, a);
  if (sources_init(&sources, a) || names_init(&names, a)) die("no memory");
  u32 file = sources_add(&sources, "case.weft", text, strlen(text));
  bool ok = file && parser_parse(&ast, &arena, &names, &sources, file, &diag, NULL) == WEFT_OK;
  arena_free(&arena);
  names_free(&names);
  sources_free(&sources);
  return ok;
}

static void write_accepted(const char *folder, char **files, int count) {
  glob_t cases;
  glob("tests/cases/*.weft", 0, NULL, &cases);
  for (size_t i = 0; i < cases.gl_pathc; i++) {
    CaseFile f = casefile_read(cases.gl_pathv[i]);
    for (int k = 0; k < f.count; k++) {
      if (!accepted(f.cases[k].program)) continue;
      char *path;
      if (asprintf(&path, "%s/%s.%d.weft", folder, f.stem, f.cases[k].line) < 0) die("no memory");
      FILE *out = fopen(path, "wb");
      if (!out || fputs(f.cases[k].program, out) < 0 || fclose(out)) die(path);
      puts(path);
      free(path);
    }
    casefile_free(&f);
  }
  globfree(&cases);
  for (int i = 0; i < count; i++) {
    char *text = read_file(files[i]);
    if (accepted(text)) puts(files[i]);
    free(text);
  }
}

/* A part of a program that has a name by queries/highlights.scm. */
typedef struct Capture {
  size_t from, to;
  Class class;
  char name[40];
} Capture;

static Class class_of_capture(const char *name) {
  static const struct { const char *name; Class class; } table[] = {
      {"keyword.import.as", OTHER}, /* a name elsewhere */
      {"comment", COMMENT}, {"string", TEXT}, {"number", NUMBER}, {"keyword", WORD}, {"boolean", WORD},
      {"constant.builtin", WORD}, {"operator", MARK}, {"punctuation", MARK}, {"constant", OTHER}, {"embedded", INSIDE},
      {"function", OTHER}, {"module", OTHER}, {"property", OTHER}, {"type", OTHER}, {"variable", OTHER}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    size_t n = strlen(table[i].name);
    if (strncmp(name, table[i].name, n) == 0 && (!name[n] || name[n] == '.')) return table[i].class;
  }
  printf("not ok tree-sitter/captures: @%s is not known to this test\n", name);
  exit(1);
}

/* The outer one first. */
static int by_size(const void *a, const void *b) {
  const Capture *x = a, *y = b;
  size_t m = x->to - x->from, n = y->to - y->from;
  return m != n ? (m < n) - (m > n) : (x->from > y->from) - (x->from < y->from);
}

static size_t offset_of(const char *text, size_t length, size_t line, size_t column) {
  size_t i = 0;
  while (line-- && i < length) i += strcspn(text + i, "\n") + 1;
  return i + column < length ? i + column : length;
}

static bool check_captures(const char *path, Capture *list, size_t count) {
  char *text = read_file(path);
  size_t length = strlen(text);
  char *got = calloc(length + 2, 1);
  if (!got) die("no memory");
  bool ok = true;
  for (size_t i = 0; i < count; i++) { /* from and to hold line << 32 | column */
    list[i].from = offset_of(text, length, list[i].from >> 32, (u32)list[i].from);
    list[i].to = offset_of(text, length, list[i].to >> 32, (u32)list[i].to);
  }
  qsort(list, count, sizeof *list, by_size);
  for (size_t i = 0; i < count; i++) {
    fill(got, list[i].from, list[i].to, list[i].class);
    if (!i || list[i - 1].from != list[i].from || list[i - 1].to != list[i].to) continue;
    if (!list[i - 1].class || !list[i].class || list[i - 1].class == list[i].class) continue;
    printf("not ok tree-sitter/%s: byte %zu is both @%s and @%s\n", path, list[i].from, list[i - 1].name,
           list[i].name);
    ok = false;
  }
  ok &= agree(path, text, got);
  free(got);
  free(text);
  return ok;
}

/* A line of OUTPUT is the next path of LIST, a capture in that program, or more of the text of a capture. */
static bool compare_captures(const char *paths, const char *output) {
  enum { MOST = 1 << 20 };
  Capture *list = malloc(MOST * sizeof *list);
  FILE *in = fopen(output, "r");
  char *line = NULL, *all = read_file(paths), *path = NULL, *next = strtok(all, "\n");
  size_t room = 0, count = 0, programs = 0;
  bool ok = true;
  if (!list || !in) die(output);
  for (bool more = true; more;) {
    more = getline(&line, &room, in) > 0;
    if (more) line[strcspn(line, "\n")] = 0;
    if (!more || (next && strcmp(line, next) == 0)) {
      if (path) ok &= check_captures(path, list, count), programs++;
      count = 0;
      path = next;
      if (more) next = strtok(NULL, "\n");
      continue;
    }
    unsigned from_line, from, to_line, to;
    char name[sizeof list->name];
    if (sscanf(line, " pattern: %*d, capture: %*d - %39[^,], start: (%u, %u), end: (%u, %u)", name, &from_line, &from,
               &to_line, &to) != 5)
      continue;
    if (count == MOST) die("too many captures");
    Capture *c = &list[count++];
    *c = (Capture){.from = (size_t)from_line << 32 | from, .to = (size_t)to_line << 32 | to};
    strcpy(c->name, name);
    c->class = class_of_capture(name);
  }
  if (next) printf("not ok tree-sitter/captures: nothing is said of %s\n", next), ok = false;
  fclose(in);
  free(line);
  free(all);
  free(list);
  for (int c = OTHER; c < CLASS_COUNT; c++)
    if (!bytes[c]) printf("not ok tree-sitter/classes: no byte of the programs is %s\n", class_names[c]), ok = false;
  if (ok) printf("ok tree-sitter/highlights: %zu programs\n", programs);
  return ok;
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[1], "--accepted") == 0) {
    write_accepted(argv[2], argv + 3, argc - 3);
    return 0;
  }
  if (argc == 4 && strcmp(argv[1], "--captures") == 0) return compare_captures(argv[2], argv[3]) ? 0 : 1;
  bool show = argc > 1 && strcmp(argv[1], "--show") == 0, all_ok = true;
  glob_t files;
  glob("tests/cases/*.weft", 0, NULL, &files);
  open_pcre();
  at = read_file("editors/vscode/syntaxes/weft.tmLanguage.json");
  grammar = read_json();
  int first = 1 + show, count = argc > first ? argc - first : (int)files.gl_pathc;
  char **paths = argc > first ? argv + first : files.gl_pathv;
  for (int i = 0; i < count; i++) {
    CaseFile f = casefile_read(paths[i]);
    bool ok = true;
    for (int k = 0; k < f.count; k++) ok &= compare(f.cases[k].name, f.cases[k].program, show);
    char *whole = read_file(paths[i]); /* with its marks, which are comments */
    ok &= compare(f.stem, whole, false);
    free(whole);
    if (ok) printf("ok editors/%s\n", f.stem);
    all_ok &= ok;
    casefile_free(&f);
  }
  for (int c = OTHER; argc == first && c < CLASS_COUNT; c++)
    if (!bytes[c]) printf("not ok editors/classes: no byte of the cases is %s\n", class_names[c]), all_ok = false;
  all_ok &= names_all("editors/vscode/syntaxes/weft.tmLanguage.json");
  all_ok &= names_all("editors/vim/syntax/weft.vim");
  all_ok &= names_all("editors/emacs/weft-mode.el");
  globfree(&files);
  return all_ok ? 0 : 1;
}

/* lsp_names.c — what names mean: definitions, references, renaming, the symbols and folds of a document. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "repl/lsp.h"

/* ---- lookup -------------------------------------------------------------------------------------- */

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c & 0x80; }

bool is_name(const char *s) {
  if (!is_name_start(*s) || strcmp(s, "_") == 0) return false;
  while (is_name_start(*s) || (*s >= '0' && *s <= '9')) s++;
  return !*s;
}

const WeftMention *mention_under(const Doc *d, size_t at) {
  size_t low = 0, high = d->mention_count;
  while (low < high) { /* the first that begins behind `at` */
    size_t mid = low + (high - low) / 2;
    if (d->mentions[mid].at <= at) low = mid + 1;
    else high = mid;
  }
  const WeftMention *m = low ? &d->mentions[low - 1] : NULL;
  return m && at <= m->at + m->length ? m : NULL;
}

int symbol_named(const Doc *d, const char *name, size_t len, size_t at) {
  int found = WEFT_NO_SYMBOL;
  for (size_t i = 0; i < d->symbol_count; i++) {
    const WeftSymbol *y = &d->symbols[i];
    bool seen = y->global || (at >= y->seen_from && at <= y->seen_to);
    if (!seen || *y->name != *name || strlen(y->name) != len || memcmp(y->name, name, len) != 0) continue;
    if (found == WEFT_NO_SYMBOL || (!y->global && y->seen_from >= d->symbols[found].seen_from)) found = (int)i;
  }
  return found;
}

int global_named(const Doc *d, const char *name) {
  for (size_t i = 0; i < d->symbol_count; i++)
    if (d->symbols[i].global && strcmp(d->symbols[i].name, name) == 0) return (int)i;
  return WEFT_NO_SYMBOL;
}

const WeftBuiltin *builtin_named(const Lsp *s, const char *name, size_t len) {
  for (size_t i = 0; i < s->builtin_count; i++)
    if (strlen(s->builtins[i].name) == len && memcmp(s->builtins[i].name, name, len) == 0) return &s->builtins[i];
  return NULL;
}

Doc *doc_imported(Lsp *s, const Doc *d, int symbol) {
  if (symbol < 0 || !d->path || d->symbols[symbol].kind != WEFT_SYMBOL_FILE) return NULL;
  char *path = path_beside(d->path, d->symbols[symbol].signature);
  Doc *other = doc_of_path(s, path);
  free(path);
  return other;
}

static int parameter_named(const Doc *d, int function, const char *name) {
  for (size_t i = 0; i < d->symbol_count; i++)
    if (d->symbols[i].parent == function && d->symbols[i].kind == WEFT_SYMBOL_PARAMETER &&
        strcmp(d->symbols[i].name, name) == 0)
      return (int)i;
  return WEFT_NO_SYMBOL;
}

/* What a mention of a document means, there or in a file that it imports. */
static Target meaning_of(Lsp *s, Doc *d, const WeftMention *m) {
  Target t = {.symbol = WEFT_NO_SYMBOL, .mention = m};
  if (m->symbol >= 0) {
    t.doc = d;
    t.symbol = m->symbol;
  } else if (m->builtin && m->kind != WEFT_MENTION_ARGUMENT) {
    t.builtin = builtin_named(s, m->name, strlen(m->name));
  } else if (m->imported >= 0) {
    Doc *other = doc_imported(s, d, m->imported);
    int found = other ? global_named(other, m->kind == WEFT_MENTION_ARGUMENT ? m->function : m->name) : WEFT_NO_SYMBOL;
    if (found >= 0 && m->kind == WEFT_MENTION_ARGUMENT) found = parameter_named(other, found, m->name);
    if (found >= 0) t.doc = other, t.symbol = found;
  }
  return t;
}

Target find_target(Lsp *s, Doc *d, size_t at) {
  const WeftMention *m = mention_under(d, at);
  return m ? meaning_of(s, d, m) : (Target){.symbol = WEFT_NO_SYMBOL};
}

/* ---- definition ---------------------------------------------------------------------------------- */

static void put_location(const Lsp *s, const Doc *d, Out *o, size_t from, size_t to) {
  put_text(o, "{\"uri\":");
  put_json_text(o, d->uri);
  put_text(o, ",\"range\":");
  put_range(s, d, o, from, to);
  put_text(o, "}");
}

/* The import whose path, or any other part but its name, stands at `at`. */
static int import_at(const Doc *d, size_t at) {
  for (size_t i = 0; i < d->symbol_count; i++)
    if (d->symbols[i].kind == WEFT_SYMBOL_FILE && at >= d->symbols[i].from && at < d->symbols[i].to) return (int)i;
  return WEFT_NO_SYMBOL;
}

void lsp_definition(Lsp *s, Doc *d, size_t at, Reply *r) {
  Target t = find_target(s, d, at);
  Out source = {0};
  if (t.doc) {
    const WeftSymbol *y = &t.doc->symbols[t.symbol];
    put_location(s, t.doc, &r->result, y->at, y->at + strlen(y->name));
  } else if (t.builtin && s->sources && builtin_source(s, t.builtin->name, &source)) {
    put_format(&r->result, "{\"uri\":\"weft:/%s.weft\",\"range\":{\"start\":{\"line\":0,\"character\":0},"
                           "\"end\":{\"line\":0,\"character\":0}}}", t.builtin->name);
  } else if (!t.mention && import_at(d, at) >= 0) {
    Doc *other = doc_imported(s, d, import_at(d, at));
    if (other) put_location(s, other, &r->result, 0, 0);
  }
  out_free(&source);
  if (!r->result.len) put_text(&r->result, "null");
}

/* ---- all mentions -------------------------------------------------------------------------------- */

/* Files of the project, so many at most; hidden folders and those that hold no sources are passed over. */
enum { FILES_MOST = 2000, FOLDERS_DEEP = 12 };
typedef struct Files {
  char **paths;
  size_t count;
} Files;

static bool is_source_folder(const char *name) {
  return name[0] != '.' && strcmp(name, "build") != 0 && strcmp(name, "node_modules") != 0;
}

static void find_files(Files *f, const char *folder, int depth) {
  DIR *dir = depth < FOLDERS_DEEP ? opendir(folder) : NULL;
  for (struct dirent *e; dir && f->count < FILES_MOST && (e = readdir(dir));) {
    char *path = NULL;
    struct stat about;
    size_t n = strlen(e->d_name);
    if (e->d_name[0] == '.' || asprintf(&path, "%s/%s", folder, e->d_name) < 0) continue;
    bool there = lstat(path, &about) == 0; /* a link may lead in a circle */
    if (there && S_ISDIR(about.st_mode) && is_source_folder(e->d_name)) find_files(f, path, depth + 1);
    if (there && S_ISREG(about.st_mode) && n > 5 && strcmp(e->d_name + n - 5, ".weft") == 0) {
      f->paths = grow(f->paths, sizeof(char *) * (f->count + 1));
      f->paths[f->count++] = path;
      path = NULL;
    }
    free(path);
  }
  if (dir) closedir(dir);
}

/* Can the file mention the name? It is looked for as bytes. */
static bool has_bytes(const char *path, const char *name) {
  FILE *f = fopen(path, "re");
  char buffer[1 << 16];
  size_t n = strlen(name), kept = 0, got;
  bool found = false;
  while (f && !found && n < sizeof buffer / 2 && (got = fread(buffer + kept, 1, sizeof buffer - kept, f))) {
    found = memmem(buffer, kept + got, name, n);
    size_t left = n - 1 < kept + got ? n - 1 : kept + got;
    memmove(buffer, buffer + kept + got - left, left);
    kept = left;
  }
  if (f) fclose(f);
  return found;
}

static int path_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Calls visit for every mention of what `t` is, in its document, and where it can be seen in others, in the project and
 * in those that are open. */
typedef void Visit(void *context, Doc *d, const WeftMention *m);

static bool same_target(Lsp *s, Doc *d, const WeftMention *m, Target t) {
  Target other = meaning_of(s, d, m);
  if (t.builtin) return other.builtin == t.builtin;
  return other.doc == t.doc && other.symbol == t.symbol;
}

static void visit_doc(Lsp *s, Doc *d, Target t, Visit *visit, void *context) {
  doc_read(s, d);
  for (size_t i = 0; i < d->mention_count; i++) {
    const WeftMention *m = &d->mentions[i];
    bool may = t.builtin ? m->builtin : d == t.doc ? m->symbol == t.symbol : m->imported >= 0;
    if (may && same_target(s, d, m, t)) visit(context, d, m);
  }
}

static void visit_mentions(Lsp *s, Doc *asked, Target t, Visit *visit, void *context) {
  const WeftSymbol *y = t.doc ? &t.doc->symbols[t.symbol] : NULL;
  Doc *home = t.doc ? t.doc : asked;
  visit_doc(s, home, t, visit, context);
  bool outside = y && home->path && (y->global || (y->kind == WEFT_SYMBOL_PARAMETER && y->parent >= 0 &&
                                                   home->symbols[y->parent].global));
  if (!outside) return;
  Files files = {0};
  if (s->root) find_files(&files, s->root, 0);
  for (size_t i = 0; i < s->doc_count; i++) {
    if (!s->docs[i]->path || !(s->docs[i]->open || s->docs[i] == asked)) continue;
    files.paths = grow(files.paths, sizeof(char *) * (files.count + 1));
    files.paths[files.count++] = copy_bytes(s->docs[i]->path, strlen(s->docs[i]->path));
  }
  if (files.count) qsort(files.paths, files.count, sizeof(char *), path_order);
  for (size_t i = 0; i < files.count; i++) {
    bool again = i && strcmp(files.paths[i], files.paths[i - 1]) == 0;
    Doc *d = NULL;
    for (size_t k = 0; k < s->doc_count; k++)
      if (s->docs[k]->open && s->docs[k]->path && strcmp(s->docs[k]->path, files.paths[i]) == 0) d = s->docs[k];
    if (again || strcmp(files.paths[i], home->path) == 0) continue;
    if (!d && has_bytes(files.paths[i], y->name)) d = doc_of_path(s, files.paths[i]);
    if (d) visit_doc(s, d, t, visit, context);
  }
  for (size_t i = 0; i < files.count; i++) free(files.paths[i]);
  free(files.paths);
}

typedef struct Listing {
  Lsp *s;
  Out *to;
  bool declaration;
  size_t count;
} Listing;

static void list_reference(void *context, Doc *d, const WeftMention *m) {
  Listing *l = context;
  if (m->kind == WEFT_MENTION_DECLARES && !l->declaration) return;
  if (l->count++) put_text(l->to, ",");
  put_location(l->s, d, l->to, m->at, m->at + m->length);
}

void lsp_references(Lsp *s, Doc *d, size_t at, bool declaration, Reply *r) {
  Target t = find_target(s, d, at);
  Listing l = {s, &r->result, declaration, 0};
  put_text(&r->result, "[");
  if (t.doc || t.builtin) visit_mentions(s, d, t, list_reference, &l);
  put_text(&r->result, "]");
}

void lsp_highlight(Lsp *s, Doc *d, size_t at, Reply *r) {
  Target t = find_target(s, d, at);
  size_t count = 0;
  put_text(&r->result, "[");
  for (size_t i = 0; (t.doc || t.builtin) && i < d->mention_count; i++) {
    const WeftMention *m = &d->mentions[i];
    if (!same_target(s, d, m, t)) continue;
    bool writes = m->kind == WEFT_MENTION_DECLARES || m->kind == WEFT_MENTION_UPDATES;
    put_text(&r->result, count++ ? ",{\"range\":" : "{\"range\":");
    put_range(s, d, &r->result, m->at, m->at + m->length);
    put_format(&r->result, ",\"kind\":%d}", writes ? 3 : 2);
  }
  put_text(&r->result, "]");
}

/* ---- renaming ------------------------------------------------------------------------------------ */

typedef struct Edit {
  Doc *doc;
  size_t at, length;
  bool shared;     /* {x} */
  bool declares;   /* in a pattern {x}: the key stays in front */
} Edit;
typedef struct Edits {
  Edit *all;
  size_t count;
  const WeftMention *method; /* the first a.f(x), where it is not sure that f is this function */
  Doc *method_doc;
} Edits;

static void note_edit(void *context, Doc *d, const WeftMention *m) {
  Edits *e = context;
  e->all = grow(e->all, sizeof *e->all * (e->count + 1));
  e->all[e->count++] = (Edit){d, m->at, m->length, m->shared, m->kind == WEFT_MENTION_DECLARES};
  if (m->kind == WEFT_MENTION_CALLS && !e->method) e->method = m, e->method_doc = d;
}

static bool can_rename(Lsp *s, Doc *d, size_t at, Target *t, Reply *r) {
  *t = find_target(s, d, at);
  if (t->doc) return true;
  if (t->builtin) reply_error(r, LSP_FAILED, "%s is part of the language and cannot be renamed", t->builtin->name);
  else if (t->mention && (t->mention->kind == WEFT_MENTION_FIELD || t->mention->kind == WEFT_MENTION_KEY))
    reply_error(r, LSP_FAILED, "%s is a field: which records have it is known only when the program runs",
                t->mention->name);
  else if (t->mention) reply_error(r, LSP_FAILED, "where %s is declared is not known", t->mention->name);
  else reply_error(r, LSP_FAILED, "there is no name here");
  return false;
}

void lsp_prepare_rename(Lsp *s, Doc *d, size_t at, Reply *r) {
  Target t;
  if (!can_rename(s, d, at, &t, r)) return;
  put_text(&r->result, "{\"range\":");
  put_range(s, d, &r->result, t.mention->at, t.mention->at + t.mention->length);
  put_text(&r->result, ",\"placeholder\":");
  put_json_text(&r->result, t.mention->name);
  put_text(&r->result, "}");
}

/* What stands for a name that is renamed: {x} becomes {x: y}. */
static void put_edit_text(Out *o, const Edit *e, const char *name) {
  if (e->shared) {
    put_bytes(o, e->doc->text + e->at, e->length);
    put_text(o, ": ");
  }
  put_text(o, name);
}

static bool has_key(const Doc *d, const char *name, const WeftMention **where) {
  for (size_t i = 0; i < d->mention_count; i++) {
    const WeftMention *m = &d->mentions[i];
    if ((m->kind == WEFT_MENTION_KEY || m->kind == WEFT_MENTION_FIELD || m->shared) && strcmp(m->name, name) == 0)
      return *where = m, true;
  }
  return false;
}

/* The document with its edits, read again: each name must mean what it meant. Else *other is where that is not so. */
static bool keeps_meaning(Lsp *s, Doc *d, const Edits *e, const char *name, size_t *other) {
  Out text = {0};
  size_t from = 0;
  for (size_t i = 0; i < e->count; i++) {
    if (e->all[i].doc != d) continue;
    put_bytes(&text, d->text + from, e->all[i].at - from);
    put_edit_text(&text, &e->all[i], name);
    from = e->all[i].at + e->all[i].length;
  }
  put_bytes(&text, d->text + from, d->len - from);
  WeftOutline *now = NULL;
  WeftMention m = {.size = sizeof m};
  WeftProblem p = {.size = sizeof p};
  bool same = weft_outline(s->vm, text.text, text.len, &now) == WEFT_OK;
  size_t n = 0, extra = 0; /* mentions: a key {x: y} that was {x} is one more */
  *other = d->len;
  for (size_t i = 0; same && weft_outline_mention(now, i, &m); i++) {
    const WeftMention *was = n < d->mention_count ? &d->mentions[n] : NULL;
    if (was && was->shared && (m.kind == WEFT_MENTION_KEY || m.kind == WEFT_MENTION_FIELD) &&
        strcmp(m.name, was->name) == 0) {
      extra++;
      continue;
    }
    same = was && was->symbol == m.symbol && was->kind == m.kind && was->builtin == m.builtin &&
           was->imported == m.imported;
    if (!same && was) *other = was->at;
    n++;
  }
  same = same && n == d->mention_count && weft_outline_problem(now, d->problem_count, &p) == false;
  weft_outline_free(s->vm, now);
  out_free(&text);
  return same;
}

static const WeftProblem *syntax_problem(const Doc *d) {
  for (size_t i = 0; i < d->problem_count; i++)
    if (strcmp(d->problems[i].kind, "name") != 0 && strcmp(d->problems[i].kind, "type") != 0) return &d->problems[i];
  return NULL;
}

static bool check_edits(Lsp *s, const Edits *e, Target t, const char *name, Reply *r) {
  const char *old = t.doc->symbols[t.symbol].name;
  const WeftMention *key = NULL;
  if (e->method && has_key(e->method_doc, old, &key)) {
    reply_error(r, LSP_FAILED,
                "line %zu may call the function %s or a field of that name (line %zu), which is known only when the "
                "program runs", doc_line(e->method_doc, e->method->at) + 1, old, doc_line(e->method_doc, key->at) + 1);
    return false;
  }
  for (size_t i = 0; i < e->count; i++) {
    Doc *d = e->all[i].doc;
    size_t other = 0;
    if (i && e->all[i - 1].doc == d) continue;
    const WeftProblem *p = syntax_problem(d);
    if (p) {
      reply_error(r, LSP_FAILED, "line %zu has an error, so that not every %s can be found: %s", doc_line(d, p->at) + 1,
                  old, p->message);
      return false;
    }
    if (!keeps_meaning(s, d, e, name, &other)) {
      reply_error(r, LSP_FAILED, "%s is a name there already: line %zu would mean something else", name,
                  doc_line(d, other) + 1);
      return false;
    }
    if (d != t.doc && name[0] == '_' && t.doc->symbols[t.symbol].global) {
      reply_error(r, LSP_FAILED, "names that begin with _ cannot be seen by other files, and %s is used in one", old);
      return false;
    }
  }
  return true;
}

void lsp_rename(Lsp *s, Doc *d, size_t at, const char *name, Reply *r) {
  Target t;
  Edits e = {0};
  const WeftBuiltin *word = builtin_named(s, name, strlen(name));
  if (!is_name(name)) return reply_error(r, LSP_INVALID_PARAMS, "\"%.80s\" is not the name of a variable", name);
  if (word && word->kind == WEFT_BUILTIN_WORD)
    return reply_error(r, LSP_INVALID_PARAMS, "%s is a reserved word", name);
  if (!can_rename(s, d, at, &t, r)) return;
  visit_mentions(s, d, t, note_edit, &e);
  if (strcmp(name, t.doc->symbols[t.symbol].name) == 0) e.count = 0;
  else if (!check_edits(s, &e, t, name, r)) return free(e.all);
  put_text(&r->result, "{\"changes\":{");
  for (size_t i = 0; i < e.count; i++) {
    bool first = !i || e.all[i - 1].doc != e.all[i].doc;
    Out text = {0};
    if (i) put_text(&r->result, first ? "]," : ",");
    if (first) put_json_text(&r->result, e.all[i].doc->uri), put_text(&r->result, ":[");
    put_text(&r->result, "{\"range\":");
    put_range(s, e.all[i].doc, &r->result, e.all[i].at, e.all[i].at + e.all[i].length);
    put_text(&r->result, ",\"newText\":");
    put_edit_text(&text, &e.all[i], name);
    put_json(&r->result, text.text, text.len);
    put_text(&r->result, "}");
    out_free(&text);
  }
  put_text(&r->result, e.count ? "]}}" : "}}");
  free(e.all);
}

/* ---- symbols, folds ------------------------------------------------------------------------------ */

/* Those that an outline shows: functions, variables of the module, imports. */
static bool is_shown(const WeftSymbol *y) { return y->global || y->kind == WEFT_SYMBOL_FUNCTION; }

static int symbol_kind(const WeftSymbol *y) {
  enum { MODULE = 2, FUNCTION = 12, VARIABLE = 13 };
  return y->kind == WEFT_SYMBOL_FUNCTION ? FUNCTION : y->kind >= WEFT_SYMBOL_FILE ? MODULE : VARIABLE;
}

static void put_symbol(Lsp *s, Doc *d, size_t i, Out *o) {
  const WeftSymbol *y = &d->symbols[i];
  put_text(o, "{\"name\":");
  put_json_text(o, y->name);
  put_format(o, ",\"kind\":%d", symbol_kind(y));
  if (!s->tree) {
    put_text(o, ",\"location\":");
    put_location(s, d, o, y->from, y->to);
    if (y->parent >= 0) put_text(o, ",\"containerName\":"), put_json_text(o, d->symbols[y->parent].name);
    put_text(o, "}");
    return;
  }
  if (*y->signature) put_text(o, ",\"detail\":"), put_json_text(o, y->signature);
  put_text(o, ",\"range\":");
  put_range(s, d, o, y->from, y->to);
  put_text(o, ",\"selectionRange\":");
  put_range(s, d, o, y->at, y->at + strlen(y->name));
}

/* Symbols from *i on whose function is `parent`; they stand in the order of their places, and functions nest. */
static void put_symbols(Lsp *s, Doc *d, size_t *i, int parent, Out *o) {
  size_t count = 0;
  put_text(o, "[");
  while (*i < d->symbol_count) {
    size_t at = *i;
    const WeftSymbol *y = &d->symbols[at];
    if (s->tree && is_shown(y) && y->parent != parent && parent >= 0) break;
    ++*i;
    if (!is_shown(y)) continue;
    if (count++) put_text(o, ",");
    put_symbol(s, d, at, o);
    if (!s->tree) continue;
    put_text(o, ",\"children\":");
    put_symbols(s, d, i, (int)at, o);
    put_text(o, "}");
  }
  put_text(o, "]");
}

void lsp_symbols(Lsp *s, Doc *d, Reply *r) {
  size_t i = 0;
  put_symbols(s, d, &i, WEFT_NO_SYMBOL, &r->result);
}

/* Brackets that close on a later line, and runs of lines that are comments. */
void lsp_folds(Lsp *s, Doc *d, Reply *r) {
  (void)s;
  const unsigned char *paint = doc_paint(d);
  size_t *open = NULL, depth = 0, cap = 0, count = 0;
  put_text(&r->result, "[");
  for (size_t i = 0; i < d->len; i++) {
    if (paint[i] != WEFT_PAINT_BRACKET) continue;
    if (strchr("([{", d->text[i])) {
      if (depth == cap) open = grow(open, sizeof *open * (cap = 2 * cap + 32));
      open[depth++] = i;
    } else if (depth) {
      size_t from = doc_line(d, open[--depth]), to = doc_line(d, i);
      if (to <= from + 1) continue; /* the line with the bracket stays in view */
      put_format(&r->result, "%s{\"startLine\":%zu,\"endLine\":%zu}", count++ ? "," : "", from, to - 1);
    }
  }
  free(open);
  for (size_t line = 0, first = 0; line <= d->line_count; line++) {
    size_t at = line < d->line_count ? d->lines[line] : d->len;
    while (at < d->len && (d->text[at] == ' ' || d->text[at] == '\t')) at++;
    if (line < d->line_count && at < d->len && paint[at] == WEFT_PAINT_COMMENT) continue;
    if (line > first + 1)
      put_format(&r->result, "%s{\"startLine\":%zu,\"endLine\":%zu,\"kind\":\"comment\"}", count++ ? "," : "", first,
                 line - 1);
    first = line + 1;
  }
  put_text(&r->result, "]");
}

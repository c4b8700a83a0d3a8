/* lsp_help.c — help of the language server: hover, completion, signatures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/lsp.h"

/* ---- documentation ------------------------------------------------------------------------------- */

/* A line of code, as Markdown. */
static void put_code(Out *o, const char *code, size_t len) {
  put_text(o, "```weft\n");
  put_bytes(o, code, len);
  put_text(o, "\n```\n");
}

static void put_builtin(Out *o, const WeftBuiltin *b) {
  static const char *const kinds[] = {"", "data type", "constant", "module", "reserved word"};
  const char *end = strstr(b->doc, "; ");
  size_t said = end ? (size_t)(end - b->doc) : strlen(b->doc);
  Out code = {0};
  put_format(&code, "%s%s", b->name, b->signature);
  put_code(o, code.text, code.len);
  if (b->kind != WEFT_BUILTIN_FUNCTION) put_format(o, "%s%s", kinds[b->kind], said ? ": " : "");
  put_bytes(o, b->doc, said);
  put_text(o, "\n");
  if (end) put_code(o, end + 2, strlen(end + 2));
  out_free(&code);
}

/* The first line of what declares a symbol, without what is too long. */
static void put_declaration(Out *o, const Doc *d, const WeftSymbol *y) {
  enum { MOST = 120 };
  size_t n = 0, most = y->to - y->from < MOST ? y->to - y->from : MOST;
  while (n < most && d->text[y->from + n] != '\n' && d->text[y->from + n] != '\r') n++;
  while (n && y->from + n < d->len && ((unsigned char)d->text[y->from + n] & 0xC0) == 0x80) n--; /* whole characters */
  put_bytes(o, d->text + y->from, n);
  if (n < y->to - y->from) put_text(o, " …");
}

static const char *note_of(const Doc *d, const char *name) {
  for (size_t i = 0; i + 1 < d->note_count; i += 2)
    if (strcmp(d->notes[i], name) == 0) return d->notes[i + 1];
  return NULL;
}

/* `asked`: the document in which that is read; another one names the file. */
static void put_symbol_help(Out *o, const Doc *asked, const Doc *d, const WeftSymbol *y) {
  Out code = {0};
  if (y->kind == WEFT_SYMBOL_FUNCTION) put_format(&code, "fn %s%s", y->name, y->signature);
  else if (y->kind == WEFT_SYMBOL_PARAMETER) put_text(&code, y->signature);
  else put_declaration(&code, d, y);
  put_code(o, code.text ? code.text : "", code.len);
  out_free(&code);
  if (*y->doc) put_format(o, "%s\n\n", y->doc);
  static const char *const kinds[] = {"variable", "function", "parameter", "size", "module from a file", "module"};
  put_text(o, kinds[y->kind]);
  if (y->parent >= 0) put_format(o, " of `%s`", d->symbols[y->parent].name);
  const char *slash = d->path ? strrchr(d->path, '/') : NULL;
  if (d != asked && slash) put_format(o, ", `%s` line %zu\n", slash + 1, doc_line(d, y->at) + 1);
  else put_format(o, ", line %zu\n", doc_line(d, y->at) + 1);
  const char *note = y->global ? note_of(d, y->name) : NULL;
  if (note && *note && y->kind == WEFT_SYMBOL_VARIABLE) put_format(o, "\nwhen it ran last: %s\n", note);
}

/* {"kind": "markdown", "value": …} */
static void put_markdown(Out *to, const Out *text) {
  put_text(to, "{\"kind\":\"markdown\",\"value\":");
  put_json(to, text->text ? text->text : "", text->len);
  put_text(to, "}");
}

bool builtin_source(Lsp *s, const char *name, Out *to) {
  WeftValue *f = NULL;
  const char *text = weft_eval(s->vm, name, "<source>", &f) == WEFT_OK ? weft_dump(s->vm, f, "source") : NULL;
  if (text) put_text(to, text);
  weft_release(s->vm, f);
  return text && *text;
}

static bool is_word_byte(char c) { return (c >= '0' && c <= '9') || is_name_start(c); }

static size_t word_start(const Doc *d, size_t at) {
  while (at && is_word_byte(d->text[at - 1])) at--;
  return at;
}

static size_t word_end(const Doc *d, size_t at) {
  while (at < d->len && is_word_byte(d->text[at])) at++;
  return at;
}

/* In a comment or a text, where names are not looked up. */
static bool is_quiet(Doc *d, size_t at) {
  return at < d->len && (doc_paint(d)[at] == WEFT_PAINT_COMMENT || doc_paint(d)[at] == WEFT_PAINT_TEXT);
}

void lsp_hover(Lsp *s, Doc *d, size_t at, Reply *r) {
  Target t = find_target(s, d, at);
  Out text = {0};
  size_t from = word_start(d, at), to = word_end(d, at);
  const WeftBuiltin *word = NULL;
  if (t.mention) from = t.mention->at, to = from + t.mention->length;
  else if (from < to && !is_quiet(d, from)) word = builtin_named(s, d->text + from, to - from);
  if (t.doc) put_symbol_help(&text, d, t.doc, &t.doc->symbols[t.symbol]);
  else if (t.builtin) put_builtin(&text, t.builtin);
  else if (t.mention && t.mention->kind == WEFT_MENTION_ARGUMENT && t.mention->builtin) {
    const WeftBuiltin *b = builtin_named(s, t.mention->function, strlen(t.mention->function));
    if (b) put_text(&text, "argument of\n"), put_builtin(&text, b);
  } else if (!t.mention && from < to && !is_quiet(d, from)) { /* in a statement that is broken */
    int symbol = symbol_named(d, d->text + from, to - from, from);
    if (symbol >= 0) put_symbol_help(&text, d, d, &d->symbols[symbol]);
    else if (word) put_builtin(&text, word);
  }
  if (text.len) {
    put_text(&r->result, "{\"contents\":");
    put_markdown(&r->result, &text);
    put_text(&r->result, ",\"range\":");
    put_range(s, d, &r->result, from, to);
    put_text(&r->result, "}");
  } else {
    put_text(&r->result, "null");
  }
  out_free(&text);
}

/* ---- calls --------------------------------------------------------------------------------------- */

typedef struct Call {
  bool found;
  size_t open;      /* its bracket */
  size_t argument;  /* where the one at the cursor begins */
  size_t index;     /* its number */
  const char *signature, *doc; /* of the function, NULL when it is not known */
  char name[128];
  bool method;      /* the first parameter stands in front of the point */
} Call;

/* The brackets that are open at `at`: the innermost, and the last comma in it. */
static void find_call(Doc *d, size_t at, Call *c) {
  const unsigned char *paint = doc_paint(d);
  typedef struct Open {
    size_t place, commas, last;
  } Open;
  Open *open = NULL;
  size_t depth = 0, cap = 0;
  for (size_t i = 0; i < at; i++) {
    char ch = d->text[i];
    if (paint[i] == WEFT_PAINT_BRACKET && strchr("([{", ch)) {
      if (depth == cap) open = grow(open, sizeof *open * (cap = 2 * cap + 32));
      open[depth++] = (Open){i, 0, i + 1};
    } else if (paint[i] == WEFT_PAINT_BRACKET) {
      char wanted = ch == ')' ? '(' : ch == ']' ? '[' : '{';
      size_t k = depth;
      while (k && d->text[open[k - 1].place] != wanted) k--; /* those inside of it were not closed */
      if (k) depth = k - 1;
    } else if (ch == ',' && depth && paint[i] == WEFT_PAINT_PLAIN) {
      open[depth - 1].commas++;
      open[depth - 1].last = i + 1;
    }
  }
  c->found = depth && d->text[open[depth - 1].place] == '(';
  if (c->found) {
    c->open = open[depth - 1].place;
    c->index = open[depth - 1].commas;
    c->argument = open[depth - 1].last;
    while (c->argument < at && strchr(" \t\r\n", d->text[c->argument])) c->argument++;
  }
  free(open);
}

/* Names with points between them that end at `end`: "m.f". */
static size_t chain_from(const Doc *d, size_t end) {
  size_t at = word_start(d, end);
  while (at && d->text[at - 1] == '.' && at < end && word_start(d, at - 1) < at - 1) at = word_start(d, at - 1);
  return at;
}

static void take_builtin(Call *c, const WeftBuiltin *b) {
  if (b && b->kind == WEFT_BUILTIN_FUNCTION) c->signature = b->signature, c->doc = b->doc;
}

static void take_symbol(Call *c, const Doc *d, int symbol) {
  if (symbol >= 0 && d->symbols[symbol].kind == WEFT_SYMBOL_FUNCTION)
    c->signature = d->symbols[symbol].signature, c->doc = d->symbols[symbol].doc;
}

/* The module of the language that a name is; NULL: it is none. */
static const char *module_of(const Lsp *s, const Doc *d, const char *name, size_t len, size_t at) {
  int symbol = symbol_named(d, name, len, at);
  if (symbol >= 0) return d->symbols[symbol].kind == WEFT_SYMBOL_MODULE ? d->symbols[symbol].signature : NULL;
  const WeftBuiltin *b = builtin_named(s, name, len);
  return b && b->kind == WEFT_BUILTIN_MODULE ? b->name : NULL;
}

static void find_function(Lsp *s, Doc *d, Call *c) {
  size_t end = c->open, from = chain_from(d, end), last = word_start(d, end);
  if (!c->found || last == end) return;
  const char *name = d->text + last;
  size_t len = end - last;
  snprintf(c->name, sizeof c->name, "%.*s", (int)(end - from < 100 ? end - from : 100), d->text + from);
  int symbol = symbol_named(d, name, len, last);
  if (from < last) { /* behind a point */
    size_t first = from + strcspn(d->text + from, ".");
    const char *module = module_of(s, d, d->text + from, first - from, from);
    int import = symbol_named(d, d->text + from, first - from, from);
    Doc *other = first + 1 == last ? doc_imported(s, d, import) : NULL;
    char full[160];
    if (module && first + 1 == last) {
      snprintf(full, sizeof full, "%s.%.*s", module, (int)(len < 100 ? len : 100), name);
      return take_builtin(c, builtin_named(s, full, strlen(full)));
    }
    snprintf(full, sizeof full, "%.*s", (int)(len < 100 ? len : 100), name);
    if (other && global_named(other, full) >= 0) return take_symbol(c, other, global_named(other, full));
    c->method = true;
  } else if (last && d->text[last - 1] == '.') {
    c->method = true;
    snprintf(c->name, sizeof c->name, "%.*s", (int)(len < 100 ? len : 100), name);
  }
  if (symbol >= 0) take_symbol(c, d, symbol);
  else take_builtin(c, builtin_named(s, name, len));
}

/* Calls visit for each parameter of "(x, n=2)": its text. Commas in brackets and texts part nothing. */
typedef struct Part {
  const char *text;
  size_t len;
} Part;
enum { PARTS = 64 };
static size_t parameters_of(const char *signature, Part parts[PARTS]) {
  size_t n = 0, depth = 0;
  const char *s = signature, *from = s + 1;
  char quote = 0;
  for (; *s; s++) {
    if ((*s == '"' || *s == '\'') && s[-1] != '\\' && (!quote || quote == *s)) quote = quote ? 0 : *s;
    if (quote) continue;
    if (strchr("([{", *s)) depth++;
    bool closes = strchr(")]}", *s) && depth && --depth == 0;
    if ((*s == ',' && depth == 1) || closes) {
      while (*from == ' ') from++;
      if (s > from && n < PARTS) parts[n++] = (Part){from, (size_t)(s - from)};
      from = s + 1;
    }
    if (closes) break;
  }
  return n;
}

/* The name in front of its default; len 0: a pattern. */
static Part parameter_name(Part p) {
  bool rest = p.len > 3 && memcmp(p.text, "...", 3) == 0;
  const char *s = p.text + (rest ? 3 : 0);
  size_t n = 0, left = p.len - (rest ? 3 : 0);
  while (n < left && is_word_byte(s[n])) n++;
  return (Part){s, n};
}

/* The parameter that the argument at the cursor is for; `count` when there is none. */
static size_t active_parameter(const Doc *d, const Call *c, size_t at, const Part *parts, size_t count) {
  size_t end = word_end(d, c->argument), after = end;
  while (after < at && d->text[after] == ' ') after++;
  if (end > c->argument && after < at && d->text[after] == '=' && d->text[after + 1] != '=') {
    for (size_t i = 0; i < count; i++) {
      Part name = parameter_name(parts[i]);
      if (name.len == end - c->argument && memcmp(name.text, d->text + c->argument, name.len) == 0) return i;
    }
    return count;
  }
  size_t index = c->index + c->method;
  for (size_t i = 0; i < count; i++)
    if (parts[i].len > 3 && memcmp(parts[i].text, "...", 3) == 0 && index >= i) return i;
  return index < count ? index : count;
}

void lsp_signature(Lsp *s, Doc *d, size_t at, Reply *r) {
  Call c = {0};
  Part parts[PARTS];
  find_call(d, at, &c);
  if (c.found) find_function(s, d, &c);
  if (!c.signature) return put_text(&r->result, "null");
  size_t count = parameters_of(c.signature, parts), active = active_parameter(d, &c, at, parts, count);
  Out label = {0}, doc = {0};
  const char *end = strstr(c.doc, "; ");
  put_format(&label, "%s%s", c.name, c.signature);
  put_bytes(&doc, c.doc, end && builtin_named(s, c.name, strlen(c.name)) ? (size_t)(end - c.doc) : strlen(c.doc));
  put_text(&r->result, "{\"signatures\":[{\"label\":");
  put_json(&r->result, label.text, label.len);
  if (doc.len) put_text(&r->result, ",\"documentation\":"), put_json(&r->result, doc.text, doc.len);
  put_text(&r->result, ",\"parameters\":[");
  for (size_t i = 0; i < count; i++) {
    put_text(&r->result, i ? ",{\"label\":" : "{\"label\":");
    put_json(&r->result, parts[i].text, parts[i].len);
    put_text(&r->result, "}");
  }
  put_text(&r->result, "]}],\"activeSignature\":0");
  if (active < count) put_format(&r->result, ",\"activeParameter\":%zu", active);
  put_text(&r->result, "}");
  out_free(&label);
  out_free(&doc);
}

/* ---- completion ---------------------------------------------------------------------------------- */

enum { ITEM_METHOD = 2, ITEM_FUNCTION = 3, ITEM_FIELD = 5, ITEM_VARIABLE = 6, ITEM_MODULE = 9, ITEM_PROPERTY = 10,
       ITEM_KEYWORD = 14, ITEM_CONSTANT = 21, ITEM_TYPE = 25 };

typedef struct Items {
  Lsp *s;
  Out *to;
  const char *prefix; /* what is there of the word */
  size_t prefix_len, count;
  bool more; /* than ITEMS_MOST: the client is to ask again when more of the word is there */
} Items;
enum { ITEMS_MOST = 2000 };

static bool fits_prefix(const Items *it, const char *name, size_t len) {
  return len >= it->prefix_len && memcmp(name, it->prefix, it->prefix_len) == 0;
}

/* rank: items of a lower one stand first. */
static void put_item(Items *it, const char *name, size_t len, int kind, int rank, const char *behind,
                     const char *detail, const Out *doc) {
  if (!fits_prefix(it, name, len)) return;
  if (it->count >= ITEMS_MOST) {
    it->more = true;
    return;
  }
  Out label = {0}, sort = {0};
  put_bytes(&label, name, len);
  put_text(&label, behind);
  put_format(&sort, "%d", rank);
  put_bytes(&sort, name, len);
  put_text(it->to, it->count++ ? ",{\"label\":" : "{\"label\":");
  put_json(it->to, label.text, label.len);
  put_format(it->to, ",\"kind\":%d", kind);
  if (*detail) put_text(it->to, ",\"detail\":"), put_json_text(it->to, detail);
  if (doc && doc->len) put_text(it->to, ",\"documentation\":"), put_markdown(it->to, doc);
  put_text(it->to, ",\"sortText\":");
  put_json(it->to, sort.text, sort.len);
  put_text(it->to, "}");
  out_free(&label);
  out_free(&sort);
}

static void put_builtin_item(Items *it, const WeftBuiltin *b, const char *shown, int rank) {
  static const int item_kinds[] = {ITEM_FUNCTION, ITEM_TYPE, ITEM_CONSTANT, ITEM_MODULE, ITEM_KEYWORD};
  Out doc = {0};
  if (!fits_prefix(it, shown, strlen(shown))) return;
  if (*b->doc) put_builtin(&doc, b);
  put_item(it, shown, strlen(shown), item_kinds[b->kind], rank, "", b->signature, &doc);
  out_free(&doc);
}

static void put_symbol_item(Items *it, const Doc *asked, const Doc *d, const WeftSymbol *y, int rank) {
  bool import = y->kind >= WEFT_SYMBOL_FILE;
  int kind = y->kind == WEFT_SYMBOL_FUNCTION ? ITEM_FUNCTION : import ? ITEM_MODULE : ITEM_VARIABLE;
  const char *detail = import ? "" : y->signature;
  Out doc = {0};
  if (!fits_prefix(it, y->name, strlen(y->name))) return;
  put_symbol_help(&doc, asked, d, y);
  put_item(it, y->name, strlen(y->name), kind, rank, "", detail, &doc);
  out_free(&doc);
}

/* By names; of one name the innermost first. */
static int visible_order(const void *a, const void *b) {
  const WeftSymbol *x = *(const WeftSymbol *const *)a, *y = *(const WeftSymbol *const *)b;
  int names = strcmp(x->name, y->name);
  if (names) return names;
  if (x->global != y->global) return x->global ? 1 : -1;
  return (x->seen_from < y->seen_from) - (x->seen_from > y->seen_from);
}

/* Those that can be named here, and of each name the innermost. */
static void put_visible(Items *it, const Doc *d, size_t at, bool functions) {
  const WeftSymbol **seen = grow(NULL, sizeof *seen * d->symbol_count);
  size_t count = 0;
  for (size_t i = 0; i < d->symbol_count; i++) {
    const WeftSymbol *y = &d->symbols[i];
    bool in = y->global || (at >= y->seen_from && at <= y->seen_to);
    if (in && fits_prefix(it, y->name, strlen(y->name))) seen[count++] = y;
  }
  if (count) qsort(seen, count, sizeof *seen, visible_order);
  for (size_t i = 0; i < count; i++) {
    bool hidden = i && strcmp(seen[i]->name, seen[i - 1]->name) == 0;
    if (!hidden && (!functions || seen[i]->kind == WEFT_SYMBOL_FUNCTION)) put_symbol_item(it, d, d, seen[i], 1);
  }
  free(seen);
}

static void put_arguments(Items *it, Lsp *s, Doc *d, size_t at, size_t word) {
  Call c = {0};
  Part parts[PARTS];
  find_call(d, at, &c);
  if (!c.found || c.argument != word) return;
  find_function(s, d, &c);
  size_t count = c.signature ? parameters_of(c.signature, parts) : 0;
  for (size_t i = c.method; i < count; i++) {
    Part name = parameter_name(parts[i]);
    bool rest = parts[i].len > 3 && memcmp(parts[i].text, "...", 3) == 0;
    char *whole = copy_bytes(parts[i].text, parts[i].len);
    if (name.len && !rest) put_item(it, name.text, name.len, ITEM_PROPERTY, 0, "=", whole, NULL);
    free(whole);
  }
}

static void put_module_members(Items *it, const Lsp *s, const char *module) {
  size_t n = strlen(module);
  for (size_t i = 0; i < s->builtin_count; i++)
    if (strncmp(s->builtins[i].name, module, n) == 0 && s->builtins[i].name[n] == '.')
      put_builtin_item(it, &s->builtins[i], s->builtins[i].name + n + 1, 1);
}

static int name_order(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* WEFT_NO_SYMBOL: none of that name is seen. */
static int symbol_kind_of(const Doc *d, const char *name, size_t at) {
  int symbol = symbol_named(d, name, strlen(name), at);
  return symbol < 0 ? WEFT_NO_SYMBOL : (int)d->symbols[symbol].kind;
}

/* Behind a point: fields that the program has anywhere, properties of arrays, functions. */
static void put_fields(Items *it, Lsp *s, Doc *d, size_t at) {
  WeftCompletion c = {.size = sizeof c};
  const char **names = grow(NULL, sizeof *names * d->mention_count);
  size_t count = 0;
  for (size_t i = 0; i < d->mention_count; i++) {
    const WeftMention *m = &d->mentions[i];
    bool field = m->kind == WEFT_MENTION_FIELD || m->kind == WEFT_MENTION_KEY || m->shared;
    bool typed = m->at + m->length == at; /* the word itself */
    if (field && !typed && fits_prefix(it, m->name, m->length)) names[count++] = m->name;
  }
  if (count) qsort(names, count, sizeof *names, name_order);
  for (size_t i = 0; i < count; i++)
    if (it->count < ITEMS_MOST && !(i && strcmp(names[i], names[i - 1]) == 0) &&
        !builtin_named(s, names[i], strlen(names[i])) &&
        symbol_kind_of(d, names[i], at) != WEFT_SYMBOL_FUNCTION)
      put_item(it, names[i], strlen(names[i]), ITEM_FIELD, 0, "", "", NULL);
  free(names);
  if (weft_complete(s->vm, "_.", 2, &c) == WEFT_OK)
    for (size_t i = 0; i < c.count; i++)
      if (strcmp(c.notes[i], "property of arrays") == 0)
        put_item(it, c.words[i], strlen(c.words[i]), ITEM_PROPERTY, 0, "", c.notes[i], NULL);
  put_visible(it, d, at, true);
  for (size_t i = 0; i < s->builtin_count; i++) {
    const WeftBuiltin *b = &s->builtins[i];
    if (!fits_prefix(it, b->name, strlen(b->name))) continue;
    bool hidden = symbol_named(d, b->name, strlen(b->name), at) >= 0;
    if (b->kind == WEFT_BUILTIN_FUNCTION && !strchr(b->name, '.') && !hidden) put_builtin_item(it, b, b->name, 2);
  }
}

static void put_members(Items *it, Lsp *s, Doc *d, size_t point, size_t at) {
  size_t from = chain_from(d, point), first = word_start(d, point);
  if (from == first && first < point && !(from && d->text[from - 1] == '.')) {
    const char *module = module_of(s, d, d->text + from, point - from, from);
    Doc *other = doc_imported(s, d, symbol_named(d, d->text + from, point - from, from));
    if (module) return put_module_members(it, s, module);
    for (size_t i = 0; other && i < other->symbol_count; i++)
      if (other->symbols[i].global && other->symbols[i].name[0] != '_')
        put_symbol_item(it, d, other, &other->symbols[i], 1);
    if (other) return;
  }
  put_fields(it, s, d, at);
}

void lsp_complete(Lsp *s, Doc *d, size_t at, Reply *r) {
  size_t word = word_start(d, at);
  Items it = {s, &r->result, d->text + word, at - word, 0, false};
  bool point = word && d->text[word - 1] == '.' && !(word > 1 && d->text[word - 2] == '.');
  bool digits = word < at && d->text[word] >= '0' && d->text[word] <= '9';
  put_text(&r->result, "{\"items\":[");
  if ((at && is_quiet(d, at - 1)) || digits) {
  } else if (point) {
    put_members(&it, s, d, word - 1, at);
  } else {
    put_arguments(&it, s, d, at, word);
    put_visible(&it, d, at, false);
    for (size_t i = 0; i < s->builtin_count; i++) {
      const WeftBuiltin *b = &s->builtins[i];
      if (!strchr(b->name, '.') && fits_prefix(&it, b->name, strlen(b->name)) &&
          symbol_named(d, b->name, strlen(b->name), at) < 0)
        put_builtin_item(&it, b, b->name, b->kind == WEFT_BUILTIN_WORD ? 3 : 2);
    }
  }
  put_format(&r->result, "],\"isIncomplete\":%s}", it.more ? "true" : "false");
}

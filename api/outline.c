/* outline.c — what a program declares, what its names mean, and its errors, for editors (see weft.h). The compiler
 * says what names mean (ScopeHook); what is added here needs no scopes: documentation, fields, arguments by name. */
#include <stdlib.h>
#include <string.h>

#include "api/inner.h"
#include "lang/compile.h"
#include "lang/dtypes.h"
#include "lang/ops.h"
#include "parser/parser.h"

enum { OUTLINE_MOST = 1 << 24, NONE = WEFT_NO_SYMBOL };

/* A node that declares a name. */
typedef struct Place {
  u32 key;      /* where the node begins, by which the hook names it */
  u32 at, from, to;
  u32 fn, outer; /* the function that it is the name of, the one that it stands in: nodes, or 0 */
  u32 node;
  u8 kind;      /* WeftSymbolKind */
  bool let;     /* it is seen behind its statement alone */
} Place;

typedef struct Symbol {
  WeftSymbol shown;
  Place place;
  bool declared;
  u32 first; /* mention, when it is not declared */
} Symbol;

struct WeftOutline {
  Arena arena;
  VEC(WeftProblem) problems;
  VEC(Symbol) symbols;
  VEC(WeftMention) mentions;
};

typedef struct Builder {
  WeftOutline *out;
  Allocator *alloc;
  const char *text;
  u32 len;
  Names names;
  Sources sources;
  ModuleScope scope;
  Ast ast;
  u32 *parents;       /* node -> the one above it */
  VEC(Place) places;  /* by their keys */
  VEC(int) locals, slots; /* id, slot -> symbol */
  VEC(Span) skipped;
  VEC(const char *) shown; /* name -> its text in the arena of the outline */
  bool refused;
} Builder;

/* ---- texts ------------------------------------------------------------------------------------ */

static char *keep_text(Builder *b, const char *s, size_t n) {
  char *copy = arena_copy(&b->out->arena, s, n);
  if (!copy) b->refused = true;
  return copy ? copy : (char *)"";
}

static const char *shown_name(Builder *b, Name name) {
  while (b->shown.count <= name)
    if (!vec_push(b->alloc, &b->shown, NULL)) return b->refused = true, "";
  const char **at = &b->shown.data[name];
  if (!*at) *at = keep_text(b, name_text(&b->names, name), name_len(&b->names, name));
  return *at;
}

/* The text from..to on one line, each run of blanks as one. */
static void put_line(Builder *b, Buf *to, u32 from, u32 end) {
  bool blank = false;
  for (u32 i = from; i < end && i < b->len; i++) {
    bool is_blank = strchr(" \t\r\n", b->text[i]) != NULL;
    if (is_blank && !blank) buf_putc(to, ' ');
    if (!is_blank) buf_putc(to, b->text[i]);
    blank = is_blank;
  }
}

static const char *line_of(Builder *b, Span at) {
  Buf line;
  buf_init(&line, b->alloc);
  put_line(b, &line, at.start, at.start + at.len);
  const char *text = keep_text(b, line.failed ? "" : buf_text(&line), line.len);
  b->refused |= line.failed;
  buf_free(&line);
  return text;
}

static const char *signature_of(Builder *b, const AstNode *fn) {
  Buf line;
  buf_init(&line, b->alloc);
  buf_putc(&line, '(');
  for (u32 i = 0; i < ast_fn_arity(fn); i++) {
    Span at = ast_node(&b->ast, ast_fn_param(&b->ast, fn, i))->span;
    if (i) buf_puts(&line, ", ");
    put_line(b, &line, at.start, at.start + at.len);
  }
  buf_putc(&line, ')');
  const char *text = keep_text(b, line.failed ? "" : buf_text(&line), line.len);
  b->refused |= line.failed;
  buf_free(&line);
  return text;
}

/* Where the first token of that name begins in a node, or the last; its beginning when there is none. */
static u32 name_in(const Builder *b, Span in, Name name, bool last) {
  Lexer l;
  Token t;
  u32 found = in.start, len = name_len(&b->names, name);
  lexer_init(&l, b->text, in.start + in.len < b->len ? in.start + in.len : b->len);
  l.pos = in.start;
  for (lexer_next(&l, &t); t.kind != TOK_EOF && t.kind != TOK_ERROR; lexer_next(&l, &t)) {
    if (t.kind != TOK_NAME || t.len != len || memcmp(b->text + t.start, name_text(&b->names, name), len) != 0) continue;
    found = t.start;
    if (!last) break;
  }
  return found;
}

/* ---- places that declare ---------------------------------------------------------------------- */

static u32 function_around(const Builder *b, u32 node) {
  do node = b->parents[node];
  while (node && ast_kind(&b->ast, node) != AST_FN);
  return node;
}

static void add_place(Builder *b, u32 node, u8 kind, u32 at, Span of, u32 fn, bool let) {
  Place p = {.key = ast_node(&b->ast, node)->span.start, .at = at, .from = of.start, .to = of.start + of.len, .fn = fn,
             .outer = function_around(b, node), .node = node, .kind = kind, .let = let};
  if (!vec_push(b->alloc, &b->places, p)) b->refused = true;
}

/* A name in a pattern: what the pattern belongs to. */
static void place_of_name(Builder *b, u32 id) {
  const Ast *ast = &b->ast;
  const AstNode *n = ast_node(ast, id);
  u32 below = id, above = b->parents[id];
  for (u32 kind = ast_kind(ast, above); above && (kind == AST_PATTERN || kind == AST_NAMED || kind == AST_SPREAD);
       kind = ast_kind(ast, above))
    below = above, above = b->parents[above];
  const AstNode *of = ast_node(ast, above);
  if (!above) return;
  if (of->kind == AST_LET && ast_kid(ast, of, 0) == below) {
    u32 value = ast_kid(ast, of, 1), fn = below == id && ast_kind(ast, value) == AST_FN ? value : 0;
    add_place(b, id, fn ? WEFT_SYMBOL_FUNCTION : WEFT_SYMBOL_VARIABLE, n->span.start, of->span, fn, true);
  } else if (of->kind == AST_FOR && ast_kid(ast, of, 0) == below) {
    add_place(b, id, WEFT_SYMBOL_VARIABLE, n->span.start, n->span, 0, false);
  } else if (of->kind == AST_TRY && ast_kid(ast, of, 1) == below) {
    add_place(b, id, WEFT_SYMBOL_VARIABLE, n->span.start, n->span, 0, false);
  } else if (of->kind == AST_PARAM && ast_kid(ast, of, 0) == below) {
    add_place(b, id, WEFT_SYMBOL_PARAMETER, n->span.start, of->span, 0, false);
  } else if (of->kind == AST_ANNOT) {
    add_place(b, id, WEFT_SYMBOL_SIZE, n->span.start, n->span, 0, false);
  }
}

static void place_of_node(Builder *b, u32 id) {
  const AstNode *n = ast_node(&b->ast, id);
  if (n->kind == AST_NAME) place_of_name(b, id);
  if (!n->ref) return;
  if (n->kind == AST_FN) {
    add_place(b, id, WEFT_SYMBOL_FUNCTION, name_in(b, n->span, n->ref, false), n->span, id, false);
  } else if (n->kind == AST_PARAM) {
    add_place(b, id, WEFT_SYMBOL_PARAMETER, name_in(b, n->span, n->ref, false), n->span, 0, false);
  } else if (n->kind == AST_IMPORT) {
    bool file = ast_kind(&b->ast, ast_kid(&b->ast, n, 0)) == AST_TEXT;
    u32 at = name_in(b, n->span, n->ref, true);
    add_place(b, id, file ? WEFT_SYMBOL_FILE : WEFT_SYMBOL_MODULE, at, n->span, 0, false);
  }
}

static int place_order(const void *a, const void *b) {
  u32 x = ((const Place *)a)->key, y = ((const Place *)b)->key;
  return (x > y) - (x < y);
}

static void find_places(Builder *b) {
  const Ast *ast = &b->ast;
  b->parents = mem_alloc_zero(b->alloc, sizeof *b->parents * ast->node_count);
  if (!b->parents) b->refused = true;
  for (u32 id = 1; !b->refused && id < ast->node_count; id++) {
    const AstNode *n = ast_node(ast, id);
    for (u32 i = 0; i < n->count; i++) b->parents[ast_kid(ast, n, i)] = id;
  }
  for (u32 id = 1; !b->refused && id < ast->node_count; id++) place_of_node(b, id);
  if (b->places.count) qsort(b->places.data, b->places.count, sizeof *b->places.data, place_order);
}

static const Place *find_place(const Builder *b, u32 key) {
  const Place wanted = {.key = key};
  if (!b->places.count) return NULL;
  return bsearch(&wanted, b->places.data, b->places.count, sizeof wanted, place_order);
}

/* ---- what the compiler tells ------------------------------------------------------------------ */

static void add_mention(Builder *b, WeftMention m) {
  m.size = sizeof m;
  if (!m.name) m.name = "";
  if (!m.function) m.function = "";
  if (!vec_push(b->alloc, &b->out->mentions, m)) b->refused = true;
}

static void mention(Builder *b, WeftMentionKind kind, u32 at, Name name, int symbol, bool builtin) {
  add_mention(b, (WeftMention){.kind = kind, .at = at, .length = name_len(&b->names, name),
                               .name = shown_name(b, name), .symbol = symbol, .builtin = builtin, .imported = NONE});
}

static int new_symbol(Builder *b, Name name, bool global) {
  Symbol s = {.shown = {.size = sizeof s.shown, .name = shown_name(b, name), .seen_to = b->len, .global = global,
                        .parent = NONE, .signature = "", .doc = ""},
              .first = UINT32_MAX};
  if (!vec_push(b->alloc, &b->out->symbols, s)) return b->refused = true, NONE;
  return (int)b->out->symbols.count - 1;
}

static void describe_symbol(Builder *b, Symbol *s, const Place *p) {
  const Ast *ast = &b->ast;
  const AstNode *fn = ast_node(ast, p->fn), *n = ast_node(ast, p->node);
  if (p->kind == WEFT_SYMBOL_FUNCTION) {
    u32 doc = ast_fn_doc(ast, fn);
    s->shown.signature = signature_of(b, fn);
    const AstText *text = doc ? &ast->texts[ast_node(ast, doc)->ref] : NULL;
    if (text) s->shown.doc = keep_text(b, text->text, text->len);
  } else if (p->kind == WEFT_SYMBOL_PARAMETER) {
    s->shown.signature = line_of(b, (Span){0, p->from, p->to - p->from});
  } else if (p->kind == WEFT_SYMBOL_FILE) {
    const AstText *path = &ast->texts[ast_node(ast, ast_kid(ast, n, 0))->ref];
    s->shown.signature = keep_text(b, path->text, path->len);
  } else if (p->kind == WEFT_SYMBOL_MODULE) {
    s->shown.signature = shown_name(b, ast_node(ast, ast_kid(ast, n, 0))->ref);
  }
}

static void declare(Builder *b, int symbol, Name name, Span at) {
  const Place *p = find_place(b, at.start);
  if (symbol == NONE) return;
  mention(b, WEFT_MENTION_DECLARES, p ? p->at : at.start, name, symbol, false);
  Symbol *s = &b->out->symbols.data[symbol];
  if (s->declared) return;
  s->declared = true;
  s->place = p ? *p : (Place){.at = at.start, .from = at.start, .to = at.start + at.len};
  s->shown.kind = s->place.kind;
  s->shown.at = s->place.at;
  s->shown.from = s->place.from;
  s->shown.to = s->place.to;
  s->shown.seen_from = s->place.let ? s->place.to : s->place.from;
  if (p) describe_symbol(b, s, p);
}

static void hear_local(void *context, u32 id, Name name, Span at) {
  Builder *b = context;
  int symbol = new_symbol(b, name, false);
  while (b->locals.count <= id)
    if (!vec_push(b->alloc, &b->locals, NONE)) return (void)(b->refused = true);
  b->locals.data[id] = symbol;
  declare(b, symbol, name, at);
}

static int symbol_of_slot(Builder *b, u32 slot, Name name) {
  while (b->slots.count <= slot)
    if (!vec_push(b->alloc, &b->slots, NONE)) return b->refused = true, NONE;
  if (b->slots.data[slot] == NONE) b->slots.data[slot] = new_symbol(b, name, true);
  return b->slots.data[slot];
}

static void hear_module(void *context, u32 slot, Name name, Span at) {
  declare(context, symbol_of_slot(context, slot, name), name, at);
}

static void hear_end(void *context, u32 id, Span of) {
  Builder *b = context;
  if (id < b->locals.count && b->locals.data[id] != NONE)
    b->out->symbols.data[b->locals.data[id]].shown.seen_to = of.start + of.len;
}

static WeftMentionKind mention_kind(ScopeUse use) {
  return use == SCOPE_reads ? WEFT_MENTION_READS : use == SCOPE_updates ? WEFT_MENTION_UPDATES : WEFT_MENTION_CALLS;
}

static void hear_use(void *context, u32 id, Name name, Span at, ScopeUse use) {
  Builder *b = context;
  if (id < b->locals.count) mention(b, mention_kind(use), at.start, name, b->locals.data[id], false);
}

static void hear_use_module(void *context, u32 slot, Name name, bool builtin, Span at, ScopeUse use) {
  Builder *b = context;
  int symbol = builtin ? NONE : symbol_of_slot(b, slot, name);
  mention(b, mention_kind(use), at.start, name, symbol, builtin);
}

/* ---- problems --------------------------------------------------------------------------------- */

static void add_problem(Builder *b, const Diag *diag) {
  size_t at = diag->span.start < b->len ? diag->span.start : b->len, left = b->len - at;
  WeftProblem p = {.size = sizeof p, .at = at, .length = diag->span.len < left ? diag->span.len : left,
                   .kind = error_kind_name(diag->kind), .message = keep_text(b, diag->message, strlen(diag->message))};
  for (u32 i = 0; i < b->out->problems.count; i++)
    if (b->out->problems.data[i].at == p.at && strcmp(b->out->problems.data[i].message, p.message) == 0) return;
  if (!vec_push(b->alloc, &b->out->problems, p)) b->refused = true;
}

static void hear_syntax(void *context, const Diag *diag, Span skipped) {
  Builder *b = context;
  add_problem(b, diag);
  if (skipped.len && !vec_push(b->alloc, &b->skipped, skipped)) b->refused = true;
}

/* Does a statement that was left out have the name in it? Then it may have declared it. */
static bool is_in_skipped(const Builder *b, Span at) {
  for (u32 i = 0; i < b->skipped.count; i++) {
    Span s = b->skipped.data[i];
    Lexer l;
    Token t;
    lexer_init(&l, b->text, s.start + s.len);
    l.pos = s.start;
    for (u32 before = UINT32_MAX; l.pos != before;) {
      before = l.pos;
      lexer_next(&l, &t);
      if (t.kind == TOK_NAME && t.len == at.len && memcmp(b->text + t.start, b->text + at.start, t.len) == 0)
        return true;
    }
  }
  return false;
}

static void hear_problem(void *context, const Diag *diag) {
  Builder *b = context;
  enum { MOST = 1000 };
  if (diag->kind == EK_name && is_in_skipped(b, diag->span)) return;
  if (b->out->problems.count < MOST) add_problem(b, diag);
}

/* ---- fields and arguments --------------------------------------------------------------------- */

static int mention_rank(const WeftMention *m) {
  static const u8 ranks[] = {[WEFT_MENTION_MEMBER] = 0, [WEFT_MENTION_DECLARES] = 1, [WEFT_MENTION_ARGUMENT] = 2,
                             [WEFT_MENTION_UPDATES] = 3, [WEFT_MENTION_READS] = 4, [WEFT_MENTION_CALLS] = 5,
                             [WEFT_MENTION_FIELD] = 6, [WEFT_MENTION_KEY] = 7};
  return ranks[m->kind];
}

static int mention_order(const void *a, const void *b) {
  const WeftMention *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return mention_rank(x) - mention_rank(y);
}

/* One mention a place: what says most of it. */
static void sort_mentions(WeftOutline *o) {
  u32 kept = 0;
  if (o->mentions.count) qsort(o->mentions.data, o->mentions.count, sizeof *o->mentions.data, mention_order);
  for (u32 i = 0; i < o->mentions.count; i++) {
    if (kept && o->mentions.data[kept - 1].at == o->mentions.data[i].at) {
      o->mentions.data[kept - 1].shared |= o->mentions.data[i].shared;
      continue;
    }
    o->mentions.data[kept++] = o->mentions.data[i];
  }
  o->mentions.count = kept;
}

/* What stands there, among the first `count`, which are sorted. */
static const WeftMention *mention_at(const WeftOutline *o, u32 count, u32 at) {
  u32 low = 0, high = count;
  while (low < high) {
    u32 mid = low + (high - low) / 2;
    if (o->mentions.data[mid].at < at) low = mid + 1;
    else high = mid;
  }
  return low < count && o->mentions.data[low].at == at ? &o->mentions.data[low] : NULL;
}

/* Where the name of a field stands; UINT32_MAX: it is not found. */
static u32 field_place(const Builder *b, const AstNode *n) {
  u32 len = name_len(&b->names, n->ref), end = n->span.start + n->span.len;
  while (n->flags & AF_PARENS && end > n->span.start + len && !is_name_byte(b->text[end - 1])) end--;
  bool there = end >= n->span.start + len && memcmp(b->text + end - len, name_text(&b->names, n->ref), len) == 0;
  return there ? end - len : UINT32_MAX;
}

/* The module of the language that a node names; "" when it names none. */
static const char *module_named(const Builder *b, const WeftMention *m) {
  if (m && m->symbol >= 0 && b->out->symbols.data[m->symbol].shown.kind == WEFT_SYMBOL_MODULE)
    return b->out->symbols.data[m->symbol].shown.signature;
  return m && m->builtin && builtin_find(m->name, strlen(m->name)).kind == BUILTIN_MODULE ? m->name : "";
}

static void mention_field(Builder *b, const AstNode *n, u32 sorted) {
  const AstNode *of = ast_node(&b->ast, ast_kid(&b->ast, n, 0));
  const WeftMention *m = of->kind == AST_NAME ? mention_at(b->out, sorted, of->span.start) : NULL;
  const char *module = module_named(b, m), *name = shown_name(b, n->ref);
  u32 at = field_place(b, n);
  if (at == UINT32_MAX) return;
  WeftMention field = {.kind = WEFT_MENTION_FIELD, .at = at, .length = name_len(&b->names, n->ref), .name = name,
                       .symbol = NONE, .imported = NONE};
  if (*module) {
    const char *full = arena_printf(&b->out->arena, "%s.%s", module, name);
    if (!full) b->refused = true;
    if (full && op_by_name(full, strlen(full)))
      field.kind = WEFT_MENTION_MEMBER, field.builtin = true, field.name = full;
  } else if (m && m->symbol >= 0 && b->out->symbols.data[m->symbol].shown.kind == WEFT_SYMBOL_FILE) {
    field.kind = WEFT_MENTION_MEMBER;
    field.imported = m->symbol;
  }
  add_mention(b, field);
}

static void mention_key(Builder *b, const AstNode *n, WeftMentionKind kind) {
  const AstNode *value = ast_node(&b->ast, ast_kid(&b->ast, n, 0));
  u32 at = n->span.start, len = name_len(&b->names, n->ref);
  if (at < b->len && b->text[at] == '"') at++;
  if (!len || at + len > b->len || memcmp(b->text + at, name_text(&b->names, n->ref), len) != 0) return;
  bool shared = value->kind == AST_NAME && value->span.start == at;
  add_mention(b, (WeftMention){.kind = kind, .at = at, .length = len, .name = shown_name(b, n->ref), .symbol = NONE,
                               .shared = shared, .imported = NONE});
}

static int parameter_of(const Builder *b, u32 fn, Name name, u32 sorted) {
  const AstNode *n = ast_node(&b->ast, fn);
  for (u32 i = 0; fn && i < ast_fn_arity(n); i++) {
    const AstNode *param = ast_node(&b->ast, ast_fn_param(&b->ast, n, i));
    if (param->ref != name || param->flags & AF_REST) continue;
    const WeftMention *m = mention_at(b->out, sorted, name_in(b, param->span, name, false));
    return m ? m->symbol : NONE;
  }
  return NONE;
}

static void mention_argument(Builder *b, const AstNode *call, const AstNode *n, u32 sorted) {
  const AstNode *callee = ast_node(&b->ast, ast_kid(&b->ast, call, 0));
  WeftMention arg = {.kind = WEFT_MENTION_ARGUMENT, .at = n->span.start, .length = name_len(&b->names, n->ref),
                     .name = shown_name(b, n->ref), .symbol = NONE, .imported = NONE};
  u32 at = callee->kind == AST_NAME ? callee->span.start : UINT32_MAX;
  if (callee->kind == AST_FIELD) at = field_place(b, callee);
  const WeftMention *m = at == UINT32_MAX ? NULL : mention_at(b->out, sorted, at);
  if (m && (m->builtin || m->symbol >= 0 || m->imported >= 0)) {
    arg.builtin = m->builtin;
    arg.imported = m->imported;
    arg.function = m->name;
    if (m->symbol >= 0) arg.symbol = parameter_of(b, b->out->symbols.data[m->symbol].place.fn, n->ref, sorted);
  }
  add_mention(b, arg);
}

static void mention_fields(Builder *b) {
  const Ast *ast = &b->ast;
  u32 sorted = b->out->mentions.count;
  for (u32 id = 1; !b->refused && id < ast->node_count; id++) {
    const AstNode *n = ast_node(ast, id), *above = ast_node(ast, b->parents[id]);
    if (n->kind == AST_FIELD) mention_field(b, n, sorted);
    if (n->kind == AST_NAMED && above->kind == AST_RECORD) mention_key(b, n, WEFT_MENTION_KEY);
    if (n->kind == AST_NAMED && above->kind == AST_PATTERN) mention_key(b, n, WEFT_MENTION_FIELD);
  }
  sort_mentions(b->out);
  sorted = b->out->mentions.count;
  for (u32 id = 1; !b->refused && id < ast->node_count; id++) {
    const AstNode *n = ast_node(ast, id), *above = ast_node(ast, b->parents[id]);
    if (n->kind == AST_NAMED && above->kind == AST_CALL) mention_argument(b, above, n, sorted);
  }
  sort_mentions(b->out);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b) {
  const Symbol *x = *(Symbol *const *)a, *y = *(Symbol *const *)b;
  if (x->shown.at != y->shown.at) return x->shown.at < y->shown.at ? -1 : 1;
  return (x > y) - (x < y);
}

/* Functions around symbols, and symbols in the order of their places. */
static void settle_symbols(Builder *b) {
  WeftOutline *o = b->out;
  u32 n = o->symbols.count;
  int *of_node = mem_alloc(b->alloc, sizeof *of_node * (b->ast.node_count + 1));
  int *now = mem_alloc(b->alloc, sizeof *now * (n + 1));
  Symbol **order = mem_alloc(b->alloc, sizeof(Symbol *) * (n + 1));
  Symbol *sorted = mem_alloc(b->alloc, sizeof *sorted * (n + 1));
  b->refused |= !of_node || !now || !order || !sorted;
  for (u32 i = 0; !b->refused && i < b->ast.node_count; i++) of_node[i] = NONE;
  for (u32 i = 0; !b->refused && i < o->mentions.count; i++) { /* the place of one whose declaration is broken */
    const WeftMention *m = &o->mentions.data[i];
    Symbol *s = m->symbol >= 0 ? &o->symbols.data[m->symbol] : NULL;
    if (s && !s->declared) s->declared = true, s->shown.at = s->shown.from = m->at, s->shown.to = m->at + m->length;
  }
  for (u32 i = 0; !b->refused && i < n; i++) {
    order[i] = &o->symbols.data[i];
    if (order[i]->place.fn) of_node[order[i]->place.fn] = (int)i;
  }
  if (!b->refused && n) qsort(order, n, sizeof *order, by_place);
  for (u32 i = 0; !b->refused && i < n; i++) now[order[i] - o->symbols.data] = (int)i;
  for (u32 i = 0; !b->refused && i < n; i++) {
    sorted[i] = *order[i];
    u32 fn = sorted[i].place.outer;
    while (fn && of_node[fn] == NONE) fn = function_around(b, fn);
    sorted[i].shown.parent = fn ? now[of_node[fn]] : NONE;
  }
  for (u32 i = 0; !b->refused && i < o->mentions.count; i++) {
    WeftMention *m = &o->mentions.data[i];
    if (m->symbol >= 0) m->symbol = now[m->symbol];
    if (m->imported >= 0) m->imported = now[m->imported];
  }
  if (!b->refused && n) memcpy(o->symbols.data, sorted, sizeof *sorted * n);
  mem_free(b->alloc, of_node, sizeof *of_node * (b->ast.node_count + 1));
  mem_free(b->alloc, now, sizeof *now * (n + 1));
  mem_free(b->alloc, order, sizeof(Symbol *) * (n + 1));
  mem_free(b->alloc, sorted, sizeof *sorted * (n + 1));
}

static int problem_order(const void *a, const void *b) {
  const WeftProblem *x = a, *y = b;
  return (x->at > y->at) - (x->at < y->at);
}

static void build(Builder *b, Arena *arena) {
  const ScopeHook hook = {b, hear_local, hear_module, hear_end, hear_use, hear_use_module, hear_problem};
  const ParseOptions parse = {.problem = hear_syntax, .context = b};
  Diag diag = {0};
  b->scope.alloc = b->alloc;
  if (names_init(&b->names, b->alloc) != WEFT_OK || sources_init(&b->sources, b->alloc) != WEFT_OK)
    return (void)(b->refused = true);
  names_seed(&b->names);
  u32 file = sources_add(&b->sources, "", b->text, b->len);
  if (!file) return (void)(b->refused = true);
  if (parser_parse(&b->ast, arena, &b->names, &b->sources, file, &diag, &parse) != WEFT_OK)
    return add_problem(b, &diag);
  find_places(b);
  if (b->refused) return;
  CompileOptions options = {.alloc = b->alloc, .names = &b->names, .sources = &b->sources, .scope = &b->scope,
                            .diag_arena = arena, .hook = &hook};
  Proto *proto = NULL;
  u32 told = b->out->problems.count;
  WeftStatus status = lang_compile(&b->ast, &options, &proto, &diag);
  if (status != WEFT_OK && diag.kind == EK_limit && b->out->problems.count == told) add_problem(b, &diag);
  proto_drop(proto);
  sort_mentions(b->out);
  mention_fields(b);
  if (!b->refused) settle_symbols(b);
  if (b->out->problems.count)
    qsort(b->out->problems.data, b->out->problems.count, sizeof *b->out->problems.data, problem_order);
}

WeftStatus weft_outline(WeftVM *w, const char *text, size_t length, WeftOutline **out) {
  if (!usable(w) || !text || !out) return WEFT_MISUSE;
  *out = NULL;
  if (length > OUTLINE_MOST)
    return vm_error(w->vm, EK_limit, "an outline is made of a text of at most 2 ** 24 bytes, not %zu", length);
  ON_STACK_OF(w);
  Allocator *alloc = &w->vm->alloc;
  WeftOutline *o = mem_alloc_zero(alloc, sizeof *o);
  if (!o) return vm_error_memory(w->vm);
  Arena arena;
  Builder b = {.out = o, .alloc = alloc, .text = text, .len = (u32)length};
  arena_init(&o->arena, alloc);
  arena_init(&arena, alloc);
  build(&b, &arena);
  mem_free(alloc, b.parents, sizeof *b.parents * b.ast.node_count);
  vec_free(alloc, &b.places);
  vec_free(alloc, &b.locals);
  vec_free(alloc, &b.slots);
  vec_free(alloc, &b.skipped);
  vec_free(alloc, &b.shown);
  scope_free(&b.scope);
  arena_free(&arena);
  if (b.sources.alloc) sources_free(&b.sources);
  if (b.names.alloc) names_free(&b.names);
  if (!b.refused) return *out = o, WEFT_OK;
  weft_outline_free(w, o);
  return vm_error_memory(w->vm);
}

void weft_outline_free(WeftVM *w, WeftOutline *o) {
  if (!w || !o) return;
  Allocator *alloc = &w->vm->alloc;
  arena_free(&o->arena);
  vec_free(alloc, &o->problems);
  vec_free(alloc, &o->symbols);
  vec_free(alloc, &o->mentions);
  mem_free(alloc, o, sizeof *o);
}

bool weft_outline_problem(const WeftOutline *o, size_t index, WeftProblem *out) {
  return o && index < o->problems.count &&
         struct_give(out, &o->problems.data[index], sizeof *out, BYTES_TO(WeftProblem, message));
}

bool weft_outline_symbol(const WeftOutline *o, size_t index, WeftSymbol *out) {
  return o && index < o->symbols.count &&
         struct_give(out, &o->symbols.data[index].shown, sizeof *out, BYTES_TO(WeftSymbol, doc));
}

bool weft_outline_mention(const WeftOutline *o, size_t index, WeftMention *out) {
  return o && index < o->mentions.count &&
         struct_give(out, &o->mentions.data[index], sizeof *out, BYTES_TO(WeftMention, function));
}

/* ---- what the language has -------------------------------------------------------------------- */

bool weft_builtin(size_t index, WeftBuiltin *out) {
  WeftBuiltin b = {.size = sizeof b, .signature = "", .doc = ""};
  size_t names = builtin_count(), words = 0;
  const char *const *reserved = parser_reserved_words();
  while (reserved[words]) words++;
  for (size_t i = 0; i < names; i++) { /* numbers without a name do not count */
    Builtin found = builtin_at((u32)i);
    u32 op = i && i < OP_COUNT ? (u32)i : OP_none;
    if (!op && found.kind == BUILTIN_NONE) continue;
    if (index--) continue;
    b.name = op ? op_name(op) : found.name;
    b.kind = op ? WEFT_BUILTIN_FUNCTION : found.kind == BUILTIN_DTYPE ? WEFT_BUILTIN_DTYPE :
             found.kind == BUILTIN_CONST ? WEFT_BUILTIN_CONSTANT : WEFT_BUILTIN_MODULE;
    if (op) b.signature = op_info(op)->signature, b.doc = op_info(op)->doc;
    if (found.kind == BUILTIN_DTYPE) b.doc = dtype_info[found.id].doc;
    return struct_give(out, &b, sizeof b, BYTES_TO(WeftBuiltin, doc));
  }
  if (index >= words) return false;
  b.kind = WEFT_BUILTIN_WORD;
  b.name = reserved[index];
  return struct_give(out, &b, sizeof b, BYTES_TO(WeftBuiltin, doc));
}

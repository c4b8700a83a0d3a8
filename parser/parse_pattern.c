/* parse_pattern.c — patterns, parameters with annotations, and targets of assignments. */
#include "parser/parse.h"

#include <stdlib.h>
#include <string.h>

#define NODE(...) ((AstNode){__VA_ARGS__})

static bool is_underscore(const Parser *p, const Token *t) { return token_is(p, t, "_"); }

static u32 new_hole(Parser *p, const Token *t) {
  return new_node(p, NODE(.kind = AST_HOLE, .flags = HOLE_PLACED, .span = token_span(p, t)), 0, NULL);
}

/* A name or `_`, taken. */
static u32 parse_binding(Parser *p, const char *what) {
  const Token *t = p->tok;
  if (token_is_word(t->kind) && !at_line_end(p))
    return fail_at(p, token_span(p, t), "'%s' is a reserved word and cannot be a name", token_text(t->kind));
  if (t->kind != TOK_NAME) return fail_expected(p, what, NULL);
  advance(p);
  return is_underscore(p, t) ? new_hole(p, t) : new_name(p, t);
}

/* `...rest` inside a pattern */
static u32 parse_rest(Parser *p) {
  const Token *t = p->tok;
  advance(p);
  u32 name = parse_binding(p, "a name after '...'");
  return name ? new_node(p, NODE(.kind = AST_SPREAD, .span = span_from(p, t->start)), 1, &name) : 0;
}

static u32 parse_list_pattern(Parser *p) {
  const Token *open = p->tok;
  u32 mark = p->stack.count, rests = 0;
  bool newlines = p->newlines, group = true;
  p->newlines = false;
  advance(p);
  while (!at(p, TOK_RPAREN)) {
    bool rest = at(p, TOK_ELLIPSIS);
    if (rest && rests++) return fail_at(p, token_span(p, p->tok), "a pattern has one '...' at most");
    if (!push_kid(p, rest ? parse_rest(p) : parse_pattern(p))) return 0;
    if (rest || at(p, TOK_COMMA)) group = false;
    if (!accept(p, TOK_COMMA) && !at(p, TOK_RPAREN))
      return fail_unclosed(p, "',' or ')'", open, at(p, TOK_IN) ? "no parentheses: for x in xs { … }" : NULL);
  }
  p->newlines = newlines;
  advance(p);
  if (group && p->stack.count == mark + 1) return p->stack.data[--p->stack.count]; /* (a) is a */
  return new_node_from_stack(p, NODE(.kind = AST_PATTERN, .span = span_from(p, open->start)), mark);
}

static u32 parse_record_pattern(Parser *p) {
  const Token *open = p->tok;
  u32 mark = p->stack.count;
  bool newlines = p->newlines, rest = false;
  p->newlines = false;
  advance(p);
  while (!at(p, TOK_RBRACE)) {
    const Token *key = p->tok;
    if (rest) return fail_at(p, token_span(p, key), "'...rest' stands last in the pattern of a record");
    if (at(p, TOK_ELLIPSIS)) {
      rest = true;
      if (!push_kid(p, parse_rest(p))) return 0;
    } else {
      Name name = 0;
      if (at(p, TOK_TEXT)) {
        u32 text = parse_expr(p, POWER_POWER + 1);
        if (!text) return 0;
        if (node(p, text)->kind != AST_TEXT) return fail_at(p, node(p, text)->span, "expected ':' after the key");
        AstText t = p->texts.data[--p->texts.count];
        p->nodes.count--;
        if (t.len && !(name = name_intern(p->names, t.text, t.len))) return fail_memory(p);
        if (!at(p, TOK_COLON)) return fail_expected(p, "':' and a name after the key", NULL);
      } else if (at(p, TOK_NAME)) {
        name = intern_token(p, key);
        advance(p);
      } else {
        const char *hint = token_is_word(key->kind) ? "a reserved word as a key stands in quotes" : NULL;
        return fail_unclosed(p, "a field name or '}'", open, hint);
      }
      if (p->status) return 0;
      u32 target = accept(p, TOK_COLON) ? parse_pattern(p) : is_underscore(p, key) ? new_hole(p, key)
                                        : new_name(p, key);
      if (!target) return 0;
      u32 entry = new_node(p, NODE(.kind = AST_NAMED, .ref = name, .span = span_from(p, key->start)), 1, &target);
      if (!push_kid(p, entry)) return 0;
    }
    if (!accept(p, TOK_COMMA) && !at(p, TOK_RBRACE)) return fail_unclosed(p, "',' or '}'", open, NULL);
  }
  p->newlines = newlines;
  advance(p);
  return new_node_from_stack(p, NODE(.kind = AST_PATTERN, .flags = AF_RECORD, .span = span_from(p, open->start)), mark);
}

u32 parse_pattern(Parser *p) {
  if (!enter(p)) return 0;
  u32 id;
  if (at(p, TOK_LPAREN)) id = parse_list_pattern(p);
  else if (at(p, TOK_LBRACE)) id = parse_record_pattern(p);
  else if (at(p, TOK_LBRACKET))
    id = fail_at(p, token_span(p, p->tok), "a pattern is written (a, b); it takes arrays apart too");
  else id = parse_binding(p, "a name or a pattern");
  if (id) leave(p);
  return id;
}

/* ---- names bound once --------------------------------------------------------------------- */

/* Pushes the NAME and PARAM nodes that bind names in a pattern or parameter. */
static bool push_bound(Parser *p, u32 id) {
  const AstNode n = *node(p, id);
  switch (n.kind) {
  case AST_NAME: return push_kid(p, id);
  case AST_PARAM: return n.ref ? push_kid(p, id) : push_bound(p, p->kids.data[n.first]);
  case AST_NAMED: case AST_SPREAD: case AST_PATTERN:
    for (u32 i = 0; i < n.count; i++)
      if (!push_bound(p, p->kids.data[n.first + i])) return false;
    return true;
  default: return true;
  }
}

typedef struct Bound {
  Name name;
  u32 id;
} Bound;

static int by_name(const void *a, const void *b) {
  const Bound *x = a, *y = b;
  if (x->name != y->name) return x->name < y->name ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

bool check_bound_once(Parser *p, u32 mark, const char *where) {
  u32 end = p->stack.count;
  for (u32 i = mark; i < end; i++)
    if (!push_bound(p, p->stack.data[i])) return false;
  u32 count = p->stack.count - end, twice = 0;
  p->stack.count = end;
  if (count < 2) return true;
  Bound *bound = mem_alloc(p->alloc, sizeof *bound * count);
  if (!bound) return fail_memory(p);
  for (u32 i = 0; i < count; i++) {
    u32 id = p->stack.data[end + i];
    bound[i] = (Bound){node(p, id)->ref, id};
  }
  qsort(bound, count, sizeof *bound, by_name);
  for (u32 i = 1; i < count; i++)
    if (bound[i].name == bound[i - 1].name && (!twice || bound[i].id < twice)) twice = bound[i].id;
  mem_free(p->alloc, bound, sizeof *bound * count);
  if (!twice) return true;
  const AstNode *n = node(p, twice);
  Span at_name = n->span;
  if (n->kind == AST_PARAM) { /* skip the dots of a rest parameter */
    while (at_name.len && strchr(". \t\n", p->source->text[at_name.start])) at_name.start++, at_name.len--;
    at_name.len = name_len(p->names, n->ref);
  }
  return fail_at(p, at_name, "the name '%s' stands twice in %s", name_text(p->names, n->ref), where);
}

/* ---- parameters --------------------------------------------------------------------------- */

/* `f64[n, 3]` behind the colon of a parameter */
static u32 parse_annotation(Parser *p) {
  const Token *t = p->tok;
  if (!at(p, TOK_NAME) && !at(p, TOK_FN) && !at(p, TOK_NIL))
    return fail_expected(p, "a type after ':'", "such as f64[n, d] or text");
  Name type = intern_token(p, t);
  advance(p);
  u32 mark = p->stack.count, flags = 0;
  if (at(p, TOK_LBRACKET)) {
    const Token *open = p->tok;
    flags = AF_DIMS;
    advance(p);
    while (!at(p, TOK_RBRACKET)) {
      u32 dim = at(p, TOK_INT) ? parse_expr(p, POWER_POWER + 1) : at(p, TOK_NAME) ? parse_binding(p, "a size") : 0;
      if (!dim) return fail_expected(p, "a size: a name, a number or '_'", NULL);
      if (!push_kid(p, dim)) return 0;
      if (node(p, dim)->kind != AST_NAME && node(p, dim)->kind != AST_HOLE && node(p, dim)->kind != AST_INT)
        return fail_at(p, node(p, dim)->span, "a size is a name, a number or '_'");
      if (!accept(p, TOK_COMMA) && !at(p, TOK_RBRACKET)) return fail_unclosed(p, "',' or ']'", open, NULL);
    }
    advance(p);
  }
  if (!type) return 0;
  return new_node_from_stack(p, NODE(.kind = AST_ANNOT, .flags = (u8)flags, .ref = type,
                                     .span = span_from(p, t->start)), mark);
}

/* A parameter's target: its plain name, which then lives in the parameter itself, or a pattern. */
static bool parse_param_target(Parser *p, bool name_only, Name *name, u32 *pattern) {
  const Token *t = p->tok;
  *name = *pattern = 0;
  if (t->kind == TOK_NAME && !is_underscore(p, t)) {
    *name = intern_token(p, t);
    advance(p);
    return *name != 0;
  }
  *pattern = name_only ? parse_binding(p, "a name after '...'") : parse_pattern(p);
  return *pattern != 0;
}

static u32 new_param(Parser *p, Name name, const u32 kids[3], u32 flags, u32 start) {
  return new_node(p, NODE(.kind = AST_PARAM, .flags = (u8)flags, .ref = name, .span = span_from(p, start)), 3, kids);
}

bool push_simple_param(Parser *p) {
  u32 start = p->tok->start, kids[3] = {0};
  Name name;
  return parse_param_target(p, false, &name, &kids[0]) && push_kid(p, new_param(p, name, kids, 0, start));
}

bool parse_params(Parser *p, const Token *open) {
  u32 mark = p->stack.count, loops = p->loop_depth;
  p->loop_depth = 0; /* defaults are evaluated inside the function */
  p->fn_depth++;
  bool newlines = p->newlines, rest = false, defaults = false;
  p->newlines = false;
  while (!at(p, TOK_RPAREN)) {
    const Token *t = p->tok;
    u32 flags = rest ? AF_KEYWORD : 0, kids[3] = {0}; /* pattern, annotation, default */
    Name name;
    if (at(p, TOK_STAR) || at(p, TOK_POWER))
      return fail_at(p, token_span(p, t), "the rest of the arguments is taken by '...name'");
    if (accept(p, TOK_ELLIPSIS)) {
      if (rest) return fail_at(p, token_span(p, t), "a function has one '...' parameter at most");
      rest = true;
      flags = AF_REST;
    }
    if (!parse_param_target(p, flags == AF_REST, &name, &kids[0])) return false;
    Span at_target = span_from(p, t->start);
    if (flags == AF_KEYWORD && !name)
      return fail_at(p, at_target, "a parameter after '...' is given by its name, so it cannot be a pattern");
    if (at(p, TOK_COLON)) {
      if (!name || flags == AF_REST)
        return fail_at(p, token_span(p, p->tok), "only a parameter that is a plain name takes an annotation");
      advance(p);
      kids[1] = parse_annotation(p);
      if (!kids[1]) return false;
    }
    if (at(p, TOK_ASSIGN)) {
      if (flags == AF_REST)
        return fail_at(p, token_span(p, p->tok), "the '...' parameter has no default; it may be empty");
      advance(p);
      kids[2] = parse_expr(p, POWER_LOWEST);
      if (!kids[2]) return false;
    }
    if (!flags && defaults && !kids[2])
      return fail_at(p, at_target, "a parameter without a default stands behind one with a default");
    defaults |= kids[2] != 0;
    if (!push_kid(p, new_param(p, name, kids, flags, t->start))) return false;
    if (!accept(p, TOK_COMMA) && !at(p, TOK_RPAREN)) return fail_unclosed(p, "',' or ')'", open, advise_item(p));
  }
  p->newlines = newlines;
  p->loop_depth = loops;
  p->fn_depth--;
  advance(p);
  return check_bound_once(p, mark, "the parameters");
}

/* ---- targets of assignments --------------------------------------------------------------- */

static bool is_path(u32 kind) { return kind == AST_FIELD || kind == AST_INDEX; }

static bool check_path(Parser *p, u32 id) {
  const AstNode *n = node(p, id);
  bool cell = false; /* a path through .value changes a cell, so it may begin at any value */
  u32 at_id = id;
  while (is_path(node(p, at_id)->kind)) {
    const AstNode *step = node(p, at_id);
    if (step->kind == AST_FIELD && step->ref == name_find(p->names, "value", 5)) cell = true;
    at_id = p->kids.data[step->first];
  }
  if (node(p, at_id)->kind == AST_NAME || cell) return true;
  return fail_at(p, n->span, "only a variable, or an item or field of one, can be assigned to");
}

bool make_target(Parser *p, u32 id, bool compound) {
  AstNode *n = node(p, id);
  Span span = n->span;
  switch (n->kind) {
  case AST_NAME: return true;
  case AST_FIELD: case AST_INDEX: return check_path(p, id);
  case AST_HOLE:
    if (compound || n->flags) break;
    n->flags = HOLE_PLACED;
    p->loose_holes--;
    return true;
  case AST_LIST: {
    if (compound) return fail_at(p, span, "a pattern is assigned by '=' alone");
    u32 rests = 0;
    n->kind = AST_PATTERN;
    n->flags = 0;
    for (u32 i = 0; i < node(p, id)->count; i++) {
      u32 part = p->kids.data[node(p, id)->first + i];
      if (node(p, part)->kind == AST_SPREAD) {
        u32 inner = p->kids.data[node(p, part)->first];
        u32 kind = node(p, inner)->kind;
        if (rests++) return fail_at(p, node(p, part)->span, "a pattern has one '...' at most");
        if (kind != AST_NAME && kind != AST_HOLE)
          return fail_at(p, node(p, inner)->span, "expected a name after '...'");
        part = inner;
      }
      if (!make_target(p, part, false)) return false;
    }
    return true;
  }
  case AST_RECORD: return fail_at(p, span, "assignment takes patterns of the form (a, b); {a, b} stands after let");
  case AST_ARRAY: return fail_at(p, span, "a pattern is written (a, b); it takes arrays apart too");
  case AST_CALL: return fail_at(p, span, "a call cannot be assigned to; a function is written fn f(x) = …");
  case AST_FN: return fail_at(p, span, "an assignment in a function stands in braces: x => { y = … }");
  case AST_COMPARE: return fail_at(p, span, "a comparison cannot be assigned to");
  case AST_INT: case AST_FLOAT: case AST_IMAG: case AST_TEXT: case AST_FSTRING: case AST_BOOL: case AST_NIL:
    return fail_at(p, span, "a literal cannot be assigned to");
  default: break;
  }
  return fail_at(p, span, "only a variable, or an item or field of one, can be assigned to");
}

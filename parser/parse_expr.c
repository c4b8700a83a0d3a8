/* parse_expr.c — expressions: literals, operators by binding power, calls, indexing, f-strings, pipes. */
#include "parser/parse.h"

#include "parser/literal.h"

#include <stdlib.h>
#include <string.h>

#define NODE(...) ((AstNode){__VA_ARGS__})

static const struct {
  u8 power;
  u8 op;
} infix[TOK_COUNT] = {
#define TOKEN(name, text, class, power, op) {POWER_##power, AST_OP_##op},
#include "parser/tokens.def"
#undef TOKEN
};

/* ---- literals ----------------------------------------------------------------------------- */

static u32 parse_int(Parser *p) {
  const Token *t = p->tok;
  u64 x;
  if (!literal_int(token_start(p, t), t->len, &x))
    return fail_at(p, token_span(p, t), "the number does not fit u64: the largest is 18446744073709551615");
  if (!vec_push(p->alloc, &p->ints, (i64)x)) return fail_memory(p);
  advance(p);
  u8 flags = x > INT64_MAX ? AF_BIG : 0;
  return new_node(p,
                  NODE(.kind = AST_INT, .flags = flags, .ref = p->ints.count - 1, .span = token_span(p, t)), 0, NULL);
}

static u32 parse_float(Parser *p) {
  const Token *t = p->tok;
  const char *s = token_start(p, t);
  char *digits = arena_room(p->arena, t->len);
  if (!digits) return fail_memory(p);
  u32 n = 0, imaginary = s[t->len - 1] == 'j';
  for (u32 i = 0; i < t->len - imaginary; i++)
    if (s[i] != '_') {
      if (n % TOIL_BYTES == TOIL_BYTES - 1 && !toil(p->toil, TOIL_BYTE_STEPS)) return fail_memory(p);
      digits[n++] = s[i];
    }
  f64 x;
  if (!number_parse_f64(digits, n, &x) || x - x != 0)
    return fail_at(p, token_span(p, t), "the number does not fit f64; infinity is written inf");
  if (!vec_push(p->alloc, &p->floats, x)) return fail_memory(p);
  advance(p);
  const u8 kind = imaginary ? AST_IMAG : AST_FLOAT;
  return new_node(p, NODE(.kind = kind, .ref = p->floats.count - 1, .span = token_span(p, t)), 0, NULL);
}

static u32 parse_text(Parser *p) {
  const Token *t = p->tok;
  u32 quote = t->len >= 6 && memcmp(token_start(p, t), "\"\"\"", 3) == 0 ? 3 : 1;
  advance(p);
  return decode_text(p, t, quote, quote, false);
}

static u32 parse_word(Parser *p, u32 kind, u32 flags) {
  const Token *t = p->tok;
  advance(p);
  return new_node(p, NODE(.kind = (u8)kind, .flags = (u8)flags, .span = token_span(p, t)), 0, NULL);
}

/* ---- f-strings ---------------------------------------------------------------------------- */

/* Pieces up to the token `close`, which is not taken. */
static bool parse_pieces(Parser *p, u32 close) {
  while (!at(p, close)) {
    const Token *t = p->tok;
    if (at(p, TOK_FSTR_TEXT)) {
      advance(p);
      if (!push_kid(p, decode_text(p, t, 0, 0, close == TOK_FSTR_CLOSE))) return false;
      continue;
    }
    if (!at(p, TOK_FSTR_LBRACE)) return fail_expected(p, "text of the f-string", NULL);
    advance(p);
    if (at(p, TOK_FSTR_RBRACE) || at(p, TOK_FSTR_COLON))
      return fail_at(p, span_from(p, t->start),
                     "the braces of the f-string hold no expression (a brace itself is written '{{')");
    bool newlines = p->newlines;
    p->newlines = false;
    u32 value = parse_expr(p, POWER_LOWEST), spec = 0;
    if (!value) return false;
    if (accept(p, TOK_FSTR_COLON)) {
      u32 mark = p->stack.count, start = last_end(p);
      if (!parse_pieces(p, TOK_FSTR_RBRACE)) return false;
      if (p->stack.count == mark) {
        spec = 0; /* {x:} is {x} */
      } else if (p->stack.count == mark + 1 && node(p, p->stack.data[mark])->kind == AST_TEXT) {
        spec = p->stack.data[mark];
        p->stack.count = mark;
      } else {
        spec = new_node_from_stack(p, NODE(.kind = AST_FSTRING, .span = span_from(p, start)), mark);
        if (!spec) return false;
      }
    } else if (!at(p, TOK_FSTR_RBRACE)) {
      const char *hint = at(p, TOK_ASSIGN) ? "a name and its value are written f\"x = {x}\"" : advise_token(p);
      return fail_unclosed(p, "'}' or ':'", t, hint);
    }
    p->newlines = newlines;
    advance(p);
    if (!push_kid(p, new_node(p, NODE(.kind = AST_PART, .span = span_from(p, t->start)), 2, (u32[]){value, spec})))
      return false;
  }
  return true;
}

static u32 parse_fstring(Parser *p) {
  u32 mark = p->stack.count, start = p->tok->start;
  advance(p);
  if (!parse_pieces(p, TOK_FSTR_CLOSE)) return 0;
  advance(p);
  return new_node_from_stack(p, NODE(.kind = AST_FSTRING, .span = span_from(p, start)), mark);
}

/* ---- brackets ----------------------------------------------------------------------------- */

/* `...value` */
static u32 parse_spread(Parser *p) {
  const Token *t = p->tok;
  advance(p);
  u32 value = parse_expr(p, POWER_LOWEST);
  if (!value) return 0;
  return new_node(p, NODE(.kind = AST_SPREAD, .span = span_from(p, t->start)), 1, &value);
}

/* Behind an item: takes a comma, or leaves the closing bracket. */
static bool next_item(Parser *p, u32 close, const Token *open, const char *what) {
  if (accept(p, TOK_COMMA) || at(p, close)) return true;
  return fail_unclosed(p, what, open, advise_item(p));
}

static u32 parse_lambda(Parser *p);

static u32 parse_parens(Parser *p) {
  const Token *open = p->tok;
  if (open->match && p->tokens.data[open->match + 1].kind == TOK_ARROW) return parse_lambda(p);
  u32 mark = p->stack.count;
  bool newlines = p->newlines, group = true;
  p->newlines = false;
  advance(p);
  while (!at(p, TOK_RPAREN)) {
    bool spread = at(p, TOK_ELLIPSIS);
    if (!push_kid(p, spread ? parse_spread(p) : parse_expr(p, POWER_LOWEST))) return 0;
    if (spread || at(p, TOK_COMMA)) group = false;
    if (!next_item(p, TOK_RPAREN, open, group ? "')'" : "',' or ')'")) return 0;
  }
  p->newlines = newlines;
  advance(p);
  if (p->stack.count == mark + 1 && group) {
    u32 id = p->stack.data[--p->stack.count];
    node(p, id)->flags |= AF_PARENS;
    node(p, id)->span = span_from(p, open->start);
    return id;
  }
  return new_node_from_stack(p, NODE(.kind = AST_LIST, .span = span_from(p, open->start)), mark);
}

static u32 parse_array(Parser *p) {
  const Token *open = p->tok;
  u32 mark = p->stack.count;
  bool newlines = p->newlines;
  p->newlines = false;
  advance(p);
  while (!at(p, TOK_RBRACKET)) {
    if (at(p, TOK_ELLIPSIS))
      return fail_at(p, token_span(p, p->tok),
                     "'...' spreads in calls, lists and records; arrays are joined by concat((a, b))");
    if (!push_kid(p, parse_expr(p, POWER_LOWEST))) return 0;
    if (at(p, TOK_SEMI)) return fail_unclosed(p, "',' or ']'", open, "rows are arrays too: [[1, 2], [3, 4]]");
    if (!next_item(p, TOK_RBRACKET, open, "',' or ']'")) return 0;
  }
  p->newlines = newlines;
  advance(p);
  return new_node_from_stack(p, NODE(.kind = AST_ARRAY, .span = span_from(p, open->start)), mark);
}

bool at_record(const Parser *p) {
  u32 next = peek_token(p, 1)->kind, after = peek_token(p, 2)->kind;
  return next == TOK_RBRACE || next == TOK_ELLIPSIS || ((next == TOK_NAME || next == TOK_TEXT) && after == TOK_COLON) ||
         (next == TOK_NAME && after == TOK_COMMA); /* {m, v} */
}

static u32 parse_record(Parser *p) {
  const Token *open = p->tok;
  u32 mark = p->stack.count;
  bool newlines = p->newlines;
  p->newlines = false;
  advance(p);
  while (!at(p, TOK_RBRACE)) {
    const Token *key = p->tok;
    if (at(p, TOK_ELLIPSIS)) {
      if (!push_kid(p, parse_spread(p))) return 0;
    } else if (at(p, TOK_NAME) || at(p, TOK_TEXT)) {
      Name name = 0;
      if (at(p, TOK_NAME)) {
        name = intern_token(p, key);
        advance(p);
      } else {
        u32 text = parse_text(p);
        if (!text) return 0;
        AstText t = p->texts.data[--p->texts.count]; /* the key is a name, not a literal */
        p->nodes.count--;
        if (t.len && !(name = name_intern(p->names, t.text, t.len))) return fail_memory(p);
      }
      if (p->status) return 0;
      /* {m, v} is {m: m, v: v} */
      const bool bare = key->kind == TOK_NAME && (at(p, TOK_COMMA) || at(p, TOK_RBRACE)) &&
                        !(key->len == 1 && *token_start(p, key) == '_');
      if (!bare && !at(p, TOK_COLON)) return fail_expected(p, "':' after the key of the record", NULL);
      if (!bare) advance(p);
      u32 value = bare ? new_name(p, key) : parse_expr(p, POWER_LOWEST);
      if (!value) return 0;
      if (!push_kid(p, new_node(p, NODE(.kind = AST_NAMED, .ref = name, .span = span_from(p, key->start)), 1, &value)))
        return 0;
    } else {
      bool word = token_is_word(key->kind);
      return fail_unclosed(p, "a key or '}'", open,
                           word ? "a reserved word as a key stands in quotes" : "keys are names or texts");
    }
    if (!next_item(p, TOK_RBRACE, open, "',' or '}'")) return 0;
  }
  p->newlines = newlines;
  advance(p);
  return new_node_from_stack(p, NODE(.kind = AST_RECORD, .span = span_from(p, open->start)), mark);
}

/* ---- functions ---------------------------------------------------------------------------- */

static u32 parse_lambda(Parser *p) {
  const Token *first = p->tok;
  u32 mark = p->stack.count;
  if (accept(p, TOK_LPAREN)) {
    if (!parse_params(p, first)) return 0;
  } else if (!push_simple_param(p)) {
    return 0;
  }
  advance(p); /* => */
  return finish_fn(p, first->start, 0, 0, mark, false);
}

/* ---- what begins an operand --------------------------------------------------------------- */

static u32 parse_unary(Parser *p, u32 op, u32 power) {
  const Token *t = p->tok;
  advance(p);
  u32 value = parse_expr(p, power);
  if (!value) return 0;
  AstNode *x = node(p, value);
  if (op == AST_OP_negative && x->kind == AST_INT && (x->flags & AF_BIG)) {
    if (p->ints.data[x->ref] != INT64_MIN)
      return fail_at(p, span_from(p, t->start), "the number does not fit i64: the least is -9223372036854775808");
    x->flags &= (u8)~AF_BIG; /* it is negative already */
    x->span = span_from(p, t->start);
    return value;
  }
  return new_node(p, NODE(.kind = AST_UNARY, .op = (u8)op, .span = span_from(p, t->start)), 1, &value);
}

static u32 parse_hole(Parser *p) {
  p->loose_holes++;
  return parse_word(p, AST_HOLE, 0);
}

/* Operators of R, and what IPython and Julia have in front of a statement; `t` is where a value should begin. */
static const char *advise_operand(const Parser *p, const Token *t) {
  const Token *before = t > p->tokens.data ? t - 1 : t, *behind = peek_token(p, 1);
  bool percent = before != t && before->kind == TOK_PERCENT && !(t->flags & TOKEN_SPACED);
  if (percent && behind->kind == TOK_PERCENT && t->kind == TOK_IN) return "R's %in% is written isin(x, values)";
  if (percent && behind->kind == TOK_PERCENT && t->kind == TOK_STAR) return "R's %*% is written '@'";
  if (percent && behind->kind == TOK_PERCENT && t->kind == TOK_SLASH) return "R's %/% is written '//'";
  if (percent && behind->kind == TOK_PERCENT && t->kind == TOK_GT) return "R's %>% is written '|>'";
  if (percent && t->kind == TOK_PERCENT) return "R's %% is written '%'";
  if ((t->kind == TOK_PERCENT || t->kind == TOK_AT) && behind->kind == TOK_NAME && !(behind->flags & TOKEN_SPACED))
    return "commands of the prompt begin with ':', as :time CODE";
  return NULL;
}

static u32 fail_operand(Parser *p) {
  const Token *t = p->tok;
  Span here = token_span(p, t);
  bool new_line = at_line_end(p);
  p->newlines = false; /* whatever line it is on, this token is what was found */
  const char *advice = advise_operand(p, t);
  if (advice) return fail_expected(p, "a value", advice);
  switch (t->kind) {
  case TOK_LET: case TOK_RETURN: case TOK_BREAK: case TOK_CONTINUE: case TOK_IMPORT:
    if (new_line) break;
    return fail_at(p, here,
                   "'%s' is a statement and gives no value; inside an expression it stands in braces: { %s … }",
                   token_text(t->kind), token_text(t->kind));
  case TOK_RPAREN: case TOK_RBRACKET: case TOK_RBRACE:
    if (t->match || p->depth > 1) break;
    return fail_at(p, here, "'%s' closes nothing that is open", token_text(t->kind));
  case TOK_COLON: return fail_expected(p, "a value", "a range is written a..b");
  case TOK_FLOOR: return fail_expected(p, "a value", "'//' divides; a comment begins with '#'");
  case TOK_STAR: return fail_expected(p, "a value", "arguments are spread by '...xs'");
  case TOK_DOTS: return fail_expected(p, "a value", "a range has two ends: 0..n");
  case TOK_ASSIGN:
  case TOK_LT:
    if (p->tok > p->tokens.data && p->tok[-1].kind == TOK_DOTS)
      return fail_expected(p, "a value", "a range ends before its end: write 0..n + 1");
    break;
  case TOK_ELLIPSIS: return fail_expected(p, "a value", "'...' spreads in calls, lists and records only");
  case TOK_BAR: return fail_expected(p, "a value", "a function is written x => …");
  case TOK_CATCH: return fail_expected(p, "a value", "'catch' belongs right behind the block of its try");
  case TOK_ELSE: return fail_expected(p, "a value", "'else' belongs right behind the block of its if");
  default: break;
  }
  return fail_expected(p, "a value", NULL);
}

static u32 parse_primary(Parser *p, u32 power) {
  const Token *t = p->tok;
  bool lambda = ((at(p, TOK_NAME) && peek_token(p, 1)->kind == TOK_ARROW) ||
                 (at(p, TOK_LPAREN) && t->match && p->tokens.data[t->match + 1].kind == TOK_ARROW));
  if (lambda) {
    if (power > POWER_PIPE + 1)
      return fail_at(p, token_span(p, t), "a function as an operand stands in parentheses: (x => …)");
    return parse_lambda(p);
  }
  switch (t->kind) {
  case TOK_INT: return parse_int(p);
  case TOK_FLOAT: return parse_float(p);
  case TOK_TEXT: return parse_text(p);
  case TOK_FSTR_OPEN: return parse_fstring(p);
  case TOK_TRUE: return parse_word(p, AST_BOOL, AF_TRUE);
  case TOK_FALSE: return parse_word(p, AST_BOOL, 0);
  case TOK_NIL: return parse_word(p, AST_NIL, 0);
  case TOK_NAME:
    if (t->len == 1 && *token_start(p, t) == '_') return parse_hole(p);
    advance(p);
    return new_name(p, t);
  case TOK_LPAREN: return parse_parens(p);
  case TOK_LBRACKET: return parse_array(p);
  case TOK_LBRACE: return at_record(p) ? parse_record(p) : parse_block(p, "the block");
  case TOK_FN: return parse_fn(p, false);
  case TOK_IF: return parse_if(p);
  case TOK_WHILE: return parse_while(p);
  case TOK_FOR: return parse_for(p);
  case TOK_TRY: return parse_try(p);
  default: return fail_operand(p);
  }
}

/* ---- calls, indexing, fields -------------------------------------------------------------- */

static int by_ref(const void *a, const void *b) {
  u32 x = *(const u32 *)a, y = *(const u32 *)b;
  return x < y ? -1 : x > y;
}

/* A name given twice among the named arguments of stack[mark ..]. */
static bool check_named_once(Parser *p, u32 mark) {
  u32 end = p->stack.count;
  for (u32 i = mark; i < end; i++)
    if (node(p, p->stack.data[i])->kind == AST_NAMED && !push_kid(p, node(p, p->stack.data[i])->ref)) return false;
  u32 count = p->stack.count - end, *names = p->stack.data + end;
  qsort(names, count, sizeof *names, by_ref);
  Name twice = 0;
  for (u32 i = 1; i < count && !twice; i++)
    if (names[i] == names[i - 1]) twice = names[i];
  p->stack.count = end;
  if (!twice) return true;
  u32 seen = 0;
  for (u32 i = mark; i < end; i++) {
    const AstNode *x = node(p, p->stack.data[i]);
    if (x->kind == AST_NAMED && x->ref == twice && seen++)
      return fail_at(p, x->span, "the argument '%s' is given twice", name_text(p->names, twice));
  }
  return true;
}

static u32 parse_call(Parser *p, u32 callee) {
  const Token *open = p->tok;
  u32 mark = p->stack.count, start = node(p, callee)->span.start;
  bool newlines = p->newlines, named = false;
  p->newlines = false;
  advance(p);
  if (!push_kid(p, callee)) return 0;
  while (!at(p, TOK_RPAREN)) {
    const Token *t = p->tok;
    u32 arg;
    if (at(p, TOK_ELLIPSIS)) {
      arg = parse_spread(p);
    } else if (peek_token(p, 1)->kind == TOK_ASSIGN && (at(p, TOK_NAME) || token_is_word(t->kind))) {
      if (!at(p, TOK_NAME))
        return fail_at(p, token_span(p, t), "'%s' is a reserved word and cannot name an argument", token_text(t->kind));
      p->tok += 2;
      Name name = intern_token(p, t);
      u32 value = name ? parse_expr(p, POWER_LOWEST) : 0;
      if (!value) return 0;
      arg = new_node(p, NODE(.kind = AST_NAMED, .ref = name, .span = span_from(p, t->start)), 1, &value);
      named = true;
    } else {
      arg = parse_expr(p, POWER_LOWEST);
      if (arg && named)
        return fail_at(p, node(p, arg)->span, "an argument without a name stands behind a named one");
    }
    if (!push_kid(p, arg) || !next_item(p, TOK_RPAREN, open, "',' or ')'")) return 0;
  }
  p->newlines = newlines;
  advance(p);
  if (named && !check_named_once(p, mark + 1)) return 0;
  return new_node_from_stack(p, NODE(.kind = AST_CALL, .span = span_from(p, start)), mark);
}

/* One item of an index: expression, slice or ellipsis. */
static u32 parse_index_item(Parser *p) {
  const Token *t = p->tok;
  if (at(p, TOK_ELLIPSIS)) {
    u32 next = peek_token(p, 1)->kind;
    if (next != TOK_COMMA && next != TOK_RBRACKET)
      return fail_at(p, token_span(p, t), "'...' in an index stands alone and means all axes in between");
    return parse_word(p, AST_ELLIPSIS, 0);
  }
  u32 parts[3] = {0}, count = 0;
  if (!at(p, TOK_COLON)) {
    parts[0] = parse_expr(p, POWER_LOWEST);
    if (!parts[0]) return 0;
    if (!at(p, TOK_COLON)) return parts[0];
  }
  while (count < 2 && accept(p, TOK_COLON)) {
    count++;
    if (at(p, TOK_COLON) || at(p, TOK_COMMA) || at(p, TOK_RBRACKET)) continue;
    parts[count] = parse_expr(p, POWER_LOWEST);
    if (!parts[count]) return 0;
  }
  return new_node(p, NODE(.kind = AST_SLICE, .span = span_from(p, t->start)), 3, parts);
}

static u32 parse_index(Parser *p, u32 object) {
  const Token *open = p->tok;
  u32 mark = p->stack.count, start = node(p, object)->span.start;
  bool newlines = p->newlines;
  p->newlines = false;
  advance(p);
  if (at(p, TOK_RBRACKET)) return fail_expected(p, "an index", "all items are a[:]");
  if (!push_kid(p, object)) return 0;
  while (!at(p, TOK_RBRACKET))
    if (!push_kid(p, parse_index_item(p)) || !next_item(p, TOK_RBRACKET, open, "',' or ']'")) return 0;
  p->newlines = newlines;
  advance(p);
  return new_node_from_stack(p, NODE(.kind = AST_INDEX, .span = span_from(p, start)), mark);
}

static u32 parse_field(Parser *p, u32 object) {
  u32 start = node(p, object)->span.start;
  advance(p);
  const Token *t = p->tok;
  if (token_is_word(t->kind))
    return fail_at(p, token_span(p, t), "'%s' is a reserved word; the field is written [\"%s\"]", token_text(t->kind),
                   token_text(t->kind));
  if (!at(p, TOK_NAME))
    return fail_expected(p, "a name after '.'",
                         at(p, TOK_LPAREN) ? "functions work by element where they can: f(x)" : NULL);
  Name name = intern_token(p, t);
  advance(p);
  return name ? new_node(p, NODE(.kind = AST_FIELD, .ref = name, .span = span_from(p, start)), 1, &object) : 0;
}

/* In a block `(` and `[` on a new line begin a statement; `.name` never does. */
static u32 parse_postfix(Parser *p, u32 id) {
  while (id) {
    if (at(p, TOK_DOT)) id = parse_field(p, id);
    else if (at(p, TOK_LPAREN) && !at_line_end(p)) id = parse_call(p, id);
    else if (at(p, TOK_LBRACKET) && !at_line_end(p)) id = parse_index(p, id);
    else break;
  }
  return id;
}

/* ---- operators ---------------------------------------------------------------------------- */

static u32 parse_compare(Parser *p, u32 left) {
  u32 mark = p->stack.count, op_mark = p->op_stack.count, start = node(p, left)->span.start;
  if (!push_kid(p, left)) return 0;
  while (infix[p->tok->kind].power == POWER_COMPARE) {
    if (!vec_push(p->alloc, &p->op_stack, infix[p->tok->kind].op)) return fail_memory(p);
    advance(p);
    if (!push_kid(p, parse_expr(p, POWER_COMPARE + 1))) return 0;
  }
  u32 first = p->ops.count;
  for (u32 i = op_mark; i < p->op_stack.count; i++)
    if (!vec_push(p->alloc, &p->ops, p->op_stack.data[i])) return fail_memory(p);
  p->op_stack.count = op_mark;
  return new_node_from_stack(p, NODE(.kind = AST_COMPARE, .ref = first, .span = span_from(p, start)), mark);
}

static u32 parse_range(Parser *p, u32 left) {
  u32 start = node(p, left)->span.start, step = 0;
  advance(p);
  u32 right = parse_expr(p, POWER_RANGE + 1);
  if (!right) return 0;
  if (accept(p, TOK_BY)) {
    step = parse_expr(p, POWER_RANGE + 1);
    if (!step) return 0;
  }
  if (at(p, TOK_DOTS))
    return fail_at(p, token_span(p, p->tok), "a range has two ends; its step is written a..b by c");
  return new_node(p, NODE(.kind = AST_RANGE, .span = span_from(p, start)), 3, (u32[]){left, right, step});
}

static u32 parse_pipe(Parser *p, u32 left) {
  u32 start = node(p, left)->span.start;
  advance(p);
  u32 right = parse_expr(p, POWER_PIPE + 1);
  if (!right) return 0;
  const AstNode *r = node(p, right);
  bool operator = r->kind == AST_UNARY || r->kind == AST_BINARY || r->kind == AST_COMPARE || r->kind == AST_AND ||
                  r->kind == AST_OR || r->kind == AST_RANGE;
  if (operator && !(r->flags & AF_PARENS))
    return fail_at(p, r->span,
                   "the right side of '|>' must be a function or a call; to go on with an operator write (a |> f) + b");
  u32 pipe = new_node(p, NODE(.kind = AST_PIPE, .span = span_from(p, start)), 2, (u32[]){left, right});
  if (!pipe) return 0;
  const Ast so_far = {.nodes = p->nodes.data, .kids = p->kids.data};
  u32 call = ast_pipe_call(&so_far, node(p, pipe));
  if (call) {
    AstNode *c = node(p, call);
    c->flags |= AF_PIPED;
    for (u32 i = 1; i < c->count; i++) {
      AstNode *arg = node(p, p->kids.data[c->first + i]);
      if (arg->kind != AST_HOLE || arg->flags) continue;
      arg->flags = HOLE_PLACED;
      p->loose_holes--;
      c->flags |= AF_HOLES;
    }
  }
  return pipe;
}

/* `x++` before the end of a statement: the operators would swallow the next line. */
static bool at_increment(const Parser *p) {
  const Token *t = p->tok, *next = peek_token(p, 1), *after = peek_token(p, 2);
  if ((!at(p, TOK_PLUS) && !at(p, TOK_MINUS)) || next->kind != t->kind || (next->flags & TOKEN_SPACED)) return false;
  return (after->flags & TOKEN_NEWLINE) || after->kind == TOK_EOF || after->kind == TOK_SEMI ||
         after->kind == TOK_RBRACE || after->kind == TOK_RPAREN;
}

static u32 parse_binary(Parser *p, u32 left) {
  u32 start = node(p, left)->span.start, kind = p->tok->kind, power = infix[kind].power;
  if (at_increment(p))
    return fail_at(p, (Span){p->file, p->tok->start, 2}, "there is no '%s%s'; write x %s= 1", token_text(kind),
                   token_text(kind), token_text(kind));
  advance(p);
  u32 right = parse_expr(p, power == POWER_POWER ? POWER_UNARY : power + 1);
  if (!right) return 0;
  u32 node_kind = kind == TOK_AND ? AST_AND : kind == TOK_OR ? AST_OR : AST_BINARY;
  return new_node(p, NODE(.kind = (u8)node_kind, .op = infix[kind].op, .span = span_from(p, start)), 2,
                  (u32[]){left, right});
}

/* Parses operators that bind at least as tightly as `power`. */
u32 parse_expr(Parser *p, u32 power) {
  if (!enter(p)) return 0;
  u32 id;
  switch (p->tok->kind) {
  case TOK_MINUS: id = parse_unary(p, AST_OP_negative, POWER_UNARY); break;
  case TOK_PLUS: id = parse_unary(p, AST_OP_positive, POWER_UNARY); break;
  case TOK_TILDE: id = parse_unary(p, AST_OP_bitwise_not, POWER_UNARY); break;
  case TOK_NOT: id = parse_unary(p, AST_OP_logical_not, POWER_NOT); break;
  default: id = parse_postfix(p, parse_primary(p, power)); break;
  }
  while (id) {
    u32 kind = p->tok->kind, tightness = infix[kind].power;
    if (!tightness || tightness < power) break;
    if ((kind == TOK_PLUS || kind == TOK_MINUS) && at_line_end(p)) break; /* these can begin a statement */
    if (tightness == POWER_COMPARE) id = parse_compare(p, id);
    else if (kind == TOK_DOTS) id = parse_range(p, id);
    else if (kind == TOK_PIPE) id = parse_pipe(p, id);
    else id = parse_binary(p, id);
  }
  if (id) leave(p);
  return id;
}

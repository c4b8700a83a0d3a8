/* parser.c — the facade, and what all parts of the parser use: tokens, nodes, errors, the last checks. */
#include "parser/parser.h"

#include "parser/literal.h"
#include "parser/parse.h"

#include <stdio.h>
#include <string.h>

/* ---- errors ------------------------------------------------------------------------------- */

u32 fail_memory(Parser *p) {
  if (p->status) return 0;
  p->status = WEFT_ERROR;
  *p->diag = (Diag){.span = {p->file, 0, 0}, .kind = DIAG_LIMIT, .message = "out of memory while parsing"};
  return 0;
}

static void set_diag(Parser *p, Span span, WeftStatus status, const char *message) {
  if (p->status) return;
  if (!message) {
    fail_memory(p);
    return;
  }
  p->status = status;
  *p->diag = (Diag){.span = span, .kind = DIAG_SYNTAX, .message = message};
}

u32 fail_at(Parser *p, Span span, const char *fmt, ...) {
  if (p->status) return 0;
  char text[400];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  set_diag(p, span, WEFT_ERROR, arena_copy(p->arena, text, strlen(text)));
  return 0;
}

/* Length of the longest prefix of at most `max` bytes that does not cut a code point. */
static int clip(const char *s, u32 len, u32 max) {
  if (len <= max) return (int)len;
  while (max > 0 && ((u8)s[max] & 0xC0) == 0x80) max--;
  return (int)max;
}

static void describe(const Parser *p, char *out, size_t size) {
  const Token *t = p->tok;
  if (at_line_end(p) && t->kind != TOK_EOF) snprintf(out, size, "the end of the line");
  else if (t->kind == TOK_NAME || t->kind == TOK_INT || t->kind == TOK_FLOAT)
    snprintf(out, size, "'%.*s'", clip(token_start(p, t), t->len, 40), token_start(p, t));
  else if (t->kind < TOK_FSTR_LBRACE || t->kind == TOK_FSTR_CLOSE) snprintf(out, size, "%s", token_text(t->kind));
  else snprintf(out, size, "'%s'", token_text(t->kind));
}

static u32 fail_found(Parser *p, const char *what, const Token *open, const char *hint) {
  if (p->status) return 0;
  const Token *t = p->tok;
  if (t->kind == TOK_ERROR) {
    set_diag(p, token_span(p, t), p->repl && p->lex_incomplete ? WEFT_INCOMPLETE : WEFT_ERROR,
             p->lex_messages.data[t->match - 1]);
    return 0;
  }
  char found[64], where[96] = "";
  describe(p, found, sizeof found);
  if (open) {
    u32 line, col, here, here_col;
    sources_locate(p->sources, token_span(p, open), &line, &col);
    sources_locate(p->sources, token_span(p, t), &here, &here_col);
    if (line == here) snprintf(where, sizeof where, " after the '%s' in column %u", token_text(open->kind), col);
    else snprintf(where, sizeof where, " to close the '%s' in line %u, column %u", token_text(open->kind), line, col);
  }
  bool end = t->kind == TOK_EOF;
  Span span = end || at_line_end(p) ? (Span){p->file, last_end(p), 0} : token_span(p, t);
  set_diag(p, span, end && p->repl ? WEFT_INCOMPLETE : WEFT_ERROR,
           arena_printf(p->arena, "expected %s%s, found %s%s%s", what, where, found, hint ? "; " : "",
                        hint ? hint : ""));
  return 0;
}

u32 fail_expected(Parser *p, const char *what, const char *hint) { return fail_found(p, what, NULL, hint); }
u32 fail_unclosed(Parser *p, const char *what, const Token *open, const char *hint) {
  return fail_found(p, what, open, hint);
}

/* ---- tokens ------------------------------------------------------------------------------- */

bool token_is(const Parser *p, const Token *t, const char *name) {
  return t->kind == TOK_NAME && strlen(name) == t->len && memcmp(token_start(p, t), name, t->len) == 0;
}

static bool closes(u32 open, u32 close) {
  return (open == TOK_LPAREN && close == TOK_RPAREN) || (open == TOK_LBRACKET && close == TOK_RBRACKET) ||
         (open == TOK_LBRACE && close == TOK_RBRACE);
}

/* Notes why a token is broken. Lexing ends there, or goes on when there is a way. */
static bool note_broken(Parser *p, Lexer *l, Token *t, bool moved) {
  const char *message = arena_copy(p->arena, l->message, strlen(l->message));
  if (!message || !vec_push(p->alloc, &p->lex_messages, message)) return fail_memory(p);
  t->match = p->lex_messages.count;
  if (p->recover && moved) return true;
  p->lex_incomplete = l->incomplete;
  l->pos = l->len;
  l->frame_count = 0;
  return true;
}

/* The open bracket that a closing one belongs to. In a text with errors those inside of it that were not closed are
 * passed over. */
static u32 *find_open(Parser *p, u32 mark, u32 close) {
  for (u32 i = p->stack.count; i > mark; i--) {
    if (closes(p->tokens.data[p->stack.data[i - 1]].kind, close)) {
      p->stack.count = i;
      return &p->stack.data[i - 1];
    }
    if (!p->recover) break;
  }
  return NULL;
}

/* Lexes the text, up to the first broken token unless errors are gone beyond, and pairs the brackets. */
static bool tokenize(Parser *p) {
  Lexer l;
  lexer_init(&l, p->source->text, p->source->len);
  l.toil = p->toil;
  u32 mark = p->stack.count;
  for (;;) {
    Token t;
    u32 before = l.pos;
    if (!toil(p->toil, 1)) return fail_memory(p);
    lexer_next(&l, &t);
    u32 index = p->tokens.count;
    bool closing = t.kind == TOK_RPAREN || t.kind == TOK_RBRACKET || t.kind == TOK_RBRACE;
    u32 *open = closing ? find_open(p, mark, t.kind) : NULL;
    if (t.kind == TOK_LPAREN || t.kind == TOK_LBRACKET || t.kind == TOK_LBRACE) {
      if (!vec_push(p->alloc, &p->stack, index)) return fail_memory(p);
    } else if (open) {
      t.match = *open;
      p->tokens.data[*open].match = index;
      p->stack.count--;
    }
    if (t.kind == TOK_ERROR && !note_broken(p, &l, &t, l.pos > before)) return false;
    if (!vec_push(p->alloc, &p->tokens, t)) return fail_memory(p);
    if (t.kind == TOK_EOF) break;
  }
  p->stack.count = mark;
  p->tok = p->tokens.data;
  return true;
}

Name intern_token(Parser *p, const Token *t) {
  Name n = name_intern(p->names, token_start(p, t), t->len);
  if (!n) fail_memory(p);
  return n;
}

/* ---- nodes -------------------------------------------------------------------------------- */

u32 new_node(Parser *p, AstNode n, u32 count, const u32 *kids) {
  if (p->status) return 0;
  n.first = p->kids.count;
  n.count = count;
  if (!toil(p->toil, 1 + count)) return fail_memory(p);
  for (u32 i = 0; i < count; i++)
    if (!vec_push(p->alloc, &p->kids, kids[i])) return fail_memory(p);
  if (!vec_push(p->alloc, &p->nodes, n)) return fail_memory(p);
  return p->nodes.count - 1;
}

bool push_kid(Parser *p, u32 id) {
  if (p->status) return false;
  if (!vec_push(p->alloc, &p->stack, id)) return fail_memory(p);
  return true;
}

u32 new_node_from_stack(Parser *p, AstNode n, u32 mark) {
  if (p->status) return 0;
  u32 id = new_node(p, n, p->stack.count - mark, p->stack.data + mark);
  p->stack.count = mark;
  return id;
}

u32 new_name(Parser *p, const Token *t) {
  Name n = intern_token(p, t);
  return n ? new_node(p, (AstNode){.kind = AST_NAME, .ref = n, .span = token_span(p, t)}, 0, NULL) : 0;
}

u32 new_text(Parser *p, Span span, const char *text, u32 len) {
  if (p->status) return 0;
  if (!vec_push(p->alloc, &p->texts, (AstText){text, len})) return fail_memory(p);
  return new_node(p, (AstNode){.kind = AST_TEXT, .ref = p->texts.count - 1, .span = span}, 0, NULL);
}

u32 decode_text(Parser *p, const Token *t, u32 skip, u32 drop, bool braces) {
  const char *text;
  u32 len;
  LiteralFault fault;
  if (literal_text(p->arena, token_start(p, t) + skip, t->len - skip - drop, braces, &text, &len, &fault, p->toil)) {
    if (!fault.message[0]) return fail_memory(p);
    return fail_at(p, (Span){p->file, t->start + skip + fault.at, fault.len}, "%s", fault.message);
  }
  return new_text(p, token_span(p, t), text, len);
}

bool enter(Parser *p) {
  if (p->status) return false;
  if (p->depth >= PARSE_MAX_DEPTH)
    return fail_at(p, token_span(p, p->tok), "nested too deeply: more than %d levels of brackets, blocks and operators",
                   PARSE_MAX_DEPTH);
  if (!cstack_has(CSTACK_CALL)) {
    (void)fail_at(p, token_span(p, p->tok), "nested too deeply: the C stack is used up");
    p->diag->kind = DIAG_LIMIT;
    return false;
  }
  p->depth++;
  return true;
}

/* ---- the facade --------------------------------------------------------------------------- */

/* Eight bytes of ASCII at once; what is refused, is refused at its place. */
static u32 skip_ascii(const char *s, u32 len, u32 at) {
  u64 word = 0;
  for (; len - at >= sizeof word; at += (u32)sizeof word) {
    memcpy(&word, s + at, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  return at;
}

static bool check_utf8(Parser *p) {
  u32 code, n;
  for (u32 i = 0; i < p->source->len; i += n) {
    enum { PART = 1 << 16 };
    u32 part = p->source->len - i < PART ? p->source->len - i : PART, from = i;
    i = skip_ascii(p->source->text, i + part, i);
    if (!toil(p->toil, 1 + (i - from) / 16)) return fail_memory(p);
    if (i == p->source->len) break;
    n = utf8_decode(p->source->text, p->source->len, i, &code);
    if (!n) return fail_at(p, (Span){p->file, i, 1}, "the text is not UTF-8: byte 0x%02x", (u8)p->source->text[i]);
  }
  return true;
}

/* Checks that need the whole tree, in one pass over the nodes, children first. */
static bool check_tree(Parser *p) {
  u32 n = p->nodes.count;
  u16 *depth = mem_alloc_zero(p->alloc, sizeof *depth * n);
  if (!depth) return fail_memory(p);
  bool ok = true;
  for (u32 id = 1; id < n && ok; id++) {
    AstNode *x = node(p, id);
    ok = toil(p->toil, 1) || fail_memory(p);
    u16 deepest = 0;
    for (u32 i = 0; i < x->count; i++) {
      u16 d = depth[p->kids.data[x->first + i]];
      if (d > deepest) deepest = d;
    }
    depth[id] = (u16)(deepest + 1);
    if (x->kind == AST_HOLE) x->flags = 0;
    if (depth[id] > AST_MAX_DEPTH) {
      u32 end = x->span.start + x->span.len;
      ok = fail_at(p, (Span){p->file, end ? end - 1 : 0, 1},
                   "an expression of more than %d levels; give its parts names by let", AST_MAX_DEPTH);
    }
  }
  mem_free(p->alloc, depth, sizeof *depth * n);
  return ok;
}

static bool copy_array(Parser *p, const void *data, u32 count, size_t size, const void **out) {
  char *mem = arena_alloc(p->arena, count * size);
  if (!mem) return fail_memory(p);
  if (count) memcpy(mem, data, count * size);
  *out = mem;
  return true;
}

static bool hand_out(Parser *p, u32 root, Ast *out) {
  *out = (Ast){.file = p->file,
               .root = root,
               .node_count = p->nodes.count,
               .kid_count = p->kids.count,
               .int_count = p->ints.count,
               .float_count = p->floats.count,
               .text_count = p->texts.count,
               .op_count = p->ops.count};
  return copy_array(p, p->nodes.data, p->nodes.count, sizeof *p->nodes.data, (const void **)&out->nodes) &&
         copy_array(p, p->kids.data, p->kids.count, sizeof *p->kids.data, (const void **)&out->kids) &&
         copy_array(p, p->ints.data, p->ints.count, sizeof *p->ints.data, (const void **)&out->ints) &&
         copy_array(p, p->floats.data, p->floats.count, sizeof *p->floats.data, (const void **)&out->floats) &&
         copy_array(p, p->texts.data, p->texts.count, sizeof *p->texts.data, (const void **)&out->texts) &&
         copy_array(p, p->ops.data, p->ops.count, sizeof *p->ops.data, (const void **)&out->ops);
}

WeftStatus parser_parse(Ast *out, Arena *arena, Names *names, const Sources *sources, u32 file, Diag *diag,
                        const ParseOptions *options) {
  const SourceFile *source = sources_get(sources, file);
  *out = (Ast){0};
  *diag = (Diag){0};
  if (!source) return WEFT_MISUSE;
  Parser p = {.alloc = arena->alloc,
              .arena = arena,
              .names = names,
              .sources = sources,
              .source = source,
              .file = file,
              .diag = diag,
              .toil = options ? options->toil : NULL,
              .repl = options && options->repl,
              .recover = options && options->problem ? options : NULL};
  if (!vec_push(p.alloc, &p.nodes, (AstNode){0})) {
    fail_memory(&p);
  } else if (check_utf8(&p) && tokenize(&p)) {
    u32 root = parse_program(&p);
    if (root && check_tree(&p)) hand_out(&p, root, out);
  }
  vec_free(p.alloc, &p.tokens);
  vec_free(p.alloc, &p.lex_messages);
  vec_free(p.alloc, &p.nodes);
  vec_free(p.alloc, &p.kids);
  vec_free(p.alloc, &p.ints);
  vec_free(p.alloc, &p.floats);
  vec_free(p.alloc, &p.texts);
  vec_free(p.alloc, &p.ops);
  vec_free(p.alloc, &p.stack);
  vec_free(p.alloc, &p.op_stack);
  if (p.status) *out = (Ast){0};
  return p.status;
}

/* test_parser.c — lexer, parser, printer and verifier of the AST: tables of texts with their trees and errors,
 * and texts made by cutting, mixing and refusing memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parser/parser.h"
#include "tests/unit/parser_cases.h"
#include "tests/unit/parser_errors.h"

/* ---- one text, parsed --------------------------------------------------------------------- */

typedef struct Parsed {
  Sources sources;
  Names names;
  Arena arena;
  Ast ast;
  Diag diag;
  WeftStatus status;
  u32 file;
} Parsed;

/* Everything through one allocator; WEFT_MISUSE when it refused before parsing could begin. */
static void parse_with(Parsed *r, Allocator *a, const char *text, size_t len, bool repl) {
  *r = (Parsed){.status = WEFT_MISUSE};
  arena_init(&r->arena, a);
  if (sources_init(&r->sources, a) || names_init(&r->names, a)) return;
  r->file = sources_add(&r->sources, "case.weft", text, len);
  if (!r->file) return;
  r->status = parser_parse(&r->ast, &r->arena, &r->names, &r->sources, r->file, &r->diag,
                           &(ParseOptions){.repl = repl});
}

static void release(Parsed *r) {
  arena_free(&r->arena);
  if (r->names.alloc) names_free(&r->names);
  if (r->sources.alloc) sources_free(&r->sources);
}

static void parse(Parsed *r, const char *text, bool repl) {
  parse_with(r, allocator_system(), text, strlen(text), repl);
}

static void assert_sound(Parsed *r, const char *text) {
  Buf out;
  buf_init(&out, allocator_system());
  const char *wrong = ast_verify(&r->ast, &r->names, allocator_system(), &out);
  if (wrong) fail_msg("%s\n in %s", wrong, text);
  buf_free(&out);
}

static void print_tree(Parsed *r, bool positions, Buf *out) {
  buf_init(out, allocator_system());
  ast_print(&r->ast, r->ast.root, &(AstPrint){&r->names, positions ? &r->sources : NULL}, out);
  assert_false(out->failed);
}

static void assert_tree(const char *text, const char *tree) {
  Parsed r;
  parse(&r, text, false);
  if (r.status) fail_msg("%s\n in %s", r.diag.message, text);
  assert_sound(&r, text);
  Buf out;
  print_tree(&r, false, &out);
  if (strcmp(buf_text(&out), tree) != 0) fail_msg("text %s\n want %s\n got  %s", text, tree, buf_text(&out));
  buf_free(&out);
  release(&r);
}

/* ---- trees -------------------------------------------------------------------------------- */

static void test_trees(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(trees); i++) assert_tree(trees[i].text, trees[i].tree);
}

/* The same texts with CRLF, a byte order mark, and blanks and comments around. */
static void test_line_ends(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(trees); i++) {
    char text[2048];
    u32 n = (u32)sprintf(text, "\xEF\xBB\xBF# first\r\n \t\f");
    if (!strchr(trees[i].text, '\n')) n = (u32)sprintf(text, "\xEF\xBB\xBF\n");
    if (!strncmp(trees[i].text, "#!", 2)) n = 0;
    for (const char *s = trees[i].text; *s; s++) {
      if (*s == '\n') text[n++] = '\r';
      text[n++] = *s;
    }
    strcpy(text + n, " # last");
    assert_tree(text, trees[i].tree);
  }
}

static void test_positions(void **state) {
  (void)state;
  Parsed r;
  parse(&r, "let x = 1\n  r.w[2, :] += v; -é\n\nif a {\n b\n}", false);
  assert_int_equal(r.status, WEFT_OK);
  Buf out;
  print_tree(&r, true, &out);
  assert_string_equal(buf_text(&out), "(let x 1)@1:1\n(assign += (index (field r w) 2 :) v)@2:3\n(- é)!signed@2:19\n"
                                      "(if a (block b))@4:1");
  buf_free(&out);
  /* spans: whole operands, parentheses included */
  Parsed s;
  parse(&s, "(a + b) * f(c)", false);
  const AstNode *product = ast_node(&s.ast, ast_kid(&s.ast, ast_node(&s.ast, s.ast.root), 0));
  assert_int_equal(product->kind, AST_BINARY);
  assert_int_equal(product->op, AST_OP_multiply);
  assert_int_equal(product->span.start, 0);
  assert_int_equal(product->span.len, 14);
  const AstNode *sum = ast_node(&s.ast, ast_kid(&s.ast, product, 0));
  assert_int_equal(sum->span.len, 7);
  assert_true(sum->flags & AF_PARENS);
  release(&s);
  release(&r);
}

static u32 first_statement(const Parsed *r) { return ast_kid(&r->ast, ast_node(&r->ast, r->ast.root), 0); }

static void test_accessors(void **state) {
  (void)state;
  Parsed r;
  parse(&r, "x |> f(a).g(_ => 1)[0]", false);
  const AstNode *pipe = ast_node(&r.ast, first_statement(&r));
  assert_int_equal(pipe->kind, AST_PIPE);
  const AstNode *call = ast_node(&r.ast, ast_pipe_call(&r.ast, pipe));
  assert_int_equal(call->kind, AST_CALL);
  assert_int_equal(call->flags, AF_PIPED);
  assert_int_equal(call->span.start, 5);
  assert_int_equal(call->span.len, 4);
  release(&r);
  parse(&r, "x |> (f(a))", false);
  assert_int_equal(ast_pipe_call(&r.ast, ast_node(&r.ast, first_statement(&r))), 0);
  release(&r);
  parse(&r, "x |> f(1, _)", false);
  call = ast_node(&r.ast, ast_pipe_call(&r.ast, ast_node(&r.ast, first_statement(&r))));
  assert_int_equal(call->flags, AF_PIPED | AF_HOLES);
  release(&r);
  parse(&r, "if a { 1 } else if b { 2 } else { 3 }", false);
  const AstNode *choice = ast_node(&r.ast, first_statement(&r));
  assert_int_equal(ast_if_arms(choice), 2);
  assert_int_equal(ast_kind(&r.ast, ast_if_else(&r.ast, choice)), AST_BLOCK);
  release(&r);
  parse(&r, "if a { 1 } else if b { 2 }", false);
  choice = ast_node(&r.ast, first_statement(&r));
  assert_int_equal(ast_if_arms(choice), 2);
  assert_int_equal(ast_if_else(&r.ast, choice), 0);
  release(&r);
  parse(&r, "## doc\nfn f(x, ...r, k=1) = x", false);
  const AstNode *fn = ast_node(&r.ast, first_statement(&r));
  assert_int_equal(ast_fn_arity(fn), 3);
  assert_string_equal(r.ast.texts[ast_node(&r.ast, ast_fn_doc(&r.ast, fn))->ref].text, "doc");
  assert_int_equal(ast_kind(&r.ast, ast_fn_body(&r.ast, fn)), AST_NAME);
  assert_int_equal(ast_node(&r.ast, ast_fn_param(&r.ast, fn, 1))->flags, AF_REST);
  assert_int_equal(ast_node(&r.ast, ast_fn_param(&r.ast, fn, 2))->flags, AF_KEYWORD);
  assert_string_equal(name_text(&r.names, fn->ref), "f");
  release(&r);
  parse(&r, "\"a\\0b\"", false);
  AstText text = r.ast.texts[ast_node(&r.ast, first_statement(&r))->ref];
  assert_int_equal(text.len, 3);
  assert_memory_equal(text.text, "a\0b", 4);
  release(&r);
}

static void test_names_of_kinds(void **state) {
  (void)state;
  assert_string_equal(ast_kind_name(AST_FSTRING), "fstring");
  assert_string_equal(ast_kind_name(AST_KIND_COUNT), "?");
  assert_string_equal(ast_op_text(AST_OP_floor_divide), "//");
  assert_string_equal(ast_op_name(AST_OP_floor_divide), "floor_divide");
  assert_string_equal(ast_op_name(AST_OP_logical_not), "logical_not");
  const char *const *words = parser_reserved_words();
  char all[256] = "";
  for (; *words; words++) strcat(strcat(all, *all ? " " : ""), *words);
  assert_string_equal(all, "let fn if else for while in by break continue return try catch import and or "
                           "not true false nil");
  assert_string_equal(parser_foreign_word("None", 4), "nil");
  assert_string_equal(parser_foreign_word("elif", 4), "else if c { … }");
  assert_null(parser_foreign_word("is", 2));
  assert_null(parser_foreign_word("x", 1));
}

/* ---- errors ------------------------------------------------------------------------------- */

static void test_errors(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(errors); i++) {
    Parsed r;
    parse(&r, errors[i].text, false);
    if (r.status != WEFT_ERROR) fail_msg("no error in %s", errors[i].text);
    u32 line, col;
    sources_locate(&r.sources, r.diag.span, &line, &col);
    if (strcmp(r.diag.message, errors[i].message) || line != errors[i].line || col != errors[i].col ||
        r.diag.span.len != errors[i].len)
      fail_msg("text %s\n want %u:%u+%u %s\n got  %u:%u+%u %s", errors[i].text, errors[i].line, errors[i].col,
               errors[i].len, errors[i].message, line, col, r.diag.span.len, r.diag.message);
    assert_int_equal(r.diag.kind, DIAG_SYNTAX);
    assert_int_equal(r.ast.root, 0);
    release(&r);
  }
}

static void test_not_utf8(void **state) {
  (void)state;
  static const char *const broken[] = {"a\n\xff", "a\n\xc3", "a\n\xc0\x80", "a\n\xed\xa0\x80", "a\n\xf5\x80\x80\x80",
                                       "a\n# \x80", "a\n\"\xe2\x82\""};
  for (u32 i = 0; i < COUNT_OF(broken); i++) {
    Parsed r;
    parse(&r, broken[i], false);
    assert_int_equal(r.status, WEFT_ERROR);
    assert_non_null(strstr(r.diag.message, "the text is not UTF-8: byte 0x"));
    u32 line, col;
    sources_locate(&r.sources, r.diag.span, &line, &col);
    assert_int_equal(line, 2);
    release(&r);
  }
}

static void test_control_characters(void **state) {
  (void)state;
  Parsed r;
  parse_with(&r, allocator_system(), "a \0 b", 5, false);
  assert_int_equal(r.status, WEFT_ERROR);
  assert_string_equal(r.diag.message, "control character U+0000");
  release(&r);
  parse_with(&r, allocator_system(), "\"a\0b\"", 5, false); /* inside text it is a character like others */
  assert_int_equal(r.status, WEFT_OK);
  assert_int_equal(r.ast.texts[0].len, 3);
  release(&r);
}

static void test_repl(void **state) {
  (void)state;
  Parsed r;
  for (u32 i = 0; i < COUNT_OF(incomplete); i++) {
    parse(&r, incomplete[i], true);
    if (r.status != WEFT_INCOMPLETE) fail_msg("status %d of %s", r.status, incomplete[i]);
    release(&r);
    bool doc = !strncmp(incomplete[i], "##", 2);
    parse(&r, incomplete[i], false);
    if (r.status != (doc ? WEFT_OK : WEFT_ERROR)) fail_msg("status %d of %s", r.status, incomplete[i]);
    release(&r);
  }
  for (u32 i = 0; i < COUNT_OF(beyond_repair); i++) {
    parse(&r, beyond_repair[i], true);
    if (r.status != WEFT_ERROR) fail_msg("status %d of %s", r.status, beyond_repair[i]);
    release(&r);
  }
  for (u32 i = 0; i < COUNT_OF(trees); i++) { /* what is whole is whole at the prompt too */
    parse(&r, trees[i].text, true);
    if (r.status) fail_msg("status %d of %s", r.status, trees[i].text);
    release(&r);
  }
}

/* ---- depth -------------------------------------------------------------------------------- */

static char *repeat(const char *prefix, const char *before, const char *middle, const char *after, u32 n) {
  size_t f = strlen(prefix), b = strlen(before), m = strlen(middle), a = strlen(after);
  char *s = malloc(f + b * n + m + a * n + 1), *p = s;
  p = (char *)memcpy(p, prefix, f) + f;
  for (u32 i = 0; i < n; i++) p = (char *)memcpy(p, before, b) + b;
  p = (char *)memcpy(p, middle, m) + m;
  for (u32 i = 0; i < n; i++) p = (char *)memcpy(p, after, a) + a;
  *p = 0;
  return s;
}

static const struct {
  const char *prefix, *before, *middle, *after, *message; /* NULL: no bound */
} deep[] = {
    {"", "(", "1", ")", "nested too deeply"},
    {"", "[", "1", "]", "nested too deeply"},
    {"", "{", "1", "}", "nested too deeply"},
    {"", "{a: ", "1", "}", "nested too deeply"},
    {"", "(", "1", "", "nested too deeply"},
    {"", "f(", "", ")", "nested too deeply"},
    {"", "a[", "0", "]", "nested too deeply"},
    {"", "-", "1", "", "nested too deeply"},
    {"", "not ", "a", "", "nested too deeply"},
    {"", "2**", "2", "", "nested too deeply"},
    {"", "x => ", "x", "", "nested too deeply"},
    {"", "if a { ", "b", " }", "nested too deeply"},
    {"", "fn f() { ", "b", " }", "nested too deeply"},
    {"", "x |> (", "f", ")", "nested too deeply"},
    {"", "f\"{", "x", "}\"", "nested too deeply"},
    {"let ", "(", "x", ",)", "nested too deeply"},
    {"let ", "{a: ", "x", "}", "nested too deeply"},
    {"", "a + ", "1", "", "more than 1000 levels"},
    {"", "a and ", "1", "", "more than 1000 levels"},
    {"", "", "a", ".b()", "more than 1000 levels"},
    {"", "", "a", " |> f", "more than 1000 levels"},
    {"", "", "a", "[0]", "more than 1000 levels"},
    {"", "a < ", "1", "", NULL},
    {"", "a; ", "1", "", NULL},
    {"", "", "if a {}", " else if b {}", NULL},
};

static void *parse_deep(void *arg) {
  for (u32 i = 0; i < COUNT_OF(deep); i++) {
    char *text = repeat(deep[i].prefix, deep[i].before, deep[i].middle, deep[i].after, 20000);
    Parsed r;
    parse(&r, text, false);
    bool right = deep[i].message ? r.status == WEFT_ERROR && strstr(r.diag.message, deep[i].message)
                                 : r.status == WEFT_OK;
    if (!right) {
      *(char **)arg = strdup(r.status ? r.diag.message : deep[i].before);
      i = COUNT_OF(deep);
    }
    release(&r);
    free(text);
  }
  return NULL;
}

/* On a small stack, as a host's thread may have. */
static void test_depth(void **state) {
  (void)state;
  pthread_attr_t attr;
  pthread_t thread;
  char *wrong = NULL;
#ifdef __SANITIZE_ADDRESS__
  size_t stack = 1024 * 1024;
#else
  size_t stack = 192 * 1024;
#endif
  assert_int_equal(pthread_attr_init(&attr), 0);
  assert_int_equal(pthread_attr_setstacksize(&attr, stack), 0);
  assert_int_equal(pthread_create(&thread, &attr, parse_deep, &wrong), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attr);
  if (wrong) fail_msg("%s", wrong);
}

static void test_reasonable_depth(void **state) {
  (void)state;
  static const char *const fine[][3] = {{"(", "1", ")"}, {"f(", "", ")"}, {"[", "1", "]"}, {"if a { ", "b", " }"},
                                        {"a + ", "1", ""}};
  for (u32 i = 0; i < COUNT_OF(fine); i++) {
    char *text = repeat("", fine[i][0], fine[i][1], fine[i][2], 100);
    Parsed r;
    parse(&r, text, false);
    assert_int_equal(r.status, WEFT_OK);
    assert_sound(&r, text);
    release(&r);
    free(text);
  }
}

/* ---- tokens ------------------------------------------------------------------------------- */

static void assert_tokens(const char *text, bool comments, const char *want) {
  Lexer l;
  Token t;
  Buf out;
  buf_init(&out, allocator_system());
  lexer_init(&l, text, (u32)strlen(text));
  l.comments = comments;
  for (;;) {
    lexer_next(&l, &t);
    if (t.kind == TOK_EOF) break;
    if (out.len) buf_putc(&out, ' ');
    const char *kind = t.kind == TOK_ERROR ? "error" : t.kind == TOK_COMMENT ? "comment" : t.kind == TOK_NAME ? "name"
                                           : t.kind == TOK_TEXT ? "text" : t.kind == TOK_FSTR_TEXT ? "piece"
                                           : token_is_word(t.kind) ? "word" : "";
    buf_printf(&out, "%s<%.*s>", kind, (int)t.len, text + t.start);
  }
  if (strcmp(buf_text(&out), want) != 0) fail_msg("text %s\n want %s\n got  %s", text, want, buf_text(&out));
  buf_free(&out);
}

static void test_tokens(void **state) {
  (void)state;
  assert_tokens("let x = 1.5 # c", true, "word<let> name<x> <=> <1.5> comment<# c>");
  assert_tokens("let x = 1.5 # c", false, "word<let> name<x> <=> <1.5>");
  assert_tokens("a**=b//c|>d...e..f", false,
                "name<a> <**=> name<b> <//> name<c> <|>> name<d> <...> name<e> <..> name<f>");
  assert_tokens("f\"a{x:{w}.2}}}b\"+\"c\"", false,
                "<f\"> piece<a> <{> name<x> <:> <{> name<w> <}> piece<.2> <}> piece<}}b> <\"> <+> text<\"c\">");
  assert_tokens("f\"{f\"{r[\"k\"]}\"}\"", false, "<f\"> <{> <f\"> <{> name<r> <[> text<\"k\"> <]> <}> <\"> <}> <\">");
  assert_tokens("\"a\nx && y", false, "error<\"a> name<x> error<&&> name<y>"); /* goes on behind an error */
  assert_tokens("f\"a {x\nlet", false, "<f\"> piece<a > <{> name<x> word<let>");
  assert_tokens("f\"a\nlet", false, "<f\"> piece<a> error<> word<let>");
  assert_tokens("f\"{x:d\nlet", false, "<f\"> <{> name<x> <:> piece<d> error<> word<let>");
  assert_tokens("a \xff b", false, "name<a> error<\xff> name<b>");
  assert_tokens("0x1_f 1e5.f 1..2", false, "<0x1_f> <1e5> <.> name<f> <1> <..> <2>");
  assert_tokens("lets iff in_ not", false, "name<lets> name<iff> name<in_> word<not>");
}

/* ---- the verifier ------------------------------------------------------------------------- */

/* Ways to damage a node; the verifier must name each. */
static void no_kind(Ast *a, AstNode *n, u32 *kids) { (void)a; (void)kids; n->kind = AST_KIND_COUNT; }
static void bad_kids(Ast *a, AstNode *n, u32 *kids) { (void)kids; n->first = a->kid_count; }
static void later_kid(Ast *a, AstNode *n, u32 *kids) { kids[n->first] = a->root; }
static void twice_kid(Ast *a, AstNode *n, u32 *kids) { (void)a; kids[n->first] = kids[n->first + 1]; }
static void no_kid(Ast *a, AstNode *n, u32 *kids) { (void)a; kids[n->first] = 0; }
static void fewer_kids(Ast *a, AstNode *n, u32 *kids) { (void)a; (void)kids; n->count--; }
static void bad_ref(Ast *a, AstNode *n, u32 *kids) { (void)a; (void)kids; n->ref = 100000; }
static void bad_flag(Ast *a, AstNode *n, u32 *kids) { (void)a; (void)kids; n->flags = 0x20; }
static void bad_op(Ast *a, AstNode *n, u32 *kids) { (void)a; (void)kids; n->op = AST_OP_less; }
static void bad_span(Ast *a, AstNode *n, u32 *kids) { (void)a; (void)kids; n->span.start = 100; }
static void bad_file(Ast *a, AstNode *n, u32 *kids) { (void)a; (void)kids; n->span.file = 9; }

static void test_verifier(void **state) {
  (void)state;
  static const struct {
    const char *text;
    u8 kind;
    void (*damage)(Ast *a, AstNode *n, u32 *kids);
    const char *says;
  } rows[] = {
      {"a + b", AST_NAME, no_kind, "unknown kind"},
      {"a + b", AST_BINARY, bad_kids, "children out of range"},
      {"a + b", AST_BINARY, later_kid, "does not come before"},
      {"a + b", AST_BINARY, twice_kid, "two parents"},
      {"a + b", AST_BINARY, no_kid, "children do not fit"},
      {"let x = 1", AST_LET, fewer_kids, "children do not fit"},
      {"if a { b }", AST_IF, fewer_kids, "children do not fit"},
      {"a < b", AST_COMPARE, bad_ref, "reference"},
      {"1", AST_INT, bad_ref, "reference"},
      {"2.5", AST_FLOAT, bad_ref, "reference"},
      {"\"a\"", AST_TEXT, bad_ref, "reference"},
      {"a", AST_NAME, bad_ref, "reference"},
      {"break_", AST_NAME, bad_flag, "flags"},
      {"a + b", AST_BINARY, bad_op, "operator"},
      {"a", AST_NAME, bad_op, "operator"},
      {"a + b", AST_NAME, bad_span, "span"},
      {"a", AST_NAME, bad_file, "another file"},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    Parsed r;
    parse(&r, rows[i].text, false);
    assert_int_equal(r.status, WEFT_OK);
    Ast bad = r.ast;
    AstNode *nodes = malloc(sizeof *nodes * bad.node_count);
    u32 *kids = malloc(sizeof *kids * (bad.kid_count + 1));
    memcpy(nodes, bad.nodes, sizeof *nodes * bad.node_count);
    memcpy(kids, bad.kids, sizeof *kids * bad.kid_count);
    bad.nodes = nodes;
    bad.kids = kids;
    u32 id = 1;
    while (nodes[id].kind != rows[i].kind) id++;
    rows[i].damage(&bad, &nodes[id], kids);
    Buf out;
    buf_init(&out, allocator_system());
    const char *wrong = ast_verify(&bad, &r.names, allocator_system(), &out);
    if (!wrong || !strstr(wrong, rows[i].says))
      fail_msg("%s: want %s, got %s", rows[i].text, rows[i].says, wrong ? wrong : "nothing");
    buf_free(&out);
    free(nodes);
    free(kids);
    release(&r);
  }
}

/* ---- memory ------------------------------------------------------------------------------- */

typedef struct Refusing {
  Allocator base;
  u64 left;  /* allocations until the first refusal */
  i64 bytes; /* outstanding */
} Refusing;

static void *refusing_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  Refusing *r = (Refusing *)self;
  if (new_size) {
    if (!r->left) return NULL;
    r->left--;
  }
  r->bytes += (i64)new_size - (i64)old_size;
  return allocator_system()->resize(allocator_system(), p, old_size, new_size);
}

static void test_refused_memory(void **state) {
  (void)state;
  static const char text[] =
      "## doc\nfn f(a, (b, c), ...r, k: f64[n] = 1) { return a < b < c + \"text\" }\n"
      "let {x, y: (p, q)} = {x: 1, \"y z\": 2.5}\nr.w[2, ::3] += f(1, z=f\"{x:.{y}} a\") |> g(_, 2)\n"
      "for i in 0..3 by 2 { if i in xs { (x, y) = (y, x) } else { break } }\ntry { a } catch e { b }\n"
      "1 < 2 < 3 < 4 < 5 < 6 < 7 < 8 < 9 < 10 < 11 < 12; x' \n";
  bool failed = true;
  u64 n = 0;
  for (; failed; n++) {
    assert_true(n < 10000);
    Refusing a = {.base.resize = refusing_resize, .left = n};
    Parsed r;
    parse_with(&r, &a.base, text, sizeof text - 4, false);
    failed = r.status == WEFT_MISUSE || (r.status == WEFT_ERROR && r.diag.kind == DIAG_LIMIT);
    if (!failed && r.status) fail_msg("allocation %llu: %s", (unsigned long long)n, r.diag.message);
    if (r.status == WEFT_ERROR) assert_string_equal(r.diag.message, "out of memory while parsing");
    release(&r);
    assert_int_equal(a.bytes, 0);
  }
  assert_true(n > 20);
  for (u64 k = 0; k < n + 5; k++) { /* refused while an error is made */
    Refusing a = {.base.resize = refusing_resize, .left = k};
    Parsed r;
    parse_with(&r, &a.base, text, sizeof text - 1, false);
    assert_true(r.status == WEFT_MISUSE || r.status == WEFT_ERROR);
    if (r.status == WEFT_ERROR) assert_non_null(r.diag.message);
    release(&r);
    assert_int_equal(a.bytes, 0);
  }
}

/* ---- texts that nobody wrote -------------------------------------------------------------- */

/* Whatever the text: a sound tree, or an error with a message and a span inside the file. */
static void assert_survives(const char *text, size_t len, bool repl) {
  Parsed r;
  parse_with(&r, allocator_system(), text, len, repl);
  if (r.status == WEFT_OK) {
    assert_sound(&r, text);
  } else {
    assert_true(r.status == WEFT_ERROR || (repl && r.status == WEFT_INCOMPLETE));
    assert_int_equal(r.diag.kind, DIAG_SYNTAX);
    if (!r.diag.message || !*r.diag.message || r.diag.span.start + r.diag.span.len > len || r.diag.span.file != r.file)
      fail_msg("bad error %s at %u+%u in %s", r.diag.message, r.diag.span.start, r.diag.span.len, text);
    Buf out;
    buf_init(&out, allocator_system());
    sources_show(&r.sources, r.diag.span, &out);
    assert_non_null(strchr(buf_text(&out), '^'));
    buf_free(&out);
  }
  release(&r);
  Lexer l;
  Token t;
  lexer_init(&l, text, (u32)len);
  u32 end = 0;
  do {
    lexer_next(&l, &t);
    if (t.start < end || t.start + t.len > len) fail_msg("token out of order in %s", text);
    end = t.start + t.len;
  } while (t.kind != TOK_EOF);
}

static void test_prefixes(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(trees); i++)
    for (size_t n = 0; n <= strlen(trees[i].text); n++) {
      char *cut = malloc(n + 1); /* exact size, so that the sanitizer sees reads beyond */
      memcpy(cut, trees[i].text, n);
      cut[n] = 0;
      assert_survives(cut, n, n % 2);
      free(cut);
    }
}

static u64 random_next(u64 *s) {
  *s ^= *s << 13;
  *s ^= *s >> 7;
  *s ^= *s << 17;
  return *s;
}

/* Random sequences of tokens and of pieces of the tables, as many as take a second or two. */
enum { RANDOM_ROUNDS = 40000 };

static void test_random_tokens(void **state) {
  (void)state;
  static const char *const extra[] = {"x", "f", "1", "2.5", "\"t\"", "f\"", "\"", "{", "}", "f\"{", "}\"", "\n", "\n",
                                      "_", "\"\"\"", "## d\n", "0x", "é", "\\", "'", "&&", "value"};
  u64 seed = 0x9E3779B97F4A7C15u;
  u32 whole = 0;
  for (u32 rounds = 0; rounds < RANDOM_ROUNDS; rounds++) {
    char text[1024];
    u32 n = 0, count = (u32)(random_next(&seed) % 30);
    for (u32 i = 0; i < count; i++) {
      u64 pick = random_next(&seed);
      const char *piece;
      if (pick % 16 == 0) piece = trees[(pick >> 8) % COUNT_OF(trees)].text;
      else if (pick % 16 == 1) piece = errors[(pick >> 8) % COUNT_OF(errors)].text;
      else if (pick % 2) piece = extra[(pick >> 8) % COUNT_OF(extra)];
      else piece = token_text(TOK_LET + (u32)((pick >> 8) % (TOK_COUNT - TOK_LET)));
      size_t len = strlen(piece);
      if (n + len + 2 > sizeof text) break;
      memcpy(text + n, piece, len);
      n += (u32)len;
      if (pick >> 60 & 3) text[n++] = ' ';
    }
    text[n] = 0;
    assert_survives(text, n, rounds % 2);
    Parsed r;
    parse(&r, text, false);
    whole += r.status == WEFT_OK;
    release(&r);
  }
  assert_true(whole > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_trees),          cmocka_unit_test(test_line_ends),
      cmocka_unit_test(test_positions),      cmocka_unit_test(test_accessors),
      cmocka_unit_test(test_names_of_kinds), cmocka_unit_test(test_errors),
      cmocka_unit_test(test_not_utf8),       cmocka_unit_test(test_control_characters),
      cmocka_unit_test(test_repl),           cmocka_unit_test(test_depth),
      cmocka_unit_test(test_reasonable_depth), cmocka_unit_test(test_tokens),
      cmocka_unit_test(test_verifier),       cmocka_unit_test(test_refused_memory),
      cmocka_unit_test(test_prefixes),       cmocka_unit_test(test_random_tokens),
  };
  return cmocka_run_group_tests_name("parser", tests, NULL, NULL);
}

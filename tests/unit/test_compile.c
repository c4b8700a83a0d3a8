/* test_compile.c — the compiler by golden texts, its errors, liveness, the verifier's refusals, and stored code. */
#include "lang/compile.h"
#include "lang/ops.h"
#include "parser/parser.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- a compilation and all it needs ------------------------------------------------------------------------ */

/* Counts what is out, and refuses from the n-th request on. */
typedef struct Counting {
  Allocator head;
  size_t bytes;
  u64 requests, refuse_at;
} Counting;

static void *count_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  Counting *c = (Counting *)self;
  if (new_size && c->refuse_at && ++c->requests >= c->refuse_at) return NULL;
  c->bytes += new_size - old_size;
  if (!new_size) {
    free(p);
    return NULL;
  }
  return realloc(p, new_size);
}

typedef struct World {
  Counting mem;
  Allocator *alloc;
  Names names;
  Sources sources;
  ModuleScope scope;
  Arena arena;
  Proto *proto;
  Diag diag;
  Buf text;
} World;

static bool world_init(World *w) {
  w->mem.head.resize = count_resize;
  w->alloc = &w->mem.head;
  w->scope.alloc = w->alloc;
  arena_init(&w->arena, w->alloc);
  buf_init(&w->text, w->alloc);
  return names_init(&w->names, w->alloc) == WEFT_OK && sources_init(&w->sources, w->alloc) == WEFT_OK;
}

static void world_free(World *w) {
  proto_drop(w->proto);
  buf_free(&w->text);
  scope_free(&w->scope);
  arena_free(&w->arena);
  if (w->sources.alloc) sources_free(&w->sources);
  if (w->names.alloc) names_free(&w->names);
}

static WeftStatus compile_text(World *w, const char *text, bool repl) {
  Ast ast;
  proto_drop(w->proto);
  w->proto = NULL;
  u32 file = sources_add(&w->sources, "t.weft", text, strlen(text));
  w->diag = (Diag){.kind = EK_limit};
  if (!file) return WEFT_ERROR;
  WeftStatus status = parser_parse(&ast, &w->arena, &w->names, &w->sources, file, &w->diag, NULL);
  if (status != WEFT_OK) return status;
  CompileOptions o = {.alloc = w->alloc, .names = &w->names, .sources = &w->sources, .scope = &w->scope,
                      .diag_arena = &w->arena, .repl = repl};
  return lang_compile(&ast, &o, &w->proto, &w->diag);
}

static const char *dump(World *w, bool spans) {
  buf_free(&w->text);
  proto_print(w->proto, &w->names, spans ? &w->sources : NULL, &w->scope, &w->text);
  return buf_text(&w->text);
}

static bool verifies(World *w) {
  buf_free(&w->text);
  return proto_verify(w->proto, w->scope.slots.count, w->names.count, w->alloc, &w->text, NULL);
}

/* Blanks in a row count as one, at the end of a line as none. */
static void squeeze(const char *s, char *out, size_t cap) {
  size_t n = 0;
  for (; *s && n + 1 < cap; s++) {
    if (*s == ' ' && (s[1] == ' ' || s[1] == '\n' || !s[1] || n == 0 || out[n - 1] == '\n')) continue;
    out[n++] = *s;
  }
  out[n] = 0;
}

/* ---- golden texts ------------------------------------------------------------------------------------------- */

typedef struct Golden {
  const char *name, *program, *code;
} Golden;

static const Golden goldens[] = {
#include "tests/unit/compile_texts.h"
};

static void check_golden(const Golden *g) {
  World w = {0};
  assert_true(world_init(&w));
  if (compile_text(&w, g->program, false) != WEFT_OK) fail_msg("%s: %s", g->name, w.diag.message);
  char got[8192], want[8192];
  squeeze(dump(&w, false), got, sizeof got);
  squeeze(g->code, want, sizeof want);
  if (strcmp(got, want) != 0) fail_msg("%s:\n%s\ninstead of\n%s", g->name, got, want);
  if (!verifies(&w)) fail_msg("%s: %s", g->name, buf_text(&w.text));
  world_free(&w);
  assert_int_equal(w.mem.bytes, 0);
}

static void test_goldens(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(goldens); i++) check_golden(&goldens[i]);
}

static void test_spans(void **state) {
  (void)state;
  World w = {0};
  assert_true(world_init(&w));
  assert_int_equal(compile_text(&w, "let x = [1]\nlet y = x @ f64(x[0] +\n  2)\nx[1] = 3", false), WEFT_OK);
  const char *text = dump(&w, true);
  assert_non_null(strstr(text, "; 2:9-3:5"));   /* the product, over two lines */
  assert_non_null(strstr(text, "index    r3 r3* k1(0)              ; 2:17-21"));
  assert_non_null(strstr(text, "setpath  x[_] r0..r1*              ; 4:1-5"));
  world_free(&w);
}

/* ---- errors --------------------------------------------------------------------------------------------------- */

static bool is_built_in(const char *name, size_t len) {
  for (u32 op = 1; op < OP_COUNT; op++)
    if (strlen(op_name(op)) == len && memcmp(op_name(op), name, len) == 0) return true;
  return dtype_by_name(name, len) != DT_NONE || (len == 1 && *name == 'f');
}

/* Each function that is called in an advice is there. */
static void foreign_words_advise_what_is_there(void **state) {
  (void)state;
  static const char *const advice[] = {
#define FOREIGN(word, where, code) code,
#include "parser/foreign.def"
#undef FOREIGN
  };
  u32 calls = 0;
  for (u32 i = 0; i < COUNT_OF(advice); i++)
    for (const char *at = advice[i]; *at;) {
      size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz_.0123456789");
      if (len && at[len] == '(') {
        calls++;
        if (!is_built_in(at, len)) fail_msg("advised and not there: %.*s", (int)len, at);
      }
      at += len ? len : 1;
    }
  assert_true(calls > 100);
}

typedef struct Refused {
  const char *program;
  u8 kind;
  u32 line, col;
  const char *message;
} Refused;

static const Refused refusals[] = {
    {"np.sum([1])", EK_name, 1, 1, "np is not declared; built-in functions stand without it: sum(x), not np.sum(x)"},
    {"arctan2(1.0, 2.0)", EK_name, 1, 1, "arctan2 is not declared; write 'atan2(y, x)'"},
    {"x = 1", EK_name, 1, 1, "x is not declared; write 'let x = …'"},
    {"let count = 1\ncuont = 2", EK_name, 2, 1, "cuont is not declared; write 'let cuont = …', or did you mean count?"},
    {"{ let a = 1 }\na", EK_name, 2, 1, "a is not declared"},
    {"prnt(1)", EK_name, 1, 1, "prnt is not declared; did you mean print?"},
    {"fn f(value) = valeu", EK_name, 1, 15, "valeu is not declared; did you mean value?"},
    {"print(x); let x = 1", EK_name, 1, 7, "x is not declared yet: its declaration stands further down"},
    {"x += 1", EK_name, 1, 1, "x is not declared; write 'let x = …'"},
    {"x[0] = 1", EK_name, 1, 1, "x is not declared; write 'let x = …'"},
    {"sum = 3", EK_name, 1, 1, "sum is not declared; write 'let sum = …'"},
    {"(a, b) = (1, 2)", EK_name, 1, 2, "a is not declared; write 'let a = …'"},
    {"fn f() { let x = 1; () => { x = 2 } }", EK_name, 1, 29, "ref("},
    {"fn f() { let x = 1; () => { x += 2 } }", EK_name, 1, 29, "ref("},
    {"fn f() { let x = [1]; () => { x[0] = 2 } }", EK_name, 1, 31, "ref("},
    {"fn f(x) { fn g() { fn h() { (x, _) = (1, 2) }; h }; g }", EK_name, 1, 30, "ref("},
    {"{ fn f() = 1\nfn f() = 2 }", EK_name, 2, 1, "f is declared twice in one group of functions"},
    {"fn f(x: f65) = x", EK_name, 1, 9, "there is no type f65"},
    {"fn f(x: text[n]) = x", EK_type, 1, 9, "only a dtype or array can have sizes, not text"},
    {"fn f(x: f64[n], n) = x", EK_name, 1, 13, "n is a parameter further right"},
    {"import nothing", EK_name, 1, 8, "there is no standard module nothing; a file is imported as \"nothing.weft\""},
    {"1\n-2\n3", EK_syntax, 2, 1, "end the previous line with the operator"},
    {"for i in 0..3 {\n  ~i\n}", EK_syntax, 2, 3, "end the previous line with the operator"},
    {"fn f(a) {\n  a\n  + 1\n  a\n}", EK_syntax, 3, 3, "end the previous line with the operator"},
    {"{ let f = x => f(x) }", EK_name, 1, 16, "f is not declared"},
    {"let (a, b) = (1, a)", EK_name, 1, 18, "a is not declared"},
};

static void test_errors(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(refusals); i++) {
    const Refused *r = &refusals[i];
    World w = {0};
    assert_true(world_init(&w));
    if (compile_text(&w, r->program, false) != WEFT_ERROR) fail_msg("no error: %s", r->program);
    u32 line, col;
    sources_locate(&w.sources, w.diag.span, &line, &col);
    if (!strstr(w.diag.message, r->message) || w.diag.kind != r->kind || line != r->line || col != r->col)
      fail_msg("%s\ngives at %u:%u %s: %s", r->program, line, col, error_kind_name(w.diag.kind), w.diag.message);
    for (u32 s = 0; s < w.scope.slots.count; s++) assert_false(w.scope.flags.data[s] & ~MODVAR_BUILTIN);
    world_free(&w);
    assert_int_equal(w.mem.bytes, 0);
  }
}

static void test_prompt(void **state) {
  (void)state;
  World w = {0};
  assert_true(world_init(&w));
  assert_int_equal(compile_text(&w, "x = 1; (a, b) = (x, 2)", true), WEFT_OK);
  assert_int_equal(compile_text(&w, "x = x + a; y = b", true), WEFT_OK);
  assert_int_equal(compile_text(&w, "let z = nothing", true), WEFT_ERROR);
  assert_int_equal(compile_text(&w, "z", true), WEFT_ERROR); /* what failed has declared nothing */
  assert_int_equal(compile_text(&w, "fn g() { q = 1 }", true), WEFT_ERROR);
  assert_int_equal(compile_text(&w, "fn g() = q\nq = 3", true), WEFT_OK);
  assert_int_equal(compile_text(&w, "{ p = 1 }", true), WEFT_ERROR); /* declares on the top level only */
  world_free(&w);
  assert_int_equal(w.mem.bytes, 0);
}

static void test_builtin_slots(void **state) {
  (void)state;
  World w = {0};
  assert_true(world_init(&w));
  assert_int_equal(compile_text(&w, "let sum = sum([1]); fn f() = linalg.svd(pi, f32)", false), WEFT_OK);
  static const struct {
    const char *name;
    u8 flags;
  } want[] = {{"sum", MODVAR_DECLARED | MODVAR_BUILTIN}, {"f", MODVAR_DECLARED}, {"linalg", MODVAR_BUILTIN},
              {"pi", MODVAR_BUILTIN}, {"f32", MODVAR_BUILTIN}};
  for (u32 i = 0; i < COUNT_OF(want); i++) {
    u32 slot;
    assert_true(scope_find(&w.scope, name_cstr(&w.names, want[i].name), &slot));
    assert_int_equal(w.scope.flags.data[slot], want[i].flags);
  }
  world_free(&w);
}

static void test_documentation(void **state) {
  (void)state;
  World w = {0};
  assert_true(world_init(&w));
  assert_int_equal(compile_text(&w, "## Adds one.\n## To a number.\nfn f(x) = x + 1\n## not right above\n\n"
                                    "fn g() = 1", false), WEFT_OK);
  assert_string_equal(w.proto->protos[0]->doc, "Adds one.\nTo a number.");
  assert_null(w.proto->protos[1]->doc);
  world_free(&w);
}

/* ---- liveness -------------------------------------------------------------------------------------------------- */

static void test_liveness(void **state) {
  (void)state;
  World w = {0};
  assert_true(world_init(&w));
  /* r0 = a, r1 = b: b is read by the handler, so it lives through the body; a dies at its last use. */
  assert_int_equal(compile_text(&w, "fn f(a, b) { try { b = a + b; a(b) } catch e { b } }", false), WEFT_OK);
  const Proto *f = w.proto->protos[0];
  u64 bits[1];
  for (u32 pc = 0; pc < f->ncode; pc++) {
    assert_true(proto_live(f, pc, bits, w.alloc));
    u32 op = ins_op(f->code[pc]);
    if (op == BC_add) assert_int_equal(bits[0] & 3, 3);
    if (op == BC_call) assert_int_equal(bits[0] & 3, 2);
    if (op == BC_catch) assert_int_equal(bits[0] & 3, 2);
  }
  world_free(&w);
}

/* ---- the verifier ------------------------------------------------------------------------------------------------ */

static const char sample[] =
    "fn f(a, b=2, ...c) {\n"
    "  let s = a\n"
    "  for i in 0..9 { if i > b { break }; s = s + i }\n"
    "  while s > 1 { s -= 1; if s == 5 { continue }; c = (s, ...c) }\n"
    "  try { s[b, :] = f(s, x=1)(2) } catch e { s = e.kind }\n"
    "  let g = n => s + n\n"
    "  let {x, y} = {x: 1, y: s < b < 3}\n"
    "  g(f\"{x:3}{y}\") |> f(1, _)\n"
    "}\n"
    "let m = [1, 2][0]; m += 1; m[2] += 1\n"
    "f.h(m)";

typedef struct Damage {
  const char *name;
  void (*apply)(World *w, Proto *p); /* p: the function f */
  const char *why;
} Damage;

static u32 find_op(const Proto *p, u32 op, u32 nth) {
  for (u32 pc = 0; pc < p->ncode; pc++)
    if (ins_op(p->code[pc]) == op && nth-- == 0) return pc;
  fail_msg("no %s in the sample", bc_info[op].name);
  return 0;
}

static u32 find_extent(const Proto *p, u32 kind) {
  for (u32 i = 0; i < p->nextents; i++)
    if (p->extents[i].kind == kind) return i;
  fail_msg("no such extent in the sample");
  return 0;
}

static void set_ins(Proto *p, u32 pc, u32 flags, u32 a, u32 b, u32 c) {
  p->code[pc] = ins_make(ins_op(p->code[pc]), flags, a, b, c);
}

static void unknown_op(World *w, Proto *p) { (void)w, p->code[0] = BC_COUNT; }
static void far_register(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_add, 0);
  set_ins(p, pc, 0, p->nregs, ins_b(p->code[pc]), ins_c(p->code[pc]));
}
static void far_const(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_move, 0);
  set_ins(p, pc, 0, ins_a(p->code[pc]), INS_CONST | p->nconsts, 0);
}
static void far_run(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_call, 0);
  set_ins(p, pc, 0, ins_a(p->code[pc]), ins_b(p->code[pc]), p->nregs);
}
static void far_slot(World *w, Proto *p) {
  u32 pc = find_op(p, BC_getmod, 0);
  p->code[pc] = ins_make_x(BC_getmod, 0, ins_a(p->code[pc]), w->scope.slots.count);
}
static void wrong_desc(World *w, Proto *p) {
  (void)w;
  u32 field = find_op(p, BC_field, 0), path = find_op(p, BC_setpath, 0);
  set_ins(p, field, 0, ins_a(p->code[field]), ins_b(p->code[field]), ins_c(p->code[path]));
}
static void far_capture(World *w, Proto *p) { (void)w, p->protos[0]->captures[0].index = 999; }
static void far_closure(World *w, Proto *p) {
  (void)w;
  set_ins(p, find_op(p, BC_closure, 0), 0, 0, p->nprotos, 0);
}
static void flag_on_const(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_move, 0);
  p->code[pc] |= (Ins)INS_B_DIES << 8;
}
static void flag_on_run(World *w, Proto *p) {
  (void)w;
  p->code[find_op(p, BC_list, 0)] |= (Ins)INS_B_DIES << 8;
}
static void jump_into_arm(World *w, Proto *p) {
  (void)w;
  const Extent *e = &p->extents[find_extent(p, EXT_TRY)];
  u32 pc = find_op(p, BC_jump, 0);
  p->code[pc] = ins_make_x(BC_jump, 0, 0, e->head + 1);
}
static void loop_elsewhere(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_loop, 0);
  p->code[pc] = ins_make_x(BC_loop, 0, 0, 0);
}
static void runs_off(World *w, Proto *p) {
  (void)w;
  p->code[p->ncode - 1] = ins_make(BC_move, 0, 0, INS_CONST, 0);
}
static void straddles(World *w, Proto *p) { (void)w, p->extents[find_extent(p, EXT_WHILE)].end++; }
static void orphan(World *w, Proto *p) { (void)w, p->extents[find_extent(p, EXT_FOR)].parent = 77; }
static void no_catch(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_catch, 0);
  p->code[pc] = ins_make(BC_move, 0, ins_a(p->code[pc]), INS_CONST, 0);
}
static void unsorted_writes(World *w, Proto *p) {
  (void)w;
  u32 t = p->writes[0];
  p->writes[0] = p->writes[1];
  p->writes[1] = t;
}
static void early_death(World *w, Proto *p) { /* `i > b` in the loop: b is needed again */
  (void)w;
  p->code[find_op(p, BC_gt, 0)] |= (Ins)INS_C_DIES << 8;
}
static void unborn(World *w, Proto *p) { /* `s = s + i` now reads a register that comes to life later */
  (void)w;
  u32 pc = find_op(p, BC_add, 0);
  set_ins(p, pc, 0, ins_a(p->code[pc]), p->nregs - 1, ins_c(p->code[pc]));
}
static void dead_in_handler(World *w, Proto *p) { /* the handler reads what the body has moved away */
  (void)w;
  u32 pc = find_op(p, BC_catch, 0) + 1;
  assert_int_equal(ins_op(p->code[pc]), BC_field);
  set_ins(p, pc, 0, ins_a(p->code[pc]), p->nregs - 1, ins_c(p->code[pc]));
}
static void change_op(Proto *p, u32 from, u32 to) {
  u32 pc = find_op(p, from, 0);
  Ins i = p->code[pc];
  p->code[pc] = ins_make(to, 0, ins_a(i), ins_b(i), ins_c(i));
}
static void append_to_anything(World *w, Proto *p) { (void)w, change_op(p, BC_truth, BC_append); }
static void join_of_anything(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_fmt, 0);
  p->code[pc] = ins_make(BC_move, 0, ins_a(p->code[pc]), ins_b(p->code[pc]), 0);
}
static void walk_of_anything(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_fornext, 0);
  p->code[pc - 1] = ins_make(BC_forprep, 0, ins_a(p->code[pc]) + 1, INS_CONST, 0);
}
static void lost_site(World *w, Proto *p) { (void)w, p->nsites--; }
static void wrong_site(World *w, Proto *p) { (void)w, p->sites[1].kind = SITE_ENTRY; }
static void rest_misplaced(World *w, Proto *p) { (void)w, p->rest_index = 0; }
static void bad_text(World *w, Proto *p) {
  (void)w;
  for (u32 i = 0; i < p->nconsts; i++)
    if (p->consts[i].kind == CK_TEXT) p->consts[i].text = "\xff\xff\xff\xff";
}
static void bad_group(World *w, Proto *p) { (void)w, p->protos[0]->group_size = 9; }
static void tail_in_try(World *w, Proto *p) {
  (void)w;
  u32 pc = find_op(p, BC_call, 0);
  p->code[pc] = ins_make(BC_tail, 0, 0, ins_b(p->code[pc]), ins_c(p->code[pc]));
}

static const Damage damages[] = {
    {"unknown op", unknown_op, "no such instruction"},
    {"far register", far_register, "out of bounds"},
    {"far constant", far_const, "out of bounds"},
    {"far run", far_run, "not consecutive"},
    {"far slot", far_slot, "out of bounds"},
    {"wrong descriptor", wrong_desc, "out of bounds"},
    {"far capture", far_capture, "does not exist here"},
    {"far closure", far_closure, "out of bounds"},
    {"flag on a constant", flag_on_const, "a flag is out of place"},
    {"flag on a run", flag_on_run, "a flag is out of place"},
    {"jump into an arm", jump_into_arm, "no boundary"},
    {"loop elsewhere", loop_elsewhere, "malformed"},
    {"runs off", runs_off, "runs off its end"},
    {"straddling extent", straddles, "malformed"},
    {"orphan extent", orphan, "malformed"},
    {"handler without catch", no_catch, "malformed"},
    {"unsorted writes", unsorted_writes, "malformed"},
    {"early death", early_death, "holds no value"},
    {"read before birth", unborn, "holds no value"},
    {"dead in the handler", dead_in_handler, "holds no value"},
    {"append to anything", append_to_anything, "holds no list"},
    {"join of anything", join_of_anything, "holds no text"},
    {"walk of anything", walk_of_anything, "malformed"},
    {"lost site", lost_site, "without an instruction|its site is missing"},
    {"wrong site", wrong_site, "its site is missing"},
    {"misplaced rest", rest_misplaced, "rest parameter"},
    {"text that is no UTF-8", bad_text, "constant"},
    {"group too large", bad_group, "group"},
    {"tail call in try", tail_in_try, "a tail call inside try"},
};

static bool one_of(const char *text, const char *alternatives) {
  char part[80];
  for (const char *s = alternatives; *s; s += *s == '|') {
    size_t n = strcspn(s, "|");
    snprintf(part, sizeof part, "%.*s", (int)n, s);
    if (strstr(text, part)) return true;
    s += n;
  }
  return false;
}

static void test_verifier(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(damages); i++) {
    World w = {0};
    assert_true(world_init(&w));
    if (compile_text(&w, sample, false) != WEFT_OK) fail_msg("sample: %s", w.diag.message);
    if (!verifies(&w)) fail_msg("sample: %s", buf_text(&w.text));
    damages[i].apply(&w, w.proto->protos[0]);
    if (verifies(&w)) fail_msg("%s: not noticed", damages[i].name);
    if (!one_of(buf_text(&w.text), damages[i].why)) fail_msg("%s: %s", damages[i].name, buf_text(&w.text));
    world_free(&w);
  }
}

/* ---- stored code ----------------------------------------------------------------------------- */

static void test_round_trip(void **state) {
  (void)state;
  World w = {0}, v = {0};
  assert_true(world_init(&w) && world_init(&v));
  assert_int_equal(compile_text(&v, "let other = 1; let m = 2", false), WEFT_OK); /* names and slots differ there */
  assert_int_equal(compile_text(&w, sample, false), WEFT_OK);
  Buf bytes, why;
  buf_init(&bytes, w.alloc);
  buf_init(&why, w.alloc);
  proto_save(w.proto, &w.names, &w.scope, true, &bytes);
  assert_false(bytes.failed);
  Proto *again = NULL;
  Name missing;
  if (proto_load(bytes.data, bytes.len, false, 1, v.alloc, &v.names, &v.scope, &again, &missing, &why, NULL) != WEFT_OK)
    fail_msg("%s", buf_text(&why));
  Buf a, b;
  buf_init(&a, w.alloc);
  buf_init(&b, w.alloc);
  proto_print(w.proto, &w.names, NULL, &w.scope, &a);
  proto_print(again, &v.names, NULL, &v.scope, &b);
  assert_int_equal(again->spans[0].start, w.proto->spans[0].start);
  proto_drop(again);
  /* `writes` are sorted by slot, and slots have other numbers there */
  assert_int_equal(a.len, b.len);
  const char *code_end = strstr(buf_text(&a), "  for ");
  assert_memory_equal(buf_text(&a), buf_text(&b), (size_t)(code_end - buf_text(&a)));
  u32 slot;
  assert_true(scope_find(&v.scope, name_cstr(&v.names, "f"), &slot));
  assert_int_equal(v.scope.flags.data[slot], MODVAR_DECLARED);
  buf_free(&a);
  buf_free(&b);
  buf_free(&bytes);
  buf_free(&why);
  world_free(&w);
  world_free(&v);
  assert_int_equal(w.mem.bytes, 0);
  assert_int_equal(v.mem.bytes, 0);
}

static WeftStatus load_quietly(World *v, const char *bytes, size_t len) {
  Proto *p = NULL;
  Name missing;
  buf_free(&v->text);
  WeftStatus status = proto_load(bytes, len, false, 1, v->alloc, &v->names, &v->scope, &p, &missing, &v->text, NULL);
  proto_drop(p);
  return status;
}

/* Cut anywhere, or with any byte changed, it is refused or proved: never more than that. */
static void test_damaged_bytes(void **state) {
  (void)state;
  World w = {0}, v = {0};
  assert_true(world_init(&w) && world_init(&v));
  assert_int_equal(compile_text(&w, sample, false), WEFT_OK);
  Buf bytes;
  buf_init(&bytes, w.alloc);
  proto_save(w.proto, &w.names, &w.scope, true, &bytes);
  for (size_t n = 0; n < bytes.len; n++) {
    char *cut = malloc(n + 1);
    memcpy(cut, bytes.data, n);
    assert_int_equal(load_quietly(&v, cut, n), WEFT_ERROR);
    free(cut);
    if (!v.text.len) fail_msg("no reason for %zu bytes", n);
  }
  u32 refused = 0;
  for (size_t i = 0; i < bytes.len; i++) {
    char keep = bytes.data[i];
    bytes.data[i] = (char)(keep ^ (1 << (i % 8)));
    refused += load_quietly(&v, bytes.data, bytes.len) == WEFT_ERROR;
    bytes.data[i] = (char)~keep;
    refused += load_quietly(&v, bytes.data, bytes.len) == WEFT_ERROR;
    bytes.data[i] = keep;
  }
  assert_true(refused > bytes.len / 2);
  assert_int_equal(load_quietly(&v, bytes.data, bytes.len), WEFT_OK);
  buf_free(&bytes);
  world_free(&w);
  world_free(&v);
  assert_int_equal(v.mem.bytes, 0);
}

/* ---- memory and size ------------------------------------------------------------------------- */

/* Every single request refused, from some point on: an error that says so, and nothing is lost. */
static void test_refused_memory(void **state) {
  (void)state;
  for (u64 n = 1;; n++) {
    World w = {.mem.refuse_at = n};
    WeftStatus status = WEFT_ERROR;
    bool ready = world_init(&w), done = false;
    if (ready) status = compile_text(&w, sample, false);
    if (ready && status == WEFT_OK) done = verifies(&w);
    if (ready && status == WEFT_ERROR) assert_int_equal(w.diag.kind, EK_limit);
    world_free(&w);
    assert_int_equal(w.mem.bytes, 0);
    if (done) return;
    assert_true(n < 100000);
  }
}

static void test_long_programs(void **state) {
  (void)state;
  World w = {0};
  assert_true(world_init(&w));
  Buf b;
  buf_init(&b, w.alloc);
  buf_puts(&b, "let a = [");
  for (int i = 0; i < 40000; i++) buf_printf(&b, "%d, ", i); /* more constants than operands can name */
  buf_puts(&b, "]\nlet b = (");
  for (int i = 0; i < 3000; i++) buf_printf(&b, "%s%d, ", i % 700 ? "" : "...a, ", i);
  buf_puts(&b, ")\nlet c = 0");
  for (int i = 0; i < 900; i++) buf_puts(&b, " + a[0]");
  buf_puts(&b, "\nif c == 0 { c }");
  for (int i = 0; i < 2000; i++) buf_printf(&b, " else if c == %d { c = %d }", i, i);
  assert_int_equal(compile_text(&w, buf_text(&b), false), WEFT_OK);
  if (!verifies(&w)) fail_msg("%s", buf_text(&w.text));
  buf_free(&b);
  buf_puts(&b, "fn f() { let x = 0\n");
  for (int i = 0; i < 33000; i++) buf_printf(&b, "let v%d = x\n", i);
  buf_puts(&b, "x }");
  assert_int_equal(compile_text(&w, buf_text(&b), false), WEFT_ERROR);
  assert_non_null(strstr(w.diag.message, "too large"));
  buf_free(&b);
  world_free(&w);
  assert_int_equal(w.mem.bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_goldens),       cmocka_unit_test(test_spans),         cmocka_unit_test(test_errors),
      cmocka_unit_test(test_prompt),        cmocka_unit_test(test_builtin_slots), cmocka_unit_test(test_liveness),
      cmocka_unit_test(test_documentation), cmocka_unit_test(foreign_words_advise_what_is_there),
      cmocka_unit_test(test_verifier),      cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_damaged_bytes),
      cmocka_unit_test(test_refused_memory), cmocka_unit_test(test_long_programs),
  };
  return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}

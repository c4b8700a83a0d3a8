/* test_guards.c — sources, guards compiled and run on real values, what a miss says, the cache of entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guards/guards_inner.h"
#include "stdlib/stdlib.h"
#include "tests/unit/memory.h"

enum { REGS = 8 };

typedef struct Fixture {
  Vm *vm;
  Module *module;
  GuardSet set;
  SizePool sizes;
  Value regs[REGS];
  Frame frame;
} Fixture;

static Value eval(Fixture *f, const char *text) {
  Value v = value_nil();
  if (vm_eval(f->vm, f->module, "<test>", text, strlen(text), false, &v) != WEFT_OK) {
    size_t n;
    fail_msg("%s: %s", text, vm_error_message(f->vm, &n));
  }
  return v;
}

static void arg(Fixture *f, u32 i, const char *text) {
  value_drop(f->vm, f->regs[i]);
  f->regs[i] = value_nil();
  f->regs[i] = eval(f, text);
}

static int setup(void **state) {
  Fixture *f = test_malloc(sizeof *f);
  memset(f, 0, sizeof *f);
  f->vm = vm_new(NULL);
  assert_non_null(f->vm);
  assert_int_equal(stdlib_install(f->vm), WEFT_OK);
  f->module = module_new(f->vm, "test", "");
  guards_init(&f->set, &f->vm->alloc);
  size_init(&f->sizes, &f->vm->alloc);
  f->frame.base = f->regs;
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  for (u32 i = 0; i < REGS; i++) value_drop(f->vm, f->regs[i]);
  guards_free(&f->set);
  size_free(&f->sizes);
  stdlib_remove(f->vm);
  vm_free(f->vm);
  test_free(f);
  return 0;
}

static SourceId at(Fixture *f, u32 i) { return source_root(&f->set, SRC_arg, i); }
static SourceId field(Fixture *f, SourceId s, const char *name) {
  return source_step(&f->set, s, SRC_field, name_cstr(&f->vm->names, name), name);
}

static GuardProg *compile(Fixture *f) {
  SourceId bad;
  assert_false(f->set.failed);
  GuardProg *p = guard_compile(f->vm, &f->set, &f->sizes, &bad);
  if (!p) {
    Buf b;
    buf_init(&b, &f->vm->alloc);
    source_print(&f->set, bad, &b);
    fail_msg("not safe: %s", buf_text(&b));
  }
  return p;
}

static u32 run(Fixture *f, const GuardProg *p, u64 *slots) {
  Value scratch[64];
  assert_true(guard_prog_scratch(p) <= 64);
  return guard_run(f->vm, &f->frame, p, slots, scratch);
}

static void expect_pass(Fixture *f, const GuardProg *p) {
  u64 slots[16];
  u32 failed = run(f, p, slots);
  if (failed) {
    Buf b;
    buf_init(&b, &f->vm->alloc);
    guard_print(p, failed - 1, &b);
    fail_msg("missed: %s", buf_text(&b));
  }
}

static void expect_miss(Fixture *f, const GuardProg *p, const char *want) {
  u64 slots[16];
  u32 failed = run(f, p, slots);
  assert_int_not_equal(failed, GUARD_PASS);
  GuardMiss miss;
  assert_true(guard_miss_make(f->vm, &f->frame, p, failed - 1, &miss));
  Buf b;
  buf_init(&b, &f->vm->alloc);
  guard_miss_print(&miss, &f->vm->sources, &b);
  assert_string_equal(buf_text(&b), want);
  buf_free(&b);
  guard_miss_free(f->vm, &miss);
}

static void expect_source(Fixture *f, SourceId s, const char *want) {
  Buf b;
  buf_init(&b, &f->vm->alloc);
  source_print(&f->set, s, &b);
  assert_string_equal(buf_text(&b), want);
  buf_free(&b);
}

/* ---- sources -------------------------------------------------------------------------------------- */

static void sources(void **state) {
  Fixture *f = *state;
  SourceId a = at(f, 0);
  assert_int_equal(at(f, 0), a); /* each once */
  SourceId w = field(f, a, "w"), item = source_step(&f->set, w, SRC_item, 2, NULL);
  expect_source(f, item, "arg0.w[2]");
  expect_source(f, field(f, a, "b c"), "arg0[\"b c\"]");
  expect_source(f, source_step(&f->set, item, SRC_size, 1, NULL), "size(arg0.w[2], 1)");
  SourceId capture = source_step(&f->set, source_root(&f->set, SRC_reg, 3), SRC_capture, 1, NULL);
  expect_source(f, field(f, source_step(&f->set, capture, SRC_value, 0, NULL), "x"), "value(capture(reg3, 1)).x");
  expect_source(f, source_global(&f->set, f->module, 4, "k"), "global \"k\"");
  arg(f, 0, "{w: (1, 2.5, [[1, 2], [3, 4]]), x: 1}");
  Value v;
  assert_true(source_read(f->vm, &f->set, &f->frame, source_step(&f->set, item, SRC_size, 1, NULL), &v));
  assert_int_equal(v.i, 2);
  assert_false(source_read(f->vm, &f->set, &f->frame, field(f, a, "y"), &v));
  assert_false(source_read(f->vm, &f->set, &f->frame, field(f, item, "y"), &v));
}

/* ---- kinds: each property changed alone misses, and the miss says what changed ---------------------- */

static void tags(void **state) {
  Fixture *f = *state;
  Span at_use = {0};
  arg(f, 0, "[[1.0, 2.0], [3.0, 4.0]]");
  arg(f, 1, "3");
  arg(f, 2, "nil");
  assert_true(guard_tag(&f->set, at(f, 0), f->regs[0], true, at_use));
  assert_true(guard_tag(&f->set, at(f, 0), f->regs[0], true, at_use)); /* kept once */
  assert_true(guard_tag(&f->set, at(f, 1), f->regs[1], true, at_use));
  assert_true(guard_tag(&f->set, at(f, 2), f->regs[2], true, at_use));
  assert_int_equal(f->set.guards.count, 3);
  GuardProg *p = compile(f);
  expect_pass(f, p);
  arg(f, 0, "[[1.0, 2.0, 3.0]]");
  arg(f, 1, "5"); /* sizes and numbers may change */
  expect_pass(f, p);
  arg(f, 0, "[1.0]");
  expect_miss(f, p, "tag(arg0)   wanted f64 of rank 2, got f64 of rank 1");
  arg(f, 0, "f32([[1.0]])");
  expect_miss(f, p, "tag(arg0)   wanted f64 of rank 2, got f32 of rank 2");
  arg(f, 0, "transpose([[1.0, 2.0], [3.0, 4.0]])");
  expect_miss(f, p, "tag(arg0)   wanted f64 of rank 2, got f64 of rank 2 strided");
  arg(f, 0, "\"text\"");
  expect_miss(f, p, "tag(arg0)   wanted f64 of rank 2, got \"text\"");
  arg(f, 0, "[[1.0]]");
  arg(f, 1, "i64(3)");
  expect_miss(f, p, "tag(arg1)   wanted weak i64, got i64");
  arg(f, 1, "3");
  arg(f, 2, "0");
  expect_miss(f, p, "tag(arg2)   wanted nil, got weak i64");
  guard_prog_free(f->vm, p);
}

static void layout_may_be_left_open(void **state) {
  Fixture *f = *state;
  arg(f, 0, "[[1.0, 2.0], [3.0, 4.0]]");
  assert_true(guard_tag(&f->set, at(f, 0), f->regs[0], false, (Span){0}));
  GuardProg *p = compile(f);
  arg(f, 0, "transpose([[1.0, 2.0], [3.0, 4.0]])");
  expect_pass(f, p);
  guard_prog_free(f->vm, p);
}

static void constants(void **state) {
  Fixture *f = *state;
  arg(f, 0, "nan");
  arg(f, 1, "\"abc\"");
  arg(f, 2, "f32");
  arg(f, 3, "true");
  for (u32 i = 0; i < 4; i++) assert_true(guard_const(&f->set, at(f, i), f->regs[i], (Span){0}));
  GuardProg *p = compile(f);
  expect_pass(f, p); /* NaN equals itself */
  arg(f, 1, "\"ab\" + \"c\"");
  expect_pass(f, p);
  arg(f, 1, "\"abd\"");
  expect_miss(f, p, "const(arg1)   wanted \"abc\", got \"abd\"");
  arg(f, 1, "\"abc\"");
  arg(f, 2, "f64");
  expect_miss(f, p, "const(arg2)   wanted f32, got f64");
  arg(f, 2, "f32");
  arg(f, 3, "false");
  expect_miss(f, p, "const(arg3)   wanted true, got false");
  arg(f, 3, "true");
  arg(f, 0, "1.5");
  expect_miss(f, p, "const(arg0)   wanted nan, got 1.5");
  guard_prog_free(f->vm, p);
}

static void containers(void **state) {
  Fixture *f = *state;
  GuardSet *g = &f->set;
  arg(f, 0, "{w: [1.0], b: (1, 2)}");
  SourceId a = at(f, 0), w = field(f, a, "w"), b = field(f, a, "b"), b1 = source_step(g, b, SRC_item, 1, NULL);
  assert_true(guard_shape(g, a, f->regs[0].record, false, name_cstr(&f->vm->names, "w"), (Span){0}));
  assert_true(guard_shape(g, a, f->regs[0].record, false, name_cstr(&f->vm->names, "b"), (Span){0}));
  assert_true(guard_tag(g, w, f->regs[0].record->items[0], true, (Span){0}));
  assert_true(guard_len(g, b, REL_eq, 2, (Span){0}));
  assert_true(guard_tag(g, b1, value_weak_i64(0), true, (Span){0}));
  GuardProg *p = compile(f);
  expect_pass(f, p);
  arg(f, 0, "{other: 1, b: (\"unread\", 7), w: [1.0, 2.0]}"); /* what was not read may differ */
  expect_pass(f, p);
  arg(f, 0, "{w: [1.0], b: (1, 2, 3)}");
  expect_miss(f, p, "len(arg0.b) == 2   wanted 2, got 3");
  arg(f, 0, "{w: [1.0]}");
  expect_miss(f, p, "key \"b\" in arg0   wanted the key, got (w)");
  arg(f, 0, "(1, 2)");
  expect_miss(f, p, "key \"w\" in arg0   wanted the key, got list");
  arg(f, 0, "{w: [1.0], b: (1, 2.5)}");
  expect_miss(f, p, "tag(arg0.b[1])   wanted weak i64, got weak f64");
  guard_prog_free(f->vm, p);
}

static void all_keys(void **state) {
  Fixture *f = *state;
  arg(f, 0, "{w: 1, b: 2}");
  assert_true(guard_shape(&f->set, at(f, 0), f->regs[0].record, true, 0, (Span){0}));
  GuardProg *p = compile(f);
  arg(f, 0, "{w: 3, b: 4}");
  expect_pass(f, p);
  arg(f, 0, "{b: 3, w: 4}");
  expect_miss(f, p, "keys(arg0) == (w, b)   wanted (w, b), got (b, w)");
  guard_prog_free(f->vm, p);
}

static void functions(void **state) {
  Fixture *f = *state;
  GuardSet *g = &f->set;
  value_drop(f->vm, eval(f, "fn make(k) = x => x * k"));
  arg(f, 0, "make(2)");
  arg(f, 1, "sum");
  SourceId captured = source_step(g, at(f, 0), SRC_capture, 0, NULL);
  assert_true(guard_code(g, at(f, 0), f->regs[0].fn, (Span){0}));
  assert_true(guard_const(g, at(f, 1), f->regs[1], (Span){0}));
  assert_true(guard_tag(g, captured, value_weak_i64(2), true, (Span){0}));
  u32 in = guard_input(g, captured, IN_size);
  GuardProg *p = compile(f);
  assert_true(guard_prog_names_code(p, f->regs[0].fn->code->id));
  arg(f, 0, "make(3)"); /* same code, another capture: an input */
  u64 slots[4];
  assert_int_equal(run(f, p, slots), GUARD_PASS);
  assert_int_equal(slots[in], 3);
  arg(f, 1, "prod");
  expect_miss(f, p, "code(arg1)   wanted sum, got prod");
  arg(f, 1, "sum");
  arg(f, 0, "x => x");
  u64 unused[4];
  assert_int_not_equal(run(f, p, unused), GUARD_PASS);
  guard_prog_free(f->vm, p);
}

static void module_slots(void **state) {
  Fixture *f = *state;
  GuardSet *g = &f->set;
  value_drop(f->vm, eval(f, "let k = 5; fn h(x) = x"));
  u32 k, h;
  assert_true(scope_find(&f->module->scope, name_cstr(&f->vm->names, "k"), &k));
  assert_true(scope_find(&f->module->scope, name_cstr(&f->vm->names, "h"), &h));
  SourceId sk = source_global(g, f->module, k, "k"), sh = source_global(g, f->module, h, "h");
  assert_true(guard_tag(g, sk, value_weak_i64(0), true, (Span){0}));
  assert_true(guard_cell(g, sh, (Span){0}));
  u32 in = guard_input(g, sk, IN_size);
  GuardProg *p = compile(f);
  u64 slots[4];
  assert_int_equal(run(f, p, slots), GUARD_PASS);
  assert_int_equal(slots[in], 5);
  value_drop(f->vm, eval(f, "k = 6")); /* a number is an input, not a guard */
  assert_int_equal(run(f, p, slots), GUARD_PASS);
  assert_int_equal(slots[in], 6);
  assert_int_equal(module_set(f->vm, f->module, name_cstr(&f->vm->names, "h"), eval(f, "x => x + 1")), WEFT_OK);
  expect_miss(f, p, "cell(global \"h\")   wanted the value it had, got another");
  guard_prog_free(f->vm, p);
}

static void ambient_and_identity(void **state) {
  Fixture *f = *state;
  arg(f, 0, "ref(1)");
  arg(f, 1, "ref(1)");
  assert_true(guard_tag(&f->set, at(f, 0), f->regs[0], true, (Span){0}));
  assert_true(guard_tag(&f->set, at(f, 1), f->regs[1], true, (Span){0}));
  assert_true(guard_ident(&f->set, at(f, 0), at(f, 1), false, (Span){0}));
  assert_true(guard_ambient(&f->set, f->vm->ambient, (Span){0}));
  GuardProg *p = compile(f);
  expect_pass(f, p);
  value_drop(f->vm, f->regs[1]);
  f->regs[1] = value_keep(f->regs[0]);
  expect_miss(f, p, "arg0 is not arg1   wanted two objects, got one");
  arg(f, 1, "ref(1)");
  f->vm->ambient ^= 4;
  expect_miss(f, p, "ambient   wanted device cpu, got device cpu under 4 tapes");
  f->vm->ambient ^= 4;
  guard_prog_free(f->vm, p);
}

static bool below(void *ctx, Value v, u64 data) {
  (void)ctx;
  return v.kind == V_NUM && (u64)v.i < data;
}

static void host_checks(void **state) {
  Fixture *f = *state;
  arg(f, 0, "3");
  assert_true(guard_host(&f->set, at(f, 0), below, NULL, 5, (Span){0}));
  GuardProg *p = compile(f);
  expect_pass(f, p);
  arg(f, 0, "7");
  expect_miss(f, p, "host(arg0)   wanted the host's agreement, got 7");
  guard_prog_free(f->vm, p);
}

/* ---- sizes ---------------------------------------------------------------------------------------- */

static void size_relations(void **state) {
  Fixture *f = *state;
  GuardSet *g = &f->set;
  SizePool *s = &f->sizes;
  u32 file = sources_add(&f->vm->sources, "f.weft", "let z = x @ w\nlet y = x\n", 24);
  Span matmul = {file, 8, 5};
  arg(f, 0, "zeros((3, 64))");
  arg(f, 1, "zeros((64, 5))");
  arg(f, 2, "4");
  for (u32 i = 0; i < 3; i++) assert_true(guard_tag(g, at(f, i), f->regs[i], true, (Span){0}));
  SourceId n1 = source_step(g, at(f, 0), SRC_size, 1, NULL), m0 = source_step(g, at(f, 1), SRC_size, 0, NULL);
  Dim n = size_sym(s, "n", n1, 0, SIZE_LIMIT - 1, 64), m = size_sym(s, "m", m0, 0, SIZE_LIMIT - 1, 64);
  Dim k = size_sym(s, "k", at(f, 2), 0, SIZE_LIMIT - 1, 4);
  GuardDims dims;
  guard_dims_init(&dims, g, s, "matmul", matmul);
  assert_true(dim_equal(&dims.base, n, m));
  assert_true(dim_equal(&dims.base, m, n)); /* known now: no second guard */
  assert_false(dim_equal(&dims.base, k, n)); /* no by hint: not guarded, it is an error of the program's */
  assert_true(guard_relation(g, s, REL_le, size_mul(s, k, 2), n, "slice", matmul));
  assert_true(guard_relation(g, s, REL_ne, k, 0, "slice", matmul));
  assert_int_equal(f->set.guards.count, 3 + 3);
  GuardProg *p = compile(f);
  expect_pass(f, p);
  arg(f, 0, "zeros((3, 65))");
  expect_miss(f, p, "size(arg0, 1) == size(arg1, 0)   wanted 64, got 65   because matmul @1:9");
  arg(f, 0, "zeros((3, 6))");
  arg(f, 1, "zeros((6, 6))");
  expect_miss(f, p, "2*arg2 <= size(arg0, 1)   wanted at most 6, got 8   because slice @1:9");
  arg(f, 2, "0");
  expect_miss(f, p, "arg2 != 0   wanted not 0, got 0   because slice @1:9");
  guard_prog_free(f->vm, p);
}

static void broadcasting(void **state) {
  Fixture *f = *state;
  GuardSet *g = &f->set;
  SizePool *s = &f->sizes;
  arg(f, 0, "zeros(5)");
  arg(f, 1, "zeros(1)");
  for (u32 i = 0; i < 2; i++) assert_true(guard_tag(g, at(f, i), f->regs[i], true, (Span){0}));
  ArrayType x = {.dtype = DT_f64, .rank = 1,
                 .dims = {size_sym(s, "n", source_step(g, at(f, 0), SRC_size, 0, NULL), 0, 99, 5)}};
  ArrayType y = {.dtype = DT_f64, .rank = 1,
                 .dims = {size_sym(s, "m", source_step(g, at(f, 1), SRC_size, 0, NULL), 0, 99, 1)}};
  const ArrayType *xs[2] = {&x, &y};
  ArrayType out;
  RuleError err;
  GuardDims dims;
  guard_dims_init(&dims, g, s, "add", (Span){0});
  assert_true(rule_broadcast(&dims.base, 2, xs, &out, &err));
  assert_true(out.dims[0] == x.dims[0]);
  GuardProg *p = compile(f);
  expect_pass(f, p);
  arg(f, 0, "zeros(1)"); /* nothing else is said of the longer one */
  expect_pass(f, p);
  arg(f, 0, "zeros(0)");
  expect_pass(f, p);
  arg(f, 1, "zeros(2)");
  expect_miss(f, p, "size(arg1, 0) == 1   wanted 1, got 2   because add");
  guard_prog_free(f->vm, p);
}

/* ---- inputs --------------------------------------------------------------------------------------- */

static void inputs(void **state) {
  Fixture *f = *state;
  GuardSet *g = &f->set;
  arg(f, 0, "zeros((2, 3))");
  arg(f, 1, "2.5");
  for (u32 i = 0; i < 2; i++) assert_true(guard_tag(g, at(f, i), f->regs[i], true, (Span){0}));
  SourceId rows = source_step(g, at(f, 0), SRC_size, 0, NULL);
  u32 a = guard_input(g, at(f, 0), IN_array), b = guard_input(g, at(f, 1), IN_scalar),
      n = guard_input(g, rows, IN_size);
  assert_int_equal(guard_input(g, at(f, 0), IN_array), a); /* the same source is one input */
  g->inputs.data[a].donate = true;
  GuardProg *p = compile(f);
  Array *array = f->regs[0].array;
  u64 slots[4];
  assert_int_equal(run(f, p, slots), GUARD_PASS);
  assert_true(slots[a] == (u64)(uintptr_t)array);
  assert_true(slots[n] == 2);
  f64 x;
  memcpy(&x, &slots[b], 8);
  assert_true(x == 2.5);
  assert_int_equal(f->regs[0].kind, V_HOLE); /* given away, with its count of one */
  assert_int_equal(array->head.refs, 1);
  guard_undonate(&f->frame, p, slots);
  assert_true(f->regs[0].kind == V_ARRAY && f->regs[0].array == array);
  assert_int_equal(slots[a], 0);
  Buf t;
  buf_init(&t, &f->vm->alloc);
  guard_prog_print(p, NULL, &t);
  assert_string_equal(buf_text(&t), "tag(arg0)\ntag(arg1)\ninput s0 = arg0 array owned\ninput s1 = arg1 scalar\n"
                                    "input s2 = size(arg0, 0) size\n");
  buf_free(&t);
  guard_prog_free(f->vm, p);
}

/* A read and the check behind it are one step, which fills the read's input as well; what misses is the same guard. */
static void reads_and_checks_are_one_step(void **state) {
  Fixture *f = *state;
  GuardSet *g = &f->set;
  arg(f, 0, "zeros((2, 3))");
  arg(f, 1, "ones((4, 3))");
  arg(f, 2, "7");
  for (u32 i = 0; i < 3; i++) assert_true(guard_tag(g, at(f, i), f->regs[i], true, (Span){0}));
  SourceId first = source_step(g, at(f, 0), SRC_size, 1, NULL), second = source_step(g, at(f, 1), SRC_size, 1, NULL);
  Dim n = size_sym(&f->sizes, "n", first, 0, SIZE_LIMIT - 1, 3),
      m = size_sym(&f->sizes, "m", second, 0, SIZE_LIMIT - 1, 3);
  assert_true(guard_relation(g, &f->sizes, REL_eq, n, m, "add", (Span){0}));
  u32 a = guard_input(g, at(f, 1), IN_array), again = guard_input(g, at(f, 1), IN_object),
      k = guard_input(g, at(f, 2), IN_scalar), size = guard_input(g, second, IN_size);
  GuardProg *p = compile(f);
  assert_int_equal(p->nwalk, 3 + 3 + 2 + 1);
  assert_int_equal(p->nsteps, 3 + 2);
  assert_int_equal(p->nlate, 1); /* one source, two inputs */
  u64 slots[4] = {0};
  assert_int_equal(run(f, p, slots), GUARD_PASS);
  assert_true(slots[a] == (u64)(uintptr_t)f->regs[1].array && slots[again] == slots[a] && slots[k] == 7 &&
              slots[size] == 3);
  arg(f, 1, "ones((4, 2))");
  expect_miss(f, p, "size(arg0, 1) == size(arg1, 1)   wanted 2, got 3   because add");
  arg(f, 2, "7.0");
  expect_miss(f, p, "tag(arg2)   wanted weak i64, got weak f64");
  arg(f, 1, "ones(4)");
  expect_miss(f, p, "tag(arg1)   wanted f64 of rank 2, got f64 of rank 1");
  guard_prog_free(f->vm, p);
}

/* The same of the items of a list, whose numbers are checked with their types. */
static void items_are_one_step(void **state) {
  Fixture *f = *state;
  GuardSet *g = &f->set;
  arg(f, 0, "(1, (2.5, 3), nil)");
  SourceId list = at(f, 0), one = source_step(g, list, SRC_item, 0, NULL),
      inner = source_step(g, list, SRC_item, 1, NULL), x = source_step(g, inner, SRC_item, 0, NULL),
           y = source_step(g, inner, SRC_item, 1, NULL);
  const List *l = f->regs[0].list, *in = l->items[1].list;
  assert_true(guard_len(g, list, REL_eq, 3, (Span){0}) && guard_len(g, inner, REL_eq, 2, (Span){0}));
  assert_true(guard_tag(g, one, l->items[0], false, (Span){0}) && guard_const(g, one, l->items[0], (Span){0}) &&
              guard_tag(g, x, in->items[0], false, (Span){0}));
  u32 a = guard_input(g, x, IN_scalar), b = guard_input(g, y, IN_scalar), c = guard_input(g, one, IN_scalar);
  assert_true(guard_tag(g, y, in->items[1], false, (Span){0}));
  GuardProg *p = compile(f);
  /* the register, two lengths, the list inside, three numbers */
  assert_int_equal(p->nsteps, 1 + 1 + 1 + 1 + 1 + 1 + 1);
  assert_int_equal(p->nlate, 0);
  u64 slots[4] = {0};
  f64 half = 2.5;
  assert_int_equal(run(f, p, slots), GUARD_PASS);
  assert_true(memcmp(&slots[a], &half, sizeof half) == 0 && slots[b] == 3 && slots[c] == 1);
  arg(f, 0, "(1, (4.5, 9), 0)");
  assert_int_equal(run(f, p, slots), GUARD_PASS);
  assert_int_equal(slots[b], 9);
  arg(f, 0, "(2, (4.5, 9), 0)");
  expect_miss(f, p, "const(arg0[0])   wanted 1, got 2");
  arg(f, 0, "(1.0, (4.5, 9), 0)");
  expect_miss(f, p, "const(arg0[0])   wanted 1, got 1.0");
  arg(f, 0, "(1, (4, 9), 0)");
  expect_miss(f, p, "tag(arg0[1][0])   wanted weak f64, got weak i64");
  arg(f, 0, "(1, (4.5, 9, 1), 0)");
  expect_miss(f, p, "len(arg0[1]) == 2   wanted 2, got 3");
  arg(f, 0, "(1, 7, 0)");
  expect_miss(f, p, "len(arg0[1]) == 2   wanted 2, got 7");
  guard_prog_free(f->vm, p);
}

static void unsafe_reads_are_refused(void **state) {
  Fixture *f = *state;
  SourceId bad, w = field(f, at(f, 0), "w");
  guard_input(&f->set, w, IN_array);
  assert_null(guard_compile(f->vm, &f->set, &f->sizes, &bad));
  assert_int_equal(bad, w);
}

static void rollback(void **state) {
  Fixture *f = *state;
  arg(f, 0, "1");
  assert_true(guard_tag(&f->set, at(f, 0), f->regs[0], true, (Span){0}));
  GuardMark m = guards_mark(&f->set);
  assert_true(guard_const(&f->set, at(f, 1), value_i64(3), (Span){0}));
  guard_input(&f->set, at(f, 2), IN_scalar);
  guards_rollback(&f->set, m);
  GuardMark now = guards_mark(&f->set);
  assert_memory_equal(&m, &now, sizeof m);
}

/* ---- cache ---------------------------------------------------------------------------------------- */

static u32 destroyed;
static void destroy(Vm *vm, void *region) {
  (void)vm;
  destroyed += (u32)(uintptr_t)region;
}

/* A program that wants an array of this dtype as argument 0. */
static GuardProg *wants(Fixture *f, const char *text) {
  guards_free(&f->set);
  arg(f, 0, text);
  assert_true(guard_tag(&f->set, at(f, 0), f->regs[0], true, (Span){0}));
  return compile(f);
}

static void cache(void **state) {
  Fixture *f = *state;
  GuardCache c;
  u64 slots[4];
  Value scratch[4];
  destroyed = 0;
  cache_init(&c, 2, destroy);
  GuardEntry *a = cache_add(f->vm, &c, wants(f, "[1.0]"), (void *)(uintptr_t)1, false);
  GuardEntry *b = cache_add(f->vm, &c, wants(f, "[1]"), (void *)(uintptr_t)10, false);
  assert_true(a && b && c.entries.data[0] == b);
  arg(f, 0, "[2.0]");
  assert_ptr_equal(cache_lookup(f->vm, &c, &f->frame, slots, scratch), a);
  assert_ptr_equal(c.entries.data[0], a); /* most recently hit first */
  assert_int_equal(a->hits, 1);
  assert_int_equal(b->misses, 1);
  arg(f, 0, "f32([2.0])");
  assert_null(cache_lookup(f->vm, &c, &f->frame, slots, scratch));
  assert_true(c.has_miss);
  assert_string_equal(c.last_miss.got, "f32 of rank 1");
  assert_false(c.storm);
  GuardEntry *d = cache_add(f->vm, &c, wants(f, "f32([2.0])"), (void *)(uintptr_t)100, false);
  assert_true(c.storm);
  assert_int_equal(c.entries.count, 2);
  assert_int_equal(destroyed, 10); /* b: least recently hit */
  a->running = 1;
  cache_invalidate(f->vm, &c, a);
  assert_int_equal(destroyed, 10);
  arg(f, 0, "[2.0]");
  assert_null(cache_lookup(f->vm, &c, &f->frame, slots, scratch));
  a->running = 0;
  cache_invalidate(f->vm, &c, d);
  assert_int_equal(destroyed, 111);
  cache_free(f->vm, &c);
}

static void cache_of_general_entries(void **state) {
  Fixture *f = *state;
  GuardCache c;
  u64 slots[4];
  Value scratch[4];
  destroyed = 0;
  cache_init(&c, 2, destroy);
  GuardEntry *a = cache_add(f->vm, &c, wants(f, "[1.0]"), (void *)(uintptr_t)1, false);
  GuardEntry *all = cache_add(f->vm, &c, wants(f, "[1]"), (void *)(uintptr_t)10, true);
  assert_true(a && all && c.entries.data[0] == a);
  arg(f, 0, "[2]");
  assert_ptr_equal(cache_lookup(f->vm, &c, &f->frame, slots, scratch), all);
  assert_ptr_equal(c.entries.data[0], a); /* behind those that were made for one kind */
  GuardEntry *more = cache_add(f->vm, &c, wants(f, "f32([2.0])"), (void *)(uintptr_t)100, true);
  assert_int_equal(c.entries.count, 2);
  assert_int_equal(destroyed, 10);
  assert_ptr_equal(c.entries.data[1], more);
  c.limit = 1;
  assert_non_null(cache_add(f->vm, &c, wants(f, "[1]"), (void *)(uintptr_t)1000, true));
  assert_int_equal(c.entries.count, 1);
  assert_int_equal(destroyed, 111);
  cache_free(f->vm, &c);
}

/* ---- refused memory ------------------------------------------------------------------------------- */

static void refused_memory(void **state) {
  Fixture *f = *state;
  arg(f, 0, "zeros((2, 3))");
  arg(f, 1, "\"abc\"");
  bool done = false;
  for (u32 limit = 0; limit < 100 && !done; limit++) {
    TestMemory l = test_memory(limit);
    GuardSet g;
    SizePool s;
    guards_init(&g, &l.base);
    size_init(&s, &l.base);
    SourceId a = source_root(&g, SRC_arg, 0), b = source_root(&g, SRC_arg, 1),
        n = source_step(&g, a, SRC_size, 0, NULL);
    Dim d = size_sym(&s, "n", n, 0, 9, 2);
    bool ok = guard_tag(&g, a, f->regs[0], true, (Span){0}) && guard_const(&g, b, f->regs[1], (Span){0}) &&
              guard_input(&g, a, IN_array) != UINT32_MAX &&
              guard_relation(&g, &s, REL_le, size_mul(&s, d, d), 50, "x", (Span){0});
    GuardProg *p = ok ? guard_compile(f->vm, &g, &s, NULL) : NULL;
    if (p) {
      expect_pass(f, p);
      done = true;
    }
    guard_prog_free(f->vm, p);
    guards_free(&g);
    size_free(&s);
  }
  assert_true(done);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(sources),       TEST(tags),          TEST(layout_may_be_left_open), TEST(constants),
      TEST(containers),    TEST(all_keys),      TEST(functions),               TEST(module_slots),
      TEST(ambient_and_identity), TEST(host_checks), TEST(size_relations),     TEST(broadcasting),
      TEST(inputs),        TEST(unsafe_reads_are_refused), TEST(rollback),     TEST(cache),
      TEST(cache_of_general_entries),
      TEST(refused_memory), TEST(reads_and_checks_are_one_step), TEST(items_are_one_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

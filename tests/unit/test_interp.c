/* test_interp.c — the reference interpreter of the graph against eager execution of the same program; exits, recipes,
 * values computed on leaving; and that the passes change no result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stdlib/stdlib.h"
#include "tracer/graph/graph.h"

enum { REGS = 6 };

typedef struct Fixture {
  Vm *vm;
  Module *module;
  Value regs[REGS];
  Frame frame;
} Fixture;

static int setup(void **state) {
  Fixture *f = test_malloc(sizeof *f);
  memset(f, 0, sizeof *f);
  f->vm = vm_new(NULL);
  assert_non_null(f->vm);
  assert_int_equal(stdlib_install(f->vm), WEFT_OK);
  f->module = module_new(f->vm, "test", "");
  f->frame.base = f->regs;
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  for (u32 i = 0; i < REGS; i++) value_drop(f->vm, f->regs[i]);
  stdlib_remove(f->vm);
  vm_free(f->vm);
  test_free(f);
  return 0;
}

static Value eval(Fixture *f, const char *text) {
  Value v = value_nil();
  if (vm_eval(f->vm, f->module, "<test>", text, strlen(text), false, &v) != WEFT_OK) {
    size_t n;
    fail_msg("%s: %s", text, vm_error_message(f->vm, &n));
  }
  return v;
}

/* args: "[1.0, 2.0]; 3": one register each. */
static void arguments(Fixture *f, const char *args) {
  char text[1000];
  u32 i = 0;
  strcpy(text, args);
  for (char *part = strtok(text, ";"); part; part = strtok(NULL, ";"), i++) {
    value_drop(f->vm, f->regs[i]);
    f->regs[i] = value_nil();
    f->regs[i] = eval(f, part);
  }
}

static void show(Fixture *f, Value v, char *out, size_t cap) {
  Value text;
  assert_int_equal(vm_op(f->vm, OP_str, &v, &text), WEFT_OK);
  strncpy(out, text.text->data, cap - 1);
  out[cap - 1] = 0;
  value_drop(f->vm, text);
}

static Graph *parse(Fixture *f, const char *text) {
  char err[200];
  Graph *g = graph_parse(&f->vm->alloc, &f->vm->names, text, strlen(text), err, sizeof err);
  if (!g) fail_msg("%s\n%s", err, text);
  Buf b;
  buf_init(&b, &f->vm->alloc);
  if (!graph_verify(g, &b)) fail_msg("%s\n%s", buf_text(&b), text);
  buf_free(&b);
  return g;
}

/* Runs the graph (consumed) as a region of the backend `interp` and shows the registers of the exit it takes. */
static void run(Fixture *f, Graph *g, u32 want_exit, const char *want) {
  Region *r = region_new(f->vm, g);
  assert_non_null(r);
  Buf why;
  buf_init(&why, &f->vm->alloc);
  assert_int_equal(backend_interp.compile(f->vm, &backend_interp, r, &(CompileLimits){0}, &why), BACKEND_ok);
  u64 slots[64] = {0};
  assert_true(r->nslots <= 64);
  for (u32 i = 0; i < g->guards.inputs.count; i++) {
    Value v;
    assert_true(source_read(f->vm, &g->guards, &f->frame, g->guards.inputs.data[i].source, &v));
    slots[i] = slot_of_value(v);
  }
  u32 exit = 0;
  if (r->run(f->vm, r, slots, &exit) != WEFT_OK) {
    size_t n;
    fail_msg("%s", vm_error_message(f->vm, &n));
  }
  assert_int_equal(exit, want_exit);
  char got[2000] = "", item[1000];
  const Exit *e = &g->exits.exits.data[exit];
  for (u32 i = 0; i < e->frame_count; i++) {
    const ExitFrame *x = &g->exits.frames.data[e->frame_first + i];
    for (u32 k = 0; k < x->count; k++) {
      /* each register by itself: what one recipe makes is made once within it */
      const Recipe *rec = &g->exits.recipes.data[g->exits.regs.data[x->first + k].recipe];
      Value v;
      if (rec->kind == RCP_value) assert_int_equal(region_value(f->vm, r, exit, slots, rec->a, &v), WEFT_OK);
      else if (rec->kind == RCP_size) {
        i64 n;
        assert_int_equal(region_size(f->vm, r, exit, slots, rec->dim, &n), WEFT_OK);
        v = value_weak_i64(n);
      } else continue;
      show(f, v, item, sizeof item);
      value_drop(f->vm, v);
      if (*got) strcat(got, " ");
      strcat(got, item);
    }
  }
  assert_string_equal(got, want);
  for (u32 i = 0; i < r->exits[exit].bind_count; i++) {
    RegionBind b = r->binds[r->exits[exit].bind_first + i];
    value_drop(f->vm, value_of_slot(g, b.value, slots[b.slot]));
  }
  buf_free(&why);
  region_free(f->vm, r);
}

/* The same before and after the passes. `nodes`: how many are left, 0: whatever. */
static void expect(Fixture *f, const char *text, const char *args, u32 exit, const char *want, u32 nodes) {
  arguments(f, args);
  run(f, parse(f, text), exit, want);
  Graph *g = parse(f, text);
  if (!graph_simplify(g)) fail_msg("%s", g->defect ? g->defect : "memory");
  Buf b;
  buf_init(&b, &f->vm->alloc);
  if (!graph_verify(g, &b)) fail_msg("%s", buf_text(&b));
  if (nodes && graph_node_count(g) != nodes) {
    graph_print(g, NULL, &b);
    fail_msg("%u nodes are left\n%s", graph_node_count(g), buf_text(&b));
  }
  buf_free(&b);
  run(f, g, exit, want);
}

#define HEAD "graph f\nframe 0 f\n"
#define END(values) "out -> 0\nexit 0 return { f: ret = " values " }\n"

static void operations(void **state) {
  Fixture *f = *state;
  expect(f, HEAD "sym n = size(arg0, 0) in [0, 2^62)\n"
            "in %x: f64[n] = arg0\n%1 = multiply %x 2.0 : f64[n]\n%2 = add %1 1 : f64[n]\n"
            "%3 = sum %2 {axis=[0]} : f64[]\n" END("%3"), "[1.0, 2.0, 3.0]", 0, "15.0", 3);
  expect(f, HEAD "sym n = size(arg0, 0) in [0, 2^62)\n"
            "in %x: f64[n] = arg0\n%1 = add %x n : f64[n]\n%2 = concat %1 %x {xs=*2} : f64[<2*n>]\n"
            "%3 = reshape %2 {shape=(2, n)} : f64[2, n]\n%4 = transpose %3 : f64[n, 2]\n" END("%4"), "[1.0, 2.0]", 0,
         "[[3.0, 1.0],\n [4.0, 2.0]]", 4);
  expect(f, HEAD "in %x: f64[2, 2] = arg0\n%1 %2 = linalg.eigh %x : f64[2] f64[2, 2]\n" END("%1"),
         "[[2.0, 0.0], [0.0, 3.0]]", 0, "[2.0, 3.0]", 1);
  expect(f, HEAD "in %x: f64[3] = arg0\n%1 = cumsum %x {reverse=true} : f64[3]\n"
            "%2 = astype %1 {dtype=i32} : i32[3]\n%3 = zeros {shape=(3), dtype=i32} : i32[3]\n"
            "%4 = equal %2 %3 : bool[3]\n%5 = where %4 %2 -1 : i32[3]\n" END("%5"), "[1.0, 2.0, -2.0]", 0,
         "[-1, 0, -1]", 0);
  expect(f, HEAD "sym n = size(arg0, 0) in [0, 2^62)\nin %x: f64[n] = arg0\n"
            "%1 = add %x 0.0 : f64[n]\n" END("<2*n + 1>"), "[1.0, 2.0]", 0, "5", 0);
}

static void indexing(void **state) {
  Fixture *f = *state;
  expect(f,
         HEAD "sym n = size(arg0, 0) in [0, 2^62)\nin %x: f64[n, 3] = arg0\nin %i: i64[] = arg1\nin %j: i64[2] = arg2\n"
         "%2 = index %x[@%j, ::-1] : f64[2, 3]\n%3 = index %2[nil, ..., 0] : f64[1, 2]\n%4 = sum %3 : f64[]\n"
         "%5 = update %x[%i, 0] add %4 : f64[n, 3]\n" END("%5"), "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]; i64(1); [1, 0]",
         0, "[[1.0, 2.0, 3.0],\n [13.0, 5.0, 6.0]]", 4);
  expect(f, HEAD "sym n = size(arg0, 0) in [0, 2^62)\nin %x: f64[n, 3] = arg0\nin %i: i64[] = arg1\n%1 = index %x[%i, "
            "1:] : f64[2]\n" END("%1"), "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]; i64(1)", 0, "[5.0, 6.0]", 1);
  expect(f, HEAD "sym n = size(arg0, 0) in [0, 2^62)\n"
            "in %x: f64[n, 3] = arg0\nin %j: i64[2] = arg1\n%2 = index %x[@%j, ::-1] : f64[2, 3]\n"
            "%5 = update %2[@%j, 0] add 10.0 : f64[2, 3]\n" END("%5"), "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]; [1, 1]", 0,
         "[[6.0, 5.0, 4.0],\n [26.0, 5.0, 4.0]]", 2);
  /* the original is untouched: values */
  expect(f, HEAD "in %x: f64[2] = arg0\n%1 = update %x[0] set 9.0 : f64[2]\n%2 = add %x %1 : f64[2]\n" END("%2"),
         "[1.0, 2.0]", 0, "[10.0, 4.0]", 2);
}

static void checks_and_exits(void **state) {
  Fixture *f = *state;
  const char *text = HEAD "sym n = size(arg0, 0) in [0, 2^62)\n"
                     "in %x: f64[n] = arg0\nin %i: i64[] = arg1\n%1 = multiply %x 2.0 : f64[n]\n"
                     "check index %i n -> 1\n%2 = index %1[%i] : f64[]\n"
                     "check index %i n -> 1\n%3 = multiply %x 2.0 : f64[n]\n%4 = index %3[%i] : f64[]\n"
                     "%5 = add %2 %4 : f64[]\nout -> 0\nexit 0 return { f: ret = %5 }\n"
                     "exit 1 check index { f pc 3: r0 = %1, r1 = %i, r2 = <n> }\n";
  expect(f, text, "[1.0, 2.0]; i64(1)", 0, "8.0", 4); /* the second check, product and element go */
  expect(f, text, "[1.0, 2.0]; i64(-2)", 0, "4.0", 4);
  expect(f, text, "[1.0, 2.0]; i64(2)", 1, "[2.0, 4.0] 2 2", 4);
  const char *arrays = HEAD "in %x: i64[3] = arg0\ncheck zero_div %x -> 1\n"
                       "%1 = floor_divide 12 %x : i64[3]\nout -> 0\nexit 0 return { f: ret = %1 }\n"
                       "exit 1 check zero_div { f pc 3: r0 = %x }\n";
  expect(f, arrays, "[1, 2, 3]", 0, "[12, 6, 4]", 2);
  expect(f, arrays, "[1, 0, 3]", 1, "[1, 0, 3]", 2);
  const char *casts = HEAD "in %x: f64[2] = arg0\ncheck cast_range %x 0:i32 -> 1\n"
                      "%1 = astype %x {dtype=i32} : i32[2]\nout -> 0\nexit 0 return { f: ret = %1 }\n"
                      "exit 1 check cast_range { f pc 3: r0 = %x }\n";
  expect(f, casts, "[2147483647.5, -1.5]", 0, "[2147483647, -1]", 2);
  expect(f, casts, "[2147483648.0, 0.0]", 1, "[2147483648.0, 0.0]", 2);
  expect(f, casts, "[nan, 0.0]", 1, "[nan, 0.0]", 2);
  /* an operation that raises leaves by the entry */
  expect(f, HEAD "in %x: i64[] = arg0\n%1 = floor_divide 12 %x : i64[]\nout -> 0\nexit 0 return { f: ret = %1 }\n"
                 "exit 1 limit { f pc 0: r0 = %x }\nentry -> 1\n", "i64(0)", 1, "0", 1);
}

static void branches(void **state) {
  Fixture *f = *state;
  const char *text = HEAD "in %x: f64[] = arg0\n%p = less %x 0.0 : bool[]\n"
                     "%r = cond %p (%x) {\n then (%a: f64[]) { %n = negative %a : f64[] yield %n }\n"
                     " else (%a: f64[]) { yield %a }\n} : f64[]\n" END("%r");
  expect(f, text, "f64(-2.5)", 0, "2.5", 0);
  expect(f, text, "f64(2.5)", 0, "2.5", 0);
  expect(f, HEAD "in %x: f64[] = arg0\n%q = less 1 2 : weak bool[]\n"
            "%r %s = cond %q (%x) {\n then (%a: f64[]) { %n = negative %a : f64[] yield %n %a }\n"
            " else (%a: f64[]) { yield %a %a }\n} : f64[] f64[]\n" END("list(%r, %s)"), "f64(2.5)", 0, "", 1);
  /* arms that leave */
  const char *exits = HEAD "in %x: f64[] = arg0\n%p = less %x 0.0 : bool[]\n"
                      "%r = cond %p (%x) {\n then (%a: f64[]) { %n = negative %a : f64[] exit 1 }\n"
                      " else (%a: f64[]) { yield %a }\n} : f64[]\nout -> 0\nexit 0 return { f: ret = %r }\n"
                      "exit 1 cold { f pc 4: r0 = %x, r1 = %n }\n";
  expect(f, exits, "f64(-2.5)", 1, "-2.5 2.5", 0);
  expect(f, exits, "f64(2.5)", 0, "2.5", 0);
}

static const char *const collatz = HEAD "in %x: i64[] = arg0\n%n %k = while (%x 0:i64) () {\n"
                                   " cond (%v: i64[], %c: i64[]) { %p = greater %v 1 : bool[] yield %p }\n"
                                   " body (%v: i64[], %c: i64[]) {\n"
                                   "  %r = remainder %v 2 : i64[]\n  %e = equal %r 0 : bool[]\n"
                                   "  %w = cond %e (%v) {\n"
                                   "   then (%a: i64[]) { %h = floor_divide %a 2 : i64[] yield %h }\n"
                                   "   else (%a: i64[]) { %t = multiply %a 3 : i64[] %o = add %t 1 : i64[]"
                                   " yield %o }\n  } : i64[]\n  %d = add %c 1 : i64[]\n"
                                   "  %big = greater %d 100 : bool[]\n"
                                   "  %z = cond %big (%w %d) {\n   then (%a: i64[], %b: i64[]) { break %a %b }\n"
                                   "   else (%a: i64[], %b: i64[]) { yield %b }\n  } : i64[]\n  next %w %z\n"
                                   " }\n} -> 1 : i64[] i64[]\nout -> 0\nexit 0 return { f: r0 = %n, r1 = %k }\n"
                                   "exit 1 limit { f pc 3: r0 = %v, r1 = %c }\n";

static void while_loops(void **state) {
  Fixture *f = *state;
  expect(f, collatz, "i64(1)", 0, "1 0", 0); /* no trip */
  expect(f, collatz, "i64(27)", 0, "160 101", 0); /* break at 101 steps */
  expect(f, collatz, "i64(6)", 0, "1 8", 0);
}

static void limits(void **state) {
  Fixture *f = *state;
  arguments(f, "i64(27)");
  Graph *g = parse(f, collatz);
  Region *r = region_new(f->vm, g);
  Buf why;
  buf_init(&why, &f->vm->alloc);
  assert_int_equal(backend_interp.compile(f->vm, &backend_interp, r, &(CompileLimits){0}, &why), BACKEND_ok);
  u64 slots[64] = {slot_of_value(f->regs[0])};
  f->vm->limits.fuel = 5;
  vm_poll_reset(f->vm);
  u32 exit = 0;
  assert_int_equal(r->run(f->vm, r, slots, &exit), WEFT_ERROR);
  assert_int_equal(exit, 1);
  assert_int_equal(f->vm->error.kind, EK_limit);
  vm_error_clear(f->vm);
  f->vm->limits.fuel = UINT64_MAX;
  vm_poll_reset(f->vm);
  Value v, c;
  assert_int_equal(region_value(f->vm, r, 1, slots,
                                g->exits.recipes.data[g->exits.regs.data[g->exits.frames.data[1].first].recipe].a, &v),
                   WEFT_OK);
  assert_int_equal(region_value(f->vm, r, 1, slots,
                                g->exits.recipes.data[g->exits.regs.data[g->exits.frames.data[1].first + 1].recipe].a,
                                &c), WEFT_OK);
  /* a whole state at the head of some trip: 27, 82, 41, 124 … */
  i64 x = 27;
  for (i64 i = 0; i < c.i; i++) x = x % 2 ? 3 * x + 1 : x / 2;
  assert_int_equal(v.i, x);
  assert_true(c.i > 0);
  buf_free(&why);
  region_free(f->vm, r);
}

static void scans(void **state) {
  Fixture *f = *state;
  const char *text = HEAD "sym n = size(arg0, 0) in [0, 2^62)\n"
                     "in %x: f64[n, 2] = arg0\n%c %y %z = scan (0.0:f64) (%x) () length n index {\n"
                     " body (%s: f64[], %r: f64[2], %i: i64[]) {\n  %a = sum %r {axis=[0]} : f64[]\n"
                     "  %b = add %s %a : f64[]\n  %d = multiply %r %i : f64[2]\n  next %b %b %d\n }\n"
                     "} : f64[] f64[n] f64[n, 2]\nout -> 0\nexit 0 return { f: r0 = %c, r1 = %y, r2 = %z }\n";
  expect(f, text, "[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]", 0,
         "21.0 [3.0, 10.0, 21.0] [[0.0, 0.0],\n [3.0, 4.0],\n [10.0, 12.0]]", 0);
  expect(f, text, "zeros((0, 2))", 0, "0.0 [] []", 0);
  expect(f, HEAD "sym n = size(arg0, 0) in [0, 2^62)\nin %x: f64[n] = arg0\n"
            "%c %y = scan (0.0:f64) (%x) () length n reverse {\n body (%s: f64[], %r: f64[]) {\n"
            "  %b = add %s %r : f64[]\n  next %b %b\n }\n} : f64[] f64[n]\nout -> 0\n"
            "exit 0 return { f: r0 = %c, r1 = %y }\n", "[1.0, 2.0, 3.0]", 0, "6.0 [6.0, 5.0, 3.0]", 0);
  /* an associative scan has the order of cumsum */
  const char *ascan = HEAD "sym n = size(arg0, 0) in [0, 2^62)\nin %x: f64[n] = arg0\n"
                      "%y = ascan (%x) () {\n body (%a: f64[], %b: f64[]) { %s = add %a %b : f64[] yield %s }\n"
                      "} : f64[n]\n%z = cumsum %x : f64[n]\n%d = subtract %y %z : f64[n]\n%e = abs %d : f64[n]\n"
                      "%m = sum %e {axis=[0]} : f64[]\n" END("%m");
  expect(f, ascan, "sin(arange(1000) * 1.0)", 0, "0.0", 0);
  expect(f, ascan, "zeros(0)", 0, "0.0", 0);
  expect(f, ascan, "[2.5]", 0, "0.0", 0);
}

static void shared_and_custom(void **state) {
  Fixture *f = *state;
  expect(f, HEAD "fn @sq (%1: f64[]) { %2 = multiply %1 %1 : f64[] yield %2 }\nin %x: f64[] = arg0\n"
            "%a = call @sq (%x) : f64[]\n%b = call @sq (%a) : f64[]\n" END("%b"), "f64(3.0)", 0, "81.0", 0);
  expect(f, HEAD "in %x: f64[] = arg0\n%a = checkpoint (%x) (%x) {\n body (%c: f64[], %b: f64[]) { %s = add %c %b : "
            "f64[] yield %s }\n} : f64[]\n" END("%a"), "f64(3.0)", 0, "6.0", 0);
}

static void sizes_known_at_run_time(void **state) {
  Fixture *f = *state;
  expect(f, HEAD "sym n = size(arg0, 0) in [0, 2^62)\n"
            "sym u = %k in [0, 1000]\nin %x: f64[n] = arg0\n%k = argmax %x {axis=[0]} : i64[]\n"
            "%z = ones {shape=(u)} : f64[u]\n%s = sum %z {axis=[0]} : f64[]\n" END("%s"), "[1.0, 7.0, 9.0, 2.0]",
         0, "2.0", 3);
  expect(f, HEAD "sym n = size(arg0, 0) in [0, 2^62)\nsym u = %c in [0, 1000]\n"
            "in %x: f64[n] = arg0\nin %m: bool[n] = arg1\n%c = index %x[?%m] : f64[u]\n"
            "%d = add %c u : f64[u]\n" END("%d"), "[1.0, 7.0, 9.0]; [true, false, true]", 0, "[3.0, 11.0]", 2);
}

static void defects_are_seen(void **state) {
  Fixture *f = *state;
  arguments(f, "[1.0, 2.0]; [true, false]");
  Graph *g = parse(f, HEAD "in %x: f64[2] = arg0\nin %m: bool[2] = arg1\n%c = index %x[?%m] : f64[2]\n" END("%c"));
  GraphRun r;
  assert_int_equal(run_init(&r, f->vm, g), WEFT_OK);
  run_inputs(&r, (u64[]){slot_of_value(f->regs[0]), slot_of_value(f->regs[1])});
  u32 exit;
  assert_int_equal(run_root(&r, &exit), WEFT_ERROR);
  size_t n;
  assert_non_null(strstr(vm_error_message(f->vm, &n), "index should give f64[2]"));
  vm_error_clear(f->vm);
  run_free(&r);
  graph_free(g);
}

/* ---- recipes -------------------------------------------------------------------------------------- */

static WeftStatus no_value(void *ctx, u32 value, Value *out) {
  Fixture *f = ctx;
  return value ? array_new_zero(f->vm, DT_i64, 1, (i64[]){3}, out) : WEFT_ERROR;
}
static WeftStatus no_size(void *ctx, Dim d, i64 *out) {
  (void)ctx;
  *out = d >= 0 ? d : 42;
  return WEFT_OK;
}

static void recipes(void **state) {
  Fixture *f = *state;
  arguments(f, "{w: (1, \"two\")}");
  Graph *g = parse(f, HEAD "sym n in [0, 9]\nin %x: i64[3] = arg1\nout -> 0\n"
                      "exit 0 return { f: r0 = list(record(a: 1, \"b c\": %x), \"t\", nil, true, 2.5:f32), "
                      "r1 = range(0, <n + 1>, 2), r2 = items %x after list(7), r3 = =arg0.w[1], r4 = builtin sum, "
                      "r5 = ref(list(dtype f32)) }\n");
  RecipeBuild b;
  assert_int_equal(build_init(&b, f->vm, g, &f->frame), WEFT_OK);
  b.value = no_value;
  b.size = no_size;
  b.ctx = f;
  static const char *const want[] = {"({a: 1, \"b c\": [0, 0, 0]}, \"t\", nil, true, 2.5)", "0..42 by 2",
                                     "(7, 0, 0, 0)", "two", "<fn sum>", "<ref (f32,)>"};
  for (u32 i = 0; i < COUNT_OF(want); i++) {
    Value v, again;
    char text[200];
    RecipeId id = g->exits.regs.data[g->exits.frames.data[0].first + i].recipe;
    assert_int_equal(build_recipe(&b, id, &v), WEFT_OK);
    show(f, v, text, sizeof text);
    assert_string_equal(text, want[i]);
    assert_int_equal(build_recipe(&b, id, &again), WEFT_OK);
    assert_true(again.bits == v.bits); /* each built once */
    value_drop(f->vm, v);
    value_drop(f->vm, again);
  }
  build_free(&b);
  graph_free(g);
}

/* ---- passes --------------------------------------------------------------------------------------- */

static void pruned_inputs(void **state) {
  Fixture *f = *state;
  Graph *g = parse(f, HEAD "sym n = size(arg1, 0) in [0, 2^62)\nsym m = size(arg0, 0) in [0, 2^62)\n"
                      "in %a: f64[m] = arg0\nin %b: f64[n] = arg1\nin %c: f64[] = arg2\n"
                      "%1 = add %a %c : f64[m]\n%2 = add %b n : f64[n]\n%3 = multiply %2 1.0 : f64[n]\n" END("%3"));
  for (u32 s = 0; s < 2; s++) {
    u32 in = guard_input(&g->guards, g->sizes.syms.data[s].source, IN_size);
    g->guards.inputs.data[in].sym = s;
  }
  assert_int_equal(g->guards.inputs.count, 5);
  assert_true(graph_prune(g));
  assert_int_equal(g->inputs.count, 1);
  assert_int_equal(g->guards.inputs.count, 2); /* arg1 and its size */
  assert_int_equal(g->inputs.data[0].input, 0);
  assert_int_equal(g->guards.inputs.data[1].sym, 0);
  Buf b;
  buf_init(&b, &f->vm->alloc);
  graph_print(g, NULL, &b);
  assert_string_equal(buf_text(&b),
                      "graph f  file 0  ambient 0\nframe 0 f\n"
                      "sym n = size(arg1, 0) in [0, 2^62)\nsym m = size(arg0, 0) in [0, 2^62)\n"
                      "in %1: f64[n] = arg1\n%2 = add %1 n : f64[n]\nout %2 -> 0\nexit 0 return { f: ret = %2 }\n");
  buf_free(&b);
  graph_free(g);
}

static void folding(void **state) {
  Fixture *f = *state;
  expect(f, HEAD "%1 = add 2 3 : weak i64[]\n%2 = multiply %1 0.5:f32 : f32[]\n%3 = less %2 4 : bool[]\n"
            "%4 = where %3 %2 1.0:f32 : f32[]\n" END("%4"), "1", 0, "2.5", 0);
  /* -0.0 survives x + 0.0 being there */
  expect(f, HEAD "in %x: f64[] = arg0\n%1 = add %x 0.0 : f64[]\n%2 = divide 1.0 %1 : f64[]\n" END("%2"), "f64(-0.0)",
         0, "inf", 2);
  expect(f, HEAD "in %x: f64[2, 3] = arg0\n%1 = reshape %x {shape=(6)} : f64[6]\n"
            "%2 = reshape %1 {shape=(3, 2)} : f64[3, 2]\n%3 = reshape %2 {shape=(3, 2)} : f64[3, 2]\n"
            "%4 = astype %3 {dtype=f64} : f64[3, 2]\n" END("%4"), "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]", 0,
         "[[1.0, 2.0],\n [3.0, 4.0],\n [5.0, 6.0]]", 1);
  /* a loop that may go on for ever is not dropped, a check in an unused branch neither */
  expect(f,
         HEAD "in %x: i64[] = arg0\n%w = while (%x) () {\n cond (%a: i64[]) { %p = greater %a 3 : bool[] yield %p }\n"
         " body (%a: i64[]) { %b = subtract %a 1 : i64[] next %b }\n} : i64[]\n" END("%x"), "i64(9)", 0, "9", 3);
  expect(f, HEAD "in %x: i64[] = arg0\nin %p: bool[] = arg1\n%r = cond %p (%x) {\n"
            " then (%a: i64[]) { check zero_div %a -> 1 yield %a }\n else (%a: i64[]) { yield %a }\n} : i64[]\n"
            "out -> 0\nexit 0 return { f: ret = %x }\nexit 1 check zero_div { f pc 1: r0 = %p }\n", "i64(0); true",
         1, "true", 2);
}

static void nested_captures_go(void **state) {
  Fixture *f = *state;
  const char *text = HEAD "in %x: f64[] = arg0\nin %p: bool[] = arg1\n"
                     "%r = cond %p (%x %p) {\n then (%a: f64[], %q: bool[]) {\n"
                     "  %s = cond %q (%a) {\n   then (%b: f64[]) { %d = exp %b : f64[] yield 1.0:f64 }\n"
                     "   else (%b: f64[]) { yield 2.0:f64 }\n  } : f64[]\n  yield %s\n }\n"
                     " else (%a: f64[], %q: bool[]) { yield 3.0:f64 }\n} : f64[]\n" END("%r");
  expect(f, text, "f64(1.0); true", 0, "1.0", 2);
  Graph *g = parse(f, text);
  assert_true(graph_simplify(g));
  u32 first;
  assert_int_equal(node_captures(g, block_first(g, 1), &first), 1); /* the predicate of the inner one */
  graph_free(g);
}

/* ---- refused memory ------------------------------------------------------------------------------- */

static void refused_memory(void **state) {
  Fixture *f = *state;
  const char *text = HEAD "sym n = size(arg0, 0) in [0, 2^62)\nin %x: f64[n] = arg0\n"
                     "%c %y = scan (0.0:f64) (%x) () length n {\n body (%s: f64[], %r: f64[]) {\n"
                     "  %b = add %s %r : f64[]\n  %o = multiply 2.0 3.0 : weak f64[]\n  %p = multiply %b %o : f64[]\n"
                     "  next %b %p\n }\n} : f64[] f64[n]\n" END("%y");
  arguments(f, "[1.0, 2.0, 3.0]");
  Allocator *host = &f->vm->alloc;
  bool done = false;
  for (u64 room = 0; room < 400000 && !done; room += room < 20000 ? 97 : 1777) {
    f->vm->limits.bytes = f->vm->stats.bytes_now + room;
    Graph *g = graph_parse(host, &f->vm->names, text, strlen(text), NULL, 0);
    if (g && graph_simplify(g)) {
      GraphRun r;
      if (run_init(&r, f->vm, g) == WEFT_OK) {
        u32 exit;
        run_inputs(&r, (u64[]){slot_of_value(f->regs[0])});
        done = run_root(&r, &exit) == WEFT_OK && exit == 0;
        run_free(&r);
      }
    }
    graph_free(g);
    if (f->vm->error.raised) vm_error_clear(f->vm);
  }
  f->vm->limits.bytes = 0;
  assert_true(done);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(operations),  TEST(indexing), TEST(checks_and_exits),  TEST(branches),         TEST(while_loops),
      TEST(limits),      TEST(scans),    TEST(shared_and_custom), TEST(sizes_known_at_run_time), TEST(defects_are_seen),
      TEST(recipes),     TEST(pruned_inputs), TEST(folding),      TEST(nested_captures_go), TEST(refused_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

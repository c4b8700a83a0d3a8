/* test_jit.c — compiled graphs against the graph interpreter: same exit, same values to the last bit, over sizes; how
 * many kernels and natives a graph becomes; every refused allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jit/jit.h"
#include "jit/lower/code.h"
#include "jit/lower/compile.h"
#include "stdlib/stdlib.h"
#include "stdlib/kernels/wm.h"
#include "tests/unit/jit_graphs.h"
#include "tests/unit/jit_random.h"
#include "tests/unit/memory.h"
#include "tracer/graph/graph.h"

enum { REGS = 8, MAX_SLOTS = 400 };

typedef struct Fixture {
  TestMemory memory;
  Vm *vm;
  Jit *jit;
  Module *module;
  Value regs[REGS];
  Frame frame;
  u32 wrong; /* graphs that became something else than expected */
} Fixture;

static int setup(void **state) {
  Fixture *f = test_malloc(sizeof *f);
  memset(f, 0, sizeof *f);
  f->memory = test_memory(-1);
  f->vm = vm_new(&(VmOptions){.alloc = &f->memory.base,
                              .limits = {.fuel = UINT64_MAX, .depth = 20000, .output = UINT64_MAX}});
  assert_non_null(f->vm);
  assert_int_equal(stdlib_install(f->vm), WEFT_OK);
  f->module = module_new(f->vm, "test", "");
  f->frame.base = f->regs;
  f->jit = jit_new(f->vm, wm_best()->functions, wm_best()->count);
  assert_non_null(f->jit);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  for (u32 i = 0; i < REGS; i++) value_drop(f->vm, f->regs[i]);
  jit_free(f->vm, f->jit);
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

/* "f64(1); arange(N)": one register each; N stands for a size. */
static void arguments(Fixture *f, const char *args, i64 n) {
  char text[2000];
  u32 at = 0, reg = 0;
  for (const char *p = args;; p++) {
    if (*p && *p != ';') {
      bool alone = *p == 'N' && (p == args || !strchr("abcdefghijklmnopqrstuvwxyz_", p[-1]));
      if (alone) at += (u32)snprintf(text + at, sizeof text - at, "%lld", (long long)n);
      else text[at++] = *p;
      continue;
    }
    text[at] = 0;
    at = 0;
    value_drop(f->vm, f->regs[reg]);
    f->regs[reg] = value_nil();
    f->regs[reg++] = eval(f, text);
    if (!*p) return;
  }
}

static Graph *parse(Fixture *f, const char *text) {
  char err[200];
  Graph *g = graph_parse(&f->vm->alloc, &f->vm->names, text, strlen(text), err, sizeof err);
  if (!g) fail_msg("%s\n%s", err, text);
  Buf b;
  buf_init(&b, &f->vm->alloc);
  if (!graph_verify(g, &b)) fail_msg("%s\n%s", buf_text(&b), text);
  buf_free(&b);
  for (u32 i = 0; i < g->sizes.syms.count; i++) { /* as the recorder has them: sizes are inputs */
    const SizeSym *sym = &g->sizes.syms.data[i];
    if (sym->unbacked || !sym->source) continue;
    u32 in = guard_input(&g->guards, sym->source, IN_size);
    assert_int_not_equal(in, UINT32_MAX);
    g->guards.inputs.data[in].sym = i;
  }
  return g;
}

static const Backend *backend_of(Fixture *f, const char *name) {
  return strcmp(name, "interp") == 0 ? &backend_interp : jit_backend(f->jit, name);
}

typedef struct Result {
  u32 exit, count;
  Value values[64];
} Result;

static void drop_result(Fixture *f, Result *r) {
  for (u32 i = 0; i < r->count; i++) value_drop(f->vm, r->values[i]);
}

/* NULL: the backend does not support it (said in `why`). */
static Region *compile(Fixture *f, const char *backend, const char *text, Buf *why) {
  Graph *g = parse(f, text);
  /* as the compiler begins: what is dead raises nothing */
  if (strcmp(backend, "interp") == 0) assert_true(graph_simplify(g));
  Region *r = region_new(f->vm, g);
  assert_non_null(r);
  const Backend *b = backend_of(f, backend);
  BackendResult got = b->compile(f->vm, b, r, &(CompileLimits){0}, why);
  if (got == BACKEND_ok) return r;
  if (got != BACKEND_unsupported) fail_msg("%s: result %d: %s\n%s", backend, (int)got, buf_text(why), text);
  region_free(f->vm, r);
  return NULL;
}

/* Runs the region on the registers. Values that the exit's recipes name, in order of the registers. */
static void run(Fixture *f, Region *r, Result *out) {
  const Graph *g = r->graph;
  u64 slots[MAX_SLOTS] = {0};
  assert_true(r->nslots <= MAX_SLOTS);
  for (u32 i = 0; i < g->guards.inputs.count; i++) {
    Value v;
    assert_true(source_read(f->vm, &g->guards, &f->frame, g->guards.inputs.data[i].source, &v));
    slots[i] = slot_of_value(v);
  }
  out->exit = 0;
  out->count = 0;
  if (r->run(f->vm, r, slots, &out->exit) != WEFT_OK) {
    size_t n;
    fail_msg("%s", vm_error_message(f->vm, &n));
  }
  const Exit *e = &g->exits.exits.data[out->exit];
  for (u32 i = 0; i < e->frame_count; i++) {
    const ExitFrame *x = &g->exits.frames.data[e->frame_first + i];
    for (u32 k = 0; k < x->count; k++) {
      const Recipe *rec = &g->exits.recipes.data[g->exits.regs.data[x->first + k].recipe];
      u32 count = rec->kind == RCP_list ? rec->count : 1;
      for (u32 j = 0; j < count; j++) {
        const Recipe *part = rec->kind == RCP_list ? &g->exits.recipes.data[g->exits.ids.data[rec->first + j]] : rec;
        if (part->kind == RCP_value) {
          assert_int_equal(region_value(f->vm, r, out->exit, slots, part->a, &out->values[out->count]), WEFT_OK);
          out->count++;
        } else if (part->kind == RCP_size) {
          i64 n;
          assert_int_equal(region_size(f->vm, r, out->exit, slots, part->dim, &n), WEFT_OK);
          out->values[out->count++] = value_weak_i64(n);
        }
      }
    }
  }
  for (u32 i = 0; i < r->exits[out->exit].bind_count; i++) {
    RegionBind b = r->binds[r->exits[out->exit].bind_first + i];
    bool again = b.slot == BIND_NODE;
    for (u32 k = 0; k < i && !again; k++) again = r->binds[r->exits[out->exit].bind_first + k].slot == b.slot;
    if (!again) value_drop(f->vm, value_of_slot(g, b.value, slots[b.slot]));
  }
}

static bool same_element(u32 dtype, const u8 *a, const u8 *b) {
  if (memcmp(a, b, dtype_bytes(dtype)) == 0) return true;
  f64 x, y;
  f32 p, q;
  switch (dtype) {
    case DT_f64: return memcpy(&x, a, 8), memcpy(&y, b, 8), x != x && y != y;
    case DT_f32: return memcpy(&p, a, 4), memcpy(&q, b, 4), p != p && q != q;
    default: return false;
  }
}

static bool same_value(Fixture *f, Value a, Value b) {
  NumBox p, q;
  if (value_tag(a) != value_tag(b)) return false;
  Array *x = array_of(a, &p), *y = array_of(b, &q);
  if (array_rank(x) != array_rank(y) || array_dtype(x) != array_dtype(y)) return false;
  if (memcmp(array_dims(x), array_dims(y), array_rank(x) * sizeof(i64)) != 0) return false;
  Value dx = value_nil(), dy = value_nil();
  if (a.kind == V_ARRAY) {
    assert_int_equal(array_make_dense(f->vm, a, &dx), WEFT_OK);
    assert_int_equal(array_make_dense(f->vm, b, &dy), WEFT_OK);
    x = dx.array;
    y = dy.array;
  }
  u32 bytes = dtype_bytes(array_dtype(x));
  bool same = true;
  for (i64 i = 0; i < x->size && same; i++)
    same = same_element(array_dtype(x), (u8 *)x->data + i * bytes, (u8 *)y->data + i * bytes);
  value_drop(f->vm, dx);
  value_drop(f->vm, dy);
  return same;
}

static void show(Fixture *f, Value v, char *out, size_t cap) {
  Value text;
  assert_int_equal(vm_op(f->vm, OP_str, &v, &text), WEFT_OK);
  snprintf(out, cap, "%.*s", 300, text.text->data);
  value_drop(f->vm, text);
}

static void same_results(Fixture *f, const char *backend, const char *text, const Region *r, Result *want,
                         Result *got) {
  Buf plan;
  buf_init(&plan, &f->vm->alloc);
  bool same = want->exit == got->exit && want->count == got->count;
  char a[400] = "", b[400] = "";
  for (u32 i = 0; i < want->count && same; i++)
    if (!same_value(f, want->values[i], got->values[i])) {
      same = false;
      show(f, want->values[i], a, sizeof a);
      show(f, got->values[i], b, sizeof b);
    }
  if (!same) {
    r->print(r, &plan);
    fprintf(stderr, "%s\n%s", text, buf_text(&plan)); /* too long for a message */
    fail_msg("%s: exit %u with %u values (%s), wanted exit %u with %u values (%s)", backend, got->exit, got->count, b,
             want->exit, want->count, a);
  }
  buf_free(&plan);
}

static const char *const backends[] = {"loops", "mir"};

static void compare(Fixture *f, const GraphCase *g) {
  static const i64 sizes[] = {0, 1, 7, 100, 5000};
  char *text = test_malloc(strlen(g->text) + 400);
  sprintf(text, "graph f\nframe 0 f\n%s%s", g->text,
          strstr(g->text, "entry ->") || strstr(g->text, "exit 1") ? "" : "");
  Buf why;
  buf_init(&why, &f->vm->alloc);
  Region *oracle = compile(f, "interp", text, &why);
  assert_non_null(oracle);
  for (u32 b = 0; b < COUNT_OF(backends); b++) {
    Region *r = compile(f, backends[b], text, &why);
    if (!r) fail_msg("%s: not supported: %s\n%s", backends[b], buf_text(&why), text);
    bool counted = g->kernels == r->kernels && g->natives == r->natives && g->externs == r->externs;
    if (!counted) {
      Buf plan;
      buf_init(&plan, &f->vm->alloc);
      r->print(r, &plan);
      print_error("%s: %u kernels, %u natives, %u externs; wanted %u, %u, %u\n%s\n%s", backends[b], r->kernels,
                  r->natives, r->externs, g->kernels, g->natives, g->externs, text, buf_text(&plan));
      buf_free(&plan);
      f->wrong++;
    }
    bool many = strstr(g->args, "N") != NULL;
    for (u32 s = 0; s < (many ? COUNT_OF(sizes) : 1); s++) {
      if (sizes[s] < g->least && many) continue;
      Result want, got;
      arguments(f, g->args, sizes[s]);
      run(f, oracle, &want);
      run(f, r, &got);
      same_results(f, backends[b], text, r, &want, &got);
      drop_result(f, &want);
      drop_result(f, &got);
    }
    region_free(f->vm, r);
  }
  region_free(f->vm, oracle);
  buf_free(&why);
  test_free(text);
}

static void group(Fixture *f, const GraphCase *cases, u32 count) {
  for (u32 i = 0; i < count; i++) compare(f, &cases[i]);
  assert_int_equal(f->wrong, 0);
}

/* Random graphs, at several sizes; WEFT_RANDOM=first,count looks at others. */
static void random_graphs(void **state) {
  Fixture *f = *state;
  RandomGraph *r = test_malloc(sizeof *r);
  unsigned long first = 0, count = 120;
  const char *which = getenv("WEFT_RANDOM");
  if (which) sscanf(which, "%lu,%lu", &first, &count);
  for (unsigned long seed = first; seed < first + count; seed++) {
    random_graph(r, seed);
    Buf why;
    buf_init(&why, &f->vm->alloc);
    Region *oracle = compile(f, "interp", r->text, &why);
    for (u32 b = 0; b < COUNT_OF(backends); b++) {
      Region *region = compile(f, backends[b], r->text, &why);
      if (!region) fail_msg("seed %lu: %s: not supported: %s\n%s", seed, backends[b], buf_text(&why), r->text);
      for (u32 s = 0; s < 4; s++) {
        Result want, got;
        arguments(f, RANDOM_ARGUMENTS, (i64[]){0, 1, 7, 100}[s]);
        run(f, oracle, &want);
        run(f, region, &got);
        same_results(f, backends[b], r->text, region, &want, &got);
        drop_result(f, &want);
        drop_result(f, &got);
      }
      region_free(f->vm, region);
    }
    region_free(f->vm, oracle);
    buf_free(&why);
  }
  test_free(r);
}

/* Compilation with every allocation refused once: it says so, and leaves nothing behind. */
static void refused(Fixture *f, const char *backend, const GraphCase *g) {
  char *text = test_malloc(strlen(g->text) + 40);
  sprintf(text, "graph f\nframe 0 f\n%s", g->text);
  const Backend *b = backend_of(f, backend);
  for (i64 n = 0;; n++) {
    Region *r = region_new(f->vm, parse(f, text));
    Buf why;
    assert_non_null(r);
    buf_init(&why, &f->vm->alloc);
    f->memory.left = n;
    BackendResult got = b->compile(f->vm, b, r, &(CompileLimits){0}, &why);
    bool ran_out = f->memory.left == 0;
    f->memory.left = -1;
    if (f->vm->error.raised) vm_error_clear(f->vm);
    buf_free(&why);
    region_free(f->vm, r);
    if (got == BACKEND_ok && !ran_out) break;
    assert_true(got == BACKEND_ok || got == BACKEND_fatal || got == BACKEND_unsupported);
    assert_true(n < 20000);
  }
  test_free(text);
}

static void refused_memory(void **state) {
  refused(*state, "loops", &elementwise_graphs[0]);
  refused(*state, "loops", &reduction_graphs[3]);
  refused(*state, "loops", &view_graphs[3]);
  refused(*state, "loops", &control_graphs[2]);
  refused(*state, "loops", &control_graphs[COUNT_OF(control_graphs) - 2]);
  refused(*state, "mir", &elementwise_graphs[1]);
  refused(*state, "mir", &control_graphs[0]);
}

static void elementwise(void **state) { group(*state, elementwise_graphs, COUNT_OF(elementwise_graphs)); }
static void reductions(void **state) { group(*state, reduction_graphs, COUNT_OF(reduction_graphs)); }
static void views(void **state) { group(*state, view_graphs, COUNT_OF(view_graphs)); }
static void control(void **state) { group(*state, control_graphs, COUNT_OF(control_graphs)); }

/* An elementwise operation that is missing in jit/lower/element.c would only be slow. */
static void lowerings(void **state) {
  (void)state;
  JitCode code = {.module = {.math = wm_best()->functions, .math_count = wm_best()->count}};
  Compiler c = {.code = &code};
  for (u32 op = 1; op < OP_COUNT; op++) {
    if (op_info(op)->family != FAM_elementwise || op == OP_astype) continue; /* astype is a conversion */
    if (op == OP_complex) continue;                                          /* its result is no type of the loop IR */
    if (!element_op_lowers(&c, op, DT_f64) && !element_op_lowers(&c, op, DT_i64))
      fail_msg("%s has no lowering", op_name(op));
  }
  assert_false(element_op_lowers(&c, OP_sum, DT_f64));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lowerings),
      cmocka_unit_test_setup_teardown(elementwise, setup, teardown),
      cmocka_unit_test_setup_teardown(reductions, setup, teardown),
      cmocka_unit_test_setup_teardown(views, setup, teardown),
      cmocka_unit_test_setup_teardown(control, setup, teardown),
      cmocka_unit_test_setup_teardown(random_graphs, setup, teardown),
      cmocka_unit_test_setup_teardown(refused_memory, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

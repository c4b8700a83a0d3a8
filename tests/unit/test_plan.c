/* test_plan.c — plans by hand: their runner, who owns what when they are left, polls, text and verifier. Kernels are C
 * functions with the ABI of the loop IR. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jit/loops/loops.h"
#include "jit/plan/plan.h"
#include "stdlib/stdlib.h"

enum { REGS = 4, SLOTS = 64 };

typedef struct Fixture {
  Vm *vm;
  Module *module;
  Value regs[REGS];
  Frame frame;
  Region *region;
  Graph *g;
  Plan *p;
  u64 slots[SLOTS];
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
  region_free(f->vm, f->region);
  for (u32 i = 0; i < REGS; i++) value_drop(f->vm, f->regs[i]);
  stdlib_remove(f->vm);
  vm_free(f->vm);
  test_free(f);
  return 0;
}

static Value eval(Fixture *f, const char *text) {
  Value v = value_nil();
  assert_int_equal(vm_eval(f->vm, f->module, "<test>", text, strlen(text), false, &v), WEFT_OK);
  return v;
}

static void arg(Fixture *f, u32 i, const char *text) {
  value_drop(f->vm, f->regs[i]);
  f->regs[i] = eval(f, text);
}

/* The graph says inputs, sizes and exits; the plan is built by the test. */
static void begin(Fixture *f, const char *text, bool donate) {
  char err[200];
  f->g = graph_parse(&f->vm->alloc, &f->vm->names, text, strlen(text), err, sizeof err);
  if (!f->g) fail_msg("%s", err);
  for (u32 s = 0; s < f->g->sizes.syms.count; s++)
    if (!f->g->sizes.syms.data[s].unbacked) {
      u32 in = guard_input(&f->g->guards, f->g->sizes.syms.data[s].source, IN_size);
      f->g->guards.inputs.data[in].sym = s;
    }
  if (donate) f->g->guards.inputs.data[0].donate = true;
  f->region = region_new(f->vm, f->g);
  assert_non_null(f->region);
  f->p = plan_new(f->vm, f->g);
  assert_non_null(f->p);
}

static u32 array_slot(Fixture *f, u32 dtype, u32 rank) {
  return plan_slot(f->p, &(PlanSlot){.array = true, .dtype = (u8)dtype, .rank = (u8)rank});
}
static u32 number_slot(Fixture *f, u32 dtype) { return plan_slot(f->p, &(PlanSlot){.dtype = (u8)dtype}); }
static PlanStep *step(Fixture *f, PlanOp op, u32 dst, u32 src) {
  PlanStep *s = plan_step(f->p, op);
  s->dst = dst;
  s->src = src;
  return s;
}
static PlanStep *with_args(Fixture *f, PlanOp op, u32 dst, u32 src, const PlanArg *args, u32 n) {
  u32 first = plan_args(f->p, args, n);
  PlanStep *s = step(f, op, dst, src);
  s->arg = first;
  s->nargs = n;
  return s;
}
static void alloc_step(Fixture *f, PlanOp op, u32 dst, u32 src, u32 dtype, PlanArg dim) {
  with_args(f, op, dst, src, &dim, 1)->dtype = (u8)dtype;
}
static void bind_exit(Fixture *f, u32 exit, const RegionBind *binds, u32 n) {
  assert_true(region_bind(f->vm, f->region, exit, binds, n));
}

static void finish(Fixture *f) {
  Buf why;
  buf_init(&why, &f->vm->alloc);
  if (!plan_finish(f->p, &why)) fail_msg("%s", buf_text(&why));
  buf_free(&why);
  plan_install(f->region, f->p);
  assert_true(f->region->nslots <= SLOTS);
}

static u32 run(Fixture *f, WeftStatus want) {
  memset(f->slots, 0, sizeof f->slots);
  for (u32 i = 0; i < f->g->guards.inputs.count; i++) {
    const GuardInput *in = &f->g->guards.inputs.data[i];
    Value v;
    assert_true(source_read(f->vm, &f->g->guards, &f->frame, in->source, &v));
    f->slots[i] = slot_of_value(v);
  }
  if (f->g->guards.inputs.data[0].donate) f->regs[0] = value_hole();
  u32 exit = NO_EXIT;
  WeftStatus status = f->region->run(f->vm, f->region, f->slots, &exit);
  if (status != want) {
    size_t n;
    fail_msg("%s", status == WEFT_OK ? "no error" : vm_error_message(f->vm, &n));
  }
  return exit;
}

/* What the exit binds, as text; the slots give it up. Every other owned slot must be empty. */
static void expect(Fixture *f, u32 exit, const char *want) {
  char got[500] = "";
  const RegionExit *e = &f->region->exits[exit];
  for (u32 i = 0; i < f->p->owned.count; i++) {
    bool bound = false;
    for (u32 k = 0; k < e->bind_count; k++) bound |= f->region->binds[e->bind_first + k].slot == f->p->owned.data[i];
    if (!bound) assert_int_equal(f->slots[f->p->owned.data[i]], 0);
  }
  for (u32 i = 0; i < e->bind_count; i++) {
    RegionBind b = f->region->binds[e->bind_first + i];
    const PlanSlot *s = &f->p->slots.data[b.slot];
    Value v = {.kind = V_NUM, .dtype = s->dtype, .bits = f->slots[b.slot]}, text;
    if (s->array) {
      assert_int_not_equal(f->slots[b.slot], 0);
      v = value_obj(V_ARRAY, (void *)(uintptr_t)f->slots[b.slot]);
      v.dtype = s->dtype;
    }
    assert_int_equal(vm_op(f->vm, OP_str, &v, &text), WEFT_OK);
    strcat(got, *got ? " " : "");
    strcat(got, text.text->data);
    value_drop(f->vm, text);
    value_drop(f->vm, v);
    f->slots[b.slot] = 0;
  }
  assert_string_equal(got, want);
}

static void expect_text(Fixture *f, const char *want) {
  Buf b;
  buf_init(&b, &f->vm->alloc);
  plan_print(f->p, &b);
  assert_string_equal(buf_text(&b), want);
  buf_free(&b);
}

/* ---- kernels -------------------------------------------------------------------------------------- */

static u64 scale(const u64 *args, i64 lo, i64 hi) { /* x, y, factor: f64 */
  const f64 *x = (const f64 *)(uintptr_t)args[0];
  f64 *y = (f64 *)(uintptr_t)args[1], k;
  memcpy(&k, &args[2], 8);
  for (i64 i = lo; i < hi; i++) y[i] = x[i] * k;
  return LOOP_KEY_NONE;
}

static u64 total(const u64 *args, i64 lo, i64 hi) { /* x: f64 -> i32, its sum */
  const f64 *x = (const f64 *)(uintptr_t)args[0];
  (void)lo, (void)hi;
  f64 s = 0;
  for (i64 i = 0; i < (i64)args[2]; i++) s += x[i];
  i32 r = (i32)s;
  memcpy((void *)(uintptr_t)args[1], &r, sizeof r);
  return LOOP_KEY_NONE;
}

static u64 positive(const u64 *args, i64 lo, i64 hi) { /* check 3: every element is positive */
  const f64 *x = (const f64 *)(uintptr_t)args[0];
  for (i64 i = lo; i < hi; i++)
    if (x[i] <= 0) return loop_key(3, (u64)i);
  return LOOP_KEY_NONE;
}

static i64 calls, most;
static u64 counted(const u64 *args, i64 lo, i64 hi) {
  (void)args;
  calls++;
  if (hi - lo > most) most = hi - lo;
  return LOOP_KEY_NONE;
}

static u32 kernel(Fixture *f, const char *name, LoopKernelFn fn, u32 flags) {
  return plan_kernel(f->p,
                     &(PlanKernel){.name = name, .fn = fn, .grain = 1, .bytes_per_trip = 8, .flags = flags}, NULL, 0);
}

#define HEAD "graph f\nframe 0 f\nsym n = size(arg0, 0) in [0, 2^62)\nin %x: f64[n] = arg0\nin %k: f64[] = arg1\n"
#define BODY "%y = multiply %x %k : f64[n]\n%s = sum %y : f64[]\nout -> 0\n"

static void straight_line(void **state) {
  Fixture *f = *state;
  arg(f, 0, "[1.0, 2.0, 3.0]");
  arg(f, 1, "f64(-10.0)");
  begin(f, HEAD BODY "exit 0 return { f: r0 = %y, r1 = %s }\nexit 1 check { f pc 3: r0 = %x, r1 = %y }\n", false);
  u32 y = array_slot(f, DT_f64, 1), s = number_slot(f, DT_i32), twice = number_slot(f, DT_i64);
  u32 code = plan_code(f->p, size_mul(&f->g->sizes, f->g->sizes.syms.data[0].dim, 2), (u32[]){2});
  step(f, STEP_size, twice, 0)->index = code;
  alloc_step(f, STEP_alloc, y, 0, DT_f64, plan_arg_slot(2));
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_slot(2),
                                              plan_arg(PA_data, 0, 0), plan_arg(PA_data, y, 0), plan_arg_slot(1)},
            5)->index = kernel(f, "scale", scale, 0);
  PlanArg out = plan_arg(PA_out, s, 0);
  out.dtype = DT_i32;
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_const(1), plan_arg(PA_data, y, 0), out,
                                              plan_arg(PA_size, y, 0)}, 5)->index = kernel(f, "total", total, 0);
  u32 list = f->p->checks.count;
  assert_true(vec_push(f->p->alloc, &f->p->checks, (PlanCheck){3, 1}));
  PlanStep *check = with_args(f, STEP_kernel, 0, 0,
                              (PlanArg[]){plan_arg_const(0), plan_arg(PA_dim, y, 0), plan_arg(PA_data, y, 0)}, 3);
  check->index = kernel(f, "positive", positive, 0);
  check->list = list;
  check->nlist = 1;
  step(f, STEP_exit, 0, 0)->exit = 0;
  f->p->entry_exit = 1;
  bind_exit(f, 0, (RegionBind[]){{3, y}, {4, s}, {0, twice}}, 3);
  bind_exit(f, 1, (RegionBind[]){{1, 0}, {3, y}}, 2);
  finish(f);
  expect_text(f,
              "plan f  slots 6  inputs 3\n"
              "  size s5 = 2*n -> exit 1\n"
              "  alloc s3 f64 [s2] -> exit 1\n"
              "  kernel scale (s0, s3, s1) 0..s2 -> exit 1\n"
              "  kernel total (s3, -> s4, size(s3)) 0..1 -> exit 1\n"
              "  kernel positive (s3) 0..dim(s3, 0) check 3 -> exit 1 -> exit 1\n"
              "  exit 0\n");
  /* the check fails: a borrowed input that the exit wants gets a count of its own */
  assert_int_equal(run(f, WEFT_OK), 1);
  assert_int_equal(f->regs[0].array->head.refs, 2);
  expect(f, 1, "[1.0, 2.0, 3.0] [-10.0, -20.0, -30.0]");
  assert_int_equal(f->regs[0].array->head.refs, 1);
  arg(f, 1, "f64(2.0)");
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[2.0, 4.0, 6.0] 12 6");
  arg(f, 1, "f64(-2.0)");
  arg(f, 0, "[-1.0]"); /* a negative i32 is extended to the slot */
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[2.0] 2 2");
  arg(f, 0, "zeros(0)");
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[] 0 0");
}

static void memory_in_place(void **state) {
  Fixture *f = *state;
  arg(f, 1, "f64(2.0)");
  begin(f, HEAD BODY "exit 0 return { f: r0 = %y }\nentry -> 0\n", true);
  u32 y = array_slot(f, DT_f64, 1), z = array_slot(f, DT_f64, 1), kept = array_slot(f, DT_f64, 1);
  alloc_step(f, STEP_donate, y, 0, DT_f64, plan_arg_slot(2)); /* the argument's own memory, when nobody else holds it */
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_slot(2),
                                              plan_arg(PA_data, 0, 0), plan_arg(PA_data, y, 0), plan_arg_slot(1)},
            5)->index = kernel(f, "scale", scale, PK_INPLACE);
  step(f, STEP_free, 0, 0);
  step(f, STEP_keep, kept, y);
  step(f, STEP_free, kept, 0);
  alloc_step(f, STEP_reuse, z, y, DT_f64, plan_arg_slot(2));
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_slot(2),
                                              plan_arg(PA_data, z, 0), plan_arg(PA_data, z, 0), plan_arg_slot(1)},
            5)->index = kernel(f, "scale", scale, PK_INPLACE);
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, (RegionBind[]){{3, z}}, 1);
  finish(f);
  arg(f, 0, "arange(100) * 1.0"); /* more than lies inline in views */
  Array *a = f->regs[0].array;
  u64 allocs = f->vm->stats.array_allocs;
  assert_int_equal(run(f, WEFT_OK), 0);
  assert_int_equal(f->vm->stats.array_allocs, allocs); /* one buffer from end to end */
  assert_true(f->slots[z] == (u64)(uintptr_t)a);
  assert_true(((f64 *)a->data)[99] == 396.0);
  value_drop(f->vm, value_obj(V_ARRAY, a));
  f->slots[z] = 0;
  /* somebody else holds it: values stay values */
  arg(f, 0, "arange(3) * 1.0");
  Value other = value_keep(f->regs[0]);
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[0.0, 4.0, 8.0]");
  f->regs[0] = other;
  assert_int_equal(other.array->head.refs, 1);
  assert_true(((f64 *)other.array->data)[2] == 2.0);
}

static void control(void **state) {
  Fixture *f = *state;
  /* y = x; while total(y) < 100 { y = y * k; if total(y) > 50 { y = y * k } } */
  arg(f, 1, "f64(2.0)");
  begin(f, HEAD BODY "exit 0 return { f: r0 = %y }\nexit 1 limit { f pc 2: r0 = %y }\nentry -> 1\n", false);
  u32 y = array_slot(f, DT_f64, 1), s = number_slot(f, DT_i32), more = number_slot(f, DT_bool),
      c = number_slot(f, DT_i64);
  u32 scaler = kernel(f, "scale", scale, 0), adder = kernel(f, "total", total, 0);
  PlanArg out = plan_arg(PA_out, s, 0),
      sum[5] = {plan_arg_const(0), plan_arg_const(1), plan_arg(PA_data, y, 0), out, plan_arg(PA_size, y, 0)};
  sum[3].dtype = DT_i32;
  PlanArg mul[5] = {plan_arg_const(0), plan_arg_slot(2), plan_arg(PA_data, y, 0), plan_arg(PA_data, y, 0),
                    plan_arg_slot(1)};
  /* comparisons by size code over slots: (s <= 99) as max(0, min(1, 100 - s)) */
  SizePool *p = &f->g->sizes;
  Dim sym = size_sym(p, "s", 0, -1000, 1000, 1);
  u32 slot_of[2] = {2, s};
  Dim below100 = size_max(p, size_min(p, size_sub(p, 100, sym), 1), 0),
      above50 = size_max(p, size_min(p, size_sub(p, sym, 50), 1), 0);
  step(f, STEP_keep, y, 0);
  step(f, STEP_unique, y, 0);
  step(f, STEP_loop, 0, 0);
  with_args(f, STEP_kernel, 0, 0, sum, 5)->index = adder;
  u32 code = plan_code(f->p, below100, slot_of);
  step(f, STEP_size, c, 0)->index = code;
  step(f, STEP_copy, more, c);
  step(f, STEP_while, 0, more);
  with_args(f, STEP_kernel, 0, 0, mul, 5)->index = scaler;
  with_args(f, STEP_kernel, 0, 0, sum, 5)->index = adder;
  code = plan_code(f->p, above50, slot_of);
  step(f, STEP_size, c, 0)->index = code;
  step(f, STEP_if, 0, c);
  with_args(f, STEP_kernel, 0, 0, mul, 5)->index = scaler;
  step(f, STEP_else, 0, 0);
  step(f, STEP_poll, 0, 0)->exit = 1;
  step(f, STEP_end, 0, 0);
  step(f, STEP_again, 0, 0)->exit = 1;
  step(f, STEP_end, 0, 0);
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, (RegionBind[]){{3, y}}, 1);
  bind_exit(f, 1, (RegionBind[]){{3, y}}, 1);
  finish(f);
  expect_text(f,
              "plan f  slots 7  inputs 3\n"
              "  keep s3 = s0\n"
              "  unique s3 -> exit 1\n"
              "  loop\n"
              "    kernel total (s3, -> s4, size(s3)) 0..1 -> exit 1\n"
              "    size s6 = max(0, min(1, -s + 100)) -> exit 1\n"
              "    copy s5 = s6\n"
              "    while s5\n"
              "    kernel scale (s3, s3, s1) 0..s2 -> exit 1\n"
              "    kernel total (s3, -> s4, size(s3)) 0..1 -> exit 1\n"
              "    size s6 = max(0, min(1, s - 50)) -> exit 1\n"
              "    if s6\n"
              "      kernel scale (s3, s3, s1) 0..s2 -> exit 1\n"
              "    else\n"
              "      poll -> exit 1\n"
              "    end\n"
              "    again -> exit 1\n"
              "  end\n"
              "  exit 0\n");
  arg(f, 0, "[1.0, 2.0]"); /* 3 6 12 24 48 96 -> 192 */
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[64.0, 128.0]");
  arg(f, 0, "[100.0]");
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[100.0]");
  assert_true(((f64 *)f->regs[0].array->data)[0] == 100.0);
  /* for ever, until the fuel is used up: the state is whole */
  arg(f, 0, "[0.0]");
  f->vm->limits.fuel = 7;
  vm_poll_reset(f->vm);
  assert_int_equal(run(f, WEFT_ERROR), 1);
  assert_int_equal(f->vm->error.kind, EK_limit);
  vm_error_clear(f->vm);
  f->vm->limits.fuel = UINT64_MAX;
  vm_poll_reset(f->vm);
  expect(f, 1, "[0.0]");
}

static void long_kernels_poll(void **state) {
  Fixture *f = *state;
  arg(f, 0, "[1.0]");
  arg(f, 1, "f64(2.0)");
  begin(f, HEAD BODY "exit 0 return { f: }\nentry -> 0\n", false);
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_const(1000000)},
            2)->index = kernel(f, "counted", counted, 0);
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, NULL, 0);
  finish(f);
  calls = most = 0;
  assert_int_equal(run(f, WEFT_OK), 0);
  assert_int_equal(calls, 4);
  assert_int_equal(most, f->vm->tunables.poll_elements);
  f->vm->interrupted = 1;
  assert_int_equal(run(f, WEFT_ERROR), 0);
  assert_int_equal(f->vm->error.kind, EK_interrupt);
  vm_error_clear(f->vm);
  f->p->kernels.data[0].flags = PK_INPLACE; /* runs to its end once begun */
  calls = most = 0;
  assert_int_equal(run(f, WEFT_OK), 0);
  assert_int_equal(calls, 1);
  assert_int_equal(most, 1000000);
}

/* Columns: their rows are long, though that is more work than is done between two polls of what goes along rows; less
 * where there are very many rows. */
static void columns_poll_later(void **state) {
  Fixture *f = *state;
  static const char text[] =
    "kernel most (n: i64, k: i64, x: in f64, z: out f64) {\n"
    "  par i in 0..n grain 1 {\n"
    "    %1 = reduce max f64 rows j in 0..k {\n      %2 = load x[i + j*n] f64\n      yield %2\n    }\n"
    "    store z[i] %1\n  }\n}\n";
  LoopModule m;
  Buf why;
  assert_int_equal(loop_module_init(&m, &f->vm->alloc), WEFT_OK);
  buf_init(&why, &f->vm->alloc);
  if (loops_parse(&m, text, strlen(text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  arg(f, 0, "[1.0]");
  arg(f, 1, "f64(2.0)");
  begin(f, HEAD BODY "exit 0 return { f: }\nentry -> 0\n", false);
  u32 down = kernel(f, "counted", counted, 0);
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_const(5000)}, 2)->index = down;
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, NULL, 0);
  finish(f);
  static const struct {
    u64 rows;
    u32 calls, most;
  } rows[] = {{2000, 3, 2048}, {4000, 5, 1024}, {1000000, 40, 128}, {40, 1, 5000}};
  PlanKernel *k = &f->p->kernels.data[down];
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    k->bytes_per_trip = 8 * rows[i].rows;
    k->self = (void *)loop_module_find(&m, "most");
    calls = most = 0;
    assert_int_equal(run(f, WEFT_OK), 0);
    k->self = NULL; /* not the plan's */
    assert_int_equal(calls, rows[i].calls);
    assert_int_equal(most, rows[i].most);
  }
  buf_free(&why);
  loop_module_free(&m);
}

/* Short runs go the short way, and no others do: what the kernel is given is the same. */
static void short_runs(void **state) {
  Fixture *f = *state;
  arg(f, 0, "[1.0, 2.0]");
  arg(f, 1, "f64(3.0)");
  begin(f, HEAD BODY "exit 0 return { f: r0 = %y, r1 = %s }\nentry -> 0\n", false);
  u32 y = array_slot(f, DT_f64, 1), s = number_slot(f, DT_i32), of_rows = kernel(f, "total", total, 0),
      short_trips = kernel(f, "scale", scale, 0);
  f->p->kernels.data[short_trips].grain = 64;
  alloc_step(f, STEP_alloc, y, 0, DT_f64, plan_arg_slot(2));
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_slot(2), plan_arg(PA_data, 0, 0),
                                              plan_arg(PA_data, y, 0), plan_arg_slot(1)}, 5)->index = short_trips;
  PlanArg out = plan_arg(PA_out, s, 0);
  out.dtype = DT_i32;
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_const(1), plan_arg(PA_data, y, 0), out,
                                              plan_arg_slot(2)}, 5)->index = of_rows;
  with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_const(1), plan_arg(PA_data, y, 0), out,
                                              plan_arg(PA_size, y, 0)}, 5)->index = of_rows;
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, (RegionBind[]){{3, y}, {4, s}}, 2);
  finish(f);
  const PlanKernel *k = f->p->kernels.data;
  assert_true(k[short_trips].plain_trips > 1 && k[short_trips].plain_trips < 1024 && k[of_rows].plain_trips == 1);
  assert_true(f->p->steps.data[1].plain && f->p->steps.data[2].plain && !f->p->steps.data[3].plain);
  /* the last ones by the long way: polls as often as that, shared from so many trips on */
  for (u32 round = 0; round < 3; round++) {
    if (round == 1) f->vm->tunables.poll_elements = 1;
    if (round == 2) f->vm->tunables.parallel_elements = 1;
    u64 runs = f->vm->counters.at[STAT_kernel_runs];
    assert_int_equal(run(f, WEFT_OK), 0);
    assert_int_equal(f->vm->counters.at[STAT_kernel_runs], runs + 3);
    expect(f, 0, "[3.0, 6.0] 9");
  }
}

/* ---- native functions ----------------------------------------------------------------------------- */

/* counts down from args[0]; leaves by its exit 2 at 13, by its poll's exit 5 */
static u32 countdown(const PlanNative *n, LoopCtx *ctx, const u64 *args) {
  i64 x = (i64)args[0], trips = 0;
  (void)n;
  for (; x > 0; x--, trips++) {
    if (--ctx->budget <= 0 && ctx->poll(ctx)) {
      ctx->frame(ctx, 77, 5, (u64[]){(u64)x, (u64)trips}, 2);
      return 5;
    }
    if (x == 13) {
      ctx->frame(ctx, 77, 2, (u64[]){(u64)trips}, 1);
      return 2;
    }
  }
  ctx->results[0] = (u64)trips;
  return 0;
}

static void natives(void **state) {
  Fixture *f = *state;
  arg(f, 0, "i64(10)");
  begin(f, "graph f\nframe 0 f\nin %x: i64[] = arg0\nout -> 0\nexit 0 return { f: r0 = %x }\n"
           "exit 1 check { f pc 3: r0 = %x }\nexit 2 limit { f pc 2: r0 = %x }\nentry -> 2\n", false);
  u32 trips = number_slot(f, DT_i64), left = number_slot(f, DT_i64);
  PlanNativeExit exits[2] = {{77, 2, 1, 0, 1}, {77, 5, 2, 0, 2}};
  exits[0].slot_first = plan_ids(f->p, &trips, 1);
  exits[1].slot_first = plan_ids(f->p, (u32[]){left, trips}, 2);
  u32 number = plan_native(f->p, &(PlanNative){.name = "countdown", .call = countdown, .nresults = 1}, exits,
                           2, NULL, 0);
  u32 list = plan_ids(f->p, &trips, 1);
  PlanStep *s = with_args(f, STEP_native, 0, 0, (PlanArg[]){plan_arg_slot(0)}, 1);
  s->index = number;
  s->list = list;
  s->nlist = 1;
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, (RegionBind[]){{0, trips}}, 1);
  bind_exit(f, 1, (RegionBind[]){{0, trips}}, 1);
  bind_exit(f, 2, (RegionBind[]){{0, left}, {0, trips}}, 2);
  finish(f);
  expect_text(f, "plan f  slots 3  inputs 1\n  native countdown (s0 -> s1) exits 2 -> 1, 5 -> 2 -> exit 2\n  exit 0\n");
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "10");
  arg(f, 0, "i64(40)");
  assert_int_equal(run(f, WEFT_OK), 1);
  expect(f, 1, "27");
  arg(f, 0, "i64(12)");
  f->vm->limits.fuel = 5;
  vm_poll_reset(f->vm);
  assert_int_equal(run(f, WEFT_ERROR), 2);
  vm_error_clear(f->vm);
  f->vm->limits.fuel = UINT64_MAX;
  vm_poll_reset(f->vm);
  expect(f, 2, "7 5");
}

/* ---- eager code ----------------------------------------------------------------------------------- */

static void externs(void **state) {
  Fixture *f = *state;
  begin(f, HEAD "%z = zeros {shape=(<2*n>), dtype=f64} : f64[<2*n>]\n"
           "%c = concat %x %x {xs=*2, axis=0} : f64[<2*n>]\n%i = index %c[<n - 1>:] : f64[<n + 1>]\n"
           "%u = update %i[0] add %k : f64[<n + 1>]\nout -> 0\nexit 0 return { f: r0 = %z, r1 = %u }\n"
           "exit 1 check { f pc 1: r0 = %c }\nentry -> 1\n", false);
  NodeId zeros = block_first(f->g, 1), concat = node_next(f->g, zeros), index = node_next(f->g, concat),
      update = node_next(f->g, index);
  u32 z = array_slot(f, DT_f64, 1), c = array_slot(f, DT_f64, 1), i = array_slot(f, DT_f64, 1),
      u = array_slot(f, DT_f64, 1);
  PlanArg hole = {.kind = PA_hole}, two = {.kind = PA_list, .imm = 2}, value = plan_arg(PA_value, 0, 0);
  PlanArg shape = {.kind = PA_attr, .imm = f->g->nodes.data[zeros].attr_first},
      dtype = {.kind = PA_attr, .imm = shape.imm + 1};
  PlanArg axis = {.kind = PA_attr, .imm = f->g->nodes.data[concat].attr_first + 1};
  with_args(f, STEP_extern, z, 0, (PlanArg[]){shape, dtype, hole}, 3)->aux = OP_zeros;
  with_args(f, STEP_extern, c, 0, (PlanArg[]){two, value, value, axis}, 4)->aux = OP_concat;
  step(f, STEP_index, i, c)->index = f->g->nodes.data[index].attr_first;
  PlanStep *s = with_args(f, STEP_update, u, i, (PlanArg[]){plan_arg(PA_value, 1, 0)}, 1);
  s->index = f->g->nodes.data[update].attr_first;
  s->aux = OP_add;
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, (RegionBind[]){{3, z}, {6, u}}, 2);
  bind_exit(f, 1, (RegionBind[]){{4, c}}, 0);
  finish(f);
  assert_int_equal(f->region->externs, 4);
  arg(f, 0, "[1.0, 2.0]");
  arg(f, 1, "f64(0.5)");
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[0.0, 0.0, 0.0, 0.0] [2.5, 1.0, 2.0]");
  /* an operation that raises leaves by its exit without an error: the interpreter does it again and raises */
  arg(f, 0, "zeros(0)");
  u32 exit = run(f, WEFT_OK);
  assert_int_equal(exit, 1);
  assert_false(f->vm->error.raised);
  expect(f, 1, "");
}

static void views_and_elements(void **state) {
  Fixture *f = *state;
  arg(f, 0, "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]");
  begin(f, "graph f\nframe 0 f\nin %x: f64[2, 3] = arg0\nout -> 0\nexit 0 return { f: r0 = %x }\nentry -> 0\n", false);
  u32 t = array_slot(f, DT_f64, 2), d = array_slot(f, DT_f64, 2), e = number_slot(f, DT_f64),
      one = array_slot(f, DT_f64, 0), back = number_slot(f, DT_f64);
  PlanArg view[5] = {plan_arg_const(0), plan_arg(PA_dim, 0, 1), plan_arg(PA_dim, 0, 0), plan_arg(PA_stride, 0, 1),
                     plan_arg(PA_stride, 0, 0)};
  with_args(f, STEP_view, t, 0, view, 5)->aux = 2;
  step(f, STEP_dense, d, t);
  with_args(f, STEP_load, e, t, (PlanArg[]){plan_arg_const(2), plan_arg_const(1)}, 2);
  with_args(f, STEP_store, d, e, (PlanArg[]){plan_arg_const(0), plan_arg_const(1)}, 2);
  step(f, STEP_box, one, e)->dtype = DT_f64;
  step(f, STEP_unbox, back, one);
  PlanStep *s = with_args(f, STEP_check, 0, 0, (PlanArg[]){plan_arg_const(-3), plan_arg(PA_dim, 0, 1)}, 2);
  s->aux = CHECK_index;
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, (RegionBind[]){{0, d}, {0, back}}, 2);
  finish(f);
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[[1.0, 6.0],\n [2.0, 5.0],\n [3.0, 6.0]] 6.0");
}

/* ---- verifier ------------------------------------------------------------------------------------- */

static void violations(void **state) {
  Fixture *f = *state;
  Buf why;
  buf_init(&why, &f->vm->alloc);
  for (u32 i = 0; i < 9; i++) {
    static const char *const want[] = {"does not end by an exit", "reads what nothing wrote", "needs an array",
                                       "no exit 9", "while outside a loop", "does not end", "else without if",
                                       "writes a borrowed input", "no kernel"};
    begin(f, HEAD BODY "exit 0 return { f: r0 = %y }\n", false);
    u32 y = array_slot(f, DT_f64, 1);
    switch (i) {
      case 0: break;
      case 1: step(f, STEP_free, y, 0); step(f, STEP_keep, y, y); break;
      case 2: step(f, STEP_keep, y, 1); break;
      case 3: step(f, STEP_poll, 0, 0)->exit = 9; break;
      case 4: step(f, STEP_while, 0, 2); break;
      case 5: step(f, STEP_loop, 0, 0); break;
      case 6: step(f, STEP_else, 0, 0); step(f, STEP_end, 0, 0); break;
      case 7: step(f, STEP_unique, 0, 0)->exit = 0; break;
      default: with_args(f, STEP_kernel, 0, 0, (PlanArg[]){plan_arg_const(0), plan_arg_const(0)}, 2)->exit = 0; break;
    }
    if (i) step(f, STEP_exit, 0, 0)->exit = 0;
    why.len = 0;
    assert_false(plan_finish(f->p, &why));
    if (!strstr(buf_text(&why), want[i])) fail_msg("%u: %s", i, buf_text(&why));
    plan_free(f->vm, f->p);
    region_free(f->vm, f->region);
    f->region = NULL;
  }
  buf_free(&why);
}

/* Those of the inputs alone, out of an `if` in the loop too; not what the loop makes, and not out of an `if` alone. */
static void sizes_stand_before_loops(void **state) {
  Fixture *f = *state;
  arg(f, 0, "[1.0, 2.0, 3.0]");
  arg(f, 1, "f64(2.0)");
  begin(f, HEAD BODY "exit 0 return { f: r0 = %y }\nexit 1 check { f pc 3: r0 = %x }\n", false);
  u32 y = array_slot(f, DT_f64, 1), a = number_slot(f, DT_i64), b = number_slot(f, DT_i64), c = number_slot(f, DT_i64),
      d = number_slot(f, DT_i64);
  SizePool *p = &f->g->sizes;
  Dim n = p->syms.data[0].dim, made = size_sym(p, "s", 0, -1000, 1000, 1);
  u32 slot_of[2] = {2, a}, twice = plan_code(f->p, size_mul(p, n, 2), slot_of),
      more = plan_code(f->p, size_add(p, made, 1), slot_of);
  f->p->entry_exit = 1;
  step(f, STEP_keep, y, 0);
  step(f, STEP_if, 0, 2);
  step(f, STEP_size, d, 0)->index = twice;
  step(f, STEP_end, 0, 0);
  step(f, STEP_copy, a, 2);
  step(f, STEP_loop, 0, 0)->exit = 1;
  step(f, STEP_size, b, 0)->index = more;
  step(f, STEP_until, 0, b);
  step(f, STEP_if, 0, b);
  step(f, STEP_size, c, 0)->index = twice;
  step(f, STEP_end, 0, 0);
  step(f, STEP_again, 0, 0)->exit = 1;
  step(f, STEP_end, 0, 0);
  step(f, STEP_exit, 0, 0)->exit = 0;
  bind_exit(f, 0, (RegionBind[]){{3, y}, {4, b}, {0, c}}, 3);
  bind_exit(f, 1, (RegionBind[]){{3, y}}, 1);
  finish(f);
  expect_text(f,
              "plan f  slots 8  inputs 3\n"
              "  keep s3 = s0\n"
              "  if s2\n"
              "    size s7 = 2*n -> exit 1\n"
              "  end\n"
              "  copy s4 = s2\n"
              "  size s6 = 2*n -> exit 1\n"
              "  loop\n"
              "    size s5 = s + 1 -> exit 1\n"
              "    until s5\n"
              "    if s5\n"
              "    end\n"
              "    again -> exit 1\n"
              "  end\n"
              "  exit 0\n");
  assert_int_equal(run(f, WEFT_OK), 0);
  expect(f, 0, "[1.0, 2.0, 3.0] 4 6");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(straight_line), TEST(memory_in_place), TEST(control), TEST(long_kernels_poll), TEST(columns_poll_later),
      TEST(short_runs), TEST(natives),
      TEST(externs),       TEST(views_and_elements), TEST(violations), TEST(sizes_stand_before_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

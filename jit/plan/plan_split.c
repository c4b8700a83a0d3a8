/* plan_split.c — long runs of a kernel, in parts: polls between them, and threads that share them (see plan_inner.h).
 *
 * A kernel takes any range of its outermost axis, so parts need nothing from each other. A failed check does not
 * stop the others: the least key of all parts is the answer, as if one thread had run them in order. */
#include "jit/plan/blocks.h"
#include "jit/plan/cost.h"
#include "jit/plan/split_reduction.h"
#include "jit/plan/plan_inner.h"

typedef struct Parts {
  const PlanKernel *k;
  const u64 *words;
  i64 lo, hi, step;
  u64 key;
} Parts;

static i64 rounded(const PlanKernel *k, i64 trips, i64 least) {
  i64 grain = k->grain < least ? k->grain : least;
  if (grain < 1) grain = 1;
  return trips > grain ? trips / grain * grain : grain;
}

static void run_part(void *ctx, i64 part) {
  Parts *p = ctx;
  i64 at = p->lo + part * p->step, end = p->hi - at < p->step ? p->hi : at + p->step;
  u64 failed = p->k->blocks ? blocks_run(p->k->blocks, p->words, at, end) : p->k->fn(p->words, at, end),
      least = __atomic_load_n(&p->key, __ATOMIC_RELAXED);
  while (failed < least &&
         !__atomic_compare_exchange_n(&p->key, &least, failed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

/* Of columns so many that their rows are long, unless that is far more work than is done between two polls. */
static i64 trips_between_polls(const Vm *vm, const PlanKernel *k, i64 trips) {
  enum { WIDEST = 2048, NARROWEST = 128, POLLS = 16 };
  if (k->flags & PK_INPLACE) return trips;
  i64 each = k->bytes_per_trip > 8 ? (i64)(k->bytes_per_trip / 8) : 1, most = vm->tunables.poll_elements / each,
      step = rounded(k, most, k->grain), wide = WIDEST;
  if (step >= WIDEST || !k->self || !loops_go_down(k->self)) return step;
  while (wide > NARROWEST && wide / POLLS > most) wide /= 2;
  return step < wide ? wide : step;
}

/* Fuel is what a run in order would use: by poll, each rounded down. */
static u64 fuel_of(const Vm *vm, const PlanKernel *k, i64 trips) {
  i64 step = trips_between_polls(vm, k, trips), whole = trips / step;
  u64 units = k->bytes_per_trip / 8 + 1;
  return (u64)whole * ((u64)step * units >> 10) + ((u64)(trips - whole * step) * units >> 10);
}

/* Elements that are loaded and stored; one that goes through a function of `math` takes as long as some of them (tanh
 * of f64: 1.1 ns, Zen 4). */
u64 plan_kernel_work(const PlanKernel *k, const u64 *words, i64 lo, i64 hi) {
  enum { MATH = 3 };
  if (k->grain > 1 || !k->self) return (u64)(hi - lo) * (k->bytes_per_trip > 8 ? k->bytes_per_trip / 8 : 1);
  LoopCost cost = {0};
  loops_cost(k->self, words, lo, hi, &cost);
  return cost.moved / 16 + MATH * cost.maths; /* one load, one store */
}

/* What a part is depends on the loop alone. Of columns it is so many that their rows are long enough to be fetched
 * ahead. */
static Parts split(const Vm *vm, const PlanKernel *k, const u64 *words, i64 lo, i64 hi, u64 work) {
  enum { COLUMNS = 512 };
  i64 per = pool_part(vm, (i64)work), step, wide = (hi - lo) / PLAN_PARTS;
  step = rounded(k, (i64)((f64)(hi - lo) * (f64)per / (f64)work), per);
  if (wide > COLUMNS) wide = COLUMNS;
  if (step < wide && k->self && loops_go_down(k->self)) step = wide;
  return (Parts){k, words, lo, hi, step, LOOP_KEY_NONE};
}

bool plan_run_threads(Vm *vm, const PlanKernel *k, const u64 *words, i64 lo, i64 hi, u64 work, u64 *key) {
  Parts p = split(vm, k, words, lo, hi, work);
  if (vm_poll(vm, fuel_of(vm, k, hi - lo)) != WEFT_OK) return false;
  WeftStatus status = pool_run(vm, (hi - lo + p.step - 1) / p.step, k->flags & PK_INPLACE, run_part, &p);
  *key = p.key;
  return status == WEFT_OK;
}

void plan_count_run(PlanKernel *k, const u64 *words, i64 lo, i64 hi) {
  LoopCost cost = {0};
  k->runs++;
  k->trips += hi > lo ? (u64)(hi - lo) : 0;
  if (k->self) loops_cost(k->self, words, lo, hi, &cost);
  k->bytes += cost.bytes;
  k->written += cost.written;
  k->flops += cost.flops;
}

u64 plan_run_called(const u64 *words, i64 lo, i64 hi, PlanKernel *k, Vm *vm) {
  bool counts = vm->log & VM_LOG_PROFILE;
  f64 begin = counts ? vm_clock() : 0;
  u64 key, work = k->fn && hi - lo > 1 ? plan_kernel_work(k, words, lo, hi) : 0;
  if (counts) plan_count_run(k, words, lo, hi);
  if (work < (u64)vm->tunables.parallel_elements || pool_threads(vm) < 2) {
    key = k->fn ? k->fn(words, lo, hi) : k->call(k, vm, words, lo, hi);
  } else {
    Parts p = split(vm, k, words, lo, hi, work);
    /* whole: nothing is polled, so nothing is raised */
    (void)!pool_run(vm, (hi - lo + p.step - 1) / p.step, true, run_part, &p);
    key = p.key;
  }
  if (counts) k->ns += (u64)((vm_clock() - begin) * 1e9);
  return key;
}

bool plan_run_polled(Vm *vm, const PlanKernel *k, const u64 *words, i64 lo, i64 hi, u64 *key) {
  i64 step = trips_between_polls(vm, k, hi - lo);
  u64 units = k->bytes_per_trip / 8 + 1;
  for (i64 at = lo; at < hi; at += step) {
    i64 end = hi - at < step ? hi : at + step;
    if (vm_poll(vm, (u64)(end - at) * units >> 10) != WEFT_OK) return false;
    u64 failed = k->blocks ? blocks_run(k->blocks, words, at, end) : k->fn ? k->fn(words, at, end)
                           : k->call(k, vm, words, at, end);
    if (failed < *key) *key = failed;
  }
  return true;
}

const PlanKernel *plan_long(Vm *vm, const PlanKernel *k, i64 row, PlanKernel *own) {
  if (row && !cpu_has(CPU_FETCH)) return k;
  PlanKernel *asked = (PlanKernel *)(uintptr_t)k;
  if (k->make_ahead && row && row <= PAGES_AHEAD / 8) asked->flags |= PK_SHORT_ROWS;
  if (k->make_ahead) k->make_ahead(asked);
  if (!k->ahead) return k;
  *own = *k;
  own->fn = k->ahead;
  vm->counters.at[STAT_fetched]++;
  return own;
}

/* what is so many times as large as what is worth streaming gains no more by blocks far apart */
enum { PAIRS_CACHES = 4 };

/* Trips of k by the threads, `step` at a time. False: a poll raised. */
static bool run_trips(Vm *vm, const PlanKernel *k, const u64 *words, i64 lo, i64 hi, i64 step, u64 *key) {
  Parts p = {k, words, lo, hi, step, *key};
  bool ok = lo >= hi || pool_run(vm, (hi - lo + step - 1) / step, false, run_part, &p) == WEFT_OK;
  *key = p.key;
  return ok;
}

bool plan_run_blocks(Vm *vm, const Plan *plan, const PlanKernel *k, const u64 *words, u32 count, u64 *key, bool *done) {
  u32 block;
  u64 elements = split_elements(k, words, &block), blocks = (elements + block - 1) / block,
      more[count + SPLIT_MOST + 1];
  i64 bytes = (i64)blocks * loop_lanes(LT_U8) * LOOP_BLOCK_TRIPS;
  bool apart = k->pairs && elements >= LONG_UNITS * 2 && (!k->pairs_far || stream_worth(bytes, true)) &&
               (cpu_has(CPU_FETCH) || !stream_worth(bytes / PAIRS_CACHES, true));
  u64 pairs = apart ? elements / block / 2 : 0;
  i64 per = pool_part(vm, (i64)elements), step = per > block ? per / block : 1;
  *done = false;
  if (!pairs && (elements < (u64)vm->tunables.parallel_elements || blocks < 2 || pool_threads(vm) < 2)) return true;
  u64 *arrays = mem_alloc(&vm->alloc, sizeof *arrays * blocks * k->reductions);
  if (!arrays) return true; /* in one go, then */
  mem_copy(more, words, sizeof *words * count);
  for (u32 i = 0; i < k->reductions; i++) more[count + i] = (u64)(uintptr_t)(arrays + i * blocks);
  *done = true;
  PlanKernel own, both;
  const PlanKernel *parts = &plan->kernels.data[k->partial], *paired = &plan->kernels.data[k->pairs];
  if (!pairs) parts = plan_long(vm, parts, 0, &own);
  else if (!cpu_has(CPU_FETCH)) paired = plan_long(vm, paired, 0, &both);
  vm->counters.at[STAT_paired] += pairs > 0;
  more[count + k->reductions] = pairs;
  bool ok = vm_poll(vm, (k->bytes_per_trip / 8 + 1) >> 10) == WEFT_OK &&
            run_trips(vm, paired, more, 0, (i64)pairs, step, key);
  more[count + k->reductions] = blocks;
  ok = ok && run_trips(vm, parts, more, (i64)pairs * 2, (i64)blocks, step, key);
  if (ok && *key == LOOP_KEY_NONE) *key = plan->kernels.data[k->rest].fn(more, 0, 1);
  mem_free(&vm->alloc, arrays, sizeof *arrays * blocks * k->reductions);
  return ok;
}

/* counts.c — bincount of what a kernel computes, block by block (see counts.h). */
#include "jit/plan/counts.h"

#include <string.h>

#include "jit/plan/plan_inner.h"

/* A block and what is read meanwhile stay in the nearest cache. Blocks need not begin at the kernel's grain: nothing is
 * reduced. */
enum { BLOCK = 1024, BLOCKS_LEAST = 8, TABLES = 8, MANY_BINS = 512, MOST_BINS = 1 << 16, PARTS = 4 };

/* ---- the plan --------------------------------------------------------------------------------------- */

/* The kernel stores one array alone, and trip i element i of it. */
static bool stores_in_order(const LoopFn *fn, u32 param) {
  u32 par = 0, stores = 0;
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_PAR && !par) {
      par = fn->body.data[i];
      if (n->a != 1) return false;
    }
    if (n->op != LOOP_STORE) continue;
    const LoopTerm *t = loop_terms(fn, n);
    if (!par || stores++ || n->a != param || n->mem != LT_I64 || n->imm || n->count != 1) return false;
    if (t->coef != 1 || t->stride[0] || t->stride[1] || t->var != loop_index_of(par, 0)) return false;
  }
  return stores == 1 && loop_node(fn, param)->aux == LOOP_OUT;
}

static bool is_counted(const Plan *p, u32 at) {
  const PlanStep *a = &p->steps.data[at], *k = a + 1, *e = a + 2;
  if (at + 2 >= p->steps.count || a->op != STEP_alloc || k->op != STEP_kernel || e->op != STEP_extern) return false;
  const PlanArg *ka = &p->args.data[k->arg], *ea = &p->args.data[e->arg], *size = &p->args.data[a->arg];
  if (e->aux != OP_bincount || e->nlist || e->nargs != 3 || ea[0].kind != PA_value || ea[0].slot != a->dst ||
      ea[1].kind != PA_hole)
    return false;
  if (a->dtype != DT_i64 || a->nargs != 1 || p->slots.data[a->dst].device != DEV_CPU || ea[2].slot == a->dst)
    return false;
  if (ka[0].kind != PA_const || ka[0].imm || ka[1].kind != size->kind || ka[1].slot != size->slot ||
      ka[1].axis != size->axis || ka[1].imm != size->imm)
    return false;
  const PlanKernel *x = &p->kernels.data[k->index];
  const LoopFn *fn = x->self;
  if (!fn || x->launch || x->reductions || x->flags & PK_INPLACE || fn->params.count + 2 != k->nargs) return false;
  u32 out = 0;
  for (u32 i = 2; i < k->nargs; i++) {
    if (ka[i].kind == PA_out) return false;
    if (ka[i].kind == PA_data && ka[i].slot == a->dst) {
      if (out) return false;
      out = i;
    }
  }
  return out && stores_in_order(fn, fn->params.data[out - 2]) && plan_given_up(p, at + 2, a->dst);
}

bool counts_join(Plan *p) {
  for (u32 i = 0; i < p->steps.count; i++)
    if (is_counted(p, i)) {
      if (!plan_put_before(p, i, STEP_counts)) return false;
      i += 3;
    }
  return true;
}

/* ---- the run ---------------------------------------------------------------------------------------- */

typedef struct Count {
  const CountsRun *run;
  Vm *vm;
  i64 per;    /* trips of a part, whole blocks */
  u64 room;   /* bins, a power of two */
  u32 tables; /* counters of a bin, interleaved: equal neighbours do not wait for each other */
  char *scratch;  /* of each part: tables, block */
  size_t each;
  bool failed; /* some part met a failed check, or a position beyond its tables */
} Count;

static u32 *tables_of(const Count *c, i64 part) { return (u32 *)(c->scratch + c->each * (size_t)part); }

/* Positions of the trips lo … hi-1, a block at most, to `to`. False: a check failed. */
static bool fill_block(const Count *c, i64 *to, i64 lo, i64 hi) {
  const CountsRun *r = c->run;
  u64 words[r->count + 1];
  memcpy(words, r->words, sizeof *words * r->count);
  words[r->out] = (u64)(uintptr_t)to - (u64)lo * sizeof *to;
  return (r->k->fn ? r->k->fn(words, lo, hi) : r->k->call(r->k, c->vm, words, lo, hi)) == LOOP_KEY_NONE;
}

/* Bins of `each` counters, 1 or TABLES. */
static inline __attribute__((always_inline)) bool count_by(u32 each, u32 *t, const i64 *p, i64 n, u64 beyond) {
  const u32 next = each > 1;
  i64 i = 0;
  for (; i + TABLES <= n; i += TABLES) {
    u64 a = (u64)p[i], b = (u64)p[i + 1], d = (u64)p[i + 2], e = (u64)p[i + 3];
    u64 g = (u64)p[i + 4], h = (u64)p[i + 5], j = (u64)p[i + 6], k = (u64)p[i + 7];
    if (UNLIKELY((a | b | d | e | g | h | j | k) & beyond)) return false;
    t[a * each]++;
    t[b * each + next]++;
    t[d * each + 2 * next]++;
    t[e * each + 3 * next]++;
    t[g * each + 4 * next]++;
    t[h * each + 5 * next]++;
    t[j * each + 6 * next]++;
    t[k * each + 7 * next]++;
  }
  for (; i < n; i++) {
    if ((u64)p[i] & beyond) return false;
    t[(u64)p[i] * each]++;
  }
  return true;
}

static bool count_block(const Count *c, u32 *t, const i64 *p, i64 n) {
  u64 beyond = ~(c->room - 1);
  return c->tables > 1 ? count_by(TABLES, t, p, n, beyond) : count_by(1, t, p, n, beyond);
}

static bool count_range(const Count *c, u32 *t, i64 lo, i64 hi) {
  i64 *to = (i64 *)(t + c->tables * c->room);
  for (i64 at = lo; at < hi; at += BLOCK) {
    i64 end = hi - at < BLOCK ? hi : at + BLOCK;
    if (!fill_block(c, to, at, end) || !count_block(c, t, to, end - at)) return false;
  }
  return true;
}

static void count_part(void *ctx, i64 part) {
  Count *c = ctx;
  i64 lo = part * c->per, hi = c->run->trips - lo < c->per ? c->run->trips : lo + c->per;
  if (__atomic_load_n(&c->failed, __ATOMIC_RELAXED)) return;
  if (!count_range(c, tables_of(c, part), lo, hi)) __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
}

/* The first block says how many bins there are, about: tables of twice that. False: too many. */
static bool room_of(Count *c, i64 *block) {
  u64 all = c->run->least > 1 ? (u64)c->run->least - 1 : 1, seen = 0;
  if (!fill_block(c, block, 0, BLOCK)) return false;
  for (i64 i = 0; i < BLOCK; i++) seen |= (u64)block[i];
  if (seen >= MOST_BINS) return false; /* negative ones, too */
  if (seen > all) all = 2 * seen;
  if (all >= MOST_BINS) return false;
  for (c->room = 2; c->room <= all; c->room *= 2) {}
  c->tables = c->room <= MANY_BINS ? TABLES : 1;
  return (u64)c->run->trips / 4 >= c->room;
}

static WeftStatus count_all(Count *c, i64 parts) {
  const CountsRun *r = c->run;
  u64 units = r->k->bytes_per_trip / 8 + 1;
  if (parts > 1) {
    if (vm_poll(c->vm, (u64)r->trips * units >> 10) != WEFT_OK) return WEFT_ERROR;
    return pool_run(c->vm, parts, false, count_part, c);
  }
  for (i64 lo = 0, step = c->per; lo < r->trips && !c->failed; lo += step) {
    i64 hi = r->trips - lo < step ? r->trips : lo + step;
    if (vm_poll(c->vm, (u64)(hi - lo) * units >> 10) != WEFT_OK) return WEFT_ERROR;
    c->failed = !count_range(c, tables_of(c, 0), lo, hi);
  }
  return WEFT_OK;
}

/* The count of a bin, by all parts. */
static i64 count_of(const Count *c, i64 parts, u64 bin) {
  i64 sum = 0;
  for (i64 p = 0; p < parts; p++)
    for (u32 k = 0; k < c->tables; k++) sum += tables_of(c, p)[bin * c->tables + k];
  return sum;
}

static WeftStatus sum_tables(const Count *c, i64 parts, Value *out) {
  i64 bins = (i64)c->room;
  while (bins > c->run->least && !count_of(c, parts, (u64)bins - 1)) bins--;
  WeftStatus status = array_new(c->vm, DT_i64, 1, &bins, out);
  for (i64 i = 0; status == WEFT_OK && i < bins; i++) ((i64 *)out->array->data)[i] = count_of(c, parts, (u64)i);
  return status;
}

WeftStatus counts_run(Vm *vm, const CountsRun *r, Value *out, bool *done) {
  enum { BYTES = BLOCK * sizeof(i64) };
  i64 parts = 1;
  Count c = {.run = r, .vm = vm};
  *done = false;
  if (r->trips < BLOCKS_LEAST * BLOCK || r->trips > UINT32_MAX || r->least > MOST_BINS) return WEFT_OK;
  i64 *first = mem_alloc(&vm->alloc, BYTES);
  if (!first) return vm_error_memory(vm);
  bool fits = room_of(&c, first);
  mem_free(&vm->alloc, first, BYTES);
  if (!fits) return WEFT_OK;
  i64 blocks = (r->trips + BLOCK - 1) / BLOCK, per = vm->tunables.poll_elements / BLOCK;
  if (r->parallel) parts = PARTS * (i64)pool_threads(vm);
  if (parts > blocks) parts = blocks;
  if (parts > 1) per = (blocks + parts - 1) / parts;
  c.per = (per > 1 ? per : 1) * BLOCK;
  if (parts > 1) parts = (r->trips + c.per - 1) / c.per;
  c.each = (size_t)c.tables * c.room * sizeof(u32) + BYTES;
  c.scratch = mem_alloc_zero(&vm->alloc, c.each * (size_t)parts);
  if (!c.scratch) return vm_error_memory(vm);
  WeftStatus status = count_all(&c, parts);
  *done = status == WEFT_OK && !c.failed;
  if (*done) status = sum_tables(&c, parts, out);
  mem_free(&vm->alloc, c.scratch, c.each * (size_t)parts);
  return status;
}

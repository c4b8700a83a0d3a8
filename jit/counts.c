/* counts.c — bincount of what a kernel computes, block by block (see counts.h). */
#include "jit/counts.h"

#include <string.h>

#include "jit/plan_inner.h"

enum { BLOCK = 2048, BLOCK_MOST = 16384, BLOCKS_LEAST = 4, TABLES = 4, MANY_BINS = 512, MOST_BINS = 1 << 16, PARTS = 4 };

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
  if (e->aux != OP_bincount || e->nlist || e->nargs != 3 || ea[0].kind != PA_value || ea[0].slot != a->dst || ea[1].kind != PA_hole) return false;
  if (a->dtype != DT_i64 || a->nargs != 1 || p->slots.data[a->dst].device != DEV_CPU || ea[2].slot == a->dst) return false;
  if (ka[0].kind != PA_const || ka[0].imm || ka[1].kind != size->kind || ka[1].slot != size->slot || ka[1].axis != size->axis || ka[1].imm != size->imm) return false;
  const PlanKernel *x = &p->kernels.data[k->index];
  const LoopFn *fn = x->self;
  if (!fn || x->launch || x->reductions || x->flags & PK_INPLACE || x->grain > BLOCK_MOST || fn->params.count + 2 != k->nargs) return false;
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
  i64 block, per; /* trips of a block; of a part */
  u64 room;       /* bins of a table, a power of two */
  u32 tables;     /* that neighbours are counted in by turns: equal ones do not wait for each other */
  char *scratch;  /* of each part: tables, block */
  size_t each;
  bool failed; /* some part met a failed check, or a position beyond its tables */
} Count;

static i64 *tables_of(const Count *c, i64 part) { return (i64 *)(c->scratch + c->each * (size_t)part); }

/* Positions of the trips lo … hi-1, a block at most, to `to`. False: a check failed. */
static bool fill_block(const Count *c, i64 *to, i64 lo, i64 hi) {
  const CountsRun *r = c->run;
  u64 words[r->count + 1];
  memcpy(words, r->words, sizeof *words * r->count);
  words[r->out] = (u64)(uintptr_t)to - (u64)lo * sizeof *to;
  return (r->k->fn ? r->k->fn(words, lo, hi) : r->k->call(r->k, c->vm, words, lo, hi)) == LOOP_KEY_NONE;
}

static bool count_block(const Count *c, i64 *t, const i64 *p, i64 n) {
  u64 beyond = ~(c->room - 1);
  size_t next = c->tables > 1 ? c->room : 0;
  i64 *t1 = t + next, *t2 = t1 + next, *t3 = t2 + next, i = 0;
  for (; i + TABLES <= n; i += TABLES) {
    u64 a = (u64)p[i], b = (u64)p[i + 1], d = (u64)p[i + 2], e = (u64)p[i + 3];
    if (UNLIKELY((a | b | d | e) & beyond)) return false;
    t[a]++;
    t1[b]++;
    t2[d]++;
    t3[e]++;
  }
  for (; i < n; i++) {
    if ((u64)p[i] & beyond) return false;
    t[p[i]]++;
  }
  return true;
}

static bool count_range(const Count *c, i64 *t, i64 lo, i64 hi) {
  i64 *to = t + c->tables * c->room;
  for (i64 at = lo; at < hi; at += c->block) {
    i64 end = hi - at < c->block ? hi : at + c->block;
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
  if (!fill_block(c, block, 0, c->block)) return false;
  for (i64 i = 0; i < c->block; i++) seen |= (u64)block[i];
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

/* The sums of all tables, as an array. */
static WeftStatus sum_tables(Count *c, i64 parts, Value *out) {
  i64 *sum = tables_of(c, 0), bins = (i64)c->room;
  for (i64 p = 0; p < parts; p++)
    for (u64 i = 0, n = c->tables * c->room; i < n; i++)
      if (p || i >= c->room) sum[i & (c->room - 1)] += tables_of(c, p)[i];
  while (bins > c->run->least && !sum[bins - 1]) bins--;
  WeftStatus status = array_new(c->vm, DT_i64, 1, &bins, out);
  if (status == WEFT_OK && bins) memcpy(out->array->data, sum, (size_t)bins * sizeof *sum);
  return status;
}

WeftStatus counts_run(Vm *vm, const CountsRun *r, Value *out, bool *done) {
  i64 grain = r->k->grain > 1 ? r->k->grain : 1, parts = 1;
  Count c = {.run = r, .vm = vm, .block = grain > BLOCK ? grain : BLOCK / grain * grain};
  *done = false;
  if (r->trips < BLOCKS_LEAST * c.block || r->least > MOST_BINS) return WEFT_OK;
  size_t block = (size_t)c.block * sizeof(i64);
  i64 *first = mem_alloc(&vm->alloc, block);
  if (!first) return vm_error_memory(vm);
  bool fits = room_of(&c, first);
  mem_free(&vm->alloc, first, block);
  if (!fits) return WEFT_OK;
  i64 blocks = (r->trips + c.block - 1) / c.block, per = vm->tunables.poll_elements / c.block;
  if (r->parallel) parts = PARTS * (i64)pool_threads(vm);
  if (parts > blocks) parts = blocks;
  if (parts > 1) per = (blocks + parts - 1) / parts;
  c.per = (per > 1 ? per : 1) * c.block;
  if (parts > 1) parts = (r->trips + c.per - 1) / c.per;
  c.each = (size_t)c.tables * c.room * sizeof(i64) + block;
  c.scratch = mem_alloc_zero(&vm->alloc, c.each * (size_t)parts);
  if (!c.scratch) return vm_error_memory(vm);
  WeftStatus status = count_all(&c, parts);
  *done = status == WEFT_OK && !c.failed;
  if (*done) status = sum_tables(&c, parts, out);
  mem_free(&vm->alloc, c.scratch, c.each * (size_t)parts);
  return status;
}

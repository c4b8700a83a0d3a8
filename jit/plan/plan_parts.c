/* plan_parts.c — steps of a plan that stand for several behind them, where their kernels can work by blocks: counts
 * without the array that is counted, parts of an array written where they belong, two kernels of rows interleaved,
 * kernels on tiles of a transposed array. */
#include "jit/plan/blocks.h"
#include "jit/plan/counts.h"
#include "jit/plan/plan_run.h"

enum { DIRECT_ROW = 64 };

/* Steps behind `s`: alloc, kernel, bincount. *done: they are not needed any more. */
Went plan_counts_step(Run *r, const PlanStep *s, bool *done) {
  const PlanStep *step = s + 2, *e = s + 3;
  const PlanArg *a = &r->p->args.data[step->arg];
  const PlanKernel *k = &r->p->kernels.data[step->index];
  u64 words[step->nargs + 1];
  u32 at = 2;
  Value least, out;
  CountsRun c = {.k = k, .words = words, .count = step->nargs - 2, .trips = (i64)word_of(r, &a[1])};
  if (k->launch || UNLIKELY(r->vm->log & VM_LOG_PROFILE)) return GOES_ON;
  if (plan_parameter(r, e, &at, &least) != WEFT_OK) return plan_leave_raised(r, s->exit);
  bool known = least.kind == V_HOLE || (least.kind == V_NUM && least.dtype == DT_i64 && least.i >= 0);
  c.least = least.kind == V_NUM ? least.i : 0;
  value_drop(r->vm, least);
  for (u32 i = 2; i < step->nargs; i++) {
    bool counted = a[i].kind == PA_data && a[i].slot == s[1].dst;
    if (counted) c.out = i - 2;
    if (counted) words[i - 2] = 0;
    else if (!plan_words_of(r, k, &a[i], 1, &words[i - 2])) return GOES_ON;
  }
  if (!known) return GOES_ON;
  c.parallel = k->fn && !(k->flags & PK_SERIAL) && pool_threads(r->vm) > 1 &&
               plan_kernel_work(k, words, 0, c.trips) >= (u64)r->vm->tunables.parallel_elements;
  if (counts_run(r->vm, &c, &out, done) != WEFT_OK) return plan_leave_raised(r, s->exit);
  if (!*done) return GOES_ON;
  r->vm->counters.at[STAT_kernel_runs]++;
  return plan_take_result(r, e->dst, out) ? GOES_ON : plan_leave(r, e->exit, WEFT_OK);
}

/* Where the update puts what it is given: its rows and how far apart they lie. False: not so simple, or it raises. */
static bool part_of(Run *r, const PlanStep *alloc, const PlanStep *u, Array *base, BlockOut *o) {
  const GraphAttr *a = &r->p->graph->attrs.data[u->index];
  AttrRun x = {r, r->p->attr_sizes.data + u->list, u->nlist, u};
  u8 items[INDEX_MAX_ITEMS];
  Value regs[INDEX_MAX_REGS], view;
  i64 dims[ARRAY_MAX_RANK], row = 1;
  if (!dims_of(r, alloc, dims)) return false;
  if (attr_index(&(AttrSource){r->vm, plan_attr_size, plan_attr_operand, &x}, a, items, regs) != WEFT_OK ||
      vm_index(r->vm, array_value(base), items, a->count, regs, &view) != WEFT_OK) {
    vm_error_forget(r->vm);
    return false;
  }
  Array *v = view.kind == V_ARRAY ? view.array : NULL;
  u32 rank = v ? array_rank(v) : 0, d = rank;
  bool fits = v && rank && rank == alloc->nargs && v->size && array_dtype(v) == alloc->dtype &&
              array_dtype(base) == alloc->dtype;
  fits = fits && memcmp(array_dims(v), dims, rank * sizeof *dims) == 0;
  /* these axes lie together */
  while (fits && d > 0 && (dims[d - 1] == 1 || array_strides(v)[d - 1] == row)) row *= dims[--d];
  fits = fits && (d == 0 || (d < rank && array_strides(v)[d - 1] > row));
  for (u32 i = 0; fits && i + 1 < d; i++) fits = dims[i] == 1;
  if (fits)
    *o = (BlockOut){.word = o->word, .bytes = o->bytes, .each = o->each, .row = row,
                    .apart = d ? array_strides(v)[d - 1] : row, .to = v->data};
  value_drop(r->vm, view);
  return fits;
}

/* Does the kernel read what it is about to write anywhere but in its place? */
static bool reads_part(const Run *r, const PlanStep *s, const Blocks *b, const u64 *words, Array *base) {
  const PlanArg *a = &r->p->args.data[s->arg] + 2;
  uintptr_t from = (uintptr_t)base->data, end = from + (size_t)base->size * b->out[0].bytes;
  for (u32 i = 0; i < s->nargs - 2; i++) {
    if (i == b->out[0].word || a[i].kind != PA_data || !r->p->slots.data[a[i].slot].array) continue;
    Array *x = array_at(r, a[i].slot);
    uintptr_t at = (uintptr_t)x->data;
    if (at >= end || at + (size_t)x->size * dtype_bytes(array_dtype(x)) <= from) continue;
    if (!blocks_same_place(b, words, i)) return true;
  }
  return false;
}

/* Steps behind `s`: alloc, kernel, update. *done: they are not needed any more. What the kernel makes goes where it
 * belongs. */
Went plan_part_step(Run *r, const PlanStep *s, bool *done) {
  const PlanStep *step = s + 2, *u = s + 3;
  const PlanArg *a = &r->p->args.data[step->arg];
  PlanKernel k = r->p->kernels.data[step->index];
  Array *base = array_at(r, u->src);
  u64 words[step->nargs + 1], key = LOOP_KEY_NONE, work;
  u32 out = 0;
  i64 hi = (i64)word_of(r, &a[1]);
  Blocks b;
  if (!k.fn || hi < 1 || array_device(base) != DEV_CPU || !array_dense(base) || !may_update(r, u, base) ||
      UNLIKELY(r->vm->log & VM_LOG_PROFILE))
    return GOES_ON;
  for (u32 i = 2; i < step->nargs; i++) {
    bool is_out = a[i].kind == PA_data && a[i].slot == s[1].dst;
    if (is_out) out = i - 2;
    words[i - 2] = 0;
    if (!is_out && !plan_words_of(r, &k, &a[i], 1, &words[i - 2])) return GOES_ON;
  }
  if (!blocks_of(&b, &k, words, step->nargs - 2, false) || b.outs != 1 || b.out[0].word != out ||
      !part_of(r, &s[1], u, base, &b.out[0]))
    return GOES_ON;
  BlockOut *o = &b.out[0];
  i64 all = hi * o->each;
  if (all % o->row || (o->row == o->apart && all != o->row) || reads_part(r, step, &b, words, base)) return GOES_ON;
  b.direct = o->row != o->apart && o->row == o->each && (!b.block || o->row > DIRECT_ROW);
  if (o->row != o->apart && !b.direct && !b.block) return GOES_ON;
  bool own = false;
  for (u32 i = 2; i < step->nargs; i++) own |= a[i].kind == PA_data && r->slots[a[i].slot] == (u64)(uintptr_t)base;
  o->stream = !own && all >= LONG_UNITS && stream_worth(all * (i64)o->bytes, true);
  words[out] = (u64)(uintptr_t)o->to;
  k.flags |= PK_INPLACE;
  b.kernel = &r->p->kernels.data[step->index];
  if (o->stream) b.past = blocks_past(&b);
  r->vm->counters.at[STAT_past] += b.past != NULL;
  o->stream = o->stream && (b.block || b.past);
  if (o->stream || o->row != o->apart) k.blocks = &b;
  r->vm->counters.at[STAT_kernel_runs]++;
  bool ok = plan_is_parallel(r, step, &k, words, 0, hi, &work) ? plan_run_threads(r->vm, &k, words, 0, hi, work, &key)
                                                               : plan_run_polled(r->vm, &k, words, 0, hi, &key);
  if (!ok) return plan_leave(r, s->exit, WEFT_ERROR);
  *done = true;
  return updated(r, u, base);
}

enum { PAIR_BYTES = 1 << 19 }; /* of what lies between two kernels, from which it is made and read by rows */

/* Steps behind `s`: alloc, kernel, alloc, kernel. *done: they are not needed any more. The first array is never made as
 * a whole. */
Went plan_interleave_step(Run *r, const PlanStep *s, bool *done) {
  const PlanStep *one = s + 2, *two = s + 4;
  const PlanArg *a = &r->p->args.data[one->arg], *c = &r->p->args.data[two->arg];
  PlanKernel k = r->p->kernels.data[one->index], ahead;
  const PlanKernel *then = &r->p->kernels.data[two->index];
  u64 words[one->nargs + 1], next[two->nargs + 1], key = LOOP_KEY_NONE, work;
  i64 hi = (i64)word_of(r, &a[1]), dims[ARRAY_MAX_RANK], size;
  u32 out = 0, in = 0, made = 0;
  Blocks b, second;
  if (!k.fn || !then->fn || hi < 2 || !dims_of(r, &s[1], dims) ||
      (size = dims_size(s[1].nargs, dims)) < PAIR_BYTES / 8 || UNLIKELY(r->vm->log & VM_LOG_PROFILE))
    return GOES_ON;
  for (u32 i = 2; i < one->nargs; i++) {
    bool between = a[i].kind == PA_data && a[i].slot == s[1].dst;
    if (between) out = i - 2;
    words[i - 2] = 0;
    if (!between && !plan_words_of(r, &k, &a[i], 1, &words[i - 2])) return GOES_ON;
  }
  for (u32 i = 2; i < two->nargs; i++) {
    bool between = c[i].kind == PA_data && c[i].slot == s[1].dst,
        result = c[i].kind == PA_data && c[i].slot == s[3].dst;
    if (between) in = i - 2;
    if (result) made = i - 2;
    next[i - 2] = 0;
    if (!between && !result && !plan_words_of(r, then, &c[i], 1, &next[i - 2])) return GOES_ON;
  }
  if (!blocks_of(&b, &k, words, one->nargs - 2, false) || b.outs != 1 || b.out[0].word != out ||
      b.out[0].each > size / hi)
    return GOES_ON;
  const BlockOut *o = &b.out[0];
  if (size * (i64)o->bytes < PAIR_BYTES || o->each * (i64)o->bytes > BLOCKS_ROW ||
      !blocks_own_row(then, next, two->nargs - 2, in, o->each))
    return GOES_ON;
  if (plan_make_array(r, &s[3]) == GONE) return GONE;
  next[made] = (u64)(uintptr_t)array_at(r, s[3].dst)->data;
  if (!(b.block = BLOCKS_ROWS / (o->each * (i64)o->bytes))) b.block = 1;
  b.kernel = &r->p->kernels.data[one->index];
  if (size >= LONG_UNITS / 4) b.kernel = plan_long(r->vm, b.kernel, o->each, &ahead);
  if (plan_is_streamed(r, two, then, next, hi, &second)) b.past = second.past;
  b.then = then;
  b.then_words = next;
  b.then_count = two->nargs - 2;
  b.then_word = in;
  k.blocks = &b;
  k.bytes_per_trip += then->bytes_per_trip;
  r->vm->counters.at[STAT_kernel_runs] += 2;
  bool ok = plan_is_parallel(r, one, &k, words, 0, hi, &work) ? plan_run_threads(r->vm, &k, words, 0, hi, work, &key)
                                                              : plan_run_polled(r->vm, &k, words, 0, hi, &key);
  if (!ok) return plan_leave(r, s->exit, WEFT_ERROR);
  *done = true;
  return GOES_ON;
}

typedef struct Transposed {
  const PlanKernel *k;
  const u64 *words;
  u32 count, in, out, bytes;
} Transposed;

static void run_transposed(void *ctx, void *at, i64 first, i64 n) {
  const Transposed *t = ctx;
  u64 own[t->count + 1];
  mem_copy(own, t->words, t->count * sizeof *own);
  own[t->in] = own[t->out] = (u64)(uintptr_t)at - (u64)first * t->bytes;
  (void)t->k->fn(own, first, first + n); /* it has no checks */
}

/* Steps behind `s`: dense, donate, kernel. *done: they are not needed any more. The copy is never made as a whole.
 * Within the caches it is: many short calls take longer. */
Went plan_transpose_step(Run *r, const PlanStep *s, bool *done) {
  const PlanStep *donate = s + 2, *step = s + 3;
  const PlanArg *a = &r->p->args.data[step->arg];
  const PlanKernel *k = &r->p->kernels.data[step->index];
  Array *x = array_at(r, s[1].src);
  u64 words[step->nargs + 1];
  i64 hi = (i64)word_of(r, &a[1]), dims[ARRAY_MAX_RANK];
  Transposed t = {.k = k, .words = words, .count = step->nargs - 2, .bytes = dtype_bytes(donate->dtype)};
  Blocks b;
  if (!k->fn || array_rank(x) != 2 || array_strides(x)[0] != 1 || array_strides(x)[1] < 2 || array_dtype(x) !=
      donate->dtype || hi != x->size || !stream_worth(hi * t.bytes, false) || !dims_of(r, donate, dims))
    return GOES_ON;
  if (memcmp(dims, array_dims(x), 2 * sizeof *dims) != 0 || UNLIKELY(r->vm->log & VM_LOG_PROFILE)) return GOES_ON;
  for (u32 i = 2; i < step->nargs; i++) {
    bool in = a[i].kind == PA_data && a[i].slot == s[1].dst, out = a[i].kind == PA_data && a[i].slot == donate->dst;
    if (in) t.in = i - 2;
    if (out) t.out = i - 2;
    words[i - 2] = (u64)(uintptr_t)x->data;
    if (!in && !out && !plan_words_of(r, k, &a[i], 1, &words[i - 2])) return GOES_ON;
  }
  if (!blocks_of(&b, k, words, t.count, false) || b.outs != 1 || b.out[0].word != t.out || b.out[0].each != 1)
    return GOES_ON;
  b.out[0].row = b.out[0].apart = hi;
  b.out[0].to = x->data;
  if (!blocks_same_place(&b, words, t.in)) return GOES_ON;
  if (plan_make_array(r, donate) == GONE) return GONE;
  if (vm_poll(r->vm, (u64)hi * (k->bytes_per_trip / 8 + 1) >> 10) != WEFT_OK) return plan_leave(r, s->exit, WEFT_ERROR);
  *done = strided_transpose(k->flags & PK_SERIAL ? NULL : r->vm, t.bytes, dims, array_at(r, donate->dst)->data, x->data,
                       array_strides(x), &(StridedThen){run_transposed, &t, blocks_anywhere(&b, t.in)});
  r->vm->counters.at[STAT_kernel_runs] += *done;
  return GOES_ON;
}

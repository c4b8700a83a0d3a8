/* blocks.c — long runs of a kernel by blocks (see blocks.h). */
#include "jit/plan/blocks.h"

#include <string.h>

#include "jit/plan/plan_inner.h"

/* ---- what a kernel stores ------------------------------------------------------------------------------ */

/* The number in a value that is known at the call. */
static bool blocks_known(const LoopFn *fn, const u64 *words, u32 id, i64 *out) {
  const LoopNode *n = loop_node(fn, id);
  *out = (i64)n->imm;
  for (u32 i = 0; n->op == LOOP_PARAM && i < fn->params.count; i++)
    if (fn->params.data[i] == id) *out = (i64)words[i];
  return n->op == LOOP_CONST || n->op == LOOP_PARAM;
}

/* What a term of no loop's index adds. */
static bool is_offset(const LoopFn *fn, const u64 *words, const LoopTerm *t, i64 *out) {
  *out = 1;
  return !t->var || blocks_known(fn, words, t->var, out);
}

static i64 factor_of(const LoopFn *fn, const u64 *words, const LoopTerm *t) {
  i64 product = t->coef, x;
  for (u32 i = 0; i < 2; i++)
    if (t->stride[i]) product = blocks_known(fn, words, t->stride[i], &x) ? product * x : 0;
  return product;
}

/* Elements that a trip of `par` stores by the access, how far apart trips are, and whether it begins behind the first;
 * false: not known. */
static bool store_of(const LoopFn *fn, const u64 *words, const LoopNode *n, u32 par, i64 around, i64 *each,
                     bool *behind) {
  const LoopTerm *t = loop_terms(fn, n);
  i64 offset;
  *each = 0;
  *behind |= n->imm != 0;
  for (u32 i = 0; i < n->count; i++) {
    if (is_offset(fn, words, &t[i], &offset)) {
      *behind = true;
      continue;
    }
    if (t[i].var != loop_index_of(par, 0)) continue;
    if (*each) return false;
    *each = factor_of(fn, words, &t[i]);
  }
  return *each > 0 && around > 0;
}

static const LoopTerm *term_of(const LoopFn *fn, const LoopNode *n, u32 var) {
  const LoopTerm *t = loop_terms(fn, n), *found = NULL;
  for (u32 i = 0; i < n->count; i++)
    if (t[i].var == var) {
      if (found) return NULL;
      found = &t[i];
    }
  return found;
}

static BlockOut *out_of(Blocks *b, const LoopFn *fn, u32 param) {
  for (u32 i = 0; i < fn->params.count; i++) {
    if (fn->params.data[i] != param) continue;
    for (u32 k = 0; k < b->outs; k++)
      if (b->out[k].word == i) return &b->out[k];
    if (b->outs == BLOCKS_OUTS) return NULL;
    b->out[b->outs] = (BlockOut){.word = i};
    return &b->out[b->outs++];
  }
  return NULL;
}

bool blocks_of(Blocks *b, const PlanKernel *k, const u64 *words, u32 count, bool parts) {
  enum { DEPTH = 8 };
  const LoopFn *fn = k->self;
  i64 around[DEPTH] = {1}, made[BLOCKS_OUTS] = {0}, each, trips;
  u32 par = 0, depth = 0;
  bool behind = false;
  *b = (Blocks){.kernel = k, .count = count};
  if (!fn || !k->fn || k->reductions || fn->params.count != count) return false;
  for (u32 i = 0; i < fn->body.count; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    if (loop_is_head(n)) {
      if (++depth == DEPTH) return false;
      around[depth] = n->op == LOOP_PAR || n->op == LOOP_FOR ? around[depth - 1] : 0; /* nothing is stored in others */
      if (n->op == LOOP_PAR) {
        if (par || n->a != 1 || depth != 1) return false;
        par = id;
      }
      for (u32 a = 0; n->op == LOOP_FOR && a < n->a; a++)
        around[depth] = blocks_known(fn, words, loop_trips_of(fn, id, a), &trips) ? around[depth] * trips : 0;
    } else if (n->op == LOOP_END) {
      depth--;
    } else if (n->op == LOOP_CALL) {
      return false;
    } else if (n->op == LOOP_LOAD) {
      if (loop_node(fn, n->a)->aux == LOOP_OUT) return false;
    } else if (n->op == LOOP_STORE) {
      BlockOut *o = par && depth ? out_of(b, fn, n->a) : NULL;
      if (!o || !store_of(fn, words, n, par, around[depth], &each, &behind) || (behind && !parts) ||
          (o->each && o->each != each))
        return false;
      o->each = each;
      o->bytes = loop_type_bytes(n->mem);
      made[o - b->out] += around[depth];
    }
  }
  b->block = INT64_MAX;
  for (u32 i = 0; i < b->outs; i++) {
    i64 fit = BLOCKS_BUFFER / b->out[i].bytes / b->out[i].each;
    if (made[i] != b->out[i].each) return false; /* some elements are not stored, or some twice */
    if (fit < b->block) b->block = fit;
  }
  if (behind) b->block = 0; /* what several loops store is counted, not placed */
  return b->outs != 0;
}

LoopKernelFn blocks_past(const Blocks *b) {
  enum { LINE = 64, LONG_ROW = 512 /* elements: each row has a line at its ends that is not stored whole */ };
  PlanKernel *k = (PlanKernel *)(uintptr_t)b->kernel;
  const BlockOut *o = &b->out[0];
  if (o->row < LONG_ROW || o->row % o->each || (o->each > 1 && o->each < LONG_ROW)) return NULL;
  for (u32 i = 1; i < b->outs; i++) /* where one has whole lines the others have */
    if (o[i].bytes != o->bytes || o[i].each != o->each || o[i].row != o->row || o[i].apart != o->row ||
        o->apart != o->row || ((uintptr_t)o[i].to ^ (uintptr_t)o->to) % LINE)
      return NULL;
  if (k->make_past) k->make_past(k);
  return k->past;
}

/* Does the trip load, of the array at `base`, just what it stores? Loops around the two are the same. */
static bool loads_own(const Blocks *b, const u64 *words, const LoopNode *load, const char *base) {
  const LoopFn *fn = b->kernel->self;
  const BlockOut *o = &b->out[0];
  const LoopNode *store = NULL;
  u32 par = 0;
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_PAR) par = fn->body.data[i];
    if (n->op != LOOP_STORE) continue;
    if (store) return false;
    store = n;
  }
  const LoopTerm *t = loop_terms(fn, load);
  i64 offset = (i64)load->imm;
  u32 vars = 0;
  for (u32 i = 0; i < load->count; i++) {
    i64 factor = factor_of(fn, words, &t[i]), times;
    if (is_offset(fn, words, &t[i], &times)) {
      offset += factor * times;
      continue;
    }
    const LoopTerm *s = store ? term_of(fn, store, t[i].var) : NULL;
    i64 want = !s || !term_of(fn, load, t[i].var) ? 0 : t[i].var == loop_index_of(par, 0) &&
               o->row == o->each ? o->apart : factor_of(fn, words, s);
    if (want <= 0 || factor != want) return false;
    vars++;
  }
  return store && loop_type_bytes(load->mem) == o->bytes && vars == store->count &&
         base + offset * (i64)o->bytes == o->to;
}

typedef struct BlockIndex {
  const LoopFn *fn;
  bool used;
} BlockIndex;

bool blocks_same_place(const Blocks *b, const u64 *words, u32 word) {
  const LoopFn *fn = b->kernel->self;
  const char *base = (const char *)(uintptr_t)words[word];
  if (b->outs != 1 || (b->out[0].apart != b->out[0].row && b->out[0].row != b->out[0].each)) return false;
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_LOAD && n->a == fn->params.data[word] && !loads_own(b, words, n, base)) return false;
  }
  return true;
}

static void see_index(void *ctx, u32 id) {
  BlockIndex *x = ctx;
  x->used |= loop_node(x->fn, id)->op == LOOP_INDEX;
}

bool blocks_anywhere(const Blocks *b, u32 word) {
  BlockIndex x = {.fn = b->kernel->self};
  for (u32 i = 0; i < x.fn->body.count && !x.used; i++) {
    const LoopNode *n = loop_node(x.fn, x.fn->body.data[i]);
    if (n->op == LOOP_LOAD) x.used = n->a != x.fn->params.data[word];
    else if (n->op == LOOP_STORE) see_index(&x, n->b);
    else if (loop_is_head(n)) x.used = n->op != LOOP_PAR;
    else loop_each_operand(x.fn, n, see_index, &x);
  }
  return !x.used;
}

/* Trips of the loop whose index `var` is; 0: it is none, or they are not known. */
static i64 blocks_trips_of(const LoopFn *fn, const u64 *words, u32 var) {
  i64 trips;
  for (u32 i = 0; i < fn->body.count; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    for (u32 a = 0; loop_is_head(n) && (n->op == LOOP_FOR || n->op == LOOP_REDUCE) && a < n->a; a++)
      if (loop_index_of(id, a) == var) return blocks_known(fn, words, loop_trips_of(fn, id, a), &trips) ? trips : 0;
  }
  return 0;
}

bool blocks_own_row(const PlanKernel *k, const u64 *words, u32 count, u32 word, i64 each) {
  const LoopFn *fn = k->self;
  u32 par = 0;
  if (!fn || !k->fn || k->reductions || fn->params.count != count) return false;
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_CALL) return false;
    if (n->op == LOOP_PAR) {
      if (par || n->a != 1) return false;
      par = fn->body.data[i];
    }
    if ((n->op != LOOP_LOAD && n->op != LOOP_STORE) || n->a != fn->params.data[word]) continue;
    if (n->op == LOOP_STORE || !par) return false;
    const LoopTerm *t = loop_terms(fn, n), *row = term_of(fn, n, loop_index_of(par, 0));
    i64 last = (i64)n->imm, offset, trips;
    if (!row || factor_of(fn, words, row) != each || last < 0 || last >= each) return false;
    for (u32 x = 0; x < n->count; x++) {
      i64 factor = factor_of(fn, words, &t[x]), most;
      if (&t[x] == row) continue;
      if (is_offset(fn, words, &t[x], &offset)) trips = offset + 1;
      else trips = blocks_trips_of(fn, words, t[x].var);
      if (factor < 0 || trips < 1 || __builtin_mul_overflow(factor, trips - 1, &most) ||
          __builtin_add_overflow(last, most, &last) || last >= each)
        return false;
    }
  }
  return par != 0;
}

/* ---- the run -------------------------------------------------------------------------------------------- */

static void put(const BlockOut *o, const char *from, i64 at, i64 end) {
  while (at < end) {
    i64 row = at / o->row, n = (row + 1) * o->row;
    n = (n < end ? n : end) - at;
    char *to = o->to + (row * o->apart + at - row * o->row) * (i64)o->bytes;
    if (o->stream) stream_copy(to, from, n * (i64)o->bytes);
    else memcpy(to, from, (size_t)n * o->bytes);
    at += n;
    from += n * (i64)o->bytes;
  }
}

/* Both kernels, of so many trips each time that what lies between them fits in the buffer. */
static __attribute__((noinline)) u64 run_pair(const Blocks *b, const u64 *words, i64 lo, i64 hi) {
  _Alignas(64) char buffer[BLOCKS_ROW];
  u64 own[b->count + 1], next[b->then_count + 1], least = LOOP_KEY_NONE;
  const BlockOut *o = &b->out[0];
  mem_copy(own, words, b->count * sizeof *own);
  mem_copy(next, b->then_words, b->then_count * sizeof *next);
  for (i64 at = lo, end; at < hi; at = end) {
    end = hi - at < b->block ? hi : at + b->block;
    own[o->word] = next[b->then_word] = (u64)(uintptr_t)buffer - (u64)(at * o->each) * o->bytes;
    u64 key = b->kernel->fn(own, at, end);
    if (key < least) least = key;
    key = (b->past ? b->past : b->then->fn)(next, at, end);
    if (key < least) least = key;
  }
  if (b->past) stream_done();
  return least;
}

u64 blocks_run(const Blocks *b, const u64 *words, i64 lo, i64 hi) {
  if (b->then) return run_pair(b, words, lo, hi);
  _Alignas(64) char buffer[BLOCKS_OUTS][BLOCKS_BUFFER];
  u64 own[b->count + 1], least = LOOP_KEY_NONE;
  mem_copy(own, words, b->count * sizeof *own);
  const BlockOut *to = &b->out[0];
  for (i64 per = to->row / to->each, end; (b->direct || b->past) && lo < hi; lo = end) { /* row by row */
    i64 row = lo / per;
    end = hi < (row + 1) * per ? hi : (row + 1) * per;
    /* of several arrays rows are the whole: they stay */
    own[to->word] = (u64)(uintptr_t)to->to + (u64)(row * (to->apart - to->row)) * to->bytes;
    u64 key = (b->past ? b->past : b->kernel->fn)(own, lo, end);
    if (key < least) least = key;
  }
  for (i64 at = lo, end; at < hi; at = end) {
    end = hi - at < b->block ? hi : at + b->block;
    for (u32 i = 0; i < b->outs; i++)
      own[b->out[i].word] = (u64)(uintptr_t)buffer[i] - (u64)(at * b->out[i].each) * b->out[i].bytes;
    u64 key = b->kernel->fn(own, at, end);
    if (key < least) least = key;
    for (u32 i = 0; i < b->outs; i++) put(&b->out[i], buffer[i], at * b->out[i].each, end * b->out[i].each);
  }
  stream_done();
  return least;
}

/* ---- the plan ------------------------------------------------------------------------------------------- */

/* An index that names a part: integers and slices. */
static bool names_part(const Plan *p, u32 attr) {
  const GraphAttr *a = attr < p->graph->attrs.count ? &p->graph->attrs.data[attr] : NULL;
  if (!a || a->kind != ATTR_index) return false;
  for (u32 i = 0; i < a->count; i++)
    if (a->items[i].kind > INDEX_ellipsis) return false;
  return true;
}

static bool is_part(const Plan *p, u32 at) {
  const PlanStep *a = &p->steps.data[at], *k = a + 1, *u = a + 2;
  if (at + 2 >= p->steps.count || a->op != STEP_alloc || k->op != STEP_kernel || u->op != STEP_update) return false;
  const PlanArg *ka = &p->args.data[k->arg], *ua = &p->args.data[u->arg];
  if (u->aux || !u->nargs || ua[u->nargs - 1].slot != a->dst || u->src == a->dst || k->nlist ||
      p->slots.data[a->dst].device != DEV_CPU)
    return false;
  if (ka[0].kind != PA_const || ka[0].imm || !names_part(p, u->index)) return false;
  u32 outs = 0;
  for (u32 i = 2; i < k->nargs; i++) {
    if (ka[i].kind == PA_out) return false;
    outs += ka[i].kind == PA_data && ka[i].slot == a->dst;
  }
  return outs == 1 && !p->kernels.data[k->index].launch && plan_given_up(p, at + 2, a->dst);
}

/* How often the array in `slot` stands among the step's arguments; not by its address alone: more often than that. */
static u32 times_in(const Plan *p, const PlanStep *s, u32 slot) {
  const PlanArg *a = &p->args.data[s->arg];
  u32 n = 0;
  for (u32 i = 0; i < s->nargs; i++)
    if (a[i].kind != PA_const && a[i].slot == slot) n += a[i].kind == PA_data && i > 1 ? 1 : 2;
  return n;
}

/* Does the step run a kernel that may be one of two interleaved ones? */
static bool is_of_pair(const Plan *p, const PlanStep *s) {
  const PlanKernel *k = &p->kernels.data[s->index];
  const PlanArg *a = &p->args.data[s->arg];
  if (s->nlist || k->launch || k->grain > 1 || k->flags & PK_INPLACE || a[0].kind != PA_const || a[0].imm) return false;
  for (u32 i = 2; i < s->nargs; i++)
    if (a[i].kind == PA_out) return false;
  return true;
}

bool blocks_are_pair(const Plan *p, u32 at) {
  const PlanStep *s = &p->steps.data[at];
  if (at + 3 >= p->steps.count || s->op != STEP_alloc || s[1].op != STEP_kernel || s[2].op != STEP_alloc ||
      s[3].op != STEP_kernel)
    return false;
  const PlanArg *one = &p->args.data[s[1].arg + 1], *two = &p->args.data[s[3].arg + 1];
  if (one->kind != two->kind || one->kind > PA_const ||
      (one->kind == PA_slot ? one->slot != two->slot : one->imm != two->imm))
    return false;
  u32 between = s->dst, out = s[2].dst; /* `out` is filled before the first kernel runs: that must not have it */
  return p->slots.data[between].device == DEV_CPU && p->slots.data[out].device == DEV_CPU && is_of_pair(p, &s[1]) &&
         is_of_pair(p, &s[3]) && !times_in(p, &s[2], between) && times_in(p, &s[1], between) == 1 &&
         !times_in(p, &s[1], out) && times_in(p, &s[3], between) == 1 && times_in(p, &s[3], out) == 1 &&
         plan_given_up(p, at + 3, between);
}

/* A copy that lies together, for the kernel behind it alone, which may write over it. */
static bool is_transpose(const Plan *p, u32 at) {
  const PlanStep *d = &p->steps.data[at], *l = d + 1, *s = d + 2;
  if (at + 2 >= p->steps.count || d->op != STEP_dense || l->op != STEP_donate || s->op != STEP_kernel ||
      l->src != d->dst || l->nargs != 2)
    return false;
  const PlanKernel *k = &p->kernels.data[s->index];
  const PlanArg *a = &p->args.data[s->arg];
  for (u32 i = 2; i < s->nargs; i++)
    if (a[i].kind == PA_out) return false;
  if (s->nlist || k->launch || a[0].kind != PA_const || a[0].imm || p->slots.data[d->src].device != DEV_CPU ||
      p->slots.data[l->dst].device != DEV_CPU)
    return false;
  return times_in(p, s, d->dst) == 1 && times_in(p, s, l->dst) == 1 && !times_in(p, l, d->dst) &&
         plan_given_up(p, at + 2, d->dst);
}

bool blocks_join(Plan *p) {
  for (u32 i = 0; i < p->steps.count; i++)
    if (blocks_are_pair(p, i)) {
      if (!plan_put_before(p, i, STEP_interleave)) return false;
      i += 4;
    } else if (is_part(p, i)) {
      if (!plan_put_before(p, i, STEP_part)) return false;
      i += 3;
    } else if (is_transpose(p, i)) {
      if (!plan_put_before(p, i, STEP_transpose)) return false;
      i += 3;
    }
  return true;
}

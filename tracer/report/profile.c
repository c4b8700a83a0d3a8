/* profile.c — what the kernels cost, as a table, beside what the machine can do: its rate of copies and of float
 * operations. */
#include <string.h>

#include "tracer/report/explain.h"
#include "tracer/tracer.h"

/* ---- the machine ----------------------------------------------------------------------------- */

typedef struct Machine { /* of all threads that the VM may use; 0: not known */
  f64 copy;  /* bytes a second, read and written */
  f64 flops; /* f64 products and sums a second */
  u32 threads;
} Machine;

enum { ROUNDS = 4, COPY_BYTES = 48 << 20, FLOP_TRIPS = 200000, CHAINS = 12 };

typedef struct Copy {
  char *to, *from;
  size_t part;
} Copy;

static void copy_part(void *ctx, i64 part) {
  const Copy *c = ctx;
  memcpy(c->to + (size_t)part * c->part, c->from + (size_t)part * c->part, c->part);
}

/* Products and sums of vectors, in chains that do not wait for each other. One build for each length of vectors. */
typedef struct Flops {
  f64 sums[64];
  u32 bytes; /* of a vector */
} Flops;

#define RATE(name, lanes, attributes)                                                        \
  typedef f64 name##_vec __attribute__((vector_size(8 * lanes)));                            \
  attributes static f64 name(void) {                                                         \
    name##_vec a[CHAINS], total = {0};                                                       \
    for (u32 k = 0; k < CHAINS; k++) a[k] = (name##_vec){0} + 1.0 + k;                       \
    for (u32 i = 0; i < FLOP_TRIPS; i++) {                                                   \
      UNROLL(12) for (u32 k = 0; k < CHAINS; k++) a[k] = a[k] * 0.999 + 0.001; \
    }                                                                                        \
    for (u32 k = 0; k < CHAINS; k++) total += a[k];                                          \
    return total[0];                                                                         \
  }
#ifdef __x86_64__
RATE(rate_512, 8, __attribute__((target("avx512f"))))
RATE(rate_256, 4, __attribute__((target("avx2"))))
static u32 vector_bytes(void) { return cpu_has(CPU_AVX512) ? 64 : cpu_has(CPU_AVX2) ? 32 : 16; }
#else
static u32 vector_bytes(void) { return 16; }
#endif
RATE(rate_128, 2, )

static void flops_part(void *ctx, i64 part) {
  Flops *f = ctx;
  f64 *sum = &f->sums[part];
#ifdef __x86_64__
  if (f->bytes == 64) *sum = rate_512();
  else if (f->bytes == 32) *sum = rate_256();
  else
#endif
    *sum = rate_128();
}

/* Seconds of the fastest round; 0: a poll raised, which is the program's own business and told again later. */
static f64 fastest(Vm *vm, u32 parts, PoolFn fn, void *ctx) {
  f64 best = 0;
  for (u32 i = 0; i < ROUNDS; i++) {
    u64 begin = log_now();
    if (pool_run(vm, parts, true, fn, ctx) != WEFT_OK) return 0;
    f64 spent = (f64)(log_now() - begin) * 1e-9;
    if (i && spent > 0 && (best == 0 || spent < best)) best = spent; /* the first one touches the pages */
  }
  return best;
}

static Machine measure(Vm *vm) {
  Flops f = {.bytes = vector_bytes()};
  Machine m = {.threads = pool_threads(vm)};
  if (m.threads > COUNT_OF(f.sums)) m.threads = COUNT_OF(f.sums);
  Copy c = {.part = COPY_BYTES / m.threads};
  c.to = mem_alloc(&vm->alloc, 2 * (size_t)COPY_BYTES);
  if (c.to) {
    c.from = c.to + COPY_BYTES;
    memset(c.to, 1, 2 * (size_t)COPY_BYTES);
    f64 best = fastest(vm, m.threads, copy_part, &c);
    if (best > 0) m.copy = 2.0 * (f64)c.part * m.threads / best;
    mem_free(&vm->alloc, c.to, 2 * (size_t)COPY_BYTES);
  }
  f64 best = fastest(vm, m.threads, flops_part, &f);
  if (best > 0) m.flops = 2.0 * FLOP_TRIPS * CHAINS * (f.bytes / 8.0) * m.threads / best;
  return m;
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct Row {
  const Region *region;
  KernelProfile kernel; /* runs 0: what the region did besides its kernels */
  u64 ns;
} Row;

typedef struct Rows {
  Allocator *alloc;
  VEC(Row) rows;
  bool failed;
} Rows;

static void add_region(Rows *l, const Region *r) {
  u64 in_kernels = 0;
  KernelProfile k;
  for (u32 i = 0; r->kernel && r->kernel(r, i, &k); i++) {
    in_kernels += k.ns;
    if (k.runs && !vec_push(l->alloc, &l->rows, (Row){r, k, k.ns})) l->failed = true;
  }
  if (r->run_ns > in_kernels && !vec_push(l->alloc, &l->rows, (Row){r, (KernelProfile){0}, r->run_ns - in_kernels}))
    l->failed = true;
}

static void profile_add_place(void *ctx, Place *p) {
  for (u32 i = 0; i < p->cache.entries.count; i++) add_region(ctx, p->cache.entries.data[i]->region);
}

static void put_row(const Vm *vm, Buf *out, const Row *row, const Machine *m, u64 all) {
  const KernelProfile *k = &row->kernel;
  f64 s = (f64)row->ns * 1e-9;
  buf_printf(out, "%5.1f %% %10.3f ms  ", all ? 100.0 * (f64)row->ns / (f64)all : 0, s * 1e3);
  if (!k->runs) {
    buf_printf(out, "%8llu  %-50s  %s: library calls, native loops, memory\n", (unsigned long long)row->region->entered,
               "", row->region->name);
    return;
  }
  f64 read = (f64)(k->bytes - k->written), bound = 0;
  buf_printf(out, "%8llu  %9.3f %9.3f %9.3f %9.2f %9.2f ", (unsigned long long)k->runs, read * 1e-6,
             (f64)k->written * 1e-6, (f64)k->flops * 1e-6, s > 0 ? (f64)k->bytes / s * 1e-9 : 0,
             s > 0 ? (f64)k->flops / s * 1e-9 : 0);
  if (m->copy > 0) bound = (f64)k->bytes / m->copy;
  if (m->flops > 0 && (f64)k->flops / m->flops > bound) bound = (f64)k->flops / m->flops;
  if (bound > 0 && s > 0) buf_printf(out, "%5.0f %%", 100 * bound / s);
  else buf_puts(out, "      -");
  buf_printf(out, "  %s %s", row->region->name, k->name ? k->name : "?");
  u32 line = 0, column = 0;
  if (k->node) {
    Span at = row->region->graph->origins.data[graph_node_at(row->region->graph, k->node)->origin].span;
    if (sources_get(&vm->sources, at.file)) {
      sources_locate(&vm->sources, at, &line, &column);
      buf_printf(out, " (line %u, %u operation%s)", line, k->nodes, k->nodes == 1 ? "" : "s");
    }
  }
  buf_putc(out, '\n');
}

void log_profile(const Tracer *t, Buf *out) {
  enum { SHOWN = 40 };
  Vm *vm = t->vm;
  Rows l = {.alloc = &vm->alloc};
  u64 all = log_now() - t->log.began, compiled = 0;
  places_each((PlaceTable *)&t->places, profile_add_place, &l);
  for (u32 i = 0; i < l.rows.count; i++) compiled += l.rows.data[i].ns;
  Machine m = measure(vm);
  buf_printf(out, "profile: %.3f ms, %.3f ms of them in compiled regions\n", (f64)all * 1e-6, (f64)compiled * 1e-6);
  buf_printf(out,
             "the machine, %u thread%s: copies %.1f GB/s (read and written), %.1f Gflop/s (f64 products and sums)\n",
             m.threads, m.threads == 1 ? "" : "s", m.copy * 1e-9, m.flops * 1e-9);
  buf_puts(out, "  share       time      runs    MB read   written    Mflops      GB/s   Gflop/s  of roof  kernel\n");
  u32 shown = 0;
  for (; shown < l.rows.count && shown < SHOWN; shown++) { /* the dearest of what is left */
    u32 most = shown;
    for (u32 i = shown + 1; i < l.rows.count; i++)
      if (l.rows.data[i].ns > l.rows.data[most].ns) most = i;
    Row row = l.rows.data[most];
    l.rows.data[most] = l.rows.data[shown];
    put_row(vm, out, &row, &m, all);
  }
  if (shown < l.rows.count) buf_printf(out, "… %u more\n", l.rows.count - shown);
  if (l.failed) out->failed = true;
  vec_free(l.alloc, &l.rows);
}

/* pool.c — the threads of the process: they share the parts of one long loop at a time.
 *
 * One pool per process, since processors are. It is made when a VM first has a loop that is long enough, and ends
 * (its threads are joined) with the last VM that used it, so that a host can unload the library. A pool that is busy
 * with another VM's loop means: run inline. A process that forks starts with an empty pool in the child; the
 * parent's goes on.
 *
 * Parts are taken in order by whoever is free: many at a time at first, since what lies together is read faster, one
 * at a time in the end. What a part is depends on the loop alone, never on the number of threads: so results cannot
 * depend on it either. Workers allocate nothing, raise nothing and see no VM. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#include "vm/fp.h"

/* SPINS: loops often come one behind the other, and to wake a thread takes tens of microseconds. */
enum { POOL_MAX = 64, POOL_STACK = 1 << 20, SPINS = 1000 };

typedef struct Pool {
  pthread_mutex_t lock; /* of all but `next` */
  pthread_cond_t wake, done;
  pthread_t threads[POOL_MAX];
  u32 count;  /* threads there are */
  u32 users;  /* VMs that used it and are not freed */
  bool busy, stop;
  bool forks; /* fork is looked after */
  u32 spins;  /* looks at what a thread waits for, before it sleeps */
  u32 places; /* workers that may still join the loop */
  u32 inside; /* workers that did, and are not through */
  PoolFn fn;
  void *ctx;
  i64 parts, next;
  u32 share;  /* of what is left, a thread takes this part: twice the threads */
  bool halt;  /* whatever has been taken, no further part is begun */
} Pool;

static Pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER,
                    .done = PTHREAD_COND_INITIALIZER};

/* In the child of a fork: the threads are the parent's. */
static void forked(void) {
  pthread_mutex_init(&pool.lock, NULL);
  pthread_cond_init(&pool.wake, NULL);
  pthread_cond_init(&pool.done, NULL);
  pool.count = pool.places = pool.inside = 0;
  pool.busy = pool.stop = false;
}

/* Processors that a quota of the control group stands for, rounded up; UINT32_MAX: there is none. */
static u32 quota(void) {
  long long most = -1, period = 0;
  FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (f && fscanf(f, "%lld %lld", &most, &period) != 2) most = -1; /* "max" is no number */
  if (f) fclose(f);
  return most > 0 && period > 0 ? (u32)((most + period - 1) / period) : UINT32_MAX;
}

static u32 processors(void) {
  cpu_set_t set;
  u32 n = sched_getaffinity(0, sizeof set, &set) == 0 ? (u32)CPU_COUNT(&set) : 1, most = quota();
  return n < most ? n : most;
}

u32 pool_threads(Vm *vm) {
  if (vm->tunables.threads <= 0) vm->tunables.threads = processors();
  if (vm->tunables.threads > POOL_MAX) vm->tunables.threads = POOL_MAX;
  return (u32)vm->tunables.threads;
}

/* The parts from *first to the number that it gives; none are left: they are the same. */
static i64 pool_take(Pool *p, i64 parts, i64 *first) {
  i64 at = __atomic_load_n(&p->next, __ATOMIC_RELAXED), some = 0;
  while (at < parts) {
    some = (parts - at) / p->share;
    if (some < 1) some = 1;
    if (__atomic_compare_exchange_n(&p->next, &at, at + some, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
    some = 0;
  }
  *first = at;
  return at + some;
}

static void work(Pool *p, PoolFn fn, void *ctx, i64 parts) {
  for (i64 part, end; (end = pool_take(p, parts, &part)) > part;)
    for (; part < end && !__atomic_load_n(&p->halt, __ATOMIC_RELAXED); part++) fn(ctx, part);
}

/* Looks for a while whether a number is 0, or is not any more. */
static void await(const Pool *p, const u32 *number, bool zero) {
  for (u32 i = __atomic_load_n(&p->spins, __ATOMIC_RELAXED);
       i > 0 && (__atomic_load_n(number, __ATOMIC_RELAXED) == 0) != zero; i--) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }
}

static void *worker(void *ctx) {
  Pool *p = ctx;
  fp_write(FP_STATE);
  for (;;) {
    await(p, &p->places, false);
    pthread_mutex_lock(&p->lock);
    while (!p->stop && !p->places) pthread_cond_wait(&p->wake, &p->lock);
    if (p->stop) break;
    __atomic_store_n(&p->places, p->places - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&p->inside, p->inside + 1, __ATOMIC_RELAXED);
    PoolFn fn = p->fn;
    void *to = p->ctx;
    i64 parts = p->parts;
    pthread_mutex_unlock(&p->lock);
    work(p, fn, to, parts);
    pthread_mutex_lock(&p->lock);
    __atomic_store_n(&p->inside, p->inside - 1, __ATOMIC_RELAXED);
    if (!p->inside) pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

/* Signals are for the host's threads. */
static void start(Pool *p, u32 count) {
  pthread_attr_t attr;
  sigset_t all, before;
  if (!p->forks) p->forks = pthread_atfork(NULL, NULL, forked) == 0;
  if (p->count < count) __atomic_store_n(&p->spins, count < processors() ? SPINS : 0, __ATOMIC_RELAXED);
  if (!p->forks || p->count >= count || pthread_attr_init(&attr) != 0) return;
  (void)pthread_attr_setstacksize(&attr, POOL_STACK);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (p->count < count && pthread_create(&p->threads[p->count], &attr, worker, p) == 0) p->count++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
}

/* The pool is this loop's from here on. False: it is busy, or has no threads. */
static bool open_loop(Vm *vm, Pool *p, i64 parts, PoolFn fn, void *ctx) {
  u32 others = pool_threads(vm) - 1;
  if ((i64)others > parts - 1) others = (u32)(parts - 1);
  if (!others) return false;
  pthread_mutex_lock(&p->lock); /* never held for long */
  bool mine = !p->busy && !p->stop;
  if (mine) {
    if (!vm->pooled) p->users++;
    vm->pooled = true;
    start(p, pool_threads(vm) - 1);
    if (others > p->count) others = p->count;
    mine = others > 0;
  }
  if (mine) {
    p->busy = true;
    p->fn = fn;
    p->ctx = ctx;
    p->parts = parts;
    p->share = 2 * (others + 1);
    p->halt = false;
    __atomic_store_n(&p->places, others, __ATOMIC_RELAXED);
    __atomic_store_n(&p->next, 0, __ATOMIC_RELAXED);
    if (others == 1) pthread_cond_signal(&p->wake);
    else pthread_cond_broadcast(&p->wake);
  }
  pthread_mutex_unlock(&p->lock);
  return mine;
}

static void close_loop(Pool *p) {
  pthread_mutex_lock(&p->lock);
  __atomic_store_n(&p->places, 0, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&p->lock);
  await(p, &p->inside, true);
  pthread_mutex_lock(&p->lock);
  while (p->inside) pthread_cond_wait(&p->done, &p->lock);
  p->busy = false;
  pthread_mutex_unlock(&p->lock);
}

WeftStatus pool_run(Vm *vm, i64 parts, bool whole, PoolFn fn, void *ctx) {
  Pool *p = &pool;
  WeftStatus status = WEFT_OK;
  bool shared = parts > 1 && open_loop(vm, p, parts, fn, ctx);
  for (i64 part = 0, end = shared ? pool_take(p, parts, &part) : parts; part < end;) {
    fn(ctx, part++);
    if (!whole && vm_poll(vm, 0) != WEFT_OK) {
      status = WEFT_ERROR;
      if (shared)
        __atomic_store_n(&p->next, parts, __ATOMIC_RELAXED), __atomic_store_n(&p->halt, true, __ATOMIC_RELAXED);
      break;
    }
    if (shared && part == end) end = pool_take(p, parts, &part);
  }
  if (shared) {
    close_loop(p);
    vm->counters.at[STAT_parallel]++;
  }
  return status;
}

void pool_leave(Vm *vm) {
  Pool *p = &pool;
  if (!vm->pooled) return;
  vm->pooled = false;
  pthread_mutex_lock(&p->lock);
  bool last = --p->users == 0 && !p->stop;
  u32 count = p->count;
  if (last) {
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
  }
  pthread_mutex_unlock(&p->lock);
  if (!last) return;
  for (u32 i = 0; i < count; i++) pthread_join(p->threads[i], NULL);
  pthread_mutex_lock(&p->lock);
  p->count = 0;
  p->stop = false;
  pthread_mutex_unlock(&p->lock);
}

i64 pool_part(const Vm *vm, i64 units) {
  enum { QUARTER = 4, PARTS = 64 };
  i64 least = vm->tunables.parallel_elements / QUARTER, part = units / PARTS;
  if (part < least) part = least;
  return part > 0 ? part : 1;
}

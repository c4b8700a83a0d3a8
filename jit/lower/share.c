/* share.c — repeated work has one body: kernels and native functions of a plan that are the same loops become one,
 * compiled once and called from each of their steps. `f(f(x))`, layers of one form, unrolled trips: what differs is
 * what they are called with. */
#include "jit/lower/compile.h"

#include <string.h>

static u64 mix(u64 h, const void *data, size_t bytes) {
  const u8 *p = data;
  for (u64 word; bytes >= sizeof word; p += sizeof word, bytes -= sizeof word) {
    memcpy(&word, p, sizeof word);
    h = (h ^ word) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
  }
  for (; bytes; p++, bytes--) h = (h ^ *p) * 0x100000001B3ull;
  return h;
}

/* Names of parameters say what stood there in the graph: they do not count. */
static LoopNode plain(const LoopFn *fn, u32 id) {
  LoopNode n = fn->nodes.data[id];
  if (n.op == LOOP_PARAM) n.list = 0;
  return n;
}

static u64 hash_of(const LoopFn *fn) {
  u64 h = 0xCBF29CE484222325ull;
  for (u32 i = 1; i < fn->nodes.count; i++) {
    LoopNode n = plain(fn, i);
    h = mix(h, &n, sizeof n);
  }
  h = mix(h, fn->body.data, sizeof *fn->body.data * fn->body.count);
  return mix(h, fn->list.data, sizeof *fn->list.data * fn->list.count);
}

static bool same_run(const void *a, u32 na, const void *b, u32 nb, size_t each) {
  return na == nb && (na == 0 || memcmp(a, b, na * each) == 0);
}

static bool same_loops(const LoopFn *a, const LoopFn *b) {
  if (a->kind != b->kind || a->is_extern || b->is_extern || a->nodes.count != b->nodes.count) return false;
  for (u32 i = 1; i < a->nodes.count; i++) {
    LoopNode x = plain(a, i), y = plain(b, i);
    if (memcmp(&x, &y, sizeof x) != 0) return false;
  }
  if (a->terms.count != b->terms.count) return false;
  for (u32 i = 0; i < a->terms.count; i++) { /* field by field: there is a gap in them */
    const LoopTerm *x = &a->terms.data[i], *y = &b->terms.data[i];
    if (x->coef != y->coef || x->stride[0] != y->stride[0] || x->stride[1] != y->stride[1] || x->var != y->var)
      return false;
  }
  return same_run(a->body.data, a->body.count, b->body.data, b->body.count, sizeof *a->body.data) &&
         same_run(a->list.data, a->list.count, b->list.data, b->list.count, sizeof *a->list.data) &&
         same_run(a->params.data, a->params.count, b->params.data, b->params.count, sizeof *a->params.data) &&
         same_run(a->results.data, a->results.count, b->results.data, b->results.count, sizeof *a->results.data);
}

/* The first of these functions that does the same; `at` itself when it is the first. */
static u32 first_like(void *const *selves, const u64 *hashes, u32 at) {
  const LoopFn *fn = selves[at];
  if (!toil(fn->module->toil, fn->nodes.count + at / 8)) return at;
  for (u32 i = 0; i < at; i++)
    if (hashes[i] == hashes[at] && same_loops(selves[i], selves[at])) return i;
  return at;
}

static u32 share_kernels(Plan *p, void **selves, u64 *hashes, u32 *to) {
  u32 kept = 0, count = p->kernels.count;
  for (u32 i = 0; i < count; i++) {
    selves[i] = p->kernels.data[i].self;
    hashes[i] = hash_of(selves[i]) ^ (u64)p->kernels.data[i].grain;
  }
  for (u32 i = 0; i < count; i++) {
    PlanKernel k = p->kernels.data[i];
    u32 first = p->kernels.data[i].flags & PK_CALLED ? i : first_like(selves, hashes, i);
    if (first == i) {
      to[i] = kept;
      p->kernels.data[kept++] = k;
      continue;
    }
    PlanKernel *one = &p->kernels.data[to[i] = to[first]];
    one->flags = ((one->flags | k.flags) & ~(u32)PK_COLD) | (one->flags & k.flags & PK_COLD);
    if (one->bytes_per_trip < k.bytes_per_trip) one->bytes_per_trip = k.bytes_per_trip;
    if (one->flops_per_trip < k.flops_per_trip) one->flops_per_trip = k.flops_per_trip;
  }
  p->kernels.count = kept;
  for (u32 i = 0; i < p->steps.count; i++)
    if (p->steps.data[i].op == STEP_kernel) p->steps.data[i].index = to[p->steps.data[i].index];
  return count - kept;
}

/* Each call keeps its own exits; the frames that it leaves carry the tag of the one function. */
static u32 share_natives(Plan *p, void **selves, u64 *hashes) {
  u32 shared = 0;
  for (u32 i = 0; i < p->natives.count; i++) {
    selves[i] = p->natives.data[i].self;
    hashes[i] = hash_of(selves[i]);
  }
  for (u32 i = 0; i < p->natives.count; i++) {
    PlanNative *n = &p->natives.data[i];
    u32 first = n->called ? i : first_like(selves, hashes, i);
    if (first == i || p->natives.data[first].nresults != n->nresults) continue;
    const LoopFn *one = selves[first];
    for (u32 k = 0; k < n->exit_count; k++) p->native_exits.data[n->exit_first + k].tag = one->tag;
    n->self = selves[first];
    shared++;
  }
  return shared;
}

bool plan_share(Plan *p, u32 *shared) {
  u32 most = p->kernels.count > p->natives.count ? p->kernels.count : p->natives.count;
  *shared = 0;
  if (most < 2) return true;
  Arena temp;
  arena_init(&temp, p->alloc);
  void **selves = arena_alloc(&temp, sizeof *selves * most);
  u64 *hashes = arena_alloc(&temp, sizeof *hashes * most);
  u32 *to = arena_alloc(&temp, sizeof *to * most);
  bool ok = selves && hashes && to;
  if (ok) *shared = share_kernels(p, selves, hashes, to) + share_natives(p, selves, hashes);
  arena_free(&temp);
  return ok;
}

/* cache.c — the compiled entries at one code location: lookup, eviction, invalidation (see guards.h). */
#include "guards/guards_inner.h"

#include <string.h>

void cache_init(GuardCache *c, u32 limit, void (*destroy)(Vm *vm, void *region)) {
  *c = (GuardCache){.limit = limit ? limit : 1, .destroy = destroy};
}

static void free_entry(Vm *vm, GuardCache *c, GuardEntry *e) {
  if (e->region && c->destroy) c->destroy(vm, e->region);
  guard_prog_free(vm, e->prog);
  mem_free(&vm->alloc, e, sizeof *e);
}

static void take_out(GuardCache *c, u32 at) {
  memmove(c->entries.data + at, c->entries.data + at + 1, sizeof *c->entries.data * (c->entries.count - at - 1));
  c->entries.count--;
}

void cache_free(Vm *vm, GuardCache *c) {
  for (u32 i = 0; i < c->entries.count; i++) free_entry(vm, c, c->entries.data[i]);
  vec_free(&vm->alloc, &c->entries);
  vec_free(&vm->alloc, &c->guard_failures);
  if (c->has_miss) guard_miss_free(vm, &c->last_miss);
  *c = (GuardCache){0};
}

/* Entries that were given up while they ran. */
static void sweep(Vm *vm, GuardCache *c) {
  for (u32 i = c->entries.count; i-- > 0;) {
    GuardEntry *e = c->entries.data[i];
    if (!e->invalid || e->running) continue;
    take_out(c, i);
    free_entry(vm, c, e);
  }
}

static void count_failure(Vm *vm, GuardCache *c, u32 kind) {
  while (c->guard_failures.count < GUARD_COUNT)
    if (!vec_push(&vm->alloc, &c->guard_failures, 0)) return; /* a counter less, nothing else */
  c->guard_failures.data[kind]++;
}

GuardEntry *cache_look_further(Vm *vm, GuardCache *c, Frame *f, u64 *slots, Value *scratch, u32 failed) {
  u32 first_failed = 0;
  GuardEntry *first = NULL;
  for (u32 i = 0; i < c->entries.count; i++) {
    GuardEntry *e = c->entries.data[i];
    if (e->invalid) continue;
    if (i || failed == GUARD_PASS) failed = guard_run(vm, f, e->prog, slots, scratch);
    if (failed == GUARD_PASS) {
      c->hits++;
      e->hits++;
      if (i && !e->general) {
        memmove(c->entries.data + 1, c->entries.data, sizeof *c->entries.data * i);
        c->entries.data[0] = e;
      }
      return e;
    }
    e->misses++;
    e->prog->set.guards.data[failed - 1].failures++;
    count_failure(vm, c, e->prog->set.guards.data[failed - 1].kind);
    if (!first) {
      first = e;
      first_failed = failed;
    }
  }
  c->misses++;
  if (!first || (c->has_miss && c->told_entry == first->id && c->told_guard == first_failed)) return NULL;
  c->told_entry = first->id;
  c->told_guard = first_failed;
  cache_tell_miss(vm, c, f);
  return NULL;
}

void cache_tell_miss(Vm *vm, GuardCache *c, const Frame *f) {
  if (c->has_miss) guard_miss_free(vm, &c->last_miss);
  c->has_miss = false;
  for (u32 i = 0; i < c->entries.count && !c->has_miss; i++)
    if (c->entries.data[i]->id == c->told_entry)
      c->has_miss = guard_miss_make(vm, f, c->entries.data[i]->prog, c->told_guard - 1, &c->last_miss);
}

void cache_teach(const GuardCache *c, const Names *names, const SizePool *sizes, GuardSet *set) {
  for (u32 i = 0; i < c->entries.count; i++) {
    const GuardProg *p = c->entries.data[i]->prog;
    for (u32 k = 0; k < p->set.guards.count; k++) {
      const Guard *old = &p->set.guards.data[k];
      for (u32 j = 0; j < set->guards.count && old->failures; j++) {
        Guard *x = &set->guards.data[j];
        if (x->kind != old->kind || x->failures >= old->failures) continue;
        Buf text;
        buf_init(&text, set->alloc);
        guard_describe(set, sizes, x, names, &text);
        if (!text.failed && strcmp(buf_text(&text), p->texts[k]) == 0) x->failures = old->failures;
        buf_free(&text);
      }
    }
  }
}

GuardEntry *cache_add(Vm *vm, GuardCache *c, GuardProg *prog, void *region, bool general) {
  sweep(vm, c);
  GuardEntry *e = mem_alloc_zero(&vm->alloc, sizeof *e);
  if (!e || !vec_push(&vm->alloc, &c->entries, e)) {
    mem_free(&vm->alloc, e, sizeof *e);
    if (region && c->destroy) c->destroy(vm, region);
    guard_prog_free(vm, prog);
    return NULL;
  }
  if (prog->nfills > c->need_slots) c->need_slots = prog->nfills;
  if (prog->scratch > c->need_scratch) c->need_scratch = prog->scratch;
  e->prog = prog;
  e->region = region;
  e->filled = prog->nfills;
  e->packs = prog->nrows;
  e->id = ++c->next_id;
  e->general = general;
  if (!general) {
    memmove(c->entries.data + 1, c->entries.data, sizeof *c->entries.data * (c->entries.count - 1));
    c->entries.data[0] = e;
  }
  for (u32 i = c->entries.count; c->entries.count > c->limit && i-- > !general;) {
    GuardEntry *old = c->entries.data[i];
    c->storm = true;
    if (old->running || old == e) continue;
    take_out(c, i);
    free_entry(vm, c, old);
  }
  return e;
}

void cache_invalidate(Vm *vm, GuardCache *c, GuardEntry *e) {
  e->invalid = true;
  sweep(vm, c);
}

void cache_invalidate_code(Vm *vm, GuardCache *c, u64 code_id) {
  for (u32 i = 0; i < c->entries.count; i++) {
    GuardEntry *e = c->entries.data[i];
    if (guard_prog_names_code(e->prog, code_id) || (c->runs_code && e->region && c->runs_code(e->region, code_id)))
      e->invalid = true;
  }
  sweep(vm, c);
}

void cache_print(const GuardCache *c, const Sources *sources, Buf *out) {
  for (u32 i = 0; i < c->entries.count; i++) {
    const GuardEntry *e = c->entries.data[i];
    buf_printf(out, "entry %u: %llu hits, %llu misses%s\n", e->id, (unsigned long long)e->hits,
               (unsigned long long)e->misses, e->invalid ? ", given up" : "");
    guard_prog_print(e->prog, sources, out);
  }
  if (c->has_miss) {
    buf_puts(out, "last miss: ");
    guard_miss_print(&c->last_miss, sources, out);
    buf_putc(out, '\n');
  }
}

/* install.c — the tracer of a VM: made and freed with it, its clock and backends; functions that are freed. */
#include "tracer/report/explain.h"
#include "tracer/report/export.h"
#include "tracer/record/force.h"
#include "tracer/tier/tier.h"
#include "tracer/tier/places.h"
#include "tracer/tier/decide.h"

#include <string.h>

void tracer_ignore_clock(Tracer *t) {
  Tunables *tun = &t->vm->tunables;
  tun->watch_percent = tun->pace_percent = tun->payback_calls = tun->compile_gain = 0;
  tun->compile_ms = 1000000;
}

void tracer_use_clock(Tracer *t, u64 (*clock)(void *context), void *context) {
  t->clock = clock;
  t->clock_context = context;
  t->began = tracer_now(t);
}

typedef struct FreedCode {
  Vm *vm;
  const Code *code;
} FreedCode;

static void invalidate_place(void *ctx, Place *p) {
  FreedCode *f = ctx;
  u32 before = p->cache.entries.count;
  cache_invalidate_code(f->vm, &p->cache, f->code->id);
  if (p->cache.entries.count < before) p->gone = f->code->proto->name;
}

static void forget_code(Vm *vm, PlaceTable *t, const Code *code) {
  for (u32 i = 0; i < t->slot_count; i++)
    for (Place **at = &t->slots[i]; *at;) {
      Place *p = *at;
      if (p->code != code) {
        at = &p->next;
        continue;
      }
      *at = p->next;
      t->count--;
      watch_forget(tracer_of(vm), p);
      place_free(vm, p);
    }
}

typedef struct Unmarked {
  Vm *vm;
  const Code *code;
} Unmarked;

static void drop_entries(void *ctx, Place *p) {
  Unmarked *u = ctx;
  if (p->code != u->code) {
    cache_invalidate_code(u->vm, &p->cache, u->code->id);
    return;
  }
  for (u32 i = p->cache.entries.count; i-- > 0;)
    if (i < p->cache.entries.count) cache_invalidate(u->vm, &p->cache, p->cache.entries.data[i]);
  p->eager = p->wakes = false;
  p->tries = 0;
  p->sleep = 0;
}

void places_forget(Vm *vm, Tracer *t, const Code *code) {
  Unmarked u = {vm, code};
  places_each(&t->places, drop_entries, &u);
}

void tier_code_freed(Vm *vm, Code *code) {
  Tracer *t = tracer_of(vm);
  if (!t) return;
  log_gather(t, code);
  marks_code_freed(t, code);
  for (Exported *x = t->exports; x; x = x->next) {
    FreedCode gone = {vm, code};
    forget_code(vm, &x->places, code);
    places_each(&x->places, invalidate_place, &gone);
  }
  FreedCode f = {vm, code};
  forget_code(vm, &t->places, code);
  places_each(&t->places, invalidate_place, &f);
  if (t->private_places) {
    forget_code(vm, t->private_places, code);
    places_each(t->private_places, invalidate_place, &f);
  }
}

void tier_point(Vm *vm) {
  Tracer *t = tracer_of(vm);
  for (u32 i = 0; t && i < t->log.events.count; i++) sources_point(&vm->sources, t->log.events.data[i].span.file);
}

void tier_vm_freed(Vm *vm) {
  Tracer *t = tracer_of(vm);
  if (!t) return;
  log_drop_codes(vm, &t->log);
  places_free(vm, &t->places);
  for (u32 i = 0; i < t->backend_count; i++)
    if (t->backends[i]->remove) t->backends[i]->remove(vm, t->backends[i]);
  mem_free(&vm->alloc, t->slots, sizeof *t->slots * t->slot_cap);
  log_free(vm, &t->log);
  demand_free(vm, &t->demand);
  vm->tier_state = NULL;
  vm->tier = NULL;
  mem_free(&vm->alloc, t, sizeof *t);
}

enum { SLOTS_FIRST = 65536 };

WeftStatus tracer_install(Vm *vm) {
  Tracer *t = mem_alloc_zero(&vm->alloc, sizeof *t);
  if (!t) return WEFT_ERROR;
  t->vm = vm;
  log_init(&t->log);
  t->began = t->log.began;
  t->began_ticks = tier_ticks(t);
  if (!tier_slots(t, SLOTS_FIRST)) {
    mem_free(&vm->alloc, t, sizeof *t);
    return WEFT_ERROR;
  }
  vm->tier_state = t;
  vm->tier = &tier_hooks;
  demand_install(vm);
  return WEFT_OK;
}

bool tracer_add_backend(Vm *vm, const Backend *b) {
  Tracer *t = tracer_of(vm);
  if (t->backend_count == TRACER_BACKENDS) return false;
  t->backends[t->backend_count++] = b;
  return true;
}

bool tracer_force(Vm *vm, const char *what) {
  Tunables *tun = &vm->tunables;
  bool threads = what && strncmp(what, "threads", 7) == 0, large = what && strncmp(what, "large", 5) == 0;
  if (!threads && !large) return force_parse(&tracer_of(vm)->force, what);
  if (threads) tun->parallel_elements = 2; /* whatever is not a single trip */
  if (large) { /* whatever is not empty: behind each operation the rest is compiled */
    tun->large_units = vm->large_left = -1;
    tun->large_save_ps = tun->pace_lent_ns = (i64)1 << 50;
  }
  return true;
}

static const Backend *find_backend(const Tracer *t, const char *name) {
  for (u32 i = 0; i < t->backend_count; i++)
    if (strcmp(t->backends[i]->name, name) == 0) return t->backends[i];
  return NULL;
}

bool tracer_use_backend(Vm *vm, const char *name) {
  Tracer *t = tracer_of(vm);
  bool off = strcmp(name, "eager") == 0, named = strncmp(name, "verify:", 7) == 0;
  const Backend *b = off ? NULL : find_backend(t, named ? "verify" : name);
  const Backend *verified = find_backend(t, named ? name + 7 : "mir");
  if ((!b && !off) || (named && (!verified || verified == b))) return false;
  t->backend = b;
  t->verified = verified;
  return true;
}

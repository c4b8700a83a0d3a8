/* places.c — the places in code where regions are entered: a table by code, pc and kind of start; and behind calls. */
#include "lang/mechanisms.h"
#include "tracer/report/explain.h"
#include "tracer/tier/places.h"

#include <string.h>

static void region_destroy(Vm *vm, void *region) { region_free(vm, region); }

static u32 place_hash(const Code *code, u32 pc, u32 start) {
  /* not a threshold: odd numbers that spread the bits */
  return (u32)((code->id * 0x9E3779B97F4A7C15ull) >> 32) ^ (pc * 0x9E3779B1u) ^ (start * 0x61u);
}

Place *place_find(const PlaceTable *t, const Code *code, u32 pc, u32 start) {
  if (!t->slot_count) return NULL;
  for (Place *p = t->slots[place_hash(code, pc, start) & (t->slot_count - 1)]; p; p = p->next)
    if (p->code == code && p->pc == pc && p->start == start) return p;
  return NULL;
}

static bool places_grow(Vm *vm, PlaceTable *t) {
  u32 count = t->slot_count ? t->slot_count * 2 : 1 << 6;
  Place **slots = mem_alloc_zero(&vm->alloc, sizeof *slots * count);
  if (!slots) return false;
  for (u32 i = 0; i < t->slot_count; i++)
    for (Place *p = t->slots[i], *next; p; p = next) {
      next = p->next;
      Place **at = &slots[place_hash(p->code, p->pc, p->start) & (count - 1)];
      p->next = *at;
      *at = p;
    }
  mem_free(&vm->alloc, t->slots, sizeof *slots * t->slot_count);
  t->slots = slots;
  t->slot_count = count;
  return true;
}

Place *place_get(Vm *vm, PlaceTable *t, Code *code, u32 pc, RecordStart start) {
  Place *p = place_find(t, code, pc, start);
  if (p) return p;
  if (t->count >= t->slot_count && !places_grow(vm, t)) return NULL;
  p = mem_alloc_zero(&vm->alloc, sizeof *p);
  if (!p) return NULL;
  p->code = code;
  p->pc = pc;
  p->start = (u8)start;
  cache_init(&p->cache, (u32)vm->tunables.cache_limit, region_destroy);
  Place **at = &t->slots[place_hash(code, pc, start) & (t->slot_count - 1)];
  p->next = *at;
  *at = p;
  t->count++;
  return p;
}

void place_free(Vm *vm, Place *p) {
  cache_free(vm, &p->cache);
  for (u32 i = 0; i < p->subjects.count; i++)
    mem_free(&vm->alloc, p->subjects.data[i].text, strlen(p->subjects.data[i].text) + 1);
  vec_free(&vm->alloc, &p->subjects);
  mem_free(&vm->alloc, p, sizeof *p);
}

void places_free(Vm *vm, PlaceTable *t) {
  for (u32 i = 0; i < t->slot_count; i++)
    for (Place *p = t->slots[i], *next; p; p = next) {
      next = p->next;
      place_free(vm, p);
    }
  mem_free(&vm->alloc, t->slots, sizeof *t->slots * t->slot_count);
  *t = (PlaceTable){0};
}

void places_each(const PlaceTable *t, void (*each)(void *ctx, Place *p), void *ctx) {
  for (u32 i = 0; i < t->slot_count; i++)
    for (Place *p = t->slots[i], *next; p; p = next) {
      next = p->next;
      each(ctx, p);
    }
}

typedef struct EachRegion {
  const Code *code;
  void (*each)(void *ctx, const Place *p, const GuardEntry *e);
  void *ctx;
} EachRegion;

static void each_place(void *ctx, Place *p) {
  EachRegion *e = ctx;
  if (p->code != e->code) return;
  for (u32 i = 0; i < p->cache.entries.count; i++) e->each(e->ctx, p, p->cache.entries.data[i]);
}

void tracer_regions(Vm *vm, const Code *code, void (*each)(void *ctx, const Place *p, const GuardEntry *e), void *ctx) {
  EachRegion e = {code, each, ctx};
  places_each(&tracer_of(vm)->places, each_place, &e);
}

/* ---- behind calls -------------------------------------------------------------------------------------------
 *
 * A region that breaks at a call goes on behind it, in a continuation. Where that region is not worth its while, as
 * there is little before the call, or loses against the interpreter, nobody would ask for the continuation: a
 * function that halves its argument, calls itself twice and puts the results together does its work behind its
 * calls. So the call sites in the frames of such a break are marked; frames of their code ask the tier when a call
 * returns, and what follows is a place like any other, sampled, compiled, weighed and demoted. A site whose place is
 * demoted for good is not asked any more, and a code without such sites makes frames as it did before. */

static bool await_call(Tracer *t, Code *code, u32 pc) {
  Ins ins = code->proto->code[pc];
  u32 site = code->site_of_pc[pc];
  if ((ins_op(ins) != BC_call && ins_op(ins) != BC_callx) || !site) return false;
  SiteState *s = &code->sites[site - 1];
  if (s->flags & (SITE_AWAITED | SITE_COLD)) return false;
  s->flags |= SITE_AWAITED;
  if (code->awaited++) return true;
  for (u32 i = 0; i < t->vm->frame_count; i++)
    if (t->vm->frames[i].code == code) t->vm->frames[i].flags |= FRAME_AWAITS;
  return true;
}

/* The trips of a loop take what they take behind the break as well: no other sample is waited for. */
static void tell_rest(Tracer *t, const Place *p, Code *code, u32 pc) {
  if (p->start != RECORD_LOOP || p->code != code || !p->rent.each_ns) return;
  Place *rest = place_get(t->vm, &t->places, code, pc + 1, RECORD_RESUME);
  if (!rest || rest->eager || rest->cache.entries.count || rest->rent.passes) return;
  rest->rent.each_ns = p->rent.each_ns;
  rest->rent.told = true;
}

void await_breaks(Tracer *t, const Place *p, const Graph *g) {
  const ExitTable *x = &g->exits;
  if (t->forced || t->private_places || t->force.kind || !MECHANISM(t->vm, breaks_are_awaited)) return;
  for (u32 i = 0; i < x->exits.count; i++) {
    const Exit *e = &x->exits.data[i];
    for (u32 k = 0; e->kind == EXIT_break && k < e->frame_count; k++) {
      const ExitFrame *f = &x->frames.data[e->frame_first + k];
      Code *code = g->frames.data[f->frame].code;
      if (code && await_call(t, code, f->pc) && !k) tell_rest(t, p, code, f->pc);
    }
  }
}

bool await_here(Tracer *t, Frame *f) {
  Code *code = f->code;
  u32 site = code->awaited ? code->site_of_pc[f->pc - 1] : 0;
  if (!code->awaited) f->flags &= (u16)~FRAME_AWAITS;
  if (!site || t->private_places || t->demand.strict || t->demand.whole) return false;
  SiteState *s = &code->sites[site - 1];
  if (!(s->flags & SITE_AWAITED)) return false;
  Place *p = s->entry ? s->entry : place_get(t->vm, &t->places, code, f->pc, RECORD_RESUME);
  s->entry = p;
  if (!p || !p->eager || p->wakes || p->cache.entries.count) return p;
  s->flags = (u16)((s->flags & ~SITE_AWAITED) | SITE_COLD);
  code->awaited--;
  return false;
}

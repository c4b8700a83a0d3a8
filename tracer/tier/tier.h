/* tier.h — the tier itself: hooks that the interpreter calls (tier.c), its parts in a VM (install.c), demands
 * (demand.c). */
#ifndef WEFT_TRACER_TIER_H
#define WEFT_TRACER_TIER_H

#include "tracer/tracer.h"

extern const TierHooks tier_hooks;
bool tier_slots(Tracer *t, u32 n) MUST_USE; /* room for so many above slot_top; false when memory was refused */
/* The processor's own counter, which is cheaper to read than the clock; 0 where there is none, or the clock is another
 * one. */
static inline u64 tier_ticks(const Tracer *t) {
#ifdef __x86_64__
  return t->clock ? 0 : __builtin_ia32_rdtsc();
#else
  (void)t;
  return 0;
#endif
}

/* ---- install.c ---- */
void tier_code_freed(Vm *vm, Code *code);
void tier_point(Vm *vm);
void tier_vm_freed(Vm *vm);

/* Entries of a function, and those that run it, are given up: they were made before it was marked. */
void places_forget(Vm *vm, Tracer *t, const Code *code);
void marks_code_freed(Tracer *t, const Code *code);

/* ---- demand.c ---- */
/* Calls f with everything hot; `whole`: who asks that it be captured without a break, or NULL. */
WeftStatus demand_call(Tracer *t, const char *whole, Value f, const Value *args, const Name *names, u32 nargs,
                       Value *out) MUST_USE;

#endif

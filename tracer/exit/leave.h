/* leave.h — leaving a region: the frames become what its exit says (leave.c). */
#ifndef WEFT_TRACER_LEAVE_H
#define WEFT_TRACER_LEAVE_H

#include "tracer/tracer.h"

/* Makes the frames what the exit says. The frame that entered is the top one; the bound slots are used up.
 * `*returns`: it returned a value. */
WeftStatus region_leave(Tracer *t, Region *region, u32 exit, u64 *slots, bool *returns) MUST_USE;
static inline void leave_quick(Vm *vm, const RegionExit *e, const u64 *slots) { /* an exit that is known to be quick */
  Value v = e->returned;
  v.bits = slots[e->slot];
  vm_return(vm, v);
}

#endif

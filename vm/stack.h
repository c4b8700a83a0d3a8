/* stack.h — registers and frames of a VM. Registers lie in segments that never move, so that pointers into a
 * frame stay valid while it lives; the vector of frames may move. */
#ifndef WEFT_VM_STACK_H
#define WEFT_VM_STACK_H

#include "vm/vm.h"

typedef struct Segment {
  struct Segment *prev, *next;
  size_t count;     /* values in it */
  Value *saved_top; /* vm->stack_top before this segment was entered */
  Value values[];
} Segment;

bool stack_init(Vm *vm) MUST_USE;
void stack_free(Vm *vm);
Value *stack_enter_segment(Vm *vm, u32 n); /* NULL when refused (error raised) */
void stack_leave_segment(Vm *vm);
bool frames_grow(Vm *vm) MUST_USE; /* room for one more; the depth limit is checked here */

/* n registers, uninitialised. */
static inline Value *stack_take(Vm *vm, u32 n) {
  Value *base = vm->stack_top;
  if (UNLIKELY((size_t)(vm->stack_end - base) < n)) return stack_enter_segment(vm, n);
  vm->stack_top = base + n;
  return base;
}

static inline void stack_give_back(Vm *vm, Value *base) {
  vm->stack_top = base;
  if (UNLIKELY(base == vm->stack && ((const Segment *)vm->stack_segments)->prev)) stack_leave_segment(vm);
}

#endif

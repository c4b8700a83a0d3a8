/* registers.h — writing and emptying registers, for the files that carry out instructions. */
#ifndef WEFT_VM_REGISTERS_H
#define WEFT_VM_REGISTERS_H

#include "vm/vm.h"

/* Consumes v; what was there is dropped. */
static inline void set_register(Vm *vm, Value *at, Value v) {
  Value old = *at;
  *at = v;
  if (UNLIKELY(old.flags & VF_COUNTED)) value_drop(vm, old);
}

/* Empties a run of registers. */
static inline void drop_run(Vm *vm, Value *values, u32 count) {
  for (u32 i = 0; i < count; i++) {
    Value v = values[i];
    values[i] = value_nil();
    value_drop(vm, v);
  }
}

static inline void kill_one(Vm *vm, Value *base, Ins ins, u32 k) {
  if ((k & INS_CONST) || k == ins_a(ins)) return;
  Value v = base[k];
  if (!(v.flags & VF_COUNTED)) return;
  base[k] = value_nil();
  value_drop(vm, v);
}

/* Empties the registers of operands that die; the one that was written is spared. */
static __attribute__((noinline, unused)) void kill_slow(Vm *vm, Value *base, Ins ins) {
  u32 flags = ins_flags(ins);
  if (flags & INS_B_DIES) kill_one(vm, base, ins, ins_b(ins));
  if (flags & INS_C_DIES) kill_one(vm, base, ins, ins_c(ins));
}
static inline void kill_operands(Vm *vm, Value *base, Ins ins) {
  if (ins_flags(ins) & (INS_B_DIES | INS_C_DIES)) kill_slow(vm, base, ins);
}

#endif

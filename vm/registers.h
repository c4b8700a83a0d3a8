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

/* Empties the registers of operands that die; the one that was written is spared. */
static inline void kill_slow(Vm *vm, Value *base, Ins ins) {
  u32 flags = ins_flags(ins), k[2] = {ins_b(ins), ins_c(ins)};
  for (u32 i = 0; i < 2; i++) {
    if (!(flags & (i ? INS_C_DIES : INS_B_DIES)) || (k[i] & INS_CONST) || k[i] == ins_a(ins)) continue;
    Value v = base[k[i]];
    if (!(v.flags & VF_COUNTED)) continue;
    base[k[i]] = value_nil();
    value_drop(vm, v);
  }
}
static inline void kill_operands(Vm *vm, Value *base, Ins ins) {
  if (ins_flags(ins) & (INS_B_DIES | INS_C_DIES)) kill_slow(vm, base, ins);
}

#endif

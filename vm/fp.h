/* fp.h — the floating-point state that Weft computes in: round to nearest, subnormals kept, nothing traps. It is
 * set when the host enters a VM and the host's own is put back when the VM returns. */
#ifndef WEFT_VM_FP_H
#define WEFT_VM_FP_H

#include "vm/vm.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { FP_STATE = 0x1f80, FP_STICKY = 0x3f }; /* MXCSR; the low bits only report */
static inline u64 fp_read(void) { return _mm_getcsr() & ~(u32)FP_STICKY; }
static inline void fp_write(u64 state) { _mm_setcsr((u32)state); }
#elif defined(__aarch64__)
enum { FP_STATE = 0 };
static inline u64 fp_read(void) {
  u64 state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
static inline void fp_write(u64 state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
#else
#error "the floating-point control of this processor is not known"
#endif

static inline u64 fp_enter(const Vm *vm) { /* gives what fp_leave wants back */
  if (vm->native_depth) return FP_STATE; /* already inside */
  u64 host = fp_read();
  if (host != FP_STATE) fp_write(FP_STATE);
  return host;
}
static inline void fp_leave(u64 host) {
  if (host != FP_STATE) fp_write(host);
}

#endif

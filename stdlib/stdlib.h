/* stdlib.h — facade of the built-in operations: eager kernels by family, one function per row of ops.def.
 *
 * What the room is for: run one operation on values, at once, on the CPU. It knows the VM's values and errors and
 * the rules of lang/; nothing here knows of graphs, traces or tapes, which call it through vm->ops.
 * The way of an operation: `eager_NAME` reads its arguments (args.h), asks the rules for dtype and shape, takes or
 * makes the result's memory, and runs strips (strips.h) over operands read in row-major order (walk.h). */
#ifndef WEFT_STDLIB_STDLIB_H
#define WEFT_STDLIB_STDLIB_H

#include "vm/vm.h"

/* Every row has its kernel; a row without one in this build stands in missing.def with the reason. */
#define OP(name, ...) WeftStatus eager_##name(Vm *vm, Value *args, Value *out) MUST_USE;
#include "lang/ops.def"
#undef OP

typedef enum StripLevel { STRIPS_BASE, STRIPS_AVX2, STRIPS_AVX512, STRIPS_BEST } StripLevel;

/* State of the room in one VM. */
typedef struct Stdlib {
  const struct StripTable *strips;  /* the build of the strip kernels for this processor */
  /* result dtype when all operands are dense arrays of this dtype and shape, which is also the dtype computed in;
   * DT_NONE: the general path. By operation and dtype; a row is made when it is first asked for, and then has a 1 at
   * DT_NONE: all rows together would be four fifths of what a VM costs */
  u8 (*direct)[16];
  u32 blas_threads; /* that the host asked for; 0: it did not */
  struct RegexState *regex; /* compiled patterns (text/regex.c), NULL: none yet */
  struct FftState *fft;     /* plans (fft/fft.c), NULL: none yet */
} Stdlib;

static inline Stdlib *stdlib_of(Vm *vm) { return (Stdlib *)vm->stdlib_state; }

u32 stdlib_direct(Stdlib *s, u32 op, u32 dtype); /* makes the row of an operation */
static inline u32 direct_of(Stdlib *s, u32 op, u32 dtype) {
  const u32 result = s->direct[op][dtype];
  return LIKELY(result || s->direct[op][0]) ? result : stdlib_direct(s, op, dtype);
}

/* Fills vm->ops and vm->stdlib_state. Error: memory. */
WeftStatus stdlib_install(Vm *vm) MUST_USE;
void stdlib_remove(Vm *vm); /* frees vm->stdlib_state */

/* Another build of the strip kernels, for tests; false when the processor cannot run it. All give the same bits. */
bool stdlib_set_level(Vm *vm, StripLevel level) MUST_USE;

/* Appends a value as its literal; text bare when `bare` (as print shows it). */
void format_value(Vm *vm, Value v, bool bare, Buf *out);
/* Is it what the functions of the module plot give? */
bool is_drawing(Vm *vm, Value v);
bool utf8_valid(const char *s, size_t n);

enum { FILE_STOPPED = -1 };
/* Puts bytes at a path. A regular file is replaced as a whole and keeps mode and owner, so that a full disk leaves
 * the old one; links are followed; a file of several names, or in a folder where nothing can be made, is written in
 * place; pipes and devices are written to. `vm`, or NULL, is asked whether to go on while a pipe is waited for. 0,
 * an errno, or FILE_STOPPED: the VM says why. */
int file_put(Vm *vm, const char *path, const char *data, size_t len) MUST_USE;

/* Chooses OpenBLAS' kernels by this processor, since old releases do not know new ones. Sets an environment
 * variable that the library reads when it is loaded, so it is the program's to call, or a host's that agrees. */
void stdlib_choose_blas_core(void);

#endif

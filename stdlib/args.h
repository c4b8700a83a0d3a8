/* args.h — reading the arguments of an operation. Each reader raises its error, naming the operation and the
 * parameter, and gives WEFT_ERROR. `param` is the position in the signature. Values are borrowed. */
#ifndef WEFT_STDLIB_ARGS_H
#define WEFT_STDLIB_ARGS_H

#include <math.h>

#include "vm/vm.h"

/* Leaves with the error of a fallible call that needs no clean-up. */
#define TRY(call)                  \
  do {                             \
    if ((call) != WEFT_OK) return WEFT_ERROR; \
  } while (0)
#define TRY_RULE(vm, op, err, call) \
  do {                              \
    if (!(call)) return vm_error_rule(vm, op, err); \
  } while (0)

/* A number for the text of an error: the sign of a NaN is nobody's. */
static inline f64 args_shown(f64 x) { return x == x ? x : (f64)NAN; }

static inline bool args_given(Value v) { return v.kind != V_HOLE && v.kind != V_NIL; }

WeftStatus args_dtype_supported(Vm *vm, u32 op, u32 dtype) MUST_USE;

/* A number or an array on the CPU whose dtype has kernels. */
WeftStatus args_array(Vm *vm, u32 op, u32 param, Value v) MUST_USE;
void type_of_value(Value v, ArrayType *out); /* v: V_NUM or V_ARRAY */

WeftStatus args_bool(Vm *vm, u32 op, u32 param, Value v, bool *out) MUST_USE; /* *out stays when not given */
/* a rank-0 integer; stays when not given */
WeftStatus args_int(Vm *vm, u32 op, u32 param, Value v, i64 *out) MUST_USE;
WeftStatus args_size(Vm *vm, u32 op, u32 param, Value v, i64 *out) MUST_USE;  /* the same, not negative */
WeftStatus args_f64(Vm *vm, u32 op, u32 param, Value v, f64 *out) MUST_USE;   /* a rank-0 number */
/* one with kernels; stays when not given */
WeftStatus args_dtype(Vm *vm, u32 op, u32 param, Value v, u32 *out) MUST_USE;
WeftStatus args_device(Vm *vm, u32 op, u32 param, Value v) MUST_USE;          /* only the CPU is served here */
/* An integer, a list or range of integers, a rank-1 integer array: at most cap of them. *single: it was no list. */
WeftStatus args_ints(Vm *vm, u32 op, u32 param, Value v, i64 *out, u32 cap, u32 *n, bool *single) MUST_USE;
/* The same, as many as there are: *out has room for *n + 1 of them; the caller frees it (mem_free). */
WeftStatus args_ints_all(Vm *vm, u32 op, u32 param, Value v, i64 **out, u32 *n, bool *single) MUST_USE;
WeftStatus args_shape(Vm *vm, u32 op, u32 param, Value v, u32 *rank, i64 *dims) MUST_USE; /* sizes >= 0 */
/* nil or not given: all axes. */
WeftStatus args_axes(Vm *vm, u32 op, u32 param, Value v, u32 rank, u32 *mask) MUST_USE;
/* One of the words, NULL-terminated; stays when not given. */
WeftStatus args_choice(Vm *vm, u32 op, u32 param, Value v, const char *const *words, u32 *out) MUST_USE;
/* The items of a list of arrays and numbers (or of an array: its slices along axis 0): borrowed, in *items. */
WeftStatus args_list(Vm *vm, u32 op, u32 param, Value v, const Value **items, u32 *n) MUST_USE;

enum { DESCRIBED = 160 }; /* bytes that hold what args_describe writes */
/* what was given, for messages: "text", "an array of f64 and shape (3,)", "a list" */
void args_describe(Value v, char *out, size_t cap);
/* What for could walk over; *count as vm_seq_open has it. */
WeftStatus args_walked(Vm *vm, u32 op, u32 param, Value v, u64 *count) MUST_USE;
WeftStatus args_function(Vm *vm, u32 op, u32 param, Value v) MUST_USE;
/* "sum: axis must be an integer, got text". */
WeftStatus args_error(Vm *vm, u32 op, u32 param, Value got, const char *needs) MUST_USE;
const char *param_name(u32 op, u32 param, char *buf); /* buf: 32 bytes */

/* v (a number) as dtype. A weak integer must fit an integer dtype. */
WeftStatus num_fit(Vm *vm, u32 op, Value v, u32 dtype, Value *out) MUST_USE; /* for c128, which is no V_NUM, v itself */

/* Fuel and interrupts for work over n elements; call before the work, or between parts of it. Small parts cost no fuel;
 * the clock is looked at when many of them came together. */
static inline WeftStatus kernel_poll(Vm *vm, i64 n) {
  enum { TOGETHER = 1 << 17 };
  if (n >= 1024) return vm_poll(vm, (u64)n >> 10);
  const u32 more = (u32)n + 1;
  return LIKELY((vm->walked += more) % TOGETHER >= more) ? WEFT_OK : vm_look(vm);
}

/* Work over n elements in parts of some milliseconds, with a look at the clock between two of them:
 *
 *     Polled p = parts_in(vm, n, PART_ELEMENTS);
 *     while (parts_next(&p))
 *       for (i64 i = p.from; i < p.to; i++) …
 *     return p.status; // WEFT_ERROR: a look raised, and the rest is missing
 *
 * It uses no fuel: kernel_poll asks for that before. */
enum { PART_ELEMENTS = 1 << 18 };
typedef struct Polled {
  Vm *vm;
  i64 n, each;
  i64 from, to; /* of this part */
  WeftStatus status;
} Polled;
static inline Polled parts_in(Vm *vm, i64 n, i64 each) {
  return (Polled){.vm = vm, .n = n, .each = each < 1 ? 1 : each};
}
static inline bool parts_next(Polled *p) {
  if (p->to >= p->n || (p->to && (p->status = vm_poll(p->vm, 0)) != WEFT_OK)) return false;
  p->from = p->to;
  p->to = p->n - p->from < p->each ? p->n : p->from + p->each;
  return true;
}
WeftStatus copy_polled(Vm *vm, void *to, const void *from, size_t bytes) MUST_USE; /* memcpy in such parts */

/* (shape texts for messages) */
typedef struct ShapeText {
  char s[96];
} ShapeText;
ShapeText shape_text(const ArrayType *t);

#endif

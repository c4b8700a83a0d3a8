/* plan_run.h — a run of a plan, for the files that run its steps. */
#ifndef WEFT_JIT_PLAN_RUN_H
#define WEFT_JIT_PLAN_RUN_H

#include <string.h>

#include "jit/plan/plan_inner.h"

/* How a step ends. GONE: the run is over, `exit` and `status` say how. */
typedef enum Went { GOES_ON, GONE } Went;

typedef struct Run {
  Vm *vm;
  Region *region;
  const Plan *p;
  u64 *slots;
  u32 exit;
  WeftStatus status;
  Array *spare; /* owned: a small array that the next product may be written over, or NULL */
} Run;

static inline Array *array_at(const Run *r, u32 slot) { return (Array *)(uintptr_t)r->slots[slot]; }

static inline Value array_value(Array *a) {
  Value v = value_obj(V_ARRAY, a);
  v.dtype = (u8)array_dtype(a);
  return v;
}

/* A number or array of a slot. Borrowed. */
static inline Value slot_value(const Run *r, u32 slot) {
  const PlanSlot *s = &r->p->slots.data[slot];
  if (s->array) {
    Value a = array_value(array_at(r, slot));
    if (s->weak) a.flags |= VF_WEAK; /* c128 of rank 0 */
    return a;
  }
  return (Value){.kind = V_NUM, .dtype = s->dtype, .flags = s->weak ? VF_WEAK : 0, .bits = r->slots[slot]};
}

static inline bool is_borrowed(const Run *r, u32 slot) { return r->p->slots.data[slot].borrowed; }

/* The slot takes this count; what was in it is given up. */
static inline void set_array(Run *r, u32 slot, Array *a) {
  Array *old = array_at(r, slot);
  r->slots[slot] = (u64)(uintptr_t)a;
  if (old && --old->head.refs == 0) value_destroy(r->vm, array_value(old));
}

static inline u64 word_of_array(const Run *r, const PlanArg *a) {
  switch (a->kind) {
    case PA_const: return (u64)a->imm;
    case PA_data:
      return r->p->slots.data[a->slot].array ? (u64)(uintptr_t)array_at(r, a->slot)->data
                                             : (u64)(uintptr_t)&r->slots[a->slot];
    case PA_out: return (u64)(uintptr_t)&r->slots[a->slot];
    case PA_dim: return (u64)array_dims(array_at(r, a->slot))[a->axis];
    case PA_stride: {
      Array *x = array_at(r, a->slot);
      return array_dims(x)[a->axis] == 1 ? 0 : (u64)array_strides(x)[a->axis];
    }
    case PA_size: return (u64)array_at(r, a->slot)->size;
    default: return 0;
  }
}

static inline u64 word_of(const Run *r, const PlanArg *a) {
  return LIKELY(a->kind == PA_slot) ? r->slots[a->slot] : word_of_array(r, a);
}

static inline bool dims_of(const Run *r, const PlanStep *s, i64 *dims) {
  const PlanArg *a = &r->p->args.data[s->arg];
  u32 rank = s->nargs;
  if (UNLIKELY(rank > ARRAY_MAX_RANK)) return false;
  for (u32 d = 0; d < rank; d++) dims[d] = (i64)word_of(r, &a[d]);
  return true;
}

/* The sizes and operands of what a step is told beside its arguments. */
typedef struct AttrRun {
  Run *r;
  const PlanAttrSize *sizes;
  u32 nsizes;
  const PlanStep *step; /* index, update: operand k is argument k - 1 */
} AttrRun;

WeftStatus plan_attr_size(void *ctx, Dim d, u32 position, i64 *out);
WeftStatus plan_attr_operand(void *ctx, u32 number, Value *out);
/* One parameter of an extern operation, from argument *at on. *out owned. */
WeftStatus plan_parameter(Run *r, const PlanStep *s, u32 *at, Value *out);

/* Leaves by an exit: slots that it binds keep their counts, the others are emptied. */
Went plan_leave(Run *r, u32 exit, WeftStatus status);
Went plan_leave_raised(Run *r, u32 exit);
/* A result of eager code into a slot (consumed). False: it is not what the plan expects. */
bool plan_take_result(Run *r, u32 slot, Value v);
Went plan_make_array(Run *r, const PlanStep *s);
/* The arguments of a kernel; false: code for the processor and an array that lies elsewhere. */
bool plan_words_of(Run *r, const PlanKernel *k, const PlanArg *a, u32 count, u64 *words);
/* A long run whose results no cache holds, so that they are stored non-temporally? By blocks, or by the code that
 * b->past is set to. */
bool plan_is_streamed(const Run *r, const PlanStep *s, const PlanKernel *k, const u64 *words, i64 trips,
                      struct Blocks *b) MUST_USE;
/* Enough for threads? */
bool plan_is_parallel(const Run *r, const PlanStep *s, const PlanKernel *k, const u64 *words, i64 lo,
                      i64 hi, u64 *work);

/* May the update write to its array in place? Either nobody else holds it, or a module variable alone does, which is
 * set to the result. */
static inline bool may_update(const Run *r, const PlanStep *s, Array *a) {
  bool mine = !is_borrowed(r, s->src);
  if (mine && array_writable(a)) return true;
  if (!s->donated || a->head.refs != 1u + mine) return false;
  a->head.refs = 1;
  bool writable = array_writable(a);
  a->head.refs += mine;
  return writable;
}

/* The array of an update, written in place, becomes its result. */
static inline Went updated(Run *r, const PlanStep *s, Array *a) {
  if (is_borrowed(r, s->src)) a->head.refs++;
  else r->slots[s->src] = 0;
  set_array(r, s->dst, a);
  return GOES_ON;
}

/* plan_parts.c: steps that stand for those behind them. *done: these are not needed any more. */
Went plan_counts_step(Run *r, const PlanStep *s, bool *done);
Went plan_part_step(Run *r, const PlanStep *s, bool *done);
Went plan_interleave_step(Run *r, const PlanStep *s, bool *done);
Went plan_transpose_step(Run *r, const PlanStep *s, bool *done);

#endif

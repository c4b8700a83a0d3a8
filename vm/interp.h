/* interp.h — shared by the opcode loop (interp.c), instructions that are functions (steps.c) and frames (frames.c).
 * Nobody else includes this. */
#ifndef WEFT_VM_INTERP_H
#define WEFT_VM_INTERP_H

#include "vm/code.h"
#include "vm/registers.h"
#include "vm/stack.h"

/* ---- operands ------------------------------------------------------------------------------------- */

static inline const Value *operand(const Value *base, const Value *consts, u32 k) {
  return k & INS_CONST ? &consts[k & ~(u32)INS_CONST] : &base[k];
}

/* An i64 index from the front or the end, in *i from the front. */
static inline bool in_bounds(Value key, i64 n, i64 *i) {
  if (key.kind != V_NUM || key.dtype != DT_i64) return false;
  *i = key.i < 0 ? key.i + n : key.i;
  return (u64)*i < (u64)n;
}

/* ---- instructions that are functions (steps.c): the pc is set, an error is WEFT_ERROR ------------- */

WeftStatus step_binary(Vm *vm, Ins ins, Value *base, const Value *consts) MUST_USE;
WeftStatus step_unary(Vm *vm, Ins ins, Value *base, const Value *consts) MUST_USE;
WeftStatus step_unassigned(Vm *vm, const Code *code, u32 slot); /* says what the name may have meant */
WeftStatus step_index(Vm *vm, Value *base, Ins ins, Value obj, Value key) MUST_USE;
WeftStatus step_index_many(Vm *vm, const Frame *f, Ins ins, bool once) MUST_USE;
WeftStatus step_set_path(Vm *vm, const Frame *f, Ins ins) MUST_USE;
WeftStatus step_for_begin(Vm *vm, Value *base, Ins ins, Value seq) MUST_USE;
WeftStatus step_for_item(Vm *vm, Value *at) MUST_USE;
/* `r = remove(r, key)` of a record that nobody but the module's variable r holds happens in place. */
void step_give_up_record(Vm *vm, const Frame *f, Ins ins, bool once, Value *args);

/* ---- the hook (hook.c): while hook_on; the pc is set ------------------------------------------------ */

WeftStatus hook_step(Vm *vm) MUST_USE;                  /* an instruction is about to run */
WeftStatus hook_entered(Vm *vm) MUST_USE;               /* a frame was pushed */
WeftStatus hook_returns(Vm *vm, const Value *v) MUST_USE; /* the top frame is about to return v */
void hook_raised(Vm *vm);                               /* an error stands, and no frame was left for it yet */

/* ---- frames (frames.c) ------------------------------------------------------------------------------ */

/* Pushes a frame whose parameters are still empty. */
static inline Frame *push_frame(Vm *vm, Value self, Code *code, u16 result, u16 flags) {
  const Proto *p = code->proto;
  if (UNLIKELY(vm->frame_count >= vm->frame_cap || vm->frame_count + vm->native_depth >= vm->limits.depth) &&
      !frames_grow(vm))
    return NULL;
  Value *base = stack_take(vm, p->nregs);
  if (UNLIKELY(!base)) return NULL;
  Frame *f = &vm->frames[vm->frame_count++];
  f->code = code;
  f->fn = self.kind == V_FN ? self.fn : NULL;
  f->base = base;
  f->pc = 0;
  f->result = result;
  f->flags = UNLIKELY(code->awaited) ? flags | FRAME_AWAITS : flags;
  f->tail_calls = 0;
  f->self = self;
  return f;
}

static inline void clear_registers(Vm *vm, Value *base, u32 n) {
  for (u32 i = 0; i < n; i++)
    if (base[i].flags & VF_COUNTED) value_drop(vm, base[i]);
}

/* Has every parameter from number n on a default? False when there are fewer. */
static inline bool has_defaults(const Proto *p, u32 n) {
  if (n > p->nparams) return false;
  while (n < p->nparams && p->params[n].has_default) n++;
  return n == p->nparams;
}

typedef enum CallEnd { CALL_RAISED, CALL_PUSHED, CALL_DONE } CallEnd;

/* Calls the function in win[0] with what stands behind it. tail: in place of the top frame. CALL_DONE: *out is the
 * result. */
CallEnd call_window(Vm *vm, Value *win, u32 argc, u16 result, bool tail, Value *out) MUST_USE;
/* With names and spreads; skip: the first argument of a method is none. */
CallEnd call_described(Vm *vm, const Desc *d, Value *win, bool skip, u16 result, bool tail, Value *out) MUST_USE;
/* Pops frames until one has a handler for the error; its pc then stands at the handler. False: none above floor. */
bool frames_unwind(Vm *vm, u32 floor) MUST_USE;

#endif

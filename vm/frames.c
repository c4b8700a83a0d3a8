/* frames.c — frames pushed, popped and replaced; calls of any function; frames left by an error. */
#include <string.h>

#include "vm/call.h"
#include "vm/fp.h"
#include "vm/interp.h"

/* ---- frames ----------------------------------------------------------------------------------- */

bool frame_push(Vm *vm, Value fn_kept, Code *code, u16 result, u16 flags) {
  if (vm->frame_count) flags |= vm->frames[vm->frame_count - 1].flags & FRAME_EAGER;
  Frame *f = push_frame(vm, fn_kept, code, result, flags);
  if (!f) {
    value_drop(vm, fn_kept);
    return false;
  }
  memset(f->base, 0, sizeof(Value) * code->proto->nregs);
  vm->stats.calls++;
  return true;
}

static inline __attribute__((always_inline)) void pop_frame(Vm *vm) {
  Frame *f = &vm->frames[vm->frame_count - 1];
  Value *base = f->base, self = f->self;
  clear_registers(vm, base, f->code->proto->nregs);
  vm->frame_count--;
  stack_give_back(vm, base);
  value_drop(vm, self);
}

void frame_pop(Vm *vm) { pop_frame(vm); }

void vm_return(Vm *vm, Value v) {
  Frame *f = &vm->frames[vm->frame_count - 1];
  u16 result = f->result, flags = f->flags;
  if (UNLIKELY(flags & FRAME_WATCHED)) vm->tier->returns(vm);
  pop_frame(vm);
  if (flags & FRAME_NATIVE_CALL) {
    vm->native_result = v;
    return;
  }
  f = &vm->frames[vm->frame_count - 1];
  f->pc++;
  set_register(vm, &f->base[result], v);
}

bool vm_call_done(Vm *vm, Value v) {
  Frame *f = &vm->frames[vm->frame_count - 1];
  const Proto *p = f->code->proto;
  Ins i = p->code[f->pc];
  u32 op = ins_op(i), argc = op == BC_callx || op == BC_tailx ? p->descs[ins_c(i)].argc : ins_c(i);
  drop_run(vm, &f->base[ins_b(i)], argc + 1);
  if (op == BC_tail || op == BC_tailx) {
    vm_return(vm, v);
    return true;
  }
  set_register(vm, &f->base[ins_a(i)], v);
  f->pc++;
  return false;
}

void vm_cancel(Vm *vm) {
  while (vm->frame_count) pop_frame(vm);
}

WeftStatus vm_resume(Vm *vm, Value v, Value *out) {
  const u64 fp = fp_enter(vm);
  WeftStatus status = WEFT_OK;
  bool on = true;
  vm->native_depth++;
  if (vm->error.raised) {
    value_drop(vm, v);
    if (UNLIKELY(hook_on(vm))) hook_raised(vm);
    on = frames_unwind(vm, 0);
    if (!on) status = WEFT_ERROR;
  } else if (vm_call_done(vm, v) && !vm->frame_count) { /* it stood in place of the outermost call */
    on = false;
    *out = vm->native_result;
    vm->native_result = value_nil();
  }
  if (on) status = vm_run(vm, 0, out);
  vm->native_depth--;
  fp_leave(fp);
  return status;
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* Replaces eager(f) by f; the frame then runs eagerly. */
static Value unwrap_eager(Vm *vm, Value fn, u16 *flags) {
  while (fn.kind == V_FN && fn.fn->kind == FN_TRANSFORM && fn.fn->transform == TF_eager) {
    Value inner = value_keep(fn.fn->inner);
    value_drop(vm, fn);
    fn = inner;
    *flags |= FRAME_EAGER;
  }
  return fn;
}

/* remove(r, k) of a record that keeps its own keys, in place, so that `r = remove(r, k)` does not copy it; nothing
 * that can fail is left to do then. args: r and k. */
/* Replaces the top frame by one of `code` with these parameters (moved). */
static bool replace_frame(Vm *vm, Value self, Code *code, const Value *params, u16 flags) {
  Frame *f = &vm->frames[vm->frame_count - 1];
  const Proto *p = code->proto;
  Value *base = f->base, old_self = f->self;
  u32 old = f->code->proto->nregs;
  /* no room where it stands: find it first, so that failure changes nothing */
  if (vm->stack_end - base < (i64)p->nregs) {
    Value *fresh = stack_take(vm, p->nregs);
    if (!fresh) return false;
    /* The old registers stay below as dead space until this frame returns; it cannot pile up, since the new
     * segment is empty but for this frame. */
    clear_registers(vm, base, old);
    memset(base, 0, sizeof(Value) * old);
    f->base = base = fresh;
  } else {
    clear_registers(vm, base, old);
    vm->stack_top = base + p->nregs;
  }
  if (p->nparams) memcpy(base, params, sizeof(Value) * p->nparams);
  memset(base + p->nparams, 0, sizeof(Value) * (p->nregs - p->nparams));
  f->code = code;
  f->fn = self.fn;
  f->self = self;
  f->pc = 0;
  f->flags = (u16)((f->flags & ~(FRAME_MODULE | FRAME_AWAITS)) | flags | (code->awaited ? FRAME_AWAITS : 0));
  f->tail_calls++;
  value_drop(vm, old_self);
  return true;
}

/* Calls fn (consumed) with args (moved). tail: in place of the top frame. CALL_DONE: *out is the result. */
static CallEnd call_any(Vm *vm, Value fn, Args args, u16 result, bool tail, Value *out) {
  u16 flags = 0;
  fn = unwrap_eager(vm, fn, &flags);
  if (fn.kind != V_FN || fn.fn->kind != FN_CLOSURE) {
    WeftStatus status = call_native(vm, fn, args, out);
    value_drop(vm, fn);
    return status == WEFT_OK ? CALL_DONE : CALL_RAISED;
  }
  Code *code = fn.fn->code;
  const Proto *p = code->proto;
  Value small[16], *params = p->nparams <= COUNT_OF(small) ? small : mem_alloc(&vm->alloc, sizeof *params * p->nparams);
  CallEnd end = CALL_RAISED;
  if (!params) {
    (void)vm_error_memory(vm);
    value_drop(vm, fn);
    return CALL_RAISED;
  }
  if (bind_closure(vm, p, args, params) != WEFT_OK) {
    value_drop(vm, fn);
  } else if (tail) {
    vm->stats.calls++;
    if (replace_frame(vm, fn, code, params, flags)) end = CALL_PUSHED;
    else {
      drop_run(vm, params, p->nparams);
      value_drop(vm, fn);
    }
  } else if (frame_push(vm, fn, code, result, flags)) {
    if (p->nparams) memcpy(vm->frames[vm->frame_count - 1].base, params, sizeof(Value) * p->nparams);
    end = CALL_PUSHED;
  } else {
    drop_run(vm, params, p->nparams);
  }
  if (params != small) mem_free(&vm->alloc, params, sizeof *params * p->nparams);
  return end;
}

CallEnd call_window(Vm *vm, Value *win, u32 argc, u16 result, bool tail, Value *out) {
  Value fn = win[0];
  win[0] = value_nil();
  return call_any(vm, fn, (Args){win + 1, NULL, argc}, result, tail, out);
}

CallEnd call_described(Vm *vm, const Desc *d, Value *win, bool skip, u16 result, bool tail, Value *out) {
  Gathered g;
  Value fn = win[0];
  CallEnd end = CALL_RAISED;
  win[0] = value_nil();
  if (args_gather(vm, d, win, skip, &g) == WEFT_OK) end = call_any(vm, fn, args_of(&g), result, tail, out);
  else value_drop(vm, fn);
  args_free(vm, &g);
  return end;
}

/* ---- errors ----------------------------------------------------------------------------------- */

bool frames_unwind(Vm *vm, u32 floor) {
  if (UNLIKELY(vm->suspends)) return false; /* no error: they stay */
  while (vm->frame_count > floor) {
    Frame *f = &vm->frames[vm->frame_count - 1];
    const Proto *p = f->code->proto;
    const Extent *handler = NULL;
    for (u32 i = 1; i < p->nextents && vm_error_catchable(vm); i++) { /* inner extents stand behind outer ones */
      const Extent *e = &p->extents[i];
      if (e->kind == EXT_TRY && e->begin <= f->pc && f->pc < e->head) handler = e;
    }
    if (handler) {
      u64 before = overdraft_begin(vm);
      code_clear_dead(vm, f->code, f->base, handler->head);
      overdraft_end(vm, before);
      f->pc = handler->head;
      return true;
    }
    vm_error_leave_frame(vm);
    frame_pop(vm);
  }
  return false;
}

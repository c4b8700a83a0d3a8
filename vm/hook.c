/* hook.c — who is told of lines, calls, returns and errors of programs while they run: for debuggers.
 *
 * While there is a hook the opcode loop comes here before each instruction. Nothing is compiled or entered then: the
 * tier rests. Functions of the library, and what the VM puts around calls, are not told of. While the hook runs, an
 * error that stands is put aside, and the programs that it has run are told to nobody. */
#include <string.h>

#include "vm/call.h"
#include "vm/interp.h"

/* ---- the tier rests --------------------------------------------------------------------------------- */

static TierResult rest_site(Vm *vm, Frame *frame, u32 site) {
  (void)vm;
  (void)frame;
  (void)site;
  return TIER_STAY;
}
static TierResult rest_frame(Vm *vm, Frame *frame) {
  (void)vm;
  (void)frame;
  return TIER_STAY;
}

void vm_set_hook(Vm *vm, WeftStatus (*call)(void *ctx, u32 event), void *ctx, u32 mask) {
  Hook *h = &vm->hook;
  const bool was = h->call != NULL, is = call && mask;
  h->call = is ? call : NULL;
  h->ctx = ctx;
  h->mask = is ? mask : 0;
  h->depth = 0;
  if (is && !was && vm->tier) {
    h->tier = vm->tier;
    h->resting = *vm->tier;
    h->resting.site = h->resting.start = rest_site;
    h->resting.resume = h->resting.large = rest_frame;
    vm->tier = &h->resting;
  } else if (!is && was && vm->tier) {
    vm->tier = h->tier;
  }
  vm->large_left = -1; /* programs that run look whether there is one */
}

/* ---- frames that are told of ------------------------------------------------------------------------ */

static bool is_own(const Frame *f) { return !f->code->proto->library && !f->code->proto->hidden; }

u32 hook_frames(const Vm *vm) {
  u32 n = 0;
  for (u32 i = 0; i < vm->frame_count; i++) n += is_own(&vm->frames[i]);
  return n;
}

const Frame *hook_frame(const Vm *vm, u32 index) {
  for (u32 i = vm->frame_count; i-- > 0;)
    if (is_own(&vm->frames[i]) && index-- == 0) return &vm->frames[i];
  return NULL;
}

Span hook_span(const Frame *f) {
  const Proto *p = f->code->proto;
  return f->pc < p->ncode ? p->spans[f->pc] : p->span;
}

/* ---- telling ---------------------------------------------------------------------------------------- */

/* Calls the hook. What it gives as an error takes the place of the one that stands. */
static WeftStatus tell(Vm *vm, u32 event) {
  Hook *h = &vm->hook;
  ErrorState aside = vm->error;
  if (event == HOOK_ERROR) { /* it may be read: what stands is a copy, without the calls that it left before */
    if (aside.raised) vm->error.message = value_keep(aside.message);
    memset(&vm->error.trace, 0, sizeof vm->error.trace);
  } else {
    vm->error = (ErrorState){0};
  }
  h->busy = true;
  WeftStatus status = h->call(h->ctx, event);
  h->busy = false;
  if (status != WEFT_OK && vm->error.raised) { /* consumes what was put aside */
    ErrorState given = vm->error;
    vm->error = aside;
    vm_error_clear(vm);
    vm->error = given;
    vm->error.told = true;
    return WEFT_ERROR;
  }
  vm_error_clear(vm);
  vm->error = aside;
  if (status == WEFT_OK) return WEFT_OK;
  vm_error(vm, EK_host, "the hook failed");
  vm->error.told = true;
  return WEFT_ERROR;
}

static bool wants(const Vm *vm, u32 event) {
  return (vm->hook.mask & event) && is_own(&vm->frames[vm->frame_count - 1]);
}

static void stand_at(Vm *vm, u32 depth, const Frame *f, u32 line) {
  Hook *h = &vm->hook;
  h->depth = depth;
  h->pc = f->pc;
  h->line = line;
  h->file = f->code->proto->spans[f->pc].file;
}

static u32 line_at(const Vm *vm, Span at) {
  u32 line = 0, column;
  sources_locate(&vm->sources, at, &line, &column);
  return line;
}

/* A line begins where a frame does, where the program goes back, and where the line is another one. Behind a call the
 * line of the call goes on. Jumps and what ends a scope stand on no line. */
WeftStatus hook_step(Vm *vm) {
  Hook *h = &vm->hook;
  if (!wants(vm, HOOK_LINE)) return WEFT_OK;
  const Frame *f = &vm->frames[vm->frame_count - 1];
  const Proto *p = f->code->proto;
  const u32 op = ins_op(p->code[f->pc]), depth = vm->frame_count;
  if (!p->spans[f->pc].len || op == BC_jump || op == BC_loop) return WEFT_OK;
  const u32 line = line_at(vm, p->spans[f->pc]), file = p->spans[f->pc].file;
  bool begins = depth > h->depth || h->depth == 0;
  if (depth < h->depth) { /* others returned */
    const Span call = f->pc ? p->spans[f->pc - 1] : (Span){0};
    begins = !call.len || line_at(vm, call) != line || call.file != file;
  } else if (!begins) {
    begins = f->pc <= h->pc || line != h->line || file != h->file;
  }
  stand_at(vm, depth, f, line);
  return begins && line ? tell(vm, HOOK_LINE) : WEFT_OK;
}

WeftStatus hook_entered(Vm *vm) {
  Hook *h = &vm->hook;
  if (h->depth >= vm->frame_count) h->depth = vm->frame_count - 1; /* a tail call: its first line is to be told */
  return wants(vm, HOOK_CALL) ? tell(vm, HOOK_CALL) : WEFT_OK;
}

WeftStatus hook_returns(Vm *vm, const Value *v) {
  if (!wants(vm, HOOK_RETURN)) return WEFT_OK;
  vm->hook.result = v;
  WeftStatus status = tell(vm, HOOK_RETURN);
  vm->hook.result = NULL;
  return status;
}

void hook_raised(Vm *vm) {
  vm->hook.depth = 0; /* the line of a handler is to be told */
  if (vm->error.told || !vm->error.raised) return;
  vm->error.told = true;
  if (vm->hook.mask & HOOK_ERROR) (void)tell(vm, HOOK_ERROR);
}

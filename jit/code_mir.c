/* code_mir.c — the code of a plan, compiled through MIR. */
#include "jit/code.h"
#include "jit/mir_emit.h"

#include <string.h>

typedef struct Linked {
  MirCode *code;
} Linked;

/* A native function takes its arguments as the C convention has them (System V, x86-64): the first integers and pointers
 * and the first eight floats in registers, whatever their order among each other, the rest on the stack in order, each in
 * eight bytes. So one call with all registers filled and enough words on the stack fits every function. */
enum { INT_REGS = 5 /* the context takes the first of six */, FLOAT_REGS = 8, STACK_WORDS = 128 };

typedef struct Words {
  u64 i[INT_REGS];
  f64 d[FLOAT_REGS];
  u64 s[STACK_WORDS];
  u32 ints, floats, stack;
} Words;

#define REGS LoopCtx *, u64, u64, u64, u64, u64, f64, f64, f64, f64, f64, f64, f64, f64
#define GIVE ctx, w.i[0], w.i[1], w.i[2], w.i[3], w.i[4], w.d[0], w.d[1], w.d[2], w.d[3], w.d[4], w.d[5], w.d[6], w.d[7]
#define T4 u64, u64, u64, u64
#define T16 T4, T4, T4, T4
#define T64 T16, T16, T16, T16
#define S4(n) w.s[n], w.s[(n) + 1], w.s[(n) + 2], w.s[(n) + 3]
#define S16(n) S4(n), S4((n) + 4), S4((n) + 8), S4((n) + 12)
#define S64(n) S16(n), S16((n) + 16), S16((n) + 32), S16((n) + 48)

static u32 call_native(const PlanNative *n, LoopCtx *ctx, const u64 *args) {
  const LoopFn *fn = n->self;
  Words w;
  w.ints = w.floats = w.stack = 0;
  memset(w.i, 0, sizeof w.i);
  memset(w.d, 0, sizeof w.d);
  for (u32 k = 0; k < fn->params.count; k++) {
    LoopType t = loop_type_of(fn, fn->params.data[k]);
    if (loop_is_float(t) && w.floats < FLOAT_REGS) memcpy(&w.d[w.floats++], &args[k], 8);
    else if (!loop_is_float(t) && w.ints < INT_REGS) w.i[w.ints++] = args[k];
    else w.s[w.stack++] = args[k];
  }
  if (w.stack == 0) return ((u32(*)(REGS))n->fn)(GIVE);
  u32 room = w.stack <= 4 ? 4 : w.stack <= 16 ? 16 : w.stack <= 64 ? 64 : STACK_WORDS;
  memset(w.s + w.stack, 0, sizeof *w.s * (room - w.stack));
  switch (room) {
    case 4: return ((u32(*)(REGS, T4))n->fn)(GIVE, S4(0));
    case 16: return ((u32(*)(REGS, T16))n->fn)(GIVE, S16(0));
    case 64: return ((u32(*)(REGS, T64))n->fn)(GIVE, S64(0));
    default: return ((u32(*)(REGS, T64, T64))n->fn)(GIVE, S64(0), S64(64));
  }
}

static bool fits_call(const LoopFn *fn) { return fn->params.count <= STACK_WORDS; }

static void unlink_mir(Vm *vm, JitCode *code) {
  Linked *l = code->linked;
  if (!l) return;
  mir_code_free(l->code);
  mem_free(&vm->alloc, l, sizeof *l);
  code->linked = NULL;
}

static bool link_mir(Vm *vm, JitCode *code, Plan *plan, Buf *why) {
  u32 kernels = plan->kernels.count, count = kernels + plan->natives.count;
  if (!count) return true;
  JitState *state = code->state;
  if (!state->pool) state->pool = mir_pool_new(state->alloc);
  const LoopFn **fns = mem_alloc(&vm->alloc, sizeof *fns * count);
  Linked *l = mem_alloc_zero(&vm->alloc, sizeof *l);
  bool ok = state->pool && fns && l;
  for (u32 i = 0; ok && i < count; i++) {
    fns[i] = i < kernels ? plan->kernels.data[i].self : plan->natives.data[i - kernels].self;
    if (i >= kernels && !fits_call(fns[i])) {
      buf_puts(why, "a loop of too many variables");
      ok = false;
    }
  }
  ok = ok && mir_compile(state->pool, fns, count, &l->code, why) == WEFT_OK;
  for (u32 i = 0; ok && i < count; i++) {
    code->bytes += mir_code_bytes(l->code, i);
    if (i < kernels) {
      plan->kernels.data[i].fn = mir_code_kernel(l->code, i);
    } else {
      plan->natives.data[i - kernels].fn = mir_code_native(l->code, i);
      plan->natives.data[i - kernels].call = call_native;
    }
  }
  if (fns) mem_free(&vm->alloc, fns, sizeof *fns * count);
  if (ok) code->linked = l;
  else if (l) mem_free(&vm->alloc, l, sizeof *l);
  return ok;
}

static void print_mir(const JitCode *code, const Plan *plan, Buf *out) {
  const Linked *l = code->linked;
  for (u32 i = 0; l && i < plan->kernels.count + plan->natives.count; i++) mir_code_print(l->code, i, out);
}

const JitTarget target_mir = {.name = "mir", .link = link_mir, .unlink = unlink_mir, .print = print_mir};

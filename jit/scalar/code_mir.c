/* code_mir.c — the code of a plan: vector code for the kernels that qualify where the level says so, the rest through
 * MIR. */
#include "jit/lower/code.h"
#include "jit/vector/code_memory.h"
#include "jit/scalar/mir_emit.h"
#include "jit/plan/plan_inner.h"
#include "jit/plan/rows.h"
#include "jit/vector/vector_emitter.h"
#include "lang/mechanisms.h"

#include <string.h>

/* What only runs once the sizes are others than a loop was compiled for is compiled at its first call. */
typedef enum Part { PART_NOW, PART_LATER, PARTS } Part;

typedef struct Linked {
  MirCode *code[PARTS]; /* NULL: nothing was left for MIR */
  u32 kernels, count; /* of the plan: kernels come first */
  u8 *part;          /* per function: Part */
  bool *called;      /* per function: others call it, it must be where they are */
  bool waits;        /* PART_LATER is still to be compiled */
  VecCode **vectors; /* per kernel; NULL entries went through MIR */
  VecCode **longer;  /* per kernel: PlanKernel.past, then all .ahead */
  const char **refused; /* per kernel: why it is not vector code */
  u32 *in_mir;       /* per function: its number there; NOWHERE: it is written in C */
  CodeMemory *memory;
  u8 *gates;         /* GATE bytes a kernel; NULL: no call of one goes through any */
} Linked;

/* A native function takes its arguments as the C convention has them (System V, x86-64): the first integers and
 * pointers and the first eight floats in registers, whatever their order among each other, the rest on the stack in
 * order, each in eight bytes. So one call with all registers filled and enough words on the stack fits every
 * function. */
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

static u32 mir_call_native(const PlanNative *n, LoopCtx *ctx, const u64 *args) {
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

enum { NOWHERE = UINT32_MAX, GATE = 96, GATE_WORDS = 3 };

static bool fits_call(const LoopFn *fn) { return fn->params.count <= STACK_WORDS; }

static void free_linked(Vm *vm, Linked *l) {
  for (u32 i = 0; l->vectors && i < l->kernels; i++) vec_code_free(l->vectors[i]);
  for (u32 i = 0; l->longer && i < 2 * l->kernels; i++) vec_code_free(l->longer[i]);
  for (u32 i = 0; i < PARTS; i++) mir_code_free(l->code[i]);
  if (l->gates) code_memory_give(l->memory, l->gates, GATE * (size_t)l->kernels);
  mem_free(&vm->alloc, l->part, sizeof *l->part * l->count);
  mem_free(&vm->alloc, l->called, sizeof *l->called * l->count);
  mem_free(&vm->alloc, l->vectors, sizeof *l->vectors * l->kernels);
  mem_free(&vm->alloc, l->longer, 2 * sizeof *l->longer * l->kernels);
  mem_free(&vm->alloc, l->refused, sizeof *l->refused * l->kernels);
  mem_free(&vm->alloc, l->in_mir, sizeof *l->in_mir * l->count);
  mem_free(&vm->alloc, l, sizeof *l);
}

static void unlink_mir(Vm *vm, JitCode *code) {
  Linked *l = code->linked;
  if (!l) return;
  free_linked(vm, l);
  code->linked = NULL;
}

static Linked *new_linked(Vm *vm, const Plan *plan) {
  Linked *l = mem_alloc_zero(&vm->alloc, sizeof *l);
  if (!l) return NULL;
  l->kernels = plan->kernels.count;
  l->count = l->kernels + plan->natives.count;
  l->in_mir = mem_alloc_zero(&vm->alloc, sizeof *l->in_mir * l->count);
  l->part = mem_alloc_zero(&vm->alloc, sizeof *l->part * l->count);
  l->called = mem_alloc_zero(&vm->alloc, sizeof *l->called * l->count);
  if (l->kernels) l->vectors = mem_alloc_zero(&vm->alloc, sizeof *l->vectors * l->kernels);
  if (l->kernels) l->longer = mem_alloc_zero(&vm->alloc, 2 * sizeof *l->longer * l->kernels);
  if (l->kernels) l->refused = mem_alloc_zero(&vm->alloc, sizeof *l->refused * l->kernels);
  if (l->in_mir && l->part && l->called && ((l->vectors && l->longer && l->refused) || !l->kernels)) return l;
  free_linked(vm, l);
  return NULL;
}

static const LoopFn *fn_at(const Plan *plan, u32 i) {
  u32 kernels = plan->kernels.count;
  return i < kernels ? plan->kernels.data[i].self : plan->natives.data[i - kernels].self;
}

/* ---- what is compiled at once -------------------------------------------------------------------------- */

/* Functions that `fn` calls: noted as such, and compiled at once when it is. */
static void note_calls(const Plan *plan, Linked *l, const LoopFn *fn, bool now, bool *more) {
  for (u32 k = 0; k < fn->body.count; k++) {
    const LoopNode *n = loop_node(fn, fn->body.data[k]);
    if (n->op != LOOP_CALL || !toil(fn->module->toil, l->count)) continue;
    for (u32 i = 0; i < l->count; i++) {
      if (fn_at(plan, i)->name != (Name)n->imm) continue;
      l->called[i] = true;
      *more |= now && l->part[i] == PART_LATER;
      if (now) l->part[i] = PART_NOW;
    }
  }
}

static void choose_parts(const JitCode *code, const Plan *plan, Linked *l) {
  bool more = code->target->lazy;
  for (u32 i = 0; i < l->count && more; i++)
    l->part[i] = i < l->kernels ? (plan->kernels.data[i].flags & PK_COLD ? PART_LATER : PART_NOW)
                                : plan->natives.data[i - l->kernels].cold ? PART_LATER : PART_NOW;
  for (u32 i = 0; i < code->module.fns.count; i++) note_calls(plan, l, code->module.fns.data[i], false, &more);
  for (; more && !toil_ended(code->module.toil);) { /* each round makes one more function come at once */
    more = false;
    for (u32 i = 0; i < l->count; i++) {
      if (l->part[i] == PART_LATER) continue;
      note_calls(plan, l, fn_at(plan, i), true, &more);
      for (u32 k = 0; k < l->count; k++) /* they may share their function */
        if (l->part[k] == PART_LATER && fn_at(plan, k) == fn_at(plan, i)) l->part[k] = PART_NOW, more = true;
    }
  }
}

/* ---- kernels that native functions call ---------------------------------------------------------------- */

static u8 *add(u8 *at, const char *opcode, u32 bytes, const void *operand, size_t size) {
  memcpy(at, opcode, bytes);
  if (size) memcpy(at + bytes, operand, size);
  return at + bytes + size;
}

/* Trips inside of those that are shared: a product of words of the call and a constant. False: there is one trip to
 * share. */
static bool inner_trips(const LoopFn *fn, u32 *words, u32 *count, u64 *constant) {
  for (u32 i = 0; i < fn->body.count; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    bool outer = n->op == LOOP_PAR;
    /* lines, not elements */
    if (n->op == LOOP_STORE && n->count && loop_terms(fn, n)[n->count - 1].stride[0]) *constant *= 8;
    if (!outer && n->op != LOOP_FOR && n->op != LOOP_REDUCE && n->op != LOOP_SCAN) continue;
    for (u32 k = 0; k < n->a; k++) {
      const LoopNode *trips = loop_node(fn, loop_trips_of(fn, id, k));
      if (trips->op == LOOP_CONST && outer && trips->imm < 2) return false;
      if (trips->op == LOOP_CONST && !outer && trips->imm < 1 << 20) *constant *= trips->imm ? trips->imm : 1;
      for (u32 p = 0; !outer && trips->op == LOOP_PARAM && p < fn->params.count && *count < GATE_WORDS; p++)
        if (fn->params.data[p] == loop_trips_of(fn, id, k)) words[(*count)++] = p * 8;
    }
  }
  return true;
}

/* What a call goes through: a few bytes that go on to the kernel, or where there may be work for threads, or runs
 * are counted, to plan_run_called with the kernel and the VM as further arguments. */
static void write_gate(Vm *vm, u8 *at, PlanKernel *k, const u32 *words, u32 count, u64 constant) {
  u64 (*called)(const u64 *, i64, i64, PlanKernel *, Vm *) = plan_run_called;
  u64 least = (u64)vm->tunables.parallel_elements / 4 / (constant ? constant : 1);
  u32 limit = vm->log & VM_LOG_PROFILE ? 0 : least > INT32_MAX ? INT32_MAX : (u32)least;
  const LoopKernelFn *fn = &k->fn;
  at = add(at, "\x48\x89\xd0\x48\x29\xf0", 6, NULL, 0);                                /* mov rax, rdx; sub rax, rsi */
  for (u32 i = 0; i < count; i++) at = add(at, "\x48\x0f\xaf\x87", 4, &words[i], 4); /* imul rax, [rdi + words[i]] */
  at = add(at, "\x48\x3d", 2, &limit, 4);                                              /* cmp rax, limit */
  /* jae behind the jump; mov rax, fn */
  at = add(at, "\x73\x0c\x48\xb8", 4, &fn, 8);
  at = add(at, "\xff\x20\x48\xb9", 4, &k, 8);                                          /* jmp [rax]; mov rcx, k */
  at = add(at, "\x49\xb8", 2, &vm, 8);                                                 /* mov r8, vm */
  at = add(at, "\x48\xb8", 2, &called, 8);                                             /* mov rax, plan_run_called */
  (void)add(at, "\xff\xe0", 2, NULL, 0);                                               /* jmp rax */
}

/* Where no memory is had, calls go to the kernels themselves. */
static void link_gates(Vm *vm, Linked *l, Plan *plan, CodeMemory *memory) {
  bool all = vm->log & VM_LOG_PROFILE;
  u32 words[GATE_WORDS], count, wanted = 0;
  for (u32 i = 0; i < l->kernels; i++) wanted += l->called[i];
  if (!wanted || (!all && pool_threads(vm) < 2)) return;
  code_memory_open(memory);
  l->memory = memory;
  l->gates = code_memory_take(memory, GATE * (size_t)l->kernels);
  for (u32 i = 0; l->gates && i < l->kernels; i++) {
    PlanKernel *k = &plan->kernels.data[i];
    u64 constant = 1;
    count = 0;
    if (!l->called[i] || (!inner_trips(k->self, words, &count, &constant) && !all)) continue;
    write_gate(vm, l->gates + (size_t)GATE * i, k, words, count, constant);
    ((LoopFn *)k->self)->address = l->gates + (size_t)GATE * i;
  }
  if (code_memory_close(memory) || !l->gates) return;
  for (u32 i = 0; i < l->kernels; i++) ((LoopFn *)plan->kernels.data[i].self)->address = NULL;
  code_memory_give(memory, l->gates, GATE * (size_t)l->kernels);
  l->gates = NULL;
}

/* Code for what no cache holds, when the first of it comes. */
static LoopKernelFn make_longer(const PlanKernel *k, bool ahead) {
  JitCode *code = (JitCode *)((char *)((const LoopFn *)k->self)->module - offsetof(JitCode, module));
  Linked *l = code->linked;
  VecEmitter *e = code->state->vector;
  VecCode **made = &l->longer[(ahead ? l->kernels : 0) + (u32)(k - code->plan->kernels.data)];
  const char *refused;
  e->past = !ahead, e->ahead = ahead, e->short_rows = k->flags & PK_SHORT_ROWS;
  *made = vec_compile(e, k->self, &refused);
  e->past = e->ahead = false;
  if (!*made) return NULL;
  code->bytes += vec_code_bytes(*made);
  return vec_code_kernel(*made);
}

static void make_past(PlanKernel *k) {
  k->make_past = NULL;
  k->past = make_longer(k, false);
}

static void make_ahead(PlanKernel *k) {
  k->make_ahead = NULL;
  k->ahead = make_longer(k, true);
}

static void link_vectors(JitCode *code, Plan *plan, Linked *l, Part part) {
  JitState *state = code->state;
  if (state->cpu < VEC_AVX2) return;
  if (!state->vector) state->vector = vec_emitter_new(state->alloc, state->cpu, state->memory);
  for (u32 i = 0; state->vector && i < l->kernels; i++) {
    PlanKernel *k = &plan->kernels.data[i];
    if (l->part[i] != part || !toil(code->module.toil, 1)) continue;
    if ((k->fn = rows_kernel(k->self, state->cpu)) != NULL) {
      l->refused[i] = "it is written in C";
      l->in_mir[i] = NOWHERE;
      continue;
    }
    l->vectors[i] = vec_compile(state->vector, k->self, &l->refused[i]);
    if (!l->vectors[i]) continue;
    k->fn = vec_code_kernel(l->vectors[i]);
    k->make_past = make_past;
    if (state->vector->reads) k->make_ahead = make_ahead;
    LoopFn *fn = k->self;
    if (!fn->address) fn->address = (void *)k->fn;
    code->bytes += vec_code_bytes(l->vectors[i]);
  }
}

static bool link_rest(JitCode *code, Plan *plan, Linked *l, Part part, const LoopFn **fns, Buf *why) {
  u32 kernels = l->kernels, left = 0;
  for (u32 i = 0; i < l->count; i++) {
    const LoopFn *fn = fn_at(plan, i);
    if (l->part[i] != part || (i < kernels && plan->kernels.data[i].fn)) continue;
    u32 first = kernels; /* natives may share their function */
    while (first < i && fn_at(plan, first) != fn) first++;
    if (first < i) {
      l->in_mir[i] = l->in_mir[first];
      continue;
    }
    if (i >= kernels && !fits_call(fn)) {
      buf_puts(why, "a loop of too many variables");
      return false;
    }
    l->in_mir[i] = left;
    fns[left++] = fn;
  }
  if (left && mir_compile(code->state->pool, fns, left, &l->code[part], why) != WEFT_OK) return false;
  for (u32 i = 0; i < l->count; i++) {
    if (l->part[i] != part || (i < kernels && plan->kernels.data[i].fn)) continue;
    u32 at = l->in_mir[i];
    code->bytes += mir_code_bytes(l->code[part], at);
    if (i < kernels) {
      plan->kernels.data[i].fn = mir_code_kernel(l->code[part], at);
    } else {
      plan->natives.data[i - kernels].fn = mir_code_native(l->code[part], at);
      plan->natives.data[i - kernels].call = mir_call_native;
    }
  }
  return true;
}

static bool link_part(JitCode *code, Plan *plan, Linked *l, Part part, Buf *why) {
  Allocator *alloc = code->state->alloc;
  const LoopFn **fns = mem_alloc(alloc, sizeof *fns * l->count);
  if (!fns) return false;
  code_memory_open(code->state->memory);
  link_vectors(code, plan, l, part);
  bool ok = link_rest(code, plan, l, part, fns, why);
  if (!code_memory_close(code->state->memory)) ok = false;
  mem_free(alloc, fns, sizeof *fns * l->count);
  return ok;
}

/* ---- what waits for its first call --------------------------------------------------------------------- */

/* What cannot be compiled then is interpreted. */
static void link_later(const LoopFn *fn) {
  JitCode *code = (JitCode *)((char *)fn->module - offsetof(JitCode, module));
  Linked *l = code->linked;
  Plan *plan = code->plan;
  if (!l->waits) return;
  l->waits = false;
  Buf why;
  buf_init(&why, code->state->alloc);
  bool ok = link_part(code, plan, l, PART_LATER, &why);
  buf_free(&why);
  for (u32 i = 0; i < l->count; i++) {
    if (l->part[i] != PART_LATER) continue;
    if (i < l->kernels && !plan->kernels.data[i].fn) ((LoopFn *)fn_at(plan, i))->address = NULL;
    if (i < l->kernels) code_interpret_kernel(&plan->kernels.data[i]);
    else if (!ok) code_interpret_native(&plan->natives.data[i - l->kernels]);
  }
}

static u64 first_kernel(const PlanKernel *k, Vm *vm, const u64 *args, i64 lo, i64 hi) {
  link_later(k->self);
  return k->fn ? k->fn(args, lo, hi) : k->call(k, vm, args, lo, hi);
}

static u32 first_native(const PlanNative *n, LoopCtx *ctx, const u64 *args) {
  link_later(n->self);
  return n->call(n, ctx, args);
}

static void wait(Plan *plan, Linked *l) {
  for (u32 i = 0; i < l->count; i++) {
    if (l->part[i] != PART_LATER) continue;
    l->waits = true;
    if (i < l->kernels) plan->kernels.data[i].call = first_kernel, l->refused[i] = "it has not been called yet";
    else plan->natives.data[i - l->kernels].call = first_native;
  }
}

static bool link_mir(Vm *vm, JitCode *code, Plan *plan, Buf *why) {
  if (!(plan->kernels.count + plan->natives.count)) return true;
  JitState *state = code->state;
  if (!state->memory) state->memory = code_memory_new(state->alloc);
  if (state->memory && !state->pool) state->pool = mir_pool_new(state->alloc, state->memory);
  Linked *l = state->pool ? new_linked(vm, plan) : NULL;
  if (!l) return false;
  choose_parts(code, plan, l);
  if (code->target->gates) link_gates(vm, l, plan, state->memory);
  bool joins = state->cpu >= VEC_AVX2 && code->target->joins;
  code->module.loads_stay = !MECHANISM(vm, carried_loads);
  code->module.divisions_stay = !MECHANISM(vm, products_divide);
  code->module.powers_stay = !MECHANISM(vm, known_powers);
  code->module.bytes_stay = !MECHANISM(vm, bytes_shuffled);
  code->module.lanes_stay = !MECHANISM(vm, narrow_lanes);
  bool made = link_part(code, plan, l, PART_NOW, why) && (!joins || rows_join(plan));
  vm->counters.at[STAT_carried_loads] += code->module.carried;
  vm->counters.at[STAT_products_divide] += code->module.products;
  vm->counters.at[STAT_known_powers] += code->module.powers;
  vm->counters.at[STAT_shuffled] += code->module.shuffled;
  vm->counters.at[STAT_narrow_lanes] += code->module.narrowed;
  vm->counters.at[STAT_mir_errors] = mir_pool_stats(state->pool).errors;
  if (made) {
    wait(plan, l);
    code->linked = l;
    code->plan = plan;
    return true;
  }
  free_linked(vm, l);
  return false;
}

static void print_mir(const JitCode *code, const Plan *plan, Buf *out) {
  const Linked *l = code->linked;
  if (!l || !l->count) return;
  const LoopFn **fns = mem_alloc(code->state->alloc, sizeof *fns * l->count);
  if (!fns) out->failed = true;
  for (Part part = 0; fns && part < PARTS; part++) {
    u32 count = 0;
    for (u32 i = 0; i < l->count && l->code[part]; i++) /* their numbers go up */
      if (l->part[i] == part && (i >= l->kernels || !l->vectors[i]) && l->in_mir[i] == count)
        fns[count++] = fn_at(plan, i);
    for (u32 i = 0; i < count; i++) mir_print(code->state->pool, fns, count, i, out);
  }
  mem_free(code->state->alloc, fns, sizeof *fns * l->count);
}

static void print_vectors(const JitCode *code, const Plan *plan, Buf *out) {
  const Linked *l = code->linked;
  for (u32 i = 0; l && i < l->kernels; i++) {
    if (l->vectors[i]) vec_code_print(l->vectors[i], plan->kernels.data[i].name, out);
    else
      buf_printf(out, "%s: no vector code: %s\n", plan->kernels.data[i].name,
                 l->refused[i] ? l->refused[i] : "it is not asked for");
  }
  for (u32 i = 0; l && i < plan->natives.count; i++) { /* where the length of its code is known */
    u32 at = l->in_mir[l->kernels + i];
    const MirCode *made = l->code[l->part[l->kernels + i]];
    if (made && mir_code_bytes(made, at))
      vec_text(mir_code_text(made, at), (u32)mir_code_bytes(made, at), plan->natives.data[i].name, out);
  }
}

const JitTarget target_mir = {.name = "mir", .link = link_mir, .unlink = unlink_mir, .print = print_mir,
                              .print_machine = print_vectors, .weighed = true, .lazy = true, .gates = true,
                              .joins = true, .splits_reductions = true, .eager_scans = true, .eager_moves = true,
                              .splits_rolls = true};

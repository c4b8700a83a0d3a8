/* mir_code.c — pools of MIR contexts, groups of compiled functions; the one file that survives MIR's errors.
 *
 * MIR reports an error by a callback that must not return and is told no context. So each context gets a callback of its
 * own: a few bytes of code that load this context's address and go to on_error, which jumps back into `guarded`. What MIR
 * and the emitter held is lost then, and the context compiles nothing more; verified functions do not come there. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/mir_emit.h"
#include "jit/mir_emitter.h"
#include <mir-gen.h>
#include <weft_mir_abi.h>

enum { FUNCTIONS_PER_CONTEXT = 64, CODE_LIMIT = 16 << 20 };

typedef struct Context Context;
struct Context {
  MirPool *pool;
  Context *older;
  MIR_context_t ctx;
  MirThunks thunks;
  u32 codes;     /* groups alive in it */
  u32 functions; /* compiled in it */
  bool broken;
  jmp_buf jump;
};

struct MirPool {
  Allocator *alloc;
  Context *newest;
  u64 serial;
  bool plain;
  MirStats stats;
};

struct MirCode {
  Context *context;
  u32 count;
  MIR_item_t *items;  /* twice as many: entries, and what is printed */
  u64 *bytes; /* 0 where not known */
};

/* ---- errors of MIR ------------------------------------------------------------------------- */

static void __attribute__((noreturn)) on_error(Context *c) { longjmp(c->jump, 1); }

/* mov rdi, context; mov rax, on_error; jmp rax */
static void set_error_callback(Context *c) {
  u8 code[22] = {0x48, 0xBF, [10] = 0x48, 0xB8, [20] = 0xFF, 0xE0};
  void (*target)(Context *) = on_error;
  memcpy(code + 2, &c, 8);
  memcpy(code + 12, &target, 8);
  void *at = _MIR_publish_code(c->ctx, code, sizeof code);
  MIR_error_func_t fn;
  memcpy(&fn, &at, sizeof fn);
  if (at) MIR_set_error_func(c->ctx, fn);
  else c->broken = true;
}

static bool guarded(Context *c, void (*run)(void *), void *arg) {
  if (setjmp(c->jump)) {
    c->broken = true;
    return false;
  }
  run(arg);
  return true;
}

/* ---- contexts ------------------------------------------------------------------------------ */

static const u8 *publish_thunk(MIR_context_t ctx, u64 (*poll)(LoopCtx *)) {
  u8 code[512];
  size_t length = mir_thunk(code, poll);
  return _MIR_publish_code(ctx, code, length);
}

static Context *new_context(MirPool *pool) {
  Context *c = mem_alloc_zero(pool->alloc, sizeof *c);
  if (!c) return NULL;
  c->pool = pool;
  c->ctx = MIR_init();
  set_error_callback(c);
  c->thunks = (MirThunks){publish_thunk(c->ctx, NULL), publish_thunk(c->ctx, mir_poll)};
  MIR_gen_init(c->ctx);
  MIR_gen_set_optimize_level(c->ctx, 1); /* level 2 miscompiles (cpu.md) */
  c->older = pool->newest;
  pool->newest = c;
  pool->stats.contexts++;
  return c;
}

static void finish(void *arg) {
  Context *c = arg;
  MIR_gen_finish(c->ctx);
  MIR_finish(c->ctx);
}

static void free_context(Context *c) {
  MirPool *pool = c->pool;
  Context **at = &pool->newest;
  while (*at != c) at = &(*at)->older;
  *at = c->older;
  (void)guarded(c, finish, c);
  pool->stats.contexts--;
  mem_free(pool->alloc, c, sizeof *c);
}

MirPool *mir_pool_new(Allocator *alloc) {
  MirPool *pool = mem_alloc_zero(alloc, sizeof *pool);
  if (pool) pool->alloc = alloc;
  return pool;
}

void mir_pool_free(MirPool *pool) {
  if (!pool) return;
  while (pool->newest) free_context(pool->newest);
  mem_free(pool->alloc, pool, sizeof *pool);
}

MirStats mir_pool_stats(const MirPool *pool) { return pool->stats; }
void mir_pool_plain(MirPool *pool, bool plain) { pool->plain = plain; }

/* ---- compiling ----------------------------------------------------------------------------- */

typedef struct Job {
  Context *context;
  MirGroup group;
  bool ok;
} Job;

static void make_prototypes(MirGroup *g) {
  static const struct {
    const char *name, *signature; /* result, then arguments */
  } rows[PROTO_COUNT] = {
    [PROTO_D_D] = {"d_d", "DD"},       [PROTO_D_DD] = {"d_dd", "DDD"},     [PROTO_D_DDD] = {"d_ddd", "DDDD"},  [PROTO_F_F] = {"f_f", "FF"},
    [PROTO_F_FF] = {"f_ff", "FFF"},    [PROTO_F_FFF] = {"f_fff", "FFFF"},  [PROTO_P_P] = {"p_p", "PP"},        [PROTO_P_PP] = {"p_pp", "PPP"},
    [PROTO_F_P] = {"f_p", "FP"},       [PROTO_P_F] = {"p_f", "PF"},        [PROTO_KERNEL] = {"kernel", "PPPP"}, [PROTO_FRAME] = {"frame", "VPPPPP"},
    [PROTO_STRIP] = {"strip", "PPPPP"},
  };
  for (u32 i = 0; i < PROTO_COUNT; i++) {
    MIR_var_t vars[8];
    const char *s = rows[i].signature;
    u32 count = (u32)strlen(s) - 1;
    MIR_type_t types[8];
    for (u32 k = 0; k <= count; k++) types[k] = s[k] == 'D' ? MIR_T_D : s[k] == 'F' ? MIR_T_F : MIR_T_I64;
    for (u32 k = 0; k < count; k++) vars[k] = (MIR_var_t){.type = types[k + 1], .name = "a"};
    g->protos[i] = MIR_new_proto_arr(g->ctx, rows[i].name, s[0] != 'V', types, count, vars);
  }
}

static void not_yet(MIR_context_t ctx, MIR_item_t item) { (void)ctx, (void)item; }

/* MIR_link simplifies; what it wrote is folded before code is made of it. */
static void link_module(MIR_context_t ctx, MIR_module_t module, Allocator *alloc) {
#if WEFT_MIR_LINK_ARGS == 4
  MIR_link(ctx, not_yet, NULL, NULL);
#else
  MIR_link(ctx, not_yet, NULL);
#endif
  for (MIR_item_t item = DLIST_HEAD(MIR_item_t, module->items); item; item = DLIST_NEXT(MIR_item_t, item)) {
    if (item->item_type != MIR_func_item) continue;
    mir_settle_operands(item);
    mir_fold(ctx, item, alloc);
    MIR_set_gen_interface(ctx, item);
  }
  MIR_set_gen_interface(ctx, NULL);
}

static void compile(void *arg) {
  Job *job = arg;
  MirGroup *g = &job->group;
  char name[40];
  snprintf(name, sizeof name, "group_%llu", (unsigned long long)g->serial);
  MIR_module_t module = MIR_new_module(g->ctx, name);
  make_prototypes(g);
  for (u32 i = 0; i < g->count; i++) {
    snprintf(name, sizeof name, "fn_%llu_%u", (unsigned long long)g->serial, i);
    g->units[i].item = MIR_new_forward(g->ctx, name);
    snprintf(name, sizeof name, "in_%llu_%u", (unsigned long long)g->serial, i);
    g->units[i].inner = mir_is_inner(g, g->units[i].source) ? MIR_new_forward(g->ctx, name) : NULL;
  }
  job->ok = true;
  for (u32 i = 0; i < g->count && job->ok; i++) job->ok = mir_function(g, i) == WEFT_OK && !g->units[i].broken;
  MIR_finish_module(g->ctx);
  if (!job->ok) return; /* the module is never loaded; it goes with its context */
  MIR_load_module(g->ctx, module);
  link_module(g->ctx, module, g->alloc);
}

static u8 *machine_code(MIR_item_t item) { return item->u.func->machine_code; }

typedef enum Patched { PATCHED, NOT_PATCHED, PATCH_NO_MEMORY } Patched;

static Patched patch_unit(MirPool *pool, Context *c, const MirUnit *unit, u32 number, u64 *bytes) {
  u64 patched = 0;
  u8 *code = machine_code(unit->inner ? unit->inner : unit->item);
  *bytes = 0;
  if (!unit->marks) return PATCHED;
  size_t length = mir_code_end(code, CODE_LIMIT, number);
  if (!length) return NOT_PATCHED;
  u8 *copy = mem_alloc(pool->alloc, length);
  if (!copy) return PATCH_NO_MEMORY;
  memcpy(copy, code, length);
  bool ok = mir_patch(copy, length, code, &c->thunks, &patched);
  if (ok) _MIR_change_code(c->ctx, code, copy, length);
  mem_free(pool->alloc, copy, length);
  pool->stats.patched += ok ? patched : 0;
  *bytes = length;
  return ok ? PATCHED : NOT_PATCHED;
}

static MirCode *new_code(MirPool *pool, Context *c, u32 count) {
  MirCode *code = mem_alloc_zero(pool->alloc, sizeof *code);
  if (!code) return NULL;
  code->context = c;
  code->count = count;
  code->items = mem_alloc_zero(pool->alloc, sizeof *code->items * 2 * count);
  code->bytes = mem_alloc_zero(pool->alloc, sizeof *code->bytes * count);
  c->codes++;
  if (code->items && code->bytes) return code;
  mir_code_free(code);
  return NULL;
}

static Context *usable_context(MirPool *pool) {
  Context *c = pool->newest;
  return c && !c->broken && c->functions < FUNCTIONS_PER_CONTEXT ? c : new_context(pool);
}

static WeftStatus fail(Buf *why, const char *text) {
  if (why && !why->len) buf_puts(why, text);
  return WEFT_ERROR;
}

/* One try, patched or plain. `again` is set when a mark could not be patched. */
static WeftStatus try_compile(MirPool *pool, MirUnit *units, u32 count, bool plain, MirCode **out, Buf *why, bool *again) {
  *again = false;
  Context *c = usable_context(pool);
  if (!c) return fail(why, "out of memory");
  Job job = {.context = c, .group = {.ctx = c->ctx, .alloc = pool->alloc, .units = units, .count = count, .plain = plain, .serial = ++pool->serial, .why = why}};
  MirCode *code = new_code(pool, c, count);
  if (!code) return fail(why, "out of memory");
  c->functions += count;
  if (!guarded(c, compile, &job)) {
    mir_code_free(code);
    return fail(why, "MIR refused the function");
  }
  WeftStatus status = job.ok ? WEFT_OK : fail(why, "out of memory");
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    code->items[i] = units[i].item;
    code->items[count + i] = units[i].inner ? units[i].inner : units[i].item;
    Patched p = patch_unit(pool, c, &units[i], i, &code->bytes[i]);
    pool->stats.code_bytes += code->bytes[i];
    *again = p == NOT_PATCHED;
    if (p != PATCHED) status = *again ? WEFT_ERROR : fail(why, "out of memory");
  }
  if (status != WEFT_OK) {
    mir_code_free(code);
    return status;
  }
  *out = code;
  return WEFT_OK;
}

WeftStatus mir_compile(MirPool *pool, const LoopFn *const *fns, u32 count, MirCode **code, Buf *why) {
  MirUnit *units = mem_alloc_zero(pool->alloc, sizeof *units * (count ? count : 1));
  WeftStatus status = units ? WEFT_OK : fail(why, "out of memory");
  bool again = false;
  *code = NULL;
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    units[i].source = fns[i];
    if (fns[i]->kind == LOOP_MATH_FN || fns[i]->is_extern) status = fail(why, "math and extern functions are not compiled");
    else if (!(units[i].fn = loops_simplify(fns[i]))) status = fail(why, "out of memory");
  }
  if (status == WEFT_OK) status = try_compile(pool, units, count, pool->plain, code, why, &again);
  if (again) {
    pool->stats.again += count;
    status = try_compile(pool, units, count, true, code, why, &again);
  }
  if (status == WEFT_OK) pool->stats.functions += count;
  for (u32 i = 0; units && i < count; i++)
    if (units[i].fn) loop_fn_free(units[i].fn);
  mem_free(pool->alloc, units, sizeof *units * (count ? count : 1));
  return status;
}

void mir_code_free(MirCode *code) {
  if (!code) return;
  Context *c = code->context;
  MirPool *pool = c->pool;
  for (u32 i = 0; code->bytes && i < code->count; i++) pool->stats.code_bytes -= code->bytes[i];
  mem_free(pool->alloc, code->items, sizeof *code->items * 2 * code->count);
  mem_free(pool->alloc, code->bytes, sizeof *code->bytes * code->count);
  mem_free(pool->alloc, code, sizeof *code);
  if (--c->codes == 0 && (c != pool->newest || c->broken || c->functions > FUNCTIONS_PER_CONTEXT / 2)) free_context(c);
}

LoopKernelFn mir_code_kernel(const MirCode *code, u32 i) {
  LoopKernelFn fn;
  void *at = machine_code(code->items[i]);
  memcpy(&fn, &at, sizeof fn);
  return fn;
}

void *mir_code_native(const MirCode *code, u32 i) { return machine_code(code->items[i]); }
u64 mir_code_bytes(const MirCode *code, u32 i) { return code->bytes[i]; }
const u8 *mir_code_text(const MirCode *code, u32 i) { return machine_code(code->items[code->count + i]); }

void mir_code_print(const MirCode *code, u32 i, Buf *out) {
  char *text = NULL;
  size_t length = 0;
  FILE *file = open_memstream(&text, &length);
  if (!file) {
    out->failed = true;
    return;
  }
  MIR_output_item(code->context->ctx, file, code->items[code->count + i]);
  if (fclose(file) == 0) buf_put(out, text, length);
  free(text);
}

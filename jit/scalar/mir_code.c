/* mir_code.c — pools of MIR contexts, groups of compiled functions; the one file that survives MIR's errors.
 *
 * MIR reports an error by a callback that must not return and is told no context. So each context gets a callback of
 * its own: a few bytes of code that load this context's address and go to on_error, which jumps back into `guarded`.
 * So does a refusal of memory that MIR asks for. The context compiles nothing more then. What the emitter held is given
 * back at once, what MIR held when the context goes: both are blocks of a HeldMemory. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "jit/scalar/mir_emit.h"
#include "jit/scalar/mir_emitter.h"
#include "jit/scalar/mir_memory.h"
#include <mir-gen.h>
#include <weft_mir_abi.h>

enum { FUNCTIONS_PER_CONTEXT = 64, CODE_LIMIT = 16 << 20, PAGE = 4096 };
enum { PIECES = 4, FIRST_PIECE = 16 << 10, PIECE_GROWS = 8 }; /* code memory that one group takes */

typedef struct Context Context;
struct Context {
  MirPool *pool;
  Context *older;
  MIR_context_t ctx;
  HeldMemory memory; /* what MIR holds */
  u8 *page; /* the error callback, the thunks, what MIR makes once: code that may run while other code is written */
  size_t page_used;
  bool sealed; /* it is executable */
  MirCode *into; /* what is compiled goes there */
  MirThunks thunks;
  u32 codes;     /* groups alive in it */
  u32 functions; /* compiled in it */
  bool broken;
  bool refused; /* memory, to MIR */
  jmp_buf jump;
};

struct MirPool {
  Allocator *alloc;
  CodeMemory *memory;
  bool own_memory;
  Context *newest;
  u64 serial;
  bool plain;
  MirStats stats;
};

struct MirCode {
  Context *context;
  u32 count;
  MIR_item_t *items;  /* twice as many: entries, and what they enter */
  u64 *bytes; /* 0 where not known */
  struct {
    u8 *at;
    size_t bytes;
  } pieces[PIECES];
  u32 pieces_used;
  size_t used; /* of the last of them */
};

/* ---- where code goes ----------------------------------------------------------------------- */

static u8 *page_room(Context *c, size_t bytes) {
  size_t at = (c->page_used + 15) & ~(size_t)15;
  if (at + bytes > PAGE) return NULL;
  c->page_used = at + bytes;
  return c->page + at;
}

static void trim(CodeMemory *m, MirCode *code) {
  if (!code->pieces_used) return;
  u32 last = code->pieces_used - 1;
  size_t bytes = code->used ? code->used : 1;
  code_memory_trim(m, code->pieces[last].at, code->pieces[last].bytes, bytes);
  code->pieces[last].bytes = bytes;
}

/* At the beginning of a line of 64 bytes: short loops lie in one (jit/mir/quick.sed). */
static u8 *piece_room(CodeMemory *m, MirCode *code, size_t bytes) {
  enum { LINE = 64 };
  size_t at = (code->used + LINE - 1) & ~(size_t)(LINE - 1), most = FIRST_PIECE;
  if (!code->pieces_used || at + bytes > code->pieces[code->pieces_used - 1].bytes) {
    if (code->pieces_used == PIECES) return NULL;
    trim(m, code);
    for (u32 i = 0; i < code->pieces_used; i++) most *= PIECE_GROWS;
    if (most < bytes) most = bytes;
    u8 *piece = code_memory_take(m, most);
    if (!piece) return NULL;
    code->pieces[code->pieces_used].at = piece;
    code->pieces[code->pieces_used++].bytes = most;
    at = 0;
  }
  code->used = at + bytes;
  return code->pieces[code->pieces_used - 1].at + at;
}

static void __attribute__((noreturn)) on_error(Context *c) { longjmp(c->jump, 1); }

#if WEFT_MIR_CODE_HOOKS
enum { CALLBACK = 22 };

/* The context whose callback it is; NULL while MIR_init runs. */
static Context *context_of(MIR_context_t ctx) {
  MIR_error_func_t fn = MIR_get_error_func(ctx);
  void (*target)(Context *) = on_error;
  u8 code[CALLBACK];
  Context *c;
  void *at;
  memcpy(&at, &fn, sizeof at);
  memcpy(code, at, sizeof code);
  memcpy(&c, code + 2, sizeof c);
  return memcmp(code + 12, &target, sizeof target) == 0 ? c : NULL;
}

/* In place of MIR's own, which make two system calls for each piece of code: what is written here lies in memory that
 * is open. */
u8 *_MIR_publish_code(MIR_context_t ctx, const u8 *code, size_t bytes) {
  Context *c = context_of(ctx);
  if (!c) return NULL; /* of what is never called */
  u8 *at = !c->sealed ? page_room(c, bytes) : c->into ? piece_room(c->pool->memory, c->into, bytes) : NULL;
  if (!at) on_error(c);
  memcpy(at, code, bytes);
  return at;
}

void _MIR_change_code(MIR_context_t ctx, u8 *at, const u8 *code, size_t bytes) {
  (void)ctx;
  memcpy(at, code, bytes);
}

void _MIR_update_code_arr(MIR_context_t ctx, u8 *base, size_t count, const MIR_code_reloc_t *relocs) {
  (void)ctx;
  for (size_t i = 0; i < count; i++) memcpy(base + relocs[i].offset, &relocs[i].value, sizeof relocs[i].value);
}
#endif

/* ---- memory of MIR -------------------------------------------------------------------------- */

#if WEFT_MIR_CODE_HOOKS
static _Thread_local Context *asking; /* whose MIR runs in this thread: between `guarded` and its end */

/* What jit/mir/build.sh puts in place of malloc, realloc and free in MIR, which ends the process when they refuse. */
void *mir_malloc(size_t bytes);
void *mir_realloc(void *p, size_t bytes);
void mir_free(void *p);

void *mir_realloc(void *p, size_t bytes) {
  void *grown = mem_resize(&asking->memory.base, p, 0, bytes ? bytes : 1);
  if (!grown) {
    asking->refused = true;
    on_error(asking);
  }
  return grown;
}
void *mir_malloc(size_t bytes) { return mir_realloc(NULL, bytes); }
void mir_free(void *p) { mem_free(&asking->memory.base, p, 0); }
#endif

/* ---- errors of MIR ------------------------------------------------------------------------- */

static u8 *place(Context *c, const u8 *code, size_t bytes) {
#if WEFT_MIR_CODE_HOOKS
  u8 *at = page_room(c, bytes);
  if (at) memcpy(at, code, bytes);
  return at;
#else
  return _MIR_publish_code(c->ctx, code, bytes);
#endif
}

/* mov rdi, context; mov rax, on_error; jmp rax */
static void set_error_callback(Context *c) {
  u8 code[22] = {0x48, 0xBF, [10] = 0x48, 0xB8, [20] = 0xFF, 0xE0};
  void (*target)(Context *) = on_error;
  memcpy(code + 2, &c, 8);
  memcpy(code + 12, &target, 8);
  void *at = place(c, code, sizeof code);
  MIR_error_func_t fn;
  memcpy(&fn, &at, sizeof fn);
  if (at) MIR_set_error_func(c->ctx, fn);
  else c->broken = true;
}

#if WEFT_MIR_CODE_HOOKS
static void set_asking(Context *c) { asking = c; }
#else
static void set_asking(Context *c) { (void)c; }
#endif

/* Nothing that is guarded guards again. */
static bool guarded(Context *c, void (*run)(void *), void *arg) {
  set_asking(c);
  if (setjmp(c->jump)) {
    set_asking(NULL);
    c->broken = true;
    return false;
  }
  run(arg);
  set_asking(NULL);
  return true;
}

/* ---- contexts ------------------------------------------------------------------------------ */

static const u8 *publish_thunk(Context *c, u64 (*poll)(LoopCtx *)) {
  u8 code[512];
  size_t length = mir_thunk(code, poll);
  return place(c, code, length);
}

#if WEFT_MIR_CODE_HOOKS
static bool open_page(Context *c) {
  c->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return c->page != MAP_FAILED;
}

static void seal_page(Context *c) {
  c->sealed = true;
  if (mprotect(c->page, PAGE, PROT_READ | PROT_EXEC) != 0) c->broken = true;
}

static void free_page(Context *c) { munmap(c->page, PAGE); }
#else
static bool open_page(Context *c) { return c != NULL; }
static void seal_page(Context *c) { (void)c; }
static void free_page(Context *c) { (void)c; }
#endif

static void start(void *arg) {
  Context *c = arg;
  c->ctx = MIR_init();
  set_error_callback(c);
  c->thunks = (MirThunks){publish_thunk(c, NULL), publish_thunk(c, mir_poll)};
  MIR_gen_init(c->ctx);
  seal_page(c);
  MIR_gen_set_optimize_level(c->ctx, 1); /* level 2 miscompiles (docs/notes/001) */
}

#if WEFT_MIR_CODE_HOOKS
static void finish(Context *c) { (void)c; } /* all it has is in c->memory and in pieces of code memory */
#else
static void finish_guarded(void *arg) {
  Context *c = arg;
  MIR_gen_finish(c->ctx);
  MIR_finish(c->ctx);
}
static void finish(Context *c) { (void)guarded(c, finish_guarded, c); }
#endif

static void free_context(Context *c) {
  MirPool *pool = c->pool;
  finish(c);
  held_release(&c->memory);
  free_page(c);
  mem_free(pool->alloc, c, sizeof *c);
}

static Context *new_context(MirPool *pool) {
  Context *c = mem_alloc_zero(pool->alloc, sizeof *c);
  if (!c || !open_page(c)) {
    mem_free(pool->alloc, c, sizeof *c);
    return NULL;
  }
  c->pool = pool;
  held_init(&c->memory, pool->alloc);
  if (!guarded(c, start, c)) {
    free_context(c);
    return NULL;
  }
  c->older = pool->newest;
  pool->newest = c;
  pool->stats.contexts++;
  return c;
}

static void remove_context(Context *c) {
  MirPool *pool = c->pool;
  Context **at = &pool->newest;
  while (*at != c) at = &(*at)->older;
  *at = c->older;
  pool->stats.contexts--;
  free_context(c);
}

MirPool *mir_pool_new(Allocator *alloc, CodeMemory *memory) {
  MirPool *pool = mem_alloc_zero(alloc, sizeof *pool);
  if (!pool) return NULL;
  *pool = (MirPool){.alloc = alloc, .memory = memory ? memory : code_memory_new(alloc), .own_memory = !memory};
  if (pool->memory) return pool;
  mem_free(alloc, pool, sizeof *pool);
  return NULL;
}

void mir_pool_free(MirPool *pool) {
  if (!pool) return;
  while (pool->newest) remove_context(pool->newest);
  if (pool->own_memory) code_memory_free(pool->memory);
  mem_free(pool->alloc, pool, sizeof *pool);
}

MirStats mir_pool_stats(const MirPool *pool) { return pool->stats; }
void mir_pool_plain(MirPool *pool, bool plain) { pool->plain = plain; }

/* ---- compiling ----------------------------------------------------------------------------- */

typedef struct Job {
  Context *context;
  MirGroup group;
  HeldMemory memory; /* what the emitter holds */
  Buf *text; /* not NULL: no code, but what it would be made of, of the function */
  u32 shown;
  bool ok;
} Job;

MIR_item_t mir_prototype(MirGroup *g, u32 proto) {
  static const struct {
    const char *name, *signature; /* result, then arguments */
  } rows[PROTO_COUNT] = {
    [PROTO_D_D] = {"d_d", "DD"}, [PROTO_D_DD] = {"d_dd", "DDD"}, [PROTO_D_DDD] = {"d_ddd", "DDDD"},
    [PROTO_F_F] = {"f_f", "FF"},
    [PROTO_F_FF] = {"f_ff", "FFF"}, [PROTO_F_FFF] = {"f_fff", "FFFF"}, [PROTO_P_P] = {"p_p", "PP"},
    [PROTO_P_PP] = {"p_pp", "PPP"},
    [PROTO_F_P] = {"f_p", "FP"}, [PROTO_P_F] = {"p_f", "PF"}, [PROTO_KERNEL] = {"kernel", "PPPP"},
    [PROTO_FRAME] = {"frame", "VPPPPP"},
    [PROTO_STRIP] = {"strip", "PPPPP"},
  };
  if (g->protos[proto]) return g->protos[proto];
  MIR_var_t vars[8];
  const char *s = rows[proto].signature;
  u32 count = (u32)strlen(s) - 1;
  MIR_type_t types[8];
  for (u32 k = 0; k <= count; k++) types[k] = s[k] == 'D' ? MIR_T_D : s[k] == 'F' ? MIR_T_F : MIR_T_I64;
  for (u32 k = 0; k < count; k++) vars[k] = (MIR_var_t){.type = types[k + 1], .name = "a"};
  return g->protos[proto] = MIR_new_proto_arr(g->ctx, rows[proto].name, s[0] != 'V', types, count, vars);
}

static void not_yet(MIR_context_t ctx, MIR_item_t item) { (void)ctx, (void)item; }

static void print_item(MIR_context_t ctx, MIR_item_t item, Buf *out) {
  char *text = NULL;
  size_t length = 0;
  FILE *file = open_memstream(&text, &length);
  if (!file) {
    out->failed = true;
    return;
  }
  MIR_output_item(ctx, file, item);
  if (fclose(file) == 0) buf_put(out, text, length);
  free(text);
}

/* MIR_link simplifies; what it wrote is folded before code is made of it. */
static void link_module(Job *job, MIR_module_t module) {
  MIR_context_t ctx = job->group.ctx;
  const MirUnit *shown = &job->group.units[job->shown];
#if WEFT_MIR_LINK_ARGS == 4
  MIR_link(ctx, not_yet, NULL, NULL);
#else
  MIR_link(ctx, not_yet, NULL);
#endif
  Toil *toil_of = job->group.count ? job->group.units[0].source->module->toil : NULL;
  for (MIR_item_t item = DLIST_HEAD(MIR_item_t, module->items); item; item = DLIST_NEXT(MIR_item_t, item)) {
    if (item->item_type != MIR_func_item) continue;
    if (!toil(toil_of, 4096)) { /* looked at between two functions: each is short enough */
      job->ok = false;
      job->context->broken = true; /* what stands in it has no code */
      return;
    }
    mir_settle_operands(item);
    mir_fold(ctx, item, job->group.alloc);
    if (!job->text) MIR_set_gen_interface(ctx, item);
    else if (item == (shown->inner ? shown->inner : shown->item)) print_item(ctx, item, job->text);
  }
  MIR_set_gen_interface(ctx, NULL);
}

static void compile(void *arg) {
  Job *job = arg;
  MirGroup *g = &job->group;
  char name[40];
  snprintf(name, sizeof name, "group_%llu", (unsigned long long)g->serial);
  MIR_module_t module = MIR_new_module(g->ctx, name);
  mir_find_inner(g);
  for (u32 i = 0; i < g->count; i++) {
    snprintf(name, sizeof name, "fn_%llu_%u", (unsigned long long)g->serial, i);
    g->units[i].item = MIR_new_forward(g->ctx, name);
    snprintf(name, sizeof name, "in_%llu_%u", (unsigned long long)g->serial, i);
    g->units[i].inner = g->units[i].is_inner ? MIR_new_forward(g->ctx, name) : NULL;
  }
  job->ok = true;
  for (u32 i = 0; i < g->count && job->ok; i++) job->ok = mir_function(g, i) == WEFT_OK && !g->units[i].broken;
  MIR_finish_module(g->ctx);
  if (!job->ok) return; /* the module is never loaded; it goes with its context */
  MIR_load_module(g->ctx, module);
  link_module(job, module);
}

static u8 *machine_code(MIR_item_t item) { return item->u.func->machine_code; }

typedef enum Patched { PATCHED, NOT_PATCHED, PATCH_NO_MEMORY } Patched;

#if WEFT_MIR_CODE_HOOKS
static size_t bytes_from(const MirCode *code, const u8 *at) {
  for (u32 i = 0; i < code->pieces_used; i++)
    if (at >= code->pieces[i].at && at < code->pieces[i].at + code->pieces[i].bytes)
      return code->pieces[i].bytes - (size_t)(at - code->pieces[i].at);
  return 0;
}

/* In place: code that cannot be patched is given up. */
static Patched patch(MirPool *pool, MirCode *to, u8 *code, u32 number, u64 *patched, u64 *bytes) {
  (void)pool;
  size_t length = mir_code_end(code, bytes_from(to, code), number);
  *bytes = length;
  return length && mir_patch(code, length, code, &to->context->thunks, patched) ? PATCHED : NOT_PATCHED;
}
#else
static Patched patch(MirPool *pool, MirCode *to, u8 *code, u32 number, u64 *patched, u64 *bytes) {
  size_t length = mir_code_end(code, CODE_LIMIT, number);
  if (!length) return NOT_PATCHED;
  u8 *copy = mem_alloc(pool->alloc, length);
  if (!copy) return PATCH_NO_MEMORY;
  memcpy(copy, code, length);
  bool ok = mir_patch(copy, length, code, &to->context->thunks, patched);
  if (ok) _MIR_change_code(to->context->ctx, code, copy, length);
  mem_free(pool->alloc, copy, length);
  *bytes = length;
  return ok ? PATCHED : NOT_PATCHED;
}
#endif

static Patched patch_unit(MirPool *pool, MirCode *to, const MirUnit *unit, u32 number, u64 *bytes) {
  u64 patched = 0;
  *bytes = 0;
  if (!unit->marks) return PATCHED;
  Patched p = patch(pool, to, machine_code(unit->inner ? unit->inner : unit->item), number, &patched, bytes);
  if (p == PATCHED) pool->stats.patched += patched;
  return p;
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

static WeftStatus compile_into(MirPool *pool, MirCode *code, Job *job, Buf *why, bool *again) {
  MirUnit *units = job->group.units;
  u32 count = job->group.count;
  job->context->functions += count;
  bool made = guarded(job->context, compile, job);
  held_release(&job->memory);
  if (!made && job->context->refused) return fail(why, "out of memory");
  if (!made) {
    pool->stats.errors++;
    return fail(why, "MIR refused the function");
  }
  WeftStatus status = job->ok ? WEFT_OK : fail(why, "out of memory");
  for (u32 i = 0; i < count && status == WEFT_OK && !job->text; i++) {
    code->items[i] = units[i].item;
    code->items[count + i] = units[i].inner ? units[i].inner : units[i].item;
    Patched p = patch_unit(pool, code, &units[i], i, &code->bytes[i]);
    pool->stats.code_bytes += code->bytes[i];
    *again = p == NOT_PATCHED;
    if (p != PATCHED) status = *again ? WEFT_ERROR : fail(why, "out of memory");
  }
  return status;
}

/* One try, patched or plain. `again` is set when a mark could not be patched. */
static WeftStatus try_compile(MirPool *pool, Job *job, MirCode **out, bool *again) {
  MirGroup *g = &job->group;
  *again = false;
  Context *c = job->context = usable_context(pool);
  if (!c) return fail(g->why, "out of memory");
  MirCode *code = c->into = new_code(pool, c, g->count);
  if (!code) return fail(g->why, "out of memory");
  g->ctx = c->ctx;
  g->serial = ++pool->serial;
  memset(g->protos, 0, sizeof g->protos);
  code_memory_open(pool->memory);
  WeftStatus status = compile_into(pool, code, job, g->why, again);
  c->into = NULL;
  trim(pool->memory, code);
  if (!code_memory_close(pool->memory)) status = fail(g->why, "no executable memory");
  if (status == WEFT_OK) *out = code;
  else mir_code_free(code);
  return status;
}

/* Simplified functions are verified in sanitizer builds. */
#ifdef __SANITIZE_ADDRESS__
enum { VERIFIES = true };
#else
enum { VERIFIES = false };
#endif

static WeftStatus make(MirPool *pool, const LoopFn *const *fns, Job *job, MirCode **code) {
  u32 count = job->group.count;
  Buf *why = job->group.why;
  MirUnit *units = job->group.units = mem_alloc_zero(pool->alloc, sizeof *units * (count ? count : 1));
  WeftStatus status = units ? WEFT_OK : fail(why, "out of memory");
  held_init(&job->memory, pool->alloc);
  job->group.alloc = &job->memory.base;
  bool again = false;
  *code = NULL;
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    units[i].source = fns[i];
    if (fns[i]->kind == LOOP_MATH_FN || fns[i]->is_extern)
      status = fail(why, "math and extern functions are not compiled");
    else if (!(units[i].fn = loops_simplify(fns[i]))) status = fail(why, "out of memory");
    else if (VERIFIES && loops_verify(units[i].fn, why) != WEFT_OK) pool->stats.errors++, status = WEFT_ERROR;
  }
  if (status == WEFT_OK) status = try_compile(pool, job, code, &again);
  if (again) {
    pool->stats.again += count;
    job->group.plain = true;
    status = try_compile(pool, job, code, &again);
  }
  for (u32 i = 0; units && i < count; i++)
    if (units[i].fn) loop_fn_free(units[i].fn);
  mem_free(pool->alloc, units, sizeof *units * (count ? count : 1));
  return status;
}

WeftStatus mir_compile(MirPool *pool, const LoopFn *const *fns, u32 count, MirCode **code, Buf *why) {
  Job job = {.group = {.count = count, .plain = pool->plain, .why = why}};
  WeftStatus status = make(pool, fns, &job, code);
  if (status == WEFT_OK) pool->stats.functions += count;
  return status;
}

void mir_print(MirPool *pool, const LoopFn *const *fns, u32 count, u32 i, Buf *out) {
  Job job = {.group = {.count = count, .plain = pool->plain}, .text = out, .shown = i};
  MirCode *code;
  if (make(pool, fns, &job, &code) == WEFT_OK) mir_code_free(code);
  else out->failed = true;
}

void mir_code_free(MirCode *code) {
  if (!code) return;
  Context *c = code->context;
  MirPool *pool = c->pool;
  for (u32 i = 0; code->bytes && i < code->count; i++) pool->stats.code_bytes -= code->bytes[i];
  for (u32 i = 0; i < code->pieces_used; i++) code_memory_give(pool->memory, code->pieces[i].at, code->pieces[i].bytes);
  mem_free(pool->alloc, code->items, sizeof *code->items * 2 * code->count);
  mem_free(pool->alloc, code->bytes, sizeof *code->bytes * code->count);
  mem_free(pool->alloc, code, sizeof *code);
  bool spent = c != pool->newest || c->broken || c->functions > FUNCTIONS_PER_CONTEXT / 2;
  if (--c->codes == 0 && spent) remove_context(c);
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
